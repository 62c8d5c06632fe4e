//! The queue of things that become ready at a time: a hierarchical timing wheel.
//!
//! Order: by time; at equal times first in, first out. Time never goes back: nothing may be put in for a moment
//! before the last that was asked for ([`Ready::pop`]).
//!
//! A thing lies on the level of the highest digit (of [`BITS`] bits) in which its time differs from the wheel's
//! present, in the slot of that digit. When the wheel's present comes to a slot, its things move to lower levels;
//! each so moves a few times, however many there are, where a heap would compare on each of log n levels. The things
//! of a slot are a list through one table, so that nothing is allocated or copied when they move.

use vef_format::units::Picos;

/// What becomes ready: of which task (counted over all jobs), and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// When.
    pub(crate) at: Picos,
    /// Whose.
    pub(crate) task: u32,
    /// Which of the task's things.
    pub(crate) what: u32,
}

/// Bits of a digit.
const BITS: u32 = 10;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// Slots whose occupation is told by one word.
const WORD: usize = u64::BITS as usize;
/// No place in the table.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Ready {
    /// The wheel's present, not after the last moment asked for.
    present: u64,
    /// What is ready at the wheel's present.
    fifo: List,
    /// Which levels hold anything, which words of them, and which of their slots.
    levels: u32,
    words: [u32; LEVELS],
    occupied: [[u64; SLOTS / WORD]; LEVELS],
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
    things: Vec<Thing>,
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The earliest time in it.
    first: u64,
    list: List,
}

/// First and last of a list of things.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Thing {
    due: Due,
    next: u32,
}

const EMPTY: List = List { head: NONE, tail: NONE };

impl List {
    #[inline(always)]
    fn append(&mut self, things: &mut [Thing], at: u32) {
        match things.get_mut(self.tail as usize) {
            Some(tail) => tail.next = at,
            None => self.head = at,
        }
        self.tail = at;
    }
}

impl Default for Ready {
    fn default() -> Self {
        let slots = vec![[Slot { first: u64::MAX, list: EMPTY }; SLOTS]; LEVELS];
        Self {
            present: 0,
            fifo: EMPTY,
            levels: 0,
            words: [0; LEVELS],
            occupied: [[0; SLOTS / WORD]; LEVELS],
            // It has just been made with that many.
            slots: slots.try_into().unwrap_or_else(|_| unreachable!()),
            things: Vec::new(),
            free: NONE,
        }
    }
}

impl Ready {
    /// Puts something in.
    #[inline]
    pub(crate) fn push(&mut self, due: Due) {
        let at = self.free;
        let thing = Thing { due, next: NONE };
        let at = match self.things.get_mut(at as usize) {
            Some(place) => {
                self.free = place.next;
                *place = thing;
                at
            }
            None => self.grow(thing),
        };
        self.place(at, due.at.0);
    }

    #[cold]
    fn grow(&mut self, thing: Thing) -> u32 {
        self.things.push(thing);
        (self.things.len() - 1) as u32
    }

    /// Puts a thing, which is in no list, into its list.
    #[inline(always)]
    fn place(&mut self, thing: u32, at: u64) {
        if at <= self.present {
            self.fifo.append(&mut self.things, thing);
            return;
        }
        let level = ((u64::BITS - 1 - (at ^ self.present).leading_zeros()) / BITS) as usize;
        let digit = (at >> (level as u32 * BITS)) as usize % SLOTS;
        self.levels |= 1 << level;
        self.words[level] |= 1 << (digit / WORD);
        self.occupied[level][digit / WORD] |= 1 << (digit % WORD);
        let slot = &mut self.slots[level][digit];
        slot.first = slot.first.min(at);
        slot.list.append(&mut self.things, thing);
    }

    /// When the first is ready.
    #[inline]
    pub(crate) fn next(&self) -> Option<Picos> {
        if self.fifo.head != NONE {
            return Some(Picos(self.present));
        }
        let (level, digit) = self.first_slot()?;
        Some(Picos(self.slots[level][digit].first))
    }

    /// Takes the first if it is ready at `now`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, now: Picos) -> Option<Due> {
        let at = match self.fifo.head {
            NONE => self.turn(now)?,
            head => head,
        };
        let thing = self.things.get_mut(at as usize)?;
        self.fifo.head = thing.next;
        if thing.next == NONE {
            self.fifo.tail = NONE;
        }
        thing.next = self.free;
        self.free = at;
        Some(thing.due)
    }

    /// Moves the wheel's present on to the first moment at which anything is ready, if that is not after `now`; gives
    /// the first of what is ready then.
    fn turn(&mut self, now: Picos) -> Option<u32> {
        loop {
            let (level, digit) = self.first_slot()?;
            let slot = &mut self.slots[level][digit];
            if slot.first > now.0 {
                return None;
            }
            // Nothing comes before the first of this slot, so the wheel's present can move on to it.
            self.present = std::mem::replace(&mut slot.first, u64::MAX);
            let list = std::mem::replace(&mut slot.list, EMPTY);
            self.vacate(level, digit);
            // The things of a slot of the lowest level are of one time.
            if level == 0 || list.head == list.tail {
                self.fifo = list;
            } else {
                self.spread(list);
            }
            if self.fifo.head != NONE {
                return Some(self.fifo.head);
            }
        }
    }

    #[inline(always)]
    fn vacate(&mut self, level: usize, digit: usize) {
        let word = &mut self.occupied[level][digit / WORD];
        *word &= !(1 << (digit % WORD));
        if *word == 0 {
            self.words[level] &= !(1 << (digit / WORD));
            if self.words[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
    }

    /// Puts the things of a list in again, as the wheel's present is now.
    fn spread(&mut self, list: List) {
        let mut at = list.head;
        while let Some(thing) = self.things.get_mut(at as usize) {
            let next = std::mem::replace(&mut thing.next, NONE);
            let time = thing.due.at.0;
            self.place(at, time);
            at = next;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.head == NONE && self.levels == 0
    }

    /// The slot of the first thing that is not yet in the FIFO.
    #[inline(always)]
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.levels.trailing_zeros() as usize;
        let word = self.words.get(level)?.trailing_zeros() as usize;
        let bit = self.occupied[level].get(word)?.trailing_zeros() as usize;
        Some((level, word * WORD + bit % WORD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A push so much later than the present, or the moment so much later.
    fn action() -> impl Strategy<Value = Result<u64, u64>> {
        let span = || prop_oneof![Just(0u64), 0u64..10, 0u64..5000, 0u64..1 << 40];
        prop_oneof![3 => span().prop_map(Ok), 2 => span().prop_map(Err)]
    }

    proptest! {
        #[test]
        fn gives_by_time_and_first_in_first_out(actions in prop::collection::vec(action(), 0..400)) {
            let (mut ready, mut plain, mut now) = (Ready::default(), Vec::new(), 0);
            for (task, action) in (0u32..).zip(actions) {
                match action {
                    Ok(later) => {
                        let due = Due { at: Picos(now + later), task, what: 0 };
                        ready.push(due);
                        plain.push(due);
                    }
                    Err(later) => {
                        now += later;
                        plain.sort_by_key(|due| due.at);
                        prop_assert_eq!(ready.next(), plain.first().map(|due| due.at));
                        let first = plain.first().copied().filter(|due| due.at.0 <= now);
                        prop_assert_eq!(ready.pop(Picos(now)), first);
                        if first.is_some() {
                            plain.remove(0);
                        }
                    }
                }
            }
            plain.sort_by_key(|due| due.at);
            for due in plain {
                prop_assert_eq!(ready.pop(Picos::MAX), Some(due));
            }
            prop_assert!(ready.is_empty() && ready.next().is_none());
        }
    }

    #[test]
    fn the_end_of_time_has_a_slot() {
        let mut ready = Ready::default();
        for at in [u64::MAX, u64::MAX - 1, 1 << 63, 0] {
            ready.push(Due { at: Picos(at), task: 0, what: 0 });
        }
        let order: Vec<u64> = std::iter::from_fn(|| ready.pop(Picos::MAX)).map(|due| due.at.0).collect();
        assert_eq!(order, [0, 1 << 63, u64::MAX - 1, u64::MAX]);
    }
}

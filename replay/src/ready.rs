//! The queue of things that become ready at a time: a hierarchical timing wheel.
//!
//! Order: by time; at equal times first in, first out. Time never goes back: nothing may be put in for a moment
//! before the last that was asked for ([`Ready::pop`]).
//!
//! A thing lies on the level of the highest digit (of [`BITS`] bits, most of them) in which its time differs from the wheel's
//! present, in the slot of that digit. When the wheel's present comes to a slot, its things move to lower levels;
//! each so moves a few times, however many there are, where a heap would compare on each of log n levels. The things
//! of a slot are a list through one table, so that nothing is allocated or copied when they move.

use std::cmp::Ordering;
use vef_format::units::Picos;

/// What becomes ready: of which task (counted over all jobs), and what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// When.
    pub(crate) at: Picos,
    /// Whose.
    pub(crate) task: u32,
    /// Which of the task's things.
    pub(crate) what: u32,
}

/// Bits of a digit, of which the lowest has fewer: a slot of the second level is a nanosecond, which few share who compute for
/// different times, so that most move from there straight to the front; and all of them are four microseconds.
const BITS: u32 = 12;
const FEWER: u32 = 2;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = (u64::BITS + FEWER).div_ceil(BITS) as usize;
/// Slots whose occupation is told by one word.
const WORD: usize = u64::BITS as usize;
/// No place in the table of things, whose first place is therefore not used.
const NONE: u32 = 0;

/// Bit of a slot beside its last thing.
const MIXED: u32 = 1 << 31;

#[derive(Debug)]
pub(crate) struct Ready {
    /// The wheel's present, not after the last moment asked for.
    present: u64,
    /// The first moment of what is in slots; the end of time where there is nothing. Asked for far more often than it changes.
    earliest: u64,
    /// What is ready at the wheel's present: first and last (where there is a first).
    head: u32,
    tail: u32,
    /// Places of the table that can be used again.
    free: u32,
    things: Vec<Thing>,
    /// Which levels hold anything, which words of them, and which of their slots.
    levels: u32,
    words: [u64; LEVELS],
    occupied: [[u64; SLOTS / WORD]; LEVELS],
    /// The last thing of each slot, whose next is the first again. The first is the earliest; [`MIXED`] tells that not all
    /// are of its moment.
    slots: Box<[u32; LEVELS << BITS]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thing {
    due: Due,
    next: u32,
}

impl Default for Ready {
    fn default() -> Self {
        Self {
            present: 0,
            earliest: u64::MAX,
            head: NONE,
            tail: NONE,
            free: NONE,
            things: vec![Thing::default()],
            levels: 0,
            words: [0; LEVELS],
            occupied: [[0; SLOTS / WORD]; LEVELS],
            slots: zeros(),
        }
    }
}

/// Zeros from the system: a page that no time falls into takes no memory.
fn zeros() -> Box<[u32; LEVELS << BITS]> {
    // A vector of that length becomes an array of it.
    vec![NONE; LEVELS << BITS].try_into().unwrap_or_else(|_| Box::new([NONE; LEVELS << BITS]))
}

impl Ready {
    /// One that has room for so many things.
    pub(crate) fn with_room(things: usize) -> Self {
        let mut ready = Self::default();
        ready.things.reserve_exact(things);
        ready
    }

    /// Puts something in.
    #[inline(always)]
    pub(crate) fn push(&mut self, due: Due) {
        let at = match self.free {
            NONE => self.grow(),
            free => free,
        };
        let thing = &mut self.things[at as usize];
        self.free = thing.next;
        thing.due = due;
        self.place(at, due.at.0);
    }

    /// A new place in the table.
    #[cold]
    fn grow(&mut self) -> u32 {
        self.things.push(Thing::default());
        (self.things.len() - 1) as u32
    }

    /// Puts a thing, which is in no list, into its list.
    #[inline(always)]
    fn place(&mut self, thing: u32, at: u64) {
        match at <= self.present {
            true => self.append(thing),
            false => self.file(thing, at),
        }
    }

    /// Puts a thing at the end of what is ready.
    #[inline(always)]
    fn append(&mut self, thing: u32) {
        self.things[thing as usize].next = NONE;
        match self.head {
            NONE => self.head = thing,
            _ => self.things[self.tail as usize].next = thing,
        }
        self.tail = thing;
    }

    /// Puts a thing of a later moment into its slot.
    #[inline(always)]
    fn file(&mut self, thing: u32, at: u64) {
        self.earliest = self.earliest.min(at);
        let differs = at ^ self.present;
        // Most things lie on the second level, whose numbers are then constants.
        match differs >> (BITS - FEWER) != 0 && differs >> (2 * BITS - FEWER) == 0 {
            true => self.file_in(thing, at, 1),
            false => self.file_in(thing, at, level_of(differs)),
        }
    }

    #[inline(always)]
    fn file_in(&mut self, thing: u32, at: u64, level: u32) {
        let digit = (at >> (level * BITS).saturating_sub(FEWER)) as usize % SLOTS;
        let level = level as usize;
        self.levels |= 1 << level;
        self.words[level] |= 1 << (digit / WORD);
        self.occupied[level][digit / WORD] |= 1 << (digit % WORD);
        let slot = &mut self.slots[level << BITS | digit];
        if *slot == NONE {
            *slot = thing;
            self.things[thing as usize].next = thing;
            return;
        }
        let last = *slot & !MIXED;
        let first = std::mem::replace(&mut self.things[last as usize].next, thing);
        self.things[thing as usize].next = first;
        match at.cmp(&self.things[first as usize].due.at.0) {
            Ordering::Equal => *slot = thing | *slot & MIXED,
            Ordering::Greater => *slot = thing | MIXED,
            // It is the first, and the last remains the last.
            Ordering::Less => *slot |= MIXED,
        }
    }

    /// When the first is ready.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<Picos> {
        match self.head {
            NONE if self.levels == 0 => None,
            NONE => Some(Picos(self.earliest)),
            _ => Some(Picos(self.present)),
        }
    }

    /// Whether the first is ready at `now`, which is not before the wheel's present.
    #[inline(always)]
    pub(crate) fn has(&self, now: Picos) -> bool {
        self.head != NONE || self.earliest <= now.0
    }

    /// Takes the first if it is ready at `now`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, now: Picos) -> Option<Due> {
        let at = match self.head {
            NONE => self.turn(now)?,
            head => head,
        };
        let thing = &mut self.things[at as usize];
        self.head = std::mem::replace(&mut thing.next, self.free);
        self.free = at;
        Some(thing.due)
    }

    /// Moves the wheel's present on to the first moment at which anything is ready, if that is not after `now`; gives
    /// the first of what is ready then.
    #[inline(always)]
    fn turn(&mut self, now: Picos) -> Option<u32> {
        if self.earliest > now.0 {
            return None;
        }
        let (level, digit) = self.first_slot()?;
        let slot = std::mem::replace(&mut self.slots[level << BITS | digit], NONE);
        self.vacate(level, digit);
        let last = slot & !MIXED;
        let first = std::mem::replace(&mut self.things[last as usize].next, NONE);
        // Nothing comes before the first of this slot, so the wheel's present can move on to it.
        self.present = self.earliest;
        match slot & MIXED {
            0 => (self.head, self.tail) = (first, last),
            _ => self.spread(first),
        }
        self.earliest = match self.first_slot() {
            Some((level, digit)) => self.first_of(self.slots[level << BITS | digit]),
            None => u64::MAX,
        };
        Some(first)
    }

    /// The moment of a slot's first thing.
    #[inline(always)]
    fn first_of(&self, slot: u32) -> u64 {
        let first = self.things[(slot & !MIXED) as usize].next;
        self.things[first as usize].due.at.0
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
    fn spread(&mut self, first: u32) {
        let mut at = first;
        while at != NONE {
            let Thing { due, next } = self.things[at as usize];
            self.place(at, due.at.0);
            at = next;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE && self.levels == 0
    }

    /// The slot of the first thing that is not yet ready.
    #[inline(always)]
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.levels.trailing_zeros() as usize;
        let word = self.words.get(level)?.trailing_zeros() as usize;
        let bit = self.occupied[level].get(word)?.trailing_zeros() as usize;
        Some((level, word * WORD + bit % WORD))
    }
}

/// The level of a time that differs so from the wheel's present.
#[inline(always)]
fn level_of(differs: u64) -> u32 {
    // The lowest bit does not change the level.
    ((differs | 1).ilog2() + FEWER) / BITS
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

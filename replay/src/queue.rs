//! A queue of events by time: a hierarchical timing wheel.
//!
//! Order: by time; at equal times first in, first out. Time never goes back: nothing may be put in for a moment
//! before the last that was asked for ([`Queue::pop`]).
//!
//! An event lies on the level of the highest digit (of [`BITS`] bits, most of them) in which its time differs from the wheel's
//! present, in the slot of that digit. When the wheel's present comes to a slot, its events move to lower levels;
//! each so moves a few times, however many there are, where a heap would compare on each of log n levels. The events
//! of a slot are a list through one table, so that nothing is allocated or copied when they move.

use std::cmp::Ordering;
use vef_format::units::Picos;

/// Bits of a digit, of which the lowest has fewer: a slot of the second level is a nanosecond, which few share who compute for
/// different times, so that most move from there straight to the front; and all of them are four microseconds.
const BITS: u32 = 12;
const FEWER: u32 = 2;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = (u64::BITS + FEWER).div_ceil(BITS) as usize;
/// Slots per word of the occupation bitmap.
const WORD: usize = u64::BITS as usize;
/// No place in the table of events, whose places count from 1.
const NONE: u32 = 0;

/// Bit of a slot beside its last event: not all of its events are of one moment.
const MIXED: u32 = 1 << 31;

/// Events by time; first in, first out at equal times.
#[derive(Debug)]
pub struct Queue<T> {
    /// The wheel's present, not after the last moment asked for.
    present: u64,
    /// The first moment of what is in slots; the end of time where there is nothing. Asked for far more often than it changes.
    earliest: u64,
    /// What is ready at the wheel's present: first and last (where there is a first).
    head: u32,
    tail: u32,
    /// Places of the table that can be used again.
    free: u32,
    events: Vec<Event<T>>,
    /// Which levels hold anything, which words of them, and which of their slots.
    levels: u32,
    words: [u64; LEVELS],
    occupied: [[u64; SLOTS / WORD]; LEVELS],
    /// The last thing of each slot, whose next is the first again. The first is the earliest; [`MIXED`]: not all
    /// are of its moment.
    slots: Box<[u32; LEVELS << BITS]>,
}

#[derive(Clone, Copy, Debug)]
struct Event<T> {
    at: u64,
    next: u32,
    item: T,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            present: 0,
            earliest: u64::MAX,
            head: NONE,
            tail: NONE,
            free: NONE,
            events: Vec::new(),
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

impl<T: Copy> Queue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty queue that has room for so many events.
    pub fn with_room(events: usize) -> Self {
        let mut queue = Self::default();
        queue.events.reserve_exact(events);
        queue
    }

    /// Puts an event in.
    #[inline(always)]
    pub fn push(&mut self, at: Picos, item: T) {
        let place = match self.free {
            NONE => self.grow(at, item),
            free => {
                let event = self.event(free);
                self.free = std::mem::replace(event, Event { at: at.0, next: NONE, item }).next;
                free
            }
        };
        self.place(place, at.0);
    }

    /// A new place in the table.
    #[cold]
    fn grow(&mut self, at: Picos, item: T) -> u32 {
        self.events.push(Event { at: at.0, next: NONE, item });
        self.events.len() as u32
    }

    #[inline(always)]
    fn event(&mut self, place: u32) -> &mut Event<T> {
        &mut self.events[place as usize - 1]
    }

    /// Puts an event, which is in no list, into its list.
    #[inline(always)]
    fn place(&mut self, place: u32, at: u64) {
        match at <= self.present {
            true => self.append(place),
            false => self.file(place, at),
        }
    }

    /// Puts an event at the end of what is ready.
    #[inline(always)]
    fn append(&mut self, place: u32) {
        self.event(place).next = NONE;
        match self.head {
            NONE => self.head = place,
            _ => {
                let tail = self.tail;
                self.event(tail).next = place;
            }
        }
        self.tail = place;
    }

    /// Puts an event of a later moment into its slot.
    #[inline(always)]
    fn file(&mut self, place: u32, at: u64) {
        self.earliest = self.earliest.min(at);
        let differs = at ^ self.present;
        // Most events lie on the second level, whose numbers are then constants.
        match differs >> (BITS - FEWER) != 0 && differs >> (2 * BITS - FEWER) == 0 {
            true => self.file_in(place, at, 1),
            false => self.file_in(place, at, level_of(differs)),
        }
    }

    #[inline(always)]
    fn file_in(&mut self, place: u32, at: u64, level: u32) {
        let digit = (at >> (level * BITS).saturating_sub(FEWER)) as usize % SLOTS;
        let level = level as usize;
        self.levels |= 1 << level;
        self.words[level] |= 1 << (digit / WORD);
        self.occupied[level][digit / WORD] |= 1 << (digit % WORD);
        let slot = self.slots[level << BITS | digit];
        if slot == NONE {
            self.slots[level << BITS | digit] = place;
            self.event(place).next = place;
            return;
        }
        let last = slot & !MIXED;
        let first = std::mem::replace(&mut self.event(last).next, place);
        self.event(place).next = first;
        self.slots[level << BITS | digit] = match at.cmp(&self.event(first).at) {
            Ordering::Equal => place | slot & MIXED,
            Ordering::Greater => place | MIXED,
            // It is the first, and the last remains the last.
            Ordering::Less => slot | MIXED,
        };
    }

    /// The moment of the first event.
    #[inline(always)]
    pub fn next(&self) -> Option<Picos> {
        match self.head {
            NONE if self.levels == 0 => None,
            NONE => Some(Picos(self.earliest)),
            _ => Some(Picos(self.present)),
        }
    }

    /// Whether the moment of the first event is not after `now`, which is not before the last moment asked for.
    #[inline(always)]
    pub fn has(&self, now: Picos) -> bool {
        self.head != NONE || self.earliest <= now.0
    }

    /// Takes the first event if its moment is not after `now`.
    #[inline(always)]
    pub fn pop(&mut self, now: Picos) -> Option<(Picos, T)> {
        let place = match self.head {
            NONE => self.turn(now)?,
            head => head,
        };
        let free = self.free;
        let event = self.event(place);
        let next = std::mem::replace(&mut event.next, free);
        let popped = (Picos(event.at), event.item);
        (self.head, self.free) = (next, place);
        Some(popped)
    }

    /// Moves the wheel's present on to the first moment of any event, if that is not after `now`; returns
    /// the first event of that moment.
    #[inline(always)]
    fn turn(&mut self, now: Picos) -> Option<u32> {
        if self.earliest > now.0 {
            return None;
        }
        let (level, digit) = self.first_slot()?;
        let slot = std::mem::replace(&mut self.slots[level << BITS | digit], NONE);
        self.vacate(level, digit);
        let last = slot & !MIXED;
        let first = std::mem::replace(&mut self.event(last).next, NONE);
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

    /// The moment of a slot's first event.
    #[inline(always)]
    fn first_of(&mut self, slot: u32) -> u64 {
        let first = self.event(slot & !MIXED).next;
        self.event(first).at
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

    /// Puts the events of a list in again, as the wheel's present is now.
    fn spread(&mut self, first: u32) {
        let mut place = first;
        while place != NONE {
            let Event { at, next, .. } = *self.event(place);
            self.place(place, at);
            place = next;
        }
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.head == NONE && self.levels == 0
    }

    /// The slot of the first event that is not yet ready.
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
            let (mut queue, mut plain, mut now) = (Queue::new(), Vec::new(), 0);
            for (item, action) in (0u32..).zip(actions) {
                match action {
                    Ok(later) => {
                        queue.push(Picos(now + later), item);
                        plain.push((Picos(now + later), item));
                    }
                    Err(later) => {
                        now += later;
                        plain.sort_by_key(|&(at, _)| at);
                        prop_assert_eq!(queue.next(), plain.first().map(|&(at, _)| at));
                        let first = plain.first().copied().filter(|&(at, _)| at.0 <= now);
                        prop_assert_eq!(queue.pop(Picos(now)), first);
                        if first.is_some() {
                            plain.remove(0);
                        }
                    }
                }
            }
            plain.sort_by_key(|&(at, _)| at);
            for event in plain {
                prop_assert_eq!(queue.pop(Picos::MAX), Some(event));
            }
            prop_assert!(queue.is_empty() && queue.next().is_none());
        }
    }

    #[test]
    fn the_end_of_time_has_a_slot() {
        let mut queue = Queue::new();
        for at in [u64::MAX, u64::MAX - 1, 1 << 63, 0] {
            queue.push(Picos(at), ());
        }
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop(Picos::MAX)).map(|(at, ())| at.0).collect();
        assert_eq!(order, [0, 1 << 63, u64::MAX - 1, u64::MAX]);
    }
}

//! The event queue: events by time; at equal times first in, first out.
//!
//! A calendar whose days are 2^[`DAY`] ps long. The events of a day are collected unsorted in a vector, and are sorted once, as numbers of 64
//! bits, when the day begins. Days lie in the slots of a wheel with 2^[`BITS`] slots; days that are further away share the slots of
//! wheels whose slots are as long as a turn of the wheel below, and move down when their slot begins. So an
//! event is written once or twice, sequentially, and the events of a day are read while they are in the cache. An event for the day
//! that is under way goes to a heap of such numbers.
//!
//! Source: R. Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation for the Simulation Event Set Problem",
//! Communications of the ACM 31 (1988); wheels by digits: G. Varghese, A. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vef_format::units::Picos;

/// A day is this power of two, in picoseconds.
const DAY: u32 = 17;
/// Slots of a wheel, as bits.
const BITS: u32 = 12;
const SLOTS: usize = 1 << BITS;
const WHEELS: usize = (u64::BITS - DAY).div_ceil(BITS) as usize;
/// No event is this late.
const NEVER: u64 = u64::MAX;

/// Events by time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// The day under way: times divided by its length.
    day: u64,
    /// The events of the day, in the order in which they came.
    today: Vec<(u64, T)>,
    /// Their keys, in the order of time, of which so many are done.
    order: Vec<u64>,
    done: usize,
    /// The keys of events that came while the day was under way.
    late: BinaryHeap<Reverse<u64>>,
    wheels: [Wheel<T>; WHEELS],
    /// Vectors of days that are over.
    spare: Vec<Vec<(u64, T)>>,
    /// The time of the first event, or [`NEVER`].
    first: u64,
}

#[derive(Debug)]
struct Wheel<T> {
    slots: Vec<Slot<T>>,
    /// Bit `s` of all words together: slot `s` holds something. And which of these words are not 0.
    occupied: [u64; SLOTS / 64],
    words: u64,
}

#[derive(Debug)]
struct Slot<T> {
    /// The earliest time in `events`.
    first: u64,
    events: Vec<(u64, T)>,
}

impl<T: Copy> Queue<T> {
    pub(crate) fn new() -> Self {
        let wheel = || Wheel { slots: Vec::new(), occupied: [0; SLOTS / 64], words: 0 };
        Self {
            day: 0,
            today: Vec::new(),
            order: Vec::new(),
            done: 0,
            late: BinaryHeap::new(),
            wheels: std::array::from_fn(|_| wheel()),
            spare: Vec::new(),
            first: NEVER,
        }
    }

    /// Puts an event in that is not before the last one taken out.
    #[inline]
    pub(crate) fn push(&mut self, at: Picos, event: T) {
        self.first = self.first.min(at.0);
        if at.0 >> DAY <= self.day {
            let key = self.key(at.0);
            self.today.push((at.0, event));
            self.late.push(Reverse(key));
        } else {
            self.file(at.0, event);
        }
    }

    /// The key of an event that comes next into the vector of the day: its time within the day, and its place.
    #[inline]
    fn key(&self, at: u64) -> u64 {
        (at & ((1 << DAY) - 1)) << 32 | self.today.len() as u64
    }

    /// Puts an event of a later day into its slot.
    #[inline]
    fn file(&mut self, at: u64, event: T) {
        let day = at >> DAY;
        let level = (day ^ self.day).ilog2() / BITS;
        let wheel = &mut self.wheels[level as usize];
        let at_slot = (day >> (level * BITS)) as usize % SLOTS;
        if wheel.slots.is_empty() {
            wheel.slots.resize_with(SLOTS, || Slot { first: NEVER, events: Vec::new() });
        }
        let slot = &mut wheel.slots[at_slot];
        if slot.events.is_empty() {
            wheel.occupied[at_slot / 64] |= 1 << (at_slot % 64);
            wheel.words |= 1 << (at_slot / 64);
            if slot.events.capacity() == 0 {
                slot.events = self.spare.pop().unwrap_or_default();
            }
        }
        slot.first = slot.first.min(at);
        slot.events.push((at, event));
    }

    /// The time of the first event.
    #[inline]
    pub(crate) fn next(&self) -> Option<Picos> {
        (self.first != NEVER || !self.is_empty()).then_some(Picos(self.first))
    }

    /// Whether nothing is in.
    fn is_empty(&self) -> bool {
        self.done == self.order.len()
            && self.late.is_empty()
            && self.wheels.iter().all(|wheel| wheel.words == 0)
    }

    /// Whether a day begins with the first event, which is at `now` or before; then these are the events of that day, by place.
    #[inline]
    pub(crate) fn begins_day(&mut self, now: Picos) -> Option<&[(u64, T)]> {
        let is_over = self.done == self.order.len() && self.late.is_empty();
        if !is_over || self.first > now.0 {
            return None;
        }
        self.begin_day()?;
        Some(&self.today)
    }

    /// Takes the first event out if it is at `now` or before.
    #[inline]
    pub(crate) fn pop_until(&mut self, now: Picos) -> Option<(Picos, T)> {
        if self.first > now.0 {
            return None;
        }
        if self.done == self.order.len() && self.late.is_empty() {
            self.begin_day()?;
        }
        let late = self.late.peek().map_or(NEVER, |&Reverse(key)| key);
        let key = match self.order.get(self.done) {
            Some(&key) if key < late => {
                self.done += 1;
                key
            }
            _ => {
                self.late.pop();
                late
            }
        };
        let (at, event) = self.today[key as u32 as usize];
        self.first = self.first_time();
        Some((Picos(at), event))
    }

    /// The time of the first event, or [`NEVER`].
    #[inline]
    fn first_time(&self) -> u64 {
        let late = self.late.peek().map_or(NEVER, |&Reverse(key)| key);
        let key = self.order.get(self.done).map_or(late, |&key| key.min(late));
        if key != NEVER {
            return self.day << DAY | key >> 32;
        }
        match self.first_slot() {
            Some((wheel, slot)) => self.wheels[wheel].slots[slot].first,
            None => NEVER,
        }
    }

    /// The slot of the first event of a later day.
    #[inline]
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.wheels.iter().position(|wheel| wheel.words != 0)?;
        let wheel = &self.wheels[level];
        let word = wheel.words.trailing_zeros() as usize;
        Some((level, word * 64 + wheel.occupied[word].trailing_zeros() as usize))
    }

    /// Makes the day of the first event the present one, which was over.
    fn begin_day(&mut self) -> Option<()> {
        let (level, at) = self.first_slot()?;
        let wheel = &mut self.wheels[level];
        wheel.occupied[at / 64] &= !(1 << (at % 64));
        if wheel.occupied[at / 64] == 0 {
            wheel.words &= !(1 << (at / 64));
        }
        let slot = &mut wheel.slots[at];
        self.day = std::mem::replace(&mut slot.first, NEVER) >> DAY;
        let mut events = std::mem::take(&mut slot.events);
        self.today.clear();
        if level == 0 {
            std::mem::swap(&mut events, &mut self.today);
        } else {
            for &(at, event) in &events {
                match at >> DAY == self.day {
                    true => self.today.push((at, event)),
                    false => self.file(at, event),
                }
            }
            events.clear();
        }
        self.spare.push(events);
        self.done = 0;
        self.order.clear();
        let keys = (0u64..).zip(&self.today).map(|(place, &(at, _))| (at & ((1 << DAY) - 1)) << 32 | place);
        self.order.extend(keys);
        self.order.sort_unstable();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pop<T: Copy>(queue: &mut Queue<T>) -> Option<(Picos, T)> {
        queue.pop_until(Picos::MAX)
    }

    #[test]
    fn equal_times_come_out_in_order_of_entry() {
        let mut queue = Queue::<u64>::new();
        for n in 0..100u64 {
            queue.push(Picos(1000 + n % 3), n);
        }
        queue.push(Picos(5), 777);
        assert_eq!(pop(&mut queue), Some((Picos(5), 777)));
        queue.push(Picos(1000), 100);
        queue.push(Picos(5), 778);
        assert_eq!(pop(&mut queue), Some((Picos(5), 778)));
        let order: Vec<u64> = std::iter::from_fn(|| pop(&mut queue)).map(|(_, n)| n).collect();
        let class = |c: u64| (0..=100).filter(move |n| if *n == 100 { c == 0 } else { n % 3 == c });
        assert_eq!(order, class(0).chain(class(1)).chain(class(2)).collect::<Vec<_>>());
        assert_eq!((queue.next(), pop(&mut queue)), (None, None));
    }

    proptest! {
        /// Any mixture of pushes (some far ahead, up to the end of time) and pops is a stable sort.
        #[test]
        fn is_a_stable_sort(steps in prop::collection::vec(
            prop_oneof![
                (0u64..40).prop_map(Some), (0u64..1 << 20).prop_map(Some), (0u64..1 << 40).prop_map(Some),
                Just(Some(u64::MAX)), Just(None), Just(None)
            ], 0..400))
        {
            let (mut queue, mut heap) = (Queue::<usize>::new(), BinaryHeap::new());
            let mut now = 0u64;
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Some(ahead) => {
                        let at = now.saturating_add(ahead);
                        queue.push(Picos(at), n);
                        heap.push(Reverse((at, n)));
                    }
                    None => {
                        let expected = heap.pop().map(|Reverse((at, n))| (Picos(at), n));
                        prop_assert_eq!(queue.next(), expected.map(|(at, _)| at));
                        if let Some((at, _)) = expected && at.0 > 0 {
                            prop_assert_eq!(queue.pop_until(Picos(at.0 - 1)), None);
                        }
                        let popped = pop(&mut queue);
                        prop_assert_eq!(popped, expected);
                        now = expected.map_or(now, |(at, _)| at.0);
                    }
                }
            }
        }
    }
}

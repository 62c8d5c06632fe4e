//! The event queue: events by time, first in first out at equal times.
//!
//! A calendar with days of 2^[`DAY`] ps. Events of a later day are appended to its vector. When a day begins, its events are sorted
//! by 64-bit keys of time and position. An event for the current day goes to a binary heap of such keys. Days are slots of a
//! wheel with 2^[`BITS`] slots; a slot of each further wheel covers a whole turn of the wheel below, and its events move
//! down when it becomes current. So each event is written once or twice, with sequential memory access.
//!
//! Sources: R. Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation for the Simulation Event Set Problem",
//! Communications of the ACM 31 (1988); G. Varghese, A. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vef_format::units::Picos;

/// Length of a day, as a power of two of picoseconds.
const DAY: u32 = 17;
/// Slots of a wheel, as a power of two.
const BITS: u32 = 12;
const SLOTS: usize = 1 << BITS;
const WHEELS: usize = (u64::BITS - DAY).div_ceil(BITS) as usize;
/// The time of an empty queue or slot; an event may have it.
const NEVER: u64 = u64::MAX;

/// Events by time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// The current day: time >> DAY.
    day: u64,
    /// Events of the current day, in order of insertion.
    today: Vec<(u64, T)>,
    /// Sorted keys of those that the day began with; `done` of them are popped.
    order: Vec<u64>,
    done: usize,
    /// Keys of events pushed during the current day.
    late: BinaryHeap<Reverse<u64>>,
    wheels: [Wheel<T>; WHEELS],
    /// Vectors of past days, for reuse.
    spare: Vec<Vec<(u64, T)>>,
    /// The time of the first event, or [`NEVER`].
    first: u64,
}

#[derive(Debug)]
struct Wheel<T> {
    slots: Vec<Slot<T>>,
    /// Bitmap of the slots that hold events, and of its words that are not 0.
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

    /// Pushes an event, not earlier than the last one popped.
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

    /// The key of the next event of the current day: time within the day, then position.
    #[inline]
    fn key(&self, at: u64) -> u64 {
        (at & ((1 << DAY) - 1)) << 32 | self.today.len() as u64
    }

    /// Pushes an event of a later day to its slot.
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

    /// Whether the queue has no event.
    fn is_empty(&self) -> bool {
        self.done == self.order.len()
            && self.late.is_empty()
            && self.wheels.iter().all(|wheel| wheel.words == 0)
    }

    /// Begins a new day if the current one has no event left and the next event is due at `now`; returns the events of the new day.
    #[inline]
    pub(crate) fn begins_day(&mut self, now: Picos) -> Option<&[(u64, T)]> {
        let is_over = self.done == self.order.len() && self.late.is_empty();
        if !is_over || self.first > now.0 {
            return None;
        }
        self.begin_day()?;
        Some(&self.today)
    }

    /// Pops the first event if it is due at `now`.
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

    /// The wheel and slot of the first event of a later day.
    #[inline]
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.wheels.iter().position(|wheel| wheel.words != 0)?;
        let wheel = &self.wheels[level];
        let word = wheel.words.trailing_zeros() as usize;
        Some((level, word * 64 + wheel.occupied[word].trailing_zeros() as usize))
    }

    /// Makes the day of the first event current; the current day must have no event left.
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

//! A queue of events by time; first in, first out at equal times.
//!
//! A calendar with days of 2^[`DAY`] ps. An event of a later day is appended to the vector of that day. When a day begins, its
//! events are sorted by 64-bit keys of time and position. An event for the rest of the current day goes to a binary heap of
//! such keys, one for the present moment to the end of a list. Days are slots of a wheel with 2^[`BITS`] slots; a slot of each
//! further wheel covers a whole turn of the wheel below, and its events move down when it becomes current. So each event is
//! written once or twice, with sequential memory access.
//!
//! Sources: R. Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation for the Simulation Event Set Problem",
//! Communications of the ACM 31 (1988); G. Varghese, A. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use vef_format::units::Picos;

/// Length of a day, as a power of two of picoseconds.
const DAY: u32 = 17;
/// Slots of a wheel, as a power of two.
const BITS: u32 = 12;
const SLOTS: usize = 1 << BITS;
const WHEELS: usize = (u64::BITS - DAY).div_ceil(BITS) as usize;
/// The time of an empty queue or slot, which an event may have too; the key of no event.
const NEVER: u64 = u64::MAX;

/// Events by time; first in, first out at equal times.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    length: usize,
    /// The time of the first event, or [`NEVER`].
    first: u64,
    /// The time of the last event popped, or of the first of a day that has begun.
    present: u64,
    /// Events pushed for the present moment: behind all others of that moment.
    now: VecDeque<T>,
    /// The current day: time >> DAY.
    day: u64,
    /// Events of the current day, in order of insertion.
    today: Vec<(Picos, T)>,
    /// Sorted keys of those that the day began with; `done` of them are popped.
    order: Vec<u64>,
    done: usize,
    /// Keys of events pushed during the current day.
    late: BinaryHeap<Reverse<u64>>,
    /// The first key of the two, or [`NEVER`].
    next_key: u64,
    wheels: [Wheel<T>; WHEELS],
    /// Vectors of past days, for reuse.
    spare: Vec<Vec<(Picos, T)>>,
}

#[derive(Clone, Debug)]
struct Wheel<T> {
    slots: Vec<Slot<T>>,
    /// Bitmap of the slots that hold events, and of its words that are not 0.
    occupied: [u64; SLOTS / 64],
    words: u64,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    /// The earliest time in `events`.
    first: u64,
    events: Vec<(Picos, T)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let wheel = || Wheel { slots: Vec::new(), occupied: [0; SLOTS / 64], words: 0 };
        Self {
            length: 0,
            first: NEVER,
            present: 0,
            now: VecDeque::new(),
            day: 0,
            today: Vec::new(),
            order: Vec::new(),
            done: 0,
            late: BinaryHeap::new(),
            next_key: NEVER,
            wheels: std::array::from_fn(|_| wheel()),
            spare: Vec::new(),
        }
    }
}

impl<T: Copy> FromIterator<(Picos, T)> for Queue<T> {
    fn from_iter<I: IntoIterator<Item = (Picos, T)>>(events: I) -> Self {
        let mut queue = Self::new();
        events.into_iter().for_each(|(at, event)| queue.push(at, event));
        queue
    }
}

impl<T: Copy> Queue<T> {
    /// All events, in the order in which they are popped.
    pub fn to_vec(&self) -> Vec<(Picos, T)> {
        let mut queue = self.clone();
        std::iter::from_fn(|| queue.pop(Picos::MAX)).collect()
    }

    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pushes an event, not earlier than the last one popped.
    #[inline(always)]
    pub fn push(&mut self, at: Picos, event: T) {
        self.length += 1;
        self.first = self.first.min(at.0);
        if at.0 <= self.present {
            self.now.push_back(event);
        } else if at.0 >> DAY == self.day {
            let key = key(at, self.today.len());
            self.today.push((at, event));
            self.late.push(Reverse(key));
            self.next_key = self.next_key.min(key);
        } else {
            self.file(at, event);
        }
    }

    /// Pushes an event of a later day to its slot.
    #[inline(always)]
    fn file(&mut self, at: Picos, event: T) {
        let differs = at.0 >> DAY ^ self.day;
        match differs < SLOTS as u64 {
            true => self.file_in(0, at, event),
            false => self.file_far(differs.ilog2() / BITS, at, event),
        }
    }

    /// Few events are so far away; without them, what the compiler inlines at each push is short.
    #[inline(never)]
    fn file_far(&mut self, level: u32, at: Picos, event: T) {
        self.file_in(level, at, event);
    }

    #[inline(always)]
    fn file_in(&mut self, level: u32, at: Picos, event: T) {
        let wheel = &mut self.wheels[level as usize];
        let at_slot = (at.0 >> (DAY + level * BITS)) as usize % SLOTS;
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
        slot.first = slot.first.min(at.0);
        slot.events.push((at, event));
    }

    /// The time of the first event.
    #[inline]
    pub fn next(&self) -> Option<Picos> {
        (self.length > 0).then_some(Picos(self.first))
    }

    /// Whether the queue has no event.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// If the first event is due at `until` and begins a new day: the events of that day, so that the caller can load what they
    /// need into the cache before it pops them. From then on no event may be pushed that is earlier than the first of these.
    #[inline]
    pub fn begin_day(&mut self, until: Picos) -> Option<&[(Picos, T)]> {
        if self.first > until.0 || self.next_key != NEVER || !self.now.is_empty() {
            return None;
        }
        self.turn()?;
        Some(&self.today)
    }

    /// Pops the first event if it is due at `until`.
    #[inline]
    pub fn pop(&mut self, until: Picos) -> Option<(Picos, T)> {
        if self.first > until.0 {
            return None;
        }
        if !self.now.is_empty() && self.next_key >> 32 > offset(self.present) {
            return self.pop_now();
        }
        if self.next_key == NEVER {
            self.turn()?;
        }
        let key = self.next_key;
        if self.order.get(self.done) == Some(&key) {
            self.done += 1;
        } else {
            self.late.pop();
        }
        self.length -= 1;
        let late = self.late.peek().map_or(NEVER, |&Reverse(key)| key);
        self.next_key = self.order.get(self.done).map_or(late, |&key| key.min(late));
        let (at, event) = self.today[key as u32 as usize];
        self.present = at.0;
        if self.now.is_empty() {
            self.first = self.first_time();
        }
        Some((at, event))
    }

    /// Pops the first of the events that were pushed for the present moment.
    #[inline]
    fn pop_now(&mut self) -> Option<(Picos, T)> {
        let event = self.now.pop_front()?;
        self.length -= 1;
        if self.now.is_empty() {
            self.first = self.first_time();
        }
        Some((Picos(self.present), event))
    }

    /// The time of the first event that is not in [`Queue::now`], or [`NEVER`].
    #[inline]
    fn first_time(&self) -> u64 {
        if self.next_key != NEVER {
            return self.day << DAY | self.next_key >> 32;
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
    fn turn(&mut self) -> Option<()> {
        let (level, at) = self.first_slot()?;
        let wheel = &mut self.wheels[level];
        wheel.occupied[at / 64] &= !(1 << (at % 64));
        if wheel.occupied[at / 64] == 0 {
            wheel.words &= !(1 << (at / 64));
        }
        let slot = &mut wheel.slots[at];
        self.present = std::mem::replace(&mut slot.first, NEVER);
        self.day = self.present >> DAY;
        let mut events = std::mem::take(&mut slot.events);
        self.today.clear();
        if level == 0 {
            std::mem::swap(&mut events, &mut self.today);
        } else {
            for &(at, event) in &events {
                match at.0 >> DAY == self.day {
                    true => self.today.push((at, event)),
                    false => self.file(at, event),
                }
            }
            events.clear();
        }
        self.spare.push(events);
        self.done = 0;
        self.order.clear();
        self.order.extend(self.today.iter().enumerate().map(|(position, &(at, _))| key(at, position)));
        self.order.sort_unstable();
        self.next_key = *self.order.first()?;
        Some(())
    }
}

/// The key of an event of the current day: time within the day, then position.
#[inline]
fn key(at: Picos, position: usize) -> u64 {
    offset(at.0) << 32 | position as u64
}

/// A time within its day.
#[inline]
fn offset(time: u64) -> u64 {
    time & ((1 << DAY) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any mixture of pushes (some far ahead, up to the end of time) and pops is a stable sort.
        #[test]
        fn is_a_stable_sort(steps in prop::collection::vec(
            prop_oneof![
                (0u64..40).prop_map(Some), (0u64..1 << 20).prop_map(Some), (0u64..1 << 40).prop_map(Some),
                Just(Some(0)), Just(Some(u64::MAX)), Just(None), Just(None)
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
                        prop_assert_eq!(queue.is_empty(), expected.is_none());
                        if let Some((at, _)) = expected && at.0 > 0 {
                            prop_assert_eq!(queue.pop(Picos(at.0 - 1)), None);
                        }
                        if n % 3 == 0 && let Some(day) = queue.begin_day(Picos::MAX) {
                            let first = day.iter().min_by_key(|(at, _)| *at);
                            prop_assert_eq!(first.map(|(at, _)| *at), expected.map(|(at, _)| at));
                        }
                        prop_assert_eq!(queue.pop(Picos::MAX), expected);
                        now = expected.map_or(now, |(at, _)| at.0);
                    }
                }
            }
        }
    }

    #[test]
    fn equal_times_come_out_in_order_of_entry() {
        let mut queue = Queue::<u64>::new();
        for n in 0..100u64 {
            queue.push(Picos(1000 + n % 3), n);
        }
        queue.push(Picos(5), 777);
        assert_eq!(queue.pop(Picos::MAX), Some((Picos(5), 777)));
        queue.push(Picos(1000), 100);
        queue.push(Picos(5), 778);
        assert_eq!(queue.pop(Picos::MAX), Some((Picos(5), 778)));
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop(Picos::MAX)).map(|(_, n)| n).collect();
        let class = |c: u64| (0..=100).filter(move |n| if *n == 100 { c == 0 } else { n % 3 == c });
        assert_eq!(order, class(0).chain(class(1)).chain(class(2)).collect::<Vec<_>>());
        assert_eq!((queue.next(), queue.pop(Picos::MAX)), (None, None));
    }
}

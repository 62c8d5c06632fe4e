//! A queue of events by time; at equal times first in, first out, or by an order of theirs.
//!
//! A calendar with days of 2^[`DAY`] ps. An event of a later day is appended to the vector of that day. When a day begins, its
//! events are sorted by keys of time, order and position. An event for the rest of the current day goes to a binary heap of
//! such keys when the next one is popped; without an order, one for the present moment goes to the end of a list. Days are
//! slots of a wheel with 2^[`BITS`] slots; a slot of each further wheel covers a whole turn of the wheel below, and its events move down when it becomes current. So each event is
//! written once or twice, with sequential memory access.
//!
//! Sources: R. Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation for the Simulation Event Set Problem",
//! Communications of the ACM 31 (1988); G. Varghese, A. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Debug;
use std::marker::PhantomData;
use vef_format::units::Picos;

/// Length of a day, as a power of two of picoseconds.
const DAY: u32 = 17;
/// Slots of a wheel, as a power of two.
const BITS: u32 = 12;
const SLOTS: usize = 1 << BITS;
const WHEELS: usize = (u64::BITS - DAY).div_ceil(BITS) as usize;
/// The time of an empty queue or slot, which an event may have too.
const NEVER: u64 = u64::MAX;

/// The order of events of one moment: a number of each, which does not change while it waits.
pub trait Order<T> {
    /// Sorts the events of a day: time within the day, number, position (32 bits).
    type Key: Copy + Debug + Ord;
    /// The key of no event, behind all others.
    const NONE: Self::Key;
    /// Whether an event that is pushed for the present moment comes behind all others of that moment.
    const IN_TURN: bool;
    /// What knows the numbers.
    type Numbers;

    /// The key of an event at that place of its day.
    fn key(numbers: &Self::Numbers, offset: u64, event: T, position: usize) -> Self::Key;

    /// The time within the day.
    fn offset(key: Self::Key) -> u64;

    /// The place of the event.
    fn position(key: Self::Key) -> usize;
}

/// First in, first out.
#[derive(Clone, Copy, Debug)]
pub struct InTurn;

impl<T> Order<T> for InTurn {
    type Key = u64;
    const NONE: u64 = u64::MAX;
    const IN_TURN: bool = true;
    type Numbers = ();

    #[inline(always)]
    fn key((): &(), offset: u64, _: T, position: usize) -> u64 {
        offset << 32 | position as u64
    }

    #[inline(always)]
    fn offset(key: u64) -> u64 {
        key >> 32
    }

    #[inline(always)]
    fn position(key: u64) -> usize {
        key as u32 as usize
    }
}

/// By a number; first in, first out at equal numbers.
#[derive(Debug)]
pub(crate) struct Numbered<N>(PhantomData<N>);

impl<N> Clone for Numbered<N> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

/// What knows the numbers of events.
pub(crate) trait Numbers<T> {
    /// The number of an event.
    fn number(&self, event: T) -> u64;
}

impl<T, N: Numbers<T>> Order<T> for Numbered<N> {
    type Key = u128;
    const NONE: u128 = u128::MAX;
    const IN_TURN: bool = false;
    type Numbers = N;

    #[inline(always)]
    fn key(numbers: &N, offset: u64, event: T, position: usize) -> u128 {
        u128::from(offset) << 96 | u128::from(numbers.number(event)) << 32 | position as u128
    }

    #[inline(always)]
    fn offset(key: u128) -> u64 {
        (key >> 96) as u64
    }

    #[inline(always)]
    fn position(key: u128) -> usize {
        key as u32 as usize
    }
}

/// Events by time; at equal times first in, first out, unless there is another order.
#[derive(Clone, Debug)]
pub struct Queue<T, O: Order<T> = InTurn> {
    length: usize,
    /// The time of the first event, or [`NEVER`].
    first: u64,
    /// The time of the last event popped, or of the first of a day that has begun.
    present: u64,
    /// Events pushed for the present moment, if they come behind all others of that moment.
    now: VecDeque<T>,
    /// The current day: time >> DAY.
    day: u64,
    /// Events of the current day, in order of insertion.
    today: Vec<(Picos, T)>,
    /// Sorted keys of those that the day began with; `done` of them are popped.
    order: Vec<O::Key>,
    done: usize,
    /// So many of `today` have keys.
    keyed: usize,
    /// Keys of events pushed during the current day.
    late: BinaryHeap<Reverse<O::Key>>,
    /// The first key of the two, or [`Order::NONE`].
    next_key: O::Key,
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

impl<T, O: Order<T>> Default for Queue<T, O> {
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
            keyed: 0,
            late: BinaryHeap::new(),
            next_key: O::NONE,
            wheels: std::array::from_fn(|_| wheel()),
            spare: Vec::new(),
        }
    }
}

impl<T: Copy, O: Order<T>> FromIterator<(Picos, T)> for Queue<T, O> {
    fn from_iter<I: IntoIterator<Item = (Picos, T)>>(events: I) -> Self {
        let mut queue = Self::default();
        events.into_iter().for_each(|(at, event)| queue.push(at, event));
        queue
    }
}

impl<T> Queue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Copy> Queue<T> {
    /// All events, in the order in which they are popped.
    pub fn to_vec(&self) -> Vec<(Picos, T)> {
        self.to_vec_by(&())
    }

    /// If the first event is due at `until` and begins a new day: the events of that day, so that the caller can load what they
    /// need into the cache before it pops them. From then on no event may be pushed that is earlier than the first of these.
    #[inline]
    pub fn begin_day(&mut self, until: Picos) -> Option<&[(Picos, T)]> {
        self.key_late(&());
        if self.first > until.0 || self.next_key != u64::MAX || !self.now.is_empty() {
            return None;
        }
        self.turn(&())?;
        Some(&self.today)
    }

    /// Pops the first event if it is due at `until`.
    #[inline]
    pub fn pop(&mut self, until: Picos) -> Option<(Picos, T)> {
        self.pop_by(until, &())
    }
}

impl<T: Copy, O: Order<T>> Queue<T, O> {
    /// All events, in the order in which they are popped.
    pub(crate) fn to_vec_by(&self, numbers: &O::Numbers) -> Vec<(Picos, T)>
    where
        O: Clone,
    {
        let mut queue = self.clone();
        std::iter::from_fn(|| queue.pop_by(Picos::MAX, numbers)).collect()
    }

    /// Pushes an event, not earlier than the last one popped.
    #[inline(always)]
    pub fn push(&mut self, at: Picos, event: T) {
        self.length += 1;
        self.first = self.first.min(at.0);
        if O::IN_TURN && at.0 <= self.present {
            self.now.push_back(event);
        } else if at.0 >> DAY == self.day {
            self.today.push((at, event));
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

    /// Pops the first event if it is due at `until`; `numbers` are the same at each call.
    #[inline(always)]
    pub(crate) fn pop_by(&mut self, until: Picos, numbers: &O::Numbers) -> Option<(Picos, T)> {
        if self.first > until.0 {
            return None;
        }
        self.key_late(numbers);
        if O::IN_TURN && !self.now.is_empty() && O::offset(self.next_key) > offset(self.present) {
            return self.pop_now();
        }
        if self.next_key == O::NONE {
            self.turn(numbers)?;
        }
        let key = self.next_key;
        match self.late.peek() == Some(&Reverse(key)) {
            true => drop(self.late.pop()),
            false => self.done += 1,
        }
        self.length -= 1;
        let late = self.late.peek().map_or(O::NONE, |&Reverse(key)| key);
        self.next_key = self.order.get(self.done).map_or(late, |&key| key.min(late));
        let (at, event) = self.today[O::position(key)];
        self.present = at.0;
        if !O::IN_TURN || self.now.is_empty() {
            self.first = self.first_time();
        }
        Some((at, event))
    }

    /// Makes keys of the events that were pushed during the current day.
    #[inline(always)]
    fn key_late(&mut self, numbers: &O::Numbers) {
        while let Some(&(at, event)) = self.today.get(self.keyed) {
            let key = O::key(numbers, offset(at.0), event, self.keyed);
            self.keyed += 1;
            self.late.push(Reverse(key));
            self.next_key = self.next_key.min(key);
        }
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
        if self.next_key != O::NONE {
            return self.day << DAY | O::offset(self.next_key);
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
    fn turn(&mut self, numbers: &O::Numbers) -> Option<()> {
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
        let events = self.today.iter().enumerate();
        self.order.extend(events.map(|(at, &(time, event))| O::key(numbers, offset(time.0), event, at)));
        self.keyed = self.today.len();
        self.order.sort_unstable();
        self.next_key = *self.order.first()?;
        Some(())
    }
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

    impl Numbers<usize> for Vec<u64> {
        fn number(&self, event: usize) -> u64 {
            self[event]
        }
    }

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

    proptest! {
        /// The same by time and number, also of events that are pushed for the present moment.
        #[test]
        fn is_a_stable_sort_by_number(steps in prop::collection::vec(
            (prop_oneof![Just(Some(0u64)), (0u64..3).prop_map(Some), (0u64..1 << 20).prop_map(Some), Just(None)], 0u64..4), 0..400))
        {
            let numbers: Vec<u64> = steps.iter().map(|&(_, number)| number).collect();
            let (mut queue, mut heap) = (Queue::<usize, Numbered<Vec<u64>>>::default(), BinaryHeap::new());
            let mut now = 0u64;
            for (n, (step, number)) in steps.into_iter().enumerate() {
                match step {
                    Some(ahead) => {
                        queue.push(Picos(now + ahead), n);
                        heap.push(Reverse((now + ahead, number, n)));
                    }
                    None => {
                        let expected = heap.pop().map(|Reverse((at, _, n))| (Picos(at), n));
                        prop_assert_eq!(queue.next(), expected.map(|(at, _)| at));
                        prop_assert_eq!(queue.pop_by(Picos::MAX, &numbers), expected);
                        now = expected.map_or(now, |(at, _)| at.0);
                    }
                }
            }
            let rest = std::iter::from_fn(|| heap.pop()).map(|Reverse((at, _, n))| (Picos(at), n));
            prop_assert_eq!(queue.to_vec_by(&numbers), rest.collect::<Vec<_>>());
        }
    }

    #[test]
    fn times_of_two_bits_come_out_in_order() {
        // Pairs of all distances, so that each wheel has slots with several days, and each slot of a turn an event a turn later.
        let mut times: Vec<u64> =
            (0..u64::BITS).flat_map(|a| (0..=a).map(move |b| 1 << a | 1 << b)).collect();
        times.sort_unstable();
        let mut queue = Queue::<u64>::new();
        for &time in times.iter().rev() {
            queue.push(Picos(time), time);
        }
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop(Picos::MAX)).collect();
        assert_eq!(popped, times.iter().map(|&time| (Picos(time), time)).collect::<Vec<_>>());
    }

    #[test]
    fn a_day_begins_once_when_its_first_event_is_due() {
        let [at, next, late] = [Picos(1 << 20), Picos((1 << 20) + 1), Picos(1 << 30)];
        let mut queue = Queue::new();
        for (at, event) in [(late, 'c'), (next, 'b'), (at, 'a')] {
            queue.push(at, event);
        }
        assert_eq!(queue.begin_day(Picos(at.0 - 1)), None);
        let mut day = queue.begin_day(at).unwrap().to_vec();
        day.sort_unstable();
        assert_eq!(day, [(at, 'a'), (next, 'b')]);
        assert_eq!(queue.begin_day(late), None);
        assert_eq!(queue.pop(at), Some((at, 'a')));
        assert_eq!(queue.pop(at), None);
        assert_eq!(queue.begin_day(Picos::MAX), None);
        assert_eq!(queue.pop(next), Some((next, 'b')));
        assert_eq!(queue.begin_day(next), None);
        assert_eq!(queue.begin_day(late), Some(&[(late, 'c')][..]));
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

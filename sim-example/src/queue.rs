//! The event queue: events by time, first in, first out where nothing else decides.
//!
//! A simulation never schedules into its past, and much of what it schedules comes a constant time later: a byte that
//! crosses a link, a packet of the usual size, a credit on its way back. Such events are pushed in the order in which they are
//! to come out. They go to a *lane*, a ring in which no entry is earlier than the one before it; the caller names the lane that is likely to fit. What does not fit
//! goes to a radix heap: an entry lies in the bucket of the highest bit in which its time differs from the last time
//! taken out; only when the buckets below are empty is a bucket spread over those. An entry moves at most 64 times, in practice a
//! handful of times, always sequentially through memory.
//!
//! At equal times the lanes come in the order of their numbers, then the heap; entries of one lane, or of the heap, in the order
//! in which they were put in.
//!
//! Source: R. K. Ahuja, K. Mehlhorn, J. B. Orlin, R. E. Tarjan, "Faster Algorithms for the Shortest Path
//! Problem", Journal of the ACM 37 (1990), one-level radix heap.

use std::collections::VecDeque;

use vef_format::units::Picos;

/// No entry: the end of time, at which nothing can happen any more.
const NEVER: u64 = u64::MAX;

/// Events by time, with so many lanes.
#[derive(Debug)]
pub(crate) struct Queue<T, const LANES: usize> {
    /// The time of the first entry of each lane; [`NEVER`] of an empty one.
    heads: [u64; LANES],
    /// The time of the last entry of each lane, also when it is empty.
    tails: [u64; LANES],
    lanes: [VecDeque<(u64, T)>; LANES],
    /// The least of `heads`, and its lane: asked for several times an event.
    first: (u64, usize),
    heap: RadixHeap<T>,
}

impl<T: Copy, const LANES: usize> Queue<T, LANES> {
    pub(crate) fn new() -> Self {
        Self {
            heads: [NEVER; LANES],
            tails: [0; LANES],
            lanes: std::array::from_fn(|_| VecDeque::new()),
            first: (NEVER, LANES),
            heap: RadixHeap::new(),
        }
    }

    /// Puts an event in that is not before the last one taken out, in `lane` if it fits there.
    #[inline]
    pub(crate) fn push(&mut self, lane: usize, at: Picos, event: T) {
        if at.0 < self.tails[lane] || at.0 == NEVER {
            return self.heap.push(at.0, event);
        }
        self.tails[lane] = at.0;
        if self.heads[lane] == NEVER {
            self.heads[lane] = at.0;
            self.first = self.first.min((at.0, lane));
        }
        self.lanes[lane].push_back((at.0, event));
    }

    /// Puts an event in that comes at any time.
    #[inline]
    pub(crate) fn push_any(&mut self, at: Picos, event: T) {
        self.heap.push(at.0, event);
    }

    /// The time of the first event.
    #[inline]
    pub(crate) fn next(&self) -> Option<Picos> {
        let (lane, _) = self.first;
        match self.heap.next() {
            Some(at) => Some(Picos(at.min(lane))),
            None => (lane != NEVER).then_some(Picos(lane)),
        }
    }

    /// Takes the first event out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Picos, T)> {
        let (first, lane) = self.first;
        if lane == LANES || self.heap.next().is_some_and(|at| at < first) {
            return self.heap.pop().map(|(at, event)| (Picos(at), event));
        }
        let (at, event) = self.lanes[lane].pop_front()?;
        self.heads[lane] = self.lanes[lane].front().map_or(NEVER, |&(at, _)| at);
        self.first = (NEVER, LANES);
        for (lane, &head) in self.heads.iter().enumerate() {
            if head < self.first.0 {
                self.first = (head, lane);
            }
        }
        Some((Picos(at), event))
    }

    /// Takes the first event out if it is at `now` or before.
    #[inline]
    pub(crate) fn pop_until(&mut self, now: Picos) -> Option<(Picos, T)> {
        if self.next()? > now {
            return None;
        }
        self.pop()
    }
}

/// Bucket 0 holds the entries of the present, bucket `b` those that differ from it first in bit `b − 1`.
const BUCKETS: usize = 65;

#[derive(Debug)]
struct RadixHeap<T> {
    /// The time of the last bucket that was spread; no entry is earlier.
    last: u64,
    buckets: [Bucket<T>; BUCKETS],
    /// Bit `b − 1` says that bucket `b` holds something.
    occupied: u64,
    /// Entries of bucket 0 that were taken out.
    taken: usize,
}

#[derive(Debug)]
struct Bucket<T> {
    /// The earliest time in `entries`, if there is one.
    min: u64,
    entries: Vec<(u64, T)>,
}

impl<T> Bucket<T> {
    #[inline]
    fn push(&mut self, at: u64, event: T) {
        self.min = self.min.min(at);
        self.entries.push((at, event));
    }
}

impl<T: Copy> RadixHeap<T> {
    fn new() -> Self {
        Self {
            last: 0,
            buckets: std::array::from_fn(|_| Bucket { min: u64::MAX, entries: Vec::new() }),
            occupied: 0,
            taken: 0,
        }
    }

    #[inline]
    fn push(&mut self, at: u64, event: T) {
        debug_assert!(at >= self.last, "an event before the present");
        let bucket = if at <= self.last { 0 } else { (64 - (at ^ self.last).leading_zeros()) as usize };
        if bucket > 0 {
            self.occupied |= 1 << (bucket - 1);
        }
        self.buckets[bucket].push(at, event);
    }

    #[inline]
    fn next(&self) -> Option<u64> {
        if let Some(&(at, _)) = self.buckets[0].entries.get(self.taken) {
            return Some(at);
        }
        (self.occupied != 0).then(|| self.buckets[self.first_occupied()].min)
    }

    #[inline]
    fn pop(&mut self) -> Option<(u64, T)> {
        if self.taken == self.buckets[0].entries.len() {
            self.spread()?;
        }
        let &entry = self.buckets[0].entries.get(self.taken)?;
        self.taken += 1;
        Some(entry)
    }

    #[inline]
    fn first_occupied(&self) -> usize {
        self.occupied.trailing_zeros() as usize + 1
    }

    /// Makes the earliest time the present and spreads its bucket over the lower ones, all empty.
    fn spread(&mut self) -> Option<()> {
        self.buckets[0].entries.clear();
        self.taken = 0;
        if self.occupied == 0 {
            return None;
        }
        let first = self.first_occupied();
        self.occupied &= self.occupied - 1;
        let bucket = &mut self.buckets[first];
        let mut entries = std::mem::take(&mut bucket.entries);
        self.last = std::mem::replace(&mut bucket.min, u64::MAX);
        for &(at, event) in &entries {
            self.push(at, event);
        }
        entries.clear();
        // The memory goes back to its bucket for the next time.
        self.buckets[first].entries = entries;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn equal_times_come_out_in_order_of_entry() {
        let mut queue = Queue::<u64, 1>::new();
        for n in 0..100u64 {
            queue.push_any(Picos(1000 + n % 3), n);
        }
        queue.push_any(Picos(5), 777);
        assert_eq!(queue.pop(), Some((Picos(5), 777)));
        queue.push_any(Picos(1000), 100);
        queue.push_any(Picos(5), 778);
        assert_eq!(queue.pop(), Some((Picos(5), 778)));
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(_, n)| n).collect();
        let class = |c: u64| (0..=100).filter(move |n| if *n == 100 { c == 0 } else { n % 3 == c });
        assert_eq!(order, class(0).chain(class(1)).chain(class(2)).collect::<Vec<_>>());
        assert_eq!((queue.next(), queue.pop()), (None, None));
    }

    #[test]
    fn lanes_come_in_their_order_and_before_the_heap() {
        let mut queue = Queue::<&str, 2>::new();
        queue.push_any(Picos(7), "heap");
        queue.push(1, Picos(7), "lane 1");
        queue.push(0, Picos(7), "lane 0");
        queue.push(0, Picos(7), "lane 0 again");
        queue.push(0, Picos(6), "too early for its lane");
        assert_eq!(queue.pop_until(Picos(5)), None);
        let order: Vec<&str> = std::iter::from_fn(|| queue.pop_until(Picos(7))).map(|(_, n)| n).collect();
        assert_eq!(order, ["too early for its lane", "lane 0", "lane 0 again", "lane 1", "heap"]);
    }

    proptest! {
        /// Any mixture of pushes (some far ahead, up to the end of time) and pops gives the times of a heap, and every event once;
        /// without lanes it is a stable sort.
        #[test]
        fn like_a_comparison_heap(steps in prop::collection::vec(
            prop_oneof![
                (0u64..40).prop_map(Some), (0u64..1 << 40).prop_map(Some), Just(Some(u64::MAX)), Just(None), Just(None)
            ], 0..400), lanes: bool)
        {
            let (mut queue, mut heap) = (Queue::<usize, 3>::new(), BinaryHeap::new());
            let mut now = 0u64;
            let mut times = Vec::new();
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Some(ahead) => {
                        let at = now.saturating_add(ahead);
                        match lanes {
                            true => queue.push(n % 3, Picos(at), n),
                            false => queue.push_any(Picos(at), n),
                        }
                        heap.push(Reverse((at, n)));
                        times.push(at);
                    }
                    None => {
                        times.push(0);
                        let expected = heap.pop().map(|Reverse((at, n))| (Picos(at), n));
                        prop_assert_eq!(queue.next(), expected.map(|(at, _)| at));
                        let popped = queue.pop();
                        match lanes {
                            true => prop_assert_eq!(popped.map(|(at, _)| at), expected.map(|(at, _)| at)),
                            false => prop_assert_eq!(popped, expected),
                        }
                        if let Some((at, n)) = popped {
                            // Not taken out twice.
                            prop_assert_eq!(std::mem::replace(&mut times[n], u64::MAX - 1), at.0);
                        }
                        now = expected.map_or(now, |(at, _)| at.0);
                    }
                }
            }
        }
    }
}

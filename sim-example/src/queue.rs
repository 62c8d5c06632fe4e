//! The event queue: a radix heap over integer time.
//!
//! A simulation never schedules into its past, so keys that are put in are never smaller than the last one
//! taken out. That allows buckets instead of a comparison heap: an entry lies in the bucket of the highest
//! bit in which its time differs from the last time taken out; only when the buckets below are empty is a
//! bucket spread over those. An entry moves at most 64 times and in practice a handful of times, always
//! sequentially through memory.
//!
//! Entries of equal time are always in the same bucket and keep their order when it is spread, so they
//! come out in the order in which they were put in: the queue is deterministic without sequence numbers.
//!
//! Source: R. K. Ahuja, K. Mehlhorn, J. B. Orlin, R. E. Tarjan, "Faster Algorithms for the Shortest Path
//! Problem", Journal of the ACM 37 (1990), one-level radix heap.

use vef_format::units::Picos;

/// Bucket 0 holds the entries of the present, bucket `b` those that differ from it first in bit `b − 1`.
const BUCKETS: usize = 65;

/// Events by time; first in, first out at equal times.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// The time of the last entry taken out; no entry is earlier.
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

impl<T: Copy> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            last: 0,
            buckets: std::array::from_fn(|_| Bucket { min: u64::MAX, entries: Vec::new() }),
            occupied: 0,
            taken: 0,
        }
    }

    /// Puts an event in. One before the last event taken out (never the case in a right simulation) comes
    /// out at once, with its own time.
    #[inline]
    pub(crate) fn push(&mut self, at: Picos, event: T) {
        let at = at.0;
        debug_assert!(at >= self.last, "an event before the present");
        let bucket = if at <= self.last { 0 } else { (64 - (at ^ self.last).leading_zeros()) as usize };
        if bucket > 0 {
            self.occupied |= 1 << (bucket - 1);
        }
        self.buckets[bucket].push(at, event);
    }

    /// The time of the first event.
    #[inline]
    pub(crate) fn next(&self) -> Option<Picos> {
        if let Some(&(at, _)) = self.buckets[0].entries.get(self.taken) {
            return Some(Picos(at));
        }
        (self.occupied != 0).then(|| Picos(self.buckets[self.first_occupied()].min))
    }

    /// Takes the first event out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Picos, T)> {
        if self.taken == self.buckets[0].entries.len() {
            self.spread()?;
        }
        let &(at, event) = self.buckets[0].entries.get(self.taken)?;
        self.taken += 1;
        Some((Picos(at), event))
    }

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
            self.push(Picos(at), event);
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
        let mut queue = Queue::new();
        for n in 0..100u64 {
            queue.push(Picos(1000 + n % 3), n);
        }
        queue.push(Picos(5), 777);
        assert_eq!(queue.pop(), Some((Picos(5), 777)));
        queue.push(Picos(1000), 100);
        queue.push(Picos(5), 778);
        assert_eq!(queue.pop(), Some((Picos(5), 778)));
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(_, n)| n).collect();
        let class = |c: u64| (0..=100).filter(move |n| if *n == 100 { c == 0 } else { n % 3 == c });
        assert_eq!(order, class(0).chain(class(1)).chain(class(2)).collect::<Vec<_>>());
        assert_eq!((queue.next(), queue.pop()), (None, None));
    }

    proptest! {
        /// Any mixture of pushes (some far ahead, up to the end of time) and pops equals a stable sort.
        #[test]
        fn like_a_comparison_heap(steps in prop::collection::vec(
            prop_oneof![
                (0u64..40).prop_map(Some), (0u64..1 << 40).prop_map(Some), Just(Some(u64::MAX)), Just(None), Just(None)
            ], 0..400))
        {
            let (mut queue, mut heap) = (Queue::new(), BinaryHeap::new());
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
                        prop_assert_eq!(queue.pop(), expected);
                        now = expected.map_or(now, |(at, _)| at.0);
                    }
                }
            }
        }
    }
}

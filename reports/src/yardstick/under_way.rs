//! The exact number of messages in flight, all ranks together. Memory depends on that number, not on the trace's length.

use super::bins::{self, Lane, Width};
use replay::{Picos, Queue};

/// A change of the number in flight.
#[derive(Clone, Copy)]
enum Change {
    Starts,
    Arrives,
    /// A message without duration: in flight at the moment of its start only.
    Passes,
}

/// Messages in flight. A message that arrives at the moment when another starts is no longer in flight then.
pub(super) struct UnderWay {
    changes: Queue<Change>,
    /// The last moment up to which changes were counted, and the number in flight since.
    last: Picos,
    count: u64,
    /// The maximum of each bin.
    most: Lane,
}

impl UnderWay {
    pub(super) fn new() -> Self {
        Self { changes: Queue::new(), last: Picos::ZERO, count: 0, most: bins::lane() }
    }

    /// A message starts.
    #[inline]
    pub(super) fn add(&mut self, start: Picos, arrives: Picos) {
        if start == arrives {
            self.changes.push(start, Change::Passes);
            return;
        }
        self.changes.push(start, Change::Starts);
        self.changes.push(arrives, Change::Arrives);
    }

    /// Counts all changes before `now`: no further message starts before.
    #[inline]
    pub(super) fn reached(&mut self, now: Picos, width: Width) {
        while let Some(moment) = self.changes.next().filter(|&moment| moment < now) {
            let (mut starting, mut passing) = (0, 0);
            self.hold(moment, width);
            while let Some((_, change)) = self.changes.pop(moment) {
                match change {
                    Change::Starts => starting += 1,
                    Change::Arrives => self.count -= 1,
                    Change::Passes => passing += 1,
                }
            }
            self.count += starting;
            let most = &mut self.most[width.bin(moment)];
            *most = (*most).max(self.count + passing);
            self.last = moment;
        }
    }

    /// Fills the bins behind that of the last change, up to `end`, with the present number.
    #[inline]
    fn hold(&mut self, end: Picos, width: Width) {
        let (first, end) = (width.bin(self.last) + 1, width.bin(Picos(end.0.saturating_sub(1))) + 1);
        if first < end {
            self.most[first..end].iter_mut().for_each(|most| *most = (*most).max(self.count));
        }
    }

    /// Combines neighbouring bins in pairs.
    pub(super) fn fold(&mut self) {
        bins::fold(&mut self.most[..], u64::max);
    }

    /// The maximum of each bin, when all messages have been added.
    pub(super) fn finish(mut self, width: Width) -> Lane {
        self.reached(Picos::MAX, width);
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a count, for each start, of all messages in flight then.
        #[test]
        fn the_most_is_that_of_a_count_by_pairs(
            mut messages in proptest::collection::vec((0u64..60, 0u64..40), 1..40),
            lag in 0u64..30,
        ) {
            messages.sort_unstable();
            let mut all = UnderWay::new();
            let width = Width::FIRST;
            for &(start, takes) in &messages {
                // A replay adds messages ahead of their start, by no more than `lag` here.
                all.reached(Picos(start.saturating_sub(lag)), width);
                all.add(Picos(start), Picos(start + takes));
            }
            let at = |moment: u64| messages.iter().filter(|&&(start, takes)| {
                start <= moment && moment < start + takes || start == moment && takes == 0
            }).count() as u64;
            let most = messages.iter().map(|&(start, _)| at(start)).max().unwrap_or(0);
            prop_assert_eq!(all.finish(width)[0], most);
        }
    }

    #[test]
    fn each_bin_has_its_most_also_where_nothing_starts() {
        let mut all = UnderWay::new();
        let width = Width::FIRST;
        let bin = width.picos();
        for (start, arrives) in [(0, 3 * bin), (10, 20), (20, 30), (2 * bin, 2 * bin + 1), (5 * bin, 5 * bin)]
        {
            all.add(Picos(start), Picos(arrives));
        }
        assert_eq!(all.finish(width)[..7], [2, 1, 2, 0, 0, 1, 0]);
    }
}

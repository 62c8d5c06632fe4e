//! Numbers of messages in flight of each sender.

use replay::Picos;
use results::Exact;
use results::report::{OfRank, UnderWay};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use vef_format::ids::Rank;

/// Classes by powers of two of a 32-bit number; there is none of 0.
const CLASSES: usize = 32;

/// Messages in flight, by sender. Messages of the same sender are added in order of their start.
pub(super) struct Senders {
    /// Times of arrival, by sender.
    under_way: Vec<BinaryHeap<Reverse<Picos>>>,
    /// The maximum over all senders so far, and the first rank that reaches it.
    max: (usize, u32),
    /// Messages by the power of two of their sender's number in flight.
    classes: [u64; CLASSES],
}

impl Senders {
    pub(super) fn new(tasks: u32) -> Self {
        Self { under_way: vec![BinaryHeap::new(); tasks as usize], max: (0, 0), classes: [0; CLASSES] }
    }

    /// A message starts.
    #[inline]
    pub(super) fn add(&mut self, sender: Rank, start: Picos, arrives: Picos) {
        let own = &mut self.under_way[sender.index()];
        while own.peek().is_some_and(|&Reverse(arrives)| arrives <= start) {
            own.pop();
        }
        own.push(Reverse(arrives));
        let count = own.len();
        self.classes[count.ilog2() as usize] += 1;
        let (most, rank) = self.max;
        if count > most || count == most && sender.0 < rank {
            self.max = (count, sender.0);
        }
    }

    pub(super) fn max(&self) -> OfRank {
        OfRank { rank: self.max.1, value: Exact(self.max.0 as u128) }
    }

    /// The classes that are not empty.
    pub(super) fn classes(&self) -> Vec<UnderWay> {
        let class = |(class, &messages): (usize, &u64)| UnderWay {
            from: Exact(1 << class),
            to: Exact((2 << class) - 1),
            messages: messages.into(),
        };
        self.classes.iter().enumerate().filter(|(_, messages)| **messages > 0).map(class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_arrives_is_not_under_way_any_more() {
        let mut senders = Senders::new(2);
        for (sender, start, arrives) in [(1, 0, 10), (1, 0, 5), (1, 5, 9), (0, 5, 9), (1, 9, 11), (1, 20, 21)]
        {
            senders.add(Rank(sender), Picos(start), Picos(arrives));
        }
        // Rank 1: 1, 2, then 10 and 9, then 10 and 11, then itself.
        assert_eq!(senders.max(), OfRank { rank: 1, value: Exact(2) });
        let classes: Vec<_> =
            senders.classes().iter().map(|class| (class.from.0, class.to.0, class.messages.0)).collect();
        assert_eq!(classes, [(1, 1, 3), (2, 3, 3)]);
    }
}

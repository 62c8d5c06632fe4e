//! Counts of what a replay has done.

use crate::message::Kind;
use serde::{Deserialize, Serialize};
use vef_format::units::{Bytes, Picos};

/// What a replay has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    kinds: [Count; Kind::COUNT],
    /// Messages delivered, those inside included.
    pub delivered: u64,
    /// Of a partition: messages that went to other partitions ([`Engine::export`](crate::Engine::export)).
    pub exported: u64,
    /// Of a partition: messages that came from other partitions ([`Engine::import`](crate::Engine::import)).
    pub imported: u64,
    /// Messages between tasks of one node that the engine completed itself; also counted by kind.
    pub inside: Count,
    /// Local marks passed.
    pub marks: u64,
    /// Parts of collectives that tasks have entered.
    pub collective_parts: u64,
    /// Collectives that are over for all their members.
    pub collectives: u64,
    /// Collectives of which the trace has only the sums of what some member sends and receives (Alltoallv and Alltoallw in text): these
    /// were split evenly among the members, which need not be how it was.
    pub split_evenly: u64,
    /// The moment of the last delivery.
    pub last_delivery: Picos,
}

/// A number of messages and their payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Count {
    /// Messages.
    pub messages: u64,
    /// Payload.
    pub bytes: Bytes,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.messages += 1;
        // Amounts of a hostile trace may be anything; the count saturates.
        self.bytes = Bytes(self.bytes.0.saturating_add(bytes.0));
    }

    fn add_count(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes = Bytes(self.bytes.0.saturating_add(other.bytes.0));
    }
}

impl Stats {
    /// A message starts.
    #[inline(always)]
    pub(crate) fn start(&mut self, kind: Kind, bytes: Bytes) {
        self.kinds[kind.index()].add(bytes);
    }

    /// A message is delivered.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, at: Picos) {
        self.delivered += 1;
        self.last_delivery = self.last_delivery.max(at);
    }

    /// Messages that have started and are not delivered; of a partition, those that it has not exported.
    pub fn live(&self) -> u64 {
        let started = self.kinds.iter().map(|count| count.messages).sum::<u64>();
        started + self.imported - self.exported - self.delivered
    }

    /// Adds what another partition of the same replay has done.
    pub fn add(&mut self, other: &Self) {
        let Self {
            kinds,
            delivered,
            exported,
            imported,
            inside,
            marks,
            collective_parts,
            collectives,
            split_evenly,
            last_delivery,
        } = other;
        for (sum, count) in self.kinds.iter_mut().zip(kinds) {
            sum.add_count(*count);
        }
        self.inside.add_count(*inside);
        for (sum, count) in [
            (&mut self.delivered, delivered),
            (&mut self.exported, exported),
            (&mut self.imported, imported),
            (&mut self.marks, marks),
            (&mut self.collective_parts, collective_parts),
            (&mut self.collectives, collectives),
            (&mut self.split_evenly, split_evenly),
        ] {
            *sum += count;
        }
        self.last_delivery = self.last_delivery.max(*last_delivery);
    }

    /// Records that tasks have started: messages of lines, marks, and parts of collectives.
    pub fn records(&self) -> u64 {
        self.of(Kind::PointToPoint).messages + self.marks + self.collective_parts
    }

    /// Messages of one kind that have started.
    pub fn of(&self, kind: Kind) -> Count {
        self.kinds[kind.index()]
    }

    /// The kinds that occurred.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, Count)> {
        Kind::all().map(|kind| (kind, self.of(kind))).filter(|(_, count)| count.messages > 0)
    }

    /// All messages that have started, and their bytes.
    pub fn total(&self) -> Count {
        let mut total = Count::default();
        self.kinds.iter().for_each(|&count| total.add_count(count));
        total
    }
}

//! What the walk over one task's events gives: its records, and places in channels.

use crate::agreement::Calls;
use crate::channels::{Grouped, Posting, Side};
use crate::packed::Records;
use crate::summary::Tally;
use std::collections::BTreeMap;
use vef_format::container::Section;
use vef_format::units::{Bytes, Nanos};

/// What the walk over one task's events gave.
#[derive(Debug, Default)]
pub(crate) struct Task {
    /// Its records.
    pub(crate) records: Records,
    /// Its messages, in the order of its records.
    pub(crate) sends: Side,
    /// Its receives, in posting order.
    pub(crate) receives: Side,
    /// Of a task with several threads: for each receive, when it was posted and when it was over.
    pub(crate) postings: Option<Vec<Posting>>,
    /// For each receive, whether something waited for it.
    pub(crate) waits: Vec<Wait>,
    /// Its calls of collectives, by communicator.
    pub(crate) calls: Vec<Calls>,
    /// At most how many collectives back, the latest being 1, a record's collective is.
    pub(crate) reach: u32,
    /// When it entered `MPI_Init`.
    pub(crate) zero: Nanos,
    /// Its counts.
    pub(crate) counts: Counts,
    /// Calls that a trace cannot represent, by name.
    pub(crate) not_representable: BTreeMap<String, Tally>,
    /// What a container says beside its records, if asked for.
    pub(crate) notes: Vec<(Section, Vec<u8>)>,
    /// Room of every receive, in posting order, if asked for.
    pub(crate) room: Option<Vec<Bytes>>,
}

/// Whether something waits for a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing.
    Not,
    /// A call of its task.
    Waited,
    /// And a record of its task comes after that.
    Followed,
}

/// Counts of one task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) collectives: u64,
    /// Payload of its messages.
    pub(crate) bytes: u64,
    pub(crate) negative_times: u64,
    pub(crate) unknown_requests: u64,
    pub(crate) never_completed: u64,
    /// How long failed polls took that are waits, in nanoseconds.
    pub(crate) polled: u64,
    pub(crate) finalized: bool,
}

impl Task {
    /// How many messages it sends.
    pub(crate) fn messages(&self) -> u64 {
        self.sends.len() as u64
    }

    /// How many of its records are marks.
    pub(crate) fn marks(&self) -> u64 {
        self.records.len() as u64 - self.messages() - self.counts.collectives
    }

    /// Its receives by channel.
    pub(crate) fn grouped_receives(&self) -> Grouped {
        let mut grouped = self.receives.group();
        if let Some(postings) = &self.postings {
            grouped.order_concurrent(postings);
        }
        grouped
    }

    /// The memory it takes, about.
    pub(crate) fn memory(&self) -> usize {
        let calls: usize = self.calls.iter().map(|calls| calls.made.memory()).sum();
        let sides = self.sends.memory() + self.receives.memory();
        let postings = size_of::<Posting>() * self.postings.as_ref().map_or(0, Vec::capacity);
        let notes: usize = self.notes.iter().map(|(_, piece)| piece.capacity()).sum();
        notes + self.records.memory() + sides + postings + self.waits.capacity() + calls
    }

    /// Gives back unused memory.
    pub(crate) fn shrink(&mut self) {
        self.records.shrink();
        self.sends.shrink();
        self.receives.shrink();
        self.waits.shrink_to_fit();
        self.calls.iter_mut().for_each(|calls| calls.made.shrink());
    }
}

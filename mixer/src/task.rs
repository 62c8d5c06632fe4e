//! The result of the walk over one task's events: records and their channels.

use crate::agreement::Calls;
use crate::channels::{Grouped, Posting, Side};
use crate::fit::fit;
use crate::packed::Records;
use crate::summary::Tally;
use std::collections::BTreeMap;
use vef_format::container::Section;
use vef_format::units::{Bytes, Nanos};

/// The result of the walk over one task's events.
#[derive(Debug, Default)]
pub(crate) struct Task {
    /// Its records.
    pub(crate) records: Records,
    /// Its messages, in the order of its records.
    pub(crate) sends: Side,
    /// Its receives, in posting order.
    pub(crate) receives: Side,
    /// Of a task with several threads: the times of each receive.
    pub(crate) postings: Option<Vec<Posting>>,
    /// For each receive, whether a call waited for it.
    pub(crate) waits: Vec<Wait>,
    /// Its collective calls, by communicator.
    pub(crate) calls: Vec<Calls>,
    /// The largest distance, in collectives, from a record to the collective it depends on; the latest has distance 1.
    pub(crate) reach: u32,
    /// When it entered `MPI_Init`.
    pub(crate) zero: Nanos,
    /// Its counts.
    pub(crate) counts: Counts,
    /// Calls that a trace cannot represent, by function.
    pub(crate) not_representable: BTreeMap<String, Tally>,
    /// Notes for a container, if requested.
    pub(crate) notes: Vec<(Section, Vec<u8>)>,
    /// The same of a task with several threads, as [`ThreadNotes`](crate::thread_notes::ThreadNotes).
    pub(crate) thread_notes: Option<Vec<u8>>,
    /// Buffer size of each receive in posting order, if requested.
    pub(crate) room: Option<Vec<Bytes>>,
}

/// Whether a call waited for a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// No.
    Not,
    /// Yes.
    Waited,
    /// Yes, and a record depends on it.
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
    /// Duration of the failed polls that count as waiting, in nanoseconds.
    pub(crate) polled: u64,
    /// Duration of the waits that made no record, in nanoseconds: those for own sends, or for what a trace cannot represent.
    pub(crate) send_waits: u64,
    pub(crate) finalized: bool,
}

impl Task {
    /// Number of messages.
    pub(crate) fn messages(&self) -> u64 {
        self.sends.len() as u64
    }

    /// Number of marks.
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

    /// Approximate allocated bytes.
    pub(crate) fn memory(&self) -> usize {
        let calls: usize = self.calls.iter().map(|calls| calls.made.memory()).sum();
        let sides = self.sends.memory() + self.receives.memory();
        let postings = size_of::<Posting>() * self.postings.as_ref().map_or(0, Vec::capacity);
        let notes: usize = self.notes.iter().map(|(_, piece)| piece.capacity()).sum();
        let thread_notes = self.thread_notes.as_ref().map_or(0, Vec::capacity);
        notes + thread_notes + self.records.memory() + sides + postings + self.waits.capacity() + calls
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.records.shrink();
        self.sends.shrink();
        self.receives.shrink();
        fit(&mut self.waits);
        self.calls.iter_mut().for_each(|calls| calls.made.shrink());
    }
}

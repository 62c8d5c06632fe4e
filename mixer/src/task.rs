//! The result of the walk over one task's events: records and their channels.

use crate::agreement::Calls;
use crate::channels::{Grouped, Posting, Side};
use crate::counts::Counts;
use crate::fit::fit;
use crate::index::{CommIndex, ReceiveIndex};
use crate::records::Records;
use crate::thread_notes::UnplacedNotes;
use crate::two_phase::Access;
use serde::{Deserialize, Serialize};
use vef_format::container::Section;
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Nanos};

/// What another task does for a one-sided call of this one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The communicator of the window.
    pub(crate) comm: CommIndex,
    /// The other task.
    pub(crate) target: Rank,
    /// What it does.
    pub(crate) of: AskedOf,
}

/// See [`Asked`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum AskedOf {
    /// It answers a request.
    Answer {
        /// Start of the call that made the request.
        asked: u64,
        /// When the request came to its target, about, on the clock of the task that asks.
        at: u64,
        /// End of the call that waited for the answer; [`u64::MAX`] if none did.
        answered: u64,
        /// Bytes of the answer.
        bytes: Bytes,
        /// Orders the requests of several tasks that begin together.
        round: u32,
        /// Whether it is a transfer itself that is answered.
        transfer: bool,
    },
    /// In its fence with that number, of those on the window, it waits for transfers.
    Fence(u32),
    /// It has memory in which transfers were made.
    Reach(Reach),
}

/// The part of a target's window in which a task has made transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reach {
    /// The lowest displacement, in units of the target.
    pub(crate) first: i64,
    /// The highest displacement, and the most bytes accessed there.
    pub(crate) last: (i64, u64),
}

impl Reach {
    /// Nothing yet.
    pub(crate) const NONE: Self = Self { first: i64::MAX, last: (i64::MIN, 0) };

    /// Adds a transfer of `bytes` at `displacement`.
    pub(crate) fn add(&mut self, displacement: i64, bytes: Bytes) {
        self.first = self.first.min(displacement);
        self.last = self.last.max((displacement, bytes.0));
    }

    /// Whether all of it is in a window of `size` with displacements of `unit` bytes, a lower bound of what is accessed taken for it.
    pub(crate) fn is_within(&self, size: Bytes, unit: u32) -> bool {
        let (displacement, bytes) = self.last;
        let end = i128::from(displacement) * i128::from(unit) + i128::from(bytes);
        self.first >= 0 && end <= i128::from(size.0)
    }
}

/// A request of partitioned communication, of which the other side must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartitionedRequest {
    /// The communicator.
    pub(crate) comm: CommIndex,
    /// The task at the other end.
    pub(crate) peer: Rank,
    /// The tag.
    pub(crate) tag: i32,
    /// Whether the task sends.
    pub(crate) sends: bool,
    /// Number of partitions.
    pub(crate) partitions: u32,
    /// Payload of all partitions.
    pub(crate) bytes: Bytes,
}

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
    /// The fate that each receive gives to its message.
    pub(crate) fates: Vec<Fate>,
    /// The messages that probes found.
    pub(crate) found: Vec<Found>,
    /// What other tasks do for its one-sided calls, in the order of the calls.
    pub(crate) asked: Vec<Asked>,
    /// Its collective accesses to files, in order, where there are storage servers.
    pub(crate) accesses: Vec<Access>,
    /// Its requests of partitioned communication, in the order in which they were made.
    pub(crate) partitioned: Vec<PartitionedRequest>,
    /// Its collective calls, by communicator.
    pub(crate) calls: Vec<Calls>,
    /// Number of its collectives.
    pub(crate) collectives: u32,
    /// The largest distance, in collectives, from a record to the collective it depends on; the latest has distance 1.
    pub(crate) reach: u32,
    /// When it entered `MPI_Init`.
    pub(crate) zero: Nanos,
    /// Its counts.
    pub(crate) counts: Counts,
    /// Notes for a container, if requested.
    pub(crate) notes: Vec<(Section, Vec<u8>)>,
    /// Those notes of a task with several threads whose places are not known yet.
    pub(crate) unplaced_notes: Option<UnplacedNotes>,
    /// Buffer size of each receive, if requested.
    pub(crate) room: Option<Vec<Bytes>>,
}

/// A message that a probe found before a call received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The probe, by its index among the receives; it matches no message of its own.
    pub(crate) probe: ReceiveIndex,
    /// The receive that took the message.
    pub(crate) receive: ReceiveIndex,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Received; no call waited for it.
    Unawaited,
    /// Received; a call waited for it.
    Awaited,
    /// Received; a call waited for it, and a record depends on that.
    HasDependent,
    /// Not in the trace.
    Dropped,
}

impl Task {
    /// Its receives by channel.
    pub(crate) fn grouped_receives(&self) -> Grouped {
        let mut grouped = self.receives.group();
        if let Some(postings) = &self.postings {
            grouped.order_concurrent(postings);
        }
        grouped
    }

    /// Gives its communicators the indices `names`.
    pub(crate) fn rename_communicators(&mut self, names: &[CommIndex]) {
        self.sends.rename_communicators(names);
        self.receives.rename_communicators(names);
        self.calls.iter_mut().for_each(|calls| calls.comm = names[calls.comm.index()]);
        self.asked.iter_mut().for_each(|asked| asked.comm = names[asked.comm.index()]);
    }

    /// Approximate allocated bytes.
    pub(crate) fn memory(&self) -> usize {
        let calls: usize = self.calls.iter().map(|calls| calls.made.memory()).sum();
        let sides = self.sends.memory() + self.receives.memory();
        let postings = size_of::<Posting>() * self.postings.as_ref().map_or(0, Vec::capacity);
        let notes: usize = self.notes.iter().map(|(_, piece)| piece.capacity()).sum();
        let unplaced = self.unplaced_notes.as_ref().map_or(0, UnplacedNotes::memory);
        let found = size_of::<Found>() * self.found.capacity();
        notes + unplaced + self.records.memory() + sides + postings + self.fates.capacity() + found + calls
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.records.shrink();
        self.sends.shrink();
        self.receives.shrink();
        fit(&mut self.fates);
        fit(&mut self.found);
        self.calls.iter_mut().for_each(|calls| calls.made.shrink());
    }
}

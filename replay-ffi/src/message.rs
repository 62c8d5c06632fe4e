//! What C sees of messages, kinds and counts.

use crate::border;
use replay::{Count, Kind, Replay, TaskProgress};
use std::ffi::{CStr, c_char};

/// A message to be carried through the network. It leaves its node at the moment for which it was asked.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Hand this back to `vef_replay_sent` and `vef_replay_delivered`. Opaque; never 0, never used twice.
    pub id: u64,
    /// Payload; may be 0.
    pub bytes: u64,
    /// When it became ready, in picoseconds: not after the moment at which it was taken.
    pub ready: u64,
    /// End node of the sender, by the job's placement.
    pub src_node: u32,
    /// End node of the receiver.
    pub dst_node: u32,
    /// Which job, from 0, in the order in which they were added.
    pub job: u32,
    /// The sending rank of that job.
    pub src_rank: u32,
    /// The receiving rank of that job.
    pub dst_rank: u32,
    /// What it belongs to: 0 is point-to-point, others are collective operations (`vef_kind_name`).
    pub kind: u32,
}

impl From<replay::Message> for Message {
    #[inline(always)]
    fn from(message: replay::Message) -> Self {
        Self {
            id: message.id.to_raw(),
            bytes: message.bytes.0,
            ready: message.ready.0,
            src_node: message.src_node,
            dst_node: message.dst_node,
            job: message.job,
            src_rank: message.src.0,
            dst_rank: message.dst.0,
            kind: message.kind.index() as u32,
        }
    }
}

/// What a replay has done so far. Times are in picoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Messages that have started, those within a node included.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
    /// Messages that have arrived.
    pub delivered: u64,
    /// Messages handed out and not yet delivered.
    pub live: u64,
    /// Of `messages`, those that the library carried itself (`vef_builder_same_node_link`).
    pub inside_messages: u64,
    /// Their payload.
    pub inside_bytes: u64,
    /// Local marks that tasks have passed: records of the trace that are no messages.
    pub marks: u64,
    /// Times that a task has entered a collective.
    pub collective_parts: u64,
    /// Collectives that are over for all their members.
    pub collectives: u64,
    /// The latest moment of any call.
    pub clock: u64,
    /// When the last message arrived.
    pub last_delivery: u64,
    /// When the last task was done, computing behind its last message included: the run time, once all is complete.
    pub finish: u64,
}

impl From<&Replay> for Stats {
    fn from(replay: &Replay) -> Self {
        let stats = replay.stats();
        let total = stats.total();
        Self {
            messages: total.messages,
            bytes: total.bytes.0,
            delivered: stats.delivered,
            live: stats.live(),
            inside_messages: stats.inside.messages,
            inside_bytes: stats.inside.bytes.0,
            marks: stats.marks,
            collective_parts: stats.collective_parts,
            collectives: stats.collectives,
            clock: replay.clock().0,
            last_delivery: stats.last_delivery.0,
            finish: replay.finish().0,
        }
    }
}

/// How far a task has come.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Records that it has started.
    pub records: u64,
    /// When it was done, in picoseconds; `UINT64_MAX` as long as it is not.
    pub finished: u64,
    /// Its end node.
    pub node: u32,
}

impl From<TaskProgress> for Progress {
    fn from(task: TaskProgress) -> Self {
        let finished = task.finished.map_or(u64::MAX, |at| at.0);
        Self { records: task.records, finished, node: task.node }
    }
}

/// A number of messages and their payload.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Messages that have started.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
}

impl From<Count> for Tally {
    fn from(count: Count) -> Self {
        Self { messages: count.messages, bytes: count.bytes.0 }
    }
}

/// The names of [`Kind::all`].
const KINDS: [&CStr; Kind::COUNT] = [
    c"point-to-point",
    c"Bcast",
    c"Reduce",
    c"Allreduce",
    c"Gather",
    c"Scatter",
    c"Allgather",
    c"Barrier",
    c"Alltoall",
    c"Gatherv",
    c"Scatterv",
    c"Allgatherv",
    c"Alltoallv",
    c"Alltoallw",
    c"Reduce_scatter",
    c"Reduce_scatter_block",
    c"Scan",
    c"Exscan",
];

/// The name of a message's kind: `point-to-point`, or the MPI function without `MPI_`. Static text; null if there
/// is no such kind, so that a loop from 0 meets them all.
#[unsafe(no_mangle)]
pub extern "C" fn vef_kind_name(kind: u32) -> *const c_char {
    KINDS.get(kind as usize).map_or(std::ptr::null(), |name| border::text(name))
}

/// The kind of that number.
pub(crate) fn kind(number: u32) -> Option<Kind> {
    Kind::all().nth(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_names() {
        for (name, kind) in KINDS.iter().zip(Kind::all()) {
            assert_eq!(name.to_str().unwrap(), kind.to_string());
            assert_eq!(super::kind(kind.index() as u32), Some(kind));
        }
        assert!(vef_kind_name(Kind::COUNT as u32).is_null());
        assert_eq!(super::kind(Kind::COUNT as u32), None);
    }
}

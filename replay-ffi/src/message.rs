//! What C sees of messages, kinds and counts.

use crate::border::{self, Failure, Out, Versioned};
use crate::status::{VEF_ERROR_ARGUMENT, VEF_ERROR_STATE};
use replay::{Accounts, Collective, Count, Engine, Kind, Next, Picos, Replay, TaskProgress};
use std::ffi::{CStr, c_char, c_int};

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
    /// Its place among the messages that are ready at the same moment: they are given in ascending order of this number. Those that become
    /// ready only by another's start at that moment follow it, whatever their number: under `vef_builder_sends_rendezvous_in_calls`, messages
    /// that waited until their receiver was in a call.
    pub order: u64,
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
            order: message.order,
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
    /// Messages that have started and are not yet delivered.
    pub live: u64,
    /// Of `messages`, those that the library carried itself, within a node.
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
    /// Of a partition: messages that went to other partitions.
    pub exported: u64,
    /// Of a partition: messages that came from other partitions.
    pub imported: u64,
    /// Records that ranks have started: `vef_builder_records` has their total.
    pub records: u64,
    /// Collectives of which the trace has only the sums of what a member sends and receives, which were split evenly among the members: an
    /// Alltoallv or Alltoallw of a text trace.
    pub split_evenly: u64,
}

impl Versioned for Stats {
    /// Without `records` and what follows.
    const FIRST: usize = 112;
}
impl Versioned for Message {
    /// Without `order`.
    const FIRST: usize = 48;
}
impl Versioned for Follows {
    /// Without `order`.
    const FIRST: usize = 56;
}
impl Versioned for Progress {}
impl Versioned for Tally {}
impl Versioned for Times {}

impl From<&Replay> for Stats {
    fn from(replay: &Replay) -> Self {
        Self::of(replay.engine(), replay.clock())
    }
}

impl Stats {
    /// Of an engine, of which `clock` is the latest moment of any call.
    pub(crate) fn of(engine: &Engine, clock: Picos) -> Self {
        let stats = engine.stats();
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
            clock: clock.0,
            last_delivery: stats.last_delivery.0,
            finish: engine.finish().0,
            exported: stats.exported,
            imported: stats.imported,
            records: stats.records(),
            split_evenly: stats.split_evenly,
        }
    }
}

/// Writes how far the tasks of a job have come to as many elements as there is room for; returns the number of tasks.
///
/// # Safety
/// The first of the three is null, or has room for so many (the second) elements of so many bytes (the third).
pub(crate) unsafe fn write_progress(
    engine: &Engine,
    job: u32,
    (tasks, room, size): (*mut Progress, usize, usize),
) -> Result<isize, Failure> {
    if job >= engine.jobs() {
        return Err(Failure::new(VEF_ERROR_ARGUMENT, format_args!("there is no job {job}")));
    }
    if room > 0 {
        // SAFETY: the caller's promise, here and below.
        let tasks = unsafe { Out::new(tasks, size, "tasks")? };
        for (rank, task) in engine.progress(job).take(room).enumerate() {
            // SAFETY: there is room for `room` of them.
            unsafe { tasks.write(rank, task.into()) };
        }
    }
    Ok(engine.tasks(job) as isize)
}

/// A message starts at `at`: the simulator carries it to `dst_node`, and reports it delivered.
pub const VEF_NEXT_MESSAGE: u32 = 0;
/// A message between two ranks of one node is delivered at `at`: the simulator reports that, and
/// does not carry it.
pub const VEF_NEXT_INSIDE: u32 = 1;
/// A rank, or what it has started, is to be woken at `at`, or later if the simulator lets it wait: `vef_engine_wake` with this id.
pub const VEF_NEXT_WAKE: u32 = 2;

/// A collective of `vef_builder_collective_events` is to be carried out from `at` on: `id` and `job` are for `vef_engine_members` and
/// `vef_engine_complete_member`, `kind` is the operation, `src_rank` the member that enters or `UINT32_MAX`, `dst_rank` the root,
/// `src_node` the communicator's number, `bytes` the number of its members.
pub const VEF_NEXT_COLLECTIVE: u32 = 3;

/// What follows from a call of an engine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follows {
    /// When it happens, in picoseconds.
    pub at: u64,
    /// Of a message, for `vef_engine_delivered` and `vef_engine_sent`; else for `vef_engine_wake`.
    pub id: u64,
    /// Payload of the message; may be 0.
    pub bytes: u64,
    /// `VEF_NEXT_MESSAGE`, `VEF_NEXT_INSIDE` or `VEF_NEXT_WAKE`. Of the last, what stands below is 0.
    pub what: u32,
    /// End node of the sender.
    pub src_node: u32,
    /// End node of the receiver.
    pub dst_node: u32,
    /// Which job, from 0.
    pub job: u32,
    /// The sending rank of that job.
    pub src_rank: u32,
    /// The receiving rank of that job.
    pub dst_rank: u32,
    /// What it belongs to: 0 is point-to-point, others are collective operations (`vef_kind_name`).
    pub kind: u32,
    /// Of a message, its place among those that start at the same moment: a simulator lets those of smaller numbers start first, and those of the
    /// same number as they were given. The number follows from job, rank and record of the sender: it is the same in all partitions, and
    /// in a `vef_replay`.
    pub order: u64,
}

impl From<Next> for Follows {
    #[inline(always)]
    fn from(next: Next) -> Self {
        let (what, at, message) = match next {
            Next::Message(message) => (VEF_NEXT_MESSAGE, message.start, message),
            Next::Inside { message, arrives } => (VEF_NEXT_INSIDE, arrives, message),
            Next::Wake(wake) => {
                let (at, id) = wake.to_raw();
                let (bytes, what) = (0, VEF_NEXT_WAKE);
                let ([src_node, dst_node, job, src_rank, dst_rank, kind], order) = ([0; 6], 0);
                return Self {
                    at: at.0,
                    id,
                    bytes,
                    what,
                    src_node,
                    dst_node,
                    job,
                    src_rank,
                    dst_rank,
                    kind,
                    order,
                };
            }
        };
        Self {
            at: at.0,
            id: message.id.to_raw(),
            bytes: message.bytes.0,
            what,
            src_node: message.src_node,
            dst_node: message.dst_node,
            job: message.job,
            src_rank: message.src.0,
            dst_rank: message.dst.0,
            kind: message.kind.index() as u32,
            order: message.order,
        }
    }
}

impl From<&Collective> for Follows {
    fn from(event: &Collective) -> Self {
        Self {
            at: event.at.0,
            id: event.id.0,
            bytes: event.ranks.into(),
            what: VEF_NEXT_COLLECTIVE,
            src_node: event.comm.0,
            dst_node: 0,
            job: event.job,
            src_rank: event.member.unwrap_or(u32::MAX),
            dst_rank: event.root,
            kind: Kind::Collective(event.operation).index() as u32,
            order: 0,
        }
    }
}

/// A message arrives at its destination; `id` is a message's.
pub const VEF_EVENT_DELIVERED: u32 = 0;
/// A message has left its source; `id` is a message's.
pub const VEF_EVENT_SENT: u32 = 1;
/// A rank is woken; `id` is that of a `VEF_NEXT_WAKE`.
pub const VEF_EVENT_WAKE: u32 = 2;

/// What a simulator reports to an engine: one of many, for `vef_engine_report`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in picoseconds.
    pub at: u64,
    /// Of what.
    pub id: u64,
    /// `VEF_EVENT_DELIVERED`, `VEF_EVENT_SENT` or `VEF_EVENT_WAKE`.
    pub what: u32,
}

/// A message on its way from one partition to another: opaque numbers, valid in any process that replays the same traces with the same
/// partitions.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The numbers, which only the library reads.
    pub words: [u64; 5],
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

/// What the replay of a part of a run has left out, because it depends on records outside of the part.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Receptions that records do not wait for.
    pub receptions: u64,
    /// Members' parts of collectives that others enter outside of the part.
    pub collective_parts: u64,
}

impl Versioned for LeftOut {}

/// Writes what has been left out of a job.
///
/// # Safety
/// The first of the two is null, or can be written with so many bytes (the second).
pub(crate) unsafe fn write_left_out(
    engine: &Engine,
    job: u32,
    (out, size): (*mut LeftOut, usize),
) -> Result<c_int, Failure> {
    let replay::LeftOut { receptions, collective_parts } = engine.left_out(job);
    // SAFETY: the caller's promise.
    unsafe { Out::new(out, size, "left_out")?.write(0, LeftOut { receptions, collective_parts }) };
    Ok(0)
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

/// The time of a rank by state, in picoseconds: from the start of its job to its end, or to the start of its last record so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// It computes.
    pub computing: u64,
    /// It waits for a send of its own to complete.
    pub send: u64,
    /// It waits for a message.
    pub reception: u64,
    /// It is in a collective that its next record waits for.
    pub collective: u64,
}

/// Writes the times of the ranks of a job to as many elements as there is room for; returns the number of ranks.
///
/// # Safety
/// As [`write_progress`].
pub(crate) unsafe fn write_times(
    (engine, accounts): (&Engine, Option<&Accounts>),
    job: u32,
    (times, room, size): (*mut Times, usize, usize),
) -> Result<isize, Failure> {
    if job >= engine.jobs() {
        return Err(Failure::new(VEF_ERROR_ARGUMENT, format_args!("there is no job {job}")));
    }
    let not_kept = || Failure::new(VEF_ERROR_STATE, "times are kept after vef_builder_keep_times alone");
    let accounts = accounts.ok_or_else(not_kept)?;
    if room > 0 {
        // SAFETY: the caller's promise, here and below.
        let times = unsafe { Out::new(times, size, "times")? };
        for (rank, [computing, send, reception, collective]) in
            accounts.so_far(engine, job).into_iter().take(room).enumerate()
        {
            // SAFETY: there is room for `room` of them.
            unsafe { times.write(rank, Times { computing, send, reception, collective }) };
        }
    }
    Ok(engine.tasks(job) as isize)
}

/// Writes how many messages of a kind have started.
///
/// # Safety
/// `tally` is null, or an element of `size` bytes can be written there.
pub(crate) unsafe fn write_tally(
    stats: &replay::Stats,
    number: u32,
    (tally, size): (*mut Tally, usize),
) -> Result<c_int, Failure> {
    // SAFETY: the caller's promise, here and below.
    let tally = unsafe { Out::new(tally, size, "tally")? };
    let unknown = || Failure::new(VEF_ERROR_ARGUMENT, format_args!("there is no kind {number}"));
    let count = stats.of(kind(number).ok_or_else(unknown)?);
    // SAFETY: as above.
    unsafe { tally.write(0, count.into()) };
    Ok(0)
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
/// is no such kind: a loop from 0 to the first null lists all kinds.
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

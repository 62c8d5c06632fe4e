//! What can go wrong, at building and while replaying.

use crate::message::LiveId;
use crate::source::SourceError;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::OpCode;
use vef_format::units::{Bytes, Count, Picos};

/// Why there is no replay of these jobs.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Not one job.
    #[error("no trace to replay")]
    NoJobs,
    /// A placement that leaves tasks without a node.
    #[error("job {job} has {}, its placement has nodes for {placed}", Count(*.tasks, "task"))]
    Placement {
        /// Which job, from 0.
        job: u32,
        /// Its tasks.
        tasks: u32,
        /// Tasks with a node.
        placed: usize,
    },
    /// A time factor that is negative or not finite.
    #[error("job {job} has the time factor {factor}: it must be a number from 0")]
    Factor {
        /// Which job.
        job: u32,
        /// The factor.
        factor: f64,
    },
    /// A header that promises more tasks than the trace can have records of.
    #[error("job {job}: the header promises {}, more than a trace of this length can have", Count(*.tasks, "task"))]
    Tasks {
        /// Which job.
        job: u32,
        /// Tasks according to the header.
        tasks: u32,
    },
    /// More tasks than can be numbered, over all jobs.
    #[error("more than {} tasks in all jobs", crate::message::WakeTarget::HELD - 1)]
    TooManyTasks,
    /// A table of codes for a trace that has its own.
    #[error("only a text trace takes a table of operations' codes: this trace has its own")]
    OpCodes,
    /// A link without bandwidth.
    #[error("a bandwidth of 0")]
    NoBandwidth,
    /// Collectives that are events, in a replay that is divided.
    #[error("collectives cannot be events in several partitions: their members are in different ones")]
    EventsOfPartitions,
    /// [`SendCompletion::RendezvousInCalls`](crate::SendCompletion::RendezvousInCalls), in a replay that is divided.
    #[error("messages cannot wait in one partition for receivers that compute in another")]
    InCallsOfPartitions,
    /// A node that was put in a partition that does not exist.
    #[error("node {node} is put in partition {part} of {parts}")]
    Partition {
        /// The node.
        node: u32,
        /// The partition.
        part: u32,
        /// How many there are.
        parts: u32,
    },
    /// Already the first records cannot be replayed.
    #[error(transparent)]
    Start(#[from] ReplayError),
}

/// Why a call failed.
///
/// [`ReplayError::is_misuse`] returns true for the caller's mistakes, after which the replay continues as if nothing had been
/// said, from errors in the trace, after which every further call fails.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The id names no live message: it was invented, or its message is delivered.
    #[error("{id} names no message on its way")]
    NotLive {
        /// The id.
        id: LiveId,
    },
    /// A message was reported sent twice.
    #[error("message {id} was already reported sent")]
    AlreadySent {
        /// The id.
        id: LiveId,
    },
    /// A message was reported delivered whose receiver is in another partition, without having been exported there.
    #[error("message {id} goes to another partition, to which it was not exported")]
    NotExported {
        /// The id.
        id: LiveId,
    },
    /// A message was to be exported whose receiver is in the same partition.
    #[error("message {id} stays in its partition")]
    NothingToExport {
        /// The id.
        id: LiveId,
    },
    /// A message was imported whose receiver is in another partition.
    #[error("the receiver of the imported message is not in this partition")]
    NotHere,
    /// A wake-up that no task waits for.
    #[error("no task waits for this wake-up")]
    NotWaiting,
    /// The tasks were started twice.
    #[error("the replay has begun already")]
    Begun,
    /// A call for a moment before that of an earlier call, of any one or, of an [`Engine`](crate::Engine), of one for the same task.
    #[error("time goes backwards: it is {clock} ps, the call is for {at} ps", clock = clock.0, at = at.0)]
    Backwards {
        /// The latest moment of these calls so far.
        clock: Picos,
        /// The moment of this call.
        at: Picos,
    },
    /// A message was reported sent or delivered for a moment before it starts.
    #[error("message {id} starts at {start} ps, the call is for {at} ps", start = start.0, at = at.0)]
    BeforeStart {
        /// The message.
        id: LiveId,
        /// When it starts.
        start: Picos,
        /// The moment of this call.
        at: Picos,
    },
    /// The completion of a member was reported that waits in no such collective.
    #[error("no member {member} waits in collective {id} of job {job} as an event")]
    NoMember {
        /// Which job.
        job: u32,
        /// Which collective.
        id: CollectiveId,
        /// The rank of the communicator.
        member: u32,
    },
    /// A message was imported that this partition has imported before.
    #[error("the message was imported before")]
    ImportedTwice,
    /// The trace cannot be read on.
    #[error("{0}")]
    Source(#[source] SourceError),
    /// A trace's notes, which say what a message is, cannot be read; the replay itself does not need them.
    #[error("{0}")]
    Notes(#[source] SourceError),
    /// A moment later than 2^64 picoseconds.
    #[error("{place}: it would start after the end of time (2^64 ps, 213 days)")]
    Overflow {
        /// Whose record.
        place: RecordPlace,
    },
    /// On the yardstick, a message would arrive later than 2^64 picoseconds.
    #[error("a message of {} B from task {src} to task {dst} would arrive after the end of time (2^64 ps, 213 days)", .bytes.0)]
    Arrival {
        /// Its sender.
        src: Rank,
        /// Its receiver.
        dst: Rank,
        /// Its payload.
        bytes: Bytes,
    },
    /// A second point-to-point line of the same id.
    #[error("{place}: id {id} was used before")]
    DuplicateId {
        /// Whose record.
        place: RecordPlace,
        /// The id.
        id: MessageId,
    },
    /// A part of a collective cannot be played.
    #[error("{place}: {id}: {problem}")]
    Collective {
        /// Whose record.
        place: RecordPlace,
        /// Which collective.
        id: CollectiveId,
        /// What is wrong.
        problem: CollectiveProblem,
    },
    /// No further instance of a job can be opened.
    #[error("no instance of job {job} can be opened: {why}")]
    NoInstance {
        /// Which job, from 0.
        job: u32,
        /// Why.
        why: NoInstance,
    },
    /// The tasks of a job that is repeated, or of another instance of it, cannot begin, mostly as it would be too late for them; or its trace cannot
    /// be read.
    #[error("job {job} cannot begin: {error}")]
    CannotBegin {
        /// Which job, from 0.
        job: u32,
        /// Why; a record that it names may be of the instance that was not opened.
        error: Box<ReplayError>,
    },
    /// An earlier error in the trace ended this replay.
    #[error("the replay ended with an earlier error")]
    Ended,
}

/// What the engine's inner calls come to: errors are rare and large, so they are boxed.
pub(crate) type EngineResult<T> = Result<T, Box<ReplayError>>;

impl ReplayError {
    /// Whether the call left the replay as it was: the caller made a mistake, or asked for notes that cannot be read.
    pub fn is_misuse(&self) -> bool {
        matches!(
            self,
            Self::NotLive { .. }
                | Self::AlreadySent { .. }
                | Self::NotExported { .. }
                | Self::NothingToExport { .. }
                | Self::NotHere
                | Self::NotWaiting
                | Self::Begun
                | Self::Notes(_)
                | Self::Backwards { .. }
                | Self::BeforeStart { .. }
                | Self::ImportedTwice
                | Self::NoMember { .. }
                | Self::NoInstance { .. }
                | Self::CannotBegin { .. }
        )
    }
}

/// Why no instance of a job can be opened ([`Engine::open`](crate::Engine::open)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoInstance {
    /// There is no job of that number, or it was opened itself.
    #[error("it is none of the jobs with which the replay was built")]
    NoJob,
    /// The tasks have not been started.
    #[error("the replay has not begun")]
    NotBegun,
    /// The engine is one of several partitions.
    #[error("the replay is divided into partitions")]
    Partition,
    /// Tasks are left without a node.
    #[error("it has {}, and nodes for {placed} are given", Count(*.tasks, "task"))]
    Nodes {
        /// Tasks that are placed.
        tasks: u32,
        /// Tasks with a node.
        placed: usize,
    },
    /// More tasks than can be numbered, over all jobs.
    #[error("{}", BuildError::TooManyTasks)]
    TooManyTasks,
}

/// A record, counted within its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// Which job, from 0.
    pub job: u32,
    /// Which task.
    pub task: Rank,
    /// Which of its records, from 0.
    pub record: u64,
}

impl std::fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.job > 0 {
            write!(f, "job {}, ", self.job)?;
        }
        write!(f, "task {}, record {}", self.task, self.record)
    }
}

/// What is wrong with a task's part of a collective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveProblem {
    /// The table of operations has no such code.
    #[error("operation code {} is not in the table", .0.0)]
    UnknownOperation(OpCode),
    /// No `C` line of that number.
    #[error("communicator {0} is not in the trace")]
    UnknownCommunicator(CommId),
    /// The task takes part in an operation of others.
    #[error("the task is not in communicator {0}")]
    NotAMember(CommId),
    /// A communicator lists a task twice.
    #[error("communicator {0} names task {1} twice")]
    MemberTwice(CommId, Rank),
    /// The task has played its part before.
    #[error("the task takes part a second time")]
    Twice,
    /// Another member's record says something else.
    #[error("another member's record names another operation or communicator")]
    Disagree,
    /// There is no schedule.
    #[error(transparent)]
    Schedule(#[from] collectives::Error),
    /// More collectives or parts in progress than can be numbered.
    #[error("more than 2^30 parts of collectives in progress")]
    TooMany,
}

/// Why a task cannot take part.
pub(crate) enum Problem {
    Part(CollectiveProblem),
    Replay(Box<ReplayError>),
}

impl From<CollectiveProblem> for Problem {
    fn from(problem: CollectiveProblem) -> Self {
        Self::Part(problem)
    }
}

impl From<ReplayError> for Problem {
    fn from(error: ReplayError) -> Self {
        Self::Replay(Box::new(error))
    }
}

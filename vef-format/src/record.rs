//! The records of a VEF trace, in text or in a container.
//!
//! A trace is *self-related*: a record has a dependency ([`Dependency`]) and the computing time of its task after that,
//! but no absolute time. A replay starts record k of a task at
//!
//! ```text
//! start(k) = max( start(k−1), release(after) ) + time(k)
//! ```
//!
//! where `release` is the time at which the dependency is satisfied.

use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::units::{Bytes, Count, Picos, Ticks};
use std::io;

/// The version of a trace's grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// `VEF2`: read only. The "awaited" bit of messages is derived from the dependencies.
    V2,
    /// `VEF3`: read and written.
    #[default]
    V3,
}

/// The first line of a trace. Validation compares its counts with the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The grammar.
    pub version: Version,
    /// Number of tasks (size of `MPI_COMM_WORLD`).
    pub tasks: u32,
    /// Number of point-to-point lines, local marks included.
    pub messages: u64,
    /// Number of communicator lines.
    pub communicators: u64,
    /// Number of distinct `G` ids.
    pub collectives: u64,
    /// Number of `G` lines: one for each member.
    pub local_collectives: u64,
    /// Version 2: number of awaited messages. Version 3: obsolete, 0.
    pub received: u64,
    /// Picoseconds in one [`Ticks`].
    pub clock: Picos,
}

/// Numbers of lines of a trace, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Point-to-point lines, local marks included.
    pub messages: u64,
    /// Communicator lines.
    pub communicators: u64,
    /// Distinct `G` ids.
    pub collectives: u64,
    /// `G` lines.
    pub local_collectives: u64,
}

/// A kind of lines of which the header has another number than there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongCount {
    /// The kind.
    pub kind: &'static str,
    /// The number in the header.
    pub promised: u64,
    /// The number of lines.
    pub found: u64,
}

impl Header {
    /// Tasks that a header may promise, however short its trace is.
    const FREE_TASKS: u64 = 1 << 16;

    /// Whether the header promises more tasks than a trace can have that has records of `most` at most (by its length in bytes, or in memory):
    /// no memory is allocated on its word alone.
    pub fn promises_too_many_tasks(&self, most: u64) -> bool {
        u64::from(self.tasks) > most.max(Self::FREE_TASKS)
    }

    /// The counts of the header that are not those `found`.
    pub fn wrong_counts(&self, found: &Counts) -> impl Iterator<Item = WrongCount> {
        let kinds = [
            ("point-to-point lines", self.messages, found.messages),
            ("communicators", self.communicators, found.communicators),
            ("collectives", self.collectives, found.collectives),
            ("lines of collectives", self.local_collectives, found.local_collectives),
        ];
        let wrong = kinds.into_iter().filter(|(_, promised, found)| promised != found);
        wrong.map(|(kind, promised, found)| WrongCount { kind, promised, found })
    }
}

/// Why a trace cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The output cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A rank outside of the header's tasks.
    #[error("task {task} in a trace of {}", Count(*.tasks, "task"))]
    Rank {
        /// The rank.
        task: u32,
        /// Number of tasks in the header.
        tasks: u32,
    },
    /// A communicator without members.
    #[error("communicator C{0} has no members")]
    NoMembers(u32),
    /// The header, already written, has another number of lines.
    #[error("the header promises {} {}, {} were written", .0.promised, .0.kind, .0.found)]
    Count(WrongCount),
    /// Compression was requested, and this program has no zstd.
    #[error("compression needs a program that was built with zstd")]
    NoZstd,
    /// A note of a task's section for the trace, or the reverse.
    #[error("a note of section {section} for {}", match .task {
        Some(task) => format!("task {task}"),
        None => "no task".to_owned(),
    })]
    Note {
        /// Its section.
        section: &'static str,
        /// Its task.
        task: Option<Rank>,
    },
    /// Something does not fit into a block of a container.
    #[error("{what} of {bytes} bytes: a block holds at most {most}")]
    TooLarge {
        /// What does not fit.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The maximum.
        most: usize,
    },
}

impl WriteError {
    /// Refuses a task that a trace of `tasks` tasks does not have.
    #[inline(always)]
    pub(crate) fn unless_task(task: Rank, tasks: u32) -> Result<(), Self> {
        if task.0 < tasks { Ok(()) } else { Err(Self::Rank { task: task.0, tasks }) }
    }
}

/// The dependency of a record: its computing time begins when this is satisfied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// None: the first record of its task or thread; its time counts from the start of `MPI_Init`.
    Start,
    /// This send or local mark of the same task, complete for the sender.
    Sent(MessageId),
    /// The reception of this message.
    Received(MessageId),
    /// The task's part of this collective.
    Collective(CollectiveId),
}

impl Dependency {
    /// The two low bits of `dep` in a trace line.
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::Start => 0,
            Self::Sent(_) => 1,
            Self::Received(_) => 2,
            Self::Collective(_) => 3,
        }
    }
}

/// A point-to-point line: a message or a local mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Unique among point-to-point lines.
    pub id: MessageId,
    /// The sending task.
    pub src: Rank,
    /// The receiving task.
    pub dst: Rank,
    /// Payload.
    pub bytes: Bytes,
    /// Whether a record waits for its reception (`+4` in `dep`).
    pub awaited: bool,
    /// Its dependency.
    pub after: Dependency,
    /// Computing time in front of it.
    pub time: Ticks,
}

impl Message {
    /// Whether this is a local mark: the time at which its task enters a blocking receive, a wait for a receive, or
    /// `MPI_Finalize`. A mark is an empty message of a task to itself whose reception no record waits for.
    #[inline]
    pub fn is_mark(&self) -> bool {
        self.src == self.dst && self.bytes.0 == 0 && !self.awaited
    }
}

/// A `G` line: one task's part of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalCollective {
    /// The same for all members of the operation.
    pub id: CollectiveId,
    /// The communicator.
    pub comm: CommId,
    /// The operation.
    pub op: OpCode,
    /// The task.
    pub task: Rank,
    /// Bytes that the task sends and receives.
    pub amounts: Amounts,
    /// Its dependency.
    pub after: Dependency,
    /// Computing time in front of it.
    pub time: Ticks,
}

/// A communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Unique among communicators.
    pub id: CommId,
    /// World ranks of the members, in communicator-rank order.
    pub members: Vec<Rank>,
}

/// Any line after the header, with the members of a communicator as `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyLine<M> {
    /// A `C` line.
    Communicator {
        /// Unique among communicators.
        id: CommId,
        /// World ranks of the members, in communicator-rank order; at least one, at most the number of tasks.
        members: M,
    },
    /// A point-to-point line.
    Message(Message),
    /// A `G` line.
    Collective(LocalCollective),
}

/// A line of a trace; the members of a communicator are borrowed from the reader.
pub type Line<'a> = AnyLine<&'a [Rank]>;

/// A line of a trace that borrows nothing.
pub type Record = AnyLine<Vec<Rank>>;

impl<M: AsRef<[Rank]>> AnyLine<M> {
    /// Borrows the line.
    pub fn borrowed(&self) -> Line<'_> {
        match self {
            Self::Communicator { id, members } => Line::Communicator { id: *id, members: members.as_ref() },
            Self::Message(message) => Line::Message(*message),
            Self::Collective(part) => Line::Collective(*part),
        }
    }

    /// Copies the line.
    pub fn to_record(&self) -> Record {
        match self {
            Self::Communicator { id, members } => {
                Record::Communicator { id: *id, members: members.as_ref().to_vec() }
            }
            Self::Message(message) => Record::Message(*message),
            Self::Collective(part) => Record::Collective(*part),
        }
    }

    /// The task of a record; `None` for a communicator.
    pub fn task(&self) -> Option<Rank> {
        match self {
            Self::Communicator { .. } => None,
            Self::Message(message) => Some(message.src),
            Self::Collective(part) => Some(part.task),
        }
    }

    /// The dependency of a record; [`Dependency::Start`] for a communicator.
    pub fn after(&self) -> Dependency {
        match self {
            Self::Communicator { .. } => Dependency::Start,
            Self::Message(message) => message.after,
            Self::Collective(part) => part.after,
        }
    }
}

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
use crate::units::{Bytes, Picos, Ticks};

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

/// A `C` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Unique among communicators.
    pub id: CommId,
    /// World ranks of the members, in communicator-rank order.
    pub members: Vec<Rank>,
}

/// Any line after the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A `C` line.
    Communicator(Communicator),
    /// A point-to-point line.
    Message(Message),
    /// A `G` line.
    Collective(LocalCollective),
}

/// A line of a trace; the members of a communicator are borrowed from the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A `C` line.
    Communicator {
        /// Unique among communicators.
        id: CommId,
        /// World ranks of the members, in communicator-rank order; at least one, at most the number of tasks.
        members: &'a [Rank],
    },
    /// A point-to-point line.
    Message(Message),
    /// A `G` line.
    Collective(LocalCollective),
}

impl<'a> Line<'a> {
    /// Borrows `record` as a line.
    pub fn of(record: &'a Record) -> Self {
        match record {
            Record::Communicator(comm) => Self::Communicator { id: comm.id, members: &comm.members },
            Record::Message(message) => Self::Message(*message),
            Record::Collective(part) => Self::Collective(*part),
        }
    }

    /// Copies the line.
    pub fn to_record(&self) -> Record {
        match *self {
            Self::Communicator { id, members } => {
                Record::Communicator(Communicator { id, members: members.to_vec() })
            }
            Self::Message(message) => Record::Message(message),
            Self::Collective(collective) => Record::Collective(collective),
        }
    }
}

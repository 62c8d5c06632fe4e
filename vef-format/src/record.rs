//! The records of a VEF trace, whatever file they stand in.
//!
//! A trace is *self-related*: a record says what it waits for ([`Dependency`]) and how long its task
//! computes after that, never when it happened. A replay starts record k of a task at
//!
//! ```text
//! start(k) = max( start(k−1), release(after) ) + time(k)
//! ```
//!
//! where `release` is the moment the dependency is fulfilled.

use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::units::{Bytes, Picos, Ticks};

/// Which grammar a trace is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `VEF2`: read only; the "awaited" bit of messages is derived from the dependencies.
    V2,
    /// `VEF3`: read and written.
    V3,
}

/// The first line of a trace. Its counts are promises; validation compares them with the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The grammar.
    pub version: Version,
    /// Number of tasks (`MPI_COMM_WORLD`'s size).
    pub tasks: u32,
    /// Point-to-point lines, local marks included.
    pub messages: u64,
    /// Communicator lines.
    pub communicators: u64,
    /// Distinct `G` ids.
    pub collectives: u64,
    /// `G` lines: one a member task.
    pub local_collectives: u64,
    /// Version 2: messages that somebody waits for. Version 3: obsolete, 0.
    pub received: u64,
    /// Picoseconds in one [`Ticks`].
    pub clock: Picos,
}

/// What a record waits for before its computing time begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// Nothing: the first record of its task; its time counts from the start of `MPI_Init`.
    Start,
    /// The previous event of the task was this send (or local mark); complete for the sender.
    Sent(MessageId),
    /// The previous event of the task completed the reception of this message.
    Received(MessageId),
    /// The previous event of the task was its part of this collective.
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

/// A point-to-point line: a message, or a local mark.
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
    /// Whether its reception is waited for (`+4` in `dep`).
    pub awaited: bool,
    /// What it waits for.
    pub after: Dependency,
    /// Computing time in front of it.
    pub time: Ticks,
}

impl Message {
    /// Whether this is no message but the moment at which its task enters a blocking receive, a wait for
    /// a receive, or `MPI_Finalize`: a task to itself, without bytes, that nobody waits for.
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
    /// On which communicator.
    pub comm: CommId,
    /// Which operation.
    pub op: OpCode,
    /// Whose part this is.
    pub task: Rank,
    /// What this task contributes and obtains.
    pub amounts: Amounts,
    /// What it waits for.
    pub after: Dependency,
    /// Computing time in front of it.
    pub time: Ticks,
}

/// A `C` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Its number, unique among communicators.
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

/// A record as it stands in a trace; the members of a communicator lie in the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A `C` line.
    Communicator {
        /// Its number.
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
    /// `record` as a line.
    pub fn of(record: &'a Record) -> Self {
        match record {
            Record::Communicator(comm) => Self::Communicator { id: comm.id, members: &comm.members },
            Record::Message(message) => Self::Message(*message),
            Record::Collective(part) => Self::Collective(*part),
        }
    }

    /// The record on its own.
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

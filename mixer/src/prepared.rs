//! Records of which all is known but the ids that their lines will have.

use crate::matching::Fate;
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, OpCode};
use vef_format::units::Bytes;

/// A record before it has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// Whose it is.
    pub(crate) task: Rank,
    /// Which thread of the task it belongs to, if that has several.
    pub(crate) thread: Option<u16>,
    /// When its turn comes, on the clock of all.
    pub(crate) start: u64,
    /// Computing time in front of it; of a task with several threads, since the thread's event before.
    pub(crate) time: u64,
    /// What it waits for.
    pub(crate) awaits: Awaits,
    /// What it is.
    pub(crate) what: What,
}

/// What a record waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// Nothing.
    Start,
    /// The latest message or mark of its thread.
    Sent,
    /// A message, by its task and its index there. No other record waits for it.
    Received { source: Rank, message: u32 },
    /// The operation at a position of a communicator (by identity).
    Collective { comm: u32, position: u32 },
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A local mark.
    Mark,
    /// A message, by its index in its task.
    Message { number: u32, dst: Rank, bytes: Bytes, fate: Fate },
    /// The operation at a position of a communicator (by identity).
    Collective { comm: u32, position: u32, code: OpCode, amounts: Amounts },
}

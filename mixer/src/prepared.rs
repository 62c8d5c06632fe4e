//! Records that lack nothing but ids.

use crate::matching::Fate;
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, OpCode};

/// A record before it has an id. It is one cache line, because records are read in another order than they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Prepared {
    /// Its task.
    pub(crate) task: Rank,
    /// Its thread, if the task has several.
    pub(crate) thread: Option<u16>,
    /// Its start, on the common clock.
    pub(crate) start: u64,
    /// Computing time since the thread's previous event.
    pub(crate) time: u64,
    /// Its dependency.
    pub(crate) awaits: Awaits,
    /// Its kind.
    pub(crate) what: What,
    /// Bytes that it sends, and that a collective receives.
    pub(crate) amounts: Amounts,
}

const _: () = assert!(size_of::<Prepared>() == 64);

/// Dependency of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// None.
    Start,
    /// The latest message or mark of its thread.
    Sent,
    /// A message, by sending task and index there. At most one record depends on a message.
    Received { source: Rank, message: u32 },
    /// An operation, by communicator (identity) and position.
    Collective { comm: u32, position: u32 },
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A local mark.
    Mark,
    /// A message; `number` is its index in its task.
    Message { number: u32, dst: Rank, fate: Fate },
    /// A part of an operation, by communicator (identity) and position.
    Collective { comm: u32, position: u32, code: OpCode },
}

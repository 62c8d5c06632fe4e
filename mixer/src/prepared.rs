//! Records that lack nothing but ids.

use crate::index::{CommIndex, MessageIndex, OperationIndex};
use vef_format::ids::Rank;
use vef_format::raw::Raw;

/// A record before it has an id. It is one cache line, because records are read in another order than they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Prepared {
    /// The record, with indices in place of ids, which numbering replaces:
    ///
    /// - `after`: a [`MessageRef`] or [`OperationRef`];
    /// - `id` of a message: its [`MessageIndex`], with [`HAS_DEPENDENT`] if a record depends on it; of a collective: its
    ///   [`OperationIndex`];
    /// - `to` of a collective: its [`CommIndex`].
    pub(crate) raw: Raw,
    /// Its start, on the common clock.
    pub(crate) start: u64,
    /// Its task.
    pub(crate) task: Rank,
    /// Its thread, if the task has several.
    pub(crate) thread: Option<u16>,
}

const _: () = assert!(size_of::<Prepared>() == 64);

/// In the index of a message: a record depends on the message. At most one does.
pub(crate) const HAS_DEPENDENT: u64 = 1 << 32;

/// A message, by its sender and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageRef {
    pub(crate) source: Rank,
    pub(crate) message: MessageIndex,
}

/// An operation, by its communicator and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OperationRef {
    pub(crate) comm: CommIndex,
    pub(crate) operation: OperationIndex,
}

impl MessageRef {
    /// As one number.
    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.source.0) << 32 | u64::from(self.message.0)
    }

    /// Inverts [`MessageRef::pack`].
    #[inline(always)]
    pub(crate) fn unpack(packed: u64) -> Self {
        Self { source: Rank((packed >> 32) as u32), message: MessageIndex(packed as u32) }
    }
}

impl OperationRef {
    /// The operation of a prepared collective.
    #[inline(always)]
    pub(crate) fn of(raw: &Raw) -> Self {
        Self { comm: CommIndex(raw.to), operation: OperationIndex(raw.id as u32) }
    }

    /// As one number.
    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.comm.0) << 32 | u64::from(self.operation.0)
    }

    /// Inverts [`OperationRef::pack`].
    #[inline(always)]
    pub(crate) fn unpack(packed: u64) -> Self {
        Self { comm: CommIndex((packed >> 32) as u32), operation: OperationIndex(packed as u32) }
    }
}

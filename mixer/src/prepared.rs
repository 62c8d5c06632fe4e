//! Records that lack nothing but ids.

use vef_format::ids::Rank;
use vef_format::raw::Raw;

/// A record before it has an id. It is one cache line, because records are read in another order than they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Prepared {
    /// The record, but instead of ids: of a dependency on a message, its sending task and index there ([`join`]); of one on
    /// a collective, communicator (identity) and position; of a message, its index in its task, with [`EXPECTED`] if a
    /// record depends on it; of a collective, its position. The communicator of a collective is its identity.
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
pub(crate) const EXPECTED: u64 = 1 << 32;

/// Two numbers as one.
#[inline(always)]
pub(crate) fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Inverts [`join`].
#[inline(always)]
pub(crate) fn split(joined: u64) -> (u32, u32) {
    ((joined >> 32) as u32, joined as u32)
}

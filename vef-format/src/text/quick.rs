//! Message lines as every writer leaves them, parsed in one go.
//!
//! That is: one blank between fields, nothing in front or behind, at most [`LONGEST`] bytes, numbers of fewer than
//! sixteen digits. A line that is otherwise, be it wrong or only unusual, is left to the careful way of
//! [`super::scan`], which also knows what to say of it.

use crate::ids::Rank;
use crate::raw::Raw;

/// Bytes of the longest line, its end included.
pub(super) const LONGEST: usize = 64;
/// Bytes in front of the line that are looked at, whatever they are.
pub(super) const BEFORE: usize = 16;
/// Bytes that are looked at: eight at a time from any place in the line.
pub(super) const ROOM: usize = BEFORE + LONGEST + 8;

/// The message line that begins [`BEFORE`] bytes into `room`, in a trace of `tasks` tasks: its sender, what it says, and
/// its length.
#[inline(always)]
pub(super) fn message(room: &[u8; ROOM], tasks: u32) -> Option<(Rank, Raw, usize)> {
    #[cfg(target_arch = "x86_64")]
    return super::vector::message(room, tasks);
    #[cfg(not(target_arch = "x86_64"))]
    return super::words::message(room, tasks);
}

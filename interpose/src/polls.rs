//! A run of failed polls (`MPI_Test`, `MPI_Iprobe` and the like), which becomes one record.

use vef_format::capture::event::CallSlot;

/// Polls with fewer ticks between them are one run: 2–4 µs at 2–4 GHz.
const GAP: u64 = 1 << 13;

/// A run of failed polls that is not written yet.
pub(crate) struct Polls {
    /// The function of the first poll.
    pub(crate) call: CallSlot,
    pub(crate) count: u64,
    pub(crate) start: u64,
    /// The end of the last poll.
    pub(crate) end: u64,
}

impl Polls {
    /// Whether a poll that begins at `start` is one of the run.
    #[inline(always)]
    pub(crate) fn go_on(&self, start: u64) -> bool {
        start.wrapping_sub(self.end) < GAP
    }
}

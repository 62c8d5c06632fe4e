//! The answers that a task gives to one-sided requests of others.

use crate::index::CommIndex;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// A request of another task, which this one answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The communicator of the window.
    pub(crate) comm: CommIndex,
    /// The task that asks.
    pub(crate) origin: Rank,
    /// When it asked, on the clock of this task.
    pub(crate) at: u64,
    /// Bytes of the answer.
    pub(crate) bytes: Bytes,
    /// Orders requests of the same time.
    pub(crate) round: u32,
}

/// The answers that a task has not given yet, in the order of the requests.
#[derive(Debug, Default)]
pub(super) struct Answers<'a> {
    pub(super) rest: &'a [Answer],
    /// When the latest call returned.
    pub(super) busy_until: u64,
}

impl<'a> Answers<'a> {
    /// All answers of a task.
    pub(super) fn new(all: &'a [Answer]) -> Self {
        Self { rest: all, busy_until: 0 }
    }

    /// Whether all are given.
    #[inline(always)]
    pub(super) fn are_given(&self) -> bool {
        self.rest.is_empty()
    }
}

//! The end of a search.

use std::time::Instant;

/// The time at which a search ends in any case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(pub(super) Instant);

impl Deadline {
    pub(super) fn is_over(self) -> bool {
        Instant::now() > self.0
    }
}

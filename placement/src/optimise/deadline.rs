//! When the search for a placement ends.

use std::time::Instant;

/// When the search for a placement ends, whatever is left to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(pub(super) Instant);

impl Deadline {
    pub(super) fn is_over(self) -> bool {
        Instant::now() > self.0
    }
}

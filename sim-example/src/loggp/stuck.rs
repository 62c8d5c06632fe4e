//! The error for a GOAL schedule that cannot end.

use std::fmt;
use vef_format::units::Count;

/// An operation that never starts or completes, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// With its rank and place: `line 5`, or `operation 5` of a binary file.
    pub(super) operation: String,
    pub(super) why: String,
}

/// A schedule that cannot end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct StuckSchedule {
    /// Number of operations that are not done.
    pub operations: u64,
    /// At most [`NAMED`] of them.
    pub(super) first: Vec<Waiting>,
}

/// Most operations that the error names.
pub(super) const NAMED: usize = 5;

impl fmt::Display for StuckSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schedule cannot end: {} not done", Count(self.operations, "operation"))?;
        for Waiting { operation, why } in &self.first {
            write!(f, "; {operation} {why}")?;
        }
        Ok(())
    }
}

//! Progress of a simulation that runs.

use vef_format::units::Picos;

/// How far a simulation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Messages delivered.
    pub delivered: u64,
    /// Simulated time.
    pub now: Picos,
}

/// Moments of simulated time with at least one event between two reports of progress.
pub(crate) const PROGRESS_EVERY: u32 = 1 << 16;

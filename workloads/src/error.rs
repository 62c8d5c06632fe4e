//! Errors in a workload.

use vef_format::record::WriteError;

/// An invalid workload, or an error in writing it.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A parameter is invalid.
    #[error("{what}: {problem}")]
    Setting {
        /// The parameter.
        what: &'static str,
        /// The error.
        problem: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

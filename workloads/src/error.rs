//! Errors in a workload.

use vef_format::container::ContainerWriteError;
use vef_format::text::WriteError;

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
    /// The text cannot be written.
    #[error(transparent)]
    Text(#[from] WriteError),
    /// The container cannot be written.
    #[error(transparent)]
    Container(#[from] ContainerWriteError),
}

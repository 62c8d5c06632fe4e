//! Why there is no such trace.

use vef_format::container::ContainerWriteError;
use vef_format::text::WriteError;

/// Why a trace cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A number that makes no sense.
    #[error("{what}: {problem}")]
    Setting {
        /// Which.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The text cannot be written.
    #[error(transparent)]
    Text(#[from] WriteError),
    /// The container cannot be written.
    #[error(transparent)]
    Container(#[from] ContainerWriteError),
}

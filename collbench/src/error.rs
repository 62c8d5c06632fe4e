//! Errors, by who has them and what else can still be measured.

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// MPI failed, perhaps at this rank alone.
    #[error(transparent)]
    Mpi(#[from] mpi_abi::Error),
    /// A timer, a file or a function of a user's library failed, perhaps at this rank alone.
    #[error("{0}")]
    Local(String),
    /// An operation, or a size of it, cannot be measured, at any rank; others can.
    #[error("{0}")]
    Unmeasurable(String),
    /// Next to no run of the window method started and ended in time.
    #[error("the window method collapsed: {good} of {runs} runs started and ended in time ({why})")]
    Collapsed {
        /// Runs that can be used.
        good: usize,
        /// Runs made.
        runs: usize,
        /// The likely reason.
        why: String,
    },
    /// Settings, inputs or measurements are invalid, at all ranks alike.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// A setting that makes no sense.
    pub(crate) fn setting(what: &str, given: impl std::fmt::Debug, reason: impl std::fmt::Display) -> Self {
        Error::Invalid(format!("{what} {given:?}: {reason}"))
    }

    /// A file that cannot be used.
    pub(crate) fn file(path: &std::path::Path, reason: impl std::fmt::Display) -> Self {
        Error::Local(format!("{}: {reason}", path.display()))
    }
}

impl From<collectives::Error> for Error {
    /// There is no such schedule.
    fn from(error: collectives::Error) -> Self {
        Error::Unmeasurable(error.to_string())
    }
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

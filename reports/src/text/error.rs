//! Why text traces are not written or not aggregated.

use std::io;
use std::path::{Path, PathBuf};
use vef_format::capture::CaptureError;
use vef_format::units::Count;

/// Why there are no traces, or no aggregation.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The directory holds neither a capture nor text traces.
    #[error("{0}: neither a capture nor ti_trace<rank>.txt files (`vef run --tool text` writes both)")]
    Nothing(PathBuf),
    /// A rank's file is not there.
    #[error("{0} is missing")]
    Missing(PathBuf),
    /// There are files of more ranks than the run had.
    #[error("{path} is of another run: this one had {}", Count(*.ranks, "rank"))]
    OfAnotherRun {
        /// The first of them.
        path: PathBuf,
        /// How many ranks there were.
        ranks: usize,
    },
    /// It cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A line that makes no sense.
    #[error("{path}:{line}: {what}")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The ranks' phases are not the same.
    #[error(
        "{path}:{line}: this rank {does}, but {other} {other_does}: all ranks must go through the same phases"
    )]
    Phases {
        /// A rank's file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What it says.
        does: String,
        /// Another rank's file.
        other: PathBuf,
        /// What that says.
        other_does: String,
    },
}

/// An error of a file.
pub(super) fn placed(path: &Path, error: io::Error) -> TextError {
    TextError::Io { path: path.into(), error }
}

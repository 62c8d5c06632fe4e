//! Errors of foreign traces, with their places.

use std::io;
use std::path::Path;
use vef_format::capture::CaptureError;
use vef_format::error::Located;
use vef_format::record::WriteError;
use vef_format::units::Count;

/// Why a trace of another tool cannot be read, and where.
pub type ImportError = Located<Problem>;

/// A result of a reader.
pub type Result<T> = std::result::Result<T, ImportError>;

/// Why a trace of another tool cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The operating system returned an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is of no format of the list.
    #[error(
        "no format of other tools is recognised; known are {0}; traces and captures of vef need no import"
    )]
    Unknown(String),
    /// The file ends within something.
    #[error("the file ends within {0}")]
    Truncated(&'static str),
    /// Something else than the format requires.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What the format requires here.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A rank is out of range.
    #[error("rank {rank}: there are {ranks} ranks, from 0")]
    NoRank {
        /// The rank.
        rank: u64,
        /// Number of ranks.
        ranks: u32,
    },
    /// A number or a time is out of range.
    #[error("{0} is too large")]
    TooLarge(String),
    /// Ranks of the run have no file.
    #[error("rank {rank} of {ranks} is missing{}; vef import --partial imports the others", more(*.missing))]
    MissingRank {
        /// The first missing rank.
        rank: u32,
        /// Number of missing ranks.
        missing: u32,
        /// Number of ranks of the run.
        ranks: u32,
    },
    /// A version or a feature of the format that is not read, and what to do instead.
    #[error("{what} cannot be imported: {advice}")]
    Unsupported {
        /// What the file has.
        what: String,
        /// What the user can do.
        advice: &'static str,
    },
    /// The trace contradicts itself.
    #[error("{0}")]
    Invalid(String),
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(Box<CaptureError>),
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<CaptureError> for Problem {
    fn from(error: CaptureError) -> Self {
        Self::Capture(Box::new(error))
    }
}

impl Problem {
    /// The problem, in the whole of `path`.
    pub fn of_file(self, path: &Path) -> ImportError {
        Located::file(path, self)
    }
}

fn more(missing: u32) -> String {
    if missing > 1 { format!(", and {}", Count(missing - 1, "other")) } else { String::new() }
}

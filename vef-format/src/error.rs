//! Places in files. Every error of this crate carries a [`Place`].

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// A problem, and its place.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Located<P: Error + 'static> {
    /// The file, and the line, offset or record.
    pub place: Place,
    /// The problem.
    #[source]
    pub problem: P,
}

impl<P: Error> Located<P> {
    /// A problem of the whole of `path`.
    pub fn file(path: &Path, problem: impl Into<P>) -> Self {
        Self { place: Place::file(path), problem: problem.into() }
    }

    /// A problem of line `line` (1-based) of `path`.
    pub fn line(path: &Path, line: u64, problem: impl Into<P>) -> Self {
        Self { place: Place::line(path, line), problem: problem.into() }
    }
}

/// A file and a position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path, as the caller gave it.
    pub path: PathBuf,
    /// The position.
    pub spot: Spot,
}

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The whole file: it is missing, empty, or of another kind.
    File,
    /// A line of a text file, 1-based.
    Line(u64),
    /// A byte offset in a binary file.
    Offset(u64),
    /// A record of a binary file.
    Record {
        /// Index of the record, 0-based.
        number: u64,
        /// Its byte offset.
        offset: u64,
    },
}

impl Place {
    /// The whole of `path`.
    pub fn file(path: &Path) -> Self {
        Self { path: path.to_path_buf(), spot: Spot::File }
    }

    /// Line `line` (1-based) of `path`.
    pub fn line(path: &Path, line: u64) -> Self {
        Self { path: path.to_path_buf(), spot: Spot::Line(line) }
    }

    /// Byte `offset` of `path`.
    pub fn offset(path: &Path, offset: u64) -> Self {
        Self { path: path.to_path_buf(), spot: Spot::Offset(offset) }
    }

    /// Record `number` (0-based) of `path`, which begins at byte `offset`.
    pub fn record(path: &Path, number: u64, offset: u64) -> Self {
        Self { path: path.to_path_buf(), spot: Spot::Record { number, offset } }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.spot {
            Spot::File => Ok(()),
            Spot::Line(line) => write!(f, ":{line}"),
            Spot::Offset(offset) => write!(f, " at byte {offset}"),
            Spot::Record { number, offset } => write!(f, ": record {number} at byte {offset}"),
        }
    }
}

//! Errors of captures, with their places.

use crate::error::Place;
use crate::ids::Rank;
use crate::units::Count;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Why a capture cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The operating system returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A directory with neither of the layouts.
    #[error("{}: no capture here: neither <rank>.vefc files nor VEFT.main", .0.display())]
    NoCapture(PathBuf),
    /// A file in place of a directory.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The file of a rank is missing.
    #[error("{}: the capture is of {}, but the file of rank {rank} is missing", path.display(), Count(*.tasks, "task"))]
    MissingRank {
        /// The expected file.
        path: PathBuf,
        /// Its rank.
        rank: Rank,
        /// Number of tasks of the capture.
        tasks: u32,
    },
    /// The directory has rank files of different runs.
    #[error("{place}: {what}")]
    Mixed {
        /// The file of the other run.
        place: Place,
        /// The difference.
        what: String,
    },
    /// Nothing was written to the file.
    #[error(
        "{0}: nothing was recorded in it: the disk was full, or its process was killed, when the recording began"
    )]
    Empty(Place),
    /// Space was reserved for the file, and nothing written: its process ended before that.
    #[error("{0}: no call was recorded in it: its process was killed in MPI_Init")]
    Killed(Place),
    /// The process that writes the file is still running, so the file is incomplete.
    #[error("{0}: its process still runs; wait for its end, or mix what is there (vef mix --lenient)")]
    InUse(Place),
    /// The file has another format.
    #[error("{0}: not a capture file (wrong magic)")]
    Magic(Place),
    /// The file was written with the other byte order.
    #[error("{0}: written with the other byte order; read it on a machine of the writer's kind")]
    Endianness(Place),
    /// The file has a version that cannot be read.
    #[error("{place}: format version {found}; this reader knows {} to {}", known.start(), known.end())]
    Version {
        /// The file.
        place: Place,
        /// Its version.
        found: u32,
        /// The versions that can be read.
        known: RangeInclusive<u32>,
    },
    /// The file is shorter than its header says.
    #[error("{place}: truncated: {promised} bytes were written, {present} are here")]
    Truncated {
        /// The file.
        place: Place,
        /// The length in its header.
        promised: u64,
        /// Its length.
        present: u64,
    },
    /// Invalid bytes.
    #[error("{place}: {what}")]
    Damaged {
        /// Their place.
        place: Place,
        /// The problem.
        what: String,
    },
    /// A capture of the older layout cannot be read.
    #[error(transparent)]
    Legacy(#[from] super::legacy::LegacyError),
    /// [`super::RankWriter`] was given an impossible event.
    #[error("event {number} cannot be written: {what}")]
    Event {
        /// Index of the event, 0-based.
        number: u64,
        /// The problem.
        what: String,
    },
}

impl CaptureError {
    /// Wraps an error of the operating system about `path`.
    pub(super) fn io(path: &std::path::Path, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}

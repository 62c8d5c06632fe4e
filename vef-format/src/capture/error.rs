//! What can be wrong with a capture, and where.

use crate::error::Place;
use crate::ids::Rank;
use std::io;
use std::path::PathBuf;

/// A capture that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A directory holds neither of the layouts.
    #[error("{}: no capture here: neither <rank>.vefc files nor VEFT.main", .0.display())]
    NoCapture(PathBuf),
    /// A rank's file is not there.
    #[error("{}: the capture is of {tasks} tasks, but the file of rank {rank} is missing", path.display())]
    MissingRank {
        /// The file that should be there.
        path: PathBuf,
        /// Whose it is.
        rank: Rank,
        /// How many tasks the capture has.
        tasks: u32,
    },
    /// Rank files of different runs lie in one directory.
    #[error("{place}: {what}")]
    Mixed {
        /// Which file does not fit.
        place: Place,
        /// What differs.
        what: String,
    },
    /// Nothing was ever written to the file.
    #[error(
        "{0}: nothing was recorded in it: the disk was full, or its process was killed, when the recording began"
    )]
    Empty(Place),
    /// The process that writes the file still runs, so what it holds is not whole.
    #[error("{0}: its process still runs; wait for its end, or mix what is there (--lenient)")]
    InUse(Place),
    /// The file is none of this format.
    #[error("{0}: not a capture file (wrong magic)")]
    Magic(Place),
    /// The file was written on a machine of the other byte order.
    #[error("{0}: written with the other byte order; read it on a machine of the writer's kind")]
    Endianness(Place),
    /// The file is of a later version.
    #[error("{place}: format version {found}, this reader knows {known}")]
    Version {
        /// Which file.
        place: Place,
        /// The version it has.
        found: u32,
        /// The version known here.
        known: u32,
    },
    /// The file ends before it should.
    #[error("{place}: truncated: {promised} bytes were written, {present} are here")]
    Truncated {
        /// Which file.
        place: Place,
        /// The length its header gives.
        promised: u64,
        /// The length it has.
        present: u64,
    },
    /// The bytes make no sense.
    #[error("{place}: {what}")]
    Damaged {
        /// Where.
        place: Place,
        /// What is wrong there.
        what: String,
    },
    /// A capture of the older layout cannot be read.
    #[error(transparent)]
    Legacy(#[from] super::legacy::LegacyError),
    /// [`super::RankWriter`] was given an event that no rank can produce.
    #[error("event {number} cannot be written: {what}")]
    Event {
        /// Which event, 0-based.
        number: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl CaptureError {
    /// An error of the operating system about `path`.
    pub(super) fn io(path: &std::path::Path, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}

//! What is to be drawn, what was, and why there is nothing.

use replay::{BuildError, LoadError, Picos, ReplayError, Stuck};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use vef_format::capture::CaptureError;
use vef_format::container::ContainerError;
use vef_format::ids::Rank;

/// What the file is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's protocol buffers.
    #[default]
    Perfetto,
    /// Chrome's trace events, in JSON.
    Json,
}

/// What is drawn of a source.
#[derive(Clone, Debug)]
pub struct Settings {
    /// For which viewers.
    pub format: Format,
    /// The part of the time that is drawn, in ns from the start: slices that touch it, whole.
    pub window: Range<u64>,
    /// The ranks that are drawn; `None`: all.
    pub ranks: Option<BTreeSet<u32>>,
    /// The most bytes that the file may have. Where all slices would have more, short ones are put together.
    pub most_bytes: u64,
}

/// What was drawn.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Slices of single calls, waits and collectives.
    pub slices: u64,
    /// Slices that stand for several short ones.
    pub merged_slices: u64,
    /// The short ones that these stand for.
    pub merged: u64,
    /// What is shorter than this was put together, ns; `None`: everything fits.
    pub shorter_than: Option<u64>,
    /// Curves, and how many more there are that did not fit.
    pub curves: [u64; 2],
    /// Ends of arrows: messages at their senders, and at their receivers.
    pub arrows: [u64; 2],
    /// Bytes of the file.
    pub bytes: u64,
    /// When the last of it ends, ns from the start.
    pub end: u64,
    /// Why the replay of a trace did not come to its end.
    pub stuck: Option<Box<Stuck>>,
}

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The trace cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A file cannot be opened.
    #[error("{path}: {error}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What a container says beside its records cannot be read.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The trace cannot be replayed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It can up to a point.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The result of a simulation cannot be read.
    #[error("{path}: not the result of a simulation (vef sim --json --links): {error}")]
    Result {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        error: serde_json::Error,
    },
    /// It does not tell about links over time.
    #[error("{0}: a result that says nothing of links over time; vef sim --json --links makes one that does")]
    NoLinks(PathBuf),
    /// The file cannot be written.
    #[error("the timeline cannot be written: {0}")]
    Write(#[from] io::Error),
    /// A rank that is to be drawn does not exist.
    #[error("there is no rank {rank}: there are {ranks}")]
    NoRank {
        /// The first of those.
        rank: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// Nothing can be put together so that it fits.
    #[error(
        "a timeline of {tracks} tracks needs more than {most} bytes, however little of each is drawn: draw fewer ranks, or allow more"
    )]
    TooLarge {
        /// Tracks that have anything.
        tracks: u64,
        /// The limit.
        most: u64,
    },
}

impl Settings {
    /// Whether a rank is drawn.
    pub(super) fn has(&self, rank: Rank) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.contains(&rank.0))
    }

    /// Refuses ranks beyond the last.
    pub(super) fn check_ranks(&self, tasks: u32) -> Result<(), TimelineError> {
        match self.ranks.iter().flatten().find(|&&rank| rank >= tasks) {
            Some(&rank) => Err(TimelineError::NoRank { rank, ranks: tasks }),
            None => Ok(()),
        }
    }

    /// The end of the window as the time of a replay.
    pub(super) fn until(&self) -> Picos {
        Picos(self.window.end.saturating_mul(PICOS_PER_NANO))
    }
}

pub(super) const PICOS_PER_NANO: u64 = 1000;

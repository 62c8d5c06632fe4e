//! Settings of a timeline, the summary of what was drawn, and errors.

use crate::report::SimulationError;
use replay::{BuildError, LoadError, Picos, ReplayError, Stuck};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use vef_format::capture::CaptureError;
use vef_format::container::ContainerError;
use vef_format::ids::Rank;

/// The format of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's protocol buffers.
    #[default]
    Perfetto,
    /// Chrome's trace events, in JSON.
    Json,
}

/// Which part of a source is drawn, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The format of the file.
    pub format: Format,
    /// The window of time, in ns from the start. Slices that overlap it are clipped.
    pub window: Range<u64>,
    /// The ranks that are drawn; `None`: all.
    pub ranks: Option<BTreeSet<u32>>,
    /// Limit of the file's size. Short slices are merged where it would be exceeded.
    pub most_bytes: u64,
}

/// What was drawn.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Slices of single calls, waits and collectives.
    pub slices: u64,
    /// Slices that were merged from short ones.
    pub merged_slices: u64,
    /// Short slices that were merged into these.
    pub merged: u64,
    /// Slices shorter than this were merged, ns; `None`: nothing was merged.
    pub shorter_than: Option<u64>,
    /// Curves that were drawn, and those left out because they did not fit.
    pub curves: [u64; 2],
    /// Ends of arrows: messages at their senders, and at their receivers.
    pub arrows: [u64; 2],
    /// Bytes of the file.
    pub bytes: u64,
    /// End of the last slice, ns from the start.
    pub end: u64,
    /// End of what was read, drawn or not, ns from the start.
    pub reached: u64,
    /// Why the replay of a trace stopped before its end.
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
    /// A section of a container cannot be read.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The trace cannot be replayed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The replay failed on its way.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The result of a simulation cannot be read.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The simulation whose ranks are drawn failed; who runs it knows why.
    #[error("the simulation failed")]
    Simulate,
    /// The result has no links over time.
    #[error("{0}: a result that says nothing of links over time; vef sim --json --links makes one that does")]
    NoLinks(PathBuf),
    /// The file cannot be written.
    #[error("the timeline cannot be written: {0}")]
    Write(#[from] io::Error),
    /// A rank that is to be drawn does not exist.
    #[error("there is no rank {rank}: there are {ranks}")]
    NoRank {
        /// The first such rank.
        rank: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// The window begins behind the end of the run.
    #[error("there is nothing from {from} on: the run ends at {end}")]
    BehindTheEnd {
        /// Where the window begins.
        from: Picos,
        /// Where the run ends.
        end: Picos,
    },
    /// The file exceeds its limit even with all slices of a track merged.
    #[error(
        "a timeline of {tracks} tracks needs more than {most} bytes, however little of each is drawn: draw fewer ranks, or allow more"
    )]
    TooLarge {
        /// Tracks with at least one slice.
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

//! A part of a run: which records of a trace are replayed, and what becomes of those that depend on the others.
//!
//! A [`Part`] is what a user asks for; [`Job::select`](crate::Job::select) finds its records, a [`Selection`], which
//! [`Job::part`](crate::Job::part) gives to a replay. `docs/time.md` has the rules.

mod captured_time;
mod filter;
mod flow;
mod ids;
mod iterations;
mod pattern;
mod phases;
mod selection;
mod servers;
mod shapes;

pub(crate) use captured_time::captured_time;
pub(crate) use filter::{Ahead, Filter};
pub use filter::{LeftOut, PlaceInPart};
pub(crate) use iterations::iterations;
pub(crate) use phases::phase;
pub use selection::{Selection, Stretch};
pub(crate) use servers::add_answers;

use crate::source::{LoadError, SourceError};
use std::num::NonZeroU64;
use vef_format::units::{Count, Grouped, Picos};

/// A part of a run, as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A phase that the program has marked.
    Phase {
        /// Its name.
        name: String,
        /// Which time that a rank enters it, from 1; every time without it. Of a trace with a phase `name:entry` every time of that one.
        entry: Option<NonZeroU64>,
    },
    /// What was captured in this time, which counts from the return of each rank's `MPI_Init`.
    Captured {
        /// The beginning.
        from: Picos,
        /// The end; that of the run without it.
        to: Option<Picos>,
    },
    /// Iterations of the program's main loop, which is found in its records.
    Iterations {
        /// The first, from 1.
        first: NonZeroU64,
        /// The last; that of the loop without it.
        last: Option<NonZeroU64>,
    },
}

impl Part {
    /// A phase from `NAME` or `NAME:K`, the K-th time that a rank enters it, unless a phase has `NAME:K` as its name.
    pub fn phase(text: &str) -> Result<Self, PartError> {
        let entry = |text: &str| text.parse().ok().filter(|entry: &NonZeroU64| entry.to_string() == text);
        let (name, entry) = match text.rsplit_once(':').map(|(name, number)| (name, entry(number))) {
            Some((name, Some(entry))) => (name, Some(entry)),
            _ => (text, None),
        };
        match name.is_empty() {
            true => Err(PartError::Form("NAME or NAME:K, K from 1")),
            false => Ok(Self::Phase { name: name.to_owned(), entry }),
        }
    }

    /// Iterations from `FIRST`, `FIRST-LAST` or `FIRST-`, from 1.
    pub fn iterations(text: &str) -> Result<Self, PartError> {
        let wrong = || PartError::Form("FIRST, FIRST-LAST or FIRST-, from 1");
        let number = |text: &str| text.parse::<NonZeroU64>().map_err(|_| wrong());
        let (first, last) = match text.split_once('-') {
            None => (number(text)?, Some(number(text)?)),
            Some((first, "")) => (number(first)?, None),
            Some((first, last)) => (number(first)?, Some(number(last)?)),
        };
        match last.is_some_and(|last| last < first) {
            true => Err(wrong()),
            false => Ok(Self::Iterations { first, last }),
        }
    }
}

/// Why a trace has no such part.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// No part can be named so; what can be written.
    #[error("write {0}")]
    Form(&'static str),
    /// The trace knows no phases at all.
    #[error(
        "the trace has no phases: only containers (vef mix -o X.vefx) of programs that mark them have, and none that vef cut made of a part of the run"
    )]
    NoPhases,
    /// The trace has no times of the captured run.
    #[error(
        "the trace has no captured times: containers (vef mix -o X.vefx) have, unless messages without a partner were dropped"
    )]
    NoTimes,
    /// It ends before it begins.
    #[error("a part from {from} to {to}: it must end after it begins")]
    Backwards {
        /// The beginning.
        from: Picos,
        /// The end.
        to: Picos,
    },
    /// It has others.
    #[error("no phase {name:?} in the trace, which has {}", known.join(", "))]
    UnknownPhase {
        /// The name.
        name: String,
        /// The phases of the trace.
        known: Vec<String>,
    },
    /// It was not entered so often.
    #[error("phase {name:?} is entered at most {}", Count(*most, "time"))]
    Entry {
        /// The name.
        name: String,
        /// How often a rank enters it at most.
        most: u64,
    },
    /// No rank makes an MPI call in it, or computes; what it is.
    #[error("{0}: no rank calls MPI or computes in it")]
    Empty(String),
    /// It begins behind the last record of all ranks.
    #[error("captured time from {from}: the last MPI call of any rank begins at {last}")]
    Late {
        /// The beginning.
        from: Picos,
        /// When the last record of all ranks begins.
        last: Picos,
    },
    /// No rank does anything again and again.
    #[error(
        "no iterations found: no rank (at most 64 are tried) repeats something three times at least that makes up a quarter of its records"
    )]
    NoPattern,
    /// There are fewer iterations.
    #[error("iterations {asked}: the main loop has only {}", Grouped(*found))]
    Iterations {
        /// Which were asked for.
        asked: String,
        /// How many there are.
        found: u64,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] SourceError),
    /// The trace cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

//! Converts a capture into a trace: the events of each task become records that name their dependency and the
//! computing time in front of them. `docs/mixing.md` has the rules.
//!
//! ```text
//! events ─ task ─▶ records, places in channels ─ matching ─▶ partners ─┐
//!          (all tasks at once)                                         ├─ number ─▶ lines ─▶ trace
//!                    starts ─ order ─▶ turns ─ prepare ─▶ windows ──────┘
//! ```
//!
//! Every step is linear in the number of records, whatever the distance between a send and its receive. The output
//! depends neither on the number of threads nor on their scheduling. This crate never prints and knows no simulator.

#![forbid(unsafe_code)]

mod error;
mod summary;

mod mix;

mod function;
mod read;
mod tally;
mod task;
mod thread_notes;
mod walk;

mod communicators;
mod lower;

mod channels;
mod packed;

mod agreement;
mod matching;

mod numbering;
mod order;
mod prepare;
mod prepared;
mod stations;
mod window;

mod output;
mod sink;
mod write;

mod available;
mod bytes;
mod fit;
mod job;
mod parts;
mod wire;

pub use bytes::Garbled;
pub use error::{Call, Disagreement, JobError, MixError, Problem, Waiting};
pub use job::Job;
pub use mix::{mix, mix_among};
pub use summary::{Dropped, Spent, Summary, Tally, Times, Unmatched, UnmatchedKind, UnmatchedMessage};

pub use collectives::choose::Table;
use std::path::PathBuf;
use vef_format::operation::OpCodes;
use vef_format::units::Bytes;

/// Settings of a mix.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Drop sends and receives without a partner, and collectives that some members did not call, instead of
    /// returning an error. Captures of killed programs are always mixed this way.
    pub lenient: bool,
    /// Skip events of unknown type instead of returning an error.
    pub skip_unknown: bool,
    /// Approximate limit on memory, of each process of a job. A capture that needs more is read several times and mixed
    /// in parts, with a temporary file. `None`: half of the free memory (within the control group), divided among the
    /// processes of a node. One task, and what `docs/mixing.md` lists under "Memory", is always in memory.
    pub memory: Option<Bytes>,
    /// Directory for temporary files, in each process of a job. `None`: the directory of the output.
    pub temporary: Option<PathBuf>,
    /// Number of threads; 0: one for each core.
    pub jobs: usize,
    /// Replace collectives by the point-to-point messages of the algorithms that this table chooses.
    pub lower_collectives: Option<Table>,
    /// How failed polls count.
    pub polls: Polls,
    /// Codes of the collectives in the trace.
    pub op_codes: OpCodes,
}

/// How failed polls (`MPI_Test`, `MPI_Iprobe` and the like) count when the thread's next record is the completion of a
/// receive or of a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polls {
    /// As waiting: the replay decides how long it takes.
    #[default]
    Wait,
    /// As computing, with the duration measured in the run.
    Compute,
}

/// A stage of a mix, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reads the events; counted in tasks.
    Walk,
    /// Matches sends and receives; not counted.
    Matching,
    /// Writes the trace; counted in records.
    Output,
}

/// Receives the progress of a mix. Several threads may call it at once.
pub trait Progress: Sync {
    /// `stage` begins; it has `total` steps.
    fn begin(&self, stage: Stage, total: u64) {
        let _ = (stage, total);
    }

    /// `steps` more steps of the current stage are complete.
    fn advance(&self, steps: u64) {
        let _ = steps;
    }
}

/// Ignores all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {}

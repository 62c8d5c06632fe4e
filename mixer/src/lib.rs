//! From captures to a trace: the events of all tasks become records that say what they wait for and how long
//! their task computes before them. `docs/mixing.md` has the rules.
//!
//! ```text
//! events ─ task ─▶ records, places in channels ─ matching ─▶ partners ─┐
//!          (all tasks at once)                                         ├─ number ─▶ lines ─▶ trace
//!                    starts ─ order ─▶ turns ─ prepare ─▶ windows ──────┘
//! ```
//!
//! Every step takes time linear in the number of records, whatever lies between a send and its receive, and the
//! output depends neither on the number of threads nor on chance. This crate never prints and knows no simulator.

#![forbid(unsafe_code)]

mod error;
mod summary;

mod mix;

mod read;
mod tally;
mod task;
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

/// How to mix.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Drop sends and receives without a partner, and collectives that not all members came to, instead of
    /// refusing them. Captures of killed programs are always mixed so.
    pub lenient: bool,
    /// Leave out events of unknown type instead of refusing them.
    pub skip_unknown: bool,
    /// The memory that a mix may use, about; of a job, each of its processes: what needs more is read twice and mixed in
    /// parts, with a temporary file. `None`: half of what is free (within its control group), of which each process of a node has its part. A task at
    /// least is in memory at a time, and what `docs/mixing.md` lists under "Memory".
    pub memory: Option<Bytes>,
    /// The directory for temporary files, of each process of a job. `None`: that of the output.
    pub temporary: Option<PathBuf>,
    /// How many threads; 0: as many as the machine has cores.
    pub jobs: usize,
    /// Replace collectives by the point-to-point messages of the algorithms that this table chooses.
    pub lower_collectives: Option<Table>,
    /// What failed polls are.
    pub polls: Polls,
    /// The codes of collectives in the trace.
    pub op_codes: OpCodes,
}

/// What polls (`MPI_Test`, `MPI_Iprobe` and the like) that found nothing are, where the thread's next record is the mark of what a
/// later call received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polls {
    /// Waiting for that, which takes as long as the replay says.
    #[default]
    Wait,
    /// Computing, which takes as long as in the run.
    Compute,
}

/// A stage of a mix, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading the events; counted in tasks.
    Walk,
    /// Matching; not counted.
    Matching,
    /// Writing the trace; counted in records.
    Output,
}

/// Is told how far a mix has come; may be called by several threads at once.
pub trait Progress: Sync {
    /// `stage` begins and has `total` steps.
    fn begin(&self, stage: Stage, total: u64) {
        let _ = (stage, total);
    }

    /// `steps` more of the present stage are done.
    fn advance(&self, steps: u64) {
        let _ = steps;
    }
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {}

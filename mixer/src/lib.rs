//! Converts a capture into a trace: the events of each task become records that name their dependency and the
//! computing time in front of them. `docs/mixing.md` has the rules.
//!
//! ```
//! use mixer::{Options, Quiet, mix};
//! use std::path::Path;
//! use vef_format::text::{Line, Reader};
//!
//! // A program with four ranks, as `vef run` recorded it.
//! let capture = Path::new("../cli/demo/capture");
//! let directory = tempfile::tempdir()?;
//! let trace = directory.path().join("halo.vef");
//! let summary = mix(capture, &trace, &Options::default(), &Quiet)?;
//! assert_eq!((summary.tasks, summary.matched), (4, summary.messages));
//!
//! let mut reader = Reader::open(&trace)?;
//! let mut lines = 0;
//! while let Some(line) = reader.next()? {
//!     lines += u64::from(!matches!(line, Line::Communicator { .. }));
//! }
//! assert_eq!(lines, summary.records);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From a call to its line
//!
//! ```text
//! events ─ walk ─▶ records, channels ─ matching ─▶ partners ─┐
//!          (all tasks at once)                               ├─ prepare ─▶ windows ─ numbering ─▶ lines ─▶ trace
//!                   starts ─ order ─▶ ends of windows ───────┘
//! ```
//!
//! `mix.rs` drives these stages, in this order:
//!
//! | stage | file | from → to |
//! |---|---|---|
//! | walk | `read.rs`, `walk/` | events of a rank file → a `Task` (`task.rs`): its `Record`s (`records.rs`, some 7 bytes each), and of each message and receive the channel (`channels.rs`) |
//! | | `walk/timeline.rs` | start and end of a call → computing time and dependency of its records |
//! | | `counts.rs` | counts of the summary |
//! | | `communicators.rs`, `agreement.rs` | the tasks' own communicators → those of the run, and the operations that all members called |
//! | matching | `matching.rs` | both ends of each channel → the message of each receive, the fate of each message |
//! | prepare | `order.rs`, `prepare.rs` | records and partners → a window of `Prepared` records, which lack ids only |
//! | output | `numbering.rs` | records in the order of their starts → ids, each line behind its dependency |
//! | | `write.rs`, `sink.rs` | numbered records → text or a container; `thread_notes.rs` places the notes of tasks with several threads, `dropped_notes.rs` those of tasks with dropped records |
//!
//! A capture that does not fit into memory is mixed in parts (`parts.rs`), and by several processes (`job.rs`): parts and
//! processes exchange channel ends and prepared windows (`wire.rs`), through a file (`store.rs`) or MPI. A capture in memory
//! is one part of one process. Indices of one kind are not taken for those of another (`index.rs`).
//!
//! Every stage is linear in the number of records, whatever the distance between a send and its receive. The output
//! depends neither on the number of threads nor on their scheduling, nor on parts and processes. This crate never prints and
//! knows no simulator.

#![forbid(unsafe_code)]

mod dropped_notes;
mod error;
mod index;
mod summary;

mod mix;

mod counts;
mod function;
mod read;
mod task;
mod thread_notes;
mod two_phase;
mod walk;

mod communicators;
mod lower;

mod channels;
mod records;

mod agreement;
mod matching;
mod totals;

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
mod fit;
mod job;
mod parts;
mod store;
mod wire;

pub use error::{Call, Disagreement, JobError, MixError, Problem, SeenCapture, Waiting};
pub use job::Job;
pub use mix::{mix, mix_among};
pub use summary::{Dropped, Spent, Summary, Tally, Times, Unmatched, UnmatchedKind, UnmatchedMessage};

pub use collectives::choose::Table;
use std::path::PathBuf;
use vef_format::ids::Rank;
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
    /// Count the time in `MPI_Init` as computing before each task's first record. Captures of the older layout are always mixed so.
    pub keep_init: bool,
    /// The times of the capture are computing alone, and of no clock: containers do not note what the captured run took.
    pub without_clocks: bool,
    /// How failed polls count.
    pub polls: Polls,
    /// Count times in which ranks were ready to run but had no core as computing, instead of leaving them out.
    pub keep_preempted: bool,
    /// Factor of MPI's own work in computing times: of calls without a record, and of failed polls that are no waiting. `None` is 1.
    pub own_work: Option<f64>,
    /// How waits for own sends alone count. In captures of the older layout they are always computing.
    pub send_waits: SendWaits,
    /// What answers one-sided requests.
    pub rma: Rma,
    /// How calls that create communicators count.
    pub creations: Creations,
    /// Storage servers, which become further tasks of the trace; `None`: accesses to files are counted only.
    pub io: Option<IoServers>,
    /// Codes of the collectives in the trace.
    pub op_codes: OpCodes,
}

/// Storage servers that keep files by stripes, as Lustre does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoServers {
    /// Number of servers, at least 1.
    pub count: u32,
    /// Bytes of a stripe, at least 1.
    pub stripe: Bytes,
    /// Servers that keep one file, from 1 to `count`.
    pub width: u32,
}

/// Storage servers as tasks of the trace: `first` and those behind it.
#[derive(Clone, Copy, Debug)]
struct StorageServers {
    first: Rank,
    servers: IoServers,
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

/// How waits count that complete the task's own non-blocking sends alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendWaits {
    /// As blocking sends: the replay decides how long it takes, if it takes time at all.
    #[default]
    Replay,
    /// As computing, with the duration measured in the run.
    Compute,
}

/// How calls count that create communicators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Creations {
    /// As the collectives by which the MPI library agrees on them ([`collectives::creations`]).
    #[default]
    Collectives,
    /// As computing, with the duration measured in the run.
    Compute,
}

/// What answers one-sided requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rma {
    /// The target, in its calls of MPI.
    #[default]
    Software,
    /// A network interface of the target, which is a task of its own and answers at once.
    Hardware,
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

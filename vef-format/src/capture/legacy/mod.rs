//! The older capture layout, of VEF-Prospector: read only.
//!
//! A directory with `VEFT.main` ([`Main`]: tasks, hosts, clocks) and for each task `x` its calls in `x.veft` and its
//! communicators in `x.comm` ([`Events`]). Verified on real captures: the record's layout and the event types
//! in [`EventType`]. What this layout does not keep:
//!
//! - the communicator of a point-to-point call. Peers are world ranks, given here on the communicator of all tasks;
//!   whoever matches such a capture goes by peer, tag and *equal length*, as the original tools do, because
//!   messages of equal tag on different communicators cannot be told apart otherwise;
//! - datatypes, send modes, threads, per-peer counts of vector collectives.

mod communicators;
mod events;
mod main_file;

#[cfg(test)]
mod tests;

pub use events::{EventType, Events, Options, UnknownEvents};
pub use main_file::{Main, Task};

use crate::error::Place;
use std::io;

/// Why a capture in the older layout cannot be read: where, and what is wrong there.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct LegacyError {
    /// The file, and the line, record or offset in it.
    pub place: Place,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong in a file of the older layout.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The system could not read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There is no byte in the file.
    #[error("the file is empty")]
    Empty,
    /// A line of `VEFT.main` that is not of the form it has to have.
    #[error("`{found}`, where {expected} is expected")]
    Line {
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// A task number of `VEFT.main` that is too large, or comes twice.
    #[error("task {task} of {tasks} {wrong}")]
    Task {
        /// The task.
        task: u64,
        /// Number of tasks in the first line.
        tasks: u32,
        /// "is out of range", "comes twice", "is missing".
        wrong: &'static str,
    },
    /// A number of a binary file that is out of its range.
    #[error("{field} is {found}, not {expected}")]
    Value {
        /// Which one.
        field: &'static str,
        /// What stands there.
        found: i64,
        /// What may stand there.
        expected: String,
    },
    /// A binary file that ends within something.
    #[error("the file ends within a communicator")]
    Cut,
    /// A communicator whose members do not include the task.
    #[error("this task is not a member of communicator {0}")]
    Stranger(i32),
    /// The time at the end of a call is before that at its start.
    #[error("the call ends at {end} ns, before it starts at {start} ns")]
    Backwards {
        /// Nanoseconds, monotonic.
        start: u64,
        /// Nanoseconds, monotonic.
        end: u64,
    },
    /// An event type that is not known.
    #[error("event type {0} is not known")]
    UnknownEvent(u16),
    /// A wait for a request that no call has started, or that was waited for already.
    #[error("a wait for request {0}, which no call has started")]
    UnknownRequest(u32),
    /// A request that is started while one of the same number is under way.
    #[error("request {0} is started while it is still under way")]
    BusyRequest(u32),
    /// A collective on a communicator that the task's `.comm` file does not list.
    #[error("communicator {0} is not in the task's .comm file")]
    UnknownCommunicator(i32),
}

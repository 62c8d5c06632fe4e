//! The older capture layout, of VEF-Prospector: read only.
//!
//! A directory with `VEFT.main` ([`Main`]: tasks, hosts, clocks), and for each task `x` its calls in `x.veft` and its
//! communicators in `x.comm` ([`Events`]). Real captures confirm the record's layout and the event types in [`EventType`].
//! The layout lacks:
//!
//! - the communicator of a point-to-point call. Peers are world ranks, and are given on the communicator of all tasks. Such a
//!   capture must be matched by peer, tag and *equal length*, as the original tools do, because messages with the same tag
//!   on different communicators cannot be distinguished otherwise;
//! - datatypes, send modes, threads, per-peer counts of vector collectives.

mod communicators;
mod events;
mod main_file;

#[cfg(test)]
mod tests;

pub use events::{EventType, Events, Options, UnknownEvents};
pub use main_file::{Main, Task};

use crate::error::Located;
use std::io;

/// Why a capture of the older layout cannot be read.
pub type LegacyError = Located<Problem>;

/// What is wrong in a file of the older layout.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// A line of `VEFT.main` has another form.
    #[error("`{found}`, where {expected} is expected")]
    Line {
        /// The text found.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
    /// A task number of `VEFT.main` is out of range, or occurs twice.
    #[error("task {task} of {tasks} {wrong}")]
    Task {
        /// The task.
        task: u64,
        /// Number of tasks in the first line.
        tasks: u32,
        /// "is out of range", "comes twice", "is missing".
        wrong: &'static str,
    },
    /// A number of a binary file is out of range.
    #[error("{field} is {found}, not {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// The value found.
        found: i64,
        /// The expected values.
        expected: String,
    },
    /// A binary file is truncated.
    #[error("the file ends within a communicator")]
    Cut,
    /// The members of a communicator do not include the task.
    #[error("this task is not a member of communicator {0}")]
    Stranger(i32),
    /// A call ends before it starts.
    #[error("the call ends at {end} ns, before it starts at {start} ns")]
    Backwards {
        /// Nanoseconds, monotonic.
        start: u64,
        /// Nanoseconds, monotonic.
        end: u64,
    },
    /// The event type is unknown.
    #[error("event type {0} is not known")]
    UnknownEvent(u16),
    /// A wait for a request that was not started, or that was completed already.
    #[error("a wait for request {0}, which no call has started")]
    UnknownRequest(u32),
    /// A request is started while one with the same number is pending.
    #[error("request {0} is started while it is still under way")]
    BusyRequest(u32),
    /// A collective on a communicator that is not in the task's `.comm` file.
    #[error("communicator {0} is not in the task's .comm file")]
    UnknownCommunicator(i32),
}

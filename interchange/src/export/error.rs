//! Errors of exports.

use crate::goal::BinaryError;
use std::io;
use std::path::Path;
use vef_format::container::ContainerError;
use vef_format::error::Located;
use vef_format::ids::{CollectiveId, CommId};
use vef_format::trace::TraceError;
use vef_format::units::{Bytes, Count};
use vef_format::validate::{Report, Severity};

/// Why a trace cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The notes of the container cannot be read.
    #[error(transparent)]
    Notes(#[from] ContainerError),
    /// The trace, or the file to write.
    #[error(transparent)]
    At(#[from] Located<ExportProblem>),
}

/// Why a trace cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportProblem {
    /// The file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The schedule does not fit into the format.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The file must be seekable.
    #[error("this format cannot be written to a pipe: name a file")]
    Pipe,
    /// There is no writer.
    #[error("this format is not written")]
    NotWritten,
    /// The trace is invalid.
    #[error("{text}{}", more(*.others))]
    Invalid {
        /// The first error: the record of a container, and what is wrong.
        text: String,
        /// Number of further errors.
        others: u64,
    },
    /// A communicator is unknown, or a task is no member.
    #[error("task {task} calls collective G{} on communicator C{}, of which it is no member", .id.0, .comm.0)]
    NotAMember {
        /// The task.
        task: u32,
        /// The collective.
        id: CollectiveId,
        /// The communicator.
        comm: CommId,
    },
    /// A collective has no schedule.
    #[error("collective G{}: {error}", .id.0)]
    Collective {
        /// The collective.
        id: CollectiveId,
        /// Why.
        error: collectives::Error,
    },
    /// A header that promises more tasks than the file can have records of.
    #[error("the header promises {}, more than a trace of this length can have", Count(*.0, "task"))]
    Tasks(u32),
    /// More bytes than fit in the lines of one message.
    #[error("task {task} sends {} at once: more than {} cannot be written in this format", Bytes(*.bytes), Bytes(*.most))]
    Bytes {
        /// The task.
        task: u32,
        /// The bytes.
        bytes: u64,
        /// The most that are written.
        most: u64,
    },
    /// The trace does not replay to its end.
    #[error("task {task} waits for {what}, which never comes: vef check explains why")]
    Stuck {
        /// The task.
        task: u32,
        /// What it waits for.
        what: String,
    },
    /// A record would begin, or a message arrive, later than 2^64 picoseconds.
    #[error("task {0} goes on, or its messages arrive, after the end of time (2^64 ps, 213 days)")]
    Times(u32),
}

impl ExportProblem {
    /// The problem, in the whole of `path`.
    pub(crate) fn of_file(self, path: &Path) -> ExportError {
        ExportError::At(Located::file(path, self))
    }
}

impl ExportError {
    /// The first error in the report about a trace, if there is one.
    pub(crate) fn invalid(path: &Path, report: &Report) -> Option<Self> {
        let problem = report.problems.iter().find(|problem| problem.severity == Severity::Error)?;
        let others = report.errors.saturating_sub(1);
        let text = &problem.text;
        Some(Self::At(match problem.place.record {
            Some(record) => {
                Located::file(path, ExportProblem::Invalid { text: format!("{record}: {text}"), others })
            }
            None => {
                let text = text.clone();
                Located::line(path, problem.place.line, ExportProblem::Invalid { text, others })
            }
        }))
    }
}

fn more(others: u64) -> String {
    match others {
        0 => String::new(),
        _ => format!("; and {}, which vef check lists", Count(others, "other error")),
    }
}

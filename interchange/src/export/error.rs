//! Errors of exports.

use crate::goal::BinaryError;
use std::io;
use std::path::Path;
use vef_format::container::ContainerError;
use vef_format::error::Located;
use vef_format::ids::{CollectiveId, CommId, MessageId};
use vef_format::operation::OpCode;
use vef_format::trace::TraceError;

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
    /// A record waits for something that is not in the trace.
    #[error("task {task} waits for {what}, which it neither sends nor receives before")]
    Missing {
        /// The task.
        task: u32,
        /// What it waits for.
        what: String,
    },
    /// A code of collectives is unknown.
    #[error("operation code {} of collective G{} is unknown (--op-codes)", .code.0, .id.0)]
    Code {
        /// The code.
        code: OpCode,
        /// The collective.
        id: CollectiveId,
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
    /// An id occurs twice.
    #[error("message {} occurs twice", .0.0)]
    Twice(MessageId),
    /// The trace does not replay to its end.
    #[error("task {task} waits for {what}, which never comes: vef check explains why")]
    Stuck {
        /// The task.
        task: u32,
        /// What it waits for.
        what: String,
    },
    /// Times do not fit.
    #[error("the times of task {0} are too large")]
    Times(u32),
}

impl ExportProblem {
    /// The problem, in the whole of `path`.
    pub(crate) fn of_file(self, path: &Path) -> ExportError {
        ExportError::At(Located::file(path, self))
    }
}

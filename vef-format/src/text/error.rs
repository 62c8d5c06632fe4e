//! What can be wrong with one line of a trace, with its place.

use crate::error::Place;
use std::fmt;
use std::io;

/// Why a trace cannot be read: where, and what is wrong there.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct TextError {
    /// File and line.
    pub place: Place,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a line, or with the file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The system could not read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There is no byte in the file.
    #[error("the file is empty")]
    Empty,
    /// The first line is not a header of version 2 or 3.
    #[error("not a VEF trace: it begins with `{found}`, not with VEF3 or VEF2")]
    NotATrace {
        /// The first word.
        found: String,
    },
    /// A line that begins like no record.
    #[error("a line begins with a number, G or C; this one with `{found}`")]
    UnknownLine {
        /// Its first word.
        found: String,
    },
    /// A field is absent: the line ends before it.
    #[error("the line ends before its field {field}")]
    Missing {
        /// Which one.
        field: Field,
    },
    /// A line goes on behind its last field.
    #[error("the line goes on with `{found}` behind its last field, {field}")]
    Extra {
        /// The last field of such a line.
        field: Field,
        /// The first word too many.
        found: String,
    },
    /// A field holds what it may not.
    #[error("field {field} is `{found}`, not {expected}")]
    Field {
        /// Which one.
        field: Field,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: Expected,
    },
    /// A line longer than any record of this trace.
    #[error("a line of more than {limit} bytes: no record of this trace is that long")]
    LongLine {
        /// Bytes that a line may have.
        limit: u64,
    },
    /// The last line has no end: the file was cut.
    #[error("the last line has no end: the file is cut off")]
    Cut,
    /// There are more or fewer lines of a kind than the header says.
    #[error("the header promises {promised} {kind}, the file has {found}")]
    Count {
        /// Lines of this kind.
        kind: &'static str,
        /// How many the header says.
        promised: u64,
        /// How many there are.
        found: u64,
    },
    /// Version 2 has to be read twice, and this input cannot.
    #[error("a version 2 trace has to be read twice, which a stream cannot")]
    Stream,
}

/// A field of a line, by the name that the grammar gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the grammar names them")]
pub enum Field {
    NTasks,
    NMsgs,
    NComm,
    NCollComm,
    NLocalCollComm,
    NRecvDep,
    Clock,
    Id,
    Src,
    Dst,
    Bytes,
    Dep,
    Time,
    IdDep,
    Comm,
    Op,
    Task,
    SendBytes,
    RecvBytes,
    Member,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NTasks => "nTasks",
            Self::NMsgs => "nMsgs",
            Self::NComm => "nCOMM",
            Self::NCollComm => "nCollComm",
            Self::NLocalCollComm => "nLocalCollComm",
            Self::NRecvDep => "nRecvDep",
            Self::Clock => "clock",
            Self::Id => "id",
            Self::Src => "src",
            Self::Dst => "dst",
            Self::Bytes => "bytes",
            Self::Dep => "dep",
            Self::Time => "time",
            Self::IdDep => "idDep",
            Self::Comm => "comm",
            Self::Op => "op",
            Self::Task => "task",
            Self::SendBytes => "sendBytes",
            Self::RecvBytes => "recvBytes",
            Self::Member => "task of a communicator",
        })
    }
}

/// What a field may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any number that 64 bits hold.
    Number,
    /// A number from `least` to `most`.
    Range {
        /// The least.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// `C<id>`.
    CommId,
    /// `-1`, since `dep` says that nothing is waited for.
    NoId,
    /// The id of a point-to-point line, since `dep` says so.
    MessageId,
    /// `G<id>`, since `dep` says so.
    CollectiveId,
    /// At most as many tasks as there are.
    Members {
        /// How many there are.
        tasks: u32,
    },
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Number => f.write_str("a number from 0 to 2^64 - 1"),
            Self::Range { least, most } => write!(f, "a number from {least} to {most}"),
            Self::CommId => f.write_str("a communicator C<id>"),
            Self::NoId => f.write_str("-1, as dep demands"),
            Self::MessageId => f.write_str("the number of a point-to-point line, as dep demands"),
            Self::CollectiveId => f.write_str("a collective G<id>, as dep demands"),
            Self::Members { tasks } => write!(f, "the end of a list of at most {tasks} tasks"),
        }
    }
}

/// Why a trace cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system could not write.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A rank that the header does not know.
    #[error("task {task} in a trace of {tasks} tasks")]
    Rank {
        /// The rank.
        task: u32,
        /// Tasks according to the header.
        tasks: u32,
    },
    /// A communicator without members.
    #[error("communicator C{0} has no members")]
    NoMembers(u32),
    /// The header, already written, says something else.
    #[error("the header promises {promised} {kind}, {written} were written")]
    Count {
        /// Lines of this kind.
        kind: &'static str,
        /// How many the header says.
        promised: u64,
        /// How many were written.
        written: u64,
    },
}

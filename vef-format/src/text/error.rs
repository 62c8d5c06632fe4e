//! Errors in a line of a trace, with their places.

use crate::error::Located;
use std::fmt;
use std::io;

/// Why a trace cannot be read.
pub type TextError = Located<Problem>;

/// What is wrong with a line, or with the file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The first line is not a header of version 2 or 3.
    #[error("not a VEF trace: it begins with `{found}`, not with VEF3 or VEF2")]
    NotATrace {
        /// The first word.
        found: String,
    },
    /// The file has another known format.
    #[error("not a VEF trace, but {0}")]
    Other(&'static str),
    /// The first word of a line is of no kind of record.
    #[error("a line begins with a number, G or C; this one with `{found}`")]
    UnknownLine {
        /// The first word.
        found: String,
    },
    /// The line ends before a field.
    #[error("the line ends before its field {field}")]
    Missing {
        /// The missing field.
        field: Field,
    },
    /// The line continues after its last field.
    #[error("the line continues with `{found}` behind its last field, {field}")]
    Extra {
        /// The last field of such a line.
        field: Field,
        /// The first word after it.
        found: String,
    },
    /// A field has an invalid value.
    #[error("field {field} is `{found}`, not {expected}")]
    Field {
        /// The field.
        field: Field,
        /// The value.
        found: String,
        /// The valid values.
        expected: Expected,
    },
    /// A line is longer than any record of this trace can be.
    #[error("a line of more than {limit} bytes: no record of this trace is that long")]
    LongLine {
        /// Maximum bytes of a line.
        limit: u64,
    },
    /// The last line has no end: the file is truncated.
    #[error("the last line has no end: the file is truncated")]
    Cut,
    /// The header has another number of lines of a kind.
    #[error("the header promises {promised} {kind}, the file has {found}")]
    Count {
        /// The kind of lines.
        kind: &'static str,
        /// The number in the header.
        promised: u64,
        /// The number of lines.
        found: u64,
    },
    /// A version 2 trace must be read twice, and this input cannot.
    #[error("a version 2 trace has to be read twice, which a stream cannot")]
    Stream,
}

macro_rules! fields {
    ($($name:ident $text:literal,)*) => {
        /// A field of a line, by its name in the grammar.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the grammar names them")]
        pub enum Field { $($name,)* }

        impl fmt::Display for Field {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)* })
            }
        }
    };
}

fields! {
    NTasks "nTasks",
    NMsgs "nMsgs",
    NComm "nCOMM",
    NCollComm "nCollComm",
    NLocalCollComm "nLocalCollComm",
    NRecvDep "nRecvDep",
    Clock "clock",
    Id "id",
    Src "src",
    Dst "dst",
    Bytes "bytes",
    Dep "dep",
    Time "time",
    IdDep "idDep",
    Comm "comm",
    Op "op",
    Task "task",
    SendBytes "sendBytes",
    RecvBytes "recvBytes",
    Member "task of a communicator",
}

/// The valid values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any number of 64 bits.
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
    /// `-1`, because `dep` names no dependency.
    NoId,
    /// The id of a point-to-point line, because of `dep`.
    MessageId,
    /// `G<id>`, because of `dep`.
    CollectiveId,
    /// At most as many tasks as there are.
    Members {
        /// Number of tasks.
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
    /// The output cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A rank outside of the header's tasks.
    #[error("task {task} in a trace of {tasks} tasks")]
    Rank {
        /// The rank.
        task: u32,
        /// Number of tasks in the header.
        tasks: u32,
    },
    /// A communicator without members.
    #[error("communicator C{0} has no members")]
    NoMembers(u32),
    /// The header, already written, has another number of lines.
    #[error("the header promises {promised} {kind}, {written} were written")]
    Count {
        /// The kind of lines.
        kind: &'static str,
        /// The number in the header.
        promised: u64,
        /// The number of lines written.
        written: u64,
    },
}

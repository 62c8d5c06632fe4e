//! Errors in a line of a trace, with their places.

use crate::error::Located;
use crate::record::WrongCount;
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
    /// The file does not begin with a header of version 2 or 3; the text says with what, or which format it has.
    #[error("not a VEF trace{0}")]
    NotATrace(String),
    /// A line is not one of the grammar; the text has the field and what is there.
    #[error("{0}")]
    Line(String),
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
    #[error("the header promises {} {}, the file has {}", .0.promised, .0.kind, .0.found)]
    Count(WrongCount),
    /// A version 2 trace must be read twice, and this input cannot.
    #[error("a version 2 trace has to be read twice, which a stream cannot")]
    Stream,
}

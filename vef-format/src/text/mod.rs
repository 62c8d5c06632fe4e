//! The text form of a trace: reads `VEF3` and `VEF2`, writes `VEF3`.
//!
//! One record a line, fields separated by blanks (space, tab, carriage return), empty lines ignored:
//!
//! ```text
//! VEF3 tasks messages communicators collectives local-collectives 0 clock
//! C<id> task [task …]
//! <id> <src> <dst> <bytes> <dep> <time> <idDep>
//! G<id> C<comm> <op> <task> <sendBytes> <recvBytes> <dep> <time> <idDep>
//! ```
//!
//! [`Reader`] and [`Writer`] check single lines (numbers, ranks, number of fields) and the header's counts of lines.
//! [`crate::validate`] checks the rest (ids that exist, collectives whose members agree).

mod digits;
mod error;
mod lines;
mod numerals;
mod reader;
mod scan;
mod writer;

#[cfg(test)]
mod tests;

pub use crate::record::{Line, WriteError};
pub use error::{Problem, TextError};
pub use lines::Lines;
pub use reader::Reader;
pub use writer::Writer;

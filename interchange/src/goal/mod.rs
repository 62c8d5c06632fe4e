//! GOAL: the sends, receives and computing of each rank, and the dependencies between them.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! a: calc 1000 cpu 0
//! b: send 100b to 1 tag 7 cpu 0 nic 0
//! b requires a
//! }
//! rank 1 { r: recv 100b from -1 tag -1 }
//! ```
//!
//! `requires` waits for the completion of an operation, `irequires` for its start; -1 is any source or tag.
//! Times are in nanoseconds. `//` and `/* */` are comments. Labels are unique in a rank; an operation without a label
//! cannot be required.
//!
//! LogGOPSim's simulator reads a binary form, which its `txt2bin` makes of the text ([`binary`]).

mod operation;

mod labels;
mod words;

mod binary;
mod text;

mod schedule;

mod read;
mod write;

pub use binary::{BinaryError, BinaryWriter};
pub use operation::{Operation, RankGraph, What};
pub use schedule::{Reader, Schedule};
pub use text::TextWriter;

use crate::format::Info;
use crate::options::Setting;

const SETTINGS: &[Setting] = &[Setting::Streams, Setting::StreamsByNic];

/// In text.
pub(crate) const TEXT: Info =
    Info::graph("goal", "GOAL schedule", |start| text::is_text(start.bytes), read::read)
        .checked_by(read::check)
        .with(SETTINGS)
        .written_by(write::text, &["goal", "txt"]);

/// In binary.
pub(crate) const BINARY: Info =
    Info::graph("goal-bin", "GOAL schedule in binary", |start| binary::is_binary(start.bytes), read::read)
        .checked_by(read::check)
        .with(SETTINGS)
        .written_by(write::binary, &["bin", "goal"]);

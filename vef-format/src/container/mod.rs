//! The container `.vefx`: a trace in binary form in which each task's records can be read without the others'.
//!
//! A file is a magic, blocks, and a footer with the place of the index. All numbers are little-endian.
//!
//! ```text
//! "VEFX" version:u8 "\r\n\x1a"
//! block*          kind:u8 codec:u8 flags:u16 task:u32 items:u32 raw:u32 stored:u32 crc:u32, then `stored` bytes
//! footer          offset:u64 and length:u64 of the index block, minor:u16 0:u16 required:u32, crc:u32, "XFEV"
//! ```
//!
//! `crc` is the CRC-32 of the first twenty bytes of the block and of its stored bytes; `codec` 1 means that the `raw` bytes
//! are compressed with zstd (feature `zstd`). `docs/formats.md` describes the content of each kind of block. Ids, times
//! and sizes are those of the text. Communicators come first, in their order. Records keep the order of the file if
//! [`Settings::keep_order`] is set; otherwise they come task by task.
//!
//! Neither direction needs the whole trace in memory: a writer holds one incomplete block for each task (together at most
//! [`BUFFERED`] bytes, and two kilobytes a task), a reader of one task holds one block.

mod block;
mod code;
mod error;
mod facts;
mod index;
mod input;
mod lines;
mod noted;
mod notes;
mod proof;
mod reader;
mod record;
mod section;
mod streams;
mod version;
mod writer;

#[cfg(test)]
mod tests;

pub use block::MAGIC;
pub use error::{ContainerError, Problem};
pub use index::About;
pub use lines::{Communicators, Lines};
pub use noted::{PhaseMark, PhaseMarks, Span};
pub use notes::{Note, Notes, TaskNotes};
pub use reader::{Pieces, Reader, SectionStream};
pub use section::Section;
pub use streams::{Streams, TaskRecords};
pub use version::VERSION;
pub use writer::{Settings, Writer};

/// Maximum bytes of a writer's incomplete blocks, all tasks together.
pub const BUFFERED: usize = 16 << 20;

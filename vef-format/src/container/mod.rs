//! The container `.vefx`: a trace in binary, from which one task's records are read without the others'.
//!
//! A file is a magic, then blocks, then a footer that says where the index is. All numbers are little-endian.
//!
//! ```text
//! "VEFX" version:u8 "\r\n\x1a"
//! block*          kind:u8 codec:u8 flags:u16 task:u32 items:u32 raw:u32 stored:u32 crc:u32, then `stored` bytes
//! footer          offset:u64 and length:u64 of the index block, minor:u16 0:u16 required:u32, crc:u32, "XFEV"
//! ```
//!
//! `crc` is the CRC-32 of the first twenty bytes of the block and of what is stored; `codec` 1 means that the `raw`
//! bytes are compressed with zstd (feature `zstd`). What the blocks of each kind hold, byte by byte, is said in
//! `docs/formats.md`. Ids, times and sizes are those of the text; the communicators come first, in their
//! order; records keep the order of the file if [`Settings::keep_order`] says so, and otherwise come task by task.
//!
//! Neither direction ever needs the whole trace: the writer holds one begun block a task (together at most
//! [`BUFFERED`] bytes, and a kilobyte a task), a reader of a task one block.

mod block;
mod code;
mod convert;
mod facts;
mod index;
mod input;
mod notes;
mod proof;
mod reader;
mod record;
mod streams;
mod writer;

#[cfg(test)]
mod tests;

pub use convert::{ConvertError, convert};
pub use notes::{Note, Notes, Section, TaskNotes};
pub use reader::{BlockContent, Blocks, Communicators, Lines, Pieces, Reader, SectionStream, TaskRecords};
pub use streams::Streams;
pub use writer::{Settings, Writer};

use crate::error::Place;
use crate::ids::Rank;
use crate::operation::OpCodes;
use crate::text::WriteError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The version of containers that this program writes, major and minor; it reads all of the same major version.
pub const VERSION: (u8, u16) = (block::VERSION, block::MINOR);

/// Bytes that a writer holds back in begun blocks, all tasks together.
pub const BUFFERED: usize = 64 << 20;

/// Whether the file `path` begins like a container; its name does not matter.
///
/// # Errors
/// The file cannot be read.
pub fn is_container(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(block::MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == block::MAGIC)
}

/// What a container says about the trace beside its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The meaning of collective operations' codes.
    pub op_codes: OpCodes,
    /// Where the trace comes from, for people: `program`, `command`, `host`, `mpi`, `version` …, each with its value.
    pub origin: Vec<(String, String)>,
}

/// Why a container cannot be read: where, and what is wrong there.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ContainerError {
    /// The file, and the offset of a block.
    pub place: Place,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong in a container.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The system could not read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file does not begin like a container.
    #[error("not a VEF container")]
    NotAContainer,
    /// A major version of the layout that this program does not know.
    #[error("a container of version {0}; this program reads version {known}", known = block::VERSION)]
    Version(u8),
    /// A later minor version, with something in it that a reader must not pass by.
    #[error("{0}, which a later version of this program wrote and this one cannot read")]
    Newer(String),
    /// There is no footer at the end: the writer was stopped, or the file cut.
    #[error("the file is cut off, or its writer was stopped: it has no footer")]
    Cut,
    /// A checksum does not fit its bytes.
    #[error("the checksum of the {0} does not fit its content")]
    Checksum(&'static str),
    /// Two parts of the file contradict each other, or a part contradicts itself.
    #[error("{0}")]
    Inconsistent(String),
    /// A compressed block, and a program without zstd.
    #[error("the block is compressed, and this program was built without zstd")]
    NoZstd,
}

/// Why a container cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ContainerWriteError {
    /// As for text.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Compression was asked of a program without zstd.
    #[error("compression needs a program that was built with zstd")]
    NoZstd,
    /// A note in the stream of a task that has none of its sort, or the other way round.
    #[error("a note of section {section} for {}", match .task {
        Some(task) => format!("task {task}"),
        None => "no task".to_owned(),
    })]
    Note {
        /// Its section.
        section: &'static str,
        /// Whose stream.
        task: Option<Rank>,
    },
    /// Something does not fit into a block.
    #[error("{what} of {bytes} bytes: a block holds at most {most}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// How large.
        bytes: usize,
        /// The most.
        most: usize,
    },
}

impl From<io::Error> for ContainerWriteError {
    fn from(error: io::Error) -> Self {
        Self::Write(WriteError::Io(error))
    }
}

//! What may be wrong with a container, or with what is to go into one.

use super::version::VERSION;
use crate::error::Place;
use crate::ids::Rank;
use crate::text::WriteError;
use std::io;

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
    #[error("a container of version {0}; this program reads version {known}", known = VERSION.0)]
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

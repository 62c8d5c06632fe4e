//! Errors of reading containers.

use super::version::VERSION;
use crate::error::Located;
use std::io;

/// Why a container cannot be read.
pub type ContainerError = Located<Problem>;

/// What is wrong in a container.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The magic is wrong.
    #[error("not a VEF container")]
    NotAContainer,
    /// The major version is unknown.
    #[error("a container of version {0}; this program reads version {known}", known = VERSION.0)]
    Version(u8),
    /// A later minor version with something that a reader must not skip.
    #[error("{0}, which a later version of this program wrote and this one cannot read")]
    Newer(String),
    /// The file ends too early: its writer was stopped, or it was truncated, perhaps while it was read.
    #[error("no footer: the file is truncated, or its writer was stopped")]
    Cut,
    /// A checksum is wrong.
    #[error("the checksum of the {0} is wrong")]
    Checksum(&'static str),
    /// Parts of the file contradict each other.
    #[error("{0}")]
    Inconsistent(String),
    /// The block is compressed, and this program has no zstd.
    #[error("the block is compressed, and this program was built without zstd")]
    NoZstd,
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Cut,
            _ => Self::Io(error),
        }
    }
}

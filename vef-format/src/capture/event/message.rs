//! Messages between two ranks, and their datatypes.

use super::request::RequestId;
use crate::ids::{CommId, CommRank};
use crate::units::Bytes;

/// A datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datatype<'a> {
    /// This rank's number for it.
    pub id: DatatypeId,
    /// Bytes of data in one element.
    pub size: Bytes,
    /// Whether `count` elements are contiguous in memory.
    pub contiguous: bool,
    /// The name of a predefined datatype (`MPI_DOUBLE`); empty for a derived one.
    pub name: &'a str,
}

/// The number that one rank gave a datatype in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DatatypeId(pub u32);

/// The mode of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendMode {
    /// `MPI_Send`, `MPI_Isend`.
    Standard,
    /// `MPI_Bsend`, `MPI_Ibsend`.
    Buffered,
    /// `MPI_Ssend`, `MPI_Issend`.
    Synchronous,
    /// `MPI_Rsend`, `MPI_Irsend`.
    Ready,
}

/// A send. Never to `MPI_PROC_NULL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// The communicator.
    pub comm: CommId,
    /// The destination.
    pub dest: CommRank,
    /// The tag.
    pub tag: i32,
    /// Payload.
    pub bytes: Bytes,
    /// The datatype.
    pub datatype: DatatypeId,
    /// The mode.
    pub mode: SendMode,
    /// The request of a non-blocking send; `None`: blocking.
    pub request: Option<RequestId>,
}

/// A completed blocking receive. Never from `MPI_PROC_NULL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The communicator.
    pub comm: CommId,
    /// The source of the message.
    pub source: CommRank,
    /// The tag of the message.
    pub tag: i32,
    /// Whether the source argument was `MPI_ANY_SOURCE`.
    pub any_source: bool,
    /// Whether the tag argument was `MPI_ANY_TAG`.
    pub any_tag: bool,
    /// Size of the buffer, or the bytes received where known.
    pub bytes: Bytes,
    /// The datatype.
    pub datatype: DatatypeId,
}

/// A posted receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostReceive {
    /// The communicator.
    pub comm: CommId,
    /// The source; `None`: `MPI_ANY_SOURCE`.
    pub source: Option<CommRank>,
    /// The tag; `None`: `MPI_ANY_TAG`.
    pub tag: Option<i32>,
    /// Size of the buffer.
    pub bytes: Bytes,
    /// The datatype.
    pub datatype: DatatypeId,
    /// Its request.
    pub request: RequestId,
}

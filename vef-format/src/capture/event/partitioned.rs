//! Partitioned communication.

use super::message::DatatypeId;
use super::request::RequestId;
use crate::ids::{CommId, CommRank};
use crate::units::Bytes;

/// The number that one rank gave a request of `MPI_Psend_init` or `MPI_Precv_init` in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PartitionedId(pub u32);

/// A call of partitioned communication. The completion of a transfer is one of its start's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioned {
    /// `MPI_Psend_init`, `MPI_Precv_init`. Precedes the other calls with its number.
    Init(PartitionedInit),
    /// A start.
    Start {
        /// The transfer.
        id: PartitionedId,
        /// The request of this start.
        request: RequestId,
    },
    /// `MPI_Pready` and its variants; a list of partitions that are not consecutive is several events.
    Ready {
        /// The transfer.
        id: PartitionedId,
        /// The first partition that is ready.
        first: u32,
        /// Number of partitions.
        count: u32,
        /// Payload of each.
        bytes: Bytes,
    },
    /// `MPI_Parrived` found that a partition has arrived.
    Arrived {
        /// The transfer.
        id: PartitionedId,
        /// The partition.
        partition: u32,
    },
}

/// A partitioned transfer, which may be started several times. Never to or from `MPI_PROC_NULL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionedInit {
    /// This rank's number for it.
    pub id: PartitionedId,
    /// Whether this rank sends.
    pub sends: bool,
    /// The communicator.
    pub comm: CommId,
    /// The destination or source.
    pub peer: CommRank,
    /// The tag.
    pub tag: i32,
    /// Number of partitions on this side.
    pub partitions: u32,
    /// Payload of each partition.
    pub bytes: Bytes,
    /// The datatype.
    pub datatype: DatatypeId,
}

//! Collectives, those of neighbourhoods included.

use super::message::DatatypeId;
use super::request::RequestId;
use crate::ids::{CommId, CommRank};
use crate::operation::{Amounts, Operation};

/// One rank's part of a collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective<'a> {
    /// The operation.
    pub operation: Operation,
    /// The communicator.
    pub comm: CommId,
    /// The root of a rooted operation. On an inter-communicator a rank of the remote group, or [`CommRank::ROOT`] or
    /// [`CommRank::BESIDE_ROOT`].
    pub root: Option<CommRank>,
    /// Bytes that this rank sends and receives. On an inter-communicator, those for and from all ranks of the remote group; of
    /// Reduce_scatter, the whole vector and its own block.
    pub amounts: Amounts,
    /// The count argument, in elements of `datatype` (of a gather or scatter: one rank's block); 0 in vector forms.
    pub count: u64,
    /// The datatype: of the sending side where significant. Of an Alltoallw: one with gaps, if any has gaps.
    pub datatype: DatatypeId,
    /// The receiving side's datatype, where both sides are significant.
    pub recv_datatype: Option<DatatypeId>,
    /// The request of a non-blocking or persistent operation; `None`: blocking.
    pub request: Option<RequestId>,
    /// Vector forms: bytes for each communicator rank, where significant at this rank; otherwise empty. On an inter-communicator the
    /// ranks are those of the remote group, except in Reduce_scatter.
    pub send_counts: &'a [u64],
    /// Vector forms: bytes from each communicator rank, where significant at this rank; otherwise empty.
    pub recv_counts: &'a [u64],
}

/// The neighbours of one rank in the topology of a communicator, in the order in which neighbourhood collectives have their
/// blocks; `None`: `MPI_PROC_NULL`, at the edge of a Cartesian topology. A rank may occur several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology<'a> {
    /// The communicator.
    pub comm: CommId,
    /// Those from which it receives.
    pub sources: &'a [Option<CommRank>],
    /// Those to which it sends.
    pub destinations: &'a [Option<CommRank>],
}

/// One rank's part of a neighbourhood collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbourhood<'a> {
    /// The communicator, whose [`Topology`] has the neighbours.
    pub comm: CommId,
    /// Bytes sent to each destination, and received from each source; 0 on a side that has a list.
    pub block: Amounts,
    /// The datatype of the sending side. Of an Alltoallw: one with gaps, if any has gaps.
    pub datatype: DatatypeId,
    /// The request of a non-blocking or persistent operation; `None`: blocking.
    pub request: Option<RequestId>,
    /// Vector forms: bytes to each destination; otherwise empty.
    pub send_counts: &'a [u64],
    /// Vector forms: bytes from each source; otherwise empty.
    pub recv_counts: &'a [u64],
}

//! What is remembered of a request from the call that made it to the call that completes it.

use vef_format::capture::event::DatatypeId;
use vef_format::capture::event::{Collective, PostReceive, RequestId, Send};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::{Amounts, Operation};

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) request: RequestId,
    pub(crate) flags: u8,
}

impl Waiting {
    /// A receive with a wildcard: its completion says whom it met.
    pub(crate) const WILDCARD: u8 = 1;
    /// `MPI_Cancel` was called on it.
    pub(crate) const CANCELLED: u8 = 2;
    /// The next one of the same handle completes with it (`MPI_Isendrecv`).
    pub(crate) const TWIN: u8 = 4;

    /// Whether the status of its completion is of interest.
    pub(crate) fn curious(self) -> bool {
        self.flags & (Self::WILDCARD | Self::CANCELLED) != 0
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Self { request: RequestId { thread: 0, number: 0 }, flags: 0 }
    }
}

/// What a persistent request does each time it is started; the requests in here are set then.
#[derive(Clone, Debug)]
pub(crate) enum Template {
    /// A send.
    Send(Send),
    /// A receive.
    Receive(PostReceive),
    /// A collective.
    Collective(Box<CollectiveTemplate>),
}

/// [`Collective`] with its lists.
#[derive(Clone, Debug)]
pub(crate) struct CollectiveTemplate {
    operation: Operation,
    comm: CommId,
    root: Option<CommRank>,
    amounts: Amounts,
    datatype: DatatypeId,
    send_counts: Vec<u64>,
    recv_counts: Vec<u64>,
}

impl CollectiveTemplate {
    pub(crate) fn new(part: &Collective<'_>) -> Self {
        Self {
            operation: part.operation,
            comm: part.comm,
            root: part.root,
            amounts: part.amounts,
            datatype: part.datatype,
            send_counts: part.send_counts.to_vec(),
            recv_counts: part.recv_counts.to_vec(),
        }
    }

    /// The operation, under way as `request`.
    pub(crate) fn started(&self, request: RequestId) -> Collective<'_> {
        Collective {
            operation: self.operation,
            comm: self.comm,
            root: self.root,
            amounts: self.amounts,
            datatype: self.datatype,
            request: Some(request),
            send_counts: &self.send_counts,
            recv_counts: &self.recv_counts,
        }
    }
}

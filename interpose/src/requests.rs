//! What is remembered of a request from the call that made it to the call that completes it.

use mpi_abi::prototypes::Call;
use vef_format::capture::event::DatatypeId;
use vef_format::capture::event::{Collective, PostReceive, RequestId, Send};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// A request under way: its number, the thread that made it and flags, in one word because tables of these are on the
/// path of every call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting(u64);

impl Waiting {
    /// A receive with a wildcard: its completion says whom it met.
    pub(crate) const WILDCARD: u8 = 1;
    /// `MPI_Cancel` was called on it.
    pub(crate) const CANCELLED: u8 = 2;
    /// The next one of the same handle completes with it (`MPI_Isendrecv`).
    pub(crate) const TWIN: u8 = 4;

    const FLAG_BITS: u32 = 3;
    /// Below the number, whose 45 bits last for weeks of requests every 100 ns.
    const LOW_BITS: u32 = Self::FLAG_BITS + u16::BITS;

    #[inline(always)]
    pub(crate) fn new(request: RequestId, flags: u8) -> Self {
        Self(
            request.number << Self::LOW_BITS
                | u64::from(request.thread) << Self::FLAG_BITS
                | u64::from(flags),
        )
    }

    #[inline(always)]
    pub(crate) fn number(self) -> u64 {
        self.0 >> Self::LOW_BITS
    }

    #[inline(always)]
    pub(crate) fn thread(self) -> u16 {
        (self.0 >> Self::FLAG_BITS) as u16
    }

    pub(crate) fn request(self) -> RequestId {
        RequestId { thread: self.thread(), number: self.number() }
    }

    #[inline(always)]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & u64::from(flag) != 0
    }

    pub(crate) fn set(&mut self, flag: u8) {
        self.0 |= u64::from(flag);
    }

    /// Whether `thread` made it and nothing is special about its completion.
    #[inline(always)]
    pub(crate) fn is_ordinary_of(self, thread: u16) -> bool {
        const LOW: u64 = (1 << Waiting::LOW_BITS) - 1;
        self.0 & LOW == u64::from(thread) << Self::FLAG_BITS
    }

    /// Whether the status of its completion is of interest.
    #[inline(always)]
    pub(crate) fn curious(self) -> bool {
        self.has(Self::WILDCARD | Self::CANCELLED)
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
    /// What a trace cannot represent: the call that made it, and what each start moves.
    Other(Call, Bytes),
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

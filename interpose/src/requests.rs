//! What is remembered of a request from the call that made it to the call that completes it.

use mpi_abi::prototypes::Call;
use vef_format::capture::event::{Collective, DatatypeId, PostReceive, RequestId, Send};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// A request under way: its number, the thread that made it and flags, in one word because tables of these are on the
/// path of every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting(u64);

impl Waiting {
    /// The flags of a posted receive.
    pub(crate) fn flags_of(post: &PostReceive) -> u8 {
        if post.source.is_none() || post.tag.is_none() { Self::WILDCARD } else { 0 }
    }

    /// A receive with a wildcard: its completion says whom it met.
    pub(crate) const WILDCARD: u8 = 1;
    /// `MPI_Cancel` was called on it.
    pub(crate) const CANCELLED: u8 = 2;
    /// The next one of the same handle completes with it (`MPI_Isendrecv`).
    pub(crate) const TWIN: u8 = 4;
    /// There are others of the same handle; the table's own flag.
    pub(crate) const SHARED: u8 = 8;

    /// It was under way; its handle may come again.
    const OVER: u8 = 16;
    /// It has no record: known is only that its handle means nothing that was recorded.
    pub(crate) const UNKNOWN: u8 = 32;
    /// One that was never under way.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    const FLAG_BITS: u32 = 6;
    /// Below the number, whose 42 bits last for weeks of requests every 100 ns.
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

    #[inline(always)]
    pub(crate) fn request(self) -> RequestId {
        RequestId { thread: self.thread(), number: self.number() }
    }

    /// The thread's next one, with the same flags.
    #[inline(always)]
    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1 << Self::LOW_BITS))
    }

    /// How many the thread has made since `earlier`, which has the same flags.
    #[inline(always)]
    pub(crate) fn since(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0) >> Self::LOW_BITS
    }

    /// The one that the thread made `count` before it, with the same flags.
    pub(crate) fn before(self, count: usize) -> Self {
        Self(self.0.wrapping_sub((count as u64) << Self::LOW_BITS))
    }

    /// It and the thread's next ones, with the same flags.
    pub(crate) fn on(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |waiting| Some(waiting.next()))
    }

    /// Whether it was under way.
    #[inline(always)]
    pub(crate) fn is_over(self) -> bool {
        self.has(Self::OVER)
    }

    /// It, over.
    #[inline(always)]
    pub(crate) fn over(self) -> Self {
        Self(self.0 | u64::from(Self::OVER))
    }

    #[inline(always)]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & u64::from(flag) != 0
    }

    #[inline(always)]
    pub(crate) fn with(self, flags: u8) -> Self {
        Self(self.0 | u64::from(flags))
    }

    #[inline(always)]
    pub(crate) fn without(self, flag: u8) -> Self {
        Self(self.0 & !u64::from(flag))
    }

    /// Whether nothing is special about its completion.
    pub(crate) fn is_ordinary(self) -> bool {
        self.0 & ((1 << Self::FLAG_BITS) - 1) == 0
    }

    /// Whether the same thread made both and nothing is special about their completion.
    #[inline(always)]
    pub(crate) fn is_ordinary_like(self, ordinary: Self) -> bool {
        const LOW: u64 = (1 << Waiting::LOW_BITS) - 1;
        (self.0 ^ ordinary.0) & LOW == 0
    }

    /// Whether the status of its completion is of interest.
    #[inline(always)]
    pub(crate) fn needs_status(self) -> bool {
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
    count: u64,
    datatype: DatatypeId,
    recv_datatype: Option<DatatypeId>,
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
            count: part.count,
            datatype: part.datatype,
            recv_datatype: part.recv_datatype,
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
            count: self.count,
            datatype: self.datatype,
            recv_datatype: self.recv_datatype,
            request: Some(request),
            send_counts: &self.send_counts,
            recv_counts: &self.recv_counts,
        }
    }
}

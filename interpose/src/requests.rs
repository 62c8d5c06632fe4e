//! State of a request between the call that makes it and the call that completes it.

use mpi_abi::prototypes::Call;
use vef_format::capture::event::{Collective, Neighbourhood, PartitionedId, PostReceive, RequestId, Send};
use vef_format::units::Bytes;

/// A pending request: its number, the thread that made it and flags, packed into one word because the tables of these
/// are used by every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingRequest(u64);

impl PendingRequest {
    /// The flags of a posted receive.
    pub(crate) fn flags_of(post: &PostReceive) -> u8 {
        if post.source.is_none() || post.tag.is_none() { Self::WILDCARD } else { 0 }
    }

    /// A wildcard receive: the status of its completion has the source.
    pub(crate) const WILDCARD: u8 = 1;
    /// `MPI_Cancel` was called on it.
    pub(crate) const CANCELLED: u8 = 2;
    /// `MPI_Isendrecv`: the thread's next request completes together with this one.
    pub(crate) const TWIN: u8 = 4;
    /// The request has no record, or its completion is recorded already; it only marks its handle as used.
    pub(crate) const UNRECORDED: u8 = 8;
    pub(crate) const NEVER: Self = Self(u64::MAX);

    const FLAG_BITS: u32 = 4;
    /// Bits below the number. Its 44 bits last for weeks at a request every 100 ns.
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

    /// The next request of the thread, with the same flags.
    #[inline(always)]
    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1 << Self::LOW_BITS))
    }

    /// The number of requests that the thread made since `earlier`, which has the same flags.
    #[inline(always)]
    pub(crate) fn since(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0) >> Self::LOW_BITS
    }

    /// The request that the thread made `count` requests earlier, with the same flags.
    pub(crate) fn before(self, count: usize) -> Self {
        Self(self.0.wrapping_sub((count as u64) << Self::LOW_BITS))
    }

    #[inline(always)]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & u64::from(flag) != 0
    }

    #[inline(always)]
    pub(crate) fn with(self, flags: u8) -> Self {
        Self(self.0 | u64::from(flags))
    }

    /// Whether no flag is set.
    pub(crate) fn is_ordinary(self) -> bool {
        self.0 & ((1 << Self::FLAG_BITS) - 1) == 0
    }

    /// Whether `ordinary`, a request without flags, is of the same thread, and this one has no flags either.
    #[inline(always)]
    pub(crate) fn is_ordinary_like(self, ordinary: Self) -> bool {
        const LOW: u64 = (1 << PendingRequest::LOW_BITS) - 1;
        (self.0 ^ ordinary.0) & LOW == 0
    }

    /// Whether the status of its completion is needed.
    #[inline(always)]
    pub(crate) fn needs_status(self) -> bool {
        self.has(Self::WILDCARD | Self::CANCELLED) && !self.has(Self::UNRECORDED)
    }
}

/// What a persistent request does at each start, which sets its `request` fields.
#[derive(Clone, Debug)]
pub(crate) enum Template {
    Send(Send),
    Receive(PostReceive),
    /// A collective without its lists, and these: the bytes sent to and received from each rank.
    Collective(Box<(Collective<'static>, [Vec<u64>; 2])>),
    /// A neighbourhood collective: the function that made it, and the same.
    Neighbourhood(Call, Box<(Neighbourhood<'static>, [Vec<u64>; 2])>),
    /// A partitioned transfer, and the bytes of each partition.
    Partitioned(PartitionedId, Bytes),
    /// One whose starts have no record: a message to or from `MPI_PROC_NULL`.
    Unrecorded,
}

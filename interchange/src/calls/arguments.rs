//! What the calls of a rank are, as readers hand them to the recorder.

use vef_format::capture::event::{DatatypeId, Receive, RequestId, Send, SendMode};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// The only datatype of an imported capture: bytes.
pub(super) const BYTE: DatatypeId = DatatypeId(0);
/// `MPI_COMM_WORLD` in an imported capture.
pub(crate) const WORLD: CommId = CommId(0);

/// When a call was made, and by which thread; times are ns of the rank's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Entry.
    pub(crate) start: u64,
    /// Return.
    pub(crate) end: u64,
    /// The thread, in the numbers of the trace.
    pub(crate) thread: u16,
}

/// The message that a receive got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// Payload, where known.
    pub(crate) bytes: Option<u64>,
    /// Its source; negative: none.
    pub(crate) source: i64,
    /// Its tag.
    pub(crate) tag: i32,
    /// Whether the request was cancelled.
    pub(crate) cancelled: bool,
}

/// The arguments of a send, or of the sending half of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) comm: CommId,
    pub(crate) dest: u32,
    pub(crate) tag: i32,
    pub(crate) bytes: u64,
    pub(crate) mode: SendMode,
}

/// The arguments of a receive; `None` is a wildcard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiving {
    pub(crate) comm: CommId,
    pub(crate) source: Option<u32>,
    pub(crate) tag: Option<i32>,
    pub(crate) bytes: u64,
}

/// The arguments of a collective.
#[derive(Clone, Debug)]
pub(crate) struct Collecting<'a> {
    pub(crate) operation: Operation,
    pub(crate) comm: CommId,
    pub(crate) root: Option<u32>,
    pub(crate) amounts: Amounts,
    pub(crate) send_counts: &'a [u64],
    pub(crate) recv_counts: &'a [u64],
}

impl Sending {
    /// The event of the send.
    pub(super) fn action(self, request: Option<RequestId>) -> Send {
        let Self { comm, dest, tag, bytes, mode } = self;
        Send { comm, dest: CommRank(dest), tag, bytes: Bytes(bytes), datatype: BYTE, mode, request }
    }
}

impl Receiving {
    /// The completed receive; `None` if its message is not known.
    pub(super) fn action(self, got: Option<Status>) -> Option<Receive> {
        let Self { comm, source, tag, bytes } = self;
        let (any_source, any_tag) = (source.is_none(), tag.is_none());
        let from = |got: Status| u32::try_from(got.source).ok();
        let source = source.or_else(|| got.and_then(from))?;
        let tag = tag.or_else(|| got.map(|got| got.tag))?;
        let (source, bytes, datatype) = (CommRank(source), Bytes(bytes), BYTE);
        Some(Receive { comm, source, tag, any_source, any_tag, bytes, datatype })
    }
}

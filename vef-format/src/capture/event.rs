//! The events of a capture: one rank's calls, independent of the layout of the file.
//!
//! Peers, roots and sizes are those of the program (ranks of the communicator); wildcards come with the values that they
//! were resolved to. Only calls that matter to a trace are events. A call without effect on communication (a receive from
//! `MPI_PROC_NULL`) has none, and its duration counts as computing time of the next event.

use crate::ids::{CommId, CommRank, Rank};
use crate::operation::{Amounts, Operation};
use crate::units::{Bytes, Nanos};
use std::fmt;

/// One call of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When the program entered the call.
    pub start: Nanos,
    /// When it returned.
    pub end: Nanos,
    /// The calling thread, 0-based in order of first calls.
    pub thread: u16,
    /// The MPI function.
    pub call: CallSlot,
    /// The effect of the call.
    pub action: Action<'a>,
}

/// An MPI function: index in the rank's call table, which has the names ([`Events::functions`](super::Events::functions)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSlot(pub u16);

impl CallSlot {
    /// No function, or an unknown one: definitions at first use, phases, the older layout.
    pub const NONE: Self = Self(u16::MAX);

    /// The index in the call table, if there is one.
    pub fn index(self) -> Option<usize> {
        (self != Self::NONE).then_some(usize::from(self.0))
    }
}

/// A non-blocking operation of one rank. Never reused within a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// The thread that started it.
    pub thread: u16,
    /// Index among the requests of that thread, from 0.
    pub number: u64,
}

/// The effect of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// `MPI_Init`, `MPI_Init_thread`, or the first session: the start of the rank's time.
    Init,
    /// `MPI_Finalize`, or the end of the last session.
    Finalize,
    /// `MPI_Abort`.
    Abort {
        /// The error code.
        code: i32,
    },
    /// A communicator. Precedes its first use.
    Communicator(Communicator<'a>),
    /// A datatype. Precedes its first use.
    Datatype(Datatype<'a>),
    /// A call that creates communicators; their descriptions, if this rank is a member, precede it.
    Creation(Creation),
    /// A communicator was freed; its number is not used again.
    CommunicatorFree(CommId),
    /// A send: blocking (complete at the end of the call), non-blocking, or the start of a persistent one.
    Send(Send),
    /// A blocking receive.
    Receive(Receive),
    /// A receive was posted: non-blocking, the start of a persistent one, or a matched probe (with the resolved source and tag;
    /// `Mrecv` completes the message).
    PostReceive(PostReceive),
    /// `MPI_Sendrecv` and the like: both at once.
    Exchange {
        /// The sending half.
        send: Send,
        /// The receiving half.
        receive: Receive,
    },
    /// A call of the wait or test families, or `MPI_Mrecv`, completed requests, in the order of its array.
    Complete(Completions<'a>),
    /// `MPI_Request_free` on an active request, which no call will complete.
    Forget(RequestId),
    /// A blocking or successful probe that does not take the message.
    Probe {
        /// The communicator.
        comm: CommId,
        /// The source found.
        source: CommRank,
        /// The tag found.
        tag: i32,
    },
    /// A run of failed polls (`MPI_Test`, `MPI_Iprobe` and the like) with very short gaps, from the start of the first to the
    /// end of the last.
    Polls {
        /// Number of polls.
        count: u64,
    },
    /// A collective operation: blocking (complete at the end of the call), non-blocking or persistent.
    Collective(Collective<'a>),
    /// The topology of a communicator. Precedes its first neighbourhood collective.
    Topology(Topology<'a>),
    /// A neighbourhood collective: blocking (complete at the end of the call), non-blocking or persistent.
    Neighbourhood(Neighbourhood<'a>),
    /// A call of partitioned communication.
    Partitioned(Partitioned),
    /// A phase of the program begins or ends.
    Phase {
        /// Whether it begins.
        begin: bool,
        /// Its name.
        name: &'a str,
    },
    /// A call that is neither a message nor a collective: one-sided communication, and what a trace cannot represent (I/O, spawning,
    /// collectives between groups …). In captures of version 5 and older also neighbourhood collectives, and in some of version 6
    /// partitioned communication.
    Other {
        /// Bytes that this rank sent, fetched, read or wrote, as far as known.
        bytes: Bytes,
        /// Further arguments.
        detail: Detail<'a>,
    },
    /// Recording stopped (size limit, full disk); what follows is unknown.
    Stopped {
        /// The reason, in words.
        reason: &'a str,
    },
}

/// The creation of a communicator, by which communicators of different ranks are identified.
///
/// Each rank numbers its communicators on its own. Two ranks have the same communicator if the parents are the same, the
/// creating call has the same index on the parent (`ordinal`), and the members are the same: MPI requires the creating
/// calls on one communicator to have the same order on all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Origin<Parent = CommId> {
    /// `MPI_COMM_WORLD`.
    World,
    /// `MPI_COMM_SELF`.
    SelfOnly,
    /// Created collectively over all of a parent (dup, split, create, Cart_create …).
    Child {
        /// The parent.
        parent: Parent,
        /// Index among the creating calls on the parent, from 0; calls that returned `MPI_COMM_NULL` to this rank count too.
        ordinal: u32,
    },
    /// `MPI_Comm_create_group`: collective over the members only.
    Group {
        /// The parent.
        parent: Parent,
        /// The tag argument.
        tag: i32,
        /// Index among such calls with the same parent, tag and members, from 0.
        ordinal: u32,
    },
    /// The creation was not recorded: identified by the members, and by the order of first use among those with the same
    /// members.
    Unseen {
        /// Index among those with the same members, from 0.
        ordinal: u32,
    },
}

impl<Parent> Origin<Parent> {
    /// In the ordinal of a [`Child`](Self::Child): no call of the program created it. It holds the starts of one persistent
    /// collective, whose number among those made on the parent are the other bits.
    pub const PERSISTENT: u32 = 1 << 30;

    /// The same origin, with the parent that `convert` returns for the parent.
    ///
    /// # Errors
    /// Those of `convert`.
    pub fn with_parent<Other, E>(
        self,
        convert: impl FnOnce(Parent) -> Result<Other, E>,
    ) -> Result<Origin<Other>, E> {
        Ok(match self {
            Self::World => Origin::World,
            Self::SelfOnly => Origin::SelfOnly,
            Self::Child { parent, ordinal } => Origin::Child { parent: convert(parent)?, ordinal },
            Self::Group { parent, tag, ordinal } => Origin::Group { parent: convert(parent)?, tag, ordinal },
            Self::Unseen { ordinal } => Origin::Unseen { ordinal },
        })
    }
}

/// The members of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members<'a> {
    /// All tasks, in world order.
    All,
    /// `count` tasks from `first` on, `stride` apart (negative: descending).
    Strided {
        /// World rank of communicator rank 0.
        first: Rank,
        /// World-rank distance of neighbours; never 0.
        stride: i64,
        /// Number of members.
        count: u32,
    },
    /// World ranks in communicator-rank order.
    List(&'a [Rank]),
}

/// A communicator as one rank sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator<'a> {
    /// This rank's number for it.
    pub id: CommId,
    /// How it was created.
    pub origin: Origin,
    /// The colour and key of this rank, if `MPI_Comm_split` created it.
    pub split: Option<Split>,
    /// The members; of an inter-communicator the local group. Processes outside `MPI_COMM_WORLD` are omitted.
    pub members: Members<'a>,
    /// The remote group.
    pub remote: Remote<'a>,
    /// Whether it has members outside `MPI_COMM_WORLD`, or in captures of version 5 and older is an inter-communicator. Its traffic is
    /// counted, but is not in the trace.
    pub foreign: bool,
}

impl<'a> Communicator<'a> {
    /// The tasks to which ranks in point-to-point calls refer: the remote group of an inter-communicator, else the members.
    pub fn peers(&self) -> Members<'a> {
        if let Remote::Inside(members) = self.remote { members } else { self.members }
    }

    /// Whether it is an inter-communicator.
    pub fn is_inter(&self) -> bool {
        self.remote != Remote::None
    }
}

/// A call that creates communicators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// The communicator of which all members make the call: the parent, or the new one if it has no parent or only its members
    /// make the call (`MPI_Comm_create_group`, `MPI_Intercomm_merge`).
    pub comm: CommId,
    /// The request of a non-blocking call; `None`: blocking.
    pub request: Option<RequestId>,
}

/// The arguments of `MPI_Comm_split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The colour.
    pub color: i32,
    /// The key.
    pub key: i32,
}

/// The remote group of an inter-communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote<'a> {
    /// It is an intra-communicator.
    None,
    /// Tasks of this world.
    Inside(Members<'a>),
    /// This many processes, some of another world (a spawned program, or the one that spawned this), in the order of the local
    /// group of their inter-communicator.
    Outside(u32),
}

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

/// The requests that a call completed, in the order of its array. Some lists have both forms, which are equal.
#[derive(Clone, Copy)]
pub enum Completions<'a> {
    /// Any requests.
    List(&'a [Completion]),
    /// Requests that one thread started consecutively, all [`Outcome::Done`].
    Run {
        /// The first request.
        first: RequestId,
        /// Number of requests; all request numbers are below 2^64.
        count: u64,
    },
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub request: RequestId,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Completed as posted: a send, a collective, or a receive without wildcards.
    Done,
    /// A wildcard receive, with the message it received.
    Received {
        /// The source.
        source: CommRank,
        /// The tag.
        tag: i32,
        /// Bytes received, where the layout has them.
        bytes: Option<Bytes>,
    },
    /// Cancelled before any data moved.
    Cancelled,
}

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

/// The number that one rank gave a window in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct WindowId(pub u32);

/// The number that one rank gave an open file in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// Arguments of a call that a trace cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail<'a> {
    /// None recorded.
    None,
    /// A window was created. Precedes its first use.
    Window {
        /// This rank's number for it.
        id: WindowId,
        /// The communicator.
        comm: CommId,
        /// Bytes of memory that this rank exposes.
        size: Bytes,
        /// Displacement unit.
        unit: u32,
    },
    /// A window was freed; its number is not used again.
    WindowFree(WindowId),
    /// A one-sided transfer.
    Transfer(Transfer),
    /// A synchronisation of a window: fence, post, start, complete, wait, lock, unlock, flush, sync.
    Sync {
        /// The window.
        window: WindowId,
        /// The target, as a rank of the window's communicator, if the call has one.
        target: Option<CommRank>,
        /// Whether a lock is exclusive.
        exclusive: bool,
        /// The assertion, in the values of this MPI.
        assert: i32,
        /// The group argument of post or start.
        group: Option<Members<'a>>,
    },
    /// A file was opened. Precedes its first use.
    FileOpen {
        /// This rank's number for it.
        id: FileId,
        /// The communicator.
        comm: CommId,
        /// Access mode, in the values of this MPI.
        mode: i32,
        /// The file name argument.
        name: &'a str,
    },
    /// The view of a file was set.
    FileView {
        /// The file.
        file: FileId,
        /// Displacement of the view in bytes.
        displacement: i64,
        /// Bytes of the elementary datatype, which is the unit of offsets.
        unit: Bytes,
    },
    /// A file was closed; its number is not used again.
    FileClose(FileId),
    /// A file was read or written.
    Io(Io),
}

impl Detail<'_> {
    /// Whether traces have the call all the same: one-sided communication, and the collectives by which all agree on a file.
    pub fn is_in_traces(&self) -> bool {
        match self {
            Self::Window { .. } | Self::WindowFree(_) | Self::Transfer(_) | Self::Sync { .. } => true,
            Self::FileOpen { .. } | Self::FileView { .. } | Self::FileClose(_) => true,
            Self::None | Self::Io(_) => false,
        }
    }
}

/// A one-sided transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The window.
    pub window: WindowId,
    /// The target: a rank of the window's communicator.
    pub target: CommRank,
    /// Displacement in the target's window, in its unit.
    pub displacement: i64,
    /// Bytes sent to the target.
    pub sent: Bytes,
    /// Bytes fetched from the target.
    pub fetched: Bytes,
    /// Bytes accessed at the target.
    pub at_target: Bytes,
    /// The request, if the call starts one.
    pub request: Option<RequestId>,
}

/// A read or write of a file; its size is the event's `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The file.
    pub file: FileId,
    /// The offset in units of the view; `None`: an individual or shared file pointer.
    pub offset: Option<i64>,
    /// Whether it is a write.
    pub write: bool,
    /// Whether the call is collective over the file's communicator.
    pub collective: bool,
    /// The request, if the call starts one.
    pub request: Option<RequestId>,
}

impl Completions<'_> {
    /// Number of requests.
    pub fn len(&self) -> u64 {
        match *self {
            Self::List(list) => list.len() as u64,
            Self::Run { count, .. } => count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All requests, in order.
    pub fn iter(&self) -> impl Iterator<Item = Completion> {
        let (list, run) = match *self {
            Self::List(list) => (list, 0..0),
            Self::Run { first, count } => (&[][..], first.number..first.number.saturating_add(count)),
        };
        let thread = if let Self::Run { first, .. } = self { first.thread } else { 0 };
        let done = move |number| Completion { request: RequestId { thread, number }, outcome: Outcome::Done };
        list.iter().copied().chain(run.map(done))
    }
}

impl PartialEq for Completions<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Completions<'_> {}

impl fmt::Debug for Completions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

//! The meaning of a capture: what one rank did, call by call, whatever the layout of the file.
//!
//! Peers, roots and sizes are as the program gave them (ranks of the communicator); wildcards stand beside what
//! they were resolved to. Only calls that matter to a trace are here; a call that has no effect on
//! communication (a failed test, a receive from `MPI_PROC_NULL`) leaves no event, and its duration becomes
//! computing time of whatever follows.

use crate::ids::{CommId, CommRank, Rank};
use crate::operation::{Amounts, Operation};
use crate::units::{Bytes, Nanos};
use std::fmt;

/// One call of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When the program entered the call.
    pub start: Nanos,
    /// When it left the call.
    pub end: Nanos,
    /// Which thread of the rank called, 0-based in order of first call.
    pub thread: u16,
    /// Which MPI function it called.
    pub call: CallSlot,
    /// What it did.
    pub action: Action<'a>,
}

/// An MPI function: its place in the rank's call table, which has its name ([`Events::functions`](super::Events::functions)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSlot(pub u16);

impl CallSlot {
    /// No call, or one whose function is not known: definitions at first use, marks of phases, the older layout.
    pub const NONE: Self = Self(u16::MAX);

    /// The index in the call table, if there is one.
    pub fn index(self) -> Option<usize> {
        (self != Self::NONE).then_some(usize::from(self.0))
    }
}

/// A non-blocking operation of one rank, from its start to its completion. Never reused within a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// The thread that started it.
    pub thread: u16,
    /// Index among the requests of that thread, from 0.
    pub number: u64,
}

/// What a call did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// `MPI_Init`, `MPI_Init_thread` (or the first session): the zero of this rank's time.
    Init,
    /// `MPI_Finalize` (or the last session's end).
    Finalize,
    /// `MPI_Abort`.
    Abort {
        /// The error code given.
        code: i32,
    },
    /// A communicator came to be known. Stands before its first use.
    Communicator(Communicator<'a>),
    /// A datatype came to be known. Stands before its first use.
    Datatype(Datatype<'a>),
    /// A communicator was freed; its number is not used again.
    CommunicatorFree(CommId),
    /// A send began: blocking (then it is also over), non-blocking, or the start of a persistent one.
    Send(Send),
    /// A blocking receive.
    Receive(Receive),
    /// A receive was posted: non-blocking, the start of a persistent one, or a matched probe (whose source and
    /// tag are the resolved ones, and whose message is completed by `Mrecv`).
    PostReceive(PostReceive),
    /// `MPI_Sendrecv` and its like: both at once.
    Exchange {
        /// The sending half.
        send: Send,
        /// The receiving half.
        receive: Receive,
    },
    /// A call of the wait or test families (or `MPI_Mrecv`) completed these, in the order of its array.
    Complete(Completions<'a>),
    /// `MPI_Request_free` on an active request: nobody will wait for it.
    Forget(RequestId),
    /// A probe (blocking, or one that found something) that does not take the message.
    Probe {
        /// On which communicator.
        comm: CommId,
        /// Whom it found.
        source: CommRank,
        /// With which tag.
        tag: i32,
    },
    /// Polls that found nothing, of `MPI_Test`, `MPI_Iprobe` and the like, with little between them: from the start of the first to the
    /// end of the last.
    Polls {
        /// How many.
        count: u64,
    },
    /// A collective operation began: blocking (then it is also over), non-blocking or persistent.
    Collective(Collective<'a>),
    /// A phase of the program began or ended.
    Phase {
        /// Begin or end.
        begin: bool,
        /// Its name.
        name: &'a str,
    },
    /// A call that a VEF trace cannot represent (one-sided, I/O, spawning, inter-communicators …).
    Other {
        /// Data that this rank sent, fetched, read or wrote, as far as known.
        bytes: Bytes,
        /// What else is known of it.
        detail: Detail<'a>,
    },
    /// Tracing stopped here on purpose (a size limit, a full disk); what follows is not known.
    Stopped {
        /// Why, for people.
        reason: &'a str,
    },
}

/// How a communicator came to be; decides which communicators of different ranks are the same one.
///
/// Ranks number their communicators on their own. Two ranks mean the same one when its parents are the same, the
/// creating call is the same one on that parent (`ordinal`), and the members are the same: MPI orders the creating
/// calls of one communicator the same way everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// `MPI_COMM_WORLD`.
    World,
    /// `MPI_COMM_SELF`.
    SelfOnly,
    /// Created collectively over all of a parent (dup, split, create, Cart_create …).
    Child {
        /// From which communicator.
        parent: CommId,
        /// Index among the creating calls on that parent, from 0; calls that gave this rank
        /// `MPI_COMM_NULL` count too.
        ordinal: u32,
    },
    /// `MPI_Comm_create_group`: collective over the members only.
    Group {
        /// From which communicator.
        parent: CommId,
        /// The tag given.
        tag: i32,
        /// Index among such calls with this parent, tag and member list, from 0.
        ordinal: u32,
    },
    /// Nobody saw it made: told apart by its members and by the order of first use among those with
    /// the same members.
    Unseen {
        /// Index among those with this member list, from 0.
        ordinal: u32,
    },
}

/// Who belongs to a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members<'a> {
    /// All tasks, in world order.
    All,
    /// `count` tasks from `first` on, `stride` apart (negative: downwards).
    Strided {
        /// World rank of communicator rank 0.
        first: Rank,
        /// World-rank distance of neighbours in the list; never 0.
        stride: i64,
        /// How many.
        count: u32,
    },
    /// World ranks in communicator-rank order.
    List(&'a [Rank]),
}

/// A communicator as one rank knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator<'a> {
    /// This rank's number for it.
    pub id: CommId,
    /// How it came to be.
    pub origin: Origin,
    /// Colour and key that this rank gave, if `MPI_Comm_split` made it.
    pub split: Option<Split>,
    /// The members; of an inter-communicator the local group. Processes outside `MPI_COMM_WORLD` are left out.
    pub members: Members<'a>,
    /// The other group of an inter-communicator.
    pub remote: Option<Remote<'a>>,
    /// Whether it is an inter-communicator (or has members outside `MPI_COMM_WORLD`): its traffic is counted,
    /// not translated.
    pub foreign: bool,
}

/// The arguments of `MPI_Comm_split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The colour.
    pub color: i32,
    /// The key.
    pub key: i32,
}

/// The other group of an inter-communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote<'a> {
    /// Tasks of this world.
    Inside(Members<'a>),
    /// So many processes, not all of this world (a program that was spawned, or that spawned this one): in the same order as
    /// the local group of the inter-communicator that they have.
    Outside(u32),
}

/// What is known of a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datatype<'a> {
    /// This rank's number for it.
    pub id: DatatypeId,
    /// Bytes of data in one element.
    pub size: Bytes,
    /// Whether `count` elements lie in memory without gaps.
    pub contiguous: bool,
    /// The name of one of MPI's own (`MPI_DOUBLE`); empty: derived by the program.
    pub name: &'a str,
}

/// The number one rank gave a datatype in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DatatypeId(pub u32);

/// How a send is to be completed.
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
    /// On which communicator.
    pub comm: CommId,
    /// To whom.
    pub dest: CommRank,
    /// With which tag.
    pub tag: i32,
    /// Payload.
    pub bytes: Bytes,
    /// Made of what.
    pub datatype: DatatypeId,
    /// How it completes.
    pub mode: SendMode,
    /// The request of a non-blocking send; `None`: blocking.
    pub request: Option<RequestId>,
}

/// A blocking receive that has completed. Never from `MPI_PROC_NULL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// On which communicator.
    pub comm: CommId,
    /// From whom the message came.
    pub source: CommRank,
    /// With which tag it came.
    pub tag: i32,
    /// Whether the program asked for `MPI_ANY_SOURCE`.
    pub any_source: bool,
    /// Whether the program asked for `MPI_ANY_TAG`.
    pub any_tag: bool,
    /// Room in the buffer, or the bytes received where that is known.
    pub bytes: Bytes,
    /// Made of what.
    pub datatype: DatatypeId,
}

/// A receive that has been posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostReceive {
    /// On which communicator.
    pub comm: CommId,
    /// From whom; `None`: `MPI_ANY_SOURCE`.
    pub source: Option<CommRank>,
    /// With which tag; `None`: `MPI_ANY_TAG`.
    pub tag: Option<i32>,
    /// Room in the buffer.
    pub bytes: Bytes,
    /// Made of what.
    pub datatype: DatatypeId,
    /// What completes it.
    pub request: RequestId,
}

/// The requests that a call completed, in the order of its array. Equal ones may be told either way.
#[derive(Clone, Copy)]
pub enum Completions<'a> {
    /// Each for itself.
    List(&'a [Completion]),
    /// Requests that one thread made one after the other, all [`Outcome::Done`].
    Run {
        /// The first of them.
        first: RequestId,
        /// How many; the numbers of all are below 2^64.
        count: u64,
    },
}

/// One request that a call completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which one.
    pub request: RequestId,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it was posted: a send, a collective, or a receive whose source and tag were given.
    Done,
    /// A receive with a wildcard: whom and what it met.
    Received {
        /// From whom the message came.
        source: CommRank,
        /// With which tag it came.
        tag: i32,
        /// Bytes received, where the layout keeps them.
        bytes: Option<Bytes>,
    },
    /// It was cancelled before it moved anything.
    Cancelled,
}

/// One rank's part of a collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective<'a> {
    /// Which operation.
    pub operation: Operation,
    /// On which communicator.
    pub comm: CommId,
    /// The root of a rooted operation.
    pub root: Option<CommRank>,
    /// What this rank contributes and obtains.
    pub amounts: Amounts,
    /// Elements of `datatype` as the call counts them (of a gather or scatter: one rank's block); 0 in vector forms.
    pub count: u64,
    /// Made of what: the sending side's where that is significant. Of an Alltoallw: one that has gaps, if any has.
    pub datatype: DatatypeId,
    /// The receiving side's where both sides are significant.
    pub recv_datatype: Option<DatatypeId>,
    /// The request of a non-blocking or persistent operation; `None`: blocking.
    pub request: Option<RequestId>,
    /// Vector forms: bytes for each communicator rank, where significant at this rank; else empty.
    pub send_counts: &'a [u64],
    /// Vector forms: bytes from each communicator rank, where significant at this rank; else empty.
    pub recv_counts: &'a [u64],
}

/// The number one rank gave a window in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct WindowId(pub u32);

/// The number one rank gave an open file in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// What is known of a call that a trace cannot represent; which function it was says the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail<'a> {
    /// Nothing more.
    None,
    /// A window was made. Stands before its first use.
    Window {
        /// This rank's number for it.
        id: WindowId,
        /// Over which communicator.
        comm: CommId,
        /// Memory that this rank exposes.
        size: Bytes,
        /// Unit of displacements.
        unit: u32,
    },
    /// A window was freed; its number is not used again.
    WindowFree(WindowId),
    /// A one-sided transfer.
    Transfer(Transfer),
    /// A synchronisation of a window: fence, post, start, complete, wait, lock, unlock, flush, sync.
    Sync {
        /// Of which window.
        window: WindowId,
        /// The target, as a rank of the window's communicator, where there is one.
        target: Option<CommRank>,
        /// Whether a lock is exclusive.
        exclusive: bool,
        /// The assertion, as this MPI numbers it.
        assert: i32,
        /// The processes that are to access (post), or to be accessed (start).
        group: Option<Members<'a>>,
    },
    /// A file was opened. Stands before its first use.
    FileOpen {
        /// This rank's number for it.
        id: FileId,
        /// Over which communicator.
        comm: CommId,
        /// Access mode, as this MPI numbers it.
        mode: i32,
        /// Its name as the program gave it.
        name: &'a str,
    },
    /// A file got another view.
    FileView {
        /// Which file.
        file: FileId,
        /// Where the view begins, bytes.
        displacement: i64,
        /// Bytes of the elementary datatype, the unit of offsets.
        unit: Bytes,
    },
    /// A file was closed; its number is not used again.
    FileClose(FileId),
    /// Data was read or written.
    Io(Io),
}

/// A one-sided transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Through which window.
    pub window: WindowId,
    /// To or from whom: a rank of the window's communicator.
    pub target: CommRank,
    /// Where in the target's window, in its unit.
    pub displacement: i64,
    /// What goes to the target.
    pub sent: Bytes,
    /// What comes from it.
    pub fetched: Bytes,
    /// What is read or changed there.
    pub at_target: Bytes,
    /// What completes it, if it makes a request.
    pub request: Option<RequestId>,
}

/// A read or write of a file. How much: the event's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Which file.
    pub file: FileId,
    /// Where, in units of the file's view; `None`: at an individual or shared file pointer.
    pub offset: Option<i64>,
    /// Write or read.
    pub write: bool,
    /// Whether all processes of the file's communicator take part.
    pub collective: bool,
    /// What completes it, if it makes a request.
    pub request: Option<RequestId>,
}

impl Completions<'_> {
    /// How many.
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

    /// One after the other.
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

impl Members<'_> {
    /// Number of members in a run of `tasks` tasks.
    pub fn count(&self, tasks: u32) -> u32 {
        match *self {
            Self::All => tasks,
            Self::Strided { count, .. } => count,
            Self::List(list) => list.len() as u32,
        }
    }

    /// World rank of communicator rank `index`, if there is such a member.
    pub fn get(&self, index: CommRank, tasks: u32) -> Option<Rank> {
        if index.0 >= self.count(tasks) {
            return None;
        }
        match *self {
            Self::All => Some(Rank(index.0)),
            Self::Strided { first, stride, .. } => {
                let world = i64::from(first.0).checked_add(stride.checked_mul(i64::from(index.0))?)?;
                u32::try_from(world).ok().map(Rank)
            }
            Self::List(list) => list.get(index.index()).copied(),
        }
    }
}

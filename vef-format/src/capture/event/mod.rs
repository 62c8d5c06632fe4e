//! The events of a capture: one rank's calls, independent of the layout of the file.
//!
//! Peers, roots and sizes are those of the program (ranks of the communicator); wildcards come with the values that they
//! were resolved to. Only calls that matter to a trace are events. A call without effect on communication (a receive from
//! `MPI_PROC_NULL`) has none, and its duration counts as computing time of the next event.

mod collective;
mod communicator;
mod detail;
mod message;
mod partitioned;
mod request;

pub use collective::{Collective, Neighbourhood, Topology};
pub use communicator::{Communicator, Creation, Meeting, MeetingWay, Members, Origin, Remote, Split};
pub use detail::{Detail, FileId, Io, Tile, Transfer, WindowId, moves_nothing};
pub use message::{Datatype, DatatypeId, PostReceive, Receive, Send, SendMode};
pub use partitioned::{Partitioned, PartitionedId, PartitionedInit};
pub use request::{Completion, Completions, Outcome, RequestId};

use crate::ids::{CommId, CommRank};
use crate::units::{Bytes, Nanos};

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
    /// Processes of another `MPI_COMM_WORLD`. Precedes the first communicator with them.
    Meeting(Meeting<'a>),
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
    /// Of the time from the thread's previous call to its next one, the event's duration was spent without a core, which other threads
    /// had while it was ready to run. It begins where the previous call ends, wherever it was in this time.
    Preempted,
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
    /// A call that is neither a message nor a collective: one-sided communication, and what a trace cannot represent (I/O,
    /// ports …). In captures of version 5 and older also neighbourhood collectives, and in some of version 6
    /// partitioned communication.
    Other {
        /// Bytes that this rank sent, fetched, read or wrote, as far as known.
        bytes: Bytes,
        /// Further arguments.
        detail: Detail<'a>,
    },
    /// Recording stopped (size limit, full disk); what follows is unknown.
    Stopped {
        /// The reason, in words; [`UNRECORDED`] of a rank that was not to be recorded.
        reason: &'a str,
    },
}

/// Why the recording of a rank stopped in `MPI_Init`: `vef run --only-ranks` leaves it out.
pub const UNRECORDED: &str = "not among the ranks to be recorded, as asked";

//! Communicators: how they were made, and who is in them.

use super::request::RequestId;
use crate::ids::{CommId, Rank};

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
    /// The creation was not recorded, or has no parent: identified by the members, and by the order of first use among those with the same
    /// members. With processes of other worlds, who opens the capture counts, as only it knows the members.
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
    /// The members; of an inter-communicator the local group.
    pub members: Members<'a>,
    /// The remote group.
    pub remote: Remote<'a>,
    /// Whether it has members outside the capture: its traffic is counted, but is not in the trace. Then `members` and `remote` may be
    /// incomplete, or name ranks beyond the last task ([`Meeting`]). In captures of version 5 and older, inter-communicators have it.
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
    /// These.
    Inside(Members<'a>),
    /// This many processes, some of another world; in captures of version 7 and older.
    Outside(u32),
}

/// Processes outside `MPI_COMM_WORLD` that a rank has not met before. To this rank they are the ranks from `first` on, in the order
/// of their own communicator. Precedes the communicator by which they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting<'a> {
    /// The rank of the first of them: at least the size of `MPI_COMM_WORLD`.
    pub first: Rank,
    /// Number of processes.
    pub count: u32,
    /// How they meet.
    pub way: MeetingWay,
    /// The communicator of this side; its members are together in the call.
    pub comm: CommId,
    /// Of the root of a call, the name of the port, or of the function that spawns; of a spawned rank, what the launcher says of the root
    /// that spawned it (`OMPI_PARENT_PORT`); else empty.
    pub name: &'a str,
}

/// How processes of several worlds meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MeetingWay {
    /// This side spawned them (`MPI_Comm_spawn`).
    Spawned,
    /// They spawned this side (`MPI_Comm_get_parent`).
    Parents,
    /// `MPI_Comm_accept`.
    Accepted,
    /// `MPI_Comm_connect`.
    Connected,
    /// Not known: `MPI_Comm_join`, or the call was not recorded.
    Unseen,
}

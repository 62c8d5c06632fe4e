//! The communicators of one rank's capture, by number.

use vef_format::capture::event::{Communicator, Members};
use vef_format::ids::{CommId, CommRank, Rank};

/// Who is in a communicator.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    members: Kept,
    tasks: u32,
    /// Whether it is an inter-communicator, or has members outside `MPI_COMM_WORLD`.
    pub(crate) foreign: bool,
}

/// [`Members`] that are kept.
#[derive(Clone, Debug)]
enum Kept {
    All,
    Strided { first: Rank, stride: i64, count: u32 },
    List(Box<[Rank]>),
}

impl Group {
    fn members(&self) -> Members<'_> {
        match &self.members {
            Kept::All => Members::All,
            &Kept::Strided { first, stride, count } => Members::Strided { first, stride, count },
            Kept::List(list) => Members::List(list),
        }
    }

    /// Number of members.
    pub(crate) fn size(&self) -> u32 {
        self.members().count(self.tasks)
    }

    /// The rank in `MPI_COMM_WORLD` of a member.
    pub(crate) fn world_rank(&self, member: CommRank) -> Option<Rank> {
        self.members().get(member, self.tasks)
    }

    /// The communicator rank of a task, if it is a member.
    pub(crate) fn rank_of(&self, task: Rank) -> Option<CommRank> {
        let members = self.members();
        (0..self.size()).map(CommRank).find(|&member| members.get(member, self.tasks) == Some(task))
    }
}

/// What is known of communicators, by number.
#[derive(Debug)]
pub(crate) struct Communicators<T> {
    all: Vec<Option<T>>,
}

impl<T> Default for Communicators<T> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<T> Communicators<T> {
    pub(crate) fn insert(&mut self, id: CommId, known: T) {
        if self.all.len() <= id.index() {
            self.all.resize_with(id.index() + 1, || None);
        }
        self.all[id.index()] = Some(known);
    }

    /// `None`: the capture does not describe it.
    pub(crate) fn get_mut(&mut self, id: CommId) -> Option<&mut T> {
        self.all.get_mut(id.index())?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: CommId) -> Option<T> {
        self.all.get_mut(id.index())?.take()
    }
}

/// The members of a communicator in a world of `tasks`.
pub(crate) fn group(described: &Communicator<'_>, tasks: u32) -> Group {
    let members = match described.members {
        Members::All => Kept::All,
        Members::Strided { first, stride, count } => Kept::Strided { first, stride, count },
        Members::List(list) => Kept::List(list.into()),
    };
    Group { members, tasks, foreign: described.foreign }
}

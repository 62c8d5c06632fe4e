//! The communicators of one rank's capture, by number.

use vef_format::capture::event::{Communicator, Members};
use vef_format::ids::{CommId, CommRank, Rank};

/// The members of a communicator. Members at regular distances are stored as a stride, whatever their form in the capture.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    members: Kept,
    /// Whether it is an inter-communicator, or has members outside `MPI_COMM_WORLD`.
    pub(crate) foreign: bool,
}

/// The ranks in `MPI_COMM_WORLD` of the members.
#[derive(Clone, Debug)]
enum Kept {
    Strided { first: i64, stride: i64, count: u32 },
    List(Box<[Rank]>),
}

impl Kept {
    fn of_list(list: &[Rank]) -> Self {
        let step = |pair: &[Rank]| i64::from(pair[1].0) - i64::from(pair[0].0);
        let mut steps = list.windows(2).map(step);
        let stride = steps.next().unwrap_or(1);
        match list.first() {
            Some(first) if steps.all(|step| step == stride) => {
                Self::Strided { first: first.0.into(), stride, count: list.len() as u32 }
            }
            _ => Self::List(list.into()),
        }
    }
}

impl Group {
    /// That of a communicator in a world of `tasks`.
    pub(crate) fn new(described: &Communicator<'_>, tasks: u32) -> Self {
        let members = match described.members {
            Members::All => Kept::Strided { first: 0, stride: 1, count: tasks },
            Members::Strided { first, stride, count } => {
                Kept::Strided { first: first.0.into(), stride, count }
            }
            Members::List(list) => Kept::of_list(list),
        };
        Self { members, foreign: described.foreign }
    }

    /// Number of members.
    pub(crate) fn size(&self) -> u32 {
        match &self.members {
            Kept::Strided { count, .. } => *count,
            Kept::List(list) => list.len() as u32,
        }
    }

    /// The rank in `MPI_COMM_WORLD` of a member.
    pub(crate) fn world_rank(&self, member: CommRank) -> Option<Rank> {
        match &self.members {
            Kept::Strided { first, stride, count } => {
                let world = first.checked_add(stride.checked_mul(member.0.into())?)?;
                (member.0 < *count).then(|| u32::try_from(world).ok().map(Rank)).flatten()
            }
            Kept::List(list) => list.get(member.index()).copied(),
        }
    }

    /// The communicator rank of a task, if it is a member.
    pub(crate) fn rank_of(&self, task: Rank) -> Option<CommRank> {
        let member = match &self.members {
            Kept::Strided { first, stride, count } => {
                let offset = i64::from(task.0) - first;
                let member = if offset == 0 { 0 } else { offset.checked_div(*stride)? };
                let is_there = member * stride == offset && (0..i64::from(*count)).contains(&member);
                is_there.then_some(member as u32)?
            }
            Kept::List(list) => list.iter().position(|&member| member == task)? as u32,
        };
        Some(CommRank(member))
    }

    /// Numbers that are equal exactly for equal groups.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        let (head, list): ([Option<u64>; 3], &[Rank]) = match &self.members {
            // A stride means nothing to a single member.
            Kept::Strided { first, count: 1, .. } => ([Some(1), Some(*first as u64), None], &[]),
            Kept::Strided { first, stride, count } => {
                ([Some((*count).into()), Some(*first as u64), Some(*stride as u64)], &[])
            }
            Kept::List(list) => ([Some(list.len() as u64), None, None], list),
        };
        head.into_iter().flatten().chain(list.iter().map(|rank| rank.0.into()))
    }
}

/// Data on communicators, by number.
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

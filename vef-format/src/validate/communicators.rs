//! The communicators of a trace, and the number of collectives that each member has called.

use crate::id_table::IdTable;
use crate::ids::{CommId, Rank};

/// The communicators of a trace, by id.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    numbers: IdTable,
    list: Vec<Communicator>,
}

/// A communicator.
#[derive(Debug)]
pub(super) struct Communicator {
    pub(super) id: CommId,
    /// The member with communicator rank 0.
    pub(super) first: Rank,
    members: Members,
    /// Number of collectives of each member, in the order of `members`.
    calls: Vec<u32>,
}

#[derive(Debug)]
enum Members {
    /// Tasks 0, 1, … in order: the usual case, without search.
    Leading(u32),
    /// World ranks, sorted.
    Sorted(Vec<Rank>),
}

impl Communicators {
    /// Adds a communicator of at least one member; returns what is wrong with it.
    pub(super) fn add(&mut self, id: CommId, members: &[Rank]) -> Result<(), Wrong> {
        if self.numbers.insert(id.0.into(), self.list.len() as u32).is_some() {
            return Err(Wrong::DuplicateId);
        }
        let leading = members.iter().enumerate().all(|(index, rank)| rank.index() == index);
        let first = members[0];
        let (members, twice) = if leading {
            (Members::Leading(members.len() as u32), None)
        } else {
            let mut sorted = members.to_vec();
            sorted.sort_unstable();
            let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
            sorted.dedup();
            (Members::Sorted(sorted), twice)
        };
        let calls = vec![0; members.len() as usize];
        self.list.push(Communicator { id, first, members, calls });
        twice.map_or(Ok(()), |rank| Err(Wrong::DuplicateMember(rank)))
    }

    /// The number of the communicator `id`, for [`Communicators::get`].
    pub(super) fn number(&self, id: CommId) -> Option<u32> {
        self.numbers.get(id.0.into())
    }

    pub(super) fn get(&self, number: u32) -> &Communicator {
        &self.list[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Communicator {
        &mut self.list[number as usize]
    }

    /// Resets the calls.
    pub(super) fn rewind(&mut self) {
        for communicator in &mut self.list {
            communicator.calls.fill(0);
        }
    }
}

/// What is wrong with a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrong {
    DuplicateId,
    DuplicateMember(Rank),
}

impl Members {
    fn len(&self) -> u32 {
        match self {
            Self::Leading(count) => *count,
            Self::Sorted(ranks) => ranks.len() as u32,
        }
    }
}

impl Communicator {
    /// Number of members.
    pub(super) fn size(&self) -> u32 {
        self.members.len()
    }

    /// Index of `task` among the members.
    #[inline]
    pub(super) fn member(&self, task: Rank) -> Option<usize> {
        match &self.members {
            Members::Leading(count) => (task.0 < *count).then_some(task.index()),
            Members::Sorted(ranks) => ranks.binary_search(&task).ok(),
        }
    }

    /// The members, in any order.
    pub(super) fn tasks(&self) -> impl Iterator<Item = Rank> {
        let (leading, sorted) = match &self.members {
            Members::Leading(count) => (*count, [].as_slice()),
            Members::Sorted(ranks) => (0, ranks.as_slice()),
        };
        (0..leading).map(Rank).chain(sorted.iter().copied())
    }

    /// Number of collectives that the member has called.
    #[inline]
    pub(super) fn calls(&self, member: usize) -> u32 {
        self.calls[member]
    }

    /// Counts a call of the member; returns the number of calls before.
    #[inline]
    pub(super) fn call(&mut self, member: usize) -> u32 {
        self.calls[member] += 1;
        self.calls[member] - 1
    }
}

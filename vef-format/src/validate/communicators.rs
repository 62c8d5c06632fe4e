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
    /// World ranks, sorted.
    members: Vec<Rank>,
    /// Number of collectives of each member, in the order of `members`.
    calls: Vec<u32>,
}

impl Communicators {
    /// Adds a communicator of at least one member; returns what is wrong with it.
    pub(super) fn add(&mut self, id: CommId, members: &[Rank]) -> Result<(), Wrong> {
        if self.numbers.insert(id.0.into(), self.list.len() as u32).is_some() {
            return Err(Wrong::DuplicateId);
        }
        let first = members[0];
        let mut members = members.to_vec();
        members.sort_unstable();
        let twice = members.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        members.dedup();
        let calls = vec![0; members.len()];
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

impl Communicator {
    /// Number of members.
    pub(super) fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// Index of `task` among the members.
    #[inline]
    pub(super) fn member(&self, task: Rank) -> Option<usize> {
        // In a communicator of the first tasks, each is in its place.
        match self.members.get(task.index()) {
            Some(&member) if member == task => Some(task.index()),
            _ => self.members.binary_search(&task).ok(),
        }
    }

    /// The first member that has called at most `calls` collectives.
    pub(super) fn behind(&self, calls: u32) -> Option<Rank> {
        self.members.iter().zip(&self.calls).find(|&(_, &called)| called <= calls).map(|(&task, _)| task)
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

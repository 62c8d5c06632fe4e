//! The communicators of a run: which of the tasks' communicators are the same, and their ids in the trace.
//!
//! Each task numbers its communicators on its own ([`CommId`] in a capture). How a communicator, say of `MPI_Comm_split`, gets
//! its id in the trace:
//!
//! 1. The recorder describes it by its members and by the call that created it ([`Origin`]): the parent, and the index of
//!    the call among the creating calls on the parent.
//! 2. The walk over each task interns it here. Tasks whose communicator has the same origin and the same members get the same
//!    [`CommIndex`]; the parent is identified in the same way.
//!    An inter-communicator has the members of both groups here, those of the group with the lower first task in front.
//! 3. The processes of a job merge their tables ([`Communicators::merge`]).
//! 4. [`ids_in_trace`] sorts those with collectives by the lowest task that has them.

use crate::error::{MixError, Problem};
use crate::index::CommIndex;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vef_format::capture::Group;
use vef_format::capture::event::{Members, Origin};
use vef_format::ids::{CommId, Rank};
use vef_format::record::Communicator;

/// The communicators that the tasks read so far have.
#[derive(Debug)]
pub(crate) struct Communicators {
    tasks: u32,
    most: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    indices: HashMap<(Origin<CommIndex>, Arc<Group>), CommIndex>,
    all: Vec<CommFacts>,
}

/// A communicator as all tasks together describe it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CommFacts {
    /// How it was created.
    origin: Origin<CommIndex>,
    /// The members.
    pub(crate) group: Arc<Group>,
    /// The lowest task that has it and that task's number for it: the order of communicators in the trace.
    pub(crate) order: (Rank, u32),
}

impl Communicators {
    /// An empty table, for a run of `tasks` tasks.
    pub(crate) fn new(tasks: u32) -> Self {
        Self { tasks, most: CommIndex::NONE.index(), table: Mutex::default() }
    }

    /// The group of these members of the communicator that a task calls `number`.
    pub(crate) fn group(&self, number: u32, members: Members<'_>) -> Result<Group, Problem> {
        Group::new(members, self.tasks).ok_or(Problem::Members(number))
    }

    /// Returns the index and the members of the communicator that `task` calls `number`. `parent` returns the index of an
    /// earlier communicator of the task.
    pub(crate) fn intern(
        &self,
        task: Rank,
        number: u32,
        origin: Origin,
        members: Members<'_>,
        mut parent: impl FnMut(CommId) -> Option<CommIndex>,
    ) -> Result<(CommIndex, Arc<Group>), Problem> {
        let group = self.group(number, members)?;
        let origin = origin.with_parent(|comm| parent(comm).ok_or(Problem::UnknownCommunicator(comm.0)))?;
        let mut table = self.lock();
        let interned = table.intern(origin, Arc::new(group), (task, number));
        if table.all.len() > self.most { Err(Problem::TooManyCommunicators(number)) } else { Ok(interned) }
    }

    /// All communicators, by index.
    pub(crate) fn all(&self) -> Vec<CommFacts> {
        self.lock().all.clone()
    }

    /// Adds the communicators of another process; returns the index here of each index there.
    pub(crate) fn merge(&self, others: Vec<CommFacts>) -> Result<Vec<CommIndex>, MixError> {
        let mut table = self.lock();
        let mut here: Vec<CommIndex> = Vec::with_capacity(others.len());
        for CommFacts { origin, group, order } in others {
            // A parent comes before its children.
            let origin =
                origin.with_parent(|parent| here.get(parent.index()).copied().ok_or(MixError::Garbled))?;
            here.push(table.intern(origin, group, order).0);
        }
        if table.all.len() > self.most { Err(MixError::TooMany("communicators")) } else { Ok(here) }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Recover from poisoning: the table is consistent even if another thread panicked.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn intern(
        &mut self,
        origin: Origin<CommIndex>,
        group: Arc<Group>,
        order: (Rank, u32),
    ) -> (CommIndex, Arc<Group>) {
        let next = CommIndex(self.all.len() as u32);
        let index = *self.indices.entry((origin, group.clone())).or_insert(next);
        if index == next {
            self.all.push(CommFacts { origin, group, order });
        }
        let facts = &mut self.all[index.index()];
        facts.order = facts.order.min(order);
        (index, facts.group.clone())
    }
}

/// A communicator in the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTrace {
    /// Its id; [`u32::MAX`]: none, because it has no collectives.
    pub(crate) id: CommId,
    /// Number of members.
    pub(crate) members: u32,
}

/// The communicators of the trace: all tasks first, then those with collectives, by the lowest task that has them and its
/// number for them. Also the id of each communicator in `all`. `has_operations` says of an index in `all` whether the trace has
/// operations on it.
pub(crate) fn ids_in_trace(
    tasks: u32,
    all: &[CommFacts],
    has_operations: impl Fn(usize) -> bool,
) -> (Vec<Communicator>, Vec<InTrace>) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_unstable_by_key(|&at| all[at].order);
    let first = |is: &dyn Fn(&CommFacts) -> bool| order.iter().copied().find(|&at| is(&all[at]));
    let everybody = Members::Strided { first: Rank(0), stride: 1, count: tasks };
    let of_all = |facts: &CommFacts| facts.group.members() == everybody;
    // With storage servers, `MPI_COMM_WORLD` is not all tasks.
    let world = first(&|facts| facts.origin == Origin::World && of_all(facts)).or_else(|| first(&of_all));
    let rest = order.iter().copied().filter(|&at| Some(at) != world && has_operations(at));
    let no_id = |facts: &CommFacts| InTrace { id: CommId(u32::MAX), members: facts.group.count() };
    let mut ids: Vec<InTrace> = all.iter().map(no_id).collect();
    let mut communicators = vec![Communicator { id: CommId(0), members: (0..tasks).map(Rank).collect() }];
    if let Some(world) = world {
        ids[world].id = CommId(0);
    }
    for (number, at) in (1..).zip(rest) {
        ids[at].id = CommId(number);
        communicators.push(Communicator { id: CommId(number), members: all[at].group.iter().collect() });
    }
    (communicators, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_birth_is_the_same_communicator() {
        let all = Communicators::new(4);
        let none = |_| None;
        let (world, _) = all.intern(Rank(0), 0, Origin::World, Members::All, none).unwrap();
        let (other, _) =
            all.intern(Rank(1), 9, Origin::World, Members::List(&[0, 1, 2, 3].map(Rank)), none).unwrap();
        assert_eq!(world, other);
        let child = |task, number, ordinal, members: &[Rank]| {
            let origin = Origin::Child { parent: CommId(0), ordinal };
            all.intern(Rank(task), number, origin, Members::List(members), |_| Some(world)).unwrap().0
        };
        let even = child(2, 5, 0, &[0, 2].map(Rank));
        assert_eq!(even, child(0, 3, 0, &[0, 2].map(Rank)));
        assert_ne!(even, child(1, 3, 0, &[1, 3].map(Rank)));
        assert_ne!(even, child(0, 4, 1, &[0, 2].map(Rank)));
        let known = all.all();
        // Another process that added them in another order.
        let other = Communicators::new(4);
        other.intern(Rank(3), 1, Origin::SelfOnly, Members::List(&[3].map(Rank)), none).unwrap();
        let there = other.merge(all.all()).unwrap();
        assert_eq!(there[world.index()], CommIndex(1));
        let same: Vec<_> = (0..known.len() as u32 + 1).map(CommIndex).collect();
        assert_eq!(other.merge(other.all()).unwrap(), same);
        assert_eq!(other.all()[there[even.index()].index()].order, (Rank(0), 3));
        assert_eq!(known[even.index()].order, (Rank(0), 3));
        assert_eq!(known[world.index()].order, (Rank(0), 0));
    }

    #[test]
    fn more_than_there_are_numbers_for_are_refused() {
        let none = |_| None;
        let all = Communicators { most: 1, ..Communicators::new(4) };
        let world =
            |all: &Communicators, task, number| all.intern(task, number, Origin::World, Members::All, none);
        let alone = |all: &Communicators, task, number| {
            all.intern(Rank(task), number, Origin::SelfOnly, Members::List(&[task].map(Rank)), none)
        };
        // A known communicator needs no further number.
        assert_eq!(world(&all, Rank(0), 0).unwrap().0, world(&all, Rank(1), 5).unwrap().0);
        let peer = Communicators::new(4);
        alone(&peer, 2, 1).unwrap();
        assert!(matches!(all.merge(peer.all()), Err(MixError::TooMany("communicators"))));
        assert_eq!(alone(&all, 3, 7).unwrap_err(), Problem::TooManyCommunicators(7));
    }

    #[test]
    fn a_child_of_an_unknown_parent_is_refused() {
        let all = Communicators::new(2);
        let origin = Origin::Child { parent: CommId(7), ordinal: 0 };
        let error = all.intern(Rank(1), 8, origin, Members::All, |_| None).unwrap_err();
        assert_eq!(error, Problem::UnknownCommunicator(7));
    }
}

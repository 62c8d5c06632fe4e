//! The communicators of one task, by the task's own numbers.

use crate::error::Problem;
use crate::index::CommIndex;
use hashbrown::HashMap;
use std::sync::Arc;
use vef_format::capture::Group;
use vef_format::ids::{CommId, CommRank, Rank};

/// The neighbours of a task in the topology of a communicator; `None`: `MPI_PROC_NULL`.
#[derive(Debug)]
pub(super) struct Neighbours {
    pub(super) sources: Vec<Option<Rank>>,
    pub(super) destinations: Vec<Option<Rank>>,
}

/// A communicator of this task.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) index: CommIndex,
    pub(super) group: Arc<Group>,
    /// The tasks to which ranks in point-to-point calls refer: of an inter-communicator, its remote group.
    pub(super) peers: Arc<Group>,
    /// Whether it is an inter-communicator.
    pub(super) inter: bool,
    /// Whether the trace cannot represent it.
    pub(super) foreign: bool,
    /// This task's neighbours, if it has a topology, from its first neighbourhood collective on.
    pub(super) neighbours: Option<Arc<Neighbours>>,
    /// Index in [`Task::calls`](crate::task::Task::calls), from its first collective on.
    pub(super) slot: Option<u32>,
    /// This task's rank, from its first collective on.
    pub(super) rank: CommRank,
    /// Number of collectives between its groups, if it is an inter-communicator.
    pub(super) between: i32,
}

impl Local {
    /// One whose members are all of this world.
    pub(super) fn of_tasks(index: CommIndex, group: Arc<Group>) -> Self {
        let peers = group.clone();
        let (inter, foreign, neighbours, slot, rank, between) = Default::default();
        Self { index, group, peers, inter, foreign, neighbours, slot, rank, between }
    }
}

/// The communicators of this task. Most calls use the same one as the call before.
#[derive(Debug, Default)]
pub(super) struct Locals {
    list: Vec<Local>,
    /// Index of each in `list`.
    numbers: HashMap<CommId, usize>,
    last: Option<(CommId, usize)>,
}

impl Locals {
    /// The communicator with the task's number `id`.
    #[inline(always)]
    pub(super) fn get(&mut self, id: CommId) -> Result<&mut Local, Problem> {
        let at = match self.last {
            Some((last, at)) if last == id => at,
            _ => {
                let at = *self.numbers.get(&id).ok_or(Problem::UnknownCommunicator(id.0))?;
                self.last = Some((id, at));
                at
            }
        };
        Ok(&mut self.list[at])
    }

    /// Whether a communicator has two groups, both of this world.
    pub(super) fn is_between_groups(&mut self, id: CommId) -> Result<bool, Problem> {
        self.get(id).map(|local| local.inter && !local.foreign)
    }

    /// Adds a communicator; an error if `id` is another one already.
    pub(super) fn add(&mut self, id: CommId, local: Local) -> Result<(), Problem> {
        let at = *self.numbers.entry(id).or_insert(self.list.len());
        match self.list.get(at) {
            None => self.list.push(local),
            Some(known) if known.index == local.index => {}
            Some(_) => return Err(Problem::DescribedTwice(id.0)),
        }
        Ok(())
    }

    /// The communicator, and the task with `rank` in it; `None` if the trace cannot represent it.
    #[inline(always)]
    pub(super) fn peer(
        &mut self,
        comm: CommId,
        rank: CommRank,
    ) -> Result<Option<(CommIndex, Rank)>, Problem> {
        let local = self.get(comm)?;
        if local.foreign {
            return Ok(None);
        }
        match local.peers.get(rank) {
            Some(peer) => Ok(Some((local.index, peer))),
            None => Err(Problem::Peer { comm: comm.0, size: local.peers.count(), rank: rank.0 }),
        }
    }

    /// The task with `rank` in the communicator `comm`.
    pub(super) fn rank_of(&self, comm: CommIndex, rank: CommRank) -> Option<Rank> {
        self.list.iter().find(|local| local.index == comm)?.peers.get(rank)
    }
}

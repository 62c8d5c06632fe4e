//! The communicators of one task, by its own numbers.

use crate::communicators::{Group, Identity};
use crate::error::Problem;
use hashbrown::HashMap;
use std::sync::Arc;
use vef_format::ids::{CommId, CommRank, Rank};

/// A communicator as this task knows it.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) identity: Identity,
    pub(super) group: Arc<Group>,
    /// Whether it has no place in a trace.
    pub(super) foreign: bool,
    /// Its place in [`Task::calls`](crate::task::Task::calls), once it has one.
    pub(super) slot: Option<u32>,
    /// This task's rank there, once it has a slot.
    pub(super) rank: CommRank,
}

/// The communicators of this task. Most calls are on the one that was used last.
#[derive(Debug, Default)]
pub(super) struct Locals {
    list: Vec<Local>,
    places: HashMap<CommId, usize>,
    last: Option<(CommId, usize)>,
}

impl Locals {
    /// The communicator that the task calls `id`.
    #[inline(always)]
    pub(super) fn get(&mut self, id: CommId) -> Result<&mut Local, Problem> {
        let place = match self.last {
            Some((last, place)) if last == id => place,
            _ => {
                let place = *self.places.get(&id).ok_or(Problem::UnknownCommunicator(id.0))?;
                self.last = Some((id, place));
                place
            }
        };
        Ok(&mut self.list[place])
    }

    /// Adds one, unless `id` is another already.
    pub(super) fn add(&mut self, id: CommId, local: Local) -> Result<(), Problem> {
        let place = *self.places.entry(id).or_insert(self.list.len());
        match self.list.get(place) {
            None => self.list.push(local),
            Some(known) if known.identity == local.identity => {}
            Some(_) => return Err(Problem::DescribedTwice(id.0)),
        }
        Ok(())
    }

    /// The communicator, and the task that is `rank` there; `None` if it has no place in a trace.
    #[inline(always)]
    pub(super) fn peer(&mut self, comm: CommId, rank: CommRank) -> Result<Option<(Identity, Rank)>, Problem> {
        let local = self.get(comm)?;
        if local.foreign {
            return Ok(None);
        }
        match local.group.get(rank) {
            Some(peer) => Ok(Some((local.identity, peer))),
            None => Err(Problem::Peer { comm: comm.0, size: local.group.count(), rank: rank.0 }),
        }
    }

    /// The task that is `rank` of the communicator `identity`.
    pub(super) fn rank_of(&self, identity: Identity, rank: CommRank) -> Option<Rank> {
        self.list.iter().find(|local| local.identity == identity)?.group.get(rank)
    }
}

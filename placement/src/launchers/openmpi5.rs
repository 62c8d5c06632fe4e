//! Open MPI 5's `mpirun`, which is PRRTE's `prterun` 3.0: maps processes to nodes and their objects, then ranks them.
//!
//! The rules are those of `mpirun --display map --rtos donotlaunch --bind-to none`; `tests/tests/mpirun.rs` compares with it. They are
//! not those of version 4: an oversubscribed job that is mapped by objects, as it is by default, fills the first node.

use super::launcher::{Launcher, all_full, processes_or_all};
use super::openmpi::target::Target;
use super::openmpi::{policies, targets};
use crate::error::Error;
use crate::input::hwloc::Object;
use crate::input::policy::{MapBy, Ranking, unknown};
use crate::placement::{Location, Placement};
use crate::request::Request;

/// Open MPI 5's `mpirun`.
pub(super) struct OpenMpi5;

impl Launcher for OpenMpi5 {
    fn name(&self) -> &'static str {
        "openmpi5"
    }

    fn options(&self) -> &'static [&'static str] {
        &[
            "--map-by",
            "--rank-by",
            "--bynode",
            "--hwloc",
            "--launch-node",
            "--core",
            "--nooversubscribe",
            "--unknown-slots",
        ]
    }

    fn apply(&self, request: &Request) -> Result<Placement, Error> {
        let nodes = super::openmpi::nodes(request)?;
        // Unlike version 4's, --bynode does not concern ranks.
        let rank_by = request.rank_by;
        let (map_by, _, oversubscribe) = policies(&Request { rank_by: None, ..request.clone() })?;
        let mut targets = targets(&nodes, request)?;
        let slots = targets.iter().map(|target| u64::from(target.slots)).sum();
        let room = match map_by {
            Some(MapBy::Ppr { count, per }) => targets.iter().fold(0u64, |room, target| {
                room.saturating_add(u64::from(count) * u64::from(target.objects.count(per)))
            }),
            _ => slots,
        };
        let processes = processes_or_all(request.processes, room)?;
        targets.retain(|target| target.slots > 0 || oversubscribe);
        if targets.is_empty() {
            return Err(all_full());
        }
        if u64::from(processes) > slots && !oversubscribe {
            return Err(Error::not_enough_slots(processes, slots));
        }
        // By default one or two processes are mapped by core, more by package.
        let default = if processes <= 2 { Object::Core } else { Object::Socket };
        let mapping = map_by.unwrap_or(MapBy::Object { object: default, span: false });
        let mut job = Job { targets, order: Vec::new(), left: processes, oversubscribe };
        let object = match mapping {
            MapBy::Slot => job.by_slot().map(|()| None),
            MapBy::Node | MapBy::Object { object: Object::Node, .. } => job.by_node().map(|()| None),
            MapBy::Object { object, span } => job.by_object(object, span).map(|()| Some(object)),
            MapBy::Ppr { count, per } => {
                job.by_ppr(count, per).map(|()| Some(per).filter(|&per| per != Object::Node))
            }
            MapBy::PprSlot { .. } => Err(Error::new("ppr:N:slot is GetInfo's (--model getinfo)")),
        }?;
        let ranking = rank_by.unwrap_or(match mapping {
            MapBy::Node => Ranking::Node,
            MapBy::Object { span: true, .. } => Ranking::Span,
            MapBy::Object { span: false, .. } => Ranking::Fill,
            MapBy::Slot | MapBy::Ppr { .. } | MapBy::PprSlot { .. } => Ranking::Slot,
        });
        let location = |(target, nth): (usize, u32)| {
            let target = &job.targets[target];
            let core = target.processes[nth as usize].filter(|_| object == Some(Object::Core));
            Location { core, ..Location::nth(target.index as u32, nth, target.slots) }
        };
        let ranks = job.ranked(ranking, object.is_some())?.into_iter().map(location).collect();
        drop(job);
        Ok(Placement { nodes, ranks })
    }
}

/// A job that is being mapped.
struct Job<'a> {
    targets: Vec<Target<'a>>,
    /// Indices of the targets in use, in the order of their first use.
    order: Vec<usize>,
    /// Processes that have no place yet.
    left: u32,
    oversubscribe: bool,
}

impl Job<'_> {
    /// Whether a target may take processes.
    fn is_open(&self, at: usize) -> bool {
        (self.oversubscribe || self.targets[at].free() > 0) && !self.is_at_most(at)
    }

    /// Whether a target has as many processes as `max_slots` permits.
    fn is_at_most(&self, at: usize) -> bool {
        let target = &self.targets[at];
        target.node.max_slots.is_some_and(|most| most > 0 && target.processes.len() as u64 >= u64::from(most))
    }

    /// Puts processes on a target; without oversubscription, no more than it has slots.
    fn put(&mut self, at: usize, processes: u32, object: Option<u32>) {
        let free = if self.oversubscribe { u32::MAX } else { self.targets[at].free() };
        let taken = processes.min(self.left).min(free);
        if taken > 0 && self.targets[at].processes.is_empty() {
            self.order.push(at);
        }
        self.targets[at].take(taken, object);
        self.left -= taken;
    }

    /// Mapping by objects, mpirun crashes at `max_slots`.
    fn check_most(&self, at: usize) -> Result<(), Error> {
        match self.is_at_most(at) {
            false => Ok(()),
            true => Err(Error::of_nodes(format!(
                "node {} reaches its max_slots, where mpirun 5 crashes if it maps by objects",
                self.targets[at].node.name
            ))),
        }
    }

    fn by_slot(&mut self) -> Result<(), Error> {
        for at in 0..self.targets.len() {
            if self.left > 0 && self.is_open(at) {
                self.put(at, self.targets[at].slots, None);
            }
        }
        // All nodes are full: the rest is divided evenly, the longer shares first.
        let nodes = self.targets.len() as u32;
        let (share, longer) = (self.left / nodes, self.left % nodes);
        for at in 0..self.targets.len() {
            if self.left > 0 && self.is_open(at) {
                self.put(at, share + u32::from((at as u32) < longer), None);
            }
        }
        self.all_mapped()
    }

    /// An even share for each node; a node with fewer slots shortens the shares of those behind it, too.
    fn by_node(&mut self) -> Result<(), Error> {
        for _pass in 0..2 {
            let mut share = (self.left / self.targets.len() as u32).max(1);
            for at in 0..self.targets.len() {
                if !self.oversubscribe {
                    share = share.min(self.targets[at].slots);
                }
                if self.left > 0 && self.is_open(at) {
                    self.put(at, share, None);
                }
            }
        }
        self.all_mapped()
    }

    /// One process for each object in turn, of a node until it is full, or (`span`) of all nodes.
    fn by_object(&mut self, object: Object, span: bool) -> Result<(), Error> {
        let mut before = None;
        while self.left > 0 && before != Some(self.left) {
            before = Some(self.left);
            for at in 0..self.targets.len() {
                let objects = self.targets[at].objects.count(object);
                let mut turns = if span { 1 } else { u32::MAX };
                while objects > 0
                    && turns > 0
                    && self.left > 0
                    && (self.oversubscribe || self.targets[at].free() > 0)
                {
                    turns -= 1;
                    for nth in 0..objects.min(self.left) {
                        self.check_most(at)?;
                        self.put(at, 1, Some(nth));
                    }
                }
            }
        }
        self.all_mapped()
    }

    fn by_ppr(&mut self, count: u32, per: Object) -> Result<(), Error> {
        for at in 0..self.targets.len() {
            for object in 0..self.targets[at].objects.count(per) {
                if self.left == 0 || self.targets[at].free() == 0 && !self.oversubscribe {
                    break;
                }
                self.check_most(at)?;
                let free = if self.oversubscribe { u32::MAX } else { self.targets[at].free() };
                if per != Object::Node && self.left < count.min(free) {
                    return Err(Error::new(format!(
                        "the last object would get {} of {count} processes: mpirun 5 maps {count} there, and fails to \
                         start them",
                        self.left
                    )));
                }
                self.put(at, count, Some(object));
            }
        }
        self.all_mapped()
    }

    fn all_mapped(&self) -> Result<(), Error> {
        match self.left {
            0 => Ok(()),
            left => Err(Error::of_nodes(format!("the mapping has no room for {left} of the processes"))),
        }
    }

    /// The processes in the order of their ranks, each by its target and its number there.
    fn ranked(&self, ranking: Ranking, by_object: bool) -> Result<Vec<(usize, u32)>, Error> {
        let numbers = |at: usize| 0..self.targets[at].processes.len() as u32;
        let object = |at: usize, nth: u32| self.targets[at].processes[nth as usize];
        // The processes of each node in the order of its ranks, and the turn of each if the nodes take turns.
        let mut ranked: Vec<(u32, usize, u32)> = Vec::new();
        for (place, &at) in self.order.iter().enumerate() {
            let mut of_node: Vec<u32> = numbers(at).collect();
            match ranking {
                Ranking::Slot | Ranking::Node => {}
                Ranking::Fill | Ranking::Span if by_object => of_node.sort_by_key(|&nth| object(at, nth)),
                Ranking::Fill | Ranking::Span => {
                    return Err(Error::new("ranking by fill or span needs a mapping by objects"));
                }
                Ranking::Object { .. } => return Err(unknown("ranking")),
            }
            let mut turn = 0;
            for (nth, &process) in of_node.iter().enumerate() {
                turn = match ranking {
                    Ranking::Node => nth as u32,
                    // The first process of each object, then the second of each.
                    Ranking::Span if nth > 0 && object(at, process) == object(at, of_node[nth - 1]) => {
                        turn + 1
                    }
                    Ranking::Slot | Ranking::Fill | Ranking::Span | Ranking::Object { .. } => 0,
                };
                ranked.push((turn, place, process));
            }
        }
        // Stable: of one turn, nodes in order, and of a node its objects in order.
        ranked.sort_by_key(|&(turn, place, _)| (turn, place));
        Ok(ranked.into_iter().map(|(_, place, process)| (self.order[place], process)).collect())
    }
}

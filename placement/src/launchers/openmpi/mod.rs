//! Open MPI 4.1's `mpirun`: maps processes to nodes and their objects, then assigns ranks to them; a rankfile
//! does both.
//!
//! The rules are those of `mpirun --display-map --do-not-launch`; `tests/tests/mpirun.rs` compares with it.

mod map;
mod rank;
pub(super) mod target;

use std::collections::HashMap;
use std::path::Path;

use indexmap::IndexSet;

use super::launcher::{Launcher, all_full, processes_or_all};
use crate::error::Error;
use crate::input::hwloc::{Object, ObjectCounts};
use crate::input::policy::{MapBy, Ranking, Sweep};
use crate::input::rankfile::{self, RankLine};
use crate::placement::{Location, Node, Placement};
use crate::request::Request;
use target::Target;

/// Open MPI 4.1's `mpirun`.
pub(super) struct OpenMpi;

impl Launcher for OpenMpi {
    fn name(&self) -> &'static str {
        "openmpi"
    }

    fn options(&self) -> &'static [&'static str] {
        &[
            "--map-by",
            "--rank-by",
            "--bynode",
            "--rankfile",
            "--hwloc",
            "--launch-node",
            "--core",
            "--nooversubscribe",
            "--unknown-slots",
        ]
    }

    fn apply(&self, request: &Request) -> Result<Placement, Error> {
        match &request.rankfile {
            Some(path) => by_rankfile(path, request),
            None => by_policies(request),
        }
    }
}

/// Places ranks by `--map-by` and `--rank-by`.
fn by_policies(request: &Request) -> Result<Placement, Error> {
    let nodes = nodes(request)?;
    let (map_by, rank_by, oversubscribe) = policies(request)?;
    let mut targets = targets(&nodes, request)?;
    let processes = match request.processes {
        Some(processes) => processes,
        None => processes_or_all(None, room(&targets, map_by)?)?,
    };
    targets.retain(|target| target.slots > 0 || oversubscribe);
    if targets.is_empty() {
        return Err(all_full());
    }
    // mpirun starts at the first node with a slot.
    if let Some(first) = targets.iter().position(|target| target.slots > 0) {
        targets.rotate_left(first);
    }
    // By default one or two processes are mapped by core, more by NUMA node.
    let default = if processes <= 2 { Object::Core } else { Object::Numa };
    let mapping = map_by.unwrap_or(MapBy::Object { object: default, span: false });
    let (object, order) = map::map(&mut targets, processes, mapping, oversubscribe)?;
    let everywhere = |object| targets.iter().all(|target| target.objects.count(object) > 0);
    let ranking = match (rank_by, map_by) {
        (Some(ranking), _) => ranking,
        (None, Some(MapBy::Node)) => Ranking::Node,
        (None, Some(MapBy::Object { object, .. })) if everywhere(object) => {
            Ranking::Object { object, sweep: Sweep::Node }
        }
        (None, _) => Ranking::Slot,
    };
    let ranked = rank::rank(&targets, &order, object, ranking)?;
    let location = |(target, nth): (usize, u32)| {
        let target = &targets[target];
        let core = target.processes[nth as usize].filter(|_| object == Object::Core);
        Location { core, ..Location::nth(target.index as u32, nth, target.slots) }
    };
    let ranks = ranked.into_iter().map(location).collect();
    Ok(Placement { nodes, ranks })
}

/// The nodes in mpirun's order.
pub(super) fn nodes(request: &Request) -> Result<Vec<Node>, Error> {
    let mut nodes = request.cluster()?;
    if let Some(at) = nodes.iter().position(|node| Some(&node.name) == request.launch_node.as_ref()) {
        nodes[..=at].rotate_right(1);
    }
    Ok(nodes)
}

/// The nodes with their slots and objects, without processes.
pub(super) fn targets<'a>(nodes: &'a [Node], request: &Request) -> Result<Vec<Target<'a>>, Error> {
    let objects = request.hwloc.as_deref().map(ObjectCounts::read).transpose()?;
    let cores = objects.map_or(1, |objects| objects.count(Object::Core).max(1));
    let default_slots = request.unknown_slots.unwrap_or(cores);
    let target = |(index, node): (usize, &'a Node)| {
        let slots = node.slots.unwrap_or(default_slots);
        let flat = || ObjectCounts::flat(slots.max(1).saturating_mul(node.cores.unwrap_or(1)));
        Target { index, node, slots, objects: objects.unwrap_or_else(flat), processes: vec![] }
    };
    Ok(nodes.iter().enumerate().map(target).collect())
}

/// The policies for mapping and ranking, if given, and whether nodes may be oversubscribed.
pub(super) fn policies(request: &Request) -> Result<(Option<MapBy>, Option<Ranking>, bool), Error> {
    let Request { map_by: mapping, rank_by, .. } = *request;
    let oversubscribe = match mapping.and_then(|mapping| mapping.oversubscribe) {
        Some(false) if request.oversubscribe => {
            return Err(Error::conflict("oversubscription", "--oversubscribe", "--map-by"));
        }
        Some(true) if request.no_oversubscribe => {
            return Err(Error::conflict("oversubscription", "--nooversubscribe", "--map-by"));
        }
        modifier => modifier.unwrap_or(request.oversubscribe),
    };
    let map_by = mapping.map(|mapping| mapping.by);
    if !request.by_node {
        return Ok((map_by, rank_by, oversubscribe));
    }
    if map_by.is_some_and(|by| by != MapBy::Node) {
        return Err(Error::conflict("mapping", "--bynode", "--map-by"));
    }
    if rank_by.is_some_and(|by| by != Ranking::Node) {
        return Err(Error::conflict("ranking", "--bynode", "--rank-by"));
    }
    Ok((Some(MapBy::Node), Some(Ranking::Node), oversubscribe))
}

/// The number of processes that mpirun starts if none is given.
fn room(targets: &[Target<'_>], map_by: Option<MapBy>) -> Result<u64, Error> {
    let slots = targets.iter().map(|target| target.node.slots.map(u64::from)).sum::<Option<u64>>();
    let of_objects = |count: u32, per| {
        targets.iter().map(|target| u64::from(count) * u64::from(target.objects.count(per))).sum()
    };
    match (map_by, slots) {
        (Some(MapBy::Ppr { count, per: per @ (Object::Node | Object::Socket) }), _)
        | (Some(MapBy::Ppr { count, per }), Some(0)) => Ok(of_objects(count, per)),
        (Some(MapBy::Ppr { .. }), Some(slots)) => Ok(slots),
        // Nodes without slots get one process, as oversubscription.
        (_, Some(slots)) => Ok(slots.max(1)),
        (_, None) => Err(Error::of_nodes(
            "the number of processes to start was omitted, and the hosts do not say how many slots they have; give \
             -np N",
        )),
    }
}

/// Places ranks by a rankfile: its hosts are the nodes, or must be among the nodes given.
fn by_rankfile(path: &Path, request: &Request) -> Result<Placement, Error> {
    let objects = request.hwloc.as_deref().map(ObjectCounts::read).transpose()?;
    let file = path.display().to_string();
    let entries = rankfile::read(path)?;
    let nodes = match request.has_cluster() {
        true => request.cluster()?,
        false => {
            let hosts: IndexSet<&str> = entries.iter().map(|entry| entry.host.as_str()).collect();
            hosts.into_iter().map(|host| Node { cores: request.cores, ..Node::named(host) }).collect()
        }
    };
    let index: HashMap<&str, u32> = nodes.iter().map(|node| node.name.as_str()).zip(0..).collect();
    let processes = request.processes.unwrap_or(entries.len() as u32) as usize;
    let mut ranks: Vec<Option<Location>> = vec![None; entries.len().min(processes)];
    for entry in &entries {
        let node = index.get(entry.host.as_str()).copied().ok_or_else(|| {
            Error::new(format!("the rankfile claimed a host that is not allocated: {}", entry.host))
        });
        let checked = node.and_then(|node| check_cpus(entry, &nodes[node as usize], objects).map(|()| node));
        let node = checked.map_err(|error| error.at(&file, entry.line))?;
        if let Some(location) = ranks.get_mut(entry.rank as usize) {
            *location = Some(entry.location(node));
        }
    }
    let missing = ranks.iter().position(Option::is_none).or((ranks.len() < processes).then_some(ranks.len()));
    if let Some(rank) = missing {
        let last_line = entries.last().map_or(1, |entry| entry.line);
        return Err(Error::missing_rank(rank).at(&file, last_line));
    }
    Ok(Placement { ranks: ranks.into_iter().flatten().collect(), nodes })
}

/// Checks a slot list against the node, as far as its objects, or slots and cores, are known.
fn check_cpus(entry: &RankLine, node: &Node, objects: Option<ObjectCounts>) -> Result<(), Error> {
    let of_slots = || Some(node.slots?.saturating_mul(node.cores.unwrap_or(1)));
    let Some(cores) = objects.map(|objects| objects.count(Object::Core)).or_else(of_slots) else {
        return Ok(());
    };
    let check = |what, has, wants| match wants < has {
        true => Ok(()),
        false => Err(Error::new(format!(
            "rank {}: node {} has {has} {what}s, and the slot list wants {what} {wants}",
            entry.rank, node.name
        ))),
    };
    for cpus in &entry.cpus {
        let mut within = cores;
        if let (Some(socket), Some(objects)) = (cpus.socket, objects) {
            let sockets = objects.count(Object::Socket);
            check("socket", sockets, socket)?;
            within /= sockets;
        }
        if let Some((_, last)) = cpus.cores {
            check("core", within, last)?;
        }
    }
    Ok(())
}

//! GetInfo's model of `mpirun`: a node has slots, a slot has cores, and a process takes a core.
//! `docs/placement.md` lists the differences to `mpirun`.

use std::ops::Range;
use std::path::Path;

use indexmap::IndexSet;

use super::launcher::{Launcher, all_full};
use crate::error::Error;
use crate::input::hwloc::Object;
use crate::input::policy::{MapBy, Ranking, Sweep};
use crate::input::rankfile;
use crate::placement::{Location, Node, Placement};
use crate::request::Request;

/// GetInfo. By default it places one process, maps by node and ranks by slot.
pub(super) struct GetInfo;

impl Launcher for GetInfo {
    fn name(&self) -> &'static str {
        "getinfo"
    }

    fn options(&self) -> &'static [&'static str] {
        &["--map-by", "--rank-by", "--bynode", "--rankfile", "--core", "--nooversubscribe"]
    }

    fn apply(&self, request: &Request) -> Result<Placement, Error> {
        match &request.rankfile {
            Some(path) => copy_rankfile(path),
            None => place(request.cluster()?, request),
        }
    }
}

/// GetInfo copies a rankfile and ignores all other options.
fn copy_rankfile(path: &Path) -> Result<Placement, Error> {
    let mut entries = rankfile::read(path)?;
    entries.sort_by_key(|entry| entry.rank);
    let mut hosts = IndexSet::new();
    let mut ranks = Vec::with_capacity(entries.len());
    for (rank, entry) in entries.iter().enumerate() {
        if entry.rank as usize != rank {
            return Err(Error::missing_rank(rank).at(&path.display().to_string(), entry.line));
        }
        let node = hosts.insert_full(entry.host.as_str()).0 as u32;
        ranks.push(Location { core: Some(0), ..entry.location(node) });
    }
    Ok(Placement { nodes: hosts.into_iter().map(Node::named).collect(), ranks })
}

fn place(nodes: Vec<Node>, request: &Request) -> Result<Placement, Error> {
    let processes = request.processes.unwrap_or(1);
    let slots = |node: &Node| node.slots.unwrap_or(1);
    let cores = |node: &Node| node.cores.unwrap_or(1);
    let room = nodes.iter().map(|node| u64::from(slots(node)) * u64::from(cores(node)));
    let capacity = room.fold(0u64, u64::saturating_add);
    if capacity == 0 {
        return Err(all_full());
    }
    if request.no_oversubscribe && u64::from(processes) > capacity {
        return Err(Error::not_enough_slots(processes, capacity));
    }
    let unit = |(at, slots): (usize, _)| Unit {
        node: at as u32,
        slots,
        cores: cores(&nodes[at]),
        taken: 0,
        is_done: false,
    };
    let whole = nodes.iter().map(|node| 0..slots(node)).enumerate();
    // Slots beyond the number of processes are never used.
    let each = |at| (0..slots(&nodes[at]).min(processes)).map(move |slot| (at, slot..slot + 1));
    let (units, per_visit): (Vec<Unit>, u32) = match mapping(request)? {
        MapBy::Node => (whole.map(unit).collect(), 1),
        MapBy::Slot => ((0..nodes.len()).flat_map(each).map(unit).collect(), 1),
        MapBy::Ppr { count, per: Object::Node } => (whole.map(unit).collect(), count),
        MapBy::PprSlot { count } => ((0..nodes.len()).flat_map(each).map(unit).collect(), count),
        // All cores of a node in order; `ppr` does not affect mapping by core.
        MapBy::Object { .. } | MapBy::Ppr { .. } => (whole.map(unit).collect(), u32::MAX),
    };
    let mut ranks = deal(units, processes, per_visit);
    let ranking = ranking(request)?;
    // Ranks follow the order of locations as text (node10 before node2, core 10 before core 2); oversubscribed
    // ones come last.
    ranks.sort_by_cached_key(|location| {
        let node = nodes[location.node as usize].name.clone();
        let [slot, core] = [location.slot, location.core].map(|number| number.unwrap_or(0).to_string());
        let key = match ranking {
            Ranking::Slot => [core, node, slot],
            Ranking::Node => [slot, core, node],
            Ranking::Object { .. } | Ranking::Fill | Ranking::Span => [node, slot, core],
        };
        (location.oversubscribed, key)
    });
    Ok(Placement { nodes, ranks })
}

/// The mapping; of objects GetInfo knows nodes, slots and cores.
fn mapping(request: &Request) -> Result<MapBy, Error> {
    match request.map_by {
        None => Ok(MapBy::Node),
        Some(_) if request.by_node => Ok(MapBy::Node),
        Some(mapping) => match mapping.by {
            _ if mapping.oversubscribe.is_some() => Err(unknown("mapping")),
            by @ (MapBy::Node | MapBy::Slot | MapBy::PprSlot { .. }) => Ok(by),
            by @ MapBy::Object { object: Object::Core, span: false } => Ok(by),
            by @ MapBy::Ppr { per: Object::Node | Object::Core, .. } => Ok(by),
            MapBy::Object { .. } | MapBy::Ppr { .. } => Err(unknown("mapping")),
        },
    }
}

fn ranking(request: &Request) -> Result<Ranking, Error> {
    match request.rank_by {
        _ if request.by_node => Ok(Ranking::Node),
        None => Ok(Ranking::Slot),
        Some(ranking @ (Ranking::Node | Ranking::Slot)) => Ok(ranking),
        Some(ranking @ Ranking::Object { object: Object::Core, sweep: Sweep::Node }) => Ok(ranking),
        Some(Ranking::Object { .. } | Ranking::Fill | Ranking::Span) => Err(unknown("ranking")),
    }
}

fn unknown(verb: &str) -> Error {
    Error::new(format!("the getinfo model {verb} by node, slot or core, without modifiers"))
}

/// Slots of a node that take turns as one.
struct Unit {
    node: u32,
    slots: Range<u32>,
    /// Cores per slot.
    cores: u32,
    /// Cores that have a process in this round.
    taken: u64,
    is_done: bool,
}

/// Deals cores in turns: each visit of a unit takes its next `per_visit` cores. A unit without cores left is
/// done. When all are done, all start again, oversubscribed; then a visit that finds no cores left only
/// resets the unit.
fn deal(mut units: Vec<Unit>, processes: u32, per_visit: u32) -> Vec<Location> {
    let mut locations = Vec::new();
    for oversubscribed in [false, true] {
        while oversubscribed || units.iter().any(|unit| !unit.is_done) {
            for unit in units.iter_mut().filter(|unit| oversubscribed || !unit.is_done) {
                let cores = u64::from(unit.cores);
                for _ in 0..per_visit {
                    if unit.taken == unit.slots.len() as u64 * cores {
                        unit.taken = 0;
                        unit.is_done = true;
                        break;
                    }
                    if locations.len() == processes as usize {
                        return locations;
                    }
                    locations.push(Location {
                        node: unit.node,
                        slot: Some(unit.slots.start + (unit.taken / cores) as u32),
                        core: Some((unit.taken % cores) as u32),
                        oversubscribed,
                    });
                    unit.taken += 1;
                }
            }
        }
    }
    locations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Node> {
        let text = "node0\nnode1 slots=2 #cores=3\nnode2 slots=2 maxSlots=2\nnode3 slots=5 maxSlots=20\n";
        crate::input::hostfile::parse(text, "hostFile-example").unwrap()
    }

    fn request(processes: u32, map_by: &str, rank_by: &str) -> Request {
        Request {
            processes: Some(processes),
            map_by: Some(map_by.parse().unwrap()),
            rank_by: Some(rank_by.parse().unwrap()),
            ..Request::default()
        }
    }

    fn run(processes: u32, map_by: &str, rank_by: &str) -> String {
        place(sample(), &request(processes, map_by, rank_by)).unwrap().to_getinfo()
    }

    /// Figure "bynode" of GetInfo's manual.
    #[test]
    fn by_node() {
        let expected = "0 0:0:node0\n1 0:0:node1\n2 0:0:node2\n3 0:0:node3\n4 1:0:node1\n5 2:0:node1\n6 0:1:node2\n\
            7 0:1:node3\n";
        assert_eq!(run(8, "node", "node"), expected);
    }

    /// Figure "map-by core, rank-by slot".
    #[test]
    fn by_core_ranked_by_slot() {
        let expected = "0 0:0:node0\n1 0:0:node1\n2 0:1:node1\n3 0:0:node2\n4 1:0:node1\n5 1:1:node1\n6 2:0:node1\n\
            7 2:1:node1\n";
        assert_eq!(run(8, "core", "slot"), expected);
    }

    #[test]
    fn ppr_takes_several_cores_a_visit() {
        assert_eq!(
            run(5, "ppr:2:node", "core"),
            "0 0:0:node0\n1 0:0:node1\n2 1:0:node1\n3 0:0:node2\n4 0:1:node2\n"
        );
        assert_eq!(run(4, "ppr:2:slot", "core"), "0 0:0:node0\n1 0:0:node1\n2 1:0:node1\n3 0:1:node1\n");
    }

    #[test]
    fn oversubscription_repeats_and_says_so() {
        let text = run(16, "core", "core");
        assert!(text.ends_with("14 o0:0:node0\n15 o0:0:node1\n"), "{text}");
        let whole = Request { no_oversubscribe: true, ..request(15, "node", "node") };
        let error = place(sample(), &whole).unwrap_err().to_string();
        assert!(error.contains("not enough slots") && error.contains("14"), "{error}");
    }
}

//! Open MPI 4.1's mapper: the number of processes on each node, and their objects. [`super::openmpi_rank`]
//! assigns ranks.
//!
//! The rules are those of `mpirun --display-map --do-not-launch`; `tests/mpirun.rs` compares with it.

use super::openmpi_rank::rank;
use super::target::Target;
use super::{as_many_as, nth_place};
use crate::error::{Error, Problem};
use crate::input::hwloc::Topology;
use crate::place::{Node, Placement};
use crate::policy::{MapBy, Object, RankBy, Sweep};

/// Options of `mpirun`.
pub(crate) struct Job {
    /// `None`: as many as there are slots.
    pub processes: Option<u32>,
    /// `None`: mpirun's default.
    pub map_by: Option<MapBy>,
    /// `None`: in the order of the mapping.
    pub rank_by: Option<RankBy>,
    pub oversubscribe: bool,
    /// Slots of nodes without a given number.
    pub default_slots: u32,
    /// Objects of every node; `None` for flat nodes of slots × cores.
    pub topology: Option<Topology>,
}

/// Places a job.
pub(crate) fn place(nodes: Vec<Node>, job: &Job) -> Result<Placement, Error> {
    let slots_of = |node: &Node| node.slots.unwrap_or(job.default_slots);
    let processes = match job.processes {
        Some(processes) => processes,
        None => count_processes(&nodes, job)?,
    };
    if processes == 0 {
        return Err(Problem::NoRanks.into());
    }
    let mut targets: Vec<Target> = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| Target {
            index,
            slots: slots_of(node),
            topology: topology_of(node, job),
            processes: vec![],
        })
        .filter(|target| target.slots > 0 || job.oversubscribe)
        .collect();
    if targets.is_empty() {
        return Err(Problem::AllFull.into());
    }
    // mpirun starts at the first node with a slot.
    if let Some(first) = targets.iter().position(|target| target.slots > 0) {
        targets.rotate_left(first);
    }
    let map_by = job.map_by.unwrap_or(default_mapping(processes));
    let slots: u64 = targets.iter().map(|target| u64::from(target.slots)).sum();
    let is_ppr = matches!(map_by, MapBy::Ppr { .. });
    if !is_ppr && u64::from(processes) > slots && !job.oversubscribe {
        return Err(Problem::NotEnoughSlots { requested: processes.into(), slots }.into());
    }
    let (object, order) = match map_by {
        MapBy::Slot => (Object::Node, by_slot(&mut targets, processes)),
        MapBy::Node => (Object::Node, by_node(&mut targets, processes, u64::from(processes) > slots)),
        MapBy::Object { object, span } => {
            if targets.iter().all(|target| object.count(&target.topology) == 0) {
                (Object::Node, by_slot(&mut targets, processes))
            } else if span {
                (object, by_object_spanned(&mut targets, processes, object))
            } else {
                (object, by_object(&mut targets, processes, object))
            }
        }
        MapBy::Ppr { count, per } => {
            (per, by_ppr(&mut targets, processes, count, per, &nodes, job.oversubscribe)?)
        }
    };
    let rank_by = match (job.rank_by, job.map_by) {
        (Some(rank_by), _) => rank_by,
        (None, Some(MapBy::Node)) => RankBy::Node,
        (None, Some(MapBy::Object { object, .. }))
            if targets.iter().all(|t| object.count(&t.topology) > 0) =>
        {
            RankBy::Object { object, sweep: Sweep::Node }
        }
        (None, _) => RankBy::Slot,
    };
    let by_rank =
        rank(&targets, &order, object, rank_by).map_err(|at| Problem::NoObjects(nodes[at].name.clone()))?;
    let ranks = by_rank
        .into_iter()
        .map(|(target, nth)| {
            let target = &targets[target];
            let core = target.processes[nth as usize].filter(|_| object == Object::Core);
            crate::place::Place { core, ..nth_place(target.index as u32, nth, target.slots) }
        })
        .collect();
    Ok(Placement { nodes, ranks })
}

fn topology_of(node: &Node, job: &Job) -> Topology {
    job.topology.unwrap_or_else(|| {
        let slots = node.slots.unwrap_or(job.default_slots).max(1);
        Topology::flat(slots.saturating_mul(node.cores.unwrap_or(1)))
    })
}

/// mpirun maps one or two processes by core, more by NUMA node.
fn default_mapping(processes: u32) -> MapBy {
    MapBy::Object { object: if processes <= 2 { Object::Core } else { Object::Numa }, span: false }
}

fn count_processes(nodes: &[Node], job: &Job) -> Result<u32, Error> {
    let per_node = |count: u32, objects: &dyn Fn(&Node) -> u32| -> u64 {
        nodes.iter().map(|node| u64::from(count) * u64::from(objects(node))).sum()
    };
    let all_slots = || nodes.iter().map(|node| node.slots.map(u64::from)).sum::<Option<u64>>();
    let processes = match job.map_by {
        Some(MapBy::Ppr { count, per: per @ (Object::Node | Object::Socket) }) => {
            per_node(count, &|node| per.count(&topology_of(node, job)))
        }
        Some(MapBy::Ppr { count, per }) => match all_slots().ok_or(Problem::NoProcessCount)? {
            0 => per_node(count, &|node| per.count(&topology_of(node, job))),
            slots => slots,
        },
        // Nodes without slots get one process, as oversubscription.
        _ => all_slots().ok_or(Problem::NoProcessCount)?.max(1),
    };
    as_many_as(processes)
}

/// Indices of the targets, in the order in which the mapper first used them.
type Order = Vec<usize>;

fn by_slot(targets: &mut [Target], processes: u32) -> Order {
    let mut left = processes;
    let mut order = Vec::new();
    for (at, target) in targets.iter_mut().enumerate() {
        let take = target.free().min(left);
        if take > 0 {
            order.push(at);
            target.take(take);
            left -= take;
        }
    }
    if left > 0 {
        // All nodes are full: divide the rest evenly, with one more on the first nodes.
        let share = left / targets.len() as u32;
        let extra = left as usize % targets.len();
        for (at, target) in targets.iter_mut().enumerate() {
            if target.processes.is_empty() {
                order.push(at);
            }
            target.take(share + u32::from(at < extra));
        }
    }
    order
}

fn by_node(targets: &mut [Target], processes: u32, oversubscribed: bool) -> Order {
    let order = (0..targets.len()).collect();
    let mut left = processes;
    let mut able = targets.len() as u32;
    // Divide evenly; what small nodes cannot take is divided again among the others.
    while left > 0 && able > 0 {
        let share = (left / able).max(1);
        let over = left.saturating_sub(share * able);
        let mut extra = over / able;
        let mut one_more = over % able;
        let mut adds_one = one_more > 0;
        extra += u32::from(adds_one);
        able = 0;
        for target in targets.iter_mut() {
            if !oversubscribed && target.free() == 0 {
                continue;
            }
            if adds_one {
                if one_more == 0 {
                    extra -= 1;
                    adds_one = false;
                } else {
                    one_more -= 1;
                }
            }
            let share = share + extra;
            let take = if oversubscribed { share } else { share.min(target.free()) };
            able += 1;
            target.take(take.min(left));
            left -= take.min(left);
            if left == 0 {
                break;
            }
        }
    }
    order
}

fn by_object(targets: &mut [Target], processes: u32, object: Object) -> Order {
    let mut left = processes;
    let mut order = Vec::new();
    let mut second_pass = false;
    while left > 0 {
        for (at, target) in targets.iter_mut().enumerate() {
            let objects = object.count(&target.topology);
            let mut take = target.free();
            let mut start = 0;
            if objects == 0 || left == 0 || take == 0 && !second_pass {
                continue;
            }
            if take == 0 {
                take = 1;
                start = target.processes.len() as u32 % objects;
            }
            if target.processes.is_empty() {
                order.push(at);
            }
            let take = take.min(left);
            target.processes.extend((0..take).map(|i| Some((start + i) % objects)));
            left -= take;
        }
        second_pass = true;
    }
    order
}

fn by_object_spanned(targets: &mut [Target], processes: u32, object: Object) -> Order {
    let objects: u64 = targets.iter().map(|target| u64::from(object.count(&target.topology))).sum();
    let share = (u64::from(processes) / objects).max(1);
    let mut extra = u64::from(processes).saturating_sub(share * objects);
    let mut left = u64::from(processes);
    let mut order = Vec::new();
    for (at, target) in targets.iter_mut().enumerate() {
        order.push(at);
        for i in 0..object.count(&target.topology) {
            let take = (share + u64::from(extra > 0)).min(left);
            extra = extra.saturating_sub(1);
            target.processes.resize(target.processes.len() + take as usize, Some(i));
            left -= take;
            if left == 0 {
                break;
            }
        }
        if left == 0 {
            break;
        }
    }
    order
}

fn by_ppr(
    targets: &mut [Target],
    processes: u32,
    count: u32,
    per: Object,
    nodes: &[Node],
    oversubscribe: bool,
) -> Result<Order, Error> {
    let mut left = processes;
    let mut order = Vec::new();
    for (at, target) in targets.iter_mut().enumerate() {
        order.push(at);
        for object in 0..per.count(&target.topology) {
            let take = count.min(left);
            target.processes.resize(target.processes.len() + take as usize, Some(object));
            left -= take;
            if left == 0 {
                break;
            }
        }
        let node = &nodes[target.index];
        // A host that is repeated after its max_slots can have more slots than that maximum.
        let slots = node.max_slots.filter(|&max| max > 0).unwrap_or(u32::MAX).min(target.slots);
        let taken = target.processes.len() as u64;
        if taken > u64::from(slots) && !oversubscribe {
            let node = node.name.clone();
            return Err(Problem::NodeFull { node, requested: taken, slots: slots.into() }.into());
        }
        if left == 0 {
            return Ok(order);
        }
    }
    let ppr = format!("{count}:{per:?}").to_lowercase();
    Err(Problem::PprTooMany { requested: processes.into(), room: (processes - left).into(), ppr }.into())
}

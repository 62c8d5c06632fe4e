//! Open MPI's mapper: the number of processes on each node, and their objects.

use super::target::Target;
use crate::error::Error;
use crate::input::hwloc::Object;
use crate::input::policy::MapBy;

/// Maps the processes; returns the kind of their objects, and the targets in use.
pub(super) fn map(
    targets: &mut [Target<'_>],
    processes: u32,
    map_by: MapBy,
    oversubscribe: bool,
) -> Result<(Object, Order), Error> {
    let slots: u64 = targets.iter().map(|target| u64::from(target.slots)).sum();
    let is_ppr = matches!(map_by, MapBy::Ppr { .. });
    if !is_ppr && u64::from(processes) > slots && !oversubscribe {
        return Err(Error::not_enough_slots(processes, slots));
    }
    let has_none = |object| targets.iter().all(|target| target.objects.count(object) == 0);
    Ok(match map_by {
        MapBy::Node => (Object::Node, by_node(targets, processes, u64::from(processes) > slots)),
        MapBy::Object { object, span } if !has_none(object) => {
            let by = if span { by_object_spanned } else { by_object };
            (object, by(targets, processes, object))
        }
        MapBy::Slot | MapBy::Object { .. } => (Object::Node, by_slot(targets, processes)),
        MapBy::Ppr { count, per } => (per, by_ppr(targets, processes, count, per, oversubscribe)?),
        MapBy::PprSlot { .. } => {
            return Err(Error::new(
                "ppr:N:slot is GetInfo's (--model getinfo); mpirun has no slots in a ppr",
            ));
        }
    })
}

/// Indices of the targets, in the order in which the mapper first used them.
type Order = Vec<usize>;

fn by_slot(targets: &mut [Target<'_>], processes: u32) -> Order {
    let mut left = processes;
    let mut order = Vec::new();
    for (at, target) in targets.iter_mut().enumerate() {
        let take = target.free().min(left);
        if take > 0 {
            order.push(at);
            target.take(take, None);
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
            target.take(share + u32::from(at < extra), None);
        }
    }
    order
}

fn by_node(targets: &mut [Target<'_>], processes: u32, oversubscribed: bool) -> Order {
    let order = (0..targets.len()).collect();
    let mut left = processes;
    let mut able = targets.len() as u32;
    // Divide evenly; what small nodes cannot take is divided again among the others.
    while left > 0 && able > 0 {
        let share = (left / able).max(1);
        let one_more = left.saturating_sub(share * able);
        able = 0;
        for target in targets.iter_mut() {
            if !oversubscribed && target.free() == 0 {
                continue;
            }
            let share = (share + u32::from(able < one_more)).min(left);
            let take = if oversubscribed { share } else { share.min(target.free()) };
            able += 1;
            target.take(take, None);
            left -= take;
            if left == 0 {
                break;
            }
        }
    }
    order
}

fn by_object(targets: &mut [Target<'_>], processes: u32, object: Object) -> Order {
    let mut left = processes;
    let mut order = Vec::new();
    let mut second_pass = false;
    while left > 0 {
        for (at, target) in targets.iter_mut().enumerate() {
            let objects = target.objects.count(object);
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

fn by_object_spanned(targets: &mut [Target<'_>], processes: u32, object: Object) -> Order {
    let objects: u64 = targets.iter().map(|target| u64::from(target.objects.count(object))).sum();
    let share = (u64::from(processes) / objects).max(1);
    let mut extra = u64::from(processes).saturating_sub(share * objects);
    let mut left = u64::from(processes);
    let mut order = Vec::new();
    for (at, target) in targets.iter_mut().enumerate() {
        order.push(at);
        for i in 0..target.objects.count(object) {
            let take = (share + u64::from(extra > 0)).min(left);
            extra = extra.saturating_sub(1);
            target.take(take as u32, Some(i));
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
    targets: &mut [Target<'_>],
    processes: u32,
    count: u32,
    per: Object,
    oversubscribe: bool,
) -> Result<Order, Error> {
    let mut left = processes;
    let mut order = Vec::new();
    for (at, target) in targets.iter_mut().enumerate() {
        order.push(at);
        for object in 0..target.objects.count(per) {
            let take = count.min(left);
            target.take(take, Some(object));
            left -= take;
            if left == 0 {
                break;
            }
        }
        // A host that is repeated after its max_slots can have more slots than that maximum.
        let slots = target.node.max_slots.filter(|&max| max > 0).unwrap_or(u32::MAX).min(target.slots);
        let taken = target.processes.len() as u64;
        if taken > u64::from(slots) && !oversubscribe {
            return Err(Error::of_nodes(format!(
                "there are not enough slots available on node {} for the {taken} processes that the mapping puts there \
                 (it has {slots}): use --oversubscribe, or map fewer",
                target.node.name
            )));
        }
        if left == 0 {
            return Ok(order);
        }
    }
    let per = format!("{per:?}").to_lowercase();
    Err(Error::new(format!(
        "your job has requested more processes than the ppr for this topology can support: {processes} processes, ppr \
         {count}:{per}, room for {}",
        processes - left
    )))
}

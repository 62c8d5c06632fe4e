//! Open MPI's ranking: assigns ranks to mapped processes.

use std::collections::{BTreeSet, HashMap};

use super::target::Target;
use crate::error::Error;
use crate::input::hwloc::Object;
use crate::input::policy::{Ranking, Sweep, unknown};

/// A process: index of its target, and its number there.
type Process = (usize, u32);

/// The processes in the order of their ranks. `order` lists the targets in use; `mapped_by` is the kind of
/// the objects in `Target::processes`.
pub(super) fn rank(
    targets: &[Target<'_>],
    order: &[usize],
    mapped_by: Object,
    ranking: Ranking,
) -> Result<Vec<Process>, Error> {
    let all: usize = targets.iter().map(|target| target.processes.len()).sum();
    let mut ranked = Vec::with_capacity(all);
    match ranking {
        Ranking::Slot => {
            for &at in order {
                ranked.extend((0..targets[at].processes.len() as u32).map(|nth| (at, nth)));
            }
        }
        Ranking::Node => {
            let mut nth = 0;
            while ranked.len() < all {
                for &at in order {
                    if nth < targets[at].processes.len() as u32 {
                        ranked.push((at, nth));
                    }
                }
                nth += 1;
            }
        }
        // Open MPI 5's.
        Ranking::Fill | Ranking::Span => return Err(unknown("ranking")),
        Ranking::Object { object, sweep } => {
            let mut nodes = Vec::with_capacity(order.len());
            for &at in order {
                if targets[at].objects.count(object) == 0 {
                    let name = &targets[at].node.name;
                    return Err(Error::of_nodes(format!(
                        "no objects of the type to rank by were found on node {name}"
                    )));
                }
                nodes.push((at, Unranked::new(&targets[at], mapped_by, object)));
            }
            match sweep {
                Sweep::Node => {
                    for (at, unranked) in &mut nodes {
                        while unranked.turn(|nth| ranked.push((*at, nth))) {}
                    }
                }
                Sweep::Fill => {
                    for (at, unranked) in &mut nodes {
                        unranked.fill(|nth| ranked.push((*at, nth)));
                    }
                }
                Sweep::Span => {
                    while ranked.len() < all {
                        for (at, unranked) in &mut nodes {
                            unranked.turn(|nth| ranked.push((*at, nth)));
                        }
                    }
                }
            }
        }
    }
    Ok(ranked)
}

/// The processes of a node that have no rank yet, by object.
struct Unranked<'a> {
    processes: &'a [Option<u32>],
    mapped_objects: u32,
    objects: u32,
    ranked: Vec<bool>,
    /// The objects that a process may belong to, ascending, each with the first process that is still to be
    /// checked.
    next: Vec<(u32, usize)>,
}

impl<'a> Unranked<'a> {
    fn new(target: &'a Target<'_>, mapped_by: Object, object: Object) -> Self {
        let objects = target.objects.count(object);
        let mapped_objects = target.objects.count(mapped_by);
        let wanted = wanted(&target.processes, mapped_objects, objects);
        Unranked {
            processes: &target.processes,
            mapped_objects,
            objects,
            ranked: vec![false; target.processes.len()],
            next: wanted.into_iter().map(|object| (object, 0)).collect(),
        }
    }

    /// The next process of a wanted object.
    fn pop(&mut self, wanted: usize) -> Option<u32> {
        let (object, next) = &mut self.next[wanted];
        let object = *object;
        while let Some(&place) = self.processes.get(*next) {
            let nth = *next;
            *next += 1;
            if !self.ranked[nth]
                && place.is_none_or(|p| overlap(p, self.mapped_objects, object, self.objects))
            {
                self.ranked[nth] = true;
                return Some(nth as u32);
            }
        }
        None
    }

    /// Takes one process of each object; returns whether there was any.
    fn turn(&mut self, mut give: impl FnMut(u32)) -> bool {
        let mut any = false;
        for wanted in 0..self.next.len() {
            if let Some(nth) = self.pop(wanted) {
                give(nth);
                any = true;
            }
        }
        any
    }

    /// Takes all processes, object by object.
    fn fill(&mut self, mut give: impl FnMut(u32)) {
        for wanted in 0..self.next.len() {
            while let Some(nth) = self.pop(wanted) {
                give(nth);
            }
        }
    }
}

/// The objects that processes may belong to if each object takes one process per turn, ascending: of those
/// that overlap with a process's own object, as many as it has processes. The node may have billions of
/// objects.
fn wanted(processes: &[Option<u32>], mapped_objects: u32, objects: u32) -> BTreeSet<u32> {
    let mut on: HashMap<Option<u32>, u32> = HashMap::new();
    for process in processes {
        *on.entry(*process).or_default() += 1;
    }
    let (all, of) = (u64::from(objects), u64::from(mapped_objects.max(1)));
    let overlapping = |process: Option<u32>| match process.map(u64::from) {
        None => 0..all,
        Some(at) => at * all / of..((at + 1) * all).div_ceil(of),
    };
    // Two more, as the first may be shared with the object before.
    let some = |(process, count): (Option<u32>, u32)| overlapping(process).take(count as usize + 2);
    on.into_iter().flat_map(some).map(|object| object as u32).collect()
}

/// Whether object `a` of `of_a` and object `b` of `of_b` share cores on a regular node.
fn overlap(a: u32, of_a: u32, b: u32, of_b: u32) -> bool {
    let (a, of_a, b, of_b) = (u64::from(a), u64::from(of_a), u64::from(b), u64::from(of_b));
    a * of_b < (b + 1) * of_a && b * of_a < (a + 1) * of_b
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ranks processes over all objects in turn, as Open MPI does: each takes its first process without a
    /// rank.
    fn with_all_objects(processes: &[Option<u32>], mapped: u32, objects: u32, fill: bool) -> Vec<u32> {
        let mut ranked = Vec::new();
        loop {
            let before = ranked.len();
            for object in 0..objects {
                let most = if fill { usize::MAX } else { 1 };
                let own = |nth: &u32| {
                    processes[*nth as usize].is_none_or(|place| overlap(place, mapped, object, objects))
                };
                let free = (0..processes.len() as u32).filter(|nth| !ranked.contains(nth)).filter(own);
                ranked.extend(free.take(most).collect::<Vec<_>>());
            }
            if ranked.len() == before || fill {
                return ranked;
            }
        }
    }

    proptest! {
        #[test]
        fn objects_that_nobody_is_on_change_nothing(
            places in proptest::collection::vec(any::<u32>(), 1..12),
            whole: bool,
            mapped in 1u32..9,
            objects in 1u32..40,
        ) {
            let place = |place: u32| (!whole).then_some(place % mapped);
            let processes: Vec<Option<u32>> = places.into_iter().map(place).collect();
            for fill in [false, true] {
                let mut unranked = Unranked {
                    processes: &processes,
                    mapped_objects: mapped,
                    objects,
                    ranked: vec![false; processes.len()],
                    next: wanted(&processes, mapped, objects).into_iter().map(|object| (object, 0)).collect(),
                };
                let mut ranked = Vec::new();
                match fill {
                    true => unranked.fill(|nth| ranked.push(nth)),
                    false => while unranked.turn(|nth| ranked.push(nth)) {},
                }
                prop_assert_eq!(ranked, with_all_objects(&processes, mapped, objects, fill));
            }
        }
    }

    #[test]
    fn billions_of_objects_cost_nothing() {
        let objects = wanted(&[Some(0), Some(0), Some(3), None], 4, u32::MAX);
        assert!(objects.len() <= 10, "{objects:?}");
        assert!(objects.contains(&3221225471), "the first that overlaps with object 3 of 4");
    }
}

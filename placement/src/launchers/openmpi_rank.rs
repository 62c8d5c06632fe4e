//! The second half of Open MPI's placement: mapped processes get their ranks.

use super::openmpi::Target;
use crate::policy::{Object, RankBy, Sweep};

/// A process: which target, and the how-many-eth process there.
type Process = (usize, u32);

/// The processes in the order of their ranks. `order` lists the targets in use, `mapped_by` is the kind of the objects
/// in `Target::processes`.
///
/// # Errors
/// The node that has no object of the kind to rank by.
pub(super) fn rank(
    targets: &[Target],
    order: &[usize],
    mapped_by: Object,
    rank_by: RankBy,
) -> Result<Vec<Process>, usize> {
    let all: usize = targets.iter().map(|target| target.processes.len()).sum();
    let mut ranked = Vec::with_capacity(all);
    match rank_by {
        RankBy::Slot => {
            for &at in order {
                ranked.extend((0..targets[at].processes.len() as u32).map(|nth| (at, nth)));
            }
        }
        RankBy::Node => {
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
        RankBy::Object { object, sweep } => {
            let mut nodes = Vec::with_capacity(order.len());
            for &at in order {
                if object.count(&targets[at].topology) == 0 {
                    return Err(targets[at].index);
                }
                nodes.push((at, Unranked::new(&targets[at], mapped_by, object)));
            }
            match sweep {
                Sweep::Node | Sweep::Fill => {
                    for (at, unranked) in &mut nodes {
                        match sweep {
                            Sweep::Fill => unranked.fill(|nth| ranked.push((*at, nth))),
                            _ => while unranked.turn(|nth| ranked.push((*at, nth))) {},
                        }
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

/// The processes of a node that have no rank yet, as the objects to rank by see them.
struct Unranked<'a> {
    processes: &'a [Option<u32>],
    mapped_objects: u32,
    objects: u32,
    ranked: Vec<bool>,
    /// For each object, the first process that may still be its.
    next: Vec<usize>,
}

impl<'a> Unranked<'a> {
    fn new(target: &'a Target, mapped_by: Object, object: Object) -> Self {
        let objects = object.count(&target.topology);
        Unranked {
            processes: &target.processes,
            mapped_objects: mapped_by.count(&target.topology),
            objects,
            ranked: vec![false; target.processes.len()],
            next: vec![0; objects as usize],
        }
    }

    /// The next process on an object, if there is one.
    fn pop(&mut self, object: u32) -> Option<u32> {
        let next = &mut self.next[object as usize];
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

    /// One process of each object; whether there was any.
    fn turn(&mut self, mut give: impl FnMut(u32)) -> bool {
        let mut any = false;
        for object in 0..self.objects {
            if let Some(nth) = self.pop(object) {
                give(nth);
                any = true;
            }
        }
        any
    }

    /// All processes, object by object.
    fn fill(&mut self, mut give: impl FnMut(u32)) {
        for object in 0..self.objects {
            while let Some(nth) = self.pop(object) {
                give(nth);
            }
        }
    }
}

/// Whether object `a` of `of_a` and object `b` of `of_b` share cores, on a node that is built regularly.
fn overlap(a: u32, of_a: u32, b: u32, of_b: u32) -> bool {
    let (a, of_a, b, of_b) = (u64::from(a), u64::from(of_a), u64::from(b), u64::from(of_b));
    a * of_b < (b + 1) * of_a && b * of_a < (a + 1) * of_b
}

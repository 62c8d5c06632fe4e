//! The queue of a batch system: jobs get nodes of their own when they start, in the order of their arrival.
//!
//! First come, first served, without backfilling: a job starts as soon as all that arrived before it have started and enough nodes are free.

use std::collections::{BTreeSet, VecDeque};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::index;

/// Which of the free nodes a job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allotment {
    /// The first ones, by number.
    FirstFit,
    /// Any, each choice as likely as the others.
    Random,
}

/// The free nodes of a machine, and the jobs that wait for some.
#[derive(Clone, Debug)]
pub struct BatchQueue<J> {
    nodes: u32,
    free: BTreeSet<u32>,
    waiting: VecDeque<(J, u32, Allotment)>,
    random: SmallRng,
}

impl<J> BatchQueue<J> {
    /// A machine whose nodes, numbered from 0, are all free. `seed` decides what [`Allotment::Random`] draws.
    pub fn new(nodes: u32, seed: u64) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { nodes, free: (0..nodes).collect(), waiting: VecDeque::new(), random }
    }

    /// A job arrives that needs so many nodes; false, and nothing happens, if the machine has fewer.
    pub fn submit(&mut self, job: J, nodes: u32, allotment: Allotment) -> bool {
        let fits = nodes <= self.nodes;
        if fits {
            self.waiting.push_back((job, nodes, allotment));
        }
        fits
    }

    /// Whether the first of the waiting jobs can start.
    pub fn can_start(&self) -> bool {
        self.waiting.front().is_some_and(|&(_, nodes, _)| nodes as usize <= self.free.len())
    }

    /// Starts the first of the waiting jobs, if its nodes are free: returns it, with them, in ascending order or as they were drawn.
    pub fn start(&mut self) -> Option<(J, Vec<u32>)> {
        if !self.can_start() {
            return None;
        }
        let (job, count, allotment) = self.waiting.pop_front()?;
        let nodes: Vec<u32> = match allotment {
            Allotment::FirstFit => self.free.iter().copied().take(count as usize).collect(),
            Allotment::Random => {
                let free: Vec<u32> = self.free.iter().copied().collect();
                let drawn = index::sample(&mut self.random, free.len(), count as usize);
                drawn.into_iter().map(|at| free[at]).collect()
            }
        };
        nodes.iter().for_each(|node| {
            self.free.remove(node);
        });
        Some((job, nodes))
    }

    /// A job that had these nodes has ended.
    pub fn release(&mut self, nodes: &[u32]) {
        self.free.extend(nodes.iter().filter(|node| **node < self.nodes));
    }

    /// Jobs that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_start_in_order_on_the_first_free_nodes() {
        let mut queue = BatchQueue::new(4, 1);
        assert!(!queue.submit('z', 5, Allotment::FirstFit), "the machine has four");
        for (job, nodes) in [('a', 2), ('b', 3), ('c', 1)] {
            assert!(queue.submit(job, nodes, Allotment::FirstFit));
        }
        assert_eq!(queue.start(), Some(('a', vec![0, 1])));
        assert_eq!(queue.start(), None, "c does not overtake b");
        queue.release(&[0, 1]);
        assert_eq!((queue.start(), queue.start()), (Some(('b', vec![0, 1, 2])), Some(('c', vec![3]))));
        assert_eq!((queue.start(), queue.waiting()), (None, 0));
        queue.release(&[1]);
        queue.submit('d', 1, Allotment::FirstFit);
        assert_eq!(queue.start(), Some(('d', vec![1])));
    }

    #[test]
    fn random_nodes_are_free_ones_and_all_occur() {
        let mut seen = BTreeSet::new();
        for seed in 0..50 {
            let mut queue = BatchQueue::new(6, seed);
            (0..3).for_each(|job| assert!(queue.submit(job, 2, Allotment::Random)));
            let nodes: Vec<u32> = std::iter::from_fn(|| queue.start()).flat_map(|(_, nodes)| nodes).collect();
            assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), 6, "each node has one job");
            seen.insert(nodes[0]);
        }
        assert_eq!(seen.len(), 6);
    }
}

//! The queue of a batch system: jobs get nodes of their own when they start.
//!
//! First come, first served: a job starts as soon as all that arrived before it have started and enough nodes are free. With [`Backfill::Easy`] later
//! jobs may overtake, if that does not delay the first one that waits, as far as times are known beforehand.

use std::collections::{BTreeMap, VecDeque};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::index;

use crate::free::FreeNodes;

/// Which of the free nodes a job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allotment {
    /// The first ones, by number.
    FirstFit,
    /// Any, each choice as likely as the others.
    Random,
}

/// Which jobs may overtake others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Backfill {
    /// None: first come, first served.
    #[default]
    None,
    /// Those that do not delay the first one that waits (Lifka, JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001).
    Easy,
}

/// What a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How many nodes.
    pub nodes: u32,
    /// Which of the free ones.
    pub allotment: Allotment,
    /// For how long, in the unit of [`BatchQueue::start`]. Only [`Backfill::Easy`] looks at it: a job that runs longer counts as one that is about
    /// to end.
    pub time: u64,
}

/// The free nodes of a machine, and the jobs that wait for some.
#[derive(Clone, Debug)]
pub struct BatchQueue<J> {
    free: FreeNodes,
    waiting: VecDeque<(J, Wanted)>,
    backfill: Backfill,
    /// When the job of each node is expected to end, if it has one.
    ends: Vec<u64>,
    /// How many nodes are expected to be free from each of these moments on.
    expected: BTreeMap<u64, u32>,
    random: SmallRng,
}

impl<J> BatchQueue<J> {
    /// A machine whose nodes, numbered from 0, are all free. `seed` decides what [`Allotment::Random`] draws.
    pub fn new(nodes: u32, backfill: Backfill, seed: u64) -> Self {
        Self {
            free: FreeNodes::all(nodes),
            waiting: VecDeque::new(),
            backfill,
            ends: vec![0; nodes as usize],
            expected: BTreeMap::new(),
            random: SmallRng::seed_from_u64(seed),
        }
    }

    /// A job arrives; false, and nothing happens, if the machine has fewer nodes than it needs.
    pub fn submit(&mut self, job: J, wanted: Wanted) -> bool {
        let fits = wanted.nodes <= self.free.nodes();
        if fits {
            self.waiting.push_back((job, wanted));
        }
        fits
    }

    /// Starts a job at `now`, if one can: returns it, with its nodes, in ascending order or as they were drawn. To be called until it returns none,
    /// whenever a job has arrived or ended.
    pub fn start(&mut self, now: u64) -> Option<(J, Vec<u32>)> {
        let (job, wanted) = self.waiting.remove(self.next(now)?)?;
        let end = now.saturating_add(wanted.time);
        let (free, count) = (self.free.len(), wanted.nodes);
        let nodes: Vec<u32> = match wanted.allotment {
            Allotment::FirstFit => (0..count).filter_map(|before| self.free.nth(before)).collect(),
            Allotment::Random => {
                let drawn = index::sample(&mut self.random, free as usize, count as usize);
                drawn.into_iter().filter_map(|before| self.free.nth(before as u32)).collect()
            }
        };
        for &node in &nodes {
            self.free.set(node, false);
            self.ends[node as usize] = end;
            *self.expected.entry(end).or_insert(0) += 1;
        }
        Some((job, nodes))
    }

    /// A job that had these nodes has ended.
    pub fn release(&mut self, nodes: &[u32]) {
        for &node in nodes {
            if !self.free.set(node, true) {
                continue;
            }
            let end = self.ends[node as usize];
            if let Some(count) = self.expected.get_mut(&end) {
                *count -= 1;
                if *count == 0 {
                    self.expected.remove(&end);
                }
            }
        }
    }

    /// Jobs that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The place in the queue of a job that can start at `now`.
    fn next(&self, now: u64) -> Option<usize> {
        let free = self.free.len();
        let first = self.waiting.front()?.1.nodes;
        if first <= free {
            return Some(0);
        }
        if self.backfill == Backfill::None || free == 0 {
            return None;
        }
        let (shadow, extra) = self.reservation(first, now);
        let can_overtake = |wanted: &Wanted| {
            wanted.nodes <= free && (wanted.nodes <= extra || now.saturating_add(wanted.time) <= shadow)
        };
        self.waiting.iter().position(|(_, wanted)| can_overtake(wanted))
    }

    /// When so many nodes, more than are free, are expected to be so, and how many others then are.
    fn reservation(&self, nodes: u32, now: u64) -> (u64, u32) {
        let (mut free, mut shadow) = (self.free.len(), now);
        for (&end, &count) in &self.expected {
            // Those of one moment, as which the past counts, are free together.
            if free >= nodes && end > shadow {
                break;
            }
            (free, shadow) = (free + count, shadow.max(end));
        }
        (shadow, free - nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn first_fit(nodes: u32, time: u64) -> Wanted {
        Wanted { nodes, allotment: Allotment::FirstFit, time }
    }

    #[test]
    fn jobs_start_in_order_on_the_first_free_nodes() {
        let mut queue = BatchQueue::new(4, Backfill::None, 1);
        assert!(!queue.submit('z', first_fit(5, 0)), "the machine has four");
        for (job, nodes) in [('a', 2), ('b', 3), ('c', 1)] {
            assert!(queue.submit(job, first_fit(nodes, 0)));
        }
        assert_eq!(queue.start(0), Some(('a', vec![0, 1])));
        assert_eq!(queue.start(0), None, "c does not overtake b");
        queue.release(&[0, 1, 9]);
        assert_eq!((queue.start(0), queue.start(0)), (Some(('b', vec![0, 1, 2])), Some(('c', vec![3]))));
        assert_eq!((queue.start(0), queue.waiting()), (None, 0));
        queue.release(&[1]);
        queue.submit('d', first_fit(1, 0));
        assert_eq!(queue.start(0), Some(('d', vec![1])));
    }

    #[test]
    fn random_nodes_are_free_ones_and_all_occur() {
        let mut seen = BTreeSet::new();
        for seed in 0..50 {
            let mut queue = BatchQueue::new(6, Backfill::None, seed);
            let wanted = Wanted { allotment: Allotment::Random, ..first_fit(2, 0) };
            (0..3).for_each(|job| assert!(queue.submit(job, wanted)));
            let nodes: Vec<u32> =
                std::iter::from_fn(|| queue.start(0)).flat_map(|(_, nodes)| nodes).collect();
            assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), 6, "each node has one job");
            seen.insert(nodes[0]);
        }
        assert_eq!(seen.len(), 6);
    }

    /// On ten nodes 4 are held until 10 and 4 until 20; the first waiting job needs 6, which are expected at 10.
    #[test]
    fn jobs_that_do_not_delay_the_first_one_overtake_it() {
        let mut queue = BatchQueue::new(10, Backfill::Easy, 1);
        let submit = |queue: &mut BatchQueue<char>, job, nodes, time| {
            queue.submit(job, first_fit(nodes, time));
            queue.start(0).map(|(job, _)| job)
        };
        assert_eq!(submit(&mut queue, 'a', 4, 10), Some('a'));
        assert_eq!(submit(&mut queue, 'b', 4, 20), Some('b'));
        assert_eq!(submit(&mut queue, 'c', 6, 5), None, "two are free");
        assert_eq!(submit(&mut queue, 'd', 1, 11), None, "it would hold one of the six at 10");
        assert_eq!(submit(&mut queue, 'e', 1, 10), Some('e'), "it ends in time");
        assert_eq!(submit(&mut queue, 'f', 3, 7), None, "one is free");
        assert_eq!(submit(&mut queue, 'g', 1, 3), Some('g'));
        queue.release(&[0, 1, 2, 3]);
        assert_eq!(
            queue.start(4),
            None,
            "c needs six; d and f would hold it up at 10, when e is expected to end"
        );
        queue.release(&[8]);
        queue.release(&[9]);
        assert_eq!(queue.start(5), Some(('c', vec![0, 1, 2, 3, 8, 9])));
        assert_eq!((queue.start(5), queue.waiting()), (None, 2));
    }

    /// A job that runs: its nodes, and when it is expected to end.
    type Runs = (Vec<u32>, u64);

    /// The job that may start, by going through all moments up to the last one that is expected: no code of the queue.
    fn by_moments(waiting: &[(u32, Wanted)], runs: &[Runs], nodes: u32, now: u64) -> Option<u32> {
        let held = |at: u64| -> u32 {
            let still = runs.iter().filter(|(_, end)| *end > at);
            still.map(|(nodes, _)| nodes.len() as u32).sum()
        };
        // Those that are late hold nodes, too.
        let free = nodes - runs.iter().map(|(nodes, _)| nodes.len() as u32).sum::<u32>();
        let (first, rest) = waiting.split_first()?;
        if first.1.nodes <= free {
            return Some(first.0);
        }
        let shadow = (now..).find(|&at| nodes - held(at) >= first.1.nodes)?;
        // A job may overtake if, in its whole time from the shadow on, the first one still has its nodes.
        let fits = |wanted: &Wanted| {
            let beside = if now + wanted.time > shadow { wanted.nodes } else { 0 };
            wanted.nodes <= free && nodes - held(shadow) >= first.1.nodes + beside
        };
        rest.iter().find(|(_, wanted)| fits(wanted)).map(|(job, _)| *job)
    }

    proptest! {
        #[test]
        fn backfilling_starts_what_a_walk_through_time_starts(
            nodes in 1u32..12,
            steps in prop::collection::vec((0u64..6, 1u32..12, 0u64..20, any::<u8>()), 1..120),
        ) {
            let mut queue = BatchQueue::new(nodes, Backfill::Easy, 1);
            let (mut waiting, mut runs): (Vec<(u32, Wanted)>, Vec<Runs>) = (Vec::new(), Vec::new());
            let mut now = 0;
            for (job, (pause, count, time, ends)) in (0..).zip(steps) {
                now += pause;
                // Jobs end whenever they like.
                if ends % 3 > 0 && !runs.is_empty() {
                    let (nodes, _) = runs.remove(ends as usize % runs.len());
                    queue.release(&nodes);
                }
                let wanted = first_fit(count, time);
                if queue.submit(job, wanted) {
                    waiting.push((job, wanted));
                }
                loop {
                    let expected = by_moments(&waiting, &runs, nodes, now);
                    let found = queue.start(now);
                    prop_assert_eq!(found.as_ref().map(|(job, _)| *job), expected);
                    let Some((job, nodes)) = found else { break };
                    let place = waiting.iter().position(|(other, _)| *other == job).unwrap();
                    let (_, wanted) = waiting.remove(place);
                    prop_assert_eq!(nodes.len(), wanted.nodes as usize);
                    prop_assert!(runs.iter().all(|(others, _)| others.iter().all(|node| !nodes.contains(node))));
                    runs.push((nodes, now + wanted.time));
                }
            }
        }
    }
}

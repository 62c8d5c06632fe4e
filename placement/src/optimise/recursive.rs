//! The start of a search: dual recursive bipartitioning (Pellegrini 1994) halves network and ranks together.
//! Each step splits the ranks of a part so that little is sent between the halves and each rank is close to
//! its partners in other parts.

use std::ops::Range;
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::bisect::{SplitProblem, bisect, cost, improve};
use super::distance::Distances;
use super::matrix::CommGraph;

/// Splits tried per part.
const TRIES: usize = 2;
/// Passes over the splits of a level after the first.
const REVISITS: usize = 2;
/// Nodes that represent a part in estimates of distances between parts.
const SAMPLES: usize = 8;

/// Ranks for a range of places.
struct RankGroup {
    /// Range of `places`.
    range: Range<usize>,
    ranks: Vec<u32>,
    samples: Vec<u32>,
}

/// The state of the search: parts that are split until each lies on one node.
struct Partition<'a, D> {
    graph: &'a CommGraph,
    network: &'a D,
    places: &'a [u32],
    parts: Vec<RankGroup>,
    part_of: Vec<u32>,
    /// Index of each rank in the part that is being split.
    local: Vec<u32>,
}

/// The node of each rank; `None` if the deadline comes first. `places` has as many entries as ranks: each
/// node, repeated for the ranks it takes, with neighbours together.
pub(super) fn place(
    graph: &CommGraph,
    network: &impl Distances,
    places: &[u32],
    seed: u64,
    deadline: Instant,
) -> Option<Vec<u32>> {
    let mut random = SmallRng::seed_from_u64(seed);
    let (part_of, local) = (vec![0; graph.len()], vec![0; graph.len()]);
    let mut parts = Partition { graph, network, places, parts: Vec::new(), part_of, local };
    parts.parts.push(parts.part(0..places.len(), (0..graph.len() as u32).collect()));
    loop {
        let mut siblings = Vec::new();
        for at in 0..parts.parts.len() {
            if Instant::now() > deadline {
                return None;
            }
            siblings.extend(parts.split(at, &mut random));
        }
        if siblings.is_empty() {
            break;
        }
        // Early splits were made with little information about the others: try each again, and its mirror
        // image.
        for _ in 0..REVISITS {
            for &siblings in &siblings {
                if Instant::now() > deadline {
                    return None;
                }
                parts.revisit(siblings);
            }
        }
    }
    let mut node_of = vec![0; graph.len()];
    for part in &parts.parts {
        // All places of a part are on one node.
        for (&rank, &node) in part.ranks.iter().zip(&places[part.range.clone()]) {
            node_of[rank as usize] = node;
        }
    }
    Some(node_of)
}

impl<D: Distances> Partition<'_, D> {
    fn part(&self, range: Range<usize>, ranks: Vec<u32>) -> RankGroup {
        RankGroup { samples: samples(&self.places[range.clone()]), range, ranks }
    }

    /// Splits a part, unless it is on one node; the right half becomes a further part. Returns both.
    fn split(&mut self, at: usize, random: &mut SmallRng) -> Option<(usize, usize)> {
        let range = self.parts[at].range.clone();
        let nodes = &self.places[range.clone()];
        if nodes.first() == nodes.last() {
            return None;
        }
        let middle = cut(nodes);
        let ranks = std::mem::take(&mut self.parts[at].ranks);
        let mut left = self.part(range.start..range.start + middle, Vec::new());
        let mut right = self.part(range.start + middle..range.end, Vec::new());
        let problem = self.problem(&ranks, at, &left.samples, &right.samples);
        let tries = (0..TRIES).map(|_| bisect(&problem, middle as u32, random));
        let best = tries.map(|split| (cost(&problem, &split), split)).min_by(|a, b| a.0.total_cmp(&b.0));
        let mut goes_right = best.map(|(_, split)| split).unwrap_or_default();
        balance(&mut goes_right, middle);
        let other = self.parts.len();
        for (rank, goes_right) in ranks.into_iter().zip(goes_right) {
            if goes_right {
                self.part_of[rank as usize] = other as u32;
                right.ranks.push(rank);
            } else {
                left.ranks.push(rank);
            }
        }
        self.parts[at] = left;
        self.parts.push(right);
        Some((at, other))
    }

    /// Splits the ranks of two siblings again, from the current split and from its mirror image.
    fn revisit(&mut self, (a, b): (usize, usize)) {
        let mut ranks = std::mem::take(&mut self.parts[a].ranks);
        let left = ranks.len();
        ranks.append(&mut self.parts[b].ranks);
        ranks[left..].iter().for_each(|&rank| self.part_of[rank as usize] = a as u32);
        let (left_samples, right_samples) = (self.parts[a].samples.clone(), self.parts[b].samples.clone());
        let problem = self.problem(&ranks, a, &left_samples, &right_samples);
        let split: Vec<bool> = (0..ranks.len()).map(|i| i >= left).collect();
        let mirrored = split.iter().map(|right| !right).collect();
        let improved = [split, mirrored].map(|mut split| {
            improve(&problem, &mut split, left as u32);
            balance(&mut split, left);
            (cost(&problem, &split), split)
        });
        let [ours, mirrored] = improved;
        let goes_right = if mirrored.0 < ours.0 { mirrored.1 } else { ours.1 };
        for (&rank, right) in ranks.iter().zip(goes_right) {
            let part = if right { b } else { a };
            self.part_of[rank as usize] = part as u32;
            self.parts[part].ranks.push(rank);
        }
    }

    /// The bisection of the ranks of part `at`, whose halves get the nodes that the samples represent.
    fn problem(&mut self, ranks: &[u32], at: usize, left: &[u32], right: &[u32]) -> SplitProblem {
        let Self { graph, network, parts, part_of, local, .. } = self;
        for (i, &rank) in ranks.iter().enumerate() {
            local[rank as usize] = i as u32;
        }
        // Distance of a part from the right half minus that from the left, computed on demand.
        let mut farther: Vec<Option<f64>> = vec![None; parts.len()];
        let mut bias = vec![0.0; ranks.len()];
        let mut inside = Vec::new();
        for (i, &rank) in ranks.iter().enumerate() {
            for &(partner, weight) in graph.neighbours(rank) {
                let (part, there) = (part_of[partner as usize] as usize, local[partner as usize]);
                if part != at {
                    let farther = farther[part].get_or_insert_with(|| {
                        let there = &parts[part].samples;
                        apart(*network, right, there) - apart(*network, left, there)
                    });
                    bias[i] += weight * *farther;
                } else if (i as u32) < there {
                    inside.push((i as u32, there, weight));
                }
            }
        }
        let within = (apart(*network, left, left) + apart(*network, right, right)) / 2.0;
        let across = (apart(*network, left, right) - within).max(0.5);
        let graph = CommGraph::new(ranks.len(), inside.into_iter());
        SplitProblem { graph, sizes: vec![1; ranks.len()], bias, across }
    }
}

/// Makes the left half exactly `left` in size; rarely needed after bisection.
fn balance(goes_right: &mut [bool], left: usize) {
    let mut now = goes_right.iter().filter(|&&right| !right).count();
    for right in goes_right {
        if now > left && !*right {
            *right = true;
            now -= 1;
        } else if now < left && *right {
            *right = false;
            now += 1;
        }
    }
}

/// The index to cut at: the change of node closest to the middle, or the middle.
fn cut(nodes: &[u32]) -> usize {
    let middle = nodes.len() / 2;
    let changes = (1..nodes.len()).filter(|&at| nodes[at] != nodes[at - 1]);
    changes.min_by_key(|&at| at.abs_diff(middle)).unwrap_or(middle)
}

fn samples(nodes: &[u32]) -> Vec<u32> {
    let count = nodes.len().min(SAMPLES);
    (0..count).map(|i| nodes[(2 * i + 1) * nodes.len() / (2 * count)]).collect()
}

/// The mean distance between two parts of the network.
fn apart(network: &impl Distances, a: &[u32], b: &[u32]) -> f64 {
    let sum: u64 = a.iter().flat_map(|&a| b.iter().map(move |&b| u64::from(network.hops(a, b)))).sum();
    sum as f64 / (a.len() * b.len()).max(1) as f64
}

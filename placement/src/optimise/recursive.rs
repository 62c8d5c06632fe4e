//! The start of a search: dual recursive bipartitioning (Pellegrini 1994) halves network and ranks together.
//! Each step splits the ranks of a part so that little is sent between the halves and each rank is close to
//! its partners in other parts.

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::bisect::{Task, bisect, cost, improve};
use super::deadline::Deadline;
use super::distance::Distances;
use super::matrix::Graph;

/// Splits tried per part.
const TRIES: usize = 2;
/// Passes over the splits of a level after the first.
const REVISITS: usize = 2;
/// Nodes that represent a part in estimates of distances between parts.
const SAMPLES: usize = 8;

/// Ranks for a range of places.
struct Part {
    /// Range of `places`.
    places: std::ops::Range<usize>,
    ranks: Vec<u32>,
    samples: Vec<u32>,
}

/// The node of each rank; `None` if the deadline comes first. `places` has as many entries as ranks: each
/// node, repeated for the ranks it takes, with neighbours together.
pub(super) fn place(
    graph: &Graph,
    network: &impl Distances,
    places: &[u32],
    seed: u64,
    deadline: Deadline,
) -> Option<Vec<u32>> {
    let mut random = SmallRng::seed_from_u64(seed);
    let part = |range: std::ops::Range<usize>, ranks| Part {
        samples: samples(&places[range.clone()]),
        places: range,
        ranks,
    };
    let mut parts = vec![part(0..places.len(), (0..graph.len() as u32).collect())];
    let mut part_of = vec![0u32; graph.len()];
    // Index of each rank in the part that is being split.
    let mut local = vec![u32::MAX; graph.len()];
    loop {
        let mut siblings = Vec::new();
        for at in 0..parts.len() {
            if deadline.is_over() {
                return None;
            }
            let Part { places: range, ranks, .. } = &parts[at];
            let nodes = &places[range.clone()];
            if nodes.first() == nodes.last() {
                continue;
            }
            let middle = cut(nodes);
            let (left_range, right_range) =
                (range.start..range.start + middle, range.start + middle..range.end);
            let (left, right) = (samples(&places[left_range.clone()]), samples(&places[right_range.clone()]));
            let ranks = ranks.clone();
            let task = task(graph, network, &parts, &part_of, &mut local, &ranks, at as u32, &left, &right);
            let tries = (0..TRIES).map(|_| bisect(&task, middle as u32, &mut random));
            let splits = tries.map(|split| (cost(&task, &split), split));
            let best = splits.min_by(|a, b| a.0.total_cmp(&b.0));
            let mut goes_right = best.map(|(_, split)| split).unwrap_or_default();
            balance(&mut goes_right, middle);
            ranks.iter().for_each(|&rank| local[rank as usize] = u32::MAX);
            let (mut stay, mut go) = (Vec::new(), Vec::new());
            for (&rank, right) in ranks.iter().zip(goes_right) {
                if right {
                    part_of[rank as usize] = parts.len() as u32;
                    go.push(rank);
                } else {
                    stay.push(rank);
                }
            }
            siblings.push((at, parts.len()));
            parts[at] = part(left_range, stay);
            parts.push(part(right_range, go));
        }
        if siblings.is_empty() {
            break;
        }
        // Early splits were made with little information about the others: try each again, and its mirror
        // image.
        for _ in 0..REVISITS {
            for &(a, b) in &siblings {
                if deadline.is_over() {
                    return None;
                }
                revisit(graph, network, &mut parts, &mut part_of, &mut local, (a, b));
            }
        }
    }
    let mut node_of = vec![0; graph.len()];
    for part in &parts {
        // All places of a part are on one node.
        for (&rank, &node) in part.ranks.iter().zip(&places[part.places.clone()]) {
            node_of[rank as usize] = node;
        }
    }
    Some(node_of)
}

/// Splits the ranks of two siblings again, from the current split and from its mirror image.
fn revisit(
    graph: &Graph,
    network: &impl Distances,
    parts: &mut [Part],
    part_of: &mut [u32],
    local: &mut [u32],
    (a, b): (usize, usize),
) {
    let mut ranks = std::mem::take(&mut parts[a].ranks);
    let left = ranks.len();
    ranks.append(&mut parts[b].ranks);
    ranks[left..].iter().for_each(|&rank| part_of[rank as usize] = a as u32);
    let (left_samples, right_samples) = (&parts[a].samples, &parts[b].samples);
    let task = task(graph, network, parts, part_of, local, &ranks, a as u32, left_samples, right_samples);
    ranks.iter().for_each(|&rank| local[rank as usize] = u32::MAX);
    let split: Vec<bool> = (0..ranks.len()).map(|i| i >= left).collect();
    let mirrored = split.iter().map(|right| !right).collect();
    let improved = [split, mirrored].map(|mut split| {
        improve(&task, &mut split, left as u32);
        balance(&mut split, left);
        (cost(&task, &split), split)
    });
    let [ours, mirrored] = improved;
    let goes_right = if mirrored.0 < ours.0 { mirrored.1 } else { ours.1 };
    for (&rank, right) in ranks.iter().zip(goes_right) {
        let part = if right { b } else { a };
        part_of[rank as usize] = part as u32;
        parts[part].ranks.push(rank);
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

#[expect(clippy::too_many_arguments, reason = "one step of one loop, taken out to be read")]
fn task(
    graph: &Graph,
    network: &impl Distances,
    parts: &[Part],
    part_of: &[u32],
    local: &mut [u32],
    ranks: &[u32],
    at: u32,
    left: &[u32],
    right: &[u32],
) -> Task {
    for (i, &rank) in ranks.iter().enumerate() {
        local[rank as usize] = i as u32;
    }
    let local = &*local;
    // Distance of a part from the right half minus that from the left, computed on demand.
    let mut farther: Vec<Option<f64>> = vec![None; parts.len()];
    let mut bias = vec![0.0; ranks.len()];
    for (i, &rank) in ranks.iter().enumerate() {
        for &(partner, weight) in graph.neighbours(rank) {
            let part = part_of[partner as usize];
            if part != at {
                let farther = farther[part as usize].get_or_insert_with(|| {
                    let there = &parts[part as usize].samples;
                    apart(network, right, there) - apart(network, left, there)
                });
                bias[i] += weight * *farther;
            }
        }
    }
    let inside = ranks.iter().flat_map(|&rank| {
        let here = local[rank as usize];
        let partners =
            graph.neighbours(rank).iter().map(|&(partner, weight)| (local[partner as usize], weight));
        partners
            .filter(move |&(there, _)| there != u32::MAX && here < there)
            .map(move |(there, w)| (here, there, w))
    });
    let within = (apart(network, left, left) + apart(network, right, right)) / 2.0;
    let across = (apart(network, left, right) - within).max(0.5);
    Task { graph: Graph::new(ranks.len(), inside), sizes: vec![1; ranks.len()], bias, across }
}

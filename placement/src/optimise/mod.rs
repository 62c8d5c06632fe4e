//! Searches for placements with fewer hop-bytes: the bytes of each message times the links it crosses.
//!
//! The search starts with dual recursive bipartitioning and continues with simulated annealing, from several
//! seeds in parallel. The result is compared with common placements, and the best is kept. The effort is
//! counted in moves, not in seconds, so a seed gives the same placement on every machine, unless the time
//! limit is reached.

mod anneal;
mod bisect;
mod deadline;
mod distance;
mod matrix;
mod recursive;

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rayon::prelude::*;

use deadline::Deadline;
pub use distance::{DistanceTable, Distances, FatTree, SingleSwitch, Torus, box_order};
pub use matrix::CommMatrix;
use matrix::Graph;

use crate::error::{Error, Problem};
use crate::launchers::in_slots;
use crate::place::Placement;

/// Random placements to compare with.
const RANDOM_RIVALS: u64 = 100;
/// Starts by recursive bipartitioning, each with its own seed.
const STARTS: u64 = 16;
/// Number of best starts that are improved.
const SEARCHES: usize = 2;
/// Moves per rank; more hardly help.
const MOVES_A_RANK: u64 = 500;
/// Initial temperature, in hops of a mean edge; low, as the start is good.
const HEAT: f64 = 0.3;

/// Options of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The same seed gives the same placement.
    pub seed: u64,
    /// The search stops at this time; the result then depends on the machine.
    pub time_limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { seed: 1, time_limit: Duration::from_secs(10) }
    }
}

/// The cost of a placement.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    /// Bytes × hops, over all pairs of ranks.
    pub hop_bytes: u128,
    /// Bytes by distance, in ascending order of hops; 0 is within a node.
    pub by_hops: Vec<HopClass>,
}

/// Bytes at one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HopClass {
    /// Number of links.
    pub hops: u32,
    /// Bytes over that many links.
    pub bytes: u128,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Cost of the given placement.
    pub before: Cost,
    /// Cost of the placement found.
    pub after: Cost,
    /// Hop-bytes if nodes are filled one after the other.
    pub block: u128,
    /// Hop-bytes if ranks are dealt to nodes in turn.
    pub round_robin: u128,
    /// Fewest hop-bytes of the random placements.
    pub best_random: u128,
    /// Number of random placements.
    pub random_rivals: u64,
    /// Duration of the search.
    pub elapsed: Duration,
    /// Whether the time limit was reached.
    pub cut_short: bool,
}

/// A placement and its comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optimised {
    /// The best placement found: on the same nodes, within their slots.
    pub placement: Placement,
    /// The comparison.
    pub report: Report,
}

/// Searches for a placement with fewer hop-bytes than `before`, whose nodes and slots it uses; a node takes
/// its number of slots, or the ranks it has if these are more. Never returns a worse placement.
///
/// # Errors
/// The matrix has more ranks than the placement, or the network has another number of nodes.
pub fn optimise<D: Distances>(
    matrix: &mut CommMatrix,
    network: &D,
    before: &Placement,
    options: Options,
) -> Result<Optimised, Error> {
    let started = Instant::now();
    if matrix.ranks() as usize > before.ranks.len() {
        return Err(Problem::MoreRanksThanPlaces {
            ranks: matrix.ranks(),
            places: before.ranks.len() as u32,
        }
        .into());
    }
    if network.nodes() as usize != before.nodes.len() {
        let (network, placement) = (network.nodes(), before.nodes.len() as u32);
        return Err(Problem::OtherNetwork { network, placement }.into());
    }
    Ok(run(matrix.pairs(), network, before, options, started))
}

type Pairs<'a> = &'a [(u32, u32, u64)];

fn run(
    pairs: Pairs<'_>,
    network: &impl Distances,
    before: &Placement,
    options: Options,
    started: Instant,
) -> Optimised {
    let ranks = before.ranks.len();
    let now = before.nodes_of_ranks();
    let slots = slots_of(before);
    let graph = Graph::new(ranks, pairs.iter().map(|&(a, b, bytes)| (a, b, bytes as f64)));
    let hop_bytes = |node_of: &[u32]| hop_bytes(pairs, network, node_of);

    let filled = fill(&slots);
    let block = filled[..ranks].to_vec();
    let round_robin = deal(&slots, ranks);
    let before_cost = cost(pairs, network, &now);
    let (block_cost, round_robin_cost) = (hop_bytes(&block), hop_bytes(&round_robin));

    let deadline = Deadline(started + options.time_limit);
    let rivals = (0..RANDOM_RIVALS).into_par_iter().map(|rival| {
        // At least one.
        (rival == 0 || !deadline.is_over()).then(|| {
            let mut random = SmallRng::seed_from_u64(options.seed ^ (rival << 32));
            let chosen = rand::seq::index::sample(&mut random, filled.len(), ranks);
            let places: Vec<u32> = chosen.into_iter().map(|place| filled[place]).collect();
            (hop_bytes(&places), places)
        })
    });
    let rivals: Vec<_> = rivals.flatten().collect();
    let random_rivals = rivals.len() as u64;
    let (best_random, random) = rivals.into_iter().min().unwrap_or_default();
    let (found, cut_short) = search(&graph, network, &slots, options.seed, deadline, &hop_bytes);

    // Of equal minima the first is chosen, so the result does not depend on the order of threads. Only a better
    // placement replaces the given one.
    let rivals = [(block_cost, block), (round_robin_cost, round_robin), (best_random, random)];
    let best = found.into_iter().chain(rivals).min_by_key(|(cost, _)| *cost);
    let better = best.filter(|(cost, _)| *cost < before_cost.hop_bytes);
    let (placement, after) = match better {
        Some((_, nodes)) => {
            let after = cost(pairs, network, &nodes);
            let ranks = in_slots(nodes.into_iter(), &slots);
            (Placement { nodes: before.nodes.clone(), ranks }, after)
        }
        None => (before.clone(), before_cost.clone()),
    };
    let cut_short = cut_short || random_rivals < RANDOM_RIVALS;
    let report = Report {
        before: before_cost,
        after,
        block: block_cost,
        round_robin: round_robin_cost,
        best_random,
        random_rivals,
        elapsed: started.elapsed(),
        cut_short,
    };
    Optimised { placement, report }
}

/// The best placement of the search with its cost, and whether the deadline was reached.
fn search(
    graph: &Graph,
    network: &impl Distances,
    slots: &[u32],
    seed: u64,
    deadline: Deadline,
    hop_bytes: &(impl Fn(&[u32]) -> u128 + Sync),
) -> (Vec<(u128, Vec<u32>)>, bool) {
    let order = network.order();
    let places = order.iter().flat_map(|&node| std::iter::repeat_n(node, slots[node as usize] as usize));
    // The ranks fill a compact part of the network.
    let places: Vec<u32> = places.take(graph.len()).collect();
    let starts = (0..STARTS).into_par_iter().filter_map(|start| {
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(start);
        let node_of = recursive::place(graph, network, &places, seed, deadline)?;
        Some((hop_bytes(&node_of), seed, node_of))
    });
    let mut starts: Vec<(u128, u64, Vec<u32>)> = starts.collect();
    let mut cut_short = (starts.len() as u64) < STARTS;
    starts.sort_unstable_by_key(|&(cost, seed, _)| (cost, seed));
    starts.truncate(SEARCHES);
    let effort = anneal::Effort { moves: MOVES_A_RANK * graph.len() as u64, heat: HEAT, deadline };
    if let Some(room) = anneal::Room::new(network, &order, slots, deadline) {
        let improved = starts
            .par_iter_mut()
            .map(|(_, seed, node_of)| anneal::improve(graph, network, &room, node_of, *seed, effort));
        cut_short |= improved.collect::<Vec<bool>>().into_iter().any(|cut| cut);
    } else {
        cut_short = true;
    }
    (starts.into_iter().map(|(_, _, node_of)| (hop_bytes(&node_of), node_of)).collect(), cut_short)
}

/// Ranks that each node takes: its slots, or the ranks it has if these are more or slots are unknown.
fn slots_of(placement: &Placement) -> Vec<u32> {
    let mut taken = vec![0u32; placement.nodes.len()];
    for place in &placement.ranks {
        taken[place.node as usize] += 1;
    }
    let most = taken.iter().copied().max().unwrap_or(0);
    // More slots than ranks only cost memory.
    let useful = placement.ranks.len() as u32;
    let slots = |(node, taken): (&crate::Node, u32)| node.slots.unwrap_or(most).max(taken).min(useful);
    placement.nodes.iter().zip(taken).map(slots).collect()
}

/// Each node, repeated for its slots.
fn fill(slots: &[u32]) -> Vec<u32> {
    slots.iter().zip(0..).flat_map(|(&slots, node)| std::iter::repeat_n(node, slots as usize)).collect()
}

/// Deals ranks to nodes with a free slot, in rounds.
fn deal(slots: &[u32], ranks: usize) -> Vec<u32> {
    let rounds = 0..slots.iter().copied().max().unwrap_or(0);
    let dealt = rounds.flat_map(|round| {
        slots.iter().zip(0..).filter(move |(slots, _)| **slots > round).map(|(_, node)| node)
    });
    dealt.take(ranks).collect()
}

fn hop_bytes(pairs: Pairs<'_>, network: &impl Distances, node_of: &[u32]) -> u128 {
    let cost = |&(a, b, bytes): &(u32, u32, u64)| {
        u128::from(bytes) * u128::from(network.hops(node_of[a as usize], node_of[b as usize]))
    };
    pairs.iter().map(cost).sum()
}

/// The cost of a placement given as the node of each rank.
fn cost(pairs: Pairs<'_>, network: &impl Distances, node_of: &[u32]) -> Cost {
    let mut by_hops = std::collections::BTreeMap::new();
    for &(a, b, bytes) in pairs {
        let hops = network.hops(node_of[a as usize], node_of[b as usize]);
        *by_hops.entry(hops).or_insert(0) += u128::from(bytes);
    }
    Cost {
        hop_bytes: by_hops.iter().map(|(&hops, &bytes)| u128::from(hops) * bytes).sum(),
        by_hops: by_hops.into_iter().map(|(hops, bytes)| HopClass { hops, bytes }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use proptest::prelude::*;
    use rand::seq::SliceRandom;

    /// A grid of ranks with renumbered neighbours.
    fn scrambled_grid(x: u32, y: u32) -> CommMatrix {
        let mut names: Vec<u32> = (0..x * y).collect();
        names.shuffle(&mut SmallRng::seed_from_u64(7));
        let mut matrix = CommMatrix::new(x * y);
        for at in 0..x * y {
            for (there, exists) in [(at + 1, at % x + 1 < x), (at + x, at + x < x * y)] {
                if exists {
                    matrix.push(names[at as usize], names[there as usize], 100);
                }
            }
        }
        matrix
    }

    #[test]
    fn a_scrambled_grid_is_unscrambled() {
        let mut matrix = scrambled_grid(16, 8);
        let tree = FatTree { nodes: 32, per_leaf: 8 };
        let before = Placement::block(128, 32, 4).unwrap();
        let done = optimise(&mut matrix, &tree, &before, Options::default()).unwrap();
        // Nodes of 2 × 2 ranks, leaves of 8 × 4: 104 pairs between nodes, 24 of them between leaves.
        let optimum = 100 * (2 * 104 + 2 * 24);
        let after = done.report.after.hop_bytes;
        assert!(after >= optimum && after <= optimum * 11 / 10, "{after} of {optimum}");
        assert!(
            after < done.report.best_random && after < done.report.block && after < done.report.round_robin
        );
        let again = optimise(&mut matrix, &tree, &before, Options::default()).unwrap();
        assert_eq!(again.placement, done.placement, "a seed gives one placement");
        // The placement is optimal, so nothing changes.
        let rest =
            optimise(&mut matrix, &tree, &done.placement, Options { seed: 2, ..Options::default() }).unwrap();
        if rest.report.after.hop_bytes == after {
            assert_eq!(rest.placement, done.placement);
        }
    }

    #[test]
    fn without_gain_nothing_moves() {
        // On one switch all placements are equal; slots and cores of the placement stay.
        let network = SingleSwitch { nodes: 16 };
        let mut before = Placement::round_robin(16, 16).unwrap();
        before.ranks.reverse();
        before.ranks[3].core = Some(7);
        let done = optimise(&mut scrambled_grid(4, 4), &network, &before, Options::default()).unwrap();
        assert_eq!(done.placement, before);
        assert_eq!(done.report.after, done.report.before);
    }

    #[test]
    fn no_time_still_gives_a_placement() {
        let options = Options { time_limit: Duration::ZERO, ..Options::default() };
        let before = Placement::block(128, 128, 1).unwrap();
        let torus = Torus::new(vec![16, 8]).unwrap();
        let done = optimise(&mut scrambled_grid(16, 8), &torus, &before, options).unwrap();
        assert!(done.report.cut_short && done.report.after.hop_bytes <= done.report.before.hop_bytes);
        assert_eq!(done.report.random_rivals, 1, "one rival is made in any case");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let before = Placement::block(4, 2, 2).unwrap();
        let error = |ranks, nodes| {
            let network = SingleSwitch { nodes };
            optimise(&mut CommMatrix::new(ranks), &network, &before, Options::default())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(5, 2), "there are 5 ranks, but the placement has 4");
        assert_eq!(error(4, 3), "the network has 3 nodes, but the placement has 2");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn never_worse_and_within_the_slots(
            messages in proptest::collection::vec((0u32..12, 0u32..12, 0u64..u64::MAX), 0..40),
            slots in proptest::collection::vec(0u32..5, 6),
            seed: u64,
        ) {
            let mut matrix = CommMatrix::new(12);
            messages.iter().for_each(|&(src, dst, bytes)| matrix.push(src, dst, bytes));
            let mut before = Placement::round_robin(12, 6).unwrap();
            for (node, &slots) in before.nodes.iter_mut().zip(&slots) {
                *node = Node { slots: (slots > 0).then_some(slots), ..Node::named(&node.name) };
            }
            let torus = Torus::new(vec![3, 2]).unwrap();
            let done = optimise(&mut matrix, &torus, &before, Options { seed, ..Options::default() }).unwrap();
            prop_assert!(done.report.after.hop_bytes <= done.report.before.hop_bytes);
            prop_assert!(done.report.after.hop_bytes <= done.report.best_random.min(done.report.block));
            let nodes = done.placement.nodes_of_ranks();
            prop_assert_eq!(nodes.len(), 12);
            for (node, &slots) in slots.iter().enumerate() {
                let most = if slots == 0 { 2 } else { slots.max(2) };
                prop_assert!(nodes.iter().filter(|&&n| n as usize == node).count() <= most as usize);
            }
            prop_assert_eq!(cost(matrix.pairs(), &torus, &nodes).hop_bytes, done.report.after.hop_bytes);
        }
    }
}

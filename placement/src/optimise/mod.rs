//! Searches for placements with fewer hop-bytes: the bytes of each message times the links it crosses.
//!
//! The search starts with dual recursive bipartitioning and continues with simulated annealing, from several
//! seeds in parallel. The result is compared with common placements, and the best is kept. The effort is
//! counted in moves, not in seconds, so a seed gives the same placement on every machine, unless the time
//! limit is reached.

mod anneal;
mod bisect;
mod distance;
mod matrix;
mod recursive;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rayon::prelude::*;

use anneal::SlotTable;
pub use distance::{Distances, box_order};
use matrix::CommGraph;
pub use matrix::CommMatrix;

use crate::error::Error;
use crate::placement::{Location, Placement};

/// Random placements to compare with.
const RANDOM_RIVALS: u64 = 100;
/// Starts by recursive bipartitioning, each with its own seed.
const STARTS: u64 = 16;
/// Number of best starts that are improved.
const SEARCHES: usize = 2;

/// Options of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchOptions {
    /// The same seed gives the same placement.
    pub seed: u64,
    /// The search stops at this time; the result then depends on the machine.
    pub time_limit: Duration,
}

impl Default for SearchOptions {
    fn default() -> Self {
        SearchOptions { seed: 1, time_limit: Duration::from_secs(10) }
    }
}

/// The cost of a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Bytes × hops, over all pairs of ranks.
    pub hop_bytes: u128,
    /// Bytes by number of hops; 0 is within a node.
    pub by_hops: BTreeMap<u32, u128>,
}

/// The best placement found, and what it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optimised {
    /// The placement: on the nodes of the given one, within their slots.
    pub placement: Placement,
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

/// Searches for a placement with fewer hop-bytes than `before`, whose nodes and slots it uses; a node takes
/// its number of slots, or the ranks it has if these are more. Never returns a worse placement.
///
/// # Errors
/// The matrix has more ranks than the placement, or the network has another number of nodes.
pub fn optimise<D: Distances>(
    matrix: &mut CommMatrix,
    network: &D,
    before: &Placement,
    options: SearchOptions,
) -> Result<Optimised, Error> {
    let started = Instant::now();
    let (ranks, nodes) = (before.ranks.len(), before.nodes.len());
    if matrix.ranks() as usize > ranks {
        let found = matrix.ranks();
        return Err(Error::new(format!("there are {found} ranks, but the placement has {ranks}")));
    }
    if network.nodes() as usize != nodes {
        let found = network.nodes();
        return Err(Error::new(format!("the network has {found} nodes, but the placement has {nodes}")));
    }
    let pairs = matrix.pairs();
    let slots = slots_of(before);
    let graph = CommGraph::new(ranks, pairs.iter().map(|&(a, b, bytes)| (a, b, bytes as f64)));
    let hop_bytes = |node_of: &[u32]| hop_bytes(pairs, network, node_of);

    let filled = fill(&slots);
    let block = filled[..ranks].to_vec();
    let round_robin = deal(&slots, ranks);
    let before_cost = cost(pairs, network, &before.nodes_of_ranks());
    let (block_cost, round_robin_cost) = (hop_bytes(&block), hop_bytes(&round_robin));

    let deadline = started + options.time_limit;
    let rivals = (0..RANDOM_RIVALS).into_par_iter().map(|rival| {
        // At least one.
        (rival == 0 || Instant::now() <= deadline).then(|| {
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
        Some((_, node_of)) => {
            let after = cost(pairs, network, &node_of);
            let ranks = Location::in_slots(node_of.into_iter(), &slots);
            (Placement { nodes: before.nodes.clone(), ranks }, after)
        }
        None => (before.clone(), before_cost.clone()),
    };
    Ok(Optimised {
        placement,
        before: before_cost,
        after,
        block: block_cost,
        round_robin: round_robin_cost,
        best_random,
        random_rivals,
        elapsed: started.elapsed(),
        cut_short: cut_short || random_rivals < RANDOM_RIVALS,
    })
}

/// The best placements of the search with their costs, and whether the deadline was reached.
fn search(
    graph: &CommGraph,
    network: &impl Distances,
    slots: &[u32],
    seed: u64,
    deadline: Instant,
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
    match SlotTable::new(network, &order, slots, deadline) {
        Some(places) => {
            let improved = starts
                .par_iter_mut()
                .map(|(_, seed, node_of)| anneal::improve(graph, network, &places, node_of, *seed, deadline));
            cut_short |= improved.reduce(|| false, |one, other| one | other);
        }
        None => cut_short = true,
    }
    (starts.into_iter().map(|(_, _, node_of)| (hop_bytes(&node_of), node_of)).collect(), cut_short)
}

/// Ranks that each node takes: its slots, or the ranks it has if these are more or slots are unknown.
fn slots_of(placement: &Placement) -> Vec<u32> {
    let mut taken = vec![0u32; placement.nodes.len()];
    for location in &placement.ranks {
        taken[location.node as usize] += 1;
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

/// Bytes between pairs of ranks.
type Pairs<'a> = &'a [(u32, u32, u64)];

fn hop_bytes(pairs: Pairs<'_>, network: &impl Distances, node_of: &[u32]) -> u128 {
    let cost = |&(a, b, bytes): &(u32, u32, u64)| {
        u128::from(bytes) * u128::from(network.hops(node_of[a as usize], node_of[b as usize]))
    };
    pairs.iter().map(cost).sum()
}

/// The cost of a placement given as the node of each rank.
fn cost(pairs: Pairs<'_>, network: &impl Distances, node_of: &[u32]) -> Cost {
    let mut by_hops = BTreeMap::new();
    for &(a, b, bytes) in pairs {
        let hops = network.hops(node_of[a as usize], node_of[b as usize]);
        *by_hops.entry(hops).or_insert(0) += u128::from(bytes);
    }
    Cost { hop_bytes: hop_bytes(pairs, network, node_of), by_hops }
}

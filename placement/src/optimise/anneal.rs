//! Local search by simulated annealing: a rank swaps places with another, or moves to a free place.
//!
//! A move takes a rank that communicates, one of its partners, and a place on or near the partner's node. Its
//! score is the change in hop-bytes: over all partners of the two ranks, bytes × (links from the new node −
//! links from the old node). A move that lowers the cost is made; one that raises it by `c` is made with
//! probability exp(−c / temperature), and the temperature falls to a hundredth during the search.

use std::time::Instant;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::distance::Distances;
use super::matrix::CommGraph;

/// Number of near nodes that moves can lead to, per node.
const NEAR: usize = 16;
/// Largest network in which near nodes are searched among all nodes; in larger ones, among neighbours in the
/// order.
const SMALL: usize = 4096;
/// Moves between two checks of the deadline; the temperature falls as often.
const MOVES_PER_CHECK: u64 = 4096;
/// A place without a rank.
const EMPTY: u32 = u32::MAX;

/// Moves per rank; more hardly help.
const MOVES_A_RANK: u64 = 500;
/// Initial temperature, in hops of a mean edge; low, as the start is good.
const HEAT: f64 = 0.3;

/// The places that moves can lead to: the slots of all nodes.
pub(super) struct SlotTable {
    /// The node of each place; places of a node are consecutive.
    nodes: Vec<u32>,
    /// First place of each node, and one more at the end.
    starts: Vec<u32>,
    /// Near nodes of each node.
    near: Vec<Vec<u32>>,
}

impl SlotTable {
    /// Node n of the network has `slots[n]` places. `None` if the deadline comes first.
    pub(super) fn new(
        network: &impl Distances,
        order: &[u32],
        slots: &[u32],
        deadline: Instant,
    ) -> Option<Self> {
        let mut starts = vec![0];
        let mut nodes = Vec::new();
        for (node, &slots) in slots.iter().enumerate() {
            nodes.extend(std::iter::repeat_n(node as u32, slots as usize));
            starts.push(nodes.len() as u32);
        }
        let order: Vec<u32> = order.iter().copied().filter(|&node| slots[node as usize] > 0).collect();
        let mut near = vec![Vec::new(); slots.len()];
        for (at, &node) in order.iter().enumerate() {
            if (at as u64).is_multiple_of(MOVES_PER_CHECK) && Instant::now() > deadline {
                return None;
            }
            let around = if order.len() <= SMALL {
                &order[..]
            } else {
                &order[at.saturating_sub(4 * NEAR)..(at + 4 * NEAR).min(order.len())]
            };
            let mut around: Vec<(u32, u32)> = around.iter().map(|&n| (network.hops(node, n), n)).collect();
            if around.len() > NEAR {
                around.select_nth_unstable(NEAR);
                around.truncate(NEAR);
            }
            // A rank on a node of its own can only come as close as the next node.
            around.retain(|&(_, n)| n != node || slots[node as usize] > 1);
            near[node as usize] = around.into_iter().map(|(_, n)| n).collect();
        }
        Some(SlotTable { nodes, starts, near })
    }
}

/// Improves a placement; returns whether the deadline cut the search short.
pub(super) fn improve(
    graph: &CommGraph,
    network: &impl Distances,
    places: &SlotTable,
    node_of: &mut [u32],
    seed: u64,
    deadline: Instant,
) -> bool {
    let mut random = SmallRng::seed_from_u64(seed);
    let communicating: Vec<u32> =
        (0..graph.len() as u32).filter(|&rank| !graph.neighbours(rank).is_empty()).collect();
    if communicating.is_empty() {
        return false;
    }
    let mut search = Annealing::new(graph, network, places, node_of);
    let edges = communicating.iter().flat_map(|&rank| graph.neighbours(rank));
    let (count, sum) = edges.fold((0u64, 0.0), |(count, sum), (_, weight)| (count + 1, sum + weight));
    let moves = MOVES_A_RANK * graph.len() as u64;
    let mut temperature = HEAT * sum / count as f64;
    let cooling = 0.01f64.powf(MOVES_PER_CHECK as f64 / moves.max(MOVES_PER_CHECK) as f64);
    let (mut total, mut best) = (0.0, 0.0);
    let mut done = 0;
    while done < moves {
        for _ in 0..MOVES_PER_CHECK.min(moves - done) {
            let rank = communicating[random.random_range(0..communicating.len())];
            let partners = graph.neighbours(rank);
            let partner = partners[random.random_range(0..partners.len())].0;
            let near = &places.near[search.node_of[partner as usize] as usize];
            if near.is_empty() {
                continue;
            }
            let node = near[random.random_range(0..near.len())] as usize;
            let place = random.random_range(places.starts[node]..places.starts[node + 1]);
            let change = search.change(rank, place);
            if change <= 0.0 || random.random::<f64>() < (-change / temperature).exp() {
                search.take(rank, place);
                total += change;
            }
        }
        done += MOVES_PER_CHECK;
        temperature *= cooling;
        // At high temperatures the search wanders: keep the best state between checks.
        if total < best - 1e-9 * sum {
            best = total;
            node_of.copy_from_slice(&search.node_of);
        }
        if Instant::now() > deadline {
            return done < moves;
        }
    }
    false
}

struct Annealing<'a, D> {
    graph: &'a CommGraph,
    network: &'a D,
    places: &'a SlotTable,
    node_of: Vec<u32>,
    place_of: Vec<u32>,
    occupant: Vec<u32>,
}

impl<'a, D: Distances> Annealing<'a, D> {
    fn new(graph: &'a CommGraph, network: &'a D, places: &'a SlotTable, node_of: &[u32]) -> Self {
        let mut next = places.starts.clone();
        let mut occupant = vec![EMPTY; places.nodes.len()];
        let mut place_of = Vec::with_capacity(node_of.len());
        for (rank, &node) in node_of.iter().enumerate() {
            let place = next[node as usize];
            next[node as usize] += 1;
            occupant[place as usize] = rank as u32;
            place_of.push(place);
        }
        Annealing { graph, network, places, node_of: node_of.to_vec(), place_of, occupant }
    }

    /// The change in cost if the rank swaps with the rank on `place`, if any.
    fn change(&self, rank: u32, place: u32) -> f64 {
        let (from, to) = (self.node_of[rank as usize], self.places.nodes[place as usize]);
        if from == to {
            return 0.0;
        }
        let other = self.occupant[place as usize];
        let mut change = self.move_cost(rank, other, from, to);
        if other != EMPTY {
            change += self.move_cost(other, rank, to, from);
        }
        change
    }

    /// The change in cost of moving a rank while `partner` moves the other way.
    fn move_cost(&self, rank: u32, partner: u32, from: u32, to: u32) -> f64 {
        let mut cost = 0.0;
        for &(other, weight) in self.graph.neighbours(rank) {
            if other != partner {
                let there = self.node_of[other as usize];
                cost += weight
                    * (f64::from(self.network.hops(to, there)) - f64::from(self.network.hops(from, there)));
            }
        }
        cost
    }

    fn take(&mut self, rank: u32, place: u32) {
        let (left, other) = (self.place_of[rank as usize], self.occupant[place as usize]);
        self.occupant[left as usize] = other;
        if other != EMPTY {
            self.place_of[other as usize] = left;
            self.node_of[other as usize] = self.places.nodes[left as usize];
        }
        self.occupant[place as usize] = rank;
        self.place_of[rank as usize] = place;
        self.node_of[rank as usize] = self.places.nodes[place as usize];
    }
}

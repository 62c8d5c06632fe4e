//! Local search by simulated annealing: ranks swap places, at first freely, later only for an improvement.
//! Each move brings a rank closer to one that it communicates with.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::deadline::Deadline;
use super::distance::Distances;
use super::matrix::Graph;

/// Number of near nodes that moves can lead to, per node.
const NEAR: usize = 16;
/// Largest network in which near nodes are searched among all nodes; in larger ones, among neighbours in the
/// order.
const SMALL: usize = 4096;
/// Moves between two checks of the deadline.
const BREATH: u64 = 4096;
/// A place without a rank.
const EMPTY: u32 = u32::MAX;

/// The effort of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Number of moves.
    pub moves: u64,
    /// Initial temperature, in hops of a mean edge; it falls to a hundredth.
    pub heat: f64,
    /// Stop here in any case.
    pub deadline: Deadline,
}

/// The places that moves can lead to.
pub(super) struct Room {
    /// The node of each place; places of a node are consecutive.
    nodes: Vec<u32>,
    /// First place of each node, and one more at the end.
    starts: Vec<u32>,
    /// Near nodes of each node.
    near: Vec<Vec<u32>>,
}

impl Room {
    /// Node n of the network has `slots[n]` places. `None` if the deadline comes first.
    pub(super) fn new(
        network: &impl Distances,
        order: &[u32],
        slots: &[u32],
        deadline: Deadline,
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
            if (at as u64).is_multiple_of(BREATH) && deadline.is_over() {
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
        Some(Room { nodes, starts, near })
    }
}

/// Improves a placement; returns whether the deadline cut the search short.
pub(super) fn improve(
    graph: &Graph,
    network: &impl Distances,
    room: &Room,
    node_of: &mut [u32],
    seed: u64,
    effort: Effort,
) -> bool {
    let mut random = SmallRng::seed_from_u64(seed);
    let talkers: Vec<u32> =
        (0..graph.len() as u32).filter(|&rank| !graph.neighbours(rank).is_empty()).collect();
    if talkers.is_empty() {
        return false;
    }
    let mut search = Search::new(graph, network, room, node_of);
    let edges = talkers.iter().flat_map(|&rank| graph.neighbours(rank));
    let (count, sum) = edges.fold((0u64, 0.0), |(count, sum), (_, weight)| (count + 1, sum + weight));
    let mut heat = effort.heat * sum / count as f64;
    let cooling = 0.01f64.powf(BREATH as f64 / effort.moves.max(BREATH) as f64);
    let mut total = 0.0;
    let mut best = 0.0;
    let mut cut_short = false;
    let mut done = 0;
    while done < effort.moves {
        for _ in 0..BREATH.min(effort.moves - done) {
            let rank = talkers[random.random_range(0..talkers.len())];
            let partners = graph.neighbours(rank);
            let partner = partners[random.random_range(0..partners.len())].0;
            let near = &room.near[search.node_of[partner as usize] as usize];
            if near.is_empty() {
                continue;
            }
            let node = near[random.random_range(0..near.len())] as usize;
            let place = random.random_range(room.starts[node]..room.starts[node + 1]);
            let change = search.change(rank, place);
            if change <= 0.0 || random.random::<f64>() < (-change / heat).exp() {
                search.take(rank, place);
                total += change;
            }
        }
        done += BREATH;
        heat *= cooling;
        // At high temperatures the search wanders: keep the best state between checks.
        if total < best - 1e-9 * sum {
            best = total;
            node_of.copy_from_slice(&search.node_of);
        }
        if effort.deadline.is_over() {
            cut_short = done < effort.moves;
            break;
        }
    }
    cut_short
}

struct Search<'a, D> {
    graph: &'a Graph,
    network: &'a D,
    room: &'a Room,
    node_of: Vec<u32>,
    place_of: Vec<u32>,
    occupant: Vec<u32>,
}

impl<'a, D: Distances> Search<'a, D> {
    fn new(graph: &'a Graph, network: &'a D, room: &'a Room, node_of: &[u32]) -> Self {
        let mut next = room.starts.clone();
        let mut occupant = vec![EMPTY; room.nodes.len()];
        let mut place_of = Vec::with_capacity(node_of.len());
        for (rank, &node) in node_of.iter().enumerate() {
            let place = next[node as usize];
            next[node as usize] += 1;
            occupant[place as usize] = rank as u32;
            place_of.push(place);
        }
        Search { graph, network, room, node_of: node_of.to_vec(), place_of, occupant }
    }

    /// The change in cost if the rank swaps with the rank on `place`, if any.
    fn change(&self, rank: u32, place: u32) -> f64 {
        let (from, to) = (self.node_of[rank as usize], self.room.nodes[place as usize]);
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
            self.node_of[other as usize] = self.room.nodes[left as usize];
        }
        self.occupant[place as usize] = rank;
        self.place_of[rank as usize] = place;
        self.node_of[rank as usize] = self.room.nodes[place as usize];
    }
}

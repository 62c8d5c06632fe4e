//! Where each node sends, by pattern.

use std::collections::HashMap;

use crate::random::Random;
use crate::topology::Fabric;

/// The destinations of each node.
#[derive(Clone, Debug)]
pub(crate) enum Destinations {
    /// Any of this many nodes.
    Uniform(u32),
    /// One destination, by node.
    One(Vec<u32>),
    /// Any member of a group; `next` has the group by node.
    Group { next: Vec<usize>, members: Vec<Vec<u32>> },
    /// Nodes with their shares; the rest goes to any of this many nodes.
    Hot { hot: Vec<(u32, f64)>, nodes: u32 },
    /// By node the destinations with sums of weights up to each, and the load of the node as a share of the greatest.
    Rows { rows: Vec<Vec<(f64, u32)>>, rates: Vec<f64> },
    /// Several, with their shares.
    Mixed(Vec<(f64, Destinations)>),
}

impl Destinations {
    pub(crate) fn draw(&self, src: u32, random: &mut Random) -> u32 {
        match self {
            Self::Uniform(nodes) => random.below(*nodes),
            Self::One(to) => to[src as usize],
            Self::Group { next, members } => {
                let members = &members[next[src as usize]];
                members[random.below(members.len() as u32) as usize]
            }
            Self::Hot { hot, nodes } => {
                let mut left = random.unit();
                let found = hot.iter().find(|(_, share)| {
                    left -= share;
                    left <= 0.0
                });
                found.map_or_else(|| random.below(*nodes), |&(node, _)| node)
            }
            Self::Rows { rows, .. } => {
                let row = &rows[src as usize];
                let Some(&(sum, last)) = row.last() else { return src };
                let drawn = random.unit() * sum;
                row.get(row.partition_point(|&(sum, _)| sum < drawn)).map_or(last, |&(_, to)| to)
            }
            Self::Mixed(parts) => {
                let mut left = random.unit() * self.rate(src);
                let found = parts.iter().find(|(share, to)| {
                    left -= share * to.rate(src);
                    left <= 0.0
                });
                let (_, to) = found.or(parts.last()).expect("at least one part");
                to.draw(src, random)
            }
        }
    }

    /// The load of a node as a share of that of the others.
    pub(crate) fn rate(&self, src: u32) -> f64 {
        match self {
            Self::Uniform(_) | Self::One(_) | Self::Group { .. } | Self::Hot { .. } => 1.0,
            Self::Rows { rates, .. } => rates[src as usize],
            Self::Mixed(parts) => parts.iter().map(|(share, to)| share * to.rate(src)).sum(),
        }
    }
}

/// The destinations in a network; the seed determines a permutation.
///
/// # Errors
/// The number of nodes that a pattern needs.
pub(super) type Choose = fn(&Fabric, u64) -> Result<Destinations, &'static str>;

/// One destination by node.
fn table(network: &Fabric, to: impl Fn(u32) -> u32) -> Result<Destinations, &'static str> {
    Ok(Destinations::One((0..network.nodes()).map(to).collect()))
}

pub(super) const UNIFORM: Choose = |network, _| Ok(Destinations::Uniform(network.nodes()));

pub(super) const TRANSPOSE: Choose = |network, _| {
    let (nodes, bits) = (network.nodes(), network.nodes().trailing_zeros());
    if !nodes.is_power_of_two() || !bits.is_multiple_of(2) {
        return Err("a power of 4 nodes");
    }
    let half = bits / 2;
    table(network, |node| node >> half | (node & ((1 << half) - 1)) << half)
};

/// Just under half way around.
pub(super) const TORNADO: Choose =
    |network, _| table(network, |node| shifted(network, node, |size| size.div_ceil(2) - 1));

pub(super) const BITCOMP: Choose = |network, _| match network.nodes() {
    nodes if nodes.is_power_of_two() => table(network, |node| nodes - 1 - node),
    _ => Err("a power of 2 nodes"),
};

pub(super) const NEIGHBOR: Choose =
    |network, _| table(network, |node| shifted(network, node, |size| 1 % size));

pub(super) const ADVERSARIAL: Choose = |network, _| Ok(adversarial(network));

pub(super) const INCAST: Choose = |network, _| table(network, |_| 0);

pub(super) const PERMUTATION: Choose = |network, seed| {
    let mut to: Vec<u32> = (0..network.nodes()).collect();
    Random::new(seed, 0).shuffle(&mut to);
    Ok(Destinations::One(to))
};

/// The node at distance `by(size)` in each dimension.
fn shifted(topology: &Fabric, node: u32, by: impl Fn(u32) -> u32) -> u32 {
    let (nodes, sizes) = (topology.nodes(), topology.topology().dimensions());
    if sizes.is_empty() {
        return ((u64::from(node) + u64::from(by(nodes))) % u64::from(nodes)) as u32;
    }
    let (switch, per_router) = (topology.switch_of(node), nodes / topology.switches());
    let (mut to, mut stride) = (0, 1);
    for size in sizes {
        to += (switch / stride + by(size)) % size * stride;
        stride *= size;
    }
    to * per_router + node % per_router
}

/// The nodes of a group, or of a switch, send to those of the next group or switch with nodes.
fn adversarial(topology: &Fabric) -> Destinations {
    let nodes = topology.nodes();
    let per_group = topology.topology().switches_per_group().unwrap_or(1);
    let group = |node: u32| topology.switch_of(node) / per_group;
    let mut members: Vec<Vec<u32>> = Vec::new();
    let mut of_group = HashMap::new();
    let mut place = Vec::new();
    for node in 0..nodes {
        let at = *of_group.entry(group(node)).or_insert_with(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        members[at].push(node);
        place.push(at);
    }
    let next = place.into_iter().map(|at| (at + 1) % members.len()).collect();
    Destinations::Group { next, members }
}

//! Traffic patterns: the destinations of each node.

use std::fmt;
use std::str::FromStr;

use crate::random::Random;
use crate::topology::Fabric;

/// A traffic pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Any node with equal probability, the source included.
    Uniform,
    /// The node number with the two halves of its bits swapped.
    Transpose,
    /// Just under half way around in each dimension; without dimensions, in node numbers.
    Tornado,
    /// The node number with all bits inverted.
    Bitcomp,
    /// The next router in each dimension; without dimensions, the next node.
    Neighbor,
    /// Any node of the next group with equal probability; without groups, of the next switch.
    Adversarial,
    /// Node 0.
    Incast,
    /// A random permutation.
    Permutation,
}

/// An unknown pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown pattern {0:?}; write uniform, transpose, tornado, bitcomp, neighbor, adversarial, incast or permutation"
)]
pub struct UnknownPattern(pub String);

/// A pattern that is not defined for a number of nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern {pattern} needs {needs}; this network has {nodes}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: Pattern,
    /// The numbers of nodes for which it is defined.
    pub needs: &'static str,
    /// The number of nodes.
    pub nodes: u32,
}

impl Pattern {
    /// All patterns, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Uniform,
        Self::Transpose,
        Self::Tornado,
        Self::Bitcomp,
        Self::Neighbor,
        Self::Adversarial,
        Self::Incast,
        Self::Permutation,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Transpose => "transpose",
            Self::Tornado => "tornado",
            Self::Bitcomp => "bitcomp",
            Self::Neighbor => "neighbor",
            Self::Adversarial => "adversarial",
            Self::Incast => "incast",
            Self::Permutation => "permutation",
        }
    }

    /// The destinations in a network; `seed` determines a permutation.
    pub(crate) fn destinations(self, topology: &Fabric, seed: u64) -> Result<Destinations, PatternError> {
        let nodes = topology.nodes();
        let needs = |needs| Err(PatternError { pattern: self, needs, nodes });
        let bits = nodes.trailing_zeros();
        let table = |to: &dyn Fn(u32) -> u32| Destinations::One((0..nodes).map(to).collect());
        Ok(match self {
            Self::Uniform => Destinations::Uniform(nodes),
            Self::Transpose if !nodes.is_power_of_two() || !bits.is_multiple_of(2) => {
                return needs("a power of 4 nodes");
            }
            Self::Transpose => {
                let half = bits / 2;
                table(&|node| node >> half | (node & ((1 << half) - 1)) << half)
            }
            Self::Bitcomp if !nodes.is_power_of_two() => return needs("a power of 2 nodes"),
            Self::Bitcomp => table(&|node| nodes - 1 - node),
            Self::Tornado => table(&|node| shifted(topology, node, |size| size.div_ceil(2) - 1)),
            Self::Neighbor => table(&|node| shifted(topology, node, |size| 1 % size)),
            Self::Adversarial => adversarial(topology),
            Self::Incast => table(&|_| 0),
            Self::Permutation => {
                let mut to: Vec<u32> = (0..nodes).collect();
                let mut random = Random::new(seed, 0);
                for last in (1..to.len()).rev() {
                    to.swap(last, random.below(last as u32 + 1) as usize);
                }
                Destinations::One(to)
            }
        })
    }
}

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
    let mut of_group = std::collections::HashMap::new();
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

/// The destinations of each node.
#[derive(Clone, Debug)]
pub(crate) enum Destinations {
    /// Any of this many nodes.
    Uniform(u32),
    /// One destination, by node.
    One(Vec<u32>),
    /// Any member of a group; `next` has the group by node.
    Group { next: Vec<usize>, members: Vec<Vec<u32>> },
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
        }
    }
}

impl FromStr for Pattern {
    type Err = UnknownPattern;

    fn from_str(text: &str) -> Result<Self, UnknownPattern> {
        let found = Self::ALL.into_iter().find(|pattern| pattern.name() == text);
        found.ok_or_else(|| UnknownPattern(text.to_owned()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::build;

    fn table(pattern: Pattern, text: &str) -> Vec<u32> {
        match pattern.destinations(&build(text), 1) {
            Ok(Destinations::One(to)) => to,
            other => panic!("{pattern}: {other:?}"),
        }
    }

    #[test]
    fn destinations_by_hand() {
        assert_eq!(table(Pattern::Transpose, "switch:16")[..6], [0, 4, 8, 12, 1, 5]);
        assert_eq!(table(Pattern::Bitcomp, "switch:8")[..3], [7, 6, 5]);
        // Distance 3 in each dimension of 8×8.
        let tornado = table(Pattern::Tornado, "torus:8x8");
        assert_eq!((tornado[0], tornado[7], tornado[63]), (3 + 8 * 3, 2 + 8 * 3, 2 + 8 * 2));
        assert_eq!(table(Pattern::Tornado, "switch:9")[..2], [4, 5]);
        let neighbor = table(Pattern::Neighbor, "mesh:4x4:2");
        assert_eq!((neighbor[0], neighbor[1], neighbor[31]), (10, 11, 1));
        assert_eq!(table(Pattern::Incast, "switch:3"), [0, 0, 0]);
        let mut permutation = table(Pattern::Permutation, "switch:100");
        assert_ne!(permutation, (0..100).collect::<Vec<_>>());
        permutation.sort_unstable();
        assert_eq!(permutation, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn all_of_a_group_send_to_the_next() {
        let mut random = Random::new(1, 1);
        for (text, group, nodes) in
            [("dragonfly:2x4x2", 8, 72), ("hyperx:4x4:4", 4, 64), ("fattree:4x4x4", 4, 16)]
        {
            let to = Pattern::Adversarial.destinations(&build(text), 1).unwrap();
            let mut seen = std::collections::HashSet::new();
            for _ in 0..200 {
                assert_eq!(to.draw(nodes - 1, &mut random) / group, 0, "{text}");
                seen.insert(to.draw(0, &mut random));
            }
            assert_eq!(seen.len(), group as usize);
            assert!(seen.iter().all(|to| to / group == 1));
        }
    }

    #[test]
    fn names_read_back() {
        for pattern in Pattern::ALL {
            assert_eq!(pattern.to_string().parse(), Ok(pattern));
        }
        assert!("random".parse::<Pattern>().unwrap_err().to_string().contains("write uniform"));
        let error =
            |pattern: Pattern, text: &str| pattern.destinations(&build(text), 1).unwrap_err().to_string();
        assert_eq!(
            error(Pattern::Transpose, "switch:8"),
            "pattern transpose needs a power of 4 nodes; this network has 8"
        );
        assert!(error(Pattern::Bitcomp, "switch:9").contains("power of 2"));
    }
}

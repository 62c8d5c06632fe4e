//! The list of traffic patterns. A further one is its destinations and a line here.

use std::fmt;
use std::str::FromStr;
use vef_format::nearest::did_you_mean;
use vef_format::units::Count;

use super::destinations::{self, Choose, Destinations};
use crate::topology::Fabric;

/// What a pattern says of itself.
#[derive(Debug)]
pub struct PatternInfo {
    /// As in `--pattern`.
    pub name: &'static str,
    /// The destinations.
    pub help: &'static str,
    choose: Choose,
}

macro_rules! patterns {
    ($($(#[$attribute:meta])* $pattern:ident => $name:literal, $help:literal, $choose:ident;)*) => {
        /// A traffic pattern.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Pattern {
            $(
                #[doc = $help]
                $(#[$attribute])*
                $pattern,
            )*
        }

        impl Pattern {
            /// All patterns, in the order of the documentation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$pattern),*];

            /// What the pattern says of itself.
            pub const fn info(self) -> &'static PatternInfo {
                match self {
                    $(Self::$pattern => {
                        &PatternInfo { name: $name, help: $help, choose: destinations::$choose }
                    })*
                }
            }
        }
    };
}

patterns! {
    #[default]
    Uniform => "uniform", "any node with equal probability, the source included", UNIFORM;
    Transpose => "transpose", "the node number with the two halves of its bits swapped", TRANSPOSE;
    Tornado => "tornado", "just under half way around in each dimension; without dimensions, in node numbers", TORNADO;
    Bitcomp => "bitcomp", "the node number with all bits inverted", BITCOMP;
    Neighbor => "neighbor", "the next router in each dimension; without dimensions, the next node", NEIGHBOR;
    Adversarial => "adversarial", "any node of the next group; without groups, of the next switch", ADVERSARIAL;
    Incast => "incast", "node 0", INCAST;
    Permutation => "permutation", "a random permutation", PERMUTATION;
}

/// An unknown pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown pattern {:?}; {}write {}", .0, did_you_mean(.0, names()), names().join(", "))]
pub struct UnknownPattern(pub String);

/// The names of all patterns.
pub(super) fn names() -> [&'static str; Pattern::ALL.len()] {
    Pattern::ALL.map(|pattern| pattern.info().name)
}

/// A pattern that is not defined for a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is for other numbers of nodes.
    #[error("pattern {pattern} needs {needs}; this network has {nodes}")]
    Nodes {
        /// The pattern.
        pattern: Pattern,
        /// The numbers of nodes for which it is defined.
        needs: &'static str,
        /// The number of nodes.
        nodes: u32,
    },
    /// It has a node that the network does not have.
    #[error("{what}: there is no node {node}; this network has {}, from 0", Count(*.nodes, "node"))]
    NoNode {
        /// The pattern, or the line of a file.
        what: String,
        /// The node.
        node: u32,
        /// The number of nodes.
        nodes: u32,
    },
}

impl Pattern {
    /// The destinations in a network; `seed` determines a permutation.
    pub(crate) fn destinations(self, network: &Fabric, seed: u64) -> Result<Destinations, PatternError> {
        let choose = self.info().choose;
        let nodes = network.nodes();
        choose(network, seed).map_err(|needs| PatternError::Nodes { pattern: self, needs, nodes })
    }
}

impl FromStr for Pattern {
    type Err = UnknownPattern;

    fn from_str(text: &str) -> Result<Self, UnknownPattern> {
        let found = Self::ALL.into_iter().find(|pattern| pattern.info().name == text);
        found.ok_or_else(|| UnknownPattern(text.to_owned()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
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

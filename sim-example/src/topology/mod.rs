//! The topologies, and the texts that name them.
//!
//! | text | topology |
//! |---|---|
//! | `auto` | one switch with as many nodes as the placement needs |
//! | `switch:N` | one switch with N nodes |
//! | `fattree:LxDxS` | L leaf switches with D nodes each, every leaf joined to each of S spine switches |
//! | `fattree:k=K` | three levels of K-port switches (K even): K³/4 nodes |
//! | `xgft:M1,M2,…;W1,W2,…` | general fat tree: Mᵢ children a switch, Wᵢ parents an element, from the nodes up |
//! | `torus:AxBx…` | torus of any number of dimensions |

mod torus;
mod tree;

use std::fmt;
use std::str::FromStr;

pub use torus::{Torus, TorusWalk};
pub use tree::{Tree, TreeWalk};

use crate::routing::{LinkId, Routing};

/// The most links a topology may have: their state takes 32 bytes each.
pub const MAX_LINKS: u32 = 1 << 26;

/// Which topology a simulation has, as a user names it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum TopologySpec {
    /// One switch with as many nodes as the placement needs.
    #[default]
    Auto,
    /// One switch.
    Switch {
        /// Its nodes.
        nodes: u32,
    },
    /// Two levels of switches.
    LeafSpine {
        /// Leaf switches.
        leaves: u32,
        /// Nodes of a leaf.
        nodes_per_leaf: u32,
        /// Spine switches, each joined to every leaf.
        spines: u32,
    },
    /// Three levels of switches with `k` ports each.
    KAry {
        /// Ports of a switch, even.
        k: u32,
    },
    /// The general fat tree; see [`Tree`].
    Xgft {
        /// Children of a switch, from the lowest level up.
        children: Vec<u32>,
        /// Parents of an element, from the nodes up; a node has one.
        parents: Vec<u32>,
    },
    /// A torus.
    Torus {
        /// The size of each dimension.
        sizes: Vec<u32>,
    },
}

/// Why there is no such topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("topology {text:?}: {problem}")]
pub struct TopologyError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: TopologyProblem,
}

/// What can be wrong with a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyProblem {
    /// No known kind of topology.
    #[error(
        "unknown kind; write auto, switch:N, fattree:LEAVESxNODESxSPINES, fattree:k=PORTS, xgft:CHILDREN;PARENTS or torus:AxBxC"
    )]
    Kind,
    /// The part behind the colon is not as it should be.
    #[error("expected {0}")]
    Form(&'static str),
    /// A number is zero.
    #[error("every number must be at least 1")]
    Zero,
    /// A k-ary fat tree with an odd k.
    #[error("the number of ports of a k-ary fat tree must be even")]
    Odd,
    /// The two lists of a general fat tree do not fit.
    #[error("{children} levels of children, but {parents} of parents")]
    Levels {
        /// Length of the list of children.
        children: usize,
        /// Length of the list of parents.
        parents: usize,
    },
    /// Nodes with several links.
    #[error("a node has one link, not {0}: the first number of parents must be 1")]
    Rails(u32),
    /// Too many nodes or links.
    #[error("more than {MAX_LINKS} links")]
    TooLarge,
}

impl FromStr for TopologySpec {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        parse(text.trim()).map_err(|problem| TopologyError { text: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<TopologySpec, TopologyProblem> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let spec = match kind {
        "auto" if text == kind => TopologySpec::Auto,
        "switch" => match numbers(rest, ',')[..] {
            [nodes] => TopologySpec::Switch { nodes },
            _ => return Err(TopologyProblem::Form("switch:NODES, like switch:16")),
        },
        "fattree" => {
            const FORM: TopologyProblem = TopologyProblem::Form(
                "fattree:LEAVESxNODESxSPINES, like fattree:4x16x8, or fattree:k=PORTS, like fattree:k=8",
            );
            match (rest.strip_prefix("k=").map(|k| k.parse()), &numbers(rest, 'x')[..]) {
                (Some(Ok(k)), _) => TopologySpec::KAry { k },
                (None, &[leaves, nodes_per_leaf, spines]) => {
                    TopologySpec::LeafSpine { leaves, nodes_per_leaf, spines }
                }
                _ => return Err(FORM),
            }
        }
        "xgft" => {
            let (children, parents) = rest.split_once(';').unwrap_or((rest, ""));
            let (children, parents) = (numbers(children, ','), numbers(parents, ','));
            if children.is_empty() || parents.is_empty() {
                return Err(TopologyProblem::Form("xgft:CHILDREN;PARENTS, like xgft:16,4;1,8"));
            }
            TopologySpec::Xgft { children, parents }
        }
        "torus" => match numbers(rest, 'x') {
            sizes if sizes.is_empty() => {
                return Err(TopologyProblem::Form("torus:AxBx…, like torus:4x4x2"));
            }
            sizes => TopologySpec::Torus { sizes },
        },
        _ => return Err(TopologyProblem::Kind),
    };
    // What can be built is known now, except the size of `auto`.
    spec.try_build(1)?;
    Ok(spec)
}

/// The numbers of a list; empty if anything else is in it.
fn numbers(text: &str, separator: char) -> Vec<u32> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    text.split(separator).map(digits).collect::<Option<Vec<u32>>>().unwrap_or_default()
}

impl fmt::Display for TopologySpec {
    /// As it is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |numbers: &[u32], separator| {
            numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
        };
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Switch { nodes } => write!(f, "switch:{nodes}"),
            Self::LeafSpine { leaves, nodes_per_leaf, spines } => {
                write!(f, "fattree:{leaves}x{nodes_per_leaf}x{spines}")
            }
            Self::KAry { k } => write!(f, "fattree:k={k}"),
            Self::Xgft { children, parents } => {
                write!(f, "xgft:{};{}", join(children, ","), join(parents, ","))
            }
            Self::Torus { sizes } => write!(f, "torus:{}", join(sizes, "x")),
        }
    }
}

impl TopologySpec {
    /// The topology; `auto` gets `needed` nodes.
    ///
    /// # Errors
    /// A number is zero or odd where it may not be, or there are more than [`MAX_LINKS`] links.
    pub fn build(&self, needed: u32) -> Result<Topology, TopologyError> {
        self.try_build(needed).map_err(|problem| TopologyError { text: self.to_string(), problem })
    }

    /// The same with `auto` replaced by what it became, a switch with `nodes` nodes.
    pub fn resolved(&self, nodes: u32) -> Self {
        match self {
            Self::Auto => Self::Switch { nodes },
            other => other.clone(),
        }
    }

    fn try_build(&self, needed: u32) -> Result<Topology, TopologyProblem> {
        let tree = |children: &[u32], parents: &[u32]| Tree::new(children, parents).map(Topology::Tree);
        let topology = match *self {
            Self::Auto => tree(&[needed], &[1]),
            Self::Switch { nodes } => tree(&[nodes], &[1]),
            Self::LeafSpine { leaves, nodes_per_leaf, spines } => {
                tree(&[nodes_per_leaf, leaves], &[1, spines])
            }
            Self::KAry { k } if k % 2 == 1 => Err(TopologyProblem::Odd),
            Self::KAry { k } => tree(&[k / 2, k / 2, k], &[1, k / 2, k / 2]),
            Self::Xgft { ref children, ref parents } => tree(children, parents),
            Self::Torus { ref sizes } => Torus::new(sizes).map(Topology::Torus),
        }?;
        match topology.links() {
            0..=MAX_LINKS => Ok(topology),
            _ => Err(TopologyProblem::TooLarge),
        }
    }
}

/// A topology of any kind. The models are compiled for each kind; this is for what happens once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One switch or a fat tree.
    Tree(Tree),
    /// A torus.
    Torus(Torus),
}

impl Topology {
    /// Number of end nodes.
    pub fn nodes(&self) -> u32 {
        match self {
            Self::Tree(tree) => tree.nodes(),
            Self::Torus(torus) => torus.nodes(),
        }
    }

    /// Number of directed links, those of the nodes included.
    pub fn links(&self) -> u32 {
        match self {
            Self::Tree(tree) => tree.links(),
            Self::Torus(torus) => torus.links(),
        }
    }

    /// Number of links on the way from node `src` to node `dst`, both below [`Topology::nodes`].
    pub fn distance(&self, src: u32, dst: u32) -> u32 {
        match self {
            Self::Tree(tree) => tree.distance(src, dst),
            Self::Torus(torus) => torus.distance(src, dst),
        }
    }

    /// How people call `link`: `node3->leaf0`; empty if there is no such link.
    pub fn link_name(&self, link: LinkId) -> String {
        match self {
            Self::Tree(tree) => tree.link_name(link),
            Self::Torus(torus) => torus.link_name(link),
        }
    }
}

#[cfg(test)]
mod tests;

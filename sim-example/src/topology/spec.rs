//! The text forms of topologies.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::dragonfly::{Arrangement, Dragonfly};
use super::error::{TopologyError, TopologyProblem};
use super::given::Given;
use super::hyperx::HyperX;
use super::torus::Torus;
use super::tree::Tree;
use super::{Shape, Topology};

/// A topology as given by the user.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum TopologySpec {
    /// One switch with as many nodes as the placement needs.
    #[default]
    Auto,
    /// One switch.
    Switch {
        /// Number of nodes.
        nodes: u32,
    },
    /// Two levels of switches.
    LeafSpine {
        /// Number of leaf switches.
        leaves: u32,
        /// Nodes per leaf.
        nodes_per_leaf: u32,
        /// Number of spine switches, each with a cable to every leaf.
        spines: u32,
    },
    /// Three levels of switches with `k` ports each.
    FatTree {
        /// Ports per switch; even.
        k: u32,
    },
    /// The k-ary n-tree: n levels of switches, with k children and k parents each.
    KAryTree {
        /// Children, and parents, per switch.
        k: u32,
        /// Levels of switches.
        levels: u32,
    },
    /// A general fat tree; see [`Tree`].
    Xgft {
        /// Children per switch, from the lowest level up.
        children: Vec<u32>,
        /// Parents per element, from the nodes up; 1 for nodes.
        parents: Vec<u32>,
        /// Cables between an element and each parent; 1 for nodes. If empty, all are 1.
        cables: Vec<u32>,
    },
    /// A torus or mesh.
    Torus {
        /// The size of each dimension.
        sizes: Vec<u32>,
        /// Nodes per router.
        nodes_per_router: u32,
        /// Whether the rows wrap around: torus or mesh.
        wraps: bool,
    },
    /// A HyperX, flattened butterfly or full mesh.
    HyperX {
        /// The size of each dimension.
        sizes: Vec<u32>,
        /// Nodes per router.
        nodes_per_router: u32,
    },
    /// A dragonfly.
    Dragonfly {
        /// Nodes per router.
        nodes_per_router: u32,
        /// Routers per group.
        routers: u32,
        /// Global cables per router.
        global: u32,
        /// Groups; by default as many as possible.
        groups: Option<u32>,
        /// The arrangement of the global cables.
        arrangement: Arrangement,
    },
    /// A network from a file.
    File(PathBuf),
}

impl FromStr for TopologySpec {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        parse(text.trim()).map_err(|problem| TopologyError { text: text.to_owned(), problem })
    }
}

const SWITCH: &str = "switch:NODES, like switch:16";
const FATTREE: &str =
    "fattree:LEAVESxNODESxSPINES, like fattree:4x16x8, or fattree:k=PORTS, like fattree:k=8";
const KARYTREE: &str = "karytree:KxLEVELS, like karytree:4x3";
const XGFT: &str = "xgft:CHILDREN;PARENTS, like xgft:16,4;1,8, or with cables, like xgft:16,4;1,2;1,4";
const TORUS: &str = "torus:AxBx…, like torus:4x4x2, or with nodes per router, like torus:4x4x2:2";
const MESH: &str = "mesh:AxBx…, like mesh:4x4, or with nodes per router, like mesh:4x4:2";
const HYPERX: &str = "hyperx:AxBx…:NODES, like hyperx:4x4:4";
const DRAGONFLY: &str = "dragonfly:NODESxROUTERSxGLOBAL, like dragonfly:2x4x2, with GROUPS, like dragonfly:2x4x2x5, and \
                         with an arrangement, like dragonfly:2x4x2:absolute (palmtree, absolute, relative)";
const FILE: &str = "file:PATH, with the path of a .graphml, .dot or .txt file";

fn parse(text: &str) -> Result<TopologySpec, TopologyProblem> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    // Sizes, and the text behind another colon.
    let (sizes, behind) = match rest.split_once(':') {
        Some((sizes, behind)) => (numbers(sizes, 'x'), Some(behind)),
        None => (numbers(rest, 'x'), None),
    };
    let nodes_per_router = |form| match behind {
        None => Ok(1),
        Some(number) => match numbers(number, 'x')[..] {
            [nodes] => Ok(nodes),
            _ => Err(TopologyProblem::Form(form)),
        },
    };
    let spec = match (kind, &sizes[..]) {
        ("auto", _) if text == kind => TopologySpec::Auto,
        ("switch", &[nodes]) if behind.is_none() => TopologySpec::Switch { nodes },
        ("switch", _) => return Err(TopologyProblem::Form(SWITCH)),
        ("fattree", &[leaves, nodes_per_leaf, spines]) if behind.is_none() => {
            TopologySpec::LeafSpine { leaves, nodes_per_leaf, spines }
        }
        ("fattree", _) => match numbers(rest.strip_prefix("k=").unwrap_or_default(), 'x')[..] {
            [k] => TopologySpec::FatTree { k },
            _ => return Err(TopologyProblem::Form(FATTREE)),
        },
        ("karytree", &[k, levels]) if behind.is_none() => TopologySpec::KAryTree { k, levels },
        ("karytree", _) => return Err(TopologyProblem::Form(KARYTREE)),
        ("xgft", _) => {
            let lists: Vec<Vec<u32>> = rest.split(';').map(|list| numbers(list, ',')).collect();
            if lists.iter().any(Vec::is_empty) {
                return Err(TopologyProblem::Form(XGFT));
            }
            match <[Vec<u32>; 2]>::try_from(lists.clone()) {
                Ok([children, parents]) => TopologySpec::Xgft { children, parents, cables: Vec::new() },
                Err(_) => match <[Vec<u32>; 3]>::try_from(lists) {
                    Ok([children, parents, cables]) => TopologySpec::Xgft { children, parents, cables },
                    Err(_) => return Err(TopologyProblem::Form(XGFT)),
                },
            }
        }
        ("torus", []) => return Err(TopologyProblem::Form(TORUS)),
        ("torus", _) => {
            TopologySpec::Torus { nodes_per_router: nodes_per_router(TORUS)?, sizes, wraps: true }
        }
        ("mesh", []) => return Err(TopologyProblem::Form(MESH)),
        ("mesh", _) => TopologySpec::Torus { nodes_per_router: nodes_per_router(MESH)?, sizes, wraps: false },
        ("hyperx", []) => return Err(TopologyProblem::Form(HYPERX)),
        ("hyperx", _) => TopologySpec::HyperX { nodes_per_router: nodes_per_router(HYPERX)?, sizes },
        ("dragonfly", &[nodes_per_router, routers, global, ref groups @ ..]) if groups.len() < 2 => {
            let named = |name: &str| {
                let found = Arrangement::ALL.iter().find(|(known, _)| *known == name);
                found.map(|&(_, arrangement)| arrangement).ok_or(TopologyProblem::Form(DRAGONFLY))
            };
            let arrangement = behind.map_or(Ok(Arrangement::default()), named)?;
            let groups = groups.first().copied();
            TopologySpec::Dragonfly { nodes_per_router, routers, global, groups, arrangement }
        }
        ("dragonfly", _) => return Err(TopologyProblem::Form(DRAGONFLY)),
        ("file", _) if rest.is_empty() => return Err(TopologyProblem::Form(FILE)),
        ("file", _) => return Ok(TopologySpec::File(rest.into())),
        _ => return Err(TopologyProblem::Kind),
    };
    // Validate. The size of `auto` and the content of a file are checked by `build`.
    spec.shape(1)?;
    Ok(spec)
}

/// The numbers of a list; empty if any is invalid.
fn numbers(text: &str, separator: char) -> Vec<u32> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    text.split(separator).map(digits).collect::<Option<Vec<u32>>>().unwrap_or_default()
}

impl fmt::Display for TopologySpec {
    /// In the form that is parsed.
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
            Self::FatTree { k } => write!(f, "fattree:k={k}"),
            Self::KAryTree { k, levels } => write!(f, "karytree:{k}x{levels}"),
            Self::Xgft { children, parents, cables } => {
                write!(f, "xgft:{};{}", join(children, ","), join(parents, ","))?;
                if cables.is_empty() { Ok(()) } else { write!(f, ";{}", join(cables, ",")) }
            }
            Self::Torus { sizes, nodes_per_router, wraps } => {
                write!(f, "{}:{}", if *wraps { "torus" } else { "mesh" }, join(sizes, "x"))?;
                if *nodes_per_router == 1 { Ok(()) } else { write!(f, ":{nodes_per_router}") }
            }
            Self::HyperX { sizes, nodes_per_router } => {
                write!(f, "hyperx:{}", join(sizes, "x"))?;
                if *nodes_per_router == 1 { Ok(()) } else { write!(f, ":{nodes_per_router}") }
            }
            Self::Dragonfly { nodes_per_router, routers, global, groups, arrangement } => {
                write!(f, "dragonfly:{nodes_per_router}x{routers}x{global}")?;
                if let Some(groups) = groups {
                    write!(f, "x{groups}")?;
                }
                match arrangement {
                    Arrangement::Palmtree => Ok(()),
                    other => write!(f, ":{}", other.name()),
                }
            }
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl TopologySpec {
    /// Builds the topology; `auto` gets `needed` nodes.
    ///
    /// # Errors
    /// A number is invalid, the topology has more than [`MAX_LINKS`](super::MAX_LINKS) links, or the file is
    /// invalid.
    pub fn build(&self, needed: u32) -> Result<Topology, TopologyError> {
        match self.shape(needed) {
            Ok(shape) => Ok(Topology::new(shape)),
            Err(problem) => Err(TopologyError { text: self.to_string(), problem }),
        }
    }

    /// The same with `auto` replaced by a switch with `nodes` nodes.
    pub fn resolved(&self, nodes: u32) -> Self {
        match self {
            Self::Auto => Self::Switch { nodes },
            other => other.clone(),
        }
    }

    fn shape(&self, needed: u32) -> Result<Shape, TopologyProblem> {
        let tree = |children: &[u32], parents: &[u32], cables: &[u32]| {
            Tree::new(children, parents, cables).map(Shape::Tree)
        };
        match *self {
            Self::Auto => tree(&[needed], &[1], &[1]),
            Self::Switch { nodes } => tree(&[nodes], &[1], &[1]),
            Self::LeafSpine { leaves, nodes_per_leaf, spines } => {
                tree(&[nodes_per_leaf, leaves], &[1, spines], &[1, 1])
            }
            Self::FatTree { k } if k % 2 == 1 => Err(TopologyProblem::Odd),
            Self::FatTree { k } => tree(&[k / 2, k / 2, k], &[1, k / 2, k / 2], &[1, 1, 1]),
            Self::KAryTree { levels: 0, .. } => Err(TopologyProblem::Zero),
            Self::KAryTree { levels: 33.., .. } => Err(TopologyProblem::TooLarge),
            Self::KAryTree { k, levels } => {
                let levels = levels as usize;
                let mut parents = vec![k; levels];
                parents[0] = 1;
                tree(&vec![k; levels], &parents, &vec![1; levels])
            }
            Self::Xgft { ref children, ref parents, ref cables } if cables.is_empty() => {
                tree(children, parents, &vec![1; children.len()])
            }
            Self::Xgft { ref children, ref parents, ref cables } => tree(children, parents, cables),
            Self::Torus { ref sizes, nodes_per_router, wraps } => {
                Torus::new(sizes, nodes_per_router, wraps).map(Shape::Torus)
            }
            Self::HyperX { ref sizes, nodes_per_router } => {
                HyperX::new(sizes, nodes_per_router).map(Shape::HyperX)
            }
            Self::Dragonfly { nodes_per_router, routers, global, groups, arrangement } => {
                Dragonfly::new(nodes_per_router, routers, global, groups, arrangement).map(Shape::Dragonfly)
            }
            Self::File(ref path) => Ok(Shape::Given(Box::new(Given::read(path)?))),
        }
    }
}

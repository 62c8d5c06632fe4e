//! Errors in a file that describes a network.

use crate::quantity::QuantityError;
use crate::topology::limits::{GraphProblem, MAX_LINKS};

/// An error in a file that describes a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", Line(*.line))]
pub struct FileError {
    /// Line in the file, from 1; 0 if the error concerns the whole file.
    pub line: usize,
    /// The error.
    pub problem: FileProblem,
}

/// The error in a file that describes a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The file is not well-formed.
    #[error("{0}")]
    Syntax(String),
    /// A bandwidth or latency is invalid.
    #[error("{attribute} {text:?}: {problem}")]
    Quantity {
        /// `bandwidth` or `latency`.
        attribute: &'static str,
        /// The text.
        text: String,
        /// The error.
        problem: QuantityError,
    },
    /// A name is not declared.
    #[error("unknown node or switch {0:?}")]
    Unknown(String),
    /// A name is declared twice.
    #[error("{0:?} is declared twice")]
    Twice(String),
    /// A node does not have exactly one cable.
    #[error("node {name:?} has {cables} cables; a node has one")]
    Cables {
        /// The node.
        name: String,
        /// Its number of cables.
        cables: u64,
    },
    /// A cable joins two nodes.
    #[error("node {0:?} is joined to node {1:?}; a node is joined to a switch")]
    NodeToNode(String, String),
    /// The link of a node has no opposite link, or a cable joins a vertex with itself.
    #[error("the cable between {0:?} and {1:?} must lead both ways and join two vertices")]
    OneWay(String, String),
    /// The network has no nodes.
    #[error("the network has no nodes")]
    NoNodes,
    /// Two nodes are not connected.
    #[error("no route from node {0:?} to node {1:?}")]
    Disconnected(String, String),
    /// It is too large for a table of distances.
    #[error(transparent)]
    Graph(#[from] GraphProblem),
    /// There are more different speeds than classes.
    #[error("more than 65533 different speeds of links")]
    TooManySpeeds,
    /// There are too many links.
    #[error("more than {} links", MAX_LINKS)]
    TooLarge,
    /// A given route is invalid.
    #[error("the route from {src:?} to {dst:?}: {problem}")]
    Route {
        /// The source.
        src: String,
        /// The destination.
        dst: String,
        /// The error.
        problem: String,
    },
}

struct Line(usize);

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 > 0 { write!(f, "line {}: ", self.0) } else { Ok(()) }
    }
}

impl FileProblem {
    pub(crate) fn at(self, line: usize) -> FileError {
        FileError { line, problem: self }
    }

    /// An invalid number of cables.
    pub(super) fn cables(value: &str) -> Self {
        Self::Syntax(format!("cables {value:?}: expected a number of at least 1"))
    }
}

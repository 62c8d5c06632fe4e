//! Errors in a file that describes a network.

use crate::quantity::QuantityError;
use crate::topology::limits::{MAX_LINKS, MAX_SWITCHES};

/// Why a file describes no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", Line(*.line))]
pub struct FileError {
    /// Where in the file, from 1; 0 where it concerns the whole.
    pub line: usize,
    /// What is wrong.
    pub problem: FileProblem,
}

/// What can be wrong with a file that should describe a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It is not of the format that its name says.
    #[error("{0}")]
    Syntax(String),
    /// A bandwidth or latency that is none.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// A name that was not declared.
    #[error("no node or switch is called {0:?}")]
    Unknown(String),
    /// A name that two vertices have.
    #[error("{0:?} is declared twice")]
    Twice(String),
    /// A node with more or fewer cables than one.
    #[error("node {name:?} has {cables} cables; a node has one")]
    Cables {
        /// The node.
        name: String,
        /// How many it has.
        cables: u32,
    },
    /// A node joined to another node.
    #[error("node {0:?} is joined to node {1:?}; a node is joined to a switch")]
    NodeToNode(String, String),
    /// A link to a node that has no way back, or a cable of a vertex to itself.
    #[error("the cable between {0:?} and {1:?} must lead both ways, and to another vertex")]
    OneWay(String, String),
    /// There is no node.
    #[error("there is no node")]
    NoNodes,
    /// Two nodes are not connected.
    #[error("there is no way from node {0:?} to node {1:?}")]
    Disconnected(String, String),
    /// More switches than the table of distances has room for.
    #[error("{switches} switches; at most {} can be routed between", MAX_SWITCHES)]
    TooManySwitches {
        /// How many.
        switches: usize,
    },
    /// More different speeds than there are classes.
    #[error("more than 65533 different speeds of links")]
    TooManySpeeds,
    /// More links than a topology may have.
    #[error("more than {} links", MAX_LINKS)]
    TooLarge,
    /// A given way that is none.
    #[error("the route from {src:?} to {dst:?}: {problem}")]
    Route {
        /// The first node.
        src: String,
        /// The last node.
        dst: String,
        /// What is wrong with it.
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

    /// `value` is no number of cables.
    pub(super) fn cables(value: &str) -> Self {
        Self::Syntax(format!("cables {value:?}: expected a number of at least 1"))
    }
}

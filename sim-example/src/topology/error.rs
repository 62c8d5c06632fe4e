//! Errors in the description of a topology.

use super::file::FileError;
use super::limits::MAX_LINKS;

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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyProblem {
    /// No known kind of topology.
    #[error(
        "unknown kind; write auto, switch:N, fattree:LEAVESxNODESxSPINES, fattree:k=PORTS, karytree:KxLEVELS, \
         xgft:CHILDREN;PARENTS, torus:AxBxC, mesh:AxBxC, hyperx:AxB:NODES, dragonfly:NODESxROUTERSxGLOBAL or file:PATH"
    )]
    Kind,
    /// The part behind the colon is not as it should be.
    #[error("expected {0}")]
    Form(&'static str),
    /// A number is zero.
    #[error("every number must be at least 1")]
    Zero,
    /// A fat tree of switches with an odd number of ports.
    #[error("the number of ports of a fat tree must be even")]
    Odd,
    /// The lists of a general fat tree do not fit.
    #[error("{children} levels of children, but {others} of parents or cables")]
    Levels {
        /// Length of the list of children.
        children: usize,
        /// Length of another list.
        others: usize,
    },
    /// Nodes with several links.
    #[error("a node has one link, not {0}: the first number of parents, and of cables, must be 1")]
    Rails(u32),
    /// Groups that cannot be joined evenly.
    #[error(
        "{ports} global ports a group cannot join {groups} groups evenly: groups − 1 must divide {ports}"
    )]
    Groups {
        /// Global ports of a group.
        ports: u32,
        /// Groups.
        groups: u32,
    },
    /// The absolute arrangement with fewer groups than it is defined for.
    #[error("the absolute arrangement needs all {} groups", .ports + 1)]
    AbsoluteGroups {
        /// Global ports of a group.
        ports: u32,
    },
    /// A file that describes no network.
    #[error(transparent)]
    File(#[from] FileError),
    /// Too many nodes or links.
    #[error("more than {MAX_LINKS} links")]
    TooLarge,
}

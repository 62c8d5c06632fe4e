//! Errors in the text form of a topology.

use super::file::FileError;
use super::limits::MAX_LINKS;

/// A topology that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("topology {text:?}: {problem}")]
pub struct TopologyError {
    /// The text form.
    pub text: String,
    /// The error.
    pub problem: TopologyProblem,
}

/// The error in a topology, of which the caller names the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyProblem {
    /// The kind is unknown.
    #[error("unknown kind; {}write auto, {forms}", similar.map(|form| format!("did you mean {form}? ")).unwrap_or_default())]
    Kind {
        /// The kind that is most alike.
        similar: Option<&'static str>,
        /// All forms.
        forms: String,
    },
    /// The part behind the colon does not have this form; then an example.
    #[error("expected {0}, like {1}")]
    Form(&'static str, &'static str),
    /// A number is zero.
    #[error("every number must be at least 1")]
    Zero,
    /// A Slim Fly needs an odd prime.
    #[error("{0} is not the power of a prime, from 3 on")]
    PrimePower(u32),
    /// Ports of a leaf that cannot be divided by the ratio.
    #[error("{ports} ports cannot be divided into {ratio} down for each one up")]
    Ratio {
        /// The ports of a switch.
        ports: u32,
        /// Those down for each one up.
        ratio: u32,
    },
    /// A fat tree needs switches with an even number of ports.
    #[error("the number of ports of a fat tree must be even")]
    Odd,
    /// The lists of a general fat tree differ in length.
    #[error("{children} levels of children, but {others} of parents or cables")]
    Levels {
        /// Length of the list of children.
        children: usize,
        /// Length of another list.
        others: usize,
    },
    /// A node has more than one link.
    #[error("a node has one link, not {0}: the first number of parents, and of cables, must be 1")]
    Rails(u32),
    /// The cables cannot be divided evenly among the groups.
    #[error(
        "{ports} global ports per group cannot join {groups} groups evenly: groups − 1 must divide {ports}"
    )]
    Groups {
        /// Global ports per group.
        ports: u32,
        /// Number of groups.
        groups: u32,
    },
    /// The absolute arrangement is defined only for the full number of groups.
    #[error("the absolute arrangement needs all {} groups", .ports + 1)]
    AbsoluteGroups {
        /// Global ports per group.
        ports: u32,
    },
    /// The file is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// The topology has more than [`MAX_LINKS`] links.
    #[error("more than {MAX_LINKS} links")]
    TooLarge,
}

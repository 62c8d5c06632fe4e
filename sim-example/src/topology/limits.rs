//! Limits on the size of topologies, and the error of a graph that exceeds them.

/// Most links of a topology; the state of a link takes about a hundred bytes.
pub const MAX_LINKS: u32 = 1 << 24;

/// Most switches of a network from a file; its table of distances takes two bytes for each pair.
pub(super) const MAX_SWITCHES: usize = 8192;

/// Most links from a switch of a network from a file to others. Each step of a route looks at all of them.
pub(super) const MAX_PORTS: u32 = 1 << 16;

/// Most steps of the search for distances in a network from a file: switches times pairs of neighbours.
pub(super) const MAX_SEARCH: u64 = 1 << 32;

/// A graph that is too large for a table of distances.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphProblem {
    /// There are too many switches for the table of distances.
    #[error("{switches} switches; at most {} are possible", MAX_SWITCHES)]
    TooManySwitches {
        /// Their number.
        switches: usize,
    },
    /// A switch has too many links.
    #[error("switch {0:?} has more than {most} links to other switches", most = MAX_PORTS)]
    TooManyPorts(String),
    /// The search for distances would take too long.
    #[error(
        "{switches} switches with {neighbours} pairs of neighbours; their product is at most {}",
        MAX_SEARCH
    )]
    TooDense {
        /// Number of switches.
        switches: usize,
        /// Number of pairs of switches with a link from the first to the second.
        neighbours: usize,
    },
}

//! Limits on the size of topologies.

/// Most links of a topology; the state of a link takes about a hundred bytes.
pub const MAX_LINKS: u32 = 1 << 24;

/// Most switches of a network from a file; its table of distances takes two bytes for each pair.
pub(super) const MAX_SWITCHES: usize = 8192;

/// Most links from a switch of a network from a file to others. Each step of a route looks at all of them.
pub(super) const MAX_PORTS: u32 = 1 << 16;

/// Most steps of the search for distances in a network from a file: switches times pairs of neighbours.
pub(super) const MAX_SEARCH: u64 = 1 << 32;

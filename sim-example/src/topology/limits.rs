//! Limits on the size of topologies.

/// Most links of a topology; the state of a link takes tens of bytes.
pub const MAX_LINKS: u32 = 1 << 26;

/// Most switches of a network from a file; its table of distances takes two bytes for each pair.
pub(super) const MAX_SWITCHES: usize = 8192;

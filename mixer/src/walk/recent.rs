//! A cache of recently used channels, by the arguments of calls.

use crate::index::ChannelIndex;
use vef_format::ids::{CommId, CommRank};

/// Number of entries.
const ENTRIES: usize = 256;

/// How a call names a channel: communicator, rank in it, tag.
pub(super) type Name = (CommId, CommRank, i32);

/// Direct-mapped by rank and tag.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Empty until the first channel.
    entries: Vec<Option<(Name, ChannelIndex)>>,
}

impl Recent {
    /// The channel, if it is cached.
    #[inline(always)]
    pub(super) fn find(&self, name: Name) -> Option<ChannelIndex> {
        match self.entries.get(entry(name)) {
            Some(&Some((known, channel))) if known == name => Some(channel),
            _ => None,
        }
    }

    /// Caches a channel.
    pub(super) fn remember(&mut self, name: Name, channel: ChannelIndex) {
        self.entries.resize(ENTRIES, None);
        self.entries[entry(name)] = Some((name, channel));
    }
}

#[inline(always)]
fn entry((_, rank, tag): Name) -> usize {
    rank.0.wrapping_mul(31).wrapping_add(tag as u32) as usize % ENTRIES
}

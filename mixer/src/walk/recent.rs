//! A cache of recently used channels, by the arguments of calls.

use vef_format::ids::{CommId, CommRank};

/// Number of entries.
const PLACES: usize = 256;

/// How a call names a channel: communicator, rank in it, tag.
pub(super) type Name = (CommId, CommRank, i32);

/// Direct-mapped by rank and tag.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Empty until the first channel.
    places: Vec<Option<(Name, u32)>>,
}

impl Recent {
    /// The number of the channel, if it is cached.
    #[inline(always)]
    pub(super) fn find(&self, name: Name) -> Option<u32> {
        match self.places.get(place(name)) {
            Some(&Some((known, number))) if known == name => Some(number),
            _ => None,
        }
    }

    /// Caches the number of a channel.
    pub(super) fn remember(&mut self, name: Name, number: u32) {
        self.places.resize(PLACES, None);
        self.places[place(name)] = Some((name, number));
    }
}

#[inline(always)]
fn place((_, rank, tag): Name) -> usize {
    rank.0.wrapping_mul(31).wrapping_add(tag as u32) as usize % PLACES
}

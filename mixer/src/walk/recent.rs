//! The channels that were met lately, by what calls name them by.

use vef_format::ids::{CommId, CommRank};

/// So many are remembered.
const PLACES: usize = 256;

/// What a call names a channel by: communicator, rank there, tag.
pub(super) type Name = (CommId, CommRank, i32);

/// Recent channels, each at the place that its rank and tag give.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Empty until there is one.
    places: Vec<Option<(Name, u32)>>,
}

impl Recent {
    /// The number of the channel, if it is known.
    #[inline(always)]
    pub(super) fn find(&self, name: Name) -> Option<u32> {
        match self.places.get(place(name)) {
            Some(&Some((known, number))) if known == name => Some(number),
            _ => None,
        }
    }

    /// The channel has this number.
    pub(super) fn remember(&mut self, name: Name, number: u32) {
        self.places.resize(PLACES, None);
        self.places[place(name)] = Some((name, number));
    }
}

#[inline(always)]
fn place((_, rank, tag): Name) -> usize {
    rank.0.wrapping_mul(31).wrapping_add(tag as u32) as usize % PLACES
}

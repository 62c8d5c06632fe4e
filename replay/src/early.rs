//! Messages that have been delivered and not yet been waited for.
//!
//! Ids of neighbours in time are neighbours in number, so that an entry lies at its id modulo the size of a table, which
//! grows when two would lie in one place; what still collides lies in a hash table. A message is waited for once (that is what
//! a trace's proof says), and its entry is removed then: the table holds what is early, however long the trace.

use hashbrown::HashSet;

/// A message: the id of its line, and its receiver.
type Entry = (u64, u32);

#[derive(Debug)]
pub(crate) struct Early {
    /// A receiver of [`NOBODY`] is an empty place; their number is a power of two.
    places: Vec<Entry>,
    far: HashSet<Entry>,
}

const NOBODY: u32 = u32::MAX;
/// Places from the start.
const FIRST: usize = 1 << 8;
/// Entries elsewhere from which on the table grows, by its size.
const CROWDED: usize = 4;

impl Default for Early {
    fn default() -> Self {
        Self { places: vec![(0, NOBODY); FIRST], far: HashSet::new() }
    }
}

impl Early {
    #[inline(always)]
    fn place(&mut self, id: u64) -> &mut Entry {
        let at = id as usize & (self.places.len() - 1);
        &mut self.places[at]
    }

    /// A message has been delivered.
    #[inline(always)]
    pub(crate) fn insert(&mut self, id: u64, receiver: u32) {
        let place = self.place(id);
        match place.1 {
            NOBODY => *place = (id, receiver),
            _ => self.collide(id, receiver),
        }
    }

    #[cold]
    fn collide(&mut self, id: u64, receiver: u32) {
        self.far.insert((id, receiver));
        if self.far.len() > self.places.len() / CROWDED {
            let places = vec![(0, NOBODY); 2 * self.places.len()];
            let entries = std::mem::replace(&mut self.places, places);
            let far = std::mem::take(&mut self.far);
            for (id, receiver) in entries.into_iter().filter(|&(_, receiver)| receiver != NOBODY).chain(far) {
                let place = self.place(id);
                match place.1 {
                    NOBODY => *place = (id, receiver),
                    _ => drop(self.far.insert((id, receiver))),
                }
            }
        }
    }

    /// Whether the message has been delivered to that receiver; if so, it is forgotten.
    #[inline(always)]
    pub(crate) fn take(&mut self, id: u64, receiver: u32) -> bool {
        let place = self.place(id);
        if *place == (id, receiver) {
            place.1 = NOBODY;
            return true;
        }
        !self.far.is_empty() && self.far.remove(&(id, receiver))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet as Plain;

    proptest! {
        #[test]
        fn holds_what_a_plain_set_holds(steps in prop::collection::vec((0u64..2000, 0u32..3, any::<bool>(), any::<bool>()), 1..3000)) {
            let (mut early, mut plain) = (Early::default(), Plain::new());
            for (id, receiver, wide, takes) in steps {
                let id = if wide { id << 40 } else { id };
                if takes {
                    prop_assert_eq!(early.take(id, receiver), plain.remove(&(id, receiver)));
                } else if plain.insert((id, receiver)) {
                    early.insert(id, receiver);
                }
            }
        }
    }

    #[test]
    fn dense_ids_need_no_more_places_than_are_early() {
        let mut early = Early::default();
        for id in 0..1_000_000 {
            early.insert(id, 7);
            assert!(id < 200 || early.take(id - 200, 7));
        }
        assert!(early.places.len() <= 512 && early.far.is_empty());
    }
}

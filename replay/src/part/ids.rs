//! A set of ids: a bit an id where they are dense.

use hashbrown::HashMap;

/// A set of ids. Its memory follows the number of ids, not their size.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    words: HashMap<u64, u64>,
}

impl Ids {
    pub(super) fn insert(&mut self, id: u64) {
        *self.words.entry(id / 64).or_default() |= 1 << (id % 64);
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.words.get(&(id / 64)).is_some_and(|word| word & 1 << (id % 64) != 0)
    }
}

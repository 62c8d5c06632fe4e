//! An open-addressing hash table by handle. It allocates only when it grows.

/// The first slot to try for `key` in a table of `mask` + 1 slots. Handles are addresses or small numbers: their
/// lowest bits are constant and their highest nearly so.
#[inline(always)]
pub(crate) fn home(key: usize, mask: usize) -> usize {
    let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 32) as usize & mask
}

/// A map from non-zero words to small values.
#[derive(Debug)]
pub(crate) struct HandleMap<V> {
    /// The length is a power of two; key 0: empty.
    slots: Vec<(usize, V)>,
    len: usize,
}

impl<V: Copy + Default> Default for HandleMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Copy + Default> HandleMap<V> {
    pub(crate) fn new() -> Self {
        Self { slots: vec![(0, V::default()); 64], len: 0 }
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline(always)]
    fn home(&self, key: usize) -> usize {
        home(key, self.mask())
    }

    /// The slot of `key`, or the empty slot where it would be inserted. `key` must not be 0.
    #[inline(always)]
    fn find(&self, key: usize) -> usize {
        let mask = self.mask();
        let mut at = self.home(key);
        loop {
            // In bounds: masked by the length minus one.
            let found = self.slots[at & mask].0;
            if found == key || found == 0 {
                return at & mask;
            }
            at += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: usize) -> Option<&V> {
        let (found, value) = &self.slots[self.find(key)];
        (*found == key && key != 0).then_some(value)
    }

    /// Inserts or replaces the value of `key`.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: usize, value: V) {
        if key == 0 {
            return;
        }
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let at = self.find(key);
        self.len += usize::from(self.slots[at].0 == 0);
        self.slots[at] = (key, value);
    }

    pub(crate) fn remove(&mut self, key: usize) -> Option<V> {
        let mut hole = self.find(key);
        let (found, value) = self.slots[hole];
        if found != key || key == 0 {
            return None;
        }
        let mask = self.mask();
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let (next, _) = self.slots[at];
            if next == 0 {
                break;
            }
            // Move the entry into the hole unless its home lies behind the hole.
            if (at.wrapping_sub(self.home(next)) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole].0 = 0;
        self.len -= 1;
        Some(value)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![(0, V::default()); old.len() * 2];
        for (key, value) in old.into_iter().filter(|(key, _)| *key != 0) {
            let at = self.find(key);
            self.slots[at] = (key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_and_removed() {
        let mut map = HandleMap::new();
        for key in 1..500usize {
            map.insert(key, key);
            map.insert(key, key * 2);
        }
        assert_eq!(map.len, 499);
        assert_eq!(map.get(77), Some(&154));
        assert_eq!(map.remove(77), Some(154));
        assert_eq!((map.remove(77), map.get(77), map.get(0)), (None, None, None));
        assert!((1..500).filter(|&key| key != 77).all(|key| map.get(key) == Some(&(key * 2))));
    }
}

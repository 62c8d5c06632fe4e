//! An open-addressing hash table by handle, which allocates only when it grows, and a numbering of objects on it.

/// A map from non-zero words to small values.
#[derive(Debug)]
pub(crate) struct HandleMap<V> {
    /// The length is a power of two; key 0: empty.
    slots: Vec<(usize, V)>,
    len: usize,
}

impl<V: Default> Default for HandleMap<V> {
    fn default() -> Self {
        Self { slots: empty(64), len: 0 }
    }
}

fn empty<V: Default>(count: usize) -> Vec<(usize, V)> {
    std::iter::repeat_with(Default::default).take(count).collect()
}

impl<V: Default> HandleMap<V> {
    #[inline(always)]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// The first slot to try. Handles are addresses or small numbers: their lowest bits are constant and their highest nearly so.
    #[inline(always)]
    fn home(&self, key: usize) -> usize {
        let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & self.mask()
    }

    /// The slot of `key`, or the empty slot where it would be inserted. `key` must not be 0.
    #[inline(always)]
    fn find(&self, key: usize) -> usize {
        let mut at = self.home(key);
        loop {
            // In bounds: masked by the length minus one.
            let found = self.slots[at].0;
            if found == key || found == 0 {
                return at;
            }
            at = (at + 1) & self.mask();
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: usize) -> Option<&V> {
        let (found, value) = &self.slots[self.find(key)];
        (*found == key && key != 0).then_some(value)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, key: usize) -> Option<&mut V> {
        let at = self.find(key);
        let (found, value) = &mut self.slots[at];
        (*found == key && key != 0).then_some(value)
    }

    /// The value of `key`, which must not be 0; a new one, if it has none. Returns whether it is new.
    #[inline(always)]
    pub(crate) fn entry(&mut self, key: usize) -> (&mut V, bool) {
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let at = self.find(key);
        let (found, value) = &mut self.slots[at];
        let is_new = *found == 0;
        *found = key;
        self.len += usize::from(is_new);
        (value, is_new)
    }

    /// Inserts or replaces the value of `key`.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: usize, value: V) {
        if key != 0 {
            *self.entry(key).0 = value;
        }
    }

    pub(crate) fn remove(&mut self, key: usize) -> Option<V> {
        let mut hole = self.find(key);
        if self.slots[hole].0 != key || key == 0 {
            return None;
        }
        let (_, value) = std::mem::take(&mut self.slots[hole]);
        let mask = self.mask();
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.slots[at].0;
            if next == 0 {
                break;
            }
            // Move the entry into the hole unless its home lies behind the hole.
            if (at.wrapping_sub(self.home(next)) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots.swap(hole, at);
                hole = at;
            }
        }
        self.len -= 1;
        Some(value)
    }

    /// The number of keys.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The memory of the slots.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.slots[..])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let double = empty(self.slots.len() * 2);
        for (key, value) in std::mem::replace(&mut self.slots, double) {
            if key != 0 {
                let at = self.find(key);
                self.slots[at] = (key, value);
            }
        }
    }
}

/// Objects by handle, numbered in the order in which they become known.
#[derive(Debug, Default)]
pub(crate) struct Numbered<V: Default> {
    known: HandleMap<V>,
    next: u32,
}

impl<V: Copy + Default> Numbered<V> {
    /// The object of `handle`, if it is known.
    #[inline(always)]
    pub(crate) fn get(&self, handle: usize) -> Option<V> {
        self.known.get(handle).copied()
    }

    /// [`Numbered::get`], to be changed.
    pub(crate) fn get_mut(&mut self, handle: usize) -> Option<&mut V> {
        self.known.get_mut(handle)
    }

    /// Stores the object of `handle`, which follows from its number.
    pub(crate) fn add(&mut self, handle: usize, object: impl FnOnce(u32) -> V) -> V {
        let object = object(self.next);
        self.next += 1;
        self.known.insert(handle, object);
        object
    }

    /// Removes a handle that was freed or reused; returns its object.
    pub(crate) fn forget(&mut self, handle: usize) -> Option<V> {
        self.known.remove(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_and_removed() {
        let mut map = HandleMap::default();
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

//! Open-addressing tables from handles to what is known of them. No allocation but when they grow.

/// From a non-zero word to a small value.
#[derive(Debug)]
pub(crate) struct HandleMap<V> {
    /// Power of two; key 0: empty.
    slots: Vec<(usize, V)>,
    len: usize,
}

impl<V: Copy + Default> HandleMap<V> {
    pub(crate) fn new() -> Self {
        Self { slots: vec![(0, V::default()); 64], len: 0 }
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// Where `key` is to be looked for first. Handles are addresses or small numbers: their high bits say little,
    /// their lowest ones nothing.
    #[inline(always)]
    fn home(&self, key: usize) -> usize {
        let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & self.mask()
    }

    /// The slot with `key`, or the empty one where it would be. The key's word must not be 0.
    #[inline(always)]
    fn find(&self, key: usize) -> usize {
        let mask = self.mask();
        let mut at = self.home(key);
        loop {
            // In range: masked by the (power of two) length less one.
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

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, key: usize) -> Option<&mut V> {
        let at = self.find(key);
        let (found, value) = &mut self.slots[at];
        (*found == key && key != 0).then_some(value)
    }

    /// Sets the value of `key`, whether it is there already or not.
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

    /// Sets the value of `key` unless it has one; tells whether it did.
    #[inline(always)]
    fn insert_new(&mut self, key: usize, value: V) -> bool {
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let at = self.find(key);
        if key == 0 || self.slots[at].0 != 0 {
            return key == 0;
        }
        self.len += 1;
        self.slots[at] = (key, value);
        true
    }

    pub(crate) fn remove(&mut self, key: usize) -> Option<V> {
        let hole = self.find(key);
        self.remove_at(hole, key)
    }

    #[inline(always)]
    fn remove_at(&mut self, mut hole: usize, key: usize) -> Option<V> {
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
            // Move it into the hole unless its home lies behind the hole.
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

/// Requests under way, by handle. Several may share one handle (a library gives the same finished request to many
/// small sends): they are taken in the order they came.
#[derive(Debug)]
pub(crate) struct Pending<V> {
    first: HandleMap<Entry<V>>,
    /// Further ones of the same handle.
    rest: Vec<(V, u32)>,
    /// Head of the list of unused places in `rest`.
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry<V> {
    value: V,
    /// The list of further ones in `rest`.
    next: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

impl<V: Copy + Default> Default for Entry<V> {
    fn default() -> Self {
        Self { value: V::default(), next: NONE, last: NONE }
    }
}

impl<V: Copy + Default> Pending<V> {
    pub(crate) fn new() -> Self {
        Self { first: HandleMap::new(), rest: Vec::new(), free: NONE }
    }

    /// The oldest of `key`.
    pub(crate) fn get_mut(&mut self, key: usize) -> Option<&mut V> {
        self.first.get_mut(key).map(|entry| &mut entry.value)
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, key: usize, value: V) {
        if !self.first.insert_new(key, Entry { value, next: NONE, last: NONE }) {
            self.insert_further(key, value);
        }
    }

    /// Takes the oldest of `key`.
    #[inline(always)]
    pub(crate) fn take(&mut self, key: usize) -> Option<V> {
        let at = self.first.find(key);
        let (found, entry) = self.first.slots[at];
        if found != key || key == 0 {
            return None;
        }
        if entry.next != NONE {
            return self.take_further(key);
        }
        self.first.remove_at(at, key).map(|entry| entry.value)
    }

    #[inline(never)]
    fn insert_further(&mut self, key: usize, value: V) {
        let place = match self.rest.get(self.free as usize) {
            Some(&(_, next_free)) => {
                let place = self.free;
                self.free = next_free;
                self.rest[place as usize] = (value, NONE);
                place
            }
            None => {
                let place = self.rest.len() as u32;
                self.rest.push((value, NONE));
                place
            }
        };
        if let Some(entry) = self.first.get_mut(key) {
            match self.rest.get_mut(entry.last as usize) {
                Some((_, next)) => *next = place,
                None => entry.next = place,
            }
            entry.last = place;
        }
    }

    #[inline(never)]
    fn take_further(&mut self, key: usize) -> Option<V> {
        let entry = self.first.get_mut(key)?;
        let taken = entry.value;
        let place = entry.next;
        let &(value, next) = self.rest.get(place as usize)?;
        *entry = Entry { value, next, last: if next == NONE { NONE } else { entry.last } };
        self.rest[place as usize].1 = self.free;
        self.free = place;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, VecDeque};

    /// As a map of queues, over many operations with few keys (long probe chains, much reuse).
    #[test]
    fn pending_is_a_map_of_queues() {
        let mut pending = Pending::new();
        let mut model: HashMap<usize, VecDeque<u64>> = HashMap::new();
        let mut state = 7u64;
        for step in 0..200_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = 0x2c00_0000 + ((state >> 40) as usize % 97) * 8;
            if state >> 63 == 0 || step < 300 {
                pending.insert(key, step);
                model.entry(key).or_default().push_back(step);
            } else {
                assert_eq!(pending.take(key), model.get_mut(&key).and_then(VecDeque::pop_front));
            }
        }
        assert_eq!(pending.take(0), None);
        for (key, queue) in model {
            for value in queue {
                assert_eq!(pending.take(key), Some(value));
            }
            assert_eq!(pending.take(key), None);
        }
        assert_eq!(pending.first.len, 0);
    }

    #[test]
    fn a_million_of_one_handle_take_linear_time() {
        let mut pending = Pending::new();
        for i in 0..1_000_000u64 {
            pending.insert(0x1234, i);
        }
        for i in 0..1_000_000u64 {
            assert_eq!(pending.take(0x1234), Some(i));
        }
        let places = pending.rest.len();
        pending.insert(8, 1);
        pending.insert(8, 2);
        assert_eq!(pending.rest.len(), places, "places are used again");
    }

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

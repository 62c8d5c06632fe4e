//! Open-addressing tables from handles to what is known of them. No allocation but when they grow.

/// Where `key` is to be looked for first, in a table of `mask` + 1 slots. Handles are addresses or small numbers: their
/// high bits say little, their lowest ones nothing.
#[inline(always)]
fn home(key: usize, mask: usize) -> usize {
    let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 32) as usize & mask
}

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

    #[inline(always)]
    fn home(&self, key: usize) -> usize {
        home(key, self.mask())
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
///
/// Libraries use few handles again and again, so a handle keeps its slot when nothing is under way behind it; such slots
/// are given up when the table would have to grow.
#[derive(Debug)]
pub(crate) struct Pending<V> {
    /// Power of two; key 0: never used.
    slots: Vec<Slot<V>>,
    /// Slots with a key.
    used: usize,
    /// Further requests of a handle that has several.
    rest: Vec<(V, u32)>,
    /// Head of the list of unused places in `rest`.
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot<V> {
    key: usize,
    value: V,
    /// The list of further ones in `rest`, or [`NONE`], or [`IDLE`].
    next: u32,
    last: u32,
}

/// The end of a list.
const NONE: u32 = u32::MAX;
/// Nothing is under way behind this handle.
const IDLE: u32 = u32::MAX - 1;

impl<V: Copy + Default> Pending<V> {
    pub(crate) fn new() -> Self {
        Self { slots: vec![Slot::unused(); 64], used: 0, rest: Vec::new(), free: NONE }
    }

    /// The slot with `key`, or the unused one where it would be.
    #[inline(always)]
    fn find(&mut self, key: usize) -> &mut Slot<V> {
        let mask = self.slots.len() - 1;
        let mut at = home(key, mask);
        loop {
            // SAFETY: masked by the length, a power of two, less one.
            let slot = unsafe { &mut *self.slots.as_mut_ptr().add(at & mask) };
            if slot.key == key || slot.key == 0 {
                return slot;
            }
            at += 1;
        }
    }

    /// The oldest of `key`.
    pub(crate) fn get_mut(&mut self, key: usize) -> Option<&mut V> {
        let slot = self.find(key);
        (slot.key == key && slot.next != IDLE).then_some(&mut slot.value)
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, key: usize, value: V) {
        let slot = self.find(key);
        if slot.key == key && slot.next == IDLE && key != 0 {
            slot.value = value;
            slot.next = NONE;
        } else {
            self.insert_further(key, value);
        }
    }

    /// Takes the oldest of `key`.
    #[inline(always)]
    pub(crate) fn take(&mut self, key: usize) -> Option<V> {
        let slot = self.find(key);
        if slot.key != key || slot.next == IDLE {
            return None;
        }
        let taken = slot.value;
        match slot.next {
            NONE => slot.next = IDLE,
            place => self.promote(key, place),
        }
        Some(taken)
    }

    /// Takes the only one of `key` if it `suits`; else takes nothing.
    #[inline(always)]
    pub(crate) fn take_only(&mut self, key: usize, suits: impl Fn(&V) -> bool) -> Option<V> {
        let slot = self.find(key);
        if slot.key == key && slot.next == NONE && suits(&slot.value) {
            slot.next = IDLE;
            return Some(slot.value);
        }
        None
    }

    /// Takes the oldest of `key` that `suits`, as far as one is near; else the oldest.
    #[inline(always)]
    pub(crate) fn take_suited(&mut self, key: usize, suits: impl Fn(&V) -> bool) -> Option<V> {
        let slot = self.find(key);
        if slot.key == key && slot.next < IDLE && !suits(&slot.value) {
            self.bring_forward(key, suits);
        }
        self.take(key)
    }

    /// Swaps the oldest of `key` with the next one that `suits`.
    #[inline(never)]
    fn bring_forward(&mut self, key: usize, suits: impl Fn(&V) -> bool) {
        /// Looking further would take long where a program leaves many behind.
        const NEAR: usize = 64;
        let (oldest, mut place) = (self.find(key).value, self.find(key).next);
        for _ in 0..NEAR {
            let Some((value, next)) = self.rest.get_mut(place as usize) else { return };
            if suits(value) {
                let suited = std::mem::replace(value, oldest);
                self.find(key).value = suited;
                return;
            }
            place = *next;
        }
    }

    /// A handle that is new, or has a request under way already.
    #[inline(never)]
    fn insert_further(&mut self, key: usize, value: V) {
        if key == 0 {
            return;
        }
        if self.find(key).key == 0 {
            if (self.used + 1) * 2 > self.slots.len() {
                self.make_room();
            }
            self.used += 1;
            *self.find(key) = Slot { key, value, next: NONE, last: NONE };
            return;
        }
        let place = match self.rest.get(self.free as usize) {
            Some(&(_, next_free)) => {
                let place = self.free;
                self.free = next_free;
                self.rest[place as usize] = (value, NONE);
                place
            }
            None => {
                self.rest.push((value, NONE));
                self.rest.len() as u32 - 1
            }
        };
        let slot = self.find(key);
        let before = if slot.next == NONE { NONE } else { slot.last };
        slot.last = place;
        match before {
            NONE => slot.next = place,
            before => self.rest[before as usize].1 = place,
        }
    }

    /// The request at `place` is now the oldest of `key`.
    #[inline(never)]
    fn promote(&mut self, key: usize, place: u32) {
        let (value, next) = self.rest[place as usize];
        self.rest[place as usize].1 = self.free;
        self.free = place;
        let slot = self.find(key);
        slot.value = value;
        slot.next = next;
    }

    /// Gives up idle slots; doubles the table if most are not idle.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let old = std::mem::take(&mut self.slots);
        let busy = old.iter().filter(|slot| slot.key != 0 && slot.next != IDLE).count();
        self.slots = vec![Slot::unused(); if busy * 4 > old.len() { old.len() * 2 } else { old.len() }];
        self.used = busy;
        for slot in old.into_iter().filter(|slot| slot.key != 0 && slot.next != IDLE) {
            *self.find(slot.key) = slot;
        }
    }
}

impl<V: Default> Slot<V> {
    fn unused() -> Self {
        Self { key: 0, value: V::default(), next: IDLE, last: NONE }
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
        assert!(pending.slots.iter().all(|slot| slot.next == IDLE));
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
    fn one_that_suits_comes_first() {
        let mut pending = Pending::new();
        for value in [1, 3, 4, 5, 6] {
            pending.insert(7, value);
        }
        let even = |value: &i32| value % 2 == 0;
        let taken: Vec<_> = std::iter::from_fn(|| pending.take_suited(7, even)).collect();
        assert_eq!(taken, [4, 6, 1, 5, 3]);
    }

    #[test]
    fn handles_that_come_and_go_do_not_fill_the_table() {
        let mut pending = Pending::new();
        for key in 1..100_000usize {
            pending.insert(key * 16, key);
            assert_eq!(pending.take(key * 16), Some(key));
        }
        assert!(pending.slots.len() <= 128, "{} slots", pending.slots.len());
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

//! Open-addressing tables from handles to what is known of them. No allocation but when they grow.

use crate::requests::Waiting;
use std::collections::VecDeque;

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

/// A handle, and what is under way behind it.
pub(crate) type Slot = (usize, Waiting);

/// Requests under way, by handle. Several may share one handle (a library gives the same finished request to many
/// small sends): they are taken in the order they came.
///
/// Libraries use few handles again and again, so a handle keeps its slot when nothing is under way behind it; such slots
/// are given up when the table would have to grow.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Power of two; key 0: never used. Of several requests of a handle the oldest, with [`Waiting::SHARED`].
    slots: Vec<Slot>,
    /// Their number less one.
    mask: usize,
    /// Slots with a key.
    used: usize,
    /// Handles that had several requests: where in `rest` the others are.
    shared: HandleMap<u32>,
    rest: Vec<VecDeque<Waiting>>,
}

impl Pending {
    pub(crate) fn new() -> Self {
        let slots = vec![(0, Waiting::NEVER); 256];
        Self { mask: slots.len() - 1, slots, used: 0, shared: HandleMap::new(), rest: Vec::new() }
    }

    /// The slot with `key`, or the unused one where it would be.
    #[inline(always)]
    pub(crate) fn find(&mut self, key: usize) -> &mut Slot {
        let mut at = home(key, self.mask);
        loop {
            // SAFETY: masked by the length, a power of two, less one.
            let slot = unsafe { &mut *self.slots.as_mut_ptr().add(at) };
            if slot.0 == key || slot.0 == 0 {
                return slot;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// The oldest of `key`.
    pub(crate) fn get_mut(&mut self, key: usize) -> Option<&mut Waiting> {
        let (found, waiting) = self.find(key);
        (*found == key && waiting.is_pending()).then_some(waiting)
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, key: usize, waiting: Waiting) {
        let slot = self.find(key);
        if slot.0 == key && slot.1.is_over() {
            slot.1 = waiting;
        } else {
            self.insert_further(key, waiting);
        }
    }

    /// Takes the oldest of `key`.
    pub(crate) fn take(&mut self, key: usize) -> Option<Waiting> {
        let slot = self.find(key);
        if slot.0 != key || !slot.1.is_pending() {
            return None;
        }
        let taken = slot.1;
        slot.1 = taken.over();
        if taken.has(Waiting::SHARED) {
            self.promote(key);
        }
        Some(taken.without(Waiting::SHARED))
    }

    /// Takes the only one of `key` if it is an ordinary one `like` this.
    #[inline(always)]
    pub(crate) fn take_ordinary(&mut self, key: usize, like: Waiting) -> Option<Waiting> {
        let slot = self.find(key);
        if slot.0 == key && slot.1.is_ordinary_like(like) {
            let taken = slot.1;
            slot.1 = taken.over();
            return Some(taken);
        }
        None
    }

    /// Takes the oldest of `key` that `thread` made, as far as one is near; else the oldest.
    pub(crate) fn take_of(&mut self, key: usize, thread: u16) -> Option<Waiting> {
        /// Looking further would take long where a program leaves many behind.
        const NEAR: usize = 64;
        let oldest = *self.get_mut(key)?;
        if oldest.thread() != thread && oldest.has(Waiting::SHARED) {
            let rest = self.shared.get(key).and_then(|&place| self.rest.get_mut(place as usize))?;
            if let Some(own) = rest.iter_mut().take(NEAR).find(|waiting| waiting.thread() == thread) {
                let own = std::mem::replace(own, oldest.without(Waiting::SHARED));
                self.find(key).1 = own.with(Waiting::SHARED);
            }
        }
        self.take(key)
    }

    /// The handles of `count` requests that are over, from `first` on, one after the other.
    pub(crate) fn handles_of(&self, first: Waiting, count: usize) -> Vec<usize> {
        let mut handles = vec![0; count];
        for (handle, waiting) in self.slots.iter().filter(|slot| slot.1.is_over()) {
            let index = waiting.number().wrapping_sub(first.number());
            if let Some(place) = usize::try_from(index).ok().and_then(|index| handles.get_mut(index)) {
                *place = *handle;
            }
        }
        handles
    }

    /// A handle that is new, or has a request under way already.
    #[inline(never)]
    fn insert_further(&mut self, key: usize, waiting: Waiting) {
        if key == 0 {
            return;
        }
        if self.find(key).0 == 0 {
            if (self.used + 1) * 4 > self.slots.len() * 3 {
                self.make_room();
            }
            self.used += 1;
            *self.find(key) = (key, waiting);
            return;
        }
        let oldest = &mut self.find(key).1;
        *oldest = oldest.with(Waiting::SHARED);
        let place = match self.shared.get(key) {
            Some(&place) => place,
            None => {
                self.rest.push(VecDeque::new());
                let place = self.rest.len() as u32 - 1;
                self.shared.insert(key, place);
                place
            }
        };
        self.rest[place as usize].push_back(waiting);
    }

    /// The oldest of the others of `key` takes the slot.
    #[inline(never)]
    fn promote(&mut self, key: usize) {
        let Some(rest) = self.shared.get(key).and_then(|&place| self.rest.get_mut(place as usize)) else {
            return;
        };
        if let Some(next) = rest.pop_front() {
            let flags = if rest.is_empty() { 0 } else { Waiting::SHARED };
            self.find(key).1 = next.with(flags);
        }
    }

    /// Gives up idle slots; doubles the table if most are not idle.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let is_busy = |slot: &&Slot| slot.1.is_pending();
        let busy = self.slots.iter().filter(is_busy).count();
        let len = if busy * 2 > self.slots.len() { self.slots.len() * 2 } else { self.slots.len() };
        let old = std::mem::replace(&mut self.slots, vec![(0, Waiting::NEVER); len]);
        self.mask = len - 1;
        self.used = busy;
        for slot in old.iter().filter(is_busy) {
            *self.find(slot.0) = *slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use vef_format::capture::event::RequestId;

    fn waiting(number: u64) -> Waiting {
        Waiting::new(RequestId { thread: (number % 2) as u16, number }, 0)
    }

    /// As a map of queues, over many operations with few keys (long probe chains, much reuse).
    #[test]
    fn pending_is_a_map_of_queues() {
        let mut pending = Pending::new();
        let mut model: HashMap<usize, VecDeque<Waiting>> = HashMap::new();
        let mut state = 7u64;
        for step in 0..200_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = 0x2c00_0000 + ((state >> 40) as usize % 97) * 8;
            if state >> 63 == 0 || step < 300 {
                pending.insert(key, waiting(step));
                model.entry(key).or_default().push_back(waiting(step));
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
        assert!(pending.slots.iter().all(|slot| !slot.1.is_pending()));
    }

    #[test]
    fn a_million_of_one_handle_take_linear_time() {
        let mut pending = Pending::new();
        for i in 0..1_000_000u64 {
            pending.insert(0x1234, waiting(i));
        }
        for i in 0..1_000_000u64 {
            assert_eq!(pending.take(0x1234), Some(waiting(i)));
        }
        pending.insert(0x1234, waiting(1));
        pending.insert(0x1234, waiting(2));
        assert_eq!(pending.rest.len(), 1, "places are used again");
    }

    /// A table of a million handles takes 16 bytes a slot, and at most twice the slots that are needed.
    #[test]
    fn a_million_handles_take_little_memory() {
        let mut pending = Pending::new();
        for i in 0..1_000_000u64 {
            pending.insert(0x7f00_0000_0000 + i as usize * 192, waiting(i));
        }
        assert_eq!(size_of_val(&pending.slots[..]), 16 << 21);
        for i in (0..1_000_000u64).rev() {
            assert_eq!(pending.take(0x7f00_0000_0000 + i as usize * 192), Some(waiting(i)));
        }
    }

    #[test]
    fn a_thread_takes_its_own_first() {
        let mut pending = Pending::new();
        for number in [1, 3, 4, 5, 6] {
            pending.insert(7, waiting(number));
        }
        let taken: Vec<_> =
            std::iter::from_fn(|| pending.take_of(7, 0)).map(|waiting| waiting.number()).collect();
        assert_eq!(taken, [4, 6, 1, 5, 3]);
    }

    #[test]
    fn only_what_is_wanted_is_taken() {
        let mut pending = Pending::new();
        let like = waiting(0);
        pending.insert(7, waiting(2));
        assert_eq!(pending.take_ordinary(8, like), None);
        assert_eq!(pending.take_ordinary(7, like), Some(waiting(2)));
        assert_eq!(pending.take_ordinary(7, like), None);
        pending.insert(7, waiting(3));
        assert_eq!(pending.take_ordinary(7, like), None, "another thread's");
        assert_eq!(pending.take(7), Some(waiting(3)));
        pending.insert(7, waiting(4).with(Waiting::WILDCARD));
        assert_eq!(pending.take_ordinary(7, like), None, "a receive with a wildcard");
        assert_eq!(pending.take(7), Some(waiting(4).with(Waiting::WILDCARD)));
        pending.insert(7, waiting(6));
        pending.insert(7, waiting(8));
        assert_eq!(pending.take_ordinary(7, like), None, "two share the handle");
        assert_eq!(pending.take(7), Some(waiting(6)));
        assert_eq!(pending.take_ordinary(7, like), Some(waiting(8)));
        assert_eq!(pending.take_ordinary(7, like), None);
    }

    #[test]
    fn handles_that_come_and_go_do_not_fill_the_table() {
        let mut pending = Pending::new();
        for key in 1..100_000usize {
            pending.insert(key * 16, waiting(key as u64));
            assert_eq!(pending.take(key * 16), Some(waiting(key as u64)));
        }
        assert!(pending.slots.len() <= 256, "{} slots", pending.slots.len());
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

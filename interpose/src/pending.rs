//! The requests under way, by handle. No allocation but when there are more than ever before.

use crate::requests::Waiting;
use crate::table::{HandleMap, home};
use std::collections::VecDeque;

/// A handle, and what is under way behind it.
type Slot = (usize, Waiting);

/// Requests under way, by handle. Several may share one handle (a library gives the same finished request to many
/// small sends): they are taken in the order they came.
///
/// Most requests are soon over, in the order they were made: the latest are in a list ([`Recent`]), and only when others are
/// asked for, they go into the table.
///
/// Libraries use few handles again and again, so a handle keeps its slot when nothing is under way behind it; such slots
/// are given up when the table would have to grow.
#[derive(Debug)]
pub(crate) struct Pending {
    recent: Recent,
    /// Power of two; key 0: never used. Of several requests of a handle the oldest, with [`Waiting::SHARED`].
    slots: Vec<Slot>,
    /// Their number less one.
    mask: usize,
    /// Slots with a key.
    used: usize,
    /// Handles that had several requests: where in `rest` the others are.
    shared: HandleMap<u32>,
    rest: Vec<VecDeque<Waiting>>,
    /// How many in the table there are whose status tells something.
    needs_status: usize,
}

/// The latest requests of a thread: ordinary ones, made one after the other.
#[derive(Debug)]
struct Recent {
    handles: [usize; RECENT],
    /// The first of them, and the end; both 0 if there are none.
    first: usize,
    end: usize,
    /// The request that would be the next of them.
    next: Waiting,
}

/// How far requests of one handle are looked through: further would take long where a program leaves many behind.
const NEAR: usize = 64;

/// How many are listed at most.
const RECENT: usize = 256;

/// The first or the last of the listed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    start: usize,
    end: usize,
}

impl Run {
    /// How many they are.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

impl Pending {
    pub(crate) fn new() -> Self {
        let slots = vec![(0, Waiting::NEVER); 256];
        let recent = Recent { handles: [0; RECENT], first: 0, end: 0, next: Waiting::NEVER };
        Self {
            recent,
            mask: slots.len() - 1,
            slots,
            used: 0,
            shared: HandleMap::new(),
            rest: Vec::new(),
            needs_status: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, key: usize, waiting: Waiting) {
        let Recent { handles, end, next, .. } = &mut self.recent;
        if waiting == *next
            && let Some(handle) = handles.get_mut(*end)
        {
            *handle = key;
            *end += 1;
            *next = waiting.next();
        } else {
            self.insert_unlisted(key, waiting);
        }
    }

    /// The `count` requests with these handles, if they are the first or the last in the list, in order, and of the thread that
    /// makes `next` next.
    #[inline(always)]
    pub(crate) fn find_run(
        &self,
        count: usize,
        next: Waiting,
        handle: impl Fn(usize) -> usize,
    ) -> Option<Run> {
        let Recent { handles, first, end, next: own } = &self.recent;
        let (first, end) = (*first, *end);
        if count == 0 || count > end - first || !next.is_ordinary_like(*own) {
            return None;
        }
        // SAFETY: asked for below `end` alone, which is at most RECENT.
        let handle_at = |at: usize| unsafe { *handles.get_unchecked(at) };
        let sought = handle(0);
        let start = if handle_at(first) == sought { first } else { end - count };
        if handle_at(start) != sought {
            return None;
        }
        for i in 1..count {
            if handle_at(start + i) != handle(i) {
                return None;
            }
        }
        Some(Run { start, end: start + count })
    }

    /// Takes listed requests. Gives how many were made after them, if `next` is made next.
    #[inline(always)]
    pub(crate) fn take_run(&mut self, run: Run, next: Waiting) -> u64 {
        let Recent { first, end, next: own, .. } = &mut self.recent;
        let after = next.since(*own) + (*end - run.end) as u64;
        if run.end != *end {
            *first = run.end;
        } else if run.start == *first {
            (*first, *end) = (0, 0);
        } else {
            *end = run.start;
            *own = own.before(run.end - run.start);
        }
        after
    }

    /// The handles of listed requests.
    pub(crate) fn handles_of(&self, run: Run) -> &[usize] {
        &self.recent.handles[run.start..run.end]
    }

    /// Whether the status of any of them tells something: of receives with a wildcard, of cancelled ones.
    pub(crate) fn needs_statuses(&mut self) -> bool {
        self.settle();
        self.needs_status > 0
    }

    /// From now on the oldest of `key`, if there is any, has this flag.
    pub(crate) fn mark(&mut self, key: usize, flag: u8) {
        let Some(waiting) = self.get_mut(key) else { return };
        let before = *waiting;
        *waiting = before.with(flag);
        let newly = waiting.needs_status() && !before.needs_status();
        self.needs_status += usize::from(newly);
    }

    /// The oldest of `key`.
    pub(crate) fn get(&mut self, key: usize) -> Option<Waiting> {
        self.get_mut(key).copied()
    }

    /// Takes the oldest of `key`.
    pub(crate) fn take(&mut self, key: usize) -> Option<Waiting> {
        let taken = *self.get_mut(key)?;
        self.find(key).1 = taken.over();
        self.needs_status -= usize::from(taken.needs_status());
        if taken.has(Waiting::SHARED) {
            self.promote(key);
        }
        Some(taken.without(Waiting::SHARED))
    }

    /// Whether `thread` made one of `key`, as far as that is near.
    pub(crate) fn has_of(&mut self, key: usize, thread: u16) -> bool {
        let Some(oldest) = self.get(key) else { return false };
        let rest = self.shared.get(key).and_then(|&place| self.rest.get(place as usize));
        let rest = rest.filter(|_| oldest.has(Waiting::SHARED)).into_iter().flatten().take(NEAR);
        std::iter::once(&oldest).chain(rest).any(|waiting| waiting.thread() == thread)
    }

    /// Takes the oldest of `key` that `thread` made, as far as one is near; else the oldest.
    pub(crate) fn take_of(&mut self, key: usize, thread: u16) -> Option<Waiting> {
        self.prefer(key, thread);
        self.take(key)
    }

    /// Makes the oldest of `key` that `thread` made the oldest of all, if one is near. The others are of threads whose waits for them
    /// are about to return.
    pub(crate) fn prefer(&mut self, key: usize, thread: u16) {
        let Some(&mut oldest) = self.get_mut(key) else { return };
        if oldest.thread() != thread && oldest.has(Waiting::SHARED) {
            let rest = self.shared.get(key).and_then(|&place| self.rest.get_mut(place as usize));
            if let Some(own) =
                rest.into_iter().flatten().take(NEAR).find(|waiting| waiting.thread() == thread)
            {
                let own = std::mem::replace(own, oldest.without(Waiting::SHARED));
                self.find(key).1 = own.with(Waiting::SHARED);
            }
        }
    }

    /// The oldest of `key`.
    fn get_mut(&mut self, key: usize) -> Option<&mut Waiting> {
        self.settle();
        let (found, waiting) = self.find(key);
        (*found == key && !waiting.is_over()).then_some(waiting)
    }

    /// The slot with `key`, or the unused one where it would be.
    #[inline(always)]
    fn find(&mut self, key: usize) -> &mut Slot {
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

    /// From now on all are in the table.
    #[inline(always)]
    fn settle(&mut self) {
        if self.recent.end > 0 {
            self.settle_listed();
        }
    }

    #[inline(never)]
    fn settle_listed(&mut self) {
        let (first, end, next) = (self.recent.first, self.recent.end, self.recent.next);
        (self.recent.first, self.recent.end) = (0, 0);
        for (at, waiting) in (first..end).zip(next.before(end - first).on()) {
            self.insert_settled(self.recent.handles[at], waiting);
        }
    }

    /// One that is not the next of those in the list, or for which there is no room.
    #[cold]
    #[inline(never)]
    fn insert_unlisted(&mut self, key: usize, waiting: Waiting) {
        let Recent { handles, first, end, next } = &mut self.recent;
        // Moved up only if that makes much room.
        if waiting == *next && *first >= RECENT / 2 {
            handles.copy_within(*first..*end, 0);
            (*first, *end) = (0, *end - *first);
            return self.insert(key, waiting);
        }
        self.settle();
        if waiting.is_ordinary() {
            self.recent.next = waiting;
            self.insert(key, waiting);
        } else {
            self.insert_settled(key, waiting);
        }
    }

    fn insert_settled(&mut self, key: usize, waiting: Waiting) {
        if key == 0 {
            return;
        }
        self.needs_status += usize::from(waiting.needs_status());
        let slot = self.find(key);
        if slot.0 == key && slot.1.is_over() {
            slot.1 = waiting;
        } else {
            self.insert_new(key, waiting);
        }
    }

    /// A handle that is new, or has a request under way already.
    #[inline(never)]
    fn insert_new(&mut self, key: usize, waiting: Waiting) {
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
        let is_busy = |slot: &&Slot| !slot.1.is_over();
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
        assert!(pending.slots.iter().all(|slot| slot.1.is_over()));
    }

    /// Runs of requests that are taken while others are under way, against a list of what there is.
    #[test]
    fn runs_are_taken_from_wherever_they_are() {
        let own = |number| Waiting::new(RequestId { thread: 0, number }, 0);
        let mut pending = Pending::new();
        let mut model: Vec<(usize, Waiting)> = Vec::new();
        let (mut state, mut made, mut runs) = (11u64, 0u64, 0);
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let chosen = (state >> 32) as usize;
            if chosen % 5 < 2 && model.len() < 400 {
                // Now and then another thread's, or a receive with a wildcard.
                let flags = if chosen.is_multiple_of(61) { Waiting::WILDCARD } else { 0 };
                let thread = u16::from(chosen.is_multiple_of(67));
                let request = Waiting::new(RequestId { thread, number: made }, flags);
                let handle = 0x1000 + made as usize * 8;
                pending.insert(handle, request);
                model.push((handle, request));
                made += 1;
            } else if !model.is_empty() {
                let start = if chosen.is_multiple_of(3) { 0 } else { chosen % model.len() };
                let count = (1 + chosen / 64 % 4).min(model.len() - start);
                let handles: Vec<usize> =
                    model[start..start + count].iter().map(|(handle, _)| *handle).collect();
                match pending.find_run(count, own(made), |i| handles[i]) {
                    Some(run) => {
                        runs += 1;
                        assert_eq!(pending.handles_of(run), handles);
                        let ids: Vec<Waiting> = model[start..start + count].iter().map(|of| of.1).collect();
                        let after = pending.take_run(run, own(made));
                        let first = made - after - count as u64;
                        assert_eq!(ids, (0..count as u64).map(|i| own(first + i)).collect::<Vec<_>>());
                    }
                    None => (0..count).for_each(|i| {
                        assert_eq!(pending.take(handles[i]), Some(model[start + i].1), "{i} of {count}");
                    }),
                }
                model.drain(start..start + count);
            }
            let wildcards = model.iter().filter(|of| of.1.needs_status()).count();
            if chosen.is_multiple_of(97) {
                assert_eq!(pending.needs_statuses(), wildcards > 0);
            }
        }
        assert!(runs > 1000, "{runs}");
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
    fn handles_that_come_and_go_do_not_fill_the_table() {
        let mut pending = Pending::new();
        for key in 1..100_000usize {
            pending.insert(key * 16, waiting(key as u64));
            assert_eq!(pending.take(key * 16), Some(waiting(key as u64)));
        }
        assert!(pending.slots.len() <= 256, "{} slots", pending.slots.len());
    }
}

//! Table of pending requests by handle. It allocates only when it grows.

use crate::requests::PendingRequest;
use crate::table::HandleMap;
use hashbrown::hash_map::Entry;
use std::collections::VecDeque;

/// Pending requests by handle. Several requests may share a handle (MPI gives many small sends the same completed
/// request); a thread completes its own ones first, the oldest before the others.
///
/// Most requests complete soon and in order. Therefore the latest ones are kept in a list ([`RecentRequests`]) and move to
/// the table only when another request is looked up.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    recent: RecentRequests,
    table: HandleMap<OfHandle>,
    /// The number of requests in the table whose status is needed.
    needs_status: usize,
}

/// The requests of a handle, the oldest first. Most handles have one, for which nothing is allocated.
#[derive(Debug)]
struct OfHandle {
    first: PendingRequest,
    rest: VecDeque<PendingRequest>,
}

impl OfHandle {
    /// The position of the request that `thread` completes: of its oldest, if that is among the first [`NEAR`] in the rest, else of the
    /// oldest. The others belong to threads whose waits are about to return.
    fn position(&self, thread: u16) -> usize {
        let own = |waiting: &PendingRequest| waiting.thread() == thread;
        match self.rest.iter().take(NEAR).position(own) {
            Some(at) if !own(&self.first) => at + 1,
            _ => 0,
        }
    }

    fn get_mut(&mut self, position: usize) -> &mut PendingRequest {
        match position.checked_sub(1) {
            Some(at) => &mut self.rest[at],
            None => &mut self.first,
        }
    }
}

/// The latest requests of one thread: consecutive and without flags.
#[derive(Debug)]
struct RecentRequests {
    handles: [usize; RECENT],
    /// The used range of `handles`; 0..0 if it is empty.
    first: usize,
    end: usize,
    /// The request that would be next in the list.
    next: PendingRequest,
}

/// The number of requests of a handle that are searched for one of a given thread. A limit keeps programs fast that
/// never complete their requests.
const NEAR: usize = 64;

const RECENT: usize = 256;

/// A range of listed requests, at the start or at the end of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRun {
    start: usize,
    end: usize,
}

impl RequestRun {
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

impl Default for RecentRequests {
    fn default() -> Self {
        Self { handles: [0; RECENT], first: 0, end: 0, next: PendingRequest::NEVER }
    }
}

impl PendingRequests {
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: usize, waiting: PendingRequest) {
        let RecentRequests { handles, end, next, .. } = &mut self.recent;
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

    /// Finds `count` requests with these handles, if they are consecutive at the start or at the end of the list, and
    /// made by the thread whose next request is `next`.
    #[inline(always)]
    pub(crate) fn find_run(
        &self,
        count: usize,
        next: PendingRequest,
        handle: impl Fn(usize) -> usize,
    ) -> Option<RequestRun> {
        let RecentRequests { handles, first, end, next: own } = &self.recent;
        let (first, end) = (*first, *end);
        if count == 0 || count > end - first || !next.is_ordinary_like(*own) {
            return None;
        }
        // SAFETY: indices are below `end`, which is at most RECENT.
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
        Some(RequestRun { start, end: start + count })
    }

    /// Removes listed requests. Returns how many the thread made after them, given its next request.
    #[inline(always)]
    pub(crate) fn take_run(&mut self, run: RequestRun, next: PendingRequest) -> u64 {
        let RecentRequests { first, end, next: own, .. } = &mut self.recent;
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

    pub(crate) fn handles_of(&self, run: RequestRun) -> &[usize] {
        &self.recent.handles[run.start..run.end]
    }

    /// Whether the status of any pending request is needed: of a wildcard receive or a cancelled request.
    pub(crate) fn needs_statuses(&mut self) -> bool {
        self.settle();
        self.needs_status > 0
    }

    /// Sets a flag of the request that [`PendingRequests::take_of`] would take, if there is one.
    pub(crate) fn mark_of(&mut self, key: usize, thread: u16, flag: u8) {
        let Some(waiting) = self.find(key, thread) else { return };
        let before = waiting.needs_status();
        *waiting = waiting.with(flag);
        let after = waiting.needs_status();
        self.needs_status = self.needs_status + usize::from(after) - usize::from(before);
    }

    /// The request that [`PendingRequests::take_of`] would take.
    pub(crate) fn get_of(&mut self, key: usize, thread: u16) -> Option<PendingRequest> {
        self.find(key, thread).copied()
    }

    fn find(&mut self, key: usize, thread: u16) -> Option<&mut PendingRequest> {
        self.settle();
        let all = self.table.get_mut(&key)?;
        let position = all.position(thread);
        Some(all.get_mut(position))
    }

    /// Removes the oldest request of `key` that `thread` made, if it is among the first [`NEAR`], else the oldest.
    pub(crate) fn take_of(&mut self, key: usize, thread: u16) -> Option<PendingRequest> {
        self.settle();
        let Entry::Occupied(mut entry) = self.table.entry(key) else { return None };
        let all = entry.get_mut();
        let taken = match all.position(thread) {
            0 => match all.rest.pop_front() {
                Some(next) => std::mem::replace(&mut all.first, next),
                None => entry.remove().first,
            },
            position => all.rest.remove(position - 1)?,
        };
        self.needs_status -= usize::from(taken.needs_status());
        Some(taken)
    }

    /// Moves the listed requests to the table.
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
        let mut waiting = next.before(end - first);
        for at in first..end {
            self.insert_settled(self.recent.handles[at], waiting);
            waiting = waiting.next();
        }
    }

    /// Inserts a request that does not continue the list, or for which the list has no room.
    #[cold]
    #[inline(never)]
    fn insert_unlisted(&mut self, key: usize, waiting: PendingRequest) {
        let RecentRequests { handles, first, end, next } = &mut self.recent;
        // Compact the list, if that makes much room.
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

    fn insert_settled(&mut self, key: usize, waiting: PendingRequest) {
        if key == 0 {
            return;
        }
        self.needs_status += usize::from(waiting.needs_status());
        match self.table.entry(key) {
            Entry::Vacant(place) => _ = place.insert(OfHandle { first: waiting, rest: VecDeque::new() }),
            Entry::Occupied(entry) => entry.into_mut().rest.push_back(waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::capture::event::RequestId;

    fn waiting(thread: u16, number: u64, flags: u8) -> PendingRequest {
        PendingRequest::new(RequestId { thread, number }, flags)
    }

    /// The model is a plain list, the oldest first. Runs are found and removed wherever they are.
    #[test]
    fn requests_of_a_handle_are_taken_in_order() {
        let mut pending = PendingRequests::default();
        let mut model: Vec<(usize, PendingRequest)> = Vec::new();
        let (mut state, mut made, mut runs) = (11u64, 0u64, 0);
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let chosen = (state >> 32) as usize;
            if chosen % 5 < 2 && model.len() < 400 {
                // Some share a handle; some are of another thread, some are wildcard receives.
                let handle = if chosen.is_multiple_of(7) { chosen % 97 } else { 97 + made as usize };
                let flags = if chosen.is_multiple_of(61) { PendingRequest::WILDCARD } else { 0 };
                let request = waiting(u16::from(chosen.is_multiple_of(67)), made, flags);
                pending.insert(0x1000 + 8 * handle, request);
                model.push((0x1000 + 8 * handle, request));
                made += 1;
            } else if !model.is_empty() {
                let start = if chosen.is_multiple_of(3) { 0 } else { chosen % model.len() };
                let count = (1 + chosen / 64 % 4).min(model.len() - start);
                let handles: Vec<usize> = model[start..start + count].iter().map(|of| of.0).collect();
                let place = |model: &[(usize, PendingRequest)], handle, thread| {
                    let of_handle = |of: &&(usize, PendingRequest)| of.0 == handle;
                    let own = model.iter().position(|of| of.0 == handle && of.1.thread() == thread);
                    let near = |at: &usize| model[..*at].iter().filter(of_handle).count() <= NEAR;
                    own.filter(near).or(model.iter().position(|of| of.0 == handle)).expect("pending")
                };
                if let Some(run) = pending.find_run(count, waiting(0, made, 0), |i| handles[i]) {
                    runs += 1;
                    assert_eq!(pending.handles_of(run), handles);
                    let first = made - pending.take_run(run, waiting(0, made, 0)) - count as u64;
                    for (i, handle) in handles.into_iter().enumerate() {
                        let request = waiting(0, first + i as u64, 0);
                        let at = model.iter().position(|of| *of == (handle, request)).expect("pending");
                        model.remove(at);
                    }
                } else {
                    for handle in handles {
                        let thread = u16::from(chosen.is_multiple_of(11));
                        let expected = model.remove(place(&model, handle, thread)).1;
                        assert_eq!(pending.get_of(handle, thread), Some(expected));
                        assert_eq!(pending.take_of(handle, thread), Some(expected));
                    }
                }
            }
            if chosen.is_multiple_of(97) {
                assert_eq!(pending.needs_statuses(), model.iter().any(|of| of.1.needs_status()));
            }
        }
        assert!(runs > 1000, "{runs}");
        for (handle, request) in model {
            assert_eq!(pending.take_of(handle, 7), Some(request));
            assert_eq!(pending.take_of(handle + 4, 7), None);
        }
        assert!(pending.table.is_empty());
    }

    #[test]
    fn a_thread_takes_its_own_first() {
        let mut pending = PendingRequests::default();
        for number in [1, 3, 4, 5, 6] {
            pending.insert(7, waiting((number % 2) as u16, number, 0));
        }
        let taken: Vec<_> =
            std::iter::from_fn(|| pending.take_of(7, 0)).map(|waiting| waiting.number()).collect();
        assert_eq!(taken, [4, 6, 1, 3, 5]);
    }

    /// To look at a thread's own request must not make it older than those of others.
    #[test]
    fn looking_at_a_request_keeps_the_order() {
        let mut pending = PendingRequests::default();
        for number in [1, 3, 4] {
            pending.insert(7, waiting((number % 2) as u16, number, 0));
        }
        assert_eq!(pending.get_of(7, 0), Some(waiting(0, 4, 0)));
        pending.mark_of(7, 0, PendingRequest::CANCELLED);
        let taken = std::iter::from_fn(|| pending.take_of(7, 2));
        assert_eq!(taken.map(PendingRequest::number).collect::<Vec<_>>(), [1, 3, 4]);
    }
}

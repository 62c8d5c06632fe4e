//! The pending requests of one task. Each thread numbers its requests consecutively and usually completes them soon, so
//! they are in a list; the few that stay pending for long move to a table.

use hashbrown::HashMap;
use vef_format::capture::event::RequestId;

/// Pending requests, and a value for each.
#[derive(Debug)]
pub(super) struct Requests<T> {
    threads: Vec<Recent<T>>,
    old: HashMap<RequestId, T>,
}

/// The recent requests of one thread.
#[derive(Debug)]
struct Recent<T> {
    /// Number of the first in the list.
    first: u64,
    /// `None`: complete.
    list: Vec<Option<T>>,
    /// Number of pending requests in the list.
    pending: usize,
}

/// Maximum length of a list: its first half is moved to the table then.
const LONG: usize = 1 << 12;

impl<T> Requests<T> {
    /// No requests.
    pub(super) fn new() -> Self {
        Self { threads: Vec::new(), old: HashMap::new() }
    }

    /// Adds request `id`; `false` if it is not the next of its thread.
    #[inline(always)]
    pub(super) fn insert(&mut self, id: RequestId, value: T) -> bool {
        let at = usize::from(id.thread);
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || Recent { first: 0, list: Vec::new(), pending: 0 });
        }
        let Recent { first, list, pending } = &mut self.threads[at];
        if id.number != *first + list.len() as u64 {
            return false;
        }
        list.push(Some(value));
        *pending += 1;
        if list.len() == LONG {
            self.make_room(id.thread);
        }
        true
    }

    #[cold]
    fn make_room(&mut self, thread: u16) {
        let Recent { first, list, pending } = &mut self.threads[usize::from(thread)];
        for (number, value) in (*first..).zip(list.drain(..LONG / 2)) {
            *pending -= usize::from(value.is_some());
            self.old.extend(value.map(|value| (RequestId { thread, number }, value)));
        }
        *first += LONG as u64 / 2;
    }

    /// Removes request `id`.
    #[inline(always)]
    pub(super) fn remove(&mut self, id: RequestId) -> Option<T> {
        let Recent { first, list, pending } = self.threads.get_mut(usize::from(id.thread))?;
        let Some(at) = id.number.checked_sub(*first) else { return self.old.remove(&id) };
        let value = list.get_mut(at as usize)?.take()?;
        *pending -= 1;
        if *pending == 0 {
            *first += list.len() as u64;
            list.clear();
        }
        Some(value)
    }

    /// Removes all requests, in any order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        let recent = self.threads.drain(..).flat_map(|recent| recent.list).flatten();
        self.old.drain().map(|(_, value)| value).chain(recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]
        #[test]
        fn it_is_a_table(seed: u64, keep in 0u64..50) {
            let mut requests = Requests::new();
            let mut expected = HashMap::new();
            let mut random = seed | 1;
            for number in 0..20_000u64 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let id = RequestId { thread: 1, number };
                prop_assert!(requests.insert(id, number));
                prop_assert!(!requests.insert(id, number));
                expected.insert(id, number);
                let done = RequestId { thread: 1, number: number.saturating_sub(random % 100) };
                if random >> 32 & 63 >= keep {
                    prop_assert_eq!(requests.remove(done), expected.remove(&done));
                    prop_assert_eq!(requests.remove(done), None);
                }
            }
            let mut left: Vec<_> = requests.drain().collect();
            left.sort_unstable();
            let mut expected: Vec<_> = expected.into_values().collect();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }

    #[test]
    fn one_that_stays_open_holds_nothing_up() {
        let mut requests = Requests::new();
        for number in 0..1_000_000 {
            let id = RequestId { thread: 0, number };
            assert!(requests.insert(id, number));
            assert!(number == 0 || requests.remove(id) == Some(number));
        }
        assert!(requests.threads[0].list.len() <= LONG);
        assert_eq!(requests.remove(RequestId { thread: 0, number: 0 }), Some(0));
        assert_eq!(requests.remove(RequestId { thread: 7, number: 0 }), None);
    }
}

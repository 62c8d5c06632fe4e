//! The requests of one task that are under way. A thread numbers its requests one by one and mostly completes
//! them soon, so they lie in a ring; the few that stay open for long move to a table.

use hashbrown::HashMap;
use vef_format::capture::event::RequestId;

/// Requests under way, and what is known of each.
#[derive(Debug)]
pub(crate) struct Requests<T> {
    threads: Vec<Ring<T>>,
    old: HashMap<RequestId, T>,
}

/// The recent requests of one thread: that of number n at place n, modulo the ring's length, a power of two.
#[derive(Debug)]
struct Ring<T> {
    /// The number of the first, and of the one behind the last.
    first: u64,
    end: u64,
    places: Vec<Option<T>>,
    open: u64,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { first: 0, end: 0, places: Vec::new(), open: 0 }
    }
}

impl<T> Ring<T> {
    #[inline]
    fn is_full(&self) -> bool {
        self.end - self.first == self.places.len() as u64
    }

    #[inline]
    fn place(&mut self, number: u64) -> Option<&mut Option<T>> {
        let at = number as usize & self.places.len().wrapping_sub(1);
        self.places.get_mut(at)
    }

    #[cold]
    fn grow(&mut self) {
        let mut places = Vec::new();
        places.resize_with((2 * self.places.len()).max(16), || None);
        let mut wider = Self { places, ..*self };
        for number in self.first..self.end {
            if let (Some(to), Some(from)) = (wider.place(number), self.place(number)) {
                *to = from.take();
            }
        }
        *self = wider;
    }
}

/// A ring of this length with few requests open is cleared.
const LONG: u64 = 1 << 12;

impl<T> Requests<T> {
    /// None.
    pub(crate) fn new() -> Self {
        Self { threads: Vec::new(), old: HashMap::new() }
    }

    /// Adds the request `id`; `false` if it is not the next of its thread.
    #[inline(always)]
    pub(crate) fn insert(&mut self, id: RequestId, what: T) -> bool {
        if self.threads.get(usize::from(id.thread)).is_none_or(Ring::is_full) {
            self.make_room(id.thread);
        }
        let ring = &mut self.threads[usize::from(id.thread)];
        if id.number != ring.end {
            return false;
        }
        ring.end += 1;
        ring.open += 1;
        if let Some(place) = ring.place(id.number) {
            *place = Some(what);
        }
        true
    }

    /// Makes room for another request of `thread`.
    #[cold]
    fn make_room(&mut self, thread: u16) {
        let at = usize::from(thread);
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Ring::default);
        }
        let ring = &mut self.threads[at];
        let length = ring.end - ring.first;
        if length < LONG || ring.open >= length / 4 {
            return ring.grow();
        }
        for number in ring.first..ring.end {
            if let Some(what) = ring.place(number).and_then(Option::take) {
                self.old.insert(RequestId { thread, number }, what);
            }
        }
        (ring.first, ring.open) = (ring.end, 0);
    }

    /// Takes out the request `id`.
    #[inline(always)]
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<T> {
        let ring = self.threads.get_mut(usize::from(id.thread))?;
        if id.number < ring.first {
            return self.old.remove(&id);
        }
        if id.number >= ring.end {
            return None;
        }
        let what = ring.place(id.number)?.take()?;
        ring.open -= 1;
        while ring.first < ring.end && ring.place(ring.first).is_some_and(|place| place.is_none()) {
            ring.first += 1;
        }
        Some(what)
    }

    /// All that are still open, in no particular order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        let recent = self.threads.drain(..).flat_map(|ring| ring.places).flatten();
        self.old.drain().map(|(_, what)| what).chain(recent)
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
        assert!(requests.threads[0].places.len() as u64 <= 2 * LONG);
        assert_eq!(requests.remove(RequestId { thread: 0, number: 0 }), Some(0));
        assert_eq!(requests.remove(RequestId { thread: 7, number: 0 }), None);
    }
}

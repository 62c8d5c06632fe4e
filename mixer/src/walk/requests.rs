//! The pending requests of one task. Each thread numbers its requests consecutively and usually completes them soon, so
//! they are in a ring; the few that stay pending for long move to a table.

use hashbrown::HashMap;
use vef_format::capture::event::RequestId;

/// Pending requests, and a value for each.
#[derive(Debug)]
pub(crate) struct Requests<T> {
    threads: Vec<Ring<T>>,
    old: HashMap<RequestId, T>,
}

/// The recent requests of one thread: request n at index n modulo the length, a power of two. Completed requests at the
/// front are dropped when the ring is full.
#[derive(Debug)]
struct Ring<T> {
    /// The ring has no request below this number.
    first: u64,
    /// The number of the next request.
    end: u64,
    places: Vec<Option<T>>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { first: 0, end: 0, places: Vec::new() }
    }
}

impl<T> Ring<T> {
    #[inline]
    fn is_full(&self) -> bool {
        self.end - self.first == self.places.len() as u64
    }

    #[inline(always)]
    fn place(&mut self, number: u64) -> Option<&mut Option<T>> {
        let at = number as usize & self.places.len().wrapping_sub(1);
        self.places.get_mut(at)
    }

    /// Adds request `number` to a ring that is not full; `false` if it is not the next.
    #[inline(always)]
    fn insert(&mut self, number: u64, what: T) -> bool {
        if number != self.end {
            return false;
        }
        self.end += 1;
        if let Some(place) = self.place(number) {
            *place = Some(what);
        }
        true
    }

    /// Drops completed requests from the front; returns how many.
    fn advance(&mut self) -> u64 {
        let before = self.first;
        while self.first < self.end && self.place(self.first).is_some_and(|place| place.is_none()) {
            self.first += 1;
        }
        self.first - before
    }

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

/// A ring of this length moves its requests to the table if few are pending.
const LONG: u64 = 1 << 12;

impl<T> Requests<T> {
    /// No requests.
    pub(crate) fn new() -> Self {
        Self { threads: Vec::new(), old: HashMap::new() }
    }

    /// Adds request `id`; `false` if it is not the next of its thread.
    #[inline(always)]
    pub(crate) fn insert(&mut self, id: RequestId, what: T) -> bool {
        match self.threads.get_mut(usize::from(id.thread)) {
            Some(ring) if !ring.is_full() => ring.insert(id.number, what),
            _ => self.make_room(id.thread).insert(id.number, what),
        }
    }

    /// Makes room for a further request of `thread`.
    #[inline(never)]
    fn make_room(&mut self, thread: u16) -> &mut Ring<T> {
        let at = usize::from(thread);
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Ring::default);
        }
        // Linear in the length of the ring, and amortised over at least a quarter as many requests.
        let ring = &mut self.threads[at];
        let length = ring.end - ring.first;
        if length > 0 && ring.advance() >= length.div_ceil(4) {
            return ring;
        }
        let open = ring.places.iter().flatten().count() as u64;
        if length < LONG || open >= length / 4 {
            ring.grow();
            return ring;
        }
        for number in ring.first..ring.end {
            if let Some(what) = ring.place(number).and_then(Option::take) {
                self.old.insert(RequestId { thread, number }, what);
            }
        }
        ring.first = ring.end;
        ring
    }

    /// Removes request `id`.
    #[inline(always)]
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<T> {
        let ring = self.threads.get_mut(usize::from(id.thread))?;
        if id.number < ring.first {
            return self.old.remove(&id);
        }
        if id.number >= ring.end {
            return None;
        }
        ring.place(id.number)?.take()
    }

    /// Removes all requests, in any order.
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

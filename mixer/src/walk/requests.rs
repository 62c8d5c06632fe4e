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

/// The recent requests of one thread: request n at index n modulo the length, a power of two.
#[derive(Debug)]
struct Ring<T> {
    /// The number of the next request.
    end: u64,
    places: Vec<Option<T>>,
}

/// Length of a new ring.
const SHORT: usize = 16;

/// A ring of this length moves its requests to the table if few are pending.
const LONG: usize = 1 << 12;

impl<T> Ring<T> {
    /// An empty ring for request `end` and later ones.
    fn new(end: u64, length: usize) -> Self {
        let mut places = Vec::new();
        places.resize_with(length, || None);
        Self { end, places }
    }

    #[inline(always)]
    fn place(&mut self, number: u64) -> Option<&mut Option<T>> {
        let at = number as usize & self.places.len().wrapping_sub(1);
        self.places.get_mut(at)
    }

    /// Removes all requests; returns them with their numbers.
    fn drain(&mut self) -> impl Iterator<Item = (u64, T)> {
        let (last, most) = (self.end.wrapping_sub(1), self.places.len() as u64 - 1);
        let number = move |at| last.wrapping_sub(last.wrapping_sub(at) & most);
        (0..).zip(&mut self.places).filter_map(move |(at, place)| Some((number(at), place.take()?)))
    }
}

impl<T> Requests<T> {
    /// No requests.
    pub(crate) fn new() -> Self {
        Self { threads: Vec::new(), old: HashMap::new() }
    }

    /// Adds request `id`; `false` if it is not the next of its thread.
    #[inline(always)]
    pub(crate) fn insert(&mut self, id: RequestId, what: T) -> bool {
        if let Some(ring) = self.threads.get_mut(usize::from(id.thread))
            && id.number == ring.end
            && let Some(place @ None) = ring.place(id.number)
        {
            *place = Some(what);
            ring.end += 1;
            return true;
        }
        self.insert_with_room(id, what)
    }

    /// [`Requests::insert`] if the place in the ring is taken by an earlier request.
    #[inline(never)]
    fn insert_with_room(&mut self, id: RequestId, what: T) -> bool {
        let at = usize::from(id.thread);
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || Ring::new(0, SHORT));
        }
        let ring = &mut self.threads[at];
        if id.number != ring.end {
            return false;
        }
        // Linear in the length of the ring, which takes as many requests before this happens again.
        let length = ring.places.len();
        let pending = ring.places.iter().flatten().count();
        if length < LONG || pending >= length / 4 {
            let mut wider = Ring::new(ring.end, 2 * length);
            for (number, what) in ring.drain() {
                wider.place(number).map(|place| place.insert(what));
            }
            *ring = wider;
        } else {
            let moved = ring.drain().map(|(number, what)| (RequestId { number, ..id }, what));
            self.old.extend(moved);
        }
        ring.place(id.number).map(|place| place.insert(what));
        ring.end += 1;
        true
    }

    /// Removes request `id`.
    #[inline(always)]
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<T> {
        let ring = self.threads.get_mut(usize::from(id.thread))?;
        // Otherwise a later request has the place.
        if ring.end.wrapping_sub(id.number).wrapping_sub(1) < ring.places.len() as u64
            && let Some(what) = ring.place(id.number)?.take()
        {
            return Some(what);
        }
        self.old.remove(&id)
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
        assert!(requests.threads[0].places.len() <= LONG);
        assert_eq!(requests.remove(RequestId { thread: 0, number: 0 }), Some(0));
        assert_eq!(requests.remove(RequestId { thread: 7, number: 0 }), None);
    }
}

//! Counts by key, exact while there are not too many different keys.
//!
//! With more keys the owner drains the map and counts something coarser instead. Whether that happens depends on the keys alone, not
//! on their order or on how they are distributed over threads.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use results::report::Amount;

/// Messages and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Messages.
    pub messages: u64,
    /// Their bytes; the sum saturates, as a hostile trace may promise anything.
    pub bytes: u64,
}

impl From<Volume> for Amount {
    fn from(volume: Volume) -> Self {
        Self { messages: volume.messages.into(), bytes: volume.bytes.into() }
    }
}

impl Volume {
    /// Adds another.
    #[inline(always)]
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Most different keys that are counted exactly.
pub(super) const MOST_KEYS: usize = 1 << 20;
/// Places of a direct-mapped cache in front of the map: consecutive records have few different keys.
const FRONT: usize = 256;

/// Volumes by key.
#[derive(Debug, Clone)]
pub(super) struct Bounded {
    /// The cache. An entry without messages is free.
    front: Box<[(u64, Volume); FRONT]>,
    counts: HashMap<u64, Volume>,
    most: usize,
}

impl Bounded {
    pub(super) fn new(most: usize) -> Self {
        Self { front: Box::new([(0, Volume::default()); FRONT]), counts: HashMap::new(), most }
    }

    /// Adds to the volume of `key`. Returns what was not added because its key is one too many: the caller adds it elsewhere, together
    /// with everything that [`Bounded::drain`] returns.
    #[inline(always)]
    pub(super) fn add(&mut self, key: u64, volume: Volume) -> Option<(u64, Volume)> {
        // The upper bits of a product depend on all bits of the key.
        let place = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - FRONT.ilog2())) as usize;
        let (front, own) = &mut self.front[place];
        if *front == key {
            own.add(volume);
            return None;
        }
        let before = std::mem::replace(&mut self.front[place], (key, volume));
        self.settle(before)
    }

    /// Moves an entry of the cache into the map.
    #[inline(never)]
    fn settle(&mut self, (key, volume): (u64, Volume)) -> Option<(u64, Volume)> {
        let full = self.counts.len() >= self.most;
        match self.counts.entry(key) {
            _ if volume == Volume::default() => {}
            Entry::Occupied(entry) => entry.into_mut().add(volume),
            Entry::Vacant(_) if full => return Some((key, volume)),
            Entry::Vacant(entry) => drop(entry.insert(volume)),
        }
        None
    }

    /// Removes and returns everything that was counted; a key may occur twice.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, Volume)> + use<> {
        let front = std::mem::replace(&mut self.front, Box::new([(0, Volume::default()); FRONT]));
        let front = front.into_iter().filter(|(_, volume)| *volume != Volume::default());
        std::mem::take(&mut self.counts).into_iter().chain(front)
    }

    /// Everything that was counted, in order of keys; `Err` if there are too many keys.
    pub(super) fn sorted(mut self) -> Result<Vec<(u64, Volume)>, Self> {
        let front = std::mem::replace(&mut self.front, Box::new([(0, Volume::default()); FRONT]));
        for (at, entry) in front.iter().enumerate() {
            if self.settle(*entry).is_some() {
                self.front[at..].copy_from_slice(&front[at..]);
                return Err(self);
            }
        }
        let mut all: Vec<_> = self.counts.into_iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        Ok(all)
    }
}

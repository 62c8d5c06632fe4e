//! A direct-mapped cache of message counts by sender, receiver and size: consecutive messages of a task repeat few combinations.

/// Kinds of messages that have a place.
const PLACES: usize = 256;

/// Messages that have the same ends and the same size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    /// Their sender and receiver, as [`super::pairs::key`] has it.
    pub(super) ends: u64,
    /// Bytes of each.
    pub(super) bytes: u64,
    /// How many; 0: the place is free.
    pub(super) messages: u64,
}

/// Counts of messages by ends and size, those of the last ones met.
#[derive(Clone, Debug)]
pub(super) struct Recent(Box<[Alike; PLACES]>);

impl Recent {
    pub(super) fn new() -> Self {
        Self(Box::new([Alike::default(); PLACES]))
    }

    /// Counts a message. Returns others that had to give way, which are to be added elsewhere.
    #[inline(always)]
    pub(super) fn add(&mut self, ends: u64, bytes: u64) -> Option<Alike> {
        // The upper bits of a product depend on all bits of its factors.
        let mixed = ends.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ bytes.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        let place = &mut self.0[(mixed >> (u64::BITS - PLACES.ilog2())) as usize];
        if place.ends == ends && place.bytes == bytes {
            place.messages += 1;
            return None;
        }
        let before = std::mem::replace(place, Alike { ends, bytes, messages: 1 });
        (before.messages > 0).then_some(before)
    }

    /// Everything that is counted here, which is then forgotten.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Alike> + use<> {
        let all = std::mem::replace(self, Self::new());
        all.0.into_iter().filter(|alike| alike.messages > 0)
    }
}

//! A cache of message counts by sender, receiver and size: a task repeats few combinations.
//!
//! The places of a sender are beside one another, so that senders in order of their ranks also visit memory in order.

/// Places that are searched for a message, beside one another.
const WAYS: usize = 8;
/// Rows of so many places, at most.
const MOST_ROWS: usize = 1 << 17;
/// Rows of a sender, at most.
const MOST_ROWS_OF_SENDER: usize = 1 << 4;
/// Minimum number of rows.
const FEW_ROWS: usize = 1 << 11;
/// One in so many messages without a place takes the place of another kind.
const PATIENCE: u32 = 8;

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

/// Counts of messages by ends and size.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// A power of two.
    rows: Vec<[Alike; WAYS]>,
    /// Rows of a sender, a power of two.
    rows_of_sender: usize,
    /// Messages without a place.
    misses: u32,
}

impl Recent {
    /// For records that alternate between so many senders.
    pub(super) fn new(senders: u32) -> Self {
        let senders = (senders as usize).next_power_of_two().min(MOST_ROWS);
        let rows_of_sender = (FEW_ROWS / senders).clamp(1, MOST_ROWS_OF_SENDER);
        Self { rows: vec![Default::default(); senders * rows_of_sender], rows_of_sender, misses: 0 }
    }

    /// Counts a message. Returns messages that have no place here, this one or others: they are to be added elsewhere.
    #[inline(always)]
    pub(super) fn add(&mut self, ends: u64, bytes: u64) -> Option<Alike> {
        // The upper bits of a product depend on all bits of its factors.
        let mixed = ends.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ bytes.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        let mixed = (mixed >> u32::BITS) as usize;
        let of_sender = (ends >> u32::BITS) as usize * self.rows_of_sender;
        let row = (of_sender + (mixed & (self.rows_of_sender - 1))) & (self.rows.len() - 1);
        let row = &mut self.rows[row];
        for alike in row.iter_mut() {
            if alike.ends == ends && alike.bytes == bytes {
                alike.messages += 1;
                return None;
            }
            if alike.messages == 0 {
                *alike = Alike { ends, bytes, messages: 1 };
                return None;
            }
        }
        let new = Alike { ends, bytes, messages: 1 };
        self.misses = self.misses.wrapping_add(1);
        // Kinds that come in turn and are more than the places would otherwise drive one another out all the time.
        match self.misses % PATIENCE {
            0 => Some(std::mem::replace(&mut row[mixed >> 5 & (WAYS - 1)], new)),
            _ => Some(new),
        }
    }

    /// Passes everything that is counted here to `take` and forgets it.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&Alike)) {
        for alike in self.rows.as_flattened_mut() {
            let alike = std::mem::take(alike);
            if alike.messages > 0 {
                take(&alike);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs::key;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn no_message_is_lost(
            senders in 1u32..5000,
            kinds in 1u32..40,
            messages in proptest::collection::vec((any::<u32>(), any::<u32>()), 0..600),
        ) {
            let mut recent = Recent::new(senders);
            let [mut counted, mut sent] = [HashMap::new(), HashMap::new()];
            let mut count = |alike: &Alike| *counted.entry((alike.ends, alike.bytes)).or_insert(0) += alike.messages;
            for (src, kind) in messages {
                // Few senders, so that some have more kinds of messages than places.
                let (ends, bytes) = (key(src % senders.min(3), kind % kinds), u64::from(kind % 3));
                *sent.entry((ends, bytes)).or_insert(0) += 1;
                if let Some(others) = recent.add(ends, bytes) {
                    prop_assert!(others.messages > 0);
                    count(&others);
                }
            }
            recent.drain(&mut count);
            recent.drain(|alike| panic!("{alike:?} was forgotten"));
            prop_assert_eq!(counted, sent);
        }
    }
}

//! A set of 64-bit ids, compact if they are dense: 512 consecutive ids share a bitmap.

use std::collections::HashMap;

/// A set of ids: an eighth of a byte for each dense id, less than 150 bytes for each sparse one.
#[derive(Debug, Default)]
pub(crate) struct IdSet {
    blocks: HashMap<u64, Box<[u64; 8]>>,
}

impl IdSet {
    /// Adds `id`; `false` if the set had it.
    pub(crate) fn insert(&mut self, id: u64) -> bool {
        let word = &mut self.blocks.entry(id >> 9).or_default()[(id >> 6 & 7) as usize];
        let before = *word;
        *word |= 1 << (id & 63);
        *word != before
    }

    /// Whether the set has `id`.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.blocks.get(&(id >> 9)).is_some_and(|block| block[(id >> 6 & 7) as usize] >> (id & 63) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn holds_what_a_plain_set_holds() {
        let (mut ids, mut plain) = (IdSet::default(), HashSet::new());
        let mut id = 1u64;
        for step in 0..20_000 {
            id = id.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let id = id >> if step % 2 == 0 { 50 } else { 0 };
            assert_eq!(ids.insert(id), plain.insert(id));
            assert_eq!(ids.contains(id ^ 1), plain.contains(&(id ^ 1)));
        }
        assert!(ids.contains(id) && plain.len() > 10_000);
    }
}

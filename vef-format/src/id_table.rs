//! A compact map from ids to numbers.

use std::collections::HashMap;

/// No number.
pub const NONE: u32 = u32::MAX;

/// A map from ids to numbers: four bytes for each dense id, a hash table for sparse ones.
#[derive(Debug, Default)]
pub struct IdTable {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    count: u64,
}

impl IdTable {
    /// Maps `id` to `number` (not [`NONE`]) unless it is mapped; returns the number it is mapped to already.
    pub fn insert(&mut self, id: u64, number: u32) -> Option<u32> {
        if let Some(before) = self.get(id) {
            return Some(before);
        }
        self.count += 1;
        // An id far beyond the count goes to the hash table, so that one large id does not need a large array.
        if id < 4 * self.count + 4096 {
            let index = id as usize;
            if index >= self.dense.len() {
                self.dense.resize(index + 1, NONE);
            }
            self.dense[index] = number;
        } else {
            self.sparse.insert(id, number);
        }
        None
    }

    /// The number of `id`.
    #[inline]
    pub fn get(&self, id: u64) -> Option<u32> {
        match self.dense.get(usize::try_from(id).unwrap_or(usize::MAX)) {
            Some(&number) if number != NONE => Some(number),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&id).copied(),
        }
    }

    /// How many ids have a number.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_what_a_plain_one_holds() {
        let (mut table, mut plain) = (IdTable::default(), HashMap::new());
        let mut id = 1u64;
        for step in 0..30_000u32 {
            id = id.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let id = match step % 3 {
                0 => u64::from(step),
                1 => id >> 48,
                _ => id,
            };
            let before = plain.get(&id).copied();
            assert_eq!(table.insert(id, step), before);
            plain.entry(id).or_insert(step);
            assert_eq!((table.get(id), table.get(id ^ 1)), (Some(plain[&id]), plain.get(&(id ^ 1)).copied()));
        }
        assert_eq!(table.len(), plain.len() as u64);
        assert_eq!(table.insert(u64::MAX, 5), None);
        assert_eq!((table.get(u64::MAX), table.dense.len() < 200_000), (Some(5), true));
    }
}

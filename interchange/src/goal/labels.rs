//! The labels of a rank's operations.

use super::words::Words;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// The operations of a rank by their labels. Usually these end with numbers that count up: such labels need no hash.
pub(super) struct Labels<'a> {
    /// What numbered labels begin with, and the least of their numbers: those of the first label.
    prefix: &'a [u8],
    least: u64,
    /// By the number, from the least: the operation, or [`NONE`].
    numbered: Vec<u32>,
    /// Most numbers: more than there are operations.
    most: u64,
    named: HashMap<&'a [u8], u32>,
}

/// No operation.
const NONE: u32 = u32::MAX;

/// A label.
#[derive(Clone, Copy)]
pub(super) struct Label<'a> {
    pub(super) word: &'a [u8],
    /// Its place in [`Labels::numbered`], if it has one.
    place: Option<usize>,
}

impl<'a> Labels<'a> {
    /// Those of a block of so many bytes.
    pub(super) fn of(length: usize) -> Self {
        // An operation and its dependencies, as they are usually written; the shortest operation is `a:calc 1`.
        let (numbered, most) = (Vec::with_capacity(length / 40), length as u64 / 8);
        Self { prefix: b"", least: u64::MAX, numbered, most, named: HashMap::new() }
    }

    /// Reads the next word.
    #[inline]
    pub(super) fn read(&self, words: &mut Words<'a>) -> Option<Label<'a>> {
        let (word, number) = words.label(self.prefix)?;
        let place = number.and_then(|number| number.checked_sub(self.least));
        Some(Label { word, place: place.filter(|&place| place < self.most).map(|place| place as usize) })
    }

    /// The operation with a label that was read before others.
    pub(super) fn find(&self, word: &'a [u8]) -> Option<u32> {
        self.read(&mut Words::new(word)).and_then(|label| self.get(label))
    }

    #[inline]
    pub(super) fn get(&self, label: Label<'_>) -> Option<u32> {
        match label.place {
            Some(place) => self.numbered.get(place).copied().filter(|&operation| operation != NONE),
            None => self.named.get(label.word).copied(),
        }
    }

    /// Adds a label; the operation that has it already, if there is one.
    #[inline]
    pub(super) fn insert(&mut self, label: Label<'a>, operation: u32) -> Option<u32> {
        let Some(place) = label.place else { return self.insert_named(label.word, operation) };
        if place >= self.numbered.len() {
            self.numbered.resize(place + 1, NONE);
        }
        let there = &mut self.numbered[place];
        if *there != NONE {
            return Some(*there);
        }
        *there = operation;
        None
    }

    #[inline(never)]
    fn insert_named(&mut self, word: &'a [u8], operation: u32) -> Option<u32> {
        if self.least == u64::MAX {
            // The first label.
            let end = word.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
            let (prefix, digits) = word.split_at(end);
            if let Some((_, Some(number))) = Words::new(digits).label(b"") {
                (self.prefix, self.least) = (prefix, number);
                if self.most > 0 {
                    return self.insert(Label { word, place: Some(0) }, operation);
                }
            }
        }
        match self.named.entry(word) {
            Entry::Occupied(there) => Some(*there.get()),
            Entry::Vacant(free) => {
                free.insert(operation);
                None
            }
        }
    }
}

//! A proof of consistent messages, so that a replay need not check each.
//!
//! It states: the ids of lines are 0, 1, 2 and so on; a message is marked as awaited exactly if one record waits for it,
//! once, in the receiving task; and a record that waits for a send or mark waits for the last one of its own task.
//!
//! The writer sees the records in any order and keeps two sums: of a hash of every id minus the hash of the expected number,
//! and of a hash of every awaited message with its receiver minus the hash of every wait with its task. Both are 0 for
//! consistent messages; otherwise with probability 2⁻⁶⁴, because the key of the hashes is random.
//!
//! The section has the sum of a hash of all blocks of records with their checksums, which binds the proof to its file.

use crate::ids::Rank;
use crate::raw::{DEPENDENCY, Raw};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The name of the section.
pub(super) const SECTION: &str = "proof";

/// A proof under construction.
#[derive(Debug)]
pub(super) struct Proving {
    key: u64,
    lines: u64,
    ids: u64,
    waits: u64,
    refuted: bool,
}

impl Proving {
    pub(super) fn new() -> Self {
        Self { key: RandomState::new().build_hasher().finish(), lines: 0, ids: 0, waits: 0, refuted: false }
    }

    /// Takes the id of the next message or mark of the file.
    #[inline]
    pub(super) fn id(&mut self, id: u64) {
        if id != self.lines {
            self.ids = self.ids.wrapping_add(mix(self.key ^ id));
            self.ids = self.ids.wrapping_sub(mix(self.key ^ self.lines));
        }
        self.lines += 1;
    }

    /// Takes the next record of `task`; `last` is its previous message or mark, and is updated.
    #[inline]
    pub(super) fn record(&mut self, task: Rank, raw: &Raw, last: &mut Option<u64>) {
        match raw.tag & DEPENDENCY {
            1 => self.refuted |= *last != Some(raw.after),
            2 => self.waits = self.waits.wrapping_sub(self.pair(raw.after, task.0)),
            _ => {}
        }
        if raw.awaited() {
            self.waits = self.waits.wrapping_add(self.pair(raw.id, raw.to));
        }
        if !raw.is_collective() {
            *last = Some(raw.id);
        }
    }

    /// Whether all statements hold.
    pub(super) fn is_proven(&self) -> bool {
        !self.refuted && self.ids == 0 && self.waits == 0
    }

    #[inline]
    fn pair(&self, id: u64, task: u32) -> u64 {
        let key = self.key.rotate_left(32);
        match id >> u32::BITS {
            0 => mix(key ^ (id << u32::BITS | u64::from(task))),
            _ => mix(mix(key ^ id).wrapping_add(task.into())),
        }
    }
}

/// Sum of a hash of blocks of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocks(u64);

impl Blocks {
    /// Adds a block of records of a task, with its checksum.
    pub(super) fn add(&mut self, task: u32, items: u32, crc: u32) {
        let about = u64::from(task) << u32::BITS | u64::from(items);
        self.0 = self.0.wrapping_add(mix(mix(about).wrapping_add(crc.into())));
    }

    /// The content of the section.
    pub(super) fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

/// The output function of SplitMix64: every bit of the result depends on every bit of `value`.
#[inline(always)]
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MessageId;
    use crate::record::{Dependency, Message};
    use crate::units::{Bytes, Ticks};

    /// (id, sender, receiver, awaited, after)
    type Row = (u64, u32, u32, bool, Dependency);

    fn is_proven(rows: &[Row]) -> bool {
        let mut proving = Proving::new();
        let mut last = [None; 4];
        for &(id, src, dst, awaited, after) in rows {
            let (src, dst) = (Rank(src), Rank(dst));
            let message =
                Message { id: MessageId(id), src, dst, bytes: Bytes(1), awaited, after, time: Ticks(0) };
            proving.id(id);
            proving.record(src, &Raw::of_message(&message), &mut last[src.index()]);
        }
        proving.is_proven()
    }

    #[test]
    fn what_is_proven_and_what_is_not() {
        let (start, received) = (Dependency::Start, |id| Dependency::Received(MessageId(id)));
        let sent = |id| Dependency::Sent(MessageId(id));
        let ring: [Row; 4] = [
            (0, 0, 1, true, start),
            (2, 0, 0, false, sent(0)),
            (1, 1, 2, true, received(0)),
            (3, 2, 0, false, received(1)),
        ];
        assert!(is_proven(&ring) && is_proven(&[]));
        let changed = |at: usize, row: Row| {
            let mut rows = ring;
            rows[at] = row;
            is_proven(&rows)
        };
        assert!(!changed(3, (2, 2, 0, false, received(1))), "an id twice");
        assert!(!changed(3, (7, 2, 0, false, received(1))), "an id left out");
        assert!(!changed(0, (0, 0, 3, true, start)), "another's message is waited for");
        assert!(!changed(0, (0, 0, 1, false, start)), "waited for, and not marked");
        assert!(!changed(3, (3, 2, 0, true, received(1))), "marked, and not waited for");
        assert!(!changed(3, (3, 2, 0, false, received(0))), "waited for twice");
        assert!(!changed(1, (2, 0, 0, false, sent(1))), "another's send is waited for");
    }
}

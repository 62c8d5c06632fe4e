//! The files that one task has open, and which storage server keeps which of their bytes.

use crate::IoServers;
use crate::index::CommIndex;
use hashbrown::HashMap;
use std::ops::Range;
use vef_format::capture::event::{FileId, Tile};
use vef_format::ids::CommId;
use vef_format::units::Bytes;

/// The open files of one task.
pub(super) type Files = HashMap<FileId, OpenFile>;

/// The numbers of the files' communicators begin here: above those of windows.
pub(super) const OF_FILES: u32 = 3 << 30;

/// An open file, where the task knows it to be.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// Its communicator, a duplicate, by the task's own number; and the same in the trace.
    pub(super) of: CommId,
    pub(super) comm: CommIndex,
    /// The server of its first stripe.
    pub(super) first: u32,
    /// Where the task's view begins, and the unit of its offsets, in bytes.
    pub(super) displacement: u64,
    pub(super) unit: u64,
    /// The task's own position behind `displacement`, in bytes.
    pub(super) position: u64,
    /// Bytes that the task has accessed at the shared pointer.
    pub(super) shared: u64,
    /// What the view repeats, if it has gaps.
    pub(super) tile: Option<Tile>,
    /// Number of collective accesses so far.
    pub(super) accesses: usize,
}

impl OpenFile {
    /// From the first byte in the file to behind the last of so many `bytes` of data at `at`, which counts in the view's data.
    pub(super) fn place(&self, at: u64, Bytes(bytes): Bytes) -> Range<u64> {
        let in_file = |at| self.displacement.saturating_add(self.in_view(at));
        let first = in_file(at);
        let end = bytes.checked_sub(1).map(|last| in_file(at.saturating_add(last)).saturating_add(1));
        first..end.unwrap_or(first)
    }

    /// Where a byte of data is behind the displacement. In a tile, data are taken to be spread evenly.
    fn in_view(&self, at: u64) -> u64 {
        let Some(Tile { size, extent, first, span }) = self.tile else { return at };
        let (size, last) = (u128::from(size.0.max(1)), u128::from(span.0.saturating_sub(1)));
        let (tile, rest) = (u128::from(at) / size, u128::from(at) % size);
        let inside = rest * last / size.saturating_sub(1).max(1);
        let place = (tile * u128::from(extent.0)).saturating_add(u128::from(first.0)).saturating_add(inside);
        u64::try_from(place).unwrap_or(u64::MAX)
    }
}

impl IoServers {
    /// The servers of a file whose first stripe is on the server `first`.
    pub(super) fn of_file(self, first: u32) -> impl Iterator<Item = u32> {
        (0..self.width).map(move |nth| (first + nth) % self.count)
    }

    /// The bytes of each server, of `bytes` at `at` in a file whose first stripe is on the server `first`; servers without
    /// some are left out.
    pub(super) fn shares(self, first: u32, at: u64, bytes: Bytes) -> impl Iterator<Item = (u32, Bytes)> {
        let Self { count, stripe: Bytes(stripe), width } = self;
        let round = u128::from(stripe) * u128::from(width);
        // Bytes on the n-th server of the file in front of `end`.
        let in_front = move |end: u64, nth: u32| {
            let (end, stripe) = (u128::from(end), u128::from(stripe));
            let begun = (end % round).saturating_sub(stripe * u128::from(nth)).min(stripe);
            (end / round * stripe + begun) as u64
        };
        let end = at.saturating_add(bytes.0);
        // In the order of servers: accesses of a loop are alike wherever they begin.
        let mut touched: Vec<u32> = (at / stripe..end.div_ceil(stripe))
            .take(width as usize)
            .map(|stripe| (stripe % u64::from(width)) as u32)
            .collect();
        touched.sort_unstable();
        touched.into_iter().filter_map(move |nth| {
            let share = in_front(end, nth) - in_front(at, nth);
            (share > 0).then_some(((first + nth) % count, Bytes(share)))
        })
    }
}

/// A number of a name, by FNV-1a: each rank, and each mix, has the same one.
pub(super) fn fnv(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against one byte after the other.
        #[test]
        fn shares_are_those_of_each_byte(
            count in 1u32..6, narrower in 0u32..6, stripe in 1u64..9, first in 0u32..6, at in 0u64..100, bytes in 0u64..100,
        ) {
            let (first, width) = (first % count, count - narrower % count);
            let servers = IoServers { count, stripe: Bytes(stripe), width };
            let mut expected = std::collections::BTreeMap::new();
            for byte in at..at + bytes {
                let server = (first + (byte / stripe % u64::from(width)) as u32) % count;
                *expected.entry(server).or_insert(0) += 1;
            }
            let shares = servers.shares(first, at, Bytes(bytes)).map(|(server, share)| (server, share.0));
            prop_assert_eq!(shares.collect::<std::collections::BTreeMap<_, _>>(), expected);
        }
    }

    /// The test vectors of its authors.
    #[test]
    fn names_are_hashed_by_fnv_1a() {
        let known = [("", 0x811c_9dc5), ("a", 0xe40c_292c), ("foobar", 0xbf9c_f968)];
        assert_eq!(known.map(|(name, _)| fnv(name)), known.map(|(_, hash)| hash));
    }

    #[test]
    fn views_with_gaps_begin_and_end_where_their_data_do() {
        let tile = Tile { size: Bytes(10), extent: Bytes(100), first: Bytes(20), span: Bytes(55) };
        let (of, comm) = (CommId(0), CommIndex(0));
        let mut file = OpenFile {
            of,
            comm,
            first: 0,
            displacement: 1000,
            unit: 1,
            position: 0,
            shared: 0,
            tile: Some(tile),
            accesses: 0,
        };
        assert_eq!(file.place(0, Bytes(10)), 1020..1075);
        assert_eq!(file.place(0, Bytes(30)), 1020..1275);
        assert_eq!(file.place(20, Bytes(1)), 1220..1221);
        assert_eq!(file.place(10, Bytes(0)), 1120..1120);
        file.tile = None;
        assert_eq!(file.place(5, Bytes(30)), 1005..1035);
        file.tile =
            Some(Tile { size: Bytes(u64::MAX), extent: Bytes(u64::MAX), first: Bytes(u64::MAX), ..tile });
        assert!(file.place(u64::MAX, Bytes(u64::MAX)).end == u64::MAX);
    }

    #[test]
    fn absurd_accesses_are_shared_without_overflow() {
        for (stripe, width) in [(u64::MAX / 2, 3), (u64::MAX, 1), (1 << 20, 2)] {
            let servers = IoServers { count: 3, stripe: Bytes(stripe), width };
            for at in [0, 1 << 40, u64::MAX - 10] {
                let all: u128 =
                    servers.shares(1, at, Bytes(u64::MAX)).map(|(_, share)| u128::from(share.0)).sum();
                assert_eq!(all, u128::from(u64::MAX - at), "{stripe} {width} {at}");
                assert_eq!(servers.shares(1, at, Bytes::ZERO).next(), None);
            }
        }
    }
}

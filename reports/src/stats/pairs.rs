//! Messages by sender and receiver.

use super::bounded::{Bounded, MOST_KEYS, Volume};
use results::classes::power;

/// Rows and columns of a matrix, at most: with more ranks, several share one.
pub const MATRIX: u32 = 512;
/// Classes of rank distances: none, then up to 1, 3, 7, ….
pub const DISTANCES: usize = 33;

/// Messages between ranks: by pair or, with too many different pairs, by groups of ranks.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    exact: Option<Bounded>,
    sums: Sums,
}

/// Sums over pairs. Those of single ranks and of distances are always exact.
#[derive(Debug, Clone)]
pub struct Sums {
    /// Ranks per row and column.
    pub ranks_per_row: u32,
    /// Rows and columns.
    pub rows: u32,
    /// Row by row; row: sender.
    pub cells: Vec<Volume>,
    /// What each rank sent.
    pub sent: Vec<Volume>,
    /// What was sent to each rank.
    pub received: Vec<Volume>,
    /// By the distance between the ranks' numbers: class 0 is none, class k up to 2^k − 1.
    pub by_distance: [Volume; DISTANCES],
}

/// A pair of ranks and what one sent to the other.
pub type Pair = (u32, u32, Volume);

impl Pairs {
    pub(super) fn new(tasks: u32) -> Self {
        Self { exact: Some(Bounded::new(MOST_KEYS)), sums: Sums::new(tasks) }
    }

    /// Adds messages between the two ranks of [`key`].
    #[inline(always)]
    pub(super) fn add(&mut self, key: u64, volume: Volume) {
        let left_over = match &mut self.exact {
            Some(exact) => exact.add(key, volume),
            None => Some((key, volume)),
        };
        if let Some((key, volume)) = left_over {
            self.add_inexact(key, volume);
        }
    }

    #[cold]
    fn add_inexact(&mut self, key: u64, volume: Volume) {
        self.give_up_pairs();
        self.sums.add(ends(key), volume);
    }

    fn give_up_pairs(&mut self) {
        if let Some(mut exact) = self.exact.take() {
            exact.drain().for_each(|(key, volume)| self.sums.add(ends(key), volume));
        }
    }

    /// Adds what another part of the trace gave.
    pub(super) fn merge(&mut self, other: Self) {
        match other.exact {
            Some(mut exact) => exact.drain().for_each(|(key, volume)| self.add(key, volume)),
            None => {
                self.give_up_pairs();
                self.sums.merge(&other.sums);
            }
        }
    }

    /// The sums, and all pairs by sender and receiver unless they were too many.
    pub(super) fn finish(mut self) -> (Sums, Option<Vec<Pair>>) {
        let pairs = match self.exact.take().map(Bounded::sorted) {
            Some(Ok(pairs)) => pairs,
            Some(Err(exact)) => {
                self.exact = Some(exact);
                self.give_up_pairs();
                return (self.sums, None);
            }
            None => return (self.sums, None),
        };
        let pair = |(key, volume)| {
            let (src, dst) = ends(key);
            (src, dst, volume)
        };
        let pairs: Vec<Pair> = pairs.into_iter().map(pair).collect();
        pairs.iter().for_each(|&(src, dst, volume)| self.sums.add((src, dst), volume));
        (self.sums, Some(pairs))
    }
}

/// Two ranks as one number.
#[inline(always)]
pub(super) fn key(src: u32, dst: u32) -> u64 {
    u64::from(src) << u32::BITS | u64::from(dst)
}

/// The two ranks of a [`key`].
fn ends(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

impl Sums {
    /// No messages yet.
    pub fn new(tasks: u32) -> Self {
        let ranks_per_row = tasks.div_ceil(MATRIX).max(1);
        let rows = tasks.div_ceil(ranks_per_row);
        let none = Volume::default();
        Self {
            ranks_per_row,
            rows,
            cells: vec![none; (rows * rows) as usize],
            sent: vec![none; tasks as usize],
            received: vec![none; tasks as usize],
            by_distance: [none; DISTANCES],
        }
    }

    /// Adds messages between two ranks.
    pub fn add(&mut self, (src, dst): (u32, u32), volume: Volume) {
        let row = |rank: u32| rank / self.ranks_per_row;
        self.cells[(row(src) * self.rows + row(dst)) as usize].add(volume);
        self.sent[src as usize].add(volume);
        self.received[dst as usize].add(volume);
        self.by_distance[power(src.abs_diff(dst).into()) as usize].add(volume);
    }

    fn merge(&mut self, other: &Self) {
        let lists = [
            (&mut self.cells[..], &other.cells[..]),
            (&mut self.sent, &other.sent),
            (&mut self.received, &other.received),
            (&mut self.by_distance, &other.by_distance),
        ];
        for (own, other) in lists {
            own.iter_mut().zip(other).for_each(|(own, other)| own.add(*other));
        }
    }
}

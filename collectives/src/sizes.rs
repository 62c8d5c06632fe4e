//! How many bytes each rank, or each pair of ranks, contributes.
//!
//! Per-rank sizes are kept as prefix sums ([`Counts`]) made once a collective and borrowed by all its ranks,
//! so that the bytes of any range of ranks cost two look-ups.

use crate::{Error, Operation};
use serde::{Deserialize, Serialize};
use vef_format::operation::{Root, Sizing};

/// The sizes one rank's schedule is made from.
///
/// | operations | `Bytes` is | other forms |
/// |---|---|---|
/// | bcast, reduce, allreduce, scan, exscan | the whole vector | – |
/// | gather, scatter, allgather, alltoall, reduce-scatter-block | one block | – |
/// | barrier | 0 | – |
/// | gatherv, scatterv, allgatherv, reduce-scatter | one block, all equal | `Blocks`, `Sums` |
/// | alltoallv, alltoallw | one block, all equal | `Pairs`, `Sums` |
///
/// **Sums.** Where only the sums of a member's counts are known, each message's size is set by a split of
/// its *sender's* sum; parts differ by at most one unit, the first ones being the larger:
/// - alltoallv, alltoallw: the send sum in p parts, one for each receiver, itself included;
/// - allgatherv, reduce-scatter: the common total (receive sum, send sum) in p parts, one for each rank;
/// - gatherv: nothing to split, a sender's sum is its block; [`crate::Algorithm::Linear`] and its like only;
/// - scatterv: the root's sum (which leaves out its own block) in p − 1 parts; the same algorithms only.
///
/// A member so needs nobody's sizes but its own, totals are kept, and a receiver accepts what comes.
#[derive(Clone, Copy, Debug)]
pub enum Sizes<'a> {
    /// The same for all, bytes.
    Bytes(u64),
    /// The block of every rank.
    Blocks(&'a Counts),
    /// What this rank sends to each rank, and receives from each.
    Pairs {
        /// Bytes to each rank.
        send: &'a Counts,
        /// Bytes from each rank.
        recv: &'a Counts,
    },
    /// Only the sums over all peers of this rank are known.
    Sums {
        /// Bytes this rank contributes.
        send: u64,
        /// Bytes this rank obtains.
        recv: u64,
    },
}

impl Sizes<'_> {
    /// The sizes behind one member's two sums as traces store them: rooted operations leave out the root's
    /// own copy, the others include every rank's own block, vector operations give sums.
    ///
    /// `ranks` is the communicator's size, at least 1.
    pub fn from_sums(operation: Operation, ranks: u32, send: u64, recv: u64) -> Sizes<'static> {
        let most = send.max(recv);
        let ranks = u64::from(ranks.max(1));
        // The root's sum is of p − 1 blocks, everybody else's is one block.
        let others = (ranks - 1).max(1);
        match (operation.sizing(), operation.root()) {
            (Sizing::None, _) => Sizes::Bytes(0),
            (Sizing::Vector, _) => Sizes::Bytes(most),
            (Sizing::EqualBlocks, Some(Root::Receives)) if recv > 0 => Sizes::Bytes(recv / others),
            (Sizing::EqualBlocks, Some(Root::Sends)) if send > 0 => Sizes::Bytes(send / others),
            (Sizing::EqualBlocks, Some(_)) => Sizes::Bytes(most),
            (Sizing::EqualBlocks, None) => Sizes::Bytes(if operation.reduces() { recv } else { send }),
            (Sizing::EqualPairs, _) => Sizes::Bytes(send / ranks),
            (Sizing::Blocks | Sizing::Pairs, _) => Sizes::Sums { send, recv },
        }
    }
}

/// The bytes of every rank's block, as prefix sums; optionally with the ranks' order by size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    starts: Vec<u64>,
    sorted: Option<Sorted>,
}

/// The root, then all others in order of size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sorted {
    rank_at: Vec<u32>,
    place_of: Vec<u32>,
    starts: Vec<u64>,
}

/// Direction of [`Counts::sorted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Smallest block first.
    Ascending,
    /// Largest block first.
    #[default]
    Descending,
}

impl Counts {
    /// Prefix sums of the ranks' bytes, given in rank order.
    pub fn new(bytes: impl IntoIterator<Item = u64>) -> Result<Counts, Error> {
        let starts = prefix_sums(bytes.into_iter())?;
        Ok(Counts { starts, sorted: None })
    }

    /// The same with the order that the sorted algorithms need: the root first, then the others by size,
    /// equal ones by rank.
    pub fn sorted(mut self, root: u32, order: Order) -> Result<Counts, Error> {
        let ranks = self.ranks();
        if root >= ranks {
            return Err(Error::RankOutside { rank: root, ranks });
        }
        let mut rank_at: Vec<u32> = (0..ranks).collect();
        rank_at.swap(0, root as usize);
        rank_at[1..].sort_unstable_by_key(|&rank| {
            let size = self.of(rank);
            (if order == Order::Ascending { size } else { u64::MAX - size }, rank)
        });
        let mut place_of = vec![0; ranks as usize];
        for (place, &rank) in (0u32..).zip(&rank_at) {
            place_of[rank as usize] = place;
        }
        let starts = prefix_sums(rank_at.iter().map(|&rank| self.of(rank)))?;
        self.sorted = Some(Sorted { rank_at, place_of, starts });
        Ok(self)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// Bytes of the shortest and of the longest block.
    pub(crate) fn extremes(&self) -> [u64; 2] {
        let lengths = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        [lengths.clone().min(), lengths.max()].map(Option::unwrap_or_default)
    }

    /// Bytes of one rank's block.
    pub fn of(&self, rank: u32) -> u64 {
        self.start(rank + 1) - self.start(rank)
    }

    /// Bytes of all blocks.
    pub fn total(&self) -> u64 {
        self.start(self.ranks())
    }

    /// Bytes before the block of `rank`, which may be the number of ranks.
    pub fn start(&self, rank: u32) -> u64 {
        self.starts[rank as usize]
    }

    /// Whether [`Counts::sorted`] was called for this root.
    pub(crate) fn is_sorted_for(&self, root: u32) -> bool {
        self.sorted.as_ref().is_some_and(|sorted| sorted.rank_at.first() == Some(&root))
    }

    /// The rank at a place of the order; unsorted counts are in rank order.
    pub(crate) fn rank_at(&self, place: u32) -> u32 {
        self.sorted.as_ref().map_or(place, |sorted| sorted.rank_at[place as usize])
    }

    /// The place of a rank in the order.
    pub(crate) fn place_of(&self, rank: u32) -> u32 {
        self.sorted.as_ref().map_or(rank, |sorted| sorted.place_of[rank as usize])
    }

    /// Bytes before a place of the order.
    pub(crate) fn sorted_start(&self, place: u32) -> u64 {
        self.sorted.as_ref().map_or(&self.starts, |sorted| &sorted.starts)[place as usize]
    }
}

fn prefix_sums(bytes: impl Iterator<Item = u64>) -> Result<Vec<u64>, Error> {
    let mut starts = vec![0u64];
    let mut sum = 0u64;
    for len in bytes {
        sum = sum.checked_add(len).ok_or(Error::TooLarge)?;
        starts.push(sum);
    }
    if starts.len() < 2 || starts.len() > crate::MAX_RANKS as usize + 1 {
        return Err(Error::Ranks { ranks: starts.len() as u64 - 1 });
    }
    Ok(starts)
}

//! The building blocks of algorithms.
//!
//! A [`Phase`] stands for a function of (lap, round, position) and the communicator's numbers to a step, so the cursor
//! keeps no other state. Ranks count from the root in rooted phases: such a number is called *virtual*, `v`.

mod all_to_all;
mod double_tree;
mod doubling;
mod halving;
mod irregular;
mod linear;
mod local;
mod ring;
mod scan;
mod split_binary;
mod tree;

use crate::cursor::Split;
use crate::phase::{Next, Phase, Which};
use crate::{Buffer, Combine, Cursor, Data, Sizes, Step};

impl Phase {
    /// The step at the cursor's place.
    #[inline]
    pub(crate) fn at(self, c: &Cursor, sizes: Sizes<'_>) -> Next {
        match self {
            Phase::CopyIn(buffer) => c.copy_in(buffer),
            Phase::CopyOwn => c.copy_own(sizes),
            Phase::CopyOwnPair => c.copy_own_pair(sizes),
            Phase::TakeOwn => c.take_own(sizes),
            Phase::TreeDown(tree) => c.tree_down(tree),
            Phase::TreeUp(tree, buffer) => c.tree_up(tree, buffer),
            Phase::ChosenTreeDown => c.tree_down(c.tree),
            Phase::ChosenTreeUp(buffer) => c.tree_up(c.tree, buffer),
            Phase::GatherUp => c.gather_up(sizes),
            Phase::ScatterDown(buffer, which) => c.scatter_down(buffer, which, sizes),
            Phase::SplitDown => c.split_down(),
            Phase::SplitExchange => c.split_exchange(),
            Phase::TwoTrees => c.two_trees(),
            Phase::ReduceInOrder => c.reduce_in_order(),
            Phase::GatherLinear { from, sorted } => c.gather_linear(from, sorted, sizes),
            Phase::GatherSync => c.gather_sync(sizes),
            Phase::ScatterLinear { from, sorted } => c.scatter_linear(from, sorted, sizes),
            Phase::SortedGatherUp => c.sorted_gather_up(sizes),
            Phase::SortedScatterDown => c.sorted_scatter_down(sizes),
            Phase::TraffUp => c.traff_up(sizes),
            Phase::TraffDown => c.traff_down(sizes),
            Phase::Fold(buffer) => c.fold(buffer),
            Phase::FoldHalves => c.fold_halves(),
            Phase::Unfold => c.unfold(),
            Phase::FoldPiece => c.fold_piece(sizes),
            Phase::UnfoldPieces => c.unfold_pieces(sizes),
            Phase::UnfoldOwn => c.unfold_own(sizes),
            Phase::Doubling => c.doubling(),
            Phase::DoublingGather => c.doubling_gather(sizes),
            Phase::DoublingSpread => c.doubling_spread(sizes),
            Phase::DoublingReduce => c.doubling_reduce(sizes),
            Phase::HalvingNear(buffer) => c.halving_near(buffer, sizes),
            Phase::DoublingBack => c.doubling_back(sizes),
            Phase::HandToRoot => c.hand_to_root(sizes),
            Phase::MirrorIn => c.mirror_in(sizes),
            Phase::MirrorOut => c.mirror_out(sizes),
            Phase::GatherToRoot => c.gather_to_root(sizes),
            Phase::HalvingFar => c.halving_far(sizes),
            Phase::RingReduce(buffer, which) => c.ring_reduce(buffer, which, sizes),
            Phase::RingGather(which) => c.ring_gather(which, sizes),
            Phase::RingGatherSegments => c.ring_gather_segments(sizes),
            Phase::RingChannels(buffer, which, lap) => c.ring_channels(buffer, which, lap, sizes),
            Phase::Neighbors => c.neighbors(sizes),
            Phase::BruckGather => c.bruck_gather(sizes),
            Phase::BruckExchange => c.bruck_exchange(),
            Phase::ExchangeAll { empty } => c.exchange_all(empty, sizes),
            Phase::ExchangePairwise => c.exchange_pairwise(sizes),
            Phase::ReducePairwise => c.reduce_pairwise(sizes),
            Phase::Dissemination => c.dissemination(),
            Phase::ScanChain => c.scan_chain(),
            Phase::ExscanChain => c.exscan_chain(),
            Phase::ScanDoubling => c.scan_doubling(),
        }
    }
}

pub(crate) const WAIT: Next = Next::Step(Step::Wait);

pub(crate) fn send(to: u32, buffer: Buffer, bytes: (u64, u64)) -> Next {
    Next::Step(Step::Send { to, data: Data::new(buffer, bytes) })
}

/// Whether these bytes are none, and everybody concerned knows: MPI libraries then send no message where blocks
/// are of unequal sizes.
pub(crate) fn is_silent((_, len): (u64, u64), sizes: Sizes<'_>) -> bool {
    len == 0 && matches!(sizes, Sizes::Blocks(_) | Sizes::Pairs { .. })
}

pub(crate) fn recv(from: u32, buffer: Buffer, bytes: (u64, u64)) -> Next {
    reduce(from, buffer, bytes, Combine::Store)
}

pub(crate) fn reduce(from: u32, buffer: Buffer, bytes: (u64, u64), combine: Combine) -> Next {
    Next::Step(Step::Recv { from, data: Data::new(buffer, bytes), combine })
}

pub(crate) fn local(from: (Buffer, (u64, u64)), into: (Buffer, (u64, u64)), combine: Combine) -> Next {
    Next::Step(Step::Local { from: Data::new(from.0, from.1), into: Data::new(into.0, into.1), combine })
}

/// What phases ask of the communicator's numbers and the split of the data.
impl Cursor {
    /// (a + b) mod p for a, b ≤ p.
    pub(crate) fn plus(&self, a: u32, b: u32) -> u32 {
        let sum = a + b;
        if sum >= self.ranks { sum - self.ranks } else { sum }
    }

    /// (a − b) mod p for a < p, b ≤ p.
    pub(crate) fn minus(&self, a: u32, b: u32) -> u32 {
        if a >= b { a - b } else { a + self.ranks - b }
    }

    /// This rank counted from the root.
    pub(crate) fn virtual_rank(&self) -> u32 {
        self.minus(self.rank, self.root)
    }

    /// The rank `v` places after the root.
    pub(crate) fn real_rank(&self, v: u32) -> u32 {
        self.plus(v, self.root)
    }

    /// This rank's number in a numbering of the pieces.
    pub(crate) fn number(&self, which: Which) -> u32 {
        match which {
            Which::Rank => self.rank,
            Which::Virtual => self.virtual_rank(),
            Which::Following => self.plus(self.rank, 1),
            Which::Preceding => self.minus(self.rank, 1),
        }
    }

    /// All bytes, (offset, length).
    pub(crate) fn all(&self) -> (u64, u64) {
        (0, self.total)
    }

    /// The bytes of a segment of the whole vector.
    pub(crate) fn segment(&self, segment: u32) -> (u64, u64) {
        let offset = u64::from(segment) * self.segment;
        (offset, self.segment.min(self.total - offset))
    }

    /// Bytes before piece `i`.
    pub(crate) fn start(&self, sizes: Sizes<'_>, i: u32) -> u64 {
        match self.split {
            Split::Even => u64::from(i) * self.piece + u64::from(i.min(self.wide)) * u64::from(self.unit),
            Split::Ceil => self.total.min(u64::from(i) * self.piece),
            // The vector is one piece, which only the halving divides.
            Split::Halves => {
                if i == 0 {
                    0
                } else {
                    self.total
                }
            }
            Split::Table => match sizes {
                Sizes::Blocks(counts) | Sizes::Pairs { send: counts, .. } => counts.start(i),
                // Not reached: the table is only chosen with counts.
                Sizes::Bytes(_) | Sizes::Sums { .. } => 0,
            },
        }
    }

    /// The bytes of piece `i`.
    pub(crate) fn piece(&self, sizes: Sizes<'_>, i: u32) -> (u64, u64) {
        let start = self.start(sizes, i);
        (start, self.start(sizes, i + 1) - start)
    }

    /// The bytes of `count` ≤ p pieces from `first` < p on, the last being followed by the first.
    pub(crate) fn span(&self, sizes: Sizes<'_>, first: u32, count: u32) -> (u64, u64) {
        let start = self.start(sizes, first);
        let end = first + count;
        let len = match end.checked_sub(self.ranks) {
            None => self.start(sizes, end) - start,
            Some(wrapped) => self.total - start + self.start(sizes, wrapped),
        };
        // Behind the last byte, where empty pieces lie, comes the first.
        (if start == self.total { 0 } else { start }, len)
    }
}

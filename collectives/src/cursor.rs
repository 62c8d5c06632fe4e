//! What a schedule is asked for, and the place in it: plain numbers, on which [`crate::phases`] works and which
//! [`crate::schedule`] moves on.

use crate::phase::Phase;
use crate::{Algorithm, Operation, Order, Tree};

/// What is asked of a rank: the operation and its place in the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The operation.
    pub operation: Operation,
    /// Communicator size, 1 to [`MAX_RANKS`](crate::MAX_RANKS).
    pub ranks: u32,
    /// Whose steps, a rank of the communicator.
    pub rank: u32,
    /// The root; not looked at where the operation has none.
    pub root: u32,
    /// Bytes of one element, which no split divides; 1 where it is not known.
    pub unit: u32,
}

/// An algorithm with its parameters, the same at every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Segment of the segmented algorithms, bytes; 0: do not segment.
    pub segment: u64,
    /// [`Algorithm::Chain`]: chains hanging from the root. [`Algorithm::Knomial`]: k. [`Algorithm::RingChannels`]: channels. [`Algorithm::Linear`] all-to-all: exchanges posted
    /// at once, 0 for all. 0 elsewhere means the
    /// least there can be.
    pub fanout: u32,
    /// The order of blocks of the sorted algorithms ([`Algorithm::sorts`]).
    pub order: Order,
    /// The tree of [`Algorithm::LinearGatherBcast`], [`Algorithm::ReduceThenScatter`] and [`Algorithm::ReduceThenLinearScatter`].
    pub tree: Tree,
}

impl Choice {
    /// The algorithm unsegmented, with one chain and no limit of messages posted at once, the largest block first.
    pub const fn plain(algorithm: Algorithm) -> Choice {
        Choice { algorithm, segment: 0, fanout: 0, order: Order::Descending, tree: Tree::Binomial }
    }

    /// The same in segments of that many bytes.
    pub const fn segmented(self, segment: u64) -> Choice {
        Choice { segment, ..self }
    }

    /// Whether values are reduced in rank order, so that the operation need not be commutative. It needs to be associative always.
    pub fn keeps_order(self, operation: Operation, root: u32) -> bool {
        use Algorithm::*;
        let algorithm = self.algorithm;
        match operation {
            Operation::Reduce => {
                matches!(algorithm, Linear | Rabenseifner)
                    || (root == 0 && matches!(algorithm, Binomial | Chain))
            }
            Operation::Allreduce => {
                matches!(
                    algorithm,
                    Linear | ReduceBcast | RecursiveDoubling | Rabenseifner | RabenseifnerHalves
                )
            }
            Operation::ReduceScatter | Operation::ReduceScatterBlock => match algorithm {
                ReduceThenScatter | ReduceThenLinearScatter => {
                    matches!(self.tree, Tree::Binomial | Tree::Chain | Tree::Flat)
                }
                _ => matches!(algorithm, Butterfly | RecursiveDoubling),
            },
            _ => true,
        }
    }
}

/// A place in one rank's schedule.
///
/// It borrows nothing: the sizes are handed to every [`Cursor::next`], so that whoever keeps many cursors of
/// one collective keeps the sizes once.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    pub(crate) phases: &'static [Phase],
    /// Place inside the first phase.
    pub(crate) lap: u32,
    pub(crate) round: u32,
    pub(crate) pos: u32,

    pub(crate) ranks: u32,
    pub(crate) rank: u32,
    pub(crate) root: u32,
    pub(crate) unit: u32,
    pub(crate) operation: Operation,
    pub(crate) split: Split,
    pub(crate) tree: Tree,
    pub(crate) fanout: u32,
    /// Bytes of all pieces.
    pub(crate) total: u64,
    /// Bytes of a piece; the first `wide` have one unit more.
    pub(crate) piece: u64,
    pub(crate) wide: u32,
    /// Segments (trees) or laps (rings) of `segment` bytes.
    pub(crate) segments: u32,
    pub(crate) segment: u64,
}

/// A round of a schedule: [`Step::Send`](crate::Step::Send), [`Step::Recv`](crate::Step::Recv) and [`Step::Wait`](crate::Step::Wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The receiver of what is sent.
    pub to: u32,
    /// How much that is.
    pub bytes: u64,
    /// The sender of what is received.
    pub from: u32,
}

/// How `total` falls into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Piece i has `piece` bytes, and one unit more if i < `wide`.
    Even,
    /// Every piece has `piece` bytes, but none reaches beyond `total`.
    Ceil,
    /// As the counts say.
    Table,
    /// In two, and these in two again, each left part being the shorter one if there is one.
    Halves,
}

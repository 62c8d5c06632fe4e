//! The algorithms: the list of all, and a file for each family.
//!
//! A new algorithm is a file that describes it (its steps, and for which operations) and a line in the list below. Decision
//! tables, `vef bench` and the proofs in `tests/` find it from there. Ranks count from the root in rooted phases: such a number
//! is called *virtual*, `v`.

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

use crate::names::named;
use crate::program::{Description, Needs, Program};
use crate::{Error, MAX_CHANNELS, Operation, Order, Tree};
use serde::{Deserialize, Serialize};

macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal in $file:ident::$description:ident;)+) => {
        named! {
            /// A way to carry an operation out. `docs/collectives.md` gives the sources and byte totals.
            Algorithm { $($(#[$doc])* $variant = $name,)+ }
        }

        impl Algorithm {
            /// What its file says of it.
            pub(crate) const fn description(self) -> &'static Description {
                match self { $(Algorithm::$variant => &$file::$description,)+ }
            }
        }
    };
}

algorithms! {
    /// No message at all: what MPI libraries do with zero bytes. Valid only then.
    Nothing = "nothing" in linear::NOTHING;
    /// Root with everybody, everybody with everybody, or rank after rank (scans).
    Linear = "linear" in linear::LINEAR;
    /// [`Algorithm::Linear`] all-to-all in which empty blocks of known sizes are messages, too.
    LinearEmpty = "linear-empty" in all_to_all::LINEAR_EMPTY;
    /// [`Algorithm::Linear`] gather in which the root calls each sender in turn by an empty message.
    LinearSync = "linear-sync" in linear::LINEAR_SYNC;
    /// Binomial tree whose subtrees are consecutive ranks (parent: lowest set bit cleared).
    Binomial = "binomial" in tree::BINOMIAL;
    /// Binomial tree whose children are far apart (parent: highest set bit cleared).
    BinomialSpread = "binomial-spread" in tree::BINOMIAL_SPREAD;
    /// k-nomial tree: the binomial one in base k, `fanout` being k (2 at least).
    Knomial = "knomial" in tree::KNOMIAL;
    /// `fanout` chains hanging from the root, segmented; one chain is the pipeline.
    Chain = "chain" in tree::CHAIN;
    /// Binary tree, segmented.
    Binary = "binary" in tree::BINARY;
    /// Each half of the data down one half of a binary tree, then pairs exchange halves.
    SplitBinary = "split-binary" in split_binary::SPLIT_BINARY;
    /// Binomial scatter, then ring allgather (van de Geijn).
    ScatterRing = "scatter-ring" in ring::SCATTER_RING;
    /// Binomial scatter, then recursive-doubling allgather (van de Geijn).
    ScatterDoubling = "scatter-doubling" in doubling::SCATTER_DOUBLING;
    /// Binomial reduction to rank 0, then binomial broadcast.
    ReduceBcast = "reduce-bcast" in tree::REDUCE_BCAST;
    /// Binomial gather to rank 0, then binomial broadcast.
    GatherBcast = "gather-bcast" in tree::GATHER_BCAST;
    /// Linear gather to rank 0, then broadcast along `tree`.
    LinearGatherBcast = "linear-gather-bcast" in linear::LINEAR_GATHER_BCAST;
    /// Reduction to rank 0 along `tree`, then binomial scatter.
    ReduceThenScatter = "reduce-then-scatter" in tree::REDUCE_THEN_SCATTER;
    /// Reduction to rank 0 along `tree`, then linear scatter.
    ReduceThenLinearScatter = "reduce-then-linear-scatter" in linear::REDUCE_THEN_LINEAR_SCATTER;
    /// Exchange with the rank at distance 1, 2, 4 …
    RecursiveDoubling = "recursive-doubling" in doubling::RECURSIVE_DOUBLING;
    /// Exchange half of what is left with the rank at distance p/2, p/4 …
    RecursiveHalving = "recursive-halving" in halving::RECURSIVE_HALVING;
    /// Reduce-scatter by recursive halving, then allgather or gather by recursive doubling.
    Rabenseifner = "rabenseifner" in halving::RABENSEIFNER;
    /// [`Algorithm::Rabenseifner`] in which a surplus rank and its partner each reduce half of the vector before the partner goes on alone.
    RabenseifnerHalves = "rabenseifner-halves" in halving::RABENSEIFNER_HALVES;
    /// Reduce-scatter by recursive halving at distance 1, 2, 4 …, after which each block goes to the rank whose number has its bits reversed (Träff).
    Butterfly = "butterfly" in halving::BUTTERFLY;
    /// From each rank to the next, p − 1 times (reductions: 2(p − 1) times).
    Ring = "ring" in ring::RING;
    /// [`Algorithm::Ring`] whose blocks are sent segment by segment; in allgatherv without empty messages, and in segments no shorter than the
    /// shortest block.
    SegmentedRing = "segmented-ring" in ring::SEGMENTED_RING;
    /// [`Algorithm::Ring`] as NCCL runs it: each piece in `fanout` channels, whose segments go around side by side, and a segment all the way before the
    /// next.
    RingChannels = "ring-channels" in ring::RING_CHANNELS;
    /// Two binary trees, each with half of the vector, segmented; whoever is within one is a leaf of the other.
    DoubleTree = "double-tree" in double_tree::DOUBLE_TREE;
    /// log₂ p rounds, doubling the blocks held (allgather) or moving those with a bit set (all-to-all).
    Bruck = "bruck" in all_to_all::BRUCK;
    /// Alternate exchange of two blocks with the left and right neighbour; even p only.
    NeighborExchange = "neighbor-exchange" in ring::NEIGHBOR_EXCHANGE;
    /// In round i with the ranks at distance i.
    Pairwise = "pairwise" in all_to_all::PAIRWISE;
    /// Round k tells the rank 2ᵏ further on; ⌈log₂ p⌉ rounds.
    Dissemination = "dissemination" in all_to_all::DISSEMINATION;
    /// [`Algorithm::Linear`] in the order of block sizes.
    SortedLinear = "sorted-linear" in irregular::SORTED_LINEAR;
    /// [`Algorithm::Binomial`] over the ranks in the order of block sizes.
    SortedBinomial = "sorted-binomial" in irregular::SORTED_BINOMIAL;
    /// Träff's tree: of two neighbouring cubes of ranks the one with less data gives to the other.
    Traff = "traff" in irregular::TRAFF;
}

impl Algorithm {
    /// The algorithms there are for `operation`.
    pub fn of(operation: Operation) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.iter().copied().filter(move |algorithm| algorithm.program(operation).is_some())
    }

    /// Whether it needs the blocks in an order of their sizes ([`crate::Counts::sorted`]).
    pub fn sorts(self) -> bool {
        self.description().needs == Needs::Sorted
    }

    pub(crate) fn program(self, operation: Operation) -> Option<&'static Program> {
        self.description().program(operation)
    }
}

/// An algorithm with its parameters, the same at every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Segment of the segmented algorithms, bytes; 0: do not segment.
    pub segment: u64,
    /// [`Algorithm::Chain`]: chains hanging from the root. [`Algorithm::Knomial`]: k. [`Algorithm::RingChannels`]: channels, at most
    /// [`MAX_CHANNELS`]. [`Algorithm::Linear`] all-to-all: exchanges posted at once, 0 for all. 0 elsewhere means the least there can be; more than
    /// the communicator's ranks need is as much as they need.
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

    /// Refuses parameters with which a schedule would hardly end. All others have few steps beyond those that send or receive.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.algorithm {
            Algorithm::RingChannels if self.fanout > MAX_CHANNELS => {
                Err(Error::TooManyChannels { channels: self.fanout })
            }
            _ => Ok(()),
        }
    }

    /// Whether values are reduced in rank order, so that the operation need not be commutative. It needs to be associative always.
    pub fn keeps_order(self, operation: Operation, root: u32) -> bool {
        let program = self.algorithm.program(operation);
        !operation.reduces() || program.is_some_and(|program| program.in_order.holds(root, self.tree))
    }
}

//! Algorithms and trees, by the field's names. The table of programs alone decides which operation has which algorithms;
//! [`Algorithm::of`] asks it.

use serde::{Deserialize, Serialize};

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The name used in tables and reports.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }

            /// The variant of that name, if there is one.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named! {
    /// A way to carry an operation out. `docs/collectives.md` gives the sources and byte totals.
    Algorithm {
        /// No message at all: what MPI libraries do with zero bytes. Valid only then.
        Nothing = "nothing",
        /// Root with everybody, everybody with everybody, or rank after rank (scans).
        Linear = "linear",
        /// [`Algorithm::Linear`] all-to-all in which empty blocks of known sizes are messages, too.
        LinearEmpty = "linear-empty",
        /// [`Algorithm::Linear`] gather in which the root calls each sender in turn by an empty message.
        LinearSync = "linear-sync",
        /// Binomial tree whose subtrees are consecutive ranks (parent: lowest set bit cleared).
        Binomial = "binomial",
        /// Binomial tree whose children are far apart (parent: highest set bit cleared).
        BinomialSpread = "binomial-spread",
        /// k-nomial tree: the binomial one in base k, `fanout` being k (2 at least).
        Knomial = "knomial",
        /// `fanout` chains hanging from the root, segmented; one chain is the pipeline.
        Chain = "chain",
        /// Binary tree, segmented.
        Binary = "binary",
        /// Each half of the data down one half of a binary tree, then pairs exchange halves.
        SplitBinary = "split-binary",
        /// Binomial scatter, then ring allgather (van de Geijn).
        ScatterRing = "scatter-ring",
        /// Binomial scatter, then recursive-doubling allgather (van de Geijn).
        ScatterDoubling = "scatter-doubling",
        /// Binomial reduction to rank 0, then binomial broadcast.
        ReduceBcast = "reduce-bcast",
        /// Binomial gather to rank 0, then binomial broadcast.
        GatherBcast = "gather-bcast",
        /// Linear gather to rank 0, then broadcast along `tree`.
        LinearGatherBcast = "linear-gather-bcast",
        /// Reduction to rank 0 along `tree`, then binomial scatter.
        ReduceThenScatter = "reduce-then-scatter",
        /// Reduction to rank 0 along `tree`, then linear scatter.
        ReduceThenLinearScatter = "reduce-then-linear-scatter",
        /// Exchange with the rank at distance 1, 2, 4 …
        RecursiveDoubling = "recursive-doubling",
        /// Exchange half of what is left with the rank at distance p/2, p/4 …
        RecursiveHalving = "recursive-halving",
        /// Reduce-scatter by recursive halving, then allgather or gather by recursive doubling.
        Rabenseifner = "rabenseifner",
        /// [`Algorithm::Rabenseifner`] in which a surplus rank and its partner each reduce half of the vector before the partner goes on alone.
        RabenseifnerHalves = "rabenseifner-halves",
        /// Reduce-scatter by recursive halving at distance 1, 2, 4 …, after which each block goes to the rank whose number has its bits reversed (Träff).
        Butterfly = "butterfly",
        /// From each rank to the next, p − 1 times (reductions: 2(p − 1) times).
        Ring = "ring",
        /// [`Algorithm::Ring`] whose blocks are sent segment by segment; in allgatherv without empty messages, and in segments no shorter than the
        /// shortest block.
        SegmentedRing = "segmented-ring",
        /// [`Algorithm::Ring`] as NCCL runs it: each piece in `fanout` channels, whose segments go around side by side, and a segment all the way before the
        /// next.
        RingChannels = "ring-channels",
        /// Two binary trees, each with half of the vector, segmented; whoever is within one is a leaf of the other.
        DoubleTree = "double-tree",
        /// log₂ p rounds, doubling the blocks held (allgather) or moving those with a bit set (all-to-all).
        Bruck = "bruck",
        /// Alternate exchange of two blocks with the left and right neighbour; even p only.
        NeighborExchange = "neighbor-exchange",
        /// In round i with the ranks at distance i.
        Pairwise = "pairwise",
        /// Round k tells the rank 2ᵏ further on; ⌈log₂ p⌉ rounds.
        Dissemination = "dissemination",
        /// [`Algorithm::Linear`] in the order of block sizes.
        SortedLinear = "sorted-linear",
        /// [`Algorithm::Binomial`] over the ranks in the order of block sizes.
        SortedBinomial = "sorted-binomial",
        /// Träff's tree: of two neighbouring cubes of ranks the one with less data gives to the other.
        Traff = "traff",
    }
}

impl Algorithm {
    /// Whether it needs the blocks in an order of their sizes ([`crate::Counts::sorted`]).
    pub const fn sorts(self) -> bool {
        matches!(self, Algorithm::SortedLinear | Algorithm::SortedBinomial)
    }
}

named! {
    /// The shape of a tree over p nodes, of which node 0 is the root.
    #[derive(Default)]
    Tree {
        /// All others are children of 0.
        Flat = "flat",
        /// Parent: lowest set bit cleared. The subtree of v is [v, v + lowest bit of v).
        #[default]
        Binomial = "binomial",
        /// Parent: highest set bit cleared.
        BinomialSpread = "binomial-spread",
        /// In base `fanout`, parent: lowest digit other than 0 cleared.
        Knomial = "knomial",
        /// `fanout` chains of consecutive nodes, as equal as can be, the longer ones first.
        Chain = "chain",
        /// Level l holds 2ˡ consecutive nodes; the children of v on it are v + 2ˡ and v + 2·2ˡ.
        Binary = "binary",
    }
}

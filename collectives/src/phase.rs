//! What schedules are put together from: the names of the building blocks, which [`crate::phases`] works out step by step.

use crate::{Buffer, Step, Tree};

/// A building block; the schedules' table tells which follow one another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    // In memory.
    /// The whole input into a buffer.
    CopyIn(Buffer),
    /// The input, one block, to its place in the output.
    CopyOwn,
    /// The input's block for oneself to the output.
    CopyOwnPair,
    /// The rank's block of input (scatter) or work (reduce-scatter) to the output.
    TakeOwn,

    // Trees.
    /// The output from parents to children, by segments.
    TreeDown(Tree),
    /// A buffer reduced from children to parents, by segments.
    TreeUp(Tree, Buffer),
    /// [`Phase::TreeDown`] along the tree of the choice.
    ChosenTreeDown,
    /// [`Phase::TreeUp`] along the tree of the choice.
    ChosenTreeUp(Buffer),
    /// Blocks up a binomial tree.
    GatherUp,
    /// Pieces down a binomial tree: rank i's block (`Rank`) or the i-th piece counted from the root (`Virtual`).
    ScatterDown(Buffer, Which),
    /// Each half of the vector down its half of a binary tree.
    SplitDown,
    /// The halves exchanged.
    SplitExchange,
    /// Each half reduced up a binary tree and passed down, at the same time.
    TwoTrees,

    // The root with everybody.
    /// Contributions reduced in rank order at the root.
    ReduceInOrder,
    /// All blocks to the root, from the input, or from their places in another buffer.
    GatherLinear { from: Buffer, sorted: bool },
    /// The same, called one by one.
    GatherSync,
    /// All blocks from the root's input to the output, or from their places in another buffer to the same places.
    ScatterLinear { from: Buffer, sorted: bool },

    // Irregular blocks.
    /// Blocks up a binomial tree over the ranks sorted by size.
    SortedGatherUp,
    /// Blocks down that tree.
    SortedScatterDown,
    /// Blocks up Träff's tree.
    TraffUp,
    /// Blocks down Träff's tree.
    TraffDown,

    // Powers of two: the surplus ranks first hand over to a neighbour (fold), at the end they are served (unfold).
    /// The surplus ranks' vectors are reduced into their partners'.
    Fold(Buffer),
    /// The surplus ranks and their partners each reduce half of the vector; the partners get both.
    FoldHalves,
    /// The surplus ranks get the result.
    Unfold,
    /// The surplus ranks' pieces go to their partners.
    FoldPiece,
    /// The surplus ranks get all pieces but their own.
    UnfoldPieces,
    /// The surplus ranks get their own piece.
    UnfoldOwn,
    /// Whole vectors exchanged and reduced at distance 1, 2, 4 …
    Doubling,
    /// All pieces held exchanged at distance 1, 2, 4 …
    DoublingGather,
    /// The same counted from the root and among all ranks: those that have no partner get the pieces of a tree cut short from others of their own tree.
    DoublingSpread,
    /// The pieces outside of a tree of 2ᵏ ranks reduced at distance 2ᵏ, among all ranks in the same way; ends with the rank's own piece.
    DoublingReduce,
    /// Half of what is left of a buffer reduced at distance 1, 2, 4 …
    HalvingNear(Buffer),
    /// The way of [`Phase::HalvingNear`] back: everybody gets everything.
    DoublingBack,
    /// A root that is a surplus rank gets what rank 0 has reduced, and takes its place.
    HandToRoot,
    /// The way of [`Phase::HalvingNear`] back: the root gets everything.
    GatherToRoot,
    /// The input into the work buffer; of a power of two of equal blocks, each to the place whose number has its bits reversed.
    MirrorIn,
    /// Each block that [`Phase::HalvingNear`] has reduced to its rank's output.
    MirrorOut,
    /// Half of what is left reduced at distance p/2, p/4 …; ends with the rank's own piece.
    HalvingFar,

    // Rings.
    /// Pieces reduced around the ring, in laps of one segment of each piece; `Which` is sent first.
    RingReduce(Buffer, Which),
    /// Pieces passed around the ring; `Which` is held at the beginning.
    RingGather(Which),
    /// The same for blocks by rank, each in segments and without empty messages.
    RingGatherSegments,
    /// Pieces reduced around the ring, passed around it, or both, in laps of one segment of each channel's part of a piece: buffer, and which piece is
    /// sent first.
    RingChannels(Buffer, Which, Lap),
    /// Pairs of blocks exchanged with the two neighbours in turn.
    Neighbors,

    // Everybody with everybody.
    /// Blocks held so far sent to distance 1, 2, 4 …
    BruckGather,
    /// Blocks whose distance has bit k set sent to distance 2ᵏ.
    BruckExchange,
    /// All blocks exchanged at once, or so many at a time; the empty ones, too, or not.
    ExchangeAll { empty: bool },
    /// Blocks exchanged with one rank a round.
    ExchangePairwise,
    /// Blocks exchanged with one rank a round, and reduced.
    ReducePairwise,
    /// An empty message to distance 1, 2, 4 …
    Dissemination,

    // Prefixes.
    /// From rank to rank, inclusive.
    ScanChain,
    /// From rank to rank, exclusive.
    ExscanChain,
    /// At distance 1, 2, 4 …
    ScanDoubling,
}

/// How the ranks' pieces are numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// By rank.
    Rank,
    /// From the root on.
    Virtual,
    /// By the rank after.
    Following,
    /// By the rank before.
    Preceding,
}

/// What a lap of [`Phase::RingChannels`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lap {
    /// Reduces: everybody ends with one piece.
    Reduce,
    /// Passes on: everybody ends with all pieces.
    Gather,
    /// One after the other.
    Both,
}

/// What a phase returns.
pub(crate) enum Next {
    /// This step; then the next position.
    Step(Step),
    /// Nothing here; go to the next position.
    Skip,
    /// Go to the next round.
    Round,
    /// Go to the next lap.
    Lap,
    /// The phase is over.
    Done,
}

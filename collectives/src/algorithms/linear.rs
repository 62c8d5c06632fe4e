//! The root with everybody, one message each.
//!
//! Empty blocks of known sizes cause no message here, as in MPI libraries.

use crate::Buffer::{self, Arrival, Input, Output, Work};
use crate::cursor::{Cursor, Next};
use crate::program::{Description, Needs, WAIT, is_silent, local, programs, recv, reduce, send};
use crate::{Combine, Sizes, Tree};

/// Any operation of zero bytes.
pub(super) const NOTHING: Description = Description::new(programs! {
    Bcast | Reduce | Allreduce | Gather | Scatter | Allgather | Alltoall | Gatherv | Scatterv | Allgatherv | Alltoallv
    | Alltoallw | ReduceScatter | ReduceScatterBlock | Scan | Exscan [Always]: ;
});

pub(super) const LINEAR: Description = Description {
    needs: Needs::Own,
    ..Description::new(programs! {
        Bcast: tree_down(Tree::Flat);
        Reduce [Always]: reduce_in_order();
        Allreduce [Always]: reduce_in_order(), tree_down(Tree::Flat);
        Gather | Gatherv: gather_linear(Input, false);
        Scatter | Scatterv: scatter_linear(Input, false);
        Alltoall | Alltoallv | Alltoallw: copy_own_pair(), exchange_all(false);
        Scan [Always]: scan_chain();
        Exscan [Always]: exscan_chain();
        Barrier: tree_up(Tree::Flat, Output), tree_down(Tree::Flat);
    })
};

pub(super) const LINEAR_SYNC: Description =
    Description { needs: Needs::Own, ..Description::new(programs! { Gather | Gatherv: gather_sync(); }) };

pub(super) const LINEAR_GATHER_BCAST: Description = Description::new(programs! {
    Allgather | Allgatherv: copy_own(), gather_linear(Output, false), chosen_tree_down();
});

pub(super) const REDUCE_THEN_LINEAR_SCATTER: Description = Description::new(programs! {
    ReduceScatter | ReduceScatterBlock [ByTree]:
        copy_in(Work), chosen_tree_up(Work), scatter_linear(Work, false), take_own();
});

/// A step of a linear gather or scatter.
enum Linear {
    /// The message of a rank with its own block.
    Leaf((u64, u64)),
    /// The root's message with the block of a rank.
    Root(u32, (u64, u64)),
    /// The root's own block.
    Own((u64, u64)),
    /// No block moves.
    Else(Next),
}

impl Cursor {
    /// The block of a rank at the root. Under sums the root's own block is unknown and left out.
    fn block(&self, rank: u32, sizes: Sizes<'_>) -> (u64, u64) {
        match sizes {
            Sizes::Sums { .. } => match self.minus(rank, self.root) {
                0 => (0, 0),
                v => self.piece(sizes, v - 1),
            },
            _ => self.piece(sizes, rank),
        }
    }

    /// The bytes of this rank's own block, in a buffer of its own. Not for the root under sums.
    fn own(&self, sizes: Sizes<'_>) -> (u64, u64) {
        match sizes {
            Sizes::Sums { .. } => self.all(),
            _ => (0, self.piece(sizes, self.rank).1),
        }
    }

    fn peer(&self, place: u32, sorted: bool, sizes: Sizes<'_>) -> u32 {
        match sizes {
            Sizes::Blocks(counts) if sorted => counts.rank_at(place),
            _ => place,
        }
    }

    /// All blocks to the root, from the input, or from their places in another buffer.
    pub(crate) fn gather_linear(&self, from: Buffer, sorted: bool, sizes: Sizes<'_>) -> Next {
        match self.linear(from != Input, sorted, sizes) {
            Linear::Leaf(own) => send(self.root, from, own),
            Linear::Root(peer, block) => recv(peer, Output, block),
            Linear::Own(block) => local((Input, (0, block.1)), (Output, block), Combine::Store),
            Linear::Else(next) => next,
        }
    }

    /// All blocks from the root's input to the output, or from their places in another buffer to the same places.
    pub(crate) fn scatter_linear(&self, from: Buffer, sorted: bool, sizes: Sizes<'_>) -> Next {
        let into = if from == Input { Output } else { from };
        match self.linear(from != Input, sorted, sizes) {
            Linear::Leaf(own) => recv(self.root, into, own),
            Linear::Root(peer, block) => send(peer, from, block),
            Linear::Own(block) => local((Input, block), (Output, (0, block.1)), Combine::Store),
            Linear::Else(next) => next,
        }
    }

    /// The step in which a block goes from its rank to the root, or back; empty blocks stay. `in_place`: blocks have their places in one buffer.
    fn linear(&self, in_place: bool, sorted: bool, sizes: Sizes<'_>) -> Linear {
        if self.rank != self.root {
            let own = if in_place { self.piece(sizes, self.rank) } else { self.own(sizes) };
            return match self.pos {
                0 if is_silent(own, sizes) => Linear::Else(Next::Done),
                0 => Linear::Leaf(own),
                1 => Linear::Else(WAIT),
                _ => Linear::Else(Next::Done),
            };
        }
        if self.pos >= self.ranks {
            return Linear::Else(if self.pos == self.ranks { WAIT } else { Next::Done });
        }
        let peer = self.peer(self.pos, sorted, sizes);
        let block = if in_place { self.piece(sizes, peer) } else { self.block(peer, sizes) };
        match peer == self.root {
            true if in_place => Linear::Else(Next::Skip),
            true => Linear::Own(block),
            false if is_silent(block, sizes) => Linear::Else(Next::Skip),
            false => Linear::Root(peer, block),
        }
    }

    /// The root calls each rank by an empty message; its block comes in two messages: the first segment and
    /// the rest, empty as it may be.
    pub(crate) fn gather_sync(&self, sizes: Sizes<'_>) -> Next {
        let first = |(offset, len): (u64, u64)| (offset, self.segment.min(len));
        let rest = |(offset, len): (u64, u64)| (offset + self.segment.min(len), len - self.segment.min(len));
        if self.rank != self.root {
            let own = self.own(sizes);
            return match self.pos {
                0 => recv(self.root, Arrival, (0, 0)),
                1 => WAIT,
                2 => send(self.root, Input, first(own)),
                3 => send(self.root, Input, rest(own)),
                4 => WAIT,
                _ => Next::Done,
            };
        }
        let peer = self.round;
        if peer == self.ranks {
            return Next::Done;
        }
        let block = self.block(peer, sizes);
        match self.pos {
            0 if peer == self.root => local((Input, (0, block.1)), (Output, block), Combine::Store),
            _ if peer == self.root => Next::Round,
            0 => recv(peer, Output, first(block)),
            1 => send(peer, Arrival, (0, 0)),
            2 => recv(peer, Output, rest(block)),
            3 => WAIT,
            _ => Next::Round,
        }
    }

    /// From the highest rank down, so that the operation's order is kept with one vector of scratch.
    pub(crate) fn reduce_in_order(&self, _: Sizes<'_>) -> Next {
        if self.rank != self.root {
            return match self.pos {
                0 => send(self.root, Input, self.all()),
                1 => WAIT,
                _ => Next::Done,
            };
        }
        let Some(peer) = (self.ranks - 1).checked_sub(self.round) else { return Next::Done };
        let combine = if self.round == 0 { Combine::Store } else { Combine::Before };
        match self.pos {
            0 if peer == self.root => local((Input, self.all()), (Output, self.all()), combine),
            0 => reduce(peer, Output, self.all(), combine),
            1 if peer != self.root => WAIT,
            _ => Next::Round,
        }
    }
}

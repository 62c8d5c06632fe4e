//! Trees: broadcast and reduction by segments, gather and scatter along the binomial tree.
//!
//! Nodes are virtual ranks, the root being 0.

use crate::Buffer::{self, Input, Output, Work};
use crate::cursor::{Cursor, Next, Which};
use crate::program::{Description, WAIT, programs, recv, reduce, send};
use crate::{Combine, Sizes, Tree};

pub(super) const BINOMIAL: Description = Description::new(programs! {
    Bcast: tree_down(Tree::Binomial);
    Reduce [FromRank0]: copy_in(Output), tree_up(Tree::Binomial, Output);
    Gather | Gatherv: copy_own(), gather_up();
    Scatter | Scatterv: scatter_down(Input, Which::Rank), take_own();
    Barrier: tree_up(Tree::Binomial, Output), tree_down(Tree::Binomial);
});

pub(super) const BINOMIAL_SPREAD: Description =
    Description::new(programs! { Bcast: tree_down(Tree::BinomialSpread); });

pub(super) const KNOMIAL: Description = Description::new(programs! { Bcast: tree_down(Tree::Knomial); });

pub(super) const CHAIN: Description = Description::new(programs! {
    Bcast: tree_down(Tree::Chain);
    Reduce [FromRank0]: copy_in(Output), tree_up(Tree::Chain, Output);
});

pub(super) const BINARY: Description = Description::new(programs! {
    Bcast: tree_down(Tree::Binary);
    Reduce: copy_in(Output), tree_up(Tree::Binary, Output);
});

pub(super) const REDUCE_BCAST: Description = Description::new(programs! {
    Allreduce [Always]: copy_in(Output), tree_up(Tree::Binomial, Output), tree_down(Tree::Binomial);
});

pub(super) const GATHER_BCAST: Description = Description::new(programs! {
    Allgather | Allgatherv: copy_own(), gather_up(), tree_down(Tree::Binomial);
});

pub(super) const REDUCE_THEN_SCATTER: Description = Description::new(programs! {
    ReduceScatter | ReduceScatterBlock [ByTree]:
        copy_in(Work), chosen_tree_up(Work), scatter_down(Work, Which::Rank), take_own();
});

/// Bits needed to write `x`; 0 for 0.
fn bits(x: u32) -> u32 {
    u32::BITS - x.leading_zeros()
}

/// Nodes of the binomial subtree below and including v ≠ 0.
pub(crate) fn binomial_subtree(v: u32, ranks: u32) -> u32 {
    (1 << v.trailing_zeros()).min(ranks - v)
}

impl Cursor {
    /// Parent of v ≠ 0.
    pub(crate) fn parent(&self, tree: Tree, v: u32) -> u32 {
        match tree {
            Tree::Flat => 0,
            Tree::Binomial => v & (v - 1),
            Tree::BinomialSpread => v ^ (1 << (bits(v) - 1)),
            Tree::Knomial => v - v % self.radix().saturating_mul(self.knomial_step(v)),
            Tree::Chain => {
                let (long, chains_of_long) = self.chains();
                let beyond = (v - 1).checked_sub(long * chains_of_long);
                let at = match beyond {
                    None => (v - 1) % long,
                    Some(beyond) => beyond % (long - 1),
                };
                if at == 0 { 0 } else { v - 1 }
            }
            Tree::Binary => {
                let level = bits(v + 1) - 1;
                let above = 1 << (level - 1);
                // The level above is [above − 1, 2·above − 1).
                if v - above < 2 * above - 1 { v - above } else { v - 2 * above }
            }
        }
    }

    /// Number of children of v.
    pub(crate) fn children(&self, tree: Tree, v: u32) -> u32 {
        let after = self.ranks - 1 - v;
        match tree {
            Tree::Flat if v == 0 => after,
            Tree::Flat => 0,
            Tree::Binomial => bits(after).min(v.trailing_zeros()),
            Tree::BinomialSpread => bits(after).saturating_sub(bits(v)),
            Tree::Knomial => {
                let steps = std::iter::successors(Some(1u32), |step| Some(step.saturating_mul(self.radix())));
                let below = steps.take_while(|&step| step < self.knomial_step(v) && step <= after);
                below.map(|step| (after / step).min(self.radix() - 1)).sum()
            }
            Tree::Chain if v == 0 => self.fanout.clamp(1, after.max(1)).min(after),
            Tree::Chain if after == 0 => 0,
            Tree::Chain => u32::from(self.parent(tree, v + 1) == v),
            Tree::Binary => (after >> (bits(v + 1) - 1)).min(2),
        }
    }

    /// The i-th child of v, the one with the largest subtree (where they differ) last.
    pub(crate) fn child(&self, tree: Tree, v: u32, i: u32) -> u32 {
        match tree {
            Tree::Flat => i + 1,
            Tree::Binomial => v + (1 << i),
            Tree::BinomialSpread => v + (1 << (bits(v) + i)),
            Tree::Knomial => {
                let per_step = self.radix() - 1;
                v + (i % per_step + 1) * self.radix().pow(i / per_step)
            }
            Tree::Chain if v == 0 => {
                let (long, chains_of_long) = self.chains();
                1 + i * long - i.saturating_sub(chains_of_long)
            }
            Tree::Chain => v + 1,
            Tree::Binary => v + ((i + 1) << (bits(v + 1) - 1)),
        }
    }

    fn radix(&self) -> u32 {
        self.fanout.clamp(2, self.ranks.max(2))
    }

    /// The least power of the radix that does not divide v when multiplied by it; for 0 one not below p.
    fn knomial_step(&self, v: u32) -> u32 {
        let mut step = 1u32;
        while step < self.ranks && v.is_multiple_of(self.radix().saturating_mul(step)) {
            step = step.saturating_mul(self.radix());
        }
        step
    }

    /// (length of a long chain, number of those); the other chains are shorter by one.
    fn chains(&self) -> (u32, u32) {
        let nodes = self.ranks - 1;
        let chains = self.fanout.clamp(1, nodes.max(1));
        let long = nodes.div_ceil(chains).max(1);
        (long, nodes - (long - 1) * chains)
    }

    /// Round s: wait for segment s, ask for segment s + 1, pass segment s on.
    pub(crate) fn tree_down(&self, tree: Tree, _: Sizes<'_>) -> Next {
        let v = self.virtual_rank();
        let (s, last) = (self.round, self.round + 1 == self.segments);
        let children = self.children(tree, v);
        match self.pos {
            0 if v != 0 && s == 0 => recv(self.real_rank(self.parent(tree, v)), Output, self.segment(0)),
            1 if v != 0 => WAIT,
            2 if v != 0 && !last => recv(self.real_rank(self.parent(tree, v)), Output, self.segment(s + 1)),
            0..=2 => Next::Skip,
            pos if pos - 3 < children => {
                // The flat tree and the spread one go upwards as MPI libraries do, the others serve the largest subtree first.
                let i = pos - 3;
                let i = if matches!(tree, Tree::Binomial | Tree::Knomial) { children - 1 - i } else { i };
                send(self.real_rank(self.child(tree, v, i)), Output, self.segment(s))
            }
            pos if pos - 3 == children && children > 0 && (v == 0 || last) => WAIT,
            _ if last => Next::Done,
            _ => Next::Round,
        }
    }

    /// [`Cursor::tree_down`] along the tree of the choice.
    pub(crate) fn chosen_tree_down(&self, sizes: Sizes<'_>) -> Next {
        self.tree_down(self.tree, sizes)
    }

    /// [`Cursor::tree_up`] along the tree of the choice.
    pub(crate) fn chosen_tree_up(&self, buffer: Buffer, sizes: Sizes<'_>) -> Next {
        self.tree_up(self.tree, buffer, sizes)
    }

    /// Round s: segment s from all children, then to the parent while the next one arrives.
    pub(crate) fn tree_up(&self, tree: Tree, buffer: Buffer, _: Sizes<'_>) -> Next {
        let v = self.virtual_rank();
        let (s, last) = (self.round, self.round + 1 == self.segments);
        let children = self.children(tree, v);
        match self.pos {
            pos if pos < children => {
                let child = self.real_rank(self.child(tree, v, pos));
                reduce(child, buffer, self.segment(s), Combine::After)
            }
            pos if pos == children && (children > 0 || s > 0) => WAIT,
            pos if pos == children => Next::Skip,
            pos if pos == children + 1 && v != 0 => {
                send(self.real_rank(self.parent(tree, v)), buffer, self.segment(s))
            }
            pos if pos == children + 2 && v != 0 && last => WAIT,
            _ if last => Next::Done,
            _ => Next::Round,
        }
    }

    /// Blocks up a binomial tree.
    pub(crate) fn gather_up(&self, sizes: Sizes<'_>) -> Next {
        let v = self.virtual_rank();
        let children = self.children(Tree::Binomial, v);
        match self.pos {
            pos if pos < children => {
                let child = self.child(Tree::Binomial, v, pos);
                recv(self.real_rank(child), Output, self.subtree(child, Which::Rank, sizes))
            }
            pos if pos == children && children > 0 => WAIT,
            pos if pos == children => Next::Skip,
            pos if pos == children + 1 && v != 0 => {
                let parent = self.real_rank(self.parent(Tree::Binomial, v));
                send(parent, Output, self.subtree(v, Which::Rank, sizes))
            }
            pos if pos == children + 2 && v != 0 => WAIT,
            _ => Next::Done,
        }
    }

    /// Pieces down a binomial tree: rank i's block (`Rank`) or the i-th piece counted from the root (`Virtual`).
    pub(crate) fn scatter_down(&self, buffer: Buffer, which: Which, sizes: Sizes<'_>) -> Next {
        let v = self.virtual_rank();
        let children = self.children(Tree::Binomial, v);
        match self.pos {
            0 if v != 0 => {
                let parent = self.real_rank(self.parent(Tree::Binomial, v));
                recv(parent, buffer, self.subtree(v, which, sizes))
            }
            1 if v != 0 => WAIT,
            0..=1 => Next::Skip,
            pos if pos - 2 < children => {
                let child = self.child(Tree::Binomial, v, children - 1 - (pos - 2));
                send(self.real_rank(child), buffer, self.subtree(child, which, sizes))
            }
            pos if pos - 2 == children && children > 0 => WAIT,
            _ => Next::Done,
        }
    }

    /// The bytes below node v of the binomial tree.
    fn subtree(&self, v: u32, which: Which, sizes: Sizes<'_>) -> (u64, u64) {
        let first = if matches!(which, Which::Virtual) { v } else { self.real_rank(v) };
        self.span(sizes, first, binomial_subtree(v, self.ranks))
    }
}

//! Gather and scatter of blocks of unequal sizes along trees that look at the sizes.
//!
//! *Sorted binomial*: the binomial tree over places in the order of [`Counts::sorted`]; data in transit lies
//! packed in that order in the work buffer.
//! *Träff*: cubes of 2ᵈ consecutive ranks pair up; the cube with more data, or the root, keeps its leader and the
//! other leader gives its data to it (J. L. Träff, "Practical, distributed, low overhead algorithms for irregular
//! gather and scatter collectives", Parallel Computing 75, 2018). Prefix sums stand in for the paper's exchange
//! of sizes, which costs it further small messages.

use super::tree::binomial_subtree;
use crate::Buffer::{self, Input, Output, Work};
use crate::cursor::{Cursor, Next};
use crate::program::{Description, Needs, WAIT, local, programs, recv, send};
use crate::{Combine, Counts, Sizes, Tree};

pub(super) const SORTED_LINEAR: Description = Description {
    needs: Needs::Sorted,
    ..Description::new(programs! {
        Gatherv: gather_linear(Input, true);
        Scatterv: scatter_linear(Input, true);
    })
};

pub(super) const SORTED_BINOMIAL: Description = Description {
    needs: Needs::Sorted,
    ..Description::new(programs! {
        Gatherv: sorted_gather_up();
        Scatterv: sorted_scatter_down();
    })
};

pub(super) const TRAFF: Description = Description::new(programs! {
    Gatherv: copy_own(), traff_up();
    Scatterv: traff_down(), take_own();
});

impl Cursor {
    /// The packed bytes of the subtree below a place.
    fn packed(&self, counts: &Counts, place: u32, places: u32) -> (Buffer, (u64, u64)) {
        let start = counts.sorted_start(place);
        (Work, (start, counts.sorted_start(place + places) - start))
    }

    /// Blocks up a binomial tree over the ranks sorted by size.
    pub(crate) fn sorted_gather_up(&self, sizes: Sizes<'_>) -> Next {
        // Not reached without: the cursor is refused.
        let Sizes::Blocks(counts) = sizes else { return Next::Done };
        let place = counts.place_of(self.rank);
        let children = self.children(Tree::Binomial, place);
        let subtree = |place| self.packed(counts, place, binomial_subtree(place, self.ranks)).1;
        match self.pos {
            0 => local((Input, (0, counts.of(self.rank))), self.packed(counts, place, 1), Combine::Store),
            pos if pos <= children => {
                let child = self.child(Tree::Binomial, place, pos - 1);
                recv(counts.rank_at(child), Work, subtree(child))
            }
            pos if pos == children + 1 && children > 0 => WAIT,
            pos if pos == children + 1 => Next::Skip,
            pos if place != 0 => match pos - children {
                2 => send(counts.rank_at(self.parent(Tree::Binomial, place)), Work, subtree(place)),
                3 => WAIT,
                _ => Next::Done,
            },
            // The root takes the blocks to their places.
            pos if pos - children - 2 < self.ranks => {
                let place = pos - children - 2;
                let block = self.piece(sizes, counts.rank_at(place));
                local(self.packed(counts, place, 1), (Output, block), Combine::Store)
            }
            _ => Next::Done,
        }
    }

    /// Blocks down that tree.
    pub(crate) fn sorted_scatter_down(&self, sizes: Sizes<'_>) -> Next {
        let Sizes::Blocks(counts) = sizes else { return Next::Done };
        let place = counts.place_of(self.rank);
        let children = self.children(Tree::Binomial, place);
        let subtree = |place| self.packed(counts, place, binomial_subtree(place, self.ranks)).1;
        if self.round == 0 {
            // The root packs; the others receive.
            return match self.pos {
                pos if place == 0 && pos < self.ranks => {
                    let block = self.piece(sizes, counts.rank_at(pos));
                    local((Input, block), self.packed(counts, pos, 1), Combine::Store)
                }
                0 => recv(counts.rank_at(self.parent(Tree::Binomial, place)), Work, subtree(place)),
                1 if place != 0 => WAIT,
                _ => Next::Round,
            };
        }
        match self.pos {
            pos if pos < children => {
                let child = self.child(Tree::Binomial, place, children - 1 - pos);
                send(counts.rank_at(child), Work, subtree(child))
            }
            pos if pos == children && children > 0 => WAIT,
            pos if pos == children => Next::Skip,
            pos if pos == children + 1 => {
                local(self.packed(counts, place, 1), (Output, (0, counts.of(self.rank))), Combine::Store)
            }
            _ => Next::Done,
        }
    }

    /// The leader of the cube `index` of 2ᵈⁱᵐ ranks, which holds at least one rank.
    fn leader(&self, mut index: u32, dim: u32, sizes: Sizes<'_>) -> u32 {
        for dim in (0..dim).rev() {
            let (low, high) = (2 * index, 2 * index + 1);
            index = if self.cube_wins(low, high, dim, sizes) { low } else { high };
        }
        index
    }

    /// Whether cube `low` keeps its leader when it meets cube `high` just after it.
    fn cube_wins(&self, low: u32, high: u32, dim: u32, sizes: Sizes<'_>) -> bool {
        if high << dim >= self.ranks || self.root >> dim == low {
            return true;
        }
        self.root >> dim != high && self.cube(low, dim, sizes).1 >= self.cube(high, dim, sizes).1
    }

    /// The bytes of a cube.
    fn cube(&self, index: u32, dim: u32, sizes: Sizes<'_>) -> (u64, u64) {
        let first = index << dim;
        self.span(sizes, first, (1 << dim).min(self.ranks - first))
    }

    /// Dimension of the cube that holds all ranks.
    fn dimension(&self) -> u32 {
        u32::BITS - (self.ranks - 1).leading_zeros()
    }

    /// Round d: the cubes of 2ᵈ ranks pair up.
    pub(crate) fn traff_up(&self, sizes: Sizes<'_>) -> Next {
        let dim = self.round;
        if dim == self.dimension() {
            // Only the root comes here.
            return if self.pos == 0 && dim > 0 { WAIT } else { Next::Done };
        }
        let (mine, other) = (self.rank >> dim, (self.rank >> dim) ^ 1);
        if other << dim >= self.ranks {
            return Next::Round;
        }
        let partner = self.leader(other, dim, sizes);
        if self.cube_wins(mine.min(other), mine.max(other), dim, sizes) == (mine < other) {
            return match self.pos {
                0 => recv(partner, Output, self.cube(other, dim, sizes)),
                _ => Next::Round,
            };
        }
        match self.pos {
            0 if dim > 0 => WAIT,
            0 => Next::Skip,
            1 => send(partner, Output, self.cube(mine, dim, sizes)),
            2 => WAIT,
            _ => Next::Done,
        }
    }

    /// The way of [`Cursor::traff_up`] back, the largest cubes first.
    pub(crate) fn traff_down(&self, sizes: Sizes<'_>) -> Next {
        let Some(dim) = self.dimension().checked_sub(self.round + 1) else {
            return if self.pos == 0 && self.ranks > 1 { WAIT } else { Next::Done };
        };
        let (mine, other) = (self.rank >> dim, (self.rank >> dim) ^ 1);
        if other << dim >= self.ranks || self.leader(mine, dim, sizes) != self.rank {
            return Next::Round;
        }
        let partner = self.leader(other, dim, sizes);
        if self.cube_wins(mine.min(other), mine.max(other), dim, sizes) == (mine < other) {
            return match self.pos {
                0 => send(partner, Input, self.cube(other, dim, sizes)),
                _ => Next::Round,
            };
        }
        match self.pos {
            0 => recv(partner, Input, self.cube(mine, dim, sizes)),
            1 => WAIT,
            _ => Next::Round,
        }
    }
}

//! Reduce-scatter by recursive halving, and the ways back from it.
//!
//! *Near* (Rabenseifner): partners at distance 1, 2, 4 …; the vector is in 2ⁿ pieces, and after k rounds core
//! rank c has reduced the 2ⁿ⁻ᵏ pieces from the number got by reversing the low k bits of c on. Contributions stay
//! in rank order. In a reduce-scatter the pieces are the core ranks' blocks, and that of core rank c ends at the rank whose number has
//! its bits reversed. *Far*: partners at distance p/2, p/4 …; core rank c ends with its own piece.

use super::doubling::Role;
use crate::Buffer::{self, Input, Output, Work};
use crate::cursor::{Cursor, Next, Split};
use crate::program::{Description, Pieces, WAIT, is_silent, local, order_of, programs, recv, reduce, send};
use crate::{Combine, Operation, Sizes};
use vef_format::operation::Sizing;

pub(super) const RECURSIVE_HALVING: Description = Description::new(programs! {
    ReduceScatter | ReduceScatterBlock: copy_in(Work), fold(Work), halving_far(), unfold_own(), take_own();
});

/// Halving needs a power of two of pieces: those of the ranks at work.
pub(super) const RABENSEIFNER: Description = Description {
    pieces: Pieces::OfCore,
    ..Description::new(programs! {
        Reduce [Always]: copy_in(Output), fold(Output), halving_near(Output), hand_to_root(), gather_to_root();
        Allreduce [Always]: copy_in(Output), fold(Output), halving_near(Output), doubling_back(), unfold();
    })
};

pub(super) const RABENSEIFNER_HALVES: Description = Description {
    pieces: Pieces::Halves,
    ..Description::new(programs! {
        Allreduce [Always]: copy_in(Output), fold_halves(), halving_near(Output), doubling_back(), unfold();
    })
};

pub(super) const BUTTERFLY: Description = Description::new(programs! {
    ReduceScatter | ReduceScatterBlock [Always]: mirror_in(), fold(Work), halving_near(Work), mirror_out();
});

impl Cursor {
    /// What core rank `core` holds after k near rounds.
    fn near(&self, core: u32, k: u32, sizes: Sizes<'_>) -> (u64, u64) {
        let log = self.log_core();
        if self.split == Split::Halves {
            let unit = u64::from(self.unit);
            let (mut start, mut len) = (0, self.total / unit);
            for bit in 0..k {
                let left = len / 2;
                (start, len) = if core >> bit & 1 == 0 { (start, left) } else { (start + left, len - left) };
            }
            return (start * unit, len * unit);
        }
        let first = self.mirror(core & ((1 << k) - 1));
        if self.operation.reduces() && self.operation.sizing() != Sizing::Vector {
            return self.core_pieces(first, 1 << (log - k), sizes);
        }
        let start = self.start(sizes, first);
        (start, self.start(sizes, first + (1 << (log - k))) - start)
    }

    /// The core number with the bits of another reversed.
    fn mirror(&self, core: u32) -> u32 {
        ((u64::from(core) << 32).reverse_bits() >> (32 - self.log_core())) as u32
    }

    /// Half of what is left of a buffer reduced at distance 1, 2, 4 …
    pub(crate) fn halving_near(&self, buffer: Buffer, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        let k = self.round;
        if k == self.log_core() {
            return Next::Done;
        }
        let other = core ^ (1 << k);
        let partner = self.core_number(other);
        self.round_of(
            || send(partner, buffer, self.near(other, k + 1, sizes)),
            || reduce(partner, buffer, self.near(core, k + 1, sizes), order_of(partner, self.rank)),
        )
    }

    /// The way of [`Cursor::halving_near`] back: everybody gets everything.
    pub(crate) fn doubling_back(&self, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        let Some(k) = self.log_core().checked_sub(self.round + 1) else { return Next::Done };
        let other = core ^ (1 << k);
        let partner = self.core_number(other);
        self.round_of(
            || send(partner, Output, self.near(core, k + 1, sizes)),
            || recv(partner, Output, self.near(other, k + 1, sizes)),
        )
    }

    /// Whether the root has handed over to its partner.
    fn root_is_surplus(&self) -> bool {
        matches!(self.role(self.root), Role::Surplus { .. })
    }

    /// A root that is a surplus rank gets what rank 0 has reduced, and takes its place.
    pub(crate) fn hand_to_root(&self, sizes: Sizes<'_>) -> Next {
        if !self.root_is_surplus() {
            return Next::Done;
        }
        let reduced = self.near(0, self.log_core(), sizes);
        match (self.core_number(0), self.pos) {
            (first, 0) if self.rank == first => send(self.root, Output, reduced),
            (first, 0) if self.rank == self.root => recv(first, Output, reduced),
            (first, 1) if self.rank == first || self.rank == self.root => WAIT,
            _ => Next::Done,
        }
    }

    /// The way of [`Cursor::halving_near`] back: the root gets everything.
    pub(crate) fn gather_to_root(&self, sizes: Sizes<'_>) -> Next {
        let moved = self.root_is_surplus();
        let core = match self.role(self.rank) {
            _ if moved && self.rank == self.root => 0,
            Role::Core { core, .. } if !moved || core != 0 => core,
            _ => return Next::Done,
        };
        let root = match self.role(self.root) {
            Role::Core { core, .. } => core,
            Role::Surplus { .. } => 0,
        };
        let Some(k) = self.log_core().checked_sub(self.round + 1) else { return Next::Done };
        // Only ranks that agree with the root in all higher bits still hold something to be passed on.
        if (core ^ root) >> (k + 1) != 0 {
            return Next::Done;
        }
        let other = core ^ (1 << k);
        let partner = if moved && other == 0 { self.root } else { self.core_number(other) };
        match self.pos {
            0 if (core ^ root) >> k == 0 => recv(partner, Output, self.near(other, k + 1, sizes)),
            0 => send(partner, Output, self.near(core, k + 1, sizes)),
            1 => WAIT,
            _ => Next::Round,
        }
    }

    /// Whether blocks are put in mirrored order beforehand, so that each is reduced at its own rank.
    fn mirrors_first(&self) -> bool {
        self.operation == Operation::ReduceScatterBlock && self.surplus() == 0
    }

    /// The input into the work buffer; of a power of two of equal blocks, each to the place whose number has its bits reversed.
    pub(crate) fn mirror_in(&self, sizes: Sizes<'_>) -> Next {
        if !self.mirrors_first() {
            return self.copy_in(Work, sizes);
        }
        if self.pos == self.ranks {
            return Next::Done;
        }
        let [from, into] = [self.pos, self.mirror(self.pos)].map(|piece| self.piece(sizes, piece));
        local((Input, from), (Work, into), Combine::Store)
    }

    /// Each block that [`Cursor::halving_near`] has reduced to its rank's output.
    pub(crate) fn mirror_out(&self, sizes: Sizes<'_>) -> Next {
        let own = self.piece(sizes, self.rank);
        let core = match self.role(self.rank) {
            Role::Core { core, .. } => core,
            Role::Surplus { .. } => {
                let holder = self.core_number(self.mirror(self.rank >> 1));
                return match self.pos {
                    0 => recv(holder, Output, (0, own.1)),
                    1 => WAIT,
                    _ => Next::Done,
                };
            }
        };
        let held = self.mirror(core);
        let rank = self.core_number(held);
        let block = self.piece(sizes, rank);
        if held == core || self.mirrors_first() {
            // What it holds is its own; and its partner's, which it serves.
            let served = self.serve(held, sizes);
            return match self.pos {
                0 if self.mirrors_first() => {
                    local((Work, self.piece(sizes, held)), (Output, (0, own.1)), Combine::Store)
                }
                0 => local((Work, own), (Output, (0, own.1)), Combine::Store),
                1 => served,
                2 if matches!(served, Next::Step(_)) => WAIT,
                _ => Next::Done,
            };
        }
        match self.pos {
            0 => self.serve(held, sizes),
            1 => send(rank, Work, block),
            2 => recv(rank, Output, (0, own.1)),
            3 => WAIT,
            _ => Next::Done,
        }
    }

    /// The block of the surplus rank of a pair to that, from whoever has reduced the blocks of the pair.
    fn serve(&self, pair: u32, sizes: Sizes<'_>) -> Next {
        if pair >= self.surplus() {
            return Next::Skip;
        }
        let surplus = self.core_number(pair) ^ 1;
        send(surplus, Work, self.piece(sizes, surplus))
    }

    /// Half of what is left reduced at distance p/2, p/4 …; ends with the rank's own piece.
    pub(crate) fn halving_far(&self, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        let Some(k) = self.log_core().checked_sub(self.round + 1) else { return Next::Done };
        let half = 1 << k;
        let keep = core & !(half - 1);
        let partner = self.core_number(core ^ half);
        let (sent, kept) = (self.core_pieces(keep ^ half, half, sizes), self.core_pieces(keep, half, sizes));
        match self.pos {
            0 if is_silent(sent, sizes) => Next::Skip,
            0 => send(partner, Work, sent),
            1 if is_silent(kept, sizes) => Next::Skip,
            1 => reduce(partner, Work, kept, order_of(partner, self.rank)),
            2 => WAIT,
            _ => Next::Round,
        }
    }
}

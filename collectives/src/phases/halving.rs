//! Reduce-scatter by recursive halving, and the ways back from it.
//!
//! *Near* (Rabenseifner): partners at distance 1, 2, 4 …; the vector is in 2ⁿ pieces, and after k rounds core
//! rank c has reduced the 2ⁿ⁻ᵏ pieces from the number got by reversing the low k bits of c on. Contributions stay
//! in rank order. *Far*: partners at distance p/2, p/4 …; core rank c ends with its own piece.

use super::doubling::{Role, order_of};
use super::{WAIT, is_silent, recv, reduce, send};
use crate::phase::Next;
use crate::{Buffer, Cursor, Sizes};

impl Cursor {
    /// What core rank `core` holds after k near rounds.
    fn near(&self, core: u32, k: u32, sizes: Sizes<'_>) -> (u64, u64) {
        let log = self.log_core();
        let low = core & ((1 << k) - 1);
        let first = ((u64::from(low) << 32).reverse_bits() >> (32 - log)) as u32;
        let start = self.start(sizes, first);
        (start, self.start(sizes, first + (1 << (log - k))) - start)
    }

    pub(crate) fn halving_near(&self, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        let k = self.round;
        if k == self.log_core() {
            return Next::Done;
        }
        let other = core ^ (1 << k);
        let partner = self.core_number(other);
        match self.pos {
            0 => send(partner, Buffer::Output, self.near(other, k + 1, sizes)),
            1 => reduce(partner, Buffer::Output, self.near(core, k + 1, sizes), order_of(partner, self.rank)),
            2 => WAIT,
            _ => Next::Round,
        }
    }

    pub(crate) fn doubling_back(&self, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        let Some(k) = self.log_core().checked_sub(self.round + 1) else { return Next::Done };
        let other = core ^ (1 << k);
        let partner = self.core_number(other);
        match self.pos {
            0 => send(partner, Buffer::Output, self.near(core, k + 1, sizes)),
            1 => recv(partner, Buffer::Output, self.near(other, k + 1, sizes)),
            2 => WAIT,
            _ => Next::Round,
        }
    }

    pub(crate) fn gather_to_root(&self, sizes: Sizes<'_>) -> Next {
        let (Role::Core { core, .. }, Role::Core { core: root, .. }) =
            (self.role(self.rank), self.role(self.root))
        else {
            return Next::Done;
        };
        let Some(k) = self.log_core().checked_sub(self.round + 1) else { return Next::Done };
        // Only ranks that agree with the root in all higher bits still hold something to be passed on.
        if (core ^ root) >> (k + 1) != 0 {
            return Next::Done;
        }
        let other = core ^ (1 << k);
        let partner = self.core_number(other);
        match self.pos {
            0 if (core ^ root) >> k == 0 => recv(partner, Buffer::Output, self.near(other, k + 1, sizes)),
            0 => send(partner, Buffer::Output, self.near(core, k + 1, sizes)),
            1 => WAIT,
            _ => Next::Round,
        }
    }

    pub(crate) fn halving_far(&self, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        let Some(k) = self.log_core().checked_sub(self.round + 1) else { return Next::Done };
        let half = 1 << k;
        let keep = core & !(half - 1);
        let partner = self.core_number(core ^ half);
        let (sent, kept) = (self.core_pieces(keep ^ half, half, sizes), self.core_pieces(keep, half, sizes));
        match self.pos {
            0 if is_silent(sent, sizes) => Next::Skip,
            0 => send(partner, Buffer::Work, sent),
            1 if is_silent(kept, sizes) => Next::Skip,
            1 => reduce(partner, Buffer::Work, kept, order_of(partner, self.rank)),
            2 => WAIT,
            _ => Next::Round,
        }
    }
}

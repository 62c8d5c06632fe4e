//! Exchanges at distance 1, 2, 4 … among 2ⁿ ranks, and how surplus ranks are folded in.
//!
//! Of p = 2ⁿ + surplus ranks the first 2·surplus form pairs; one of each pair hands over to the other and is
//! served at the end. The *core* ranks left over are renumbered 0…2ⁿ−1 in order, so contributions stay in rank
//! order. In a barrier, where order is nothing, the surplus ranks are the last ones.

use crate::Buffer::{self, Arrival, Output, Work};
use crate::cursor::{Cursor, Next, Split, Which};
use crate::program::{Description, Pieces, WAIT, is_silent, local, order_of, programs, recv, reduce, send};
use crate::{Combine, Operation, Sizes};
use std::cmp::Ordering;

pub(super) const RECURSIVE_DOUBLING: Description = Description::new(programs! {
    Allreduce [Always]: copy_in(Output), fold(Output), double, unfold();
    Allgather | Allgatherv: copy_own(), fold_piece(), doubling_gather(), unfold_pieces();
    ReduceScatterBlock [Always]: copy_in(Work), doubling_reduce(), take_own();
    Scan | Exscan [Always]: scan_doubling();
    Barrier: fold(Output), double, unfold();
});

pub(super) const SCATTER_DOUBLING: Description = Description {
    pieces: Pieces::RoundedUp,
    ..Description::new(programs! { Bcast: scatter_down(Output, Which::Virtual), doubling_spread(); })
};

/// What a rank does while the powers of two are at work.
pub(crate) enum Role {
    /// It has this core number; and a surplus partner to serve, perhaps.
    Core { core: u32, serves: Option<u32> },
    /// It waits for this partner.
    Surplus { partner: u32 },
}

impl Cursor {
    /// n of the 2ⁿ core ranks.
    pub(crate) fn log_core(&self) -> u32 {
        self.ranks.ilog2()
    }

    pub(crate) fn surplus(&self) -> u32 {
        self.ranks - (1 << self.log_core())
    }

    /// The core member of a pair: the odd one; in a reduction to a root, and where pairs exchange halves, the even one.
    fn core_of_pair(&self, pair: u32) -> u32 {
        2 * pair + u32::from(self.operation != Operation::Reduce && self.split != Split::Halves)
    }

    pub(crate) fn role(&self, number: u32) -> Role {
        let surplus = self.surplus();
        if self.operation == Operation::Barrier {
            return match number.checked_sub(self.ranks - surplus) {
                Some(partner) => Role::Surplus { partner },
                None => Role::Core {
                    core: number,
                    serves: (number < surplus).then_some(number + self.ranks - surplus),
                },
            };
        }
        if number >= 2 * surplus {
            return Role::Core { core: number - surplus, serves: None };
        }
        let partner = self.core_of_pair(number >> 1);
        match number == partner {
            true => Role::Core { core: number >> 1, serves: Some(number ^ 1) },
            false => Role::Surplus { partner },
        }
    }

    /// The number of a core rank.
    pub(crate) fn core_number(&self, core: u32) -> u32 {
        match self.operation {
            Operation::Barrier => core,
            _ if core < self.surplus() => self.core_of_pair(core),
            _ => core + self.surplus(),
        }
    }

    /// The bytes of the pieces of `count` core ranks from `first` on, those of their partners included.
    pub(crate) fn core_pieces(&self, first: u32, count: u32, sizes: Sizes<'_>) -> (u64, u64) {
        let number = |core: u32| core + core.min(self.surplus());
        let start = self.start(sizes, number(first));
        (start, self.start(sizes, number(first + count)) - start)
    }

    /// This rank's pair, if it is of one: the core rank and the surplus rank.
    fn pair(&self) -> Option<(u32, u32)> {
        match self.role(self.rank) {
            Role::Core { serves, .. } => serves.map(|surplus| (self.rank, surplus)),
            Role::Surplus { partner } => Some((partner, self.rank)),
        }
    }

    /// A message of each pair from the surplus rank to the core rank, or the other way: the bytes that `of` gives for the surplus
    /// rank.
    fn in_pairs(
        &self,
        to_core: bool,
        buffer: Buffer,
        of: impl Fn(u32) -> (u64, u64),
        combine: Combine,
    ) -> Next {
        let Some((core, surplus)) = self.pair() else { return Next::Done };
        let (from, to) = if to_core { (surplus, core) } else { (core, surplus) };
        match self.pos {
            0 if self.rank == from => send(to, buffer, of(surplus)),
            0 => reduce(from, buffer, of(surplus), combine),
            1 => WAIT,
            _ => Next::Done,
        }
    }

    /// The surplus ranks' vectors are reduced into their partners'.
    pub(crate) fn fold(&self, buffer: Buffer, _: Sizes<'_>) -> Next {
        let combine = self.pair().map_or(Combine::Store, |(core, surplus)| order_of(surplus, core));
        self.in_pairs(true, buffer, |_| self.all(), combine)
    }

    /// Of a pair the core member reduces the left half and the other one the right half, which then goes to the core member.
    pub(crate) fn fold_halves(&self, _: Sizes<'_>) -> Next {
        let Some((core, surplus)) = self.pair() else { return Next::Done };
        let unit = u64::from(self.unit);
        let left = self.total / unit / 2 * unit;
        let (left, right) = ((0, left), (left, self.total - left));
        let is_core = self.rank == core;
        let (partner, given, kept) = if is_core { (surplus, right, left) } else { (core, left, right) };
        match self.pos {
            0 => send(partner, Output, given),
            1 => reduce(partner, Output, kept, order_of(partner, self.rank)),
            2 | 4 => WAIT,
            3 if is_core => recv(partner, Output, right),
            3 => send(partner, Output, right),
            _ => Next::Done,
        }
    }

    /// The surplus ranks get the result.
    pub(crate) fn unfold(&self, _: Sizes<'_>) -> Next {
        self.in_pairs(false, Output, |_| self.all(), Combine::Store)
    }

    /// The surplus ranks' pieces go to their partners.
    pub(crate) fn fold_piece(&self, sizes: Sizes<'_>) -> Next {
        self.in_pairs(true, Output, |surplus| self.piece(sizes, surplus), Combine::Store)
    }

    /// The surplus ranks get all pieces but their own.
    pub(crate) fn unfold_pieces(&self, sizes: Sizes<'_>) -> Next {
        let all_but = |number| self.span(sizes, self.plus(number, 1), self.ranks - 1);
        self.in_pairs(false, Output, all_but, Combine::Store)
    }

    /// The surplus ranks get their own piece.
    pub(crate) fn unfold_own(&self, sizes: Sizes<'_>) -> Next {
        match self.pair() {
            Some((_, surplus)) if is_silent(self.piece(sizes, surplus), sizes) => Next::Done,
            _ => self.in_pairs(false, Work, |surplus| self.piece(sizes, surplus), Combine::Store),
        }
    }

    /// Round k: with the core rank whose number differs in bit k.
    pub(crate) fn double(&self) -> Option<(u32, u32)> {
        let Role::Core { core, .. } = self.role(self.rank) else { return None };
        let partner = (self.round < self.log_core()).then(|| self.core_number(core ^ (1 << self.round)))?;
        Some((partner, partner))
    }

    /// All pieces held exchanged at distance 1, 2, 4 …
    pub(crate) fn doubling_gather(&self, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        if self.round == self.log_core() {
            return Next::Done;
        }
        let held = 1 << self.round;
        let first = core & !(held - 1);
        let partner = self.core_number(core ^ held);
        self.round_of(
            || send(partner, Output, self.core_pieces(first, held, sizes)),
            || recv(partner, Output, self.core_pieces(first ^ held, held, sizes)),
        )
    }

    /// Round k among trees of 2ᵏ consecutive numbers: a rank exchanges with its partner in the neighbouring tree; ranks whose partner does
    /// not exist get what came from that tree from ranks of their own, at distance 2ᵏ⁻¹, 2ᵏ⁻² …
    fn tree_round(&self) -> TreeRound {
        let (v, width) = (self.virtual_rank(), 1 << self.round);
        if width >= self.ranks {
            return TreeRound::Done;
        }
        let partner = v ^ width;
        let [own, other] = [v, partner].map(|number| number & !(width - 1));
        let Some(step) = self.pos.checked_sub(3) else {
            return match self.pos {
                _ if partner >= self.ranks => TreeRound::Skip,
                0 => TreeRound::Send { to: self.real_rank(partner), tree: own },
                1 => TreeRound::Receive { from: self.real_rank(partner), tree: other },
                _ => TreeRound::Wait,
            };
        };
        match step.cmp(&(2 * self.round)) {
            Ordering::Equal if other < self.ranks => return TreeRound::Received { tree: other },
            Ordering::Less => {}
            _ => return TreeRound::Next,
        }
        // So many ranks of each group of the own tree have had a partner.
        let partners = self.ranks.saturating_sub(other).min(width);
        let distance = width >> (step / 2 + 1);
        let (second, group) = (v | distance, v & !(2 * distance - 1));
        let first = second ^ distance;
        let passes = first - group < partners && second - group >= partners;
        match (passes, step % 2) {
            (false, _) => TreeRound::Skip,
            (_, 0) if v == first => TreeRound::PassOn { to: self.real_rank(second), tree: other },
            (_, 0) => TreeRound::Receive { from: self.real_rank(first), tree: other },
            _ => TreeRound::Wait,
        }
    }

    /// Round k: all ranks of a tree hold its pieces, and get those of the neighbouring tree.
    pub(crate) fn doubling_spread(&self, sizes: Sizes<'_>) -> Next {
        let pieces = |tree: u32| {
            let start = self.start(sizes, tree);
            (start, self.start(sizes, (tree + (1 << self.round)).min(self.ranks)) - start)
        };
        match self.tree_round() {
            TreeRound::Send { to, tree } | TreeRound::PassOn { to, tree } => send(to, Output, pieces(tree)),
            TreeRound::Receive { from, tree } => recv(from, Output, pieces(tree)),
            TreeRound::Wait => WAIT,
            TreeRound::Skip => Next::Skip,
            TreeRound::Received { .. } | TreeRound::Next => Next::Round,
            TreeRound::Done => Next::Done,
        }
    }

    /// Round k: all ranks of a tree have reduced its contributions to the pieces that they still need; they send the pieces outside of their tree.
    pub(crate) fn doubling_reduce(&self, sizes: Sizes<'_>) -> Next {
        let outside = |tree: u32| {
            let end = (tree + (1 << self.round)).min(self.ranks);
            self.span(sizes, end % self.ranks, self.ranks - (end - tree))
        };
        match self.tree_round() {
            TreeRound::Send { to, tree } => send(to, Work, outside(tree)),
            TreeRound::PassOn { to, tree } => send(to, Arrival, outside(tree)),
            TreeRound::Receive { from, tree } => recv(from, Arrival, outside(tree)),
            TreeRound::Received { tree } => {
                let bytes = outside(tree);
                local((Arrival, bytes), (Work, bytes), order_of(tree, self.rank))
            }
            TreeRound::Wait => WAIT,
            TreeRound::Skip => Next::Skip,
            TreeRound::Next => Next::Round,
            TreeRound::Done => Next::Done,
        }
    }
}

/// A position of [`Cursor::tree_round`]; a tree is named by its first number.
enum TreeRound {
    /// What the own tree has goes to the partner.
    Send {
        to: u32,
        tree: u32,
    },
    /// What has come from the partner's tree goes to a rank of the own tree.
    PassOn {
        to: u32,
        tree: u32,
    },
    /// What the partner's tree has comes.
    Receive {
        from: u32,
        tree: u32,
    },
    Wait,
    /// What the partner's tree has is here.
    Received {
        tree: u32,
    },
    Skip,
    Next,
    Done,
}

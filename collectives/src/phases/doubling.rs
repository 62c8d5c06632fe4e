//! Exchanges at distance 1, 2, 4 … among 2ⁿ ranks, and how surplus ranks are folded in.
//!
//! Of p = 2ⁿ + surplus ranks the first 2·surplus form pairs; one of each pair hands over to the other and is
//! served at the end. The *core* ranks left over are renumbered 0…2ⁿ−1 in order, so contributions stay in rank
//! order. In a barrier, where order is nothing, the surplus ranks are the last ones.

use super::{WAIT, is_silent, local, recv, reduce, send};
use crate::cursor::Split;
use crate::phase::Next;
use crate::{Buffer, Combine, Cursor, Exchange, Operation, Sizes};
use std::cmp::Ordering;

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

    pub(crate) fn fold(&self, buffer: Buffer) -> Next {
        match (self.role(self.rank), self.pos) {
            (Role::Core { serves: None, .. }, _) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => {
                reduce(partner, buffer, self.all(), order_of(partner, self.rank))
            }
            (Role::Surplus { partner }, 0) => send(partner, buffer, self.all()),
            (_, 1) => WAIT,
            _ => Next::Done,
        }
    }

    /// Of a pair the core member reduces the left half and the other one the right half, which then goes to the core member.
    pub(crate) fn fold_halves(&self) -> Next {
        let unit = u64::from(self.unit);
        let left = self.total / unit / 2 * unit;
        let (left, right) = ((0, left), (left, self.total - left));
        let (partner, is_core) = match self.role(self.rank) {
            Role::Core { serves: None, .. } => return Next::Done,
            Role::Core { serves: Some(partner), .. } => (partner, true),
            Role::Surplus { partner } => (partner, false),
        };
        let (given, kept) = if is_core { (right, left) } else { (left, right) };
        match self.pos {
            0 => send(partner, Buffer::Output, given),
            1 => reduce(partner, Buffer::Output, kept, order_of(partner, self.rank)),
            2 | 4 => WAIT,
            3 if is_core => recv(partner, Buffer::Output, right),
            3 => send(partner, Buffer::Output, right),
            _ => Next::Done,
        }
    }

    pub(crate) fn unfold(&self) -> Next {
        match (self.role(self.rank), self.pos) {
            (Role::Core { serves: None, .. }, _) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => send(partner, Buffer::Output, self.all()),
            (Role::Surplus { partner }, 0) => recv(partner, Buffer::Output, self.all()),
            (_, 1) => WAIT,
            _ => Next::Done,
        }
    }

    pub(crate) fn fold_piece(&self, sizes: Sizes<'_>) -> Next {
        match (self.role(self.rank), self.pos) {
            (Role::Core { serves: None, .. }, _) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => {
                recv(partner, Buffer::Output, self.piece(sizes, partner))
            }
            (Role::Surplus { partner }, 0) => send(partner, Buffer::Output, self.piece(sizes, self.rank)),
            (_, 1) => WAIT,
            _ => Next::Done,
        }
    }

    pub(crate) fn unfold_pieces(&self, sizes: Sizes<'_>) -> Next {
        let all_but = |number| self.span(sizes, self.plus(number, 1), self.ranks - 1);
        match (self.role(self.rank), self.pos) {
            (Role::Core { serves: None, .. }, _) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => send(partner, Buffer::Output, all_but(partner)),
            (Role::Surplus { partner }, 0) => recv(partner, Buffer::Output, all_but(self.rank)),
            (_, 1) => WAIT,
            _ => Next::Done,
        }
    }

    pub(crate) fn unfold_own(&self, sizes: Sizes<'_>) -> Next {
        let role = self.role(self.rank);
        let piece = match role {
            Role::Core { serves: None, .. } => return Next::Done,
            Role::Core { serves: Some(partner), .. } => self.piece(sizes, partner),
            Role::Surplus { .. } => self.piece(sizes, self.rank),
        };
        match (role, self.pos) {
            (_, 0) if is_silent(piece, sizes) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => send(partner, Buffer::Work, piece),
            (Role::Surplus { partner }, 0) => recv(partner, Buffer::Work, piece),
            (_, 1) => WAIT,
            _ => Next::Done,
        }
    }

    pub(crate) fn doubling(&self) -> Next {
        let Some(Exchange { to: partner, .. }) = self.doubling_round() else { return Next::Done };
        match self.pos {
            0 => send(partner, Buffer::Output, self.all()),
            1 => reduce(partner, Buffer::Output, self.all(), order_of(partner, self.rank)),
            2 => WAIT,
            _ => Next::Round,
        }
    }

    #[inline]
    pub(crate) fn doubling_round(&self) -> Option<Exchange> {
        let Role::Core { core, .. } = self.role(self.rank) else { return None };
        let partner = || self.core_number(core ^ (1 << self.round));
        (self.round < self.log_core()).then(|| Exchange { to: partner(), bytes: self.total, from: partner() })
    }

    pub(crate) fn doubling_gather(&self, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.rank) else { return Next::Done };
        if self.round == self.log_core() {
            return Next::Done;
        }
        let held = 1 << self.round;
        let first = core & !(held - 1);
        let partner = self.core_number(core ^ held);
        match self.pos {
            0 => send(partner, Buffer::Output, self.core_pieces(first, held, sizes)),
            1 => recv(partner, Buffer::Output, self.core_pieces(first ^ held, held, sizes)),
            2 => WAIT,
            _ => Next::Round,
        }
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
        let partners = match other > own {
            true => self.ranks.saturating_sub(other).min(width),
            false => width,
        };
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
            TreeRound::Send { to, tree } | TreeRound::PassOn { to, tree } => {
                send(to, Buffer::Output, pieces(tree))
            }
            TreeRound::Receive { from, tree } => recv(from, Buffer::Output, pieces(tree)),
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
            TreeRound::Send { to, tree } => send(to, Buffer::Work, outside(tree)),
            TreeRound::PassOn { to, tree } => send(to, Buffer::Arrival, outside(tree)),
            TreeRound::Receive { from, tree } => recv(from, Buffer::Arrival, outside(tree)),
            TreeRound::Received { tree } => {
                let bytes = outside(tree);
                local((Buffer::Arrival, bytes), (Buffer::Work, bytes), order_of(tree, self.rank))
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

/// How what comes from `from` is reduced with what rank `at` has.
pub(crate) fn order_of(from: u32, at: u32) -> Combine {
    if from < at { Combine::Before } else { Combine::After }
}

//! Exchanges at distance 1, 2, 4 … among 2ⁿ ranks, and how surplus ranks are folded in.
//!
//! Of p = 2ⁿ + surplus ranks the first 2·surplus form pairs; one of each pair hands over to the other and is
//! served at the end. The *core* ranks left over are renumbered 0…2ⁿ−1 in order, so contributions stay in rank
//! order. In a barrier, where order is nothing, the surplus ranks are the last ones.

use super::{WAIT, is_silent, recv, reduce, send};
use crate::phase::{Next, Which};
use crate::{Buffer, Combine, Cursor, Exchange, Operation, Sizes};

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

    fn surplus(&self) -> u32 {
        self.ranks - (1 << self.log_core())
    }

    /// The core member of a pair: the odd one; in a reduction to a root the root or the even one.
    fn core_of_pair(&self, pair: u32) -> u32 {
        match self.operation {
            Operation::Reduce if self.root >> 1 == pair => self.root,
            Operation::Reduce => 2 * pair,
            _ => 2 * pair + 1,
        }
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

    pub(crate) fn unfold(&self) -> Next {
        match (self.role(self.rank), self.pos) {
            (Role::Core { serves: None, .. }, _) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => send(partner, Buffer::Output, self.all()),
            (Role::Surplus { partner }, 0) => recv(partner, Buffer::Output, self.all()),
            (_, 1) => WAIT,
            _ => Next::Done,
        }
    }

    pub(crate) fn fold_piece(&self, which: Which, sizes: Sizes<'_>) -> Next {
        let number = self.number(which);
        match (self.role(number), self.pos) {
            (Role::Core { serves: None, .. }, _) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => {
                recv(self.numbered(which, partner), Buffer::Output, self.piece(sizes, partner))
            }
            (Role::Surplus { partner }, 0) => {
                send(self.numbered(which, partner), Buffer::Output, self.piece(sizes, number))
            }
            (_, 1) => WAIT,
            _ => Next::Done,
        }
    }

    pub(crate) fn unfold_pieces(&self, which: Which, sizes: Sizes<'_>) -> Next {
        let number = self.number(which);
        let all_but = |number| self.span(sizes, self.plus(number, 1), self.ranks - 1);
        match (self.role(number), self.pos) {
            (Role::Core { serves: None, .. }, _) => Next::Done,
            (Role::Core { serves: Some(partner), .. }, 0) => {
                send(self.numbered(which, partner), Buffer::Output, all_but(partner))
            }
            (Role::Surplus { partner }, 0) => {
                recv(self.numbered(which, partner), Buffer::Output, all_but(number))
            }
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

    pub(crate) fn doubling_gather(&self, which: Which, sizes: Sizes<'_>) -> Next {
        let Role::Core { core, .. } = self.role(self.number(which)) else { return Next::Done };
        if self.round == self.log_core() {
            return Next::Done;
        }
        let held = 1 << self.round;
        let first = core & !(held - 1);
        let partner = self.numbered(which, self.core_number(core ^ held));
        match self.pos {
            0 => send(partner, Buffer::Output, self.core_pieces(first, held, sizes)),
            1 => recv(partner, Buffer::Output, self.core_pieces(first ^ held, held, sizes)),
            2 => WAIT,
            _ => Next::Round,
        }
    }
}

/// How what comes from `from` is reduced with what rank `at` has.
pub(crate) fn order_of(from: u32, at: u32) -> Combine {
    if from < at { Combine::Before } else { Combine::After }
}

//! Everybody with everybody, in p − 1 exchanges or in ⌈log₂ p⌉ rounds.

use crate::Buffer::{Arrival, Input, Output, Work};
use crate::cursor::{Cursor, Next};
use crate::program::{Description, WAIT, is_silent, local, programs, recv, reduce, send};
use crate::{Combine, Data, Layout, Sizes, Step};

pub(super) const LINEAR_EMPTY: Description =
    Description::new(programs! { Alltoallv | Alltoallw: copy_own_pair(), exchange_all(true); });

pub(super) const PAIRWISE: Description = Description::new(programs! {
    Alltoall | Alltoallv | Alltoallw: copy_own_pair(), exchange_pairwise();
    ReduceScatter | ReduceScatterBlock: reduce_pairwise();
});

pub(super) const BRUCK: Description = Description::new(programs! {
    Allgather | Allgatherv: copy_own(), bruck_gather();
    Alltoall: bruck_exchange();
});

pub(super) const DISSEMINATION: Description = Description::new(programs! { Barrier: disseminate; });

impl Cursor {
    /// Where the block from a rank goes in an all-to-all. Under sums the length is a guess.
    pub(crate) fn block_from(&self, sizes: Sizes<'_>, rank: u32) -> (u64, u64) {
        match sizes {
            Sizes::Pairs { recv, .. } => (recv.start(rank), recv.of(rank)),
            Sizes::Sums { recv, .. } => {
                let share = recv / u64::from(self.ranks);
                (u64::from(rank) * share, share)
            }
            _ => self.piece(sizes, rank),
        }
    }

    /// The input's block for oneself to the output.
    pub(crate) fn copy_own_pair(&self, sizes: Sizes<'_>) -> Next {
        let own = self.piece(sizes, self.rank);
        let (place, _) = self.block_from(sizes, self.rank);
        match self.pos {
            0 => local((Input, own), (Output, (place, own.1)), Combine::Store),
            _ => Next::Done,
        }
    }

    /// Round i ≥ 1: to the rank i after, from the rank i before. Known empty blocks cause no message, unless `empty`.
    pub(crate) fn exchange_all(&self, empty: bool, sizes: Sizes<'_>) -> Next {
        let i = self.round + 1;
        if i >= self.ranks {
            return Next::Done;
        }
        let (to, from) = (self.plus(self.rank, i), self.minus(self.rank, i));
        match self.pos {
            0 => match self.block_from(sizes, from) {
                bytes if !empty && is_silent(bytes, sizes) => Next::Skip,
                bytes => recv(from, Output, bytes),
            },
            1 => match self.piece(sizes, to) {
                bytes if !empty && is_silent(bytes, sizes) => Next::Skip,
                bytes => send(to, Input, bytes),
            },
            // No round is a multiple of 0.
            2 if i + 1 == self.ranks || i.is_multiple_of(self.fanout) => WAIT,
            _ => Next::Round,
        }
    }

    /// Blocks exchanged with one rank a round.
    pub(crate) fn exchange_pairwise(&self, sizes: Sizes<'_>) -> Next {
        let i = self.round + 1;
        if i >= self.ranks {
            return Next::Done;
        }
        let (to, from) = (self.plus(self.rank, i), self.minus(self.rank, i));
        self.round_of(
            || send(to, Input, self.piece(sizes, to)),
            || recv(from, Output, self.block_from(sizes, from)),
        )
    }

    /// Blocks exchanged with one rank a round, and reduced.
    pub(crate) fn reduce_pairwise(&self, sizes: Sizes<'_>) -> Next {
        let i = self.round;
        if i == self.ranks {
            return Next::Done;
        }
        let (to, from) = (self.plus(self.rank, i), self.minus(self.rank, i));
        let own = self.piece(sizes, self.rank);
        match self.pos {
            0 if i == 0 => local((Input, own), (Output, (0, own.1)), Combine::Store),
            _ if i == 0 => Next::Round,
            0 => send(to, Input, self.piece(sizes, to)),
            1 => reduce(from, Output, (0, own.1), Combine::Before),
            2 => WAIT,
            _ => Next::Round,
        }
    }

    /// Round k: this rank holds the blocks of min(2ᵏ, p) ranks from itself on.
    pub(crate) fn bruck_gather(&self, sizes: Sizes<'_>) -> Next {
        let held = 1 << self.round;
        if held >= self.ranks {
            return Next::Done;
        }
        let count = held.min(self.ranks - held);
        let from = self.plus(self.rank, held);
        self.round_of(
            || send(self.minus(self.rank, held), Output, self.span(sizes, self.rank, count)),
            || recv(from, Output, self.span(sizes, from, count)),
        )
    }

    /// Lap 0: work block i is the block for the rank i after. Lap 1, round k: blocks with bit k set go 2ᵏ on.
    /// Lap 2: work block i is what the rank i before has sent.
    pub(crate) fn bruck_exchange(&self, _: Sizes<'_>) -> Next {
        let (block, all) = (self.piece, self.all());
        let own = u64::from(self.rank) * block;
        match self.lap {
            0 => match self.pos {
                0 => local((Input, (own, all.1)), (Work, all), Combine::Store),
                _ => Next::Lap,
            },
            1 => {
                let distance = 1 << self.round;
                if distance >= self.ranks {
                    return Next::Lap;
                }
                let data = |buffer| {
                    let run = u64::from(distance) * block;
                    let blocks = numbers_with_bit(self.ranks, self.round);
                    let layout = Layout::EveryOther { run };
                    Data { buffer, offset: run, len: u64::from(blocks) * block, layout }
                };
                let combine = Combine::Store;
                match self.pos {
                    0 => Next::Step(Step::Send { to: self.plus(self.rank, distance), data: data(Work) }),
                    1 => {
                        let from = self.minus(self.rank, distance);
                        Next::Step(Step::Recv { from, data: data(Arrival), combine })
                    }
                    2 => WAIT,
                    3 => Next::Step(Step::Local { from: data(Arrival), into: data(Work), combine }),
                    _ => Next::Round,
                }
            }
            _ => match self.pos {
                0 => Next::Step(Step::Local {
                    from: Data::new(Work, all),
                    into: Data {
                        buffer: Output,
                        offset: own,
                        len: all.1,
                        layout: Layout::Backwards { block },
                    },
                    combine: Combine::Store,
                }),
                _ => Next::Done,
            },
        }
    }

    /// Round k: to the rank 2ᵏ further on.
    pub(crate) fn disseminate(&self) -> Option<(u32, u32)> {
        let distance = 1 << self.round;
        (distance < self.ranks).then(|| (self.plus(self.rank, distance), self.minus(self.rank, distance)))
    }
}

/// How many of the numbers below n have bit k set.
fn numbers_with_bit(n: u32, k: u32) -> u32 {
    let run = 1 << k;
    (n >> (k + 1) << k) + (n & (2 * run - 1)).saturating_sub(run)
}

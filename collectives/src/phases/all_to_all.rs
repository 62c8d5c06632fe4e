//! Everybody with everybody, in p − 1 exchanges or in ⌈log₂ p⌉ rounds.

use super::{WAIT, is_silent, local, recv, reduce, send};
use crate::phase::Next;
use crate::{Buffer, Combine, Cursor, Data, Exchange, Layout, Sizes, Step};

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
                bytes => recv(from, Buffer::Output, bytes),
            },
            1 => match self.piece(sizes, to) {
                bytes if !empty && is_silent(bytes, sizes) => Next::Skip,
                bytes => send(to, Buffer::Input, bytes),
            },
            2 if i + 1 == self.ranks || (self.fanout > 0 && i.is_multiple_of(self.fanout)) => WAIT,
            _ => Next::Round,
        }
    }

    pub(crate) fn exchange_pairwise(&self, sizes: Sizes<'_>) -> Next {
        let i = self.round + 1;
        if i >= self.ranks {
            return Next::Done;
        }
        let (to, from) = (self.plus(self.rank, i), self.minus(self.rank, i));
        match self.pos {
            0 => send(to, Buffer::Input, self.piece(sizes, to)),
            1 => recv(from, Buffer::Output, self.block_from(sizes, from)),
            2 => WAIT,
            _ => Next::Round,
        }
    }

    pub(crate) fn reduce_pairwise(&self, sizes: Sizes<'_>) -> Next {
        let i = self.round;
        if i == self.ranks {
            return Next::Done;
        }
        let (to, from) = (self.plus(self.rank, i), self.minus(self.rank, i));
        let own = self.piece(sizes, self.rank);
        match self.pos {
            0 if i == 0 => local((Buffer::Input, own), (Buffer::Output, (0, own.1)), Combine::Store),
            _ if i == 0 => Next::Round,
            0 => send(to, Buffer::Input, self.piece(sizes, to)),
            1 => reduce(from, Buffer::Output, (0, own.1), Combine::Before),
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
        match self.pos {
            0 => send(self.minus(self.rank, held), Buffer::Output, self.span(sizes, self.rank, count)),
            1 => recv(from, Buffer::Output, self.span(sizes, from, count)),
            2 => WAIT,
            _ => Next::Round,
        }
    }

    /// Lap 0: work block i is the block for the rank i after. Lap 1, round k: blocks with bit k set go 2ᵏ on.
    /// Lap 2: work block i is what the rank i before has sent.
    pub(crate) fn bruck_exchange(&self) -> Next {
        let (block, all) = (self.piece, self.all());
        let own = u64::from(self.rank) * block;
        match self.lap {
            0 => match self.pos {
                0 => local((Buffer::Input, (own, all.1)), (Buffer::Work, all), Combine::Store),
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
                    0 => Next::Step(Step::Send {
                        to: self.plus(self.rank, distance),
                        data: data(Buffer::Work),
                    }),
                    1 => {
                        let from = self.minus(self.rank, distance);
                        Next::Step(Step::Recv { from, data: data(Buffer::Arrival), combine })
                    }
                    2 => WAIT,
                    3 => Next::Step(Step::Local {
                        from: data(Buffer::Arrival),
                        into: data(Buffer::Work),
                        combine,
                    }),
                    _ => Next::Round,
                }
            }
            _ => match self.pos {
                0 => Next::Step(Step::Local {
                    from: Data::new(Buffer::Work, all),
                    into: Data {
                        buffer: Buffer::Output,
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

    pub(crate) fn dissemination(&self) -> Next {
        let Some(Exchange { to, from, .. }) = self.dissemination_round() else { return Next::Done };
        match self.pos {
            0 => send(to, Buffer::Input, (0, 0)),
            1 => recv(from, Buffer::Output, (0, 0)),
            2 => WAIT,
            _ => Next::Round,
        }
    }

    #[inline]
    pub(crate) fn dissemination_round(&self) -> Option<Exchange> {
        let distance = 1 << self.round;
        (distance < self.ranks).then(|| Exchange {
            to: self.plus(self.rank, distance),
            bytes: 0,
            from: self.minus(self.rank, distance),
        })
    }
}

/// How many of the numbers below n have bit k set.
fn numbers_with_bit(n: u32, k: u32) -> u32 {
    let run = 1 << k;
    (n >> (k + 1) << k) + (n & (2 * run - 1)).saturating_sub(run)
}

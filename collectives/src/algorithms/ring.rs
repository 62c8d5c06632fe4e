//! Around the ring: each rank sends to the next and receives from the one before; or, in pairs, to and from
//! both neighbours in turn.

use crate::Buffer::{self, Output, Work};
use crate::cursor::{Cursor, Next, Which};
use crate::program::{Description, Pieces, WAIT, programs, recv, reduce, send};
use crate::{Combine, Operation, Sizes};

pub(super) const RING: Description = Description::new(programs! {
    Allreduce: copy_in(Output), ring_reduce(Output, Which::Rank), ring_gather(Which::Following);
    Allgather | Allgatherv: copy_own(), ring_gather(Which::Rank);
    ReduceScatter | ReduceScatterBlock: copy_in(Work), ring_reduce(Work, Which::Preceding), take_own();
});

pub(super) const SEGMENTED_RING: Description = Description {
    segments: |c, sizes, segment| match sizes {
        // As long as the shortest block at least.
        _ if c.operation == Operation::Allgatherv => {
            let [shortest, longest] =
                if let Sizes::Blocks(counts) = sizes { counts.extremes() } else { [c.piece; 2] };
            (segment.max(shortest).max(1), longest)
        }
        _ => c.cut(c.piece + u64::from(c.unit), segment),
    },
    ..Description::new(programs! {
        Allreduce: copy_in(Output), ring_reduce(Output, Which::Rank), ring_gather(Which::Following);
        Allgatherv: copy_own(), ring_gather_segments();
    })
};

pub(super) const RING_CHANNELS: Description = Description {
    segments: |c, _, segment| {
        let elements = c.piece / u64::from(c.unit) + u64::from(c.wide > 0);
        c.cut(elements.div_ceil(c.fanout.max(1).into()) * u64::from(c.unit), segment)
    },
    ..Description::new(programs! {
        Allreduce: copy_in(Output), ring_channels(Output, Which::Rank, Lap::Both);
        Allgather: copy_own(), ring_channels(Output, Which::Rank, Lap::Gather);
        ReduceScatterBlock: copy_in(Work), ring_channels(Work, Which::Preceding, Lap::Reduce), take_own();
    })
};

pub(super) const SCATTER_RING: Description = Description {
    pieces: Pieces::RoundedUp,
    ..Description::new(
        programs! { Bcast: scatter_down(Output, Which::Virtual), ring_gather(Which::Virtual); },
    )
};

pub(super) const NEIGHBOR_EXCHANGE: Description = Description {
    even_ranks: true,
    ..Description::new(programs! { Allgather | Allgatherv: copy_own(), neighbors(); })
};

/// What a lap of [`Cursor::ring_channels`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lap {
    /// Reduces: everybody ends with one piece.
    Reduce,
    /// Passes on: everybody ends with all pieces.
    Gather,
    /// One after the other.
    Both,
}

impl Cursor {
    /// Pieces reduced around the ring, in laps of one segment of each piece; `Which` is sent first.
    pub(crate) fn ring_reduce(&self, buffer: Buffer, which: Which, sizes: Sizes<'_>) -> Next {
        if self.round + 1 == self.ranks {
            return if self.lap + 1 == self.segments { Next::Done } else { Next::Lap };
        }
        let sent = self.minus(self.number(which), self.round);
        self.round_of(
            || send(self.plus(self.rank, 1), buffer, self.lap_of(self.piece(sizes, sent))),
            || {
                let piece = self.piece(sizes, self.minus(sent, 1));
                reduce(self.minus(self.rank, 1), buffer, self.lap_of(piece), Combine::Before)
            },
        )
    }

    /// The part of a piece that this lap carries.
    fn lap_of(&self, (start, len): (u64, u64)) -> (u64, u64) {
        if self.segments == 1 {
            return (start, len);
        }
        let skip = (u64::from(self.lap) * self.segment).min(len);
        (start + skip, self.segment.min(len - skip))
    }

    /// Pieces passed around the ring; `Which` is held at the beginning.
    pub(crate) fn ring_gather(&self, which: Which, sizes: Sizes<'_>) -> Next {
        if self.round + 1 == self.ranks {
            return Next::Done;
        }
        let sent = self.minus(self.number(which), self.round);
        self.round_of(
            || send(self.plus(self.rank, 1), Output, self.piece(sizes, sent)),
            || recv(self.minus(self.rank, 1), Output, self.piece(sizes, self.minus(sent, 1))),
        )
    }

    /// Round: a block to the next rank and one from the rank before, segment by segment.
    pub(crate) fn ring_gather_segments(&self, sizes: Sizes<'_>) -> Next {
        if self.round + 1 == self.ranks {
            return Next::Done;
        }
        let sent = self.minus(self.rank, self.round);
        let [leaves, comes] = [sent, self.minus(sent, 1)].map(|piece| self.piece(sizes, piece));
        let skip = u64::from(self.pos / 3) * self.segment;
        if skip >= leaves.1.max(comes.1) {
            return Next::Round;
        }
        let part =
            |(start, len): (u64, u64)| (start + skip.min(len), self.segment.min(len.saturating_sub(skip)));
        match self.pos % 3 {
            0 if part(leaves).1 == 0 => Next::Skip,
            0 => send(self.plus(self.rank, 1), Output, part(leaves)),
            1 if part(comes).1 == 0 => Next::Skip,
            1 => recv(self.minus(self.rank, 1), Output, part(comes)),
            _ => WAIT,
        }
    }

    /// A round sends and receives one segment a channel. A lap goes on to the next segment when the one before is through, as NCCL's loops do.
    fn ring_channels(&self, buffer: Buffer, which: Which, lap: Lap, sizes: Sizes<'_>) -> Next {
        let once = self.ranks - 1;
        let rounds = if lap == Lap::Both { 2 * once } else { once };
        if self.round == rounds {
            return if self.lap + 1 == self.segments { Next::Done } else { Next::Lap };
        }
        let reduces = lap == Lap::Reduce || (lap == Lap::Both && self.round < once);
        let sent = match lap {
            // What a rank has reduced in full is the piece behind the one that it sent first.
            Lap::Both if !reduces => self.minus(self.plus(self.number(which), 1), self.round - once),
            _ => self.minus(self.number(which), self.round),
        };
        let channels = self.fanout.max(1);
        let (channel, comes) = (self.pos / 2, self.pos % 2 == 1);
        if channel == channels {
            return if comes { Next::Round } else { WAIT };
        }
        let piece = if comes { self.minus(sent, 1) } else { sent };
        let part = self.lap_of(self.channel_of(self.piece(sizes, piece), channel));
        match comes {
            _ if part.1 == 0 => Next::Skip,
            false => send(self.plus(self.rank, 1), buffer, part),
            true if reduces => reduce(self.minus(self.rank, 1), buffer, part, Combine::Before),
            true => recv(self.minus(self.rank, 1), buffer, part),
        }
    }

    /// A channel's part of a piece.
    fn channel_of(&self, (start, len): (u64, u64), channel: u32) -> (u64, u64) {
        let elements = len / u64::from(self.unit);
        let before = |channel: u32| {
            let share = u128::from(elements) * u128::from(channel) / u128::from(self.fanout.max(1));
            share as u64 * u64::from(self.unit)
        };
        (start + before(channel), before(channel + 1) - before(channel))
    }

    /// Round 0: own block with the pair's other member. Round i: the pair of blocks got in round i − 1, with
    /// the neighbour in the next pair (odd i) or the own one (even i).
    pub(crate) fn neighbors(&self, sizes: Sizes<'_>) -> Next {
        let pairs = self.ranks / 2;
        let i = self.round;
        if i == pairs {
            return Next::Done;
        }
        let (pair, is_even) = (self.rank / 2, self.rank.is_multiple_of(2));
        let inside = self.rank ^ 1;
        let outside = if is_even { self.minus(self.rank, 1) } else { self.plus(self.rank, 1) };
        let partner = if i.is_multiple_of(2) { inside } else { outside };
        // Even ranks get the pairs 1 before, 1 after, 2 before, 2 after … their own; odd ranks 1 after, 1 before …
        let got = |i: u32| {
            let away = i.div_ceil(2);
            let pair = if (i % 2 == 1) == is_even { pair + pairs - away } else { pair + away };
            let pair = if pair >= pairs { pair - pairs } else { pair };
            self.span(sizes, 2 * pair, 2)
        };
        match self.pos {
            0 if i == 0 => send(partner, Output, self.piece(sizes, self.rank)),
            0 => send(partner, Output, got(i - 1)),
            1 if i == 0 => recv(partner, Output, self.piece(sizes, inside)),
            1 => recv(partner, Output, got(i)),
            2 => WAIT,
            _ => Next::Round,
        }
    }
}

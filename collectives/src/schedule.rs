//! From a request to steps: the table of programs, and the cursor that walks one.
//!
//! An algorithm is a short list of *phases* ([`program`]); a phase is a function from (round, position) to a
//! step, written in [`crate::phases`]. The cursor holds the place in that list and the communicator's numbers.

use crate::cursor::{Choice, Cursor, Exchange, Shape, Split};
use crate::phase::{Lap, Next, Phase, Which};
use crate::{Algorithm, Buffer, Error, MAX_RANKS, Operation, Sizes, Step, Tree};

/// The steps of one rank as an iterator; `sizes` stay borrowed.
pub fn steps<'a>(
    shape: Shape,
    choice: Choice,
    sizes: Sizes<'a>,
) -> Result<impl Iterator<Item = Step> + use<'a>, Error> {
    let mut cursor = Cursor::new(shape, choice, sizes)?;
    Ok(std::iter::from_fn(move || cursor.next(sizes)))
}

impl Cursor {
    /// The beginning of a rank's schedule. Costs a few divisions and nothing else.
    pub fn new(shape: Shape, choice: Choice, sizes: Sizes<'_>) -> Result<Cursor, Error> {
        let Shape { operation, ranks, rank, root, unit } = shape;
        let Choice { algorithm, segment, fanout, tree, .. } = choice;
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::Ranks { ranks: ranks.into() });
        }
        let root = if operation.is_rooted() { root } else { 0 };
        if let Some(&rank) = [rank, root].iter().find(|&&rank| rank >= ranks) {
            return Err(Error::RankOutside { rank, ranks });
        }
        let phases = program(operation, algorithm).ok_or(Error::NoSuchAlgorithm { operation, algorithm })?;
        if algorithm == Algorithm::NeighborExchange && ranks % 2 == 1 && ranks > 1 {
            return Err(Error::WrongRanks { algorithm, needs: "an even number of ranks", ranks });
        }
        let parts = shape.parts(algorithm, sizes)?;
        if algorithm == Algorithm::Nothing && parts.total > 0 && ranks > 1 {
            return Err(Error::NeedsCounts { operation, algorithm, needs: "zero bytes" });
        }

        let mut cursor = Cursor {
            phases,
            lap: 0,
            round: 0,
            pos: 0,
            ranks,
            rank,
            root,
            unit,
            operation,
            split: parts.split,
            tree,
            fanout,
            total: parts.total,
            piece: parts.piece,
            wide: parts.wide,
            segments: 1,
            segment: parts.total,
        };
        cursor.cut_segments(algorithm, segment)?;
        if operation == Operation::Allgatherv && algorithm == Algorithm::SegmentedRing {
            let shortest = match sizes {
                Sizes::Blocks(counts) => counts.shortest(),
                _ => parts.piece,
            };
            cursor.segment = segment.max(shortest).max(1);
        }
        Ok(cursor)
    }

    /// The next step, or `None` at the end. `sizes` must be those that the cursor was made with.
    #[inline]
    pub fn next(&mut self, sizes: Sizes<'_>) -> Option<Step> {
        loop {
            let next = self.phases.first()?.at(self, sizes);
            match next {
                Next::Step(step) => {
                    self.pos += 1;
                    return Some(step);
                }
                Next::Skip => self.pos += 1,
                Next::Round => {
                    self.round += 1;
                    self.pos = 0;
                }
                Next::Lap => {
                    self.lap += 1;
                    self.round = 0;
                    self.pos = 0;
                }
                Next::Done => {
                    self.phases = &self.phases[1..];
                    self.lap = 0;
                    self.round = 0;
                    self.pos = 0;
                }
            }
        }
    }

    /// The next round, if it is a message out, a message in and a wait for both, of one of the phases in which every
    /// round is like that and which make up most messages: [`Cursor::next`] would give its steps one by one. `None`
    /// otherwise, and in the middle of a round.
    #[inline]
    pub fn exchange(&mut self) -> Option<Exchange> {
        if self.pos != 0 {
            return None;
        }
        let exchange = match self.phases.first()? {
            Phase::Dissemination => self.dissemination_round()?,
            Phase::Doubling => self.doubling_round()?,
            _ => return None,
        };
        self.round += 1;
        Some(exchange)
    }

    fn cut_segments(&mut self, algorithm: Algorithm, segment: u64) -> Result<(), Error> {
        let longest = match algorithm {
            Algorithm::SegmentedRing => self.piece + u64::from(self.unit),
            Algorithm::SplitBinary | Algorithm::DoubleTree => self.half(0).1,
            Algorithm::RingChannels => {
                let elements = self.piece / u64::from(self.unit) + u64::from(self.wide > 0);
                elements.div_ceil(self.fanout.max(1).into()) * u64::from(self.unit)
            }
            _ => self.total,
        };
        self.segment = longest.max(1);
        if segment > 0 && segment < longest {
            let unit = u64::from(self.unit);
            self.segment = (segment / unit * unit).max(unit);
        }
        let segments = longest.div_ceil(self.segment).max(1);
        self.segments =
            u32::try_from(segments).map_err(|_| Error::TooManySegments { bytes: longest, segment })?;
        Ok(())
    }
}

struct Parts {
    split: Split,
    total: u64,
    piece: u64,
    wide: u32,
}

impl Shape {
    /// Bytes of a buffer of this rank, under sizes that [`Cursor::new`] accepts.
    pub fn buffer_bytes(&self, buffer: Buffer, sizes: Sizes<'_>) -> u64 {
        use Operation::*;
        let ranks = u64::from(self.ranks);
        let (total, own) = match sizes {
            Sizes::Blocks(counts) => (counts.total(), counts.of(self.rank)),
            Sizes::Pairs { send, recv } if buffer == Buffer::Input => (send.total(), recv.total()),
            Sizes::Pairs { recv, .. } => (recv.total(), recv.total()),
            Sizes::Sums { send, recv } => (send.max(recv), send.min(recv)),
            Sizes::Bytes(block) => match self.operation {
                Bcast | Reduce | Allreduce | Scan | Exscan | Barrier => (block, block),
                _ => (block.saturating_mul(ranks), block),
            },
        };
        match (self.operation, buffer) {
            (Gather | Gatherv | Allgather | Allgatherv, Buffer::Input) => own,
            (Scatter | Scatterv | ReduceScatter | ReduceScatterBlock, Buffer::Output) => own,
            _ => total,
        }
    }

    fn parts(&self, algorithm: Algorithm, sizes: Sizes<'_>) -> Result<Parts, Error> {
        use Operation::*;
        let Shape { operation, ranks, unit, .. } = *self;
        let wrong = |sizes| Error::WrongSizes { operation, sizes };
        let needs = |needs| Error::NeedsCounts { operation, algorithm, needs };
        let for_all = |counts: &crate::Counts| match counts.ranks() == ranks {
            true => Ok(()),
            false => Err(Error::CountsMismatch { counts: counts.ranks(), ranks }),
        };
        let is_linear = matches!(algorithm, Algorithm::Linear | Algorithm::LinearSync);
        let sorts = algorithm.sorts();
        let (total, pieces) = match (sizes, operation) {
            (Sizes::Bytes(bytes), Bcast | Reduce | Allreduce | Scan | Exscan | Barrier) => (bytes, ranks),
            (Sizes::Bytes(_), _) if sorts => return Err(needs("every rank's size, sorted")),
            (Sizes::Bytes(block), _) => (block.checked_mul(ranks.into()).ok_or(Error::TooLarge)?, ranks),
            (Sizes::Blocks(counts), Gatherv | Scatterv | Allgatherv | ReduceScatter) => {
                for_all(counts)?;
                if sorts && !counts.is_sorted_for(self.root) {
                    return Err(needs("the sizes sorted for this root"));
                }
                return Ok(Parts { split: Split::Table, total: counts.total(), piece: 0, wide: 0 });
            }
            (Sizes::Pairs { send, recv }, Alltoallv | Alltoallw) => {
                for_all(send)?;
                for_all(recv)?;
                return Ok(Parts { split: Split::Table, total: send.total(), piece: 0, wide: 0 });
            }
            (Sizes::Sums { send, .. }, Alltoallv | Alltoallw | ReduceScatter) => (send, ranks),
            (Sizes::Sums { recv, .. }, Allgatherv) => (recv, ranks),
            (Sizes::Sums { send, recv }, Gatherv | Scatterv) if is_linear => {
                (send.max(recv), (ranks - 1).max(1))
            }
            (Sizes::Sums { .. }, Gatherv | Scatterv) => return Err(needs("every rank's size")),
            (Sizes::Blocks(_), _) => return Err(wrong("blocks")),
            (Sizes::Pairs { .. }, _) => return Err(wrong("pairs")),
            (Sizes::Sums { .. }, _) => return Err(wrong("sums")),
        };
        if unit == 0 || !total.is_multiple_of(unit.into()) {
            return Err(Error::Unit { bytes: total, unit });
        }
        let (elements, pieces, unit) = (total / u64::from(unit), u64::from(pieces), u64::from(unit));
        Ok(match algorithm {
            // MPI libraries scatter a broadcast's vector in equal pieces, the last ones shorter or empty.
            Algorithm::ScatterRing | Algorithm::ScatterDoubling => {
                Parts { split: Split::Ceil, total, piece: elements.div_ceil(pieces) * unit, wide: 0 }
            }
            Algorithm::RabenseifnerHalves => Parts { split: Split::Halves, total, piece: 0, wide: 0 },
            // Halving needs a power of two of pieces: those of the ranks at work.
            Algorithm::Rabenseifner => {
                let log = ranks.ilog2();
                let wide = elements & ((1 << log) - 1);
                Parts { split: Split::Even, total, piece: (elements >> log) * unit, wide: wide as u32 }
            }
            _ => Parts {
                split: Split::Even,
                total,
                piece: elements / pieces * unit,
                wide: (elements % pieces) as u32,
            },
        })
    }
}

impl Algorithm {
    /// The algorithms there are for `operation`.
    pub fn of(operation: Operation) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.iter().copied().filter(move |&algorithm| program(operation, algorithm).is_some())
    }
}

/// The phases of an algorithm: the whole table of operation × algorithm.
pub(crate) fn program(operation: Operation, algorithm: Algorithm) -> Option<&'static [Phase]> {
    use Algorithm as A;
    use Buffer::{Input, Output, Work};
    use Operation::*;
    use Phase::*;
    use Which::{Following, Preceding, Rank, Virtual};

    Some(match (operation, algorithm) {
        (Barrier, A::Nothing) => return None,
        (_, A::Nothing) => &[],

        (Bcast, A::Linear) => &[TreeDown(Tree::Flat)],
        (Bcast, A::Binomial) => &[TreeDown(Tree::Binomial)],
        (Bcast, A::BinomialSpread) => &[TreeDown(Tree::BinomialSpread)],
        (Bcast, A::Knomial) => &[TreeDown(Tree::Knomial)],
        (Bcast, A::Chain) => &[TreeDown(Tree::Chain)],
        (Bcast, A::Binary) => &[TreeDown(Tree::Binary)],
        (Bcast, A::SplitBinary) => &[SplitDown, SplitExchange],
        (Bcast, A::ScatterRing) => &[ScatterDown(Output, Virtual), RingGather(Virtual)],
        (Bcast, A::ScatterDoubling) => &[ScatterDown(Output, Virtual), DoublingSpread],

        (Reduce, A::Linear) => &[ReduceInOrder],
        (Reduce, A::Binomial) => &[CopyIn(Output), TreeUp(Tree::Binomial, Output)],
        (Reduce, A::Chain) => &[CopyIn(Output), TreeUp(Tree::Chain, Output)],
        (Reduce, A::Binary) => &[CopyIn(Output), TreeUp(Tree::Binary, Output)],
        (Reduce, A::Rabenseifner) => {
            &[CopyIn(Output), Fold(Output), HalvingNear(Output), HandToRoot, GatherToRoot]
        }

        (Allreduce, A::Linear) => &[ReduceInOrder, TreeDown(Tree::Flat)],
        (Allreduce, A::ReduceBcast) => {
            &[CopyIn(Output), TreeUp(Tree::Binomial, Output), TreeDown(Tree::Binomial)]
        }
        (Allreduce, A::RecursiveDoubling) => &[CopyIn(Output), Fold(Output), Doubling, Unfold],
        (Allreduce, A::Ring | A::SegmentedRing) => {
            &[CopyIn(Output), RingReduce(Output, Rank), RingGather(Following)]
        }
        (Allreduce, A::RingChannels) => &[CopyIn(Output), RingChannels(Output, Rank, Lap::Both)],
        (Allreduce, A::DoubleTree) => &[CopyIn(Output), TwoTrees],
        (Allreduce, A::Rabenseifner) => {
            &[CopyIn(Output), Fold(Output), HalvingNear(Output), DoublingBack, Unfold]
        }
        (Allreduce, A::RabenseifnerHalves) => {
            &[CopyIn(Output), FoldHalves, HalvingNear(Output), DoublingBack, Unfold]
        }

        (Gather | Gatherv, A::Linear) => &[GatherLinear { from: Input, sorted: false }],
        (Gather | Gatherv, A::LinearSync) => &[GatherSync],
        (Gather | Gatherv, A::Binomial) => &[CopyOwn, GatherUp],
        (Gatherv, A::SortedLinear) => &[GatherLinear { from: Input, sorted: true }],
        (Gatherv, A::SortedBinomial) => &[SortedGatherUp],
        (Gatherv, A::Traff) => &[CopyOwn, TraffUp],

        (Scatter | Scatterv, A::Linear) => &[ScatterLinear { from: Input, sorted: false }],
        (Scatter | Scatterv, A::Binomial) => &[ScatterDown(Input, Rank), TakeOwn],
        (Scatterv, A::SortedLinear) => &[ScatterLinear { from: Input, sorted: true }],
        (Scatterv, A::SortedBinomial) => &[SortedScatterDown],
        (Scatterv, A::Traff) => &[TraffDown, TakeOwn],

        (Allgather | Allgatherv, A::Ring) => &[CopyOwn, RingGather(Rank)],
        (Allgather, A::RingChannels) => &[CopyOwn, RingChannels(Output, Rank, Lap::Gather)],
        (Allgather | Allgatherv, A::Bruck) => &[CopyOwn, BruckGather],
        (Allgather | Allgatherv, A::RecursiveDoubling) => &[CopyOwn, FoldPiece, DoublingGather, UnfoldPieces],
        (Allgather | Allgatherv, A::NeighborExchange) => &[CopyOwn, Neighbors],
        (Allgather | Allgatherv, A::GatherBcast) => &[CopyOwn, GatherUp, TreeDown(Tree::Binomial)],
        (Allgather | Allgatherv, A::LinearGatherBcast) => {
            &[CopyOwn, GatherLinear { from: Output, sorted: false }, ChosenTreeDown]
        }
        (Allgatherv, A::SegmentedRing) => &[CopyOwn, RingGatherSegments],

        (Alltoall | Alltoallv | Alltoallw, A::Linear) => &[CopyOwnPair, ExchangeAll { empty: false }],
        (Alltoallv | Alltoallw, A::LinearEmpty) => &[CopyOwnPair, ExchangeAll { empty: true }],
        (Alltoall | Alltoallv | Alltoallw, A::Pairwise) => &[CopyOwnPair, ExchangePairwise],
        (Alltoall, A::Bruck) => &[BruckExchange],

        (ReduceScatter | ReduceScatterBlock, A::ReduceThenScatter) => {
            &[CopyIn(Work), ChosenTreeUp(Work), ScatterDown(Work, Rank), TakeOwn]
        }
        (ReduceScatter | ReduceScatterBlock, A::ReduceThenLinearScatter) => {
            &[CopyIn(Work), ChosenTreeUp(Work), ScatterLinear { from: Work, sorted: false }, TakeOwn]
        }
        (ReduceScatter | ReduceScatterBlock, A::Butterfly) => {
            &[MirrorIn, Fold(Work), HalvingNear(Work), MirrorOut]
        }
        (ReduceScatterBlock, A::RecursiveDoubling) => &[CopyIn(Work), DoublingReduce, TakeOwn],
        (ReduceScatter | ReduceScatterBlock, A::RecursiveHalving) => {
            &[CopyIn(Work), Fold(Work), HalvingFar, UnfoldOwn, TakeOwn]
        }
        (ReduceScatter | ReduceScatterBlock, A::Ring) => {
            &[CopyIn(Work), RingReduce(Work, Preceding), TakeOwn]
        }
        (ReduceScatterBlock, A::RingChannels) => {
            &[CopyIn(Work), RingChannels(Work, Preceding, Lap::Reduce), TakeOwn]
        }
        (ReduceScatter | ReduceScatterBlock, A::Pairwise) => &[ReducePairwise],

        (Scan, A::Linear) => &[ScanChain],
        (Exscan, A::Linear) => &[ExscanChain],
        (Scan | Exscan, A::RecursiveDoubling) => &[ScanDoubling],

        (Barrier, A::Linear) => &[TreeUp(Tree::Flat, Output), TreeDown(Tree::Flat)],
        (Barrier, A::Binomial) => &[TreeUp(Tree::Binomial, Output), TreeDown(Tree::Binomial)],
        (Barrier, A::RecursiveDoubling) => &[Fold(Output), Doubling, Unfold],
        (Barrier, A::Dissemination) => &[Dissemination],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_small() {
        assert!(size_of::<Cursor>() <= 100, "{}", size_of::<Cursor>());
    }

    /// What moves of a step: direction, peer, bytes; none for a wait. Work in memory is left out.
    fn moved(step: Step) -> Option<Option<(bool, u32, u64)>> {
        match step {
            Step::Send { to, data } => Some(Some((true, to, data.len))),
            Step::Recv { from, data, .. } => Some(Some((false, from, data.len))),
            Step::Wait => Some(None),
            Step::Local { .. } => None,
        }
    }

    #[test]
    fn an_exchange_is_its_steps() {
        let mut exchanges = 0;
        for &operation in Operation::ALL {
            for algorithm in Algorithm::of(operation) {
                for (ranks, rank) in (1..20).flat_map(|ranks| (0..ranks).map(move |rank| (ranks, rank))) {
                    let sizes = Sizes::Bytes(if operation == Operation::Barrier { 0 } else { 24 });
                    let shape = Shape { operation, ranks, rank, root: ranks / 2, unit: 8 };
                    let Ok(cursor) = Cursor::new(shape, Choice::plain(algorithm), sizes) else { continue };
                    let (mut slow, mut fast, mut steps) = (cursor, cursor, Vec::new());
                    loop {
                        while let Some(Exchange { to, bytes, from }) = fast.exchange() {
                            steps.extend([Some((true, to, bytes)), Some((false, from, bytes)), None]);
                            exchanges += 1;
                        }
                        let Some(step) = fast.next(sizes) else { break };
                        steps.extend(moved(step));
                    }
                    let expected: Vec<_> =
                        std::iter::from_fn(|| slow.next(sizes)).filter_map(moved).collect();
                    assert_eq!(steps, expected, "{shape:?} {algorithm}");
                }
            }
        }
        assert!(exchanges > 500, "{exchanges}");
    }
}

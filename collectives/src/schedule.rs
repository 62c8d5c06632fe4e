//! From a request to steps: a cursor for the program of an algorithm, and the steps that it yields.

use crate::algorithms::{Algorithm, Choice};
use crate::cursor::{Cursor, Member, Next, Phase, Split};
use crate::program::{self, Needs, Pieces};
use crate::{Buffer, Counts, Error, MAX_RANKS, Operation, Sizes, Step};
use vef_format::operation::{Root, Sizing};

/// A round of a schedule: [`Step::Send`](crate::Step::Send), [`Step::Recv`](crate::Step::Recv) and [`Step::Wait`](crate::Step::Wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The receiver of what is sent.
    pub to: u32,
    /// How much that is.
    pub bytes: u64,
    /// The sender of what is received.
    pub from: u32,
}

/// The steps of one rank as an iterator; `sizes` stay borrowed.
pub fn steps<'a>(
    member: Member,
    choice: Choice,
    sizes: Sizes<'a>,
) -> Result<impl Iterator<Item = Step> + use<'a>, Error> {
    let mut cursor = Cursor::new(member, choice, sizes)?;
    Ok(std::iter::from_fn(move || cursor.next(sizes)))
}

/// Of one vector or block: steps and rounds, several a segment, are counted in 32 bits.
const MOST_SEGMENTS: u32 = 1 << 30;

impl Cursor {
    /// How far it has come, for [`Cursor::moved_to`]: phases left, lap, round, position.
    pub fn position(&self) -> [u32; 4] {
        [self.phases.len() as u32, self.lap, self.round, self.pos]
    }

    /// A new cursor at the position of another one of the same member, choice and sizes; `None` if it has no such phase.
    pub fn moved_to(self, [phases, lap, round, pos]: [u32; 4]) -> Option<Self> {
        let passed = self.phases.len().checked_sub(phases as usize)?;
        Some(Self { phases: &self.phases[passed..], lap, round, pos, ..self })
    }

    /// The beginning of a rank's schedule. Costs a few divisions and nothing else.
    pub fn new(member: Member, choice: Choice, sizes: Sizes<'_>) -> Result<Cursor, Error> {
        let Member { operation, ranks, rank, root, unit } = member;
        let Choice { algorithm, segment, fanout, tree, .. } = choice;
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::Ranks { ranks: ranks.into() });
        }
        let root = if operation.is_rooted() { root } else { 0 };
        if let Some(&rank) = [rank, root].iter().find(|&&rank| rank >= ranks) {
            return Err(Error::RankOutside { rank, ranks });
        }
        let program = algorithm.program(operation);
        let program = program.ok_or(Error::NoSuchAlgorithm { operation, algorithm: algorithm.name() })?;
        let description = algorithm.description();
        if description.even_ranks && ranks % 2 == 1 && ranks > 1 {
            return Err(Error::OddRanks { algorithm: algorithm.name(), ranks });
        }
        choice.check()?;
        let Parts { split, total, piece, wide } = member.parts(algorithm, sizes)?;
        if algorithm == Algorithm::Nothing && total > 0 && ranks > 1 {
            return Err(Error::NeedsCounts { operation, algorithm: algorithm.name(), needs: "zero bytes" });
        }
        let mut cursor = Cursor {
            phases: program.phases,
            lap: 0,
            round: 0,
            pos: 0,
            ranks,
            rank,
            root,
            unit,
            operation,
            split,
            tree,
            fanout,
            total,
            piece,
            wide,
            segments: 1,
            segment: total,
        };
        let (length, of) = (description.segments)(&cursor, sizes, segment);
        cursor.segment = length;
        let segments = of.div_ceil(length).max(1);
        if segments > u64::from(MOST_SEGMENTS) {
            return Err(Error::TooManySegments { bytes: of, segment });
        }
        cursor.segments = segments as u32;
        Ok(cursor)
    }

    /// The next step, or `None` at the end. `sizes` must be those that the cursor was made with.
    #[inline]
    pub fn next(&mut self, sizes: Sizes<'_>) -> Option<Step> {
        loop {
            let next = match self.phases.first()? {
                Phase::Steps(steps) => steps(self, sizes),
                Phase::Exchanges(round) => self.exchange_step(round(self)),
            };
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

    /// The step of a round of [`Phase::Exchanges`].
    fn exchange_step(&self, round: Option<(u32, u32)>) -> Next {
        let Some((to, from)) = round else { return Next::Done };
        match self.pos {
            0 => program::send(to, Buffer::Output, self.all()),
            1 => program::reduce(from, Buffer::Output, self.all(), program::order_of(from, self.rank)),
            2 => program::WAIT,
            _ => Next::Round,
        }
    }

    /// The next round, if it is a message out, a message in and a wait for both, of one of the phases in which every
    /// round is like that and which make up most messages: [`Cursor::next`] would give its steps one by one. `None`
    /// otherwise, and in the middle of a round.
    #[inline]
    pub fn exchange(&mut self) -> Option<Exchange> {
        let Phase::Exchanges(round) = self.phases.first().filter(|_| self.pos == 0)? else { return None };
        let (to, from) = round(self)?;
        self.round += 1;
        Some(Exchange { to, bytes: self.total, from })
    }
}

/// How the data falls into pieces; see [`Cursor`].
struct Parts {
    split: Split,
    total: u64,
    piece: u64,
    wide: u32,
}

impl Member {
    /// Bytes of a buffer of this rank, under sizes that [`Cursor::new`] accepts.
    pub fn buffer_bytes(&self, buffer: Buffer, sizes: Sizes<'_>) -> u64 {
        use Operation::*;
        let (total, own) = match sizes {
            Sizes::Blocks(counts) => (counts.total(), counts.of(self.rank)),
            Sizes::Pairs { send, recv } if buffer == Buffer::Input => (send.total(), recv.total()),
            Sizes::Pairs { recv, .. } => (recv.total(), recv.total()),
            Sizes::Sums { send, recv } => (send.max(recv), send.min(recv)),
            Sizes::Bytes(bytes) => match self.operation.sizing() {
                Sizing::None | Sizing::Vector => (bytes, bytes),
                _ => (bytes.saturating_mul(self.ranks.into()), bytes),
            },
        };
        match (self.operation, buffer) {
            (Gather | Gatherv | Allgather | Allgatherv, Buffer::Input) => own,
            (Scatter | Scatterv | ReduceScatter | ReduceScatterBlock, Buffer::Output) => own,
            _ => total,
        }
    }

    fn parts(&self, algorithm: Algorithm, sizes: Sizes<'_>) -> Result<Parts, Error> {
        let Member { operation, ranks, unit, .. } = *self;
        let needs = |needs| Error::NeedsCounts { operation, algorithm: algorithm.name(), needs };
        let wrong = |sizes| Err(Error::WrongSizes { operation, sizes });
        let for_all = |counts: &Counts| match counts.ranks() == ranks {
            true => Ok(()),
            false => Err(Error::CountsMismatch { counts: counts.ranks(), ranks }),
        };
        let table = |counts: &Counts| Parts { split: Split::Table, total: counts.total(), piece: 0, wide: 0 };
        let known = algorithm.description().needs;
        let (total, pieces) = match (sizes, operation.sizing()) {
            (Sizes::Bytes(bytes), Sizing::None | Sizing::Vector) => (bytes, ranks),
            (Sizes::Bytes(_), _) if known == Needs::Sorted => return Err(needs("every rank's size, sorted")),
            (Sizes::Bytes(block), _) => (block.checked_mul(ranks.into()).ok_or(Error::TooLarge)?, ranks),
            (Sizes::Blocks(counts), Sizing::Blocks) => {
                for_all(counts)?;
                if known == Needs::Sorted && !counts.is_sorted_for(self.root) {
                    return Err(needs("the sizes sorted for this root"));
                }
                return Ok(table(counts));
            }
            (Sizes::Pairs { send, recv }, Sizing::Pairs) => {
                for_all(send)?;
                for_all(recv)?;
                return Ok(table(send));
            }
            (Sizes::Sums { send, .. }, Sizing::Pairs) => (send, ranks),
            (Sizes::Sums { send, recv }, Sizing::Blocks) => match operation.root() {
                None if operation.reduces() => (send, ranks),
                None => (recv, ranks),
                Some(Root::Sends | Root::Receives) if known != Needs::Own => {
                    return Err(needs("every rank's size"));
                }
                Some(Root::Sends | Root::Receives) => (send.max(recv), (ranks - 1).max(1)),
            },
            (Sizes::Blocks(_), _) => return wrong("blocks"),
            (Sizes::Pairs { .. }, _) => return wrong("pairs"),
            (Sizes::Sums { .. }, _) => return wrong("sums"),
        };
        if unit == 0 || !total.is_multiple_of(unit.into()) {
            return Err(Error::Unit { bytes: total, unit });
        }
        let (elements, pieces, unit) = (total / u64::from(unit), u64::from(pieces), u64::from(unit));
        let even = |pieces: u64| Parts {
            split: Split::Even,
            total,
            piece: elements / pieces * unit,
            wide: (elements % pieces) as u32,
        };
        Ok(match algorithm.description().pieces {
            Pieces::Even => even(pieces),
            Pieces::OfCore => even(1 << ranks.ilog2()),
            Pieces::RoundedUp => {
                Parts { split: Split::Ceil, total, piece: elements.div_ceil(pieces) * unit, wide: 0 }
            }
            Pieces::Halves => Parts { split: Split::Halves, total, piece: 0, wide: 0 },
        })
    }
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

    /// A checkpoint has the positions of cursors, not the cursors.
    #[test]
    fn a_cursor_moved_to_a_position_goes_on_from_there() {
        for &operation in Operation::ALL {
            for algorithm in Algorithm::of(operation) {
                let sizes = Sizes::Bytes(if operation == Operation::Barrier { 0 } else { 24 });
                let choice = Choice { segment: 8, ..Choice::plain(algorithm) };
                for rank in 0..6 {
                    let member = Member { operation, ranks: 6, rank, root: 4, unit: 8 };
                    let Ok(begin) = Cursor::new(member, choice, sizes) else { continue };
                    let mut cursor = begin;
                    loop {
                        let mut moved = begin.moved_to(cursor.position()).unwrap();
                        let step = cursor.next(sizes);
                        assert_eq!(moved.next(sizes), step, "{member:?} {algorithm}");
                        assert_eq!(moved.position(), cursor.position(), "{member:?} {algorithm}");
                        if step.is_none() {
                            break;
                        }
                    }
                    assert!(begin.moved_to([u32::MAX, 0, 0, 0]).is_none());
                }
            }
        }
    }

    #[test]
    fn an_exchange_is_its_steps() {
        let mut exchanges = 0;
        for &operation in Operation::ALL {
            for algorithm in Algorithm::of(operation) {
                for (ranks, rank) in (1..20).flat_map(|ranks| (0..ranks).map(move |rank| (ranks, rank))) {
                    let sizes = Sizes::Bytes(if operation == Operation::Barrier { 0 } else { 24 });
                    let member = Member { operation, ranks, rank, root: ranks / 2, unit: 8 };
                    let Ok(cursor) = Cursor::new(member, Choice::plain(algorithm), sizes) else { continue };
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
                    assert_eq!(steps, expected, "{member:?} {algorithm}");
                }
            }
        }
        assert!(exchanges > 500, "{exchanges}");
    }
}

//! A position in one rank's schedule: plain numbers, and what phases compute from them.

use crate::{Operation, Sizes, Step, Tree};

/// One rank's part of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The operation.
    pub operation: Operation,
    /// Communicator size, 1 to [`MAX_RANKS`](crate::MAX_RANKS).
    pub ranks: u32,
    /// Whose steps, a rank of the communicator.
    pub rank: u32,
    /// The root; not looked at where the operation has none.
    pub root: u32,
    /// Bytes of one element, which no split divides; 1 where it is not known.
    pub unit: u32,
}

/// A position in one rank's schedule.
///
/// It borrows nothing: the sizes are handed to every [`Cursor::next`], so that whoever keeps many cursors of
/// one collective keeps the sizes once.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    pub(crate) phases: &'static [Phase],
    /// Position inside the first phase.
    pub(crate) lap: u32,
    pub(crate) round: u32,
    pub(crate) pos: u32,

    pub(crate) ranks: u32,
    pub(crate) rank: u32,
    pub(crate) root: u32,
    pub(crate) unit: u32,
    pub(crate) operation: Operation,
    pub(crate) split: Split,
    pub(crate) tree: Tree,
    pub(crate) fanout: u32,
    /// Bytes of all pieces.
    pub(crate) total: u64,
    /// Bytes of a piece; the first `wide` have one unit more.
    pub(crate) piece: u64,
    pub(crate) wide: u32,
    /// Segments (trees) or laps (rings) of `segment` bytes.
    pub(crate) segments: u32,
    pub(crate) segment: u64,
}

/// A building block of programs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// Any steps.
    Steps(fn(&Cursor, Sizes<'_>) -> Next),
    /// In each round the whole output is sent to a rank, that of another (or the same) is received and reduced with it, and
    /// both are waited for. The function returns the receiver and the sender; `None`: the rounds are over.
    Exchanges(fn(&Cursor) -> Option<(u32, u32)>),
}

/// What a phase returns.
pub(crate) enum Next {
    /// This step; then the next position.
    Step(Step),
    /// Nothing here; go to the next position.
    Skip,
    /// Go to the next round.
    Round,
    /// Go to the next lap.
    Lap,
    /// The phase is over.
    Done,
}

/// How `total` falls into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Piece i has `piece` bytes, and one unit more if i < `wide`.
    Even,
    /// Every piece has `piece` bytes, but none reaches beyond `total`.
    Ceil,
    /// As the counts say.
    Table,
    /// In two, and these in two again, each left part being the shorter one if there is one.
    Halves,
}

/// How the ranks' pieces are numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// By rank.
    Rank,
    /// From the root on.
    Virtual,
    /// By the rank after.
    Following,
    /// By the rank before.
    Preceding,
}

/// What phases ask of the communicator's numbers and the split of the data.
impl Cursor {
    /// (a + b) mod p for a, b ≤ p.
    pub(crate) fn plus(&self, a: u32, b: u32) -> u32 {
        let sum = a + b;
        if sum >= self.ranks { sum - self.ranks } else { sum }
    }

    /// (a − b) mod p for a < p, b ≤ p.
    pub(crate) fn minus(&self, a: u32, b: u32) -> u32 {
        if a >= b { a - b } else { a + self.ranks - b }
    }

    /// This rank counted from the root.
    pub(crate) fn virtual_rank(&self) -> u32 {
        self.minus(self.rank, self.root)
    }

    /// The rank `v` places after the root.
    pub(crate) fn real_rank(&self, v: u32) -> u32 {
        self.plus(v, self.root)
    }

    /// This rank's number in a numbering of the pieces.
    pub(crate) fn number(&self, which: Which) -> u32 {
        match which {
            Which::Rank => self.rank,
            Which::Virtual => self.virtual_rank(),
            Which::Following => self.plus(self.rank, 1),
            Which::Preceding => self.minus(self.rank, 1),
        }
    }

    /// Half 0 or 1 of the vector, the first one being the larger.
    pub(crate) fn half(&self, half: u32) -> (u64, u64) {
        let unit = u64::from(self.unit);
        let first = (self.total / unit).div_ceil(2) * unit;
        if half == 0 { (0, first) } else { (first, self.total - first) }
    }

    /// A round of two messages and a wait for both.
    #[inline]
    pub(crate) fn round_of(&self, first: impl FnOnce() -> Next, second: impl FnOnce() -> Next) -> Next {
        match self.pos {
            0 => first(),
            1 => second(),
            2 => Next::Step(Step::Wait),
            _ => Next::Round,
        }
    }

    /// All bytes, (offset, length).
    pub(crate) fn all(&self) -> (u64, u64) {
        (0, self.total)
    }

    /// The length of a segment of `bytes` bytes, for the one asked for (0: none), and `bytes`.
    pub(crate) fn cut(&self, bytes: u64, segment: u64) -> (u64, u64) {
        let unit = u64::from(self.unit);
        let length = if segment == 0 { bytes.max(1) } else { (segment / unit * unit).max(unit) };
        (length, bytes)
    }

    /// The bytes of a segment of the whole vector.
    pub(crate) fn segment(&self, segment: u32) -> (u64, u64) {
        let offset = u64::from(segment) * self.segment;
        (offset, self.segment.min(self.total - offset))
    }

    /// Bytes before piece `i`.
    pub(crate) fn start(&self, sizes: Sizes<'_>, i: u32) -> u64 {
        match self.split {
            Split::Even => u64::from(i) * self.piece + u64::from(i.min(self.wide)) * u64::from(self.unit),
            Split::Ceil => self.total.min(u64::from(i) * self.piece),
            // Not reached: the vector is one piece, which only the halving divides.
            Split::Halves => 0,
            Split::Table => match sizes {
                Sizes::Blocks(counts) | Sizes::Pairs { send: counts, .. } => counts.start(i),
                // Not reached: the table is only chosen with counts.
                Sizes::Bytes(_) | Sizes::Sums { .. } => 0,
            },
        }
    }

    /// The bytes of piece `i`.
    pub(crate) fn piece(&self, sizes: Sizes<'_>, i: u32) -> (u64, u64) {
        let start = self.start(sizes, i);
        (start, self.start(sizes, i + 1) - start)
    }

    /// The bytes of `count` ≤ p pieces from `first` < p on, the last being followed by the first.
    pub(crate) fn span(&self, sizes: Sizes<'_>, first: u32, count: u32) -> (u64, u64) {
        let start = self.start(sizes, first);
        let end = first + count;
        let len = match end.checked_sub(self.ranks) {
            None => self.start(sizes, end) - start,
            Some(wrapped) => self.total - start + self.start(sizes, wrapped),
        };
        // Behind the last byte, where empty pieces lie, comes the first.
        (if start == self.total { 0 } else { start }, len)
    }
}

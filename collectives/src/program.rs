//! What the file of an algorithm says of it ([`Description`]), and the words in which it does.
//!
//! An algorithm has a *program* for each operation that it carries out: a short list of phases. A [`Phase`] is a function of
//! (lap, round, position) and the communicator's numbers to a step, so the cursor keeps no other state.

use crate::cursor::{Cursor, Next, Phase};
use crate::{Buffer, Combine, Data, Operation, Sizes, Step, Tree};

/// An algorithm, as its file describes it.
pub(crate) struct Description {
    /// One for each operation, or several operations together.
    pub(crate) programs: &'static [Program],
    /// How a vector, or equal blocks, fall into pieces.
    pub(crate) pieces: Pieces,
    /// What of the members' sizes each of them must know.
    pub(crate) needs: Needs,
    /// Whether the number of ranks must be even (or 1).
    pub(crate) even_ranks: bool,
    /// The bytes that segments divide, and the length of a segment, for the one asked for (0: do not segment).
    pub(crate) segments: fn(&Cursor, Sizes<'_>, u64) -> (u64, u64),
}

impl Description {
    /// Pieces are even, and segments divide the vector.
    pub(crate) const fn new(programs: &'static [Program]) -> Description {
        let segments = |c: &Cursor, _: Sizes<'_>, segment| c.cut(c.total, segment);
        Description { programs, pieces: Pieces::Even, needs: Needs::Blocks, even_ranks: false, segments }
    }

    /// The program for an operation.
    pub(crate) fn program(&self, operation: Operation) -> Option<&'static Program> {
        self.programs.iter().find(|program| program.operations.contains(&operation))
    }
}

/// How an algorithm carries operations out.
pub(crate) struct Program {
    pub(crate) operations: &'static [Operation],
    pub(crate) phases: &'static [Phase],
    pub(crate) in_order: InOrder,
}

/// The programs of an algorithm, a line for each: `Gather | Gatherv: copy_own(), gather_up();`. A phase with arguments, or with
/// none in parentheses, is a method of [`Cursor`] that yields [`Phase::Steps`]; a bare name is one of [`Phase::Exchanges`]. In
/// brackets stands when values are reduced in the order of ranks: `Reduce [Always]: reduce_in_order();`.
macro_rules! programs {
    ($($($operation:ident)|+ $([$in_order:ident])?: $($phase:ident $(($($argument:expr),*))?),*;)+) => {
        &[$($crate::program::Program {
            operations: &[$($crate::Operation::$operation),+],
            phases: &[$($crate::program::phase!($phase $(($($argument),*))?)),*],
            in_order: $crate::program::in_order!($($in_order)?),
        }),+]
    };
}
pub(crate) use programs;

macro_rules! phase {
    ($phase:ident) => { $crate::cursor::Phase::Exchanges($crate::Cursor::$phase) };
    ($phase:ident($($argument:expr),*)) => {
        $crate::cursor::Phase::Steps(|cursor, sizes| cursor.$phase($($argument,)* sizes))
    };
}
pub(crate) use phase;

macro_rules! in_order {
    () => {
        $crate::program::InOrder::Never
    };
    ($in_order:ident) => {
        $crate::program::InOrder::$in_order
    };
}
pub(crate) use in_order;

/// When a program reduces values in the order of ranks, so that the operation need not be commutative.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InOrder {
    Never,
    Always,
    /// If the root is rank 0.
    FromRank0,
    /// Along those trees of the choice in which subtrees are consecutive ranks.
    ByTree,
}

impl InOrder {
    pub(crate) fn holds(self, root: u32, tree: Tree) -> bool {
        match self {
            InOrder::Never => false,
            InOrder::Always => true,
            InOrder::FromRank0 => root == 0,
            InOrder::ByTree => matches!(tree, Tree::Flat | Tree::Binomial | Tree::Knomial | Tree::Chain),
        }
    }
}

/// The pieces of a vector or of equal blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// One for each rank; they differ by one element at most.
    Even,
    /// The same for the ranks of the largest power of two.
    OfCore,
    /// One for each rank, the last ones shorter or empty.
    RoundedUp,
    /// The vector in two, and these in two again, each left part being the shorter one if there is one.
    Halves,
}

/// What a member must know of the others' blocks where these differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing but its own, in a gather or scatter.
    Own,
    /// All blocks.
    Blocks,
    /// All blocks, sorted ([`crate::Counts::sorted`]).
    Sorted,
}

pub(crate) const WAIT: Next = Next::Step(Step::Wait);

pub(crate) fn send(to: u32, buffer: Buffer, bytes: (u64, u64)) -> Next {
    Next::Step(Step::Send { to, data: Data::new(buffer, bytes) })
}

/// Whether these bytes are none, and everybody concerned knows: MPI libraries then send no message where blocks
/// are of unequal sizes.
pub(crate) fn is_silent((_, len): (u64, u64), sizes: Sizes<'_>) -> bool {
    len == 0 && matches!(sizes, Sizes::Blocks(_) | Sizes::Pairs { .. })
}

pub(crate) fn recv(from: u32, buffer: Buffer, bytes: (u64, u64)) -> Next {
    reduce(from, buffer, bytes, Combine::Store)
}

pub(crate) fn reduce(from: u32, buffer: Buffer, bytes: (u64, u64), combine: Combine) -> Next {
    Next::Step(Step::Recv { from, data: Data::new(buffer, bytes), combine })
}

pub(crate) fn local(from: (Buffer, (u64, u64)), into: (Buffer, (u64, u64)), combine: Combine) -> Next {
    Next::Step(Step::Local { from: Data::new(from.0, from.1), into: Data::new(into.0, into.1), combine })
}

/// How what comes from `from` is reduced with what rank `at` has.
pub(crate) fn order_of(from: u32, at: u32) -> Combine {
    if from < at { Combine::Before } else { Combine::After }
}

//! Collectives as the point-to-point messages of an algorithm: one task's part of one call, step by step.
//!
//! All members choose the same algorithm, because the decision table uses only what all members know. Each message has
//! the true count of its peer wherever the capture has it.

use collectives::choose::Table;
use collectives::creations::Library;
use collectives::{Algorithm, Choice, Counts, Cursor, Error, Member, Sizes, Step};
use std::sync::LazyLock;
use vef_format::capture::event::Collective;
use vef_format::operation::{Amounts, Operation};

/// The table of the algorithms of a library.
pub(crate) fn table_of(library: Library) -> &'static Table {
    static TABLES: LazyLock<[Table; 2]> =
        LazyLock::new(|| ["mpich", "openmpi"].map(|name| Table::builtin(name).unwrap_or_default()));
    match library {
        Library::Mpich => &TABLES[0],
        Library::OpenMpi => &TABLES[1],
    }
}

/// The remaining steps of one task's part of a collective.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The cursor over the steps, and the sizes; `None`: no steps.
    rest: Option<(Cursor, KnownSizes)>,
}

/// The sizes that the task knows.
#[derive(Debug)]
enum KnownSizes {
    Sums(Sizes<'static>),
    Blocks(Counts),
    Pairs { send: Counts, recv: Counts },
}

impl KnownSizes {
    fn of(call: &Collective<'_>, ranks: u32) -> Result<Self, Error> {
        let counts = |list: &[u64]| Counts::new(list.iter().copied());
        let given = |list: &[u64]| !list.is_empty();
        let (send, recv) = (call.send_counts, call.recv_counts);
        Ok(match call.operation {
            Operation::Alltoallv | Operation::Alltoallw if given(send) && given(recv) => {
                Self::Pairs { send: counts(send)?, recv: counts(recv)? }
            }
            Operation::Scatterv if given(send) => Self::Blocks(counts(send)?),
            Operation::Gatherv | Operation::Allgatherv | Operation::ReduceScatter if given(recv) => {
                Self::Blocks(counts(recv)?)
            }
            operation => {
                Self::Sums(Sizes::from_sums(operation, ranks, call.amounts.send.0, call.amounts.recv.0))
            }
        })
    }

    fn sizes(&self) -> Sizes<'_> {
        match self {
            Self::Sums(sizes) => *sizes,
            Self::Blocks(counts) => Sizes::Blocks(counts),
            Self::Pairs { send, recv } => Sizes::Pairs { send, recv },
        }
    }
}

impl Steps {
    /// The part of communicator rank `rank` of `ranks`.
    pub(crate) fn new(table: &Table, call: &Collective<'_>, ranks: u32, rank: u32) -> Result<Self, Error> {
        // The root omits peers with count 0, as MPI libraries do.
        let vector = matches!(call.operation, Operation::Gatherv | Operation::Scatterv);
        let is_root = call.root.is_some_and(|root| root.0 == rank);
        if vector && !is_root && call.amounts == Amounts::default() {
            return Ok(Self { rest: None });
        }
        let sizes = KnownSizes::of(call, ranks)?;
        let root = call.root.map_or(0, |root| root.0);
        let member = Member { operation: call.operation, ranks, rank, root, unit: 1 };
        let choice = match vector {
            // Only the root knows all counts, so the other members could not follow another algorithm.
            true => Choice::plain(Algorithm::Linear),
            false => table.choose(&member, sizes.sizes()),
        };
        Ok(Self { rest: Some((Cursor::new(member, choice, sizes.sizes())?, sizes)) })
    }

    /// The next step; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Step> {
        let (cursor, sizes) = self.rest.as_mut()?;
        cursor.next(sizes.sizes())
    }
}

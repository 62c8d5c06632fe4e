//! Decision tables: which algorithm for which operation, communicator size and number of bytes.
//!
//! A table is a list of [`Rule`]s for each operation; the first whose conditions hold and whose algorithm
//! can be used decides. Tables are TOML, those that ship included ([`Table::builtin`]):
//!
//! ```toml
//! bcast = [
//!   { max_bytes = 0, algorithm = "nothing" },
//!   { max_ranks = 7, algorithm = "binomial" },
//!   { max_bytes = 12287, algorithm = "binomial" },
//!   { power_of_two = true, max_bytes = 524287, algorithm = "scatter-doubling" },
//!   { algorithm = "scatter-ring" },
//! ]
//! ```
//!
//! All members of a communicator must come to the same choice, so rules see nothing in which members may
//! differ: for alltoallv and alltoallw, and for gatherv and scatterv of which only sums are known, `bytes` is 0.

mod read;
mod rule;

pub use read::TableError;
pub use rule::Rule;

use crate::program::Needs;
use crate::{Algorithm, Choice, Member, Operation, Sizes};
use vef_format::operation::Sizing;

/// A decision table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// By [`Operation`]'s number.
    rules: Vec<Vec<Rule>>,
}

impl Default for Table {
    /// The table called `default`.
    fn default() -> Table {
        Table::builtin("default").unwrap_or(Table { rules: Vec::new() })
    }
}

impl Table {
    /// Reads a table. Operations that it does not name are left to [`fallback`].
    pub fn from_toml(text: &str) -> Result<Table, TableError> {
        read::rules(text).map(|rules| Table { rules })
    }

    /// Names of the tables that ship.
    pub const BUILTIN: &[&str] = &["default", "openmpi", "mpich", "nccl"];

    /// A table that ships: `default`, `openmpi` (4.1, component `tuned`), `mpich` (4.0), `nccl` (2.19).
    pub fn builtin(name: &str) -> Option<Table> {
        let text = match name {
            "default" => include_str!("default.toml"),
            "openmpi" => include_str!("openmpi.toml"),
            "mpich" => include_str!("mpich.toml"),
            "nccl" => include_str!("nccl.toml"),
            _ => return None,
        };
        // A test reads them all.
        Table::from_toml(text).ok()
    }

    /// What to use. It can be scheduled whenever [`fallback`]'s algorithm can, once counts are sorted for an algorithm that sorts.
    pub fn choose(&self, member: &Member, sizes: Sizes<'_>) -> Choice {
        self.decide(member, sizes, |_| true).unwrap_or(Choice::plain(fallback(member.operation)))
    }

    /// The choice of the first rule that holds among those whose choice is `acceptable`; `None`: no such rule holds.
    pub fn decide(
        &self,
        member: &Member,
        sizes: Sizes<'_>,
        acceptable: impl Fn(&Choice) -> bool,
    ) -> Option<Choice> {
        let (bytes, total) = common_bytes(member, sizes);
        self.rules(member.operation)
            .iter()
            .filter(|rule| rule.holds(member, bytes, total) && is_usable(rule.algorithm, member, sizes))
            .map(Rule::choice)
            .find(acceptable)
    }

    /// The rules for an operation, in order; none for one that the table does not name.
    pub fn rules(&self, operation: Operation) -> &[Rule] {
        self.rules.get(operation as usize).map_or(&[], Vec::as_slice)
    }
}

/// An algorithm that can be used whatever the communicator and the sizes.
pub fn fallback(operation: Operation) -> Algorithm {
    use Operation::*;
    match operation {
        Barrier => Algorithm::Dissemination,
        Allgather | Allgatherv => Algorithm::Ring,
        ReduceScatter | ReduceScatterBlock => Algorithm::Pairwise,
        Bcast | Reduce | Allreduce | Gather | Scatter | Alltoall | Gatherv | Scatterv | Alltoallv
        | Alltoallw | Scan | Exscan => Algorithm::Linear,
    }
}

/// (bytes, total) as all members see them.
pub fn common_bytes(member: &Member, sizes: Sizes<'_>) -> (u64, u64) {
    let Member { operation, ranks, .. } = *member;
    let ranks = u64::from(ranks.max(1));
    match (sizes, operation.sizing()) {
        (Sizes::Bytes(bytes), Sizing::None | Sizing::Vector) => (bytes, bytes),
        (Sizes::Bytes(block), _) => (block, block.saturating_mul(ranks)),
        (Sizes::Blocks(counts), _) => (counts.total() / ranks, counts.total()),
        (Sizes::Sums { send, .. }, Sizing::Blocks) if operation.reduces() => (send / ranks, send),
        (Sizes::Sums { recv, .. }, Sizing::Blocks) if !operation.is_rooted() => (recv / ranks, recv),
        (Sizes::Sums { .. } | Sizes::Pairs { .. }, _) => (0, 0),
    }
}

/// Whether every member can use an algorithm; the same at all of them.
fn is_usable(algorithm: Algorithm, member: &Member, sizes: Sizes<'_>) -> bool {
    let description = algorithm.description();
    let is_known = match (description.needs, sizes) {
        (Needs::Own, _) => true,
        (Needs::Sorted, _) => matches!(sizes, Sizes::Blocks(_)),
        (Needs::Blocks, Sizes::Sums { .. }) => !member.operation.is_rooted(),
        (Needs::Blocks, _) => true,
    };
    let is_empty = match sizes {
        Sizes::Bytes(bytes) => bytes == 0,
        Sizes::Blocks(counts) => counts.total() == 0,
        Sizes::Sums { .. } | Sizes::Pairs { .. } => false,
    };
    is_known
        && (!description.even_ranks || member.ranks.is_multiple_of(2))
        && (algorithm != Algorithm::Nothing || is_empty)
}

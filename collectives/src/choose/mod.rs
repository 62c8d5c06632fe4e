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

pub use read::TableError;

use crate::{Algorithm, Choice, Operation, Order, Shape, Sizes, Tree};
use serde::Deserialize;

/// Conditions, and what to use where they hold. Absent bounds hold always; all bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Fewest ranks.
    #[serde(default)]
    pub min_ranks: u32,
    /// Most ranks.
    #[serde(default = "u32_max")]
    pub max_ranks: u32,
    /// Fewest bytes: of the vector, or of one rank's block (the mean one if they differ).
    #[serde(default)]
    pub min_bytes: u64,
    /// Most bytes of the same.
    #[serde(default = "u64_max")]
    pub max_bytes: u64,
    /// Fewest bytes of all ranks' blocks together (of the vector where there are no blocks).
    #[serde(default)]
    pub min_total: u64,
    /// Most bytes of the same.
    #[serde(default = "u64_max")]
    pub max_total: u64,
    /// Whether the number of ranks must be (or must not be) a power of two.
    #[serde(default)]
    pub power_of_two: Option<bool>,
    /// Whether there must be (or must not be) an element of the vector for every rank.
    #[serde(default)]
    pub element_each: Option<bool>,
    /// The same for the ranks of the largest power of two among them.
    #[serde(default)]
    pub element_each_core: Option<bool>,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// See [`Choice::segment`].
    #[serde(default)]
    pub segment: u64,
    /// See [`Choice::fanout`].
    #[serde(default)]
    pub fanout: u32,
    /// See [`Choice::order`]: `ascending` or `descending`.
    #[serde(default)]
    pub order: Order,
    /// See [`Choice::tree`].
    #[serde(default)]
    pub tree: Tree,
}

fn u32_max() -> u32 {
    u32::MAX
}

fn u64_max() -> u64 {
    u64::MAX
}

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
    pub fn choose(&self, shape: &Shape, sizes: Sizes<'_>) -> Choice {
        self.decide(shape, sizes, |_| true).unwrap_or(Choice::plain(fallback(shape.operation)))
    }

    /// The choice of the first rule that holds among those whose choice is `acceptable`; `None`: no such rule holds.
    pub fn decide(
        &self,
        shape: &Shape,
        sizes: Sizes<'_>,
        acceptable: impl Fn(&Choice) -> bool,
    ) -> Option<Choice> {
        let (bytes, total) = shape.common_bytes(sizes);
        self.rules(shape.operation)
            .iter()
            .filter(|rule| rule.holds(shape, bytes, total) && rule.algorithm.is_usable(shape, sizes))
            .map(Rule::choice)
            .find(acceptable)
    }

    /// The rules for an operation, in order; none for one that the table does not name.
    pub fn rules(&self, operation: Operation) -> &[Rule] {
        self.rules.get(operation as usize).map_or(&[], Vec::as_slice)
    }
}

impl Rule {
    /// What it says to use.
    pub fn choice(&self) -> Choice {
        let Rule { algorithm, segment, fanout, order, tree, .. } = *self;
        Choice { algorithm, segment, fanout, order, tree }
    }

    fn holds(&self, shape: &Shape, bytes: u64, total: u64) -> bool {
        let (ranks, unit) = (shape.ranks, u64::from(shape.unit.max(1)));
        (self.min_ranks..=self.max_ranks).contains(&ranks)
            && (self.min_bytes..=self.max_bytes).contains(&bytes)
            && (self.min_total..=self.max_total).contains(&total)
            && self.power_of_two.is_none_or(|wanted| wanted == ranks.is_power_of_two())
            && self.element_each.is_none_or(|wanted| wanted == (total / unit >= ranks.into()))
            && self.element_each_core.is_none_or(|wanted| wanted == (total / unit >= 1 << ranks.ilog2()))
    }
}

/// An algorithm that can be used whatever the communicator and the sizes.
pub fn fallback(operation: Operation) -> Algorithm {
    use Operation::*;
    match operation {
        Barrier => Algorithm::Dissemination,
        Allgather | Allgatherv => Algorithm::Ring,
        ReduceScatter | ReduceScatterBlock => Algorithm::Pairwise,
        _ => Algorithm::Linear,
    }
}

impl Shape {
    /// (bytes, total) as all members see them.
    fn common_bytes(&self, sizes: Sizes<'_>) -> (u64, u64) {
        use Operation::*;
        let ranks = u64::from(self.ranks.max(1));
        match (sizes, self.operation) {
            (Sizes::Bytes(bytes), Bcast | Reduce | Allreduce | Scan | Exscan | Barrier) => (bytes, bytes),
            (Sizes::Bytes(block), _) => (block, block.saturating_mul(ranks)),
            (Sizes::Blocks(counts), _) => (counts.total() / ranks, counts.total()),
            (Sizes::Sums { recv, .. }, Allgatherv) => (recv / ranks, recv),
            (Sizes::Sums { send, .. }, ReduceScatter) => (send / ranks, send),
            (Sizes::Sums { .. } | Sizes::Pairs { .. }, _) => (0, 0),
        }
    }
}

impl Algorithm {
    /// Whether every member can use it; the same at all of them.
    fn is_usable(self, shape: &Shape, sizes: Sizes<'_>) -> bool {
        use Operation::*;
        let is_needy = matches!(shape.operation, Gatherv | Scatterv);
        match self {
            Algorithm::Nothing => match sizes {
                Sizes::Bytes(bytes) => bytes == 0,
                Sizes::Blocks(counts) => counts.total() == 0,
                Sizes::Sums { .. } | Sizes::Pairs { .. } => false,
            },
            Algorithm::NeighborExchange => shape.ranks.is_multiple_of(2),
            Algorithm::SortedLinear | Algorithm::SortedBinomial => matches!(sizes, Sizes::Blocks(_)),
            Algorithm::Linear => true,
            _ => !(is_needy && matches!(sizes, Sizes::Sums { .. })),
        }
    }
}

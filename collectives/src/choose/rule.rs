//! A rule of a decision table.

use crate::{Algorithm, Choice, Member, Order, Tree};
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

impl Rule {
    /// What it says to use.
    pub fn choice(&self) -> Choice {
        let Rule { algorithm, segment, fanout, order, tree, .. } = *self;
        Choice { algorithm, segment, fanout, order, tree }
    }

    pub(super) fn holds(&self, member: &Member, bytes: u64, total: u64) -> bool {
        let (ranks, unit) = (member.ranks, u64::from(member.unit.max(1)));
        (self.min_ranks..=self.max_ranks).contains(&ranks)
            && (self.min_bytes..=self.max_bytes).contains(&bytes)
            && (self.min_total..=self.max_total).contains(&total)
            && self.power_of_two.is_none_or(|wanted| wanted == ranks.is_power_of_two())
            && self.element_each.is_none_or(|wanted| wanted == (total / unit >= ranks.into()))
            && self.element_each_core.is_none_or(|wanted| wanted == (total / unit >= 1 << ranks.ilog2()))
    }
}

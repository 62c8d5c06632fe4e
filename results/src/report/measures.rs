//! Measures that several parts of a report have.

use crate::Exact;
use crate::table::Cell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Messages and their payload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Amount {
    /// Messages.
    pub messages: Exact,
    /// Their payload.
    pub bytes: Exact,
}

impl Amount {
    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            messages: Exact(self.messages.0 + other.messages.0),
            bytes: Exact(self.bytes.0 + other.bytes.0),
        }
    }

    /// Cells of a table: messages, bytes.
    pub fn cells(&self) -> [Cell; 2] {
        [Cell::count(self.messages), Cell::count(self.bytes)]
    }
}

/// A matrix of senders and receivers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Matrix {
    /// Ranks that share a row, and a column.
    pub ranks_per_row: u32,
    /// Rows, as many as columns.
    pub rows: u32,
    /// The cells with messages, `row × rows + column` each; `null`: all cells, in order. Row: sender.
    pub cells: Option<Vec<u32>>,
    /// Messages of these cells.
    pub messages: Vec<Exact>,
    /// Their bytes.
    pub bytes: Vec<Exact>,
    /// Rows in other orders than by rank, where each row is one rank.
    pub orders: Vec<Order>,
}

/// An order of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Order {
    /// `host`, or `partners`: those that exchange most beside each other.
    pub by: String,
    /// The ranks.
    pub ranks: Vec<u32>,
}

/// A value of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfRank {
    /// The first rank that has it.
    pub rank: u32,
    /// The value.
    pub value: Exact,
}

impl OfRank {
    /// Cells of a table: a time, the rank.
    pub fn time_cells(&self) -> [Cell; 2] {
        [Cell::Time(self.value.0), Cell::Id(self.rank.into())]
    }
}

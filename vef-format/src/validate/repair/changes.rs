//! The log of a repair, and helpers of its steps.

use crate::ids::Rank;
use crate::record::Record;
use std::collections::BTreeMap;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The line in the original trace, 1-based.
    pub line: u64,
    /// Kind of change.
    pub kind: Mended,
    /// Description of the change.
    pub text: String,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mended {
    /// A count of the header.
    HeaderCount,
    /// A communicator below its first use, or a duplicate.
    Communicator,
    /// The id of a point-to-point line.
    Id,
    /// The dependency of a record.
    Dependency,
    /// The position of a record in its task.
    Order,
    /// The awaited bit of a message (`+4`).
    Awaited,
}

/// Counts all changes; keeps the first of each kind.
#[derive(Debug)]
pub(super) struct Changes {
    keep: u64,
    pub(super) kinds: BTreeMap<Mended, u64>,
    pub(super) changes: Vec<Change>,
}

impl Changes {
    pub(super) fn new(keep: usize) -> Self {
        Self { keep: keep as u64, kinds: BTreeMap::new(), changes: Vec::new() }
    }

    pub(super) fn add(&mut self, kind: Mended, line: u64, describe: impl FnOnce() -> String) {
        let count = self.kinds.entry(kind).or_default();
        *count += 1;
        if *count <= self.keep {
            self.changes.push(Change { line, kind, text: describe() });
        }
    }
}

/// Indices of each task's records.
pub(super) fn by_task(records: &[(u64, Record)]) -> BTreeMap<Rank, Vec<usize>> {
    let mut tasks: BTreeMap<Rank, Vec<usize>> = BTreeMap::new();
    for (at, (_, record)) in records.iter().enumerate() {
        if let Some(task) = record.task() {
            tasks.entry(task).or_default().push(at);
        }
    }
    tasks
}

//! A report: its data, and what its tables have beyond that.

use results::report::Report as Data;
use results::table::Table;

/// A report on a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The data: the file of `--format json`, and what the page is drawn from.
    pub data: Data,
    /// All links of the simulation.
    pub(super) links: Option<Table>,
}

impl Report {
    /// The data as one line of JSON.
    pub fn to_json(&self) -> String {
        // Nothing in it can fail: its keys are strings and its numbers finite.
        serde_json::to_string(&self.data).unwrap_or_default()
    }
}

//! The data of a report, from sums over a trace.

mod describe;
pub mod model;
mod text;
mod who;

pub use model::Report;
pub use text::{Section, Shown};

impl Report {
    /// The data as one line of JSON.
    pub fn to_json(&self) -> String {
        // Nothing in it can fail: its keys are strings and its numbers finite.
        serde_json::to_string(self).unwrap_or_default()
    }
}

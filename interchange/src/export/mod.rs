//! Traces on their way to formats of other tools.
//!
//! ```text
//! trace ─ loaded ─▶ records of each task ─ operations ─▶ a graph per rank ─▶ GOAL, Chakra
//!                                       ├ timeline ─▶ events with times ─▶ OTF2
//!                                       └▶ actions ─▶ SimGrid
//! ```

mod directory;
mod error;

mod loaded;
mod notes;
mod timeline;

mod collective;

mod operations;

pub(crate) use collective::{Part, Step};
pub(crate) use directory::NewDirectory;
pub use error::{ExportError, ExportProblem};
pub(crate) use loaded::{Collective, Loaded};
pub(crate) use notes::{From, Notes};
pub(crate) use operations::{Operations, Sink};
pub(crate) use timeline::{Span, spans};

use collectives::choose::Table;
use serde::Serialize;

/// Settings of an export. Each format uses those that concern it.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// Graphs: receives are posted at the start, not where their task waits for them.
    pub preposted: bool,
    /// The algorithms by which collectives become messages.
    pub algorithms: Table,
}

/// Summary of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Number of ranks.
    pub ranks: u32,
    /// Operations written.
    pub operations: u64,
    /// Messages written, those of collectives included.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Collectives that became messages.
    pub expanded: u64,
    /// What the file lacks, or the user has to know: a sentence each, without a full stop.
    pub remarks: Vec<String>,
}

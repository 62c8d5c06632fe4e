//! Traces on their way to formats of other tools.
//!
//! ```text
//! trace ─ loaded ─▶ records of each task ─ operations ─▶ a graph per rank ─▶ GOAL, Chakra
//!                                       ├ timeline ─▶ events with times ─▶ OTF2
//!                                       └▶ actions ─▶ SimGrid
//! ```

mod error;

mod loaded;
mod notes;
mod timeline;

mod collective;

mod operations;

pub(crate) use collective::{Part, Step};
pub use error::{ExportError, ExportProblem};
pub(crate) use loaded::{After, Collective, CollectiveIndex, Loaded, Message, MessageIndex, Record, What};
pub(crate) use notes::{From, Notes};
pub(crate) use operations::{Operations, Sink};
pub(crate) use timeline::{Span, spans};

use crate::progress::Progress;
use collectives::choose::Table;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Tags of messages are below, those of collectives from here on: all fit into a signed number of 32 bits.
pub(crate) const COLLECTIVES: u32 = 1 << 30;

/// Settings of an export. Each format uses those that concern it.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// Graphs: receives are posted at the start, not where their task waits for them.
    pub preposted: bool,
    /// The algorithms by which collectives become messages.
    pub algorithms: Table,
}

/// Summary of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl Exported {
    /// Counts a message.
    pub(crate) fn message(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// An export under way.
#[derive(Clone, Copy)]
pub struct Export<'a> {
    pub(crate) trace: &'a Loaded,
    /// By task, when the calls of its records begin and return.
    pub(crate) spans: &'a [Vec<Span>],
    /// The file or directory to write.
    pub(crate) to: &'a Path,
    pub(crate) options: &'a ExportOptions,
    pub(crate) progress: &'a dyn Progress,
}

impl Export<'_> {
    /// What is told of an export before anything is written.
    pub(crate) fn begin(&self) -> Exported {
        Exported { ranks: self.trace.header.tasks, ..Exported::default() }
    }

    /// The ranks, one after the other, with progress.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = u32> {
        let ranks = self.trace.header.tasks;
        (0..ranks).inspect(move |&rank| self.progress.set(rank.into(), ranks.into()))
    }

    /// An error of the output.
    pub(crate) fn failed(&self, error: io::Error) -> ExportError {
        ExportProblem::from(error).of_file(self.to)
    }
}

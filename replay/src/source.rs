//! Where a job's records come from: each task's own, in its program order.
//!
//! [`Loaded`] has the whole trace in memory, packed, and may be shared by any number of replays; [`Stream`]
//! reads a text trace once, line by line, and keeps only what it had to read past; [`Container`] reads every task's
//! stream of a container by itself.

mod container;
mod facts;
mod feed;
mod loaded;
mod packed;
mod stream;

pub use container::Container;
pub(crate) use facts::{Facts, Question};
pub(crate) use feed::Feed;
pub(crate) use loaded::is_container;
pub use loaded::{LoadError, Loaded};
pub use stream::Stream;

use crate::labels::Label;
use std::error::Error as StdError;
use std::sync::Arc;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::Header;
use vef_format::text::Line;

/// What goes wrong while records are read: the reader's own error, which says where.
pub type SourceError = Box<dyn StdError + Send + Sync>;

/// What all sources have beside the records themselves.
pub(crate) trait Source {
    /// The header; only the number of tasks and the clock are used.
    fn header(&self) -> &Header;

    /// Most tasks that can have records, by the length of what is read: memory is not set aside for more of them,
    /// whatever the header says.
    fn most_tasks(&self) -> u64;

    /// The members of a communicator by communicator rank. Asked at most once for each, when a collective on
    /// it is first met.
    fn members(&mut self, comm: CommId) -> Result<Option<Arc<[Rank]>>, SourceError>;

    /// What the members' records say of a collective. Asked once for each that is rooted or of blocks, when its first member enters it.
    fn facts(&mut self, question: &Question<'_>) -> Result<Facts, SourceError>;

    /// The bytes that a record of a task, an Alltoallv or Alltoallw, moves to and from each member; `None` if the trace has only their
    /// sums. Asked in the order of the task's records.
    fn counts(&mut self, _task: Rank, _record: u64) -> Result<Option<[Vec<u64>; 2]>, SourceError> {
        Ok(None)
    }

    /// What the trace says of a task's record beside the record itself.
    fn label(&mut self, _task: Rank, _record: u64) -> Result<Label, SourceError> {
        Ok(Label::default())
    }

    /// Whether what [`vef_format::container::Reader::is_proven`] says of a trace is known of this one.
    fn is_proven(&self) -> bool {
        false
    }

    /// Which codes stand for which operations.
    fn op_codes(&self) -> &OpCodes;

    /// Finds records again, to explain why a replay is stuck.
    fn locate(&self, wanted: &[Wanted]) -> Located;
}

/// A record to be found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    /// A point-to-point line.
    Line(MessageId),
    /// One task's part of a collective.
    Part(CollectiveId, Rank),
}

/// What a search for records has found.
#[derive(Debug, Default)]
pub(crate) struct Located {
    /// One for each that was wanted.
    pub(crate) found: Vec<Option<Found>>,
    /// Why not the whole trace could be searched.
    pub(crate) cut: Option<SourceError>,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Line of the text trace, 1-based; `None` where records have no lines.
    pub line: Option<u64>,
    /// Its number among the records of its task, from 0.
    pub number: u64,
    /// The record.
    pub record: Line<'static>,
}

impl Found {
    /// The task whose record it is.
    pub(crate) fn task(&self) -> Option<Rank> {
        match self.record {
            Line::Message(message) => Some(message.src),
            Line::Collective(part) => Some(part.task),
            Line::Communicator { .. } => None,
        }
    }
}

/// Which of the records seen are wanted; shared by the implementations of [`Source::locate`].
#[derive(Debug)]
struct Search {
    at: hashbrown::HashMap<Wanted, usize>,
    counts: hashbrown::HashMap<Rank, u64>,
    found: Vec<Option<Found>>,
    wanted: Vec<Wanted>,
}

impl Search {
    fn new(wanted: &[Wanted]) -> Self {
        Self {
            at: wanted.iter().copied().zip(0..).collect(),
            counts: hashbrown::HashMap::new(),
            found: vec![None; wanted.len()],
            wanted: wanted.to_vec(),
        }
    }

    /// Looks at a record of a task.
    fn see(&mut self, record: Line<'static>, line: Option<u64>) {
        let (task, key) = match record {
            Line::Message(message) => (message.src, Wanted::Line(message.id)),
            Line::Collective(part) => (part.task, Wanted::Part(part.id, part.task)),
            Line::Communicator { .. } => return,
        };
        let count = self.counts.entry(task).or_insert(0);
        let number = *count;
        *count += 1;
        if let Some(&at) = self.at.get(&key) {
            self.found[at].get_or_insert(Found { line, number, record });
        }
    }

    /// One result for each record that was wanted, also for one that was wanted twice.
    fn located(self, cut: Option<SourceError>) -> Located {
        let found =
            self.wanted.iter().map(|wanted| self.at.get(wanted).and_then(|&at| self.found[at])).collect();
        Located { found, cut }
    }
}

//! Where a job's records come from: each task's own, in its program order.
//!
//! [`Loaded`] has the whole trace in memory, packed, and may be shared by any number of replays; [`Stream`]
//! reads a text trace once, line by line, and keeps only what it had to read past; [`Container`] reads every task's
//! stream of a container by itself.

mod container;
mod facts;
mod loaded;
mod packed;
mod row;
mod stream;

pub use container::Container;
pub(crate) use facts::{Facts, Question};
pub(crate) use loaded::is_container;
pub use loaded::{LoadError, Loaded};
pub(crate) use row::{Row, Waits, What};
pub use stream::Stream;

use std::error::Error as StdError;
use vef_format::container::Streams;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::raw::Raw;
use vef_format::record::{Dependency, Header, LocalCollective, Message};
use vef_format::units::Ticks;

/// A record that a task executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A message that it sends, or a local mark.
    Message(Message),
    /// Its part of a collective.
    Collective(LocalCollective),
}

impl Step {
    /// What it waits for.
    #[inline]
    pub fn after(&self) -> Dependency {
        match self {
            Self::Message(message) => message.after,
            Self::Collective(collective) => collective.after,
        }
    }

    /// The computing time in front of it.
    #[inline]
    pub fn time(&self) -> Ticks {
        match self {
            Self::Message(message) => message.time,
            Self::Collective(collective) => collective.time,
        }
    }

    /// As plain numbers.
    #[inline]
    pub(crate) fn to_raw(self) -> Raw {
        match &self {
            Self::Message(message) => Raw::of_message(message),
            Self::Collective(part) => Raw::of_collective(part),
        }
    }

    /// The task that executes it.
    #[inline]
    pub fn task(&self) -> Rank {
        match self {
            Self::Message(message) => message.src,
            Self::Collective(collective) => collective.task,
        }
    }
}

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
    fn members(&mut self, comm: CommId) -> Result<Option<Vec<Rank>>, SourceError>;

    /// What the members' records say of a collective. Asked once for each that is rooted or of blocks, when its first member enters it.
    fn facts(&mut self, question: &Question<'_>) -> Result<Facts, SourceError>;

    /// The bytes that a record of a task, an Alltoallv or Alltoallw, moves to and from each member; `None` if the trace has only their
    /// sums. Asked in the order of the task's records.
    fn counts(&mut self, _task: Rank, _record: u64) -> Result<Option<[Vec<u64>; 2]>, SourceError> {
        Ok(None)
    }

    /// Which codes stand for which operations.
    fn op_codes(&self) -> &OpCodes;

    /// Finds records again, to explain why a replay does not go on. `None` where they cannot be looked up, or
    /// are not there.
    fn locate(&self, wanted: &[Wanted]) -> Vec<Option<Found>>;
}

/// A job's source.
#[derive(Debug)]
pub(crate) enum Feed {
    Loaded(loaded::Reading),
    Stream(Box<Stream>),
    Container(Box<Container>),
}

impl Feed {
    /// The container that is read as it is, if it is one.
    #[inline(always)]
    pub(crate) fn plain(&mut self) -> Option<&mut Streams> {
        match self {
            Self::Container(source) => source.plain(),
            _ => None,
        }
    }

    /// Puts the next record of a task, or [`What::Nothing`], into `row`.
    #[inline(never)]
    pub(crate) fn next(&mut self, task: Rank, row: &mut Row) -> Result<(), SourceError> {
        match self {
            Self::Container(source) => source.next_row(task, row),
            Self::Loaded(source) => {
                *row = source.next_row(task);
                Ok(())
            }
            Self::Stream(source) => source.next_row(task, row),
        }
    }

    /// Asks for [`Row::DETACHED`] and [`What::Pause`], where the trace knows.
    pub(crate) fn tell_sends(&mut self) -> Result<(), SourceError> {
        match self {
            Self::Container(source) => source.tell_sends(),
            _ => Ok(()),
        }
    }
}

/// All but [`Feed::next`] is rare.
impl std::ops::Deref for Feed {
    type Target = dyn Source;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Loaded(source) => source,
            Self::Stream(source) => &**source,
            Self::Container(source) => &**source,
        }
    }
}

impl std::ops::DerefMut for Feed {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Loaded(source) => source,
            Self::Stream(source) => &mut **source,
            Self::Container(source) => &mut **source,
        }
    }
}

/// A record to be found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    /// A point-to-point line.
    Line(MessageId),
    /// One task's part of a collective.
    Part(CollectiveId, Rank),
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Line of the text trace, 1-based; `None` where records have no lines.
    pub line: Option<u64>,
    /// Its number among the records of its task, from 0.
    pub record: u64,
    /// The record.
    pub step: Step,
}

/// Which of the steps seen are wanted; shared by the implementations of [`Source::locate`].
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

    fn see(&mut self, step: &Step, line: Option<u64>) {
        let count = self.counts.entry(step.task()).or_insert(0);
        let record = *count;
        *count += 1;
        let key = match step {
            Step::Message(message) => Wanted::Line(message.id),
            Step::Collective(collective) => Wanted::Part(collective.id, collective.task),
        };
        if let Some(&at) = self.at.get(&key) {
            self.found[at].get_or_insert(Found { line, record, step: *step });
        }
    }

    /// One answer to each question, also where a question was put twice.
    fn answers(self) -> Vec<Option<Found>> {
        self.wanted.iter().map(|wanted| self.at.get(wanted).and_then(|&at| self.found[at])).collect()
    }
}

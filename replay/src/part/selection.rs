//! The records of a part, by rank, and the ids of all others.

use super::PartError;
use super::ids::Ids;
use crate::source::Feed;
use std::fmt;
use std::ops::Range;
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::raw::{COLLECTIVE, DEPENDENCY, KIND, Raw};
use vef_format::record::Dependency;
use vef_format::units::{Count, Grouped, Ticks};

/// Records of a task that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Their numbers among the records of the task, from 0.
    pub records: Range<u64>,
    /// Computing in front of the first of them that does not belong to the part. Of a stretch without records: where its computing
    /// begins, in that of the record behind it.
    pub before: Ticks,
    /// Computing behind the last of them that belongs to it.
    pub behind: Ticks,
    /// The reception or the collective of the part, if any, that the record behind the last of them depends on: the wait for it belongs to the last
    /// one, and so to the part.
    pub awaits: Option<Dependency>,
}

impl Stretch {
    /// Whole records.
    pub fn of(records: Range<u64>) -> Self {
        Self { records, before: Ticks(0), behind: Ticks(0), awaits: None }
    }
}

/// Whether record `number` (from 0) of a task is in its stretches.
pub(super) fn holds(stretches: &[Stretch], number: u64) -> bool {
    let behind = stretches.partition_point(|stretch| stretch.records.end <= number);
    stretches.get(behind).is_some_and(|stretch| stretch.records.start <= number)
}

/// The first of the stretches of a task that ends directly in front of record `number`.
fn ending_at(stretches: &[Stretch], number: u64) -> Option<usize> {
    let at = stretches.partition_point(|stretch| stretch.records.end < number);
    stretches.get(at).filter(|stretch| stretch.records.end == number).map(|_| at)
}

/// The records of a trace that a replay is about: the part of a run.
#[derive(Clone)]
pub struct Selection {
    /// By rank, ascending.
    stretches: Vec<Vec<Stretch>>,
    /// Messages and marks of other records.
    lines: Ids,
    /// Collectives of which a member's record is another.
    collectives: Ids,
    description: String,
    iterations: Option<u64>,
    records: u64,
    of: u64,
}

impl fmt::Debug for Selection {
    /// Enough to tell the parts of one trace apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of {} records", self.description, self.records, self.of)
    }
}

impl fmt::Display for Selection {
    /// What it is, and how much of the run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.records as f64 / self.of.max(1) as f64;
        let (records, of) = (Grouped(self.records), Count(self.of, "record"));
        write!(f, "{}: {records} of {of} ({share:.1} %)", self.description)
    }
}

impl Selection {
    /// The records of `stretches` (by rank, each rank's ascending and disjoint) of a trace; `description` says what they are, and of how many iterations.
    ///
    /// # Errors
    /// The trace cannot be read, or no record is among them.
    pub(crate) fn new(
        stretches: Vec<Vec<Stretch>>,
        (description, iterations): (String, Option<u64>),
        trace: &Feed,
    ) -> Result<Self, PartError> {
        let (lines, collectives) = Default::default();
        let mut this = Self { stretches, lines, collectives, description, iterations, records: 0, of: 0 };
        let mut numbers: Vec<u64> = Vec::new();
        trace.survey(false, &mut |task, raw| {
            if task.index() >= numbers.len() {
                numbers.resize(task.index() + 1, 0);
            }
            let number = &mut numbers[task.index()];
            let at = *number;
            let inside = this.contains(task, at);
            *number += 1;
            this.of += 1;
            this.records += u64::from(inside);
            match (inside, raw.tag & KIND) {
                (true, _) => {}
                (false, COLLECTIVE) => this.collectives.insert(raw.id),
                (false, _) => this.lines.insert(raw.id),
            }
            let stretches = this.stretches.get_mut(task.index()).map_or(&mut [][..], Vec::as_mut_slice);
            // What follows a stretch without records waited for that before it.
            if let Some(ending) = ending_at(stretches, at)
                && !stretches[ending].records.is_empty()
            {
                stretches[ending].awaits = match raw.tag & DEPENDENCY {
                    2 => Some(Dependency::Received(MessageId(raw.after))),
                    3 => Some(Dependency::Collective(CollectiveId(raw.after))),
                    _ => None,
                };
            }
        })?;
        let (lines, collectives) = (&this.lines, &this.collectives);
        for stretch in this.stretches.iter_mut().flatten() {
            stretch.awaits = stretch.awaits.filter(|awaited| match awaited {
                Dependency::Received(MessageId(id)) => !lines.contains(*id),
                Dependency::Collective(CollectiveId(id)) => !collectives.contains(*id),
                Dependency::Start | Dependency::Sent(_) => false,
            });
        }
        let computes = |stretches: &Vec<Stretch>| stretches.iter().any(|stretch| stretch.behind > Ticks(0));
        match this.records > 0 || this.stretches.iter().any(computes) {
            true => Ok(this),
            false => Err(PartError::Empty(this.description)),
        }
    }

    /// Whether a stretch of a task ends directly in front of record `number`, and awaits what that depends on.
    pub(super) fn has_awaited(&self, task: Rank, number: u64) -> bool {
        let ending = ending_at(self.stretches(task), number);
        ending.is_some_and(|at| self.stretches(task)[at].awaits.is_some())
    }

    /// What they are, for people.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// How many iterations of the main loop they are, if it was asked for these.
    pub fn iterations(&self) -> Option<u64> {
        self.iterations
    }

    /// Their number.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The number of all records of the trace.
    pub fn of(&self) -> u64 {
        self.of
    }

    /// The stretches of a task, ascending.
    pub fn stretches(&self, task: Rank) -> &[Stretch] {
        self.stretches.get(task.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether record `number` (from 0) of a task is one of them.
    pub fn contains(&self, task: Rank, number: u64) -> bool {
        holds(self.stretches(task), number)
    }

    /// Whether the part has the beginning of a task's run, where its start-up is.
    pub fn has_start(&self, task: Rank) -> bool {
        let first = self.stretches(task).first();
        first.is_some_and(|first| first.records.start == 0 && first.before.0 == 0)
    }

    /// How many of these records of a task belong to the part.
    pub fn count(&self, task: Rank, records: Range<u64>) -> u64 {
        let common = |stretch: &Stretch| {
            let Range { start, end } = &stretch.records;
            records.end.min(*end).saturating_sub(records.start.max(*start))
        };
        self.stretches(task).iter().map(common).sum()
    }

    /// Whether a record of the part depends on another that is no part of it.
    pub(super) fn depends_outside(&self, raw: &Raw) -> bool {
        match raw.tag & DEPENDENCY {
            1 | 2 => self.lines.contains(raw.after),
            3 => self.collectives.contains(raw.after),
            _ => false,
        }
    }

    /// Whether a record of the part belongs to a collective of which some members' records do not.
    pub(super) fn is_cut(&self, raw: &Raw) -> bool {
        raw.tag & KIND == COLLECTIVE && self.collectives.contains(raw.id)
    }
}

//! What the engine keeps of a job besides its tasks: its records, and which of its lines and collectives it has seen.

use crate::job::Computing;
use crate::lines::Lines;
use crate::part::{Ahead, Filter};
use crate::scale::Scale;
use crate::sequence::{PAUSE, Sequence};
use crate::source::{Feed, SourceError};
use crate::states::States;
use collectives::choose::Table;
use hashbrown::HashMap;
use std::mem::replace;
use vef_format::container::Span;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::raw::{KIND, NOTHING, Raw};
use vef_format::units::{Picos, Ticks};

/// In what the records of a job differ from those of its trace.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Computing times that replace the trace's.
    pub(crate) computing: Option<Box<dyn Computing>>,
    /// The part that is replayed.
    pub(crate) part: Option<Filter>,
    /// How often each task has read, as far as tasks have.
    reads: Vec<u64>,
}

impl Changes {
    pub(crate) fn new(computing: Option<Box<dyn Computing>>, part: Option<Filter>) -> Self {
        Self { computing, part, reads: Vec::new() }
    }

    /// The same for another reading of the trace, from its start.
    pub(crate) fn again(&self) -> Self {
        let computing = self.computing.as_ref().map(|computing| computing.again());
        Self::new(computing, self.part.as_ref().map(Filter::again))
    }

    /// Puts the next record of a task into `next`, and its number into `number`.
    pub(crate) fn next(
        &mut self,
        source: &mut Feed,
        task: Rank,
        number: &mut u64,
        next: &mut Raw,
    ) -> Result<(), SourceError> {
        if task.index() >= self.reads.len() {
            self.reads.resize(task.index() + 1, 0);
        }
        self.reads[task.index()] += 1;
        match &mut self.part {
            None => source.next(task, next)?,
            Some(part) => loop {
                match part.ahead(task) {
                    Ahead::End => {
                        *next = Raw::NOTHING;
                        break;
                    }
                    Ahead::Pause(pause, at) => {
                        (*next, *number) = (pause, at);
                        return Ok(());
                    }
                    Ahead::Records => source.next(task, next)?,
                }
                if next.tag & KIND == NOTHING {
                    break;
                }
                if let Some(at) = part.take(task, next) {
                    *number = at;
                    break;
                }
            },
        }
        if let Some(computing) = &mut self.computing
            && next.tag & KIND != NOTHING
        {
            next.time = computing.time(task, *number, next).0;
        }
        Ok(())
    }
}

/// A reading of a job's records, and in what they differ from those of the trace.
pub(crate) type Reading = (Feed, Option<Box<Changes>>);

/// How far a run of a job's records has come.
pub(crate) struct Run {
    reading: Reading,
    lines: Lines,
    collectives: States,
}

/// A job in progress: its records, lines and collectives.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) source: Feed,
    pub(crate) scale: Scale,
    /// Its own decision table, if it has one.
    pub(crate) table: Option<Table>,
    /// In what its records differ from the trace's.
    pub(crate) changes: Option<Box<Changes>>,
    /// The first of its tasks, counted over all jobs.
    pub(crate) first_task: u32,
    pub(crate) tasks: u32,
    /// Tasks that its place in the tables has.
    pub(crate) room: u32,
    pub(crate) program_tasks: u32,
    /// Of its tasks, those that a placement places.
    pub(crate) placed_tasks: u32,
    /// When its tasks start.
    pub(crate) start: Picos,
    pub(crate) on_call: bool,
    /// Tasks that have not finished; those of other partitions never do.
    pub(crate) unfinished: u32,
    /// Messages of it that have started and are not delivered.
    pub(crate) under_way: u64,
    /// Computing that is left out in front of tasks' first records, by rank.
    pub(crate) skipped: Vec<Ticks>,
    pub(crate) spans: Vec<Span>,
    pub(crate) from_launch: bool,
    pub(crate) lines: Lines,
    /// Which collectives were entered and are over.
    pub(crate) collectives: States,
    /// The keys of communicators in the table of groups.
    pub(crate) groups: HashMap<CommId, u32>,
    /// The keys of open collectives in their table.
    pub(crate) open: HashMap<CollectiveId, u32>,
    /// Messages from other partitions, of collectives that are not open here: sender and receiver, ranks of the communicator.
    pub(crate) early: HashMap<CollectiveId, Vec<(u32, u32)>>,
}

impl Running {
    /// Another reading of its records, from the start.
    pub(crate) fn again(&self, tell_sends: bool) -> Result<Reading, SourceError> {
        let mut source = self.source.again()?;
        if tell_sends {
            source.tell_sends()?;
        }
        Ok((source, self.changes.as_ref().map(|changes| Box::new(changes.again()))))
    }

    /// Begins with another reading; no line has been seen and no collective entered. Returns the run before.
    pub(crate) fn restart(&mut self, reading: Reading) -> Run {
        let (lines, collectives) = (Lines::new(reading.0.is_proven()), States::default());
        self.resume(Run { reading, lines, collectives })
    }

    /// Goes on with another run of its records; returns the one before.
    pub(crate) fn resume(&mut self, run: Run) -> Run {
        let Run { reading: (source, changes), lines, collectives } = run;
        Run {
            reading: (replace(&mut self.source, source), replace(&mut self.changes, changes)),
            lines: replace(&mut self.lines, lines),
            collectives: replace(&mut self.collectives, collectives),
        }
    }

    /// Whether all of its tasks have finished, and none of its messages is under way.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.unfinished == 0 && self.under_way == 0 && self.open.is_empty()
    }

    /// How often a task has read from it.
    pub(crate) fn reads(&self, sequence: &Sequence) -> u64 {
        match &self.changes {
            Some(changes) => changes.reads.get(sequence.rank.index()).copied().unwrap_or(0),
            // Those that it has started, and the next one, unless that is a pause.
            None => {
                let next = u64::from(sequence.next.tag & PAUSE == 0);
                self.source.pauses_read(sequence.rank) + sequence.records + next
            }
        }
    }

    /// Whether a task begins with the first record of the trace.
    pub(crate) fn has_start(&self, task: Rank) -> bool {
        let part = self.changes.as_ref().and_then(|changes| changes.part.as_ref());
        part.is_none_or(|part| part.selection().has_start(task))
    }
}

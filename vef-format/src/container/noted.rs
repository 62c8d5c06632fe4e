//! What the notes of a container say together: when tasks were in MPI, where their phases are, what they spent their time on, and on which
//! hosts they were.

use super::error::ContainerError;
use super::notes::{Note, Notes};
use super::reader::{Reader, SectionStream};
use super::section::Section;
use crate::account::{Account, Entry};
use crate::ids::Rank;
use crate::units::Ticks;

/// When a task could use MPI in the captured run, from its start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Return of `MPI_Init`.
    pub initialised: Ticks,
    /// Whether the time of the task's first record includes that.
    pub in_records: bool,
    /// Entry of `MPI_Finalize`, if the task called it.
    pub finalised: Option<Ticks>,
}

impl Span {
    /// The computing time before the task's first record, of which the trace has `time`: from the launch, or from the return of
    /// `MPI_Init` on.
    pub fn first(&self, time: Ticks, from_launch: bool) -> Ticks {
        match (self.in_records, from_launch) {
            (true, false) => Ticks(time.0.saturating_sub(self.initialised.0)),
            (false, true) => Ticks(time.0.saturating_add(self.initialised.0)),
            (true, true) | (false, false) => time,
        }
    }
}

/// Where a phase of the program begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseMark<'a> {
    /// The record behind it.
    pub record: u64,
    /// How much of the computing in front of that record came before it; 0 if the container does not tell.
    pub computed: Ticks,
    /// Whether it begins.
    pub begin: bool,
    /// Its name.
    pub name: &'a str,
}

/// Where the phases of a task begin and end, in their order.
#[derive(Debug)]
pub struct PhaseMarks {
    phases: Notes,
    moments: Option<Notes>,
}

impl PhaseMarks {
    /// From a task's notes of [`Section::Phases`] and of [`Section::Moments`].
    pub fn new(phases: Notes, moments: Option<Notes>) -> Self {
        Self { phases, moments }
    }

    /// The next one in `reader`; `None` at the end.
    ///
    /// # Errors
    /// The notes cannot be read.
    pub fn next(&mut self, reader: &Reader) -> Result<Option<PhaseMark<'_>>, ContainerError> {
        let Some((record, Note::Phase { begin, name })) = self.phases.next(reader)? else { return Ok(None) };
        let computed = loop {
            match self.moments.as_mut().map(|moments| moments.next(reader)).transpose()?.flatten() {
                Some((_, Note::BeforePhase(computed))) => break computed,
                Some(_) => {}
                None => break Ticks(0),
            }
        };
        Ok(Some(PhaseMark { record, computed, begin, name }))
    }
}

impl Reader {
    /// The notes of `section`, of one task or of the trace ([`Section::of_trace`]; `task` is ignored then). For many tasks, use
    /// [`Reader::notes_of_all`].
    pub fn notes(&self, section: Section, task: Rank) -> Result<Notes, ContainerError> {
        let wanted = (!section.of_trace()).then_some(task);
        let streams = self.section(section.name())?;
        let stream = streams.iter().find(|stream| stream.task == wanted).copied();
        Ok(Notes::new(section, &stream.unwrap_or(SectionStream { task: wanted, list: Default::default() })))
    }

    /// The notes of `section` of all tasks that have any, by task.
    pub fn notes_of_all(&self, section: Section) -> Result<Vec<(Rank, Notes)>, ContainerError> {
        let streams = self.section(section.name())?;
        let of_task = |stream: &SectionStream| Some((stream.task?, Notes::new(section, stream)));
        Ok(streams.iter().filter_map(of_task).collect())
    }

    /// The span of each task in MPI, by rank; `None` if the container lacks the return of `MPI_Init` of some task.
    pub fn spans(&self) -> Result<Option<Vec<Span>>, ContainerError> {
        self.spans_of_first(self.header().tasks)
    }

    /// The same of the program's tasks ([`About::program_tasks`](super::About::program_tasks)).
    pub fn program_spans(&self) -> Result<Option<Vec<Span>>, ContainerError> {
        self.spans_of_first(self.about().program_tasks(self.header().tasks))
    }

    fn spans_of_first(&self, tasks: u32) -> Result<Option<Vec<Span>>, ContainerError> {
        let mut spans: Vec<Span> = Vec::new();
        for (task, mut notes) in self.notes_of_all(Section::Spans)? {
            let (mut initialised, mut in_records, mut finalised) = (None, false, None);
            while let Some((_, note)) = notes.next(self)? {
                match note {
                    Note::Initialised(after) => (initialised, in_records) = (Some(after), true),
                    Note::StartUp(after) => (initialised, in_records) = (Some(after), false),
                    Note::Finalised(after) => finalised = Some(after),
                    _ => {}
                }
            }
            let (Some(initialised), true) = (initialised, task.0 as usize == spans.len()) else {
                return Ok(None);
            };
            spans.push(Span { initialised, in_records, finalised });
        }
        Ok((spans.len() == tasks as usize).then_some(spans))
    }

    /// The accounts of the tasks, as captured, by task; none if the container does not tell.
    pub fn accounts(&self) -> Result<Vec<(Rank, Account)>, ContainerError> {
        let mut accounts = Vec::new();
        for (task, mut notes) in self.notes_of_all(Section::Times)? {
            let mut account = Account::default();
            while let Some((_, note)) = notes.next(self)? {
                if let Note::Time { function, part, calls, took } = note {
                    account.0.push(Entry { function: function.to_owned(), part, calls, took });
                }
            }
            accounts.push((task, account));
        }
        Ok(accounts)
    }

    /// The host of each task, by rank; `None` if the container lacks that of some task.
    pub fn hosts(&self) -> Result<Option<Vec<String>>, ContainerError> {
        let mut notes = self.notes(Section::Placement, Rank(0))?;
        let tasks = self.header().tasks as usize;
        let mut hosts: Vec<String> = Vec::new();
        while let Some((task, note)) = notes.next(self)? {
            let Note::Host(name) = note else { continue };
            let name = name.to_owned();
            let Some(first) = usize::try_from(task).ok().filter(|&task| task < tasks) else {
                return Ok(None);
            };
            match hosts.last().cloned() {
                Some(last) => hosts.resize(first.max(hosts.len()), last),
                None if first > 0 => return Ok(None),
                None => {}
            }
            hosts.truncate(first);
            hosts.push(name);
        }
        let Some(last) = hosts.last().cloned() else { return Ok(None) };
        hosts.resize(tasks, last);
        Ok(Some(hosts))
    }
}

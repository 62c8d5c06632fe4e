//! What a container says beside the records: the tags of messages, the MPI functions behind records, and phases of the program.
//!
//! Each is read when it is first asked for, a task at a time and no further than the record that is asked about.

use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use vef_format::container::{ContainerError, Note, Notes, Reader, Section};
use vef_format::ids::Rank;

/// What is known of a record beside itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The tag of a message.
    pub tag: Option<i32>,
    /// The MPI function that made the record.
    pub function: Option<Arc<str>>,
    /// The innermost phase of the program.
    pub phase: Option<Arc<str>>,
}

/// The labels of a container's records.
#[derive(Debug)]
pub struct Labels {
    reader: Arc<Reader>,
    tags: HashMap<u32, Spans>,
    functions: HashMap<u32, Spans>,
    phases: HashMap<u32, Spans>,
    names: HashSet<Arc<str>>,
}

impl Labels {
    pub(crate) fn new(reader: Arc<Reader>) -> Result<Self, ContainerError> {
        let of_all = |section| {
            let notes = reader.notes_of_all(section)?;
            Ok(notes.into_iter().map(|(task, notes)| (task.0, Spans::new(section, notes))).collect())
        };
        let (tags, functions, phases) =
            (of_all(Section::Tags)?, of_all(Section::Calls)?, of_all(Section::Phases)?);
        Ok(Self { reader, tags, functions, phases, names: HashSet::new() })
    }

    /// That of a record, by its number from 0. Fast while a task's records are asked about in their order, or not far from it.
    ///
    /// # Errors
    /// The notes of the container cannot be read.
    pub fn of(&mut self, task: Rank, record: u64) -> Result<Label, ContainerError> {
        let Self { reader, tags, functions, phases, names } = self;
        let mut note = |spans: &mut HashMap<u32, Spans>| match spans.get_mut(&task.0) {
            None => Ok(Noted::Nothing),
            Some(spans) => spans.at(reader, task, record, names),
        };
        let name = |noted| match noted {
            Noted::Name(name) => Some(name),
            Noted::Nothing | Noted::Tag(_) => None,
        };
        let tag = match note(tags)? {
            Noted::Tag(tag) => Some(tag),
            Noted::Nothing | Noted::Name(_) => None,
        };
        Ok(Label { tag, function: name(note(functions)?), phase: name(note(phases)?) })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Noted {
    Nothing,
    Tag(i32),
    Name(Arc<str>),
}

/// One label of a task, which holds from a record on until the next: a window on the notes about it. Questions about the messages under way
/// concern a short stretch of records; in front of the window the notes are read again from their start.
#[derive(Debug)]
struct Spans {
    section: Section,
    notes: Notes,
    /// From which record on, and the label; by record.
    window: VecDeque<(u64, Noted)>,
    /// Whether labels in front of the window were let go.
    dropped: bool,
    at_end: bool,
    /// Names of the phases that have begun and not ended.
    phases: Vec<Arc<str>>,
}

/// Labels kept of a task.
const WINDOW: usize = 256;
/// Phases that are kept track of within each other.
const MOST_PHASES: usize = 1 << 16;

impl Spans {
    fn new(section: Section, notes: Notes) -> Self {
        let (window, phases) = (VecDeque::new(), Vec::new());
        Self { section, notes, window, dropped: false, at_end: false, phases }
    }

    /// The label at a record.
    fn at(
        &mut self,
        reader: &Reader,
        task: Rank,
        record: u64,
        names: &mut HashSet<Arc<str>>,
    ) -> Result<Noted, ContainerError> {
        if self.dropped && self.window.front().is_none_or(|&(first, _)| first > record) {
            *self = Self::new(self.section, reader.notes(self.section, task)?);
        }
        while !self.at_end && self.window.back().is_none_or(|&(last, _)| last <= record) {
            self.read(reader, names)?;
        }
        let behind = self.window.partition_point(|&(from, _)| from <= record);
        let label = behind.checked_sub(1).and_then(|at| self.window.get(at));
        Ok(label.map_or(Noted::Nothing, |(_, label)| label.clone()))
    }

    fn read(&mut self, reader: &Reader, names: &mut HashSet<Arc<str>>) -> Result<(), ContainerError> {
        let mut known = |name: &str| names.get_or_insert_with(name, |name| Arc::from(name)).clone();
        let Some((place, note)) = self.notes.next(reader)? else {
            self.at_end = true;
            return Ok(());
        };
        let label = match note {
            Note::Tag(tag) => Noted::Tag(tag),
            Note::Call(name) => Noted::Name(known(name)),
            Note::Phase { begin: true, name } => {
                if self.phases.len() < MOST_PHASES {
                    self.phases.push(known(name));
                }
                self.innermost()
            }
            // It also ends the phases inside it.
            Note::Phase { begin: false, name } => {
                if let Some(at) = self.phases.iter().rposition(|phase| **phase == *name) {
                    self.phases.truncate(at);
                }
                self.innermost()
            }
            _ => return Ok(()),
        };
        self.window.push_back((place, label));
        if self.window.len() > WINDOW {
            self.window.pop_front();
            self.dropped = true;
        }
        Ok(())
    }

    fn innermost(&self) -> Noted {
        self.phases.last().map_or(Noted::Nothing, |name| Noted::Name(name.clone()))
    }
}

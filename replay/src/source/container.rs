//! A container read while it is replayed: every task's records by themselves, in a memory that does not grow with the
//! trace.
//!
//! Where the replay asks for them, waits of detached sends become records of their own in front of the record behind
//! the wait: a pause until its dependency is fulfilled and its computing time over, nothing else.

use super::facts::{Facts, Question, Seen};
use super::{Located, Search, Source, SourceError, Wanted};
use crate::labels::{Label, Labels};
use crate::sequence::{PAUSE, STARTED, SYNCHRONOUS};
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use vef_format::container::{ContainerError, Note, Notes, Reader, Section, Streams};
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::OpCodes;
use vef_format::raw::{DEPENDENCY, KIND, MARK, MESSAGE, NOTHING, Raw};
use vef_format::record::Header;
use vef_format::text::Line;
use vef_format::units::Ticks;

/// A container being read.
#[derive(Debug)]
pub struct Container {
    streams: Streams,
    /// All communicators, once one has been asked for, here or by another reading.
    communicators: Arc<OnceLock<HashMap<CommId, Arc<[Rank]>>>>,
    facts: FactNotes,
    /// The counts of each task's vector collectives, once they were asked for.
    counts: Option<HashMap<u32, Counts>>,
    /// Tags, functions and phases, once they were asked for.
    labels: Option<Box<Labels>>,
    /// What is known of sends, by task; `None` unless it was asked for ([`Container::tell_sends`]) and there is any.
    sends: Option<HashMap<u32, Sends>>,
    /// Whether the records are those of which the file has a proof.
    proven: bool,
}

impl Container {
    /// Opens the container in the file `path`.
    pub fn open(path: &Path) -> Result<Self, ContainerError> {
        Self::new(Reader::open(path)?)
    }

    /// Reads from a container.
    pub fn new(reader: Reader) -> Result<Self, ContainerError> {
        let proven = reader.is_proven()?;
        Self::shared(Arc::new(reader), Arc::default(), proven)
    }

    /// Another reading of the same container, from its start.
    pub(crate) fn again(&self) -> Result<Self, ContainerError> {
        Self::shared(self.streams.shared_reader(), self.communicators.clone(), self.proven)
    }

    fn shared(
        reader: Arc<Reader>,
        communicators: Arc<OnceLock<HashMap<CommId, Arc<[Rank]>>>>,
        proven: bool,
    ) -> Result<Self, ContainerError> {
        let facts = FactNotes::new(&reader)?;
        let streams = Streams::new(reader);
        Ok(Self { streams, communicators, facts, counts: None, labels: None, sends: None, proven })
    }

    /// The container.
    pub fn reader(&self) -> &Reader {
        self.streams.reader()
    }

    /// The same, shared.
    pub(crate) fn shared_reader(&self) -> Arc<Reader> {
        self.streams.shared_reader()
    }

    /// From now on the records include the waits for detached sends, as pauses, and synchronous sends say that they are.
    pub(crate) fn tell_sends(&mut self) -> Result<(), SourceError> {
        let mut sends: HashMap<u32, Sends> = HashMap::new();
        for section in [Section::Sends, Section::Synchronous] {
            for (task, notes) in self.streams.reader().notes_of_all(section)? {
                sends.entry(task.0).or_default().notes.push((notes, None));
            }
        }
        self.sends = Some(sends).filter(|sends| !sends.is_empty());
        Ok(())
    }

    /// The records of all tasks, if nothing is put between them.
    #[inline(always)]
    pub(crate) fn plain(&mut self) -> Option<&mut Streams> {
        match self.sends {
            None => Some(&mut self.streams),
            Some(_) => None,
        }
    }

    /// How many pauses a task has read.
    pub(crate) fn pauses_read(&self, task: Rank) -> u64 {
        self.sends.as_ref().and_then(|sends| sends.get(&task.0)).map_or(0, |sends| sends.pauses)
    }

    /// The next record of a task, with pauses if they were asked for.
    pub(crate) fn next(&mut self, task: Rank, next: &mut Raw) -> Result<(), SourceError> {
        match self.sends.as_mut().and_then(|sends| sends.get_mut(&task.0)) {
            None => next_record(&mut self.streams, task, next),
            Some(sends) => sends.next(&mut self.streams, task, next),
        }
    }
}

fn next_record(streams: &mut Streams, task: Rank, next: &mut Raw) -> Result<(), SourceError> {
    *next = streams.next_raw(task)?.unwrap_or(Raw::NOTHING);
    Ok(())
}

impl Source for Container {
    fn header(&self) -> &Header {
        self.reader().header()
    }

    fn most_tasks(&self) -> u64 {
        self.reader().tasks().len() as u64
    }

    fn members(&mut self, comm: CommId) -> Result<Option<Arc<[Rank]>>, SourceError> {
        let communicators = match self.communicators.get() {
            Some(communicators) => communicators,
            None => {
                let mut all = HashMap::new();
                let mut reading = self.streams.reader().communicators();
                while let Some((id, members)) = reading.next()? {
                    all.insert(id, members.into());
                }
                self.communicators.get_or_init(|| all)
            }
        };
        Ok(communicators.get(&comm).cloned())
    }

    fn facts(&mut self, question: &Question<'_>) -> Result<Facts, SourceError> {
        self.facts.get(self.streams.reader(), question)
    }

    fn counts(&mut self, task: Rank, record: u64) -> Result<Option<[Vec<u64>; 2]>, SourceError> {
        let reader = self.streams.reader();
        let counts = match &mut self.counts {
            Some(counts) => counts,
            none => {
                let notes = reader.notes_of_all(Section::Counts)?;
                none.insert(notes.into_iter().map(|(task, notes)| (task.0, Counts::new(notes))).collect())
            }
        };
        match counts.get_mut(&task.0) {
            Some(counts) => Ok(counts.of(reader, record)?),
            None => Ok(None),
        }
    }

    fn label(&mut self, task: Rank, record: u64) -> Result<Label, SourceError> {
        let labels = match &mut self.labels {
            Some(labels) => labels,
            none => none.insert(Box::new(Labels::new(self.streams.shared_reader())?)),
        };
        Ok(labels.of(task, record)?)
    }

    fn is_proven(&self) -> bool {
        self.proven
    }

    fn op_codes(&self) -> &OpCodes {
        &self.reader().about().op_codes
    }

    fn locate(&self, wanted: &[Wanted]) -> Located {
        let mut search = Search::new(wanted);
        let mut cut = None;
        for task in self.reader().tasks() {
            let mut records = self.reader().task(task);
            loop {
                match records.next() {
                    Ok(Some(line)) => search.see(line, None),
                    Ok(None) => break,
                    Err(error) => {
                        cut.get_or_insert_with(|| error.into());
                        break;
                    }
                }
            }
        }
        search.located(cut)
    }
}

/// The facts of collectives, read as far as they were needed.
#[derive(Debug)]
struct FactNotes {
    roots: Passed<Rank>,
    blocks: Passed<Vec<u64>>,
    /// For a container without these sections: all facts, collected when the first is needed.
    searched: Option<Seen>,
}

impl FactNotes {
    fn new(reader: &Reader) -> Result<Self, ContainerError> {
        let roots = Passed::new(reader, Section::Roots)?;
        let blocks = Passed::new(reader, Section::Blocks)?;
        Ok(Self { roots, blocks, searched: None })
    }

    fn get(&mut self, reader: &Reader, question: &Question<'_>) -> Result<Facts, SourceError> {
        let wants_root = question.operation.is_rooted() && (self.roots.is_told() || question.root.is_none());
        if (wants_root && !self.roots.is_told()) || (question.of_blocks() && !self.blocks.is_told()) {
            return self.search(reader, question);
        }
        let mut facts = Facts::default();
        if wants_root {
            facts.root = self.roots.get(reader, question.id, |passed, note| {
                if let Note::Root(root) = note {
                    *passed = root;
                }
            })?;
        }
        if question.of_blocks() {
            let told = self.blocks.get(reader, question.id, |passed: &mut Vec<u64>, note| {
                if let Note::Blocks { bytes, .. } = note {
                    passed.extend_from_slice(bytes);
                }
            })?;
            facts.blocks = question.blocks_by_world_rank(told.unwrap_or_default());
        }
        Ok(facts)
    }

    /// Goes over all records to find the facts.
    #[cold]
    fn search(&mut self, reader: &Reader, question: &Question<'_>) -> Result<Facts, SourceError> {
        let facts = match &mut self.searched {
            Some(facts) => facts,
            none => {
                let mut facts = Seen::default();
                for task in reader.tasks() {
                    let mut records = reader.task(task);
                    while let Some(line) = records.next()? {
                        if let Line::Collective(part) = line {
                            facts.see(&part, &reader.about().op_codes);
                        }
                    }
                }
                none.insert(facts)
            }
        };
        Ok(facts.look_up(question.id))
    }
}

/// A section of notes about collectives, read in order, and what was read past.
#[derive(Debug)]
struct Passed<T> {
    /// None if the container does not have it.
    notes: Option<Notes>,
    passed: HashMap<u64, T>,
    /// The collective that the last note was about: more may follow.
    last: Option<u64>,
}

impl<T: Default> Passed<T> {
    fn new(reader: &Reader, section: Section) -> Result<Self, ContainerError> {
        let told = reader.section_names().any(|name| name == section.name());
        let notes = told.then(|| reader.notes(section, Rank(0))).transpose()?;
        Ok(Self { notes, passed: HashMap::new(), last: None })
    }

    fn is_told(&self) -> bool {
        self.notes.is_some()
    }

    /// What the notes say of a collective; `add` adds one of them to what those before it said. Each collective is asked for once.
    fn get(
        &mut self,
        reader: &Reader,
        id: CollectiveId,
        add: impl Fn(&mut T, Note<'_>),
    ) -> Result<Option<T>, ContainerError> {
        let Some(notes) = &mut self.notes else { return Ok(None) };
        // All notes on a collective stand together.
        while !self.passed.contains_key(&id.0) || self.last == Some(id.0) {
            let Some((place, note)) = notes.next(reader)? else { break };
            self.last = Some(place);
            add(self.passed.entry(place).or_default(), note);
        }
        Ok(self.passed.remove(&id.0))
    }
}

/// The counts of one task's vector collectives.
#[derive(Debug)]
struct Counts {
    notes: Notes,
    /// The next ones that were read, and the record that they are of.
    next: Option<(u64, [Vec<u64>; 2])>,
}

impl Counts {
    fn new(notes: Notes) -> Self {
        Self { notes, next: None }
    }

    /// Those of a record; of earlier ones they are passed by.
    fn of(&mut self, reader: &Reader, record: u64) -> Result<Option<[Vec<u64>; 2]>, ContainerError> {
        while self.next.as_ref().is_none_or(|&(place, _)| place < record) {
            match self.notes.next(reader)? {
                Some((place, Note::Counts { sent, received })) => {
                    self.next = Some((place, [sent.to_vec(), received.to_vec()]));
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
        Ok(self.next.take_if(|(place, _)| *place == record).map(|(_, counts)| counts))
    }
}

/// What a container says of one task's sends.
#[derive(Debug, Default)]
struct Sends {
    /// The notes of each section, with the next one and the record that it is about.
    notes: Vec<(Notes, Option<(u64, Said)>)>,
    /// The number of the task's next record.
    record: u64,
    /// Detached sends that have not been waited for: the ids, by record.
    open: HashMap<u64, u64>,
    /// Ids of detached sends on which no record has depended.
    started: HashSet<u64>,
    /// Records that come before the next one is read.
    queued: VecDeque<Raw>,
    /// How many of the records that were read were pauses.
    pauses: u64,
}

#[derive(Clone, Copy, Debug)]
enum Said {
    Detached,
    Synchronous,
    Wait { send: u64, before: Ticks, took: Ticks },
}

impl Sends {
    fn next(&mut self, streams: &mut Streams, task: Rank, next: &mut Raw) -> Result<(), SourceError> {
        self.read(streams, task, next)?;
        self.pauses += u64::from(next.tag & PAUSE != 0);
        Ok(())
    }

    fn read(&mut self, streams: &mut Streams, task: Rank, next: &mut Raw) -> Result<(), SourceError> {
        if let Some(queued) = self.queued.pop_front() {
            *next = queued;
            return Ok(());
        }
        next_record(streams, task, next)?;
        if next.tag & KIND == NOTHING {
            return Ok(());
        }
        let reader = streams.reader();
        let record = self.record;
        if record == 0 {
            let first = |(notes, next): &mut (_, _)| step(notes, reader).map(|said| *next = said);
            self.notes.iter_mut().try_for_each(first)?;
        }
        self.record += 1;
        if next.tag & DEPENDENCY == 1 && self.started.remove(&next.after) {
            next.tag |= STARTED;
        }
        for section in 0..self.notes.len() {
            while let Some(said) = self.said_of(record, section, reader)? {
                self.apply(said, record, next);
            }
        }
        if let Some(first) = self.queued.pop_front() {
            self.queued.push_back(std::mem::replace(next, first));
        }
        Ok(())
    }

    /// What a section has next of a record; notes on earlier ones are passed by.
    fn said_of(
        &mut self,
        record: u64,
        section: usize,
        reader: &Reader,
    ) -> Result<Option<Said>, ContainerError> {
        let (notes, next) = &mut self.notes[section];
        while let Some((at, said)) = next.filter(|&(at, _)| at <= record) {
            *next = step(notes, reader)?;
            if at == record {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }

    /// Changes a record as a note says.
    fn apply(&mut self, said: Said, record: u64, next: &mut Raw) {
        match said {
            Said::Detached if next.tag & KIND == MESSAGE => {
                self.open.insert(record, next.id);
                self.started.insert(next.id);
            }
            Said::Detached => {}
            Said::Synchronous => next.tag |= SYNCHRONOUS,
            Said::Wait { send, before, took } => {
                let Some(id) = self.open.remove(&send) else { return };
                // The pause takes the record's place behind what it depends on, and the record follows the pause.
                let waits = next.tag & (DEPENDENCY | STARTED);
                let before = before.0.min(next.time);
                self.queued.push_back(Raw {
                    time: before,
                    after: next.after,
                    tag: MARK | PAUSE | waits,
                    ..Raw::NOTHING
                });
                next.time -= before.saturating_add(took.0).min(next.time);
                next.after = id;
                next.tag = next.tag & !(DEPENDENCY | STARTED) | 1;
            }
        }
    }
}

/// The next of the notes on sends, and the record that it is about.
fn step(notes: &mut Notes, reader: &Reader) -> Result<Option<(u64, Said)>, ContainerError> {
    while let Some((at, note)) = notes.next(reader)? {
        match note {
            Note::Detached => return Ok(Some((at, Said::Detached))),
            Note::Synchronous => return Ok(Some((at, Said::Synchronous))),
            Note::SendWait { send, before, took } => {
                return Ok(Some((at, Said::Wait { send, before, took })));
            }
            _ => {}
        }
    }
    Ok(None)
}

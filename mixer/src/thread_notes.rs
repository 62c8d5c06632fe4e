//! Notes of tasks with several threads. The records of a thread keep their order, but those of different threads have their
//! order in the trace only when they are numbered. Until then the notes of a task are a list of entries in the order of the
//! walk ([`UnplacedNotes`]); [`place`] then puts each at its record.

use crate::error::MixError;
use crate::fit::fit;
use crate::function::Function;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use vef_format::container::{Note, Section, TaskNotes};
use vef_format::ids::Rank;
use vef_format::units::Ticks;
use vef_format::varint::{self, Source};

/// The notes of a task in the order of the walk: encoded [entries](Entry).
#[derive(Debug)]
pub(crate) struct UnplacedNotes(Vec<u8>);

impl UnplacedNotes {
    /// Allocated bytes.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// For [`place`]; `shift` converts the task's clock to the common one.
    pub(crate) fn on_common_clock(self, shift: i64) -> Vec<u8> {
        let mut notes = ThreadNotes::default();
        notes.add(&Entry::Clock(shift));
        notes.entries.extend(self.0);
        notes.entries
    }
}

/// Makes [`UnplacedNotes`].
#[derive(Debug, Default)]
pub(crate) struct ThreadNotes {
    entries: Vec<u8>,
    /// Number of records so far.
    made: u64,
}

/// An entry. A record is given by the number of records made since, itself included.
#[derive(Serialize, Deserialize)]
enum Entry<'a> {
    /// What converts the times of the other entries to the common clock.
    Clock(i64),
    /// When the task's computing began: after `MPI_Init`, or with it.
    Begun(u64),
    /// The next record is of this thread.
    Record { thread: u16 },
    /// The function of all records since the last entry of this kind.
    Function(u16),
    /// The tag of a sent message.
    Tag { record: u64, tag: i32 },
    /// A send that returns before it is complete.
    Detached { record: u64 },
    /// A send that is complete when its message is received.
    Synchronous { record: u64 },
    /// The counts of a vector collective.
    Counts { record: u64, sent: Cow<'a, [u64]>, received: Cow<'a, [u64]> },
    /// In front of the thread's next record: a wait for the send of a record.
    Wait { thread: u16, send: u64, before: u64, took: u64 },
    /// A phase begins or ends.
    Phase { thread: u16, at: u64, begin: bool, name: &'a str },
    /// What the thread of the next record computed, since its latest one, before the first phase mark without this.
    BeforePhase(u64),
}

impl ThreadNotes {
    fn add(&mut self, entry: &Entry<'_>) {
        // Appending to a list does not fail.
        if let Ok(entries) = postcard::to_extend(entry, std::mem::take(&mut self.entries)) {
            self.entries = entries;
        }
    }

    /// The task's computing began.
    pub(crate) fn begun(&mut self, at: u64) {
        self.add(&Entry::Begun(at));
    }

    /// The next record is of `thread`.
    pub(crate) fn made(&mut self, thread: u16) {
        self.add(&Entry::Record { thread });
        self.made += 1;
    }

    /// `function` made the latest records.
    pub(crate) fn made_by(&mut self, function: Function) {
        self.add(&Entry::Function(function.number() as u16));
    }

    /// `thread` marks that a phase begins or ends.
    pub(crate) fn phase(&mut self, thread: u16, at: u64, begin: bool, name: &str) {
        self.add(&Entry::Phase { thread, at, begin, name });
    }

    /// Adds a note of the current event, which is of `thread`. A tag, a detached send and counts belong to the record `place`,
    /// which has been made; a wait to the thread's next record.
    pub(crate) fn put(&mut self, thread: u16, place: u64, note: &Note<'_>) {
        let record = self.made.saturating_sub(place);
        let entry = match *note {
            Note::Tag(tag) => Entry::Tag { record, tag },
            Note::Detached => Entry::Detached { record },
            Note::Synchronous => Entry::Synchronous { record },
            Note::Counts { sent, received } => {
                Entry::Counts { record, sent: sent.into(), received: received.into() }
            }
            Note::SendWait { send, before, took } => {
                Entry::Wait { thread, send: self.made - send, before: before.0, took: took.0 }
            }
            Note::BeforePhase(computed) => Entry::BeforePhase(computed.0),
            // `made_by` has the calls, and `phase` the phases; the others are of the task or of the trace as a whole.
            Note::Call(_)
            | Note::Phase { .. }
            | Note::Initialised(_)
            | Note::StartUp(_)
            | Note::Finalised(_)
            | Note::Time { .. }
            | Note::File { .. }
            // The records have their times when they are placed.
            | Note::Moment(_)
            | Note::Host(_)
            | Note::Root(_)
            | Note::Blocks { .. } => return,
        };
        self.add(&entry);
    }

    /// All notes.
    pub(crate) fn finish(mut self) -> UnplacedNotes {
        fit(&mut self.entries);
        UnplacedNotes(self.entries)
    }
}

/// The records of tasks with several threads, in the order of the trace.
#[derive(Debug, Default)]
pub(crate) struct Sequences(HashMap<Rank, Sequence>);

/// Those of a task.
#[derive(Debug, Default)]
struct Sequence {
    /// Of each, its thread, its lost time, and how much later it began than the latest before it.
    records: Vec<u8>,
    /// The latest beginning.
    latest: u64,
}

impl Sequences {
    /// Adds a record of `thread` that began at `start`. `lost` is the part of its computing time that overlaps the record in front.
    pub(crate) fn add(&mut self, task: Rank, thread: u16, lost: u64, start: u64) {
        let Sequence { records, latest } = self.0.entry(task).or_default();
        let step = start.saturating_sub(*latest);
        *latest += step;
        [thread.into(), lost, step].into_iter().for_each(|field| varint::put(records, field));
    }
}

/// Places the notes of `task`, by the sequence of its records in the trace. None, if no record of it is in the trace.
pub(crate) fn place(
    task: Rank,
    mut notes: &[u8],
    sequences: &Sequences,
) -> Result<Vec<(Section, Vec<u8>)>, MixError> {
    let Some(sequence) = sequences.0.get(&task) else { return Ok(Vec::new()) };
    let mut placed = Placed::new(&sequence.records)?;
    while !notes.is_empty() {
        let (entry, rest) = postcard::take_from_bytes(notes).map_err(|_| MixError::Garbled)?;
        placed.take(entry)?;
        notes = rest;
    }
    placed.finish()
}

/// What a note says that has a place.
enum PlacedNote<'a> {
    Plain(Note<'a>),
    Wait(Wait),
    /// Numbers of bytes sent and received, in the list of all.
    Counts(Range<usize>, Range<usize>),
}

/// A wait for the send of the record with this line.
#[derive(Clone, Copy)]
struct Wait {
    send: LineIndex,
    before: u64,
    took: u64,
}

/// A record of the task, by its index in the trace.
type LineIndex = u32;

/// Notes with their places in the trace.
#[derive(Default)]
struct Placed<'a> {
    threads: HashMap<u16, Thread>,
    /// Number of waits so far.
    waits: usize,
    /// Lost time of each line that is not yet subtracted from a wait.
    lost: Vec<u64>,
    /// When each line began, or the latest before it.
    starts: Vec<u64>,
    /// What converts times of the task's clock to that of `starts`.
    shift: i64,
    /// When the task's computing began.
    begun: u64,
    /// The line behind each phase mark, and how many of them have a note of what was computed before.
    marks: Vec<LineIndex>,
    settled: usize,
    /// The line of each record made.
    made: Vec<LineIndex>,
    /// How many of them have a function.
    named: usize,
    /// The function of each line.
    functions: Vec<u16>,
    tags: Vec<(LineIndex, i32)>,
    notes: Vec<(LineIndex, PlacedNote<'a>)>,
    counts: Vec<u64>,
}

/// A thread of the task.
#[derive(Default)]
struct Thread {
    /// The lines of its records that have not been made.
    next: VecDeque<LineIndex>,
    /// The line of the latest one that has been made.
    made: Option<LineIndex>,
    /// Waits in front of the next one, numbered over all threads.
    waits: Vec<(usize, Wait)>,
}

impl<'a> Placed<'a> {
    fn new(sequence: &[u8]) -> Result<Self, MixError> {
        let (mut placed, mut start) = (Self::default(), 0);
        let mut source = Source::new(sequence, 0);
        while source.remaining() > 0 {
            let [thread, lost, step] = source.fields::<3, 0>()?;
            let line = placed.lost.len() as LineIndex;
            placed.threads.entry(thread as u16).or_default().next.push_back(line);
            placed.lost.push(lost);
            start += step;
            placed.starts.push(start);
        }
        placed.functions = vec![u16::MAX; placed.lost.len()];
        Ok(placed)
    }

    /// Takes the next entry.
    fn take(&mut self, entry: Entry<'a>) -> Result<(), MixError> {
        match entry {
            Entry::Clock(shift) => self.shift = shift,
            Entry::Begun(at) => self.begun = at.saturating_add_signed(self.shift),
            Entry::Record { thread } => {
                let thread = self.threads.get_mut(&thread).ok_or(MixError::Garbled)?;
                let line = thread.next.pop_front().ok_or(MixError::Garbled)?;
                thread.made = Some(line);
                self.made.push(line);
                let waits = thread.waits.drain(..);
                self.notes.extend(waits.map(|(_, wait)| (line, PlacedNote::Wait(wait))));
            }
            Entry::Function(function) => {
                for &line in &self.made[self.named..] {
                    self.functions[line as usize] = function;
                }
                self.named = self.made.len();
            }
            Entry::Tag { record, tag } => self.tags.push((self.line(record)?, tag)),
            Entry::Detached { record } => {
                self.notes.push((self.line(record)?, PlacedNote::Plain(Note::Detached)));
            }
            Entry::Synchronous { record } => {
                self.notes.push((self.line(record)?, PlacedNote::Plain(Note::Synchronous)));
            }
            Entry::Counts { record, sent, received } => {
                let first = self.counts.len();
                let second = first + sent.len();
                self.counts.extend(sent.iter().chain(&*received));
                let note = PlacedNote::Counts(first..second, second..self.counts.len());
                self.notes.push((self.line(record)?, note));
            }
            Entry::Wait { thread, send, before, took } => {
                let wait = Wait { send: self.line(send)?, before, took };
                self.threads.entry(thread).or_default().waits.push((self.waits, wait));
                self.waits += 1;
            }
            Entry::Phase { thread, at, begin, name } => {
                let line = self.line_behind(thread, at.saturating_add_signed(self.shift));
                self.marks.push(line);
                self.notes.push((line, PlacedNote::Plain(Note::Phase { begin, name })));
            }
            Entry::BeforePhase(computed) => {
                let line = *self.marks.get(self.settled).ok_or(MixError::Garbled)?;
                self.settled += 1;
                let lost = self.lost.get(line as usize).copied().unwrap_or(0);
                let computed = Ticks(computed.saturating_sub(lost));
                self.notes.push((line, PlacedNote::Plain(Note::BeforePhase(computed))));
            }
        }
        Ok(())
    }

    /// The first line that began at `at` or later; those of `thread` are in the order of its calls, whatever the clock says.
    fn line_behind(&self, thread: u16, at: u64) -> LineIndex {
        let line = self.starts.partition_point(|&start| start < at) as LineIndex;
        let thread = self.threads.get(&thread);
        let first = thread.and_then(|thread| thread.made).map_or(0, |made| made + 1);
        let last = thread.and_then(|thread| thread.next.front().copied());
        line.max(first).min(last.unwrap_or(LineIndex::MAX))
    }

    /// The line of a record, by the number of records made since.
    fn line(&self, record: u64) -> Result<LineIndex, MixError> {
        let at = self.made.len().checked_sub(record as usize);
        at.and_then(|at| self.made.get(at)).copied().ok_or(MixError::Garbled)
    }

    /// The notes, by section.
    fn finish(mut self) -> Result<Vec<(Section, Vec<u8>)>, MixError> {
        let Self { threads, mut tags, mut notes, counts, .. } = self;
        let mut waits: Vec<_> = threads.into_values().flat_map(|thread| thread.waits).collect();
        waits.sort_unstable_by_key(|&(number, _)| number);
        // Behind a thread's last record: the task's last record, MPI_Finalize, waits for its sends.
        if let Some(last) = (self.lost.len() as LineIndex).checked_sub(1) {
            let at_end = |(_, wait)| (last, PlacedNote::Wait(Wait { before: 0, took: 0, ..wait }));
            notes.extend(waits.into_iter().map(at_end));
        }
        notes.sort_by_key(|&(line, _)| line);
        tags.sort_by_key(|&(line, _)| line);
        tags.dedup_by_key(|&mut (_, tag)| tag);
        let mut placed = TaskNotes::default();
        for (line, tag) in tags {
            placed.put(line.into(), &Note::Tag(tag));
        }
        let (names, mut before) = (Function::names(), u16::MAX);
        for (line, function) in (0..).zip(self.functions).filter(|&(_, function)| function != u16::MAX) {
            if std::mem::replace(&mut before, function) != function {
                placed.put(line, &Note::Call(names.get(usize::from(function)).ok_or(MixError::Garbled)?));
            }
        }
        let mut noted = None;
        for (line, &start) in (0..).zip(&self.starts) {
            if noted.is_none_or(|noted| start - noted >= Note::LAG) {
                noted = Some(start);
                placed.put(line, &Note::Moment(Ticks(start.saturating_sub(self.begun))));
            }
        }
        for (line, note) in notes {
            let note = match note {
                PlacedNote::Plain(note) => note,
                // The replay of another order cannot wait for a send that is not started yet.
                PlacedNote::Wait(Wait { send, .. }) if send >= line => continue,
                PlacedNote::Wait(Wait { send, before, took }) => {
                    let lost = &mut self.lost[line as usize];
                    let (before, took) = (take_from(before, lost), take_from(took, lost));
                    Note::SendWait { send: send.into(), before: Ticks(before), took: Ticks(took) }
                }
                PlacedNote::Counts(sent, received) => {
                    Note::Counts { sent: &counts[sent], received: &counts[received] }
                }
            };
            placed.put(line.into(), &note);
        }
        Ok(placed.into_pieces())
    }
}

/// What remains of `time` if up to all of it is `lost`.
fn take_from(time: u64, lost: &mut u64) -> u64 {
    let taken = time.min(*lost);
    *lost -= taken;
    time - taken
}

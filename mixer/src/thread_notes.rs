//! Notes of tasks with several threads. The records of a thread keep their order, but those of different threads have their
//! order in the trace only when they are numbered. Until then the notes of a task are a stream of bytes in the order of the
//! walk.

use crate::bytes::{Encoder, Garbled, Reader};
use crate::fit::fit;
use crate::function::Function;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::ops::Range;
use vef_format::container::{Note, Section, TaskNotes};
use vef_format::units::Ticks;

/// The notes of a task in the order of the walk.
#[derive(Debug, Default)]
pub(crate) struct ThreadNotes {
    encoder: Encoder,
    /// Number of records so far.
    made: u64,
}

/// Entries of the stream: a record of a thread.
const MADE: u64 = 0;
/// The function of all records since the entry before.
const FUNCTION: u64 = 1;
/// On a record: the tag of a send.
const TAG: u64 = 2;
/// On a record.
const DETACHED: u64 = 3;
/// On a record.
const COUNTS: u64 = 4;
/// On the next record of a thread.
const WAIT: u64 = 5;
/// On the next record of a thread: a phase ends, or (6 + 1) begins.
const PHASE: u64 = 6;

impl ThreadNotes {
    /// The next record is of `thread`.
    pub(crate) fn made(&mut self, thread: u16) {
        self.encoder.put_all([MADE, thread.into()]);
        self.made += 1;
    }

    /// `function` made the latest records.
    pub(crate) fn made_by(&mut self, function: Function) {
        self.encoder.put_all([FUNCTION, function.number() as u64]);
    }

    /// Adds a note of the current event, which is of `thread`. A tag, a detached send and counts belong to the record `place`,
    /// which has been made; a wait and a phase to the thread's next record.
    pub(crate) fn put(&mut self, thread: u16, place: u64, note: &Note<'_>) {
        let back = self.made.saturating_sub(place);
        match *note {
            Note::Tag(tag) => {
                self.encoder.put_all([TAG, back]);
                self.encoder.put_signed(tag.into());
            }
            Note::Detached => self.encoder.put_all([DETACHED, back]),
            Note::Counts { sent, received } => {
                self.encoder.put_all([COUNTS, back, sent.len() as u64, received.len() as u64]);
                sent.iter().chain(received).for_each(|&count| self.encoder.put(count));
            }
            Note::SendWait { send, before, took } => {
                self.encoder.put_all([WAIT, thread.into(), self.made - send, before.0, took.0]);
            }
            Note::Phase { begin, name } => {
                self.encoder.put_all([PHASE + u64::from(begin), thread.into()]);
                self.encoder.put_bytes(name.as_bytes());
            }
            // The others are of the task as a whole, or have a function of their own.
            _ => {}
        }
    }

    /// All notes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        fit(&mut self.encoder.0);
        self.encoder.0
    }
}

/// The records of a task with several threads, in the order of the trace.
#[derive(Debug, Default)]
pub(crate) struct Sequence(Encoder);

impl Sequence {
    /// Adds a record of `thread`. By so much is its time less than from its thread's previous event, because the record in
    /// front started later.
    pub(crate) fn add(&mut self, thread: u16, lost: u64) {
        self.0.put_all([thread.into(), lost]);
    }
}

/// What one note says.
enum Said<'a> {
    Plain(Note<'a>),
    Wait {
        send: u64,
        before: u64,
        took: u64,
    },
    /// Numbers of bytes sent and received, in the list of all.
    Counts(Range<usize>, Range<usize>),
}

/// Places the notes of a task, by the `sequence` of its records in the trace.
pub(crate) fn place(notes: &[u8], sequence: &Sequence) -> Result<Vec<(Section, Vec<u8>)>, Garbled> {
    let mut placed = Placed::new(sequence)?;
    let mut reader = Reader::new(notes);
    while reader.more() {
        placed.take(&mut reader)?;
    }
    placed.finish()
}

/// Notes with their places in the trace.
#[derive(Default)]
struct Placed<'a> {
    threads: HashMap<u64, Thread<'a>>,
    /// Number of notes so far that were on the next record of a thread.
    awaiting: usize,
    /// By so much is the time of each record less; waits in front of it have taken their part.
    lost: Vec<u64>,
    /// The index in the trace of each record made.
    made: Vec<u32>,
    /// How many of them have a function.
    named: usize,
    /// The function of each record, by its index in the trace.
    calls: Vec<u8>,
    tags: Vec<(u32, i32)>,
    notes: Vec<(u32, Said<'a>)>,
    counts: Vec<u64>,
}

/// A thread of the task.
#[derive(Default)]
struct Thread<'a> {
    /// The indices in the trace of its records that have not been made.
    next: VecDeque<u32>,
    /// Notes on the next one, numbered over all threads.
    pending: Vec<(usize, Said<'a>)>,
}

impl<'a> Placed<'a> {
    fn new(sequence: &Sequence) -> Result<Self, Garbled> {
        let mut placed = Self::default();
        let mut reader = Reader::new(&sequence.0.0);
        while reader.more() {
            let place = placed.lost.len() as u32;
            placed.threads.entry(reader.get()?).or_default().next.push_back(place);
            placed.lost.push(reader.get()?);
        }
        placed.calls = vec![u8::MAX; placed.lost.len()];
        Ok(placed)
    }

    /// Takes the next entry.
    fn take(&mut self, reader: &mut Reader<'a>) -> Result<(), Garbled> {
        let kind = reader.get()?;
        match kind {
            MADE => {
                let thread = self.threads.get_mut(&reader.get()?).ok_or(Garbled)?;
                let place = thread.next.pop_front().ok_or(Garbled)?;
                self.made.push(place);
                self.notes.extend(thread.pending.drain(..).map(|(_, said)| (place, said)));
            }
            FUNCTION => {
                let function = u8::try_from(reader.get()?).map_err(|_| Garbled)?;
                for &place in &self.made[self.named..] {
                    self.calls[place as usize] = function;
                }
                self.named = self.made.len();
            }
            TAG => {
                let place = self.record(reader.get()?)?;
                self.tags.push((place, reader.get_signed()? as i32));
            }
            DETACHED | COUNTS => {
                let place = self.record(reader.get()?)?;
                let said = match kind {
                    DETACHED => Said::Plain(Note::Detached),
                    _ => {
                        let (sent, received) = (reader.get()? as usize, reader.get()? as usize);
                        let first = self.counts.len();
                        for _ in 0..sent + received {
                            self.counts.push(reader.get()?);
                        }
                        Said::Counts(first..first + sent, first + sent..self.counts.len())
                    }
                };
                self.notes.push((place, said));
            }
            WAIT => {
                let (thread, back) = (reader.get()?, reader.get()?);
                let (send, before, took) = (self.record(back)?.into(), reader.get()?, reader.get()?);
                self.await_record(thread, Said::Wait { send, before, took });
            }
            _ => {
                let thread = reader.get()?;
                let name = std::str::from_utf8(reader.get_bytes()?).map_err(|_| Garbled)?;
                let note = Note::Phase { begin: kind > PHASE, name };
                self.await_record(thread, Said::Plain(note));
            }
        }
        Ok(())
    }

    /// Puts a note on the next record of a thread.
    fn await_record(&mut self, thread: u64, said: Said<'a>) {
        self.threads.entry(thread).or_default().pending.push((self.awaiting, said));
        self.awaiting += 1;
    }

    /// The index in the trace of the record made so many records ago.
    fn record(&self, back: u64) -> Result<u32, Garbled> {
        let at = self.made.len().checked_sub(back as usize);
        at.and_then(|at| self.made.get(at)).copied().ok_or(Garbled)
    }

    /// The notes, by section.
    fn finish(mut self) -> Result<Vec<(Section, Vec<u8>)>, Garbled> {
        let Self { threads, mut tags, mut notes, counts, .. } = self;
        let mut pending: Vec<_> = threads.into_values().flat_map(|thread| thread.pending).collect();
        pending.sort_unstable_by_key(|&(number, _)| number);
        // Behind a thread's last record: the task's last record, MPI_Finalize, waits for its sends.
        let end = self.lost.len() as u32;
        notes.extend(pending.into_iter().filter_map(|(_, said)| match said {
            Said::Wait { send, .. } => Some((end.checked_sub(1)?, Said::Wait { send, before: 0, took: 0 })),
            said => Some((end, said)),
        }));
        notes.sort_by_key(|&(place, _)| place);
        tags.sort_by_key(|&(place, _)| place);
        tags.dedup_by_key(|&mut (_, tag)| tag);
        let mut placed = TaskNotes::default();
        for (place, tag) in tags {
            placed.put(place.into(), &Note::Tag(tag));
        }
        let (names, mut before) = (Function::names(), u8::MAX);
        for (place, function) in (0..).zip(self.calls).filter(|&(_, function)| function != u8::MAX) {
            if std::mem::replace(&mut before, function) != function {
                placed.put(place, &Note::Call(names.get(usize::from(function)).ok_or(Garbled)?));
            }
        }
        for (place, said) in notes {
            let note = match said {
                Said::Plain(note) => note,
                // The replay of another order cannot wait for a send that is not started yet.
                Said::Wait { send, .. } if send >= place.into() => continue,
                Said::Wait { send, before, took } => {
                    let lost = &mut self.lost[place as usize];
                    let (before, took) = (take_from(before, lost), take_from(took, lost));
                    Note::SendWait { send, before: Ticks(before), took: Ticks(took) }
                }
                Said::Counts(sent, received) => {
                    Note::Counts { sent: &counts[sent], received: &counts[received] }
                }
            };
            placed.put(place.into(), &note);
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

//! Notes: extension sections of a container with what text cannot hold. `noted.rs` has what they say together.
//!
//! A [`Note`] belongs to a task or to the trace, and to a place in it: usually the index of a record in its task, from 0.
//! Readers that do not need a section do not read its blocks.

use super::block::{Kind, MOST_RAW};
use super::code::{Garbled, Packed};
use super::error::{ContainerError, Problem};
use super::index::Places;
use super::reader::{Reader, SectionStream};
use super::section::Section;
use crate::account::TimePart;
use crate::files::FileUse;
use crate::ids::Rank;
use crate::units::Ticks;
use crate::varint::{Source, unzigzag, zigzag};

/// A note on a record, a task or a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    /// The record is a send at which its task did not wait for completion: `MPI_Isend` and the like, started persistent sends,
    /// and buffered sends.
    Detached,
    /// The record is a send that is complete when its message is received, not before: `MPI_Ssend`, `MPI_Issend` and the like.
    Synchronous,
    /// In front of the record its task waited for a detached send. Several waits are in the order in which they occurred. The
    /// record's `time` includes `before` and `took`.
    SendWait {
        /// The send: index of its record.
        send: u64,
        /// Computing time before the wait, since the previous event.
        before: Ticks,
        /// What the record's `time` has of the wait itself: nothing, unless waits for sends are computing.
        took: Ticks,
    },
    /// The tag of the task's messages from this record on.
    Tag(i32),
    /// The MPI function behind the task's records from this one on.
    Call(&'a str),
    /// The bytes that the task's part of a vector collective moves to and from each member, itself included, by communicator
    /// rank. A list is empty if it is not significant at this task.
    Counts {
        /// To each.
        sent: &'a [u64],
        /// From each.
        received: &'a [u64],
    },
    /// A phase of the program began or ended in front of the record, or behind the last.
    Phase {
        /// Whether it began.
        begin: bool,
        /// Its name.
        name: &'a str,
    },
    /// Time from the task's start to the return of `MPI_Init` in the captured run; the place is 0. The `time` of the first record
    /// includes it.
    Initialised(Ticks),
    /// The same where no record includes it.
    StartUp(Ticks),
    /// Time from the task's start to the entry of `MPI_Finalize` in the captured run; the place is 0.
    Finalised(Ticks),
    /// An entry of the task's account of the captured run; the place is its number, from 0.
    Time {
        /// The part of the task's time.
        part: TimePart,
        /// Calls of the function.
        calls: u64,
        /// Their time.
        took: Ticks,
        /// The MPI function; empty for time outside MPI.
        function: &'a str,
    },
    /// When the record began in the captured run, from the return of the task's `MPI_Init` on (where the records include start-up, from its
    /// entry on). Between two of these notes, records follow each other after their computing times; the calls in which they waited
    /// together took less than [`Note::LAG`].
    Moment(Ticks),
    /// How much of the computing time in front of the record came before a phase began or ended there: one for each [`Note::Phase`]
    /// of the task, in their order.
    BeforePhase(Ticks),
    /// What the task did with a file in the captured run; the place is the file's number in the task, from 0.
    File {
        /// The calls on it.
        used: FileUse,
        /// Its name; empty for the sum over further files.
        name: &'a str,
    },
    /// The host of the tasks from this one on; the place is the task.
    Host(&'a str),
    /// The root of a rooted collective; the place is the collective's id.
    Root(Rank),
    /// The blocks of a collective in which each member gives only its own ([`Operation::own_block`]), by world rank of the
    /// members, from number `first` on; the place is the collective's id. Longer lists take several notes of at most
    /// [`Note::MOST_BLOCKS`].
    ///
    /// [`Operation::own_block`]: crate::operation::Operation::own_block
    Blocks {
        /// Index of the first of them.
        first: u64,
        /// Bytes of each.
        bytes: &'a [u64],
    },
}

impl Note<'_> {
    /// Maximum number of blocks in one note.
    pub const MOST_BLOCKS: usize = 1 << 16;

    /// Nanoseconds by which the time of a record may be off that follows from the last [`Note::Moment`].
    pub const LAG: u64 = 10_000;

    /// The section of the note.
    pub const fn section(&self) -> Section {
        match self {
            Self::Detached | Self::SendWait { .. } => Section::Sends,
            Self::Synchronous => Section::Synchronous,
            Self::Tag(_) => Section::Tags,
            Self::Call(_) => Section::Calls,
            Self::Counts { .. } => Section::Counts,
            Self::Phase { .. } => Section::Phases,
            Self::Initialised(_) | Self::StartUp(_) | Self::Finalised(_) => Section::Spans,
            Self::Time { .. } => Section::Times,
            Self::Moment(_) | Self::BeforePhase(_) => Section::Moments,
            Self::File { .. } => Section::Files,
            Self::Host(_) => Section::Placement,
            Self::Root(_) => Section::Roots,
            Self::Blocks { .. } => Section::Blocks,
        }
    }
}

/// The notes of one task, made without a [`Writer`](super::Writer), when its events are known before the order of all
/// records.
#[derive(Debug, Default)]
pub struct TaskNotes {
    /// By section.
    begun: [Piece; Section::ALL.len()],
    /// The number of each function in the piece of calls; 0: none so far.
    functions: Vec<u8>,
    pieces: Vec<(Section, Vec<u8>)>,
}

/// Bytes of a piece of [`TaskNotes`].
const FULL: usize = (16 << 10) - 256;

impl TaskNotes {
    /// Adds a [`Note::Call`] of a function with a small number; only the first in a piece needs its `name`.
    #[inline]
    pub fn call(&mut self, place: u64, function: usize, name: impl FnOnce() -> String) {
        let piece = &mut self.begun[Section::Calls as usize];
        match self.functions.get(function) {
            Some(&number @ 1..) => {
                let step = piece.step(place);
                piece.content.put_short(&[step, number.into()]);
            }
            _ => {
                piece.put(place, &Note::Call(&name()));
                self.functions.resize(self.functions.len().max(function + 1), 0);
                self.functions[function] = piece.names.len() as u8;
            }
        }
        if piece.content.len() >= FULL {
            self.end(Section::Calls);
        }
    }

    /// Adds a note of a task's section; [`Note`] explains `place`. Notes of one section must have ascending places.
    #[inline(always)]
    pub fn put(&mut self, place: u64, note: &Note<'_>) {
        let section = note.section();
        debug_assert!(!section.of_trace());
        let piece = &mut self.begun[section as usize];
        piece.put(place, note);
        if piece.content.len() >= FULL {
            self.end(section);
        }
    }

    /// Ends the piece of `section`.
    #[cold]
    fn end(&mut self, section: Section) {
        let piece = &mut self.begun[section as usize];
        self.pieces.push((section, piece.bytes().to_vec()));
        piece.clear();
        if section == Section::Calls {
            self.functions.clear();
        }
    }

    /// The pieces of all sections, to be passed to [`Writer::notes`](super::Writer::notes) in this order.
    pub fn into_pieces(self) -> Vec<(Section, Vec<u8>)> {
        let Self { begun, mut pieces, .. } = self;
        let rest = Section::ALL.into_iter().zip(&begun).filter(|(_, piece)| !piece.bytes().is_empty());
        pieces.extend(rest.map(|(section, piece)| (section, piece.bytes().to_vec())));
        pieces.sort_by_key(|&(section, _)| section);
        pieces
    }
}

/// An incomplete piece of notes. Each piece is self-contained: delta-coded places and the table of names begin anew.
#[derive(Debug, Default)]
pub(super) struct Piece {
    content: Packed,
    place: u64,
    names: Vec<Box<str>>,
}

impl Piece {
    #[inline(always)]
    pub(super) fn put(&mut self, place: u64, note: &Note<'_>) {
        let step = self.step(place);
        let out = &mut self.content;
        match *note {
            Note::Detached => out.put_short(&[step, 0]),
            Note::Synchronous => out.put_short(&[step]),
            // A send precedes the record behind its wait, so the distance is never 0.
            Note::SendWait { send, before, took } => {
                out.put_short(&[step, place.wrapping_sub(send), before.0, took.0]);
            }
            Note::Initialised(after) => out.put(&[step, 0, after.0]),
            Note::Finalised(after) => out.put(&[step, 1, after.0]),
            Note::StartUp(after) => out.put(&[step, 2, after.0]),
            Note::Time { part, calls, took, function } => {
                out.put(&[step, part as u64, calls, took.0]);
                self.name(function);
            }
            Note::Moment(at) => out.put(&[step, 0, at.0]),
            Note::BeforePhase(computed) => out.put(&[step, 1, computed.0]),
            Note::File { used, name } => {
                let FileUse { opens, calls, reads, read_bytes, writes, written_bytes, took } = used;
                out.put(&[step, opens, calls, reads, read_bytes, writes, written_bytes, took.0]);
                self.name(name);
            }
            Note::Tag(tag) => out.put_short(&[step, zigzag(tag.into())]),
            Note::Call(name) | Note::Host(name) => {
                out.put(&[step]);
                self.name(name);
            }
            Note::Phase { begin, name } => {
                out.put(&[step, begin.into()]);
                self.name(name);
            }
            Note::Counts { sent, received } => {
                out.put(&[step, sent.len() as u64, received.len() as u64]);
                for value in sent.iter().chain(received) {
                    out.put(&[*value]);
                }
            }
            Note::Root(root) => out.put(&[step, root.0.into()]),
            Note::Blocks { first, bytes } => {
                out.put(&[step, first, bytes.len() as u64]);
                bytes.iter().for_each(|&bytes| out.put(&[bytes]));
            }
        }
    }

    /// The signed difference of a place from that of the note before.
    #[inline(always)]
    fn step(&mut self, place: u64) -> u64 {
        zigzag(place.wrapping_sub(std::mem::replace(&mut self.place, place)) as i64)
    }

    fn name(&mut self, name: &str) {
        match self.names.iter().position(|known| **known == *name) {
            Some(number) => self.content.put(&[number as u64 + 1]),
            None => {
                self.content.put(&[0]);
                self.content.text(name);
                self.names.push(name.into());
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }

    pub(super) fn clear(&mut self) {
        self.content.clear();
        (self.place, self.names) = (0, Vec::new());
    }
}

/// Reads the notes of one stream. The reader is an argument of each call.
#[derive(Debug)]
pub struct Notes {
    section: Section,
    task: u32,
    places: Places,
    offset: u64,
    piece: Vec<u8>,
    at: usize,
    place: u64,
    names: Vec<String>,
    counts: Vec<u64>,
}

impl Notes {
    /// The notes in a stream of `section`.
    pub fn new(section: Section, stream: &SectionStream) -> Self {
        Self {
            section,
            task: stream.task.map_or(0, |task| task.0),
            places: Places::new(stream.list),
            offset: 0,
            piece: Vec::new(),
            at: 0,
            place: 0,
            names: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// The notes in a piece of a task's [`TaskNotes`], for [`Notes::next_in_piece`].
    pub fn of_piece(section: Section, piece: Vec<u8>) -> Self {
        Self {
            section,
            task: 0,
            places: Places::default(),
            offset: 0,
            piece,
            at: 0,
            place: 0,
            names: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// The next note of a piece and its place; `None` at the end.
    ///
    /// # Errors
    /// It is not a piece of this section.
    pub fn next_in_piece(&mut self) -> Result<Option<(u64, Note<'_>)>, Problem> {
        if self.at == self.piece.len() { Ok(None) } else { Ok(Some(self.read(0)?)) }
    }

    /// The next note in `reader` and its place; `None` at the end.
    pub fn next(&mut self, reader: &Reader) -> Result<Option<(u64, Note<'_>)>, ContainerError> {
        while self.at == self.piece.len() {
            let Some(spot) = reader.next_place(&mut self.places)? else { return Ok(None) };
            if spot.length > 2 * MOST_RAW as u64 {
                return Err(reader.garbled(spot.offset, Garbled::Length));
            }
            self.piece = reader.content(Kind::Section, self.task, spot)?;
            (self.offset, self.at, self.place) = (spot.offset, 0, 0);
            self.names.clear();
        }
        let offset = self.offset;
        self.read(reader.header().tasks).map(Some).map_err(|garbled| reader.garbled(offset, garbled))
    }

    fn read(&mut self, tasks: u32) -> Result<(u64, Note<'_>), Garbled> {
        let mut from = Source::new(&self.piece, self.at);
        self.place = self.place.wrapping_add(unzigzag(from.get()?) as u64);
        let place = self.place;
        let note = match self.section {
            Section::Sends => match from.get()? {
                0 => Note::Detached,
                distance => Note::SendWait {
                    send: place.checked_sub(distance).ok_or(Garbled::Value("a send"))?,
                    before: Ticks(from.get()?),
                    took: Ticks(from.get()?),
                },
            },
            Section::Synchronous => Note::Synchronous,
            Section::Tags => {
                Note::Tag(i32::try_from(unzigzag(from.get()?)).map_err(|_| Garbled::Value("a tag"))?)
            }
            Section::Calls => Note::Call(name(&mut self.names, &mut from)?),
            Section::Placement => Note::Host(name(&mut self.names, &mut from)?),
            Section::Phases => {
                let begin = match from.get()? {
                    0 => false,
                    1 => true,
                    _ => return Err(Garbled::Value("a phase")),
                };
                Note::Phase { begin, name: name(&mut self.names, &mut from)? }
            }
            Section::Spans => match (from.get()?, Ticks(from.get()?)) {
                (0, after) => Note::Initialised(after),
                (1, after) => Note::Finalised(after),
                (2, after) => Note::StartUp(after),
                _ => return Err(Garbled::Value("a span")),
            },
            Section::Times => {
                let part = usize::try_from(from.get()?).ok().and_then(|part| TimePart::ALL.get(part));
                let part = *part.ok_or(Garbled::Value("a part of time"))?;
                let (calls, took) = (from.get()?, Ticks(from.get()?));
                Note::Time { part, calls, took, function: name(&mut self.names, &mut from)? }
            }
            Section::Moments => match (from.get()?, Ticks(from.get()?)) {
                (0, at) => Note::Moment(at),
                (1, computed) => Note::BeforePhase(computed),
                _ => return Err(Garbled::Value("a moment")),
            },
            Section::Files => {
                let mut next = || from.get();
                let (opens, calls, reads, read_bytes) = (next()?, next()?, next()?, next()?);
                let (writes, written_bytes, took) = (next()?, next()?, Ticks(next()?));
                let used = FileUse { opens, calls, reads, read_bytes, writes, written_bytes, took };
                Note::File { used, name: name(&mut self.names, &mut from)? }
            }
            Section::Counts => {
                let (sent, received) = (from.get()?, from.get()?);
                // A count takes at least one byte.
                let left = from.remaining() as u64;
                if sent > left || received > left - sent {
                    return Err(Garbled::Length);
                }
                self.counts.clear();
                for _ in 0..sent + received {
                    self.counts.push(from.get()?);
                }
                let (sent, received) = self.counts.split_at(sent as usize);
                Note::Counts { sent, received }
            }
            Section::Roots => {
                let root = u32::try_from(from.get()?).ok().filter(|&root| root < tasks);
                Note::Root(Rank(root.ok_or(Garbled::Value("a root"))?))
            }
            Section::Blocks => {
                let (first, count) = (from.get()?, from.get()?);
                if count > from.remaining() as u64 {
                    return Err(Garbled::Length);
                }
                self.counts.clear();
                for _ in 0..count {
                    self.counts.push(from.get()?);
                }
                Note::Blocks { first, bytes: &self.counts }
            }
        };
        self.at = from.position();
        Ok((place, note))
    }
}

/// A name: the number of one that the piece had before, or a new one.
fn name<'a>(names: &'a mut Vec<String>, from: &mut Source<'_>) -> Result<&'a str, Garbled> {
    let number = match from.get()? {
        0 => {
            let text = std::str::from_utf8(from.text()?).map_err(|_| Garbled::Value("a name"))?;
            names.push(text.to_owned());
            names.len()
        }
        number => usize::try_from(number).unwrap_or(usize::MAX),
    };
    names.get(number - 1).map(String::as_str).ok_or(Garbled::Value("a name"))
}

//! Writes a container: begun blocks a task, then the index.

use super::block::{Block, FRAME, Footer, Kind, MAGIC, MAGIC_END, MINOR, MOST_RAW, START, VERSION};
use super::code::{Packed, Runs};
use super::facts::{Facts, Known};
use super::index::{Content, Listings, Spot, about_to_bytes};
use super::notes::{Note, Piece};
use super::proof::{self, Proving};
use super::record::Encoder;
use super::section::Section;
use super::{About, BUFFERED, ContainerWriteError};
use crate::id_set::IdSet;
use crate::id_table::IdTable;
use crate::ids::{CommId, Rank};
use crate::record::{Header, LocalCollective, Message};
use crate::text::WriteError;
use std::collections::HashMap;
use std::io::Write;

/// Bytes of a block of records: so many if the begun blocks of all tasks stay within [`BUFFERED`], else fewer.
const FULL: usize = 64 << 10;
/// And at least so many.
const SMALL: usize = 1 << 10;

/// How to write a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Compress blocks with zstd.
    pub compress: bool,
    /// Keep the order in which records of different tasks are given (about two bytes a record, less where it is regular).
    pub keep_order: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { compress: false, keep_order: true }
    }
}

/// Writes a container; records of a task come in its program order.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    offset: u64,
    settings: Settings,
    header: Header,
    index: Listings,
    /// The begun block of each task that has records, and its place here by task.
    begun: Vec<(Rank, Begun)>,
    places: IdTable,
    /// With so many bytes a begun block of records is full.
    full: usize,
    communicators: Begun,
    order: Begun,
    runs: Runs,
    /// Begun pieces of notes; of the trace's own, the task is 0.
    notes: HashMap<(Section, u32), Piece>,
    facts: Facts,
    proving: Proving,
    record_blocks: proof::Blocks,
    messages: u64,
    communicators_given: u64,
    local_collectives: u64,
    collectives: IdSet,
    collectives_given: u64,
}

/// A block in the making.
#[derive(Debug)]
struct Begun {
    content: Packed,
    items: u32,
    encoder: Encoder,
    /// Of a block of records.
    told: Content,
    /// Its task's last line.
    last: Option<u64>,
}

impl Default for Begun {
    fn default() -> Self {
        Self {
            content: Packed::default(),
            items: 0,
            encoder: Encoder::default(),
            told: Content::NONE,
            last: None,
        }
    }
}

impl<W: Write> Writer<W> {
    /// Begins a container of the trace with `header`, whose counts [`Writer::finish`] compares with what was written.
    pub fn new(
        out: W,
        header: &Header,
        about: &About,
        settings: Settings,
    ) -> Result<Self, ContainerWriteError> {
        let mut writer = Self {
            out,
            offset: START as u64,
            settings,
            header: *header,
            index: Listings::default(),
            begun: Vec::new(),
            places: IdTable::default(),
            full: FULL,
            communicators: Begun::default(),
            order: Begun::default(),
            runs: Runs::default(),
            notes: HashMap::new(),
            facts: Facts::new(&about.op_codes),
            proving: Proving::new(),
            record_blocks: proof::Blocks::default(),
            messages: 0,
            communicators_given: 0,
            local_collectives: 0,
            collectives: IdSet::default(),
            collectives_given: 0,
        };
        writer.out.write_all(&MAGIC)?;
        writer.out.write_all(&[VERSION])?;
        writer.out.write_all(&MAGIC_END)?;
        let content = about_to_bytes(header, about);
        fits("what is said about the trace", content.bytes().len())?;
        let spot = writer.block(Kind::About, 0, 1, content.bytes())?;
        writer.index.about.push(spot);
        Ok(writer)
    }

    /// Writes the communicator `id` of `members`, world ranks in communicator-rank order.
    pub fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), ContainerWriteError> {
        if members.is_empty() {
            return Err(WriteError::NoMembers(id.0).into());
        }
        for &member in members {
            self.known(member)?;
        }
        self.communicators_given += 1;
        self.facts.communicator(id, members);
        let begun = &mut self.communicators;
        begun.items += 1;
        begun.content.put(&[id.0.into(), members.len() as u64]);
        let mut runs = Runs::default();
        for &member in members {
            runs.put(&mut begun.content, member.0);
        }
        runs.end(&mut begun.content);
        if begun.content.bytes().len() >= FULL { self.end_communicators() } else { Ok(()) }
    }

    /// Writes a message or a local mark.
    #[inline]
    pub fn message(&mut self, message: &Message) -> Result<(), ContainerWriteError> {
        self.known(message.src)?;
        self.known(message.dst)?;
        self.messages += 1;
        self.record(message.src, |begun, proving| {
            proving.line(message, &mut begun.last);
            begun.told.message(message.id.0, message.time.0);
            begun.encoder.message(&mut begun.content, message);
        })
    }

    /// Writes one task's part of a collective operation.
    #[inline]
    pub fn collective(&mut self, part: &LocalCollective) -> Result<(), ContainerWriteError> {
        self.known(part.task)?;
        self.local_collectives += 1;
        self.collectives_given += u64::from(self.collectives.insert(part.id.0));
        if let Some(known) = self.facts.see(part) {
            self.facts_known(part.id.0, &known)?;
        }
        self.record(part.task, |begun, proving| {
            proving.waits_for(part.task, part.after, begun.last);
            begun.told.collective(part.id.0, part.time.0);
            begun.encoder.collective(&mut begun.content, part);
        })
    }

    /// Says something of a record, a task or a collective; see [`Note`] for what `place` is. `task` is given exactly for
    /// the sections that tasks have of their own. Notes of one section of one task come in the order of their
    /// places; whether before or after the records does not matter.
    ///
    /// Roots and blocks are found out by the writer: only where a collective moves nothing one may have to be said, before its
    /// last part is written.
    pub fn note(
        &mut self,
        task: Option<Rank>,
        place: u64,
        note: &Note<'_>,
    ) -> Result<(), ContainerWriteError> {
        if task.is_some() == note.section().of_trace() {
            return Err(ContainerWriteError::Note { section: note.section().name(), task });
        }
        if let Some(task) = task {
            self.known(task)?;
        }
        match *note {
            Note::Root(root) => {
                self.header
                    .tasks
                    .checked_sub(root.0 + 1)
                    .ok_or(WriteError::Rank { task: root.0, tasks: self.header.tasks })?;
                self.facts.told(place, root);
                Ok(())
            }
            _ => self.put_note(task, place, note),
        }
    }

    /// Writes the notes of `task` that were collected apart. They stand for all that [`Writer::note`] would be given of the sections in question.
    pub fn notes(
        &mut self,
        task: Rank,
        pieces: impl IntoIterator<Item = (Section, Vec<u8>)>,
    ) -> Result<(), ContainerWriteError> {
        self.known(task)?;
        pieces.into_iter().try_for_each(|(section, piece)| self.section(section.name(), Some(task), &piece))
    }

    /// Writes what is known of a collective.
    fn facts_known(&mut self, id: u64, known: &Known) -> Result<(), ContainerWriteError> {
        if let Some(root) = known.root {
            self.put_note(None, id, &Note::Root(root))?;
        }
        for (first, bytes) in (0..).step_by(Note::MOST_BLOCKS).zip(known.blocks.chunks(Note::MOST_BLOCKS)) {
            self.put_note(None, id, &Note::Blocks { first, bytes })?;
        }
        Ok(())
    }

    fn put_note(
        &mut self,
        task: Option<Rank>,
        place: u64,
        note: &Note<'_>,
    ) -> Result<(), ContainerWriteError> {
        let full = (BUFFERED / 4 / self.notes.len().max(1)).clamp(SMALL / 4, FULL);
        let key = (note.section(), task.map_or(0, |task| task.0));
        let piece = self.notes.entry(key).or_default();
        piece.put(place, note);
        if piece.bytes().len() < full {
            return Ok(());
        }
        let mut piece = std::mem::take(piece);
        self.section(key.0.name(), task, piece.bytes())?;
        piece.clear();
        self.notes.insert(key, piece);
        Ok(())
    }

    fn end_notes(&mut self) -> Result<(), ContainerWriteError> {
        for (id, root) in self.facts.rest() {
            self.put_note(None, id, &Note::Root(root))?;
        }
        let mut begun: Vec<_> = self.notes.drain().filter(|(_, piece)| !piece.bytes().is_empty()).collect();
        begun.sort_unstable_by_key(|&(key, _)| key);
        for ((section, task), piece) in begun {
            let task = (!section.of_trace()).then_some(Rank(task));
            self.section(section.name(), task, piece.bytes())?;
        }
        Ok(())
    }

    /// Writes a piece of the extension section `name`, of one task or of the trace; readers that do not know it pass it
    /// by. Pieces come back in the order in which they are given. Sections of notes are written by
    /// [`Writer::note`]; whoever copies one as it is need not understand it.
    pub fn section(
        &mut self,
        name: &str,
        task: Option<Rank>,
        piece: &[u8],
    ) -> Result<(), ContainerWriteError> {
        fits("a piece of a section", piece.len())?;
        fits("the name of a section", name.len())?;
        let spot = self.block(Kind::Section, task.map_or(0, |task| task.0), 1, piece)?;
        let task = task.map_or(0, |task| u64::from(task.0) + 1);
        if !self.index.sections.contains_key(name) {
            self.index.sections.insert(name.to_owned(), Default::default());
        }
        if let Some(section) = self.index.sections.get_mut(name) {
            section.tasks.entry(task).or_default().push(spot);
        }
        Ok(())
    }

    /// Makes readers that do not know the section `name`, of which there are pieces, refuse the file: passing it by would
    /// make them misread the trace.
    pub fn require_section(&mut self, name: &str) {
        if let Some(section) = self.index.sections.get_mut(name) {
            section.required = true;
        }
    }

    /// The roots will be copied from elsewhere: the writer is not to look for them.
    pub(super) fn leave_roots(&mut self) {
        self.facts.leave_roots();
    }

    /// Writes what is begun, the index and the footer, compares the counts with the header's, and gives the output back.
    pub fn finish(mut self) -> Result<W, ContainerWriteError> {
        self.end_communicators()?;
        let mut places: Vec<usize> = (0..self.begun.len()).collect();
        places.sort_unstable_by_key(|&place| self.begun[place].0);
        for place in places {
            if self.begun[place].1.items > 0 {
                self.end_records(place)?;
            }
        }
        self.end_order()?;
        self.end_notes()?;
        if self.proving.is_proven() {
            self.section(proof::SECTION, None, &self.record_blocks.to_bytes())?;
        }
        let content = self.index.to_bytes();
        let spot = self.block(Kind::Index, 0, 1, content.bytes())?;
        let footer = Footer { offset: spot.offset, length: spot.length, minor: MINOR, required: 0 };
        self.out.write_all(&footer.to_bytes())?;
        self.out.flush()?;
        for (kind, promised, written) in [
            ("point-to-point lines", self.header.messages, self.messages),
            ("communicators", self.header.communicators, self.communicators_given),
            ("collectives", self.header.collectives, self.collectives_given),
            ("lines of collectives", self.header.local_collectives, self.local_collectives),
        ] {
            if promised != written {
                return Err(WriteError::Count { kind, promised, written }.into());
            }
        }
        Ok(self.out)
    }

    /// Adds a record to the begun block of `task`.
    #[inline]
    fn record(
        &mut self,
        task: Rank,
        add: impl FnOnce(&mut Begun, &mut Proving),
    ) -> Result<(), ContainerWriteError> {
        let place = match self.places.get(task.0.into()) {
            Some(place) => place as usize,
            None => self.place_for(task),
        };
        let begun = &mut self.begun[place].1;
        add(begun, &mut self.proving);
        begun.items += 1;
        if begun.content.bytes().len() >= self.full {
            self.end_records(place)?;
        }
        if self.settings.keep_order {
            self.runs.put(&mut self.order.content, task.0);
            self.order.items += 1;
            if self.order.content.bytes().len() >= FULL || self.order.items == u32::MAX {
                self.end_order()?;
            }
        }
        Ok(())
    }

    /// The place of a task that has had no records yet.
    #[cold]
    fn place_for(&mut self, task: Rank) -> usize {
        let place = self.begun.len();
        self.places.insert(task.0.into(), place as u32);
        self.begun.push((task, Begun::default()));
        self.full = (BUFFERED / self.begun.len()).clamp(SMALL, FULL);
        place
    }

    /// Writes the begun block of the task at `place`; its buffer is used again.
    #[cold]
    fn end_records(&mut self, place: usize) -> Result<(), ContainerWriteError> {
        let (Rank(task), begun) = &mut self.begun[place];
        let (task, mut begun) = (*task, std::mem::take(begun));
        begun.encoder.end(&mut begun.content);
        let (spot, crc) =
            self.block_with_checksum(Kind::Records, task, begun.items, begun.content.bytes())?;
        self.record_blocks.add(task, begun.items, crc);
        self.index.tasks.entry(task).or_default().push_records(spot, &begun.told);
        begun.content.clear();
        let Begun { content, last, .. } = begun;
        self.begun[place].1 = Begun { content, last, ..Begun::default() };
        Ok(())
    }

    fn end_communicators(&mut self) -> Result<(), ContainerWriteError> {
        let begun = std::mem::take(&mut self.communicators);
        if begun.items > 0 {
            let spot = self.block(Kind::Communicators, 0, begun.items, begun.content.bytes())?;
            self.index.communicators.push(spot);
        }
        Ok(())
    }

    fn end_order(&mut self) -> Result<(), ContainerWriteError> {
        let mut begun = std::mem::take(&mut self.order);
        std::mem::take(&mut self.runs).end(&mut begun.content);
        if begun.items > 0 {
            let spot = self.block(Kind::Order, 0, begun.items, begun.content.bytes())?;
            self.index.order.push(spot);
        }
        Ok(())
    }

    fn block(&mut self, kind: Kind, task: u32, items: u32, raw: &[u8]) -> Result<Spot, ContainerWriteError> {
        self.block_with_checksum(kind, task, items, raw).map(|(spot, _)| spot)
    }

    fn block_with_checksum(
        &mut self,
        kind: Kind,
        task: u32,
        items: u32,
        raw: &[u8],
    ) -> Result<(Spot, u32), ContainerWriteError> {
        // A longer block (one communicator of very many runs) cannot be compressed.
        let compress = self.settings.compress && raw.len() <= MOST_RAW;
        let (bytes, crc) = Block { kind, task, items, raw }.to_bytes(compress)?;
        debug_assert!(bytes.len() >= FRAME);
        self.out.write_all(&bytes)?;
        let spot = Spot { offset: self.offset, length: bytes.len() as u64, items };
        self.offset += spot.length;
        Ok((spot, crc))
    }

    #[inline]
    fn known(&self, task: Rank) -> Result<(), WriteError> {
        if task.0 >= self.header.tasks {
            return Err(WriteError::Rank { task: task.0, tasks: self.header.tasks });
        }
        Ok(())
    }
}

fn fits(what: &'static str, bytes: usize) -> Result<(), ContainerWriteError> {
    if bytes > MOST_RAW {
        return Err(ContainerWriteError::TooLarge { what, bytes, most: MOST_RAW });
    }
    Ok(())
}

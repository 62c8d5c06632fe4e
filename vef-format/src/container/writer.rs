//! Writes a container: an incomplete block for each task, then the index.

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

/// Bytes of a block of records; fewer if the incomplete blocks of all tasks would exceed [`BUFFERED`].
const FULL: usize = 64 << 10;
/// Minimum of that.
const SMALL: usize = 1 << 10;

/// Settings of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Compress blocks with zstd.
    pub compress: bool,
    /// Keep the order of records of different tasks (about two bytes a record, less where it is regular).
    pub keep_order: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { compress: false, keep_order: true }
    }
}

/// Writes a container. The records of each task must come in its program order.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    offset: u64,
    settings: Settings,
    header: Header,
    index: Listings,
    /// The incomplete block of each task that has records, and its index by task.
    begun: Vec<(Rank, Begun)>,
    places: IdTable,
    /// Size at which a block of records is complete.
    full: usize,
    communicators: Begun,
    order: Begun,
    runs: Runs,
    /// Incomplete pieces of notes; task 0 for those of the trace.
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

/// An incomplete block.
#[derive(Debug)]
struct Begun {
    content: Packed,
    items: u32,
    encoder: Encoder,
    /// Summary of a block of records.
    summary: Content,
    /// The task's last line.
    last: Option<u64>,
}

impl Default for Begun {
    fn default() -> Self {
        Self {
            content: Packed::default(),
            items: 0,
            encoder: Encoder::default(),
            summary: Content::NONE,
            last: None,
        }
    }
}

impl<W: Write> Writer<W> {
    /// Begins a container; [`Writer::finish`] compares the counts of `header` with what was written.
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

    /// Writes the communicator `id`; `members` are world ranks in communicator-rank order.
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
            begun.summary.message(message.id.0, message.time.0);
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
            begun.summary.collective(part.id.0, part.time.0);
            begun.encoder.collective(&mut begun.content, part);
        })
    }

    /// Adds a note; [`Note`] explains `place`. `task` must be given exactly for the sections of tasks. Notes of one section of
    /// one task must have ascending places; they may come before or after the records.
    ///
    /// The writer finds roots and blocks itself: only the root of a collective that moves no data may have to be given, before
    /// its last part.
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
                self.facts.set_root(place, root);
                Ok(())
            }
            _ => self.put_note(task, place, note),
        }
    }

    /// Writes the notes of `task` that were made apart. They replace all calls of [`Writer::note`] for their sections.
    pub fn notes(
        &mut self,
        task: Rank,
        pieces: impl IntoIterator<Item = (Section, Vec<u8>)>,
    ) -> Result<(), ContainerWriteError> {
        self.known(task)?;
        pieces.into_iter().try_for_each(|(section, piece)| self.section(section.name(), Some(task), &piece))
    }

    /// Writes the facts on a collective.
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

    /// Writes a piece of the extension section `name`, of one task or of the trace, which readers that do not know it skip.
    /// Pieces are read in the order in which they are given. Sections of notes are written by [`Writer::note`]; copying one
    /// does not require understanding it.
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

    /// Makes readers that do not know the section `name` refuse the file, because the trace cannot be read correctly without
    /// it. The section must have pieces.
    pub fn require_section(&mut self, name: &str) {
        if let Some(section) = self.index.sections.get_mut(name) {
            section.required = true;
        }
    }

    /// Do not look for roots: they are copied.
    pub(super) fn leave_roots(&mut self) {
        self.facts.leave_roots();
    }

    /// Writes incomplete blocks, index and footer, compares the counts with the header's, and returns the output.
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

    /// Adds a record to the incomplete block of `task`.
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

    /// The index for a task without records so far.
    #[cold]
    fn place_for(&mut self, task: Rank) -> usize {
        let place = self.begun.len();
        self.places.insert(task.0.into(), place as u32);
        self.begun.push((task, Begun::default()));
        self.full = (BUFFERED / self.begun.len()).clamp(SMALL, FULL);
        place
    }

    /// Writes the incomplete block of the task at `place` and reuses its buffer.
    #[cold]
    fn end_records(&mut self, place: usize) -> Result<(), ContainerWriteError> {
        let (Rank(task), begun) = &mut self.begun[place];
        let (task, mut begun) = (*task, std::mem::take(begun));
        begun.encoder.end(&mut begun.content);
        let (spot, crc) =
            self.block_with_checksum(Kind::Records, task, begun.items, begun.content.bytes())?;
        self.record_blocks.add(task, begun.items, crc);
        self.index.tasks.entry(task).or_default().push_records(spot, &begun.summary);
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
        // A longer block (a communicator of very many runs) cannot be compressed.
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

//! Writes a container: an incomplete block for each task, then the index.

use super::block::{Block, Footer, Kind, MAGIC, MAGIC_END, MINOR, MOST_RAW, START, VERSION};
use super::code::{Packed, Runs};
use super::facts::{Complete, Facts};
use super::index::{Content, Listings, Spot, about_to_bytes};
use super::notes::{Note, Piece};
use super::proof::{self, Proving};
use super::record::Encoder;
use super::section::Section;
use super::{About, BUFFERED};
use crate::id_set::IdSet;
use crate::id_table::IdTable;
use crate::ids::{CommId, Rank};
use crate::prefetch::prefetch;
use crate::raw::Raw;
use crate::record::{Counts, Header, Line, LocalCollective, Message, WriteError};
use std::collections::HashMap;
use std::io::Write;
use std::slice::from_ref;

/// Bytes of a block, with or without compression; fewer if the incomplete blocks of all tasks would exceed [`BUFFERED`].
const FULL: [usize; 2] = [(16 << 10) - SPARE, (64 << 10) - SPARE];
/// Room for the last item, so that the buffer of a block is a power of two.
const SPARE: usize = 512;
/// Minimum bytes of the buffer of a block of records.
const SMALL: usize = 2 << 10;

/// Blocks are written after each so many records, so that their order does not depend on the division into batches.
const STEP: u64 = 1 << 16;
/// Bytes written to the output at a time.
const OUTPUT: usize = 256 << 10;
/// How many records ahead a record is prefetched.
const AHEAD: usize = 8;
/// How many tasks ahead the end of a block is prefetched.
const TASKS_AHEAD: usize = 3;

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

/// Writes a container. The records of each task must come in its program order, and [`Settings::keep_order`] keeps the order
/// of those of different tasks.
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
    /// The blocks of records that have ended since the last step, and buffers to be reused.
    ended: Vec<(Rank, Begun)>,
    spare: Vec<Packed>,
    /// Size at which a block of records is complete, and any other.
    full: usize,
    most: usize,
    communicators: Begun,
    order: Begun,
    runs: Runs,
    batch: Batch,
    /// Blocks that are not yet in the output.
    encoded: Vec<u8>,
    /// Incomplete pieces of notes; task 0 for those of the trace.
    notes: HashMap<(Section, u32), Piece>,
    facts: Facts,
    proving: Proving,
    record_blocks: proof::Blocks,
    written: Counts,
    collectives: IdSet,
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

/// Sorts records by task, stably.
#[derive(Debug, Default)]
struct Batch {
    /// The place of each record's task.
    places: Vec<u32>,
    /// Numbers of the records, by place.
    sorted: Vec<u32>,
    /// By place: the index in `sorted` behind its last record.
    ends: Vec<u32>,
}

impl Batch {
    fn sort(&mut self, tasks: usize, numbers: &[u32]) {
        let Self { places, sorted, ends } = self;
        ends.clear();
        ends.resize(tasks, 0);
        places.iter().for_each(|&place| ends[place as usize] += 1);
        let mut sum = 0;
        ends.iter_mut().for_each(|end| sum += std::mem::replace(end, sum));
        sorted.resize(places.len(), 0);
        for (&number, &place) in numbers.iter().zip(&*places) {
            let end = &mut ends[place as usize];
            sorted[*end as usize] = number;
            *end += 1;
        }
    }
}

impl<W: Write> Writer<W> {
    /// Begins a container; [`Writer::finish`] compares the counts of `header` with what was written.
    pub fn new(out: W, header: &Header, about: &About, settings: Settings) -> Result<Self, WriteError> {
        let mut writer = Self {
            out,
            offset: START as u64,
            settings,
            header: *header,
            index: Listings::default(),
            begun: Vec::new(),
            places: IdTable::default(),
            ended: Vec::new(),
            spare: Vec::new(),
            full: FULL[usize::from(settings.compress)],
            most: FULL[usize::from(settings.compress)],
            communicators: Begun::default(),
            order: Begun::default(),
            runs: Runs::default(),
            batch: Batch::default(),
            encoded: Vec::new(),
            notes: HashMap::new(),
            facts: Facts::new(&about.op_codes),
            proving: Proving::new(),
            record_blocks: proof::Blocks::default(),
            written: Counts::default(),
            collectives: IdSet::default(),
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
    pub fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WriteError> {
        if members.is_empty() {
            return Err(WriteError::NoMembers(id.0));
        }
        for &member in members {
            self.known(member)?;
        }
        self.written.communicators += 1;
        self.facts.communicator(id, members);
        let begun = &mut self.communicators;
        begun.items += 1;
        begun.content.put(&[id.0.into(), members.len() as u64]);
        let mut runs = Runs::default();
        for &member in members {
            runs.put(&mut begun.content, member.0);
        }
        runs.end(&mut begun.content);
        if begun.content.len() >= self.most { self.end_communicators() } else { Ok(()) }
    }

    /// Writes a message or a local mark.
    pub fn message(&mut self, message: &Message) -> Result<(), WriteError> {
        self.record(message.src, &Raw::of_message(message))
    }

    /// Writes one task's part of a collective operation.
    pub fn collective(&mut self, part: &LocalCollective) -> Result<(), WriteError> {
        self.record(part.task, &Raw::of_collective(part))
    }

    /// Writes a line.
    #[inline]
    pub fn line(&mut self, line: &Line<'_>) -> Result<(), WriteError> {
        match line {
            Line::Communicator { id, members } => self.communicator(*id, members),
            Line::Message(message) => self.message(message),
            Line::Collective(part) => self.collective(part),
        }
    }

    /// Writes the records that `record` returns, each with its task, for the numbers in `order`. It encodes them task by task,
    /// so a call with many records of each is quicker than many calls.
    pub fn records<'r>(
        &mut self,
        mut order: &[u32],
        record: impl Fn(u32) -> (Rank, &'r Raw),
    ) -> Result<(), WriteError> {
        let mut batch = std::mem::take(&mut self.batch);
        while !order.is_empty() {
            let room = STEP - self.written_records() % STEP;
            let (now, later) = order.split_at(order.len().min(room as usize));
            order = later;
            batch.places.clear();
            let mut ahead = now.get(AHEAD..).unwrap_or_default().iter();
            for &number in now {
                ahead.next().inspect(|&&number| prefetch(from_ref(record(number).1), 0));
                let (task, raw) = record(number);
                batch.places.push(self.enter(task, raw)? as u32);
                self.put_order(task);
            }
            batch.sort(self.begun.len(), now);
            let mut begin = 0;
            for (place, &end) in batch.ends.iter().enumerate() {
                prefetch(&self.begun, place + 2 * TASKS_AHEAD);
                self.begun.get(place + TASKS_AHEAD).inspect(|(_, begun)| begun.content.prefetch());
                let own = batch.sorted[begin..end as usize].iter();
                self.encode(place, own.map(|&number| record(number).1));
                begin = end as usize;
            }
            self.end_step()?;
        }
        self.batch = batch;
        Ok(())
    }

    #[inline(never)]
    fn record(&mut self, task: Rank, raw: &Raw) -> Result<(), WriteError> {
        let place = self.enter(task, raw)?;
        self.put_order(task);
        self.encode(place, std::iter::once(raw));
        self.end_step()
    }

    /// Adds a note; [`Note`] explains `place`. `task` must be given exactly for the sections of tasks. Notes of one section of
    /// one task must have ascending places; they may come before or after the records.
    ///
    /// The writer finds roots and blocks itself: only the root of a collective that moves no data may have to be given, before
    /// its last part.
    pub fn note(&mut self, task: Option<Rank>, place: u64, note: &Note<'_>) -> Result<(), WriteError> {
        if task.is_some() == note.section().of_trace() {
            return Err(WriteError::Note { section: note.section().name(), task });
        }
        if let Some(task) = task {
            self.known(task)?;
        }
        match *note {
            Note::Root(root) => {
                self.known(root)?;
                self.facts.set_root(place, root);
                Ok(())
            }
            _ => self.put_note(task, place, note),
        }
    }

    /// Writes the facts on a collective.
    fn put_facts(&mut self, id: u64, complete: &Complete) -> Result<(), WriteError> {
        if let Some(root) = complete.root {
            self.put_note(None, id, &Note::Root(root))?;
        }
        for (first, bytes) in (0..).step_by(Note::MOST_BLOCKS).zip(complete.blocks.chunks(Note::MOST_BLOCKS))
        {
            self.put_note(None, id, &Note::Blocks { first, bytes })?;
        }
        Ok(())
    }

    fn put_note(&mut self, task: Option<Rank>, place: u64, note: &Note<'_>) -> Result<(), WriteError> {
        let full = (BUFFERED / 4 / self.notes.len().max(1)).clamp(SMALL / 4, self.most);
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

    fn end_notes(&mut self) -> Result<(), WriteError> {
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
    /// Pieces are read in the order in which they are given. Sections of notes are written by [`Writer::note`], unless their
    /// pieces were made apart ([`TaskNotes`](super::TaskNotes)); copying one does not require understanding it.
    pub fn section(&mut self, name: &str, task: Option<Rank>, piece: &[u8]) -> Result<(), WriteError> {
        fits("a piece of a section", piece.len())?;
        fits("the name of a section", name.len())?;
        let spot = self.block(Kind::Section, task.map_or(0, |task| task.0), 1, piece)?;
        let task = task.map_or(0, |task| u64::from(task.0) + 1);
        let section = self.index.sections.entry(name.to_owned()).or_default();
        section.entry(task).or_default().push(spot);
        Ok(())
    }

    /// Do not look for roots: they are copied.
    pub(crate) fn leave_roots(&mut self) {
        self.facts.leave_roots();
    }

    /// Writes incomplete blocks, index and footer, compares the counts with the header's, and returns the output.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.end_communicators()?;
        for place in 0..self.begun.len() {
            if self.begun[place].1.items > 0 {
                self.end_records(place);
            }
        }
        self.write_ended()?;
        self.end_order()?;
        self.end_notes()?;
        if self.proving.is_proven() {
            self.section(proof::SECTION, None, &self.record_blocks.to_bytes())?;
        }
        let content = self.index.to_bytes();
        let spot = self.block(Kind::Index, 0, 1, content.bytes())?;
        let footer = Footer { offset: spot.offset, length: spot.length, minor: MINOR, required: 0 };
        self.encoded.extend(footer.to_bytes());
        self.out.write_all(&self.encoded)?;
        self.out.flush()?;
        match self.header.wrong_counts(&self.written).next() {
            Some(wrong) => Err(WriteError::Count(wrong)),
            None => Ok(self.out),
        }
    }

    /// Checks and counts the next record of the file; returns the place of its task.
    #[inline]
    fn enter(&mut self, task: Rank, raw: &Raw) -> Result<usize, WriteError> {
        self.known(task)?;
        if raw.is_collective() {
            self.written.local_collectives += 1;
            self.written.collectives += u64::from(self.collectives.insert(raw.id));
            if let Some(complete) = self.facts.see(task, raw) {
                self.put_facts(raw.id, &complete)?;
            }
        } else {
            self.known(Rank(raw.to))?;
            self.written.messages += 1;
            self.proving.id(raw.id);
        }
        Ok(match self.places.get(task.0.into()) {
            Some(place) => place as usize,
            None => self.place_for(task),
        })
    }

    /// Adds records to the incomplete block of the task at `place`.
    #[inline(always)]
    fn encode<'r>(&mut self, place: usize, records: impl Iterator<Item = &'r Raw>) {
        let (task, mut begun) = (self.begun[place].0, &mut self.begun[place].1);
        for raw in records {
            self.proving.record(task, raw, &mut begun.last);
            begun.summary.add(raw);
            begun.encoder.record(&mut begun.content, task, raw);
            begun.items += 1;
            if begun.content.len() >= self.full {
                self.end_records(place);
                begun = &mut self.begun[place].1;
            }
        }
    }

    /// Keeps the order: the next record is of `task`.
    #[inline(always)]
    fn put_order(&mut self, task: Rank) {
        if self.settings.keep_order {
            self.runs.put(&mut self.order.content, task.0);
            self.order.items += 1;
        }
    }

    fn written_records(&self) -> u64 {
        self.written.messages + self.written.local_collectives
    }

    /// Writes complete blocks if a step ends here.
    #[inline]
    fn end_step(&mut self) -> Result<(), WriteError> {
        match self.written_records() % STEP {
            0 => self.write_ended(),
            _ => Ok(()),
        }
    }

    /// The index for a task without records so far.
    #[cold]
    fn place_for(&mut self, task: Rank) -> usize {
        let place = self.begun.len();
        self.places.insert(task.0.into(), place as u32);
        self.begun.push((task, Begun::default()));
        let buffer = (BUFFERED / self.begun.len()).clamp(SMALL, self.most + SPARE);
        self.full = (1 << buffer.ilog2()) - SPARE;
        place
    }

    /// Ends the incomplete block of the task at `place`.
    #[cold]
    fn end_records(&mut self, place: usize) {
        let (task, begun) = &mut self.begun[place];
        begun.encoder.end(&mut begun.content, *task);
        let content = self.spare.pop().unwrap_or_default();
        let next = Begun { content, last: begun.last, ..Begun::default() };
        self.ended.push((*task, std::mem::replace(begun, next)));
    }

    /// Writes the blocks of records that have ended, by task, and reuses their buffers.
    #[cold]
    fn write_ended(&mut self) -> Result<(), WriteError> {
        if self.order.content.len() >= self.most || self.order.items > u32::MAX / 2 {
            self.end_order()?;
        }
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by_key(|&(task, _)| task);
        for (Rank(task), Begun { mut content, items, summary, .. }) in ended.drain(..) {
            let (spot, crc) = self.block_with_checksum(Kind::Records, task, items, content.bytes())?;
            self.record_blocks.add(task, items, crc);
            self.index.tasks.entry(task).or_default().push_records(spot, &summary);
            content.clear();
            self.spare.push(content);
        }
        self.ended = ended;
        Ok(())
    }

    fn end_communicators(&mut self) -> Result<(), WriteError> {
        let begun = std::mem::take(&mut self.communicators);
        if begun.items > 0 {
            let spot = self.block(Kind::Communicators, 0, begun.items, begun.content.bytes())?;
            self.index.communicators.push(spot);
        }
        Ok(())
    }

    fn end_order(&mut self) -> Result<(), WriteError> {
        let mut begun = std::mem::take(&mut self.order);
        std::mem::take(&mut self.runs).end(&mut begun.content);
        if begun.items > 0 {
            let spot = self.block(Kind::Order, 0, begun.items, begun.content.bytes())?;
            self.index.order.push(spot);
        }
        Ok(())
    }

    fn block(&mut self, kind: Kind, task: u32, items: u32, raw: &[u8]) -> Result<Spot, WriteError> {
        self.block_with_checksum(kind, task, items, raw).map(|(spot, _)| spot)
    }

    fn block_with_checksum(
        &mut self,
        kind: Kind,
        task: u32,
        items: u32,
        raw: &[u8],
    ) -> Result<(Spot, u32), WriteError> {
        // A longer block (a communicator of very many runs) cannot be compressed.
        let compress = self.settings.compress && raw.len() <= MOST_RAW;
        let begin = self.encoded.len();
        let crc = Block { kind, task, items, raw }.encode(compress, &mut self.encoded)?;
        let spot = Spot { offset: self.offset, length: (self.encoded.len() - begin) as u64, items };
        if self.encoded.len() >= OUTPUT {
            self.out.write_all(&self.encoded)?;
            self.encoded.clear();
        }
        self.offset += spot.length;
        Ok((spot, crc))
    }

    #[inline]
    fn known(&self, task: Rank) -> Result<(), WriteError> {
        WriteError::unless_task(task, self.header.tasks)
    }
}

fn fits(what: &'static str, bytes: usize) -> Result<(), WriteError> {
    if bytes > MOST_RAW {
        return Err(WriteError::TooLarge { what, bytes, most: MOST_RAW });
    }
    Ok(())
}

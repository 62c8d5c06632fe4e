//! Reads a container: as a whole in the order of the file, or task by task.

use super::block::{Block, FOOTER, FRAME, Footer, Frame, Kind, MAGIC, MAGIC_END, START, VERSION};
use super::code::{Garbled, Runs};
use super::index::{Content, Index, List, Places, Section, Spot, read_about};
use super::input::{Input, Scan};
use super::proof;
use super::record::{Decoder, ROOM};
use super::{About, ContainerError, Problem};
use crate::error::Place;
use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::raw::Raw;
use crate::record::Header;
use crate::text::Line;
use crate::units::Ticks;
use crate::varint::Source;
use std::collections::HashMap;
use std::fs::File;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

/// Maximum number of members of a communicator in a file of fewer bytes.
const MANY_MEMBERS: u64 = 4 << 20;

/// An open container. Several streams, and several threads, can read it at once.
#[derive(Debug)]
pub struct Reader {
    pub(super) input: Input,
    path: PathBuf,
    length: u64,
    minor: u16,
    header: Header,
    about: About,
    pub(super) index: Index,
    /// Offset of the index, where the blocks end.
    pub(super) blocks_end: u64,
    /// Offset of the footer, where the index ends.
    index_end: u64,
}

impl Reader {
    /// Opens the container in the file `path` and scans its index.
    pub fn open(path: &Path) -> Result<Self, ContainerError> {
        let open = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open()
            .map_err(|error| ContainerError { place: Place::file(path), problem: Problem::Io(error) })?;
        Self::new(Input::File(file), length, path)
    }

    /// Opens the container in `bytes`; `path` is used in errors only.
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self, ContainerError> {
        let length = bytes.len() as u64;
        Self::new(Input::Bytes(bytes), length, path)
    }

    fn new(input: Input, length: u64, path: &Path) -> Result<Self, ContainerError> {
        let mut reader = Self {
            input,
            path: path.to_path_buf(),
            length,
            minor: 0,
            header: Header::default(),
            about: About::default(),
            index: Index::default(),
            blocks_end: 0,
            index_end: 0,
        };
        let mut start = [0; START];
        if length < START as u64 {
            return Err(reader.error(0, Problem::NotAContainer));
        }
        reader.read_at(&mut start, 0)?;
        if start[..4] != MAGIC || start[5..] != MAGIC_END {
            return Err(reader.error(0, Problem::NotAContainer));
        }
        if start[4] != VERSION {
            return Err(reader.error(4, Problem::Version(start[4])));
        }
        let Some(end) = length.checked_sub(FOOTER as u64).filter(|&end| end >= START as u64) else {
            return Err(reader.error(length, Problem::Cut));
        };
        let mut footer = [0; FOOTER];
        reader.read_at(&mut footer, end)?;
        let footer = Footer::read(&footer).map_err(|problem| reader.error(end, problem))?;
        let Footer { offset, length, minor, .. } = footer;
        let fits =
            offset >= START as u64 && length >= FRAME as u64 && offset.checked_add(length) == Some(end);
        if !fits {
            let text = "a footer that does not point at an index in front of it".to_owned();
            return Err(reader.error(end, Problem::Inconsistent(text)));
        }
        (reader.minor, reader.blocks_end, reader.index_end) = (minor, offset, end);
        reader.check_index()?;
        let mut scan = Scan::new(&reader.input, offset + FRAME as u64, end);
        reader.index = Index::read(&mut scan, offset).map_err(|problem| reader.error(offset, problem))?;
        if let Some(name) = reader.index.sections.iter().find_map(Section::unknown_but_required) {
            let what = format!("section `{}` (version {VERSION}.{minor})", name.escape_debug());
            return Err(reader.error(offset, Problem::Newer(what)));
        }
        let about = match reader.index.about.blocks {
            1 => reader.next_place(&mut Places::new(reader.index.about))?,
            _ => None,
        };
        let Some(about) = about else {
            let text = "an index without exactly one block about the trace".to_owned();
            return Err(reader.error(offset, Problem::Inconsistent(text)));
        };
        let bytes = reader.content(Kind::About, 0, about)?;
        (reader.header, reader.about) =
            read_about(&bytes).map_err(|garbled| reader.garbled(about.offset, garbled))?;
        reader.check_counts(offset)?;
        Ok(reader)
    }

    /// Checks the index against its frame and its checksum, without keeping it in memory.
    fn check_index(&self) -> Result<(), ContainerError> {
        let (offset, begin) = (self.blocks_end, self.blocks_end + FRAME as u64);
        let mut frame = [0; FRAME];
        self.read_at(&mut frame, offset)?;
        let frame = Frame::read(&frame);
        let crc = self.input.checksum(&frame.bytes, begin, self.index_end);
        let crc = crc.map_err(|error| self.error(offset, Problem::Io(error)))?;
        let checked = frame.check(Kind::Index, 0, 1, self.index_end - begin, crc);
        checked.map_err(|problem| self.error(offset, problem))
    }

    /// Checks the numbers of items in the index against the header.
    fn check_counts(&self, offset: u64) -> Result<(), ContainerError> {
        let Index { about: _, communicators, order, sections: _, tasks } = &self.index;
        let records: u128 = tasks.iter().map(|task| u128::from(task.list.items)).sum();
        let promised = u128::from(self.header.messages) + u128::from(self.header.local_collectives);
        let last = tasks.last().map_or(0, |last| last.task);
        let wrong = if last >= self.header.tasks {
            Some("an index with a task that the header does not have")
        } else if records != promised {
            Some("an index of more or fewer records than the header promises")
        } else if communicators.items != self.header.communicators {
            Some("an index of more or fewer communicators than the header promises")
        } else if order.blocks > 0 && u128::from(order.items) != records {
            Some("an order of more or fewer records than there are")
        } else {
            None
        };
        wrong.map_or(Ok(()), |text| Err(self.error(offset, Problem::Inconsistent(text.to_owned()))))
    }

    /// The trace's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The version of the file's layout, major and minor. Additions of later minor versions than this program's are skipped.
    pub fn version(&self) -> (u8, u16) {
        (VERSION, self.minor)
    }

    /// Operation codes and origin.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Whether the order of different tasks' records was kept; otherwise [`Reader::lines`] reads task by task.
    pub fn keeps_order(&self) -> bool {
        self.index.order.blocks > 0
    }

    /// The tasks that have records, ascending.
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = Rank> {
        self.index.tasks.iter().map(|list| Rank(list.task))
    }

    /// Number of records of `task`.
    pub fn records_of(&self, task: Rank) -> u64 {
        self.list_of(task).items
    }

    fn list_of(&self, task: Rank) -> List {
        self.index.number_of(task.0).map_or(List::default(), |number| self.index.tasks[number].list)
    }

    /// The records of `task` in program order; reads only blocks of this task.
    pub fn task(&self, task: Rank) -> TaskRecords<'_> {
        self.records_from(task, Places::new(self.list_of(task)))
    }

    fn records_from(&self, task: Rank, places: Places) -> TaskRecords<'_> {
        TaskRecords {
            reader: self,
            task,
            places,
            offset: 0,
            block: Vec::new(),
            end: 0,
            at: 0,
            left: 0,
            decoder: Decoder::default(),
            behind: None,
        }
    }

    /// Summaries of the blocks of `task`, in order, without reading the blocks.
    pub fn blocks(&self, task: Rank) -> Blocks<'_> {
        let places = Places::new(self.list_of(task));
        Blocks { reader: self, task, places, records: 0, computing: Ticks(0) }
    }

    /// All lines: communicators first, then records in the order of the text, or task by task.
    pub fn lines(&self) -> Lines<'_> {
        Lines {
            reader: self,
            communicators: self.communicators(),
            order: BlockItems::new(self.index.order),
            runs: Runs::default(),
            tasks: HashMap::new(),
            in_turn: match self.keeps_order() {
                true => Vec::new(),
                false => self.index.tasks.iter().rev().map(|list| list.task).collect(),
            },
        }
    }

    /// The communicators, in their order.
    pub fn communicators(&self) -> Communicators<'_> {
        Communicators { reader: self, blocks: BlockItems::new(self.index.communicators), members: Vec::new() }
    }

    /// Whether readers that do not know the extension section `name` must refuse the container.
    pub fn is_required(&self, name: &str) -> bool {
        self.index.section(name).is_some_and(|section| section.required)
    }

    /// Names of the extension sections that a copy of the trace keeps. The proof is not among them: it is valid for this file only.
    pub fn section_names(&self) -> impl Iterator<Item = &str> {
        self.index.sections.iter().map(|section| section.name.as_str()).filter(|&name| name != proof::SECTION)
    }

    /// The streams of the extension section `name`, with their tasks and numbers of pieces. Empty if there is no such section.
    pub fn section(&self, name: &str) -> Result<Vec<SectionStream>, ContainerError> {
        let Some(section) = self.index.section(name) else { return Ok(Vec::new()) };
        let lists = section.lists(&self.input, self.index_end);
        let lists = lists.map_err(|problem| self.error(self.blocks_end, problem))?;
        let stream = |(task, list): (u64, List)| SectionStream {
            task: task.checked_sub(1).map(|task| Rank(task as u32)),
            list,
        };
        Ok(lists.into_iter().map(stream).collect())
    }

    /// Reads all extension sections to verify their checksums, not their meaning.
    ///
    /// # Errors
    /// The first damaged block.
    pub fn check_sections(&self) -> Result<(), ContainerError> {
        for name in self.section_names() {
            for stream in self.section(name)? {
                let mut pieces = self.pieces(&stream);
                while pieces.next(self)?.is_some() {}
            }
        }
        Ok(())
    }

    /// Whether the file has a valid proof of these statements: the ids of lines are 0, 1, 2 and so on; a message is marked as
    /// awaited exactly if one record waits for it, once, in the receiving task; a record that waits for a send or mark waits for
    /// the last one of its task. Reads the checksums of all blocks of records.
    pub fn is_proven(&self) -> Result<bool, ContainerError> {
        let Some(stream) = self.section(proof::SECTION)?.into_iter().next() else { return Ok(false) };
        let Some(said) = self.pieces(&stream).next(self)? else { return Ok(false) };
        let mut blocks = proof::Blocks::default();
        for task in &self.index.tasks {
            let mut places = Places::new(task.list);
            while let Some(spot) = self.next_place(&mut places)? {
                let mut frame = [0; FRAME];
                self.read_at(&mut frame, spot.offset)?;
                blocks.add(task.task, spot.items, Frame::read(&frame).crc);
            }
        }
        Ok(said == blocks.to_bytes())
    }

    /// The pieces of a stream of an extension section, in the order in which they were written.
    pub fn pieces(&self, stream: &SectionStream) -> Pieces {
        Pieces { task: stream.task.map_or(0, |task| task.0), places: Places::new(stream.list) }
    }

    /// The place of a list's next block.
    pub(super) fn next_place(&self, places: &mut Places) -> Result<Option<Spot>, ContainerError> {
        places.next(&self.input, self.blocks_end).map_err(|problem| self.error(self.blocks_end, problem))
    }

    fn next_records_place(&self, places: &mut Places) -> Result<Option<(Spot, Content)>, ContainerError> {
        let next = places.next_records(&self.input, self.blocks_end);
        next.map_err(|problem| self.error(self.blocks_end, problem))
    }

    /// The content of the block at `spot`; the index scan has checked that it is within the file.
    pub(super) fn content(&self, kind: Kind, task: u32, spot: Spot) -> Result<Vec<u8>, ContainerError> {
        let length = usize::try_from(spot.length).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        self.read_at(&mut bytes, spot.offset)?;
        Block::open(kind, task, spot.items, bytes).map_err(|problem| self.error(spot.offset, problem))
    }

    pub(super) fn read_at(&self, into: &mut [u8], offset: u64) -> Result<(), ContainerError> {
        self.input.read_at(into, offset).map_err(|error| self.error(offset, Problem::Io(error)))
    }

    #[cold]
    pub(super) fn error(&self, offset: u64, problem: Problem) -> ContainerError {
        ContainerError { place: Place::offset(&self.path, offset), problem }
    }

    #[cold]
    pub(super) fn garbled(&self, offset: u64, garbled: Garbled) -> ContainerError {
        self.error(offset, garbled.into())
    }
}

/// The pieces of an extension section that belong to one task, or to the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionStream {
    /// The task; `None`: the trace.
    pub task: Option<Rank>,
    pub(super) list: List,
}

impl SectionStream {
    /// Number of pieces.
    pub fn pieces(&self) -> u64 {
        self.list.blocks.into()
    }
}

/// Reads the pieces of a stream of an extension section.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    task: u32,
    places: Places,
}

impl Pieces {
    /// The next piece in `reader`; `None` at the end.
    pub fn next(&mut self, reader: &Reader) -> Result<Option<Vec<u8>>, ContainerError> {
        match reader.next_place(&mut self.places)? {
            Some(spot) => reader.content(Kind::Section, self.task, spot).map(Some),
            None => Ok(None),
        }
    }
}

/// Takes records ([`TaskRecords::each_raw`]): a closure, or a type whose method is inlined wherever it is called.
pub trait TakeRaw {
    /// Takes the next record.
    fn take(&mut self, raw: &Raw);
}

impl<F: FnMut(&Raw)> TakeRaw for F {
    #[inline(always)]
    fn take(&mut self, raw: &Raw) {
        self(raw);
    }
}

/// The records of one task, in program order.
#[derive(Debug)]
pub struct TaskRecords<'a> {
    reader: &'a Reader,
    task: Rank,
    places: Places,
    offset: u64,
    /// The current block, and padding behind it.
    block: Vec<u8>,
    end: usize,
    at: usize,
    left: u32,
    decoder: Decoder,
    /// The message that was decoded together with the last mark.
    behind: Option<Raw>,
}

impl TaskRecords<'_> {
    /// The next record (never a communicator), or `None` at the end.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "as all readers of the crate")]
    pub fn next(&mut self) -> Result<Option<Line<'static>>, ContainerError> {
        let task = self.task;
        Ok(self.next_raw()?.map(|raw| raw.line(task)))
    }

    /// Like [`TaskRecords::next`], as plain numbers.
    #[inline]
    pub fn next_raw(&mut self) -> Result<Option<Raw>, ContainerError> {
        if !self.fetch()? {
            return Ok(None);
        }
        self.left -= 1;
        if let Some(raw) = self.behind.take() {
            return Ok(Some(raw));
        }
        match self.decoder.read(&self.block, &mut self.at, self.end, (self.task, self.reader.header.tasks)) {
            Ok((None, raw)) => Ok(Some(raw)),
            Ok((Some(mark), raw)) if self.left > 0 => {
                self.behind = Some(raw);
                Ok(Some(mark.raw(self.task)))
            }
            Ok(_) => Err(self.reader.garbled(self.offset, Garbled::Length)),
            Err(garbled) => Err(self.reader.garbled(self.offset, garbled)),
        }
    }

    /// Passes all remaining records to `sink`; faster than [`TaskRecords::next_raw`].
    #[inline]
    pub fn each_raw(&mut self, sink: &mut impl TakeRaw) -> Result<(), ContainerError> {
        while self.fetch()? {
            if let Some(raw) = self.behind.take() {
                sink.take(&raw);
                self.left -= 1;
            }
            let (of, mut at, mut decoder) = ((self.task, self.reader.header.tasks), self.at, self.decoder);
            while self.left > 0 {
                match decoder.read(&self.block, &mut at, self.end, of) {
                    Ok((None, raw)) => {
                        sink.take(&raw);
                        self.left -= 1;
                    }
                    Ok((Some(mark), raw)) if self.left > 1 => {
                        sink.take(&mark.raw(self.task));
                        sink.take(&raw);
                        self.left -= 2;
                    }
                    Ok(_) => return Err(self.reader.garbled(self.offset, Garbled::Length)),
                    Err(garbled) => return Err(self.reader.garbled(self.offset, garbled)),
                }
            }
            self.at = at;
        }
        Ok(())
    }

    /// Advances to the next block if necessary; `false` at the end.
    #[inline]
    fn fetch(&mut self) -> Result<bool, ContainerError> {
        while self.left == 0 {
            if self.at != self.end {
                return Err(self.reader.garbled(self.offset, Garbled::Length));
            }
            let Some(spot) = self.reader.next_place(&mut self.places)? else { return Ok(false) };
            self.block = self.reader.content(Kind::Records, self.task.0, spot)?;
            self.end = self.block.len();
            self.block.resize(self.end + ROOM, 0);
            (self.offset, self.at, self.left, self.decoder) =
                (spot.offset, 0, spot.items, Decoder::default());
        }
        Ok(true)
    }
}

/// Summary of a block of a task's records, from the index.
#[derive(Clone, Debug)]
pub struct BlockContent {
    /// Indices of its records in their task.
    pub records: Range<u64>,
    /// The task's computing time (sum of the times of its records) before and after the block.
    pub computing: Range<Ticks>,
    /// Least and greatest id of its messages and marks, if it has any.
    pub messages: Option<RangeInclusive<MessageId>>,
    /// Least and greatest id of its collectives, if it has any.
    pub collectives: Option<RangeInclusive<CollectiveId>>,
    /// Positioned at the block.
    places: Places,
}

/// The blocks of one task's records.
#[derive(Debug)]
pub struct Blocks<'a> {
    reader: &'a Reader,
    task: Rank,
    places: Places,
    records: u64,
    computing: Ticks,
}

impl<'a> Blocks<'a> {
    /// The summary of the next block; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "as all readers of the crate")]
    pub fn next(&mut self) -> Result<Option<BlockContent>, ContainerError> {
        let places = self.places;
        let Some((spot, content)) = self.reader.next_records_place(&mut self.places)? else {
            return Ok(None);
        };
        let records = self.records..self.records + u64::from(spot.items);
        let computing = self.computing..Ticks(self.computing.0.saturating_add(content.computing));
        (self.records, self.computing) = (records.end, computing.end);
        let (least, greatest) = content.message_ids;
        let messages = (content.messages > 0).then_some(MessageId(least)..=MessageId(greatest));
        let (least, greatest) = content.collective_ids;
        let any = content.messages < spot.items;
        let collectives = any.then_some(CollectiveId(least)..=CollectiveId(greatest));
        Ok(Some(BlockContent { records, computing, messages, collectives, places }))
    }

    /// The task's records from the beginning of `block` on.
    pub fn records_from(&self, block: &BlockContent) -> TaskRecords<'a> {
        self.reader.records_from(self.task, block.places)
    }
}

/// Reads blocks of one list in order.
#[derive(Debug)]
struct BlockItems {
    places: Places,
    offset: u64,
    block: Vec<u8>,
    at: usize,
    left: u32,
}

impl BlockItems {
    fn new(list: List) -> Self {
        Self { places: Places::new(list), offset: 0, block: Vec::new(), at: 0, left: 0 }
    }

    /// Advances to the next item; `Some(true)` if it is the first of a block, `None` at the end.
    fn advance(&mut self, reader: &Reader, kind: Kind) -> Result<Option<bool>, ContainerError> {
        let mut fresh = false;
        while self.left == 0 {
            if self.at != self.block.len() {
                return Err(reader.garbled(self.offset, Garbled::Length));
            }
            let Some(spot) = reader.next_place(&mut self.places)? else { return Ok(None) };
            self.block = reader.content(kind, 0, spot)?;
            (self.offset, self.at, self.left) = (spot.offset, 0, spot.items);
            fresh = true;
        }
        self.left -= 1;
        Ok(Some(fresh))
    }
}

/// The communicators of a container.
#[derive(Debug)]
pub struct Communicators<'a> {
    reader: &'a Reader,
    blocks: BlockItems,
    members: Vec<Rank>,
}

impl Communicators<'_> {
    /// The next communicator and its members' world ranks, or `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "the members borrow from the reader")]
    pub fn next(&mut self) -> Result<Option<(CommId, &[Rank])>, ContainerError> {
        if self.advance()? { self.read().map(Some) } else { Ok(None) }
    }

    fn advance(&mut self) -> Result<bool, ContainerError> {
        self.blocks.advance(self.reader, Kind::Communicators).map(|there| there.is_some())
    }

    fn read(&mut self) -> Result<(CommId, &[Rank]), ContainerError> {
        match self.read_members() {
            Ok(id) => Ok((id, &self.members)),
            Err(garbled) => Err(self.reader.garbled(self.blocks.offset, garbled)),
        }
    }

    /// Decodes the next communicator of the block.
    fn read_members(&mut self) -> Result<CommId, Garbled> {
        let mut from = Source::new(&self.blocks.block, self.blocks.at);
        let id = u32::try_from(from.get()?).map_err(|_| Garbled::Value("a communicator's id"))?;
        let count = from.get()?;
        let tasks = self.reader.header.tasks;
        // A run of a few bytes may have any number of members; a trace with so many tasks has a larger file.
        if count == 0 || count > u64::from(tasks) || count > self.reader.length.max(MANY_MEMBERS) {
            return Err(Garbled::Value("a communicator's size"));
        }
        self.members.clear();
        let mut runs = Runs::default();
        for _ in 0..count {
            self.members.push(Rank(runs.next(&mut from, tasks)?));
        }
        if !runs.is_over() {
            return Err(Garbled::Length);
        }
        self.blocks.at = from.position();
        Ok(CommId(id))
    }
}

/// All lines of a container.
#[derive(Debug)]
pub struct Lines<'a> {
    reader: &'a Reader,
    communicators: Communicators<'a>,
    order: BlockItems,
    runs: Runs,
    /// The reader of each task; one block of each that has begun.
    tasks: HashMap<u32, TaskRecords<'a>>,
    /// Without order blocks: the remaining tasks, the next one last.
    in_turn: Vec<u32>,
}

impl Lines<'_> {
    /// The next line, or `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, ContainerError> {
        if self.communicators.advance()? {
            return self.communicators.read().map(|(id, members)| Some(Line::Communicator { id, members }));
        }
        if !self.reader.keeps_order() {
            while let Some(&task) = self.in_turn.last() {
                let records = self.tasks.entry(task).or_insert_with(|| self.reader.task(Rank(task)));
                if let Some(line) = records.next()? {
                    return Ok(Some(line));
                }
                self.tasks.remove(&task);
                self.in_turn.pop();
            }
            return Ok(None);
        }
        let Some(fresh) = self.order.advance(self.reader, Kind::Order)? else { return self.end() };
        if fresh {
            self.runs = Runs::default();
        }
        let mut from = Source::new(&self.order.block, self.order.at);
        let task = self.runs.next(&mut from, self.reader.header.tasks);
        self.order.at = from.position();
        let task = task.map_err(|garbled| self.reader.garbled(self.order.offset, garbled))?;
        if self.order.left == 0 && !self.runs.is_over() {
            return Err(self.reader.garbled(self.order.offset, Garbled::Length));
        }
        let records = self.tasks.entry(task).or_insert_with(|| self.reader.task(Rank(task)));
        let line = records.next()?;
        if line.is_none() {
            let text = format!("an order with more records of task {task} than there are");
            return Err(self.reader.error(self.order.offset, Problem::Inconsistent(text)));
        }
        Ok(line)
    }

    /// Checks the end: the order has as many items as there are records and no task too often, so all were read.
    fn end(&mut self) -> Result<Option<Line<'_>>, ContainerError> {
        for records in self.tasks.values_mut() {
            // Detects a block that is longer than its records.
            records.next()?;
        }
        Ok(None)
    }
}

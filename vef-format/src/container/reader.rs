//! Opens a container: its index, its header, and the blocks that the index names.

use super::block::{Block, FOOTER, FRAME, Footer, Frame, Kind, MAGIC, MAGIC_END, START, VERSION};
use super::code::Garbled;
use super::index::{Index, List, Places, Section, Spot, read_about};
use super::input::{Input, Scan};
use super::proof;
use super::{About, ContainerError, Problem};
use crate::error::Place;
use crate::ids::Rank;
use crate::record::Header;
use crate::units::Ticks;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// An open container. Several streams, and several threads, can read it at once.
#[derive(Debug)]
pub struct Reader {
    pub(super) input: Input,
    path: PathBuf,
    /// Bytes of the file.
    pub(super) length: u64,
    minor: u16,
    header: Header,
    about: About,
    pub(super) index: Index,
    /// Offset of the index, where the blocks end.
    pub(super) blocks_end: u64,
    /// Offset of the footer, where the index ends.
    index_end: u64,
    /// For a whole block, whichever stream reads it: streams need one for a moment only, and there may be thousands.
    buffer: Mutex<Vec<u8>>,
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
            buffer: Mutex::default(),
        };
        let mut start = [0; START];
        if length == 0 {
            return Err(ContainerError::file(path, Problem::Empty));
        }
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

    /// A buffer for a block, with anything in it; another one where several threads read at once.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        std::mem::take(&mut self.buffer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a buffer for the next block.
    pub(super) fn keep_buffer(&self, buffer: Vec<u8>) {
        *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = buffer;
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

    /// The sum of the computing times of a task's records; saturates.
    pub fn computing_of(&self, task: Rank) -> Result<Ticks, ContainerError> {
        let (mut places, mut sum) = (Places::new(self.list_of(task)), 0u64);
        let error = |problem| self.error(self.blocks_end, problem);
        while let Some((_, computing)) = places.next_summed(&self.input, self.blocks_end).map_err(error)? {
            sum = sum.saturating_add(computing);
        }
        Ok(Ticks(sum))
    }

    pub(super) fn list_of(&self, task: Rank) -> List {
        self.index.number_of(task.0).map_or(List::default(), |number| self.index.tasks[number].list)
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

    /// Reads all extension sections, the proof included, to verify their checksums, not their meaning.
    ///
    /// # Errors
    /// The first damaged block.
    pub fn check_sections(&self) -> Result<(), ContainerError> {
        for section in &self.index.sections {
            for stream in self.section(&section.name)? {
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

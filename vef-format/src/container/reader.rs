//! Reads a container: as a whole in the order of the file, or task by task.

use super::block::{Block, FOOTER, FRAME, Kind, MAGIC, MAGIC_END, START, VERSION, read_footer};
use super::code::{Before, Garbled, Runs};
use super::index::{Index, Spot, read_about};
use super::{About, ContainerError, Problem};
use crate::capture::varint::Source;
use crate::error::Place;
use crate::ids::{CommId, Rank};
use crate::record::Header;
use crate::text::Line;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Members that a communicator may have in a file of fewer bytes.
const MANY_MEMBERS: u64 = 4 << 20;

/// An open container. Streams of several tasks can be read from it at once, and by several threads.
#[derive(Debug)]
pub struct Reader {
    input: Input,
    path: PathBuf,
    length: u64,
    header: Header,
    about: About,
    pub(super) index: Index,
}

#[derive(Debug)]
enum Input {
    File(File),
    Bytes(Vec<u8>),
}

impl Reader {
    /// Opens the container in the file `path` and reads its index.
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

    /// Reads the container that is `bytes`; errors call it `path`.
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self, ContainerError> {
        let length = bytes.len() as u64;
        Self::new(Input::Bytes(bytes), length, path)
    }

    fn new(input: Input, length: u64, path: &Path) -> Result<Self, ContainerError> {
        let unknown = Header {
            version: crate::record::Version::V3,
            tasks: 0,
            messages: 0,
            communicators: 0,
            collectives: 0,
            local_collectives: 0,
            received: 0,
            clock: crate::units::Picos(1),
        };
        let (about, index) = (About::default(), Index::default());
        let mut reader = Self { input, path: path.to_path_buf(), length, header: unknown, about, index };
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
        let (offset, length) = read_footer(&footer).map_err(|problem| reader.error(end, problem))?;
        let fits =
            offset >= START as u64 && length >= FRAME as u64 && offset.checked_add(length) == Some(end);
        if !fits {
            let text = "a footer that does not point at an index in front of it".to_owned();
            return Err(reader.error(end, Problem::Inconsistent(text)));
        }
        let bytes = reader.content(Kind::Index, 0, Spot { offset, length, items: 1 })?;
        reader.index = Index::read(&bytes, offset).map_err(|garbled| reader.garbled(offset, garbled))?;
        let &[about] = reader.index.about.as_slice() else {
            let text = "an index without exactly one block about the trace".to_owned();
            return Err(reader.error(offset, Problem::Inconsistent(text)));
        };
        let bytes = reader.content(Kind::About, 0, about)?;
        (reader.header, reader.about) =
            read_about(&bytes).map_err(|garbled| reader.garbled(about.offset, garbled))?;
        reader.check_counts(offset)?;
        Ok(reader)
    }

    /// Holds the numbers of items in the index against the header.
    fn check_counts(&self, offset: u64) -> Result<(), ContainerError> {
        let sum = |spots: &[Spot]| spots.iter().map(|spot| u128::from(spot.items)).sum::<u128>();
        let records: u128 = self.index.tasks.values().map(|spots| sum(spots)).sum();
        let promised = u128::from(self.header.messages) + u128::from(self.header.local_collectives);
        let last = self.index.tasks.last_key_value().map_or(0, |(&task, _)| task);
        let wrong = if last >= self.header.tasks {
            Some("an index with a task that the header does not have")
        } else if records != promised {
            Some("an index of more or fewer records than the header promises")
        } else if sum(&self.index.communicators) != u128::from(self.header.communicators) {
            Some("an index of more or fewer communicators than the header promises")
        } else if !self.index.order.is_empty() && sum(&self.index.order) != records {
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

    /// Operation codes and origin.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Whether the order between tasks was kept; otherwise [`Reader::lines`] goes task by task.
    pub fn keeps_order(&self) -> bool {
        !self.index.order.is_empty()
    }

    /// The number of records of `task`.
    pub fn records_of(&self, task: Rank) -> u64 {
        self.index.tasks.get(&task.0).map_or(0, |spots| spots.iter().map(|spot| u64::from(spot.items)).sum())
    }

    /// The records of `task` in program order; reads no other task's blocks.
    pub fn task(&self, task: Rank) -> TaskRecords<'_> {
        let spots = self.index.tasks.get(&task.0).map_or([].as_slice(), Vec::as_slice);
        TaskRecords {
            reader: self,
            task,
            spots: spots.iter(),
            offset: 0,
            block: Vec::new(),
            at: 0,
            left: 0,
            before: Before::default(),
        }
    }

    /// All records: communicators first, then as the text had them, or task by task.
    pub fn lines(&self) -> Lines<'_> {
        Lines {
            reader: self,
            communicators: Blocks::new(&self.index.communicators),
            members: Vec::new(),
            order: Blocks::new(&self.index.order),
            runs: Runs::default(),
            tasks: HashMap::new(),
            in_turn: if self.keeps_order() {
                Vec::new()
            } else {
                self.index.tasks.keys().rev().copied().collect()
            },
        }
    }

    /// Extension sections: name, task, and number of pieces.
    pub fn sections(&self) -> impl Iterator<Item = (&str, Option<Rank>, usize)> {
        self.index.sections.iter().map(|((name, task), spots)| {
            let task = task.checked_sub(1).and_then(|task| u32::try_from(task).ok()).map(Rank);
            (name.as_str(), task, spots.len())
        })
    }

    /// A piece of the extension section `name` of a task or of the trace; `None` where there is none.
    pub fn section(
        &self,
        name: &str,
        task: Option<Rank>,
        piece: usize,
    ) -> Result<Option<Vec<u8>>, ContainerError> {
        let key = (name.to_owned(), task.map_or(0, |task| u64::from(task.0) + 1));
        match self.index.sections.get(&key).and_then(|spots| spots.get(piece)) {
            Some(&spot) => self.content(Kind::Section, task.map_or(0, |task| task.0), spot).map(Some),
            None => Ok(None),
        }
    }

    /// The content of the block at `spot`, which the index has found within the file.
    fn content(&self, kind: Kind, task: u32, spot: Spot) -> Result<Vec<u8>, ContainerError> {
        let length = usize::try_from(spot.length).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        self.read_at(&mut bytes, spot.offset)?;
        Block::open(kind, task, spot.items, bytes).map_err(|problem| self.error(spot.offset, problem))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<(), ContainerError> {
        let read = match &self.input {
            Input::File(file) => file.read_exact_at(into, offset),
            Input::Bytes(bytes) => {
                let from = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)?.get(..into.len()));
                from.map(|from| into.copy_from_slice(from)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
        };
        read.map_err(|error| self.error(offset, Problem::Io(error)))
    }

    #[cold]
    fn error(&self, offset: u64, problem: Problem) -> ContainerError {
        ContainerError { place: Place::offset(&self.path, offset), problem }
    }

    #[cold]
    fn garbled(&self, offset: u64, garbled: Garbled) -> ContainerError {
        self.error(offset, Problem::Inconsistent(garbled.text()))
    }
}

/// The records of one task, in program order.
#[derive(Debug)]
pub struct TaskRecords<'a> {
    reader: &'a Reader,
    task: Rank,
    spots: std::slice::Iter<'a, Spot>,
    offset: u64,
    block: Vec<u8>,
    at: usize,
    left: u32,
    before: Before,
}

impl TaskRecords<'_> {
    /// The next record (never a communicator), or `None` behind the last.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "as all readers of the crate")]
    pub fn next(&mut self) -> Result<Option<Line<'static>>, ContainerError> {
        while self.left == 0 {
            if self.at != self.block.len() {
                return Err(self.reader.garbled(self.offset, Garbled::Length));
            }
            let Some(&spot) = self.spots.next() else { return Ok(None) };
            self.block = self.reader.content(Kind::Records, self.task.0, spot)?;
            (self.offset, self.at, self.left, self.before) = (spot.offset, 0, spot.items, Before::default());
        }
        let mut from = Source::new(&self.block, self.at);
        match self.before.read(&mut from, self.task, self.reader.header.tasks) {
            Ok(line) => {
                self.at = from.position();
                self.left -= 1;
                Ok(Some(line))
            }
            Err(garbled) => Err(self.reader.garbled(self.offset, garbled)),
        }
    }
}

/// Blocks that are read one after the other.
#[derive(Debug)]
struct Blocks<'a> {
    spots: std::slice::Iter<'a, Spot>,
    offset: u64,
    block: Vec<u8>,
    at: usize,
    left: u32,
}

impl<'a> Blocks<'a> {
    fn new(spots: &'a [Spot]) -> Self {
        Self { spots: spots.iter(), offset: 0, block: Vec::new(), at: 0, left: 0 }
    }

    /// Makes an item be there; `Some(true)` when it is the first of a block, `None` behind the last.
    fn advance(&mut self, reader: &Reader, kind: Kind) -> Result<Option<bool>, ContainerError> {
        let mut fresh = false;
        while self.left == 0 {
            if self.at != self.block.len() {
                return Err(reader.garbled(self.offset, Garbled::Length));
            }
            let Some(&spot) = self.spots.next() else { return Ok(None) };
            self.block = reader.content(kind, 0, spot)?;
            (self.offset, self.at, self.left) = (spot.offset, 0, spot.items);
            fresh = true;
        }
        self.left -= 1;
        Ok(Some(fresh))
    }
}

/// All records of a container.
#[derive(Debug)]
pub struct Lines<'a> {
    reader: &'a Reader,
    communicators: Blocks<'a>,
    members: Vec<Rank>,
    order: Blocks<'a>,
    runs: Runs,
    /// Where each task is; one block of each that has begun and not ended.
    tasks: HashMap<u32, TaskRecords<'a>>,
    /// Without an order: the tasks that are left, the next one last.
    in_turn: Vec<u32>,
}

impl Lines<'_> {
    /// The next record, or `None` behind the last.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, ContainerError> {
        if self.communicators.advance(self.reader, Kind::Communicators)?.is_some() {
            let id = self
                .read_members()
                .map_err(|garbled| self.reader.garbled(self.communicators.offset, garbled))?;
            return Ok(Some(Line::Communicator { id, members: &self.members }));
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

    /// Behind the last record: the order has named as many as there are, none too often, hence all.
    fn end(&mut self) -> Result<Option<Line<'_>>, ContainerError> {
        for records in self.tasks.values_mut() {
            // A block that is longer than its records is noticed here.
            records.next()?;
        }
        Ok(None)
    }

    /// The communicator that comes next in its block.
    fn read_members(&mut self) -> Result<CommId, Garbled> {
        let mut from = Source::new(&self.communicators.block, self.communicators.at);
        let id = u32::try_from(from.get()?).map_err(|_| Garbled::Value("a communicator's id"))?;
        let count = from.get()?;
        let tasks = self.reader.header.tasks;
        // A few bytes stand for any number of neighbours; a trace of so many tasks is longer than that.
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
        self.communicators.at = from.position();
        Ok(CommId(id))
    }
}

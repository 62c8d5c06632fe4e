//! Reads a container as a whole: communicators, then the records of all tasks in the order of the text.

use super::block::Kind;
use super::code::{Garbled, Runs};
use super::index::{List, Places};
use super::reader::Reader;
use super::streams::Cursors;
use super::{ContainerError, Problem};
use crate::ids::{CommId, Rank};
use crate::text::Line;
use crate::varint::Source;

/// Maximum number of members of a communicator in a file of fewer bytes.
const MANY_MEMBERS: u64 = 4 << 20;

impl Reader {
    /// All lines: communicators first, then records in the order of the text, or task by task.
    pub fn lines(&self) -> Lines<'_> {
        Lines {
            reader: self,
            communicators: self.communicators(),
            order: BlockItems::new(self.index.order),
            runs: Runs::default(),
            cursors: Cursors::new(self.index.tasks.iter().map(|task| task.list), self.header().tasks),
            number: 0,
        }
    }

    /// The communicators, in their order.
    pub fn communicators(&self) -> Communicators<'_> {
        Communicators { reader: self, blocks: BlockItems::new(self.index.communicators), members: Vec::new() }
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
        let tasks = self.reader.header().tasks;
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
    cursors: Cursors,
    /// Without order blocks: index of the current task.
    number: usize,
}

impl Lines<'_> {
    /// The next line, or `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, ContainerError> {
        if self.communicators.advance()? {
            return self.communicators.read().map(|(id, members)| Some(Line::Communicator { id, members }));
        }
        let reader = self.reader;
        if !reader.keeps_order() {
            while let Some(list) = reader.index.tasks.get(self.number) {
                if let Some(raw) =
                    self.cursors.next_raw(reader, self.number, Rank(list.task)).map_err(|error| *error)?
                {
                    return Ok(Some(raw.line(Rank(list.task))));
                }
                self.number += 1;
            }
            return Ok(None);
        }
        let Some(fresh) = self.order.advance(reader, Kind::Order)? else { return self.end() };
        if fresh {
            self.runs = Runs::default();
        }
        let mut from = Source::new(&self.order.block, self.order.at);
        let task = self.runs.next(&mut from, reader.header().tasks);
        self.order.at = from.position();
        let task = task.map_err(|garbled| reader.garbled(self.order.offset, garbled))?;
        if self.order.left == 0 && !self.runs.is_over() {
            return Err(reader.garbled(self.order.offset, Garbled::Length));
        }
        let raw = match reader.index.number_of(task) {
            Some(number) => self.cursors.next_raw(reader, number, Rank(task)).map_err(|error| *error)?,
            None => None,
        };
        let Some(raw) = raw else {
            let text = format!("an order with more records of task {task} than there are");
            return Err(reader.error(self.order.offset, Problem::Inconsistent(text)));
        };
        Ok(Some(raw.line(Rank(task))))
    }

    /// Checks the end: the order has as many items as there are records and no task too often, so all were read.
    fn end(&mut self) -> Result<Option<Line<'_>>, ContainerError> {
        for (number, list) in self.reader.index.tasks.iter().enumerate() {
            // Detects a block that is longer than its records.
            self.cursors.next_raw(self.reader, number, Rank(list.task)).map_err(|error| *error)?;
        }
        Ok(None)
    }
}

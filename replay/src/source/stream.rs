//! A text trace read once, line by line: what had to be read past waits in one list a task.
//!
//! Memory is that of the longest stretch of file between a task's next record and the furthest line read: 32 bytes
//! a record, freed when its task takes it.

use super::packed::{NIL, Packed};
use super::roots::Roots;
use super::row::{Row, What};
use super::{Found, Search, Source, SourceError, Step, Wanted};
use hashbrown::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::Header;
use vef_format::text::{Line, Reader, TextError};

/// Bytes of the shortest line that is a record: `0 0 0 0 0 0 -1`.
const SHORTEST_LINE: u64 = 15;

/// A text trace being read.
#[derive(Debug)]
pub struct Stream {
    reader: Reader<File>,
    path: PathBuf,
    /// Bytes of the file.
    length: u64,
    codes: OpCodes,
    ended: bool,
    records: Vec<Packed>,
    free: Vec<u32>,
    /// Rows that do not fit.
    wide: Vec<Row>,
    free_wide: Vec<u32>,
    /// First and last record that waits for each task.
    queues: Vec<(u32, u32)>,
    communicators: HashMap<CommId, Vec<Rank>>,
    roots: Roots,
}

impl Stream {
    /// Opens a trace with the default codes of operations and reads its header.
    pub fn open(path: &Path) -> Result<Self, TextError> {
        Self::with_codes(path, OpCodes::default())
    }

    /// Opens a trace and reads its header.
    pub fn with_codes(path: &Path, codes: OpCodes) -> Result<Self, TextError> {
        Ok(Self {
            reader: Reader::open(path)?,
            path: path.to_path_buf(),
            length: std::fs::metadata(path).map_or(0, |about| about.len()),
            codes,
            ended: false,
            records: Vec::new(),
            free: Vec::new(),
            wide: Vec::new(),
            free_wide: Vec::new(),
            queues: Vec::new(),
            communicators: HashMap::new(),
            roots: Roots::default(),
        })
    }

    /// Records read and not yet taken by their tasks.
    pub fn waiting(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// The next record of a task.
    #[inline]
    pub(crate) fn next_row(&mut self, task: Rank) -> Result<Row, SourceError> {
        if let Some((first, last)) = self.queues.get_mut(task.index())
            && *first != NIL
        {
            let at = *first;
            let packed = self.records[at as usize];
            *first = packed.next;
            if packed.next == NIL {
                *last = NIL;
            }
            self.free.push(at);
            return Ok(match packed.unpack() {
                Ok(row) => row,
                Err(place) => {
                    self.free_wide.push(place);
                    self.wide[place as usize]
                }
            });
        }
        while !self.ended {
            let row = self.read(Some(task))?;
            if row.what != What::Nothing {
                return Ok(row);
            }
        }
        Ok(Row::NOTHING)
    }

    /// Reads one line; gives the row if it is one of `task`, for which none waits.
    #[inline]
    fn read(&mut self, task: Option<Rank>) -> Result<Row, SourceError> {
        let step = match self.reader.next()? {
            None => {
                self.ended = true;
                return Ok(Row::NOTHING);
            }
            Some(Line::Communicator { id, members }) => {
                self.communicators.insert(id, members.to_vec());
                return Ok(Row::NOTHING);
            }
            Some(Line::Message(message)) => Step::Message(message),
            Some(Line::Collective(collective)) => {
                self.roots.see(&collective, &self.codes);
                Step::Collective(collective)
            }
        };
        let row = Row::from_step(&step);
        if Some(step.task()) == task {
            return Ok(row);
        }
        self.keep(step.task().index(), row)?;
        Ok(Row::NOTHING)
    }

    #[inline]
    fn keep(&mut self, task: usize, row: Row) -> Result<(), SourceError> {
        let packed = match Packed::pack(&row) {
            Some(packed) => packed,
            None => Packed::in_table(put(&mut self.wide, &mut self.free_wide, row)?),
        };
        let at = put(&mut self.records, &mut self.free, packed)?;
        if task >= self.queues.len() {
            self.queues.resize(task + 1, (NIL, NIL));
        }
        let (first, last) = &mut self.queues[task];
        match std::mem::replace(last, at) {
            NIL => *first = at,
            before => self.records[before as usize].next = at,
        }
        Ok(())
    }
}

/// Puts a thing into a free place of a table.
#[inline]
fn put<T>(table: &mut Vec<T>, free: &mut Vec<u32>, thing: T) -> Result<u32, SourceError> {
    if let Some(at) = free.pop() {
        table[at as usize] = thing;
        return Ok(at);
    }
    let at = u32::try_from(table.len()).ok().filter(|&at| at < NIL);
    let at = at.ok_or("more than 4 thousand million records wait for tasks that come later in the file")?;
    table.push(thing);
    Ok(at)
}

impl Source for Stream {
    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn most_tasks(&self) -> u64 {
        self.length / SHORTEST_LINE
    }

    fn next(&mut self, task: Rank) -> Result<Option<Step>, SourceError> {
        Ok(self.next_row(task)?.to_step(task))
    }

    fn members(&mut self, comm: CommId) -> Result<Option<Vec<Rank>>, SourceError> {
        loop {
            match self.communicators.remove(&comm) {
                None if !self.ended => self.read(None)?,
                members => return Ok(members),
            };
        }
    }

    fn root(
        &mut self,
        id: CollectiveId,
        members: u32,
        known: Option<Rank>,
    ) -> Result<Option<Rank>, SourceError> {
        loop {
            match self.roots.known(id, members, known) {
                Some(root) => return Ok(root),
                None if self.ended => return Ok(self.roots.last_word(id)),
                None => self.read(None)?,
            };
        }
    }

    fn op_codes(&self) -> &OpCodes {
        &self.codes
    }

    fn locate(&self, wanted: &[Wanted]) -> Vec<Option<Found>> {
        let mut search = Search::new(wanted);
        // The file is read again: this happens at most once, when the replay cannot go on.
        if let Ok(reader) = Reader::open(&self.path) {
            let mut reader = reader.ignore_counts();
            while let Ok(Some(line)) = reader.next() {
                let step = match line {
                    Line::Communicator { .. } => continue,
                    Line::Message(message) => Step::Message(message),
                    Line::Collective(collective) => Step::Collective(collective),
                };
                let line = reader.line();
                search.see(&step, Some(line));
            }
        }
        search.answers()
    }
}

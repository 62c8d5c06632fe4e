//! A text trace read once, line by line: what had to be read past waits in one list a task.
//!
//! Memory is that of the longest stretch of file between a task's next record and the furthest line read: 32 bytes
//! a record, freed when its task takes it.

use super::packed::{NIL, Packed};
use super::roots::Roots;
use super::row::Row;
use super::{Found, Search, Source, SourceError, Step, Wanted};
use hashbrown::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
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
    waiting: Waiting,
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
            waiting: Waiting::default(),
            communicators: HashMap::new(),
            roots: Roots::default(),
        })
    }

    /// Other codes; nothing has been read yet.
    pub(crate) fn set_codes(&mut self, codes: OpCodes) {
        self.codes = codes;
    }

    /// Records read and not yet taken by their tasks.
    pub fn waiting(&self) -> usize {
        self.waiting.records.len() - self.waiting.free.len()
    }

    /// Puts the next record of a task into `row`.
    #[inline]
    pub(crate) fn next_row(&mut self, task: Rank, row: &mut Row) -> Result<(), SourceError> {
        if self.waiting.take(task, row) {
            return Ok(());
        }
        while !self.ended {
            if let Some(found) = self.read(Some(task))? {
                *row = found;
                return Ok(());
            }
        }
        *row = Row::NOTHING;
        Ok(())
    }

    /// Reads on, one line at least, up to a record of `task`, for which none waits: gives it if it comes soon.
    #[inline(never)]
    fn read(&mut self, task: Option<Rank>) -> Result<Option<Row>, SourceError> {
        let Self { reader, waiting, .. } = self;
        let found = reader.messages(|of, raw| {
            let row = Row::from_raw(raw);
            if Some(of) == task {
                return ControlFlow::Break(Ok(row));
            }
            match waiting.keep(of, row) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        });
        match found {
            Some(row) => row.map(Some),
            None => self.read_line(task),
        }
    }

    /// [`Stream::read`] of one line, of any kind.
    fn read_line(&mut self, task: Option<Rank>) -> Result<Option<Row>, SourceError> {
        let step = match self.reader.next()? {
            None => {
                self.ended = true;
                return Ok(None);
            }
            Some(Line::Communicator { id, members }) => {
                self.communicators.insert(id, members.to_vec());
                return Ok(None);
            }
            Some(Line::Message(message)) => Step::Message(message),
            Some(Line::Collective(collective)) => {
                self.roots.see(&collective, &self.codes);
                Step::Collective(collective)
            }
        };
        let row = Row::from_step(&step);
        if Some(step.task()) == task {
            return Ok(Some(row));
        }
        self.waiting.keep(step.task(), row)?;
        Ok(None)
    }
}

/// What was read past: a list of records a task, all in one table.
#[derive(Debug, Default)]
struct Waiting {
    records: Vec<Packed>,
    free: Vec<u32>,
    /// Rows that do not fit.
    wide: Vec<Row>,
    free_wide: Vec<u32>,
    /// First and last record that waits for each task.
    queues: Vec<(u32, u32)>,
}

impl Waiting {
    /// Takes the first record that waits for `task`, if there is one.
    #[inline]
    fn take(&mut self, task: Rank, row: &mut Row) -> bool {
        let Some(queue) = self.queues.get_mut(task.index()) else { return false };
        let at = queue.0;
        let Some(packed) = self.records.get(at as usize) else { return false };
        queue.0 = packed.next;
        if packed.next == NIL {
            queue.1 = NIL;
        }
        *row = packed.unpack().unwrap_or_else(|place| {
            self.free_wide.push(place);
            self.wide[place as usize]
        });
        self.free.push(at);
        true
    }

    #[inline]
    fn keep(&mut self, task: Rank, row: Row) -> Result<(), SourceError> {
        let packed = match Packed::pack(&row) {
            Some(packed) => packed,
            None => Packed::in_table(put(&mut self.wide, &mut self.free_wide, row)?),
        };
        let at = put(&mut self.records, &mut self.free, packed)?;
        if task.index() >= self.queues.len() {
            self.queues.resize(task.index() + 1, (NIL, NIL));
        }
        let (first, last) = &mut self.queues[task.index()];
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
        let mut row = Row::NOTHING;
        self.next_row(task, &mut row)?;
        Ok(row.to_step(task))
    }

    fn members(&mut self, comm: CommId) -> Result<Option<Vec<Rank>>, SourceError> {
        loop {
            match self.communicators.remove(&comm) {
                None if !self.ended => drop(self.read(None)?),
                members => return Ok(members),
            }
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
                None => drop(self.read(None)?),
            }
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

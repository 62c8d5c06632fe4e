//! A text trace read once, line by line: what had to be read past waits in one list a task.
//!
//! Memory is that of the longest stretch of file between a task's next record and the furthest line read: 32 bytes
//! a record, freed when its task takes it.

use super::facts::{Facts, Question, Seen};
use super::packed::{NIL, Packed};
use super::{LoadError, Loaded, Located, Search, Source, SourceError, Wanted};
use hashbrown::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vef_format::ids::{CommId, Rank};
use vef_format::operation::OpCodes;
use vef_format::raw::Raw;
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
    communicators: HashMap<CommId, Arc<[Rank]>>,
    facts: Seen,
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
            waiting: Waiting::new(),
            communicators: HashMap::new(),
            facts: Seen::default(),
        })
    }

    /// Other codes; nothing has been read yet.
    pub(crate) fn set_codes(&mut self, codes: OpCodes) {
        self.codes = codes;
    }

    /// All of the trace, in memory.
    pub(crate) fn load(&self) -> Result<Loaded, LoadError> {
        Loaded::read(Reader::open(&self.path)?, self.codes.clone())
    }

    /// Reads the file once more, and gives `see` each record.
    pub(crate) fn survey(&self, see: &mut dyn FnMut(Rank, &Raw)) -> Result<(), SourceError> {
        let mut reader = Reader::open(&self.path)?;
        let tasks = reader.header().tasks;
        while let Some(line) = reader.next()? {
            let (task, record) = match line {
                Line::Communicator { .. } => continue,
                Line::Message(message) => (message.src, Raw::of_message(&message)),
                Line::Collective(part) => (part.task, Raw::of_collective(&part)),
            };
            // The replay reports other tasks.
            if task.0 < tasks {
                see(task, &record);
            }
        }
        Ok(())
    }

    /// Puts the next record of a task into `next`.
    #[inline(always)]
    pub(crate) fn next(&mut self, task: Rank, next: &mut Raw) -> Result<(), SourceError> {
        while !self.waiting.take(task, next) {
            if self.ended {
                *next = Raw::NOTHING;
                break;
            }
            self.read()?;
        }
        Ok(())
    }

    /// Reads one line.
    #[inline(never)]
    fn read(&mut self) -> Result<(), SourceError> {
        match self.reader.next()? {
            None => {
                self.ended = true;
                Ok(())
            }
            Some(Line::Communicator { id, members }) => {
                self.communicators.insert(id, members.into());
                Ok(())
            }
            Some(Line::Message(message)) => self.waiting.keep(message.src, &Raw::of_message(&message)),
            Some(Line::Collective(part)) => {
                self.facts.see(&part, &self.codes);
                self.waiting.keep(part.task, &Raw::of_collective(&part))
            }
        }
    }
}

/// What was read past: a list of records a task, all in one table.
#[derive(Debug)]
struct Waiting {
    records: Vec<Packed>,
    /// The first of the free places, each of which names the next.
    free: u32,
    /// Records that do not fit.
    wide: Vec<Raw>,
    free_wide: Vec<u32>,
    /// First and last record that waits for each task.
    queues: Vec<(u32, u32)>,
}

impl Waiting {
    fn new() -> Self {
        let (records, wide, free_wide, queues) = Default::default();
        Self { records, free: NIL, wide, free_wide, queues }
    }

    /// Takes the first record that waits for `task`, if there is one.
    #[inline(always)]
    fn take(&mut self, task: Rank, next: &mut Raw) -> bool {
        let Some(queue) = self.queues.get_mut(task.index()) else { return false };
        let at = queue.0;
        let Some(packed) = self.records.get_mut(at as usize) else { return false };
        queue.0 = packed.next;
        if packed.next == NIL {
            queue.1 = NIL;
        }
        packed.next = self.free;
        self.free = at;
        let Ok(unpacked) = packed.unpack() else { return self.take_wide(at, next) };
        *next = unpacked;
        true
    }

    #[cold]
    fn take_wide(&mut self, at: u32, next: &mut Raw) -> bool {
        let Err(place) = self.records[at as usize].unpack() else { return false };
        *next = self.wide[place as usize];
        self.free_wide.push(place);
        true
    }

    #[inline(always)]
    fn keep(&mut self, task: Rank, raw: &Raw) -> Result<(), SourceError> {
        match Packed::of(raw) {
            Some(packed) => self.link(task, packed),
            None => self.keep_wide(task, *raw),
        }
    }

    #[cold]
    fn keep_wide(&mut self, task: Rank, raw: Raw) -> Result<(), SourceError> {
        let place = match self.free_wide.pop() {
            Some(place) => {
                self.wide[place as usize] = raw;
                place
            }
            None => {
                self.wide.push(raw);
                place(self.wide.len() - 1)?
            }
        };
        self.link(task, Packed::in_table(place))
    }

    /// Makes it the last that waits for `task`.
    #[inline(always)]
    fn link(&mut self, task: Rank, packed: Packed) -> Result<(), SourceError> {
        if self.free == NIL {
            self.grow()?;
        }
        let at = self.free;
        let place = &mut self.records[at as usize];
        self.free = place.next;
        *place = packed;
        let Some((first, last)) = self.queues.get_mut(task.index()) else {
            self.meet(task, at);
            return Ok(());
        };
        match std::mem::replace(last, at) {
            NIL => *first = at,
            before => self.records[before as usize].next = at,
        }
        Ok(())
    }

    /// Makes a free place.
    #[cold]
    fn grow(&mut self) -> Result<(), SourceError> {
        self.free = place(self.records.len())?;
        self.records.push(Packed::in_table(NIL));
        Ok(())
    }

    /// The first that waits for a task, and for those below that had none.
    #[cold]
    fn meet(&mut self, task: Rank, at: u32) {
        self.queues.resize(task.index(), (NIL, NIL));
        self.queues.push((at, at));
    }
}

/// A place in a table.
fn place(at: usize) -> Result<u32, SourceError> {
    let at = u32::try_from(at).ok().filter(|&at| at < NIL);
    at.ok_or_else(|| "more than 4 thousand million records wait for tasks that come later in the file".into())
}

impl Source for Stream {
    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn most_tasks(&self) -> u64 {
        self.length / SHORTEST_LINE
    }

    fn members(&mut self, comm: CommId) -> Result<Option<Arc<[Rank]>>, SourceError> {
        loop {
            match self.communicators.remove(&comm) {
                None if !self.ended => self.read()?,
                members => return Ok(members),
            }
        }
    }

    fn facts(&mut self, question: &Question<'_>) -> Result<Facts, SourceError> {
        loop {
            match self.facts.ask(question) {
                Some(facts) => return Ok(facts),
                None if self.ended => return Ok(self.facts.take(question.id)),
                None => self.read()?,
            }
        }
    }

    fn op_codes(&self) -> &OpCodes {
        &self.codes
    }

    fn locate(&self, wanted: &[Wanted]) -> Located {
        let mut search = Search::new(wanted);
        // The file is read again: this happens at most once, when the replay is stuck.
        let mut read_again = || -> Result<(), SourceError> {
            let mut reader = Reader::open(&self.path)?.ignore_counts();
            while let Some(line) = reader.next()? {
                let record = match line {
                    Line::Communicator { .. } => continue,
                    Line::Message(message) => Line::Message(message),
                    Line::Collective(part) => Line::Collective(part),
                };
                search.see(record, Some(reader.line()));
            }
            Ok(())
        };
        let cut = read_again().err();
        search.located(cut)
    }
}

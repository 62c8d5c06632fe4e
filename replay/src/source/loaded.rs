//! A whole trace in memory, in the order of its file, 32 bytes a record.

use super::facts::{Facts, Question, Seen};
use super::packed::{NIL, Packed};
use super::{Located, Search, Source, SourceError, Wanted};
use hashbrown::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vef_format::container::{self, ContainerError};
use vef_format::format::Format;
use vef_format::ids::{CommId, Rank};
use vef_format::operation::OpCodes;
use vef_format::raw::Raw;
use vef_format::record::{Header, LocalCollective, Message, Record};
use vef_format::text::{Line, Reader, TextError};
use vef_format::units::Count;

/// A trace in memory. [`Job::loaded`](crate::Job::loaded) starts a reading of it; any number of them can be in progress at once.
#[derive(Debug)]
pub struct Loaded {
    header: Header,
    codes: OpCodes,
    records: Vec<Packed>,
    /// Records that do not fit.
    wide: Vec<Raw>,
    /// First record of each task.
    first: Vec<u32>,
    communicators: HashMap<CommId, Arc<[Rank]>>,
    facts: Seen,
}

/// Why a trace cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The text is wrong; it says where.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The container is wrong; it says where.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The file cannot be opened.
    #[error("{}: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// A rank that the header does not know.
    #[error("record {record} names task {task} in a trace of {}", Count(*.tasks, "task"))]
    Rank {
        /// Number of the record in the trace, from 0.
        record: u64,
        /// The rank.
        task: Rank,
        /// Tasks according to the header.
        tasks: u32,
    },
    /// More records than can be held in memory.
    #[error("more than {} records: stream the trace instead", NIL - 1)]
    TooLong,
}

impl Loaded {
    /// Reads a trace in text, with the default codes of operations, or in a container, with its own.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        match is_container(path)? {
            false => Self::read(Reader::open(path)?, OpCodes::default()),
            true => {
                let container = container::Reader::open(path)?;
                let codes = container.about().op_codes.clone();
                let mut loading = Loading::new(*container.header(), codes);
                let mut lines = container.lines();
                while let Some(line) = lines.next()? {
                    loading.line(line)?;
                }
                Ok(loading.finish())
            }
        }
    }

    /// Reads all that `reader` gives.
    pub fn read<R: Read>(mut reader: Reader<R>, codes: OpCodes) -> Result<Self, LoadError> {
        let mut loading = Loading::new(*reader.header(), codes);
        while let Some(line) = reader.next()? {
            loading.line(line)?;
        }
        Ok(loading.finish())
    }

    /// Takes records from anywhere: a generator, a test, another format.
    pub fn from_records(
        header: Header,
        codes: OpCodes,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Self, LoadError> {
        let mut loading = Loading::new(header, codes);
        for record in records {
            loading.line(record.borrowed())?;
        }
        Ok(loading.finish())
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Records of tasks: messages, marks and parts of collectives.
    pub fn records(&self) -> u64 {
        self.records.len() as u64
    }

    /// A reading from the start.
    pub(crate) fn source(self: Arc<Self>) -> Reading {
        Reading { heads: self.first.clone(), loaded: self }
    }

    /// A record, and the place of its task's next one.
    #[inline]
    fn record(&self, at: u32) -> (Raw, u32) {
        let packed = &self.records[at as usize];
        let raw = match packed.unpack() {
            Ok(raw) => raw,
            Err(place) => self.wide[place as usize],
        };
        (raw, packed.next)
    }
}

/// Whether the file begins like a container.
pub(crate) fn is_container(path: &Path) -> Result<bool, LoadError> {
    Format::is_container(path).map_err(|error| LoadError::Open { path: path.to_path_buf(), error })
}

/// A trace on its way into memory.
struct Loading {
    loaded: Loaded,
    last: Vec<u32>,
    count: u64,
}

impl Loading {
    fn new(header: Header, codes: OpCodes) -> Self {
        let loaded = Loaded {
            header,
            codes,
            records: Vec::new(),
            wide: Vec::new(),
            first: Vec::new(),
            communicators: HashMap::new(),
            facts: Seen::default(),
        };
        Self { loaded, last: Vec::new(), count: 0 }
    }

    fn check(&self, task: Rank) -> Result<(), LoadError> {
        let tasks = self.loaded.header.tasks;
        if task.0 < tasks { Ok(()) } else { Err(LoadError::Rank { record: self.count, task, tasks }) }
    }

    #[inline]
    fn line(&mut self, line: Line<'_>) -> Result<(), LoadError> {
        match line {
            Line::Communicator { id, members } => self.communicator(id, members.to_vec()),
            Line::Message(message) => self.message(&message),
            Line::Collective(part) => self.collective(&part),
        }
    }

    fn communicator(&mut self, id: CommId, members: Vec<Rank>) -> Result<(), LoadError> {
        members.iter().try_for_each(|&member| self.check(member))?;
        self.count += 1;
        self.loaded.communicators.insert(id, members.into());
        Ok(())
    }

    #[inline]
    fn message(&mut self, message: &Message) -> Result<(), LoadError> {
        self.check(message.src)?;
        self.check(message.dst)?;
        self.keep(message.src, &Raw::of_message(message))
    }

    #[inline]
    fn collective(&mut self, part: &LocalCollective) -> Result<(), LoadError> {
        self.check(part.task)?;
        self.loaded.facts.see(part, &self.loaded.codes);
        self.keep(part.task, &Raw::of_collective(part))
    }

    /// Appends a record of a task, whose ranks are checked.
    #[inline]
    fn keep(&mut self, task: Rank, raw: &Raw) -> Result<(), LoadError> {
        let Loaded { records, wide, first, .. } = &mut self.loaded;
        let packed = Packed::of(raw).unwrap_or_else(|| {
            wide.push(*raw);
            Packed::in_table((wide.len() - 1) as u32)
        });
        let at = u32::try_from(records.len()).ok().filter(|&at| at < NIL).ok_or(LoadError::TooLong)?;
        records.push(packed);
        if task.index() >= first.len() {
            // Grows with the ranks that come, not with what the header promises.
            first.resize(task.index() + 1, NIL);
            self.last.resize(task.index() + 1, NIL);
        }
        match std::mem::replace(&mut self.last[task.index()], at) {
            NIL => first[task.index()] = at,
            before => records[before as usize].next = at,
        }
        self.count += 1;
        Ok(())
    }

    fn finish(mut self) -> Loaded {
        self.loaded.records.shrink_to_fit();
        self.loaded
    }
}

/// One reading of a [`Loaded`] trace.
#[derive(Debug)]
pub(crate) struct Reading {
    loaded: Arc<Loaded>,
    /// The next record of each task.
    heads: Vec<u32>,
}

impl Reading {
    /// Another reading, from the start.
    pub(crate) fn again(&self) -> Self {
        self.loaded.clone().source()
    }

    #[inline]
    pub(crate) fn next(&mut self, task: Rank) -> Raw {
        let Some(head) = self.heads.get_mut(task.index()).filter(|head| **head != NIL) else {
            return Raw::NOTHING;
        };
        let (raw, next) = self.loaded.record(*head);
        *head = next;
        raw
    }
}

impl Source for Reading {
    fn header(&self) -> &Header {
        &self.loaded.header
    }

    fn most_tasks(&self) -> u64 {
        self.loaded.records()
    }

    fn members(&mut self, comm: CommId) -> Result<Option<Arc<[Rank]>>, SourceError> {
        Ok(self.loaded.communicators.get(&comm).cloned())
    }

    fn facts(&mut self, question: &Question<'_>) -> Result<Facts, SourceError> {
        Ok(self.loaded.facts.look_up(question.id))
    }

    fn op_codes(&self) -> &OpCodes {
        &self.loaded.codes
    }

    fn locate(&self, wanted: &[Wanted]) -> Located {
        let mut search = Search::new(wanted);
        for (rank, &first) in (0u32..).zip(&self.loaded.first) {
            let mut at = first;
            while at != NIL {
                let (raw, next) = self.loaded.record(at);
                search.see(raw.line(Rank(rank)), None);
                at = next;
            }
        }
        search.located(None)
    }
}

//! Reads a trace line by line, in constant memory.
//!
//! The input is read in blocks. A block is cut behind its last line end, so that lines are parsed in place without searching
//! for their ends. Only a line longer than a block (a communicator of very many tasks) makes the block grow, as its bytes
//! arrive.

use super::error::{Problem, TextError};
use super::scan::{Cursor, Expected, Fault, quote};
use crate::format::Format;
use crate::id_set::IdSet;
use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Counts, Dependency, Header, Line, LocalCollective, Message, Version};
use crate::units::{Bytes, Picos, Ticks};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes read at a time.
const BLOCK: usize = 256 << 10;
/// Readable bytes behind a block, for parsing eight digits at a time.
const PADDING: usize = 8;
/// Maximum number of tasks in MPI.
const MOST_TASKS: u64 = i32::MAX as u64;

/// Reads a trace in text form, line by line.
///
/// Ranks are checked against the header's number of tasks, and at the end the numbers of lines against the header's counts
/// (unless [`Reader::ignore_counts`]). Nothing else is checked across lines.
#[derive(Debug)]
pub struct Reader<R = File> {
    input: R,
    path: PathBuf,
    /// Complete lines up to `whole`, an incomplete one up to `filled`, then room.
    block: Vec<u8>,
    at: usize,
    whole: usize,
    filled: usize,
    /// Bytes of the input in front of the block.
    before: u64,
    line: u64,
    longest: u64,
    header: Header,
    found: Counts,
    check_counts: bool,
    members: Vec<Rank>,
    /// Version 2: the awaited messages.
    awaited: IdSet,
}

impl Reader<File> {
    /// Opens the trace in the file `path` and reads its header.
    ///
    /// A version 2 trace is read twice: the first pass collects the receive dependencies, which determine the awaited messages
    /// (an eighth of a byte a message if ids are dense).
    pub fn open(path: &Path) -> Result<Self, TextError> {
        let file = File::open(path).map_err(|error| TextError::file(path, error))?;
        Self::new(file, path)
    }
}

impl<'a> Reader<io::Cursor<&'a [u8]>> {
    /// Reads the trace in `bytes`; `path` is used in errors only.
    pub fn from_bytes(bytes: &'a [u8], path: &Path) -> Result<Self, TextError> {
        Self::new(io::Cursor::new(bytes), path)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads a trace of version 2 or 3 from the start of `input`; `path` is used in errors only.
    pub fn new(input: R, path: &Path) -> Result<Self, TextError> {
        let mut reader = Self::at_header(input, path)?;
        if reader.header.version == Version::V3 {
            return Ok(reader);
        }
        let mut awaited = IdSet::default();
        while let Some(line) = reader.next()? {
            if let Line::Message(Message { after: Dependency::Received(id), .. })
            | Line::Collective(LocalCollective { after: Dependency::Received(id), .. }) = line
            {
                awaited.insert(id.0);
            }
        }
        let mut input = reader.input;
        if input.rewind().is_err() {
            return Err(TextError::file(path, Problem::Stream));
        }
        Ok(Self { awaited, ..Self::at_header(input, path)? })
    }
}

impl<R: Read> Reader<R> {
    /// Reads a trace of version 3 from `input`, which need not be a file; `path` is used in errors only.
    pub fn from_stream(input: R, path: &Path) -> Result<Self, TextError> {
        let reader = Self::at_header(input, path)?;
        match reader.header.version {
            Version::V3 => Ok(reader),
            Version::V2 => Err(TextError::file(path, Problem::Stream)),
        }
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The line of the last record, 1-based.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bytes of the input up to the end of the last record.
    pub fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Do not compare the numbers of lines with the header's.
    pub fn ignore_counts(mut self) -> Self {
        self.check_counts = false;
        self
    }

    /// The next record, or `None` at the end. Do not call again after an error.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, TextError> {
        Ok(self.next_numbered()?.map(|(_, line)| line))
    }

    /// [`Reader::next`], with the line number (1-based).
    #[inline]
    pub fn next_numbered(&mut self) -> Result<Option<(u64, Line<'_>)>, TextError> {
        let begin = loop {
            if self.at == self.whole && !self.refill()? {
                return match self.check_counts {
                    true => self.compare_counts().map(|()| None),
                    false => Ok(None),
                };
            }
            self.line += 1;
            let mut cursor = Cursor { block: &self.block, at: self.at };
            cursor.skip_blanks();
            if cursor.byte() != b'\n' {
                break cursor.at;
            }
            self.at = cursor.at + 1;
        };
        let mut cursor = Cursor { block: &self.block, at: begin };
        let parsed = match cursor.byte() {
            b'0'..=b'9' => {
                self.found.messages += 1;
                message(&mut cursor, &self.header).map(|mut message| {
                    if self.header.version == Version::V2 {
                        message.awaited = self.awaited.contains(message.id.0);
                    }
                    Line::Message(message)
                })
            }
            b'G' => {
                self.found.local_collectives += 1;
                collective(&mut cursor, &self.header).map(Line::Collective)
            }
            b'C' => {
                self.found.communicators += 1;
                communicator(&mut cursor, &self.header, &mut self.members)
                    .map(|id| Line::Communicator { id, members: &self.members })
            }
            _ => {
                let found = quote(&self.block, begin);
                let text = format!("a line begins with a number, G or C; this one with `{found}`");
                return Err(TextError::line(&self.path, self.line, Problem::Line(text)));
            }
        };
        match parsed {
            Ok(line) => {
                self.at = cursor.at;
                Ok(Some((self.line, line)))
            }
            Err(fault) => Err(TextError::line(&self.path, self.line, fault.problem(&self.block))),
        }
    }

    /// A reader that has read the header.
    fn at_header(input: R, path: &Path) -> Result<Self, TextError> {
        let mut reader = Self {
            input,
            path: path.to_path_buf(),
            block: vec![b'\n'; BLOCK + PADDING],
            at: 0,
            whole: 0,
            filled: 0,
            before: 0,
            line: 0,
            longest: BLOCK as u64,
            header: Header::default(),
            found: Counts::default(),
            check_counts: true,
            members: Vec::new(),
            awaited: IdSet::default(),
        };
        if !reader.refill()? {
            return Err(TextError::file(path, Problem::Empty));
        }
        let mut cursor = Cursor { block: &reader.block, at: 0 };
        let version = match reader.block.first_chunk::<5>() {
            Some(b"VEF3 " | b"VEF3\t") => Version::V3,
            Some(b"VEF2 " | b"VEF2\t") => Version::V2,
            _ => {
                let begin = &reader.block[..reader.whole];
                return Err(match Format::of_bytes(begin) {
                    Some(format) => {
                        TextError::file(path, Problem::NotATrace(format!(", but {}", format.what())))
                    }
                    None => {
                        let found = quote(begin, 0);
                        let text = format!(": it begins with `{found}`, not with VEF3 or VEF2");
                        TextError::line(path, 1, Problem::NotATrace(text))
                    }
                });
            }
        };
        cursor.at = 4;
        reader.header = header(&mut cursor, version)
            .map_err(|fault| TextError::line(path, 1, fault.problem(&reader.block)))?;
        (reader.at, reader.line) = (cursor.at, 1);
        // Each member of a communicator takes at most ten digits and, normally, one blank.
        reader.longest = BLOCK as u64 + 11 * u64::from(reader.header.tasks);
        Ok(reader)
    }

    /// Fills the block with at least one complete line from `at` on; `false` at the end of the input.
    #[cold]
    fn refill(&mut self) -> Result<bool, TextError> {
        self.block.copy_within(self.at..self.filled, 0);
        self.before += self.at as u64;
        self.filled -= self.at;
        (self.at, self.whole) = (0, 0);
        loop {
            let room = self.block.len() - PADDING;
            if self.filled == room {
                if room as u64 >= self.longest {
                    let limit = self.longest;
                    return Err(TextError::line(&self.path, self.line + 1, Problem::LongLine { limit }));
                }
                self.block.resize(2 * room + PADDING, b'\n');
                continue;
            }
            let read = match self.input.read(&mut self.block[self.filled..room]) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(TextError::line(&self.path, self.line + 1, error)),
            };
            if read == 0 {
                return match self.filled {
                    0 => Ok(false),
                    _ => Err(TextError::line(&self.path, self.line + 1, Problem::Cut)),
                };
            }
            let end = self.filled + read;
            let newest = &self.block[self.filled..end];
            if let Some(last) = memchr::memrchr(b'\n', newest) {
                self.whole = self.filled + last + 1;
                self.filled = end;
                return Ok(true);
            }
            self.filled = end;
        }
    }

    fn compare_counts(&self) -> Result<(), TextError> {
        // The ids of collectives are not compared.
        let found = Counts { collectives: self.header.collectives, ..self.found };
        match self.header.wrong_counts(&found).next() {
            Some(wrong) => Err(TextError::line(&self.path, 1, Problem::Count(wrong))),
            None => Ok(()),
        }
    }
}

fn header(cursor: &mut Cursor<'_>, version: Version) -> Result<Header, Fault> {
    let header = Header {
        version,
        tasks: cursor.number_in(1, MOST_TASKS)? as u32,
        messages: cursor.number()?,
        communicators: cursor.number()?,
        collectives: cursor.number()?,
        local_collectives: cursor.number()?,
        received: cursor.number()?,
        clock: Picos(cursor.number_in(1, u64::MAX)?),
    };
    cursor.end()?;
    Ok(header)
}

#[inline(always)]
fn message(cursor: &mut Cursor<'_>, header: &Header) -> Result<Message, Fault> {
    let last = u64::from(header.tasks) - 1;
    let most_dep = match header.version {
        Version::V2 => 3,
        Version::V3 => 7,
    };
    let id = MessageId(cursor.digits()?);
    let src = Rank(cursor.number_in(0, last)? as u32);
    let dst = Rank(cursor.number_in(0, last)? as u32);
    let bytes = Bytes(cursor.number()?);
    let dep = cursor.number_in(0, most_dep)? as u8;
    let time = Ticks(cursor.number()?);
    let after = dependency(cursor, dep & 3)?;
    cursor.end()?;
    Ok(Message { id, src, dst, bytes, awaited: dep & 4 != 0, after, time })
}

#[inline(always)]
fn collective(cursor: &mut Cursor<'_>, header: &Header) -> Result<LocalCollective, Fault> {
    let last = u64::from(header.tasks) - 1;
    cursor.at += 1;
    let id = CollectiveId(cursor.digits()?);
    cursor.prefix(b"C", Expected::CommId)?;
    let comm = cursor.digits_in(0, u64::from(u32::MAX))?;
    let op = cursor.number_in(0, u64::from(u16::MAX))?;
    let task = Rank(cursor.number_in(0, last)? as u32);
    let send = Bytes(cursor.number()?);
    let recv = Bytes(cursor.number()?);
    let dep = cursor.number_in(0, 3)? as u8;
    let time = Ticks(cursor.number()?);
    let after = dependency(cursor, dep)?;
    cursor.end()?;
    let (comm, op) = (CommId(comm as u32), OpCode(op as u16));
    Ok(LocalCollective { id, comm, op, task, amounts: Amounts { send, recv }, after, time })
}

/// The last field of a record; `kind` is the two low bits of its field `dep`.
#[inline(always)]
fn dependency(cursor: &mut Cursor<'_>, kind: u8) -> Result<Dependency, Fault> {
    Ok(match kind {
        0 => {
            cursor.prefix(b"-1", Expected::NoId)?;
            Dependency::Start
        }
        3 => {
            cursor.prefix(b"G", Expected::CollectiveId)?;
            Dependency::Collective(CollectiveId(cursor.digits()?))
        }
        kind => {
            let id = MessageId(cursor.message_id()?);
            if kind == 1 { Dependency::Sent(id) } else { Dependency::Received(id) }
        }
    })
}

fn communicator(cursor: &mut Cursor<'_>, header: &Header, members: &mut Vec<Rank>) -> Result<CommId, Fault> {
    let last = u64::from(header.tasks) - 1;
    cursor.at += 1;
    let id = CommId(cursor.digits_in(0, u64::from(u32::MAX))? as u32);
    members.clear();
    members.push(Rank(cursor.number_in(0, last)? as u32));
    while cursor.continues()? {
        if members.len() as u64 > last {
            return Err(cursor.fault(Expected::Members(header.tasks)));
        }
        members.push(Rank(cursor.digits_in(0, last)? as u32));
    }
    cursor.end()?;
    Ok(id)
}

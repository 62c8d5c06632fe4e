//! GOAL files: the sends, receives and computing of each rank, and the dependencies between them.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! a: calc 1000 cpu 0
//! b: send 100b to 1 tag 7 cpu 0 nic 0
//! b requires a
//! }
//! rank 1 { r: recv 100b from -1 tag -1 }
//! ```
//!
//! `requires` waits for the completion of an operation, `irequires` for its start; -1 is any source or tag.
//! Times are in nanoseconds. `//` starts a comment. Labels are unique in a rank; an operation without a label
//! cannot be required.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use vef_format::units::{Bytes, Picos};

/// A schedule of operations for all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    pub(super) ranks: u32,
    /// The operations, grouped by rank.
    pub(super) operations: Vec<Operation>,
    /// Index after the last operation of each rank.
    pub(super) ends: Vec<u32>,
    /// Dependencies: (required, requiring).
    pub(super) requires: Vec<(u32, u32)>,
    pub(super) starts: Vec<(u32, u32)>,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) what: What,
    pub(super) rank: u32,
    pub(super) cpu: u32,
    pub(super) nic: u32,
    /// Line in the file.
    pub(super) line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Send {
        bytes: Bytes,
        to: u32,
        tag: u32,
    },
    /// `None` is any source or tag.
    Receive {
        bytes: Bytes,
        from: Option<u32>,
        tag: Option<u32>,
    },
    Compute {
        time: Picos,
    },
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let any = |number: Option<u32>| number.map_or("any".to_owned(), |number| number.to_string());
        match *self {
            Self::Send { bytes, to, tag } => write!(f, "send of {} bytes to {to}, tag {tag}", bytes.0),
            Self::Receive { bytes, from, tag } => {
                write!(f, "receive of {} bytes from {}, tag {}", bytes.0, any(from), any(tag))
            }
            Self::Compute { time } => write!(f, "computing for {time}"),
        }
    }
}

/// An invalid schedule.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {problem}", .file.display(), Line(*.line))]
pub struct GoalError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 for the whole file.
    pub line: u32,
    /// The error.
    pub problem: GoalProblem,
}

struct Line(u32);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, ":{}", self.0) } else { Ok(()) }
    }
}

/// The error in a schedule.
#[derive(Debug, thiserror::Error)]
pub enum GoalProblem {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// A word is unexpected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The word expected.
        expected: &'static str,
        /// The word found, or the end of the file.
        found: String,
    },
    /// A rank is out of range.
    #[error("rank {rank}: there are {ranks} ranks, from 0")]
    NoRank {
        /// The rank.
        rank: u64,
        /// Number of ranks.
        ranks: u32,
    },
    /// A rank, or a label in a rank, is repeated.
    #[error("{0} was there before, on line {1}")]
    Twice(String, u32),
    /// A required operation does not exist.
    #[error("this rank has no operation {0:?}")]
    NoLabel(String),
    /// A number or a time is out of range.
    #[error("{0} is too large")]
    TooLarge(String),
}

impl Schedule {
    /// Whether a file is a schedule: its first word is `num_ranks`.
    pub fn is_schedule(path: &Path) -> bool {
        use std::io::Read;
        let mut start = Vec::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut start));
        if read.is_err() {
            return false;
        }
        let mut words = Words::new(&start);
        matches!(words.next(), Some((b"num_ranks", _)))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub fn read(path: &Path) -> Result<Self, GoalError> {
        let error = |(line, problem)| GoalError { file: path.to_owned(), line, problem };
        let text = std::fs::read(path).map_err(|problem| error((0, problem.into())))?;
        Self::parse(&text).map_err(error)
    }

    /// Parses a schedule; an error has its line.
    pub fn parse(text: &[u8]) -> Result<Self, (u32, GoalProblem)> {
        Parser { words: Words::new(text), schedule: Self::default(), text_bytes: text.len() }.parse()
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of operations.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }
}

/// Words of a text with their lines, without comments.
struct Words<'a> {
    text: &'a [u8],
    line: u32,
    /// The next word, if it was peeked at.
    ahead: Option<(&'a [u8], u32)>,
}

impl<'a> Words<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, line: 1, ahead: None }
    }

    fn peek(&mut self) -> Option<(&'a [u8], u32)> {
        if self.ahead.is_none() {
            self.ahead = self.read();
        }
        self.ahead
    }

    fn next(&mut self) -> Option<(&'a [u8], u32)> {
        match self.ahead.take() {
            Some(word) => Some(word),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Option<(&'a [u8], u32)> {
        loop {
            match self.text {
                [] => return None,
                [b'/', b'/', ..] => {
                    let end = self.text.iter().position(|&b| b == b'\n').unwrap_or(self.text.len());
                    self.text = &self.text[end..];
                }
                [b'\n', rest @ ..] => {
                    self.line += 1;
                    self.text = rest;
                }
                [b, rest @ ..] if b.is_ascii_whitespace() => self.text = rest,
                [b'{' | b'}' | b':', ..] => return Some(self.split(1)),
                _ => {
                    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'{' | b'}' | b':');
                    let end = self.text.iter().position(ends).unwrap_or(self.text.len());
                    return Some(self.split(end));
                }
            }
        }
    }

    fn split(&mut self, at: usize) -> (&'a [u8], u32) {
        let (word, rest) = self.text.split_at(at);
        self.text = rest;
        (word, self.line)
    }
}

/// Most processors, or interfaces, of all ranks together, unless each rank has one; each takes tens of bytes.
const MOST_PLACES: u64 = 1 << 22;

struct Parser<'a> {
    words: Words<'a>,
    schedule: Schedule,
    text_bytes: usize,
}

type Parsed<T> = Result<T, (u32, GoalProblem)>;

impl<'a> Parser<'a> {
    fn parse(mut self) -> Parsed<Schedule> {
        self.expect(b"num_ranks", "num_ranks")?;
        let (ranks, line) = self.number("the number of ranks")?;
        // Do not allocate per-rank memory on this number alone: an empty rank takes ten bytes of text.
        self.schedule.ranks = u32::try_from(ranks)
            .ok()
            .filter(|&ranks| ranks > 0 && ranks as usize <= self.text_bytes)
            .ok_or((line, GoalProblem::TooLarge(format!("num_ranks {ranks}"))))?;
        let mut found: Vec<u32> = vec![0; self.schedule.ranks as usize];
        let mut of_ranks: Vec<(u32, u32)> = vec![(0, 0); found.len()];
        while let Some((_, line)) = self.words.peek() {
            self.expect(b"rank", "rank")?;
            let (rank, _) = self.number("a rank")?;
            let place = usize::try_from(rank).ok().filter(|&place| place < found.len());
            let Some(place) = place else {
                return Err((line, GoalProblem::NoRank { rank, ranks: self.schedule.ranks }));
            };
            if found[place] > 0 {
                return Err((line, GoalProblem::Twice(format!("rank {rank}"), found[place])));
            }
            found[place] = line;
            let from = self.schedule.operations.len() as u32;
            self.rank(place as u32)?;
            of_ranks[place] = (from, self.schedule.operations.len() as u32);
        }
        // All ranks have as many processors and interfaces as the largest.
        let places = self.schedule.operations.iter().map(|operation| operation.cpu.max(operation.nic));
        let places = u64::from(places.max().unwrap_or(0) + 1) * u64::from(self.schedule.ranks);
        if places > MOST_PLACES.max(self.schedule.ranks.into()) {
            return Err((
                line,
                GoalProblem::TooLarge(format!("{places} processors or interfaces of all ranks")),
            ));
        }
        if of_ranks.windows(2).any(|pair| pair[1].0 < pair[0].1 && pair[1].0 != pair[1].1) {
            self.sort(&of_ranks);
        }
        let mut end = 0;
        for (from, to) in of_ranks {
            end += to - from;
            self.schedule.ends.push(end);
        }
        Ok(self.schedule)
    }

    /// Sorts operations by rank.
    fn sort(&mut self, of_ranks: &[(u32, u32)]) {
        let mut places = vec![0u32; self.schedule.operations.len()];
        let mut sorted = Vec::with_capacity(places.len());
        for &(from, to) in of_ranks {
            for operation in from..to {
                places[operation as usize] = sorted.len() as u32;
                sorted.push(self.schedule.operations[operation as usize]);
            }
        }
        self.schedule.operations = sorted;
        for (first, second) in self.schedule.requires.iter_mut().chain(&mut self.schedule.starts) {
            (*first, *second) = (places[*first as usize], places[*second as usize]);
        }
    }

    /// Parses the operations of a rank.
    fn rank(&mut self, rank: u32) -> Parsed<()> {
        self.expect(b"{", "{")?;
        let mut labels: HashMap<&'a [u8], u32> = HashMap::new();
        // A label may be used before its operation.
        let mut named = Vec::new();
        loop {
            let Some((word, line)) = self.words.next() else {
                return Err((self.words.line, expected("} or an operation", None)));
            };
            match word {
                b"}" => break,
                b"send" | b"recv" | b"calc" => self.operation(rank, word, line)?,
                label => match self.words.next() {
                    Some((b":", _)) => {
                        let operation = self.schedule.operations.len() as u32;
                        if let Some(before) = labels.insert(label, operation) {
                            let before = self.schedule.operations[before as usize].line;
                            return Err((
                                line,
                                GoalProblem::Twice(format!("label {:?}", word_of(label)), before),
                            ));
                        }
                        let Some((word, line)) = self.words.next() else {
                            return Err((line, expected("send, recv or calc", None)));
                        };
                        self.operation(rank, word, line)?;
                    }
                    Some((word @ (b"requires" | b"irequires"), line)) => {
                        let Some((other, _)) = self.words.next() else {
                            return Err((line, expected("a label", None)));
                        };
                        named.push((label, other, word == b"requires", line));
                    }
                    other => return Err((line, expected("a colon, requires or irequires", other))),
                },
            }
        }
        for (label, other, requires, line) in named {
            let find = |label: &[u8]| {
                labels.get(label).copied().ok_or_else(|| (line, GoalProblem::NoLabel(word_of(label))))
            };
            let pair = (find(other)?, find(label)?);
            if requires { self.schedule.requires.push(pair) } else { self.schedule.starts.push(pair) }
        }
        Ok(())
    }

    fn operation(&mut self, rank: u32, word: &[u8], line: u32) -> Parsed<()> {
        let what = match word {
            b"calc" => {
                let (time, line) = self.number("a time")?;
                let time = time.checked_mul(1000).ok_or((line, GoalProblem::TooLarge(time.to_string())))?;
                What::Compute { time: Picos(time) }
            }
            b"send" => {
                let bytes = self.bytes()?;
                self.expect(b"to", "to")?;
                let (to, line) = self.number("a rank")?;
                let to = self.checked_rank(to, line)?;
                What::Send { bytes, to, tag: self.tag()?.unwrap_or(0) }
            }
            b"recv" => {
                let bytes = self.bytes()?;
                self.expect(b"from", "from")?;
                let from = match self.words.peek() {
                    Some((b"-1", _)) => {
                        self.words.next();
                        None
                    }
                    _ => {
                        let (from, line) = self.number("a rank or -1")?;
                        Some(self.checked_rank(from, line)?)
                    }
                };
                What::Receive { bytes, from, tag: self.tag()? }
            }
            _ => return Err((line, expected("send, recv or calc", Some((word, line))))),
        };
        let (mut cpu, mut nic) = (0, 0);
        loop {
            let place = match self.words.peek() {
                Some((b"cpu", _)) => &mut cpu,
                Some((b"nic", _)) => &mut nic,
                _ => break,
            };
            self.words.next();
            let (number, line) = self.number("a number")?;
            // Each one takes memory in all ranks.
            if number >= 1024 {
                return Err((line, GoalProblem::TooLarge(number.to_string())));
            }
            *place = number as u32;
        }
        if self.schedule.operations.len() >= 1 << 30 {
            return Err((line, GoalProblem::TooLarge("the number of operations".to_owned())));
        }
        self.schedule.operations.push(Operation { what, rank, cpu, nic, line });
        Ok(())
    }

    /// Parses `tag N`: `None` for -1, and 0 by default.
    fn tag(&mut self) -> Parsed<Option<u32>> {
        if !matches!(self.words.peek(), Some((b"tag", _))) {
            return Ok(Some(0));
        }
        self.words.next();
        if let Some((b"-1", _)) = self.words.peek() {
            self.words.next();
            return Ok(None);
        }
        let (tag, line) = self.number("a tag or -1")?;
        u32::try_from(tag).map(Some).map_err(|_| (line, GoalProblem::TooLarge(format!("tag {tag}"))))
    }

    /// Parses `100b`.
    fn bytes(&mut self) -> Parsed<Bytes> {
        let wanted = "a size like 100b";
        let Some((word, line)) = self.words.next() else {
            return Err((self.words.line, expected(wanted, None)));
        };
        let bytes = word.strip_suffix(b"b").and_then(parse_number);
        bytes.map(Bytes).ok_or_else(|| (line, expected(wanted, Some((word, line)))))
    }

    fn checked_rank(&self, rank: u64, line: u32) -> Parsed<u32> {
        let ranks = self.schedule.ranks;
        u32::try_from(rank)
            .ok()
            .filter(|&rank| rank < ranks)
            .ok_or((line, GoalProblem::NoRank { rank, ranks }))
    }

    fn number(&mut self, wanted: &'static str) -> Parsed<(u64, u32)> {
        let Some((word, line)) = self.words.next() else {
            return Err((self.words.line, expected(wanted, None)));
        };
        parse_number(word)
            .map(|number| (number, line))
            .ok_or_else(|| (line, expected(wanted, Some((word, line)))))
    }

    fn expect(&mut self, word: &[u8], wanted: &'static str) -> Parsed<()> {
        match self.words.next() {
            Some((found, _)) if found == word => Ok(()),
            found => Err((found.map_or(self.words.line, |(_, line)| line), expected(wanted, found))),
        }
    }
}

fn parse_number(word: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(word).ok()?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn word_of(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned()
}

fn expected(expected: &'static str, found: Option<(&[u8], u32)>) -> GoalProblem {
    let found = found.map_or("the end of the file".to_owned(), |(word, _)| format!("{:?}", word_of(word)));
    GoalProblem::Expected { expected, found }
}

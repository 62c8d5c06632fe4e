//! Reads and writes GOAL in text, a rank at a time.

use super::operation::{MOST_OPERATIONS, Operation, RankGraph, What};
use super::words::{Blocks, Words};
use crate::decimal::number;
use crate::error::{Problem, Result};
use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry, HashTable};
use memchr::memchr;
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use vef_format::error::Located;
use vef_format::nearest::nearest;
use vef_format::units::{Bytes, Picos};

/// Whether a text is a schedule: its first words are `num_ranks` or, by mistake, `rank N {`; perhaps behind lines with `#`, which are no
/// comments of GOAL.
pub(super) fn is_text(start: &[u8]) -> bool {
    let mut rest = start.trim_ascii_start();
    while rest.starts_with(b"#") {
        let line = memchr(b'\n', rest).unwrap_or(rest.len());
        rest = rest[line..].trim_ascii_start();
    }
    let mut words = Words::new(rest);
    match words.next() {
        Some((word, _)) if nearest(&word_of(word), ["num_ranks"]).is_some() => true,
        Some((b"rank", _)) => {
            words.next().is_some_and(|(number, _)| number.iter().all(u8::is_ascii_digit))
                && matches!(words.next(), Some((b"{", _)))
        }
        _ => false,
    }
}

/// Words that a label may be, misspelt.
const WORDS: [&str; 6] = ["send", "recv", "calc", "tag", "cpu", "nic"];

/// Reads a text.
pub(super) struct TextReader {
    path: PathBuf,
    blocks: Blocks,
    /// Length of the block that is loaded, if one is.
    loaded: Option<usize>,
    pub(super) ranks: u32,
    /// Line of the header of the rank that was read last.
    pub(super) line: u32,
}

/// A problem and its line.
type Parsed<T> = std::result::Result<T, (u32, Problem)>;

impl TextReader {
    /// Reads the number of ranks.
    pub(super) fn new(path: &Path, input: Box<dyn Read>) -> Result<Self> {
        let mut blocks = Blocks::new(input);
        let length = blocks.load().map_err(|error| Problem::from(error).of_file(path))?;
        let mut parser = Parser { words: blocks.words(length), ranks: 0, graph: &mut RankGraph::default() };
        let header = parser.header();
        let (ranks, _) = header.map_err(|(line, problem)| Located::line(path, line.into(), problem))?;
        Ok(Self { path: path.to_path_buf(), blocks, loaded: Some(length), ranks, line: 1 })
    }

    /// Bytes read.
    pub(super) fn read(&self) -> u64 {
        self.blocks.read
    }

    /// Appends the operations of the next rank of the file; `None` after the last.
    pub(super) fn append(&mut self, graph: &mut RankGraph) -> Result<Option<u32>> {
        let (length, first) = match self.loaded.take() {
            Some(length) => (length, true),
            None => {
                let loaded = self.blocks.load();
                (loaded.map_err(|error| Problem::from(error).of_file(&self.path))?, false)
            }
        };
        let mut parser = Parser { words: self.blocks.words(length), ranks: self.ranks, graph };
        let parsed = match first {
            true => parser.header().and_then(|_| parser.rank()),
            false => parser.rank(),
        };
        let line = parser.words.line;
        self.blocks.pass(length, line);
        let parsed = parsed.map_err(|(line, problem)| Located::line(&self.path, line.into(), problem))?;
        Ok(parsed.map(|(rank, line)| {
            self.line = line;
            rank
        }))
    }
}

/// Parses a block.
struct Parser<'a, 'g> {
    words: Words<'a>,
    ranks: u32,
    graph: &'g mut RankGraph,
}

impl<'a> Parser<'a, '_> {
    /// The number of ranks, and its line.
    fn header(&mut self) -> Parsed<(u32, u32)> {
        let wrong = match self.words.next() {
            Some((b"num_ranks", _)) => None,
            Some((word, line)) if word.starts_with(b"#") => {
                Some((line, "its comments are // and /* */, not #".to_owned()))
            }
            Some((word, line)) => {
                let meant = misspelt(word, &["num_ranks"]);
                Some((line, meant.unwrap_or_else(|| format!("found `{}`", word_of(word)))))
            }
            None => Some((self.words.last_line(), "found the end of the file".to_owned())),
        };
        if let Some((line, found)) = wrong {
            let what = format!("a GOAL schedule begins with num_ranks and their number: {found}");
            return Err((line, Problem::Invalid(what)));
        }
        let (ranks, line) = self.number("the number of ranks")?;
        match u32::try_from(ranks) {
            Ok(ranks @ 1..) => Ok((ranks, line)),
            Ok(0) => Err((line, Problem::Invalid("num_ranks is 0".to_owned()))),
            Err(_) => Err((line, Problem::TooLarge(format!("num_ranks {ranks}")))),
        }
    }

    /// `rank N { … }`: the rank and its line; `None` at the end.
    fn rank(&mut self) -> Parsed<Option<(u32, u32)>> {
        if self.words.peek().is_none() {
            return Ok(None);
        }
        self.expect(b"rank", "rank")?;
        let (rank, line) = self.number("a rank")?;
        let rank = self.checked_rank(rank, line)?;
        self.operations(rank)?;
        Ok(Some((rank, line)))
    }

    fn operations(&mut self, rank: u32) -> Parsed<()> {
        self.expect(b"{", "{")?;
        let mut labels = Labels::new(self.words.len());
        // A label may be used before its operation.
        let mut named = Vec::new();
        loop {
            let Some((word, line)) = self.words.next() else {
                return Err((self.words.last_line(), expected("} or an operation", None)));
            };
            match word {
                [b'}'] => break,
                b"send" | b"recv" | b"calc" => self.operation(rank, word, line)?,
                label => match self.words.next() {
                    Some(([b':'], _)) => {
                        let operation = self.graph.operations.len() as u32;
                        if let Some(before) = labels.insert(label, operation) {
                            let before = self.graph.operations[before as usize].place;
                            let twice =
                                format!("label `{}` was there before, on line {before}", word_of(label));
                            return Err((line, Problem::Invalid(twice)));
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
                        let requires = word == b"requires";
                        match (labels.get(other), labels.get(label)) {
                            (Some(first), Some(second)) => self.edge(requires, (first, second)),
                            _ => {
                                // Edges keep the order of the file.
                                named.push((label, other, requires, line, self.edges(requires).len()));
                                self.edge(requires, (u32::MAX, u32::MAX));
                            }
                        }
                    }
                    other => {
                        let edge = || misspelt(other?.0, &["requires", "irequires"]);
                        let problem = misspelt(label, &WORDS).or_else(edge).map(Problem::Invalid);
                        return Err((
                            line,
                            problem.unwrap_or_else(|| expected("a colon, requires or irequires", other)),
                        ));
                    }
                },
            }
        }
        for (label, other, requires, line, at) in named {
            let find = |label: &[u8]| {
                let missing = || format!("this rank has no operation `{}`", word_of(label));
                labels.get(label).ok_or_else(|| (line, Problem::Invalid(missing())))
            };
            let pair = (find(other)?, find(label)?);
            self.edges(requires)[at] = pair;
        }
        Ok(())
    }

    fn edges(&mut self, requires: bool) -> &mut Vec<(u32, u32)> {
        if requires { &mut self.graph.requires } else { &mut self.graph.starts }
    }

    fn edge(&mut self, requires: bool, pair: (u32, u32)) {
        self.edges(requires).push(pair);
    }

    fn operation(&mut self, rank: u32, word: &[u8], line: u32) -> Parsed<()> {
        let what = match word {
            b"calc" => {
                let (time, line) = self.number("a time")?;
                let time = time.checked_mul(1000).ok_or((line, Problem::TooLarge(time.to_string())))?;
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
                return Err((line, Problem::TooLarge(number.to_string())));
            }
            *place = number as u32;
        }
        if self.graph.operations.len() >= MOST_OPERATIONS {
            return Err((line, Problem::TooLarge("the number of operations".to_owned())));
        }
        self.graph.operations.push(Operation { what, rank, cpu, nic, place: line });
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
        u32::try_from(tag).map(Some).map_err(|_| (line, Problem::TooLarge(format!("tag {tag}"))))
    }

    /// Parses `100b`.
    fn bytes(&mut self) -> Parsed<Bytes> {
        let wanted = "a size like 100b";
        let Some((word, line)) = self.words.next() else {
            return Err((self.words.last_line(), expected(wanted, None)));
        };
        let bytes = word.strip_suffix(b"b").and_then(parse_number);
        bytes.map(Bytes).ok_or_else(|| (line, expected(wanted, Some((word, line)))))
    }

    fn checked_rank(&self, rank: u64, line: u32) -> Parsed<u32> {
        let ranks = self.ranks;
        let checked = u32::try_from(rank).ok().filter(|&rank| rank < ranks);
        checked.ok_or((line, Problem::NoRank { rank, ranks }))
    }

    fn number(&mut self, wanted: &'static str) -> Parsed<(u64, u32)> {
        let Some((word, line)) = self.words.next() else {
            return Err((self.words.last_line(), expected(wanted, None)));
        };
        let number = parse_number(word);
        number.map(|number| (number, line)).ok_or_else(|| (line, expected(wanted, Some((word, line)))))
    }

    fn expect(&mut self, word: &[u8], wanted: &'static str) -> Parsed<()> {
        match self.words.next() {
            Some((found, _)) if found == word => Ok(()),
            found => {
                Err((found.map_or_else(|| self.words.last_line(), |(_, line)| line), expected(wanted, found)))
            }
        }
    }
}

/// The operations of a rank by their labels.
struct Labels<'a> {
    /// Places in `named`.
    places: HashTable<u32>,
    named: Vec<(&'a [u8], u32)>,
    hasher: DefaultHashBuilder,
}

impl<'a> Labels<'a> {
    /// For a block of so many bytes.
    fn new(length: usize) -> Self {
        // A labelled operation and its dependencies, as they are usually written.
        const BYTES: usize = 40;
        let places = HashTable::with_capacity(length / BYTES);
        Self { places, named: Vec::with_capacity(length / BYTES), hasher: DefaultHashBuilder::default() }
    }

    fn get(&self, label: &[u8]) -> Option<u32> {
        // Dependencies are usually written below their operation.
        if let Some(&(last, operation)) = self.named.last()
            && last == label
        {
            return Some(operation);
        }
        let is = |&place: &u32| self.named[place as usize].0 == label;
        let place = *self.places.find(self.hasher.hash_one(label), is)?;
        Some(self.named[place as usize].1)
    }

    /// Adds a label; the operation that has it already, if there is one.
    fn insert(&mut self, label: &'a [u8], operation: u32) -> Option<u32> {
        let Self { places, named, hasher } = self;
        let is = |&place: &u32| named[place as usize].0 == label;
        let hash = |&place: &u32| hasher.hash_one(named[place as usize].0);
        match places.entry(hasher.hash_one(label), is, hash) {
            Entry::Occupied(there) => Some(named[*there.get() as usize].1),
            Entry::Vacant(free) => {
                free.insert(named.len() as u32);
                named.push((label, operation));
                None
            }
        }
    }
}

fn parse_number(word: &[u8]) -> Option<u64> {
    let value = |digit: &u8| match digit.wrapping_sub(b'0') {
        value @ 0..10 => Some(u64::from(value)),
        _ => None,
    };
    match word.len() {
        0 => None,
        // It cannot overflow.
        1..20 => word.iter().try_fold(0, |sum, digit| Some(sum * 10 + value(digit)?)),
        _ => word.iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(value(digit)?)),
    }
}

/// What one of `names`, misspelt, is meant to be.
fn misspelt(word: &[u8], names: &[&str]) -> Option<String> {
    let word = word_of(word);
    let meant = nearest(&word, names.iter().copied()).filter(|name| *name != word)?;
    Some(format!("found `{word}`: did you mean {meant}?"))
}

fn word_of(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned()
}

fn expected(expected: &'static str, found: Option<(&[u8], u32)>) -> Problem {
    let found = found.map_or("the end of the file".to_owned(), |(word, _)| format!("`{}`", word_of(word)));
    Problem::Expected { expected, found }
}

/// Writes a text.
#[derive(Debug)]
pub struct TextWriter<W: Write> {
    out: W,
    ranks: u32,
    next: u32,
    /// Lines that are not in the output.
    lines: Vec<u8>,
}

/// Bytes of lines that are written to the output at a time.
const BLOCK: usize = 256 << 10;

impl<W: Write> TextWriter<W> {
    /// Begins a schedule of `ranks` ranks. `out` needs no buffer.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(mut out: W, ranks: u32) -> io::Result<Self> {
        writeln!(out, "num_ranks {ranks}")?;
        Ok(Self { out, ranks, next: 0, lines: Vec::new() })
    }

    /// Writes the operations of the next rank, with labels l1, l2 …
    ///
    /// # Errors
    /// Those of the output.
    pub fn rank(&mut self, graph: &RankGraph) -> io::Result<()> {
        self.words("\nrank ", self.next.into());
        self.lines.extend(b" {\n");
        let (requires, starts) = (below(&graph.requires), below(&graph.starts));
        let (mut requires, mut starts) = (requires.iter().peekable(), starts.iter().peekable());
        for (number, operation) in (0..).zip(&graph.operations) {
            self.words("l", u64::from(number) + 1);
            match operation.what {
                What::Send { bytes, to, tag } => {
                    self.words(": send ", bytes.0);
                    self.words("b to ", to.into());
                    self.words(" tag ", tag.into());
                }
                What::Receive { bytes, from, tag } => {
                    self.words(": recv ", bytes.0);
                    self.words_or_any("b from ", from);
                    self.words_or_any(" tag ", tag);
                }
                What::Compute { time } => self.words(": calc ", time.0 / 1000),
            }
            for (name, place) in [(" cpu ", operation.cpu), (" nic ", operation.nic)] {
                if place > 0 {
                    self.words(name, place.into());
                }
            }
            self.lines.push(b'\n');
            let is_here = |edge: &&(u32, u32)| edge.0.max(edge.1) == number;
            while let Some(&edge) = requires.next_if(is_here) {
                self.edge(" requires l", edge);
            }
            while let Some(&edge) = starts.next_if(is_here) {
                self.edge(" irequires l", edge);
            }
            if self.lines.len() > BLOCK {
                self.hand_over()?;
            }
        }
        self.next += 1;
        self.lines.extend(b"}\n");
        self.hand_over()
    }

    /// A text and a number.
    fn words(&mut self, text: &str, value: u64) {
        self.lines.extend(text.as_bytes());
        number(&mut self.lines, value);
    }

    fn words_or_any(&mut self, text: &str, value: Option<u32>) {
        match value {
            Some(value) => self.words(text, value.into()),
            None => {
                self.lines.extend(text.as_bytes());
                self.lines.extend(b"-1");
            }
        }
    }

    /// The line of a dependency.
    fn edge(&mut self, kind: &str, (first, second): (u32, u32)) {
        self.words("l", u64::from(second) + 1);
        self.words(kind, u64::from(first) + 1);
        self.lines.push(b'\n');
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    /// Ends the file; ranks that were not written are empty.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        while self.next < self.ranks {
            self.rank(&RankGraph::default())?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Dependencies in the order of their lines: below the later of their operations, because a label must be above its use.
fn below(edges: &[(u32, u32)]) -> Cow<'_, [(u32, u32)]> {
    let line = |&(first, second): &(u32, u32)| first.max(second);
    match edges.is_sorted_by_key(line) {
        true => edges.into(),
        false => {
            let mut edges = edges.to_vec();
            edges.sort_by_key(line);
            edges.into()
        }
    }
}

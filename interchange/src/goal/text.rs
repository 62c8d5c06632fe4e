//! Reads and writes GOAL in text, a rank at a time.

use super::labels::Labels;
use super::operation::{MOST_OPERATIONS, Operation, RankGraph, What};
use super::words::{Blocks, Words};
use crate::decimal::number;
use crate::error::{Problem, Result};
use memchr::memchr;
use std::borrow::Cow;
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
        Some(word) if nearest(&word_of(word), ["num_ranks"]).is_some() => true,
        Some(b"rank") => {
            words.next().is_some_and(|number| number.iter().all(u8::is_ascii_digit)) && words.pass(b"{")
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
    /// Reads the whole lines of a rank within which the file ends.
    pub(super) partial: bool,
    /// The line of such an end.
    pub(super) cut: Option<u32>,
}

/// A problem and its line.
type Parsed<T> = std::result::Result<T, (u32, Problem)>;

impl TextReader {
    /// Reads the number of ranks.
    pub(super) fn new(path: &Path, input: Box<dyn Read>) -> Result<Self> {
        let mut blocks = Blocks::new(input);
        let length = blocks.load().map_err(|error| Problem::from(error).of_file(path))?;
        let graph = &mut RankGraph::default();
        let mut parser = Parser { words: blocks.words(length), ranks: 0, is_cut: false, graph };
        let header = parser.header();
        let ranks = header.map_err(|(line, problem)| Located::line(path, line.into(), problem))?;
        let path = path.to_path_buf();
        Ok(Self { path, blocks, loaded: Some(length), ranks, line: 1, partial: false, cut: None })
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
        let is_cut = self.partial && self.blocks.is_cut(length);
        let whole = if is_cut { self.blocks.whole_lines(length) } else { length };
        let mut parser = Parser { words: self.blocks.words(whole), ranks: self.ranks, is_cut, graph };
        let parsed = match first {
            true => parser.header().and_then(|_| parser.rank()),
            false => parser.rank(),
        };
        let line = parser.words.line;
        if is_cut {
            self.cut = Some(self.blocks.last_line(whole));
        }
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
    /// Whether the file ends within the block: then the statements that are whole are read.
    is_cut: bool,
    graph: &'g mut RankGraph,
}

/// A dependency on a label that may be that of a later operation.
struct Named<'a> {
    label: &'a [u8],
    other: &'a [u8],
    requires: bool,
    line: u32,
    /// Its place among the dependencies of its kind.
    at: usize,
}

impl<'a> Parser<'a, '_> {
    /// The number of ranks.
    fn header(&mut self) -> Parsed<u32> {
        let found = match self.words.next() {
            Some(b"num_ranks") => None,
            Some(word) if word.starts_with(b"#") => Some("its comments are // and /* */, not #".to_owned()),
            Some(word) => {
                let found = || format!("found `{}`", word_of(word));
                Some(misspelt(word, &["num_ranks"]).unwrap_or_else(found))
            }
            None => {
                self.words.line = self.words.last_line();
                Some("found the end of the file".to_owned())
            }
        };
        if let Some(found) = found {
            let what = format!("a GOAL schedule begins with num_ranks and their number: {found}");
            return Err(self.wrong(Problem::Invalid(what)));
        }
        let ranks = self.number("the number of ranks")?;
        match u32::try_from(ranks) {
            Ok(ranks @ 1..) => Ok(ranks),
            Ok(0) => Err(self.wrong(Problem::Invalid("num_ranks is 0".to_owned()))),
            Err(_) => Err(self.wrong(Problem::TooLarge(format!("num_ranks {ranks}")))),
        }
    }

    /// `rank N { … }`: the rank and its line; `None` at the end.
    fn rank(&mut self) -> Parsed<Option<(u32, u32)>> {
        if !self.words.any() {
            return Ok(None);
        }
        let (rank, line) = match self.head() {
            Err(_) if self.ends_cut() => return Ok(None),
            head => head?,
        };
        self.operations(rank)?;
        Ok(Some((rank, line)))
    }

    /// `rank N {`: the rank and its line.
    fn head(&mut self) -> Parsed<(u32, u32)> {
        self.expect(b"rank", "rank")?;
        let rank = self.number("a rank")?;
        let (rank, line) = (self.checked_rank(rank)?, self.words.line);
        self.expect(b"{", "{")?;
        Ok((rank, line))
    }

    /// Whether what was read last is where the file is cut.
    fn ends_cut(&mut self) -> bool {
        self.is_cut && !self.words.any()
    }

    fn operations(&mut self, rank: u32) -> Parsed<()> {
        let mut labels = Labels::of(self.words.len());
        // A label may be used before its operation.
        let mut named = Vec::new();
        loop {
            match self.statement(rank, &mut labels, &mut named) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) if self.ends_cut() => break,
                Err(error) => return Err(error),
            }
        }
        let operations = self.graph.operations.len() as u32;
        let is_cut = self.is_cut;
        for Named { label, other, requires, line, at } in named {
            let find = |word| {
                let missing = || format!("this rank has no operation `{}`", word_of(word));
                // The last label may be that of an operation that is cut.
                let found = labels.find(word).filter(|&found| found < operations);
                found.ok_or_else(|| (line, Problem::Invalid(missing())))
            };
            let edges = if requires { &mut self.graph.requires } else { &mut self.graph.starts };
            match (find(other), find(label)) {
                (Ok(first), Ok(second)) => edges[at] = (first, second),
                _ if is_cut => {}
                (Err(error), _) | (_, Err(error)) => return Err(error),
            }
        }
        if is_cut {
            // Those on operations behind the cut.
            self.graph.requires.retain(|&(first, _)| first != u32::MAX);
            self.graph.starts.retain(|&(first, _)| first != u32::MAX);
        }
        // A block ends behind its rank, unless its end looked like a comment.
        match self.words.next() {
            None => Ok(()),
            Some(found) => Err(self.wrong(Problem::Invalid(format!(
                "found `{}` behind the end of rank {rank}: one of its words has // or /* in it",
                word_of(found)
            )))),
        }
    }

    /// An operation or a dependency; `false`: the end of the rank.
    #[inline]
    fn statement(&mut self, rank: u32, labels: &mut Labels<'a>, named: &mut Vec<Named<'a>>) -> Parsed<bool> {
        let Some(label) = labels.read(&mut self.words) else {
            return Err(self.expected("} or an operation"));
        };
        match label.word {
            b"}" => return Ok(false),
            b"send" | b"recv" | b"calc" => return self.operation(rank, label.word).map(|()| true),
            _ => {}
        }
        let line = self.words.line;
        if self.words.pass(b":") {
            if let Some(before) = labels.insert(label, self.graph.operations.len() as u32) {
                let before = self.graph.operations[before as usize].place;
                let twice = format!("label `{}` was there before, on line {before}", word_of(label.word));
                return Err((line, Problem::Invalid(twice)));
            }
            let Some(word) = self.words.next() else { return Err(self.expected("send, recv or calc")) };
            return self.operation(rank, word).map(|()| true);
        }
        let requires = self.words.pass(b"requires");
        if !requires && !self.words.pass(b"irequires") {
            let found = self.words.next();
            let edge = || misspelt(found?, &["requires", "irequires"]);
            let meant = misspelt(label.word, &WORDS).or_else(edge).map(Problem::Invalid);
            let problem = meant.unwrap_or_else(|| wanted("a colon, requires or irequires", found));
            return Err((line, problem));
        }
        let line = self.words.line;
        let Some(other) = labels.read(&mut self.words) else { return Err(self.expected("a label")) };
        let edges = if requires { &mut self.graph.requires } else { &mut self.graph.starts };
        edges.push(match (labels.get(other), labels.get(label)) {
            (Some(first), Some(second)) => (first, second),
            _ => {
                // Edges keep the order of the file.
                named.push(Named { label: label.word, other: other.word, requires, line, at: edges.len() });
                (u32::MAX, u32::MAX)
            }
        });
        Ok(true)
    }

    fn operation(&mut self, rank: u32, word: &[u8]) -> Parsed<()> {
        let line = self.words.line;
        let what = match word {
            b"calc" => {
                let time = self.number("a time")?;
                match time.checked_mul(1000) {
                    Some(time) => What::Compute { time: Picos(time) },
                    None => return Err(self.wrong(Problem::TooLarge(time.to_string()))),
                }
            }
            b"send" => {
                let bytes = self.bytes()?;
                self.expect(b"to", "to")?;
                let to = self.number("a rank")?;
                let to = self.checked_rank(to)?;
                What::Send { bytes, to, tag: self.tag()?.unwrap_or(0) }
            }
            b"recv" => {
                let bytes = self.bytes()?;
                self.expect(b"from", "from")?;
                let from = if self.words.pass(b"-1") {
                    None
                } else {
                    let from = self.number("a rank or -1")?;
                    Some(self.checked_rank(from)?)
                };
                What::Receive { bytes, from, tag: self.tag()? }
            }
            _ => {
                let meant = misspelt(word, &["send", "recv", "calc"]).map(Problem::Invalid);
                return Err((line, meant.unwrap_or_else(|| wanted("send, recv or calc", Some(word)))));
            }
        };
        let (mut cpu, mut nic) = (0, 0);
        loop {
            let place = if self.words.pass(b"cpu") {
                &mut cpu
            } else if self.words.pass(b"nic") {
                &mut nic
            } else {
                break;
            };
            let number = self.number("a number")?;
            // Each one takes memory in all ranks.
            if number >= 1024 {
                return Err(self.wrong(Problem::TooLarge(number.to_string())));
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
    #[inline]
    fn tag(&mut self) -> Parsed<Option<u32>> {
        if !self.words.pass(b"tag") {
            return Ok(Some(0));
        }
        if self.words.pass(b"-1") {
            return Ok(None);
        }
        let tag = self.number("a tag or -1")?;
        match u32::try_from(tag) {
            Ok(tag) => Ok(Some(tag)),
            Err(_) => Err(self.wrong(Problem::TooLarge(format!("tag {tag}")))),
        }
    }

    /// Parses `100b`.
    #[inline]
    fn bytes(&mut self) -> Parsed<Bytes> {
        match self.words.number(b"b") {
            Some(bytes) => Ok(Bytes(bytes)),
            None => Err(self.expected("a size like 100b")),
        }
    }

    #[inline]
    fn checked_rank(&self, rank: u64) -> Parsed<u32> {
        match u32::try_from(rank) {
            Ok(rank) if rank < self.ranks => Ok(rank),
            _ => Err(self.wrong(Problem::NoRank { rank, ranks: self.ranks })),
        }
    }

    #[inline]
    fn number(&mut self, what: &'static str) -> Parsed<u64> {
        match self.words.number(b"") {
            Some(number) => Ok(number),
            None => Err(self.expected(what)),
        }
    }

    #[inline]
    fn expect<const N: usize>(&mut self, word: &[u8; N], what: &'static str) -> Parsed<()> {
        if self.words.pass(word) { Ok(()) } else { Err(self.expected(what)) }
    }

    /// Something else is wanted than the next word.
    #[cold]
    fn expected(&mut self, what: &'static str) -> (u32, Problem) {
        let found = self.words.next();
        if found.is_none() {
            self.words.line = self.words.last_line();
        }
        self.wrong(wanted(what, found))
    }

    /// A problem of the word that was read last.
    #[cold]
    fn wrong(&self, problem: Problem) -> (u32, Problem) {
        (self.words.line, problem)
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

fn wanted(expected: &'static str, found: Option<&[u8]>) -> Problem {
    let found = found.map_or("the end of the file".to_owned(), |word| format!("`{}`", word_of(word)));
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

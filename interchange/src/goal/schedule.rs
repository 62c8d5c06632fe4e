//! A schedule of all ranks in memory.

use super::binary::{self, BinaryReader, ReadSeek};
use super::operation::{Operation, RankGraph};
use super::text::{self, TextReader};
use crate::calls::summing::missing;
use crate::error::{Problem, Result};
use crate::files::{self, Files};
use crate::progress::Progress;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use vef_format::error::Located;

/// Most processors, or interfaces, of all ranks together, unless each rank has one; each takes tens of bytes.
const MOST_PLACES: u64 = 1 << 22;

/// Reads a schedule, in text or binary, a rank at a time.
pub struct Reader {
    path: PathBuf,
    form: Form,
}

enum Form {
    Text(TextReader),
    Binary(BinaryReader),
}

impl Reader {
    /// Opens a file in text or in binary, also compressed by gzip. Of one that is cut, what is whole is read if it is `partial`.
    ///
    /// # Errors
    /// The file cannot be read, or begins otherwise.
    pub fn open(path: &Path, partial: bool) -> Result<Self> {
        let mut opened = match binary::is_binary(&Files::start(path)?) {
            true => Self::binary(path, Box::new(files::open_seekable(path, partial)?))?,
            false => {
                let input = if partial { files::open_cut(path)? } else { files::open(path)? };
                Self { path: path.to_path_buf(), form: Form::Text(TextReader::new(path, input)?) }
            }
        };
        match &mut opened.form {
            Form::Text(reader) => reader.partial = partial,
            Form::Binary(reader) => reader.partial = partial,
        }
        Ok(opened)
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// They begin otherwise.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        if binary::is_binary(&bytes) {
            return Self::binary(path, Box::new(Cursor::new(bytes)));
        }
        let input: Box<dyn Read> = Box::new(Cursor::new(bytes));
        Ok(Self { path: path.to_path_buf(), form: Form::Text(TextReader::new(path, input)?) })
    }

    fn binary(path: &Path, input: Box<dyn ReadSeek>) -> Result<Self> {
        Ok(Self { path: path.to_path_buf(), form: Form::Binary(BinaryReader::new(path, input)?) })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        match &self.form {
            Form::Text(reader) => reader.ranks,
            Form::Binary(reader) => reader.ranks,
        }
    }

    /// Bytes read; of a compressed file, those that it has without compression.
    pub fn read(&self) -> u64 {
        match &self.form {
            Form::Text(reader) => reader.read(),
            Form::Binary(reader) => reader.read,
        }
    }

    /// Where the file is cut, if a part of a rank is left out for that.
    fn cut(&self) -> Option<String> {
        let path = self.path.display();
        match &self.form {
            Form::Text(reader) => {
                Some(format!("{path}: the file ends within a rank, behind line {}", reader.cut?))
            }
            Form::Binary(reader) => {
                Some(format!("{path}: the file ends within the operations of rank {}", reader.cut?))
            }
        }
    }

    /// Line of the header of the rank that was read last; 0 of a binary file.
    fn line(&self) -> u32 {
        match &self.form {
            Form::Text(reader) => reader.line,
            Form::Binary(_) => 0,
        }
    }

    /// Reads the operations of the next rank, in the order of the file; `None` after the last.
    ///
    /// # Errors
    /// The file cannot be read, or is invalid.
    pub fn next(&mut self, graph: &mut RankGraph) -> Result<Option<u32>> {
        graph.clear();
        self.append(graph)
    }

    /// Appends the operations of the next rank; `None` after the last.
    fn append(&mut self, graph: &mut RankGraph) -> Result<Option<u32>> {
        match &mut self.form {
            Form::Text(reader) => reader.append(graph),
            Form::Binary(reader) => reader.append(graph),
        }
    }
}

/// A schedule of operations for all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Number of ranks.
    pub ranks: u32,
    /// The operations, grouped by rank.
    pub operations: Vec<Operation>,
    /// Index after the last operation of each rank.
    pub ends: Vec<u32>,
    /// Dependencies: (required, requiring).
    pub requires: Vec<(u32, u32)>,
    /// Dependencies: the second starts when the first has started.
    pub starts: Vec<(u32, u32)>,
    /// Ranks that are not in the file: they have no operations.
    pub missing: Vec<u32>,
    /// Of a file that is cut: where.
    pub cut: Option<String>,
    /// Whether it was read from a binary file.
    pub is_binary: bool,
}

impl Schedule {
    /// Whether a file is a schedule, in text or binary.
    pub fn is_schedule(path: &Path) -> bool {
        Files::start(path).is_ok_and(|start| text::is_text(&start) || binary::is_binary(&start))
    }

    /// Reads a file, which may be cut, or lack ranks, if it is `partial`.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub fn read(path: &Path, partial: bool, progress: &dyn Progress) -> Result<Self> {
        let length = std::fs::metadata(path).map_or(0, |file| file.len());
        Self::of(Reader::open(path, partial)?, length, partial, |read| progress.set(read, length.max(read)))
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// They are invalid.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let length = bytes.len() as u64;
        Self::of(Reader::from_bytes(path, bytes)?, length, false, |_| {})
    }

    /// Reads `length` bytes, or more if they are compressed.
    fn of(mut reader: Reader, length: u64, partial: bool, progress: impl Fn(u64)) -> Result<Self> {
        let ranks = reader.ranks();
        let is_binary = matches!(reader.form, Form::Binary(_));
        let mut graph = RankGraph::default();
        // By rank, once found: its line, the first operation and the one after the last. It grows with what is read: do not
        // allocate per-rank memory on the number in the header alone.
        let mut found: Vec<Option<(u32, u32, u32)>> = Vec::new();
        let (mut in_order, mut before, mut from) = (true, 0, 0);
        // Most processors, or interfaces, of a rank.
        let mut places = 0;
        while let Some(rank) = reader.append(&mut graph)? {
            progress(reader.read());
            let place = rank as usize;
            if place > found.len() + 16 * (reader.read() as usize + 1) {
                let what = format!("num_ranks {ranks}: of so many ranks, without those before rank {rank},");
                return Err(Problem::TooLarge(what).of_file(&reader.path));
            }
            found.resize(found.len().max(place + 1), None);
            if let Some((line, _, _)) = found[place] {
                let twice = Problem::Invalid(format!("rank {rank} was there before, on line {line}"));
                return Err(Located::line(&reader.path, reader.line().into(), twice));
            }
            in_order &= rank >= before;
            before = rank;
            let to = graph.operations.len() as u32;
            found[place] = Some((reader.line(), from, to));
            let of_rank = graph.operations[from as usize..].iter();
            places = of_rank.fold(places, |most, operation| most.max(operation.cpu).max(operation.nic));
            if from == 0 {
                graph.reserve((length / reader.read().max(1)) as usize);
            }
            from = to;
        }
        let cut = reader.cut();
        if graph.operations.is_empty() && cut.is_some() {
            return Err(Problem::Truncated("the first rank").of_file(&reader.path));
        }
        let RankGraph { operations, requires, starts } = graph;
        let there = |rank: u32| found.get(rank as usize).is_some_and(Option::is_some);
        let missing = missing(ranks.into(), found.iter().flatten().count(), there, partial)
            .map_err(|problem| problem.of_file(&reader.path))?;
        let mut schedule =
            Self { ranks, operations, ends: Vec::new(), requires, starts, missing, cut, is_binary };
        // All ranks have as many as the largest.
        let places = u64::from(places + 1) * u64::from(ranks);
        if places > MOST_PLACES.max(ranks.into()) {
            let what = format!("{places} processors or interfaces of all ranks");
            return Err(Problem::TooLarge(what).of_file(&reader.path));
        }
        if !in_order {
            schedule.sort(&found);
        }
        let mut end = 0;
        for rank in 0..ranks as usize {
            let (_, from, to) = found.get(rank).copied().flatten().unwrap_or_default();
            end += to - from;
            schedule.ends.push(end);
        }
        Ok(schedule)
    }

    /// Sorts operations by rank.
    fn sort(&mut self, of_ranks: &[Option<(u32, u32, u32)>]) {
        let mut places = vec![0u32; self.operations.len()];
        let mut sorted = Vec::with_capacity(places.len());
        for &(_, from, to) in of_ranks.iter().flatten() {
            for operation in from..to {
                places[operation as usize] = sorted.len() as u32;
                sorted.push(self.operations[operation as usize]);
            }
        }
        self.operations = sorted;
        for (first, second) in self.requires.iter_mut().chain(&mut self.starts) {
            (*first, *second) = (places[*first as usize], places[*second as usize]);
        }
    }

    /// Where an operation stands in the file: `line 5` or `operation 5`.
    pub fn place(&self, operation: u32) -> String {
        let place = self.operations[operation as usize].place;
        if self.is_binary { format!("operation {place}") } else { format!("line {place}") }
    }
}

//! Reads and writes GOAL in the binary form of LogGOPSim's `txt2bin`, a rank at a time.
//!
//! ```text
//! 0    u64   4223                                    8    u32 ranks, u8 highest cpu, u8 highest nic
//! 14   for each rank u64 begin, u64 end, counted from byte 8
//! begin      u32 nodes, u32 roots, the numbers of the roots, the nodes (39 bytes each), the appendix
//! ```
//!
//! The appendix has for each node those that require it, then those that irequire it. Numbers are little-endian.

use super::operation::{MOST_OPERATIONS, Operation, RankGraph, What};
use crate::error::{ImportError, Problem, Result};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use vef_format::error::{Located, Place};
use vef_format::units::{Bytes, Picos};

const MAGIC: u64 = 4223;
/// That of a file which LogGOPSim has used up (`--save-mem`).
const USED_UP: u64 = 2342;
/// Offset from which `begin` and `end` count.
const BASE: u64 = 8;
/// Offset of the table of ranks.
const TABLE: u64 = 14;
const NODE: usize = 39;
/// A source or tag that may be any.
const ANY: u32 = u32::MAX;

/// Input that can be read at any place.
pub(super) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Whether a file is a binary schedule.
pub(super) fn is_binary(start: &[u8]) -> bool {
    let magic = start.first_chunk().map(|magic| u64::from_le_bytes(*magic));
    matches!(magic, Some(MAGIC | USED_UP))
}

/// Reads a binary file.
pub(super) struct BinaryReader {
    path: PathBuf,
    input: Box<dyn ReadSeek>,
    length: u64,
    next: u32,
    bytes: Vec<u8>,
    pub(super) ranks: u32,
    /// Bytes read.
    pub(super) read: u64,
    /// Leaves out ranks that the file ends before or within. What they require stands behind their operations.
    pub(super) partial: bool,
    /// The first rank that was left out.
    pub(super) cut: Option<u32>,
}

impl BinaryReader {
    /// Reads the header.
    pub(super) fn new(path: &Path, mut input: Box<dyn ReadSeek>) -> Result<Self> {
        let io = |error: io::Error| Problem::from(error).of_file(path);
        let length = input.seek(SeekFrom::End(0)).map_err(io)?;
        input.rewind().map_err(io)?;
        let mut head = [0; TABLE as usize];
        if length < TABLE {
            return Err(at(path, length, Problem::Truncated("the header")));
        }
        input.read_exact(&mut head).map_err(io)?;
        if u64_at(&head, 0) == USED_UP {
            let what = "a schedule that LogGOPSim has overwritten (--save-mem)".to_owned();
            return Err(Problem::Unsupported { what, advice: "make it again with txt2bin" }.of_file(path));
        }
        let ranks = u32_at(&head, 8);
        if u64::from(ranks) > (length - TABLE) / 16 {
            return Err(at(path, length, Problem::Truncated("the table of ranks")));
        }
        if ranks == 0 {
            return Err(at(path, BASE, Problem::Invalid("a schedule of 0 ranks".to_owned())));
        }
        let (path, bytes) = (path.to_path_buf(), Vec::new());
        Ok(Self { path, input, length, next: 0, bytes, ranks, read: 0, partial: false, cut: None })
    }

    fn load(&mut self, offset: u64, length: usize) -> Result<()> {
        let io = |error: io::Error| Problem::from(error).of_file(&self.path);
        self.input.seek(SeekFrom::Start(offset)).map_err(io)?;
        self.bytes.resize(length, 0);
        self.input.read_exact(&mut self.bytes).map_err(io)
    }

    /// The next rank, and the bytes of its operations; `None` after the last.
    fn next_range(&mut self) -> Result<Option<(u32, u64, u64)>> {
        while self.next < self.ranks {
            let rank = self.next;
            self.next += 1;
            let entry = TABLE + 16 * u64::from(rank);
            self.load(entry, 16)?;
            let [begin, end] = [0, 8].map(|at| u64_at(&self.bytes, at).checked_add(BASE));
            let range = begin.zip(end).filter(|&(begin, end)| begin <= end && end - begin >= 8);
            let Some((begin, end)) = range else {
                let what = format!("rank {rank} ends before it begins");
                return Err(at(&self.path, entry, Problem::Invalid(what)));
            };
            if end <= self.length {
                return Ok(Some((rank, begin, end)));
            }
            if !self.partial {
                let what = "the operations of a rank";
                return Err(at(&self.path, self.length, Problem::Truncated(what)));
            }
            self.cut.get_or_insert(rank);
        }
        Ok(None)
    }

    /// Appends the operations of the next rank; `None` after the last.
    pub(super) fn append(&mut self, graph: &mut RankGraph) -> Result<Option<u32>> {
        let Some((rank, begin, end)) = self.next_range()? else { return Ok(None) };
        self.load(begin, (end - begin) as usize)?;
        self.read += end - begin;
        let nodes = Nodes { path: &self.path, begin, bytes: &self.bytes, rank, ranks: self.ranks };
        nodes.parse(graph)?;
        Ok(Some(rank))
    }
}

/// The bytes of a rank.
struct Nodes<'a> {
    path: &'a Path,
    begin: u64,
    bytes: &'a [u8],
    rank: u32,
    ranks: u32,
}

impl Nodes<'_> {
    fn invalid(&self, offset: usize, what: String) -> ImportError {
        at(self.path, self.begin + offset as u64, Problem::Invalid(what))
    }

    fn parse(&self, graph: &mut RankGraph) -> Result<()> {
        let [nodes, roots] = [0, 4].map(|at| u32_at(self.bytes, at));
        let first = 8 + 4 * u64::from(roots);
        let appendix = first + NODE as u64 * u64::from(nodes);
        let length = self.bytes.len() as u64;
        if appendix > length || !(length - appendix).is_multiple_of(4) {
            let what = format!("rank {} has {length} bytes, not room for its {nodes} operations", self.rank);
            return Err(self.invalid(0, what));
        }
        let (first, appendix) = (first as usize, appendix as usize);
        let base = graph.operations.len();
        if base + nodes as usize > MOST_OPERATIONS {
            let problem = Problem::TooLarge("the number of operations".to_owned());
            return Err(at(self.path, self.begin, problem));
        }
        let base = base as u32;
        let followers: Vec<u32> =
            self.bytes[appendix..].chunks_exact(4).map(|bytes| u32_at(bytes, 0)).collect();
        let mut depend = vec![0u32; nodes as usize];
        let mut edges = 0;
        graph.operations.reserve(nodes as usize);
        let all = self.bytes[first..appendix].chunks_exact(NODE);
        for (number, (node, offset)) in all.zip((first..).step_by(NODE)).enumerate() {
            let number = number as u32;
            graph.operations.push(self.node(node, number, offset)?);
            for (is_start, many, from) in [(false, 23, 27), (true, 31, 35)] {
                let (many, from) = (u32_at(node, many) as usize, u32_at(node, from) as usize);
                let Some(those) = followers.get(from..).and_then(|rest| rest.get(..many)) else {
                    let what = format!("{many} dependencies from {from} on of {}", followers.len());
                    return Err(self.invalid(offset, what));
                };
                edges += many;
                if edges > followers.len() {
                    return Err(self.invalid(offset, "dependencies that overlap".to_owned()));
                }
                let pairs = if is_start { &mut graph.starts } else { &mut graph.requires };
                for &second in those {
                    let Some(depend) = depend.get_mut(second as usize) else {
                        let what = format!("a dependency of operation {second} of {nodes}");
                        return Err(self.invalid(offset, what));
                    };
                    *depend += 1;
                    pairs.push((base + number, base + second));
                }
            }
        }
        let counted = |number: usize| u32_at(self.bytes, first + NODE * number);
        if let Some(number) = (0..nodes as usize).find(|&number| counted(number) != depend[number]) {
            let what = format!(
                "operation {number} of rank {} has {} dependencies, not {}",
                self.rank,
                depend[number],
                counted(number)
            );
            return Err(self.invalid(first + NODE * number, what));
        }
        let free = depend.iter().filter(|&&depend| depend == 0).count();
        if free != roots as usize {
            let what = format!("rank {} has {free} operations without dependencies, not {roots}", self.rank);
            return Err(self.invalid(4, what));
        }
        Ok(())
    }

    fn node(&self, node: &[u8], number: u32, offset: usize) -> Result<Operation> {
        let [peer, tag] = [5, 17].map(|at| u32_at(node, at));
        let amount = u64_at(node, 9);
        let checked = |peer: u32| match peer < self.ranks {
            true => Ok(peer),
            false => {
                let problem = Problem::NoRank { rank: peer.into(), ranks: self.ranks };
                Err(at(self.path, self.begin + offset as u64, problem))
            }
        };
        let what = match node[4] {
            1 => What::Send { bytes: Bytes(amount), to: checked(peer)?, tag },
            2 => What::Receive {
                bytes: Bytes(amount),
                from: (peer != ANY).then(|| checked(peer)).transpose()?,
                tag: (tag != ANY).then_some(tag),
            },
            3 => {
                let time = amount.checked_mul(1000).map(Picos);
                let too_large = || Problem::TooLarge(format!("a time of {amount} ns"));
                let time = time.ok_or_else(|| at(self.path, self.begin + offset as u64, too_large()))?;
                What::Compute { time }
            }
            other => {
                let what = format!("an operation of type {other}, not 1 (send), 2 (recv) or 3 (calc)");
                return Err(self.invalid(offset, what));
            }
        };
        let [cpu, nic] = [21, 22].map(|at| node[at].into());
        Ok(Operation { what, rank: self.rank, cpu, nic, place: number })
    }
}

fn at(path: &Path, offset: u64, problem: Problem) -> ImportError {
    Located { place: Place::offset(path, offset), problem }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Writes a binary file, which must be seekable: the table of ranks in front is filled last.
#[derive(Debug)]
pub struct BinaryWriter<W: Write + Seek> {
    out: W,
    ranks: u32,
    table: Vec<u8>,
    end: u64,
    highest: [u8; 2],
}

/// Why a schedule cannot be written in binary.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// That of the output.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A number does not fit.
    #[error("rank {rank}: {what} does not fit into a binary schedule")]
    TooLarge {
        /// The rank.
        rank: u32,
        /// What does not fit.
        what: String,
    },
}

impl<W: Write + Seek> BinaryWriter<W> {
    /// Begins a schedule of `ranks` ranks.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(mut out: W, ranks: u32) -> io::Result<Self> {
        let end = TABLE + 16 * u64::from(ranks);
        io::copy(&mut io::repeat(0).take(end), &mut out)?;
        Ok(Self { out, ranks, table: Vec::new(), end, highest: [0; 2] })
    }

    /// Writes the operations of the next rank.
    ///
    /// # Errors
    /// Those of the output, or a number that does not fit.
    pub fn rank(&mut self, graph: &RankGraph) -> std::result::Result<(), BinaryError> {
        let rank = (self.table.len() / 16) as u32;
        let too_large = |what: String| BinaryError::TooLarge { rank, what };
        let nodes = graph.operations.len();
        let edges = graph.requires.len() + graph.starts.len();
        if nodes.max(edges) >= ANY as usize {
            return Err(too_large(format!("{nodes} operations with {edges} dependencies")));
        }
        let mut depend = vec![0u32; nodes];
        for &(_, second) in graph.requires.iter().chain(&graph.starts) {
            depend[second as usize] += 1;
        }
        let [requires, starts] = [&graph.requires, &graph.starts].map(|edges| Followers::of(edges, nodes));
        let roots: Vec<u32> = (0..nodes as u32).filter(|&node| depend[node as usize] == 0).collect();
        let length = 8 + 4 * roots.len() + NODE * nodes + 4 * edges;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend((nodes as u32).to_le_bytes());
        bytes.extend((roots.len() as u32).to_le_bytes());
        bytes.extend(roots.iter().flat_map(|root| root.to_le_bytes()));
        let mut appendix: Vec<u32> = Vec::with_capacity(edges);
        for (number, operation) in graph.operations.iter().enumerate() {
            let (kind, peer, amount, tag) = match operation.what {
                What::Send { bytes, to, tag } => (1u8, to, bytes.0, tag),
                What::Receive { bytes, from, tag } => (2, from.unwrap_or(ANY), bytes.0, tag.unwrap_or(ANY)),
                What::Compute { time } => (3, 0, time.0 / 1000, 0),
            };
            let [cpu, nic] = [operation.cpu, operation.nic].map(u8::try_from);
            let (Ok(cpu), Ok(nic)) = (cpu, nic) else {
                return Err(too_large(format!("cpu {} or nic {}", operation.cpu, operation.nic)));
            };
            self.highest = [self.highest[0].max(cpu), self.highest[1].max(nic)];
            let mut node = [0; NODE];
            let mut put = |at: usize, value: &[u8]| node[at..at + value.len()].copy_from_slice(value);
            put(0, &depend[number].to_le_bytes());
            put(4, &[kind]);
            put(5, &peer.to_le_bytes());
            put(9, &amount.to_le_bytes());
            put(17, &tag.to_le_bytes());
            put(21, &[cpu, nic]);
            for (at, edges) in [(23, &requires), (31, &starts)] {
                let followers = edges.of_node(number);
                put(at, &(followers.len() as u32).to_le_bytes());
                put(at + 4, &(appendix.len() as u32).to_le_bytes());
                appendix.extend(followers);
            }
            bytes.extend(node);
        }
        bytes.extend(appendix.iter().flat_map(|follower| follower.to_le_bytes()));
        self.out.write_all(&bytes)?;
        self.table.extend((self.end - BASE).to_le_bytes());
        self.end += bytes.len() as u64;
        self.table.extend((self.end - BASE).to_le_bytes());
        Ok(())
    }

    /// Ends the file; ranks that were not written are empty.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> std::result::Result<W, BinaryError> {
        while self.table.len() < 16 * self.ranks as usize {
            self.rank(&RankGraph::default())?;
        }
        self.out.rewind()?;
        self.out.write_all(&MAGIC.to_le_bytes())?;
        self.out.write_all(&self.ranks.to_le_bytes())?;
        self.out.write_all(&self.highest)?;
        self.out.write_all(&self.table)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The operations that depend on each operation, in the order of the dependencies.
struct Followers {
    /// Where those of each operation begin, and the end of the last.
    from: Vec<u32>,
    all: Vec<u32>,
}

impl Followers {
    fn of(edges: &[(u32, u32)], nodes: usize) -> Self {
        let mut from = vec![0; nodes + 1];
        for &(first, _) in edges {
            from[first as usize] += 1;
        }
        let mut sum = 0;
        for from in &mut from {
            sum += *from;
            *from = sum;
        }
        let mut all = vec![0; edges.len()];
        for &(first, second) in edges.iter().rev() {
            let place = &mut from[first as usize];
            *place -= 1;
            all[*place as usize] = second;
        }
        Self { from, all }
    }

    fn of_node(&self, node: usize) -> &[u32] {
        &self.all[self.from[node] as usize..self.from[node + 1] as usize]
    }
}

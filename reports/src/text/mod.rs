//! Time-independent text traces: [`write()`] makes them from a capture, [`aggregate`] adds them up.
//!
//! The aggregation is that of MinI Parser ("MinI", diploma thesis, NTUA, chapter 4).
//! The files of all ranks are read in turns, a line each, phase by phase: a phase begins (and ends) for the reader when every rank
//! has said so. What is written, into `parserOutput`:
//!
//! - `communicators.txt`: each communicator with its members, ranks of `MPI_COMM_WORLD`;
//! - `global.txt` and a file for each phase: what was sent there, and where the program went from there;
//! - `overall.txt` (ours): how often each such record is in the whole run.
//!
//! Records are `(src dst bytes contig|no_contig communicator)` for each send, `(op root bytes kind communicator)` from the root's
//! line, `(op bytes kind communicator)` once all members have shown theirs; of the vector forms, `least/median/most` bytes.

mod error;
mod lines;
mod output;
mod sheets;
mod source;

pub use error::TextError;
pub use lines::write;

use error::placed;
use results::text::Aggregated;
use sheets::{COMMUNICATORS, OVERALL, Sheets};
use source::Source;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use vef_format::new_directory::NewDirectory;
use vef_format::time_independent::{Collective, Line, Load, Message, RANKS_FILE};

/// What the buffers of all files together take, bytes.
const BUFFERS: usize = 1 << 26;
/// The communicator of all ranks.
const WORLD: &str = "MPI_COMM_WORLD";

/// Aggregates the text traces in `directory` into its `parserOutput`.
///
/// # Errors
/// See [`TextError`].
pub fn aggregate(directory: &Path) -> Result<Aggregated, TextError> {
    let files = rank_files(directory)?;
    let target = directory.join("parserOutput");
    let failed = |error| placed(&target, error);
    let new = NewDirectory::replace(&target).map_err(failed)?;
    let mut run = Run::new(files, &new)?;
    while run.segment()? {}
    let summary = run.finish()?;
    new.finish().map_err(failed)?;
    Ok(summary)
}

fn rank_file(directory: &Path, rank: usize) -> PathBuf {
    directory.join(format!("ti_trace{rank}.txt"))
}

/// The files of all ranks.
fn rank_files(directory: &Path) -> Result<Vec<PathBuf>, TextError> {
    let failed = |error| placed(directory, error);
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let rank = |name: &str| name.strip_prefix("ti_trace")?.strip_suffix(".txt")?.parse::<usize>().ok();
        found.extend(name.to_str().and_then(rank));
    }
    if found.is_empty() {
        return Err(TextError::Nothing(directory.into()));
    }
    let ranks = expected_ranks(directory)?.unwrap_or(found.len());
    let path = |rank| rank_file(directory, rank);
    if let Some(missing) = (0..ranks).find(|rank| !found.contains(rank)) {
        return Err(TextError::Missing(path(missing)));
    }
    match found.len() > ranks {
        true => Err(TextError::OfAnotherRun { path: path(ranks), ranks }),
        false => Ok((0..ranks).map(path).collect()),
    }
}

/// How many ranks there were, by the file that the tool leaves beside the traces; MinI's own traces have none.
fn expected_ranks(directory: &Path) -> Result<Option<usize>, TextError> {
    let path = directory.join(RANKS_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(ranks) => Ok(Some(ranks)),
            Err(_) => Err(TextError::Line { path, line: 1, what: "not a number of ranks" }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(placed(&path, error)),
    }
}

/// A communicator.
#[derive(Debug)]
struct Members {
    size: u32,
    /// Ranks of `MPI_COMM_WORLD`.
    ranks: Vec<u32>,
}

/// The aggregation under way.
struct Run {
    sources: Vec<Source>,
    /// Whose turn it is.
    turns: VecDeque<usize>,
    /// Where each rank waits for the others; `None`: it is at its end, or has not come so far.
    waiting: Vec<Option<Boundary>>,
    communicators: BTreeMap<String, Members>,
    /// Rootless collectives that some members have shown: communicator, number and call, and how many have.
    shown: HashMap<(String, u64, String), u32>,
    overall: BTreeMap<String, u64>,
    sheets: Sheets,
    summary: Aggregated,
}

/// Where a phase begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Boundary {
    start: bool,
    name: String,
}

/// What a rank does that waits there, or has ended.
fn does(boundary: Option<&Boundary>) -> String {
    match boundary {
        Some(Boundary { start, name }) => format!("{} phase {name}", if *start { "begins" } else { "ends" }),
        None => "is at its end".to_owned(),
    }
}

impl Run {
    fn new(files: Vec<PathBuf>, output: &NewDirectory) -> Result<Self, TextError> {
        let ranks = files.len();
        let room = (BUFFERS / ranks).clamp(1 << 10, 1 << 17);
        let world = Members { size: ranks as u32, ranks: (0..ranks as u32).collect() };
        Ok(Self {
            sources: files.into_iter().map(|path| Source::new(path, room)).collect(),
            turns: (0..ranks).collect(),
            waiting: vec![None; ranks],
            communicators: BTreeMap::from([(WORLD.to_owned(), world)]),
            shown: HashMap::new(),
            overall: BTreeMap::new(),
            sheets: Sheets::new(output.path().to_owned())?,
            summary: Aggregated { ranks, output: output.target().to_owned(), ..Aggregated::default() },
        })
    }

    /// Reads on to the next beginning or end of a phase; `false`: to the end.
    fn segment(&mut self) -> Result<bool, TextError> {
        let mut text = String::new();
        while let Some(rank) = self.turns.pop_front() {
            if !self.sources[rank].next(&mut text)? {
                continue;
            }
            match Line::parse(&text).map_err(|what| self.wrong(rank, what))? {
                Line::Phase { start, name } => {
                    self.waiting[rank] = Some(Boundary { start, name: name.to_owned() });
                    continue;
                }
                Line::Other => {}
                Line::Communicator { caller, name, size } => self.communicator(rank, caller, name, size)?,
                Line::Message(message) => self.message(rank, &message)?,
                Line::Collective(collective) => self.collective(rank, &collective)?,
            }
            self.turns.push_back(rank);
        }
        let Some(boundary) = self.boundary()? else { return Ok(false) };
        self.waiting.fill(None);
        self.turns.extend(0..self.sources.len());
        if boundary.start {
            self.sheets.descend(&boundary.name)?
        } else {
            self.sheets.ascend()?
        }
        Ok(true)
    }

    fn wrong(&self, rank: usize, what: &'static str) -> TextError {
        let Source { path, line, .. } = &self.sources[rank];
        TextError::Line { path: path.clone(), line: *line, what }
    }

    /// Where all ranks wait; `None`: all are at their ends.
    fn boundary(&self) -> Result<Option<Boundary>, TextError> {
        let Some(first) = self.waiting.iter().position(Option::is_some) else { return Ok(None) };
        let boundary = &self.waiting[first];
        if let Some(rank) = self.waiting.iter().position(|other| other != boundary) {
            let Source { path, line, .. } = &self.sources[rank];
            return Err(TextError::Phases {
                path: path.clone(),
                line: *line,
                does: does(self.waiting[rank].as_ref()),
                other: self.sources[first].path.clone(),
                other_does: does(boundary.as_ref()),
            });
        }
        match boundary {
            Some(Boundary { start: false, name }) if self.sheets.innermost_phase() != Some(name) => {
                Err(self.wrong(first, "a phase ends that is not the innermost one"))
            }
            boundary => Ok(boundary.clone()),
        }
    }

    /// A record goes onto the current sheet and into the sum.
    fn record(&mut self, text: String) -> Result<(), TextError> {
        writeln!(self.sheets.current(), "{text}")?;
        *self.overall.entry(text).or_insert(0) += 1;
        Ok(())
    }

    fn communicator(&mut self, rank: usize, caller: u32, name: &str, size: u32) -> Result<(), TextError> {
        let known = self.communicators.entry(name.to_owned()).or_insert(Members { size, ranks: Vec::new() });
        known.ranks.push(caller);
        match known.size == size {
            true => Ok(()),
            false => Err(self.wrong(rank, "another rank says another size of this communicator")),
        }
    }

    fn message(&mut self, rank: usize, message: &Message<'_>) -> Result<(), TextError> {
        // A receive, or the receiving line of a Sendrecv: its sender shows it too.
        if !message.is_send() || message.first as usize != rank {
            return Ok(());
        }
        if message.comm == WORLD && message.peer >= self.sources.len() as i64 {
            let directory = self.sources[rank].path.parent().unwrap_or(Path::new(""));
            return Err(TextError::Missing(rank_file(directory, self.sources.len())));
        }
        self.summary.messages += 1;
        self.summary.bytes = self.summary.bytes.saturating_add(message.bytes);
        let kind = kind(message.contiguous);
        self.record(format!("({} {} {} {kind} {})", message.first, message.peer, message.bytes, message.comm))
    }

    fn collective(&mut self, rank: usize, collective: &Collective<'_>) -> Result<(), TextError> {
        let Collective { caller, call, load, root, contiguous, comm, last } = *collective;
        let mut text = format!("({call} ");
        if let Some(root) = root {
            let own = last.unwrap_or(u64::from(caller));
            if own != u64::from(root) {
                return Ok(());
            }
            let _ = write!(text, "{root} ");
        } else {
            let Some(number) = last else {
                return Err(self.wrong(rank, "a rootless collective without a number"));
            };
            let size = match self.communicators.get(comm) {
                Some(members) => members.size,
                // Each process has its own.
                None if comm == "MPI_COMM_SELF" => 1,
                None => return Err(self.wrong(rank, "an unknown communicator")),
            };
            if size > 1 {
                let key = (comm.to_owned(), number, call.to_owned());
                let count = self.shown.entry(key.clone()).or_insert(0);
                *count += 1;
                if *count < size {
                    return Ok(());
                }
                self.shown.remove(&key);
            }
        }
        let _ = match load {
            Load::Same(bytes) => write!(text, "{bytes} "),
            Load::Spread(least, median, most) => write!(text, "{least}/{median}/{most} "),
        };
        let _ = write!(text, "{} {comm})", kind(contiguous));
        self.summary.collectives += 1;
        self.record(text)
    }

    fn finish(mut self) -> Result<Aggregated, TextError> {
        self.summary.communicators = self.communicators.len();
        self.summary.incomplete = self.shown.len();
        let mut communicators = String::new();
        for (name, members) in &mut self.communicators {
            members.ranks.sort_unstable();
            members.ranks.dedup();
            // As Python prints it: ranks that were read are strings there.
            let quote = if name == WORLD { "" } else { "'" };
            let ranks: Vec<String> =
                members.ranks.iter().map(|rank| format!("{quote}{rank}{quote}")).collect();
            let _ = writeln!(
                communicators,
                "{name} {{'members': [{}], 'size': {}}}",
                ranks.join(", "),
                members.size
            );
        }
        self.sheets.write(COMMUNICATORS, &communicators)?;
        let mut overall: Vec<(&String, &u64)> = self.overall.iter().collect();
        overall.sort_by_key(|(_, count)| Reverse(**count));
        let overall: String =
            overall.into_iter().map(|(record, count)| format!("{count} {record}\n")).collect();
        self.sheets.write(OVERALL, &overall)?;
        self.summary.phases = self.sheets.finish()?;
        Ok(self.summary)
    }
}

fn kind(contiguous: bool) -> &'static str {
    if contiguous { "contig" } else { "no_contig" }
}

#[cfg(test)]
mod tests;

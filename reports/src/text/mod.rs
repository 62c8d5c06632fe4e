//! Aggregation of time-independent text traces, as MinI Parser does it ("MinI", diploma thesis, NTUA, chapter 4).
//!
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
mod new_directory;
mod source;

pub use error::TextError;

use crate::rank_files::{self, Found};
use error::placed;
use new_directory::NewDirectory;
use source::Source;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use vef_format::time_independent::{Collective, Line, Load, Message, RANKS_FILE};

/// What was aggregated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of phases, by name.
    pub phases: usize,
    /// Sends.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Communicators, `MPI_COMM_WORLD` included.
    pub communicators: usize,
    /// Collective operations without a root that not all members have shown: not written.
    pub incomplete: usize,
    /// Where it was written.
    pub output: PathBuf,
}

/// What the buffers of all files together take, bytes.
const BUFFERS: usize = 1 << 26;
/// The communicator of all ranks.
const WORLD: &str = "MPI_COMM_WORLD";
/// The name of what is outside all phases.
const GLOBAL: &str = "global";
/// The names of files that are no phase's.
const OURS: [&str; 3] = [GLOBAL, "communicators", "overall"];

/// Aggregates the text traces in `directory` into its `parserOutput`.
///
/// # Errors
/// See [`TextError`].
pub fn aggregate(directory: &Path) -> Result<Summary, TextError> {
    let found = rank_files::find(directory, "ti_trace", ".txt");
    let files = match found.map_err(|error| placed(directory, error))? {
        Found::All(files) => files,
        Found::Nothing => return Err(TextError::Nothing(directory.into())),
        Found::Missing(path) => return Err(TextError::Missing(path)),
    };
    if let Some(expected) = expected_ranks(directory)? {
        match files.len().cmp(&expected) {
            Ordering::Less => return Err(TextError::Missing(rank_file(directory, files.len()))),
            Ordering::Equal => {}
            Ordering::Greater => {
                return Err(TextError::OfAnotherRun {
                    path: rank_file(directory, expected),
                    ranks: expected,
                });
            }
        }
    }
    let new = NewDirectory::beside(directory.join("parserOutput"))?;
    let mut run = Run::new(files, &new)?;
    while run.segment()? {}
    let summary = run.finish()?;
    new.finish()?;
    Ok(summary)
}

fn rank_file(directory: &Path, rank: usize) -> PathBuf {
    directory.join(format!("ti_trace{rank}.txt"))
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

/// A file of the output.
struct Sheet {
    name: String,
    path: PathBuf,
    to: BufWriter<File>,
}

impl Sheet {
    fn open(name: &str, path: PathBuf) -> Result<Self, TextError> {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|error| placed(&path, error))?;
        Ok(Self { name: name.to_owned(), path, to: BufWriter::new(file) })
    }
}

/// The aggregation under way.
struct Run {
    sources: Vec<Source>,
    /// Whose turn it is.
    turns: VecDeque<usize>,
    /// Who waits for the others to begin or end a phase.
    waiting: Vec<(usize, Boundary)>,
    communicators: BTreeMap<String, Members>,
    /// Rootless collectives that some members have shown: communicator, number and call, and how many have.
    shown: HashMap<(String, u64, String), u32>,
    overall: BTreeMap<String, u64>,
    /// The current sheet, and those to come back to below it.
    sheets: Vec<Sheet>,
    /// Files that exist already, by phase.
    files: BTreeMap<String, PathBuf>,
    /// Where they are.
    directory: PathBuf,
    summary: Summary,
}

/// Where a phase begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Boundary {
    start: bool,
    name: String,
}

impl Boundary {
    fn says(&self) -> String {
        format!("{} phase {}", if self.start { "begins" } else { "ends" }, self.name)
    }
}

impl Run {
    fn new(files: Vec<PathBuf>, output: &NewDirectory) -> Result<Self, TextError> {
        let ranks = files.len();
        let room = (BUFFERS / ranks).clamp(1 << 10, 1 << 17);
        let world = Members { size: ranks as u32, ranks: (0..ranks as u32).collect() };
        let mut run = Self {
            sources: files.into_iter().map(|path| Source::new(path, room)).collect(),
            turns: (0..ranks).collect(),
            waiting: Vec::new(),
            communicators: BTreeMap::from([(WORLD.to_owned(), world)]),
            shown: HashMap::new(),
            overall: BTreeMap::new(),
            sheets: Vec::new(),
            files: BTreeMap::new(),
            directory: output.path.clone(),
            summary: Summary { ranks, output: output.target.clone(), ..Summary::default() },
        };
        let global = Sheet::open(GLOBAL, run.directory.join("global.txt"))?;
        run.sheets.push(global);
        Ok(run)
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
                    self.waiting.push((rank, Boundary { start, name: name.to_owned() }));
                    continue;
                }
                Line::Other => {}
                Line::Communicator { caller, name, size } => self.communicator(rank, caller, name, size)?,
                Line::Message(message) => self.message(rank, &message)?,
                Line::Collective(collective) => self.collective(rank, &collective)?,
            }
            self.turns.push_back(rank);
        }
        let Some((_, boundary)) = self.waiting.first().cloned() else { return Ok(false) };
        self.agree(&boundary)?;
        self.turns.extend(self.waiting.drain(..).map(|(rank, _)| rank));
        self.turns.make_contiguous().sort_unstable();
        if boundary.start {
            self.descend(&boundary.name)?
        } else {
            self.ascend()?
        }
        Ok(true)
    }

    fn wrong(&self, rank: usize, what: &'static str) -> TextError {
        let Source { path, line, .. } = &self.sources[rank];
        TextError::Line { path: path.clone(), line: *line, what }
    }

    /// All ranks that go on must be where the first one is.
    fn agree(&self, boundary: &Boundary) -> Result<(), TextError> {
        let first = self.waiting.first().map_or(0, |(rank, _)| *rank);
        let differs = |rank: usize, other: &Boundary| TextError::Phases {
            path: self.sources[rank].path.clone(),
            line: self.sources[rank].line,
            does: other.says(),
            other: self.sources[first].path.clone(),
            other_does: boundary.says(),
        };
        if let Some((rank, other)) = self.waiting.iter().find(|(_, other)| other != boundary) {
            return Err(differs(*rank, other));
        }
        if self.waiting.len() < self.sources.len() {
            let ended =
                (0..self.sources.len()).find(|rank| !self.waiting.iter().any(|(other, _)| other == rank));
            let ended = ended.unwrap_or(0);
            return Err(TextError::Phases {
                path: self.sources[ended].path.clone(),
                line: self.sources[ended].line,
                does: "is at its end".into(),
                other: self.sources[first].path.clone(),
                other_does: boundary.says(),
            });
        }
        let open = self.sheets.last().map(|sheet| sheet.name.as_str());
        if !boundary.start && (self.sheets.len() < 2 || open != Some(&boundary.name)) {
            return Err(self.wrong(first, "a phase ends that is not the innermost one"));
        }
        Ok(())
    }

    fn descend(&mut self, name: &str) -> Result<(), TextError> {
        let next = self.sheet(name)?;
        let (from, to) = (self.current_file(), file_name(&next.path));
        self.put(&format!("Going to {to}"))?;
        self.sheets.push(next);
        self.put(&format!("Coming from {from}"))
    }

    fn ascend(&mut self) -> Result<(), TextError> {
        let Some(mut ended) = self.sheets.pop() else { return Ok(()) };
        let (from, to) = (file_name(&ended.path), self.current_file());
        let written = writeln!(ended.to, "Returning to {to}").and_then(|()| ended.to.flush());
        written.map_err(|error| placed(&ended.path, error))?;
        self.put(&format!("Returned from {from}"))
    }

    /// The sheet of a phase, which may have been there before.
    fn sheet(&mut self, name: &str) -> Result<Sheet, TextError> {
        let path = match self.files.get(name) {
            Some(path) => path.clone(),
            None => {
                let path = self.unused_path(name);
                self.files.insert(name.to_owned(), path.clone());
                path
            }
        };
        Sheet::open(name, path)
    }

    /// A file's name may not hold everything that a phase's may, and two phases must not share one.
    fn unused_path(&self, name: &str) -> PathBuf {
        let clean: String =
            name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).take(100).collect();
        let clean = if clean.is_empty() || clean.starts_with('.') { format!("_{clean}") } else { clean };
        let taken = |stem: &str| {
            let path = self.directory.join(format!("{stem}.txt"));
            OURS.contains(&stem) || self.files.values().any(|other| *other == path)
        };
        let mut stem = clean.clone();
        let mut number = 2;
        while taken(&stem) {
            stem = format!("{clean}.{number}");
            number += 1;
        }
        self.directory.join(format!("{stem}.txt"))
    }

    fn current_file(&self) -> String {
        self.sheets.last().map(|sheet| file_name(&sheet.path)).unwrap_or_default()
    }

    fn put(&mut self, text: &str) -> Result<(), TextError> {
        let Some(sheet) = self.sheets.last_mut() else { return Ok(()) };
        writeln!(sheet.to, "{text}").map_err(|error| placed(&sheet.path, error))
    }

    /// A record goes onto the current sheet and into the sum.
    fn record(&mut self, text: String) -> Result<(), TextError> {
        self.put(&text)?;
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

    fn finish(mut self) -> Result<Summary, TextError> {
        // Where the program ended inside a phase, that ends with it.
        while self.sheets.len() > 1 {
            self.ascend()?;
        }
        if let Some(sheet) = self.sheets.last_mut() {
            sheet.to.flush().map_err(|error| placed(&sheet.path, error))?;
        }
        self.summary.phases = self.files.len();
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
        self.write("communicators.txt", &communicators)?;
        let mut overall: Vec<(&String, &u64)> = self.overall.iter().collect();
        overall.sort_by(|a, b| b.1.cmp(a.1));
        let overall: String = overall
            .into_iter()
            .fold(String::new(), |text, (record, count)| text + &format!("{count} {record}\n"));
        self.write("overall.txt", &overall)?;
        Ok(self.summary)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TextError> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(|error| placed(&path, error))
    }
}

fn kind(contiguous: bool) -> &'static str {
    if contiguous { "contig" } else { "no_contig" }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The listings of the thesis: a ring in four rounds, and a reduction in the halves of eight ranks.
    fn ring(rank: u32) -> String {
        let mut text = format!("{rank} init 1\n");
        for round in 0..4 {
            text += &format!(
                "Phase round{round} start.\n\
                 {rank} Irecv {} 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD\n\
                 {rank} send {} 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD\n\
                 {rank} wait\n\
                 Phase round{round} end.\n",
                (rank + 3) % 4,
                (rank + 1) % 4
            );
        }
        text + &format!("{rank} finalize\n")
    }

    fn halves(rank: u32) -> String {
        let half = rank % 2;
        format!(
            "{rank} init 1\n\
             {rank} Comm split. color={half}, key={rank}.New comm mini_comm_0_{half} of size 4\n\
             {rank} allReduce 1 (of 4 bytes) of type 1 on comm mini_comm_0_{half} 1\n\
             Comm mini_comm_0_{half} free.\n\
             {rank} finalize\n"
        )
    }

    fn aggregated(
        ranks: u32,
        text: impl Fn(u32) -> String,
    ) -> (tempfile::TempDir, Result<Summary, TextError>) {
        let work = tempfile::tempdir().unwrap();
        for rank in 0..ranks {
            std::fs::write(work.path().join(format!("ti_trace{rank}.txt")), text(rank)).unwrap();
        }
        let result = aggregate(work.path());
        (work, result)
    }

    fn output(work: &tempfile::TempDir, name: &str) -> String {
        std::fs::read_to_string(work.path().join("parserOutput").join(name)).unwrap()
    }

    #[test]
    fn the_ring_of_the_thesis() {
        let (work, summary) = aggregated(4, ring);
        let summary = summary.unwrap();
        assert_eq!((summary.ranks, summary.phases, summary.messages, summary.bytes), (4, 4, 16, 64));
        assert_eq!(
            output(&work, "communicators.txt"),
            "MPI_COMM_WORLD {'members': [0, 1, 2, 3], 'size': 4}\n"
        );
        let links: String =
            (0..4).map(|i| format!("Going to round{i}.txt\nReturned from round{i}.txt\n")).collect();
        assert_eq!(output(&work, "global.txt"), links);
        assert_eq!(
            output(&work, "round2.txt"),
            "Coming from global.txt\n(0 1 4 contig MPI_COMM_WORLD)\n(1 2 4 contig MPI_COMM_WORLD)\n\
             (2 3 4 contig MPI_COMM_WORLD)\n(3 0 4 contig MPI_COMM_WORLD)\nReturning to global.txt\n"
        );
        assert!(output(&work, "overall.txt").contains("4 (3 0 4 contig MPI_COMM_WORLD)\n"));
    }

    #[test]
    fn the_reduction_of_the_thesis() {
        let (work, summary) = aggregated(8, halves);
        assert_eq!(summary.unwrap().collectives, 2);
        assert_eq!(
            output(&work, "global.txt"),
            "(allReduce 4 contig mini_comm_0_0)\n(allReduce 4 contig mini_comm_0_1)\n"
        );
        let communicators = output(&work, "communicators.txt");
        assert!(communicators.contains("mini_comm_0_1 {'members': ['1', '3', '5', '7'], 'size': 4}\n"));
    }

    #[test]
    fn roots_sendrecv_and_nested_phases() {
        let (work, summary) = aggregated(2, |rank| {
            let other = 1 - rank;
            format!(
                "Phase a start.\nPhase b start.\n\
                 {rank} Sendrecv {other} 2 (of 8 bytes) 101 on comm MPI_COMM_WORLD\n\
                 {other} Sendrecv {rank} 2 (of 8 bytes) 101 on comm MPI_COMM_WORLD\n\
                 Phase b end.\n\
                 {rank} gatherv min=1 median=2 max=3 (of 4 bytes) 1 of type 1 on comm MPI_COMM_WORLD\n\
                 Phase a end.\nPhase b start.\nPhase b end.\n"
            )
        });
        assert_eq!(summary.unwrap().messages, 2);
        assert_eq!(
            output(&work, "a.txt"),
            "Coming from global.txt\nGoing to b.txt\nReturned from b.txt\n\
             (gatherv 1 4/8/12 contig MPI_COMM_WORLD)\nReturning to global.txt\n"
        );
        assert_eq!(
            output(&work, "b.txt"),
            "Coming from a.txt\n(0 1 16 no_contig MPI_COMM_WORLD)\n(1 0 16 no_contig MPI_COMM_WORLD)\nReturning to a.txt\n\
             Coming from global.txt\nReturning to global.txt\n"
        );
    }

    #[test]
    fn names_of_phases_stay_in_the_directory() {
        let (work, summary) = aggregated(1, |_| {
            let phase = |name: &str| format!("Phase {name} start.\nPhase {name} end.\n");
            phase("../x") + &phase("..x") + &phase("global") + &phase("_.._x")
        });
        assert_eq!(summary.unwrap().phases, 4);
        let mut names: Vec<_> = std::fs::read_dir(work.path().join("parserOutput"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 7, "{names:?}");
    }

    #[test]
    fn what_is_wrong_is_placed() {
        let said = |ranks, text: fn(u32) -> String| aggregated(ranks, text).1.unwrap_err().to_string();
        let garbled = said(2, |rank| format!("{rank} init 1\n{rank} send x\n"));
        assert!(garbled.contains("ti_trace0.txt:2: "), "{garbled}");
        let phases = said(2, |rank| format!("Phase {rank} start.\n"));
        assert!(phases.contains("ti_trace1.txt:1: this rank begins phase 1, but "), "{phases}");
        let ended = said(2, |rank| if rank == 0 { String::new() } else { "Phase x start.\n".into() });
        assert!(ended.contains("ti_trace0.txt:0: this rank is at its end, but "), "{ended}");
        let long = said(1, |_| "x".repeat(1 << 20));
        assert!(long.contains("ti_trace0.txt:1: longer"), "{long}");
        // The last rank's file is missing: somebody sent to it, or the tool says how many there were.
        let ended = said(3, ring);
        assert!(ended.ends_with("ti_trace3.txt is missing"), "{ended}");
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(aggregate(empty.path()), Err(TextError::Nothing(_))));
        std::fs::write(empty.path().join("ti_trace1.txt"), "").unwrap();
        assert!(matches!(aggregate(empty.path()), Err(TextError::Missing(_))));
    }

    #[test]
    fn the_number_of_ranks_is_held_against_the_files() {
        let (work, summary) = aggregated(2, |rank| format!("{rank} init 1\n{rank} finalize\n"));
        assert_eq!(summary.unwrap().ranks, 2);
        let with = |ranks: &str| {
            std::fs::write(work.path().join("ranks"), ranks).unwrap();
            aggregate(work.path()).map(|summary| summary.ranks).map_err(|error| error.to_string())
        };
        assert_eq!(with("2\n"), Ok(2));
        assert!(with("3\n").is_err_and(|said| said.ends_with("ti_trace2.txt is missing")));
        assert!(
            with("1\n")
                .is_err_and(|said| said.ends_with("ti_trace1.txt is of another run: this one had 1 ranks"))
        );
        assert!(with("x").is_err_and(|said| said.ends_with("ranks:1: not a number of ranks")));
    }

    #[test]
    fn what_fails_leaves_the_old_output() {
        let (work, summary) = aggregated(4, ring);
        summary.unwrap();
        let before = output(&work, "round2.txt");
        std::fs::write(work.path().join("ti_trace2.txt"), "2 init 1\n2 send x\n").unwrap();
        assert!(aggregate(work.path()).is_err());
        assert_eq!(output(&work, "round2.txt"), before);
        let names = std::fs::read_dir(work.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
        assert!(hidden.is_empty(), "{hidden:?}");
        // What is replaced is replaced as a whole.
        std::fs::write(work.path().join("parserOutput/stale.txt"), "").unwrap();
        for rank in 0..4 {
            std::fs::write(work.path().join(format!("ti_trace{rank}.txt")), ring(rank)).unwrap();
        }
        aggregate(work.path()).unwrap();
        assert!(!work.path().join("parserOutput/stale.txt").exists());
    }
}

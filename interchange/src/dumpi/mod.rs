//! DUMPI: the traces of SST's `libdumpi`, a binary file for each rank (`PREFIX-NNNN.bin`), and a text file about the run
//! (`PREFIX.meta`).
//!
//! A rank's file is a sequence of records, one for each call, with its arguments as the program passed them; handles are numbers of
//! the rank. `docs/interchange.md` says what is kept.

mod table;

mod record;

mod file;
mod meaning;

use crate::calls::arguments::Span;
use crate::calls::creations::{Lists, Op, Predefined, resolve};
use crate::calls::functions::Called;
use crate::calls::process::Process;
use crate::calls::recorder::Recorder;
use crate::calls::summing::{Sum, missing, write_missing};
use crate::error::{ImportError, Problem, Result};
use crate::files::{Files, Start};
use crate::format::Info;
use crate::options::{Options, Setting};
use crate::progress::Progress;
use crate::summary::Summary;
use file::{MAGIC, Parts, RankFile, in_words, stopped};
use meaning::{EMPTY_GROUP, ITSELF, WORLD, apply, creation, peer, set_sizes};
use record::{Record, Version, Wrong, label};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use table::KINDS;
use vef_format::capture::RankInfo;
use vef_format::error::{Located, Place};
use vef_format::ids::Rank;

/// The format.
pub(crate) const INFO: Info =
    Info::calls("dumpi", "DUMPI (SST), PREFIX-NNNN.bin for each rank and PREFIX.meta", recognises, import)
        .with(&[Setting::KeepGaps]);

/// Seconds after which the seconds of a time begin anew.
const WRAP: u64 = 1 << 16;

/// The suffix of a rank's file.
const SUFFIX: &str = "bin";

fn recognises(start: &Start<'_>) -> bool {
    start.bytes.starts_with(&MAGIC)
        || start.path.extension().is_some_and(|suffix| suffix == "meta")
            && meta(&String::from_utf8_lossy(start.bytes), "numprocs").is_some()
}

/// The value of a key in the text about the run.
fn meta<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}

/// The files of a run.
#[derive(Debug)]
struct Run {
    ranks: BTreeMap<u32, PathBuf>,
    /// Number of ranks.
    tasks: u32,
    /// Whether the text about the run says so.
    is_told: bool,
    missing: Vec<u32>,
    /// Version, host and sizes for files that were cut: those of another rank.
    sibling: Parts,
    whole: bool,
}

/// The prefix and the rank of a file's name.
fn rank_of(path: &Path) -> Option<(&str, u32)> {
    let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?.strip_suffix('.')?;
    let (prefix, rank) = name.rsplit_once('-')?;
    Some((prefix, rank.parse().ok()?))
}

/// The files; of a text about the run that is alone, also those of the ranks beside it.
fn with_ranks(files: &Files) -> Result<Vec<PathBuf>> {
    let [meta] = &files.paths[..] else { return Ok(files.paths.clone()) };
    let (true, Some(stem)) = (meta.extension().is_some_and(|suffix| suffix == "meta"), meta.file_stem())
    else {
        return Ok(files.paths.clone());
    };
    let directory = meta.parent().filter(|parent| !parent.as_os_str().is_empty());
    let beside = Files::of(&[directory.unwrap_or(Path::new(".")).to_path_buf()])?;
    let is_of_run = |path: &PathBuf| rank_of(path).is_some_and(|(prefix, _)| stem == prefix);
    Ok(beside.paths.into_iter().filter(is_of_run).chain([meta.clone()]).collect())
}

impl Run {
    fn open(files: &Files, options: &Options) -> Result<Self> {
        let (mut ranks, mut expected, mut prefix) = (BTreeMap::new(), None, None::<(String, PathBuf)>);
        for path in &with_ranks(files)? {
            if path.extension().is_some_and(|suffix| suffix == "meta") {
                let text = std::fs::read(path).map_err(|error| Problem::from(error).of_file(path))?;
                let count = meta(&String::from_utf8_lossy(&text), "numprocs").and_then(|it| it.parse().ok());
                expected = expected.or(count);
                continue;
            }
            let Some((of, rank)) = rank_of(path) else { continue };
            match &prefix {
                Some((prefix, first)) if prefix != of => {
                    let what = format!("is of another run than {}", first.display());
                    return Err(Problem::Invalid(what).of_file(path));
                }
                Some(_) => {}
                None => prefix = Some((of.to_owned(), path.clone())),
            }
            ranks.insert(rank, path.clone());
        }
        let of_files = |problem: Problem| problem.of_file(files.first());
        let Some((&highest, _)) = ranks.last_key_value() else {
            let found = "none".to_owned();
            return Err(of_files(Problem::Expected { expected: "files PREFIX-NNNN.bin", found }));
        };
        if options.partial {
            // Files that end in front of their first record are of missing ranks.
            let is_cut = |error: &ImportError| matches!(error.problem, Problem::Truncated(_));
            ranks.retain(|_, path| !RankFile::open(path).is_err_and(|error| is_cut(&error)));
        }
        let count = expected.unwrap_or(0).max(u64::from(highest) + 1);
        let there = |rank| ranks.contains_key(&rank);
        // What is not told, peers of messages and members of groups tell.
        let partial = options.partial || expected.is_none();
        let missing = missing(count, ranks.len(), there, partial).map_err(of_files)?;
        let (mut sibling, mut whole) = (None, true);
        for path in ranks.values() {
            let file = RankFile::open(path)?;
            whole &= file.parts.is_some();
            if sibling.is_none() {
                sibling = file.parts;
            }
            if !whole && !options.partial {
                let what =
                    "has no index: it was cut; vef import --partial imports the records that are whole";
                return Err(Problem::Invalid(what.to_owned()).of_file(path));
            }
        }
        let sibling = sibling.ok_or_else(|| {
            of_files(Problem::Invalid("no file has a header, which tells the version".to_owned()))
        })?;
        Ok(Self { ranks, tasks: count as u32, is_told: expected.is_some(), missing, sibling, whole })
    }
}

/// The records of a rank, with their times.
struct Records {
    file: RankFile,
    parts: Parts,
    record: Record,
    /// Records read.
    number: u64,
    /// Byte at which the current one begins.
    offset: u64,
    /// Multiples of [`WRAP`] in the times so far, and the latest time, s.
    wraps: u64,
    latest: u64,
    partial: bool,
    /// The byte at which a cut file's whole records end, and why.
    cut: Option<(u64, String)>,
}

impl Records {
    fn open(path: &Path, run: &Run, partial: bool) -> Result<Self> {
        let file = RankFile::open(path)?;
        let mut parts = file.parts.clone().unwrap_or_else(|| run.sibling.clone());
        if file.parts.is_none() {
            parts.not_recorded.clear();
        }
        if parts.sizes.is_empty() {
            parts.sizes.clone_from(&run.sibling.sizes);
        }
        Ok(Self {
            file,
            parts,
            record: Record::default(),
            number: 0,
            offset: 0,
            wraps: 0,
            latest: 0,
            partial,
            cut: None,
        })
    }

    fn version(&self) -> Version {
        self.parts.version
    }

    /// Reads the next record; `false`: there are no more.
    fn next(&mut self) -> Result<bool> {
        self.offset = self.file.input.offset();
        if self.offset >= self.file.end_of_body() && self.file.parts.is_some() {
            return Ok(false);
        }
        let what = match self.record.read(&mut self.file.input, self.parts.version) {
            Ok(more) => {
                self.number += u64::from(more);
                return Ok(more);
            }
            Err(Wrong::Stop(stop)) if !self.partial => {
                return Err(stopped(stop, "a record", &self.file.path, self.offset));
            }
            Err(Wrong::Stop(_)) => "the file ends within a record".to_owned(),
            Err(Wrong::Label(label)) => format!("no record has label {label}"),
            Err(Wrong::Count(count)) => format!("a list of {count} elements"),
        };
        if !self.partial {
            return Err(self.wrong(Problem::Invalid(what)));
        }
        self.cut = Some((self.offset, what));
        Ok(false)
    }

    /// The place of the current record.
    fn place(&self) -> Place {
        Place::record(&self.file.path, self.number.saturating_sub(1), self.offset)
    }

    /// A problem of the current record.
    fn wrong(&self, problem: Problem) -> ImportError {
        Located { place: self.place(), problem }
    }

    /// A time in ns.
    fn nanos(&mut self, (seconds, nanos): (u16, u32)) -> u64 {
        let mut time = self.wraps + u64::from(seconds);
        if time + WRAP / 2 < self.latest {
            self.wraps += WRAP;
            time += WRAP;
        }
        self.latest = self.latest.max(time);
        (time + u64::from(self.file.bias)) * 1_000_000_000 + u64::from(nanos)
    }

    /// The current record's time; without one, that of the record before.
    fn span(&mut self, before: u64) -> Span {
        let thread = self.record.thread;
        match self.record.wall {
            Some([start, end]) => Span { start: self.nanos(start), end: self.nanos(end), thread },
            None => Span { start: before, end: before, thread },
        }
    }
}

/// Imports a run into the directory of a capture.
fn import(files: &Files, directory: &Path, options: &Options, progress: &dyn Progress) -> Result<Summary> {
    let mut run = Run::open(files, options)?;
    let total: u64 = run.ranks.values().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
    let mut done = 0;
    let mut advance = |records: &Records| {
        done += records.file.input.len();
        progress.set(done, 2 * total);
    };
    let (mut ops, mut lists) = (vec![Vec::<Op>::new(); run.tasks as usize], Lists::default());
    // The highest rank that is named, if the text about the run is missing, and where.
    let mut named: Option<(u32, Place)> = None;
    for (&rank, path) in &run.ranks {
        let mut records = Records::open(path, &run, options.partial)?;
        while records.next()? {
            ops[rank as usize].extend(creation(&records.record, run.tasks, &mut lists));
            if !run.is_told
                && let Some(peer) = peer(&records.record)
                && peer >= named.as_ref().map_or(run.tasks, |(highest, _)| highest + 1)
            {
                named = Some((peer, records.place()));
            }
        }
        advance(&records);
    }
    if !run.is_told {
        let there = |rank| run.ranks.contains_key(&rank);
        let tasks = named.as_ref().map_or(run.tasks.into(), |(peer, _)| u64::from(*peer) + 1);
        let missing = missing(tasks, run.ranks.len(), there, options.partial);
        run.missing = missing.map_err(|problem| match named {
            Some((_, place)) => Located { place, problem },
            None => problem.of_file(files.first()),
        })?;
        run.tasks = tasks as u32;
        ops.resize(run.tasks as usize, Vec::new());
    }
    let predefined = Predefined { world: WORLD, itself: ITSELF, empty_group: EMPTY_GROUP };
    let mut created = resolve(predefined, ops);
    let mut sum = Sum::default();
    sum.summary.ranks = run.tasks;
    let mut not_recorded = BTreeMap::new();
    for (&rank, path) in &run.ranks {
        let mut records = Records::open(path, &run, options.partial)?;
        let info = RankInfo {
            rank: Rank(rank),
            tasks: run.tasks,
            host: records.parts.host.clone(),
            ..RankInfo::default()
        };
        let of_file = |problem: Problem| problem.of_file(path);
        let recorder = Recorder::create(directory, &info).map_err(of_file)?;
        let made = std::mem::take(&mut created[rank as usize]);
        let mut process =
            Process::new(recorder, run.tasks, (WORLD, ITSELF), made, options.partial).map_err(of_file)?;
        set_sizes(&mut process, &records.parts.sizes);
        read(&mut records, &mut process, options)?;
        for &(label, count) in &records.parts.not_recorded {
            *not_recorded.entry(label).or_insert(0) += u64::from(count);
        }
        sum.add(rank, process.finish().map_err(of_file)?);
        if let Some((byte, what)) = &records.cut {
            let path = records.file.path.display();
            sum.ends_early(rank, || format!("rank {rank} ends at byte {byte} of {path}: {what}"));
        }
        advance(&records);
    }
    for &rank in &run.missing {
        write_missing(directory, rank, run.tasks).map_err(|problem| problem.of_file(files.first()))?;
    }
    let not_recorded: Vec<_> = not_recorded.into_iter().collect();
    let lacking = not_recorded.iter().map(|&(_, count)| count).sum();
    let calls = || in_words(&not_recorded);
    sum.findings.many("calls not recorded, because the recording was switched off", lacking, calls);
    if !run.whole {
        sum.remark("files without an index, which were cut, have the version of the others".to_owned());
    }
    sum.summary.missing_ranks.clone_from(&run.missing);
    sum.finish(directory, files.first(), options)
}

/// Reads the records of a rank.
fn read(records: &mut Records, process: &mut Process, options: &Options) -> Result<()> {
    let mut called: Vec<Option<Called>> = vec![None; KINDS.len()];
    // What is between the first call and the next is no computing if calls there were not recorded.
    let mut gap = !records.parts.not_recorded.is_empty() && !options.keep_gaps;
    let (mut shift, mut before) = (0, 0);
    while records.next()? {
        let mut span = records.span(before + shift);
        let of_init = matches!(records.record.label, label::INIT | label::INIT_THREAD);
        if gap && !of_init && before > 0 {
            (shift, gap) = (span.start.saturating_sub(before), false);
        }
        (span.start, span.end) = (span.start.saturating_sub(shift), span.end.saturating_sub(shift));
        before = span.end;
        let at = usize::from(records.record.label);
        let result = function(process, &mut called[at], &records.record).and_then(|called| {
            process.recorder().count(span, called);
            apply(process, &records.record, records.version(), (span, called))
        });
        match result {
            Ok(()) => {}
            Err(problem) => return Err(records.wrong(problem)),
        }
    }
    Ok(())
}

fn function(
    process: &mut Process,
    known: &mut Option<Called>,
    record: &Record,
) -> std::result::Result<Called, Problem> {
    match known {
        Some(called) => Ok(*called),
        None => Ok(*known.insert(process.recorder().function(record.name())?)),
    }
}

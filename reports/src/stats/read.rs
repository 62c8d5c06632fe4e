//! One pass over a trace, by as many threads as the pool has.
//!
//! Threads share a container task by task, a text by stretches of lines. Sums do not depend on the order: any number of threads gives
//! the same.

use super::accounts::Accounts;
use super::collector::Collector;
use super::files::Files;
use super::phases::{PhasesOfTask, Within};
use hashbrown::{HashMap, HashSet};
use replay::{Extent, PlaceInPart, Selection};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use vef_format::container::{
    self, About, ContainerError, Note, Notes, PhaseMarks, Reader, Section, SectionStream, Span,
};
use vef_format::format::Format;
use vef_format::ids::Rank;
use vef_format::raw::Raw;
use vef_format::record::{Header, Version};
use vef_format::text::{self, Line, TextError};
use vef_format::units::Ticks;

/// Why a trace cannot be added up.
#[derive(Debug, thiserror::Error)]
pub enum StatsError {
    /// A text is wrong.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A container is wrong.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// It cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A header that promises more tasks than the file can have records of.
    #[error("{path}: the header promises {tasks} tasks, more than a trace of this length can have")]
    Tasks {
        /// The file.
        path: PathBuf,
        /// Tasks according to the header.
        tasks: u32,
    },
}

/// Refuses a header that promises more tasks than the file has bytes: no memory is allocated on its word alone.
fn check_tasks(path: &Path, header: &Header) -> Result<(), StatsError> {
    let tasks = header.tasks;
    let length =
        std::fs::metadata(path).map_err(|error| StatsError::Io { path: path.to_path_buf(), error })?;
    match header.promises_too_many_tasks(length.len()) {
        true => Err(StatsError::Tasks { path: path.to_path_buf(), tasks }),
        false => Ok(()),
    }
}

/// Receives the number of records read so far; several threads may call it at once.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// The head of a trace, and its sums.
pub(super) struct Pass {
    pub(super) header: Header,
    pub(super) is_container: bool,
    pub(super) about: About,
    pub(super) hosts: Option<Vec<String>>,
    pub(super) spans: Option<Vec<Span>>,
    /// The program's tasks that were recorded.
    pub(super) recorded: Vec<u32>,
    pub(super) accounts: Option<Accounts>,
    pub(super) files: Files,
    /// Settled: nothing is pending in it.
    pub(super) sums: Collector,
}

/// Bytes of a text that a thread takes at a time.
const STRETCH: u64 = 4 << 20;
/// Records between two reports of progress.
const OFTEN: u64 = 1 << 20;

/// Adds up the trace in the file `path`.
pub(super) fn read(path: &Path, extent: &Extent, progress: Progress<'_>) -> Result<Pass, StatsError> {
    let failed = |error| StatsError::Io { path: path.to_path_buf(), error };
    match Format::is_container(path).map_err(failed)? {
        true => read_container(path, extent, progress),
        false => read_text(path, extent.part.as_deref(), progress),
    }
}

/// Runs `work` on each thread of the pool with a collector of its own, for records that alternate between so many tasks, and merges
/// these.
fn share<E: Send>(
    header: &Header,
    alternating: u32,
    work: impl Fn(&mut Collector) -> Result<(), E> + Sync,
) -> Result<Collector, E> {
    let sums = Mutex::new(None::<Collector>);
    let ended = rayon::broadcast(|_| {
        let mut own = Collector::new(header, alternating);
        work(&mut own)?;
        own.settle_all();
        let mut sums = sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &mut *sums {
            Some(sums) => sums.merge(own),
            None => *sums = Some(own),
        }
        Ok(())
    });
    ended.into_iter().collect::<Result<(), E>>()?;
    let sums = sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(sums.unwrap_or_else(|| Collector::new(header, alternating)))
}

fn read_container(path: &Path, extent: &Extent, progress: Progress<'_>) -> Result<Pass, StatsError> {
    let reader = container::Reader::open(path)?;
    let header = *reader.header();
    check_tasks(path, &header)?;
    let tasks: Vec<Rank> = reader.tasks().collect();
    let notes = |section| NotesByTask::new(&reader, section);
    let (calls, phases, moments) =
        (notes(Section::Calls)?, notes(Section::Phases)?, notes(Section::Moments)?);
    let spans = reader.program_spans()?;
    let part = extent.part.as_deref();
    let span = |task: Rank| spans.as_ref()?.get(task.index()).copied();
    let next = AtomicUsize::new(0);
    let done = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let mut sums = share(&header, 1, |sums| {
        while let Some(&task) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
            && !failed.load(Ordering::Relaxed)
        {
            let records = reader.records_of(task);
            let added = match calls.of(task) {
                Some(calls) => add_calls(&reader, calls, (task, records), part, sums),
                None => Ok(()),
            };
            let added = added.and_then(|()| {
                let has_start = part.is_none_or(|part| part.has_start(task));
                let beginning = span(task).filter(|_| has_start).map(|span| (span, extent.from_launch));
                let marks = phases.of(task).map(|phases| PhaseMarks::new(phases, moments.of(task)));
                add_task(&reader, task, beginning, part, marks, sums)
            });
            failed.fetch_or(added.is_err(), Ordering::Relaxed);
            added?;
            progress(done.fetch_add(records, Ordering::Relaxed) + records);
        }
        Ok::<_, ContainerError>(())
    })?;
    let mut communicators = reader.communicators();
    while let Some((id, members)) = communicators.next()? {
        sums.communicators.insert(id, members.len() as u32);
    }
    let (about, hosts) = (reader.about().clone(), reader.hosts()?);
    // What was captured of a part is not known.
    let (accounts, files) = match part {
        None => (Accounts::read(&reader)?, Files::read(&reader)?),
        Some(_) => Default::default(),
    };
    let spans = spans.filter(|_| part.is_none());
    let recorded = recorded(&reader)?;
    Ok(Pass { header, is_container: true, about, hosts, spans, recorded, accounts, files, sums })
}

/// The program's tasks that were recorded. Others have neither records nor an account of their time.
fn recorded(reader: &Reader) -> Result<Vec<u32>, ContainerError> {
    let streams = reader.section(Section::Times.name())?;
    let accounted: HashSet<Rank> = streams.iter().filter_map(|stream| stream.task).collect();
    let of_program = 0..reader.about().program_tasks(reader.header().tasks);
    let is_recorded = |task: &u32| {
        let task = Rank(*task);
        accounted.is_empty() || accounted.contains(&task) || reader.records_of(task) > 0
    };
    Ok(of_program.filter(is_recorded).collect())
}

/// The notes of a section, by task.
struct NotesByTask {
    section: Section,
    streams: Vec<SectionStream>,
}

impl NotesByTask {
    fn new(reader: &Reader, section: Section) -> Result<Self, ContainerError> {
        let mut streams = reader.section(section.name())?;
        streams.sort_by_key(|stream| stream.task);
        Ok(Self { section, streams })
    }

    fn of(&self, task: Rank) -> Option<Notes> {
        let place = self.streams.binary_search_by_key(&Some(task), |stream| stream.task).ok()?;
        Some(Notes::new(self.section, &self.streams[place]))
    }
}

/// Adds the records of a task, and the sums of its phases, of which there are notes, from the end of `MPI_Init` on. `beginning`:
/// what is known of the task's start, and whether its time begins with the launch.
fn add_task(
    reader: &Reader,
    task: Rank,
    mut beginning: Option<(Span, bool)>,
    part: Option<&Selection>,
    phases: Option<PhaseMarks>,
    sums: &mut Collector,
) -> Result<(), ContainerError> {
    let mut records = reader.task(task);
    let mut tally = sums.of_task(task.0);
    let first = |raw: Raw, span: Span, from_launch| {
        let time = span.first(Ticks(raw.time), from_launch).0;
        Raw { time, ..raw }
    };
    if phases.is_none() && beginning.is_none() && part.is_none() {
        records.each_raw(|raw| tally.take(raw))?;
        tally.finish();
        return Ok(());
    }
    let mut phases = phases.map(|marks| PhasesOfTask::new(reader, marks, part.is_none())).transpose()?;
    let (mut followed, mut place, mut within) = (Ok(()), PlaceInPart::default(), Within::default());
    let mut stretches = part.map_or(&[][..], |part| part.stretches(task)).iter().peekable();
    // Computing behind a stretch is in front of the record that follows it.
    let mut behind = |number: u64, within: &mut Within| {
        within.computing.clear();
        while let Some(stretch) = stretches.next_if(|stretch| stretch.records.end == number) {
            let from = if stretch.records.is_empty() { stretch.before.0 } else { 0 };
            within.computing.push(from..from.saturating_add(stretch.behind.0));
        }
    };
    let mut number = 0;
    records.each_raw(|recorded| {
        let mut raw = *recorded;
        let is_inside = part.is_none_or(|part| part.take(task, &mut place, &mut raw).is_some());
        let (counted, running) = match beginning.take_if(|_| is_inside) {
            None => (raw, raw),
            Some((span, from_launch)) => (first(raw, span, from_launch), first(raw, span, false)),
        };
        if is_inside {
            tally.take(&counted);
        }
        if let (Some(phases), Ok(())) = (&mut phases, &followed) {
            within.record = is_inside.then_some(running);
            behind(number, &mut within);
            if is_inside {
                within.computing.push(recorded.time - running.time.min(recorded.time)..recorded.time);
            }
            followed = phases.add(recorded, &within);
        }
        number += 1;
    })?;
    followed?;
    part.into_iter()
        .flat_map(|part| part.stretches(task))
        .for_each(|stretch| tally.compute(stretch.behind.0));
    tally.finish();
    if let Some(phases) = phases {
        within.record = None;
        behind(number, &mut within);
        for (name, phase) in phases.finish(&within)? {
            sums.phases.entry(name).or_default().merge(phase);
        }
    }
    Ok(())
}

/// Counts a task's `records` by the function behind them. A note names the function of all records up to the next note.
fn add_calls(
    reader: &Reader,
    mut notes: Notes,
    (task, records): (Rank, u64),
    part: Option<&Selection>,
    sums: &mut Collector,
) -> Result<(), ContainerError> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut counts: Vec<u64> = Vec::new();
    let mut last: Option<(u64, usize)> = None;
    let within = |from: u64, to: u64| part.map_or(to.saturating_sub(from), |part| part.count(task, from..to));
    while let Some((place, note)) = notes.next(reader)? {
        let Note::Call(name) = note else { continue };
        let number = *numbers.entry_ref(name).or_insert_with(|| {
            counts.push(0);
            counts.len() - 1
        });
        if let Some((from, before)) = last.replace((place, number)) {
            counts[before] += within(from, place);
        }
    }
    if let Some((from, number)) = last {
        counts[number] += within(from, records);
    }
    for (name, number) in numbers {
        if counts[number] > 0 {
            *sums.calls.entry(name).or_default() += counts[number];
        }
    }
    Ok(())
}

fn read_text(path: &Path, part: Option<&Selection>, progress: Progress<'_>) -> Result<Pass, StatsError> {
    let header = *text::Reader::open(path)?.header();
    check_tasks(path, &header)?;
    let stretches = match header.version {
        // Which records of a part a stretch has, only a reader from the beginning knows.
        Version::V3 if part.is_some() => None,
        Version::V3 => stretches(path).map_err(|error| StatsError::Io { path: path.to_path_buf(), error })?,
        Version::V2 => None,
    };
    let done = AtomicU64::new(0);
    let together = stretches.map(|Stretches { first_line, places }| {
        let next = AtomicUsize::new(0);
        share(&header, header.tasks, |sums| {
            while let Some(stretch) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                let file = File::open(path).and_then(|mut file| {
                    file.seek(SeekFrom::Start(stretch.start))?;
                    Ok(file.take(stretch.end - stretch.start))
                });
                let file = file.map_err(|error| StatsError::Io { path: path.to_path_buf(), error })?;
                let lines = Cursor::new(first_line.as_slice()).chain(file);
                let reader = text::Reader::from_stream(lines, path)?.ignore_counts();
                add_lines(reader, None, sums, &|records| {
                    progress(done.fetch_add(records, Ordering::Relaxed) + records)
                })?;
            }
            Ok::<_, StatsError>(())
        })
    });
    // An error names its line, whose number only a reader from the beginning knows.
    let sums = match together {
        Some(Ok(sums)) if counts_fit(&header, &sums) => sums,
        _ => {
            let mut sums = Collector::new(&header, header.tasks);
            let done = AtomicU64::new(0);
            let tell = |records| progress(done.fetch_add(records, Ordering::Relaxed) + records);
            add_lines(text::Reader::open(path)?, part, &mut sums, &tell)?;
            sums.settle_all();
            sums
        }
    };
    let (about, files) = (About::default(), Files::default());
    let recorded = (0..header.tasks).collect();
    Ok(Pass {
        header,
        is_container: false,
        about,
        hosts: None,
        spans: None,
        recorded,
        accounts: None,
        files,
        sums,
    })
}

/// Whether the records are as many as the header says; if not, a reader from the beginning reports the error.
fn counts_fit(header: &Header, sums: &Collector) -> bool {
    let collectives: u64 = sums.tasks.iter().map(|task| task.collectives).sum();
    let records = sums.tagged(0, 0);
    records.checked_sub(collectives) == Some(header.messages)
        && collectives == header.local_collectives
        && sums.communicators.len() as u64 == header.communicators
}

/// A text in parts.
struct Stretches {
    first_line: Vec<u8>,
    /// Ranges of whole lines.
    places: Vec<Range<u64>>,
}

/// Divides a text into parts; `None`: it is too short for more than one.
fn stretches(path: &Path) -> io::Result<Option<Stretches>> {
    let mut file = BufReader::new(File::open(path)?);
    let length = file.get_ref().metadata()?.len();
    let mut line = Vec::new();
    let mut at = file.read_until(b'\n', &mut line)? as u64;
    let first_line = line.clone();
    let mut places = Vec::new();
    while at < length {
        let wanted = (at + STRETCH).min(length);
        file.seek(SeekFrom::Start(wanted))?;
        let end = match wanted == length {
            true => length,
            false => wanted + file.skip_until(b'\n')? as u64,
        };
        places.push(at..end);
        at = end;
    }
    Ok((places.len() > 1).then_some(Stretches { first_line, places }))
}

fn add_lines<R: Read>(
    mut reader: text::Reader<R>,
    part: Option<&Selection>,
    sums: &mut Collector,
    progress: &dyn Fn(u64),
) -> Result<(), TextError> {
    let mut untold = 0;
    let mut places = vec![PlaceInPart::default(); if part.is_some() { sums.tasks.len() } else { 0 }];
    let mut add = |sums: &mut Collector, task: Rank, mut raw: Raw| {
        if part.is_none_or(|part| part.take(task, &mut places[task.index()], &mut raw).is_some()) {
            sums.add(task.0, &raw);
        }
    };
    loop {
        match reader.next()? {
            None => break,
            Some(Line::Communicator { id, members }) => {
                sums.communicators.insert(id, members.len() as u32);
            }
            Some(Line::Message(message)) => add(sums, message.src, Raw::of_message(&message)),
            Some(Line::Collective(member)) => add(sums, member.task, Raw::of_collective(&member)),
        }
        untold += 1;
        if untold >= OFTEN {
            progress(std::mem::take(&mut untold));
        }
    }
    progress(untold);
    Ok(())
}

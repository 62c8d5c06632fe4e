//! One pass over a trace, by as many threads as the pool has.
//!
//! A container is shared out task by task, a text by stretches of lines. Adding up does not depend on the order, so that
//! any number of threads finds the same.

use super::collector::{Boundary, Collector};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use vef_format::container::{self, ContainerError, Note, Section};
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::raw::Raw;
use vef_format::record::{Header, Version};
use vef_format::text::{self, Line, TextError};

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
}

/// Is told how far the pass has come, in records; may be called by several threads at once.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// What a trace says of itself, and what it came to.
pub(super) struct Pass {
    pub(super) header: Header,
    pub(super) op_codes: OpCodes,
    pub(super) origin: Vec<(String, String)>,
    pub(super) hosts: Option<Vec<String>>,
    pub(super) sums: Collector,
    pub(super) is_container: bool,
}

/// Bytes of a text that a thread takes at a time.
const STRETCH: u64 = 4 << 20;
/// Records between two reports of progress.
const OFTEN: u64 = 1 << 20;

/// Adds up the trace in the file `path`.
pub(super) fn read(path: &Path, progress: Progress<'_>) -> Result<Pass, StatsError> {
    let failed = |error| StatsError::Io { path: path.to_path_buf(), error };
    match container::is_container(path).map_err(failed)? {
        true => read_container(path, progress),
        false => read_text(path, progress),
    }
}

/// Gives each thread of the pool one collector, and merges them.
fn share<E: Send>(
    header: &Header,
    work: impl Fn(&mut Collector) -> Result<(), E> + Sync,
) -> Result<Collector, E> {
    let sums = Mutex::new(None::<Collector>);
    let ended = rayon::broadcast(|_| {
        let mut own = Collector::new(header);
        work(&mut own)?;
        let mut sums = sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &mut *sums {
            Some(sums) => sums.merge(own),
            None => *sums = Some(own),
        }
        Ok(())
    });
    ended.into_iter().collect::<Result<(), E>>()?;
    let sums = sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(sums.unwrap_or_else(|| Collector::new(header)))
}

fn read_container(path: &Path, progress: Progress<'_>) -> Result<Pass, StatsError> {
    let reader = container::Reader::open(path)?;
    let header = *reader.header();
    let tasks: Vec<Rank> = reader.tasks().collect();
    let next = AtomicUsize::new(0);
    let done = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let mut sums = share(&header, |sums| {
        while let Some(&task) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
            && !failed.load(Ordering::Relaxed)
        {
            let added = add_task(&reader, task, sums);
            failed.fetch_or(added.is_err(), Ordering::Relaxed);
            let records = reader.records_of(task);
            added?;
            progress(done.fetch_add(records, Ordering::Relaxed) + records);
        }
        Ok::<_, ContainerError>(())
    })?;
    let mut communicators = reader.communicators();
    while let Some((id, members)) = communicators.next()? {
        sums.communicators.insert(id, members.len() as u32);
    }
    Ok(Pass {
        header,
        op_codes: reader.about().op_codes.clone(),
        origin: reader.about().origin.clone(),
        hosts: reader.hosts()?,
        sums,
        is_container: true,
    })
}

fn add_task(reader: &container::Reader, task: Rank, sums: &mut Collector) -> Result<(), ContainerError> {
    add_calls(reader, task, sums)?;
    let mut boundaries = Vec::new();
    let mut notes = reader.notes(Section::Phases, task)?;
    while let Some((place, note)) = notes.next(reader)? {
        if let Note::Phase { begin, name } = note {
            boundaries.push(Boundary { place, begins: begin.then(|| name.to_owned()) });
        }
    }
    let mut records = reader.task(task);
    if boundaries.is_empty() {
        let mut tally = sums.of_task(task.0);
        records.each_raw(|raw| tally.add(raw))?;
        tally.finish();
        return Ok(());
    }
    let mut boundaries = boundaries.into_iter().peekable();
    let mut open: Vec<String> = Vec::new();
    let mut number = 0;
    records.each_raw(|raw| {
        sums.pass_boundaries(&mut boundaries, number, &mut open);
        number += 1;
        sums.add(task.0, raw);
        if let Some(phase) = open.last().and_then(|name| sums.phases.get_mut(name)) {
            phase.add(raw);
        }
    })?;
    sums.pass_boundaries(&mut boundaries, number, &mut open);
    Ok(())
}

/// Counts the records of a task by the function behind them; a name holds up to the next one.
fn add_calls(reader: &container::Reader, task: Rank, sums: &mut Collector) -> Result<(), ContainerError> {
    let mut notes = reader.notes(Section::Calls, task)?;
    let mut last: Option<(u64, String)> = None;
    let mut count = |name: String, records: u64| *sums.calls.entry(name).or_default() += records;
    while let Some((place, note)) = notes.next(reader)? {
        let Note::Call(name) = note else { continue };
        let name = name.to_owned();
        if let Some((from, name)) = last.replace((place, name)) {
            count(name, place.saturating_sub(from));
        }
    }
    if let Some((from, name)) = last {
        count(name, reader.records_of(task).saturating_sub(from));
    }
    Ok(())
}

fn read_text(path: &Path, progress: Progress<'_>) -> Result<Pass, StatsError> {
    let header = *text::Reader::open(path)?.header();
    let stretches = match header.version {
        Version::V3 => stretches(path).map_err(|error| StatsError::Io { path: path.to_path_buf(), error })?,
        Version::V2 => None,
    };
    let done = AtomicU64::new(0);
    let together = stretches.map(|Stretches { first_line, places }| {
        let next = AtomicUsize::new(0);
        share(&header, |sums| {
            while let Some(stretch) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                let file = File::open(path).and_then(|mut file| {
                    file.seek(SeekFrom::Start(stretch.start))?;
                    Ok(file.take(stretch.end - stretch.start))
                });
                let file = file.map_err(|error| StatsError::Io { path: path.to_path_buf(), error })?;
                let lines = Cursor::new(first_line.as_slice()).chain(file);
                let reader = text::Reader::from_stream(lines, path)?.ignore_counts();
                add_lines(reader, sums, &|records| {
                    progress(done.fetch_add(records, Ordering::Relaxed) + records)
                })?;
            }
            Ok::<_, StatsError>(())
        })
    });
    // What is wrong is placed by the number of its line, which only a reader from the beginning knows.
    let sums = match together {
        Some(Ok(sums)) if counts_fit(&header, &sums) => sums,
        _ => {
            let mut sums = Collector::new(&header);
            let done = AtomicU64::new(0);
            let tell = |records| progress(done.fetch_add(records, Ordering::Relaxed) + records);
            add_lines(text::Reader::open(path)?, &mut sums, &tell)?;
            sums
        }
    };
    Ok(Pass {
        header,
        op_codes: OpCodes::default(),
        origin: Vec::new(),
        hosts: None,
        sums,
        is_container: false,
    })
}

/// Whether there are as many records as the header says; if not, a reader from the beginning says what is wrong.
fn counts_fit(header: &Header, sums: &Collector) -> bool {
    let collectives: u64 = sums.tasks.iter().map(|task| task.collectives).sum();
    let records: u64 = sums.dependencies.iter().sum();
    records.checked_sub(collectives) == Some(header.messages)
        && collectives == header.local_collectives
        && sums.communicators.len() as u64 == header.communicators
}

/// A text in parts.
struct Stretches {
    first_line: Vec<u8>,
    /// Where whole lines stand.
    places: Vec<Range<u64>>,
}

/// A text in parts; `None`: it is not worth it.
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
    sums: &mut Collector,
    progress: &dyn Fn(u64),
) -> Result<(), TextError> {
    let mut untold = 0;
    loop {
        let _ = reader.messages(|task, raw| {
            sums.add(task.0, raw);
            untold += 1;
            ControlFlow::<()>::Continue(())
        });
        match reader.next()? {
            None => break,
            Some(Line::Communicator { id, members }) => {
                sums.communicators.insert(id, members.len() as u32);
            }
            Some(Line::Message(message)) => sums.add(message.src.0, &Raw::of_message(&message)),
            Some(Line::Collective(part)) => sums.add(part.task.0, &Raw::of_collective(&part)),
        }
        untold += 1;
        if untold >= OFTEN {
            progress(std::mem::take(&mut untold));
        }
    }
    progress(untold);
    Ok(())
}

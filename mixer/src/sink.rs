//! Where lines go: text, or a container, which also has notes that text cannot hold.

use crate::agreement::{Calls, Operations};
use crate::bytes::{Encoder, Reader};
use crate::error::MixError;
use crate::matching::{Fate, Matches};
use crate::output::Output;
use crate::parts::{Place, Spill};
use crate::summary::Summary;
use crate::task::Task;
use crate::thread_notes::{self, Sequence};
use hashbrown::HashMap;
use std::fs::File;
use std::ops::Range;
use vef_format::capture::Capture;
use vef_format::container::{self, About, ContainerWriteError, Note, Section, Settings};
use vef_format::format::named_container;
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::record::{Communicator, Header};
use vef_format::text;

/// A trace that is being written.
pub(crate) enum Sink<'a> {
    Text(text::Writer<&'a File>),
    Container(Box<container::Writer<&'a File>>),
}

impl<'a> Sink<'a> {
    /// Begins the trace `output` of `capture`.
    pub(crate) fn new(
        output: &'a Output,
        header: &Header,
        communicators: &[Communicator],
        (capture, op_codes, summary): (&Capture, &OpCodes, &Summary),
    ) -> Result<Self, MixError> {
        if !named_container(output.path()) {
            let failed = |error| output.error(error);
            let mut writer = text::Writer::new(output.file(), header).map_err(failed)?;
            let mut all = communicators.iter();
            all.try_for_each(|comm| writer.communicator(comm.id, &comm.members)).map_err(failed)?;
            return Ok(Self::Text(writer));
        }
        let failed = |error: ContainerWriteError| output.error(error);
        let about = About { op_codes: op_codes.clone(), origin: origin(capture, summary) };
        let mut writer =
            container::Writer::new(output.file(), header, &about, Settings::default()).map_err(failed)?;
        placement(capture, &mut writer).map_err(failed)?;
        let mut all = communicators.iter();
        all.try_for_each(|comm| writer.communicator(comm.id, &comm.members)).map_err(failed)?;
        Ok(Self::Container(Box::new(writer)))
    }

    /// Writes the notes of a task that [`KeptNotes::read`] encoded; those of a task with several threads after its records, of
    /// which `sequences` has the order.
    pub(crate) fn notes(
        &mut self,
        notes: &[u8],
        sequences: &HashMap<Rank, Sequence>,
        output: &Output,
    ) -> Result<(), MixError> {
        let Self::Container(writer) = self else { return Ok(()) };
        let mut reader = Reader::new(notes);
        while reader.more() {
            let (task, section) = (Rank(reader.get_u32()?), reader.get()? as usize);
            let piece = reader.get_bytes()?;
            let mut write = |section: Section, piece: &[u8]| {
                writer.section(section.name(), Some(task), piece).map_err(|error| output.error(error))
            };
            match (Section::ALL.get(section), sequences.get(&task)) {
                (Some(&section), _) => write(section, piece)?,
                (None, Some(sequence)) => {
                    let placed = thread_notes::place(piece, sequence)?;
                    placed.into_iter().try_for_each(|(section, piece)| write(section, &piece))?;
                }
                // No record of the task is in the trace.
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Completes the trace; an error if the counts differ from the header's.
    pub(crate) fn finish(self, output: &Output) -> Result<(), MixError> {
        match self {
            Self::Text(writer) => writer.finish().map(drop).map_err(|error| output.error(error)),
            Self::Container(writer) => writer.finish().map(drop).map_err(|error| output.error(error)),
        }
    }
}

/// The notes of a task between walk and output.
#[derive(Debug)]
pub(crate) enum KeptNotes {
    Here(Rank, Vec<(Section, Vec<u8>)>),
    /// Of a task with several threads.
    OfThreads(Rank, Vec<u8>),
    Spilled(Place),
}

impl KeptNotes {
    /// Encodes the notes.
    pub(crate) fn read(&self, spill: Option<&Spill>) -> Result<Vec<u8>, MixError> {
        let mut encoder = Encoder::default();
        match (self, spill) {
            (Self::Here(task, notes), _) => {
                for (section, piece) in notes {
                    encoder.put_all([task.0.into(), *section as u64]);
                    encoder.put_bytes(piece);
                }
            }
            (Self::OfThreads(task, notes), _) => {
                encoder.put_all([task.0.into(), Section::ALL.len() as u64]);
                encoder.put_bytes(notes);
            }
            (Self::Spilled(place), Some(spill)) => return spill.read(*place),
            (Self::Spilled(_), None) => {}
        }
        Ok(encoder.0)
    }

    /// Moves the notes to the file.
    pub(crate) fn spill(&self, spill: &Spill) -> Result<Self, MixError> {
        Ok(Self::Spilled(spill.add(&self.read(None)?)?))
    }
}

/// The notes of all tasks that are written before the records, and those that are written after them, because their places are
/// known then.
pub(crate) type AllNotes = [Vec<KeptNotes>; 2];

/// Takes the notes of `tasks`, the first of which is `first`. A task with dropped records keeps only `spans`, because notes
/// refer to records by their index in the walk.
pub(crate) fn take_notes(
    first: Rank,
    tasks: &mut [Task],
    matches: &[Matches],
    operations: &[Operations],
) -> AllNotes {
    let mut all = AllNotes::default();
    for ((rank, task), matches) in (first.0..).map(Rank).zip(tasks).zip(matches) {
        let mut notes = std::mem::take(&mut task.notes);
        let of_threads = task.thread_notes.take();
        let is_whole = |calls: &Calls| {
            let operations = operations.get(calls.comm.0 as usize);
            operations.is_some_and(|operations| calls.made.len() as u64 <= operations.complete)
        };
        // The times in MPI are independent of records.
        let whole = notes.is_empty() && of_threads.is_none()
            || !matches.fates.contains(&Fate::Dropped)
                && (task.counts.collectives == 0 || task.calls.iter().all(is_whole));
        notes.retain(|&(section, _)| whole || section == Section::Spans);
        all[0].push(KeptNotes::Here(rank, notes));
        all[1].extend(of_threads.filter(|_| whole).map(|notes| KeptNotes::OfThreads(rank, notes)));
    }
    all
}

/// Origin of the trace, and facts on the capture.
fn origin(capture: &Capture, summary: &Summary) -> Vec<(String, String)> {
    let mut origin = Vec::new();
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            origin.push((name.to_owned(), value.to_owned()));
        }
    };
    if let Some(info) = capture.rank(Rank(0)) {
        add("program", info.program.first().map_or("", String::as_str));
        add("command", &info.program.join(" "));
        add("host", &info.host);
        add("mpi", &info.mpi);
        add("library", &info.library);
    }
    for (ranks, command) in further_programs(capture) {
        let of = if ranks.len() == 1 { "task" } else { "tasks" };
        let last = if ranks.len() == 1 { String::new() } else { format!("–{}", ranks.end - 1) };
        add("command", &format!("{command} ({of} {}{last})", ranks.start));
    }
    for host in summary.oversubscribed() {
        add(About::OVERSUBSCRIBED, &host.to_string());
    }
    if let Some(waits) = summary.spent.notable_send_waits() {
        add(About::SEND_WAITS, &waits);
    }
    for lack in summary.lacks() {
        add(About::NOT_IN_TRACE, &lack);
    }
    add("version", concat!("vef ", env!("CARGO_PKG_VERSION")));
    origin
}

/// The commands of an MPMD run other than that of task 0, each with its tasks.
fn further_programs(capture: &Capture) -> Vec<(Range<u32>, String)> {
    let mut programs: Vec<(Range<u32>, &[String])> = Vec::new();
    for rank in 0..capture.tasks() {
        let Some(info) = capture.rank(Rank(rank)) else { continue };
        match programs.last_mut() {
            Some((ranks, program)) if *program == info.program && ranks.end == rank => ranks.end = rank + 1,
            _ => programs.push((rank..rank + 1, &info.program)),
        }
    }
    let further = programs.into_iter().skip(1);
    further.take(MOST_PROGRAMS).map(|(ranks, program)| (ranks, program.join(" "))).collect()
}

/// Maximum number of commands listed: more means that each task has its own arguments.
const MOST_PROGRAMS: usize = 64;

/// Notes each task's host, if the capture has the hosts of all tasks.
fn placement(capture: &Capture, writer: &mut container::Writer<&File>) -> Result<(), ContainerWriteError> {
    let host =
        |rank: u32| capture.rank(Rank(rank)).map(|info| info.host.as_str()).filter(|host| !host.is_empty());
    if (0..capture.tasks()).any(|rank| host(rank).is_none()) {
        return Ok(());
    }
    let mut last = None;
    for rank in 0..capture.tasks() {
        let here = host(rank);
        if let Some(name) = here.filter(|_| here != last) {
            writer.note(None, rank.into(), &Note::Host(name))?;
        }
        last = here;
    }
    Ok(())
}

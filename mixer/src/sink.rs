//! Where lines go: text, or a container, which also has notes that text cannot hold.

use crate::agreement::Calls;
use crate::dropped_notes::move_notes;
use crate::error::MixError;
use crate::index::OperationIndex;
use crate::matching::Matches;
use crate::output::Output;
use crate::prepare::Shared;
use crate::prepared::OperationRef;
use crate::records::{Body, Record};
use crate::store::{Store, Stored};
use crate::summary::{Spent, Summary};
use crate::task::{Fate, Task};
use crate::thread_notes::{self, Sequences};
use std::fs::File;
use std::ops::Range;
use vef_format::capture::Capture;
use vef_format::container::{self, About, Note, Section, Settings};
use vef_format::format::named_container;
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::record::{Communicator, Header, WriteError};
use vef_format::text;
use vef_format::units::Count;
use vef_format::varint::{self, Source};

/// A trace that is being written.
pub(crate) struct Sink<'a> {
    pub(crate) output: &'a Output,
    pub(crate) format: Format<'a>,
}

/// The form of the trace.
pub(crate) enum Format<'a> {
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
        let mut all = communicators.iter();
        let format = if named_container(output.path()) {
            let failed = |error: WriteError| output.error(error);
            let about = About { op_codes: op_codes.clone(), origin: origin(capture, summary) };
            let settings = Settings::default();
            let mut writer =
                container::Writer::new(output.file(), header, &about, settings).map_err(failed)?;
            placement(capture, summary.storage_tasks(), summary.interface_tasks(), &mut writer)
                .map_err(failed)?;
            all.try_for_each(|comm| writer.communicator(comm.id, &comm.members)).map_err(failed)?;
            Format::Container(Box::new(writer))
        } else {
            let failed = |error| output.error(error);
            let mut writer = text::Writer::new(output.file(), header).map_err(failed)?;
            all.try_for_each(|comm| writer.communicator(comm.id, &comm.members)).map_err(failed)?;
            Format::Text(writer)
        };
        Ok(Self { output, format })
    }

    /// Writes the notes of a task that [`AllNotes::take`] encoded; those of a task with several threads after its records, of
    /// which `sequences` has the order.
    pub(crate) fn notes(&mut self, notes: &[u8], sequences: &Sequences) -> Result<(), MixError> {
        let Format::Container(writer) = &mut self.format else { return Ok(()) };
        let mut source = Source::new(notes, 0);
        let task = Rank(source.get()? as u32);
        let mut write = |section: Section, piece: &[u8]| {
            writer.section(section.name(), Some(task), piece).map_err(|error| self.output.error(error))
        };
        while source.remaining() > 0 {
            let (section, piece) = (source.get()? as usize, source.text()?);
            match Section::ALL.get(section) {
                Some(&section) => write(section, piece)?,
                None => {
                    let placed = thread_notes::place(task, piece, sequences)?;
                    placed.into_iter().try_for_each(|(section, piece)| write(section, &piece))?;
                }
            }
        }
        Ok(())
    }

    /// Completes the trace; an error if the counts differ from the header's.
    pub(crate) fn finish(self) -> Result<(), MixError> {
        match self.format {
            Format::Text(writer) => writer.finish().map(drop).map_err(|error| self.output.error(error)),
            Format::Container(writer) => writer.finish().map(drop).map_err(|error| self.output.error(error)),
        }
    }
}

/// The notes of all tasks between walk and output.
#[derive(Debug, Default)]
pub(crate) struct AllNotes {
    /// Those that are written before the records.
    pub(crate) placed: Vec<Stored>,
    /// Those that are written after them, because their places are known then.
    pub(crate) unplaced: Vec<Stored>,
}

impl AllNotes {
    /// Stores the notes of `tasks`, the first of which is `first`; `shifts` convert their clocks. A task of several threads with dropped records keeps only `spans`,
    /// `times` and `files`.
    pub(crate) fn take(
        &mut self,
        first: Rank,
        tasks: &mut [Task],
        matches: &[Matches],
        shifts: &[i64],
        shared: &Shared<'_>,
        store: &Store,
    ) -> Result<(), MixError> {
        for (((rank, task), matches), &shift) in (first.0..).zip(tasks).zip(matches).zip(shifts) {
            let (mut notes, unplaced) = (std::mem::take(&mut task.notes), task.unplaced_notes.take());
            if notes.is_empty() && unplaced.is_none() {
                continue;
            }
            let last = |calls: &Calls| calls.made.len().checked_sub(1).map(OperationIndex);
            let is_whole = |calls: &Calls| {
                last(calls).is_none_or(|operation| shared.has(OperationRef { comm: calls.comm, operation }))
            };
            let whole = !matches.fates.contains(&Fate::Dropped)
                && (task.collectives == 0 || task.calls.iter().all(is_whole));
            if !whole && unplaced.is_none() {
                notes = move_notes(notes, &task.records, kept(task, matches, shared))?;
            }
            let mut bytes = Vec::new();
            varint::put(&mut bytes, rank.into());
            for (section, piece) in notes {
                put(&mut bytes, section as u64, &piece);
            }
            self.placed.push(store.add(bytes)?);
            if let Some(notes) = unplaced.filter(|_| whole) {
                let mut bytes = Vec::new();
                varint::put(&mut bytes, rank.into());
                put(&mut bytes, UNPLACED, &notes.on_common_clock(shift));
                self.unplaced.push(store.add(bytes)?);
            }
        }
        Ok(())
    }
}

/// Tells of a task's records, one after the other, whether they are in the trace.
fn kept<'a>(
    task: &'a Task,
    matches: &'a Matches,
    shared: &'a Shared<'_>,
) -> impl FnMut(&Record) -> bool + 'a {
    let mut called = vec![OperationIndex(0); task.calls.len()];
    let mut messages = 0..;
    move |record| match record.body {
        Body::Mark => true,
        Body::Message(_) => {
            messages.next().is_none_or(|message: usize| matches.fates.get(message) != Some(&Fate::Dropped))
        }
        Body::Collective(part) => {
            let slot = task.records.part(part).slot as usize;
            let operation = called[slot];
            called[slot].0 += 1;
            shared.has(OperationRef { comm: task.calls[slot].comm, operation })
        }
    }
}

/// Instead of a section: [`UnplacedNotes`](thread_notes::UnplacedNotes).
const UNPLACED: u64 = Section::ALL.len() as u64;

/// Appends a piece of notes.
fn put(bytes: &mut Vec<u8>, section: u64, piece: &[u8]) {
    varint::put(bytes, section);
    varint::put(bytes, piece.len() as u64);
    bytes.extend_from_slice(piece);
}

/// Origin of the trace, and facts on the capture.
fn origin(capture: &Capture, summary: &Summary) -> Vec<(String, String)> {
    let mut origin = Vec::new();
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            origin.push((name.to_owned(), value.to_owned()));
        }
    };
    // Not every rank has facts.
    let mut ranks = (0..capture.tasks()).filter_map(|rank| capture.rank(Rank(rank)));
    if let Some(info) = ranks.find(|info| !capture.is_unbegun(info.rank)) {
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
    for (world, tasks) in summary.spawned.iter().take(MOST_PROGRAMS) {
        let which = if tasks.len() == 1 { "task" } else { "tasks" };
        let last = if tasks.len() == 1 { String::new() } else { format!("–{}", tasks.end - 1) };
        add(About::SPAWNED, &format!("{which} {}{last} ({world})", tasks.start));
    }
    if let Some(more) = summary.spawned.len().checked_sub(MOST_PROGRAMS).filter(|&more| more > 0) {
        add(About::SPAWNED, &format!("{more} more"));
    }
    for host in summary.oversubscribed() {
        add(About::OVERSUBSCRIBED, &host.to_string());
    }
    let Spent { send_waits, polls_kept, calls_kept, preempted_kept, .. } = summary.spent;
    let without_core = summary.spent.times.preempted.saturating_sub(preempted_kept);
    let kept = [
        (About::SEND_WAITS, send_waits),
        (About::POLLS, polls_kept),
        (About::OWN_WORK, calls_kept),
        (About::PREEMPTED_KEPT, preempted_kept),
    ];
    for (name, nanos) in kept {
        if let Some(time) = summary.spent.notable(nanos) {
            add(name, &time);
        }
    }
    if let Some(time) = summary.spent.notably_left_out(without_core) {
        add(About::PREEMPTED, &time);
    }
    if summary.answered_outside > 0 {
        add(About::ANSWERED_OUTSIDE, &Count(summary.answered_outside, "one-sided request").to_string());
    }
    for (name, tasks) in
        [(About::STORAGE, summary.storage_tasks()), (About::INTERFACES, summary.interface_tasks())]
    {
        if !tasks.is_empty() {
            add(name, &format!("tasks {}–{}", tasks.start, tasks.end - 1));
        }
    }
    for lack in summary.lacks() {
        add(About::NOT_IN_TRACE, &lack);
    }
    add("version", concat!("vef ", env!("CARGO_PKG_VERSION")));
    origin
}

/// The commands of an MPMD run other than that of the first task with facts, each with its tasks.
fn further_programs(capture: &Capture) -> Vec<(Range<u32>, String)> {
    let mut programs: Vec<(Range<u32>, &[String])> = Vec::new();
    for rank in 0..capture.tasks() {
        let Some(info) = capture.rank(Rank(rank)) else { continue };
        let is_unbegun = capture.is_unbegun(Rank(rank));
        match programs.last_mut() {
            Some((ranks, program)) if (*program == info.program || is_unbegun) && ranks.end == rank => {
                ranks.end = rank + 1;
            }
            _ if is_unbegun => {}
            _ => programs.push((rank..rank + 1, &info.program)),
        }
    }
    let further = programs.into_iter().skip(1);
    further.take(MOST_PROGRAMS).map(|(ranks, program)| (ranks, program.join(" "))).collect()
}

/// Maximum number of commands listed: more means that each task has its own arguments.
const MOST_PROGRAMS: usize = 64;

/// Notes the host of each task, if the capture has those of all its tasks; that of a task that recorded nothing is `unknown`. Each storage server is one; a network interface is where its task is.
fn placement(
    capture: &Capture,
    storage: Range<u32>,
    interfaces: Range<u32>,
    writer: &mut container::Writer<&File>,
) -> Result<(), WriteError> {
    let host = |rank: u32| match capture.is_unbegun(Rank(rank)) {
        true => Some("unknown"),
        false => capture.rank(Rank(rank)).map(|info| info.host.as_str()).filter(|host| !host.is_empty()),
    };
    let Some(hosts) = (0..capture.tasks()).map(host).collect::<Option<Vec<&str>>>() else { return Ok(()) };
    let servers: Vec<String> = storage.map(|server| format!("storage{}", server - capture.tasks())).collect();
    let of_interfaces = hosts.iter().copied().take(interfaces.len());
    let all = hosts.iter().copied().chain(servers.iter().map(String::as_str)).chain(of_interfaces);
    let mut last = None;
    for (task, name) in all.enumerate() {
        if last.replace(name) != Some(name) {
            writer.note(None, task as u64, &Note::Host(name))?;
        }
    }
    Ok(())
}

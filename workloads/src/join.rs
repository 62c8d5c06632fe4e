//! Joins traces of jobs that run side by side into one: the tasks of each follow those of the one before.

use crate::rewrite::{RewriteError, write};
use std::path::{Path, PathBuf};
use vef_format::container::{About, Note, Reader, Section, Settings};
use vef_format::error::Located;
use vef_format::format::named_container;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::{Dependency, Header, Line, LocalCollective, Message, WriteError};
use vef_format::trace::{Trace, TraceWriter};
use vef_format::units::{Picos, Ticks};

/// A trace that becomes a part of another.
#[derive(Clone, Debug)]
pub struct Joined {
    /// Its file.
    pub path: PathBuf,
    /// Codes of its collectives, if it is text.
    pub codes: OpCodes,
}

impl Joined {
    fn unfit(&self, what: String) -> RewriteError {
        RewriteError::Unfit(format!("{}: {what}", self.path.display()))
    }
}

/// By how much the numbers of a trace are moved.
#[derive(Clone, Copy, Debug, Default)]
struct Offsets {
    task: u32,
    message: u64,
    collective: u64,
    comm: u32,
    /// Factor of its times.
    scale: u64,
}

/// What a first reading finds of a trace.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    header: Header,
    /// Numbers behind the greatest ones.
    message: u64,
    collective: u64,
    comm: u32,
}

/// Sections whose notes have times in ticks, and that of synchronous sends, which need the waits of the first.
const TIMED: [Section; 6] =
    [Section::Sends, Section::Synchronous, Section::Spans, Section::Times, Section::Moments, Section::Files];

/// Facts on a trace's origin that say something of all its tasks.
const OF_TASKS: [&str; 7] = [
    About::SEND_WAITS,
    About::PREEMPTED,
    About::PREEMPTED_KEPT,
    About::POLLS,
    About::OWN_WORK,
    About::ANSWERED_OUTSIDE,
    About::NOT_IN_TRACE,
];

/// A fact on the tasks of a trace, or on those that it names at its end, in a trace in which they begin at `first`.
fn of_tasks(fact: &str, first: u32, tasks: u32) -> String {
    let named = || {
        let (what, range) = fact.strip_suffix(')')?.rsplit_once(" (tasks ")?;
        let (begin, end) = range.split_once('–')?;
        Some((what, begin.parse::<u32>().ok()?, end.parse::<u32>().ok()?))
    };
    let (what, begin, end) = named().unwrap_or((fact, 0, tasks.saturating_sub(1)));
    format!("{what} (tasks {}–{})", first.saturating_add(begin), first.saturating_add(end))
}

/// Joins traces into the file `to`: a container if its name ends in `.vefx`. Ids are moved behind those of the traces before, times
/// have the finest clock, collectives the codes of the first trace. Of containers, what they note of their tasks is kept. Returns the
/// first task of each.
///
/// # Errors
/// A trace cannot be read or the result not be written; the numbers do not fit.
pub fn join(traces: &[Joined], to: &Path, settings: Settings) -> Result<Vec<u32>, RewriteError> {
    let found: Vec<Found> = traces.iter().map(|trace| survey(&trace.path)).collect::<Result<_, _>>()?;
    let clock = found.iter().fold(0, |clock, found| gcd(clock, found.header.clock.0));
    let mut header = Header { clock: Picos(clock), ..Header::default() };
    let (mut offsets, mut next) = (Vec::new(), Offsets::default());
    for (Found { header: one, message, collective, comm }, trace) in found.iter().zip(traces) {
        let too_large =
            |what: &str| trace.unfit(format!("its {what} and those of the traces before it do not fit"));
        offsets.push(Offsets { scale: one.clock.0 / clock.max(1), ..next });
        next.task = next.task.checked_add(one.tasks).ok_or_else(|| too_large("tasks"))?;
        next.comm = next.comm.checked_add(*comm).ok_or_else(|| too_large("communicators"))?;
        next.message = next.message.checked_add(*message).ok_or_else(|| too_large("messages"))?;
        next.collective = next.collective.checked_add(*collective).ok_or_else(|| too_large("collectives"))?;
        header.messages += one.messages;
        header.communicators += one.communicators;
        header.collectives += one.collectives;
        header.local_collectives += one.local_collectives;
    }
    header.tasks = next.task;
    let opened: Vec<Trace> = traces.iter().map(|trace| Trace::open(&trace.path)).collect::<Result<_, _>>()?;
    let containers: Vec<Option<&Reader>> = opened
        .iter()
        .map(|trace| match trace {
            Trace::Container(reader) => Some(&**reader),
            Trace::Text(_) => None,
        })
        .collect();
    let codes = |(container, trace): (&Option<&Reader>, &Joined)| match container {
        Some(reader) => reader.about().op_codes.clone(),
        None => trace.codes.clone(),
    };
    let codes: Vec<OpCodes> = containers.iter().zip(traces).map(codes).collect();
    let mut about = About { op_codes: codes.first().cloned().unwrap_or_default(), ..About::default() };
    for ((reader, offsets), found) in containers.iter().zip(&offsets).zip(&found) {
        let facts = reader.iter().flat_map(|reader| reader.about().origin.clone());
        // Tasks that were spawned have other numbers.
        let facts = facts.filter(|(fact, _)| fact != About::SPAWNED || offsets.task == 0);
        about.origin.extend(facts.map(|(fact, value)| {
            match OF_TASKS.contains(&&*fact) && traces.len() > 1 {
                true => (fact, of_tasks(&value, offsets.task, found.header.tasks)),
                false => (fact, value),
            }
        }));
    }
    // They are of the last tasks of a trace.
    about.origin.retain(|(fact, _)| fact != About::STORAGE && fact != About::INTERFACES);
    let has_hosts =
        containers.iter().all(|reader| reader.is_some_and(|reader| matches!(reader.hosts(), Ok(Some(_)))));
    write(to, &header, &about, settings, |writer| {
        let failed = |error: WriteError| RewriteError::Write(Located::file(to, error));
        // Communicators come first in text, and the records of each trace in its order.
        for (trace, offsets) in traces.iter().zip(&offsets) {
            if !named_container(to) {
                break;
            }
            if let Trace::Container(reader) = Trace::open(&trace.path)? {
                copy_notes(&reader, offsets, has_hosts, writer, &failed)?;
            }
        }
        for (((trace, joined), offsets), own) in opened.into_iter().zip(traces).zip(&offsets).zip(&codes) {
            trace.each(|_, line| {
                let moved = offsets.moved(&line, own, &about.op_codes).map_err(|what| joined.unfit(what))?;
                match (&moved, &line) {
                    (None, Line::Communicator { id, members }) => {
                        let members: Vec<Rank> =
                            members.iter().map(|member| Rank(member.0 + offsets.task)).collect();
                        let id = CommId(id.0 + offsets.comm);
                        writer.line(&Line::Communicator { id, members: &members }).map_err(failed)
                    }
                    (Some(moved), _) => writer.line(moved).map_err(failed),
                    (None, _) => Ok(()),
                }
            })?;
        }
        Ok(())
    })?;
    Ok(offsets.iter().map(|offsets| offsets.task).collect())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Counts the lines of a trace, and finds its greatest numbers.
fn survey(path: &Path) -> Result<Found, RewriteError> {
    let trace = Trace::open(path)?;
    let Header { tasks, clock, .. } = *trace.header();
    let mut found = Found { header: Header { tasks, clock, ..Header::default() }, ..Found::default() };
    let mut collectives = std::collections::HashSet::new();
    trace.each(|_, line| -> Result<(), RewriteError> {
        let header = &mut found.header;
        match line {
            Line::Communicator { id, .. } => {
                header.communicators += 1;
                found.comm = found.comm.max(id.0.saturating_add(1));
            }
            Line::Message(message) => {
                header.messages += 1;
                found.message = found.message.max(message.id.0.saturating_add(1));
            }
            Line::Collective(part) => {
                header.local_collectives += 1;
                collectives.insert(part.id);
                found.collective = found.collective.max(part.id.0.saturating_add(1));
            }
        }
        Ok(())
    })?;
    found.header.collectives = collectives.len() as u64;
    Ok(found)
}

impl Offsets {
    /// The record with the numbers of the joined trace; `None`: a communicator. The error is what does not fit.
    fn moved(&self, line: &Line<'_>, own: &OpCodes, all: &OpCodes) -> Result<Option<Line<'static>>, String> {
        let time = |time: Ticks| {
            let scaled = time.0.checked_mul(self.scale);
            scaled.map(Ticks).ok_or_else(|| {
                format!("a time of {} ticks is too long in the clock of the joined trace", time.0)
            })
        };
        let after = |after| match after {
            Dependency::Start => Dependency::Start,
            Dependency::Sent(id) => Dependency::Sent(MessageId(id.0 + self.message)),
            Dependency::Received(id) => Dependency::Received(MessageId(id.0 + self.message)),
            Dependency::Collective(id) => Dependency::Collective(CollectiveId(id.0 + self.collective)),
        };
        Ok(Some(match *line {
            Line::Communicator { .. } => return Ok(None),
            Line::Message(message) => Line::Message(Message {
                id: MessageId(message.id.0 + self.message),
                src: Rank(message.src.0 + self.task),
                dst: Rank(message.dst.0 + self.task),
                after: after(message.after),
                time: time(message.time)?,
                ..message
            }),
            Line::Collective(part) => {
                let unknown = || {
                    format!(
                        "operation code {} is not in the table of codes of the first trace (--op-codes)",
                        part.op.0
                    )
                };
                let code = own.operation(part.op).and_then(|operation| all.code(operation));
                Line::Collective(LocalCollective {
                    id: CollectiveId(part.id.0 + self.collective),
                    comm: CommId(part.comm.0 + self.comm),
                    op: code.ok_or_else(unknown)?,
                    task: Rank(part.task.0 + self.task),
                    after: after(part.after),
                    time: time(part.time)?,
                    ..part
                })
            }
        }))
    }
}

/// Copies what a container notes of its tasks, whose records keep their numbers.
fn copy_notes(
    reader: &Reader,
    offsets: &Offsets,
    has_hosts: bool,
    writer: &mut TraceWriter<&std::fs::File>,
    failed: &impl Fn(WriteError) -> RewriteError,
) -> Result<(), RewriteError> {
    let TraceWriter::Container(writer) = writer else { return Ok(()) };
    for section in Section::ALL {
        let is_kept = match section {
            // The writer makes these again.
            Section::Blocks => false,
            Section::Placement => has_hosts,
            _ => offsets.scale == 1 || !TIMED.contains(&section),
        };
        if !is_kept {
            continue;
        }
        if section.of_trace() {
            let mut notes = reader.notes(section, Rank(0))?;
            while let Some((place, note)) = notes.next(reader)? {
                match note {
                    Note::Host(_) => writer.note(None, place + u64::from(offsets.task), &note),
                    Note::Root(root) => {
                        let root = Rank(root.0 + offsets.task);
                        writer.note(None, place + offsets.collective, &Note::Root(root))
                    }
                    _ => Ok(()),
                }
                .map_err(failed)?;
            }
            continue;
        }
        for stream in reader.section(section.name())? {
            let mut pieces = reader.pieces(&stream);
            while let Some(piece) = pieces.next(reader)? {
                let task = stream.task.map(|task| Rank(task.0 + offsets.task));
                writer.section(section.name(), task, &piece).map_err(failed)?;
            }
        }
    }
    Ok(())
}

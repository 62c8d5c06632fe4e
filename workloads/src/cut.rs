//! Cuts a part out of a trace: some of its tasks, or some records of each.
//!
//! A record does not wait for what is outside: messages from there are not waited for, messages to tasks outside become local marks, and
//! so does a collective of which any member's record is outside. Everything left out is counted.

use crate::rewrite::{RewriteError, write};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use vef_format::container::{About, Note, Reader, Section, Settings};
use vef_format::error::Located;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::{Dependency, Header, Line, Message, WriteError};
use vef_format::trace::{Trace, TraceWriter};
use vef_format::units::{Bytes, Picos, Ticks};

/// Records of a task that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Their numbers among the records of the task, from 0.
    pub records: Range<u64>,
    /// Computing in front of the first of them that is left out.
    pub before: Ticks,
    /// Computing behind the last of them that is kept.
    pub behind: Ticks,
    /// What the record behind the last of them depends on, if the part has it: a mark behind the last one waits for it.
    pub awaits: Option<Dependency>,
}

impl Stretch {
    /// Whether the part has a mark behind the last record.
    fn has_mark(&self) -> bool {
        self.behind.0 > 0 || self.awaits.is_some()
    }
}

/// What is cut out of a trace.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// The tasks, which are numbered anew in this order; all without it.
    pub tasks: Option<Vec<Rank>>,
    /// The records of each task, ascending; all without it. Start-up is left out then.
    pub records: Option<Vec<Vec<Stretch>>>,
}

/// What a cut leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Records of the trace.
    pub records: u64,
    /// Messages to tasks outside.
    pub messages: u64,
    /// Receptions that are not waited for, because the messages were sent outside.
    pub receptions: u64,
    /// Collectives that not all members enter in the part.
    pub collectives: u64,
}

/// What a first reading finds.
#[derive(Debug, Default)]
struct Inside {
    /// Messages and marks.
    lines: HashSet<MessageId>,
    /// Messages that a record waits for.
    awaited: HashSet<MessageId>,
    /// Of each collective, its members' records inside, and all.
    collectives: HashMap<CollectiveId, (u64, u64)>,
    comms: HashSet<CommId>,
    records: u64,
    /// The number behind the greatest one.
    next: u64,
}

impl Inside {
    /// Whether all members enter a collective inside.
    fn is_whole(&self, id: &CollectiveId) -> bool {
        self.collectives.get(id).is_some_and(|(within, all)| within == all)
    }

    /// The dependency of a record behind `last`: what it waits for outside is over, so that it follows the record in front.
    fn after(&self, after: Dependency, last: Option<MessageId>) -> Dependency {
        let is_inside = match &after {
            Dependency::Start => true,
            Dependency::Sent(id) | Dependency::Received(id) => self.lines.contains(id),
            Dependency::Collective(id) => self.is_whole(id),
        };
        if is_inside { after } else { last.map_or(Dependency::Start, Dependency::Sent) }
    }
}

/// Where a task's records are, and what became of the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    number: u64,
    stretch: usize,
    /// The last record that was kept, if it is a message or a mark.
    last: Option<MessageId>,
}

/// Writes the part of the trace `from` into the file `to`, a container if its name ends in `.vefx`. `codes` are those of a trace in
/// text.
///
/// # Errors
/// The trace cannot be read or the part not be written; a task is not in the trace, or nothing is in the part.
pub fn cut(
    from: &Path,
    codes: &OpCodes,
    what: &Cut,
    to: &Path,
    settings: Settings,
) -> Result<(Header, LeftOut), RewriteError> {
    let trace = Trace::open(from)?;
    let tasks = trace.header().tasks;
    let numbers = numbers(what, tasks)?;
    let (about, spans) = match &trace {
        Trace::Container(reader) => {
            let spans = if what.records.is_some() { reader.spans()? } else { None };
            let mut about = reader.about().clone();
            if what.tasks.is_some() {
                // They are of the last tasks of the whole trace.
                about.origin.retain(|(fact, _)| fact != About::STORAGE && fact != About::INTERFACES);
            }
            (about, spans)
        }
        Trace::Text(_) => (About { op_codes: codes.clone(), ..About::default() }, None),
    };
    let clock = trace.header().clock;
    let part = Part { what, numbers };
    let (inside, left_out) = part.survey(trace)?;
    let whole = |(within, all): &(u64, u64)| within == all;
    let wholes = inside.collectives.values().filter(|counts| whole(counts));
    let parts_inside: u64 = inside.collectives.values().map(|(within, _)| within).sum();
    let local_collectives: u64 = wholes.clone().map(|(within, _)| within).sum();
    let behind = what.records.iter().flat_map(|tasks| tasks.iter().enumerate());
    let behind = behind.filter(|(task, _)| part.numbers[*task].is_some());
    let behind = behind.flat_map(|(task, stretches)| stretches.iter().map(move |stretch| (task, stretch)));
    let behind: Vec<_> = behind.filter(|(_, stretch)| stretch.has_mark()).collect();
    if let Some((task, stretch)) = behind.iter().find(|(_, stretch)| stretch.records.is_empty()) {
        let time = Picos(stretch.behind.0.saturating_mul(clock.0));
        return Err(RewriteError::Unfit(format!(
            "rank {task} computes {time} in this part and has no record there, which a trace cannot hold; vef sim replays such a part"
        )));
    }
    if inside.records == 0 {
        return Err(RewriteError::Unfit("no record is in this part".to_owned()));
    }
    let header = Header {
        tasks: part.numbers.iter().flatten().count() as u32,
        messages: inside.lines.len() as u64 + parts_inside - local_collectives + behind.len() as u64,
        communicators: inside.comms.len() as u64,
        collectives: wholes.count() as u64,
        local_collectives,
        clock,
        ..Header::default()
    };
    write(to, &header, &about, settings, |writer| {
        let failed = |error: WriteError| RewriteError::Write(Located::file(to, error));
        if let Trace::Container(reader) = Trace::open(from)? {
            part.notes(&reader, &inside, writer, &failed)?;
        }
        let mut next = inside.next;
        let mut places = vec![Place::default(); tasks as usize];
        Trace::open(from)?.each(|_, mut line| {
            let Some(task) = line.task() else {
                return part.communicator(&line, &inside, writer).map_err(failed);
            };
            let place = &mut places[task.index()];
            let number = place.number;
            place.number += 1;
            if let (0, Some(spans)) = (number, &spans) {
                let time = line_time(&mut line);
                *time = spans[task.index()].first(*time, false);
            }
            let (Some(own), Some(at)) =
                (part.numbers[task.index()], part.stretch(task, number, place.stretch))
            else {
                return Ok(());
            };
            place.stretch = at;
            let stretches = part.what.records.as_ref().map(|tasks| &tasks[task.index()]);
            let stretch = stretches.map(|stretches| &stretches[at]);
            // The mark behind the stretch in front has waited.
            let in_front = stretches.into_iter().flat_map(|stretches| stretches[..at].iter().rev());
            let mut adjacent = in_front.take_while(|stretch| stretch.records.end == number);
            if adjacent.any(|stretch| stretch.awaits.is_some()) {
                *line_after(&mut line) = place.last.map_or(Dependency::Start, Dependency::Sent);
            }
            let kept = part.kept(line, own, stretch, number, place.last, &inside, &mut next);
            place.last = match &kept {
                Line::Message(message) => Some(message.id),
                Line::Collective(_) | Line::Communicator { .. } => None,
            };
            writer.line(&kept).map_err(failed)?;
            let Some(stretch) = stretch.filter(|stretch| stretch.has_mark()) else { return Ok(()) };
            if number + 1 == stretch.records.end {
                let after = match (stretch.awaits, &kept) {
                    (Some(awaited), _) => inside.after(awaited, place.last),
                    (None, Line::Collective(part)) => Dependency::Collective(part.id),
                    (None, Line::Message(message)) => Dependency::Sent(message.id),
                    (None, Line::Communicator { .. }) => Dependency::Start,
                };
                let mark = mark(MessageId(next), own, after, stretch.behind);
                next += 1;
                place.last = Some(mark.id);
                writer.line(&Line::Message(mark)).map_err(failed)?;
            }
            Ok(())
        })
    })?;
    Ok((header, left_out))
}

fn mark(id: MessageId, task: Rank, after: Dependency, time: Ticks) -> Message {
    Message { id, src: task, dst: task, bytes: Bytes::ZERO, awaited: false, after, time }
}

fn line_time<'l>(line: &'l mut Line<'_>) -> &'l mut Ticks {
    match line {
        Line::Message(message) => &mut message.time,
        Line::Collective(part) => &mut part.time,
        Line::Communicator { .. } => unreachable!("a communicator is of no task"),
    }
}

fn line_after<'l>(line: &'l mut Line<'_>) -> &'l mut Dependency {
    match line {
        Line::Message(message) => &mut message.after,
        Line::Collective(part) => &mut part.after,
        Line::Communicator { .. } => unreachable!("a communicator is of no task"),
    }
}

/// The new number of each task; `None`: it is left out.
fn numbers(what: &Cut, tasks: u32) -> Result<Vec<Option<Rank>>, RewriteError> {
    let Some(kept) = &what.tasks else { return Ok((0..tasks).map(|task| Some(Rank(task))).collect()) };
    let mut numbers = vec![None; tasks as usize];
    for (new, task) in (0..).zip(kept) {
        match numbers.get_mut(task.index()) {
            Some(number @ None) => *number = Some(Rank(new)),
            Some(Some(_)) => return Err(RewriteError::Unfit(format!("rank {task} is named twice"))),
            None => {
                let what = format!("there is no rank {task}: the trace has {tasks} ranks, from 0");
                return Err(RewriteError::Unfit(what));
            }
        }
    }
    Ok(numbers)
}

struct Part<'a> {
    what: &'a Cut,
    numbers: Vec<Option<Rank>>,
}

impl Part<'_> {
    /// The stretch of a record, from the one of the record before; `None`: it is left out.
    fn stretch(&self, task: Rank, number: u64, from: usize) -> Option<usize> {
        let Some(records) = &self.what.records else { return Some(0) };
        let stretches = records.get(task.index())?.get(from..)?;
        let at = stretches.iter().position(|stretch| number < stretch.records.end)?;
        (stretches[at].records.start <= number).then_some(from + at)
    }

    fn survey(&self, trace: Trace) -> Result<(Inside, LeftOut), RewriteError> {
        let (mut inside, mut left_out) = (Inside::default(), LeftOut::default());
        let mut places = vec![Place::default(); self.numbers.len()];
        let mut waits: Vec<MessageId> = Vec::new();
        trace.each(|_, line| -> Result<(), RewriteError> {
            let Some(task) = line.task() else {
                if let Line::Communicator { id, members } = line
                    && members.iter().all(|member| self.numbers[member.index()].is_some())
                {
                    inside.comms.insert(id);
                }
                return Ok(());
            };
            let place = &mut places[task.index()];
            let number = place.number;
            place.number += 1;
            let at = self.stretch(task, number, place.stretch);
            place.stretch = at.unwrap_or(place.stretch);
            let is_kept = self.numbers[task.index()].is_some() && at.is_some();
            inside.records += u64::from(is_kept);
            left_out.records += u64::from(!is_kept);
            match line {
                Line::Message(message) => {
                    inside.next = inside.next.max(message.id.0.saturating_add(1));
                    if is_kept {
                        inside.lines.insert(message.id);
                        left_out.messages += u64::from(self.numbers[message.dst.index()].is_none());
                    }
                }
                Line::Collective(part) => {
                    let (within, all) = inside.collectives.entry(part.id).or_default();
                    (*within, *all) = (*within + u64::from(is_kept), *all + 1);
                }
                Line::Communicator { .. } => {}
            }
            if let (true, Dependency::Received(id)) = (is_kept, line.after()) {
                waits.push(id);
            }
            Ok(())
        })?;
        // Messages may come below the records that wait for them.
        for id in waits {
            match inside.lines.contains(&id) {
                true => drop(inside.awaited.insert(id)),
                false => left_out.receptions += 1,
            }
        }
        for (stretches, number) in self.what.records.iter().flatten().zip(&self.numbers) {
            for stretch in stretches.iter().filter(|_| number.is_some()) {
                if let Some(Dependency::Received(id)) = stretch.awaits
                    && inside.lines.contains(&id)
                {
                    inside.awaited.insert(id);
                }
            }
        }
        let cut = inside.collectives.values().filter(|(within, all)| *within > 0 && within < all);
        left_out.collectives = cut.count() as u64;
        Ok((inside, left_out))
    }

    fn communicator(
        &self,
        line: &Line<'_>,
        inside: &Inside,
        writer: &mut TraceWriter<&std::fs::File>,
    ) -> Result<(), WriteError> {
        match line {
            Line::Communicator { id, members } if inside.comms.contains(id) => {
                let members: Vec<Rank> =
                    members.iter().filter_map(|member| self.numbers[member.index()]).collect();
                writer.line(&Line::Communicator { id: *id, members: &members })
            }
            _ => Ok(()),
        }
    }

    /// The record of the part.
    #[allow(clippy::too_many_arguments, reason = "the states of two readings")]
    fn kept(
        &self,
        line: Line<'_>,
        own: Rank,
        stretch: Option<&Stretch>,
        number: u64,
        last: Option<MessageId>,
        inside: &Inside,
        next: &mut u64,
    ) -> Line<'static> {
        let after = |after| inside.after(after, last);
        let first = stretch.filter(|stretch| stretch.records.start == number);
        let before = first.map_or(0, |stretch| stretch.before.0);
        let time = |time: Ticks| Ticks(time.0.saturating_sub(before));
        match line {
            Line::Message(message) => {
                let after = after(message.after);
                match self.numbers[message.dst.index()] {
                    Some(dst) => Line::Message(Message {
                        src: own,
                        dst,
                        awaited: inside.awaited.contains(&message.id),
                        after,
                        time: time(message.time),
                        ..message
                    }),
                    None => Line::Message(mark(message.id, own, after, time(message.time))),
                }
            }
            Line::Collective(part) if inside.is_whole(&part.id) => {
                let (after, time) = (after(part.after), time(part.time));
                Line::Collective(vef_format::record::LocalCollective { task: own, after, time, ..part })
            }
            Line::Collective(part) => {
                let id = MessageId(*next);
                *next += 1;
                Line::Message(mark(id, own, after(part.after), time(part.time)))
            }
            Line::Communicator { .. } => unreachable!("a communicator is of no task"),
        }
    }

    /// The number of a record in the part.
    fn place(&self, task: Rank, record: u64) -> Option<u64> {
        let Some(records) = &self.what.records else { return Some(record) };
        let mut before = 0;
        for stretch in &records[task.index()] {
            let Stretch { records, .. } = stretch;
            if record < records.end {
                return (records.start <= record).then(|| before + record - records.start);
            }
            before += records.end - records.start + u64::from(stretch.has_mark());
        }
        None
    }

    /// Copies what a container notes of the records. Of a part of the records, notes about the time of the run do not hold.
    fn notes(
        &self,
        reader: &Reader,
        inside: &Inside,
        writer: &mut TraceWriter<&std::fs::File>,
        failed: &impl Fn(WriteError) -> RewriteError,
    ) -> Result<(), RewriteError> {
        let TraceWriter::Container(writer) = writer else { return Ok(()) };
        let mut roots = reader.notes(Section::Roots, Rank(0))?;
        while let Some((id, note)) = roots.next(reader)? {
            if let (Note::Root(root), Some((within, all))) = (note, inside.collectives.get(&CollectiveId(id)))
                && let (true, Some(root)) = (within == all, self.numbers[root.index()])
            {
                writer.note(None, id, &Note::Root(root)).map_err(failed)?;
            }
        }
        if let Some(hosts) = reader.hosts()? {
            let mut order: Vec<(Rank, &String)> = self
                .numbers
                .iter()
                .zip(&hosts)
                .filter_map(|(number, host)| Some(((*number)?, host)))
                .collect();
            order.sort_unstable();
            for (task, host) in order {
                writer.note(None, task.0.into(), &Note::Host(host)).map_err(failed)?;
            }
        }
        let whole = [Section::Phases, Section::Spans, Section::Times, Section::Moments, Section::Files];
        let kept = [Section::Sends, Section::Synchronous, Section::Tags, Section::Calls, Section::Counts];
        let whole = whole.iter().filter(|_| self.what.records.is_none());
        for section in kept.iter().chain(whole) {
            for (task, mut notes) in reader.notes_of_all(*section)? {
                let Some(own) = self.numbers.get(task.index()).copied().flatten() else { continue };
                // What holds from a record on, and was noted in front of the stretch.
                let (mut tag, mut call) = (None, None::<String>);
                let stretches = self.what.records.as_ref().map_or(&[][..], |tasks| &tasks[task.index()]);
                let mut begins = stretches.iter().map(|stretch| stretch.records.start).peekable();
                while let Some((place, note)) = notes.next(reader)? {
                    while let Some(begin) = begins.next_if(|&begin| begin < place) {
                        let at = self.place(task, begin).unwrap_or(0);
                        for note in holding(tag, &call) {
                            writer.note(Some(own), at, &note).map_err(failed)?;
                        }
                    }
                    match note {
                        Note::Tag(new) => tag = Some(new),
                        Note::Call(name) if !stretches.is_empty() => call = Some(name.to_owned()),
                        _ => {}
                    }
                    let Some(at) = self.place(task, place) else { continue };
                    match note {
                        Note::SendWait { send, before, took } => {
                            if let Some(send) = self.place(task, send) {
                                let note = Note::SendWait { send, before, took };
                                writer.note(Some(own), at, &note).map_err(failed)?;
                            }
                        }
                        note => writer.note(Some(own), at, &note).map_err(failed)?,
                    }
                }
                for begin in begins {
                    let at = self.place(task, begin).unwrap_or(0);
                    for note in holding(tag, &call) {
                        writer.note(Some(own), at, &note).map_err(failed)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// What was noted in front of a record and holds from it on.
fn holding(tag: Option<i32>, call: &Option<String>) -> impl Iterator<Item = Note<'_>> {
    tag.map(Note::Tag).into_iter().chain(call.as_deref().map(Note::Call))
}

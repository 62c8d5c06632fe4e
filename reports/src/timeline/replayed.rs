//! The records of a trace, with the times of a replay on the yardstick.
//!
//! Computing is left blank. A send has no duration; a collective lasts from the task's entry until its part is complete; waits are
//! drawn with what they wait for. Non-blocking collectives are drawn on tracks of their own.

use super::drawing::Drawing;
use super::encoder::{Fact, Slice, Track};
use super::settings::{PICOS_PER_NANO, Settings, TimelineError};
use replay::{
    Engine, Extent, Job, Left, Link, LoadError, Next, OpCodes, Picos, Raw, Sink, Started, Stream, Stuck,
    yardstick,
};
use std::path::Path;
use vef_format::container::{Note, Notes, Reader, Section};
use vef_format::format::Format;
use vef_format::ids::Rank;
use vef_format::operation::OpCode;
use vef_format::raw::RawKind;

/// Draws a trace; returns why its replay stopped before its end, if it did.
pub(super) fn draw(
    path: &Path,
    op_codes: Option<&OpCodes>,
    link: &Link,
    extent: &Extent,
    settings: &Settings,
    drawing: &mut Drawing<'_>,
) -> Result<Option<Stuck>, TimelineError> {
    let reader =
        match Format::is_container(path).map_err(|error| TimelineError::Read { path: path.into(), error })? {
            true => Some(Reader::open(path)?),
            false => None,
        };
    let (job, op_codes) = match (&reader, op_codes) {
        (Some(reader), _) => (Job::open(path)?, reader.about().op_codes.clone()),
        (None, None) => (Job::open(path)?, OpCodes::default()),
        (None, Some(codes)) => {
            let stream = Stream::with_codes(path, codes.clone()).map_err(LoadError::from)?;
            (Job::stream(stream), codes.clone())
        }
    };
    let mut engine = Engine::builder().job(job.extent(extent)?).engine()?;
    let tasks = engine.tasks(0);
    settings.check_ranks(tasks)?;
    drawing.begin(None)?;
    let mut watcher = Watcher::new(tasks, settings, drawing, reader.as_ref(), op_codes)?;
    let outcome = yardstick::watch(&mut engine, link, settings.until(), &mut watcher)?;
    if outcome.stuck.is_none() {
        watcher.cut(&engine, settings.until())?;
    }
    watcher.finish()?;
    drawing.reached(nanos(outcome.runtime));
    Ok(outcome.stuck)
}

/// State of one task.
#[derive(Debug, Default)]
struct Task {
    track: u32,
    /// Start of its last record.
    last: Picos,
    /// The collective that it entered last, until the next record starts.
    entered: Option<Entered>,
    /// Collectives in which it did not block.
    beside: Vec<Entered>,
    /// Their tracks, and when each is free again.
    lanes: Vec<(u32, Picos)>,
    calls: Option<Calls>,
}

/// A task's part of a collective.
#[derive(Clone, Debug)]
struct Entered {
    id: u64,
    at: Picos,
    left: Option<Picos>,
    name: String,
    communicator: u32,
    bytes: [u64; 2],
}

/// The functions behind a task's records.
#[derive(Debug)]
struct Calls {
    notes: Notes,
    now: Option<String>,
    /// The next function, and the first record that it is behind.
    next: Option<(u64, String)>,
}

struct Watcher<'a, 'd> {
    drawing: &'a mut Drawing<'d>,
    /// `None`: the task is not drawn.
    tasks: Vec<Option<Box<Task>>>,
    process_of: Box<dyn Fn(usize) -> u32>,
    reader: Option<&'a Reader>,
    op_codes: OpCodes,
    failed: Option<TimelineError>,
}

impl<'a, 'd> Watcher<'a, 'd> {
    fn new(
        tasks: u32,
        settings: &Settings,
        drawing: &'a mut Drawing<'d>,
        reader: Option<&'a Reader>,
        op_codes: OpCodes,
    ) -> Result<Self, TimelineError> {
        let hosts = reader.map(Reader::hosts).transpose()?.flatten();
        let process_of: Box<dyn Fn(usize) -> u32> = match hosts {
            None => {
                let process = drawing.add_process("ranks".to_owned());
                Box::new(move |_| process)
            }
            Some(hosts) => {
                let mut numbers = std::collections::HashMap::new();
                let processes: Vec<u32> = hosts
                    .into_iter()
                    .map(|host| *numbers.entry(host.clone()).or_insert_with(|| drawing.add_process(host)))
                    .collect();
                Box::new(move |task| processes[task])
            }
        };
        let mut states = Vec::new();
        for rank in (0..tasks).map(Rank) {
            let task = settings.has(rank).then(|| {
                let process = process_of(rank.index());
                let track = Track { process, thread: rank.0, name: format!("rank {rank}"), below: None };
                Box::new(Task { track: drawing.add_track(track), ..Task::default() })
            });
            states.push(task);
        }
        if let Some(reader) = reader {
            for (rank, notes) in reader.notes_of_all(Section::Calls)? {
                if let Some(Some(task)) = states.get_mut(rank.index()) {
                    let mut calls = Calls { notes, now: None, next: None };
                    calls.step(reader)?;
                    task.calls = Some(calls);
                }
            }
        }
        Ok(Self { drawing, tasks: states, process_of, reader, op_codes, failed: None })
    }

    fn see(&mut self, started: &Started) -> Result<(), TimelineError> {
        let Some(task) = self.tasks[started.task.index()].as_deref_mut() else { return Ok(()) };
        if let (Some(calls), Some(reader), true) = (&mut task.calls, self.reader, started.record.is_some()) {
            calls.come_to(reader, started.number)?;
        }
        let call = task.calls.as_ref().and_then(|calls| calls.now.clone());
        let waited = std::mem::replace(&mut task.last, started.at);
        let record = started.record.unwrap_or(Raw::NOTHING);
        let after = (record.dependency_code(), record.after);
        let mut waits = true;
        if let Some(entered) = task.entered.take() {
            if after == (COLLECTIVE, entered.id) {
                // The task was blocked in it.
                draw_collective(self.drawing, task.track, &entered, started.released)?;
                waits = false;
            } else {
                task.beside.push(entered);
            }
        }
        // A message that had arrived before is received without waiting.
        if waits && (started.released > waited || after.0 == RECEIVED) {
            // The record's function may be a later one than that which waited.
            let name = match after.0 {
                SENT => "wait for send",
                RECEIVED => "wait for message",
                COLLECTIVE => "wait for collective",
                _ => "wait",
            };
            let message = [after.1.wrapping_add(1)];
            let receives = if after.0 == RECEIVED { &message[..] } else { &[] };
            let slice = Slice {
                begin: nanos(waited),
                end: nanos(started.released),
                name,
                facts: &[("for", Fact::Number(after.1))],
                sends: None,
                receives,
            };
            self.drawing.slice(task.track, &slice)?;
        }
        task.draw_beside(self.drawing, &self.process_of, started.task, started.at)?;
        let Some(record) = started.record else { return Ok(()) };
        match record.kind() {
            RawKind::Mark => Ok(()),
            RawKind::Message => {
                let facts = [
                    ("to", Fact::Number(record.to.into())),
                    ("bytes", Fact::Number(record.bytes)),
                    ("id", Fact::Number(record.id)),
                ];
                let slice = Slice {
                    begin: nanos(started.at),
                    end: nanos(started.at),
                    name: call.as_deref().unwrap_or("send"),
                    facts: &facts,
                    sends: record.awaited().then(|| record.id.wrapping_add(1)),
                    receives: &[],
                };
                self.drawing.slice(task.track, &slice)
            }
            RawKind::Collective => {
                let operation = self.op_codes.operation(OpCode(record.op));
                let name = operation.map_or("collective", |operation| operation.name());
                task.entered = Some(Entered {
                    id: record.id,
                    at: started.at,
                    left: None,
                    name: call.unwrap_or_else(|| name.to_owned()),
                    communicator: record.to,
                    bytes: [record.bytes, record.recv],
                });
                Ok(())
            }
        }
    }

    /// Draws what tasks wait for at the end of the window, where the replay stopped before they were done.
    fn cut(&mut self, engine: &Engine, end: Picos) -> Result<(), TimelineError> {
        // Behind the window: the drawing clips it.
        let behind = end.saturating_add(Picos(PICOS_PER_NANO));
        for task in self.tasks.iter_mut().flatten() {
            let pending = task.entered.iter_mut().chain(&mut task.beside);
            pending.for_each(|entered| entered.left = entered.left.or(Some(behind.max(entered.at))));
        }
        for next in engine.next_records(0).flatten() {
            let released = match (next.released, engine.reached(next.task.0)) {
                (Picos::MAX, Some(last)) => behind.max(last),
                (released, _) => released,
            };
            self.see(&Started { released, ..next })?;
        }
        Ok(())
    }

    /// Draws the collectives that are pending, or that no record waited for.
    fn finish(mut self) -> Result<(), TimelineError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        for (rank, task) in (0..).map(Rank).zip(&mut self.tasks) {
            let Some(task) = task else { continue };
            if let Some(entered) = task.entered.take() {
                let left = entered.left.unwrap_or(entered.at);
                draw_collective(self.drawing, task.track, &entered, left)?;
            }
            task.draw_beside(self.drawing, &self.process_of, rank, Picos::MAX)?;
        }
        Ok(())
    }
}

impl Sink for Watcher<'_, '_> {
    fn take(&mut self, _: Next) {}

    fn started(&mut self, started: &Started) {
        if self.failed.is_none() {
            self.failed = self.see(started).err();
        }
    }

    fn left(&mut self, left: &Left) {
        let Some(Some(task)) = self.tasks.get_mut(left.task.index()) else { return };
        let mut all = task.entered.iter_mut().chain(&mut task.beside);
        if let Some(entered) = all.find(|entered| entered.id == left.id.0) {
            entered.left = Some(left.at);
        }
    }
}

impl Task {
    /// Draws the non-blocking collectives that were complete at `now`.
    fn draw_beside(
        &mut self,
        drawing: &mut Drawing<'_>,
        process_of: &dyn Fn(usize) -> u32,
        rank: Rank,
        now: Picos,
    ) -> Result<(), TimelineError> {
        let is_over = |entered: &Entered| entered.left.is_some_and(|left| left <= now);
        while let Some(place) = self.beside.iter().position(is_over) {
            let entered = self.beside.remove(place);
            let left = entered.left.unwrap_or(entered.at);
            let lane = self.lanes.iter().position(|&(_, free)| free <= entered.at);
            let lane = match lane {
                Some(lane) => lane,
                None => {
                    let name = format!("rank {rank} in progress");
                    let process = process_of(rank.index());
                    let track = Track { process, thread: rank.0, name, below: Some(self.track) };
                    self.lanes.push((drawing.add_track(track), Picos::ZERO));
                    self.lanes.len() - 1
                }
            };
            self.lanes[lane].1 = left;
            draw_collective(drawing, self.lanes[lane].0, &entered, left)?;
        }
        Ok(())
    }
}

fn draw_collective(
    drawing: &mut Drawing<'_>,
    track: u32,
    entered: &Entered,
    end: Picos,
) -> Result<(), TimelineError> {
    let facts = [
        ("communicator", Fact::Number(entered.communicator.into())),
        ("bytes_sent", Fact::Number(entered.bytes[0])),
        ("bytes_received", Fact::Number(entered.bytes[1])),
        ("id", Fact::Number(entered.id)),
    ];
    let (begin, end) = (nanos(entered.at), nanos(end));
    drawing
        .slice(track, &Slice { begin, end, name: &entered.name, facts: &facts, sends: None, receives: &[] })
}

impl Calls {
    fn step(&mut self, reader: &Reader) -> Result<(), TimelineError> {
        self.next = match self.notes.next(reader)? {
            Some((place, Note::Call(name))) => Some((place, name.to_owned())),
            _ => None,
        };
        Ok(())
    }

    /// Advances to a record; records are passed in ascending order.
    fn come_to(&mut self, reader: &Reader, record: u64) -> Result<(), TimelineError> {
        while let Some((_, name)) = self.next.take_if(|(from, _)| *from <= record) {
            self.now = Some(name);
            self.step(reader)?;
        }
        Ok(())
    }
}

/// What a record waits for, by its tag.
const SENT: u8 = 1;
const RECEIVED: u8 = 2;
const COLLECTIVE: u8 = 3;

fn nanos(at: Picos) -> u64 {
    at.0 / PICOS_PER_NANO
}

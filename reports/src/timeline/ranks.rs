//! Draws the ranks of replays, record by record: with the times of the yardstick, or of a simulation.
//!
//! Computing is left blank. A send has no duration; a collective lasts from the task's entry until its part is complete; waits are
//! drawn with what they wait for, or, of simulations, with their causes, which then replace the collectives in which a task was blocked. Non-blocking
//! collectives are drawn on tracks of their own.

use super::drawing::Drawing;
use super::encoder::{Fact, Slice, Track};
use super::settings::{PICOS_PER_NANO, Settings, TimelineError};
use replay::{
    Cause, Engine, Label, Labels, Left, Met, Next, OpCodes, Picos, Raw, Sink, Started, Wait, Waits,
};
use std::sync::Arc;
use vef_format::ids::Rank;
use vef_format::operation::OpCode;
use vef_format::raw::RawKind;

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
}

/// A task's part of a collective.
#[derive(Clone, Debug)]
struct Entered {
    id: u64,
    at: Picos,
    left: Option<Picos>,
    name: Arc<str>,
    communicator: u32,
    bytes: [u64; 2],
}

/// What is known of a trace whose ranks are drawn.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The hosts of its tasks.
    pub(super) hosts: Option<Vec<String>>,
    /// What it says of its records.
    pub(super) labels: Option<Labels>,
    pub(super) op_codes: OpCodes,
}

/// One trace.
#[derive(Debug)]
struct Shown {
    /// `None`: the task is not drawn.
    tasks: Vec<Option<Box<Task>>>,
    /// The process of each task.
    processes: Vec<u32>,
    labels: Option<Labels>,
    op_codes: OpCodes,
}

/// The ranks of all traces of a replay.
pub(super) struct Ranks<'a, 'd> {
    drawing: &'a mut Drawing<'d>,
    jobs: Vec<Shown>,
    /// Set if waits are drawn by their causes.
    causes: Option<Waits>,
    failed: Option<TimelineError>,
}

impl<'a, 'd> Ranks<'a, 'd> {
    /// Nothing yet.
    pub(super) fn new(drawing: &'a mut Drawing<'d>) -> Self {
        Self { drawing, jobs: Vec::new(), causes: None, failed: None }
    }

    /// Draws waits by their causes in the simulation that `engine` is about to begin.
    pub(super) fn by_cause(&mut self, engine: &Engine) {
        self.causes = Some(Waits::new(engine));
        for (number, task) in (0..).zip(self.jobs.iter_mut().flat_map(|job| &mut job.tasks)) {
            if let Some(task) = task {
                task.last = engine.reached(number).unwrap_or_default();
            }
        }
    }

    /// Adds the next trace, of so many tasks; `name` tells it from others.
    pub(super) fn add(&mut self, name: &str, tasks: u32, settings: &Settings, known: Known) {
        let Known { hosts, labels, op_codes } = known;
        let of_all = vec!["ranks".to_owned(); tasks as usize];
        let mut numbers = std::collections::HashMap::new();
        let processes: Vec<u32> = hosts
            .unwrap_or(of_all)
            .into_iter()
            .map(|host| {
                let drawing = &mut *self.drawing;
                *numbers.entry(host).or_insert_with_key(|host| drawing.add_process(format!("{name}{host}")))
            })
            .collect();
        let shown = (0..tasks).map(Rank).zip(&processes).map(|(rank, &process)| {
            settings.has(rank).then(|| {
                let track = Track { process, thread: rank.0, name: format!("rank {rank}"), below: None };
                Box::new(Task { track: self.drawing.add_track(track), ..Task::default() })
            })
        });
        let tasks = shown.collect();
        self.jobs.push(Shown { tasks, processes, labels, op_codes });
    }

    fn see(&mut self, started: &Started) -> Result<(), TimelineError> {
        let Some(job) = self.jobs.get_mut(started.job as usize) else { return Ok(()) };
        let Shown { tasks, processes, labels, op_codes } = job;
        let mut parts = Vec::new();
        if let Some(causes) = &mut self.causes {
            causes.started(started, |wait| parts.push(*wait));
        }
        let Some(task) = tasks[started.task.index()].as_deref_mut() else { return Ok(()) };
        let process = processes[started.task.index()];
        let call = match (&mut *labels, started.record) {
            (Some(labels), Some(_)) => labels.of(started.task, started.number)?.function,
            _ => None,
        };
        let waited = std::mem::replace(&mut task.last, started.at);
        let record = started.record.unwrap_or(Raw::NOTHING);
        let after = (record.dependency_code(), record.after);
        let mut waits = true;
        if let Some(entered) = task.entered.take() {
            if after == (COLLECTIVE, entered.id) {
                // The task was blocked in it.
                if self.causes.is_none() {
                    draw_collective(self.drawing, task.track, &entered, started.released)?;
                }
                waits = false;
            } else {
                task.beside.push(entered);
            }
        }
        let message = [flow(started.job, after.1)];
        let receives = if after.0 == RECEIVED { &message[..] } else { &[] };
        let is_drawn = match self.causes {
            Some(_) => !parts.is_empty() || !receives.is_empty(),
            // A message that had arrived before is received without waiting.
            None => waits && (started.released > waited || after.0 == RECEIVED),
        };
        let waiting = match labels {
            Some(labels) if is_drawn => call_that_waits(labels, started.task, started.number)?,
            _ => Label::default(),
        };
        let facts = facts_of_wait(after.1, &waiting);
        let wait = Slice {
            begin: nanos(waited),
            end: nanos(started.released),
            name: "wait",
            facts: &facts,
            sends: None,
            receives,
        };
        if self.causes.is_some() {
            draw_causes(self.drawing, task.track, &wait, &parts)?;
        } else if is_drawn {
            let name = match after.0 {
                SENT => "wait for send",
                RECEIVED => "wait for message",
                COLLECTIVE => "wait for collective",
                _ => "wait",
            };
            self.drawing.slice(task.track, &Slice { name, ..wait })?;
        }
        task.draw_beside(self.drawing, process, started.task, started.at)?;
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
                    sends: record.awaited().then(|| flow(started.job, record.id)),
                    receives: &[],
                };
                self.drawing.slice(task.track, &slice)
            }
            RawKind::Collective => {
                let operation = op_codes.operation(OpCode(record.op));
                let name = operation.map_or("collective", |operation| operation.name());
                task.entered = Some(Entered {
                    id: record.id,
                    at: started.at,
                    left: None,
                    name: call.unwrap_or_else(|| Arc::from(name)),
                    communicator: record.to,
                    bytes: [record.bytes, record.recv],
                });
                Ok(())
            }
        }
    }

    /// Draws what tasks wait for at the end of the window, where the replay stopped before they were done.
    pub(super) fn cut(&mut self, engine: &Engine, end: Picos) -> Result<(), TimelineError> {
        // Behind the window: the drawing clips it.
        let behind = end.saturating_add(Picos(PICOS_PER_NANO));
        for task in self.jobs.iter_mut().flat_map(|job| &mut job.tasks).flatten() {
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

    /// Draws what a task waits for behind its last record, its collective, by causes.
    fn draw_last(&mut self, parts: &[Wait]) -> Result<(), TimelineError> {
        let Some(Wait { job, task: rank, record, .. }) = parts.first() else { return Ok(()) };
        let Shown { tasks, labels, .. } = &mut self.jobs[*job as usize];
        let Some(task) = tasks[rank.index()].as_deref_mut() else { return Ok(()) };
        let Some(entered) = task.entered.take() else { return Ok(()) };
        let waiting = labels.as_mut().map(|labels| call_that_waits(labels, *rank, *record)).transpose()?;
        let waiting = waiting.unwrap_or_default();
        let facts = facts_of_wait(entered.id, &waiting);
        let whole = Slice { begin: 0, end: 0, name: "wait", facts: &facts, sends: None, receives: &[] };
        draw_causes(self.drawing, task.track, &whole, parts)
    }

    /// Draws the collectives that are pending, or that no record waited for.
    pub(super) fn finish(mut self) -> Result<(), TimelineError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut last = Vec::new();
        if let Some(causes) = &mut self.causes {
            causes.end(|wait| last.push(*wait));
        }
        for parts in last.chunk_by(|one, other| (one.job, one.task) == (other.job, other.task)) {
            self.draw_last(parts)?;
        }
        for Shown { tasks, processes, .. } in &mut self.jobs {
            for ((rank, task), &process) in (0..).map(Rank).zip(tasks).zip(&*processes) {
                let Some(task) = task else { continue };
                if let Some(entered) = task.entered.take() {
                    let left = entered.left.unwrap_or(entered.at);
                    draw_collective(self.drawing, task.track, &entered, left)?;
                }
                task.draw_beside(self.drawing, process, rank, Picos::MAX)?;
            }
        }
        Ok(())
    }
}

impl Sink for Ranks<'_, '_> {
    fn take(&mut self, _: Next) {}

    fn started(&mut self, started: &Started) {
        if self.failed.is_none() {
            self.failed = self.see(started).err();
        }
    }

    fn met(&mut self, met: &Met) {
        if let Some(causes) = &mut self.causes {
            causes.met(met);
        }
    }

    fn left(&mut self, left: &Left) {
        if let Some(causes) = &mut self.causes {
            causes.left(left);
        }
        let Some(job) = self.jobs.get_mut(left.job as usize) else { return };
        let Some(Some(task)) = job.tasks.get_mut(left.task.index()) else { return };
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
        process: u32,
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

/// The call in which a task waits in front of a record: that of the record before.
fn call_that_waits(labels: &mut Labels, task: Rank, record: u64) -> Result<Label, TimelineError> {
    Ok(record.checked_sub(1).map(|before| labels.of(task, before)).transpose()?.unwrap_or_default())
}

/// What a wait is for, and in which call.
fn facts_of_wait(id: u64, call: &Label) -> Vec<(&'static str, Fact<'_>)> {
    let named = [("function", &call.function), ("phase", &call.phase)];
    let named = named.into_iter().filter_map(|(what, name)| Some((what, Fact::Text(name.as_deref()?))));
    std::iter::once(("for", Fact::Number(id))).chain(named).collect()
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

/// Draws the parts of a wait, of a simulation: `whole` has what it waits for.
fn draw_causes(
    drawing: &mut Drawing<'_>,
    track: u32,
    whole: &Slice<'_>,
    parts: &[Wait],
) -> Result<(), TimelineError> {
    for (at, wait) in parts.iter().enumerate() {
        let mut facts = whole.facts.to_vec();
        facts.extend(wait.on.map(|on| ("rank", Fact::Number(on.0.into()))));
        let name = match wait.cause {
            Cause::LateSender => "late sender",
            Cause::Message => "message under way",
            Cause::LateMember => "late member",
            Cause::Collective => "collective under way",
            Cause::LateReceiver => "late receiver",
            Cause::Send => "send not complete",
        };
        let (begin, end) = (nanos(wait.from), nanos(wait.to));
        let receives = if at + 1 == parts.len() { whole.receives } else { &[] };
        drawing.slice(track, &Slice { begin, end, name, facts: &facts, sends: None, receives })?;
    }
    // A message that had arrived before.
    if parts.is_empty() && !whole.receives.is_empty() {
        drawing.slice(track, &Slice { name: "message", end: whole.begin, ..*whole })?;
    }
    Ok(())
}

/// The number of a message's arrow.
fn flow(job: u32, id: u64) -> u64 {
    id.wrapping_add(1) ^ u64::from(job).rotate_right(16)
}

/// What a record waits for, by its tag.
const SENT: u8 = 1;
const RECEIVED: u8 = 2;
const COLLECTIVE: u8 = 3;

pub(super) fn nanos(at: Picos) -> u64 {
    at.0 / PICOS_PER_NANO
}

//! Runs a trace: `replay` decides the next operations of a task, its processor and interface decide their
//! times.
//!
//! Between calls of the replay, a task computes and sends in sequence: these steps are a list, of which the
//! first is tried. The replay itself runs with a network that takes no time of tasks; only the computing
//! times between its steps are used.

use std::time::Instant;

use replay::{Engine, LiveId, Message, Next, Wake};
use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::machine::{Agenda, Costs, Entry, Interface};
use super::{LogGp, Rendezvous};
use crate::error::SimError;
use crate::histogram::Histogram;
use crate::progress::{PROGRESS_EVERY, Progress};

/// The result of a trace.
pub(crate) struct Outcome {
    /// When the processor of each task of all jobs is free for good.
    pub(crate) finish: Vec<Picos>,
    pub(crate) latencies: Histogram,
    pub(crate) events: u64,
    pub(crate) wall: std::time::Duration,
}

/// Runs an engine that has not begun and that needs reports of sends ([`replay::SendCompletion::WhenSent`]).
pub(crate) fn run_trace(
    engine: &mut Engine,
    settings: &LogGp,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, SimError> {
    let began = Instant::now();
    let mut run = Run::new(engine, *settings);
    run.begin()?;
    let mut until_progress = PROGRESS_EVERY;
    while let Some((t, entry)) = run.agenda.next() {
        match entry.what {
            Try::Step(task) => run.step(t, task, entry)?,
            Try::Arrival(message) => run.arrival(t, message, entry)?,
            Try::Announced(message) => {
                let to = run.flights[message as usize].to;
                run.agenda.ready(run.tasks[to as usize].cpu.max(t), Try::Ask(message));
            }
            Try::Ask(message) => run.ask(t, message, entry)?,
            Try::Asked(message) => run.asked(t, message, entry)?,
        }
        until_progress -= 1;
        if until_progress == 0 {
            until_progress = PROGRESS_EVERY;
            progress(Progress { delivered: run.engine.stats().delivered, now: t });
        }
    }
    Ok(Outcome {
        finish: run.tasks.iter().map(|task| task.cpu).collect(),
        events: run.agenda.count(),
        latencies: run.latencies,
        wall: began.elapsed(),
    })
}

/// An operation to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Try {
    /// The first step of a task.
    Step(u32),
    /// A message has arrived at its receiver.
    Arrival(u32),
    /// A message is announced; its receiver can request it; the request has arrived at its sender.
    Announced(u32),
    Ask(u32),
    Asked(u32),
}

/// A step of a task.
#[derive(Clone, Copy, Debug)]
enum Step {
    Compute(Picos),
    Send(u32),
    /// Send within the node, which takes this time, but no processor time.
    SendInside(u32, Picos),
    /// Call the replay for the next operations.
    Wake(Wake),
}

#[derive(Clone, Copy, Debug)]
struct Task {
    cpu: Picos,
    interface: Interface,
    /// Time of the task in the replay: the start of its last record.
    reached: Picos,
    /// First and last of its steps.
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Flight {
    id: LiveId,
    bytes: Bytes,
    from: u32,
    to: u32,
    inside: bool,
    /// When its sender first tried to send it.
    handed_over: Picos,
}

struct Run<'a> {
    engine: &'a mut Engine,
    costs: Costs,
    settings: LogGp,
    /// First task of each job, and the number of all tasks.
    first_task: Vec<u32>,
    tasks: Vec<Task>,
    steps: Slab<(Step, u32)>,
    flights: Slab<Flight>,
    agenda: Agenda<Try>,
    /// Results of a call of the replay.
    following: Vec<Next>,
    latencies: Histogram,
}

impl<'a> Run<'a> {
    fn new(engine: &'a mut Engine, settings: LogGp) -> Self {
        let mut first_task = Vec::new();
        let mut tasks = 0;
        for job in 0..engine.jobs() {
            first_task.push(tasks);
            tasks += engine.tasks(job);
        }
        let idle = Task {
            cpu: Picos::ZERO,
            interface: Interface::default(),
            reached: Picos::ZERO,
            first: NONE,
            last: NONE,
        };
        Self {
            engine,
            costs: Costs::new(settings),
            settings,
            first_task,
            tasks: vec![idle; tasks as usize],
            steps: Slab::new(),
            flights: Slab::new(),
            agenda: Agenda::new(),
            following: Vec::new(),
            latencies: Histogram::default(),
        }
    }

    fn begin(&mut self) -> Result<(), SimError> {
        let Self { engine, following, .. } = self;
        engine.begin(&mut |next: Next| following.push(next))?;
        self.follow();
        for task in 0..self.tasks.len() as u32 {
            self.compute_on(task);
        }
        Ok(())
    }

    /// Follows a call of the replay for `task` at `at`.
    #[inline]
    fn called(&mut self, task: u32, at: Picos) {
        let state = &mut self.tasks[task as usize];
        state.reached = state.reached.max(at);
        self.follow();
        self.compute_on(task);
    }

    /// Turns the results of a call into steps.
    #[inline]
    fn follow(&mut self) {
        let mut following = std::mem::take(&mut self.following);
        for next in following.drain(..) {
            match next {
                Next::Message(message) => {
                    let (from, flight) = self.flight(&message, false);
                    self.compute_until(from, message.start);
                    self.add(from, Step::Send(flight));
                }
                Next::Inside { message, arrives } => {
                    let (from, flight) = self.flight(&message, true);
                    self.compute_until(from, message.start);
                    self.add(from, Step::SendInside(flight, Picos(arrives.0 - message.start.0)));
                }
                Next::Wake(wake) => {
                    let Some((job, rank)) = self.engine.task_of(&wake) else { continue };
                    let task = self.first_task[job as usize] + rank.0;
                    self.compute_until(task, wake.at);
                    self.add(task, Step::Wake(wake));
                }
            }
        }
        self.following = following;
    }

    #[inline]
    fn flight(&mut self, message: &Message, inside: bool) -> (u32, u32) {
        let first = self.first_task[message.job as usize];
        let (from, to) = (first + message.src.0, first + message.dst.0);
        let Message { id, bytes, .. } = *message;
        let flight = Flight { id, bytes, from, to, inside, handed_over: Picos::MAX };
        (from, self.flights.insert(flight) as u32)
    }

    /// Adds the computing of a task between its last step and its wait.
    #[inline]
    fn compute_on(&mut self, task: u32) {
        if let Some(reached) = self.engine.reached(task) {
            self.compute_until(task, reached);
        }
    }

    #[inline]
    fn compute_until(&mut self, task: u32, at: Picos) {
        let state = &mut self.tasks[task as usize];
        if at > state.reached {
            let time = Picos(at.0 - state.reached.0);
            state.reached = at;
            self.add(task, Step::Compute(time));
        }
    }

    /// Adds a step to a task; if it is the first, it is ready.
    #[inline]
    fn add(&mut self, task: u32, step: Step) {
        let slot = self.steps.insert((step, NONE)) as u32;
        let state = &mut self.tasks[task as usize];
        let before = std::mem::replace(&mut state.last, slot);
        if before == NONE {
            state.first = slot;
            self.ready(task);
        } else {
            self.steps[before as usize].1 = slot;
        }
    }

    /// The first step of a task is ready: it is tried when its processor, and interface, are free.
    #[inline]
    fn ready(&mut self, task: u32) {
        let Task { cpu, interface, first, .. } = self.tasks[task as usize];
        let at = match self.steps[first as usize].0 {
            Step::Send(_) => cpu.max(interface.out),
            _ => cpu,
        };
        self.agenda.ready(at, Try::Step(task));
    }

    fn step(&mut self, t: Picos, task: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let state = &mut self.tasks[task as usize];
        let step = self.steps[state.first as usize].0;
        let free = match step {
            Step::Send(_) => state.cpu.max(state.interface.out),
            _ => state.cpu,
        };
        if let Step::Send(message) | Step::SendInside(message, _) = step {
            let handed_over = &mut self.flights[message as usize].handed_over;
            *handed_over = t.min(*handed_over);
        }
        if free > t {
            self.agenda.retry(free, entry);
            return Ok(());
        }
        // The step has started: the next one is ready.
        let (_, next) = self.steps.remove(state.first as usize);
        state.first = next;
        if next == NONE {
            state.last = NONE;
        }
        match step {
            Step::Compute(time) => {
                let bytes = Bytes::ZERO;
                state.cpu = t.checked_add(time).ok_or(crate::model::OutOfTime { bytes })?;
                self.start_next(task, next);
            }
            Step::Send(message) => self.leave(t, task, message, next)?,
            Step::SendInside(message, time) => {
                let Flight { id, bytes, .. } = self.flights[message as usize];
                let arrives = t.checked_add(time).ok_or(crate::model::OutOfTime { bytes })?;
                self.agenda.ready(arrives, Try::Arrival(message));
                self.start_next(task, next);
                self.sent(id, task)?;
            }
            Step::Wake(wake) => {
                let at = t.max(wake.at);
                let Self { engine, following, .. } = self;
                engine.wake(wake, at, &mut |next: Next| following.push(next))?;
                self.start_next(task, next);
                self.called(task, at);
            }
        }
        Ok(())
    }

    #[inline]
    fn start_next(&mut self, task: u32, next: u32) {
        if next != NONE {
            self.ready(task);
        }
    }

    /// Sends or announces a message at `t`.
    #[inline]
    fn leave(&mut self, t: Picos, task: u32, message: u32, next: u32) -> Result<(), SimError> {
        let Flight { id, bytes, .. } = self.flights[message as usize];
        let eager = self.costs.is_eager(bytes);
        let state = &mut self.tasks[task as usize];
        if !eager && self.settings.rendezvous == Rendezvous::Handshake {
            let at = self.costs.control(t, &mut state.cpu)?;
            self.agenda.ready(at, Try::Announced(message));
            self.start_next(task, next);
            return Ok(());
        }
        let at = self.costs.send(t, bytes, &mut state.cpu, &mut state.interface)?;
        self.agenda.ready(at, Try::Arrival(message));
        self.start_next(task, next);
        if eager { self.sent(id, task) } else { Ok(()) }
    }

    /// Completes a send for its task, whose processor may still be busy with it.
    #[inline]
    fn sent(&mut self, id: LiveId, task: u32) -> Result<(), SimError> {
        let at = self.tasks[task as usize].cpu.max(self.tasks[task as usize].reached);
        let Self { engine, following, .. } = self;
        engine.sent(id, at, &mut |next: Next| following.push(next))?;
        self.called(task, at);
        Ok(())
    }

    fn arrival(&mut self, t: Picos, message: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let Flight { id, bytes, from, to, inside, handed_over } = self.flights[message as usize];
        let state = &mut self.tasks[to as usize];
        let free = if inside { state.cpu } else { state.cpu.max(state.interface.into) };
        if free > t {
            self.agenda.retry(free, entry);
            return Ok(());
        }
        if !inside {
            self.costs.take(t, bytes, &mut state.cpu, &mut state.interface)?;
            self.latencies.add(state.cpu.max(t).0 - handed_over.0);
        }
        let at = state.cpu.max(t).max(state.reached);
        self.flights.remove(message as usize);
        if !inside && !self.costs.is_eager(bytes) {
            let sender = &mut self.tasks[from as usize];
            if self.settings.rendezvous == Rendezvous::Late {
                (sender.cpu, sender.interface.out) = (sender.cpu.max(t), sender.interface.out.max(t));
            }
            self.sent(id, from)?;
        }
        let Self { engine, following, .. } = self;
        engine.delivered(id, at, &mut |next: Next| following.push(next))?;
        self.called(to, at);
        Ok(())
    }

    /// The receiver requests a message.
    fn ask(&mut self, t: Picos, message: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let state = &mut self.tasks[self.flights[message as usize].to as usize];
        if state.cpu > t {
            self.agenda.retry(state.cpu, entry);
            return Ok(());
        }
        let at = self.costs.control(t, &mut state.cpu)?;
        self.agenda.ready(at, Try::Asked(message));
        Ok(())
    }

    /// Sends a message that was requested.
    fn asked(&mut self, t: Picos, message: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let Flight { bytes, from, .. } = self.flights[message as usize];
        let state = &mut self.tasks[from as usize];
        let free = state.cpu.max(state.interface.out);
        if free > t {
            self.agenda.retry(free, entry);
            return Ok(());
        }
        let at = self.costs.send(t, bytes, &mut state.cpu, &mut state.interface)?;
        self.agenda.ready(at, Try::Arrival(message));
        Ok(())
    }
}

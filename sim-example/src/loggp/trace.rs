//! Runs a trace: `replay` decides the next operations of a task, its processor and interface decide their
//! times.
//!
//! Between calls of the replay, a task computes and sends in sequence: these steps are a list, of which the
//! first is tried. The replay itself runs with a network that takes no time of tasks; only the computing
//! times between its steps are used.

use std::hint::black_box;
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

/// Runs an engine that has not begun, whose sends of more than S bytes are complete when they are reported sent
/// ([`replay::SendCompletion::LargeWhenSent`]).
pub(crate) fn run_trace(
    engine: &mut Engine,
    settings: &LogGp,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, SimError> {
    let began = Instant::now();
    let mut run = Run::new(engine, *settings);
    run.begin()?;
    let mut until_progress = PROGRESS_EVERY;
    while let Some((t, entry)) = run.next() {
        match entry.what {
            Try::Step(task) => run.step(t, task, entry)?,
            Try::Arrival(message) => run.arrival(t, message, entry)?,
            Try::Announced(message) => {
                let to = run.flight(message).to;
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

/// A step of a task, one cache line. The step of a message is kept until the message has arrived.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Step {
    what: What,
    /// The next step of the task.
    next: u32,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Compute(Picos),
    Send(Flight),
    /// Call the replay for the next operations.
    Wake(Wake),
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    id: LiveId,
    bytes: Bytes,
    from: u32,
    to: u32,
    /// The time of a message within its node, which takes no processor time.
    inside: Option<Picos>,
    /// When its sender first tried to send it.
    handed_over: Picos,
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

impl Task {
    /// When the processor, and the interface, are free for a step.
    #[inline]
    fn free_for(&self, what: &What) -> Picos {
        match what {
            What::Send(Flight { inside: None, .. }) => self.cpu.max(self.interface.out),
            _ => self.cpu,
        }
    }

    /// Removes the first step, before `next`.
    #[inline]
    fn remove_first(&mut self, next: u32) {
        self.first = next;
        if next == NONE {
            self.last = NONE;
        }
    }
}

const NONE: u32 = u32::MAX;

struct Run<'a> {
    engine: &'a mut Engine,
    costs: Costs,
    settings: LogGp,
    /// First task of each job, and the number of all tasks.
    first_task: Vec<u32>,
    tasks: Vec<Task>,
    steps: Slab<Step>,
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

    /// The next operation to try.
    #[inline]
    fn next(&mut self) -> Option<(Picos, Entry<Try>)> {
        let Self { agenda, tasks, steps, .. } = self;
        agenda.next(|today| fetch(today, tasks, steps))
    }

    #[inline]
    fn flight(&self, message: u32) -> &Flight {
        match &self.steps[message as usize].what {
            What::Send(flight) => flight,
            _ => unreachable!("only steps of messages are tried as messages"),
        }
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
                Next::Message(message) => self.add_message(&message, None),
                Next::Inside { message, arrives } => {
                    self.add_message(&message, Some(Picos(arrives.0 - message.start.0)));
                }
                Next::Wake(wake) => {
                    let Some((job, rank)) = self.engine.task_of(&wake) else { continue };
                    let task = self.first_task[job as usize] + rank.0;
                    self.compute_until(task, wake.at);
                    self.add(task, What::Wake(wake));
                }
            }
        }
        self.following = following;
    }

    #[inline]
    fn add_message(&mut self, message: &Message, inside: Option<Picos>) {
        let &Message { id, bytes, start, .. } = message;
        let first = self.first_task[message.job as usize];
        let (from, to) = (first + message.src.0, first + message.dst.0);
        self.compute_until(from, start);
        self.add(from, What::Send(Flight { id, bytes, from, to, inside, handed_over: Picos::MAX }));
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
            self.add(task, What::Compute(time));
        }
    }

    /// Adds a step to a task; if it is the first, it is ready.
    #[inline]
    fn add(&mut self, task: u32, what: What) {
        let slot = self.steps.insert(Step { what, next: NONE }) as u32;
        let state = &mut self.tasks[task as usize];
        let before = std::mem::replace(&mut state.last, slot);
        if before == NONE {
            state.first = slot;
            self.ready(task);
        } else {
            self.steps[before as usize].next = slot;
        }
    }

    /// The first step of a task is ready: it is tried when its processor, and interface, are free.
    #[inline]
    fn ready(&mut self, task: u32) {
        let state = &self.tasks[task as usize];
        let at = state.free_for(&self.steps[state.first as usize].what);
        self.agenda.ready(at, Try::Step(task));
    }

    fn step(&mut self, t: Picos, task: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let state = &mut self.tasks[task as usize];
        let slot = state.first;
        let Step { what, next } = &mut self.steps[slot as usize];
        if let What::Send(flight) = what {
            flight.handed_over = t.min(flight.handed_over);
        }
        let free = state.free_for(what);
        if free > t {
            self.agenda.retry(free, entry);
            return Ok(());
        }
        // The step has started: the next one is ready.
        let (what, next) = (*what, *next);
        state.remove_first(next);
        match what {
            What::Compute(time) => {
                self.steps.remove(slot as usize);
                let bytes = Bytes::ZERO;
                state.cpu = t.checked_add(time).ok_or(crate::model::OutOfTime { bytes })?;
                self.start_next(task, next)
            }
            What::Send(flight) => match flight.inside {
                None => self.leave(t, slot, &flight, next),
                Some(time) => {
                    let Flight { id, bytes, .. } = flight;
                    let arrives = t.checked_add(time).ok_or(crate::model::OutOfTime { bytes })?;
                    self.agenda.ready(arrives, Try::Arrival(slot));
                    self.start_next(task, next)?;
                    if self.costs.is_eager(bytes) { Ok(()) } else { self.sent(id, task) }
                }
            },
            What::Wake(wake) => {
                self.steps.remove(slot as usize);
                self.wake(task, wake, next)
            }
        }
    }

    /// The step before `next` has started. A wake, which takes no time, follows at once: what it adds becomes ready now.
    #[inline]
    fn start_next(&mut self, task: u32, next: u32) -> Result<(), SimError> {
        match self.steps.get(next as usize) {
            None => {}
            Some(&Step { what: What::Wake(wake), next: then }) => {
                self.steps.remove(next as usize);
                self.tasks[task as usize].remove_first(then);
                return self.wake(task, wake, then);
            }
            Some(_) => self.ready(task),
        }
        Ok(())
    }

    fn wake(&mut self, task: u32, wake: Wake, next: u32) -> Result<(), SimError> {
        let state = &self.tasks[task as usize];
        let at = state.cpu.max(state.reached).max(wake.at);
        let Self { engine, following, .. } = self;
        engine.wake(wake, at, &mut |next: Next| following.push(next))?;
        self.start_next(task, next)?;
        self.called(task, at);
        Ok(())
    }

    /// Sends or announces a message at `t`.
    #[inline]
    fn leave(&mut self, t: Picos, message: u32, flight: &Flight, next: u32) -> Result<(), SimError> {
        let &Flight { bytes, from: task, .. } = flight;
        let state = &mut self.tasks[task as usize];
        if !self.costs.is_eager(bytes) && self.settings.rendezvous == Rendezvous::Handshake {
            let at = self.costs.control(t, &mut state.cpu)?;
            self.agenda.ready(at, Try::Announced(message));
            return self.start_next(task, next);
        }
        let at = self.costs.send(t, bytes, &mut state.cpu, &mut state.interface)?;
        self.agenda.ready(at, Try::Arrival(message));
        self.start_next(task, next)
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
        let Flight { id, bytes, from, to, inside, handed_over } = *self.flight(message);
        let inside = inside.is_some();
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
        self.steps.remove(message as usize);
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
        let to = self.flight(message).to;
        let state = &mut self.tasks[to as usize];
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
        let Flight { bytes, from, .. } = *self.flight(message);
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

/// Loads the tasks and steps of a day's operations into the cache. These loads are independent, so cache misses overlap; the
/// operations themselves would take one miss after the other.
fn fetch(today: &[(u64, Entry<Try>)], tasks: &[Task], steps: &Slab<Step>) {
    let step = |slot: u32| steps.get(slot as usize);
    let read = |what: Try| match what {
        Try::Step(task) => step(tasks[task as usize].first).map_or(NONE, |step| step.next),
        Try::Arrival(message) | Try::Announced(message) | Try::Ask(message) | Try::Asked(message) => {
            match step(message).map(|step| &step.what) {
                Some(What::Send(flight)) => tasks[flight.to as usize].first,
                _ => NONE,
            }
        }
    };
    black_box(today.iter().fold(0, |sum, (_, entry)| sum ^ read(entry.what)));
}

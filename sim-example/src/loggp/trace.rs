//! Runs a trace: `replay` decides the next operations of a task, its processor and interface decide their
//! times.
//!
//! Between calls of the replay, a task computes and sends in sequence: these steps are a list, of which the
//! first is tried. The replay itself runs with a network that takes no time of tasks; only the computing
//! times between its steps are used.

use std::hint::black_box;
use std::time::Instant;

use replay::{Engine, LiveId, Message, Next, Sink, Wake};
use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::machine::{Agenda, Costs, Entry, Interface, processor, receiving, sending};
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
            Try::Arrival(flight) => run.arrival(t, flight, entry)?,
            Try::Inside(flight) => run.arrival_inside(t, flight, entry)?,
            Try::Announced(flight) => {
                let to = run.flights[flight as usize].to;
                run.all.agenda.ready(run.all.tasks[to as usize].cpu.max(t), Try::Ask(flight));
            }
            Try::Ask(flight) => run.ask(t, flight, entry)?,
            Try::Asked(flight) => run.asked(t, flight, entry)?,
        }
        until_progress -= 1;
        if until_progress == 0 {
            until_progress = PROGRESS_EVERY;
            progress(Progress { delivered: run.engine.stats().delivered, now: t });
        }
    }
    Ok(Outcome {
        finish: run.all.tasks.iter().map(|task| task.cpu).collect(),
        events: run.all.agenda.count(),
        latencies: run.latencies,
        wall: began.elapsed(),
    })
}

/// An operation to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Try {
    /// The first step of a task.
    Step(u32),
    /// A message has arrived at its receiver, over the network or within its node.
    Arrival(u32),
    Inside(u32),
    /// A message is announced; its receiver can request it; the request has arrived at its sender.
    Announced(u32),
    Ask(u32),
    Asked(u32),
}

/// A message that its sender has handed over.
#[derive(Clone, Copy, Debug)]
struct Flight {
    id: LiveId,
    bytes: Bytes,
    /// When its sender first tried to send it.
    handed_over: Picos,
    from: u32,
    to: u32,
}

/// A step of a task.
#[derive(Clone, Copy, Debug)]
enum Step {
    Compute(Picos),
    Send {
        to: u32,
        id: LiveId,
        bytes: Bytes,
        /// When it was first tried, or [`Picos::MAX`].
        handed_over: Picos,
    },
    /// Send a message within the node, which takes no processor time.
    SendInside {
        to: u32,
        id: LiveId,
        bytes: Bytes,
        time: Picos,
    },
    /// Call the replay for the next operations.
    Wake(Wake),
}

#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Task {
    cpu: Picos,
    interface: Interface,
    /// Time of the task in the replay: the start of its last record.
    reached: Picos,
    steps: Steps,
}

/// The next steps of a task.
#[derive(Clone, Debug, Default)]
struct Steps {
    list: Vec<Step>,
    /// Number of steps in the list that have started.
    started: u32,
}

impl Steps {
    #[inline]
    fn first(&self) -> Option<&Step> {
        self.list.get(self.started as usize)
    }

    #[inline]
    fn first_mut(&mut self) -> Option<&mut Step> {
        self.list.get_mut(self.started as usize)
    }

    /// Removes the first step.
    #[inline]
    fn start(&mut self) {
        self.started += 1;
        if self.started as usize >= self.list.len() {
            self.list.clear();
            self.started = 0;
        }
    }

    #[inline]
    fn push(&mut self, step: Step) {
        // Instead of growing, make room; that moves each step at most once a turn.
        if self.list.len() == self.list.capacity() && 2 * self.started as usize >= self.list.len() {
            self.list.drain(..std::mem::take(&mut self.started) as usize);
        }
        self.list.push(step);
    }
}

impl Task {
    /// When the processor, and the interface, are free for the first step.
    #[inline]
    fn free(&self) -> Picos {
        match self.steps.first() {
            Some(Step::Send { .. }) => self.cpu.max(self.interface.out),
            _ => self.cpu,
        }
    }
}

/// The tasks with their steps, and the operations to try.
struct Tasks {
    /// First task of each job.
    first_task: Vec<u32>,
    tasks: Vec<Task>,
    agenda: Agenda<Try>,
    /// Results of a call of the replay that are not steps yet.
    following: Vec<Next>,
}

impl Sink for Tasks {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        match next {
            Next::Message(message) if self.following.is_empty() => self.send(&message),
            next => self.following.push(next),
        }
    }
}

impl Tasks {
    /// Turns the results of a call into steps.
    fn follow(&mut self, engine: &Engine) {
        let mut following = std::mem::take(&mut self.following);
        for next in following.drain(..) {
            match next {
                Next::Message(message) => self.send(&message),
                Next::Inside { message, arrives } => {
                    let Message { id, bytes, start, .. } = message;
                    let time = Picos(arrives.0 - start.0);
                    self.add_message(&message, |to| Step::SendInside { to, id, bytes, time });
                }
                Next::Wake(wake) => {
                    let Some((job, rank)) = engine.task_of(&wake) else { continue };
                    let task = self.first_task[job as usize] + rank.0;
                    self.compute_until(task, wake.at);
                    self.add(task, Step::Wake(wake));
                }
            }
        }
        self.following = following;
    }

    #[inline]
    fn send(&mut self, message: &Message) {
        let &Message { id, bytes, .. } = message;
        self.add_message(message, |to| Step::Send { to, id, bytes, handed_over: Picos::MAX });
    }

    /// Adds the step that sends a message, made from its receiver.
    #[inline]
    fn add_message(&mut self, message: &Message, step: impl FnOnce(u32) -> Step) {
        let first = self.first_task[message.job as usize];
        let from = first + message.src.0;
        self.compute_until(from, message.start);
        self.add(from, step(first + message.dst.0));
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
        let steps = &mut self.tasks[task as usize].steps;
        let is_first = steps.first().is_none();
        steps.push(step);
        if is_first {
            self.ready(task);
        }
    }

    /// The first step of a task is ready: it is tried when its processor, and interface, are free.
    #[inline]
    fn ready(&mut self, task: u32) {
        self.agenda.ready(self.tasks[task as usize].free(), Try::Step(task));
    }
}

struct Run<'a> {
    engine: &'a mut Engine,
    costs: Costs,
    settings: LogGp,
    all: Tasks,
    flights: Slab<Flight>,
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
        Self {
            engine,
            costs: Costs::new(settings),
            settings,
            all: Tasks {
                first_task,
                tasks: vec![Task::default(); tasks as usize],
                agenda: Agenda::new(),
                following: Vec::new(),
            },
            flights: Slab::new(),
            latencies: Histogram::default(),
        }
    }

    fn begin(&mut self) -> Result<(), SimError> {
        self.engine.begin(&mut self.all.following)?;
        self.all.follow(self.engine);
        for task in 0..self.all.tasks.len() as u32 {
            self.compute_on(task);
        }
        Ok(())
    }

    /// The next operation to try.
    #[inline]
    fn next(&mut self) -> Option<(Picos, Entry<Try>)> {
        let Self { all: Tasks { agenda, tasks, .. }, flights, engine, .. } = self;
        agenda.next(|today| fetch(today, tasks, flights, engine))
    }

    /// Follows a call of the replay for `task` at `at`.
    #[inline]
    fn called(&mut self, task: u32, at: Picos) {
        let state = &mut self.all.tasks[task as usize];
        state.reached = state.reached.max(at);
        self.all.follow(self.engine);
        self.compute_on(task);
    }

    /// Adds the computing of a task between its last step and its wait.
    #[inline]
    fn compute_on(&mut self, task: u32) {
        if let Some(reached) = self.engine.reached(task) {
            self.all.compute_until(task, reached);
        }
    }

    fn step(&mut self, t: Picos, task: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let state = &mut self.all.tasks[task as usize];
        let free = state.free();
        let Some(step) = state.steps.first_mut() else { return Ok(()) };
        if let Step::Send { handed_over, .. } = step {
            *handed_over = t.min(*handed_over);
        }
        if free > t {
            self.all.agenda.retry(free, entry);
            return Ok(());
        }
        let step = *step;
        // When a step has started, the next one is ready.
        state.steps.start();
        match step {
            Step::Compute(time) => {
                let bytes = Bytes::ZERO;
                state.cpu = t.checked_add(time).ok_or(crate::model::OutOfTime { bytes })?;
                self.start_next(task)
            }
            Step::Send { to, id, bytes, handed_over } => {
                self.leave(t, Flight { id, bytes, handed_over, from: task, to })
            }
            Step::SendInside { to, id, bytes, time } => {
                let arrives = t.checked_add(time).ok_or(crate::model::OutOfTime { bytes })?;
                let flight = self.flights.insert(Flight { id, bytes, handed_over: t, from: task, to });
                self.all.agenda.ready(arrives, Try::Inside(flight as u32));
                self.start_next(task)?;
                if self.costs.is_eager(bytes) { Ok(()) } else { self.sent(id, task) }
            }
            Step::Wake(wake) => self.wake(task, wake),
        }
    }

    /// The first step of a task may start. A wake, which takes no time, follows at once: what it adds becomes ready now.
    #[inline]
    fn start_next(&mut self, task: u32) -> Result<(), SimError> {
        let steps = &mut self.all.tasks[task as usize].steps;
        match steps.first() {
            None => {}
            Some(&Step::Wake(wake)) => {
                steps.start();
                return self.wake(task, wake);
            }
            Some(_) => self.all.ready(task),
        }
        Ok(())
    }

    fn wake(&mut self, task: u32, wake: Wake) -> Result<(), SimError> {
        let state = &self.all.tasks[task as usize];
        let at = state.cpu.max(state.reached).max(wake.at);
        self.engine.wake(wake, at, &mut self.all.following)?;
        self.start_next(task)?;
        self.called(task, at);
        Ok(())
    }

    /// Sends or announces a message at `t`.
    #[inline]
    fn leave(&mut self, t: Picos, flight: Flight) -> Result<(), SimError> {
        let Flight { bytes, from: task, .. } = flight;
        let flight = self.flights.insert(flight) as u32;
        let state = &mut self.all.tasks[task as usize];
        if !self.costs.is_eager(bytes) && self.settings.rendezvous == Rendezvous::Handshake {
            let at = self.costs.control(t, &mut state.cpu)?;
            self.all.agenda.ready(at, Try::Announced(flight));
        } else {
            let at = self.costs.send(t, bytes, &mut state.cpu, &mut state.interface)?;
            self.all.agenda.ready(at, Try::Arrival(flight));
        }
        self.start_next(task)
    }

    /// Completes a send for its task, whose processor may still be busy with it.
    #[inline]
    fn sent(&mut self, id: LiveId, task: u32) -> Result<(), SimError> {
        let at = self.all.tasks[task as usize].cpu.max(self.all.tasks[task as usize].reached);
        self.engine.sent(id, at, &mut self.all.following)?;
        self.called(task, at);
        Ok(())
    }

    #[inline]
    fn arrival(&mut self, t: Picos, flight: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let Flight { id, bytes, handed_over, from, to } = self.flights[flight as usize];
        let state = &mut self.all.tasks[to as usize];
        let (cpu, into) = (state.cpu, state.interface.into);
        if cpu.max(into) > t {
            let resource = if cpu >= into { processor(to) } else { receiving(to) };
            self.all.agenda.wait(resource, cpu.max(into), entry);
            return Ok(());
        }
        self.costs.take(t, bytes, &mut state.cpu, &mut state.interface)?;
        self.latencies.add(state.cpu.max(t).0 - handed_over.0);
        let at = state.cpu.max(t).max(state.reached);
        self.flights.remove(flight as usize);
        if !self.costs.is_eager(bytes) {
            let sender = &mut self.all.tasks[from as usize];
            if self.settings.rendezvous == Rendezvous::Late {
                (sender.cpu, sender.interface.out) = (sender.cpu.max(t), sender.interface.out.max(t));
            }
            self.sent(id, from)?;
        }
        self.delivered(id, to, at)
    }

    fn arrival_inside(&mut self, t: Picos, flight: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let Flight { id, to, .. } = self.flights[flight as usize];
        let state = &self.all.tasks[to as usize];
        if state.cpu > t {
            let free = state.cpu;
            self.all.agenda.wait(processor(to), free, entry);
            return Ok(());
        }
        let at = t.max(state.reached);
        self.flights.remove(flight as usize);
        self.delivered(id, to, at)
    }

    /// Reports that a message has been delivered at `at`.
    #[inline]
    fn delivered(&mut self, id: LiveId, to: u32, at: Picos) -> Result<(), SimError> {
        let state = &mut self.all.tasks[to as usize];
        state.reached = state.reached.max(at);
        self.engine.delivered(id, at, &mut self.all)?;
        if !self.all.following.is_empty() {
            self.all.follow(self.engine);
        }
        self.compute_on(to);
        Ok(())
    }

    /// The receiver requests a message.
    fn ask(&mut self, t: Picos, flight: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let to = self.flights[flight as usize].to;
        let state = &mut self.all.tasks[to as usize];
        if state.cpu > t {
            let free = state.cpu;
            self.all.agenda.wait(processor(to), free, entry);
            return Ok(());
        }
        let at = self.costs.control(t, &mut state.cpu)?;
        self.all.agenda.ready(at, Try::Asked(flight));
        Ok(())
    }

    /// Sends a message that was requested.
    fn asked(&mut self, t: Picos, flight: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let Flight { bytes, from, .. } = self.flights[flight as usize];
        let state = &mut self.all.tasks[from as usize];
        let (cpu, out) = (state.cpu, state.interface.out);
        if cpu.max(out) > t {
            let resource = if cpu >= out { processor(from) } else { sending(from) };
            self.all.agenda.wait(resource, cpu.max(out), entry);
            return Ok(());
        }
        let at = self.costs.send(t, bytes, &mut state.cpu, &mut state.interface)?;
        self.all.agenda.ready(at, Try::Arrival(flight));
        Ok(())
    }
}

/// Loads what a day's operations need into the cache. These loads are independent, so cache misses overlap; the
/// operations themselves would take one miss after the other.
fn fetch(today: &[(Picos, Entry<Try>)], tasks: &[Task], flights: &Slab<Flight>, engine: &Engine) {
    let read = |what: Try| match what {
        Try::Step(task) => match tasks[task as usize].steps.first() {
            Some(Step::Send { to, .. }) => u64::from(*to),
            _ => 0,
        },
        Try::Arrival(flight) | Try::Inside(flight) => {
            let Flight { id, to, .. } = flights[flight as usize];
            tasks[to as usize].cpu.0 ^ engine.fetch(id)
        }
        Try::Announced(_) | Try::Ask(_) | Try::Asked(_) => 0,
    };
    black_box(today.iter().fold(0, |sum, (_, entry)| sum ^ read(entry.what)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_message_needs_is_small() {
        assert_eq!((size_of::<Step>(), size_of::<Task>()), (32, 64));
        assert_eq!(size_of::<(Picos, Entry<Try>)>(), 24);
    }
}

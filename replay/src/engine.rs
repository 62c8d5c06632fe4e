//! The engine: tasks that run until something keeps them, and the calls that free them.
//!
//! A call for a task lets it run as far as it can without the simulator: over local marks and messages, into collectives, up to a
//! dependency that is not fulfilled. The messages that it starts on its way go to the caller, with the times at which they
//! start; nothing is kept here for later. So there is no queue and no present moment: every task has a time of its own.
//!
//! The steps are those of two state machines, a task's ([`Task`]) and that of its part of a collective ([`Player`]). Each returns what
//! concerns the other, and the engine carries that out.
//!
//! Release times are not stored. Of a record that waits, the release is the moment of the call that ends the wait. A dependency that is
//! fulfilled when the task reaches the record was fulfilled by an earlier call for this task: not later than this call, or than the start of
//! the record before.

use crate::closed::Instances;
use crate::collective::{Collectives, Player, Released};
use crate::departure::Departure;
use crate::error::{EngineResult, ReplayError};
use crate::events::EventMember;
use crate::live::{Completes, Flight, Live, Of, Refused, order};
use crate::message::{Called, LiveId, Sink, Wake, WakeTarget};
use crate::parcels::Partition;
use crate::running::Running;
use crate::sequence::{Sequence, Wait};
use crate::task::{Halt, Task};
use vef_format::ids::{CollectiveId, Rank};
use vef_format::text::Line;
use vef_format::units::Picos;

/// Traces being replayed: from the start of tasks and from deliveries follow the messages that start then or later.
///
/// It holds no queue and knows no present: each call concerns one task and has a moment of its own, and for each task moments do not go back.
/// Between tasks they may differ as a simulator likes, but not under
/// [`SendCompletion::RendezvousInCalls`](crate::SendCompletion::RendezvousInCalls). What follows from a call is given to its `out`, before the call
/// returns.
/// See the crate's text for the contract and an example.
#[derive(Debug)]
pub struct Engine {
    pub(crate) jobs: Vec<Running>,
    /// The records of all tasks, one job after the other.
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) collectives: Collectives,
    pub(crate) live: Live,
    /// Tasks with records left.
    pub(crate) unfinished: u64,
    pub(crate) begun: bool,
    pub(crate) ended: bool,
    /// Which of the jobs were opened since.
    pub(crate) instances: Instances,
    /// Set if it is one of several partitions.
    pub(crate) partition: Option<Box<Partition>>,
    /// Reports of messages sent or delivered that were refused, and why the first of them was.
    pub(crate) refused: u64,
    pub(crate) first_refusal: Option<String>,
}

/// What a simulator reports.
impl Engine {
    /// Messages that a task may start ahead of its simulator: [`Next::Wake`](crate::Next::Wake).
    pub const RUN_AHEAD: u8 = 16;

    /// Starts all tasks. It is called once, before everything else.
    pub fn begin(&mut self, out: &mut impl Sink) -> Result<(), ReplayError> {
        if std::mem::replace(&mut self.begun, true) {
            return Err(ReplayError::Begun);
        }
        for number in 0..self.sequences.len() as u32 {
            // A job on call counts as over.
            if self.is_elsewhere(number) || self.sequences[number as usize].wait == Wait::Finished {
                continue;
            }
            self.begin_task(number, out)?;
        }
        let of_builder = 0..self.jobs.len() as u32;
        of_builder.filter(|job| !self.jobs[*job as usize].on_call).for_each(|job| self.tell_over(job, out));
        Ok(())
    }

    pub(crate) fn begin_task(&mut self, task: u32, out: &mut impl Sink) -> Result<(), ReplayError> {
        let halt = self.task(task).begin(out);
        self.carry_out(task, halt, out)
    }

    /// Reports that a message has arrived, whole, at its destination at `at`.
    #[inline]
    pub fn delivered(&mut self, id: LiveId, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        self.note_moment(at)?;
        let Some(flight) = self.live.get(id) else { return Err(self.refuse_id(id)) };
        // Not the whole of it is copied on the way of most messages.
        let Flight { of, completes, receiver: task, start, .. } = *flight;
        let Self { sequences, jobs, live, collectives, .. } = self;
        let receiver = &mut sequences[task as usize];
        if receiver.wait == Wait::Elsewhere {
            return self.delivered_elsewhere(id, at, out);
        }
        if at < receiver.last_call || at < start {
            let clock = receiver.last_call;
            return Err(self.refuse_time(id, at, clock, start));
        }
        receiver.last_call = at;
        let (Of::Line { id: line, awaited, .. }, Completes::AtStart) = (of, completes) else {
            return self.delivered_other(id, at, out);
        };
        let number = receiver.job;
        let job = &mut jobs[number as usize];
        live.remove(id);
        job.under_way -= 1;
        live.stats.deliver(at);
        let halt = Task::new(task, receiver, job, live, collectives).receive(line, awaited, at, out);
        self.carry_out(task, halt, out)?;
        self.tell_over(number, out);
        Ok(())
    }

    /// Loads into the cache what [`Engine::delivered`] needs for a message. A simulator that knows its next reports calls this for all of
    /// them first: these loads overlap, those of the reports would not. The result has no meaning; with [`std::hint::black_box`] the compiler keeps
    /// the loads.
    #[inline]
    pub fn fetch(&self, id: LiveId) -> u64 {
        let flight = self.live.get(id);
        let sequence = flight.and_then(|flight| self.sequences.get(flight.receiver as usize));
        sequence.map_or(0, |sequence| sequence.last_call.0 ^ sequence.wait as u64)
    }

    /// Reports that a message has left its source at `at`. Optional; it matters under
    /// [`SendCompletion::WhenSent`](crate::SendCompletion::WhenSent) alone.
    pub fn sent(&mut self, id: LiveId, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        self.note_moment(at)?;
        if let Some(&flight) = self.live.get(id) {
            if at < flight.start {
                return Err(self.refuse_time(id, at, at, flight.start));
            }
            self.note_call(self.sender(&flight), at)?;
        }
        let flight = self.live.sent(id).map_err(|refused| {
            self.refuse(match refused {
                Refused::NotLive => ReplayError::NotLive { id },
                Refused::AlreadySent => ReplayError::AlreadySent { id },
            })
        })?;
        if flight.completes == Completes::WhenSent {
            if flight.exported {
                self.remove(id, flight.receiver);
            }
            self.complete_send(&flight, at, out)?;
            self.tell_over(self.sequences[flight.receiver as usize].job, out);
        }
        Ok(())
    }

    /// Calls a task that has asked for it: at the moment that it named, or later. Its next message starts at that moment.
    #[inline(always)]
    pub fn wake(&mut self, wake: Wake, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        self.note_moment(at)?;
        match wake.target.who() {
            Called::Task(task) => {
                let Self { sequences, jobs, live, collectives, .. } = self;
                let Some(sequence) = sequences.get_mut(task as usize).filter(|task| task.wait == Wait::Turn)
                else {
                    return Err(self.refuse(ReplayError::NotWaiting));
                };
                if at < sequence.last_call {
                    let clock = sequence.last_call;
                    return Err(self.refuse(ReplayError::Backwards { clock, at }));
                }
                sequence.last_call = at;
                let job = sequence.job;
                let running = &mut jobs[job as usize];
                let halt = Task::new(task, sequence, running, live, collectives).resume(at, out);
                self.carry_out(task, halt, out)?;
                self.tell_over(job, out);
                Ok(())
            }
            Called::Part(part) => self.wake_part(part, at, out),
            Called::Held(slot) => self.meet(slot, at, out),
        }
    }

    #[inline(never)]
    fn wake_part(&mut self, part: u32, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        let Some(task) = self.collectives.waiting_part(part) else {
            return Err(self.refuse(ReplayError::NotWaiting));
        };
        self.note_call(task, at)?;
        let released = self.player().resume(part, at, out);
        self.carry_out_release(released, out)?;
        self.tell_over(self.sequences[task as usize].job, out);
        Ok(())
    }

    /// A message leaves that has waited for its receiver.
    #[cold]
    fn meet(&mut self, slot: u32, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        let called = self.live.in_calls.as_mut().and_then(|in_calls| in_calls.take_called(slot));
        let Some((id, departure)) = called else { return Err(self.refuse(ReplayError::NotWaiting)) };
        let (sender, at) = (departure.sender(), at.max(departure.start));
        match self.live.leave_late(id, departure, at, out) {
            Some(()) => Ok(()),
            None => Err(self.end(self.sequences[sender as usize].overflow())),
        }
    }

    /// Reports that a member, by its rank of the communicator, of a collective that is an event is complete at `at`, a moment not before that at
    /// which it entered.
    pub fn complete_member(
        &mut self,
        (job, id): (u32, CollectiveId),
        member: u32,
        at: Picos,
        out: &mut impl Sink,
    ) -> Result<(), ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        self.note_moment(at)?;
        let Some((part, task, entered)) = self.player().entered(job, id, member) else {
            return Err(self.refuse(ReplayError::NoMember { job, id, member }));
        };
        if at < entered {
            return Err(self.refuse(ReplayError::Backwards { clock: entered, at }));
        }
        self.note_call(task, at)?;
        let released = self.player().complete_member(part, at, out);
        self.carry_out_release(released, out)?;
        self.tell_over(job, out);
        Ok(())
    }

    /// The members, by their ranks of the communicator, of a collective that is an event and is not over; `None` of any other.
    pub fn members(&mut self, job: u32, id: CollectiveId) -> Option<Vec<EventMember>> {
        self.player().members(job, id)
    }

    /// The order of the message that a task, or a part of a collective, waits to start. Of a task all earlier records' come first.
    #[inline(always)]
    pub(crate) fn order_of(&self, target: WakeTarget) -> u64 {
        match target.who() {
            Called::Task(task) => order(task, u32::MAX),
            Called::Part(part) => {
                let part = &self.collectives.parts[part as usize];
                order(part.task, part.record)
            }
            Called::Held(slot) => {
                self.called(slot).map_or(0, |departure| order(departure.sender(), departure.record))
            }
        }
    }

    /// The job and the task that asked to be called.
    pub fn task_of(&self, wake: &Wake) -> Option<(u32, Rank)> {
        let task = match wake.target.who() {
            Called::Task(task) => Some(task),
            Called::Part(part) => self.collectives.waiting_part(part),
            Called::Held(slot) => self.called(slot).map(Departure::sender),
        };
        let sequence = self.sequences.get(task? as usize)?;
        Some((sequence.job, sequence.rank))
    }
}

/// The steps between the calls.
impl Engine {
    /// The message in that slot whose receiver is in a call.
    fn called(&self, slot: u32) -> Option<&Departure> {
        self.live.in_calls.as_ref()?.called(slot)
    }

    /// A message is delivered that is not a line, or for which its sender may wait.
    #[inline(never)]
    fn delivered_other(&mut self, id: LiveId, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        let Some(&flight) = self.live.get(id) else { return Err(self.refuse_id(id)) };
        if flight.completes_by_arrival() {
            self.note_call(self.sender(&flight), at)?;
        }
        self.remove(id, flight.receiver);
        self.live.stats.deliver(at);
        if flight.completes_by_arrival() {
            self.complete_send(&flight, at, out)?;
        }
        let released = match flight.of {
            Of::Line { id, awaited, .. } => {
                let halt = self.task(flight.receiver).receive(id, awaited, at, out);
                self.carry_out(flight.receiver, halt, out)?;
                Ok(None)
            }
            Of::Collective { open, .. } => self.player().arrive(open, &flight, at, out),
            Of::Imported(id) => self.player().arrive_imported(id, &flight, at, out),
        };
        self.carry_out_release(released, out)?;
        self.tell_over(self.sequences[flight.receiver as usize].job, out);
        Ok(())
    }

    /// A message is reported delivered whose receiver is in another partition: its sender may wait for that.
    #[cold]
    fn delivered_elsewhere(&mut self, id: LiveId, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        let Some(&flight) = self.live.get(id) else { return Err(self.refuse_id(id)) };
        if !flight.exported {
            return Err(self.refuse(ReplayError::NotExported { id }));
        }
        if at < flight.start {
            return Err(self.refuse_time(id, at, at, flight.start));
        }
        self.note_call(self.sender(&flight), at)?;
        self.remove(id, flight.receiver);
        self.complete_send(&flight, at, out)
    }

    /// Removes a message to that task.
    pub(crate) fn remove(&mut self, id: LiveId, receiver: u32) {
        self.live.remove(id);
        self.jobs[self.sequences[receiver as usize].job as usize].under_way -= 1;
    }

    /// Follows each call by which a job may have ended.
    #[inline(always)]
    pub(crate) fn tell_over(&self, job: u32, out: &mut impl Sink) {
        // Nothing is left of this for a sink that takes no note.
        if self.jobs.get(job as usize).is_some_and(Running::is_over) {
            out.over(job);
        }
    }

    /// A send is complete for its sender.
    fn complete_send(&mut self, flight: &Flight, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        let released = match flight.of {
            Of::Line { id, .. } => {
                let sender = &self.sequences[flight.src as usize];
                let waits = sender.waits_for(Wait::Sent, id);
                self.jobs[sender.job as usize].lines.complete(id);
                Ok(waits.then_some(Released { task: flight.src, at }))
            }
            Of::Collective { open, .. } => self.player().complete_send(open, flight, at, out),
            // The sender is in another partition.
            Of::Imported(_) => Ok(None),
        };
        self.carry_out_release(released, out)
    }

    /// Carries out what follows from a task's halt: it enters collectives until it halts elsewhere.
    #[inline(always)]
    fn carry_out(
        &mut self,
        task: u32,
        halt: EngineResult<Halt>,
        out: &mut impl Sink,
    ) -> Result<(), ReplayError> {
        match halt {
            Ok(Halt::Waiting) => Ok(()),
            Ok(Halt::Finished) => {
                self.unfinished -= 1;
                self.jobs[self.sequences[task as usize].job as usize].unfinished -= 1;
                Ok(())
            }
            Ok(Halt::Collective) => self.enter(task, out),
            Err(error) => Err(self.end(error)),
        }
    }

    #[inline(never)]
    fn enter(&mut self, task: u32, out: &mut impl Sink) -> Result<(), ReplayError> {
        loop {
            let sequence = &self.sequences[task as usize];
            let start = sequence.at;
            if let Line::Collective(part) = sequence.next.line(sequence.rank) {
                self.player().enter(task, part, out).map_err(|error| self.end(error))?;
            }
            match self.task(task).entered(start, out) {
                Ok(Halt::Collective) => {}
                halt => return self.carry_out(task, halt, out),
            }
        }
    }

    /// Carries out what follows from a step of a collective, or of a send: a task that waited for it runs on.
    #[inline(always)]
    fn carry_out_release(
        &mut self,
        released: EngineResult<Option<Released>>,
        out: &mut impl Sink,
    ) -> Result<(), ReplayError> {
        match released {
            Ok(None) => Ok(()),
            Ok(Some(released)) => self.release(released, out),
            Err(error) => Err(self.end(error)),
        }
    }

    fn release(&mut self, Released { task, at }: Released, out: &mut impl Sink) -> Result<(), ReplayError> {
        let halt = self.task(task).release(at, out);
        self.carry_out(task, halt, out)
    }

    /// A task, with the tables that its records use.
    #[inline(always)]
    fn task(&mut self, task: u32) -> Task<'_> {
        let Self { sequences, jobs, live, collectives, .. } = self;
        let sequence = &mut sequences[task as usize];
        let job = &mut jobs[sequence.job as usize];
        Task::new(task, sequence, job, live, collectives)
    }

    /// The collectives, with the tables that their parts use.
    #[inline(always)]
    pub(crate) fn player(&mut self) -> Player<'_> {
        let Self { sequences, jobs, live, collectives, .. } = self;
        Player { collectives, sequences, jobs, live }
    }

    /// Where messages wait for their receivers, no call may be earlier than the last, for whichever task.
    #[inline(always)]
    fn note_moment(&mut self, at: Picos) -> Result<(), ReplayError> {
        match self.live.in_calls.as_mut().and_then(|in_calls| in_calls.note_call(at)) {
            None => Ok(()),
            Some(clock) => Err(self.refuse(ReplayError::Backwards { clock, at })),
        }
    }

    /// Takes note of a call for a task, which must not be earlier than the last.
    #[inline(always)]
    fn note_call(&mut self, task: u32, at: Picos) -> Result<(), ReplayError> {
        let sequence = &mut self.sequences[task as usize];
        if at < sequence.last_call {
            let clock = sequence.last_call;
            return Err(self.refuse(ReplayError::Backwards { clock, at }));
        }
        sequence.last_call = at;
        Ok(())
    }

    /// Takes note of a report that is refused.
    #[cold]
    pub(crate) fn refuse(&mut self, error: ReplayError) -> ReplayError {
        if error.is_misuse() {
            self.refused += 1;
            self.first_refusal.get_or_insert_with(|| error.to_string());
        }
        error
    }

    /// A report for a moment before the start of its message, or else before an earlier call's.
    #[cold]
    fn refuse_time(&mut self, id: LiveId, at: Picos, clock: Picos, start: Picos) -> ReplayError {
        self.refuse(match at < start {
            true => ReplayError::BeforeStart { id, start, at },
            false => ReplayError::Backwards { clock, at },
        })
    }

    #[cold]
    pub(crate) fn refuse_id(&mut self, id: LiveId) -> ReplayError {
        if self.ended { ReplayError::Ended } else { self.refuse(ReplayError::NotLive { id }) }
    }

    /// After an error in the trace every further call fails.
    #[cold]
    #[expect(clippy::boxed_local, reason = "the engine's inner errors are boxed")]
    fn end(&mut self, error: Box<ReplayError>) -> ReplayError {
        self.ended = true;
        *error
    }

    /// The task that sent a message, counted over all jobs.
    fn sender(&self, flight: &Flight) -> u32 {
        match flight.of {
            Of::Line { .. } | Of::Imported(_) => flight.src,
            Of::Collective { open, .. } => self.collectives.task(open, flight.src),
        }
    }

    /// Whether a task is in another partition.
    #[inline(always)]
    pub(crate) fn is_elsewhere(&self, task: u32) -> bool {
        self.sequences[task as usize].wait == Wait::Elsewhere
    }
}

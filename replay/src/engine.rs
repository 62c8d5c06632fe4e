//! The engine: tasks that run until something keeps them, and the calls that free them.
//!
//! A call for a task lets it run as far as it can without the simulator: over local marks and messages, into collectives, up to a
//! dependency that is not fulfilled. The messages that it starts on its way go to the caller, with the times at which they
//! start; nothing is kept here for later. So there is no queue and no present moment: every task has a time of its own.
//!
//! Release times are not stored. A record that waits is released by a call, whose moment is the release. A dependency that
//! is fulfilled when the task comes to it was fulfilled by an earlier call for the same task, hence not after the moment of the call
//! that lets the task run now, nor after the start of its last record if that is later.

use crate::collective::Collectives;
use crate::error::{CollectiveProblem, RecordPlace, ReplayError, Run};
use crate::live::{Completes, Flight, Of, Refused};
use crate::message::{LiveId, Sink, Started, Wake};
use crate::options::SendCompletion;
use crate::running::Running;
use crate::sequence::{Sequence, Wait};
use crate::stats::Stats;
use crate::walk::{Departures, Walk, next_record};
use vef_format::ids::{CollectiveId, Rank};
use vef_format::units::{Bytes, Picos};

/// Traces being replayed: from the start of tasks and from deliveries follow the messages that start then or later.
///
/// It holds no queue and knows no present: each call concerns one task and has a moment of its own, and for each task moments do not go back.
/// Between tasks they may differ as a simulator likes. What follows from a call is given to its `out`, before the call returns.
/// See the crate's text for the contract and an example.
#[derive(Debug)]
pub struct Engine {
    pub(crate) jobs: Vec<Running>,
    /// The records of all tasks: one sequence a task, one job after the other.
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) collectives: Collectives,
    pub(crate) departures: Departures,
    /// Tasks with records left, and parts of collectives in progress.
    pub(crate) unfinished: u64,
    pub(crate) begun: bool,
    pub(crate) ended: bool,
    /// Reports of messages sent or delivered that were refused, and why the first of them was.
    pub(crate) refused: u64,
    pub(crate) first_refusal: Option<String>,
}

impl Engine {
    /// Messages that a task may start ahead of its simulator: [`Next::Wake`](crate::Next::Wake).
    pub const RUN_AHEAD: u8 = 16;

    /// Starts all tasks. It is called once, before everything else.
    pub fn begin(&mut self, out: &mut impl Sink) -> Result<(), ReplayError> {
        if std::mem::replace(&mut self.begun, true) {
            return Err(ReplayError::Begun);
        }
        for number in 0..self.sequences.len() as u32 {
            if self.is_elsewhere(number) {
                continue;
            }
            self.run_from_first(number, out).map_err(|error| self.end(error))?;
        }
        Ok(())
    }

    /// Reports that a message has arrived, whole, at its destination at `at`.
    #[inline]
    pub fn delivered(&mut self, id: LiveId, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        let Some(entry) = self.departures.live.entry(id) else { return Err(self.refuse_id(id)) };
        let flight = entry.flight();
        let number = flight.receiver;
        let receiver = &mut self.sequences[number as usize];
        if receiver.wait == Wait::Elsewhere {
            let flight = *flight;
            return self.delivered_elsewhere(id, flight, at, out);
        }
        if at < receiver.heard {
            let clock = receiver.heard;
            return Err(self.refuse(ReplayError::Backwards { clock, at }));
        }
        receiver.heard = at;
        let Some((line, awaited)) = flight.as_eager_line() else {
            let flight = *flight;
            return self.delivered_other(id, flight, at, out);
        };
        let rank = flight.dst;
        entry.remove();
        self.departures.stats.deliver(at);
        let Self { jobs, departures, collectives, .. } = self;
        let walk = Walk::new(number, receiver, jobs, departures, collectives);
        let walked = walk.receive((line, awaited), rank, at, out);
        self.go_on(number, walked, out).map_err(|error| self.end(error))
    }

    /// Loads into the cache what [`Engine::delivered`] needs for a message. A simulator that knows its next reports calls this for all of
    /// them first: these loads overlap, those of the reports would not. The result has no meaning; with [`std::hint::black_box`] the compiler keeps
    /// the loads.
    #[inline]
    pub fn fetch(&self, id: LiveId) -> u64 {
        let flight = self.departures.live.get(id);
        let sequence = flight.and_then(|flight| self.sequences.get(flight.receiver as usize));
        sequence.map_or(0, |sequence| sequence.heard.0 ^ sequence.wait as u64)
    }

    /// A message is delivered that is not a line, or for which its sender may wait.
    #[inline(never)]
    fn delivered_other(
        &mut self,
        id: LiveId,
        flight: Flight,
        at: Picos,
        out: &mut impl Sink,
    ) -> Result<(), ReplayError> {
        if flight.completes_by_arrival() {
            self.hear(self.sender(&flight), at)?;
        }
        self.departures.live.remove(id);
        self.departures.stats.deliver(at);
        self.arrive(flight, at, out).map_err(|error| self.end(error))
    }

    /// Reports that a message has left its source at `at`. Optional; it matters under
    /// [`SendCompletion::WhenSent`] alone.
    pub fn sent(&mut self, id: LiveId, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        if let Some(flight) = self.departures.live.get(id) {
            self.hear(self.sender(&flight), at)?;
        }
        let flight = self.departures.live.sent(id).map_err(|refused| self.refuse(refusal(refused, id)))?;
        if flight.completes() == Completes::WhenSent {
            if flight.is_exported() {
                self.departures.live.remove(id);
            }
            self.complete_send(flight, at, out).map_err(|error| self.end(error))?;
        }
        Ok(())
    }

    /// Calls a task that has asked for it: at the moment that it named, or later. Its next message starts at that moment.
    #[inline]
    pub fn wake(&mut self, wake: Wake, at: Picos, out: &mut impl Sink) -> Result<(), ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        let number = match wake.who.as_sequence() {
            Ok(number) => {
                let sequence = self.sequences.get(number as usize);
                sequence.is_some_and(|sequence| sequence.wait == Wait::Turn).then_some(number)
            }
            Err(part) => self.collectives.waiting_part(part),
        };
        let Some(number) = number else { return Err(self.refuse(ReplayError::NotWaiting)) };
        self.hear(number, at)?;
        match wake.who.as_sequence() {
            Ok(number) => self.resume(number, at, out),
            Err(part) => self.resume_part(part, at, out),
        }
        .map_err(|error| self.end(error))
    }

    /// The job and the task that asked to be called.
    pub fn task_of(&self, wake: &Wake) -> Option<(u32, Rank)> {
        let number = match wake.who.as_sequence() {
            Ok(number) => Some(number),
            Err(part) => self.collectives.waiting_part(part),
        };
        let sequence = self.sequences.get(number? as usize)?;
        Some((sequence.job, sequence.rank))
    }

    /// Takes note of a call for the task of a sequence.
    #[inline(always)]
    pub(crate) fn hear(&mut self, number: u32, at: Picos) -> Result<(), ReplayError> {
        let sequence = &mut self.sequences[number as usize];
        if at < sequence.heard {
            let clock = sequence.heard;
            return Err(self.refuse(ReplayError::Backwards { clock, at }));
        }
        sequence.heard = at;
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

    #[cold]
    pub(crate) fn refuse_id(&mut self, id: LiveId) -> ReplayError {
        if self.ended { ReplayError::Ended } else { self.refuse(ReplayError::NotLive { id }) }
    }

    /// After an error in the trace every further call fails.
    #[cold]
    #[expect(clippy::boxed_local, reason = "the engine's inner errors are boxed")]
    pub(crate) fn end(&mut self, error: Box<ReplayError>) -> ReplayError {
        self.ended = true;
        *error
    }

    /// A message arrives.
    fn arrive(&mut self, flight: Flight, at: Picos, out: &mut impl Sink) -> Run<()> {
        if flight.completes_by_arrival() {
            self.complete_send(flight, at, out)?;
        }
        match flight.of() {
            Of::Line { id, awaited } => {
                let walked = self.walk(flight.receiver).receive((id, awaited), flight.dst, at, out);
                self.go_on(flight.receiver, walked, out)
            }
            Of::Collective(open) => self.arrive_part(open, flight, at, out),
            Of::Imported(id) => self.arrive_imported(id, flight, at, out),
        }
    }

    /// A send is complete for its sender.
    pub(crate) fn complete_send(&mut self, flight: Flight, at: Picos, out: &mut impl Sink) -> Run<()> {
        match flight.of() {
            Of::Line { id, .. } => {
                let sender = &self.sequences[flight.src as usize];
                let waits = sender.waits_for(Wait::Sent, id);
                self.jobs[sender.job as usize].lines.complete(id);
                if waits { self.release(flight.src, at, out) } else { Ok(()) }
            }
            Of::Collective(open) => self.complete_part_send(open, flight, at, out),
            // The sender is in another partition.
            Of::Imported(_) => Ok(()),
        }
    }

    /// The sequence of the task that sent a message.
    pub(crate) fn sender(&self, flight: &Flight) -> u32 {
        match flight.of() {
            Of::Line { .. } | Of::Imported(_) => flight.src,
            Of::Collective(open) => self.collectives.task(open, flight.src),
        }
    }

    /// Where a sequence is.
    #[cold]
    pub(crate) fn place(&self, number: u32) -> RecordPlace {
        let sequence = &self.sequences[number as usize];
        RecordPlace { job: sequence.job, task: sequence.rank, record: sequence.records }
    }

    #[cold]
    pub(crate) fn wrong_part(
        &self,
        number: u32,
        id: CollectiveId,
        problem: CollectiveProblem,
    ) -> Box<ReplayError> {
        Box::new(ReplayError::Collective { place: self.place(number), id, problem })
    }
}

/// How far everything has come.
impl Engine {
    /// Whether every record has been replayed and every message delivered.
    pub fn is_complete(&self) -> bool {
        self.begun && self.unfinished == 0 && self.live() == 0
    }

    /// Messages that have started and are not delivered.
    pub fn live(&self) -> u64 {
        self.departures.stats.live()
    }

    /// Whether a message of that id has started and is not delivered.
    pub(crate) fn is_live(&self, id: LiveId) -> bool {
        self.departures.live.get(id).is_some()
    }

    /// Counts of what was done so far.
    pub fn stats(&self) -> &Stats {
        &self.departures.stats
    }

    /// When sends are complete for their senders.
    pub fn send_completion(&self) -> SendCompletion {
        self.departures.send_completion
    }

    /// Number of jobs.
    pub fn jobs(&self) -> u32 {
        self.jobs.len() as u32
    }

    /// Number of tasks of a job; 0 for a job that does not exist.
    pub fn tasks(&self, job: u32) -> u32 {
        self.jobs.get(job as usize).map_or(0, |job| job.tasks)
    }

    /// How far the tasks of a job have come, by rank.
    pub fn progress(&self, job: u32) -> impl ExactSizeIterator<Item = TaskProgress> + '_ {
        let range = self
            .jobs
            .get(job as usize)
            .map_or(0..0, |job| job.first_task as usize..(job.first_task + job.tasks) as usize);
        range.map(|at| {
            let sequence = &self.sequences[at];
            TaskProgress {
                records: sequence.records,
                finished: (sequence.wait == Wait::Finished).then_some(sequence.finish()),
                node: self.departures.nodes[at],
            }
        })
    }

    /// The record that each task of a job has not started yet, by rank; `None` if it has no more. `released` is [`Picos::MAX`] while the
    /// task waits for something, `at` is not known and as late.
    pub fn next_records(&self, job: u32) -> impl Iterator<Item = Option<Started>> + '_ {
        let tasks = self
            .jobs
            .get(job as usize)
            .map_or(0..0, |job| job.first_task as usize..(job.first_task + job.tasks) as usize);
        self.sequences[tasks].iter().map(next_record)
    }

    /// When the last record that a task has started did; tasks are counted over all jobs. What it computes before the record for which it
    /// waits is not in that.
    pub fn reached(&self, task: u32) -> Option<Picos> {
        self.sequences.get(task as usize).map(|sequence| sequence.at)
    }

    /// When the last task finished, computing included, and the last message was delivered: the simulated run time of all jobs, once
    /// complete.
    pub fn finish(&self) -> Picos {
        let tasks = self.sequences.iter().map(Sequence::finish).max().unwrap_or_default();
        tasks.max(self.stats().last_delivery)
    }
}

impl SendCompletion {
    /// When a message of that size is complete for its sender.
    #[inline]
    pub(crate) fn of(self, bytes: Bytes) -> Completes {
        match self {
            Self::Eager => Completes::AtStart,
            Self::WhenSent => Completes::WhenSent,
            Self::LargeWhenSent { above } if bytes > above => Completes::WhenSent,
            Self::Rendezvous { above } if bytes > above => Completes::WhenDelivered,
            Self::LargeWhenSent { .. } | Self::Rendezvous { .. } => Completes::AtStart,
        }
    }
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProgress {
    /// Records that have started.
    pub records: u64,
    /// When it finished, if it has: its last record started, its last collective completed.
    pub finished: Option<Picos>,
    /// Its end node.
    pub node: u32,
}

#[cold]
fn refusal(refused: Refused, id: LiveId) -> ReplayError {
    match refused {
        Refused::NotLive => ReplayError::NotLive { id },
        Refused::AlreadySent => ReplayError::AlreadySent { id },
    }
}

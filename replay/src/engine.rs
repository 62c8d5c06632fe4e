//! The engine: tasks that go on until something keeps them, and the events that free them.
//!
//! A task is advanced as far as it can go without the simulator: over local marks and into collectives, up to its
//! next message (which waits in the queue of ready ones for its time and for the simulator to take it), or up to
//! a dependency that is not fulfilled. It so never has more than one message in the queue, and a trace is
//! read no further than needed.
//!
//! Release times are not stored. A task looks at a dependency when its record k − 1 has started, at a moment that
//! is not before any event reported so far; a dependency that is fulfilled by then cannot delay record k beyond
//! `start(k−1)`, and one that is not yet fulfilled will be released by an event, whose moment is the release.

use crate::builder::Builder;
use crate::collective::Collectives;
use crate::error::{CollectiveProblem, RecordPlace, ReplayError, Run};
use crate::job::Scale;
use crate::live::{Completes, Flight, Live, Of, Refused};
use crate::message::{Kind, LiveId, Message};
use crate::options::{SameNode, SendCompletion};
use crate::progress::{Progress, State};
use crate::ready::{Due, Ready};
use crate::source::Feed;
use crate::stats::Stats;
use crate::task::{Task, Wait};
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::units::{Bytes, Picos};

/// Traces being replayed: gives messages when they are ready and takes deliveries.
///
/// See the crate's text for the contract and an example.
#[derive(Debug)]
pub struct Replay {
    pub(crate) jobs: Vec<Running>,
    /// The tasks of all jobs, one job after the other.
    pub(crate) tasks: Vec<Task>,
    /// Of tasks that started a send last at which they do not wait: that line.
    pub(crate) detached: HashMap<u32, u64>,
    /// End node of each task.
    pub(crate) nodes: Vec<u32>,
    pub(crate) collectives: Collectives,
    /// Messages for the simulator.
    pub(crate) ready: Ready,
    /// What the engine does itself at a time: messages within a node.
    pub(crate) inside: Ready,
    pub(crate) live: Live,
    /// Messages within a node that are on their way.
    pub(crate) live_inside: Live,
    pub(crate) clock: Picos,
    pub(crate) stats: Stats,
    /// Tasks with records left, parts of collectives and messages within a node in progress.
    pub(crate) unfinished: u64,
    pub(crate) send_completion: SendCompletion,
    pub(crate) same_node: SameNode,
    pub(crate) ended: bool,
    /// Reports of messages sent or delivered that were refused, and why the first of them was.
    pub(crate) refused: u64,
    pub(crate) first_refusal: Option<String>,
}

/// A job in progress.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) source: Feed,
    pub(crate) scale: Scale,
    pub(crate) first_task: u32,
    pub(crate) tasks: u32,
    pub(crate) lines: Progress,
    pub(crate) operations: Progress,
    /// The communicators' places in the table of groups.
    pub(crate) groups: HashMap<CommId, u32>,
    /// The open collectives' places in the table.
    pub(crate) open: HashMap<CollectiveId, u32>,
}

/// A message that starts.
pub(crate) struct Departure {
    pub(crate) job: u32,
    /// The job's first task.
    pub(crate) first_task: u32,
    /// The receiver, counted over all jobs.
    pub(crate) dst: u32,
    pub(crate) bytes: Bytes,
    pub(crate) kind: Kind,
    /// What its arrival will have to know.
    pub(crate) flight: Flight,
}

/// [`Due::what`] of the message that a task's record is.
pub(crate) const OWN: u32 = 0;
/// Bit of [`Due::what`]: the message that the part of that place is about to send.
pub(crate) const PART: u32 = 1 << 30;
/// Bit of [`Due::what`]: the arrival of the message in that slot of those inside.
const ARRIVAL: u32 = 1 << 31;

impl Replay {
    /// Begins to describe a replay.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The next moment at which [`Replay::pop_ready`] is worth calling, as far as is known now: a delivery may bring it
    /// forward; never before [`Replay::clock`]. At that moment there is a message, unless the engine has only
    /// something of its own to do then ([`SameNode::Inside`]). `None`: nothing will happen without a delivery.
    #[inline]
    pub fn next_ready(&self) -> Option<Picos> {
        let next = match (self.ready.next(), self.inside.next()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        next.map(|next| next.max(self.clock))
    }

    /// The next message that is ready at `now`, if there is one. It starts at `now`: it is handed to the network.
    ///
    /// Order: by the time at which they became ready; at equal times as the engine came to know of them.
    #[inline]
    pub fn pop_ready(&mut self, now: Picos) -> Result<Option<Message>, ReplayError> {
        // Whoever asks until there is no more asks in vain every time: that is answered where it is asked.
        if now == self.clock && !self.ended && self.inside.is_empty() && !self.ready.has(now) {
            return Ok(None);
        }
        self.pop(now)
    }

    fn pop(&mut self, now: Picos) -> Result<Option<Message>, ReplayError> {
        self.check_time(now)?;
        self.move_clock(now)?;
        self.pop_now(now)
    }

    /// Gives `take` the next messages that are ready at `now`, one after the other and at most so many: the same as
    /// [`Replay::pop_ready`] as often as that, in less time. After an error in the trace those that were given are taken all the same.
    pub fn pop_ready_batch(
        &mut self,
        now: Picos,
        most: usize,
        mut take: impl FnMut(Message),
    ) -> Result<(), ReplayError> {
        self.check_time(now)?;
        self.move_clock(now)?;
        for nth in 0..most {
            // What the message before let go on within its node comes before the next one.
            if nth > 0 && !self.inside.is_empty() {
                self.move_clock(now)?;
            }
            match self.pop_now(now)? {
                Some(message) => take(message),
                None => break,
            }
        }
        Ok(())
    }

    /// As [`Replay::pop_ready`], `now` being the clock.
    #[inline(always)]
    fn pop_now(&mut self, now: Picos) -> Result<Option<Message>, ReplayError> {
        let Some(due) = self.ready.pop(now) else { return Ok(None) };
        let handed_out = match due.what & PART {
            0 => self.hand_out_line(due, now),
            _ => self.hand_out_part(due, now),
        };
        handed_out.map(Some).map_err(|error| self.end(error))
    }

    #[inline(always)]
    fn hand_out_line(&mut self, due: Due, now: Picos) -> Run<Message> {
        let departure = self.depart_line(due)?;
        let message = self.hand_out(due, departure);
        self.after_line(due.task, now)?;
        Ok(message)
    }

    #[inline(always)]
    fn hand_out_part(&mut self, due: Due, now: Picos) -> Run<Message> {
        let departure = self.depart_part(due)?;
        self.after_part(due, now)?;
        Ok(self.hand_out(due, departure))
    }

    #[inline(always)]
    fn hand_out(&mut self, due: Due, departure: Departure) -> Message {
        let Departure { job, first_task, dst, bytes, kind, flight } = departure;
        self.stats.started(kind, bytes);
        self.stats.live += 1;
        Message {
            id: self.live.insert(flight),
            src_node: self.nodes[due.task as usize],
            dst_node: self.nodes[dst as usize],
            bytes,
            job,
            src: Rank(due.task - first_task),
            dst: Rank(dst - first_task),
            kind,
            ready: due.at,
        }
    }

    /// Reports that a message has left its source at `at`. Optional; it matters under
    /// [`SendCompletion::WhenSent`] alone.
    pub fn sent(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_time(at).map_err(|error| self.refuse(error))?;
        let flight = self.live.sent(id).map_err(|refused| self.refuse(refusal(refused, id)))?;
        self.move_clock(at)?;
        if flight.completes() == Completes::WhenSent {
            self.complete_send(flight).map_err(|error| self.end(error))?;
        }
        Ok(())
    }

    /// Reports that a message has arrived, whole, at its destination at `at`.
    pub fn delivered(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.deliver(id, at)
    }

    #[inline(always)]
    fn deliver(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_time(at).map_err(|error| self.refuse(error))?;
        let Some(flight) = self.live.remove(id) else { return Err(self.refuse(ReplayError::NotLive { id })) };
        self.move_clock(at)?;
        self.stats.live -= 1;
        self.arrive(flight).map_err(|error| self.end(error))
    }

    /// Reports that messages have arrived at `at`, in this order: the same as [`Replay::delivered`] for each, in less time.
    /// An id that is refused is the last that is looked at.
    pub fn delivered_batch(
        &mut self,
        ids: impl IntoIterator<Item = LiveId>,
        at: Picos,
    ) -> Result<(), ReplayError> {
        for id in ids {
            self.deliver(id, at)?;
        }
        Ok(())
    }

    /// The latest moment of any call.
    pub fn clock(&self) -> Picos {
        self.clock
    }

    /// Whether every record has been replayed and every message delivered.
    pub fn is_complete(&self) -> bool {
        self.unfinished == 0 && self.stats.live == 0 && self.ready.is_empty() && self.inside.is_empty()
    }

    /// Counts of what was done so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
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
        range.map(|at| TaskProgress {
            records: self.tasks[at].past.records,
            finished: (self.tasks[at].wait == Wait::Finished).then_some(self.finish_of(at)),
            node: self.nodes[at],
        })
    }

    /// When the last task finished, computing included: the simulated run time of all jobs, once complete.
    pub fn finish(&self) -> Picos {
        let tasks = (0..self.tasks.len()).map(|at| self.finish_of(at)).max().unwrap_or_default();
        tasks.max(self.stats.last_delivery)
    }

    /// When the last thing that a task did was over.
    fn finish_of(&self, at: usize) -> Picos {
        self.tasks[at].at.max(self.tasks[at].past.left)
    }

    #[inline(always)]
    fn check_time(&self, at: Picos) -> Result<(), ReplayError> {
        if at < self.clock || self.ended {
            return Err(match self.ended {
                true => ReplayError::Ended,
                false => ReplayError::Backwards { clock: self.clock, at },
            });
        }
        Ok(())
    }

    /// Makes it `now`, which is not before the clock, doing on the way what the engine does itself.
    #[inline(always)]
    fn move_clock(&mut self, now: Picos) -> Result<(), ReplayError> {
        if self.same_node != SameNode::HandOut && !self.inside.is_empty() {
            self.run_inside_until(now).map_err(|error| self.end(error))?;
        }
        self.clock = now;
        Ok(())
    }

    /// Takes note of a report that is refused.
    #[cold]
    fn refuse(&mut self, error: ReplayError) -> ReplayError {
        if error.is_misuse() {
            self.refused += 1;
            self.first_refusal.get_or_insert_with(|| error.to_string());
        }
        error
    }

    /// After an error in the trace every further call fails.
    #[cold]
    #[expect(clippy::boxed_local, reason = "the engine's inner errors are boxed")]
    fn end(&mut self, error: Box<ReplayError>) -> ReplayError {
        self.ended = true;
        *error
    }

    fn run_inside_until(&mut self, now: Picos) -> Run<()> {
        while let Some(at) = self.inside.next()
            && at <= now
        {
            self.clock = self.clock.max(at);
            if let Some(due) = self.inside.pop(at) {
                self.run_inside(due)?;
            }
        }
        Ok(())
    }

    /// The start of a message within a node, or its end.
    fn run_inside(&mut self, due: Due) -> Run<()> {
        if due.what & ARRIVAL != 0 {
            let slot = due.what & !ARRIVAL;
            self.unfinished -= 1;
            return match self.live_inside.remove_slot(slot) {
                Some(flight) => self.arrive(flight),
                None => Ok(()),
            };
        }
        let part = due.what & PART != 0;
        let departed = if part { self.depart_part(due) } else { self.depart_line(due) };
        let Departure { bytes, kind, flight, .. } = departed?;
        self.stats.started(kind, bytes);
        self.stats.inside.add(bytes);
        let took = match self.same_node {
            SameNode::Inside(link) => link.time(bytes),
            SameNode::HandOut => Some(Picos::ZERO),
        };
        let arrival = took.and_then(|took| due.at.checked_add(took));
        let arrival = arrival.ok_or_else(|| self.overflow(due.task))?;
        let slot = self.live_inside.insert(flight).slot();
        self.unfinished += 1;
        self.inside.push(Due { at: arrival, task: due.task, what: ARRIVAL | slot });
        if part { self.after_part(due, due.at) } else { self.after_line(due.task, due.at) }
    }

    #[inline(always)]
    fn after_part(&mut self, due: Due, now: Picos) -> Run<()> {
        self.resume_part(due.what & !PART, now)
    }

    /// A message arrives, now.
    #[inline(always)]
    fn arrive(&mut self, flight: Flight) -> Run<()> {
        self.stats.delivered += 1;
        self.stats.last_delivery = self.clock;
        if flight.completes_by_arrival() {
            self.complete_send(flight)?;
        }
        match flight.of() {
            Of::Line(id) => {
                let task = &mut self.tasks[flight.dst as usize];
                let job = &mut self.jobs[task.job as usize];
                job.lines.finish(id);
                if !task.waits_for(Wait::Received, id) {
                    return Ok(());
                }
                let next = job.released(task, self.clock);
                self.go_on_with(flight.dst, next)
            }
            Of::Collective(open) => self.arrive_part(open, flight),
        }
    }

    /// A send is complete for its sender, now.
    fn complete_send(&mut self, flight: Flight) -> Run<()> {
        match flight.of() {
            Of::Line(id) => {
                let task = &self.tasks[flight.src as usize];
                self.jobs[task.job as usize].lines.set(id, State::Complete);
                if task.waits_for(Wait::Sent, id) {
                    self.release(flight.src, self.clock)?;
                }
                Ok(())
            }
            Of::Collective(open) => self.complete_part_send(open, flight),
        }
    }

    /// Puts a message in the queue of the simulator, or in that of the engine.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, due: Due, dst: u32) {
        let node = |task: u32| self.nodes[task as usize];
        if self.same_node != SameNode::HandOut && node(due.task) == node(dst) {
            self.inside.push(due);
        } else {
            self.ready.push(due);
        }
    }

    /// Where a task is.
    #[cold]
    pub(crate) fn place(&self, at: u32) -> RecordPlace {
        let task = &self.tasks[at as usize];
        let first_task = self.jobs[task.job as usize].first_task;
        RecordPlace { job: task.job, task: Rank(at - first_task), record: task.past.records }
    }

    #[cold]
    pub(crate) fn wrong_part(
        &self,
        at: u32,
        id: CollectiveId,
        problem: CollectiveProblem,
    ) -> Box<ReplayError> {
        Box::new(ReplayError::Collective { place: self.place(at), id, problem })
    }
}

impl SendCompletion {
    /// When a message of that size is complete for its sender.
    #[inline]
    pub(crate) fn of(self, bytes: Bytes) -> Completes {
        match self {
            Self::Eager => Completes::AtStart,
            Self::WhenSent => Completes::WhenSent,
            Self::Rendezvous { above } if bytes > above => Completes::WhenDelivered,
            Self::Rendezvous { .. } => Completes::AtStart,
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

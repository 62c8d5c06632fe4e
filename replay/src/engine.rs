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

use crate::collective::Collectives;
use crate::error::{BuildError, CollectiveProblem, RecordPlace, ReplayError, Run};
use crate::job::{Job, Scale};
use crate::live::{Completes, Flight, Live, Of, Refused};
use crate::message::{Kind, LiveId, Message};
use crate::options::{SameNode, SendCompletion};
use crate::progress::{Progress, State};
use crate::ready::{Due, Ready};
use crate::source::{Feed, Row, SourceError, Step, Waits, What};
use crate::stats::Stats;
use crate::task::{Task, Wait};
use collectives::choose::Table;
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::units::{Bytes, Picos, Ticks};

/// Traces being replayed: gives messages when they are ready and takes deliveries.
///
/// See the crate's text for the contract and an example.
#[derive(Debug)]
pub struct Replay {
    pub(crate) jobs: Vec<Running>,
    /// The tasks of all jobs, one job after the other.
    pub(crate) tasks: Vec<Task>,
    pub(crate) collectives: Collectives,
    /// Messages for the simulator.
    pub(crate) ready: Ready,
    /// What the engine does itself at a time: messages within a node.
    inside: Ready,
    pub(crate) live: Live,
    /// Messages within a node that are on their way.
    live_inside: Live,
    pub(crate) clock: Picos,
    pub(crate) stats: Stats,
    /// Tasks with records left, parts of collectives and messages within a node in progress.
    pub(crate) unfinished: u64,
    pub(crate) send_completion: SendCompletion,
    same_node: SameNode,
    ended: bool,
}

/// A job in progress.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) source: Feed,
    scale: Scale,
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
    /// The receiver.
    pub(crate) dst: Rank,
    pub(crate) bytes: Bytes,
    pub(crate) kind: Kind,
    /// What its arrival will have to know.
    pub(crate) flight: Flight,
}

/// Collects jobs and options.
#[derive(Debug, Default)]
pub struct Builder {
    jobs: Vec<Job>,
    send_completion: SendCompletion,
    same_node: SameNode,
    table: Table,
}

/// [`Due::what`] of the message that a task's record is.
const OWN: u32 = 0;
/// Bit of [`Due::what`]: the message that the part of that place is about to send.
pub(crate) const PART: u32 = 1 << 30;
/// Bit of [`Due::what`]: the arrival of the message in that slot of those inside.
const ARRIVAL: u32 = 1 << 31;

/// So many tasks a header may promise of however short a trace.
const FREE_TASKS: u64 = 1 << 16;

impl Builder {
    /// Adds a trace.
    pub fn job(mut self, job: Job) -> Self {
        self.jobs.push(job);
        self
    }

    /// When sends are complete for their senders; [`SendCompletion::Eager`] without it.
    pub fn send_completion(mut self, send_completion: SendCompletion) -> Self {
        self.send_completion = send_completion;
        self
    }

    /// What happens between tasks of one node; [`SameNode::HandOut`] without it.
    pub fn same_node(mut self, same_node: SameNode) -> Self {
        self.same_node = same_node;
        self
    }

    /// Which algorithm plays which collective; [`Table::default`] without it.
    pub fn algorithms(mut self, table: Table) -> Self {
        self.table = table;
        self
    }

    /// Starts all tasks.
    pub fn build(self) -> Result<Replay, BuildError> {
        if self.jobs.is_empty() {
            return Err(BuildError::NoJobs);
        }
        let (mut jobs, mut tasks) = (Vec::new(), Vec::new());
        for (number, mut job) in (0u32..).zip(self.jobs) {
            if self.send_completion != SendCompletion::Eager {
                job.source.tell_sends().map_err(ReplayError::Source)?;
            }
            let (count, clock) = (job.source.header().tasks, job.source.header().clock);
            let scale = Scale::new(clock, job.factor)
                .ok_or(BuildError::Factor { job: number, factor: job.factor })?;
            // The memory of a task must not follow from a mere promise of the header.
            if u64::from(count) > job.source.most_tasks().max(FREE_TASKS) {
                return Err(BuildError::Tasks { job: number, tasks: count });
            }
            let placed = job.nodes.as_ref().map_or(count as usize, Vec::len);
            if placed < count as usize {
                return Err(BuildError::Placement { job: number, tasks: count, placed });
            }
            let first_task =
                u32::try_from(tasks.len()).ok().filter(|first| first.checked_add(count).is_some());
            let first_task = first_task.ok_or(BuildError::TooManyTasks)?;
            tasks.extend((0..count).map(|rank| {
                let node = job.nodes.as_ref().map_or(rank, |nodes| nodes[rank as usize]);
                Task::new(number, node, job.start)
            }));
            jobs.push(Running {
                source: job.source,
                scale,
                first_task,
                tasks: count,
                lines: Progress::default(),
                operations: Progress::default(),
                groups: HashMap::new(),
                open: HashMap::new(),
            });
        }
        let mut replay = Replay {
            unfinished: tasks.len() as u64,
            jobs,
            tasks,
            collectives: Collectives::new(self.table),
            ready: Ready::default(),
            inside: Ready::default(),
            live: Live::default(),
            live_inside: Live::default(),
            clock: Picos::ZERO,
            stats: Stats::new(),
            send_completion: self.send_completion,
            same_node: self.same_node,
            ended: false,
        };
        for task in 0..replay.tasks.len() as u32 {
            replay.advance(task).map_err(|error| *error)?;
        }
        Ok(replay)
    }
}

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
    pub fn pop_ready(&mut self, now: Picos) -> Result<Option<Message>, ReplayError> {
        self.check_time(now)?;
        self.move_clock(now)?;
        let Some(due) = self.ready.pop(now) else { return Ok(None) };
        // Two ways, so that each is straight.
        let handed_out = match due.what & PART {
            0 => self.hand_out(due, now, Self::depart_line, Self::after_line),
            _ => self.hand_out(due, now, Self::depart_part, Self::after_part),
        };
        handed_out.map(Some).map_err(|error| self.end(error))
    }

    #[inline(always)]
    fn hand_out(
        &mut self,
        due: Due,
        now: Picos,
        depart: impl FnOnce(&mut Self, Due) -> Run<Departure>,
        after: impl FnOnce(&mut Self, Due, Picos) -> Run<()>,
    ) -> Run<Message> {
        let Departure { dst, bytes, kind, flight } = depart(self, due)?;
        let task = &self.tasks[due.task as usize];
        let (job, src_node) = (task.job, task.node);
        let first_task = self.jobs[job as usize].first_task;
        self.stats.started(kind, bytes);
        self.stats.live += 1;
        let message = Message {
            id: self.live.insert(flight),
            src_node,
            dst_node: self.tasks[(first_task + dst.0) as usize].node,
            bytes,
            job,
            src: Rank(due.task - first_task),
            dst,
            kind,
            ready: due.at,
        };
        after(self, due, now)?;
        Ok(message)
    }

    /// Reports that a message has left its source at `at`. Optional; it matters under
    /// [`SendCompletion::WhenSent`] alone.
    pub fn sent(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_time(at)?;
        let flight = self.live.sent(id).map_err(|refused| refusal(refused, id))?;
        self.move_clock(at)?;
        if flight.completes == Completes::WhenSent {
            self.complete_send(flight).map_err(|error| self.end(error))?;
        }
        Ok(())
    }

    /// Reports that a message has arrived, whole, at its destination at `at`.
    pub fn delivered(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_time(at)?;
        let (flight, was_sent) = self.live.remove(id).map_err(|refused| refusal(refused, id))?;
        self.move_clock(at)?;
        self.stats.live -= 1;
        self.arrive(flight, was_sent).map_err(|error| self.end(error))
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
        self.tasks[range].iter().map(|task| TaskProgress {
            records: task.records,
            finished: (task.wait == Wait::Finished).then_some(task.finish()),
            node: task.node,
        })
    }

    /// When the last task finished, computing included: the simulated run time of all jobs, once complete.
    pub fn finish(&self) -> Picos {
        let tasks = self.tasks.iter().map(Task::finish).max().unwrap_or_default();
        tasks.max(self.stats.last_delivery)
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
        if !self.inside.is_empty() {
            self.run_inside_until(now).map_err(|error| self.end(error))?;
        }
        self.clock = now;
        Ok(())
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
                Some(flight) => self.arrive(flight, false),
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
        let arrival =
            arrival.ok_or_else(|| Box::new(ReplayError::Overflow { place: self.place(due.task) }))?;
        let slot = self.live_inside.insert(flight).slot();
        self.unfinished += 1;
        self.inside.push(Due { at: arrival, task: due.task, what: ARRIVAL | slot });
        if part { self.after_part(due, due.at) } else { self.after_line(due, due.at) }
    }

    /// A task's message starts: what it is, and what its arrival will have to know.
    #[inline(always)]
    fn depart_line(&mut self, due: Due) -> Run<Departure> {
        let at = due.task;
        let task = &mut self.tasks[at as usize];
        let Row { id, bytes, to, op, .. } = task.next;
        let bytes = Bytes(bytes);
        let completes = self.send_completion.of(bytes);
        task.last_line = Some(id);
        task.last_complete = completes == Completes::AtStart || op & Row::DETACHED != 0;
        let state = if completes == Completes::AtStart { State::Complete } else { State::Started };
        let job = &mut self.jobs[task.job as usize];
        if job.lines.set(id, state) != State::Unseen {
            return Err(self.duplicate(at, id));
        }
        let flight = Flight::new(Of::Line(id), at, job.first_task + to, completes);
        Ok(Departure { dst: Rank(to), bytes, kind: Kind::PointToPoint, flight })
    }

    /// The sender goes on.
    #[inline(always)]
    fn after_line(&mut self, due: Due, now: Picos) -> Run<()> {
        let task = &mut self.tasks[due.task as usize];
        task.started(now);
        self.advance(due.task)
    }

    #[inline(always)]
    fn after_part(&mut self, due: Due, now: Picos) -> Run<()> {
        self.resume_part(due.what & !PART, now)
    }

    /// A message arrives, now.
    #[inline]
    fn arrive(&mut self, flight: Flight, was_sent: bool) -> Run<()> {
        self.stats.delivered += 1;
        self.stats.last_delivery = self.clock;
        if flight.completes != Completes::AtStart && !(was_sent && flight.completes == Completes::WhenSent) {
            self.complete_send(flight)?;
        }
        match flight.of() {
            Of::Line(id) => {
                let task = &self.tasks[flight.dst as usize];
                self.jobs[task.job as usize].lines.set(id, State::Done);
                if task.waits_for(Wait::Received, id) {
                    self.release(flight.dst, self.clock)?;
                }
                Ok(())
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

    /// What a task waited for has come.
    #[inline]
    pub(crate) fn release(&mut self, at: u32, time: Picos) -> Run<()> {
        let task = &mut self.tasks[at as usize];
        task.at = task.at.max(time);
        if self.start_next(at)? { self.advance(at) } else { Ok(()) }
    }

    /// Lets a task go on as far as it can.
    pub(crate) fn advance(&mut self, at: u32) -> Run<()> {
        while self.may_start(at)? && self.start_next(at)? {}
        Ok(())
    }

    /// Reads a task's next record and looks whether what it depends on is fulfilled; otherwise the task waits.
    #[inline(always)]
    fn may_start(&mut self, at: u32) -> Run<bool> {
        let task = &mut self.tasks[at as usize];
        let job = &mut self.jobs[task.job as usize];
        let rank = Rank(at - job.first_task);
        if let Err(error) = job.source.next(rank, &mut task.next) {
            return Err(unreadable(error));
        }
        let id = task.next.after;
        let (over, otherwise) = match task.next.waits {
            Waits::Start => (true, Wait::Nothing),
            Waits::Sent => {
                // What was complete as it started need not be looked up.
                let at_once = task.last_line == Some(id) && task.last_complete;
                (at_once || job.lines.get(id) >= State::Complete, Wait::Sent)
            }
            Waits::Complete => (job.lines.get(id) >= State::Complete, Wait::Sent),
            Waits::Received => (job.lines.get(id) == State::Done, Wait::Received),
            Waits::Collective => {
                let id = CollectiveId(id);
                let over = task.last_collective == Some(id) || self.collectives.is_over(job, id, rank);
                (over, Wait::Collective)
            }
        };
        task.wait = if over { Wait::Nothing } else { otherwise };
        Ok(over)
    }

    /// Starts a task's next record, or puts it in the queue if it is a message; says whether the task goes on at once.
    #[inline(always)]
    fn start_next(&mut self, at: u32) -> Run<bool> {
        let task = &mut self.tasks[at as usize];
        let job = &mut self.jobs[task.job as usize];
        let row = &task.next;
        let start = job.scale.picos(Ticks(row.time)).and_then(|time| task.at.checked_add(time));
        let Some(start) = start else {
            return Err(self.overflow(at));
        };
        match row.what {
            What::Mark => {
                let id = row.id;
                if job.lines.set(id, State::Done) != State::Unseen {
                    return Err(self.duplicate(at, id));
                }
                (task.last_line, task.last_complete) = (Some(id), true);
                task.started(start);
                self.stats.marks += 1;
                Ok(true)
            }
            What::Message => {
                task.wait = Wait::Turn;
                let due = Due { at: start, task: at, what: OWN };
                if self.same_node == SameNode::HandOut {
                    self.ready.push(due);
                } else {
                    let dst = job.first_task + row.to;
                    self.schedule(due, dst);
                }
                Ok(false)
            }
            What::Pause => {
                task.at = start;
                Ok(true)
            }
            What::Collective => {
                let part = row.to_step(Rank(at - job.first_task));
                // It does not wait any more, so that what it enters does not release it.
                task.wait = Wait::Nothing;
                task.at = start;
                if let Some(Step::Collective(part)) = part {
                    self.enter(at, part)?;
                }
                self.tasks[at as usize].started(start);
                Ok(true)
            }
            What::Nothing => {
                task.wait = Wait::Finished;
                self.unfinished -= 1;
                Ok(false)
            }
        }
    }

    /// Puts a message in the queue of the simulator, or in that of the engine.
    #[inline]
    pub(crate) fn schedule(&mut self, due: Due, dst: u32) {
        let node = |task: u32| self.tasks[task as usize].node;
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
        RecordPlace { job: task.job, task: Rank(at - first_task), record: task.records }
    }

    #[cold]
    fn overflow(&self, at: u32) -> Box<ReplayError> {
        Box::new(ReplayError::Overflow { place: self.place(at) })
    }

    #[cold]
    fn duplicate(&self, at: u32, id: u64) -> Box<ReplayError> {
        Box::new(ReplayError::DuplicateId { place: self.place(at), id: MessageId(id) })
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
fn unreadable(error: SourceError) -> Box<ReplayError> {
    Box::new(ReplayError::Source(error))
}

#[cold]
fn refusal(refused: Refused, id: LiveId) -> ReplayError {
    match refused {
        Refused::NotLive => ReplayError::NotLive { id },
        Refused::AlreadySent => ReplayError::AlreadySent { id },
    }
}

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
use crate::error::{BuildError, CollectiveProblem, RecordPlace, ReplayError};
use crate::job::{Job, Scale};
use crate::live::{Completes, Flight, Live, Of, Refused};
use crate::message::{Kind, LiveId, Message};
use crate::options::{SameNode, SendCompletion};
use crate::progress::{Progress, State};
use crate::ready::{Due, Ready};
use crate::source::{Source, Step};
use crate::stats::Stats;
use crate::task::{Task, Wait};
use collectives::choose::Table;
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::record::Dependency;
use vef_format::units::{Bytes, Picos};

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
    pub(crate) source: Box<dyn Source>,
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
        for (number, job) in (0u32..).zip(self.jobs) {
            let (count, clock) = (job.source.header().tasks, job.source.header().clock);
            let scale = Scale::new(clock, job.factor)
                .ok_or(BuildError::Factor { job: number, factor: job.factor })?;
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
            replay.advance(task)?;
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
    /// forward. At that moment there is a message, unless the engine has only something of its own to do then
    /// ([`SameNode::Inside`]). `None`: nothing will happen without a delivery.
    #[inline]
    pub fn next_ready(&self) -> Option<Picos> {
        match (self.ready.next(), self.inside.next()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The next message that is ready at `now`, if there is one. It starts at `now`: it is handed to the network.
    ///
    /// Order: by the time at which they became ready; at equal times first those that were known before that time
    /// came, by job, task and place among the task's messages, then those that became ready at that time
    /// itself, in the order in which they did.
    pub fn pop_ready(&mut self, now: Picos) -> Result<Option<Message>, ReplayError> {
        self.move_clock(now)?;
        let Some(due) = self.ready.pop(now) else { return Ok(None) };
        let popped = self.hand_out(due, now);
        self.ended |= popped.is_err();
        popped.map(Some)
    }

    /// Reports that a message has left its source at `at`. Optional; it matters under
    /// [`SendCompletion::WhenSent`] alone.
    pub fn sent(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_time(at)?;
        let flight = self.live.sent(id).map_err(|refused| refusal(refused, id))?;
        self.move_clock(at)?;
        if flight.completes == Completes::WhenSent {
            let completed = self.complete_send(flight);
            self.ended |= completed.is_err();
            completed?;
        }
        Ok(())
    }

    /// Reports that a message has arrived, whole, at its destination at `at`.
    pub fn delivered(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_time(at)?;
        let (flight, was_sent) = self.live.remove(id).map_err(|refused| refusal(refused, id))?;
        self.move_clock(at)?;
        self.stats.live -= 1;
        let arrived = self.arrive(flight, was_sent);
        self.ended |= arrived.is_err();
        arrived
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
            finished: (task.wait == Wait::Finished).then_some(task.finish),
            node: task.node,
        })
    }

    /// When the last task finished, computing included: the simulated run time of all jobs, once complete.
    pub fn finish(&self) -> Picos {
        let tasks = self.tasks.iter().map(|task| task.finish).max().unwrap_or_default();
        tasks.max(self.stats.last_delivery)
    }

    fn check_time(&self, at: Picos) -> Result<(), ReplayError> {
        match (self.ended, at < self.clock) {
            (true, _) => Err(ReplayError::Ended),
            (_, true) => Err(ReplayError::Backwards { clock: self.clock, at }),
            _ => Ok(()),
        }
    }

    /// Makes it `now`, doing on the way what the engine does itself.
    #[inline]
    fn move_clock(&mut self, now: Picos) -> Result<(), ReplayError> {
        self.check_time(now)?;
        while let Some(at) = self.inside.next()
            && at <= now
        {
            self.clock = self.clock.max(at);
            let Some(due) = self.inside.pop(at) else { break };
            let done = self.run_inside(due);
            self.ended |= done.is_err();
            done?;
        }
        self.clock = now;
        Ok(())
    }

    /// A message is taken by the simulator.
    #[inline]
    fn hand_out(&mut self, due: Due, now: Picos) -> Result<Message, ReplayError> {
        let task = &self.tasks[due.task as usize];
        let (job, src_node) = (task.job, task.node);
        let first_task = self.jobs[job as usize].first_task;
        let src = Rank(due.task - first_task);
        let (dst, bytes, kind, flight) = self.depart(due)?;
        self.stats.live += 1;
        let id = self.live.insert(flight);
        self.after_departure(due, now)?;
        Ok(Message {
            id,
            src_node,
            dst_node: self.tasks[(first_task + dst.0) as usize].node,
            bytes,
            job,
            src,
            dst,
            kind,
            ready: due.at,
        })
    }

    /// The start of a message within a node, or its end.
    fn run_inside(&mut self, due: Due) -> Result<(), ReplayError> {
        if due.what & ARRIVAL != 0 {
            let slot = due.what & !ARRIVAL;
            self.unfinished -= 1;
            return match self.live_inside.remove_slot(slot) {
                Some(flight) => self.arrive(flight, false),
                None => Ok(()),
            };
        }
        let (_, bytes, _, flight) = self.depart(due)?;
        self.stats.inside.add(bytes);
        let took = match self.same_node {
            SameNode::Inside(link) => link.time(bytes),
            SameNode::HandOut => Some(Picos::ZERO),
        };
        let arrival = took.and_then(|took| due.at.checked_add(took));
        let arrival = arrival.ok_or_else(|| ReplayError::Overflow { place: self.place(due.task) })?;
        let slot = self.live_inside.insert(flight).slot();
        self.unfinished += 1;
        self.inside.push(Due { at: arrival, task: due.task, what: ARRIVAL | slot }, self.clock);
        self.after_departure(due, due.at)
    }

    /// A message starts: what it is, and what its arrival will have to know.
    #[inline]
    fn depart(&mut self, due: Due) -> Result<(Rank, Bytes, Kind, Flight), ReplayError> {
        let (dst, bytes, kind, flight) =
            if due.what & PART != 0 { self.depart_part(due)? } else { self.depart_line(due.task)? };
        self.stats.started(kind, bytes);
        Ok((dst, bytes, kind, flight))
    }

    #[inline]
    fn depart_line(&mut self, at: u32) -> Result<(Rank, Bytes, Kind, Flight), ReplayError> {
        let task = &mut self.tasks[at as usize];
        let Some(Step::Message(message)) = task.step.take() else {
            unreachable!("only a task whose record is a message is put in the queue");
        };
        task.last_line = Some(message.id);
        let job = &mut self.jobs[task.job as usize];
        let completes = self.send_completion.of(message.bytes);
        let state = if completes == Completes::AtStart { State::Complete } else { State::Started };
        if job.lines.set(message.id.0, state) != State::Unseen {
            return Err(ReplayError::DuplicateId { place: self.place(at), id: message.id });
        }
        let dst = job.first_task + message.dst.0;
        let flight = Flight { completes, src: at, dst, of: Of::Line(message.id.0) };
        Ok((message.dst, message.bytes, Kind::PointToPoint, flight))
    }

    /// The sender goes on.
    #[inline]
    fn after_departure(&mut self, due: Due, now: Picos) -> Result<(), ReplayError> {
        if due.what & PART != 0 {
            return self.resume_part(due.what & !PART, now);
        }
        let task = &mut self.tasks[due.task as usize];
        task.at = now;
        task.finish = task.finish.max(now);
        task.records += 1;
        self.advance(due.task)
    }

    /// A message arrives, now.
    #[inline]
    fn arrive(&mut self, flight: Flight, was_sent: bool) -> Result<(), ReplayError> {
        self.stats.delivered += 1;
        self.stats.last_delivery = self.clock;
        if flight.completes != Completes::AtStart && !(was_sent && flight.completes == Completes::WhenSent) {
            self.complete_send(flight)?;
        }
        match flight.of {
            Of::Line(id) => {
                let task = &self.tasks[flight.dst as usize];
                self.jobs[task.job as usize].lines.set(id, State::Done);
                if task.wait == Wait::Received(MessageId(id)) {
                    self.release(flight.dst)?;
                }
                Ok(())
            }
            Of::Collective(open) => self.arrive_part(open, flight),
        }
    }

    /// A send is complete for its sender, now.
    fn complete_send(&mut self, flight: Flight) -> Result<(), ReplayError> {
        match flight.of {
            Of::Line(id) => {
                let task = &self.tasks[flight.src as usize];
                self.jobs[task.job as usize].lines.set(id, State::Complete);
                if task.wait == Wait::Sent(MessageId(id)) {
                    self.release(flight.src)?;
                }
                Ok(())
            }
            Of::Collective(open) => self.complete_part_send(open, flight),
        }
    }

    /// What a task waited for has come, now.
    #[inline]
    pub(crate) fn release(&mut self, at: u32) -> Result<(), ReplayError> {
        let clock = self.clock;
        let task = &mut self.tasks[at as usize];
        task.at = task.at.max(clock);
        self.advance(at)
    }

    /// Lets a task go on as far as it can.
    pub(crate) fn advance(&mut self, at: u32) -> Result<(), ReplayError> {
        loop {
            let task = &mut self.tasks[at as usize];
            let job = &mut self.jobs[task.job as usize];
            let rank = Rank(at - job.first_task);
            let step = match task.step {
                Some(step) => step,
                None => match job.source.next(rank).map_err(ReplayError::Source)? {
                    Some(step) => step,
                    None => {
                        task.wait = Wait::Finished;
                        self.unfinished -= 1;
                        return Ok(());
                    }
                },
            };
            task.wait = match step.after() {
                Dependency::Start => Wait::Nothing,
                Dependency::Sent(id)
                    if task.last_line == Some(id) && self.send_completion == SendCompletion::Eager =>
                {
                    Wait::Nothing
                }
                Dependency::Sent(id) if job.lines.get(id.0) >= State::Complete => Wait::Nothing,
                Dependency::Sent(id) => Wait::Sent(id),
                Dependency::Received(id) if job.lines.get(id.0) == State::Done => Wait::Nothing,
                Dependency::Received(id) => Wait::Received(id),
                Dependency::Collective(id) if task.last_collective == Some(id) => Wait::Nothing,
                Dependency::Collective(id) if self.collectives.is_over(job, id, rank) => Wait::Nothing,
                Dependency::Collective(id) => Wait::Collective(id),
            };
            if task.wait != Wait::Nothing {
                task.step = Some(step);
                return Ok(());
            }
            let start = job.scale.picos(step.time()).and_then(|time| task.at.checked_add(time));
            let Some(start) = start else {
                return Err(ReplayError::Overflow { place: self.place(at) });
            };
            match step {
                Step::Message(message) if message.is_mark() => {
                    if job.lines.set(message.id.0, State::Done) != State::Unseen {
                        return Err(ReplayError::DuplicateId { place: self.place(at), id: message.id });
                    }
                    task.step = None;
                    task.last_line = Some(message.id);
                    task.at = start;
                    task.finish = task.finish.max(start);
                    task.records += 1;
                    self.stats.marks += 1;
                }
                Step::Message(message) => {
                    task.step = Some(step);
                    task.wait = Wait::Turn;
                    let dst = (job.first_task + message.dst.0) as usize;
                    self.schedule(Due { at: start, task: at, what: OWN }, dst);
                    return Ok(());
                }
                Step::Collective(part) => {
                    task.step = None;
                    task.at = start;
                    self.enter(at, part)?;
                    let task = &mut self.tasks[at as usize];
                    task.finish = task.finish.max(start);
                    task.records += 1;
                }
            }
        }
    }

    /// Puts a message in the queue of the simulator, or in that of the engine.
    #[inline]
    pub(crate) fn schedule(&mut self, due: Due, dst: usize) {
        let inside =
            self.same_node != SameNode::HandOut && self.tasks[due.task as usize].node == self.tasks[dst].node;
        let queue = if inside { &mut self.inside } else { &mut self.ready };
        queue.push(due, self.clock);
    }

    /// Where a task is.
    #[cold]
    pub(crate) fn place(&self, at: u32) -> RecordPlace {
        let task = &self.tasks[at as usize];
        let first_task = self.jobs[task.job as usize].first_task;
        RecordPlace { job: task.job, task: Rank(at - first_task), record: task.records }
    }

    #[cold]
    pub(crate) fn wrong_part(&self, at: u32, id: CollectiveId, problem: CollectiveProblem) -> ReplayError {
        ReplayError::Collective { place: self.place(at), id, problem }
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

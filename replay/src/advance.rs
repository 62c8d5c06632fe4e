//! How a task goes on: from record to record, as far as it can without the simulator.

use crate::engine::{Departure, OWN, Replay, Running};
use crate::error::{ReplayError, Run};
use crate::live::{Completes, Flight, Of};
use crate::message::Kind;
use crate::options::SendCompletion;
use crate::progress::State;
use crate::ready::Due;
use crate::source::{Row, SourceError, Step, Waits, What};
use crate::task::{Task, Wait};
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::units::{Bytes, Picos, Ticks};

impl Replay {
    /// A task's message starts: what it is, and what its arrival will have to know.
    #[inline(always)]
    pub(crate) fn depart_line(&mut self, due: Due) -> Run<Departure> {
        let at = due.task;
        let task = &self.tasks[at as usize];
        let job_number = task.job;
        let Row { id, bytes, to, op, .. } = task.next;
        let bytes = Bytes(bytes);
        let completes = self.send_completion.of(bytes);
        let state = if completes == Completes::AtStart { State::Complete } else { State::Started };
        let job = &mut self.jobs[job_number as usize];
        if !job.lines.begin(id, state) {
            return Err(self.duplicate(at, id));
        }
        let first_task = job.first_task;
        if completes != Completes::AtStart && op & Row::DETACHED != 0 {
            self.detached.insert(at, id);
        } else if !self.detached.is_empty() {
            self.detached.remove(&at);
        }
        let dst = first_task + to;
        let flight = Flight::new(Of::Line(id), at, dst, completes);
        Ok(Departure { job: job_number, first_task, dst, bytes, kind: Kind::PointToPoint, flight })
    }

    /// The sender goes on.
    #[inline(always)]
    pub(crate) fn after_line(&mut self, due: Due, now: Picos) -> Run<()> {
        let task = &mut self.tasks[due.task as usize];
        task.at = now;
        self.pasts[due.task as usize].records += 1;
        let line = Some(task.next.id).filter(|_| self.send_completion == SendCompletion::Eager);
        self.go_on(due.task, Go { released: false, complete: line })
    }

    /// What a task waited for has come.
    pub(crate) fn release(&mut self, at: u32, time: Picos) -> Run<()> {
        let task = &mut self.tasks[at as usize];
        let next = self.jobs[task.job as usize].released(task, time);
        self.go_on_with(at, next)
    }

    /// A task that waited goes on, with the message that [`Running::released`] gave.
    #[inline(always)]
    pub(crate) fn go_on_with(&mut self, at: u32, next: Option<NextMessage>) -> Run<()> {
        match next {
            Some(NextMessage { start, dst }) => {
                self.schedule(Due { at: start, task: at, what: OWN }, dst);
                Ok(())
            }
            None => self.go_on_released(at),
        }
    }

    #[inline(never)]
    fn go_on_released(&mut self, at: u32) -> Run<()> {
        self.go_on(at, Go { released: true, complete: None })
    }

    /// Lets a task go on from its beginning.
    pub(crate) fn begin(&mut self, at: u32) -> Run<()> {
        self.go_on(at, Go { released: false, complete: None })
    }

    /// Lets a task go on as far as it can.
    #[inline(always)]
    fn go_on(&mut self, at: u32, mut go: Go) -> Run<()> {
        loop {
            let task = &mut self.tasks[at as usize];
            let job = &mut self.jobs[task.job as usize];
            let past = &mut self.pasts[at as usize];
            let rank = Rank(at - job.first_task);
            let start = loop {
                if !go.released {
                    if let Err(error) = job.source.next(rank, &mut task.next) {
                        return Err(unreadable(error));
                    }
                    let id = task.next.after;
                    let (over, otherwise) = match task.next.waits {
                        Waits::Start => (true, Wait::Nothing),
                        Waits::Sent => {
                            let complete = go.complete == Some(id) || job.lines.get(id) >= State::Complete;
                            (complete || self.detached.get(&at) == Some(&id), Wait::Sent)
                        }
                        Waits::Complete => (job.lines.get(id) >= State::Complete, Wait::Sent),
                        Waits::Received => (job.lines.get(id) == State::Done, Wait::Received),
                        Waits::Collective => {
                            let id = CollectiveId(id);
                            let last = past.last_collective == Some(id);
                            (last || self.collectives.is_over(job, id, rank), Wait::Collective)
                        }
                    };
                    if !over {
                        task.wait = otherwise;
                        return Ok(());
                    }
                }
                go.released = false;
                let Some(start) = job.start(task) else { return Err(self.overflow(at)) };
                match task.next.what {
                    What::Message => {
                        task.wait = Wait::Turn;
                        let due = Due { at: start, task: at, what: OWN };
                        let dst = job.first_task + task.next.to;
                        self.schedule(due, dst);
                        return Ok(());
                    }
                    What::Mark => {
                        let id = task.next.id;
                        if !job.lines.begin(id, State::Done) {
                            return Err(self.duplicate(at, id));
                        }
                        go.complete = Some(id);
                        if !self.detached.is_empty() {
                            self.detached.remove(&at);
                        }
                        task.at = start;
                        past.records += 1;
                        self.stats.marks += 1;
                    }
                    What::Pause => task.at = start,
                    What::Nothing => {
                        task.wait = Wait::Finished;
                        self.unfinished -= 1;
                        return Ok(());
                    }
                    What::Collective => break start,
                }
            };
            self.enter_next(at, start)?;
        }
    }

    /// A task's next record, its part of a collective, starts.
    #[inline(never)]
    fn enter_next(&mut self, at: u32, start: Picos) -> Run<()> {
        let task = &mut self.tasks[at as usize];
        let rank = Rank(at - self.jobs[task.job as usize].first_task);
        // It does not wait any more, so that what it enters does not release it.
        task.wait = Wait::Nothing;
        task.at = start;
        if let Some(Step::Collective(part)) = task.next.to_step(rank) {
            self.enter(at, part)?;
        }
        self.tasks[at as usize].at = start;
        self.pasts[at as usize].records += 1;
        Ok(())
    }

    #[cold]
    pub(crate) fn overflow(&self, at: u32) -> Box<ReplayError> {
        Box::new(ReplayError::Overflow { place: self.place(at) })
    }

    #[cold]
    fn duplicate(&self, at: u32, id: u64) -> Box<ReplayError> {
        Box::new(ReplayError::DuplicateId { place: self.place(at), id: MessageId(id) })
    }
}

/// Where a task goes on.
struct Go {
    /// What its next record waits for has come.
    released: bool,
    /// A point-to-point line that was complete for it as it started, mostly that which it started last: what is known need
    /// not be looked up.
    complete: Option<u64>,
}

/// When a task's next message is ready, and its receiver, counted over all jobs.
pub(crate) struct NextMessage {
    start: Picos,
    dst: u32,
}

impl Running {
    /// A task waits no longer, from that time on. Its next message, if its next record is one, as it is most often.
    #[inline(always)]
    pub(crate) fn released(&self, task: &mut Task, time: Picos) -> Option<NextMessage> {
        task.at = task.at.max(time);
        if task.next.what != What::Message {
            return None;
        }
        let start = self.start(task)?;
        task.wait = Wait::Turn;
        Some(NextMessage { start, dst: self.first_task + task.next.to })
    }

    /// When a task's next record starts, if that is not past the end of time.
    #[inline(always)]
    fn start(&self, task: &Task) -> Option<Picos> {
        let computing = self.scale.picos(Ticks(task.next.time))?;
        task.at.checked_add(computing)
    }
}

#[cold]
fn unreadable(error: SourceError) -> Box<ReplayError> {
    Box::new(ReplayError::Source(error))
}

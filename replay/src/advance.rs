//! How a task goes on: from record to record, as far as it can without the simulator.

use crate::collective::Collectives;
use crate::engine::{Departure, OWN, Replay, Running};
use crate::error::{ReplayError, Run};
use crate::live::{Completes, Flight, Of};
use crate::message::Kind;
use crate::options::SendCompletion;
use crate::progress::State;
use crate::ready::Due;
use crate::source::{Row, SourceError, Step, Waits, What};
use crate::stats::Stats;
use crate::task::{Task, Wait};
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::raw::LeadingMark;
use vef_format::units::{Bytes, Picos, Ticks};

impl Replay {
    /// A task's message starts: what it is, and what its arrival will have to know.
    #[inline(always)]
    pub(crate) fn depart_line(&mut self, due: Due) -> Run<Departure> {
        let completion = self.send_completion;
        let departure = self.here(due.task).depart(completion);
        departure.ok_or_else(|| self.duplicate(due.task))
    }

    /// The sender goes on behind its message, which started at `now`.
    #[inline(always)]
    pub(crate) fn after_line(&mut self, at: u32, now: Picos) -> Run<()> {
        let task = &mut self.tasks[at as usize];
        task.at = now;
        task.past.records += 1;
        let id = task.next.id;
        match self.send_completion {
            SendCompletion::Eager => self.after_complete(at, id),
            _ => self.go_on(at, Go { released: false, complete: None }),
        }
    }

    /// A task goes on behind the line `id`, which is complete for it. Often there comes a mark that waits for that, and behind
    /// the mark a message; containers have them together, so that they need but one look, and nothing is asked that is known.
    #[inline(always)]
    fn after_complete(&mut self, at: u32, id: u64) -> Run<()> {
        let task = &mut self.tasks[at as usize];
        let job = &mut self.jobs[task.job as usize];
        let rank = Rank(at - job.first_task);
        let mark = match job.source.plain() {
            Some(streams) => streams.next_pair(rank, id, |raw| task.next = Row::from_raw(&raw)),
            None => None,
        };
        let Some(LeadingMark { id, time, .. }) = mark else {
            return self.go_on(at, Go { released: false, complete: Some(id) });
        };
        match job.after(task.at, Ticks(time)) {
            Some(start) if job.lines.begin(id, State::Done) => task.at = start,
            _ => return Err(self.wrong_mark(at, id, time)),
        }
        task.past.records += 1;
        self.stats.marks += 1;
        let over = match task.next.waits {
            Waits::Received => job.lines.get(task.next.after) == State::Done,
            _ => return self.go_on_from_row(at, id),
        };
        if !over {
            task.wait = Wait::Received;
            return Ok(());
        }
        match job.released(task, Picos::ZERO) {
            Some(next) => {
                self.schedule_next(at, next);
                Ok(())
            }
            None => Err(self.overflow(at)),
        }
    }

    /// Lets a task go on from its next record, which has been read.
    #[inline(never)]
    fn go_on_from_row(&mut self, at: u32, complete: u64) -> Run<()> {
        let here = self.here(at);
        match here.must_wait(&Go { released: false, complete: Some(complete) }) {
            Some(wait) => {
                here.task.wait = wait;
                Ok(())
            }
            None => self.go_on(at, Go { released: true, complete: None }),
        }
    }

    /// A mark that came with the message behind it has the id of another, or starts past the end of time.
    #[cold]
    fn wrong_mark(&mut self, at: u32, id: u64, time: u64) -> Box<ReplayError> {
        let here = self.here(at);
        (here.task.next.id, here.task.next.time) = (id, time);
        match here.job.start(here.task) {
            Some(_) => self.duplicate(at),
            None => self.overflow(at),
        }
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
            Some(next) => {
                self.schedule_next(at, next);
                Ok(())
            }
            None => self.go_on(at, Go { released: true, complete: None }),
        }
    }

    /// Lets a task go on from its beginning.
    pub(crate) fn begin(&mut self, at: u32) -> Run<()> {
        self.go_on(at, Go { released: false, complete: None })
    }

    /// Lets a task go on as far as it can.
    #[inline(never)]
    fn go_on(&mut self, at: u32, mut go: Go) -> Run<()> {
        loop {
            let walked = self.here(at).walk(go)?;
            // A loop: any number of collectives may be over as they are entered.
            if !matches!(walked, Walked::Collective) {
                return self.go_on_from(at, walked);
            }
            self.enter_next(at)?;
            go = Go { released: false, complete: None };
        }
    }

    /// Lets a task go on as far as it can, from where a walk over its records ended.
    #[inline(always)]
    fn go_on_from(&mut self, at: u32, walked: Walked) -> Run<()> {
        match walked {
            Walked::Waiting => Ok(()),
            Walked::Message(next) => {
                self.schedule_next(at, next);
                Ok(())
            }
            Walked::Collective => {
                self.enter_next(at)?;
                self.go_on(at, Go { released: false, complete: None })
            }
            Walked::Finished => {
                self.unfinished -= 1;
                Ok(())
            }
            Walked::Overflow => Err(self.overflow(at)),
            Walked::Duplicate => Err(self.duplicate(at)),
        }
    }

    #[inline(always)]
    fn schedule_next(&mut self, at: u32, NextMessage { start, dst }: NextMessage) {
        self.schedule(Due { at: start, task: at, what: OWN }, dst);
    }

    /// A task, and all that it looks at on its way.
    #[inline(always)]
    fn here(&mut self, at: u32) -> Here<'_> {
        let task = &mut self.tasks[at as usize];
        let job = &mut self.jobs[task.job as usize];
        Here {
            at,
            rank: Rank(at - job.first_task),
            task,
            job,
            detached: &mut self.detached,
            collectives: &self.collectives,
            stats: &mut self.stats,
        }
    }

    /// A task's next record, its part of a collective, starts.
    #[inline(never)]
    fn enter_next(&mut self, at: u32) -> Run<()> {
        let task = &self.tasks[at as usize];
        let (start, rank) = (task.at, Rank(at - self.jobs[task.job as usize].first_task));
        if let Some(Step::Collective(part)) = task.next.to_step(rank) {
            self.enter(at, part)?;
        }
        let task = &mut self.tasks[at as usize];
        task.at = start;
        task.past.records += 1;
        Ok(())
    }

    #[cold]
    pub(crate) fn overflow(&self, at: u32) -> Box<ReplayError> {
        Box::new(ReplayError::Overflow { place: self.place(at) })
    }

    /// A task's next record has the id of another.
    #[cold]
    fn duplicate(&self, at: u32) -> Box<ReplayError> {
        let id = MessageId(self.tasks[at as usize].next.id);
        Box::new(ReplayError::DuplicateId { place: self.place(at), id })
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

/// Where a walk over a task's records ended.
enum Walked {
    /// At a record that waits.
    Waiting,
    /// At a message, which is to be scheduled.
    Message(NextMessage),
    /// At a part of a collective that starts.
    Collective,
    /// Behind the last record.
    Finished,
    /// At a record that would start past the end of time.
    Overflow,
    /// At a record whose id another has.
    Duplicate,
}

/// When a task's next message is ready, and its receiver, counted over all jobs.
pub(crate) struct NextMessage {
    start: Picos,
    dst: u32,
}

/// A task, found once, and all that it looks at on its way.
struct Here<'a> {
    at: u32,
    rank: Rank,
    task: &'a mut Task,
    job: &'a mut Running,
    detached: &'a mut HashMap<u32, u64>,
    collectives: &'a Collectives,
    stats: &'a mut Stats,
}

impl Here<'_> {
    /// Its message starts: what it is, and what its arrival will have to know. `None` if its id was seen before.
    #[inline(always)]
    fn depart(&mut self, completion: SendCompletion) -> Option<Departure> {
        let Row { id, bytes, to, op, .. } = self.task.next;
        let bytes = Bytes(bytes);
        let completes = completion.of(bytes);
        let state = if completes == Completes::AtStart { State::Complete } else { State::Started };
        if !self.job.lines.begin(id, state) {
            return None;
        }
        if completes != Completes::AtStart && op & Row::DETACHED != 0 {
            self.detached.insert(self.at, id);
        } else {
            self.forget_detached();
        }
        let (job, first_task) = (self.task.job, self.job.first_task);
        let dst = first_task + to;
        let flight = Flight::new(Of::Line(id), self.at, dst, completes);
        Some(Departure { job, first_task, dst, bytes, kind: Kind::PointToPoint, flight })
    }

    /// Goes over its records up to one that is more than a mark, or that waits.
    #[inline(always)]
    fn walk(&mut self, mut go: Go) -> Run<Walked> {
        loop {
            if !go.released {
                self.read(&mut go).map_err(unreadable)?;
                if let Some(wait) = self.must_wait(&go) {
                    self.task.wait = wait;
                    return Ok(Walked::Waiting);
                }
            }
            go.released = false;
            let Some(start) = self.job.start(self.task) else { return Ok(Walked::Overflow) };
            match self.task.next.what {
                What::Message => {
                    self.task.wait = Wait::Turn;
                    let dst = self.job.first_task + self.task.next.to;
                    return Ok(Walked::Message(NextMessage { start, dst }));
                }
                What::Mark => {
                    let id = self.task.next.id;
                    if !self.pass(&mut go, id, start) {
                        return Ok(Walked::Duplicate);
                    }
                }
                What::Pause => self.task.at = start,
                What::Nothing => {
                    self.task.wait = Wait::Finished;
                    return Ok(Walked::Finished);
                }
                What::Collective => {
                    // It does not wait any more, so that what it enters does not release it.
                    self.task.wait = Wait::Nothing;
                    self.task.at = start;
                    return Ok(Walked::Collective);
                }
            }
        }
    }

    /// Reads its next record. Of marks that are over as they start, because they stand behind what it did last, it makes
    /// short work: most are such, and they never leave the processor's registers.
    #[inline(always)]
    fn read(&mut self, go: &mut Go) -> Result<(), SourceError> {
        loop {
            let Some(streams) = self.job.source.plain() else {
                return self.job.source.next(self.rank, &mut self.task.next);
            };
            let Some(raw) = streams.next_raw(self.rank)? else {
                self.task.next = Row::NOTHING;
                return Ok(());
            };
            // What is wrong with a mark is found, and told, where all other records are looked at.
            if go.complete.is_some_and(|id| raw.is_mark_behind(id))
                && let Some(start) = self.job.after(self.task.at, Ticks(raw.time))
                && self.pass(go, raw.id, start)
            {
                continue;
            }
            self.task.next = Row::from_raw(&raw);
            return Ok(());
        }
    }

    /// A mark starts, and is over; `false` if its id was seen before.
    #[inline(always)]
    fn pass(&mut self, go: &mut Go, id: u64, start: Picos) -> bool {
        if !self.job.lines.begin(id, State::Done) {
            return false;
        }
        go.complete = Some(id);
        self.forget_detached();
        self.task.at = start;
        self.task.past.records += 1;
        self.stats.marks += 1;
        true
    }

    /// The task has started something at which it would wait.
    #[inline(always)]
    fn forget_detached(&mut self) {
        if !self.detached.is_empty() {
            self.detached.remove(&self.at);
        }
    }

    /// What keeps it from starting its next record, if anything does.
    #[inline(always)]
    fn must_wait(&self, go: &Go) -> Option<Wait> {
        let (lines, id) = (&self.job.lines, self.task.next.after);
        let (over, wait) = match self.task.next.waits {
            Waits::Start => return None,
            Waits::Received => (lines.get(id) == State::Done, Wait::Received),
            Waits::Sent => {
                let complete = go.complete == Some(id) || lines.get(id) >= State::Complete;
                (complete || self.detached.get(&self.at) == Some(&id), Wait::Sent)
            }
            Waits::Complete => (lines.get(id) >= State::Complete, Wait::Sent),
            Waits::Collective => {
                let id = CollectiveId(id);
                let over = self.task.past.has_left(id);
                (over.unwrap_or_else(|| self.collectives.is_over(self.job, id, self.rank)), Wait::Collective)
            }
        };
        if over { None } else { Some(wait) }
    }
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
        self.after(task.at, Ticks(task.next.time))
    }

    /// So much computing later.
    #[inline(always)]
    fn after(&self, at: Picos, computing: Ticks) -> Option<Picos> {
        at.checked_add(self.scale.picos(computing)?)
    }
}

#[cold]
fn unreadable(error: SourceError) -> Box<ReplayError> {
    Box::new(ReplayError::Source(error))
}

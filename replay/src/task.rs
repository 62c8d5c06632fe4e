//! The state machine of a task: it goes over its records until one has to wait, and returns why.
//!
//! A task is a [`Sequence`] of records, looked up in the engine's tables for one call. It starts its own messages
//! ([`Live::start`]). What concerns other tasks is for the engine to carry out ([`Halt`]).

use crate::collective::Collectives;
use crate::departure::Departure;
use crate::error::{EngineResult, ReplayError};
use crate::live::{Completes, Flight, Live, Of, short};
use crate::message::{Kind, Next, Sink, Started, Wake, WakeTarget};
use crate::running::Running;
use crate::sequence::{PAUSE, STARTED, SYNCHRONOUS, Sequence, Wait};
use crate::source::SourceError;
use vef_format::ids::{MessageId, Rank};
use vef_format::raw::{AWAITED, COLLECTIVE, DEPENDENCY, KIND, MARK, MESSAGE, Raw};
use vef_format::units::{Bytes, Picos, Ticks};

/// Where a task halted.
pub(crate) enum Halt {
    /// At a record that waits.
    Waiting,
    /// At its part of a collective, which starts: the part is to be played, then [`Task::entered`] called.
    Collective,
    /// Behind its last record.
    Finished,
}

/// A task, looked up once, with the tables of the engine that its records use.
pub(crate) struct Task<'a> {
    number: u32,
    sequence: &'a mut Sequence,
    job: &'a mut Running,
    live: &'a mut Live,
    collectives: &'a Collectives,
}

impl<'a> Task<'a> {
    #[inline(always)]
    pub(crate) fn new(
        number: u32,
        sequence: &'a mut Sequence,
        job: &'a mut Running,
        live: &'a mut Live,
        collectives: &'a Collectives,
    ) -> Self {
        Self { number, sequence, job, live, collectives }
    }
}

/// The events of a task.
impl Task<'_> {
    /// It begins with its first record.
    pub(crate) fn begin(mut self, out: &mut impl Sink) -> EngineResult<Halt> {
        let waits = self.read_next(None, out)?;
        let has_start = self.job.has_start(self.sequence.rank);
        let (rank, time) = (self.sequence.rank.index(), &mut self.sequence.next.time);
        if let Some(span) = self.job.spans.get(rank).filter(|_| has_start) {
            *time = span.first(Ticks(*time), self.job.from_launch).0;
        }
        *time = time.saturating_sub(self.job.skipped.get(rank).map_or(0, |skipped| skipped.0));
        if waits { Ok(Halt::Waiting) } else { self.run(out) }
    }

    /// A line arrives at it; `awaited` says whether some record waits for that, as far as the trace says so.
    #[inline(always)]
    pub(crate) fn receive(
        self,
        line: u64,
        awaited: bool,
        at: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Halt> {
        if !self.sequence.waits_for(Wait::Received, line) {
            self.job.lines.deliver_early(line, awaited, &mut self.sequence.early);
            return Ok(Halt::Waiting);
        }
        self.job.lines.deliver(line);
        self.release(at, out)
    }

    /// What it waited for came at `at`.
    #[inline(always)]
    pub(crate) fn release(self, at: Picos, out: &mut impl Sink) -> EngineResult<Halt> {
        self.sequence.at = self.sequence.at.max(at);
        self.run(out)
    }

    /// The simulator has called it: it starts its next record at `at`, or when it is ready if that is later. That is a message, unless there
    /// is [`InCalls`](crate::in_calls::InCalls).
    #[inline(always)]
    pub(crate) fn resume(mut self, at: Picos, out: &mut impl Sink) -> EngineResult<Halt> {
        let ready = self.start().unwrap_or(at);
        let start = at.max(ready);
        self.live.enter_call(self.number, start, out);
        let complete = match self.sequence.next.tag & KIND {
            MESSAGE => {
                let complete = self.start_message(ready, start, out)?;
                self.sequence.ahead = 1;
                complete
            }
            MARK => self.start_mark(start, out)?,
            _ => return Ok(end_of_lines(self.sequence, start, out)),
        };
        if self.read_next(complete, out)? { Ok(Halt::Waiting) } else { self.run(out) }
    }

    /// Its part of a collective, its next record, has started at `start`.
    pub(crate) fn entered(mut self, start: Picos, out: &mut impl Sink) -> EngineResult<Halt> {
        self.sequence.at = start;
        self.sequence.records += 1;
        if self.read_next(None, out)? { Ok(Halt::Waiting) } else { self.run(out) }
    }
}

/// Its steps.
impl Task<'_> {
    /// Goes over its records from the next one, which waits for nothing any more.
    #[inline(always)]
    fn run(mut self, out: &mut impl Sink) -> EngineResult<Halt> {
        loop {
            let Some(start) = self.start() else { return Err(self.sequence.overflow()) };
            let kind = self.sequence.next.tag & KIND;
            if let Some(in_calls) = &mut self.live.in_calls
                && start > self.sequence.at
            {
                in_calls.compute(self.number, self.sequence.at, self.sequence.records == 0);
                if kind != MESSAGE {
                    return Ok(self.wait_for_turn(start, true, out));
                }
            }
            let complete = if kind == MESSAGE {
                if self.sequence.ahead >= self.live.run_ahead {
                    let dst = self.job.first_task + self.sequence.next.to;
                    let inside = self.live.stays_inside(self.number, dst);
                    return Ok(self.wait_for_turn(start, inside, out));
                }
                self.sequence.ahead += 1;
                self.start_message(start, start, out)?
            } else if kind == MARK {
                self.start_mark(start, out)?
            } else {
                return Ok(end_of_lines(self.sequence, start, out));
            };
            if self.read_next(complete, out)? {
                return Ok(Halt::Waiting);
            }
        }
    }

    /// The simulator is to call it at the start of its next record.
    #[inline(always)]
    fn wait_for_turn(&mut self, start: Picos, inside: bool, out: &mut impl Sink) -> Halt {
        self.sequence.wait = Wait::Turn;
        out.take(Next::Wake(Wake { at: start, target: WakeTarget(self.number), inside }));
        Halt::Waiting
    }

    /// Its mark starts, or it begins to wait for a send; the mark.
    #[inline(always)]
    fn start_mark(&mut self, start: Picos, out: &mut impl Sink) -> EngineResult<Option<u64>> {
        let Raw { id, tag, .. } = self.sequence.next;
        let is_record = tag & PAUSE == 0;
        tell(self.sequence, is_record.then_some(self.sequence.next), start, out);
        self.sequence.at = start;
        if !is_record {
            return Ok(None);
        }
        self.pass(id)?;
        Ok(Some(id))
    }

    /// Its message starts; the line if it is complete for it.
    #[inline(always)]
    fn start_message(
        &mut self,
        ready: Picos,
        start: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Option<u64>> {
        let Raw { id, bytes, to, tag, .. } = self.sequence.next;
        let bytes = Bytes(bytes);
        let completes = self.live.completes(bytes, tag & SYNCHRONOUS != 0);
        let complete = completes == Completes::AtStart;
        tell(self.sequence, Some(self.sequence.next), start, out);
        if !self.job.lines.start(id, complete) {
            return Err(duplicate(self.sequence, id));
        }
        let (first_task, job) = (self.job.first_task, self.sequence.job);
        let record = short(self.sequence.records);
        let (kind, src, dst) = (Kind::PointToPoint, self.sequence.rank, Rank(to));
        let departure = || Departure { ready, start, bytes, kind, job, src, dst, first_task, record };
        let of = Of::Line { id, awaited: tag & AWAITED != 0, record };
        let flight = Flight::new(of, self.number, to, first_task + to, completes, start);
        if self.live.start(departure, flight, out).is_none() {
            return Err(self.sequence.overflow());
        }
        self.job.under_way += 1;
        self.sequence.at = start;
        self.sequence.records += 1;
        Ok(complete.then_some(id))
    }

    /// Reads its next record, and passes marks that follow what it did last at once; whether that record waits. A line that is known to
    /// be `complete` for it, mostly that which it started last, need not be looked up.
    #[inline(always)]
    fn read_next(&mut self, mut complete: Option<u64>, out: &mut impl Sink) -> EngineResult<bool> {
        self.read(&mut complete, out)?;
        match self.must_wait(complete) {
            Some(wait) => {
                self.sequence.wait = wait;
                self.sequence.ahead = 0;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline(always)]
    fn read(&mut self, complete: &mut Option<u64>, out: &mut impl Sink) -> EngineResult<()> {
        let rank = self.sequence.rank;
        if self.job.changes.is_some() {
            return read_changed(self.sequence, self.job);
        }
        let Some(streams) = self.job.source.plain() else {
            return self.job.source.next(rank, &mut self.sequence.next).map_err(unreadable);
        };
        if let Some(id) = *complete
            && self.live.in_calls.is_none()
        {
            let next = &mut self.sequence.next;
            if let Some(mark) = streams.next_pair(rank, id, next) {
                let Some(start) = self.job.scale.after(self.sequence.at, Ticks(mark.time), rank) else {
                    return Err(self.sequence.overflow());
                };
                tell(self.sequence, Some(mark.raw(rank)), start, out);
                self.sequence.at = start;
                *complete = Some(mark.id);
                return self.pass(mark.id);
            }
        }
        match streams.next_raw(rank) {
            Ok(raw) => {
                self.sequence.next = raw.unwrap_or(Raw::NOTHING);
                Ok(())
            }
            Err(error) => Err(unreadable(error)),
        }
    }

    /// A mark starts, and is over.
    #[inline(always)]
    fn pass(&mut self, id: u64) -> EngineResult<()> {
        if !self.job.lines.pass(id) {
            return Err(duplicate(self.sequence, id));
        }
        self.sequence.records += 1;
        self.live.stats.marks += 1;
        Ok(())
    }

    /// What keeps it from starting its next record, if anything does.
    #[inline(always)]
    fn must_wait(&mut self, complete: Option<u64>) -> Option<Wait> {
        let Raw { after, tag, .. } = self.sequence.next;
        let (over, wait) = match tag & DEPENDENCY {
            2 => (self.job.lines.has_received(after, &mut self.sequence.early), Wait::Received),
            1 => {
                let over = complete == Some(after) || self.job.lines.is_complete(after);
                (over || tag & STARTED != 0, Wait::Sent)
            }
            _ => (self.collectives.allow_next(self.job, self.sequence), Wait::Collective),
        };
        if over { None } else { Some(wait) }
    }

    /// When its next record starts, if that is not past the end of time.
    #[inline(always)]
    fn start(&self) -> Option<Picos> {
        self.job.scale.after(self.sequence.at, Ticks(self.sequence.next.time), self.sequence.rank)
    }
}

// What follows is no method: a call that takes the whole `Task` would keep it in memory.

/// Reads a task's next record, which differs from that of the trace.
#[inline(never)]
fn read_changed(sequence: &mut Sequence, job: &mut Running) -> EngineResult<()> {
    let Running { source, changes: Some(changes), .. } = job else { return Ok(()) };
    changes.next(source, sequence.rank, &mut sequence.records, &mut sequence.next).map_err(unreadable)
}

#[cold]
fn duplicate(sequence: &Sequence, id: u64) -> Box<ReplayError> {
    Box::new(ReplayError::DuplicateId { place: sequence.place(), id: MessageId(id) })
}

#[cold]
fn unreadable(error: SourceError) -> Box<ReplayError> {
    Box::new(ReplayError::Source(error))
}

/// A task's next record is no line: it is its part of a collective, which starts, or there is none.
#[inline(never)]
fn end_of_lines(sequence: &mut Sequence, start: Picos, out: &mut impl Sink) -> Halt {
    if sequence.next.tag & KIND != COLLECTIVE {
        sequence.wait = Wait::Finished;
        return Halt::Finished;
    }
    // It does not wait any more, so that what it enters does not release it.
    sequence.wait = Wait::Nothing;
    tell(sequence, Some(sequence.next), start, out);
    sequence.at = start;
    Halt::Collective
}

/// Reports a record that starts, if anybody watches.
#[inline(always)]
fn tell(sequence: &Sequence, record: Option<Raw>, at: Picos, out: &mut impl Sink) {
    if out.watches() {
        out.started(&started(sequence, record, at));
    }
}

/// The report of a record that starts.
#[inline(always)]
fn started(sequence: &Sequence, record: Option<Raw>, at: Picos) -> Started {
    let &Sequence { job, rank: task, records: number, at: released, .. } = sequence;
    let Raw { tag, after, .. } = sequence.next;
    let record = record.map(|raw| Raw { tag: raw.tag & (KIND | AWAITED | DEPENDENCY), ..raw });
    let (dependency, after) =
        record.map_or((tag & DEPENDENCY, after), |raw| (raw.tag & DEPENDENCY, raw.after));
    Started { job, task, number, record, dependency, after, released, at }
}

/// The record that a task has not started; see [`Engine::next_records`](crate::Engine::next_records).
pub(crate) fn not_started(sequence: &Sequence) -> Option<Started> {
    let released = match sequence.wait {
        Wait::Finished | Wait::Elsewhere => return None,
        Wait::Nothing | Wait::Turn => sequence.at,
        Wait::Sent | Wait::Received | Wait::Collective => Picos::MAX,
    };
    let record = (sequence.next.tag & PAUSE == 0).then_some(sequence.next);
    Some(Started { released, ..started(sequence, record, Picos::MAX) })
}

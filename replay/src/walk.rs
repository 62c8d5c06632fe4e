//! A walk over the records of a sequence, and the start of its messages.

use crate::collective::Collectives;
use crate::live::{Completes, Flight, Live, Of};
use crate::message::{Kind, Message, Next, Sink, Started, Wake, Who};
use crate::options::{SameNode, SendCompletion};
use crate::running::Running;
use crate::sequence::{PAUSE, STARTED, Sequence, Wait};
use crate::source::SourceError;
use crate::stats::Stats;
use vef_format::ids::Rank;
use vef_format::raw::{AWAITED, COLLECTIVE, DEPENDENCY, KIND, MARK, MESSAGE, NOTHING, Raw};
use vef_format::units::{Bytes, Picos, Ticks};

/// Where a walk over a sequence's records ended.
pub(crate) enum Walked {
    /// At a record that waits.
    Waiting,
    /// At a part of a collective that starts.
    Collective,
    /// Behind the last record.
    Finished,
}

/// Why a walk fails.
pub(crate) enum Stop {
    /// A record would start past the end of time.
    Overflow,
    /// A record has the id of another.
    Duplicate(u64),
    /// The trace cannot be read on.
    Source(SourceError),
}

/// A sequence, looked up once, with the parts of the engine that its records use.
pub(crate) struct Walk<'a> {
    number: u32,
    pub(crate) sequence: &'a mut Sequence,
    pub(crate) job: &'a mut Running,
    departures: &'a mut Departures,
    collectives: &'a Collectives,
}

impl<'a> Walk<'a> {
    #[inline(always)]
    pub(crate) fn new(
        number: u32,
        sequence: &'a mut Sequence,
        jobs: &'a mut [Running],
        departures: &'a mut Departures,
        collectives: &'a Collectives,
    ) -> Self {
        let job = &mut jobs[sequence.job as usize];
        Self { number, sequence, job, departures, collectives }
    }
}

impl Walk<'_> {
    /// A line arrives at its task, `rank`; `awaited` says whether some record waits for it, as far as the trace says so.
    #[inline(always)]
    pub(crate) fn receive(
        self,
        (line, awaited): (u64, bool),
        rank: u32,
        at: Picos,
        out: &mut impl Sink,
    ) -> Result<Walked, Stop> {
        if !self.sequence.waits_for(Wait::Received, line) {
            self.job.lines.deliver_early(line, rank, awaited);
            return Ok(Walked::Waiting);
        }
        self.job.lines.deliver(line);
        self.release(at, out)
    }

    /// Goes over its records from the next one, for which what it waited for came at `at`.
    #[inline(always)]
    pub(crate) fn release(self, at: Picos, out: &mut impl Sink) -> Result<Walked, Stop> {
        self.sequence.at = self.sequence.at.max(at);
        self.run(out)
    }

    /// Goes over its records from the next one, which waits for nothing any more.
    #[inline(always)]
    pub(crate) fn run(mut self, out: &mut impl Sink) -> Result<Walked, Stop> {
        loop {
            let Some(start) = self.start() else { return Err(Stop::Overflow) };
            let kind = self.sequence.next.tag & KIND;
            let complete = if kind == MESSAGE {
                if self.sequence.ahead >= self.departures.run_ahead {
                    self.sequence.wait = Wait::Turn;
                    let dst = self.job.first_task + self.sequence.next.to;
                    let inside = self.departures.inside(self.number, dst);
                    out.take(Next::Wake(Wake { at: start, who: Who(self.number), inside }));
                    return Ok(Walked::Waiting);
                }
                self.sequence.ahead += 1;
                self.start_message(start, start, out)?
            } else if kind == MARK {
                let Raw { id, tag, .. } = self.sequence.next;
                let is_record = tag & PAUSE == 0;
                out.started(&started(self.sequence, is_record.then_some(self.sequence.next), start));
                self.sequence.at = start;
                if !is_record {
                    None
                } else {
                    self.pass(id)?;
                    Some(id)
                }
            } else {
                return Ok(end_of_lines(self.sequence, start, out));
            };
            if self.read_next(complete, out)? {
                return Ok(Walked::Waiting);
            }
        }
    }

    /// Its message starts; the line if it is complete for it.
    #[inline(always)]
    pub(crate) fn start_message(
        &mut self,
        ready: Picos,
        start: Picos,
        out: &mut impl Sink,
    ) -> Result<Option<u64>, Stop> {
        let Raw { id, bytes, to, tag, .. } = self.sequence.next;
        let bytes = Bytes(bytes);
        let completes = self.departures.send_completion.of(bytes);
        let complete = completes == Completes::AtStart;
        out.started(&started(self.sequence, Some(self.sequence.next), start));
        if !self.job.lines.start(id, complete) {
            return Err(Stop::Duplicate(id));
        }
        let (first_task, job) = (self.job.first_task, self.sequence.job);
        let departure = Departure {
            ready,
            start,
            bytes,
            kind: Kind::PointToPoint,
            job,
            src: self.sequence.rank,
            dst: Rank(to),
            first_task,
        };
        let of = Of::Line { id, awaited: tag & AWAITED != 0 };
        let flight = Flight::new(of, self.number, to, first_task + to, completes);
        let departed = self.departures.depart(&departure, flight, out);
        if departed.is_none() {
            return Err(Stop::Overflow);
        }
        self.sequence.at = start;
        self.sequence.records += 1;
        Ok(complete.then_some(id))
    }

    /// Reads its next record, and passes marks that follow what it did last at once; whether that record waits. A line that is known to
    /// be `complete` for it, mostly that which it started last, need not be looked up.
    #[inline(always)]
    pub(crate) fn read_next(&mut self, mut complete: Option<u64>, out: &mut impl Sink) -> Result<bool, Stop> {
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
    fn read(&mut self, complete: &mut Option<u64>, out: &mut impl Sink) -> Result<(), Stop> {
        let rank = self.sequence.rank;
        if self.job.computing.is_some() {
            return self.read_replaced();
        }
        let Some(streams) = self.job.source.plain() else {
            return self.job.source.next(rank, &mut self.sequence.next).map_err(Stop::Source);
        };
        if let Some(id) = *complete {
            let next = &mut self.sequence.next;
            if let Some(mark) = streams.next_pair(rank, id, next) {
                let Some(start) = self.job.after(self.sequence.at, Ticks(mark.time), rank) else {
                    return Err(Stop::Overflow);
                };
                out.started(&started(self.sequence, Some(mark.raw(rank)), start));
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
            Err(error) => Err(Stop::Source(error)),
        }
    }

    /// Reads its next record, whose computing time is another than the trace says.
    #[inline(never)]
    fn read_replaced(&mut self) -> Result<(), Stop> {
        let Sequence { rank, records, ref mut next, .. } = *self.sequence;
        self.job.source.next(rank, next).map_err(Stop::Source)?;
        if let Some(computing) = &mut self.job.computing
            && next.tag & KIND != NOTHING
        {
            next.time = computing.time(rank, records, next).0;
        }
        Ok(())
    }

    /// A mark starts, and is over.
    #[inline(always)]
    fn pass(&mut self, id: u64) -> Result<(), Stop> {
        if !self.job.lines.pass(id) {
            return Err(Stop::Duplicate(id));
        }
        self.sequence.records += 1;
        self.departures.stats.marks += 1;
        Ok(())
    }

    /// What keeps it from starting its next record, if anything does.
    #[inline(always)]
    fn must_wait(&mut self, complete: Option<u64>) -> Option<Wait> {
        let Raw { after, tag, .. } = self.sequence.next;
        let (over, wait) = match tag & DEPENDENCY {
            2 => (self.job.lines.has_received(after, self.sequence.rank.0), Wait::Received),
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
    pub(crate) fn start(&self) -> Option<Picos> {
        self.job.after(self.sequence.at, Ticks(self.sequence.next.time), self.sequence.rank)
    }
}

/// A sequence's next record is no line: it is the task's part of a collective, which starts, or none.
#[inline(never)]
fn end_of_lines(sequence: &mut Sequence, start: Picos, out: &mut impl Sink) -> Walked {
    if sequence.next.tag & KIND != COLLECTIVE {
        sequence.wait = Wait::Finished;
        return Walked::Finished;
    }
    // It does not wait any more, so that what it enters does not release it.
    sequence.wait = Wait::Nothing;
    out.started(&started(sequence, Some(sequence.next), start));
    sequence.at = start;
    Walked::Collective
}

/// The report of a record that starts.
#[inline(always)]
fn started(sequence: &Sequence, record: Option<Raw>, at: Picos) -> Started {
    let &Sequence { job, rank: task, records: number, at: released, .. } = sequence;
    let record = record.map(|raw| Raw { tag: raw.tag & (KIND | AWAITED | DEPENDENCY), ..raw });
    Started { job, task, number, record, released, at }
}

/// The record that a sequence has not started; see [`Engine::next_records`](crate::Engine::next_records).
pub(crate) fn next_record(sequence: &Sequence) -> Option<Started> {
    let released = match sequence.wait {
        Wait::Finished | Wait::Elsewhere => return None,
        Wait::Nothing | Wait::Turn => sequence.at,
        Wait::Sent | Wait::Received | Wait::Collective => Picos::MAX,
    };
    let record = (sequence.next.tag & PAUSE == 0).then_some(sequence.next);
    Some(Started { released, ..started(sequence, record, Picos::MAX) })
}

/// What messages go through when they start.
#[derive(Debug)]
pub(crate) struct Departures {
    pub(crate) live: Live,
    pub(crate) stats: Stats,
    /// End node of each task, counted over all jobs.
    pub(crate) nodes: Vec<u32>,
    pub(crate) send_completion: SendCompletion,
    pub(crate) same_node: SameNode,
    /// Messages that a sequence or a part may start before the simulator calls for it.
    pub(crate) run_ahead: u8,
}

/// A message that starts.
pub(crate) struct Departure {
    pub(crate) ready: Picos,
    pub(crate) start: Picos,
    pub(crate) bytes: Bytes,
    pub(crate) kind: Kind,
    pub(crate) job: u32,
    pub(crate) src: Rank,
    pub(crate) dst: Rank,
    /// The job's first task.
    pub(crate) first_task: u32,
}

impl Departures {
    /// A message starts; `None` if it would arrive past the end of time.
    #[inline(always)]
    pub(crate) fn depart(
        &mut self,
        departure: &Departure,
        flight: Flight,
        out: &mut impl Sink,
    ) -> Option<()> {
        let &Departure { ready, start, bytes, kind, job, src, dst, first_task } = departure;
        self.stats.start(kind, bytes);
        let [src_node, dst_node] = [src, dst].map(|rank| self.nodes[(first_task + rank.0) as usize]);
        let id = self.live.insert(flight);
        let message = Message { id, start, ready, src_node, dst_node, bytes, job, src, dst, kind };
        if let SameNode::Inside(link) = self.same_node
            && src_node == dst_node
        {
            self.stats.inside.add(bytes);
            let arrives = link.time(bytes).and_then(|took| start.checked_add(took))?;
            out.take(Next::Inside { message, arrives });
        } else {
            out.take(Next::Message(message));
        }
        Some(())
    }

    /// Whether messages between two tasks stay within their node.
    #[inline(always)]
    pub(crate) fn inside(&self, src: u32, dst: u32) -> bool {
        self.same_node != SameNode::HandOut && self.nodes[src as usize] == self.nodes[dst as usize]
    }
}

//! Resolves partners in the records of some tasks, window by window, so that only ids are missing. Drops records that are
//! not in the trace; the next record takes over the dependency of a dropped one.

use crate::agreement::Operations;
use crate::channels::NONE;
use crate::matching::{Fate, Partners, Sender};
use crate::order::End;
use crate::packed::{After, Body, Cursor, Record};
use crate::prepared::{EXPECTED, Prepared, join};
use crate::task::Task;
use crate::window::Window;
use std::collections::VecDeque;
use vef_format::ids::Rank;
use vef_format::operation::{OpCode, OpCodes, Operation};
use vef_format::prefetch::prefetch;
use vef_format::raw::{AWAITED, COLLECTIVE, MARK, MESSAGE, Raw};

/// Data common to all tasks.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    /// Operations of each communicator, by identity.
    pub(crate) operations: &'a [Operations],
    codes: [OpCode; Operation::ALL.len()],
}

impl<'a> Shared<'a> {
    /// Looks up all codes; the caller has checked that the operations of the capture have one.
    pub(crate) fn new(operations: &'a [Operations], codes: &OpCodes) -> Self {
        let mut table = [OpCode(0); Operation::ALL.len()];
        for (code, &operation) in table.iter_mut().zip(Operation::ALL) {
            *code = codes.code(operation).unwrap_or(operation.default_code());
        }
        Self { operations, codes: table }
    }
}

/// Prepares the records of some tasks, window by window.
#[derive(Debug)]
pub(crate) struct Preparer<'a> {
    /// The first task.
    first: u32,
    shared: &'a Shared<'a>,
    places: Vec<Place<'a>>,
}

/// How many tasks ahead their next records are prefetched.
const AHEAD: usize = 4;

/// Position in a task's records: few cache lines, because a window has few records of each of many tasks.
#[derive(Debug)]
struct Place<'a> {
    records: Cursor<'a>,
    /// The partners, here because a pointer to them would be one more cache miss.
    senders: &'a [Sender],
    receivers: &'a [Rank],
    fates: &'a [Fate],
    task: &'a Task,
    /// Conversion to the common clock: to be added.
    shift: i64,
    messages: u32,
    /// The threads seen so far; at least one.
    threads: Vec<Thread>,
    collectives: Box<Collectives>,
}

/// The collectives of a task so far.
#[derive(Debug)]
struct Collectives {
    /// Each of the task's communicators, and the number of calls on it so far.
    calls: Vec<(u32, u32)>,
    /// Communicator and position of the recent collectives, and the index of the first of them.
    recent: VecDeque<(u32, u32)>,
    recent_first: u32,
}

/// Code of a dependency, and what a [`Prepared`] record has instead of its id.
type Awaits = (u8, u64);

/// State of a thread.
#[derive(Debug, Default)]
struct Thread {
    number: u16,
    /// Whether a message or mark of the thread is in the trace.
    anchored: bool,
    /// Dependency of a record that was dropped just before, and the time from which its computing counts.
    inherited: Option<(Awaits, u64)>,
}

impl<'a> Preparer<'a> {
    /// Begins before the first record of `tasks`, the first of which is `first`; `shifts` convert their clocks.
    pub(crate) fn new(
        first: Rank,
        tasks: &'a [Task],
        partners: &'a [Partners],
        shifts: &[i64],
        shared: &'a Shared<'a>,
    ) -> Self {
        let place = |((task, partners), &shift): ((&'a Task, &'a Partners), &i64)| Place {
            records: Cursor::new(&task.records),
            senders: &partners.senders,
            receivers: &partners.receivers,
            fates: &partners.fates,
            task,
            shift,
            messages: 0,
            threads: vec![Thread::default()],
            collectives: Box::new(Collectives {
                calls: task.calls.iter().map(|calls| (calls.comm.0, 0)).collect(),
                recent: VecDeque::new(),
                recent_first: 0,
            }),
        };
        let places = tasks.iter().zip(partners).zip(shifts).map(place).collect();
        Self { first: first.0, shared, places }
    }

    /// Adds the records of the window that ends at `end`.
    pub(crate) fn fill(&mut self, end: End, window: &mut Window) {
        let Self { first, shared, places } = self;
        for at in 0..places.len() {
            prefetch(places, at + 2 * AHEAD);
            if let Some(ahead) = places.get(at + AHEAD) {
                ahead.prefetch();
            }
            let place = &mut places[at];
            let rank = Rank(*first + at as u32);
            let threads = place.task.records.has_threads();
            let Some(latest) = end.latest(rank).and_then(|end| place.on_clock_of_task(end)) else { continue };
            let mut records = place.records;
            while let Some((start, record)) = records.next(latest) {
                let begun = Prepared {
                    raw: Raw { time: record.time, to: rank.0, tag: MARK, ..Raw::NOTHING },
                    start: start.saturating_add_signed(place.shift),
                    task: rank,
                    thread: threads.then_some(record.thread),
                };
                window.push_if(begun, |prepared| place.prepare(&record, shared, prepared));
            }
            place.records = records;
        }
    }
}

impl Place<'_> {
    /// The latest time of the task's clock that is not after `end` of the common clock; `None`: there is none.
    fn on_clock_of_task(&self, end: u64) -> Option<u64> {
        match self.shift {
            // Times beyond it are this one.
            _ if end == u64::MAX => Some(end),
            shift @ 0.. => end.checked_sub(shift.unsigned_abs()),
            shift => Some(end.saturating_add(shift.unsigned_abs())),
        }
    }

    /// Prefetches what the next records need.
    #[inline]
    fn prefetch(&self) {
        self.records.prefetch();
        prefetch(self.senders, self.records.receive());
        prefetch(self.receivers, self.messages as usize);
        prefetch(&self.threads, 0);
    }

    /// Completes `prepared` from its record; returns `false` if the record is dropped.
    #[inline(always)]
    fn prepare(&mut self, record: &Record, shared: &Shared<'_>, prepared: &mut Prepared) -> bool {
        let thread = prepared.thread.map_or(0, |number| self.thread(number));
        let thread = &mut self.threads[thread];
        let raw = &mut prepared.raw;
        let anchor = (u8::from(thread.anchored), 0);
        // Whether the dependency is the previous record of the thread, which may have been dropped.
        let mut follows_previous = true;
        let mut awaits = match record.after {
            After::Start => (0, 0),
            After::Sent => anchor,
            After::Received(receive) => {
                follows_previous = false;
                let Sender { source, message } = self.senders[receive as usize];
                if message == NONE { anchor } else { (2, join(source.0, message)) }
            }
            After::Collective(number) => {
                let Collectives { recent, recent_first, .. } = &*self.collectives;
                let at = number.wrapping_sub(*recent_first) as usize;
                let known = recent.get(at).filter(|&&(comm, position)| shared.has(comm, position));
                follows_previous = known.is_none();
                known.map_or(anchor, |&(comm, position)| (3, join(comm, position)))
            }
        };
        if let Some((inherited, since)) = thread.inherited.take()
            && follows_previous
        {
            (awaits, raw.time) = (inherited, prepared.start.saturating_sub(since));
        }
        let tag;
        (tag, raw.after) = awaits;
        raw.tag |= tag;
        let is_kept = match record.body {
            Body::Mark => {
                thread.anchored = true;
                true
            }
            Body::Message(bytes) => {
                let number = self.messages;
                self.messages += 1;
                let fate = self.fates.get(number as usize).copied().unwrap_or(Fate::Expected);
                raw.tag |= if fate == Fate::Unawaited { MESSAGE } else { MESSAGE | AWAITED };
                raw.id = u64::from(number) | if fate == Fate::Expected { EXPECTED } else { 0 };
                (raw.to, raw.bytes) = (self.receivers[number as usize].0, bytes.0);
                thread.anchored |= fate != Fate::Dropped;
                fate != Fate::Dropped
            }
            Body::Collective(part) => {
                let part = self.task.records.part(part);
                let Collectives { calls, recent, recent_first } = &mut *self.collectives;
                let (comm, calls) = &mut calls[part.slot as usize];
                let (comm, position) = (*comm, *calls);
                *calls += 1;
                recent.push_back((comm, position));
                if recent.len() > self.task.reach as usize {
                    recent.pop_front();
                    *recent_first += 1;
                }
                raw.tag |= COLLECTIVE;
                (raw.id, raw.to, raw.op) = (position.into(), comm, shared.codes[part.operation as usize].0);
                (raw.bytes, raw.recv) = (part.amounts.send.0, part.amounts.recv.0);
                shared.has(comm, position)
            }
        };
        if !is_kept {
            thread.inherited = Some((awaits, prepared.start.saturating_sub(raw.time)));
        }
        is_kept
    }

    /// Index of a thread in [`Place::threads`].
    fn thread(&mut self, number: u16) -> usize {
        let known = self.threads.iter().position(|thread| thread.number == number);
        known.unwrap_or_else(|| {
            self.threads.push(Thread { number, ..Thread::default() });
            self.threads.len() - 1
        })
    }
}

impl Shared<'_> {
    /// Whether the operation at `position` of a communicator is in the trace.
    fn has(&self, comm: u32, position: u32) -> bool {
        self.operations.get(comm as usize).is_some_and(|operations| u64::from(position) < operations.complete)
    }
}

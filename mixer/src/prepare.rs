//! Resolves partners in the records of some tasks, window by window, so that only ids are missing. Drops records that are
//! not in the trace; the next record takes over the dependency of a dropped one.

use crate::agreement::Operations;
use crate::channels::NONE;
use crate::matching::{Fate, Partners, Sender};
use crate::order::End;
use crate::packed::{After, Body, Cursor, Record};
use crate::prepared::{Awaits, Prepared, What};
use crate::task::Task;
use crate::window::Window;
use std::collections::VecDeque;
use std::hint::black_box;
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, OpCode, OpCodes, Operation};

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
    tasks: &'a [Task],
    partners: &'a [Partners],
    shared: &'a Shared<'a>,
    places: Vec<Place>,
}

/// Position in a task's records.
#[derive(Debug)]
struct Place {
    records: Cursor,
    /// Conversion to the common clock: to be added.
    shift: i64,
    messages: u32,
    /// The threads seen so far; at least one.
    threads: Vec<Thread>,
    /// Each of the task's communicators, and the number of calls on it so far.
    calls: Vec<(u32, u32)>,
    /// Communicator and position of the recent collectives, and the index of the first of them.
    recent: VecDeque<(u32, u32)>,
    recent_first: u32,
}

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
        let place = |(task, &shift): (&Task, &i64)| Place {
            records: Cursor::default(),
            shift,
            messages: 0,
            threads: vec![Thread::default()],
            calls: task.calls.iter().map(|calls| (calls.comm.0, 0)).collect(),
            recent: VecDeque::new(),
            recent_first: 0,
        };
        let places = tasks.iter().zip(shifts).map(place).collect();
        Self { first: first.0, tasks, partners, shared, places }
    }

    /// Adds the records of the window that ends at `end`.
    pub(crate) fn fill(&mut self, end: End, window: &mut Window) {
        let Self { first, tasks, partners, shared, places } = self;
        for at in 0..places.len() {
            if let Some(next) = places.get(at + 1) {
                next.prefetch(&tasks[at + 1], &partners[at + 1]);
            }
            let place = &mut places[at];
            let (rank, task, partners) = (Rank(*first + at as u32), &tasks[at], &partners[at]);
            let Some(latest) = end.latest(rank).and_then(|end| place.on_clock_of_task(end)) else { continue };
            let mut records = place.records;
            while let Some((start, record)) = records.next(&task.records, latest) {
                let begun = Prepared {
                    task: rank,
                    thread: task.records.has_threads().then_some(record.thread),
                    start: start.saturating_add_signed(place.shift),
                    time: record.time,
                    awaits: Awaits::Start,
                    what: What::Mark,
                    amounts: Amounts::default(),
                };
                window.push_if(begun, |prepared| place.prepare(&record, task, partners, shared, prepared));
            }
            place.records = records;
        }
    }
}

impl Place {
    /// The latest time of the task's clock that is not after `end` of the common clock; `None`: there is none.
    fn on_clock_of_task(&self, end: u64) -> Option<u64> {
        match self.shift {
            // Times beyond it are this one.
            _ if end == u64::MAX => Some(end),
            shift @ 0.. => end.checked_sub(shift.unsigned_abs()),
            shift => Some(end.saturating_add(shift.unsigned_abs())),
        }
    }

    /// Touches what the next records need, so that the cache misses overlap.
    #[inline]
    fn prefetch(&self, task: &Task, partners: &Partners) {
        let lines = partners.senders.get(self.records.receive() as usize).map_or(0, |sender| sender.message)
            ^ partners.receivers.get(self.messages as usize).map_or(0, |dst| dst.0)
            ^ u32::from(self.records.prefetch(&task.records));
        black_box(lines);
    }

    /// Completes `prepared` from its record; returns `false` if the record is dropped.
    #[inline(always)]
    fn prepare(
        &mut self,
        record: &Record,
        task: &Task,
        partners: &Partners,
        shared: &Shared<'_>,
        prepared: &mut Prepared,
    ) -> bool {
        let thread = prepared.thread.map_or(0, |number| self.thread(number));
        let thread = &mut self.threads[thread];
        let anchor = if thread.anchored { Awaits::Sent } else { Awaits::Start };
        // Whether the dependency is the previous record of the thread, which may have been dropped.
        let mut follows_previous = true;
        match record.after {
            After::Start => {}
            After::Sent => prepared.awaits = anchor,
            After::Received(receive) => {
                let Sender { source, message } = partners.senders[receive as usize];
                prepared.awaits = if message == NONE { anchor } else { Awaits::Received { source, message } };
                follows_previous = false;
            }
            After::Collective(number) => {
                let at = number.wrapping_sub(self.recent_first) as usize;
                let known = self.recent.get(at).filter(|&&(comm, position)| shared.has(comm, position));
                let awaits = known.map(|&(comm, position)| Awaits::Collective { comm, position });
                prepared.awaits = awaits.unwrap_or(anchor);
                follows_previous = awaits.is_none();
            }
        }
        if let Some((awaits, since)) = thread.inherited.take()
            && follows_previous
        {
            (prepared.awaits, prepared.time) = (awaits, prepared.start.saturating_sub(since));
        }
        let is_kept = match record.body {
            Body::Mark => {
                thread.anchored = true;
                true
            }
            Body::Message(bytes) => {
                let number = self.messages;
                self.messages += 1;
                let (dst, fate) = (partners.receivers[number as usize], partners.fate(number));
                prepared.what = What::Message { number, dst, fate };
                prepared.amounts.send = bytes;
                thread.anchored |= fate != Fate::Dropped;
                fate != Fate::Dropped
            }
            Body::Collective(part) => {
                let part = task.records.part(part);
                let (comm, calls) = &mut self.calls[part.slot as usize];
                let (comm, position) = (*comm, *calls);
                *calls += 1;
                self.recent.push_back((comm, position));
                if self.recent.len() > task.reach as usize {
                    self.recent.pop_front();
                    self.recent_first += 1;
                }
                prepared.what =
                    What::Collective { comm, position, code: shared.codes[part.operation as usize] };
                prepared.amounts = part.amounts;
                shared.has(comm, position)
            }
        };
        if !is_kept {
            thread.inherited = Some((prepared.awaits, prepared.start.saturating_sub(prepared.time)));
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

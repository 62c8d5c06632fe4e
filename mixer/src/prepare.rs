//! Resolves partners in the records of some tasks, window by window, so that only ids are missing. Drops records that are
//! not in the trace; the next record takes over the dependency of a dropped one.

use crate::agreement::Operations;
use crate::channels::NONE;
use crate::matching::{Fate, Partners};
use crate::order::End;
use crate::packed::{After, Body, Cursor};
use crate::prepared::{Awaits, Prepared, What};
use crate::task::Task;
use crate::window::Window;
use std::collections::VecDeque;
use std::hint::black_box;
use vef_format::ids::Rank;
use vef_format::operation::{OpCode, OpCodes, Operation};
use vef_format::units::Bytes;

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
    /// Conversion to the common clock: add `later`, subtract `earlier`.
    later: u64,
    earlier: u64,
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
            later: shift.max(0).unsigned_abs(),
            earlier: shift.min(0).unsigned_abs(),
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
            let Some(end) = end.latest(rank) else { continue };
            loop {
                place.fast_take(rank, end, task, partners, window);
                let Some(start) = place.start(task).filter(|&start| start <= end) else { break };
                if let Some(record) = place.take(rank, start, task, partners, shared) {
                    window.push(record);
                }
            }
        }
    }
}

impl Place {
    /// Start of the next record on the common clock; `None` at the end.
    #[inline(always)]
    fn start(&self, task: &Task) -> Option<u64> {
        self.records.start(&task.records).map(|start| self.on_clock_of_all(start))
    }

    #[inline(always)]
    fn on_clock_of_all(&self, start: u64) -> u64 {
        start.saturating_add(self.later).saturating_sub(self.earlier)
    }

    /// Touches what the next records need, so that the cache misses overlap.
    #[inline]
    fn prefetch(&self, task: &Task, partners: &Partners) {
        let sent = self.messages as usize;
        let received = self.records.receive() as usize;
        let lines = task.receives.number_at(received)
            ^ task.sends.number_at(sent)
            ^ partners.messages.get(received).copied().unwrap_or_default()
            ^ partners.fates.get(sent).map_or(0, |&fate| fate as u32)
            ^ self.records.prefetch(&task.records);
        black_box(lines);
    }

    /// Fast path of [`Place::take`]: adds the next records up to `end` (inclusive) as long as they are plain marks and
    /// messages with a partner.
    #[inline(always)]
    fn fast_take(&mut self, rank: Rank, end: u64, task: &Task, partners: &Partners, window: &mut Window) {
        if !self.threads[0].anchored || self.threads[0].inherited.is_some() {
            return;
        }
        let (mut records, mut messages) = (self.records, self.messages);
        while let Some(plain) = records.plain(&task.records) {
            let start = self.on_clock_of_all(plain.start);
            if start > end {
                break;
            }
            let awaits = match plain.receive {
                None => Awaits::Sent,
                Some(receive) => match (partners.messages[receive as usize], task.receives.of(receive)) {
                    (NONE, _) | (_, None) => break,
                    (message, Some(channel)) => Awaits::Received { source: channel.peer, message },
                },
            };
            let what = match plain.bytes {
                None => What::Mark,
                Some(bytes) => match (partners.fates[messages as usize], task.sends.of(messages)) {
                    (Fate::Dropped, _) | (_, None) => break,
                    (fate, Some(channel)) => {
                        let (number, bytes) = (messages, Bytes(bytes.into()));
                        messages += 1;
                        What::Message { number, dst: channel.peer, bytes, fate }
                    }
                },
            };
            let time = plain.time.into();
            window.push(Prepared { task: rank, thread: None, start, time, awaits, what });
            records.advance(&plain);
        }
        (self.records, self.messages) = (records, messages);
    }

    /// Prepares the next record, which begins at `start`; `None`: the record is dropped.
    #[inline(always)]
    fn take(
        &mut self,
        rank: Rank,
        start: u64,
        task: &Task,
        partners: &Partners,
        shared: &Shared<'_>,
    ) -> Option<Prepared> {
        let record = self.records.next(&task.records)?;
        let number = task.records.has_threads().then_some(record.thread);
        let thread = number.map_or(0, |number| self.thread(number));
        let anchor = if self.threads[thread].anchored { Awaits::Sent } else { Awaits::Start };
        // The dependency, and whether it is the previous record of the thread, which may have been dropped.
        let (awaits, follows_previous) = match record.after {
            After::Start => (Awaits::Start, true),
            After::Sent => (anchor, true),
            After::Collective(number) => {
                let at = number.wrapping_sub(self.recent_first) as usize;
                match self.recent.get(at) {
                    Some(&(comm, position)) if shared.has(comm, position) => {
                        (Awaits::Collective { comm, position }, false)
                    }
                    _ => (anchor, true),
                }
            }
            After::Received(receive) => {
                match (partners.messages[receive as usize], task.receives.of(receive)) {
                    (NONE, _) | (_, None) => (anchor, false),
                    (message, Some(channel)) => (Awaits::Received { source: channel.peer, message }, false),
                }
            }
        };
        let (awaits, time) = match self.threads[thread].inherited.take() {
            Some((awaits, since)) if follows_previous => (awaits, start.saturating_sub(since)),
            _ => (awaits, record.time),
        };
        let what = match record.body {
            Body::Mark => {
                self.threads[thread].anchored = true;
                What::Mark
            }
            Body::Message(bytes) => {
                let number = self.messages;
                self.messages += 1;
                let fate = partners.fates[number as usize];
                if fate == Fate::Dropped {
                    self.threads[thread].inherited = Some((awaits, start.saturating_sub(time)));
                    return None;
                }
                self.threads[thread].anchored = true;
                let dst = task.sends.of(number)?.peer;
                What::Message { number, dst, bytes, fate }
            }
            Body::Collective(part) => {
                let (comm, calls) = &mut self.calls[part.slot as usize];
                let (comm, position) = (*comm, *calls);
                *calls += 1;
                self.recent.push_back((comm, position));
                if self.recent.len() > task.reach as usize {
                    self.recent.pop_front();
                    self.recent_first += 1;
                }
                if !shared.has(comm, position) {
                    self.threads[thread].inherited = Some((awaits, start.saturating_sub(time)));
                    return None;
                }
                let code = shared.codes[part.operation as usize];
                What::Collective { comm, position, code, amounts: part.amounts }
            }
        };
        Some(Prepared { task: rank, thread: number, start, time, awaits, what })
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

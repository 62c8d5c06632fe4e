//! The records of some tasks with all that can be said of them before the lines have ids, window of time by window
//! of time. What stands not in the trace ends here: the record behind it takes over what it waited for.

use crate::agreement::Operations;
use crate::channels::NONE;
use crate::matching::{Fate, Partners};
use crate::order::End;
use crate::packed::{After, Body, Cursor};
use crate::prepared::{Awaits, Prepared, What};
use crate::task::Task;
use crate::window::{Form, Link, Window};
use std::collections::VecDeque;
use std::hint::black_box;
use vef_format::ids::Rank;
use vef_format::operation::{OpCode, OpCodes, Operation};

/// What is the same for all tasks.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    /// The operations of each communicator, by identity.
    pub(crate) operations: &'a [Operations],
    codes: [OpCode; Operation::ALL.len()],
}

impl<'a> Shared<'a> {
    /// With the codes of collectives in the trace; what is called has one.
    pub(crate) fn new(operations: &'a [Operations], codes: &OpCodes) -> Self {
        let mut table = [OpCode(0); Operation::ALL.len()];
        for (code, &operation) in table.iter_mut().zip(Operation::ALL) {
            *code = codes.code(operation).unwrap_or(operation.default_code());
        }
        Self { operations, codes: table }
    }
}

/// Prepares the records of some tasks, window after window.
#[derive(Debug)]
pub(crate) struct Preparer<'a> {
    /// The number of the first task.
    first: u32,
    tasks: &'a [Task],
    partners: &'a [Partners],
    shared: &'a Shared<'a>,
    places: Vec<Place>,
}

/// Where in its records a task is.
#[derive(Debug)]
struct Place {
    records: Cursor,
    /// What makes this task's clock that of all: this is added, or that taken away.
    later: u64,
    earlier: u64,
    messages: u32,
    /// The threads that have come so far; of a task with one thread, that.
    threads: Vec<Thread>,
    /// The task's communicators, and how many calls on each there were.
    calls: Vec<(u32, u32)>,
    /// The recent collectives: communicator and position; and the number of the first of them.
    recent: VecDeque<(u32, u32)>,
    recent_first: u32,
}

/// Where in its records a thread is.
#[derive(Debug, Default)]
struct Thread {
    number: u16,
    /// Whether a message or mark of the thread is in the trace.
    anchored: bool,
    /// What a record that was dropped just before leaves to the next: what it waited for, and since when.
    inherited: Option<(Awaits, u64)>,
}

impl<'a> Preparer<'a> {
    /// Before the first record of `tasks`, which begin with task `first`; `shifts` make each task's clock that of all.
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

    /// Adds the records of the window that ends there.
    pub(crate) fn fill(&mut self, end: End, window: &mut Window) {
        let Self { first, tasks, partners, shared, places } = self;
        for at in 0..places.len() {
            if let Some(next) = places.get(at + 1) {
                next.fetch(&tasks[at + 1], &partners[at + 1]);
            }
            let place = &mut places[at];
            let (rank, task, partners) = (Rank(*first + at as u32), &tasks[at], &partners[at]);
            let Some(end) = end.latest(rank) else { continue };
            loop {
                place.take_plain(rank, end, task, partners, window);
                let Some(start) = place.start(task).filter(|&start| start <= end) else { break };
                if let Some(record) = place.take(rank, start, task, partners, shared) {
                    window.push(&record);
                }
            }
        }
    }
}

impl Place {
    /// When the next record's turn comes; `None` behind the last.
    #[inline(always)]
    fn start(&self, task: &Task) -> Option<u64> {
        self.records.start(&task.records).map(|start| self.on_clock_of_all(start))
    }

    #[inline(always)]
    fn on_clock_of_all(&self, start: u64) -> u64 {
        start.saturating_add(self.later).saturating_sub(self.earlier)
    }

    /// Looks at what the next records need, which is long out of the cache: all of it comes at once then, not one after
    /// the other.
    #[inline]
    fn fetch(&self, task: &Task, partners: &Partners) {
        let sent = self.messages as usize;
        let received = self.records.receive() as usize;
        let lines = task.receives.number_at(received)
            ^ task.sends.number_at(sent)
            ^ partners.messages.get(received).copied().unwrap_or_default()
            ^ partners.fates.get(sent).map_or(0, |&fate| fate as u32)
            ^ self.records.fetch(&task.records);
        black_box(lines);
    }

    /// Adds the next records up to `end` inclusive, as [`Place::take`] has them, as far as there is nothing to say of them
    /// but what is said of nearly all.
    #[inline(always)]
    fn take_plain(&mut self, rank: Rank, end: u64, task: &Task, partners: &Partners, window: &mut Window) {
        if !self.threads[0].anchored || self.threads[0].inherited.is_some() {
            return;
        }
        let (mut records, mut messages) = (self.records, self.messages);
        while let Some(plain) = records.plain(&task.records) {
            let start = self.on_clock_of_all(plain.start);
            if start > end {
                break;
            }
            let link = match plain.receive {
                None => Link::SENT,
                Some(receive) => match (partners.messages[receive as usize], task.receives.of(receive)) {
                    (NONE, _) | (_, None) => break,
                    (message, Some(channel)) => Link::received(channel.peer, message),
                },
            };
            let form = match plain.bytes {
                None => Form::mark(rank),
                Some(bytes) => match (partners.fates[messages as usize], task.sends.of(messages)) {
                    (Fate::Dropped, _) | (_, None) => break,
                    (fate, Some(channel)) => {
                        messages += 1;
                        Form::message(messages - 1, channel.peer, bytes, fate)
                    }
                },
            };
            window.add(rank, start, plain.time, link, form);
            records.pass(&plain);
        }
        (self.records, self.messages) = (records, messages);
    }

    /// The next record, which began at `start`; `None`: it is dropped.
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
        // What it waits for, and whether that is what stands just before, which may have been dropped.
        let (awaits, bequeathed) = match record.after {
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
            Some((awaits, since)) if bequeathed => (awaits, start.saturating_sub(since)),
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

    /// The place of a thread in [`Place::threads`].
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

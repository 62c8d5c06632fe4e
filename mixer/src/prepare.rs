//! Resolves partners in the records of some tasks, window by window, so that only ids are missing. Drops records that are
//! not in the trace; the next record takes over the dependency of a dropped one.

use crate::agreement::Operations;
use crate::index::{CollectiveIndex, MessageIndex, OperationIndex};
use crate::matching::Partners;
use crate::order::End;
use crate::prepared::{HAS_DEPENDENT, MessageRef, OperationRef, Prepared};
use crate::records::{After, Body, Cursor, Part, Record};
use crate::task::{Fate, Task};
use crate::window::Window;
use std::collections::VecDeque;
use vef_format::ids::Rank;
use vef_format::operation::{OpCode, OpCodes, Operation};
use vef_format::prefetch::prefetch;
use vef_format::raw::{AWAITED, COLLECTIVE, MARK, MESSAGE, Raw};

/// Data common to all tasks.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    /// Operations of each communicator.
    operations: &'a [Operations],
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

    /// Whether the trace has an operation.
    pub(crate) fn has(&self, OperationRef { comm, operation }: OperationRef) -> bool {
        self.operations.get(comm.index()).is_some_and(|operations| operations.has(operation))
    }
}

/// Prepares the records of some tasks, window by window.
#[derive(Debug)]
pub(crate) struct Preparer<'a> {
    /// The first task.
    first: u32,
    shared: &'a Shared<'a>,
    tasks: Vec<TaskCursor<'a>>,
}

/// How many tasks ahead their next records are prefetched.
const AHEAD: usize = 4;

/// Position in a task's records: few cache lines, because a window has few records of each of many tasks.
#[derive(Debug)]
struct TaskCursor<'a> {
    records: Cursor<'a>,
    /// The partners, here because a pointer to them would be one more cache miss.
    senders: &'a [MessageRef],
    receivers: &'a [Rank],
    fates: &'a [Fate],
    task: &'a Task,
    /// Conversion to the common clock: to be added.
    shift: i64,
    next_message: MessageIndex,
    /// The threads seen so far; at least one.
    threads: Vec<ThreadState>,
    collectives: Box<Collectives>,
}

/// The collectives of a task so far.
#[derive(Debug)]
struct Collectives {
    /// Each of the task's communicators, and the next operation on it.
    next: Vec<OperationRef>,
    /// The recent collectives, and the index of the first of them.
    recent: VecDeque<OperationRef>,
    recent_first: CollectiveIndex,
}

/// Code of a dependency, and [`Raw::after`] of a [`Prepared`] record.
type Dependency = (u8, u64);

/// State of a thread.
#[derive(Debug, Default)]
struct ThreadState {
    number: u16,
    /// Whether a message or mark of the thread is in the trace.
    anchored: bool,
    /// Dependency and computing time of the records that were dropped just before.
    inherited: Option<(Dependency, u64)>,
}

impl<'a> Preparer<'a> {
    /// Begins before the first record of `tasks`, the first of which is `first`; `shifts` convert their clocks.
    pub(crate) fn new(
        first: Rank,
        tasks: &'a [(Task, Partners)],
        shifts: &[i64],
        shared: &'a Shared<'a>,
    ) -> Self {
        let next = |comm| OperationRef { comm, operation: OperationIndex(0) };
        let cursor = |((task, partners), &shift): (&'a (Task, Partners), &i64)| TaskCursor {
            records: Cursor::new(&task.records),
            senders: &partners.senders,
            receivers: &partners.receivers,
            fates: &partners.fates,
            task,
            shift,
            next_message: MessageIndex(0),
            threads: vec![ThreadState::default()],
            collectives: Box::new(Collectives {
                next: task.calls.iter().map(|calls| next(calls.comm)).collect(),
                recent: VecDeque::new(),
                recent_first: CollectiveIndex(0),
            }),
        };
        Self { first: first.0, shared, tasks: tasks.iter().zip(shifts).map(cursor).collect() }
    }

    /// Adds the records of the window that ends at `end`.
    pub(crate) fn fill(&mut self, end: End, window: &mut Window) {
        let Self { first, shared, tasks } = self;
        for at in 0..tasks.len() {
            prefetch(tasks, at + 2 * AHEAD);
            if let Some(ahead) = tasks.get(at + AHEAD) {
                ahead.prefetch();
            }
            let cursor = &mut tasks[at];
            let rank = Rank(*first + at as u32);
            let threads = cursor.task.records.has_threads();
            let Some(latest) = end.latest(rank).and_then(|end| cursor.on_clock_of_task(end)) else {
                continue;
            };
            let mut records = cursor.records;
            while let Some((start, record)) = records.next(latest) {
                let begun = Prepared {
                    raw: Raw { time: record.time, to: rank.0, tag: MARK, ..Raw::NOTHING },
                    start: start.saturating_add_signed(cursor.shift),
                    task: rank,
                    thread: threads.then_some(record.thread),
                };
                window.push_if(begun, |prepared| cursor.prepare(&record, shared, prepared));
            }
            cursor.records = records;
        }
    }
}

impl TaskCursor<'_> {
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
        prefetch(self.senders, self.records.next_receive().index());
        prefetch(self.receivers, self.next_message.index());
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
        let mut dependency = match record.after {
            After::Start => (0, 0),
            After::Sent => anchor,
            After::Received(receive) => {
                follows_previous = false;
                let sender = self.senders[receive.index()];
                if sender.message == MessageIndex::NONE { anchor } else { (2, sender.pack()) }
            }
            After::Collective(number) => {
                let in_trace = self.collectives.get(number).filter(|&operation| shared.has(operation));
                follows_previous = in_trace.is_none();
                in_trace.map_or(anchor, |operation| (3, operation.pack()))
            }
        };
        if let Some((inherited, computed)) = thread.inherited.take()
            && follows_previous
        {
            (dependency, raw.time) = (inherited, raw.time.saturating_add(computed));
        }
        let code;
        (code, raw.after) = dependency;
        raw.tag |= code;
        let is_kept = match record.body {
            Body::Mark => {
                thread.anchored = true;
                true
            }
            Body::Message(bytes) => {
                let message = self.next_message;
                self.next_message.0 += 1;
                let fate = self.fates.get(message.index()).copied().unwrap_or(Fate::HasDependent);
                raw.tag |= if fate == Fate::Unawaited { MESSAGE } else { MESSAGE | AWAITED };
                raw.id = u64::from(message.0) | if fate == Fate::HasDependent { HAS_DEPENDENT } else { 0 };
                (raw.to, raw.bytes) = (self.receivers[message.index()].0, bytes.0);
                thread.anchored |= fate != Fate::Dropped;
                fate != Fate::Dropped
            }
            Body::Collective(part) => {
                let Part { slot, operation, amounts } = *self.task.records.part(part);
                let called = self.collectives.call(slot, self.task.reach);
                raw.tag |= COLLECTIVE;
                (raw.id, raw.to) = (called.operation.0.into(), called.comm.0);
                (raw.op, raw.bytes, raw.recv) =
                    (shared.codes[operation as usize].0, amounts.send.0, amounts.recv.0);
                shared.has(called)
            }
        };
        if !is_kept {
            thread.inherited = Some((dependency, raw.time));
        }
        is_kept
    }

    /// Index of a thread in [`TaskCursor::threads`].
    fn thread(&mut self, number: u16) -> usize {
        let known = self.threads.iter().position(|thread| thread.number == number);
        known.unwrap_or_else(|| {
            self.threads.push(ThreadState { number, ..ThreadState::default() });
            self.threads.len() - 1
        })
    }
}

impl Collectives {
    /// A recent collective of the task.
    fn get(&self, number: CollectiveIndex) -> Option<OperationRef> {
        self.recent.get(number.0.wrapping_sub(self.recent_first.0) as usize).copied()
    }

    /// The task's next collective, on the communicator `slot`. Of the recent ones, `reach` are kept.
    fn call(&mut self, slot: u32, reach: u32) -> OperationRef {
        let next = &mut self.next[slot as usize];
        let called = *next;
        next.operation.0 += 1;
        self.recent.push_back(called);
        if self.recent.len() > reach as usize {
            self.recent.pop_front();
            self.recent_first.0 += 1;
        }
        called
    }
}

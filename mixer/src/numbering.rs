//! Assigns ids to prepared records in the order of the lines, and replaces references by ids.
//!
//! A task whose next record depends on a message without a line is *parked*. The line of that message wakes the task,
//! whose deferred records are written then. So every line stands behind the lines that it depends on, even if clocks
//! disagree, at constant cost a record. Tasks that are still parked at the end wait for each other in a circle.
//!
//! The records of a task with several threads are one sequence, which orders more than the program did. In a trace with
//! such tasks, a record also waits for the lines of all members of the collective that it depends on, and if all tasks
//! wait for each other, a thread's record may overtake those of other threads of its task ([`Numbering::overtake`]). So
//! the sequence blocks no replay, whatever its message times and collective algorithms.

use crate::communicators::InTrace;
use crate::error::{MixError, Waiting};
use crate::index::{LineId, MessageIndex, Slot};
use crate::prepared::{HAS_DEPENDENT, MessageRef, OperationRef, Prepared};
use crate::thread_notes::Sequences;
use crate::window::Window;
use hashbrown::HashMap;
use std::collections::VecDeque;
use vef_format::ids::Rank;
use vef_format::prefetch::prefetch;

/// Assigns ids, record by record.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    tasks: Vec<TaskState>,
    /// The deferred records of each parked task.
    deferred: Vec<VecDeque<Prepared>>,
    /// Ids of messages that came later than those behind them, which only records of several threads do.
    late: HashMap<MessageRef, LineId>,
    /// The operations of each communicator.
    operations: Vec<Operations>,
    /// Whether some task has several threads.
    threaded: bool,
    /// Tasks that did not call `MPI_Finalize`.
    killed: Vec<Rank>,
    /// Of tasks with several threads: each thread's latest message or mark.
    anchors: HashMap<(Rank, u16), LineId>,
    /// The tasks parked for an operation.
    waiting: HashMap<OperationRef, Vec<Rank>>,
    /// Number of deferred records.
    deferred_count: usize,
    next_message: LineId,
    next_collective: LineId,
    awake: VecDeque<Rank>,
    /// Messages that were received before they were sent, by the clocks.
    pub(crate) early: u64,
    /// The records so far of tasks with several threads, if their notes are to be placed.
    pub(crate) sequences: Option<Sequences>,
}

/// The operations of a communicator.
#[derive(Debug)]
struct Operations {
    in_trace: InTrace,
    ids: Vec<LineId>,
    /// Number of lines of each, in traces with several threads a task.
    lines: Vec<u32>,
}

/// What a record depends on that has no line yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Message(MessageRef),
    /// Lines of some members of an operation.
    Operation(OperationRef),
}

/// Number of deferred records from which records may overtake others before the last window.
const MANY: usize = 1 << 20;

/// How many records ahead a record is prefetched.
const AHEAD: usize = 8;

/// State of a task.
#[derive(Debug)]
struct TaskState {
    /// The latest message or mark; [`LineId::NONE`]: none.
    anchor: LineId,
    /// What the next record lacks, of a parked task.
    parked: Option<Missing>,
    /// Number of records with a line.
    taken: u32,
    /// End of the call that received the message the task is parked for, on the common clock.
    received_at: u64,
    /// Start of the record with the latest line.
    began: u64,
    sent: SentIds,
}

/// Ids of those messages of a task that a record will depend on and none has taken: a ring, with message n at index n
/// modulo the length, a power of two.
#[derive(Debug, Default)]
struct SentIds {
    /// All messages before `first` are taken, or late.
    first: u32,
    /// [`LineId::NONE`]: taken, or without a line, or no record depends on it.
    ids: Vec<LineId>,
}

impl SentIds {
    /// The id of `message`; `None`: outside of the ring.
    #[inline(always)]
    fn get(&mut self, message: MessageIndex) -> Option<&mut LineId> {
        let in_ring = (message.0.wrapping_sub(self.first) as usize) < self.ids.len();
        let at = message.index() & self.ids.len().wrapping_sub(1);
        if in_ring { self.ids.get_mut(at) } else { None }
    }

    /// Makes room for `message`, which is behind the ring: drops taken messages from the front, and grows the ring if that does
    /// not suffice.
    #[cold]
    fn make_room(&mut self, message: MessageIndex) {
        let ring = self.first..self.first + self.ids.len() as u32;
        let mask = self.ids.len().wrapping_sub(1);
        let mut kept = ring.skip_while(|&number| self.ids[number as usize & mask] == LineId::NONE);
        self.first = kept.clone().next().unwrap_or(message.0);
        let needed = (message.0 - self.first) as usize + 1;
        if needed > self.ids.len() {
            let mut wider = vec![LineId::NONE; needed.next_power_of_two().max(16)];
            let wider_mask = wider.len() - 1;
            kept.by_ref().for_each(|number| {
                wider[number as usize & wider_mask] = self.ids[number as usize & mask];
            });
            self.ids = wider;
        }
    }
}

impl Operations {
    /// Whether all members have their line of the operation.
    fn is_complete(&self, OperationRef { operation, .. }: OperationRef) -> bool {
        self.lines.get(operation.index()) == Some(&self.in_trace.members)
    }
}

impl Numbering {
    /// Begins a trace of `tasks` tasks, some of which have several threads if `threaded`, with these `communicators`.
    pub(crate) fn new(tasks: u32, communicators: &[InTrace], threaded: bool, killed: &[Rank]) -> Self {
        let task = |_| TaskState {
            anchor: LineId::NONE,
            parked: None,
            taken: 0,
            received_at: 0,
            began: 0,
            sent: SentIds::default(),
        };
        let operations = |&in_trace| Operations { in_trace, ids: Vec::new(), lines: Vec::new() };
        Self {
            tasks: (0..tasks).map(task).collect(),
            deferred: vec![VecDeque::new(); tasks as usize],
            operations: communicators.iter().map(operations).collect(),
            threaded,
            killed: killed.to_vec(),
            ..Self::default()
        }
    }

    /// Numbers the records of `window` in the order of `slots`, and makes them its lines. No window follows the `last`.
    pub(crate) fn take(
        &mut self,
        window: &mut Window,
        slots: impl Iterator<Item = Slot> + Clone,
        last: bool,
    ) {
        let mut ahead = slots.clone();
        ahead.nth(AHEAD - 1);
        for slot in slots {
            if let Some(slot) = ahead.next() {
                prefetch(&window.records, slot.index());
            }
            if let Err(missing) = self.number_in_turn(slot, window) {
                self.defer(slot, window, missing);
            }
            if !self.awake.is_empty() {
                self.catch_up_all(window);
            }
        }
        if last {
            while self.deferred_count > 0 && (self.overtake(window) || self.ignore_missing_lines(window)) {}
        }
    }

    /// After the last window: an error if records have no line.
    pub(crate) fn finish(&self) -> Result<(), MixError> {
        match self.tasks.iter().position(|task| task.parked.is_some()) {
            None => Ok(()),
            Some(first) => Err(MixError::Circle(self.circle(Rank(first as u32)))),
        }
    }

    /// Numbers the next record of a task; the error is the missing dependency.
    #[inline(always)]
    fn number_in_turn(&mut self, slot: Slot, window: &mut Window) -> Result<(), Missing> {
        let record = &window.records[slot.index()];
        if let Some(missing) = self.tasks[record.task.index()].parked {
            return Err(missing);
        }
        if self.threaded && record.raw.dependency_code() == 3 {
            let operation = OperationRef::unpack(record.raw.after);
            if !self.operations[operation.comm.index()].is_complete(operation) {
                return Err(Missing::Operation(operation));
            }
        }
        self.number(slot, window)
    }

    /// Like [`Numbering::number_in_turn`], but the task is not parked and missing lines of the operation are ignored.
    #[inline(always)]
    fn number(&mut self, slot: Slot, window: &mut Window) -> Result<(), Missing> {
        let Prepared { raw, start, task, thread } = &mut window.records[slot.index()];
        let (start, task, thread) = (*start, *task, *thread);
        let after = match raw.dependency_code() {
            0 => LineId(0),
            1 => match thread {
                None => self.tasks[task.index()].anchor,
                Some(thread) => self.anchors.get(&(task, thread)).copied().unwrap_or(LineId::NONE),
            },
            2 => {
                let message = MessageRef::unpack(raw.after);
                self.take_id(message).ok_or(Missing::Message(message))?
            }
            // The task's own line came before, so the operation has an id.
            _ => self.operation(OperationRef::unpack(raw.after)),
        };
        raw.after = after.0.into();
        let state = &mut self.tasks[task.index()];
        if let Some(thread) = thread {
            // The time counts from the later of the record in front, of any thread, and the thread's previous event.
            let most = if state.taken > 0 { start.saturating_sub(state.began) } else { raw.time };
            let lost = raw.time.saturating_sub(most);
            raw.time -= lost;
            if let Some(sequences) = &mut self.sequences {
                sequences.add(task, thread, lost, start);
            }
        }
        state.taken += 1;
        state.began = start;
        if raw.is_collective() {
            let operation = OperationRef::of(raw);
            raw.id = self.operation(operation).0.into();
            raw.to = self.operations[operation.comm.index()].in_trace.id.0;
            if self.threaded {
                self.count_line(operation);
            }
        } else {
            let (index, id) = (raw.id, self.next_message);
            self.next_message.0 += 1;
            raw.id = id.0.into();
            match thread {
                None => state.anchor = id,
                Some(thread) => drop(self.anchors.insert((task, thread), id)),
            }
            if index & HAS_DEPENDENT != 0 {
                let message = MessageRef { source: task, message: MessageIndex(index as u32) };
                self.add_id(message, id);
                let receiver = &self.tasks[raw.to as usize];
                if receiver.parked == Some(Missing::Message(message)) {
                    self.awake.push_back(Rank(raw.to));
                    self.early += u64::from(receiver.received_at < start);
                }
            }
        }
        window.lines.push(slot.0);
        Ok(())
    }

    /// Keeps the id of a message for the record that depends on it.
    #[inline(always)]
    fn add_id(&mut self, at: MessageRef, id: LineId) {
        match self.tasks[at.source.index()].sent.get(at.message) {
            Some(place) => *place = id,
            None => self.add_id_outside(at, id),
        }
    }

    /// [`Numbering::add_id`] outside of the ring.
    #[cold]
    fn add_id_outside(&mut self, at: MessageRef, id: LineId) {
        let sent = &mut self.tasks[at.source.index()].sent;
        if at.message.0 < sent.first {
            self.late.insert(at, id);
        } else {
            sent.make_room(at.message);
            self.add_id(at, id);
        }
    }

    /// The id of a message, if it has a line. Each id is taken once.
    #[inline(always)]
    fn take_id(&mut self, at: MessageRef) -> Option<LineId> {
        let id = self.tasks[at.source.index()].sent.get(at.message);
        let id = id.map_or(LineId::NONE, |id| std::mem::replace(id, LineId::NONE));
        if id == LineId::NONE { self.late.remove(&at) } else { Some(id) }
    }

    /// The id of an operation, assigned at its first line. Each member's lines come in the order of the operations, so none is
    /// skipped.
    #[inline]
    fn operation(&mut self, OperationRef { comm, operation }: OperationRef) -> LineId {
        let ids = &mut self.operations[comm.index()].ids;
        if operation.index() >= ids.len() {
            ids.push(self.next_collective);
            self.next_collective.0 += 1;
        }
        ids.get(operation.index()).copied().unwrap_or(LineId::NONE)
    }

    /// Counts a line of an operation; the last one wakes the tasks that wait for it.
    #[cold]
    fn count_line(&mut self, operation: OperationRef) {
        let operations = &mut self.operations[operation.comm.index()];
        operations.lines.resize(operations.ids.len(), 0);
        operations.lines[operation.operation.index()] += 1;
        if operations.is_complete(operation)
            && let Some(tasks) = self.waiting.remove(&operation)
        {
            let still = |task: &Rank| self.tasks[task.index()].parked == Some(Missing::Operation(operation));
            self.awake.extend(tasks.into_iter().filter(still));
        }
    }

    /// Keeps a record that cannot have its line yet, and parks its task.
    #[cold]
    fn defer(&mut self, slot: Slot, window: &mut Window, missing: Missing) {
        let record = window.records[slot.index()];
        self.deferred[record.task.index()].push_back(record);
        self.deferred_count += 1;
        if self.tasks[record.task.index()].parked.is_none() {
            self.park(&record, missing);
        }
        if self.threaded && self.deferred_count.is_multiple_of(MANY) {
            self.overtake(window);
        }
    }

    /// Parks the task of a record.
    fn park(&mut self, record: &Prepared, missing: Missing) {
        let state = &mut self.tasks[record.task.index()];
        state.parked = Some(missing);
        if let Missing::Operation(operation) = missing {
            self.waiting.entry(operation).or_default().push(record.task);
        }
        // The further marks of one call begin at its start, before any of its messages arrived.
        let same_call = record.raw.time == 0 && record.start == state.began;
        state.received_at = if same_call { u64::MAX } else { record.start.saturating_sub(record.raw.time) };
    }

    #[cold]
    fn catch_up_all(&mut self, window: &mut Window) {
        while let Some(woken) = self.awake.pop_front() {
            self.catch_up(woken, window);
        }
    }

    /// Writes the deferred records of a task until it is parked again.
    fn catch_up(&mut self, task: Rank, window: &mut Window) {
        self.tasks[task.index()].parked = None;
        while let Some(&deferred) = self.deferred[task.index()].front() {
            // The record may have come with an earlier window.
            let slot = window.push(deferred);
            if let Err(missing) = self.number_in_turn(slot, window) {
                return self.park(&deferred, missing);
            }
            self.deferred[task.index()].pop_front();
            self.deferred_count -= 1;
        }
    }

    /// Writes one deferred record before others of its task; returns `false` if none may be. The record is the earliest that
    /// is the first of its thread and whose dependency has its line.
    #[cold]
    fn overtake(&mut self, window: &mut Window) -> bool {
        let mut first: Option<(u64, Rank, usize)> = None;
        for task in (0..self.deferred.len() as u32).map(Rank) {
            let (mut waiting, mut called) = (Vec::new(), Vec::new());
            // The last record may be MPI_Finalize, which must stay last.
            let finalizes = usize::from(!self.killed.contains(&task));
            for at in 0..self.deferred[task.index()].len().saturating_sub(finalizes) {
                let record = self.deferred[task.index()][at];
                let Some(thread) = record.thread else { break };
                if first.is_some_and(|(start, ..)| start <= record.start) {
                    break;
                }
                // MPI requires one order of all calls on a communicator, whatever their threads.
                let comm = record.raw.is_collective().then_some(record.raw.to);
                let in_turn = comm.is_none_or(|comm| !called.contains(&comm));
                if in_turn && !waiting.contains(&thread) && self.is_ready(&record) {
                    first = Some((record.start, task, at));
                    break;
                }
                waiting.push(thread);
                called.extend(comm);
            }
        }
        let Some((_, task, at)) = first else { return false };
        self.write_deferred(task, at, window);
        self.catch_up_all(window);
        true
    }

    /// Writes the earliest record that waits for an operation although lines of the operation are missing; returns `false` if
    /// there is none. The program relied on a member that left a collective early. Its own dependency has its line.
    #[cold]
    fn ignore_missing_lines(&mut self, window: &mut Window) -> bool {
        let on_operation =
            |task: &Rank| matches!(self.tasks[task.index()].parked, Some(Missing::Operation(_)));
        let start = |task: &Rank| self.deferred[task.index()].front().map(|record| record.start);
        let waiting = (0..self.tasks.len() as u32).map(Rank).filter(on_operation);
        let Some(task) = waiting.min_by_key(start) else { return false };
        self.write_deferred(task, 0, window);
        self.catch_up(task, window);
        self.catch_up_all(window);
        true
    }

    /// Writes a deferred record.
    fn write_deferred(&mut self, task: Rank, at: usize, window: &mut Window) {
        let Some(record) = self.deferred[task.index()].remove(at) else { return };
        self.deferred_count -= 1;
        let slot = window.push(record);
        // The record depends on no message without a line, so numbering cannot fail.
        let _ = self.number(slot, window);
    }

    /// Whether the dependency of a record has its line.
    fn is_ready(&mut self, record: &Prepared) -> bool {
        match record.raw.dependency_code() {
            0 | 1 => true,
            2 => {
                let at = MessageRef::unpack(record.raw.after);
                let id = self.tasks[at.source.index()].sent.get(at.message);
                id.is_some_and(|id| *id != LineId::NONE) || self.late.contains_key(&at)
            }
            _ => {
                let operation = OperationRef::unpack(record.raw.after);
                self.operations[operation.comm.index()].is_complete(operation)
            }
        }
    }

    /// The circle of parked tasks that is reached from `first`.
    #[cold]
    fn circle(&self, first: Rank) -> Vec<Waiting> {
        let waiting = |task: Rank| {
            let state = &self.tasks[task.index()];
            let Missing::Message(MessageRef { source, message }) = state.parked? else { return None };
            Some(Waiting { task, record: state.taken.into(), source, message: message.0.into() })
        };
        let mut seen = vec![usize::MAX; self.tasks.len()];
        let mut links: Vec<Waiting> = Vec::new();
        let mut at = Some(first);
        while let Some(link) = at.and_then(waiting) {
            let task = link.task.index();
            if seen[task] != usize::MAX {
                return links.split_off(seen[task]);
            }
            seen[task] = links.len();
            at = Some(link.source);
            links.push(link);
        }
        links
    }
}

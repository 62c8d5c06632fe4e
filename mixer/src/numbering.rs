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

use crate::channels::NONE;
use crate::error::{MixError, Waiting};
use crate::prepared::{EXPECTED, Prepared, split};
use crate::thread_notes::Sequence;
use crate::window::Window;
use hashbrown::HashMap;
use std::collections::VecDeque;
use vef_format::ids::{CommId, Rank};
use vef_format::prefetch::prefetch;

/// A communicator in the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced {
    /// Its id in the trace.
    pub(crate) id: CommId,
    /// Number of members.
    pub(crate) members: u32,
}

/// Assigns ids, record by record.
#[derive(Debug)]
pub(crate) struct Numbering {
    turns: Vec<Turn>,
    /// The deferred records of each parked task.
    deferred: Vec<VecDeque<Prepared>>,
    /// Ids of each task's messages that a record will depend on.
    sent: Vec<Sent>,
    /// The same for tasks with several threads, by task and message index: indices need not ascend there.
    sent_by_threads: HashMap<(u32, u32), u32>,
    /// The operations of each communicator.
    operations: Vec<Operations>,
    /// Whether some task has several threads.
    threaded: bool,
    /// Tasks that did not call `MPI_Finalize`.
    killed: Vec<Rank>,
    /// Of tasks with several threads: each thread's latest message or mark.
    anchors: HashMap<(u32, u16), u32>,
    /// The tasks parked for an operation, by communicator and position.
    waiting: HashMap<(u32, u32), Vec<u32>>,
    /// Number of deferred records.
    deferred_count: usize,
    next_message: u32,
    next_collective: u32,
    awake: VecDeque<u32>,
    /// Messages that were received before they were sent, by the clocks.
    pub(crate) early: u64,
    /// Of tasks with several threads: their records so far, if notes are to be placed.
    pub(crate) sequences: Option<HashMap<Rank, Sequence>>,
}

#[derive(Debug)]
struct Operations {
    traced: Traced,
    /// By position.
    ids: Vec<u32>,
    /// Number of lines of each, in traces with several threads a task.
    lines: Vec<u32>,
}

/// What a record depends on that has no line yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// A message: sending task, and index there.
    Message(u32, u32),
    /// Lines of some members of an operation: communicator and position.
    Operation(u32, u32),
}

/// Number of deferred records from which records may overtake others before the last window.
const MANY: usize = 1 << 20;

/// How many records ahead a record is prefetched.
const AHEAD: usize = 8;

/// State of a task.
#[derive(Debug)]
struct Turn {
    /// Id of the latest message or mark; [`NONE`]: none.
    anchor: u32,
    /// What the next record lacks, of a parked task.
    parked: Option<Missing>,
    /// Number of records with a line.
    taken: u32,
    /// End of the call that received the message the task is parked for, on the common clock.
    received: u64,
    /// Start of the record with the latest line.
    began: u64,
}

/// Ids of those messages of a task that a record will depend on and none has taken: a ring, with message n at index n
/// modulo the length, a power of two.
#[derive(Debug, Default)]
struct Sent {
    /// All messages before `first` are taken; those from `end` on have no line.
    first: u32,
    end: u32,
    /// [`NONE`]: taken, or no record depends on it.
    ids: Vec<u32>,
}

impl Sent {
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & self.ids.len().wrapping_sub(1)
    }

    /// Sets the id of message `number`, which is higher than all before.
    #[inline(always)]
    fn add(&mut self, number: u32, id: u32) {
        if (number - self.first) as usize >= self.ids.len() {
            self.make_room(number);
        }
        let place = self.place(number);
        self.ids[place] = id;
        self.end = number + 1;
    }

    /// Drops taken messages from the front; grows the ring if that does not suffice.
    #[cold]
    fn make_room(&mut self, number: u32) {
        while self.first < self.end && self.ids[self.place(self.first)] == NONE {
            self.first += 1;
        }
        if self.first == self.end {
            self.first = number;
        }
        let needed = (number - self.first) as usize + 1;
        if needed > self.ids.len() {
            let mut wider = Self { ids: vec![NONE; needed.next_power_of_two().max(16)], ..*self };
            for number in self.first..self.end {
                let place = wider.place(number);
                wider.ids[place] = self.ids[self.place(number)];
            }
            *self = wider;
        }
    }

    /// The id of message `number`, if it has a line. Each id is taken once.
    #[inline(always)]
    fn take(&mut self, number: u32) -> Option<u32> {
        if number >= self.end {
            return None;
        }
        let place = self.place(number);
        Some(std::mem::replace(self.ids.get_mut(place)?, NONE))
    }
}

impl Operations {
    fn new(traced: Traced) -> Self {
        Self { traced, ids: Vec::new(), lines: Vec::new() }
    }

    /// Whether all members have their line of the operation.
    fn is_complete(&self, position: u32) -> bool {
        self.lines.get(position as usize) == Some(&self.traced.members)
    }
}

impl Numbering {
    /// Begins a trace of `tasks` tasks, some of which have several threads if `threaded`. `traced` is by identity.
    pub(crate) fn new(tasks: u32, traced: &[Traced], threaded: bool, killed: &[Rank]) -> Self {
        let turn = |_| Turn { anchor: NONE, parked: None, taken: 0, received: 0, began: 0 };
        Self {
            turns: (0..tasks).map(turn).collect(),
            deferred: (0..tasks).map(|_| VecDeque::new()).collect(),
            sent: (0..tasks).map(|_| Sent::default()).collect(),
            sent_by_threads: HashMap::new(),
            operations: traced.iter().map(|&traced| Operations::new(traced)).collect(),
            threaded,
            killed: killed.to_vec(),
            anchors: HashMap::new(),
            waiting: HashMap::new(),
            deferred_count: 0,
            next_message: 0,
            next_collective: 0,
            awake: VecDeque::new(),
            early: 0,
            sequences: None,
        }
    }

    /// Numbers the records of `window` in the order of `places`, and makes them its lines. No window follows the `last`.
    pub(crate) fn take(
        &mut self,
        window: &mut Window,
        places: impl Iterator<Item = usize> + Clone,
        last: bool,
    ) {
        if !self.threaded {
            return self.take_all::<false>(window, places);
        }
        self.take_all::<true>(window, places);
        if last {
            while self.deferred_count > 0 && (self.overtake(window) || self.ignore_missing_lines(window)) {}
        }
    }

    /// [`Numbering::take`] with (`THREADED`) or without tasks with several threads.
    fn take_all<const THREADED: bool>(
        &mut self,
        window: &mut Window,
        places: impl Iterator<Item = usize> + Clone,
    ) {
        let mut ahead = places.clone();
        ahead.nth(AHEAD - 1);
        for place in places {
            if let Some(place) = ahead.next() {
                prefetch(&window.records, place);
            }
            if let Err(missing) = self.turn::<THREADED>(place, window) {
                self.defer(place, window, missing);
            }
            if !self.awake.is_empty() {
                self.catch_up_all(window);
            }
        }
    }

    #[cold]
    fn catch_up_all(&mut self, window: &mut Window) {
        while let Some(woken) = self.awake.pop_front() {
            self.catch_up(woken, window);
        }
    }

    /// After the last window: an error if records have no line.
    pub(crate) fn finish(&self) -> Result<(), MixError> {
        match self.turns.iter().position(|turn| turn.parked.is_some()) {
            None => Ok(()),
            Some(first) => Err(MixError::Circle(self.circle(first))),
        }
    }

    /// Writes the deferred records of a task until it is parked again.
    #[cold]
    fn catch_up(&mut self, rank: u32, window: &mut Window) {
        self.turns[rank as usize].parked = None;
        while let Some(&deferred) = self.deferred[rank as usize].front() {
            // The record may have come with an earlier window.
            let place = window.push(deferred);
            let line = match self.threaded {
                false => self.turn::<false>(place, window),
                true => self.turn::<true>(place, window),
            };
            if let Err(missing) = line {
                return self.park(place, window, missing);
            }
            self.deferred[rank as usize].pop_front();
            self.deferred_count -= 1;
        }
    }

    /// Keeps a record that cannot have its line yet, and parks its task.
    #[cold]
    fn defer(&mut self, place: usize, window: &mut Window, missing: Missing) {
        let deferred = window.records[place];
        let rank = deferred.task.index();
        self.deferred[rank].push_back(deferred);
        self.deferred_count += 1;
        if self.turns[rank].parked.is_none() {
            self.park(place, window, missing);
        }
        if self.threaded && self.deferred_count.is_multiple_of(MANY) {
            self.overtake(window);
        }
    }

    /// Writes one deferred record before others of its task; returns `false` if none may be. The record is the earliest that
    /// is the first of its thread and whose dependency has its line.
    #[cold]
    fn overtake(&mut self, window: &mut Window) -> bool {
        let mut first: Option<(u64, usize, usize)> = None;
        for (rank, behind) in self.deferred.iter().enumerate() {
            let (mut waiting, mut called) = (Vec::new(), Vec::new());
            // The last record may be MPI_Finalize, which must stay last.
            let ended = !self.killed.contains(&Rank(rank as u32));
            for (at, record) in
                behind.iter().enumerate().take(behind.len() - usize::from(ended).min(behind.len()))
            {
                let Some(thread) = record.thread else { break };
                if first.is_some_and(|(start, ..)| start <= record.start) {
                    break;
                }
                // MPI requires one order of all calls on a communicator, whatever their threads.
                let comm = record.raw.is_collective().then_some(record.raw.to);
                let in_turn = comm.is_none_or(|comm| !called.contains(&comm));
                if in_turn && !waiting.contains(&thread) && self.is_ready(record) {
                    first = Some((record.start, rank, at));
                    break;
                }
                waiting.push(thread);
                called.extend(comm);
            }
        }
        let Some((_, rank, at)) = first else { return false };
        self.write_deferred(rank, at, window);
        self.catch_up_all(window);
        true
    }

    /// Writes the earliest record that waits for an operation although lines of the operation are missing; returns `false` if
    /// there is none. The program relied on a member that left a collective early. Its own dependency has its line.
    #[cold]
    fn ignore_missing_lines(&mut self, window: &mut Window) -> bool {
        let on_operation = |rank: &usize| matches!(self.turns[*rank].parked, Some(Missing::Operation(..)));
        let start = |rank: &usize| self.deferred[*rank].front().map(|record| record.start);
        let waiting = (0..self.turns.len()).filter(on_operation);
        let Some(rank) = waiting.min_by_key(start) else { return false };
        self.write_deferred(rank, 0, window);
        self.catch_up(rank as u32, window);
        self.catch_up_all(window);
        true
    }

    /// Writes a deferred record.
    fn write_deferred(&mut self, rank: usize, at: usize, window: &mut Window) {
        let Some(record) = self.deferred[rank].remove(at) else { return };
        self.deferred_count -= 1;
        let place = window.push(record);
        // The record depends on no message, so numbering cannot fail.
        let _ = self.number::<true>(place, window);
    }

    /// Whether the dependency of a record has its line.
    fn is_ready(&self, record: &Prepared) -> bool {
        let (at, number) = split(record.raw.after);
        match record.raw.dependency_code() {
            0 | 1 => true,
            2 => self.sent_by_threads.contains_key(&(at, number)),
            _ => self.operations[at as usize].is_complete(number),
        }
    }

    /// Parks the task of the record at `place`.
    #[cold]
    fn park(&mut self, place: usize, window: &Window, missing: Missing) {
        let record = &window.records[place];
        let turn = &mut self.turns[record.task.index()];
        turn.parked = Some(missing);
        if let Missing::Operation(comm, position) = missing {
            self.waiting.entry((comm, position)).or_default().push(record.task.0);
        }
        // The further marks of one call begin at its start, before any of its messages arrived.
        let same_call = record.raw.time == 0 && record.start == turn.began;
        turn.received = if same_call { u64::MAX } else { record.start.saturating_sub(record.raw.time) };
    }

    /// Numbers the next record of a task; the error is the missing dependency.
    #[inline(always)]
    fn turn<const THREADED: bool>(&mut self, place: usize, window: &mut Window) -> Result<(), Missing> {
        let record = &window.records[place];
        if let Some(missing) = self.turns[record.task.index()].parked {
            return Err(missing);
        }
        let (comm, position) = split(record.raw.after);
        if THREADED
            && record.raw.dependency_code() == 3
            && !self.operations[comm as usize].is_complete(position)
        {
            return Err(Missing::Operation(comm, position));
        }
        self.number::<THREADED>(place, window)
    }

    /// Like [`Numbering::turn`], but the task is not parked and missing lines of the operation are ignored.
    #[inline(always)]
    fn number<const THREADED: bool>(&mut self, place: usize, window: &mut Window) -> Result<(), Missing> {
        let Prepared { raw, start, task, thread } = &mut window.records[place];
        let (start, task, thread) = (*start, *task, if THREADED { *thread } else { None });
        let (at, number) = split(raw.after);
        raw.after = match raw.dependency_code() {
            0 => 0,
            1 => match thread {
                None => self.turns[task.index()].anchor.into(),
                Some(thread) => self.anchors.get(&(task.0, thread)).copied().unwrap_or(NONE).into(),
            },
            2 => {
                let id = match THREADED {
                    false => self.sent[at as usize].take(number),
                    true => self.sent_by_threads.remove(&(at, number)),
                };
                id.ok_or(Missing::Message(at, number))?.into()
            }
            // The task's own line came before, so the operation has an id.
            _ => self.operation(at, number).into(),
        };
        let turn = &mut self.turns[task.index()];
        // The time counts from the later of the record in front, of any thread, and the thread's previous event.
        if let Some(thread) = thread {
            let most = if turn.taken > 0 { start.saturating_sub(turn.began) } else { raw.time };
            let lost = raw.time.saturating_sub(most);
            raw.time -= lost;
            if let Some(sequences) = &mut self.sequences {
                sequences.entry(task).or_default().add(thread, lost);
            }
        }
        turn.taken += 1;
        turn.began = start;
        if raw.is_collective() {
            let (comm, position) = (raw.to, raw.id as u32);
            raw.id = self.operation(comm, position).into();
            if THREADED {
                self.count_line(comm, position);
            }
            raw.to = self.operations[comm as usize].traced.id.0;
        } else {
            let (number, own) = (raw.id, self.next_message);
            self.next_message += 1;
            raw.id = own.into();
            match thread {
                None => turn.anchor = own,
                Some(thread) => drop(self.anchors.insert((task.0, thread), own)),
            }
            if number & EXPECTED != 0 {
                let number = number as u32;
                match THREADED {
                    false => self.sent[task.index()].add(number, own),
                    true => drop(self.sent_by_threads.insert((task.0, number), own)),
                }
                let receiver = &self.turns[raw.to as usize];
                if receiver.parked == Some(Missing::Message(task.0, number)) {
                    self.awake.push_back(raw.to);
                    self.early += u64::from(receiver.received < start);
                }
            }
        }
        window.lines.push(place as u32);
        Ok(())
    }

    /// Counts a line of an operation; the last one wakes the tasks that wait for it.
    #[cold]
    fn count_line(&mut self, comm: u32, position: u32) {
        let operations = &mut self.operations[comm as usize];
        operations.lines.resize(operations.ids.len(), 0);
        operations.lines[position as usize] += 1;
        if operations.is_complete(position)
            && let Some(tasks) = self.waiting.remove(&(comm, position))
        {
            let still =
                |task: &u32| self.turns[*task as usize].parked == Some(Missing::Operation(comm, position));
            self.awake.extend(tasks.into_iter().filter(still));
        }
    }

    /// The id of an operation, assigned at its first line. Each member's lines come in the order of positions, so no position
    /// is skipped.
    #[inline]
    fn operation(&mut self, comm: u32, position: u32) -> u32 {
        let ids = &mut self.operations[comm as usize].ids;
        if position as usize >= ids.len() {
            ids.push(self.next_collective);
            self.next_collective += 1;
        }
        ids.get(position as usize).copied().unwrap_or(NONE)
    }

    /// The circle of parked tasks that is reached from `first`.
    #[cold]
    fn circle(&self, first: usize) -> Vec<Waiting> {
        let waiting = |rank: usize| {
            let Missing::Message(source, message) = self.turns[rank].parked? else { return None };
            let (task, record) = (Rank(rank as u32), self.turns[rank].taken.into());
            Some(Waiting { task, record, source: Rank(source), message: message.into() })
        };
        let mut seen = vec![usize::MAX; self.turns.len()];
        let mut links: Vec<Waiting> = Vec::new();
        let mut at = Some(first);
        while let Some(link) = at.and_then(waiting) {
            let rank = link.task.index();
            if seen[rank] != usize::MAX {
                return links.split_off(seen[rank]);
            }
            seen[rank] = links.len();
            at = Some(link.source.index());
            links.push(link);
        }
        links
    }
}

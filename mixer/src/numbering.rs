//! Numbers the lines of a trace: prepared records get ids in the order of the lines, and references become ids.
//!
//! A task whose turn has come but whose next record waits for a message that has no line yet is *parked*; the
//! line of that message wakes it, and it makes up for the turns it missed. So everything stands behind what it
//! depends on, even if clocks disagree, in constant time a record. If tasks stay parked at the end, their records
//! wait for each other in a circle.
//!
//! Where tasks have several threads, their records stand in one sequence, which orders more than the program did: then a record also waits
//! for all members' lines of the collective that it follows, and a thread whose record can have its line is let past
//! the others' of its task where all tasks would wait for each other otherwise. So whatever the algorithms and the times of a
//! replay are, the sequence holds nobody up for ever ([`Numbering::let_past`]).

use crate::channels::NONE;
use crate::error::{MixError, Waiting};
use crate::prepared::{Awaits, Prepared, What};
use crate::window::{Ids, Record, Role, Window};
use hashbrown::HashMap;
use std::collections::VecDeque;
use vef_format::ids::{CommId, Rank};

/// A communicator in the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced {
    /// Its number there.
    pub(crate) id: CommId,
    /// How many members it has.
    pub(crate) members: u32,
}

/// Numbers the lines turn by turn and turns references into the numbers of lines.
#[derive(Debug)]
pub(crate) struct Numbering {
    turns: Vec<Turn>,
    /// The records of parked tasks whose turn has come.
    behind: Vec<VecDeque<Prepared>>,
    /// The messages of each task that some record will wait for.
    sent: Vec<Sent>,
    /// The same where tasks have several threads, by task and index: one thread's messages may come before another's.
    sent_by_threads: HashMap<(u32, u32), u32>,
    /// The operations of each communicator.
    operations: Vec<Operations>,
    /// Whether some task has several threads.
    threaded: bool,
    /// The tasks that did not come to `MPI_Finalize`.
    killed: Vec<Rank>,
    /// Of tasks with several threads: the latest line of a message or mark of each thread.
    anchors: HashMap<(u32, u16), u32>,
    /// The tasks that wait for an operation.
    waiting: HashMap<(u32, u32), Vec<u32>>,
    /// How many records are behind.
    missed: usize,
    next_message: u32,
    next_collective: u32,
    awake: VecDeque<u32>,
    /// Messages that, by the clocks, were received before they were sent.
    pub(crate) early: u64,
}

#[derive(Debug)]
struct Operations {
    traced: Traced,
    /// By their position.
    ids: Vec<u32>,
    /// How many lines each has, where that matters.
    lines: Vec<u32>,
}

/// What a record waits for that has no line yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// A message: of which task, and its index there.
    Message(u32, u32),
    /// The parts of some members of the operation at a position of a communicator.
    Operation(u32, u32),
}

/// So many records wait behind others before a thread is let past them while windows are still to come.
const MANY: usize = 1 << 20;

/// Where a task is.
#[derive(Debug)]
struct Turn {
    /// The latest line of a message or mark, [`NONE`]: none yet.
    anchor: u32,
    /// What its next record waits for.
    parked: Option<Missing>,
    /// How many of its records have their line.
    taken: u32,
    /// When the task received what it is parked for, on the clock of all, as far as the record tells.
    since: u64,
    /// When the record with the latest line began.
    began: u64,
}

/// The ids of a task's messages that some record will wait for: what is on its way, no more. That of message n lies at
/// place n of a ring, modulo its length, which is a power of two.
#[derive(Debug, Default)]
struct Sent {
    /// Those before `first` have been asked for, those from `end` on have no line yet.
    first: u32,
    end: u32,
    /// [`NONE`]: nothing will wait for it.
    ids: Vec<u32>,
}

impl Sent {
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & self.ids.len().wrapping_sub(1)
    }

    /// The message `number`, higher than all before, has its line, and some record will wait for it.
    #[inline(always)]
    fn add(&mut self, number: u32, id: u32) {
        if (number - self.first) as usize >= self.ids.len() {
            self.make_room(number);
        }
        let place = self.place(number);
        self.ids[place] = id;
        self.end = number + 1;
    }

    /// Forgets what was asked for, and grows if that is not enough.
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

    /// The id of message `number`, if it has its line. Each is taken once.
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

    /// Whether all members' parts of an operation have their lines.
    fn is_whole(&self, position: u32) -> bool {
        self.lines.get(position as usize) == Some(&self.traced.members)
    }
}

impl Numbering {
    /// Before the first line of `tasks` tasks, some of which may have several threads (`threaded`). `traced` gives
    /// the place of each communicator, by identity.
    pub(crate) fn new(tasks: u32, traced: &[Traced], threaded: bool, killed: &[Rank]) -> Self {
        let turn = |_| Turn { anchor: NONE, parked: None, taken: 0, since: 0, began: 0 };
        Self {
            turns: (0..tasks).map(turn).collect(),
            behind: (0..tasks).map(|_| VecDeque::new()).collect(),
            sent: (0..tasks).map(|_| Sent::default()).collect(),
            sent_by_threads: HashMap::new(),
            operations: traced.iter().map(|&traced| Operations::new(traced)).collect(),
            threaded,
            killed: killed.to_vec(),
            anchors: HashMap::new(),
            waiting: HashMap::new(),
            missed: 0,
            next_message: 0,
            next_collective: 0,
            awake: VecDeque::new(),
            early: 0,
        }
    }

    /// Takes the turns of the records of `window`, which are in that order; they become its lines. Behind the `last` window
    /// there are no more.
    pub(crate) fn take(&mut self, window: &mut Window, last: bool) {
        if !self.threaded {
            return self.take_all::<false>(window);
        }
        self.take_all::<true>(window);
        if last {
            while self.missed > 0 && (self.let_past(window) || self.go_on_without(window)) {}
        }
    }

    /// [`Numbering::take`] where some task has several threads (`THREADED`), or none has.
    fn take_all<const THREADED: bool>(&mut self, window: &mut Window) {
        for place in 0..window.len() {
            if let Err(missing) = window.line(place, |record| self.turn::<THREADED>(record)) {
                self.miss(place, window, missing);
            }
            if !self.awake.is_empty() {
                self.make_up_all(window);
            }
        }
    }

    #[cold]
    fn make_up_all(&mut self, window: &mut Window) {
        while let Some(woken) = self.awake.pop_front() {
            self.make_up(woken, window);
        }
    }

    /// After the last turn: everything must have its line.
    pub(crate) fn finish(&self) -> Result<(), MixError> {
        match self.turns.iter().position(|turn| turn.parked.is_some()) {
            None => Ok(()),
            Some(first) => Err(MixError::Circle(self.circle(first))),
        }
    }

    /// Takes the turns that a task has missed, until it is parked again.
    #[cold]
    fn make_up(&mut self, rank: u32, window: &mut Window) {
        self.turns[rank as usize].parked = None;
        while let Some(missed) = self.behind[rank as usize].front() {
            // Among the records of this window now, whichever it came with.
            let place = window.len();
            window.push(missed);
            let line = match self.threaded {
                false => window.line(place, |record| self.turn::<false>(record)),
                true => window.line(place, |record| self.turn::<true>(record)),
            };
            if let Err(missing) = line {
                return self.park(place, window, missing);
            }
            self.behind[rank as usize].pop_front();
            self.missed -= 1;
        }
    }

    /// A task misses its turn because what its record waits for has no line yet.
    #[cold]
    fn miss(&mut self, place: usize, window: &mut Window, missing: Missing) {
        let missed = window.get(place);
        let rank = missed.task.index();
        self.behind[rank].push_back(missed);
        self.missed += 1;
        if self.turns[rank].parked.is_none() {
            self.park(place, window, missing);
        }
        if self.threaded && self.missed.is_multiple_of(MANY) {
            self.let_past(window);
        }
    }

    /// Lets a record have its line before others of its task that wait; returns whether there is one. That is the first, by start, of a thread
    /// of which no record waits in front of it, if what it follows has its line.
    #[cold]
    fn let_past(&mut self, window: &mut Window) -> bool {
        let mut first: Option<(u64, usize, usize)> = None;
        for (rank, behind) in self.behind.iter().enumerate() {
            let (mut waiting, mut called) = (Vec::new(), Vec::new());
            // The last one may be that of MPI_Finalize, which is behind all threads' others.
            let ended = !self.killed.contains(&Rank(rank as u32));
            for (at, record) in
                behind.iter().enumerate().take(behind.len() - usize::from(ended).min(behind.len()))
            {
                let Some(thread) = record.thread else { break };
                if first.is_some_and(|(start, ..)| start <= record.start) {
                    break;
                }
                // MPI wants all calls on a communicator in one order, whichever threads they come from.
                let comm = if let What::Collective { comm, .. } = record.what { Some(comm) } else { None };
                let in_turn = comm.is_none_or(|comm| !called.contains(&comm));
                if in_turn && !waiting.contains(&thread) && self.is_free(record) {
                    first = Some((record.start, rank, at));
                    break;
                }
                waiting.push(thread);
                called.extend(comm);
            }
        }
        let Some((_, rank, at)) = first else { return false };
        self.line_of_missed(rank, at, window);
        self.make_up_all(window);
        true
    }

    /// Lets a task that waits for an operation go on without; returns whether there is one. The program relied on members of a
    /// collective not waiting for each other. Of the record that began first, what it really waited for has its line.
    #[cold]
    fn go_on_without(&mut self, window: &mut Window) -> bool {
        let on_operation = |rank: &usize| matches!(self.turns[*rank].parked, Some(Missing::Operation(..)));
        let start = |rank: &usize| self.behind[*rank].front().map(|record| record.start);
        let waiting = (0..self.turns.len()).filter(on_operation);
        let Some(rank) = waiting.min_by_key(start) else { return false };
        self.line_of_missed(rank, 0, window);
        self.make_up(rank as u32, window);
        self.make_up_all(window);
        true
    }

    /// A record that a task has missed gets its line.
    fn line_of_missed(&mut self, rank: usize, at: usize, window: &mut Window) {
        let Some(record) = self.behind[rank].remove(at) else { return };
        self.missed -= 1;
        let place = window.len();
        window.push(&record);
        // There is no message that it waits for.
        let _ = window.line(place, |record| self.number::<true>(record));
    }

    /// Whether what a record follows has its line.
    fn is_free(&self, record: &Prepared) -> bool {
        match record.awaits {
            Awaits::Start | Awaits::Sent => true,
            Awaits::Received { source, message } => self.sent_by_threads.contains_key(&(source.0, message)),
            Awaits::Collective { comm, position } => self.operations[comm as usize].is_whole(position),
        }
    }

    /// The next record of a task waits for what has no line yet.
    #[cold]
    fn park(&mut self, place: usize, window: &Window, missing: Missing) {
        let record = window.get(place);
        let turn = &mut self.turns[record.task.index()];
        turn.parked = Some(missing);
        if let Missing::Operation(comm, position) = missing {
            self.waiting.entry((comm, position)).or_default().push(record.task.0);
        }
        // The later marks of one call begin with it, before any of its messages came.
        let same_call = record.time == 0 && record.start == turn.began;
        turn.since = if same_call { u64::MAX } else { record.start.saturating_sub(record.time) };
    }

    /// The turn of a task with its next record; the error is what the task waits for and has no line yet.
    #[inline(always)]
    fn turn<const THREADED: bool>(&mut self, record: &Record) -> Result<Ids, Missing> {
        if let Some(missing) = self.turns[record.task as usize].parked {
            return Err(missing);
        }
        if THREADED
            && let Awaits::Collective { comm, position } = record.awaits()
            && !self.operations[comm as usize].is_whole(position)
        {
            return Err(Missing::Operation(comm, position));
        }
        self.number::<THREADED>(record)
    }

    /// As [`Numbering::turn`] of a task that is not parked, whatever operation the record follows.
    #[inline(always)]
    fn number<const THREADED: bool>(&mut self, record: &Record) -> Result<Ids, Missing> {
        let &Record { task, start, .. } = record;
        let thread = if THREADED { record.thread() } else { None };
        let after = match record.awaits() {
            Awaits::Received { source, message } => {
                let id = match THREADED {
                    false => self.sent[source.index()].take(message),
                    true => self.sent_by_threads.remove(&(source.0, message)),
                };
                id.ok_or(Missing::Message(source.0, message))?
            }
            // The task itself was there before, so the operation has its id.
            Awaits::Collective { comm, position } => self.operation(comm, position),
            // A task's first record is behind none.
            Awaits::Start | Awaits::Sent => match thread {
                None => self.turns[task as usize].anchor,
                Some(thread) => self.anchors.get(&(task, thread)).copied().unwrap_or(NONE),
            },
        };
        let turn = &mut self.turns[task as usize];
        // What counts is the record in front, whosever that is, or the thread's own event before.
        let most_time = thread.filter(|_| turn.taken > 0).map(|_| start.saturating_sub(turn.began));
        turn.taken += 1;
        turn.began = start;
        let role = record.role();
        if let Role::Collective { comm, position } = role {
            let own = self.operation(comm, position);
            if THREADED {
                self.count_line(comm, position);
            }
            return Ok(Ids { after, own, comm: self.operations[comm as usize].traced.id, most_time });
        }
        let own = self.next_message;
        self.next_message += 1;
        match thread {
            None => turn.anchor = own,
            Some(thread) => drop(self.anchors.insert((task, thread), own)),
        }
        if let Role::Message { number, dst, expected: true } = role {
            match THREADED {
                false => self.sent[task as usize].add(number, own),
                true => drop(self.sent_by_threads.insert((task, number), own)),
            }
            let receiver = &self.turns[dst as usize];
            if receiver.parked == Some(Missing::Message(task, number)) {
                self.awake.push_back(dst);
                self.early += u64::from(receiver.since < start);
            }
        }
        Ok(Ids { after, own, comm: CommId(NONE), most_time })
    }

    /// An operation has another line; its last one wakes the tasks that wait for it.
    #[cold]
    fn count_line(&mut self, comm: u32, position: u32) {
        let operations = &mut self.operations[comm as usize];
        operations.lines.resize(operations.ids.len(), 0);
        operations.lines[position as usize] += 1;
        if operations.is_whole(position)
            && let Some(tasks) = self.waiting.remove(&(comm, position))
        {
            let still =
                |task: &u32| self.turns[*task as usize].parked == Some(Missing::Operation(comm, position));
            self.awake.extend(tasks.into_iter().filter(still));
        }
    }

    /// The id of an operation, the next one if it has none. A communicator's operations come to each member in
    /// their order, so none is left out.
    #[inline]
    fn operation(&mut self, comm: u32, position: u32) -> u32 {
        let ids = &mut self.operations[comm as usize].ids;
        if position as usize >= ids.len() {
            ids.push(self.next_collective);
            self.next_collective += 1;
        }
        ids.get(position as usize).copied().unwrap_or(NONE)
    }

    /// The parked tasks, followed from `first` until one comes again.
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

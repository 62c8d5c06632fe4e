//! Numbers the lines of a trace: prepared records get ids in the order of the lines, and references become ids.
//!
//! A task whose turn has come but whose next record waits for a message that has no line yet is *parked*; the
//! line of that message wakes it, and it makes up for the turns it missed. So everything stands behind what it
//! depends on, even if clocks disagree, in constant time a record. If tasks stay parked at the end, their records
//! wait for each other in a circle.

use crate::channels::NONE;
use crate::error::{MixError, Waiting};
use crate::prepare::{Awaits, Prepared};
use crate::window::{Ids, Record, Role, Window};
use std::collections::VecDeque;
use vef_format::ids::{CommId, Rank};

/// A communicator in the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced {
    /// Its number there.
    pub(crate) id: CommId,
}

/// Numbers the lines turn by turn and turns references into the numbers of lines.
#[derive(Debug)]
pub(crate) struct Numbering {
    turns: Vec<Turn>,
    /// The records of parked tasks whose turn has come.
    behind: Vec<VecDeque<Prepared>>,
    /// The messages of each task that some record will wait for.
    sent: Vec<Sent>,
    /// The ids of the operations of each communicator, by their position.
    operations: Vec<Operations>,
    next_message: u32,
    next_collective: u32,
    awake: VecDeque<u32>,
    /// Messages that, by the clocks, were received before they were sent.
    pub(crate) early: u64,
}

#[derive(Debug)]
struct Operations {
    traced: Traced,
    ids: Vec<u32>,
}

/// Where a task is.
#[derive(Debug)]
struct Turn {
    /// The latest line of a message or mark, [`NONE`]: none yet.
    anchor: u32,
    /// The message that its next record waits for and that has no line yet.
    parked: Option<(u32, u32)>,
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

    /// The id of message `number`, if it has its line. Nobody will ask again.
    #[inline(always)]
    fn take(&mut self, number: u32) -> Option<u32> {
        if number >= self.end {
            return None;
        }
        let place = self.place(number);
        Some(std::mem::replace(self.ids.get_mut(place)?, NONE))
    }
}

impl Numbering {
    /// Before the first line of `tasks` tasks. `traced` gives the place of each communicator, by identity.
    pub(crate) fn new(tasks: u32, traced: &[Traced]) -> Self {
        let turn = |_| Turn { anchor: NONE, parked: None, taken: 0, since: 0, began: 0 };
        Self {
            turns: (0..tasks).map(turn).collect(),
            behind: (0..tasks).map(|_| VecDeque::new()).collect(),
            sent: (0..tasks).map(|_| Sent::default()).collect(),
            operations: traced.iter().map(|&traced| Operations { traced, ids: Vec::new() }).collect(),
            next_message: 0,
            next_collective: 0,
            awake: VecDeque::new(),
            early: 0,
        }
    }

    /// Takes the turns of the records of `window`, which are in that order; they become its lines.
    pub(crate) fn take(&mut self, window: &mut Window) {
        for place in 0..window.len() {
            if let Err(message) = window.line(place, |record| self.turn(record)) {
                self.miss(place, window, message);
            }
            while let Some(woken) = self.awake.pop_front() {
                self.make_up(woken, window);
            }
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
            if let Err(message) = window.line(place, |record| self.turn(record)) {
                return self.park(place, window, message);
            }
            self.behind[rank as usize].pop_front();
        }
    }

    /// A task misses its turn because of a message that has no line yet.
    #[cold]
    fn miss(&mut self, place: usize, window: &Window, message: (u32, u32)) {
        let missed = window.get(place);
        let rank = missed.task.index();
        self.behind[rank].push_back(missed);
        if self.turns[rank].parked.is_none() {
            self.park(place, window, message);
        }
    }

    /// The next record of a task waits for a message that has no line yet.
    #[cold]
    fn park(&mut self, place: usize, window: &Window, message: (u32, u32)) {
        let record = window.get(place);
        let turn = &mut self.turns[record.task.index()];
        turn.parked = Some(message);
        // The later marks of one call begin with it, before any of its messages came.
        let same_call = record.time == 0 && record.start == turn.began;
        turn.since = if same_call { u64::MAX } else { record.start.saturating_sub(record.time) };
    }

    /// The turn of a task with its next record; the error is a message that the task waits for and that has no line yet.
    #[inline(always)]
    fn turn(&mut self, record: &Record) -> Result<Ids, (u32, u32)> {
        let &Record { task, start, .. } = record;
        if let Some(message) = self.turns[task as usize].parked {
            return Err(message);
        }
        let after = match record.awaits() {
            Awaits::Received { source, message } => match self.sent[source.index()].take(message) {
                Some(id) => id,
                None => return Err((source.0, message)),
            },
            // The task itself was there before, so the operation has its id.
            Awaits::Collective { comm, position } => self.operation(comm, position),
            // A task's first record is behind none.
            Awaits::Start | Awaits::Sent => self.turns[task as usize].anchor,
        };
        let turn = &mut self.turns[task as usize];
        turn.taken += 1;
        turn.began = start;
        let role = record.role();
        if let Role::Collective { comm, position } = role {
            let own = self.operation(comm, position);
            return Ok(Ids { after, own, comm: self.operations[comm as usize].traced.id });
        }
        let own = self.next_message;
        self.next_message += 1;
        turn.anchor = own;
        if let Role::Message { number, dst, expected: true } = role {
            self.sent[task as usize].add(number, own);
            let receiver = &self.turns[dst as usize];
            if receiver.parked == Some((task, number)) {
                self.awake.push_back(dst);
                self.early += u64::from(receiver.since < start);
            }
        }
        Ok(Ids { after, own, comm: CommId(NONE) })
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
            let (source, message) = self.turns[rank].parked?;
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

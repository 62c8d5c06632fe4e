//! From prepared records to lines of a trace: ids are given in the order of the lines, and references become ids.
//!
//! A task whose turn has come but whose next record waits for a message that has no line yet is *parked*; the
//! line of that message wakes it, and it makes up for the turns it missed. So everything stands behind what it
//! depends on, even if clocks disagree, in constant time a record. If tasks stay parked at the end, their records
//! wait for each other in a circle.

use crate::channels::NONE;
use crate::error::{MixError, Waiting};
use crate::matching::Fate;
use crate::order::Window;
use crate::prepare::{Awaits, Prepared, What};
use std::collections::VecDeque;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::record::{Dependency, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

/// A line of a trace behind its communicators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A message or a mark.
    Message(Message),
    /// A part of a collective.
    Collective(LocalCollective),
}

/// A communicator in the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced {
    /// Its number there.
    pub(crate) id: CommId,
}

/// Gives ids and resolves references, turn by turn.
#[derive(Debug)]
pub(crate) struct Resolver {
    turns: Vec<Turn>,
    /// What parked tasks have left of earlier windows.
    behind: Vec<VecDeque<Prepared>>,
    /// The messages of each task that some record will wait for.
    sent: Vec<Sent>,
    /// The ids of the operations of each communicator, by their position.
    operations: Vec<Operations>,
    next_message: u32,
    next_collective: u32,
    awake: VecDeque<u32>,
    /// Tasks that were parked at some time in this window.
    parked: Vec<u32>,
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
    /// Its next record in the window.
    at: u32,
    /// The latest line of a message or mark, [`NONE`]: none yet.
    anchor: u32,
    /// The message that its next record waits for and that has no line yet.
    parked: Option<(Rank, u32)>,
    /// Whether it is in the list of tasks that were parked in this window.
    listed: bool,
    /// Turns that have come and were not taken.
    due: u64,
    /// How many of its records had their turn.
    taken: u64,
    /// When the task received what it is parked for, on the clock of all, as far as the record tells.
    since: u64,
    /// When the record taken last began.
    began: u64,
}

/// The ids of a task's messages, from the first that some record will wait for: what is on its way, no more.
#[derive(Debug, Default)]
struct Sent {
    first: u32,
    /// [`NONE`]: nothing will wait for it.
    ids: VecDeque<u32>,
}

impl Sent {
    /// The message `number`, higher than all before, has its line.
    #[inline]
    fn add(&mut self, number: u32, id: u32, expected: bool) {
        if self.ids.is_empty() {
            self.first = number;
        } else {
            let end = (number - self.first) as usize;
            self.ids.resize(end, NONE);
        }
        if expected {
            self.ids.push_back(id);
        } else if !self.ids.is_empty() {
            self.ids.push_back(NONE);
        }
    }

    /// The id of message `number`, if it has its line; `last`: nobody will ask again.
    #[inline]
    fn id(&mut self, number: u32, last: bool) -> Option<u32> {
        let at = number.checked_sub(self.first)? as usize;
        let place = self.ids.get_mut(at)?;
        let id = *place;
        if last {
            *place = NONE;
            while let Some(&NONE) = self.ids.front() {
                self.ids.pop_front();
                self.first += 1;
            }
        }
        (id != NONE).then_some(id)
    }
}

impl Resolver {
    /// Before the first line of `tasks` tasks. `traced` gives the place of each communicator, by identity.
    pub(crate) fn new(tasks: u32, traced: &[Traced]) -> Self {
        let turn = |_| Turn {
            at: 0,
            anchor: NONE,
            parked: None,
            listed: false,
            due: 0,
            taken: 0,
            since: 0,
            began: 0,
        };
        Self {
            turns: (0..tasks).map(turn).collect(),
            behind: (0..tasks).map(|_| VecDeque::new()).collect(),
            sent: (0..tasks).map(|_| Sent::default()).collect(),
            operations: traced.iter().map(|&traced| Operations { traced, ids: Vec::new() }).collect(),
            next_message: 0,
            next_collective: 0,
            awake: VecDeque::new(),
            parked: Vec::new(),
            early: 0,
        }
    }

    /// Takes the turns of a window; `lines` are what became of them.
    pub(crate) fn take(&mut self, window: &Window, lines: &mut Vec<Line>) {
        lines.clear();
        for (turn, &begin) in self.turns.iter_mut().zip(&window.begins) {
            turn.at = begin;
        }
        for &rank in &window.turns {
            let turn = &mut self.turns[rank as usize];
            turn.due += 1;
            if turn.parked.is_none() {
                self.go_on(rank, window, lines);
            }
            while let Some(woken) = self.awake.pop_front() {
                self.turns[woken as usize].parked = None;
                self.go_on(woken, window, lines);
            }
        }
        // The window goes; what parked tasks have not taken of it stays.
        let Self { turns, behind, parked, .. } = self;
        parked.retain(|&rank| {
            let rank = rank as usize;
            let end = window.begins.get(rank + 1).map_or(0, |&end| end as usize);
            behind[rank].extend(&window.records[turns[rank].at as usize..end]);
            turns[rank].listed = turns[rank].parked.is_some();
            turns[rank].listed
        });
    }

    /// After the last turn: everything must have its line.
    pub(crate) fn finish(&self) -> Result<(), MixError> {
        if self.parked.is_empty() { Ok(()) } else { Err(MixError::Circle(self.circle())) }
    }

    /// Takes the turns that are due, until the task is parked.
    #[inline]
    fn go_on(&mut self, rank: u32, window: &Window, lines: &mut Vec<Line>) {
        while self.turns[rank as usize].due > 0 {
            let turn = &mut self.turns[rank as usize];
            let behind = if turn.listed { self.behind[rank as usize].front() } else { None };
            let Some(&record) = behind.or_else(|| window.records.get(turn.at as usize)) else { return };
            let was_behind = behind.is_some();
            if let Err(message) = self.turn(rank, &record, lines) {
                let turn = &mut self.turns[rank as usize];
                turn.parked = Some(message);
                // The later marks of one call begin with it, before any of its messages came.
                let same_call = record.time == 0 && record.start == turn.began;
                turn.since = if same_call { u64::MAX } else { record.start.saturating_sub(record.time) };
                if !std::mem::replace(&mut turn.listed, true) {
                    self.parked.push(rank);
                }
                return;
            }
            let turn = &mut self.turns[rank as usize];
            turn.due -= 1;
            turn.taken += 1;
            turn.began = record.start;
            if was_behind {
                self.behind[rank as usize].pop_front();
            } else {
                turn.at += 1;
            }
        }
    }

    /// The turn of a task with its next record; the error is a message that it waits for and that has no line yet.
    #[inline]
    fn turn(&mut self, rank: u32, record: &Prepared, lines: &mut Vec<Line>) -> Result<(), (Rank, u32)> {
        let after = match record.awaits {
            Awaits::Start => Dependency::Start,
            Awaits::Sent => Dependency::Sent(MessageId(self.turns[rank as usize].anchor.into())),
            Awaits::Received { source, message, last } => match self.sent[source.index()].id(message, last) {
                Some(id) => Dependency::Received(MessageId(id.into())),
                None => return Err((source, message)),
            },
            // The task itself was there before, so the operation has its id.
            Awaits::Collective { comm, position } => Dependency::Collective(self.operation(comm, position)),
        };
        let (task, time) = (Rank(rank), Ticks(record.time));
        let turn = &mut self.turns[rank as usize];
        match record.what {
            What::Mark => {
                let id = MessageId(self.next_message.into());
                turn.anchor = self.next_message;
                self.next_message += 1;
                let (src, dst, bytes) = (task, task, Bytes::ZERO);
                lines.push(Line::Message(Message { id, src, dst, bytes, awaited: false, after, time }));
            }
            What::Message { number, dst, bytes, fate } => {
                let id = MessageId(self.next_message.into());
                turn.anchor = self.next_message;
                self.sent[rank as usize].add(number, self.next_message, fate == Fate::Expected);
                self.next_message += 1;
                let receiver = &self.turns[dst.index()];
                if fate == Fate::Expected && receiver.parked == Some((task, number)) {
                    self.awake.push_back(dst.0);
                    self.early += u64::from(receiver.since < record.start);
                }
                let awaited = fate != Fate::Unawaited;
                lines.push(Line::Message(Message { id, src: task, dst, bytes, awaited, after, time }));
            }
            What::Collective { comm, position, code: op, amounts } => {
                let id = self.operation(comm, position);
                let comm = self.operations[comm as usize].traced.id;
                lines.push(Line::Collective(LocalCollective { id, comm, op, task, amounts, after, time }));
            }
        }
        Ok(())
    }

    /// The id of an operation, the next one if it has none. A communicator's operations come to each member in
    /// their order, so none is left out.
    #[inline]
    fn operation(&mut self, comm: u32, position: u32) -> CollectiveId {
        let ids = &mut self.operations[comm as usize].ids;
        if position as usize >= ids.len() {
            ids.push(self.next_collective);
            self.next_collective += 1;
        }
        CollectiveId(ids.get(position as usize).copied().unwrap_or(NONE).into())
    }

    /// The parked tasks, followed from the first until one comes again.
    #[cold]
    fn circle(&self) -> Vec<Waiting> {
        let waiting = |rank: usize| {
            let (source, message) = self.turns[rank].parked?;
            let (task, record) = (Rank(rank as u32), self.turns[rank].taken);
            Some(Waiting { task, record, source, message: message.into() })
        };
        let mut seen = vec![usize::MAX; self.turns.len()];
        let mut links: Vec<Waiting> = Vec::new();
        let mut at = self.parked.iter().min().map(|&rank| rank as usize);
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

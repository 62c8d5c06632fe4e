//! From prepared records to lines of a trace: ids are given in the order of the lines, and references become ids.
//!
//! A task whose turn has come but whose next record waits for a message that has no line yet is *parked*; the
//! line of that message wakes it, and it makes up for the turns it missed. So everything stands behind what it
//! depends on, even if clocks disagree, in constant time a record. If tasks stay parked at the end, their records
//! wait for each other in a circle.

use crate::channels::NONE;
use crate::error::{MixError, Waiting};
use crate::matching::Fate;
use crate::prepare::{Awaits, Prepared, What};
use crate::window::Window;
use std::collections::VecDeque;
use std::ops::Range;
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

/// Takes the lines of a trace in their order.
pub(crate) trait Lines {
    /// The next is a message or a mark.
    fn message(&mut self, message: Message);
    /// The next is a part of a collective.
    fn collective(&mut self, part: LocalCollective);
}

impl Lines for Vec<Line> {
    #[inline]
    fn message(&mut self, message: Message) {
        self.push(Line::Message(message));
    }

    #[inline]
    fn collective(&mut self, part: LocalCollective) {
        self.push(Line::Collective(part));
    }
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
    parked: Option<(Rank, u32)>,
    /// How many of its records have their line.
    taken: u64,
    /// When the task received what it is parked for, on the clock of all, as far as the record tells.
    since: u64,
    /// When the record with the latest line began.
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
            if !expected {
                return;
            }
            self.first = number;
        }
        let end = (number - self.first) as usize;
        if self.ids.len() < end {
            self.ids.resize(end, NONE);
        }
        self.ids.push_back(if expected { id } else { NONE });
    }

    /// The id of message `number`, if it has its line. Nobody will ask again.
    #[inline]
    fn take(&mut self, number: u32) -> Option<u32> {
        let at = number.checked_sub(self.first)? as usize;
        let id = std::mem::replace(self.ids.get_mut(at)?, NONE);
        while let Some(&NONE) = self.ids.front() {
            self.ids.pop_front();
            self.first += 1;
        }
        (id != NONE).then_some(id)
    }
}

impl Resolver {
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

    /// Takes the turns of the records at `places` of `window`; `lines` gets what becomes of them.
    pub(crate) fn take(&mut self, window: &Window, places: Range<usize>, lines: &mut impl Lines) {
        for place in places {
            let record = &window.get(place);
            if self.turns[record.task.index()].parked.is_some() {
                self.behind[record.task.index()].push_back(*record);
            } else if let Err(message) = self.turn(record, lines) {
                self.behind[record.task.index()].push_back(*record);
                self.park(record, message);
            }
            while let Some(woken) = self.awake.pop_front() {
                self.make_up(woken, lines);
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
    fn make_up(&mut self, rank: u32, lines: &mut impl Lines) {
        self.turns[rank as usize].parked = None;
        while let Some(&record) = self.behind[rank as usize].front() {
            if let Err(message) = self.turn(&record, lines) {
                return self.park(&record, message);
            }
            self.behind[rank as usize].pop_front();
        }
    }

    /// The next record of a task waits for a message that has no line yet.
    #[cold]
    fn park(&mut self, record: &Prepared, message: (Rank, u32)) {
        let turn = &mut self.turns[record.task.index()];
        turn.parked = Some(message);
        // The later marks of one call begin with it, before any of its messages came.
        let same_call = record.time == 0 && record.start == turn.began;
        turn.since = if same_call { u64::MAX } else { record.start.saturating_sub(record.time) };
    }

    /// The turn of a task with its next record; the error is a message that it waits for and that has no line yet.
    #[inline]
    fn turn(&mut self, record: &Prepared, lines: &mut impl Lines) -> Result<(), (Rank, u32)> {
        let (task, time) = (record.task, Ticks(record.time));
        let after = match record.awaits {
            Awaits::Start => Dependency::Start,
            Awaits::Sent => Dependency::Sent(MessageId(self.turns[task.index()].anchor.into())),
            Awaits::Received { source, message } => match self.sent[source.index()].take(message) {
                Some(id) => Dependency::Received(MessageId(id.into())),
                None => return Err((source, message)),
            },
            // The task itself was there before, so the operation has its id.
            Awaits::Collective { comm, position } => Dependency::Collective(self.operation(comm, position)),
        };
        let turn = &mut self.turns[task.index()];
        turn.taken += 1;
        turn.began = record.start;
        let (dst, bytes, awaited) = match record.what {
            What::Mark => (task, Bytes::ZERO, false),
            What::Message { number, dst, bytes, fate } => {
                let expected = fate == Fate::Expected;
                self.sent[task.index()].add(number, self.next_message, expected);
                let receiver = &self.turns[dst.index()];
                if expected && receiver.parked == Some((task, number)) {
                    self.awake.push_back(dst.0);
                    self.early += u64::from(receiver.since < record.start);
                }
                (dst, bytes, fate != Fate::Unawaited)
            }
            What::Collective { comm, position, code: op, amounts } => {
                let id = self.operation(comm, position);
                let comm = self.operations[comm as usize].traced.id;
                lines.collective(LocalCollective { id, comm, op, task, amounts, after, time });
                return Ok(());
            }
        };
        self.turns[task.index()].anchor = self.next_message;
        let id = MessageId(self.next_message.into());
        self.next_message += 1;
        lines.message(Message { id, src: task, dst, bytes, awaited, after, time });
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

    /// The parked tasks, followed from `first` until one comes again.
    #[cold]
    fn circle(&self, first: usize) -> Vec<Waiting> {
        let waiting = |rank: usize| {
            let (source, message) = self.turns[rank].parked?;
            let (task, record) = (Rank(rank as u32), self.turns[rank].taken);
            Some(Waiting { task, record, source, message: message.into() })
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

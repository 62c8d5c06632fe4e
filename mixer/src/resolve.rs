//! From prepared records to lines of a trace: ids are given in the order of the lines, and references become ids.
//!
//! A task whose turn has come but whose next record waits for a message that has no line yet is *parked*; the
//! line of that message wakes it, and it makes up for the turns it missed. So everything stands behind what it
//! depends on, even if clocks disagree, in constant time a record. If tasks stay parked at the end, their records
//! wait for each other in a circle.

use crate::channels::NONE;
use crate::error::{MixError, Waiting};
use crate::matching::Fate;
use crate::prepare::{Awaits, Prepared, What, Window};
use crate::task::Task;
use std::collections::VecDeque;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::record::{Dependency, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

/// A message that has no line yet.
const UNSEEN: u32 = u32::MAX;
/// A message that has no line yet and whose receiver is parked for it.
const WANTED: u32 = u32::MAX - 1;

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
    /// How many operations on it the trace has; a task's further ones are dropped.
    pub(crate) complete: u64,
}

/// Gives ids and resolves references, turn by turn.
pub(crate) struct Resolver {
    turns: Vec<Turn>,
    /// What parked tasks have left of earlier windows.
    behind: Vec<VecDeque<Prepared>>,
    /// The id of every message, by task.
    ids: Vec<Vec<u32>>,
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

struct Operations {
    traced: Traced,
    ids: Vec<u32>,
}

/// Where a task is.
struct Turn {
    /// Its next record in the window.
    at: u32,
    /// Turns that have come and were not taken.
    due: u64,
    /// How many of its records had their turn.
    taken: u64,
    /// Its next record waits for a message that has no line yet: when the task received that message, on the clock of
    /// all, as far as the record tells.
    parked: Option<u64>,
    /// When the record taken last began.
    began: u64,
    /// Whether it is in the list of tasks that were parked in this window.
    listed: bool,
    /// The latest line of a message or mark, [`NONE`]: none yet.
    anchor: u32,
    /// What a record that was dropped just before leaves to the next: its dependency, and since when.
    legacy: Option<Box<(Dependency, u64)>>,
    /// The ids of the task's collectives, [`NONE`]: dropped.
    collectives: Vec<u32>,
}

impl Resolver {
    /// Before the first line. `traced` gives the place of each communicator, by identity.
    pub(crate) fn new(tasks: &[Task], traced: &[Traced]) -> Self {
        let turn = |_| Turn {
            at: 0,
            due: 0,
            taken: 0,
            parked: None,
            began: 0,
            listed: false,
            anchor: NONE,
            legacy: None,
            collectives: Vec::new(),
        };
        Self {
            turns: tasks.iter().map(turn).collect(),
            behind: tasks.iter().map(|_| VecDeque::new()).collect(),
            ids: tasks.iter().map(|task| vec![UNSEEN; task.sends.len()]).collect(),
            operations: traced
                .iter()
                .map(|&traced| Operations { traced, ids: vec![NONE; traced.complete as usize] })
                .collect(),
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
            if !self.turn(rank, &record, lines) {
                let turn = &mut self.turns[rank as usize];
                // The later marks of one `Waitall` begin with it, before any of its messages came.
                let same_call = record.time == 0 && record.start == turn.began;
                turn.parked =
                    Some(if same_call { u64::MAX } else { record.start.saturating_sub(record.time) });
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

    /// The turn of a task with its next record; `false`: that waits for a message that has no line yet.
    #[inline]
    fn turn(&mut self, rank: u32, record: &Prepared, lines: &mut Vec<Line>) -> bool {
        let turn = &mut self.turns[rank as usize];
        let anchored = match turn.anchor {
            NONE => Dependency::Start,
            id => Dependency::Sent(MessageId(id.into())),
        };
        // The dependency, and whether it is on what stands just before, which may have been dropped.
        let (after, bequeathed) = match record.awaits {
            Awaits::Start => (Dependency::Start, true),
            Awaits::Sent => (anchored, true),
            Awaits::Lost => (anchored, false),
            Awaits::Received { source, message } => {
                let id = &mut self.ids[source.index()][message as usize];
                if *id >= WANTED {
                    *id = WANTED;
                    return false;
                }
                (Dependency::Received(MessageId((*id).into())), false)
            }
            Awaits::Collective(number) => match turn.collectives.get(number as usize) {
                Some(&id) if id != NONE => (Dependency::Collective(CollectiveId(id.into())), false),
                _ => (anchored, true),
            },
        };
        let (after, time) = match turn.legacy.take() {
            Some(legacy) if bequeathed => (legacy.0, record.start.saturating_sub(legacy.1)),
            _ => (after, record.time),
        };
        let dropped = |time: u64| Some(Box::new((after, record.start.saturating_sub(time))));
        let task = Rank(rank);
        match record.what {
            What::Mark => {
                let id = MessageId(self.next_message.into());
                turn.anchor = self.next_message;
                self.next_message += 1;
                let (src, dst, bytes, time) = (task, task, Bytes::ZERO, Ticks(time));
                lines.push(Line::Message(Message { id, src, dst, bytes, awaited: false, after, time }));
            }
            What::Message { fate: Fate::Dropped, .. } => turn.legacy = dropped(time),
            What::Message { number, dst, bytes, fate } => {
                let id = MessageId(self.next_message.into());
                turn.anchor = self.next_message;
                let known = &mut self.ids[rank as usize][number as usize];
                if std::mem::replace(known, self.next_message) == WANTED {
                    self.awake.push_back(dst.0);
                    let since = self.turns[dst.index()].parked;
                    self.early += u64::from(since.is_some_and(|since| since < record.start));
                }
                self.next_message += 1;
                let (awaited, time) = (fate == Fate::Awaited, Ticks(time));
                lines.push(Line::Message(Message { id, src: task, dst, bytes, awaited, after, time }));
            }
            What::Collective { comm, position, code, amounts } => {
                let operations = &mut self.operations[comm as usize];
                let Some(id) = operations.ids.get_mut(position as usize) else {
                    turn.legacy = dropped(time);
                    turn.collectives.push(NONE);
                    return true;
                };
                if *id == NONE {
                    *id = self.next_collective;
                    self.next_collective += 1;
                }
                turn.collectives.push(*id);
                let (id, comm) = (CollectiveId((*id).into()), operations.traced.id);
                let (op, time) = (code, Ticks(time));
                lines.push(Line::Collective(LocalCollective { id, comm, op, task, amounts, after, time }));
            }
        }
        true
    }

    /// The parked tasks, followed from the first until one comes again.
    #[cold]
    fn circle(&self) -> Vec<Waiting> {
        let waiting = |rank: usize| match self.behind[rank].front()?.awaits {
            Awaits::Received { source, message } => {
                let (task, record) = (Rank(rank as u32), self.turns[rank].taken);
                Some(Waiting { task, record, source, message: message.into() })
            }
            _ => None,
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

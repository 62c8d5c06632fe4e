//! From what one task can tell of its records to lines of a trace: ids are given in the order of the lines, and
//! references become ids.
//!
//! A task whose turn has come but whose next record waits for a message that has no line yet is *parked*; the
//! line of that message wakes it, and it makes up for the turns it missed. So everything stands behind what it
//! depends on, even if clocks disagree, in constant time a record. If tasks stay parked at the end, their records
//! wait for each other in a circle.

use crate::channels::NONE;
use crate::error::{MixError, Waiting};
use crate::matching::{Fate, Partners};
use crate::packed::{After, Body, Packed, StartCursor, Unpacker};
use crate::task::Task;
use std::collections::VecDeque;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{OpCode, OpCodes, Operation};
use vef_format::record::{Dependency, LocalCollective, Message};
use vef_format::units::Ticks;

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
pub(crate) struct Resolver<'a> {
    tasks: &'a [Task],
    partners: &'a [Partners],
    codes: [OpCode; Operation::ALL.len()],
    /// What makes each task's clock that of all.
    shifts: &'a [i64],
    turns: Vec<Turn>,
    /// The id of every message, by task.
    ids: Vec<Vec<u32>>,
    /// The ids of the operations of each communicator, by their position.
    operations: Vec<Operations>,
    next_message: u32,
    next_collective: u32,
    awake: VecDeque<u32>,
    parked: u64,
    /// Messages that, by the clocks, were received before they were sent.
    pub(crate) early: u64,
}

struct Operations {
    traced: Traced,
    ids: Vec<u32>,
}

/// Where a task is.
#[derive(Default)]
struct Turn {
    records: Unpacker,
    starts: StartCursor,
    /// The record that the task is parked at, and when it began.
    held: Option<(Packed, u64)>,
    /// Turns missed since.
    missed: u64,
    record: u64,
    message: u32,
    /// The latest line of a message or mark, [`NONE`]: none yet.
    anchor: u32,
    /// What a record that was dropped just before leaves to the next: its dependency, and since when.
    legacy: Option<(Dependency, u64)>,
    /// How many calls on each of the task's communicators had their turn, and which of all those it is.
    calls: Vec<(u32, u64)>,
    /// The ids of the task's collectives, [`NONE`]: dropped.
    collectives: Vec<u32>,
}

impl<'a> Resolver<'a> {
    /// Before the first line. `traced` gives the place of each communicator, by identity.
    pub(crate) fn new(
        tasks: &'a [Task],
        partners: &'a [Partners],
        shifts: &'a [i64],
        traced: &[Traced],
        codes: &OpCodes,
    ) -> Self {
        let turn = |task: &Task| Turn {
            anchor: NONE,
            calls: task.calls.iter().map(|calls| (calls.comm.0, 0)).collect(),
            ..Turn::default()
        };
        let mut table = [OpCode(0); Operation::ALL.len()];
        for (code, &operation) in table.iter_mut().zip(Operation::ALL) {
            *code = codes.code(operation).unwrap_or(operation.default_code());
        }
        Self {
            tasks,
            partners,
            codes: table,
            shifts,
            turns: tasks.iter().map(turn).collect(),
            ids: tasks.iter().map(|task| vec![UNSEEN; task.sends.len()]).collect(),
            operations: traced
                .iter()
                .map(|&traced| Operations { traced, ids: vec![NONE; traced.complete as usize] })
                .collect(),
            next_message: 0,
            next_collective: 0,
            awake: VecDeque::new(),
            parked: 0,
            early: 0,
        }
    }

    /// Takes the turns of a window; `lines` are what became of them.
    pub(crate) fn take(&mut self, turns: &[u32], lines: &mut Vec<Line>) {
        lines.clear();
        for &rank in turns {
            if self.turns[rank as usize].held.is_some() {
                self.turns[rank as usize].missed += 1;
                continue;
            }
            self.turn(rank, lines);
            while let Some(woken) = self.awake.pop_front() {
                self.parked -= 1;
                // The record it was held at is no missed turn but one that is due.
                let turn = &mut self.turns[woken as usize];
                let mut due = std::mem::take(&mut turn.missed) + 1;
                while due > 0 && self.turn(woken, lines) {
                    due -= 1;
                }
                self.turns[woken as usize].missed = due.saturating_sub(1);
            }
        }
    }

    /// After the last turn: everything must have its line.
    pub(crate) fn finish(&self) -> Result<(), MixError> {
        if self.parked == 0 { Ok(()) } else { Err(MixError::Circle(self.circle())) }
    }

    /// The turn of a task; `false`: it is parked.
    #[inline]
    fn turn(&mut self, rank: u32, lines: &mut Vec<Line>) -> bool {
        let task = &self.tasks[rank as usize];
        let turn = &mut self.turns[rank as usize];
        let (packed, start) = match turn.held.take() {
            Some(held) => held,
            None => {
                let Some(packed) = turn.records.next(&task.records) else { return true };
                (packed, turn.starts.next(&task.starts).unwrap_or(0))
            }
        };
        let anchored = match turn.anchor {
            NONE => Dependency::Start,
            id => Dependency::Sent(MessageId(id.into())),
        };
        // The dependency, and whether what stood there was dropped.
        let (after, bequeathed) = match packed.after {
            After::Start => (Dependency::Start, turn.legacy.is_some()),
            After::Sent => (anchored, turn.legacy.is_some()),
            After::Received(receive) => {
                let message = self.partners[rank as usize].messages[receive as usize];
                let source = task.receives.of(receive).map(|channel| channel.peer);
                match source {
                    Some(source) if message != NONE => {
                        let id = &mut self.ids[source.index()][message as usize];
                        if *id >= WANTED {
                            *id = WANTED;
                            turn.held = Some((packed, start));
                            self.parked += 1;
                            return false;
                        }
                        (Dependency::Received(MessageId((*id).into())), false)
                    }
                    _ => (anchored, false),
                }
            }
            After::Collective(number) => match turn.collectives.get(number as usize) {
                Some(&id) if id != NONE => (Dependency::Collective(CollectiveId(id.into())), false),
                _ => (anchored, turn.legacy.is_some()),
            },
        };
        let (after, time) = match turn.legacy.take() {
            Some((after, since)) if bequeathed => (after, start.saturating_sub(since)),
            _ => (after, packed.time),
        };
        turn.record += 1;
        let task = Rank(rank);
        let time = Ticks(time);
        match packed.body {
            Body::Mark => {
                let id = self.next_message;
                self.next_message += 1;
                turn.anchor = id;
                let (id, bytes) = (MessageId(id.into()), Default::default());
                lines.push(Line::Message(Message {
                    id,
                    src: task,
                    dst: task,
                    bytes,
                    awaited: false,
                    after,
                    time,
                }));
            }
            Body::Message { dst, bytes } => {
                let message = turn.message as usize;
                turn.message += 1;
                let fate = self.partners[rank as usize].fates[message];
                if fate == Fate::Dropped {
                    turn.legacy = Some((after, start.saturating_sub(time.0)));
                    return true;
                }
                let id = self.next_message;
                self.next_message += 1;
                turn.anchor = id;
                if std::mem::replace(&mut self.ids[rank as usize][message], id) == WANTED {
                    let common =
                        |rank: u32, start: u64| start.saturating_add_signed(self.shifts[rank as usize]);
                    let sent = common(rank, start);
                    let held = self.turns[dst.index()].held;
                    self.early += u64::from(held.is_some_and(|(_, start)| common(dst.0, start) < sent));
                    self.awake.push_back(dst.0);
                }
                let (id, awaited) = (MessageId(id.into()), fate == Fate::Awaited);
                lines.push(Line::Message(Message { id, src: task, dst, bytes, awaited, after, time }));
            }
            Body::Collective { slot, operation, amounts } => {
                let (comm, calls) = &mut turn.calls[slot as usize];
                let position = *calls;
                *calls += 1;
                let operations = &mut self.operations[*comm as usize];
                if position >= operations.traced.complete {
                    turn.legacy = Some((after, start.saturating_sub(time.0)));
                    turn.collectives.push(NONE);
                    return true;
                }
                let id = &mut operations.ids[position as usize];
                if *id == NONE {
                    *id = self.next_collective;
                    self.next_collective += 1;
                }
                turn.collectives.push(*id);
                let (id, op) = (CollectiveId((*id).into()), self.codes[operation as usize]);
                let comm = operations.traced.id;
                lines.push(Line::Collective(LocalCollective { id, comm, op, task, amounts, after, time }));
            }
        }
        true
    }

    /// The parked tasks, followed from the first until one comes again.
    #[cold]
    fn circle(&self) -> Vec<Waiting> {
        let waiting = |rank: usize| {
            let (packed, _) = self.turns[rank].held?;
            let After::Received(receive) = packed.after else { return None };
            let source = self.tasks[rank].receives.of(receive)?.peer;
            let message = self.partners[rank].messages[receive as usize].into();
            Some(Waiting { task: Rank(rank as u32), record: self.turns[rank].record, source, message })
        };
        let mut seen = vec![usize::MAX; self.tasks.len()];
        let mut links: Vec<Waiting> = Vec::new();
        let mut at = self.turns.iter().position(|turn| turn.held.is_some());
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

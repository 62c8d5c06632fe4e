//! Explains why a replay is stuck: which task waits for what, and whether they wait in a circle.

use crate::collective::{NOT_YET, OVER};
use crate::engine::Engine;
use crate::live::{Flight, Of};
use crate::message::LiveId;
use crate::running::Running;
use crate::sequence::{PAUSE, Sequence, Wait};
use crate::source::{Found, Located, Wanted};
use hashbrown::HashMap;
use std::fmt;
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::operation::Operation;
use vef_format::raw::{KIND, NOTHING};
use vef_format::text::Line;
use vef_format::units::{Count, Picos};

/// Why nothing happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The latest moment of any call; `None` if that is of no interest.
    pub clock: Option<Picos>,
    /// Number of tasks that wait.
    pub waiting: u64,
    /// The first of them, by job and rank; at most [`Stuck::SHOWN`].
    pub tasks: Vec<StuckTask>,
    /// From the first waiting task to the one that it waits for, and so on to the cause; empty as long as messages are on
    /// their way, for then these are the cause.
    pub chain: Vec<StuckTask>,
    /// The last task of the chain waits for the one in this place of it: a circle, which no delivery can break.
    pub circle: Option<usize>,
    /// Messages that the simulator has taken and not delivered.
    pub live: u64,
    /// The first of them; at most [`Stuck::SHOWN`].
    pub undelivered: Vec<Undelivered>,
    /// Reports of messages sent or delivered that were refused.
    pub refused: u64,
    /// Why the first of these was.
    pub first_refusal: Option<String>,
    /// Why the trace could not be searched for the records that tasks wait for.
    pub unsearched: Option<String>,
}

/// A task that waits, and the record it cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckTask {
    /// Which job, from 0.
    pub job: u32,
    /// Which task.
    pub task: Rank,
    /// Which of its records, from 0, it cannot start; the number of them where all have started.
    pub record: u64,
    /// That record's line in the text trace.
    pub line: Option<u64>,
    /// That record; none where all have started.
    pub next: Option<Line<'static>>,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A message to be delivered, or a send of its own to be complete.
    Message {
        /// Which one.
        id: MessageId,
        /// Whether as its sender.
        as_sender: bool,
        /// Where it stands in the trace, if it does and if that can be found out.
        found: Option<Found>,
        /// Why it has not come.
        state: Awaited,
    },
    /// The simulator to call it ([`Wake`](crate::Wake)).
    Call,
    /// A collective that it has not entered.
    NotEntered {
        /// Which one.
        id: CollectiveId,
        /// The task's part in the trace, if there is one and if that can be found out.
        found: Option<Found>,
        /// Whether the whole trace was searched for it.
        searched: bool,
    },
    /// Others in a collective that it has entered.
    Collective {
        /// Which one.
        id: CollectiveId,
        /// Which operation.
        operation: Operation,
        /// Members whose messages are missing, by communicator rank; at most [`Stuck::SHOWN`].
        missing: Vec<Missing>,
        /// How many messages are missing.
        missing_messages: u32,
        /// Sends of its own that are not complete.
        unsent: u32,
    },
}

/// Why a message that a task waits for has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Its sender has not started it, or the trace does not have it.
    NotStarted,
    /// It has not come; the trace could not be searched for it.
    Unknown,
    /// The simulator has taken it and not delivered it.
    OnItsWay,
    /// It is not for the task that waits for it, which waits in vain.
    GoesElsewhere,
    /// It is not from the task that waits for its completion, which waits in vain.
    SentByAnother,
    /// Its sender is in another partition.
    FromElsewhere,
}

/// A member of a collective for whose message another one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which task.
    pub task: Rank,
    /// Whether it has entered the collective; none of a task in another partition.
    pub entered: Option<bool>,
}

/// A message that the simulator has taken and not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// Its id.
    pub id: LiveId,
    /// Which job, from 0.
    pub job: u32,
    /// The sending task; none where that is in another partition and of a collective that no task here has entered.
    pub src: Option<Rank>,
    /// The receiving task.
    pub dst: Rank,
    /// The point-to-point line, or the collective.
    pub of: Result<MessageId, CollectiveId>,
}

impl Stuck {
    /// Most tasks, messages or members that are listed.
    pub const SHOWN: usize = 8;
}

/// Longest chain that is followed.
const CHAIN: usize = 1000;

impl Engine {
    /// Why not everything is complete, if that is so: what the tasks wait for.
    ///
    /// It is for the moment when the simulator has nothing under way any more. If it still has, then all it says is
    /// that the tasks wait for that.
    pub fn stuck(&self) -> Option<Stuck> {
        let last_call = self.sequences.iter().map(|sequence| sequence.last_call).max().unwrap_or_default();
        self.stuck_at(last_call)
    }

    /// The same, the last call having been at `clock`.
    pub(crate) fn stuck_at(&self, clock: Picos) -> Option<Stuck> {
        if self.is_complete() {
            return None;
        }
        let parts = self.playing();
        let waiting: Vec<u32> = (0u32..)
            .zip(&self.sequences)
            .filter(|(at, sequence)| match sequence.wait {
                Wait::Finished => parts.contains_key(at),
                wait => wait != Wait::Elsewhere,
            })
            .map(|(at, _)| at)
            .collect();
        let (told, unsearched) = self.explain(&waiting, &parts);
        let at = |task: u32| waiting.binary_search(&task).ok();
        let (mut chain, mut circle) = (Vec::new(), None);
        // As long as messages are on their way, these are the cause, and a circle need not be one.
        let live = self.live();
        let mut next = if told.is_empty() || live > 0 { None } else { Some(0) };
        while let Some(here) = next
            && chain.len() < CHAIN
        {
            circle = chain.iter().position(|&earlier| earlier == here);
            if circle.is_some() {
                break;
            }
            chain.push(here);
            let stuck: &StuckTask = &told[here];
            next = stuck.culprit().and_then(|task| at(self.jobs[stuck.job as usize].first_task + task.0));
        }
        Some(Stuck {
            clock: Some(clock),
            waiting: waiting.len() as u64,
            chain: chain.into_iter().map(|at| told[at].clone()).collect(),
            circle,
            live,
            undelivered: self.undelivered(),
            refused: self.refused,
            first_refusal: self.first_refusal.clone(),
            unsearched,
            tasks: told.into_iter().take(Stuck::SHOWN).collect(),
        })
    }

    /// A part that each task is playing: one that it waits for, or one that outlasts its records.
    fn playing(&self) -> HashMap<u32, u32> {
        let parts = self.collectives.parts.iter().filter(|(_, part)| part.cursor.is_some());
        parts.map(|(at, part)| (part.task, at as u32)).collect()
    }

    /// What the waiting tasks wait for, and why not every trace could be searched.
    fn explain(&self, waiting: &[u32], parts: &HashMap<u32, u32>) -> (Vec<StuckTask>, Option<String>) {
        let (mut told, mut unsearched) = (Vec::with_capacity(waiting.len()), None);
        for (number, job) in (0u32..).zip(&self.jobs) {
            let range = job.first_task..job.first_task + job.tasks;
            let rank = |at: u32| Rank(at - job.first_task);
            let waiting: Vec<u32> = waiting.iter().copied().filter(|at| range.contains(at)).collect();
            // For each task two questions: its own record, and what it waits for.
            let wanted: Vec<Wanted> = waiting.iter().flat_map(|&at| self.questions(at, rank(at))).collect();
            let located = if wanted.is_empty() { Located::default() } else { job.source.locate(&wanted) };
            let (found, searched) = (located.found, located.cut.is_none());
            if let Some(cut) = located.cut {
                unsearched.get_or_insert_with(|| cut.to_string());
            }
            for (&at, found) in waiting.iter().zip(found.chunks(2)) {
                let sequence = &self.sequences[at as usize];
                let [own, other] = found else { continue };
                let waits_for = match sequence.wait {
                    Wait::Sent | Wait::Received => WaitsFor::Message {
                        id: MessageId(sequence.next.after),
                        as_sender: sequence.wait == Wait::Sent,
                        found: *other,
                        state: match self.state_of(job, sequence, other.as_ref()) {
                            Awaited::NotStarted if other.is_none() && !searched => Awaited::Unknown,
                            state => state,
                        },
                    },
                    Wait::Collective => {
                        let id = CollectiveId(sequence.next.after);
                        match job.open.get(&id).and_then(|&open| self.collectives.part_of(open, rank(at))) {
                            None | Some(NOT_YET | OVER) => {
                                WaitsFor::NotEntered { id, found: *other, searched }
                            }
                            Some(part) if self.collectives.parts[part as usize].cursor.is_none() => {
                                WaitsFor::NotEntered { id, found: *other, searched }
                            }
                            Some(part) => self.explain_part(part),
                        }
                    }
                    Wait::Turn => WaitsFor::Call,
                    Wait::Nothing | Wait::Finished | Wait::Elsewhere => match parts.get(&at) {
                        Some(&part) => self.explain_part(part),
                        None => continue,
                    },
                };
                told.push(StuckTask {
                    job: number,
                    task: rank(at),
                    record: sequence.records,
                    line: own.and_then(|own| own.line),
                    next: next_record(sequence),
                    waits_for,
                });
            }
        }
        (told, unsearched)
    }

    /// Why the message that a task waits for has not come; `found` is the message, if it was found.
    fn state_of(&self, job: &Running, sequence: &Sequence, found: Option<&Found>) -> Awaited {
        let as_sender = sequence.wait == Wait::Sent;
        let started = match found.map(|found| (found.number, found.record)) {
            Some((_, Line::Message(message))) if as_sender && message.src != sequence.rank => {
                return Awaited::SentByAnother;
            }
            Some((_, Line::Message(message))) if !as_sender && message.dst != sequence.rank => {
                return Awaited::GoesElsewhere;
            }
            Some((number, Line::Message(message))) => {
                let sender = job.first_task + message.src.0;
                if self.is_elsewhere(sender) {
                    return Awaited::FromElsewhere;
                }
                self.sequences[sender as usize].records > number
            }
            _ => job.lines.has_started(sequence.next.after).unwrap_or(false),
        };
        if started { Awaited::OnItsWay } else { Awaited::NotStarted }
    }

    /// The record that a task cannot start, and the one that it waits for.
    fn questions(&self, at: u32, rank: Rank) -> [Wanted; 2] {
        let sequence = &self.sequences[at as usize];
        let own = match next_record(sequence) {
            Some(Line::Message(message)) => Wanted::Line(message.id),
            Some(Line::Collective(part)) => Wanted::Part(part.id, part.task),
            _ => Wanted::Line(MessageId(u64::MAX)),
        };
        let other = match sequence.wait {
            Wait::Sent | Wait::Received => Wanted::Line(MessageId(sequence.next.after)),
            Wait::Collective => Wanted::Part(CollectiveId(sequence.next.after), rank),
            Wait::Nothing | Wait::Turn | Wait::Finished | Wait::Elsewhere => own,
        };
        [own, other]
    }

    fn explain_part(&self, at: u32) -> WaitsFor {
        let part = &self.collectives.parts[at as usize];
        let open = &self.collectives.open[part.open as usize];
        let members = &self.collectives.groups[open.group as usize].members;
        let missing = part.peers_missing().into_iter().take(Stuck::SHOWN).map(|peer| {
            let entered = match open.parts[peer as usize] {
                _ if self.is_elsewhere(self.collectives.task(part.open, peer)) => None,
                NOT_YET => Some(false),
                OVER => Some(true),
                part => Some(self.collectives.parts[part as usize].cursor.is_some()),
            };
            Missing { task: members[peer as usize], entered }
        });
        WaitsFor::Collective {
            id: open.id,
            operation: open.operation,
            missing: missing.collect(),
            missing_messages: part.missing,
            unsent: part.unsent,
        }
    }

    fn undelivered(&self) -> Vec<Undelivered> {
        let message = |(id, flight): (LiveId, &Flight)| match flight.of {
            Of::Line { id: line, .. } => {
                let Sequence { job, rank: src, .. } = self.sequences[flight.src as usize];
                Undelivered { id, job, src: Some(src), dst: Rank(flight.dst), of: Ok(MessageId(line)) }
            }
            Of::Collective { open, .. } => {
                let open = &self.collectives.open[open as usize];
                let members = &self.collectives.groups[open.group as usize].members;
                let (src, dst) = (members[flight.src as usize], members[flight.dst as usize]);
                Undelivered { id, job: open.job, src: Some(src), dst, of: Err(open.id) }
            }
            Of::Imported(collective) => {
                let Sequence { job, rank: dst, .. } = self.sequences[flight.receiver as usize];
                Undelivered { id, job, src: None, dst, of: Err(collective) }
            }
        };
        self.live.iter().take(Stuck::SHOWN).map(message).collect()
    }
}

/// The record that a sequence is about to start, if it is one.
fn next_record(sequence: &Sequence) -> Option<Line<'static>> {
    let is_record = sequence.next.tag & KIND != NOTHING && sequence.next.tag & PAUSE == 0;
    is_record.then(|| sequence.next.line(sequence.rank))
}

impl StuckTask {
    /// The task that keeps it waiting, as far as that is one.
    fn culprit(&self) -> Option<Rank> {
        match &self.waits_for {
            WaitsFor::Message { found: Some(found), state: Awaited::NotStarted, .. } => found.task(),
            WaitsFor::Message { .. } | WaitsFor::Call => None,
            WaitsFor::NotEntered { found, .. } => found.and_then(|found| found.task()),
            WaitsFor::Collective { missing, .. } => {
                let first = missing.iter().find(|member| member.entered == Some(false)).or(missing.first());
                first.map(|member| member.task)
            }
        }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = Count(self.waiting, "task");
        let waiting = format!("{waiting} {}", waiting.agree("waits", "wait"));
        match self.clock {
            Some(clock) => write!(f, "nothing can happen after {clock}: {waiting}")?,
            None => write!(f, "nothing more can happen: {waiting}")?,
        }
        if self.live > 0 {
            write!(f, "\n  taken and not delivered: {}", Count(self.live, "message"))?;
            for message in &self.undelivered {
                write!(f, "\n    {message}")?;
            }
        }
        if let Some(first) = &self.first_refusal {
            write!(f, "\n  refused: {} of the simulator, first: {first}", Count(self.refused, "report"))?;
        }
        if let Some(why) = &self.unsearched {
            write!(f, "\n  the trace could not be searched for the records below: {why}")?;
        }
        for task in &self.tasks {
            write!(f, "\n  {task}")?;
        }
        if self.waiting > self.tasks.len() as u64 {
            write!(f, "\n  … and {} more", self.waiting - self.tasks.len() as u64)?;
        }
        if self.chain.len() < 2 && self.circle.is_none() {
            return Ok(());
        }
        write!(f, "\n  {}", if self.circle.is_some() { "in a circle: " } else { "the cause: " })?;
        for task in self.chain.iter().skip(self.circle.unwrap_or(0)) {
            write!(f, "task {} waits for ", task.task)?;
        }
        match (self.circle, self.chain.last()) {
            (Some(circle), _) => write!(f, "task {}", self.chain[circle].task),
            (None, Some(last)) => write!(f, "{}", last.waits_for),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for StuckTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.job > 0 {
            write!(f, "job {}, ", self.job)?;
        }
        match &self.next {
            None if matches!(self.waits_for, WaitsFor::Message { .. }) => {
                write!(f, "task {}, in front of record {},", self.task, self.record)?;
            }
            None => write!(f, "task {}, all {} records started,", self.task, self.record)?,
            Some(next) => {
                write!(f, "task {}, record {}", self.task, self.record)?;
                if let Some(line) = self.line {
                    write!(f, ", line {line}")?;
                }
                match next {
                    Line::Message(message) if message.is_mark() => write!(f, " (mark {})", message.id)?,
                    Line::Message(message) => write!(f, " (message {} to task {})", message.id, message.dst)?,
                    Line::Collective(part) => write!(f, " ({})", part.id)?,
                    Line::Communicator { id, .. } => write!(f, " ({id})")?,
                }
            }
        }
        write!(f, " waits for {}", self.waits_for)
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { id, as_sender, found, state } => {
                let what = if *as_sender { "its own message" } else { "message" };
                write!(f, "{what} {id}")?;
                if let Some(found) = found {
                    if let Line::Message(message) = found.record {
                        write!(f, " from task {} to task {}", message.src, message.dst)?;
                    }
                    write!(f, " (record {}", found.number)?;
                    if let Some(line) = found.line {
                        write!(f, ", line {line}")?;
                    }
                    f.write_str(")")?;
                }
                f.write_str(match state {
                    Awaited::NotStarted if found.is_none() => ", which is not in the trace",
                    Awaited::NotStarted => ", which has not started",
                    Awaited::Unknown => ", which has not come",
                    Awaited::OnItsWay => ", which is on its way",
                    Awaited::GoesElsewhere => ", which goes to another task",
                    Awaited::SentByAnother => ", which another task sends",
                    Awaited::FromElsewhere => ", whose sender is in another partition",
                })
            }
            Self::Call => f.write_str("the simulator to call it"),
            Self::NotEntered { id, found: None, searched: false } => {
                write!(f, "{id}, which it has not entered")
            }
            Self::NotEntered { id, found: None, searched: true } => {
                write!(f, "{id}, of which the trace has no part of this task")
            }
            Self::NotEntered { id, found: Some(found), .. } => {
                write!(f, "{id}, which it enters later (record {}", found.number)?;
                match found.line {
                    Some(line) => write!(f, ", line {line})"),
                    None => f.write_str(")"),
                }
            }
            Self::Collective { id, operation, missing, missing_messages, unsent } => {
                write!(f, "{id} ({operation})")?;
                if *missing_messages > 0 {
                    write!(f, ": {} missing, from", Count(*missing_messages, "message"))?;
                    for (number, member) in missing.iter().enumerate() {
                        let comma = if number > 0 { "," } else { "" };
                        let entered = match member.entered {
                            Some(true) => "",
                            Some(false) => " (not entered)",
                            None => " (in another partition)",
                        };
                        write!(f, "{comma} task {}{entered}", member.task)?;
                    }
                }
                if *unsent > 0 {
                    write!(f, ": {} not complete", Count(*unsent, "send"))?;
                }
                if *missing_messages == 0 && *unsent == 0 {
                    f.write_str(", which is the simulator's to complete")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.job > 0 {
            write!(f, "job {}, ", self.job)?;
        }
        write!(f, "id {}: ", self.id)?;
        match self.src {
            Some(src) => write!(f, "from task {src} ")?,
            None => f.write_str("from another partition ")?,
        }
        write!(f, "to task {}, ", self.dst)?;
        match self.of {
            Ok(line) => write!(f, "message {line}"),
            Err(collective) => write!(f, "of {collective}"),
        }
    }
}

//! What the engine gives a simulator: messages, and the ids by which the simulator speaks of them.

use crate::events::Collective;
use serde::{Deserialize, Serialize};
use slotmap::{DefaultKey, Key, KeyData};
use std::fmt;
use std::ops::Range;
use vef_format::ids::{CollectiveId, Rank};
use vef_format::operation::Operation;
use vef_format::raw::Raw;
use vef_format::units::{Bytes, Picos};

/// A message to be carried through the network, from the moment it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Hand this back to [`Engine::sent`](crate::Engine::sent) and [`Engine::delivered`](crate::Engine::delivered), or to
    /// those of [`Replay`](crate::Replay).
    pub id: LiveId,
    /// When it starts: its sender hands it to the network.
    pub start: Picos,
    /// When its sender was ready to start it: before [`Message::start`] where the simulator let it wait.
    pub ready: Picos,
    /// Its place among the messages that start at the same moment: those of smaller numbers come first. It follows from job, sender and the
    /// sender's record, so that it is the same in every replay; messages of one record, which are those of a collective, have one
    /// number and are in the order in which they were given.
    pub order: u64,
    /// End node of the sender, by the job's placement.
    pub src_node: u32,
    /// End node of the receiver.
    pub dst_node: u32,
    /// Payload.
    pub bytes: Bytes,
    /// Which of the traces, in the order in which they were given, from 0.
    pub job: u32,
    /// The sending task of that trace.
    pub src: Rank,
    /// The receiving task of that trace.
    pub dst: Rank,
    /// What the message belongs to.
    pub kind: Kind,
}

/// Takes what follows from the calls of an [`Engine`](crate::Engine): a simulator's event queue, a closure, or a `Vec`, which keeps it. It is called before
/// those calls return, and cannot call the engine.
pub trait Sink {
    /// Takes one of the things that follow.
    fn take(&mut self, next: Next);

    /// Takes a collective that the simulator carries out itself, under [`Builder::collective_events`](crate::Builder::collective_events): it
    /// reports the completion of each member by [`Engine::complete_member`](crate::Engine::complete_member).
    fn collective(&mut self, collective: &Collective) {
        let _ = collective;
    }

    /// Whether [`Sink::started`] does anything at present: where it is `false`, the engine makes no reports.
    #[inline(always)]
    fn watches(&self) -> bool {
        true
    }

    /// Takes note of a record that starts. Timelines and statistics are made from this; a simulator needs none of it. For each task the
    /// records come in their order, for a task's last one [`Sink::left`] may follow.
    #[inline(always)]
    fn started(&mut self, started: &Started) {
        let _ = started;
    }

    /// Takes note of a task's part of a collective that is complete: before the record that waits for it starts.
    #[inline(always)]
    fn left(&mut self, left: &Left) {
        let _ = left;
    }

    /// Takes note of a message that leaves and had waited for its receiver: under
    /// [`SendCompletion::RendezvousInCalls`](crate::SendCompletion::RendezvousInCalls) alone.
    fn met(&mut self, met: &Met) {
        let _ = met;
    }

    /// Takes note of an instance of a job that is opened ([`Engine::open`](crate::Engine::open)): its number, which of the builder's jobs it is `of`, its
    /// place among the tasks counted over all jobs, and when they start. What its tasks do follows.
    fn opened(&mut self, job: u32, of: u32, tasks: Range<u32>, start: Picos) {
        let _ = (job, of, tasks, start);
    }

    /// Takes note of a job that [is over](crate::Engine::is_over): once for each of its runs, at the end of the call of the engine by which it ended.
    fn over(&mut self, job: u32) {
        let _ = job;
    }

    /// Takes note of the time that a replay has reached: no message that is taken from here on starts before `now`.
    /// [`yardstick::watch`](crate::yardstick::watch) calls it before each of its events; an engine does not, as its simulator owns the clock.
    #[inline(always)]
    fn reached(&mut self, now: Picos) {
        let _ = now;
    }
}

/// A record of a task that starts ([`Sink::started`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which of the traces, from 0.
    pub job: u32,
    /// The task of that trace.
    pub task: Rank,
    /// The number of the record among those of its task, from 0.
    pub number: u64,
    /// The record. `None`: no record, but the end of computing behind a wait; in front of the record `number` the task then waits for a
    /// send.
    pub record: Option<Raw>,
    /// What it waited for, as the bits of [`DEPENDENCY`](vef_format::raw::DEPENDENCY) say: a send or a received message by its line, a collective.
    pub dependency: u8,
    /// The line, or the collective.
    pub after: u64,
    /// When the record before had started, and what this one waits for had come: its computing time begins.
    pub released: Picos,
    /// When it starts: behind its computing time, and when the simulator let it.
    pub at: Picos,
}

/// A task's part of a collective that is complete ([`Sink::left`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Which of the traces, from 0.
    pub job: u32,
    /// The task of that trace.
    pub task: Rank,
    /// The collective.
    pub id: CollectiveId,
    /// When.
    pub at: Picos,
    /// Whether the parts of all members are complete.
    pub last: bool,
}

/// A message that leaves and had waited for its receiver to be in a call of MPI ([`Sink::met`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// Which of the traces, from 0.
    pub job: u32,
    /// The sending task.
    pub src: Rank,
    /// The receiving task, which computed.
    pub dst: Rank,
    /// The point-to-point line; `None` of a collective.
    pub line: Option<u64>,
    /// When its sender started it.
    pub ready: Picos,
    /// When it leaves.
    pub at: Picos,
}

impl<F: FnMut(Next)> Sink for F {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        self(next);
    }
}

impl Sink for Vec<Next> {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        self.push(next);
    }
}

/// What follows from the start of the tasks, from a delivery, or from any other call of an [`Engine`](crate::Engine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A message starts, at [`Message::start`].
    Message(Message),
    /// A message starts that stays within its node, under [`SameNode::Inside`](crate::SameNode::Inside): it does not enter the
    /// network, and is to be reported delivered at `arrives`.
    Inside {
        /// The message.
        message: Message,
        /// When it is delivered.
        arrives: Picos,
    },
    /// A task has started as many messages as it may before the simulator has come to their time: it continues when it is called.
    Wake(Wake),
}

impl Next {
    /// When it happens: a message starts, or arrives within its node, or a task is to be called.
    #[inline]
    pub fn at(&self) -> Picos {
        match self {
            Self::Message(message) => message.start,
            Self::Inside { arrives, .. } => *arrives,
            Self::Wake(wake) => wake.at,
        }
    }
}

/// A call that a task waits for: [`Engine::wake`](crate::Engine::wake).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "its task waits until it is called"]
pub struct Wake {
    /// When to call it, or later: what starts then does so at that later moment.
    pub at: Picos,
    pub(crate) target: WakeTarget,
    /// Whether no message for the simulator follows from it at once: what it starts stays within its node, or is none.
    pub(crate) inside: bool,
}

impl Wake {
    /// As plain numbers, to go through a simulator's own structures: [`Wake::at`], and whom to call.
    pub fn to_raw(self) -> (Picos, u64) {
        (self.at, u64::from(self.target.0) | u64::from(self.inside) << u32::BITS)
    }

    /// Back from the plain numbers. Any may be given: the engine refuses a call that no task waits for.
    pub fn from_raw(at: Picos, raw: u64) -> Self {
        Self { at, target: WakeTarget(raw as u32), inside: raw >> u32::BITS & 1 != 0 }
    }
}

/// Who waits to be called: a task, counted over all jobs; a part of a collective ([`WakeTarget::PART`]); a message that waited for its
/// receiver ([`WakeTarget::HELD`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WakeTarget(pub(crate) u32);

impl WakeTarget {
    /// Bit of a part of a collective; the others are its key.
    pub(crate) const PART: u32 = 1 << 31;
    /// Bit of a message; the others are the slot of its id.
    pub(crate) const HELD: u32 = 1 << 30;

    /// Who it is.
    #[inline(always)]
    pub(crate) fn who(self) -> Called {
        if self.0 & Self::PART != 0 {
            Called::Part(self.0 & !Self::PART)
        } else if self.0 & Self::HELD != 0 {
            Called::Held(self.0 & !Self::HELD)
        } else {
            Called::Task(self.0)
        }
    }
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// The task of that number.
    Task(u32),
    /// The part of a collective with that key.
    Part(u32),
    /// The message in that slot.
    Held(u32),
}

/// What a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A point-to-point line of the trace.
    PointToPoint,
    /// A step of a collective operation.
    Collective(Operation),
}

impl Kind {
    /// Number of different kinds.
    pub const COUNT: usize = 1 + Operation::ALL.len();

    /// Every kind, point-to-point first, then the operations in the order of [`Operation::ALL`].
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::PointToPoint).chain(Operation::ALL.iter().copied().map(Self::Collective))
    }

    /// Place in the order of [`Kind::all`].
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Self::PointToPoint => 0,
            Self::Collective(operation) => 1 + operation as usize,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PointToPoint => f.write_str("point-to-point"),
            Self::Collective(operation) => operation.fmt(f),
        }
    }
}

/// The id of a live message: one that has started and is not delivered.
///
/// It names a slot and how often the slot was used, so that an id which was invented, or whose message is
/// delivered, is recognised (until its slot was used 2^31 times more). 0 is never an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LiveId(u64);

impl LiveId {
    /// The id as a plain number, to go through a simulator's own structures.
    #[inline]
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// Back from the plain number. Any number may be given: the engine refuses one that names no live message.
    #[inline]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// A small number that no other live message has: an index for a simulator's own tables. Later messages have it again.
    #[inline]
    pub const fn slot(self) -> u32 {
        self.0 as u32
    }

    /// Its key in the table of live messages. The table gives odd versions alone, and takes an even one for the odd one behind it.
    #[inline(always)]
    pub(crate) fn key(self) -> DefaultKey {
        KeyData::from_ffi(self.0).into()
    }

    /// Whether its version is odd.
    #[inline(always)]
    pub(crate) fn is_possible(self) -> bool {
        self.0 >> u32::BITS & 1 != 0
    }

    #[inline(always)]
    pub(crate) fn of_key(key: DefaultKey) -> Self {
        Self(key.data().as_ffi())
    }
}

impl fmt::Display for LiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

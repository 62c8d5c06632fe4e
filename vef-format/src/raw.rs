//! A record of a task as plain numbers: what readers give to those who cannot afford to take enums apart.

use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, Line, LocalCollective, Message};
use crate::units::{Bytes, Ticks};

/// Bits of a tag: what the record waits for, as [`Dependency::code`] numbers it.
pub const DEPENDENCY: u8 = 3;
/// Bit of a tag: somebody waits for the reception of this message. With the two bits below it, the field `dep` of a line.
pub const AWAITED: u8 = 4;
/// Bits of a tag: what the record is, one of the four below. No format uses the bits above.
pub const KIND: u8 = 24;
/// A local mark.
pub const MARK: u8 = 0;
/// A message.
pub const MESSAGE: u8 = 8;
/// A part of a collective.
pub const COLLECTIVE: u8 = 16;
/// No record.
pub const NOTHING: u8 = 24;

/// A record as plain fields; its task is told beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Raw {
    /// Computing time in front of it, in ticks.
    pub time: u64,
    /// The id, of a message or mark, or of a collective.
    pub id: u64,
    /// The id of what it waits for; 0 where that is nothing.
    pub after: u64,
    /// Payload, or what the task contributes to a collective.
    pub bytes: u64,
    /// What the task obtains from a collective.
    pub recv: u64,
    /// The receiver, or the collective's communicator; a mark's own task.
    pub to: u32,
    /// The operation's code, of a collective.
    pub op: u16,
    /// What it is and waits for: [`DEPENDENCY`], [`AWAITED`], [`KIND`].
    pub tag: u8,
}

/// A local mark that waits for the send, or the mark, in front of it, as it comes together with the message behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadingMark {
    /// The id of what it waits for.
    pub after: u64,
    /// Its id.
    pub id: u64,
    /// Computing time in front of it, in ticks.
    pub time: u64,
}

impl LeadingMark {
    /// The record of `task` that this is.
    pub fn raw(self, task: Rank) -> Raw {
        let Self { after, id, time } = self;
        Raw { tag: MARK | 1, op: 0, to: task.0, id, bytes: 0, recv: 0, time, after }
    }
}

/// What a [`Raw`] record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawKind {
    /// A local mark.
    Mark,
    /// A message.
    Message,
    /// A part of a collective.
    Collective,
}

impl Raw {
    /// No record.
    pub const NOTHING: Self =
        Self { time: 0, id: 0, after: 0, bytes: 0, recv: 0, to: 0, op: 0, tag: NOTHING };

    /// A message, or mark, of task `src`; `dep` is that of its line.
    #[inline(always)]
    pub(crate) fn message(dep: u8, src: u32, dst: u32, id: u64, bytes: u64, time: u64, after: u64) -> Self {
        // As `Message::is_mark` has it.
        let more_than_a_mark = u64::from(src ^ dst) | bytes | u64::from(dep & AWAITED);
        let kind = if more_than_a_mark == 0 { MARK } else { MESSAGE };
        Self { tag: dep | kind, op: 0, to: dst, id, bytes, recv: 0, time, after }
    }

    /// What its task, `message.src`, makes of a message or mark.
    #[inline]
    pub fn of_message(message: &Message) -> Self {
        let dep = message.after.code() | if message.awaited { AWAITED } else { 0 };
        let (id, bytes, time) = (message.id.0, message.bytes.0, message.time.0);
        Self::message(dep, message.src.0, message.dst.0, id, bytes, time, after(message.after))
    }

    /// What its task makes of its part of a collective.
    #[inline]
    pub fn of_collective(part: &LocalCollective) -> Self {
        Self {
            tag: part.after.code() | COLLECTIVE,
            op: part.op.0,
            to: part.comm.0,
            id: part.id.0,
            bytes: part.amounts.send.0,
            recv: part.amounts.recv.0,
            time: part.time.0,
            after: after(part.after),
        }
    }

    /// Whether this is a mark behind a send (or mark) of that id, of its own task.
    #[inline(always)]
    pub fn is_mark_behind(&self, id: u64) -> bool {
        self.tag & (KIND | DEPENDENCY) == MARK | 1 && self.after == id
    }

    /// What it is.
    #[inline(always)]
    pub fn kind(&self) -> RawKind {
        match self.tag & KIND {
            MESSAGE => RawKind::Message,
            COLLECTIVE => RawKind::Collective,
            _ => RawKind::Mark,
        }
    }

    /// Whether somebody waits for the reception of this message.
    #[inline(always)]
    pub fn awaited(&self) -> bool {
        self.tag & AWAITED != 0
    }

    /// What [`Raw::after`] is, as [`Dependency::code`] numbers it.
    #[inline(always)]
    pub fn dependency_code(&self) -> u8 {
        self.tag & DEPENDENCY
    }

    /// The record of `task` that this is.
    #[inline]
    pub fn line(self, task: Rank) -> Line<'static> {
        let after = match self.dependency_code() {
            0 => Dependency::Start,
            1 => Dependency::Sent(MessageId(self.after)),
            2 => Dependency::Received(MessageId(self.after)),
            _ => Dependency::Collective(CollectiveId(self.after)),
        };
        let time = Ticks(self.time);
        match self.kind() {
            RawKind::Collective => Line::Collective(LocalCollective {
                id: CollectiveId(self.id),
                comm: CommId(self.to),
                op: OpCode(self.op),
                task,
                amounts: Amounts { send: Bytes(self.bytes), recv: Bytes(self.recv) },
                after,
                time,
            }),
            RawKind::Mark | RawKind::Message => Line::Message(Message {
                id: MessageId(self.id),
                src: task,
                dst: Rank(self.to),
                bytes: Bytes(self.bytes),
                awaited: self.awaited(),
                after,
                time,
            }),
        }
    }
}

/// The id of what is waited for; 0 where that is nothing.
#[inline]
fn after(dependency: Dependency) -> u64 {
    match dependency {
        Dependency::Start => 0,
        Dependency::Sent(id) | Dependency::Received(id) => id.0,
        Dependency::Collective(id) => id.0,
    }
}

//! Records as plain numbers, for readers that must avoid matching on enums.

use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, Line, LocalCollective, Message};
use crate::units::{Bytes, Ticks};

/// Bits of a tag: the kind of dependency, as in [`Dependency::code`].
pub const DEPENDENCY: u8 = 3;
/// Bit of a tag: a record waits for the reception of this message. With the two bits below, the field `dep` of a line.
pub const AWAITED: u8 = 4;
/// Bits of a tag: the kind of record, one of the four below. No format uses the bits above.
pub const KIND: u8 = 24;
/// A local mark.
pub const MARK: u8 = 0;
/// A message.
pub const MESSAGE: u8 = 8;
/// A part of a collective.
pub const COLLECTIVE: u8 = 16;
/// No record.
pub const NOTHING: u8 = 24;

/// A record as plain fields, without its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[repr(C)]
pub struct Raw {
    /// Computing time in front of it, in ticks.
    pub time: u64,
    /// Id of the message or mark, or of the collective.
    pub id: u64,
    /// Id of the dependency; 0 without one.
    pub after: u64,
    /// Payload of a message, or bytes that the task sends in a collective.
    pub bytes: u64,
    /// Bytes that the task receives in a collective.
    pub recv: u64,
    /// Destination of a message, communicator of a collective, or task of a mark.
    pub to: u32,
    /// Operation code of a collective.
    pub op: u16,
    /// [`DEPENDENCY`], [`AWAITED`] and [`KIND`].
    pub tag: u8,
}

/// A local mark that depends on the previous send or mark, read together with the message that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadingMark {
    /// Id of its dependency.
    pub after: u64,
    /// Its id.
    pub id: u64,
    /// Computing time in front of it, in ticks.
    pub time: u64,
}

impl LeadingMark {
    /// The mark as a record of `task`.
    pub fn raw(self, task: Rank) -> Raw {
        let Self { after, id, time } = self;
        Raw { tag: MARK | 1, op: 0, to: task.0, id, bytes: 0, recv: 0, time, after }
    }
}

/// The kind of a [`Raw`] record.
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

    /// A message or mark of task `src`; `dep` is the field of its line.
    #[inline(always)]
    pub fn message(dep: u8, src: u32, dst: u32, id: u64, bytes: u64, time: u64, after: u64) -> Self {
        // The definition of `Message::is_mark`.
        let more_than_a_mark = u64::from(src ^ dst) | bytes | u64::from(dep & AWAITED);
        let kind = if more_than_a_mark == 0 { MARK } else { MESSAGE };
        Self { tag: dep | kind, op: 0, to: dst, id, bytes, recv: 0, time, after }
    }

    /// Converts a message or mark of task `message.src`.
    #[inline]
    pub fn of_message(message: &Message) -> Self {
        let dep = message.after.code() | if message.awaited { AWAITED } else { 0 };
        let (id, bytes, time) = (message.id.0, message.bytes.0, message.time.0);
        Self::message(dep, message.src.0, message.dst.0, id, bytes, time, after(message.after))
    }

    /// Converts a part of a collective.
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

    /// Whether this is a mark that depends on the send or mark `id` of its own task.
    #[inline(always)]
    pub fn is_mark_behind(&self, id: u64) -> bool {
        self.tag & (KIND | DEPENDENCY) == MARK | 1 && self.after == id
    }

    /// Whether this is a part of a collective.
    #[inline(always)]
    pub fn is_collective(&self) -> bool {
        self.tag & KIND == COLLECTIVE
    }

    /// The kind of the record.
    #[inline(always)]
    pub fn kind(&self) -> RawKind {
        match self.tag & KIND {
            MESSAGE => RawKind::Message,
            COLLECTIVE => RawKind::Collective,
            _ => RawKind::Mark,
        }
    }

    /// Whether a record waits for the reception of this message.
    #[inline(always)]
    pub fn awaited(&self) -> bool {
        self.tag & AWAITED != 0
    }

    /// The kind of [`Raw::after`], as in [`Dependency::code`].
    #[inline(always)]
    pub fn dependency_code(&self) -> u8 {
        self.tag & DEPENDENCY
    }

    /// Converts the record, of `task`.
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

/// Id of the dependency; 0 without one.
#[inline]
fn after(dependency: Dependency) -> u64 {
    match dependency {
        Dependency::Start => 0,
        Dependency::Sent(id) | Dependency::Received(id) => id.0,
        Dependency::Collective(id) => id.0,
    }
}

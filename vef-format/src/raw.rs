//! A record of a task as plain numbers: what readers give to those who cannot afford to take enums apart.

use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, LocalCollective, Message};
use crate::text::Line;
use crate::units::{Bytes, Ticks};

/// Bits of a tag: what the record waits for, as [`Dependency::code`] numbers it.
pub(crate) const DEPENDENCY: u8 = 3;
/// Somebody waits for the reception of this message. With the two bits below it, the field `dep` of a line.
pub(crate) const AWAITED: u8 = 4;
/// What the record is.
pub(crate) const KIND: u8 = 24;
pub(crate) const MARK: u8 = 0;
pub(crate) const MESSAGE: u8 = 8;
pub(crate) const COLLECTIVE: u8 = 16;

/// A record as plain fields; its task is told beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    pub(crate) tag: u8,
    /// The operation's code, of a collective.
    pub op: u16,
    /// The receiver, or the collective's communicator; a mark's own task.
    pub to: u32,
    /// The id, of a message or mark, or of a collective.
    pub id: u64,
    /// Payload, or what the task contributes to a collective.
    pub bytes: u64,
    /// What the task obtains from a collective.
    pub recv: u64,
    /// Computing time in front of it, in ticks.
    pub time: u64,
    /// The id of what it waits for; 0 where that is nothing.
    pub after: u64,
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

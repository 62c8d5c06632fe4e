//! A record as the engine reads it: plain fields of a fixed place, without the task that it belongs to.

use super::Step;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, OpCode};
use vef_format::raw::Raw;
use vef_format::record::{Dependency, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

/// A record of a task, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Row {
    pub(crate) time: u64,
    pub(crate) id: u64,
    /// The id of what it waits for, under `waits`.
    pub(crate) after: u64,
    /// Payload, or what the task contributes to a collective.
    pub(crate) bytes: u64,
    /// The receiver, or the communicator.
    pub(crate) to: u32,
    /// The operation's code; of a message, [`Row::AWAITED`] and [`Row::DETACHED`].
    pub(crate) op: u16,
    pub(crate) what: What,
    pub(crate) waits: Waits,
    /// What the task obtains from a collective.
    pub(crate) recv: u64,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Mark,
    Message,
    Collective,
    /// No record.
    Nothing,
    /// No record, but the moment at which its task had waited for a send.
    Pause,
}

/// Which kind of thing a row waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Start,
    /// As far as the sender waits for it where it sends.
    Sent,
    Received,
    Collective,
    /// A send of its own to be complete.
    Complete,
}

impl Row {
    /// No record.
    pub(crate) const NOTHING: Self = Self {
        time: 0,
        id: 0,
        after: 0,
        bytes: 0,
        to: 0,
        op: 0,
        what: What::Nothing,
        waits: Waits::Start,
        recv: 0,
    };

    /// In place of an operation: a message whose reception is waited for.
    pub(crate) const AWAITED: u16 = 1;
    /// In place of an operation: a message at which its sender never waits.
    pub(crate) const DETACHED: u16 = 2;

    #[inline(always)]
    pub(crate) fn from_raw(raw: &Raw) -> Self {
        let Raw { op, to, id, bytes, recv, time, after, .. } = *raw;
        let tagged = Self::of_tag(raw.tag());
        Self { time, id, after, bytes, recv, to, op: op | tagged.op, ..tagged }
    }

    /// A row without its numbers, from [`Raw::tag`].
    #[inline(always)]
    pub(crate) fn of_tag(tag: u8) -> Self {
        let what = match tag >> 3 {
            0 => What::Mark,
            1 => What::Message,
            2 => What::Collective,
            _ => What::Nothing,
        };
        let waits = match tag & 3 {
            0 => Waits::Start,
            1 => Waits::Sent,
            2 => Waits::Received,
            _ => Waits::Collective,
        };
        let op = if tag & 4 == 0 { 0 } else { Self::AWAITED };
        Self { op, what, waits, ..Self::NOTHING }
    }

    #[cfg(test)]
    pub(crate) fn from_step(step: &Step) -> Self {
        Self::from_raw(&step.to_raw())
    }

    /// The record of that task, if it is one.
    pub(crate) fn to_step(self, task: Rank) -> Option<Step> {
        let after = match self.waits {
            Waits::Start => Dependency::Start,
            Waits::Sent | Waits::Complete => Dependency::Sent(MessageId(self.after)),
            Waits::Received => Dependency::Received(MessageId(self.after)),
            Waits::Collective => Dependency::Collective(CollectiveId(self.after)),
        };
        let time = Ticks(self.time);
        match self.what {
            What::Nothing | What::Pause => None,
            What::Collective => Some(Step::Collective(LocalCollective {
                id: CollectiveId(self.id),
                comm: CommId(self.to),
                op: OpCode(self.op),
                task,
                amounts: Amounts { send: Bytes(self.bytes), recv: Bytes(self.recv) },
                after,
                time,
            })),
            What::Mark | What::Message => Some(Step::Message(Message {
                id: MessageId(self.id),
                src: task,
                dst: Rank(self.to),
                bytes: Bytes(self.bytes),
                awaited: self.op & Self::AWAITED != 0,
                after,
                time,
            })),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u64> {
        let edge = u64::from(u32::MAX);
        prop_oneof![4 => 0u64..100, 1 => edge - 1..edge + 2, 1 => any::<u64>(), 1 => Just((1 << 59) - 1), 1 => Just(1 << 59)]
    }

    pub(crate) fn step_of_task_3() -> impl Strategy<Value = Step> {
        let after = (0..4u8, number()).prop_map(|(code, id)| match code {
            0 => Dependency::Start,
            1 => Dependency::Sent(MessageId(id)),
            2 => Dependency::Received(MessageId(id)),
            _ => Dependency::Collective(CollectiveId(id)),
        });
        let numbers = (number(), number(), number(), number());
        (any::<bool>(), after, numbers, 0u32..6, any::<u16>(), any::<bool>()).prop_map(
            |(message, after, (id, time, one, other), to, op, awaited)| match message {
                true => Step::Message(Message {
                    id: MessageId(id),
                    src: Rank(3),
                    dst: Rank(to),
                    bytes: Bytes(one),
                    awaited,
                    after,
                    time: Ticks(time),
                }),
                false => Step::Collective(LocalCollective {
                    id: CollectiveId(id),
                    comm: CommId(to),
                    op: OpCode(op),
                    task: Rank(3),
                    amounts: Amounts { send: Bytes(one), recv: Bytes(other) },
                    after,
                    time: Ticks(time),
                }),
            },
        )
    }

    proptest! {
        #[test]
        fn a_row_is_the_record(step in step_of_task_3()) {
            prop_assert_eq!(Row::from_step(&step).to_step(Rank(3)), Some(step));
        }
    }
}

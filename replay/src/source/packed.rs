//! Records in 32 bytes each, linked into one list a task.

use super::Step;
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::record::{Dependency, Message};
use vef_format::units::{Bytes, Ticks};

/// "No record": the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// A record without its task, and the place of the task's next one. What does not fit (collectives, ids above
/// 32 bits, times above 60 bits) stands in a table beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    /// Ticks, above four bits that say what this is.
    time: u64,
    bytes: u64,
    /// The id, or the place in the table.
    id: u32,
    /// The id of what it waits for.
    after: u32,
    dst: u32,
    pub(crate) next: u32,
}

const WIDE: u64 = 1;
const AWAITED: u64 = 2;
const AFTER_SHIFT: u32 = 2;
const TIME_SHIFT: u32 = 4;

/// A step as it is to be stored.
pub(crate) enum Packing {
    /// It fits.
    Small(Packed),
    /// It goes into the table; the place of it is filled in by [`Packed::wide`].
    Wide(Step),
}

impl Packed {
    #[inline]
    pub(crate) fn pack(step: &Step) -> Packing {
        let Step::Message(message) = step else { return Packing::Wide(*step) };
        let (code, after) = match message.after {
            Dependency::Start => (0, 0),
            Dependency::Sent(id) => (1, id.0),
            Dependency::Received(id) => (2, id.0),
            Dependency::Collective(id) => (3, id.0),
        };
        let (Ok(id), Ok(after)) = (u32::try_from(message.id.0), u32::try_from(after)) else {
            return Packing::Wide(*step);
        };
        if message.time.0 >> (64 - TIME_SHIFT) != 0 {
            return Packing::Wide(*step);
        }
        let awaited = if message.awaited { AWAITED } else { 0 };
        Packing::Small(Self {
            time: message.time.0 << TIME_SHIFT | code << AFTER_SHIFT | awaited,
            bytes: message.bytes.0,
            id,
            after,
            dst: message.dst.0,
            next: NIL,
        })
    }

    pub(crate) fn wide(place: u32) -> Self {
        Self { time: WIDE, bytes: 0, id: place, after: 0, dst: 0, next: NIL }
    }

    /// The step, or the place of it in the table.
    #[inline]
    pub(crate) fn unpack(&self, task: Rank) -> Result<Step, u32> {
        if self.time & WIDE != 0 {
            return Err(self.id);
        }
        let after = match self.time >> AFTER_SHIFT & 3 {
            0 => Dependency::Start,
            1 => Dependency::Sent(MessageId(self.after.into())),
            2 => Dependency::Received(MessageId(self.after.into())),
            _ => Dependency::Collective(CollectiveId(self.after.into())),
        };
        Ok(Step::Message(Message {
            id: MessageId(self.id.into()),
            src: task,
            dst: Rank(self.dst),
            bytes: Bytes(self.bytes),
            awaited: self.time & AWAITED != 0,
            after,
            time: Ticks(self.time >> TIME_SHIFT),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = Message> {
        let id =
            prop_oneof![4 => 0u64..100, 1 => (u32::MAX as u64 - 1)..(u32::MAX as u64 + 2), 1 => any::<u64>()];
        let time =
            prop_oneof![4 => 0u64..1000, 1 => any::<u64>(), 1 => Just((1 << 60) - 1), 1 => Just(1 << 60)];
        (id.clone(), any::<u32>(), any::<u64>(), any::<bool>(), 0..4u8, id, time).prop_map(
            |(id, dst, bytes, awaited, code, after, time)| Message {
                id: MessageId(id),
                src: Rank(3),
                dst: Rank(dst),
                bytes: Bytes(bytes),
                awaited,
                after: match code {
                    0 => Dependency::Start,
                    1 => Dependency::Sent(MessageId(after)),
                    2 => Dependency::Received(MessageId(after)),
                    _ => Dependency::Collective(CollectiveId(after)),
                },
                time: Ticks(time),
            },
        )
    }

    proptest! {
        #[test]
        fn unpacks_what_was_packed(message in message()) {
            match Packed::pack(&Step::Message(message)) {
                Packing::Small(packed) => prop_assert_eq!(packed.unpack(Rank(3)), Ok(Step::Message(message))),
                Packing::Wide(step) => prop_assert_eq!(step, Step::Message(message)),
            }
        }
    }

    #[test]
    fn a_record_is_32_bytes() {
        assert_eq!(size_of::<Packed>(), 32);
    }
}

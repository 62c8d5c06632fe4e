//! Records in 32 bytes each, linked into one list a task.

use vef_format::raw::{COLLECTIVE, KIND, Raw};

/// "No record": the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// A record, and the place of its task's next one. What does not fit (collectives, ids above 32 bits, times above 59
/// bits) stands in a table beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    /// Ticks, above the five bits of [`Raw::tag`].
    time: u64,
    bytes: u64,
    /// The id, or the place in the table.
    id: u32,
    /// The id of what it waits for.
    after: u32,
    to: u32,
    pub(crate) next: u32,
}

const TAG_BITS: u32 = 5;
/// In the place of the tag: the record is in the table.
const IN_TABLE: u64 = 0x1f;

impl Packed {
    /// `None` if it does not fit.
    #[inline(always)]
    pub(crate) fn of(raw: &Raw) -> Option<Self> {
        let fits = raw.tag & KIND != COLLECTIVE
            && (raw.id | raw.after) >> u32::BITS == 0
            && raw.time >> (u64::BITS - TAG_BITS) == 0;
        let time = raw.time << TAG_BITS | u64::from(raw.tag);
        let (id, after) = (raw.id as u32, raw.after as u32);
        fits.then_some(Self { time, bytes: raw.bytes, id, after, to: raw.to, next: NIL })
    }

    /// What stands for the record in that place of the table.
    pub(crate) fn in_table(place: u32) -> Self {
        Self { time: IN_TABLE, bytes: 0, id: place, after: 0, to: 0, next: NIL }
    }

    /// The record, or its place in the table.
    #[inline(always)]
    pub(crate) fn unpack(&self) -> Result<Raw, u32> {
        let tag = self.time & IN_TABLE;
        if tag == IN_TABLE {
            return Err(self.id);
        }
        let (time, id, after) = (self.time >> TAG_BITS, self.id.into(), self.after.into());
        Ok(Raw { time, id, after, bytes: self.bytes, recv: 0, to: self.to, op: 0, tag: tag as u8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vef_format::ids::{CollectiveId, MessageId, Rank};
    use vef_format::record::{Dependency, Message};
    use vef_format::units::{Bytes, Ticks};

    fn number() -> impl Strategy<Value = u64> {
        let edge = u64::from(u32::MAX);
        prop_oneof![4 => 0u64..100, 1 => edge - 1..edge + 2, 1 => any::<u64>(), 1 => Just((1 << 59) - 1), 1 => Just(1 << 59)]
    }

    fn message() -> impl Strategy<Value = Message> {
        let after = (0..4u8, number()).prop_map(|(code, id)| match code {
            0 => Dependency::Start,
            1 => Dependency::Sent(MessageId(id)),
            2 => Dependency::Received(MessageId(id)),
            _ => Dependency::Collective(CollectiveId(id)),
        });
        (after, number(), number(), number(), 0u32..6, any::<bool>()).prop_map(
            |(after, id, time, bytes, dst, awaited)| Message {
                id: MessageId(id),
                src: Rank(3),
                dst: Rank(dst),
                bytes: Bytes(bytes),
                awaited,
                after,
                time: Ticks(time),
            },
        )
    }

    proptest! {
        #[test]
        fn unpacks_what_was_packed(message in message()) {
            let raw = Raw::of_message(&message);
            let small = raw.id.max(raw.after) <= u64::from(u32::MAX) && raw.time < 1 << 59;
            prop_assert_eq!(Packed::of(&raw).map(|packed| packed.unpack()), small.then_some(Ok(raw)));
            prop_assert_eq!(Packed::in_table(7).unpack(), Err(7));
        }
    }

    #[test]
    fn a_record_is_32_bytes() {
        assert_eq!(size_of::<Packed>(), 32);
    }
}

//! Records in 32 bytes each, linked into one list a task.

use super::row::Row;
use vef_format::raw::{Raw, RawKind};

/// "No record": the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// A row, and the place of its task's next one. What does not fit (collectives, ids above 32 bits, times above 59
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
/// In the place of the tag: the row is in the table.
const IN_TABLE: u64 = 0x1f;

impl Packed {
    /// `None` if it does not fit.
    #[inline(always)]
    pub(crate) fn of(raw: &Raw) -> Option<Self> {
        let fits = raw.kind() != RawKind::Collective
            && (raw.id | raw.after) >> u32::BITS == 0
            && raw.time >> (u64::BITS - TAG_BITS) == 0;
        let time = raw.time << TAG_BITS | u64::from(raw.tag());
        let (id, after) = (raw.id as u32, raw.after as u32);
        fits.then_some(Self { time, bytes: raw.bytes, id, after, to: raw.to, next: NIL })
    }

    /// What stands for the row in that place of the table.
    pub(crate) fn in_table(place: u32) -> Self {
        Self { time: IN_TABLE, bytes: 0, id: place, after: 0, to: 0, next: NIL }
    }

    /// The row, or its place in the table.
    #[inline(always)]
    pub(crate) fn unpack(&self) -> Result<Row, u32> {
        let tag = self.time & IN_TABLE;
        if tag == IN_TABLE {
            return Err(self.id);
        }
        let (time, id, after) = (self.time >> TAG_BITS, self.id.into(), self.after.into());
        Ok(Row { time, id, after, bytes: self.bytes, to: self.to, ..Row::of_tag(tag as u8) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::row::tests::step_of_task_3;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpacks_what_was_packed(step in step_of_task_3()) {
            if let Some(packed) = Packed::of(&step.to_raw()) {
                prop_assert_eq!(packed.unpack(), Ok(Row::from_step(&step)));
            }
            prop_assert_eq!(Packed::in_table(7).unpack(), Err(7));
        }
    }

    #[test]
    fn a_record_is_32_bytes() {
        assert_eq!(size_of::<Packed>(), 32);
    }
}

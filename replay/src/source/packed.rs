//! Records in 32 bytes each, linked into one list a task.

use super::row::{Row, Waits, What};

/// "No record": the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// A row, and the place of its task's next one. What does not fit (collectives, ids above 32 bits, times above 59
/// bits) stands in a table beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    /// Ticks, above five bits that say what this is.
    time: u64,
    bytes: u64,
    /// The id, or the place in the table.
    id: u32,
    /// The id of what it waits for.
    after: u32,
    to: u32,
    pub(crate) next: u32,
}

const WHAT_BITS: u32 = 3;
const TIME_SHIFT: u32 = 5;
/// In the place of [`What`]: the row is in the table.
const IN_TABLE: u64 = 0;

impl Packed {
    /// `None` if it does not fit.
    #[inline]
    pub(crate) fn pack(row: &Row) -> Option<Self> {
        let what = match row.what {
            What::Mark => 1,
            What::Message if row.op == 0 => 2,
            What::Message => 3,
            What::Nothing | What::Collective | What::Pause => return None,
        };
        let (Ok(id), Ok(after)) = (u32::try_from(row.id), u32::try_from(row.after)) else { return None };
        if row.time >> (u64::BITS - TIME_SHIFT) != 0 {
            return None;
        }
        let waits = match row.waits {
            Waits::Start => 0,
            Waits::Sent => 1,
            Waits::Received => 2,
            Waits::Collective => 3,
            // Comes from containers only.
            Waits::Complete => return None,
        };
        let time = row.time << TIME_SHIFT | waits << WHAT_BITS | what;
        Some(Self { time, bytes: row.bytes, id, after, to: row.to, next: NIL })
    }

    /// What stands for the row in that place of the table.
    pub(crate) fn in_table(place: u32) -> Self {
        Self { time: IN_TABLE, bytes: 0, id: place, after: 0, to: 0, next: NIL }
    }

    /// The row, or its place in the table.
    #[inline]
    pub(crate) fn unpack(&self) -> Result<Row, u32> {
        let (what, op) = match self.time & 7 {
            IN_TABLE => return Err(self.id),
            1 => (What::Mark, 0),
            2 => (What::Message, 0),
            _ => (What::Message, Row::AWAITED),
        };
        let waits = match self.time >> WHAT_BITS & 3 {
            0 => Waits::Start,
            1 => Waits::Sent,
            2 => Waits::Received,
            _ => Waits::Collective,
        };
        Ok(Row {
            time: self.time >> TIME_SHIFT,
            id: self.id.into(),
            after: self.after.into(),
            bytes: self.bytes,
            to: self.to,
            op,
            what,
            waits,
            recv: 0,
        })
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
            let row = Row::from_step(&step);
            if let Some(packed) = Packed::pack(&row) {
                prop_assert_eq!(packed.unpack(), Ok(row));
            }
            prop_assert_eq!(Packed::in_table(7).unpack(), Err(7));
        }
    }

    #[test]
    fn a_record_is_32_bytes() {
        assert_eq!(size_of::<Packed>(), 32);
    }
}

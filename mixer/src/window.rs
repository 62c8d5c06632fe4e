//! A window: records between two points in time. They are added by task; numbering completes them where they are, and keeps
//! their order in the trace.

use crate::index::Slot;
use crate::prepared::Prepared;

/// The records of a window, and its lines.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(crate) records: Vec<Prepared>,
    /// The [slots](Slot) of numbered records, in the order of the trace.
    pub(crate) lines: Vec<u32>,
}

impl Window {
    /// Removes all records.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.lines.clear();
    }

    /// Adds a record.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: Prepared) -> Slot {
        self.records.push(record);
        Slot(self.records.len() as u32 - 1)
    }

    /// Adds a record that `complete` completes where it is, unless it returns `false`.
    #[inline(always)]
    pub(crate) fn push_if(&mut self, begun: Prepared, complete: impl FnOnce(&mut Prepared) -> bool) {
        self.records.push(begun);
        if let Some(record) = self.records.last_mut()
            && !complete(record)
        {
            self.records.pop();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::prepared::HAS_DEPENDENT;
    use proptest::prelude::*;
    use vef_format::ids::Rank;
    use vef_format::raw::{AWAITED, COLLECTIVE, MARK, MESSAGE, Raw};

    fn number() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    /// Any record of task 0 with start 0.
    pub(crate) fn record() -> impl Strategy<Value = Prepared> {
        let expected = any::<(u32, bool)>()
            .prop_map(|(number, is)| u64::from(number) | if is { HAS_DEPENDENT } else { 0 });
        let of_message = (expected, number(), any::<(u32, bool)>()).prop_map(|(id, bytes, (to, awaited))| {
            let tag = if awaited { MESSAGE | AWAITED } else { MESSAGE };
            Raw { tag, id, bytes, to, ..Raw::NOTHING }
        });
        let of_collective =
            (any::<(u32, u32, u16)>(), number(), number()).prop_map(|((id, to, op), bytes, recv)| Raw {
                tag: COLLECTIVE,
                id: id.into(),
                bytes,
                recv,
                to,
                op,
                ..Raw::NOTHING
            });
        let any_raw = prop_oneof![Just(Raw { tag: MARK, ..Raw::NOTHING }), of_message, of_collective];
        (any_raw, 0u8..4, any::<(u32, u32)>(), number(), any::<Option<u16>>()).prop_map(
            |(mut raw, dependency, (at, number), time, thread)| {
                (raw.tag, raw.time) = (raw.tag | dependency, time);
                raw.after = if dependency >= 2 { u64::from(at) << 32 | u64::from(number) } else { 0 };
                Prepared { raw, start: 0, task: Rank(0), thread }
            },
        )
    }
}

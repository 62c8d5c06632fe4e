//! A window: records between two points in time. They are added by task; numbering makes them lines in the order of the
//! trace.

use crate::prepared::Prepared;
use std::hint::black_box;
use vef_format::ids::Rank;
use vef_format::raw::Raw;

/// How many records ahead numbering touches a record.
pub(crate) const AHEAD: usize = 8;

/// The records of a window, and its lines.
#[derive(Debug, Default)]
pub(crate) struct Window {
    records: Vec<Prepared>,
    /// In the order of the trace.
    lines: Vec<(Rank, Raw)>,
}

impl Window {
    /// Removes all records.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.lines.clear();
    }

    /// Adds a record; returns its place.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: Prepared) -> usize {
        self.records.push(record);
        self.records.len() - 1
    }

    /// Adds a record that `complete` completes in its place, unless it returns `false`.
    #[inline(always)]
    pub(crate) fn push_if(&mut self, begun: Prepared, complete: impl FnOnce(&mut Prepared) -> bool) {
        self.records.push(begun);
        if let Some(record) = self.records.last_mut()
            && !complete(record)
        {
            self.records.pop();
        }
    }

    /// The record at `place`.
    #[inline(always)]
    pub(crate) fn record(&self, place: usize) -> &Prepared {
        &self.records[place]
    }

    /// Touches the record at `place`, [`AHEAD`] of its use, so that cache misses overlap.
    #[inline(always)]
    pub(crate) fn touch(&self, place: usize) {
        black_box(self.record(place).task);
    }

    /// All records.
    pub(crate) fn records(&self) -> &[Prepared] {
        &self.records
    }

    /// Appends a line, of `task`.
    #[inline(always)]
    pub(crate) fn line(&mut self, task: Rank, line: Raw) {
        self.lines.push((task, line));
    }

    /// The lines in the order of the trace, each with its task.
    pub(crate) fn lines(&self) -> &[(Rank, Raw)] {
        &self.lines
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::matching::Fate;
    use crate::prepared::{Awaits, What};
    use proptest::prelude::*;
    use vef_format::operation::{Amounts, OpCode};
    use vef_format::units::Bytes;

    fn number() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    /// Any record of task 0 with start 0.
    pub(crate) fn record() -> impl Strategy<Value = Prepared> {
        let awaits = prop_oneof![
            Just(Awaits::Start),
            Just(Awaits::Sent),
            any::<(u32, u32)>()
                .prop_map(|(source, message)| Awaits::Received { source: Rank(source), message }),
            any::<(u32, u32)>().prop_map(|(comm, position)| Awaits::Collective { comm, position }),
        ];
        let fate = prop_oneof![Just(Fate::Unawaited), Just(Fate::Awaited), Just(Fate::Expected)];
        let what = prop_oneof![
            Just(What::Mark),
            (any::<(u32, u32)>(), fate).prop_map(|((number, dst), fate)| What::Message {
                number,
                dst: Rank(dst),
                fate
            }),
            any::<(u32, u32, u16)>().prop_map(|(comm, position, code)| What::Collective {
                comm,
                position,
                code: OpCode(code)
            }),
        ];
        let sizes = (number(), number());
        (number(), awaits, what, any::<Option<u16>>(), sizes).prop_map(
            |(time, awaits, what, thread, (send, recv))| {
                let mut amounts = Amounts { send: Bytes(send), recv: Bytes(recv) };
                match what {
                    What::Mark => amounts = Amounts::default(),
                    What::Message { .. } => amounts.recv = Bytes::ZERO,
                    What::Collective { .. } => {}
                }
                Prepared { task: Rank(0), thread, start: 0, time, awaits, what, amounts }
            },
        )
    }
}

//! A window: records between two points in time. They are added by task; numbering makes them lines in the order of the
//! trace.

use crate::matching::Fate;
use crate::prepared::{Awaits, Prepared, What};
use crate::sink::LineSink;
use std::hint::black_box;
use vef_format::ids::{CollectiveId, CommId, MessageId};
use vef_format::record::{Dependency, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

/// How many records ahead a record is touched.
pub(crate) const AHEAD: usize = 8;

/// The records of a window, and its lines.
#[derive(Debug, Default)]
pub(crate) struct Window {
    records: Vec<Prepared>,
    /// In the order of the trace.
    lines: Vec<Line>,
}

/// A record with ids.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Index of the record.
    place: u32,
    ids: Ids,
}

/// The ids that make a record a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    /// Id of its dependency.
    pub(crate) after: u32,
    /// Its own id.
    pub(crate) own: u32,
    /// Id of the communicator of a collective.
    pub(crate) comm: CommId,
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

    /// Makes the record at `place` the next line.
    #[inline(always)]
    pub(crate) fn line(&mut self, place: usize, ids: Ids) {
        self.lines.push(Line { place: place as u32, ids });
    }

    /// Limits the time of the record at `place` to `most`.
    pub(crate) fn limit_time(&mut self, place: usize, most: u64) {
        let time = &mut self.records[place].time;
        *time = most.min(*time);
    }

    /// Number of lines.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Writes the lines to `sink`.
    pub(crate) fn write<S: LineSink>(&self, sink: &mut S) -> Result<(), S::Error> {
        let mut ahead = self.lines.iter();
        ahead.nth(AHEAD - 1);
        for &Line { place, ids: Ids { after, own, comm } } in &self.lines {
            if let Some(line) = ahead.next() {
                self.touch(line.place as usize);
            }
            let &Prepared { task, time, awaits, what, amounts, .. } = &self.records[place as usize];
            let (time, after) = (Ticks(time), u64::from(after));
            let after = match awaits {
                Awaits::Start => Dependency::Start,
                Awaits::Sent => Dependency::Sent(MessageId(after)),
                Awaits::Received { .. } => Dependency::Received(MessageId(after)),
                Awaits::Collective { .. } => Dependency::Collective(CollectiveId(after)),
            };
            let (dst, bytes, awaited) = match what {
                What::Mark => (task, Bytes::ZERO, false),
                What::Message { dst, fate, .. } => (dst, amounts.send, fate != Fate::Unawaited),
                What::Collective { code, .. } => {
                    let id = CollectiveId(own.into());
                    sink.collective(&LocalCollective { id, comm, op: code, task, amounts, after, time })?;
                    continue;
                }
            };
            let id = MessageId(own.into());
            sink.message(&Message { id, src: task, dst, bytes, awaited, after, time })?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use vef_format::ids::Rank;
    use vef_format::operation::{Amounts, OpCode};

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

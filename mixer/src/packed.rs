//! The records of one task between walk and output: four numbers each, in four to ten bytes. References and times are
//! delta-coded.

use crate::available::fit;
use crate::bytes::Encoder;
use vef_format::capture::varint::Source;
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// What a record depends on, by numbers of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing: its time counts from the start of `MPI_Init`.
    Start,
    /// The latest message or mark of its thread.
    Sent,
    /// The message that a receive, by posting order, matched.
    Received(u32),
    /// A collective, by index among the task's collectives.
    Collective(u32),
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// A local mark.
    Mark,
    /// The task's next message, with its size.
    Message(Bytes),
    /// The task's next collective on the communicator: index of its [`Part`].
    Collective(u32),
}

/// One task's part of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Index of the communicator in [`Task::calls`](crate::task::Task::calls).
    pub(crate) slot: u32,
    /// The operation.
    pub(crate) operation: Operation,
    /// Bytes that the task sends and receives.
    pub(crate) amounts: Amounts,
}

/// A record before matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The thread that made the call.
    pub(crate) thread: u16,
    /// Its kind.
    pub(crate) body: Body,
    /// Its dependency.
    pub(crate) after: After,
    /// Computing time since the thread's previous event, in nanoseconds.
    pub(crate) time: u64,
}

/// The records of one task, in order, with their starts.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Four numbers a record. The first has, from the lowest bit: two bits of kind, two bits of dependency, 32 bits of
    /// distance to the dependency, and the thread. Then: time from the start of the previous record, computing time, and
    /// bytes of a message or index of a part.
    encoded: Encoder,
    count: usize,
    /// Parts of collectives; consecutive equal ones are stored once.
    parts: Vec<Part>,
    /// Whether the task has several threads.
    threads: bool,
    /// The start of every [`SAMPLE`]th record; counting begins at `ahead`.
    sampled: Vec<u64>,
    ahead: usize,
    /// Start of the last record.
    last: u64,
    origin: Origin,
}

/// The start of one in so many records is sampled.
pub(crate) const SAMPLE: usize = 64;

const MARK: u64 = 0;
const MESSAGE: u64 = 1;
const COLLECTIVE: u64 = 2;

const START: u64 = 0;
const SENT: u64 = 1;
const RECEIVED: u64 = 2;

/// The thread in the first number of a record.
const THREAD: u32 = 36;

/// The origin of delta-coded references; the writer and the reader update it alike.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// The last receive that a record referred to.
    receive: u32,
    /// Number of collectives so far.
    collectives: u32,
}

impl Origin {
    /// Kind and distance of a dependency.
    #[inline]
    fn encode(self, after: After) -> (u64, u32) {
        match after {
            After::Start => (START, 0),
            After::Sent => (SENT, 0),
            After::Received(receive) => {
                let step = receive.wrapping_sub(self.receive) as i32;
                (RECEIVED, ((step << 1) ^ (step >> 31)) as u32)
            }
            After::Collective(number) => (RECEIVED + 1, self.collectives.wrapping_sub(number)),
        }
    }

    /// Call behind each record.
    #[inline]
    fn advance(&mut self, after: After, is_collective: bool) {
        if let After::Received(receive) = after {
            self.receive = receive;
        }
        self.collectives += u32::from(is_collective);
    }
}

impl Records {
    /// No records, of the task `rank`, which has several threads if `threads`. The sampled indices differ from task to task;
    /// otherwise the samples of tasks in step would fall on a few instants.
    pub(crate) fn of(rank: Rank, threads: bool) -> Self {
        // Multiples of 39 modulo 64 (golden ratio) spread the indices of neighbouring tasks evenly.
        let ahead = rank.index().wrapping_mul(39) % SAMPLE;
        Self { ahead, threads, ..Self::default() }
    }

    /// Whether the task has several threads.
    #[inline(always)]
    pub(crate) fn has_threads(&self) -> bool {
        self.threads
    }

    /// Appends a record that begins at `start`, or with the previous record if that is later.
    #[inline(always)]
    pub(crate) fn push(&mut self, start: u64, record: &Record) {
        let step = start.saturating_sub(self.last);
        self.last += step;
        let (kind, value) = match record.body {
            Body::Mark => (MARK, 0),
            Body::Message(bytes) => (MESSAGE, bytes.0),
            Body::Collective(part) => (COLLECTIVE, part.into()),
        };
        let (what, distance) = self.origin.encode(record.after);
        let link = kind | what << 2 | u64::from(distance) << 4 | u64::from(record.thread) << THREAD;
        self.encoded.put_all([link, step, record.time, value]);
        self.count += 1;
        self.origin.advance(record.after, kind == COLLECTIVE);
        if (self.count + self.ahead).is_multiple_of(SAMPLE) {
            self.sampled.push(self.last);
        }
    }

    /// Adds `part`; returns its index.
    pub(crate) fn add_part(&mut self, part: Part) -> u32 {
        if self.parts.last() != Some(&part) {
            self.parts.push(part);
        }
        self.parts.len() as u32 - 1
    }

    /// The part with `index`.
    pub(crate) fn part(&self, index: u32) -> &Part {
        &self.parts[index as usize]
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The sampled starts, and the start of the last record.
    pub(crate) fn samples(&self) -> (&[u64], u64) {
        (&self.sampled, self.last)
    }

    /// Allocated bytes.
    pub(crate) fn memory(&self) -> usize {
        self.encoded.0.capacity()
            + size_of::<Part>() * self.parts.capacity()
            + size_of::<u64>() * self.sampled.capacity()
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        fit(&mut self.encoded.0);
        fit(&mut self.parts);
        fit(&mut self.sampled);
    }
}

/// Reads the records of one task, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Byte of the next record.
    at: usize,
    /// Start of the previous record.
    now: u64,
    origin: Origin,
}

impl Cursor {
    /// The last receive that a record referred to.
    pub(crate) fn receive(&self) -> u32 {
        self.origin.receive
    }

    /// Touches the next two cache lines; a window has about eight records of each of many tasks.
    #[inline]
    pub(crate) fn prefetch(&self, records: &Records) -> u8 {
        let next = records.encoded.0.get(self.at..).unwrap_or_default();
        next.iter().step_by(64).take(2).fold(0, |sum, byte| sum ^ byte)
    }

    /// The next record and its start, if it begins at `latest` or earlier.
    #[inline(always)]
    pub(crate) fn next(&mut self, records: &Records, latest: u64) -> Option<(u64, Record)> {
        let mut source = Source::new(&records.encoded.0, self.at);
        // The link is usually short.
        let [link, step, time, value] = source.fields::<4, 0b0001>().ok()?;
        let start = self.now + step;
        if start > latest {
            return None;
        }
        let distance = (link >> 4) as u32;
        let after = match link >> 2 & 3 {
            START => After::Start,
            SENT => After::Sent,
            RECEIVED => {
                let step = (distance >> 1) ^ (distance & 1).wrapping_neg();
                After::Received(self.origin.receive.wrapping_add(step))
            }
            _ => After::Collective(self.origin.collectives.wrapping_sub(distance)),
        };
        let body = match link & 3 {
            MARK => Body::Mark,
            MESSAGE => Body::Message(Bytes(value)),
            _ => Body::Collective(value as u32),
        };
        self.origin.advance(after, link & 3 == COLLECTIVE);
        (self.at, self.now) = (source.position(), start);
        Some((start, Record { thread: (link >> THREAD) as u16, body, after, time }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    fn record() -> impl Strategy<Value = Record> {
        let after = prop_oneof![
            Just(After::Start),
            Just(After::Sent),
            any::<u32>().prop_map(After::Received),
            any::<u32>().prop_map(After::Collective),
        ];
        let body = prop_oneof![
            Just(Body::Mark),
            number().prop_map(|bytes| Body::Message(Bytes(bytes))),
            any::<u32>().prop_map(Body::Collective),
        ];
        (0u16..3, body, after, number()).prop_map(|(thread, body, after, time)| Record {
            thread,
            body,
            after,
            time,
        })
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            list in proptest::collection::vec((number(), record(), 1usize..3), 0..60),
            threads: bool,
        ) {
            let mut starts: Vec<_> = list.iter().map(|&(start, ..)| start).collect();
            starts.sort_unstable();
            // Some twice.
            let list: Vec<_> = starts
                .into_iter()
                .zip(&list)
                .flat_map(|(start, &(_, record, times))| {
                    let thread = if threads { record.thread } else { 0 };
                    std::iter::repeat_n((start, Record { thread, ..record }), times)
                })
                .collect();
            let mut records = Records::of(Rank(0), threads);
            for (start, record) in &list {
                records.push(*start, record);
            }
            prop_assert_eq!(records.len(), list.len());
            let mut cursor = Cursor::default();
            for &(start, record) in &list {
                prop_assert!(start.checked_sub(1).and_then(|latest| cursor.next(&records, latest)).is_none());
                prop_assert_eq!(cursor.next(&records, start), Some((start, record)));
            }
            prop_assert!(cursor.next(&records, u64::MAX).is_none());
        }
    }

    #[test]
    fn usual_records_are_short() {
        let amounts = Amounts { send: Bytes(48), recv: Bytes(48) };
        let part = Part { slot: 1, operation: Operation::Allreduce, amounts };
        let mut records = Records::default();
        for at in 0..900 {
            let (body, time) = match at % 3 {
                0 => (Body::Mark, 100),
                1 => (Body::Message(Bytes(1 << 13)), 1000),
                _ => (Body::Collective(records.add_part(part)), 10_000),
            };
            let record = Record { thread: 0, body, after: After::Received(at), time };
            records.push(u64::from(at) * 1_000_000, &record);
        }
        // Links: 1; steps: 3; times: 1, 2, 2; values: 1, 2, 1. The first step is 0.
        assert_eq!((records.encoded.0.len(), records.parts.len()), (300 * (6 + 8 + 7) - 2, 1));
        assert_eq!(records.samples().0.len(), 900 / SAMPLE);
    }
}

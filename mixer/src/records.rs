//! The records of one task between walk and output: a head and four numbers each, in two to ten bytes. References and times
//! are delta-coded.

use crate::fit::fit;
use crate::index::{CollectiveIndex, ReceiveIndex};
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, Operation};
use vef_format::prefetch::prefetch;
use vef_format::units::Bytes;

/// What a record depends on, by numbers of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing: its time counts from the start of `MPI_Init`.
    Start,
    /// The latest message or mark of its thread.
    Sent,
    /// The message that a receive matched.
    Received(ReceiveIndex),
    /// A collective.
    Collective(CollectiveIndex),
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
    /// A head of 16 bits for each record: two bits of kind, two bits of dependency, and three bits for the length of each of
    /// the numbers behind it, from 0 to 6 or 8 bytes. These are: time from the start of the previous record, computing time,
    /// distance to the dependency with the thread above its 32 bits, and bytes of a message or index of a part. After the
    /// last record, at `end`, there are [`ROOM`] bytes or more.
    encoded: Vec<u8>,
    end: usize,
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

/// The lowest bit of a record's lengths.
const LENGTHS: u32 = 4;

/// More than the longest record, so that masking replaces bounds checks.
const ROOM: usize = 40;

/// The bytes that a length's three bits mean, and their mask.
static BYTES: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 8];
static MASKS: [u64; 8] = [0, 0xff, 0xffff, 0xff_ffff, !0 >> 32, !0 >> 24, !0 >> 16, !0];

/// A length in bytes (8 bits), and its bits in the head above, by the leading zeros of the value and number of the field.
static FIELDS: [[u32; 4]; 65] = {
    let mut fields = [[0; 4]; 65];
    let mut at = 0;
    while at < 4 * 65 {
        let (zeros, number) = (at / 4, at % 4);
        let bits = if zeros < 16 { 7 } else { (71 - zeros) / 8 };
        fields[zeros][number] = BYTES[bits] as u32 | (bits as u32) << (8 + LENGTHS + 3 * number as u32);
        at += 1;
    }
    fields
};

/// Writes up to eight bytes at `at`.
#[inline(always)]
fn put<const N: usize>(room: &mut [u8; ROOM], at: usize, bytes: [u8; N]) {
    room[at % 32..at % 32 + N].copy_from_slice(&bytes);
}

/// The origin of delta-coded references; the writer and the reader update it alike.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// The receive after the last one that a record referred to.
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
                let step = receive.0.wrapping_sub(self.receive) as i32;
                (RECEIVED, ((step << 1) ^ (step >> 31)) as u32)
            }
            After::Collective(number) => (RECEIVED + 1, self.collectives.wrapping_sub(number.0)),
        }
    }

    /// Call behind each record.
    #[inline]
    fn advance(&mut self, after: After, is_collective: bool) {
        if let After::Received(receive) = after {
            self.receive = receive.0.wrapping_add(1);
        }
        self.collectives += u32::from(is_collective);
    }
}

impl Records {
    /// No records, of the task `rank`, which has several threads if `threads`; about so many are `expected`. The sampled indices differ from task to task;
    /// otherwise the samples of tasks in step would fall on a few instants.
    pub(crate) fn of(rank: Rank, threads: bool, expected: usize) -> Self {
        // Multiples of 39 modulo 64 (golden ratio) spread the indices of neighbouring tasks evenly.
        let ahead = rank.index().wrapping_mul(39) % SAMPLE;
        Self { ahead, threads, encoded: Vec::with_capacity(7 * expected), ..Self::default() }
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
        let link = u64::from(distance) | u64::from(record.thread) << 32;
        if self.encoded.len() < self.end + 2 * ROOM {
            self.grow();
        }
        let Some(room) = self.encoded[self.end..].first_chunk_mut::<ROOM>() else { return };
        // The length so far, and the head above.
        let mut sum = 2 | (kind | what << 2) << 8;
        for (n, value) in [step, record.time, link, value].into_iter().enumerate() {
            put(room, sum as usize % 256, value.to_le_bytes());
            sum += u64::from(FIELDS[value.leading_zeros() as usize][n]);
        }
        put(room, 0, ((sum >> 8) as u16).to_le_bytes());
        self.end += sum as usize % 256;
        self.count += 1;
        self.origin.advance(record.after, kind == COLLECTIVE);
        if (self.count + self.ahead).is_multiple_of(SAMPLE) {
            self.sampled.push(self.last);
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.encoded.resize(self.end + self.end / 4 + 20 * ROOM, 0);
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
        self.encoded.capacity()
            + size_of::<Part>() * self.parts.capacity()
            + size_of::<u64>() * self.sampled.capacity()
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.encoded.truncate(self.end + ROOM);
        fit(&mut self.encoded);
        fit(&mut self.parts);
        fit(&mut self.sampled);
    }
}

/// Reads the records of one task, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    /// The records from the next one on, and [`ROOM`] bytes.
    rest: &'a [u8],
    /// Start of the previous record.
    now: u64,
    origin: Origin,
}

impl<'a> Cursor<'a> {
    /// Begins before the first of `records`.
    pub(crate) fn new(records: &'a Records) -> Self {
        let rest = records.encoded.get(..records.end + ROOM).unwrap_or_default();
        Self { rest, now: 0, origin: Origin::default() }
    }

    /// The receive that a record probably refers to next.
    pub(crate) fn next_receive(&self) -> ReceiveIndex {
        ReceiveIndex(self.origin.receive)
    }

    /// Prefetches the next records; a window has about eight of each of many tasks.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self.rest, 0);
        prefetch(self.rest, 64);
    }

    /// The next record and its start, if it begins at `latest` or earlier.
    #[inline(always)]
    pub(crate) fn next(&mut self, latest: u64) -> Option<(u64, Record)> {
        // With ROOM bytes left, all records are read.
        let room = self.rest.first_chunk::<{ ROOM + 1 }>()?;
        let word = |at: usize| room[at % 32..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let head = word(0);
        let (mut fields, mut at) = ([0; 4], 2);
        for (n, field) in fields.iter_mut().enumerate() {
            let bits = (head >> (LENGTHS + 3 * n as u32)) as usize % 8;
            *field = word(at) & MASKS[bits];
            at += BYTES[bits];
        }
        let [step, time, link, value] = fields;
        let start = self.now + step;
        if start > latest {
            return None;
        }
        let (what, distance) = (head >> 2 & 3, link as u32);
        // Before the match, so that no branch depends on the kind of dependency.
        let number = match what {
            RECEIVED => self.origin.receive.wrapping_add((distance >> 1) ^ (distance & 1).wrapping_neg()),
            _ => self.origin.collectives.wrapping_sub(distance),
        };
        let after = match what {
            START => After::Start,
            SENT => After::Sent,
            RECEIVED => After::Received(ReceiveIndex(number)),
            _ => After::Collective(CollectiveIndex(number)),
        };
        let body = match head & 3 {
            MARK => Body::Mark,
            MESSAGE => Body::Message(Bytes(value)),
            _ => Body::Collective(value as u32),
        };
        self.origin.advance(after, head & 3 == COLLECTIVE);
        (self.rest, self.now) = (self.rest.get(at..)?, start);
        Some((start, Record { thread: (link >> 32) as u16, body, after, time }))
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
            any::<u32>().prop_map(|at| After::Received(ReceiveIndex(at))),
            any::<u32>().prop_map(|at| After::Collective(CollectiveIndex(at))),
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
            let mut records = Records::of(Rank(0), threads, 0);
            for (start, record) in &list {
                records.push(*start, record);
            }
            prop_assert_eq!(records.len(), list.len());
            let mut cursor = Cursor::new(&records);
            for &(start, record) in &list {
                prop_assert!(start.checked_sub(1).and_then(|latest| cursor.next(latest)).is_none());
                prop_assert_eq!(cursor.next(start), Some((start, record)));
            }
            prop_assert!(cursor.next(u64::MAX).is_none());
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
            let record = Record { thread: 0, body, after: After::Received(ReceiveIndex(at)), time };
            records.push(u64::from(at) * 1_000_000, &record);
        }
        // Heads: 2; steps: 3; times: 1, 2, 2; distances: 0; values: 0, 2, 0. The first step is 0.
        assert_eq!((records.end, records.parts.len()), (300 * (6 + 9 + 7) - 3, 1));
        assert_eq!(records.samples().0.len(), 900 / SAMPLE);
    }
}

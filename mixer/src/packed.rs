//! The records of one task between walk and output: sixteen bytes each.
//!
//! References and times are delta-coded. A record that does not fit (computing for over four seconds, a message over
//! 4 GiB) is in an overflow list.

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
    /// The task's next collective on the communicator.
    Collective(Part),
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

/// A mark or message without overflow that depends on a message: nearly all records are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    /// Its start.
    pub(crate) start: u64,
    /// Computing time in front of it, in nanoseconds.
    pub(crate) time: u32,
    /// Bytes of a message; `None`: a mark.
    pub(crate) bytes: Option<u32>,
    /// The receive that it depends on; `None`: the latest message or mark of the task.
    pub(crate) receive: Option<u32>,
}

/// The records of one task, in order, with their starts.
#[derive(Debug, Default)]
pub(crate) struct Records {
    packed: Vec<Packed>,
    /// Parts of collectives; consecutive equal ones are stored once.
    parts: Vec<Part>,
    /// Overflow: steps and records that do not fit into [`Packed`].
    long: Vec<(u64, Record)>,
    /// The thread of each record, in tasks with several threads.
    threads: Option<Vec<u16>>,
    /// The start of every [`SAMPLE`]th record; counting begins at `ahead`.
    sampled: Vec<u64>,
    ahead: usize,
    /// Start of the last record.
    last: u64,
    origin: Origin,
}

/// The start of one in so many records is sampled.
pub(crate) const SAMPLE: usize = 64;

/// A record; only the kind is set if it is in the overflow list.
#[derive(Clone, Copy, Debug)]
struct Packed {
    /// Time from the start of the previous record.
    step: u32,
    time: u32,
    /// Bytes of a message, or index of a part.
    value: u32,
    /// From the lowest bit: two bits of kind, two bits of dependency, 28 bits of its distance.
    link: u32,
}

const MARK: u32 = 0;
const MESSAGE: u32 = 1;
const COLLECTIVE: u32 = 2;
const LONG: u32 = 3;

const START: u32 = 0;
const SENT: u32 = 1;
const RECEIVED: u32 = 2;

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
    fn encode(self, after: After) -> (u32, u32) {
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

    /// The reverse of [`Origin::encode`].
    #[inline]
    fn decode(self, what: u32, distance: u32) -> After {
        match what {
            START => After::Start,
            SENT => After::Sent,
            RECEIVED => After::Received(self.decode_receive(distance)),
            _ => After::Collective(self.collectives.wrapping_sub(distance)),
        }
    }

    #[inline(always)]
    fn decode_receive(self, distance: u32) -> u32 {
        let step = (distance >> 1) ^ (distance & 1).wrapping_neg();
        self.receive.wrapping_add(step)
    }

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
        Self { ahead, threads: threads.then(Vec::new), ..Self::default() }
    }

    /// Whether the task has several threads.
    #[inline(always)]
    pub(crate) fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Appends a record that begins at `start`, or with the previous record if that is later.
    #[inline(always)]
    pub(crate) fn push(&mut self, start: u64, record: &Record) {
        let step = start.saturating_sub(self.last);
        self.last += step;
        let (kind, value) = match record.body {
            Body::Mark => (MARK, 0),
            Body::Message(bytes) => (MESSAGE, bytes.0),
            Body::Collective(part) => (COLLECTIVE, self.part(part)),
        };
        let (what, distance) = self.origin.encode(record.after);
        let packed = if (step | record.time | value) >> 32 == 0 && distance >> 28 == 0 {
            let link = kind | what << 2 | distance << 4;
            Packed { step: step as u32, time: record.time as u32, value: value as u32, link }
        } else {
            self.long.push((step, *record));
            Packed { step: 0, time: 0, value: 0, link: LONG }
        };
        self.packed.push(packed);
        if let Some(threads) = &mut self.threads {
            threads.push(record.thread);
        }
        self.origin.advance(record.after, kind == COLLECTIVE);
        if (self.packed.len() + self.ahead).is_multiple_of(SAMPLE) {
            self.sampled.push(self.last);
        }
    }

    /// The index of `part`.
    fn part(&mut self, part: Part) -> u64 {
        if self.parts.last() != Some(&part) {
            self.parts.push(part);
        }
        self.parts.len() as u64 - 1
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.packed.len()
    }

    /// The sampled starts, and the start of the last record.
    pub(crate) fn samples(&self) -> (&[u64], u64) {
        (&self.sampled, self.last)
    }

    /// Allocated bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Packed>() * self.packed.capacity()
            + size_of::<Part>() * self.parts.capacity()
            + size_of::<(u64, Record)>() * self.long.capacity()
            + size_of::<u64>() * self.sampled.capacity()
            + size_of::<u16>() * self.threads.as_ref().map_or(0, Vec::capacity)
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.packed.shrink_to_fit();
        self.parts.shrink_to_fit();
        self.long.shrink_to_fit();
        self.sampled.shrink_to_fit();
        self.threads.iter_mut().for_each(Vec::shrink_to_fit);
    }
}

/// Reads the records of one task, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    at: usize,
    long: usize,
    /// Start of the previous record.
    now: u64,
    origin: Origin,
}

impl Cursor {
    /// Start of the next record; `None` at the end.
    #[inline]
    pub(crate) fn start(&self, records: &Records) -> Option<u64> {
        let packed = records.packed.get(self.at)?;
        let step = match packed.link & 3 {
            LONG => records.long[self.long].0,
            _ => packed.step.into(),
        };
        Some(self.now + step)
    }

    /// The next record, if it is a plain one of a task with one thread.
    #[inline(always)]
    pub(crate) fn plain(&self, records: &Records) -> Option<Plain> {
        if records.has_threads() {
            return None;
        }
        let &Packed { step, time, value, link } = records.packed.get(self.at)?;
        let bytes = match link & 3 {
            MARK => None,
            MESSAGE => Some(value),
            _ => return None,
        };
        let receive = match link >> 2 & 3 {
            SENT => None,
            RECEIVED => Some(self.origin.decode_receive(link >> 4)),
            _ => return None,
        };
        Some(Plain { start: self.now + u64::from(step), time, bytes, receive })
    }

    /// Advances past `plain`, the next record.
    #[inline(always)]
    pub(crate) fn advance(&mut self, plain: &Plain) {
        self.at += 1;
        self.now = plain.start;
        self.origin.receive = plain.receive.unwrap_or(self.origin.receive);
    }

    /// The last receive that a record referred to.
    pub(crate) fn receive(&self) -> u32 {
        self.origin.receive
    }

    /// Touches the next four cache lines; a window has about sixteen records of a task.
    #[inline]
    pub(crate) fn prefetch(&self, records: &Records) -> u32 {
        let next = records.packed.get(self.at..).unwrap_or_default();
        next.iter().step_by(4).take(4).fold(0, |sum, packed| sum ^ packed.step)
    }

    /// The next record; `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self, records: &Records) -> Option<Record> {
        let &Packed { step, time, value, link } = records.packed.get(self.at)?;
        let thread = records.threads.as_ref().map_or(0, |threads| threads[self.at]);
        self.at += 1;
        let kind = link & 3;
        if kind == LONG {
            return Some(self.next_long(records));
        }
        self.now += u64::from(step);
        let body = match kind {
            MARK => Body::Mark,
            MESSAGE => Body::Message(Bytes(value.into())),
            _ => Body::Collective(records.parts[value as usize]),
        };
        let after = self.origin.decode(link >> 2 & 3, link >> 4);
        self.origin.advance(after, kind == COLLECTIVE);
        Some(Record { thread, body, after, time: time.into() })
    }

    #[cold]
    fn next_long(&mut self, records: &Records) -> Record {
        let (step, record) = records.long[self.long];
        self.long += 1;
        self.now += step;
        self.origin.advance(record.after, matches!(record.body, Body::Collective(_)));
        record
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
        let part = (any::<u32>(), 0..Operation::ALL.len(), number(), number());
        let body = prop_oneof![
            Just(Body::Mark),
            number().prop_map(|bytes| Body::Message(Bytes(bytes))),
            part.prop_map(|(slot, op, send, recv)| {
                let amounts = Amounts { send: Bytes(send), recv: Bytes(recv) };
                Body::Collective(Part { slot, operation: Operation::ALL[op], amounts })
            }),
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
            pass_plain: bool,
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
                prop_assert_eq!(cursor.start(&records), Some(start));
                if let Some(plain) = cursor.plain(&records) {
                    let body = plain.bytes.map_or(Body::Mark, |bytes| Body::Message(Bytes(bytes.into())));
                    let after = plain.receive.map_or(After::Sent, After::Received);
                    let found = Record { thread: 0, body, after, time: plain.time.into() };
                    prop_assert_eq!((plain.start, found), (start, record));
                    if pass_plain {
                        cursor.advance(&plain);
                        continue;
                    }
                }
                prop_assert_eq!(cursor.next(&records), Some(record));
            }
            prop_assert_eq!(cursor.start(&records), None);
            prop_assert_eq!(cursor.next(&records), None);
        }
    }

    #[test]
    fn usual_records_are_not_long() {
        let amounts = Amounts { send: Bytes(48), recv: Bytes(48) };
        let part = Part { slot: 1, operation: Operation::Allreduce, amounts };
        let mut records = Records::default();
        for at in 0..1000 {
            let body = match at % 3 {
                0 => Body::Mark,
                1 => Body::Message(Bytes(1 << 31)),
                _ => Body::Collective(part),
            };
            let record = Record { thread: 0, body, after: After::Received(at), time: 4_000_000_000 };
            records.push(u64::from(at) * 4_000_000_000, &record);
        }
        assert_eq!((records.long.len(), records.parts.len()), (0, 1));
        assert_eq!(records.samples().0.len(), 1000 / SAMPLE);
        assert_eq!(size_of::<Packed>(), 16);
    }
}

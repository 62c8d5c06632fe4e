//! A window: records between two points in time, first by task, then in the order of the trace, where they become lines by
//! getting ids. A record has forty bytes, so that a window fits into a core's cache; values over 32 bits (computing for over
//! four seconds, a message over 4 GiB) are in an overflow table.

use crate::matching::Fate;
use crate::order::Sorter;
use crate::prepared::{Awaits, Prepared, What};
use crate::sink::LineSink;
use std::ops::Range;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, OpCode};
use vef_format::record::{Dependency, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

/// The records of a window, and its lines.
#[derive(Debug, Default)]
pub(crate) struct Window {
    records: Vec<Record>,
    /// Indices of the records that are lines, in the order of the trace, as ranges.
    lines: Vec<Range<usize>>,
    /// The last of these ranges.
    latest: Range<usize>,
    /// Parts of collectives; consecutive equal ones are stored once.
    parts: Vec<(OpCode, Amounts)>,
    /// Overflow table: time, and bytes of a message.
    long: Vec<(u64, u64)>,
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Start, on the common clock.
    pub(crate) start: u64,
    /// Its task.
    pub(crate) task: u32,
    kind: Kind,
    /// Time, or index in the overflow table.
    time: u32,
    /// Dependency: source and message, or communicator and position. In a line: id of the dependency, and own id.
    links: [u32; 2],
    /// Message: index, destination, bytes; a mark is an empty message to its own task. Collective: communicator (in a line its
    /// id in the trace), position, index of its part.
    what: [u32; 3],
}

const _: () = assert!(size_of::<Record>() == 40);

/// A dependency in the form of a [`Record`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    kind: u32,
    links: [u32; 2],
}

impl Link {
    /// The latest message or mark of the task.
    pub(crate) const SENT: Self = Self { kind: SENT, links: [0; 2] };

    /// A message of `source`.
    #[inline(always)]
    pub(crate) fn received(source: Rank, message: u32) -> Self {
        Self { kind: RECEIVED, links: [source.0, message] }
    }
}

impl From<Awaits> for Link {
    #[inline(always)]
    fn from(awaits: Awaits) -> Self {
        match awaits {
            Awaits::Start => Self { kind: START, links: [0; 2] },
            Awaits::Sent => Self::SENT,
            Awaits::Received { source, message } => Self::received(source, message),
            Awaits::Collective { comm, position } => Self { kind: AFTER_COLLECTIVE, links: [comm, position] },
        }
    }
}

/// The kind of a record in the form of a [`Record`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    kind: u32,
    what: [u32; 3],
}

impl Form {
    /// A mark of `task`.
    #[inline(always)]
    pub(crate) fn mark(task: Rank) -> Self {
        Self { kind: MARK, what: [0, task.0, 0] }
    }

    /// A message; `number` is its index in its task.
    #[inline(always)]
    pub(crate) fn message(number: u32, dst: Rank, bytes: u32, fate: Fate) -> Self {
        Self { kind: MESSAGE | (fate as u32) << 4, what: [number, dst.0, bytes] }
    }
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
    /// Of tasks with several threads: the time since the start of the record in front.
    pub(crate) most_time: Option<u64>,
}

/// From the lowest bit: two bits of kind, two bits of dependency, two bits of fate, one for overflow, one for several
/// threads; from bit 16 on the thread.
#[derive(Clone, Copy, Debug)]
struct Kind(u32);

const MARK: u32 = 0;
const MESSAGE: u32 = 1;
const COLLECTIVE: u32 = 2;

const START: u32 = 0;
const SENT: u32 = 1;
const RECEIVED: u32 = 2;
const AFTER_COLLECTIVE: u32 = 3;

impl Kind {
    const LONG: u32 = 1 << 6;
    const THREADED: u32 = 1 << 7;

    #[inline(always)]
    fn what(self) -> u32 {
        self.0 & 3
    }

    #[inline(always)]
    fn awaits(self) -> u32 {
        self.0 >> 2 & 3
    }

    #[inline(always)]
    fn fate(self) -> Fate {
        match self.0 >> 4 & 3 {
            0 => Fate::Unawaited,
            1 => Fate::Awaited,
            2 => Fate::Expected,
            _ => Fate::Dropped,
        }
    }

    #[inline(always)]
    fn thread(self) -> Option<u16> {
        (self.0 & Self::THREADED != 0).then_some((self.0 >> 16) as u16)
    }

    fn is_long(self) -> bool {
        self.0 & Self::LONG != 0
    }
}

/// The kind of a record, as far as numbering needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// A local mark.
    Mark,
    /// A message: index in its task, destination, and whether a record depends on it.
    Message { number: u32, dst: u32, expected: bool },
    /// A part of an operation, by communicator (identity) and position.
    Collective { comm: u32, position: u32 },
}

impl Record {
    /// Its dependency.
    #[inline(always)]
    pub(crate) fn awaits(&self) -> Awaits {
        let [one, other] = self.links;
        match self.kind.awaits() {
            START => Awaits::Start,
            SENT => Awaits::Sent,
            RECEIVED => Awaits::Received { source: Rank(one), message: other },
            _ => Awaits::Collective { comm: one, position: other },
        }
    }

    /// Its thread, if the task has several.
    #[inline(always)]
    pub(crate) fn thread(&self) -> Option<u16> {
        self.kind.thread()
    }

    /// Its kind.
    #[inline(always)]
    pub(crate) fn role(&self) -> Role {
        let [one, other, _] = self.what;
        match self.kind.what() {
            MARK => Role::Mark,
            MESSAGE => {
                Role::Message { number: one, dst: other, expected: self.kind.fate() == Fate::Expected }
            }
            _ => Role::Collective { comm: one, position: other },
        }
    }
}

impl Window {
    /// Removes all records.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.lines.clear();
        self.latest = 0..0;
        self.parts.clear();
        self.long.clear();
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a record.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: &Prepared) {
        let task = record.task;
        let (mut form, bytes) = match record.what {
            What::Mark => (Form::mark(task), 0),
            What::Message { number, dst, bytes, fate } => {
                (Form::message(number, dst, bytes.0 as u32, fate), bytes.0)
            }
            What::Collective { comm, position, code, amounts } => {
                (Form { kind: COLLECTIVE, what: [comm, position, self.part((code, amounts))] }, 0)
            }
        };
        if let Some(thread) = record.thread {
            form.kind |= Kind::THREADED | u32::from(thread) << 16;
        }
        let mut time = record.time as u32;
        if (record.time | bytes) >> 32 != 0 {
            form.kind |= Kind::LONG;
            time = self.long.len() as u32;
            self.long.push((record.time, bytes));
        }
        self.add(task, record.start, time, Link::from(record.awaits), form);
    }

    /// Adds a record without overflow.
    #[inline(always)]
    pub(crate) fn add(&mut self, task: Rank, start: u64, time: u32, link: Link, form: Form) {
        let kind = Kind(form.kind | link.kind << 2);
        self.records.push(Record { start, task: task.0, kind, time, links: link.links, what: form.what });
    }

    /// The index of `part`.
    fn part(&mut self, part: (OpCode, Amounts)) -> u32 {
        if self.parts.last() != Some(&part) {
            self.parts.push(part);
        }
        self.parts.len() as u32 - 1
    }

    /// Moves the records, which are by task, to `sorted` in the order of the trace.
    pub(crate) fn sort(&mut self, sorter: &mut Sorter, sorted: &mut Self) {
        sorted.clear();
        sorter.sort(&self.records, |record| record.start);
        sorted.records.extend(sorter.places().map(|place| self.records[place]));
        std::mem::swap(&mut self.parts, &mut sorted.parts);
        std::mem::swap(&mut self.long, &mut sorted.long);
    }

    /// Makes the record at `place` the next line, with the ids that `resolve` returns.
    #[inline(always)]
    pub(crate) fn line<E>(
        &mut self,
        place: usize,
        resolve: impl FnOnce(&Record) -> Result<Ids, E>,
    ) -> Result<(), E> {
        let record = &mut self.records[place];
        let ids = resolve(record)?;
        record.links = [ids.after, ids.own];
        if let Some(most) = ids.most_time {
            self.shorten(place, most);
        }
        let record = &mut self.records[place];
        if record.kind.what() == COLLECTIVE {
            record.what[0] = ids.comm.0;
        }
        if place != self.latest.end {
            self.lines.push(std::mem::replace(&mut self.latest, place..place));
        }
        self.latest.end += 1;
        Ok(())
    }

    /// Limits the time of the record at `place` to `most`.
    #[cold]
    fn shorten(&mut self, place: usize, most: u64) {
        let record = &mut self.records[place];
        match record.kind.is_long() {
            true => {
                let time = &mut self.long[record.time as usize].0;
                *time = most.min(*time);
            }
            false => record.time = most.min(record.time.into()) as u32,
        }
    }

    /// The complete record at `place`.
    pub(crate) fn get(&self, place: usize) -> Prepared {
        let record = self.records[place];
        let Record { start, task, kind, what: [one, other, value], .. } = record;
        let (time, bytes) = self.time_and_bytes(kind, record.time, value);
        let what = match kind.what() {
            MARK => What::Mark,
            MESSAGE => What::Message { number: one, dst: Rank(other), bytes, fate: kind.fate() },
            _ => {
                let (code, amounts) = self.parts[value as usize];
                What::Collective { comm: one, position: other, code, amounts }
            }
        };
        Prepared { task: Rank(task), thread: kind.thread(), start, time, awaits: record.awaits(), what }
    }

    /// Time, and bytes of a message.
    #[inline(always)]
    fn time_and_bytes(&self, kind: Kind, time: u32, value: u32) -> (u64, Bytes) {
        if kind.is_long() {
            let (time, bytes) = self.long[time as usize];
            (time, Bytes(bytes))
        } else {
            (time.into(), Bytes(value.into()))
        }
    }

    /// The indices of each task's records.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        self.records.chunk_by(|a, b| a.task == b.task).map(move |records| {
            let begin = end;
            end += records.len();
            begin..end
        })
    }

    /// Writes the lines to `sink`.
    pub(crate) fn write<S: LineSink>(&self, sink: &mut S) -> Result<(), S::Error> {
        let mut ranges = self.lines.iter().chain([&self.latest]);
        ranges.try_for_each(|lines| self.write_range(&self.records[lines.clone()], sink))
    }

    /// Number of lines.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.iter().chain([&self.latest]).map(|lines| lines.len() as u64).sum()
    }

    #[inline(never)] // one loop over lines, not two
    fn write_range<S: LineSink>(&self, lines: &[Record], sink: &mut S) -> Result<(), S::Error> {
        lines.iter().try_for_each(|line| self.write_one(line, sink))
    }

    #[inline(always)]
    fn write_one<S: LineSink>(&self, line: &Record, sink: &mut S) -> Result<(), S::Error> {
        let &Record { task, kind, time, links: [after, id], what: [comm, dst, value], .. } = line;
        let (time, bytes) = self.time_and_bytes(kind, time, value);
        let (task, time, after) = (Rank(task), Ticks(time), u64::from(after));
        let after = match kind.awaits() {
            START => Dependency::Start,
            SENT => Dependency::Sent(MessageId(after)),
            RECEIVED => Dependency::Received(MessageId(after)),
            _ => Dependency::Collective(CollectiveId(after)),
        };
        if kind.what() == COLLECTIVE {
            let (op, amounts) = self.parts[value as usize];
            let (id, comm) = (CollectiveId(id.into()), CommId(comm));
            sink.collective(&LocalCollective { id, comm, op, task, amounts, after, time })
        } else {
            let (id, dst, awaited) = (MessageId(id.into()), Rank(dst), kind.fate() != Fate::Unawaited);
            sink.message(&Message { id, src: task, dst, bytes, awaited, after, time })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

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
            (any::<(u32, u32)>(), number(), fate).prop_map(|((number, dst), bytes, fate)| {
                What::Message { number, dst: Rank(dst), bytes: Bytes(bytes), fate }
            }),
            (any::<(u32, u32, u16)>(), number(), number()).prop_map(
                |((comm, position, code), send, recv)| {
                    let amounts = Amounts { send: Bytes(send), recv: Bytes(recv) };
                    What::Collective { comm, position, code: OpCode(code), amounts }
                }
            ),
        ];
        (number(), awaits, what, any::<Option<u16>>()).prop_map(|(time, awaits, what, thread)| Prepared {
            task: Rank(0),
            thread,
            start: 0,
            time,
            awaits,
            what,
        })
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            tasks in proptest::collection::vec(proptest::collection::vec((record(), number()), 0..8), 0..8),
        ) {
            let records: Vec<_> = (0..)
                .zip(&tasks)
                .flat_map(|(task, records)| records.iter().map(move |&(record, start)| Prepared { task: Rank(task), start, ..record }))
                .collect();
            let mut window = Window::default();
            for _ in 0..2 {
                window.clear();
                records.iter().for_each(|record| window.push(record));
                let found: Vec<_> = (0..window.len()).map(|place| window.get(place)).collect();
                prop_assert_eq!(&found, &records);
                let counts: Vec<_> = window.tasks().map(|places| places.len()).collect();
                let expected: Vec<_> = tasks.iter().map(Vec::len).filter(|&count| count > 0).collect();
                prop_assert_eq!(counts, expected);
            }
        }
    }

    #[test]
    fn usual_records_are_not_long() {
        let mut window = Window::default();
        for at in 0..100u32 {
            let what = match at % 3 {
                0 => What::Mark,
                1 => What::Message { number: at, dst: Rank(1), bytes: Bytes(1 << 31), fate: Fate::Expected },
                _ => {
                    let amounts = Amounts { send: Bytes(1 << 40), recv: Bytes(1 << 50) };
                    What::Collective { comm: 0, position: at, code: OpCode(2), amounts }
                }
            };
            let time = u64::from(u32::MAX);
            let (task, start, awaits) = (Rank(0), u64::MAX, Awaits::Sent);
            window.push(&Prepared { task, thread: None, start, time, awaits, what });
        }
        assert_eq!((window.long.len(), window.parts.len()), (0, 1));
    }
}

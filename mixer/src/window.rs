//! The prepared records of a window of time: half a cache line each, so that a window stays in a core's cache from its
//! preparation to its lines. What does not fit (computing for four seconds, a message of four gigabytes) stands beside.

use crate::matching::Fate;
use crate::order::Sorter;
use crate::prepare::{Awaits, Prepared, What};
use std::ops::Range;
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, OpCode};
use vef_format::units::Bytes;

/// The records of a window: task by task as they are prepared, then in the order of turns.
#[derive(Debug, Default)]
pub(crate) struct Window {
    packed: Vec<Packed>,
    /// When each began: apart, because that is all that sorting looks at.
    starts: Vec<u64>,
    /// What collectives are; the same as just before is not repeated.
    parts: Vec<(OpCode, Amounts)>,
    /// The records that do not fit.
    long: Vec<Prepared>,
}

/// A record but for its start.
#[derive(Clone, Copy, Debug)]
struct Packed {
    task: u32,
    /// From the lowest bit: two bits what it is, two bits what it waits for, two bits the fate of a message.
    kind: u32,
    time: u32,
    /// Source and message, or communicator and position.
    awaits: [u32; 2],
    /// Number, destination and bytes of a message; communicator and position of a collective, and the place of its part;
    /// the place among the long ones.
    what: [u32; 3],
}

const _: () = assert!(size_of::<Packed>() == 32);

const MARK: u32 = 0;
const MESSAGE: u32 = 1;
const COLLECTIVE: u32 = 2;
const LONG: u32 = 3;

const START: u32 = 0;
const SENT: u32 = 1;
const RECEIVED: u32 = 2;
const AFTER_COLLECTIVE: u32 = 3;

impl Window {
    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.packed.clear();
        self.starts.clear();
        self.parts.clear();
        self.long.clear();
    }

    /// How many records it has.
    pub(crate) fn len(&self) -> usize {
        self.packed.len()
    }

    /// Adds a record.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: &Prepared) {
        let (after, awaits) = match record.awaits {
            Awaits::Start => (START, [0; 2]),
            Awaits::Sent => (SENT, [0; 2]),
            Awaits::Received { source, message } => (RECEIVED, [source.0, message]),
            Awaits::Collective { comm, position } => (AFTER_COLLECTIVE, [comm, position]),
        };
        let (mut kind, bytes, mut what) = match record.what {
            What::Mark => (MARK, 0, [0; 3]),
            What::Message { number, dst, bytes, fate } => {
                (MESSAGE | (fate as u32) << 4, bytes.0, [number, dst.0, bytes.0 as u32])
            }
            What::Collective { comm, position, code, amounts } => {
                (COLLECTIVE, 0, [comm, position, self.part((code, amounts))])
            }
        };
        if (record.time | bytes) >> 32 != 0 {
            (kind, what) = (LONG, [self.long.len() as u32, 0, 0]);
            self.long.push(*record);
        }
        let (task, kind, time) = (record.task.0, kind | after << 2, record.time as u32);
        self.packed.push(Packed { task, kind, time, awaits, what });
        self.starts.push(record.start);
    }

    /// The place of `part`.
    fn part(&mut self, part: (OpCode, Amounts)) -> u32 {
        if self.parts.last() != Some(&part) {
            self.parts.push(part);
        }
        self.parts.len() as u32 - 1
    }

    /// The record at a place.
    #[inline(always)]
    pub(crate) fn get(&self, place: usize) -> Prepared {
        let Packed { task, kind, time, awaits: [one, other], what } = self.packed[place];
        let awaits = match kind >> 2 & 3 {
            START => Awaits::Start,
            SENT => Awaits::Sent,
            RECEIVED => Awaits::Received { source: Rank(one), message: other },
            _ => Awaits::Collective { comm: one, position: other },
        };
        let what = match kind & 3 {
            MARK => What::Mark,
            MESSAGE => {
                let [number, dst, bytes] = what;
                let fate = match kind >> 4 {
                    0 => Fate::Unawaited,
                    1 => Fate::Awaited,
                    2 => Fate::Expected,
                    _ => Fate::Dropped,
                };
                What::Message { number, dst: Rank(dst), bytes: Bytes(bytes.into()), fate }
            }
            COLLECTIVE => {
                let [comm, position, part] = what;
                let (code, amounts) = self.parts[part as usize];
                What::Collective { comm, position, code, amounts }
            }
            _ => return self.long[what[0] as usize],
        };
        Prepared { task: Rank(task), start: self.starts[place], time: time.into(), awaits, what }
    }

    /// The places of each task's records, before they are sorted.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        self.packed.chunk_by(|a, b| a.task == b.task).map(move |records| {
            let begin = end;
            end += records.len();
            begin..end
        })
    }

    /// Moves the records, which are task by task in ascending order of tasks, to `sorted` in the order of turns.
    pub(crate) fn sort(&mut self, sorter: &mut Sorter, sorted: &mut Self) {
        sorted.clear();
        let order = sorter.sort(&self.starts);
        sorted.packed.extend(order.iter().map(|&place| self.packed[place as usize]));
        sorted.starts.extend(order.iter().map(|&place| self.starts[place as usize]));
        std::mem::swap(&mut self.parts, &mut sorted.parts);
        std::mem::swap(&mut self.long, &mut sorted.long);
        self.clear();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    /// Any record of task 0 that begins at 0.
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
        (number(), awaits, what).prop_map(|(time, awaits, what)| Prepared {
            task: Rank(0),
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
            window.push(&Prepared { task: Rank(0), start: u64::MAX, time, awaits: Awaits::Sent, what });
        }
        assert_eq!((window.long.len(), window.parts.len()), (0, 1));
    }
}

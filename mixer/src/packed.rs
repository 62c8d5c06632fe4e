//! The records of one task between the walk that makes them and the output that writes them: some eight bytes
//! each, because every field takes only the bytes its value needs and references are distances.
//!
//! A record is two bytes of shape, then its fields:
//!
//! | byte | bits | |
//! |---|---|---|
//! | 0 | 0–1 | what it is: mark, message, collective |
//! | 0 | 2–3 | what it waits for: [`After`] |
//! | 0 | 4–7 | a collective: two bits a field for the widths of its amounts |
//! | 1 | 0–7 | two bits a field: width of the time, of the reference, of the peer, of the bytes |
//!
//! A width of `w` stands for `1 << w` bytes, little-endian.

use vef_format::ids::Rank;
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// What a record waits for, as its task alone can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing: its time counts from the start of `MPI_Init`.
    Start,
    /// The message or mark that is the latest of this task.
    Sent,
    /// What this receive (numbered in posting order) met.
    Received(u32),
    /// This collective (numbered in the order of the task's records).
    Collective(u32),
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// A local mark.
    Mark,
    /// A message, the next of its task.
    Message {
        /// To whom.
        dst: Rank,
        /// Payload.
        bytes: Bytes,
    },
    /// A part of a collective, the next of its task on that communicator.
    Collective {
        /// Which of the task's communicators.
        slot: u32,
        /// Which operation.
        operation: Operation,
        /// What the task contributes and obtains.
        amounts: Amounts,
    },
}

/// A record as its task alone can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// What it is.
    pub(crate) body: Body,
    /// What it waits for.
    pub(crate) after: After,
    /// Computing time in front of it, in nanoseconds.
    pub(crate) time: u64,
}

/// What references are distances from; the same on the writing and the reading side.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    receive: u32,
    collectives: u32,
}

impl Context {
    /// `after` as a small number.
    #[inline]
    fn shrink(&mut self, after: After) -> u32 {
        match after {
            After::Start | After::Sent => 0,
            After::Received(receive) => {
                let step = receive.wrapping_sub(self.receive) as i32;
                self.receive = receive;
                ((step << 1) ^ (step >> 31)) as u32
            }
            After::Collective(number) => self.collectives.wrapping_sub(number),
        }
    }

    #[inline]
    fn receive(&mut self, small: u32) -> After {
        let step = (small >> 1) ^ (small & 1).wrapping_neg();
        self.receive = self.receive.wrapping_add(step);
        After::Received(self.receive)
    }

    #[inline]
    fn pass(&mut self, body: Body) {
        self.collectives += u32::from(matches!(body, Body::Collective { .. }));
    }
}

/// More bytes than any record and a margin need.
const ROOM: usize = 64;
/// Bytes behind the last record, so that a field can be read eight at a time.
const MARGIN: usize = 8;

/// Writes the records of one task.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    /// Records up to `at`, then room.
    bytes: Vec<u8>,
    at: usize,
    context: Context,
}

/// The bytes of all records of one task.
#[derive(Debug, Default)]
pub(crate) struct Stream(Vec<u8>);

impl Stream {
    /// The memory it takes.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity()
    }
}

/// Reads the records of one task, in order.
#[derive(Debug, Default)]
pub(crate) struct Unpacker {
    at: usize,
    context: Context,
}

/// The width code of `value`.
#[inline(always)]
fn width(value: u64) -> u8 {
    // 0…8 significant bytes → log2 of the next power of two.
    const CODES: [u8; 9] = [0, 0, 1, 2, 2, 3, 3, 3, 3];
    CODES[(64 - value.leading_zeros()).div_ceil(8) as usize]
}

impl Packer {
    /// Adds a record.
    #[inline]
    pub(crate) fn push(&mut self, record: &Packed) {
        let reference = u64::from(self.context.shrink(record.after));
        let after = match record.after {
            After::Start => 0,
            After::Sent => 1,
            After::Received(_) => 2,
            After::Collective(_) => 3,
        };
        if self.bytes.len() - self.at < ROOM {
            self.bytes.resize(2 * self.bytes.len() + ROOM, 0);
        }
        let line = &mut self.bytes[self.at..self.at + ROOM];
        let mut at = 2;
        let mut field = |value: u64| {
            let code = width(value);
            line[at..at + 8].copy_from_slice(&value.to_le_bytes());
            at += 1 << code;
            code
        };
        let mut widths = field(record.time);
        if after >= 2 {
            widths |= field(reference) << 2;
        }
        let kind = match record.body {
            Body::Mark => 0,
            Body::Message { dst, bytes } => {
                widths |= field(dst.0.into()) << 4;
                widths |= field(bytes.0) << 6;
                1
            }
            Body::Collective { slot, operation, amounts } => {
                widths |= field(slot.into()) << 4;
                widths |= field(operation as u64) << 6;
                2 | field(amounts.send.0) << 4 | field(amounts.recv.0) << 6
            }
        };
        line[0] = kind | after << 2;
        line[1] = widths;
        self.at += at;
        self.context.pass(record.body);
    }

    /// Ends the stream.
    pub(crate) fn finish(mut self) -> Stream {
        self.bytes.resize(self.at + MARGIN, 0);
        self.bytes.shrink_to_fit();
        Stream(self.bytes)
    }
}

impl Unpacker {
    /// The next record, `None` behind the last.
    #[inline]
    pub(crate) fn next(&mut self, stream: &Stream) -> Option<Packed> {
        let bytes = stream.0.get(self.at..)?;
        if bytes.len() <= MARGIN {
            return None;
        }
        let (shape, widths) = (bytes[0], bytes[1]);
        let mut at = 2;
        let mut field = |code: u8| {
            let code = code & 3;
            let word = match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
                Some(chunk) => u64::from_le_bytes(*chunk),
                // Cannot be: the margin is behind every field.
                None => 0,
            };
            at += 1 << code;
            word & (u64::MAX >> (64 - (8 << code)))
        };
        let time = field(widths);
        let after = match shape >> 2 & 3 {
            0 => After::Start,
            1 => After::Sent,
            2 => self.context.receive(field(widths >> 2) as u32),
            _ => After::Collective(self.context.collectives.wrapping_sub(field(widths >> 2) as u32)),
        };
        let body = match shape & 3 {
            0 => Body::Mark,
            1 => Body::Message { dst: Rank(field(widths >> 4) as u32), bytes: Bytes(field(widths >> 6)) },
            _ => Body::Collective {
                slot: field(widths >> 4) as u32,
                operation: Operation::ALL[field(widths >> 6) as usize],
                amounts: Amounts { send: Bytes(field(shape >> 4)), recv: Bytes(field(shape >> 6)) },
            },
        };
        self.at += at;
        self.context.pass(body);
        Some(Packed { body, after, time })
    }
}

/// When the records of one task began, as steps from each to the next: four bytes a record.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    steps: Vec<u32>,
    /// The steps that do not fit, in order.
    long: Vec<u64>,
    last: u64,
}

/// Reads [`Starts`] in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartCursor {
    at: usize,
    long: usize,
    now: u64,
}

impl Starts {
    /// Adds the start of a record, at least that of the one before.
    #[inline]
    pub(crate) fn push(&mut self, start: u64) {
        let step = start.saturating_sub(self.last);
        self.last += step;
        match u32::try_from(step) {
            Ok(step) if step != u32::MAX => self.steps.push(step),
            _ => {
                self.steps.push(u32::MAX);
                self.long.push(step);
            }
        }
    }

    /// The memory they take.
    pub(crate) fn memory(&self) -> usize {
        4 * self.steps.capacity() + 8 * self.long.capacity()
    }

    /// Gives back unused memory.
    pub(crate) fn shrink(&mut self) {
        self.steps.shrink_to_fit();
        self.long.shrink_to_fit();
    }
}

impl StartCursor {
    /// The start of the next record.
    #[inline]
    pub(crate) fn next(&mut self, starts: &Starts) -> Option<u64> {
        let &step = starts.steps.get(self.at)?;
        self.at += 1;
        self.now += if step == u32::MAX {
            self.long += 1;
            starts.long[self.long - 1]
        } else {
            step.into()
        };
        Some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    fn record() -> impl Strategy<Value = Packed> {
        let after = prop_oneof![
            Just(After::Start),
            Just(After::Sent),
            any::<u32>().prop_map(After::Received),
            any::<u32>().prop_map(After::Collective),
        ];
        let body = prop_oneof![
            Just(Body::Mark),
            (any::<u32>(), number())
                .prop_map(|(dst, bytes)| Body::Message { dst: Rank(dst), bytes: Bytes(bytes) }),
            (any::<u32>(), 0..Operation::ALL.len(), number(), number()).prop_map(|(slot, op, send, recv)| {
                Body::Collective {
                    slot,
                    operation: Operation::ALL[op],
                    amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
                }
            }),
        ];
        (body, after, number()).prop_map(|(body, after, time)| Packed { body, after, time })
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(records in proptest::collection::vec(record(), 0..60)) {
            let mut packer = Packer::default();
            for record in &records {
                packer.push(record);
            }
            let stream = packer.finish();
            let mut unpacker = Unpacker::default();
            for record in &records {
                prop_assert_eq!(unpacker.next(&stream), Some(*record));
            }
            prop_assert_eq!(unpacker.next(&stream), None);
        }

        #[test]
        fn starts_come_back(mut times in proptest::collection::vec(number(), 0..60)) {
            times.sort_unstable();
            let mut starts = Starts::default();
            for &time in &times {
                starts.push(time);
            }
            let mut cursor = StartCursor::default();
            for &time in &times {
                prop_assert_eq!(cursor.next(&starts), Some(time));
            }
            prop_assert_eq!(cursor.next(&starts), None);
        }
    }

    #[test]
    fn operations_are_numbered_as_listed() {
        for (at, &operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(operation as usize, at);
        }
    }

    #[test]
    fn a_usual_mark_takes_five_bytes() {
        let mut packer = Packer::default();
        packer.push(&Packed { body: Body::Mark, after: After::Received(1), time: 1500 });
        assert_eq!(packer.at, 5);
    }
}

//! The prepared records of a window as bytes, for those that another part or process prepares: some 15 bytes a record.
//!
//! Task by task: how many tasks further, how many records, and these: a byte of shape (what it is, what it waits
//! for), then the fields as numbers.

use crate::bytes::{Author, Garbled, Reader};
use crate::matching::Fate;
use crate::prepare::{Awaits, Prepared, What};
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, OpCode};
use vef_format::units::Bytes;

const MARK: u64 = 0;
const MESSAGE: u64 = 1;
const COLLECTIVE: u64 = 2;
const START: u64 = 0;
const SENT: u64 = 1;
const RECEIVED: u64 = 2;
const AFTER_COLLECTIVE: u64 = 3;

/// Prepared `records`, task by task; `comm` gives the number that all know of one's own communicator.
pub(crate) fn encode(records: &[Prepared], comm: &dyn Fn(u32) -> u32) -> Vec<u8> {
    let mut author = Author(Vec::with_capacity(16 * records.len()));
    let mut last = 0;
    for records in records.chunk_by(|a, b| a.task == b.task) {
        let Prepared { task, start, .. } = records[0];
        author.put((task.0 - last).into());
        author.put(records.len() as u64);
        author.put(start);
        last = task.0;
        let mut before = start;
        for record in records {
            put(&mut author, record, record.start - before, comm);
            before = record.start;
        }
    }
    author.0
}

fn put(author: &mut Author, record: &Prepared, step: u64, comm: &dyn Fn(u32) -> u32) {
    let (kind, fate) = match record.what {
        What::Mark => (MARK, Fate::Unawaited),
        What::Message { fate, .. } => (MESSAGE, fate),
        What::Collective { .. } => (COLLECTIVE, Fate::Unawaited),
    };
    let awaits = match record.awaits {
        Awaits::Start => START,
        Awaits::Sent => SENT,
        Awaits::Received { .. } => RECEIVED,
        Awaits::Collective { .. } => AFTER_COLLECTIVE,
    };
    // Below 48, so it is one byte.
    author.put(kind + 3 * awaits + 12 * fate as u64);
    author.put(step);
    author.put(record.time);
    match record.awaits {
        Awaits::Start | Awaits::Sent => {}
        Awaits::Received { source, message } => {
            author.put(source.0.into());
            author.put(message.into());
        }
        Awaits::Collective { comm: own, position } => {
            author.put(comm(own).into());
            author.put(position.into());
        }
    }
    match record.what {
        What::Mark => {}
        What::Message { number, dst, bytes, .. } => {
            author.put(number.into());
            author.put(dst.0.into());
            author.put(bytes.0);
        }
        What::Collective { comm: own, position, code, amounts } => {
            author.put(comm(own).into());
            author.put(position.into());
            author.put(code.0.into());
            author.put(amounts.send.0);
            author.put(amounts.recv.0);
        }
    }
}

/// Adds the records in `bytes` to `records`.
pub(crate) fn decode(bytes: &[u8], records: &mut Vec<Prepared>) -> Result<(), Garbled> {
    let mut reader = Reader::new(bytes);
    let mut task = 0u32;
    while reader.more() {
        task = task.checked_add(reader.get_u32()?).ok_or(Garbled)?;
        let count = reader.get()?;
        let mut start = reader.get()?;
        for _ in 0..count {
            records.push(get(&mut reader, Rank(task), &mut start)?);
        }
    }
    Ok(())
}

#[inline]
fn get(reader: &mut Reader<'_>, task: Rank, start: &mut u64) -> Result<Prepared, Garbled> {
    let shape = reader.get()?;
    *start = start.checked_add(reader.get()?).ok_or(Garbled)?;
    let time = reader.get()?;
    let awaits = match shape / 3 % 4 {
        START => Awaits::Start,
        SENT => Awaits::Sent,
        AFTER_COLLECTIVE => Awaits::Collective { comm: reader.get_u32()?, position: reader.get_u32()? },
        _ => Awaits::Received { source: Rank(reader.get_u32()?), message: reader.get_u32()? },
    };
    let what = match shape % 3 {
        MARK => What::Mark,
        MESSAGE => {
            let fate = match shape / 12 {
                0 => Fate::Unawaited,
                1 => Fate::Awaited,
                2 => Fate::Expected,
                _ => return Err(Garbled),
            };
            let number = reader.get_u32()?;
            What::Message { number, dst: Rank(reader.get_u32()?), bytes: Bytes(reader.get()?), fate }
        }
        _ => {
            let (comm, position) = (reader.get_u32()?, reader.get_u32()?);
            let code = OpCode(u16::try_from(reader.get()?).map_err(|_| Garbled)?);
            let amounts = Amounts { send: Bytes(reader.get()?), recv: Bytes(reader.get()?) };
            What::Collective { comm, position, code, amounts }
        }
    };
    Ok(Prepared { task, start: *start, time, awaits, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = (u64, Prepared)> {
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
            (any::<(u32, u32, u64)>(), fate).prop_map(|((number, dst, bytes), fate)| What::Message {
                number,
                dst: Rank(dst),
                bytes: Bytes(bytes),
                fate
            }),
            any::<(u32, u32, u16, u64, u64)>().prop_map(|(comm, position, code, send, recv)| {
                let amounts = Amounts { send: Bytes(send), recv: Bytes(recv) };
                What::Collective { comm, position, code: OpCode(code), amounts }
            }),
        ];
        let task = Rank(0);
        (any::<u32>(), any::<u64>(), awaits, what).prop_map(move |(step, time, awaits, what)| {
            (step.into(), Prepared { task, start: 0, time, awaits, what })
        })
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            tasks in proptest::collection::vec(proptest::collection::vec(record(), 0..8), 0..8),
            cut: usize,
        ) {
            let mut records = Vec::new();
            for (rank, of_task) in (0..).zip(&tasks) {
                let mut start = 1u64 << 40;
                for &(step, record) in of_task {
                    start += step;
                    records.push(Prepared { task: Rank(rank), start, ..record });
                }
            }
            let bytes = encode(&records, &|comm| comm);
            let mut decoded = Vec::new();
            prop_assert_eq!(decode(&bytes, &mut decoded), Ok(()));
            prop_assert_eq!(&records, &decoded);
            // Whatever is cut off: no panic.
            let _ = decode(&bytes[..cut % (bytes.len() + 1)], &mut Vec::new());
        }
    }
}

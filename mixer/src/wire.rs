//! Encodes the prepared records of a window for another part or process, in some 15 bytes a record.
//!
//! By task: distance from the previous task, number of records, start; then for each record a byte of shape (kind,
//! dependency, fate), and its fields as numbers.

use crate::bytes::{Encoder, Garbled, Reader};
use crate::matching::Fate;
use crate::prepared::{Awaits, Prepared, What};
use crate::window::Window;
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
/// Added to a shape: the thread's number follows.
const THREADED: u64 = 48;

/// Encodes the records of `window`; `comm` maps an own communicator to its common number.
pub(crate) fn encode(window: &Window, comm: &dyn Fn(u32) -> u32) -> Vec<u8> {
    let mut encoder = Encoder(Vec::with_capacity(16 * window.records().len()));
    let mut last = 0;
    for records in window.records().chunk_by(|a, b| a.task == b.task) {
        let Prepared { task, start, .. } = records[0];
        encoder.put((task.0 - last).into());
        encoder.put(records.len() as u64);
        encoder.put(start);
        last = task.0;
        let mut before = start;
        for record in records {
            put(&mut encoder, record, record.start - before, comm);
            before = record.start;
        }
    }
    encoder.0
}

fn put(encoder: &mut Encoder, record: &Prepared, step: u64, comm: &dyn Fn(u32) -> u32) {
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
    // Below 96: one byte.
    encoder.put(kind + 3 * awaits + 12 * fate as u64 + record.thread.map_or(0, |_| THREADED));
    if let Some(thread) = record.thread {
        encoder.put(thread.into());
    }
    encoder.put(step);
    encoder.put(record.time);
    match record.awaits {
        Awaits::Start | Awaits::Sent => {}
        Awaits::Received { source, message } => {
            encoder.put(source.0.into());
            encoder.put(message.into());
        }
        Awaits::Collective { comm: own, position } => {
            encoder.put(comm(own).into());
            encoder.put(position.into());
        }
    }
    match record.what {
        What::Mark => {}
        What::Message { number, dst, .. } => {
            encoder.put(number.into());
            encoder.put(dst.0.into());
            encoder.put(record.amounts.send.0);
        }
        What::Collective { comm: own, position, code } => {
            encoder.put(comm(own).into());
            encoder.put(position.into());
            encoder.put(code.0.into());
            encoder.put(record.amounts.send.0);
            encoder.put(record.amounts.recv.0);
        }
    }
}

/// Appends the encoded records to `window`.
pub(crate) fn decode(bytes: &[u8], window: &mut Window) -> Result<(), Garbled> {
    let mut reader = Reader::new(bytes);
    let mut task = 0u32;
    while reader.more() {
        task = task.checked_add(reader.get_u32()?).ok_or(Garbled)?;
        let count = reader.get()?;
        let mut start = reader.get()?;
        for _ in 0..count {
            window.push(get(&mut reader, Rank(task), &mut start)?);
        }
    }
    Ok(())
}

#[inline]
fn get(reader: &mut Reader<'_>, task: Rank, start: &mut u64) -> Result<Prepared, Garbled> {
    let mut shape = reader.get()?;
    let mut thread = None;
    if shape >= THREADED {
        shape -= THREADED;
        thread = Some(u16::try_from(reader.get()?).map_err(|_| Garbled)?);
    }
    *start = start.checked_add(reader.get()?).ok_or(Garbled)?;
    let time = reader.get()?;
    let awaits = match shape / 3 % 4 {
        START => Awaits::Start,
        SENT => Awaits::Sent,
        AFTER_COLLECTIVE => Awaits::Collective { comm: reader.get_u32()?, position: reader.get_u32()? },
        _ => Awaits::Received { source: Rank(reader.get_u32()?), message: reader.get_u32()? },
    };
    let mut amounts = Amounts::default();
    let what = match shape % 3 {
        MARK => What::Mark,
        MESSAGE => {
            let fate = match shape / 12 {
                0 => Fate::Unawaited,
                1 => Fate::Awaited,
                2 => Fate::Expected,
                _ => return Err(Garbled),
            };
            let (number, dst) = (reader.get_u32()?, Rank(reader.get_u32()?));
            amounts.send = Bytes(reader.get()?);
            What::Message { number, dst, fate }
        }
        _ => {
            let (comm, position) = (reader.get_u32()?, reader.get_u32()?);
            let code = OpCode(u16::try_from(reader.get()?).map_err(|_| Garbled)?);
            amounts = Amounts { send: Bytes(reader.get()?), recv: Bytes(reader.get()?) };
            What::Collective { comm, position, code }
        }
    };
    Ok(Prepared { task, thread, start: *start, time, awaits, what, amounts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::tests::record;
    use proptest::prelude::*;

    #[test]
    fn no_window_says_that_there_is_none() {
        assert_eq!(encode(&Window::default(), &|comm| comm), []);
        assert!(decode(crate::job::FAILED, &mut Window::default()).is_err());
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            tasks in proptest::collection::vec(proptest::collection::vec((record(), any::<u32>()), 0..8), 0..8),
            cut: usize,
        ) {
            let mut records = Vec::new();
            for (rank, of_task) in (0..).zip(&tasks) {
                let mut start = 1u64 << 40;
                for &(record, step) in of_task {
                    start += u64::from(step);
                    records.push(Prepared { task: Rank(rank), start, ..record });
                }
            }
            let mut window = Window::default();
            for &record in &records {
                window.push(record);
            }
            let bytes = encode(&window, &|comm| comm);
            let mut decoded = Window::default();
            prop_assert_eq!(decode(&bytes, &mut decoded), Ok(()));
            prop_assert_eq!(&records[..], decoded.records());
            // Truncation must not panic.
            let _ = decode(&bytes[..cut % (bytes.len() + 1)], &mut Window::default());
        }
    }
}

//! Encodes the prepared records of a window for another part or process, in some 15 bytes a record.
//!
//! By task: distance from the previous task, number of records, start; then for each record a byte of shape (tag, fate), and
//! its fields as numbers.

use crate::bytes::{Encoder, Garbled, Reader};
use crate::prepared::{EXPECTED, Prepared, join, split};
use crate::window::Window;
use vef_format::ids::Rank;
use vef_format::raw::{Raw, RawKind};

/// Added to a tag, which is below: a record depends on this message.
const IS_EXPECTED: u64 = 32;
/// Added to a tag: the thread's number follows.
const THREADED: u64 = 64;

/// Encodes the records of `window`; `comm` maps an own communicator to its common number.
pub(crate) fn encode(window: &Window, comm: &dyn Fn(u32) -> u32) -> Vec<u8> {
    let mut encoder = Encoder(Vec::with_capacity(16 * window.records.len()));
    let mut last = 0;
    for records in window.records.chunk_by(|a, b| a.task == b.task) {
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
    let raw = &record.raw;
    let expected = if !raw.is_collective() && raw.id & EXPECTED != 0 { IS_EXPECTED } else { 0 };
    // Below 128: one byte.
    encoder.put(u64::from(raw.tag) | expected | record.thread.map_or(0, |_| THREADED));
    if let Some(thread) = record.thread {
        encoder.put(thread.into());
    }
    encoder.put(step);
    encoder.put(raw.time);
    let (at, number) = split(raw.after);
    if raw.dependency_code() >= 2 {
        encoder.put(if raw.dependency_code() == 3 { comm(at) } else { at }.into());
        encoder.put(number.into());
    }
    if raw.kind() != RawKind::Mark {
        encoder.put((raw.id as u32).into());
        encoder.put(if raw.is_collective() { comm(raw.to) } else { raw.to }.into());
        encoder.put(raw.bytes);
    }
    if raw.is_collective() {
        encoder.put(raw.recv);
        encoder.put(raw.op.into());
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
    let shape = reader.get()?;
    let thread = match shape & THREADED {
        0 => None,
        _ => Some(u16::try_from(reader.get()?).map_err(|_| Garbled)?),
    };
    *start = start.checked_add(reader.get()?).ok_or(Garbled)?;
    let tag = shape as u8 % IS_EXPECTED as u8;
    let mut raw = Raw { time: reader.get()?, to: task.0, tag, ..Raw::NOTHING };
    if raw.dependency_code() >= 2 {
        raw.after = join(reader.get_u32()?, reader.get_u32()?);
    }
    if raw.kind() != RawKind::Mark {
        let expected = if shape & IS_EXPECTED != 0 { EXPECTED } else { 0 };
        raw.id = u64::from(reader.get_u32()?) | expected;
        (raw.to, raw.bytes) = (reader.get_u32()?, reader.get()?);
    }
    if raw.is_collective() {
        raw.recv = reader.get()?;
        raw.op = u16::try_from(reader.get()?).map_err(|_| Garbled)?;
    }
    Ok(Prepared { raw, start: *start, task, thread })
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
                    let mut record = Prepared { task: Rank(rank), start, ..record };
                    if record.raw.kind() == RawKind::Mark {
                        record.raw.to = rank;
                    }
                    records.push(record);
                }
            }
            let mut window = Window::default();
            for &record in &records {
                window.push(record);
            }
            let bytes = encode(&window, &|comm| comm);
            let mut decoded = Window::default();
            prop_assert_eq!(decode(&bytes, &mut decoded), Ok(()));
            prop_assert_eq!(records, decoded.records);
            // Truncation must not panic.
            let _ = decode(&bytes[..cut % (bytes.len() + 1)], &mut Window::default());
        }
    }
}

//! Encodes the prepared records of a window for another part or process, in some 15 bytes a record.
//!
//! By task: distance from the previous task, number of records, start; then for each record a byte of shape (tag, fate), and
//! its fields as numbers.

use crate::error::MixError;
use crate::prepared::{HAS_DEPENDENT, Prepared};
use crate::window::Window;
use vef_format::ids::Rank;
use vef_format::raw::{Raw, RawKind};
use vef_format::varint::{self, Source};

/// Added to a tag, which is below: a record depends on this message.
const DEPENDENT: u64 = 32;
/// Added to a tag: the thread's number follows.
const THREADED: u64 = 64;

/// Encodes the records of `window`.
pub(crate) fn encode(window: &Window) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 * window.records.len());
    let mut last = 0;
    for records in window.records.chunk_by(|a, b| a.task == b.task) {
        let Prepared { task, start, .. } = records[0];
        for field in [(task.0 - last).into(), records.len() as u64, start] {
            varint::put(&mut bytes, field);
        }
        last = task.0;
        let mut before = start;
        for record in records {
            put(&mut bytes, record, record.start - before);
            before = record.start;
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, record: &Prepared, step: u64) {
    let raw = &record.raw;
    let dependent = if !raw.is_collective() && raw.id & HAS_DEPENDENT != 0 { DEPENDENT } else { 0 };
    // Below 128: one byte.
    varint::put(bytes, u64::from(raw.tag) | dependent | record.thread.map_or(0, |_| THREADED));
    record.thread.into_iter().for_each(|thread| varint::put(bytes, thread.into()));
    varint::put(bytes, step);
    varint::put(bytes, raw.time);
    if raw.dependency_code() >= 2 {
        varint::put(bytes, raw.after >> 32);
        varint::put(bytes, raw.after & u64::from(u32::MAX));
    }
    if raw.kind() != RawKind::Mark {
        varint::put(bytes, raw.id & !HAS_DEPENDENT);
        varint::put(bytes, raw.to.into());
        varint::put(bytes, raw.bytes);
    }
    if raw.is_collective() {
        varint::put(bytes, raw.recv);
        varint::put(bytes, raw.op.into());
    }
}

/// Appends the encoded records to `window`. The bytes are of [`encode`], so an error is a defect of the program.
pub(crate) fn decode(bytes: &[u8], window: &mut Window) -> Result<(), MixError> {
    let mut source = Source::new(bytes, 0);
    let mut task = Rank(0);
    while source.remaining() > 0 {
        let [distance, count, mut start] = source.fields::<3, 0>()?;
        task.0 += distance as u32;
        for _ in 0..count {
            window.push(get(&mut source, task, &mut start)?);
        }
    }
    Ok(())
}

#[inline]
fn get(source: &mut Source<'_>, task: Rank, start: &mut u64) -> Result<Prepared, MixError> {
    let shape = source.get()?;
    let thread = if shape & THREADED == 0 { None } else { Some(source.get()? as u16) };
    *start += source.get()?;
    let tag = (shape % DEPENDENT) as u8;
    let mut raw = Raw { time: source.get()?, to: task.0, tag, ..Raw::NOTHING };
    if raw.dependency_code() >= 2 {
        raw.after = source.get()? << 32 | source.get()?;
    }
    if raw.kind() != RawKind::Mark {
        let dependent = if shape & DEPENDENT != 0 { HAS_DEPENDENT } else { 0 };
        raw.id = source.get()? | dependent;
        (raw.to, raw.bytes) = (source.get()? as u32, source.get()?);
    }
    if raw.is_collective() {
        (raw.recv, raw.op) = (source.get()?, source.get()? as u16);
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
        assert!(encode(&Window::default()).is_empty());
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
            let bytes = encode(&window);
            let mut decoded = Window::default();
            prop_assert!(decode(&bytes, &mut decoded).is_ok());
            prop_assert_eq!(records, decoded.records);
            // Truncation must not panic.
            let _ = decode(&bytes[..cut % (bytes.len() + 1)], &mut Window::default());
        }
    }
}

//! The records of a stretch of the captured run, from the moments that a container notes.

use super::PartError;
use super::selection::Stretch;
use crate::LoadError;
use crate::captured::Moments;
use crate::source::Feed;
use vef_format::ids::Rank;
use vef_format::raw::Raw;
use vef_format::units::{Picos, Ticks};

/// The stretches of each rank between two captured times, and a description.
pub(crate) fn captured_time(
    trace: &Feed,
    from: Picos,
    to: Option<Picos>,
) -> Result<(Vec<Vec<Stretch>>, String), PartError> {
    if let Some(to) = to.filter(|&to| to <= from) {
        return Err(PartError::Backwards { from, to });
    }
    let Feed::Container(container) = trace else { return Err(PartError::NoTimes) };
    let reader = container.reader();
    let clock = reader.header().clock.0.max(1);
    let (begin, end) = (from.0.div_ceil(clock), to.map_or(u64::MAX, |to| to.0.div_ceil(clock)));
    let spans = reader.program_spans().map_err(LoadError::from)?.ok_or(PartError::NoTimes)?;
    let mut stretches = vec![Vec::new(); reader.header().tasks as usize];
    // When the last record begins that is looked at.
    let mut last = 0;
    for task in reader.tasks().filter(|task| task.index() < spans.len()).collect::<Vec<Rank>>() {
        let moments = Moments::new(reader, task).map_err(LoadError::from)?;
        let mut moments = match moments {
            Some(moments) => moments,
            None if reader.records_of(task) == 0 => continue,
            None => return Err(PartError::NoTimes),
        };
        let start_up =
            spans.get(task.index()).filter(|span| span.in_records).map_or(0, |span| span.initialised.0);
        let (mut begin_at, mut end_at) = (begin.saturating_add(start_up), end.saturating_add(start_up));
        if begin == 0 {
            begin_at = 0;
        }
        let (mut number, mut records) = (0u64, 0..0u64);
        let (mut before, mut behind) = (0, 0);
        let mut failed = Ok(());
        let mut see = |raw: &Raw| -> Result<(), LoadError> {
            if end_at == 0 {
                return Ok(());
            }
            let at = moments.of(number, raw.time).map_err(LoadError::from)?;
            last = last.max(at.saturating_sub(start_up));
            let computing = at.saturating_sub(raw.time);
            if at < begin_at {
                records = number + 1..number + 1;
            } else if at < end_at {
                if records.is_empty() {
                    before = begin_at.saturating_sub(computing).min(raw.time);
                }
                records.end = number + 1;
            } else {
                // The first behind the end.
                let first = if records.is_empty() { begin_at.max(computing) } else { computing };
                if records.is_empty() {
                    before = (first - computing).min(raw.time);
                }
                behind = end_at.saturating_sub(first).min(raw.time);
                end_at = 0;
            }
            number += 1;
            Ok(())
        };
        let mut streamed = reader.task(task);
        streamed
            .each_raw(|raw| {
                if failed.is_ok() {
                    failed = see(raw);
                }
            })
            .map_err(LoadError::from)?;
        failed?;
        let (before, behind) = (Ticks(before), Ticks(behind));
        stretches[task.index()].push(Stretch { records, before, behind, awaits: None });
    }
    if last < begin {
        return Err(PartError::Late { from, last: Picos(last.saturating_mul(clock)) });
    }
    let until = to.map_or("the end".to_owned(), |to| to.to_string());
    Ok((stretches, format!("captured time from {from} to {until}")))
}

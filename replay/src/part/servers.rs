//! The records of a part at tasks that ran no program: storage servers and network interfaces answer the requests of the part, and no others, between
//! the marks at their beginning and end.

use super::ids::Ids;
use super::selection::{Stretch, holds};
use crate::source::{Feed, SourceError};
use vef_format::raw::{KIND, MARK, MESSAGE};

/// Adds the records with which the tasks from `program` on answer what the `stretches` of the program's tasks send them. A server's records
/// from one that waits for a request to the next such one belong to that request. A mark that is its first record, or its last, is in every part.
pub(crate) fn add_answers(
    trace: &Feed,
    program: u32,
    stretches: &mut [Vec<Stretch>],
) -> Result<(), SourceError> {
    if program as usize >= stretches.len() {
        return Ok(());
    }
    let mut requests = Ids::default();
    let mut numbers = vec![0u64; stretches.len()];
    trace.survey(false, &mut |task, raw| {
        let number = &mut numbers[task.index()];
        let asks = raw.tag & KIND == MESSAGE && raw.to >= program;
        if asks && task.0 < program && holds(&stretches[task.index()], *number) {
            requests.insert(raw.id);
        }
        *number += 1;
    })?;
    let mut answers = vec![false; stretches.len()];
    let mut numbers = vec![0u64; stretches.len()];
    let mut ends = vec![None; stretches.len()];
    trace.survey(false, &mut |task, raw| {
        if task.0 < program {
            return;
        }
        let (number, answers) = (&mut numbers[task.index()], &mut answers[task.index()]);
        if raw.dependency_code() == 2 {
            *answers = requests.contains(raw.after);
        }
        let is_mark = raw.tag & KIND == MARK;
        let is_in = *answers || (is_mark && *number == 0);
        if is_in {
            append(&mut stretches[task.index()], *number);
        }
        ends[task.index()] = (is_mark && !is_in).then_some(*number);
        *number += 1;
    })?;
    for (stretches, end) in stretches.iter_mut().zip(ends) {
        end.into_iter().for_each(|number| append(stretches, number));
    }
    Ok(())
}

/// Adds a record behind all others.
fn append(stretches: &mut Vec<Stretch>, number: u64) {
    match stretches.last_mut().filter(|last| last.records.end == number) {
        Some(last) => last.records.end += 1,
        None => stretches.push(Stretch::of(number..number + 1)),
    }
}

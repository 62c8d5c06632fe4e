//! The records of a phase that the program has marked, from the notes of a container.

use super::PartError;
use super::selection::Stretch;
use crate::LoadError;
use crate::source::Feed;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use vef_format::container::{Notes, PhaseMark, PhaseMarks, Section};
use vef_format::ids::Rank;
use vef_format::units::Ticks;

/// Names of phases in an error.
const MOST_NAMES: usize = 20;

/// The stretches of each rank in a phase, in the given `entry` or in all of them; and a description. A phase `name:entry` goes first.
pub(crate) fn phase(
    trace: &Feed,
    name: &str,
    entry: Option<NonZeroU64>,
) -> Result<(Vec<Vec<Stretch>>, String), PartError> {
    match entry.map(|entry| find(trace, &format!("{name}:{entry}"), None)) {
        Some(Ok(whole)) => Ok(whole),
        None | Some(Err(PartError::UnknownPhase { .. })) => find(trace, name, entry),
        Some(error) => error,
    }
}

fn find(
    trace: &Feed,
    name: &str,
    entry: Option<NonZeroU64>,
) -> Result<(Vec<Vec<Stretch>>, String), PartError> {
    let Feed::Container(container) = trace else { return Err(PartError::NoPhases) };
    let reader = container.reader();
    let mut stretches = vec![Vec::new(); reader.header().tasks as usize];
    let (mut known, mut most) = (BTreeSet::new(), 0);
    let notes = |section| reader.notes_of_all(section).map_err(LoadError::from);
    let mut moments: BTreeMap<Rank, Notes> = notes(Section::Moments)?.into_iter().collect();
    for (task, phases) in notes(Section::Phases)? {
        let mut marks = PhaseMarks::new(phases, moments.remove(&task));
        let (mut depth, mut entries, mut begun) = (0u64, 0u64, None);
        let mut add = |(begin, before): (u64, u64), (end, behind): (u64, u64), entries: u64| {
            if entry.is_some_and(|entry| entry.get() != entries) {
                return;
            }
            // Of a phase without records the computing in it stays.
            let behind = if begin == end { behind.saturating_sub(before) } else { behind };
            stretches[task.index()].push(Stretch {
                records: begin..end,
                before: Ticks(before),
                behind: Ticks(behind),
                awaits: None,
            });
        };
        while let Some(mark) = marks.next(reader).map_err(LoadError::from)? {
            let PhaseMark { record: place, computed: Ticks(computed), begin, name: its } = mark;
            if its != name {
                if known.len() < MOST_NAMES {
                    known.insert(its.to_owned());
                }
                continue;
            }
            match (begin, depth) {
                (true, 0) => (depth, entries, begun) = (1, entries + 1, Some((place, computed))),
                (true, _) => depth += 1,
                (false, 0) => {}
                (false, 1) => {
                    depth = 0;
                    begun.take().into_iter().for_each(|begun| add(begun, (place, computed), entries));
                }
                (false, _) => depth -= 1,
            }
        }
        // It lasts to the end of the run.
        begun.into_iter().for_each(|begun| add(begun, (reader.records_of(task), 0), entries));
        most = most.max(entries);
    }
    match entry {
        _ if most == 0 && known.is_empty() => Err(PartError::NoPhases),
        _ if most == 0 => {
            Err(PartError::UnknownPhase { name: name.to_owned(), known: known.into_iter().collect() })
        }
        Some(entry) if entry.get() > most => Err(PartError::Entry { name: name.to_owned(), most }),
        Some(entry) => Ok((stretches, format!("phase {name:?}, entry {entry} of {most}"))),
        None => {
            Ok((stretches, format!("phase {name:?}, {most} {}", if most == 1 { "entry" } else { "entries" })))
        }
    }
}

//! The records of a phase that the program has marked, from the notes of a container.

use super::PartError;
use super::selection::Stretch;
use crate::source::Feed;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use vef_format::container::{Note, Section};

/// Names of phases in an error.
const MOST_NAMES: usize = 20;

/// The stretches of each rank in a phase, in the given `entry` or in all of them; and a description.
pub(crate) fn phase(
    trace: &Feed,
    name: &str,
    entry: Option<NonZeroU64>,
) -> Result<(Vec<Vec<Stretch>>, String), PartError> {
    let Feed::Container(container) = trace else { return Err(PartError::NoPhases) };
    let reader = container.reader();
    let mut stretches = vec![Vec::new(); reader.header().tasks as usize];
    let (mut known, mut most) = (BTreeSet::new(), 0);
    for (task, mut notes) in reader.notes_of_all(Section::Phases).map_err(crate::LoadError::from)? {
        let (mut depth, mut entries, mut begun) = (0u64, 0u64, None);
        let mut add = |records: std::ops::Range<u64>, entries: u64| {
            if entry.is_none_or(|entry| entry.get() == entries) && !records.is_empty() {
                stretches[task.index()].push(Stretch::of(records));
            }
        };
        while let Some((place, note)) = notes.next(reader).map_err(crate::LoadError::from)? {
            let Note::Phase { begin, name: its } = note else { continue };
            if its != name {
                if known.len() < MOST_NAMES && !known.contains(its) {
                    known.insert(its.to_owned());
                }
                continue;
            }
            match (begin, depth) {
                (true, 0) => (depth, entries, begun) = (1, entries + 1, Some(place)),
                (true, _) => depth += 1,
                (false, 0) => {}
                (false, 1) => {
                    depth = 0;
                    begun.take().into_iter().for_each(|begun| add(begun..place, entries));
                }
                (false, _) => depth -= 1,
            }
        }
        // It lasts to the end of the run.
        begun.into_iter().for_each(|begun| add(begun..reader.records_of(task), entries));
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

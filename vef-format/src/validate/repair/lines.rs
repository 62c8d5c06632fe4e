//! Repairs that need not know the meaning of records: counts, positions, ids.

use super::changes::{Changes, Mended, by_task};
use crate::ids::CommId;
use crate::record::{Counts, Dependency, Header, Record, Version, WrongCount};
use std::collections::{HashMap, HashSet};

/// Moves communicators above their first collective; removes duplicates.
pub(super) fn communicators(records: &mut Vec<(u64, Record)>, log: &mut Changes) {
    let mut seen: HashMap<CommId, usize> = HashMap::new();
    let mut used = HashSet::new();
    let (mut late, mut twice) = (Vec::new(), Vec::new());
    for (at, (_, record)) in records.iter().enumerate() {
        match record {
            Record::Communicator { id, .. } => match seen.get(id) {
                Some(&first) if records[first].1 == *record => twice.push(at),
                Some(_) => {}
                None => {
                    seen.insert(*id, at);
                    if used.contains(id) {
                        late.push(at);
                    }
                }
            },
            Record::Collective(part) => _ = used.insert(part.comm),
            Record::Message(_) => {}
        }
    }
    for &at in &twice {
        let (line, first) = (records[at].0, records[seen[&comm_of(&records[at].1)]].0);
        log.add(Mended::Communicator, line, || format!("removed: duplicate of line {first}"));
    }
    let away: HashSet<usize> = twice.iter().chain(&late).copied().collect();
    if away.is_empty() {
        return;
    }
    let mut moved = Vec::new();
    let mut kept = Vec::with_capacity(records.len());
    for (at, record) in std::mem::take(records).into_iter().enumerate() {
        match away.contains(&at) {
            false => kept.push(record),
            true if late.binary_search(&at).is_ok() => moved.push(record),
            true => {}
        }
    }
    let leading = kept.iter().take_while(|(_, record)| record.task().is_none()).count();
    let behind = kept.split_off(leading);
    for (line, record) in &moved {
        log.add(Mended::Communicator, *line, || {
            format!("communicator {} moved above its first use", comm_of(record))
        });
    }
    // The order of communicators has no meaning; by id is the usual one.
    let is_usual = kept.is_sorted_by_key(|(_, record)| comm_of(record));
    kept.append(&mut moved);
    if is_usual {
        kept.sort_by_key(|(_, record)| comm_of(record));
    }
    kept.extend(behind);
    *records = kept;
}

fn comm_of(record: &Record) -> CommId {
    match record {
        Record::Communicator { id, .. } => *id,
        Record::Collective(part) => part.comm,
        Record::Message(_) => CommId(0),
    }
}

/// If ids otherwise count along the file, gives lines the id of their position: lines with a duplicate id, and lines whose
/// id no record refers to while a record refers to the missing one.
pub(super) fn ids(records: &mut [(u64, Record)], log: &mut Changes) {
    let mut uses: HashMap<u64, u32> = HashMap::new();
    let mut named = HashSet::new();
    let (mut lines, mut wrong) = (0u64, Vec::new());
    for (at, (_, record)) in records.iter().enumerate() {
        if let Record::Message(message) = record {
            *uses.entry(message.id.0).or_default() += 1;
            if message.id.0 != lines {
                wrong.push((at, lines));
            }
            lines += 1;
        }
        if let Dependency::Sent(id) | Dependency::Received(id) = record.after() {
            named.insert(id.0);
        }
    }
    // With more exceptions, ids do not count along the file.
    if wrong.len() as u64 > 1 + lines / 10 {
        return;
    }
    for (at, place) in wrong {
        let (line, Record::Message(message)) = &mut records[at] else { continue };
        let id = message.id;
        let free = !uses.contains_key(&place);
        let mistaken = uses[&id.0] > 1 || (named.contains(&place) && !named.contains(&id.0));
        if free && mistaken {
            message.id.0 = place;
            log.add(Mended::Id, *line, || format!("id {id} → {place}, its place among all others"));
        }
    }
}

/// Moves records of a task behind the record of the task on which they depend.
pub(super) fn order(records: &mut [(u64, Record)], log: &mut Changes) {
    for (_, places) in by_task(records) {
        let Some(order) = in_order(records, &places) else { continue };
        for (&to, &from) in places.iter().zip(&order) {
            if from < to {
                let (line, behind) = (records[from].0, records[to].0);
                log.add(Mended::Order, line, || format!("moved behind line {behind}, on which it depends"));
            }
        }
        let moved: Vec<_> = order.iter().map(|&from| records[from].clone()).collect();
        for (&to, record) in places.iter().zip(moved) {
            records[to] = record;
        }
    }
}

/// The dependency by which other records refer to a record.
fn name(record: &Record) -> Option<Dependency> {
    match record {
        Record::Communicator { .. } => None,
        Record::Message(message) => Some(Dependency::Sent(message.id)),
        Record::Collective(part) => Some(Dependency::Collective(part.id)),
    }
}

/// The order of a task's records in which each follows its dependency; `None` if they are in order, or the order is
/// ambiguous.
fn in_order(records: &[(u64, Record)], places: &[usize]) -> Option<Vec<usize>> {
    let mut own: HashMap<Dependency, usize> = HashMap::new();
    for (turn, &at) in places.iter().enumerate() {
        own.entry(name(&records[at].1)?).or_insert(turn);
    }
    // Records that must wait, by dependency.
    let mut held: HashMap<Dependency, usize> = HashMap::new();
    for (turn, &at) in places.iter().enumerate() {
        let after = records[at].1.after();
        if own.get(&after).is_some_and(|&before| before > turn) && held.insert(after, at).is_some() {
            return None;
        }
    }
    if held.is_empty() {
        return None;
    }
    let waiting: HashSet<usize> = held.values().copied().collect();
    let mut order = Vec::with_capacity(places.len());
    for &at in places.iter().filter(|at| !waiting.contains(at)) {
        let mut next = Some(at);
        while let Some(at) = next {
            order.push(at);
            next = name(&records[at].1).and_then(|name| held.remove(&name));
        }
    }
    held.is_empty().then_some(order)
}

/// Sets the header's counts.
pub(super) fn header(header: &mut Header, records: &[(u64, Record)], log: &mut Changes) {
    let mut found = Counts::default();
    let mut collectives = HashSet::new();
    for (_, record) in records {
        match record {
            Record::Communicator { .. } => found.communicators += 1,
            Record::Message(_) => found.messages += 1,
            Record::Collective(part) => {
                found.local_collectives += 1;
                found.collectives += u64::from(collectives.insert(part.id));
            }
        }
    }
    for WrongCount { kind, promised, found } in header.wrong_counts(&found) {
        let lost = if promised > found { "; if lines were lost, they stay lost" } else { "" };
        log.add(Mended::HeaderCount, 1, || format!("{promised} {kind} → {found}{lost}"));
    }
    let Counts { messages, communicators, collectives, local_collectives } = found;
    // The output is of version 3.
    *header = Header {
        version: Version::V3,
        messages,
        communicators,
        collectives,
        local_collectives,
        received: 0,
        ..*header
    };
}

//! Repairs one line of a collective that differs from all others.

use super::changes::{Changes, Mended};
use crate::ids::{CollectiveId, CommId, Rank};
use crate::operation::OpCodes;
use crate::record::{LocalCollective, Record};
use crate::validate::communicators::Communicators;
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn mend(records: &mut [(u64, Record)], op_codes: &OpCodes, log: &mut Changes) {
    let mut known = Communicators::default();
    for (_, record) in records.iter() {
        if let Record::Communicator(comm) = record {
            // Validation reports invalid communicators.
            let _ = known.add(comm.id, &comm.members);
        }
    }
    communicator(records, &known, log);
    id(records, &mut known, log);
    operation(records, op_codes, log);
}

/// Indices of the lines of each collective.
fn by_id(records: &[(u64, Record)]) -> BTreeMap<CollectiveId, Vec<usize>> {
    let mut lines: BTreeMap<CollectiveId, Vec<usize>> = BTreeMap::new();
    for (at, (_, record)) in records.iter().enumerate() {
        if let Record::Collective(part) = record {
            lines.entry(part.id).or_default().push(at);
        }
    }
    lines
}

fn part(records: &[(u64, Record)], at: usize) -> Option<&LocalCollective> {
    match &records[at].1 {
        Record::Collective(part) => Some(part),
        _ => None,
    }
}

/// Moves a line to the communicator of all other lines, if its members are exactly the tasks of the lines.
fn communicator(records: &mut [(u64, Record)], known: &Communicators, log: &mut Changes) {
    for lines in by_id(records).into_values() {
        let parts = || lines.iter().filter_map(|&at| part(records, at));
        let mut comms: Vec<CommId> = parts().map(|part| part.comm).collect();
        comms.sort_unstable();
        comms.dedup();
        if comms.len() < 2 {
            continue;
        }
        let tasks: HashSet<Rank> = parts().map(|part| part.task).collect();
        comms.retain(|&comm| {
            parts().filter(|part| part.comm != comm).count() == 1
                && known.number(comm).map(|number| known.get(number)).is_some_and(|comm| {
                    comm.size() as usize == lines.len()
                        && tasks.len() == lines.len()
                        && tasks.iter().all(|&task| comm.member(task).is_some())
                })
        });
        let [comm] = comms[..] else { continue };
        for &at in &lines {
            let (line, Record::Collective(part)) = &mut records[at] else { continue };
            if part.comm != comm {
                let (id, before) = (part.id, part.comm);
                log.add(Mended::Collective, *line, || format!("{id} on {before} → {comm}, as the others"));
                part.comm = comm;
            }
        }
    }
}

/// Sets the id of a line so that the n-th call of each member on a communicator is the same collective.
fn id(records: &mut [(u64, Record)], known: &mut Communicators, log: &mut Changes) {
    let mut calls: BTreeMap<(CommId, u32), Vec<usize>> = BTreeMap::new();
    let mut on: HashMap<CollectiveId, HashSet<(CommId, u32)>> = HashMap::new();
    for (at, (_, record)) in records.iter().enumerate() {
        let Record::Collective(part) = record else { continue };
        let Some(number) = known.number(part.comm) else { continue };
        let comm = known.get_mut(number);
        let Some(member) = comm.member(part.task) else { continue };
        let call = (part.comm, comm.call(member));
        calls.entry(call).or_default().push(at);
        on.entry(part.id).or_default().insert(call);
    }
    for lines in calls.into_values() {
        let mut votes: BTreeMap<CollectiveId, usize> = BTreeMap::new();
        for part in lines.iter().filter_map(|&at| part(records, at)) {
            *votes.entry(part.id).or_default() += 1;
        }
        if votes.len() != 2 {
            continue;
        }
        // All but one agree; of two, the one whose id no other call has is right.
        let only_here = |id: &CollectiveId| on.get(id).is_some_and(|calls| calls.len() == 1);
        let right: Vec<CollectiveId> = match lines.len() {
            2 => votes.keys().copied().filter(only_here).collect(),
            most => votes.iter().filter(|&(_, &count)| count + 1 == most).map(|(&id, _)| id).collect(),
        };
        let [right] = right[..] else { continue };
        for at in lines {
            let (line, Record::Collective(part)) = &mut records[at] else { continue };
            if part.id != right {
                let before = part.id;
                log.add(Mended::Collective, *line, || {
                    format!("{before} → {right}, as in the other members' lines")
                });
                part.id = right;
            }
        }
    }
}

/// Sets the operation of a line to that of the other members.
fn operation(records: &mut [(u64, Record)], op_codes: &OpCodes, log: &mut Changes) {
    for lines in by_id(records).into_values() {
        let mut votes = BTreeMap::new();
        for part in lines.iter().filter_map(|&at| part(records, at)) {
            *votes.entry(part.op).or_insert(0) += 1;
        }
        if votes.len() != 2 {
            continue;
        }
        let right: Vec<_> = match lines.len() {
            2 => votes.keys().copied().filter(|&op| op_codes.operation(op).is_some()).collect(),
            most => votes.iter().filter(|&(_, &count)| count + 1 == most).map(|(&op, _)| op).collect(),
        };
        let [right] = right[..] else { continue };
        for at in lines {
            let (line, Record::Collective(part)) = &mut records[at] else { continue };
            if part.op != right {
                let (id, before) = (part.id, part.op.0);
                let text =
                    || format!("{id} is operation {before} → {}, as in the other members' lines", right.0);
                log.add(Mended::Collective, *line, text);
                part.op = right;
            }
        }
    }
}

//! Checks by the start rule alone that a trace can be replayed to its last record: the simplest possible engine; members leave a
//! collective when all have called it, as MPI allows.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use vef_format::record::Dependency;
use vef_format::text::{Line, Reader};

struct Record {
    after: Dependency,
    what: What,
}

enum What {
    Point(u64),
    Part(u64),
}

/// The tasks that do not reach their ends, and the index of the record at which each stops.
pub(crate) fn stuck(trace: &Path) -> Vec<(usize, usize)> {
    let mut reader = Reader::open(trace).unwrap();
    let mut tasks: Vec<Vec<Record>> = (0..reader.header().tasks).map(|_| Vec::new()).collect();
    let (mut sizes, mut members) = (HashMap::new(), HashMap::new());
    while let Some(line) = reader.next().unwrap() {
        match line {
            Line::Communicator { id, members } => drop(sizes.insert(id, members.len())),
            Line::Message(message) => tasks[message.src.index()]
                .push(Record { after: message.after, what: What::Point(message.id.0) }),
            Line::Collective(part) => {
                members.insert(part.id.0, sizes[&part.comm]);
                tasks[part.task.index()].push(Record { after: part.after, what: What::Part(part.id.0) });
            }
        }
    }
    let (mut begun, mut entered) = (HashSet::new(), HashMap::new());
    let mut at = vec![0; tasks.len()];
    loop {
        let mut went_on = false;
        for (task, records) in tasks.iter().enumerate() {
            while let Some(record) = records.get(at[task]) {
                let free = match record.after {
                    Dependency::Start => true,
                    Dependency::Sent(id) | Dependency::Received(id) => begun.contains(&id.0),
                    Dependency::Collective(id) => entered.get(&id.0) == Some(&members[&id.0]),
                };
                if !free {
                    break;
                }
                match record.what {
                    What::Point(id) => assert!(begun.insert(id)),
                    What::Part(id) => *entered.entry(id).or_insert(0) += 1,
                }
                at[task] += 1;
                went_on = true;
            }
        }
        if !went_on {
            break;
        }
    }
    (0..tasks.len()).filter(|&task| at[task] < tasks[task].len()).map(|task| (task, at[task])).collect()
}

//! The start rule, evaluated with no thought for speed: every task is tried over and over until nothing changes.
//! It has no events and no order of them: a message between two tasks takes the same time whenever it is sent, so
//! that every moment follows from others.

use crate::Sent;
use crate::generator::Program;
use collectives::choose::Table;
use collectives::{Shape, Sizes, Step};
use replay::Kind;
use std::collections::HashMap;
use vef_format::ids::Rank;
use vef_format::operation::{OpCodes, Operation};
use vef_format::record::{Dependency, LocalCollective, Record};

/// How long a message takes from one task to another.
pub(crate) fn flight(src: u32, dst: u32) -> u64 {
    500 + (u64::from(src) * 7919 + u64::from(dst) * 104_729) % 3000
}

/// What comes of a trace.
pub(crate) struct Outcome {
    /// Sorted as the engine's.
    pub(crate) messages: Vec<Sent>,
    /// When each task finished.
    pub(crate) finish: Vec<u64>,
}

/// One member's way through a collective.
struct Part {
    steps: Vec<Step>,
    at_step: usize,
    now: u64,
    received: HashMap<u32, usize>,
    /// Arrivals of what was posted since the last wait; none where the message has not been sent yet.
    posted: Vec<(u32, usize)>,
    over: bool,
}

type Key = (u64, u32);

/// Replays a trace that is right.
pub(crate) fn run(program: &Program) -> Outcome {
    let tasks = program.header.tasks as usize;
    let codes = OpCodes::default();
    let mut comms = HashMap::new();
    let mut lists = vec![Vec::new(); tasks];
    let mut roots: HashMap<u64, Rank> = HashMap::new();
    for record in &program.records {
        match record {
            Record::Communicator(group) => drop(comms.insert(group.id, group.members.clone())),
            Record::Message(message) => lists[message.src.index()].push(record.clone()),
            Record::Collective(part) => {
                lists[part.task.index()].push(record.clone());
                let op = codes.operation(part.op).unwrap();
                let decisive = if op.root_sends() { part.amounts.send } else { part.amounts.recv };
                if op.is_rooted() && decisive.0 > 0 {
                    roots.insert(part.id.0, part.task);
                }
            }
        }
    }
    let clock = program.header.clock.0;
    let mut next = vec![0; tasks];
    let mut now = vec![0u64; tasks];
    let mut left = vec![0u64; tasks];
    let mut sent: HashMap<u64, u64> = HashMap::new();
    let mut delivered: HashMap<u64, u64> = HashMap::new();
    let mut parts: HashMap<Key, Part> = HashMap::new();
    // (collective, sender, receiver), as tasks: when each message arrives.
    let mut arrivals: HashMap<(u64, u32, u32), Vec<u64>> = HashMap::new();
    let mut messages = Vec::new();
    loop {
        let mut moved = false;
        for task in 0..tasks {
            while let Some(record) = lists[task].get(next[task]) {
                let (after, time) = match record {
                    Record::Message(message) => (message.after, message.time),
                    Record::Collective(part) => (part.after, part.time),
                    Record::Communicator(_) => unreachable!(),
                };
                let release = match after {
                    Dependency::Start => Some(0),
                    Dependency::Sent(id) => sent.get(&id.0).copied(),
                    Dependency::Received(id) => delivered.get(&id.0).copied(),
                    Dependency::Collective(id) => {
                        parts.get(&(id.0, task as u32)).filter(|part| part.over).map(|part| part.now)
                    }
                };
                let Some(release) = release else { break };
                now[task] = now[task].max(release) + time.0 * clock;
                match record {
                    Record::Message(message) => {
                        sent.insert(message.id.0, now[task]);
                        if !message.is_mark() {
                            let (src, dst) = (message.src.0, message.dst.0);
                            delivered.insert(message.id.0, now[task] + flight(src, dst));
                            messages.push((Kind::PointToPoint, src, dst, message.bytes.0, now[task]));
                        }
                    }
                    Record::Collective(part) => {
                        let op = codes.operation(part.op).unwrap();
                        let steps = steps(part, op, &comms[&part.comm], roots.get(&part.id.0), program);
                        let part_at = Part {
                            steps,
                            at_step: 0,
                            now: now[task],
                            received: HashMap::new(),
                            posted: Vec::new(),
                            over: false,
                        };
                        parts.insert((part.id.0, task as u32), part_at);
                    }
                    Record::Communicator(_) => unreachable!(),
                }
                next[task] += 1;
                moved = true;
            }
        }
        let mut keys: Vec<Key> = parts.keys().copied().collect();
        keys.sort_unstable();
        for (id, task) in keys {
            let record = lists[task as usize].iter().find_map(|record| match record {
                Record::Collective(part) if part.id.0 == id => Some(part),
                _ => None,
            });
            let record = record.unwrap();
            let members = &comms[&record.comm];
            let kind = Kind::Collective(codes.operation(record.op).unwrap());
            let part = parts.get_mut(&(id, task)).unwrap();
            while !part.over {
                match part.steps.get(part.at_step) {
                    Some(Step::Send { to, data }) => {
                        let dst = members[*to as usize].0;
                        let arrival = part.now + flight(task, dst);
                        arrivals.entry((id, task, dst)).or_default().push(arrival);
                        messages.push((kind, task, dst, data.len, part.now));
                    }
                    Some(Step::Recv { from, .. }) => {
                        let count = part.received.entry(*from).or_insert(0);
                        part.posted.push((members[*from as usize].0, *count));
                        *count += 1;
                    }
                    Some(Step::Local { .. }) => {}
                    Some(Step::Wait) | None => {
                        let arrived =
                            |&(src, nth): &(u32, usize)| arrivals.get(&(id, src, task))?.get(nth).copied();
                        let Some(all) = part.posted.iter().map(arrived).collect::<Option<Vec<u64>>>() else {
                            break;
                        };
                        part.now = all.into_iter().fold(part.now, u64::max);
                        part.posted.clear();
                        if part.at_step == part.steps.len() {
                            part.over = true;
                            left[task as usize] = left[task as usize].max(part.now);
                        }
                    }
                }
                part.at_step += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    assert!(next.iter().zip(&lists).all(|(&next, list)| next == list.len()), "the generator made a deadlock");
    messages.sort_by_key(|&(kind, src, dst, bytes, at): &Sent| (kind.index(), src, dst, at, bytes));
    Outcome { messages, finish: now.into_iter().zip(left).map(|(now, left)| now.max(left)).collect() }
}

fn steps(
    part: &LocalCollective,
    op: Operation,
    members: &[Rank],
    root: Option<&Rank>,
    program: &Program,
) -> Vec<Step> {
    let rank_of = |task: Rank| members.iter().position(|&member| member == task).unwrap() as u32;
    let operation = collectives::Operation::ALL[Operation::ALL.iter().position(|&one| one == op).unwrap()];
    assert_eq!(operation.name().replace('-', "_"), op.name().to_lowercase());
    let ranks = members.len() as u32;
    let root = root.map_or(0, |&root| rank_of(root));
    let shape = Shape { operation, ranks, rank: rank_of(part.task), root, unit: 1 };
    let sizes =
        |part: &LocalCollective| Sizes::from_sums(operation, ranks, part.amounts.send.0, part.amounts.recv.0);
    // All members choose alike; the first one of the trace decides here.
    let first = program.records.iter().find_map(|record| match record {
        Record::Collective(other) if other.id == part.id => Some(other),
        _ => None,
    });
    let first = first.unwrap();
    let choice = Table::default().choose(&Shape { rank: rank_of(first.task), ..shape }, sizes(first));
    collectives::steps(shape, choice, sizes(part)).unwrap().collect()
}

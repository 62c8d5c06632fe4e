//! The start rule, evaluated with no thought for speed: every task is tried over and over until nothing changes.
//! It has no events and no order of them: a message between two tasks takes the same time whenever it is sent, so
//! that every moment follows from others. The sizes of collectives are those with which the program called them.

use super::Sent;
use super::generator::{Call, Program};
use collectives::choose::Table;
use collectives::{Counts, Member, Sizes, Step};
use replay::{Kind, SendCompletion};
use std::collections::{BTreeMap, HashMap};
use vef_format::operation::Operation;
use vef_format::record::{Dependency, Record};

/// How long a message takes from one task to another.
pub(crate) fn flight(src: u32, dst: u32) -> u64 {
    500 + (u64::from(src) * 7919 + u64::from(dst) * 104_729) % 3000
}

/// How long it takes to leave its source.
pub(crate) fn departure(src: u32, dst: u32) -> u64 {
    flight(src, dst) / (2 + u64::from(src + dst) % 3)
}

/// What a trace and its replay are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// When sends are complete.
    pub(crate) policy: SendCompletion,
    /// Whether the trace tells what each member of an Alltoallv sends to each; otherwise its sum is split evenly.
    pub(crate) counts: bool,
}

/// What comes of a trace.
pub(crate) struct Outcome {
    /// Sorted as the engine's.
    pub(crate) messages: Vec<Sent>,
    /// When each task finished.
    pub(crate) finish: Vec<u64>,
    /// When the computing time of each record of a task began, and when it ended.
    pub(crate) starts: Vec<Vec<(u64, u64)>>,
    /// When each task's part of a collective was complete.
    pub(crate) left: BTreeMap<(u64, u32), u64>,
}

impl Setting {
    /// Eager sends, and sums alone.
    pub(crate) const PLAIN: Self = Self { policy: SendCompletion::Eager, counts: false };

    /// When a message is complete for its sender.
    fn complete(self, src: u32, dst: u32, bytes: u64, start: u64) -> u64 {
        match self.policy {
            SendCompletion::Eager => start,
            SendCompletion::WhenSent => start + departure(src, dst),
            SendCompletion::LargeWhenSent { above } if bytes > above.0 => start + departure(src, dst),
            SendCompletion::Rendezvous { above } | SendCompletion::RendezvousInCalls { above }
                if bytes > above.0 =>
            {
                start + flight(src, dst)
            }
            SendCompletion::LargeWhenSent { .. }
            | SendCompletion::Rendezvous { .. }
            | SendCompletion::RendezvousInCalls { .. } => start,
        }
    }

    /// Whether a message waits until its receiver is in a call.
    fn waits(self, bytes: u64) -> bool {
        matches!(self.policy, SendCompletion::RendezvousInCalls { above } if bytes > above.0)
    }
}

/// A message that has started and of which it is not known when it leaves.
struct Waiting {
    /// The line, or the collective and the number among the messages of its pair.
    of: Result<u64, (u64, usize)>,
    src: u32,
    dst: u32,
    start: u64,
}

/// Takes a message out of which it is known when it leaves, with that moment: its receiver's times are known beyond its start; or it is
/// the first of all, and what could end its receiver's call comes after it. `now` is when each task's last record started.
fn leaves(
    waiting: &mut Vec<Waiting>,
    now: &[u64],
    over: impl Fn(usize) -> bool,
    starts: &[Vec<(u64, u64)>],
) -> Option<(Waiting, u64)> {
    let is_known = |message: &Waiting| {
        let dst = message.dst as usize;
        message.start <= now[dst] || over(dst)
    };
    let first = || (0..waiting.len()).min_by_key(|&at| waiting[at].start);
    let message = waiting.iter().position(is_known).or_else(first)?;
    let message = waiting.swap_remove(message);
    // A task is in a call in the moment in which it leaves that, but not before its first record.
    let computes = |&(number, &(released, at)): &(usize, &(u64, u64))| {
        let began = released < message.start || number == 0 && released == message.start;
        began && message.start < at
    };
    let computing = starts[message.dst as usize].iter().enumerate().find(computes);
    let at = computing.map_or(message.start, |(_, &(_, at))| at);
    Some((message, at))
}

/// One member's way through a collective.
struct Part {
    steps: Vec<Step>,
    at_step: usize,
    now: u64,
    received: HashMap<u32, usize>,
    /// What was posted to be received since the last wait.
    posted: Vec<(u32, usize)>,
    /// When what was sent since the last wait is complete, as far as that is known.
    sent: u64,
    /// Messages of which it is not.
    unsent: usize,
    over: bool,
}

type Key = (u64, u32);

/// Replays a trace that is right.
pub(crate) fn run(program: &Program, setting: Setting) -> Outcome {
    let tasks = program.header.tasks as usize;
    let mut lists = vec![Vec::new(); tasks];
    for record in &program.records {
        match record {
            Record::Communicator { .. } => {}
            Record::Message(message) => lists[message.src.index()].push(record.clone()),
            Record::Collective(part) => lists[part.task.index()].push(record.clone()),
        }
    }
    let clock = program.header.clock.0;
    let mut next = vec![0; tasks];
    let mut now = vec![0u64; tasks];
    let mut left = vec![0u64; tasks];
    let mut starts = vec![Vec::new(); tasks];
    let mut sent: HashMap<u64, u64> = HashMap::new();
    let mut delivered: HashMap<u64, u64> = HashMap::new();
    let mut parts: HashMap<Key, Part> = HashMap::new();
    // (collective, sender, receiver), as tasks: when each message arrives, if that is known.
    let mut arrivals: HashMap<(u64, u32, u32), Vec<Option<u64>>> = HashMap::new();
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut messages = Vec::new();
    loop {
        let mut moved = false;
        for task in 0..tasks {
            while let Some(record) = lists[task].get(next[task]) {
                let (after, time) = match record {
                    Record::Message(message) => (message.after, message.time),
                    Record::Collective(part) => (part.after, part.time),
                    Record::Communicator { .. } => unreachable!(),
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
                let released = now[task].max(release);
                now[task] = released + time.0 * clock;
                starts[task].push((released, now[task]));
                match record {
                    Record::Message(message) if message.is_mark() => {
                        sent.insert(message.id.0, now[task]);
                    }
                    Record::Message(message) => {
                        let (src, dst, bytes) = (message.src.0, message.dst.0, message.bytes.0);
                        if setting.waits(bytes) {
                            waiting.push(Waiting { of: Ok(message.id.0), src, dst, start: now[task] });
                        } else {
                            sent.insert(message.id.0, setting.complete(src, dst, bytes, now[task]));
                            delivered.insert(message.id.0, now[task] + flight(src, dst));
                        }
                        messages.push((Kind::PointToPoint, src, dst, bytes, now[task]));
                    }
                    Record::Collective(part) => {
                        let call = &program.calls[part.id.index()];
                        let rank = call.members.iter().position(|&member| member == part.task).unwrap();
                        let part_at = Part {
                            steps: steps(call, rank, setting),
                            at_step: 0,
                            now: now[task],
                            received: HashMap::new(),
                            posted: Vec::new(),
                            sent: 0,
                            unsent: 0,
                            over: false,
                        };
                        parts.insert((part.id.0, task as u32), part_at);
                    }
                    Record::Communicator { .. } => unreachable!(),
                }
                next[task] += 1;
                moved = true;
            }
        }
        let mut keys: Vec<Key> = parts.keys().copied().collect();
        keys.sort_unstable();
        for (id, task) in keys {
            let Call { operation, members, .. } = &program.calls[id as usize];
            let kind = Kind::Collective(*operation);
            let part = parts.get_mut(&(id, task)).unwrap();
            while !part.over {
                match part.steps.get(part.at_step) {
                    Some(Step::Send { to, data }) => {
                        let dst = members[*to as usize].0;
                        let arrivals = arrivals.entry((id, task, dst)).or_default();
                        if setting.waits(data.len) {
                            let of = Err((id, arrivals.len()));
                            waiting.push(Waiting { of, src: task, dst, start: part.now });
                            arrivals.push(None);
                            part.unsent += 1;
                        } else {
                            arrivals.push(Some(part.now + flight(task, dst)));
                            part.sent = part.sent.max(setting.complete(task, dst, data.len, part.now));
                        }
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
                            |&(src, nth): &(u32, usize)| *arrivals.get(&(id, src, task))?.get(nth)?;
                        if part.unsent > 0 {
                            break;
                        }
                        let Some(all) = part.posted.iter().map(arrived).collect::<Option<Vec<u64>>>() else {
                            break;
                        };
                        part.now = all.into_iter().fold(part.now.max(part.sent), u64::max);
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
        if moved {
            continue;
        }
        let over = |task: usize| next[task] == lists[task].len();
        let Some((message, at)) = leaves(&mut waiting, &now, over, &starts) else { break };
        let Waiting { of, src, dst, .. } = message;
        let arrival = at + flight(src, dst);
        match of {
            Ok(line) => {
                sent.insert(line, arrival);
                delivered.insert(line, arrival);
            }
            Err((id, nth)) => {
                arrivals.get_mut(&(id, src, dst)).unwrap()[nth] = Some(arrival);
                let part = parts.get_mut(&(id, src)).unwrap();
                (part.sent, part.unsent) = (part.sent.max(arrival), part.unsent - 1);
            }
        }
    }
    assert!(next.iter().zip(&lists).all(|(&next, list)| next == list.len()), "the generator made a deadlock");
    messages.sort_by_key(|&(kind, src, dst, bytes, at): &Sent| (kind.index(), src, dst, at, bytes));
    let finish = now.into_iter().zip(left).map(|(now, left)| now.max(left)).collect();
    let left = parts.iter().map(|(&key, part)| (key, part.now)).collect();
    Outcome { messages, finish, starts, left }
}

/// The steps of a member of a collective.
fn steps(call: &Call, rank: usize, setting: Setting) -> Vec<Step> {
    let operation = call.operation;
    let ranks = call.members.len() as u32;
    let counts = |list: Vec<u64>| Counts::new(list).unwrap();
    // The root's own block stays where it is, and no trace has it.
    let kept = |of: usize| call.operation.is_rooted() && of == call.root;
    let own = |of: usize| if kept(of) { 0 } else { call.own_block(of) };
    let (blocks, row, column) = (
        counts((0..call.members.len()).map(own).collect()),
        counts(call.blocks[rank].clone()),
        counts(call.blocks.iter().map(|row| row[rank]).collect()),
    );
    use Operation::*;
    let sizes = match call.operation {
        Gatherv | Scatterv | Allgatherv | ReduceScatter => Sizes::Blocks(&blocks),
        Alltoallv | Alltoallw if setting.counts => Sizes::Pairs { send: &row, recv: &column },
        Alltoallv | Alltoallw => Sizes::Sums { send: row.total(), recv: column.total() },
        Barrier => Sizes::Bytes(0),
        _ => Sizes::Bytes(call.bytes),
    };
    // Whatever is not rooted does not look at the root.
    let member = Member { operation, ranks, rank: rank as u32, root: root(call), unit: 1 };
    let choice = Table::default().choose(&member, sizes);
    let steps: Vec<Step> = collectives::steps(member, choice, sizes).unwrap().collect();
    if let Sizes::Sums { send, .. } = sizes {
        even_shares(&steps, send, ranks);
    }
    steps
}

/// The root, which nobody can know where nobody moves a byte.
fn root(call: &Call) -> u32 {
    let silent = match call.operation {
        Operation::Gatherv | Operation::Scatterv => {
            (0..call.members.len()).all(|rank| rank == call.root || call.own_block(rank) == 0)
        }
        _ => call.bytes == 0,
    };
    if silent || call.members.len() == 1 { 0 } else { call.root as u32 }
}

/// A sum of which only itself is known falls in shares for all, which differ by one at most, the first ones being the larger.
fn even_shares(steps: &[Step], sum: u64, ranks: u32) {
    for step in steps {
        if let Step::Send { to, data } = step {
            let larger = u64::from(u64::from(*to) < sum % u64::from(ranks));
            assert_eq!(data.len, sum / u64::from(ranks) + larger);
        }
    }
}

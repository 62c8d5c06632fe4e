//! When the calls of a trace begin and return, on a network of 1 µs and 10 Gbit/s without contention: for formats whose events have times.
//!
//! A trace has no such times, only the rule by which they follow from a network. A collective returns 1 µs after the last member that it
//! has to wait for has begun.

use super::loaded::Loaded;
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::operation::{Operation, Root};
use vef_format::record::{Dependency, Line, LocalCollective};

/// Latency, ps.
const LATENCY: u64 = 1_000_000;
/// Time for a byte, ps.
const BYTE: u64 = 800;

/// The begin and the return of a record's call, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// What has happened of a collective.
#[derive(Debug, Default)]
struct Entered {
    members: usize,
    latest: u64,
    root: Option<u64>,
    waiting: Vec<u32>,
}

struct Run<'a> {
    trace: &'a Loaded,
    spans: Vec<Vec<Span>>,
    /// Times at which messages arrive.
    arrivals: HashMap<MessageId, u64>,
    waiting: HashMap<MessageId, u32>,
    collectives: HashMap<CollectiveId, Entered>,
    ready: Vec<u32>,
}

/// The spans of the records of each task; `None`: the times are too large.
pub(crate) fn spans(trace: &Loaded) -> Option<Vec<Vec<Span>>> {
    let tasks = trace.tasks.len();
    let mut run = Run {
        trace,
        spans: trace.tasks.iter().map(|records| Vec::with_capacity(records.len())).collect(),
        arrivals: HashMap::new(),
        waiting: HashMap::new(),
        collectives: HashMap::new(),
        ready: (0..tasks as u32).rev().collect(),
    };
    loop {
        while let Some(task) = run.ready.pop() {
            run.advance(task, false)?;
        }
        // What is left waits for each other, if the trace is invalid, or by an order of a collective's messages that is not known here.
        let stuck = (0..tasks).find(|&task| run.spans[task].len() < trace.tasks[task].len());
        match stuck {
            Some(task) => run.advance(task as u32, true)?,
            None => return Some(run.spans),
        }
    }
}

impl Run<'_> {
    fn ticks(&self, picos: u64) -> u64 {
        picos / self.trace.header.clock.0.max(1)
    }

    /// Carries out the records of a task until it has to wait; the first one, if `forced`, does not wait.
    fn advance(&mut self, task: u32, mut forced: bool) -> Option<()> {
        let trace = self.trace;
        let records = &trace.tasks[task as usize];
        while let Some(record) = records.get(self.spans[task as usize].len()) {
            let before = self.spans[task as usize].last().map_or(0, |span| span.end);
            let released = self.released(task, record.after()).or(forced.then_some(before));
            let Some(released) = released else { return Some(()) };
            forced = false;
            let end = before.max(released);
            if let Some(span) = self.spans[task as usize].last_mut() {
                span.end = end;
            }
            let time = match record {
                Line::Message(message) => message.time,
                Line::Collective(part) => part.time,
                Line::Communicator { .. } => Default::default(),
            };
            let begin = end.checked_add(time.0)?;
            self.spans[task as usize].push(Span { begin, end: begin });
            match record {
                Line::Message(message) if !message.is_mark() => {
                    let took = LATENCY.saturating_add(message.bytes.0.saturating_mul(BYTE));
                    self.arrivals.insert(message.id, begin.checked_add(self.ticks(took))?);
                    self.ready.extend(self.waiting.remove(&message.id));
                }
                Line::Collective(part) => self.enter(part, begin),
                Line::Message(_) | Line::Communicator { .. } => {}
            }
        }
        Some(())
    }

    fn enter(&mut self, part: &LocalCollective, begin: u64) {
        let entered = self.collectives.entry(part.id).or_default();
        entered.members += 1;
        entered.latest = entered.latest.max(begin);
        if self.trace.collectives[&part.id].root == Some(part.task) {
            entered.root = Some(begin);
        }
        self.ready.append(&mut entered.waiting);
    }

    /// When a dependency is satisfied; `None`: not yet, and the task is woken later.
    fn released(&mut self, task: u32, after: Dependency) -> Option<u64> {
        match after {
            Dependency::Start | Dependency::Sent(_) => Some(0),
            Dependency::Received(id) => {
                let arrival = self.arrivals.get(&id).copied();
                if arrival.is_none() {
                    self.waiting.insert(id, task);
                }
                arrival
            }
            Dependency::Collective(id) => {
                let latency = self.ticks(LATENCY);
                let Some(all) = self.trace.collectives.get(&id) else { return Some(0) };
                let entered = self.collectives.entry(id).or_default();
                let is_root = all.root == Some(Rank(task));
                let complete = (entered.members == all.parts.len()).then_some(entered.latest);
                let last = match (all.operation, all.operation.root()) {
                    // Who waits for whom depends on the algorithm.
                    (Operation::Scan | Operation::Exscan, _) => return Some(0),
                    (_, Some(Root::Sends)) if is_root => return Some(0),
                    (_, Some(Root::Receives)) if !is_root && all.root.is_some() => return Some(0),
                    (_, Some(Root::Sends)) if all.root.is_some() => entered.root,
                    _ => complete,
                };
                if last.is_none() {
                    entered.waiting.push(task);
                }
                last?.checked_add(latency)
            }
        }
    }
}

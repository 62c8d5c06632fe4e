//! When the calls of a trace begin and return, on a network of 1 µs and 10 Gbit/s without contention: for formats whose events have times.
//!
//! A trace has no such times, only the rule by which they follow from a network. A collective returns 1 µs after the last member that it
//! has to wait for has begun.

use super::error::ExportProblem;
use super::loaded::{After, CollectiveIndex, Loaded, What};
use vef_format::ids::Rank;
use vef_format::operation::{Operation, Root};

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
#[derive(Clone, Debug, Default)]
struct Entered {
    members: usize,
    latest: u64,
    root: Option<u64>,
    waiting: Vec<u32>,
}

struct Run<'a> {
    trace: &'a Loaded,
    spans: Vec<Vec<Span>>,
    /// Times at which messages arrive; of those that have not been sent, whether their receiver waits.
    arrivals: Vec<Result<u64, bool>>,
    collectives: Vec<Entered>,
    ready: Vec<u32>,
}

/// The spans of the records of each task.
///
/// # Errors
/// [`ExportProblem::Times`]: a record would begin, or a message arrive, after the end of time.
pub(crate) fn spans(trace: &Loaded) -> Result<Vec<Vec<Span>>, ExportProblem> {
    let tasks = trace.tasks.len();
    let mut run = Run {
        trace,
        spans: trace.tasks.iter().map(|records| Vec::with_capacity(records.len())).collect(),
        arrivals: vec![Err(false); trace.messages.len()],
        collectives: vec![Entered::default(); trace.collectives.len()],
        ready: (0..tasks as u32).rev().collect(),
    };
    loop {
        while let Some(task) = run.ready.pop() {
            run.advance(task, false).ok_or(ExportProblem::Times(task))?;
        }
        // What is left waits for each other, if the trace is invalid, or by an order of a collective's messages that is not known here.
        let stuck = (0..tasks).find(|&task| run.spans[task].len() < trace.tasks[task].len());
        match stuck {
            Some(task) => run.advance(task as u32, true).ok_or(ExportProblem::Times(task as u32))?,
            None => return Ok(run.spans),
        }
    }
}

impl Run<'_> {
    fn clock(&self) -> u64 {
        self.trace.header.clock.0.max(1)
    }

    /// When so many bytes arrive that are sent at `begin`, in ticks; `None` after the end of time, 2^64 ps.
    fn arrival(&self, begin: u64, bytes: u64) -> Option<u64> {
        let took = bytes.checked_mul(BYTE)?.checked_add(LATENCY)?;
        Some(begin.checked_mul(self.clock())?.checked_add(took)? / self.clock())
    }

    /// Carries out the records of a task until it has to wait; the first one, if `forced`, does not wait.
    fn advance(&mut self, task: u32, mut forced: bool) -> Option<()> {
        let trace = self.trace;
        let records = &trace.tasks[task as usize];
        while let Some(record) = records.get(self.spans[task as usize].len()) {
            let before = self.spans[task as usize].last().map_or(0, |span| span.end);
            let released = self.released(task, record.after).or(forced.then_some(before));
            let Some(released) = released else { return Some(()) };
            forced = false;
            let end = before.max(released);
            if let Some(span) = self.spans[task as usize].last_mut() {
                span.end = end;
            }
            let begin = end.checked_add(record.time.0)?;
            begin.checked_mul(self.clock())?;
            self.spans[task as usize].push(Span { begin, end: begin });
            match record.what {
                What::Mark => {}
                What::Send(index) => {
                    let message = trace.message(index);
                    let arrival = self.arrival(begin, message.bytes)?;
                    if let Err(true) = std::mem::replace(&mut self.arrivals[index.0 as usize], Ok(arrival)) {
                        self.ready.push(message.dst.0);
                    }
                }
                What::Collective(index, amounts) => {
                    self.arrival(begin, amounts.send.max(amounts.recv).0)?;
                    self.enter(Rank(task), index, begin);
                }
            }
        }
        Some(())
    }

    fn enter(&mut self, task: Rank, index: CollectiveIndex, begin: u64) {
        let entered = &mut self.collectives[index.0 as usize];
        entered.members += 1;
        entered.latest = entered.latest.max(begin);
        if self.trace.collective(index).root == Some(task) {
            entered.root = Some(begin);
        }
        self.ready.append(&mut entered.waiting);
    }

    /// When a dependency is satisfied; `None`: not yet, and the task is woken later.
    fn released(&mut self, task: u32, after: After) -> Option<u64> {
        match after {
            After::Nothing | After::Sent(_) => Some(0),
            After::Received(index) => {
                let arrival = &mut self.arrivals[index.0 as usize];
                if let Err(waits) = arrival {
                    *waits = true;
                }
                arrival.ok()
            }
            After::Collective(index) => {
                let latency = LATENCY / self.clock();
                let all = self.trace.collective(index);
                let entered = &mut self.collectives[index.0 as usize];
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
                Some(last?.saturating_add(latency))
            }
        }
    }
}

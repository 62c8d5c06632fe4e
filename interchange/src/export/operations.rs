//! The operations of one task of a trace, such that they start when the replay's rule says.
//!
//! For record k there is a computation c(k) of its time, which requires c(k−1) and what the record waits for: a send, a receive, or the
//! end of a collective. Its message requires c(k). Then c(k) ends at max(start(k−1), release) + time(k), which is start(k). Of a
//! record without time that waits for nothing further, c(k) is c(k−1).
//!
//! A trace pairs messages by identity, a schedule by source and tag: the n-th message from s to d has the tag n. Collectives have
//! tags of their own.

use super::collective::{Part, Step};
use super::error::{ExportError, ExportProblem};
use super::loaded::{Collective, Loaded};
use super::{ExportOptions, Exported};
use crate::goal::{Operation, RankGraph, What};
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::record::{Dependency, Line, LocalCollective};
use vef_format::units::{Bytes, Picos, Ticks};

/// Tags of messages are below, those of collectives from here on: all fit into a signed number of 32 bits.
const COLLECTIVES: u32 = 1 << 30;

/// A graph that the operations of a task go into.
pub(crate) trait Sink {
    /// Removes everything.
    fn clear(&mut self);

    /// Adds an operation of a task; returns its number.
    fn add(&mut self, task: u32, what: What) -> u32;

    /// The second operation starts when the first has ended.
    fn require(&mut self, before: u32, number: u32);

    /// Adds a part of a collective as one operation, and returns its number; `None`: the collective becomes messages at all members.
    fn collective(&mut self, trace: &Loaded, all: &Collective, part: &LocalCollective) -> Option<u32>;

    /// Number of operations.
    fn len(&self) -> usize;
}

impl Sink for RankGraph {
    fn clear(&mut self) {
        Self::clear(self);
    }

    fn add(&mut self, task: u32, what: What) -> u32 {
        let number = self.operations.len() as u32;
        self.operations.push(Operation { what, rank: task, cpu: 0, nic: 0, place: number });
        number
    }

    fn require(&mut self, before: u32, number: u32) {
        self.requires.push((before, number));
    }

    fn collective(&mut self, _: &Loaded, _: &Collective, _: &LocalCollective) -> Option<u32> {
        None
    }

    fn len(&self) -> usize {
        self.operations.len()
    }
}

/// Makes the operations of a task.
pub(crate) struct Operations<'a, S> {
    trace: &'a Loaded,
    options: &'a ExportOptions,
    task: u32,
    graph: &'a mut S,
    /// The last computation, or what stands for it.
    front: Option<u32>,
    /// The operations that sends, receives and collectives have become.
    sends: HashMap<MessageId, u32>,
    receives: HashMap<MessageId, u32>,
    ends: HashMap<CollectiveId, Option<u32>>,
    carried: u64,
    exported: &'a mut Exported,
}

impl<'a, S: Sink> Operations<'a, S> {
    /// Fills `graph` with the operations of a task, and counts them.
    pub(crate) fn of(
        trace: &'a Loaded,
        task: u32,
        options: &'a ExportOptions,
        graph: &'a mut S,
        exported: &'a mut Exported,
    ) -> Result<(), ExportError> {
        graph.clear();
        let mut run = Self {
            trace,
            options,
            task,
            graph,
            front: None,
            sends: HashMap::new(),
            receives: HashMap::new(),
            ends: HashMap::new(),
            carried: 0,
            exported,
        };
        for (number, record) in trace.tasks[task as usize].iter().enumerate() {
            let made = run.record(number as u64, record);
            made.map_err(|problem| problem.of_file(&trace.path))?;
        }
        for &id in &trace.unawaited[task as usize] {
            run.receive(id, false);
        }
        run.exported.operations += run.graph.len() as u64;
        Ok(())
    }

    /// Adds an operation that requires `before`.
    fn add(&mut self, what: What, before: Option<u32>) -> u32 {
        let number = self.graph.add(self.task, what);
        self.require(before, number);
        number
    }

    fn require(&mut self, before: Option<u32>, number: u32) {
        if let Some(before) = before {
            self.graph.require(before, number);
        }
    }

    fn record(&mut self, number: u64, record: &Line<'_>) -> Result<(), ExportProblem> {
        let (after, time) = match record {
            Line::Communicator { .. } => return Ok(()),
            Line::Message(message) => (message.after, message.time),
            Line::Collective(part) => (part.after, part.time),
        };
        self.compute(after, time)?;
        match record {
            Line::Message(message) if !message.is_mark() => {
                let tag = self.trace.messages[&message.id].number % COLLECTIVES;
                let what = What::Send { bytes: message.bytes, to: message.dst.0, tag };
                let send = self.add(what, self.front);
                self.sends.insert(message.id, send);
                self.exported.messages += 1;
                self.exported.bytes += message.bytes.0;
            }
            Line::Collective(part) => {
                let end = self.collective(number, part)?;
                self.ends.insert(part.id, end);
            }
            Line::Message(_) | Line::Communicator { .. } => {}
        }
        Ok(())
    }

    /// The computation of a record.
    fn compute(&mut self, after: Dependency, time: Ticks) -> Result<(), ExportProblem> {
        let missing = |what: String| ExportProblem::Missing { task: self.task, what };
        let required = match after {
            Dependency::Start => None,
            // A mark has no operation, and is before.
            Dependency::Sent(id) => self.sends.get(&id).copied(),
            Dependency::Received(id) => match self.trace.messages.get(&id) {
                Some(message) if message.dst == Rank(self.task) => Some(self.receive(id, true)),
                _ => return Err(missing(format!("message {}", id.0))),
            },
            Dependency::Collective(id) => match self.ends.get(&id) {
                Some(&end) => end,
                None => return Err(missing(format!("collective G{}", id.0))),
            },
        };
        let time = self.trace.nanoseconds(time, &mut self.carried);
        let time = time.and_then(|time| time.checked_mul(1000)).ok_or(ExportProblem::Times(self.task))?;
        let required = required.filter(|&required| Some(required) != self.front);
        if time == 0 && required.is_none() {
            return Ok(());
        }
        let computing = self.add(What::Compute { time: Picos(time) }, self.front);
        self.require(required, computing);
        self.front = Some(computing);
        Ok(())
    }

    /// The receive of a message.
    fn receive(&mut self, id: MessageId, awaited: bool) -> u32 {
        if let Some(&receive) = self.receives.get(&id) {
            return receive;
        }
        let message = self.trace.messages[&id];
        let before = if awaited && !self.options.preposted { self.front } else { None };
        let tag = Some(message.number % COLLECTIVES);
        let what = What::Receive { bytes: Bytes(message.bytes), from: Some(message.src.0), tag };
        let receive = self.add(what, before);
        self.receives.insert(id, receive);
        receive
    }

    /// The messages of the task's part of a collective; the operation that ends it, if that is not the front.
    fn collective(&mut self, number: u64, part: &LocalCollective) -> Result<Option<u32>, ExportProblem> {
        if let Some(whole) = self.graph.collective(self.trace, &self.trace.collectives[&part.id], part) {
            self.require(self.front, whole);
            return Ok(Some(whole));
        }
        let mut steps = Part::new(self.trace, number, part, &self.options.algorithms)?;
        self.exported.expanded += u64::from(steps.member.rank == 0);
        let tag = COLLECTIVES + (part.id.0 % u64::from(COLLECTIVES)) as u32;
        let mut at = self.front;
        let mut posted = Vec::new();
        loop {
            match steps.next() {
                Some(Step::Send { to, bytes }) => {
                    posted.push(self.add(What::Send { bytes: Bytes(bytes), to, tag }, at));
                    self.exported.messages += 1;
                    self.exported.bytes += bytes;
                }
                Some(Step::Receive { from, bytes }) => {
                    let before = if self.options.preposted { None } else { at };
                    let what = What::Receive { bytes: Bytes(bytes), from: Some(from), tag: Some(tag) };
                    posted.push(self.add(what, before));
                }
                step @ (Some(Step::Wait) | None) => {
                    match posted[..] {
                        [] => {}
                        [one] if !self.options.preposted => at = Some(one),
                        _ => {
                            let all = self.add(What::Compute { time: Picos(0) }, at);
                            for &posted in &posted {
                                self.require(Some(posted), all);
                            }
                            at = Some(all);
                        }
                    }
                    posted.clear();
                    if step.is_none() {
                        return Ok(at);
                    }
                }
            }
        }
    }
}

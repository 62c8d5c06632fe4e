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
use super::loaded::{self, After, Collective, CollectiveIndex, Loaded, MessageIndex, Record};
use super::{COLLECTIVES, Export, ExportOptions, Exported};
use crate::goal::{Operation, RankGraph, What};
use vef_format::ids::Rank;
use vef_format::operation::Amounts;
use vef_format::units::{Bytes, Picos, Ticks};

/// A graph that the operations of a task go into.
pub(crate) trait Sink {
    /// Removes everything.
    fn clear(&mut self);

    /// Adds an operation of a task; returns its number.
    fn add(&mut self, task: u32, what: What) -> u32;

    /// The second operation starts when the first has ended.
    fn require(&mut self, before: u32, number: u32);

    /// Adds a part of a collective as one operation, and returns its number; `None`: the collective becomes messages at all members.
    fn collective(&mut self, trace: &Loaded, all: &Collective, part: Amounts) -> Option<u32>;

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

    fn collective(&mut self, _: &Loaded, _: &Collective, _: Amounts) -> Option<u32> {
        None
    }

    fn len(&self) -> usize {
        self.operations.len()
    }
}

/// Makes the operations of one task after the other.
pub(crate) struct Operations<'a> {
    trace: &'a Loaded,
    options: &'a ExportOptions,
    /// The operations that sends and receives have become, by message: none of a sender's or receiver's are another's.
    sends: Vec<u32>,
    receives: Vec<u32>,
    /// The task that has been in a collective last, and the operation that ends its part, if there is one.
    ends: Vec<(u32, u32)>,
    pub(crate) exported: Exported,
}

/// No operation.
const NONE: u32 = u32::MAX;

impl<'a> Operations<'a> {
    pub(crate) fn new(export: &Export<'a>) -> Self {
        let Export { trace, options, .. } = *export;
        Self {
            trace,
            options,
            sends: vec![NONE; trace.messages.len()],
            receives: vec![NONE; trace.messages.len()],
            ends: vec![(NONE, NONE); trace.collectives.len()],
            exported: export.begin(),
        }
    }

    /// Fills `graph` with the operations of a task, and counts them.
    pub(crate) fn task(&mut self, task: u32, graph: &mut impl Sink) -> Result<(), ExportError> {
        graph.clear();
        let trace = self.trace;
        let mut run = Task { of: self, task, graph, front: None, carried: 0, posted: Vec::new() };
        for (number, record) in (0..).zip(&trace.tasks[task as usize]) {
            run.record(number, record).map_err(|problem| problem.of_file(&trace.path))?;
        }
        for &index in &trace.unawaited[task as usize] {
            run.receive(index, false);
        }
        self.exported.operations += graph.len() as u64;
        Ok(())
    }
}

/// Makes the operations of a task.
struct Task<'a, 'b, S> {
    of: &'b mut Operations<'a>,
    task: u32,
    graph: &'b mut S,
    /// The last computation, or what stands for it.
    front: Option<u32>,
    carried: u64,
    /// The operations of a collective that its next wait is for.
    posted: Vec<u32>,
}

impl<S: Sink> Task<'_, '_, S> {
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

    fn record(&mut self, number: u64, record: &Record) -> Result<(), ExportProblem> {
        self.compute(record.after, record.time)?;
        match record.what {
            loaded::What::Mark => {}
            loaded::What::Send(index) => {
                let message = *self.of.trace.message(index);
                let (bytes, tag) = (Bytes(message.bytes), message.number % COLLECTIVES);
                let send = self.add(What::Send { bytes, to: message.dst.0, tag }, self.front);
                self.of.sends[index.0 as usize] = send;
                self.of.exported.message(message.bytes);
            }
            loaded::What::Collective(index, amounts) => {
                let end = self.collective(number, index, amounts)?;
                self.of.ends[index.0 as usize] = (self.task, end.unwrap_or(NONE));
            }
        }
        Ok(())
    }

    /// The computation of a record.
    fn compute(&mut self, after: After, time: Ticks) -> Result<(), ExportProblem> {
        let required = match after {
            After::Nothing => None,
            After::Sent(index) => Some(self.of.sends[index.0 as usize]).filter(|&send| send != NONE),
            After::Received(index) => Some(self.receive(index, true)),
            After::Collective(index) => {
                let (task, end) = self.of.ends[index.0 as usize];
                (task == self.task && end != NONE).then_some(end)
            }
        };
        let time = self.of.trace.nanoseconds(time, &mut self.carried);
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
    fn receive(&mut self, index: MessageIndex, awaited: bool) -> u32 {
        let known = self.of.receives[index.0 as usize];
        if known != NONE {
            return known;
        }
        let message = *self.of.trace.message(index);
        let before = if awaited && !self.of.options.preposted { self.front } else { None };
        let tag = Some(message.number % COLLECTIVES);
        let what = What::Receive { bytes: Bytes(message.bytes), from: Some(message.src.0), tag };
        let receive = self.add(what, before);
        self.of.receives[index.0 as usize] = receive;
        receive
    }

    /// The messages of the task's part of a collective; the operation that ends it, if that is not the front.
    fn collective(
        &mut self,
        number: u64,
        index: CollectiveIndex,
        amounts: Amounts,
    ) -> Result<Option<u32>, ExportProblem> {
        let Operations { trace, options, .. } = *self.of;
        let all = trace.collective(index);
        if let Some(whole) = self.graph.collective(trace, all, amounts) {
            self.require(self.front, whole);
            return Ok(Some(whole));
        }
        let place = (Rank(self.task), number);
        let mut steps = Part::new(trace, place, index, amounts, &options.algorithms)?;
        self.of.exported.expanded += u64::from(steps.member.rank == 0);
        let tag = COLLECTIVES + (all.id.0 % u64::from(COLLECTIVES)) as u32;
        let mut at = self.front;
        loop {
            match steps.next() {
                Some(Step::Send { to, bytes }) => {
                    let send = self.add(What::Send { bytes: Bytes(bytes), to, tag }, at);
                    self.posted.push(send);
                    self.of.exported.message(bytes);
                }
                Some(Step::Receive { from, bytes }) => {
                    let before = if options.preposted { None } else { at };
                    let what = What::Receive { bytes: Bytes(bytes), from: Some(from), tag: Some(tag) };
                    let receive = self.add(what, before);
                    self.posted.push(receive);
                }
                step @ (Some(Step::Wait) | None) => {
                    match self.posted[..] {
                        [] => {}
                        [one] if !options.preposted => at = Some(one),
                        _ => {
                            let all = self.add(What::Compute { time: Picos(0) }, at);
                            for &posted in &self.posted {
                                self.graph.require(posted, all);
                            }
                            at = Some(all);
                        }
                    }
                    self.posted.clear();
                    if step.is_none() {
                        return Ok(at);
                    }
                }
            }
        }
    }
}

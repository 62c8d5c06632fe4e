//! Sums over the pieces of the critical path.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use vef_format::units::{Bytes, Picos};

use crate::topology::LinkId;

/// Number of longest pieces kept.
const STEPS: usize = 20;

/// A message on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sent {
    /// When it was submitted.
    pub(super) start: Picos,
    /// Tasks, numbered over all jobs.
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) bytes: Bytes,
    /// Index of its kind.
    pub(super) kind: u8,
    /// The record of the sending task that sends, or that enters the collective.
    pub(super) record: u64,
    /// The task that computed in front of it, and up to which of its records: the sender, or the receiver for which it waited.
    pub(super) computed: (u32, u64),
}

/// The time of a message by cause, from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trip {
    pub(super) overhead: Picos,
    /// Of links and switches.
    pub(super) latency: Picos,
    /// Transport within its node.
    pub(super) memory: Picos,
    /// Link, transmission, and wait for the link; `None` in a model without links.
    pub(super) links: Vec<(Option<LinkId>, Picos, Picos)>,
}

/// A piece of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) length: Picos,
    pub(super) from: Picos,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A task computes up to the start of this record; `None` at the end of the run.
    Computing { task: u32, record: Option<u64> },
    /// A message, with its wait for links.
    Message { sent: Sent, queueing: Picos },
}

/// Sums over the path.
#[derive(Debug, Default)]
pub(super) struct Shares {
    pub(super) messages: u64,
    pub(super) before_start: Picos,
    pub(super) computing: Picos,
    pub(super) overhead: Picos,
    pub(super) latency: Picos,
    pub(super) memory: Picos,
    pub(super) transmission: Picos,
    pub(super) queueing: Picos,
    /// Computing, by task.
    pub(super) tasks: BTreeMap<u32, Picos>,
    /// Transmission and waiting, by link.
    pub(super) links: BTreeMap<LinkId, (Picos, Picos)>,
    /// Number and time of messages, by kind.
    pub(super) kinds: BTreeMap<u8, (u64, Picos)>,
    longest: BinaryHeap<Reverse<Step>>,
}

impl Shares {
    fn step(&mut self, length: Picos, from: Picos, what: What) {
        if length.0 == 0 {
            return;
        }
        self.longest.push(Reverse(Step { length, from, what }));
        if self.longest.len() > STEPS {
            self.longest.pop();
        }
    }

    /// The longest pieces, in order of time.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.longest.iter().map(|Reverse(step)| *step).collect();
        steps.sort_by_key(|step| step.from);
        steps
    }

    /// Adds computing of a task, up to a record or to the end of the run.
    pub(super) fn compute(&mut self, task: u32, from: Picos, to: Picos, record: Option<u64>) {
        let length = to.saturating_sub(from);
        self.computing = self.computing.saturating_add(length);
        let sum = self.tasks.entry(task).or_default();
        *sum = sum.saturating_add(length);
        self.step(length, from, What::Computing { task, record });
    }

    /// Adds a message that ends at `to`.
    pub(super) fn carry(&mut self, sent: &Sent, trip: &Trip, to: Picos) {
        self.messages += 1;
        let length = to.saturating_sub(sent.start);
        let (count, time) = self.kinds.entry(sent.kind).or_default();
        (*count, *time) = (*count + 1, time.saturating_add(length));
        self.overhead = self.overhead.saturating_add(trip.overhead);
        self.latency = self.latency.saturating_add(trip.latency);
        self.memory = self.memory.saturating_add(trip.memory);
        let mut queueing = Picos::ZERO;
        for &(link, transmission, waited) in &trip.links {
            self.transmission = self.transmission.saturating_add(transmission);
            queueing = queueing.saturating_add(waited);
            if let Some(link) = link {
                let (sent, queued) = self.links.entry(link).or_default();
                (*sent, *queued) = (sent.saturating_add(transmission), queued.saturating_add(waited));
            }
        }
        self.queueing = self.queueing.saturating_add(queueing);
        self.step(length, sent.start, What::Message { sent: *sent, queueing });
    }
}

//! Processors and interfaces, and the order in which they serve operations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vef_format::units::{Bytes, Picos};

use super::LogGp;
use crate::model::OutOfTime;
use replay::Queue;

/// When an interface can send and receive again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interface {
    pub(super) out: Picos,
    pub(super) into: Picos,
}

/// The costs of operations. Each function requires that the resources are free, and updates when they are
/// free again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    settings: LogGp,
}

impl Costs {
    pub(super) fn new(settings: LogGp) -> Self {
        Self { settings }
    }

    /// Sends a message of `bytes` at `t`; returns its arrival.
    #[inline]
    pub(super) fn send(
        &self,
        t: Picos,
        bytes: Bytes,
        cpu: &mut Picos,
        interface: &mut Interface,
    ) -> Result<Picos, OutOfTime> {
        let p = &self.settings.parameters;
        *cpu = self.after(t, p.overhead, bytes, p.overhead_per_byte)?;
        interface.out = self.after(t, p.gap, bytes, p.gap_per_byte)?;
        t.checked_add(p.overhead).and_then(|at| at.checked_add(p.latency)).ok_or(OutOfTime { bytes })
    }

    /// Receives a message of `bytes` at `t`.
    #[inline]
    pub(super) fn take(
        &self,
        t: Picos,
        bytes: Bytes,
        cpu: &mut Picos,
        interface: &mut Interface,
    ) -> Result<(), OutOfTime> {
        let p = &self.settings.parameters;
        let per_byte = match bytes {
            // For −1 bytes LogGOPSim compares −O and −G as unsigned numbers.
            Bytes::ZERO if p.overhead_per_byte > Picos::ZERO => p.overhead_per_byte.min(p.gap_per_byte),
            _ => p.overhead_per_byte.max(p.gap_per_byte),
        };
        *cpu = self.after(t, p.overhead, bytes, per_byte)?;
        interface.into = self.after(t, p.gap, bytes, p.gap_per_byte)?;
        Ok(())
    }

    /// Sends an announcement or a request, which only takes the processor of its sender; returns its arrival.
    pub(super) fn control(&self, t: Picos, cpu: &mut Picos) -> Result<Picos, OutOfTime> {
        let p = &self.settings.parameters;
        let bytes = Bytes::ZERO;
        *cpu = t.checked_add(p.overhead).ok_or(OutOfTime { bytes })?;
        cpu.checked_add(p.latency).ok_or(OutOfTime { bytes })
    }

    /// Whether a send of `bytes` completes when the message has left.
    #[inline]
    pub(super) fn is_eager(&self, bytes: Bytes) -> bool {
        bytes <= self.settings.parameters.eager
    }

    #[inline]
    fn after(&self, t: Picos, first: Picos, bytes: Bytes, per_byte: Picos) -> Result<Picos, OutOfTime> {
        let out_of_time = OutOfTime { bytes };
        let first = t.checked_add(first).ok_or(out_of_time)?;
        match bytes.0 {
            0 if self.settings.compat => Ok(first.saturating_sub(per_byte)),
            0 => Ok(first),
            _ => {
                let rest = (bytes.0 - 1).checked_mul(per_byte.0).ok_or(out_of_time)?;
                first.checked_add(Picos(rest)).ok_or(out_of_time)
            }
        }
    }
}

/// An operation to try, with its number in the order of becoming ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry<T> {
    pub(super) number: u64,
    pub(super) what: T,
}

/// Operations to try, by time, then in the order of becoming ready.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    queue: Queue<Entry<T>>,
    /// Operations to try at `now`, in reverse order.
    batch: Vec<Entry<T>>,
    now: Picos,
    /// Operations that became ready for an earlier time: with several processors, the time of a rank may lag
    /// behind that of the simulation.
    past: BinaryHeap<Reverse<(Picos, Entry<T>)>>,
    numbers: u64,
}

impl<T: Copy + Ord> Agenda<T> {
    pub(super) fn new() -> Self {
        Self { queue: Queue::new(), batch: Vec::new(), now: Picos::ZERO, past: BinaryHeap::new(), numbers: 0 }
    }

    /// Adds an operation that becomes ready, to be tried at `at`.
    #[inline]
    pub(super) fn ready(&mut self, at: Picos, what: T) {
        let number = self.numbers;
        self.numbers += 1;
        let entry = Entry { number, what };
        if at < self.now {
            return self.past.push(Reverse((at, entry)));
        }
        self.queue.push(at, entry);
    }

    /// Adds an operation again, to be tried at the later time `at`.
    #[inline]
    pub(super) fn retry(&mut self, at: Picos, entry: Entry<T>) {
        if at < self.now {
            return self.past.push(Reverse((at, entry)));
        }
        self.queue.push(at, entry);
    }

    /// The next operation to try. Before the first one of a new day of the queue, calls `fetch` with all of that day.
    #[inline]
    pub(super) fn next(&mut self, fetch: impl FnOnce(&[(Picos, Entry<T>)])) -> Option<(Picos, Entry<T>)> {
        if !self.past.is_empty() {
            return self.past.pop().map(|Reverse(first)| first);
        }
        if let Some(entry) = self.batch.pop() {
            return Some((self.now, entry));
        }
        if let Some(today) = self.queue.begin_day(Picos::MAX) {
            fetch(today);
        }
        let (now, first) = self.queue.pop(Picos::MAX)?;
        self.now = now;
        if self.queue.next() != Some(now) {
            return Some((now, first));
        }
        self.batch.push(first);
        while let Some((_, entry)) = self.queue.pop(now) {
            self.batch.push(entry);
        }
        // Usually sorted already.
        if !self.batch.is_sorted_by_key(|entry| entry.number) {
            self.batch.sort_unstable_by_key(|entry| entry.number);
        }
        self.batch.reverse();
        self.batch.pop().map(|entry| (now, entry))
    }

    /// The time up to which all operations were tried.
    pub(super) fn now(&self) -> Picos {
        self.now
    }

    /// Number of operations that became ready.
    pub(super) fn count(&self) -> u64 {
        self.numbers
    }
}

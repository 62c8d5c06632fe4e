//! Processors and interfaces, and the order in which they serve operations.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

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

/// The resource of a processor, for [`Agenda::wait`].
pub(super) const fn processor(number: u32) -> u32 {
    3 * number
}

/// The resource of an interface that sends.
pub(super) const fn sending(number: u32) -> u32 {
    3 * number + 1
}

/// The resource of an interface that receives.
pub(super) const fn receiving(number: u32) -> u32 {
    3 * number + 2
}

/// An operation to try, with its number in the order of becoming ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry<T> {
    /// Twice its number; one more in a line, which changes no order.
    number: u64,
    pub(super) what: T,
}

/// Operations that wait for a resource. Only the first of them are in the queue: if all were tried whenever the resource is free, n
/// operations would take n² tries.
#[derive(Debug)]
struct Line<T> {
    /// The numbers of those in the queue, usually of one, from the last to the first. None in `rest` comes before all of these.
    queued: Vec<u64>,
    rest: BinaryHeap<Reverse<Entry<T>>>,
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
    /// By resource.
    lines: Vec<Option<Box<Line<T>>>>,
    /// The time and the resource of the operation that is tried, if it was in a line.
    tried: Option<(Picos, u32)>,
    /// The resource of each operation of a line in the queue, by number.
    resources: HashMap<u64, u32>,
    numbers: u64,
}

impl<T: Copy + Ord> Agenda<T> {
    pub(super) fn new() -> Self {
        Self {
            queue: Queue::new(),
            batch: Vec::new(),
            now: Picos::ZERO,
            past: BinaryHeap::new(),
            lines: Vec::new(),
            tried: None,
            resources: HashMap::new(),
            numbers: 0,
        }
    }

    /// Adds an operation that becomes ready, to be tried at `at`.
    #[inline]
    pub(super) fn ready(&mut self, at: Picos, what: T) {
        let number = 2 * self.numbers;
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

    /// As [`Agenda::retry`], for an operation that waits until `resource` is free at `at`. Operations that wait for the same resource are
    /// tried in the order in which they became ready, as if each were tried at `at`.
    pub(super) fn wait(&mut self, resource: u32, at: Picos, mut entry: Entry<T>) {
        let place = resource as usize;
        if self.lines.len() <= place {
            self.lines.resize_with(place + 1, || None);
        }
        let empty = || Box::new(Line { queued: Vec::new(), rest: BinaryHeap::new() });
        let line = self.lines[place].get_or_insert_with(empty);
        entry.number |= 1;
        match line.queued.last() {
            Some(&first) if first < entry.number => return line.rest.push(Reverse(entry)),
            Some(_) => {}
            None => {
                line.rest.push(Reverse(entry));
                let Some(Reverse(first)) = line.rest.pop() else { return };
                entry = first;
            }
        }
        // It comes before all of them.
        line.queued.push(entry.number);
        self.resources.insert(entry.number, resource);
        self.retry(at, entry);
    }

    /// If the operation tried last was the only one of its line in the queue, the next one of the line is tried at the same time.
    fn follow_up(&mut self) {
        let Some((t, resource)) = self.tried.take() else { return };
        let Some(line) = self.lines.get_mut(resource as usize).and_then(Option::as_mut) else { return };
        if !line.queued.is_empty() {
            return;
        }
        let Some(Reverse(next)) = line.rest.pop() else { return };
        line.queued.push(next.number);
        self.resources.insert(next.number, resource);
        if t < self.now {
            return self.past.push(Reverse((t, next)));
        }
        let place = self.batch.partition_point(|entry| entry.number > next.number);
        self.batch.insert(place, next);
    }

    /// The next operation to try. Before the first one of a new day of the queue, calls `fetch` with all of that day.
    #[inline]
    pub(super) fn next(&mut self, fetch: impl FnOnce(&[(Picos, Entry<T>)])) -> Option<(Picos, Entry<T>)> {
        if self.tried.is_some() {
            self.follow_up();
        }
        let (t, mut entry) = self.take(fetch)?;
        if entry.number % 2 == 1 {
            self.leave_line(t, &mut entry);
        }
        Some((t, entry))
    }

    #[inline(never)]
    fn leave_line(&mut self, t: Picos, entry: &mut Entry<T>) {
        self.tried = self.resources.remove(&entry.number).map(|resource| (t, resource));
        if let Some((_, resource)) = self.tried
            && let Some(line) = &mut self.lines[resource as usize]
        {
            line.queued.retain(|&number| number != entry.number);
        }
        entry.number -= 1;
    }

    #[inline]
    fn take(&mut self, fetch: impl FnOnce(&[(Picos, Entry<T>)])) -> Option<(Picos, Entry<T>)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations of one resource, each for `time`: the order in which they start, and how often any was tried.
    fn served(ready: &[u64], time: u64) -> (Vec<u32>, usize) {
        let mut agenda = Agenda::new();
        for (number, &at) in (0..).zip(ready) {
            agenda.ready(Picos(at), number);
        }
        let (mut free, mut order, mut tries) = (Picos::ZERO, Vec::new(), 0);
        while let Some((t, entry)) = agenda.next(|_| {}) {
            tries += 1;
            if free > t {
                agenda.wait(processor(7), free, entry);
                continue;
            }
            order.push(entry.what);
            free = Picos(t.0 + time);
        }
        (order, tries)
    }

    #[test]
    fn operations_of_one_resource_take_few_tries() {
        const N: usize = 20_000;
        for time in [0, 1, 100] {
            let (order, tries) = served(&[5; N], time);
            assert!(order.into_iter().eq(0..N as u32), "{time}");
            assert!(tries <= 3 * N, "{tries} tries of {N} operations, {time} each");
        }
    }

    /// Of those that wait, the one that became ready first starts first, whatever its time.
    #[test]
    fn operations_start_in_the_order_of_becoming_ready() {
        assert_eq!(served(&[9, 4, 0, 5, 3], 10).0, [2, 0, 1, 3, 4]);
        assert_eq!(served(&[0, 0, 25, 12, 11, 10], 10).0, [0, 1, 3, 2, 4, 5]);
    }
}

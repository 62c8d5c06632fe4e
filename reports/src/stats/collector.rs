//! Adds up a trace record by record, in a memory that depends on tasks, pairs and sizes, but not on the trace's length.

use super::bounded::Volume;
use super::pairs::{Pairs, key};
use super::phases::PhaseTally;
use super::recent::{Alike, Recent};
use super::sizes::Sizes;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use vef_format::ids::CommId;
use vef_format::raw::{AWAITED, DEPENDENCY, KIND, Raw, RawKind};
use vef_format::record::Header;

/// Sums of a task, its messages aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTally {
    /// Computing time, in ticks of the trace's clock; saturates.
    pub ticks: u64,
    /// Local marks: waits for messages, and the end.
    pub marks: u64,
    /// Parts of collectives.
    pub collectives: u64,
}

impl TaskTally {
    /// Adds a record.
    #[inline(always)]
    fn count(&mut self, raw: &Raw) {
        self.ticks = self.ticks.saturating_add(raw.time);
        match raw.kind() {
            RawKind::Mark => self.marks += 1,
            RawKind::Message => {}
            RawKind::Collective => self.collectives += 1,
        }
    }

    #[inline(always)]
    fn add(&mut self, other: Self) {
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.marks += other.marks;
        self.collectives += other.collectives;
    }
}

/// Sums of an operation on a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectiveTally {
    /// Parts: one a member and operation.
    pub parts: u64,
    /// Bytes that the members contribute, all together.
    pub sent: u64,
    /// Bytes that they obtain.
    pub received: u64,
}

impl CollectiveTally {
    fn add(&mut self, other: Self) {
        self.parts += other.parts;
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
    }
}

/// Bits of a tag that are used.
const TAG: u8 = DEPENDENCY | AWAITED | KIND;
/// Different tags.
const TAGS: usize = TAG as usize + 1;

/// A trace, or a part of it, added up.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    pub(super) pairs: Pairs,
    pub(super) sizes: Sizes,
    pub(super) tasks: Vec<TaskTally>,
    pub(super) collectives: HashMap<(CommId, u16), CollectiveTally>,
    /// Records by [`Raw::tag`].
    by_tag: [u64; TAGS],
    /// Messages that `pairs` and `sizes` do not hold yet.
    recent: Recent,
    pub(super) phases: BTreeMap<String, PhaseTally>,
    /// Records by the MPI function behind them.
    pub(super) calls: BTreeMap<String, u64>,
    /// Sizes of communicators.
    pub(super) communicators: HashMap<CommId, u32>,
}

impl Collector {
    /// For a trace, or a part of it, whose records alternate between so many tasks.
    pub(super) fn new(header: &Header, alternating: u32) -> Self {
        Self {
            pairs: Pairs::new(header.tasks),
            sizes: Sizes::new(),
            tasks: vec![TaskTally::default(); header.tasks as usize],
            collectives: HashMap::new(),
            by_tag: [0; TAGS],
            recent: Recent::new(alternating),
            phases: BTreeMap::new(),
            calls: BTreeMap::new(),
            communicators: HashMap::new(),
        }
    }

    /// Adds a record of `task`.
    #[inline(always)]
    pub(super) fn add(&mut self, task: u32, raw: &Raw) {
        self.tasks[task as usize].count(raw);
        self.add_untallied(task, raw);
    }

    /// Adds a record to all sums but those of its task.
    #[inline(always)]
    fn add_untallied(&mut self, task: u32, raw: &Raw) {
        self.by_tag[usize::from(raw.tag & TAG)] += 1;
        match raw.kind() {
            RawKind::Mark => {}
            RawKind::Message => {
                if let Some(others) = self.recent.add(key(task, raw.to), raw.bytes) {
                    settle(&mut self.pairs, &mut self.sizes, &others);
                }
            }
            RawKind::Collective => self.add_part(raw),
        }
    }

    /// To add many records of one task.
    #[inline(always)]
    pub(super) fn of_task(&mut self, task: u32) -> OfTask<'_> {
        OfTask { sums: self, task, tally: TaskTally::default() }
    }

    /// Adds the messages in [`Collector::recent`] to the sums over pairs and sizes, before these are merged or used.
    pub(super) fn settle_all(&mut self) {
        let Self { recent, pairs, sizes, .. } = self;
        recent.drain(|alike| settle(pairs, sizes, alike));
    }

    /// Adds a part of a collective.
    fn add_part(&mut self, raw: &Raw) {
        let part = CollectiveTally { parts: 1, sent: raw.bytes, received: raw.recv };
        self.collectives.entry((CommId(raw.to), raw.op)).or_default().add(part);
    }

    /// Records whose tag has `bits` of `mask`.
    pub(super) fn tagged(&self, mask: u8, bits: u8) -> u64 {
        let tags = self.by_tag.iter().zip(0u8..);
        tags.filter(|(_, tag)| tag & mask == bits).map(|(records, _)| records).sum()
    }

    /// Adds what another part of the trace gave.
    pub(super) fn merge(&mut self, mut other: Self) {
        other.settle_all();
        self.pairs.merge(other.pairs);
        self.sizes.merge(other.sizes);
        self.tasks.iter_mut().zip(other.tasks).for_each(|(own, other)| own.add(other));
        for (key, tally) in other.collectives {
            self.collectives.entry(key).or_default().add(tally);
        }
        self.by_tag.iter_mut().zip(other.by_tag).for_each(|(own, other)| *own += other);
        for (name, phase) in other.phases {
            self.phases.entry(name).or_default().merge(phase);
        }
        for (name, count) in other.calls {
            *self.calls.entry(name).or_default() += count;
        }
        self.communicators.extend(other.communicators);
    }
}

/// Adds messages to the sums over pairs and sizes.
#[inline(never)]
fn settle(pairs: &mut Pairs, sizes: &mut Sizes, alike: &Alike) {
    let volume = Volume { messages: alike.messages, bytes: alike.bytes.saturating_mul(alike.messages) };
    pairs.add(alike.ends, volume);
    sizes.add(alike.bytes, volume);
}

/// Adds up the records of one task; its own sums are added at the end only.
pub(super) struct OfTask<'a> {
    sums: &'a mut Collector,
    task: u32,
    tally: TaskTally,
}

impl OfTask<'_> {
    /// Adds a record.
    #[inline(always)]
    pub(super) fn take(&mut self, raw: &Raw) {
        self.tally.count(raw);
        self.sums.add_untallied(self.task, raw);
    }

    /// Adds computing that belongs to no record.
    pub(super) fn compute(&mut self, ticks: u64) {
        self.tally.ticks = self.tally.ticks.saturating_add(ticks);
    }

    /// Adds the sums of the task. Its messages are settled, so that those of the next task find places.
    pub(super) fn finish(self) {
        self.sums.tasks[self.task as usize].add(self.tally);
        self.sums.settle_all();
    }
}

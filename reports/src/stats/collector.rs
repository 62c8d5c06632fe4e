//! Adds up a trace record by record, in a memory that depends on tasks, pairs and sizes, but not on the trace's length.

use super::bounded::Volume;
use super::pairs::Pairs;
use super::sizes::Sizes;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::iter::Peekable;
use vef_format::ids::CommId;
use vef_format::raw::{Raw, RawKind};
use vef_format::record::Header;

/// What is added up of a task beside its messages.
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
    #[inline(always)]
    fn add(&mut self, other: Self) {
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.marks += other.marks;
        self.collectives += other.collectives;
    }
}

/// What is added up of an operation on a communicator.
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

/// What is added up of a phase, over all tasks; a record counts for the innermost phase that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTally {
    /// How often a task entered it.
    pub entries: u64,
    /// Messages that were sent in it.
    pub sent: Volume,
    /// Parts of collectives.
    pub collectives: u64,
    /// Computing time, in ticks.
    pub ticks: u64,
    /// Messages by the power of two of their size: class 0 is no bytes, class k up to 2^k − 1.
    pub by_size: BTreeMap<u32, Volume>,
}

/// The power of two of a size: class 0 is no bytes, class k up to 2^k − 1.
pub fn size_class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

impl PhaseTally {
    /// Adds a record.
    pub(super) fn add(&mut self, raw: &Raw) {
        self.ticks = self.ticks.saturating_add(raw.time);
        match raw.kind() {
            RawKind::Mark => {}
            RawKind::Message => {
                let volume = Volume { messages: 1, bytes: raw.bytes };
                self.sent.add(volume);
                self.by_size.entry(size_class(raw.bytes)).or_default().add(volume);
            }
            RawKind::Collective => self.collectives += 1,
        }
    }
}

/// A place among a task's records at which a phase begins or ends.
pub(super) struct Boundary {
    /// In front of the record of that number.
    pub(super) place: u64,
    /// The name of the phase that begins; none: the innermost ends.
    pub(super) begins: Option<String>,
}

/// A trace, or a part of it, added up.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    pub(super) pairs: Pairs,
    pub(super) sizes: Sizes,
    pub(super) tasks: Vec<TaskTally>,
    pub(super) collectives: HashMap<(CommId, u16), CollectiveTally>,
    /// Records by what they wait for, as `Dependency::code` numbers it.
    pub(super) dependencies: [u64; 4],
    pub(super) awaited: u64,
    pub(super) to_self: u64,
    pub(super) phases: BTreeMap<String, PhaseTally>,
    /// Records by the MPI function behind them.
    pub(super) calls: BTreeMap<String, u64>,
    /// Sizes of communicators.
    pub(super) communicators: HashMap<CommId, u32>,
}

impl Collector {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            pairs: Pairs::new(header.tasks),
            sizes: Sizes::new(),
            tasks: vec![TaskTally::default(); header.tasks as usize],
            collectives: HashMap::new(),
            dependencies: [0; 4],
            awaited: 0,
            to_self: 0,
            phases: BTreeMap::new(),
            calls: BTreeMap::new(),
            communicators: HashMap::new(),
        }
    }

    /// Adds a record of `task`.
    #[inline(always)]
    pub(super) fn add(&mut self, task: u32, raw: &Raw) {
        let mut tally = self.of_task(task);
        tally.add(raw);
        tally.finish();
    }

    /// To add many records of one task.
    #[inline(always)]
    pub(super) fn of_task(&mut self, task: u32) -> OfTask<'_> {
        OfTask { sums: self, task, tally: TaskTally::default(), dependencies: [0; 4], awaited: 0, to_self: 0 }
    }

    /// Goes into and out of phases up to the record `number` of a task.
    pub(super) fn pass_boundaries(
        &mut self,
        boundaries: &mut Peekable<impl Iterator<Item = Boundary>>,
        number: u64,
        open: &mut Vec<String>,
    ) {
        while let Some(boundary) = boundaries.next_if(|boundary| boundary.place <= number) {
            match boundary.begins {
                None => drop(open.pop()),
                Some(name) => {
                    self.phases.entry(name.clone()).or_default().entries += 1;
                    open.push(name);
                }
            }
        }
    }

    /// Adds what another part of the trace gave.
    pub(super) fn merge(&mut self, other: Self) {
        let Self {
            pairs,
            sizes,
            tasks,
            collectives,
            dependencies,
            awaited,
            to_self,
            phases,
            calls,
            communicators,
        } = other;
        self.pairs.merge(pairs);
        self.sizes.merge(sizes);
        self.tasks.iter_mut().zip(tasks).for_each(|(own, other)| own.add(other));
        for (key, tally) in collectives {
            self.collectives.entry(key).or_default().add(tally);
        }
        self.dependencies.iter_mut().zip(dependencies).for_each(|(own, other)| *own += other);
        self.awaited += awaited;
        self.to_self += to_self;
        for (name, phase) in phases {
            let own = self.phases.entry(name).or_default();
            own.entries += phase.entries;
            own.sent.add(phase.sent);
            own.collectives += phase.collectives;
            own.ticks = own.ticks.saturating_add(phase.ticks);
            for (class, volume) in phase.by_size {
                own.by_size.entry(class).or_default().add(volume);
            }
        }
        for (name, count) in calls {
            *self.calls.entry(name).or_default() += count;
        }
        self.communicators.extend(communicators);
    }
}

/// Adds up records of one task: what is added to most stays where it is quickly at hand.
pub(super) struct OfTask<'a> {
    sums: &'a mut Collector,
    task: u32,
    tally: TaskTally,
    dependencies: [u64; 4],
    awaited: u64,
    to_self: u64,
}

impl OfTask<'_> {
    /// Adds a record.
    #[inline(always)]
    pub(super) fn add(&mut self, raw: &Raw) {
        self.tally.ticks = self.tally.ticks.saturating_add(raw.time);
        self.dependencies[usize::from(raw.dependency_code() & 3)] += 1;
        match raw.kind() {
            RawKind::Mark => self.tally.marks += 1,
            RawKind::Message => {
                let volume = Volume { messages: 1, bytes: raw.bytes };
                self.awaited += u64::from(raw.awaited());
                self.to_self += u64::from(raw.to == self.task);
                self.sums.pairs.add(self.task, raw.to, volume);
                self.sums.sizes.add(raw.bytes, volume);
            }
            RawKind::Collective => {
                self.tally.collectives += 1;
                let part = CollectiveTally { parts: 1, sent: raw.bytes, received: raw.recv };
                self.sums.collectives.entry((CommId(raw.to), raw.op)).or_default().add(part);
            }
        }
    }

    /// What was added counts.
    #[inline(always)]
    pub(super) fn finish(self) {
        self.sums.tasks[self.task as usize].add(self.tally);
        self.sums.dependencies.iter_mut().zip(self.dependencies).for_each(|(own, more)| *own += more);
        self.sums.awaited += self.awaited;
        self.sums.to_self += self.to_self;
    }
}

//! The accounts of the tasks' time in the captured run (`docs/time.md`), of containers.

use hashbrown::HashMap;
use std::collections::BTreeMap;
use vef_format::account::{ByPart, TimePart};
use vef_format::container::{ContainerError, Note, Reader, Section};
use vef_format::ids::Rank;

/// The accounts of all tasks. Times are in ticks of the trace's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// By task; all 0 where the capture had no call table.
    pub tasks: Vec<ByPart>,
    /// The functions that were called.
    pub functions: Vec<String>,
    /// By task, and in the order of its first calls.
    pub entries: Vec<OfFunction>,
}

/// The time of a task in a function, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfFunction {
    /// The task.
    pub task: Rank,
    /// Index in [`Accounts::functions`].
    pub function: u32,
    /// The part of the task's time.
    pub part: TimePart,
    /// Calls; 0 in the further entries of a function.
    pub calls: u64,
    /// Their time.
    pub ticks: u64,
}

/// A function in all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InAll {
    /// Calls.
    pub calls: u64,
    /// Their time.
    pub ticks: u64,
    /// The task with most time in it, the lowest of several, and that time.
    pub most: (Rank, u64),
}

impl Accounts {
    /// The accounts in a container; `None` if it has none.
    pub(super) fn read(reader: &Reader) -> Result<Option<Self>, ContainerError> {
        let mut adding = Adding::new(reader.header().tasks);
        for (task, mut notes) in reader.notes_of_all(Section::Times)? {
            while let Some((_, note)) = notes.next(reader)? {
                let Note::Time { part, calls, took, function } = note else { continue };
                adding.add(task, function, part, calls, took.0);
            }
        }
        Ok(adding.finish())
    }

    /// The sums over all tasks.
    pub fn all(&self) -> ByPart {
        let mut all = ByPart::default();
        self.tasks.iter().for_each(|task| all.merge(task));
        all
    }

    /// Each function by name and part of the time, summed over all tasks; the one with most time first.
    pub fn by_function(&self) -> Vec<(&str, TimePart, InAll)> {
        let mut sums: BTreeMap<(u32, TimePart), InAll> = BTreeMap::new();
        for &OfFunction { task, function, part, calls, ticks } in &self.entries {
            let none = InAll { calls: 0, ticks: 0, most: (task, 0) };
            let sum = sums.entry((function, part)).or_insert(none);
            sum.calls = sum.calls.saturating_add(calls);
            sum.ticks = sum.ticks.saturating_add(ticks);
            if ticks > sum.most.1 {
                sum.most = (task, ticks);
            }
        }
        let mut all: Vec<_> = sums
            .into_iter()
            .map(|((function, part), sum)| (self.functions[function as usize].as_str(), part, sum))
            .collect();
        all.sort_by_key(|(_, _, sum)| std::cmp::Reverse(sum.ticks));
        all
    }
}

/// Accounts under construction.
pub(crate) struct Adding {
    accounts: Accounts,
    numbers: HashMap<String, u32>,
    used: bool,
}

impl Adding {
    /// Of so many tasks.
    pub(crate) fn new(tasks: u32) -> Self {
        let tasks = vec![ByPart::default(); tasks as usize];
        let accounts = Accounts { tasks, ..Accounts::default() };
        Self { accounts, numbers: HashMap::new(), used: false }
    }

    /// Adds an entry of `task`; `function` is empty for time outside MPI.
    pub(crate) fn add(&mut self, task: Rank, function: &str, part: TimePart, calls: u64, ticks: u64) {
        self.used = true;
        self.accounts.tasks[task.index()].add(part, ticks);
        if !function.is_empty() {
            let functions = &mut self.accounts.functions;
            let function = *self.numbers.entry_ref(function).or_insert_with(|| {
                functions.push(function.to_owned());
                functions.len() as u32 - 1
            });
            self.accounts.entries.push(OfFunction { task, function, part, calls, ticks });
        }
    }

    /// The accounts; `None` without an entry.
    pub(crate) fn finish(self) -> Option<Accounts> {
        self.used.then_some(self.accounts)
    }
}

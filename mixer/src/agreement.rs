//! Checks that all members of a communicator called the same collective operations.
//!
//! A [`CallList`] has a few bytes a call. A [`Roll`] keeps the list that members agree on once, and in addition only the
//! first list that differs: the mix fails then, whatever the other members called. So the roll of a process with many
//! tasks is little larger than the list of one task.

use crate::communicators::CommFacts;
use crate::error::{Call, Disagreement};
use crate::fit::fit;
use crate::index::{CommIndex, OperationIndex};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vef_format::ids::Rank;
use vef_format::operation::Operation;
use vef_format::varint::{self, Source};

/// Collective calls in order: the operation of each, followed by the root of a rooted one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallList {
    bytes: Vec<u8>,
    count: u32,
}

impl CallList {
    /// Adds a call.
    pub(crate) fn push(&mut self, call: Call) {
        varint::put(&mut self.bytes, call.operation as u64);
        if call.operation.is_rooted() {
            varint::put(&mut self.bytes, call.root.unwrap_or(0).into());
        }
        self.count += 1;
    }

    /// Number of calls.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        fit(&mut self.bytes);
    }

    /// Allocated bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    fn calls(&self) -> impl Iterator<Item = Call> {
        let mut source = Source::new(&self.bytes, 0);
        std::iter::from_fn(move || {
            let operation = *Operation::ALL.get(source.get().ok()? as usize)?;
            let root = if operation.is_rooted() { Some(source.get().ok()? as u32) } else { None };
            Some(Call { operation, root })
        })
    }

    /// The first `count` calls.
    fn first(&self, count: u32) -> Self {
        let mut list = Self::default();
        self.calls().take(count as usize).for_each(|call| list.push(call));
        list
    }

    /// Index of the first call that differs; `None` if one list is a prefix of the other.
    fn difference(&self, other: &Self) -> Option<u32> {
        let common = self.bytes.len().min(other.bytes.len());
        if self.bytes[..common] == other.bytes[..common] {
            return None;
        }
        self.calls().zip(other.calls()).position(|(a, b)| a != b).map(|at| at as u32)
    }

    fn call(&self, at: u32) -> Option<Call> {
        self.calls().nth(at as usize)
    }
}

/// The calls of all members on one communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Roll {
    /// The longest of the lists that agree.
    list: CallList,
    /// The members whose calls are a prefix of `list`, by ascending task, and their number of calls.
    members: Vec<(Rank, u32)>,
    /// The lowest task whose calls differ, and its calls. Higher tasks are not compared any more.
    first_other: Option<(Rank, CallList)>,
}

impl Roll {
    /// Adds `later`, the roll of higher tasks.
    fn merge(&mut self, later: Self) {
        if self.first_other.is_some() {
            return;
        }
        if let Some(at) = self.list.difference(&later.list) {
            // Some member made all calls of the list, so `longest` is found.
            let agreeing = later.members.iter().take_while(|&&(_, made)| made <= at).count();
            self.members.extend(&later.members[..agreeing]);
            let other = later.members.get(agreeing);
            self.first_other = other.map(|&(task, made)| (task, later.list.first(made)));
            return;
        }
        self.members.extend(later.members);
        if later.list.len() > self.list.len() {
            self.list = later.list;
        }
        self.first_other = later.first_other;
    }

    /// Compares the members' calls. Unless `lenient`, a member with fewer calls than another is an error.
    fn compare(&self, comm: &CommFacts, lenient: bool) -> Result<Operations, Box<Disagreement>> {
        let disagreement = |position: u32, other: (Rank, Option<Call>)| {
            let (members, size) = (comm.group.iter().take(8).collect(), comm.group.count());
            let lowest = self.members.iter().find(|&&(_, made)| made > position);
            // Never the default: some member made the call.
            let call = self.list.call(position).unwrap_or(Call { operation: Operation::Barrier, root: None });
            let one = (lowest.map_or(other.0, |&(task, _)| task), call);
            Box::new(Disagreement { members, size, position: position.into(), one, other })
        };
        if let Some((task, list)) = &self.first_other
            && let Some(at) = self.list.difference(list)
        {
            return Err(disagreement(at, (*task, list.call(at))));
        }
        let most = self.list.len();
        let least = self.members.iter().map(|&(_, made)| made).min().unwrap_or(0);
        let complete = if self.members.len() < comm.group.count() as usize { 0 } else { least };
        if complete < most && !lenient {
            let by_task: BTreeMap<Rank, u32> = self.members.iter().copied().collect();
            let made_by = |task: Rank| by_task.get(&task).copied().unwrap_or(0);
            let missing = comm.group.iter().find(|&task| made_by(task) == complete);
            return Err(disagreement(complete, (missing.unwrap_or(self.members[0].0), None)));
        }
        let parts: u64 = self.members.iter().map(|&(_, made)| u64::from(made)).sum();
        Ok(Operations {
            complete: complete.into(),
            incomplete_parts: parts - u64::from(complete) * self.members.len() as u64,
        })
    }
}

/// The collective calls of one task on one communicator.
#[derive(Debug)]
pub(crate) struct Calls {
    /// The communicator.
    pub(crate) comm: CommIndex,
    /// The calls, in order.
    pub(crate) made: CallList,
}

/// The rolls of all communicators.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rolls(BTreeMap<CommIndex, Roll>);

impl Rolls {
    /// Adds the calls of `rank`, which is higher than all tasks before.
    pub(crate) fn add(&mut self, rank: Rank, calls: &[Calls]) {
        for Calls { comm, made } in calls {
            let roll = Roll { list: made.clone(), members: vec![(rank, made.len())], first_other: None };
            self.0.entry(*comm).or_default().merge(roll);
        }
    }

    /// Adds the rolls of a process of higher tasks.
    pub(crate) fn merge(&mut self, later: Self) {
        for (comm, roll) in later.0 {
            self.0.entry(comm).or_default().merge(roll);
        }
    }

    /// The first operation for which `wanted` holds.
    pub(crate) fn operation(&self, wanted: impl Fn(Operation) -> bool) -> Option<Operation> {
        if !Operation::ALL.iter().any(|&operation| wanted(operation)) {
            return None;
        }
        let others = self.0.values().filter_map(|roll| roll.first_other.as_ref().map(|(_, list)| list));
        let lists = self.0.values().map(|roll| &roll.list).chain(others);
        lists.flat_map(CallList::calls).map(|call| call.operation).find(|&called| wanted(called))
    }

    /// Compares the calls of all members of each communicator; the result is by index in `communicators`. Unless `lenient`, a
    /// member with fewer calls than another is an error.
    pub(crate) fn compare(
        &self,
        communicators: &[CommFacts],
        lenient: bool,
    ) -> Result<Vec<Operations>, Box<Disagreement>> {
        let mut operations = vec![Operations::default(); communicators.len()];
        // In the order of the trace, so that the disagreement that is reported is always the same.
        let mut order: Vec<(usize, &Roll)> = self.0.iter().map(|(comm, roll)| (comm.index(), roll)).collect();
        order.sort_unstable_by_key(|&(at, _)| communicators[at].order);
        for (at, roll) in order {
            operations[at] = roll.compare(&communicators[at], lenient)?;
        }
        Ok(operations)
    }
}

/// Counts of a communicator's collective operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Operations {
    /// Operations that all members called: these are in the trace.
    pub(crate) complete: u64,
    /// Calls that belong to operations that some members did not call.
    pub(crate) incomplete_parts: u64,
}

impl Operations {
    /// Whether the trace has operation `at`.
    pub(crate) fn has(&self, at: OperationIndex) -> bool {
        u64::from(at.0) < self.complete
    }
}

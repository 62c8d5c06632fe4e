//! Checks that all members of a communicator called the same collective operations.
//!
//! A [`CallList`] has a few bytes a call. A [`Roll`] keeps the list that members agree on once, and in addition only the
//! first list that differs: the mix fails then, whatever the other members called. So the roll of a process with many
//! tasks is little larger than the list of one task.

use crate::bytes::{Coded, Encoder, Garbled, Reader, coded};
use crate::communicators::{Identity, Known};
use crate::error::{Call, Disagreement};
use crate::fit::fit;
use std::collections::BTreeMap;
use vef_format::ids::Rank;
use vef_format::operation::Operation;
use vef_format::varint::Source;

/// Collective calls in order: one byte for the operation, followed by the root of a rooted one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallList {
    bytes: Vec<u8>,
    count: u32,
}

impl CallList {
    /// Adds a call.
    pub(crate) fn push(&mut self, call: Call) {
        self.bytes.push(call.operation as u8);
        if call.operation.is_rooted() {
            let mut encoder = Encoder(std::mem::take(&mut self.bytes));
            encoder.put(call.root.unwrap_or(0).into());
            self.bytes = encoder.0;
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
        let mut at = 0;
        std::iter::from_fn(move || {
            let operation = *Operation::ALL.get(usize::from(*self.bytes.get(at)?))?;
            at += 1;
            let mut root = None;
            if operation.is_rooted() {
                let mut source = Source::new(&self.bytes, at);
                root = Some(source.get().ok()? as u32);
                at = source.position();
            }
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

coded!(CallList { bytes, count });

/// The calls of all members on one communicator.
#[derive(Debug, Default, PartialEq, Eq)]
struct Roll {
    /// The longest of the lists that agree.
    list: CallList,
    /// The members whose calls are a prefix of `list`, by ascending task, and their number of calls.
    members: Vec<(Rank, u32)>,
    /// The lowest task whose calls differ, and its calls. Higher tasks are not compared any more.
    first_other: Option<(Rank, CallList)>,
}

coded!(Roll { list, members, first_other });

impl Roll {
    /// Adds the calls of `task`, which is higher than all tasks before.
    fn add(&mut self, task: Rank, made: &CallList) {
        if self.first_other.is_some() {
            return;
        }
        if self.list.difference(made).is_some() {
            self.first_other = Some((task, made.clone()));
            return;
        }
        self.members.push((task, made.len()));
        if made.len() > self.list.len() {
            self.list.clone_from(made);
        }
    }

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
    fn compare(&self, known: &Known, lenient: bool) -> Result<Operations, Box<Disagreement>> {
        let disagreement = |position: u32, other: (Rank, Option<Call>)| {
            let (members, size) = (known.group.iter().take(8).collect(), known.group.count());
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
        let complete = if self.members.len() < known.group.count() as usize { 0 } else { least };
        if complete < most && !lenient {
            let by_task: BTreeMap<Rank, u32> = self.members.iter().copied().collect();
            let made_by = |task: Rank| by_task.get(&task).copied().unwrap_or(0);
            let missing = known.group.iter().find(|&task| made_by(task) == complete);
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
    pub(crate) comm: Identity,
    /// The calls, in order.
    pub(crate) made: CallList,
}

/// The rolls of all communicators, by [`Identity`].
#[derive(Debug, Default)]
pub(crate) struct Rolls(BTreeMap<u32, Roll>);

impl Rolls {
    /// Adds the calls of `rank`, which is higher than all tasks before.
    pub(crate) fn add(&mut self, rank: Rank, calls: &[Calls]) {
        for calls in calls {
            self.0.entry(calls.comm.0).or_default().add(rank, &calls.made);
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

    /// Encodes all rolls for another process; `comm` maps an own communicator to its common number.
    pub(crate) fn encode(&self, comm: &dyn Fn(u32) -> u32) -> Vec<u8> {
        let mut encoder = Encoder::default();
        for (&own, roll) in &self.0 {
            comm(own).put(&mut encoder);
            roll.put(&mut encoder);
        }
        encoder.0
    }

    /// Adds the rolls that a process of higher tasks encoded.
    pub(crate) fn import_peer(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        let mut reader = Reader::new(bytes);
        while reader.more() {
            let (comm, later) = <(u32, Roll)>::get(&mut reader)?;
            self.0.entry(comm).or_default().merge(later);
        }
        Ok(())
    }

    /// Compares the calls of all members of each communicator; the result is by identity. Unless `lenient`, a member with
    /// fewer calls than another is an error.
    pub(crate) fn compare(
        &self,
        known: &[Known],
        lenient: bool,
    ) -> Result<Vec<Operations>, Box<Disagreement>> {
        let mut operations = vec![Operations::default(); known.len()];
        // In the order of the trace, so that the disagreement that is reported is always the same.
        let mut order: Vec<(usize, &Roll)> =
            self.0.iter().map(|(&comm, roll)| (comm as usize, roll)).collect();
        order.sort_unstable_by_key(|&(at, _)| known[at].order);
        for (at, roll) in order {
            operations[at] = roll.compare(&known[at], lenient)?;
        }
        Ok(operations)
    }
}

/// Counts of a communicator's collective operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operations {
    /// Operations that all members called.
    pub(crate) complete: u64,
    /// Calls that belong to operations that some members did not call.
    pub(crate) incomplete_parts: u64,
}

coded!(Operations { complete, incomplete_parts });

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use vef_format::capture::Group;
    use vef_format::capture::event::Members;

    fn list(calls: &[(Operation, Option<u32>)]) -> CallList {
        let mut list = CallList::default();
        calls.iter().for_each(|&(operation, root)| list.push(Call { operation, root }));
        list
    }

    fn known(tasks: u32) -> Known {
        let group = Arc::new(Group::new(Members::All, tasks).unwrap());
        Known { group, order: (Rank(0), 0), world: true }
    }

    const BARRIER: (Operation, Option<u32>) = (Operation::Barrier, None);

    fn roll<'a>(first: u32, lists: impl IntoIterator<Item = &'a CallList>) -> Roll {
        let mut roll = Roll::default();
        (first..).zip(lists).for_each(|(rank, made)| roll.add(Rank(rank), made));
        roll
    }

    #[test]
    fn lists_differ_where_the_calls_do() {
        let one = list(&[BARRIER, (Operation::Bcast, Some(300)), BARRIER]);
        let other = list(&[BARRIER, (Operation::Bcast, Some(301)), BARRIER]);
        assert_eq!(one.difference(&other), Some(1));
        assert_eq!(one.difference(&list(&[BARRIER])), None);
        assert_eq!(one.call(1), Some(Call { operation: Operation::Bcast, root: Some(300) }));
        assert_eq!((one.len(), one.calls().count(), one.first(2).len()), (3, 3, 2));
        assert_eq!(one.first(2).difference(&one), None);
    }

    #[test]
    fn the_lowest_that_does_not_agree_is_named() {
        let wrong = list(&[BARRIER, (Operation::Scan, None)]);
        let lists =
            [list(&[BARRIER]), list(&[BARRIER, BARRIER, BARRIER]), wrong.clone(), list(&[BARRIER]), wrong];
        let found = roll(0, &lists).compare(&known(5), true).unwrap_err();
        assert_eq!((found.position, found.one.0, found.other.0), (1, Rank(1), Rank(2)));
        let found = roll(0, &lists[..2]).compare(&known(2), false).unwrap_err();
        assert_eq!((found.position, found.one.0, found.other), (1, Rank(1), (Rank(0), None)));
        let lenient = roll(0, &lists[..2]).compare(&known(2), true);
        assert_eq!(lenient, Ok(Operations { complete: 1, incomplete_parts: 2 }));
    }

    proptest! {
        /// For any division of the members among processes.
        #[test]
        fn rolls_of_several_processes_are_that_of_one(
            calls in proptest::collection::vec(proptest::collection::vec(0usize..12, 0..6), 1..9),
            cuts in proptest::collection::vec(0usize..9, 2),
            lenient: bool,
        ) {
            // Most calls are equal.
            let call = |&kind: &usize| match kind {
                11 => (Operation::Bcast, Some(1)),
                10 => (Operation::Bcast, Some(2)),
                _ => BARRIER,
            };
            let lists: Vec<CallList> = calls.iter().map(|calls| list(&calls.iter().map(call).collect::<Vec<_>>())).collect();
            let tasks = lists.len();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(tasks)).collect();
            cuts.sort_unstable();
            let mut merged = Rolls::default();
            for part in [0..cuts[0], cuts[0]..cuts[1], cuts[1]..tasks] {
                let part = roll(part.start as u32, &lists[part]);
                merged.import_peer(&Rolls(BTreeMap::from([(0, part)])).encode(&|comm| comm)).unwrap();
            }
            let whole = roll(0, &lists);
            prop_assert_eq!(&merged.0[&0], &whole);
            // The expected result, member by member.
            let mut longest: &CallList = &lists[0];
            let mut agree = true;
            for list in &lists {
                agree &= longest.difference(list).is_none();
                longest = if list.len() > longest.len() { list } else { longest };
            }
            let same = lists.iter().all(|list| list.len() == lists[0].len());
            prop_assert_eq!(whole.compare(&known(tasks as u32), lenient).is_ok(), agree && (lenient || same));
        }
    }
}

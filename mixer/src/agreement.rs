//! Whether all members of a communicator called the same collective operations.
//!
//! A task's calls on a communicator are a few bytes each ([`CallList`]). What several tasks called alike is kept once
//! ([`Roll`]), so that a process of many can tell the others all it knows in little more than the calls of one task.

use crate::bytes::{Author, Garbled, Reader};
use crate::communicators::Known;
use crate::error::{Call, Disagreement};
use crate::task::Task;
use std::collections::BTreeMap;
use vef_format::ids::Rank;
use vef_format::operation::Operation;

/// Calls of collectives, in order: a byte for the operation, and where it has one its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallList {
    bytes: Vec<u8>,
    count: u32,
}

impl CallList {
    /// Adds a call; whether it has a root is the operation's.
    pub(crate) fn push(&mut self, call: Call) {
        self.bytes.push(call.operation as u8);
        if call.operation.is_rooted() {
            let mut author = Author(std::mem::take(&mut self.bytes));
            author.put(call.root.unwrap_or(0).into());
            self.bytes = author.0;
        }
        self.count += 1;
    }

    /// How many calls.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// Gives back unused memory.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// The memory it takes.
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
                let mut source = vef_format::capture::varint::Source::new(&self.bytes, at);
                root = Some(source.get().ok()? as u32);
                at = source.position();
            }
            Some(Call { operation, root })
        })
    }

    /// Where two lists differ, if that is before either ends.
    fn difference(&self, other: &Self) -> Option<u32> {
        let common = self.bytes.len().min(other.bytes.len());
        if self.bytes[..common] == other.bytes[..common] {
            return None;
        }
        self.calls().zip(other.calls()).position(|(a, b)| a != b).map(|at| at as u32)
    }

    fn call(&self, at: u32) -> Call {
        // There is one at every place that is asked for.
        self.calls().nth(at as usize).unwrap_or(Call { operation: Operation::Barrier, root: None })
    }
}

/// Who called what on one communicator.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    /// Lists of calls that differ somewhere; most often one.
    lists: Vec<CallList>,
    /// By ascending task: how many calls it made, which begin one of the lists.
    members: Vec<(Rank, u32, u32)>,
}

impl Roll {
    fn add(&mut self, task: Rank, made: &CallList) {
        let list = self.list(made);
        self.members.push((task, made.len(), list));
    }

    /// Which list begins with `made`; a longer one takes the place of what it begins with.
    fn list(&mut self, made: &CallList) -> u32 {
        let at = match self.lists.iter().position(|list| list.difference(made).is_none()) {
            Some(at) => at,
            None => {
                self.lists.push(CallList::default());
                self.lists.len() - 1
            }
        };
        if made.len() > self.lists[at].len() {
            self.lists[at] = made.clone();
        }
        at as u32
    }

    /// Adds `later`, which is of higher tasks.
    fn merge(&mut self, later: Self) {
        let lists: Vec<u32> = later.lists.iter().map(|list| self.list(list)).collect();
        let renumbered = |(task, made, list): (Rank, u32, u32)| (task, made, lists[list as usize]);
        self.members.extend(later.members.into_iter().map(renumbered));
    }
}

/// Who called what, by communicator ([`Identity`](crate::communicators::Identity)).
#[derive(Debug, Default)]
pub(crate) struct Rolls(BTreeMap<u32, Roll>);

impl Rolls {
    /// Adds the calls of `task`, which is higher than all before.
    pub(crate) fn add(&mut self, rank: Rank, task: &Task) {
        for calls in &task.calls {
            self.0.entry(calls.comm.0).or_default().add(rank, &calls.made);
        }
    }

    /// The first operation called that is `wanted`.
    pub(crate) fn operation(&self, wanted: impl Fn(Operation) -> bool) -> Option<Operation> {
        if !Operation::ALL.iter().any(|&operation| wanted(operation)) {
            return None;
        }
        let lists = self.0.values().flat_map(|roll| &roll.lists);
        lists.flat_map(CallList::calls).map(|call| call.operation).find(|&called| wanted(called))
    }

    /// For other processes; `comm` gives the number that all know a communicator by.
    pub(crate) fn encode(&self, comm: &dyn Fn(u32) -> u32) -> Vec<u8> {
        let mut author = Author::default();
        for (&own, roll) in &self.0 {
            author.put(comm(own).into());
            author.put(roll.lists.len() as u64);
            for list in &roll.lists {
                author.put(list.count.into());
                author.put_bytes(&list.bytes);
            }
            author.put(roll.members.len() as u64);
            for &(task, made, list) in &roll.members {
                author.put(task.0.into());
                author.put(made.into());
                author.put(list.into());
            }
        }
        author.0
    }

    /// Adds what another process, of higher tasks, has encoded.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        let mut reader = Reader::new(bytes);
        while reader.more() {
            let comm = reader.get_u32()?;
            let mut later = Roll::default();
            for _ in 0..reader.get()? {
                let count = reader.get_u32()?;
                later.lists.push(CallList { count, bytes: reader.get_bytes()?.to_vec() });
            }
            for _ in 0..reader.get()? {
                let (task, made, list) = (reader.get_u32()?, reader.get_u32()?, reader.get_u32()?);
                if list as usize >= later.lists.len() {
                    return Err(Garbled);
                }
                later.members.push((Rank(task), made, list));
            }
            self.0.entry(comm).or_default().merge(later);
        }
        Ok(())
    }

    /// Compares what the members of every communicator called; the answer is by identity. Unless `lenient`, each
    /// member must make as many calls as any other.
    pub(crate) fn compare(
        &self,
        known: &[Known],
        lenient: bool,
    ) -> Result<Vec<Operations>, Box<Disagreement>> {
        let mut operations = vec![Operations::default(); known.len()];
        // In the order of a trace, so that the first disagreement is the same one each time.
        let mut order: Vec<(usize, &Roll)> =
            self.0.iter().map(|(&comm, roll)| (comm as usize, roll)).collect();
        order.sort_unstable_by_key(|&(at, _)| known[at].order);
        for (at, roll) in order {
            operations[at] = compare(&known[at], roll, lenient)?;
        }
        Ok(operations)
    }
}

/// The collective operations of a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operations {
    /// How many operations all members came to.
    pub(crate) complete: u64,
    /// How many parts belong to operations that not all members came to.
    pub(crate) incomplete_parts: u64,
}

/// Compares what the members of one communicator called.
fn compare(known: &Known, roll: &Roll, lenient: bool) -> Result<Operations, Box<Disagreement>> {
    let size = known.group.count();
    let disagreement = |position: u32, one: (Rank, Call), other: (Rank, Option<Call>)| {
        let members = known.group.iter().take(8).collect();
        Box::new(Disagreement { members, size, position: position.into(), one, other })
    };
    // The lowest of those that made the most calls.
    let Some(&(busiest, most, list)) = roll.members.iter().rev().max_by_key(|&&(_, made, _)| made) else {
        return Ok(Operations::default());
    };
    let reference = &roll.lists[list as usize];
    let differences: Vec<Option<u32>> = roll.lists.iter().map(|list| list.difference(reference)).collect();
    for &(task, made, list) in &roll.members {
        if let Some(at) = differences[list as usize].filter(|&at| at < made.min(most)) {
            let other = roll.lists[list as usize].call(at);
            return Err(disagreement(at, (busiest, reference.call(at)), (task, Some(other))));
        }
    }
    let least = roll.members.iter().map(|&(_, made, _)| made).min().unwrap_or(0);
    let complete = if roll.members.len() < size as usize { 0 } else { least };
    if complete < most && !lenient {
        let by_task: BTreeMap<Rank, u32> = roll.members.iter().map(|&(task, made, _)| (task, made)).collect();
        let made_by = |task: Rank| by_task.get(&task).copied().unwrap_or(0);
        let missing = known.group.iter().find(|&task| made_by(task) == complete).unwrap_or(busiest);
        return Err(disagreement(complete, (busiest, reference.call(complete)), (missing, None)));
    }
    let parts: u64 = roll.members.iter().map(|&(_, made, _)| u64::from(made)).sum();
    Ok(Operations {
        complete: complete.into(),
        incomplete_parts: parts - u64::from(complete) * roll.members.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicators::Group;
    use std::sync::Arc;
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

    #[test]
    fn lists_differ_where_the_calls_do() {
        let one = list(&[BARRIER, (Operation::Bcast, Some(300)), BARRIER]);
        let other = list(&[BARRIER, (Operation::Bcast, Some(301)), BARRIER]);
        assert_eq!(one.difference(&other), Some(1));
        assert_eq!(one.difference(&list(&[BARRIER])), None);
        assert_eq!(one.call(1), Call { operation: Operation::Bcast, root: Some(300) });
        assert_eq!((one.len(), one.calls().count()), (3, 3));
    }

    #[test]
    fn rolls_of_several_processes_are_that_of_one() {
        let long = list(&[BARRIER, (Operation::Bcast, Some(2)), BARRIER]);
        let short = list(&[BARRIER]);
        let wrong = list(&[BARRIER, BARRIER]);
        for made in
            [[&long, &long, &long, &long], [&short, &long, &short, &long], [&long, &short, &wrong, &long]]
        {
            let mut whole = Roll::default();
            (0..).zip(made).for_each(|(rank, made)| whole.add(Rank(rank), made));
            let mut merged = Rolls::default();
            for half in [0, 2] {
                let mut part = Roll::default();
                for rank in half..half + 2 {
                    part.add(Rank(rank), made[rank as usize]);
                }
                let part = Rolls(BTreeMap::from([(0, part)]));
                merged.hear(&part.encode(&|comm| comm)).unwrap();
            }
            for lenient in [false, true] {
                let expected = compare(&known(4), &whole, lenient);
                assert_eq!(compare(&known(4), &merged.0[&0], lenient), expected);
            }
        }
    }
}

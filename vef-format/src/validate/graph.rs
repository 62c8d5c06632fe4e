//! The graph of a trace's records that the checks share: nodes are records, edges what they depend on.

use super::communicators::Communicators;
use super::report::{Kind, Place, RecordPlace};
use crate::id_table::{IdTable, NONE};
use crate::ids::Rank;
use crate::operation::{OpCode, Operation, Root};
use crate::units::Picos;
use std::collections::HashSet;

/// All records and their dependencies.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// In file order.
    pub(super) nodes: Vec<Node>,
    /// From the id of a point-to-point line to its node.
    pub(super) ids: IdTable,
    /// Tasks with records, in the order of their first ones.
    pub(super) tasks: Vec<Task>,
    /// From rank to index in `tasks`.
    pub(super) task_of_rank: IdTable,
    pub(super) communicators: Communicators,
    pub(super) collectives: Vec<Collective>,
    /// Parts of collectives that receive nothing although others may: indices of collective and task.
    pub(super) takes_nothing: HashSet<(u32, u32)>,
    /// From the id of a collective to its index in `collectives`.
    pub(super) collective_ids: IdTable,
    pub(super) lines: Vec<(u32, u64)>,
    /// Places are records, not lines.
    pub(super) is_container: bool,
}

/// A record: 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Id of its dependency.
    pub(super) dependency: u64,
    /// Index of its task in [`Graph::tasks`].
    pub(super) task: u32,
    /// Destination of a message (rank), or index of a part's collective.
    pub(super) other: u32,
    /// The next record of the task; [`NONE`]: none.
    pub(super) next: u32,
    /// The two low bits of `dep`, and the flags below.
    pub(super) flags: u16,
}

/// Mask of the kind of [`Node::dependency`].
pub(super) const DEPENDENCY: u16 = 3;
/// A part of a collective.
pub(super) const PART: u16 = 4;
/// A local mark.
pub(super) const MARK: u16 = 8;
/// Marked as awaited.
pub(super) const AWAITED: u16 = 16;
/// A record waits for its reception.
pub(super) const RECEIVED: u16 = 32;
/// The dependency is invalid (a problem was reported).
pub(super) const BROKEN: u16 = 64;
/// Reached by the check of dependencies.
pub(super) const STARTED: u16 = 128;
/// A task waits for its start.
pub(super) const WAITED: u16 = 256;
/// A part of a collective that other parts may depend on: it sends data, or is a barrier's.
pub(super) const GIVES: u16 = 512;

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) rank: Rank,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) computing: Picos,
}

/// A collective operation.
#[derive(Debug)]
pub(super) struct Collective {
    pub(super) id: u64,
    /// Index of its communicator; [`NONE`]: unknown.
    pub(super) comm: u32,
    /// Index of the call on the communicator.
    pub(super) position: u32,
    /// Node of its first line.
    pub(super) first: u32,
    /// Number of lines.
    pub(super) parts: u32,
    /// Number of lines with [`GIVES`], and of those that the check of dependencies has reached.
    pub(super) givers: u32,
    pub(super) arrived: u32,
    /// Index of the root's task in [`Graph::tasks`]; [`NONE`]: no root.
    pub(super) root: u32,
    pub(super) op: OpCode,
    pub(super) flow: Flow,
    /// The members disagree (a problem was reported), so the collective implies no order.
    pub(super) broken: bool,
}

/// Whose data a member needs, with any algorithm, before its part of a collective can complete. A member that receives
/// nothing needs no data, except in a barrier; a member that sends nothing is needed by none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// All members need the data of all members.
    All,
    /// All members need the data of the root.
    FromRoot,
    /// The root needs the data of all members.
    ToRoot,
    /// Unknown operation: no data.
    Own,
}

impl Flow {
    pub(super) fn of(operation: Option<Operation>) -> Self {
        match (operation, operation.and_then(Operation::root)) {
            (None, _) => Self::Own,
            // All need the data of communicator rank 0, some also that of others.
            (Some(Operation::Scan | Operation::Exscan), _) | (_, Some(Root::Sends)) => Self::FromRoot,
            (_, Some(Root::Receives)) => Self::ToRoot,
            (Some(_), None) => Self::All,
        }
    }
}

impl Graph {
    /// The line of a node.
    pub(super) fn line(&self, node: u32) -> u64 {
        let after = self.lines.partition_point(|&(first, _)| first <= node);
        let (first, line) = self.lines[after - 1];
        line + u64::from(node - first)
    }

    /// The place of a node: of a container, found by a walk along the records of its task.
    pub(super) fn place(&self, node: u32) -> Place {
        let task = &self.tasks[self.nodes[node as usize].task as usize];
        let mut records = std::iter::successors(Some(task.first), |&at| Some(self.nodes[at as usize].next));
        let mut record = || records.position(|at| at == node).unwrap_or(0) as u64;
        let record = self.is_container.then(|| RecordPlace { task: task.rank.0, record: record() });
        Place { line: self.line(node), record }
    }

    /// The place of a node with its task, which a record has.
    pub(super) fn place_with_task(&self, node: u32) -> String {
        let place = self.place(node);
        match place.record {
            Some(record) => record.to_string(),
            None => format!("{place} (task {})", self.rank(node)),
        }
    }

    /// The rank of a node's task.
    pub(super) fn rank(&self, node: u32) -> Rank {
        self.tasks[self.nodes[node as usize].task as usize].rank
    }

    /// What is wrong with the dependency of the record at `index`. Notes on the message that the record waits for that it is
    /// received.
    pub(super) fn resolve(&mut self, index: usize) -> Option<(Kind, String)> {
        let Node { dependency, task, flags, .. } = self.nodes[index];
        let rank = self.tasks[task as usize].rank;
        let unknown = |what| {
            let text = format!("waits for {what}{dependency}, which does not exist");
            Some((Kind::UnknownDependency, text))
        };
        let wrong = |text| Some((Kind::WrongDependency, format!("task {rank} waits for {text}")));
        if flags & BROKEN != 0 || flags & DEPENDENCY == 0 {
            return None;
        }
        if flags & DEPENDENCY == 3 {
            let Some(number) = self.collective_ids.get(dependency) else { return unknown("G") };
            let collective = &self.collectives[number as usize];
            if collective.comm == NONE
                || collective.broken
                || self.communicators.get(collective.comm).member(rank).is_some()
            {
                return None;
            }
            return wrong(format!("G{dependency}, of which it is not a member"));
        }
        let Some(other) = self.ids.get(dependency) else { return unknown("record ") };
        let target = &mut self.nodes[other as usize];
        if flags & DEPENDENCY == 1 {
            if target.task == task {
                return None;
            }
            let other = self.tasks[target.task as usize].rank;
            return wrong(format!("its send {dependency}, which is one of task {other}"));
        }
        if target.flags & MARK != 0 {
            return wrong(format!("the reception of {dependency}, a local mark"));
        }
        if target.other != rank.0 {
            let dst = target.other;
            return wrong(format!("the reception of message {dependency}, which goes to task {dst}"));
        }
        target.flags |= RECEIVED;
        if target.flags & AWAITED != 0 {
            return None;
        }
        let text = format!("message {dependency}, which is not marked as awaited (dep without +4)");
        Some((Kind::NotAwaited, format!("task {rank} waits for {text}")))
    }

    /// Adds a record at `line` of `rank`; returns whether it is the first of its task.
    pub(super) fn push(&mut self, line: u64, rank: Rank, mut node: Node) -> bool {
        let index = self.nodes.len() as u32;
        let follows = self.lines.last().is_some_and(|&(first, at)| at + u64::from(index - first) == line);
        if !follows {
            self.lines.push((index, line));
        }
        let slot = self.task_of_rank.get(rank.0.into());
        node.task = slot.unwrap_or(self.tasks.len() as u32);
        self.nodes.push(node);
        match slot {
            Some(slot) => {
                let task = &mut self.tasks[slot as usize];
                self.nodes[task.last as usize].next = index;
                task.last = index;
            }
            None => {
                self.task_of_rank.insert(rank.0.into(), node.task);
                self.tasks.push(Task { rank, first: index, last: index, computing: Picos::ZERO });
            }
        }
        slot.is_none()
    }
}

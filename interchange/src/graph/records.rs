//! The records of a graph whose operations are in one order.
//!
//! Computing becomes the time of the one operation that requires it and follows it, else of a local mark. A receive is a mark where it
//! is posted; what requires it waits for the message. A record has one dependency, so all others stand in marks of time 0 in front of
//! it. A dependency that a record before has is left out, because each record of a task starts after the one before.
//!
//! A rank ends when all its operations have ended: each task has a last mark, which waits for the receives and collectives that nothing
//! requires.

use super::model::{Act, Graph, NONE, Neighbours};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::{Dependency, LocalCollective, Message, WriteError};
use vef_format::units::{Bytes, Ticks};

/// Gets the records of a graph, each behind those on which it depends.
pub(super) trait Sink {
    /// Gets a message or a mark; `tag` is that of a message.
    fn message(&mut self, message: &Message, tag: Option<u32>) -> Result<(), WriteError>;
    /// Gets a rank's part of a collective.
    fn collective(&mut self, part: &LocalCollective) -> Result<(), WriteError>;
}

/// A graph, its order and its pairs.
pub(super) struct Ordered<'g> {
    pub(super) graph: &'g Graph,
    pub(super) order: &'g [u32],
    pub(super) partner: &'g [u32],
    /// Operations that are no part of the trace, by node.
    pub(super) dropped: &'g [bool],
    before: Neighbours,
    after: Neighbours,
}

/// The state of a task.
#[derive(Clone, Debug, Default)]
struct Task {
    last_mark: Option<u64>,
    /// Whether its last record is that mark.
    ends_with_mark: bool,
    /// Computing that has no record yet.
    pending: Option<Pending>,
    /// Number of its collectives by group.
    called: Vec<(u32, u64)>,
}

#[derive(Clone, Debug)]
struct Pending {
    node: u32,
    time: u64,
    after: Vec<Dependency>,
}

impl<'g> Ordered<'g> {
    pub(super) fn new(graph: &'g Graph, order: &'g [u32], partner: &'g [u32], dropped: &'g [bool]) -> Self {
        let (before, after) = (
            Neighbours::before(graph.nodes.len(), &graph.requires),
            Neighbours::after(graph.nodes.len(), &graph.requires),
        );
        Self { graph, order, partner, dropped, before, after }
    }

    /// Passes all records to `sink`.
    pub(super) fn emit(&self, tasks: u32, codes: &OpCodes, sink: &mut dyn Sink) -> Result<(), WriteError> {
        let nodes = self.graph.nodes.len();
        let mut run = Emitter {
            all: self,
            codes,
            sink,
            tasks: vec![Task::default(); tasks as usize],
            waited: vec![false; nodes],
            ids: vec![0; nodes],
            first_of_group: self.first_of_groups(),
            next: 0,
        };
        for &node in self.order {
            run.node(node)?;
        }
        run.ends()
    }

    /// The id of the first collective of each group.
    fn first_of_groups(&self) -> Vec<u64> {
        let mut next = 0;
        let counted = self.collectives();
        counted
            .iter()
            .map(|count| {
                let first = next;
                next += count;
                first
            })
            .collect()
    }

    /// Number of collectives of each group.
    pub(super) fn collectives(&self) -> Vec<u64> {
        let mut parts = vec![0u64; self.graph.groups.len()];
        for node in &self.graph.nodes {
            if let Act::Collective { group, .. } = node.act {
                parts[group as usize] += 1;
            }
        }
        let sizes = self.graph.groups.iter().map(|group| group.members.len().max(1) as u64);
        parts.iter().zip(sizes).map(|(parts, size)| parts / size).collect()
    }
}

struct Emitter<'a, 'g> {
    all: &'a Ordered<'g>,
    codes: &'a OpCodes,
    sink: &'a mut dyn Sink,
    tasks: Vec<Task>,
    /// Whether a record of its task waits for a node.
    waited: Vec<bool>,
    /// Ids of messages, by the node of the send, and of collectives.
    ids: Vec<u64>,
    first_of_group: Vec<u64>,
    next: u64,
}

impl Emitter<'_, '_> {
    fn node(&mut self, node: u32) -> Result<(), WriteError> {
        if self.all.dropped[node as usize] {
            return Ok(());
        }
        let of = self.all.graph.nodes[node as usize];
        let task = of.task;
        let required = self.all.before.of(node);
        let mut pending = Pending { node, time: 0, after: Vec::new() };
        // Computing that only this operation requires, and that is all it requires, is its time.
        let folds = self.tasks[task as usize]
            .pending
            .as_ref()
            .is_some_and(|pending| required == [pending.node] && self.all.after.of(pending.node).len() == 1);
        if folds {
            pending = self.tasks[task as usize].pending.take().unwrap_or(pending);
        } else {
            self.flush(task)?;
            for &first in required {
                if !std::mem::replace(&mut self.waited[first as usize], true) {
                    pending.after.extend(self.dependency(first));
                }
            }
        }
        match of.act {
            Act::Compute { time } => {
                let time = pending.time.saturating_add(time);
                self.tasks[task as usize].pending = Some(Pending { node, time, ..pending });
                Ok(())
            }
            Act::Send { bytes, to, tag } => {
                let after = self.in_front(task, &mut pending)?;
                self.ids[node as usize] = self.next;
                let partner = self.all.partner[node as usize];
                // Its receive is required, at least by the end of its rank.
                let message = Message {
                    id: MessageId(self.next),
                    src: Rank(task),
                    dst: Rank(to),
                    bytes: Bytes(bytes),
                    awaited: partner != NONE,
                    after,
                    time: Ticks(pending.time),
                };
                self.tasks[task as usize].ends_with_mark = false;
                self.next += 1;
                self.sink.message(&message, Some(tag))
            }
            Act::Receive { .. } => self.mark(task, &mut pending),
            Act::Collective { group, operation, amounts } => {
                let after = self.in_front(task, &mut pending)?;
                self.tasks[task as usize].ends_with_mark = false;
                let id = self.first_of_group[group as usize] + self.called(task, group);
                self.ids[node as usize] = id;
                let part = LocalCollective {
                    id: CollectiveId(id),
                    comm: CommId(group),
                    op: self.codes.code(operation).unwrap_or(operation.default_code()),
                    task: Rank(task),
                    amounts,
                    after,
                    time: Ticks(pending.time),
                };
                self.sink.collective(&part)
            }
        }
    }

    /// The last marks of all tasks.
    fn ends(&mut self) -> Result<(), WriteError> {
        for task in 0..self.tasks.len() as u32 {
            self.flush(task)?;
        }
        let mut last = vec![Vec::new(); self.tasks.len()];
        for &node in self.all.order {
            let of = &self.all.graph.nodes[node as usize];
            let awaits = match of.act {
                Act::Receive { .. } | Act::Collective { .. } => !self.all.dropped[node as usize],
                Act::Send { .. } | Act::Compute { .. } => false,
            };
            if awaits && self.all.after.of(node).is_empty() {
                last[of.task as usize].extend(self.dependency(node));
            }
        }
        for (task, after) in (0..).zip(last) {
            if after.is_empty() && self.tasks[task as usize].ends_with_mark {
                continue;
            }
            self.mark(task, &mut Pending { node: NONE, time: 0, after })?;
        }
        Ok(())
    }

    /// The number of a task's collective of a group.
    fn called(&mut self, task: u32, group: u32) -> u64 {
        let called = &mut self.tasks[task as usize].called;
        match called.iter_mut().find(|(other, _)| *other == group) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                called.push((group, 0));
                0
            }
        }
    }

    /// What a record waits for that requires `first`, if the records before do not say it.
    fn dependency(&self, first: u32) -> Option<Dependency> {
        match self.all.graph.nodes[first as usize].act {
            // Its mark is before.
            Act::Compute { .. } => None,
            Act::Send { .. } if self.all.dropped[first as usize] => None,
            Act::Send { .. } => Some(Dependency::Sent(MessageId(self.ids[first as usize]))),
            Act::Receive { .. } => {
                let send = self.all.partner[first as usize];
                (send != NONE).then(|| Dependency::Received(MessageId(self.ids[send as usize])))
            }
            Act::Collective { .. } => Some(Dependency::Collective(CollectiveId(self.ids[first as usize]))),
        }
    }

    /// Writes a mark for computing that has no record yet.
    fn flush(&mut self, task: u32) -> Result<(), WriteError> {
        match self.tasks[task as usize].pending.take() {
            Some(mut pending) => self.mark(task, &mut pending),
            None => Ok(()),
        }
    }

    /// Writes marks for all dependencies but the last, which it returns.
    fn in_front(&mut self, task: u32, pending: &mut Pending) -> Result<Dependency, WriteError> {
        let last = pending.after.pop();
        for after in std::mem::take(&mut pending.after) {
            self.put_mark(task, after, 0)?;
        }
        let mark = self.tasks[task as usize].last_mark.map(|mark| Dependency::Sent(MessageId(mark)));
        Ok(last.or(mark).unwrap_or(Dependency::Start))
    }

    fn mark(&mut self, task: u32, pending: &mut Pending) -> Result<(), WriteError> {
        let after = self.in_front(task, pending)?;
        self.put_mark(task, after, pending.time)
    }

    fn put_mark(&mut self, task: u32, after: Dependency, time: u64) -> Result<(), WriteError> {
        let id = self.next;
        self.next += 1;
        (self.tasks[task as usize].last_mark, self.tasks[task as usize].ends_with_mark) = (Some(id), true);
        let mark = Message {
            id: MessageId(id),
            src: Rank(task),
            dst: Rank(task),
            bytes: Bytes(0),
            awaited: false,
            after,
            time: Ticks(time),
        };
        self.sink.message(&mark, None)
    }
}

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
use vef_format::prefetch::prefetch;
use vef_format::record::{Dependency, Line, LocalCollective, Message, WriteError};
use vef_format::units::{Bytes, Ticks};

/// How many nodes, or records, ahead memory is prefetched.
const AHEAD: usize = 16;

/// The records of a trace, each behind those on which it depends.
pub(super) struct Records<'g> {
    graph: &'g Graph,
    partner: &'g [u32],
    all: Vec<Record>,
    /// Ids of messages, by the node of the send, and of collectives.
    ids: Vec<u64>,
    /// Number of messages and marks, and of parts of collectives.
    pub(super) messages: u64,
    pub(super) parts: u64,
}

/// A record: what its operation has is there.
#[derive(Clone, Copy, Debug)]
struct Record {
    task: u32,
    /// The operation; [`NONE`]: a mark.
    node: u32,
    time: u64,
    after: Dependency,
}

/// A graph with all that is known of it.
pub(super) struct Ordered<'g> {
    pub(super) graph: &'g Graph,
    pub(super) order: &'g [u32],
    pub(super) partner: &'g [u32],
    /// Operations that are no part of the trace, by node.
    pub(super) dropped: &'g [bool],
    /// What each node requires, and what requires it.
    pub(super) before: &'g Neighbours,
    pub(super) after: &'g Neighbours,
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

/// What a record has in front of it: computing that ends with `node`, behind what it waits for.
#[derive(Clone, Copy, Debug)]
struct Pending {
    node: u32,
    time: u64,
    after: Option<Dependency>,
}

impl<'g> Ordered<'g> {
    /// The records of `tasks` tasks.
    pub(super) fn records(&self, tasks: u32) -> Records<'g> {
        let nodes = self.graph.nodes.len();
        let mut run = Emitter {
            all: self,
            tasks: vec![Task::default(); tasks as usize],
            waited: vec![false; nodes],
            first_of_group: self.first_of_groups(),
            made: Records {
                graph: self.graph,
                partner: self.partner,
                all: Vec::with_capacity(nodes),
                ids: vec![0; nodes],
                messages: 0,
                parts: 0,
            },
        };
        // The order goes from task to task, so what is known of the next nodes lies in many places.
        for (at, &node) in self.order.iter().enumerate() {
            if let Some(&next) = self.order.get(at + 2 * AHEAD) {
                prefetch(&self.graph.nodes, next as usize);
                prefetch(self.partner, next as usize);
                self.before.prefetch(next);
                self.after.prefetch(next);
            }
            if let Some(&next) = self.order.get(at + AHEAD) {
                self.before.prefetch_list(next);
                self.after.prefetch_list(next);
                prefetch(&run.made.ids, self.partner[next as usize] as usize);
            }
            run.node(node);
        }
        run.ends();
        run.made
    }

    /// The id of the first collective of each group.
    fn first_of_groups(&self) -> Vec<u64> {
        let mut next = 0;
        let counted = collectives(self.graph);
        counted
            .iter()
            .map(|count| {
                let first = next;
                next += count;
                first
            })
            .collect()
    }
}

/// Number of collectives of each group.
pub(super) fn collectives(graph: &Graph) -> Vec<u64> {
    let mut parts = vec![0u64; graph.groups.len()];
    for node in &graph.nodes {
        if let Act::Collective { call } = node.act {
            parts[graph.calls[call as usize].group as usize] += 1;
        }
    }
    let sizes = graph.groups.iter().map(|group| group.members.len().max(1) as u64);
    parts.iter().zip(sizes).map(|(parts, size)| parts / size).collect()
}

impl Records<'_> {
    /// Passes all records to `sink`, messages with their tags.
    pub(super) fn each(
        &self,
        codes: &OpCodes,
        mut sink: impl FnMut(&Line<'_>, Option<u32>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let mut next = 0;
        for (at, &Record { task, node, time, after }) in self.all.iter().enumerate() {
            if let Some(ahead) = self.all.get(at + AHEAD) {
                prefetch(&self.graph.nodes, ahead.node as usize);
                prefetch(self.partner, ahead.node as usize);
            }
            let (src, time) = (Rank(task), Ticks(time));
            let act = (node != NONE).then(|| self.graph.nodes[node as usize].act);
            let (dst, bytes, awaited, tag) = match act {
                Some(Act::Collective { call }) => {
                    let call = &self.graph.calls[call as usize];
                    let id = CollectiveId(self.ids[node as usize]);
                    let op = codes.code(call.operation).unwrap_or(call.operation.default_code());
                    let (comm, amounts) = (CommId(call.group), call.amounts);
                    let part = LocalCollective { id, comm, op, task: src, amounts, after, time };
                    sink(&Line::Collective(part), None)?;
                    continue;
                }
                // Its receive is required, at least by the end of its rank.
                Some(Act::Send { bytes, to, tag }) => {
                    (Rank(to), Bytes(bytes), self.partner[node as usize] != NONE, Some(tag))
                }
                Some(Act::Receive { .. } | Act::Compute { .. }) | None => (src, Bytes(0), false, None),
            };
            let message = Message { id: MessageId(next), src, dst, bytes, awaited, after, time };
            next += 1;
            sink(&Line::Message(message), tag)?;
        }
        Ok(())
    }
}

struct Emitter<'a, 'g> {
    all: &'a Ordered<'g>,
    tasks: Vec<Task>,
    /// Whether a record of its task waits for a node.
    waited: Vec<bool>,
    first_of_group: Vec<u64>,
    made: Records<'g>,
}

impl Emitter<'_, '_> {
    fn node(&mut self, node: u32) {
        if self.all.dropped[node as usize] {
            return;
        }
        let of = &self.all.graph.nodes[node as usize];
        let (act, task) = (of.act, of.task);
        // Computing that only this operation requires, and that is all it requires, is its time.
        let folds = self.tasks[task as usize].pending.filter(|pending| {
            self.all.before.of(node) == [pending.node] && self.all.after.of(pending.node).len() == 1
        });
        let Pending { time, after, .. } = match folds {
            Some(pending) => {
                self.tasks[task as usize].pending = None;
                pending
            }
            None => {
                self.flush(task);
                Pending { node, time: 0, after: self.in_front(task, node) }
            }
        };
        match act {
            Act::Compute { time: own } => {
                let time = time.saturating_add(own);
                self.tasks[task as usize].pending = Some(Pending { node, time, after });
            }
            Act::Send { .. } => {
                self.made.ids[node as usize] = self.made.messages;
                self.made.messages += 1;
                self.put(task, node, time, after);
            }
            Act::Receive { .. } => self.mark(task, time, after),
            Act::Collective { call } => {
                let group = self.all.graph.calls[call as usize].group;
                self.made.ids[node as usize] = self.first_of_group[group as usize] + self.called(task, group);
                self.made.parts += 1;
                self.put(task, node, time, after);
            }
        }
    }

    /// The last marks of all tasks.
    fn ends(&mut self) {
        for task in 0..self.tasks.len() as u32 {
            self.flush(task);
        }
        let mut last = vec![None; self.tasks.len()];
        for &node in self.all.order {
            let of = &self.all.graph.nodes[node as usize];
            let awaits = match of.act {
                Act::Receive { .. } | Act::Collective { .. } => !self.all.dropped[node as usize],
                Act::Send { .. } | Act::Compute { .. } => false,
            };
            // What requires it may have been dropped.
            if awaits && !self.waited[node as usize] {
                let task = of.task;
                self.another(task, &mut last[task as usize], node);
            }
        }
        for (task, after) in (0..).zip(last) {
            if after.is_some() || !self.tasks[task as usize].ends_with_mark {
                self.mark(task, 0, after);
            }
        }
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
            Act::Send { .. } => Some(Dependency::Sent(MessageId(self.made.ids[first as usize]))),
            Act::Receive { .. } => {
                let send = self.all.partner[first as usize];
                (send != NONE).then(|| Dependency::Received(MessageId(self.made.ids[send as usize])))
            }
            Act::Collective { .. } => {
                Some(Dependency::Collective(CollectiveId(self.made.ids[first as usize])))
            }
        }
    }

    /// Writes a mark for computing that has no record yet.
    fn flush(&mut self, task: u32) {
        if let Some(Pending { time, after, .. }) = self.tasks[task as usize].pending.take() {
            self.mark(task, time, after);
        }
    }

    /// Writes marks for all dependencies of a node but the last, which it returns.
    fn in_front(&mut self, task: u32, node: u32) -> Option<Dependency> {
        let (before, mut last) = (self.all.before, None);
        for &first in before.of(node) {
            if !std::mem::replace(&mut self.waited[first as usize], true) {
                self.another(task, &mut last, first);
            }
        }
        last
    }

    /// Makes `first` the dependency of the next record. A record has one: the dependency that was there gets a mark of its own.
    fn another(&mut self, task: u32, last: &mut Option<Dependency>, first: u32) {
        if let Some(dependency) = self.dependency(first)
            && let Some(before) = last.replace(dependency)
        {
            self.mark(task, 0, Some(before));
        }
    }

    fn mark(&mut self, task: u32, time: u64, after: Option<Dependency>) {
        let id = self.made.messages;
        self.made.messages += 1;
        self.put(task, NONE, time, after);
        let task = &mut self.tasks[task as usize];
        (task.last_mark, task.ends_with_mark) = (Some(id), true);
    }

    /// A record that waits for nothing else waits for the last mark.
    fn put(&mut self, task: u32, node: u32, time: u64, after: Option<Dependency>) {
        let of = &mut self.tasks[task as usize];
        of.ends_with_mark = false;
        let mark = of.last_mark.map(|mark| Dependency::Sent(MessageId(mark)));
        let after = after.or(mark).unwrap_or(Dependency::Start);
        self.made.all.push(Record { task, node, time, after });
    }
}

//! Checks records: counts, local errors, and the graph for the check of dependencies.

use super::communicators::{Communicators, Wrong};
use super::report::{Kind, Log, OperationTally, Place, RecordPlace, Tallies};
use crate::container::VERSION;
use crate::id_table::{IdTable, NONE};
use crate::ids::{CommId, Rank};
use crate::operation::{Amounts, OpCode, OpCodes, Operation, Root};
use crate::record::{Counts, Dependency, Header, Line, LocalCollective, Message, Version, WrongCount};
use crate::units::{Bytes, Count, Picos, Ticks};
use std::collections::{HashMap, HashSet};

/// Options of validation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The codes of collective operations.
    pub op_codes: OpCodes,
    /// Maximum number of problems kept with their text; all are counted.
    pub keep: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { op_codes: OpCodes::default(), keep: 20 }
    }
}

/// Validates a trace record by record; the lines of a task must come in its program order.
#[derive(Debug)]
pub struct Validator {
    header: Header,
    options: Options,
    tallies: Tallies,
    operations: HashMap<OpCode, OperationTally>,
    log: Log,
    graph: Graph,
    too_many: bool,
}

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
    lines: Vec<(u32, u64)>,
    /// Places are records, not lines.
    is_container: bool,
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
const MARK: u16 = 8;
/// Marked as awaited.
const AWAITED: u16 = 16;
/// A record waits for its reception.
const RECEIVED: u16 = 32;
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
    last: u32,
    computing: Picos,
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
    op: OpCode,
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
    fn of(operation: Option<Operation>) -> Self {
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
    fn resolve(&mut self, index: usize) -> Option<(Kind, String)> {
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
    fn push(&mut self, line: u64, rank: Rank, mut node: Node) -> bool {
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

impl Validator {
    /// Begins with the header of a trace.
    pub fn new(header: &Header, options: &Options) -> Self {
        Self {
            header: *header,
            log: Log::new(options.keep),
            options: options.clone(),
            tallies: Tallies { tasks: header.tasks.into(), ..Tallies::default() },
            operations: HashMap::new(),
            graph: Graph::default(),
            too_many: false,
        }
    }

    /// The records come from a container of this version.
    pub(super) fn is_container(&mut self, (major, minor): (u8, u16)) {
        self.graph.is_container = true;
        if minor > VERSION.1 {
            let text =
                format!("version {major}.{minor}: what it has beyond {major}.{} was passed by", VERSION.1);
            self.log.add(Kind::LaterVersion, || (1, text));
        }
    }

    /// Adds the record at line `number`.
    pub fn add(&mut self, number: u64, line: &Line<'_>) {
        if let Line::Communicator { id, members } = line {
            return self.communicator(number, *id, members);
        }
        if self.graph.nodes.len() >= NONE as usize {
            if !self.too_many {
                let text = "more than 2^32 - 1 records: dependencies are not checked".to_owned();
                self.log.add(Kind::TooMany, || (number, text));
            }
            self.too_many = true;
            return;
        }
        match line {
            Line::Message(message) => self.message(number, message),
            Line::Collective(part) => self.collective(number, part),
            Line::Communicator { .. } => {}
        }
    }

    fn communicator(&mut self, line: u64, id: CommId, members: &[Rank]) {
        match self.graph.communicators.add(id, members) {
            Ok(()) => {}
            Err(Wrong::DuplicateId) => {
                let text = || (line, format!("communicator {id} is there already"));
                self.log.add(Kind::DuplicateCommunicator, text);
            }
            Err(Wrong::DuplicateMember(task)) => {
                let text = || (line, format!("task {task} is in communicator {id} twice"));
                self.log.add(Kind::DuplicateMember, text);
            }
        }
        self.tallies.communicators += 1;
    }

    fn message(&mut self, line: u64, message: &Message) {
        let tallies = &mut self.tallies;
        let mut flags = 0;
        if message.is_mark() {
            tallies.marks += 1;
            flags |= MARK;
        } else {
            tallies.messages += 1;
            tallies.bytes = saturating(tallies.bytes, message.bytes);
            tallies.to_self += u64::from(message.src == message.dst);
            tallies.awaited += u64::from(message.awaited);
        }
        if message.awaited {
            flags |= AWAITED;
        }
        let index = self.graph.nodes.len() as u32;
        let other = self.graph.ids.insert(message.id.0, index);
        let on_itself =
            matches!(message.after, Dependency::Sent(id) | Dependency::Received(id) if id == message.id);
        if on_itself && other.is_none() {
            flags |= BROKEN;
        }
        self.record(line, message.src, message.dst.0, flags, message.after, message.time);
        let graph = &self.graph;
        if let Some(other) = other {
            self.log.add_with(Kind::DuplicateId, || {
                let other = graph.place(other);
                let text = format!("id {} is that of {other} already", message.id);
                (graph.place(index), text, vec![other.line])
            });
        } else if on_itself {
            let text = || format!("record {} waits for itself", message.id);
            self.log.add(Kind::SelfDependency, || (graph.place(index), text()));
        }
    }

    fn collective(&mut self, line: u64, part: &LocalCollective) {
        let operation = self.options.op_codes.operation(part.op);
        let graph = &mut self.graph;
        let index = graph.nodes.len() as u32;
        let mut flags = PART;
        if part.after == Dependency::Collective(part.id) {
            flags |= BROKEN;
        }
        let next = graph.collectives.len() as u32;
        let number = graph.collective_ids.insert(part.id.0, next).unwrap_or(next);
        let comm = graph.communicators.number(part.comm);
        let member = comm.and_then(|comm| graph.communicators.get(comm).member(part.task));
        let position = match (comm, member) {
            (Some(comm), Some(member)) => graph.communicators.get_mut(comm).call(member),
            _ => NONE,
        };
        if number == next {
            graph.collectives.push(Collective {
                id: part.id.0,
                comm: comm.unwrap_or(NONE),
                position,
                first: index,
                parts: 0,
                givers: 0,
                arrived: 0,
                root: NONE,
                op: part.op,
                flow: Flow::of(operation),
                broken: false,
            });
        }

        let LocalCollective { id, task, comm: name, op, .. } = *part;
        let collective = &mut graph.collectives[number as usize];
        let problem = if comm.is_none() {
            Some((Kind::UnknownCommunicator, format!("no line above describes communicator {name}")))
        } else if member.is_none() {
            Some((Kind::NotAMember, format!("task {task} does not belong to communicator {name}")))
        } else if collective.comm != comm.unwrap_or(NONE) {
            Some((Kind::Disagreement, format!("{id} is on another communicator than {name}")))
        } else if collective.op != op {
            Some((Kind::Disagreement, format!("{id} is operation {}, not {}", collective.op.0, op.0)))
        } else if collective.position != position && collective.position != NONE {
            let (mine, other) = (u64::from(position) + 1, u64::from(collective.position) + 1);
            Some((
                Kind::Disagreement,
                format!("{id} is call {mine} of task {task} on {name}, but call {other}"),
            ))
        } else {
            None
        };
        let syncs = operation == Some(Operation::Barrier);
        if syncs || part.amounts.send != Bytes::ZERO {
            flags |= GIVES;
            collective.givers += 1;
        }
        let obtains = match collective.flow {
            Flow::All => syncs || part.amounts.recv != Bytes::ZERO,
            Flow::FromRoot | Flow::ToRoot => part.amounts != Amounts::default(),
            Flow::Own => true,
        };
        collective.parts += 1;
        collective.broken |= problem.is_some();
        let first = collective.first;
        self.record(line, part.task, number, flags, part.after, part.time);
        if !obtains {
            let task = self.graph.nodes[index as usize].task;
            self.graph.takes_nothing.insert((number, task));
        }

        let graph = &mut self.graph;
        if flags & BROKEN != 0 {
            self.log.add(Kind::SelfDependency, || (graph.place(index), format!("{id} waits for itself")));
        }
        if let Some((kind, text)) = problem {
            self.log.add_with(kind, || {
                let other = graph.place(first);
                let text = match kind {
                    Kind::Disagreement => format!("{text} of task {} at {other}", graph.rank(first)),
                    _ => text,
                };
                (graph.place(index), text, vec![other.line])
            });
        }
        let collective = &mut graph.collectives[number as usize];
        let is_root = match collective.flow {
            Flow::FromRoot => part.amounts.send != Bytes::ZERO,
            Flow::ToRoot => part.amounts.recv != Bytes::ZERO,
            Flow::All | Flow::Own => false,
        };
        if is_root && operation.is_some_and(Operation::is_rooted) {
            let slot = graph.nodes[index as usize].task;
            let before = std::mem::replace(&mut collective.root, slot);
            if before != NONE && before != slot {
                collective.broken = true;
                let other = graph.tasks[before as usize].rank;
                let text = || format!("{id} has two roots by its sizes: tasks {other} and {task}");
                self.log.add(Kind::Disagreement, || (graph.place(index), text()));
            }
        }

        if operation.is_none() {
            let text = match self.options.op_codes.name(op) {
                Some(name) => format!("operation code {} ({name}) is not one that this program knows", op.0),
                None => format!("operation code {} is not in the table", op.0),
            };
            self.log.add(Kind::UnknownOperation, || (self.graph.place(index), text));
        }
        let tally = self.operations.entry(op).or_default();
        tally.operations += u64::from(number == next);
        tally.lines += 1;
        tally.send = saturating(tally.send, part.amounts.send);
        tally.recv = saturating(tally.recv, part.amounts.recv);
        self.tallies.local_collectives += 1;
    }

    /// Common part of messages and parts of collectives.
    fn record(&mut self, line: u64, rank: Rank, other: u32, flags: u16, after: Dependency, time: Ticks) {
        self.tallies.dependencies[usize::from(after.code())] += 1;
        let dependency = match after {
            Dependency::Start => 0,
            Dependency::Sent(id) | Dependency::Received(id) => id.0,
            Dependency::Collective(id) => id.0,
        };
        let node = Node { dependency, task: 0, other, next: NONE, flags: flags | u16::from(after.code()) };
        let index = self.graph.nodes.len() as u32;
        let first = self.graph.push(line, rank, node);
        // A later record without dependency is the first of a thread.
        if first && after != Dependency::Start {
            let text = || format!("the first record of task {rank} waits for something");
            self.log.add(Kind::Start, || (self.graph.place(index), text()));
        }
        let slot = self.graph.nodes[index as usize].task as usize;
        let task = &mut self.graph.tasks[slot];
        match time.to_picos(self.header.clock).and_then(|time| task.computing.checked_add(time)) {
            Some(sum) => task.computing = sum,
            None => {
                let text = || format!("the computing time of task {rank} exceeds 2^64 ps");
                self.log.add(Kind::TimeRange, || (self.graph.place(index), text()));
            }
        }
    }

    /// Completes the check of records; returns the graph unless there are too many records.
    pub(super) fn end(mut self) -> (Log, Tallies, Option<Graph>) {
        self.compare_counts();
        for (&code, &tally) in &self.operations {
            let operation = self.options.op_codes.operation(code);
            let name = operation.map_or(format!("code {}", code.0), |operation| operation.name().to_owned());
            self.tallies.operations.insert(name, tally);
        }
        self.tallies.computing = self.graph.tasks.iter().map(|task| task.computing).max().unwrap_or_default();
        if self.too_many {
            return (self.log, self.tallies, None);
        }
        self.resolve();
        self.members();
        self.ends();
        (self.log, self.tallies, Some(self.graph))
    }

    fn compare_counts(&mut self) {
        let (header, tallies) = (&self.header, &mut self.tallies);
        tallies.collectives = self.graph.collective_ids.len();
        let found = Counts {
            messages: tallies.messages + tallies.marks,
            communicators: tallies.communicators,
            collectives: tallies.collectives,
            local_collectives: tallies.local_collectives,
        };
        for WrongCount { kind, promised, found } in header.wrong_counts(&found) {
            let text = || format!("the header promises {promised} {kind}, the file has {found}");
            self.log.add(Kind::HeaderCount, || (1, text()));
        }
        if header.version == Version::V2 && header.received != tallies.awaited {
            let (promised, found) = (header.received, tallies.awaited);
            let text = || {
                format!("the header promises {promised} messages that are waited for, the file has {found}")
            };
            self.log.add(Kind::HeaderCount, || (1, text()));
        }
    }

    /// Checks every dependency against its target.
    fn resolve(&mut self) {
        let graph = &mut self.graph;
        for index in 0..graph.nodes.len() {
            if let Some((kind, text)) = graph.resolve(index) {
                if kind != Kind::NotAwaited {
                    graph.nodes[index].flags |= BROKEN;
                }
                self.log.add(kind, || (graph.place(index as u32), text));
            }
        }
        for (index, node) in (0..).zip(graph.nodes.iter()) {
            if node.flags & (AWAITED | RECEIVED) == AWAITED {
                let text = || {
                    "the message is marked as awaited (dep with +4), but no record waits for it".to_owned()
                };
                self.log.add(Kind::AwaitedByNobody, || (graph.place(index), text()));
            }
        }
    }

    /// Checks the lines of every collective against its communicator.
    fn members(&mut self) {
        let graph = &mut self.graph;
        for number in 0..graph.collectives.len() {
            let Collective { id, comm, first, parts, broken, position, flow, root, .. } =
                graph.collectives[number];
            if broken || comm == NONE {
                continue;
            }
            let communicator = graph.communicators.get(comm);
            if parts < communicator.size() {
                self.log.add(Kind::MissingMember, || {
                    let of = format!("of {} members of {}", communicator.size(), communicator.id);
                    let absent = communicator.behind(position);
                    let who = absent.map_or(String::new(), |task| format!(": task {task} makes fewer calls"));
                    (graph.place(first), format!("G{id} has lines of {parts} {of}{who}"))
                });
            }
            if root == NONE && matches!(flow, Flow::FromRoot | Flow::ToRoot) {
                let first = communicator.first;
                graph.collectives[number].root = graph.task_of_rank.get(first.0.into()).unwrap_or(NONE);
            }
        }
    }

    /// Reports truncated tasks.
    fn ends(&mut self) {
        let graph = &self.graph;
        for task in &graph.tasks {
            if graph.nodes[task.last as usize].flags & MARK == 0 {
                let rank = task.rank;
                let text = || format!("task {rank} ends here, without the local mark of MPI_Finalize");
                self.log.add(Kind::EndsEarly, || (graph.place(task.last), text()));
            }
        }
        let silent = u64::from(self.header.tasks) - graph.tasks.len() as u64;
        if silent > 0 {
            let absent = (0..self.header.tasks).find(|&rank| graph.task_of_rank.get(rank.into()).is_none());
            let first = absent.map_or(String::new(), |rank| format!("; the first is task {rank}"));
            let text = format!("{} without any record{first}", Count(silent, "task"));
            self.log.add(Kind::EndsEarly, || (1, text));
        }
    }
}

fn saturating(sum: Bytes, more: Bytes) -> Bytes {
    Bytes(sum.0.saturating_add(more.0))
}

//! Checks records: counts, local errors, and builds the graph for the check of dependencies.

use super::communicators::Wrong;
use super::graph::{AWAITED, BROKEN, Collective, Flow, GIVES, Graph, MARK, Node, PART, RECEIVED};
use super::report::{Kind, Log, OperationTally, Tallies};
use crate::container::VERSION;
use crate::id_table::NONE;
use crate::ids::{CommId, Rank};
use crate::operation::{Amounts, OpCode, OpCodes, Operation};
use crate::record::{Counts, Dependency, Header, Line, LocalCollective, Message, Version, WrongCount};
use crate::units::{Bytes, Count, Ticks};
use std::collections::HashMap;

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

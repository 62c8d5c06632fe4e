//! A trace in memory, by task, with what all tasks together say of each message and collective. Ids have become places in lists.

use super::error::{ExportError, ExportProblem};
use hashbrown::{HashMap, HashSet};
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use vef_format::container::{Note, Reader, Section};
use vef_format::id_table::IdTable;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::{Amounts, OpCodes, Operation};
use vef_format::record::{Dependency, Header, Line};
use vef_format::trace::Trace;
use vef_format::units::Ticks;
use vef_format::validate;

/// A trace in memory.
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    /// The records of each task, in program order.
    pub(crate) tasks: Vec<Vec<Record>>,
    pub(crate) members: HashMap<CommId, Vec<Rank>>,
    /// The communicators of all tasks in their order.
    worlds: HashSet<CommId>,
    /// All messages but marks.
    pub(crate) messages: Vec<Message>,
    /// By task: the messages that it receives without waiting for them, in the order of their senders.
    pub(crate) unawaited: Vec<Vec<MessageIndex>>,
    pub(crate) collectives: Vec<Collective>,
    /// Counts of vector collectives, by task and number of its record.
    pub(crate) counts: HashMap<(u32, u64), [Vec<u64>; 2]>,
}

/// A place in the list of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageIndex(pub(crate) u32);

/// A place in the list of collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CollectiveIndex(pub(crate) u32);

/// A record of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// What it waits for.
    pub(crate) after: After,
    pub(crate) time: Ticks,
    pub(crate) what: What,
}

/// What a record waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The record before, or a mark.
    Nothing,
    /// A send of its task.
    Sent(MessageIndex),
    /// A message to its task.
    Received(MessageIndex),
    Collective(CollectiveIndex),
}

/// What a record does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Mark,
    Send(MessageIndex),
    /// A part of a collective, with the amounts of its task.
    Collective(CollectiveIndex, Amounts),
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) src: Rank,
    pub(crate) dst: Rank,
    pub(crate) bytes: u64,
    /// Its number among those from `src` to `dst`.
    pub(crate) number: u32,
    /// Whether a record of the receiver waits for it.
    awaited: bool,
}

/// A collective.
#[derive(Clone, Debug)]
pub(crate) struct Collective {
    pub(crate) id: CollectiveId,
    pub(crate) comm: CommId,
    pub(crate) operation: Operation,
    /// The amounts of each member.
    pub(crate) parts: Vec<(Rank, Amounts)>,
    /// Whether these are the same.
    pub(crate) has_equal_parts: bool,
    pub(crate) root: Option<Rank>,
}

/// Reads a trace line by line.
struct Loader {
    loaded: Loaded,
    codes: OpCodes,
    messages: IdTable,
    collectives: IdTable,
    /// Numbers of messages, by source and destination.
    numbers: HashMap<(Rank, Rank), u32>,
    /// What each record waits for, by task.
    after: Vec<Vec<Dependency>>,
}

impl Loaded {
    /// Reads a trace, and validates it at the same time. `codes` are those of a trace in text.
    pub(crate) fn valid(path: &Path, codes: &OpCodes) -> Result<Self, ExportError> {
        let options = validate::Options { op_codes: codes.clone(), keep: 1 };
        let (loaded, report) = thread::scope(|scope| {
            let report = scope.spawn(|| validate::validate(path, &options));
            let loaded = Self::read(path, codes);
            (loaded, report.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        match ExportError::invalid(path, &report?) {
            Some(error) => Err(error),
            None => loaded,
        }
    }

    /// Reads a trace; of one that is invalid, anything.
    fn read(path: &Path, codes: &OpCodes) -> Result<Self, ExportError> {
        let trace = Trace::open(path)?;
        let header = *trace.header();
        let length = fs::metadata(path).map_or(0, |file| file.len());
        if header.promises_too_many_tasks(length) {
            return Err(ExportProblem::Tasks(header.tasks).of_file(path));
        }
        let loaded = Self {
            path: path.to_path_buf(),
            header,
            tasks: Vec::new(),
            members: HashMap::new(),
            worlds: HashSet::new(),
            messages: Vec::new(),
            unawaited: Vec::new(),
            collectives: Vec::new(),
            counts: HashMap::new(),
        };
        let mut loader = Loader {
            loaded,
            codes: codes.clone(),
            messages: IdTable::default(),
            collectives: IdTable::default(),
            numbers: HashMap::new(),
            after: Vec::new(),
        };
        let mut start_up = Vec::new();
        match trace {
            Trace::Text(_) => trace.each(|_, line| {
                loader.line(&line);
                Ok::<(), ExportError>(())
            })?,
            Trace::Container(reader) => {
                start_up = reader.spans()?.unwrap_or_default();
                loader.container(&reader)?;
            }
        }
        let mut loaded = loader.finish();
        for (span, records) in start_up.iter().zip(&mut loaded.tasks) {
            // Start-up is left out, as in a replay.
            if let Some(first) = records.first_mut() {
                first.time = span.first(first.time, false);
            }
        }
        Ok(loaded)
    }

    /// Whether a communicator is of all tasks in their order.
    pub(crate) fn is_world(&self, comm: CommId) -> bool {
        self.worlds.contains(&comm)
    }

    /// The first communicator of all tasks in their order.
    pub(crate) fn world(&self) -> Option<CommId> {
        self.worlds.iter().copied().min()
    }

    /// The rank of a task in a communicator.
    pub(crate) fn rank_in(&self, comm: CommId, task: Rank) -> Option<u32> {
        if self.is_world(comm) {
            return Some(task.0).filter(|&rank| rank < self.header.tasks);
        }
        let place = self.members.get(&comm)?.iter().position(|&member| member == task)?;
        Some(place as u32)
    }

    /// A message.
    pub(crate) fn message(&self, index: MessageIndex) -> &Message {
        &self.messages[index.0 as usize]
    }

    /// A collective.
    pub(crate) fn collective(&self, index: CollectiveIndex) -> &Collective {
        &self.collectives[index.0 as usize]
    }

    /// Nanoseconds of a time, with the remainder that the task carries to its next time.
    pub(crate) fn nanoseconds(&self, time: Ticks, carried: &mut u64) -> Option<u64> {
        let picos = time.0.checked_mul(self.header.clock.0)?.checked_add(*carried)?;
        *carried = picos % 1000;
        Some(picos / 1000)
    }
}

impl Loader {
    /// Reads a container task by task, so that the messages of a sender are side by side.
    fn container(&mut self, reader: &Reader) -> Result<(), ExportError> {
        self.codes = reader.about().op_codes.clone();
        for (task, mut notes) in reader.notes_of_all(Section::Counts)? {
            while let Some((record, note)) = notes.next(reader)? {
                if let Note::Counts { sent, received } = note {
                    self.loaded.counts.insert((task.0, record), [sent.to_vec(), received.to_vec()]);
                }
            }
        }
        let mut roots = reader.notes(Section::Roots, Rank(0))?;
        while let Some((id, note)) = roots.next(reader)? {
            if let Note::Root(root) = note {
                let number = self.collective(CollectiveId(id));
                self.loaded.collectives[number].root = Some(root);
            }
        }
        let mut communicators = reader.communicators();
        while let Some((id, members)) = communicators.next()? {
            self.line(&Line::Communicator { id, members });
        }
        for task in reader.tasks() {
            let mut records = reader.task(task);
            while let Some(line) = records.next()? {
                self.line(&line);
            }
        }
        Ok(())
    }

    /// The place of a collective, which is added if it is new.
    fn collective(&mut self, id: CollectiveId) -> usize {
        let all = &mut self.loaded.collectives;
        match self.collectives.insert(id.0, all.len() as u32) {
            Some(number) => number as usize,
            None => {
                let (comm, operation) = (CommId(0), Operation::Barrier);
                let (parts, has_equal_parts, root) = (Vec::new(), true, None);
                all.push(Collective { id, comm, operation, parts, has_equal_parts, root });
                all.len() - 1
            }
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        let (task, what, time) = match *line {
            Line::Communicator { id, members } => {
                let is_its_number = |(number, member): (u32, &Rank)| member.0 == number;
                let all = self.loaded.header.tasks as usize;
                if members.len() == all && (0..).zip(members).all(is_its_number) {
                    self.loaded.worlds.insert(id);
                }
                self.loaded.members.insert(id, members.to_vec());
                return;
            }
            Line::Message(message) if message.is_mark() => (message.src, What::Mark, message.time),
            Line::Message(message) => {
                let (src, dst, bytes) = (message.src, message.dst, message.bytes.0);
                let index = self.loaded.messages.len() as u32;
                self.messages.insert(message.id.0, index);
                let number = self.numbers.entry((src, dst)).or_default();
                self.loaded.messages.push(Message { src, dst, bytes, number: *number, awaited: false });
                *number = number.wrapping_add(1);
                (src, What::Send(MessageIndex(index)), message.time)
            }
            Line::Collective(part) => {
                let Some(operation) = self.codes.operation(part.op) else { return };
                let number = self.collective(part.id);
                let all = &mut self.loaded.collectives[number];
                (all.comm, all.operation) = (part.comm, operation);
                if all.root.is_none() && operation.is_rooted() && operation.is_root(part.amounts) {
                    all.root = Some(part.task);
                }
                all.has_equal_parts &= all.parts.first().is_none_or(|&(_, first)| first == part.amounts);
                all.parts.push((part.task, part.amounts));
                (part.task, What::Collective(CollectiveIndex(number as u32), part.amounts), part.time)
            }
        };
        // Readers refuse tasks beyond the header's.
        if task.index() >= self.after.len() {
            self.after.resize(task.index() + 1, Vec::new());
            self.loaded.tasks.resize(task.index() + 1, Vec::new());
        }
        self.after[task.index()].push(line.after());
        self.loaded.tasks[task.index()].push(Record { after: After::Nothing, time, what });
    }

    /// Finds what each record waits for, now that all messages are known.
    fn finish(self) -> Loaded {
        let Self { mut loaded, messages, collectives, after, .. } = self;
        for (task, (records, after)) in (0..).zip(loaded.tasks.iter_mut().zip(after)) {
            for (record, after) in records.iter_mut().zip(after) {
                record.after = match after {
                    Dependency::Start => After::Nothing,
                    // A mark has ended when the next record begins.
                    Dependency::Sent(id) => {
                        messages.get(id.0).map_or(After::Nothing, |index| After::Sent(MessageIndex(index)))
                    }
                    Dependency::Received(id) => {
                        let index = messages.get(id.0);
                        let message = index.and_then(|index| loaded.messages.get_mut(index as usize));
                        match (index, message) {
                            (Some(index), Some(message)) if message.dst == Rank(task) => {
                                message.awaited = true;
                                After::Received(MessageIndex(index))
                            }
                            _ => After::Nothing,
                        }
                    }
                    Dependency::Collective(id) => collectives
                        .get(id.0)
                        .map_or(After::Nothing, |index| After::Collective(CollectiveIndex(index))),
                };
            }
        }
        let tasks = loaded.header.tasks as usize;
        loaded.tasks.resize(tasks, Vec::new());
        loaded.unawaited.resize(tasks, Vec::new());
        for (index, message) in (0..).zip(&loaded.messages) {
            if !message.awaited
                && let Some(list) = loaded.unawaited.get_mut(message.dst.index())
            {
                list.push(MessageIndex(index));
            }
        }
        for list in &mut loaded.unawaited {
            // The messages of each sender are in its order.
            list.sort_by_key(|index| loaded.messages[index.0 as usize].src);
        }
        loaded
    }
}

//! A trace in memory, by task, with what all tasks together say of each message and collective.

use super::error::{ExportError, ExportProblem};
use hashbrown::HashMap;
use std::path::{Path, PathBuf};
use vef_format::container::{Note, Section};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, OpCodes, Operation};
use vef_format::record::{Dependency, Header, Line};
use vef_format::trace::Trace;
use vef_format::units::Ticks;

/// A trace in memory.
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    pub(crate) codes: OpCodes,
    /// The records of each task, in program order.
    pub(crate) tasks: Vec<Vec<Line<'static>>>,
    pub(crate) members: HashMap<CommId, Vec<Rank>>,
    /// All messages but marks.
    pub(crate) messages: HashMap<MessageId, Message>,
    /// By task: the messages that it receives without waiting for them, in the order of their senders.
    pub(crate) unawaited: Vec<Vec<MessageId>>,
    pub(crate) collectives: HashMap<CollectiveId, Collective>,
    /// Counts of vector collectives, by task and number of its record.
    pub(crate) counts: HashMap<(u32, u64), [Vec<u64>; 2]>,
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
    pub(crate) awaited: bool,
}

/// A collective.
#[derive(Clone, Debug)]
pub(crate) struct Collective {
    pub(crate) comm: CommId,
    pub(crate) operation: Operation,
    /// The amounts of each member.
    pub(crate) parts: Vec<(Rank, Amounts)>,
    pub(crate) root: Option<Rank>,
}

impl Loaded {
    /// Reads a trace. `codes` are those of a trace in text.
    pub(crate) fn read(path: &Path, codes: &OpCodes) -> Result<Self, ExportError> {
        let trace = Trace::open(path)?;
        let header = *trace.header();
        let mut loaded = Self {
            path: path.to_path_buf(),
            header,
            codes: codes.clone(),
            tasks: Vec::new(),
            members: HashMap::new(),
            messages: HashMap::new(),
            unawaited: Vec::new(),
            collectives: HashMap::new(),
            counts: HashMap::new(),
        };
        let mut start_up = Vec::new();
        if let Trace::Container(reader) = &trace {
            loaded.codes = reader.about().op_codes.clone();
            start_up = reader.spans()?.unwrap_or_default();
            for (task, mut notes) in reader.notes_of_all(Section::Counts)? {
                while let Some((record, note)) = notes.next(reader)? {
                    if let Note::Counts { sent, received } = note {
                        loaded.counts.insert((task.0, record), [sent.to_vec(), received.to_vec()]);
                    }
                }
            }
            let mut roots = reader.notes(Section::Roots, Rank(0))?;
            while let Some((id, note)) = roots.next(reader)? {
                if let Note::Root(root) = note {
                    let collective = Collective {
                        comm: CommId(0),
                        operation: Operation::Barrier,
                        parts: Vec::new(),
                        root: Some(root),
                    };
                    loaded.collectives.insert(CollectiveId(id), collective);
                }
            }
        }
        let mut numbers: HashMap<(Rank, Rank), u32> = HashMap::new();
        trace.each(|_, line| loaded.line(&line, &mut numbers))?;
        for (span, records) in start_up.iter().zip(&mut loaded.tasks) {
            // Start-up is left out, as in a replay.
            match records.first_mut() {
                Some(Line::Message(message)) => message.time = span.first(message.time, false),
                Some(Line::Collective(part)) => part.time = span.first(part.time, false),
                Some(Line::Communicator { .. }) | None => {}
            }
        }
        loaded.tasks.resize(header.tasks as usize, Vec::new());
        loaded.unawaited.resize(header.tasks as usize, Vec::new());
        for record in loaded.tasks.iter().flatten() {
            if let Dependency::Received(id) = record.after()
                && let Some(message) = loaded.messages.get_mut(&id)
            {
                message.awaited = true;
            }
        }
        for record in loaded.tasks.iter().flatten() {
            if let Line::Message(message) = record
                && loaded.messages.get(&message.id).is_some_and(|message| !message.awaited)
                && let Some(list) = loaded.unawaited.get_mut(message.dst.index())
            {
                list.push(message.id);
            }
        }
        Ok(loaded)
    }

    fn line(&mut self, line: &Line<'_>, numbers: &mut HashMap<(Rank, Rank), u32>) -> Result<(), ExportError> {
        let record = match *line {
            Line::Communicator { id, members } => {
                self.members.insert(id, members.to_vec());
                return Ok(());
            }
            Line::Message(message) => {
                if !message.is_mark() {
                    let number = numbers.entry((message.src, message.dst)).or_default();
                    let of = Message {
                        src: message.src,
                        dst: message.dst,
                        bytes: message.bytes.0,
                        number: *number,
                        awaited: false,
                    };
                    *number = number.wrapping_add(1);
                    if self.messages.insert(message.id, of).is_some() {
                        return Err(ExportProblem::Twice(message.id).of_file(&self.path));
                    }
                }
                Line::Message(message)
            }
            Line::Collective(part) => {
                let operation = self.codes.operation(part.op);
                let unknown = || ExportProblem::Code { code: part.op, id: part.id }.of_file(&self.path);
                let operation = operation.ok_or_else(unknown)?;
                let new = || Collective { comm: part.comm, operation, parts: Vec::new(), root: None };
                let all = self.collectives.entry(part.id).or_insert_with(new);
                (all.comm, all.operation) = (part.comm, operation);
                if all.root.is_none() && operation.is_rooted() && operation.is_root(part.amounts) {
                    all.root = Some(part.task);
                }
                all.parts.push((part.task, part.amounts));
                Line::Collective(part)
            }
        };
        // Readers refuse tasks beyond the header's.
        let task = record.task().map_or(0, Rank::index);
        if task >= self.tasks.len() {
            self.tasks.resize(task + 1, Vec::new());
        }
        self.tasks[task].push(record);
        Ok(())
    }

    /// Whether a communicator is of all tasks in their order.
    pub(crate) fn is_world(&self, comm: CommId) -> bool {
        self.members.get(&comm).is_some_and(|members| {
            members.len() == self.tasks.len() && (0..).zip(members).all(|(rank, member)| member.0 == rank)
        })
    }

    /// The first communicator of all tasks in their order.
    pub(crate) fn world(&self) -> Option<CommId> {
        self.members.keys().copied().filter(|&comm| self.is_world(comm)).min()
    }

    /// Nanoseconds of a time, with the remainder that the task carries to its next time.
    pub(crate) fn nanoseconds(&self, time: Ticks, carried: &mut u64) -> Option<u64> {
        let picos = time.0.checked_mul(self.header.clock.0)?.checked_add(*carried)?;
        *carried = picos % 1000;
        Some(picos / 1000)
    }
}

//! Exports a trace: an archive with the calls of each rank, at the times that [`spans`] gives them.
//!
//! A record is a call: a message its send, a local mark the call that waits for what the record behind waits for, a part of a collective
//! its call, or where the task goes on before it ends, its start. The functions are those of the container's notes, else the blocking ones.
//! Amounts of collectives are as Score-P counts them ([`written`]).

use super::amounts::{number, written};
use super::encode::{ChunkWriter, Record};
use crate::export::{
    ExportError, ExportOptions, ExportProblem, Exported, From, Loaded, NewDirectory, Notes, Span, spans,
};
use crate::format::Progress;
use hashbrown::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{OpCodes, Root};
use vef_format::record::{Dependency, Line, LocalCollective, Message};

/// Sizes of chunks.
const EVENTS: usize = 1 << 20;
const DEFINITIONS: usize = 4 << 20;
/// Picoseconds in a second.
const SECOND: u64 = 1_000_000_000_000;
/// Name of the archive's files.
const NAME: &str = "traces";
/// The one that wrote the archive, and how: readers know the amounts of collectives by it.
const CREATOR: &str =
    concat!("vef ", env!("CARGO_PKG_VERSION"), ", with amounts of collectives as Score-P has them");

pub(super) fn write(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    _: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let trace = Loaded::read(from, codes)?;
    let ranks = trace.header.tasks;
    let notes = Notes::read(from, ranks as usize)?;
    let failed = |error: io::Error| ExportProblem::from(error).of_file(to);
    let too_large = || ExportProblem::Times(0).of_file(from);
    let spans = spans(&trace).ok_or_else(too_large)?;
    let clock = trace.header.clock.0.max(1);
    // Ticks of the trace are ticks of the archive where whole ones make a second.
    let (scale, resolution) =
        if SECOND.is_multiple_of(clock) { (1, SECOND / clock) } else { (clock, SECOND) };
    let new = NewDirectory::create(to).map_err(failed)?;
    let directory = new.path().join(NAME);
    fs::create_dir(&directory).map_err(failed)?;
    let mut archive = Archive { regions: HashMap::new(), names: Vec::new() };
    let (tags, comms) = (tags(&trace, &notes), communicators(&trace));
    let mut exported = Exported { ranks, ..Exported::default() };
    let (mut events, mut last) = (Vec::new(), 0);
    for rank in 0..ranks {
        progress.set(rank.into(), ranks.into());
        let create = |suffix: &str| File::create(directory.join(format!("{rank}.{suffix}"))).map_err(failed);
        let out = BufWriter::with_capacity(1 << 20, create("evt")?);
        let own = &spans[rank as usize];
        let end = own.last().map_or(0, |span| span.end);
        last = last.max(end.checked_mul(scale).ok_or_else(too_large)?);
        let mut calls = Calls {
            trace: &trace,
            comms: &comms,
            archive: &mut archive,
            tags: &tags,
            rank: Rank(rank),
            scale,
            out: ChunkWriter::new(out, EVENTS),
            record: Record::default(),
            requests: HashMap::new(),
            started: HashMap::new(),
            received: HashSet::new(),
            awaited: HashSet::new(),
            made: 0,
            exported: &mut exported,
        };
        calls.all(own, &notes).map_err(failed)?;
        events.push(calls.out.finish().map_err(failed)?);
        ChunkWriter::new(create("def")?, DEFINITIONS).finish().map_err(failed)?;
    }
    exported.operations = events.iter().sum();
    let file = File::create(new.path().join(format!("{NAME}.def"))).map_err(failed)?;
    let mut definitions = ChunkWriter::new(BufWriter::new(file), DEFINITIONS);
    define(&trace, &notes, &archive, &comms, &events, (resolution, last), &mut definitions)
        .map_err(failed)?;
    let defined = definitions.finish().map_err(failed)?;
    fs::write(new.path().join(format!("{NAME}.otf2")), anchor(ranks, defined)).map_err(failed)?;
    new.finish().map_err(failed)?;
    exported.remarks.push(
        "times are those of a network of 1 µs and 10 Gbit/s without contention; each rank's computing is that of the trace".to_owned(),
    );
    Ok(exported)
}

/// The functions that were called.
struct Archive {
    regions: HashMap<String, u64>,
    names: Vec<String>,
}

impl Archive {
    fn region(&mut self, name: &str) -> u64 {
        if let Some(&region) = self.regions.get(name) {
            return region;
        }
        let region = self.names.len() as u64;
        self.names.push(name.to_owned());
        self.regions.insert(name.to_owned(), region);
        region
    }
}

/// The tags of messages: the real ones where sends and receives of one tag have the same order, else the number of the message from its
/// sender to its receiver.
fn tags(trace: &Loaded, notes: &Notes) -> HashMap<MessageId, u32> {
    let mut tags = HashMap::with_capacity(trace.messages.len());
    for (records, notes) in trace.tasks.iter().zip(&notes.tags) {
        let mut known = From::new(notes);
        for (number, record) in (0..).zip(records) {
            let tag = known.at(number).and_then(|tag| u32::try_from(tag).ok());
            if let (Line::Message(message), Some(tag)) = (record, tag)
                && !message.is_mark()
            {
                tags.insert(message.id, tag);
            }
        }
    }
    let mut latest: HashMap<(Rank, Rank, u32), u32> = HashMap::new();
    let mut crossed: HashSet<(Rank, Rank)> = HashSet::new();
    for (records, unawaited) in trace.tasks.iter().zip(&trace.unawaited) {
        let received = records.iter().filter_map(|record| match record.after() {
            Dependency::Received(id) => Some(id),
            _ => None,
        });
        let mut seen = HashSet::new();
        for id in received.chain(unawaited.iter().copied()).filter(|&id| seen.insert(id)) {
            let Some(message) = trace.messages.get(&id) else { continue };
            let channel = (message.src, message.dst);
            let Some(&tag) = tags.get(&id) else {
                crossed.insert(channel);
                continue;
            };
            let before = latest.insert((message.src, message.dst, tag), message.number);
            if before.is_some_and(|before| before > message.number) {
                crossed.insert(channel);
            }
        }
    }
    for (&id, message) in &trace.messages {
        if crossed.contains(&(message.src, message.dst)) {
            tags.insert(id, message.number);
        }
    }
    tags
}

/// Writes the calls of a rank.
struct Calls<'a> {
    trace: &'a Loaded,
    comms: &'a HashMap<CommId, u64>,
    archive: &'a mut Archive,
    tags: &'a HashMap<MessageId, u32>,
    rank: Rank,
    /// Ticks of the archive in one of the trace.
    scale: u64,
    out: ChunkWriter<BufWriter<File>>,
    record: Record,
    /// Sends that are not complete, by record: their requests.
    requests: HashMap<u64, u64>,
    /// Collectives that are not complete.
    started: HashMap<CollectiveId, (u64, LocalCollective)>,
    received: HashSet<MessageId>,
    /// Collectives that a record waits for.
    awaited: HashSet<CollectiveId>,
    /// Requests made.
    made: u64,
    exported: &'a mut Exported,
}

/// Types of events.
mod kind {
    pub(super) const ENTER: u8 = 12;
    pub(super) const LEAVE: u8 = 13;
    pub(super) const SEND: u8 = 14;
    pub(super) const ISEND: u8 = 15;
    pub(super) const ISEND_COMPLETE: u8 = 16;
    pub(super) const IRECV_REQUEST: u8 = 17;
    pub(super) const RECV: u8 = 18;
    pub(super) const IRECV: u8 = 19;
    pub(super) const COLLECTIVE_BEGIN: u8 = 22;
    pub(super) const COLLECTIVE_END: u8 = 23;
    pub(super) const COLLECTIVE_REQUEST: u8 = 85;
    pub(super) const COLLECTIVE_COMPLETE: u8 = 86;
}

impl Calls<'_> {
    fn all(&mut self, spans: &[Span], notes: &Notes) -> io::Result<()> {
        let rank = self.rank.index();
        let mut functions = From::new(&notes.calls[rank]);
        let (mut waits, mut detached) = (&notes.waits[rank][..], &notes.detached[rank][..]);
        let records = &self.trace.tasks[rank];
        self.awaited.extend(records.iter().filter_map(|record| match record.after() {
            Dependency::Collective(id) => Some(id),
            Dependency::Start | Dependency::Sent(_) | Dependency::Received(_) => None,
        }));
        self.enter(0, "MPI_Init")?;
        self.leave(0, "MPI_Init")?;
        let mut before = 0;
        for (number, (record, &span)) in (0..).zip(records.iter().zip(spans)) {
            while let [wait, rest @ ..] = waits
                && wait.record == number
            {
                waits = rest;
                let begin = before.min(span.begin) + wait.before;
                before = begin + wait.took;
                if let (Some(request), true) = (self.requests.remove(&wait.send), before <= span.begin) {
                    self.enter(begin, "MPI_Wait")?;
                    self.record.begin(kind::ISEND_COMPLETE).packed(request);
                    self.put(before)?;
                    self.leave(before, "MPI_Wait")?;
                }
            }
            before = span.end;
            let is_detached = detached.first() == Some(&number);
            detached = &detached[usize::from(is_detached)..];
            let function = functions.at(number).map(|at| notes.functions[at].as_str());
            let next = records.get(number as usize + 1).map_or(Dependency::Start, Line::after);
            let is_last = number as usize + 1 == records.len();
            match record {
                Line::Message(message) if is_last && message.is_mark() => {
                    self.rest(span.begin)?;
                    self.enter(span.begin, "MPI_Finalize")?;
                    return self.leave(span.begin, "MPI_Finalize");
                }
                Line::Message(message) => {
                    let request = is_detached.then_some(number);
                    self.message(message, span, function, request, next)?;
                }
                Line::Collective(part) => self.collective(part, span, function, next)?,
                Line::Communicator { .. } => {}
            }
        }
        self.rest(before)?;
        self.enter(before, "MPI_Finalize")?;
        self.leave(before, "MPI_Finalize")
    }

    fn put(&mut self, time: u64) -> io::Result<()> {
        self.out.event(time * self.scale, self.record.bytes())
    }

    /// Writes the event, whose type has a length.
    fn put_with_length(&mut self, time: u64) -> io::Result<()> {
        self.out.event(time * self.scale, self.record.end())
    }

    fn enter(&mut self, time: u64, function: &str) -> io::Result<()> {
        let region = self.archive.region(function);
        self.record.begin(kind::ENTER).packed(region);
        self.put(time)
    }

    fn leave(&mut self, time: u64, function: &str) -> io::Result<()> {
        let region = self.archive.region(function);
        self.record.begin(kind::LEAVE).packed(region);
        self.put(time)
    }

    fn request(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// A message or a mark, with what its call waits for.
    fn message(
        &mut self,
        message: &Message,
        span: Span,
        function: Option<&str>,
        detached: Option<u64>,
        next: Dependency,
    ) -> io::Result<()> {
        let is_new = |id| !self.received.contains(&id);
        let waits = match next {
            Dependency::Received(id) => is_new(id),
            Dependency::Collective(id) => self.started.contains_key(&id),
            Dependency::Start | Dependency::Sent(_) => false,
        };
        let function = function.unwrap_or(match (message.is_mark(), detached, waits) {
            (true, ..) if matches!(next, Dependency::Received(_)) => "MPI_Recv",
            (true, ..) => "MPI_Wait",
            (false, Some(_), _) => "MPI_Isend",
            (false, None, true) => "MPI_Sendrecv",
            (false, None, false) => "MPI_Send",
        });
        self.enter(span.begin, function)?;
        if !message.is_mark() {
            let (to, bytes) = (message.dst, message.bytes.0);
            match detached {
                None => self.transfer(kind::SEND, span.begin, message.id, to, bytes, None)?,
                Some(record) => {
                    let request = self.request();
                    self.requests.insert(record, request);
                    self.transfer(kind::ISEND, span.begin, message.id, to, bytes, Some(request))?;
                }
            }
            self.exported.messages += 1;
            self.exported.bytes += bytes;
        }
        self.wait(span.end, next)?;
        self.leave(span.end, function)
    }

    fn transfer(
        &mut self,
        kind: u8,
        time: u64,
        id: MessageId,
        peer: Rank,
        bytes: u64,
        request: Option<u64>,
    ) -> io::Result<()> {
        let tag = self.tags.get(&id).copied().unwrap_or(0);
        self.record.with_length(kind).packed(peer.0.into()).packed(WORLD).packed(tag.into()).packed(bytes);
        if let Some(request) = request {
            self.record.packed(request);
        }
        self.put_with_length(time)
    }

    /// What a call waits for.
    fn wait(&mut self, time: u64, next: Dependency) -> io::Result<()> {
        match next {
            Dependency::Received(id) if self.received.insert(id) => {
                let Some(&message) = self.trace.messages.get(&id) else { return Ok(()) };
                self.transfer(kind::RECV, time, id, message.src, message.bytes, None)
            }
            Dependency::Collective(id) => match self.started.remove(&id) {
                Some((request, part)) => {
                    self.amounts(kind::COLLECTIVE_COMPLETE, &part);
                    self.record.packed(request);
                    self.put_with_length(time)
                }
                None => Ok(()),
            },
            Dependency::Received(_) | Dependency::Start | Dependency::Sent(_) => Ok(()),
        }
    }

    /// The fields of a collective's end.
    fn amounts(&mut self, kind: u8, part: &LocalCollective) {
        let all = &self.trace.collectives[&part.id];
        let members = self.trace.members.get(&part.comm);
        let root = all.root.and_then(|root| members?.iter().position(|&member| member == root));
        let is_root = all.root == Some(part.task);
        let size = members.map_or(1, Vec::len) as u64;
        let [sent, received] = written(all.operation, part.amounts, is_root, size);
        self.record
            .with_length(kind)
            .byte(number(all.operation))
            .packed(self.comms.get(&part.comm).copied().unwrap_or(WORLD));
        match (all.operation.root(), root) {
            (None, _) => self.record.undefined(),
            // Without data the trace does not tell the root.
            (Some(Root::Sends | Root::Receives), root) => self.record.packed(root.unwrap_or(0) as u64),
        };
        self.record.packed(sent).packed(received);
    }

    fn collective(
        &mut self,
        part: &LocalCollective,
        span: Span,
        function: Option<&str>,
        next: Dependency,
    ) -> io::Result<()> {
        let operation = self.trace.collectives[&part.id].operation;
        let blocks = next == Dependency::Collective(part.id) || !self.awaited.contains(&part.id);
        let default = match blocks {
            true => format!("MPI_{}", operation.name()),
            false => format!("MPI_I{}", operation.name().to_ascii_lowercase()),
        };
        let function = function.unwrap_or(&default);
        self.enter(span.begin, function)?;
        if blocks {
            self.record.with_length(kind::COLLECTIVE_BEGIN);
            self.put_with_length(span.begin)?;
            self.amounts(kind::COLLECTIVE_END, part);
            self.put_with_length(span.end)?;
        } else {
            let request = self.request();
            self.record.with_length(kind::COLLECTIVE_REQUEST).packed(request);
            self.put_with_length(span.begin)?;
            self.started.insert(part.id, (request, *part));
            self.wait(span.end, next)?;
        }
        self.leave(span.end, function)
    }

    /// Completes what no record waits for: receives, sends and collectives.
    fn rest(&mut self, time: u64) -> io::Result<()> {
        let trace = self.trace;
        let unawaited = &trace.unawaited[self.rank.index()];
        let mut sends: Vec<u64> = self.requests.drain().map(|(_, request)| request).collect();
        let mut collectives: Vec<_> = self.started.drain().map(|(_, started)| started).collect();
        if unawaited.is_empty() && sends.is_empty() && collectives.is_empty() {
            return Ok(());
        }
        sends.sort_unstable();
        collectives.sort_unstable_by_key(|&(request, _)| request);
        self.enter(time, "MPI_Waitall")?;
        let first = self.made + 1;
        for _ in unawaited {
            let request = self.request();
            self.record.begin(kind::IRECV_REQUEST).packed(request);
            self.put(time)?;
        }
        for (request, &id) in (first..).zip(unawaited) {
            let message = trace.messages[&id];
            self.transfer(kind::IRECV, time, id, message.src, message.bytes, Some(request))?;
        }
        for request in sends {
            self.record.begin(kind::ISEND_COMPLETE).packed(request);
            self.put(time)?;
        }
        for (request, part) in collectives {
            self.amounts(kind::COLLECTIVE_COMPLETE, &part);
            self.record.packed(request);
            self.put_with_length(time)?;
        }
        self.leave(time, "MPI_Waitall")
    }
}

/// The number of `MPI_COMM_WORLD`, whose messages all are; those of others follow.
const WORLD: u64 = 0;

/// The numbers of the communicators, without gaps.
fn communicators(trace: &Loaded) -> HashMap<CommId, u64> {
    let world = trace.world();
    let mut others: Vec<CommId> = trace.members.keys().copied().filter(|&comm| world != Some(comm)).collect();
    others.sort_unstable();
    others.into_iter().zip(WORLD + 1..).chain(world.map(|world| (world, WORLD))).collect()
}

/// Writes strings, each once, and the definitions that name them.
struct Definer<'a, W> {
    out: &'a mut ChunkWriter<W>,
    strings: HashMap<String, u64>,
}

impl<W: io::Write> Definer<'_, W> {
    fn string(&mut self, text: &str) -> io::Result<u64> {
        if let Some(&known) = self.strings.get(text) {
            return Ok(known);
        }
        let number = self.strings.len() as u64;
        self.strings.insert(text.to_owned(), number);
        self.put(Record::default().with_length(10).packed(number).text(text))?;
        Ok(number)
    }

    fn put(&mut self, record: &mut Record) -> io::Result<()> {
        self.out.definition(record.end())
    }
}

/// Writes the definitions of an archive.
fn define<W: io::Write>(
    trace: &Loaded,
    notes: &Notes,
    archive: &Archive,
    comms: &HashMap<CommId, u64>,
    events: &[u64],
    (resolution, length): (u64, u64),
    out: &mut ChunkWriter<W>,
) -> io::Result<()> {
    let mut to = Definer { out, strings: HashMap::new() };
    let mut record = Record::default();
    to.put(record.with_length(5).packed(resolution).full(0).packed(length).undefined_full())?;
    let nothing = to.string("")?;
    let machine = to.string("machine")?;
    let node = to.string("node")?;
    to.put(record.with_length(12).packed(0).packed(nothing).packed(machine).undefined())?;
    let mut nodes: HashMap<&str, u64> = HashMap::new();
    for rank in 0..events.len() {
        let host = notes.hosts.as_ref().map_or("", |hosts| hosts[rank].as_str());
        let next = nodes.len() as u64 + 1;
        let at = *nodes.entry(host).or_insert(next);
        if at == next {
            let name = to.string(host)?;
            to.put(record.with_length(12).packed(at).packed(name).packed(node).packed(0))?;
        }
        let (rank, name) = (rank as u64, to.string(&format!("MPI Rank {rank}"))?);
        to.put(record.with_length(13).packed(rank).packed(name).byte(1).packed(at).undefined())?;
    }
    let thread = to.string("Master thread")?;
    for (rank, &events) in (0..).zip(events) {
        to.put(record.with_length(14).packed(rank).packed(thread).byte(1).packed(events).packed(rank))?;
    }
    for (region, function) in (0..).zip(&archive.names) {
        let name = to.string(function)?;
        // No description, an older type, no place in a source; the canonical name, role unknown, paradigm MPI, no flags.
        record.with_length(15).packed(region).packed(name).packed(nothing).byte(0).undefined();
        to.put(record.packed(0).packed(0).packed(name).byte(0).byte(4).packed(0))?;
    }
    let ranks = events.len() as u64;
    let group = |to: &mut Definer<'_, W>, id: u64, kind: u8, members: &mut dyn Iterator<Item = u64>| {
        let (members, mut record): (Vec<u64>, _) = (members.collect(), Record::default());
        let old = if kind == 4 { 6 } else { 4 };
        record.with_length(18).packed(id).packed(nothing).byte(old).packed(members.len() as u64);
        for member in members {
            record.packed(member);
        }
        to.put(record.byte(kind).byte(4).packed(0))
    };
    group(&mut to, 0, 4, &mut (0..ranks))?;
    group(&mut to, 1, 5, &mut (0..ranks))?;
    let mut others: Vec<(u64, CommId)> =
        comms.iter().map(|(&comm, &number)| (number, comm)).filter(|&(number, _)| number != WORLD).collect();
    others.sort_unstable();
    for &(number, comm) in &others {
        let members = &trace.members[&comm];
        group(&mut to, number + 1, 5, &mut members.iter().map(|member| u64::from(member.0)))?;
    }
    let name = to.string("MPI_COMM_WORLD")?;
    to.put(Record::default().with_length(22).packed(WORLD).packed(name).packed(1).undefined().packed(0))?;
    for (number, comm) in others {
        let name = to.string(&format!("C{}", comm.0))?;
        record.with_length(22).packed(number).packed(name).packed(number + 1);
        to.put(record.packed(WORLD).packed(0))?;
    }
    Ok(())
}

/// The anchor: as version 3.0 of the library has it.
fn anchor(ranks: u32, definitions: u64) -> Vec<u8> {
    let mut anchor = b"\x03\x42OTF2\0\x03\x02\x03\0\x02".to_vec();
    for chunk in [EVENTS, DEFINITIONS] {
        anchor.extend((chunk as u64).to_le_bytes());
    }
    // POSIX files, without compression.
    anchor.extend([1, 1]);
    for number in [ranks.into(), definitions] {
        anchor.extend(number.to_le_bytes());
    }
    // Machine, creator, description.
    anchor.push(0);
    anchor.extend(CREATOR.bytes());
    anchor.extend([0, 0]);
    // No properties; identifier of the trace; no snapshots nor thumbnails; the end.
    anchor.extend([0; 4]);
    anchor.extend([0; 8]);
    anchor.extend([0; 8]);
    anchor.extend([2, 1, 0]);
    anchor
}

//! Exports a trace: an archive with the calls of each rank, at the times of its [`Span`].
//!
//! A record is a call: a message its send, a local mark the call that waits for what the record behind waits for, a part of a collective
//! its call, or its start if the task continues before it ends. Collectives that a library uses for another function, such as the creation of a
//! window, are in one call of that function. The functions are those of the container's notes, else the blocking ones.
//! Amounts of collectives are as Score-P counts them ([`written`]).

use super::amounts::{number, written};
use super::define::{DEFINITIONS, Defined, EVENTS, WORLD, anchor, communicators, define};
use super::encode::{ChunkWriter, Record};
use crate::export::{
    After, CollectiveIndex, Export, ExportError, Exported, From, Loaded, Message, MessageIndex, Notes,
    Record as TraceRecord, Span, What,
};
use hashbrown::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use vef_format::ids::{CommId, Rank};
use vef_format::new_directory::NewDirectory;
use vef_format::operation::{Amounts, Root};
use vef_format::units::Ticks;

/// Picoseconds in a second.
const SECOND: u64 = 1_000_000_000_000;
/// Name of the archive's files.
const NAME: &str = "traces";

pub(super) fn write(export: &Export<'_>) -> Result<Exported, ExportError> {
    let (trace, failed) = (export.trace, |error| export.failed(error));
    let ranks = trace.header.tasks;
    let notes = Notes::read(&trace.path, ranks as usize)?;
    let clock = trace.header.clock.0.max(1);
    // Ticks of the trace are ticks of the archive where whole ones make a second.
    let (scale, resolution) =
        if SECOND.is_multiple_of(clock) { (1, SECOND / clock) } else { (clock, SECOND) };
    let new = NewDirectory::create(export.to).map_err(failed)?;
    let directory = new.path().join(NAME);
    fs::create_dir(&directory).map_err(failed)?;
    let (tags, comms) = (tags(trace, &notes), communicators(trace));
    let mut archive = Archive {
        trace,
        notes: &notes,
        comms: &comms,
        tags: &tags,
        regions: HashMap::new(),
        names: Vec::new(),
        noted: vec![None; notes.functions.len()],
        received: vec![false; trace.messages.len()],
        exported: export.begin(),
    };
    let (mut events, mut last) = (Vec::new(), 0);
    for rank in export.ranks() {
        let create = |suffix: &str| File::create(directory.join(format!("{rank}.{suffix}"))).map_err(failed);
        let own = &export.spans[rank as usize];
        // No later than the end of time.
        let end = own.last().map_or(0, |span| span.end);
        last = last.max(end * scale);
        let mut calls = Calls {
            archive: &mut archive,
            rank: Rank(rank),
            scale,
            out: ChunkWriter::new(create("evt")?, EVENTS),
            record: Record::default(),
            requests: HashMap::new(),
            started: HashMap::new(),
            made: 0,
        };
        calls.all(own).map_err(failed)?;
        events.push(calls.out.finish().map_err(failed)?);
        ChunkWriter::new(create("def")?, DEFINITIONS).finish().map_err(failed)?;
    }
    let file = File::create(new.path().join(format!("{NAME}.def"))).map_err(failed)?;
    let mut definitions = ChunkWriter::new(file, DEFINITIONS);
    let defined = Defined { trace, notes: &notes, comms: &comms, functions: &archive.names, events: &events };
    define(&defined, (resolution, last), &mut definitions).map_err(failed)?;
    let records = definitions.finish().map_err(failed)?;
    fs::write(new.path().join(format!("{NAME}.otf2")), anchor(ranks, records)).map_err(failed)?;
    new.finish().map_err(failed)?;
    let mut exported = archive.exported;
    exported.operations = events.iter().sum();
    exported.remarks.push(
        "times are those of a network of 1 µs and 10 Gbit/s without contention; each rank's computing is that of the trace".to_owned(),
    );
    Ok(exported)
}

/// What all ranks share.
struct Archive<'a> {
    trace: &'a Loaded,
    notes: &'a Notes,
    comms: &'a HashMap<CommId, u64>,
    /// By message.
    tags: &'a [u32],
    /// The functions that were called: their regions, and their names in this order.
    regions: HashMap<String, u64>,
    names: Vec<String>,
    /// The regions of the functions that the notes name, once they are called.
    noted: Vec<Option<u64>>,
    /// Whether a message was received, which is done by one rank only.
    received: Vec<bool>,
    exported: Exported,
}

impl Archive<'_> {
    fn region(&mut self, name: &str) -> u64 {
        if let Some(&region) = self.regions.get(name) {
            return region;
        }
        let region = self.names.len() as u64;
        self.names.push(name.to_owned());
        self.regions.insert(name.to_owned(), region);
        region
    }

    /// The region of a function by its number in the notes.
    fn noted(&mut self, function: usize) -> u64 {
        if let Some(region) = self.noted[function] {
            return region;
        }
        let notes = self.notes;
        let region = self.region(&notes.functions[function]);
        self.noted[function] = Some(region);
        region
    }
}

/// The tag of each message: the real one where sends and receives of one tag have the same order, else the number of the message from its
/// sender to its receiver.
fn tags(trace: &Loaded, notes: &Notes) -> Vec<u32> {
    let numbers = trace.messages.iter().map(|message| message.number);
    if notes.tags.iter().all(Vec::is_empty) {
        return numbers.collect();
    }
    let mut tags = vec![None; trace.messages.len()];
    for (records, notes) in trace.tasks.iter().zip(&notes.tags) {
        let mut known = From::new(notes);
        for (number, record) in (0..).zip(records) {
            let tag = known.at(number).and_then(|tag| u32::try_from(tag).ok());
            if let What::Send(index) = record.what {
                tags[index.0 as usize] = tag;
            }
        }
    }
    let mut latest: HashMap<(Rank, Rank, u32), u32> = HashMap::new();
    let mut crossed: HashSet<(Rank, Rank)> = HashSet::new();
    let mut seen = vec![false; trace.messages.len()];
    for (records, unawaited) in trace.tasks.iter().zip(&trace.unawaited) {
        let received = records.iter().filter_map(|record| match record.after {
            After::Received(index) => Some(index),
            After::Nothing | After::Sent(_) | After::Collective(_) => None,
        });
        for index in received.chain(unawaited.iter().copied()) {
            if std::mem::replace(&mut seen[index.0 as usize], true) {
                continue;
            }
            let message = trace.message(index);
            let channel = (message.src, message.dst);
            let Some(tag) = tags[index.0 as usize] else {
                crossed.insert(channel);
                continue;
            };
            let before = latest.insert((message.src, message.dst, tag), message.number);
            if before.is_some_and(|before| before > message.number) {
                crossed.insert(channel);
            }
        }
    }
    let own = |(message, tag): (&Message, Option<u32>)| match crossed.contains(&(message.src, message.dst)) {
        true => message.number,
        false => tag.unwrap_or(message.number),
    };
    trace.messages.iter().zip(tags).map(own).collect()
}

/// Writes the calls of a rank.
struct Calls<'a, 'b> {
    archive: &'b mut Archive<'a>,
    rank: Rank,
    /// Ticks of the archive in one of the trace.
    scale: u64,
    out: ChunkWriter<File>,
    record: Record,
    /// Sends that are not complete, by record: their requests.
    requests: HashMap<u64, u64>,
    /// Collectives that are not complete: their requests and amounts.
    started: HashMap<CollectiveIndex, (u64, Amounts)>,
    /// Requests made.
    made: u64,
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

impl Calls<'_, '_> {
    fn all(&mut self, spans: &[Span]) -> io::Result<()> {
        let (rank, notes) = (self.rank.index(), self.archive.notes);
        let mut functions = From::new(&notes.calls[rank]);
        let (mut waits, mut detached) = (&notes.waits[rank][..], &notes.detached[rank][..]);
        let records = &self.archive.trace.tasks[rank];
        self.empty(0, "MPI_Init")?;
        let (mut before, mut caller, mut goes_on) = (0, None, false);
        if let (Some(first), Some(span)) = (records.first(), spans.first())
            && self.waits(Some(first))
        {
            // There is no record whose call could wait for it.
            before = span.begin - first.time.0;
            let region = self.archive.region("MPI_Recv");
            self.enter(0, region)?;
            self.wait(before, Some(first))?;
            self.leave(before, region)?;
        }
        for (number, (record, &span)) in (0..).zip(records.iter().zip(spans)) {
            while let [wait, rest @ ..] = waits
                && wait.record == number
            {
                waits = rest;
                let begin = before.min(span.begin) + wait.before;
                before = begin + wait.took;
                if let (Some(request), true) = (self.requests.remove(&wait.send), before <= span.begin) {
                    let region = self.archive.region("MPI_Wait");
                    self.enter(begin, region)?;
                    self.record.begin(kind::ISEND_COMPLETE).packed(request);
                    self.put(before)?;
                    self.leave(before, region)?;
                }
            }
            before = span.end;
            let is_detached = detached.first() == Some(&number);
            detached = &detached[usize::from(is_detached)..];
            let function = functions.at(number).map(|function| self.archive.noted(function));
            let next = records.get(number as usize + 1);
            let begins = !std::mem::replace(&mut goes_on, false);
            // A non-blocking collective has a mark in front, of the same call.
            let mut call_continues = || {
                span.begin == span.end
                    && spans.get(number as usize + 1).is_some_and(|next| next.begin == span.end)
                    && next.is_some_and(|next| matches!(next.what, What::Collective(..)))
                    && next.is_some_and(|next| matches!(next.after, After::Nothing | After::Sent(_)))
                    && function.is_some()
                    && function == functions.at(number + 1).map(|function| self.archive.noted(function))
            };
            match record.what {
                What::Mark if call_continues() => {}
                What::Mark if self.ends_probe(record, function, caller) && !self.waits(next) => {}
                What::Mark if next.is_none() => {
                    self.rest(span.begin)?;
                    return self.empty(span.begin, "MPI_Finalize");
                }
                What::Mark | What::Send(_) => {
                    self.point_to_point(record, span, function, is_detached.then_some(number), next)?;
                }
                What::Collective(index, amounts) => {
                    goes_on = function.is_some()
                        && function == functions.at(number + 1).map(|function| self.archive.noted(function))
                        && waits.first().is_none_or(|wait| wait.record > number + 1)
                        && self.is_of_another_function(index, function, next);
                    let region = self.of_collective(index, function, next);
                    if begins {
                        self.enter(span.begin, region)?;
                    }
                    self.collective(index, amounts, span, next)?;
                    if !goes_on {
                        self.leave(span.end, region)?;
                    }
                }
            }
            caller = function;
        }
        self.rest(before)?;
        self.empty(before, "MPI_Finalize")
    }

    /// Whether a mark is the end of the probe that the record before it begins.
    fn ends_probe(&self, mark: &TraceRecord, function: Option<u64>, caller: Option<u64>) -> bool {
        const PROBES: [&str; 4] = ["MPI_Probe", "MPI_Iprobe", "MPI_Mprobe", "MPI_Improbe"];
        let is_probe = |region: u64| PROBES.contains(&&*self.archive.names[region as usize]);
        matches!(mark.after, After::Received(_))
            && mark.time == Ticks(0)
            && function == caller
            && function.is_some_and(is_probe)
    }

    fn put(&mut self, time: u64) -> io::Result<()> {
        self.out.event(time * self.scale, self.record.bytes())
    }

    /// Writes the event, whose type has a length.
    fn put_with_length(&mut self, time: u64) -> io::Result<()> {
        self.out.event(time * self.scale, self.record.end())
    }

    fn enter(&mut self, time: u64, region: u64) -> io::Result<()> {
        self.record.begin(kind::ENTER).packed(region);
        self.put(time)
    }

    fn leave(&mut self, time: u64, region: u64) -> io::Result<()> {
        self.record.begin(kind::LEAVE).packed(region);
        self.put(time)
    }

    /// A call in which nothing happens.
    fn empty(&mut self, time: u64, function: &str) -> io::Result<()> {
        let region = self.archive.region(function);
        self.enter(time, region)?;
        self.leave(time, region)
    }

    fn request(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// A message or a mark, with what its call waits for.
    fn point_to_point(
        &mut self,
        record: &TraceRecord,
        span: Span,
        function: Option<u64>,
        detached: Option<u64>,
        next: Option<&TraceRecord>,
    ) -> io::Result<()> {
        let receives = next.is_some_and(|next| matches!(next.after, After::Received(_)));
        let waits = self.waits(next);
        let sent = if let What::Send(index) = record.what { Some(index) } else { None };
        let region = function.unwrap_or_else(|| {
            self.archive.region(match (sent, detached, waits) {
                (None, ..) if receives => "MPI_Recv",
                (None, ..) => "MPI_Wait",
                (Some(_), Some(_), _) => "MPI_Isend",
                (Some(_), None, true) => "MPI_Sendrecv",
                (Some(_), None, false) => "MPI_Send",
            })
        });
        self.enter(span.begin, region)?;
        if let Some(index) = sent {
            let Message { dst, bytes, .. } = *self.archive.trace.message(index);
            match detached {
                None => self.transfer(kind::SEND, span.begin, index, dst, None)?,
                Some(record) => {
                    let request = self.request();
                    self.requests.insert(record, request);
                    self.transfer(kind::ISEND, span.begin, index, dst, Some(request))?;
                }
            }
            self.archive.exported.message(bytes);
        }
        self.wait(span.end, next)?;
        self.leave(span.end, region)
    }

    fn transfer(
        &mut self,
        kind: u8,
        time: u64,
        index: MessageIndex,
        peer: Rank,
        request: Option<u64>,
    ) -> io::Result<()> {
        let tag = self.archive.tags[index.0 as usize];
        let bytes = self.archive.trace.message(index).bytes;
        self.record.with_length(kind).packed(peer.0.into()).packed(WORLD).packed(tag.into()).packed(bytes);
        if let Some(request) = request {
            self.record.packed(request);
        }
        self.put_with_length(time)
    }

    /// Whether a record waits for what no call in front of it has received or completed.
    fn waits(&self, record: Option<&TraceRecord>) -> bool {
        match record.map_or(After::Nothing, |record| record.after) {
            After::Received(index) => !self.archive.received[index.0 as usize],
            After::Collective(index) => self.started.contains_key(&index),
            After::Nothing | After::Sent(_) => false,
        }
    }

    /// What a call waits for: what the record behind it does.
    fn wait(&mut self, time: u64, next: Option<&TraceRecord>) -> io::Result<()> {
        match next.map_or(After::Nothing, |next| next.after) {
            After::Received(index) => {
                if std::mem::replace(&mut self.archive.received[index.0 as usize], true) {
                    return Ok(());
                }
                let from = self.archive.trace.message(index).src;
                self.transfer(kind::RECV, time, index, from, None)
            }
            After::Collective(index) => match self.started.remove(&index) {
                Some((request, amounts)) => {
                    self.amounts(kind::COLLECTIVE_COMPLETE, index, amounts);
                    self.record.packed(request);
                    self.put_with_length(time)
                }
                None => Ok(()),
            },
            After::Nothing | After::Sent(_) => Ok(()),
        }
    }

    /// The fields of a collective's end.
    fn amounts(&mut self, kind: u8, index: CollectiveIndex, amounts: Amounts) {
        let (trace, comms) = (self.archive.trace, self.archive.comms);
        let all = trace.collective(index);
        let root = all.root.and_then(|root| trace.rank_in(all.comm, root));
        let size = trace.members.get(&all.comm).map_or(1, Vec::len) as u64;
        let [sent, received] = written(all.operation, amounts, all.root == Some(self.rank), size);
        self.record
            .with_length(kind)
            .byte(number(all.operation))
            .packed(comms.get(&all.comm).copied().unwrap_or(WORLD));
        match (all.operation.root(), root) {
            (None, _) => self.record.undefined(),
            // Without data the trace does not tell the root.
            (Some(Root::Sends | Root::Receives), root) => self.record.packed(root.unwrap_or(0).into()),
        };
        self.record.packed(sent).packed(received);
    }

    /// Whether a collective and the one in the next record both belong to one call of a function that is neither: the function has another name,
    /// and nothing is computed between them.
    fn is_of_another_function(
        &self,
        index: CollectiveIndex,
        function: Option<u64>,
        next: Option<&TraceRecord>,
    ) -> bool {
        let Some(&TraceRecord { what: What::Collective(behind, _), after, time, .. }) = next else {
            return false;
        };
        let function =
            function.map_or("", |region| &self.archive.names[region as usize]).to_ascii_lowercase();
        let is_own = |index| {
            let operation = self.archive.trace.collective(index).operation;
            function.contains(&operation.name().to_ascii_lowercase())
        };
        after == After::Collective(index) && time == Ticks(0) && !is_own(index) && !is_own(behind)
    }

    /// Whether a rank waits for a collective in its call.
    fn blocks(index: CollectiveIndex, next: Option<&TraceRecord>) -> bool {
        next.is_none_or(|next| next.after == After::Collective(index))
    }

    /// The region of a collective's call.
    fn of_collective(
        &mut self,
        index: CollectiveIndex,
        function: Option<u64>,
        next: Option<&TraceRecord>,
    ) -> u64 {
        let name = self.archive.trace.collective(index).operation.name();
        match function {
            Some(region) => region,
            None if Self::blocks(index, next) => self.archive.region(&format!("MPI_{name}")),
            None => self.archive.region(&format!("MPI_I{}", name.to_ascii_lowercase())),
        }
    }

    /// The records of a collective within its call.
    fn collective(
        &mut self,
        index: CollectiveIndex,
        amounts: Amounts,
        span: Span,
        next: Option<&TraceRecord>,
    ) -> io::Result<()> {
        if Self::blocks(index, next) {
            self.record.with_length(kind::COLLECTIVE_BEGIN);
            self.put_with_length(span.begin)?;
            self.amounts(kind::COLLECTIVE_END, index, amounts);
            self.put_with_length(span.end)?;
        } else {
            let request = self.request();
            self.record.with_length(kind::COLLECTIVE_REQUEST).packed(request);
            self.put_with_length(span.begin)?;
            self.started.insert(index, (request, amounts));
        }
        self.wait(span.end, next)
    }

    /// Completes what no record waits for: receives, sends and collectives.
    fn rest(&mut self, time: u64) -> io::Result<()> {
        let trace = self.archive.trace;
        let unawaited = &trace.unawaited[self.rank.index()];
        let mut sends: Vec<u64> = self.requests.drain().map(|(_, request)| request).collect();
        let mut collectives: Vec<_> = self.started.drain().collect();
        if unawaited.is_empty() && sends.is_empty() && collectives.is_empty() {
            return Ok(());
        }
        sends.sort_unstable();
        collectives.sort_unstable_by_key(|&(_, (request, _))| request);
        let region = self.archive.region("MPI_Waitall");
        self.enter(time, region)?;
        let first = self.made + 1;
        for _ in unawaited {
            let request = self.request();
            self.record.begin(kind::IRECV_REQUEST).packed(request);
            self.put(time)?;
        }
        for (request, &index) in (first..).zip(unawaited) {
            self.transfer(kind::IRECV, time, index, trace.message(index).src, Some(request))?;
        }
        for request in sends {
            self.record.begin(kind::ISEND_COMPLETE).packed(request);
            self.put(time)?;
        }
        for (index, (request, amounts)) in collectives {
            self.amounts(kind::COLLECTIVE_COMPLETE, index, amounts);
            self.record.packed(request);
            self.put_with_length(time)?;
        }
        self.leave(time, region)
    }
}

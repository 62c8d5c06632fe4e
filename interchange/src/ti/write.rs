//! Exports a trace: one file with the lines of all ranks.
//!
//! Messages are sent by `isend`, which only the last `waitall` completes: blocking sends of both partners would deadlock where SimGrid
//! is no longer eager. Receives are posted where their rank waits for them. Collectives of the world stay collectives where SimGrid has
//! them with equal sizes; all others become messages.

use crate::export::{ExportError, ExportOptions, ExportProblem, Exported, Loaded, Part, Step};
use crate::format::Progress;
use collectives::Sizes;
use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use vef_format::ids::{MessageId, Rank};
use vef_format::new_file::NewFile;
use vef_format::operation::{OpCodes, Operation};
use vef_format::record::{Dependency, Line, LocalCollective};

/// SimGrid keeps sizes in 32 bits, so larger ones are counted in larger types: size and number of each.
const TYPES: [(u64, u32); 3] = [(16, 26), (8, 0), (4, 1)];
/// The largest count.
const MOST: u64 = i32::MAX as u64;
/// Tags of messages are below, those of collectives from here on.
const COLLECTIVES: u32 = 1 << 30;

pub(super) fn write(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let trace = Loaded::read(from, codes)?;
    let ranks = trace.header.tasks;
    let mut exported = Exported { ranks, ..Exported::default() };
    let io = |error: io::Error| ExportProblem::from(error).of_file(to);
    let new = NewFile::create(to).map_err(io)?;
    let mut out = BufWriter::with_capacity(1 << 20, new.file());
    for rank in 0..ranks {
        progress.set(rank.into(), ranks.into());
        let mut run = Actions {
            trace: &trace,
            options,
            rank,
            lines: Vec::new(),
            received: HashSet::new(),
            exported: &mut exported,
        };
        run.all().map_err(|problem| problem.of_file(from))?;
        out.write_all(&run.lines).map_err(io)?;
    }
    out.flush().map_err(io)?;
    drop(out);
    new.finish().map_err(io)?;
    exported.remarks.push(
        "`smpirun -replay LIST` wants a file with the name of this one; a replay without \"Simulation time\" in its output is \
         deadlocked"
            .to_owned(),
    );
    Ok(exported)
}

struct Actions<'a> {
    trace: &'a Loaded,
    options: &'a ExportOptions,
    rank: u32,
    lines: Vec<u8>,
    received: HashSet<MessageId>,
    exported: &'a mut Exported,
}

/// Counts of at most 2³¹ − 1 that make this size together, with the type in which they count.
fn counts(bytes: u64) -> Vec<(u64, Option<u32>)> {
    if bytes <= MOST {
        return vec![(bytes, None)];
    }
    let whole = TYPES.iter().find(|(size, _)| bytes.is_multiple_of(*size) && bytes / size <= MOST);
    if let Some(&(size, kind)) = whole {
        return vec![(bytes / size, Some(kind))];
    }
    let first = (bytes / 16).min(MOST);
    let mut all = vec![(first, Some(26))];
    all.extend(counts(bytes - 16 * first));
    all
}

impl Actions<'_> {
    /// Writes a line.
    fn line(&mut self, action: std::fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        let _ = writeln!(self.lines, "{} {action}", self.rank);
        self.exported.operations += 1;
    }

    fn all(&mut self) -> Result<(), ExportProblem> {
        self.line(format_args!("init"));
        let trace = self.trace;
        for (number, record) in (0..).zip(&trace.tasks[self.rank as usize]) {
            self.record(number, record)?;
        }
        for &id in &trace.unawaited[self.rank as usize] {
            self.post(id);
        }
        self.line(format_args!("waitall"));
        self.line(format_args!("finalize"));
        Ok(())
    }

    fn record(&mut self, number: u64, record: &Line<'_>) -> Result<(), ExportProblem> {
        let (after, time) = match record {
            Line::Communicator { .. } => return Ok(()),
            Line::Message(message) => (message.after, message.time),
            Line::Collective(part) => (part.after, part.time),
        };
        if let Dependency::Received(id) = after {
            self.receive(id)?;
        }
        let picos = time.0.checked_mul(self.trace.header.clock.0).ok_or(ExportProblem::Times(self.rank))?;
        if picos > 0 {
            let (seconds, picos) = (picos / 1_000_000_000_000, picos % 1_000_000_000_000);
            self.line(format_args!("sleep {seconds}.{picos:012}"));
        }
        match record {
            Line::Message(message) if !message.is_mark() => {
                let tag = self.trace.messages[&message.id].number % COLLECTIVES;
                self.send(message.dst.0, tag, message.bytes.0);
                Ok(())
            }
            Line::Collective(part) => self.collective(number, part),
            Line::Message(_) | Line::Communicator { .. } => Ok(()),
        }
    }

    fn send(&mut self, to: u32, tag: u32, bytes: u64) {
        self.transfer("isend", to, tag, bytes);
        self.exported.messages += 1;
        self.exported.bytes += bytes;
    }

    /// Writes the lines of a send or receive; how many.
    fn transfer(&mut self, action: &str, peer: u32, tag: u32, bytes: u64) -> usize {
        let counts = counts(bytes);
        for (count, kind) in &counts {
            match kind {
                None => self.line(format_args!("{action} {peer} {tag} {count}")),
                Some(kind) => self.line(format_args!("{action} {peer} {tag} {count} {kind}")),
            }
        }
        counts.len()
    }

    /// Posts the receive of a message: its source, tag and number of parts.
    fn post(&mut self, id: MessageId) -> (u32, u32, usize) {
        let message = self.trace.messages[&id];
        let (from, tag) = (message.src.0, message.number % COLLECTIVES);
        (from, tag, self.transfer("irecv", from, tag, message.bytes))
    }

    /// Receives a message, unless it was received before.
    fn receive(&mut self, id: MessageId) -> Result<(), ExportProblem> {
        match self.trace.messages.get(&id) {
            Some(message) if message.dst == Rank(self.rank) => {}
            _ => {
                let what = format!("message {}", id.0);
                return Err(ExportProblem::Missing { task: self.rank, what });
            }
        }
        if self.received.insert(id) {
            let rank = self.rank;
            let (from, tag, parts) = self.post(id);
            for _ in 0..parts {
                self.line(format_args!("wait {from} {rank} {tag}"));
            }
        }
        Ok(())
    }

    fn collective(&mut self, number: u64, part: &LocalCollective) -> Result<(), ExportProblem> {
        let mut steps = Part::new(self.trace, number, part, &self.options.algorithms)?;
        let member = steps.member;
        let is_world = self.trace.is_world(part.comm);
        let sums = (part.amounts.send.0, part.amounts.recv.0);
        let sizes = Sizes::from_sums(member.operation, member.ranks, sums.0, sums.1);
        if let (true, Sizes::Bytes(n @ 0..=MOST)) = (is_world, sizes) {
            let root = member.root;
            let is_written = match member.operation {
                Operation::Barrier => {
                    self.line(format_args!("barrier"));
                    true
                }
                Operation::Bcast => {
                    self.line(format_args!("bcast {n} {root}"));
                    true
                }
                Operation::Reduce => {
                    self.line(format_args!("reduce {n} 0 {root}"));
                    true
                }
                Operation::Allreduce => {
                    self.line(format_args!("allreduce {n} 0"));
                    true
                }
                Operation::Gather => {
                    self.line(format_args!("gather {n} {n} {root}"));
                    true
                }
                Operation::Scatter => {
                    self.line(format_args!("scatter {n} {n} {root}"));
                    true
                }
                Operation::Allgather => {
                    self.line(format_args!("allgather {n} {n}"));
                    true
                }
                Operation::Alltoall => {
                    self.line(format_args!("alltoall {n} {n}"));
                    true
                }
                Operation::Scan => {
                    self.line(format_args!("scan {n} 0"));
                    true
                }
                Operation::Exscan => {
                    self.line(format_args!("exscan {n} 0"));
                    true
                }
                Operation::Gatherv
                | Operation::Scatterv
                | Operation::Allgatherv
                | Operation::Alltoallv
                | Operation::Alltoallw
                | Operation::ReduceScatter
                | Operation::ReduceScatterBlock => false,
            };
            if is_written {
                return Ok(());
            }
        }
        self.exported.expanded += u64::from(member.rank == 0);
        let tag = COLLECTIVES + (part.id.0 % u64::from(COLLECTIVES)) as u32;
        let (rank, mut posted) = (self.rank, Vec::new());
        loop {
            match steps.next() {
                Some(Step::Send { to, bytes }) => self.send(to, tag, bytes),
                Some(Step::Receive { from, bytes }) => {
                    let parts = self.transfer("irecv", from, tag, bytes);
                    posted.extend(std::iter::repeat_n(from, parts));
                }
                step @ (Some(Step::Wait) | None) => {
                    for from in posted.drain(..) {
                        self.line(format_args!("wait {from} {rank} {tag}"));
                    }
                    if step.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

//! Exports a trace: one file with the lines of all ranks.
//!
//! Messages are sent by `isend`, which only the last `waitall` completes: blocking sends of both partners would deadlock where SimGrid
//! is no longer eager. Receives are posted where their rank waits for them. Collectives of the world stay collectives where SimGrid has
//! them with equal sizes; all others become messages.

use crate::decimal::number;
use crate::export::{
    After, COLLECTIVES, CollectiveIndex, Export, ExportError, ExportProblem, Exported, MessageIndex, Part,
    Record, Step, What,
};
use collectives::Sizes;
use std::io::Write;
use vef_format::ids::Rank;
use vef_format::new_file::NewFile;
use vef_format::operation::{Amounts, Operation};

/// SimGrid keeps sizes in 32 bits, so larger ones are counted in larger types: size and number of each.
const TYPES: [(u64, u32); 3] = [(16, 26), (8, 0), (4, 1)];
/// The largest count.
const MOST: u64 = i32::MAX as u64;

pub(super) fn write(export: &Export<'_>) -> Result<Exported, ExportError> {
    let failed = |error| export.failed(error);
    let new = NewFile::create(export.to).map_err(failed)?;
    let mut out = new.file();
    let trace = export.trace;
    let mut actions = Actions {
        export,
        rank: 0,
        lines: Vec::new(),
        received: vec![false; trace.messages.len()],
        exported: export.begin(),
    };
    for rank in export.ranks() {
        actions.rank = rank;
        actions.all().map_err(|problem| problem.of_file(&trace.path))?;
        out.write_all(&actions.lines).map_err(failed)?;
        actions.lines.clear();
    }
    new.finish().map_err(failed)?;
    let mut exported = actions.exported;
    exported.remarks.push(
        "`smpirun -replay LIST` wants a file with the name of this one; a replay without \"Simulation time\" in its output is \
         deadlocked"
            .to_owned(),
    );
    Ok(exported)
}

/// Writes the lines of one rank after the other.
struct Actions<'a> {
    export: &'a Export<'a>,
    rank: u32,
    lines: Vec<u8>,
    /// Whether a message was received, which is done by one rank only.
    received: Vec<bool>,
    exported: Exported,
}

/// Counts of at most 2³¹ − 1 that make this size together, with the type in which they count.
fn counts(bytes: u64) -> impl Iterator<Item = (u64, Option<u32>)> {
    let mut left = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = left.take()?;
        if bytes <= MOST {
            return Some((bytes, None));
        }
        let whole = TYPES.iter().find(|(size, _)| bytes.is_multiple_of(*size) && bytes / size <= MOST);
        Some(match whole {
            Some(&(size, kind)) => (bytes / size, Some(kind)),
            None => {
                let first = (bytes / 16).min(MOST);
                left = Some(bytes - 16 * first);
                (first, Some(26))
            }
        })
    })
}

impl Actions<'_> {
    /// Writes a line: an action with its numbers.
    fn line(&mut self, action: &str, numbers: impl IntoIterator<Item = u64>) {
        number(&mut self.lines, self.rank.into());
        self.lines.push(b' ');
        self.lines.extend(action.as_bytes());
        for argument in numbers {
            self.lines.push(b' ');
            number(&mut self.lines, argument);
        }
        self.lines.push(b'\n');
        self.exported.operations += 1;
    }

    fn all(&mut self) -> Result<(), ExportProblem> {
        self.line("init", []);
        let trace = self.export.trace;
        for (number, record) in (0..).zip(&trace.tasks[self.rank as usize]) {
            self.record(number, record)?;
        }
        for &index in &trace.unawaited[self.rank as usize] {
            self.post(index);
        }
        self.line("waitall", []);
        self.line("finalize", []);
        Ok(())
    }

    fn record(&mut self, number: u64, record: &Record) -> Result<(), ExportProblem> {
        if let After::Received(index) = record.after {
            self.receive(index);
        }
        let clock = self.export.trace.header.clock.0;
        let picos = record.time.0.checked_mul(clock).ok_or(ExportProblem::Times(self.rank))?;
        if picos > 0 {
            self.sleep(picos);
        }
        match record.what {
            What::Mark => Ok(()),
            What::Send(index) => {
                let message = *self.export.trace.message(index);
                self.send(message.dst.0, message.number % COLLECTIVES, message.bytes);
                Ok(())
            }
            What::Collective(index, amounts) => self.collective(number, index, amounts),
        }
    }

    /// Writes a computation, in seconds with twelve decimals.
    fn sleep(&mut self, picos: u64) {
        const SECOND: u64 = 1_000_000_000_000;
        self.line("sleep", [picos / SECOND]);
        self.lines.pop();
        // The decimals with their zeros: those of a number with a digit in front of them.
        let dot = self.lines.len();
        number(&mut self.lines, SECOND + picos % SECOND);
        self.lines[dot] = b'.';
        self.lines.push(b'\n');
    }

    fn send(&mut self, to: u32, tag: u32, bytes: u64) {
        self.transfer("isend", to, tag, bytes);
        self.exported.messages += 1;
        self.exported.bytes += bytes;
    }

    /// Writes the lines of a send or receive; how many.
    fn transfer(&mut self, action: &str, peer: u32, tag: u32, bytes: u64) -> usize {
        let mut lines = 0;
        for (count, kind) in counts(bytes) {
            let numbers = [peer.into(), tag.into(), count].into_iter();
            self.line(action, numbers.chain(kind.map(u64::from)));
            lines += 1;
        }
        lines
    }

    /// Posts the receive of a message: its source, tag and number of parts.
    fn post(&mut self, index: MessageIndex) -> (u32, u32, usize) {
        let message = *self.export.trace.message(index);
        let (from, tag) = (message.src.0, message.number % COLLECTIVES);
        (from, tag, self.transfer("irecv", from, tag, message.bytes))
    }

    /// Receives a message, unless it was received before.
    fn receive(&mut self, index: MessageIndex) {
        if !std::mem::replace(&mut self.received[index.0 as usize], true) {
            let (from, tag, parts) = self.post(index);
            for _ in 0..parts {
                self.wait(from, tag);
            }
        }
    }

    fn wait(&mut self, from: u32, tag: u32) {
        self.line("wait", [from, self.rank, tag].map(u64::from));
    }

    fn collective(
        &mut self,
        number: u64,
        index: CollectiveIndex,
        amounts: Amounts,
    ) -> Result<(), ExportProblem> {
        let Export { trace, options, .. } = *self.export;
        let mut steps = Part::new(trace, (Rank(self.rank), number), index, amounts, &options.algorithms)?;
        let (member, all) = (steps.member, trace.collective(index));
        let sizes = Sizes::from_sums(member.operation, member.ranks, amounts.send.0, amounts.recv.0);
        if let (true, Sizes::Bytes(n @ 0..=MOST)) = (trace.is_world(all.comm), sizes) {
            let root = member.root.into();
            let written: Option<(&str, &[u64])> = match member.operation {
                Operation::Barrier => Some(("barrier", &[])),
                Operation::Bcast => Some(("bcast", &[n, root])),
                Operation::Reduce => Some(("reduce", &[n, 0, root])),
                Operation::Allreduce => Some(("allreduce", &[n, 0])),
                Operation::Gather => Some(("gather", &[n, n, root])),
                Operation::Scatter => Some(("scatter", &[n, n, root])),
                Operation::Allgather => Some(("allgather", &[n, n])),
                Operation::Alltoall => Some(("alltoall", &[n, n])),
                Operation::Scan => Some(("scan", &[n, 0])),
                Operation::Exscan => Some(("exscan", &[n, 0])),
                Operation::Gatherv
                | Operation::Scatterv
                | Operation::Allgatherv
                | Operation::Alltoallv
                | Operation::Alltoallw
                | Operation::ReduceScatter
                | Operation::ReduceScatterBlock => None,
            };
            if let Some((action, numbers)) = written {
                self.line(action, numbers.iter().copied());
                return Ok(());
            }
        }
        self.exported.expanded += u64::from(member.rank == 0);
        let tag = COLLECTIVES + (all.id.0 % u64::from(COLLECTIVES)) as u32;
        let mut posted = Vec::new();
        loop {
            match steps.next() {
                Some(Step::Send { to, bytes }) => self.send(to, tag, bytes),
                Some(Step::Receive { from, bytes }) => {
                    let parts = self.transfer("irecv", from, tag, bytes);
                    posted.extend(std::iter::repeat_n(from, parts));
                }
                step @ (Some(Step::Wait) | None) => {
                    for from in posted.drain(..) {
                        self.wait(from, tag);
                    }
                    if step.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

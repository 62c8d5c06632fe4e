//! The lines of SimGrid's actions.

use crate::decimal::number;
use crate::export::{COLLECTIVES, Export, Exported, MessageIndex, Part};
use collectives::Sizes;
use std::io::{self, Write};
use vef_format::operation::{Amounts, Operation};

/// SimGrid keeps sizes in 32 bits, so larger ones are counted in larger types: size and number of each.
const TYPES: [(u64, u32); 3] = [(16, 26), (8, 0), (4, 1)];
/// The largest count.
const MOST: u64 = i32::MAX as u64;

/// Writes lines.
pub(super) struct Actions<'a> {
    export: &'a Export<'a>,
    lines: Vec<u8>,
    pub(super) exported: Exported,
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

impl<'a> Actions<'a> {
    pub(super) fn new(export: &'a Export<'a>) -> Self {
        Self { export, lines: Vec::new(), exported: export.begin() }
    }

    /// Writes the lines to a file, if they are more than so many bytes.
    pub(super) fn write_to(&mut self, out: &mut impl Write, more_than: usize) -> io::Result<()> {
        if self.lines.len() > more_than {
            out.write_all(&self.lines)?;
            self.lines.clear();
        }
        Ok(())
    }

    /// Writes a line: an action of a rank with its numbers.
    pub(super) fn line(&mut self, rank: u32, action: &str, numbers: impl IntoIterator<Item = u64>) {
        number(&mut self.lines, rank.into());
        self.lines.push(b' ');
        self.lines.extend(action.as_bytes());
        for argument in numbers {
            self.lines.push(b' ');
            number(&mut self.lines, argument);
        }
        self.lines.push(b'\n');
        self.exported.operations += 1;
    }

    /// Writes a computation, in seconds with twelve decimals.
    pub(super) fn sleep(&mut self, rank: u32, picos: u64) {
        const SECOND: u64 = 1_000_000_000_000;
        self.line(rank, "sleep", [picos / SECOND]);
        self.lines.pop();
        // The decimals with their zeros: those of a number with a digit in front of them.
        let dot = self.lines.len();
        number(&mut self.lines, SECOND + picos % SECOND);
        self.lines[dot] = b'.';
        self.lines.push(b'\n');
    }

    /// Sends a message.
    pub(super) fn send(&mut self, from: u32, to: u32, tag: u32, bytes: u64) {
        self.transfer(from, "isend", to, tag, bytes);
        self.exported.message(bytes);
    }

    /// Posts a receive; returns the number of its parts.
    pub(super) fn post(&mut self, to: u32, from: u32, tag: u32, bytes: u64) -> usize {
        self.transfer(to, "irecv", from, tag, bytes)
    }

    /// Writes the lines of a send or receive; how many.
    fn transfer(&mut self, rank: u32, action: &str, peer: u32, tag: u32, bytes: u64) -> usize {
        let mut lines = 0;
        for (count, kind) in counts(bytes) {
            let numbers = [peer.into(), tag.into(), count].into_iter();
            self.line(rank, action, numbers.chain(kind.map(u64::from)));
            lines += 1;
        }
        lines
    }

    /// Waits for the parts of a message.
    pub(super) fn wait(&mut self, to: u32, from: u32, tag: u32, parts: usize) {
        for _ in 0..parts {
            self.line(to, "wait", [from, to, tag].map(u64::from));
        }
    }

    /// Receives a message.
    pub(super) fn receive(&mut self, index: MessageIndex) {
        let message = *self.export.trace.message(index);
        let (to, from, tag) = (message.dst.0, message.src.0, message.number % COLLECTIVES);
        let parts = self.post(to, from, tag, message.bytes);
        self.wait(to, from, tag, parts);
    }

    /// Writes a rank's part of a collective of the world, if SimGrid has it; otherwise it becomes messages.
    pub(super) fn collective(&mut self, rank: u32, part: &Part<'_>, amounts: Amounts) -> bool {
        let member = part.member;
        let sizes = Sizes::from_sums(member.operation, member.ranks, amounts.send.0, amounts.recv.0);
        let Sizes::Bytes(n @ 0..=MOST) = sizes else { return false };
        let root = member.root.into();
        let (action, numbers): (&str, &[u64]) = match member.operation {
            Operation::Barrier => ("barrier", &[]),
            Operation::Bcast => ("bcast", &[n, root]),
            Operation::Reduce => ("reduce", &[n, 0, root]),
            Operation::Allreduce => ("allreduce", &[n, 0]),
            Operation::Gather => ("gather", &[n, n, root]),
            Operation::Scatter => ("scatter", &[n, n, root]),
            Operation::Allgather => ("allgather", &[n, n]),
            Operation::Alltoall => ("alltoall", &[n, n]),
            Operation::Scan => ("scan", &[n, 0]),
            Operation::Exscan => ("exscan", &[n, 0]),
            Operation::Gatherv
            | Operation::Scatterv
            | Operation::Allgatherv
            | Operation::Alltoallv
            | Operation::Alltoallw
            | Operation::ReduceScatter
            | Operation::ReduceScatterBlock => return false,
        };
        self.line(rank, action, numbers.iter().copied());
        true
    }
}

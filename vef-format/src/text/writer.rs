//! Writes a trace of version 3.

use super::lines::Lines;
use crate::ids::{CommId, Rank};
use crate::raw::Raw;
use crate::record::{Counts, Header, Line, LocalCollective, Message, WriteError};
use std::io::Write;

/// Bytes written to the output at a time.
const BLOCK: usize = 256 << 10;

/// Writes a trace in text form, version 3, line by line.
///
/// The header comes first in the file, so its counts must be known at the start; [`Writer::finish`] compares them with what
/// was written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// Buffered lines.
    lines: Lines,
    header: Header,
    written: Counts,
}

impl<W: Write> Writer<W> {
    /// Writes the header to `out`, always as version 3 with an `nRecvDep` of 0. `out` needs no buffer.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let mut lines = Lines::new(header.tasks);
        lines.header(header);
        // The ids of collectives are not compared.
        let written = Counts { collectives: header.collectives, ..Counts::default() };
        Ok(Self { out, lines, header: *header, written })
    }

    /// Writes the communicator `id`; `members` are world ranks in communicator-rank order.
    pub fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WriteError> {
        if members.is_empty() {
            return Err(WriteError::NoMembers(id.0));
        }
        self.written.communicators += 1;
        self.lines.communicator(id, members)?;
        self.hand_over(BLOCK)
    }

    /// Writes a message or a local mark.
    #[inline]
    pub fn message(&mut self, message: &Message) -> Result<(), WriteError> {
        self.lines.raw(message.src, &Raw::of_message(message))?;
        self.hand_over(BLOCK)
    }

    /// Writes one task's part of a collective operation.
    #[inline]
    pub fn collective(&mut self, collective: &LocalCollective) -> Result<(), WriteError> {
        self.lines.raw(collective.task, &Raw::of_collective(collective))?;
        self.hand_over(BLOCK)
    }

    /// Writes a line.
    #[inline]
    pub fn line(&mut self, line: &Line<'_>) -> Result<(), WriteError> {
        match line {
            Line::Communicator { id, members } => self.communicator(*id, members),
            Line::Message(message) => self.message(message),
            Line::Collective(part) => self.collective(part),
        }
    }

    /// Writes lines that were formatted elsewhere, for the same number of tasks.
    pub fn lines(&mut self, lines: &Lines) -> Result<(), WriteError> {
        self.hand_over(0)?;
        self.out.write_all(lines.as_bytes())?;
        self.written.messages += lines.messages;
        self.written.local_collectives += lines.local_collectives;
        Ok(())
    }

    /// Writes the buffer, compares the numbers of lines with the header's, and returns the output.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.hand_over(0)?;
        self.out.flush()?;
        match self.header.wrong_counts(&self.written).next() {
            Some(wrong) => Err(WriteError::Count(wrong)),
            None => Ok(self.out),
        }
    }

    /// Writes the buffer if it has more than `least` bytes.
    #[inline(always)]
    fn hand_over(&mut self, least: usize) -> Result<(), WriteError> {
        let text = self.lines.as_bytes();
        if text.len() > least {
            self.out.write_all(text)?;
            self.written.messages += self.lines.messages;
            self.written.local_collectives += self.lines.local_collectives;
            self.lines.clear();
        }
        Ok(())
    }
}

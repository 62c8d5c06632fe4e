//! Writes a trace of version 3, at memory speed.

use super::digits::{self, MAX_DIGITS};
use super::error::WriteError;
use crate::ids::{CommId, Rank};
use crate::record::{Dependency, Header, LocalCollective, Message};
use std::io::Write;

/// Bytes handed to the output at a time.
const BLOCK: usize = 256 << 10;
/// Room for any point-to-point or collective line: nine numbers, each with a letter and a blank.
const LINE: usize = 9 * (MAX_DIGITS + 2) + 8;

/// Writes a trace in text form, version 3, line by line.
///
/// The header comes first in the file, so its counts must be known from the start; [`Writer::finish`] compares them
/// with what was written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// Text up to `at`, then room for at least one line.
    block: Vec<u8>,
    at: usize,
    header: Header,
    messages: u64,
    communicators: u64,
    local_collectives: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header to `out`, always as version 3 with an `nRecvDep` of 0. No buffer is needed around `out`.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let mut writer = Self {
            out,
            block: vec![0; BLOCK + LINE],
            at: 0,
            header: *header,
            messages: 0,
            communicators: 0,
            local_collectives: 0,
        };
        let mut line = Row { block: &mut writer.block, at: 0 };
        line.bytes(*b"VEF3");
        for number in [
            u64::from(header.tasks),
            header.messages,
            header.communicators,
            header.collectives,
            header.local_collectives,
            0,
            header.clock.0,
        ] {
            line.bytes(*b" ");
            line.number(number);
        }
        line.bytes(*b"\n");
        writer.at = line.at;
        Ok(writer)
    }

    /// Writes the communicator `id` of `members`, world ranks in communicator-rank order.
    pub fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WriteError> {
        if members.is_empty() {
            return Err(WriteError::NoMembers(id.0));
        }
        self.communicators += 1;
        let mut line = self.row()?;
        line.bytes(*b"C");
        line.number(id.0.into());
        self.at = line.at;
        for &member in members {
            self.known(member)?;
            let mut line = self.row()?;
            line.bytes(*b" ");
            line.number(member.0.into());
            self.at = line.at;
        }
        let mut line = self.row()?;
        line.bytes(*b"\n");
        self.at = line.at;
        Ok(())
    }

    /// Writes a message or a local mark.
    #[inline]
    pub fn message(&mut self, message: &Message) -> Result<(), WriteError> {
        self.known(message.src)?;
        self.known(message.dst)?;
        self.messages += 1;
        let mut line = self.row()?;
        line.number(message.id.0);
        line.bytes(*b" ");
        line.number(message.src.0.into());
        line.bytes(*b" ");
        line.number(message.dst.0.into());
        line.bytes(*b" ");
        line.number(message.bytes.0);
        line.waits(message.awaited, message.after, message.time.0);
        self.at = line.at;
        Ok(())
    }

    /// Writes one task's part of a collective operation.
    #[inline]
    pub fn collective(&mut self, collective: &LocalCollective) -> Result<(), WriteError> {
        self.known(collective.task)?;
        self.local_collectives += 1;
        let mut line = self.row()?;
        line.bytes(*b"G");
        line.number(collective.id.0);
        line.bytes(*b" C");
        line.number(collective.comm.0.into());
        line.bytes(*b" ");
        line.number(collective.op.0.into());
        line.bytes(*b" ");
        line.number(collective.task.0.into());
        line.bytes(*b" ");
        line.number(collective.amounts.send.0);
        line.bytes(*b" ");
        line.number(collective.amounts.recv.0);
        line.waits(false, collective.after, collective.time.0);
        self.at = line.at;
        Ok(())
    }

    /// Hands everything to the output, compares the numbers of lines with the header's, and gives the output back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.out.write_all(&self.block[..self.at])?;
        self.out.flush()?;
        for (kind, promised, written) in [
            ("point-to-point lines", self.header.messages, self.messages),
            ("communicators", self.header.communicators, self.communicators),
            ("lines of collectives", self.header.local_collectives, self.local_collectives),
        ] {
            if promised != written {
                return Err(WriteError::Count { kind, promised, written });
            }
        }
        Ok(self.out)
    }

    /// The place of the next line (or part of one), with room for it.
    #[inline(always)]
    fn row(&mut self) -> Result<Row<'_>, WriteError> {
        if self.at > BLOCK {
            self.out.write_all(&self.block[..self.at])?;
            self.at = 0;
        }
        Ok(Row { at: self.at, block: &mut self.block })
    }

    #[inline(always)]
    fn known(&self, task: Rank) -> Result<(), WriteError> {
        if task.0 >= self.header.tasks {
            return Err(WriteError::Rank { task: task.0, tasks: self.header.tasks });
        }
        Ok(())
    }
}

/// A line in the making: a position in a block that has room.
struct Row<'a> {
    block: &'a mut [u8],
    at: usize,
}

impl Row<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.block[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    #[inline(always)]
    fn number(&mut self, number: u64) {
        self.at = digits::write(self.block, self.at, number);
    }

    /// The last three fields, `dep`, `time` and `idDep`, and the line end.
    #[inline(always)]
    fn waits(&mut self, awaited: bool, after: Dependency, time: u64) {
        self.bytes([b' ', b'0' + after.code() + 4 * u8::from(awaited), b' ']);
        self.number(time);
        match after {
            Dependency::Start => self.bytes(*b" -1"),
            Dependency::Sent(id) | Dependency::Received(id) => {
                self.bytes(*b" ");
                self.number(id.0);
            }
            Dependency::Collective(id) => {
                self.bytes(*b" G");
                self.number(id.0);
            }
        }
        self.bytes(*b"\n");
    }
}

//! Lines of a trace as text in memory, at memory speed.

use super::digits::{self, MAX_DIGITS};
use super::error::WriteError;
use crate::ids::{CommId, Rank};
use crate::record::{Dependency, Header, LocalCollective, Message};

/// Room for any point-to-point or collective line: nine numbers, each with a letter and a blank.
const LINE: usize = 9 * (MAX_DIGITS + 2) + 8;

/// Lines of a trace, of version 3, in the making. Several threads can make some each, which one
/// [`Writer`](super::Writer) then takes in their order.
#[derive(Debug)]
pub struct Lines {
    /// Text up to `at`, then room.
    text: Vec<u8>,
    at: usize,
    /// Ranks are below this.
    tasks: u32,
    pub(super) messages: u64,
    pub(super) local_collectives: u64,
}

impl Lines {
    /// None yet, of a trace of `tasks` tasks.
    pub fn new(tasks: u32) -> Self {
        Self { text: Vec::new(), at: 0, tasks, messages: 0, local_collectives: 0 }
    }

    /// Makes it empty; it keeps its memory.
    pub fn clear(&mut self) {
        (self.at, self.messages, self.local_collectives) = (0, 0, 0);
    }

    /// The text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.at]
    }

    /// Adds a message or a local mark.
    ///
    /// # Errors
    /// [`WriteError::Rank`]
    #[inline]
    pub fn message(&mut self, message: &Message) -> Result<(), WriteError> {
        self.known(message.src)?;
        self.known(message.dst)?;
        self.messages += 1;
        let mut line = self.row();
        line.number(message.id.0, b' ');
        line.small(message.src.0.into(), b' ');
        line.small(message.dst.0.into(), b' ');
        line.number(message.bytes.0, b' ');
        line.waits(message.awaited, message.after, message.time.0);
        self.at = line.at;
        Ok(())
    }

    /// Adds one task's part of a collective operation.
    ///
    /// # Errors
    /// [`WriteError::Rank`]
    #[inline]
    pub fn collective(&mut self, collective: &LocalCollective) -> Result<(), WriteError> {
        self.known(collective.task)?;
        self.local_collectives += 1;
        let mut line = self.row();
        line.bytes(*b"G");
        line.number(collective.id.0, b' ');
        line.bytes(*b"C");
        line.small(collective.comm.0.into(), b' ');
        line.small(collective.op.0.into(), b' ');
        line.small(collective.task.0.into(), b' ');
        line.number(collective.amounts.send.0, b' ');
        line.number(collective.amounts.recv.0, b' ');
        line.waits(false, collective.after, collective.time.0);
        self.at = line.at;
        Ok(())
    }

    /// Adds the first line.
    pub(super) fn header(&mut self, header: &Header) {
        let mut line = self.row();
        line.bytes(*b"VEF3 ");
        line.number(header.tasks.into(), b' ');
        line.number(header.messages, b' ');
        line.number(header.communicators, b' ');
        line.number(header.collectives, b' ');
        line.number(header.local_collectives, b' ');
        line.number(0, b' ');
        line.number(header.clock.0, b'\n');
        self.at = line.at;
    }

    /// Adds a communicator, which has members.
    pub(super) fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WriteError> {
        let mut line = self.row();
        line.bytes(*b"C");
        line.number(id.0.into(), b' ');
        self.at = line.at;
        for &member in members {
            self.known(member)?;
            let mut line = self.row();
            line.small(member.0.into(), b' ');
            self.at = line.at;
        }
        // In place of the last blank.
        self.text[self.at - 1] = b'\n';
        Ok(())
    }

    /// The place of the next line (or part of one), with room for it.
    #[inline(always)]
    fn row(&mut self) -> Row<'_> {
        if self.text.len() - self.at < LINE {
            self.grow();
        }
        Row { text: &mut self.text, at: self.at }
    }

    #[cold]
    fn grow(&mut self) {
        self.text.resize(2 * self.text.len() + 4 * LINE, 0);
    }

    #[inline(always)]
    fn known(&self, task: Rank) -> Result<(), WriteError> {
        if task.0 >= self.tasks {
            return Err(WriteError::Rank { task: task.0, tasks: self.tasks });
        }
        Ok(())
    }
}

/// A line in the making: a position in text that has room.
struct Row<'a> {
    text: &'a mut [u8],
    at: usize,
}

impl Row<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.text[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    /// A number and the character behind it.
    #[inline(always)]
    fn number(&mut self, number: u64, end: u8) {
        self.at = digits::write(self.text, self.at, number, end);
    }

    /// [`Row::number`] of one that mostly is below 10^4.
    #[inline(always)]
    fn small(&mut self, number: u64, end: u8) {
        self.at = digits::write_small(self.text, self.at, number, end);
    }

    /// The last three fields, `dep`, `time` and `idDep`, and the line end.
    #[inline(always)]
    fn waits(&mut self, awaited: bool, after: Dependency, time: u64) {
        self.bytes([b'0' + after.code() + 4 * u8::from(awaited), b' ']);
        self.small(time, b' ');
        match after {
            Dependency::Start => self.bytes(*b"-1\n"),
            Dependency::Sent(id) | Dependency::Received(id) => self.number(id.0, b'\n'),
            Dependency::Collective(id) => {
                self.bytes(*b"G");
                self.number(id.0, b'\n');
            }
        }
    }
}

//! Lines of a trace as text in memory, at memory speed.

use super::digits::{self, MAX_DIGITS, ROOM};
use super::error::WriteError;
use crate::ids::{CommId, Rank};
use crate::record::{Dependency, Header, LocalCollective, Message};

/// Bytes of any point-to-point or collective line: nine numbers, each with a letter and a blank.
const LINE: usize = 9 * (MAX_DIGITS + 2) + 8;
const _: () = assert!(LINE < ROOM / 2);

/// Of so many ranks the text is at hand: a few kilobytes of cache.
const AT_HAND: u32 = 1024;

/// Lines of a trace, of version 3, in the making. Several threads can make some each, which one
/// [`Writer`](super::Writer) then takes in their order.
#[derive(Debug)]
pub struct Lines {
    /// Text up to `at`, then room.
    text: Vec<u8>,
    at: usize,
    /// Ranks are below this.
    tasks: u32,
    /// The first ranks as text with a blank; the highest byte is the length.
    ranks: Vec<u64>,
    ids: Counter,
    pub(super) messages: u64,
    pub(super) local_collectives: u64,
}

/// The id of the latest message, as text: mostly the next one's is one more.
#[derive(Debug, Default)]
struct Counter {
    next: u64,
    /// `next`, if its last digit is not zero, up to fifteen digits, and a blank.
    text: u128,
    length: usize,
    /// One in the last digit.
    one: u128,
    /// How often that can still be added.
    left: u32,
}

impl Counter {
    /// Another number than the one foreseen, or one that is written anew.
    #[cold]
    fn reset(&mut self, id: u64) {
        let mut room = [0; ROOM];
        self.length = digits::write(&mut room, 0, id, b' ');
        let Some(text) = room.first_chunk().filter(|_| self.length <= 16) else {
            self.left = 0;
            return;
        };
        self.one = 1 << (8 * (self.length - 2));
        self.text = u128::from_le_bytes(*text) + self.one;
        self.left = 9 - (id % 10) as u32;
        self.next = id + 1;
    }
}

impl Lines {
    /// None yet, of a trace of `tasks` tasks.
    pub fn new(tasks: u32) -> Self {
        let at_hand = |rank: u32| {
            let mut room = [0; ROOM];
            let length = digits::write(&mut room, 0, rank.into(), b' ');
            room.first_chunk().map_or(0, |text| u64::from_le_bytes(*text)) | (length as u64) << 56
        };
        let ranks = (0..tasks.min(AT_HAND)).map(at_hand).collect();
        let ids = Counter::default();
        Self { text: Vec::new(), at: 0, tasks, ranks, ids, messages: 0, local_collectives: 0 }
    }

    /// Makes it empty; it keeps its memory.
    pub fn clear(&mut self) {
        (self.at, self.messages, self.local_collectives) = (0, 0, 0);
    }

    /// The text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.at]
    }

    /// How many lines of messages, marks and collectives there are.
    pub fn count(&self) -> u64 {
        self.messages + self.local_collectives
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
        line.id(message.id.0);
        line.rank(message.src);
        line.rank(message.dst);
        line.number(message.bytes.0, b' ');
        line.waits(message.awaited, message.after, message.time.0);
        self.at = line.end();
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
        line.rank(collective.task);
        line.number(collective.amounts.send.0, b' ');
        line.number(collective.amounts.recv.0, b' ');
        line.waits(false, collective.after, collective.time.0);
        self.at = line.end();
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
        self.at = line.end();
    }

    /// Adds a communicator, which has members.
    pub(super) fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WriteError> {
        let mut line = self.row();
        line.bytes(*b"C");
        line.number(id.0.into(), b' ');
        self.at = line.end();
        for &member in members {
            self.known(member)?;
            let mut line = self.row();
            line.rank(member);
            self.at = line.end();
        }
        // In place of the last blank.
        self.text[self.at - 1] = b'\n';
        Ok(())
    }

    /// The place of the next line (or part of one), with room for it.
    #[inline(always)]
    fn row(&mut self) -> Row<'_> {
        if self.text.len() - self.at < ROOM {
            self.grow();
        }
        let Self { text, at, ranks, ids, .. } = self;
        match text[*at..].first_chunk_mut() {
            Some(text) => Row { text, begin: *at, at: 0, ranks, ids },
            None => unreachable!("there is room"),
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.text.resize(2 * self.text.len() + 4 * ROOM, 0);
    }

    #[inline(always)]
    fn known(&self, task: Rank) -> Result<(), WriteError> {
        if task.0 >= self.tasks {
            return Err(WriteError::Rank { task: task.0, tasks: self.tasks });
        }
        Ok(())
    }
}

/// A line in the making: a position in room for text.
struct Row<'a> {
    text: &'a mut [u8; ROOM],
    begin: usize,
    at: usize,
    ranks: &'a [u64],
    ids: &'a mut Counter,
}

impl Row<'_> {
    /// Where it ends in all text.
    #[inline(always)]
    fn end(&self) -> usize {
        self.begin + self.at
    }

    /// Up to eight characters.
    #[inline(always)]
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        let mut word = [0; 8];
        word[..N].copy_from_slice(&bytes);
        digits::put(self.text, self.at, u64::from_le_bytes(word));
        self.at += N;
    }

    /// The id of a message and a blank.
    #[inline(always)]
    fn id(&mut self, id: u64) {
        let ids = &mut *self.ids;
        if ids.left > 0 && ids.next == id {
            // A line begins with it.
            self.text[..16].copy_from_slice(&ids.text.to_le_bytes());
            self.at = ids.length;
            ids.left -= 1;
            ids.next += 1;
            ids.text += ids.one;
        } else {
            ids.reset(id);
            self.number(id, b' ');
        }
    }

    /// A rank and a blank.
    #[inline(always)]
    fn rank(&mut self, rank: Rank) {
        match self.ranks.get(rank.index()) {
            Some(&word) => {
                digits::put(self.text, self.at, word);
                self.at += (word >> 56) as usize;
            }
            None => self.small(rank.0.into(), b' '),
        }
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

//! Records, communicators and their order as bytes.
//!
//! A block stands alone: differences begin anew in each. Ids of neighbours differ little, so that most fields take one
//! or two bytes; arithmetic on ids wraps, so that any id comes back.
//!
//! A record begins with a word that tells the widths of its fields, so that a reader knows where each field is
//! before it has read any: nothing waits for anything, and no branch depends on a width.

use crate::capture::encode::{unzigzag, zigzag};
use crate::capture::varint::{Ended, MAX_LEN, Sink, Source};
use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, LocalCollective, Message};
use crate::text::Line;
use crate::units::{Bytes, Ticks};

/// Bits of a record's first word: dependency (2), awaited (1), kind (2), whether all fields have eight bytes (1), and
/// the widths of the first five fields (2 each).
const AWAITED: u64 = 4;
const MARK: u64 = 0;
const MESSAGE: u64 = 8;
const COLLECTIVE: u64 = 16;
const KIND: u64 = 24;
const WIDE: u64 = 32;
const WIDTHS: u32 = 6;
/// Bytes of the longest record.
pub(super) const LONGEST: usize = 3 + 7 * 8;
/// Bytes that can be read behind the last record, whatever they are.
pub(super) const MARGIN: usize = 40;

/// What is wrong with the content of a block, whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Garbled {
    /// A value is cut, or values are left.
    Length,
    /// A value out of its range.
    Value(&'static str),
}

impl From<Ended> for Garbled {
    fn from(_: Ended) -> Self {
        Self::Length
    }
}

impl Garbled {
    /// For people.
    pub(super) fn text(self) -> String {
        match self {
            Self::Length => "a block of another length than its items have".to_owned(),
            Self::Value(field) => format!("a block with a value of {field} that is out of range"),
        }
    }
}

/// Bytes that grow by varints.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    len: usize,
}

impl Packed {
    /// Appends `values`, of which there are at most twelve.
    #[inline]
    pub(super) fn put(&mut self, values: &[u64]) {
        debug_assert!(values.len() <= 12);
        let room = self.len + values.len() * MAX_LEN + MAX_LEN;
        if self.bytes.len() < room {
            self.bytes.resize(room.next_power_of_two(), 0);
        }
        let mut sink = Sink::new(&mut self.bytes, self.len);
        for &value in values {
            sink.put(value);
        }
        // The room just made suffices.
        self.len = sink.position().unwrap_or(self.len);
    }

    /// Appends the length of `text` and its bytes.
    pub(super) fn text(&mut self, text: &str) {
        self.put(&[text.len() as u64]);
        self.append(text.as_bytes());
    }

    /// Appends what was put elsewhere.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.truncate(self.len);
        self.bytes.extend_from_slice(bytes);
        self.len = self.bytes.len();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

/// The ids that the next record's are told from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    message: u64,
    collective: u64,
}

impl Before {
    #[inline]
    fn step(previous: &mut u64, id: u64) -> u64 {
        let step = id.wrapping_sub(*previous);
        *previous = id;
        zigzag(step as i64)
    }

    #[inline]
    fn follow(previous: &mut u64, step: u64) -> u64 {
        *previous = previous.wrapping_add(unzigzag(step) as u64);
        *previous
    }

    /// Appends a message or a local mark.
    #[inline]
    pub(super) fn message(&mut self, out: &mut Packed, message: &Message) {
        let tag = u64::from(message.after.code()) | if message.awaited { AWAITED } else { 0 };
        let after = self.dependency(message.after);
        let id = Self::step(&mut self.message, message.id.0);
        let time = message.time.0;
        if message.is_mark() {
            out.record(tag | MARK, [id, time, after, 0, 0], None);
        } else {
            let distance = i64::from(message.dst.0) - i64::from(message.src.0);
            out.record(tag | MESSAGE, [id, time, after, zigzag(distance), message.bytes.0], None);
        }
    }

    /// Appends a part of a collective.
    #[inline]
    pub(super) fn collective(&mut self, out: &mut Packed, part: &LocalCollective) {
        let tag = u64::from(part.after.code()) | COLLECTIVE;
        let after = self.dependency(part.after);
        let id = Self::step(&mut self.collective, part.id.0);
        let Amounts { send, recv } = part.amounts;
        let more = [part.comm.0.into(), part.op.0.into()];
        out.record(tag, [id, part.time.0, after, send.0, recv.0], Some(more));
    }

    /// A dependency's difference from the task's last record of its sort.
    #[inline]
    fn dependency(&self, after: Dependency) -> u64 {
        let difference = |id: u64, previous: u64| zigzag(id.wrapping_sub(previous) as i64);
        match after {
            Dependency::Start => 0,
            Dependency::Sent(id) | Dependency::Received(id) => difference(id.0, self.message),
            Dependency::Collective(id) => difference(id.0, self.collective),
        }
    }

    /// The record at `at` of a task in a trace of `tasks` tasks; `at` moves behind it. There are [`MARGIN`] bytes
    /// behind whatever is a record.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        task: Rank,
        tasks: u32,
    ) -> Result<Raw, Garbled> {
        let Some(room) = bytes.get(*at..).and_then(|rest| rest.first_chunk::<MARGIN>()) else {
            return Err(Garbled::Length);
        };
        let head = u64::from(u16::from_le_bytes([room[0], room[1]]));
        if head & WIDE != 0 {
            return self.read_wide(bytes, at, task, tasks);
        }
        let mut fields = Fields { room, at: 2 };
        let id = fields.take(head >> WIDTHS);
        let time = fields.take(head >> (WIDTHS + 2));
        let after = fields.take(head >> (WIDTHS + 4));
        let one = fields.take(head >> (WIDTHS + 6));
        let other = fields.take(head >> (WIDTHS + 8));
        let mut more = [0, 0];
        if head & KIND == COLLECTIVE {
            let widths = fields.byte();
            more = [fields.take(widths), fields.take(widths >> 2)];
        }
        *at += fields.at;
        self.assemble(head, [id, time, after, one, other], more, task, tasks)
    }

    #[cold]
    fn read_wide(&mut self, bytes: &[u8], at: &mut usize, task: Rank, tasks: u32) -> Result<Raw, Garbled> {
        let head = u64::from(u16::from_le_bytes([bytes[*at], bytes[*at + 1]]));
        *at += 2;
        let mut next = || {
            let word = bytes.get(*at..).and_then(|rest| rest.first_chunk()).ok_or(Garbled::Length)?;
            *at += 8;
            Ok::<u64, Garbled>(u64::from_le_bytes(*word))
        };
        let (mut fields, mut more) = ([0; 5], [0; 2]);
        for field in &mut fields {
            *field = next()?;
        }
        if head & KIND == COLLECTIVE {
            more = [next()?, next()?];
        }
        self.assemble(head, fields, more, task, tasks)
    }

    /// Fields, as they are stored, as what they mean.
    #[inline(always)]
    fn assemble(
        &mut self,
        head: u64,
        [id, time, after, one, other]: [u64; 5],
        [comm, op]: [u64; 2],
        task: Rank,
        tasks: u32,
    ) -> Result<Raw, Garbled> {
        let tag = head as u8 & 31;
        let previous = if tag & 3 == 3 { self.collective } else { self.message };
        let after = if tag & 3 == 0 { 0 } else { previous.wrapping_add(unzigzag(after) as u64) };
        let mut raw = Raw { tag, op: 0, to: task.0, id: 0, bytes: one, recv: other, time, after };
        if head & KIND == MESSAGE {
            raw.id = Self::follow(&mut self.message, id);
            let dst = i64::from(task.0).wrapping_add(unzigzag(one));
            raw.to = u32::try_from(dst).ok().filter(|&dst| dst < tasks).ok_or(Garbled::Value("dst"))?;
            (raw.bytes, raw.recv) = (other, 0);
        } else if head & (KIND | AWAITED) == MARK && one | other == 0 {
            raw.id = Self::follow(&mut self.message, id);
        } else if head & (KIND | AWAITED) == COLLECTIVE {
            raw.id = Self::follow(&mut self.collective, id);
            raw.to = u32::try_from(comm).map_err(|_| Garbled::Value("comm"))?;
            raw.op = u16::try_from(op).map_err(|_| Garbled::Value("op"))?;
        } else {
            return Err(Garbled::Value("the first word"));
        }
        Ok(raw)
    }
}

/// How many bytes a field has by its two bits.
const BYTES: [u8; 4] = [0, 1, 2, 4];
/// Those bytes of a word.
const MASKS: [u64; 4] = [0, 0xff, 0xffff, 0xffff_ffff];

/// The fields of a record, one after the other.
struct Fields<'a> {
    room: &'a [u8; MARGIN],
    /// Never beyond `3 + 7 × 4`.
    at: usize,
}

impl Fields<'_> {
    /// The next field, whose width are the two low bits.
    #[inline(always)]
    fn take(&mut self, width: u64) -> u64 {
        let width = (width & 3) as usize;
        // Masked, so that no check remains in the machine code.
        let word = self.room[self.at & 31..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        self.at += usize::from(BYTES[width]);
        word & MASKS[width]
    }

    #[inline(always)]
    fn byte(&mut self) -> u64 {
        self.at += 1;
        self.room[(self.at - 1) & 31].into()
    }
}

impl Packed {
    /// Appends a record: its first word but the widths, its first five fields, and a collective's last two.
    #[inline]
    fn record(&mut self, tag: u64, fields: [u64; 5], more: Option<[u64; 2]>) {
        // A field may be written as a word, whatever its width.
        let room = self.len + LONGEST + 8;
        if self.bytes.len() < room {
            self.bytes.resize(room.next_power_of_two(), 0);
        }
        let mut head = tag;
        let start = self.len;
        self.len += 2;
        let all = fields.iter().chain(more.iter().flatten()).fold(0, |all, &field| all | field);
        if all >> 32 != 0 {
            head |= WIDE;
            for field in fields.iter().chain(more.iter().flatten()) {
                self.field(*field, 8);
            }
        } else {
            for (number, &field) in fields.iter().enumerate() {
                let width = width(field);
                head |= (width as u64) << (WIDTHS + 2 * number as u32);
                self.field(field, BYTES[width].into());
            }
            if let Some([comm, op]) = more {
                let widths = [width(comm), width(op)];
                self.field((widths[0] | widths[1] << 2) as u64, 1);
                self.field(comm, BYTES[widths[0]].into());
                self.field(op, BYTES[widths[1]].into());
            }
        }
        self.bytes[start..start + 2].copy_from_slice(&(head as u16).to_le_bytes());
    }

    #[inline(always)]
    fn field(&mut self, value: u64, bytes: usize) {
        self.bytes[self.len..self.len + 8].copy_from_slice(&value.to_le_bytes());
        self.len += bytes;
    }
}

/// The two bits for the width of a value below 2^32.
#[inline(always)]
fn width(value: u64) -> usize {
    usize::from(value > 0) + usize::from(value > 0xff) + usize::from(value > 0xffff)
}

/// A record as plain fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    tag: u8,
    /// The operation's code, of a collective.
    pub op: u16,
    /// The receiver, or the collective's communicator; a mark's own task.
    pub to: u32,
    /// The id, of a message or mark, or of a collective.
    pub id: u64,
    /// Payload, or what the task contributes to a collective.
    pub bytes: u64,
    /// What the task obtains from a collective.
    pub recv: u64,
    /// Computing time in front of it, in ticks.
    pub time: u64,
    /// The id of what it waits for; 0 where that is nothing.
    pub after: u64,
}

/// What a [`Raw`] record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawKind {
    /// A local mark.
    Mark,
    /// A message.
    Message,
    /// A part of a collective.
    Collective,
}

impl Raw {
    /// What it is.
    #[inline(always)]
    pub fn kind(&self) -> RawKind {
        match u64::from(self.tag) & KIND {
            MESSAGE => RawKind::Message,
            COLLECTIVE => RawKind::Collective,
            _ => RawKind::Mark,
        }
    }

    /// Whether somebody waits for the reception of this message.
    #[inline(always)]
    pub fn awaited(&self) -> bool {
        u64::from(self.tag) & AWAITED != 0
    }

    /// What [`Raw::after`] is, as [`Dependency::code`] numbers it.
    #[inline(always)]
    pub fn dependency_code(&self) -> u8 {
        self.tag & 3
    }

    /// The record of `task` that this is.
    #[inline]
    pub(super) fn line(self, task: Rank) -> Line<'static> {
        let after = match self.dependency_code() {
            0 => Dependency::Start,
            1 => Dependency::Sent(MessageId(self.after)),
            2 => Dependency::Received(MessageId(self.after)),
            _ => Dependency::Collective(CollectiveId(self.after)),
        };
        let time = Ticks(self.time);
        match self.kind() {
            RawKind::Collective => Line::Collective(LocalCollective {
                id: CollectiveId(self.id),
                comm: CommId(self.to),
                op: OpCode(self.op),
                task,
                amounts: Amounts { send: Bytes(self.bytes), recv: Bytes(self.recv) },
                after,
                time,
            }),
            RawKind::Mark | RawKind::Message => Line::Message(Message {
                id: MessageId(self.id),
                src: task,
                dst: Rank(self.to),
                bytes: Bytes(self.bytes),
                awaited: self.awaited(),
                after,
                time,
            }),
        }
    }
}

/// Steps that repeat: what lists of ranks are made of. All tasks in order are one run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    previous: u32,
    step: i64,
    repeated: u64,
}

impl Runs {
    /// Appends `rank`; what repeats is held back until [`Runs::end`].
    #[inline]
    pub(super) fn put(&mut self, out: &mut Packed, rank: u32) {
        let step = i64::from(rank) - i64::from(self.previous);
        self.previous = rank;
        if self.repeated > 0 && step == self.step {
            self.repeated += 1;
            return;
        }
        self.end(out);
        (self.step, self.repeated) = (step, 1);
    }

    /// Appends what was held back.
    pub(super) fn end(&mut self, out: &mut Packed) {
        if self.repeated > 0 {
            out.put(&[zigzag(self.step), self.repeated - 1]);
        }
        self.repeated = 0;
    }

    /// The next rank below `tasks`.
    #[inline]
    pub(super) fn next(&mut self, from: &mut Source<'_>, tasks: u32) -> Result<u32, Garbled> {
        if self.repeated == 0 {
            self.step = unzigzag(from.get()?);
            self.repeated = from.get()?.checked_add(1).ok_or(Garbled::Value("a repetition"))?;
        }
        self.repeated -= 1;
        let rank = i64::from(self.previous).checked_add(self.step).and_then(|rank| u32::try_from(rank).ok());
        self.previous = rank.filter(|&rank| rank < tasks).ok_or(Garbled::Value("a rank"))?;
        Ok(self.previous)
    }

    /// Whether nothing of a run is left.
    pub(super) fn is_over(&self) -> bool {
        self.repeated == 0
    }
}

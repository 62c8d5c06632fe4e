//! Records, communicators and their order as bytes.
//!
//! A block stands alone: differences begin anew in each. Ids of neighbours differ little, so that most fields take one
//! or two bytes; arithmetic on ids wraps, so that any id comes back.
//!
//! A record begins with a word that tells the widths of its fields, so that a reader knows where each field is
//! before it has read any: nothing waits for anything, and no branch depends on a width.

use crate::capture::encode::{unzigzag, zigzag};
use crate::capture::varint::{Ended, MAX_LEN, Sink, Source};
use crate::ids::Rank;
use crate::raw::{AWAITED, COLLECTIVE, DEPENDENCY, KIND, MARK, MESSAGE, Raw};
use crate::record::{Dependency, LocalCollective, Message};

/// Bits of a record's first word: its tag (5, see [`Raw`]), whether all fields have eight bytes (1), and the widths
/// of the first five fields (2 each).
const TAG: u16 = 31;
const WIDE: u16 = 32;
const WIDTHS: u32 = 6;
/// Bytes of the longest record.
pub(super) const LONGEST: usize = 2 + 7 * 8;
/// Bytes that can be read behind the beginning of any record, whatever they are: as far as an 8-bit distance goes, so
/// that none has to be checked.
pub(super) const ROOM: usize = 256 + 8;

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
    /// Appends a message or a local mark.
    #[inline]
    pub(super) fn message(&mut self, out: &mut Packed, message: &Message) {
        let tag = message.after.code() | if message.awaited { AWAITED } else { 0 };
        let (after, time) = (self.dependency(message.after), Field::unsigned(message.time.0));
        let id = Field::difference(std::mem::replace(&mut self.message, message.id.0), message.id.0);
        if message.is_mark() {
            out.record(tag | MARK, [id, time, after, Field::ZERO, Field::ZERO], None);
        } else {
            let distance = Field::signed(i64::from(message.dst.0) - i64::from(message.src.0));
            out.record(tag | MESSAGE, [id, time, after, distance, Field::unsigned(message.bytes.0)], None);
        }
    }

    /// Appends a part of a collective.
    #[inline]
    pub(super) fn collective(&mut self, out: &mut Packed, part: &LocalCollective) {
        let tag = part.after.code() | COLLECTIVE;
        let (after, time) = (self.dependency(part.after), Field::unsigned(part.time.0));
        let id = Field::difference(std::mem::replace(&mut self.collective, part.id.0), part.id.0);
        let [send, recv] = [part.amounts.send.0, part.amounts.recv.0].map(Field::unsigned);
        let more = [part.comm.0.into(), part.op.0.into()].map(Field::unsigned);
        out.record(tag, [id, time, after, send, recv], Some(more));
    }

    /// A dependency's difference from the task's last record of its sort.
    #[inline]
    fn dependency(&self, after: Dependency) -> Field {
        match after {
            Dependency::Start => Field::ZERO,
            Dependency::Sent(id) | Dependency::Received(id) => Field::difference(self.message, id.0),
            Dependency::Collective(id) => Field::difference(self.collective, id.0),
        }
    }

    /// The record at `at` of a task in a trace of `tasks` tasks; `at` moves behind it, at most to `end`.
    /// There are [`ROOM`] bytes behind the beginning of whatever is a record.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        end: usize,
        (task, tasks): (Rank, u32),
    ) -> Result<Raw, Garbled> {
        let Some(room) = bytes.get(*at..).and_then(|rest| rest.first_chunk::<ROOM>()) else {
            return Err(Garbled::Length);
        };
        let head = head(room);
        if head & (WIDE | u16::from(COLLECTIVE)) != 0 {
            let (raw, length) = self.read_other(room, (task, tasks))?;
            *at += length;
            return if *at <= end { Ok(raw) } else { Err(Garbled::Length) };
        }
        let tag = (head & TAG) as u8;
        let layout = &LAYOUTS[usize::from(head >> WIDTHS)];
        *at += usize::from(layout.end);
        if *at > end {
            return Err(Garbled::Length);
        }
        let after = self.depends(tag, layout.signed(room, 2));
        self.message = self.message.wrapping_add(layout.signed(room, 0));
        let (to, bytes) = match tag & KIND {
            MESSAGE => (receiver(task, layout.signed(room, 3), tasks)?, layout.unsigned(room, 4)),
            _ if tag & AWAITED == 0 && head >> (WIDTHS + 2 * 3) == 0 => (task.0, 0),
            _ => return Err(Garbled::Value("the first word")),
        };
        Ok(Raw { tag, op: 0, to, id: self.message, bytes, recv: 0, time: layout.unsigned(room, 1), after })
    }

    /// A collective, or any record with fields of eight bytes, and its length.
    #[inline(never)]
    fn read_other(&mut self, room: &[u8; ROOM], (task, tasks): (Rank, u32)) -> Result<(Raw, usize), Garbled> {
        let head = head(room);
        let tag = (head & TAG) as u8;
        let ([id, time, after, one, other, comm, op], length) = match head & WIDE {
            0 => collective_fields(room, &LAYOUTS[usize::from(head >> WIDTHS)]),
            _ => wide_fields(room, tag),
        };
        let after = self.depends(tag, after);
        if tag & KIND == COLLECTIVE && tag & AWAITED == 0 {
            self.collective = self.collective.wrapping_add(id);
            let to = u32::try_from(comm).map_err(|_| Garbled::Value("comm"))?;
            let op = u16::try_from(op).map_err(|_| Garbled::Value("op"))?;
            let raw = Raw { tag, op, to, id: self.collective, bytes: one, recv: other, time, after };
            return Ok((raw, length));
        }
        self.message = self.message.wrapping_add(id);
        let (to, bytes) = match tag & KIND {
            MESSAGE => (receiver(task, one, tasks)?, other),
            MARK if tag & AWAITED == 0 && one | other == 0 => (task.0, 0),
            _ => return Err(Garbled::Value("the first word")),
        };
        Ok((Raw { tag, op: 0, to, id: self.message, bytes, recv: 0, time, after }, length))
    }

    /// The id of what a record waits for, by its difference from the last of that sort.
    #[inline(always)]
    fn depends(&self, tag: u8, difference: u64) -> u64 {
        match tag & DEPENDENCY {
            0 => 0,
            3 => self.collective.wrapping_add(difference),
            _ => self.message.wrapping_add(difference),
        }
    }
}

/// The first word of a record.
#[inline(always)]
fn head(room: &[u8; ROOM]) -> u16 {
    room.first_chunk().map_or(0, |head| u16::from_le_bytes(*head))
}

/// The task that is so far from another.
#[inline(always)]
fn receiver(task: Rank, distance: u64, tasks: u32) -> Result<u32, Garbled> {
    let to = u64::from(task.0).wrapping_add(distance);
    if to < u64::from(tasks) { Ok(to as u32) } else { Err(Garbled::Value("dst")) }
}

/// The fields of a record in which all have eight bytes, and its length.
fn wide_fields(room: &[u8; ROOM], tag: u8) -> ([u64; 7], usize) {
    let count = if tag & KIND == COLLECTIVE { 7 } else { 5 };
    let mut fields = [0; 7];
    for (field, word) in fields[..count].iter_mut().zip(room[2..].as_chunks().0) {
        *field = u64::from_le_bytes(*word);
    }
    (fields, 2 + 8 * count)
}

/// The fields of a collective, and its length: behind the first five stand the widths of the last two.
fn collective_fields(room: &[u8; ROOM], layout: &Layout) -> ([u64; 7], usize) {
    let mut at = usize::from(layout.end) + 1;
    let widths = usize::from(room[at - 1]);
    let [comm, op] = [widths & 3, widths >> 2 & 3].map(|width| {
        let word = room[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        at += usize::from(BYTES[width]);
        u64::from(word & MASKS[width])
    });
    let [id, after] = [0, 2].map(|number| layout.signed(room, number));
    let [time, send, recv] = [1, 3, 4].map(|number| layout.unsigned(room, number));
    ([id, time, after, send, recv, comm, op], at)
}

/// How many bytes a field has by its two bits.
const BYTES: [u8; 4] = [0, 1, 2, 4];
/// Those bytes of a word.
const MASKS: [u32; 4] = [0, 0xff, 0xffff, 0xffff_ffff];
/// What is added to a difference in so many bytes so that it is not negative.
const EXCESS: [u32; 4] = [0, 1 << 7, 1 << 15, 1 << 31];

/// Where the first five fields of a record are, by the bits that tell their widths.
#[derive(Clone, Copy)]
struct Layout {
    masks: [u32; 5],
    excess: [u32; 5],
    starts: [u8; 5],
    /// Where the last of them ends.
    end: u8,
}

static LAYOUTS: [Layout; 1 << 10] = {
    let mut layouts = [Layout { masks: [0; 5], excess: [0; 5], starts: [0; 5], end: 2 }; 1 << 10];
    let mut widths = 0;
    while widths < layouts.len() {
        let layout = &mut layouts[widths];
        let mut number = 0;
        while number < 5 {
            let width = widths >> (2 * number) & 3;
            layout.masks[number] = MASKS[width];
            layout.excess[number] = EXCESS[width];
            layout.starts[number] = layout.end;
            layout.end += BYTES[width];
            number += 1;
        }
        widths += 1;
    }
    layouts
};

impl Layout {
    #[inline(always)]
    fn field(&self, room: &[u8; ROOM], number: usize) -> u32 {
        let word = room[usize::from(self.starts[number])..]
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word));
        word & self.masks[number]
    }

    #[inline(always)]
    fn unsigned(&self, room: &[u8; ROOM], number: usize) -> u64 {
        self.field(room, number).into()
    }

    /// A difference, as a number that wraps.
    #[inline(always)]
    fn signed(&self, room: &[u8; ROOM], number: usize) -> u64 {
        i64::from(self.field(room, number).wrapping_sub(self.excess[number]) as i32) as u64
    }
}

/// A value to be written: with how many bytes it can be, and what is added to it then.
#[derive(Clone, Copy)]
struct Field {
    value: u64,
    /// Its two bits, or [`Field::WIDE`].
    width: u8,
    excess: u32,
}

impl Field {
    const ZERO: Self = Self { value: 0, width: 0, excess: 0 };
    /// Eight bytes are needed.
    const WIDE: u8 = 4;

    #[inline(always)]
    fn unsigned(value: u64) -> Self {
        let wider = |than: u32| u8::from(value > than.into());
        let width = wider(0) + wider(MASKS[1]) + wider(MASKS[2]) + wider(MASKS[3]);
        Self { value, width, excess: 0 }
    }

    #[inline(always)]
    fn signed(value: i64) -> Self {
        // As many bytes as the same number without a sign and its highest bit take.
        // One bit more than the magnitude has; zero takes no byte at all.
        let magnitude = (value ^ value >> 63) as u64;
        let wider = |bits: u32| u8::from(magnitude >> bits != 0);
        let width = u8::from(value != 0) + wider(7) + wider(15) + wider(31);
        Self { value: value as u64, width, excess: EXCESS[usize::from(width & 3)] }
    }

    /// From one id to another.
    #[inline(always)]
    fn difference(from: u64, to: u64) -> Self {
        Self::signed(to.wrapping_sub(from) as i64)
    }
}

impl Packed {
    /// Appends a record: its first word but the widths, its first five fields, and a collective's last two.
    #[inline]
    fn record(&mut self, tag: u8, fields: [Field; 5], more: Option<[Field; 2]>) {
        // A field may be written as a word, whatever its width.
        let room = self.len + LONGEST + 8;
        if self.bytes.len() < room {
            self.bytes.resize(room.next_power_of_two(), 0);
        }
        let mut head = u16::from(tag);
        let start = self.len;
        self.len += 2;
        let mut all = fields.iter().chain(more.iter().flatten());
        if all.any(|field| field.width == Field::WIDE) {
            head |= WIDE;
            for field in fields.iter().chain(more.iter().flatten()) {
                self.append_word(field.value, 8);
            }
        } else {
            for (number, field) in fields.iter().enumerate() {
                head |= u16::from(field.width) << (WIDTHS + 2 * number as u32);
                self.field(field);
            }
            if let Some([comm, op]) = &more {
                self.append_word((comm.width | op.width << 2).into(), 1);
                self.field(comm);
                self.field(op);
            }
        }
        self.bytes[start..start + 2].copy_from_slice(&head.to_le_bytes());
    }

    /// Appends a value of up to four bytes.
    #[inline(always)]
    fn field(&mut self, field: &Field) {
        let value = field.value.wrapping_add(field.excess.into());
        self.append_word(value, BYTES[usize::from(field.width & 3)].into());
    }

    #[inline(always)]
    fn append_word(&mut self, value: u64, bytes: usize) {
        self.bytes[self.len..self.len + 8].copy_from_slice(&value.to_le_bytes());
        self.len += bytes;
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

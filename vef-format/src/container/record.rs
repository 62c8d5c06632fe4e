//! A task's records as bytes.
//!
//! Each block is self-contained: delta coding begins anew in it. Ids of neighbours differ little, so most fields take one or
//! two bytes. Arithmetic on ids wraps, so any id can be encoded.
//!
//! A record begins with a word that has the widths of its fields. So a reader knows where each field is before it has read
//! any: the fields are read independently of each other, and no branch depends on a width.
//!
//! A message and the local mark in front of it are encoded as one *pair* if the mark depends on the record before it. This is
//! so wherever a program waits for one message at a time; a reader that skips marks then has half as many records. The marks
//! of a wait for several messages are encoded alone.

use super::code::{Garbled, Packed};
use crate::ids::Rank;
use crate::raw::{AWAITED, COLLECTIVE, DEPENDENCY, KIND, LeadingMark, MARK, MESSAGE, Raw};
use crate::varint::zigzag;

/// Bits of a record's first word: its tag (5, see [`Raw`]), whether all fields have eight bytes (1), and the widths
/// of the first five fields (2 each).
const TAG: u16 = 31;
const WIDE: u16 = 32;
const WIDTHS: u32 = 6;
/// Instead of a kind: a message and the mark in front of it. A third byte then has the widths of the mark's fields.
const PAIR: u8 = MESSAGE | COLLECTIVE;
/// Bytes of the longest record.
pub(super) const LONGEST: usize = 2 + 7 * 8;
/// Bytes that must be readable from the beginning of any record on: the largest 8-bit distance, and a field behind it. So no
/// field needs a bounds check.
pub(super) const ROOM: usize = 1 + 256 + 8;
/// The same behind the beginning of its fields.
const REACH: usize = ROOM - 1;

/// The ids relative to which the next record's ids are encoded.
#[derive(Clone, Copy, Debug, Default)]
struct Ids {
    message: u64,
    collective: u64,
}

/// Writes the records of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Encoder {
    ids: Ids,
    /// A pending mark that depends on the record before it: a message with which it is a pair may follow.
    mark: Option<Raw>,
}

impl Encoder {
    /// Appends a record of `task`; a mark may be pending until the next call.
    #[inline(always)]
    pub(super) fn record(&mut self, out: &mut Packed, task: Rank, raw: &Raw) {
        if let Some(mark) = self.mark.take() {
            if raw.tag & KIND == MESSAGE && self.pair(out, task, &mark, raw) {
                return;
            }
            self.alone_mark(out, task, mark);
        }
        match raw.is_mark_behind(self.ids.message) {
            true => self.mark = Some(*raw),
            false => self.alone(out, task, raw),
        }
    }

    /// Ends the block of `task`: appends the pending mark.
    pub(super) fn end(&mut self, out: &mut Packed, task: Rank) {
        if let Some(mark) = self.mark.take() {
            self.alone_mark(out, task, mark);
        }
    }

    /// Appends a mark that is not in a pair.
    #[inline(never)]
    fn alone_mark(&mut self, out: &mut Packed, task: Rank, mark: Raw) {
        self.alone(out, task, &mark);
    }

    /// Appends a record that is not in a pair.
    #[inline(always)]
    fn alone(&mut self, out: &mut Packed, task: Rank, raw: &Raw) {
        let after = self.ids.difference(raw);
        let last =
            if raw.tag & KIND == COLLECTIVE { &mut self.ids.collective } else { &mut self.ids.message };
        let id = raw.id.wrapping_sub(std::mem::replace(last, raw.id));
        let mut row = Row::new(out, 2);
        row.signed(0, id);
        row.unsigned(1, raw.time);
        row.signed(2, after);
        match raw.tag & KIND {
            MARK => {}
            MESSAGE => {
                row.signed(3, distance(task, raw));
                row.unsigned(4, raw.bytes);
            }
            _ => {
                row.unsigned(3, raw.bytes);
                row.unsigned(4, raw.recv);
                let widths = row.gap();
                row.unsigned(5, raw.to.into());
                row.unsigned(6, raw.op.into());
                row.set_more(widths);
            }
        }
        match row.end(raw.tag) {
            Some(length) => out.advance(length),
            None => out.wide_record(task, raw, [id, after]),
        }
    }

    /// Appends a mark and a message as a pair; returns `false` if they cannot be one.
    fn pair(&mut self, out: &mut Packed, task: Rank, mark: &Raw, message: &Raw) -> bool {
        let ids = Ids { message: mark.id, ..self.ids };
        let mut row = Row::new(out, 3);
        row.signed(0, message.id.wrapping_sub(mark.id));
        row.unsigned(1, message.time);
        row.signed(2, ids.difference(message));
        row.signed(3, distance(task, message));
        row.unsigned(4, message.bytes);
        row.signed(5, mark.id.wrapping_sub(self.ids.message));
        row.unsigned(6, mark.time);
        row.set_more(2);
        let Some(length) = row.end(message.tag & !KIND | PAIR) else { return false };
        out.advance(length);
        self.ids.message = message.id;
        true
    }
}

impl Ids {
    /// The difference of a record's dependency from the task's last id of the same kind; 0 without a dependency.
    #[inline(always)]
    fn difference(&self, raw: &Raw) -> u64 {
        match raw.tag & DEPENDENCY {
            0 => 0,
            3 => raw.after.wrapping_sub(self.collective),
            _ => raw.after.wrapping_sub(self.message),
        }
    }

    /// The id of a dependency, from its difference from the last id of the same kind.
    #[inline(always)]
    fn depends(&self, tag: u8, difference: u64) -> u64 {
        match tag & DEPENDENCY {
            0 => 0,
            3 => self.collective.wrapping_add(difference),
            _ => self.message.wrapping_add(difference),
        }
    }
}

/// The difference between source and destination of a message.
#[inline(always)]
fn distance(task: Rank, message: &Raw) -> u64 {
    u64::from(message.to).wrapping_sub(task.0.into())
}

/// Reads the records of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoder {
    ids: Ids,
}

impl Decoder {
    /// The record at `at` of a task in a trace of `tasks` tasks, and the mark in front of it if they are a pair; advances `at`,
    /// at most to `end`. [`ROOM`] bytes are readable from the beginning of any record on.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        end: usize,
        (task, tasks): (Rank, u32),
    ) -> Result<(Option<LeadingMark>, Raw), Garbled> {
        let Some(room) = bytes.get(*at..).and_then(|rest| rest.first_chunk::<ROOM>()) else {
            return Err(Garbled::Length);
        };
        let head = head(room);
        let (record, length) = match head & (WIDE | u16::from(KIND)) {
            kind if kind == u16::from(PAIR) => {
                let (mark, raw, length) = self.read_other_pair(room, (task, tasks))?;
                ((Some(mark), raw), length)
            }
            kind if kind == u16::from(MESSAGE) || kind == u16::from(MARK) => {
                let (raw, length) = self.read_plain(room, (task, tasks))?;
                ((None, raw), length)
            }
            _ => {
                let (raw, length) = self.read_other(room, (task, tasks))?;
                ((None, raw), length)
            }
        };
        *at += length;
        if *at <= end { Ok(record) } else { Err(Garbled::Length) }
    }

    /// The mark that begins a pair at `at` behind `after`, and the length of the pair, if there is one; its message goes to `raw`.
    /// Without a pair `raw` may have changed. A caller that takes the pair calls [`Decoder::pass`].
    #[inline(always)]
    pub(super) fn pair(
        &self,
        bytes: &[u8],
        at: usize,
        after: u64,
        about: (Rank, u32),
        raw: &mut Raw,
    ) -> Option<(LeadingMark, usize)> {
        let room = bytes.get(at..)?.first_chunk::<ROOM>()?;
        if head(room) & (WIDE | u16::from(KIND)) != u16::from(PAIR) || self.ids.message != after {
            return None;
        }
        self.read_pair(room, about, raw).ok()
    }

    /// The message with this id was the last record that was taken.
    #[inline(always)]
    pub(super) fn pass(&mut self, message: u64) {
        self.ids.message = message;
    }

    /// Reads a pair: stores the message in `raw`, and returns the mark in front of it and their length.
    ///
    /// Every field is checked and stored as soon as it is read: fewer values are live at a time than the processor has registers.
    #[inline(always)]
    fn read_pair(
        &self,
        room: &[u8; ROOM],
        (task, tasks): (Rank, u32),
        raw: &mut Raw,
    ) -> Result<(LeadingMark, usize), Garbled> {
        let head = head(room);
        let tag = (head & TAG) as u8;
        let layout = &LAYOUTS[usize::from(head >> WIDTHS)];
        let fields: &[u8; REACH] = room.last_chunk().unwrap_or(&[0; REACH]);
        (raw.tag, raw.op, raw.recv) = (tag & !KIND | MESSAGE, 0, 0);
        raw.time = layout.unsigned(fields, 1);
        raw.bytes = layout.unsigned(fields, 4);
        raw.to = receiver(task, layout.signed(fields, 3), tasks)?;
        let widths = MARKS.get(usize::from(room[2])).ok_or(Garbled::Value("the widths of a mark"))?;
        let difference = (narrow(fields, layout.end.into()) & widths.id_mask).wrapping_sub(widths.id_excess);
        let after = self.ids.message;
        let id = after.wrapping_add(i64::from(difference as i32) as u64);
        let time = narrow(fields, layout.end.wrapping_add(widths.time_start).into()) & widths.time_mask;
        let ids = Ids { message: id, ..self.ids };
        raw.after = ids.depends(tag, layout.signed(fields, 2));
        raw.id = id.wrapping_add(layout.signed(fields, 0));
        let length = 1 + usize::from(layout.end.wrapping_add(widths.end));
        Ok((LeadingMark { after, id, time: time.into() }, length))
    }

    /// [`Decoder::read_pair`] for callers that rarely need it.
    #[inline(never)]
    fn read_other_pair(
        &mut self,
        room: &[u8; ROOM],
        about: (Rank, u32),
    ) -> Result<(LeadingMark, Raw, usize), Garbled> {
        let mut raw = Raw::NOTHING;
        let (mark, length) = self.read_pair(room, about, &mut raw)?;
        self.pass(raw.id);
        Ok((mark, raw, length))
    }

    /// A message or a mark that is not in a pair, and its length.
    #[inline(always)]
    fn read_plain(&mut self, room: &[u8; ROOM], (task, tasks): (Rank, u32)) -> Result<(Raw, usize), Garbled> {
        let head = head(room);
        let tag = (head & TAG) as u8;
        let layout = &LAYOUTS[usize::from(head >> WIDTHS)];
        let room = room.first_chunk().unwrap_or(&[0; REACH]);
        let after = self.ids.depends(tag, layout.signed(room, 2));
        self.ids.message = self.ids.message.wrapping_add(layout.signed(room, 0));
        let (to, bytes) = match tag & KIND {
            MESSAGE => (receiver(task, layout.signed(room, 3), tasks)?, layout.unsigned(room, 4)),
            _ if tag & AWAITED == 0 && head >> (WIDTHS + 2 * 3) == 0 => (task.0, 0),
            _ => return Err(Garbled::Value("the first word")),
        };
        let raw = Raw {
            tag,
            op: 0,
            to,
            id: self.ids.message,
            bytes,
            recv: 0,
            time: layout.unsigned(room, 1),
            after,
        };
        Ok((raw, layout.end.into()))
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
        let after = self.ids.depends(tag, after);
        if tag & KIND == COLLECTIVE && tag & AWAITED == 0 {
            self.ids.collective = self.ids.collective.wrapping_add(id);
            let to = u32::try_from(comm).map_err(|_| Garbled::Value("comm"))?;
            let op = u16::try_from(op).map_err(|_| Garbled::Value("op"))?;
            let raw = Raw { tag, op, to, id: self.ids.collective, bytes: one, recv: other, time, after };
            return Ok((raw, length));
        }
        self.ids.message = self.ids.message.wrapping_add(id);
        let (to, bytes) = match tag & KIND {
            MESSAGE => (receiver(task, one, tasks)?, other),
            MARK if tag & AWAITED == 0 && one | other == 0 => (task.0, 0),
            _ => return Err(Garbled::Value("the first word")),
        };
        Ok((Raw { tag, op: 0, to, id: self.ids.message, bytes, recv: 0, time, after }, length))
    }
}

/// The first word of a record.
#[inline(always)]
fn head(room: &[u8; ROOM]) -> u16 {
    room.first_chunk().map_or(0, |head| u16::from_le_bytes(*head))
}

/// The task at a difference from another.
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

/// The fields of a collective, and its length: the widths of the last two fields follow the first five fields.
fn collective_fields(room: &[u8; ROOM], layout: &Layout) -> ([u64; 7], usize) {
    let room: &[u8; REACH] = room.first_chunk().unwrap_or(&[0; REACH]);
    let mut at = usize::from(layout.end) + 1;
    let widths = usize::from(room[at - 1]);
    let [comm, op] = [widths & 3, widths >> 2 & 3].map(|width| {
        let word = narrow(room, at) & MASKS[width];
        at += usize::from(BYTES[width]);
        u64::from(word)
    });
    let [id, after] = [0, 2].map(|number| layout.signed(room, number));
    let [time, send, recv] = [1, 3, 4].map(|number| layout.unsigned(room, number));
    ([id, time, after, send, recv, comm, op], at)
}

/// Length of a field in bytes, by its two bits.
const BYTES: [u8; 4] = [0, 1, 2, 4];
/// Mask of these bytes of a word.
const MASKS: [u32; 4] = [0, 0xff, 0xffff, 0xffff_ffff];
/// The offset that makes a difference of this length non-negative.
const EXCESS: [u32; 4] = [0, 1 << 7, 1 << 15, 1 << 31];

/// Positions of the first five fields of a record, by the bits of their widths.
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

/// Positions of the two fields of the mark of a pair, from the end of the message's fields on, by the bits of their widths.
#[derive(Clone, Copy)]
struct MarkLayout {
    id_mask: u32,
    id_excess: u32,
    time_mask: u32,
    time_start: u8,
    end: u8,
}

static MARKS: [MarkLayout; 1 << 4] = {
    let none = MarkLayout { id_mask: 0, id_excess: 0, time_mask: 0, time_start: 0, end: 0 };
    let mut marks = [none; 1 << 4];
    let mut widths = 0;
    while widths < marks.len() {
        let (id, time) = (widths & 3, widths >> 2);
        marks[widths] = MarkLayout {
            id_mask: MASKS[id],
            id_excess: EXCESS[id],
            time_mask: MASKS[time],
            time_start: BYTES[id],
            end: BYTES[id] + BYTES[time],
        };
        widths += 1;
    }
    marks
};

impl Layout {
    #[inline(always)]
    fn field(&self, room: &[u8; REACH], number: usize) -> u32 {
        narrow(room, usize::from(self.starts[number])) & self.masks[number]
    }

    #[inline(always)]
    fn unsigned(&self, room: &[u8; REACH], number: usize) -> u64 {
        self.field(room, number).into()
    }

    /// A difference, as a number that wraps.
    #[inline(always)]
    fn signed(&self, room: &[u8; REACH], number: usize) -> u64 {
        i64::from(self.field(room, number).wrapping_sub(self.excess[number]) as i32) as u64
    }
}

/// The four bytes from `at` on.
#[inline(always)]
fn narrow(room: &[u8; REACH], at: usize) -> u32 {
    room.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

impl Packed {
    /// Appends a record in which every field has eight bytes; `id` and `after` are differences.
    #[cold]
    fn wide_record(&mut self, task: Rank, raw: &Raw, [id, after]: [u64; 2]) {
        let fields = match raw.tag & KIND {
            COLLECTIVE => [id, raw.time, after, raw.bytes, raw.recv, raw.to.into(), raw.op.into()],
            _ => [id, raw.time, after, distance(task, raw), raw.bytes, 0, 0],
        };
        let count = if raw.tag & KIND == COLLECTIVE { 7 } else { 5 };
        self.append(&(u16::from(raw.tag) | WIDE).to_le_bytes());
        fields[..count].iter().for_each(|field| self.append(&field.to_le_bytes()));
    }
}

/// The two bits of a field by the bits of its value, if these are at most 32.
const fn width(bits: usize) -> usize {
    (bits > 0) as usize + (bits > 8) as usize + (bits > 16) as usize
}

/// What a field adds to [`Row::sum`], by its number and the bits of its value.
static FIELDS: [[u32; 64]; 7] = {
    let mut fields = [[0; 64]; 7];
    let mut at = 0;
    while at < 7 * 64 {
        let (number, width) = (at / 64, width(at % 64));
        fields[number][at % 64] = BYTES[width] as u32 | (width as u32) << (8 + WIDTHS + 2 * number as u32);
        at += 1;
    }
    fields
};

/// The excess of a difference, by the bits of its value.
static EXCESS_OF_BITS: [u32; 64] = {
    let mut excess = [0; 64];
    let mut bits = 0;
    while bits < 64 {
        excess[bits] = EXCESS[width(bits)];
        bits += 1;
    }
    excess
};

/// Buffer for one record: more than any length that one byte can hold.
const ROW: usize = 256 + 8;

/// A record that is being written.
struct Row<'a> {
    room: &'a mut [u8; ROW],
    /// The number of bytes in use (8 bits), and the first word, and the byte of further widths without the tag.
    sum: u32,
    /// All bits of the values.
    bits: u64,
}

impl<'a> Row<'a> {
    /// Begins with the fields at `at`.
    #[inline(always)]
    fn new(out: &'a mut Packed, at: u8) -> Self {
        Self { room: out.room(), sum: at.into(), bits: 0 }
    }

    /// Appends the low bytes of field `number`. Its width is that of `value`, of so many bits, and it is stored as `content`.
    #[inline(always)]
    fn field(&mut self, number: usize, value: u64, content: impl FnOnce(usize) -> u64) {
        let bits = (value << 1 | 1).ilog2() as usize;
        if let Some(room) = self.room[usize::from(self.sum as u8)..].first_chunk_mut() {
            *room = content(bits).to_le_bytes();
        }
        self.sum += FIELDS[number][bits];
        self.bits |= value;
    }

    #[inline(always)]
    fn unsigned(&mut self, number: usize, value: u64) {
        self.field(number, value, |_| value);
    }

    /// Appends a difference.
    #[inline(always)]
    fn signed(&mut self, number: usize, value: u64) {
        // One bit more than the magnitude; zero takes no bytes.
        self.field(number, zigzag(value as i64), |bits| value.wrapping_add(EXCESS_OF_BITS[bits].into()));
    }

    /// Leaves room for the widths of fields 5 and 6; returns its index.
    #[inline(always)]
    fn gap(&mut self) -> u8 {
        self.sum += 1;
        self.sum as u8 - 1
    }

    /// Sets the byte at `at` to the widths of fields 5 and 6.
    #[inline(always)]
    fn set_more(&mut self, at: u8) {
        self.room[usize::from(at)] = (self.sum >> 24) as u8;
    }

    /// Completes the record with its first word; returns its length, or `None` if a field needs more than four bytes.
    #[inline(always)]
    fn end(self, tag: u8) -> Option<usize> {
        let head = u16::from(tag) | (self.sum >> 8) as u16;
        self.room[..2].copy_from_slice(&head.to_le_bytes());
        (self.bits >> 32 == 0).then_some((self.sum as u8).into())
    }
}

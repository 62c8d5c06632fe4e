//! Records, communicators and their order as bytes.
//!
//! A block stands alone: differences begin anew in each. Ids of neighbours differ little, so that most fields take one
//! or two bytes; arithmetic on ids wraps, so that any id comes back.

use crate::capture::encode::{unzigzag, zigzag};
use crate::capture::varint::{Ended, MAX_LEN, Sink, Source};
use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, LocalCollective, Message};
use crate::text::Line;
use crate::units::{Bytes, Ticks};

/// Bits of a record's first byte: dependency (2), awaited (1), kind (2).
const AWAITED: u64 = 4;
const MARK: u64 = 0;
const MESSAGE: u64 = 8;
const COLLECTIVE: u64 = 16;
const KIND: u64 = 24;

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
        let id = Self::step(&mut self.message, message.id.0);
        let (known, after) = self.dependency(message.after);
        let time = message.time.0;
        if message.is_mark() {
            out.put(&[tag | MARK, id, time, after][..3 + usize::from(known)]);
        } else {
            let distance = i64::from(message.dst.0) - i64::from(message.src.0);
            out.put(
                &[tag | MESSAGE, id, zigzag(distance), message.bytes.0, time, after]
                    [..5 + usize::from(known)],
            );
        }
    }

    /// Appends a part of a collective.
    #[inline]
    pub(super) fn collective(&mut self, out: &mut Packed, part: &LocalCollective) {
        let tag = u64::from(part.after.code()) | COLLECTIVE;
        let (known, after) = self.dependency(part.after);
        let id = Self::step(&mut self.collective, part.id.0);
        let Amounts { send, recv } = part.amounts;
        let values = [tag, id, part.comm.0.into(), part.op.0.into(), send.0, recv.0, part.time.0, after];
        out.put(&values[..7 + usize::from(known)]);
    }

    /// Whether a dependency has an id, and its difference from the last one of its sort.
    #[inline]
    fn dependency(&self, after: Dependency) -> (bool, u64) {
        let difference = |id: u64, previous: u64| zigzag(id.wrapping_sub(previous) as i64);
        match after {
            Dependency::Start => (false, 0),
            Dependency::Sent(id) | Dependency::Received(id) => (true, difference(id.0, self.message)),
            Dependency::Collective(id) => (true, difference(id.0, self.collective)),
        }
    }

    /// The next record of `task` in a trace of `tasks` tasks.
    #[inline]
    pub(super) fn read(
        &mut self,
        from: &mut Source<'_>,
        task: Rank,
        tasks: u32,
    ) -> Result<Line<'static>, Garbled> {
        let tag = from.get()?;
        if tag >> 5 != 0 {
            return Err(Garbled::Value("the first byte"));
        }
        let awaited = tag & AWAITED != 0;
        match tag & KIND {
            MARK if !awaited => {
                let id = Self::follow(&mut self.message, from.get()?);
                let time = Ticks(from.get()?);
                let after = self.read_dependency(from, tag)?;
                let (id, bytes) = (MessageId(id), Bytes::ZERO);
                Ok(Line::Message(Message { id, src: task, dst: task, bytes, awaited, after, time }))
            }
            MESSAGE => {
                let id = MessageId(Self::follow(&mut self.message, from.get()?));
                let dst = i64::from(task.0).wrapping_add(unzigzag(from.get()?));
                let dst = u32::try_from(dst).ok().filter(|&dst| dst < tasks).ok_or(Garbled::Value("dst"))?;
                let bytes = Bytes(from.get()?);
                let time = Ticks(from.get()?);
                let after = self.read_dependency(from, tag)?;
                Ok(Line::Message(Message { id, src: task, dst: Rank(dst), bytes, awaited, after, time }))
            }
            COLLECTIVE if !awaited => {
                let previous = self.collective;
                let id = CollectiveId(Self::follow(&mut self.collective, from.get()?));
                let comm = u32::try_from(from.get()?).map_err(|_| Garbled::Value("comm"))?;
                let op = u16::try_from(from.get()?).map_err(|_| Garbled::Value("op"))?;
                let amounts = Amounts { send: Bytes(from.get()?), recv: Bytes(from.get()?) };
                let time = Ticks(from.get()?);
                // Its dependency was told from the collective before it.
                let after = Before { collective: previous, ..*self }.read_dependency(from, tag)?;
                Ok(Line::Collective(LocalCollective {
                    id,
                    comm: CommId(comm),
                    op: OpCode(op),
                    task,
                    amounts,
                    after,
                    time,
                }))
            }
            _ => Err(Garbled::Value("the first byte")),
        }
    }

    #[inline]
    fn read_dependency(&self, from: &mut Source<'_>, tag: u64) -> Result<Dependency, Garbled> {
        let mut id = |previous: u64| Ok::<_, Ended>(previous.wrapping_add(unzigzag(from.get()?) as u64));
        Ok(match tag & 3 {
            0 => Dependency::Start,
            1 => Dependency::Sent(MessageId(id(self.message)?)),
            2 => Dependency::Received(MessageId(id(self.message)?)),
            _ => Dependency::Collective(CollectiveId(id(self.collective)?)),
        })
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

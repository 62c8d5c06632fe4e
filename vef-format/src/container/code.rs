//! What the contents of blocks are made of: varints, records' bytes and runs of ranks.

use crate::capture::encode::{unzigzag, zigzag};
use crate::capture::varint::{Ended, MAX_LEN, Sink, Source};

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

    /// Makes room for so many more bytes, and for one word behind them.
    #[inline(always)]
    pub(super) fn reserve(&mut self, bytes: usize) {
        let room = self.len + bytes + 8;
        if self.bytes.len() < room {
            self.bytes.resize(room.next_power_of_two(), 0);
        }
    }

    /// Appends the low bytes of a word; there is room.
    #[inline(always)]
    pub(super) fn word(&mut self, value: u64, bytes: usize) {
        self.bytes[self.len..self.len + 8].copy_from_slice(&value.to_le_bytes());
        self.len += bytes;
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
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

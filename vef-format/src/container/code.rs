//! What the contents of blocks are made of: varints, records' bytes and runs of ranks.

use crate::capture::encode::{unzigzag, zigzag};
use crate::capture::varint::{self, Ended, MAX_LEN, Source};

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

/// At most so many values are put at a time.
const MOST_VALUES: usize = 14;
/// Their values begin below this.
const VALUES: usize = 128;
const _: () = assert!(MOST_VALUES * MAX_LEN < VALUES);

impl Packed {
    /// Appends `values`.
    #[inline]
    pub(super) fn put<const N: usize>(&mut self, values: &[u64; N]) {
        const { assert!(N <= MOST_VALUES) };
        let room: &mut [u8; VALUES + MAX_LEN] = self.room();
        let mut at = 0;
        for &value in values {
            // The mask tells the compiler that there is room.
            if let Some(room) = room[at % VALUES..].first_chunk_mut() {
                at += varint::store(value, room);
            }
        }
        self.len += at;
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

    /// The next bytes, which are not appended yet.
    #[inline(always)]
    pub(super) fn room<const N: usize>(&mut self) -> &mut [u8; N] {
        if self.bytes.len() < self.len + N {
            self.grow(N);
        }
        match self.bytes[self.len..].first_chunk_mut() {
            Some(room) => room,
            None => unreachable!("it is as long"),
        }
    }

    #[cold]
    fn grow(&mut self, room: usize) {
        self.bytes.resize((self.len + room).next_power_of_two(), 0);
    }

    /// Appends so many bytes of what was written to [`Packed::room`].
    #[inline(always)]
    pub(super) fn advance(&mut self, bytes: usize) {
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

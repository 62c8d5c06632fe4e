//! Encoding of block contents: varints, bytes of records, and runs of ranks.

use super::Problem;
use crate::prefetch::prefetch;
use crate::varint::{self, Ended, MAX_LEN, Source, unzigzag, zigzag};

/// What is wrong in a block whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Garbled {
    /// A value is truncated, or there are surplus values.
    Length,
    /// A value is out of range.
    Value(&'static str),
}

impl From<Ended> for Garbled {
    fn from(_: Ended) -> Self {
        Self::Length
    }
}

impl From<Garbled> for Problem {
    fn from(garbled: Garbled) -> Self {
        Self::Inconsistent(match garbled {
            Garbled::Length => "a block of another length than its items have".to_owned(),
            Garbled::Value(field) => format!("a block with a value of {field} that is out of range"),
        })
    }
}

/// A growing buffer of varints.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    len: usize,
}

/// Maximum number of values in one call.
const MOST_VALUES: usize = 14;
/// Limit of the index at which their values begin.
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
            // The mask proves to the compiler that there is room.
            if let Some(room) = room[at % VALUES..].first_chunk_mut() {
                at += varint::store(value, room);
            }
        }
        self.len += at;
    }

    /// Appends `values`, which usually take one byte each.
    #[inline(always)]
    pub(super) fn put_short<const N: usize>(&mut self, values: &[u64; N]) {
        const { assert!(N <= 8) };
        if values.iter().fold(0, |all, value| all | value) >= 1 << 7 {
            return self.put(values);
        }
        *self.room() = values.iter().rev().fold(0, |word, value| word << 8 | value << 1 | 1).to_le_bytes();
        self.len += N;
    }

    /// Appends the length of `text` and its bytes.
    pub(super) fn text(&mut self, text: &str) {
        self.put(&[text.len() as u64]);
        self.append(text.as_bytes());
    }

    /// Appends encoded bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.truncate(self.len);
        self.bytes.extend_from_slice(bytes);
        self.len = self.bytes.len();
    }

    /// Number of bytes.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Room for the next bytes, which [`Packed::advance`] appends.
    #[inline(always)]
    pub(super) fn room<const N: usize>(&mut self) -> &mut [u8; N] {
        if self.bytes.get(self.len..).is_none_or(|rest| rest.len() < N) {
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

    /// Prefetches the room for the next bytes.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch(&self.bytes, self.len);
        prefetch(&self.bytes, self.len + 64);
    }

    /// Appends the first `bytes` bytes of [`Packed::room`].
    #[inline(always)]
    pub(super) fn advance(&mut self, bytes: usize) {
        self.len += bytes;
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

/// Run-length coding of steps, for lists of ranks. All tasks in order are one run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    previous: u32,
    step: i64,
    repeated: u64,
}

impl Runs {
    /// Appends `rank`; [`Runs::end`] completes the last run.
    #[inline(always)]
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

    /// Appends the last run.
    #[inline(always)]
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

    /// Whether the current run is at its end.
    pub(super) fn is_over(&self) -> bool {
        self.repeated == 0
    }
}

//! Fast path for message lines in the form that all writers use, parsed eight digits at a time.
//!
//! That form: one blank between fields, none in front or behind, at most [`LONGEST`] bytes, numbers of fewer than sixteen
//! digits. Any other line, invalid or only unusual, is left to [`super::scan`], which also makes the errors.

use super::digits::{self, POWERS};
use crate::ids::Rank;
use crate::raw::{DEPENDENCY, Raw};

/// Maximum bytes of a line, its end included.
pub(super) const LONGEST: usize = 64;
/// Bytes that may be read: eight at any index of the line.
pub(super) const ROOM: usize = LONGEST + 8;

/// The message line at the front of `room`, in a trace of `tasks` tasks: sender, record, length.
#[inline(always)]
pub(super) fn message(room: &[u8; ROOM], tasks: u32) -> Option<(Rank, Raw, usize)> {
    if room[0] > b'9' {
        return None;
    }
    let mut line = Quick { room, at: 0, empty: 0 };
    let id = line.number(b' ')?;
    let src = line.number(b' ')?;
    let dst = line.number(b' ')?;
    let bytes = line.number(b' ')?;
    let dep = line.dep()?;
    let time = line.number(b' ')?;
    let after = match dep & DEPENDENCY {
        0 => line.minus_one()?,
        3 => line.collective_id()?,
        _ => line.number(b'\n')?,
    };
    let known = src < u64::from(tasks) && dst < u64::from(tasks);
    if !known || line.empty & digits::FIRST != 0 || line.at > LONGEST {
        return None;
    }
    let (src, dst) = (src as u32, dst as u32);
    Some((Rank(src), Raw::message(dep, src, dst, id, bytes, time, after), line.at))
}

/// A parser of a line.
struct Quick<'a> {
    room: &'a [u8; ROOM],
    /// Beyond [`LONGEST`] indices wrap, so that no bounds check is necessary.
    at: usize,
    /// Has the bit [`digits::FIRST`] if a number had no digits.
    empty: u64,
}

impl Quick<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&self) -> [u8; N] {
        self.room[self.at & (LONGEST - 1)..].first_chunk().copied().unwrap_or([0; N])
    }

    /// The next number, which must be followed by the byte `behind`.
    #[inline(always)]
    fn number(&mut self, behind: u8) -> Option<u64> {
        let word = u64::from_le_bytes(self.bytes());
        // Eight digits would mean that `behind` does not follow.
        let others = digits::others(word) | digits::LAST;
        let (value, bits) = digits::short(word, others);
        if (word >> bits) as u8 == behind {
            self.empty |= others;
            self.at += bits as usize / 8 + 1;
            return Some(value);
        }
        let (value, end) = long_number(self.room, self.at, behind)?;
        self.at = end;
        Some(value)
    }

    /// The field `dep`, one digit, and the blank behind it.
    #[inline(always)]
    fn dep(&mut self) -> Option<u8> {
        let dep = u16::from_le_bytes(self.bytes()) ^ u16::from_le_bytes(*b"0 ");
        self.at += 2;
        (dep <= 7).then_some(dep as u8)
    }

    /// The last field of a record without a dependency; its id counts as 0.
    #[inline(always)]
    fn minus_one(&mut self) -> Option<u64> {
        let end = self.bytes();
        self.at += 3;
        (end == *b"-1\n").then_some(0)
    }

    /// The last field of a record that depends on a collective.
    #[inline(always)]
    fn collective_id(&mut self) -> Option<u64> {
        let [prefix] = self.bytes();
        self.at += 1;
        if prefix == b'G' { self.number(b'\n') } else { None }
    }
}

/// The number of eight to fifteen digits at `at`, followed by the byte `behind`, and its end.
#[inline(never)]
fn long_number(room: &[u8; ROOM], at: usize, behind: u8) -> Option<(u64, usize)> {
    let (front, rest) = room.get(at..)?.split_first_chunk()?;
    let (front, rest) = (u64::from_le_bytes(*front), u64::from_le_bytes(*rest.first_chunk()?));
    let others = digits::others(rest);
    if digits::others(front) != 0 || others == 0 {
        return None;
    }
    let (value, bits) = digits::short(rest, others);
    let count = bits as usize / 8;
    let value = digits::eight_at_once(front) * POWERS[count] + value;
    ((rest >> bits) as u8 == behind).then_some((value, at + 8 + count + 1))
}

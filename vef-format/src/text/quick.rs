//! Message lines as every writer leaves them, parsed in one go: field by field, eight digits at a time.
//!
//! That is: one blank between fields, nothing in front or behind, at most [`LONGEST`] bytes, numbers of fewer than
//! sixteen digits. A line that is otherwise, be it wrong or only unusual, is left to the careful way of
//! [`super::scan`], which also knows what to say of it.

use super::digits::{self, POWERS};
use crate::ids::Rank;
use crate::raw::{DEPENDENCY, Raw};

/// Bytes of the longest line, its end included.
pub(super) const LONGEST: usize = 64;
/// Bytes that are looked at: eight at a time from any place in the line.
pub(super) const ROOM: usize = LONGEST + 8;

/// The message line that `room` begins with, in a trace of `tasks` tasks: its sender, what it says, and
/// its length.
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

/// Where the line is parsed.
struct Quick<'a> {
    room: &'a [u8; ROOM],
    /// Beyond [`LONGEST`] places repeat, so that none has to be checked by itself.
    at: usize,
    /// Has [`digits::FIRST`] when a number had no digits.
    empty: u64,
}

impl Quick<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&self) -> [u8; N] {
        self.room[self.at & (LONGEST - 1)..].first_chunk().copied().unwrap_or([0; N])
    }

    /// The number here, which ends with the byte `behind`.
    #[inline(always)]
    fn number(&mut self, behind: u8) -> Option<u64> {
        let word = u64::from_le_bytes(self.bytes());
        // Were all eight digits, the last would not be `behind`.
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

    /// The last field where it names nothing: the id 0 stands for it.
    #[inline(always)]
    fn minus_one(&mut self) -> Option<u64> {
        let end = self.bytes();
        self.at += 3;
        (end == *b"-1\n").then_some(0)
    }

    /// The last field where it names a collective.
    #[inline(always)]
    fn collective_id(&mut self) -> Option<u64> {
        let [prefix] = self.bytes();
        self.at += 1;
        if prefix == b'G' { self.number(b'\n') } else { None }
    }
}

/// The number of eight to fifteen digits at `at`, which ends with the byte `behind`, and where it ends.
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

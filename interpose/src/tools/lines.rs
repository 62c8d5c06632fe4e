//! A text file that is written through a buffer, with gaps that are filled later: a receive from anybody is written where it
//! was posted, and its sender when it is known.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};

/// The buffer is written out when it holds as much.
const ENOUGH: usize = 1 << 16;
/// An open gap holds back what follows it up to here; then it is given up.
const MOST: usize = 1 << 20;
/// Bytes of a gap: the longest `i32`.
const GAP: usize = 11;

/// A place to be filled with a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap(u64);

/// The file.
pub(super) struct Lines<W: Write = File> {
    to: W,
    /// NUL bytes are gaps, or what is left of them.
    buffer: Vec<u8>,
    /// Bytes before the buffer, gaps included.
    before: u64,
    /// Gaps that are open, by their place; those that were filled meanwhile are `true`.
    gaps: VecDeque<(u64, bool)>,
    /// Whether there is a NUL byte in the buffer.
    sparse: bool,
    error: Option<io::Error>,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(to: W) -> Self {
        Self {
            to,
            buffer: Vec::with_capacity(ENOUGH + 4096),
            before: 0,
            gaps: VecDeque::new(),
            sparse: false,
            error: None,
        }
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    #[inline]
    pub(super) fn number(&mut self, number: i64) {
        if let Ok(digit @ 0..10) = u8::try_from(number) {
            return self.buffer.push(b'0' + digit);
        }
        let mut digits = [0u8; 20];
        let start = format(number, &mut digits);
        self.buffer.extend_from_slice(&digits[start..]);
    }

    /// A number that is not known yet.
    pub(super) fn gap(&mut self) -> Gap {
        let place = self.before + self.buffer.len() as u64;
        self.buffer.extend_from_slice(&[0; GAP]);
        self.gaps.push_back((place, false));
        self.sparse = true;
        Gap(place)
    }

    /// It is known now.
    pub(super) fn fill(&mut self, gap: Gap, number: i32) {
        // Gone: it was given up.
        let Ok(found) = self.gaps.binary_search_by_key(&gap.0, |(place, _)| *place) else { return };
        let at = (gap.0 - self.before) as usize;
        let mut digits = [0u8; 20];
        let start = format(i64::from(number), &mut digits);
        self.buffer[at..at + digits.len() - start].copy_from_slice(&digits[start..]);
        self.gaps[found].1 = true;
        while self.gaps.front().is_some_and(|(_, filled)| *filled) {
            self.gaps.pop_front();
        }
    }

    /// Ends a line.
    #[inline]
    pub(super) fn end(&mut self) {
        self.buffer.push(b'\n');
        if self.buffer.len() >= ENOUGH {
            self.write();
        }
    }

    /// Writes what is held up by no gap.
    #[cold]
    #[inline(never)]
    fn write(&mut self) {
        let held = |lines: &Self| {
            lines.gaps.front().map_or(lines.buffer.len(), |(place, _)| (place - lines.before) as usize)
        };
        if held(self) < ENOUGH / 2 && self.buffer.len() < MOST {
            return;
        }
        while self.buffer.len() >= MOST && held(self) < MOST / 2 {
            let (place, _) = self.gaps[0];
            self.fill(Gap(place), -1);
        }
        let until = held(self);
        self.put(until);
    }

    fn put(&mut self, until: usize) {
        if self.sparse {
            let mut kept = 0;
            for i in 0..until {
                if self.buffer[i] != 0 {
                    self.buffer[kept] = self.buffer[i];
                    kept += 1;
                }
            }
            self.write_out(kept);
        } else {
            self.write_out(until);
        }
        self.buffer.drain(..until);
        self.before += until as u64;
        self.sparse = !self.gaps.is_empty() || self.buffer.contains(&0);
    }

    fn write_out(&mut self, len: usize) {
        if self.error.is_none() {
            self.error = self.to.write_all(&self.buffer[..len]).err();
        }
    }

    /// Writes everything; gaps that are still open become -1.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        while let Some(&(place, _)) = self.gaps.front() {
            self.fill(Gap(place), -1);
        }
        self.put(self.buffer.len());
        self.error.take().map_or(Ok(()), Err)
    }
}

/// The digits at the end of `digits`; where they start.
#[inline]
fn format(number: i64, digits: &mut [u8; 20]) -> usize {
    let mut rest = number.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_gaps() {
        let mut lines = Lines::new(Vec::new());
        lines.number(i64::MIN);
        lines.text(" ");
        lines.number(0);
        lines.text(" ");
        let first = lines.gap();
        lines.text(" ");
        let second = lines.gap();
        lines.end();
        let third = lines.gap();
        lines.end();
        lines.fill(second, -7);
        lines.fill(first, 123_456);
        lines.finish().unwrap();
        lines.fill(third, 5);
        assert_eq!(lines.to, b"-9223372036854775808 0 123456 -7\n-1\n");
    }

    #[test]
    fn an_open_gap_holds_back_a_bounded_amount_in_order() {
        let mut lines = Lines::new(Vec::new());
        let mut expected = String::new();
        let mut open = VecDeque::new();
        for i in 0..400_000i32 {
            if i % 50 == 0 {
                open.push_back((i, lines.gap()));
            } else {
                lines.number(i64::from(i));
            }
            lines.end();
            expected += &format!("{i}\n");
            // Filled 1000 lines later, every other one out of order.
            if open.len() > 20 {
                let (i, gap) = open.remove((i as usize / 50) % 2).unwrap();
                lines.fill(gap, i);
            }
            assert!(lines.buffer.len() < ENOUGH + 20_000);
        }
        for (i, gap) in open {
            lines.fill(gap, i);
        }
        lines.finish().unwrap();
        assert!(lines.to == expected.as_bytes());
    }

    #[test]
    fn what_is_never_filled_is_given_up() {
        let mut lines = Lines::new(Vec::new());
        lines.gap();
        lines.end();
        for i in 0..300_000 {
            lines.number(i);
            lines.end();
            assert!(lines.buffer.len() <= MOST + 4096);
        }
        lines.finish().unwrap();
        assert!(lines.to.starts_with(b"-1\n0\n1\n") && lines.to.ends_with(b"\n299999\n"));
    }
}

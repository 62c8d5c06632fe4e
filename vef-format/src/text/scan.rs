//! Parses one line of a trace, field by field.
//!
//! The cursor is in a block whose last byte is a line end, so every field ends in the block; an index out of range reads as
//! a line end. A [`Fault`] is small and has the place; the reader makes an error from it.

use super::digits;
use super::error::{Expected, Field, Problem};

/// Maximum bytes of a word in an error.
const QUOTED: usize = 40;

/// The invalid field and its index in the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    at: usize,
    field: Field,
    expected: Option<Expected>,
}

impl Fault {
    /// The problem, with the text in `block` at the fault.
    #[cold]
    pub(super) fn problem(self, block: &[u8]) -> Problem {
        let found = quote(block, self.at);
        let field = self.field;
        match self.expected {
            _ if found.is_empty() => Problem::Missing { field },
            Some(expected) => Problem::Field { field, found, expected },
            None => Problem::Extra { field, found },
        }
    }
}

/// The word around `at` (empty at a line end), shortened, with anything but printable ASCII escaped.
#[cold]
pub(super) fn quote(block: &[u8], at: usize) -> String {
    let ends = |byte: &u8| is_blank(*byte) || *byte == b'\n';
    let (front, rest) = block.split_at(at.min(block.len()));
    if rest.first().is_none_or(ends) {
        return String::new();
    }
    let begin = front.iter().rposition(ends).map_or(0, |space| space + 1);
    let end = at + rest.iter().position(ends).unwrap_or(rest.len());
    let word = &block[begin..end];
    let mut quoted = word[..word.len().min(QUOTED)].escape_ascii().to_string();
    if word.len() > QUOTED {
        quoted.push('…');
    }
    quoted
}

#[inline(always)]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// A position in a block of complete lines.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) block: &'a [u8],
    pub(super) at: usize,
}

impl Cursor<'_> {
    /// The byte under the cursor.
    #[inline(always)]
    pub(super) fn byte(&self) -> u8 {
        self.block.get(self.at).copied().unwrap_or(b'\n')
    }

    #[inline(always)]
    pub(super) fn skip_blanks(&mut self) {
        while is_blank(self.byte()) {
            self.at += 1;
        }
    }

    /// A fault at the cursor.
    #[cold]
    pub(super) fn fault(&self, field: Field, expected: Expected) -> Fault {
        Fault { at: self.at, field, expected: Some(expected) }
    }

    /// Advances to the next field, `field`; the previous field must end here.
    #[inline(always)]
    fn next_field(&mut self, before: Field) -> Result<(), Fault> {
        if !is_blank(self.byte()) && self.byte() != b'\n' {
            return Err(self.fault(before, Expected::Number));
        }
        self.skip_blanks();
        Ok(())
    }

    /// Parses digits, as `field`.
    #[inline(always)]
    pub(super) fn digits(&mut self, field: Field) -> Result<u64, Fault> {
        match digits::parse(self.block, self.at) {
            Some((value, end)) => {
                self.at = end;
                Ok(value)
            }
            None => Err(self.fault(field, Expected::Number)),
        }
    }

    /// Parses digits, as `field`, from `least` to `most`.
    #[inline(always)]
    pub(super) fn digits_in(&mut self, field: Field, least: u64, most: u64) -> Result<u64, Fault> {
        let begin = *self;
        let value = self.digits(field)?;
        if value < least || value > most {
            return Err(begin.fault(field, Expected::Range { least, most }));
        }
        Ok(value)
    }

    /// A number behind one blank, the usual form; otherwise returns `None` and does not advance.
    #[inline(always)]
    pub(super) fn quick_number(&mut self) -> Option<u64> {
        if self.byte() != b' ' {
            return None;
        }
        let (value, end) = digits::parse(self.block, self.at + 1)?;
        self.at = end;
        Some(value)
    }

    /// The next field, `field`, which is a number; it follows `before`.
    #[inline(always)]
    pub(super) fn number(&mut self, before: Field, field: Field) -> Result<u64, Fault> {
        self.number_in(before, field, 0, u64::MAX)
    }

    /// The next field, `field`, which is a number from `least` to `most`; it follows `before`.
    #[inline(always)]
    pub(super) fn number_in(
        &mut self,
        before: Field,
        field: Field,
        least: u64,
        most: u64,
    ) -> Result<u64, Fault> {
        let begin = *self;
        match self.quick_number() {
            Some(value) if value >= least && value <= most => Ok(value),
            _ => {
                // Between any blanks, with errors.
                *self = begin;
                self.next_field(before)?;
                self.digits_in(field, least, most)
            }
        }
    }

    /// The next field, `field`, which is a number with the prefix `prefix`.
    #[inline(always)]
    pub(super) fn prefixed(
        &mut self,
        prefix: u8,
        before: Field,
        field: Field,
        expected: Expected,
        most: u64,
    ) -> Result<u64, Fault> {
        self.next_field(before)?;
        if self.byte() != prefix {
            return Err(self.fault(field, expected));
        }
        self.at += 1;
        self.digits_in(field, 0, most)
    }

    /// The next field, `field`, which is `-1`.
    #[inline(always)]
    pub(super) fn minus_one(&mut self, before: Field, field: Field) -> Result<(), Fault> {
        self.next_field(before)?;
        match self.block.get(self.at..self.at + 2) {
            Some(b"-1") => self.at += 2,
            _ => return Err(self.fault(field, Expected::NoId)),
        }
        Ok(())
    }

    /// Whether the line continues after the field `before`; if so, advances to the next word.
    #[inline(always)]
    pub(super) fn goes_on(&mut self, before: Field) -> Result<bool, Fault> {
        self.next_field(before)?;
        Ok(self.byte() != b'\n')
    }

    /// Advances past the line end, which must follow the field `last`.
    #[inline(always)]
    pub(super) fn end(&mut self, last: Field) -> Result<(), Fault> {
        if self.byte() != b'\n' && self.goes_on(last)? {
            return Err(Fault { at: self.at, field: last, expected: None });
        }
        self.at += 1;
        Ok(())
    }
}

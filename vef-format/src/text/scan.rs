//! Parses one line of a trace, word by word.
//!
//! The cursor is in a block whose last byte is a line end, so every word ends in the block; an index out of range reads as
//! a line end. A [`Fault`] is small: the name of its field is determined when the error is made.

use super::digits;
use super::error::Problem;
use std::fmt;

/// Maximum bytes of a word in an error.
const QUOTED: usize = 40;

/// The fields of a header, of a communicator (the last one any number of times), of a message and of a collective.
const HEADER: &[&str] =
    &["version", "nTasks", "nMsgs", "nCOMM", "nCollComm", "nLocalCollComm", "nRecvDep", "clock"];
const COMMUNICATOR: &[&str] = &["id", "task of a communicator"];
const MESSAGE: &[&str] = &["id", "src", "dst", "bytes", "dep", "time", "idDep"];
const COLLECTIVE: &[&str] = &["id", "comm", "op", "task", "sendBytes", "recvBytes", "dep", "time", "idDep"];

/// The valid values of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// Any number of 64 bits.
    Number,
    /// A number from the first to the second.
    Range(u64, u64),
    /// `C<id>`.
    CommId,
    /// `-1`, because `dep` names no dependency.
    NoId,
    /// The id of a point-to-point line, because of `dep`.
    MessageId,
    /// `G<id>`, because of `dep`.
    CollectiveId,
    /// No further member of a communicator than there are tasks.
    Members(u32),
    /// The end of the line.
    Nothing,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("a number from 0 to 2^64 - 1"),
            Self::Range(least, most) => write!(f, "a number from {least} to {most}"),
            Self::CommId => f.write_str("a communicator C<id>"),
            Self::NoId => f.write_str("-1, as dep demands"),
            Self::MessageId => f.write_str("the number of a point-to-point line, as dep demands"),
            Self::CollectiveId => f.write_str("a collective G<id>, as dep demands"),
            Self::Members(tasks) => write!(f, "the end of a list of at most {tasks} tasks"),
            Self::Nothing => f.write_str("the end of the line"),
        }
    }
}

/// The index in the block of an invalid word, or of a character in it, and what should be there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    at: usize,
    expected: Expected,
}

impl Fault {
    /// The problem, with the field and its text in `block`.
    #[cold]
    pub(super) fn problem(self, block: &[u8]) -> Problem {
        let (found, field) = (quote(block, self.at), self.field(block));
        Problem::Line(match self.expected {
            _ if found.is_empty() => format!("the line ends before its field {field}"),
            Expected::Nothing => format!("the line continues with `{found}` behind its last field, {field}"),
            expected => format!("field {field} is `{found}`, not {expected}"),
        })
    }

    /// The name of the field, by the first letter of the line and the number of words in front of the field.
    fn field(self, block: &[u8]) -> &'static str {
        // The number of an id may be missing behind its letter.
        let prefixed = self.at.checked_sub(1).is_some_and(|before| matches!(block[before], b'C' | b'G'));
        let at = self.at - usize::from(prefixed);
        let line = &block[block[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)..];
        let fields = match line.trim_ascii_start().first() {
            Some(b'V') => HEADER,
            Some(b'C') => COMMUNICATOR,
            Some(b'G') => COLLECTIVE,
            _ => MESSAGE,
        };
        let front = &line[..line.len() - (block.len() - at)];
        let begun = front.split(is_end).filter(|word| !word.is_empty()).count();
        let within = !is_end(&block[at]) && front.last().is_some_and(|before| !is_end(before));
        fields[(begun - usize::from(within)).min(fields.len() - 1)]
    }
}

/// The word around `at` (empty at a line end), shortened, with anything but printable ASCII escaped.
#[cold]
pub(super) fn quote(block: &[u8], at: usize) -> String {
    let (front, rest) = block.split_at(at.min(block.len()));
    if rest.first().is_none_or(is_end) {
        return String::new();
    }
    let begin = front.iter().rposition(is_end).map_or(0, |space| space + 1);
    let end = at + rest.iter().position(is_end).unwrap_or(rest.len());
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

/// Whether a word ends in front of `byte`.
#[inline(always)]
fn is_end(byte: &u8) -> bool {
    is_blank(*byte) || *byte == b'\n'
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
    pub(super) fn fault(&self, expected: Expected) -> Fault {
        Fault { at: self.at, expected }
    }

    /// Advances to the next word; the previous one, a number, must end here.
    #[inline(always)]
    fn next_word(&mut self) -> Result<(), Fault> {
        if !is_end(&self.byte()) {
            return Err(self.fault(Expected::Number));
        }
        self.skip_blanks();
        Ok(())
    }

    /// Parses digits.
    #[inline(always)]
    pub(super) fn digits(&mut self) -> Result<u64, Fault> {
        match digits::parse(self.block, self.at) {
            Some((value, end)) => {
                self.at = end;
                Ok(value)
            }
            None => Err(self.fault(Expected::Number)),
        }
    }

    /// Parses digits, from `least` to `most`.
    #[inline(always)]
    pub(super) fn digits_in(&mut self, least: u64, most: u64) -> Result<u64, Fault> {
        let begin = *self;
        let value = self.digits()?;
        if value < least || value > most {
            return Err(begin.fault(Expected::Range(least, most)));
        }
        Ok(value)
    }

    /// The next word, which is a number.
    #[inline(always)]
    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        self.number_in(0, u64::MAX)
    }

    /// The next word, which is a number from `least` to `most`.
    #[inline(always)]
    pub(super) fn number_in(&mut self, least: u64, most: u64) -> Result<u64, Fault> {
        let begin = *self;
        match self.usual_number() {
            Some(value) if value >= least && value <= most => Ok(value),
            _ => {
                // Between any blanks, with errors.
                *self = begin;
                self.next_word()?;
                self.digits_in(least, most)
            }
        }
    }

    /// The next word, the id of a point-to-point line.
    #[inline(always)]
    pub(super) fn message_id(&mut self) -> Result<u64, Fault> {
        match self.usual_number() {
            Some(id) => Ok(id),
            None => {
                self.next_word()?;
                match self.byte().is_ascii_digit() {
                    true => self.digits(),
                    false => Err(self.fault(Expected::MessageId)),
                }
            }
        }
    }

    /// A number behind one blank, the usual form; otherwise returns `None` and does not advance.
    #[inline(always)]
    fn usual_number(&mut self) -> Option<u64> {
        if self.byte() != b' ' {
            return None;
        }
        let (value, end) = digits::parse(self.block, self.at + 1)?;
        self.at = end;
        Some(value)
    }

    /// Advances past `prefix`, with which the next word must begin; otherwise that is not what is `expected`.
    #[inline(always)]
    pub(super) fn prefix(&mut self, prefix: &[u8], expected: Expected) -> Result<(), Fault> {
        self.next_word()?;
        match self.block[self.at..].starts_with(prefix) {
            true => self.at += prefix.len(),
            false => return Err(self.fault(expected)),
        }
        Ok(())
    }

    /// Whether the line continues behind the previous word; if so, advances to the next one.
    #[inline(always)]
    pub(super) fn continues(&mut self) -> Result<bool, Fault> {
        self.next_word()?;
        Ok(self.byte() != b'\n')
    }

    /// Advances past the line end, which must follow the previous word.
    #[inline(always)]
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.byte() != b'\n' && self.continues()? {
            return Err(self.fault(Expected::Nothing));
        }
        self.at += 1;
        Ok(())
    }
}

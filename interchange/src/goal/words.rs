//! The words of a GOAL text, and the blocks `rank N { … }` in which it is read.

use memchr::{memchr, memchr2, memmem, memrchr};
use std::io::{self, Read};

/// Bytes that are read at once.
const STEP: usize = 1 << 20;
/// Length of a line, at most.
const LONGEST: usize = 64 << 20;

/// Divides a text into blocks that end with a closing brace outside of comments, so that one rank at a time is in memory.
pub(super) struct Blocks {
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    /// Where the current block begins.
    begin: usize,
    /// Line on which it begins.
    line: u32,
    at_end: bool,
    /// Whether the current block ends with a brace, not with the file.
    is_closed: bool,
    /// Bytes read.
    pub(super) read: u64,
    /// Bytes of the line that was read last, so far.
    of_line: usize,
}

impl Blocks {
    pub(super) fn new(input: Box<dyn Read>) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            begin: 0,
            line: 1,
            at_end: false,
            is_closed: false,
            read: 0,
            of_line: 0,
        }
    }

    /// The length of the next block; at the end of the file, all that is left, which may be nothing.
    pub(super) fn load(&mut self) -> io::Result<usize> {
        let mut at = 0;
        self.is_closed = false;
        loop {
            let found = memchr2(b'}', b'/', &self.rest()[at..]).map(|found| at + found);
            let Some(found) = found else {
                at = self.rest().len();
                if !self.more()? {
                    return Ok(at);
                }
                continue;
            };
            if self.rest()[found] == b'}' {
                self.is_closed = true;
                return Ok(found + 1);
            }
            while self.rest().len() < found + 2 && self.more()? {}
            at = match self.rest().get(found + 1) {
                Some(b'/') => self.skip(found + 2, b"\n")?,
                Some(b'*') => self.skip(found + 2, b"*/")?,
                _ => found + 1,
            };
        }
    }

    /// The current block, and what has been read behind it.
    fn rest(&self) -> &[u8] {
        &self.buffer[self.begin..]
    }

    /// Goes from `at` past the next `end`, or to the end of the file.
    fn skip(&mut self, at: usize, end: &[u8]) -> io::Result<usize> {
        let mut from = at;
        loop {
            if let Some(found) = memmem::find(&self.rest()[from..], end) {
                return Ok(from + found + end.len());
            }
            from = self.rest().len().saturating_sub(end.len() - 1).max(at);
            if !self.more()? {
                return Ok(self.rest().len());
            }
        }
    }

    /// Reads on; whether there was anything. What is in front of the current block is removed: once for many small blocks.
    fn more(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        self.buffer.drain(..self.begin);
        self.begin = 0;
        // Without the memory it is an error.
        self.buffer.try_reserve(STEP + 1).map_err(io::Error::other)?;
        let step = (&mut self.input).take(STEP as u64).read_to_end(&mut self.buffer)?;
        let new = &self.buffer[self.buffer.len() - step..];
        self.of_line = memrchr(b'\n', new).map_or(self.of_line + step, |end| step - end - 1);
        if self.of_line > LONGEST {
            return Err(io::Error::other("a line of more than 64 MiB"));
        }
        self.read += step as u64;
        self.at_end = step == 0;
        Ok(step > 0)
    }

    /// Whether the file ends within the block.
    pub(super) fn is_cut(&self, length: usize) -> bool {
        !self.is_closed && self.words(length).any()
    }

    /// The length of the block without a last line that has no end.
    pub(super) fn whole_lines(&self, length: usize) -> usize {
        memrchr(b'\n', &self.rest()[..length]).map_or(0, |end| end + 1)
    }

    /// The last line of the block up to there that has more than blanks.
    pub(super) fn last_line(&self, length: usize) -> u32 {
        let block = self.rest()[..length].trim_ascii_end();
        self.line + block.iter().filter(|&&byte| byte == b'\n').count() as u32
    }

    /// The words of the block that is loaded.
    pub(super) fn words(&self, length: usize) -> Words<'_> {
        Words { text: &self.rest()[..length], at: 0, line: self.line }
    }

    /// Leaves the block, which ends on `line`.
    pub(super) fn pass(&mut self, length: usize, line: u32) {
        (self.begin, self.line) = (self.begin + length, line);
    }
}

/// What a byte is in a text. Those of words are the lowest.
mod class {
    pub(super) const WORD: u8 = 0;
    /// May begin a comment, unless it is within a word.
    pub(super) const SLASH: u8 = 1;
    pub(super) const BLANK: u8 = 2;
    pub(super) const LINE_END: u8 = 3;
    /// A word of its own.
    pub(super) const SIGN: u8 = 4;
}

/// The class of each byte.
const CLASSES: [u8; 256] = {
    let mut classes = [class::WORD; 256];
    classes[b'/' as usize] = class::SLASH;
    classes[b'\n' as usize] = class::LINE_END;
    let (blanks, signs) = (*b" \t\r\x0c", *b"{}:");
    let mut at = 0;
    while at < blanks.len() {
        classes[blanks[at] as usize] = class::BLANK;
        at += 1;
    }
    at = 0;
    while at < signs.len() {
        classes[signs[at] as usize] = class::SIGN;
        at += 1;
    }
    classes
};

/// The class of the byte at an index; that of a blank behind the end.
#[inline]
fn class_at(text: &[u8], at: usize) -> u8 {
    text.get(at).map_or(class::BLANK, |&byte| CLASSES[byte as usize])
}

/// Words of a text, without comments.
pub(super) struct Words<'a> {
    text: &'a [u8],
    /// Index of the next byte.
    at: usize,
    /// Line of the word that was read, or looked at, last.
    pub(super) line: u32,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The last line of the text that has more than blanks, after its last word.
    pub(super) fn last_line(&self) -> u32 {
        let blanks = &self.text[self.text.trim_ascii_end().len()..];
        self.line - blanks.iter().filter(|&&byte| byte == b'\n').count() as u32
    }

    /// Bytes of the text.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Goes to the next word; whether there is one.
    #[inline]
    pub(super) fn any(&mut self) -> bool {
        while let Some(&byte) = self.text.get(self.at) {
            match CLASSES[byte as usize] {
                class::BLANK => {}
                class::LINE_END => self.line += 1,
                class::SLASH if matches!(self.text.get(self.at + 1), Some(b'/' | b'*')) => {
                    self.comment();
                    continue;
                }
                _ => return true,
            }
            self.at += 1;
        }
        false
    }

    /// Reads the next word.
    #[inline]
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        if !self.any() {
            return None;
        }
        let begin = self.at;
        self.at += 1;
        if CLASSES[self.text[begin] as usize] != class::SIGN {
            while class_at(self.text, self.at) <= class::SLASH {
                self.at += 1;
            }
        }
        Some(&self.text[begin..self.at])
    }

    /// Reads the next word if it is this one.
    #[inline]
    pub(super) fn pass<const N: usize>(&mut self, word: &[u8; N]) -> bool {
        let passes = self.any()
            && self.text[self.at..].first_chunk() == Some(word)
            && (CLASSES[word[N - 1] as usize] == class::SIGN
                || class_at(self.text, self.at + N) > class::SLASH);
        self.at += if passes { N } else { 0 };
        passes
    }

    /// Reads the next word if it is a number, of digits only, with this unit behind it.
    #[inline]
    pub(super) fn number<const N: usize>(&mut self, unit: &[u8; N]) -> Option<u64> {
        if !self.any() {
            return None;
        }
        let (end, mut value) = self.digits(self.at);
        let digits = &self.text[self.at..end];
        let behind = end + N;
        if digits.is_empty()
            || self.text.get(end..behind) != Some(unit)
            || class_at(self.text, behind) <= class::SLASH
        {
            return None;
        }
        if digits.len() >= 20 {
            // It may be too large.
            value = std::str::from_utf8(digits).ok()?.parse().ok()?;
        }
        self.at = behind;
        Some(value)
    }

    /// Reads the next word; and its number, if it is `prefix` and a number without zeros in front, of 18 digits at most.
    #[inline]
    pub(super) fn label(&mut self, prefix: &[u8]) -> Option<(&'a [u8], Option<u64>)> {
        if !self.any() {
            return None;
        }
        let (begin, from) = (self.at, self.at + prefix.len());
        if self.text[begin..].iter().zip(prefix).all(|(byte, other)| byte == other) {
            let (end, number) = self.digits(from);
            let fits = match end - from {
                0 => false,
                1 => true,
                digits => digits <= 18 && self.text[from] != b'0',
            };
            if fits && class_at(self.text, end) > class::SLASH {
                self.at = end;
                return Some((&self.text[begin..end], Some(number)));
            }
        }
        self.next().map(|word| (word, None))
    }

    /// Where digits end that begin at an index, and the number that they are, if it fits.
    #[inline]
    fn digits(&self, begin: usize) -> (usize, u64) {
        let (mut end, mut value) = (begin, 0u64);
        while let Some(digit @ 0..10) = self.text.get(end).map(|byte| byte.wrapping_sub(b'0')) {
            value = value.wrapping_mul(10).wrapping_add(digit.into());
            end += 1;
        }
        (end, value)
    }

    /// Goes to the end of a comment.
    #[cold]
    fn comment(&mut self) {
        let rest = &self.text[self.at..];
        let length = match rest[1] {
            b'/' => memchr(b'\n', rest),
            _ => memmem::find(&rest[2..], b"*/").map(|end| end + 4),
        };
        let comment = &rest[..length.unwrap_or(rest.len())];
        self.line += comment.iter().filter(|&&byte| byte == b'\n').count() as u32;
        self.at += comment.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few bytes of a compressed file may be any number of blanks.
    #[test]
    fn a_line_without_an_end_is_refused() {
        let blanks = io::repeat(b' ').take(4 * LONGEST as u64);
        let error = Blocks::new(Box::new("rank 0 {".as_bytes().chain(blanks))).load().unwrap_err();
        assert!(error.to_string().contains("a line of more than 64 MiB"), "{error}");
        let lines = "a line\n".repeat(2 * LONGEST / 7);
        assert_eq!(
            Blocks::new(Box::new(io::Cursor::new(lines.clone() + "}"))).load().unwrap(),
            lines.len() + 1
        );
    }
}

//! The words of a GOAL text, and the blocks `rank N { … }` in which it is read.

use memchr::{memchr, memchr2, memmem};
use std::io::{self, Read};

/// Bytes that are read at once.
const STEP: usize = 1 << 20;

/// Divides a text into blocks that end with a closing brace outside of comments, so that one rank at a time is in memory.
pub(super) struct Blocks {
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    /// Where the current block begins.
    begin: usize,
    /// Line on which it begins.
    line: u32,
    at_end: bool,
    /// Bytes read.
    pub(super) read: u64,
}

impl Blocks {
    pub(super) fn new(input: Box<dyn Read>) -> Self {
        Self { input, buffer: Vec::new(), begin: 0, line: 1, at_end: false, read: 0 }
    }

    /// The length of the next block; at the end of the file, all that is left, which may be nothing.
    pub(super) fn load(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let mut at = 0;
        loop {
            let found = memchr2(b'}', b'/', &self.buffer[at..]).map(|found| at + found);
            let Some(found) = found else {
                at = self.buffer.len();
                if !self.more()? {
                    return Ok(at);
                }
                continue;
            };
            if self.buffer[found] == b'}' {
                return Ok(found + 1);
            }
            while self.buffer.len() < found + 2 && self.more()? {}
            at = match self.buffer.get(found + 1) {
                Some(b'/') => self.skip(found + 2, b"\n")?,
                Some(b'*') => self.skip(found + 2, b"*/")?,
                _ => found + 1,
            };
        }
    }

    /// Goes from `at` past the next `end`, or to the end of the file.
    fn skip(&mut self, at: usize, end: &[u8]) -> io::Result<usize> {
        let mut from = at;
        loop {
            if let Some(found) = memmem::find(&self.buffer[from..], end) {
                return Ok(from + found + end.len());
            }
            from = self.buffer.len().saturating_sub(end.len() - 1).max(at);
            if !self.more()? {
                return Ok(self.buffer.len());
            }
        }
    }

    /// Reads on; whether there was anything.
    fn more(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let before = self.buffer.len();
        let step = (&mut self.input).take(STEP as u64).read_to_end(&mut self.buffer)?;
        self.read += step as u64;
        self.at_end = step == 0;
        Ok(self.buffer.len() > before)
    }

    /// The words of the block that is loaded.
    pub(super) fn words(&self, length: usize) -> Words<'_> {
        Words { text: &self.buffer[..length], line: self.line, ahead: None }
    }

    /// Leaves the block, which ends on `line`.
    pub(super) fn pass(&mut self, length: usize, line: u32) {
        (self.begin, self.line) = (length, line);
    }
}

/// Words of a text with their lines, without comments.
pub(super) struct Words<'a> {
    text: &'a [u8],
    /// Line of the next byte.
    pub(super) line: u32,
    /// The next word, if it was peeked at.
    ahead: Option<(&'a [u8], u32)>,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, line: 1, ahead: None }
    }

    #[inline]
    pub(super) fn peek(&mut self) -> Option<(&'a [u8], u32)> {
        if self.ahead.is_none() {
            self.ahead = self.read();
        }
        self.ahead
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<(&'a [u8], u32)> {
        match self.ahead.take() {
            Some(word) => Some(word),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Option<(&'a [u8], u32)> {
        loop {
            match self.text {
                [] => return None,
                [b'/', b'/', ..] => {
                    let end = memchr(b'\n', self.text).unwrap_or(self.text.len());
                    self.text = &self.text[end..];
                }
                [b'/', b'*', rest @ ..] => {
                    let end = memmem::find(rest, b"*/").map_or(self.text.len(), |end| end + 4);
                    let (comment, rest) = self.text.split_at(end);
                    self.line += comment.iter().filter(|&&b| b == b'\n').count() as u32;
                    self.text = rest;
                }
                [b'\n', rest @ ..] => {
                    self.line += 1;
                    self.text = rest;
                }
                [b' ' | b'\t' | b'\r' | b'\x0c', rest @ ..] => self.text = rest,
                [b'{' | b'}' | b':', ..] => return Some(self.split(1)),
                _ => {
                    let ends =
                        |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | b'\x0c' | b'{' | b'}' | b':');
                    let end = self.text.iter().position(ends).unwrap_or(self.text.len());
                    return Some(self.split(end));
                }
            }
        }
    }

    fn split(&mut self, at: usize) -> (&'a [u8], u32) {
        let (word, rest) = self.text.split_at(at);
        self.text = rest;
        (word, self.line)
    }
}

//! Input of a container: positioned reads of a file or of bytes, and a scanner of numbers that buffers only a window.

use super::Problem;
use super::code::Garbled;
use crate::varint::{MAX_LEN, Source};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes read at a time.
const WINDOW: usize = 64 << 10;

/// A file, or bytes.
#[derive(Debug)]
pub(super) enum Input {
    File(File),
    Bytes(Vec<u8>),
}

impl Input {
    /// Fills `into` from `offset` on.
    pub(super) fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(into, offset),
            Self::Bytes(bytes) => {
                let from = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)?.get(..into.len()));
                from.map(|from| into.copy_from_slice(from)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
        }
    }

    /// Reads from `offset` on until `into` is full or the input ends.
    pub(super) fn some_at<'a>(&self, into: &'a mut [u8], offset: u64) -> io::Result<&'a [u8]> {
        let read = match self {
            Self::File(file) => {
                let mut read = 0;
                while read < into.len() {
                    match file.read_at(&mut into[read..], offset + read as u64) {
                        Ok(0) => break,
                        Ok(more) => read += more,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                read
            }
            Self::Bytes(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let read = rest.len().min(into.len());
                into[..read].copy_from_slice(&rest[..read]);
                read
            }
        };
        Ok(&into[..read])
    }

    /// The CRC-32 of `begin` and of the bytes between two offsets.
    pub(super) fn checksum(&self, begin: &[u8], from: u64, to: u64) -> io::Result<u32> {
        let mut crc = crc32fast::Hasher::new();
        crc.update(begin);
        let mut window = vec![0; WINDOW.min(usize::try_from(to - from).unwrap_or(WINDOW))];
        let mut at = from;
        while at < to {
            let part = window.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
            self.read_at(&mut window[..part], at)?;
            crc.update(&window[..part]);
            at += part as u64;
        }
        Ok(crc.finalize())
    }
}

/// Scans numbers and texts between two offsets.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    input: &'a Input,
    /// Buffered bytes, and how many of them are consumed.
    window: Vec<u8>,
    at: usize,
    /// Offset of the end of the window, and limit of reading.
    offset: u64,
    end: u64,
}

impl<'a> Scan<'a> {
    pub(super) fn new(input: &'a Input, from: u64, end: u64) -> Self {
        Self { input, window: Vec::new(), at: 0, offset: from, end }
    }

    /// The next number.
    #[inline]
    pub(super) fn get(&mut self) -> Result<u64, Problem> {
        self.need(MAX_LEN)?;
        let mut from = Source::new(&self.window, self.at);
        let value = from.get().map_err(Garbled::from)?;
        self.at = from.position();
        Ok(value)
    }

    /// The next text.
    pub(super) fn text(&mut self) -> Result<String, Problem> {
        let length = self.get()?;
        if length > self.end - self.position() {
            return Err(Garbled::Length.into());
        }
        let length = usize::try_from(length).map_err(|_| Garbled::Length)?;
        self.need(length)?;
        let bytes = self.window.get(self.at..self.at + length).ok_or(Garbled::Length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| Garbled::Value("a text"))?.to_owned();
        self.at += length;
        Ok(text)
    }

    /// Offset of the next number.
    pub(super) fn position(&self) -> u64 {
        self.offset - (self.window.len() - self.at) as u64
    }

    /// Fills the window with at least `bytes` more, or all that are left.
    #[inline]
    fn need(&mut self, bytes: usize) -> Result<(), Problem> {
        if self.window.len() - self.at < bytes && self.offset < self.end { self.fill(bytes) } else { Ok(()) }
    }

    #[cold]
    fn fill(&mut self, bytes: usize) -> Result<(), Problem> {
        self.window.drain(..self.at);
        self.at = 0;
        let kept = self.window.len();
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let more = left.min(bytes.max(WINDOW));
        self.window.resize(kept + more, 0);
        self.input.read_at(&mut self.window[kept..], self.offset)?;
        self.offset += more as u64;
        Ok(())
    }
}

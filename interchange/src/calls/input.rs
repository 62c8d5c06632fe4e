//! Reads a binary file front to back through a buffer. Nothing is allocated on the word of a length in the file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const BUFFER: usize = 256 << 10;

/// The end of the file, or an error of the operating system.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The file, or the part of it that is read, ends.
    End,
    /// It cannot be read.
    Io(std::io::Error),
}

/// A file, from some byte to some other.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
    buffer: Vec<u8>,
    /// Next byte, and end of the valid bytes, in the buffer.
    at: usize,
    end: usize,
    /// Place in the file of the buffer's first byte.
    base: u64,
    /// Length of the file.
    len: u64,
}

impl Input {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file, buffer: vec![0; BUFFER], at: 0, end: 0, base: 0, len })
    }

    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Byte of the file that is read next.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Goes on at this byte.
    pub(crate) fn seek(&mut self, offset: u64) -> std::io::Result<()> {
        if offset >= self.base && offset <= self.base + self.end as u64 {
            self.at = (offset - self.base) as usize;
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(offset))?;
        (self.base, self.at, self.end) = (offset, 0, 0);
        Ok(())
    }

    /// Passes by `count` bytes.
    pub(crate) fn skip(&mut self, count: u64) -> Result<(), Stop> {
        let target = self.offset().checked_add(count).filter(|&target| target <= self.len);
        self.seek(target.ok_or(Stop::End)?).map_err(Stop::Io)
    }

    /// The next bytes.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        if self.end - self.at < N {
            self.fill(N)?;
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.buffer[self.at..self.at + N]);
        self.at += N;
        Ok(bytes)
    }

    /// The next byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Stop> {
        Ok(self.take::<1>()?[0])
    }

    /// A text of `count` bytes.
    pub(crate) fn text(&mut self, count: u64) -> Result<String, Stop> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            bytes.push(self.byte()?);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A text that ends with a zero byte.
    pub(crate) fn text_to_zero(&mut self) -> Result<String, Stop> {
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                byte => bytes.push(byte),
            }
        }
    }

    #[cold]
    fn fill(&mut self, wanted: usize) -> Result<(), Stop> {
        self.buffer.copy_within(self.at..self.end, 0);
        self.base += self.at as u64;
        (self.end, self.at) = (self.end - self.at, 0);
        while self.end < wanted {
            match self.file.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(Stop::End),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Io(error)),
            }
        }
        Ok(())
    }
}

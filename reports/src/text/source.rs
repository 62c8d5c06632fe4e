//! A rank's text trace, line by line.

use super::error::{TextError, placed};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The longest line that is read, bytes.
const LONGEST_LINE: usize = 1 << 16;

/// A rank's file. It is open only while a piece is read: there may be more ranks than a process may open files.
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Number of the line that was read last, from 1.
    pub(super) line: u64,
    offset: u64,
    room: usize,
    piece: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Source {
    /// `room`: bytes of a piece.
    pub(super) fn new(path: PathBuf, room: usize) -> Self {
        Self { path, line: 0, offset: 0, room, piece: Vec::new(), at: 0, ended: false }
    }

    /// The next line; `false`: there is none.
    pub(super) fn next(&mut self, text: &mut String) -> Result<bool, TextError> {
        text.clear();
        let end = loop {
            if let Some(length) = self.piece[self.at..].iter().position(|&byte| byte == b'\n') {
                break self.at + length;
            }
            if self.ended {
                break self.piece.len();
            }
            if self.piece.len() - self.at > LONGEST_LINE {
                let what = "longer than any line of a trace";
                return Err(TextError::Line { path: self.path.clone(), line: self.line + 1, what });
            }
            self.refill().map_err(|error| placed(&self.path, error))?;
        };
        if end == self.piece.len() && self.at == end {
            return Ok(false);
        }
        self.line += 1;
        let Ok(line) = std::str::from_utf8(&self.piece[self.at..end]) else {
            return Err(TextError::Line { path: self.path.clone(), line: self.line, what: "not text" });
        };
        text.push_str(line.trim_end_matches('\r'));
        self.at = (end + 1).min(self.piece.len());
        Ok(true)
    }

    fn refill(&mut self) -> io::Result<()> {
        self.piece.drain(..self.at);
        self.at = 0;
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let read = file.take(self.room as u64).read_to_end(&mut self.piece)?;
        self.offset += read as u64;
        self.ended = read == 0;
        Ok(())
    }
}

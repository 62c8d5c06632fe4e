//! A rank's text trace, line by line.

use super::error::{TextError, placed};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The longest line that is read, bytes.
const LONGEST_LINE: u64 = 1 << 16;

/// A rank's file.
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Number of the line that was read last, from 1.
    pub(super) line: u64,
    reader: BufReader<Pieces>,
}

/// A file that is open only while a piece is read: there may be more ranks than a process may open files.
struct Pieces {
    path: PathBuf,
    offset: u64,
}

impl Read for Pieces {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let read = File::open(&self.path)?.read_at(piece, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Source {
    /// `room`: bytes of a piece.
    pub(super) fn new(path: PathBuf, room: usize) -> Self {
        let pieces = Pieces { path: path.clone(), offset: 0 };
        Self { path, line: 0, reader: BufReader::with_capacity(room, pieces) }
    }

    /// The next line; `false`: there is none.
    pub(super) fn next(&mut self, text: &mut String) -> Result<bool, TextError> {
        text.clear();
        let what = match self.reader.by_ref().take(LONGEST_LINE).read_line(text) {
            Ok(0) => return Ok(false),
            Ok(read) if read as u64 == LONGEST_LINE => "longer than any line of a trace",
            Ok(_) => {
                self.line += 1;
                text.truncate(text.trim_end_matches(['\r', '\n']).len());
                return Ok(true);
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => "not text",
            Err(error) => return Err(placed(&self.path, error)),
        };
        Err(TextError::Line { path: self.path.clone(), line: self.line + 1, what })
    }
}

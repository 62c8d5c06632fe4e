//! Reads a text file line by line. A line has a limit, so that a file without line ends takes no memory.

use crate::error::{ImportError, Problem, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use vef_format::error::{Located, Place};

/// Length of a line, at most.
const LONGEST: u64 = 64 << 20;

/// Of a last line that cannot be read and has no line end.
pub(crate) const CUT: &str = "the file ends within this line; vef import --partial imports the lines before";

/// The lines of a file.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// Number of the current line, from 1.
    pub(crate) number: u64,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// Whether the last line read had a line end.
    pub(crate) ended: bool,
}

impl Lines {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Problem::from(error).of_file(path))?;
        let (reader, line) = (BufReader::with_capacity(256 << 10, file), Vec::new());
        Ok(Self { path: path.to_path_buf(), reader, line, number: 0, bytes: 0, ended: true })
    }

    /// Goes to the next line that is neither empty nor a remark (`#`); `false`: there are no more.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            let read = (&mut self.reader).take(LONGEST).read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| self.wrong(error.into()))?;
            if read == 0 {
                return Ok(false);
            }
            (self.number, self.bytes) = (self.number + 1, self.bytes + read as u64);
            self.ended = self.line.last() == Some(&b'\n');
            if !self.ended && read as u64 == LONGEST {
                return Err(self.wrong(Problem::TooLarge("the line".to_owned())));
            }
            let text = self.line.trim_ascii();
            if !text.is_empty() && text[0] != b'#' {
                break;
            }
        }
        if std::str::from_utf8(&self.line).is_err() {
            let found = String::from_utf8_lossy(&self.line).chars().take(40).collect();
            return Err(self.wrong(Problem::Expected { expected: "text", found }));
        }
        Ok(true)
    }

    /// The current line.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(self.line.trim_ascii()).unwrap_or_default()
    }

    /// The place of the current line.
    pub(crate) fn place(&self) -> Place {
        Place::line(&self.path, self.number)
    }

    /// A problem of the current line.
    pub(crate) fn wrong(&self, problem: Problem) -> ImportError {
        Located { place: self.place(), problem }
    }
}

//! Files that are written.

use super::error::{TextError, placed};
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use vef_format::new_file::NewFile;

/// A text file, for `write!`.
pub(super) struct Output {
    pub(super) path: PathBuf,
    to: BufWriter<File>,
    /// Of a file that gets its name when it is complete.
    new: Option<NewFile>,
}

impl Output {
    /// Creates a file that replaces one of its name when it is complete.
    pub(super) fn replace(path: PathBuf) -> Result<Self, TextError> {
        let create = || {
            let new = NewFile::create(&path)?;
            Ok((new.file().try_clone()?, new))
        };
        match create() {
            Ok((file, new)) => Ok(Self { to: BufWriter::new(file), new: Some(new), path }),
            Err(error) => Err(placed(&path, error)),
        }
    }

    /// Creates a file in a new directory, or continues one.
    pub(super) fn append(path: PathBuf) -> Result<Self, TextError> {
        match File::options().append(true).create(true).open(&path) {
            Ok(file) => Ok(Self { to: BufWriter::new(file), new: None, path }),
            Err(error) => Err(placed(&path, error)),
        }
    }

    pub(super) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), TextError> {
        self.to.write_fmt(text).map_err(|error| placed(&self.path, error))
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<(), TextError> {
        let finished = self.to.flush().and_then(|()| self.new.take().map_or(Ok(()), NewFile::finish));
        finished.map_err(|error| placed(&self.path, error))
    }
}

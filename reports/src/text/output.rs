//! A text file that is written.

use super::error::{TextError, placed};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

/// A file, for `write!`.
pub(super) struct Output {
    pub(super) path: PathBuf,
    to: BufWriter<std::fs::File>,
}

impl Output {
    /// Creates a file, or opens one that is there as `existing` says.
    pub(super) fn new(path: PathBuf, existing: &mut OpenOptions) -> Result<Self, TextError> {
        match existing.create(true).open(&path) {
            Ok(file) => Ok(Self { to: BufWriter::new(file), path }),
            Err(error) => Err(placed(&path, error)),
        }
    }

    pub(super) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), TextError> {
        self.to.write_fmt(text).map_err(|error| placed(&self.path, error))
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<(), TextError> {
        self.to.flush().map_err(|error| placed(&self.path, error))
    }
}

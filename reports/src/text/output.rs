//! Files and directories that are written.

use super::error::{TextError, placed};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use vef_format::new_file::hidden_beside;

/// A text file, for `write!`.
pub(super) struct Output {
    pub(super) path: PathBuf,
    to: BufWriter<File>,
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

/// An incomplete directory: replaces the one of its name when it is complete, and leaves nothing behind otherwise.
pub(super) struct NewDirectory {
    /// The directory until then.
    pub(super) path: PathBuf,
    /// The directory from then on.
    pub(super) target: PathBuf,
}

impl NewDirectory {
    /// Creates the directory that becomes `target`.
    pub(super) fn create(target: PathBuf) -> Result<Self, TextError> {
        let create = || {
            let path = hidden_beside(&target, "part")?;
            // Left by a killed process with the same pid.
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).map(|()| path)
        };
        let path = create().map_err(|error| placed(&target, error))?;
        Ok(Self { path, target })
    }

    /// Gives the complete directory its name; removes the one that has it already.
    pub(super) fn finish(self) -> Result<(), TextError> {
        let if_there = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
        let replace = || {
            let old = hidden_beside(&self.target, "old")?;
            if_there(fs::rename(&self.target, &old))?;
            fs::rename(&self.path, &self.target)?;
            if_there(fs::remove_dir_all(&old))
        };
        replace().map_err(|error| placed(&self.target, error))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // Renamed already if it was finished.
        let _ = fs::remove_dir_all(&self.path);
    }
}

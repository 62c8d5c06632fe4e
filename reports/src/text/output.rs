//! Files and directories that are written.

use super::error::{TextError, placed};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use vef_format::new_file::{NewFile, hidden_beside};

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

    /// Creates a file in a [`NewDirectory`], or continues one.
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

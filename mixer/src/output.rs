//! The file a trace is written to, and its errors.

use crate::error::MixError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use vef_format::new_file::NewFile;

/// A trace in the making.
#[derive(Debug)]
pub(crate) struct Output {
    new: NewFile,
    path: PathBuf,
}

impl Output {
    /// Begins what will be `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, MixError> {
        let new = NewFile::create(path).map_err(|error| failed(path, error))?;
        Ok(Self { new, path: path.to_path_buf() })
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> &File {
        self.new.file()
    }

    /// An error of writing it.
    pub(crate) fn error(&self, error: impl std::error::Error + Send + Sync + 'static) -> MixError {
        failed(&self.path, error)
    }

    /// Gives the whole file its name.
    pub(crate) fn finish(self) -> Result<(), MixError> {
        let Self { new, path } = self;
        new.finish().map_err(|error| failed(&path, error))
    }
}

/// A file for a while, near what will be `path`; the name of none that is there.
pub(crate) fn beside(path: &Path, suffix: &str) -> Result<PathBuf, MixError> {
    vef_format::new_file::hidden_beside(path, suffix).map_err(|error: io::Error| failed(path, error))
}

/// An error of the file at `path`.
pub(crate) fn failed(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> MixError {
    MixError::Output { path: path.to_path_buf(), source: Box::new(error) }
}

//! The output file, temporary files beside it, and their errors.

use crate::error::MixError;
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use vef_format::new_file::{NewFile, hidden_beside};

/// The output file until it is complete.
#[derive(Debug)]
pub(crate) struct Output {
    file: NewFile,
    /// Path of the trace, for errors.
    path: PathBuf,
}

impl Output {
    /// Creates the file that becomes `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, MixError> {
        let new = NewFile::create(path).map_err(|error| failed(path, error))?;
        Ok(Self { file: new, path: path.to_path_buf() })
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> &File {
        self.file.file()
    }

    /// Path of the trace.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Wraps an error of writing the trace.
    pub(crate) fn error(&self, error: impl Error + Send + Sync + 'static) -> MixError {
        failed(&self.path, error)
    }

    /// Renames the complete file to its path.
    pub(crate) fn finish(self) -> Result<(), MixError> {
        self.file.finish().map_err(|error| failed(&self.path, error))
    }
}

/// Creates an unnamed file, which the system deletes when it is closed, in `directory` (default: where the trace `path`
/// will be, unless that is a pipe or device). Returns the file and its directory.
pub(crate) fn nameless(path: &Path, directory: Option<&Path>) -> Result<(File, PathBuf), MixError> {
    let beside = || hidden_beside(path, "part").map_err(|error| failed(path, error));
    let directory = match directory {
        Some(directory) => directory.to_path_buf(),
        None => beside()?.parent().map(Path::to_path_buf).unwrap_or_default(),
    };
    let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
    let file = tempfile::tempfile_in(&directory).map_err(|error| {
        // The text without the name that the file had before it was unlinked.
        let cause = error.get_ref().and_then(|inner| inner.source()).map(ToString::to_string);
        let plain = cause.map_or(error.to_string(), |cause| cause);
        temporary_failed(path, &directory, &io::Error::new(error.kind(), plain))
    })?;
    Ok((file, directory))
}

/// An error of a temporary file: names its directory, because the file has no name.
pub(crate) fn temporary_failed(path: &Path, directory: &Path, error: &io::Error) -> MixError {
    let what = format!("the temporary file in {}: {error}", directory.display());
    failed(path, io::Error::new(error.kind(), what))
}

/// An error of creating or writing the trace `path`.
fn failed(path: &Path, error: impl Error + Send + Sync + 'static) -> MixError {
    MixError::Output { path: path.to_path_buf(), source: Box::new(error) }
}

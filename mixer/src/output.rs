//! The file a trace is written to, those that lie beside it for a while, and their errors.

use crate::error::MixError;
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use vef_format::new_file::{NewFile, hidden_beside};

/// A trace in the making.
#[derive(Debug)]
pub(crate) struct Output {
    file: NewFile,
    /// The trace, for errors.
    path: PathBuf,
}

impl Output {
    /// Begins what will be `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, MixError> {
        let new = NewFile::create(path).map_err(|error| failed(path, error))?;
        Ok(Self { file: new, path: path.to_path_buf() })
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> &File {
        self.file.file()
    }

    /// The trace.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An error of writing it.
    pub(crate) fn error(&self, error: impl Error + Send + Sync + 'static) -> MixError {
        failed(&self.path, error)
    }

    /// Gives the whole file its name.
    pub(crate) fn finish(self) -> Result<(), MixError> {
        self.file.finish().map_err(|error| failed(&self.path, error))
    }
}

/// A file without a name, of which nothing stays behind whatever happens, and where it is: in `directory`, else where
/// the trace `path` will be, if that is no pipe or device.
pub(crate) fn nameless(path: &Path, directory: Option<&Path>) -> Result<(File, PathBuf), MixError> {
    let beside = || hidden_beside(path, "part").map_err(|error| failed(path, error));
    let directory = match directory {
        Some(directory) => directory.to_path_buf(),
        None => beside()?.parent().map(Path::to_path_buf).unwrap_or_default(),
    };
    let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
    let file = tempfile::tempfile_in(&directory).map_err(|error| {
        // Without the name that it was to have for an instant.
        let cause = error.get_ref().and_then(|inner| inner.source()).map(ToString::to_string);
        let plain = cause.map_or(error.to_string(), |cause| cause);
        temporary_failed(path, &directory, &io::Error::new(error.kind(), plain))
    })?;
    Ok((file, directory))
}

/// An error of a temporary file in `directory`, which the user knows by that at best.
pub(crate) fn temporary_failed(path: &Path, directory: &Path, error: &io::Error) -> MixError {
    let what = format!("the temporary file in {}: {error}", directory.display());
    failed(path, io::Error::new(error.kind(), what))
}

/// An error of making the trace `path`.
fn failed(path: &Path, error: impl Error + Send + Sync + 'static) -> MixError {
    MixError::Output { path: path.to_path_buf(), source: Box::new(error) }
}

//! A directory that is there whole or not at all.

use super::error::{TextError, placed};
use std::io;
use std::path::PathBuf;
use vef_format::new_file::hidden_beside;

/// A directory in the making: it replaces one of its name when it is whole, and leaves nothing behind otherwise.
pub(super) struct NewDirectory {
    /// Where files are put.
    pub(super) path: PathBuf,
    /// What it is going to be.
    pub(super) target: PathBuf,
}

impl NewDirectory {
    /// One that is going to be `target`.
    pub(super) fn beside(target: PathBuf) -> Result<Self, TextError> {
        let path = hidden_beside(&target, "part").map_err(|error| placed(&target, error))?;
        // One that a process of the same number was killed over.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).map_err(|error| placed(&target, error))?;
        Ok(Self { path, target })
    }

    /// Gives it its name; one that has it already is removed.
    pub(super) fn finish(self) -> Result<(), TextError> {
        let failed = |error| placed(&self.target, error);
        let old = hidden_beside(&self.target, "old").map_err(failed)?;
        match std::fs::rename(&self.target, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        std::fs::rename(&self.path, &self.target).map_err(failed)?;
        match std::fs::remove_dir_all(&old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(placed(&old, error)),
            _ => Ok(()),
        }
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // Gone already if it was finished.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

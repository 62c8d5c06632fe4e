//! What the stages of a mix leave for later ones: in memory, or in a temporary file if the share is mixed in several parts.

use crate::error::MixError;
use crate::output;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Stores blocks of bytes.
#[derive(Debug)]
pub(crate) struct Store {
    /// `None`: blocks stay in memory.
    file: Option<Spill>,
}

/// An unnamed temporary file; nothing is left behind in any case.
#[derive(Debug)]
struct Spill {
    file: File,
    end: AtomicU64,
    /// Path of the trace and directory of the file, for errors.
    trace: PathBuf,
    directory: PathBuf,
}

/// A block in a [`Store`].
#[derive(Debug)]
pub(crate) enum Stored {
    Here(Vec<u8>),
    InFile { at: u64, length: u64 },
}

impl Store {
    /// Blocks stay in memory.
    pub(crate) fn in_memory() -> Self {
        Self { file: None }
    }

    /// Blocks go to a file in `directory`, or in that of `trace`.
    pub(crate) fn in_file(trace: &Path, directory: Option<&Path>) -> Result<Self, MixError> {
        let (file, directory) = output::nameless(trace, directory)?;
        let spill = Spill { file, end: AtomicU64::new(0), trace: trace.to_path_buf(), directory };
        Ok(Self { file: Some(spill) })
    }

    /// Stores a block.
    pub(crate) fn add(&self, block: Vec<u8>) -> Result<Stored, MixError> {
        let Some(spill) = &self.file else { return Ok(Stored::Here(block)) };
        let length = block.len() as u64;
        let at = spill.end.fetch_add(length, Ordering::Relaxed);
        spill.file.write_all_at(&block, at).map_err(|error| spill.failed(&error))?;
        Ok(Stored::InFile { at, length })
    }

    /// Reads a block.
    pub(crate) fn read<'a>(&self, stored: &'a Stored) -> Result<Cow<'a, [u8]>, MixError> {
        match (stored, &self.file) {
            (Stored::Here(block), _) => Ok(block.into()),
            (&Stored::InFile { at, length }, Some(spill)) => {
                let mut block = vec![0; length as usize];
                spill.file.read_exact_at(&mut block, at).map_err(|error| spill.failed(&error))?;
                Ok(block.into())
            }
            (Stored::InFile { .. }, None) => Err(MixError::Garbled),
        }
    }

    /// Size of the file.
    pub(crate) fn spilled(&self) -> u64 {
        self.file.as_ref().map_or(0, |spill| spill.end.load(Ordering::Relaxed))
    }
}

impl Spill {
    fn failed(&self, error: &io::Error) -> MixError {
        output::temporary_failed(&self.trace, &self.directory, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_stored_comes_back_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let in_file = Store::in_file(&dir.path().join("t.vef"), None).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        for (store, spilled) in [(in_file, 9), (Store::in_memory(), 0)] {
            let stored = [&b"one"[..], b"", b"second"].map(|block| store.add(block.to_vec()).unwrap());
            let read = stored.each_ref().map(|stored| store.read(stored).unwrap());
            assert_eq!(read, [&b"one"[..], b"", b"second"]);
            assert_eq!(store.spilled(), spilled);
        }
        let nowhere =
            Store::in_file(&dir.path().join("t.vef"), Some(&dir.path().join("no/such"))).unwrap_err();
        let said = "no/such: No such file or directory (os error 2)";
        assert!(nowhere.to_string().ends_with(said), "{nowhere}");
    }
}

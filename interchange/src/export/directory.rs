//! An output directory that gets its name only when it is complete.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use vef_format::new_file::{hidden_beside, is_stdout};

/// An incomplete directory, under a hidden name beside its own.
#[derive(Debug)]
pub(crate) struct NewDirectory {
    hidden: PathBuf,
    to: PathBuf,
}

impl NewDirectory {
    /// Creates the directory that becomes `to`, which must not be there, or be empty.
    pub(crate) fn create(to: &Path) -> io::Result<Self> {
        if is_stdout(to) {
            let what = "a directory is written in this format: name one";
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        match fs::read_dir(to).map(|mut entries| entries.next().is_some()) {
            Ok(true) => return Err(ErrorKind::DirectoryNotEmpty.into()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(false) | Err(_) => {}
        }
        let hidden = hidden_beside(to, "part")?;
        fs::create_dir(&hidden)?;
        Ok(Self { hidden, to: to.to_path_buf() })
    }

    /// Where its files are written.
    pub(crate) fn path(&self) -> &Path {
        &self.hidden
    }

    /// Gives the complete directory its name.
    pub(crate) fn finish(self) -> io::Result<()> {
        fs::rename(&self.hidden, &self.to)
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // Of a complete directory nothing has the hidden name.
        let _ = fs::remove_dir_all(&self.hidden);
    }
}

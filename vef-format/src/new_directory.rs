//! Directories that are there for a time: for temporary files, and those that get their name only when they are complete.
//!
//! A signal ends a process without dropping its values: until then the directories of this process are in a list, from which
//! [`remove_all`] removes them.

use crate::new_file::{hidden_beside, is_stdout};
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directories of this process.
static ALL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory that is removed with its contents when this value is dropped.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Creates a directory for the caller alone among the temporary files of the system. Its name is unpredictable and begins with `name`.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn create(name: &str) -> io::Result<Self> {
        // The hasher's key is from the system's random numbers.
        let name = format!("{name}{:016x}", RandomState::new().hash_one(()));
        Self::with_mode(std::env::temp_dir().join(name), 0o700)
    }

    fn with_mode(path: PathBuf, mode: u32) -> io::Result<Self> {
        let mut all = all();
        DirBuilder::new().mode(mode).create(&path)?;
        all.push(path.clone());
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Best effort; a complete directory has another name by now.
        let _ = fs::remove_dir_all(&self.0);
        all().retain(|path| *path != self.0);
    }
}

/// Removes the directories of this process, which is about to end: its other threads may write to them until then, but make none and give none
/// its name.
pub fn remove_all() {
    let all = all();
    for path in all.iter() {
        // Fails if another thread creates a file meanwhile.
        for _ in 0..100 {
            match fs::remove_dir_all(path) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                _ => break,
            }
        }
    }
    // Locked until the process ends.
    std::mem::forget(all);
}

/// An output directory that gets its name only when it is complete; until then it has a hidden name beside its own.
#[derive(Debug)]
pub struct NewDirectory {
    hidden: TemporaryDirectory,
    to: PathBuf,
    replaces: bool,
}

impl NewDirectory {
    /// Creates the directory that becomes `to`, which must not be there, or be empty.
    ///
    /// # Errors
    /// It is there, or those of the operating system.
    pub fn create(to: &Path) -> io::Result<Self> {
        if is_stdout(to) {
            let what = "a directory is written in this format: name one";
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        match fs::read_dir(to).map(|mut entries| entries.next().is_some()) {
            Ok(true) => Err(ErrorKind::DirectoryNotEmpty.into()),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(false) | Err(_) => Self::beside(to, false),
        }
    }

    /// Creates the directory that becomes `to`, and replaces the directory of that name.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn replace(to: &Path) -> io::Result<Self> {
        Self::beside(to, true)
    }

    fn beside(to: &Path, replaces: bool) -> io::Result<Self> {
        let hidden = TemporaryDirectory::with_mode(hidden_beside(to, "part")?, 0o777)?;
        Ok(Self { hidden, to: to.to_path_buf(), replaces })
    }

    /// Where its files are written.
    pub fn path(&self) -> &Path {
        self.hidden.path()
    }

    /// Its name when it is complete.
    pub fn target(&self) -> &Path {
        &self.to
    }

    /// Gives the complete directory its name.
    ///
    /// # Errors
    /// Those of the operating system; the directory is removed then.
    pub fn finish(self) -> io::Result<()> {
        // A signal removes it before this, or not at all: not while it gets its name.
        let mut all = all();
        let renamed = match fs::rename(self.path(), &self.to) {
            Err(error) if self.replaces && is_taken(&error) => {
                let old = hidden_beside(&self.to, "old")?;
                fs::rename(&self.to, &old)?;
                fs::rename(self.path(), &self.to).map(|()| Some(old))
            }
            renamed => renamed.map(|()| None),
        };
        if renamed.is_ok() {
            all.retain(|path| path != self.path());
        }
        drop(all);
        renamed?.map_or(Ok(()), fs::remove_dir_all)
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_directory_appears_whole_or_not_at_all() {
        let work = tempfile::tempdir().unwrap();
        let to = work.path().join("archive");
        let new = NewDirectory::create(&to).unwrap();
        fs::write(new.path().join("half"), "").unwrap();
        assert_eq!(names(work.path()).len(), 1);
        drop(new);
        assert_eq!(names(work.path()), [""; 0]);
        for (content, replaces) in [("first", false), ("second", true)] {
            let create = if replaces { NewDirectory::replace } else { NewDirectory::create };
            let new = create(&to).unwrap();
            fs::write(new.path().join(content), "").unwrap();
            assert_eq!(new.target(), to);
            new.finish().unwrap();
            assert_eq!((names(work.path()), names(&to)), (vec!["archive".into()], vec![content.into()]));
        }
        assert_eq!(NewDirectory::create(&to).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
        assert!(NewDirectory::create(Path::new("/dev/stdout")).is_err());
    }
}

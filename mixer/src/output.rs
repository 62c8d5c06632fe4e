//! The file a trace is written to: under a temporary name beside it until it is whole, then renamed; nothing of
//! it stays behind when mixing fails.

use crate::error::MixError;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file in the making.
#[derive(Debug)]
pub(crate) struct Output {
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
    kept: bool,
}

impl Output {
    /// Begins what will be `target`.
    pub(crate) fn create(target: &Path) -> Result<Self, MixError> {
        let (temporary, special) = beside(target, "part")?;
        let (temporary, opened) = if special {
            (target.to_path_buf(), File::options().write(true).open(target))
        } else {
            let opened = File::create(&temporary);
            (temporary, opened)
        };
        match opened {
            Ok(file) => Ok(Self { file: Some(file), temporary, target: target.to_path_buf(), kept: special }),
            Err(error) => Err(failed(&temporary, error)),
        }
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> Result<&File, MixError> {
        self.file.as_ref().ok_or_else(|| failed(&self.temporary, io::Error::other("closed")))
    }

    /// An error of writing it.
    pub(crate) fn error(&self, error: impl std::error::Error + Send + Sync + 'static) -> MixError {
        failed(&self.temporary, error)
    }

    /// Gives the whole file its name.
    pub(crate) fn finish(mut self) -> Result<(), MixError> {
        self.file = None;
        if !self.kept {
            fs::rename(&self.temporary, &self.target).map_err(|error| failed(&self.target, error))?;
            self.kept = true;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing better can be done about a file that cannot be removed either.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A name for a temporary file beside `target`, and whether `target` is there and no file (a pipe, a device), which is
/// written to as it is; the name is then among the system's temporary files.
pub(crate) fn beside(target: &Path, suffix: &str) -> Result<(PathBuf, bool), MixError> {
    let special = fs::metadata(target).is_ok_and(|there| !there.is_file() && !there.is_dir());
    let Some(name) = target.file_name() else {
        return Err(failed(target, io::Error::other("not the name of a file")));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.{suffix}", std::process::id()));
    let temporary = if special { std::env::temp_dir().join(hidden) } else { target.with_file_name(hidden) };
    Ok((temporary, special))
}

/// An error of the file at `path`.
pub(crate) fn failed(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> MixError {
    MixError::Output { path: path.to_path_buf(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn it_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t.vef");
        let names = || fs::read_dir(dir.path()).unwrap().count();
        let output = Output::create(&target).unwrap();
        output.file().unwrap().write_all(b"half").unwrap();
        assert!(!target.exists());
        drop(output);
        assert_eq!(names(), 0);
        let output = Output::create(&target).unwrap();
        output.file().unwrap().write_all(b"whole").unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(), 1);
    }

    #[test]
    fn a_place_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = dir.path().join("no/such/t.vef");
        assert!(matches!(Output::create(&nowhere), Err(MixError::Output { .. })));
        assert!(matches!(Output::create(dir.path()).unwrap().finish(), Err(MixError::Output { .. })));
    }
}

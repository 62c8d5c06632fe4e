//! Traces that come through a pipe, for commands that read a trace in several places.

use crate::output::{self, Failure};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use vef_format::new_file::hidden_beside;

/// A trace that can be read anywhere, and more than once.
pub struct Input {
    /// Where.
    pub path: PathBuf,
    /// What the user calls it.
    name: PathBuf,
    /// A copy without a name: it goes with this.
    _copy: Option<File>,
}

impl Input {
    /// The file `trace` itself, or a copy of what comes through it.
    pub fn of(trace: &Path) -> Result<Self, Failure> {
        let failed = |error| format!("{}: {error}", trace.display());
        let about = fs::metadata(trace).map_err(failed)?;
        if about.is_file() || about.is_dir() {
            return Ok(Self { path: trace.to_path_buf(), name: trace.to_path_buf(), _copy: None });
        }
        let hidden = hidden_beside(trace, "copy").map_err(failed)?;
        let no_copy =
            |error| format!("{}: cannot be copied to {}: {error}", trace.display(), hidden.display());
        let mut copy =
            File::options().read(true).write(true).create_new(true).open(&hidden).map_err(no_copy)?;
        fs::remove_file(&hidden).map_err(no_copy)?;
        std::io::copy(&mut File::open(trace).map_err(failed)?, &mut copy).map_err(no_copy)?;
        let path = format!("/proc/self/fd/{}", copy.as_raw_fd()).into();
        Ok(Self { path, name: trace.to_path_buf(), _copy: Some(copy) })
    }

    /// An error of reading it, by the name that the user knows.
    pub fn error(&self, error: impl Into<Failure>) -> Failure {
        let error = error.into();
        match self.path == self.name {
            true => error,
            false => {
                let (path, name) = (self.path.display().to_string(), self.name.display().to_string());
                output::in_one_line(&error).replace(&path, &name).into()
            }
        }
    }
}

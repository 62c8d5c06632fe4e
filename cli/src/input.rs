//! Traces to be read: files, and what comes through a pipe, for commands that read a trace in several places.

use crate::output::{self, Failure};
use std::convert::Infallible;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use vef_format::capture::{Capture, CaptureError};
use vef_format::container::{self, About, Reader};
use vef_format::new_file::hidden_beside;

/// What stands for the standard input.
const STDIN: &str = "/dev/stdin";

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
    /// An argument that names a trace to read; `-` is the standard input.
    pub fn argument(text: &str) -> Result<PathBuf, Infallible> {
        Ok(if text == "-" { STDIN } else { text }.into())
    }

    /// The file `trace` itself, or a copy of what comes through it.
    pub fn of(trace: &Path) -> Result<Self, Failure> {
        let failed = |error| format!("{}: {error}", trace.display());
        let about = fs::metadata(trace).map_err(failed)?;
        if about.is_dir() {
            return Err(directory(trace).into());
        }
        if about.is_file() {
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

    /// What the user calls it.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Whether it is a container, whatever it is called.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_container(&self) -> Result<bool, Failure> {
        container::is_container(&self.path)
            .map_err(|error| format!("{}: {error}", self.name.display()).into())
    }

    /// Repeats the warnings that a container carries about the run that it was captured in, and what of that the trace lacks.
    pub fn warn(&self) {
        output::oversubscribed(self.facts(About::OVERSUBSCRIBED).iter());
        output::lacks(self.lacks().iter());
    }

    /// What of the run is not in the trace, as a container tells; text cannot.
    pub fn lacks(&self) -> Vec<String> {
        self.facts(About::NOT_IN_TRACE)
    }

    /// What a container says under this name about where the trace comes from.
    fn facts(&self, name: &str) -> Vec<String> {
        // What is wrong with the file is told by the command that reads all of it.
        let Ok(reader) = Reader::open(&self.path) else { return Vec::new() };
        reader.about().facts(name).cloned().collect()
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

/// What to say of a directory where a trace is wanted.
fn directory(path: &Path) -> String {
    let shown = path.display();
    match Capture::open(path) {
        Err(CaptureError::NoCapture(_)) => format!("{shown}: a directory; a trace is a file"),
        _ => format!("{shown}: a capture; `vef mix -i {shown} -o OUT.vef` makes a trace of it"),
    }
}

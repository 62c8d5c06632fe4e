//! What `vef` says: results on stdout, remarks and errors on stderr, JSON where asked.

use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use vef_format::new_file::{NewFile, is_stdout};

/// The exit code for a command line or an input that is wrong.
pub const EXIT_BAD_INPUT: u8 = 2;

/// Any error of a command, already placed by the library that found it.
pub type Failure = Box<dyn Error>;

/// One error on stderr.
pub fn error(error: &Failure) {
    remark(format_args!("error: {}", in_one_line(error)));
}

/// An error in one line: what it is and, where the message itself does not say so, why.
pub fn in_one_line(error: &Failure) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

/// A line on stderr that begins with the program's name, in one write: ranks may share the terminal. Nobody may be
/// reading: a failed write is no reason to stop.
pub fn remark(text: impl Display) {
    let _ = io::stderr().write_all(format!("vef: {text}\n").as_bytes());
}

/// Warns of hosts that had more ranks than cores.
pub fn oversubscribed(hosts: impl Iterator<Item = impl Display>) {
    for host in hosts {
        remark(format_args!(
            "warning: {host}: ranks waited for each other's cores, and times measure the scheduler, too"
        ));
    }
}

/// Warns of what of a run its trace has not.
pub fn lacks(what: impl Iterator<Item = impl Display>) {
    for what in what {
        remark(format_args!("warning: not in the trace: {what}"));
    }
}

/// Text about a file that was written: on stdout, or on stderr where that file is stdout.
///
/// # Errors
/// As [`result`].
pub fn about(written: &Path, text: impl Display) -> Result<(), Failure> {
    if is_stdout(written) {
        let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
        return Ok(());
    }
    result(text)
}

/// Text on stdout.
///
/// # Errors
/// The write's, so that `vef … > full-disk` does not look like success.
pub fn result(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // A reader that has seen enough (`| head`) is content.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot write to stdout: {error}").into()),
        Ok(()) => Ok(()),
    }
}

/// Whether a file can be written at `path`, said before the work whose result goes there. Nothing is left of the attempt.
///
/// # Errors
/// The system's, with the file's name.
pub fn can_be_written(path: &Path) -> Result<(), Failure> {
    // A pipe is not opened twice: its reader would take that for the end.
    if is_stdout(path) || fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    match NewFile::create(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

/// Text in a file, which is there when it is whole.
///
/// # Errors
/// The system's, with the file's name.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    bytes(path, text.as_bytes())
}

/// As [`file()`], of anything.
///
/// # Errors
/// The system's, with the file's name.
pub fn bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = || {
        let new = NewFile::create(path)?;
        new.file().write_all(bytes)?;
        new.finish()
    };
    write().map_err(|error| format!("{}: {error}", path.display()).into())
}

/// `value` as indented JSON on stdout.
///
/// # Errors
/// As [`result`].
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    result(serde_json::to_string_pretty(value)?)
}

/// A trace to write; `-` is the standard output. Nothing here writes what such a name promises.
pub fn written(text: &str) -> Result<PathBuf, String> {
    const COMPRESSED: [&str; 7] = ["gz", "zst", "xz", "bz2", "lz4", "zip", "Z"];
    if text == "-" {
        return Ok("/dev/stdout".into());
    }
    let path = PathBuf::from(text);
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    match COMPRESSED.contains(&suffix) && fs::metadata(&path).map_or(true, |there| there.is_file()) {
        true => Err(format!(
            ".{suffix} is of compressed files: write to -, through a pipe, or a container (.vefx) that vef convert \
             --compress made"
        )),
        false => Ok(path),
    }
}

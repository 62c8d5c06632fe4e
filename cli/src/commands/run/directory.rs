//! The directory for a capture: of its own, or named.

use super::arguments::Arguments;
use crate::launch;
use crate::output::Failure;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The directory of a capture while its program runs. A lock, where the file system has locks, refuses it to other runs on this host.
pub(super) struct Claimed {
    /// Absolute.
    pub(super) directory: PathBuf,
    is_new: bool,
    _lock: File,
}

impl Claimed {
    /// Removes the directory if it is new and still empty.
    pub(super) fn give_up(&self) {
        if self.is_new {
            let _ = std::fs::remove_dir(&self.directory);
        }
    }
}

/// Creates the directory for the capture, or takes an empty one.
pub(super) fn claim(run: &Arguments) -> Result<Claimed, Failure> {
    let (directory, is_new) = match &run.output {
        Some(named) => (named.to_path_buf(), !named.exists()),
        None => (new_directory(&run.program)?, true),
    };
    let unusable =
        |error| format!("{}: cannot be the directory for the capture: {error}", directory.display());
    std::fs::create_dir_all(&directory).map_err(unusable)?;
    let lock = File::open(&directory).map_err(unusable)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(format!("{}: another vef run writes its capture here", directory.display()).into());
    }
    let mut entries = std::fs::read_dir(&directory).map_err(unusable)?;
    if entries.next().is_some() {
        return Err(format!(
            "{}: is not empty; a capture needs a directory of its own (-o DIR)",
            directory.display()
        )
        .into());
    }
    Ok(Claimed { directory: directory.canonicalize().map_err(unusable)?, is_new, _lock: lock })
}

/// Creates a directory that the user did not name.
fn new_directory(program: &[OsString]) -> Result<PathBuf, Failure> {
    loop {
        let directory = unused_name(program);
        match std::fs::create_dir(&directory) {
            // Another run was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(format!(
                    "{}: cannot be the directory for the capture: {error}",
                    directory.display()
                )
                .into());
            }
            Ok(()) => return Ok(directory),
        }
    }
}

/// `vef-PROGRAM` (`vef-capture` for a launcher line), with a number if that exists.
fn unused_name(program: &[OsString]) -> PathBuf {
    let program = program.first().filter(|_| launch::launcher_position(program).is_none());
    let mut name = OsString::from("vef-");
    name.push(program.and_then(|program| Path::new(program).file_stem()).unwrap_or("capture".as_ref()));
    unused(name)
}

/// `name`, or the first of `name.2`, `name.3`, … that does not exist.
pub fn unused(name: OsString) -> PathBuf {
    let numbered = |number: u32| {
        let mut longer = name.clone();
        longer.push(format!(".{number}"));
        PathBuf::from(longer)
    };
    let mut path = PathBuf::from(&name);
    let mut number = 2;
    while path.exists() {
        path = numbered(number);
        number += 1;
    }
    path
}

//! Positioned reads of a rank's file, expanded if it is compressed. The file is never mapped: if it is truncated or written
//! to meanwhile, reads return fewer or other bytes, and no signal is raised.

use super::compressed;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// An open file.
#[derive(Debug)]
pub(super) struct Input {
    file: File,
    length: u64,
}

impl Input {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (mut file, mut length) = open(path)?;
        let mut begin = [0; compressed::MAGIC.len()];
        let present = file.read_at(&mut begin, 0)?;
        if compressed::is_compressed(&begin[..present]) {
            file = compressed::expand(path, &file)?;
            length = file.metadata()?.len();
        }
        Ok(Self { file, length })
    }

    /// Length when the file was opened.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Reads from `at` on until `into` is full or the file ends; returns the number of bytes.
    pub(super) fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < into.len() {
            match self.file.read_at(&mut into[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }
}

/// The first `len` bytes at most, and the length, of the expanded file.
pub(super) fn head(path: &Path, len: usize) -> io::Result<(Vec<u8>, u64)> {
    let (mut file, present) = open(path)?;
    let mut bytes = Vec::with_capacity(len);
    file.by_ref().take(len as u64).read_to_end(&mut bytes)?;
    if compressed::is_compressed(&bytes) {
        file.rewind()?;
        return compressed::head(&file, len);
    }
    Ok((bytes, present))
}

/// Opens a regular file, and returns its length; does not block on a pipe.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let about = file.metadata()?;
    if about.is_file() { Ok((file, about.len())) } else { Err(io::Error::other("not a regular file")) }
}

//! Positioned reads of a rank's file, expanded if it is compressed. The file is never mapped: if it is truncated or written
//! to meanwhile, reads return fewer or other bytes, and no signal is raised.

use super::compressed;
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io::{pread, retry_on_intr};
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

    /// Reads up to `length` bytes from `at` on; fewer if the file ends before.
    pub(super) fn read_at(&self, into: &mut Vec<u8>, length: usize, at: u64) -> io::Result<()> {
        into.clear();
        into.reserve_exact(length);
        while into.len() < length {
            let next = at + into.len() as u64;
            if retry_on_intr(|| pread(&self.file, spare_capacity(into), next))? == 0 {
                break;
            }
        }
        into.truncate(length);
        Ok(())
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

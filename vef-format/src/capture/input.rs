//! Positioned reads of a rank's file, expanded if it is compressed. The file is never mapped: if it is truncated or written
//! to meanwhile, reads return fewer or other bytes, and no signal is raised.

use super::compressed;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// An open file.
#[derive(Debug)]
pub(super) struct Input {
    file: File,
    length: u64,
}

impl Input {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let mut begin = Vec::new();
        (&file).take(compressed::MAGIC.len() as u64).read_to_end(&mut begin)?;
        let file = match compressed::is_compressed(&begin) {
            true => {
                (&file).rewind()?;
                compressed::expand(path, &file)?
            }
            false => file,
        };
        let length = file.metadata()?.len();
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
    let mut file = open(path)?;
    let present = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(len);
    file.by_ref().take(len as u64).read_to_end(&mut bytes)?;
    if compressed::is_compressed(&bytes) {
        file.rewind()?;
        return compressed::head(&file, len);
    }
    Ok((bytes, present))
}

/// Opens a file without blocking on a pipe.
fn open(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("not a regular file")),
    }
}

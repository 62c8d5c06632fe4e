//! Files as memory, for reading. A place of `unsafe`, for that alone.

#![allow(unsafe_code)]

use super::compressed;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// The first bytes of a file, at most `len`, and how many there are in all; of a compressed file, those of the plain one.
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

/// Opens a file. A pipe would keep its reader waiting.
fn open(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// A whole file, read-only; of a compressed file, the plain one.
#[derive(Debug)]
pub(super) struct Map(memmap2::Mmap);

impl Map {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let map = Self::of(&open(path)?)?;
        match compressed::is_compressed(map.bytes()) {
            true => Self::of(&compressed::expand(path, map.bytes())?),
            false => Ok(map),
        }
    }

    fn of(file: &File) -> io::Result<Self> {
        // SAFETY: nothing but plain bytes is read from the mapping, always through checked slices. A process that changes
        // the file meanwhile can change what is read (a capture of a running program), which every reader here must
        // stand anyway since the bytes are not trusted; truncating it under the reader ends the reader, as with any
        // mapped file, and no tool of this project does that to a file it did not write itself.
        Ok(Self(unsafe { memmap2::Mmap::map(file)? }))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

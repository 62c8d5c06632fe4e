//! Files as memory, for reading. The one place of this crate with `unsafe`.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

/// A whole file, read-only.
#[derive(Debug)]
pub(super) struct Map(memmap2::Mmap);

impl Map {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: nothing but plain bytes is read from the mapping, always through checked slices. A process that changes
        // the file meanwhile can change what is read (a capture of a running program), which every reader here must
        // stand anyway since the bytes are not trusted; truncating it under the reader ends the reader, as with any
        // mapped file, and no tool of this project does that to a file it did not write itself.
        Ok(Self(unsafe { memmap2::Mmap::map(&file)? }))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

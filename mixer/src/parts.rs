//! Mixing in parts: a capture, or a process's share of one, that needs more memory than allowed is divided into
//! consecutive tasks that fit. A temporary file holds what parts send each other and their prepared records.

use crate::error::MixError;
use crate::output;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The parts of all processes.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Tasks of each part, ascending.
    all: Vec<Range<u32>>,
    /// Index in `all` of each process's first part, and the total at the end.
    begins: Vec<usize>,
    /// Rank of this process.
    process: usize,
}

impl Parts {
    /// The parts of each process; this one is `process`.
    pub(crate) fn new(of_processes: impl IntoIterator<Item = Vec<Range<u32>>>, process: u32) -> Self {
        let (mut all, mut begins) = (Vec::new(), vec![0]);
        for parts in of_processes {
            all.extend(parts);
            begins.push(all.len());
        }
        Self { all, begins, process: process as usize }
    }

    /// The tasks of each part.
    pub(crate) fn all(&self) -> &[Range<u32>] {
        &self.all
    }

    /// Indices of the parts of a process.
    pub(crate) fn of(&self, process: u32) -> Range<usize> {
        self.begins[process as usize]..self.begins[process as usize + 1]
    }

    /// Indices of this process's parts.
    pub(crate) fn own(&self) -> Range<usize> {
        self.of(self.process as u32)
    }

    /// The tasks of this process.
    pub(crate) fn share(&self) -> Range<usize> {
        let own = &self.all[self.own()];
        let ends = own.first().zip(own.last());
        ends.map_or(0..0, |(first, last)| first.start as usize..last.end as usize)
    }

    /// The tasks of each part, with `part` empty.
    pub(crate) fn all_but(&self, part: usize) -> Vec<Range<u32>> {
        let mut all = self.all.clone();
        all[part].end = all[part].start;
        all
    }
}

/// An unnamed temporary file; nothing is left behind in any case.
#[derive(Debug)]
pub(crate) struct Spill {
    file: File,
    end: AtomicU64,
    /// Path of the trace and directory of the file, for errors.
    trace: PathBuf,
    directory: PathBuf,
}

/// A range of a [`Spill`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    at: u64,
    length: u64,
}

impl Spill {
    /// Creates an empty file in `directory`, or in that of `trace`.
    pub(crate) fn new(trace: &Path, directory: Option<&Path>) -> Result<Self, MixError> {
        let (file, directory) = output::nameless(trace, directory)?;
        Ok(Self { file, end: AtomicU64::new(0), trace: trace.to_path_buf(), directory })
    }

    /// Appends `bytes`.
    pub(crate) fn add(&self, bytes: &[u8]) -> Result<Place, MixError> {
        let length = bytes.len() as u64;
        let at = self.end.fetch_add(length, Ordering::Relaxed);
        self.file.write_all_at(bytes, at).map_err(|error| self.failed(&error))?;
        Ok(Place { at, length })
    }

    /// Reads a range.
    pub(crate) fn read(&self, place: Place) -> Result<Vec<u8>, MixError> {
        let mut bytes = vec![0; place.length as usize];
        self.file.read_exact_at(&mut bytes, place.at).map_err(|error| self.failed(&error))?;
        Ok(bytes)
    }

    /// Size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn failed(&self, error: &io::Error) -> MixError {
        output::temporary_failed(&self.trace, &self.directory, error)
    }
}

/// Divides the tasks of `share` into runs that need at most `room` bytes together, or are one task. `need` returns the
/// bytes of a task.
pub(crate) fn plan(share: Range<u32>, room: u64, need: impl Fn(u32) -> u64) -> Vec<Range<u32>> {
    let mut parts = Vec::new();
    let (mut begin, mut sum) = (share.start, 0u64);
    for task in share.clone() {
        let more = need(task);
        if task > begin && sum.saturating_add(more) > room {
            parts.push(begin..task);
            (begin, sum) = (task, 0);
        }
        sum = sum.saturating_add(more);
    }
    parts.push(begin..share.end);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn parts_are_as_large_as_fit() {
        let need = [5, 5, 5, 20, 1, 1, 1];
        let parts = plan(0..7, 10, |task| need[task as usize]);
        assert_eq!(parts, [0..2, 2..3, 3..4, 4..7]);
        assert_eq!(plan(2..2, 10, |_| 1), std::slice::from_ref(&(2..2)));
        assert_eq!(plan(0..3, u64::MAX - 1, |_| u64::MAX / 2), [0..2, 2..3]);
    }

    #[test]
    fn each_process_has_its_parts() {
        let parts = Parts::new([vec![0..2, 2..3], vec![3..3, 3..4], vec![4..6, 6..7]], 1);
        assert_eq!((parts.of(0), parts.own(), parts.of(2)), (0..2, 2..4, 4..6));
        assert_eq!(parts.share(), 3..4);
        assert_eq!(parts.all_but(1), [0..2, 2..2, 3..3, 3..4, 4..6, 6..7]);
    }

    #[test]
    fn what_lies_in_the_file_comes_back_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let spill = Spill::new(&dir.path().join("t.vef"), None).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let (one, none) = (spill.add(b"one").unwrap(), spill.add(b"").unwrap());
        let second = spill.add(b"second").unwrap();
        assert_eq!((spill.read(one).unwrap(), spill.read(none).unwrap()), (b"one".to_vec(), vec![]));
        assert_eq!(spill.read(second).unwrap(), b"second");
        assert_eq!(spill.bytes(), 9);
        let nowhere = Spill::new(&dir.path().join("t.vef"), Some(&dir.path().join("no/such"))).unwrap_err();
        let said = "no/such: No such file or directory (os error 2)";
        assert!(nowhere.to_string().ends_with(said), "{nowhere}");
    }
}

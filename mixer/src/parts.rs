//! Mixing in parts: a capture, or a process's share of one, that needs more memory than allowed is divided into consecutive
//! tasks that fit. How much memory is allowed is decided here ([`memory_for_tasks`]), how much a task needs, by the first
//! reading ([`crate::read`]).

use crate::Options;
use crate::available;
use std::ops::Range;

/// Bytes of memory for the tasks that this process, one of `processes` on its node, holds at a time (`--memory`).
pub(crate) fn memory_for_tasks(options: &Options, processes: u64) -> u64 {
    let share_of_free = || available::free().map_or(u64::MAX, |free| free / 2) / processes.max(1);
    // A quarter remains for windows, tables and output buffers.
    options.memory.map_or_else(share_of_free, |allowed| allowed.0) / 4 * 3
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

    /// The tasks of a part.
    pub(crate) fn tasks(&self, part: usize) -> Range<u32> {
        self.all[part].clone()
    }

    /// Indices of the parts of a process.
    pub(crate) fn of(&self, process: u32) -> Range<usize> {
        self.begins[process as usize]..self.begins[process as usize + 1]
    }

    /// Indices of this process's parts.
    pub(crate) fn own(&self) -> Range<usize> {
        self.of(self.process as u32)
    }

    /// The tasks of each part, with `part` empty.
    pub(crate) fn all_but(&self, part: usize) -> Vec<Range<u32>> {
        let mut all = self.all.clone();
        all[part].end = all[part].start;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(parts.all_but(1), [0..2, 2..2, 3..3, 3..4, 4..6, 6..7]);
    }
}

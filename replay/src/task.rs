//! What the engine keeps of each task.

use crate::source::Row;
use vef_format::ids::CollectiveId;
use vef_format::units::Picos;

/// A task of a job.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Task {
    // The first cache line: all that a delivery needs.
    /// The record it is about to start, if it has been read.
    pub(crate) next: Row,
    /// When its last record started; before the first, when its job starts.
    pub(crate) at: Picos,
    pub(crate) node: u32,
    /// What keeps it from starting its next record.
    pub(crate) wait: Wait,
    /// Whether the point-to-point line it started last was complete for it as it started.
    pub(crate) last_complete: bool,
    // The second.
    pub(crate) job: u32,
    /// Records that have started.
    pub(crate) records: u64,
    /// When the last of its parts of collectives was complete.
    pub(crate) left: Picos,
    /// The point-to-point line it started last, and the collective it completed last: nearly every dependency names
    /// one of them.
    pub(crate) last_line: Option<u64>,
    pub(crate) last_collective: Option<CollectiveId>,
}

/// What keeps a task from going on; of which id, [`Row::after`] of its next record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it is being advanced.
    Nothing,
    /// Its message is in the queue of ready ones.
    Turn,
    /// A send of its own is to be complete.
    Sent,
    /// A message to it is to be delivered.
    Received,
    /// Its part of a collective is to be complete.
    Collective,
    /// It has no more records.
    Finished,
}

impl Task {
    pub(crate) fn new(job: u32, node: u32, start: Picos) -> Self {
        Self {
            at: start,
            left: start,
            records: 0,
            next: Row::NOTHING,
            wait: Wait::Nothing,
            last_complete: false,
            node,
            job,
            last_line: None,
            last_collective: None,
        }
    }

    /// Whether it waits for that thing, of that id, of its next record.
    #[inline(always)]
    pub(crate) fn waits_for(&self, wait: Wait, id: u64) -> bool {
        self.wait == wait && self.next.after == id
    }

    /// When the last thing it did was over.
    pub(crate) fn finish(&self) -> Picos {
        self.at.max(self.left)
    }

    /// Its next record has started, at `at`, which is not before the start of the last.
    #[inline]
    pub(crate) fn started(&mut self, at: Picos) {
        self.at = at;
        self.records += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_small() {
        assert!(size_of::<Task>() <= 128, "{}", size_of::<Task>());
    }
}

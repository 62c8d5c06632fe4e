//! What the engine keeps of each task.

use crate::source::Row;
use vef_format::ids::CollectiveId;
use vef_format::units::Picos;

/// A task of a job: what every message looks at first, so that it is in one or two cache lines.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Task {
    /// The record it is about to start, if it has been read.
    pub(crate) next: Row,
    /// When its last record started; before the first, when its job starts.
    pub(crate) at: Picos,
    pub(crate) job: u32,
    /// What keeps it from starting its next record.
    pub(crate) wait: Wait,
    pub(crate) past: Past,
}

/// What a task has done.
#[derive(Debug)]
pub(crate) struct Past {
    /// Records that have started.
    pub(crate) records: u64,
    /// When the last of its parts of collectives was complete.
    pub(crate) left: Picos,
    /// The collective that it entered last, if `part` knows one: nearly every dependency on one names this.
    entered: CollectiveId,
    part: LastPart,
}

/// How far a task's part of the collective is that it entered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastPart {
    None,
    Running,
    Over,
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
    pub(crate) fn new(job: u32, start: Picos) -> Self {
        Self { next: Row::NOTHING, at: start, job, wait: Wait::Nothing, past: Past::new(start) }
    }

    /// Whether it waits for that thing, of that id, of its next record.
    #[inline(always)]
    pub(crate) fn waits_for(&self, wait: Wait, id: u64) -> bool {
        self.wait == wait && self.next.after == id
    }
}

impl Past {
    fn new(start: Picos) -> Self {
        Self { records: 0, left: start, entered: CollectiveId(0), part: LastPart::None }
    }

    /// The task enters a collective.
    #[inline]
    pub(crate) fn enter(&mut self, id: CollectiveId) {
        (self.entered, self.part) = (id, LastPart::Running);
    }

    /// Its part of a collective is complete.
    #[inline]
    pub(crate) fn leave(&mut self, id: CollectiveId, at: Picos) {
        self.left = self.left.max(at);
        if self.entered == id {
            self.part = LastPart::Over;
        }
    }

    /// Whether its part of a collective is complete; `None` if that is not the one that it entered last.
    #[inline(always)]
    pub(crate) fn has_left(&self, id: CollectiveId) -> Option<bool> {
        match self.part {
            LastPart::Running if self.entered == id => Some(false),
            LastPart::Over if self.entered == id => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_small() {
        assert_eq!(size_of::<Task>(), 96);
    }
}

//! What the engine keeps of each sequence of records: where it is, and what it waits for.

use crate::error::{RecordPlace, ReplayError};
use serde::{Deserialize, Serialize};
use vef_format::ids::{CollectiveId, Rank};
use vef_format::raw::Raw;
use vef_format::units::Picos;

/// Records that start one after the other: those of a task. Every message reads it first, so it fits into one or two
/// cache lines.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(32))]
pub(crate) struct Sequence {
    /// The record that it is about to start, if it has been read; its tag may have the bits below.
    pub(crate) next: Raw,
    /// When its last record started; before the first, when its job starts.
    pub(crate) at: Picos,
    /// The moment of the last call that concerned its task.
    pub(crate) last_call: Picos,
    /// Records that have started.
    pub(crate) records: u64,
    /// When the last of its parts of collectives was complete.
    pub(crate) left: Picos,
    pub(crate) job: u32,
    /// The task, of that job.
    pub(crate) rank: Rank,
    /// The collective that it entered last, if `last_part` knows one: nearly every dependency on one names this.
    entered: u32,
    /// What keeps it from starting its next record.
    pub(crate) wait: Wait,
    /// Messages that it has started since the simulator last called for it.
    pub(crate) ahead: u8,
    last_part: LastPart,
    /// Messages to it in [`Lines`](crate::lines::Lines) that have come early; [`u8::MAX`] of so many or more.
    pub(crate) early: u8,
}

/// Bit of the tag of a record that depends on a send of its task: the record does not wait for its completion.
pub(crate) const STARTED: u8 = 1 << 5;
/// Bit of the tag of a mark: it is no record, but the moment at which its task had waited for a send.
pub(crate) const PAUSE: u8 = 1 << 6;
/// Bit of the tag of a message: it counts as large, whatever its size.
pub(crate) const SYNCHRONOUS: u8 = 1 << 7;

/// How far the part of the collective is that a sequence entered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
enum LastPart {
    None,
    Running,
    Over,
}

/// What a sequence waits for; its id is `after` of the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Wait {
    /// Nothing: it is running.
    Nothing,
    /// The simulator is to call for its message ([`crate::Wake`]).
    Turn,
    /// A send of its own is to be complete.
    Sent,
    /// A message to it is to be delivered.
    Received,
    /// Its part of a collective is to be complete.
    Collective,
    /// It has no more records.
    Finished,
    /// Unknown: its task is in another partition.
    Elsewhere,
}

impl Sequence {
    pub(crate) fn new(job: u32, rank: Rank, start: Picos) -> Self {
        Self {
            next: Raw::NOTHING,
            at: start,
            last_call: Picos::ZERO,
            records: 0,
            left: start,
            job,
            rank,
            entered: 0,
            wait: Wait::Nothing,
            ahead: 0,
            last_part: LastPart::None,
            early: 0,
        }
    }

    /// Whether it waits for that thing, of that id, of its next record.
    #[inline(always)]
    pub(crate) fn waits_for(&self, wait: Wait, id: u64) -> bool {
        self.wait == wait && self.next.after == id
    }

    /// Where it is: its next record.
    #[cold]
    pub(crate) fn place(&self) -> RecordPlace {
        RecordPlace { job: self.job, task: self.rank, record: self.records }
    }

    /// Its next record, or the arrival of the message that is that, is past the end of time.
    #[cold]
    pub(crate) fn overflow(&self) -> Box<ReplayError> {
        Box::new(ReplayError::Overflow { place: self.place() })
    }

    /// When the last thing that it did was over.
    pub(crate) fn finish(&self) -> Picos {
        self.at.max(self.left)
    }

    /// It enters a collective.
    #[inline]
    pub(crate) fn enter(&mut self, id: CollectiveId) {
        // Ids that are larger than any trace's need not be known here.
        let entered = u32::try_from(id.0);
        (self.entered, self.last_part) = entered.map_or((0, LastPart::None), |id| (id, LastPart::Running));
    }

    /// Its part of a collective is complete.
    #[inline]
    pub(crate) fn leave(&mut self, id: CollectiveId, at: Picos) {
        self.left = self.left.max(at);
        if u64::from(self.entered) == id.0 && self.last_part == LastPart::Running {
            self.last_part = LastPart::Over;
        }
    }

    /// Whether its part of a collective is complete; `None` if that is not the one that it entered last.
    #[inline(always)]
    pub(crate) fn has_left(&self, id: u64) -> Option<bool> {
        match self.last_part {
            LastPart::Running if u64::from(self.entered) == id => Some(false),
            LastPart::Over if u64::from(self.entered) == id => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_small() {
        assert_eq!(size_of::<Sequence>(), 96);
    }
}

//! What is known of a job's lines: which have been sent and delivered, so that records that wait for them can start.
//!
//! In a proven trace ([`vef_format::container::Reader::is_proven`]) ids are unique, each message is waited for by at most one record, which is one of
//! its receiver, and a send that a record waits for has started: only messages that arrive early are kept. In any other trace the state of
//! every id is kept, and a second line of the same id is an error.

use crate::states::{State, States};
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Lines {
    arrived: Arrived,
    /// Sends started and not complete for their senders.
    incomplete: HashSet<u64>,
}

/// Which messages have been delivered.
#[derive(Debug, Serialize, Deserialize)]
#[repr(u8)]
enum Arrived {
    /// Of a trace that is proven: those for which a record is still to wait.
    Early(HashSet<u64>),
    /// Of any other: how far each line has come.
    Checked(States),
}

impl Lines {
    pub(crate) fn new(proven: bool) -> Self {
        let arrived = match proven {
            true => Arrived::Early(HashSet::new()),
            false => Arrived::Checked(States::default()),
        };
        Self { arrived, incomplete: HashSet::new() }
    }

    /// A mark is passed; `false` if its id was seen before.
    #[inline(always)]
    pub(crate) fn pass(&mut self, id: u64) -> bool {
        match &mut self.arrived {
            Arrived::Early(_) => true,
            Arrived::Checked(lines) => lines.set(id, State::Over) == State::Unseen,
        }
    }

    /// A message starts, and is complete for its sender or will be; `false` if its id was seen before.
    #[inline(always)]
    pub(crate) fn start(&mut self, id: u64, complete: bool) -> bool {
        if !complete {
            self.incomplete.insert(id);
        }
        match &mut self.arrived {
            Arrived::Early(_) => true,
            Arrived::Checked(lines) => lines.set(id, State::Started) == State::Unseen,
        }
    }

    /// A message that was not complete for its sender is.
    pub(crate) fn complete(&mut self, id: u64) {
        self.incomplete.remove(&id);
    }

    /// A message is delivered for which its receiver waits.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, id: u64) {
        match &mut self.arrived {
            Arrived::Early(_) => {}
            Arrived::Checked(lines) => drop(lines.set(id, State::Over)),
        }
    }

    /// A message is delivered for which its receiver does not wait, or not yet; `awaited` says whether it will, as far as the trace says so.
    /// `early` counts those of its receiver that are kept.
    #[inline(always)]
    pub(crate) fn deliver_early(&mut self, id: u64, awaited: bool, early: &mut u8) {
        match &mut self.arrived {
            Arrived::Early(ids) => {
                if awaited {
                    ids.insert(id);
                    *early = early.saturating_add(1);
                }
            }
            Arrived::Checked(lines) => drop(lines.set(id, State::Over)),
        }
    }

    /// Whether a message has been delivered for which a record is about to wait; `early` is the count of its task.
    #[inline(always)]
    pub(crate) fn has_received(&mut self, id: u64, early: &mut u8) -> bool {
        match &mut self.arrived {
            Arrived::Early(ids) => {
                let has_come = *early > 0 && ids.remove(&id);
                // A count that is full may be of more.
                *early -= u8::from(has_come && *early < u8::MAX);
                has_come
            }
            Arrived::Checked(lines) => lines.get(id) == State::Over,
        }
    }

    /// Whether a line is complete for its sender, for which a record of that is about to wait.
    #[inline(always)]
    pub(crate) fn is_complete(&self, id: u64) -> bool {
        let has_started = match &self.arrived {
            Arrived::Early(_) => true,
            Arrived::Checked(lines) => lines.get(id) != State::Unseen,
        };
        has_started && (self.incomplete.is_empty() || !self.incomplete.contains(&id))
    }

    /// Whether a line has started, as far as that is known.
    pub(crate) fn has_started(&self, id: u64) -> Option<bool> {
        match &self.arrived {
            Arrived::Early(_) => None,
            Arrived::Checked(lines) => Some(lines.get(id) != State::Unseen),
        }
    }
}

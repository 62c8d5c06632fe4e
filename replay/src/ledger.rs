//! What is known of a job's lines: which have been sent and delivered, so that records that wait for them can start.
//!
//! In a proven trace ([`vef_format::container::Reader::is_proven`]) ids are unique, each message is waited for by at most one record, which is one of
//! its receiver, and a send that a record waits for has started: only messages that arrive early are kept. In any other trace the state of
//! every id is kept, and a second line of the same id is an error.

use crate::early::Early;
use crate::progress::{Progress, State};
use hashbrown::HashSet;

#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Ledger {
    /// Of a trace that is proven.
    Proven {
        /// Messages delivered and not waited for.
        early: Early,
        /// Sends started and not complete for their senders.
        incomplete: HashSet<u64>,
    },
    /// Of any other.
    Checked(Progress),
}

impl Ledger {
    pub(crate) fn new(proven: bool) -> Self {
        match proven {
            true => Self::Proven { early: Early::default(), incomplete: HashSet::new() },
            false => Self::Checked(Progress::default()),
        }
    }

    /// A mark is passed; `false` if its id was seen before.
    #[inline(always)]
    pub(crate) fn pass(&mut self, id: u64) -> bool {
        match self {
            Self::Proven { .. } => true,
            Self::Checked(lines) => lines.begin(id, State::Done),
        }
    }

    /// A message starts, and is complete for its sender or will be; `false` if its id was seen before.
    #[inline(always)]
    pub(crate) fn start(&mut self, id: u64, complete: bool) -> bool {
        match self {
            Self::Proven { incomplete, .. } => {
                if !complete {
                    incomplete.insert(id);
                }
                true
            }
            Self::Checked(lines) => lines.begin(id, if complete { State::Complete } else { State::Started }),
        }
    }

    /// A message that was not complete for its sender is.
    pub(crate) fn complete(&mut self, id: u64) {
        match self {
            Self::Proven { incomplete, .. } => drop(incomplete.remove(&id)),
            Self::Checked(lines) => drop(lines.set(id, State::Complete)),
        }
    }

    /// A message is delivered for which its receiver waits.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, id: u64) {
        match self {
            Self::Proven { .. } => {}
            Self::Checked(lines) => lines.finish(id),
        }
    }

    /// A message is delivered for which `receiver` does not wait, or not yet.
    #[inline(always)]
    pub(crate) fn deliver_early(&mut self, id: u64, receiver: u32, awaited: bool) {
        match self {
            Self::Proven { early, .. } => {
                if awaited {
                    early.insert(id, receiver);
                }
            }
            Self::Checked(lines) => lines.finish(id),
        }
    }

    /// Whether a message has been delivered for which a record of `receiver` is about to wait.
    #[inline(always)]
    pub(crate) fn has_received(&mut self, id: u64, receiver: u32) -> bool {
        match self {
            Self::Proven { early, .. } => early.take(id, receiver),
            Self::Checked(lines) => lines.get(id) == State::Done,
        }
    }

    /// Whether a line is complete for its sender, for which a record of that is about to wait.
    #[inline(always)]
    pub(crate) fn is_complete(&self, id: u64) -> bool {
        match self {
            Self::Proven { incomplete, .. } => incomplete.is_empty() || !incomplete.contains(&id),
            Self::Checked(lines) => lines.get(id) >= State::Complete,
        }
    }

    /// Whether a line has started, as far as that is known.
    pub(crate) fn has_started(&self, id: u64) -> Option<bool> {
        match self {
            Self::Proven { .. } => None,
            Self::Checked(lines) => Some(lines.get(id) != State::Unseen),
        }
    }
}

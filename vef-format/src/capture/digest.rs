//! What a capture holds, in a few numbers: one pass over its events.

use super::event::Action;
use super::{Capture, CaptureError, Ending};
use crate::ids::Rank;
use crate::units::Bytes;
use std::collections::BTreeMap;

/// What a capture holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Digest {
    /// Number of tasks.
    pub tasks: u32,
    /// Events recorded.
    pub events: u64,
    /// Calls of MPI functions, by name; those that leave no event too. The older layout does not know.
    pub calls: BTreeMap<String, u64>,
    /// Messages sent.
    pub messages: u64,
    /// Their payload.
    pub bytes: Bytes,
    /// Collective calls, one a member.
    pub collectives: u64,
    /// Calls that a trace cannot represent, by name.
    pub not_representable: BTreeMap<String, u64>,
    /// Ranks that ended without `MPI_Finalize`.
    pub unfinished: Vec<Rank>,
    /// Ranks whose recording was stopped while they went on (a full disk, a size limit).
    pub stopped: Vec<Rank>,
    /// Why, and on how many ranks.
    pub stop_reasons: BTreeMap<String, u64>,
}

impl Digest {
    /// Reads all of `capture`; `advance` hears of each rank that is done.
    ///
    /// # Errors
    /// The first that is met in a file of the capture.
    pub fn of(capture: &Capture, mut advance: impl FnMut(Rank)) -> Result<Self, CaptureError> {
        let mut digest = Self { tasks: capture.tasks(), ..Self::default() };
        for rank in (0..capture.tasks()).map(Rank) {
            for (name, count) in capture.calls(rank)? {
                *digest.calls.entry(name).or_default() += count;
            }
            let mut events = capture.events(rank)?;
            events.each(|event| {
                digest.add(&event.action);
                Ok::<_, CaptureError>(())
            })?;
            match events.ending() {
                Ending::Finished => {}
                Ending::Cut { .. } => digest.unfinished.push(rank),
                Ending::Stopped => digest.stopped.push(rank),
            }
            advance(rank);
        }
        Ok(digest)
    }

    /// All calls together; where they are not known, all events.
    pub fn total_calls(&self) -> u64 {
        match self.calls.is_empty() {
            true => self.events,
            false => self.calls.values().sum(),
        }
    }

    fn add(&mut self, action: &Action<'_>) {
        self.events += 1;
        match action {
            Action::Send(send) | Action::Exchange { send, .. } => {
                self.messages += 1;
                self.bytes.0 = self.bytes.0.saturating_add(send.bytes.0);
            }
            Action::Collective(_) => self.collectives += 1,
            Action::Other { name, .. } => match self.not_representable.get_mut(*name) {
                Some(count) => *count += 1,
                None => {
                    self.not_representable.insert((*name).to_owned(), 1);
                }
            },
            Action::Stopped { reason } => {
                *self.stop_reasons.entry((*reason).to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
}

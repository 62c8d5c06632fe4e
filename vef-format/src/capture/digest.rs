//! Statistics of a capture, from one pass over its events.

use super::encode::makes_request;
use super::event::{Action, Communicator, Detail, Partitioned, Transfer, UNRECORDED, moves_nothing};
use super::{Capture, CaptureError, Ending};
use crate::ids::{CommId, Rank};
use crate::units::Bytes;
use std::collections::{BTreeMap, HashSet};

/// Calls of a function, and their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Number of calls.
    pub calls: u64,
    /// Bytes, as far as known.
    pub bytes: Bytes,
}

/// Statistics of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Digest {
    /// Number of tasks.
    pub tasks: u32,
    /// Number of events.
    pub events: u64,
    /// Calls of MPI functions by name, including those without events; empty for the older layout.
    pub calls: BTreeMap<String, u64>,
    /// Number of messages.
    pub messages: u64,
    /// One-sided transfers (`MPI_Put`, `MPI_Get` …), which are not among the messages, and their bytes both ways.
    pub transfers: Tally,
    /// Payload of the messages.
    pub bytes: Bytes,
    /// Collective calls: one for each member.
    pub collectives: u64,
    /// Calls that a trace cannot represent, by name.
    pub not_representable: BTreeMap<String, Tally>,
    /// Non-blocking operations that no call completed or freed.
    pub never_completed: u64,
    /// Ranks without `MPI_Finalize`.
    pub unfinished: Vec<Rank>,
    /// Ranks that were not to be recorded.
    pub unrecorded: Vec<Rank>,
    /// How often ranks entered a phase, all of them together.
    pub phases: u64,
    /// Other ranks whose recording stopped before the program ended (full disk, size limit).
    pub stopped: Vec<Rank>,
    /// Reasons for that, with the number of ranks.
    pub stop_reasons: BTreeMap<String, u64>,
}

impl Digest {
    /// Reads all events of `capture`; calls `advance` after each rank.
    ///
    /// # Errors
    /// The first error in a file of the capture.
    pub fn of(capture: &Capture, mut advance: impl FnMut(Rank)) -> Result<Self, CaptureError> {
        let mut digest = Self { tasks: capture.tasks(), ..Self::default() };
        for rank in (0..capture.tasks()).map(Rank) {
            let mut events = capture.events(rank)?;
            for function in events.functions() {
                *digest.calls.entry(function.name.clone()).or_default() += function.calls;
            }
            let mut others = vec![Tally::default(); events.functions().len()];
            let (mut made, mut ended) = (0u64, 0u64);
            let mut foreign = HashSet::new();
            let mut is_recorded = true;
            events.each(|event| {
                if let Action::Communicator(Communicator { id, foreign: true, .. }) = event.action {
                    foreign.insert(id);
                }
                let bytes_outside =
                    outside(&event.action).filter(|(comm, _)| foreign.contains(comm)).map(|(_, bytes)| bytes);
                digest.add(&event.action, bytes_outside.is_some());
                made += u64::from(makes_request(&event.action).is_some());
                let not_in_traces = match event.action {
                    Action::Other { bytes, detail } if !detail.is_in_traces() => Some(bytes),
                    _ => bytes_outside,
                };
                let tally = event.call.index().and_then(|at| others.get_mut(at));
                if let Some((tally, bytes)) = tally.zip(not_in_traces) {
                    tally.calls += 1;
                    tally.bytes.0 = tally.bytes.0.saturating_add(bytes.0);
                }
                match event.action {
                    Action::Complete(list) => ended += list.len(),
                    Action::Forget(_) => ended += 1,
                    Action::Stopped { reason: UNRECORDED } => is_recorded = false,
                    _ => {}
                }
                Ok::<_, CaptureError>(())
            })?;
            digest.never_completed += made.saturating_sub(ended);
            let others = events.functions().iter().zip(others);
            for (function, tally) in
                others.filter(|(function, tally)| tally.calls > 0 && !moves_nothing(&function.name))
            {
                let sum = digest.not_representable.entry(function.name.clone()).or_default();
                sum.calls += tally.calls;
                sum.bytes.0 = sum.bytes.0.saturating_add(tally.bytes.0);
            }
            match events.ending() {
                Ending::Finished => {}
                Ending::Cut { .. } | Ending::Unbegun => digest.unfinished.push(rank),
                Ending::Stopped if !is_recorded => digest.unrecorded.push(rank),
                Ending::Stopped => digest.stopped.push(rank),
            }
            advance(rank);
        }
        Ok(digest)
    }

    /// Number of calls; number of events where the calls are unknown.
    pub fn total_calls(&self) -> u64 {
        match self.calls.is_empty() {
            true => self.events,
            false => self.calls.values().sum(),
        }
    }

    /// `outside`: on a communicator with members outside the capture.
    fn add(&mut self, action: &Action<'_>, outside: bool) {
        self.events += 1;
        match action {
            _ if outside => {}
            Action::Send(send) | Action::Exchange { send, .. } => {
                self.messages += 1;
                self.bytes.0 = self.bytes.0.saturating_add(send.bytes.0);
            }
            Action::Partitioned(Partitioned::Ready { count, bytes, .. }) => {
                self.messages += u64::from(*count);
                self.bytes.0 = self.bytes.0.saturating_add(bytes.0.saturating_mul((*count).into()));
            }
            Action::Other { detail: Detail::Transfer(Transfer { sent, fetched, .. }), .. } => {
                self.transfers.calls += 1;
                let bytes = sent.0.saturating_add(fetched.0);
                self.transfers.bytes.0 = self.transfers.bytes.0.saturating_add(bytes);
            }
            Action::Collective(_) => self.collectives += 1,
            Action::Phase { begin: true, .. } => self.phases += 1,
            Action::Stopped { reason } if *reason != UNRECORDED => {
                *self.stop_reasons.entry((*reason).to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// The communicator of a call on one, and the bytes that it sends or receives.
fn outside(action: &Action<'_>) -> Option<(CommId, Bytes)> {
    Some(match action {
        Action::Send(send) | Action::Exchange { send, .. } => (send.comm, send.bytes),
        Action::Receive(receive) => (receive.comm, receive.bytes),
        Action::PostReceive(post) => (post.comm, post.bytes),
        Action::Collective(part) => (part.comm, part.amounts.send),
        Action::Neighbourhood(part) => (part.comm, part.block.send),
        Action::Creation(creation) => (creation.comm, Bytes::ZERO),
        _ => return None,
    })
}

//! A network to measure traces by: every message takes a latency and its bytes over a bandwidth, whatever else is
//! under way. It shows whether a trace replays to its end, what is in it, and how long it takes when nothing
//! collides.

use crate::engine::Replay;
use crate::error::ReplayError;
use crate::message::LiveId;
use crate::options::Link;
use crate::ready::{Due, Ready};
use crate::stuck::Stuck;
use vef_format::units::Picos;

/// What came of a replay on the yardstick. What was in the trace is in [`Replay::stats`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the last task finished.
    pub runtime: Picos,
    /// Why it did not replay to its end, if it did not.
    pub stuck: Option<Stuck>,
}

impl Outcome {
    /// Whether every record was replayed and every message delivered.
    pub fn complete(&self) -> bool {
        self.stuck.is_none()
    }
}

/// The link that nobody has to name: 1 µs and 10 Gbit/s.
pub fn default_link() -> Link {
    Link::whole(Picos(1_000_000), 800)
}

/// Replays to the end, or as far as the trace goes.
pub fn run(replay: &mut Replay, link: &Link) -> Result<Outcome, ReplayError> {
    let mut arrivals = Ready::default();
    loop {
        let arrival = arrivals.next();
        let now = match (arrival, replay.next_ready()) {
            (None, None) => break,
            (Some(arrival), Some(ready)) if arrival <= ready => arrival,
            (Some(arrival), None) => arrival,
            (_, Some(now)) => {
                while let Some(message) = replay.pop_ready(now)? {
                    let at = link.time(message.bytes).and_then(|time| now.checked_add(time));
                    let at = at.ok_or(ReplayError::Arrival { id: message.id })?;
                    let (task, what) = (message.id.slot(), message.id.generation());
                    arrivals.push(Due { at, task, what });
                }
                continue;
            }
        };
        while let Some(due) = arrivals.pop(now) {
            replay.delivered(LiveId::new(due.task, due.what), now)?;
        }
    }
    Ok(Outcome { runtime: replay.finish(), stuck: replay.stuck() })
}

//! The interface of the models: a network that accepts messages and reports their delivery.

use vef_format::units::{Bytes, Picos};

use super::links::Usage;
use crate::watch::Watch;

/// A message would arrive after 2⁶⁴ picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {} bytes would arrive after 2^64 ps (213 days)", .bytes.0)]
pub struct OutOfTime {
    /// Its payload.
    pub bytes: Bytes,
}

/// A message to carry, between nodes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) bytes: Bytes,
    /// Chosen by the caller.
    pub(crate) tag: u64,
}

/// An event of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The last byte has left the node.
    Sent { tag: u64 },
    /// The last byte has arrived, `latency` after submission; the first byte left the node `queued` after
    /// submission.
    Delivered { tag: u64, latency: Picos, queued: Picos },
}

/// A network that carries messages.
pub(crate) trait Network {
    /// Submits a message at `at`, not before the last event that was processed.
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime>;

    /// Processes events up to `limit`, and returns the first one that concerns a message.
    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime>;

    /// Use of each link, by number.
    fn usage(&self) -> Vec<Usage>;

    /// Number of events so far: steps of messages or packets.
    fn events(&self) -> u64;

    /// When no event is left and not all messages are delivered: the channels that wait for each other.
    fn deadlock(&self) -> Option<String> {
        None
    }

    /// The recorder of optional results, if one is set.
    fn watch(&mut self) -> &mut Option<Box<Watch>>;
}

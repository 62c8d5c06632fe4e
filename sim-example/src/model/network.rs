//! The interface of the models: a network that accepts messages and reports their delivery.

use vef_format::units::{Bytes, Picos};

use super::links::Usage;
use crate::watch::Watch;

/// A message would arrive after the end of time, 2^64 picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {} bytes would arrive after the end of time (2^64 ps, 213 days)", .bytes.0)]
pub struct OutOfTime {
    /// Its payload.
    pub bytes: Bytes,
}

/// A message for a network: between nodes that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) bytes: Bytes,
    /// The caller's name for it.
    pub(crate) tag: u64,
}

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// Its last byte has left its node.
    Sent { tag: u64 },
    /// Its last byte is there, `latency` after it was handed over and `latency − queued` after its first byte left its node.
    Delivered { tag: u64, latency: Picos, queued: Picos },
}

/// A network that carries messages.
pub(crate) trait Network {
    /// Hands a message over at a moment that is not before anything that has happened.
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime>;

    /// Lets happen what happens until `limit`, up to the first that concerns the caller, if there is something.
    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime>;

    /// What each link has carried, by number.
    fn usage(&self) -> Vec<Usage>;

    /// Events that have happened: steps of messages or packets.
    fn events(&self) -> u64;

    /// What it records besides, if it is to.
    fn watch(&mut self) -> &mut Option<Box<Watch>>;
}

//! The operations of GOAL.

use std::fmt;
use vef_format::units::{Bytes, Count, Picos};

/// Most operations of all ranks, so that their numbers fit.
pub(super) const MOST_OPERATIONS: usize = 1 << 31;

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub what: What,
    /// The rank.
    pub rank: u32,
    /// The processor that carries it out.
    pub cpu: u32,
    /// The network interface that sends or receives.
    pub nic: u32,
    /// Line of a text, from 1; number of the operation in its rank, from 0, of a binary file.
    pub place: u32,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Sends a message.
    Send {
        /// Payload.
        bytes: Bytes,
        /// The receiver.
        to: u32,
        /// The tag.
        tag: u32,
    },
    /// Receives a message.
    Receive {
        /// Room for the payload.
        bytes: Bytes,
        /// The sender; `None`: any.
        from: Option<u32>,
        /// The tag; `None`: any.
        tag: Option<u32>,
    },
    /// Computes.
    Compute {
        /// How long.
        time: Picos,
    },
}

/// The operations of one rank, or of several, one behind the other, with their dependencies, by their numbers in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankGraph {
    /// The operations, in file order.
    pub operations: Vec<Operation>,
    /// The second starts when the first has ended.
    pub requires: Vec<(u32, u32)>,
    /// The second starts when the first has started.
    pub starts: Vec<(u32, u32)>,
}

impl RankGraph {
    /// Removes everything.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.requires.clear();
        self.starts.clear();
    }

    /// Makes room for about `times` as much as there is, if there is so much memory: that is a guess by the length of a file.
    pub(super) fn reserve(&mut self, times: usize) {
        let room = |length: usize| length.saturating_mul(times + times / 8 + 1);
        _ = self.operations.try_reserve(room(self.operations.len()));
        _ = self.requires.try_reserve(room(self.requires.len()));
        _ = self.starts.try_reserve(room(self.starts.len()));
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let any = |number: Option<u32>| number.map_or("any".to_owned(), |number| number.to_string());
        match *self {
            Self::Send { bytes, to, tag } => {
                write!(f, "send of {} to {to}, tag {tag}", Count(bytes.0, "byte"))
            }
            Self::Receive { bytes, from, tag } => {
                write!(f, "receive of {} from {}, tag {}", Count(bytes.0, "byte"), any(from), any(tag))
            }
            Self::Compute { time } => write!(f, "computing for {time}"),
        }
    }
}

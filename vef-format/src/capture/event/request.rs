//! Requests, and the calls that complete them.

use crate::ids::CommRank;
use crate::units::Bytes;
use std::fmt;

/// A non-blocking operation of one rank. Never reused within a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// The thread that started it.
    pub thread: u16,
    /// Index among the requests of that thread, from 0.
    pub number: u64,
}

/// The requests that a call completed, in the order of its array. Some lists have both forms, which are equal.
#[derive(Clone, Copy)]
pub enum Completions<'a> {
    /// Any requests.
    List(&'a [Completion]),
    /// Requests that one thread started consecutively, all [`Outcome::Done`].
    Run {
        /// The first request.
        first: RequestId,
        /// Number of requests; all request numbers are below 2^64.
        count: u64,
    },
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub request: RequestId,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Completed as posted: a send, a collective, or a receive without wildcards.
    Done,
    /// A wildcard receive, with the message it received.
    Received {
        /// The source.
        source: CommRank,
        /// The tag.
        tag: i32,
        /// Bytes received, where the layout has them.
        bytes: Option<Bytes>,
    },
    /// Cancelled before any data moved.
    Cancelled,
}

impl Completions<'_> {
    /// Number of requests.
    pub fn len(&self) -> u64 {
        match *self {
            Self::List(list) => list.len() as u64,
            Self::Run { count, .. } => count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All requests, in order.
    pub fn iter(&self) -> impl Iterator<Item = Completion> {
        let (list, run) = match *self {
            Self::List(list) => (list, 0..0),
            Self::Run { first, count } => (&[][..], first.number..first.number.saturating_add(count)),
        };
        let thread = if let Self::Run { first, .. } = self { first.thread } else { 0 };
        let done = move |number| Completion { request: RequestId { thread, number }, outcome: Outcome::Done };
        list.iter().copied().chain(run.map(done))
    }
}

impl PartialEq for Completions<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Completions<'_> {}

impl fmt::Debug for Completions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

//! What the engine hands to a simulator: a message, and the id by which the simulator speaks of it.

use std::fmt;
use vef_format::ids::Rank;
use vef_format::operation::Operation;
use vef_format::units::{Bytes, Picos};

/// A message to be carried through the network, from the moment it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Hand this back to [`Replay::sent`](crate::Replay::sent) and [`Replay::delivered`](crate::Replay::delivered).
    pub id: LiveId,
    /// End node of the sender, by the job's placement.
    pub src_node: u32,
    /// End node of the receiver.
    pub dst_node: u32,
    /// Payload.
    pub bytes: Bytes,
    /// Which of the traces, in the order in which they were given, from 0.
    pub job: u32,
    /// The sending task of that trace.
    pub src: Rank,
    /// The receiving task of that trace.
    pub dst: Rank,
    /// What the message belongs to.
    pub kind: Kind,
    /// When it became ready; it starts when it is handed out, which may be later.
    pub ready: Picos,
}

/// What a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A point-to-point line of the trace.
    PointToPoint,
    /// A step of a collective operation.
    Collective(Operation),
}

impl Kind {
    /// Number of different kinds.
    pub const COUNT: usize = 1 + Operation::ALL.len();

    /// Every kind, point-to-point first, then the operations in the order of [`Operation::ALL`].
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::PointToPoint).chain(Operation::ALL.iter().copied().map(Self::Collective))
    }

    /// Place in the order of [`Kind::all`].
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Self::PointToPoint => 0,
            Self::Collective(operation) => 1 + operation as usize,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PointToPoint => f.write_str("point-to-point"),
            Self::Collective(operation) => operation.fmt(f),
        }
    }
}

/// The id of a live message: one that was handed out and not yet delivered.
///
/// It names a slot and how often the slot was used, so that an id which was invented, or whose message is
/// delivered, is recognised. 0 is never an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LiveId(u64);

impl LiveId {
    /// The id as a plain number, to go through a simulator's own structures.
    #[inline]
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// Back from the plain number. Any number may be given: the engine refuses one that names no live message.
    #[inline]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    #[inline]
    pub(crate) const fn new(slot: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    #[inline]
    pub(crate) const fn slot(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Display for LiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

//! The state of a packet network: links, buffers, messages, packets, and the events that change them.

use std::collections::VecDeque;

use vef_format::units::Picos;

use crate::model::links::LinkSpeed;
use crate::routing::{Load, Walk};
use crate::topology::{LinkClass, LinkId};

/// What a link is, by class.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassSpeed {
    pub(super) speed: LinkSpeed,
    /// What a whole packet takes.
    pub(super) whole: Picos,
    /// What a credit takes.
    pub(super) back: Picos,
}

/// The two ends of a link: the arbiter that decides who sends over it, and the input of a switch to which it leads.
#[derive(Debug)]
pub(super) struct Link {
    /// When the link will have sent what it was given.
    pub(super) free: Picos,
    /// When its arbiter decides again: as the link is free, or earlier if the switch is faster inside.
    pub(super) decides: Picos,
    /// The buffer that it served last.
    pub(super) winner: u32,
    /// Bytes that ask for it, and that the buffers behind it hold or expect.
    pub(super) load: u32,
    pub(super) class: LinkClass,
    /// It is between groups of a dragonfly.
    pub(super) global: bool,
    /// There is an event for the moment at which the arbiter decides again.
    pub(super) armed: bool,
    /// It is in the list of open ones.
    pub(super) open: bool,
    /// Since when those that ask for it find no room behind it; [`Picos::MAX`] if they do.
    pub(super) blocked: Picos,
    /// Which buffers, by number, or (output buffers) packets, in the order in which they came, ask for it.
    pub(super) waiting: VecDeque<u32>,
    /// The buffer behind it that sent last.
    pub(super) sending: u32,
}

/// The buffer of a virtual channel behind a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) first: u32,
    pub(super) last: u32,
    /// Room, as the sender knows it.
    pub(super) credit: u32,
    /// Its first packet is about to be told its way, or asks for a link.
    pub(super) asks: bool,
    /// There is an event for the moment at which the packet that leaves has left.
    pub(super) armed: bool,
    /// Until when a packet leaves it.
    pub(super) busy: Picos,
}

/// A node's messages that are not whole in the network.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) messages: VecDeque<u32>,
    /// Messages so far.
    pub(super) count: u64,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) tag: u64,
    pub(super) submitted: Picos,
    /// When its first byte left.
    pub(super) entered: Picos,
    /// Bytes that have not left.
    pub(super) to_send: u64,
    /// Bytes that have not arrived.
    pub(super) to_come: u64,
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) key: u32,
    pub(super) packets: u32,
    /// The interface has prepared it.
    pub(super) prepared: bool,
    /// All was sent, and is to be reported.
    pub(super) unsent: bool,
    pub(super) delivered: bool,
}

#[derive(Debug)]
pub(super) struct Packet {
    /// When it may leave: its first byte is at the switch, and the switch has looked at it.
    pub(super) ready: Picos,
    /// The same of its last byte.
    pub(super) last_byte: Picos,
    pub(super) walk: Walk,
    pub(super) message: u32,
    /// Payload.
    pub(super) bytes: u32,
    /// The next one of its buffer.
    pub(super) next: u32,
    /// The buffer in which it is.
    pub(super) buffer: u32,
    /// The link it asks for.
    pub(super) link: u32,
    /// Its virtual channels there: the first, and behind the last.
    pub(super) vcs: (u8, u8),
    /// That link leads to its node.
    pub(super) last: bool,
}

pub(super) const NONE: u32 = u32::MAX;

/// What happens, in 64 bits: an index, bytes, and which of these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event(pub(super) u64);

pub(super) const START: u64 = 0;
pub(super) const ARRIVE: u64 = 1;
pub(super) const DECIDE: u64 = 2;
pub(super) const CREDIT: u64 = 3;
pub(super) const DELIVERED: u64 = 4;
pub(super) const SENT: u64 = 5;
pub(super) const LEFT: u64 = 6;

impl Event {
    #[inline(always)]
    pub(super) fn new(kind: u64, index: u32, bytes: u32) -> Self {
        Self(kind | u64::from(bytes) << 3 | u64::from(index) << 32)
    }

    #[inline(always)]
    pub(super) fn index(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    pub(super) fn bytes(self) -> u32 {
        (self.0 as u32) >> 3
    }
}

/// Bytes of a packet fit an event.
pub(super) const MOST_BYTES: u64 = 1 << 28;

/// Arrivals and credits by class of link, links that become free and packets that have left, deliveries.
pub(super) const LANES: usize = 8;
pub(super) const LANE_CREDIT: usize = 3;
pub(super) const LANE_FREE: usize = 6;
pub(super) const LANE_DELIVERED: usize = 7;

pub(super) struct Loads<'a>(pub(super) &'a [Link]);

impl Load for Loads<'_> {
    #[inline]
    fn load(&self, link: LinkId) -> u64 {
        self.0[link.index()].load.into()
    }
}

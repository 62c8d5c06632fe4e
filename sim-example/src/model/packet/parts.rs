//! The state of a packet network: links, buffers, messages, packets and events.

use std::cell::RefCell;
use std::collections::VecDeque;

use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::border::Border;
use crate::model::links::LinkSpeed;
use crate::routing::Load;
use crate::topology::{LinkClass, LinkId, Outages, Route};

/// Speed of a class of links.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassSpeed {
    pub(super) speed: LinkSpeed,
    /// Transmission time of a full packet.
    pub(super) whole: Picos,
    /// Time in which a credit returns.
    pub(super) back: Picos,
    /// Transmission time of as much as a buffer holds.
    pub(super) buffered: Picos,
}

/// A link: its arbiter, and the switch input at its end.
#[derive(Debug)]
pub(super) struct Link {
    /// End of the last transmission.
    pub(super) free: Picos,
    /// Earliest next arbitration: the end of the transmission, or earlier if the switch has a speedup.
    pub(super) next_arbitration: Picos,
    /// Bytes that wait for the link, or are in the buffers behind it.
    pub(super) load: u32,
    pub(super) class: LinkClass,
    /// Whether the link is between groups of a dragonfly.
    pub(super) global: bool,
    /// Whether an event for `next_arbitration` is queued.
    pub(super) scheduled: bool,
    /// Whether arbitration is requested.
    pub(super) requested: bool,
    /// Since when no packet that waits has room behind the link; [`Picos::MAX`] if one has.
    pub(super) blocked: Picos,
    /// Who requests the link: heads of buffers, by number of the buffer; with output buffers, packets in the order of arrival.
    pub(super) waiting: VecDeque<Request>,
    /// The buffer behind the link that sent last, if the switch has a speedup.
    pub(super) sending: u32,
    /// Credits that return to it, by time: the first and the last one.
    pub(super) first_credit: u32,
    pub(super) last_credit: u32,
    /// The next event that looks at them, because the link is blocked; [`Picos::MAX`] if there is none.
    pub(super) wake: Picos,
}

/// A packet requests a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) slot: u32,
    pub(super) buffer: u32,
    /// Its bytes, with the header.
    pub(super) wire: u32,
    /// The range of its virtual channels (first, end) on the link.
    pub(super) vcs: (u8, u8),
    /// Whether the link leads to its destination.
    pub(super) last: bool,
}

/// A buffer has space again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// When the sender learns of it.
    pub(super) at: Picos,
    pub(super) buffer: u32,
    pub(super) bytes: u32,
    /// The next one of the link.
    next: u32,
}

impl Credit {
    pub(super) fn new(at: Picos, buffer: u32, bytes: u32) -> Self {
        Self { at, buffer, bytes, next: NONE }
    }
}

/// Those of all links.
pub(super) type Credits = Slab<Credit>;

impl Link {
    /// Adds a credit that returns. Most come in the order of time.
    #[inline]
    pub(super) fn add_credit(&mut self, credit: Credit, credits: &mut Credits) {
        let slot = credits.insert(credit) as u32;
        if self.first_credit == NONE {
            (self.first_credit, self.last_credit) = (slot, slot);
        } else if credits[self.last_credit as usize].at <= credit.at {
            credits[self.last_credit as usize].next = slot;
            self.last_credit = slot;
        } else {
            // Before the first later one, which the last one is at the latest.
            let (mut before, mut later) = (NONE, self.first_credit);
            while credits[later as usize].at <= credit.at {
                (before, later) = (later, credits[later as usize].next);
            }
            credits[slot as usize].next = later;
            match before {
                NONE => self.first_credit = slot,
                before => credits[before as usize].next = slot,
            }
        }
    }

    /// When the first credit returns that is not counted.
    #[inline]
    pub(super) fn next_credit(&self, credits: &Credits) -> Option<Picos> {
        (self.first_credit != NONE).then(|| credits[self.first_credit as usize].at)
    }

    /// Counts the credits that have returned by `now`. Nothing reads credit or load before.
    #[inline]
    pub(super) fn settle(&mut self, now: Picos, credits: &mut Credits, buffers: &mut [Buffer]) {
        while self.next_credit(credits).is_some_and(|at| at <= now) {
            let Credit { buffer, bytes, next, .. } = credits.remove(self.first_credit as usize);
            self.first_credit = next;
            self.load -= bytes;
            buffers[buffer as usize].credit += bytes;
        }
    }
}

/// The buffer of a virtual channel, behind its link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) first: u32,
    pub(super) last: u32,
    /// Free bytes, as known to the sender.
    pub(super) credit: u32,
    /// The class of virtual channels that the link in front served last, of the class of traffic whose channels begin with this one: by
    /// its first channel.
    pub(super) served: u8,
    /// The input that the link in front served last for the class of channels that begins with this one, or [`NONE`].
    pub(super) winner: u32,
    /// Its link.
    pub(super) link: LinkId,
    /// End of the departure of the last packet.
    pub(super) busy: Picos,
}

/// Messages of a node, of a class of traffic, that have bytes to send.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) messages: VecDeque<u32>,
    /// Number of messages so far, of all classes; in the node's first source.
    pub(super) count: u64,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) tag: u64,
    pub(super) submitted: Picos,
    /// When the first byte left the node.
    pub(super) entered: Picos,
    /// Bytes not sent.
    pub(super) to_send: u64,
    /// Bytes not arrived.
    pub(super) to_arrive: u64,
    pub(super) src: u32,
    pub(super) dst: u32,
    /// Its class of traffic.
    pub(super) class: u8,
    pub(super) key: u32,
    pub(super) packets: u32,
    /// Its number among the messages of its source.
    pub(super) number: u32,
    /// Whether the interface has prepared the message.
    pub(super) prepared: bool,
    /// Whether [`Happened::Sent`](crate::model::Happened::Sent) is to be reported.
    pub(super) report_sent: bool,
    /// Whether it has been reported; it may be sent again.
    pub(super) told_sent: bool,
    /// Whether all of it has arrived, or left for another thread's part of the network.
    pub(super) delivered: bool,
    /// Whether it is only known for one packet that passes this part of the network.
    pub(super) in_transit: bool,
}

impl Message {
    /// Message `number` of a source, of which `bytes` come to this thread's part of the network and none are sent from there.
    pub(super) fn arriving((src, number): (u32, u32), dst: u32, submitted: Picos, bytes: u64) -> Self {
        Self {
            tag: 0,
            submitted,
            entered: submitted,
            to_send: 0,
            to_arrive: bytes,
            src,
            dst,
            // That of its packets follows from their virtual channels.
            class: 0,
            key: 0,
            packets: 0,
            number,
            prepared: true,
            report_sent: false,
            told_sent: false,
            delivered: false,
            in_transit: false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Packet {
    /// Earliest start on the next link: arrival of the first byte, and the switch delay.
    pub(super) ready: Picos,
    /// The same for the last byte.
    pub(super) last_byte: Picos,
    pub(super) route: Route,
    pub(super) message: u32,
    /// Payload.
    pub(super) bytes: u32,
    /// The next packet in its buffer.
    pub(super) next: u32,
    /// Its buffer.
    pub(super) buffer: u32,
    /// The link that it requests.
    pub(super) link: u32,
    /// The range of its virtual channels (first, end) on that link.
    pub(super) vcs: (u8, u8),
    /// Whether that link leads to its destination.
    pub(super) last: bool,
    /// Links that it has crossed in this part of the network, modulo 256: so a packet has 64 bytes.
    pub(super) hops: u8,
}

pub(super) const NONE: u32 = u32::MAX;

/// An event in 64 bits: index, bytes, kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event(pub(super) u64);

pub(super) const START: u64 = 0;
/// The head of a buffer has arrived, and the packet before it has left; with output buffers, a packet has arrived.
pub(super) const ARRIVE: u64 = 1;
pub(super) const ARBITRATE: u64 = 2;
/// A credit returns to a link that is blocked.
pub(super) const CREDIT: u64 = 3;
pub(super) const DELIVERED: u64 = 4;
pub(super) const SENT: u64 = 5;
/// If the switch has a speedup.
pub(super) const DEPARTED: u64 = 6;
/// Of congestion control ([`super::controlled`]), or [`CHANGED`].
pub(super) const CONTROL: u64 = 7;
/// In place of the bytes of a [`CONTROL`]: links fail or work again.
pub(super) const CHANGED: u32 = MOST_BYTES as u32 - 1;

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

/// Bytes of a packet fit into an event.
pub(super) const MOST_BYTES: u64 = 1 << 28;

/// The loads of links at a moment.
pub(super) struct Loads<'a> {
    pub(super) now: Picos,
    pub(super) border: Option<&'a Border<'a>>,
    pub(super) state: RefCell<(&'a mut [Link], &'a mut Credits, &'a mut [Buffer])>,
}

impl Loads<'_> {
    /// The number here of a link of the whole network, over which a switch here sends.
    #[inline]
    pub(super) fn own(&self, link: LinkId) -> LinkId {
        self.border.map_or(link, |border| border.parts.at_sender(link))
    }
}

impl Load for Loads<'_> {
    #[inline]
    fn load(&self, link: LinkId) -> u64 {
        let (links, credits, buffers) = &mut *self.state.borrow_mut();
        let link = &mut links[self.own(link).index()];
        link.settle(self.now, credits, buffers);
        link.load.into()
    }

    fn of_bytes(&self, bytes: Bytes) -> u64 {
        bytes.0
    }
}

/// What a network whose links fail at times keeps.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    pub(super) outages: &'a Outages,
    /// Packets at switches without a route.
    pub(super) waiting: Vec<u32>,
}

impl<'a> Held<'a> {
    pub(super) fn new(outages: &'a Outages) -> Self {
        Self { outages, waiting: Vec::new() }
    }

    /// Whether a packet that leaves from `from` to `to` is cut off.
    #[inline(never)]
    pub(super) fn will_fail(&self, link: LinkId, from: Picos, to: Picos) -> bool {
        self.outages.cut(link, from, to).is_some()
    }

    /// The switch and destination of a packet that waits for ever.
    pub(super) fn stranded(&self, packets: &Slab<Packet>) -> Option<(u32, u32)> {
        let route = packets[*self.waiting.first()? as usize].route;
        Some((route.at, route.dst))
    }
}

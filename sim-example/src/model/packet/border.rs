//! What one part of a divided network knows of its border, and what crosses it.
//!
//! A part keeps state of its own links alone, by their places among them ([`Parts::links`]): there these are the links' numbers. What crosses the
//! border has the numbers of the whole network.

use hashbrown::HashMap;
use vef_format::units::{Bytes, Picos};

use crate::topology::{LinkId, Parts, Route};

#[derive(Debug)]
pub(crate) struct Border<'a> {
    pub(super) parts: &'a Parts,
    /// This part.
    pub(super) part: u16,
    /// By link of this part: whether its sender is in another one, and its receiver.
    elsewhere: Vec<(bool, bool)>,
    /// What has left since the last exchange, with the part it goes to.
    pub(super) crossed: Vec<(u16, Crossed)>,
    /// New messages to other parts since the last exchange, with these parts.
    pub(super) announced: Vec<(u16, Announced)>,
    /// Slots of messages to nodes of this part that have packets in other parts, by source and number.
    pub(super) arriving: HashMap<(u32, u32), u32>,
}

/// A message for a node of another part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    pub(crate) tag: u64,
    pub(crate) dst: u32,
    pub(super) src: u32,
    pub(super) number: u32,
    pub(super) submitted: Picos,
    pub(super) bytes: Bytes,
}

/// What crosses the border.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Crossed {
    /// A packet that reaches the buffer of a virtual channel.
    Packet {
        link: LinkId,
        channel: u32,
        ready: Picos,
        last_byte: Picos,
        route: Route,
        bytes: u32,
        /// Source and number of its message, and when that was submitted.
        message: (u32, u32, Picos),
    },
    /// Bytes that such a buffer has free again.
    Credit { at: Picos, link: LinkId, channel: u32, bytes: u32 },
}

impl Crossed {
    /// When it takes effect.
    pub(crate) fn at(&self) -> Picos {
        match *self {
            Self::Packet { ready, .. } => ready,
            Self::Credit { at, .. } => at,
        }
    }
}

impl<'a> Border<'a> {
    pub(super) fn new(parts: &'a Parts, part: u16) -> Self {
        let is_elsewhere = |&link: &LinkId| (parts.of_sender(link) != part, parts.of_receiver(link) != part);
        let elsewhere = parts.links(part).iter().map(is_elsewhere).collect();
        Self { parts, part, elsewhere, crossed: Vec::new(), announced: Vec::new(), arriving: HashMap::new() }
    }

    /// The number in the whole network of a link of this part.
    #[inline]
    pub(super) fn whole(&self, own: LinkId) -> LinkId {
        self.parts.links(self.part)[own.index()]
    }

    #[inline]
    pub(super) fn sender_is_elsewhere(&self, own: LinkId) -> bool {
        self.elsewhere[own.index()].0
    }

    #[inline]
    pub(super) fn receiver_is_elsewhere(&self, own: LinkId) -> bool {
        self.elsewhere[own.index()].1
    }

    pub(super) fn return_credit(&mut self, own: LinkId, channel: u32, bytes: u32, at: Picos) {
        let link = self.whole(own);
        self.crossed.push((self.parts.of_sender(link), Crossed::Credit { at, link, channel, bytes }));
    }

    #[inline]
    pub(super) fn is_elsewhere(&self, node: u32) -> bool {
        self.parts.of_node(node) != self.part
    }

    /// A new message.
    pub(super) fn announce(&mut self, message: Announced) {
        if self.is_elsewhere(message.dst) {
            self.announced.push((self.parts.of_node(message.dst), message));
        }
    }
}

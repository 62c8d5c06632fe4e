//! What one part of a divided network knows of its border, and what crosses it.

use hashbrown::HashMap;
use vef_format::units::{Bytes, Picos};

use crate::topology::{LinkId, Parts, Route};

#[derive(Debug)]
pub(super) struct Border<'a> {
    pub(super) parts: &'a Parts,
    /// This part.
    pub(super) part: u16,
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
    /// A packet that reaches a buffer.
    Packet {
        buffer: u32,
        ready: Picos,
        last_byte: Picos,
        route: Route,
        bytes: u32,
        /// Source and number of its message, and when that was submitted.
        message: (u32, u32, Picos),
    },
    /// Bytes that a buffer has free again.
    Credit { at: Picos, buffer: u32, bytes: u32 },
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
        Self { parts, part, crossed: Vec::new(), announced: Vec::new(), arriving: HashMap::new() }
    }

    #[inline]
    pub(super) fn sender_is_elsewhere(&self, link: LinkId) -> bool {
        self.parts.of_sender(link) != self.part
    }

    #[inline]
    pub(super) fn receiver_is_elsewhere(&self, link: LinkId) -> bool {
        self.parts.of_receiver(link) != self.part
    }

    pub(super) fn return_credit(&mut self, link: LinkId, buffer: u32, bytes: u32, at: Picos) {
        self.crossed.push((self.parts.of_sender(link), Crossed::Credit { at, buffer, bytes }));
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

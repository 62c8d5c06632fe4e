//! The part of a network that one of several threads simulates.
//!
//! A part has switches with their nodes ([`Parts`]). Of a link between two parts, the sender's has the arbiter, the credits and the
//! load; the receiver's has the buffers. Packets and credits that cross take effect later than they are sent
//! ([`Packets::lookahead`]), and a message is announced to the part of its destination before its packets arrive.

use vef_format::units::Picos;

use super::border::{Announced, Border, Crossed};
use super::parts::{ClassSpeed, Credit, Message, NONE, Packet};
use super::state::Packets;
use crate::model::links::{Links, Usage};
use crate::topology::{LinkId, Parts};

impl<'a> Packets<'a> {
    /// The least time that anything takes from one part to another.
    pub(crate) fn lookahead(&self, parts: &Parts) -> Picos {
        let latency = parts.between().map(|link| self.speed(link).speed.latency).min().unwrap_or(Picos::MAX);
        latency.saturating_add(self.switch_delay.min(self.settings.credit_delay))
    }

    /// Packets that all links together can send in `time`, if all are full.
    pub(crate) fn most_hops(&self, time: Picos) -> u64 {
        let hops = |link| time.0 as f64 / self.speed(LinkId(link)).whole.0.max(1) as f64;
        (0..self.links.len() as u32).map(hops).sum::<f64>() as u64
    }

    fn speed(&self, link: LinkId) -> &ClassSpeed {
        &self.speeds[usize::from(self.links[link.index()].class.0)]
    }

    /// The parts of a new network.
    pub(crate) fn divide(self, parts: &'a Parts, links: &Links) -> Vec<Self> {
        // The same settings as before.
        let again = |_| {
            Self::with_channels(self.router, self.vcs_of_class, self.settings, links, self.report_sent).ok()
        };
        let others: Vec<Self> = (1..parts.count()).filter_map(again).collect();
        let mut networks: Vec<Self> = std::iter::once(self).chain(others).collect();
        for (part, network) in (0..).zip(&mut networks) {
            network.border = Some(Box::new(Border::new(parts, part)));
        }
        networks
    }

    /// Time of the next event.
    pub(crate) fn next_event(&self) -> Option<Picos> {
        self.queue.next()
    }

    /// New messages to other parts since the last call, with these parts.
    pub(crate) fn announced(&mut self) -> impl Iterator<Item = (u16, Announced)> + '_ {
        self.border.iter_mut().flat_map(|border| border.announced.drain(..))
    }

    /// Everything that has left for other parts since the last call.
    pub(crate) fn crossed(&mut self) -> impl Iterator<Item = (u16, Crossed)> + '_ {
        self.border.iter_mut().flat_map(|border| border.crossed.drain(..))
    }

    /// A message of another part that its tag names here.
    pub(crate) fn expect(&mut self, announced: &Announced, tag: u64) {
        let &Announced { dst, src, number, submitted, bytes, .. } = announced;
        let message = Message { tag, ..Message::arriving((src, number), dst, submitted, bytes.0) };
        let slot = self.messages.insert(message) as u32;
        if let Some(border) = &mut self.border {
            border.arriving.insert((src, number), slot);
        }
    }

    /// Something of another part, before it takes effect.
    pub(crate) fn enter(&mut self, crossed: Crossed) {
        match crossed {
            Crossed::Credit { at, buffer, bytes } => self.credit(Credit::new(at, buffer, bytes)),
            Crossed::Packet { buffer, ready, last_byte, route, bytes, message: (src, number, submitted) } => {
                let known = self.border.as_ref().and_then(|border| border.arriving.get(&(src, number)));
                let message = known.copied().unwrap_or_else(|| {
                    let message = Message::arriving((src, number), route.dst, submitted, bytes.into());
                    self.messages.insert(Message { in_transit: true, ..message }) as u32
                });
                let packet = Packet {
                    ready,
                    last_byte,
                    route,
                    message,
                    bytes,
                    next: NONE,
                    buffer,
                    link: NONE,
                    vcs: (0, 0),
                    last: false,
                    hops: 0,
                };
                let slot = self.packets.insert(packet) as u32;
                self.enqueue(buffer, slot, ready, last_byte);
            }
        }
    }

    /// A packet leaves for a buffer of another part.
    pub(super) fn leave(&mut self, room: u32, slot: u32, ready: Picos, last_byte: Picos) {
        let Packet { route, message: at, bytes, .. } = self.packets.remove(slot as usize);
        let Some(border) = &mut self.border else { return };
        let message = &mut self.messages[at as usize];
        let (source, number) = (message.src, message.number);
        let packet = Crossed::Packet {
            buffer: room,
            ready,
            last_byte,
            route,
            bytes,
            message: (source, number, message.submitted),
        };
        border.crossed.push((border.parts.of_receiver(LinkId(room / self.vcs)), packet));
        if !message.in_transit && !border.is_elsewhere(message.dst) {
            // It will come back.
            border.arriving.insert((source, number), at);
            return;
        }
        message.to_arrive -= u64::from(bytes);
        if message.to_arrive == 0 && message.to_send == 0 {
            message.delivered = true;
            if !message.report_sent {
                self.messages.remove(at as usize);
            }
        }
    }

    /// Adds the use of the links of another part.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.usage.iter_mut().zip(&other.usage).for_each(|(mine, other)| Usage::merge(mine, other));
        self.crossings += other.crossings;
    }
}

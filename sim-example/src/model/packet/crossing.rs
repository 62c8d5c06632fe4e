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
        let (router, settings) = (self.router, self.settings);
        let (vcs_of_class, report_sent) = (self.vcs_of_class, self.report_sent);
        // The state of the whole is freed before that of its parts is made.
        drop(self);
        let part = |part| {
            let border = Some(Box::new(Border::new(parts, part)));
            // The same settings as before.
            Self::with_channels(router, vcs_of_class, settings, links, report_sent, border).ok()
        };
        (0..parts.count()).filter_map(part).collect()
    }

    /// The use of all links of the whole network that are here.
    pub(super) fn usage_by_link(&self) -> Vec<Usage> {
        let mut usage = vec![Usage::default(); self.router.fabric().links() as usize];
        (0..).zip(&self.usage).for_each(|(own, used)| usage[self.whole(LinkId(own)).index()] = *used);
        usage
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
        let Some(parts) = self.border.as_ref().map(|border| border.parts) else { return };
        match crossed {
            Crossed::Credit { at, link, channel, bytes } => {
                let buffer = parts.at_sender(link).0 * self.vcs + channel;
                self.credit(Credit::new(at, buffer, bytes));
            }
            Crossed::Packet {
                link,
                channel,
                ready,
                last_byte,
                route,
                bytes,
                message: (src, number, submitted),
            } => {
                let buffer = parts.at_receiver(link).0 * self.vcs + channel;
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
        let link = border.whole(LinkId(room / self.vcs));
        let packet = Crossed::Packet {
            link,
            channel: room % self.vcs,
            ready,
            last_byte,
            route,
            bytes,
            message: (source, number, message.submitted),
        };
        border.crossed.push((border.parts.of_receiver(link), packet));
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
}

#[cfg(test)]
mod tests {
    use super::super::tests::{links, network, settings};
    use super::*;
    use crate::topology::tests::build;

    /// Each of eight threads has an eighth of the links, and those over its border.
    #[test]
    fn a_part_has_its_own_links() {
        let (fabric, nodes) = (build("torus:16x16x16"), 16 * 16 * 16);
        let (links, parts) = (links("8Gbit/s", 1), fabric.parts(8, 0..nodes));
        let divided = network(&fabric, &links, settings("", 1000), "minimal").unwrap().divide(&parts, &links);
        assert_eq!(divided.len(), 8);
        // Two layers of 256 switches, with 256 links from each neighbouring layer and 256 to it.
        let own = fabric.links() / 8 + 2 * 256;
        for network in &divided {
            assert_eq!(network.links.len() as u32, own);
            assert_eq!(network.buffers.len() as u32, own * network.vcs);
            assert_eq!(network.sources.len() as u32, nodes / 8);
            let numbers = (0..own).map(LinkId);
            assert!(numbers.clone().all(|link| {
                let whole = network.whole(link);
                [parts.at_sender(whole), parts.at_receiver(whole)].contains(&link)
            }));
            assert!(numbers.map(|link| network.whole(link)).is_sorted());
        }
        let all: Vec<_> =
            (0..nodes).map(|node| divided[usize::from(parts.of_node(node))].node(node)).collect();
        assert_eq!(all, (0..8).flat_map(|_| 0..nodes / 8).collect::<Vec<_>>());
    }
}

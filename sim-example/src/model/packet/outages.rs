//! Links that fail at times.
//!
//! A packet does not begin to leave over a link that fails before its last byte would have left. When a link fails, the packets that wait for it
//! take another route from their switch; without one they wait until links change again. With `--lossy` switches drop all these packets.

use super::parts::{NONE, Request};
use super::settings::Buffers;
use super::state::Packets;
use crate::topology::{LinkId, Vertex};

impl Packets<'_> {
    /// A packet at a switch has no route at this time.
    pub(super) fn hold(&mut self, slot: u32) {
        if self.settings.lossy.is_some() {
            return self.drop_packet(slot);
        }
        if let Some(held) = &mut self.outages {
            held.waiting.push(slot);
        }
    }

    /// Links fail or work again.
    pub(super) fn links_change(&mut self) {
        let Some(held) = self.outages.as_deref_mut() else { return };
        let outages = held.outages;
        let mut packets = std::mem::take(&mut held.waiting);
        for link in (0..self.links.len() as u32).map(LinkId) {
            if !outages.is_down(link, self.now) {
                // Of a link that works again, and of one that a packet would have outlasted.
                self.request_arbitration(link);
                continue;
            }
            for Request { slot, .. } in std::mem::take(&mut self.links[link.index()].waiting) {
                self.take_back(link, slot);
                match self.settings.lossy {
                    Some(_) => self.drop_packet(slot),
                    None => packets.push(slot),
                }
            }
        }
        let number = |slot: &u32| match self.settings.buffers {
            Buffers::Output => *slot,
            Buffers::Input => self.packets[*slot as usize].buffer,
        };
        let again: Vec<u32> = packets.iter().map(number).collect();
        self.arrived.extend(again);
    }

    /// A packet does not wait for a link any more: it is where it was before.
    fn take_back(&mut self, link: LinkId, slot: u32) {
        self.leaves_queue(link, slot);
        let packet = &mut self.packets[slot as usize];
        packet.link = NONE;
        if !packet.last {
            self.links[link.index()].load -= packet.bytes + self.settings.header.0 as u32;
        }
        let behind = LinkId(packet.buffer / self.vcs);
        if let Some((_, Vertex::Switch(switch))) = self.router.fabric().ends(behind) {
            packet.route.at = switch;
        }
    }
}

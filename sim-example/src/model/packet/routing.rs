//! Packets that have arrived at a switch get their next link.

use std::cell::RefCell;

use super::parts::*;
use super::settings::Buffers;
use super::state::Packets;

impl Packets<'_> {
    /// Routes all packets that have arrived.
    pub(super) fn route_arrived(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        if arrived.len() > 1 && (self.router.asks_for_load() || self.settings.buffers == Buffers::Output) {
            match self.settings.buffers {
                Buffers::Input => arrived.sort_unstable(),
                // By location; packets of one buffer keep their order.
                Buffers::Output => {
                    let packets = &self.packets;
                    arrived
                        .sort_by_key(|&slot| (packets[slot as usize].ready, packets[slot as usize].buffer));
                }
            }
        }
        for &number in &arrived {
            let slot = match self.settings.buffers {
                Buffers::Input => self.buffers[number as usize].first,
                Buffers::Output => number,
            };
            self.route(slot);
        }
        arrived.clear();
        self.arrived = arrived;
    }

    #[inline]
    pub(super) fn route(&mut self, slot: u32) {
        let packet = &mut self.packets[slot as usize];
        let loads = Loads {
            now: self.now,
            border: self.border.as_deref(),
            state: RefCell::new((&mut self.links, &mut self.credits, &mut self.buffers)),
        };
        let hop = match &self.outages {
            None => self.router.next(&mut packet.route, &loads),
            Some(held) => match self.router.next_at(held.outages, &mut packet.route, self.now, &loads) {
                Some(hop) => hop,
                None => return self.hold(slot),
            },
        };
        let link = loads.own(hop.link);
        packet.link = link.0;
        packet.last = hop.last;
        if !self.admit(link, slot) {
            return;
        }
        let first = self.channels_of(self.class_of(self.packets[slot as usize].buffer)).0;
        let packet = &mut self.packets[slot as usize];
        let state = &mut self.links[link.index()];
        let wire = packet.bytes + self.settings.header.0 as u32;
        // To a node, packets of a class of traffic are one class.
        packet.vcs = (first, first);
        if !hop.last {
            let channels = &self.channels[usize::from(state.global)];
            let (from, end) = channels[usize::from(hop.class).min(channels.len() - 1)];
            packet.vcs = (first + from, first + end);
            state.load += wire;
        }
        let request = Request { slot, buffer: packet.buffer, wire, vcs: packet.vcs, last: hop.last };
        match self.settings.buffers {
            Buffers::Output => state.waiting.push_back(request),
            Buffers::Input => {
                let place = state.waiting.partition_point(|other| other.buffer < request.buffer);
                state.waiting.insert(place, request);
            }
        }
        self.request_arbitration(link);
    }
}

//! Messages become packets that enter the network.

use vef_format::units::{Bytes, Picos};

use super::parts::{Event, NONE, Packet, SENT};
use super::state::Packets;
use crate::model::OutOfTime;
use crate::topology::LinkId;
use crate::watch::Crossing;

impl Packets<'_> {
    /// Sends the next packet of a node: of the class of traffic whose turn it is, of those with room for one, of its first message. Returns
    /// it and its class, unless there is none or no room.
    #[inline]
    pub(super) fn inject(&mut self, link: LinkId) -> Result<Option<(u32, u32)>, OutOfTime> {
        let classes = self.shares.count();
        let first_source = link.0 / 2 * classes;
        let has_message =
            |this: &Self, class: u32| !this.sources[(first_source + class) as usize].messages.is_empty();
        self.links[link.index()].settle(self.now, &mut self.credits, &mut self.buffers);
        let (mut tried, mut found) = (0u32, None);
        while found.is_none() {
            let class = match classes {
                1 if tried == 0 => 0,
                _ => {
                    let open =
                        (0..classes).filter(|&class| tried & 1 << class == 0 && has_message(self, class));
                    let Some(class) = open.min_by_key(|&class| self.shares.start(link, class)) else { break };
                    class
                }
            };
            let Some(&slot) = self.sources[(first_source + class) as usize].messages.front() else { break };
            tried |= 1 << class;
            let message = &mut self.messages[slot as usize];
            if !message.prepared {
                message.prepared = true;
                if self.overhead > Picos::ZERO {
                    let out_of_time = OutOfTime { bytes: Bytes(message.to_arrive) };
                    let prepared = self.now.checked_add(self.overhead).ok_or(out_of_time)?;
                    self.links[link.index()].next_arbitration = prepared;
                    self.schedule_arbitration(link.0);
                    return Ok(None);
                }
            }
            let bytes = message.to_send.min(self.settings.size.0) as u32;
            let room = self.room_for(link, bytes + self.settings.header.0 as u32, self.channels_of(class));
            found = room.map(|room| (class, slot, bytes, room));
        }
        if let (Some(held), Some((_, _, bytes, _))) = (&self.outages, found) {
            let end = self.end((link, self.links[link.index()].class), self.now, bytes)?;
            if held.will_fail(link, self.now, end) {
                return Ok(None);
            }
        }
        let Some((class, slot, bytes, room)) = found else {
            if tried != 0 {
                let state = &mut self.links[link.index()];
                state.blocked = state.blocked.min(self.now);
                self.wake(link);
            }
            return Ok(None);
        };
        let source = (first_source + class) as usize;
        let wire = bytes + self.settings.header.0 as u32;
        self.shares.serve(link, class, wire);
        let out_of_time = OutOfTime { bytes: Bytes(self.messages[slot as usize].to_arrive) };
        let message = &mut self.messages[slot as usize];
        if message.packets == 0 {
            message.entered = self.now;
        }
        let key = match self.router.by_packet() {
            true => self.router.key(
                message.src,
                message.dst,
                u64::from(message.key) << 32 | u64::from(message.packets),
            ),
            false => message.key,
        };
        message.packets = message.packets.wrapping_add(1);
        message.to_send -= u64::from(bytes);
        let all_sent = message.to_send == 0;
        let route = self.router.start(message.src, message.dst, key);
        let packet = Packet {
            ready: Picos::ZERO,
            last_byte: Picos::ZERO,
            route,
            message: slot,
            bytes,
            next: NONE,
            buffer: NONE,
            link: link.0,
            vcs: (0, 0),
            last: false,
            hops: 1,
        };
        let packet = self.packets.insert(packet) as u32;
        let end = self.end((link, self.links[link.index()].class), self.now, bytes)?;
        let state = &mut self.links[link.index()];
        let latency = self.speeds[usize::from(state.class.0)].speed.latency;
        let time = Picos(end.0 - self.now.0);
        (state.free, state.next_arbitration) = (end, end);
        state.load += wire;
        let usage = &mut self.usage[link.index()];
        usage.add(Bytes(wire.into()), time, Picos::ZERO);
        if let Some(watch) = &mut self.watch {
            let crossing = Crossing { link, bytes: wire.into(), waited: Picos::ZERO, time, end };
            watch.crossed(packet, self.messages[slot as usize].tag, &crossing, false);
            watch.blocked(link, state.blocked.min(self.now), self.now);
        }
        if state.blocked != Picos::MAX {
            usage.blocked = usage.blocked.saturating_add(self.now.saturating_sub(state.blocked));
            state.blocked = Picos::MAX;
        }
        self.crossings += 1;
        let last_byte = end.checked_add(latency).and_then(|there| there.checked_add(self.switch_delay));
        let last_byte = last_byte.ok_or(out_of_time)?;
        self.buffers[room as usize].credit -= wire;
        let ready = Picos(self.now.0 + latency.0 + self.switch_delay.0);
        self.enqueue(room, packet, ready, last_byte);
        if all_sent {
            self.sources[source].messages.pop_front();
            let message = &mut self.messages[slot as usize];
            if self.report_sent && !std::mem::replace(&mut message.told_sent, true) {
                message.report_sent = true;
                self.queue.push(end, Event::new(SENT, slot, 0));
            }
        }
        if (0..classes).any(|class| has_message(self, class)) {
            self.schedule_arbitration(link.0);
        }
        Ok(Some((packet, class)))
    }
}

//! A packet leaves its buffer for the next one, or for its node.

use vef_format::units::{Bytes, Picos};

use super::parts::{ARRIVE, Credit, DELIVERED, DEPARTED, Event, NONE, Packet};
use super::settings::Buffers;
use super::state::Packets;
use crate::model::OutOfTime;
use crate::topology::LinkId;
use crate::watch::Crossing;

impl Packets<'_> {
    /// Sends a packet over `link` into buffer `room`, or to the node if `room` is [`NONE`].
    #[inline]
    pub(super) fn send(&mut self, link: LinkId, slot: u32, room: u32) -> Result<(), OutOfTime> {
        let now = self.now;
        let (class, payload) = (self.links[link.index()].class, self.packets[slot as usize].bytes);
        let start = now.max(self.links[link.index()].free);
        let last_left = self.end((link, class), start, payload)?;
        // With a speedup the packet may leave its buffer before the link is idle.
        let left = match self.settings.speedup {
            Some(speedup) => {
                let inside = Picos((self.time(class, payload)?.0 as f64 / speedup).ceil() as u64);
                now.checked_add(inside).ok_or(OutOfTime { bytes: Bytes(payload.into()) })?
            }
            None => last_left,
        };
        self.leaves_queue(link, slot);
        let packet = &mut self.packets[slot as usize];
        let wire = packet.bytes + self.settings.header.0 as u32;
        let out_of_time = OutOfTime { bytes: Bytes(packet.bytes.into()) };
        let (number, packet_class) = (packet.buffer, u32::from(packet.vcs.0));
        let state = &mut self.links[link.index()];
        let latency = self.speeds[usize::from(state.class.0)].speed.latency;
        let (left, end) = (left.max(packet.last_byte), last_left.max(packet.last_byte));
        let usage = &mut self.usage[link.index()];
        let (time, waited) = (Picos(end.0 - start.0), start.saturating_sub(packet.ready));
        usage.add(Bytes(wire.into()), time, waited);
        if let Some(watch) = &mut self.watch {
            let crossing = Crossing { link, bytes: wire.into(), waited, time, end };
            watch.crossed(slot, self.messages[packet.message as usize].tag, &crossing, room == NONE);
            watch.blocked(link, state.blocked.min(now), now);
        }
        if state.blocked != Picos::MAX {
            usage.blocked = usage.blocked.saturating_add(now.saturating_sub(state.blocked));
            state.blocked = Picos::MAX;
        }
        // To a node no credits limit what waits behind a switch with a speedup: as much as a buffer holds.
        let next = match room {
            NONE => left.max(end.saturating_sub(self.speeds[usize::from(state.class.0)].buffered)),
            _ => left,
        };
        (state.free, state.next_arbitration) = (end, next);
        let traffic = self.class_of(number);
        self.shares.serve(link, traffic, wire);
        let (input, first) = (self.buffers[number as usize].link, link.0 * self.vcs);
        self.buffers[(first + packet_class) as usize].winner = input.0;
        self.buffers[(first + traffic * self.vcs_of_class) as usize].served = packet_class as u8;
        self.crossings += 1;
        if !self.links[link.index()].waiting.is_empty() {
            self.schedule_arbitration(link.0);
        }

        // Advance the buffer.
        let next = self.packets[slot as usize].next;
        let buffer = &mut self.buffers[number as usize];
        buffer.busy = left;
        if self.settings.buffers == Buffers::Input {
            buffer.first = next;
            match next {
                NONE => buffer.last = NONE,
                next => {
                    let ready = self.packets[next as usize].ready;
                    self.queue.push(ready.max(left), Event::new(ARRIVE, number, 0));
                }
            }
        }
        if self.settings.speedup.is_some() {
            self.links[input.index()].sending = number;
            self.queue.push(left, Event::new(DEPARTED, number, 0));
        }
        let back = self.speeds[usize::from(self.links[input.index()].class.0)].back;
        let credit = left.checked_add(back).ok_or(out_of_time)?;
        match &mut self.border {
            Some(border) if border.sender_is_elsewhere(input) => {
                border.return_credit(input, number % self.vcs, wire, credit)
            }
            _ => self.credit(Credit::new(credit, number, wire)),
        }

        let there = end.checked_add(latency).ok_or(out_of_time)?;
        if room == NONE {
            let Packet { message, bytes, hops, .. } = self.packets.remove(slot as usize);
            self.hops.add(u32::from(hops) + 1);
            if self.congestion.is_some() && !self.received(slot, message, bytes, there) {
                return Ok(());
            }
            let state = &mut self.messages[message as usize];
            state.to_arrive -= u64::from(bytes);
            // All packets of a message arrive over this link: the last one completes the message.
            if state.to_arrive == 0 && (state.to_send == 0 || self.congestion.is_some()) {
                self.queue.push(there, Event::new(DELIVERED, message, 0));
            }
            return Ok(());
        }
        let packet = &mut self.packets[slot as usize];
        packet.hops = packet.hops.wrapping_add(1);
        if packet.hops == 0 {
            self.hops.links += 256;
        }
        let last_byte = there.checked_add(self.switch_delay).ok_or(out_of_time)?;
        self.buffers[room as usize].credit -= wire;
        let ready = Picos(start.0 + latency.0 + self.switch_delay.0);
        match &self.border {
            Some(border) if border.receiver_is_elsewhere(link) => self.leave(room, slot, ready, last_byte),
            _ => self.enqueue(room, slot, ready, last_byte),
        }
        Ok(())
    }
}

//! Go-back-N: what a sender does about packets that switches have dropped.
//!
//! A receiver accepts packets in order. It reports the first one that is missing once, and discards all behind it; the sender then
//! sends everything from that packet on again. If it hears nothing for a while, it does the same: the packets at the end were lost,
//! or the report.

use vef_format::units::Picos;

use super::congestion::{Control, Logged, Loss, Turn};
use super::flows::{REQUESTED, TIMEOUT};
use super::state::Packets;

impl Loss {
    /// A new message.
    pub(super) fn append(&mut self, message: u32, packets: u64, bytes: u64) {
        let (first, before) = (self.packets, self.bytes);
        self.log.push_back(Logged { message, first, before, packets, bytes });
        self.packets += packets;
        self.bytes += bytes;
    }
}

impl Packets<'_> {
    /// The sender of a flow learns that so many packets have arrived in order, and whether the next one is `missing`.
    pub(super) fn arrived_until(&mut self, number: u32, arrived: u64, missing: bool) {
        let now = self.now;
        let mut finished = Vec::new();
        let Some(all) = self.congestion.as_deref_mut() else { return };
        let flow = &mut all.flows[number as usize];
        if arrived > flow.loss.acked {
            (flow.loss.acked, flow.loss.progress) = (arrived, now);
            while let Some(&Logged { message, first, packets, .. }) = flow.loss.log.front()
                && first + packets <= arrived
            {
                flow.loss.log.pop_front();
                all.sending[message as usize].acked = true;
                finished.push(message);
            }
        }
        let is_news = missing && arrived == flow.loss.acked && arrived < flow.loss.next;
        let is_behind = flow.loss.next < arrived;
        if is_news && let Control::Dctcp(dctcp) = &mut flow.control {
            dctcp.lost(false);
        }
        if is_news || is_behind {
            self.send_from(number, arrived);
        }
        finished.into_iter().for_each(|message| self.release(message));
    }

    /// No acknowledgement has come for a while, or there was nothing to wait for.
    pub(super) fn timed_out(&mut self, number: u32) {
        let now = self.now;
        let Some(all) = self.congestion.as_deref_mut() else { return };
        let Some((_, timeout)) = all.lossy else { return };
        let flow = &mut all.flows[number as usize];
        if flow.loss.acked >= flow.loss.packets {
            flow.loss.timed = false;
            return;
        }
        let due = flow.loss.progress.saturating_add(timeout);
        if due > now || flow.loss.next == flow.loss.acked {
            let wait = if due > now { Picos(due.0 - now.0) } else { timeout };
            return self.after(wait, number, TIMEOUT);
        }
        flow.loss.progress = now;
        all.counts.timeouts += 1;
        if let Control::Dctcp(dctcp) = &mut flow.control {
            dctcp.lost(true);
        }
        let acked = flow.loss.acked;
        self.send_from(number, acked);
        self.after(timeout, number, TIMEOUT);
    }

    /// The sender of a flow continues with this packet.
    fn send_from(&mut self, number: u32, packet: u64) {
        let size = self.settings.size.0;
        let Some(all) = self.congestion.as_deref_mut() else { return };
        let flow = &mut all.flows[number as usize];
        let again = flow.loss.next.saturating_sub(packet);
        all.counts.sent_again += again;
        flow.loss.next = packet;
        flow.sent = flow.loss.bytes_before(packet, size);
        flow.messages.clear();
        for entry in flow.loss.log.iter().filter(|entry| packet < entry.first + entry.packets) {
            let skipped = packet.saturating_sub(entry.first) * size;
            self.messages[entry.message as usize].to_send = entry.bytes - skipped.min(entry.bytes);
            flow.messages.push_back(entry.message);
        }
        // The packet whose turn it was is another one now.
        let host = &mut all.hosts[flow.host as usize];
        if host.turn == Some(number) {
            host.turn = None;
            flow.turn = Turn::Idle;
            self.sources[flow.host as usize].messages.clear();
        }
        let delay = flow.delay;
        if let Control::Credits(credits) = &mut flow.control
            && again > 0
        {
            credits.requests.push_back((again as u32 - 1, size as u32));
            self.after(delay, number, REQUESTED);
        }
        self.list(number);
    }
}

//! The packet model: virtual cut-through with credits.
//!
//! A message of m bytes becomes ⌈m / P⌉ packets, at least one, each of at most P bytes and a header. On link
//! i, with bandwidth Bᵢ and latency λᵢ, behind a switch of delay σ, a packet of p bytes has the times
//!
//! ```text
//! startᵢ = first t ≥ aᵢ + σ with link i idle, the packet chosen by its arbiter, and room for it in a buffer
//! behind the link
//! endᵢ   = max( startᵢ + p/Bᵢ, bᵢ + σ )
//! aᵢ₊₁   = startᵢ + λᵢ           bᵢ₊₁ = endᵢ + λᵢ
//! ```
//!
//! Behind each injection link and each link between switches is one first-in-first-out buffer per virtual
//! channel. A packet frees its space when it has left entirely (endᵢ of the next link); the credit returns
//! after λ and the credit delay. A node consumes packets as they arrive.
//!
//! **Input buffers**: only the head of each buffer requests a link, and the link serves buffers round-robin.
//! **Output buffers**, the ideal: every packet requests its link on arrival and is served in that order.
//!
//! Events of one moment are processed in phases: credits, arrivals and releases of links; then routing; then
//! arbitration. Therefore the order of events within a moment does not matter.

mod arbitration;
mod border;
pub(super) mod classes;
mod congestion;
mod controlled;
mod crossing;
mod deadlock;
mod flows;
mod injection;
mod loss;
mod outages;
mod parts;
mod routing;
mod sending;
pub(super) mod settings;
mod state;

use vef_format::units::Picos;

use super::kind::{Carrier, ModelInfo};
use super::links::{self, Usage};
use super::network::stranded;
use super::{Carried, Congested, Happened, Hops, Network, OutOfTime};
use crate::routing::channels::describe;
use crate::watch::Watch;
pub(crate) use border::{Announced, Crossed};
pub use classes::{ClassError, Members, TrafficClasses};
pub use congestion::dcqcn::DcqcnSettings;
pub use congestion::dctcp::DctcpSettings;
pub use congestion::settings::{Congestion, CongestionError, Window};
use parts::{ARBITRATE, ARRIVE, CHANGED, CONTROL, CREDIT, DEPARTED, Event, Message, SENT, START};
pub use settings::{Arbiter, Buffers, PacketSettings};
pub(crate) use state::Packets;

/// Most packets of a message: 128 GiB of the default size.
const MOST_PACKETS: u64 = 1 << 26;

pub(super) const INFO: ModelInfo = ModelInfo {
    name: "packet",
    help: "links, packet by packet; virtual channels, finite buffers, credits",
    options: &[links::HEADING, links::GROUPS_HEADING, settings::HEADING],
    is_bounded_by_latency: true,
    has_packets: true,
    shares_bandwidth: false,
    carrier: Carrier::Links(|setup| Ok(Box::new(Packets::new(&setup)?))),
};

impl Packets<'_> {
    /// The last byte of a message has arrived.
    fn deliver(&mut self, slot: u32) -> Happened {
        let message = &mut self.messages[slot as usize];
        message.delivered = true;
        let (tag, latency) = (message.tag, self.now.saturating_sub(message.submitted));
        let queued = message.entered.saturating_sub(message.submitted);
        if let Some(border) = &mut self.border {
            border.arriving.remove(&(message.src, message.number));
        }
        self.release(slot);
        Happened::Delivered { tag, latency, queued }
    }
}

impl Network for Packets<'_> {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        let Carried { src, dst, bytes, tag, origin } = message;
        // Each packet is simulated: a message of absurd size would never end.
        if bytes.0.div_ceil(self.settings.size.0) > MOST_PACKETS {
            return Err(OutOfTime { bytes });
        }
        let source = self.node(src) * self.shares.count();
        let source = &mut self.sources[source as usize];
        source.count += 1;
        let key = match self.router.by_packet() {
            // Each packet combines this with its own number.
            true => source.count as u32,
            false => self.router.key(src, dst, source.count),
        };
        let number = source.count as u32;
        let slot = self.messages.insert(Message {
            tag,
            to_send: bytes.0,
            class: self.settings.classes.of(origin) as u8,
            key,
            prepared: false,
            ..Message::arriving((src, number), dst, at, bytes.0)
        });
        self.queue.push(at, Event::new(START, slot as u32, 0));
        if let Some(border) = &mut self.border {
            border.announce(Announced { tag, dst, src, number, submitted: at, bytes });
        }
        Ok(())
    }

    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        loop {
            if self.queue.next() != Some(self.now) {
                // All events of this moment are processed.
                if !self.arrived.is_empty() {
                    self.route_arrived();
                }
                if !self.to_arbitrate.is_empty() {
                    self.arbitrate()?;
                    continue;
                }
            }
            let Some((now, event)) = self.queue.pop(limit) else { return Ok(None) };
            self.now = now;
            let index = event.index();
            match event.0 & 7 {
                START => self.start(index),
                ARRIVE => self.arrived.push(index),
                ARBITRATE => self.arbitration_due(index),
                DEPARTED => self.departed(index),
                CREDIT => self.credit_due(index),
                CONTROL if event.bytes() == CHANGED => self.links_change(),
                CONTROL => self.control(index, event.bytes()),
                SENT => {
                    let message = &mut self.messages[index as usize];
                    message.report_sent = false;
                    let (tag, dst, is_gone) = (message.tag, message.dst, message.delivered);
                    if is_gone {
                        self.release(index);
                        // With zero latencies the delivery may have come first.
                        if self.border.as_ref().is_none_or(|border| !border.is_elsewhere(dst)) {
                            continue;
                        }
                    }
                    return Ok(Some((now, Happened::Sent { tag })));
                }
                _ => return Ok(Some((now, self.deliver(index)))),
            }
        }
    }

    fn usage(&self) -> Vec<Usage> {
        self.usage_by_link()
    }

    fn events(&self) -> u64 {
        self.crossings
    }

    fn hops(&self) -> Option<Hops> {
        Some(self.hops)
    }

    fn set_watch(&mut self, watch: Option<Box<Watch>>) {
        self.watch = watch;
    }

    fn watch(&mut self) -> Option<&mut Watch> {
        self.watch.as_deref_mut()
    }

    fn congested(&self) -> Option<Congested> {
        self.congestion.as_ref().map(|all| all.counts())
    }

    fn stranded(&self) -> Option<String> {
        let (at, dst) = self.outages.as_ref()?.stranded(&self.packets)?;
        Some(stranded(self.router.fabric(), at, dst))
    }

    fn deadlock(&self) -> Option<String> {
        self.circle().map(|circle| describe(&self.router, &circle))
    }
}

#[cfg(test)]
mod tests;

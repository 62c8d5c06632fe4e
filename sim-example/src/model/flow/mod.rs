//! The flow model: concurrent messages share the bandwidth of links.
//!
//! A message of m bytes submitted at t waits o, Σλ and σ for each switch, then shares links. Rates are
//! weighted max-min (see [`shares`]), with equal weights or, as in SimGrid's CM02, weights in inverse
//! proportion to the latency of the route. The message is delivered when all its bytes have passed: without
//! other messages, m over the least bandwidth of the route later. All starts and ends of one moment are one
//! change.
//!
//! With a burst of `c` bytes ([`Links::burst`](super::Links::burst)) a link is a token bucket: when a message begins to share, as many of its bytes as all
//! buckets of its route have tokens pass at once. A bucket fills by what messages leave of the rate of its link, up to `c`.
//!
//! Under `--connections pair` the messages of a pair of ranks share links one after the other, in the order in which they were submitted: the next one
//! begins when all bytes of the one before have passed, and its own first byte has come.

mod fluid;
mod outages;
pub(super) mod settings;
mod shares;
mod state;

use vef_format::units::{Bytes, Picos};

use self::fluid::Flowed;
use self::settings::Weights;
use self::state::{Connection, Flows, Message, MessageCount, Step};
use super::error::ModelError;
use super::kind::{Carrier, ModelInfo};
use super::links::{self, Usage};
use super::{Carried, Happened, Hops, Network, Origin, OutOfTime};
use crate::topology::LinkId;
use crate::watch::Watch;

pub(super) const INFO: ModelInfo = ModelInfo {
    name: "flow",
    help: "the bandwidth of links, max-min fair",
    options: &[links::HEADING, links::GROUPS_HEADING, settings::HEADING],
    is_bounded_by_latency: true,
    has_packets: false,
    shares_bandwidth: true,
    carrier: Carrier::Links(|setup| {
        let routing = setup.router.routing();
        match routing.counts_bytes() {
            true => Err(ModelError::CountsBytes { routing: routing.name() }),
            false => Ok(Box::new(Flows::new(&setup))),
        }
    }),
};

impl<'a> Flows<'a> {
    /// Chooses the route of a message and schedules its share for the arrival of its first byte.
    fn choose(&mut self, flow: u32, now: Picos) -> Result<(), OutOfTime> {
        let Message { src, dst, key, .. } = self.messages[flow as usize];
        let mut link = LinkId::injection(src);
        let mut latency = self.speed(link).latency;
        if self.outages.is_some() {
            return self.choose_if_up(flow, now);
        }
        self.fluid.shares.add_link(flow, link.0);
        let mut route = self.router.start(src, dst, key);
        loop {
            let hop = self.router.next(&mut route, &MessageCount(&self.chosen));
            link = hop.link;
            self.fluid.shares.add_link(flow, link.0);
            latency = latency.saturating_add(self.switch_delay).saturating_add(self.speed(link).latency);
            if hop.last {
                break;
            }
        }
        self.count_chosen(flow, true);
        self.schedule_share(flow, now, latency)
    }

    /// Whether no other message is in front of this one on its connection.
    fn has_connection(&self, flow: u32) -> bool {
        let Some(connections) = &self.connections else { return true };
        let queue = connections.get(&self.messages[flow as usize].connection);
        queue.is_none_or(|queue| queue.front() == Some(&flow))
    }

    /// The first message of a connection has ended: the next one begins, if its first byte has come.
    fn free_connection(&mut self, connection: Connection, now: Picos) {
        let Some(connections) = &mut self.connections else { return };
        let Some(queue) = connections.get_mut(&connection) else { return };
        queue.pop_front();
        match queue.front() {
            Some(&next) if self.messages[next as usize].next == Step::Begin => self.fluid.schedule(now, next),
            Some(_) => {}
            None => drop(connections.remove(&connection)),
        }
    }

    /// Starts sharing for a message.
    fn share(&mut self, flow: u32) {
        let weight = match (self.weights, self.messages[flow as usize].latency) {
            (Weights::Equal, _) | (_, Picos::ZERO) => 1.0,
            (Weights::Latency, latency) => 1e12 / latency.0 as f64,
        };
        self.fluid.begin(flow, weight);
    }

    /// Ends sharing for a message.
    fn end(&mut self, flow: u32, now: Picos) {
        let Message { bytes, connection, .. } = self.messages[flow as usize];
        self.hops.add(self.fluid.shares.route(flow).len() as u32);
        self.count_chosen(flow, false);
        let before = self.outages.as_mut().map_or(0, |rerouted| rerouted.end(flow));
        self.use_links(flow, Bytes(bytes.0.saturating_sub(before)), now, true);
        self.fluid.remove(flow);
        self.free_connection(connection, now);
    }
}

impl Network for Flows<'_> {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        let Carried { src, dst, bytes, tag, origin } = message;
        let connection = match origin {
            Origin::Job { job, ranks: [from, to], .. } => (Some(job), from, to),
            Origin::Background => (None, src, dst),
        };
        let number = self.sent.get_mut(src as usize).map_or(0, |sent| {
            *sent = sent.wrapping_add(1);
            *sent
        });
        let key = self.router.key(src, dst, number.into());
        let entered = match self.prepared.get_mut(src as usize) {
            Some(prepared) => {
                *prepared = at.max(*prepared).checked_add(self.overhead).ok_or(OutOfTime { bytes })?;
                *prepared
            }
            None => at,
        };
        let flow = self.fluid.prepare(bytes);
        let (next, latency) = (Step::Choose, Picos::ZERO);
        let message =
            Message { tag, connection, submitted: at, entered, src, dst, key, next, bytes, latency };
        match self.messages.get_mut(flow as usize) {
            Some(place) => *place = message,
            None => self.messages.push(message),
        }
        if let Some(connections) = &mut self.connections {
            connections.entry(connection).or_default().push_back(flow);
        }
        match self.router.asks_for_load() {
            true => self.fluid.schedule(entered, flow),
            false => self.choose(flow, entered)?,
        }
        Ok(())
    }

    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        while let Some((now, flowed)) = self.fluid.next(limit)? {
            let flow = match flowed {
                Flowed::Due(flow) | Flowed::Ended(flow) => flow,
                Flowed::Changed => {
                    self.links_change(now);
                    self.change_bandwidths(now);
                    continue;
                }
            };
            let Message { tag, submitted, entered, next, .. } = self.messages[flow as usize];
            match flowed {
                Flowed::Due(_) if next == Step::Choose => {
                    self.choose(flow, now)?;
                    continue;
                }
                Flowed::Due(_) if matches!(next, Step::Share | Step::Begin) => {
                    if !self.has_connection(flow) || self.outages.is_some() && !self.begin_if_up(flow, now) {
                        self.messages[flow as usize].next = Step::Begin;
                        continue;
                    }
                    self.share(flow);
                    if !self.fluid.is_over(flow) {
                        continue;
                    }
                }
                _ => {}
            }
            if self.report_sent && next != Step::Arrive {
                self.messages[flow as usize].next = Step::Arrive;
                self.fluid.schedule(now, flow);
                return Ok(Some((now, Happened::Sent { tag })));
            }
            self.end(flow, now);
            let (latency, queued) = (now.saturating_sub(submitted), entered.saturating_sub(submitted));
            return Ok(Some((now, Happened::Delivered { tag, latency, queued })));
        }
        Ok(None)
    }

    fn usage(&self) -> Vec<Usage> {
        self.usage.clone()
    }

    fn events(&self) -> u64 {
        self.events
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
}

#[cfg(test)]
mod tests;

//! Links that fail at times: messages take the routes of each time, with what is left of their bytes.

use vef_format::units::{Bytes, Picos};

use super::state::{Flows, Message, MessageCount, Rerouted, Step};
use crate::model::OutOfTime;
use crate::topology::LinkId;

impl Flows<'_> {
    /// The links of a route at this time; `None` if there is none.
    fn links_at(&self, flow: u32, now: Picos) -> Option<Vec<LinkId>> {
        let Rerouted { outages, .. } = self.outages.as_ref()?;
        let Message { src, dst, key, .. } = self.messages[flow as usize];
        let mut links = vec![LinkId::injection(src)];
        let mut route = self.router.start(src, dst, key);
        loop {
            let hop = self.router.next_at(outages, &mut route, now, &MessageCount(&self.chosen))?;
            links.push(hop.link);
            if hop.last {
                return Some(links).filter(|links| !outages.is_down(links[0], now));
            }
        }
    }

    /// Chooses a route as [`Flows::choose`] does, or parks the message.
    pub(super) fn choose_if_up(&mut self, flow: u32, now: Picos) -> Result<(), OutOfTime> {
        let links = self.links_at(flow, now);
        let Some(links) = links else {
            self.park(flow);
            return Ok(());
        };
        let switches = self.switch_delay.0.saturating_mul(links.len() as u64 - 1);
        let latency = |sum: Picos, link: &LinkId| sum.saturating_add(self.speed(*link).latency);
        let latency = links.iter().fold(Picos(switches), latency);
        self.set_route(flow, &links);
        self.schedule_share(flow, now, latency)
    }

    fn park(&mut self, flow: u32) {
        if let Some(rerouted) = &mut self.outages {
            rerouted.parked.push(flow);
        }
    }

    /// Gives a message that shares no links a route.
    fn set_route(&mut self, flow: u32, links: &[LinkId]) {
        self.count_chosen(flow, false);
        self.fluid.shares.clear(flow);
        links.iter().for_each(|link| self.fluid.shares.add_link(flow, link.0));
        self.count_chosen(flow, true);
    }

    /// Whether a message may begin to share links, now those of its route at this time. A message that already does may not.
    pub(super) fn begin_if_up(&mut self, flow: u32, now: Picos) -> bool {
        let has_begun = |rerouted: &Rerouted<'_>| rerouted.begun.contains(&flow);
        if self.outages.as_ref().is_some_and(has_begun) {
            return false;
        }
        if !self.keeps_route(flow, now) {
            let Some(links) = self.links_at(flow, now) else {
                self.park(flow);
                return false;
            };
            self.set_route(flow, &links);
        }
        if let Some(rerouted) = &mut self.outages {
            rerouted.begun.insert(flow);
        }
        true
    }

    /// Whether routes depend on load and that of a message still works: then it stays.
    fn keeps_route(&self, flow: u32, now: Picos) -> bool {
        let Some(Rerouted { outages, .. }) = &self.outages else { return true };
        let mut route = self.fluid.shares.route(flow);
        self.router.asks_for_load()
            && route.len() > 0
            && !route.any(|link| outages.is_down(LinkId(link), now))
    }

    /// Links fail or work again: messages whose route is another one now continue there.
    pub(super) fn links_change(&mut self, now: Picos) {
        let Some(rerouted) = &mut self.outages else { return };
        let parked = std::mem::take(&mut rerouted.parked);
        let begun: Vec<u32> = rerouted.begun.iter().copied().collect();
        for flow in parked {
            // Not before its node's interface has prepared it.
            self.fluid.schedule(now.max(self.messages[flow as usize].entered), flow);
        }
        for flow in begun {
            let is_same =
                |links: Vec<LinkId>| links.iter().map(|link| link.0).eq(self.fluid.shares.route(flow));
            if self.messages[flow as usize].next == Step::Arrive
                || self.keeps_route(flow, now)
                || self.links_at(flow, now).is_some_and(is_same)
            {
                continue;
            }
            let (left, bytes) = (self.fluid.stop(flow), self.messages[flow as usize].bytes);
            let passed = bytes.0.saturating_sub(left.round() as u64);
            if let Some(rerouted) = &mut self.outages {
                rerouted.begun.remove(&flow);
                let before = rerouted.carried.insert(flow, passed).unwrap_or(0);
                if passed > before {
                    self.use_links(flow, Bytes(passed - before), now, false);
                }
            }
            self.count_chosen(flow, false);
            self.fluid.shares.withdraw(flow);
            self.messages[flow as usize].next = Step::Begin;
            self.fluid.schedule(now, flow);
        }
    }
}

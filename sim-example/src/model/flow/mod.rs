//! The flow model: concurrent messages share the bandwidth of links.
//!
//! A message of m bytes submitted at t waits o, Σλ and σ for each switch, then shares links. Rates are
//! weighted max-min (see [`shares`]), with equal weights or, as in SimGrid's CM02, weights in inverse
//! proportion to the latency of the route. The message is delivered when all its bytes have passed: without
//! other messages, m over the least bandwidth of the route later. All starts and ends of one moment are one
//! change.

pub(super) mod settings;
mod shares;

use vef_format::units::{Bytes, Picos};

use self::settings::Weights;
use self::shares::Shares;
use super::error::ModelError;
use super::kind::{Carrier, ModelInfo};
use super::links::{self, LinkSpeed, Usage};
use super::{Carried, Happened, Hops, Network, OutOfTime, Setup};
use crate::routing::{Load, Router};
use crate::topology::LinkId;
use crate::watch::{Crossing, Watch};
use replay::Queue;

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

/// A network of flows.
pub(crate) struct Flows<'a> {
    router: Router<'a>,
    weights: Weights,
    report_sent: bool,
    switch_delay: Picos,
    overhead: Picos,
    speeds: Vec<LinkSpeed>,
    /// When the interface of each node is idle.
    prepared: Vec<Picos>,
    /// Messages sent by each node, if routes depend on that.
    sent: Vec<u32>,
    /// By link: the messages whose route was chosen and that have not ended, if routes depend on them.
    chosen: Vec<u32>,
    usage: Vec<Usage>,
    /// By flow number.
    messages: Vec<Message>,
    fluid: Fluid,
    events: u64,
    hops: Hops,
    watch: Option<Box<Watch>>,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    tag: u64,
    submitted: Picos,
    entered: Picos,
    src: u32,
    dst: u32,
    key: u32,
    next: Step,
    bytes: Bytes,
    latency: Picos,
}

/// The next step of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Choose a route. If that depends on the load, the choice is made when the first byte leaves.
    Choose,
    /// Start sharing.
    Share,
    /// Deliver.
    Arrive,
}

/// Flows with bytes to transfer, and when each ends.
pub(super) struct Fluid {
    shares: Shares,
    /// By flow number.
    states: Vec<State>,
    queue: Queue<Event>,
    now: Picos,
    /// Whether flows started or ended at this moment.
    dirty: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Bytes left.
    left: f64,
    /// Bytes per picosecond.
    rate: f64,
    since: Picos,
    bytes: Bytes,
    /// Number of the event that is valid for its end.
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A scheduled step of a flow.
    Step(u32),
    /// The end of a flow, unless a later event replaced it.
    End { flow: u32, generation: u32 },
}

/// An event of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flowed {
    /// A scheduled step is due.
    Due(u32),
    /// All bytes have passed.
    Ended(u32),
}

impl Fluid {
    /// Links with capacities in bytes per picosecond.
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        Self {
            shares: Shares::new(capacities),
            states: Vec::new(),
            queue: Queue::new(),
            now: Picos::ZERO,
            dirty: false,
        }
    }

    /// A flow that has not started.
    fn prepare(&mut self, bytes: Bytes) -> u32 {
        let flow = self.shares.prepare();
        if flow as usize == self.states.len() {
            self.states.push(State::default());
        }
        let state = &mut self.states[flow as usize];
        (state.left, state.bytes) = (bytes.0 as f64, bytes);
        flow
    }

    /// Schedules a step of a flow.
    #[inline]
    fn schedule(&mut self, at: Picos, flow: u32) {
        self.queue.push(at, Event::Step(flow));
    }

    /// Starts a flow.
    fn begin(&mut self, flow: u32, weight: f64) {
        let state = &mut self.states[flow as usize];
        (state.rate, state.since) = (0.0, self.now);
        self.shares.begin(flow, weight);
        self.dirty = true;
    }

    /// Removes a flow that has ended.
    fn remove(&mut self, flow: u32) {
        self.shares.remove(flow);
        self.dirty = true;
    }

    /// The next event up to `limit`.
    fn next(&mut self, limit: Picos) -> Result<Option<(Picos, Flowed)>, OutOfTime> {
        loop {
            if self.dirty && self.queue.next() != Some(self.now) {
                self.share()?;
            }
            let Some((now, event)) = self.queue.pop(limit) else { return Ok(None) };
            match event {
                Event::Step(flow) => {
                    self.now = now;
                    return Ok(Some((now, Flowed::Due(flow))));
                }
                Event::End { flow, generation } if self.states[flow as usize].generation == generation => {
                    self.now = now;
                    self.states[flow as usize].generation = generation.wrapping_add(1);
                    return Ok(Some((now, Flowed::Ended(flow))));
                }
                Event::End { .. } => {}
            }
        }
    }

    /// Updates rates and ends after all starts and ends of this moment.
    fn share(&mut self) -> Result<(), OutOfTime> {
        self.dirty = false;
        self.shares.solve();
        for &flow in self.shares.changed() {
            let state = &mut self.states[flow as usize];
            state.left = (state.left - state.rate * (self.now.0 - state.since.0) as f64).max(0.0);
            (state.rate, state.since) = (self.shares.rate(flow), self.now);
            state.generation = state.generation.wrapping_add(1);
            // Round up to picoseconds, ignoring floating-point error.
            let exact = state.left / state.rate;
            let time = (exact - exact * 1e-13 - 1e-6).ceil().max(0.0);
            // The cast saturates.
            let end = self.now.checked_add(Picos(time as u64)).filter(|end| *end < Picos::MAX);
            let end = end.ok_or(OutOfTime { bytes: state.bytes })?;
            self.queue.push(end, Event::End { flow, generation: state.generation });
        }
        Ok(())
    }
}

/// The load of a link is its number of messages, from the choice of their route to their end; bytes are no load. So messages that leave at the
/// same moment see each other, in their order, though none of them shares a link before its first byte has arrived.
struct MessageCount<'a>(&'a [u32]);

impl Load for MessageCount<'_> {
    fn load(&self, link: LinkId) -> u64 {
        self.0[link.index()].into()
    }

    fn of_bytes(&self, _: Bytes) -> u64 {
        0
    }
}

impl<'a> Flows<'a> {
    /// An empty network. Reports [`Happened::Sent`], if asked for, when all bytes have passed.
    fn new(setup: &Setup<'a>) -> Self {
        let &Setup { router, links, weights, report_sent, .. } = setup;
        let topology = router.fabric();
        let speeds = links.speeds(topology);
        let speed = |link| &speeds[usize::from(topology.class(LinkId(link)).0)];
        let capacity = |link| speed(link).bandwidth.bits_per_second() as f64 / 8e12;
        let nodes = topology.nodes() as usize;
        Self {
            weights,
            report_sent,
            switch_delay: links.switch_delay,
            overhead: links.overhead,
            fluid: Fluid::new((0..topology.links()).map(capacity)),
            prepared: vec![Picos::ZERO; if links.overhead > Picos::ZERO { nodes } else { 0 }],
            chosen: vec![0; if router.asks_for_load() { topology.links() as usize } else { 0 }],
            sent: if router.is_random() { vec![0; nodes] } else { Vec::new() },
            usage: vec![Usage::default(); topology.links() as usize],
            messages: Vec::new(),
            events: 0,
            hops: Hops::default(),
            watch: None,
            speeds,
            router,
        }
    }

    #[inline]
    fn speed(&self, link: LinkId) -> LinkSpeed {
        self.speeds[usize::from(self.router.fabric().class(link).0)]
    }

    /// Chooses the route of a message and schedules its share for the arrival of its first byte.
    fn choose(&mut self, flow: u32, now: Picos) -> Result<(), OutOfTime> {
        let Message { src, dst, key, bytes, .. } = self.messages[flow as usize];
        let mut link = LinkId::injection(src);
        let mut latency = self.speed(link).latency;
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
        if self.router.asks_for_load() {
            self.fluid.shares.route(flow).for_each(|link| self.chosen[link as usize] += 1);
        }
        let message = &mut self.messages[flow as usize];
        (message.next, message.latency) = (Step::Share, latency);
        self.fluid.schedule(now.checked_add(latency).ok_or(OutOfTime { bytes })?, flow);
        Ok(())
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
        let Message { bytes, tag, .. } = self.messages[flow as usize];
        let mut left = self.fluid.shares.route(flow).len();
        self.hops.add(left as u32);
        for link in self.fluid.shares.route(flow) {
            let time = self.speed(LinkId(link)).bandwidth.time(bytes).unwrap_or(Picos::MAX);
            self.usage[link as usize].add(bytes, time, Picos::ZERO);
            if let Some(chosen) = self.chosen.get_mut(link as usize) {
                *chosen -= 1;
            }
            self.events += 1;
            left -= 1;
            if let Some(watch) = &mut self.watch {
                let (link, time) = (LinkId(link), time.min(now));
                let crossing = Crossing { link, bytes: bytes.0, waited: Picos::ZERO, time, end: now };
                watch.crossed(flow, tag, &crossing, left == 0);
            }
        }
        self.fluid.remove(flow);
    }
}

impl Network for Flows<'_> {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        let Carried { src, dst, bytes, tag, .. } = message;
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
        let message = Message { tag, submitted: at, entered, src, dst, key, next, bytes, latency };
        match self.messages.get_mut(flow as usize) {
            Some(place) => *place = message,
            None => self.messages.push(message),
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
            };
            let Message { tag, submitted, entered, next, bytes, .. } = self.messages[flow as usize];
            match flowed {
                Flowed::Due(_) if next == Step::Choose => {
                    self.choose(flow, now)?;
                    continue;
                }
                Flowed::Due(_) if next == Step::Share => {
                    self.share(flow);
                    if bytes > Bytes::ZERO {
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

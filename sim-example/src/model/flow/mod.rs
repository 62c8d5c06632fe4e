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

mod outages;
pub(super) mod settings;
mod shares;

use hashbrown::HashMap;
use std::collections::VecDeque;
use vef_format::units::{Bytes, Picos};

use self::outages::Rerouted;
use self::settings::{Connections, FlowSettings, Weights};
use self::shares::Shares;
use super::error::ModelError;
use super::kind::{Carrier, ModelInfo};
use super::links::{self, LinkSpeed, Usage};
use super::{Carried, Happened, Hops, Network, Origin, OutOfTime, Setup};
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
    /// The message that uses each connection, and those behind it; if messages share connections.
    connections: Option<HashMap<Connection, VecDeque<u32>>>,
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
    /// Set if links fail at times.
    outages: Option<Rerouted<'a>>,
}

/// The ends of a connection: a job and two of its ranks, or two nodes of the traffic beside.
type Connection = (Option<u32>, u32, u32);

/// The token bucket of a link.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Tokens at `since`, in bytes, and the most of them.
    tokens: f64,
    most: f64,
    since: Picos,
    /// What messages leave of the link's rate, in bytes per picosecond.
    left: f64,
}

impl Bucket {
    /// Fills it up to `now`.
    fn fill(&mut self, now: Picos) {
        self.tokens = (self.tokens + self.left * (now.0 - self.since.0) as f64).clamp(0.0, self.most);
        self.since = now;
    }
}

#[derive(Clone, Copy, Debug)]
struct Message {
    tag: u64,
    connection: Connection,
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
    /// The first byte has come: start sharing, if the connection is free.
    Share,
    /// Start sharing, when the connection is free.
    Begin,
    /// Deliver.
    Arrive,
}

/// Flows with bytes to transfer, and when each ends.
pub(super) struct Fluid {
    shares: Shares,
    /// By flow number.
    states: Vec<State>,
    /// By link, if links have bursts.
    buckets: Vec<Bucket>,
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
    /// Links fail or work again.
    Change,
}

/// An event of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flowed {
    /// A scheduled step is due.
    Due(u32),
    /// All bytes have passed.
    Ended(u32),
    /// Links fail or work again.
    Changed,
}

impl Fluid {
    /// Links with capacities in bytes per picosecond, and token buckets of `burst` bytes.
    pub(super) fn new(capacities: impl IntoIterator<Item = f64> + Clone, burst: Bytes) -> Self {
        let most = burst.0 as f64;
        let bucket = |left| Bucket { tokens: most, most, since: Picos::ZERO, left };
        Self {
            buckets: match burst {
                Bytes(0) => Vec::new(),
                _ => capacities.clone().into_iter().map(bucket).collect(),
            },
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
        let Self { states, shares, buckets, now, .. } = self;
        let state = &mut states[flow as usize];
        (state.rate, state.since) = (0.0, *now);
        if !buckets.is_empty() {
            let mut tokens = state.left;
            for link in shares.route(flow) {
                let bucket = &mut buckets[link as usize];
                bucket.fill(*now);
                tokens = tokens.min(bucket.tokens);
            }
            shares.route(flow).for_each(|link| buckets[link as usize].tokens -= tokens);
            state.left -= tokens;
        }
        shares.begin(flow, weight);
        self.dirty = true;
    }

    /// Whether all bytes of a flow that has just begun have passed.
    fn is_over(&self, flow: u32) -> bool {
        self.states[flow as usize].left <= 0.0
    }

    /// Removes a flow that has ended.
    fn remove(&mut self, flow: u32) {
        self.change_rate(flow, 0.0);
        self.shares.remove(flow);
        self.dirty = true;
    }

    /// A flow stops at this moment; returns its bytes that are left. It keeps its route, but is to be withdrawn from it.
    fn stop(&mut self, flow: u32) -> f64 {
        let state = &mut self.states[flow as usize];
        state.left = (state.left - state.rate * (self.now.0 - state.since.0) as f64).max(0.0);
        state.since = self.now;
        // The event of its end is not valid any more.
        state.generation = state.generation.wrapping_add(1);
        self.change_rate(flow, 0.0);
        self.dirty = true;
        self.states[flow as usize].left
    }

    /// Sets the rate of a flow, and what it leaves of its links'.
    fn change_rate(&mut self, flow: u32, rate: f64) {
        let Self { shares, states, buckets, now, .. } = self;
        let more = rate - std::mem::replace(&mut states[flow as usize].rate, rate);
        if !buckets.is_empty() {
            for link in shares.route(flow) {
                let bucket = &mut buckets[link as usize];
                bucket.fill(*now);
                bucket.left -= more;
            }
        }
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
                Event::Change => {
                    self.now = now;
                    return Ok(Some((now, Flowed::Changed)));
                }
            }
        }
    }

    /// Updates rates and ends after all starts and ends of this moment.
    fn share(&mut self) -> Result<(), OutOfTime> {
        self.dirty = false;
        self.shares.solve();
        for at in 0..self.shares.changed().len() {
            let flow = self.shares.changed()[at];
            let state = &mut self.states[flow as usize];
            state.left = (state.left - state.rate * (self.now.0 - state.since.0) as f64).max(0.0);
            state.since = self.now;
            self.change_rate(flow, self.shares.rate(flow));
            let state = &mut self.states[flow as usize];
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
        let &Setup { router, links, flow: FlowSettings { weights, connections }, report_sent, .. } = setup;
        let topology = router.fabric();
        let speeds = links.speeds(topology);
        let speed = |link| &speeds[usize::from(topology.class(LinkId(link)).0)];
        let capacity = |link| speed(link).bandwidth.bits_per_second() as f64 / 8e12;
        let nodes = topology.nodes() as usize;
        Self {
            weights,
            connections: (connections == Connections::Pair).then(HashMap::new),
            report_sent,
            switch_delay: links.switch_delay,
            overhead: links.overhead,
            fluid: Fluid::new((0..topology.links()).map(capacity), links.burst),
            prepared: vec![Picos::ZERO; if links.overhead > Picos::ZERO { nodes } else { 0 }],
            chosen: vec![0; if router.asks_for_load() { topology.links() as usize } else { 0 }],
            sent: if router.is_random() { vec![0; nodes] } else { Vec::new() },
            usage: vec![Usage::default(); topology.links() as usize],
            messages: Vec::new(),
            events: 0,
            hops: Hops::default(),
            watch: None,
            speeds,
            outages: None,
            router,
        }
        .with_outages()
    }

    #[inline]
    fn speed(&self, link: LinkId) -> LinkSpeed {
        self.speeds[usize::from(self.router.fabric().class(link).0)]
    }

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

    /// Counts or discounts a message on the links of its route, if routes depend on that.
    fn count_chosen(&mut self, flow: u32, is_chosen: bool) {
        if self.router.asks_for_load() {
            for link in self.fluid.shares.route(flow) {
                let chosen = &mut self.chosen[link as usize];
                *chosen = if is_chosen { *chosen + 1 } else { *chosen - 1 };
            }
        }
    }

    /// A message shares the links of its route from the arrival of its first byte on.
    fn schedule_share(&mut self, flow: u32, now: Picos, latency: Picos) -> Result<(), OutOfTime> {
        let bytes = self.messages[flow as usize].bytes;
        let message = &mut self.messages[flow as usize];
        (message.next, message.latency) = (Step::Share, latency);
        self.fluid.schedule(now.checked_add(latency).ok_or(OutOfTime { bytes })?, flow);
        Ok(())
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

    /// Bytes of a message have passed the links of its route, the last ones if it is `over`.
    fn use_links(&mut self, flow: u32, bytes: Bytes, now: Picos, over: bool) {
        let tag = self.messages[flow as usize].tag;
        let mut left = self.fluid.shares.route(flow).len();
        for link in self.fluid.shares.route(flow) {
            let time = self.speed(LinkId(link)).bandwidth.time(bytes).unwrap_or(Picos::MAX);
            self.usage[link as usize].add(bytes, time, Picos::ZERO);
            self.events += 1;
            left -= 1;
            if let Some(watch) = &mut self.watch {
                let (link, time) = (LinkId(link), time.min(now));
                let crossing = Crossing { link, bytes: bytes.0, waited: Picos::ZERO, time, end: now };
                watch.crossed(flow, tag, &crossing, over && left == 0);
            }
        }
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

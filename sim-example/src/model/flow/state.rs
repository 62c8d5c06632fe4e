//! The state of a network of flows, and what its steps share.

use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;
use vef_format::units::{Bytes, Picos};

use super::fluid::{Event, Fluid};
use super::settings::{Connections, FlowSettings, Weights};
use crate::model::links::{LinkSpeed, Usage};
use crate::model::paces::Paces;
use crate::model::{Hops, OutOfTime, Setup};
use crate::quantity::Bandwidth;
use crate::routing::{Load, Router};
use crate::topology::{LinkId, Outages};
use crate::watch::{Crossing, Watch};

/// A network of flows.
pub(crate) struct Flows<'a> {
    pub(super) router: Router<'a>,
    pub(super) weights: Weights,
    /// The message that uses each connection, and those behind it; if messages share connections.
    pub(super) connections: Option<HashMap<Connection, VecDeque<u32>>>,
    pub(super) report_sent: bool,
    pub(super) switch_delay: Picos,
    pub(super) overhead: Picos,
    pub(super) speeds: Vec<LinkSpeed>,
    /// When the interface of each node is idle.
    pub(super) prepared: Vec<Picos>,
    /// Messages sent by each node, if routes depend on that.
    pub(super) sent: Vec<u32>,
    /// By link: the messages whose route was chosen and that have not ended, if routes depend on them.
    pub(super) chosen: Vec<u32>,
    pub(super) usage: Vec<Usage>,
    /// By flow number.
    pub(super) messages: Vec<Message>,
    pub(super) fluid: Fluid,
    pub(super) events: u64,
    pub(super) hops: Hops,
    pub(super) watch: Option<Box<Watch>>,
    /// Set if links fail at times.
    pub(super) outages: Option<Rerouted<'a>>,
    /// Bandwidths that links get, by time, the next one last.
    pub(super) changes: Vec<(Picos, LinkId, Bandwidth)>,
}

/// The ends of a connection: a job and two of its ranks, or two nodes of the traffic beside.
pub(super) type Connection = (Option<u32>, u32, u32);

#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) tag: u64,
    pub(super) connection: Connection,
    pub(super) submitted: Picos,
    pub(super) entered: Picos,
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) key: u32,
    pub(super) next: Step,
    pub(super) bytes: Bytes,
    pub(super) latency: Picos,
}

/// The next step of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Choose a route. If that depends on the load, the choice is made when the first byte leaves.
    Choose,
    /// The first byte has come: start sharing, if the connection is free.
    Share,
    /// Start sharing, when the connection is free.
    Begin,
    /// Deliver.
    Arrive,
}

/// The load of a link is its number of messages, from the choice of their route to their end; bytes are no load. So messages that leave at the
/// same moment see each other, in their order, though none of them shares a link before its first byte has arrived.
pub(super) struct MessageCount<'a>(pub(super) &'a [u32]);

impl Load for MessageCount<'_> {
    fn load(&self, link: LinkId) -> u64 {
        self.0[link.index()].into()
    }

    fn of_bytes(&self, _: Bytes) -> u64 {
        0
    }
}

/// The messages of a network whose links fail at times.
pub(super) struct Rerouted<'a> {
    pub(super) outages: &'a Outages,
    /// Those that share links.
    pub(super) begun: BTreeSet<u32>,
    /// Those without a route at this time.
    pub(super) parked: Vec<u32>,
    /// Bytes that have passed on routes before the one that a message has.
    pub(super) carried: HashMap<u32, u64>,
}

impl<'a> Rerouted<'a> {
    fn new(outages: &'a Outages) -> Self {
        Self { outages, begun: BTreeSet::new(), parked: Vec::new(), carried: HashMap::new() }
    }

    /// A message is over; returns its bytes on routes before the last one.
    pub(super) fn end(&mut self, flow: u32) -> u64 {
        self.begun.remove(&flow);
        self.carried.remove(&flow).unwrap_or(0)
    }
}

/// In bytes per picosecond.
fn capacity(bandwidth: Bandwidth) -> f64 {
    bandwidth.bits_per_second() as f64 / 8e12
}

impl<'a> Flows<'a> {
    /// An empty network. Reports [`Happened::Sent`], if asked for, when all bytes have passed.
    pub(super) fn new(setup: &Setup<'a>) -> Self {
        let &Setup { router, links, flow: FlowSettings { weights, connections }, report_sent, .. } = setup;
        let topology = router.fabric();
        let speeds = links.speeds(topology);
        let speed = |link| &speeds[usize::from(topology.class(LinkId(link)).0)];
        let capacity = |link| capacity(speed(link).bandwidth);
        let mut changes = Paces::new(topology, |class| speeds[usize::from(class.0)].bandwidth)
            .map_or(Vec::new(), |paces| paces.changes());
        changes.reverse();
        let nodes = topology.nodes() as usize;
        let outages = topology.outages().map(Rerouted::new);
        let mut flows = Self {
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
            outages,
            changes,
            router,
        };
        let outages = flows.outages.iter().flat_map(|rerouted| rerouted.outages.begins().iter().copied());
        let times: BTreeSet<Picos> = outages.chain(flows.changes.iter().map(|(begin, ..)| *begin)).collect();
        times.into_iter().skip(1).for_each(|time| flows.fluid.queue.push(time, Event::Change));
        flows.change_bandwidths(Picos::ZERO);
        flows
    }

    /// The bandwidth of links changes at this time.
    pub(super) fn change_bandwidths(&mut self, now: Picos) {
        while let Some((_, link, bandwidth)) = self.changes.pop_if(|(begin, ..)| *begin <= now) {
            self.fluid.set_capacity(link.0, capacity(bandwidth));
        }
    }

    #[inline]
    pub(super) fn speed(&self, link: LinkId) -> LinkSpeed {
        self.speeds[usize::from(self.router.fabric().class(link).0)]
    }

    /// Counts or discounts a message on the links of its route, if routes depend on that.
    pub(super) fn count_chosen(&mut self, flow: u32, is_chosen: bool) {
        if self.router.asks_for_load() {
            for link in self.fluid.shares.route(flow) {
                let chosen = &mut self.chosen[link as usize];
                *chosen = if is_chosen { *chosen + 1 } else { *chosen - 1 };
            }
        }
    }

    /// A message shares the links of its route from the arrival of its first byte on.
    pub(super) fn schedule_share(&mut self, flow: u32, now: Picos, latency: Picos) -> Result<(), OutOfTime> {
        let bytes = self.messages[flow as usize].bytes;
        let message = &mut self.messages[flow as usize];
        (message.next, message.latency) = (Step::Share, latency);
        self.fluid.schedule(now.checked_add(latency).ok_or(OutOfTime { bytes })?, flow);
        Ok(())
    }

    /// Bytes of a message have passed the links of its route, the last ones if it is `over`.
    pub(super) fn use_links(&mut self, flow: u32, bytes: Bytes, now: Picos, over: bool) {
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

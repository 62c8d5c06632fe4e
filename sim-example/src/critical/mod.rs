//! The critical path: the chain of computing and messages that determines the run time.
//!
//! The path is followed backwards from the last event: a task computed since a message released it; that
//! message was in the network since its sender submitted it; the sender computed since another message
//! released it; and so on. Each piece begins where the previous one ends, so their times add up to the run
//! time.
//!
//! The engine's calls show what releases a task: a record for which its task waited starts in the call that
//! reports the delivery or the completed send. Parts of collectives run beside their task: a message of a
//! part that starts at the moment of such a call was released by it; any other was released when the task
//! entered the collective.

mod nodes;
mod shares;

use std::collections::HashMap;

use replay::{Kind, LiveId, Message, Next, Started, Wake};
use results::simulation::CriticalPath;
use vef_format::units::Picos;

use crate::model::LinkSpeed;
use crate::settings::NetworkSettings;
use crate::topology::{Fabric, LinkId};
use crate::watch::Crossing;
use nodes::{Edge, Nodes, ROOT};
use shares::{Sent, Shares, Trip};

mod report;

/// A kept message.
#[derive(Debug)]
struct About {
    sent: Sent,
    src_node: u32,
    /// When it has left its node: what overhead and its own transmission took of that.
    left: [Picos; 2],
    /// Set at delivery.
    arrived: Picos,
    trip: Trip,
}

impl About {
    fn new(sent: Sent, src_node: u32) -> Self {
        Self { sent, src_node, left: [Picos::ZERO; 2], arrived: Picos::ZERO, trip: Trip::default() }
    }
}

/// Records what releases tasks and messages.
#[derive(Debug)]
pub(crate) struct Causes<'a> {
    topology: &'a Fabric,
    settings: &'a NetworkSettings,
    speeds: Vec<LinkSpeed>,
    nodes: Nodes<About>,
    /// The last release of each task.
    tasks: Vec<Edge>,
    /// The last record started by each task.
    records: Vec<u64>,
    /// Node of each live message, by slot of its id.
    live: Vec<u32>,
    /// The cause of each pending wake-up, by id.
    called: HashMap<u64, Edge>,
    /// The cause that the current call reports, and the moment.
    now: Option<(Edge, Picos)>,
    /// The cause of the last message that the current call started.
    latest: Option<Edge>,
    /// The last delivered message.
    last: Option<Edge>,
    shares: Shares,
}

impl<'a> Causes<'a> {
    /// For an engine that has not begun; `starts` are the start times of the tasks' jobs.
    pub(crate) fn new(topology: &'a Fabric, settings: &'a NetworkSettings, starts: &[Picos]) -> Self {
        let none = Sent {
            start: Picos::ZERO,
            src: 0,
            dst: 0,
            bytes: replay::Bytes(0),
            kind: 0,
            record: 0,
            computed: (0, 0),
        };
        let root = About::new(none, 0);
        let edge = |&at: &Picos| Edge { node: ROOT, at, by_send: false };
        Self {
            topology,
            settings,
            speeds: settings.links.speeds(topology),
            nodes: Nodes::new(starts.len() as u32, root),
            tasks: starts.iter().map(edge).collect(),
            records: vec![0; starts.len()],
            live: Vec::new(),
            called: HashMap::new(),
            now: None,
            latest: None,
            last: None,
            shares: Shares::default(),
        }
    }

    /// A task starts a record; its previous record started at `before`.
    pub(crate) fn started(&mut self, task: u32, started: &Started, before: Picos) {
        self.records[task as usize] = started.number;
        if started.released > before
            && let Some((edge, at)) = self.now
        {
            // A record that starts by a call of its own was released by the call before.
            debug_assert!([at, edge.at].contains(&started.released), "released by another call");
            self.nodes.hold(edge.node);
            let old = std::mem::replace(&mut self.tasks[task as usize], edge);
            self.release(old.node);
        }
    }

    /// A result of the current call; `number` maps job and task to the number over all jobs.
    pub(crate) fn follows(&mut self, next: &Next, number: impl Fn(u32, u32) -> u32) {
        match next {
            Next::Message(message) | Next::Inside { message, .. } => {
                let number = |task: u32| number(message.job, task);
                self.starts(message, number(message.src.0), number(message.dst.0));
            }
            Next::Wake(wake) => {
                // The part that waits for the wake-up has started messages in this call, or the task was released by it.
                if let Some(edge) = self.latest.or(self.now.map(|(edge, _)| edge)) {
                    self.nodes.hold(edge.node);
                    self.called.insert(wake.to_raw().1, edge);
                }
            }
        }
    }

    fn starts(&mut self, message: &Message, src: u32, dst: u32) {
        // A message that waited for its receiver leaves when that has computed.
        let computed = if message.ready < message.start { dst } else { src };
        let edge = match self.now {
            Some((edge, at))
                if message.kind != Kind::PointToPoint && at == message.start && computed == src =>
            {
                edge
            }
            _ => self.tasks[computed as usize],
        };
        self.latest = Some(edge);
        let sent = Sent {
            start: message.start,
            src,
            dst,
            bytes: message.bytes,
            kind: message.kind.index() as u8,
            // A message that waited is not that of its sender's last record.
            record: match message.order as u32 {
                u32::MAX => self.records[src as usize],
                record => record.into(),
            },
            computed: (computed, self.records[computed as usize]),
        };
        let node = self.nodes.insert(edge, About::new(sent, message.src_node));
        let slot = message.id.slot() as usize;
        if slot >= self.live.len() {
            self.live.resize(slot + 1, ROOT);
        }
        self.live[slot] = node;
    }

    /// Call before the engine learns that a message has left its node.
    pub(crate) fn sent(&mut self, id: LiveId, now: Picos) {
        let node = self.live[id.slot() as usize];
        let About { sent, src_node, .. } = self.nodes.about(node);
        let took = now.saturating_sub(sent.start);
        let overhead = took.min(self.at_interface(sent));
        let transmission = self.transmission(sent, LinkId::injection(*src_node));
        self.nodes.about_mut(node).left = [overhead, transmission.min(took.saturating_sub(overhead))];
        self.now = Some((Edge { node, at: now, by_send: true }, now));
    }

    /// Call before the engine learns of a delivery. The message took the links of `way`; its first byte left
    /// the node `queued` after submission.
    pub(crate) fn delivered(&mut self, id: LiveId, now: Picos, queued: Picos, way: &[Crossing]) {
        let node = self.live[id.slot() as usize];
        let trip = self.trip(&self.nodes.about(node).sent, now, queued, way);
        self.deliver(node, now, trip);
    }

    /// The same for a message within its node.
    pub(crate) fn delivered_inside(&mut self, id: LiveId, now: Picos) {
        let node = self.live[id.slot() as usize];
        let memory = now.saturating_sub(self.nodes.about(node).sent.start);
        self.deliver(node, now, Trip { memory, ..Trip::default() });
    }

    fn deliver(&mut self, node: u32, now: Picos, trip: Trip) {
        let about = self.nodes.about_mut(node);
        (about.trip, about.arrived) = (trip, now);
        let edge = Edge { node, at: now, by_send: false };
        self.now = Some((edge, now));
        // The reference of the live message becomes that of `last`.
        if let Some(before) = self.last.replace(edge) {
            self.release(before.node);
        }
    }

    /// Call before a wake-up of the engine.
    pub(crate) fn wakes(&mut self, wake: &Wake, now: Picos) {
        self.now = self.called.remove(&wake.to_raw().1).map(|edge| (edge, now));
    }

    /// Call after the engine; `woken` after a wake-up, whose cause is then released.
    pub(crate) fn done(&mut self, woken: bool) {
        self.latest = None;
        if let Some((edge, _)) = self.now.take()
            && woken
        {
            self.release(edge.node);
        }
    }

    fn release(&mut self, node: u32) {
        let Self { nodes, shares, .. } = self;
        nodes.release(node, |nodes, child| add(shares, nodes, nodes.trunk(), child));
    }

    /// Divides the time of a message by cause.
    fn trip(&self, sent: &Sent, now: Picos, queued: Picos, way: &[Crossing]) -> Trip {
        let mut left = now.saturating_sub(sent.start);
        let mut take = |time: Picos| {
            let taken = time.min(left);
            left = Picos(left.0 - taken.0);
            taken
        };
        let Some(first) = way.first() else {
            return Trip { links: vec![(None, left, Picos::ZERO)], ..Trip::default() };
        };
        let overhead = take(self.at_interface(sent));
        let mut links: Vec<(Option<LinkId>, Picos, Picos)> =
            way.iter().map(|crossing| (Some(crossing.link), Picos::ZERO, Picos::ZERO)).collect();
        // Waiting behind other messages of the node, or for room between packets.
        let entered =
            sent.start.saturating_add(queued).saturating_add(self.settings.protocol.delay(sent.bytes));
        let behind = first.end.saturating_sub(first.time).saturating_sub(entered);
        let no_room = match self.settings.model.info().has_packets {
            true => behind.saturating_sub(self.earlier_packets(sent, first.link)),
            false => Picos::ZERO,
        };
        links[0].2 = take(queued.saturating_sub(self.settings.links.overhead).saturating_add(no_room));
        let switches = self.settings.links.switch_delay.0.saturating_mul(way.len() as u64 - 1);
        let latencies = way.iter().map(|crossing| self.speed(crossing.link).latency);
        let latency = take(latencies.fold(Picos(switches), Picos::saturating_add));
        for (link, crossing) in links.iter_mut().zip(way).skip(1) {
            link.2 = take(crossing.waited);
        }
        // The rest is transmission: link after link, or concurrently at the rate of the slowest link.
        let one_after_the_other =
            way.iter().fold(Picos::ZERO, |sum, crossing| sum.saturating_add(crossing.time));
        if one_after_the_other == left {
            for (link, crossing) in links.iter_mut().zip(way) {
                link.1 = crossing.time;
            }
        } else {
            let time = |n: &usize| (self.speed(way[*n].link).bandwidth.bits_per_second(), *n);
            if let Some(slowest) = (0..way.len()).min_by_key(time) {
                // Time beyond that of a single message is due to sharing.
                let alone = match self.settings.model.info().shares_bandwidth {
                    true => left.min(way[slowest].time),
                    false => left,
                };
                (links[slowest].1, links[slowest].2) =
                    (alone, links[slowest].2.saturating_add(left.saturating_sub(alone)));
            }
        }
        Trip { overhead, latency, memory: Picos::ZERO, links }
    }

    /// What its node's interface, and the protocol of its size, take before a message enters the network.
    fn at_interface(&self, sent: &Sent) -> Picos {
        self.settings.links.overhead.saturating_add(self.settings.protocol.delay(sent.bytes))
    }

    /// Time for which a message alone occupies a link.
    fn transmission(&self, sent: &Sent, link: LinkId) -> Picos {
        let time = |bytes| self.speed(link).bandwidth.time(bytes).unwrap_or(Picos::MAX);
        if !self.settings.model.info().has_packets {
            return time(sent.bytes);
        }
        let packet = &self.settings.packet;
        let earlier = sent.bytes.0.div_ceil(packet.size.0.max(1)).saturating_sub(1);
        let last = sent.bytes.0.saturating_sub(earlier.saturating_mul(packet.size.0));
        let last = replay::Bytes(last.saturating_add(packet.header.0));
        self.earlier_packets(sent, link).saturating_add(time(last))
    }

    /// Time for which all packets of a message but the last occupy a link.
    fn earlier_packets(&self, sent: &Sent, link: LinkId) -> Picos {
        let packet = &self.settings.packet;
        let packets = sent.bytes.0.div_ceil(packet.size.0.max(1)).saturating_sub(1);
        let wire = replay::Bytes(packet.size.0.saturating_add(packet.header.0));
        let time = self.speed(link).bandwidth.time(wire).unwrap_or(Picos::MAX);
        Picos(time.0.saturating_mul(packets))
    }

    fn speed(&self, link: LinkId) -> LinkSpeed {
        self.speeds[usize::from(self.topology.class(link).0)]
    }

    /// The path to the end of the run; `reached` are the start times of the last record of each task.
    pub(crate) fn finish(
        mut self,
        reached: impl Iterator<Item = Picos>,
        runtime: Picos,
        first_tasks: &[u32],
    ) -> CriticalPath {
        let ends = (0u32..).zip(reached).find(|(_, reached)| *reached == runtime);
        let (edge, task) = match (ends, self.last) {
            (Some((task, _)), _) => (self.tasks[task as usize], Some(task)),
            (None, Some(last)) => (last, None),
            (None, None) => (Edge { node: ROOT, at: runtime, by_send: false }, None),
        };
        let mut path = vec![edge.node];
        while let Some(&node) = path.last()
            && node != self.nodes.trunk()
        {
            path.push(self.nodes.from(node).node);
        }
        for pair in path.windows(2).rev() {
            add(&mut self.shares, &self.nodes, pair[1], pair[0]);
        }
        arrive(&mut self.shares, &self.nodes, edge);
        if let Some(task) = task {
            self.shares.compute(task, edge.at, runtime, None);
        }
        report::of(&self.shares, self.topology, first_tasks)
    }
}

/// Adds the piece from the start of a message to the start of the next.
fn add(shares: &mut Shares, nodes: &Nodes<About>, parent: u32, child: u32) {
    let (edge, sent) = (nodes.from(child), &nodes.about(child).sent);
    debug_assert_eq!(edge.node, parent);
    arrive(shares, nodes, edge);
    shares.compute(sent.computed.0, edge.at, sent.start, Some(sent.computed.1));
}

/// Adds the piece from the start of a message to the release that it caused.
fn arrive(shares: &mut Shares, nodes: &Nodes<About>, edge: Edge) {
    if edge.node == ROOT {
        shares.before_start = edge.at;
        return;
    }
    let About { sent, src_node, left: [overhead, transmission], arrived, trip } = nodes.about(edge.node);
    // In a model where messages leave their node when they arrive, they take the whole way.
    if !edge.by_send || edge.at == *arrived {
        return shares.carry(sent, trip, edge.at);
    }
    // What remains, it waited for other messages of its node.
    let took = edge.at.saturating_sub(sent.start);
    let waited = took.saturating_sub(*overhead).saturating_sub(*transmission);
    let links = vec![(Some(LinkId::injection(*src_node)), *transmission, waited)];
    shares.carry(sent, &Trip { overhead: *overhead, links, ..Trip::default() }, edge.at);
}

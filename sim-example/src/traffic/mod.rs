//! Synthetic traffic: nodes that send at a given rate, and the latencies that result.
//!
//! The load is open-loop: nodes submit messages by the clock, and queues at the sources are unbounded. Time is
//! divided into windows, each twice as long as the one before, until two in a row tell the same ([`Seen::verdict`]):
//! the load is stable, or the network is saturated. Measured is the last window: each message submitted in it is
//! followed to its delivery, and its latency counts from submission; accepted load is what arrives in it.

mod background;
pub(crate) mod beside;
mod destinations;
mod matrix;
mod pattern;
mod sends;
mod sizes;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use results::Mean;
use results::classes::{ends, power};
use results::simulation::OfSize;
use results::traffic::{Batch, Load};
use vef_format::units::{Bytes, Picos};

use crate::error::SimError;
use crate::histogram::Histogram;
use crate::model::{Carried, Carrier, Happened, Hops, ModelError, Network, Origin, OutOfTime};
use crate::random::Random;
use crate::report::{congestion, latency};
use crate::settings::NetworkSettings;
use crate::topology::{Fabric, Fault, LinkClass};

pub use background::{Background, BackgroundError};
pub(crate) use destinations::Destinations;
pub use matrix::MatrixError;
pub use pattern::{Pattern, PatternError, PatternInfo, UnknownPattern};
pub use sends::{Sends, SendsError};
pub use sizes::{PUBLISHED, Published, Sizes, SizesError};

/// The traffic of a network.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Traffic {
    /// Traffic pattern: where each node sends; hotspot:NODE=SHARE,…; file:MATRIX (lines SOURCE DESTINATION, and a WEIGHT if it is not 1); or
    /// several over one another, as 0.8*uniform+0.2*incast
    #[arg(long, default_value_t, value_name = "P")]
    pub pattern: Sends,
    /// Size of a message, or a distribution of sizes: web-search, hadoop, or file:DISTRIBUTION (lines BYTES SHARE) [default: one
    /// packet; 2 KiB in models without packets]
    #[arg(long = "message", value_name = "SIZE")]
    pub sizes: Option<Sizes>,
    /// Times at which messages are submitted: bernoulli (with equal probability in each transmission time of a message), poisson
    /// (after exponentially distributed intervals), or on-off:N (bursts of N messages in the mean, without a pause between)
    #[arg(long, default_value_t, value_name = "HOW")]
    pub arrivals: Arrivals,
    /// Length of the first window, in transmission times of a message; each further one is twice as long
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub window: u32,
    /// Length of all windows together, at most, in transmission times of a message; two are always simulated
    #[arg(long, default_value_t = 31_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub longest: u32,
    /// Seed of destinations and times.
    #[arg(skip = 1u64)]
    pub seed: u64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            pattern: Sends::default(),
            sizes: None,
            arrivals: Arrivals::Bernoulli,
            window: 1000,
            longest: 31_000,
            seed: 1,
        }
    }
}

/// The times at which messages are submitted. A transmission time is that of a message of the mean size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// With equal probability in each transmission time of a message.
    #[default]
    Bernoulli,
    /// After exponentially distributed intervals.
    Poisson,
    /// Bursts of messages a transmission time apart: geometrically distributed numbers of this mean, at least 1. Pauses between are
    /// exponentially distributed.
    OnOff(f64),
}

/// Unknown [`Arrivals`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write bernoulli, poisson or on-off:N, with a mean number of messages of at least 1")]
pub struct UnknownArrivals;

impl FromStr for Arrivals {
    type Err = UnknownArrivals;

    fn from_str(text: &str) -> Result<Self, UnknownArrivals> {
        let burst = |text: &str| text.parse().ok().filter(|burst| (1.0..=1e9).contains(burst));
        match text {
            "bernoulli" => Some(Self::Bernoulli),
            "poisson" => Some(Self::Poisson),
            _ => text.strip_prefix("on-off:").and_then(burst).map(Self::OnOff),
        }
        .ok_or(UnknownArrivals)
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bernoulli => f.write_str("bernoulli"),
            Self::Poisson => f.write_str("poisson"),
            Self::OnOff(burst) => write!(f, "on-off:{burst}"),
        }
    }
}

/// Parts of the measured window for the confidence interval.
const PARTS: usize = 10;
/// Least share of its messages that each sender gets through below saturation.
const STABLE: f64 = 0.95;
/// Mean latencies of two windows are the same within this.
const ALIKE: f64 = 0.02;
/// Marks the number of a window whose end has come.
const CLOSED: u64 = 1 << 31;
/// So much the mean latency grows, at least, from a window to one of twice its length while queues grow.
const GROWS: f64 = 1.25;

/// Runs traffic of the given load on a network.
///
/// # Errors
/// Invalid settings, or a load outside (0, 1].
pub fn run_traffic(network: &NetworkSettings, traffic: &Traffic, load: f64) -> Result<Load, SimError> {
    if !(load > 0.0 && load <= 1.0) {
        return Err(SimError::Load(load));
    }
    if network.fail.iter().any(Fault::has_times) {
        let with = "loads, which are measured in a steady state (--batch ends)";
        return Err(SimError::Unsupported { what: "--fail at a time", with });
    }
    let topology = network.whole_fabric()?;
    let destinations = traffic.pattern.destinations(&topology, traffic.seed)?;
    run_between(&topology, network, traffic, &destinations, load)
}

pub(crate) fn run_between(
    topology: &Fabric,
    settings: &NetworkSettings,
    traffic: &Traffic,
    destinations: &Destinations,
    load: f64,
) -> Result<Load, SimError> {
    let Carrier::Links(build) = settings.model.info().carrier else {
        return Err(ModelError::NoLinks.into());
    };
    let mut network = build(settings.setup(topology, false).map_err(ModelError::from)?)?;
    let nodes = topology.nodes();
    let sizes = sizes(settings, traffic);
    let bytes = Bytes(sizes.mean(|bytes| bytes.0 as f64) as u64);
    let slot = slot(settings, &sizes)?;
    if slot == 0 {
        return Err(SimError::EmptyMessages);
    }
    // All times below fit: the last one is before this.
    let last = 5 * (3 * u64::from(traffic.window) + u64::from(traffic.longest) + 1000);
    if slot.checked_mul(last).is_none() {
        return Err(OutOfTime { bytes }.into());
    }
    let mut sources: Vec<SourceClock> =
        (0..nodes).map(|node| SourceClock::new(traffic, node, load * destinations.rate(node))).collect();
    let mut measure = Measure::new(nodes, u64::from(traffic.window) * slot);
    let mean_wire = sizes.mean(|bytes| wire(settings, bytes));
    // Sources run a little ahead of the network.
    let mut run = |from: u64, to: u64, measure: &mut Measure| -> Result<(), SimError> {
        let mut until = from;
        while until < to {
            until = to.min(until + 32 * slot);
            for (node, source) in (0..).zip(&mut sources) {
                while source.next(slot) < until {
                    let at = source.take(slot);
                    let dst = destinations.draw(node, &mut source.random);
                    let bytes = sizes.draw(&mut source.random);
                    let tag = measure.submitted(node, bytes, wire(settings, bytes) / mean_wire);
                    network.submit(
                        Picos(at),
                        Carried { src: node, dst, bytes, tag, origin: Origin::Background },
                    )?;
                }
            }
            while let Some((now, happened)) = network.run_until(Picos(until - 1))? {
                if let Happened::Delivered { tag, latency, queued } = happened {
                    measure.delivered(tag, now.0, latency.0, queued.0);
                }
            }
        }
        Ok(())
    };
    run(0, measure.end, &mut measure)?;
    let mut before = measure.seen();
    let (seen, saturated) = loop {
        measure.next_window();
        run(measure.begin, measure.end, &mut measure)?;
        let seen = measure.seen();
        let is_last = measure.next_end() > u64::from(traffic.longest) * slot;
        match seen.verdict(&before, is_last) {
            Some(saturated) => break (seen, saturated),
            None => before = seen,
        }
    };
    // Sources continue until all measured messages have arrived, but at most for twice the window, and not beyond
    // saturation, where the wait would only grow.
    let (mut now, length) = (measure.end, measure.end - measure.begin);
    let give_up = now + 2 * length + 1000 * slot;
    measure.close();
    while !saturated && measure.open > 0 && now < give_up {
        run(now, now + 32 * slot, &mut measure)?;
        now += 32 * slot;
    }
    let saturated = saturated || measure.open > 0;
    let point = measure.point(load, &seen, saturated, length as f64 / slot as f64);
    Ok(Load {
        hops: network.hops().and_then(Hops::mean),
        events: network.events(),
        congestion: congestion(settings, network.congested()),
        ..point
    })
}

/// The sizes of messages: by default a packet's.
fn sizes(settings: &NetworkSettings, traffic: &Traffic) -> Sizes {
    traffic.sizes.clone().unwrap_or_else(|| Sizes::One(settings.message_of_one_packet()))
}

/// Bytes of a message with the headers of its packets.
fn wire(settings: &NetworkSettings, bytes: Bytes) -> f64 {
    settings.on_the_wire(bytes).map_or(f64::INFINITY, |bytes| bytes.0 as f64)
}

/// Mean transmission time of a message over a node's link, with the headers of its packets.
fn slot(settings: &NetworkSettings, sizes: &Sizes) -> Result<u64, OutOfTime> {
    let mean = sizes.mean(|bytes| wire(settings, bytes)).round();
    let out_of_time = OutOfTime { bytes: Bytes(mean as u64) };
    let wire = (mean < 2f64.powi(63)).then_some(Bytes(mean as u64)).ok_or(out_of_time)?;
    let bandwidth = settings.links.of(LinkClass::NODE).bandwidth;
    Ok(bandwidth.time(wire).ok_or(out_of_time)?.0)
}

/// Submits `messages` of each node at once, and measures the time until all have arrived.
///
/// # Errors
/// As [`run_traffic`].
pub fn run_batch(network: &NetworkSettings, traffic: &Traffic, messages: u32) -> Result<Batch, SimError> {
    let topology = &network.whole_fabric()?;
    let destinations = traffic.pattern.destinations(topology, traffic.seed)?;
    let Carrier::Links(build) = network.model.info().carrier else {
        return Err(ModelError::NoLinks.into());
    };
    let mut carrier = build(network.setup(topology, false).map_err(ModelError::from)?)?;
    let sizes = sizes(network, traffic);
    let (mut sum, mut submitted) = (0u128, 0);
    let mut left = vec![0u32; topology.nodes() as usize];
    for node in 0..topology.nodes() {
        let mut random = Random::new(traffic.seed, u64::from(node) + 1);
        left[node as usize] = (f64::from(messages) * destinations.rate(node)).round() as u32;
        for _ in 0..left[node as usize] {
            let dst = destinations.draw(node, &mut random);
            let bytes = sizes.draw(&mut random);
            sum += u128::from(bytes.0);
            submitted += 1;
            carrier.submit(
                Picos::ZERO,
                Carried { src: node, dst, bytes, tag: node.into(), origin: Origin::Background },
            )?;
        }
    }
    let mut latencies = Histogram::default();
    let (mut last, mut first_node) = (Picos::ZERO, None);
    while let Some((now, happened)) = carrier.run_until(Picos::MAX)? {
        if let Happened::Delivered { tag, latency, .. } = happened {
            last = now;
            latencies.add(latency.0);
            let left = &mut left[tag as usize];
            *left -= 1;
            if *left == 0 {
                first_node.get_or_insert(now.0);
            }
        }
    }
    if latencies.count() < submitted {
        if let Some(stranded) = carrier.stranded() {
            return Err(SimError::Stranded(stranded));
        }
        return Err(SimError::DeadlockedTraffic { circle: carrier.deadlock().unwrap_or_default() });
    }
    let bandwidth = network.links.of(LinkClass::NODE).bandwidth.bits_per_second();
    let bits = 8.0 * sum as f64 / f64::from(topology.nodes());
    Ok(Batch {
        messages,
        runtime_ps: last.0,
        first_node_ps: first_node.unwrap_or_default(),
        throughput: if last.0 == 0 { 0.0 } else { bits / (last.0 as f64 * 1e-12) / bandwidth as f64 },
        latency: latency(&latencies),
        events: carrier.events(),
        congestion: congestion(network, carrier.congested()),
    })
}

/// The times at which a node submits messages.
struct SourceClock {
    random: Random,
    arrivals: Arrivals,
    /// Messages in a slot, in the mean.
    load: f64,
    /// In slots.
    next: f64,
    /// Messages left of a burst.
    burst: u64,
}

impl SourceClock {
    fn new(traffic: &Traffic, node: u32, load: f64) -> Self {
        let (random, arrivals) = (Random::new(traffic.seed, u64::from(node) + 1), traffic.arrivals);
        let mut clock = Self { random, arrivals, load, next: -1.0, burst: 0 };
        match arrivals {
            _ if load <= 0.0 => clock.next = f64::INFINITY,
            Arrivals::Bernoulli | Arrivals::OnOff(_) => clock.advance(),
            Arrivals::Poisson => clock.next = clock.random.exponential() / load,
        }
        clock
    }

    fn next(&self, slot: u64) -> u64 {
        (self.next * slot as f64) as u64
    }

    fn take(&mut self, slot: u64) -> u64 {
        let at = self.next(slot);
        self.advance();
        at
    }

    fn advance(&mut self) {
        let load = self.load;
        self.next += match self.arrivals {
            Arrivals::Poisson => self.random.exponential() / load,
            Arrivals::OnOff(_) if self.burst > 0 => {
                self.burst -= 1;
                1.0
            }
            Arrivals::OnOff(mean) => {
                // Messages behind the first: failures before a success of probability 1/mean.
                let more = (self.random.unit().ln() / (-1.0 / mean).ln_1p()).floor();
                self.burst = if more.is_finite() { more as u64 } else { 0 };
                1.0 + self.random.exponential() * mean * (1.0 / load - 1.0)
            }
            Arrivals::Bernoulli if load >= 1.0 => 1.0,
            // Slots until the next success.
            Arrivals::Bernoulli => (self.random.unit().ln() / (-load).ln_1p()).floor() + 1.0,
        };
    }
}

/// The messages of a node, as a sender.
#[derive(Clone, Copy, Default)]
struct Sender {
    /// Submitted in this window.
    submitted: u64,
    /// Of all windows, delivered in this one.
    delivered: u64,
    /// The same in slots of transmission.
    submitted_slots: f64,
    delivered_slots: f64,
}

/// A message under way.
#[derive(Clone, Copy)]
struct UnderWay {
    src: u32,
    window: u64,
    bytes: Bytes,
    slots: f64,
}

/// What a window tells.
#[derive(Debug)]
struct Seen {
    /// Slots of messages submitted.
    offered: f64,
    /// Slots of messages delivered.
    accepted: f64,
    /// The fewest slots of messages of a sender that were delivered.
    worst: f64,
    /// The least share of its messages that a sender got through.
    share: f64,
    /// Mean latency of the messages delivered.
    latency: f64,
}

impl Seen {
    /// Whether the network is saturated, if this window and the one `before` it tell; the last one always does.
    ///
    /// Stable are loads of which every sender gets at least [`STABLE`] through while mean latencies are the same.
    /// Where a sender falls behind by the same share in both windows, and latency grows with time, it will for ever.
    /// What waits when traffic begins is not mistaken for that: its share becomes smaller from window to window.
    fn verdict(&self, before: &Self, is_last: bool) -> Option<bool> {
        let behind = |seen: &Self| seen.share < STABLE;
        let grows = self.latency > GROWS * before.latency;
        let alike = |one: f64, other: f64, within: f64| (one - other).abs() <= within * one.max(other);
        if !behind(self) && alike(self.latency, before.latency, ALIKE) {
            return Some(false);
        }
        if behind(self) && behind(before) && alike(self.share, before.share, 1.0 - STABLE) && grows {
            return Some(true);
        }
        is_last.then_some(behind(self) || grows)
    }
}

/// The measurement, a window after the other.
struct Measure {
    begin: u64,
    end: u64,
    /// Number of the window.
    window: u64,
    senders: Vec<Sender>,
    /// Messages under way, by tag, and tags that are free.
    under_way: Vec<UnderWay>,
    free: Vec<u64>,
    /// Messages of this window that have not arrived.
    open: u64,
    /// Sum of the latencies of what arrived in this window.
    sum: f64,
    latency: Histogram,
    network_latency: Histogram,
    /// Latencies by powers of two of sizes.
    sizes: BTreeMap<u32, Histogram>,
    parts: [(f64, u64); PARTS],
}

impl Measure {
    fn new(nodes: u32, length: u64) -> Self {
        Self {
            begin: 0,
            end: length,
            window: 0,
            senders: vec![Sender::default(); nodes as usize],
            under_way: Vec::new(),
            free: Vec::new(),
            open: 0,
            sum: 0.0,
            latency: Histogram::default(),
            network_latency: Histogram::default(),
            sizes: BTreeMap::new(),
            parts: [(0.0, 0); PARTS],
        }
    }

    /// The end of the window after this one.
    fn next_end(&self) -> u64 {
        self.end + 2 * (self.end - self.begin)
    }

    fn next_window(&mut self) {
        let mut next = Self::new(0, 0);
        next.senders = std::mem::take(&mut self.senders);
        next.senders.fill(Sender::default());
        (next.under_way, next.free) = (std::mem::take(&mut self.under_way), std::mem::take(&mut self.free));
        (next.begin, next.end, next.window) = (self.end, self.next_end(), self.window + 1);
        *self = next;
    }

    /// What is submitted from now on is not measured.
    fn close(&mut self) {
        self.window |= CLOSED;
    }

    /// Counts a submitted message; returns its tag.
    fn submitted(&mut self, src: u32, bytes: Bytes, slots: f64) -> u64 {
        let sender = &mut self.senders[src as usize];
        sender.submitted += 1;
        sender.submitted_slots += slots;
        self.open += u64::from(self.window & CLOSED == 0);
        let message = UnderWay { src, window: self.window, bytes, slots };
        match self.free.pop() {
            Some(tag) => {
                self.under_way[tag as usize] = message;
                tag
            }
            None => {
                self.under_way.push(message);
                self.under_way.len() as u64 - 1
            }
        }
    }

    fn delivered(&mut self, tag: u64, now: u64, latency: u64, queued: u64) {
        let UnderWay { src, window, bytes, slots } = self.under_way[tag as usize];
        self.free.push(tag);
        let sender = &mut self.senders[src as usize];
        sender.delivered += 1;
        sender.delivered_slots += slots;
        self.sum += latency as f64;
        if window == self.window & !CLOSED {
            self.open -= 1;
            self.latency.add(latency);
            self.network_latency.add(latency - queued);
            self.sizes.entry(power(bytes.0)).or_default().add(latency);
            let at = now - latency - self.begin;
            let part = (at as u128 * PARTS as u128 / u128::from(self.end - self.begin)) as usize;
            self.parts[part].0 += latency as f64;
            self.parts[part].1 += 1;
        }
    }

    /// What the window tells, at its end.
    fn seen(&self) -> Seen {
        let sum = |of: fn(&Sender) -> f64| self.senders.iter().map(of).sum();
        let delivered: u64 = self.senders.iter().map(|sender| sender.delivered).sum();
        let senders = self.senders.iter().filter(|sender| sender.submitted > 0);
        let share = |sender: &Sender| sender.delivered as f64 / sender.submitted as f64;
        let worst = senders.clone().map(|sender| sender.delivered_slots).fold(f64::INFINITY, f64::min);
        Seen {
            offered: sum(|sender| sender.submitted_slots),
            accepted: sum(|sender| sender.delivered_slots),
            worst: if worst.is_finite() { worst } else { 0.0 },
            share: senders.map(share).fold(1.0, f64::min),
            latency: self.sum / delivered.max(1) as f64,
        }
    }

    fn point(&self, load: f64, seen: &Seen, saturated: bool, window: f64) -> Load {
        let per_node = |slots: f64| slots / window / self.senders.len() as f64;
        let of_size = |(&class, latencies): (&u32, &Histogram)| {
            let (from_bytes, to_bytes) = ends(class);
            OfSize { from_bytes, to_bytes, latency: latency(latencies) }
        };
        let means: Vec<f64> =
            self.parts.iter().filter(|part| part.1 > 0).map(|part| part.0 / part.1 as f64).collect();
        Load {
            load,
            offered: per_node(seen.offered),
            accepted: per_node(seen.accepted),
            accepted_worst: seen.worst / window,
            sizes: self.sizes.iter().filter(|_| self.sizes.len() > 1).map(of_size).collect(),
            latency: latency(&self.latency),
            mean_half_width_ps: Mean::of(&means).and_then(|mean| Some(mean.half_width?.round() as u64)),
            network_latency: latency(&self.network_latency),
            hops: None,
            saturated,
            events: 0,
            congestion: None,
            over_seeds: None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

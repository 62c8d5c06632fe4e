//! Synthetic traffic: nodes that send at a given rate, and the latencies that result.
//!
//! The load is open-loop: nodes submit messages by the clock, and queues at the sources are unbounded. After
//! a warm-up, each message submitted during the measured time is followed to its delivery; its latency counts
//! from submission. Accepted load is what arrives during the measured time.

mod destinations;
mod pattern;

use results::traffic::Load;
use vef_format::units::{Bytes, Picos};

use crate::error::SimError;
use crate::histogram::Histogram;
use crate::model::{Carried, Carrier, Happened, ModelError, Network, OutOfTime};
use crate::quantity::{Bandwidth, parse_bytes};
use crate::random::Random;
use crate::report::latency;
use crate::settings::NetworkSettings;
use crate::topology::{Fabric, LinkClass};

pub(crate) use destinations::Destinations;
pub use pattern::{Pattern, PatternError, PatternInfo, UnknownPattern};

/// The traffic of a network.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Traffic {
    /// Traffic pattern: where each node sends
    #[arg(long, value_enum, default_value_t, value_name = "P")]
    pub pattern: Pattern,
    /// Size of a message [default: one packet; 2 KiB in models without packets]
    #[arg(long = "message", value_name = "SIZE", value_parser = parse_bytes)]
    pub bytes: Option<Bytes>,
    /// Times at which messages are submitted
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub arrivals: Arrivals,
    /// Length of the warm-up, in transmission times of a message
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000_000))]
    pub warm_up: u32,
    /// Length of the measurement, in transmission times of a message
    #[arg(long, default_value_t = 3000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub measured: u32,
    /// Seed of destinations and times.
    #[arg(skip = 1u64)]
    pub seed: u64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            pattern: Pattern::Uniform,
            bytes: None,
            arrivals: Arrivals::Bernoulli,
            warm_up: 1000,
            measured: 3000,
            seed: 1,
        }
    }
}

/// The times at which messages are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrivals {
    /// With equal probability in each transmission time of a message
    #[default]
    Bernoulli,
    /// After exponentially distributed intervals
    Poisson,
}

/// Parts of the measured time for the confidence interval.
const PARTS: usize = 10;
/// Least share of the offered load that must be accepted below saturation.
const STABLE: f64 = 0.95;

/// Runs traffic of the given load on a network.
///
/// # Errors
/// Invalid settings, or a load outside (0, 1].
pub fn run_traffic(network: &NetworkSettings, traffic: &Traffic, load: f64) -> Result<Load, SimError> {
    if !(load > 0.0 && load <= 1.0) {
        return Err(SimError::Load(load));
    }
    let topology = network.topology.build(1)?;
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
    let bytes = traffic.bytes.unwrap_or_else(|| settings.message_of_one_packet());
    let bandwidth = settings.links.of(LinkClass::NODE).bandwidth;
    let slot = wire_time(settings, bandwidth, bytes).ok_or(OutOfTime { bytes })?.0;
    if slot == 0 {
        return Err(SimError::Load(load));
    }
    // All times below fit: the last one is before this.
    let last = 5 * (u64::from(traffic.warm_up) + u64::from(traffic.measured) + 1000);
    if slot.checked_mul(last).is_none() {
        return Err(OutOfTime { bytes }.into());
    }
    let begin = u64::from(traffic.warm_up) * slot;
    let end = begin + u64::from(traffic.measured) * slot;
    let mut sources: Vec<SourceClock> =
        (0..nodes).map(|node| SourceClock::new(traffic, node, load)).collect();
    let mut measure = Measure::new(nodes, begin, end);
    // Sources run a little ahead of the network. They continue after the measured time until all measured
    // messages have arrived, but at most for twice that time, and not beyond saturation, where the wait would
    // only grow.
    let (ahead, give_up) = (32 * slot, end + 2 * (end - begin) + 1000 * slot);
    let mut until = 0;
    while until < end || measure.open > 0 && until < give_up && !measure.falls_behind() {
        until += ahead;
        for (node, source) in (0..).zip(&mut sources) {
            while source.next(slot) < until {
                let at = source.take(slot, traffic.arrivals, load);
                let dst = destinations.draw(node, &mut source.random);
                let tag = measure.submitted(dst, at);
                network.submit(Picos(at), Carried { src: node, dst, bytes, tag })?;
            }
        }
        while let Some((now, happened)) = network.run_until(Picos(until - 1))? {
            if let Happened::Delivered { tag, latency, queued } = happened {
                measure.delivered(tag, now.0, latency.0, queued.0);
            }
        }
    }
    let window = (end - begin) as f64 / slot as f64;
    Ok(measure.point(load, window, network.events()))
}

/// Transmission time of a message, with the headers of its packets.
fn wire_time(settings: &NetworkSettings, bandwidth: Bandwidth, bytes: Bytes) -> Option<Picos> {
    bandwidth.time(settings.on_the_wire(bytes)?)
}

/// The times at which a node submits messages.
struct SourceClock {
    random: Random,
    /// In slots.
    next: f64,
}

impl SourceClock {
    fn new(traffic: &Traffic, node: u32, load: f64) -> Self {
        let mut clock = Self { random: Random::new(traffic.seed, u64::from(node) + 1), next: -1.0 };
        match traffic.arrivals {
            Arrivals::Bernoulli => clock.advance(traffic.arrivals, load),
            Arrivals::Poisson => clock.next = clock.random.exponential() / load,
        }
        clock
    }

    fn next(&self, slot: u64) -> u64 {
        (self.next * slot as f64) as u64
    }

    fn take(&mut self, slot: u64, arrivals: Arrivals, load: f64) -> u64 {
        let at = self.next(slot);
        self.advance(arrivals, load);
        at
    }

    fn advance(&mut self, arrivals: Arrivals, load: f64) {
        self.next += match arrivals {
            Arrivals::Poisson => self.random.exponential() / load,
            Arrivals::Bernoulli if load >= 1.0 => 1.0,
            // Slots until the next success.
            Arrivals::Bernoulli => (self.random.unit().ln() / (-load).ln_1p()).floor() + 1.0,
        };
    }
}

/// The measurement.
struct Measure {
    begin: u64,
    end: u64,
    /// Measured messages that have not arrived.
    open: u64,
    offered: u64,
    sent_to: Vec<u64>,
    arrived_at: Vec<u64>,
    latency: Histogram,
    network_latency: Histogram,
    parts: [(f64, u64); PARTS],
    delivered: u64,
}

impl Measure {
    fn new(nodes: u32, begin: u64, end: u64) -> Self {
        Self {
            begin,
            end,
            open: 0,
            offered: 0,
            sent_to: vec![0; nodes as usize],
            arrived_at: vec![0; nodes as usize],
            latency: Histogram::default(),
            network_latency: Histogram::default(),
            parts: [(0.0, 0); PARTS],
            delivered: 0,
        }
    }

    /// Counts a submitted message; returns its tag.
    fn submitted(&mut self, dst: u32, at: u64) -> u64 {
        let measured = (self.begin..self.end).contains(&at);
        if measured {
            self.open += 1;
            self.offered += 1;
            self.sent_to[dst as usize] += 1;
        }
        u64::from(dst) | u64::from(measured) << 32
    }

    fn delivered(&mut self, tag: u64, now: u64, latency: u64, queued: u64) {
        self.delivered += 1;
        if (self.begin..self.end).contains(&now) {
            self.arrived_at[tag as u32 as usize] += 1;
        }
        if tag >> 32 != 0 {
            self.open -= 1;
            self.latency.add(latency);
            self.network_latency.add(latency - queued);
            let at = now - latency - self.begin;
            let part = (at as u128 * PARTS as u128 / u128::from(self.end - self.begin)) as usize;
            self.parts[part].0 += latency as f64;
            self.parts[part].1 += 1;
        }
    }

    /// Whether clearly less arrived in the measured time than was submitted.
    fn falls_behind(&self) -> bool {
        let arrived: u64 = self.arrived_at.iter().sum();
        (arrived as f64) < STABLE * self.offered as f64
    }

    fn point(&self, load: f64, window: f64, events: u64) -> Load {
        let nodes = self.arrived_at.len() as f64;
        let per_node = |count: u64| count as f64 / window / nodes;
        let accepted = per_node(self.arrived_at.iter().sum());
        let offered = per_node(self.offered);
        let arrived = self.arrived_at.iter().zip(&self.sent_to).filter(|(_, sent)| **sent > 0);
        let worst = arrived.map(|(arrived, _)| *arrived).min().unwrap_or(0);
        let means: Vec<f64> =
            self.parts.iter().filter(|part| part.1 > 0).map(|part| part.0 / part.1 as f64).collect();
        Load {
            load,
            offered,
            accepted,
            accepted_worst: worst as f64 / window,
            latency: latency(&self.latency),
            mean_half_width_ps: half_width(&means),
            network_latency: latency(&self.network_latency),
            hops: events as f64 / self.delivered.max(1) as f64,
            saturated: self.falls_behind() || self.open > 0,
            events,
        }
    }
}

/// Half the width of the 95 % confidence interval of the mean of at most ten independent values.
fn half_width(values: &[f64]) -> Option<u64> {
    // Quantiles at 0.975 of Student's t-distribution, by degrees of freedom.
    const STUDENT: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let width = STUDENT[(n - 2).min(STUDENT.len() - 1)] * (variance / n as f64).sqrt();
    Some(width.round() as u64)
}

#[cfg(test)]
pub(crate) mod tests;

//! Synthetic traffic: nodes that send at a given rate, and the latencies that result.
//!
//! The load is open-loop: nodes submit messages by the clock, and queues at the sources are unbounded. Time is
//! divided into windows, each twice as long as the one before, until two in a row tell the same ([`Seen::verdict`]):
//! the load is stable, or the network is saturated. Measured is the last window: each message submitted in it is
//! followed to its delivery, and its latency counts from submission; accepted load is what arrives in it.

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
            pattern: Pattern::Uniform,
            bytes: None,
            arrivals: Arrivals::Bernoulli,
            window: 1000,
            longest: 31_000,
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
    let last = 5 * (3 * u64::from(traffic.window) + u64::from(traffic.longest) + 1000);
    if slot.checked_mul(last).is_none() {
        return Err(OutOfTime { bytes }.into());
    }
    let mut sources: Vec<SourceClock> =
        (0..nodes).map(|node| SourceClock::new(traffic, node, load)).collect();
    let mut measure = Measure::new(nodes, u64::from(traffic.window) * slot);
    // Sources run a little ahead of the network.
    let mut run = |from: u64, to: u64, measure: &mut Measure| -> Result<(), SimError> {
        let mut until = from;
        while until < to {
            until = to.min(until + 32 * slot);
            for (node, source) in (0..).zip(&mut sources) {
                while source.next(slot) < until {
                    let at = source.take(slot, traffic.arrivals, load);
                    let dst = destinations.draw(node, &mut source.random);
                    let tag = measure.submitted(node);
                    network.submit(Picos(at), Carried { src: node, dst, bytes, tag })?;
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
    Ok(measure.point(load, &seen, saturated, length as f64 / slot as f64, network.events()))
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

/// The messages of a node, as a sender.
#[derive(Clone, Copy, Default)]
struct Sender {
    /// Submitted in this window.
    submitted: u64,
    /// Of all windows, delivered in this one.
    delivered: u64,
}

/// What a window tells.
#[derive(Debug)]
struct Seen {
    /// Messages submitted.
    offered: u64,
    /// Messages delivered.
    accepted: u64,
    /// The fewest messages of a sender that were delivered.
    worst: u64,
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
    /// Messages of this window that have not arrived.
    open: u64,
    /// Sum of the latencies of what arrived in this window.
    sum: f64,
    latency: Histogram,
    network_latency: Histogram,
    parts: [(f64, u64); PARTS],
    /// In all windows.
    all_delivered: u64,
}

impl Measure {
    fn new(nodes: u32, length: u64) -> Self {
        Self {
            begin: 0,
            end: length,
            window: 0,
            senders: vec![Sender::default(); nodes as usize],
            open: 0,
            sum: 0.0,
            latency: Histogram::default(),
            network_latency: Histogram::default(),
            parts: [(0.0, 0); PARTS],
            all_delivered: 0,
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
        (next.begin, next.end, next.window) = (self.end, self.next_end(), self.window + 1);
        next.all_delivered = self.all_delivered;
        *self = next;
    }

    /// What is submitted from now on is not measured.
    fn close(&mut self) {
        self.window |= CLOSED;
    }

    /// Counts a submitted message; returns its tag.
    fn submitted(&mut self, src: u32) -> u64 {
        self.senders[src as usize].submitted += 1;
        self.open += u64::from(self.window & CLOSED == 0);
        u64::from(src) | self.window << 32
    }

    fn delivered(&mut self, tag: u64, now: u64, latency: u64, queued: u64) {
        self.all_delivered += 1;
        self.senders[tag as u32 as usize].delivered += 1;
        self.sum += latency as f64;
        if tag >> 32 == self.window & !CLOSED {
            self.open -= 1;
            self.latency.add(latency);
            self.network_latency.add(latency - queued);
            let at = now - latency - self.begin;
            let part = (at as u128 * PARTS as u128 / u128::from(self.end - self.begin)) as usize;
            self.parts[part].0 += latency as f64;
            self.parts[part].1 += 1;
        }
    }

    /// What the window tells, at its end.
    fn seen(&self) -> Seen {
        let sum = |of: fn(&Sender) -> u64| self.senders.iter().map(of).sum();
        let senders = self.senders.iter().filter(|sender| sender.submitted > 0);
        let share = |sender: &Sender| sender.delivered as f64 / sender.submitted as f64;
        let accepted = sum(|sender| sender.delivered);
        Seen {
            offered: sum(|sender| sender.submitted),
            accepted,
            worst: senders.clone().map(|sender| sender.delivered).min().unwrap_or(0),
            share: senders.map(share).fold(1.0, f64::min),
            latency: self.sum / accepted.max(1) as f64,
        }
    }

    fn point(&self, load: f64, seen: &Seen, saturated: bool, window: f64, events: u64) -> Load {
        let per_node = |count: u64| count as f64 / window / self.senders.len() as f64;
        let means: Vec<f64> =
            self.parts.iter().filter(|part| part.1 > 0).map(|part| part.0 / part.1 as f64).collect();
        Load {
            load,
            offered: per_node(seen.offered),
            accepted: per_node(seen.accepted),
            accepted_worst: seen.worst as f64 / window,
            latency: latency(&self.latency),
            mean_half_width_ps: half_width(&means),
            network_latency: latency(&self.network_latency),
            hops: events as f64 / self.all_delivered.max(1) as f64,
            saturated,
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

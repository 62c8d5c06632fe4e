//! The figures that several parts of a report share: amounts, finishing times, latencies, speed.

use std::fmt;
use std::time::Duration;

use replay::{Count, Kind};
use serde::{Serialize, Serializer};
use vef_format::units::{Bytes, Grouped, Picos};

use crate::histogram::Histogram;

/// A number of messages and their payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Messages.
    pub messages: u64,
    /// Their payload.
    pub bytes: Bytes,
}

/// When tasks finished their last record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// The first of them.
    pub min: Picos,
    /// The mean, rounded down.
    pub mean: Picos,
    /// The last of them.
    pub max: Picos,
    /// Every task, by rank.
    pub tasks: Vec<Picos>,
}

/// How long messages took. Quantiles are at most 1/128 above the exact value and never below; the rest is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Messages measured; without any the rest is 0.
    pub messages: u64,
    /// The shortest.
    pub min: Picos,
    /// The mean, rounded down.
    pub mean: Picos,
    /// The median.
    pub p50: Picos,
    /// Nine in ten took no longer.
    pub p90: Picos,
    /// Ninety-nine in a hundred took no longer.
    pub p99: Picos,
    /// The longest.
    pub max: Picos,
}

/// What the simulation itself took; differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Performance {
    /// Wall-clock time of replay and network, in seconds.
    pub wall_s: f64,
    /// Events of the network: a message over `H` links makes `H`, with contention.
    pub events: u64,
    /// Messages a second of wall-clock time; absent below a millisecond, which is too short to tell.
    pub messages_per_s: Option<f64>,
    /// Events likewise.
    pub events_per_s: Option<f64>,
}

impl From<Count> for Amount {
    fn from(Count { messages, bytes }: Count) -> Self {
        Self { messages, bytes }
    }
}

impl Finish {
    pub(crate) fn of(tasks: Vec<Picos>) -> Self {
        let sum: u128 = tasks.iter().map(|at| u128::from(at.0)).sum();
        Self {
            min: tasks.iter().min().copied().unwrap_or_default(),
            // A mean of u64 is a u64.
            mean: Picos((sum / tasks.len().max(1) as u128) as u64),
            max: tasks.iter().max().copied().unwrap_or_default(),
            tasks,
        }
    }
}

impl Latency {
    pub(crate) fn new(latencies: &Histogram) -> Self {
        Self {
            messages: latencies.count(),
            min: Picos(latencies.min()),
            mean: Picos(latencies.mean()),
            p50: Picos(latencies.percentile(50)),
            p90: Picos(latencies.percentile(90)),
            p99: Picos(latencies.percentile(99)),
            max: Picos(latencies.max()),
        }
    }
}

impl Performance {
    pub(crate) fn new(wall: Duration, messages: u64, events: u64) -> Self {
        let per_second =
            |count: u64| (wall >= Duration::from_millis(1)).then(|| count as f64 / wall.as_secs_f64());
        Self {
            wall_s: wall.as_secs_f64(),
            events,
            messages_per_s: per_second(messages),
            events_per_s: per_second(events),
        }
    }
}

pub(crate) fn kind<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    match kind {
        Kind::PointToPoint => serializer.serialize_str("point_to_point"),
        Kind::Collective(operation) => operation.serialize(serializer),
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", Grouped(self.messages), self.bytes)
    }
}

//! The figures that several parts of a report share: amounts, finishing times, latencies, speed.

use std::fmt;
use std::time::Duration;

use replay::{Count, Kind};
use serde::{Serialize, Serializer};
use vef_format::units::{Bytes, Grouped, Picos};

use crate::histogram::Histogram;

/// Messages and their payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Number of messages.
    pub messages: u64,
    /// Their payload.
    pub bytes: Bytes,
}

/// When tasks finished their last record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// The minimum.
    pub min: Picos,
    /// The mean, rounded down.
    pub mean: Picos,
    /// The maximum.
    pub max: Picos,
    /// By rank.
    pub tasks: Vec<Picos>,
}

/// Latencies of messages. Quantiles are exact or at most 1/128 too high; all else is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Number of messages; all other fields are 0 if it is 0.
    pub messages: u64,
    /// The minimum.
    pub min: Picos,
    /// The mean, rounded down.
    pub mean: Picos,
    /// The median.
    pub p50: Picos,
    /// The 90th percentile.
    pub p90: Picos,
    /// The 99th percentile.
    pub p99: Picos,
    /// The maximum.
    pub max: Picos,
}

/// Speed of the simulation; differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Performance {
    /// Wall-clock time, in seconds.
    pub wall_s: f64,
    /// Events of the network; in models with contention, a message over `H` links makes `H`.
    pub events: u64,
    /// Messages per second of wall-clock time; absent for runs shorter than a millisecond.
    pub messages_per_s: Option<f64>,
    /// Events per second of wall-clock time; absent for runs shorter than a millisecond.
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

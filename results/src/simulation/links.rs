//! Use of the links of a simulated network.

use crate::kind::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Use of the links. The utilisation of a link is the share of the run time in which the link is busy; in
/// models without contention, where messages overlap, it can exceed 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinksReport {
    /// Links that carried messages.
    pub used: u32,
    /// Highest utilisation of a link.
    pub utilisation_max: f64,
    /// Mean utilisation of all links, idle ones included.
    pub utilisation_mean: f64,
    /// The links with the highest utilisation, in descending order; at most ten.
    pub busiest: Vec<LinkReport>,
    /// All links that carried messages, in the order of their numbers, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<LinkReport>>,
    /// Width of the bins over time, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bin_ps: Option<u64>,
}

/// Messages and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// Number of messages.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkReport {
    /// Its ends, such as `node3->leaf0`.
    pub link: String,
    /// Its number in the topology.
    pub number: u32,
    /// Its bandwidth.
    pub bandwidth_bits_per_s: u64,
    /// Its latency.
    pub latency_ps: u64,
    /// Share of the run time in which the link was busy.
    pub utilisation: f64,
    /// Time in which the link was busy.
    pub busy_ps: u64,
    /// Messages, or packets in the packet model, and their bytes, with packet headers.
    #[serde(flatten)]
    pub amount: Amount,
    /// Sum of the times that messages or packets waited for the link.
    pub waited_ps: u64,
    /// Longest such time.
    pub longest_wait_ps: u64,
    /// Bytes the link sends in that time: the longest queue.
    pub longest_queue_bytes: u64,
    /// Time in which packets waited and none had room in the buffer behind the link.
    pub blocked_ps: u64,
    /// Use over time, if requested.
    #[serde(flatten)]
    pub over_time: Option<OverTime>,
}

/// Use of a link over time, and by task and kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverTime {
    /// Busy share of each bin.
    pub busy: Vec<f64>,
    /// Share of each bin in which packets waited and none had room behind the link.
    pub blocked: Vec<f64>,
    /// Bytes sent in each bin.
    pub bytes_over_time: Vec<u64>,
    /// Tasks with the most bytes on the link, at most eight. A figure is exact or too high by at most an
    /// eighth of the link's bytes.
    pub sources: Vec<Source>,
    /// Bytes by kind of message.
    pub kinds: Vec<KindBytes>,
    /// Bytes by job, those of background traffic last.
    #[serde(default)]
    pub jobs: Vec<JobBytes>,
}

/// Bytes of a job's messages on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobBytes {
    /// The job; null for background traffic.
    pub job: Option<u32>,
    /// Bytes, with packet headers.
    pub bytes: u64,
}

/// Bytes of a task's messages on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The job.
    pub job: u32,
    /// The task that sends.
    pub task: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Bytes of a kind of messages on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindBytes {
    /// The kind.
    pub kind: Kind,
    /// Bytes.
    pub bytes: u64,
}

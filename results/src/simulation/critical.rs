//! The critical path of a simulation.

use crate::kind::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The critical path: a chain of computing and messages in which each piece begins where the previous one
/// ends. Its times add up to the run time exactly. If several paths have that length, this is one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalPath {
    /// Messages on it.
    pub messages: u64,
    /// Before the first job on the path starts.
    pub before_start_ps: u64,
    /// Computing of tasks.
    pub computing_ps: u64,
    /// Overhead of network interfaces.
    pub overhead_ps: u64,
    /// Latency of links and switches.
    pub latency_ps: u64,
    /// Transmission: the bytes of messages at the rate of the slowest link of each route.
    pub transmission_ps: u64,
    /// Waiting for links: behind other messages, or for buffer space.
    pub queueing_ps: u64,
    /// Messages within nodes.
    pub memory_ps: u64,
    /// Levels of links (those of nodes, between two levels of switches, of a dimension) with transmission or queueing on the path, most
    /// time first.
    #[serde(default)]
    pub levels: Vec<CriticalLevel>,
    /// Links with the most transmission and queueing on the path; at most ten.
    pub links: Vec<CriticalLink>,
    /// Tasks with the most computing on the path; at most ten.
    pub ranks: Vec<CriticalRank>,
    /// Messages on the path by kind.
    pub kinds: Vec<OnPath>,
    /// The longest pieces, in order of time; at most twenty.
    pub steps: Vec<CriticalStep>,
}

/// Links of one kind on the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalLevel {
    /// Its name, such as `nodes`, `leaf-spine` or `dimension 0`.
    pub level: String,
    /// The number of its first link in the topology.
    pub first_link: u32,
    /// Its number of links.
    pub links: u32,
    /// Transmission of the messages whose slowest link is one of these.
    pub transmission_ps: u64,
    /// Queueing for these links.
    pub queueing_ps: u64,
    /// The run time with twice the bandwidth on all links of the level, if that was simulated.
    pub runtime_if_twice_as_fast_ps: Option<u64>,
}

/// A link on the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalLink {
    /// Its ends.
    pub link: String,
    /// Its number in the topology.
    pub number: u32,
    /// Transmission of the messages whose slowest link this is.
    pub transmission_ps: u64,
    /// Queueing for the link.
    pub queueing_ps: u64,
    /// As that of its level, if this is the only link of it.
    pub runtime_if_twice_as_fast_ps: Option<u64>,
}

/// A task that computes on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalRank {
    /// The job.
    pub job: u32,
    /// Its task.
    pub task: u32,
    /// Computing on the path.
    pub computing_ps: u64,
}

/// Messages of a kind on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnPath {
    /// The kind.
    pub kind: Kind,
    /// Number of messages.
    pub messages: u64,
    /// Their time on the path.
    pub time_ps: u64,
}

/// A record as it was captured, as far as the trace tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    /// The MPI function that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The innermost phase of the program in which it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When it began in the captured run, from the return of its task's `MPI_Init` on, to within 10 µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_ps: Option<u64>,
}

/// A piece of the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum CriticalStep {
    /// A task computes.
    Computing {
        /// Start.
        from_ps: u64,
        /// End.
        to_ps: u64,
        /// The job.
        job: u32,
        /// Its task.
        task: u32,
        /// The record that starts at the end, from 0; absent at the end of the run.
        record: Option<u64>,
        /// The record as it was captured.
        #[serde(flatten)]
        captured: Captured,
    },
    /// A message is in the network.
    Message {
        /// Start.
        from_ps: u64,
        /// End.
        to_ps: u64,
        /// The job.
        job: u32,
        /// The task that sends.
        task: u32,
        /// Its record that sends the message, or that enters the collective; from 0.
        record: u64,
        /// The task that receives.
        to_task: u32,
        /// Payload.
        bytes: u64,
        /// Its kind.
        kind: Kind,
        /// Time in which the message waited for links.
        queueing_ps: u64,
        /// The record as it was captured.
        #[serde(flatten)]
        captured: Captured,
    },
}

impl CriticalPath {
    /// Its parts by name, in the order of their importance.
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("before the start", self.before_start_ps),
            ("computing", self.computing_ps),
            ("transmission", self.transmission_ps),
            ("queueing", self.queueing_ps),
            ("latency", self.latency_ps),
            ("overhead", self.overhead_ps),
            ("memory", self.memory_ps),
        ]
    }

    /// The length of the path: the run time.
    pub fn total_ps(&self) -> u64 {
        self.parts().iter().fold(0, |sum, (_, time)| sum.saturating_add(*time))
    }
}

impl CriticalStep {
    /// The job, task and number of its record, if it has one.
    pub fn record(&self) -> Option<(u32, u32, u64)> {
        match *self {
            Self::Computing { job, task, record, .. } => Some((job, task, record?)),
            Self::Message { job, task, record, .. } => Some((job, task, record)),
        }
    }

    /// Its record as it was captured.
    pub fn captured(&mut self) -> &mut Captured {
        match self {
            Self::Computing { captured, .. } | Self::Message { captured, .. } => captured,
        }
    }

    /// Start and end of the piece.
    pub fn span_ps(&self) -> (u64, u64) {
        match *self {
            Self::Computing { from_ps, to_ps, .. } | Self::Message { from_ps, to_ps, .. } => (from_ps, to_ps),
        }
    }

    /// Length of the piece.
    pub fn length_ps(&self) -> u64 {
        let (from, to) = self.span_ps();
        to.saturating_sub(from)
    }
}

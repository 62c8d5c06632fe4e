//! What a simulation is told: which traces run where, on what network, under which rules.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use placement::Placement;
use replay::{Job, SameNode, SendCompletion, Table};
use vef_format::operation::OpCodes;
use vef_format::units::{Bytes, Picos};

use crate::error::SimError;
use crate::loggp::LogGp;
use crate::model::{Links, Model, PacketSettings, Protocol, Weights};
use crate::routing::Routing;
use crate::topology::TopologySpec;
use crate::watch::Observe;

/// Everything that decides the outcome of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The traces that run on the network at the same time; at least one.
    pub jobs: Vec<Workload>,
    /// The network.
    pub network: NetworkSettings,
    /// When sends are complete for their senders.
    pub send_completion: SendCompletion,
    /// What carries messages between tasks of one node: the network, through the node's own links, or memory.
    pub same_node: SameNode,
    /// Which algorithm plays which collective operation.
    pub algorithms: Table,
    /// What to record besides the basic numbers.
    pub observe: Observe,
}

impl Settings {
    /// The same traces on a network in which no message waits for another, of the same links and latencies: shortest ways, and
    /// nothing recorded. A run on it takes no longer than on the network itself. `None` where the network is such a one.
    pub fn ideal(&self) -> Option<Self> {
        if matches!(self.network.model, Model::Latency | Model::LogGp) {
            return None;
        }
        let mut ideal = self.clone();
        ideal.network.model = Model::Latency;
        ideal.network.routing = Routing::default();
        ideal.observe = Observe::default();
        Some(ideal)
    }

    /// The same, with twice the bandwidth of a link, and nothing recorded.
    pub fn doubled(&self, link: u32) -> Self {
        let mut doubled = self.clone();
        doubled.network.doubled = Some(link);
        doubled.observe = Observe::default();
        doubled
    }
}

/// A network: its form, the speed of its links, and what messages do to each other.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// The form.
    pub topology: TopologySpec,
    /// The links.
    pub links: Links,
    /// What messages do to each other.
    pub model: Model,
    /// What the message library adds to that.
    pub protocol: Protocol,
    /// How messages share links, where the model has that.
    pub weights: Weights,
    /// What processors and interfaces do, where the model has these and nothing else.
    pub loggp: LogGp,
    /// How messages become packets, where the model has packets.
    pub packet: PacketSettings,
    /// Which way they take.
    pub routing: Routing,
    /// What random choices depend on.
    pub seed: u64,
    /// A link with twice its bandwidth, by its number in the topology: to see what that would change.
    pub doubled: Option<u32>,
}

impl Settings {
    /// Whether the replay is told when messages have left: as sends are complete then, or the model says itself when they are.
    pub(crate) fn sends_are_reported(&self) -> bool {
        self.send_completion == SendCompletion::WhenSent || self.network.model == Model::LogGp
    }
}

impl NetworkSettings {
    /// Bytes on a link for a message of `bytes`: with the headers of its packets, where there are packets.
    pub(crate) fn on_the_wire(&self, bytes: Bytes) -> Option<Bytes> {
        if self.model != Model::Packet {
            return Some(bytes);
        }
        let packets = bytes.0.div_ceil(self.packet.size.0.max(1)).max(1);
        packets.checked_mul(self.packet.header.0)?.checked_add(bytes.0).map(Bytes)
    }

    /// As large a message as a packet.
    pub(crate) fn message_of_one_packet(&self) -> Bytes {
        match self.model {
            Model::Packet => self.packet.size,
            _ => PacketSettings::default().size,
        }
    }
}

/// A trace to run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The file.
    pub trace: PathBuf,
    /// Where its tasks run.
    pub places: Places,
    /// When its tasks start.
    pub start: Picos,
    /// By what its computing times are multiplied.
    pub time_factor: f64,
    /// Whether to leave out what was before the end of each task's `MPI_Init`.
    pub from_init: bool,
    /// Codes of collectives in a trace in text, other than the default ones; a container has its own.
    pub op_codes: Option<OpCodes>,
}

impl Workload {
    /// A trace that starts at 0 with one task a node.
    pub fn new(trace: impl Into<PathBuf>) -> Self {
        let trace = trace.into();
        Self {
            trace,
            places: Places::default(),
            start: Picos::ZERO,
            time_factor: 1.0,
            from_init: false,
            op_codes: None,
        }
    }
}

/// Where the tasks of a trace run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// Task r on node `r / per_node`.
    Block {
        /// Tasks of a node.
        per_node: u32,
    },
    /// Task r on node `r mod nodes`.
    RoundRobin {
        /// Nodes that get tasks.
        nodes: u32,
    },
    /// Where they ran when the trace was captured, if it says so; hosts are numbered in the order of their first tasks.
    Captured,
    /// As a placement says; it may have more ranks than the trace has tasks.
    Given(Placement),
}

impl Default for Places {
    /// One task a node.
    fn default() -> Self {
        Self::Block { per_node: 1 }
    }
}

/// A text that is no rule of placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "placement rule {0:?}: write captured, or block:TASKS_PER_NODE or round-robin:NODES, with a number of at least 1"
)]
pub struct UnknownRule(pub String);

impl FromStr for Places {
    type Err = UnknownRule;

    /// `block` (one task a node), `block:TASKS_PER_NODE`, `round-robin:NODES` or `captured`.
    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let unknown = || UnknownRule(text.to_owned());
        if text.trim() == "captured" {
            return Ok(Self::Captured);
        }
        let (rule, number) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let digits = number.bytes().all(|b| b.is_ascii_digit());
        let number = match (rule, number) {
            ("block", "") if !text.contains(':') => 1,
            _ if !digits => return Err(unknown()),
            _ => number.parse().ok().filter(|&number| number > 0).ok_or_else(unknown)?,
        };
        match rule {
            "block" => Ok(Self::Block { per_node: number }),
            "round-robin" => Ok(Self::RoundRobin { nodes: number }),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { per_node } => write!(f, "block:{per_node}"),
            Self::RoundRobin { nodes } => write!(f, "round-robin:{nodes}"),
            Self::Captured => f.write_str("captured"),
            Self::Given(placement) => write!(f, "given for {} ranks", placement.ranks.len()),
        }
    }
}

impl Places {
    /// The node of each of the tasks of `job`.
    pub(crate) fn nodes(&self, job: &Job) -> Result<Vec<u32>, SimError> {
        match self {
            Self::Captured => job.captured_nodes()?.ok_or(SimError::NotCaptured),
            _ => self.nodes_of(job.tasks()),
        }
    }

    fn nodes_of(&self, tasks: u32) -> Result<Vec<u32>, SimError> {
        match self {
            Self::Captured => Err(SimError::NotCaptured),
            Self::Block { per_node: 0 } | Self::RoundRobin { nodes: 0 } => {
                Err(SimError::Placement(UnknownRule(self.to_string())))
            }
            Self::Block { per_node } => Ok((0..tasks).map(|task| task / per_node).collect()),
            Self::RoundRobin { nodes } => Ok((0..tasks).map(|task| task % nodes).collect()),
            // Too few of them are the replay's error.
            Self::Given(placement) => {
                Ok(placement.ranks.iter().take(tasks as usize).map(|place| place.node).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        assert_eq!("block".parse(), Ok(Places::Block { per_node: 1 }));
        assert_eq!("block:4".parse(), Ok(Places::Block { per_node: 4 }));
        assert_eq!("captured".parse(), Ok(Places::Captured));
        assert_eq!("round-robin:3".parse(), Ok(Places::RoundRobin { nodes: 3 }));
        for text in [
            "",
            "block:",
            "block:0",
            "block:+1",
            "round-robin",
            "round-robin:x",
            "cyclic:3",
            "block:99999999999",
        ] {
            assert!(text.parse::<Places>().is_err(), "{text}");
        }
        let nodes = |places: Places, tasks| places.nodes_of(tasks).unwrap();
        assert_eq!(nodes(Places::Block { per_node: 2 }, 5), [0, 0, 1, 1, 2]);
        assert_eq!(nodes(Places::RoundRobin { nodes: 2 }, 5), [0, 1, 0, 1, 0]);
        assert_eq!(nodes(Places::Given(Placement::round_robin(4, 3).unwrap()), 2), [0, 1]);
    }
}

//! What a simulation is told: which traces run where, on what network, under which rules.

use std::path::PathBuf;

use replay::{Job, SameNode, SendCompletion, Table};
use vef_format::operation::OpCodes;
use vef_format::units::{Bytes, Picos};

use crate::error::SimError;
use crate::loggp::LogGp;
use crate::model::{Links, Model, PacketSettings, Protocol, Weights};
use crate::places::Places;
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

    /// The node of each task of `job`, which replays this trace.
    pub(crate) fn nodes(&self, job: &Job) -> Result<Vec<u32>, SimError> {
        match self.places.nodes(job.tasks())? {
            Some(nodes) => Ok(nodes),
            None => job.captured_nodes()?.ok_or(SimError::NotCaptured),
        }
    }
}

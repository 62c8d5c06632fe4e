//! The settings of a simulation: which traces run on which nodes, on which network, by which rules.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use placement::Backfill;
use replay::{Job, LoadError, Part, SameNode, Selection, SendCompletion, Stream, Table};
use vef_format::format::Format;
use vef_format::operation::OpCodes;
use vef_format::units::{Bytes, Picos};

use crate::computing::ComputeScale;
use crate::error::SimError;
use crate::loggp::LogGp;
use crate::model::{
    Carrier, FlowSettings, LINKS_HEADING, LinkSpeed, Links, Model, PacketSettings, Protocol, Setup,
};
use crate::noise::ComputeNoise;
use crate::offload::Collectives;
use crate::places::Places;
use crate::presets::Preset;
use crate::quantity::Bandwidth;
use crate::repeats::Repeat;
use crate::routing::{Router, RoutingError, RoutingSpec};
use crate::topology::{Fabric, Fault, LinkId, Speed, TopologySpec};
use crate::traffic::Background;
use crate::watch::Observe;

/// All that determines the result of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The traces, at least one; they share the network. The nodes of placement rules are then some that no other job has, in the
    /// order of the jobs.
    pub jobs: Vec<Workload>,
    /// Jobs that arrive, by submission, each of which runs one of the traces, in place of one run of each ([`Settings::arrive`]).
    pub arrivals: Option<Arc<Vec<Arriving>>>,
    /// Which of them may overtake others.
    pub backfill: Backfill,
    /// Of the jobs, only this one runs, on the nodes that it has beside the others; without background traffic, and once.
    pub only: Option<u32>,
    /// Traffic beside the jobs.
    pub background: Option<Background>,
    /// The network.
    pub network: NetworkSettings,
    /// When a send is complete for the task that sends.
    pub send_completion: SendCompletion,
    /// The transport between tasks of one node: the network, over the node's own links, or memory.
    pub same_node: SameNode,
    /// The algorithm of each collective operation.
    pub algorithms: Table,
    /// How collectives are carried out.
    pub collectives: Collectives,
    /// Optional results to record.
    pub observe: Observe,
    /// Most threads of the run; 0 is 1. The result of a valid trace does not depend on it. Only the packet model uses several, from
    /// [`TASKS_PER_THREAD`] tasks per thread on, without optional results, and not with [`SendCompletion::Rendezvous`] or
    /// [`Protocol::returned`]: there an arrival takes effect at the other end at once.
    pub threads: u32,
}

/// Fewest tasks per thread.
pub const TASKS_PER_THREAD: usize = 500;

impl Settings {
    /// The same traces on the same links without contention: the latency model on the routes of tables, else on shortest ones, without
    /// optional results. `None` for models without contention, and where links change at times: no routes and speeds of one moment are a bound
    /// then, as later ones can be faster.
    pub fn ideal(&self) -> Option<Self> {
        let changes = self.network.fail.iter().any(Fault::has_times);
        if changes || !self.network.model.info().is_bounded_by_latency {
            return None;
        }
        Some(self.without_others(Model::Latency))
    }

    /// As [`Settings::ideal`], but messages wait for the link from their node to its switch.
    pub fn own_interfaces(&self) -> Option<Self> {
        self.ideal().map(|ideal| ideal.without_others(Model::Injection))
    }

    /// The same traces by a model in which messages do not meet each other in the network.
    fn without_others(&self, model: Model) -> Self {
        let mut alone = self.clone();
        alone.network.model = model;
        if alone.network.routing.tables().is_none() {
            alone.network.routing = RoutingSpec::default();
        }
        alone.observe = Observe::default();
        alone.background = None;
        alone
    }

    /// The same simulation of only one job, without optional results.
    pub fn alone(&self, job: u32) -> Self {
        Self { only: Some(job), arrivals: None, observe: Observe::default(), ..self.clone() }
    }

    /// The same simulation with twice the bandwidth on these links, without optional results.
    pub fn doubled(&self, links: Range<u32>) -> Self {
        let mut doubled = self.clone();
        doubled.network.doubled = links;
        doubled.observe = Observe::default();
        doubled
    }
}

/// A network, and its options on a command line. Those under a heading of a model ([`ModelInfo::options`](crate::model::ModelInfo))
/// have no effect in other models.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct NetworkSettings {
    /// Topology
    #[arg(long, default_value_t, value_name = "T")]
    pub topology: TopologySpec,
    /// Network model: what messages share
    #[arg(long, value_enum, default_value_t, value_name = "MODEL")]
    pub model: Model,
    /// Routing
    #[arg(long, default_value_t, value_name = "R", help_heading = LINKS_HEADING)]
    pub routing: RoutingSpec,
    /// Failed links, around which routes lead, or slower ones: FROM->TO (a link), A<->B (a cable), the name of a switch, or PERCENT%:SEED of the cables
    /// between switches; with =PERCENT% behind it that much of the bandwidth is left, with ` down TIME up TIME` (or down TIME) they fail or are slower for a time. May be repeated
    #[arg(long, value_name = "WHAT", help_heading = LINKS_HEADING)]
    pub fail: Vec<Fault>,
    /// Settings of a common network, for the options that are not given: hdr, ndr, slingshot, roce100, roce400 or cloud
    #[arg(long, value_name = "NAME")]
    pub preset: Option<&'static Preset>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Bandwidths and latencies.
    #[command(flatten)]
    pub links: Links,
    /// Parameters of the `loggp` model.
    #[command(flatten)]
    pub loggp: LogGp,
    /// Parameters of the flow model.
    #[command(flatten)]
    pub flow: FlowSettings,
    /// Parameters of the packet model.
    #[command(flatten)]
    pub packet: PacketSettings,
    /// Costs of the message library.
    #[arg(skip)]
    pub protocol: Protocol,
    /// Links that get twice their bandwidth, by their numbers in the topology.
    #[arg(skip)]
    pub doubled: Range<u32>,
}

impl NetworkSettings {
    /// The topology with its failures; `auto` gets `needed` nodes, and those that are `used` must reach each other.
    pub(crate) fn fabric(&self, needed: u32, used: impl Iterator<Item = u32>) -> Result<Fabric, SimError> {
        let fabric = self.topology.build(needed)?;
        if let Some(path) = self.routing.tables() {
            if !self.fail.is_empty() {
                return Err(SimError::Unsupported { what: "--routing table", with: "--fail" });
            }
            let named = |error| SimError::Table { path: path.to_owned(), error };
            return fabric.with_table(path).map_err(named);
        }
        if self.fail.is_empty() {
            return Ok(fabric);
        }
        let nodes = fabric.nodes();
        let (mut fabric, slower) = fabric.with_faults(&self.fail, used.filter(|node| *node < nodes))?;
        let mut shares: Vec<f64> = slower.iter().map(|(_, percent)| *percent).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        for share in shares {
            let speeds = self.links.speeds(&fabric);
            let links = slower.iter().filter(|(_, percent)| *percent == share).map(|(link, _)| *link);
            fabric.set_speeds(links, |class| {
                let LinkSpeed { latency, bandwidth } = speeds[usize::from(class.0)];
                Speed { latency: Some(latency), bandwidth: Some(bandwidth.scaled(share / 100.0)) }
            });
        }
        Ok(fabric)
    }

    /// The topology with its failures, all nodes of which are used.
    pub(crate) fn whole_fabric(&self) -> Result<Fabric, SimError> {
        let nodes = self.topology.build(1)?.nodes();
        self.fabric(1, 0..nodes)
    }

    /// The topology for tasks of which job, task and node are given.
    pub(crate) fn topology_for(&self, tasks: &[(u32, u32, u32)]) -> Result<Fabric, SimError> {
        let needed = tasks.iter().map(|&(_, _, node)| node).max().unwrap_or(0).saturating_add(1);
        let mut topology = self.fabric(needed, tasks.iter().map(|&(_, _, node)| node))?;
        let doubled = self.doubled.start..self.doubled.end.min(topology.links());
        let speeds = self.links.speeds(&topology);
        topology.set_speeds(doubled.map(LinkId), |class| {
            let LinkSpeed { latency, bandwidth } = speeds[usize::from(class.0)];
            let doubled = Bandwidth::from_bits_per_second(bandwidth.bits_per_second().saturating_mul(2));
            Speed { latency: Some(latency), bandwidth: doubled }
        });
        match tasks.iter().find(|&&(_, _, node)| node >= topology.nodes()) {
            Some(&(job, task, node)) => {
                let (name, nodes) = (self.topology.to_string(), topology.nodes());
                Err(SimError::TooFewNodes { topology: name, nodes, job, task, node })
            }
            None => Ok(topology),
        }
    }

    /// When sends are complete in the replay: [`Model::LogGp`] has a rule of its own, the other models have the rule that was chosen.
    pub fn send_completion(&self, chosen: SendCompletion) -> SendCompletion {
        match self.model.info().carrier {
            Carrier::Ranks => SendCompletion::LargeWhenSent { above: self.loggp.parameters.eager },
            Carrier::Links(_) => chosen,
        }
    }

    /// What the network of a model is built from.
    pub(crate) fn setup<'a>(
        &'a self,
        fabric: &'a Fabric,
        report_sent: bool,
    ) -> Result<Setup<'a>, RoutingError> {
        let router = Router::new(fabric, &*self.routing, self.seed)?;
        Ok(Setup { router, links: &self.links, flow: self.flow, packet: self.packet, report_sent })
    }

    /// Bytes on a link for a message of `bytes`, with the headers of packets.
    pub(crate) fn on_the_wire(&self, bytes: Bytes) -> Option<Bytes> {
        match self.model.info().has_packets {
            true => self.packets(bytes).checked_mul(self.packet.header.0)?.checked_add(bytes.0).map(Bytes),
            false => Some(bytes),
        }
    }

    /// Packets of a message; one in models without packets.
    pub(crate) fn packets(&self, bytes: Bytes) -> u64 {
        match self.model.info().has_packets {
            true => bytes.0.div_ceil(self.packet.size.0.max(1)).max(1),
            false => 1,
        }
    }

    /// The payload of a packet, or its default in models without packets.
    pub(crate) fn message_of_one_packet(&self) -> Bytes {
        match self.model.info().has_packets {
            true => self.packet.size,
            false => PacketSettings::default().size,
        }
    }
}

/// A job that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arriving {
    /// Its number in the list that it is from.
    pub number: u64,
    /// Which of [`Settings::jobs`] it runs.
    pub trace: u32,
    /// When it is submitted.
    pub submit: Picos,
    /// For how long it asks; only backfilling looks at it.
    pub time: Picos,
}

/// A trace and how it runs.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The trace file.
    pub trace: PathBuf,
    /// The nodes of its tasks.
    pub places: Places,
    /// Start of its tasks; with [`Workload::after`], so long after the end of that job.
    pub start: Picos,
    /// The job, by number, after whose last run it begins.
    pub after: Option<u32>,
    /// How often it runs.
    pub repeat: Repeat,
    /// Factors of its computing times.
    pub compute_scale: ComputeScale,
    /// The noise in its computing times, to which factors are then applied.
    pub compute_noise: ComputeNoise,
    /// Whether the time before each task's end of `MPI_Init` belongs to the run. By default it is left out if the trace records it.
    pub from_launch: bool,
    /// The part of its run that is simulated, if it is not all: [`Workload::select`].
    pub part: Option<Arc<Selection>>,
    /// Collective codes of a text trace that differ from the default; a container has its own.
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
            after: None,
            repeat: Repeat::default(),
            compute_scale: ComputeScale::default(),
            compute_noise: ComputeNoise::default(),
            from_launch: false,
            part: None,
            op_codes: None,
        }
    }

    /// Simulates only this part of its run.
    ///
    /// # Errors
    /// The trace cannot be read, or has no such part.
    pub fn select(&mut self, part: &Part) -> Result<(), SimError> {
        self.part = Some(Arc::new(self.open()?.select(part)?));
        Ok(())
    }

    /// The trace, opened for a replay of all of it.
    pub(crate) fn open(&self) -> Result<Job, SimError> {
        let Self { trace, op_codes, .. } = self;
        match op_codes {
            Some(codes) if !Format::is_container(trace).is_ok_and(|is_container| is_container) => {
                Ok(Job::stream(Stream::with_codes(trace, codes.clone()).map_err(LoadError::from)?))
            }
            _ => Ok(Job::open(trace)?),
        }
    }

    /// The node of each [placed task](Job::placed_tasks) of `job`, which replays this trace; those of rules are numbered from 0.
    pub(crate) fn nodes(&self, job: &Job) -> Result<Vec<u32>, SimError> {
        match self.places.nodes(job.placed_tasks())? {
            Some(nodes) => Ok(nodes),
            None => job.captured_nodes()?.ok_or(SimError::NotCaptured),
        }
    }
}

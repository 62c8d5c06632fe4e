//! The options of a simulated network, shared by `vef sim` and `vef traffic`.

use crate::output::Failure;
use clap::{Args, Parser};
use sim_example::NetworkSettings;
use sim_example::loggp::Rendezvous;
use sim_example::model::{Arbiter, Buffers, Model, Weights};
use sim_example::quantity::{parse_bytes, parse_time};
use sim_example::topology::TopologySpec;

/// Topologies, routings and models, for `--help`.
pub const WORDS: &str = "\
Topologies: auto (one switch), switch:NODES, fattree:LEAVESxNODESxSPINES, fattree:k=PORTS, karytree:KxLEVELS,
xgft:CHILDREN;PARENTS[;CABLES], torus:AxBxC[:NODES], mesh:AxBxC[:NODES], hyperx:AxB:NODES,
dragonfly:NODESxROUTERSxGLOBAL[xGROUPS][:palmtree|absolute|relative], file:NET.graphml|.dot|.txt.
Routing: minimal (in tori, meshes, HyperX also dor, in trees dmodk), ecmp:pair|message|packet, adaptive, valiant,
valiant:router, ugal[:BYTES].
Models: cut-through, store-and-forward, latency (no contention), packet (finite buffers, credits), flow (max-min shares of
links), loggp (no links; also runs GOAL schedules).
docs/simulator.md has the formulas.";

/// A network.
#[derive(Args, Clone, Debug)]
pub struct Network {
    /// Topology
    #[arg(long, default_value = "auto", value_name = "T")]
    pub topology: String,
    /// Network model
    #[arg(long, default_value = "cut-through", value_name = "MODEL")]
    pub model: String,
    /// Routing
    #[arg(long, default_value = "minimal", value_name = "R")]
    pub routing: String,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Bandwidth of a link
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE")]
    pub bandwidth: String,
    /// Latency of a link
    #[arg(long, default_value = "500ns", value_name = "TIME")]
    pub latency: String,
    /// Bandwidth of links between nodes and switches [default: --bandwidth]
    #[arg(long, value_name = "RATE")]
    pub node_bandwidth: Option<String>,
    /// Latency of links between nodes and switches [default: --latency]
    #[arg(long, value_name = "TIME")]
    pub node_latency: Option<String>,
    /// Bandwidth of links between groups of a dragonfly [default: --bandwidth]
    #[arg(long, value_name = "RATE")]
    pub global_bandwidth: Option<String>,
    /// Latency of links between groups of a dragonfly [default: --latency]
    #[arg(long, value_name = "TIME")]
    pub global_latency: Option<String>,
    /// Delay of a switch per message
    #[arg(long, default_value = "0ns", value_name = "TIME")]
    pub switch_delay: String,
    /// Time of a node's interface per message
    #[arg(long, default_value = "0ns", value_name = "TIME")]
    pub overhead: String,
    /// Model loggp: parameters in ns, ns per byte, and bytes (S) [default:
    /// L=2500,o=1500,g=1000,G=6,O=0,S=65535]
    #[arg(long, value_name = "L=…,o=…")]
    pub loggp: Option<String>,
    /// Model loggp: protocol of messages over S bytes: late (no handshake, as LogGOPSim) or handshake
    #[arg(long, default_value = "late", value_name = "HOW")]
    pub rendezvous: String,
    /// Model loggp: reproduce defects of LogGOPSim
    #[arg(long)]
    pub compat: bool,
    /// Model flow: shares of messages: equal, or latency (in inverse proportion to it, as SimGrid)
    #[arg(long, default_value = "equal", value_name = "HOW")]
    pub weights: String,
    /// Model packet: largest payload of a packet
    #[arg(long, default_value = "2KiB", value_name = "SIZE")]
    pub packet_size: String,
    /// Model packet: header of a packet
    #[arg(long, default_value = "0B", value_name = "SIZE")]
    pub packet_header: String,
    /// Model packet: buffer of a virtual channel [default: what the bandwidth of its link needs]
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// Model packet: virtual channels per link [default: what the routing needs, at least 2]
    #[arg(long, value_name = "N")]
    pub vcs: Option<u32>,
    /// Model packet: packets that may request a link: input (the head of each input channel) or output (all)
    #[arg(long, default_value = "input", value_name = "WHERE")]
    pub buffers: String,
    /// Model packet: speed of a switch's inside relative to its links, with one connection per input
    /// [default: one connection per channel, as fast as its link]
    #[arg(long, value_name = "TIMES")]
    pub speedup: Option<f64>,
    /// Model packet: arbiter of links: round-robin or age
    #[arg(long, default_value = "round-robin", value_name = "HOW")]
    pub arbiter: String,
    /// Model packet: time of a switch for a credit, besides the latency of the link
    #[arg(long, default_value = "0ns", value_name = "TIME")]
    pub credit_delay: String,
}

impl Network {
    /// Resolves the options.
    pub fn settings(&self) -> Result<NetworkSettings, Failure> {
        let mut network = NetworkSettings {
            topology: self.topology.parse()?,
            model: self.model.parse()?,
            routing: self.routing.parse()?,
            seed: self.seed,
            ..NetworkSettings::default()
        };
        let links = &mut network.links;
        links.bandwidth = self.bandwidth.parse()?;
        links.latency = parse_time(&self.latency)?;
        links.node_bandwidth = self.node_bandwidth.as_deref().map(str::parse).transpose()?;
        links.node_latency = self.node_latency.as_deref().map(parse_time).transpose()?;
        links.global_bandwidth = self.global_bandwidth.as_deref().map(str::parse).transpose()?;
        links.global_latency = self.global_latency.as_deref().map(parse_time).transpose()?;
        links.switch_delay = parse_time(&self.switch_delay)?;
        links.overhead = parse_time(&self.overhead)?;
        network.weights = match self.weights.as_str() {
            "equal" => Weights::Equal,
            "latency" => Weights::Latency,
            other => return Err(format!("--weights {other:?}: write equal or latency").into()),
        };
        let loggp = &mut network.loggp;
        if let Some(parameters) = &self.loggp {
            loggp.parameters = parameters.parse()?;
        }
        loggp.rendezvous = match self.rendezvous.as_str() {
            "late" => Rendezvous::Late,
            "handshake" => Rendezvous::Handshake,
            other => return Err(format!("--rendezvous {other:?}: write late or handshake").into()),
        };
        loggp.compat = self.compat;
        let packet = &mut network.packet;
        packet.size = parse_bytes(&self.packet_size)?;
        packet.header = parse_bytes(&self.packet_header)?;
        packet.buffer = self.buffer.as_deref().map(parse_bytes).transpose()?;
        packet.vcs = self.vcs;
        packet.buffers = match self.buffers.as_str() {
            "input" => Buffers::Input,
            "output" => Buffers::Output,
            other => return Err(format!("--buffers {other:?}: write input or output").into()),
        };
        packet.speedup = self.speedup;
        packet.arbiter = match self.arbiter.as_str() {
            "round-robin" => Arbiter::RoundRobin,
            "age" => Arbiter::Age,
            other => return Err(format!("--arbiter {other:?}: write round-robin or age").into()),
        };
        packet.credit_delay = parse_time(&self.credit_delay)?;
        Ok(network)
    }

    /// The options that were given other values than their defaults, or are `swept` over several values, though the model, or the topology, does not
    /// use them.
    pub fn without_effect(&self, swept: &[&str]) -> Result<Vec<&'static str>, Failure> {
        let settings = self.settings()?;
        let (model, default) = (settings.model, Self::of_no_options());
        let is_packet = model == Model::Packet;
        let has_links = model != Model::LogGp;
        let has_groups = has_links && has_groups(&settings.topology);
        let options = [
            ("--routing", self.routing != default.routing, has_links),
            ("--bandwidth", self.bandwidth != default.bandwidth, has_links),
            ("--latency", self.latency != default.latency, has_links),
            ("--node-bandwidth", self.node_bandwidth.is_some(), has_links),
            ("--node-latency", self.node_latency.is_some(), has_links),
            ("--global-bandwidth", self.global_bandwidth.is_some(), has_groups),
            ("--global-latency", self.global_latency.is_some(), has_groups),
            ("--switch-delay", self.switch_delay != default.switch_delay, has_links),
            ("--overhead", self.overhead != default.overhead, has_links),
            ("--loggp", self.loggp.is_some(), model == Model::LogGp),
            ("--rendezvous", self.rendezvous != default.rendezvous, model == Model::LogGp),
            ("--compat", self.compat, model == Model::LogGp),
            ("--weights", self.weights != default.weights, model == Model::Flow),
            ("--packet-size", self.packet_size != default.packet_size, is_packet),
            ("--packet-header", self.packet_header != default.packet_header, is_packet),
            ("--buffer", self.buffer.is_some(), is_packet),
            ("--vcs", self.vcs.is_some(), is_packet),
            ("--buffers", self.buffers != default.buffers, is_packet),
            ("--speedup", self.speedup.is_some(), is_packet),
            ("--arbiter", self.arbiter != default.arbiter, is_packet),
            ("--credit-delay", self.credit_delay != default.credit_delay, is_packet),
        ];
        let is_swept = |name: &str| swept.contains(&name.trim_start_matches('-'));
        let unused =
            options.into_iter().filter(|&(name, is_given, is_used)| !is_used && (is_given || is_swept(name)));
        Ok(unused.map(|(name, ..)| name).collect())
    }

    /// Refuses options without effect.
    pub fn all_have_effect(&self) -> Result<(), Failure> {
        let unused = self.without_effect(&[])?;
        match unused.is_empty() {
            true => Ok(()),
            false => {
                let (model, topology) = (&self.model, &self.topology);
                let names = unused.join(", ");
                Err(format!("{names}: no effect with --model {model} and --topology {topology}").into())
            }
        }
    }

    fn of_no_options() -> Self {
        #[derive(Parser)]
        struct Alone {
            #[command(flatten)]
            network: Network,
        }
        Alone::parse_from(["vef"]).network
    }
}

/// Whether a topology has global links.
fn has_groups(topology: &TopologySpec) -> bool {
    match topology {
        TopologySpec::Known(topology) => topology.switches_per_group().is_some(),
        TopologySpec::Auto | TopologySpec::File(_) => false,
    }
}

//! The arguments of commands that simulate or make traces: `sim`, `traffic`, `gen`.

use std::path::PathBuf;

use clap::Args;

use crate::input::Input;
use crate::network::{self, Network};
use crate::output::written;

#[derive(Args, Clone, Debug)]
#[command(after_help = format!("\
{}

Examples:
  vef sim app.vef
  vef sim app.vef --topology fattree:4x8x2 --bandwidth 100Gbit/s --placement block:4
  vef sim app.vef --topology torus:4x4x4 --placement app.placement.toml --json
  vef sim app.vef --topology fattree:4x8x2 --critical-path # what bounds the run time
  vef sim app.vef --topology torus:4x4x4 --csv links       # every link, as a table
  vef sim app.vef --sweep 'topology=torus:4x4|fattree:4x4x2' --sweep bandwidth=10G,25G,100G -o points
  mpirun -n 8 vef sim app.vef --sweep latency=100ns,1us,10us --sweep model=cut-through,packet -o points --csv
  vef sim app.vef --topology dragonfly:2x4x2 --routing ugal --model packet", network::WORDS))]
pub struct Sim {
    /// The trace, or a GOAL schedule (with --model loggp); - is the standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    #[command(flatten)]
    pub network: Network,
    /// Which rank sits where: a placement file, block, block:RANKS_PER_NODE, round-robin:NODES, or captured (where the
    /// container TRACE says that it ran)
    #[arg(long, default_value = "block", value_name = "FILE|RULE")]
    pub placement: String,
    /// Measured links, overheads and limits of nodes (vef bench calibrate): node bandwidth, latency and overhead, burst, eager
    /// limit, messages within a node; what is given beside it stays. --bandwidth and --latency are those between switches
    #[arg(long, value_name = "FILE.toml")]
    pub calibration: Option<PathBuf>,
    /// Computing times of the trace are multiplied by this
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub compute_scale: f64,
    /// Leave out what was before the end of each rank's MPI_Init, by a container that vef mix wrote
    #[arg(long)]
    pub from_init: bool,
    /// When a send is complete for its sender: eager, sent, rendezvous:BYTES
    #[arg(long, default_value = "eager", value_name = "POLICY")]
    pub send_completion: String,
    /// What carries messages within a node: network, or LATENCY,BANDWIDTH
    #[arg(long, default_value = "network", value_name = "HOW")]
    pub same_node: String,
    /// Which algorithms play collectives: default, openmpi, mpich, nccl, or a table's file
    #[arg(long, default_value = "default", value_name = "TABLE")]
    pub algorithms: String,
    /// Codes of collectives in the trace, other than the default ones (a `code name` line each)
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Run all combinations of these values of an option, one after the other on every core, and show one table. Values are separated by
    /// commas, or by | if there is one: bandwidth=10G,25G. A rate or size may lack its bit/s or B
    #[arg(long, value_name = "OPTION=VALUES")]
    pub sweep: Vec<String>,
    /// Of a sweep: the directory that keeps each point's result. A point that is there is not run again; processes that are given
    /// the same one (by mpirun, srun, or by hand) share the points
    #[arg(short, long, value_name = "DIR", requires = "sweep")]
    pub output: Option<PathBuf>,
    /// Of a sweep: points at a time [default: all cores; 1 for each process of mpirun or srun]
    #[arg(short = 'j', long, value_name = "N", requires = "sweep", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Record every link: bytes, busy and blocked share over time, who shares it (for --json; --csv links, time and sources)
    #[arg(long)]
    pub links: bool,
    /// Say which computing, messages and links bound the run time, and what it would be were the first of these links twice as
    /// fast (by another run)
    #[arg(long)]
    pub critical_path: bool,
    /// Draw the network, its cables in the colours of their utilisation, into this file
    #[arg(long, value_name = "OUT.svg", conflicts_with = "sweep")]
    pub draw: Option<PathBuf>,
    /// Leave out the run without contention, which goes along on another core
    #[arg(long)]
    pub no_ideal: bool,
    /// Also write a page about the trace and this simulation, as vef report does
    #[arg(long, value_name = "FILE.html", conflicts_with = "sweep")]
    pub report: Option<PathBuf>,
    /// The report as JSON
    #[arg(long)]
    pub json: bool,
    /// A table of the report as CSV: ranks, kinds, sizes, links, time (links over time), or sources (of links); of a sweep, its
    /// table
    #[arg(long, value_name = "TABLE", conflicts_with = "json", num_args = 0..=1, default_missing_value = "points")]
    pub csv: Option<Table>,
}

/// A table of a simulation's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Table {
    /// What each rank did with its time
    Ranks,
    /// Messages and latency by operation
    Kinds,
    /// Latency by size
    Sizes,
    /// Every link
    Links,
    /// Every link over time
    Time,
    /// Who shares each link
    Sources,
    /// The points of a sweep
    Points,
}

impl Table {
    /// Whether every link is to be recorded for it.
    pub fn needs_links(self) -> bool {
        matches!(self, Self::Links | Self::Time | Self::Sources)
    }
}

#[derive(Args, Debug)]
#[command(after_help = format!("\
Nodes hand messages over at the given rate for ever, whatever the network does. Latency counts from handing over; the
interval is that of the mean at 95 %. Accepted is what arrives at a node in the mean, worst at the node at which least
does. Where less is accepted than offered the network is saturated: latency means nothing there.

Patterns: uniform, transpose, tornado, bitcomp, neighbor, adversarial (the nodes of the next group, or switch), incast,
permutation.
{}

Examples:
  vef traffic --topology torus:8x8 --pattern uniform
  vef traffic --topology dragonfly:2x4x2 --routing ugal --pattern adversarial --load 0.05:0.5:0.05
  vef traffic --topology fattree:k=8 --routing ecmp:packet --load 0.5,0.8,0.9,1 --vcs 4 --json", network::WORDS))]
pub struct Traffic {
    #[command(flatten)]
    pub network: Network,
    /// Who sends to whom
    #[arg(long, default_value = "uniform", value_name = "P")]
    pub pattern: String,
    /// Shares of the bandwidth of a node's link: FROM:TO:STEP, or a list
    #[arg(long, default_value = "0.1:1:0.1", value_name = "LOADS")]
    pub load: String,
    /// Bytes of a message [default: one packet]
    #[arg(long, value_name = "SIZE")]
    pub message: Option<String>,
    /// When messages are handed over: bernoulli (in each message's time with the same probability) or poisson
    #[arg(long, default_value = "bernoulli", value_name = "HOW")]
    pub arrivals: String,
    /// Messages' times before it is measured
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub warm_up: u32,
    /// Messages' times while it is measured
    #[arg(long, default_value_t = 3000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub measured: u32,
    /// Loads simulated at a time [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// The points as JSON
    #[arg(long)]
    pub json: bool,
    /// The points as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Patterns, per iteration: ring (to the next), halo2d and halo3d (exchange with 4 or 6 neighbours), alltoall, allreduce, \
random (to a random other rank), incast (all to rank 0, which lets them go on), sweep (a wavefront from each corner in \
turn), fft (Alltoall in rows, then in columns), training (micro-batches through a pipeline and back, an Allreduce of each \
in the tensor group, one of the gradients among the replicas).

Examples:
  vef gen halo3d -n 4096 -o halo.vefx --bytes 64KiB --compute 200us --imbalance 0.1
  vef gen training --parallel 4,8,2 -o step.vefx --bytes 16MiB --gradient 512MiB --micro-batches 8
  vef gen random -n 64 -o - | vef sim - --topology fattree:k=8")]
pub struct Gen {
    /// Who talks to whom
    #[arg(value_name = "PATTERN")]
    pub pattern: String,
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", visible_alias = "np", value_name = "N", required_unless_present_any = ["grid", "parallel"], value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// The trace to write: a container if its name ends in .vefx, else text; - is the standard output
    #[arg(short, long, value_name = "OUT", value_parser = written)]
    pub output: PathBuf,
    /// Bytes of a message, or of each rank's block in a collective
    #[arg(long, default_value = "8KiB", value_name = "SIZE")]
    pub bytes: String,
    /// How often the pattern is repeated
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub iterations: u32,
    /// Computing of a rank in an iteration
    #[arg(long, default_value = "10us", value_name = "TIME")]
    pub compute: String,
    /// Computing differs between ranks by up to this share
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub imbalance: f64,
    /// Computing differs from time to time by up to this share
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub noise: f64,
    /// What is random depends on this
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// halo2d, halo3d, sweep, fft: ranks in each direction, AxB or AxBxC [default: the squarest grid]
    #[arg(long, value_name = "AxB", conflicts_with = "ranks")]
    pub grid: Option<String>,
    /// training: replicas, ranks of a tensor group, stages of the pipeline [default: RANKS,1,1]
    #[arg(long, value_name = "D,T,P", conflicts_with_all = ["ranks", "grid"])]
    pub parallel: Option<String>,
    /// training: micro-batches of a step
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub micro_batches: u32,
    /// training: gradients of a rank
    #[arg(long, default_value = "64MiB", value_name = "SIZE")]
    pub gradient: String,
    /// Compress the container's blocks (zstd)
    #[arg(long)]
    pub compress: bool,
}

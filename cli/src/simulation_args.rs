//! The arguments of `sim` and `traffic`.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use crate::groups::{CapturedTime, OfRun};
use crate::input::Input;
use crate::network::{self, LinkNetwork, Network};
use crate::output::{TIMELINE, TIMELINE_ADVICE, Written, WrittenDirectory};
use placement::Backfill;
use replay::{Link, Part, SameNode, SendCompletion};
use sim_example::model::PACKET_HEADING;
use sim_example::quantity::{Bandwidth, parse_bytes, parse_time};
use sim_example::topology::TopologySpec;
use sim_example::traffic::{Background, BackgroundError};
use sim_example::tune::OPERATIONS;
use sim_example::{Collectives, Picos, RULES};
use vef_format::nearest::did_you_mean;
use vef_format::operation::Operation;

/// The heading of options that say how simulations run and what of their results is shown: they cannot be swept.
pub const RUNS_AND_RESULTS: &str = "Runs and results";

/// Options of `vef sim` that `-h` lists; `--help` lists all.
const USUAL_OF_SIM: [&str; 24] = [
    "trace",
    "others",
    "placement",
    "calibration",
    "compute_scale",
    "phase",
    "iterations",
    "send_completion",
    "topology",
    "model",
    "routing",
    "preset",
    "bandwidth",
    "latency",
    "sweep",
    "output",
    "links",
    "critical_path",
    "waits",
    "draw",
    "timeline",
    "report",
    "json",
    "csv",
];

/// The same of `vef traffic`.
const USUAL_OF_TRAFFIC: [&str; 14] = [
    "topology",
    "model",
    "routing",
    "preset",
    "bandwidth",
    "latency",
    "pattern",
    "sizes",
    "load",
    "saturation",
    "seeds",
    "vcs",
    "json",
    "csv",
];

/// Replay a trace on a simulated network
#[derive(Args, Clone, Debug)]
#[command(mut_args(|option| listed_by_h(option, &USUAL_OF_SIM)))]
#[command(after_help = "\
Examples:
  vef sim app.vef
  vef sim app.vef --topology fattree:4x8x2 --bandwidth 100Gbit/s --placement block:4
  vef sim app.vef --topology torus:4x4x4 --preset ndr --critical-path
  vef sim app.vef --sweep 'topology=torus:4x4|fattree:4x4x2' --sweep bandwidth=10G,25G,100G

All options, topologies, routings and presets: vef sim --help")]
#[command(after_long_help = format!("\
{}

Examples:
  vef sim app.vef
  vef sim app.vef --topology fattree:4x8x2 --bandwidth 100Gbit/s --placement block:4
  vef sim app.vef --topology torus:4x4x4 --placement app.placement.toml --json
  vef sim app.vef --topology fattree:4x8x2 --critical-path # what determines the run time
  vef sim app.vef --topology torus:4x4x4 --csv links       # every link, as a table
  vef sim app.vefx --topology torus:4x4 --timeline app.pftrace # what each rank waits for, and when
  vef sim app.vef --sweep 'topology=torus:4x4|fattree:4x4x2' --sweep bandwidth=10G,25G,100G -o points
  mpirun -n 8 vef sim app.vef --sweep latency=100ns,1us,10us --sweep model=cut-through,packet -o points --csv
  vef sim app.vef --topology dragonfly:2x4x2 --routing ugal --model packet
  vef sim a.vefx b.vefx --topology dragonfly:2x4x2 --place b=random --repeat b=until:a   # how much b slows a down
  vef sim app.vef --topology torus:8x8 --background uniform@0.3
  vef sim a.vefx b.vefx --topology torus:8x8 --arrivals jobs.swf --arrival-second 1ms --csv arrivals
  vef sim app.vef --preset ndr --topology clos:64x2 --tune allreduce,alltoall --tuned rules", network::forms(true)))]
pub struct Sim {
    /// Trace, also of another tool (docs/interchange.md), or the directory of a capture; a GOAL schedule runs as it is with --model loggp; - is
    /// standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// The options that a sweep has set.
    #[arg(skip)]
    pub swept: Vec<String>,
    /// Further traces, which run beside the first as jobs of their own
    #[arg(value_name = "TRACE", value_parser = Input::argument, help_heading = RUNS_AND_RESULTS)]
    pub others: Vec<PathBuf>,
    #[arg(long, default_value = "block", value_name = "FILE|RULE", help = format!("Placement of ranks: a placement file, or {RULES}: random draws \
        nodes by --seed, captured are the hosts of the capture (only for containers). With several traces, each gets nodes that no other has, \
        unless placement files say otherwise"))]
    pub placement: String,
    /// Placement of one of several traces, by name (without directory and suffix) or number (from 0), as --placement;
    /// may be repeated
    #[arg(long, value_name = "JOB=FILE|RULE")]
    pub place: Vec<String>,
    /// Start of one of several traces: a time, or after another is over, by a delay; may be repeated
    #[arg(long, value_name = "JOB=TIME|JOB=after:JOB[+TIME]")]
    pub start: Vec<String>,
    /// Run a trace several times, each time when it is over, or until another is over; may be repeated
    #[arg(long, value_name = "JOB=TIMES|JOB=until:JOB")]
    pub repeat: Vec<String>,
    /// Jobs that arrive, from a file in the Standard Workload Format: each runs the trace that has as many ranks as the job has processors, on nodes that
    /// it gets when it starts, first come, first served: the first free ones, or random ones with --placement random
    #[arg(long, value_name = "FILE.swf", conflicts_with_all = ["start", "repeat", "class", "background", "critical_path", "waits", "timeline", "report", "tune"])]
    pub arrivals: Option<PathBuf>,
    /// With --arrivals: the trace that jobs with this number of an executable run, by name or number; may be repeated
    #[arg(long, value_name = "EXECUTABLE=JOB", requires = "arrivals")]
    pub program: Vec<String>,
    /// With --arrivals: how long a second of its submit times is in the simulation
    #[arg(long, value_name = "TIME", requires = "arrivals", default_value = "1s", value_parser = parse_time)]
    pub arrival_second: Picos,
    /// With --arrivals: jobs that may overtake others that wait: none, or easy: those that are over before the first one that waits can have its nodes,
    /// by the times that jobs request, or need none of them
    #[arg(
        long,
        value_name = "POLICY",
        value_enum,
        requires = "arrivals",
        default_value_t,
        hide_possible_values = true
    )]
    pub backfill: Backfill,
    /// Traffic of all nodes beside the traces, as long as these run: a pattern of vef traffic and a share of the bandwidth of
    /// a node's link, such as uniform@0.3
    #[arg(long, default_value = "none", value_name = "PATTERN@LOAD", value_parser = background)]
    pub background: std::option::Option<Background>,
    /// A class of traffic with a weight, by which classes share each link (--model packet): a job, as in --place, background, or collectives
    /// (those messages of all jobs). All else is a class of weight 1. May be repeated
    #[arg(long, value_name = "JOB=WEIGHT|background=WEIGHT|collectives=WEIGHT", help_heading = PACKET_HEADING)]
    pub class: Vec<String>,
    /// Measured parameters (vef bench calibrate): node bandwidth, latency and overhead, burst, eager limit,
    /// messages within a node. Options given beside it take precedence; --bandwidth and --latency then apply
    /// between switches only
    #[arg(long, value_name = "FILE.toml")]
    pub calibration: Option<PathBuf>,
    /// Multiply computing times by this factor, or by those of a list such as 0-3=0.5,7=2 (1.2,7=2: all others by
    /// 1.2), or of a file with such items
    #[arg(long, value_name = "FACTOR|RANKS=FACTOR,…|FILE", default_value = "1")]
    pub compute_scale: String,
    /// Noise in computing times: captured, removed (each repetition of a place in the program takes its median
    /// time), removed:QUANTILE, resampled (the median times a random deviation of the trace, by --seed), or
    /// resampled:TRACE (of another trace)
    #[arg(long, value_name = "MODEL", default_value = "captured")]
    pub compute_noise: String,
    #[command(flatten)]
    pub of_run: OfRun,
    #[command(flatten)]
    pub captured_time: CapturedTime,
    /// Completion of sends for their sender: eager (at once), sent (when they have left their node), rendezvous:BYTES (above that
    /// size when they have arrived), rendezvous-in-calls:BYTES (the same, and they leave when their receiver is in a call of MPI)
    #[arg(long, default_value = "eager", value_name = "POLICY", value_parser = send_completion)]
    pub send_completion: SendCompletion,
    /// Messages within a node: memory (times of the calibration or, without one, of a common server), network (as all
    /// others), or LATENCY,BANDWIDTH
    #[arg(long, default_value = "memory", value_name = "HOW", value_parser = same_node)]
    pub same_node: SameNode,
    /// Algorithms of collectives: default, openmpi, mpich, nccl, or the file of a table
    #[arg(long, default_value = "default", value_name = "TABLE")]
    pub algorithms: String,
    /// Collectives as messages, or offload:LATENCY: the network carries them out itself (reductions in switches, multicast). The operations
    /// are barrier, bcast, reduce and allreduce; with ,ops=NAME+NAME… others, with ,bytes=FROM-TO ,ranks=FROM-TO ,comms=N+N… only some
    #[arg(long, default_value_t, value_name = "HOW")]
    pub collectives: Collectives,
    /// File with the codes of collectives in the trace, one `code name` per line
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    #[command(flatten)]
    pub network: Network,
    /// Simulate all combinations of these values, on all cores, and show one table; may be repeated. Values
    /// are separated by commas, or by | if there is one: bandwidth=10G,25G; A..B are numbers: seed=1..20, whose mean run time is shown with
    /// its 95 % confidence interval
    #[arg(long, value_name = "OPTION=VALUES", help_heading = RUNS_AND_RESULTS)]
    pub sweep: Vec<String>,
    /// Instead of the trace, simulate the algorithms of these collectives (allreduce, alltoall, allgather, bcast, reduce, barrier) between its
    /// ranks, by message size, and show which is the fastest in Open MPI, MPICH and NCCL
    #[arg(long, value_name = "OPERATION,…", help_heading = RUNS_AND_RESULTS, value_delimiter = ',', value_parser = tuned, conflicts_with_all = ["sweep", "output", "cost", "plot", "json", "again"])]
    pub tune: Vec<Operation>,
    /// With --tune: directory for openmpi.rules, nccl.csv and mpich.json, by which these use the fastest
    #[arg(long, value_name = "DIR", help_heading = RUNS_AND_RESULTS, requires = "tune", value_parser = WrittenDirectory::of("--tuned names a directory, which gets openmpi.rules, nccl.csv and mpich.json"))]
    pub tuned: Option<WrittenDirectory>,
    /// With --tuned: MPICH's library (libmpich.so.12, libmpi.so.12), of which mpich.json has the rules for all else
    #[arg(long, value_name = "FILE", help_heading = RUNS_AND_RESULTS, requires = "tuned")]
    pub mpich_library: Option<PathBuf>,
    /// With --sweep: directory for the results. Points with a result are not run again; processes that use
    /// the same directory (under mpirun, srun, or started by hand) share the points
    #[arg(help_heading = RUNS_AND_RESULTS, short, long, value_name = "DIR", requires = "sweep", value_parser = WrittenDirectory::of("-o names a directory for the results of a sweep; --json and --csv print a result"))]
    pub output: Option<WrittenDirectory>,
    /// With --sweep: prices of the network's parts, for a column of costs: a TOML file with switch, port, cable (between switches),
    /// node_cable and interface
    #[arg(help_heading = RUNS_AND_RESULTS, long, value_name = "FILE.toml", requires = "sweep")]
    pub cost: Option<PathBuf>,
    /// With --sweep: draw the run times to this file, a curve for each combination of all options but the one with most values
    #[arg(help_heading = RUNS_AND_RESULTS, long, value_name = "OUT.svg", requires = "sweep", value_parser = Written::kind(&["svg"], "--plot writes SVG; name it so"))]
    pub plot: Option<Written>,
    /// With --sweep: concurrent points [default: all cores; 1 per process under mpirun or srun]. Else, with --model packet: threads, of
    /// at least 500 ranks each, that divide the network [default: 1]; the result is the same (one thread runs --links,
    /// --critical-path, --draw, --report and rendezvous)
    #[arg(help_heading = RUNS_AND_RESULTS, short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Record all links: bytes, busy and blocked shares over time, tasks that share them (for --json; --csv
    /// links, time, sources, job-links)
    #[arg(help_heading = RUNS_AND_RESULTS, long)]
    pub links: bool,
    /// Report the computing, messages and links that determine the run time, and simulate the run with twice
    /// the bandwidth on all links of the level (nodes, uplinks, a dimension) with most time on that path; of a sweep
    /// with --json alone
    #[arg(help_heading = RUNS_AND_RESULTS, long)]
    pub critical_path: bool,
    /// Report who waits for whom and why: late senders and receivers, late members of collectives, messages under way; by function and phase, and
    /// by pair of ranks (--csv waits, wait-pairs)
    #[arg(help_heading = RUNS_AND_RESULTS, long)]
    pub waits: bool,
    /// Draw the network to this file, with cables coloured by utilisation
    #[arg(help_heading = RUNS_AND_RESULTS, long, value_name = "OUT.svg", conflicts_with = "sweep", value_parser = Written::kind(&["svg"], "--draw writes SVG; name it so"))]
    pub draw: Option<Written>,
    /// Draw what the ranks do in the simulation to this file for a trace viewer (ui.perfetto.dev; Chrome's events if it ends in .json):
    /// waits by cause, collectives, messages; docs/timeline.md
    #[arg(help_heading = RUNS_AND_RESULTS, long, value_name = "OUT.pftrace", conflicts_with = "sweep", value_parser = Written::kind(TIMELINE, TIMELINE_ADVICE))]
    pub timeline: Option<Written>,
    /// Skip the runs for comparison: the one without contention, which runs concurrently on another core, and with several
    /// traces or background traffic those of each trace alone
    #[arg(help_heading = RUNS_AND_RESULTS, long)]
    pub no_ideal: bool,
    /// Also write a page about the trace and this simulation, as vef report does
    #[arg(help_heading = RUNS_AND_RESULTS, long, value_name = "FILE.html", conflicts_with = "sweep", value_parser = Written::kind(&["html", "htm"], PAGE_ADVICE))]
    pub report: Option<Written>,
    /// Run again what made this result of vef sim --json, with its settings, but for options and traces given beside this
    #[arg(help_heading = RUNS_AND_RESULTS, long, value_name = "RESULT.json", conflicts_with = "sweep")]
    pub again: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(help_heading = RUNS_AND_RESULTS, long)]
    pub json: bool,
    /// Print one table of the report as CSV: jobs, arrivals, ranks, kinds, sizes, links, time (links over time), sources
    /// (tasks by link), job-links (jobs by link), waits, wait-pairs; with --sweep its table
    #[arg(help_heading = RUNS_AND_RESULTS, long, value_name = "TABLE", conflicts_with = "json", num_args = 0..=1, default_missing_value = "points")]
    pub csv: Option<Table>,
}

impl Sim {
    /// The part of the run that is given.
    pub fn part(&self) -> Option<Part> {
        self.of_run.part(&self.captured_time)
    }

    /// Whether waits for sends that the trace has as computing stay: a calibration has an eager limit.
    pub fn counts_send_waits(&self) -> bool {
        self.send_completion == SendCompletion::Eager && self.calibration.is_none()
    }

    /// `--class`, if it is given to a model that has no classes.
    pub fn class_without_effect(&self) -> Option<String> {
        let is_unused = !self.class.is_empty() && !self.network.settings.model.info().has_packets;
        is_unused.then(|| "--class".to_owned())
    }

    /// The options given that say how a trace runs.
    pub fn of_traces(&self) -> Vec<&'static str> {
        let options = [
            ("--topology", !matches!(self.network.settings.topology, TopologySpec::Auto)),
            ("further traces", !self.others.is_empty()),
            ("--placement", self.placement != "block"),
            ("--place", !self.place.is_empty()),
            ("--start", !self.start.is_empty()),
            ("--repeat", !self.repeat.is_empty()),
            ("--arrivals", self.arrivals.is_some()),
            ("--background", self.background.is_some()),
            ("--class", !self.class.is_empty()),
            ("--calibration", self.calibration.is_some()),
            ("--compute-scale", self.compute_scale != "1"),
            ("--compute-noise", self.compute_noise != "captured"),
            ("--from-launch", self.of_run.from_launch),
            ("--phase, --iterations, --from, --to", self.part().is_some()),
            ("--send-completion", self.send_completion != SendCompletion::Eager),
            ("--same-node", self.same_node != SameNode::default()),
            ("--collectives", self.collectives != Collectives::Messages),
            ("--algorithms", self.algorithms != "default"),
            ("--op-codes", self.op_codes.is_some()),
            ("-j", self.jobs.is_some()),
            ("--links", self.links),
            ("--critical-path", self.critical_path),
            ("--waits", self.waits),
            ("--draw", self.draw.is_some()),
            ("--timeline", self.timeline.is_some()),
            ("--report", self.report.is_some()),
            ("--csv", self.csv.is_some()),
            ("--tune", !self.tune.is_empty()),
        ];
        options.into_iter().filter(|&(_, is_given)| is_given).map(|(name, _)| name).collect()
    }
}

/// An option of a command that `-h` lists if it is `usual`.
fn listed_by_h(option: Arg, usual: &[&str]) -> Arg {
    let is_usual = usual.contains(&option.get_id().as_str()) || option.get_id() == "help";
    option.hide_short_help(!is_usual)
}

/// What to do for a `--report` that is no page.
const PAGE_ADVICE: &str = "--report writes an HTML page; write --json > RESULT.json, then vef report TRACE --sim RESULT.json --pdf FILE \
                           (or --svg DIR)";

/// When sends are complete: eager, sent, rendezvous:BYTES, rendezvous-in-calls:BYTES.
///
/// # Errors
/// What to write.
pub fn send_completion(text: &str) -> Result<SendCompletion, String> {
    let (policy, above) = match text.split_once(':') {
        Some((policy, above)) => (policy, Some(parse_bytes(above).map_err(|error| error.to_string())?)),
        None => (text, None),
    };
    match (policy, above) {
        ("eager", None) => Ok(SendCompletion::Eager),
        ("sent", None) => Ok(SendCompletion::WhenSent),
        ("rendezvous", Some(above)) => Ok(SendCompletion::Rendezvous { above }),
        ("rendezvous-in-calls", Some(above)) => Ok(SendCompletion::RendezvousInCalls { above }),
        _ => {
            let meant = did_you_mean(policy, ["eager", "sent", "rendezvous", "rendezvous-in-calls"]);
            Err(format!("{meant}write eager, sent, rendezvous:BYTES or rendezvous-in-calls:BYTES"))
        }
    }
}

/// Traffic beside the traces: none, or PATTERN@LOAD.
fn background(text: &str) -> Result<Option<Background>, BackgroundError> {
    if text == "none" { Ok(None) } else { text.parse().map(Some) }
}

fn tuned(text: &str) -> Result<Operation, String> {
    let known = OPERATIONS.into_iter().find(|operation| operation.key() == text);
    let keys = OPERATIONS.map(Operation::key);
    known.ok_or_else(|| format!("{}write {}", did_you_mean(text, keys), keys.join(", ")))
}

fn saturation_step(text: &str) -> Result<f64, String> {
    let step = text.parse().ok().filter(|step| (0.0001..=0.5).contains(step));
    step.ok_or_else(|| "write a load from 0.0001 to 0.5".to_owned())
}

/// What happens to messages within a node: memory, network, LATENCY,BANDWIDTH.
///
/// # Errors
/// What to write, or that a part is invalid.
pub fn same_node(text: &str) -> Result<SameNode, String> {
    let link = |latency: &str, bandwidth: &str| -> Result<Link, String> {
        let time = parse_time(latency).map_err(|error| format!("{latency:?}: {error}"))?;
        let speed: Bandwidth = bandwidth.parse().map_err(|error| format!("{bandwidth:?}: {error}"))?;
        Link::new(time, speed.bits_per_second()).map_err(|error| error.to_string())
    };
    match text.split_once(',') {
        None if text == "memory" => Ok(SameNode::default()),
        None if text == "network" => Ok(SameNode::ViaNetwork),
        Some((latency, bandwidth)) => link(latency, bandwidth).map(|link| SameNode::Inside(link.into())),
        None => Err("write memory, network or LATENCY,BANDWIDTH".to_owned()),
    }
}

/// A table of a simulation's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Table {
    /// Run time of each job, alone and beside the others
    Jobs,
    /// Wait and run time of each job of --arrivals
    Arrivals,
    /// Time of each rank by state
    Ranks,
    /// Messages and latency by operation
    Kinds,
    /// Latency by message size
    Sizes,
    /// All links
    Links,
    /// All links over time
    Time,
    /// Bytes of tasks on each link
    Sources,
    /// Bytes of jobs on each link
    JobLinks,
    /// Waits by cause, function and phase
    Waits,
    /// Waits by pair of ranks
    WaitPairs,
    /// Points of a sweep
    Points,
}

impl Table {
    /// As it is written.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Whether the table needs a record of waits.
    pub fn needs_waits(self) -> bool {
        matches!(self, Self::Waits | Self::WaitPairs)
    }

    /// Whether the table needs a record of all links.
    pub fn needs_links(self) -> bool {
        matches!(self, Self::Links | Self::Time | Self::Sources | Self::JobLinks)
    }
}

/// Run synthetic traffic on a simulated network: latency and saturation
#[derive(Args, Debug)]
#[command(mut_args(|option| listed_by_h(option, &USUAL_OF_TRAFFIC)))]
#[command(after_help = "\
Examples:
  vef traffic --topology torus:8x8 --pattern uniform
  vef traffic --topology dragonfly:2x4x2 --routing ugal --pattern adversarial --load 0.05:0.5:0.05
  vef traffic --topology mesh:8x8 --pattern transpose --model packet --saturation 0.01

All options, patterns, topologies, routings and presets, and what the columns mean: vef traffic --help")]
#[command(after_long_help = format!("\
Nodes submit messages at the given rate, whatever the network does (open loop). Latency counts from submission; the
interval is the 95 % confidence interval of its mean. \"Accepted\" is the load that arrives of a node in the mean, \"worst\"
of the node with the least. A load is stable if every node gets at least 95 % of its messages through and latency does
not grow with time. Latencies of saturated networks are meaningless.

{}
{}

Examples:
  vef traffic --topology torus:8x8 --pattern uniform
  vef traffic --topology dragonfly:2x4x2 --routing ugal --pattern adversarial --load 0.05:0.5:0.05
  vef traffic --topology mesh:8x8 --pattern transpose --model packet --saturation 0.01
  vef traffic --topology fattree:k=8 --routing ecmp:packet --load 0.5,0.8,0.9,1 --model packet --vcs 4 --json
  vef traffic --topology fattree:k=4 --message web-search --arrivals poisson --load 0.3
  vef traffic --topology torus:8x8 --pattern file:matrix.txt --batch 1000", network::patterns(), network::forms(false)))]
pub struct Traffic {
    #[command(flatten)]
    pub network: LinkNetwork,
    #[command(flatten, next_help_heading = "Traffic and results")]
    pub traffic: sim_example::traffic::Traffic,
    /// Loads, as shares of the bandwidth of a node's link: FROM:TO:STEP, or a list
    #[arg(long, default_value = "0.1:1:0.1", value_name = "LOADS")]
    pub load: String,
    /// Find the load from which on the network is saturated, by halving the loads between, to within STEP
    #[arg(long, value_name = "STEP", value_parser = saturation_step, conflicts_with = "load")]
    pub saturation: Option<f64>,
    /// Simulate each load with N seeds, from --seed on: means of latency and accepted load, with 95 % confidence intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000), conflicts_with = "batch")]
    pub seeds: Option<u32>,
    /// Let each node submit N messages at once, and measure the time until all have arrived
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with_all = ["load", "saturation", "csv"])]
    pub batch: Option<u32>,
    /// Concurrent loads [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Run again what made this result of vef traffic --json, with its settings, but for options given beside this
    #[arg(long, value_name = "RESULT.json")]
    pub again: Option<PathBuf>,
    /// Print the points as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the points as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

//! The command line as typed; each command resolves its arguments.

use crate::input::Input;
use crate::output::{written, written_trace};
use crate::report_args::Report;
use crate::simulation_args::{Gen, Sim, Traffic};
use clap::{Args, Parser, Subcommand};
use reports::report::Section;
use reports::timeline::Format;
use sim_example::quantity::parse_bytes;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use vef_format::capture::layout::{CHUNK_SIZE, HEADER_SIZE};
use vef_format::units::Bytes;

/// Captures the MPI traffic of programs and replays it on simulated networks.
#[derive(Parser, Debug)]
#[command(name = "vef", version, max_term_width = 110)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run an MPI program and capture the MPI calls of every rank
    Run(Run),
    /// Convert a capture to a trace
    Mix(Mix),
    /// Validate a trace and replay it
    Check(Check),
    /// Show statistics of a trace: sizes, pairs, collectives, ranks, phases
    Stats(Stats),
    /// Write a page that shows what a trace holds and how it runs
    Report(Box<Report>),
    /// Replay a trace on a simulated network
    Sim(Box<Sim>),
    /// Run synthetic traffic on a simulated network: latency and saturation
    Traffic(Box<Traffic>),
    /// Generate a trace of a known communication pattern
    Gen(Gen),
    /// Write a timeline of all ranks for a trace viewer (Perfetto, Chrome)
    Timeline(Timeline),
    /// Convert a trace: text (.vef) to container (.vefx), or back
    Convert(Convert),
    /// Place ranks on nodes by a launcher's rules, or optimise a placement
    Place(Box<Place>),
    /// Write a capture as text traces, one call per line, with the summaries of MinI Parser
    Text(Text),
    /// Count calls, times and bytes of a capture by function, rank and pair of ranks
    Profile(Profile),
    /// Time collectives of the MPI at hand, calibrate the simulator by them, check it
    Bench(Box<crate::bench_args::Bench>),
    /// Run a bundled capture through mix, check and sim, with explanations
    Demo(Demo),
}

#[derive(Args, Debug, Default)]
#[command(after_help = "\
The library is preloaded into the ranks only. An existing LD_PRELOAD is kept, in front of the library.
The capture is a directory with one file per rank, for `vef mix -i DIR`. The exit code is that of the program, or 2 if the
program succeeds but nothing is captured, or --mix or --compress fails.
--mpirun is split into words as by a shell: 'env A=1 \"/my mpi/bin/mpirun\" --bind-to none'.
On several hosts, the directory and the library must have the same paths on all of them.
With --only-phase, messages may lack a partner: `vef mix --lenient` drops them. With --only-ranks, or if recording stops on a
rank, vef mix drops them without an option, and counts them.

Examples:
  vef run -n 4 -- ./app input
  vef run -o capture --mix app.vef -n 8 -- lmp -in in.lj
  vef run --oversubscribe -n 8 -- ./app                    # on fewer than 8 cores, under Open MPI
  vef run -- mpirun -n 2 ./master : -n 6 ./worker
  vef run -- srun -N 2 -n 16 numactl --localalloc ./app
  vef run --script -- ./job.sh                             # the script calls mpirun itself
  vef run --tool profile --tool ./mine.so --tool capture -n 4 -- ./app")]
pub struct Run {
    /// Number of ranks (passed to the launcher as -n)
    #[arg(short = 'n', long = "ranks", visible_alias = "np", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Directory for the capture [default: vef-PROGRAM, vef-capture for a launcher line; with a number if
    /// that exists]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Launcher, optionally with options [default: that of the program's MPI, else mpirun, mpiexec, srun]
    #[arg(long, value_name = "CMD")]
    pub mpirun: Option<String>,
    /// Allow more ranks than cores (Open MPI refuses otherwise); times then include scheduling
    #[arg(long, conflicts_with = "script")]
    pub oversubscribe: bool,
    /// Stack this tool between program and MPI; may be repeated, in order: capture, profile, text,
    /// collectives=TABLE, or the file of a tool (docs/tools.md) [default: $VEF_TOOLS, $TOOLS, else capture]
    #[arg(long = "tool", value_name = "NAME|FILE")]
    pub tools: Vec<PathBuf>,
    /// Also mix the capture into this trace: a container if the name ends in .vefx, else text
    #[arg(long, value_name = "OUT", value_parser = written_trace)]
    pub mix: Option<PathBuf>,
    /// Run a script that calls the launcher itself; ranks are reached through its environment. Only the first
    /// launch is recorded
    #[arg(long, conflicts_with_all = ["ranks", "mpirun"])]
    pub script: bool,
    /// Compress the files of the capture when the program has ended (zstd); all commands read them
    #[arg(long)]
    pub compress: bool,
    /// Stop recording a rank when its file reaches this size (500K, 64MiB); the program continues
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    pub max_size: Option<u64>,
    /// Record only while the program is in the phase of this name (vef_phase_begin)
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub only_phase: Option<String>,
    /// Record only these ranks, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = rank_list)]
    pub only_ranks: Option<String>,
    /// The program and its arguments, or a whole launcher line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROG ARGS")]
    pub program: Vec<OsString>,
}

/// Parses the size limit of a rank's file; it must have room for a header and a chunk.
fn limit(text: &str) -> Result<u64, String> {
    const LEAST: u64 = (HEADER_SIZE + CHUNK_SIZE) as u64;
    match parse_bytes(text).map_err(|error| error.to_string())? {
        Bytes(size) if size < LEAST => Err(format!("must be at least {}K", LEAST >> 10)),
        Bytes(size) => Ok(size),
    }
}

/// A set of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(pub BTreeSet<u32>);

/// Parses ranges of ranks, in the syntax of the preload library.
pub fn rank_ranges(text: &str) -> Result<Vec<RangeInclusive<u32>>, String> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let range = |part: &str| match part.split_once('-') {
        None => number(part).map(|rank| rank..=rank),
        Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| first..=last),
    };
    let ranges: Option<Vec<_>> =
        text.split(',').map(|part| range(part).filter(|range| !range.is_empty())).collect();
    ranges.ok_or_else(|| "not a list of ranks such as 0-3,8".into())
}

/// Parses the format of a timeline.
fn format(text: &str) -> Result<Format, String> {
    match text {
        "perfetto" => Ok(Format::Perfetto),
        "json" => Ok(Format::Json),
        _ => Err("one of perfetto, json".into()),
    }
}

fn rank_list(text: &str) -> Result<String, String> {
    rank_ranges(text).map(|_| text.to_owned())
}

fn ranks(text: &str) -> Result<Ranks, String> {
    const MOST: u64 = 1 << 24;
    let ranges = rank_ranges(text)?;
    let count: u64 = ranges.iter().map(|range| u64::from(range.end() - range.start()) + 1).sum();
    match count > MOST {
        true => Err(format!("more than {MOST} ranks")),
        false => Ok(Ranks(ranges.into_iter().flatten().collect())),
    }
}

#[derive(Args, Debug)]
#[command(after_help = "\
Writes DIR/ti_traces from the capture in DIR, if there is one, and ti_traces/parserOutput: communicators.txt, global.txt,
a file per phase, and overall.txt with the count of each record in the whole run. The lines are those of MinI Parser
(docs/tools.md).")]
pub struct Text {
    /// Capture, or the directory with ti_trace0.txt …, or its parent
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Write lines `<rank> compute <ns>` for the time between calls; needs a capture
    #[arg(long)]
    pub times: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct Profile {
    /// Capture
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Print all counts as JSON
    #[arg(long)]
    pub json: bool,
}

/// How failed polls appear in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Polls {
    #[default]
    Wait,
    Compute,
}

#[derive(Args, Debug, Default)]
#[command(after_help = "\
Processes started by mpirun or srun share the work; the trace is the same, byte for byte. -j and --memory are then per
process [default: 1 thread, and a share of half the free memory of the node]. A process that needs more memory uses a
temporary file; do not place these on a /tmp in memory.

Examples:
  vef mix -i capture -o app.vef
  mpirun -n 8 vef mix -i capture -o app.vef
  srun -n 8 vef mix -i capture -o app.vef --memory 4G --tmpdir /local/scratch")]
pub struct Mix {
    /// Capture: its directory, or the VEFT.main of an older one
    #[arg(short, long, value_name = "DIR|VEFT.main")]
    pub input: PathBuf,
    /// Trace to write, or to replace: a container if the name ends in .vefx, else text; - is standard output
    #[arg(short, long, value_name = "OUT", value_parser = written_trace)]
    pub output: PathBuf,
    /// Number of threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Memory to use, approximately (4G, 500MB); a larger capture is read twice and mixed in parts, with a
    /// temporary file [default: half of the free memory]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Directory for temporary files, which are unlinked [default: that of the trace]
    #[arg(long, value_name = "DIR")]
    pub tmpdir: Option<PathBuf>,
    /// Drop sends and receives without a partner instead of refusing the capture
    #[arg(long)]
    pub lenient: bool,
    /// Skip and count events of unknown type (older captures)
    #[arg(long)]
    pub skip_unknown: bool,
    /// Replace collectives by the messages of their algorithms: default, openmpi, mpich, nccl, or the file of
    /// a table
    #[arg(long, value_name = "TABLE", num_args = 0..=1, default_missing_value = "default")]
    pub lower_collectives: Option<String>,
    /// Meaning of failed polls (MPI_Test, MPI_Iprobe …) that a message ends: waiting for the message, or
    /// computing for the captured time
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Polls::Wait)]
    pub polls: Polls,
    /// File with the codes of collectives to use in the trace, one `code name` per line
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The exit code is 0 if every record replays, else 2. --json prints JSON even if the trace cannot be read: its key `error`
then has the reason. A trace from a pipe (TRACE is -) is copied to a temporary file.

--repair corrects counts of the header, trigger bits, ids, dependencies and orders that the rest of the trace determines,
and reports each change. It writes nothing if other errors remain. docs/formats.md has the rules.

Examples:
  vef check app.vef
  vef check app.vef --repair mended.vef
  zstdcat app.vef.zst | vef check - --json")]
pub struct Check {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// Repair what the rest of the trace determines (text only), and write the result if it is valid
    #[arg(long, value_name = "OUT.vef", value_parser = written_trace)]
    pub repair: Option<PathBuf>,
    /// File with the codes of collectives in the trace, one `code name` per line
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Latency of the yardstick network
    #[arg(long, default_value = "1us", value_name = "TIME")]
    pub latency: String,
    /// Bandwidth of the yardstick network
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE")]
    pub bandwidth: String,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The trace is read once and not replayed: no figure depends on a network. docs/reports.md lists the keys of --json and the
columns of --csv, and which bytes each collective contributes and obtains: those of all members, without a root's block for itself.

Examples:
  vef stats app.vef
  vef stats app.vefx --by pair --top 50
  vef stats app.vefx --csv ranks > ranks.csv")]
pub struct Stats {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// Show only this table: size, pair, distance, collective, communicator, rank, phase, call
    #[arg(long, value_name = "WHAT", value_parser = section, conflicts_with_all = ["json", "csv"])]
    pub by: Option<Section>,
    /// Maximum number of rows per table
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["json", "csv"])]
    pub top: u32,
    /// File with the codes of collectives in a text trace, one `code name` per line
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Number of threads [default: all cores]; the result does not depend on it
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Print everything as JSON, as in a report
    #[arg(long)]
    pub json: bool,
    /// Print one complete table as CSV: ranks, pairs, sizes, distances, collectives, phases, calls
    #[arg(long, value_name = "TABLE", conflicts_with = "json")]
    pub csv: Option<String>,
}

/// Parses the name of a table of `vef stats`.
fn section(text: &str) -> Result<Section, String> {
    let names: Vec<&str> = Section::ALL.iter().map(|section| section.name()).collect();
    let found = Section::ALL.into_iter().find(|section| section.name() == text);
    found.ok_or_else(|| format!("write one of {}", names.join(", ")))
}

#[derive(Args, Debug)]
#[command(after_help = "\
A capture is shown with the times of its calls, from the first entry of MPI_Init. A trace is replayed on a network of \
--latency + bytes / --bandwidth. A result of vef sim --json --links is shown as links over time. Ranks are threads of \
their hosts; arrows lead from the sends of messages to the calls that received them; gaps are computing. If the file \
would exceed --max-size, short slices are merged; docs/timeline.md has the rule.

Examples:
  vef timeline capture -o app.pftrace
  vef timeline app.vefx -o app.pftrace --latency 2us --bandwidth 100Gbit/s
  vef sim app.vefx --topology torus:4x4 --json --links | vef timeline - -o links.pftrace
  vef timeline capture -o part.json --format json --from 1.5s --to 1.6s --ranks 0-15")]
pub struct Timeline {
    /// Directory of a capture, a trace, or the result of a simulation; - is standard input
    #[arg(value_name = "CAPTURE|TRACE|RESULT", value_parser = Input::argument)]
    pub input: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT", value_parser = written)]
    pub output: PathBuf,
    /// File format: perfetto (protocol buffers) or json (Chrome trace events)
    #[arg(long, value_parser = format, default_value = "perfetto", value_name = "FORMAT")]
    pub format: Format,
    /// Start of the timeline (10ms, 1.5s)
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// End of the timeline
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Show only these ranks, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = ranks)]
    pub ranks: Option<Ranks>,
    /// Maximum size of the file; viewers need two to four times as much memory
    #[arg(long, default_value = "200MB", value_name = "SIZE")]
    pub max_size: String,
    /// Latency of the network on which a trace is replayed [default: 1us]
    #[arg(long, value_name = "TIME")]
    pub latency: Option<String>,
    /// Bandwidth of that network [default: 10Gbit/s]
    #[arg(long, value_name = "RATE")]
    pub bandwidth: Option<String>,
    /// File with the codes of collectives in the trace, one `code name` per line
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A container is smaller and checksummed, and the records of a task can be read without those of others. All commands that
read traces read both forms.")]
pub struct Convert {
    /// Trace; - is standard input
    #[arg(value_name = "FROM", value_parser = Input::argument)]
    pub from: PathBuf,
    /// File to write: a container if the name ends in .vefx, else text; - is standard output, as text
    #[arg(value_name = "TO", value_parser = written_trace)]
    pub to: PathBuf,
    /// Compress the blocks of the container (zstd)
    #[arg(long)]
    pub compress: bool,
    /// File with the codes of collectives in a text trace, one `code name` per line; a container keeps them
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
}

/// Arguments that decide where ranks run.
const RULES: [&str; 19] = [
    "processes",
    "model",
    "hostfile",
    "host",
    "nodelist",
    "nodes",
    "slots",
    "core",
    "hwloc",
    "unknown_slots",
    "rankfile",
    "map_by",
    "rank_by",
    "bynode",
    "oversubscribe",
    "nooversubscribe",
    "per_node",
    "distribution",
    "launch_node",
];

#[derive(Args, Debug)]
#[command(after_help = "\
Nodes come from --hostfile, --host, --nodelist, --rankfile, or --nodes with --slots; no launcher is run.
--optimise starts from the placement by these rules (default: one rank per node of the topology), and compares its
result with it, with block, round-robin and the best of 100 random placements.

Examples:
  vef place -n 8 --hostfile hosts --map-by node
  vef place -n 8 --model slurm --nodelist 'node[01-04]' --slots 2 --distribution cyclic
  vef place --captured capture -o ran.toml
  vef place --optimise app.vef --topology torus:4x4x4 -o better.toml")]
pub struct Place {
    /// Number of ranks
    #[arg(short = 'n', long = "np", visible_short_alias = 'c', value_name = "N")]
    pub processes: Option<u32>,
    /// Rules to apply: openmpi, getinfo, hydra, slurm
    #[arg(long, default_value = "openmpi", value_name = "MODEL")]
    pub model: String,
    /// Hostfile (Hydra: machine file)
    #[arg(long, visible_alias = "machinefile", value_name = "FILE")]
    pub hostfile: Option<PathBuf>,
    /// Hosts, or a filter on the hostfile: a,b:2,c
    #[arg(long, value_name = "HOSTS")]
    pub host: Vec<String>,
    /// Slurm node list: node[01-04,07]
    #[arg(long, value_name = "LIST")]
    pub nodelist: Option<String>,
    /// Number of nodes, named node0, node1, …
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Slots per node of --nodes (Slurm: also 16(x3),8)
    #[arg(long, value_name = "N")]
    pub slots: Option<String>,
    /// Cores per slot if the hostfile has no #cores
    #[arg(long, value_name = "N")]
    pub core: Option<u32>,
    /// XML file of hwloc that describes a node
    #[arg(long, value_name = "FILE")]
    pub hwloc: Option<PathBuf>,
    /// Slots of nodes without a given number [default: the cores of --hwloc, or 1]
    #[arg(long, value_name = "N")]
    pub unknown_slots: Option<u32>,
    /// Rankfile; overrides all policies
    #[arg(long, value_name = "FILE")]
    pub rankfile: Option<PathBuf>,
    /// Mapping policy: node, slot, core, ppr:N:node …
    #[arg(long, value_name = "POLICY")]
    pub map_by: Option<String>,
    /// Ranking policy: node, slot, core
    #[arg(long, value_name = "POLICY")]
    pub rank_by: Option<String>,
    /// Map and rank by node
    #[arg(long)]
    pub bynode: bool,
    /// Allow more ranks than slots
    #[arg(long)]
    pub oversubscribe: bool,
    /// Refuse more ranks than slots
    #[arg(long)]
    pub nooversubscribe: bool,
    /// Ranks per node (Hydra, Slurm)
    #[arg(long = "ntasks-per-node", visible_alias = "ppn", value_name = "N")]
    pub per_node: Option<u32>,
    /// Slurm distribution: block, cyclic, plane=N
    #[arg(long, value_name = "HOW")]
    pub distribution: Option<String>,
    /// Node on which mpirun runs
    #[arg(long, value_name = "NODE")]
    pub launch_node: Option<String>,
    /// Use the placement recorded in this capture instead of rules
    #[arg(long, value_name = "DIR", conflicts_with_all = RULES)]
    pub captured: Option<PathBuf>,
    /// Search for a placement with fewer hop-bytes for this trace; - is standard input
    #[arg(long, value_name = "TRACE", requires = "topology", value_parser = Input::argument)]
    pub optimise: Option<PathBuf>,
    /// Topology to optimise for (as in vef sim)
    #[arg(long, value_name = "T", requires = "optimise")]
    pub topology: Option<String>,
    /// Seed of the search; the same seed gives the same placement
    #[arg(long, default_value_t = 1, value_name = "N", requires = "optimise")]
    pub seed: u64,
    /// Output format: table, getinfo, json, toml, text
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    pub format: String,
    /// Also write a placement file: .toml, .json, or text with one node per line
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Demo {
    /// First capture a real program, if an MPI is installed
    #[arg(long)]
    pub live: bool,
}

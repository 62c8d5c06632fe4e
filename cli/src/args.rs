//! The command line as typed. What the words mean is resolved by each command.

use crate::input::Input;
use crate::output::written;
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

/// Captures the MPI traffic of real programs and feeds it to network simulators.
#[derive(Parser, Debug)]
#[command(name = "vef", version, max_term_width = 110)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run an MPI program and capture every rank's MPI calls
    Run(Run),
    /// Turn a capture into a trace
    Mix(Mix),
    /// Say what a trace contains and whether it replays to its end
    Check(Check),
    /// Show what a trace holds: sizes, pairs, collectives, ranks, phases
    Stats(Stats),
    /// Write a page that shows what a trace holds and how it runs
    Report(Box<Report>),
    /// Replay a trace on a simulated network
    Sim(Box<Sim>),
    /// Load a simulated network with synthetic traffic: latency and saturation
    Traffic(Box<Traffic>),
    /// Make a trace of a known communication pattern
    Gen(Gen),
    /// Draw what each rank did when, for a trace viewer (Perfetto, Chrome)
    Timeline(Timeline),
    /// Rewrite a trace: text (.vef) to container (.vefx), or back
    Convert(Convert),
    /// Put ranks on nodes as a launcher would, or better
    Place(Box<Place>),
    /// Write a capture as text traces, a line a call, and aggregate them as MinI Parser does
    Text(Text),
    /// Count calls, times and bytes of a capture by function, rank and pair of ranks
    Profile(Profile),
    /// Time collectives of the MPI at hand, calibrate the simulator by them, check it
    Bench(Box<crate::bench_args::Bench>),
    /// Take a bundled capture through mix, check and sim, explaining each step
    Demo(Demo),
}

#[derive(Args, Debug, Default)]
#[command(after_help = "\
The library is preloaded into the ranks only. An LD_PRELOAD that is set already stays, in front of ours.
The exit code is the program's; if that is 0 and what --mix or --compress ask for fails, it is 2. The capture is a directory with one file a rank; `vef mix -i DIR` reads it.
--mpirun is split into words as by a shell: 'env A=1 \"/my mpi/bin/mpirun\" --bind-to none'.
On several hosts the directory and the library must be under the same paths on all of them.
With --only-phase or --only-ranks, messages may lack their other half: `vef mix --lenient` drops those.

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
    /// Directory for the capture [default: vef-PROGRAM, vef-capture for a launcher line; with a number if that exists]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Launcher, with options if any [default: that of the program's MPI, else mpirun, mpiexec, srun]
    #[arg(long, value_name = "CMD")]
    pub mpirun: Option<String>,
    /// Start more ranks than there are cores, which Open MPI refuses otherwise; times then measure the scheduler, too
    #[arg(long, conflicts_with = "script")]
    pub oversubscribe: bool,
    /// A tool between the program and MPI, in the given order, each as often as named: capture, profile, text, or a tool's
    /// file (docs/tools.md) [default: $VEF_TOOLS, $TOOLS, else capture]
    #[arg(long = "tool", value_name = "NAME|FILE")]
    pub tools: Vec<PathBuf>,
    /// Also mix the capture into this trace: a container if its name ends in .vefx, else text
    #[arg(long, value_name = "OUT", value_parser = written)]
    pub mix: Option<PathBuf>,
    /// The program is a script that calls the launcher itself, once: reach the ranks through its environment. Of further
    /// launches nothing is recorded
    #[arg(long, conflicts_with_all = ["ranks", "mpirun"])]
    pub script: bool,
    /// Compress the files of the capture once the program has ended (zstd); every reader here takes them as they are
    #[arg(long)]
    pub compress: bool,
    /// Stop recording a rank when its file reaches this size (500K, 64MiB); the program goes on
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    pub max_size: Option<u64>,
    /// Record only while the program is in the phase of this name (vef_phase_begin)
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub only_phase: Option<String>,
    /// Record only these ranks: 0-3,8
    #[arg(long, value_name = "LIST", value_parser = rank_list)]
    pub only_ranks: Option<String>,
    /// The program and its arguments, or a whole launcher line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROG ARGS")]
    pub program: Vec<OsString>,
}

/// A limit of a rank's file, in bytes: a header and a chunk have room.
fn limit(text: &str) -> Result<u64, String> {
    const LEAST: u64 = (HEADER_SIZE + CHUNK_SIZE) as u64;
    match parse_bytes(text).map_err(|error| error.to_string())? {
        Bytes(size) if size < LEAST => Err(format!("nothing can be recorded in less than {}K", LEAST >> 10)),
        Bytes(size) => Ok(size),
    }
}

/// A set of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(pub BTreeSet<u32>);

/// Ranges of ranks, as the preload library understands them, too.
fn rank_ranges(text: &str) -> Result<Vec<RangeInclusive<u32>>, String> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let range = |part: &str| match part.split_once('-') {
        None => number(part).map(|rank| rank..=rank),
        Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| first..=last),
    };
    let ranges: Option<Vec<_>> =
        text.split(',').map(|part| range(part).filter(|range| !range.is_empty())).collect();
    ranges.ok_or_else(|| "not a list of ranks such as 0-3,8".into())
}

/// The format of a timeline.
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
Makes DIR/ti_traces of the capture in DIR, if there is one, and writes ti_traces/parserOutput: communicators.txt, global.txt, a file for
each phase, and overall.txt with how often each record is in
the whole run. The lines are those of MinI Parser; docs/tools.md has them.")]
pub struct Text {
    /// A capture, or the directory with ti_trace0.txt …, or the one above it
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Lines `<rank> compute <ns>` tell the time between calls; needs a capture
    #[arg(long)]
    pub times: bool,
    /// The summary as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct Profile {
    /// A capture
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Everything, as JSON
    #[arg(long)]
    pub json: bool,
}

/// What failed polls are in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Polls {
    #[default]
    Wait,
    Compute,
}

#[derive(Args, Debug, Default)]
#[command(after_help = "\
Started by mpirun or srun, its processes share the work; the trace is the same to the byte. -j and --memory are then per
process [default: 1, and a part of half of what is free on the node], and each process that needs more memory has a
temporary file of its own. Where /tmp is memory, as on many nodes, it is no place for these.

Examples:
  vef mix -i capture -o app.vef
  mpirun -n 8 vef mix -i capture -o app.vef
  srun -n 8 vef mix -i capture -o app.vef --memory 4G --tmpdir /local/scratch")]
pub struct Mix {
    /// The capture: its directory, or the VEFT.main of an older one
    #[arg(short, long, value_name = "DIR|VEFT.main")]
    pub input: PathBuf,
    /// The trace to write: a container if its name ends in .vefx, else text, whatever it is called; - is the standard
    /// output
    #[arg(short, long, value_name = "OUT", value_parser = written)]
    pub output: PathBuf,
    /// Threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Memory to use, about (4G, 500MB): a capture that needs more is read twice and mixed in parts, with a temporary file
    /// [default: half of what is free]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Directory for temporary files, which have no name there [default: that of the trace]
    #[arg(long, value_name = "DIR")]
    pub tmpdir: Option<PathBuf>,
    /// Drop sends and receives that have no partner instead of refusing the capture
    #[arg(long)]
    pub lenient: bool,
    /// Skip and count events of unknown type (older captures)
    #[arg(long)]
    pub skip_unknown: bool,
    /// Replace collectives by the messages of algorithms: default, openmpi, mpich, nccl, or a table's file
    #[arg(long, value_name = "TABLE", num_args = 0..=1, default_missing_value = "default")]
    pub lower_collectives: Option<String>,
    /// What polls that found nothing (MPI_Test, MPI_Iprobe …) are, where what comes next is a message: waiting for it, or
    /// computing that takes as long as in the run
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Polls::Wait)]
    pub polls: Polls,
    /// Codes of collectives in the trace, other than the default ones (a `code name` line each)
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// The summary as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The exit code is 0 if every record replays, 2 otherwise. With --json there is JSON on stdout also when the trace
cannot be read: it has `error` then. A trace may come through a pipe (TRACE is -); it is copied to a file then.

--repair writes counts of the header, trigger bits, ids, dependencies and orders that can have been no other way, says
what it changed, and writes nothing where more is wrong. docs/formats.md has the rules.

Examples:
  vef check app.vef
  vef check app.vef --repair mended.vef
  zstdcat app.vef.zst | vef check - --json")]
pub struct Check {
    /// The trace; - is the standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// Mend what follows from the rest of the trace (in text), and write the result if it is sound
    #[arg(long, value_name = "OUT.vef")]
    pub repair: Option<PathBuf>,
    /// Codes of collectives in the trace, other than the default ones (a `code name` line each)
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Latency of the yardstick network
    #[arg(long, default_value = "1us", value_name = "TIME")]
    pub latency: String,
    /// Bandwidth of the yardstick network
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE")]
    pub bandwidth: String,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
One pass, no replay: nothing here depends on a network. docs/reports.md lists the keys of --json and the columns of --csv.

Examples:
  vef stats app.vef
  vef stats app.vefx --by pair --top 50
  vef stats app.vefx --csv ranks > ranks.csv")]
pub struct Stats {
    /// The trace; - is the standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// Only this table: size, pair, distance, collective, communicator, rank, phase, call
    #[arg(long, value_name = "WHAT", value_parser = section, conflicts_with_all = ["json", "csv"])]
    pub by: Option<Section>,
    /// Rows of each table, at most
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub top: usize,
    /// Codes of collectives in a text trace, other than the default ones (a `code name` line each)
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Threads [default: all cores]; the result is the same
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Everything as JSON, as in a report
    #[arg(long)]
    pub json: bool,
    /// A whole table as CSV: ranks, pairs, sizes, distances, collectives, phases, calls
    #[arg(long, value_name = "TABLE", conflicts_with = "json")]
    pub csv: Option<String>,
}

/// A table of `vef stats`.
fn section(text: &str) -> Result<Section, String> {
    let names: Vec<&str> = Section::ALL.iter().map(|section| section.name()).collect();
    let found = Section::ALL.into_iter().find(|section| section.name() == text);
    found.ok_or_else(|| format!("write one of {}", names.join(", ")))
}

#[derive(Args, Debug)]
#[command(after_help = "\
Of a capture the times are those of its calls, from the first entry of MPI_Init. A trace has no times: it is replayed on a \
network of --latency + bytes / --bandwidth. Of a simulation's result (vef sim --json --links) links are drawn. Ranks are threads of their hosts, arrows lead from the sends of messages to \
the calls that received them; where nothing is drawn a rank computes. Where the file would be larger than --max-size, short \
slices are put together; docs/timeline.md has the rule.

Examples:
  vef timeline capture -o app.pftrace
  vef timeline app.vefx -o app.pftrace --latency 2us --bandwidth 100Gbit/s
  vef sim app.vefx --topology torus:4x4 --json --links | vef timeline - -o links.pftrace
  vef timeline capture -o part.json --format json --from 1.5s --to 1.6s --ranks 0-15")]
pub struct Timeline {
    /// A capture's directory, a trace, or the result of a simulation; - is the standard input
    #[arg(value_name = "CAPTURE|TRACE|RESULT", value_parser = Input::argument)]
    pub input: PathBuf,
    /// The file to write; - is the standard output
    #[arg(short, long, value_name = "OUT", value_parser = written)]
    pub output: PathBuf,
    /// Perfetto's protocol buffers, or Chrome's trace events
    #[arg(long, value_parser = format, default_value = "perfetto", value_name = "FORMAT")]
    pub format: Format,
    /// Draw from this time on (10ms, 1.5s)
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Draw up to this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Draw only these ranks: 0-3,8
    #[arg(long, value_name = "LIST", value_parser = ranks)]
    pub ranks: Option<Ranks>,
    /// The most that the file may have; viewers need two to four times as much memory
    #[arg(long, default_value = "200MB", value_name = "SIZE")]
    pub max_size: String,
    /// Latency of the network on which a trace is replayed
    #[arg(long, default_value = "1us", value_name = "TIME")]
    pub latency: String,
    /// Bandwidth of that network
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE")]
    pub bandwidth: String,
    /// Codes of collectives in the trace, other than the default ones (a `code name` line each)
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A container is smaller, checksummed, and gives any task's records without reading the others'. `vef check` and
`vef sim` read both forms.")]
pub struct Convert {
    /// The trace; - is the standard input
    #[arg(value_name = "FROM", value_parser = Input::argument)]
    pub from: PathBuf,
    /// The file to write: a container if its name ends in .vefx, else text, whatever it is called; - is the standard
    /// output, for text
    #[arg(value_name = "TO", value_parser = written)]
    pub to: PathBuf,
    /// Compress the container's blocks (zstd)
    #[arg(long)]
    pub compress: bool,
    /// What the codes of collectives in a text trace mean (a `code name` line each); a container keeps that
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
}

/// What says where ranks are to be.
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
Nodes come from --hostfile, --host, --nodelist, --rankfile, or --nodes with --slots; nothing is ever asked.
With --optimise the placement by these rules (or one node a rank of the topology) is the start and the result is
compared with it, with block, round-robin and the best of 100 random placements.

Examples:
  vef place -n 8 --hostfile hosts --map-by node
  vef place -n 8 --model slurm --nodelist 'node[01-04]' --slots 2 --distribution cyclic
  vef place --captured capture -o ran.toml
  vef place --optimise app.vef --topology torus:4x4x4 -o better.toml")]
pub struct Place {
    /// Number of ranks
    #[arg(short = 'n', long = "np", visible_short_alias = 'c', value_name = "N")]
    pub processes: Option<u32>,
    /// Whose rules: openmpi, getinfo, hydra, slurm
    #[arg(long, default_value = "openmpi", value_name = "MODEL")]
    pub model: String,
    /// Hostfile (Hydra: machine file)
    #[arg(long, visible_alias = "machinefile", value_name = "FILE")]
    pub hostfile: Option<PathBuf>,
    /// Hosts, or a filter on the hostfile: a,b:2,c
    #[arg(long, value_name = "HOSTS")]
    pub host: Vec<String>,
    /// Slurm's node list: node[01-04,07]
    #[arg(long, value_name = "LIST")]
    pub nodelist: Option<String>,
    /// As many nodes, called node0, node1, …
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Slots of each of these nodes (Slurm: also 16(x3),8)
    #[arg(long, value_name = "N")]
    pub slots: Option<String>,
    /// Cores of a slot where the hostfile gives no #cores
    #[arg(long, value_name = "N")]
    pub core: Option<u32>,
    /// hwloc's XML of a node
    #[arg(long, value_name = "FILE")]
    pub hwloc: Option<PathBuf>,
    /// Slots of a node that nobody gave any [default: the cores of --hwloc, or 1]
    #[arg(long, value_name = "N")]
    pub unknown_slots: Option<u32>,
    /// Rankfile; overrides every policy
    #[arg(long, value_name = "FILE")]
    pub rankfile: Option<PathBuf>,
    /// node, slot, core, ppr:N:node …
    #[arg(long, value_name = "POLICY")]
    pub map_by: Option<String>,
    /// node, slot, core
    #[arg(long, value_name = "POLICY")]
    pub rank_by: Option<String>,
    /// Map and rank by node
    #[arg(long)]
    pub bynode: bool,
    /// More ranks than slots are fine
    #[arg(long)]
    pub oversubscribe: bool,
    /// More ranks than slots are an error
    #[arg(long)]
    pub nooversubscribe: bool,
    /// Ranks of a node (Hydra, Slurm)
    #[arg(long = "ntasks-per-node", visible_alias = "ppn", value_name = "N")]
    pub per_node: Option<u32>,
    /// Slurm's distribution: block, cyclic, plane=N
    #[arg(long, value_name = "HOW")]
    pub distribution: Option<String>,
    /// The node that mpirun itself runs on
    #[arg(long, value_name = "NODE")]
    pub launch_node: Option<String>,
    /// The placement that this capture recorded, instead of all the above
    #[arg(long, value_name = "DIR", conflicts_with_all = RULES)]
    pub captured: Option<PathBuf>,
    /// Look for a placement with fewer hop-bytes for this trace; - is the standard input
    #[arg(long, value_name = "TRACE", requires = "topology", value_parser = Input::argument)]
    pub optimise: Option<PathBuf>,
    /// The network to optimise for (as in vef sim)
    #[arg(long, value_name = "T", requires = "optimise")]
    pub topology: Option<String>,
    /// Seed of the search: the same seed gives the same placement
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// What to print: table, getinfo, json, toml, text
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    pub format: String,
    /// Also write a placement file: .toml, .json, or one node a line
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Demo {
    /// Capture a real program first, if an MPI is installed
    #[arg(long)]
    pub live: bool,
}

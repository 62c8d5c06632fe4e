//! The command line of `vef bench` as typed.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
coll and calibrate are MPI programs: start them with the MPI's launcher, one rank a core if times are to mean anything.
Any MPI will do: it is looked up at run time. docs/benchmarks.md tells methods, statistics and the JSON.

Examples:
  mpirun -n 4 vef bench coll --op allreduce --sizes 8:1M
  mpirun -n 4 vef bench coll --op bcast --algorithm mpi,binomial,chain:8K -o bcast.json
  vef bench launch --launches 10 -n 2 -o results -- --op barrier,allreduce --sizes 8
  mpirun -n 2 vef bench calibrate -o calibration.toml
  vef bench check results/launch-0.json --calibration calibration.toml --algorithms openmpi --limit 10")]
pub struct Bench {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Subcommand, Debug)]
pub enum What {
    /// Time collectives; run it by mpirun
    Coll(Coll),
    /// Time collectives in several launches of mpirun, in random order, and say what they have in common
    Launch(Launch),
    /// Measure messages and write the parameters that vef sim --calibration reads; run it by mpirun
    Calibrate(Calibrate),
    /// Simulate measured collectives on the calibrated network, and compare
    Check(Check),
    /// Draw times by size, measured and simulated, as SVG
    Plot(Plot),
    /// Write the messages of a schedule as a graph for Graphviz
    Tree(Tree),
}

#[derive(Args, Debug)]
pub struct Plot {
    /// What vef bench coll -o wrote; several launches are merged
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// What vef bench check --json wrote
    #[arg(long, value_name = "FILE.json")]
    pub simulated: Option<PathBuf>,
    /// The picture
    #[arg(short, long, value_name = "FILE.svg")]
    pub output: PathBuf,
}

#[derive(Args, Debug)]
pub struct Tree {
    /// The operation
    #[arg(long, value_name = "NAME")]
    pub op: String,
    /// The schedule: NAME, NAME:SEGMENT or NAME/FANOUT
    #[arg(long, value_name = "NAME")]
    pub algorithm: String,
    /// Ranks
    #[arg(short = 'n', long, value_name = "N")]
    pub ranks: u32,
    /// Root
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub root: u32,
    /// Bytes of a block, or of the vector
    #[arg(long, value_name = "BYTES", default_value = "1K")]
    pub bytes: String,
    /// The graph [default: standard output]
    #[arg(short, long, value_name = "FILE.dot")]
    pub output: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Without FILES nothing is compared: what --op and --sizes name is predicted for --ranks, one a node.
The exit code is 1 where the median error exceeds --limit.")]
pub struct Check {
    /// What vef bench coll -o wrote; several launches are merged
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// What vef bench calibrate wrote
    #[arg(long, value_name = "FILE.toml")]
    pub calibration: PathBuf,
    /// The network [default: one switch]
    #[arg(long, value_name = "T")]
    pub topology: Option<String>,
    /// Bandwidth of the links between switches
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE")]
    pub bandwidth: String,
    /// Latency of the links between switches
    #[arg(long, default_value = "500ns", value_name = "TIME")]
    pub latency: String,
    /// What messages do to each other
    #[arg(long, default_value = "cut-through", value_name = "MODEL")]
    pub model: String,
    /// Which algorithms the MPI takes: openmpi, mpich, default, or a table's file [default: those of the calibrated MPI]
    #[arg(long, value_name = "TABLE")]
    pub algorithms: Option<String>,
    /// Largest median error, in percent
    #[arg(long, value_name = "PERCENT", conflicts_with = "op")]
    pub limit: Option<f64>,
    /// To predict: operations
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "files")]
    pub op: Vec<String>,
    /// To predict: sizes
    #[arg(long, value_name = "SIZES", default_value = "1K:1M:x4", conflicts_with = "files")]
    pub sizes: String,
    /// To predict: ranks
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4, conflicts_with = "files")]
    pub ranks: u32,
    /// The cells as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct Calibrate {
    /// The file to write
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: PathBuf,
    /// Largest message
    #[arg(long, value_name = "BYTES", default_value = "1M")]
    pub largest: String,
    /// Pause in front of every measurement, for buckets to fill and queues to drain
    #[arg(long, value_name = "TIME", default_value = "2ms")]
    pub pause: String,
    /// Repetitions of every measurement
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub repetitions: usize,
    /// monotonic, monotonic-raw, wtime, tsc
    #[arg(long, value_name = "TIMER", default_value = "monotonic")]
    pub timer: String,
}

#[derive(Args, Debug)]
pub struct Coll {
    /// Operations, separated by commas: allreduce, iallreduce (non-blocking), allreduce-init (persistent), comm-dup, ping-pong,
    /// exchange, all-pairs, wait-up … [default: all blocking collectives]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub op: Vec<String>,
    /// Who does it: mpi, or schedules of ours by name, as NAME, NAME:SEGMENT or NAME/FANOUT
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "mpi")]
    pub algorithm: Vec<String>,
    /// A shared library with operations and algorithms of yours, for --op and --algorithm (collbench/include/vef_bench.h)
    #[arg(long, value_name = "FILE.so")]
    pub library: Vec<PathBuf>,
    /// Bytes of a block, or of the vector: 8,64,1K; 8:1M (doubling); 8:1M:x4; 0:10K:+1K; adaptive:64:1M
    #[arg(long, value_name = "SIZES", default_value = "8:256K:x8")]
    pub sizes: String,
    /// Process counts, separated by commas [default: all]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub ranks: Vec<u32>,
    /// How times are taken: window, max, root, global, replies; window and global also :linear, :ring, :drift
    #[arg(long, value_name = "METHOD", default_value = "window")]
    pub method: String,
    /// Refuse, instead of using method max with a warning, where the window method has hardly a good run
    #[arg(long)]
    pub strict: bool,
    /// monotonic, monotonic-raw, wtime, tsc
    #[arg(long, value_name = "TIMER", default_value = "monotonic")]
    pub timer: String,
    /// Fewest repetitions
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub min_reps: usize,
    /// Most repetitions
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_reps: usize,
    /// Enough when half the 95 % interval is so small a part of the mean
    #[arg(long, value_name = "PART", default_value_t = 0.025)]
    pub epsilon: f64,
    /// Seconds after which an operation of one size is not repeated any more
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub budget: f64,
    /// Idle time between repetitions
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub gap: String,
    /// Root of rooted operations
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub root: u32,
    /// Use other buffers in every repetition, so that caches are cold
    #[arg(long)]
    pub cold: bool,
    /// Factors of the ranks' blocks in vector operations: a file with one a line, random or random:SEED (0.5 to 1.5), or speed, as
    /// measured at each rank
    #[arg(long, value_name = "FACTORS")]
    pub factors: Option<String>,
    /// Also time non-blocking and persistent operations with as much computing between start and wait, and tell which part is hidden
    #[arg(long)]
    pub overlap: bool,
    /// Neither verify results nor measure known times first
    #[arg(long)]
    pub unverified: bool,
    /// Write all samples and what they were measured on as JSON, brought up to date after every size
    #[arg(short, long, value_name = "FILE.json")]
    pub output: Option<PathBuf>,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Launch {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", visible_alias = "np", value_name = "N")]
    pub ranks: u32,
    /// Number of launches
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub launches: u32,
    /// Pause between launches, half to one and a half times as long: launches within some seconds are more alike than others
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub pause: String,
    /// The launcher, with options if any
    #[arg(long, value_name = "CMD", default_value = "mpirun")]
    pub mpirun: String,
    /// Directory for each launch's JSON
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Seed of the order in which each launch measures the operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the merged rows as JSON
    #[arg(long)]
    pub json: bool,
    /// Options of `vef bench coll`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<OsString>,
}

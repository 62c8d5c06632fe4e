//! The options of `vef run`.

use crate::groups::RankList;
use crate::output::{Written, WrittenDirectory};
use sim_example::quantity::{parse_bytes, parse_time};
use std::ffi::OsString;
use std::path::PathBuf;
use vef_format::capture::layout::{CHUNK_SIZE, HEADER_SIZE, LONGEST_PHASE};
use vef_format::units::Bytes;

/// Run an MPI program and capture the MPI calls of every rank
#[derive(clap::Args)]
#[command(after_help = "\
The library is preloaded into the ranks only. An existing LD_PRELOAD is kept, in front of the library.
The capture is a directory with one file per rank, for `vef mix DIR`. The exit code is that of the program, or 2 if the
program succeeds but nothing is captured, also because of --only-ranks or --only-phase, or --mix or --compress fails.
--mpirun is split into words as by a shell: 'env A=1 \"/my mpi/bin/mpirun\" --bind-to none'.
A program marks phases by vef_phase.h (`vef generate header DIR` writes it) or by MPI_Pcontrol(n), n from 3, and
MPI_Pcontrol(-n); MPI_Pcontrol(1, \"name\") of other tools marks none. Traces in containers (.vefx) keep them.
On several hosts, the directory and the library must have the same paths on all of them.
With --only-phase, messages may lack a partner: `vef mix --lenient` drops them. With --only-ranks, or if recording stops on a
rank, vef mix drops them without an option, and counts them.

Examples:
  vef run -n 4 -- ./app input
  vef run -o capture --mix app.vefx -n 8 -- lmp -in in.lj
  vef run --oversubscribe -n 8 -- ./app                    # on fewer than 8 cores, under Open MPI
  vef run -- mpirun -n 2 ./master : -n 6 ./worker
  vef run -- srun -N 2 -n 16 numactl --localalloc ./app
  vef run --script -- ./job.sh                             # the script calls mpirun itself
  vef run --tool profile --tool ./mine.so --tool capture -n 4 -- ./app")]
pub struct Arguments {
    /// Number of ranks (passed to the launcher as -n)
    #[arg(short = 'n', long = "ranks", visible_alias = "np", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Directory for the capture [default: vef-PROGRAM, vef-capture for a launcher line; with a number if
    /// that exists]
    #[arg(short, long, value_name = "DIR", value_parser = WrittenDirectory::of("-o names the directory of the capture; --mix FILE.vefx writes a trace, too"))]
    pub output: Option<WrittenDirectory>,
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
    #[arg(long, value_name = "OUT", value_parser = Written::trace())]
    pub mix: Option<Written>,
    /// Run a script that calls the launcher itself; ranks are reached through its environment. Only the first
    /// launch is recorded
    #[arg(long, conflicts_with_all = ["ranks", "mpirun"])]
    pub script: bool,
    /// Compress the files of the capture when the program has ended (zstd); all commands read them
    #[arg(long)]
    pub compress: bool,
    /// Stop recording a rank before its file exceeds this size (500K, 64MiB; files grow by 64 KiB); the program continues
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    pub max_size: Option<Bytes>,
    /// Stop recording a rank after this time since MPI_Init (90s, 500ms), or after this many of its calls (1000000); it stops
    /// when its next 64 KiB of records are full at the latest, and the program continues
    #[arg(long, value_name = "TIME|CALLS", value_parser = stop_after)]
    pub stop_after: Option<String>,
    /// Show each second what every rank does: messages and bytes sent, shares of time in MPI and waiting there, phase, last call. On
    /// a terminal in place; otherwise a line on stderr for all ranks
    #[arg(long)]
    pub live: bool,
    /// Record only while the program is in the phase of this name (vef_phase_begin)
    #[arg(long, value_name = "NAME", value_parser = phase)]
    pub only_phase: Option<String>,
    /// Record only these ranks, such as 0-3,8
    #[arg(long, value_name = "LIST")]
    pub only_ranks: Option<RankList>,
    /// The program and its arguments, or a whole launcher line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROG ARGS")]
    pub program: Vec<OsString>,
}

/// Parses the size limit of a rank's file; it must have room for a header and a chunk.
fn limit(text: &str) -> Result<Bytes, String> {
    const LEAST: u64 = (HEADER_SIZE + CHUNK_SIZE) as u64;
    match parse_bytes(text).map_err(|error| error.to_string())? {
        Bytes(size) if size < LEAST => Err(format!("must be at least {}K", LEAST >> 10)),
        size => Ok(size),
    }
}

/// The name of a phase that the files of a capture have room for.
fn phase(name: &str) -> Result<String, String> {
    match name.len() {
        0 => Err("a phase has a name".into()),
        1..=LONGEST_PHASE => Ok(name.to_owned()),
        length => Err(format!("a name of {length} bytes: a capture has room for {LONGEST_PHASE}")),
    }
}

/// When recording stops, as the recorder reads it.
fn stop_after(text: &str) -> Result<String, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok_and(|calls| calls > 0) {
        return Ok(text.to_owned());
    }
    match parse_time(text) {
        Ok(time) if time.0 >= 1000 => Ok(format!("{}ns", time.0 / 1000)),
        Ok(_) => Err("must be at least 1ns".into()),
        Err(error) => Err(format!("{error}, or a number of calls")),
    }
}

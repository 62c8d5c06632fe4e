//! `vef run`: starts an MPI program under its launcher, with the preload library in the ranks.

mod live;

use crate::groups::{RankList, parse};
use crate::launch;
use crate::library;
use crate::output::{self, Failure, Written, WrittenDirectory};
use crate::progress::Bar;
use crate::tools::Tools;
use rayon::prelude::*;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use sim_example::quantity::{parse_bytes, parse_time};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vef_format::capture::layout::{CHUNK_SIZE, HEADER_SIZE};
use vef_format::capture::{Capture, CaptureError, Digest, Tally, rank_file, spawned_worlds, world_size};
use vef_format::ids::Rank;
use vef_format::nearest::did_you_mean;
use vef_format::new_file::is_stdout;
use vef_format::units::{Bytes, Count, Grouped};

/// Environment variable with the directory for the capture.
const DIRECTORY_VARIABLE: &str = "VEF_DIR";

/// How the recorder's reason ends when `--stop-after` stopped it.
const ASKED: &str = "as asked";

/// Run an MPI program and capture the MPI calls of every rank
#[derive(clap::Args)]
#[command(after_help = "\
The library is preloaded into the ranks only. An existing LD_PRELOAD is kept, in front of the library.
The capture is a directory with one file per rank, for `vef mix DIR`. The exit code is that of the program, or 2 if the
program succeeds but nothing is captured, or --mix or --compress fails.
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
    /// Stop recording a rank when its file reaches this size (500K, 64MiB); the program continues
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
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
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

pub fn run(run: &Arguments) -> Result<ExitCode, Failure> {
    let Ended { program, done } = capture(run)?;
    Ok(match (program.success(), done) {
        (true, false) => ExitCode::from(output::EXIT_BAD_INPUT),
        _ => exit_code(program),
    })
}

/// The result of a run.
pub struct Ended {
    /// Exit status of the program.
    pub program: ExitStatus,
    /// Whether all requested work on the capture succeeded.
    pub done: bool,
}

/// Runs the program, reports the capture, and mixes and compresses it on request.
pub fn capture(run: &Arguments) -> Result<Ended, Failure> {
    let library = library::find()?;
    if let Some(first) = run.program.first().filter(|first| first.as_encoded_bytes().starts_with(b"-")) {
        let word = first.display().to_string();
        let command = <Arguments as clap::Args>::augment_args(clap::Command::new("run"));
        let names = command.get_arguments().filter_map(clap::Arg::get_long);
        let options: Vec<String> = names.map(|name| format!("--{name}")).collect();
        let meant =
            did_you_mean(word.split('=').next().unwrap_or_default(), options.iter().map(String::as_str));
        return Err(format!(
            "{word}: no option of vef run; {meant}vef run --help lists them; a launcher's options: --mpirun 'mpirun OPTION …'"
        )
        .into());
    }
    if let Some(program) = run.program.first().map(Path::new)
        && run.mpirun.is_none()
        && program.components().nth(1).is_some()
        && !program.exists()
    {
        return Err(format!("{}: no such program", program.display()).into());
    }
    let line = match run.script {
        true => None,
        false => Some(launch::compose(run.mpirun.as_deref(), run.ranks, run.oversubscribe, &run.program)?),
    };
    let tools = Tools::named(&run.tools)?;
    let needs = [
        ("--mix", run.mix.is_some()),
        ("--compress", run.compress),
        ("--max-size", run.max_size.is_some()),
        ("--stop-after", run.stop_after.is_some()),
        ("--live", run.live),
        ("--only-phase", run.only_phase.is_some()),
        ("--only-ranks", run.only_ranks.is_some()),
    ];
    if let Some((option, _)) = needs.iter().find(|&&(_, given)| given && !tools.record()) {
        return Err(format!("{option} needs a capture: add --tool capture").into());
    }
    // Check output files before a run of possibly hours.
    if let Some(trace) = &run.mix {
        if is_stdout(trace) {
            return Err("--mix -: stdout belongs to the program; name a file".into());
        }
        let parent = trace.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(format!("--mix {}: no such directory: {}", trace.display(), parent.display()).into());
        }
        output::can_be_written(trace).map_err(|error| format!("--mix {error}"))?;
    }
    let preloaded = launch::preload(&library, &run.program)?;
    let claimed = claim(run)?;
    let directory = claimed.directory.clone();
    let mut variables = [preloaded, variables(run, &directory)].concat();
    variables.extend(tools.variables());
    let refusal = line.as_ref().and_then(refused);
    let plan = match line {
        Some(line) => launch::with_variables(line, &variables),
        None => launch::through_environment(&run.program, &variables),
    };
    let plan = plan.inspect_err(|_| claimed.give_up())?;
    let view = run.live.then(|| live::View::new(&directory));
    let program = start(&plan, view).inspect_err(|_| claimed.give_up())?;
    if tools.record() && !program.success() {
        await_ranks(&directory);
    }
    let captured = tools.record() && report(run, &claimed);
    if let Some(remedy) = refusal.filter(|_| !captured && !program.success()) {
        output::remark(remedy);
    }
    tools.report(&directory);
    let mut done = captured || !tools.record();
    // Attempt each step even if another has failed.
    let mut attempt = |what: Result<ExitCode, Failure>| match what {
        Ok(code) => done &= code == ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            done = false;
        }
    };
    if let Some(trace) = &run.mix {
        attempt(match captured {
            true => parse(&["-o".as_ref(), trace.as_os_str(), "--".as_ref(), directory.as_os_str()])
                .and_then(|arguments| super::mix::run(&arguments)),
            false => Err(format!("{}: not written, as there is no capture", trace.display()).into()),
        });
    }
    if captured && run.compress {
        attempt(compress(&directory).map(|()| ExitCode::SUCCESS));
    }
    Ok(Ended { program, done })
}

/// The hint after a failed launch by Open MPI, which refuses root, and more ranks than cores, by default.
fn refused(line: &launch::LauncherLine) -> Option<String> {
    let is_open_mpi = line.launcher == launch::LauncherKind::OpenMpi;
    let is_allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
        || line.words.iter().any(|word| word == "--allow-run-as-root");
    if is_open_mpi && rustix::process::geteuid().is_root() && !is_allowed {
        return Some(
            "Open MPI does not start as root unless OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set".into(),
        );
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks = line.ranks()?;
    const OPTIONS: [&str; 8] = [
        "--oversubscribe",
        "-oversubscribe",
        "--hostfile",
        "-hostfile",
        "--machinefile",
        "--host",
        "-host",
        "-H",
    ];
    let told = line.words.iter().any(|word| OPTIONS.iter().any(|option| word == option));
    let refused = is_open_mpi && !told && ranks as usize > cores;
    refused.then(|| {
        format!(
            "Open MPI starts no more ranks than there are cores ({cores} here, {ranks} ranks were asked for) unless told \
             to: vef run --oversubscribe …; times then measure the scheduler, too"
        )
    })
}

/// The environment variables of the recorder.
fn variables(run: &Arguments, directory: &Path) -> Vec<launch::Variable> {
    let mut variables = vec![
        (DIRECTORY_VARIABLE, directory.into()),
        // The directory was empty: a rank file in it belongs to another process of this run.
        ("VEF_FRESH", "1".into()),
        ("VEF_RUN", identity().into()),
    ];
    let options = [
        ("VEF_MAX_SIZE", run.max_size.map(|size| size.0.to_string())),
        ("VEF_STOP_AFTER", run.stop_after.clone()),
        ("VEF_PHASE", run.only_phase.clone()),
        ("VEF_RANKS", run.only_ranks.as_ref().map(|ranks| ranks.text.clone())),
    ];
    variables.extend(options.into_iter().filter_map(|(name, value)| Some((name, value?.into()))));
    // Some launchers do not pass their environment to other hosts.
    for name in ["VEF_TRACE", "VEF_CLOCK", "VEF_MAX_SIZE", "VEF_STOP_AFTER", "VEF_PHASE", "VEF_RANKS"] {
        if let Some(value) = std::env::var_os(name)
            && variables.iter().all(|(known, _)| *known != name)
        {
            variables.push((name, value));
        }
    }
    variables
}

/// A unique name for this run, recorded in its rank files.
fn identity() -> String {
    // The standard library's hasher has a random key.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// The directory of a capture while its program runs. A lock, where the file system has locks, refuses it to other runs on this host.
struct Claimed {
    /// Absolute.
    directory: PathBuf,
    is_new: bool,
    _lock: File,
}

impl Claimed {
    /// Removes the directory if it is new and still empty.
    fn give_up(&self) {
        if self.is_new {
            let _ = std::fs::remove_dir(&self.directory);
        }
    }
}

/// Creates the directory for the capture, or takes an empty one.
fn claim(run: &Arguments) -> Result<Claimed, Failure> {
    let (directory, is_new) = match &run.output {
        Some(named) => (named.to_path_buf(), !named.exists()),
        None => (new_directory(&run.program)?, true),
    };
    let unusable =
        |error| format!("{}: cannot be the directory for the capture: {error}", directory.display());
    std::fs::create_dir_all(&directory).map_err(unusable)?;
    let lock = File::open(&directory).map_err(unusable)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(format!("{}: another vef run writes its capture here", directory.display()).into());
    }
    let mut entries = std::fs::read_dir(&directory).map_err(unusable)?;
    if entries.next().is_some() {
        return Err(format!(
            "{}: is not empty; a capture needs a directory of its own (-o DIR)",
            directory.display()
        )
        .into());
    }
    Ok(Claimed { directory: directory.canonicalize().map_err(unusable)?, is_new, _lock: lock })
}

/// Creates a directory that the user did not name.
fn new_directory(program: &[OsString]) -> Result<PathBuf, Failure> {
    loop {
        let directory = unused_name(program);
        match std::fs::create_dir(&directory) {
            // Another run was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(format!(
                    "{}: cannot be the directory for the capture: {error}",
                    directory.display()
                )
                .into());
            }
            Ok(()) => return Ok(directory),
        }
    }
}

/// `vef-PROGRAM` (`vef-capture` for a launcher line), with a number if that exists.
fn unused_name(program: &[OsString]) -> PathBuf {
    let program = program.first().filter(|_| launch::launcher_position(program).is_none());
    let mut name = OsString::from("vef-");
    name.push(program.and_then(|program| Path::new(program).file_stem()).unwrap_or("capture".as_ref()));
    unused(name)
}

/// `name`, or the first of `name.2`, `name.3`, … that does not exist.
pub fn unused(name: OsString) -> PathBuf {
    let numbered = |number: u32| {
        let mut longer = name.clone();
        longer.push(format!(".{number}"));
        PathBuf::from(longer)
    };
    let mut path = PathBuf::from(&name);
    let mut number = 2;
    while path.exists() {
        path = numbered(number);
        number += 1;
    }
    path
}

/// Runs the line to its end, with stdin, stdout and stderr of this process, which a `view` may pass on. An interrupt from the terminal
/// reaches the launcher, which ends its ranks. Requests to terminate this process (`kill`, `timeout`, a batch
/// system) are forwarded to the launcher, and this process continues to report the capture.
fn start(plan: &launch::LaunchPlan, mut view: Option<live::View>) -> Result<ExitStatus, Failure> {
    let (program, arguments) = plan.words.split_first().ok_or("no program given")?;
    // One that `nohup` made this process ignore stays ignored.
    let requests = [SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
    let requests: Vec<i32> = requests.collect();
    let over = Arc::new(AtomicBool::new(false));
    for &signal in &requests {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, over.clone())?;
    }
    let mut signals = Signals::new([&requests[..], &[SIGINT, SIGQUIT]].concat())?;
    let mut command = Command::new(program);
    command.args(arguments).envs(plan.environment.iter().cloned());
    if let Some(view) = &view {
        view.redirect(&mut command);
    }
    let mut child =
        command.spawn().map_err(|error| format!("cannot start {}: {error}", Path::new(program).display()))?;
    if let Some(view) = &mut view {
        view.pass_on(&mut child);
    }
    let launcher = Pid::from_child(&child);
    let is_over = over.clone();
    std::thread::spawn(move || {
        for signal in signals.forever().filter(|signal| requests.contains(signal)) {
            // The number is the launcher's until it has been waited for, right before `over`.
            if let Some(signal) = Signal::from_named_raw(signal)
                && !is_over.load(Ordering::Acquire)
            {
                let _ = kill_process(launcher, signal);
            }
        }
    });
    let status = child.wait();
    over.store(true, Ordering::Release);
    Ok(status?)
}

/// Whether this process was started with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The exit code of the program; 128 + n if signal n ended it, as in shells.
fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Compresses the files of all ranks, also of spawned worlds; prints the result in one line.
fn compress(directory: &Path) -> Result<(), Failure> {
    let bar = Bar::new("compressing the capture");
    let mut files = Vec::new();
    for directory in
        std::iter::once(directory.to_owned()).chain(spawned_worlds(directory).into_iter().map(|(_, dir)| dir))
    {
        let tasks = world_size(&directory).unwrap_or(0);
        let ranks = (0..tasks).map(Rank).filter(|&rank| rank_file(&directory, rank).exists());
        files.extend(ranks.map(|rank| (directory.clone(), rank)));
    }
    let done = AtomicU64::new(0);
    let sizes = files.par_iter().map(|(directory, rank)| {
        let sizes = vef_format::capture::compress(directory, *rank)?;
        bar.set(done.fetch_add(1, Ordering::Relaxed) + 1, files.len() as u64);
        Ok((sizes.plain, sizes.compressed))
    });
    let sizes: Result<Vec<_>, CaptureError> = sizes.collect();
    let (plain, compressed) =
        sizes?.into_iter().fold((0, 0), |(plain, packed), (one, two)| (plain + one, packed + two));
    drop(bar);
    output::remark(format_args!("compressed from {} to {}", Bytes(plain), Bytes(compressed)));
    Ok(())
}

/// Waits, for three seconds at most, for the ranks of a program that failed: after `MPI_Abort` a launcher may end before them.
fn await_ranks(directory: &Path) {
    let Ok(capture) = Capture::open(directory) else { return };
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3)
        && (0..capture.tasks()).any(|rank| capture.is_being_written(Rank(rank)))
    {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prints one line about the capture on stderr; returns whether there is one.
fn report(run: &Arguments, claimed: &Claimed) -> bool {
    let directory = &claimed.directory;
    let capture = match Capture::open(directory) {
        Ok(capture) => capture,
        Err(CaptureError::NoCapture(_)) => {
            claimed.give_up();
            output::remark(format_args!(
                "{}: nothing was captured: no rank came through MPI_Init with the library loaded and recording",
                directory.display()
            ));
            return false;
        }
        Err(_) if !directory.is_dir() => {
            output::remark(format_args!(
                "{}: was removed during the run; nothing is left of the capture",
                directory.display()
            ));
            return false;
        }
        Err(error) => return unreadable(error),
    };
    let bar = Bar::new("reading the capture");
    let digest = Digest::of(&capture, |rank| bar.set(u64::from(rank.0) + 1, u64::from(capture.tasks())));
    drop(bar);
    let digest = match digest {
        Ok(digest) => digest,
        Err(error) => return unreadable(error),
    };
    output::remark(format_args!("captured in {}: {}", directory.display(), summary(run, &digest)));
    if run.mix.is_none() {
        output::oversubscribed(directory, capture.hosts().iter().filter(|host| host.is_oversubscribed()));
        output::spawned(&capture.spawned(), &capture.left_out());
    }
    let launched = capture.launched();
    if let Some(asked) = run.ranks.filter(|&asked| asked > launched) {
        output::remark(format_args!(
            "warning: {asked} ranks were started, but MPI_COMM_WORLD has {launched}: the launcher and the program are probably of \
             different MPIs (--mpirun)"
        ));
    }
    if let Some(ranks) = &run.only_ranks
        && ranks.ranges.iter().all(|range| *range.start() >= digest.tasks)
    {
        output::remark(format_args!(
            "warning: no rank was recorded: --only-ranks {} has none of MPI_COMM_WORLD's {}",
            ranks.text, digest.tasks
        ));
    }
    if run.only_phase.is_some() && digest.messages + digest.collectives == 0 {
        let phase = run.only_phase.as_deref().unwrap_or_default();
        output::remark(format_args!(
            "warning: nothing was sent in a phase {phase:?}: did the program enter one?"
        ));
    }
    true
}

fn unreadable(error: CaptureError) -> bool {
    output::error(&error.into());
    false
}

fn summary(run: &Arguments, digest: &Digest) -> String {
    let mut text = format!(
        "{}, {}, {} with {}, {}",
        Count(digest.tasks, "rank"),
        Count(digest.total_calls(), "call"),
        Count(digest.messages, "message"),
        digest.bytes,
        Count(digest.collectives, "collective call")
    );
    if digest.transfers.calls > 0 {
        let Tally { calls, bytes } = digest.transfers;
        text.push_str(&format!(", {} with {bytes}", Count(calls, "one-sided transfer")));
    }
    if run.only_ranks.is_some() && digest.stop_reasons.is_empty() && !digest.stopped.is_empty() {
        text.push_str(&format!("; {} not recorded, as asked", Count(digest.stopped.len(), "rank")));
    } else if !digest.stop_reasons.is_empty()
        && digest.stop_reasons.keys().all(|reason| reason.ends_with(ASKED))
    {
        text.push_str(&format!("; recording stopped on {}, as asked", Count(digest.stopped.len(), "rank")));
    } else if !digest.stopped.is_empty() {
        let reasons: Vec<String> =
            digest.stop_reasons.iter().map(|(reason, ranks)| format!("{reason} × {ranks}")).collect();
        let reasons = match reasons.is_empty() {
            // The reason did not fit.
            true => String::new(),
            false => format!(" ({})", reasons.join(", ")),
        };
        text.push_str(&format!(
            "; INCOMPLETE: recording stopped on {}{reasons}",
            Count(digest.stopped.len(), "rank")
        ));
    } else if digest.not_representable.is_empty() {
        text.push_str("; all can be represented in a trace");
    }
    // The summary of --mix has the rest.
    if run.mix.is_some() {
        return text;
    }
    let (accesses, others): (Vec<_>, Vec<_>) =
        digest.not_representable.iter().partition(|(name, _)| name.starts_with("MPI_File_"));
    for (calls, what) in
        [(others, "not representable in a trace"), (accesses, "not in a trace without vef mix --io-servers")]
    {
        if !calls.is_empty() {
            let calls = calls.iter();
            let calls =
                calls.map(|(name, tally)| format!("{} × {name} ({})", Grouped(tally.calls), tally.bytes));
            text.push_str(&format!("; {what}: {}", calls.collect::<Vec<_>>().join(", ")));
        }
    }
    if digest.never_completed > 0 {
        text.push_str(&format!("; {} never completed", Count(digest.never_completed, "request")));
    }
    if !digest.unfinished.is_empty() {
        text.push_str(&format!("; {} ended without MPI_Finalize", Count(digest.unfinished.len(), "rank")));
    }
    text
}

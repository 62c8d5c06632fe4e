//! `vef bench coll`: one launch, in every rank.

use crate::output::{self, Failure};
use collbench::{Error, Factors, Libraries, Method, Plan, Precision, Report, Sizes, Task, TimerKind};
use mpi_abi::api::Mpi;
use sim_example::quantity::parse_time;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Time collectives; run it by mpirun
#[derive(clap::Args)]
pub struct Arguments {
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

pub fn run(coll: &Arguments) -> Result<ExitCode, Failure> {
    // What is wrong with the options is wrong in every rank: one of them says so.
    let mut plan = match (plan(coll), is_first()) {
        (Ok(plan), _) => plan,
        (Err(error), true) => return Err(error),
        (Err(_), false) => return Ok(ExitCode::from(output::EXIT_BAD_INPUT)),
    };
    let mut table = Table { coll, printed: 0, problems: 0 };
    in_mpi(|mpi, is_root| {
        let mut heard = |report: &Report| {
            if is_root {
                table.show(report);
            }
        };
        if !coll.library.is_empty() {
            plan.tasks = tasks(coll, &Libraries::load(&coll.library)?)?;
        }
        let report = collbench::run(mpi, &plan, &mut heard)?;
        if is_root {
            table.show(&report);
            let switches = report.switches_text();
            if !switches.is_empty()
                && let Err(error) = output::result(switches.trim_end())
            {
                output::error(&error);
            }
            if report.rows.is_empty() && !report.problems.is_empty() {
                return Ok(ExitCode::from(output::EXIT_BAD_INPUT));
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Whether this process is the one that speaks, as its launcher says: MPI is not initialised yet.
fn is_first() -> bool {
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .is_none_or(|rank| rank == "0")
}

/// Initialises MPI, does `work`, finalises. An error that only this rank may have ends all of them.
pub fn in_mpi(work: impl FnOnce(&Mpi, bool) -> collbench::Result<ExitCode>) -> Result<ExitCode, Failure> {
    let mpi = Mpi::open(None)?;
    mpi.init_thread(mpi.abi().constants.thread_single)?;
    let world = mpi.abi().comm_world();
    let is_root = mpi.comm_rank(world)? == 0;
    let code = match work(&mpi, is_root) {
        Ok(code) => code,
        Err(
            error @ (Error::Mpi(_) | Error::Timer { .. } | Error::File { .. } | Error::LibraryCall { .. }),
        ) => {
            output::error(&error.into());
            // Launchers that see an abort may end before they have passed on what was printed.
            std::thread::sleep(Duration::from_millis(200));
            mpi.abort(world, output::EXIT_BAD_INPUT.into())?;
            ExitCode::from(output::EXIT_BAD_INPUT)
        }
        Err(error) => {
            if is_root {
                output::error(&error.into());
            }
            ExitCode::from(output::EXIT_BAD_INPUT)
        }
    };
    mpi.finalize()?;
    Ok(code)
}

struct Table<'c> {
    coll: &'c Arguments,
    printed: usize,
    problems: usize,
}

impl Table<'_> {
    fn show(&mut self, report: &Report) {
        let mut text = String::new();
        if self.printed == 0 && self.problems == 0 {
            text += &report.heading();
        }
        text.extend(report.rows[self.printed..].iter().map(collbench::Row::to_text));
        text.extend(report.problems[self.problems..].iter().map(|problem| format!("! {problem}\n")));
        (self.printed, self.problems) = (report.rows.len(), report.problems.len());
        let write = || -> Result<(), Failure> {
            if !text.is_empty() {
                output::result(text.trim_end())?;
            }
            if let Some(path) = &self.coll.output {
                output::file(path, &report.to_json())?;
            }
            if let Some(path) = &self.coll.csv {
                output::file(path, &report.to_csv())?;
            }
            Ok(())
        };
        if let Err(error) = write() {
            output::error(&error);
            std::process::exit(output::EXIT_BAD_INPUT.into());
        }
    }
}

/// What is to be timed.
fn tasks(coll: &Arguments, libraries: &Libraries) -> collbench::Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for algorithm in &coll.algorithm {
        if !coll.op.is_empty() {
            for name in &coll.op {
                tasks.push(Task::known(name, algorithm, libraries)?);
            }
        } else if algorithm == "mpi" {
            tasks.extend(collbench::default_tasks());
        } else {
            let (given, reason) = (algorithm.clone(), "needs --op: which operation is it for?".into());
            return Err(Error::Setting { what: "--algorithm", given, reason });
        }
    }
    Ok(tasks)
}

fn plan(coll: &Arguments) -> Result<Plan, Failure> {
    // Libraries are loaded when MPI is initialised.
    let tasks = if coll.library.is_empty() { tasks(coll, &Libraries::default())? } else { Vec::new() };
    if coll.overlap && coll.library.is_empty() && !tasks.iter().any(Task::can_overlap) {
        return Err("--overlap needs a non-blocking or persistent operation, such as --op iallreduce".into());
    }
    if coll.min_reps == 0 || coll.max_reps < coll.min_reps {
        return Err(format!("--max-reps {}: less than --min-reps, or none", coll.max_reps).into());
    }
    if !(coll.epsilon > 0.0 && coll.budget > 0.0 && coll.budget.is_finite()) {
        return Err("--epsilon and --budget are greater than 0".into());
    }
    let factors = coll.factors.as_deref().map(factors).transpose()?;
    Ok(Plan {
        tasks,
        sizes: coll.sizes.parse::<Sizes>()?,
        ranks: coll.ranks.clone(),
        method: coll.method.parse::<Method>()?,
        fall_back: !coll.strict,
        timer: coll.timer.parse::<TimerKind>()?,
        precision: Precision {
            min_reps: coll.min_reps,
            max_reps: coll.max_reps,
            epsilon: coll.epsilon,
            seconds: coll.budget,
            ..Precision::default()
        },
        gap_ns: parse_time(&coll.gap)?.0 as f64 / 1e3,
        root: coll.root,
        cold: coll.cold,
        factors,
        verify: !coll.unverified,
        overlap: coll.overlap,
    })
}

fn factors(text: &str) -> Result<Factors, Failure> {
    match text.split_once(':').unwrap_or((text, "1")) {
        ("speed", _) if text == "speed" => return Ok(Factors::Speed),
        ("random", seed) => {
            let seed = seed.parse().map_err(|_| format!("--factors {text}: the seed is a whole number"))?;
            return Ok(Factors::Random(seed));
        }
        _ => {}
    }
    let read = std::fs::read(text)
        .map_err(|error| format!("{text}: {error}; write a file, random[:SEED] or speed"))?;
    let mut factors = Vec::new();
    for (line, numbers) in (1..).zip(String::from_utf8_lossy(&read).lines()) {
        for number in numbers.split_whitespace() {
            match number.parse::<f64>() {
                Ok(factor) if (0.0..=1e6).contains(&factor) => factors.push(factor),
                _ => return Err(format!("{text}:{line}: {number:?} is no factor from 0 to 1000000").into()),
            }
        }
    }
    Ok(Factors::Given(factors))
}

//! A series of benchmarks: operations × algorithms × process counts × sizes, timed one after the other.

use std::path::PathBuf;
use std::time::SystemTime;

use mpi_abi::api::Mpi;
use sim_example::quantity::parse_time;
use vef_format::units::Picos;

use crate::benchmark::{Benchmark, Synthetic};
use crate::case::{Case, prepare, verify};
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::library::Libraries;
use crate::machine::{LoadMeter, Machine, free_memory};
use crate::method::{Measured, Method, Stopwatch};
use crate::results::{BenchSchema, Overlap, Report, Row, SelfTest, Settings};
use crate::sizes::MessageSizes;
use crate::stats::{Precision, Summary, median};
use crate::subject::Subject;
use crate::timer::{Timer, TimerKind};
use crate::world::World;

/// What to measure, and how; also the options of `vef bench coll`.
#[derive(Clone, Debug, clap::Args)]
pub struct Plan {
    /// Operations, separated by commas: allreduce, iallreduce (non-blocking), allreduce-init (persistent), comm-dup, ping-pong,
    /// exchange, all-pairs, wait-up … [default: all blocking collectives]
    #[arg(long = "op", value_name = "NAMES", value_delimiter = ',')]
    pub operations: Vec<String>,
    /// Who does it: mpi, or schedules of ours by name, as NAME, NAME:SEGMENT or NAME/FANOUT
    #[arg(long = "algorithm", value_name = "NAMES", value_delimiter = ',', default_value = "mpi")]
    pub algorithms: Vec<String>,
    /// A shared library with operations and algorithms of yours, for --op and --algorithm (collbench/include/vef_bench.h)
    #[arg(long = "library", value_name = "FILE.so")]
    pub libraries: Vec<PathBuf>,
    /// Bytes of a block, or of the vector: 8,64,1K; 8:1M (doubling); 8:1M:x4; 0:10K:+1K; adaptive:64:1M
    #[arg(long, value_name = "SIZES", default_value = "8:256K:x8")]
    pub sizes: MessageSizes,
    /// Process counts, separated by commas [default: all]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub ranks: Vec<u32>,
    /// How times are taken: window, max, root, global, replies; window and global also :linear, :ring, :drift
    #[arg(long, value_name = "METHOD", default_value = "window")]
    pub method: Method,
    /// Refuse, instead of using method max with a warning, where the window method has hardly a good run
    #[arg(long)]
    pub strict: bool,
    /// Source of time
    #[arg(long, value_name = "TIMER", value_enum, default_value_t)]
    pub timer: TimerKind,
    /// When a measurement ends.
    #[command(flatten)]
    pub precision: Precision,
    /// Idle time between repetitions
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = parse_time)]
    pub gap: Picos,
    /// Root of rooted operations
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub root: u32,
    /// Use other buffers in every repetition, so that caches are cold
    #[arg(long)]
    pub cold: bool,
    /// Factors of the ranks' blocks in vector operations: a file with one a line, random or random:SEED (0.5 to 1.5), or speed, as
    /// measured at each rank
    #[arg(long, value_name = "FACTORS")]
    pub factors: Option<Factors>,
    /// Also time non-blocking and persistent operations with as much computing between start and wait, and tell which part is hidden
    #[arg(long)]
    pub overlap: bool,
    /// Neither verify results nor measure known times first
    #[arg(long)]
    pub unverified: bool,
}

impl Default for Plan {
    /// Every blocking collective, 8 bytes to 256 KiB.
    fn default() -> Self {
        crate::options::defaults()
    }
}

impl Plan {
    /// Finds mistakes that need no MPI.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        let Precision { min_reps, max_reps, epsilon, seconds, .. } = self.precision;
        // What libraries have is known when they are loaded, after MPI is initialised.
        if self.libraries.is_empty() {
            let benchmarks = self.benchmarks(&Libraries::default())?;
            if self.overlap && !benchmarks.iter().any(Benchmark::can_overlap) {
                let message =
                    "--overlap needs a non-blocking or persistent operation, such as --op iallreduce";
                return Err(Error::Invalid(message.into()));
            }
        }
        if min_reps == 0 || max_reps < min_reps {
            return Err(Error::Invalid(format!("--max-reps {max_reps}: less than --min-reps, or none")));
        }
        if !(epsilon > 0.0 && seconds > 0.0 && seconds.is_finite()) {
            return Err(Error::Invalid("--epsilon and --budget are greater than 0".into()));
        }
        Ok(())
    }

    fn gap_ns(&self) -> f64 {
        self.gap.0 as f64 / 1e3
    }

    /// What is to be timed.
    fn benchmarks(&self, libraries: &Libraries) -> Result<Vec<Benchmark>> {
        let mut benchmarks = Vec::new();
        for algorithm in &self.algorithms {
            match (&self.operations[..], algorithm.as_str()) {
                ([], "mpi") => benchmarks.extend(Benchmark::blocking_collectives()),
                ([], _) => {
                    let reason = "needs --op: which operation is it for?";
                    return Err(Error::setting("--algorithm", algorithm, reason));
                }
                (names, _) => {
                    for name in names {
                        benchmarks.push(Benchmark::named(name, algorithm, libraries)?);
                    }
                }
            }
        }
        Ok(benchmarks)
    }
}

/// Runs a benchmark in all ranks of `MPI_COMM_WORLD`. MPI must be initialised. The report is complete at rank 0, where
/// `watch` sees it after each row and each problem.
///
/// # Errors
/// MPI's, a timer that must not be used, settings that make no sense. What one operation or size cannot do becomes a
/// problem of the report instead.
pub fn run(mpi: &Mpi, plan: &Plan, watch: &mut dyn FnMut(&Report)) -> Result<Report> {
    let benchmarks = plan.benchmarks(&Libraries::load(&plan.libraries)?)?;
    let all = World::new(mpi, mpi.abi().comm_world())?;
    let machine = Machine::look(&all)?;
    if plan.root >= all.size {
        return Err(Error::setting("root", plan.root, format!("there are {} ranks", all.size)));
    }
    let counts = if plan.ranks.is_empty() { vec![all.size] } else { plan.ranks.clone() };
    if let Some(count) = counts.iter().find(|count| !(1..=all.size).contains(*count)) {
        return Err(Error::setting("ranks", count, format!("1 to {} can take part", all.size)));
    }
    let timer = Timer::new(plan.timer, Some(mpi))?.yielding(machine.oversubscribed);
    let quality = timer.check()?;
    let factors = plan.factors.as_ref().map(|factors| factors.of(&all, &timer)).transpose()?;
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut report = Report {
        schema: BenchSchema::default(),
        complete: false,
        started,
        settings: Settings {
            method: plan.method.to_string(),
            timer: plan.timer,
            precision: plan.precision,
            gap_ns: plan.gap_ns(),
            root: plan.root,
            cold: plan.cold,
            factors: factors.clone(),
        },
        machine,
        timer: Some(quality),
        self_tests: Vec::new(),
        rows: Vec::new(),
        problems: Vec::new(),
    };
    if !plan.unverified {
        self_test(&all, plan, &timer, &mut report)?;
    }
    for count in counts {
        let color = (all.rank < count).then_some(0);
        if let Some(comm) = mpi.comm_split(all.comm, color, all.rank as i32)? {
            let world = World::new(mpi, comm)?;
            let factors = factors.as_ref().map(|factors| factors[..world.size as usize].to_vec());
            let mut bench = Bench { plan, timer: &timer, world: &world, factors, report: &mut report, watch };
            for benchmark in &benchmarks {
                bench.benchmark(benchmark)?;
            }
        }
        all.barrier()?;
    }
    report.find_switches();
    report.complete = true;
    Ok(report)
}

/// Largest error of a known time that is let pass where every rank has a core: as much as 20 % of it, or 2 µs.
fn tolerated(truth_ns: f64) -> f64 {
    (0.2 * truth_ns).max(2_000.0)
}

/// How often a self-test is made until its error is let pass.
const ATTEMPTS: usize = 3;

fn self_test(all: &World, plan: &Plan, timer: &Timer, report: &mut Report) -> Result<()> {
    let precision = Precision { min_reps: 30, max_reps: 60, seconds: 1.0, ..plan.precision };
    for (which, truth_ns) in [(Synthetic::WaitNull, 0.0), (Synthetic::WaitUp, 1e3 * f64::from(all.size))] {
        let benchmark = Benchmark::Synthetic(which);
        let name = benchmark.name();
        let case = Case { benchmark, bytes: 0, root: 0, copies: 1, factors: None, compute_ns: 0.0 };
        let mut subject = prepare(all, timer, &case)?;
        let mut watch = Stopwatch::new(all, timer.clone(), plan.method, precision, 0.0)?;
        let is_wrong = |measured_ns: f64| (measured_ns - truth_ns).abs() > tolerated(truth_ns);
        let mut measure = || {
            let [median] = all.share([median(&watch.time(&mut *subject)?.samples)])?;
            Ok(median)
        };
        // Other programs may disturb one attempt.
        let mut measured = measure();
        for _ in 1..ATTEMPTS {
            if measured.as_ref().is_ok_and(|&measured| is_wrong(measured)) {
                measured = measure();
            }
        }
        let measured_ns = match measured {
            Err(Error::Collapsed { .. }) if report.machine.oversubscribed || !plan.strict => {
                report.problems.push(format!("self-test {name}: the window method collapsed"));
                continue;
            }
            measured => measured?,
        };
        report.self_tests.push(SelfTest { name: name.clone(), truth_ns, measured_ns });
        if is_wrong(measured_ns) {
            let message = format!(
                "self-test {name}: measured {:.3} µs instead of {:.3} µs; results of this method would be wrong by as much",
                measured_ns / 1e3,
                truth_ns / 1e3
            );
            if !report.machine.oversubscribed {
                return Err(Error::Invalid(message));
            }
            report.problems.push(message);
        }
    }
    Ok(())
}

struct Bench<'b> {
    plan: &'b Plan,
    timer: &'b Timer,
    world: &'b World,
    factors: Option<Vec<f64>>,
    report: &'b mut Report,
    watch: &'b mut dyn FnMut(&Report),
}

impl Bench<'_> {
    /// All sizes of a benchmark.
    fn benchmark(&mut self, benchmark: &Benchmark) -> Result<()> {
        if let Benchmark::Mpi(collective, form) = benchmark
            && !collective.exists(*form)
        {
            self.problem(format!("{}: this MPI does not have it", benchmark.name()));
            return Ok(());
        }
        if self.factors.is_some() && !benchmark.takes_factors() {
            self.problem(format!(
                "{} by {}: cannot have blocks of several sizes",
                benchmark.name(),
                benchmark.algorithm()
            ));
            return Ok(());
        }
        let sizes = if benchmark.has_sizes() { self.plan.sizes.clone() } else { MessageSizes::List(vec![0]) };
        let (mut steps, mut last) = (sizes.steps(), None);
        while let Some(bytes) = steps.next(last.take()) {
            let mut case = Case {
                benchmark: benchmark.clone(),
                bytes,
                root: self.plan.root.min(self.world.size - 1),
                copies: 1,
                factors: self.factors.clone(),
                compute_ns: 0.0,
            };
            if self.plan.cold {
                // Twice a large cache, but no more than a few thousand sets.
                case.copies = ((64u64 << 20) / bytes.max(4096)).clamp(2, 4096) as usize;
            }
            let needed = self.memory(&case);
            if needed > free_memory() / 2 {
                self.problem(format!(
                    "{} of {bytes} bytes: {needed} bytes of buffers on this host, {} bytes are free",
                    benchmark.name(),
                    free_memory()
                ));
                // The median goes back to an adaptive walk; without one it ends here.
                break;
            }
            if !self.plan.unverified {
                match verify(self.world, &case) {
                    Err(error @ Error::Unmeasurable(_)) => {
                        self.problem(error.to_string());
                        return Ok(());
                    }
                    other => other?,
                }
            }
            let median = match self.size(&case) {
                Err(error @ (Error::Collapsed { .. } | Error::Unmeasurable(_))) => {
                    self.problem(format!("{} of {bytes} bytes: {error}", benchmark.name()));
                    0.0
                }
                median => median?,
            };
            let [median] = self.world.share([median])?;
            last = Some((bytes, median));
        }
        Ok(())
    }

    /// Bytes of all ranks' buffers on a host that has all of them: on the safe side.
    fn memory(&self, case: &Case) -> u64 {
        let ranks = u64::from(self.world.size);
        let blocks = match case.benchmark.operation() {
            Some(operation) if operation.is_rooted() || operation.reduces() => ranks + 3,
            Some(_) => 4 * ranks,
            None => 2,
        };
        let equal =
            case.bytes.saturating_mul(blocks).saturating_mul(ranks).saturating_mul(case.copies as u64);
        let largest = self.factors.iter().flatten().fold(1.0, |largest: f64, &factor| largest.max(factor));
        (equal as f64 * largest) as u64
    }

    /// One size; its median, at rank 0.
    fn size(&mut self, case: &Case) -> Result<f64> {
        let mut subject = prepare(self.world, self.timer, case)?;
        let mut meter = LoadMeter::default();
        meter.look();
        let mut warnings = Vec::new();
        let (measured, method) = self.time(&mut *subject, &mut warnings)?;
        drop(subject);
        let overlap = self.overlap(case, median(&measured.samples), &mut warnings)?;
        let Some(summary) = Summary::of(&measured.samples, self.plan.precision.confidence) else {
            return Ok(0.0);
        };
        if matches!(case.benchmark, Benchmark::Library(own) if !own.is_verifiable()) {
            warnings.push("not verified: the library has no check for it".into());
        }
        if !self.plan.unverified && self.report.self_tests.is_empty() {
            warnings.push("no known time could be measured: the self-tests collapsed".into());
        }
        if summary.samples < self.plan.precision.min_reps.min(5) {
            warnings.push(format!("only {} samples", summary.samples));
        }
        self.report.rows.push(Row {
            operation: case.benchmark.name(),
            algorithm: case.benchmark.algorithm(),
            ranks: self.world.size,
            bytes: case.bytes,
            method: method.to_string(),
            rank_medians_ns: measured.by_rank.iter().map(|times| median(times)).collect(),
            thrown_away: [measured.late, measured.too_long],
            samples_ns: measured.samples,
            summary,
            load: meter.look(),
            switch: None,
            overlap,
            warnings,
        });
        (self.watch)(self.report);
        Ok(summary.median)
    }

    /// The overlap of an operation that takes `alone_ns` by itself (known at rank 0) with computing for the same time.
    fn overlap(&self, case: &Case, alone_ns: f64, warnings: &mut Vec<String>) -> Result<Option<Overlap>> {
        if !(self.plan.overlap && case.benchmark.can_overlap()) {
            return Ok(None);
        }
        let [compute_ns] = self.world.share([alone_ns])?;
        let mut subject = prepare(self.world, self.timer, &Case { compute_ns, ..case.clone() })?;
        let mut own = Vec::new();
        let (measured, _) = self.time(&mut *subject, &mut own)?;
        warnings.extend(own.into_iter().map(|warning| format!("with computing: {warning}")));
        Ok(Some(Overlap::new(compute_ns, median(&measured.samples))))
    }

    fn time(&self, subject: &mut dyn Subject, warnings: &mut Vec<String>) -> Result<(Measured, Method)> {
        let Plan { method, precision, strict, .. } = *self.plan;
        let mut time = |method| {
            Stopwatch::new(self.world, self.timer.clone(), method, precision, self.plan.gap_ns())?
                .time(subject)
        };
        match time(method) {
            Err(error @ Error::Collapsed { .. }) if !strict => {
                warnings.push(format!("{error}; timed by method max instead"));
                Ok((time(Method::Max)?, Method::Max))
            }
            measured => Ok((measured?, method)),
        }
    }

    fn problem(&mut self, problem: String) {
        self.report.problems.push(problem);
        if self.world.is_root() {
            (self.watch)(self.report);
        }
    }
}

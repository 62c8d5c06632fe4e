//! A whole benchmark: operations × algorithms × process counts × sizes, timed one after the other.

use std::time::SystemTime;

use collectives::Operation;
use mpi_abi::api::{Collective, Form, Mpi};

use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::machine::{LoadMeter, Machine, free_memory};
use crate::method::{Measured, Method, Stopwatch};
use crate::results::{Overlap, Report, Row, SCHEMA, SelfTest, Settings};
use crate::sizes::Sizes;
use crate::stats::{Precision, Summary, median};
use crate::subject::{Request, Subject, Task, prepare, verify};
use crate::timer::{Timer, TimerKind};
use crate::world::World;

/// What to measure, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The operations, each with its algorithm.
    pub tasks: Vec<Task>,
    /// Sizes of those that have one.
    pub sizes: Sizes,
    /// Process counts; empty: all.
    pub ranks: Vec<u32>,
    /// The method.
    pub method: Method,
    /// Whether [`Method::Max`] is used where the window method collapses, with a warning; else that is an error.
    pub fall_back: bool,
    /// The timer.
    pub timer: TimerKind,
    /// When a measurement ends.
    pub precision: Precision,
    /// Idle time between runs, ns.
    pub gap_ns: f64,
    /// Root of rooted operations.
    pub root: u32,
    /// Whether buffers rotate so that caches are cold.
    pub cold: bool,
    /// Factors of each rank's block, for vector operations.
    pub factors: Option<Factors>,
    /// Whether results are verified and known times measured first.
    pub verify: bool,
    /// Whether non-blocking and persistent operations are also timed with computing.
    pub overlap: bool,
}

impl Default for Plan {
    /// Every blocking collective, 8 bytes to 64 KiB.
    fn default() -> Self {
        Plan {
            tasks: default_tasks(),
            sizes: Sizes::List(vec![8, 64, 512, 4096, 32_768, 262_144]),
            ranks: Vec::new(),
            method: Method::default(),
            fall_back: true,
            timer: TimerKind::default(),
            precision: Precision::default(),
            gap_ns: 0.0,
            root: 0,
            cold: false,
            factors: None,
            verify: true,
            overlap: false,
        }
    }
}

/// The MPI's blocking collectives over all ranks.
pub fn default_tasks() -> Vec<Task> {
    let blocking =
        |operation: &Operation| Some(Task::Mpi(Collective::named(operation.name())?, Form::Blocking));
    Operation::ALL.iter().filter_map(blocking).collect()
}

/// What happens while a benchmark runs; heard at rank 0.
pub trait Watch {
    /// A row is measured, or a problem was met; `report` has all so far.
    fn measured(&mut self, report: &Report);
}

impl<F: FnMut(&Report)> Watch for F {
    fn measured(&mut self, report: &Report) {
        self(report);
    }
}

/// Runs a benchmark in all ranks of `MPI_COMM_WORLD`. MPI must be initialised. The report is complete at rank 0.
///
/// # Errors
/// MPI's, a timer that must not be used, settings that make no sense. What one operation or size cannot do becomes a
/// problem of the report instead.
pub fn run(mpi: &Mpi, plan: &Plan, watch: &mut dyn Watch) -> Result<Report> {
    let all = World::new(mpi, mpi.abi().comm_world())?;
    let machine = Machine::look(&all)?;
    if plan.root >= all.size {
        return Err(setting("root", plan.root, format!("there are {} ranks", all.size)));
    }
    let timer = Timer::new(plan.timer, Some(mpi))?.yielding(machine.oversubscribed);
    let quality = timer.check()?;
    let factors = plan.factors.as_ref().map(|factors| factors.of(&all, &timer)).transpose()?;
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut report = Report {
        schema: SCHEMA.into(),
        complete: false,
        started,
        settings: Settings {
            method: plan.method.to_string(),
            timer: plan.timer,
            precision: plan.precision,
            gap_ns: plan.gap_ns,
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
    if plan.verify {
        self_test(&all, plan, &timer, &mut report)?;
    }
    let counts = if plan.ranks.is_empty() { vec![all.size] } else { plan.ranks.clone() };
    for count in counts {
        if count == 0 || count > all.size {
            return Err(setting("ranks", count, format!("1 to {} can take part", all.size)));
        }
        let color = (all.rank < count).then_some(0);
        if let Some(comm) = mpi.comm_split(all.comm, color, all.rank as i32)? {
            let world = World::new(mpi, comm)?;
            let factors = factors.as_ref().map(|factors| factors[..world.size as usize].to_vec());
            let mut bench = Bench { plan, timer: &timer, world: &world, factors, report: &mut report, watch };
            for task in &plan.tasks {
                bench.task(task)?;
            }
        }
        all.barrier()?;
    }
    report.find_switches();
    report.complete = true;
    Ok(report)
}

fn setting(what: &'static str, given: impl ToString, reason: String) -> Error {
    Error::Setting { what, given: given.to_string(), reason }
}

/// Largest error of a known time that is let pass where every rank has a core: as much as 20 % of it, or 2 µs.
fn tolerated(truth_ns: f64) -> f64 {
    (0.2 * truth_ns).max(2_000.0)
}

fn self_test(all: &World, plan: &Plan, timer: &Timer, report: &mut Report) -> Result<()> {
    let precision = Precision { min_reps: 30, max_reps: 60, seconds: 1.0, ..plan.precision };
    for (task, truth_ns) in [(Task::WaitNull, 0.0), (Task::WaitUp, 1e3 * f64::from(all.size))] {
        let name = task.name();
        let request = Request { task, bytes: 0, root: 0, copies: 1, factors: None, compute_ns: 0.0 };
        let mut subject = prepare(all, timer, &request)?;
        let mut watch = Stopwatch::new(all, timer.clone(), plan.method, precision, 0.0)?;
        let measured = match watch.time(&mut *subject) {
            Err(Error::Collapsed { .. }) if report.machine.oversubscribed || plan.fall_back => {
                report.problems.push(format!("self-test {name}: the window method collapsed"));
                continue;
            }
            measured => measured?,
        };
        let measured_ns = median(&measured.samples);
        let [measured_ns] = all.share([measured_ns])?;
        report.self_tests.push(SelfTest { name: name.clone(), truth_ns, measured_ns });
        if (measured_ns - truth_ns).abs() > tolerated(truth_ns) {
            let test = if truth_ns == 0.0 { "wait-null" } else { "wait-up" };
            let error = Error::SelfTest { test, measured_us: measured_ns / 1e3, truth_us: truth_ns / 1e3 };
            if !report.machine.oversubscribed {
                return Err(error);
            }
            report.problems.push(error.to_string());
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
    watch: &'b mut dyn Watch,
}

impl Bench<'_> {
    /// All sizes of a task.
    fn task(&mut self, task: &Task) -> Result<()> {
        if let Task::Mpi(collective, form) = task
            && !collective.exists(*form)
        {
            self.problem(format!("{}: this MPI does not have it", task.name()));
            return Ok(());
        }
        if self.factors.is_some() && !task.takes_factors() {
            self.problem(format!(
                "{} by {}: cannot have blocks of several sizes",
                task.name(),
                task.algorithm()
            ));
            return Ok(());
        }
        let has_sizes = match task {
            Task::Mpi(collective, _) if collective.name() == "Comm_dup" => false,
            Task::WaitUp | Task::WaitNull => false,
            _ => task.operation() != Some(Operation::Barrier),
        };
        let sizes = if has_sizes { self.plan.sizes.clone() } else { Sizes::List(vec![0]) };
        let (mut walk, mut last) = (sizes.walk(), None);
        let mut is_verified = !self.plan.verify;
        while let Some(bytes) = walk.next(last.take()) {
            let mut request = Request {
                task: task.clone(),
                bytes,
                root: self.plan.root.min(self.world.size - 1),
                copies: 1,
                factors: self.factors.clone(),
                compute_ns: 0.0,
            };
            if self.plan.cold {
                // Twice a large cache, but no more than a few thousand sets.
                request.copies = ((64u64 << 20) / bytes.max(4096)).clamp(2, 4096) as usize;
            }
            let needed = self.memory(&request);
            if needed > free_memory() / 2 {
                let error = Error::Memory { bytes: needed, available: free_memory() };
                self.problem(format!("{} of {bytes} bytes: {error}", task.name()));
                // The median goes back to an adaptive walk; without one it ends here.
                break;
            }
            if !is_verified {
                match verify(self.world, &request) {
                    Err(error @ (Error::Wrong { .. } | Error::Check { .. } | Error::Schedule(_))) => {
                        self.problem(error.to_string());
                        return Ok(());
                    }
                    other => other?,
                }
                is_verified = true;
            }
            let median = match self.size(&request) {
                Err(error @ (Error::Collapsed { .. } | Error::Jumped { .. } | Error::Schedule(_))) => {
                    self.problem(format!("{} of {bytes} bytes: {error}", task.name()));
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
    fn memory(&self, request: &Request) -> u64 {
        let ranks = u64::from(self.world.size);
        let blocks = match request.task.operation() {
            Some(operation) if operation.is_rooted() || operation.reduces() => ranks + 3,
            Some(_) => 4 * ranks,
            None => 2,
        };
        let equal =
            request.bytes.saturating_mul(blocks).saturating_mul(ranks).saturating_mul(request.copies as u64);
        let largest = self.factors.iter().flatten().fold(1.0, |largest: f64, &factor| largest.max(factor));
        (equal as f64 * largest) as u64
    }

    /// One size; its median, at rank 0.
    fn size(&mut self, request: &Request) -> Result<f64> {
        let mut subject = prepare(self.world, self.timer, request)?;
        let mut meter = LoadMeter::default();
        meter.look();
        let mut warnings = Vec::new();
        let (measured, method) = self.time(&mut *subject, &mut warnings)?;
        drop(subject);
        let overlap = self.overlap(request, median(&measured.samples), &mut warnings)?;
        let Some(summary) = Summary::of(&measured.samples, self.plan.precision.confidence) else {
            return Ok(0.0);
        };
        if matches!(request.task, Task::Library(own) if !own.is_verifiable()) {
            warnings.push("not verified: the library has no check for it".into());
        }
        if summary.samples < self.plan.precision.min_reps.min(5) {
            warnings.push(format!("only {} samples", summary.samples));
        }
        self.report.rows.push(Row {
            operation: request.task.name(),
            algorithm: request.task.algorithm(),
            ranks: self.world.size,
            bytes: request.bytes,
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
        self.watch.measured(self.report);
        Ok(summary.median)
    }

    /// The overlap of an operation that takes `alone_ns` by itself (known at rank 0) with computing for the same time.
    fn overlap(
        &self,
        request: &Request,
        alone_ns: f64,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Overlap>> {
        if !(self.plan.overlap && request.task.can_overlap()) {
            return Ok(None);
        }
        let [compute_ns] = self.world.share([alone_ns])?;
        let mut subject = prepare(self.world, self.timer, &Request { compute_ns, ..request.clone() })?;
        let mut own = Vec::new();
        let (measured, _) = self.time(&mut *subject, &mut own)?;
        warnings.extend(own.into_iter().map(|warning| format!("with computing: {warning}")));
        Ok(Some(Overlap::new(compute_ns, median(&measured.samples))))
    }

    fn time(&self, subject: &mut dyn Subject, warnings: &mut Vec<String>) -> Result<(Measured, Method)> {
        let Plan { method, precision, gap_ns, fall_back, .. } = *self.plan;
        let mut watch = Stopwatch::new(self.world, self.timer.clone(), method, precision, gap_ns)?;
        match watch.time(subject) {
            Err(error @ Error::Collapsed { .. }) if fall_back => {
                warnings.push(format!("{error}; timed by method max instead"));
                let mut watch =
                    Stopwatch::new(self.world, self.timer.clone(), Method::Max, precision, gap_ns)?;
                Ok((watch.time(subject)?, Method::Max))
            }
            measured => Ok((measured?, method)),
        }
    }

    fn problem(&mut self, problem: String) {
        self.report.problems.push(problem);
        if self.world.is_root() {
            self.watch.measured(self.report);
        }
    }
}

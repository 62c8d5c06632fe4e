//! Sweeps: all combinations of option values, in one table.
//!
//! Processes share a directory of points by lock files: the process that holds the lock of a point runs it
//! and writes its result atomically. A lock is released when its process ends, so an interruption leaves
//! nothing to clean up, and processes need not know each other.

use super::schedule;
use super::setup::{calibration, can_be_read_again, name_traces, named, observed, others, settings, tell_of};
use crate::calibrated;
use crate::groups;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::parallel;
use crate::progress::Bar;
use crate::repeated;
use crate::session::{self, Watch};
use crate::simulation_args::{RUNS_AND_RESULTS, Sim, Table};
use clap::{Arg, Args, Command};
use results::simulation::PartReport;
use results::sweep::{self, Prices, StoredPoint, StoredPointSchema, Sweep, SweepSchema, Swept};
use results::table::TextStyle;
use rustix::fs::{FlockOperation, flock};
use sim_example::calibration::Calibration;
use sim_example::{ComputeNoise, Settings, Simulation};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use vef_format::nearest::nearest;
use vef_format::units::Count;

/// A point.
struct Point {
    /// Options and their values.
    values: Vec<(String, String)>,
    sim: Sim,
    /// All inputs that determine the result, as text.
    identity: String,
}

/// The result of a point: a report without its long tables, or an error.
type Outcome = Result<Simulation, String>;

pub fn execute(sim: &Sim) -> Result<(), Failure> {
    if let Some(table) = sim.csv.filter(|table| *table != Table::Points) {
        return Err(format!("--csv {}: a sweep has one table; write --csv alone", table.name()).into());
    }
    let options = sim.sweep.iter().map(|text| text.parse()).collect::<Result<Vec<Swept>, _>>()?;
    let points = points(&options)?;
    let mut told: Vec<&Path> = Vec::new();
    for (sim, trace) in points.iter().flat_map(|Point { sim, .. }| {
        std::iter::once(&sim.trace).chain(&sim.others).map(move |trace| (sim, trace.as_path()))
    }) {
        if !told.contains(&trace) {
            told.push(trace);
            let input = Input::file(trace)?;
            if !schedule::is_wanted(sim, &input)? {
                tell_of(sim, &input.converted()?);
            }
        }
    }
    let launched = Launched::here();
    if launched.processes > 1 && sim.output.is_none() {
        return Err("--sweep in several processes needs -o with a directory that they share".into());
    }
    let directory = sim.output.as_ref().map(|directory| directory.as_path());
    if let Some(directory) = directory {
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let bar = Bar::new("points");
    let mut finished = 0;
    let jobs = sim.jobs.or((launched.processes > 1).then_some(1));
    // Each process starts at another point.
    let first = points.len() * launched.rank as usize / launched.processes as usize;
    let order: Vec<usize> = (0..points.len()).map(|n| (first + n) % points.len()).collect();
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    outcomes.resize_with(points.len(), || None);
    let run = |&at: &usize, watch: &Watch| {
        share(&points[at], directory, FlockOperation::NonBlockingLockExclusive, watch)
    };
    let shared = parallel::map(&order, jobs, run, |_, _| {
        finished += 1;
        bar.set(finished, points.len() as u64);
    });
    for (at, outcome) in order.into_iter().zip(shared) {
        outcomes[at] = outcome?;
    }
    if launched.rank > 0 {
        return Ok(());
    }
    // Points that other processes run: take their results, or run them if the process has ended.
    for (point, outcome) in points.iter().zip(&mut outcomes) {
        if outcome.is_none() {
            *outcome = share(point, directory, FlockOperation::LockExclusive, &Watch::current())?;
        }
    }
    drop(bar);
    let rows: Vec<(&Point, Outcome)> = points
        .iter()
        .zip(outcomes)
        .map(|(point, outcome)| (point, outcome.unwrap_or_else(|| Err("no result".to_owned()))))
        .collect();
    show(sim, &options, &rows)?;
    if let Some(file) = &sim.calibration {
        let calibration = Calibration::read(file)?;
        calibrated::doubts(file, &calibration);
        let between = rows.iter().any(|(_, run)| run.as_ref().is_ok_and(|run| run.latency.messages > 0));
        calibrated::lacks(file, &calibration, between, false);
    }
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|(point, outcome)| Some(format!("{}: {}", name(point), outcome.as_ref().err()?)))
        .collect();
    match failed.first() {
        None => Ok(()),
        Some(first) => {
            Err(format!("{} of {} without a result; {first}", failed.len(), Count(rows.len(), "point"))
                .into())
        }
    }
}

/// All combinations, validated; the last option varies fastest.
fn points(options: &[Swept]) -> Result<Vec<Point>, Failure> {
    let combinations = Swept::points(options)?;
    let (bar, all) = (Bar::new("checking points"), combinations.len() as u64);
    let mut points = Vec::with_capacity(combinations.len());
    let swept: Vec<&str> = options.iter().map(|swept| swept.option.as_str()).collect();
    // Options without effect at any point so far.
    let mut unused: Option<Vec<String>> = None;
    for values in combinations {
        let wrong = |error: Failure| {
            let error = output::in_one_line(&error);
            format!(
                "--sweep {}: {error}",
                values.iter().map(|(o, v)| format!("{o}={v}")).collect::<Vec<_>>().join(" ")
            )
        };
        let at = with(&values).map_err(wrong)?;
        at.network.retransmits().map_err(wrong)?;
        let mut here = at.network.without_effect(&swept);
        here.extend(at.class_without_effect());
        match &mut unused {
            Some(unused) => unused.retain(|name| here.contains(name)),
            none => *none = Some(here),
        }
        let identity = identity(&at).map_err(wrong)?;
        bar.set(points.len() as u64, all);
        points.push(Point { values, sim: at, identity });
    }
    match unused.filter(|unused| !unused.is_empty()) {
        Some(unused) => Err(format!("{}: no effect at any point of the sweep", unused.join(", ")).into()),
        None => Ok(points),
    }
}

/// Whether an option has values for each point.
fn can_be_swept(option: &Arg) -> bool {
    option.get_help_heading() != Some(RUNS_AND_RESULTS)
}

/// Whether an option is off without a value, so that `none` is that in a sweep.
fn has_no_default(option: &Arg) -> bool {
    option.get_action().takes_values() && !option.is_positional() && option.get_default_values().is_empty()
}

/// The option that can be swept whose name is most like one that there is not.
fn similar(name: &str, known: &Command) -> Option<String> {
    let names = known.get_arguments().filter(|option| can_be_swept(option)).filter_map(Arg::get_long);
    nearest(name, names).map(str::to_owned)
}

/// The arguments of this process with options set to the values of a point.
fn with(values: &[(String, String)]) -> Result<Sim, Failure> {
    // The words behind `vef sim`.
    let mut words: Vec<OsString> = session::command_line().into_iter().skip(2).collect();
    let known = Sim::augment_args(Command::new("sim"));
    let name = |option: &Arg| option.get_long().unwrap_or(option.get_id().as_str()).to_owned();
    let mut trace = None;
    let given = repeated::given::<Sim>()?;
    for (option, value) in values {
        match known.get_arguments().find(|known| name(known) == *option) {
            None => {
                let similar =
                    similar(option, &known).map_or(String::new(), |name| format!("; did you mean --{name}?"));
                return Err(format!("no option is called --{option}{similar}").into());
            }
            Some(found) if !can_be_swept(found) => {
                return Err("says what is shown, and cannot be swept".into());
            }
            Some(found) if value == "none" && has_no_default(found) => {
                if given.contains(option) {
                    return Err(format!("none: --{option} is given beside the sweep").into());
                }
            }
            Some(found) if found.is_positional() => trace = Some(PathBuf::from(value)),
            Some(found) if found.get_action().takes_values() => {
                words.push(format!("--{option}={value}").into())
            }
            Some(_) if value == "true" => words.push(format!("--{option}").into()),
            Some(_) if value == "false" => {}
            Some(_) => return Err("write true or false".into()),
        }
    }
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let mut sim: Sim = groups::parse(&words)?;
    sim.trace = trace.unwrap_or(sim.trace);
    // These are of the sweep.
    (sim.csv, sim.jobs) = (None, None);
    sim.swept = values.iter().map(|(option, _)| option.clone()).collect();
    Ok(sim)
}

/// All inputs that determine the result of a point: options, and the identity of the trace.
fn identity(sim: &Sim) -> Result<String, Failure> {
    let mut traces = of_file(&sim.trace)?;
    for other in &sim.others {
        traces += &of_file(other)?;
    }
    let version = env!("CARGO_PKG_VERSION");
    if schedule::is_wanted(sim, &Input::file(&sim.trace)?)? {
        return Ok(format!("{version} {traces} {} {:?}", sim.trace.display(), sim.network.settings.loggp));
    }
    let options = [&sim.placement, &sim.compute_scale, &sim.algorithms].map(Path::new);
    let files = [&sim.calibration, &sim.op_codes].into_iter().flatten().map(PathBuf::as_path);
    options.into_iter().chain(files).try_for_each(can_be_read_again)?;
    let (trace, others, settings) = read(sim)?;
    let noise = match &settings.jobs[0].compute_noise {
        ComputeNoise::Resampled { of: Some(of) } => of_file(of)?,
        _ => String::new(),
    };
    let text = format!("{version} {traces}{noise} ideal {}, {settings:?}", !sim.no_ideal);
    // A trace that was converted is in another file each time.
    Ok(others.iter().fold(trace.with_name(text), |text, other| other.with_name(text)))
}

/// The trace, those of further jobs, and the settings of a point.
fn read(sim: &Sim) -> Result<(Input, Vec<Input>, Settings), Failure> {
    let (trace, others) = (Input::of(&sim.trace)?, others(sim)?);
    let codes = trace.op_codes(sim.op_codes.as_deref())?;
    let settings = settings(sim, &trace, &others, codes.as_ref(), calibration(sim)?.as_ref())?;
    Ok((trace, others, settings))
}

/// Size and time of a file.
fn of_file(path: &Path) -> Result<String, Failure> {
    let about = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !about.is_file() {
        return Err(format!("{}: not a file; a sweep reads its trace many times", path.display()).into());
    }
    let changed = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(format!("{} bytes, {} ns,", about.len(), changed.as_nanos()))
}

/// The result of a point: from the directory, or from a run under its lock. `None` if another process holds
/// the lock.
fn share(
    point: &Point,
    directory: Option<&Path>,
    how: FlockOperation,
    watch: &Watch,
) -> Result<Option<Outcome>, String> {
    let Some(directory) = directory else { return Ok(Some(run(point, watch))) };
    let mut hasher = DefaultHasher::new();
    point.identity.hash(&mut hasher);
    let name = format!("point-{:016x}", hasher.finish());
    let (result, lock) = (directory.join(format!("{name}.json")), directory.join(format!("{name}.lock")));
    if let Some(report) = known(&result, point) {
        return Ok(Some(Ok(report)));
    }
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", lock.display());
    let file = File::options().create(true).append(true).open(&lock).map_err(|error| failed(&error))?;
    match flock(&file, how) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    }
    // Another process may have written it meanwhile.
    let outcome = match known(&result, point) {
        Some(report) => Ok(report),
        None => run(point, watch),
    };
    if let Ok(report) = &outcome {
        let kept = StoredPoint {
            schema: StoredPointSchema::default(),
            identity: point.identity.clone(),
            report: report.clone(),
        };
        let kept = serde_json::to_string(&kept).map_err(|error| failed(&error))?;
        output::file(&result, &kept).map_err(|error| output::in_one_line(&error))?;
    }
    // A process that waits for this lock then finds the result; after a failure the next one locks the
    // remaining file.
    let _ = fs::remove_file(&lock);
    Ok(Some(outcome))
}

/// The stored result of a point.
fn known(result: &PathBuf, point: &Point) -> Option<Simulation> {
    let kept: StoredPoint = serde_json::from_slice(&fs::read(result).ok()?).ok()?;
    (kept.identity == point.identity).then_some(kept.report)
}

fn run(point: &Point, watch: &Watch) -> Outcome {
    let run = || -> Result<Simulation, Failure> {
        if let Some(report) = schedule::run(&point.sim, &Input::file(&point.sim.trace)?)? {
            return Ok(report.into());
        }
        let (trace, others, settings) = read(&point.sim)?;
        let mut report = observed(&point.sim, &settings, watch)
            .map_err(|error| named(&settings, &point.sim.placement, &trace, error))?;
        name_traces(&mut report, &trace, &others);
        // With many points, these lists would dominate the table.
        for job in &mut report.jobs {
            job.ranks.clear();
            job.finish.tasks_ps.clear();
        }
        Ok(report)
    };
    run().map_err(|error| output::in_one_line(&error))
}

fn name(point: &Point) -> String {
    point.values.iter().map(|(option, value)| format!("{option}={value}")).collect::<Vec<_>>().join(" ")
}

fn show(sim: &Sim, options: &[Swept], rows: &[(&Point, Outcome)]) -> Result<(), Failure> {
    let point = |(point, outcome): &(&Point, Outcome)| sweep::Point {
        settings: point.values.iter().cloned().collect(),
        error: outcome.as_ref().err().cloned(),
        report: outcome.as_ref().ok().cloned(),
        cost: None,
    };
    let sweep = Sweep {
        schema: SweepSchema::default(),
        options: options.iter().map(|swept| swept.option.clone()).collect(),
        points: rows.iter().map(point).collect(),
        over_seeds: Vec::new(),
        prices: None,
        answers: Vec::new(),
    }
    .answered(sim.cost.as_deref().map(prices).transpose()?);
    if let Some(file) = &sim.plot {
        let picture = sweep.plot().map_err(|error| format!("--plot: {error}"))?;
        output::file(file, &picture)?;
    }
    match (sim.json, sim.csv) {
        (true, _) => output::json(&sweep),
        (_, Some(_)) => output::result(sweep.table().to_csv().trim_end()),
        _ => {
            let part = |point: &sweep::Point| point.report.as_ref()?.jobs.first()?.part.clone();
            let mut parts: Vec<PartReport> = sweep.points.iter().filter_map(part).collect();
            parts.dedup_by(|one, other| one.description == other.description);
            let mut text = match &parts[..] {
                [part] => format!("only {}\n", part.description),
                _ => String::new(),
            };
            text += &sweep.brief_table().to_text(&TextStyle::WHOLE);
            sweep.over_seeds.iter().for_each(|mean| text += &format!("{mean}\n"));
            sweep.answers.iter().for_each(|answer| text += &format!("{answer}\n"));
            output::result(text.trim_end())
        }
    }
}

/// The prices in a file.
fn prices(file: &Path) -> Result<Prices, Failure> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let prices: Prices = toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        format!("{}:{line}: {}", file.display(), error.message().replace('\n', " "))
    })?;
    match prices.are_valid() {
        true => Ok(prices),
        false => Err(format!("{}: a price must be a number from 0", file.display()).into()),
    }
}

/// This process among those of a launcher.
struct Launched {
    rank: u32,
    processes: u32,
}

impl Launched {
    /// From the environment of mpirun (Open MPI, Hydra) or srun.
    fn here() -> Self {
        const VARIABLES: [(&str, &str); 3] = [
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
            ("PMI_RANK", "PMI_SIZE"),
            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
        ];
        let number = |variable: &str| std::env::var(variable).ok()?.trim().parse::<u32>().ok();
        let found = VARIABLES.iter().find_map(|(rank, size)| number(rank).zip(number(size)));
        match found {
            Some((rank, processes)) if rank < processes => Self { rank, processes },
            _ => Self { rank: 0, processes: 1 },
        }
    }
}

//! The settings of a simulation from its options; the run, with the runs that accompany it.

use super::jobs::Jobs;
use crate::algorithms;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::parallel;
use crate::progress::Bar;
use crate::repeated;
use crate::session::Watch;
use crate::simulation_args::{Sim, Table};
use interchange::Files;
use placement::{ArrivalList, Placement};
use replay::{BuildError, Follow};
use sim_example::calibration::Calibration;
use sim_example::model::{Members, Model};
use sim_example::topology::{Fault, TopologySpec};
use sim_example::{
    Collectives, ComputeNoise, ComputeScale, Places, ScaleError, SendCompletion, Settings, SimError,
    Simulation, Workload, simulate, simulate_followed,
};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use vef_format::operation::OpCodes;
use vef_format::units::{Count, Grouped, Picos};

/// Runs a simulation, and the one without contention, which ends early and gives the amount of work: concurrently, or first if the simulation
/// has several threads. They need all cores, and may miss what makes a trace invalid, which this run finds. Its error is shown without a time,
/// because the time of a run without contention is not that of the run asked for.
pub(super) fn observed(sim: &Sim, settings: &Settings, watch: &Watch) -> Result<Simulation, SimError> {
    observed_by(sim, settings, watch, None)
}

/// As [`observed`]; `follow` sees what the tasks do in the simulation itself.
pub(super) fn observed_by(
    sim: &Sim,
    settings: &Settings,
    watch: &Watch,
    follow: Option<&mut dyn Follow>,
) -> Result<Simulation, SimError> {
    // In a sweep the points are shown, and all cores are busy.
    let bar = sim.sweep.is_empty().then(|| Bar::new("simulating"));
    let ideal = (!sim.no_ideal).then(|| settings.ideal()).flatten();
    let total = AtomicU64::new(0);
    let run_ideal = |ideal: &Settings| {
        let report = simulate(ideal, &mut |_| watch.stop_if_cancelled());
        if let Ok(report) = &report {
            total.store(report.messages, Ordering::Relaxed);
        }
        report
    };
    std::thread::scope(|scope| {
        let (first, beside) = match &ideal {
            Some(ideal) if settings.threads > 1 => (Some(run_ideal(ideal).map_err(without_time)?), None),
            Some(ideal) => (None, Some(scope.spawn(move || run_ideal(ideal)))),
            None => (None, None),
        };
        let mut report = simulate_followed(settings, follow, &mut |progress| {
            watch.stop_if_cancelled();
            let Some(bar) = &bar else { return };
            match total.load(Ordering::Relaxed) {
                0 => bar.count(progress.delivered, "messages"),
                total => bar.set(progress.delivered, total),
            }
            bar.at(format_args!("{} of simulated time", progress.now));
        })?;
        let beside = beside.and_then(|thread| thread.join().ok()).transpose()?;
        if let Some(ideal) = first.or(beside) {
            report.set_ideal(&ideal);
        }
        // A run more, where the slowdown asks for its cause.
        let is_slower = report.ideal.is_some_and(|ideal| ideal.slowdown >= 1.01);
        if let Some(own) = settings.own_interfaces().filter(|_| is_slower && sim.sweep.is_empty()) {
            let own = simulate(&own, &mut |progress| {
                watch.stop_if_cancelled();
                if let Some(bar) = &bar {
                    bar.set(progress.delivered, report.messages);
                    bar.at(format_args!(
                        "{} of simulated time, at the senders' own interfaces",
                        progress.now
                    ));
                }
            })?;
            report.set_own_interfaces(&own);
        }
        if sim.sweep.is_empty() {
            warn_of_other_placements(settings, &report);
            warn_of_idle_class(settings, &report);
            warn_of_late_failures(settings, &report);
        }
        let is_beside_others = settings.jobs.len() > 1 || settings.background.is_some();
        if is_beside_others && settings.arrivals.is_none() && !sim.no_ideal {
            let jobs: Vec<u32> = (0..settings.jobs.len() as u32).collect();
            let cores = if sim.sweep.is_empty() { None } else { Some(1) };
            let alone = |&job: &u32, watch: &Watch| {
                simulate(&settings.alone(job), &mut |_| watch.stop_if_cancelled())
            };
            let alone = parallel::map(&jobs, cores, alone, |done, _| {
                if let Some(bar) = &bar {
                    bar.set(done as u64 + 1, jobs.len() as u64);
                    bar.at(format_args!("jobs alone"));
                }
            });
            for (job, alone) in alone.into_iter().enumerate() {
                report.set_alone(job, &alone?);
            }
        }
        for links in report.critical_levels() {
            let again = simulate(&settings.doubled(links.clone()), &mut |progress| {
                watch.stop_if_cancelled();
                if let Some(bar) = &bar {
                    bar.set(progress.delivered, report.messages);
                    bar.at(format_args!("{} of simulated time, once more", progress.now));
                }
            })?;
            report.set_doubled(&links, &again);
        }
        Ok(report)
    })
}

/// Warns of placements for more ranks than their trace has.
fn warn_of_other_placements(settings: &Settings, report: &Simulation) {
    for (workload, job) in settings.jobs.iter().zip(&report.jobs) {
        if let Places::Given(placement) = &workload.places
            && placement.ranks.len() > job.tasks as usize
        {
            let (given, trace) = (Count(placement.ranks.len(), "rank"), workload.trace.display());
            output::remark(format_args!(
                "warning: the placement is of {given}, but {trace} has {}: only the nodes of the first {} are used",
                Grouped(job.tasks),
                Grouped(job.tasks)
            ));
        }
    }
}

/// Warns of a class of traffic for collectives without any message of one.
fn warn_of_idle_class(settings: &Settings, report: &Simulation) {
    let classes = &settings.network.packet.classes;
    if classes.has(Members::Collectives) && report.collectives == report.collectives_offloaded {
        let why = match report.collectives {
            0 => "the traces have no collectives",
            _ => "the network carries out all collectives (--collectives)",
        };
        output::remark(format_args!("warning: --class collectives has no messages: {why}"));
    }
}

/// Warns of failures that begin when the run has ended.
fn warn_of_late_failures(settings: &Settings, report: &Simulation) {
    let is_late = |fault: &&Fault| fault.begin() > Picos::ZERO && fault.begin().0 >= report.runtime_ps;
    let late: Vec<String> = settings.network.fail.iter().filter(is_late).map(Fault::to_string).collect();
    if !late.is_empty() {
        let end = Picos(report.runtime_ps);
        output::remark(format_args!("warning: --fail {}: no effect, the run ends at {end}", late.join("; ")));
    }
}

/// The same error without the time in the run.
fn without_time(mut error: SimError) -> SimError {
    if let SimError::Stuck(stuck) = &mut error {
        stuck.clock = None;
    }
    error
}

/// Adds the name of the placement file, or of the trace, to an error about it.
pub(super) fn named(settings: &Settings, placement: &str, trace: &Input, error: SimError) -> Failure {
    let given = settings.jobs.iter().any(|job| matches!(job.places, Places::Given(_)));
    match error {
        SimError::TooFewNodes { .. } | SimError::Build(BuildError::Placement { .. }) if given => {
            format!("{placement}: {error}").into()
        }
        SimError::Part(_)
        | SimError::Build(_)
        | SimError::Replay(_)
        | SimError::Stuck(_)
        | SimError::EndOfTime(_) => trace.named_error(error).into(),
        error => error.into(),
    }
}

/// The calibration, which may be a pipe: it is read once.
pub(super) fn calibration(sim: &Sim) -> Result<Option<Calibration>, Failure> {
    Ok(sim.calibration.as_deref().map(Calibration::read).transpose()?)
}

/// The traces of the further jobs; those of other tools are converted.
pub(super) fn others(sim: &Sim) -> Result<Vec<Input>, Failure> {
    let other = |trace: &PathBuf| can_be_read_again(trace).and_then(|()| Input::of(trace));
    sim.others.iter().map(other).collect()
}

/// Gives jobs the names of their traces, in place of those of files that these were converted to.
pub(super) fn name_traces(report: &mut Simulation, first: &Input, others: &[Input]) {
    for (job, trace) in report.jobs.iter_mut().zip(std::iter::once(first).chain(others)) {
        job.trace = Some(trace.name().display().to_string());
    }
    let arrived = report.arrivals.iter_mut().flat_map(|arrivals| &mut arrivals.traces);
    for (name, trace) in arrived.zip(std::iter::once(first).chain(others)) {
        *name = trace.name().display().to_string();
    }
}

pub(super) fn settings(
    sim: &Sim,
    trace: &Input,
    others: &[Input],
    codes: Option<&OpCodes>,
    calibration: Option<&Calibration>,
) -> Result<Settings, Failure> {
    if let TopologySpec::File(path) = &sim.network.settings.topology {
        can_be_read_again(path)?;
    }
    if let Some(path) = sim.network.settings.routing.tables() {
        can_be_read_again(path)?;
    }
    let mut job = Workload::new(&trace.path);
    job.op_codes = codes.cloned();
    job.compute_scale = compute_scale(&sim.compute_scale)?;
    job.compute_noise = sim.compute_noise.parse()?;
    if let ComputeNoise::Resampled { of: Some(trace) } = &job.compute_noise {
        can_be_read_again(trace)?;
    }
    job.from_launch = sim.of_run.from_launch;
    let part = sim.part();
    if let Some(part) = &part {
        job.select(part).map_err(|error| trace.named_error(error))?;
    }
    let names = Jobs::of(sim);
    let mut jobs = vec![job.clone()];
    for other in others {
        let mut of_other = Workload { trace: other.path.clone(), part: None, ..job.clone() };
        if let Some(part) = &part {
            of_other.select(part).map_err(|error| other.named_error(error))?;
        }
        jobs.push(of_other);
    }
    for (job, placement) in jobs.iter_mut().zip(names.placements(sim)?) {
        job.places = places(&placement)?;
    }
    names.schedule(sim, &mut jobs)?;
    let list = |file: &Path| -> Result<ArrivalList, Failure> {
        Ok(ArrivalList::read(Files::open(file)?, &file.display().to_string())?)
    };
    let arrivals = sim.arrivals.as_deref().map(list).transpose()?;
    let mut settings = Settings { jobs, network: sim.network.settings.clone(), ..Settings::default() };
    settings.background.clone_from(&sim.background);
    if let Some(arrivals) = &arrivals {
        let programs = names.programs(sim)?;
        let of_file = |error: SimError| match (&error, &sim.arrivals) {
            (SimError::NoArrivals | SimError::NoMachine, Some(file)) => {
                format!("{}: {error}", file.display()).into()
            }
            _ => Failure::from(error),
        };
        settings.arrive(arrivals, &programs, sim.arrival_second, sim.backfill).map_err(of_file)?;
    }
    settings.network.packet.classes = names.classes(sim)?;
    settings.send_completion = sim.send_completion;
    settings.same_node = sim.same_node;
    settings.collectives.clone_from(&sim.collectives);
    settings.algorithms = algorithms::table(&sim.algorithms)
        .map_err(|error| format!("--algorithms {}: {error}", sim.algorithms))?;
    let needs_links = sim.csv.is_some_and(Table::needs_links);
    if settings.network.model == Model::LogGp && sim.timeline.is_some() {
        return Err("--timeline: model loggp does not record what ranks do".into());
    }
    let needs_waits = sim.waits || sim.csv.is_some_and(Table::needs_waits);
    let of_links = sim.critical_path || sim.links || sim.draw.is_some() || needs_links;
    if settings.network.model == Model::LogGp && of_links {
        return Err(
            "--critical-path, --links, --draw, --csv links, time and sources: model loggp has no links"
                .into(),
        );
    }
    if settings.network.model == Model::LogGp && needs_waits {
        return Err("--waits, --csv waits and wait-pairs: model loggp does not record waits".into());
    }
    let several = sim.jobs.is_some_and(|jobs| jobs > 1) && sim.sweep.is_empty();
    let in_turn = settings.arrivals.is_some()
        || !sim.repeat.is_empty()
        || settings.jobs.iter().any(|job| job.after.is_some());
    if several && (settings.background.is_some() || in_turn) {
        return Err(
            "-j: no effect with --repeat, --start after:, --arrivals or --background, which one thread runs"
                .into(),
        );
    }
    if several && settings.collectives != Collectives::Messages {
        return Err("-j: no effect with --collectives offload, which one thread runs".into());
    }
    let packet = &settings.network.packet;
    if several && (packet.congestion.is_some() || packet.lossy.is_some()) {
        return Err("-j: no effect with --congestion or --lossy, which one thread runs".into());
    }
    if several && settings.network.fail.iter().any(Fault::has_times) {
        return Err("-j: no effect with --fail at a time, which one thread runs".into());
    }
    if several && sim.timeline.is_some() {
        return Err("-j: no effect with --timeline, for which one thread runs".into());
    }
    if several && settings.network.model != Model::Packet {
        return Err(format!(
            "-j: no effect with --model {}; only packet has several threads",
            settings.network.model
        )
        .into());
    }
    if settings.network.model == Model::LogGp && settings.send_completion != SendCompletion::Eager {
        return Err("--send-completion: model loggp has --loggp S=BYTES and --rendezvous instead".into());
    }
    // The points of a sweep run concurrently.
    settings.threads = sim.jobs.filter(|_| sim.sweep.is_empty()).map_or(1, u32::from);
    settings.observe.critical_path = sim.critical_path;
    settings.observe.waits = needs_waits;
    settings.observe.links = sim.links || sim.draw.is_some() || sim.report.is_some() || needs_links;
    if let Some(calibration) = calibration {
        let given = repeated::given::<Sim>()?;
        let is_given = |option: &str| given.iter().chain(&sim.swept).any(|given| given == option);
        calibration.apply(&mut settings, is_given)?;
    }
    Ok(settings)
}

/// Refuses a pipe in place of a file that is read several times.
pub(super) fn can_be_read_again(path: &Path) -> Result<(), Failure> {
    let is_read_once = |kind: fs::FileType| kind.is_fifo() || kind.is_char_device();
    match fs::metadata(path) {
        Ok(about) if is_read_once(about.file_type()) => {
            Err(format!("{}: not a file; it is read several times", path.display()).into())
        }
        _ => Ok(()),
    }
}

/// Parses a rule, else reads a file.
fn places(text: &str) -> Result<Places, Failure> {
    match text.parse() {
        Ok(rule) => Ok(rule),
        Err(rule) if !Path::new(text).exists() && !text.contains(['.', '/']) => {
            Err(format!("{rule}, or name a placement file: there is none of this name").into())
        }
        Err(_) => Ok(Places::Given(Placement::read(Path::new(text))?)),
    }
}

/// Parses factors, else reads a file of them.
fn compute_scale(text: &str) -> Result<ComputeScale, Failure> {
    let file = Path::new(text);
    match text.parse() {
        // A pipe, too.
        Err(_) if file.exists() && !file.is_dir() => {
            let factors = fs::read(file).map_err(|error| format!("{text}: {error}"))?;
            let factors = std::str::from_utf8(&factors).map_err(|error| {
                let line = 1 + factors[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
                format!("{text}:{line}: not a text (UTF-8) with factors")
            })?;
            Ok(factors.parse().map_err(|error| match error {
                ScaleError::Text { line, .. } => format!("{text}:{line}: {error}"),
                ScaleError::Rank { .. } => format!("{text}: {error}"),
            })?)
        }
        Err(error) => Err(format!("{error}; or name a file of them").into()),
        Ok(scale) => Ok(scale),
    }
}

/// Repeats the warnings about the capture of a trace, and says what its computing times contain.
pub(super) fn tell_of(sim: &Sim, trace: &Input) {
    trace.warn();
    trace.tell_time_in_mpi(sim.counts_send_waits());
}

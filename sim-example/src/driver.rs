//! A simulation from its settings to its report: traces, network, run.

use std::path::Path;
use std::time::Instant;

use replay::{Accounts, Builder, Engine, Extent, Labels, SendCompletion};
use results::simulation::{Captured, ComputingReport, CriticalPath, CriticalStep, Simulation};
use vef_format::container::{About, Reader, Span};
use vef_format::ids::Rank;
use vef_format::units::Picos;

use crate::computing::ComputeScale;
use crate::critical::Causes;
use crate::error::SimError;
use crate::event_loop::{Follower, Run};
use crate::latencies::Latencies;
use crate::loggp;
use crate::model::{Build, Carrier, ModelError, Network, Usage, WithProtocol};
use crate::noise::Noise;
use crate::parallel;
use crate::progress::Progress;
use crate::report::Outcome;
use crate::settings::{NetworkSettings, Settings};
use crate::spans::Spans;
use crate::topology::Fabric;
use crate::waiting::Waiting;
use crate::watch::Observe;

/// Runs the traces of `settings` on its network, and calls `progress` from time to time.
///
/// # Errors
/// Invalid settings, an invalid trace, or tasks that wait for messages that are never sent. Always
/// terminates.
pub fn simulate(settings: &Settings, progress: &mut dyn FnMut(Progress)) -> Result<Simulation, SimError> {
    let Prepared { builder, nodes, spans, computing, labels } = Prepared::new(settings)?;
    let network = &settings.network;
    let threads = parallel::threads(settings, nodes.iter().map(Vec::len).sum());
    let least = parallel::LEAST_HOPS;
    let divided = match threads {
        1 => Err(builder),
        _ => parallel::run(builder, &nodes, settings, threads, least, progress),
    };
    let mut report = match divided {
        Ok(Some(report)) => report,
        // One thread finds the error.
        Ok(None) => return simulate(&Settings { threads: 1, ..settings.clone() }, progress),
        Err(builder) => run_labelled(builder.engine()?, network, settings.observe, labels, progress)?,
    };
    let prepared = spans.into_iter().zip(computing);
    for ((job, workload), (spans, computing)) in report.jobs.iter_mut().zip(&settings.jobs).zip(prepared) {
        job.computing = computing;
        if let Some(spans) = spans {
            job.captured_times = spans.times();
            job.span = Some(spans.report(&job.finish));
        }
        job.trace = Some(workload.trace.display().to_string());
        job.not_in_trace = not_in_trace(&workload.trace);
    }
    if let Some(path) = &mut report.critical_path {
        name_records(path, settings)?;
    }
    Ok(report)
}

/// The jobs of a simulation, opened.
struct Prepared {
    builder: Box<Builder>,
    /// The nodes of each job's tasks.
    nodes: Vec<Vec<u32>>,
    /// Of each job, if its trace has them.
    spans: Vec<Option<Spans>>,
    computing: Vec<ComputingReport>,
    /// What the traces say of their records, if it is wanted.
    labels: Vec<Option<Labels>>,
}

impl Prepared {
    fn new(settings: &Settings) -> Result<Self, SimError> {
        let send_completion = settings.network.send_completion(settings.send_completion);
        let mut builder = Engine::builder()
            .send_completion(send_completion)
            .same_node(settings.same_node)
            .algorithms(settings.algorithms.clone());
        let (mut all_nodes, mut spans, mut computing) = (Vec::new(), Vec::new(), Vec::new());
        let mut labels = Vec::new();
        for (number, workload) in (0..).zip(&settings.jobs) {
            let extent = Extent { from_launch: workload.from_launch, part: workload.part.clone() };
            let mut job = workload.open()?.extent(&extent)?;
            job.check_tasks(number)?;
            labels.push(if settings.observe.waits { job.labels()? } else { None });
            let nodes = workload.nodes(&job)?;
            let (captured, times) = (job.captured_spans()?, job.captured_times()?);
            let factors = workload.compute_scale.factors(job.tasks())?;
            let of_job = |spans: &[Span]| Spans::new(spans, times, job.clock(), workload, &factors);
            // What was captured of a part is not known.
            spans.push(captured.as_deref().filter(|_| workload.part.is_none()).map(of_job));
            let seed = settings.network.seed;
            let noise = Noise::new(&workload.compute_noise, &job, number, seed, send_completion)?;
            let scale = &workload.compute_scale;
            computing.push(ComputingReport {
                scale: (*scale != ComputeScale::default()).then(|| scale.to_string()),
                noise: noise.as_ref().map(|(_, report)| report.clone()),
            });
            if let Some((noise, _)) = noise {
                job = job.computing(Box::new(noise));
            }
            builder = builder.job(job.nodes(nodes.clone()).start(workload.start).time_factors(factors));
            all_nodes.push(nodes);
        }
        Ok(Self { builder: Box::new(builder), nodes: all_nodes, spans, computing, labels })
    }
}

/// Names the records on the critical path by what the traces say of them as they were captured.
fn name_records(path: &mut CriticalPath, settings: &Settings) -> Result<(), SimError> {
    for (number, workload) in (0..).zip(&settings.jobs) {
        let of_job = |step: &&mut CriticalStep| step.record().is_some_and(|(job, ..)| job == number);
        let mut steps: Vec<&mut CriticalStep> = path.steps.iter_mut().filter(of_job).collect();
        let records = steps.iter().filter_map(|step| step.record());
        let wanted: Vec<(Rank, u64)> = records.map(|(_, task, record)| (Rank(task), record)).collect();
        if wanted.is_empty() {
            continue;
        }
        let job = workload.open()?;
        let clock = job.clock();
        for (step, record) in steps.iter_mut().zip(job.captured_records(&wanted)?) {
            *step.captured() = Captured {
                function: record.function,
                phase: record.phases.into_iter().next_back(),
                captured_ps: record.at.and_then(|at| Some(at.to_picos(clock)?.0)),
            };
        }
    }
    Ok(())
}

/// The notes of a container on what it lacks. The replay has reported an invalid file before.
fn not_in_trace(trace: &Path) -> Vec<String> {
    let Ok(container) = Reader::open(trace) else { return Vec::new() };
    container.about().facts(About::NOT_IN_TRACE).cloned().collect()
}

/// Runs an engine that has not begun, on traces of any source. Its sends must be complete as
/// [`NetworkSettings::send_completion`] says: with another rule, [`Model::LogGp`](crate::model::Model::LogGp) gives other times.
///
/// # Errors
/// As [`simulate`].
pub fn run(
    engine: Engine,
    network: &NetworkSettings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    run_observed(engine, network, Observe::default(), progress)
}

/// As [`run`], with the optional results of `observe`.
///
/// # Errors
/// As [`simulate`].
pub fn run_observed(
    engine: Engine,
    network: &NetworkSettings,
    observe: Observe,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    run_labelled(engine, network, observe, Vec::new(), progress)
}

/// As [`run_observed`], with what is known of the records of each job.
fn run_labelled(
    engine: Engine,
    network: &NetworkSettings,
    observe: Observe,
    labels: Vec<Option<Labels>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    match network.model.info().carrier {
        Carrier::Links(build) => run_on_labelled(engine, network, build, observe, labels, progress),
        Carrier::Ranks => run_loggp(engine, network, progress),
    }
}

/// The network for the tasks of an engine.
fn fabric(engine: &Engine, network: &NetworkSettings) -> Result<Fabric, SimError> {
    let tasks = (0..engine.jobs()).flat_map(|job| {
        (0u32..).zip(engine.progress(job)).map(move |(task, placed)| (job, task, placed.node))
    });
    network.topology_for(&tasks.collect::<Vec<_>>())
}

fn run_loggp(
    mut engine: Engine,
    settings: &NetworkSettings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    let topology = &fabric(&engine, settings)?;
    let outcome = loggp::run_trace(&mut engine, &settings.loggp, progress)?;
    match engine.stuck() {
        Some(stuck) => Err(SimError::Stuck(Box::new(stuck))),
        None => Ok(Outcome {
            engines: &[engine],
            finish: Some(&outcome.finish),
            critical_path: None,
            waits: None,
            accounts: None,
            watch: None,
            usage: vec![Usage::default(); topology.links() as usize],
            events: outcome.events,
            latencies: Latencies::unsorted(outcome.latencies),
            topology,
            settings,
            wall: outcome.wall,
        }
        .report()),
    }
}

/// As [`run_observed`], on the network that `build` returns, whatever the model of `settings`: that of another crate.
///
/// # Errors
/// As [`simulate`].
pub fn run_on(
    engine: Engine,
    settings: &NetworkSettings,
    build: Build,
    observe: Observe,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    run_on_labelled(engine, settings, build, observe, Vec::new(), progress)
}

fn run_on_labelled(
    engine: Engine,
    settings: &NetworkSettings,
    build: Build,
    observe: Observe,
    labels: Vec<Option<Labels>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    let topology = &fabric(&engine, settings)?;
    let report_sent = engine.send_completion() == SendCompletion::WhenSent;
    let network = build(settings.setup(topology, report_sent).map_err(ModelError::from)?)?;
    let mut network = WithProtocol { network, protocol: &settings.protocol };
    let began = Instant::now();
    network.set_watch(observe.watch(topology.links(), topology.nodes()));
    let accounts = Accounts::new(&engine);
    let causes =
        observe.critical_path.then(|| Box::new(Causes::new(topology, settings, &accounts.all_reached())));
    let waiting = observe.waits.then(|| Box::new(Waiting::new(&engine, labels)));
    let mut run = Run::begin(engine, network, accounts, causes, waiting)?;
    run.run_until(Picos::MAX, progress)?;
    let Run { engine, latencies, follower: Follower { mut network, accounts, causes, waiting, .. }, .. } =
        run;
    let path = |causes: Box<Causes<'_>>| {
        causes.finish(accounts.all_reached().into_iter(), engine.finish(), accounts.first_tasks())
    };
    match engine.stuck() {
        Some(stuck) => Err(match network.deadlock() {
            Some(circle) => SimError::Deadlock { circle, stuck: Box::new(stuck) },
            None => SimError::Stuck(Box::new(stuck)),
        }),
        None => Ok(Outcome {
            finish: None,
            critical_path: causes.map(path),
            waits: waiting.map(|waiting| waiting.report()),
            engines: &[engine],
            accounts: Some(&accounts),
            usage: network.usage(),
            events: network.events(),
            watch: network.watch().as_deref(),
            latencies,
            topology,
            settings,
            wall: began.elapsed(),
        }
        .report()),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod threads;

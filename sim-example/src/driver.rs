//! A simulation from its settings to its report: traces, network, run.

use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::time::Instant;

use replay::{
    Accounts, Builder, Engine, Extent, Follow, Job, Labels, LoadError, Picos, SendCompletion, WaitSums,
};
use results::simulation::{Captured, ComputingReport, CriticalPath, CriticalStep, Simulation, WaitsReport};
use vef_format::container::{About, Reader, Span};
use vef_format::format::Format;
use vef_format::ids::{CommId, Rank};
use vef_format::record::Line;
use vef_format::text;

use crate::allocation::allocate;
use crate::arrivals::Arrivals;
use crate::computing::ComputeScale;
use crate::critical::Causes;
use crate::error::SimError;
use crate::event_loop::{EngineOutput, Run};
use crate::in_network::InNetwork;
use crate::latencies::Latencies;
use crate::loggp;
use crate::model::{Build, Carrier, ModelError, Network, Usage, WithProtocol};
use crate::noise::Noise;
use crate::offload::{Collectives, Offload};
use crate::parallel;
use crate::progress::Progress;
use crate::repeats::{Repeat, Repeats};
use crate::report::{Outcome, congestion};
use crate::settings::{NetworkSettings, Settings, Workload};
use crate::spans::{Kept, SendWaits, Spans};
use crate::topology::{Fabric, LinkClass};
use crate::traffic::Background;
use crate::traffic::beside::Beside;
use crate::watch::Observe;

/// Runs the traces of `settings` on its network, and calls `progress` from time to time.
///
/// # Errors
/// Invalid settings, an invalid trace, or tasks that wait for messages that are never sent. Always
/// terminates.
pub fn simulate(settings: &Settings, progress: &mut dyn FnMut(Progress)) -> Result<Simulation, SimError> {
    simulate_followed(settings, None, progress)
}

/// As [`simulate`]; `follow` sees what the tasks do. One thread runs it then, and it must have a model with links and no jobs that repeat.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_followed(
    settings: &Settings,
    follow: Option<&mut dyn Follow>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    let Prepared { builder, nodes, spans, computing, labels } = Prepared::new(settings)?;
    let network = &settings.network;
    let threads = match follow {
        Some(_) => 1,
        None => parallel::threads(settings, nodes.iter().map(Vec::len).sum()),
    };
    let least = parallel::LEAST_HOPS;
    let divided = match threads {
        1 => Err(builder),
        _ => parallel::run(builder, &nodes, settings, threads, least, progress),
    };
    let mut report = match divided {
        Ok(Some(report)) => report,
        // One thread finds the error.
        Ok(None) => return simulate(&Settings { threads: 1, ..settings.clone() }, progress),
        Err(builder) => {
            let follow = follow.map(|follow| follow as &mut dyn Follow);
            let arrivals = Arrivals::new(settings, nodes)?;
            let extras = Extras { follow, arrivals, ..Extras::of(settings, labels)? };
            run_beside(builder.engine()?, network, extras.checked()?, progress)?
        }
    };
    let prepared = spans.into_iter().zip(computing);
    for ((job, (_, workload)), (spans, computing)) in
        report.jobs.iter_mut().zip(running(settings)).zip(prepared)
    {
        job.computing = computing;
        // A job that begins after another knows when it did.
        let later = job.start_ps.saturating_sub(workload.start.0);
        job.start_ps = workload.start.0 + later;
        job.runtime_ps = job.runtime_ps.saturating_sub(job.start_ps);
        if let Some(mut spans) = spans {
            spans.delay(Picos(later));
            (job.captured_times, job.captured_own_ps) = spans.times().unzip();
            job.span = Some(spans.report(&job.finish));
        }
        job.trace = Some(workload.trace.display().to_string());
        job.not_in_trace = not_in_trace(&workload.trace);
    }
    if let Some(arrivals) = &mut report.arrivals {
        let jobs = std::mem::take(&mut report.jobs);
        report.tasks = arrivals.jobs.iter().map(|job| u64::from(jobs[job.trace as usize].tasks)).sum();
        arrivals.traces = settings.jobs.iter().map(|job| job.trace.display().to_string()).collect();
    }
    if let Some(path) = &mut report.critical_path {
        name_records(path, settings)?;
    }
    Ok(report)
}

/// The jobs that run, with their numbers.
fn running(settings: &Settings) -> impl Iterator<Item = (u32, &Workload)> {
    (0..).zip(&settings.jobs).filter(|(job, _)| settings.only.is_none_or(|only| only == *job))
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
        if let Collectives::Offload(offload) = &settings.collectives {
            let comms = offload.which.comms.iter().flatten().copied();
            have_communicators(&settings.jobs, comms.collect())?;
            builder = builder.collective_events(offload.which.clone());
        }
        let (mut all_nodes, mut spans, mut computing) = (Vec::new(), Vec::new(), Vec::new());
        let mut labels = Vec::new();
        let open = |workload: &Workload| -> Result<Job, SimError> {
            let extent = Extent { from_launch: workload.from_launch, part: workload.part.clone() };
            Ok(workload.open()?.extent(&extent)?)
        };
        let mut jobs = settings.jobs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        (0..).zip(&jobs).try_for_each(|(number, job)| job.check_tasks(number))?;
        let mut allocated = allocate(settings, &jobs)?;
        if let Some(only) = settings.only {
            jobs = jobs.into_iter().skip(only as usize).take(1).collect();
            allocated = allocated.into_iter().skip(only as usize).take(1).collect();
        }
        for ((mut job, nodes), (number, workload)) in jobs.into_iter().zip(allocated).zip(running(settings)) {
            labels.push(if settings.observe.waits { job.labels()? } else { None });
            let (captured, accounts) = (job.program_spans()?, job.captured_accounts()?);
            let send_waits = match (job.computes_send_waits(), send_completion) {
                (false, _) => SendWaits::Apart,
                (true, SendCompletion::Eager) => SendWaits::Computing,
                (true, _) => SendWaits::WithinComputing,
            };
            let kept = Kept { send_waits, preempted: job.computes_preempted() };
            let factors = workload.compute_scale.factors(job.tasks())?;
            let of_job = |spans: &[Span]| Spans::new(spans, &accounts, job.clock(), workload, &factors, kept);
            // What was captured of a part is not known.
            let is_part =
                workload.part.is_some() || accounts.iter().any(|(_, account, _)| account.is_of_one_phase());
            spans.push(captured.as_deref().filter(|_| !is_part).map(of_job));
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
            if settings.arrivals.is_some() || (workload.after.is_some() && settings.only.is_none()) {
                job = job.on_call();
            }
            builder = builder.job(job.nodes(nodes.clone()).start(workload.start).time_factors(factors));
            all_nodes.push(nodes);
        }
        Ok(Self { builder: Box::new(builder), nodes: all_nodes, spans, computing, labels })
    }
}

/// Checks that each communicator is in some trace. A text trace is read until all are found.
fn have_communicators(jobs: &[Workload], mut missing: BTreeSet<CommId>) -> Result<(), SimError> {
    for Workload { trace, .. } in jobs {
        if missing.is_empty() {
            return Ok(());
        }
        if Format::is_container(trace).is_ok_and(|is_container| is_container) {
            let reader = Reader::open(trace).map_err(LoadError::from)?;
            let mut all = reader.communicators();
            while let Some((comm, _)) = all.next().map_err(LoadError::from)? {
                missing.remove(&comm);
            }
            continue;
        }
        let mut lines = text::Reader::open(trace).map_err(LoadError::from)?;
        while let Some(line) = lines.next().map_err(LoadError::from)? {
            if let Line::Communicator { id, .. } = line {
                missing.remove(&id);
            }
            if missing.is_empty() {
                break;
            }
        }
    }
    missing.first().map_or(Ok(()), |comm| Err(SimError::NoCommunicator { comm: comm.0 }))
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
                function: record.label.function.as_deref().map(str::to_owned),
                phase: record.label.phase.as_deref().map(str::to_owned),
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
    run_beside(engine, network, Extras { observe, ..Extras::default() }, progress)
}

/// What a run has beside its engine and its network.
#[derive(Default)]
struct Extras<'a> {
    observe: Observe,
    background: Option<&'a Background>,
    repeats: Option<Box<Repeats>>,
    arrivals: Option<Box<Arrivals>>,
    /// Set if the network carries out collectives.
    offload: Option<&'a Offload>,
    /// What is known of the records of each job, if waits are recorded.
    labels: Vec<Option<Labels>>,
    follow: Option<&'a mut dyn Follow>,
}

impl<'a> Extras<'a> {
    fn of(settings: &'a Settings, labels: Vec<Option<Labels>>) -> Result<Self, SimError> {
        let observe = settings.observe;
        let offload = match &settings.collectives {
            Collectives::Offload(offload) => Some(offload),
            Collectives::Messages => None,
        };
        if offload.is_some() && observe.critical_path {
            let with = "collectives that the network carries out";
            return Err(SimError::Unsupported { what: "the critical path", with });
        }
        if settings.only.is_some() {
            return Ok(Self { observe, offload, labels, ..Self::default() });
        }
        for (job, workload) in (0..).zip(&settings.jobs) {
            if let Repeat::Until(until) = workload.repeat
                && (settings.jobs.get(until as usize))
                    .is_none_or(|other| matches!(other.repeat, Repeat::Until(_)))
            {
                return Err(SimError::Repeat { job, until });
            }
        }
        for (job, workload) in (0..).zip(&settings.jobs) {
            // As many steps as there are jobs end, unless they go around.
            let mut before =
                std::iter::successors(workload.after, |&other| settings.jobs.get(other as usize)?.after);
            if let Some(after) = workload.after
                && (after as usize >= settings.jobs.len()
                    || before.by_ref().take(settings.jobs.len()).any(|other| other == job))
            {
                return Err(SimError::After { job, after });
            }
        }
        if let Some(jobs) = circle(&settings.jobs) {
            return Err(SimError::Circle { jobs });
        }
        let runs: Vec<_> = settings.jobs.iter().map(|job| (job.repeat, job.start, job.after)).collect();
        let (repeats, background) = (Repeats::new(&runs), settings.background.as_ref());
        Ok(Self { observe, background, repeats, offload, labels, ..Self::default() })
    }

    /// What among them needs a model with links.
    fn need_links(&self) -> Option<&'static str> {
        match self {
            Self { background: Some(_), .. } => Some("background traffic"),
            Self { repeats: Some(_), .. } => Some("jobs that repeat or begin after others"),
            Self { arrivals: Some(_), .. } => Some("jobs that arrive"),
            Self { offload: Some(_), .. } => Some("collectives that the network carries out"),
            Self { follow: Some(_), .. } => Some("a timeline"),
            _ => None,
        }
    }

    /// Refuses what does not go together.
    fn checked(self) -> Result<Self, SimError> {
        let asked = [
            ("the critical path", self.observe.critical_path),
            ("waits", self.observe.waits),
            ("a timeline", self.follow.is_some()),
        ];
        let in_turn = "jobs that repeat or begin after others";
        let (repeats, arrive) = (self.repeats.is_some(), self.arrivals.is_some());
        let beside_arrivals = [(in_turn, repeats), ("background traffic", self.background.is_some())];
        let first = |asked: &[(&'static str, bool)]| {
            asked.iter().find(|(_, is_asked)| *is_asked).map(|(what, _)| *what)
        };
        let refused = match (first(&asked), first(&beside_arrivals)) {
            (Some(what), _) if repeats => Some((what, in_turn)),
            (Some(what), _) | (None, Some(what)) if arrive => Some((what, "jobs that arrive")),
            _ => None,
        };
        refused.map_or(Ok(self), |(what, with)| Err(SimError::Unsupported { what, with }))
    }
}

/// Jobs of which each begins after the next or repeats until that is over, and the last one so waits for the first.
fn circle(jobs: &[Workload]) -> Option<Vec<u32>> {
    let waits_for = |job: u32| {
        let job = &jobs[job as usize];
        let until = match job.repeat {
            Repeat::Until(until) => Some(until),
            Repeat::Times(_) => None,
        };
        job.after.into_iter().chain(until)
    };
    // Breadth first from each job, with the job from which another was reached.
    (0..jobs.len() as u32).find_map(|first| {
        let mut from: HashMap<u32, u32> = HashMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(job) = queue.pop_front() {
            for other in waits_for(job) {
                if other == first {
                    let mut way: Vec<u32> =
                        std::iter::successors(Some(job), |job| from.get(job).copied()).collect();
                    way.reverse();
                    return Some(way);
                }
                if let Entry::Vacant(entry) = from.entry(other) {
                    entry.insert(job);
                    queue.push_back(other);
                }
            }
        }
        None
    })
}

fn run_beside(
    engine: Engine,
    network: &NetworkSettings,
    extras: Extras<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    match (&network.model.info().carrier, extras.need_links()) {
        (Carrier::Links(build), _) => run_with(engine, network, *build, extras, progress),
        (Carrier::Ranks, Some(what)) => Err(SimError::Unsupported { what, with: "model loggp" }),
        (Carrier::Ranks, None) => run_loggp(engine, network, progress),
    }
}

/// The network for the tasks of an engine; if jobs arrive, they may have any nodes.
fn fabric(engine: &Engine, network: &NetworkSettings, arrivals: bool) -> Result<Fabric, SimError> {
    if arrivals {
        return network.whole_fabric();
    }
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
    let topology = &fabric(&engine, settings, false)?;
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
            repeats: None,
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
    run_with(engine, settings, build, Extras { observe, ..Extras::default() }, progress)
}

fn run_with(
    engine: Engine,
    settings: &NetworkSettings,
    build: Build,
    Extras { observe, background, repeats, arrivals, offload, labels, follow }: Extras<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimError> {
    if observe.critical_path && settings.packet.lossy.is_some() {
        return Err(SimError::Unsupported { what: "the critical path", with: "--lossy" });
    }
    let topology = &fabric(&engine, settings, arrivals.is_some())?;
    let report_sent = engine.send_completion() == SendCompletion::WhenSent;
    let mut network = build(settings.setup(topology, report_sent).map_err(ModelError::from)?)?;
    let mut counted = None;
    if let Some(background) = background {
        let (beside, counts) = Beside::new(network, background, topology, settings)?;
        (network, counted) = (Box::new(beside), Some(counts));
    }
    let mut network = WithProtocol { network, protocol: &settings.protocol };
    let began = Instant::now();
    network.set_watch(observe.watch(topology.links(), topology.nodes()));
    let accounts = Accounts::new(&engine);
    let causes =
        observe.critical_path.then(|| Box::new(Causes::new(topology, settings, &accounts.all_reached())));
    let waits = observe.waits.then(|| Box::new(WaitSums::new(&engine, labels)));
    let bandwidth = settings.links.of(LinkClass::NODE).bandwidth;
    let in_network = offload.map(|offload| Box::new(InNetwork::new(offload.latency, bandwidth)));
    let mut run = Run::begin(engine, network, accounts, causes, waits, in_network, follow)?;
    (run.repeats, run.arrivals) = (repeats, arrivals);
    run.run(progress)?;
    let Run { engine, latencies, repeats, arrivals, output, .. } = run;
    let EngineOutput { mut network, accounts, causes, waits, in_network, .. } = output;
    let collectives_offloaded = in_network.map_or(0, |in_network| in_network.carried_out);
    let path = |causes: Box<Causes<'_>>| {
        causes.finish(accounts.all_reached().into_iter(), engine.finish(), accounts.first_tasks())
    };
    match engine.stuck() {
        Some(stuck) => Err(match (network.stranded(), network.deadlock()) {
            (Some(stranded), _) => SimError::Stranded(stranded),
            (None, Some(circle)) => SimError::Deadlock { circle, stuck: Box::new(stuck) },
            (None, None) => SimError::Stuck(Box::new(stuck)),
        }),
        None => Ok(Outcome {
            finish: None,
            repeats: repeats.as_deref(),
            critical_path: causes.map(path),
            waits: waits.map(|mut waits| {
                waits.end();
                WaitsReport::new(waits.places(), waits.pairs())
            }),
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
        .report())
        .map(|report| Simulation {
            background: counted.map(|counted| counted.report()),
            arrivals: arrivals.map(|arrivals| arrivals.report()),
            congestion: congestion(settings, network.congested()),
            collectives_offloaded,
            ..report
        }),
    }
}

#[cfg(test)]
mod tests;

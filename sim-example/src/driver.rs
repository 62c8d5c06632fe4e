//! The loop between the replay, which has the messages, and the network, which has the times.

use std::path::Path;
use std::time::Instant;

use replay::{Engine, Job, LiveId, LoadError, Message, Next, Queue, SendCompletion, Sink, Started, Stream};
use vef_format::container::{About, Reader, is_container};
use vef_format::units::Picos;

use crate::accounts::Accounts;
use crate::critical::Causes;
use crate::error::SimError;
use crate::latencies::{Cell, Latencies};
use crate::loggp;
use crate::model::{
    Carried, Happened, LinkSpeed, Model, Network, OutOfTime, Usage, WithProtocol, with_network,
};
use crate::noise::Noise;
use crate::progress::{PROGRESS_EVERY, Progress};
use crate::quantity::Bandwidth;
use crate::report::{ComputingReport, Report, Run};
use crate::settings::{NetworkSettings, Settings, Workload};
use crate::spans::Spans;
use crate::topology::{LinkId, Speed, Topology};
use crate::watch::Observe;

/// Runs the traces of `settings` on its network, and calls `progress` from time to time.
///
/// # Errors
/// Invalid settings, an invalid trace, or tasks that wait for messages that are never sent. Always
/// terminates.
pub fn simulate(settings: &Settings, progress: &mut dyn FnMut(Progress)) -> Result<Report, SimError> {
    let send_completion = settings.network.send_completion(settings.send_completion);
    let mut builder = Engine::builder()
        .send_completion(send_completion)
        .same_node(settings.same_node)
        .algorithms(settings.algorithms.clone());
    let (mut spans, mut computing) = (Vec::new(), Vec::new());
    for (number, workload) in (0..).zip(&settings.jobs) {
        let mut job = open(workload)?;
        job.check_tasks(number)?;
        let nodes = workload.nodes(&job)?;
        let captured = job.captured_spans()?;
        let factors = workload.compute_scale.factors(job.tasks())?;
        spans.push(captured.as_deref().map(|spans| Spans::new(spans, job.clock(), workload, &factors)));
        let seed = settings.network.seed;
        let noise = Noise::new(&workload.compute_noise, &job, number, seed, send_completion)?;
        computing
            .push(ComputingReport::new(&workload.compute_scale, noise.as_ref().map(|(_, report)| report)));
        if let Some((noise, _)) = noise {
            job = job.computing(Box::new(noise));
        }
        if workload.from_init {
            let captured = captured.ok_or(SimError::NoInitialisation)?;
            job = job.skip(captured.iter().map(|span| span.initialised).collect());
        }
        builder = builder.job(job.nodes(nodes).start(workload.start).time_factors(factors));
    }
    let mut report = run_observed(builder.engine()?, &settings.network, settings.observe, progress)?;
    let prepared = spans.into_iter().zip(computing);
    for ((job, workload), (spans, computing)) in report.jobs.iter_mut().zip(&settings.jobs).zip(prepared) {
        job.computing = computing;
        job.span = spans.map(|spans| spans.report(&job.finish_ps));
        job.trace = Some(workload.trace.display().to_string());
        job.not_in_trace = not_in_trace(&workload.trace);
    }
    Ok(report)
}

/// The notes of a container on what it lacks. The replay has reported an invalid file before.
fn not_in_trace(trace: &Path) -> Vec<String> {
    let Ok(container) = Reader::open(trace) else { return Vec::new() };
    container.about().facts(About::NOT_IN_TRACE).cloned().collect()
}

fn open(workload: &Workload) -> Result<Job, SimError> {
    let Workload { trace, op_codes, .. } = workload;
    match op_codes {
        Some(codes) if !is_container(trace).is_ok_and(|is_container| is_container) => {
            Ok(Job::stream(Stream::with_codes(trace, codes.clone()).map_err(LoadError::from)?))
        }
        _ => Ok(Job::open(trace)?),
    }
}

/// Runs an engine that has not begun, on traces of any source. Its sends must be complete as
/// [`NetworkSettings::send_completion`] says: with another rule, [`Model::LogGp`] gives other times.
///
/// # Errors
/// As [`simulate`].
pub fn run(
    engine: Engine,
    network: &NetworkSettings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SimError> {
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
) -> Result<Report, SimError> {
    let tasks =
        || (0..engine.jobs()).flat_map(|job| (0u32..).zip(engine.progress(job)).map(move |t| (job, t)));
    let needed = tasks().map(|(_, (_, task))| task.node).max().unwrap_or(0).saturating_add(1);
    let mut topology = network.topology.build(needed)?;
    if let Some(link) = network.doubled.map(LinkId).filter(|link| link.0 < topology.links()) {
        let LinkSpeed { latency, bandwidth } =
            network.links.speeds(&topology)[usize::from(topology.class(link).0)];
        let doubled = Bandwidth::from_bits_per_second(bandwidth.bits_per_second().saturating_mul(2));
        let speed = Speed { latency: Some(latency), bandwidth: doubled };
        topology.set_speed(link, speed);
    }
    if let Some((job, (task, placed))) = tasks().find(|(_, (_, task))| task.node >= topology.nodes()) {
        let (name, nodes) = (network.topology.to_string(), topology.nodes());
        return Err(SimError::TooFewNodes { topology: name, nodes, job, task, node: placed.node });
    }
    let settings = network;
    if settings.model == Model::LogGp {
        return run_loggp(&topology, engine, settings, progress);
    }
    let report_sent = engine.send_completion() == SendCompletion::WhenSent;
    with_network!(&topology, settings, report_sent, |network| run_on(
        WithProtocol { network, protocol: &settings.protocol },
        observe,
        &topology,
        engine,
        settings,
        progress
    ))
}

fn run_loggp(
    topology: &Topology,
    mut engine: Engine,
    settings: &NetworkSettings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SimError> {
    let outcome = loggp::run_trace(&mut engine, &settings.loggp, progress)?;
    match engine.stuck() {
        Some(stuck) => Err(SimError::Stuck(Box::new(stuck))),
        None => Ok(Report::new(Run {
            engine: &engine,
            finish: Some(&outcome.finish),
            critical_path: None,
            accounts: None,
            watch: None,
            usage: vec![Usage::default(); topology.links() as usize],
            events: outcome.events,
            latencies: Latencies::unsorted(outcome.latencies),
            topology,
            settings,
            wall: outcome.wall,
        })),
    }
}

/// Receives the results of the engine's calls. Messages are submitted to the network at once, with the time of their start;
/// messages within a node and wake-ups are queued here.
struct Follower<'a, N> {
    network: N,
    /// The first error of [`Network::submit`].
    refused: Option<OutOfTime>,
    events: Queue<Next>,
    /// Kind and size class of each live message, by slot of its id.
    cells: Vec<Cell>,
    accounts: Accounts,
    /// Set if the critical path is requested.
    causes: Option<Box<Causes<'a>>>,
}

impl<N: Network> Sink for Follower<'_, N> {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        if let Some(causes) = &mut self.causes {
            causes.follows(&next, |job, task| self.accounts.number(job, task));
        }
        match next {
            Next::Message(message) => self.submit(&message),
            _ => self.events.push(next.at(), next),
        }
    }

    #[inline(always)]
    fn started(&mut self, started: &Started) {
        let task = self.accounts.number(started.job, started.task.0);
        if let Some(causes) = &mut self.causes {
            causes.started(task, started, self.accounts.reached(task));
        }
        self.accounts.started(task, started);
    }
}

impl<N: Network> Follower<'_, N> {
    #[inline(always)]
    fn submit(&mut self, message: &Message) {
        let &Message { id, src_node, dst_node, bytes, kind, start, .. } = message;
        let slot = id.slot() as usize;
        if slot >= self.cells.len() {
            self.cells.resize(slot + 1, Cell::default());
        }
        self.cells[slot] = Cell::of(kind, bytes);
        if let Some(watch) = self.network.watch() {
            watch.handed_over(id, self.accounts.number(message.job, message.src.0), kind);
        }
        let carried = Carried { src: src_node, dst: dst_node, bytes, tag: id.to_raw() };
        if let Err(refused) = self.network.submit(start, carried) {
            self.refused.get_or_insert(refused);
        }
    }

    /// Follows each call of the engine; `woken` after a wake-up.
    ///
    /// # Errors
    /// The network has refused a message of the call.
    #[inline(always)]
    fn called(&mut self, woken: bool) -> Result<(), OutOfTime> {
        if let Some(causes) = &mut self.causes {
            causes.done(woken);
        }
        self.refused.map_or(Ok(()), Err)
    }
}

fn run_on<N: Network>(
    mut network: N,
    observe: Observe,
    topology: &Topology,
    mut engine: Engine,
    settings: &NetworkSettings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SimError> {
    let began = Instant::now();
    *network.watch() = observe.watch(topology.links(), topology.nodes());
    let mut latencies = Latencies::new();
    let mut until_progress = PROGRESS_EVERY;
    let accounts = Accounts::new(&engine);
    let causes =
        observe.critical_path.then(|| Box::new(Causes::new(topology, settings, &accounts.all_reached())));
    let mut follower =
        Follower { network, refused: None, events: Queue::new(), cells: Vec::new(), accounts, causes };
    engine.begin(&mut follower)?;
    follower.called(false)?;
    // Terminates: each iteration consumes an event or a record, and produces no more of them than the trace
    // has.
    loop {
        let next = follower.events.next();
        let now = match follower.network.run_until(next.unwrap_or(Picos::MAX))? {
            Some((now, Happened::Sent { tag })) => {
                let id = LiveId::from_raw(tag);
                if let Some(causes) = &mut follower.causes {
                    causes.sent(id, now);
                }
                engine.sent(id, now, &mut follower)?;
                follower.called(false)?;
                now
            }
            Some((now, Happened::Delivered { tag, latency, queued })) => {
                let id = LiveId::from_raw(tag);
                latencies.add(follower.cells[id.slot() as usize], latency.0);
                if let Some(causes) = &mut follower.causes {
                    let way = follower.network.watch().as_mut().map_or(&[][..], |watch| watch.way(id));
                    causes.delivered(id, now, queued, way);
                }
                engine.delivered(id, now, &mut follower)?;
                follower.called(false)?;
                now
            }
            None => {
                let Some((now, event)) = follower.events.pop(next.unwrap_or(Picos::MAX)) else { break };
                match event {
                    Next::Inside { message, .. } => {
                        if let Some(causes) = &mut follower.causes {
                            causes.delivered_inside(message.id, now);
                        }
                        engine.delivered(message.id, now, &mut follower)?;
                        follower.called(false)?;
                    }
                    Next::Wake(wake) => {
                        if let Some(causes) = &mut follower.causes {
                            causes.wakes(&wake, now);
                        }
                        engine.wake(wake, now, &mut follower)?;
                        follower.called(true)?;
                    }
                    // Submitted to the network by `take`.
                    Next::Message(_) => {}
                }
                now
            }
        };
        until_progress -= 1;
        if until_progress == 0 {
            until_progress = PROGRESS_EVERY;
            progress(Progress { delivered: engine.stats().delivered, now });
        }
    }
    let Follower { mut network, accounts, causes, .. } = follower;
    let path = |causes: Box<Causes<'_>>| {
        causes.finish(accounts.all_reached().into_iter(), engine.finish(), accounts.first_tasks())
    };
    match engine.stuck() {
        Some(stuck) => Err(match network.deadlock() {
            Some(circle) => SimError::Deadlock { circle, stuck: Box::new(stuck) },
            None => SimError::Stuck(Box::new(stuck)),
        }),
        None => Ok(Report::new(Run {
            engine: &engine,
            finish: None,
            critical_path: causes.map(path),
            accounts: Some(&accounts),
            usage: network.usage(),
            events: network.events(),
            watch: network.watch().as_deref(),
            latencies,
            topology,
            settings,
            wall: began.elapsed(),
        })),
    }
}

#[cfg(test)]
mod tests;

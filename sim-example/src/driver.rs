//! The loop between the replay, which knows what is to be sent, and the network, which knows when it arrives.

use std::time::Instant;

use replay::{Engine, Job, LiveId, LoadError, Message, Next, Queue, SendCompletion, Stream};
use vef_format::container::is_container;
use vef_format::units::Picos;

use crate::error::SimError;
use crate::histogram::Histogram;
use crate::loggp;
use crate::model::{Carried, Happened, Model, Network, Usage, with_network};
use crate::report::{Report, Run};
use crate::settings::{NetworkSettings, Settings, Workload};
use crate::topology::Topology;

/// How far a simulation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Messages delivered.
    pub delivered: u64,
    /// Simulated time.
    pub now: Picos,
}

/// A report of progress comes after so many moments of simulated time at which something happened.
pub(crate) const PROGRESS_EVERY: u32 = 1 << 16;

/// Runs the traces of `settings` on its network; tells `progress` from time to time how far it is.
///
/// # Errors
/// Whatever is wrong with the settings or a trace, and traces that wait for what never happens; it ends in any case.
pub fn simulate(settings: &Settings, progress: &mut dyn FnMut(Progress)) -> Result<Report, SimError> {
    let report_sent = settings.sends_are_reported();
    let send_completion = if report_sent { SendCompletion::WhenSent } else { settings.send_completion };
    let mut builder = Engine::builder()
        .send_completion(send_completion)
        .same_node(settings.same_node)
        .algorithms(settings.algorithms.clone());
    for workload in &settings.jobs {
        let job = open(workload)?;
        let nodes = workload.places.nodes(&job)?;
        builder = builder.job(job.nodes(nodes).start(workload.start).time_factor(workload.time_factor));
    }
    let mut report = run(builder.engine()?, &settings.network, report_sent, progress)?;
    for (job, workload) in report.jobs.iter_mut().zip(&settings.jobs) {
        job.trace = Some(workload.trace.display().to_string());
    }
    Ok(report)
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

/// Runs an engine that has not begun, on traces of any source. It is told when messages are sent if
/// `report_sent`, which matters under [`SendCompletion::WhenSent`] alone. [`Model::LogGp`] needs that.
///
/// # Errors
/// As [`simulate`].
pub fn run(
    engine: Engine,
    network: &NetworkSettings,
    report_sent: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SimError> {
    let tasks =
        || (0..engine.jobs()).flat_map(|job| (0u32..).zip(engine.progress(job)).map(move |t| (job, t)));
    let needed = tasks().map(|(_, (_, task))| task.node).max().unwrap_or(0).saturating_add(1);
    let topology = network.topology.build(needed)?;
    if let Some((job, (task, placed))) = tasks().find(|(_, (_, task))| task.node >= topology.nodes()) {
        let (name, nodes) = (network.topology.to_string(), topology.nodes());
        return Err(SimError::TooFewNodes { topology: name, nodes, job, task, node: placed.node });
    }
    let settings = network;
    if settings.model == Model::LogGp {
        return run_loggp(&topology, engine, settings, progress);
    }
    with_network!(&topology, settings, report_sent, |network| run_on(
        network, &topology, engine, settings, progress
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
        None => Ok(Report::new(&Run {
            engine: &engine,
            finish: Some(&outcome.finish),
            usage: vec![Usage::default(); topology.links() as usize],
            events: outcome.events,
            latencies: outcome.latencies,
            topology,
            settings,
            wall: outcome.wall,
        })),
    }
}

fn run_on<N: Network>(
    mut network: N,
    topology: &Topology,
    mut engine: Engine,
    settings: &NetworkSettings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SimError> {
    let began = Instant::now();
    let mut latencies = Histogram::default();
    let mut until_progress = PROGRESS_EVERY;
    // What the replay has to do: messages that start, or arrive within a node, and tasks to be called.
    let mut events: Queue<Next> = Queue::new();
    engine.begin(&mut |next: Next| events.push(next.at(), next))?;
    // Every turn takes at least one event or record for good, and makes no more of them than the trace has: it ends.
    loop {
        let next = events.next();
        let happened = network.run_until(next.unwrap_or(Picos::MAX))?;
        let mut follows = |next: Next| events.push(next.at(), next);
        let now = match happened {
            Some((now, Happened::Sent { tag })) => {
                engine.sent(LiveId::from_raw(tag), now, &mut follows)?;
                now
            }
            Some((now, Happened::Delivered { tag, latency, .. })) => {
                engine.delivered(LiveId::from_raw(tag), now, &mut follows)?;
                latencies.add(latency.0);
                now
            }
            None => {
                let Some(now) = next else { break };
                while let Some((_, event)) = events.pop(now) {
                    let mut follows = |next: Next| events.push(next.at(), next);
                    match event {
                        Next::Message(Message { id, src_node, dst_node, bytes, .. }) => {
                            let tag = id.to_raw();
                            network.submit(now, Carried { src: src_node, dst: dst_node, bytes, tag })?;
                        }
                        Next::Inside { message, .. } => engine.delivered(message.id, now, &mut follows)?,
                        Next::Wake(wake) => engine.wake(wake, now, &mut follows)?,
                    }
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
    match engine.stuck() {
        Some(stuck) => Err(SimError::Stuck(Box::new(stuck))),
        None => Ok(Report::new(&Run {
            engine: &engine,
            finish: None,
            usage: network.usage(),
            events: network.events(),
            latencies,
            topology,
            settings,
            wall: began.elapsed(),
        })),
    }
}

#[cfg(test)]
mod tests;

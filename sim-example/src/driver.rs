//! The loop between the replay, which knows what is to be sent, and the network, which knows when it arrives.

use std::time::Instant;

use replay::{Job, LiveId, LoadError, Message, Replay, SendCompletion, Stream};
use vef_format::container::is_container;
use vef_format::units::Picos;

use crate::error::SimError;
use crate::histogram::Histogram;
use crate::model::{Carried, Happened, Network, with_network};
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
const PROGRESS_EVERY: u32 = 1 << 16;

/// Runs the traces of `settings` on its network; tells `progress` from time to time how far it is.
///
/// # Errors
/// Whatever is wrong with the settings or a trace, and traces that wait for what never happens; it ends in any case.
pub fn simulate(settings: &Settings, progress: &mut dyn FnMut(Progress)) -> Result<Report, SimError> {
    let mut builder = Replay::builder()
        .send_completion(settings.send_completion)
        .same_node(settings.same_node)
        .algorithms(settings.algorithms.clone());
    for workload in &settings.jobs {
        let job = open(workload)?;
        let nodes = workload.places.nodes(&job)?;
        builder = builder.job(job.nodes(nodes).start(workload.start).time_factor(workload.time_factor));
    }
    let report_sent = settings.send_completion == SendCompletion::WhenSent;
    let mut report = run(builder.build()?, &settings.network, report_sent, progress)?;
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

/// Runs a replay that is already built, from traces of any source. The replay is told when messages are sent if
/// `report_sent`, which matters under [`SendCompletion::WhenSent`] alone.
///
/// # Errors
/// As [`simulate`].
pub fn run(
    replay: Replay,
    network: &NetworkSettings,
    report_sent: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SimError> {
    let tasks =
        || (0..replay.jobs()).flat_map(|job| (0u32..).zip(replay.progress(job)).map(move |t| (job, t)));
    let needed = tasks().map(|(_, (_, task))| task.node).max().unwrap_or(0).saturating_add(1);
    let topology = network.topology.build(needed)?;
    if let Some((job, (task, placed))) = tasks().find(|(_, (_, task))| task.node >= topology.nodes()) {
        let (name, nodes) = (network.topology.to_string(), topology.nodes());
        return Err(SimError::TooFewNodes { topology: name, nodes, job, task, node: placed.node });
    }
    let settings = network;
    with_network!(&topology, settings, report_sent, |network| run_on(
        network, &topology, replay, settings, progress
    ))
}

fn run_on<N: Network>(
    mut network: N,
    topology: &Topology,
    mut replay: Replay,
    settings: &NetworkSettings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SimError> {
    let began = Instant::now();
    let mut latencies = Histogram::default();
    let mut until_progress = PROGRESS_EVERY;
    // Every turn takes at least one event or record for good, and makes no more of them than the trace has: it ends.
    loop {
        let ready = replay.next_ready();
        let now = match network.run_until(ready.unwrap_or(Picos::MAX))? {
            Some((now, Happened::Sent { tag })) => {
                replay.sent(LiveId::from_raw(tag), now)?;
                now
            }
            Some((now, Happened::Delivered { tag, latency, .. })) => {
                replay.delivered(LiveId::from_raw(tag), now)?;
                latencies.add(latency.0);
                now
            }
            None => {
                let Some(now) = ready else { break };
                while let Some(message) = replay.pop_ready(now)? {
                    let Message { id, src_node, dst_node, bytes, .. } = message;
                    let tag = id.to_raw();
                    network.submit(now, Carried { src: src_node, dst: dst_node, bytes, tag })?;
                }
                now
            }
        };
        until_progress -= 1;
        if until_progress == 0 {
            until_progress = PROGRESS_EVERY;
            progress(Progress { delivered: replay.stats().delivered, now });
        }
    }
    match replay.stuck() {
        Some(stuck) => Err(SimError::Stuck(Box::new(stuck))),
        None => Ok(Report::new(&Run {
            replay: &replay,
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

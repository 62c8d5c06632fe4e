//! One simulation by several threads: each has a part of the network and the tasks at it.
//!
//! A message and a credit take at least a time Δ from one part to another ([`Packets::lookahead`]): the latency of a link between them,
//! and the delay of a switch or of credits. From the first moment at which anything happens anywhere, all threads may therefore go on
//! for Δ without hearing from each other; then they exchange what has crossed. Within a part everything happens as with one thread, and
//! the packet model does not depend on the order of events within a moment, so the result is the same to the picosecond.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use replay::{Accounts, Builder, Engine, Exchange, LiveId, Parcel, Seat, SendCompletion};
use results::simulation::Simulation;
use vef_format::units::Picos;

use crate::error::SimError;
use crate::event_loop::{EngineOutput, Run};
use crate::latencies::{Cell, Latencies};
use crate::model::{Announced, Crossed, Model, Network, Packets, Usage, WithProtocol};
use crate::offload::Collectives;
use crate::progress::{PROGRESS_EVERY, Progress};
use crate::repeats::Repeat;
use crate::report::Outcome;
use crate::settings::{NetworkSettings, Settings, TASKS_PER_THREAD};
use crate::topology::{Fabric, Fault};
use crate::watch::Observe;

/// The number of threads that a simulation of so many tasks can use.
pub(crate) fn threads(settings: &Settings, tasks: usize) -> u16 {
    let Settings { network, observe, send_completion, background, arrivals, collectives, .. } = settings;
    let is_possible = network.model == Model::Packet
        && background.is_none()
        && arrivals.is_none()
        && *collectives == Collectives::Messages
        && settings.jobs.iter().all(|job| job.repeat == Repeat::default() && job.after.is_none())
        && *observe == Observe::default()
        && network.protocol.returned == 0.0
        && network.packet.congestion.is_none()
        && network.packet.lossy.is_none()
        && !network.fail.iter().any(Fault::has_times)
        && !network.routing.looks_at_whole_routes()
        && matches!(send_completion, SendCompletion::Eager | SendCompletion::WhenSent);
    let most = if is_possible { tasks / TASKS_PER_THREAD } else { 1 };
    settings.threads.min(most.min(1024) as u32).max(1) as u16
}

/// Fewest packet-hops of a part within the lookahead, if all links send full packets, with which dividing pays: about 0.2 ms of work a
/// round, against up to 0.13 ms for which the threads wait for each other.
pub(crate) const LEAST_HOPS: u64 = 1000;

/// Runs jobs of which the tasks are on `nodes`. `None` if there is an error, or if the simulation cannot end: one thread finds the
/// reason.
///
/// An invalid trace may run in parts though one thread refuses it: ids that are used twice in different parts, and members of a
/// collective in different parts that disagree, are not noticed.
///
/// # Errors
/// The builder, unused, if it does not pay to divide this simulation: something takes no time from one part to another, one part has
/// all tasks, or the parts can do fewer than `least_hops` packet-hops in a round. Also if there is no such network.
pub(crate) fn run(
    builder: Box<Builder>,
    nodes: &[Vec<u32>],
    settings: &Settings,
    threads: u16,
    least_hops: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Simulation>, Box<Builder>> {
    let began = Instant::now();
    let of_job = |(job, nodes): (u32, &Vec<u32>)| {
        (0..).zip(nodes.clone()).map(move |(task, node): (u32, u32)| (job, task, node))
    };
    let tasks: Vec<(u32, u32, u32)> = (0..).zip(nodes).flat_map(of_job).collect();
    let Ok(topology) = settings.network.topology_for(&tasks) else { return Err(builder) };
    let parts = topology.parts(threads, tasks.iter().map(|&(_, _, node)| node));
    let of_first = tasks.first().map(|&(_, _, node)| parts.of_node(node));
    if tasks.iter().all(|&(_, _, node)| Some(parts.of_node(node)) == of_first) {
        return Err(builder);
    }
    let Some(whole) = network(settings, &topology) else { return Err(builder) };
    let lookahead = whole.lookahead(&parts);
    if lookahead == Picos::ZERO || whole.most_hops(lookahead) / u64::from(threads) < least_hops {
        return Err(builder);
    }
    let Ok(engines) = builder.partitions(threads.into(), |node| parts.of_node(node).into()) else {
        return Ok(None);
    };
    let networks = whole.divide(&parts, &settings.network.links);
    Ok(run_parts(engines, networks, &settings.network, lookahead, progress).map(|merged| {
        let Merged { engines, usage, events, accounts, latencies } = merged;
        Outcome {
            engines: &engines,
            finish: None,
            accounts: Some(&accounts),
            critical_path: None,
            waits: None,
            usage,
            events,
            watch: None,
            repeats: None,
            latencies,
            topology: &topology,
            settings: &settings.network,
            wall: began.elapsed(),
        }
        .report()
    }))
}

/// The whole network. `None` if its settings are invalid.
fn network<'a>(settings: &'a Settings, topology: &'a Fabric) -> Option<Packets<'a>> {
    let Settings { network, send_completion, .. } = settings;
    let report_sent = network.send_completion(*send_completion) == SendCompletion::WhenSent;
    Packets::new(&network.setup(topology, report_sent).ok()?).ok()
}

/// What the parts have found, together.
struct Merged {
    engines: Vec<Engine>,
    usage: Vec<Usage>,
    events: u64,
    accounts: Accounts,
    latencies: Latencies,
}

/// Runs each part in a thread. `None` if there is an error in one, or tasks that wait in vain.
fn run_parts(
    engines: Vec<Engine>,
    networks: Vec<Packets<'_>>,
    settings: &NetworkSettings,
    lookahead: Picos,
    progress: &mut dyn FnMut(Progress),
) -> Option<Merged> {
    let exchange = Exchange::new(engines.len());
    let delivered = &AtomicU64::new(0);
    let start = |(at, (engine, network)): (usize, (Engine, _))| {
        let network = WithProtocol { network, protocol: &settings.protocol };
        (engine, network, exchange.seat(at))
    };
    let mut starts = engines.into_iter().zip(networks).enumerate().map(start);
    let (engine, network, seat) = starts.next()?;
    let runs = std::thread::scope(|scope| {
        let others: Vec<_> = starts
            .map(|(engine, network, seat)| {
                scope.spawn(move || run_part(engine, network, seat, lookahead, delivered, &mut |_| {}))
            })
            .collect();
        let first = run_part(engine, network, seat, lookahead, delivered, progress);
        let end = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(run) => run,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        std::iter::once(first).chain(others.into_iter().map(end)).collect::<Result<Vec<_>, SimError>>()
    });
    let mut runs = runs.ok()?.into_iter();
    let first = runs.next()?;
    let Run { engine, mut latencies, output: EngineOutput { network, mut accounts, .. }, .. } = first;
    let (mut engines, mut usage, mut events) = (vec![engine], network.usage(), network.events());
    for Run { engine, latencies: other, output, .. } in runs {
        latencies.merge(&other);
        accounts.adopt(&output.accounts, |job, task| engine.has_task(job, task));
        usage.iter_mut().zip(output.network.usage()).for_each(|(all, part)| all.merge(&part));
        events += output.network.events();
        engines.push(engine);
    }
    let is_complete = engines.iter().all(Engine::is_complete);
    is_complete.then_some(Merged { engines, usage, events, accounts, latencies })
}

/// What one part tells another.
enum Letter {
    /// A new message, with what the replay and the report must know of it.
    Message(Announced, Parcel, Cell),
    Crossed(Crossed),
}

type Part<'a> = WithProtocol<'a, Packets<'a>>;

fn run_part<'a>(
    engine: Engine,
    network: Part<'a>,
    mut seat: Seat<'_, Letter>,
    lookahead: Picos,
    delivered: &AtomicU64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Run<'a, Part<'a>>, SimError> {
    let accounts = Accounts::new(&engine);
    let mut run = Run::begin(engine, network, accounts, None, None, None, ())?;
    let (mut counted, mut told) = (0, 0);
    loop {
        let Run { engine, output, .. } = &mut run;
        let network = &mut output.network.network;
        let mut first = [network.next_event(), output.events.next()].into_iter().flatten().min();
        for (part, message) in network.announced() {
            let id = LiveId::from_raw(message.tag);
            let cell = output.cells[id.slot() as usize];
            seat.letters_to(part.into()).push(Letter::Message(message, engine.export(id)?, cell));
        }
        for (part, crossed) in network.crossed() {
            let at = crossed.at();
            first = Some(first.map_or(at, |first| first.min(at)));
            seat.letters_to(part.into()).push(Letter::Crossed(crossed));
        }
        delivered.fetch_add(engine.stats().delivered - counted, Ordering::Relaxed);
        counted = engine.stats().delivered;
        let Some(first) = seat.meet(first) else { return Ok(run) };
        let total = delivered.load(Ordering::Relaxed);
        if total - told >= PROGRESS_EVERY.into() {
            told = total;
            progress(Progress { delivered: total, now: first });
        }
        for part in 0..seat.parts() {
            for letter in seat.letters_from(part).drain(..) {
                match letter {
                    Letter::Message(message, parcel, cell) => {
                        let id = run.engine.import(parcel)?;
                        run.output.note(id, cell);
                        run.output.network.network.expect(&message, id.to_raw());
                    }
                    Letter::Crossed(crossed) => run.output.network.network.enter(crossed),
                }
            }
        }
        // Up to the first moment, not included, at which anything of another part can take effect.
        let last = Picos(first.0.saturating_add(lookahead.0) - 1);
        run.run_until(last, &mut |_| {})?;
    }
}

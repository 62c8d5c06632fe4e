//! One simulation by several threads: each has a part of the network and the tasks at it.
//!
//! A message and a credit take at least a time Δ from one part to another ([`Packets::divide`]): the latency of a link between them,
//! and the delay of a switch or of credits. From the first moment at which anything happens anywhere, all threads may therefore go on
//! for Δ without hearing from each other; then they exchange what has crossed. Within a part everything happens as with one thread, and
//! the packet model does not depend on the order of events within a moment, so the result is the same to the picosecond.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use replay::{Builder, Engine, Exchange, LiveId, Parcel, Seat, SendCompletion};
use results::simulation::Simulation;
use vef_format::units::Picos;

use crate::accounts::Accounts;
use crate::error::SimError;
use crate::event_loop::{Follower, Run};
use crate::latencies::Cell;
use crate::model::{Announced, Crossed, Model, Network, Packets, WithProtocol};
use crate::progress::{PROGRESS_EVERY, Progress};
use crate::report::Outcome;
use crate::settings::{NetworkSettings, Settings, TASKS_PER_THREAD};
use crate::watch::Observe;

/// The number of threads that a simulation of so many tasks can use.
pub(crate) fn threads(settings: &Settings, tasks: usize) -> u16 {
    let Settings { network, observe, send_completion, .. } = settings;
    let is_possible = network.model == Model::Packet
        && *observe == Observe::default()
        && network.protocol.returned == 0.0
        && matches!(send_completion, SendCompletion::Eager | SendCompletion::WhenSent);
    let most = if is_possible { tasks / TASKS_PER_THREAD } else { 1 };
    settings.threads.min(most.min(1024) as u32).max(1) as u16
}

/// Rounds of the threads after which [`run`] looks whether it pays to divide the simulation.
const TRIAL: u32 = 50;

/// Fewest packet-hops of a part in a round with which dividing pays: some 0.2 ms of work, against up to 0.13 ms for which the threads
/// wait for each other in a round.
pub(crate) const LEAST_HOPS: u64 = 1000;

/// Runs jobs of which the tasks are on `nodes`. `None` if there is an error, if the simulation cannot end, if something takes no
/// time from one part to another, if one part has all tasks, or if the parts have fewer than `least_hops` packet-hops a round in the mean
/// of the first [`TRIAL`]: one thread must run it.
///
/// An invalid trace may run in parts though one thread refuses it: ids that are used twice in different parts, and members of a
/// collective in different parts that disagree, are not noticed.
pub(crate) fn run(
    builder: Builder,
    nodes: &[Vec<u32>],
    settings: &NetworkSettings,
    threads: u16,
    least_hops: u64,
    progress: &mut dyn FnMut(Progress),
) -> Option<Simulation> {
    let began = Instant::now();
    let of_job = |(job, nodes): (u32, &Vec<u32>)| {
        (0..).zip(nodes.clone()).map(move |(task, node): (u32, u32)| (job, task, node))
    };
    let tasks: Vec<(u32, u32, u32)> = (0..).zip(nodes).flat_map(of_job).collect();
    let topology = settings.topology_for(&tasks).ok()?;
    let parts = topology.parts(threads, tasks.iter().map(|&(_, _, node)| node));
    if tasks.iter().all(|&(_, _, node)| parts.of_node(node) == parts.of_node(tasks[0].2)) {
        return None;
    }
    let engines = builder.partitions(threads.into(), |node| parts.of_node(node).into()).ok()?;
    let report_sent = engines[0].send_completion() == SendCompletion::WhenSent;
    let whole = Packets::new(&settings.setup(&topology, report_sent).ok()?).ok()?;
    let (networks, lookahead) = whole.divide(&parts, &settings.links);
    if lookahead == Picos::ZERO {
        return None;
    }

    let exchange = Exchange::new(threads.into());
    let shared = Shared {
        delivered: AtomicU64::new(0),
        hops: AtomicU64::new(0),
        least_hops: least_hops.saturating_mul(threads.into()).saturating_mul(TRIAL.into()),
    };
    let start = |(at, (engine, network)): (usize, (Engine, _))| {
        let network = WithProtocol { network, protocol: &settings.protocol };
        (engine, network, exchange.seat(at))
    };
    let mut starts = engines.into_iter().zip(networks).enumerate().map(start);
    let (engine, network, seat) = starts.next()?;
    let runs = std::thread::scope(|scope| {
        let shared = &shared;
        let others: Vec<_> = starts
            .map(|(engine, network, seat)| {
                scope.spawn(move || run_part(engine, network, seat, lookahead, shared, &mut |_| {}))
            })
            .collect();
        let first = run_part(engine, network, seat, lookahead, shared, progress);
        let end = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(run) => run,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        std::iter::once(first).chain(others.into_iter().map(end)).collect::<Result<Vec<_>, SimError>>()
    });
    let mut runs = runs.ok()?.into_iter();
    let first = runs.next()?;
    let Run { engine, mut latencies, follower: Follower { network, mut accounts, .. }, .. } = first;
    let (mut engines, mut network) = (vec![engine], network.network);
    for Run { engine, latencies: other, follower, .. } in runs {
        latencies.merge(&other);
        accounts.adopt(&follower.accounts, |job, task| engine.has_task(job, task));
        network.merge(&follower.network.network);
        engines.push(engine);
    }
    let is_complete = engines.iter().all(Engine::is_complete);
    is_complete.then(|| {
        Outcome {
            engines: &engines,
            finish: None,
            accounts: Some(&accounts),
            critical_path: None,
            usage: network.usage(),
            events: network.events(),
            watch: None,
            latencies,
            topology: &topology,
            settings,
            wall: began.elapsed(),
        }
        .report()
    })
}

/// What all threads count.
struct Shared {
    /// Messages delivered.
    delivered: AtomicU64,
    /// Packet-hops in the first [`TRIAL`] rounds.
    hops: AtomicU64,
    /// With fewer of them, no thread goes on.
    least_hops: u64,
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
    shared: &Shared,
    progress: &mut dyn FnMut(Progress),
) -> Result<Run<'a, Part<'a>>, SimError> {
    let accounts = Accounts::new(&engine);
    let mut run = Run::begin(engine, network, accounts, None)?;
    let (mut counted, mut told) = (0, 0);
    let mut round = 0u32;
    loop {
        round = round.saturating_add(1);
        let Run { engine, follower, .. } = &mut run;
        let network = &mut follower.network.network;
        let mut first = [network.next_event(), follower.events.next()].into_iter().flatten().min();
        for (part, message) in network.announced() {
            let id = LiveId::from_raw(message.tag);
            let cell = follower.cells[id.slot() as usize];
            seat.letters_to(part.into()).push(Letter::Message(message, engine.export(id)?, cell));
        }
        for (part, crossed) in network.crossed() {
            let at = crossed.at();
            first = Some(first.map_or(at, |first| first.min(at)));
            seat.letters_to(part.into()).push(Letter::Crossed(crossed));
        }
        shared.delivered.fetch_add(engine.stats().delivered - counted, Ordering::Relaxed);
        counted = engine.stats().delivered;
        if round == TRIAL {
            shared.hops.fetch_add(network.events(), Ordering::Relaxed);
        }
        let Some(first) = seat.meet(first) else { return Ok(run) };
        // All threads have added theirs, so all decide alike.
        if round == TRIAL && shared.hops.load(Ordering::Relaxed) < shared.least_hops {
            return Ok(run);
        }
        let total = shared.delivered.load(Ordering::Relaxed);
        if total - told >= PROGRESS_EVERY.into() {
            told = total;
            progress(Progress { delivered: total, now: first });
        }
        for part in 0..seat.parts() {
            for letter in seat.letters_from(part).drain(..) {
                match letter {
                    Letter::Message(message, parcel, cell) => {
                        let id = run.engine.import(parcel)?;
                        run.follower.note(id, cell);
                        run.follower.network.network.expect(&message, id.to_raw());
                    }
                    Letter::Crossed(crossed) => run.follower.network.network.enter(crossed),
                }
            }
        }
        // Up to the first moment, not included, at which anything of another part can take effect.
        let last = Picos(first.0.saturating_add(lookahead.0) - 1);
        run.run_until(last, &mut |_| {})?;
    }
}

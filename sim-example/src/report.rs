//! The result of a simulation, from what a run has counted. `results::simulation` has its keys.

mod links;

use std::collections::HashSet;
use std::time::Duration;

use replay::{Accounts, Count, Engine, Kind, LeftOut};
use results::ByState;
use results::simulation::{
    Amount, CongestionReport, CriticalPath, Finish, JobReport, Latency, NetworkReport, OfKind, OfSize,
    PartReport, Performance, Simulation, WaitsReport,
};
use results::traffic::Load;
use vef_format::units::{Bytes, Grouped, Picos};

use crate::draw;
use crate::histogram::Histogram;
use crate::latencies::Latencies;
use crate::model::{Arbiter, Buffers, Congested, LinkSpeed, Model, PacketSettings, Usage};
use crate::repeats::Repeats;
use crate::settings::NetworkSettings;
use crate::topology::{Fabric, LinkClass, LinkId, Outages};
use crate::watch::Watch;

pub(crate) use links::kind;

/// A finished simulation.
pub(crate) struct Outcome<'a> {
    /// One, or its partitions.
    pub(crate) engines: &'a [Engine],
    /// Finishing time of each task of all jobs, if the model and not the engine knows it.
    pub(crate) finish: Option<&'a [Picos]>,
    /// Times of the tasks, if the model records them.
    pub(crate) accounts: Option<&'a Accounts>,
    pub(crate) critical_path: Option<CriticalPath>,
    pub(crate) waits: Option<WaitsReport>,
    /// By link number.
    pub(crate) usage: Vec<Usage>,
    pub(crate) events: u64,
    pub(crate) watch: Option<&'a Watch>,
    /// Set if jobs ran more than once.
    pub(crate) repeats: Option<&'a Repeats>,
    pub(crate) latencies: Latencies,
    pub(crate) topology: &'a Fabric,
    pub(crate) settings: &'a NetworkSettings,
    pub(crate) wall: Duration,
}

impl Outcome<'_> {
    /// The result.
    pub(crate) fn report(self) -> Simulation {
        let run = self;
        let engines = run.engines;
        let mut stats = engines[0].stats().clone();
        engines[1..].iter().for_each(|engine| stats.add(engine.stats()));
        let (stats, total) = (&stats, stats.total());
        let last = run.finish.and_then(|finish| finish.iter().copied().max());
        let runtime = engines.iter().map(Engine::finish).max().max(last).unwrap_or_default();
        let (mut first_task, mut first_tasks) = (0, Vec::new());
        let jobs = (0..engines[0].jobs()).map(|job| {
            let tasks = first_task..first_task + engines[0].tasks(job) as usize;
            first_task = tasks.end;
            first_tasks.push(tasks.start as u32);
            job_report(engines, run.accounts, job, run.finish.map(|finish| &finish[tasks]), run.repeats)
        });
        let jobs: Vec<JobReport> = jobs.collect();
        let used = links::Used {
            topology: run.topology,
            settings: run.settings,
            usage: &run.usage,
            watch: run.watch,
            runtime,
            first_tasks: &first_tasks,
        };
        let of_kind = |(kind, count): (Kind, Count)| OfKind {
            kind: self::kind(kind),
            amount: amount(count),
            latency: latency(&run.latencies.of_kind(kind)),
        };
        let of_size = |(from_bytes, to_bytes, histogram): (Bytes, Bytes, Histogram)| OfSize {
            from_bytes: from_bytes.0,
            to_bytes: to_bytes.0,
            latency: latency(&histogram),
        };
        Simulation {
            complete: engines.iter().all(Engine::is_complete),
            runtime_ps: runtime.0,
            tasks: jobs.iter().map(|job| u64::from(job.tasks)).sum(),
            messages: total.messages,
            bytes: total.bytes.0,
            marks: stats.marks,
            collectives: stats.collectives,
            collectives_split_evenly: stats.split_evenly,
            same_node: amount(stats.inside),
            kinds: stats.kinds().map(of_kind).collect(),
            jobs,
            network: NetworkReport {
                drawing: run
                    .watch
                    .and_then(Watch::uses)
                    .and_then(|_| draw::drawing(run.topology, |link| used.utilisation(link))),
                ..network_report(run.topology, run.settings, runtime)
            },
            latency: latency(&run.latencies.all()),
            sizes: run.latencies.sizes().map(of_size).collect(),
            links: used.report(),
            critical_path: run.critical_path,
            waits: run.waits,
            performance: Performance::new(run.wall, total.messages, run.events),
            ..Simulation::default()
        }
    }
}

/// What congestion control has done.
pub(crate) fn congestion(settings: &NetworkSettings, counts: Option<Congested>) -> Option<CongestionReport> {
    let Congested { marked, notified, dropped, sent_again, timeouts, largest_queue } = counts?;
    let packet = &settings.packet;
    Some(CongestionReport {
        control: packet.congestion.map_or("none".to_owned(), |control| control.to_string()),
        marked,
        notified,
        dropped,
        sent_again,
        timeouts,
        largest_queue_bytes: (packet.buffers == Buffers::Output).then_some(largest_queue),
    })
}

impl NetworkSettings {
    /// Why congestion control that marks packets marked none, if so: with which queue it would begin, and the longest there was.
    pub fn nothing_marked(&self, congestion: &CongestionReport) -> Option<String> {
        let (control, longest) = (self.packet.congestion?, congestion.largest_queue_bytes?);
        let classes = [LinkClass::NODE, LinkClass::LOCAL, LinkClass::GLOBAL];
        let above =
            classes.iter().filter_map(|&class| control.marks_above(self.links.of(class).bandwidth)).min()?;
        (congestion.marked == 0 && longest <= above).then(|| {
            format!(
                "--congestion {control}: no packet was marked: marks begin above a queue of {} B, and the longest was {} B; a larger \
                 --buffer lets queues grow, a smaller threshold (K=, Kmin=) marks earlier",
                Grouped(above),
                Grouped(longest)
            )
        })
    }
}

impl NetworkSettings {
    /// That turns at links are unfair, if some node of a saturated network gets far less than the mean: `point` is of nodes that all send
    /// at its load.
    pub fn unfair(&self, point: &Load) -> Option<String> {
        // Less differences come from chance in the shortest windows.
        const UNFAIR: f64 = 0.75;
        let PacketSettings { arbiter, buffers, .. } = self.packet;
        let share = point.accepted_worst / point.accepted;
        let is_unfair = self.model == Model::Packet && point.saturated && share < UNFAIR;
        is_unfair.then(|| {
            let why = match arbiter == Arbiter::RoundRobin && buffers == Buffers::Input {
                true => ": on each link, virtual channels and inputs take turns, not flows (--channel-classes hops helps on tori, --arbiter age with all routings but adaptive ones)",
                false => "",
            };
            format!("at load {} the worst node sends {:.0} % of the mean{why}", point.load, 100.0 * share)
        })
    }
}

fn job_report(
    engines: &[Engine],
    accounts: Option<&Accounts>,
    job: u32,
    finish: Option<&[Picos]>,
    repeats: Option<&Repeats>,
) -> JobReport {
    let mut tasks = vec![Picos::ZERO; engines[0].tasks(job) as usize];
    let first = repeats.and_then(|repeats| repeats.first(job));
    match finish.or(first.map(|first| &first.finish[..])) {
        Some(finish) => tasks.copy_from_slice(finish),
        None => {
            for engine in engines {
                // Only the partition of a task knows its end.
                for (end, task) in tasks.iter_mut().zip(engine.progress(job)) {
                    *end = task.finished.unwrap_or(*end);
                }
            }
        }
    }
    let nodes: HashSet<u32> = engines[0].progress(job).map(|task| task.node).collect();
    // Ranks that were not recorded have nothing.
    let mut ran = vec![false; tasks.len()];
    for engine in engines {
        ran.iter_mut().zip(engine.progress(job)).for_each(|(ran, task)| *ran |= task.ran);
    }
    let of_ranks = |accounts: &Accounts| accounts.of_job(job, &tasks).into_iter().map(ByState).collect();
    let ranks = match first {
        Some(first) => first.times.clone(),
        None => accounts.map_or_else(Vec::new, of_ranks),
    };
    let program_tasks = engines[0].program_tasks(job);
    let of_program = ranks.iter().take(program_tasks as usize);
    let times = of_program.fold(ByState::default(), |sum: ByState<u64>, times| {
        ByState::from_fn(|state| sum[state].saturating_add(times[state]))
    });
    let part = engines[0].part(job).map(|part| {
        let mut left_out = LeftOut::default();
        engines.iter().for_each(|engine| left_out.add(engine.left_out(job)));
        PartReport {
            description: part.description().to_owned(),
            iterations: part.iterations(),
            records: part.records(),
            of_records: part.of(),
            receptions_left_out: left_out.receptions,
            collective_parts_left_out: left_out.collective_parts,
        }
    });
    JobReport {
        part,
        tasks: tasks.len() as u32,
        captured_tasks: Some(program_tasks).filter(|&of_program| of_program < engines[0].tasks(job)),
        nodes: nodes.len() as u32,
        start_ps: first.map_or(0, |first| first.start.0),
        runtime_ps: tasks.iter().max().map_or(0, |at| at.0),
        runs: repeats.map(|repeats| repeats.report(job)),
        finish: Finish::of(tasks.into_iter().map(|at| at.0).collect(), |task| {
            task < program_tasks as usize && ran[task]
        }),
        times,
        ranks,
        ..JobReport::default()
    }
}

fn network_report(topology: &Fabric, settings: &NetworkSettings, runtime: Picos) -> NetworkReport {
    let cut_off = topology.outages().into_iter().flat_map(Outages::cut_off);
    let NetworkSettings { links, model, routing, loggp, .. } = settings;
    let of_nodes = links.of(LinkClass::NODE);
    let speeds = links.speeds(topology);
    // Of all links, if not all have what the settings say.
    let range = |of: &dyn Fn(&LinkSpeed) -> u64, setting: u64| {
        let all =
            || (0..topology.links()).map(|link| of(&speeds[usize::from(topology.class(LinkId(link)).0)]));
        all().min().zip(all().max()).map(<[u64; 2]>::from).filter(|range| *range != [setting; 2])
    };
    NetworkReport {
        topology: topology.topology().name(),
        routing: routing.to_string(),
        failures: settings.fail.iter().map(ToString::to_string).collect(),
        cut_off: cut_off.filter(|cut_off| cut_off.begin < runtime).map(ToString::to_string).collect(),
        nodes: topology.nodes(),
        links: topology.links(),
        switches: topology.switches(),
        model: model.to_string(),
        bandwidth_bits_per_s: links.bandwidth.bits_per_second(),
        range_bits_per_s: range(
            &|speed| speed.bandwidth.bits_per_second(),
            links.bandwidth.bits_per_second(),
        ),
        latency_ps: links.latency.0,
        range_latency_ps: range(&|speed| speed.latency.0, links.latency.0),
        node_bandwidth_bits_per_s: of_nodes.bandwidth.bits_per_second(),
        node_latency_ps: of_nodes.latency.0,
        switch_delay_ps: links.switch_delay.0,
        overhead_ps: links.overhead.0,
        loggp: (*model == Model::LogGp).then(|| loggp.parameters.to_string()),
        drawing: None,
    }
}

fn amount(Count { messages, bytes }: Count) -> Amount {
    Amount { messages, bytes: bytes.0 }
}

pub(crate) fn latency(latencies: &Histogram) -> Latency {
    Latency {
        messages: latencies.count(),
        min_ps: latencies.min(),
        mean_ps: latencies.mean(),
        p50_ps: latencies.quantile(500),
        p90_ps: latencies.quantile(900),
        p99_ps: latencies.quantile(990),
        p999_ps: latencies.quantile(999),
        max_ps: latencies.max(),
    }
}

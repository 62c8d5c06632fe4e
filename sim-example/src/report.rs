//! What a simulation found out: for programs by serde (`docs/simulator.md` lists the keys), for people as text.

use std::fmt::{self, Write};
use std::time::Duration;

use replay::{Count, Engine, Kind};
use serde::{Serialize, Serializer};
use vef_format::units::{Bytes, Grouped, Picos};

use crate::histogram::Histogram;
use crate::model::{Model, Usage};
use crate::quantity::Bandwidth;
use crate::settings::NetworkSettings;
use crate::topology::{LinkClass, LinkId, Topology};

/// The result of a simulation. Everything but [`Report::performance`] is the same in every run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Whether every record was replayed and every message delivered; a simulation that is not complete is an error,
    /// so this is always true.
    pub complete: bool,
    /// When the last task finished and the last message was delivered, from time 0.
    pub runtime_ps: Picos,
    /// Tasks of all jobs.
    pub tasks: u64,
    /// Messages of all jobs, those of collectives included.
    pub messages: u64,
    /// Their payload.
    pub bytes: Bytes,
    /// Local marks passed.
    pub marks: u64,
    /// Collective operations played.
    pub collectives: u64,
    /// Collectives of which the trace has only sums, so that each member's was split evenly: `replay::Stats::split_evenly`.
    pub collectives_split_evenly: u64,
    /// Of the messages, those that the replay completed within a node, so that the network never saw them.
    pub same_node: Amount,
    /// The messages by what they belong to, without the kinds that did not occur.
    pub kinds: Vec<OfKind>,
    /// The jobs, in the order of the settings.
    pub jobs: Vec<JobReport>,
    /// The network.
    pub network: NetworkReport,
    /// How long the network's messages took from being handed over to their last byte.
    pub latency_ps: Latency,
    /// How the links were used.
    pub links: LinksReport,
    /// What the simulation itself took.
    pub performance: Performance,
}

/// A number of messages and their payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Messages.
    pub messages: u64,
    /// Their payload.
    pub bytes: Bytes,
}

/// The messages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OfKind {
    /// `point_to_point`, or the collective operation: `allreduce`.
    #[serde(serialize_with = "kind")]
    pub kind: Kind,
    /// How many, and their payload.
    #[serde(flatten)]
    pub amount: Amount,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobReport {
    /// The trace's file, if it came from one.
    pub trace: Option<String>,
    /// Its tasks.
    pub tasks: u32,
    /// When its tasks finished.
    pub finish_ps: Finish,
}

/// When tasks finished their last record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// The first of them.
    pub min: Picos,
    /// The mean, rounded down.
    pub mean: Picos,
    /// The last of them.
    pub max: Picos,
    /// Every task, by rank.
    pub tasks: Vec<Picos>,
}

/// The network that was simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkReport {
    /// The topology, as it can be given again.
    pub topology: String,
    /// The routing, likewise.
    pub routing: String,
    /// End nodes.
    pub nodes: u32,
    /// Directed links, those of the nodes included.
    pub links: u32,
    /// What messages do to each other.
    pub model: Model,
    /// Bits per second of a link between switches.
    #[serde(rename = "bandwidth_bits_per_s")]
    pub bandwidth: Bandwidth,
    /// Latency of a link between switches.
    pub latency_ps: Picos,
    /// Bits per second of a node's links.
    #[serde(rename = "node_bandwidth_bits_per_s")]
    pub node_bandwidth: Bandwidth,
    /// Latency of a node's links.
    pub node_latency_ps: Picos,
    /// Delay of a switch.
    pub switch_delay_ps: Picos,
    /// What a node's interface takes to prepare a message.
    pub overhead_ps: Picos,
}

/// How long messages took. Quantiles are at most 1/128 above the exact value and never below; the rest is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Messages measured; without any the rest is 0.
    pub messages: u64,
    /// The shortest.
    pub min: Picos,
    /// The mean, rounded down.
    pub mean: Picos,
    /// The median.
    pub p50: Picos,
    /// Nine in ten took no longer.
    pub p90: Picos,
    /// Ninety-nine in a hundred took no longer.
    pub p99: Picos,
    /// The longest.
    pub max: Picos,
}

/// How the links were used. A link's utilisation is the share of the run time during which it belonged to a message; in
/// the latency model, where messages do not wait, it can exceed 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinksReport {
    /// Links that carried messages.
    pub used: u32,
    /// The highest utilisation of a link.
    pub utilisation_max: f64,
    /// The mean over all links, unused ones too.
    pub utilisation_mean: f64,
    /// The busiest links, the busiest first: at most ten.
    pub busiest: Vec<LinkReport>,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Its ends: `node3->leaf0`.
    pub link: String,
    /// The share of the run time during which it belonged to a message.
    pub utilisation: f64,
    /// How long it belonged to messages.
    pub busy_ps: Picos,
    /// What it carried.
    #[serde(flatten)]
    pub amount: Amount,
}

/// What the simulation itself took; differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Performance {
    /// Wall-clock time of replay and network, in seconds.
    pub wall_s: f64,
    /// Events of the network: a message over `H` links makes `H`, with contention.
    pub events: u64,
    /// Messages a second of wall-clock time; absent below a millisecond, which is too short to tell.
    pub messages_per_s: Option<f64>,
    /// Events likewise.
    pub events_per_s: Option<f64>,
}

/// A simulation at its end.
pub(crate) struct Run<'a> {
    pub(crate) engine: &'a Engine,
    /// When each task finished, over all jobs, where that is not for the engine to say.
    pub(crate) finish: Option<&'a [Picos]>,
    /// What each link carried.
    pub(crate) usage: Vec<Usage>,
    pub(crate) events: u64,
    pub(crate) latencies: Histogram,
    pub(crate) topology: &'a Topology,
    pub(crate) settings: &'a NetworkSettings,
    pub(crate) wall: Duration,
}

/// How many of the busiest links are listed, and how many of them in the text.
const BUSIEST: usize = 10;
const NAMED: usize = 5;

impl Report {
    pub(crate) fn new(run: &Run<'_>) -> Self {
        let (engine, stats, total) = (run.engine, run.engine.stats(), run.engine.stats().total());
        let last = run.finish.and_then(|finish| finish.iter().copied().max());
        let runtime = engine.finish().max(last.unwrap_or_default());
        let mut first_task = 0;
        let jobs = (0..engine.jobs()).map(|job| {
            let tasks = first_task..first_task + engine.tasks(job) as usize;
            first_task = tasks.end;
            JobReport::new(engine, job, run.finish.map(|finish| &finish[tasks]))
        });
        Self {
            complete: engine.is_complete(),
            runtime_ps: runtime,
            tasks: (0..engine.jobs()).map(|job| u64::from(engine.tasks(job))).sum(),
            messages: total.messages,
            bytes: total.bytes,
            marks: stats.marks,
            collectives: stats.collectives,
            collectives_split_evenly: stats.split_evenly,
            same_node: stats.inside.into(),
            kinds: stats.kinds().map(|(kind, count)| OfKind { kind, amount: count.into() }).collect(),
            jobs: jobs.collect(),
            network: NetworkReport::new(run.topology, run.settings),
            latency_ps: Latency::new(&run.latencies),
            links: LinksReport::new(run.topology, &run.usage, runtime),
            performance: Performance::new(run.wall, total.messages, run.events),
        }
    }
}

impl From<Count> for Amount {
    fn from(Count { messages, bytes }: Count) -> Self {
        Self { messages, bytes }
    }
}

impl JobReport {
    fn new(engine: &Engine, job: u32, finish: Option<&[Picos]>) -> Self {
        let tasks = match finish {
            Some(finish) => finish.to_vec(),
            None => engine.progress(job).map(|task| task.finished.unwrap_or_default()).collect(),
        };
        Self { trace: None, tasks: engine.tasks(job), finish_ps: Finish::of(tasks) }
    }
}

impl Finish {
    pub(crate) fn of(tasks: Vec<Picos>) -> Self {
        let sum: u128 = tasks.iter().map(|at| u128::from(at.0)).sum();
        Self {
            min: tasks.iter().min().copied().unwrap_or_default(),
            // A mean of u64 is a u64.
            mean: Picos((sum / tasks.len().max(1) as u128) as u64),
            max: tasks.iter().max().copied().unwrap_or_default(),
            tasks,
        }
    }
}

impl NetworkReport {
    fn new(topology: &Topology, settings: &NetworkSettings) -> Self {
        let NetworkSettings { topology: spec, links, model, routing, .. } = settings;
        let of_nodes = links.of(LinkClass::NODE);
        Self {
            topology: spec.resolved(topology.nodes()).to_string(),
            routing: routing.to_string(),
            nodes: topology.nodes(),
            links: topology.links(),
            model: *model,
            bandwidth: links.bandwidth,
            latency_ps: links.latency,
            node_bandwidth: of_nodes.bandwidth,
            node_latency_ps: of_nodes.latency,
            switch_delay_ps: links.switch_delay,
            overhead_ps: links.overhead,
        }
    }
}

impl Latency {
    pub(crate) fn new(latencies: &Histogram) -> Self {
        Self {
            messages: latencies.count(),
            min: Picos(latencies.min()),
            mean: Picos(latencies.mean()),
            p50: Picos(latencies.percentile(50)),
            p90: Picos(latencies.percentile(90)),
            p99: Picos(latencies.percentile(99)),
            max: Picos(latencies.max()),
        }
    }
}

impl LinksReport {
    fn new(topology: &Topology, usage: &[Usage], runtime: Picos) -> Self {
        let share = |busy: u128| if runtime.0 == 0 { 0.0 } else { busy as f64 / runtime.0 as f64 };
        let (mut used, mut busy) = (0, 0u128);
        // The longest busy first; equally busy ones by number.
        let mut busiest: Vec<(LinkId, Usage)> = Vec::with_capacity(BUSIEST + 1);
        for (link, &usage) in (0..).map(LinkId).zip(usage).filter(|(_, usage)| usage.count > 0) {
            used += 1;
            busy += u128::from(usage.busy.0);
            let place = busiest.partition_point(|(_, other)| other.busy >= usage.busy);
            if place < BUSIEST {
                busiest.insert(place, (link, usage));
                busiest.truncate(BUSIEST);
            }
        }
        let busiest: Vec<LinkReport> = busiest
            .into_iter()
            .map(|(link, Usage { busy, count: messages, bytes, .. })| LinkReport {
                link: topology.link_name(link),
                utilisation: share(busy.0.into()),
                busy_ps: busy,
                amount: Amount { messages, bytes },
            })
            .collect();
        Self {
            used,
            utilisation_max: busiest.first().map_or(0.0, |link| link.utilisation),
            utilisation_mean: share(busy) / f64::from(topology.links()),
            busiest,
        }
    }
}

impl Performance {
    pub(crate) fn new(wall: Duration, messages: u64, events: u64) -> Self {
        let per_second =
            |count: u64| (wall >= Duration::from_millis(1)).then(|| count as f64 / wall.as_secs_f64());
        Self {
            wall_s: wall.as_secs_f64(),
            events,
            messages_per_s: per_second(messages),
            events_per_s: per_second(events),
        }
    }
}

fn kind<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    match kind {
        Kind::PointToPoint => serializer.serialize_str("point_to_point"),
        Kind::Collective(operation) => operation.serialize(serializer),
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", Grouped(self.messages), self.bytes)
    }
}

impl Report {
    /// The report as people read it, some fifteen to thirty lines.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, out: &mut String) -> fmt::Result {
        let NetworkReport { topology, routing, nodes, links, model, bandwidth, latency_ps, .. } =
            &self.network;
        writeln!(
            out,
            "network       {topology}: {nodes} nodes, {links} links of {bandwidth} and {latency_ps}, {model}, {routing}"
        )?;
        writeln!(out, "run time      {}", self.runtime_ps)?;
        for (number, JobReport { trace, tasks, finish_ps }) in self.jobs.iter().enumerate() {
            if self.jobs.len() > 1 {
                writeln!(out, "job {number:<9} {}", trace.as_deref().unwrap_or("from memory"))?;
            }
            let Finish { min, mean, max, .. } = finish_ps;
            writeln!(out, "tasks         {tasks}; they finish from {min} to {max}, {mean} in the mean")?;
        }
        let total = Amount { messages: self.messages, bytes: self.bytes };
        writeln!(out, "messages      {total}")?;
        for OfKind { kind, amount } in &self.kinds {
            writeln!(out, "  {:<20}  {amount}", kind.to_string())?;
        }
        if self.collectives_split_evenly > 0 {
            let split = self.collectives_split_evenly;
            writeln!(
                out,
                "  {split} collectives split evenly: the trace has sums alone, a container has the counts"
            )?;
        }
        if self.same_node.messages > 0 {
            writeln!(out, "  of which in a node    {}", self.same_node)?;
        }
        let Latency { min, mean, p50, p90, p99, max, .. } = self.latency_ps;
        writeln!(out, "latency       min {min}, mean {mean}, max {max}")?;
        writeln!(out, "              p50 {p50}, p90 {p90}, p99 {p99}")?;
        let LinksReport { used, utilisation_max, utilisation_mean, busiest } = &self.links;
        let (max, mean) = (100.0 * utilisation_max, 100.0 * utilisation_mean);
        writeln!(
            out,
            "links         {used} of {links} used; busy {max:.2} % at most, {mean:.2} % in the mean"
        )?;
        let named = &busiest[..busiest.len().min(NAMED)];
        let width = named.iter().map(|link| link.link.len()).max().unwrap_or(0);
        for LinkReport { link, utilisation, amount, .. } in named {
            writeln!(out, "  {link:<width$}  {:6.2} %  {amount}", 100.0 * utilisation)?;
        }
        let Performance { wall_s, events, events_per_s, .. } = self.performance;
        write!(out, "simulated in  {wall_s:.3} s, {} events", Grouped(events))?;
        match events_per_s {
            Some(rate) => writeln!(out, ", {:.2} million a second", rate * 1e-6),
            None => writeln!(out),
        }
    }
}

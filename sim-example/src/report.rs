//! What a simulation found out, for programs by serde (`docs/simulator.md` lists the keys). For people it becomes text elsewhere.

mod figures;
mod links;

use std::time::Duration;

use replay::{Count, Engine, Kind};
use serde::Serialize;
use vef_format::units::{Bytes, Picos};

use crate::accounts::{Accounts, TaskTimes};
use crate::critical::CriticalPath;
use crate::histogram::Histogram;
use crate::latencies::Latencies;
use crate::model::{Model, Usage};
use crate::quantity::Bandwidth;
use crate::settings::NetworkSettings;
use crate::topology::{LinkClass, Topology};
use crate::watch::Watch;

pub(crate) use figures::kind;
pub use figures::{Amount, Finish, Latency, Performance};
pub use links::{LinkReport, LinksReport, OverTime, Share, SharedBy};

/// The result of a simulation. Everything but [`Report::performance`] is the same in every run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The version of these keys: [`SCHEMA`]. Keys may be added to it, nothing else is changed.
    pub schema: &'static str,
    /// Whether every record was replayed and every message delivered; a simulation that is not complete is an error,
    /// so this is always true.
    pub complete: bool,
    /// When the last task finished and the last message was delivered, from time 0.
    pub runtime_ps: Picos,
    /// The same traces without contention, if that was asked for.
    pub ideal: Option<Ideal>,
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
    /// The same by size, without the classes that did not occur.
    pub sizes: Vec<OfSize>,
    /// How the links were used.
    pub links: LinksReport,
    /// What bounds the run time, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<CriticalPath>,
    /// What the simulation itself took.
    pub performance: Performance,
}

/// The version of the keys of a [`Report`].
pub const SCHEMA: &str = "vef-sim/1";

/// A run on the same links and latencies in which no message waits for another ([`Settings::ideal`](crate::Settings::ideal)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ideal {
    /// Its run time.
    pub runtime_ps: Picos,
    /// How many times as long the run took.
    pub slowdown: f64,
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
    /// How long those took that went through the network.
    pub latency_ps: Latency,
}

/// The messages of one class of sizes that went through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OfSize {
    /// The least size of the class.
    pub from_bytes: Bytes,
    /// The largest size of the class.
    pub to_bytes: Bytes,
    /// How long they took.
    #[serde(flatten)]
    pub latency_ps: Latency,
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
    /// When its tasks could use MPI, if its trace says it.
    pub span: Option<JobSpan>,
    /// What all its tasks did with their time, in sum.
    pub times: TaskTimes,
    /// What each task did with its time, by rank; empty where the model does not tell it.
    pub ranks: Vec<TaskTimes>,
    /// What the program did and the trace does not hold, as its mixer counted it; a text trace does not say.
    pub not_in_trace: Vec<String>,
}

/// When the tasks of a job could use MPI: from the latest end of `MPI_Init` to the first entry of `MPI_Finalize`. The times of a task
/// count from its own start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JobSpan {
    /// The latest end of `MPI_Init`, as captured.
    pub initialisation_ps: Picos,
    /// Whether that was left out: tasks then start with the end of it.
    pub from_init: bool,
    /// What was between, as captured, if all tasks came to `MPI_Finalize`.
    pub captured_ps: Option<Picos>,
    /// What was between, as simulated.
    pub simulated_ps: Picos,
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
    /// The parameters of model `loggp`, which has them instead of links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loggp: Option<String>,
}

/// A simulation at its end.
pub(crate) struct Run<'a> {
    pub(crate) engine: &'a Engine,
    /// When each task finished, over all jobs, where that is not for the engine to say.
    pub(crate) finish: Option<&'a [Picos]>,
    /// What tasks did with their time, where the model tells it.
    pub(crate) accounts: Option<&'a Accounts>,
    pub(crate) critical_path: Option<CriticalPath>,
    /// What each link carried.
    pub(crate) usage: Vec<Usage>,
    pub(crate) events: u64,
    pub(crate) watch: Option<&'a Watch>,
    pub(crate) latencies: Latencies,
    pub(crate) topology: &'a Topology,
    pub(crate) settings: &'a NetworkSettings,
    pub(crate) wall: Duration,
}

impl Report {
    pub(crate) fn new(run: Run<'_>) -> Self {
        let (engine, stats, total) = (run.engine, run.engine.stats(), run.engine.stats().total());
        let last = run.finish.and_then(|finish| finish.iter().copied().max());
        let runtime = engine.finish().max(last.unwrap_or_default());
        let (mut first_task, mut first_tasks) = (0, Vec::new());
        let jobs = (0..engine.jobs()).map(|job| {
            let tasks = first_task..first_task + engine.tasks(job) as usize;
            first_task = tasks.end;
            first_tasks.push(tasks.start as u32);
            JobReport::new(engine, run.accounts, job, run.finish.map(|finish| &finish[tasks]))
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
            kind,
            amount: count.into(),
            latency_ps: Latency::new(&run.latencies.of_kind(kind)),
        };
        let of_size = |(from_bytes, to_bytes, histogram): (Bytes, Bytes, Histogram)| OfSize {
            from_bytes,
            to_bytes,
            latency_ps: Latency::new(&histogram),
        };
        Self {
            schema: SCHEMA,
            complete: engine.is_complete(),
            runtime_ps: runtime,
            ideal: None,
            tasks: (0..engine.jobs()).map(|job| u64::from(engine.tasks(job))).sum(),
            messages: total.messages,
            bytes: total.bytes,
            marks: stats.marks,
            collectives: stats.collectives,
            collectives_split_evenly: stats.split_evenly,
            same_node: stats.inside.into(),
            kinds: stats.kinds().map(of_kind).collect(),
            jobs,
            network: NetworkReport::new(run.topology, run.settings),
            latency_ps: Latency::new(&run.latencies.all()),
            sizes: run.latencies.sizes().map(of_size).collect(),
            links: used.report(),
            critical_path: run.critical_path,
            performance: Performance::new(run.wall, total.messages, run.events),
        }
    }

    /// The link with most transmission and queueing on the critical path, if there is one.
    pub fn critical_link(&self) -> Option<u32> {
        Some(self.critical_path.as_ref()?.links.first()?.number)
    }

    /// Takes note of a run in which [`Report::critical_link`] had twice its bandwidth.
    pub fn set_doubled(&mut self, doubled: &Self) {
        if let Some(link) = self.critical_path.as_mut().and_then(|path| path.links.first_mut()) {
            link.runtime_if_twice_as_fast_ps = Some(doubled.runtime_ps);
        }
    }

    /// Takes note of a run without contention.
    pub fn set_ideal(&mut self, ideal: &Self) {
        let runtime_ps = ideal.runtime_ps;
        let slowdown = if runtime_ps.0 == 0 { 1.0 } else { self.runtime_ps.0 as f64 / runtime_ps.0 as f64 };
        self.ideal = Some(Ideal { runtime_ps, slowdown });
    }
}

impl JobReport {
    fn new(engine: &Engine, accounts: Option<&Accounts>, job: u32, finish: Option<&[Picos]>) -> Self {
        let tasks = match finish {
            Some(finish) => finish.to_vec(),
            None => engine.progress(job).map(|task| task.finished.unwrap_or_default()).collect(),
        };
        let ranks = accounts.map_or_else(Vec::new, |accounts| accounts.of_job(job, &tasks));
        let times = ranks.iter().fold(TaskTimes::default(), |sum, times| sum.plus(times));
        Self {
            trace: None,
            tasks: engine.tasks(job),
            finish_ps: Finish::of(tasks),
            span: None,
            times,
            ranks,
            not_in_trace: Vec::new(),
        }
    }
}

impl NetworkReport {
    fn new(topology: &Topology, settings: &NetworkSettings) -> Self {
        let NetworkSettings { topology: spec, links, model, routing, loggp, .. } = settings;
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
            loggp: (*model == Model::LogGp).then(|| loggp.parameters.to_string()),
        }
    }
}

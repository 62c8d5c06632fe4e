//! The result of a simulation. Serde writes it for programs (`docs/simulator.md` lists the keys), `text.rs`
//! for people.

mod figures;
mod links;

use std::collections::HashSet;
use std::time::Duration;

use replay::{Count, Engine, Kind};
use serde::Serialize;
use vef_format::units::{Bytes, Picos};

use crate::accounts::{Accounts, TaskTimes};
use crate::computing::ComputeScale;
use crate::critical::CriticalPath;
use crate::histogram::Histogram;
use crate::latencies::Latencies;
use crate::model::{Model, Usage};
use crate::noise::NoiseReport;
use crate::quantity::Bandwidth;
use crate::settings::NetworkSettings;
use crate::topology::{Fabric, LinkClass};
use crate::watch::Watch;

pub(crate) use figures::kind;
pub use figures::{Amount, Finish, Latency, Performance};
pub use links::{LinkReport, LinksReport, OverTime, Share, SharedBy};

/// The result of a simulation. All fields but [`Report::performance`] are the same in every run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Always true: an incomplete simulation is an error.
    pub complete: bool,
    /// When the last task has finished and the last message has arrived, from time 0.
    pub runtime_ps: Picos,
    /// The run without contention, if requested.
    pub ideal: Option<Ideal>,
    /// Tasks of all jobs.
    pub tasks: u64,
    /// Messages of all jobs, collectives included.
    pub messages: u64,
    /// Their payload.
    pub bytes: Bytes,
    /// Local marks passed.
    pub marks: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Collectives for which the trace has only sums, which were split evenly over the members.
    pub collectives_split_evenly: u64,
    /// Messages that the replay delivered within a node, without the network.
    pub same_node: Amount,
    /// Messages by kind; kinds without messages are absent.
    pub kinds: Vec<OfKind>,
    /// The jobs, in the order of the settings.
    pub jobs: Vec<JobReport>,
    /// The network.
    pub network: NetworkReport,
    /// Latency of the network's messages: from submission to the arrival of the last byte.
    pub latency_ps: Latency,
    /// The same by message size; classes without messages are absent.
    pub sizes: Vec<OfSize>,
    /// Use of the links.
    pub links: LinksReport,
    /// The critical path, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<CriticalPath>,
    /// Speed of the simulation itself.
    pub performance: Performance,
}

/// Version of the keys of a [`Report`]. New keys may be added to a version; existing keys do not change.
pub const SCHEMA: &str = "vef-sim/1";

/// The same run without contention ([`Settings::ideal`](crate::Settings::ideal)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ideal {
    /// Its run time.
    pub runtime_ps: Picos,
    /// The run time with contention divided by this one.
    pub slowdown: f64,
}

/// The messages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OfKind {
    /// `point_to_point`, or the collective operation, such as `allreduce`.
    #[serde(serialize_with = "kind")]
    pub kind: Kind,
    /// Messages and payload.
    #[serde(flatten)]
    pub amount: Amount,
    /// Latency of those that crossed the network.
    pub latency_ps: Latency,
}

/// Messages of one class of sizes that crossed the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OfSize {
    /// Smallest size of the class.
    pub from_bytes: Bytes,
    /// Largest size of the class.
    pub to_bytes: Bytes,
    /// Their latency.
    #[serde(flatten)]
    pub latency_ps: Latency,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobReport {
    /// The trace file, if there is one.
    pub trace: Option<String>,
    /// Number of tasks.
    pub tasks: u32,
    /// Number of nodes on which they run.
    pub nodes: u32,
    /// When its tasks finished.
    pub finish_ps: Finish,
    /// The time between `MPI_Init` and `MPI_Finalize`, if the trace has it.
    pub span: Option<JobSpan>,
    /// How computing times differ from those of the trace.
    pub computing: ComputingReport,
    /// Sum of the times of all tasks.
    pub times: TaskTimes,
    /// Times of each task, by rank; empty if the model does not record them.
    pub ranks: Vec<TaskTimes>,
    /// Calls of the program that the trace does not hold, as counted by the mixer; empty for a text trace.
    pub not_in_trace: Vec<String>,
}

/// How the computing times of a job differ from those of its trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComputingReport {
    /// Factors, in the form in which they can be given again; absent if they are 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// Noise; absent if it is as captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseReport>,
}

impl ComputingReport {
    pub(crate) fn new(scale: &ComputeScale, noise: Option<&NoiseReport>) -> Self {
        let scale = (*scale != ComputeScale::default()).then(|| scale.to_string());
        Self { scale, noise: noise.cloned() }
    }
}

/// The time between `MPI_Init` and `MPI_Finalize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JobSpan {
    /// The latest end of `MPI_Init`, as captured.
    pub initialisation_ps: Picos,
    /// Whether the initialisation was omitted, so that tasks start at its end.
    pub from_init: bool,
    /// The longest time of a task from its end of `MPI_Init` to its entry of `MPI_Finalize`, as captured, if all tasks
    /// reached that.
    pub captured_ps: Option<Picos>,
    /// The simulated time from the latest end of `MPI_Init` to the latest entry of `MPI_Finalize`.
    pub simulated_ps: Picos,
}

/// The simulated network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkReport {
    /// The topology, in the form in which it can be given again.
    pub topology: String,
    /// The routing, in the same form.
    pub routing: String,
    /// Number of end nodes.
    pub nodes: u32,
    /// Number of directed links, those of nodes included.
    pub links: u32,
    /// The model.
    pub model: Model,
    /// Bandwidth of links between switches.
    #[serde(rename = "bandwidth_bits_per_s")]
    pub bandwidth: Bandwidth,
    /// Latency of a link between switches.
    pub latency_ps: Picos,
    /// Bandwidth of the links of nodes.
    #[serde(rename = "node_bandwidth_bits_per_s")]
    pub node_bandwidth: Bandwidth,
    /// Latency of the links of nodes.
    pub node_latency_ps: Picos,
    /// Delay of a switch for a message.
    pub switch_delay_ps: Picos,
    /// Time of a node's interface for a message.
    pub overhead_ps: Picos,
    /// Parameters of model `loggp`, which has no links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loggp: Option<String>,
}

/// A finished simulation.
pub(crate) struct Outcome<'a> {
    /// One, or its partitions.
    pub(crate) engines: &'a [Engine],
    /// Finishing time of each task of all jobs, if the model and not the engine knows it.
    pub(crate) finish: Option<&'a [Picos]>,
    /// Times of the tasks, if the model records them.
    pub(crate) accounts: Option<&'a Accounts>,
    pub(crate) critical_path: Option<CriticalPath>,
    /// By link number.
    pub(crate) usage: Vec<Usage>,
    pub(crate) events: u64,
    pub(crate) watch: Option<&'a Watch>,
    pub(crate) latencies: Latencies,
    pub(crate) topology: &'a Fabric,
    pub(crate) settings: &'a NetworkSettings,
    pub(crate) wall: Duration,
}

impl Report {
    pub(crate) fn new(run: Outcome<'_>) -> Self {
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
            JobReport::new(engines, run.accounts, job, run.finish.map(|finish| &finish[tasks]))
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
            complete: engines.iter().all(Engine::is_complete),
            runtime_ps: runtime,
            ideal: None,
            tasks: jobs.iter().map(|job| u64::from(job.tasks)).sum(),
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

    /// The link with most transmission and queueing on the critical path.
    pub fn critical_link(&self) -> Option<u32> {
        Some(self.critical_path.as_ref()?.links.first()?.number)
    }

    /// Adds the result of a run in which [`Report::critical_link`] had twice its bandwidth.
    pub fn set_doubled(&mut self, doubled: &Self) {
        if let Some(link) = self.critical_path.as_mut().and_then(|path| path.links.first_mut()) {
            link.runtime_if_twice_as_fast_ps = Some(doubled.runtime_ps);
        }
    }

    /// Adds the result of a run without contention.
    pub fn set_ideal(&mut self, ideal: &Self) {
        let runtime_ps = ideal.runtime_ps;
        let slowdown = if runtime_ps.0 == 0 { 1.0 } else { self.runtime_ps.0 as f64 / runtime_ps.0 as f64 };
        self.ideal = Some(Ideal { runtime_ps, slowdown });
    }
}

impl JobReport {
    fn new(engines: &[Engine], accounts: Option<&Accounts>, job: u32, finish: Option<&[Picos]>) -> Self {
        let mut tasks = vec![Picos::ZERO; engines[0].tasks(job) as usize];
        match finish {
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
        let ranks = accounts.map_or_else(Vec::new, |accounts| accounts.of_job(job, &tasks));
        let times = ranks.iter().fold(TaskTimes::default(), |sum, times| sum.plus(times));
        Self {
            trace: None,
            tasks: tasks.len() as u32,
            nodes: nodes.len() as u32,
            finish_ps: Finish::of(tasks),
            span: None,
            computing: ComputingReport::default(),
            times,
            ranks,
            not_in_trace: Vec::new(),
        }
    }
}

impl NetworkReport {
    fn new(topology: &Fabric, settings: &NetworkSettings) -> Self {
        let NetworkSettings { links, model, routing, loggp, .. } = settings;
        let of_nodes = links.of(LinkClass::NODE);
        Self {
            topology: topology.topology().name(),
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

//! The result of `vef sim` for a trace: what the simulator writes, and reports, timelines and sweeps read.

mod arrivals;
mod congestion;
mod critical;
mod drawing;
mod links;
mod tables;
mod text;
mod waits;

pub use arrivals::{ArrivalsReport, ArrivedJob};
pub use congestion::CongestionReport;
pub use critical::{Captured, CriticalLevel, CriticalLink, CriticalPath, CriticalRank, CriticalStep, OnPath};
pub use drawing::{Drawing, DrawnCable, DrawnVertex};
pub use links::{Amount, JobBytes, KindBytes, LinkReport, LinksReport, OverTime, Source};
pub use waits::WaitsReport;

use crate::by_state::ByState;
use crate::kind::Kind;
use crate::schema::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// The result of a simulation. Times are in picoseconds (`_ps`), amounts of data in bytes. All values but
/// `performance` are the same in every run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulation {
    /// Version of these keys. Keys may be added to a version; existing keys do not change.
    pub schema: SimulationSchema,
    /// The options by which it was made, by name, defaults included, and the traces; empty within a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Vec<String>>,
    /// Always true: an incomplete simulation is an error.
    #[schemars(extend("const" = true))]
    pub complete: bool,
    /// When the last task has finished and the last message has arrived, from time 0.
    pub runtime_ps: u64,
    /// The run without contention, if requested, unless links fail at times.
    pub ideal: Option<Ideal>,
    /// The run with contention at the senders' own interfaces alone, where it matters: what exceeds this one is between senders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_interfaces: Option<Ideal>,
    /// Tasks of all jobs.
    pub tasks: u64,
    /// Messages of all jobs, collectives included.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
    /// Local marks passed.
    pub marks: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Collectives for which the trace has only sums, which were split evenly over the members.
    pub collectives_split_evenly: u64,
    /// Collectives that the network carried out itself.
    #[serde(default)]
    pub collectives_offloaded: u64,
    /// Messages within nodes, without the network.
    pub same_node: Amount,
    /// Messages by kind; kinds without messages are absent.
    pub kinds: Vec<OfKind>,
    /// The jobs, in the order of the settings; none with arrivals.
    pub jobs: Vec<JobReport>,
    /// The jobs of a list of arrivals, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsReport>,
    /// Traffic beside the jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundReport>,
    /// The network.
    pub network: NetworkReport,
    /// Latency of the network's messages: from submission to the arrival of the last byte.
    pub latency: Latency,
    /// The same by message size; classes without messages are absent.
    pub sizes: Vec<OfSize>,
    /// Use of the links.
    pub links: LinksReport,
    /// Congestion control, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionReport>,
    /// The critical path, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<CriticalPath>,
    /// Who waits for whom, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitsReport>,
    /// Speed of the simulation itself.
    pub performance: Performance,
}

schema!(SimulationSchema of Simulation: "vef-sim/2");

/// The runs of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunsReport {
    /// Number of runs.
    pub runs: u64,
    /// The shortest one.
    pub min_ps: u64,
    /// Their mean, rounded down.
    pub mean_ps: u64,
    /// The longest one.
    pub max_ps: u64,
}

/// Traffic beside the jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundReport {
    /// Pattern and load, in the form in which they can be given again.
    pub traffic: String,
    /// Messages submitted while the jobs ran.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
    /// Messages delivered while the jobs ran.
    pub delivered: u64,
    /// Their mean latency, rounded down.
    pub latency_mean_ps: u64,
}

/// The same run in a network without contention, or of only one of the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ideal {
    /// Its run time.
    pub runtime_ps: u64,
    /// The run time divided by this one.
    pub slowdown: f64,
}

/// The messages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfKind {
    /// What they belong to.
    pub kind: Kind,
    /// Messages and payload.
    #[serde(flatten)]
    pub amount: Amount,
    /// Latency of those that crossed the network.
    pub latency: Latency,
}

/// Messages of one class of sizes that crossed the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfSize {
    /// Smallest size of the class.
    pub from_bytes: u64,
    /// Largest size of the class.
    pub to_bytes: u64,
    /// Their latency.
    #[serde(flatten)]
    pub latency: Latency,
}

/// Latencies of messages. Quantiles are exact or at most 1/128 too high; all else is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Number of messages; all other fields are 0 if it is 0.
    pub messages: u64,
    /// The minimum.
    pub min_ps: u64,
    /// The mean, rounded down.
    pub mean_ps: u64,
    /// The median.
    pub p50_ps: u64,
    /// The 90th percentile.
    pub p90_ps: u64,
    /// The 99th percentile.
    pub p99_ps: u64,
    /// The 99.9th percentile.
    #[serde(default)]
    pub p999_ps: u64,
    /// The maximum.
    pub max_ps: u64,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobReport {
    /// The trace file, if there is one.
    pub trace: Option<String>,
    /// The part of its run that was simulated, if not all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartReport>,
    /// Number of tasks.
    pub tasks: u32,
    /// Number of nodes on which they run.
    pub nodes: u32,
    /// When it began.
    #[serde(default)]
    pub start_ps: u64,
    /// From its start to the end of its last task; of the first run, if there are several.
    #[serde(default)]
    pub runtime_ps: u64,
    /// The same run without other jobs and background traffic, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Ideal>,
    /// All its runs, if jobs run several times. Other values are of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunsReport>,
    /// When its tasks finished.
    pub finish: Finish,
    /// The time between `MPI_Init` and `MPI_Finalize`, if the trace has it.
    pub span: Option<JobSpan>,
    /// How computing times differ from those of the trace.
    pub computing: ComputingReport,
    /// Sum of the times of all tasks that ran the program (`captured_tasks`).
    pub times: ByState<u64>,
    /// The captured run, if the trace tells: all that the trace has as computing, and the rest by the states in which a replay has it. A
    /// task with several threads counts once for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_times: Option<ByState<u64>>,
    /// The rest of the captured run: MPI's own work in calls that begin sends and collectives, which is in no computing time. A replay has it
    /// in no state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_own_ps: Option<u64>,
    /// How many of the tasks, the first ones, ran the program, if the others are storage servers or network interfaces. `times` and
    /// `captured_times` are theirs, and the minimum, mean and maximum in `finish` are of those that have records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_tasks: Option<u32>,
    /// Times of each task, by rank; empty if the model does not record them. They add up to its finishing time.
    pub ranks: Vec<ByState<u64>>,
    /// Calls of the program that the trace does not hold, as counted by the mixer; empty for a text trace.
    pub not_in_trace: Vec<String>,
}

/// A part of a run: the records of a trace that were replayed. All tasks begin with their first one at the start of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartReport {
    /// What it is.
    pub description: String,
    /// How many iterations of the main loop, if it was asked for these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Its records.
    pub records: u64,
    /// All records of the trace.
    pub of_records: u64,
    /// Receptions for which records do not wait, because the messages were sent outside of the part.
    pub receptions_left_out: u64,
    /// Members' parts of collectives that were left out, because other members enter these outside of the part.
    pub collective_parts_left_out: u64,
}

/// When tasks finished their last record: the minimum, mean and maximum of those that ran the program ([`JobReport::captured_tasks`]) and have
/// records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finish {
    /// The minimum.
    pub min_ps: u64,
    /// The mean, rounded down.
    pub mean_ps: u64,
    /// The maximum.
    pub max_ps: u64,
    /// Of all tasks, by rank.
    pub tasks_ps: Vec<u64>,
}

/// The time between `MPI_Init` and `MPI_Finalize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSpan {
    /// The latest end of `MPI_Init`, as captured.
    pub initialisation_ps: u64,
    /// Whether the initialisation was omitted, so that tasks start at its end.
    pub from_init: bool,
    /// The longest time of a task from its end of `MPI_Init` to its entry of `MPI_Finalize`, as captured, if all tasks
    /// that were recorded reached that.
    pub captured_ps: Option<u64>,
    /// The simulated time from the latest end of `MPI_Init` to the latest entry of `MPI_Finalize`, or to the last record where a task did not
    /// reach that.
    pub simulated_ps: u64,
}

/// How the computing times of a job differ from those of its trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComputingReport {
    /// Factors, in the form in which they can be given again; absent if they are 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// Noise; absent if it is as captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseReport>,
}

/// The noise of the computing times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseReport {
    /// The model, in the form in which it can be given again.
    pub model: String,
    /// Places, or kinds of work at a place, which have at least ten repetitions each.
    pub places: u64,
    /// Places with several kinds of work, told apart by their times.
    pub divided: u64,
    /// Records at these places, whose times are replaced.
    pub replaced: u64,
    /// Other records, which keep their times.
    pub kept: u64,
    /// Time over the typical time of its place, by the latter's order of magnitude.
    pub deviations: Vec<Deviations>,
}

/// Deviations at places whose typical time is in [`from_ps`, 10 · `from_ps`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deviations {
    /// Shortest typical time.
    pub from_ps: u64,
    /// Number of records.
    pub records: u64,
    /// Their mean. Quantiles below are up to 1/128 off.
    pub mean: f64,
    /// Their 10th percentile.
    pub p10: f64,
    /// Their median.
    pub p50: f64,
    /// Their 90th percentile.
    pub p90: f64,
    /// Their 99th percentile.
    pub p99: f64,
    /// Their maximum.
    pub max: f64,
}

/// The simulated network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkReport {
    /// The topology, in the form in which it can be given again.
    pub topology: String,
    /// The routing, in the same form.
    pub routing: String,
    /// Failed or slower links, in the form in which they can be given again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Of links that fail at times: from when to when which nodes could not reach each other during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<String>,
    /// Number of end nodes.
    pub nodes: u32,
    /// Number of directed links, those of nodes included.
    pub links: u32,
    /// Number of switches.
    #[serde(default)]
    pub switches: u32,
    /// The model.
    pub model: String,
    /// Bandwidth of links between switches, where neither the topology nor `--fail` says another.
    pub bandwidth_bits_per_s: u64,
    /// The least and the largest bandwidth of all links, if not all have that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_bits_per_s: Option<[u64; 2]>,
    /// The least and the largest latency of all links, if not all have that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_latency_ps: Option<[u64; 2]>,
    /// Latency of a link between switches.
    pub latency_ps: u64,
    /// Bandwidth of the links of nodes.
    pub node_bandwidth_bits_per_s: u64,
    /// Latency of the links of nodes.
    pub node_latency_ps: u64,
    /// Delay of a switch for a message.
    pub switch_delay_ps: u64,
    /// Time of a node's interface for a message.
    pub overhead_ps: u64,
    /// Parameters of model `loggp`, which has no links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loggp: Option<String>,
    /// The network as it is drawn, if all links are recorded and cables are not too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawing: Option<Drawing>,
}

impl NetworkReport {
    /// Cables between switches, of two links each.
    pub fn switch_cables(&self) -> u32 {
        (self.links / 2).saturating_sub(self.nodes)
    }

    /// All cables.
    pub fn cables(&self) -> u32 {
        self.links / 2
    }

    /// Ports of switches that have a cable.
    pub fn switch_ports(&self) -> u32 {
        self.nodes.saturating_add(self.switch_cables().saturating_mul(2))
    }
}

/// Speed of a simulation; differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Performance {
    /// Wall-clock time.
    pub wall_ps: u64,
    /// Events of the network; in models with contention, a message over `H` links makes `H`.
    pub events: u64,
    /// Messages per second of wall-clock time; absent for runs shorter than a millisecond.
    pub messages_per_s: Option<f64>,
    /// Events per second of wall-clock time; absent for runs shorter than a millisecond.
    pub events_per_s: Option<f64>,
}

impl Simulation {
    /// The links of each level whose transmission and queueing are a twentieth of the critical path at least, most first; of the
    /// first level in any case.
    pub fn critical_levels(&self) -> Vec<Range<u32>> {
        let levels = self.critical_path.iter().flat_map(|path| &path.levels).enumerate();
        let is_large = |time: u64| time.saturating_mul(20) >= self.runtime_ps;
        let tried =
            levels.filter(|(nth, level)| *nth == 0 || is_large(level.transmission_ps + level.queueing_ps));
        tried.map(|(_, level)| level.first_link..level.first_link + level.links).collect()
    }

    /// Adds the result of a run in which the links of one of [`Simulation::critical_levels`] had twice their bandwidth.
    pub fn set_doubled(&mut self, links: &Range<u32>, doubled: &Self) {
        let Some(path) = &mut self.critical_path else { return };
        let level = path.levels.iter_mut().find(|level| level.first_link == links.start);
        let Some(level) = level else { return };
        level.runtime_if_twice_as_fast_ps = Some(doubled.runtime_ps);
        if level.links == 1 {
            let own = path.links.iter_mut().filter(|link| link.number == level.first_link);
            own.for_each(|link| link.runtime_if_twice_as_fast_ps = Some(doubled.runtime_ps));
        }
    }

    /// Adds the result of a run without contention.
    pub fn set_ideal(&mut self, ideal: &Self) {
        self.ideal = Some(Ideal::of(self.runtime_ps, ideal.runtime_ps));
    }

    /// Adds the result of a run with contention at the senders' own interfaces alone.
    pub fn set_own_interfaces(&mut self, own: &Self) {
        self.own_interfaces = Some(Ideal::of(self.runtime_ps, own.runtime_ps));
    }

    /// Adds the result of a run with only one of the jobs.
    pub fn set_alone(&mut self, job: usize, alone: &Self) {
        if let (Some(job), Some(alone)) = (self.jobs.get_mut(job), alone.jobs.first()) {
            job.alone = Some(Ideal::of(job.runtime_ps, alone.runtime_ps));
        }
    }
}

impl Ideal {
    /// Of a run time, and that of the run with which it is compared.
    pub(super) fn of(runtime_ps: u64, ideal_ps: u64) -> Self {
        let slowdown = if ideal_ps == 0 { 1.0 } else { runtime_ps as f64 / ideal_ps as f64 };
        Self { runtime_ps: ideal_ps, slowdown }
    }
}

impl Finish {
    /// From the times of all tasks, and whether each of them counts.
    pub fn of(tasks_ps: Vec<u64>, counts: impl Fn(usize) -> bool) -> Self {
        let counted = || (0..).zip(&tasks_ps).filter(|&(task, _)| counts(task)).map(|(_, &at)| at);
        let sum: u128 = counted().map(u128::from).sum();
        Self {
            min_ps: counted().min().unwrap_or_default(),
            mean_ps: (sum / counted().count().max(1) as u128) as u64,
            max_ps: counted().max().unwrap_or_default(),
            tasks_ps,
        }
    }
}

impl Performance {
    /// From the wall-clock time of a simulation.
    pub fn new(wall: Duration, messages: u64, events: u64) -> Self {
        let per_second =
            |count: u64| (wall >= Duration::from_millis(1)).then(|| count as f64 / wall.as_secs_f64());
        Self {
            wall_ps: u64::try_from(wall.as_nanos() * 1000).unwrap_or(u64::MAX),
            events,
            messages_per_s: per_second(messages),
            events_per_s: per_second(events),
        }
    }
}

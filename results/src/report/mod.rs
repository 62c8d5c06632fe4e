//! The data of a report: what `vef stats --json` and `vef report --format json` write, and what the page is drawn from.
//! Times are in picoseconds (`_ps`), amounts of data in bytes, shares from 0 to 1. `docs/reports.md` lists the keys.

mod files;
mod measures;
mod replayed;
mod spent;

pub use files::{FileCalls, FileOfRank, Files, InFile};
pub use measures::{Amount, Matrix, OfRank, Order};
pub use replayed::{
    CollectiveTimes, Efficiency, InFlight, OfKind, OperationTimes, OverTime, RankStates, RankTime, Replayed,
    States, UnderWay,
};
pub use spent::{FunctionRanks, InFunction, Part, Spent};

use crate::Exact;
use crate::schema::schema;
use crate::simulation::Simulation;
use crate::sweep::Sweep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The data of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: ReportSchema,
    /// What the report is about.
    pub head: Head,
    /// Sums over the trace.
    pub totals: Totals,
    /// How large messages are.
    pub sizes: Sizes,
    /// Who sends to whom, by the point-to-point lines of the trace.
    pub pairs: Pairs,
    /// Messages by the distance of the ranks' numbers.
    pub distances: Vec<Distance>,
    /// Messages within a host and between hosts, where the trace tells hosts.
    pub locality: Option<Locality>,
    /// What each rank does.
    pub ranks: Ranks,
    /// Collective operations.
    pub collectives: Collectives,
    /// Records by the MPI function behind them, where the trace tells them.
    pub calls: Vec<Call>,
    /// How the ranks spent the captured run, where the trace tells it.
    pub spent: Option<Spent>,
    /// What the ranks did with files, where the trace tells it and there are any.
    pub files: Option<Files>,
    /// The program's phases, where the trace tells them.
    pub phases: Vec<Phase>,
    /// What a replay on the yardstick network shows, unless none was wanted.
    pub replayed: Option<Replayed>,
    /// A simulation of the trace, if one was added.
    pub simulated: Option<Simulated>,
    /// A sweep of simulations, if one was added.
    pub sweep: Option<Sweep>,
    /// A comparison with another trace.
    pub against: Option<Against>,
}

schema!(ReportSchema of Report: "vef-report/2");

/// A simulation of the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulated {
    /// The result of `vef sim --json` without lists by rank; all of its links are the busiest, the busiest first.
    pub result: Simulation,
    /// What each rank does, unless the model does not record it.
    pub ranks: Option<RankStates>,
    /// The utilisation of links that carried messages, the highest first.
    pub utilisations: Vec<f64>,
}

/// A comparison with another trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// What it is.
    pub head: Head,
    /// Measure by measure.
    pub differences: Vec<Difference>,
    /// Its messages by size.
    pub sizes: Vec<SizeClass>,
    /// Its collective operations.
    pub operations: Vec<Operation>,
}

/// A measure of two traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Which one.
    pub measure: String,
    /// Of this trace.
    pub this: Exact,
    /// Of the other.
    pub other: Exact,
    /// How much more this is, as a share of the other; none where the other is 0.
    pub change: Option<f64>,
}

/// What a report is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Head {
    /// The file or directory.
    pub file: String,
    /// `text`, `container` or `capture`.
    pub kind: String,
    /// Its size.
    pub file_bytes: Exact,
    /// The program that made the report.
    pub tool: String,
    /// The captured program.
    pub program: Option<String>,
    /// With its arguments.
    pub command: Option<String>,
    /// The MPI's version.
    pub mpi: Option<String>,
    /// When it was captured, UTC.
    pub date: Option<String>,
    /// Which part of the run the report is about, if not all of it.
    pub part: Option<String>,
    /// How long the captured run took, where the trace tells it.
    pub captured: Option<Captured>,
    /// Number of ranks, and of the tasks behind them that ran no program.
    pub ranks: u32,
    /// What the tasks are that ran no program: storage servers, network interfaces.
    #[serde(default)]
    pub serving: Vec<String>,
    /// The hosts, in the order of their first ranks.
    pub hosts: Vec<Host>,
    /// The worlds that the program spawned: their tasks, and the directories of their captures.
    #[serde(default)]
    pub spawned: Vec<String>,
    /// Picoseconds of a tick of the trace's computing times.
    pub clock_ps: Exact,
    /// What a reader should know before anything else.
    pub warnings: Vec<String>,
    /// What the program did that a trace cannot hold.
    pub not_in_trace: Vec<String>,
}

impl Head {
    /// What its tasks are called together: ranks, unless some ran no program.
    pub fn task(&self) -> &'static str {
        if self.serving.is_empty() { "rank" } else { "task" }
    }
}

/// How long a captured run took, from the start of each rank on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    /// The latest return of `MPI_Init`.
    pub initialisation_ps: Exact,
    /// The longest `MPI_Init` less the shortest: since it returns nearly at once on all ranks, the time from the first start of a
    /// rank to the last. It belongs to no collective, and to no share of the run.
    pub launch_skew_ps: Exact,
    /// From the return of a rank's `MPI_Init` to its call of `MPI_Finalize`: the longest, if all ranks called it.
    pub span_ps: Option<Exact>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// How many ranks ran on it.
    pub ranks: u32,
}

/// Sums over a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Totals {
    /// Lines of the trace.
    pub records: Exact,
    /// Messages.
    pub messages: Exact,
    /// Their payload.
    pub bytes: Exact,
    /// Messages whose reception somebody waits for.
    pub awaited: Exact,
    /// Messages of a rank to itself.
    pub to_self: Exact,
    /// Local marks: waits for messages, and the ends of ranks.
    pub marks: Exact,
    /// Collective operations.
    pub collectives: Exact,
    /// Parts of collectives: one a member.
    pub collective_parts: Exact,
    /// Communicators.
    pub communicators: Exact,
    /// Computing time of all ranks together.
    pub computing_ps: Exact,
    /// The longest computing time of a rank: no replay is shorter.
    pub computing_max_ps: Exact,
    /// Records that wait for nothing, for a send, for a reception, for a collective.
    pub after: After,
}

/// Records by what they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct After {
    /// Nothing: the first of their ranks.
    pub nothing: Exact,
    /// The rank's own send or mark before.
    pub send: Exact,
    /// A message to the rank.
    pub reception: Exact,
    /// A collective.
    pub collective: Exact,
}

/// How large messages are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Sizes {
    /// The mean, rounded down; 0 without messages.
    pub mean: Exact,
    /// The smallest.
    pub min: Exact,
    /// Half of the messages are no larger (nearest rank).
    pub p50: Exact,
    /// Nine in ten are no larger.
    pub p90: Exact,
    /// Ninety-nine in a hundred are no larger.
    pub p99: Exact,
    /// The largest.
    pub max: Exact,
    /// How many different sizes there are, unless they were too many to count one by one: `common` is then empty, and
    /// quantiles are at most 1/128 above the exact value.
    pub different: Option<u64>,
    /// By powers of two; without the classes in which there are none.
    pub classes: Vec<SizeClass>,
    /// The most frequent sizes, the most frequent first.
    pub common: Vec<CommonSize>,
}

/// The messages of sizes between two powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeClass {
    /// The least size of the class.
    pub from: Exact,
    /// The greatest.
    pub to: Exact,
    /// The messages.
    #[serde(flatten)]
    pub amount: Amount,
}

/// A frequent size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommonSize {
    /// The size.
    pub size: Exact,
    /// The messages of that size.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Pairs {
    /// How many ordered pairs of ranks exchange messages, unless these are too many to count one by one.
    pub different: Option<u64>,
    /// The pairs with most bytes, those with most first; empty if they are too many to count.
    pub top: Vec<Pair>,
    /// How many ranks have so many receivers.
    pub partners: Vec<Partners>,
    /// The share of bytes that have as many bytes the other way, from 0 to 1.
    pub symmetry: Option<f64>,
    /// How evenly ranks spread their messages over receivers; none if pairs are too many to count.
    pub entropy: Option<Entropy>,
    /// The matrix.
    pub matrix: Matrix,
}

/// The entropy of the destinations of a rank's messages, in bits: that of 2^bits equal receivers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entropy {
    /// The least of a rank that sends.
    pub min: Bits,
    /// The mean over the ranks that send.
    pub mean: f64,
    /// The greatest.
    pub max: Bits,
}

/// The entropy of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bits {
    /// The first rank that has it.
    pub rank: u32,
    /// The entropy.
    pub bits: f64,
}

/// A pair of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The sender.
    pub src: u32,
    /// The receiver.
    pub dst: u32,
    /// What was sent.
    #[serde(flatten)]
    pub amount: Amount,
}

/// How many ranks send to so many others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Partners {
    /// Receivers of a rank.
    pub partners: u32,
    /// Ranks with so many.
    pub ranks: u32,
}

/// Messages between ranks whose numbers are that far apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distance {
    /// The least distance of the class.
    pub from: u32,
    /// The greatest.
    pub to: u32,
    /// The messages.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Messages by where their ends are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Locality {
    /// Within a host.
    pub same_host: Amount,
    /// Between hosts.
    pub between_hosts: Amount,
}

/// What each rank does: columns, a row a rank, or a group of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Ranks {
    /// Ranks that share a row; values are then sums.
    pub ranks_per_row: u32,
    /// Messages sent.
    pub sent_messages: Vec<Exact>,
    /// Bytes sent.
    pub sent_bytes: Vec<Exact>,
    /// Messages received.
    pub received_messages: Vec<Exact>,
    /// Bytes received.
    pub received_bytes: Vec<Exact>,
    /// Computing time.
    pub computing_ps: Vec<Exact>,
    /// Parts of collectives.
    pub collectives: Vec<Exact>,
    /// Local marks.
    pub marks: Vec<Exact>,
    /// The least of a rank's bytes sent, their mean, and so on: of the ranks that ran the program and were
    /// recorded, whatever shares a row.
    pub spread: Vec<Spread>,
}

/// How a measure differs between ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Which one: a column of [`Ranks`].
    pub measure: String,
    /// The least, and a rank that has it.
    pub min: OfRank,
    /// The mean over all ranks.
    pub mean: f64,
    /// The greatest, and a rank that has it.
    pub max: OfRank,
    /// The coefficient of variation: the standard deviation over the mean; 0 where the mean is.
    pub variation: f64,
}

/// Collective operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Collectives {
    /// By operation and size of the communicator; those with most bytes first.
    pub operations: Vec<Operation>,
    /// How many communicators have operations.
    pub different: u64,
    /// Those with most operations, those with most first.
    pub communicators: Vec<Communicator>,
}

/// An operation on communicators of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Its name, or its code if that means nothing.
    pub operation: String,
    /// Members of the communicators.
    pub members: u32,
    /// How many communicators.
    pub communicators: u64,
    /// How many operations: parts over members, rounded up.
    pub operations: Exact,
    /// Parts: one a member and operation.
    pub parts: Exact,
    /// Bytes that the members contribute, all together.
    pub sent_bytes: Exact,
    /// Bytes that they obtain.
    pub received_bytes: Exact,
}

/// A communicator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Communicator {
    /// Its id in the trace.
    pub id: u32,
    /// Members.
    pub members: u32,
    /// Collective operations on it.
    pub operations: Exact,
}

/// An MPI function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Its name.
    pub function: String,
    /// Records that come from it.
    pub records: Exact,
}

/// A phase of the program; a record counts for the innermost that it is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// How often a rank entered it, all ranks together.
    pub entries: Exact,
    /// Messages sent in it.
    pub messages: Exact,
    /// Their bytes.
    pub bytes: Exact,
    /// Parts of collectives.
    pub collectives: Exact,
    /// Computing time of all ranks.
    pub computing_ps: Exact,
    /// Messages by powers of two of their size.
    pub sizes: Vec<SizeClass>,
}

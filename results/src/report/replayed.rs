//! The part of a report's data that takes a replay: traffic over time, what ranks wait for, efficiency.

use super::measures::{Amount, Matrix, OfRank};
use crate::simulation::WaitsReport;
use crate::{ByState, Exact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a replay shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// Latency of the yardstick network.
    pub latency_ps: Exact,
    /// Its bandwidth.
    pub bandwidth_bits_per_s: u64,
    /// When the last rank finished.
    pub runtime_ps: Exact,
    /// The same on a network without latency and with unlimited bandwidth.
    pub ideal_runtime_ps: Exact,
    /// What the run time is spent on.
    pub efficiency: Option<Efficiency>,
    /// Messages on the network, by what they belong to, those of collectives included.
    pub kinds: Vec<OfKind>,
    /// Messages by when they start.
    pub over_time: OverTime,
    /// Bytes by when they start and who sends them.
    pub rank_time: RankTime,
    /// What ranks do, over time: rank-picoseconds in each bin.
    pub states: States,
    /// Messages under way, over time.
    pub in_flight: InFlight,
    /// What each rank does, in all.
    pub ranks: RankStates,
    /// Who waits for whom, and why.
    pub waits: WaitsReport,
    /// What collectives became.
    pub collectives: CollectiveTimes,
}

/// Parallel efficiency and its factors, as the POP project defines them. All from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Efficiency {
    /// Mean over greatest computing time of a rank.
    pub load_balance: f64,
    /// Greatest computing time of a rank over the ideal run time: what dependencies leave.
    pub serialisation: f64,
    /// Ideal run time over run time: what the network leaves.
    pub transfer: f64,
    /// Serialisation × transfer.
    pub communication: f64,
    /// Load balance × communication: mean computing time over run time.
    pub parallel: f64,
}

/// Messages of a kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfKind {
    /// `point-to-point`, or the operation.
    pub kind: String,
    /// How many, and their bytes.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Messages by when they start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverTime {
    /// Width of a bin.
    pub bin_ps: Exact,
    /// The kinds that occur.
    pub kinds: Vec<String>,
    /// Messages, a list a kind.
    pub messages: Vec<Vec<Exact>>,
    /// Bytes, a list a kind.
    pub bytes: Vec<Vec<Exact>>,
}

/// Bytes by when they start and who sends them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankTime {
    /// Ranks that share a row.
    pub ranks_per_row: u32,
    /// Rows.
    pub rows: u32,
    /// Width of a bin.
    pub bin_ps: Exact,
    /// Row by row.
    pub bytes: Vec<Exact>,
}

/// What ranks do, over time: rank-picoseconds in each bin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct States {
    /// Width of a bin.
    pub bin_ps: Exact,
    /// Until they finish; that of waits for sends is empty, as they are complete at once.
    #[serde(flatten)]
    pub times: ByState<Vec<Exact>>,
    /// Of computing, that until `MPI_Init` returned, where the trace tells it.
    pub initialising_ps: Vec<Exact>,
    /// Finished, while others are not.
    pub finished_ps: Vec<Exact>,
}

/// Messages under way, over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// Width of a bin.
    pub bin_ps: Exact,
    /// The mean over each bin.
    pub mean: Vec<f64>,
    /// The most at a time in each bin.
    pub max: Vec<Exact>,
    /// The most point-to-point messages of one sender, and a rank that has them.
    pub of_sender_max: OfRank,
    /// Point-to-point messages by how many of their sender are under way when they start, themselves included: by powers of two.
    pub of_sender: Vec<UnderWay>,
}

/// Messages that start while so many of their sender are under way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnderWay {
    /// The least number of the class.
    pub from: Exact,
    /// The greatest.
    pub to: Exact,
    /// Messages.
    pub messages: Exact,
}

/// What each rank does: a row a rank, or a group of ranks whose times are added up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankStates {
    /// Ranks that share a row.
    pub ranks_per_row: u32,
    /// Until it finishes; lists that are not known are empty.
    #[serde(flatten)]
    pub times: ByState<Vec<Exact>>,
    /// Of computing, that until `MPI_Init` returned; empty if that is not known.
    pub initialising_ps: Vec<Exact>,
    /// Finished, while others are not.
    pub finished_ps: Vec<Exact>,
}

/// What collectives became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectiveTimes {
    /// Who sends to whom: their messages.
    pub matrix: Matrix,
    /// How long they take, by operation and size of the communicator; those that take longest first.
    pub operations: Vec<OperationTimes>,
}

/// How long the operations of a kind take, on communicators of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationTimes {
    /// Its name, or its code if that means nothing.
    pub operation: String,
    /// Members of the communicators.
    pub members: u32,
    /// Operations.
    pub operations: Exact,
    /// From when members enter until their parts are complete, all members and operations together.
    pub inside_ps: Exact,
    /// That as a share of all ranks' run time. Where ranks go on beside, they may compute meanwhile.
    pub share: f64,
    /// From when the first member enters until the last one does: the mean over the operations, rounded down.
    pub entry_gap_mean_ps: Exact,
    /// The longest.
    pub entry_gap_max_ps: Exact,
}

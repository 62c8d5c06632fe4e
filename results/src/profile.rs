//! The profile of a capture: what `vef profile` shows. Times are in nanoseconds (`_ns`).

use crate::report::{Files, Spent};
use crate::schema::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vef_format::account::ByPart;

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: ProfileSchema,
    /// Number of ranks.
    pub tasks: u32,
    /// How many of them were not recorded: of the others are all other values.
    #[serde(default)]
    pub unrecorded: u32,
    /// Time in MPI of all ranks together, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time from the end of `MPI_Init` to the start of `MPI_Finalize` of all ranks together, ns.
    pub wall_ns: u64,
    /// The same of all threads that make calls, of which `mpi_ns` is a share, ns.
    pub thread_ns: u64,
    /// The parts of that time, by function and rank, as in a report; `null` for a capture without a call table.
    pub spent: Option<Spent>,
    /// What the ranks did with files, as in a report but with all files; `null` without any.
    pub files: Option<Files>,
    /// By phase of the program, the longest first; the name of time outside of all phases is empty. None without phases.
    pub phases: Vec<Phase>,
    /// By function, the one that took longest first.
    pub calls: Vec<Function>,
    /// Receives of messages whose send was not recorded: their bytes are those of the buffer.
    #[serde(default)]
    pub buffers: u64,
    /// By rank, in order.
    pub ranks: Vec<Rank>,
    /// Messages by sender and receiver, the pair with most bytes first.
    pub pairs: Vec<Pair>,
}

schema!(ProfileSchema of Profile: "vef-profile/1");

/// A function in all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    /// Its C name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// Time of all calls, of polls with what is short between failed ones (`docs/time.md`), ns.
    pub ns: u64,
    /// Time of the rank that it took longest, ns.
    pub longest_rank_ns: u64,
    /// Bytes sent and received in messages, and of the buffers given to collectives and other calls.
    pub bytes: u64,
    /// How many returned an error.
    pub errors: u64,
    /// Whether a VEF trace has records for it; of accesses to files, only with `vef mix --io-servers`.
    pub representable: bool,
}

/// One rank; one that was not recorded has zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Its calls of MPI.
    pub calls: u64,
    /// Time in them, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time from the end of `MPI_Init` to the start of `MPI_Finalize`, ns.
    pub wall_ns: u64,
    /// Number of threads that make calls.
    pub threads: u32,
    /// Messages that it sent.
    pub messages: u64,
    /// Bytes that it sent in them.
    pub bytes: u64,
    /// One-sided transfers that it made (`MPI_Put`, `MPI_Get` …), which are not among the messages.
    #[serde(default)]
    pub transfers: u64,
}

/// A phase of the program; a call counts for the innermost one that it is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// How often a rank entered it, all ranks together.
    pub entries: u64,
    /// Time in it, of all threads of all ranks, ns.
    pub ns: u64,
    /// The parts of that time, of recorded calls, ns.
    pub times_ns: ByPart,
    /// The longest time of a rank in it.
    pub max_ns: u64,
    /// That rank.
    pub max_rank: u32,
}

/// Messages from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The sender's rank in `MPI_COMM_WORLD`.
    pub from: u32,
    /// The receiver's.
    pub to: u32,
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

//! The result of `vef check`: what a trace holds, and what is wrong in it. Times are in picoseconds (`_ps`), amounts of data in bytes.

use crate::report::After;
use crate::schema::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use vef_format::validate::{Change, Kind, Mended, OperationTally, Problem};

/// What `vef check --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: CheckSchema,
    /// The trace, as it was named.
    pub trace: PathBuf,
    /// Whether every record replays.
    pub complete: bool,
    /// Why there is nothing else.
    pub error: Option<String>,
    /// Of a trace of another tool: which.
    pub format: Option<String>,
    /// Of a trace of another tool: what is wrong in it.
    pub findings: Option<Vec<Finding>>,
    /// All else, unless the trace cannot be read.
    #[serde(flatten)]
    pub examined: Option<Examined>,
}

schema!(CheckSchema of Check: "vef-check/1");

/// A kind of fault in a trace of another tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// Whether an import refuses it. Otherwise it leaves out what is wrong, unless it is strict.
    pub is_error: bool,
    /// How often.
    pub count: u64,
    /// The first ones, with their places.
    pub first: Vec<String>,
}

/// What a trace holds, and what is wrong in it; with `--repair`, in the repaired trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Examined {
    /// Tasks.
    pub tasks: u64,
    /// Messages: point-to-point lines that are not local marks.
    pub messages: u64,
    /// Messages whose reception a record waits for.
    pub awaited: u64,
    /// Messages of a task to itself.
    pub to_self: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Local marks.
    pub marks: u64,
    /// Communicators.
    pub communicators: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Lines of collective operations: one for each member.
    pub local_collectives: u64,
    /// Collective operations by name, or by code if the name is unknown.
    pub operations: BTreeMap<String, OperationTally>,
    /// Records by what they wait for.
    pub dependencies: After,
    /// The longest computing time of a task: no replay is shorter.
    pub computing_ps: u64,
    /// The run time on the yardstick network, if the trace could be replayed.
    pub runtime_ps: Option<u64>,
    /// The replay on that network.
    pub yardstick: Yardstick,
    /// What the program did that a trace cannot hold.
    pub not_in_the_trace: Vec<String>,
    /// Number of problems that make a replay wrong or incomplete.
    pub errors: u64,
    /// Number of problems that a replay tolerates.
    pub warnings: u64,
    /// Tasks that cannot reach their last record.
    pub stuck_tasks: u64,
    /// Number of problems of each kind.
    pub kinds: BTreeMap<Kind, u64>,
    /// The first problems of each kind, by line.
    pub problems: Vec<Problem>,
    /// With `--repair`: what was changed.
    pub repair: Option<Repair>,
}

/// The replay on the yardstick network; `null`: the trace could not be replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Yardstick {
    /// Latency of the network.
    pub latency_ps: u64,
    /// Its bandwidth.
    pub bits_per_second: u64,
    /// Which part of the run was replayed, if not all of it.
    pub part: Option<String>,
    /// Messages, those of collectives included.
    pub messages: Option<u64>,
    /// Bytes of these messages.
    pub bytes: Option<u64>,
    /// Collectives for which the trace has only sums, which were split evenly over the members.
    pub collectives_split_evenly: Option<u64>,
    /// The deadlock, if the replay did not finish.
    pub stuck: Option<String>,
}

/// The repair of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repair {
    /// The repaired trace.
    pub output: Option<PathBuf>,
    /// Whether it was written: only if it is valid.
    pub written: bool,
    /// Number of changes, by kind.
    pub kinds: BTreeMap<Mended, u64>,
    /// The first changes of each kind.
    pub changes: Vec<Change>,
}

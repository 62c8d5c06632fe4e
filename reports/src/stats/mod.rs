//! What a trace holds, added up in one pass without a replay.

mod bounded;
mod collector;
mod pairs;
mod read;
mod sizes;
mod tables;

pub use bounded::Volume;
pub use collector::{CollectiveTally, PhaseTally, TaskTally, size_class};
pub use pairs::{DISTANCES, MATRIX, Pair, Sums, distance_class};
pub use read::{Progress, StatsError};
pub use sizes::SizeCounts;

use collector::Collector;
use std::collections::BTreeMap;
use std::path::Path;
use vef_format::ids::CommId;
use vef_format::operation::OpCodes;
use vef_format::record::Header;

/// What a trace holds.
#[derive(Debug, Clone)]
pub struct Stats {
    /// The trace's header.
    pub header: Header,
    /// Whether it is a container.
    pub is_container: bool,
    /// What its codes of operations mean.
    pub op_codes: OpCodes,
    /// Where it comes from, if it is a container.
    pub origin: Vec<(String, String)>,
    /// The host of each task, if it is a container that says so.
    pub hosts: Option<Vec<String>>,
    /// Messages: sums over pairs of ranks.
    pub pairs: Sums,
    /// Messages by sender and receiver, unless there are too many different pairs.
    pub exact_pairs: Option<Vec<Pair>>,
    /// Messages by size.
    pub sizes: SizeCounts,
    /// The rest, by task.
    pub tasks: Vec<TaskTally>,
    /// Collectives by communicator and code of the operation.
    pub collectives: BTreeMap<(CommId, u16), CollectiveTally>,
    /// Sizes of communicators.
    pub communicators: BTreeMap<CommId, u32>,
    /// Records by what they wait for: nothing, a send, a reception, a collective.
    pub dependencies: [u64; 4],
    /// Messages whose reception somebody waits for.
    pub awaited: u64,
    /// Messages of a task to itself.
    pub to_self: u64,
    /// What happened in the program's phases, by name.
    pub phases: BTreeMap<String, PhaseTally>,
    /// Records by the MPI function behind them, where the trace says so.
    pub calls: BTreeMap<String, u64>,
}

impl Stats {
    /// Adds up the trace in the file `path`, text or container, with all threads of the present pool.
    ///
    /// # Errors
    /// The first that is met in the file.
    pub fn of_trace(path: &Path, progress: Progress<'_>) -> Result<Self, StatsError> {
        let read::Pass { header, op_codes, origin, hosts, sums, is_container } = read::read(path, progress)?;
        let Collector {
            pairs,
            sizes,
            tasks,
            collectives,
            dependencies,
            awaited,
            to_self,
            phases,
            calls,
            communicators,
        } = sums;
        let (pairs, exact_pairs) = pairs.finish();
        Ok(Self {
            header,
            is_container,
            op_codes,
            origin,
            hosts,
            pairs,
            exact_pairs,
            sizes: sizes.finish(),
            tasks,
            collectives: collectives.into_iter().collect(),
            communicators: communicators.into_iter().collect(),
            dependencies,
            awaited,
            to_self,
            phases,
            calls,
        })
    }
}

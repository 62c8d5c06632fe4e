//! Statistics of a trace, computed in one pass without a replay.

mod accounts;
mod bounded;
mod collector;
mod files;
mod pairs;
mod phases;
mod read;
mod recent;
mod sizes;
mod tables;

pub(crate) use accounts::Adding;
pub use accounts::{Accounts, InAll, OfFunction};
pub use bounded::Volume;
pub use collector::{CollectiveTally, TaskTally};
pub use files::Files;
pub use pairs::{DISTANCES, MATRIX, Pair, Sums};
pub use phases::PhaseTally;
pub use read::{Progress, StatsError};
pub use sizes::SizeCounts;

use replay::Extent;
use std::collections::BTreeMap;
use std::path::Path;
use vef_format::container::{About, Span};
use vef_format::ids::CommId;
use vef_format::operation::OpCode;
use vef_format::raw::{AWAITED, DEPENDENCY, KIND, MESSAGE};
use vef_format::record::Header;

/// Statistics of a trace.
#[derive(Debug, Clone)]
pub struct Stats {
    /// The trace's header.
    pub header: Header,
    /// Whether it is a container.
    pub is_container: bool,
    /// The operations of its codes and, of a container, its origin.
    pub about: About,
    /// The host of each task, if the trace is a container with hosts.
    pub hosts: Option<Vec<String>>,
    /// When each task could use MPI as captured, if the trace is a container that tells it.
    pub spans: Option<Vec<Span>>,
    /// The tasks that ran the program and were recorded, ascending: of these are means and shares. Not among them are storage servers, network
    /// interfaces, and what `vef run --only-ranks` left out.
    pub recorded: Vec<u32>,
    /// How the tasks spent the captured run, if the trace is a container that tells it.
    pub accounts: Option<Accounts>,
    /// What the tasks did with files, as far as the trace tells it.
    pub files: Files,
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
    /// Messages for which their receiver waits.
    pub awaited: u64,
    /// Messages of a task to itself.
    pub to_self: u64,
    /// The program's phases, by name.
    pub phases: BTreeMap<String, PhaseTally>,
    /// Records by the MPI function behind them; of containers.
    pub calls: BTreeMap<String, u64>,
    /// Which part of the run this is, if not all of it.
    pub part: Option<String>,
}

impl Stats {
    /// Adds up the trace in the file `path`, text or container, with all threads of the present pool. The time before each
    /// task's end of `MPI_Init` is left out where the trace records it, unless the extent begins with the launch. Of a part of the
    /// run, nothing is known as captured.
    ///
    /// # Errors
    /// The first that is met in the file.
    pub fn of_trace(path: &Path, extent: &Extent, progress: Progress<'_>) -> Result<Self, StatsError> {
        let read::Pass { header, is_container, about, hosts, spans, recorded, accounts, files, sums } =
            read::read(path, extent, progress)?;
        let dependencies = std::array::from_fn(|code| sums.tagged(DEPENDENCY, code as u8));
        let awaited = sums.tagged(KIND | AWAITED, MESSAGE | AWAITED);
        let (pairs, exact_pairs) = sums.pairs.finish();
        Ok(Self {
            header,
            is_container,
            about,
            hosts,
            spans,
            recorded,
            accounts,
            files,
            dependencies,
            awaited,
            to_self: pairs.by_distance[0].messages,
            pairs,
            exact_pairs,
            sizes: sums.sizes.finish(),
            tasks: sums.tasks,
            collectives: sums.collectives.into_iter().collect(),
            communicators: sums.communicators.into_iter().collect(),
            phases: sums.phases,
            calls: sums.calls,
            part: extent.part.as_ref().map(|part| part.to_string()),
        })
    }

    /// How many of the tasks, the first ones, ran the program: all but storage servers and network interfaces.
    pub fn program_tasks(&self) -> u32 {
        self.about.program_tasks(self.header.tasks)
    }

    /// The name of the operation that a code means.
    pub fn operation_name(&self, code: u16) -> String {
        match self.about.op_codes.operation(OpCode(code)) {
            Some(operation) => operation.to_string(),
            None => format!("code {code}"),
        }
    }
}

//! A job in progress: its source, its time scale, and what is known of its lines and collectives.

use crate::job::{Computing, Scale};
use crate::ledger::Ledger;
use crate::progress::Progress;
use crate::source::Feed;
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::units::{Picos, Ticks};

/// A job in progress.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) source: Feed,
    pub(crate) scale: Scale,
    /// Computing times that replace the trace's.
    pub(crate) computing: Option<Box<dyn Computing>>,
    /// The first of its tasks, counted over all jobs.
    pub(crate) first_task: u32,
    pub(crate) tasks: u32,
    /// Computing that is left out in front of tasks' first records, by rank.
    pub(crate) skipped: Vec<Ticks>,
    pub(crate) lines: Ledger,
    /// Which collectives were entered and are over.
    pub(crate) operations: Progress,
    /// The communicators' places in the table of groups.
    pub(crate) groups: HashMap<CommId, u32>,
    /// The open collectives' places in the table.
    pub(crate) open: HashMap<CollectiveId, u32>,
    /// Messages from other partitions, of collectives that are not open here: sender and receiver, ranks of the communicator.
    pub(crate) early: HashMap<CollectiveId, Vec<(u32, u32)>>,
}

impl Running {
    /// So much computing of a task later.
    #[inline(always)]
    pub(crate) fn after(&self, at: Picos, computing: Ticks, task: Rank) -> Option<Picos> {
        self.scale.after(at, computing, task)
    }
}

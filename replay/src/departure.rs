//! A message that starts, as its sender knows it.

use crate::message::{Kind, Met};
use serde::{Deserialize, Serialize};
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Picos};

/// A message that starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Departure {
    pub(crate) ready: Picos,
    pub(crate) start: Picos,
    pub(crate) bytes: Bytes,
    pub(crate) kind: Kind,
    pub(crate) job: u32,
    pub(crate) src: Rank,
    pub(crate) dst: Rank,
    /// The job's first task.
    pub(crate) first_task: u32,
    /// Number of its sender's record, or [`UNKNOWN`](crate::live::UNKNOWN).
    pub(crate) record: u32,
}

impl Departure {
    /// Its sender, counted over all jobs.
    pub(crate) fn sender(&self) -> u32 {
        self.first_task + self.src.0
    }

    /// Of a message that leaves late.
    pub(crate) fn met(&self, line: Option<u64>) -> Met {
        let &Self { job, src, dst, ready, start: at, .. } = self;
        Met { job, src, dst, line, ready, at }
    }
}

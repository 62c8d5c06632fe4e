//! Jobs that arrived at a batch system: how long each waited and ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The jobs of a list of arrivals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalsReport {
    /// The traces that they ran, by number.
    pub traces: Vec<String>,
    /// Mean time from submission to start, rounded down.
    pub wait_mean_ps: u64,
    /// The longest of these times.
    pub wait_max_ps: u64,
    /// Mean slowdown of the jobs that have one.
    pub slowdown_mean: f64,
    /// The largest slowdown.
    pub slowdown_max: f64,
    /// The share of all nodes that jobs had, from the first submission to the end of the last job.
    pub utilisation: f64,
    /// The jobs, by submission.
    pub jobs: Vec<ArrivedJob>,
}

/// A job that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivedJob {
    /// Its number in the list.
    pub job: u64,
    /// Which trace it ran.
    pub trace: u32,
    /// Nodes that it had.
    pub nodes: u32,
    /// When it was submitted.
    pub submit_ps: u64,
    /// From then to its start.
    pub wait_ps: u64,
    /// From its start to the end of its last task.
    pub runtime_ps: u64,
}

impl ArrivedJob {
    /// Wait and run time over the run time; none of a job that takes no time.
    pub fn slowdown(&self) -> Option<f64> {
        (self.runtime_ps > 0).then(|| (self.wait_ps as f64 + self.runtime_ps as f64) / self.runtime_ps as f64)
    }
}

impl ArrivalsReport {
    /// Mean time from submission to the end of the last task, rounded down.
    pub fn turnaround_mean_ps(&self) -> u64 {
        let times = self.jobs.iter().map(|job| u128::from(job.wait_ps) + u128::from(job.runtime_ps));
        (times.sum::<u128>() / (self.jobs.len() as u128).max(1)) as u64
    }

    /// Of jobs that had nodes for so many picoseconds in sum, of so many.
    pub fn new(jobs: Vec<ArrivedJob>, held: u128, of: u128) -> Self {
        let waits: u128 = jobs.iter().map(|job| u128::from(job.wait_ps)).sum();
        let slowdowns: Vec<f64> = jobs.iter().filter_map(ArrivedJob::slowdown).collect();
        Self {
            traces: Vec::new(),
            wait_mean_ps: (waits / (jobs.len() as u128).max(1)) as u64,
            wait_max_ps: jobs.iter().map(|job| job.wait_ps).max().unwrap_or(0),
            slowdown_mean: slowdowns.iter().sum::<f64>() / slowdowns.len().max(1) as f64,
            slowdown_max: slowdowns.iter().copied().fold(0.0, f64::max),
            utilisation: if of == 0 { 0.0 } else { held as f64 / of as f64 },
            jobs,
        }
    }
}

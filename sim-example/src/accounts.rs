//! The time of each task by state: computing, or waiting, and for what.
//!
//! From the start of its job to its end a task is always in one of these states, so the times add up to its
//! finishing time.

use replay::{Engine, Started};
use serde::Serialize;
use vef_format::raw::DEPENDENCY;
use vef_format::units::Picos;

/// The time of a task by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskTimes {
    /// Computing: the captured time between records, times the factor of the job.
    #[serde(rename = "computing_ps")]
    pub computing: Picos,
    /// Waiting for the completion of a send.
    #[serde(rename = "sending_ps")]
    pub sending: Picos,
    /// Waiting for a message.
    #[serde(rename = "waiting_ps")]
    pub waiting: Picos,
    /// Waiting in a collective.
    #[serde(rename = "collectives_ps")]
    pub collectives: Picos,
}

impl TaskTimes {
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            computing: self.computing.saturating_add(other.computing),
            sending: self.sending.saturating_add(other.sending),
            waiting: self.waiting.saturating_add(other.waiting),
            collectives: self.collectives.saturating_add(other.collectives),
        }
    }

    /// The sum of all states.
    pub fn total(&self) -> Picos {
        [self.computing, self.sending, self.waiting, self.collectives]
            .into_iter()
            .fold(Picos::ZERO, Picos::saturating_add)
    }
}

/// The times of all tasks, updated during a run.
#[derive(Debug)]
pub(crate) struct Accounts {
    tasks: Vec<Account>,
    /// First task of each job.
    first_tasks: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    /// Start of the last record.
    at: Picos,
    times: TaskTimes,
}

impl Accounts {
    /// For an engine that has not begun.
    pub(crate) fn new(engine: &Engine) -> Self {
        let (mut first_tasks, mut tasks) = (Vec::new(), 0);
        for job in 0..engine.jobs() {
            first_tasks.push(tasks);
            tasks += engine.tasks(job);
        }
        let account =
            |task| Account { at: engine.reached(task).unwrap_or_default(), times: TaskTimes::default() };
        Self { tasks: (0..tasks).map(account).collect(), first_tasks }
    }

    /// Takes over the tasks that another partition has.
    pub(crate) fn adopt(&mut self, other: &Self, has_task: impl Fn(u32, u32) -> bool) {
        for (job, &first) in (0..).zip(&self.first_tasks) {
            let end = self.first_tasks.get(job as usize + 1).map_or(self.tasks.len(), |&end| end as usize);
            for task in first as usize..end {
                if has_task(job, task as u32 - first) {
                    self.tasks[task] = other.tasks[task];
                }
            }
        }
    }

    /// The number of a task over all jobs.
    #[inline]
    pub(crate) fn number(&self, job: u32, task: u32) -> u32 {
        self.first_tasks[job as usize] + task
    }

    /// First task of each job.
    pub(crate) fn first_tasks(&self) -> &[u32] {
        &self.first_tasks
    }

    /// When the last record of a task started.
    #[inline]
    pub(crate) fn reached(&self, task: u32) -> Picos {
        self.tasks[task as usize].at
    }

    /// When the last record of each task started.
    pub(crate) fn all_reached(&self) -> Vec<Picos> {
        self.tasks.iter().map(|task| task.at).collect()
    }

    /// Adds the start of a record.
    #[inline]
    pub(crate) fn started(&mut self, task: u32, started: &Started) {
        let Account { at, times } = &mut self.tasks[task as usize];
        let waited = started.released.saturating_sub(*at);
        times.computing.0 += started.at.0 - started.released.0;
        match started.record.map_or(1, |record| record.tag & DEPENDENCY) {
            // Without a dependency the task does not wait, so nothing is added.
            0 | 1 => times.sending.0 += waited.0,
            2 => times.waiting.0 += waited.0,
            _ => times.collectives.0 += waited.0,
        }
        *at = started.at;
    }

    /// The times of the tasks of a job with these finishing times.
    pub(crate) fn of_job(&self, job: u32, finish: &[Picos]) -> Vec<TaskTimes> {
        let first = self.first_tasks[job as usize] as usize;
        let close = |(account, finish): (&Account, &Picos)| {
            let mut times = account.times;
            // After its last record a task can only wait for collectives.
            times.collectives.0 += finish.saturating_sub(account.at).0;
            times
        };
        self.tasks[first..].iter().zip(finish).map(close).collect()
    }
}

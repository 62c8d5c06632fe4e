//! The time of each task by state: computing, or waiting, and for what.
//!
//! From the start of its job to its end a task is always in one of these states, so the times add up to its
//! finishing time.

use crate::engine::Engine;
use crate::message::Started;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use vef_format::state::State;
use vef_format::units::Picos;

/// The times of all tasks, for a simulator that passes what [`Sink::started`](crate::Sink::started) is told to [`Accounts::started`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Accounts {
    tasks: Vec<Account>,
    /// First task of each job.
    first_tasks: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Account {
    /// Start of the last record.
    at: Picos,
    times: [u64; State::ALL.len()],
}

impl Accounts {
    /// For an engine that has not begun.
    pub fn new(engine: &Engine) -> Self {
        let (mut first_tasks, mut tasks) = (Vec::new(), 0);
        for job in 0..engine.jobs() {
            first_tasks.push(tasks);
            tasks += engine.tasks(job);
        }
        let account =
            |task| Account { at: engine.reached(task).unwrap_or_default(), times: Default::default() };
        Self { tasks: (0..tasks).map(account).collect(), first_tasks }
    }

    /// Takes over the tasks that another partition has.
    pub fn adopt(&mut self, other: &Self, has_task: impl Fn(u32, u32) -> bool) {
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
    pub fn number(&self, job: u32, task: u32) -> u32 {
        self.first_tasks[job as usize] + task
    }

    /// First task of each job.
    pub fn first_tasks(&self) -> &[u32] {
        &self.first_tasks
    }

    /// When the last record of a task started.
    #[inline]
    pub fn reached(&self, task: u32) -> Picos {
        self.tasks[task as usize].at
    }

    /// When the last record of each task started.
    pub fn all_reached(&self) -> Vec<Picos> {
        self.tasks.iter().map(|task| task.at).collect()
    }

    /// The tasks of a job begin again at `at`.
    pub fn restart(&mut self, job: u32, at: Picos) {
        let first = self.first_tasks[job as usize] as usize;
        let end = self.first_tasks.get(job as usize + 1).map_or(self.tasks.len(), |&end| end as usize);
        self.tasks[first..end].fill(Account { at, times: Default::default() });
    }

    /// For [`Sink::opened`](crate::Sink::opened): an instance has these tasks from `at` on.
    pub fn opened(&mut self, job: u32, tasks: Range<u32>, at: Picos) {
        let is_known = self.first_tasks.get(job as usize + 1).is_some_and(|next| *next == tasks.end);
        if !is_known {
            // What was behind it is closed.
            self.first_tasks.truncate(job as usize);
            self.first_tasks.push(tasks.start);
            self.tasks.truncate(tasks.start as usize);
            self.tasks.resize(tasks.end as usize, Account { at, times: Default::default() });
        }
        self.restart(job, at);
    }

    /// Adds the start of a record.
    #[inline]
    pub fn started(&mut self, task: u32, started: &Started) {
        let Account { at, times } = &mut self.tasks[task as usize];
        let state = State::of_dependency(started.dependency);
        let waited = started.released.saturating_sub(*at);
        times[State::Computing as usize] += started.at.0 - started.released.0;
        times[state as usize] += waited.0;
        *at = started.at;
    }

    /// The times in picoseconds of the tasks of a job with these finishing times, by rank and, in the order of [`State::ALL`], by state.
    pub fn of_job(&self, job: u32, finish: &[Picos]) -> Vec<[u64; State::ALL.len()]> {
        let first = self.first_tasks.get(job as usize).map_or(self.tasks.len(), |&first| first as usize);
        let close = |(account, finish): (&Account, &Picos)| {
            let mut times = account.times;
            // After its last record a task can only wait for collectives.
            times[State::Collective as usize] += finish.saturating_sub(account.at).0;
            times
        };
        self.tasks[first..].iter().zip(finish).map(close).collect()
    }

    /// The same of a run in progress: of a task that has not finished, up to the start of its last record.
    pub fn so_far(&self, engine: &Engine, job: u32) -> Vec<[u64; State::ALL.len()]> {
        let first = self.first_tasks.get(job as usize).map_or(self.tasks.len(), |&first| first as usize);
        let finish = |(task, account): (crate::TaskProgress, &Account)| task.finished.unwrap_or(account.at);
        let finish: Vec<Picos> = engine.progress(job).zip(&self.tasks[first..]).map(finish).collect();
        self.of_job(job, &finish)
    }
}

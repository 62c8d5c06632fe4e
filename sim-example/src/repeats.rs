//! Jobs that run again when they are over, and jobs that begin when others are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use replay::{Accounts, Engine};
use results::ByState;
use results::simulation::RunsReport;
use vef_format::units::Picos;

/// How often a job runs, each time when the run before is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// So many times, at least once.
    Times(u32),
    /// Again until this job, by number, has run as often as it is to.
    Until(u32),
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Times(1)
    }
}

/// What a job did in its first run.
#[derive(Debug)]
pub(crate) struct FirstRun {
    /// When it began.
    pub(crate) start: Picos,
    /// End of each task.
    pub(crate) finish: Vec<Picos>,
    /// Times of each task by state.
    pub(crate) times: Vec<ByState<u64>>,
}

/// The runs of all jobs.
#[derive(Debug)]
pub(crate) struct Repeats {
    jobs: Vec<Runs>,
    /// When jobs begin again, if they then still are to.
    again: BinaryHeap<Reverse<(Picos, u32)>>,
}

#[derive(Debug)]
struct Runs {
    repeat: Repeat,
    /// The job after which it begins.
    after: Option<u32>,
    begun: bool,
    /// Of the last run.
    start: Picos,
    /// When the last one of the runs was over, once no other follows.
    end: Option<Picos>,
    first: Option<FirstRun>,
    runs: u64,
    min: Picos,
    max: Picos,
    sum: u128,
}

impl Repeats {
    /// Of jobs that run so often, with their starts and the jobs after which they begin; `None` if each runs once, and after none.
    pub(crate) fn new(jobs: &[(Repeat, Picos, Option<u32>)]) -> Option<Box<Self>> {
        let runs = |&(repeat, start, after): &(Repeat, Picos, Option<u32>)| Runs {
            repeat,
            after,
            begun: after.is_none(),
            start,
            end: None,
            first: None,
            runs: 0,
            min: Picos::MAX,
            max: Picos::ZERO,
            sum: 0,
        };
        jobs.iter()
            .any(|(repeat, _, after)| *repeat != Repeat::default() || after.is_some())
            .then(|| Box::new(Self { jobs: jobs.iter().map(runs).collect(), again: BinaryHeap::new() }))
    }

    /// Takes note of the jobs that are over, `now`.
    pub(crate) fn note(&mut self, engine: &Engine, accounts: &Accounts, over: &[u32], now: Picos) {
        let mut ended = Vec::new();
        for &job in over {
            let runs = &mut self.jobs[job as usize];
            let finish: Vec<Picos> = engine.progress(job).filter_map(|task| task.finished).collect();
            let last = finish.iter().copied().max().unwrap_or(runs.start);
            let length = Picos(last.0.saturating_sub(runs.start.0));
            // A message for which no task waits may arrive later.
            let end = last.max(now);
            runs.first.get_or_insert_with(|| FirstRun {
                start: runs.start,
                times: accounts.of_job(job, &finish).into_iter().map(ByState).collect(),
                finish,
            });
            runs.runs += 1;
            (runs.min, runs.max) = (runs.min.min(length), runs.max.max(length));
            runs.sum += u128::from(length.0);
            let is_last = match runs.repeat {
                Repeat::Times(times) => runs.runs >= times.into(),
                // A run that takes no time would be repeated for ever.
                Repeat::Until(_) => end == runs.start,
            };
            match is_last {
                true => ended.push((job, end)),
                false => self.again.push(Reverse((end, job))),
            }
        }
        ended.into_iter().for_each(|(job, at)| self.end(job, at));
    }

    /// A job does not run any more: others begin.
    fn end(&mut self, job: u32, at: Picos) {
        self.jobs[job as usize].end = Some(at);
        for (other, runs) in (0..).zip(&self.jobs) {
            if runs.after == Some(job) {
                self.again.push(Reverse((at.saturating_add(runs.start), other)));
            }
        }
    }

    /// Whether a job that has not ended never will.
    fn is_stuck(&self, engine: &Engine, job: u32) -> bool {
        let runs = &self.jobs[job as usize];
        if runs.end.is_some() || self.again.iter().any(|Reverse((_, begins))| *begins == job) {
            return false;
        }
        match runs.after {
            Some(before) if !runs.begun => self.is_stuck(engine, before),
            _ => engine.is_stalled(job),
        }
    }

    /// When a job begins again next.
    pub(crate) fn next(&self) -> Option<Picos> {
        self.again.peek().map(|Reverse((at, _))| *at)
    }

    /// The job that is to begin again next, if it still is to when all that happens up to then is known; it then counts as begun.
    pub(crate) fn begin(&mut self, engine: &Engine, accounts: &mut Accounts) -> Option<(u32, Picos)> {
        let Reverse((at, job)) = self.again.pop()?;
        if let Repeat::Until(other) = self.jobs[job as usize].repeat {
            let target = &self.jobs[other as usize];
            let is_done = target.end.is_some_and(|end| end <= at);
            if self.jobs[job as usize].begun && (is_done || self.is_stuck(engine, other)) {
                self.end(job, at);
                return None;
            }
        }
        let runs = &mut self.jobs[job as usize];
        (runs.start, runs.begun) = (at, true);
        accounts.restart(job, at);
        Some((job, at))
    }

    /// What a job did in its first run, if it was over.
    pub(crate) fn first(&self, job: u32) -> Option<&FirstRun> {
        self.jobs[job as usize].first.as_ref()
    }

    /// The runs of a job.
    pub(crate) fn report(&self, job: u32) -> RunsReport {
        let &Runs { runs, min, max, sum, .. } = &self.jobs[job as usize];
        let mean = sum.checked_div(runs.into()).unwrap_or_default() as u64;
        RunsReport { runs, min_ps: min.0, mean_ps: mean, max_ps: max.0 }
    }
}

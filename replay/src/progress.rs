//! How far a replay has come: what an engine says of itself between calls.

use crate::engine::Engine;
use crate::message::{LiveId, Started};
use crate::options::SendCompletion;
use crate::part::{Filter, LeftOut, Selection};
use crate::running::Running;
use crate::sequence::{Sequence, Wait};
use crate::stats::Stats;
use crate::task::not_started;
use std::ops::Range;
use vef_format::units::Picos;

/// How far everything has come.
impl Engine {
    /// Whether every record has been replayed and every message delivered.
    pub fn is_complete(&self) -> bool {
        self.begun && self.unfinished == 0 && self.collectives.unfinished == 0 && self.live() == 0
    }

    /// Whether all tasks of a job have finished, and none of its messages is under way.
    pub fn is_over(&self, job: u32) -> bool {
        self.jobs.get(job as usize).is_some_and(Running::is_over)
    }

    /// Messages that have started and are not delivered.
    pub fn live(&self) -> u64 {
        self.live.stats.live()
    }

    /// Whether a message of that id has started and is not delivered.
    pub(crate) fn is_live(&self, id: LiveId) -> bool {
        self.live.get(id).is_some()
    }

    /// Counts of what was done so far.
    pub fn stats(&self) -> &Stats {
        &self.live.stats
    }

    /// When sends are complete for their senders.
    pub fn send_completion(&self) -> SendCompletion {
        self.live.send_completion
    }

    /// Number of jobs, with those that were opened ([`Engine::open`]).
    pub fn jobs(&self) -> u32 {
        self.jobs.len() as u32
    }

    /// Number of tasks of a job; 0 for a job that does not exist.
    pub fn tasks(&self, job: u32) -> u32 {
        self.jobs.get(job as usize).map_or(0, |job| job.tasks)
    }

    /// How many of them, the first ones, ran the program ([`Job::program_tasks`](crate::Job::program_tasks)).
    pub fn program_tasks(&self, job: u32) -> u32 {
        self.jobs.get(job as usize).map_or(0, |job| job.program_tasks)
    }

    /// The part of a job's run that is replayed, if it is not all.
    pub fn part(&self, job: u32) -> Option<&Selection> {
        self.part_filter(job).map(Filter::selection)
    }

    /// What the replay of a part of a run has left out of a job's records so far.
    pub fn left_out(&self, job: u32) -> LeftOut {
        self.part_filter(job).map(Filter::left_out).unwrap_or_default()
    }

    fn part_filter(&self, job: u32) -> Option<&Filter> {
        self.jobs.get(job as usize)?.changes.as_ref()?.part.as_ref()
    }

    /// The tasks of a job, counted over all jobs.
    pub(crate) fn range(&self, job: u32) -> Range<usize> {
        let job = self.jobs.get(job as usize);
        job.map_or(0..0, |job| job.first_task as usize..(job.first_task + job.tasks) as usize)
    }

    /// How far the tasks of a job have come, by rank.
    pub fn progress(&self, job: u32) -> impl ExactSizeIterator<Item = TaskProgress> + '_ {
        let range = self.range(job);
        let start = self.jobs.get(job as usize).map_or(Picos::ZERO, |job| job.start);
        range.map(move |at| {
            let sequence = &self.sequences[at];
            TaskProgress {
                records: sequence.records,
                ran: sequence.records > 0 || sequence.finish() > start,
                finished: (sequence.wait == Wait::Finished).then_some(sequence.finish()),
                node: self.live.nodes[at],
            }
        })
    }

    /// The record that each task of a job has not started yet, by rank; `None` if it has no more. `released` is [`Picos::MAX`] while the
    /// task waits for something, `at` is not known and as late.
    pub fn next_records(&self, job: u32) -> impl Iterator<Item = Option<Started>> + '_ {
        self.sequences[self.range(job)].iter().map(not_started)
    }

    /// When the last record that a task has started did; tasks are counted over all jobs. What it computes before the record for which it
    /// waits is not in that.
    pub fn reached(&self, task: u32) -> Option<Picos> {
        self.sequences.get(task as usize).map(|sequence| sequence.at)
    }

    /// When the last task finished, computing included, and the last message was delivered: the simulated run time of all jobs, once
    /// complete.
    pub fn finish(&self) -> Picos {
        let tasks = self.sequences.iter().map(Sequence::finish).max().unwrap_or_default();
        tasks.max(self.instances.finish).max(self.stats().last_delivery)
    }
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProgress {
    /// Records that have started.
    pub records: u64,
    /// Whether it has done anything: started a record, or computed.
    pub ran: bool,
    /// When it finished, if it has: its last record started, its last collective completed.
    pub finished: Option<Picos>,
    /// Its end node.
    pub node: u32,
}

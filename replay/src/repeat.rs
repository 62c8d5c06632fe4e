//! A job that runs again once it is over.

use crate::engine::Engine;
use crate::error::ReplayError;
use crate::message::Sink;
use crate::options::SendCompletion;
use crate::sequence::{Sequence, Wait};
use vef_format::ids::Rank;
use vef_format::units::Picos;

impl Engine {
    /// Whether all tasks of a job have finished, and none of its messages is under way.
    pub fn is_over(&self, job: u32) -> bool {
        let Some(running) = self.jobs.get(job as usize) else { return false };
        self.sequences[self.range(job)].iter().all(|sequence| sequence.wait == Wait::Finished)
            && running.open.is_empty()
            && !self.has_live_messages(job)
    }

    /// Whether nothing that a simulator may report is left for a job: no message of it is under way, and none of its tasks asked to be called.
    pub fn is_stalled(&self, job: u32) -> bool {
        let mut sequences = self.sequences[self.range(job)].iter();
        let mut parts = self.collectives.parts.iter();
        !self.has_live_messages(job)
            && !sequences.any(|sequence| sequence.wait == Wait::Turn)
            && !parts.any(|(_, part)| part.turn && self.sequences[part.task as usize].job == job)
    }

    fn has_live_messages(&self, job: u32) -> bool {
        self.live.iter().any(|(_, flight)| self.sequences[flight.receiver as usize].job == job)
    }

    /// Starts the tasks of a job again, at `start`, with their first records; false, and nothing happens, unless the job
    /// [is over](Engine::is_over). Counts ([`Engine::stats`]) continue.
    ///
    /// # Errors
    /// As [`Engine::begin`].
    pub fn repeat(&mut self, job: u32, start: Picos, out: &mut impl Sink) -> Result<bool, ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        if !self.is_over(job) || self.instances.is_closed(job) {
            return Ok(false);
        }
        let is_eager = self.send_completion() == SendCompletion::Eager;
        let running = &mut self.jobs[job as usize];
        running.restart(running.again(!is_eager).map_err(ReplayError::Source)?);
        for (rank, task) in (0..).map(Rank).zip(self.range(job)) {
            self.sequences[task] = Sequence::new(job, rank, start);
            self.unfinished += 1;
        }
        for task in self.range(job) {
            self.begin_task(task as u32, out)?;
        }
        Ok(true)
    }
}

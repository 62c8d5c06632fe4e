//! A job that runs again once it is over.

use crate::engine::Engine;
use crate::error::ReplayError;
use crate::kept::Kept;
use crate::message::Sink;
use crate::options::SendCompletion;
use crate::sequence::{Sequence, Wait};
use vef_format::ids::Rank;
use vef_format::units::Picos;

impl Engine {
    /// Whether nothing that a simulator may report is left for a job: no message of it is under way, and none of its tasks asked to be called.
    pub fn is_stalled(&self, job: u32) -> bool {
        let mut sequences = self.sequences[self.range(job)].iter();
        let mut parts = self.collectives.parts.iter();
        let has_live_messages = self.jobs.get(job as usize).is_some_and(|job| job.under_way > 0);
        !has_live_messages
            && !sequences.any(|sequence| sequence.wait == Wait::Turn)
            && !parts.any(|(_, part)| part.turn && self.sequences[part.task as usize].job == job)
    }

    /// Starts the tasks of a job again, at `start`, with their first records; false, and nothing happens, unless the job
    /// [is over](Engine::is_over). Counts ([`Engine::stats`]) continue.
    ///
    /// # Errors
    /// [`ReplayError::CannotBegin`]: the replay is as it was, and `out` has been told nothing.
    pub fn repeat(&mut self, job: u32, start: Picos, out: &mut impl Sink) -> Result<bool, ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        if !self.is_over(job) || self.instances.is_closed(job) {
            return Ok(false);
        }
        let tell_sends = self.send_completion() != SendCompletion::Eager;
        let reading = self.jobs[job as usize].again(tell_sends).map_err(ReplayError::Source);
        let begun = reading.and_then(|reading| {
            let run_before = self.jobs[job as usize].restart(reading);
            let range = self.range(job);
            let ranks = (0..range.len() as u32).map(Rank);
            let mut tasks: Vec<_> = ranks.map(|rank| Sequence::new(job, rank, start)).collect();
            self.sequences[range.clone()].swap_with_slice(&mut tasks);
            let begun = self.begin_job(job, Kept::in_place_of(out), out);
            if begun.is_err() {
                self.jobs[job as usize].resume(run_before);
                self.sequences[range].swap_with_slice(&mut tasks);
            }
            begun
        });
        begun.map(|()| true).map_err(|error| ReplayError::CannotBegin { job, error: Box::new(error) })
    }
}

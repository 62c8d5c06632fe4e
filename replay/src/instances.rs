//! Further instances of a job, which are opened and closed while the replay runs: of a list of arriving jobs only those that run take memory.
//!
//! An instance has a number like a job, and tasks in the same tables. Those of a closed one are taken by the next that fits into
//! them, so the tables grow with the most instances that are open at once, not with all of them.

use crate::closed::Instances;
use crate::engine::Engine;
use crate::error::{NoInstance, ReplayError};
use crate::job::nodes_of_all;
use crate::kept::Kept;
use crate::lines::Lines;
use crate::message::{Sink, WakeTarget};
use crate::options::SendCompletion;
use crate::running::Running;
use crate::sequence::{Sequence, Wait};
use crate::states::States;
use hashbrown::HashMap;
use std::ops::Range;
use vef_format::ids::Rank;
use vef_format::units::Picos;

impl Engine {
    /// Opens another instance of `job`, one of those that the replay was built with (most often one [on call](crate::Job::on_call)): its tasks start at `start`, on `nodes`,
    /// by rank of the [placed tasks](crate::Job::placed_tasks), with the first records of the trace and all that was said of the job. Returns the
    /// number of the instance, that of a job. It may have been that of another instance which is closed.
    ///
    /// # Errors
    /// [`ReplayError::NoInstance`], [`ReplayError::CannotBegin`]: the replay is as it was, and `out` has been told nothing.
    pub fn open(
        &mut self,
        job: u32,
        nodes: &[u32],
        start: Picos,
        out: &mut impl Sink,
    ) -> Result<u32, ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        let (instance, nodes) = self.instance_of(job, nodes, start)?;
        let number = self.admit(instance)?;
        let range = self.range(number);
        let Running { first_task, room, .. } = self.jobs[number as usize];
        self.live.nodes[range.clone()].copy_from_slice(&nodes);
        for (rank, task) in (0..).map(Rank).zip(range) {
            self.sequences[task] = Sequence::new(number, rank, start);
        }
        let mut kept = Kept::in_place_of(out);
        kept.opened(number, job, first_task..first_task + room, start);
        if let Err(error) = self.begin_job(number, kept, out) {
            let range = self.range(number);
            self.sequences[range].fill_with(|| idle(number));
            self.close(number);
            return Err(ReplayError::CannotBegin { job, error: Box::new(error) });
        }
        Ok(number)
    }

    /// Starts all tasks of a job that is over, whose sequences are as before their first records. If not all of them can begin, what they have
    /// started is gone, the job counts as over, and `out` has been told nothing; else what `kept` has is told first.
    pub(crate) fn begin_job(
        &mut self,
        job: u32,
        mut kept: Kept,
        out: &mut impl Sink,
    ) -> Result<(), ReplayError> {
        let range = self.range(job);
        let before = (self.live.stats.clone(), self.unfinished, self.collectives.unfinished);
        self.jobs[job as usize].unfinished = range.len() as u32;
        self.unfinished += range.len() as u64;
        let begun = range.clone().try_for_each(|task| self.begin_task(task as u32, &mut kept));
        match begun {
            Ok(()) => {
                kept.tell(out);
                self.tell_over(job, out);
            }
            Err(_) => {
                self.withdraw(job, &range);
                (self.live.stats, self.unfinished, self.collectives.unfinished) = before;
            }
        }
        begun
    }

    /// Takes back what the tasks of a job have started.
    fn withdraw(&mut self, job: u32, tasks: &Range<usize>) {
        self.live.flights.retain(|_, flight| !tasks.contains(&(flight.receiver as usize)));
        if let Some(in_calls) = &mut self.live.in_calls {
            in_calls.forget(tasks);
        }
        let running = &mut self.jobs[job as usize];
        running.open.drain().for_each(|(_, open)| self.collectives.withdraw(open));
        (running.unfinished, running.under_way) = (0, 0);
        self.ended = false;
    }

    /// Closes an instance: its number and its place in memory are free for others. False, and nothing happens, unless it was opened and
    /// [is over](Engine::is_over). What it counted ([`Engine::stats`]) and its end ([`Engine::finish`]) stay.
    pub fn close(&mut self, job: u32) -> bool {
        if job < self.instances.built || !self.is_over(job) || self.jobs.len() as u32 <= job {
            return false;
        }
        if !self.instances.close(job, self.jobs[job as usize].room) {
            return false;
        }
        let ends = self.sequences[self.range(job)].iter().map(Sequence::finish).max();
        self.instances.finish = self.instances.finish.max(ends.unwrap_or_default());
        let running = &mut self.jobs[job as usize];
        running.tasks = 0;
        for (_, group) in running.groups.drain() {
            self.collectives.groups.remove(group as usize);
        }
        // Its records are read no more.
        (running.lines, running.collectives) = (Lines::new(false), States::default());
        while let Some(last) = self.instances.last()
            && last + 1 == self.jobs.len() as u32
        {
            self.instances.remove(last, self.jobs[last as usize].room);
            self.truncate(last);
        }
        true
    }

    /// Whether there are jobs beside those of the builder.
    pub(crate) fn has_instances(&self) -> bool {
        self.jobs.len() as u32 > self.instances.built
    }

    /// Drops all instances, open ones too.
    pub(crate) fn drop_instances(&mut self) {
        self.truncate(self.instances.built);
        self.instances = Instances::beside(self.instances.built);
    }

    /// Only the first jobs are left.
    fn truncate(&mut self, jobs: u32) {
        if let Some(first) = self.jobs.get(jobs as usize) {
            let tasks = first.first_task as usize;
            self.jobs.truncate(jobs as usize);
            self.sequences.truncate(tasks);
            self.live.nodes.truncate(tasks);
            if let Some(in_calls) = &mut self.live.in_calls {
                in_calls.truncate(tasks);
            }
        }
    }

    /// An instance of a job without a place in the tables, and the nodes of its tasks.
    fn instance_of(&self, job: u32, nodes: &[u32], start: Picos) -> Result<(Running, Vec<u32>), ReplayError> {
        let refused = |why| ReplayError::NoInstance { job, why };
        let of = self.jobs.get(job as usize).filter(|_| job < self.instances.built);
        let of = of.ok_or(refused(NoInstance::NoJob))?;
        if !self.begun {
            return Err(refused(NoInstance::NotBegun));
        }
        if self.partition.is_some() {
            return Err(refused(NoInstance::Partition));
        }
        let nodes = nodes_of_all(of.tasks, of.placed_tasks, nodes)
            .ok_or(refused(NoInstance::Nodes { tasks: of.placed_tasks, placed: nodes.len() }))?;
        let tell_sends = self.send_completion() != SendCompletion::Eager;
        let cannot = |error| ReplayError::CannotBegin { job, error: Box::new(ReplayError::Source(error)) };
        let (source, changes) = of.again(tell_sends).map_err(cannot)?;
        let instance = Running {
            lines: Lines::new(source.is_proven()),
            source,
            scale: of.scale.clone(),
            table: of.table.clone(),
            changes,
            first_task: 0,
            tasks: of.tasks,
            room: of.tasks,
            program_tasks: of.program_tasks,
            placed_tasks: of.placed_tasks,
            start,
            on_call: false,
            unfinished: 0,
            under_way: 0,
            skipped: of.skipped.clone(),
            spans: of.spans.clone(),
            from_launch: of.from_launch,
            collectives: States::default(),
            groups: HashMap::new(),
            open: HashMap::new(),
            early: HashMap::new(),
        };
        Ok((instance, nodes))
    }

    /// Puts an instance into the tables, in the smallest place that is free and large enough, else behind all others. Returns its number.
    fn admit(&mut self, mut instance: Running) -> Result<u32, ReplayError> {
        let number = match self.instances.smallest_for(instance.tasks) {
            Some((number, room)) => {
                self.instances.remove(number, room);
                let place = &mut self.jobs[number as usize];
                (instance.first_task, instance.room) = (place.first_task, place.room);
                *place = instance;
                number
            }
            None => {
                let first = u32::try_from(self.sequences.len()).unwrap_or(u32::MAX);
                let end = first.checked_add(instance.tasks).filter(|end| *end < WakeTarget::HELD);
                let number = self.jobs.len() as u32;
                let end =
                    end.ok_or(ReplayError::NoInstance { job: number, why: NoInstance::TooManyTasks })?;
                instance.first_task = first;
                self.live.nodes.resize(end as usize, 0);
                self.sequences.resize_with(end as usize, || idle(number));
                self.jobs.push(instance);
                number
            }
        };
        let range = self.range(number);
        if let Some(in_calls) = &mut self.live.in_calls {
            in_calls.admit(range);
        }
        Ok(number)
    }
}

/// A task of an instance that has nothing to do.
fn idle(job: u32) -> Sequence {
    let mut idle = Sequence::new(job, Rank(0), Picos::ZERO);
    idle.wait = Wait::Finished;
    idle
}

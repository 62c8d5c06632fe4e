//! What a replay is made of, collected and checked.

use crate::collective::Collectives;
use crate::engine::{Replay, Running};
use crate::error::{BuildError, ReplayError};
use crate::job::{Job, Scale};
use crate::live::Live;
use crate::options::{SameNode, SendCompletion};
use crate::progress::Progress;
use crate::ready::Ready;
use crate::stats::Stats;
use crate::task::Task;
use collectives::choose::Table;
use hashbrown::HashMap;
use vef_format::units::Picos;

/// Collects jobs and options.
#[derive(Debug, Default)]
pub struct Builder {
    jobs: Vec<Job>,
    send_completion: SendCompletion,
    same_node: SameNode,
    table: Table,
}

/// So many tasks a header may promise of however short a trace.
const FREE_TASKS: u64 = 1 << 16;

impl Builder {
    /// Adds a trace.
    pub fn job(mut self, job: Job) -> Self {
        self.jobs.push(job);
        self
    }

    /// When sends are complete for their senders; [`SendCompletion::Eager`] without it.
    pub fn send_completion(mut self, send_completion: SendCompletion) -> Self {
        self.send_completion = send_completion;
        self
    }

    /// What happens between tasks of one node; [`SameNode::HandOut`] without it.
    pub fn same_node(mut self, same_node: SameNode) -> Self {
        self.same_node = same_node;
        self
    }

    /// Which algorithm plays which collective; [`Table::default`] without it.
    pub fn algorithms(mut self, table: Table) -> Self {
        self.table = table;
        self
    }

    /// Starts all tasks.
    pub fn build(self) -> Result<Replay, BuildError> {
        if self.jobs.is_empty() {
            return Err(BuildError::NoJobs);
        }
        let (mut jobs, mut tasks, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        for (number, mut job) in (0u32..).zip(self.jobs) {
            if self.send_completion != SendCompletion::Eager {
                job.source.tell_sends().map_err(ReplayError::Source)?;
            }
            let (count, clock) = (job.source.header().tasks, job.source.header().clock);
            let scale = Scale::new(clock, job.factor)
                .ok_or(BuildError::Factor { job: number, factor: job.factor })?;
            // The memory of a task must not follow from a mere promise of the header.
            if u64::from(count) > job.source.most_tasks().max(FREE_TASKS) {
                return Err(BuildError::Tasks { job: number, tasks: count });
            }
            let placed = job.nodes.as_ref().map_or(count as usize, Vec::len);
            if placed < count as usize {
                return Err(BuildError::Placement { job: number, tasks: count, placed });
            }
            let first_task =
                u32::try_from(tasks.len()).ok().filter(|first| first.checked_add(count).is_some());
            let first_task = first_task.ok_or(BuildError::TooManyTasks)?;
            let task_count = first_task as usize + count as usize;
            tasks.resize_with(task_count, || Task::new(number, job.start));
            match job.nodes {
                Some(placed) => nodes.extend_from_slice(&placed[..count as usize]),
                None => nodes.extend(0..count),
            }
            jobs.push(Running {
                source: job.source,
                scale,
                first_task,
                tasks: count,
                lines: Progress::default(),
                operations: Progress::default(),
                groups: HashMap::new(),
                open: HashMap::new(),
            });
        }
        let mut replay = Replay {
            unfinished: tasks.len() as u64,
            ready: Ready::with_room(tasks.len()),
            detached: HashMap::new(),
            jobs,
            tasks,
            nodes,
            collectives: Collectives::new(self.table),
            inside: Ready::default(),
            live: Live::default(),
            live_inside: Live::default(),
            clock: Picos::ZERO,
            stats: Stats::new(),
            send_completion: self.send_completion,
            same_node: self.same_node,
            ended: false,
            refused: 0,
            first_refusal: None,
        };
        for task in 0..replay.tasks.len() as u32 {
            replay.begin(task).map_err(|error| *error)?;
        }
        Ok(replay)
    }
}

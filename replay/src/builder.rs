//! What a replay is made of, collected and checked.

use crate::closed::Instances;
use crate::collective::Collectives;
use crate::engine::Engine;
use crate::error::{BuildError, ReplayError};
use crate::events::CollectiveEvents;
use crate::job::Job;
use crate::lines::Lines;
use crate::live::Live;
use crate::message::WakeTarget;
use crate::options::{SameNode, SendCompletion};
use crate::parcels::Partition;
use crate::part::Filter;
use crate::poll::Replay;
use crate::running::{Changes, Running};
use crate::scale::Scale;
use crate::sequence::{Sequence, Wait};
use crate::states::States;
use collectives::choose::Table;
use hashbrown::HashMap;
use std::sync::Arc;
use vef_format::ids::Rank;

/// Collects jobs and options.
#[derive(Debug, Default)]
pub struct Builder {
    jobs: Vec<Job>,
    send_completion: SendCompletion,
    same_node: SameNode,
    table: Table,
    keep_times: bool,
    events: Option<CollectiveEvents>,
}

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

    /// What happens to messages that stay within a node; they go through [`Memory`](crate::Memory) without it.
    pub fn same_node(mut self, same_node: SameNode) -> Self {
        self.same_node = same_node;
        self
    }

    /// Which algorithm plays which collective of jobs without a table of their own ([`Job::algorithms`]); [`Table::default`] without it.
    pub fn algorithms(mut self, table: Table) -> Self {
        self.table = table;
        self
    }

    /// Collectives that the simulator carries out itself, as events instead of messages; none without this call. Partitions have none.
    pub fn collective_events(mut self, events: CollectiveEvents) -> Self {
        self.events = Some(events);
        self
    }

    /// Whether the replay keeps the time of each task by state ([`Replay::accounts`]); without this call it does not. A simulator on an
    /// [`Engine`] has an [`Accounts`](crate::Accounts) of its own for that.
    pub fn keep_times(mut self, keep_times: bool) -> Self {
        self.keep_times = keep_times;
        self
    }

    /// Number of end nodes that the jobs' placements need: one more than the largest node of any task.
    pub fn nodes_needed(&self) -> u64 {
        self.jobs.iter().map(Job::nodes_needed).max().unwrap_or(0)
    }

    /// An engine, whose tasks [`Engine::begin`] starts.
    pub fn engine(self) -> Result<Engine, BuildError> {
        self.build_engine(Engine::RUN_AHEAD)
    }

    /// A replay that holds the queue of messages; all tasks are started.
    pub fn build(self) -> Result<Replay, BuildError> {
        // No message starts before the caller takes it.
        let keep_times = self.keep_times;
        Ok(Replay::new(self.build_engine(0)?, keep_times)?)
    }

    /// Engines that divide the replay among themselves, to be advanced side by side: each has the tasks on the nodes that
    /// `part_of` puts in its part, by number. [`Engine::export`] and [`Engine::import`] take messages from one to another.
    ///
    /// Every partition reads the records of its own tasks, and has some 200 bytes for each task of the whole replay. A
    /// text is read into memory first, once for all of them.
    pub fn partitions(self, parts: u32, part_of: impl Fn(u32) -> u32) -> Result<Vec<Engine>, BuildError> {
        let Self { mut jobs, send_completion, same_node, table, keep_times, events } = self;
        if events.is_some() && parts > 1 {
            return Err(BuildError::EventsOfPartitions);
        }
        if matches!(send_completion, SendCompletion::RendezvousInCalls { .. }) && parts > 1 {
            return Err(BuildError::InCallsOfPartitions);
        }
        jobs.iter_mut().try_for_each(|job| job.source.make_shareable()).map_err(ReplayError::Source)?;
        let (mut partitions, mut of_tasks) = (Vec::new(), None);
        for part in 0..parts {
            let again = |job: &Job| {
                let source = job.source.again()?;
                Ok(Job {
                    source,
                    nodes: job.nodes.clone(),
                    start: job.start,
                    factors: job.factors.clone(),
                    computing: job.computing.as_ref().map(|computing| computing.again()),
                    table: job.table.clone(),
                    skipped: job.skipped.clone(),
                    spans: job.spans.clone(),
                    from_launch: job.from_launch,
                    on_call: job.on_call,
                    part: job.part.clone(),
                })
            };
            let jobs = jobs.iter().map(again).collect::<Result<_, _>>().map_err(ReplayError::Source)?;
            let table = table.clone();
            let builder =
                Self { jobs, send_completion, same_node, table, keep_times, events: events.clone() };
            let mut engine = builder.engine()?;
            let of_tasks: &mut Arc<[u32]> = match &mut of_tasks {
                Some(of_tasks) => of_tasks,
                none => {
                    let of_node = |&node: &u32| match part_of(node) {
                        part if part < parts => Ok(part),
                        part => Err(BuildError::Partition { node, part, parts }),
                    };
                    none.insert(engine.live.nodes.iter().map(of_node).collect::<Result<_, _>>()?)
                }
            };
            for (sequence, &its) in engine.sequences.iter_mut().zip(of_tasks.iter()) {
                if its != part {
                    engine.unfinished -= u64::from(sequence.wait != Wait::Finished);
                    sequence.wait = Wait::Elsewhere;
                }
            }
            engine.partition = Some(Box::new(Partition::new(part, of_tasks.clone())));
            partitions.push(engine);
        }
        Ok(partitions)
    }

    fn build_engine(self, run_ahead: u8) -> Result<Engine, BuildError> {
        if self.jobs.is_empty() {
            return Err(BuildError::NoJobs);
        }
        let (mut jobs, mut sequences, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut unfinished = 0;
        for (number, mut job) in (0u32..).zip(self.jobs) {
            if job.on_call {
                // It is read once for each of its runs and instances.
                job.source.make_shareable().map_err(ReplayError::Source)?;
            }
            if self.send_completion != SendCompletion::Eager {
                job.source.tell_sends().map_err(ReplayError::Source)?;
            }
            let (tasks, clock) = (job.source.header().tasks, job.source.header().clock);
            let scale = Scale::new(clock, &job.factors)
                .map_err(|factor| BuildError::Factor { job: number, factor })?;
            job.check_tasks(number)?;
            nodes.extend(job.all_nodes().map_err(|placed| BuildError::Placement {
                job: number,
                tasks: job.placed_tasks(),
                placed,
            })?);
            let first_task = u32::try_from(sequences.len())
                .ok()
                .filter(|first| first.checked_add(tasks).is_some_and(|end| end < WakeTarget::HELD))
                .ok_or(BuildError::TooManyTasks)?;
            sequences.extend((0..tasks).map(|rank| Sequence::new(number, Rank(rank), job.start)));
            if job.on_call {
                sequences[first_task as usize..]
                    .iter_mut()
                    .for_each(|sequence| sequence.wait = Wait::Finished);
            }
            unfinished += if job.on_call { 0 } else { u64::from(tasks) };
            let part = job.part.as_ref().map(|part| Filter::new(part, tasks));
            let (program_tasks, placed_tasks) = (job.program_tasks(), job.placed_tasks());
            jobs.push(Running {
                lines: Lines::new(job.source.is_proven()),
                source: job.source,
                scale,
                table: job.table,
                changes: (job.computing.is_some() || part.is_some())
                    .then(|| Box::new(Changes::new(job.computing, part))),
                first_task,
                tasks,
                room: tasks,
                program_tasks,
                placed_tasks,
                start: job.start,
                on_call: job.on_call,
                unfinished: if job.on_call { 0 } else { tasks },
                under_way: 0,
                skipped: job.skipped,
                spans: job.spans,
                from_launch: job.from_launch,
                collectives: States::default(),
                groups: HashMap::new(),
                open: HashMap::new(),
                early: HashMap::new(),
            });
        }
        Ok(Engine {
            unfinished,
            instances: Instances::beside(jobs.len() as u32),
            jobs,
            sequences,
            collectives: Collectives::new(self.table, self.events),
            live: Live::new(nodes, self.send_completion, self.same_node, run_ahead),
            begun: false,
            ended: false,
            partition: None,
            refused: 0,
            first_refusal: None,
        })
    }
}

impl Engine {
    /// Begins to describe a replay.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Replay {
    /// Begins to describe a replay.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

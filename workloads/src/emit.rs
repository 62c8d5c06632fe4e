//! Emits the records of all tasks in program order and tracks their dependencies, so that kernels only state
//! the next operation of a task.

use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::record::{Dependency, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

use crate::Workload;
use crate::error::WorkloadError;

/// Accepts records.
pub trait Sink {
    /// Accepts a communicator.
    fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WorkloadError>;
    /// Accepts a message or a mark.
    fn message(&mut self, message: &Message) -> Result<(), WorkloadError>;
    /// Accepts a task's part of a collective.
    fn collective(&mut self, part: &LocalCollective) -> Result<(), WorkloadError>;
}

/// A sink that counts records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) communicators: u64,
    pub(crate) collectives: u64,
    pub(crate) local_collectives: u64,
}

impl Sink for Counts {
    fn communicator(&mut self, _: CommId, _: &[Rank]) -> Result<(), WorkloadError> {
        self.communicators += 1;
        Ok(())
    }

    fn message(&mut self, _: &Message) -> Result<(), WorkloadError> {
        self.messages += 1;
        Ok(())
    }

    fn collective(&mut self, part: &LocalCollective) -> Result<(), WorkloadError> {
        self.local_collectives += 1;
        self.collectives = self.collectives.max(part.id.0 + 1);
        Ok(())
    }
}

/// Emits records to a sink.
pub(crate) struct Emitter<'a, S> {
    sink: &'a mut S,
    workload: &'a Workload,
    tasks: Vec<Task>,
    random: u64,
    messages: u64,
    collectives: u64,
    communicators: u32,
}

/// The state of a task.
#[derive(Clone, Copy, Debug)]
struct Task {
    after: Dependency,
    /// Computing since the last record.
    computing: u64,
    /// Factor of its computing.
    factor: f64,
}

impl<'a, S: Sink> Emitter<'a, S> {
    pub(crate) fn new(workload: &'a Workload, sink: &'a mut S) -> Self {
        let mut emitter = Self {
            sink,
            workload,
            tasks: Vec::new(),
            random: workload.seed,
            messages: 0,
            collectives: 0,
            communicators: 0,
        };
        for _ in 0..workload.kernel.tasks() {
            let factor = emitter.around_one(workload.imbalance);
            emitter.tasks.push(Task { after: Dependency::Start, computing: 0, factor });
        }
        emitter
    }

    pub(crate) fn tasks(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// 64 random bits (splitmix64).
    fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `limit`, which is at least 1.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(limit)) >> 32) as u32
    }

    /// A random number between `1 − width` and `1 + width`.
    fn around_one(&mut self, width: f64) -> f64 {
        if width == 0.0 {
            return 1.0;
        }
        1.0 + width * ((self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
    }

    /// A task computes for `share` of its time per iteration.
    pub(crate) fn compute(&mut self, task: u32, share: f64) {
        let noise = self.around_one(self.workload.noise);
        let task = &mut self.tasks[task as usize];
        task.computing += (self.workload.compute.0 as f64 * share * task.factor * noise).round() as u64;
    }

    /// A task sends a message, for which the receiver must wait.
    pub(crate) fn send(&mut self, from: u32, to: u32, bytes: Bytes) -> Result<MessageId, WorkloadError> {
        let id = MessageId(self.messages);
        self.line(id, from, to, bytes, true)?;
        self.tasks[from as usize].after = Dependency::Sent(id);
        Ok(id)
    }

    /// A task waits for a message sent to it.
    pub(crate) fn wait(&mut self, task: u32, id: MessageId) -> Result<(), WorkloadError> {
        self.line(MessageId(self.messages), task, task, Bytes::ZERO, false)?;
        self.tasks[task as usize].after = Dependency::Received(id);
        Ok(())
    }

    fn line(
        &mut self,
        id: MessageId,
        src: u32,
        dst: u32,
        bytes: Bytes,
        awaited: bool,
    ) -> Result<(), WorkloadError> {
        self.messages += 1;
        let task = &mut self.tasks[src as usize];
        let time = Ticks(std::mem::take(&mut task.computing));
        self.sink.message(&Message {
            id,
            src: Rank(src),
            dst: Rank(dst),
            bytes,
            awaited,
            after: task.after,
            time,
        })
    }

    /// Creates a communicator.
    pub(crate) fn communicator(&mut self, members: &[u32]) -> Result<CommId, WorkloadError> {
        let id = CommId(self.communicators);
        self.communicators += 1;
        let members: Vec<Rank> = members.iter().map(|&task| Rank(task)).collect();
        self.sink.communicator(id, &members)?;
        Ok(id)
    }

    /// The members of a communicator enter a collective with equal amounts.
    pub(crate) fn collective(
        &mut self,
        comm: CommId,
        members: &[u32],
        operation: Operation,
        amounts: Amounts,
    ) -> Result<(), WorkloadError> {
        let id = CollectiveId(self.collectives);
        self.collectives += 1;
        for &member in members {
            let task = &mut self.tasks[member as usize];
            let time = Ticks(std::mem::take(&mut task.computing));
            let (op, task_rank, after) = (operation.default_code(), Rank(member), task.after);
            task.after = Dependency::Collective(id);
            self.sink.collective(&LocalCollective { id, comm, op, task: task_rank, amounts, after, time })?;
        }
        Ok(())
    }

    /// Ends all tasks.
    pub(crate) fn finish(mut self) -> Result<(), WorkloadError> {
        for task in 0..self.tasks() {
            let id = MessageId(self.messages);
            self.line(id, task, task, Bytes::ZERO, false)?;
        }
        Ok(())
    }
}

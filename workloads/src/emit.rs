//! Emits the records of all tasks in program order and tracks their dependencies, so that patterns only state
//! the next operation of a task.

use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::Operation;
use vef_format::record::{Dependency, Line, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

use crate::error::WorkloadError;

/// Takes the lines of a trace.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(&Line<'_>) -> Result<(), WorkloadError>;

/// Emits records to a sink.
pub(crate) struct Emitter<'s> {
    sink: Sink<'s>,
    /// Computing of a task per iteration, and the largest deviation of an iteration's factor for it from 1.
    compute: f64,
    noise: f64,
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

impl<'s> Emitter<'s> {
    /// For so many tasks, whose factors of computing differ from 1 by at most `imbalance`.
    pub(crate) fn new(
        sink: Sink<'s>,
        tasks: u32,
        compute: Ticks,
        (imbalance, noise): (f64, f64),
        seed: u64,
    ) -> Self {
        let mut emitter = Self {
            sink,
            compute: compute.0 as f64,
            noise,
            tasks: Vec::new(),
            random: seed,
            messages: 0,
            collectives: 0,
            communicators: 0,
        };
        for _ in 0..tasks {
            let factor = emitter.around_one(imbalance);
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
        let noise = self.around_one(self.noise);
        let task = &mut self.tasks[task as usize];
        task.computing += (self.compute * share * task.factor * noise).round() as u64;
    }

    /// A task computes for so many nanoseconds.
    pub(crate) fn compute_ns(&mut self, task: u32, nanos: f64) {
        let noise = self.around_one(self.noise);
        let task = &mut self.tasks[task as usize];
        task.computing += (nanos * task.factor * noise).round() as u64;
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
        let (src, dst, after) = (Rank(src), Rank(dst), task.after);
        (self.sink)(&Line::Message(Message { id, src, dst, bytes, awaited, after, time }))
    }

    /// Creates a communicator.
    pub(crate) fn communicator(&mut self, members: &[u32]) -> Result<CommId, WorkloadError> {
        let id = CommId(self.communicators);
        self.communicators += 1;
        let members: Vec<Rank> = members.iter().map(|&task| Rank(task)).collect();
        (self.sink)(&Line::Communicator { id, members: &members })?;
        Ok(id)
    }

    /// Creates a communicator for each group of members.
    pub(crate) fn communicators(
        &mut self,
        groups: impl Iterator<Item = Vec<u32>>,
    ) -> Result<Vec<(CommId, Vec<u32>)>, WorkloadError> {
        groups.map(|members| Ok((self.communicator(&members)?, members))).collect()
    }

    /// The members of a communicator enter a collective in which each has `bytes`, of its vector or its block for each member.
    pub(crate) fn collective(
        &mut self,
        comm: CommId,
        members: &[u32],
        operation: Operation,
        bytes: Bytes,
    ) -> Result<(), WorkloadError> {
        let id = self.start_collective(comm, members, operation, bytes)?;
        for &member in members {
            self.tasks[member as usize].after = Dependency::Collective(id);
        }
        Ok(())
    }

    /// A task waits for a collective that it has started.
    pub(crate) fn wait_collective(&mut self, task: u32, id: CollectiveId) -> Result<(), WorkloadError> {
        self.line(MessageId(self.messages), task, task, Bytes::ZERO, false)?;
        self.tasks[task as usize].after = Dependency::Collective(id);
        Ok(())
    }

    /// The members of a communicator start a collective, and go on before it ends.
    pub(crate) fn start_collective(
        &mut self,
        comm: CommId,
        members: &[u32],
        operation: Operation,
        bytes: Bytes,
    ) -> Result<CollectiveId, WorkloadError> {
        let all = Bytes(bytes.0.saturating_mul(members.len() as u64));
        let amounts = operation.amounts(false, bytes, all);
        let id = CollectiveId(self.collectives);
        self.collectives += 1;
        for &member in members {
            let task = &mut self.tasks[member as usize];
            let time = Ticks(std::mem::take(&mut task.computing));
            let (op, task_rank, after) = (operation.default_code(), Rank(member), task.after);
            let part = LocalCollective { id, comm, op, task: task_rank, amounts, after, time };
            (self.sink)(&Line::Collective(part))?;
        }
        Ok(id)
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

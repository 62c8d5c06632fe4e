//! Random programs: a sequence of operations of random tasks, written down as the trace that a mixer would make of
//! it, the lines of different tasks shuffled.

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use replay::{Bytes, Picos};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::record::{Dependency, Header, LocalCollective, Message, Record, Version};
use vef_format::units::Ticks;

/// A trace.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Its first line.
    pub(crate) header: Header,
    /// All others.
    pub(crate) records: Vec<Record>,
    /// What each collective was called with, by its id.
    pub(crate) calls: Vec<Call>,
}

/// A collective as all members together know it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) operation: Operation,
    /// World ranks by communicator rank.
    pub(crate) members: Vec<Rank>,
    /// A communicator rank.
    pub(crate) root: usize,
    /// Of a vector, or of one block where all are alike.
    pub(crate) bytes: u64,
    /// What each member sends to each, in operations in which blocks differ; in all but Alltoallv and Alltoallw a block is
    /// its sender's, or its receiver's, whoever the other one is.
    pub(crate) blocks: Vec<Vec<u64>>,
}

impl Call {
    /// What a member contributes and obtains.
    fn amounts(&self, rank: usize) -> Amounts {
        let (bytes, ranks, blocks) = (self.bytes, self.members.len() as u64, &self.blocks);
        let at_root = |yes: (u64, u64), no: (u64, u64)| if rank == self.root { yes } else { no };
        let row: u64 = blocks[rank].iter().sum();
        let column: u64 = blocks.iter().map(|row| row[rank]).sum();
        // Of each member its own block, and all but the root's.
        let own = |of: usize| self.own_block(of);
        let all: u64 = (0..self.members.len()).map(own).sum();
        let others = all - own(self.root);
        let (send, recv) = match self.operation {
            Operation::Bcast => at_root((bytes, 0), (0, bytes)),
            Operation::Reduce => at_root((0, bytes), (bytes, 0)),
            Operation::Gather => at_root((0, bytes * (ranks - 1)), (bytes, 0)),
            Operation::Scatter => at_root((bytes * (ranks - 1), 0), (0, bytes)),
            Operation::Gatherv => at_root((0, others), (own(rank), 0)),
            Operation::Scatterv => at_root((others, 0), (0, own(rank))),
            Operation::Allreduce | Operation::Scan | Operation::Exscan => (bytes, bytes),
            Operation::Allgather => (bytes, bytes * ranks),
            Operation::Alltoall => (bytes * ranks, bytes * ranks),
            Operation::Allgatherv => (own(rank), all),
            Operation::Alltoallv | Operation::Alltoallw => (row, column),
            Operation::ReduceScatter => (all, own(rank)),
            Operation::ReduceScatterBlock => (bytes * ranks, bytes),
            Operation::Barrier => (0, 0),
        };
        Amounts { send: Bytes(send), recv: Bytes(recv) }
    }

    /// A member's own block, where each has one.
    pub(crate) fn own_block(&self, rank: usize) -> u64 {
        self.blocks[rank][0]
    }
}

/// Random programs of mostly up to 9 tasks; of more, a collective has members with more peers than are counted apart, and more messages in a row than
/// a task may start ahead of its simulator.
pub(crate) fn program() -> impl Strategy<Value = Program> {
    (prop_oneof![5 => 1u32..10, 1 => 18u32..25], 0u32..120, any::<u64>())
        .prop_map(|(tasks, operations, seed)| generate(tasks, operations, seed))
}

struct Writing {
    random: SmallRng,
    previous: Vec<Dependency>,
    /// Each task's records in program order.
    lines: Vec<Vec<Record>>,
    ids: u64,
    calls: Vec<Call>,
    comms: Vec<Vec<Rank>>,
    /// Messages sent and not received: (receiver, id, sender and place in its list).
    pending: Vec<(u32, MessageId, usize, usize)>,
    /// Non-blocking collectives to be waited for: (task, id).
    waits: Vec<(usize, CollectiveId)>,
}

fn generate(tasks: u32, operations: u32, seed: u64) -> Program {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut comms = vec![(0..tasks).map(Rank).collect::<Vec<_>>()];
    for _ in 0..random.random_range(0..3) {
        let mut members: Vec<Rank> = (0..tasks).map(Rank).filter(|_| random.random()).collect();
        if random.random() {
            members.reverse();
        }
        if !members.is_empty() {
            comms.push(members);
        }
    }
    let mut writing = Writing {
        random,
        previous: vec![Dependency::Start; tasks as usize],
        lines: vec![Vec::new(); tasks as usize],
        ids: 0,
        calls: Vec::new(),
        comms,
        pending: Vec::new(),
        waits: Vec::new(),
    };
    for _ in 0..operations {
        match writing.random.random_range(0..10) {
            0..=3 => writing.send(tasks),
            4..=6 => writing.receive(),
            7 => writing.wait(),
            8 => writing.collective(true),
            _ => writing.collective(false),
        }
    }
    for task in 0..tasks as usize {
        writing.mark(task);
    }
    writing.finish(tasks)
}

impl Writing {
    fn time(&mut self) -> Ticks {
        Ticks(if self.random.random() { 0 } else { self.random.random_range(0..30) })
    }

    fn next_id(&mut self) -> MessageId {
        self.ids += 1;
        MessageId(self.ids - 1)
    }

    fn message(&mut self, src: usize, dst: u32, bytes: u64) -> MessageId {
        let (id, time) = (self.next_id(), self.time());
        let message = Message {
            id,
            src: Rank(src as u32),
            dst: Rank(dst),
            bytes: Bytes(bytes),
            awaited: false,
            after: self.previous[src],
            time,
        };
        self.lines[src].push(Record::Message(message));
        id
    }

    fn mark(&mut self, task: usize) -> MessageId {
        self.message(task, task as u32, 0)
    }

    fn send(&mut self, tasks: u32) {
        let src = self.random.random_range(0..tasks) as usize;
        let dst = self.random.random_range(0..tasks);
        let bytes = self.random.random_range(1..50);
        let id = self.message(src, dst, bytes);
        self.previous[src] = Dependency::Sent(id);
        self.pending.push((dst, id, src, self.lines[src].len() - 1));
    }

    fn receive(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let at = self.random.random_range(0..self.pending.len());
        let (dst, id, src, place) = self.pending.swap_remove(at);
        if let Record::Message(message) = &mut self.lines[src][place] {
            message.awaited = true;
        }
        self.mark(dst as usize);
        self.previous[dst as usize] = Dependency::Received(id);
    }

    fn wait(&mut self) {
        if self.waits.is_empty() {
            return;
        }
        let at = self.random.random_range(0..self.waits.len());
        let (task, id) = self.waits.swap_remove(at);
        self.mark(task);
        self.previous[task] = Dependency::Collective(id);
    }

    fn collective(&mut self, blocking: bool) {
        let comm = self.random.random_range(0..self.comms.len());
        let members = self.comms[comm].clone();
        let op = Operation::ALL[self.random.random_range(0..Operation::ALL.len())];
        let root = self.random.random_range(0..members.len());
        let bytes = if self.random.random_range(0..5) == 0 { 0 } else { self.random.random_range(1..40) };
        let mut block = || match self.random.random_range(0..3) {
            0 => 0,
            _ => self.random.random_range(1..20),
        };
        let blocks = members.iter().map(|_| members.iter().map(|_| block()).collect()).collect();
        let call = Call { operation: op, members: members.clone(), root, bytes, blocks };
        let id = CollectiveId(self.calls.len() as u64);
        for (rank, member) in members.iter().enumerate() {
            let task = member.index();
            let after = if blocking {
                self.previous[task]
            } else {
                let anchor = self.mark(task);
                self.previous[task] = Dependency::Sent(anchor);
                self.waits.push((task, id));
                Dependency::Sent(anchor)
            };
            let amounts = call.amounts(rank);
            let time = self.time();
            let part = LocalCollective {
                id,
                comm: CommId(comm as u32),
                op: op.default_code(),
                task: *member,
                amounts,
                after,
                time,
            };
            self.lines[task].push(Record::Collective(part));
            if blocking {
                self.previous[task] = Dependency::Collective(id);
            }
        }
        self.calls.push(call);
    }

    fn finish(mut self, tasks: u32) -> Program {
        let header = Header {
            version: Version::V3,
            tasks,
            messages: self.ids,
            communicators: self.comms.len() as u64,
            collectives: self.calls.len() as u64,
            local_collectives: self
                .lines
                .iter()
                .flatten()
                .filter(|line| matches!(line, Record::Collective(_)))
                .count() as u64,
            received: 0,
            clock: Picos(100),
        };
        let members = self.comms.into_iter().zip(0..);
        let mut records: Vec<Record> =
            members.map(|(members, id)| Record::Communicator { id: CommId(id), members }).collect();
        // Lines of one task keep their order; between tasks the order is free.
        let mut lines: Vec<_> = self.lines.into_iter().map(Vec::into_iter).collect();
        let mut left: Vec<usize> = (0..lines.len()).collect();
        while !left.is_empty() {
            let at = self.random.random_range(0..left.len());
            match lines[left[at]].next() {
                Some(line) => records.push(line),
                None => drop(left.swap_remove(at)),
            }
        }
        Program { header, records, calls: self.calls }
    }
}

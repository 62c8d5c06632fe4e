//! Proof of a schedule by symbolic execution of all ranks.
//!
//! Every element of every buffer holds which ranks' contributions are in it, of which element, and whether they
//! were combined in rank order. [`Case::prove`] runs the steps with *synchronous* messages (a send completes only
//! when its receive is posted, so a schedule that needs buffering deadlocks here) and finds: deadlock, messages
//! nobody receives, lengths that differ, bytes read before they are there, buffers touched while a message uses
//! them, elements torn by a split, contributions missing, doubled or misplaced.

use collectives::{Buffer, Choice, Combine, Cursor, Data, Error, Member, Operation, Sizes, Step};
use std::collections::VecDeque;
use std::ops::Range;

/// Most ranks of a case: contributions are bits of a `u128`.
pub(crate) const MAX_PROVABLE_RANKS: u32 = 128;

/// One collective, to be run by all its ranks.
#[derive(Clone, Debug)]
pub(crate) struct Case<'a> {
    /// The operation.
    pub(crate) operation: Operation,
    /// Communicator size, 1 to [`MAX_PROVABLE_RANKS`].
    pub(crate) ranks: u32,
    /// The root.
    pub(crate) root: u32,
    /// Bytes of an element.
    pub(crate) unit: u32,
    /// The algorithm.
    pub(crate) choice: Choice,
    /// Each rank's sizes; a single one is every rank's.
    pub(crate) sizes: &'a [Sizes<'a>],
}

/// What a proven schedule costs, and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Messages of all ranks.
    pub(crate) messages: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Most messages sent by one rank.
    pub(crate) most_sent: u64,
    /// Most messages for which one rank waits at once.
    pub(crate) most_pending: usize,
    /// Messages of the longest chain in which each is posted after a wait for the one before.
    pub(crate) rounds: u64,
    /// Whether every reduction took place in rank order.
    pub(crate) ordered: bool,
    /// Bytes from rank a to rank b at [a · ranks + b].
    pub(crate) pairs: Vec<(u64, u64)>,
}

/// What is wrong with a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    /// There is none.
    #[error("rank {rank}: {error}")]
    NoSchedule {
        /// Whose schedule.
        rank: u32,
        /// Why.
        error: Error,
    },
    /// No rank, or more than can be proven.
    #[error("{0} ranks: 1 to {MAX_PROVABLE_RANKS} can be proven")]
    TooManyRanks(u32),
    /// Nobody can go on.
    #[error("deadlock: rank {rank} waits and nobody can go on")]
    Deadlock {
        /// One of those that wait.
        rank: u32,
    },
    /// A message without receive at the end.
    #[error("a message from {from} to {to} is never received")]
    Unreceived {
        /// Sender.
        from: u32,
        /// Receiver.
        to: u32,
    },
    /// Posted and never waited for.
    #[error("rank {rank} ends without waiting for what it has posted")]
    NotWaited {
        /// The rank.
        rank: u32,
    },
    /// A step names a rank outside, or itself.
    #[error("rank {rank} exchanges with {peer}")]
    Peer {
        /// The rank.
        rank: u32,
        /// Its peer.
        peer: u32,
    },
    /// Data that is no whole number of elements or reaches outside the buffer.
    #[error("rank {rank}: {data:?} is not of the buffer's elements")]
    Outside {
        /// The rank.
        rank: u32,
        /// The data.
        data: Data,
    },
    /// Message or copy of other length than its destination.
    #[error("rank {rank}: {got} bytes for {expected}")]
    Length {
        /// The rank.
        rank: u32,
        /// Bytes that came.
        got: u64,
        /// Bytes expected.
        expected: u64,
    },
    /// Data is read before it is there.
    #[error("rank {rank} reads {data:?}, part of which holds nothing")]
    Unset {
        /// The rank.
        rank: u32,
        /// The data.
        data: Data,
    },
    /// Data is touched while a message uses it.
    #[error("rank {rank} touches {data:?} while a message uses it")]
    InUse {
        /// The rank.
        rank: u32,
        /// The data.
        data: Data,
    },
    /// A contribution reduced twice, or with another element's.
    #[error("rank {rank}: {a:?} cannot be reduced with {b:?}")]
    BadReduction {
        /// The rank.
        rank: u32,
        /// Left operand.
        a: Value,
        /// Right operand.
        b: Value,
    },
    /// The result is not what the operation promises.
    #[error("rank {rank}, element {element} of the output: {got:?} instead of {expected:?}")]
    Wrong {
        /// The rank.
        rank: u32,
        /// Element of its output.
        element: u64,
        /// What it holds.
        got: Value,
        /// What it should hold.
        expected: Value,
    },
}

/// What an element holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value {
    /// Bit r: a contribution of rank r; none: nothing.
    pub(crate) of: u128,
    /// Which element of the contributors' input.
    pub(crate) element: u64,
    /// Some reduction was not in rank order.
    pub(crate) disordered: bool,
}

impl Value {
    fn from(rank: u32, element: u64) -> Value {
        Value { of: 1 << rank, element, disordered: false }
    }

    /// `a` ⊕ `b`.
    fn reduced(a: Value, b: Value) -> Option<Value> {
        if a.of == 0 || b.of == 0 || a.of & b.of != 0 || a.element != b.element {
            return None;
        }
        let in_order = a.of.leading_zeros() > 127 - b.of.trailing_zeros();
        Some(Value { of: a.of | b.of, disordered: a.disordered || b.disordered || !in_order, ..a })
    }
}

impl Case<'_> {
    /// Runs all ranks to their end and checks every output. Where a rank knows only sums, lengths and
    /// contents are not checked, the rest is.
    pub(crate) fn prove(&self) -> Result<Proof, Flaw> {
        self.prove_steps(|rank| {
            let sizes = self.sizes(rank);
            let cursor = Cursor::new(self.member(rank), self.choice, sizes);
            let mut cursor = cursor.map_err(|error| Flaw::NoSchedule { rank, error })?;
            Ok(std::iter::from_fn(move || cursor.next(sizes)))
        })
    }

    /// The same for steps of one's own; `choice` is not looked at.
    pub(crate) fn prove_steps<I>(&self, steps: impl FnMut(u32) -> Result<I, Flaw>) -> Result<Proof, Flaw>
    where
        I: Iterator<Item = Step>,
    {
        if self.ranks == 0 || self.ranks > MAX_PROVABLE_RANKS {
            return Err(Flaw::TooManyRanks(self.ranks));
        }
        let mut machine = Machine::new(self, steps)?;
        machine.run()?;
        machine.check()
    }

    fn member(&self, rank: u32) -> Member {
        Member { operation: self.operation, ranks: self.ranks, rank, root: self.root, unit: self.unit }
    }

    fn sizes(&self, rank: u32) -> Sizes<'_> {
        self.sizes[rank as usize % self.sizes.len()]
    }

    /// First element of rank `of`'s block where `at` sends it from (`send`), or receives it to.
    fn block_start(&self, at: u32, of: u32, send: bool) -> u64 {
        let bytes = match self.sizes(at) {
            Sizes::Blocks(counts) => counts.start(of),
            Sizes::Pairs { send: counts, .. } if send => counts.start(of),
            Sizes::Pairs { recv: counts, .. } => counts.start(of),
            Sizes::Bytes(block) => block * u64::from(of),
            Sizes::Sums { .. } => 0,
        };
        bytes / u64::from(self.unit)
    }

    fn input(&self, rank: u32, element: u64) -> Value {
        use Operation::*;
        match self.operation {
            Scatter | Scatterv if rank != self.root => Value::default(),
            _ => Value::from(rank, element),
        }
    }

    /// What an element of the output holds at the end, if the operation says so.
    fn expected(&self, rank: u32, element: u64) -> Option<Value> {
        use Operation::*;
        let everybody = u128::MAX >> (128 - self.ranks);
        let below = (1u128 << rank) - 1;
        let value = |of, element| Some(Value { of, element, disordered: false });
        match self.operation {
            Barrier => None,
            Bcast => value(1 << self.root, element),
            Reduce | Gather | Gatherv if rank != self.root => None,
            Reduce | Allreduce => value(everybody, element),
            Scan => value(below | 1 << rank, element),
            Exscan if rank == 0 => None,
            Exscan => value(below, element),
            Gather | Gatherv | Allgather | Allgatherv => {
                let of = self.owner(rank, element);
                value(1 << of, element - self.block_start(rank, of, false))
            }
            Scatter | Scatterv => value(1 << self.root, element + self.block_start(rank, rank, true)),
            Alltoall | Alltoallv | Alltoallw => {
                let of = self.owner(rank, element);
                value(1 << of, element - self.block_start(rank, of, false) + self.block_start(of, rank, true))
            }
            ReduceScatter | ReduceScatterBlock => {
                value(everybody, element + self.block_start(rank, rank, true))
            }
        }
    }

    /// Whose block an element of the output belongs to.
    fn owner(&self, rank: u32, element: u64) -> u32 {
        (1..self.ranks).rev().find(|&of| self.block_start(rank, of, false) <= element).unwrap_or(0)
    }
}

struct Machine<'c, I> {
    case: &'c Case<'c>,
    nodes: Vec<Node<I>>,
    /// From a to b at [a · ranks + b].
    channels: Vec<Option<Box<Channel>>>,
    with_contents: bool,
}

struct Node<I> {
    steps: I,
    /// Empty until first touched.
    buffers: [Vec<Value>; 4],
    /// Which elements pending messages read or write.
    used: [Vec<Use>; 4],
    /// Elements of the buffers.
    lens: [usize; 4],
    sends: Vec<(usize, usize, Data)>,
    recvs: Vec<(usize, usize, Data, Combine)>,
    is_waiting: bool,
    is_done: bool,
    /// When its last wait ended, in messages of a unit of time each.
    clock: u64,
    most_pending: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    None,
    Read,
    Written,
}

#[derive(Default)]
struct Channel {
    /// When each message, and each receive, was posted.
    sent: Vec<u64>,
    posted: Vec<u64>,
    bytes: u64,
    contents: VecDeque<(u64, Vec<Value>)>,
}

const BUFFERS: [Buffer; 4] = [Buffer::Input, Buffer::Output, Buffer::Work, Buffer::Arrival];

impl<'c, I: Iterator<Item = Step>> Machine<'c, I> {
    fn new(case: &'c Case<'c>, mut steps: impl FnMut(u32) -> Result<I, Flaw>) -> Result<Self, Flaw> {
        let with_contents = !case.sizes.iter().any(|sizes| matches!(sizes, Sizes::Sums { .. }));
        let mut nodes = Vec::new();
        for rank in 0..case.ranks {
            let (member, sizes) = (case.member(rank), case.sizes(rank));
            let unit = u64::from(case.unit);
            let lens = BUFFERS.map(|buffer| match with_contents {
                true => (member.buffer_bytes(buffer, sizes) / unit) as usize,
                false => 0,
            });
            let mut buffers = BUFFERS.map(|_| Vec::new());
            let filled = match case.operation {
                Operation::Bcast if rank == case.root => Some(Buffer::Output),
                Operation::Bcast => None,
                _ => Some(Buffer::Input),
            };
            if let Some(buffer) = filled {
                let len = lens[buffer as usize] as u64;
                buffers[buffer as usize] = (0..len).map(|element| case.input(rank, element)).collect();
            }
            nodes.push(Node {
                steps: steps(rank)?,
                buffers,
                used: BUFFERS.map(|_| Vec::new()),
                lens,
                sends: Vec::new(),
                recvs: Vec::new(),
                is_waiting: false,
                is_done: false,
                clock: 0,
                most_pending: 0,
            });
        }
        let channels = std::iter::repeat_with(|| None).take((case.ranks * case.ranks) as usize).collect();
        Ok(Machine { case, nodes, channels, with_contents })
    }

    fn run(&mut self) -> Result<(), Flaw> {
        loop {
            let mut has_moved = false;
            for rank in 0..self.case.ranks {
                while self.step(rank)? {
                    has_moved = true;
                }
            }
            if !has_moved {
                return match (0u32..).zip(&self.nodes).find(|(_, node)| !node.is_done) {
                    Some((rank, _)) => Err(Flaw::Deadlock { rank }),
                    None => Ok(()),
                };
            }
        }
    }

    /// Moves a rank on by one step if it can.
    fn step(&mut self, rank: u32) -> Result<bool, Flaw> {
        let node = &mut self.nodes[rank as usize];
        if node.is_done {
            return Ok(false);
        }
        if node.is_waiting {
            return self.try_wait(rank);
        }
        match node.steps.next() {
            None if node.sends.is_empty() && node.recvs.is_empty() => node.is_done = true,
            None => return Err(Flaw::NotWaited { rank }),
            Some(Step::Wait) => node.is_waiting = true,
            Some(Step::Send { to, data }) => self.post_send(rank, to, data)?,
            Some(Step::Recv { from, data, combine }) => self.post_recv(rank, from, data, combine)?,
            Some(Step::Local { from, into, combine }) => {
                if from.len != into.len {
                    return Err(Flaw::Length { rank, got: from.len, expected: into.len });
                }
                if self.with_contents {
                    let values = self.read(rank, from)?;
                    self.touch(rank, into, Use::None)?;
                    self.write(rank, into, combine, values)?;
                }
            }
        }
        Ok(true)
    }

    fn post_send(&mut self, rank: u32, to: u32, data: Data) -> Result<(), Flaw> {
        let values = if self.with_contents { self.read(rank, data)? } else { Vec::new() };
        self.touch(rank, data, Use::Read)?;
        let at = self.channel(rank, rank, to)?;
        let (channel, node) = (self.channels[at].get_or_insert_default(), &mut self.nodes[rank as usize]);
        node.sends.push((at, channel.sent.len(), data));
        channel.sent.push(node.clock);
        channel.bytes += data.len;
        channel.contents.push_back((data.len, values));
        Ok(())
    }

    fn post_recv(&mut self, rank: u32, from: u32, data: Data, combine: Combine) -> Result<(), Flaw> {
        // What is reduced waits elsewhere until the wait, so it may lie under data being sent.
        if combine == Combine::Store {
            self.touch(rank, data, Use::Written)?;
        }
        let at = self.channel(rank, from, rank)?;
        let (channel, node) = (self.channels[at].get_or_insert_default(), &mut self.nodes[rank as usize]);
        node.recvs.push((at, channel.posted.len(), data, combine));
        channel.posted.push(node.clock);
        Ok(())
    }

    fn channel(&self, rank: u32, from: u32, to: u32) -> Result<usize, Flaw> {
        let ranks = self.case.ranks;
        if from >= ranks || to >= ranks || from == to {
            return Err(Flaw::Peer { rank, peer: from.max(to) });
        }
        Ok((from * ranks + to) as usize)
    }

    fn try_wait(&mut self, rank: u32) -> Result<bool, Flaw> {
        let node = &mut self.nodes[rank as usize];
        let met_at = |at: usize, nth: usize, times: fn(&Channel) -> &[u64]| {
            self.channels[at].as_ref().and_then(|channel| times(channel).get(nth)).copied()
        };
        let sends = node.sends.iter().map(|&(at, nth, _)| met_at(at, nth, |channel| &channel.posted));
        let recvs = node.recvs.iter().map(|&(at, nth, ..)| met_at(at, nth, |channel| &channel.sent));
        let Some(met) = sends.chain(recvs).collect::<Option<Vec<u64>>>() else { return Ok(false) };
        node.most_pending = node.most_pending.max(met.len());
        node.clock = met.iter().map(|&met| met.max(node.clock) + 1).max().unwrap_or(node.clock);
        node.is_waiting = false;
        let (sends, recvs) = (std::mem::take(&mut node.sends), std::mem::take(&mut node.recvs));
        for data in sends.iter().map(|send| send.2).chain(recvs.iter().map(|recv| recv.2)) {
            self.release(rank, data)?;
        }
        for (at, _, data, combine) in recvs {
            // Posted in order, completed in order: the front one is ours.
            let contents = self.channels[at].as_mut().and_then(|channel| channel.contents.pop_front());
            let Some((len, values)) = contents else { continue };
            if self.with_contents {
                if len != data.len {
                    return Err(Flaw::Length { rank, got: len, expected: data.len });
                }
                self.write(rank, data, combine, values)?;
            }
        }
        Ok(true)
    }

    /// The elements' numbers, in runs.
    fn runs(&self, rank: u32, data: Data) -> Result<Vec<Range<usize>>, Flaw> {
        let unit = u64::from(self.case.unit);
        let size = self.nodes[rank as usize].lens[data.buffer as usize] as u64 * unit;
        let mut runs = Vec::new();
        let mut found = 0;
        for (offset, len) in data.pieces(size) {
            if offset % unit != 0 || len % unit != 0 || offset + len > size {
                return Err(Flaw::Outside { rank, data });
            }
            found += len;
            runs.push((offset / unit) as usize..((offset + len) / unit) as usize);
        }
        if found == data.len { Ok(runs) } else { Err(Flaw::Outside { rank, data }) }
    }

    fn read(&self, rank: u32, data: Data) -> Result<Vec<Value>, Flaw> {
        let runs = self.runs(rank, data)?;
        let node = &self.nodes[rank as usize];
        let (buffer, used) = (&node.buffers[data.buffer as usize], &node.used[data.buffer as usize]);
        let mut values = Vec::with_capacity(runs.iter().map(Range::len).sum());
        for run in runs {
            if used.get(run.clone()).is_some_and(|used| used.contains(&Use::Written)) {
                return Err(Flaw::InUse { rank, data });
            }
            let run = buffer.get(run).ok_or(Flaw::Unset { rank, data })?;
            values.extend_from_slice(run);
        }
        match values.iter().any(|value| value.of == 0) {
            true => Err(Flaw::Unset { rank, data }),
            false => Ok(values),
        }
    }

    /// Marks elements as used by a message; reading twice is the only way to share.
    fn touch(&mut self, rank: u32, data: Data, used: Use) -> Result<(), Flaw> {
        if !self.with_contents {
            return Ok(());
        }
        for run in self.runs(rank, data)? {
            for mark in &mut self.marks(rank, data)[run] {
                match (*mark, used) {
                    (Use::None, _) => *mark = used,
                    (Use::Read, Use::Read) => {}
                    _ => return Err(Flaw::InUse { rank, data }),
                }
            }
        }
        Ok(())
    }

    /// Takes the marks of a finished message away.
    fn release(&mut self, rank: u32, data: Data) -> Result<(), Flaw> {
        if self.with_contents {
            for run in self.runs(rank, data)? {
                self.marks(rank, data)[run].fill(Use::None);
            }
        }
        Ok(())
    }

    fn marks(&mut self, rank: u32, data: Data) -> &mut [Use] {
        let node = &mut self.nodes[rank as usize];
        let marks = &mut node.used[data.buffer as usize];
        marks.resize(node.lens[data.buffer as usize], Use::None);
        marks
    }

    fn write(&mut self, rank: u32, data: Data, combine: Combine, values: Vec<Value>) -> Result<(), Flaw> {
        let runs = self.runs(rank, data)?;
        let node = &mut self.nodes[rank as usize];
        let buffer = &mut node.buffers[data.buffer as usize];
        buffer.resize(node.lens[data.buffer as usize], Value::default());
        for (element, value) in runs.into_iter().flatten().zip(values) {
            let present = &mut buffer[element];
            let (a, b) = match combine {
                Combine::Store => {
                    *present = value;
                    continue;
                }
                Combine::Before => (value, *present),
                Combine::After => (*present, value),
            };
            *present = Value::reduced(a, b).ok_or(Flaw::BadReduction { rank, a, b })?;
        }
        Ok(())
    }

    fn check(self) -> Result<Proof, Flaw> {
        let ranks = self.case.ranks;
        let pairs: Vec<(u64, u64)> = self
            .channels
            .iter()
            .map(|channel| channel.as_ref().map_or((0, 0), |c| (c.sent.len() as u64, c.bytes)))
            .collect();
        for (at, channel) in (0u32..).zip(&self.channels) {
            if channel.as_ref().is_some_and(|channel| channel.sent.len() != channel.posted.len()) {
                return Err(Flaw::Unreceived { from: at / ranks, to: at % ranks });
            }
        }
        let mut ordered = true;
        for (rank, node) in (0u32..).zip(&self.nodes) {
            let output = &node.buffers[Buffer::Output as usize];
            for element in 0..node.lens[Buffer::Output as usize] {
                let got = output.get(element).copied().unwrap_or_default();
                let element = element as u64;
                let Some(expected) = self.case.expected(rank, element) else { break };
                ordered &= !got.disordered;
                if (Value { disordered: false, ..got }) != expected {
                    return Err(Flaw::Wrong { rank, element, got, expected });
                }
            }
        }
        Ok(Proof {
            messages: pairs.iter().map(|pair| pair.0).sum(),
            bytes: pairs.iter().map(|pair| pair.1).sum(),
            most_sent: pairs
                .chunks(ranks as usize)
                .map(|row| row.iter().map(|pair| pair.0).sum())
                .max()
                .unwrap_or(0),
            most_pending: self.nodes.iter().map(|node| node.most_pending).max().unwrap_or(0),
            rounds: self.nodes.iter().map(|node| node.clock).max().unwrap_or(0),
            ordered,
            pairs,
        })
    }
}

mod tests {
    use super::*;
    use collectives::{Algorithm, Layout};

    /// What the proof says of a schedule whose steps have been tampered with.
    fn tampered(operation: Operation, algorithm: Algorithm, tamper: impl Fn(u32, &mut Vec<Step>)) -> Flaw {
        let sizes = [Sizes::Bytes(6)];
        let case =
            Case { operation, ranks: 6, root: 0, unit: 1, choice: Choice::plain(algorithm), sizes: &sizes };
        assert!(case.prove().is_ok());
        case.prove_steps(|rank| {
            let mut steps: Vec<Step> =
                collectives::steps(case.member(rank), case.choice, sizes[0]).unwrap().collect();
            tamper(rank, &mut steps);
            Ok(steps.into_iter())
        })
        .unwrap_err()
    }

    fn position(steps: &[Step], wanted: fn(&Step) -> bool) -> usize {
        steps.iter().position(wanted).unwrap()
    }

    #[test]
    fn a_missing_send_is_a_deadlock() {
        let flaw = tampered(Operation::Bcast, Algorithm::Binomial, |rank, steps| {
            if rank == 0 {
                steps.remove(position(steps, |step| matches!(step, Step::Send { .. })));
            }
        });
        assert!(matches!(flaw, Flaw::Deadlock { .. }), "{flaw}");
    }

    #[test]
    fn sending_before_receiving_is_a_deadlock_without_buffers() {
        // Everybody waits for its send before it posts its receive.
        let flaw = tampered(Operation::Allgather, Algorithm::Ring, |_, steps| {
            let send = position(steps, |step| matches!(step, Step::Send { .. }));
            steps.insert(send + 1, Step::Wait);
        });
        assert!(matches!(flaw, Flaw::Deadlock { .. }), "{flaw}");
    }

    #[test]
    fn a_missing_wait_is_found() {
        let flaw = tampered(Operation::Allgather, Algorithm::Ring, |rank, steps| {
            if rank == 3 {
                steps.remove(position(steps, |step| *step == Step::Wait));
            }
        });
        assert!(matches!(flaw, Flaw::InUse { rank: 3, .. } | Flaw::Unset { rank: 3, .. }), "{flaw}");
        let flaw = tampered(Operation::Allgather, Algorithm::Ring, |_, steps| {
            steps.pop();
        });
        assert!(matches!(flaw, Flaw::NotWaited { .. }), "{flaw}");
    }

    #[test]
    fn a_message_nobody_receives_is_found() {
        let flaw = tampered(Operation::Gather, Algorithm::Linear, |rank, steps| {
            if rank == 0 {
                // The root forgets rank 5, whose blocking send then never ends.
                steps.retain(|step| !matches!(step, Step::Recv { from: 5, .. }));
            }
        });
        assert!(matches!(flaw, Flaw::Deadlock { rank: 5 }), "{flaw}");
        let flaw = tampered(Operation::Gather, Algorithm::Linear, |rank, steps| {
            if rank == 0 {
                let data = Data { buffer: Buffer::Output, offset: 0, len: 0, layout: Layout::Cyclic };
                steps.insert(0, Step::Recv { from: 0, data, combine: Combine::Store });
            }
        });
        assert!(matches!(flaw, Flaw::Peer { rank: 0, .. }), "{flaw}");
    }

    #[test]
    fn reducing_twice_is_found() {
        let flaw = tampered(Operation::Allreduce, Algorithm::RecursiveDoubling, |rank, steps| {
            if rank == 5 {
                let local = steps[position(steps, |step| matches!(step, Step::Local { .. }))];
                let Step::Local { from, into, .. } = local else { return };
                steps.insert(1, Step::Local { from, into, combine: Combine::After });
            }
        });
        assert!(matches!(flaw, Flaw::BadReduction { rank: 5, .. }), "{flaw}");
    }

    #[test]
    fn a_result_left_out_is_found() {
        let flaw = tampered(Operation::Scatter, Algorithm::Binomial, |rank, steps| {
            if rank == 4 {
                steps.pop();
            }
        });
        assert!(matches!(flaw, Flaw::Wrong { rank: 4, .. }), "{flaw}");
    }

    #[test]
    fn a_wrong_length_is_found() {
        let flaw = tampered(Operation::Bcast, Algorithm::Linear, |rank, steps| {
            if let (0, Step::Send { data, .. }) = (rank, &mut steps[0]) {
                data.len -= 1;
            }
        });
        assert!(matches!(flaw, Flaw::Length { got: 5, expected: 6, .. }), "{flaw}");
    }

    #[test]
    fn order_is_seen() {
        let sizes = [Sizes::Bytes(6)];
        let ordered = |algorithm, root| {
            let choice = Choice::plain(algorithm);
            let case = Case { operation: Operation::Reduce, ranks: 6, root, unit: 1, choice, sizes: &sizes };
            case.prove().unwrap().ordered
        };
        assert!(ordered(Algorithm::Binomial, 0));
        assert!(!ordered(Algorithm::Binomial, 2));
        assert!(ordered(Algorithm::Linear, 2));
        assert!(!ordered(Algorithm::Binary, 0));
    }
}

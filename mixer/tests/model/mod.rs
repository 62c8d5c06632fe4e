//! A small MPI in memory. It makes up a program while it executes it: at each step a task that is free does
//! something that MPI allows, or the network delivers a message. What comes out is the events that tracing
//! would have seen, and, because the model knows which send met which receive, the records that a trace must have.

use crate::capture::{Happened, What};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::collections::{HashMap, VecDeque};
use vef_format::capture::event::*;
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// What a record waits for. Messages are the how manyth of their sender's point-to-point records, collectives the
/// how manyth operation of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Start,
    Own(usize),
    Received { sender: u32, message: usize },
    Collective(usize),
}

/// A record that the trace must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Message {
        dst: u32,
        bytes: u64,
        awaited: bool,
        after: After,
        time: u64,
    },
    Collective {
        operation: usize,
        members: Vec<u32>,
        op: Operation,
        send: u64,
        recv: u64,
        after: After,
        time: u64,
    },
}

/// What the model gives.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) events: Vec<Vec<Happened>>,
    pub(crate) expected: Vec<Vec<Expected>>,
}

/// A communicator: members in its rank order and each one's number for it.
struct Comm {
    members: Vec<u32>,
    numbers: HashMap<u32, CommId>,
    children: u32,
}

#[derive(Clone, Copy)]
struct Message {
    comm: usize,
    src: u32,
    tag: i32,
    /// The how manyth point-to-point record of its sender; index into its expected records.
    number: usize,
    record: usize,
}

/// A receive that was posted.
struct Posted {
    comm: usize,
    source: Option<u32>,
    tag: Option<i32>,
    met: Option<Message>,
    awaited: bool,
}

#[derive(Clone, Copy)]
enum Request {
    Send,
    Receive(usize),
    Collective(usize),
}

/// What a task is in the middle of.
enum Blocked {
    Receive { start: u64, posted: usize, send: Option<Send> },
    Wait { start: u64, request: RequestId, posted: usize },
}

#[derive(Default)]
struct Task {
    events: Vec<Happened>,
    expected: Vec<Expected>,
    points: usize,
    previous: Option<(u64, After)>,
    requests: u64,
    open: Vec<(RequestId, Request)>,
    posted: Vec<Posted>,
    /// Delivered messages that no receive has taken, in order of delivery.
    waiting: Vec<Message>,
    blocked: Option<Blocked>,
    comms: u32,
}

struct World {
    random: SmallRng,
    now: u64,
    tasks: Vec<Task>,
    comms: Vec<Comm>,
    network: HashMap<(u32, u32), VecDeque<Message>>,
    collectives: usize,
}

const TAGS: i32 = 3;

/// Makes up and executes a program of about `steps` calls on `tasks` tasks.
pub(crate) fn run(seed: u64, tasks: u32, steps: usize) -> Run {
    let mut world = World {
        random: SmallRng::seed_from_u64(seed),
        now: 1000,
        tasks: (0..tasks).map(|_| Task::default()).collect(),
        comms: Vec::new(),
        network: HashMap::new(),
        collectives: 0,
    };
    world.begin();
    for _ in 0..steps {
        world.step();
    }
    world.end();
    let (events, expected) = world.tasks.into_iter().map(|task| (task.events, task.expected)).unzip();
    Run { events, expected }
}

impl World {
    fn tick(&mut self) -> u64 {
        self.now += self.random.random_range(1..60);
        self.now
    }

    fn begin(&mut self) {
        let all: Vec<u32> = (0..self.tasks.len() as u32).collect();
        for &rank in &all {
            let start = self.tick();
            let end = self.tick();
            self.tasks[rank as usize].previous = Some((start, After::Start));
            self.happened(rank, start, end, What::Plain(Action::Init));
        }
        self.communicator(Origin::World, None, all);
    }

    /// Makes a communicator known to its members.
    fn communicator(&mut self, origin: Origin, parent: Option<usize>, members: Vec<u32>) {
        let mut numbers = HashMap::new();
        for &rank in &members {
            let number = CommId(self.tasks[rank as usize].comms);
            self.tasks[rank as usize].comms += 1;
            numbers.insert(rank, number);
            let origin = match (origin, parent) {
                (Origin::Child { ordinal, .. }, Some(parent)) => {
                    Origin::Child { parent: self.comms[parent].numbers[&rank], ordinal }
                }
                (origin, _) => origin,
            };
            let world = members.iter().map(|&member| Rank(member)).collect();
            let start = self.tick();
            self.happened(rank, start, start, What::Communicator { id: number, origin, members: world });
        }
        self.comms.push(Comm { members, numbers, children: 0 });
    }

    fn happened(&mut self, rank: u32, start: u64, end: u64, what: What) {
        self.tasks[rank as usize].events.push(Happened { start, end, thread: 0, what });
    }

    /// A point-to-point record of `rank` at `start`.
    fn point(&mut self, rank: u32, start: u64, dst: u32, bytes: u64) -> usize {
        let task = &mut self.tasks[rank as usize];
        let (end, after) = task.previous.unwrap();
        task.expected.push(Expected::Message { dst, bytes, awaited: false, after, time: start - end });
        let number = task.points;
        task.points += 1;
        task.previous = Some((start, After::Own(number)));
        number
    }

    fn mark(&mut self, rank: u32, start: u64) {
        self.point(rank, start, rank, 0);
    }

    fn step(&mut self) {
        if self.random.random_bool(0.35) && self.deliver() {
            return;
        }
        let free = self.free();
        // Who blocks is soon sent what it waits for, or few would ever do anything again.
        let Some(&rank) = free.choose(&mut self.random) else { panic!("the model is stuck") };
        if free.len() < self.tasks.len() && self.random.random_bool(0.3) {
            self.unblock_one();
            return;
        }
        match self.random.random_range(0..100) {
            0..30 => self.send(rank),
            30..52 => self.post(rank),
            52..66 => self.receive(rank),
            66..84 => self.complete(rank),
            84..88 => self.other(rank),
            88..97 => self.collective(),
            _ => self.split(),
        }
    }

    fn free(&self) -> Vec<u32> {
        (0..self.tasks.len() as u32).filter(|&rank| self.tasks[rank as usize].blocked.is_none()).collect()
    }

    /// A communicator of `rank` and a member of it that is not blocked.
    fn partner(&mut self, rank: u32) -> (usize, u32) {
        let comms: Vec<usize> =
            (0..self.comms.len()).filter(|&at| self.comms[at].numbers.contains_key(&rank)).collect();
        let comm = *comms.choose(&mut self.random).unwrap();
        let free: Vec<u32> = self.comms[comm]
            .members
            .iter()
            .copied()
            .filter(|&member| self.tasks[member as usize].blocked.is_none())
            .collect();
        (comm, *free.choose(&mut self.random).unwrap())
    }

    fn rank_in(&self, comm: usize, task: u32) -> CommRank {
        CommRank(self.comms[comm].members.iter().position(|&member| member == task).unwrap() as u32)
    }

    fn request(&mut self, rank: u32, request: Request) -> RequestId {
        let task = &mut self.tasks[rank as usize];
        let id = RequestId { thread: 0, number: task.requests };
        task.requests += 1;
        task.open.push((id, request));
        id
    }

    /// The call, but not its event.
    fn sending(&mut self, rank: u32, start: u64, comm: usize, dst: u32, tag: i32) -> Send {
        // A message to itself without bytes that nobody waits for has no line; the unit tests have that.
        let bytes = if dst == rank { self.random.random_range(1..9) } else { self.random.random_range(0..9) };
        let number = self.point(rank, start, dst, bytes);
        let record = self.tasks[rank as usize].expected.len() - 1;
        let message = Message { comm, src: rank, tag, number, record };
        self.network.entry((rank, dst)).or_default().push_back(message);
        Send {
            comm: self.comms[comm].numbers[&rank],
            dest: self.rank_in(comm, dst),
            tag,
            bytes: Bytes(bytes),
            datatype: DatatypeId(0),
            mode: SendMode::Standard,
            request: None,
        }
    }

    fn send_to(&mut self, rank: u32, comm: usize, dst: u32, tag: i32) {
        let start = self.tick();
        let mut send = self.sending(rank, start, comm, dst, tag);
        if self.random.random_bool(0.5) {
            send.request = Some(self.request(rank, Request::Send));
        }
        let end = self.tick();
        self.done(rank, end, None);
        self.happened(rank, start, end, What::Plain(Action::Send(send)));
    }

    fn send(&mut self, rank: u32) {
        let (comm, dst) = self.partner(rank);
        let tag = self.random.random_range(0..TAGS);
        self.send_to(rank, comm, dst, tag);
    }

    /// The previous event ended at `end`; with `after` if it is not the record made last.
    fn done(&mut self, rank: u32, end: u64, after: Option<After>) {
        let previous = &mut self.tasks[rank as usize].previous;
        *previous = previous.map(|(_, before)| (end, after.unwrap_or(before)));
    }

    /// A receive takes its place: for `partner`'s message, maybe with wildcards.
    fn posting(&mut self, rank: u32, comm: usize, partner: u32, wild: bool) -> usize {
        let source = (!wild || self.random.random_bool(0.6)).then_some(partner);
        let tag = (!wild || self.random.random_bool(0.6)).then(|| self.random.random_range(0..TAGS));
        let mut posted = Posted { comm, source, tag, met: None, awaited: false };
        let waiting = &mut self.tasks[rank as usize].waiting;
        if let Some(at) = waiting.iter().position(|message| posted.takes(message)) {
            posted.met = Some(waiting.remove(at));
        }
        let all = &mut self.tasks[rank as usize].posted;
        all.push(posted);
        all.len() - 1
    }

    fn post_with(&mut self, rank: u32, comm: usize, partner: u32, wild: bool) -> (RequestId, usize) {
        let start = self.tick();
        let posted = self.posting(rank, comm, partner, wild);
        let request = self.request(rank, Request::Receive(posted));
        let Posted { source, tag, .. } = self.tasks[rank as usize].posted[posted];
        let action = Action::PostReceive(PostReceive {
            comm: self.comms[comm].numbers[&rank],
            source: source.map(|source| self.rank_in(comm, source)),
            tag,
            bytes: Bytes(100),
            datatype: DatatypeId(0),
            request,
        });
        let end = self.tick();
        self.happened(rank, start, end, What::Plain(action));
        (request, posted)
    }

    fn post(&mut self, rank: u32) {
        let (comm, partner) = self.partner(rank);
        let wild = self.random.random_bool(0.5);
        self.post_with(rank, comm, partner, wild);
    }

    /// A blocking receive or `Sendrecv`: blocks, unless its message is there.
    fn receive(&mut self, rank: u32) {
        let (comm, partner) = self.partner(rank);
        if partner == rank {
            return;
        }
        let start = self.tick();
        let send = self.random.random_bool(0.3).then(|| {
            let tag = self.random.random_range(0..TAGS);
            self.sending(rank, start, comm, partner, tag)
        });
        let wild = self.random.random_bool(0.5);
        let posted = self.posting(rank, comm, partner, wild);
        self.tasks[rank as usize].posted[posted].awaited = true;
        self.tasks[rank as usize].blocked = Some(Blocked::Receive { start, posted, send });
        self.go_on(rank);
    }

    /// Lets `rank` leave its blocking call if what it waits for has come.
    fn go_on(&mut self, rank: u32) {
        let task = &mut self.tasks[rank as usize];
        let (Some(Blocked::Receive { posted, .. }) | Some(Blocked::Wait { posted, .. })) = task.blocked
        else {
            return;
        };
        let Some(message) = task.posted[posted].met else { return };
        let Posted { comm, source, tag, .. } = task.posted[posted];
        let blocked = task.blocked.take().unwrap();
        let end = self.tick();
        match blocked {
            Blocked::Receive { start, send, .. } => {
                self.mark(rank, start);
                let receive = Receive {
                    comm: self.comms[comm].numbers[&rank],
                    source: self.rank_in(comm, message.src),
                    tag: message.tag,
                    any_source: source.is_none(),
                    any_tag: tag.is_none(),
                    bytes: Bytes(100),
                    datatype: DatatypeId(0),
                };
                let action = match send {
                    Some(send) => Action::Exchange { send, receive },
                    None => Action::Receive(receive),
                };
                self.happened(rank, start, end, What::Plain(action));
            }
            Blocked::Wait { start, request, .. } => {
                self.mark(rank, start);
                let completion = Completion { request, outcome: self.outcome(rank, posted) };
                self.happened(rank, start, end, What::Complete(vec![completion]));
            }
        }
        self.done(rank, end, Some(self.reception(message)));
        self.awaited(message);
    }

    fn reception(&self, message: Message) -> After {
        After::Received { sender: message.src, message: message.number }
    }

    fn awaited(&mut self, message: Message) {
        match &mut self.tasks[message.src as usize].expected[message.record] {
            Expected::Message { awaited, .. } => *awaited = true,
            Expected::Collective { .. } => unreachable!(),
        }
    }

    fn outcome(&self, rank: u32, posted: usize) -> Outcome {
        let posted = &self.tasks[rank as usize].posted[posted];
        match (posted.source, posted.tag) {
            (Some(_), Some(_)) => Outcome::Done,
            _ => {
                let message = posted.met.unwrap();
                Outcome::Received {
                    source: self.rank_in(posted.comm, message.src),
                    tag: message.tag,
                    bytes: None,
                }
            }
        }
    }

    /// A call of the wait family, or a cancellation, or a request that is freed.
    fn complete(&mut self, rank: u32) {
        let task = &mut self.tasks[rank as usize];
        if task.open.is_empty() {
            return;
        }
        let at = self.random.random_range(0..task.open.len());
        if let (request, Request::Receive(posted)) = task.open[at] {
            let Posted { comm, source, tag, met, .. } = task.posted[posted];
            match self.random.random_range(0..10) {
                0 if met.is_none() => {
                    // Cancelled: it takes no message any more.
                    task.open.remove(at);
                    task.posted[posted].comm = usize::MAX;
                    let start = self.tick();
                    let completion = Completion { request, outcome: Outcome::Cancelled };
                    self.happened(rank, start, start, What::Complete(vec![completion]));
                    return;
                }
                1 if source.is_some() && tag.is_some() => {
                    task.open.remove(at);
                    let start = self.tick();
                    self.happened(rank, start, start, What::Plain(Action::Forget(request)));
                    return;
                }
                2..6 if met.is_none() => {
                    // Waits for it, if somebody who is free can send the message.
                    let able =
                        |member: &u32| *member != rank && self.tasks[*member as usize].blocked.is_none();
                    let somebody = match source {
                        Some(source) => able(&source),
                        None => self.comms[comm].members.iter().any(able),
                    };
                    if somebody {
                        let task = &mut self.tasks[rank as usize];
                        task.open.remove(at);
                        task.posted[posted].awaited = true;
                        let start = self.tick();
                        self.tasks[rank as usize].blocked = Some(Blocked::Wait { start, request, posted });
                    }
                    return;
                }
                _ => {}
            }
        }
        self.wait_all(rank);
    }

    /// Completes some of what can complete, in any order.
    fn wait_all(&mut self, rank: u32) {
        let task = &mut self.tasks[rank as usize];
        let mut ready: Vec<_> = (task.open.iter().copied())
            .filter(|(_, request)| match request {
                Request::Receive(posted) => task.posted[*posted].met.is_some(),
                Request::Send | Request::Collective(_) => true,
            })
            .collect();
        ready.shuffle(&mut self.random);
        ready.truncate(self.random.random_range(1..6));
        if ready.is_empty() {
            return;
        }
        let start = self.tick();
        let mut completions = Vec::new();
        let mut any = false;
        for (request, kind) in ready {
            self.tasks[rank as usize].open.retain(|&(open, _)| open != request);
            let mut outcome = Outcome::Done;
            let after = match kind {
                Request::Send => None,
                Request::Receive(posted) => {
                    outcome = self.outcome(rank, posted);
                    self.tasks[rank as usize].posted[posted].awaited = true;
                    let message = self.tasks[rank as usize].posted[posted].met.unwrap();
                    self.awaited(message);
                    Some(self.reception(message))
                }
                Request::Collective(number) => Some(After::Collective(number)),
            };
            if let Some(after) = after {
                self.mark(rank, start);
                self.done(rank, start, Some(after));
                any = true;
            }
            completions.push(Completion { request, outcome });
        }
        let end = self.tick();
        if any {
            self.done(rank, end, None);
        }
        self.happened(rank, start, end, What::Complete(completions));
    }

    /// Delivers a message that is under way, if there is one.
    fn deliver(&mut self) -> bool {
        let mut links: Vec<_> =
            self.network.iter().filter(|(_, queue)| !queue.is_empty()).map(|(&link, _)| link).collect();
        links.sort_unstable();
        let Some(&link) = links.choose(&mut self.random) else { return false };
        let message = self.network.get_mut(&link).unwrap().pop_front().unwrap();
        let task = &mut self.tasks[link.1 as usize];
        match task.posted.iter_mut().find(|posted| posted.met.is_none() && posted.takes(&message)) {
            Some(posted) => {
                posted.met = Some(message);
                self.go_on(link.1);
            }
            None => task.waiting.push(message),
        }
        true
    }

    /// A collective whose members are all free.
    fn collective(&mut self) {
        let comm = self.random.random_range(0..self.comms.len());
        let members = self.comms[comm].members.clone();
        if members.iter().any(|&member| self.tasks[member as usize].blocked.is_some()) {
            return;
        }
        let op = *[Operation::Barrier, Operation::Bcast, Operation::Allreduce, Operation::Reduce]
            .choose(&mut self.random)
            .unwrap();
        let root = op.is_rooted().then(|| CommRank(self.random.random_range(0..members.len() as u32)));
        let blocking = self.random.random_bool(0.6);
        let number = self.collectives;
        if members.len() > 1 {
            self.collectives += 1;
        }
        let bytes = self.random.random_range(0..50);
        let mut order = members.clone();
        order.shuffle(&mut self.random);
        // Everybody enters before anybody leaves.
        let starts: Vec<_> = order.iter().map(|&rank| (rank, self.tick())).collect();
        for (rank, start) in starts {
            let at_root = root == Some(self.rank_in(comm, rank));
            let (send, recv) = match op {
                Operation::Barrier => (0, 0),
                Operation::Allreduce => (bytes, bytes),
                Operation::Bcast if at_root => (bytes, 0),
                Operation::Bcast => (0, bytes),
                _ if at_root => (0, bytes),
                _ => (bytes, 0),
            };
            let single = members.len() == 1;
            let request = (!blocking).then(|| {
                let kind = if single { Request::Send } else { Request::Collective(number) };
                self.request(rank, kind)
            });
            let end = self.tick();
            if !single {
                if !blocking {
                    self.mark(rank, start);
                }
                let task = &mut self.tasks[rank as usize];
                let (before, after) = task.previous.unwrap();
                task.expected.push(Expected::Collective {
                    operation: number,
                    members: members.clone(),
                    op,
                    send,
                    recv,
                    after,
                    time: start - before,
                });
                self.done(rank, end, blocking.then_some(After::Collective(number)));
            }
            let call = Collective {
                operation: op,
                comm: self.comms[comm].numbers[&rank],
                root,
                amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
                count: 0,
                datatype: DatatypeId(0),
                recv_datatype: None,
                request,
                send_counts: &[],
                recv_counts: &[],
            };
            self.happened(rank, start, end, What::Plain(Action::Collective(call)));
        }
    }

    /// `MPI_Comm_split`: every member gets a part.
    fn split(&mut self) {
        let comm = self.random.random_range(0..self.comms.len());
        let mut members = self.comms[comm].members.clone();
        if self.comms.len() > 8 || members.iter().any(|&rank| self.tasks[rank as usize].blocked.is_some()) {
            return;
        }
        let ordinal = self.comms[comm].children;
        self.comms[comm].children += 1;
        members.shuffle(&mut self.random);
        let cut = self.random.random_range(0..=members.len());
        for part in [&members[..cut], &members[cut..]] {
            if !part.is_empty() {
                self.communicator(Origin::Child { parent: CommId(0), ordinal }, Some(comm), part.to_vec());
            }
        }
    }

    /// Calls that leave no record.
    fn other(&mut self, rank: u32) {
        let start = self.tick();
        let action = match self.random.random_bool(0.5) {
            true => Action::Other { bytes: Bytes(7), detail: Detail::None },
            false => Action::Probe { comm: CommId(0), source: CommRank(0), tag: 0 },
        };
        let end = self.tick();
        self.happened(rank, start, end, What::Plain(action));
    }

    /// Somebody who is free sends what a blocked task waits for.
    fn unblock_one(&mut self) {
        let tasks = self.tasks.len() as u32;
        let first = self.random.random_range(0..tasks);
        let wanted = (first..first + tasks).map(|rank| rank % tasks).find_map(|rank| {
            let task = &self.tasks[rank as usize];
            let posted = match task.blocked.as_ref()? {
                Blocked::Receive { posted, .. } | Blocked::Wait { posted, .. } => &task.posted[*posted],
            };
            let sender = self.comms[posted.comm].members.iter().copied().find(|&member| {
                posted.source.is_none_or(|source| source == member)
                    && self.tasks[member as usize].blocked.is_none()
            })?;
            Some((rank, sender, posted.comm, posted.tag.unwrap_or(0)))
        });
        match wanted {
            Some((rank, sender, comm, tag)) => self.send_to(sender, comm, rank, tag),
            None => assert!(self.tasks.iter().all(|task| task.blocked.is_none()), "the model is stuck"),
        }
    }

    /// Everybody comes to an end: what is under way is delivered, every message finds a receive and every receive
    /// a message.
    fn end(&mut self) {
        loop {
            while self.deliver() {}
            if self.tasks.iter().any(|task| task.blocked.is_some()) {
                self.unblock_one();
                continue;
            }
            let lonely = (0..self.tasks.len() as u32).find_map(|rank| {
                let open = |posted: &&Posted| posted.met.is_none() && posted.comm != usize::MAX;
                let posted = self.tasks[rank as usize].posted.iter().find(open)?;
                let source = posted.source.unwrap_or(self.comms[posted.comm].members[0]);
                Some((source, posted.comm, rank, posted.tag.unwrap_or(1)))
            });
            if let Some((source, comm, rank, tag)) = lonely {
                self.send_to(source, comm, rank, tag);
                continue;
            }
            let waiting = (0..self.tasks.len() as u32)
                .find_map(|rank| Some((rank, *self.tasks[rank as usize].waiting.first()?)));
            let Some((rank, message)) = waiting else { break };
            // From anybody, with any tag; the wait comes below.
            let start = self.tick();
            self.tasks[rank as usize].waiting.remove(0);
            let met = Some(message);
            let posted = Posted { comm: message.comm, source: None, tag: None, met, awaited: false };
            self.tasks[rank as usize].posted.push(posted);
            let posted = self.tasks[rank as usize].posted.len() - 1;
            let request = self.request(rank, Request::Receive(posted));
            let action = Action::PostReceive(PostReceive {
                comm: self.comms[message.comm].numbers[&rank],
                source: None,
                tag: None,
                bytes: Bytes(100),
                datatype: DatatypeId(0),
                request,
            });
            self.happened(rank, start, start, What::Plain(action));
        }
        for rank in 0..self.tasks.len() as u32 {
            // Nobody must forget a collective, or a receive with a wildcard; some others stay open to the end.
            while self.tasks[rank as usize].open.iter().any(|(_, request)| match request {
                Request::Receive(posted) => {
                    let posted = &self.tasks[rank as usize].posted[*posted];
                    posted.source.is_none() || posted.tag.is_none()
                }
                Request::Collective(_) => true,
                Request::Send => false,
            }) {
                self.wait_all(rank);
            }
            let start = self.tick();
            let end = self.tick();
            self.mark(rank, start);
            self.done(rank, end, None);
            self.happened(rank, start, end, What::Plain(Action::Finalize));
        }
    }
}

impl Posted {
    fn takes(&self, message: &Message) -> bool {
        self.comm == message.comm
            && self.source.is_none_or(|source| source == message.src)
            && self.tag.is_none_or(|tag| tag == message.tag)
    }
}

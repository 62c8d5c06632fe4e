//! A small MPI in memory. It generates a program while it executes it: at each step a free thread makes a call that MPI allows, or
//! the network delivers a message. The results are the events that tracing would record and, because the model knows which
//! send met which receive, the records of the right trace.
//!
//! A thread blocks only for a task with another free thread, so the program always completes: the waits are followed from a
//! blocked thread to a free one, which then does what the blocked one waits for.

use crate::capture::{Happened, What};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::collections::{HashMap, HashSet, VecDeque};
use vef_format::capture::event::*;
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// The dependency of a record. Messages are identified by their index among the sender's point-to-point records, collectives by
/// their index among the operations of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum After {
    Start,
    Own(usize),
    Received { sender: u32, message: usize },
    Collective(usize),
}

/// An expected record.
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

/// Start and thread of a record, and when its dependency was satisfied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) start: u64,
    pub(crate) thread: u16,
    pub(crate) released: u64,
    /// How long its thread waited, since then, for its own sends alone.
    pub(crate) waited: u64,
}

/// The result of the model: the events of each task, the records in order of their starts, and those starts.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) events: Vec<Vec<Happened>>,
    pub(crate) expected: Vec<Vec<Expected>>,
    pub(crate) moments: Vec<Vec<Moment>>,
}

/// Parameters of a random program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) tasks: u32,
    /// Each task has one to this many threads.
    pub(crate) threads: u16,
    /// Whether members leave collectives as early as MPI allows: the root of a broadcast at once.
    pub(crate) early: bool,
    /// Approximate number of calls.
    pub(crate) steps: usize,
}

/// A communicator: members in rank order, and each member's number for it.
struct Comm {
    members: Vec<u32>,
    numbers: HashMap<u32, CommId>,
    children: u32,
    /// The collective that some members have not called.
    open: Option<usize>,
}

#[derive(Clone, Copy)]
struct Message {
    comm: usize,
    src: u32,
    tag: i32,
    /// Index among the records of its sender.
    record: usize,
}

/// A posted receive.
struct Posted {
    comm: usize,
    source: Option<u32>,
    tag: Option<i32>,
    met: Option<Message>,
}

#[derive(Clone, Copy)]
enum Request {
    Send,
    /// A collective of one member, which has no record.
    Alone,
    Receive(usize),
    Collective(usize),
}

/// The blocking call of a thread.
#[derive(Clone)]
enum Blocked {
    Receive { start: u64, posted: usize, send: Option<Send> },
    Wait { start: u64, request: RequestId, posted: usize },
    Collective { start: u64, operation: usize },
}

/// The dependency of a record, by indices in the lists of records.
#[derive(Clone, Copy)]
enum Follows {
    Start,
    Own(usize),
    Received(Message),
    Collective(usize),
}

/// A record in the order of generation.
struct Made {
    start: u64,
    thread: u16,
    /// End of the thread's previous event.
    released: u64,
    waited: u64,
    follows: Follows,
    what: MadeOf,
}

enum MadeOf {
    Point { dst: u32, bytes: u64, awaited: bool },
    Part { operation: usize, send: u64, recv: u64 },
}

#[derive(Default)]
struct Thread {
    previous: Option<(u64, Follows)>,
    /// Its last message or mark.
    last: usize,
    /// How long it waited since then for its sends alone.
    waited: u64,
    requests: u64,
    /// The start of the wait.
    blocked: Option<(u64, Blocked)>,
}

#[derive(Default)]
struct Task {
    threads: Vec<Thread>,
    events: Vec<Happened>,
    made: Vec<Made>,
    open: Vec<(RequestId, Request)>,
    posted: Vec<Posted>,
    /// Delivered messages without a receive, in order of delivery.
    waiting: Vec<Message>,
    /// Messages that a probe found, by sender and record.
    probed: HashSet<(u32, usize)>,
    /// The channel of the last probe, and the number of receives posted before it.
    last_probe: Option<((usize, u32, i32), usize)>,
    comms: u32,
}

struct Collectively {
    comm: usize,
    op: Operation,
    root: Option<u32>,
    bytes: u64,
    blocking: bool,
    /// Members that have called it.
    entered: Vec<u32>,
}

/// A thread of a task.
type Actor = (u32, u16);

struct World {
    random: SmallRng,
    now: u64,
    plan: Plan,
    tasks: Vec<Task>,
    comms: Vec<Comm>,
    network: HashMap<(u32, u32), VecDeque<Message>>,
    operations: Vec<Collectively>,
}

/// By thread.
const TAGS: i32 = 3;

/// Generates and executes a program of about `steps` calls on `tasks` tasks of one thread each.
pub(crate) fn run(seed: u64, tasks: u32, steps: usize) -> Run {
    run_plan(seed, Plan { tasks, threads: 1, early: false, steps })
}

/// Generates and executes a program.
pub(crate) fn run_plan(seed: u64, plan: Plan) -> Run {
    let mut world = World {
        random: SmallRng::seed_from_u64(seed),
        now: 1000,
        plan,
        tasks: (0..plan.tasks).map(|_| Task::default()).collect(),
        comms: Vec::new(),
        network: HashMap::new(),
        operations: Vec::new(),
    };
    world.begin();
    for _ in 0..plan.steps {
        world.step();
    }
    world.end();
    world.told()
}

impl World {
    fn tick(&mut self) -> u64 {
        self.now += self.random.random_range(1..60);
        self.now
    }

    fn begin(&mut self) {
        let all: Vec<u32> = (0..self.tasks.len() as u32).collect();
        for &rank in &all {
            let threads = self.random.random_range(1..=self.plan.threads);
            let (start, end) = (self.tick(), self.tick());
            let task = &mut self.tasks[rank as usize];
            // Each thread's time counts from the return of MPI_Init.
            let thread = || Thread { previous: Some((end, Follows::Start)), ..Thread::default() };
            task.threads = (0..threads).map(|_| thread()).collect();
            self.happened((rank, 0), start, end, What::Plain(Action::Init));
        }
        self.communicator(Origin::World, None, all);
    }

    /// Describes a communicator to its members.
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
            let what = What::Communicator { id: number, origin, members: world };
            self.happened((rank, 0), start, start, what);
        }
        self.comms.push(Comm { members, numbers, children: 0, open: None });
    }

    fn happened(&mut self, (rank, thread): Actor, start: u64, end: u64, what: What) {
        self.tasks[rank as usize].events.push(Happened { start, end, thread, what });
    }

    fn thread(&mut self, (rank, thread): Actor) -> &mut Thread {
        &mut self.tasks[rank as usize].threads[usize::from(thread)]
    }

    fn is_free(&self, (rank, thread): Actor) -> bool {
        self.tasks[rank as usize].threads[usize::from(thread)].blocked.is_none()
    }

    fn actors(&self, rank: u32) -> impl Iterator<Item = Actor> + use<> {
        (0..self.tasks[rank as usize].threads.len() as u16).map(move |thread| (rank, thread))
    }

    /// A free thread of `rank`.
    fn free_of(&mut self, rank: u32) -> Option<Actor> {
        let free: Vec<Actor> = self.actors(rank).filter(|&actor| self.is_free(actor)).collect();
        free.choose(&mut self.random).copied()
    }

    /// Whether a thread of `rank` other than `actor` is free.
    fn has_free_beside(&self, rank: u32, actor: Actor) -> bool {
        self.actors(rank).any(|other| other != actor && self.is_free(other))
    }

    /// Adds a record of `actor` at `start`.
    fn made(&mut self, actor: Actor, start: u64, what: MadeOf) -> usize {
        let (released, mut follows) = self.thread(actor).previous.unwrap();
        let last = self.thread(actor).last;
        let waited = std::mem::take(&mut self.thread(actor).waited);
        let task = &mut self.tasks[actor.0 as usize];
        if let Follows::Received(Message { src, record, .. }) = follows
            && task.probed.contains(&(src, record))
        {
            // The mark of the probe has waited.
            follows = Follows::Own(last);
        }
        task.made.push(Made { start, thread: actor.1, released, waited, follows, what });
        task.made.len() - 1
    }

    /// Adds a message or mark, on which the next record of the thread depends.
    fn point(&mut self, actor: Actor, start: u64, dst: u32, bytes: u64) -> usize {
        let record = self.made(actor, start, MadeOf::Point { dst, bytes, awaited: false });
        let thread = self.thread(actor);
        (thread.previous, thread.last) = (Some((start, Follows::Own(record))), record);
        record
    }

    fn mark(&mut self, actor: Actor, start: u64) {
        self.point(actor, start, actor.0, 0);
    }

    fn step(&mut self) {
        if self.random.random_bool(0.35) && self.deliver() {
            return;
        }
        let free: Vec<Actor> = self.all().filter(|&actor| self.is_free(actor)).collect();
        let Some(&actor) = free.choose(&mut self.random) else { panic!("the model is stuck") };
        if self.all().count() > free.len() && self.random.random_bool(0.3) {
            self.unblock_one();
            return;
        }
        match self.random.random_range(0..100) {
            0..30 => self.send(actor),
            30..52 => self.post(actor),
            52..66 => self.receive(actor),
            66..82 => self.complete(actor),
            82..84 => self.other(actor),
            84..87 => self.probe(actor),
            87..98 => self.collective(actor),
            _ => self.split(),
        }
    }

    fn all(&self) -> impl Iterator<Item = Actor> {
        (0..self.tasks.len() as u32).flat_map(|rank| self.actors(rank))
    }

    fn comms_of(&self, rank: u32) -> Vec<usize> {
        (0..self.comms.len()).filter(|&at| self.comms[at].numbers.contains_key(&rank)).collect()
    }

    /// A communicator of a task, and a member with a free thread.
    fn partner(&mut self, rank: u32) -> (usize, u32) {
        let comm = *self.comms_of(rank).choose(&mut self.random).unwrap();
        let able = |&member: &u32| self.actors(member).any(|actor| self.is_free(actor));
        let able: Vec<u32> = self.comms[comm].members.iter().copied().filter(able).collect();
        (comm, *able.choose(&mut self.random).unwrap())
    }

    /// A tag of the messages that a thread of `rank` receives: MPI does not define which of several threads with the same receive gets
    /// which message.
    fn tag(&mut self, rank: u32, thread: Option<u16>) -> i32 {
        let threads = self.tasks[rank as usize].threads.len() as u16;
        let thread = thread.unwrap_or_else(|| self.random.random_range(0..threads));
        self.random.random_range(0..TAGS) + TAGS * i32::from(thread)
    }

    fn rank_in(&self, comm: usize, task: u32) -> CommRank {
        CommRank(self.comms[comm].members.iter().position(|&member| member == task).unwrap() as u32)
    }

    fn request(&mut self, actor: Actor, request: Request) -> RequestId {
        let thread = self.thread(actor);
        let id = RequestId { thread: actor.1, number: thread.requests };
        thread.requests += 1;
        self.tasks[actor.0 as usize].open.push((id, request));
        id
    }

    /// The call, without its event.
    fn sending(&mut self, actor: Actor, start: u64, comm: usize, dst: u32, tag: i32) -> Send {
        let src = actor.0;
        // An empty message to itself that no call waits for has no line; unit tests cover it.
        let bytes = if dst == src { self.random.random_range(1..9) } else { self.random.random_range(0..9) };
        let record = self.point(actor, start, dst, bytes);
        self.network.entry((src, dst)).or_default().push_back(Message { comm, src, tag, record });
        Send {
            comm: self.comms[comm].numbers[&src],
            dest: self.rank_in(comm, dst),
            tag,
            bytes: Bytes(bytes),
            datatype: DatatypeId(0),
            mode: SendMode::Standard,
            request: None,
        }
    }

    fn send_to(&mut self, actor: Actor, comm: usize, dst: u32, tag: i32) {
        let start = self.tick();
        let mut send = self.sending(actor, start, comm, dst, tag);
        if self.random.random_bool(0.5) {
            send.request = Some(self.request(actor, Request::Send));
        }
        let end = self.tick();
        self.done(actor, end, None);
        self.happened(actor, start, end, What::Plain(Action::Send(send)));
    }

    fn send(&mut self, actor: Actor) {
        let (comm, dst) = self.partner(actor.0);
        let tag = self.tag(dst, None);
        self.send_to(actor, comm, dst, tag);
    }

    /// The thread's previous event ended at `end`; `follows` unless the next record depends on the last one.
    fn done(&mut self, actor: Actor, end: u64, follows: Option<Follows>) {
        let previous = &mut self.thread(actor).previous;
        *previous = previous.map(|(_, before)| (end, follows.unwrap_or(before)));
    }

    /// Posts a receive for `partner`'s message, possibly with wildcards.
    fn posting(&mut self, (rank, thread): Actor, comm: usize, partner: u32, wild: bool) -> usize {
        let source = (!wild || self.random.random_bool(0.6)).then_some(partner);
        let any_tag = wild && self.random.random_bool(0.4) && self.tasks[rank as usize].threads.len() == 1;
        let tag = (!any_tag).then(|| self.tag(rank, Some(thread)));
        let mut posted = Posted { comm, source, tag, met: None };
        let task = &mut self.tasks[rank as usize];
        if let Some(at) = task.waiting.iter().position(|message| posted.takes(message)) {
            posted.met = Some(task.waiting.remove(at));
        }
        task.posted.push(posted);
        task.posted.len() - 1
    }

    fn post_event(&mut self, actor: Actor, start: u64, posted: usize) -> RequestId {
        let request = self.request(actor, Request::Receive(posted));
        let Posted { comm, source, tag, .. } = self.tasks[actor.0 as usize].posted[posted];
        let action = Action::PostReceive(PostReceive {
            comm: self.comms[comm].numbers[&actor.0],
            source: source.map(|source| self.rank_in(comm, source)),
            tag,
            bytes: Bytes(100),
            datatype: DatatypeId(0),
            request,
        });
        let end = self.tick();
        self.happened(actor, start, end, What::Plain(action));
        request
    }

    fn post(&mut self, actor: Actor) {
        let (comm, partner) = self.partner(actor.0);
        let wild = self.random.random_bool(0.5);
        let start = self.tick();
        let posted = self.posting(actor, comm, partner, wild);
        self.post_event(actor, start, posted);
    }

    fn block(&mut self, actor: Actor, blocked: Blocked) {
        let now = self.now;
        self.thread(actor).blocked = Some((now, blocked));
        self.try_to_leave(actor);
    }

    /// A blocking receive or `Sendrecv`: blocks unless its message has arrived.
    fn receive(&mut self, actor: Actor) {
        let (comm, partner) = self.partner(actor.0);
        if !self.has_free_beside(partner, actor) {
            return;
        }
        let start = self.tick();
        let send = (partner != actor.0 && self.random.random_bool(0.3)).then(|| {
            let tag = self.tag(partner, None);
            self.sending(actor, start, comm, partner, tag)
        });
        let wild = self.random.random_bool(0.5);
        let posted = self.posting(actor, comm, partner, wild);
        self.block(actor, Blocked::Receive { start, posted, send });
    }

    /// Completes a thread's blocking call if its dependency is satisfied.
    fn try_to_leave(&mut self, actor: Actor) -> bool {
        let Some((_, blocked)) = self.thread(actor).blocked.clone() else { return false };
        let (rank, _) = actor;
        match blocked {
            Blocked::Receive { start, posted, send } => {
                let Posted { comm, source, tag, met, .. } = self.tasks[rank as usize].posted[posted];
                let Some(message) = met else { return false };
                let end = self.tick();
                self.mark(actor, start);
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
                self.happened(actor, start, end, What::Plain(action));
                self.received(actor, end, message);
            }
            Blocked::Wait { start, request, posted } => {
                let Some(message) = self.tasks[rank as usize].posted[posted].met else { return false };
                let end = self.tick();
                self.mark(actor, start);
                let completion = Completion { request, outcome: self.outcome(rank, posted) };
                self.happened(actor, start, end, What::Complete(vec![completion]));
                self.received(actor, end, message);
            }
            Blocked::Collective { start, operation } => {
                if !self.may_leave(rank, operation) {
                    return false;
                }
                let end = self.tick();
                self.left(actor, start, end, operation, None);
            }
        }
        self.thread(actor).blocked = None;
        true
    }

    /// The next record depends on `message`, whose reception ended at `end`.
    fn received(&mut self, actor: Actor, end: u64, message: Message) {
        self.done(actor, end, Some(Follows::Received(message)));
        match &mut self.tasks[message.src as usize].made[message.record].what {
            MadeOf::Point { awaited, .. } => *awaited = true,
            MadeOf::Part { .. } => unreachable!(),
        }
    }

    fn outcome(&self, rank: u32, posted: usize) -> Outcome {
        let posted = &self.tasks[rank as usize].posted[posted];
        match (posted.source, posted.tag) {
            (Some(_), Some(_)) => Outcome::Done,
            _ => {
                let message = posted.met.unwrap();
                let source = self.rank_in(posted.comm, message.src);
                Outcome::Received { source, tag: message.tag, bytes: None }
            }
        }
    }

    /// A call of the wait family, a cancellation, or a request that is freed.
    fn complete(&mut self, actor: Actor) {
        let rank = actor.0;
        let task = &mut self.tasks[rank as usize];
        if task.open.is_empty() {
            return;
        }
        let at = self.random.random_range(0..task.open.len());
        if let (request, Request::Receive(posted)) = task.open[at] {
            let Posted { comm, source, tag, met, .. } = task.posted[posted];
            match self.random.random_range(0..10) {
                0 if met.is_none() => {
                    // A cancelled receive takes no message.
                    task.open.remove(at);
                    task.posted[posted].comm = usize::MAX;
                    let start = self.tick();
                    let completion = Completion { request, outcome: Outcome::Cancelled };
                    self.happened(actor, start, start, What::Complete(vec![completion]));
                    return;
                }
                1 if source.is_some() && tag.is_some() => {
                    task.open.remove(at);
                    let start = self.tick();
                    self.happened(actor, start, start, What::Plain(Action::Forget(request)));
                    return;
                }
                2..6 if met.is_none() => {
                    // Waits for it if a free thread can send the message.
                    let able = |&member: &u32| self.has_free_beside(member, actor);
                    let somebody = match source {
                        Some(source) => able(&source),
                        None => self.comms[comm].members.iter().any(able),
                    };
                    if somebody {
                        self.tasks[rank as usize].open.remove(at);
                        let start = self.tick();
                        self.block(actor, Blocked::Wait { start, request, posted });
                    }
                    return;
                }
                _ => {}
            }
        }
        self.wait_all(actor);
    }

    /// Completes some of the requests that can complete, in any order.
    fn wait_all(&mut self, actor: Actor) {
        let rank = actor.0;
        let task = &self.tasks[rank as usize];
        let mut ready: Vec<_> = (task.open.iter().copied())
            .filter(|(_, request)| match request {
                Request::Receive(posted) => task.posted[*posted].met.is_some(),
                Request::Send | Request::Alone => true,
                Request::Collective(operation) => self.may_leave(rank, *operation),
            })
            .collect();
        ready.shuffle(&mut self.random);
        ready.truncate(self.random.random_range(1..6));
        if ready.is_empty() {
            return;
        }
        let (start, end) = (self.tick(), self.tick());
        let mut completions = Vec::new();
        let mut first = true;
        for (request, kind) in ready {
            self.tasks[rank as usize].open.retain(|&(open, _)| open != request);
            let mut outcome = Outcome::Done;
            // The further marks begin at the end of the call, without time.
            let at = if first { start } else { end };
            match kind {
                Request::Send | Request::Alone => {}
                Request::Receive(posted) => {
                    outcome = self.outcome(rank, posted);
                    let message = self.tasks[rank as usize].posted[posted].met.unwrap();
                    self.mark(actor, at);
                    self.received(actor, end, message);
                    first = false;
                }
                Request::Collective(operation) => {
                    self.mark(actor, at);
                    self.done(actor, end, Some(Follows::Collective(operation)));
                    first = false;
                }
            }
            completions.push(Completion { request, outcome });
        }
        if first {
            self.thread(actor).waited += end - start;
        }
        self.happened(actor, start, end, What::Complete(completions));
    }

    /// Delivers a pending message, if there is one.
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
                for actor in self.actors(link.1) {
                    if !matches!(self.thread(actor).blocked, Some((_, Blocked::Collective { .. }))) {
                        self.try_to_leave(actor);
                    }
                }
            }
            None => task.waiting.push(message),
        }
        true
    }

    /// Whether a member that has called an operation may leave it.
    fn may_leave(&self, rank: u32, operation: usize) -> bool {
        let Collectively { comm, op, root, ref entered, .. } = self.operations[operation];
        let all = entered.len() == self.comms[comm].members.len();
        let root_there = root.is_some_and(|root| entered.contains(&root));
        all || self.plan.early
            && match op {
                Operation::Bcast => root_there,
                Operation::Reduce => root != Some(rank),
                _ => false,
            }
    }

    /// Calls a collective that others have called, or starts one.
    fn collective(&mut self, actor: Actor) {
        let rank = actor.0;
        let comm = *self.comms_of(rank).choose(&mut self.random).unwrap();
        self.enter(actor, comm);
    }

    fn enter(&mut self, actor: Actor, comm: usize) {
        let rank = actor.0;
        let members = self.comms[comm].members.clone();
        let entered = self.comms[comm].open.map(|open| self.operations[open].entered.clone());
        if entered.as_ref().is_some_and(|entered| entered.contains(&rank)) {
            return;
        }
        let there = entered.unwrap_or_default();
        let others = |&member: &u32| member != rank && !there.contains(&member);
        if !members
            .iter()
            .copied()
            .filter(|member| others(member))
            .all(|member| self.has_free_beside(member, actor))
        {
            return;
        }
        let operation = self.comms[comm].open.unwrap_or_else(|| {
            let op = *[Operation::Barrier, Operation::Bcast, Operation::Allreduce, Operation::Reduce]
                .choose(&mut self.random)
                .unwrap();
            let root = op.is_rooted().then(|| *members.choose(&mut self.random).unwrap());
            let bytes = self.random.random_range(0..50);
            let blocking = self.random.random_bool(0.6);
            self.operations.push(Collectively { comm, op, root, bytes, blocking, entered: Vec::new() });
            self.operations.len() - 1
        });
        self.operations[operation].entered.push(rank);
        let whole = self.operations[operation].entered.len() == members.len();
        self.comms[comm].open = (!whole).then_some(operation);
        let start = self.tick();
        if self.operations[operation].blocking {
            return self.block(actor, Blocked::Collective { start, operation });
        }
        let single = members.len() == 1;
        let kind = if single { Request::Alone } else { Request::Collective(operation) };
        let request = self.request(actor, kind);
        let end = self.tick();
        self.left(actor, start, end, operation, Some(request));
    }

    /// Adds the record and the event of a member's part, which is complete or pending (`request`).
    fn left(&mut self, actor: Actor, start: u64, end: u64, operation: usize, request: Option<RequestId>) {
        let Collectively { comm, op, root, bytes, .. } = self.operations[operation];
        let at_root = root == Some(actor.0);
        let (send, recv) = match op {
            Operation::Barrier => (0, 0),
            Operation::Allreduce => (bytes, bytes),
            Operation::Bcast if at_root => (bytes, 0),
            Operation::Bcast => (0, bytes),
            _ if at_root => (0, bytes),
            _ => (bytes, 0),
        };
        if self.comms[comm].members.len() > 1 {
            if request.is_some() {
                self.mark(actor, start);
            }
            self.made(actor, start, MadeOf::Part { operation, send, recv });
            self.done(actor, end, request.is_none().then_some(Follows::Collective(operation)));
        }
        let call = Collective {
            operation: op,
            comm: self.comms[comm].numbers[&actor.0],
            root: root.map(|root| self.rank_in(comm, root)),
            amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
            count: 0,
            datatype: DatatypeId(0),
            recv_datatype: None,
            request,
            send_counts: &[],
            recv_counts: &[],
        };
        self.happened(actor, start, end, What::Plain(Action::Collective(call)));
    }

    /// `MPI_Comm_split`: every member gets a part.
    fn split(&mut self) {
        let comm = self.random.random_range(0..self.comms.len());
        let mut members = self.comms[comm].members.clone();
        let busy = |&rank: &u32| !self.is_free((rank, 0));
        if self.comms.len() > 8 || self.comms[comm].open.is_some() || members.iter().any(busy) {
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

    /// A call without a record.
    fn other(&mut self, actor: Actor) {
        let (start, end) = (self.tick(), self.tick());
        let action = Action::Other { bytes: Bytes(7), detail: Detail::None };
        self.happened(actor, start, end, What::Plain(action));
    }

    /// Any thread finds a message that has arrived; only the thread of its tag may take it.
    fn probe(&mut self, actor: Actor) {
        let (rank, thread) = actor;
        let waiting = &self.tasks[rank as usize].waiting;
        let Some(&Message { comm, src, tag, .. }) = waiting.choose(&mut self.random) else { return };
        let posted = Posted { comm, source: Some(src), tag: Some(tag), met: None };
        let at = waiting.iter().position(|message| posted.takes(message)).unwrap();
        let message = waiting[at];
        let start = self.tick();
        // Of one thread, a probe of the same message as the one before has no record.
        let task = &mut self.tasks[rank as usize];
        let this = Some(((comm, src, tag), task.posted.len()));
        let again = task.threads.len() == 1 && task.last_probe == this;
        task.last_probe = this;
        if !again {
            self.mark(actor, start);
        }
        let takes = tag / TAGS == i32::from(thread) && self.random.random_bool(0.3);
        let what = if takes {
            let task = &mut self.tasks[rank as usize];
            task.waiting.remove(at);
            task.posted.push(Posted { met: Some(message), ..posted });
            let number = task.posted.len() - 1;
            What::Matched(PostReceive {
                comm: self.comms[comm].numbers[&rank],
                source: Some(self.rank_in(comm, src)),
                tag: Some(tag),
                bytes: Bytes(100),
                datatype: DatatypeId(0),
                request: self.request(actor, Request::Receive(number)),
            })
        } else {
            let (source, comm) = (self.rank_in(comm, src), self.comms[comm].numbers[&rank]);
            What::Plain(Action::Probe { comm, source, tag })
        };
        let end = self.tick();
        if !again {
            self.received(actor, end, message);
            self.mark(actor, end);
        }
        self.tasks[rank as usize].probed.insert((src, message.record));
        self.happened(actor, start, end, what);
    }

    /// Follows the waits from a blocked thread to a free one, which does what is waited for; or lets a member leave a collective.
    fn unblock_one(&mut self) {
        let mut blocked: Vec<Actor> = self.all().filter(|&actor| !self.is_free(actor)).collect();
        blocked.shuffle(&mut self.random);
        if blocked.iter().any(|&actor| self.try_to_leave(actor)) {
            return;
        }
        let Some(&(mut actor)) = blocked.first() else { return };
        for _ in 0..=blocked.len() {
            let Some((_, why)) = self.thread(actor).blocked.clone() else { return };
            // The threads that can do it, preferably a free one.
            let able: Vec<u32> = match why {
                Blocked::Receive { posted, .. } | Blocked::Wait { posted, .. } => {
                    let Posted { comm, source, .. } = self.tasks[actor.0 as usize].posted[posted];
                    source.map_or_else(|| self.comms[comm].members.clone(), |source| vec![source])
                }
                Blocked::Collective { operation, .. } => {
                    let Collectively { comm, entered, .. } = &self.operations[operation];
                    let members = self.comms[*comm].members.iter().copied();
                    members.filter(|member| !entered.contains(member)).take(1).collect()
                }
            };
            let free = able.iter().find_map(|&rank| self.free_of(rank));
            match (free, why) {
                (Some(free), Blocked::Receive { posted, .. } | Blocked::Wait { posted, .. }) => {
                    let Posted { comm, tag, .. } = self.tasks[actor.0 as usize].posted[posted];
                    return self.send_to(free, comm, actor.0, tag.unwrap_or(0));
                }
                (Some(free), Blocked::Collective { operation, .. }) => {
                    let comm = self.operations[operation].comm;
                    let there = self.operations[operation].entered.len();
                    self.enter(free, comm);
                    if self.operations[operation].entered.len() > there {
                        return;
                    }
                    // The other members have no free thread: one of them must advance first.
                    let members = self.comms[comm].members.clone();
                    let entered = &self.operations[operation].entered;
                    let busy = members.iter().copied().find(|&member| {
                        !entered.contains(&member) && !self.has_free_beside(member, free) && member != free.0
                    });
                    let Some(busy) = busy else { return };
                    actor = self.latest_blocked(&[busy]);
                }
                // One of them was free when this one blocked, so it has blocked since.
                (None, _) => actor = self.latest_blocked(&able),
            }
        }
        panic!("the model is stuck");
    }

    /// The thread of `ranks` that blocked last.
    fn latest_blocked(&self, ranks: &[u32]) -> Actor {
        let since = |&(rank, thread): &Actor| {
            self.tasks[rank as usize].threads[usize::from(thread)].blocked.as_ref().map(|&(since, _)| since)
        };
        ranks.iter().flat_map(|&rank| self.actors(rank)).max_by_key(since).unwrap()
    }

    /// Completes the program: pending messages are delivered, every message gets a receive and every receive a message.
    fn end(&mut self) {
        loop {
            while self.deliver() {}
            if self.all().any(|actor| !self.is_free(actor)) {
                self.unblock_one();
                continue;
            }
            if let Some(comm) = self.comms.iter().position(|comm| comm.open.is_some()) {
                let entered = &self.operations[self.comms[comm].open.unwrap()].entered;
                let missing = self.comms[comm].members.iter().find(|member| !entered.contains(member));
                let actor = self.free_of(*missing.unwrap()).unwrap();
                self.enter(actor, comm);
                continue;
            }
            let lonely = (0..self.tasks.len() as u32).find_map(|rank| {
                let open = |posted: &&Posted| posted.met.is_none() && posted.comm != usize::MAX;
                let posted = self.tasks[rank as usize].posted.iter().find(open)?;
                let source = posted.source.unwrap_or(self.comms[posted.comm].members[0]);
                Some((source, posted.comm, rank, posted.tag.unwrap_or(1)))
            });
            if let Some((source, comm, rank, tag)) = lonely {
                self.send_to((source, 0), comm, rank, tag);
                continue;
            }
            let waiting = (0..self.tasks.len() as u32)
                .find_map(|rank| Some((rank, *self.tasks[rank as usize].waiting.first()?)));
            let Some((rank, message)) = waiting else { break };
            // By the thread whose tag it is; the wait comes below.
            let thread = (message.tag / TAGS) as u16;
            let start = self.tick();
            let task = &mut self.tasks[rank as usize];
            task.waiting.remove(0);
            let tag = (task.threads.len() > 1).then_some(message.tag);
            task.posted.push(Posted { comm: message.comm, source: None, tag, met: Some(message) });
            let posted = task.posted.len() - 1;
            self.post_event((rank, thread), start, posted);
        }
        for rank in 0..self.tasks.len() as u32 {
            // Every collective and wildcard receive must complete; some other requests stay pending.
            let task = |world: &Self| world.tasks[rank as usize].open.clone();
            while task(self).iter().any(|(_, request)| match request {
                Request::Receive(posted) => {
                    let posted = &self.tasks[rank as usize].posted[*posted];
                    posted.source.is_none() || posted.tag.is_none()
                }
                Request::Collective(_) => true,
                Request::Send | Request::Alone => false,
            }) {
                self.wait_all((rank, 0));
            }
            let (start, end) = (self.tick(), self.tick());
            // It depends on the last wait of each thread.
            for actor in self.actors(rank).skip(1) {
                let previous = self.thread(actor).previous.map(|(_, follows)| follows);
                if let Some(Follows::Received(_) | Follows::Collective(_)) = previous {
                    self.mark(actor, start);
                }
            }
            self.mark((rank, 0), start);
            self.happened((rank, 0), start, end, What::Plain(Action::Finalize));
        }
    }

    /// The records in order of their starts, with references and times in the form of a trace.
    fn told(self) -> Run {
        let Self { tasks, comms, operations, .. } = self;
        let orders: Vec<Vec<usize>> = tasks
            .iter()
            .map(|task| {
                let mut order: Vec<usize> = (0..task.made.len()).collect();
                order.sort_by_key(|&at| (task.made[at].start, at));
                order
            })
            .collect();
        // The index of each record among the point-to-point ones.
        let points: Vec<HashMap<usize, usize>> = (tasks.iter().zip(&orders))
            .map(|(task, order)| {
                let is_point = |&&at: &&usize| matches!(task.made[at].what, MadeOf::Point { .. });
                order.iter().filter(is_point).enumerate().map(|(number, &at)| (at, number)).collect()
            })
            .collect();
        let (mut expected, mut moments) = (Vec::new(), Vec::new());
        for (rank, (task, order)) in tasks.iter().zip(&orders).enumerate() {
            let (mut records, mut when, mut front) = (Vec::new(), Vec::new(), 0);
            for &at in order {
                let Made { start, thread, released, waited, follows, ref what } = task.made[at];
                let after = match follows {
                    Follows::Start => After::Start,
                    Follows::Own(record) => After::Own(points[rank][&record]),
                    Follows::Received(Message { src, record, .. }) => {
                        After::Received { sender: src, message: points[src as usize][&record] }
                    }
                    Follows::Collective(operation) => After::Collective(operation),
                };
                // A further mark of a call follows the previous one without time.
                let released = if released > start { start } else { released };
                let time = start - front.max(released);
                front = start;
                when.push(Moment { start, thread, released, waited });
                records.push(match *what {
                    MadeOf::Point { dst, bytes, awaited } => {
                        Expected::Message { dst, bytes, awaited, after, time }
                    }
                    MadeOf::Part { operation, send, recv } => {
                        let Collectively { comm, op, .. } = operations[operation];
                        let members = comms[comm].members.clone();
                        Expected::Collective { operation, members, op, send, recv, after, time }
                    }
                });
            }
            expected.push(records);
            moments.push(when);
        }
        let events = tasks.into_iter().map(|task| task.events).collect();
        Run { events, expected, moments }
    }
}

impl Posted {
    fn takes(&self, message: &Message) -> bool {
        self.comm == message.comm
            && self.source.is_none_or(|source| source == message.src)
            && self.tag.is_none_or(|tag| tag == message.tag)
    }
}

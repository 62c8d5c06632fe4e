//! Programs made of any bytes: calls of a few tasks that mostly fit each other, as a capture.
//!
//! A byte names a call, the next ones its details; there is no input that is not a program. Pairs of calls that belong
//! together are as likely as calls that break MPI's rules in every way that a capture can hold.

use std::path::Path;
use vef_format::capture::event::{
    Action, CallSlot, Collective, Communicator, Completion, Completions, Creation, Datatype, DatatypeId, Detail,
    Event, Members, Origin, Outcome, PostReceive, Receive, Remote, RequestId, Send, SendMode,
};
use vef_format::capture::{RankInfo, RankWriter, rank_path};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation, Root};
use vef_format::units::{Bytes, Nanos};

/// Most tasks of a program.
const TASKS: u32 = 4;
/// Numbers at the borders of their types.
const BORDERS: [u64; 8] = [0, 1, i32::MAX as u64, 1 << 31, u32::MAX as u64, 1 << 32, 1 << 63, u64::MAX];

/// Where in the bytes the program is.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    /// The next byte, 0 behind the last.
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        u64::from(self.byte()) % end.max(1)
    }

    /// A number, mostly small, now and then at a border.
    fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 248.. => BORDERS[usize::from(byte - 248)],
            byte => byte.into(),
        }
    }
}

/// A task in the making.
struct Task {
    writer: RankWriter,
    now: u64,
    /// Requests made, and what became of each: whether it is still open, and its receive.
    requests: Vec<(bool, Option<PostReceive>)>,
    communicators: u32,
}

impl Task {
    fn call(&mut self, start: u64, length: u64, action: Action<'_>) {
        let start = start.max(self.now);
        let end = start.saturating_add(length);
        let event = Event { start: Nanos(start), end: Nanos(end), thread: 0, call: CallSlot::NONE, action };
        // What the writer refuses, no capture holds.
        if self.writer.event(&event).is_ok() {
            self.now = end;
        }
    }

    fn next_request(&self) -> RequestId {
        RequestId { thread: 0, number: self.requests.len() as u64 }
    }
}

/// Writes the capture of the program that `bytes` describe to `directory`; says of how many tasks it is.
pub fn write(directory: &Path, bytes: &[u8]) -> u32 {
    let mut choices = Choices(bytes);
    let tasks = 1 + choices.below(TASKS.into()) as u32;
    for rank in tasks..TASKS {
        // There may be none of an earlier program.
        let _ = std::fs::remove_file(rank_path(directory, Rank(rank)));
    }
    let mut tasks: Vec<Task> = (0..tasks).map(|rank| begin(directory, rank, tasks)).collect();
    let mut clock = 1000;
    while !choices.0.is_empty() {
        clock += 1 + choices.below(64);
        step(&mut tasks, clock, &mut choices);
    }
    let count = tasks.len() as u32;
    for task in tasks {
        task.writer.finish().expect("a temporary file");
    }
    count
}

fn begin(directory: &Path, rank: u32, tasks: u32) -> Task {
    let info = RankInfo { rank: Rank(rank), tasks, host: "node".into(), ..RankInfo::default() };
    let writer = RankWriter::create(directory, &info).expect("a temporary file");
    let mut task = Task { writer, now: 0, requests: Vec::new(), communicators: 1 };
    let world = Communicator {
        id: CommId(0),
        origin: Origin::World,
        split: None,
        members: Members::All,
        remote: Remote::None,
        foreign: false,
    };
    let byte = Datatype { id: DatatypeId(0), size: Bytes(1), contiguous: true, name: "MPI_BYTE" };
    task.call(1, 5, Action::Init);
    task.call(6, 0, Action::Communicator(world));
    task.call(6, 0, Action::Datatype(byte));
    task
}

fn step(tasks: &mut [Task], clock: u64, choices: &mut Choices<'_>) {
    let count = tasks.len() as u64;
    let me = choices.below(count) as usize;
    let length = choices.below(32);
    match choices.byte() % 16 {
        // What belongs together, on all tasks that it concerns.
        0 | 1 => {
            let (peer, tag, bytes) = (choices.below(count) as usize, choices.below(3) as i32, choices.number());
            tasks[me].call(clock, length, Action::Send(send(0, peer as u32, tag, bytes)));
            let receive = receive(0, me as u32, tag, bytes, choices.byte());
            tasks[peer].call(clock + length, choices.below(16), Action::Receive(receive));
        }
        2 => {
            let (peer, bytes) = (choices.below(count) as usize, choices.number());
            post(&mut tasks[peer], clock, Some(me as u32), Some(7), bytes);
            tasks[me].call(clock + 1, length, Action::Send(send(0, peer as u32, 7, bytes)));
            let last = tasks[peer].requests.len() - 1;
            complete(&mut tasks[peer], clock + length, &[last], me as u32, 7, Some(bytes));
        }
        3 => {
            let operation = Operation::ALL[choices.below(Operation::ALL.len() as u64) as usize];
            let (root, bytes) = (choices.below(count) as u32, choices.number());
            for rank in 0..tasks.len() {
                let part = collective(operation, root, rank as u32, bytes);
                tasks[rank].call(clock, length, Action::Collective(part));
            }
        }
        4 => {
            for task in tasks.iter_mut() {
                task.call(clock, length, Action::Finalize);
            }
        }
        5 => {
            let stride = if choices.byte() % 2 == 0 { 1 } else { -1 };
            let first = if stride == 1 { 0 } else { count as u32 - 1 };
            for task in tasks.iter_mut() {
                let ordinal = task.communicators;
                let members = Members::Strided { first: Rank(first), stride, count: count as u32 };
                define(task, clock, Origin::Child { parent: CommId(0), ordinal }, members, false);
            }
        }
        kind => alone(&mut tasks[me], clock, length, kind, choices),
    }
}

/// One call of one task, whatever the others do.
fn alone(task: &mut Task, clock: u64, length: u64, kind: u8, choices: &mut Choices<'_>) {
    let comm = choices.below(u64::from(task.communicators) + 1) as u32;
    let (peer, tag, bytes) = (choices.number() as u32, choices.number() as i32, choices.number());
    match kind {
        6 => {
            let request = (choices.byte() % 2 == 0).then(|| task.next_request());
            let mode = [SendMode::Standard, SendMode::Buffered, SendMode::Synchronous, SendMode::Ready]
                [choices.below(4) as usize];
            task.call(clock, length, Action::Send(Send { request, mode, ..send(comm, peer, tag, bytes) }));
            task.requests.extend(request.map(|_| (true, None)));
        }
        7 => task.call(clock, length, Action::Receive(receive(comm, peer, tag, bytes, choices.byte()))),
        8 => {
            let wild = choices.byte();
            let source = (wild & 1 == 0).then_some(peer);
            post(task, clock, source, (wild & 2 == 0).then_some(tag), bytes);
        }
        9 | 10 => {
            // Now and then of requests that are complete already.
            let any = choices.byte() == 255;
            let most = 1 + choices.below(4) as usize;
            let open = (0..task.requests.len()).filter(|&number| any || task.requests[number].0);
            let open: Vec<usize> = open.take(most).collect();
            complete(task, clock, &open, peer, tag, (choices.byte() % 2 == 0).then_some(bytes));
        }
        11 => {
            let operation = Operation::ALL[choices.below(Operation::ALL.len() as u64) as usize];
            let counts: Vec<u64> = (0..choices.below(5)).map(|_| choices.number()).collect();
            let request = (choices.byte() % 2 == 0).then(|| task.next_request());
            let part = Collective {
                comm: CommId(comm),
                request,
                send_counts: &counts,
                recv_counts: &counts,
                ..collective(operation, peer, 0, bytes)
            };
            task.call(clock, length, Action::Collective(part));
            task.requests.extend(request.map(|_| (true, None)));
        }
        12 => {
            let exchange = Action::Exchange {
                send: send(comm, peer, tag, bytes),
                receive: receive(comm, choices.number() as u32, choices.number() as i32, bytes, choices.byte()),
            };
            task.call(clock, length, exchange);
        }
        13 => {
            let list: Vec<Rank> = (0..choices.below(5)).map(|_| Rank(choices.number() as u32)).collect();
            let members = match choices.byte() % 3 {
                0 => Members::All,
                1 => Members::List(&list),
                _ => Members::Strided { first: Rank(peer), stride: tag.into(), count: bytes as u32 },
            };
            let origin = match choices.byte() % 5 {
                0 => Origin::World,
                1 => Origin::SelfOnly,
                2 => Origin::Child { parent: CommId(comm), ordinal: choices.number() as u32 },
                3 => Origin::Group { parent: CommId(comm), tag, ordinal: choices.number() as u32 },
                _ => Origin::Unseen { ordinal: choices.number() as u32 },
            };
            define(task, clock, origin, members, choices.byte() % 4 == 0);
        }
        14 => {
            let number = choices.number();
            task.call(clock, length, Action::Forget(RequestId { thread: 0, number }));
        }
        _ => {
            let action = match choices.byte() % 7 {
                0 => Action::Init,
                1 if bytes % 2 == 0 => Action::Polls { count: bytes },
                1 => Action::Abort { code: tag },
                2 if bytes % 2 == 0 => Action::Preempted,
                2 => Action::CommunicatorFree(CommId(comm)),
                3 if bytes % 2 == 0 => Action::Creation(Creation { comm: CommId(comm), request: None }),
                3 => Action::Probe { comm: CommId(comm), source: CommRank(peer), tag },
                4 => Action::Phase { begin: bytes % 2 == 0, name: "solve" },
                5 => Action::Other { bytes: Bytes(bytes), detail: Detail::None },
                _ => Action::Stopped { reason: "the disk is full" },
            };
            task.call(clock, length, action);
        }
    }
}

fn send(comm: u32, dest: u32, tag: i32, bytes: u64) -> Send {
    let (comm, dest, datatype) = (CommId(comm), CommRank(dest), DatatypeId(0));
    Send { comm, dest, tag, bytes: Bytes(bytes), datatype, mode: SendMode::Standard, request: None }
}

fn receive(comm: u32, source: u32, tag: i32, bytes: u64, wild: u8) -> Receive {
    Receive {
        comm: CommId(comm),
        source: CommRank(source),
        tag,
        any_source: wild & 1 != 0,
        any_tag: wild & 2 != 0,
        bytes: Bytes(bytes),
        datatype: DatatypeId(0),
    }
}

fn collective(operation: Operation, root: u32, rank: u32, bytes: u64) -> Collective<'static> {
    let root = operation.is_rooted().then_some(root);
    let at_root = root.is_none_or(|root| root == rank);
    let moved = Bytes(if operation == Operation::Barrier { 0 } else { bytes });
    Collective {
        operation,
        comm: CommId(0),
        root: root.map(CommRank),
        amounts: Amounts {
            send: if root.is_none() || at_root == (operation.root() == Some(Root::Sends)) { moved } else { Bytes::ZERO },
            recv: if root.is_none() || at_root != (operation.root() == Some(Root::Sends)) { moved } else { Bytes::ZERO },
        },
        count: 0,
        datatype: DatatypeId(0),
        recv_datatype: None,
        request: None,
        send_counts: &[],
        recv_counts: &[],
    }
}

fn define(task: &mut Task, clock: u64, origin: Origin, members: Members<'_>, foreign: bool) {
    let id = CommId(task.communicators);
    task.call(clock, 0, Action::Communicator(Communicator { id, origin, split: None, members, remote: Remote::None, foreign }));
    task.communicators += 1;
}

fn post(task: &mut Task, clock: u64, source: Option<u32>, tag: Option<i32>, bytes: u64) {
    let post = PostReceive {
        comm: CommId(0),
        source: source.map(CommRank),
        tag,
        bytes: Bytes(bytes),
        datatype: DatatypeId(0),
        request: task.next_request(),
    };
    task.call(clock, 1, Action::PostReceive(post));
    task.requests.push((true, Some(post)));
}

fn complete(task: &mut Task, clock: u64, which: &[usize], peer: u32, tag: i32, bytes: Option<u64>) {
    let mut list = Vec::new();
    for &number in which {
        let (open, posted) = &mut task.requests[number];
        *open = false;
        let outcome = match posted {
            Some(post) => Outcome::Received {
                source: post.source.unwrap_or(CommRank(peer)),
                tag: post.tag.unwrap_or(tag),
                bytes: bytes.map(Bytes),
            },
            None if tag == 255 => Outcome::Cancelled,
            None => Outcome::Done,
        };
        list.push(Completion { request: RequestId { thread: 0, number: number as u64 }, outcome });
    }
    task.call(clock, 1, Action::Complete(Completions::List(&list)));
}

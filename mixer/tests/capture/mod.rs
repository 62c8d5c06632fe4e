//! Captures for tests: events that own their lists.

use std::collections::BTreeMap;
use std::path::Path;
use vef_format::capture::event::*;
use vef_format::capture::{Function, RankInfo, RankWriter};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::{Bytes, Nanos};

/// An event that owns its lists.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) thread: u16,
    pub(crate) what: What,
}

/// The effect of a call.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Plain(Action<'static>),
    /// `MPI_Mprobe`, which takes the message.
    Matched(PostReceive),
    /// A call of this function.
    By(&'static str, Action<'static>),
    Complete(Vec<Completion>),
    Communicator {
        id: CommId,
        origin: Origin,
        members: Vec<Rank>,
    },
}

impl Happened {
    fn with_event<R>(&self, call: CallSlot, use_it: impl FnOnce(&Event<'_>) -> R) -> R {
        let action = match &self.what {
            What::Plain(action) | What::By(_, action) => action.clone(),
            What::Matched(posted) => Action::PostReceive(*posted),
            What::Complete(list) => Action::Complete(Completions::List(list)),
            What::Communicator { id, origin, members } => Action::Communicator(Communicator {
                id: *id,
                origin: *origin,
                split: None,
                members: Members::List(members),
                remote: Remote::None,
                foreign: false,
            }),
        };
        let Self { start, end, thread, .. } = *self;
        use_it(&Event { start: Nanos(start), end: Nanos(end), thread, call, action })
    }
}

/// Writes the events of all tasks as a capture in `dir`.
pub(crate) fn write(dir: &Path, tasks: &[Vec<Happened>]) {
    write_of_programs(dir, tasks, |_| Vec::new());
}

/// Like [`write`], with a command line for each rank.
pub(crate) fn write_of_programs(dir: &Path, tasks: &[Vec<Happened>], program: impl Fn(usize) -> Vec<String>) {
    write_with(dir, tasks, |rank| RankInfo { program: program(rank), ..RankInfo::default() });
}

/// Like [`write`], with further facts on each rank.
pub(crate) fn write_with(dir: &Path, tasks: &[Vec<Happened>], facts: impl Fn(usize) -> RankInfo) {
    for (rank, events) in tasks.iter().enumerate() {
        let mut info = RankInfo { rank: Rank(rank as u32), tasks: tasks.len() as u32, ..facts(rank) };
        if info.host.is_empty() {
            info.host = "one".into();
        }
        let mut writer = RankWriter::create(dir, &info).unwrap();
        let mut called: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for event in events {
            let function = match event.what {
                What::Plain(Action::Other { .. }) => Some("MPI_Put"),
                What::Matched(_) => Some("MPI_Mprobe"),
                What::By(function, _) => Some(function),
                _ => None,
            };
            let call = function.map_or(CallSlot::NONE, |function| {
                let (calls, time) = called.entry(function).or_default();
                (*calls, *time) = (*calls + 1, *time + (event.end - event.start));
                writer.function(function).unwrap()
            });
            event.with_event(call, |event| writer.event(event)).unwrap();
        }
        for (name, (calls, time)) in called {
            writer.calls(Function { name: name.into(), calls, errors: 0, time: Nanos(time) }).unwrap();
        }
        writer.finish().unwrap();
    }
}

/// `MPI_COMM_WORLD` of all tasks.
pub(crate) const WORLD: CommId = CommId(0);

/// A capture under construction: calls of 10 ns, 100 ns apart, on one clock.
pub(crate) struct Program {
    pub(crate) tasks: Vec<Vec<Happened>>,
    pub(crate) now: u64,
}

impl Program {
    pub(crate) fn new(tasks: u32) -> Self {
        let mut program = Self { tasks: vec![Vec::new(); tasks as usize], now: 1000 };
        for rank in 0..tasks {
            program.call(rank, Action::Init);
            let members = (0..tasks).map(Rank).collect();
            program.add(rank, 0, What::Communicator { id: WORLD, origin: Origin::World, members });
        }
        program
    }

    pub(crate) fn add(&mut self, rank: u32, thread: u16, what: What) -> &mut Self {
        self.now += 100;
        let (start, end) = (self.now, self.now + 10);
        self.tasks[rank as usize].push(Happened { start, end, thread, what });
        self
    }

    pub(crate) fn call(&mut self, rank: u32, action: Action<'static>) -> &mut Self {
        self.add(rank, 0, What::Plain(action))
    }

    pub(crate) fn send(&mut self, rank: u32, dest: u32, tag: i32, bytes: u64) -> &mut Self {
        self.call(rank, Action::Send(sending(dest, tag, bytes, None)))
    }

    pub(crate) fn receive(&mut self, rank: u32, source: u32, tag: i32) -> &mut Self {
        self.call(rank, Action::Receive(receiving(source, tag)))
    }

    pub(crate) fn post(&mut self, rank: u32, source: Option<u32>, number: u64) -> &mut Self {
        self.call(
            rank,
            Action::PostReceive(PostReceive {
                comm: WORLD,
                source: source.map(CommRank),
                tag: Some(0),
                bytes: Bytes(64),
                datatype: DatatypeId(0),
                request: RequestId { thread: 0, number },
            }),
        )
    }

    pub(crate) fn complete(&mut self, rank: u32, number: u64, outcome: Outcome) -> &mut Self {
        let request = RequestId { thread: 0, number };
        self.add(rank, 0, What::Complete(vec![Completion { request, outcome }]))
    }

    pub(crate) fn collective(&mut self, rank: u32, operation: Operation, root: Option<u32>) -> &mut Self {
        self.call(
            rank,
            Action::Collective(Collective {
                operation,
                comm: WORLD,
                root: root.map(CommRank),
                amounts: Amounts { send: Bytes(8), recv: Bytes(8) },
                count: 0,
                datatype: DatatypeId(0),
                recv_datatype: None,
                request: None,
                send_counts: &[],
                recv_counts: &[],
            }),
        )
    }

    pub(crate) fn finish(&mut self) -> &mut Self {
        for rank in 0..self.tasks.len() as u32 {
            self.call(rank, Action::Finalize);
        }
        self
    }
}

pub(crate) fn sending(dest: u32, tag: i32, bytes: u64, request: Option<RequestId>) -> Send {
    Send {
        comm: WORLD,
        dest: CommRank(dest),
        tag,
        bytes: Bytes(bytes),
        datatype: DatatypeId(0),
        mode: SendMode::Standard,
        request,
    }
}

pub(crate) fn receiving(source: u32, tag: i32) -> Receive {
    Receive {
        comm: WORLD,
        source: CommRank(source),
        tag,
        any_source: false,
        any_tag: false,
        bytes: Bytes(64),
        datatype: DatatypeId(0),
    }
}

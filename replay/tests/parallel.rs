//! The parallel example against one engine on the yardstick: the same end of every task, to the picosecond.

#[path = "../examples/parallel.rs"]
mod example;

use replay::{Computing, Engine, Job, Loaded, OpCodes, Picos, Raw, Table, yardstick};
use std::path::Path;
use std::sync::Arc;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::record::{Dependency, Header, LocalCollective, Message, Record, Version};
use vef_format::units::{Bytes, Ticks};

/// The end of every task, by one engine and by so many threads.
fn ends(job: impl Fn() -> Job, threads: u32) -> [Vec<Option<Picos>>; 2] {
    let builder = || Engine::builder().algorithms(Table::builtin("openmpi").unwrap());
    let mut one = builder().job(job()).engine().unwrap();
    let stuck = yardstick::run(&mut one, &yardstick::default_link()).unwrap().stuck;
    assert!(stuck.is_none(), "{}", stuck.unwrap());
    let tasks = job().tasks();
    let many = example::run(builder().job(job()), tasks, threads, &yardstick::default_link()).unwrap();
    assert_eq!(many.len(), threads as usize);
    let mut stats = many[0].stats().clone();
    many[1..].iter().for_each(|engine| stats.add(engine.stats()));
    assert!(threads < 2 || stats.exported > 0, "nothing went from one partition to another");
    (stats.exported, stats.imported) = (0, 0);
    assert_eq!(&stats, one.stats());
    let task = |rank: u32| {
        let engine = many.iter().find(|engine| engine.has_task(0, rank)).unwrap();
        engine.progress(0).nth(rank as usize).unwrap().finished
    };
    [one.progress(0).map(|task| task.finished).collect(), (0..tasks).map(task).collect()]
}

/// A halo exchange on a ring, with an Allreduce and a Barrier now and then: every task computes for another time in every
/// round.
fn halo(tasks: u32, rounds: u64) -> Arc<Loaded> {
    let header = Header {
        version: Version::V3,
        tasks,
        messages: 0,
        communicators: 1,
        collectives: 0,
        local_collectives: 0,
        received: 0,
        clock: Picos(1000),
    };
    let mut records = vec![Record::Communicator { id: CommId(0), members: (0..tasks).map(Rank).collect() }];
    let (mut id, mut last) = (0, vec![Dependency::Start; tasks as usize]);
    for round in 0..rounds {
        let first = id;
        for rank in 0..tasks {
            for to in [(rank + 1) % tasks, (rank + tasks - 1) % tasks] {
                let computing = (u64::from(rank) * 7919 + round * 104_729) % 5000;
                let after = std::mem::replace(&mut last[rank as usize], Dependency::Sent(MessageId(id)));
                let message = Message {
                    id: MessageId(id),
                    src: Rank(rank),
                    dst: Rank(to),
                    bytes: Bytes(8 * computing),
                    awaited: true,
                    after,
                    time: Ticks(computing),
                };
                records.push(Record::Message(message));
                id += 1;
            }
        }
        for rank in 0..tasks {
            let [left, right] = [(rank + tasks - 1) % tasks, (rank + 1) % tasks].map(u64::from);
            for received in [first + 2 * left, first + 2 * right + 1] {
                let mark = Message {
                    id: MessageId(id),
                    src: Rank(rank),
                    dst: Rank(rank),
                    bytes: Bytes(0),
                    awaited: false,
                    after: Dependency::Received(MessageId(received)),
                    time: Ticks(0),
                };
                records.push(Record::Message(mark));
                last[rank as usize] = Dependency::Sent(MessageId(id));
                id += 1;
            }
        }
        if round % 3 == 2 {
            let (op, bytes) =
                if round % 2 == 0 { (Operation::Allreduce, 4096) } else { (Operation::Barrier, 0) };
            let code = OpCodes::default().code(op).unwrap();
            for rank in 0..tasks {
                let part = LocalCollective {
                    id: CollectiveId(round),
                    comm: CommId(0),
                    op: code,
                    task: Rank(rank),
                    amounts: Amounts { send: Bytes(bytes), recv: Bytes(bytes) },
                    after: last[rank as usize],
                    time: Ticks(10),
                };
                records.push(Record::Collective(part));
                last[rank as usize] = Dependency::Collective(CollectiveId(round));
            }
        }
    }
    Arc::new(Loaded::from_records(header, OpCodes::default(), records).unwrap())
}

#[test]
fn threads_end_when_one_engine_does_on_a_halo() {
    let trace = halo(48, 40);
    for threads in [1, 2, 3] {
        let [one, many] = ends(|| Job::loaded(&trace), threads);
        assert_eq!(one, many, "{threads} threads");
    }
}

/// Other times, by task and the ids of its records so far.
#[derive(Debug, Default)]
struct Scrambled(std::collections::BTreeMap<u32, u64>);

impl Computing for Scrambled {
    fn time(&mut self, task: Rank, number: u64, record: &Raw) -> Ticks {
        let history = self.0.entry(task.0).or_default();
        *history = (*history * 7 + record.id) % 10_007;
        Ticks((u64::from(task.0) * 31 + number * 17 + *history + record.time) % 3000)
    }

    fn again(&self) -> Box<dyn Computing> {
        Box::new(Self::default())
    }
}

#[test]
fn threads_replace_computing_times_as_one_engine_does() {
    let trace = halo(48, 40);
    let job =
        || Job::loaded(&trace).computing(Box::new(Scrambled::default())).time_factors(vec![0.5, 2.0, 1.0]);
    let [one, many] = ends(job, 3);
    assert_eq!(one, many);
    assert_ne!(one, ends(|| Job::loaded(&trace), 1)[0]);
}

/// Traces at hand: the paths of text or containers in `VEF_PARALLEL_TRACES`, separated by colons; none without it.
#[test]
fn threads_end_when_one_engine_does_on_real_traces() {
    let traces = std::env::var("VEF_PARALLEL_TRACES").unwrap_or_default();
    for trace in traces.split(':').filter(|trace| !trace.is_empty()) {
        let [one, many] = ends(|| Job::open(Path::new(trace)).unwrap(), 2);
        assert_eq!(one, many, "{trace}");
    }
}

//! Instances of a job that are opened and closed while the replay runs.

use replay::{
    Accounts, BuildError, Bytes, CheckpointError, Engine, Job, Loaded, Next, NoInstance, OpCodes, Picos,
    Queue, ReplayError, SendCompletion, Sink, Started,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use vef_format::text::Reader;

fn job(text: &str) -> Job {
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("trace.vef")).unwrap();
    Job::loaded(&Arc::new(Loaded::read(reader, OpCodes::default()).unwrap())).on_call()
}

/// Two tasks: a message, then an answer after 3 ns. With a communicator of both: an Allreduce.
const PAIR: &str = "VEF3 2 2 0 0 0 0 1000\n0 0 1 1000 4 5 -1\n1 1 0 500 6 3 0\n";
const TRIPLE: &str = "VEF3 3 0 1 2 6 0 1000\nC0 0 1 2\n\
     G0 C0 6 0 0 0 0 1 -1\nG0 C0 6 1 0 0 0 2 -1\nG0 C0 6 2 0 0 0 3 -1\n\
     G1 C0 0 0 0 8 3 1 G0\nG1 C0 0 1 8 0 3 1 G0\nG1 C0 0 2 0 8 3 1 G0\n";

/// A network on which each message takes 1 µs, and the times of all tasks.
struct Network {
    events: Queue<Next>,
    accounts: Accounts,
    nodes: Vec<(u32, u32, u32)>,
    over: Vec<u32>,
    /// Events that have not happened.
    left: i64,
}

impl Sink for Network {
    fn take(&mut self, next: Next) {
        let at = match &next {
            Next::Message(message) => {
                self.nodes.push((message.job, message.src_node, message.dst_node));
                Picos(message.start.0 + 1_000_000)
            }
            Next::Inside { .. } | Next::Wake(_) => next.at(),
        };
        self.events.push(at, next);
        self.left += 1;
    }

    fn started(&mut self, started: &Started) {
        self.accounts.started(self.accounts.number(started.job, started.task.0), started);
    }

    fn opened(&mut self, job: u32, _: u32, tasks: Range<u32>, start: Picos) {
        self.accounts.opened(job, tasks, start);
    }

    fn over(&mut self, job: u32) {
        self.over.push(job);
    }
}

fn begun(engine: &mut Engine) -> Network {
    let (accounts, over) = (Accounts::new(engine), Vec::new());
    let mut network = Network { events: Queue::new(), accounts, nodes: Vec::new(), over, left: 0 };
    engine.begin(&mut network).unwrap();
    network
}

fn run(engine: &mut Engine, network: &mut Network) {
    while step(engine, network).is_some() {}
}

/// The next event, and of which job it was.
fn step(engine: &mut Engine, network: &mut Network) -> Option<u32> {
    let (now, event) = network.events.pop(Picos::MAX)?;
    network.left -= 1;
    Some(match event {
        Next::Message(message) | Next::Inside { message, .. } => {
            engine.delivered(message.id, now, network).unwrap();
            message.job
        }
        Next::Wake(wake) => {
            let (job, _) = engine.task_of(&wake).unwrap();
            engine.wake(wake, now, network).unwrap();
            job
        }
    })
}

#[test]
fn an_instance_runs_on_its_nodes_from_its_start() {
    let mut engine = Engine::builder().job(job(PAIR)).job(job(TRIPLE)).engine().unwrap();
    let mut network = begun(&mut engine);
    assert!(engine.is_complete(), "jobs on call count as over");
    let first = engine.open(0, &[7, 9], Picos(100), &mut network).unwrap();
    let second = engine.open(0, &[3, 2], Picos(5_000), &mut network).unwrap();
    assert_eq!((first, second, engine.jobs(), engine.tasks(second)), (2, 3, 4, 2));
    assert!(!engine.close(first) && !engine.close(0) && !engine.close(99), "not over, not opened, not there");
    run(&mut engine, &mut network);
    // 5 ns, 1 µs, 3 ns, 1 µs.
    let end = |job| engine.progress(job).map(|task| task.finished.unwrap().0).max().unwrap();
    assert_eq!((end(first), end(second)), (100 + 1_008_000, 5_000 + 1_008_000));
    assert_eq!(engine.finish(), Picos(5_000 + 2_008_000), "the last answer, for which no task waits");
    assert_eq!(network.nodes, [(2, 7, 9), (3, 3, 2), (2, 9, 7), (3, 2, 3)]);
    let computing = network.accounts.of_job(second, &[Picos(10_000), Picos(1_013_000)]);
    assert_eq!((computing[0][0], computing[1][0]), (5_000, 3_000));
}

#[test]
fn closed_instances_leave_their_place_to_others() {
    let mut engine = Engine::builder().job(job(PAIR)).job(job(TRIPLE)).engine().unwrap();
    let mut network = begun(&mut engine);
    let mut at = Picos(0);
    let mut numbers = Vec::new();
    for round in 0..200u32 {
        // Two at a time, of both kinds in turn.
        let open: Vec<u32> = [round % 2, 1]
            .map(|job| engine.open(job, &[0, 1, 2][..2 + job as usize], at, &mut network).unwrap())
            .to_vec();
        run(&mut engine, &mut network);
        at = engine.finish();
        numbers.extend(&open);
        assert!(matches!(engine.save(), Err(CheckpointError::Instances)));
        for job in open {
            assert!(engine.is_over(job) && engine.close(job) && !engine.close(job), "closed once");
            assert!(!engine.repeat(job, at, &mut network).unwrap(), "a closed one does not run again");
        }
        assert_eq!((engine.jobs(), engine.finish()), (2, at), "all are gone, and when they ended is known");
        engine.save().unwrap();
    }
    assert_eq!(numbers.iter().max(), Some(&3));
    assert_eq!(engine.stats().collectives, 2 * 300, "two of each of the 300 instances with three tasks");
    assert!(engine.is_complete());
    engine.reset().unwrap();
    assert_eq!((engine.jobs(), engine.finish(), engine.stats().collectives), (2, Picos(0), 0));
}

/// A job is over when its tasks have finished and no event of it is left: messages here arrive as events, and steps of collectives begin as some.
#[test]
fn the_end_of_a_job_is_told_once_in_the_call_by_which_it_ends() {
    let calls = SendCompletion::RendezvousInCalls { above: Bytes(600) };
    for completion in [SendCompletion::Eager, SendCompletion::WhenSent, calls] {
        let engine = Engine::builder().send_completion(completion).job(job(PAIR)).job(job(TRIPLE));
        let mut engine = engine.job(job("VEF3 1 1 0 0 0 0 1000\n0 0 0 0 0 5 -1\n")).engine().unwrap();
        let mut network = begun(&mut engine);
        assert!(network.over.is_empty(), "jobs on call have not run: {:?}", network.over);
        // By number: events that are left, of those that are open.
        let mut left: BTreeMap<u32, i64> = BTreeMap::new();
        let mut ended = 0;
        let (mut opened, mut random) = (0u64, 12345u64);
        while opened < 400 || !left.is_empty() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let before = network.left;
            let job = if opened < 400 && random >> 60 < 3 {
                let of = (opened % 3) as u32;
                let nodes: &[u32] = [&[0, 1][..], &[2, 0, 1], &[3]][of as usize];
                // Not before what has happened.
                let at = network.events.next().unwrap_or(engine.finish());
                opened += 1;
                engine.open(of, nodes, at, &mut network).unwrap()
            } else if let Some(job) = step(&mut engine, &mut network) {
                job
            } else {
                continue;
            };
            *left.entry(job).or_insert(0) += network.left - before;
            let finished = engine.progress(job).all(|task| task.finished.is_some());
            let is_over = finished && left[&job] == 0;
            assert_eq!(
                (engine.is_over(job), network.over.as_slice()),
                (is_over, &[job][..usize::from(is_over)])
            );
            if is_over {
                ended += 1;
                left.remove(&job);
                network.over.clear();
                assert!(engine.close(job));
            } else if left[&job] == 0 {
                panic!("{completion:?}: job {job} is stuck");
            }
        }
        assert_eq!((ended, engine.jobs(), engine.is_complete()), (400, 3, true));
    }
}

#[test]
fn messages_that_wait_for_calls() {
    let completion = SendCompletion::RendezvousInCalls { above: Bytes(0) };
    let mut engine = Engine::builder().send_completion(completion).job(job(PAIR)).engine().unwrap();
    let mut network = begun(&mut engine);
    for round in 0..10u64 {
        let at = engine.finish();
        let open = [(); 3].map(|()| engine.open(0, &[0, 1], at, &mut network).unwrap());
        run(&mut engine, &mut network);
        assert_eq!(engine.stats().total().messages, 6 * (round + 1));
        assert!(open.into_iter().all(|job| engine.close(job)));
    }
}

/// Its first message starts 5 ns after its beginning, the second 900 ns later.
const LATER: &str = "VEF3 2 3 0 0 0 0 1000\n0 0 1 1000 4 5 -1\n1 0 1 2000 4 900 -1\n2 1 1 0 2 3 1\n";

/// Whether a saved state has the text of what `open` or `repeat` refused.
fn names_a_refusal(state: &[u8]) -> bool {
    let text = b"cannot begin";
    state.windows(text.len()).any(|bytes| bytes == text)
}

/// Jobs whose time would end while their tasks begin: at the first record, or when some have sent messages or entered collectives.
#[test]
fn an_instance_that_cannot_begin_leaves_the_replay_as_it_was() {
    let calls = SendCompletion::RendezvousInCalls { above: Bytes(100) };
    for completion in [SendCompletion::Eager, SendCompletion::WhenSent, calls] {
        let replayed = |fails: bool| {
            let engine = Engine::builder().send_completion(completion).job(job(LATER)).job(job(TRIPLE));
            let mut engine = engine.engine().unwrap();
            let mut network = begun(&mut engine);
            let try_late = |engine: &mut Engine| {
                let late = [(0, 0), (0, 4_000), (1, 0), (1, 1_500), (1, 2_500), (0, 500_000)];
                // With calls the second message is started by one.
                for &(job, before) in &late[..late.len() - usize::from(completion == calls)] {
                    let mut told = 0;
                    let late = Picos(u64::MAX - before);
                    let jobs = engine.jobs();
                    let error = engine.open(job, &[0, 1, 2], late, &mut |_: Next| told += 1).unwrap_err();
                    assert!(matches!(error, ReplayError::CannotBegin { .. }) && error.is_misuse(), "{error}");
                    assert_eq!((told, engine.jobs(), engine.is_over(jobs)), (0, jobs, false), "{error}");
                }
            };
            for round in 0..20u32 {
                let at = engine.finish();
                let opened = [round % 2, 1].map(|job| {
                    let opened = engine.open(job, &[0, 1, 2], at, &mut network).unwrap();
                    if fails {
                        try_late(&mut engine);
                    }
                    opened
                });
                step(&mut engine, &mut network);
                if fails {
                    try_late(&mut engine);
                }
                run(&mut engine, &mut network);
                assert!(opened.into_iter().all(|job| engine.close(job)));
                if fails {
                    try_late(&mut engine);
                }
                assert!(!names_a_refusal(&engine.save().unwrap()));
            }
            assert!(engine.is_complete() && engine.stuck().is_none());
            (engine.finish(), engine.stats().clone(), network.nodes, network.over)
        };
        assert_eq!(replayed(true), replayed(false), "{completion:?}");
    }
    let mut engine = Engine::builder().job(job(LATER)).engine().unwrap();
    let mut network = begun(&mut engine);
    let error = engine.open(0, &[0, 1], Picos::MAX, &mut network).unwrap_err().to_string();
    assert_eq!(
        error,
        "job 0 cannot begin: job 1, task 0, record 0: it would start after the end of time (2^64 ps, 213 days)"
    );
}

/// The same of jobs that run again: their tasks are where they were.
#[test]
fn a_repeat_that_cannot_begin_leaves_the_replay_as_it_was() {
    let calls = SendCompletion::RendezvousInCalls { above: Bytes(100) };
    for completion in [SendCompletion::Eager, SendCompletion::WhenSent, calls] {
        let replayed = |fails: bool| {
            let engine = Engine::builder().send_completion(completion).job(job(LATER)).job(job(TRIPLE));
            let mut engine = engine.engine().unwrap();
            let mut network = begun(&mut engine);
            let try_late = |engine: &mut Engine| {
                let late = [(0, 0), (0, 4_000), (1, 0), (1, 1_500), (1, 2_500), (0, 500_000)];
                for &(job, before) in &late[..late.len() - usize::from(completion == calls)] {
                    if !engine.is_over(job) {
                        continue;
                    }
                    let seen = |engine: &Engine| {
                        let tasks = engine.progress(job).collect::<Vec<_>>();
                        (tasks, engine.is_over(job), engine.is_complete(), engine.finish())
                    };
                    let (before_it, mut told) = (seen(engine), 0);
                    let late = Picos(u64::MAX - before);
                    let error = engine.repeat(job, late, &mut |_: Next| told += 1).unwrap_err();
                    assert!(matches!(error, ReplayError::CannotBegin { .. }) && error.is_misuse(), "{error}");
                    assert_eq!((told, seen(engine)), (0, before_it), "{error}");
                }
            };
            for round in 0..20u32 {
                let at = engine.finish();
                if fails {
                    try_late(&mut engine);
                }
                assert!(engine.repeat(round % 2, at, &mut network).unwrap());
                step(&mut engine, &mut network);
                if fails {
                    try_late(&mut engine);
                }
                run(&mut engine, &mut network);
                assert!(!names_a_refusal(&engine.save().unwrap()));
            }
            assert!(engine.is_complete() && engine.stuck().is_none());
            (engine.finish(), engine.stats().clone(), network.nodes, network.over)
        };
        assert_eq!(replayed(true), replayed(false), "{completion:?}");
    }
}

#[test]
fn instances_that_cannot_be() {
    let mut engine = Engine::builder().job(job(PAIR)).engine().unwrap();
    let mut out = |_: Next| {};
    let why = |result: Result<u32, ReplayError>| match result.unwrap_err() {
        error @ ReplayError::NoInstance { why, .. } => {
            assert!(error.is_misuse());
            why
        }
        other => panic!("{other}"),
    };
    assert_eq!(why(engine.open(0, &[0, 1], Picos(0), &mut out)), NoInstance::NotBegun);
    engine.begin(&mut out).unwrap();
    assert_eq!(why(engine.open(1, &[0, 1], Picos(0), &mut out)), NoInstance::NoJob);
    let error = engine.open(0, &[4], Picos(0), &mut out).unwrap_err().to_string();
    assert_eq!(error, "no instance of job 0 can be opened: it has 2 tasks, and nodes for 1 are given");
    let instance = engine.open(0, &[4, 5], Picos(0), &mut out).unwrap();
    assert_eq!(why(engine.open(instance, &[0, 1], Picos(0), &mut out)), NoInstance::NoJob);
    assert!(matches!(Engine::builder().engine(), Err(BuildError::NoJobs)));
    let mut parts = Engine::builder().job(job(PAIR)).partitions(2, |node| node % 2).unwrap();
    parts[0].begin(&mut out).unwrap();
    assert_eq!(why(parts[0].open(0, &[0, 1], Picos(0), &mut out)), NoInstance::Partition);
}

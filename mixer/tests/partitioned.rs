//! Partitioned communication is a message for each partition of the sender, whatever the receiver's partitions are.

use crate::capture::{self, Program, WORLD};
use mixer::{MixError, Options, Problem, Quiet, Summary, mix};
use vef_format::capture::event::*;
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// The transfer 0 of a task, to or from the other one.
fn init(program: &mut Program, task: u32, partitions: u32, bytes: u64) {
    let init = PartitionedInit {
        id: PartitionedId(0),
        sends: task == 0,
        comm: WORLD,
        peer: CommRank(1 - task),
        tag: 5,
        partitions,
        bytes: Bytes(bytes),
        datatype: DatatypeId(0),
    };
    program.call(task, Action::Partitioned(Partitioned::Init(init)));
}

fn start(program: &mut Program, task: u32, number: u64) {
    let (id, request) = (PartitionedId(0), RequestId { thread: 0, number });
    program.call(task, Action::Partitioned(Partitioned::Start { id, request }));
}

fn ready(program: &mut Program, first: u32, count: u32, bytes: u64) {
    let (id, bytes) = (PartitionedId(0), Bytes(bytes));
    program.call(0, Action::Partitioned(Partitioned::Ready { id, first, count, bytes }));
}

fn arrived(program: &mut Program, partition: u32) {
    program.call(1, Action::Partitioned(Partitioned::Arrived { id: PartitionedId(0), partition }));
}

/// The text of the trace, and the summary.
fn mixed(program: &Program, options: &Options) -> Result<(String, Summary), MixError> {
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.tasks);
    let trace = dir.path().join("t.vef");
    let summary = mix(dir.path(), &trace, options, &Quiet)?;
    Ok((std::fs::read_to_string(trace).unwrap(), summary))
}

/// The records of a task: destination and bytes, and what it waits for: the bytes of a message received.
fn records(text: &str, task: &str) -> Vec<String> {
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(' ').collect()).collect();
    let own = lines.iter().filter(|line| !line[0].starts_with('C') && line[1] == task);
    own.map(|line| {
        let received = || lines.iter().find(|other| other[0] == line[6]).map_or("?", |other| other[3]);
        match line[4].parse::<u32>().unwrap() % 4 {
            2 => format!("{} {} after {}", line[2], line[3], received()),
            _ => format!("{} {}", line[2], line[3]),
        }
    })
    .collect()
}

#[test]
fn partitions_leave_when_they_are_ready_and_are_awaited_by_the_wait() {
    let mut program = Program::new(2);
    init(&mut program, 0, 3, 10);
    init(&mut program, 1, 3, 10);
    for turn in 0..2 {
        start(&mut program, 0, turn);
        start(&mut program, 1, turn);
        ready(&mut program, 2, 1, 10);
        ready(&mut program, 0, 2, 10);
        program.complete(0, turn, Outcome::Done).complete(1, turn, Outcome::Done);
    }
    program.finish();
    let (text, summary) = mixed(&program, &Options::default()).unwrap();
    assert_eq!(records(&text, "0"), ["1 10", "1 10", "1 10", "1 10", "1 10", "1 10", "0 0"]);
    let waits = ["1 0", "1 0 after 10", "1 0 after 10"];
    let again = ["1 0 after 10", "1 0 after 10", "1 0 after 10", "1 0 after 10"];
    assert_eq!(records(&text, "1"), [&waits[..], &again].concat());
    assert_eq!((summary.messages, summary.matched, summary.bytes), (6, 6, Bytes(60)));
    assert_eq!(summary.lacks(), Vec::<String>::new());
}

/// Six partitions of 10 bytes are two of 30: the first of these has arrived when the first three have. Whether the sender's partitions
/// are known only after the first reading, in parts or not, does not matter.
#[test]
fn a_receiver_waits_for_the_partitions_of_the_sender() {
    for half in [0, 1] {
        let mut program = Program::new(2);
        init(&mut program, 0, 6, 10);
        init(&mut program, 1, 2, 30);
        start(&mut program, 0, 0);
        start(&mut program, 1, 0);
        ready(&mut program, 3 * half, 3, 10);
        arrived(&mut program, half);
        program.send(1, 0, 9, 7).receive(0, 1, 9);
        ready(&mut program, 3 - 3 * half, 3, 10);
        program.complete(1, 0, Outcome::Done).complete(0, 0, Outcome::Done).finish();
        let (text, summary) = mixed(&program, &Options::default()).unwrap();
        let after_three = ["1 0", "1 0 after 10", "1 0 after 10", "0 7 after 10"];
        let after_all = ["1 0", "1 0 after 10", "1 0 after 10", "1 0 after 10"];
        assert_eq!(records(&text, "1"), [after_three, after_all].concat(), "{half}");
        assert_eq!((summary.messages, summary.matched, summary.partitioned_sizes), (7, 7, 0));
        let in_parts = Options { memory: Some(Bytes(1)), ..Options::default() };
        assert_eq!(mixed(&program, &in_parts).unwrap().0, text);
    }
}

/// Two transfers with one tag are matched in the order in which they were made, whatever the order of their starts.
#[test]
fn transfers_of_one_tag_are_matched_as_they_were_made() {
    let mut program = Program::new(2);
    for (task, id, bytes) in [(0, 0, 10), (0, 1, 20), (1, 0, 10), (1, 1, 20)] {
        let (id, peer) = (PartitionedId(id), CommRank(1 - task));
        let (bytes, datatype) = (Bytes(bytes), DatatypeId(0));
        let init = PartitionedInit {
            id,
            sends: task == 0,
            comm: WORLD,
            peer,
            tag: 5,
            partitions: 1,
            bytes,
            datatype,
        };
        program.call(task, Action::Partitioned(Partitioned::Init(init)));
    }
    for (number, (id, bytes)) in [(1, 20), (0, 10)].into_iter().enumerate() {
        let request = RequestId { thread: 0, number: number as u64 };
        let (id, bytes) = (PartitionedId(id), Bytes(bytes));
        program.call(0, Action::Partitioned(Partitioned::Start { id, request }));
        program.call(0, Action::Partitioned(Partitioned::Ready { id, first: 0, count: 1, bytes }));
    }
    for id in [0, 1] {
        let request = RequestId { thread: 0, number: id.into() };
        program.call(1, Action::Partitioned(Partitioned::Start { id: PartitionedId(id), request }));
        program.complete(1, id.into(), Outcome::Done);
    }
    program.complete(0, 0, Outcome::Done).complete(0, 1, Outcome::Done).finish();
    let (text, _) = mixed(&program, &Options::default()).unwrap();
    assert_eq!(records(&text, "1"), ["1 0", "1 0 after 10", "1 0 after 20"]);
}

#[test]
fn what_is_wrong_is_counted_and_the_rest_is_there() {
    // Another size, a partition that is never ready, and one before the start.
    let mut program = Program::new(2);
    init(&mut program, 0, 3, 10);
    init(&mut program, 1, 2, 7);
    ready(&mut program, 0, 1, 10);
    start(&mut program, 0, 0);
    start(&mut program, 1, 0);
    ready(&mut program, 0, 2, 10);
    program.call(0, Action::Forget(RequestId { thread: 0, number: 0 })).finish();
    let (text, summary) = mixed(&program, &Options::default()).unwrap();
    assert_eq!(records(&text, "0"), ["1 10", "1 10", "0 0"]);
    assert_eq!((summary.partitions_not_ready, summary.partitions_inactive), (1, 1));
    assert_eq!((summary.partitioned_sizes, summary.never_completed), (1, 1));
    // A receive that completed without its messages, and a cancelled one.
    let mut program = Program::new(2);
    init(&mut program, 0, 3, 10);
    init(&mut program, 1, 3, 10);
    start(&mut program, 0, 0);
    start(&mut program, 1, 0);
    ready(&mut program, 0, 2, 10);
    program.complete(1, 0, Outcome::Done).finish();
    assert!(matches!(mixed(&program, &Options::default()), Err(MixError::Unmatched(_))));
    let lenient = Options { lenient: true, ..Options::default() };
    let (text, summary) = mixed(&program, &lenient).unwrap();
    assert_eq!((summary.messages, summary.unmatched.receives, summary.partitions_not_ready), (2, 1, 1));
    assert_eq!(records(&text, "1").len(), 4);
    let mut program = Program::new(2);
    init(&mut program, 0, 3, 10);
    start(&mut program, 0, 0);
    ready(&mut program, 0, 2, 10);
    program.complete(0, 0, Outcome::Cancelled).finish();
    let (_, summary) = mixed(&program, &Options::default()).unwrap();
    assert_eq!((summary.messages, summary.dropped.cancelled), (0, 2));
}

#[test]
fn impossible_ones_are_refused() {
    let problem = |program: &Program| match mixed(program, &Options::default()) {
        Err(MixError::Event { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let mut program = Program::new(2);
    start(&mut program, 0, 0);
    assert_eq!(problem(&program), Problem::Partitioned(0));
    let mut program = Program::new(2);
    init(&mut program, 0, 3, 10);
    init(&mut program, 0, 3, 10);
    assert_eq!(problem(&program), Problem::Partitioned(0));
    for (first, count) in [(3, 1), (2, 2), (u32::MAX, 2)] {
        let mut program = Program::new(2);
        init(&mut program, 0, 3, 10);
        start(&mut program, 0, 0);
        ready(&mut program, first, count, 10);
        assert_eq!(problem(&program), Problem::Partition { transfer: 0, first, count });
    }
    let mut program = Program::new(2);
    init(&mut program, 1, 3, 10);
    start(&mut program, 1, 0);
    arrived(&mut program, 3);
    assert_eq!(problem(&program), Problem::Partition { transfer: 0, first: 3, count: 1 });
}

/// A start with very many partitions is a few bytes of a capture.
#[test]
fn very_many_partitions_are_counted() {
    let with = |partitions| {
        let mut program = Program::new(2);
        init(&mut program, 0, partitions, 10);
        init(&mut program, 1, partitions, 10);
        for task in 0..2 {
            start(&mut program, task, 0);
        }
        ready(&mut program, 0, partitions, 10);
        for task in 0..2 {
            program.complete(task, 0, Outcome::Done);
        }
        program.finish();
        let (_, summary) = mixed(&program, &Options::default()).unwrap();
        let bytes: u64 = summary.not_representable.values().map(|tally| tally.bytes.0).sum();
        (summary.messages, bytes)
    };
    let most = 1 << 16;
    assert_eq!(with(most), (most.into(), 0));
    for partitions in [most + 1, u32::MAX] {
        assert_eq!(with(partitions), (0, 20 * u64::from(partitions)));
    }
}

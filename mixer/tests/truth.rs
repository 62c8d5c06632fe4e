//! Random programs, executed by a small model of MPI that knows which send met which receive: mixing their captures must give
//! exactly the model's records, with any number of threads.

use crate::capture;
use crate::model::{self, After, Expected, Plan, Run};
use mixer::{Options, Quiet, SendWaits, Summary, mix};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::Path;
use vef_format::operation::OpCodes;
use vef_format::record::Dependency;
use vef_format::text::{Line, Reader};
use vef_format::units::Bytes;

/// Reads a trace into the form of the truth. Also checks the properties of every trace of ours: ids ascend along the file, and
/// no record is in front of its dependency.
fn read(trace: &Path) -> Vec<Vec<Expected>> {
    let mut reader = Reader::open(trace).unwrap();
    let header = *reader.header();
    let codes = OpCodes::default();
    let mut tasks = vec![Vec::new(); header.tasks as usize];
    let mut comms = HashMap::new();
    // By id: the task, and the index of its point-to-point record.
    let mut points: Vec<(u32, usize)> = Vec::new();
    let mut counts = vec![0; header.tasks as usize];
    let mut operations = 0;
    while let Some(line) = reader.next().unwrap() {
        let resolve = |after, points: &[(u32, usize)], operations: u64, own: u32| match after {
            Dependency::Start => After::Start,
            Dependency::Sent(id) => {
                let (task, number) = points[id.index()];
                assert_eq!(task, own, "a send dependency on another task's record");
                After::Own(number)
            }
            Dependency::Received(id) => {
                let (sender, message) = points[id.index()];
                After::Received { sender, message }
            }
            Dependency::Collective(id) => {
                assert!(id.0 < operations);
                After::Collective(id.index())
            }
        };
        match line {
            Line::Communicator { id, members } => {
                comms.insert(id, members.iter().map(|member| member.0).collect::<Vec<_>>());
            }
            Line::Message(message) => {
                assert_eq!(message.id.index(), points.len());
                let src = message.src.index();
                tasks[src].push(Expected::Message {
                    dst: message.dst.0,
                    bytes: message.bytes.0,
                    awaited: message.awaited,
                    after: resolve(message.after, &points, operations, message.src.0),
                    time: message.time.0,
                });
                points.push((message.src.0, counts[src]));
                counts[src] += 1;
            }
            Line::Collective(part) => {
                let after = resolve(part.after, &points, operations, part.task.0);
                assert!(part.id.0 <= operations);
                operations = operations.max(part.id.0 + 1);
                tasks[part.task.index()].push(Expected::Collective {
                    operation: part.id.index(),
                    members: comms[&part.comm].clone(),
                    op: codes.operation(part.op).unwrap(),
                    send: part.amounts.send.0,
                    recv: part.amounts.recv.0,
                    after,
                    time: part.time.0,
                });
            }
        }
    }
    assert_eq!(header.messages, points.len() as u64);
    assert_eq!(header.communicators, comms.len() as u64);
    assert_eq!(header.collectives, operations);
    tasks
}

/// Mixes the capture of `run`, with waits for own sends as computing.
fn mixed(run: &Run, jobs: usize, memory: Option<Bytes>) -> (Vec<Vec<Expected>>, Vec<u8>, Summary) {
    mixed_with(run, &Options { jobs, memory, send_waits: SendWaits::Compute, ..Options::default() })
}

fn mixed_with(run: &Run, options: &Options) -> (Vec<Vec<Expected>>, Vec<u8>, Summary) {
    let dir = tempfile::tempdir().unwrap();
    let (place, trace) = (dir.path().join("capture"), dir.path().join("t.vef"));
    capture::write(&place, &run.events);
    let summary = mix(&place, &trace, options, &Quiet).unwrap();
    (read(&trace), std::fs::read(&trace).unwrap(), summary)
}

/// The trace numbers collectives in file order; the model in order of execution.
fn renumbered(tasks: &[Vec<Expected>]) -> Vec<Vec<Expected>> {
    // A task's parts on one communicator are in the order of the operations, so the index of a part in the sorted list of (members,
    // position) is a common name.
    let mut names: HashMap<usize, (Vec<u32>, usize)> = HashMap::new();
    for task in tasks {
        let mut seen: HashMap<&[u32], usize> = HashMap::new();
        for record in task {
            if let Expected::Collective { operation, members, .. } = record {
                let order = seen.entry(members).or_default();
                names.entry(*operation).or_insert((members.clone(), *order));
                *order += 1;
            }
        }
    }
    let mut sorted: Vec<_> = names.iter().map(|(number, name)| (name.clone(), *number)).collect();
    sorted.sort();
    let numbers: HashMap<usize, usize> = sorted.iter().enumerate().map(|(at, &(_, old))| (old, at)).collect();
    let renumber = |record: &Expected| {
        let mut record = record.clone();
        if let Expected::Collective { operation, .. } = &mut record {
            *operation = numbers[operation];
        }
        let (Expected::Message { after, .. } | Expected::Collective { after, .. }) = &mut record;
        if let After::Collective(number) = after {
            *number = numbers[number];
        }
        record
    };
    tasks.iter().map(|task| task.iter().map(renumber).collect()).collect()
}

/// The starts of a task's records in a replay if all dependencies are satisfied at the times of the run: those of the run.
fn holds_start_rule(records: &[Expected], moments: &[model::Moment]) {
    let mut start = 0;
    for (at, (record, moment)) in records.iter().zip(moments).enumerate() {
        let (Expected::Message { time, .. } | Expected::Collective { time, .. }) = record;
        start = moment.released.max(start) + time;
        assert_eq!(start, moment.start, "start of record {at}, of thread {}", moment.thread);
    }
}

/// Sets the times of records to those without waits for own sends. Where threads interleave, waits and computing are not told apart in front of
/// the record of another thread.
fn leave_out_waits(records: &mut [Expected], moments: &[model::Moment]) {
    let mut front = None;
    for (record, moment) in records.iter_mut().zip(moments) {
        let (Expected::Message { time, .. } | Expected::Collective { time, .. }) = record;
        let computed = moment.start - moment.released - moment.waited;
        *time = front.map_or(computed, |front| computed.min(moment.start - front));
        front = Some(moment.start);
    }
}

fn holds(run: &Run) -> Summary {
    let (found, one, summary) = mixed(run, 1, None);
    for jobs in [2, 3] {
        let (_, more, _) = mixed(run, jobs, None);
        assert!(one == more, "{jobs} threads write other bytes than one");
    }
    // So little memory that each task is a part.
    let (_, parts, in_parts) = mixed(run, 2, Some(Bytes(1)));
    assert!(one == parts, "parts write other bytes than the whole");
    assert_eq!(in_parts.spilled == Bytes(0), run.events.len() == 1);
    let Summary { times, spilled, peak_memory, .. } = summary;
    let same = Summary { times, spilled, peak_memory, ..in_parts };
    assert_eq!(same, summary);
    let (found, mut expected) = (renumbered(&found), renumbered(&run.expected));
    for (rank, (found, expected)) in found.iter().zip(&expected).enumerate() {
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(found, expected, "record {at} of task {rank}");
        }
        assert_eq!(found.len(), expected.len(), "records of task {rank}");
        holds_start_rule(found, &run.moments[rank]);
    }
    expected.iter_mut().zip(&run.moments).for_each(|(records, moments)| leave_out_waits(records, moments));
    let (found, ..) = mixed_with(run, &Options::default());
    let found = renumbered(&found);
    for (rank, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "records of task {rank} without waits for own sends");
    }
    let records: usize = expected.iter().map(Vec::len).sum();
    assert_eq!(summary.records, records as u64);
    assert_eq!(summary.matched, summary.messages);
    assert_eq!(summary.negative_times, 0);
    summary
}

/// The run as seen by clocks that disagree.
fn skewed(mut run: Run, step: u64) -> Run {
    for (rank, events) in run.events.iter_mut().enumerate() {
        // Neither ascending nor descending with the ranks.
        let skew = (rank as u64 * 7 % 5) * step;
        for event in events {
            event.start += skew;
            event.end += skew;
        }
        for moment in &mut run.moments[rank] {
            moment.start += skew;
            moment.released += skew;
        }
    }
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn mixing_gives_the_truth(seed: u64, tasks in 1u32..6, steps in 0usize..250) {
        let summary = holds(&model::run(seed, tasks, steps));
        prop_assert_eq!(summary.early_receptions, 0);
    }

    #[test]
    fn mixing_gives_the_truth_of_threads(seed: u64, tasks in 1u32..6, threads in 2u16..4, steps in 0usize..250) {
        let summary = holds(&model::run_plan(seed, Plan { tasks, threads, early: false, steps }));
        prop_assert_eq!(summary.early_receptions, 0);
    }

    #[test]
    fn clocks_that_disagree_change_nothing(seed: u64, tasks in 1u32..6, steps in 0usize..250, step in 0u64..10_000) {
        holds(&skewed(model::run(seed, tasks, steps), step));
    }
}

#[test]
fn a_long_run_gives_the_truth() {
    assert_eq!(holds(&model::run(7, 24, 30_000)).early_receptions, 0);
}

#[test]
fn tasks_may_be_parked_for_longer_than_a_window() {
    // The clocks differ by more than the duration of the run, so most records come before their messages.
    let summary = holds(&skewed(model::run(8, 12, 110_000), 3_000_000));
    assert!(summary.records > 60_000 && summary.early_receptions > 100, "{summary:?}");
}

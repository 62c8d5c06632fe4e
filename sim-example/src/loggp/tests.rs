//! LogGOPSim's finishing times, and traces beside schedules.

use super::*;
use crate::error::SimError;
use crate::model::Model;
use crate::random::Random;
use crate::settings::{Settings, Workload};
use crate::simulate;
use crate::traffic::tests::reference;
use replay::SameNode;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::io::Write as _;
use std::path::Path;
use vef_format::error::Spot;

fn parameters(text: &str) -> LogGp {
    LogGp { parameters: text.parse().unwrap(), ..LogGp::default() }
}

fn schedule(text: &str) -> Schedule {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

fn read(text: &str) -> Result<Schedule, interchange::ImportError> {
    Schedule::from_bytes(std::path::Path::new("t.goal"), text.as_bytes().to_vec())
}

/// Finishing times in nanoseconds.
fn finish(text: &str, settings: &LogGp) -> Vec<u64> {
    let report = run_schedule(&schedule(text), settings).unwrap();
    report.finish.tasks_ps.iter().map(|at| at / 1000).collect()
}

#[test]
fn every_rank_of_every_set_as_loggopsim() {
    let (sets, expected) = (reference("loggp/sets.csv"), reference("loggp/expected.csv"));
    let sets: Vec<(&str, String)> = sets
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let named = ["L", "o", "g", "G", "O", "S"].iter().zip(&fields[1..]);
            let text: Vec<String> = named.map(|(name, value)| format!("{name}={value}")).collect();
            (fields[0], text.join(","))
        })
        .collect();
    let mut compared = 0;
    let mut ours = std::collections::HashMap::new();
    for line in expected.lines().skip(1) {
        let [file, set, rank, finished] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        for compat in [true, false] {
            let times = ours.entry((file, set, compat)).or_insert_with(|| {
                let text = reference(&format!("loggp/{file}.goal"));
                let set = &sets.iter().find(|(name, _)| *name == set).unwrap().1;
                finish(&text, &LogGp { compat, ..parameters(set) })
            });
            let time = times[rank.parse::<usize>().unwrap()];
            assert_eq!(time, finished.parse::<u64>().unwrap(), "{file}, {set}, rank {rank}, compat {compat}");
        }
        compared += 1;
    }
    assert_eq!(compared, 567);
}

const PAIR: &str = "num_ranks 2 rank 0 { a: send 1001b to 1 tag 3 } rank 1 { a: recv 1001b from 0 tag 3 }";

#[test]
fn a_message_by_hand() {
    let eager = parameters("L=100,o=10,g=5,G=2,O=1,S=1001");
    // o + L + o + 1000 max(O, G); the sender 10 + 1000 O.
    assert_eq!(finish(PAIR, &eager), [1010, 100 + 10 + 10 + 2000]);
    // Done when matched, at o + L.
    let late = parameters("L=5000,o=10,g=5,G=2,O=1,S=1000");
    assert_eq!(finish(PAIR, &late), [5010, 5000 + 10 + 10 + 2000]);
    // One round trip more, 2 (o + L); the sender is done with its own part.
    let handshake = LogGp { rendezvous: Rendezvous::Handshake, ..late };
    assert_eq!(finish(PAIR, &handshake)[1], 2 * 5010 + 5000 + 10 + 10 + 2000);
    assert_eq!(finish(PAIR, &handshake)[0], 2 * 5010 + 1010);
}

#[test]
fn computing_on_another_processor() {
    let text = "num_ranks 1 rank 0 { a: calc 100 b: calc 50 cpu 1 b requires a }";
    let settings = LogGp::default();
    assert_eq!(finish(text, &settings), [150]);
    // LogGOPSim has it done at once.
    assert_eq!(finish(text, &LogGp { compat: true, ..settings }), [100]);
    // Bytes after the first, of none.
    let empty = PAIR.replace("1001b", "0b");
    let settings = parameters("L=100,o=10,g=5,G=2,O=1,S=1000");
    assert_eq!(finish(&empty, &settings), [10, 120]);
    assert_eq!(finish(&empty, &LogGp { compat: true, ..settings }), [9, 119]);
}

#[test]
fn parameters_are_told_apart() {
    let text = "L=2500.5,o=1,g=2,G=0.125,O=0,S=100";
    let parsed: Parameters = text.parse().unwrap();
    assert_eq!(
        (parsed.latency, parsed.gap_per_byte, parsed.eager),
        (Picos(2_500_500), Picos(125), Bytes(100))
    );
    assert_eq!(parsed.to_string(), text);
    let twice = "L=1,o=2,L=1".parse::<Parameters>().unwrap_err().to_string();
    assert!(twice.starts_with("L is given a second time; write"), "{twice}");
    assert_eq!("L=1".parse::<Parameters>().unwrap().overhead, Parameters::default().overhead);
    for (text, problem) in [
        ("", "no NAME=NUMBER"),
        ("L=", "no number of nanoseconds"),
        ("L=-1", "no number of nanoseconds"),
        ("X=1", "there is no \"X\""),
        ("G=0.00001", "no number of nanoseconds"),
        ("S=many", "no number of bytes"),
    ] {
        let error = text.parse::<Parameters>().unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("write L=2500"), "{error}");
    }
}

/// A file that asks for much memory: each rank has as many processors as the first one uses.
static MANY_PLACES: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let others: String = (1..100_000).map(|rank| format!(" rank {rank} {{}}")).collect();
    format!("num_ranks 100000 rank 0 {{ a: calc 1 cpu 1023 }}{others}")
});

#[test]
fn files_that_are_no_schedules() {
    for (text, line, problem) in [
        ("", 1, "a GOAL schedule begins with num_ranks and their number: found the end"),
        ("num_ranks 0", 1, "num_ranks is 0"),
        ("num_ranks 4000000000", 0, "the number of ranks (4000000000, of which 0 are there) is too large"),
        ("num_ranks 5000000000", 1, "is too large"),
        ("num_ranks 2\nrank 2 {}", 2, "rank 2: there are 2 ranks"),
        ("num_ranks 2\nrank 1 {}\nrank 1 {}", 3, "rank 1 was there before, on line 2"),
        ("num_ranks 2\nrank 1 {", 2, "expected } or an operation, found the end"),
        ("num_ranks 1\nrank 0 {\na calc 1 }", 3, "expected a colon, requires or irequires, found `calc`"),
        ("num_ranks 1\nrank 0 {\na: send 1 to 0 }", 3, "expected a size like 100b, found `1`"),
        ("num_ranks 1\nrank 0 { a: send 1b to 1 tag 0 }", 2, "rank 1: there are 1"),
        ("num_ranks 1\nrank 0 { a: calc 1\na requires b }", 3, "no operation `b`"),
        ("num_ranks 1\nrank 0 { a: calc 1\na: calc 2 }", 3, "label `a` was there before, on line 2"),
        ("num_ranks 1\nrank 0 { a: calc 99999999999999999999 }", 2, "expected a time"),
        ("num_ranks 1\nrank 0 { a: calc 1 cpu 5000 }", 2, "5000 is too large"),
        (MANY_PLACES.as_str(), 0, "102400000 processors or interfaces of all ranks is too large"),
        ("num_ranks 1\nrank 0 { a: calc 1 ", 2, "found the end"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.to_string().contains(problem), "{text:?}: {error}");
        let found = if let Spot::Line(line) = error.place.spot { line } else { 0 };
        assert_eq!(found, line, "{text:?}: {error}");
    }
}

/// Ranks in any order, operations that are named before they come, and without labels.
#[test]
fn schedules_as_people_write_them() {
    let text = "// two\nnum_ranks 2\nrank 1 { b requires a\n recv 8b from -1 a: calc 7 b: calc 1 }rank 0{send 8b to 1}";
    let schedule = schedule(text);
    assert_eq!((schedule.ranks, schedule.operations.len()), (2, 4));
    assert_eq!(schedule.ends, [1, 4]);
    assert_eq!(schedule.requires, [(2, 3)]);
    assert_eq!(finish(text, &parameters("L=100,o=10,g=5,G=2,O=1")), [17, 134]);
}

/// An eager send ends without its receive, and is counted.
#[test]
fn messages_that_nobody_receives_are_named() {
    let text = "num_ranks 2 rank 0 { a: send 8b to 1 tag 7\nb: send 8b to 1 tag 8 } rank 1 { c: recv 8b from 0 tag 8 }";
    let outcome = run_schedule(&schedule(text), &LogGp::default()).unwrap();
    assert_eq!((outcome.messages, outcome.unreceived), (2, 1));
    assert!(
        outcome
            .to_text()
            .contains("1 of these messages; the first: rank 0, line 1: send of 8 bytes to 1, tag 7\n")
    );
}

#[test]
fn schedules_that_cannot_end_say_why() {
    for (text, why) in [
        (
            "num_ranks 2 rank 0 { a: recv 8b from 1 tag 7\nb: calc 1 b requires a } rank 1 {}",
            "2 operations not done; rank 0, line 1: receive of 8 bytes from 1, tag 7 waits for a message that is never sent",
        ),
        (
            "num_ranks 2 rank 0 { r: recv 8b from 1 tag 7\ns: send 8b to 1 tag 7 s requires r } \
             rank 1 {\nr: recv 8b from 0 tag 7\ns: send 8b to 0 tag 7 s requires r }",
            "rank 0, line 1: receive of 8 bytes from 1, tag 7 waits for that of line 4 of rank 1, which requires that of line 3; \
             rank 1, line 3: receive of 8 bytes from 0, tag 7 waits for that of line 2 of rank 0, which requires that of line 1",
        ),
        (
            "num_ranks 2 rank 0 { a: send 100000b to 1 tag 7 } rank 1 {}",
            "rank 0, line 1: send of 100 000 bytes to 1, tag 7 waits for a receive that never comes",
        ),
        (
            "num_ranks 1 rank 0 { a: calc 1 a requires b\nb: calc 2 b requires a }",
            "line 1: computing for 1.000 ns requires that of line 2",
        ),
    ] {
        let error = run_schedule(&schedule(text), &LogGp::default()).unwrap_err();
        assert!(matches!(error, SimError::StuckSchedule(_)) && error.to_string().contains(why), "{error}");
    }
    let late = "num_ranks 1 rank 0 { a: calc 18446744073709551 b: calc 18446744073709551 }";
    assert!(matches!(run_schedule(&schedule(late), &LogGp::default()), Err(SimError::EndOfTime(_))));
}

/// A random program of all ranks, as a trace and as a schedule: each message is waited for some time later.
fn random_program(seed: u64, ranks: u32, messages: u32, computing: u32) -> (String, String) {
    let mut random = Random::new(seed, 0);
    let mut draw = |limit: u32| random.below(limit);
    let mut trace = Vec::new();
    let mut goal: Vec<String> = vec![String::new(); ranks as usize];
    // Of each rank: what its next record depends on, and its last operation.
    let mut after = vec![(0, -1i64); ranks as usize];
    let mut last = vec![None::<u32>; ranks as usize];
    let mut operations = 0;
    let mut add = |goal: &mut Vec<String>, rank: u32, text: String| {
        let goal = &mut goal[rank as usize];
        writeln!(goal, "l{operations}: {text}").unwrap();
        if let Some(before) = last[rank as usize].replace(operations) {
            writeln!(goal, "l{operations} requires l{before}").unwrap();
        }
        operations += 1;
    };
    let mut open: Vec<(u32, u32, u32, u32)> = Vec::new();
    let mut sent = 0;
    while sent < messages || !open.is_empty() {
        if sent < messages && (open.len() < ranks as usize || draw(2) == 0) {
            let from = draw(ranks);
            let to = (from + 1 + draw(ranks - 1)) % ranks;
            let (bytes, time) = (1 + draw(5000), draw(computing));
            if time > 0 {
                add(&mut goal, from, format!("calc {time}"));
            }
            let id = trace.len() as u32;
            add(&mut goal, from, format!("send {bytes}b to {to} tag {id}"));
            let (kind, on) = after[from as usize];
            trace.push(format!("{id} {from} {to} {bytes} {} {time} {on}", 4 | kind));
            after[from as usize] = (1, i64::from(id));
            open.push((id, from, to, bytes));
            sent += 1;
        } else {
            let (id, from, to, bytes) = open.swap_remove(draw(open.len() as u32) as usize);
            add(&mut goal, to, format!("recv {bytes}b from {from} tag {id}"));
            let (kind, on) = after[to as usize];
            trace.push(format!("{} {to} {to} 0 {kind} 0 {on}", trace.len()));
            after[to as usize] = (2, i64::from(id));
        }
    }
    for rank in 0..ranks {
        let (kind, on) = after[rank as usize];
        trace.push(format!("{} {rank} {rank} 0 {kind} 0 {on}", trace.len()));
    }
    let header = format!("VEF3 {ranks} {} 0 0 0 0 1000", trace.len());
    let mut schedule = format!("num_ranks {ranks}\n");
    for (rank, text) in goal.iter().enumerate() {
        write!(schedule, "rank {rank} {{\n{text}}}\n").unwrap();
    }
    (format!("{header}\n{}\n", trace.join("\n")), schedule)
}

fn trace_finish(text: &str, settings: &LogGp) -> Vec<u64> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let jobs = vec![Workload::new(file.path())];
    // As schedules, which know no nodes.
    let mut all = Settings { jobs, same_node: SameNode::ViaNetwork, ..Settings::default() };
    all.network.model = Model::LogGp;
    all.network.loggp = *settings;
    let report = simulate(&all, &mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(report.runtime_ps, report.jobs[0].finish.max_ps);
    report.jobs[0].finish.tasks_ps.iter().map(|at| at / 1000).collect()
}

/// The send of a message of more than S bytes to the own rank completes with its reception: at 4000 + 1500 + 99 999 · 6 ns. Then the rank computes
/// for 10 000 ns, once.
#[test]
fn a_large_message_to_the_own_rank_releases_its_sender() {
    let trace = "VEF3 1 3 0 0 0 0 1000\n0 0 0 100000 4 0 -1\n1 0 0 0 1 10000 0\n2 0 0 0 2 0 0\n";
    let settings = parameters("L=2500,o=1500,g=1000,G=6,O=0,S=65535");
    assert_eq!(trace_finish(trace, &settings), [605_494 + 10_000]);
}

/// A trace takes as long as the schedule of the same operations. A wait for what has come is an operation of a schedule and none
/// of a trace, so that what competes for a processor may be ready in another order: without overhead that makes no difference,
/// with it mostly none, and in the mean a small one.
#[test]
fn traces_are_as_schedules() {
    let (mut same, mut all, mut apart) = (0, 0, 0.0);
    for seed in 0..300 {
        let computing = [1, 100, 3000, 100_000][seed as usize % 4];
        let (trace, goal) = random_program(seed, 2 + seed as u32 % 7, 40, computing);
        for set in ["L=2500,o=0,g=0,G=0,O=0", "L=70000,o=0,g=0,G=0,O=0"] {
            let settings = parameters(set);
            assert_eq!(trace_finish(&trace, &settings), finish(&goal, &settings), "seed {seed}, {set}");
        }
        for set in [
            "L=2500,o=0,g=1000,G=0,O=0",
            "L=2500,o=1500,g=1000,G=6,O=0",
            "L=1000,o=200,g=700,G=1,O=0",
            "L=500,o=100,g=150,G=3,O=5",
        ] {
            let settings = parameters(set);
            let (ours, theirs) = (trace_finish(&trace, &settings), finish(&goal, &settings));
            all += 1;
            same += u32::from(ours == theirs);
            let last = |times: &[u64]| *times.iter().max().unwrap() as f64;
            apart += last(&ours) / last(&theirs) - 1.0;
        }
    }
    assert!(same > all * 4 / 5, "{same} of {all}");
    assert!((apart / f64::from(all)).abs() < 0.005, "{apart} of {all}");
}

/// Exports a trace as a schedule.
fn exported(trace: &Path, preposted: bool) -> Schedule {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.bin");
    let options = interchange::ExportOptions { preposted, ..Default::default() };
    let format = interchange::Format::GoalBinary;
    interchange::export(format, trace, &Default::default(), &file, &options, &interchange::Quiet).unwrap();
    Schedule::read(&file, false, &interchange::Quiet).unwrap()
}

/// When each task ends by the rule of replays, on a network of a latency alone, in nanoseconds: its last record starts, and its messages
/// are there. Of messages and marks only; records are tried until none can start.
fn rule(trace: &str, latency: u64) -> Vec<u64> {
    let fields = |line: &str| line.split_whitespace().map(|field| field.parse().unwrap()).collect();
    let tasks = trace.split_whitespace().nth(1).unwrap().parse().unwrap();
    let mut of_tasks: Vec<VecDeque<Vec<i64>>> = vec![VecDeque::new(); tasks];
    for line in trace.lines().skip(1).filter(|line| !line.starts_with('C')) {
        let record: Vec<i64> = fields(line);
        of_tasks[record[1] as usize].push_back(record);
    }
    let (mut at, mut sent) = (vec![0u64; tasks], HashMap::new());
    let mut ends = vec![0; tasks];
    loop {
        let mut idle = true;
        for (task, records) in of_tasks.iter_mut().enumerate() {
            while let Some(record) = records.front() {
                let [id, _, dst, bytes, dep, time, after] = record[..] else { panic!("{record:?}") };
                let release = match dep & 3 {
                    0 => 0,
                    1 => sent[&after],
                    _ => match sent.get(&after) {
                        Some(&sent) => sent + latency,
                        None => break,
                    },
                };
                at[task] = at[task].max(release) + time as u64;
                sent.insert(id, at[task]);
                let is_mark = dst as usize == task && bytes == 0 && dep < 4;
                let arrival = if is_mark { at[task] } else { at[task] + latency };
                ends[dst as usize] = ends[dst as usize].max(arrival);
                records.pop_front();
                idle = false;
            }
            ends[task] = ends[task].max(at[task]);
        }
        if idle {
            assert!(of_tasks.iter().all(VecDeque::is_empty), "stuck");
            return ends;
        }
    }
}

#[test]
fn an_exported_trace_ends_rank_by_rank_when_its_replay_does() {
    let settings = |latency: u64| parameters(&format!("L={latency},o=0,g=0,G=0,O=0,S=1000000000"));
    let check = |trace: &Path| {
        let text = std::fs::read_to_string(trace).unwrap();
        for (latency, preposted) in [(1, false), (2500, false), (70_000, true)] {
            let schedule = exported(trace, preposted);
            let report = run_schedule(&schedule, &settings(latency)).unwrap();
            let ours: Vec<u64> = report.finish.tasks_ps.iter().map(|at| at / 1000).collect();
            assert_eq!(ours, rule(&text, latency), "{} at {latency}", trace.display());
        }
    };
    for seed in 0..50 {
        let (trace, _) = random_program(seed, 2 + seed as u32 % 7, 40, 3000);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(trace.as_bytes()).unwrap();
        check(file.path());
    }
    for name in ["p2p-a", "p2p-b"] {
        if let Some(trace) = skipping::shared(&format!("data/vef-prospector/{name}.vef")) {
            check(&trace);
        }
    }
}

/// Collectives, too, become the messages that a replay makes of them.
#[test]
fn exported_collectives_take_as_long_as_replayed_ones() {
    let directory = tempfile::tempdir().unwrap();
    for (pattern, ranks) in [("allreduce", 7), ("alltoall", 6), ("training", 8), ("fft", 9)] {
        let mut workload = workloads::Workload::new(workloads::pattern(pattern).unwrap(), ranks);
        (workload.iterations, workload.imbalance) = (3, 0.5);
        let trace = directory.path().join(format!("{pattern}.vef"));
        workload.write_text(&mut std::fs::File::create(&trace).unwrap()).unwrap();
        let text = std::fs::read_to_string(&trace).unwrap();
        for latency in ["L=100", "L=30000"] {
            let settings = parameters(&format!("{latency},o=0,g=0,G=0,O=0,S=1000000000"));
            let report = run_schedule(&exported(&trace, false), &settings).unwrap();
            let ours: Vec<u64> = report.finish.tasks_ps.iter().map(|at| at / 1000).collect();
            assert_eq!(ours, trace_finish(&text, &settings), "{pattern}, {latency}");
        }
    }
}

//! Exported lines of SimGrid replay to their end if the trace does, although SimGrid's collectives make each rank wait.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common;
use interchange::{ExportOptions, Exported, Format, Quiet};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use vef_format::operation::OpCodes;

/// The lines of `trace`, written to `actions` in a directory.
fn exported(trace: &str, directory: &Path) -> (String, Exported) {
    let (from, to) = (directory.join("trace.vef"), directory.join("actions"));
    fs::write(&from, trace).unwrap();
    let options = ExportOptions::default();
    let exported =
        interchange::export(Format::Ti, &from, &OpCodes::default(), &to, &options, &Quiet).unwrap();
    (fs::read_to_string(to).unwrap(), exported)
}

/// The ranks that do not end, with the lines in which they wait, if every rank waits in a collective until all have called it.
fn stuck(lines: &str, ranks: usize) -> Vec<String> {
    let mut programs: Vec<Vec<Vec<&str>>> = vec![Vec::new(); ranks];
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        programs[words[0].parse::<usize>().unwrap()].push(words[1..].to_vec());
    }
    let mut at = vec![0; ranks];
    let mut sent: BTreeMap<[String; 3], i64> = BTreeMap::new();
    loop {
        let before = at.clone();
        for rank in 0..ranks {
            while let Some(words) = programs[rank].get(at[rank]) {
                match words[..] {
                    ["init" | "sleep" | "irecv" | "waitall" | "finalize", ..] => {}
                    ["isend", to, tag, ..] => {
                        *sent.entry([rank.to_string(), to.into(), tag.into()]).or_default() += 1;
                    }
                    ["wait", from, to, tag] => match sent.get_mut(&[from, to, tag].map(String::from)) {
                        Some(count) if *count > 0 => *count -= 1,
                        _ => break,
                    },
                    _ => break,
                }
                at[rank] += 1;
            }
        }
        let next: Vec<Option<&Vec<&str>>> = (0..ranks).map(|rank| programs[rank].get(at[rank])).collect();
        let collective = |words: &&Vec<&str>| words[0] != "wait";
        if next.iter().all(|words| words.as_ref().is_some_and(collective)) {
            assert!(next.iter().all(|words| words == &next[0]), "{next:?}");
            at.iter_mut().for_each(|at| *at += 1);
        } else if at == before {
            return (0..ranks)
                .filter_map(|rank| next[rank].map(|words| format!("{rank} {words:?}")))
                .collect();
        }
    }
}

/// `exported` replays to its end, here and in SimGrid.
fn assert_ends(trace: &str, ranks: u32, simgrid: bool) -> Exported {
    let work = tempfile::tempdir().unwrap();
    let (lines, exported) = exported(trace, work.path());
    let report = vef_format::validate::validate(&work.path().join("trace.vef"), &Default::default()).unwrap();
    assert!(report.is_complete() && report.errors == 0, "{trace}{:?}", report.problems);
    assert_eq!(stuck(&lines, ranks as usize), [""; 0], "{trace}{lines}");
    if simgrid && let Some(output) = common::simgrid::replayed(work.path(), ranks) {
        assert!(output.contains("Simulation time"), "{output}{lines}");
    }
    exported
}

/// Rank 1 locks a window of rank 0, which answers while it waits in a Barrier, as MPICH 4.0 had it.
const LOCKED: &str = "VEF3 2 8 2 3 6 0 1000
C0 0 1
C1 0 1
G0 C1 6 0 0 0 0 125676 -1
G0 C1 6 1 0 0 0 56964 -1
0 1 0 0 7 27471 G0
G1 C0 6 0 0 0 3 36924 G0
1 0 1 0 6 0 0
2 1 1 0 1 0 0
3 1 0 4 6 12729 1
4 1 1 0 1 19959 3
5 0 1 0 6 0 3
G1 C0 6 1 0 0 2 14882 5
G2 C1 6 1 0 0 3 41282 G1
G2 C1 6 0 0 0 3 43074 G1
6 1 1 0 3 8793 G2
7 0 0 0 3 8713 G2
";

#[test]
fn a_barrier_stands_behind_the_answers_that_its_rank_gives_in_it() {
    let exported = assert_ends(LOCKED, 2, true);
    let late =
        "SimGrid's ranks wait in their collectives: 1 call stands behind records that follow it in the trace";
    assert!(exported.remarks.iter().any(|remark| remark == late), "{:?}", exported.remarks);
    assert_eq!((exported.expanded, exported.messages), (0, 4));
}

/// A non-blocking Allreduce during which rank 0 computes, and one that it waits for at once.
#[test]
fn a_collective_that_overlaps_computing_blocks_with_a_remark() {
    let trace = "VEF3 2 3 1 2 4 0 1000
C0 0 1
G0 C0 2 0 8 8 0 0 -1
G0 C0 2 1 8 8 0 0 -1
0 0 0 0 0 5000 -1
G1 C0 2 0 8 8 3 0 G0
G1 C0 2 1 8 8 3 0 G0
1 0 0 0 3 0 G1
2 1 1 0 3 0 G1
";
    let exported = assert_ends(trace, 2, true);
    let blocks = "SimGrid's ranks wait in their collectives: 1 call blocks here, while the trace waits later (non-blocking)";
    assert_eq!(
        exported.remarks.iter().filter(|remark| *remark == blocks).count(),
        1,
        "{:?}",
        exported.remarks
    );
    let waits = assert_ends(
        &trace.replace("5000 -1", "5000 G0").replace("0 0 0 0 0 5000", "0 0 0 0 3 5000"),
        2,
        false,
    );
    assert!(!waits.remarks.iter().any(|remark| remark.contains("block")), "{:?}", waits.remarks);
}

/// The root of a Bcast of one byte, or the last rank of a Reduce, goes on before the others call it.
#[test]
fn a_collective_that_a_rank_must_leave_early_becomes_messages() {
    for (operation, root, other) in [(0, "1 0", "0 1"), (1, "0 1", "1 0")] {
        let (first, second) = if operation == 0 { (root, other) } else { (other, root) };
        let trace = format!(
            "VEF3 2 4 1 1 2 0 1000\nC0 0 1\nG0 C0 {operation} 0 {first} 0 0 -1\n0 0 1 8 7 5 G0\n1 1 1 0 0 5 -1\nG0 C0 {operation} 1 {second} 2 0 0\n\
             2 0 0 0 1 0 0\n3 1 1 0 3 0 G0\n"
        );
        let exported = assert_ends(&trace, 2, true);
        assert_eq!((exported.expanded, exported.messages), (1, 2), "{trace}");
        let remark = "1 collective became messages: some ranks leave before others have called it";
        assert!(exported.remarks.iter().any(|found| found == remark), "{:?}", exported.remarks);
    }
}

#[test]
fn a_trace_that_does_not_replay_is_refused() {
    let trace =
        "VEF3 2 4 1 0 0 0 1000\nC0 0 1\n0 0 0 0 0 0 -1\n1 0 1 8 6 0 3\n2 1 1 0 0 0 -1\n3 1 0 8 6 0 1\n";
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("trace.vef"), work.path().join("actions"));
    fs::write(&from, trace).unwrap();
    let options = ExportOptions::default();
    let refused = interchange::export(Format::Ti, &from, &OpCodes::default(), &to, &options, &Quiet);
    let refused = refused.unwrap_err().to_string();
    let why = "trace.vef:4: tasks wait for each other: line 4 (task 0) needs id 3 at line 6 (task 1), which needs id 1 at line 4";
    assert!(refused.ends_with(why), "{refused}");
    assert!(!to.exists());
}

/// A task of a random program.
#[derive(Default)]
struct Task {
    lines: Vec<String>,
    /// Dependency of the next record, and its kind.
    after: Option<(u32, String)>,
    last: Option<String>,
    /// Messages to it that it has not waited for.
    arrived: Vec<usize>,
    /// Collectives called on each communicator, and those that it has not waited for.
    calls: [usize; 2],
    open: Vec<(usize, usize)>,
}

/// A collective: its operation, root, and the members that have called it.
struct Collective {
    operation: u32,
    root: u32,
    called: BTreeSet<u32>,
}

/// A program whose ranks send, receive, and call collectives, which they await later. It runs in the order in which it is made.
fn random_trace(seed: u64) -> (String, u32) {
    let mut random = SmallRng::seed_from_u64(seed);
    let ranks = random.random_range(2..6u32);
    let comms: [Vec<u32>; 2] = [(0..ranks).collect(), (ranks.min(3) - 2..ranks).collect()];
    let mut tasks: Vec<Task> = (0..ranks).map(|_| Task::default()).collect();
    let mut collectives: [Vec<Collective>; 2] = Default::default();
    let (mut messages, mut awaited, rounds) = (0, BTreeSet::new(), 120);
    // Messages have ids from 0, marks behind them.
    let mut marks = 1000;
    for step in 0.. {
        let ends = step >= rounds;
        let rank = if ends { step % ranks } else { random.random_range(0..ranks) };
        if step > rounds + 400 * ranks {
            break;
        }
        let task = &mut tasks[rank as usize];
        let action = if ends { [1, 3, 2][random.random_range(0..3usize)] } else { random.random_range(0..4) };
        let (kind, on) = task.after.clone().unwrap_or_else(|| match &task.last {
            Some(last) => (1, last.clone()),
            None => (0, "-1".to_owned()),
        });
        let time = random.random_range(0..3) * 100;
        match action {
            0 => {
                let to = (rank + random.random_range(1..ranks)) % ranks;
                let bytes = *[0, 8, 3000, 200_000].choose(&mut random).unwrap();
                task.lines.push(format!("{messages} {rank} {to} {bytes} DEP{kind} {time} {on}"));
                (task.after, task.last) = (None, Some(messages.to_string()));
                tasks[to as usize].arrived.push(messages);
                messages += 1;
            }
            1 if !task.arrived.is_empty() && task.after.is_none() => {
                let at = random.random_range(0..task.arrived.len());
                let message = task.arrived.swap_remove(at);
                awaited.insert(message);
                task.lines.push(format!("{marks} {rank} {rank} 0 {kind} {time} {on}"));
                (task.after, task.last) = (Some((2, message.to_string())), Some(marks.to_string()));
                marks += 1;
            }
            2 => {
                let comm = random.random_range(0..2usize);
                let all = &comms[comm];
                let call = task.calls[comm];
                if !all.contains(&rank) || (ends && collectives[comm].len() == call) {
                    continue;
                }
                if collectives[comm].len() == call {
                    let operation = *[0, 1, 2, 6].choose(&mut random).unwrap();
                    let root = *all.choose(&mut random).unwrap();
                    collectives[comm].push(Collective { operation, root, called: BTreeSet::new() });
                }
                let collective = &mut collectives[comm][call];
                collective.called.insert(rank);
                let (operation, is_root) = (collective.operation, collective.root == rank);
                let sizes = match operation {
                    0 if is_root => "1 0",
                    0 => "0 1",
                    1 if is_root => "0 1",
                    1 => "1 0",
                    2 => "64 64",
                    _ => "0 0",
                };
                task.lines.push(format!(
                    "G{} C{comm} {operation} {rank} {sizes} {kind} {time} {on}",
                    2 * call + comm
                ));
                task.open.push((comm, call));
                task.calls[comm] += 1;
                task.after = None;
                task.last = None;
                // Like a call that is not blocking: the next record depends on a mark.
                task.lines.push(format!("{marks} {rank} {rank} 0 0 0 -1"));
                task.last = Some(marks.to_string());
                marks += 1;
            }
            3 if !task.open.is_empty() && task.after.is_none() => {
                let at = random.random_range(0..task.open.len());
                let (comm, call) = task.open[at];
                let collective = &collectives[comm][call];
                let leaves = match collective.operation {
                    0 => collective.root == rank,
                    _ => false,
                };
                if leaves || collective.called.len() == comms[comm].len() {
                    task.open.swap_remove(at);
                    task.after = Some((3, format!("G{}", 2 * call + comm)));
                }
            }
            _ => {}
        }
    }
    let mut text = String::new();
    for (rank, task) in (0..).zip(&mut tasks) {
        let (kind, on) = task.after.take().unwrap_or_else(|| match &task.last {
            Some(last) => (1, last.clone()),
            None => (0, "-1".to_owned()),
        });
        task.lines.push(format!("{marks} {rank} {rank} 0 {kind} 0 {on}"));
        marks += 1;
        for line in &task.lines {
            let id = line.split(' ').next().and_then(|id| id.parse::<usize>().ok());
            let plus = if id.is_some_and(|id| awaited.contains(&id)) { 4 } else { 0 };
            let kinds = (0..4).map(|kind| (format!("DEP{kind}"), (kind + plus).to_string()));
            text += &kinds.fold(line.clone(), |line, (from, to)| line.replace(&from, &to));
            text.push('\n');
        }
    }
    let all: usize = collectives.iter().map(Vec::len).sum();
    let parts = text.lines().filter(|line| line.starts_with('G')).count();
    let count = text.lines().count() - parts;
    let listed = |comm: &Vec<u32>| comm.iter().map(|rank| format!(" {rank}")).collect::<String>();
    let [world, part] = comms.each_ref().map(listed);
    (format!("VEF3 {ranks} {count} 2 {all} {parts} 0 1000\nC0{world}\nC1{part}\n{text}"), ranks)
}

#[test]
fn random_traces_end() {
    let (mut late, mut in_steps) = (0, 0);
    for seed in 0..400 {
        let (trace, ranks) = random_trace(seed);
        let exported = assert_ends(&trace, ranks, seed < 40);
        late += exported.remarks.iter().filter(|remark| remark.contains("behind records")).count();
        in_steps += exported.remarks.iter().filter(|remark| remark.contains("became messages")).count();
    }
    assert!(late > 100 && in_steps > 20, "{late} {in_steps}");
}

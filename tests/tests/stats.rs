//! `vef stats` against an independent count (`tests/py/count_trace.py`, `count_notes.py`), on traces of every kind, and what it says to those who
//! bring it nonsense.

use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_tests::counted::{counted, holds};
use vef_tests::{Mpi, installed, root, run, vef};

/// The bundled capture as text and as container.
fn demo(work: &Path) -> [PathBuf; 2] {
    ["demo.vef", "demo.vefx"].map(|name| {
        let trace = work.join(name);
        run(vef().args(["mix", "-i"]).arg(root().join("cli/demo/capture")).arg("-o").arg(&trace)).success();
        trace
    })
}

/// A trace of so many tasks with random messages and collectives. It is well-formed, which is all that counting asks.
fn random_trace(tasks: u64, records: u64, seed: u64) -> String {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut text = String::new();
    let (mut messages, mut parts) = (0, 0);
    let mut begun = vec![false; tasks as usize];
    for id in 0..records {
        let task = random(tasks);
        let dependency = if std::mem::replace(&mut begun[task as usize], true) { 1 + random(3) } else { 0 };
        let on = match dependency {
            0 => "-1".to_owned(),
            3 => format!("G{}", random(9)),
            _ => random(records).to_string(),
        };
        let time = random(1000);
        let _ = match random(8) {
            0 => {
                parts += 1;
                let (comm, code, sent, received) = (random(2), random(18), random(5000), random(5000));
                writeln!(
                    text,
                    "G{} C{comm} {code} {task} {sent} {received} {dependency} {time} {on}",
                    random(9)
                )
            }
            1 => {
                messages += 1;
                writeln!(text, "{id} {task} {task} 0 {dependency} {time} {on}")
            }
            2 if random(20) == 0 => {
                messages += 1;
                // Beyond the whole numbers that a double can hold.
                let size = (1 << 53) + random(3);
                let dst = random(tasks);
                writeln!(text, "{id} {task} {dst} {size} {} {time} {on}", dependency + 4)
            }
            _ => {
                messages += 1;
                let size = random(2) * (random(1 << 20) >> random(20));
                writeln!(
                    text,
                    "{id} {task} {} {size} {} {time} {on}",
                    random(tasks),
                    dependency + 4 * random(2)
                )
            }
        };
    }
    let members: Vec<String> = (0..tasks).map(|task| task.to_string()).collect();
    let few = tasks.min(3) as usize;
    let head = format!(
        "VEF3 {tasks} {messages} 2 9 {parts} 0 1000\nC0 {}\nC1 {}\n",
        members.join(" "),
        members[..few].join(" ")
    );
    head + &text
}

fn stats(trace: &Path, options: &[&str]) -> Value {
    let ended = run(vef().arg("stats").arg(trace).arg("--json").args(options)).success();
    serde_json::from_str(&ended.stdout()).expect("JSON")
}

fn agrees(trace: &Path, options: &[&str]) {
    let (mut report, mut counted) = (stats(trace, options), counted("count_trace.py", trace, &[]));
    // In any order: those with as many bytes may change places.
    let key = |row: &Value| (row["operation"].to_string(), row["members"].as_u64());
    for rows in [&mut report, &mut counted].map(|all| &mut all["collectives"]["operations"]) {
        rows.as_array_mut().expect("a table").sort_by_key(key);
    }
    holds(&report, &counted, &trace.display().to_string());
}

/// Each line is valid, and the sum in picoseconds is not a number of 128 bits.
#[test]
fn sums_without_bounds_are_the_largest_number() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("t.vef");
    let most = u64::MAX;
    let lines = format!("VEF3 2 2 0 0 0 0 {most}\n0 0 0 0 0 {most} -1\n1 1 1 0 0 {most} -1\n");
    std::fs::write(&trace, lines).expect("a trace");
    let stats = run(vef().arg("stats").arg(&trace).arg("--json")).success().stdout();
    let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
    assert_eq!(stats["totals"]["computing_ps"], u128::MAX.to_string());
    run(vef().arg("stats").arg(&trace)).success();
    run(vef().arg("report").arg(&trace).args(["--no-replay", "--format", "md"])).success();
}

#[test]
fn every_number_is_that_of_an_independent_count() {
    if !installed("python3") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    for trace in &demo(work.path())[..1] {
        agrees(trace, &[]);
    }
    let path = work.path().join("random.vef");
    for (tasks, records, seed) in [(1, 50, 1), (2, 0, 2), (7, 3000, 3), (600, 20_000, 4), (5000, 30_000, 5)] {
        std::fs::write(&path, random_trace(tasks, records, seed)).expect("a trace");
        agrees(&path, &["-j", "2"]);
    }
}

/// What a container notes: functions, phases, hosts.
#[test]
fn notes_are_those_of_an_independent_count() {
    if !installed("python3") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    let mut traces = vec![demo(work.path())[1].clone()];
    for mpi in Mpi::installed() {
        let program = mpi.compile(work.path(), "phases", &["tests/c/phases.c"]).display().to_string();
        let [capture, trace] = ["", ".vefx"].map(|end| work.path().join(format!("{mpi:?}{end}")));
        let mpirun = mpi.launcher().join(" ");
        let words = ["run", "--oversubscribe", "--mpirun", &mpirun, "-n", "3", "-o"];
        run(vef().args(words).arg(capture).arg("--mix").arg(&trace).args(["--", &program, "4", "barrier"]))
            .success();
        let shown = stats(&trace, &[]);
        assert_eq!(shown["phases"].as_array().map(Vec::len), Some(3), "{mpi:?}");
        // The functions are those that the program called: no other non-blocking send than that of MPI_Start.
        let calls = shown["calls"].as_array().expect("functions").iter();
        let mut functions: Vec<_> = calls.map(|call| call["function"].as_str().expect("a name")).collect();
        functions.sort_unstable();
        let expected = [
            "MPI_Allreduce",
            "MPI_Barrier",
            "MPI_Comm_dup",
            "MPI_Finalize",
            "MPI_Recv",
            "MPI_Send",
            "MPI_Start",
            "MPI_Wait",
        ];
        assert_eq!(functions, expected, "{mpi:?}");
        traces.push(trace);
    }
    for trace in traces {
        let counted = counted("count_notes.py", &trace, &[]);
        assert!(!counted["calls"].as_array().expect("a table").is_empty());
        let mut report = stats(&trace, &[]);
        let phases = report["phases"].as_array_mut().expect("a table");
        let computing = |phase: &Value| phase["computing_ps"].as_u64().expect("a time");
        assert!(phases.is_sorted_by_key(|phase| std::cmp::Reverse(computing(phase))), "{phases:?}");
        phases.sort_by_key(|phase| phase["name"].to_string());
        holds(&report, &counted, &trace.display().to_string());
    }
}

#[test]
fn text_container_and_any_number_of_threads_say_the_same() {
    let work = tempfile::tempdir().expect("a directory");
    let [text, container] = demo(work.path());
    let common = |trace: &Path, jobs: &str| {
        let mut report = stats(trace, &["-j", jobs]);
        for key in ["head", "calls", "locality", "spent"] {
            report.as_object_mut().expect("an object").remove(key);
        }
        report
    };
    assert_eq!(common(&text, "1"), common(&container, "1"));
    // More than one stretch of lines, with lines that are not quickly read between them.
    let long = work.path().join("long.vef");
    let trace = random_trace(50, 300_000, 6);
    assert!(trace.len() > 5 << 20, "{}", trace.len());
    std::fs::write(&long, trace).expect("a trace");
    let alone = run(vef().arg("stats").arg(&long).args(["--json", "-j", "1"])).success().stdout();
    for jobs in ["2", "7"] {
        assert_eq!(run(vef().arg("stats").arg(&long).args(["--json", "-j", jobs])).success().stdout(), alone);
    }
    // From a pipe, but for the name.
    let mut piped = Command::new("sh");
    piped.args(["-c", "cat \"$1\" | \"$2\" stats - --json", "sh"]).arg(&long).arg(vef().get_program());
    let piped = run(&mut piped).success().stdout();
    assert_eq!(piped.replace("standard input", &long.display().to_string()), alone);
}

#[test]
fn tables_are_those_of_the_json() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("random.vef");
    std::fs::write(&trace, random_trace(40, 5000, 7)).expect("a trace");
    let report = stats(&trace, &[]);
    let csv = |table: &str| {
        let text = run(vef().arg("stats").arg(&trace).args(["--csv", table])).success().stdout();
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        (lines.next().expect("a head"), lines.collect::<Vec<_>>())
    };
    let (heads, rows) = csv("ranks");
    let exact = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for (number, head) in heads.iter().enumerate().skip(1) {
        let column: Vec<String> = rows.iter().map(|row| row[number].clone()).collect();
        let json: Vec<String> = report["ranks"][head].as_array().expect(head).iter().map(exact).collect();
        assert_eq!(column, json, "{head}");
    }
    let (heads, rows) = csv("pairs");
    assert_eq!(heads, ["src", "dst", "messages", "bytes"]);
    assert_eq!(rows.len() as u64, report["pairs"]["different"].as_u64().expect("a number"));
    let unknown = run(vef().arg("stats").arg(&trace).args(["--csv", "nothing"])).exited(2);
    assert!(unknown.stderr().contains("ranks, pairs, sizes"), "{}", unknown.stderr());
    // What people see of it: the same numbers, in groups.
    let text = run(vef().arg("stats").arg(&trace).args(["--by", "pair", "--top", "3"])).success().stdout();
    let top = &report["pairs"]["top"][0];
    assert!(text.contains(&format!("{} → {}", top["src"], top["dst"])), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains(" more (--top, --csv)"), "{text}");
}

#[test]
fn nonsense_is_told_in_one_line() {
    let work = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = work.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let fine = "VEF3 2 1 0 0 0 0 1000\n0 0 1 8 4 0 -1\n";
    for (path, part) in [
        (file("empty.vef", ""), "empty.vef: the file is empty"),
        (file("short.vef", &fine.replace(" 1 0 0 0 0 1000", " 2 0 0 0 0 1000")), "short.vef"),
        (file("rank.vef", &fine.replace("0 0 1 8", "0 0 2 8")), "rank.vef:2: "),
        (file("cut.vefx", "VEFX"), "cut.vefx"),
        (
            file("many.vef", "VEF3 2147483647 0 0 0 0 0 1000\n"),
            "many.vef: the header promises 2147483647 tasks",
        ),
        (work.path().join("missing.vef"), "missing.vef: No such file"),
    ] {
        let ended = run(vef().arg("stats").arg(&path)).exited(2);
        assert!(ended.stderr().contains(part), "{}", ended.stderr());
        assert_eq!((ended.stderr().lines().count(), ended.stdout().as_str()), (1, ""), "{}", ended.stderr());
    }
    // In the middle of a long text, the line is the file's.
    let long = random_trace(50, 300_000, 8);
    let (line, at) = (170_000, long.match_indices('\n').nth(169_998).expect("a line").0 + 1);
    let path = file("long.vef", &format!("{}nonsense {}", &long[..at], &long[at..]));
    let ended = run(vef().arg("stats").arg(&path)).exited(2);
    assert!(ended.stderr().contains(&format!("long.vef:{line}: ")), "{}", ended.stderr());
    // Nothing sent, nothing computed; and only collectives.
    for (name, text) in [
        ("silent.vef", "VEF3 3 0 0 0 0 0 1000\n"),
        ("only.vef", "VEF3 2 0 1 1 2 0 1000\nC0 0 1\nG0 C0 6 0 0 0 0 5 -1\nG0 C0 6 1 0 0 0 5 -1\n"),
    ] {
        let path = file(name, text);
        let report = stats(&path, &[]);
        assert_eq!(report["totals"]["messages"], 0, "{name}");
        assert!(run(vef().arg("stats").arg(&path)).success().stdout().contains("0 with 0 B"), "{name}");
    }
}

/// Two ranks, each message takes 1 µs and 0.8 ns a byte: rank 1 waits for rank 0, which sends at 1 µs, and rank 0 for the answer.
#[test]
fn who_waits_for_whom_is_shown_of_a_replay() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = "VEF3 2 4 1 1 2 2 1000\nC0 0 1\n0 0 1 1250 4 1000 -1\n1 1 0 0 6 500 0\n2 0 0 0 2 100 1\nG0 C0 6 0 0 0 1 0 2\n\
                 G0 C0 6 1 0 0 1 0 1\n3 0 0 0 3 0 G0\n4 1 1 0 3 0 G0\n";
    std::fs::write(work.path().join("t.vef"), trace.replace("VEF3 2 4", "VEF3 2 5")).expect("a trace");
    let stats = |words: &[&str]| run(vef().current_dir(work.path()).args(["stats", "t.vef"]).args(words));
    let pairs = stats(&["--csv", "wait-pairs"]).success().stdout();
    // Rank 0 sends at 1 µs, which arrives at 3; rank 1 answers at 3.5, which arrives at 4.5. Rank 0 enters the barrier at 4.6.
    let expected = [
        "job,rank,on_rank,cause,waits,time_ps",
        "0,0,1,late sender,1,2500000",
        "0,1,0,message under way,1,2000000",
        "0,1,0,late member of a collective,1,1100000",
        "0,0,1,message under way,1,1000000",
        "0,1,0,late sender,1,1000000",
    ];
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[1..].sort();
        lines
    };
    assert_eq!(lines(&pairs), lines(&expected.join("\n")));
    let causes = stats(&["--csv", "wait-causes"]).success().stdout();
    assert!(causes.contains("collective under way,,,1,1000000\n"), "{causes}");
    let slow = stats(&["--by", "wait", "--latency", "2us"]).success().stdout();
    assert!(slow.contains("message under way") && slow.contains("5.000 µs"), "{slow}");
    let refused = stats(&["--latency", "2us"]).exited(2).stderr();
    assert!(refused.contains("no effect without --by wait"), "{refused}");
    let report = run(vef().current_dir(work.path()).args(["report", "t.vef", "--format", "json"])).success();
    let report: serde_json::Value = serde_json::from_str(&report.stdout()).expect("JSON");
    assert_eq!(report["replayed"]["waits"]["pairs"].as_array().map(Vec::len), Some(5), "{report:#}");
}

//! One-sided requests that a network interface answers (`vef mix --rma hardware`), or the target itself.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vef_tests::{Mpi, run, vef};

const RANKS: u32 = 4;
const MILLISECOND: u64 = 1_000_000_000;
/// Of traces that do not say which tasks are interfaces.
const PLAIN: &str = ": tasks 4 to 7 stand for storage servers or network interfaces; without";

/// Bytes of one-sided transfers by sending and receiving rank; an interface counts as its rank. Of a text trace, whose messages of the program have none.
fn moved(trace: &Path) -> BTreeMap<(u32, u32), u64> {
    let text = std::fs::read_to_string(trace).expect("a trace");
    let mut moved = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with(['C', 'G', 'V'])) {
        let fields: Vec<u64> = line.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
        let [_, from, to, bytes, ..] = fields[..] else { panic!("{line}") };
        if bytes > 0 {
            *moved.entry((from as u32 % RANKS, to as u32 % RANKS)).or_default() += bytes;
        }
    }
    moved
}

/// What the program printed.
fn counted(printed: &str) -> BTreeMap<(u32, u32), u64> {
    let mut counted = BTreeMap::new();
    for line in printed.lines().filter(|line| !line.starts_with("waited ")) {
        let fields: Vec<u64> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
        let [origin, target, there, back] = fields[..] else { panic!("{line}") };
        for (pair, bytes) in [((origin, target), there), ((target, origin), back)] {
            if bytes > 0 {
                *counted.entry((pair.0 as u32, pair.1 as u32)).or_default() += bytes;
            }
        }
    }
    counted
}

fn json(command: &mut std::process::Command) -> Value {
    serde_json::from_str(&run(command).success().stdout()).expect("JSON")
}

struct Captured {
    mpi: Mpi,
    work: tempfile::TempDir,
    printed: String,
}

impl Captured {
    fn all() -> Vec<Self> {
        let of = |mpi: Mpi| {
            let work = tempfile::tempdir().expect("a directory");
            let program = mpi.compile(work.path(), "busy_target", &["tests/c/busy_target.c"]);
            let mut command = vef();
            command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"]);
            let printed = run(command.arg(work.path().join("capture")).arg("--").arg(&program));
            Self { mpi, printed: printed.success().stdout(), work }
        };
        Mpi::installed().into_iter().map(of).collect()
    }

    /// Mixes to a file; returns it with what was printed, on stdout and stderr.
    fn mix(&self, to: &str, more: &[&str]) -> (PathBuf, [String; 2]) {
        let path = self.work.path().join(to);
        let mut command = vef();
        command.args(["mix", "-i"]).arg(self.work.path().join("capture")).args(more).arg("-o").arg(&path);
        let told = run(&mut command).success();
        (path, [told.stdout(), told.stderr()])
    }
}

#[test]
fn an_interface_answers_while_its_rank_computes() {
    for captured in Captured::all() {
        let mpi = captured.mpi;
        let counted = counted(&captured.printed);
        // Over shared memory, Open MPI's origin copies the bytes itself.
        let waited = captured.printed.lines().find_map(|line| line.strip_prefix("waited ")).expect("a line");
        let has_waited = waited.parse::<u64>().expect("a number") >= 45;
        assert!(has_waited || mpi != Mpi::Mpich, "{}", captured.printed);
        for how in ["software", "hardware"] {
            let (text, [told, warned]) = captured.mix("t.vef", &["--rma", how]);
            assert_eq!(moved(&text), counted, "{mpi:?}, {how}");
            assert_eq!(told.contains("network interfaces: tasks 4 to 7"), how == "hardware", "{told}");
            // The get that did not wait was answered while its target computed. MPICH's puts may be, too.
            let is_advice = |line: &&str| {
                line.starts_with("vef: warning: ")
                    && line.contains("target was outside MPI")
                    && line.contains("--rma hardware")
            };
            let advises = warned.lines().any(|line| is_advice(&line));
            assert!(has_waited || advises == (how == "software"), "{mpi:?}: {warned}");
            assert_eq!(warned.contains(PLAIN), how == "hardware", "{warned}");
            let (container, [_, warned]) = captured.mix("t.vefx", &["--rma", how]);
            assert!(!warned.contains(PLAIN), "{warned}");
            // What loses the notes of a container says so, of the tasks that it concerns.
            for (command, to, loses) in [
                (&["convert"][..], "c.vef", true),
                (&["convert"], "c.vefx", false),
                (&["export", "--to", "ti", "-o"], "c.ti", true),
            ] {
                let mut line = vef();
                line.args(&command[..1]).arg(&container).args(&command[1..]);
                let warned = run(line.arg(captured.work.path().join(to))).success().stderr();
                assert_eq!(warned.contains(PLAIN), loses && how == "hardware", "{command:?}: {warned}");
            }
            let checked = run(vef().arg("check").arg(&container)).success().stdout();
            assert!(checked.contains("complete: every record replays"), "{checked}");
            let (parts, _) = captured.mix("parts.vefx", &["--rma", how, "--memory", "1B"]);
            assert_eq!(std::fs::read(&parts).expect("a trace"), std::fs::read(&container).expect("a trace"));
            // Rank 0 waits for what its get asks of rank 3, which computes for 80 ms more, in the lock already or not at all.
            let waits =
                json(vef().arg("sim").arg(&container).args(["--topology", "switch:4", "--waits", "--json"]));
            let pairs = waits["waits"]["pairs"].as_array().expect("a list");
            let waited: u64 = pairs
                .iter()
                .filter(|pair| pair["task"] == 0 && [3, 7].map(Value::from).contains(&pair["on_task"]))
                .filter(|pair| pair["cause"] == "late_sender")
                .map(|pair| pair["time_ps"].as_u64().expect("a number"))
                .sum();
            match how {
                "hardware" => assert!(waited < 20 * MILLISECOND, "{mpi:?}: {pairs:?}"),
                // Without waiting in the run, too, a target in software answers between its records, by which time some of what it computes moves.
                _ => assert!(waited > 35 * MILLISECOND || !has_waited, "{mpi:?}: {pairs:?}"),
            }
            assert!(pairs.iter().all(|pair| pair["task"].as_u64() < Some(RANKS.into())), "{pairs:?}");
        }
    }
}

/// With interfaces, and storage servers in front of them, shares of the time are those of the ranks alone, and an interface is on its rank's node.
#[test]
fn interfaces_are_no_ranks() {
    for captured in Captured::all() {
        let mpi = captured.mpi;
        let (container, _) = captured.mix("t.vefx", &["--rma", "hardware", "--io-servers", "2"]);
        let nodes = captured.work.path().join("nodes.txt");
        std::fs::write(&nodes, "2\n1\n1\n0\n3\n4\n").expect("a file");
        for (placement, used) in
            [("block:2", 3), ("round-robin:6", 6), ("captured", 3), (nodes.to_str().expect("UTF-8"), 5)]
        {
            let model = ["--topology", "switch:6", "--placement", placement, "--json"];
            let told = json(vef().arg("sim").arg(&container).args(model));
            let job = &told["jobs"][0];
            assert_eq!(
                (&job["tasks"], &job["captured_tasks"], &job["nodes"]),
                (&10.into(), &RANKS.into(), &used.into()),
                "{mpi:?}, {placement}"
            );
            // The sum is of the ranks, none of which ends later than the job.
            let times = job["times"].as_object().expect("an object").values();
            let sum: u64 = times.map(|time| time.as_u64().expect("a number")).sum();
            let runtime = job["runtime_ps"].as_u64().expect("a number");
            assert!(sum > 3 * runtime && sum <= u64::from(RANKS) * runtime, "{placement}: {job}");
        }
        let stats = run(vef().arg("stats").arg(&container)).success().stdout();
        for said in
            ["container of 10 tasks,", "storage servers: tasks 4–5\n", "network interfaces: tasks 6–9\n"]
        {
            assert!(stats.contains(said), "{said}: {stats}");
        }
        let mut command = vef();
        let report = json(command.arg("report").arg(&container).args(["--format", "json", "-o", "-"]));
        let column = |measure: &str| -> Vec<f64> {
            let by_task = report["ranks"][measure].as_array().expect("a list");
            by_task.iter().map(|value| value.as_f64().expect("a number")).collect()
        };
        let mean_of_ranks =
            |by_task: &[f64]| by_task[..RANKS as usize].iter().sum::<f64>() / f64::from(RANKS);
        let by_task = column("computing_ps");
        let of_ranks = &by_task[..RANKS as usize];
        let mean = mean_of_ranks(&by_task);
        let balance = mean / of_ranks.iter().copied().fold(0.0, f64::max);
        let found = report["replayed"]["efficiency"]["load_balance"].as_f64().expect("a number");
        assert!((balance - found).abs() < 1e-6, "{mpi:?}: {found} of {by_task:?}");
        let spread = report["ranks"]["spread"].as_array().expect("a list");
        assert!(column("sent_bytes")[RANKS as usize..].iter().any(|&bytes| bytes > 0.0), "{mpi:?}");
        for row in spread {
            let mean = mean_of_ranks(&column(row["measure"].as_str().expect("a name")));
            assert!((row["mean"].as_f64().expect("a number") - mean).abs() <= 1e-6 * mean, "{mpi:?}: {row}");
        }
        assert!(spread.len() >= 6, "{spread:?}");
        // The times at which tasks finished, too.
        let mut sim = vef();
        sim.arg("sim").arg(&container).args(["--topology", "switch:10"]);
        let text = run(&mut sim).success().stdout();
        assert!(text.contains("\ntasks         10, of which 4 ran the program; finished from "), "{text}");
        let finish = &json(sim.arg("--json"))["jobs"][0]["finish"];
        let times: Vec<u64> = serde_json::from_value(finish["tasks_ps"].clone()).expect("times");
        let of_ranks = &times[..RANKS as usize];
        assert_eq!(times.len(), 10);
        for (key, time) in [
            ("min_ps", *of_ranks.iter().min().expect("a rank")),
            ("mean_ps", of_ranks.iter().sum::<u64>() / u64::from(RANKS)),
            ("max_ps", *of_ranks.iter().max().expect("a rank")),
        ] {
            assert_eq!(finish[key], time, "{mpi:?}: {finish}");
        }
    }
}

/// A phase that is recorded alone has the transfers through windows that were made before it, and every command says so.
#[test]
fn a_phase_alone_has_its_transfers() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "busy_target", &["tests/c/busy_target.c"]);
        let [capture, trace] = ["capture", "t.vef"].map(|name| work.path().join(name));
        let mut command = vef();
        command.args([
            "run",
            "-n",
            "4",
            "--mpirun",
            &mpi.launcher().join(" "),
            "--only-phase",
            "pcontrol_4",
            "-o",
        ]);
        let told = run(command.arg(&capture).arg("--").arg(&program)).success().stderr();
        assert!(told.contains(", 12 one-sided transfers with "), "{mpi:?}: {told}");
        assert!(!told.contains("not representable"), "{mpi:?}: {told}");
        let told = run(vef().arg("profile").arg(&capture)).success().stdout();
        assert!(told.contains("All of these calls can be represented"), "{mpi:?}: {told}");
        let told = run(vef().arg("mix").arg(&capture).args(["--rma", "hardware", "-o"]).arg(&trace))
            .success()
            .stdout();
        assert!(!told.contains("not in the trace"), "{mpi:?}: {told}");
        assert_eq!(moved(&trace).values().sum::<u64>(), 4 * 3716, "{mpi:?}");
    }
}

/// A part of the run has the answers to what is asked in it; the captured time of programs with windows is known.
#[test]
fn parts_have_their_answers() {
    for captured in Captured::all() {
        let mpi = captured.mpi;
        for how in ["software", "hardware"] {
            let (container, _) = captured.mix("t.vefx", &["--rma", how]);
            let part = |options: &[&str]| {
                let mut command = vef();
                command.arg("sim").arg(&container).args(options).args(["--topology", "switch:4", "--json"]);
                let told = json(&mut command);
                let kinds = told["kinds"].as_array().expect("a list");
                let messages = kinds.iter().find(|kind| kind["kind"] == "point_to_point");
                let number = |value: &Value| value.as_u64().expect("a number");
                let bytes = messages.map_or(0, |messages| number(&messages["bytes"]));
                (number(&told["jobs"][0]["part"]["records"]), bytes)
            };
            let (_, bytes) = part(&["--phase", "pcontrol_4"]);
            let cut = container.with_file_name("cut.vefx");
            run(vef().arg("cut").arg(&container).args(["--phase", "pcontrol_4", "-o"]).arg(&cut)).success();
            let told = run(vef().arg("check").arg(&cut)).success().stdout();
            // Interfaces begin and end as in the whole run; a task may have its last record of the phase in the middle of the run.
            assert!(!told.contains("a first record with a dependency"), "{mpi:?}, {how}: {told}");
            let interfaces = 4..8;
            let ends_early = |task: u32| told.contains(&format!("task {task} ends here"));
            assert!(!interfaces.clone().any(ends_early) && !told.contains("without any record"), "{told}");
            // A target may answer after its phase.
            assert!(bytes <= 4 * 3716 && (how == "software" || bytes == 4 * 3716), "{mpi:?}, {how}: {bytes}");
            let (whole, all) = part(&["--from", "0ns"]);
            // Rank 3 computes until then.
            let (first, fetched) = part(&["--to", "60ms"]);
            let (last, rest) = part(&["--from", "60ms"]);
            // The marks at the beginning and end of the four interfaces are in both.
            let marks = if how == "hardware" { 8 } else { 0 };
            assert_eq!((first + last, fetched + rest), (whole + marks, all), "{mpi:?}, {how}");
            assert!(first > 0 && last > first, "{mpi:?}, {how}: {first} and {last}");
        }
    }
}

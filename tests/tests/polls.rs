//! A program that waits by polling: its trace has the time as waiting, or, where that is asked for, as computing.

use std::path::Path;
use std::time::Duration;
use vef_tests::{Mpi, run, run_for, vef};

/// How rank 1 of `tests/c/polls.c` awaits a message that rank 0 sends after 0.8 s.
const WAYS: [&str; 9] =
    ["test", "testany", "testall", "testsome", "get_status", "iprobe", "improbe", "overlap", "sleepy"];

/// Seconds in front of rank 1's receptions, mixed with `polls`.
fn computing(capture: &Path, polls: &str) -> Vec<f64> {
    let trace = capture.with_extension(polls);
    run(vef().args(["mix", "--polls", polls, "-i"]).arg(capture).arg("-o").arg(&trace)).success();
    run(vef().arg("check").arg(&trace)).success();
    let text = std::fs::read_to_string(&trace).expect("a trace");
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    // Marks, the last of which is that of MPI_Finalize.
    let marks = fields.filter(|fields| fields.len() == 7 && fields[1] == "1" && fields[2] == "1");
    let mut times: Vec<f64> =
        marks.map(|fields| fields[5].parse::<f64>().expect("nanoseconds") / 1e9).collect();
    times.pop();
    // A probe has two marks, and the receive behind it one: the first has the time.
    times.retain(|&time| time > 0.05);
    times
}

#[test]
fn polled_waits_are_no_computing() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "polls", &["tests/c/polls.c"]);
        let capture = work.path().join("capture");
        let mut command = vef();
        command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        command.arg("--").arg(&program).args(WAYS);
        let printed = run_for(&mut command, Duration::from_secs(200)).success().stdout();
        let polled: Vec<f64> = printed.lines().filter_map(|line| line.trim().parse().ok()).collect();
        assert_eq!(polled.len(), WAYS.len(), "{mpi:?}: {printed}");
        let (waited, computed) = (computing(&capture, "wait"), computing(&capture, "compute"));
        assert_eq!((waited.len(), computed.len()), (WAYS.len(), WAYS.len()), "{mpi:?}");
        for (((way, waited), computed), polled) in WAYS.iter().zip(waited).zip(computed).zip(polled) {
            // It computes for 0.1 s, then polls, on a core for `polled`.
            let told = format!("{mpi:?} {way}: {waited} s and {computed} s, polls {polled} s");
            assert!(waited > 0.095 && computed > 0.095 + 0.7 * polled, "{told}");
            if *way == "sleepy" {
                assert!(computed > 0.3, "{told}");
            }
            match *way {
                "overlap" => assert!(waited > 0.095 + 0.7 * polled, "{told}"),
                "sleepy" => assert!(waited < 0.2 + polled, "{told}"),
                _ => assert!(waited < 0.15 + 0.3 * polled, "{told}"),
            }
        }
    }
}

/// Polls in front of a send are waiting only as far as they take longer than usual: the program's own steps between them stay.
#[test]
fn steps_between_polls_are_computing() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "polls", &["tests/c/polls.c"]);
        let (capture, trace) = (work.path().join("capture"), work.path().join("t.vef"));
        let mut command = vef();
        command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        run_for(command.arg("--").arg(&program).arg("steps"), Duration::from_secs(200)).success();
        let told =
            run(vef().args(["mix", "--json", "-i"]).arg(&capture).arg("-o").arg(&trace)).success().stdout();
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        let spent = |key: &str| told["spent"][key].as_u64().expect("a time");
        assert!(spent("kept_polling_ns") > 0, "{mpi:?}: {told:#}");
        // 2000 steps of 2 µs: between polls of a run, or between runs.
        let text = std::fs::read_to_string(&trace).expect("a trace");
        let send = text
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .find(|line| line.len() == 7 && line[1] == "1");
        let send = send.expect("a message of rank 1");
        assert_eq!((send[2], send[3]), ("0", "4"), "{send:?}");
        let computing: u64 = send[5].parse().expect("nanoseconds");
        assert!(computing >= 4_000_000, "{mpi:?}: {computing} ns");
    }
}

/// Where ranks share cores, most gaps between polls are those in which a rank has none; what it computes there is its processor time.
#[test]
fn polls_without_a_core_are_polls() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > 8 {
        return skipping::skipped(format_args!(
            "polls_without_a_core: {cores} cores, too many for more ranks"
        ));
    }
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "polls", &["tests/c/polls.c"]);
        let times = |way: &str| {
            let (capture, trace) = (work.path().join(way), work.path().join("t.vefx"));
            let mut command = vef();
            command.args([
                "run",
                "-n",
                &(cores + 2).to_string(),
                "--mpirun",
                &mpi.launcher().join(" "),
                "-o",
            ]);
            command.arg(&capture).arg("--").arg(&program).arg(way);
            let printed = run_for(&mut command, Duration::from_secs(200)).success().stdout();
            run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
            let table = run(vef().args(["stats", "--csv", "times"]).arg(&trace)).success().stdout();
            let column = |name| table.lines().next()?.split(',').position(|column| column == name);
            let of = |row: &str, name| -> f64 {
                let value = row.split(',').nth(column(name).expect("a column")).expect("a value");
                value.parse::<f64>().expect("a time") / 1e12
            };
            let times = table.lines().skip(2).map(|row| [of(row, "outside_ps"), of(row, "polling_ps")]);
            (times.collect::<Vec<_>>(), printed)
        };
        let (waited, _) = times("crowd");
        let [outside, polling] = [0, 1].map(|part| waited.iter().map(|times| times[part]).sum::<f64>());
        assert!(outside < 0.4 * polling, "{mpi:?}: {waited:?}");
        let (computed, printed) = times("crowd-computes");
        let used = printed.lines().filter_map(|line| line.trim().split_once(' '));
        let used: Vec<(usize, f64)> = used
            .map(|(rank, used)| (rank.parse().expect("a rank"), used.parse().expect("seconds")))
            .collect();
        assert_eq!(used.len(), cores + 1, "{mpi:?}: {printed}");
        for (rank, used) in used {
            let [outside, _] = computed[rank - 1];
            assert!(outside > 0.95 * used, "{mpi:?}, rank {rank} computed for {used} s: {computed:?}");
        }
    }
}

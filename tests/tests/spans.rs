//! What a simulation says of a real run beside its simulated times: how long the run was between `MPI_Init` and `MPI_Finalize`, and
//! what of it the trace does not hold.

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use vef_tests::{Mpi, number, run, vef};

const RANKS: &str = "3";

/// The result of `vef sim TRACE --json OPTIONS`.
fn simulated(trace: &Path, options: &[&str]) -> Value {
    let ended = run(vef().arg("sim").arg(trace).arg("--json").args(options)).success();
    serde_json::from_str(&ended.stdout()).expect("JSON")
}

/// Sums over the ranks of a trace's captured times, by column of `vef stats --csv times`.
fn captured_times(trace: &Path) -> HashMap<String, u64> {
    let table = run(vef().arg("stats").arg(trace).args(["--csv", "times"])).success().stdout();
    let mut lines = table.lines().map(|line| line.split(','));
    let columns: Vec<String> = lines.next().expect("a head").map(str::to_owned).collect();
    let mut sums = HashMap::new();
    for line in lines {
        for (column, value) in columns.iter().zip(line) {
            *sums.entry(column.clone()).or_default() += value.parse::<u64>().expect("a number");
        }
    }
    sums
}

#[test]
fn a_run_is_timed_from_init_to_finalize() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spans", &["tests/c/spans.c"]);
        let [capture, text, trace] = ["capture", "out.vef", "out.vefx"].map(|name| work.path().join(name));
        let mut command = vef();
        command
            .current_dir(work.path())
            .args(["run", "-n", RANKS, "--mpirun", &mpi.launcher().join(" "), "-o"])
            .arg(&capture);
        let ran = run(command.arg("--").arg(&program)).success();
        let printed: Vec<f64> = ran.stdout().lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(printed.len(), 3, "{}", ran.stdout());
        for output in [&text, &trace] {
            run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(output)).success();
        }

        let whole = simulated(&trace, &["--from-launch"]);
        let from_init = simulated(&trace, &[]);
        let span = |of: &Value, key: &str| number(&of["jobs"][0]["span"], key);
        // The recorder's clock goes around the program's.
        let longest = printed.iter().copied().fold(0.0, f64::max) * 1e12;
        assert!(span(&from_init, "captured_ps") as f64 >= 0.99 * longest, "{from_init:#} {printed:?}");
        assert_eq!(span(&whole, "captured_ps"), span(&from_init, "captured_ps"));
        let initialisation = span(&whole, "initialisation_ps");
        assert_eq!(initialisation, span(&from_init, "initialisation_ps"));
        assert!(number(&whole, "runtime_ps") >= initialisation + span(&whole, "simulated_ps"));
        assert_eq!(span(&from_init, "simulated_ps"), number(&from_init["jobs"][0]["finish"], "max_ps"));
        let saved = number(&whole, "runtime_ps").checked_sub(number(&from_init, "runtime_ps"));
        assert!(saved.is_some_and(|saved| 0 < saved && saved <= initialisation), "{saved:?}");
        let shown = run(vef().arg("sim").arg(&trace)).success().stdout();
        assert!(shown.contains("MPI_Init (left out)"), "{shown}");
        assert!(shown.contains("furthest from the capture first: "), "{shown}");
        let captured = captured_times(&trace);
        for (from_launch, result) in [(false, &from_init), (true, &whole)] {
            let part = |names: &[&str]| names.iter().map(|name| captured[*name]).sum::<u64>();
            let start_up = if from_launch { part(&["start_up_ps"]) } else { 0 };
            let times = &result["jobs"][0]["captured_times"];
            let of = |key| number(times, key);
            // A replay keeps what the trace has as computing.
            assert_eq!(of("computing_ps"), number(&result["jobs"][0]["times"], "computing_ps"));
            let computing = ["outside_ps", "own_ps", "window_ps", "file_ps"];
            let within = part(&["outside_ps"]) + start_up..=part(&computing) + start_up;
            assert!(within.contains(&of("computing_ps")), "{within:?} {times}");
            assert_eq!((of("send_ps"), of("reception_ps")), (0, 0), "{times}");
            let run = captured
                .iter()
                .filter(|(name, _)| !["rank", "start_up_ps", "preempted_ps"].contains(&name.as_str()));
            let states =
                ["computing_ps", "send_ps", "reception_ps", "collective_ps"].map(of).iter().sum::<u64>();
            let own = number(&result["jobs"][0], "captured_own_ps");
            assert_eq!(states + own, run.map(|(_, time)| time).sum::<u64>() + start_up);
        }

        // Text leaves start-up out, too, and does not record it.
        let of_text = |options: &[&str]| number(&simulated(&text, options), "runtime_ps");
        assert_eq!([of_text(&[]), of_text(&["--from-launch"])], [number(&from_init, "runtime_ps"); 2]);
        // A trace that keeps it, as those of earlier versions do: text has it, and of a container it is left out of the run.
        for (kept, expected) in [("kept.vef", &whole), ("kept.vefx", &from_init)] {
            let kept = work.path().join(kept);
            run(vef().args(["mix", "--keep-init", "-i"]).arg(&capture).arg("-o").arg(&kept)).success();
            let of_kept = |options: &[&str]| number(&simulated(&kept, options), "runtime_ps");
            // A text without start-up from a container that has it; a text does not record how long that was.
            let cut = kept.with_file_name("cut.vef");
            let converted = run(vef().args(["convert", "--from-init"]).arg(&kept).arg(&cut));
            match kept.extension().is_some_and(|suffix| suffix == "vefx") {
                true => {
                    converted.success();
                    assert_eq!(std::fs::read(&cut).expect("text"), std::fs::read(&text).expect("text"));
                }
                false => {
                    assert!(
                        converted.exited(2).stderr().contains("needs the return of MPI_Init"),
                        "{kept:?}"
                    );
                }
            }
            assert_eq!(of_kept(&[]), number(expected, "runtime_ps"), "{kept:?}");
            assert_eq!(of_kept(&["--from-launch"]), number(&whole, "runtime_ps"), "{kept:?}");
            // The records' computing has MPI_Init, the run time beside it has not.
            let said = |options: &[&str]| {
                let shown = run(vef().arg("check").arg(&kept).args(options)).success().stdout();
                shown.contains("at most, MPI_Init included, which is not replayed")
            };
            let is_container = kept.extension().is_some_and(|suffix| suffix == "vefx");
            assert_eq!([said(&[]), said(&["--from-launch"])], [is_container, false], "{kept:?}");
            let computing = |trace: &Path, options: &[&str]| {
                let json = run(vef().args(["stats", "--json"]).arg(trace).args(options)).success().stdout();
                let stats: Value = serde_json::from_str(&json).expect("JSON");
                stats["ranks"]["computing_ps"].clone()
            };
            assert_eq!(computing(&kept, &[]) == computing(&trace, &[]), is_container, "{kept:?}");
            assert_eq!(
                computing(&kept, &["--from-launch"]),
                computing(&trace, &["--from-launch"]),
                "{kept:?}"
            );
        }

        let report = work.path().join("report.json");
        run(vef().arg("report").arg(&trace).args(["--format", "json", "-o"]).arg(&report)).success();
        let report: Value = serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("JSON");
        assert_eq!(number(&report["head"]["captured"], "span_ps"), span(&whole, "captured_ps"));
        for lacks in [&whole["jobs"][0]["not_in_trace"], &report["head"]["not_in_trace"]] {
            let lines = lacks.as_array().expect("lines");
            assert!(
                lines.iter().any(|line| line.as_str() == Some("3 × MPI_File_write_at (12 B)")),
                "{lacks:#}"
            );
        }
    }
}

/// Calls on windows wait for others, and a replay waits in their place: as captured, they are no computing either.
#[test]
fn waits_at_windows_are_no_computing() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "windows", &["tests/c/windows.c"]);
        let [capture, trace] = ["capture", "out.vefx"].map(|name| work.path().join(name));
        let mut command = vef();
        command.args(["run", "-n", RANKS, "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        run(command.arg("--").arg(&program).arg(work.path())).success();
        let mixed =
            run(vef().args(["mix", "--json", "-i"]).arg(&capture).arg("-o").arg(&trace)).success().stdout();
        let spent = &serde_json::from_str::<Value>(&mixed).expect("JSON")["spent"];
        let kept = ["kept_polling_ns", "kept_calls_ns", "waiting_for_sends_ns"].map(|key| number(spent, key));
        let [outside, own, polling] =
            ["outside", "own", "polling"].map(|key| number(&spent["times_ns"], key));
        // An answer in a call without a record divides its time: what comes in front of the answer waits for its request.
        // Calls that are counted alone are in none of the kept times.
        let within = 1000 * outside..=1000 * (outside + own + polling + kept.iter().sum::<u64>());
        let times = &simulated(&trace, &[])["jobs"][0]["captured_times"];
        assert!(within.contains(&number(times, "computing_ps")), "{mpi:?}: {times} {spent:#}");
        assert!(number(times, "collective_ps") > 0 && number(times, "reception_ps") > 0, "{mpi:?}: {times}");
    }
}

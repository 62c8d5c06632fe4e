//! Programs whose work is sleep, so that their seconds are known: computing is the sleep, and the rest is waiting, which a replay
//! computes anew. `tests/c/seconds.c` has them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vef_tests::{Mpi, run, run_for, vef};

/// Runs of which one must give the figures: a busy machine takes cores away.
const RUNS: usize = 4;

/// The container of a run of `seconds WAY` by four ranks.
fn traced(mpi: Mpi, program: &Path, way: &str, work: &Path) -> PathBuf {
    ran(mpi, program, way, work).0
}

/// The same, and what the ranks printed.
fn ran(mpi: Mpi, program: &Path, way: &str, work: &Path) -> (PathBuf, String) {
    recorded(mpi, program, way, &[], work)
}

/// The same of a capture with these options.
fn recorded(mpi: Mpi, program: &Path, way: &str, options: &[&str], work: &Path) -> (PathBuf, String) {
    let name = [&[way], options].concat().join("");
    let (capture, trace) = (work.join(&name), work.join(format!("{name}.vefx")));
    let mut command = vef();
    command.current_dir(work).args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" ")]);
    command.args(options).arg("-o").arg(&capture).arg("--").arg(program).arg(way);
    let printed = run_for(&mut command, Duration::from_secs(200)).success().stdout();
    let lenient = (!options.is_empty()).then_some("--lenient");
    run(vef().arg("mix").args(lenient).arg(&capture).arg("-o").arg(&trace)).success();
    run(vef().arg("check").arg(&trace)).success();
    (trace, printed)
}

/// Milliseconds of a replay from the end of `MPI_Init` on a fast network, with these factors on computing times.
fn replayed(trace: &Path, factors: &str) -> f64 {
    let mut command = vef();
    command.args(["sim", "--model", "latency", "--json", "--compute-scale", factors]).arg(trace);
    let result: Value = serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
    result["runtime_ps"].as_u64().expect("a time") as f64 / 1e9
}

/// Ten sleeps of 20 ms, in ms, less one: a thread that loses its core on its way into a sleep may be without a core until that is over.
const ALL_SLEEP: f64 = 180.0;

#[test]
fn a_master_that_probes_waits_for_its_workers() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        // Ten tasks of 5 ms for each of three workers.
        let both = |way: &str| {
            let trace = traced(mpi, &program, way, work.path());
            let (whole, fast) = (replayed(&trace, "1"), replayed(&trace, "1-3=0.1"));
            assert!(whole > 50.0, "{mpi:?} {way}: {whole} ms");
            (whole, fast)
        };
        for way in ["recv", "probe", "mprobe"] {
            let (whole, fast) = both(way);
            assert!(fast < 0.2 * whole, "{mpi:?} {way}: {whole} ms, with fast workers {fast} ms");
        }
        // On a busy machine a new thread waits for a core, and polls are interrupted: that is computing. The others wait within MPI.
        for (way, most) in [("iprobe", 0.25), ("improbe", 0.25), ("threads", 0.8)] {
            let mut times = Vec::new();
            let waits = |_| {
                std::fs::remove_dir_all(work.path().join(way)).ok();
                let (whole, fast) = both(way);
                times.push((whole, fast));
                fast < most * whole
            };
            assert!((0..RUNS).any(waits), "{mpi:?} {way}: milliseconds, with fast workers: {times:?}");
        }
    }
}

/// What a rank waits for its own data to leave is no computing, whether it blocks in the send, waits for the request, alone or with that of an
/// answer, or for the local completion of a put.
#[test]
fn waits_for_own_sends_are_no_computing() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        for way in ["sends", "isends", "some", "puts"] {
            let trace = traced(mpi, &program, way, work.path());
            let (whole, fast) = (replayed(&trace, "1"), replayed(&trace, "1=0.1"));
            assert!(whole > ALL_SLEEP, "{mpi:?} {way}: {whole} ms");
            assert!(fast < 0.3 * whole, "{mpi:?} {way}: {whole} ms, with a fast receiver {fast} ms");
        }
        // As it was measured, if that is asked for.
        let computed = work.path().join("computed.vefx");
        let options = ["--send-waits", "compute"];
        let capture = work.path().join("isends");
        run(vef().args(["mix", "-i"]).arg(capture).arg("-o").arg(&computed).args(options)).success();
        let (whole, fast) = (replayed(&computed, "1"), replayed(&computed, "1=0.1"));
        assert!(fast > 0.8 * whole, "{mpi:?}: {whole} ms, with a fast receiver {fast} ms");
    }
}

/// The value at `keys` in the report of a trace.
fn reported(trace: &Path, options: &[&str], keys: &str) -> f64 {
    let mut command = vef();
    command.arg("report").arg(trace).args(["--format", "json"]).args(options);
    let report: Value = serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
    report
        .pointer(keys)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {keys}: {}", report["replayed"]))
}

#[test]
fn start_up_is_no_computing() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        // Rank 3 sleeps 3 ms a step, the others 1 ms and a bit; how long a rank that wakes up waits for a core is in neither.
        let balanced = |number: usize| {
            let work = work.path().join(number.to_string());
            std::fs::create_dir(&work).expect("a directory");
            let trace = traced(mpi, &program, "stencil", &work);
            (reported(&trace, &[], "/replayed/efficiency/load_balance"), trace)
        };
        let found = (0..RUNS).map(balanced).find(|(balance, _)| (balance - 0.5).abs() < 0.1);
        let (balance, trace) = found.unwrap_or_else(|| panic!("{mpi:?}: never a load balance of 0.5"));
        // Start-up is much longer than that, and much the same for all ranks.
        let with_start_up = reported(&trace, &["--from-launch"], "/replayed/efficiency/load_balance");
        assert!(with_start_up > balance + 0.05, "{mpi:?}: {with_start_up}, without start-up {balance}");
        let checked = run(vef().arg("check").arg(&trace).arg("--from-launch")).success().stdout();
        assert!(checked.contains(" at most without MPI_Init, which is replayed ("), "{mpi:?}: {checked}");
        // All commands begin at the same time.
        let json = |command: &str, options: &[&str]| -> Value {
            let ended = run(vef().arg(command).arg(&trace).arg("--json").args(options)).success();
            serde_json::from_str(&ended.stdout()).expect("JSON")
        };
        for options in [&[][..], &["--from-launch"]] {
            let replayed = reported(&trace, options, "/replayed/runtime_ps");
            assert_eq!(json("check", options)["runtime_ps"].as_f64(), Some(replayed), "{mpi:?}");
            let computing = reported(&trace, options, "/totals/computing_ps");
            assert_eq!(json("stats", options)["totals"]["computing_ps"].as_f64(), Some(computing), "{mpi:?}");
            let simulated = &json("sim", options)["jobs"][0]["times"]["computing_ps"];
            assert_eq!(simulated.as_f64(), Some(computing), "{mpi:?}");
        }
    }
}

#[test]
fn ranks_wait_for_each_other_where_something_is_created() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        let communicators = [
            "dup",
            "used",
            "idup",
            "split",
            "split_type",
            "create",
            "create_group",
            "cart",
            "graph",
            "dist_graph",
        ];
        let others =
            ["inter", "merge", "window", "file", "resize", "seek_shared", "write_all", "write_fails"];
        for way in communicators.into_iter().chain(others) {
            let trace = traced(mpi, &program, way, work.path());
            // Rank 0 sleeps for ten times 20 ms; the others do nothing but wait for it.
            let (whole, without) = (replayed(&trace, "1"), replayed(&trace, "0=0"));
            assert!(whole > ALL_SLEEP, "{mpi:?} {way}: {whole} ms");
            assert!(without < 0.25 * whole, "{mpi:?} {way}: {whole} ms, without rank 0's work {without} ms");
            if !["used", "create_group", "file"].contains(&way) {
                continue;
            }
            // Collectives of each iteration are on another communicator.
            let mut command = vef();
            command.args(["sim", "--model", "latency", "--json", "--iterations"]).arg(&trace);
            let result: Value = serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
            let iterations = result["jobs"][0]["part"]["iterations"].as_f64().expect("a number");
            let time = result["runtime_ps"].as_f64().expect("a time") / 1e9;
            assert!(
                (8.0..=9.0).contains(&iterations) && time >= 20.0 * (iterations - 1.0),
                "{mpi:?} {way}: {result:#}"
            );
        }
    }
}

/// A rank that is launched a second late makes the others wait in `MPI_Init`, and not in the first collective of a replay.
#[test]
fn launch_skew_belongs_to_no_collective() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        let in_collectives = |number: usize| {
            let work = work.path().join(number.to_string());
            std::fs::create_dir(&work).expect("a directory");
            let (trace, _) = ran(mpi, &program, "skew", &work);
            let skew = reported(&trace, &[], "/head/captured/launch_skew_ps") / 1e12;
            assert!(skew > 0.8, "{mpi:?}: {skew} s");
            // All ranks start at the same time there: rank 3 first enters its short MPI_Init, and the others come a second later.
            let from_launch = waited(&trace, &["--from-launch"]);
            assert!(from_launch > 0.8, "{mpi:?}: {from_launch} s");
            waited(&trace, &[])
        };
        assert!((0..RUNS).map(in_collectives).any(|time| time < 0.3), "{mpi:?}: the skew is in collectives");
    }
}

/// Seconds in which the ranks of a replay are in collectives, all together.
fn waited(trace: &Path, options: &[&str]) -> f64 {
    let mut command = vef();
    command.arg("report").arg(trace).args(["--format", "json"]).args(options);
    let report: Value = serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
    let times = report["replayed"]["ranks"]["collective_ps"].as_array().expect("times");
    times.iter().map(|time| time.as_f64().expect("a time")).sum::<f64>() / 1e12
}

/// A phase that a program marks with `MPI_Pcontrol` is replayed without the set-up in front of it.
#[test]
fn a_marked_phase_is_replayed_alone() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        let trace = traced(mpi, &program, "phases", work.path());
        let time = |options: &[&str]| {
            let mut command = vef();
            command.args(["sim", "--model", "latency", "--json"]).args(options).arg(&trace);
            let result: Value = serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
            result["runtime_ps"].as_u64().expect("a time") as f64 / 1e9
        };
        let (whole, phase) = (time(&[]), time(&["--phase", "pcontrol_3"]));
        // Rank 3 sleeps 40 × 3 ms in the phase; rank 0 300 ms before.
        assert!(phase >= 120.0 && whole - phase >= 299.0, "{mpi:?}: {whole} ms, the phase {phase} ms");
        // What the other ranks wait for rank 0 is behind the phase's beginning.
        let waits = |options: &[&str]| {
            let mut command = vef();
            command.args(["sim", "--model", "latency", "--csv", "wait-pairs"]).args(options).arg(&trace);
            let table = run(&mut command).success().stdout();
            let rows = table.lines().filter(|row| row.contains(",0,late member of a collective,"));
            rows.map(|row| row.rsplit(',').next().and_then(|time| time.parse().ok()).unwrap_or(0.0))
                .sum::<f64>()
                / 1e9
        };
        assert!(waits(&[]) >= 3.0 * 250.0 && waits(&["--phase", "pcontrol_3"]) < 100.0, "{mpi:?}");
        let refused = run(vef().args(["sim", "--phase", "pcontrol_4"]).arg(&trace)).exited(2).stderr();
        assert!(refused.contains("pcontrol_4"), "{refused}");
    }
}

/// A phase has the waits of its last calls: what a rank computes behind its last receive begins when that is over.
#[test]
fn a_phase_waits_for_its_last_message() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        let trace = traced(mpi, &program, "received", work.path());
        let part = work.path().join("part.vefx");
        run(vef().args(["cut", "--phase", "pcontrol_3"]).arg(&trace).arg("-o").arg(&part)).success();
        let time = |trace: &Path, options: &[&str]| {
            let mut command = vef();
            command.args(["sim", "--model", "latency", "--json"]).args(options).arg(trace);
            let result: Value = serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
            result["runtime_ps"].as_f64().expect("a time") / 1e9
        };
        let phase = time(&trace, &["--phase", "pcontrol_3"]);
        // Rank 0 sleeps 5 × 6 ms in front of its messages, rank 1 4 ms behind the last one.
        assert!(phase >= 34.0, "{mpi:?}: {phase} ms");
        let cut = time(&part, &[]);
        assert!((cut - phase).abs() < 1e-3, "{mpi:?}: {phase} ms, cut {cut} ms");
    }
}

/// What ranks that are not recorded, or calls outside the phase that is, keep a rank waiting for is no computing.
#[test]
fn a_capture_of_a_part_has_the_computing_of_that() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        let time =
            |options: &[&str]| replayed(&recorded(mpi, &program, "phases", options, work.path()).0, "1");
        // Rank 3 sleeps 40 × 3 ms in the phase, and all wait 300 ms for rank 0 before.
        let phase = time(&["--only-phase", "pcontrol_3"]);
        assert!((120.0..300.0).contains(&phase), "{mpi:?}: {phase} ms");
        // Rank 1 sleeps 40 × 1 ms, and waits for all others.
        let rank = time(&["--only-ranks", "1"]);
        assert!((40.0..120.0).contains(&rank), "{mpi:?}: {rank} ms");
    }
}

/// What a rank computes in a phase belongs to that, whoever asks for data of its window meanwhile, and whatever its other threads call.
#[test]
fn a_phase_has_what_is_computed_in_it() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        // Milliseconds of computing in the phase, and of the whole run.
        let computing = |way: &str, options: &[&str]| {
            let trace = work.path().join("mixed.vefx");
            let mut mix = vef();
            mix.arg("mix").args(["--keep-preempted", "-i"]).arg(work.path().join(way)).args(options);
            run(mix.arg("-o").arg(&trace)).success();
            let stats = run(vef().arg("stats").arg("--json").arg(&trace)).success().stdout();
            let stats: Value = serde_json::from_str(&stats).expect("JSON");
            let phases = stats["phases"].as_array().expect("phases").iter();
            let mut of_phase =
                phases.filter(|phase| phase["name"] == "pcontrol_6").map(|phase| &phase["computing_ps"]);
            [of_phase.next_back().expect("the phase"), &stats["totals"]["computing_ps"]]
                .map(|time| time.as_f64().expect("a time") / 1e9)
        };
        let printed = |way: &str| {
            std::fs::remove_dir_all(work.path().join(way)).ok();
            let (_, printed) = ran(mpi, &program, way, work.path());
            printed.lines().find_map(|line| line.parse::<f64>().ok()).expect("a time") / 1e6
        };
        let is_all = |_| {
            let known = printed("marked_target");
            let ([software, whole], [hardware, of_hardware]) =
                (computing("marked_target", &[]), computing("marked_target", &["--rma", "hardware"]));
            let said = format!(
                "{mpi:?}: {known} ms; by the target {software} of {whole}, by its interface {hardware} of {of_hardware}"
            );
            // Where something else answered in the run, some computing becomes waiting.
            assert!((hardware - software).abs() < (of_hardware - whole).abs() + 0.1, "{said}");
            assert!(hardware > 120.0 && hardware < known, "{said}");
            let known = printed("marked_threads");
            let [computed, _] = computing("marked_threads", &[]);
            (computed / known - 1.0).abs() < 0.05
        };
        assert!((0..RUNS).any(is_all), "{mpi:?}: a phase beside a thread");
    }
}

/// What a rank computes before a phase begins or ends, or before a communicator is made, is in a text of the capture.
#[test]
fn a_text_has_what_is_computed_before_marks() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        // Ten times 20 ms before `MPI_Comm_split`, and 12 ms before the end of a phase.
        for (way, rank, least) in [("split", 0, 200.0), ("marked_target", 1, 120.0)] {
            traced(mpi, &program, way, work.path());
            let capture = work.path().join(way);
            // Only rank 1 goes through the phase, which is an error of the parser behind the texts.
            let expected = if way == "split" { 0 } else { 2 };
            run(vef().args(["text", "--times"]).arg(&capture)).exited(expected);
            let text = std::fs::read_to_string(capture.join(format!("ti_traces/ti_trace{rank}.txt")));
            // Picoseconds, all and where it is awaited.
            let (mut all, mut computing, mut is_there) = (0, 0, way == "split");
            for line in text.expect("a text trace").lines() {
                if let Some((_, time)) = line.split_once(" compute ") {
                    let time = 1000 * time.parse::<u64>().expect("a time");
                    all += time;
                    computing += if is_there { time } else { 0 };
                } else if line.starts_with("Phase ") {
                    is_there = line.ends_with(" start.");
                }
            }
            let profile = run(vef().args(["profile", "--json"]).arg(&capture)).success().stdout();
            let profile: Value = serde_json::from_str(&profile).expect("JSON");
            let outside = profile["spent"]["ranks"]["outside"][rank].as_u64().expect("a time");
            assert!(all.abs_diff(outside) < 1_000_000, "{mpi:?} {way}: {all} of {outside} ps outside MPI");
            assert!(computing as f64 >= 1e9 * least, "{mpi:?} {way}: {computing} ps");
        }
    }
}

/// A sender of a large message, or by `MPI_Ssend`, waits for a receiver that computes, whether that has posted its receive before or does so afterwards:
/// neither MPI makes progress beside the program. `rendezvous-in-calls` says so, too.
#[test]
fn a_send_that_is_not_eager_waits_for_a_receiver_that_computes() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        for (way, function) in
            [("late_recv", "MPI_Send"), ("late_wait", "MPI_Send"), ("late_ssend", "MPI_Ssend")]
        {
            let trace = traced(mpi, &program, way, work.path());
            let times = run(vef().arg("stats").arg(&trace).args(["--csv", "functions"])).success().stdout();
            let row = times.lines().find(|row| row.starts_with(&format!("{function},"))).expect("a row");
            let captured =
                row.split(',').filter_map(|cell| cell.parse::<f64>().ok()).fold(0.0, f64::max) / 1e6;
            // Milliseconds for which rank 0 waits because of that, and in which it is in that call in all.
            let simulated = |policy: &str| {
                let mut command = vef();
                command.args([
                    "sim",
                    "--json",
                    "--waits",
                    "--bandwidth",
                    "100Gbit/s",
                    "--same-node",
                    "network",
                ]);
                command.args(["--send-completion", policy]).arg(&trace);
                let result: Value =
                    serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
                let places = result["waits"]["places"].as_array().expect("places");
                let sum = |causes: &[&str]| {
                    let of = places.iter().filter(|place| {
                        place["function"] == function && causes.iter().any(|cause| place["cause"] == **cause)
                    });
                    of.map(|place| place["time_ps"].as_f64().expect("a time")).sum::<f64>() / 1e9
                };
                (sum(&["late_receiver"]), sum(&["late_receiver", "send"]))
            };
            // Ten times 20 ms, less what the sender itself comes late on a machine with load.
            let (late, sending) = simulated("rendezvous-in-calls:64KiB");
            assert!(captured >= 200.0, "{mpi:?} {way}: {captured} ms in {function}\n{times}");
            assert!(late >= 150.0 && sending >= late, "{mpi:?} {way}: {late} of {sending} ms");
            // 8 MB take 0.7 ms at 100 Gbit/s, a byte 1 µs.
            let (late, sending) = simulated("rendezvous:64KiB");
            let takes = if way == "late_ssend" { 0.009..0.02 } else { 6.0..10.0 };
            assert!(late == 0.0 && takes.contains(&sending), "{mpi:?} {way}: {late} of {sending} ms");
        }
    }
}

//! `mpirun -n P vef mix`: one summary or one error, the same bytes, on both MPIs, within the memory that each process may
//! use. `mixer/tests/job.rs` has the cases.

use std::fs;
use std::path::Path;
use std::process::Command;
use vef_benches::workload::Workload;
use vef_tests::{Mpi, run, vef};

fn launched(mpi: Mpi, processes: u32, capture: &Path, trace: &Path) -> Command {
    let words = mpi.launcher();
    let mut command = Command::new(words[0]);
    // Open MPI refuses to start as root unless told twice.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(&words[1..]).args(["-n", &processes.to_string()]);
    command.arg(vef().get_program()).args(["mix", "-i"]).arg(capture).arg("-o").arg(trace);
    command
}

#[test]
fn one_process_speaks_for_all() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    Workload { tasks: 12, records: 30_000, ahead: 100 }.write(&path("capture")).expect("a capture");
    let alone =
        run(vef().args(["mix", "-i"]).arg(path("capture")).arg("-o").arg(path("alone.vef"))).success();
    // All but the times.
    let said = |text: String| text.split("; read in ").next().unwrap_or_default().to_owned();
    for mpi in Mpi::installed() {
        let out = path("out");
        fs::create_dir(&out).expect("a directory");
        for processes in [1, 2] {
            let ended = run(&mut launched(mpi, processes, &path("capture"), &out.join("t.vef"))).success();
            assert_eq!(ended.stdout().lines().count(), alone.stdout().lines().count(), "{}", ended.stdout());
            assert_eq!(said(ended.stdout()), said(alone.stdout()));
            let trace = fs::read(out.join("t.vef")).expect("a trace");
            assert!(
                trace == fs::read(path("alone.vef")).expect("a trace"),
                "{processes} processes, other bytes"
            );
            assert_eq!(fs::read_dir(&out).expect("a directory").count(), 1);
        }
        fs::remove_dir_all(&out).expect("removed");
        // A file that another than the first process reads.
        fs::create_dir(&out).expect("a directory");
        let damaged = path("capture").join("11.vefc");
        let whole = fs::read(&damaged).expect("a capture");
        fs::write(&damaged, &whole[..40]).expect("damaged");
        let ended = run(&mut launched(mpi, 2, &path("capture"), &out.join("t.vef"))).exited(2);
        let errors = ended.stderr().lines().filter(|line| line.starts_with("vef: error")).count();
        assert!(errors == 1 && ended.stderr().contains("11.vefc"), "{}", ended.stderr());
        assert_eq!(fs::read_dir(&out).expect("a directory").count(), 0);
        fs::write(&damaged, &whole).expect("mended");
        fs::remove_dir_all(&out).expect("removed");
    }
}

/// Local disks of two nodes, say, with other runs under one name.
#[test]
fn processes_that_see_different_captures_are_refused() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    Workload { tasks: 4, records: 1000, ahead: 0 }.write(&path("one")).expect("a capture");
    Workload { tasks: 4, records: 1200, ahead: 0 }.write(&path("longer")).expect("a capture");
    Workload { tasks: 5, records: 1000, ahead: 0 }.write(&path("wider")).expect("a capture");
    let out = path("out");
    fs::create_dir(&out).expect("a directory");
    for mpi in Mpi::installed() {
        for other in ["longer", "wider"] {
            let mut command = launched(mpi, 2, &path("one"), &out.join("t.vef"));
            command.args([":", "-n", "1"]).arg(vef().get_program()).args(["mix", "-i"]);
            command.arg(path(other)).arg("-o").arg(out.join("t.vef"));
            let said = run(&mut command).exited(2).stderr();
            let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("vef: error")).collect();
            let [error] = errors[..] else { panic!("{said}") };
            let seen = |name: &str, process: u32| format!("/{name} of process {process} on ");
            assert!(error.contains(&seen("one", 0)) && error.contains(&seen(other, 2)), "{error}");
            assert_eq!(fs::read_dir(&out).expect("a directory").count(), 0);
        }
    }
}

#[test]
fn no_process_needs_more_memory_than_it_may_use() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    // Some 28 MB in memory, in many tasks: little is as large as one.
    Workload { tasks: 96, records: 2_000_000, ahead: 0 }.write(&path("capture")).expect("a capture");
    let alone = |name: &str| {
        let mut mix = vef();
        run(mix.args(["mix", "-j", "1", "-i"]).arg(path("capture")).arg("-o").arg(path(name))).success();
        fs::read(path(name)).expect("a trace")
    };
    let (text, container) = (alone("alone.vef"), alone("alone.vefx"));
    // What a process needs that mixes next to nothing: an MPI library takes from 20 to 90 MB, depending on the transports that it finds.
    Workload { tasks: 8, records: 1000, ahead: 0 }.write(&path("small")).expect("a capture");
    let out = path("out");
    for mpi in Mpi::installed() {
        // What was spilled, and the most memory of a process.
        let mix = |processes: u32, name: &str, memory: &[&str], expected: &[u8]| {
            fs::create_dir(&out).expect("a directory");
            let mut command = launched(mpi, processes, &path("capture"), &out.join(name));
            let said = run(command.arg("--json").args(memory)).success().stdout();
            let same = fs::read(out.join(name)).expect("a trace") == expected;
            assert!(same, "{processes} processes of {mpi:?} with {memory:?} write another {name}");
            assert_eq!(fs::read_dir(&out).expect("a directory").count(), 1, "something was left behind");
            fs::remove_dir_all(&out).expect("removed");
            let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
            let number = |name: &str| said[name].as_u64().expect("a number");
            (number("spilled"), number("peak_memory"))
        };
        let base = |processes: u32| {
            let mut command = launched(mpi, processes, &path("small"), &path("small.vef"));
            let said = run(command.arg("--json")).success().stdout();
            let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
            said["peak_memory"].as_u64().expect("a number")
        };
        let limit = ["--memory", "2MB"];
        let beyond_base = |(spilled, peak): (u64, u64), base: u64| (spilled, peak.saturating_sub(base));
        let (nothing, without) = beyond_base(mix(2, "t.vef", &[], &text), base(2));
        let (spilled, within) = beyond_base(mix(2, "t.vef", &limit, &text), base(2));
        assert!(nothing == 0 && spilled > 5_000_000, "{mpi:?}: {spilled} B in files, with two processes");
        // Each has 14 MB of records without a limit.
        assert!(within + 8_000_000 < without, "{mpi:?}: {within} B with a limit, {without} B without");
        for processes in [1, 3] {
            let (spilled, peak) = beyond_base(mix(processes, "t.vef", &limit, &text), base(processes));
            assert!(spilled > 5_000_000 && peak + 6_000_000 < without, "{mpi:?}: {processes}, {peak} B");
        }
        // The blocks of a container's tasks come on top.
        assert!(mix(2, "t.vefx", &limit, &container).0 > 5_000_000);
    }
}

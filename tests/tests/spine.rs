//! One command takes a real MPI program to a simulated network: run → mix → check → sim on both MPIs, and the
//! trace holds exactly what an independent counter saw in the same run.

use std::path::Path;
use std::process::Command;
use vef_tests::spine::{capture_and_mix, holds_what_was_counted};
use vef_tests::{Mpi, counts, have, installed, root, run, shared, skipped, vef};

#[test]
fn a_c_program_on_both_mpis() {
    for mpi in Mpi::installed() {
        for ranks in [2, 4, 5] {
            let work = tempfile::tempdir().expect("a directory");
            let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
            let (trace, _) = capture_and_mix(mpi, work.path(), ranks, &[program.to_str().expect("a path")]);
            holds_what_was_counted(work.path(), &trace, ranks);
        }
    }
}

/// Captures and mixes `tests/c/NAME.c`, which counts its messages by the definition of its calls: the trace holds those, and `created`
/// of the creation of inter-communicators, and replays to its end.
fn counts_itself_and(mpi: Mpi, name: &str, ranks: u32, created: &[(u32, u32, u64, u64)]) {
    let work = tempfile::tempdir().expect("a directory");
    let program = mpi.compile(work.path(), name, &[&format!("tests/c/{name}.c")]);
    let [capture, trace, container] = ["capture", "out.vef", "out.vefx"].map(|name| work.path().join(name));
    let mut command = vef();
    command
        .args(["run", "-n", &ranks.to_string(), "--mpirun", &mpi.launcher().join(" "), "-o"])
        .arg(&capture);
    let ended = run(command.arg("--").arg(program).arg(work.path())).success();
    assert!(ended.stdout().contains("fine"), "{}", ended.stderr());
    let creations = if created.is_empty() { "compute" } else { "collectives" };
    for trace in [&trace, &container] {
        let mixed =
            run(vef().args(["mix", "--communicators", creations, "-i"]).arg(&capture).arg("-o").arg(trace))
                .success()
                .stdout();
        assert!(!mixed.contains("not in the trace"), "{mpi:?}: {mixed}");
        let check = run(vef().args(["check", "--json"]).arg(trace)).success().stdout();
        assert!(check.contains("\"complete\": true"), "{mpi:?}: {check}");
    }
    run(vef().args(["convert"]).arg(&container).arg(work.path().join("again.vef"))).success();
    let text = std::fs::read(&trace).expect("the trace");
    assert!(text == std::fs::read(work.path().join("again.vef")).expect("the trace"), "{mpi:?}");
    let mut counted = counts::of_counter(work.path(), ranks).traffic;
    assert!(!counted.is_empty());
    for &(from, to, messages, bytes) in created {
        let pair = counted.entry((from, to)).or_default();
        *pair = (pair.0 + messages, pair.1 + bytes);
    }
    assert_eq!(counts::of_trace(&trace).traffic, counted, "{mpi:?}");
}

fn counts_itself(mpi: Mpi, name: &str, ranks: u32) {
    counts_itself_and(mpi, name, ranks, &[]);
}

#[test]
fn neighbourhoods_on_both_mpis() {
    Mpi::installed().into_iter().for_each(|mpi| counts_itself(mpi, "neighbours", 4));
}

/// Open MPI 4 has no partitioned communication.
#[test]
fn partitions_on_mpich() {
    let mpis = Mpi::installed().into_iter().filter(|&mpi| mpi == Mpi::Mpich);
    mpis.for_each(|mpi| counts_itself(mpi, "partitioned", 2));
}

#[test]
fn windows_on_both_mpis() {
    Mpi::installed().into_iter().for_each(|mpi| counts_itself(mpi, "windows", 3));
}

#[test]
fn messages_between_groups_on_both_mpis() {
    Mpi::installed().into_iter().for_each(|mpi| counts_itself(mpi, "between", 5));
}

#[test]
fn collectives_between_groups_on_both_mpis() {
    // As recorded below the libraries: MPI_Intercomm_create of one and two ranks.
    const MPICH: [(u32, u32, u64, u64); 4] = [(0, 1, 3, 14), (1, 0, 3, 22), (1, 2, 5, 288), (2, 1, 2, 260)];
    const OPENMPI: [(u32, u32, u64, u64); 4] = [(0, 1, 6, 70), (1, 0, 6, 120), (1, 2, 9, 82), (2, 1, 6, 24)];
    for mpi in Mpi::installed() {
        let created = if mpi == Mpi::OpenMpi { OPENMPI } else { MPICH };
        counts_itself_and(mpi, "groups", 3, &created);
    }
}

/// `trace` with every computing time set to 0.
fn without_times(trace: &Path) -> String {
    let text = std::fs::read_to_string(trace).expect("the trace");
    let line = |line: &str| {
        let mut fields: Vec<&str> = line.split_whitespace().collect();
        match line.as_bytes().first() {
            Some(b'V' | b'C') => {}
            Some(b'G') => fields[7] = "0",
            _ => fields[5] = "0",
        }
        fields.join(" ") + "\n"
    };
    text.lines().map(line).collect()
}

#[test]
fn both_mpis_give_the_same_trace_but_for_times() {
    let mpis = Mpi::installed();
    if mpis.len() < 2 || !have("python3") {
        return skipped("needs both MPIs and python3");
    }
    let Some(canon) = shared("tools/vef_canon.py") else { return };
    for ranks in ["2", "4", "7"] {
        let work = tempfile::tempdir().expect("a directory");
        for mpi in &mpis {
            let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
            let [capture, trace] = ["", ".vef"].map(|end| work.path().join(format!("{mpi:?}{end}")));
            let mut command = vef();
            command.args(["run", "-n", ranks, "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
            run(command.arg("--").arg(program)).success();
            // They agree on communicators in different ways.
            let mut mix = vef();
            mix.args(["mix", "--communicators", "compute", "-i"]).arg(&capture).arg("-o").arg(&trace);
            run(&mut mix).success();
            std::fs::write(trace.with_extension("timeless"), without_times(&trace)).expect("a copy");
        }
        let [a, b] = ["Mpich", "OpenMpi"].map(|mpi| work.path().join(format!("{mpi}.timeless")));
        let compared = run(Command::new("python3").arg(&canon).arg(a).arg(b)).success();
        assert_eq!(compared.stdout().trim(), "equal");
    }
}

#[test]
fn captures_of_the_original_tools_mix_to_their_traces() {
    let (Some(data), Some(canon)) = (shared("data/vef-prospector"), shared("tools/vef_canon.py")) else {
        return;
    };
    if !installed("python3") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    for name in ["p2p-a", "p2p-b"] {
        let mixed = work.path().join(name).with_extension("vef");
        run(vef().args(["mix", "-i"]).arg(data.join(name).join("VEFT.main")).arg("-o").arg(&mixed)).success();
        let expected = data.join(format!("{name}.vef"));
        let compared = run(Command::new("python3").arg(&canon).arg(expected).arg(mixed)).success();
        assert_eq!(compared.stdout().trim(), "equal", "{name}");
    }
}

#[test]
fn one_thread_and_two_write_the_same_bytes() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
    let capture = work.path().join("capture");
    let mut command = vef();
    command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture).arg("--");
    run(command.arg(program).arg("20")).success();
    let mixed = ["1", "2"].map(|jobs| {
        let trace = work.path().join(format!("{jobs}.vef"));
        run(vef().args(["mix", "-j", jobs, "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
        std::fs::read(trace).expect("a trace")
    });
    assert!(mixed[0].len() > 10_000);
    assert!(mixed[0] == mixed[1], "the traces differ");
}

#[test]
fn the_older_names_work() {
    let Some(data) = shared("data/vef-prospector/p2p-a/VEFT.main") else { return };
    let work = tempfile::tempdir().expect("a directory");
    let vef = vef_tests::products().join("vef");
    for name in ["vef_mixer", "traceter"] {
        std::os::unix::fs::symlink(&vef, work.path().join(name)).expect("a link");
    }
    let trace = work.path().join("out.vef");
    run(Command::new(work.path().join("vef_mixer")).arg("-i").arg(data).arg("-o").arg(&trace)).success();
    let said = run(Command::new(work.path().join("traceter")).arg(&trace)).success().stdout();
    assert!(said.contains("complete"), "{said}");
}

#[test]
fn the_demo_needs_no_mpi() {
    let work = tempfile::tempdir().expect("a directory");
    let said = run(vef().current_dir(work.path()).env("PATH", "").arg("demo")).success().stdout();
    for step in ["mix", "check", "sim"] {
        assert!(said.contains(&format!("vef {step}")), "no {step} in: {said}");
    }
    // Lines of messages are shown, as they are in the trace.
    let trace = std::fs::read_to_string(work.path().join("vef-demo/halo.vef")).expect("the trace");
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_message = |line: &&str| {
        let fields = fields(line);
        fields.len() == 7 && fields[0].parse::<u64>().is_ok() && fields[1] != fields[2]
    };
    let shown: Vec<&str> =
        said.lines().map(str::trim).filter(|line| trace.lines().any(|of| of == *line)).collect();
    assert!(shown.len() >= 4 && shown.iter().all(is_message), "{shown:?}");
    // What differs between the networks is told in columns, and something does.
    let (_, table) = said.split_once("What differs:\n").expect("a table");
    let row = |name: &str| {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap_or_else(|| panic!("{name}: {table}"));
        let cells = line.trim_start().strip_prefix(name).expect("its name").trim();
        cells
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("switch:4"), ["fattree:2x2x1"]);
    for (measure, key) in [("latency of a message: mean", "mean_ps"), ("longest", "max_ps")] {
        let cells = row(measure);
        assert!(cells.len() == 2 && cells[0] != cells[1], "{measure}: {cells:?}");
        for (cell, topology) in cells.iter().zip(["switch:4", "fattree:2x2x1"]) {
            let network = ["--topology", topology, "--bandwidth", "200Mbit/s"];
            let words = [&["sim", "vef-demo/halo.vef", "--json"][..], &network].concat();
            let report = run(vef().current_dir(work.path()).args(words)).success().stdout();
            let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
            let picos = report["latency"][key].as_u64().expect("a time");
            assert_eq!(*cell, vef_format::units::Picos(picos).to_string());
        }
    }
}

#[test]
fn the_documentation_lists_every_command() {
    let help = run(vef().arg("--help")).success().stdout();
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    for command in
        ["run", "mix", "check", "sim", "traffic", "timeline", "place", "convert", "text", "profile", "demo"]
    {
        assert!(help.contains(&format!("  {command} ")), "--help lacks {command}");
        assert!(readme.contains(&format!("vef {command}")), "README lacks {command}");
    }
}

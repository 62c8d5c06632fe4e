//! The commands around the spine, on traces of real runs: place, convert, lowering, containers, the live demo.

use std::path::{Path, PathBuf};
use std::process::Command;
use vef_tests::{Mpi, counts, number, root, run, run_for, skipped, vef};

/// A trace of the stencil in `examples/`, on 8 ranks.
fn stencil(mpi: Mpi, work: &Path) -> PathBuf {
    let program = mpi.compile(work, "halo", &["examples/halo.c", "-lm"]);
    let trace = work.join("halo.vef");
    let mut command = vef();
    command.args(["run", "-n", "8", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(work.join("capture"));
    run(command.arg("--mix").arg(&trace).arg("--").arg(program)).success();
    trace
}

fn json(command: &mut std::process::Command) -> serde_json::Value {
    let said = run(command).success().stdout();
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn placements_of_a_real_trace() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let trace = stencil(mpi, work.path());

    // As it ran: all on this one host.
    let placement = work.path().join("ran.toml");
    run(vef().args(["place", "--captured"]).arg(work.path().join("capture")).arg("-o").arg(&placement))
        .success();
    let mut command = vef();
    let sim = json(command.args(["sim", "--json", "--placement"]).arg(&placement).arg(&trace));
    assert_eq!(number(&sim["network"], "nodes"), 1);

    // Found: never worse than where the search began, and the same for the same seed.
    let found = ["a.json", "b.json"].map(|name| {
        let better = work.path().join(name);
        let mut command = vef();
        command.args(["place", "--topology", "torus:2x2x2", "--optimise"]).arg(&trace).arg("-o").arg(&better);
        run(&mut command).success();
        std::fs::read_to_string(better).expect("a placement")
    });
    assert_eq!(found[0], found[1]);
    let mut other = vef();
    other.args(["place", "-n", "3", "--topology", "torus:2x2x2", "--optimise"]).arg(&trace);
    let refused = run(&mut other).exited(2);
    assert!(refused.stderr().contains("has 8 tasks"), "{}", refused.stderr());
    let busiest = |placement: &Path| {
        let mut command = vef();
        command
            .args(["sim", "--json", "--topology", "torus:2x2x2", "--placement"])
            .arg(placement)
            .arg(&trace);
        let sim = json(&mut command);
        let links = sim["links"]["busiest"].as_array().expect("links").clone();
        links.iter().map(|link| number(link, "bytes")).max().expect("a link")
    };
    // All eight at one node's door load its links with nothing less than a spread placement does.
    let mut command = vef();
    let worst = work.path().join("worst.txt");
    std::fs::write(&worst, "0\n0\n0\n0\n1\n1\n1\n1\n").expect("a placement");
    assert!(busiest(&worst) > busiest(&work.path().join("a.json")));
    let refused = run(command.args(["place", "-n", "4", "--host", "a:2"])).exited(2);
    assert!(refused.stderr().contains("not enough slots"), "{}", refused.stderr());
}

#[test]
fn a_container_holds_the_same_trace() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let trace = stencil(mpi, work.path());
    let (container, again) = (work.path().join("halo.vefx"), work.path().join("again.vef"));
    run(vef().arg("convert").arg(&trace).arg(&container)).success();
    run(vef().arg("convert").arg(&container).arg(&again)).success();
    assert!(
        std::fs::read(&trace).expect("text") == std::fs::read(&again).expect("text"),
        "not the same text"
    );
    // A reader that was made from docs/formats.md alone.
    let packed = work.path().join("packed.vefx");
    run(vef().args(["convert", "--compress"]).arg(&trace).arg(&packed)).success();
    for file in [&container, &packed] {
        let printed = run(Command::new("python3").arg(root().join("examples/vefx.py")).arg(file)).success();
        let expected = std::fs::read_to_string(&trace).expect("text");
        assert!(printed.stdout() == expected, "examples/vefx.py reads {} otherwise", file.display());
    }
    for command in ["check", "sim"] {
        let [from_text, from_container] =
            [&trace, &container].map(|file| json(vef().args([command, "--json"]).arg(file)));
        assert_eq!(from_text["runtime_ps"], from_container["runtime_ps"], "{command}");
        assert_eq!(from_text["messages"], from_container["messages"], "{command}");
    }
}

#[test]
fn lowered_collectives_are_messages() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let trace = stencil(mpi, work.path());
    let lowered = work.path().join("lowered.vef");
    let mut command = vef();
    command.args(["mix", "--lower-collectives", "openmpi", "-i"]).arg(work.path().join("capture"));
    run(command.arg("-o").arg(&lowered)).success();
    let (before, after) = (counts::of_trace(&trace), counts::of_trace(&lowered));
    assert!(!before.collectives.is_empty() && after.collectives.is_empty());
    let messages = |counts: &counts::Counts| counts.traffic.values().map(|pair| pair.0).sum::<u64>();
    assert!(messages(&after) > messages(&before));
    assert_eq!(json(vef().args(["check", "--json"]).arg(&lowered))["complete"], true);
}

#[test]
fn a_message_to_oneself_is_one_message_of_a_text_trace() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "to_itself", &["tests/c/to_itself.c"]);
        let mut command = vef();
        command.current_dir(work.path()).args(["run", "-n", "3", "--mpirun", &mpi.launcher().join(" ")]);
        run(command.args(["-o", "capture", "--"]).arg(program)).success();
        let summary = json(vef().current_dir(work.path()).args(["text", "--json", "capture"]));
        let counts = ["messages", "bytes", "collectives"].map(|key| number(&summary, key));
        assert_eq!(counts, [6, 3 * 12 + 3 * 4, 0], "{mpi:?}");
    }
}

#[test]
fn the_demo_captures_a_program_itself() {
    if Mpi::installed().is_empty() {
        return skipped("no MPI (scripts/deps)");
    }
    let work = tempfile::tempdir().expect("a directory");
    let mut command = vef();
    command.current_dir(work.path()).args(["demo", "--live"]);
    let ended = run_for(&mut command, std::time::Duration::from_secs(120)).success();
    assert!(ended.stdout().contains("residual"), "{}", ended.stdout());
    assert!(ended.stderr().contains("captured in"), "{}", ended.stderr());
}

//! Inputs that once took hours or all memory are done, or refused in one line. A hang is a failure of [`run_for`]; the address space
//! is limited.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vef_tests::{Ended, run, run_for, vef};

/// Runs the command in `work`, with 4 GB of address space. It takes seconds; the limit is for a busy machine.
fn bounded(work: &Path, line: &[&str]) -> Ended {
    let mut command = Command::new("prlimit");
    command.current_dir(work).arg("--as=4000000000").arg(vef().get_program()).args(line);
    run_for(&mut command, Duration::from_secs(240))
}

fn trace(work: &Path) {
    run(vef().current_dir(work).args(["gen", "halo2d", "-n", "2", "--iterations", "3", "-o", "t.vef"]))
        .success();
}

/// The command fails with one line, not longer than some screens, that has this text.
fn refused(work: &Path, line: &[&str], text: &str) {
    let said = bounded(work, line).exited(2).stderr();
    let shown: Vec<&str> = line.iter().map(|word| &word[..word.len().min(60)]).collect();
    assert!(said.contains(text), "{shown:?}: {said:.500}");
    assert_eq!(said.trim_end().lines().count(), 1, "{shown:?}: {said:.500}");
    assert!(said.len() < 10_000, "{shown:?}: {} bytes", said.len());
}

#[test]
fn large_networks_of_files() {
    let work = tempfile::tempdir().expect("a directory");
    trace(work.path());
    // A long chain of switches with many cables.
    let mut chain = String::from("node a\nnode b\n");
    (0..8000).for_each(|switch| writeln!(chain, "switch s{switch}").expect("a string"));
    chain += "link a s0\nlink b s7999\n";
    (1..8000)
        .for_each(|switch| writeln!(chain, "link s{} s{switch} cables=400", switch - 1).expect("a string"));
    fs::write(work.path().join("chain.txt"), chain).expect("a file");
    bounded(work.path(), &["sim", "t.vef", "--no-ideal", "--topology", "file:chain.txt"]).success();
    // A GraphML file of many nodes.
    let mut graphml = String::from("<graphml><graph>\n<node id='s'/>\n");
    (0..20_000).for_each(|node| {
        writeln!(graphml, "<node id='n{node}'/>\n<edge source='n{node}' target='s'/>").expect("a string")
    });
    fs::write(work.path().join("star.graphml"), graphml + "</graph></graphml>").expect("a file");
    bounded(work.path(), &["sim", "t.vef", "--topology", "file:star.graphml"]).success();
    // As many cables as there could be links.
    fs::write(
        work.path().join("cables.txt"),
        "node a\nnode b\nswitch s\nswitch t\nlink a s\nlink b t\nlink s t cables=33554000\n",
    )
    .expect("a file");
    refused(work.path(), &["sim", "t.vef", "--topology", "file:cables.txt"], "more than 16777216 links");
    // More neighbours than distances can be found for.
    let mut dense = String::from("node a\nnode b\n");
    (0..2048).for_each(|switch| writeln!(dense, "switch s{switch}").expect("a string"));
    dense += "link a s0\nlink b s1\n";
    for from in 0..2048 {
        (0..from).for_each(|to| writeln!(dense, "link s{from} s{to}").expect("a string"));
    }
    fs::write(work.path().join("dense.txt"), dense).expect("a file");
    refused(
        work.path(),
        &["sim", "t.vef", "--topology", "file:dense.txt"],
        "2048 switches with 4192256 pairs of neighbours",
    );
}

#[test]
fn schedules() {
    let work = tempfile::tempdir().expect("a directory");
    let goal = |name: &str, text: String| fs::write(work.path().join(name), text).expect("a file");
    // Computations and messages that wait for one processor.
    goal("calc.goal", format!("num_ranks 1\nrank 0 {{\n{}}}\n", "calc 100\n".repeat(100_000)));
    bounded(work.path(), &["sim", "calc.goal", "--model", "loggp"]).success();
    let incast = format!(
        "num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n",
        "send 10b to 1\n".repeat(50_000),
        "recv 10b from 0\n".repeat(50_000)
    );
    goal("incast.goal", incast);
    bounded(work.path(), &["sim", "incast.goal", "--model", "loggp"]).success();
    // Many ranks with many processors.
    let others: String = (1..65_000).map(|rank| format!("rank {rank} {{}}\n")).collect();
    goal("places.goal", format!("num_ranks 65000\nrank 0 {{ calc 1 cpu 1000 nic 1000 }}\n{others}"));
    refused(
        work.path(),
        &["sim", "places.goal", "--model", "loggp"],
        "processors or interfaces of all ranks is too large",
    );
}

#[test]
fn numbers_without_a_bound() {
    let work = tempfile::tempdir().expect("a directory");
    trace(work.path());
    let huge = "4294967295";
    for (line, text) in [
        (&["place", "--nodes", huge, "--slots", "1", "-n", "2"][..], "4294967295 nodes; at most 4194304"),
        (
            &["place", "--nodes", "2", "--slots", "1", "--oversubscribe", "-n", huge],
            "4294967295 ranks; at most 16777216",
        ),
        (
            &["place", "--model", "slurm", "--nodes", "2", "--slots", "1", "--oversubscribe", "-n", huge],
            "4294967295 ranks; at most 16777216",
        ),
        (&["gen", "random", "-n", "2147483647", "-o", "-"], "ranks: at most 16777216"),
        (
            &["bench", "tree", "--op", "bcast", "--algorithm", "binomial", "-n", huge],
            "must be from 1 to 4096",
        ),
        (
            &["bench", "check", "--calibration", "none.toml", "--op", "bcast", "-n", huge],
            "must be from 1 to 1048576",
        ),
        (&["traffic", "--topology", "torus:2x2", "--window", huge], "must be from 1 to 1000000000"),
        (
            &[
                "traffic",
                "--topology",
                "torus:2x2",
                "--message",
                "16T",
                "--bandwidth",
                "1bit/s",
                "--longest",
                "1000000000",
            ],
            "2^64 ps",
        ),
        (&["sim", "t.vef", "--topology", "torus:4096x4096"], "more than 16777216 links"),
    ] {
        refused(work.path(), line, text);
    }
    // A load at which one message comes in 10^17 slots.
    bounded(work.path(), &["traffic", "--topology", "torus:2x2", "--load", "1e-17"]).success();
    // One message that would be 2^52 packets.
    let trace = fs::read_to_string(work.path().join("t.vef")).expect("a trace");
    fs::write(work.path().join("huge.vef"), trace.replace(" 8192 ", " 9223372036854775807 "))
        .expect("a file");
    refused(
        work.path(),
        &["sim", "huge.vef", "--model", "packet", "--bandwidth", "100T", "--no-ideal"],
        "2^26 packets",
    );
}

#[test]
fn names_and_values_of_any_length() {
    let work = tempfile::tempdir().expect("a directory");
    trace(work.path());
    let zeros = "0".repeat(70_000);
    let long = "s".repeat(70_000);
    refused(
        work.path(),
        &["place", "--model", "slurm", "--nodelist", &format!("n[{zeros}1-2]"), "--slots", "1", "-n", "2"],
        "more than 255 digits",
    );
    bounded(work.path(), &["sim", "t.vef", "--sweep", &format!("compute-scale=1,{zeros}2")]).success();
    fs::write(
        work.path().join("long.txt"),
        format!("node a\nnode b\nswitch {long}\nlink a {long}\nlink b {long}\n"),
    )
    .expect("a file");
    bounded(work.path(), &["sim", "t.vef", "--topology", "file:long.txt", "--critical-path"]).success();
    refused(work.path(), &["sim", &long], "File name too long");
}

/// What is no trace is told by its first bytes, also on a device or a pipe without an end.
#[test]
fn endless_inputs() {
    let work = tempfile::tempdir().expect("a directory");
    for command in ["check", "stats", "sim", "report"] {
        refused(work.path(), &[command, "/dev/zero"], "/dev/zero");
    }
}

/// An option that is read once takes a pipe.
#[test]
fn options_from_pipes() {
    let work = tempfile::tempdir().expect("a directory");
    trace(work.path());
    run(vef()
        .current_dir(work.path())
        .args(["place", "-n", "2", "--nodes", "2", "--slots", "1", "-o", "p.toml"]))
    .success();
    let copy = vef_tests::root().join("docs/accuracy/calibration-openmpi-20mbit.toml");
    fs::copy(copy, work.path().join("calibration.toml")).expect("a copy");
    fs::write(work.path().join("factors"), "0=2\n").expect("a file");
    for line in [
        "--placement <(cat p.toml | tail -n 0; echo n0; echo n1)",
        "--calibration <(cat calibration.toml)",
        "--compute-scale <(cat factors)",
        "--algorithms <(echo)",
        "--op-codes <(echo 0 Bcast) --report page.html",
        "--compute-scale <(cat factors) --report page.html --draw picture.svg",
        "--calibration <(cat calibration.toml) --critical-path",
    ] {
        let line = format!("{} sim t.vef --topology torus:2x2 {line}", vef().get_program().to_string_lossy());
        run(Command::new("bash").current_dir(work.path()).args(["-c", &line])).success();
    }
    // What is read several times must be a file.
    run(Command::new("mkfifo").arg(work.path().join("net.txt"))).success();
    for line in [
        "--compute-noise resampled:<(cat t.vef)",
        "--topology file:net.txt",
        "--compute-scale <(cat factors) --sweep latency=1us,2us",
        "--calibration <(cat calibration.toml) --sweep latency=1us,2us",
        "--op-codes <(echo 0 Bcast) --sweep latency=1us,2us",
        "--placement <(cat p.toml) --sweep latency=1us,2us",
        "--algorithms <(echo) --sweep latency=1us,2us",
    ] {
        let line = format!("{} sim t.vef {line}", vef().get_program().to_string_lossy());
        let said = run(Command::new("bash").current_dir(work.path()).args(["-c", &line])).exited(2).stderr();
        assert!(said.contains("not a file; it is read several times"), "{line}: {said}");
    }
}

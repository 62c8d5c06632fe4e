//! The adapters for simulators that Debian does not have, on stand-ins for these.

use std::fs;
use std::path::Path;
use std::process::Command;
use vef_tests::{installed, root, run, vef};

/// The adapter for BookSim2 on a network where a node sends a flit a cycle, which arrives 10 cycles later.
#[test]
fn booksim2_carries_a_trace() {
    if !installed("c++") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    let adapter = root().join("adapters/booksim2");
    for name in [
        "booksim",
        "booksim_config",
        "credit",
        "globals",
        "network",
        "random_utils",
        "routefunc",
        "trafficmanager",
    ] {
        fs::write(work.path().join(format!("{name}.hpp")), "#include \"stand_in.hpp\"\n").expect("a header");
    }
    let program = work.path().join("booksim-vef");
    let mut compile = Command::new("c++");
    compile.args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program);
    compile
        .arg("-I")
        .arg(work.path())
        .arg("-I")
        .arg(&adapter)
        .arg("-I")
        .arg(root().join("replay-ffi/include"));
    compile.arg(adapter.join("vef_booksim.cpp")).arg(vef_tests::products().join("libvef_replay.a"));
    run(compile.args(["-lgcc_s", "-lpthread", "-lm", "-ldl"])).success();
    let booksim = |trace: &Path, more: &[&str]| {
        run(Command::new(&program).args(["config", &format!("vef_trace={}", trace.display())]).args(more))
    };

    // 1000 bytes after 10 µs, and an answer of none 5 ns after these have come: 63 flits, and one. A flit that leaves in cycle c has come at the
    // end of cycle c + 10. The 10 µs and the 5 ns are no cycles of the network.
    let trace = work.path().join("two.vef");
    fs::write(&trace, "VEF3 2 2 0 0 0 0 1000\n0 0 1 1000 4 10000 -1\n1 1 0 0 6 5 0\n").expect("a trace");
    let (first, answer) = (62 + 10 + 1, 10 + 1);
    let (finish, cycles) = (f64::from(10_000 + first + 5 + answer) / 1e6, first + answer);
    let said = booksim(&trace, &[]).success().stdout();
    assert_eq!(said, format!("2 messages, 1000 bytes, run time {finish:.6} ms, {cycles} cycles simulated\n"));

    let halo = work.path().join("halo.vefx");
    run(vef().args(["gen", "halo2d", "-n", "16", "--iterations", "5", "-o"]).arg(&halo)).success();
    let said = booksim(&halo, &["vef_flit=64", "vef_cycle=5120"]).success().stdout();
    assert!(said.starts_with("320 messages, 2621440 bytes, run time 0.0"), "{said}");

    // What cannot be is said.
    for (more, says) in [
        (&["nodes=8"][..], "vef: the trace needs 16 nodes, the network has 8"),
        (&["vef_cycle=0"], "vef_cycle must be at least 1"),
        (&["classes=2"], "vef: one class of messages without replies"),
        (&["vef_placement=/nowhere"], "/nowhere: No such file"),
    ] {
        let said = booksim(&halo, more).exited(2).stderr();
        assert!(said.contains(says), "{more:?}: {said}");
    }
    // Each waits for the other's message.
    fs::write(&trace, "VEF3 2 2 0 0 0 0 1000\n0 0 1 10 6 0 1\n1 1 0 10 6 0 0\n").expect("a trace");
    let stuck = booksim(&trace, &[]).exited(1).stderr();
    assert!(stuck.contains("in a circle"), "{stuck}");
}

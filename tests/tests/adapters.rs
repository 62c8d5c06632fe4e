//! The adapters for simulators that Debian does not have, on stand-ins for these.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use vef_tests::{installed, root, run, vef};

/// A directory, and in it the program that a source makes with `stand_in.hpp` of an adapter for each of these headers.
fn built(adapter: &str, headers: &[&str], source: &str) -> Option<(TempDir, PathBuf)> {
    if !installed("c++") {
        return None;
    }
    let work = tempfile::tempdir().expect("a directory");
    let adapter = root().join("adapters").join(adapter);
    for name in headers {
        let header = work.path().join(name);
        fs::create_dir_all(header.parent().expect("a directory")).expect("a directory");
        fs::write(header, "#include \"stand_in.hpp\"\n").expect("a header");
    }
    let (program, main) = (work.path().join("program"), work.path().join("main.cpp"));
    fs::write(&main, source).expect("a source");
    let mut compile = Command::new("c++");
    compile.args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program);
    for directory in [work.path(), &adapter, &root().join("replay-ffi/include")] {
        compile.arg("-I").arg(directory);
    }
    compile.arg(&main).arg(vef_tests::products().join("libvef_replay.a"));
    run(compile.args(["-lgcc_s", "-lpthread", "-lm", "-ldl"])).success();
    Some((work, program))
}

/// 1000 bytes after 10 µs, and an answer of none 5 ns after these have come.
const TWO: &str = "VEF3 2 2 0 0 0 0 1000\n0 0 1 1000 4 10000 -1\n1 1 0 0 6 5 0\n";

/// Each waits for the other's message.
const CIRCLE: &str = "VEF3 2 2 0 0 0 0 1000\n0 0 1 10 6 0 1\n1 1 0 10 6 0 0\n";

/// 5 iterations of a halo exchange of 16 ranks.
fn halo(directory: &Path) -> PathBuf {
    let trace = directory.join("halo.vefx");
    run(vef().args(["gen", "halo2d", "-n", "16", "--iterations", "5", "-o"]).arg(&trace)).success();
    trace
}

/// The adapter for BookSim2 on a network where a node sends a flit a cycle, which arrives 10 cycles later.
#[test]
fn booksim2_carries_a_trace() {
    let headers = [
        "booksim",
        "booksim_config",
        "credit",
        "globals",
        "network",
        "random_utils",
        "routefunc",
        "trafficmanager",
    ];
    let headers = headers.map(|name| format!("{name}.hpp"));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let Some((work, program)) = built("booksim2", &headers, "#include \"vef_booksim.cpp\"\n") else { return };
    let booksim = |trace: &Path, more: &[&str]| {
        run(Command::new(&program).args(["config", &format!("vef_trace={}", trace.display())]).args(more))
    };

    // 63 flits, and one. A flit that leaves in cycle c has come at the
    // end of cycle c + 10. The 10 µs and the 5 ns are no cycles of the network.
    let trace = work.path().join("two.vef");
    fs::write(&trace, TWO).expect("a trace");
    let (first, answer) = (62 + 10 + 1, 10 + 1);
    let (finish, cycles) = (f64::from(10_000 + first + 5 + answer) / 1e6, first + answer);
    let said = booksim(&trace, &[]).success().stdout();
    assert_eq!(said, format!("2 messages, 1000 bytes, run time {finish:.6} ms, {cycles} cycles simulated\n"));

    let halo = halo(work.path());
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
    fs::write(&trace, CIRCLE).expect("a trace");
    let stuck = booksim(&trace, &[]).exited(1).stderr();
    assert!(stuck.contains("in a circle"), "{stuck}");
}

/// The component for SST on a network where a node sends a byte a nanosecond, and the head of a packet arrives with it after 10 ns.
#[test]
fn sst_carries_a_trace() {
    let headers =
        ["component", "event", "interfaces/simpleNetwork", "link", "output", "params", "unitAlgebra"];
    let headers = headers.map(|name| format!("sst/core/{name}.h"));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let Some((work, program)) = built("sst", &headers, "#include \"vef_sst.cpp\"\n") else { return };
    let sst = |trace: &Path, more: &[&str]| {
        run(Command::new(&program).arg(format!("trace={}", trace.display())).args(more))
    };

    // Packets follow each other without a gap, and a message has arrived with the tail of its last packet. An empty message takes a byte.
    let trace = work.path().join("two.vef");
    fs::write(&trace, TWO).expect("a trace");
    let finish = f64::from(10_000 + (1000 + 10) + 5 + (1 + 10)) / 1e6;
    for more in [&[][..], &["packet=256B"], &["packet=300B", "buffer=300"], &["packet=7B", "buffer=20"]] {
        let said = sst(&trace, more).success().stdout();
        assert_eq!(said, format!("2 messages, 1000 bytes, run time {finish:.6} ms\n"), "{more:?}");
    }

    let halo = halo(work.path());
    let said = sst(&halo, &[]).success().stdout();
    assert!(said.starts_with("320 messages, 2621440 bytes, run time 0."), "{said}");
    for (more, says) in [
        (&["nodes=8"][..], "FATAL: vef: the trace needs 16 nodes, slot \"network\" has 8"),
        (&["packet=0B"], "packet must be at least 1 B"),
        (&["packet=5kB"], "packet is larger than output_buf_size"),
        (&["placement=/nowhere"], "/nowhere: No such file"),
        (&["trace=/nowhere"], "/nowhere: No such file"),
    ] {
        let said = sst(&halo, more).exited(2).stderr();
        assert!(said.contains(says), "{more:?}: {said}");
    }
    fs::write(&trace, CIRCLE).expect("a trace");
    let stuck = sst(&trace, &[]).exited(1).stderr();
    assert!(stuck.contains("in a circle"), "{stuck}");
}

/// The module for OMNeT++ on a network where a node sends a byte a nanosecond, and a packet has arrived 10 ns after it was sent.
#[test]
fn omnetpp_carries_a_trace() {
    let source = "#include \"replay.cc\"\n\
                  std::int64_t omnetpp::destination_of(cPacket *packet) { return static_cast<VefPacket *>(packet)->destination; }\n";
    let Some((work, program)) = built("omnetpp", &["omnetpp.h"], source) else { return };
    let omnetpp = |trace: &Path, more: &[&str]| {
        run(Command::new(&program).arg(format!("trace={}", trace.display())).args(more))
    };

    // Packets follow each other without a gap. An empty message takes the latency alone.
    let trace = work.path().join("two.vef");
    fs::write(&trace, TWO).expect("a trace");
    let finish = f64::from(10_000 + (1000 + 10) + 5 + 10) / 1e6;
    for more in [&[][..], &["packet=256"], &["packet=7"]] {
        let said = omnetpp(&trace, more).success().stdout();
        assert_eq!(said, format!("2 messages, 1000 bytes, run time {finish:.6} ms\n"), "{more:?}");
    }

    let halo = halo(work.path());
    let said = omnetpp(&halo, &[]).success().stdout();
    assert!(said.starts_with("320 messages, 2621440 bytes, run time 0."), "{said}");
    for (more, says) in [
        (&["nodes=8"][..], "the trace needs 16 nodes, gate node[] has 8"),
        (&["packet=0"], "packet must be at least 1 B"),
        (&["placement=/nowhere"], "/nowhere: No such file"),
        (&["trace=/nowhere"], "/nowhere: No such file"),
    ] {
        let said = omnetpp(&halo, more).exited(1).stderr();
        assert!(said.contains(says), "{more:?}: {said}");
    }
    fs::write(&trace, CIRCLE).expect("a trace");
    let stuck = omnetpp(&trace, &[]).exited(1).stderr();
    assert!(stuck.contains("in a circle"), "{stuck}");
}

/// The program for CODES on a network where a node sends a byte a nanosecond, and a message has arrived 10 ns after its last byte was sent.
#[test]
fn codes_carries_a_trace() {
    let headers = [
        "mpi.h",
        "ross.h",
        "codes/codes.h",
        "codes/codes_mapping.h",
        "codes/configuration.h",
        "codes/lp-io.h",
        "codes/lp-type-lookup.h",
        "codes/model-net.h",
    ];
    let Some((work, program)) = built("codes", &headers, "#include \"vef_codes.cpp\"\n") else { return };
    let configuration = work.path().join("config");
    let codes = |nodes: u32, synch: u32, trace: &Path, more: &[&str]| {
        fs::write(&configuration, nodes.to_string()).expect("a configuration");
        run(Command::new(&program)
            .args([&format!("--synch={synch}"), "--"])
            .args([&configuration, trace])
            .args(more))
    };

    // An empty message takes a byte.
    let trace = work.path().join("two.vef");
    fs::write(&trace, TWO).expect("a trace");
    let finish = f64::from(10_000 + (1000 + 10) + 5 + (1 + 10)) / 1e6;
    for synch in [1, 2] {
        let said = codes(2, synch, &trace, &[]).success().stdout();
        assert_eq!(said, format!("vef: 2 messages, 1000 bytes, run time {finish:.6} ms\n"));
    }
    // Messages within a node do not enter the network: they take the 705 ns of the library's memory model, as in `vef sim`.
    let placement = work.path().join("placement");
    fs::write(&placement, "0\n0\n").expect("a placement");
    let said = codes(1, 1, &trace, &[placement.to_str().expect("a path")]).success().stdout();
    assert_eq!(said, "vef: 2 messages, 1000 bytes, run time 0.010705 ms\n");

    // The stand-in's network is a model of `vef sim`.
    let halo = halo(work.path());
    let said = run(vef()
        .arg("sim")
        .arg(&halo)
        .args("--topology switch:16 --model injection --bandwidth 8Gbit/s --latency 5ns".split(' ')))
    .success()
    .stdout();
    let line = said.lines().find(|line| line.starts_with("run time")).expect("a run time");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words[3].starts_with("µs"), "{line}");
    let finish = words[2].parse::<f64>().expect("a number") / 1e3;
    let said = codes(16, 1, &halo, &[]).success().stdout();
    assert_eq!(said, format!("vef: 320 messages, 2621440 bytes, run time {finish:.6} ms\n"));

    let nowhere = Path::new("/nowhere");
    for (result, says) in [
        (codes(8, 1, &halo, &[]), "vef: the trace needs 16 nodes, the configuration has 8 nw-lp"),
        (codes(16, 3, &halo, &[]), "vef: --synch=1 (sequential) or --synch=2 (conservative)"),
        (codes(16, 1, &halo, &["/nowhere"]), "/nowhere: No such file"),
        (codes(16, 1, &halo, &["a", "b"]), "vef: usage: vef-codes"),
        (codes(16, 1, nowhere, &[]), "/nowhere: No such file"),
    ] {
        let said = result.exited(2).stderr();
        assert!(said.contains(says), "{said}");
    }
    fs::write(&trace, CIRCLE).expect("a trace");
    let stuck = codes(2, 1, &trace, &[]).exited(1);
    assert!(stuck.stderr().contains("in a circle"), "{}", stuck.stderr());
    assert_eq!(stuck.stdout(), "");
}

/// The nodes for gem5 on a network where a node sends a flit of 16 bytes a cycle, and a packet has arrived 10 cycles after its last flit was sent.
#[test]
fn garnet_carries_a_trace() {
    let headers = [
        "base/logging",
        "mem/ruby/network/MessageBuffer",
        "mem/ruby/network/Network",
        "mem/ruby/protocol/Directory_Controller",
        "mem/ruby/slicc_interface/Message",
        "params/VefNode",
        "params/VefReplay",
        "sim/cur_tick",
        "sim/eventq",
        "sim/sim_exit",
        "sim/sim_object",
    ];
    let headers = headers.map(|name| format!("{name}.hh"));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let source = "#include \"vef_garnet.cc\"\n\
                  int main(int argc, char **argv) { return gem5::simulate<gem5::ruby::VefReplay, gem5::ruby::VefNode>(argc, argv); }\n";
    let Some((work, program)) = built("garnet", &headers, source) else { return };
    let gem5 = |trace: &Path, more: &[&str]| {
        run(Command::new(&program).arg(format!("trace={}", trace.display())).args(more))
    };

    // 63 flits, and one. Packets follow each other without a gap, and are in a buffer for a cycle at either end. What is left of a
    // message after its whole packets is as many flits as it needs, in one packet or in several.
    let trace = work.path().join("two.vef");
    fs::write(&trace, TWO).expect("a trace");
    let finish = f64::from(10_000 + (1 + 63 + 10 + 1) + 5 + (1 + 1 + 10 + 1)) / 1e6;
    for packet in [16, 32, 64, 1008, 2048] {
        let said = gem5(&trace, &[&format!("packet={packet}")]).success().stdout();
        assert_eq!(said, format!("2 messages, 1000 bytes, run time {finish:.6} ms\n"), "{packet}");
    }

    let halo = halo(work.path());
    let said = gem5(&halo, &[]).success().stdout();
    assert!(said.starts_with("320 messages, 2621440 bytes, run time 0."), "{said}");
    for (more, says) in [
        (&["nodes=8"][..], "fatal: vef: the trace needs 16 nodes, the network has 8"),
        (&["placement=/nowhere"], "/nowhere: No such file"),
        (&["trace=/nowhere"], "/nowhere: No such file"),
    ] {
        let said = gem5(&halo, more).exited(1).stderr();
        assert!(said.contains(says), "{more:?}: {said}");
    }
    fs::write(&trace, CIRCLE).expect("a trace");
    let stuck = gem5(&trace, &[]).exited(1).stderr();
    assert!(stuck.starts_with("vef: ") && stuck.contains("in a circle"), "{stuck}");
}

/// What a configuration cannot take is named in one line, without Python's traceback.
#[test]
fn configurations_say_what_is_wrong() {
    if !installed("python3") {
        return;
    }
    let configured = |adapter: &str, arguments: &str| {
        let mut python = Command::new("python3");
        python.arg(root().join("tests/py/without_simulator.py"));
        python.arg(root().join("adapters").join(adapter).join("replay.py")).arg("trace.vef");
        run(python.args(arguments.split_whitespace()))
    };
    for shape in ["switch:16", "mesh:16", "torus:4x4", "fattree:16", "fattree:4,4:4", "dragonfly:2x4x1x9"] {
        configured("sst", &format!("--topology {shape}")).success();
    }
    for shape in ["switch:x", "switch:0", "mesh:4xx4", "torus", "fattree:4:4", "dragonfly:2x4x1", "ring:16"] {
        let said = configured("sst", &format!("--topology {shape}")).exited(1).stderr();
        let expected = format!("vef: --topology {shape}: it is switch:N, mesh:AxB, ");
        assert!(said.starts_with(&expected) && said.lines().count() == 1, "{said}");
    }
    for mesh in ["", "--topology Mesh_XY --mesh-rows 4", "--clock 5.12ns --packet 64"] {
        configured("garnet", &format!("--nodes 16 {mesh}")).success();
    }
    for (wrong, code, says) in [
        (
            "--topology Mesh_XY",
            1,
            "--topology Mesh_XY --nodes 16 --routers 16 --mesh-rows 0 cannot be: assert ",
        ),
        ("--topology Mesh_XY --mesh-rows 3", 1, "--mesh-rows 3 cannot be: assert "),
        ("--topology Ring", 1, "vef: --topology Ring: No module named 'topologies.Ring'"),
        ("--clock 5.12nz", 2, "error: argument --clock: invalid clock value: '5.12nz'"),
        ("--clock 0ns", 2, "error: argument --clock: invalid clock value: '0ns'"),
        ("--nodes 0", 2, "error: argument --nodes: invalid count value: '0'"),
        ("--link-width-bits 0", 2, "error: --packet must be a multiple of a flit's bytes"),
    ] {
        let said = configured("garnet", &format!("--nodes 16 {wrong}")).exited(code).stderr();
        assert!(said.lines().last().is_some_and(|last| last.contains(says)), "{said}");
        assert!(said.starts_with("usage: ") || said.lines().count() == 1, "{said}");
    }
    for (adapter, says) in [("sst", "No module named 'sst'"), ("garnet", "No module named 'm5'")] {
        let script = root().join("adapters").join(adapter).join("replay.py");
        let said = run(Command::new("python3").arg("-I").arg(script)).exited(1).stderr();
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
}

/// Where the simulator is not installed, the script that builds its adapter says so in one line.
#[test]
fn build_scripts_say_what_is_missing() {
    let work = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink("/usr/bin/dirname", work.path().join("dirname")).expect("a link");
    for (adapter, says) in [
        ("sst", "no sst-config on PATH"),
        ("omnetpp", "no opp_makemake on PATH"),
        ("garnet", "no scons on PATH"),
    ] {
        let mut build = Command::new("/bin/sh");
        build.arg(root().join("adapters").join(adapter).join("build")).arg(work.path().join("out"));
        let told = run(build.env("PATH", work.path())).exited(2).stderr();
        assert!(told.contains(says) && told.lines().count() == 1, "{told}");
    }
}

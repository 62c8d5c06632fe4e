//! The C interface as its users have it: installed, moved, found by CMake and pkg-config, linked into simulators that
//! replay a trace of LAMMPS, and called wrongly under AddressSanitizer and valgrind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use vef_tests::{Mpi, have, installed, number, root, run, run_for, shared, skipped, vef};

/// The Cargo profile of this test, which is then already built.
fn profile() -> &'static str {
    if vef_tests::products().ends_with("release") { "release" } else { "dev" }
}

/// Everything installed, and moved since.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (first, moved) = (scratch.join("installed"), scratch.join("moved"));
        for old in [&first, &moved] {
            let _ = fs::remove_dir_all(old);
        }
        let mut install = Command::new(root().join("scripts/install"));
        run_for(install.arg(&first).env("VEF_INSTALL_PROFILE", profile()), Duration::from_secs(900))
            .success();
        fs::rename(&first, &moved).expect("a moved installation");
        moved
    })
}

/// The trace of LAMMPS on 4 ranks, captured with what is installed; that of the demo where it cannot be.
fn trace(work: &Path) -> PathBuf {
    let trace = work.join("trace.vef");
    let input = shared("apps/lammps/in.lj");
    if let (Some(input), true, true) = (input, have("lmp"), Mpi::installed().contains(&Mpi::OpenMpi)) {
        let mut command = vef_installed();
        command.current_dir(work).args([
            "run",
            "-n",
            "4",
            "--mpirun",
            &Mpi::OpenMpi.launcher().join(" "),
            "--mix",
        ]);
        command.arg(&trace).args(["--", "lmp", "-log", "none", "-in"]).arg(input);
        run(&mut command).success();
    } else {
        skipped("no LAMMPS, Open MPI or its input: the simulators get the trace of `vef demo`");
        demo_trace(&trace);
    }
    trace
}

fn demo_trace(trace: &Path) {
    run(vef().args(["mix", "-i"]).arg(root().join("cli/demo/capture")).arg("-o").arg(trace)).success();
}

/// Messages, bytes and run time in milliseconds on the simulator in here.
fn simulated(trace: &Path) -> (u64, u64, f64) {
    let said = run(vef().args(["sim", "--json"]).arg(trace)).success().stdout();
    let sim: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    (number(&sim, "messages"), number(&sim, "bytes"), number(&sim, "runtime_ps") as f64 / 1e9)
}

/// The command as it is installed.
fn vef_installed() -> Command {
    let mut command = Command::new(prefix().join("bin/vef"));
    for (key, value) in vef().get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command
}

/// `N messages, N bytes` at the beginning of a line.
fn messages_and_bytes(line: &str) -> (u64, u64) {
    let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        [messages, "messages", bytes, "bytes", ..] => {
            (messages.parse().expect("a number"), bytes.parse().expect("a number"))
        }
        _ => panic!("not messages and bytes: {line}"),
    }
}

#[test]
fn all_simulators_carry_the_same_messages() {
    if !installed("cmake") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    for directory in ["examples", "adapters"] {
        let build = work.path().join(directory);
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(root().join(directory)).arg("-B").arg(&build);
        run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()))).success();
        run_for(Command::new("cmake").arg("--build").arg(&build), Duration::from_secs(600)).success();
    }

    let trace = trace(work.path());
    let (messages, bytes, yardstick) = simulated(&trace);
    assert!(messages > 0 && bytes > 0);

    // A cycle of 100 ns.
    let simulators: [(&str, &[&str]); 5] = [
        ("examples/cycle_loop", &["100000"]),
        ("examples/toy", &[]),
        ("adapters/ns3-replay", &["star"]),
        ("adapters/ns3-replay", &["tree"]),
        ("adapters/simgrid-replay", &[]),
    ];
    for (simulator, arguments) in simulators {
        let program = work.path().join(simulator);
        if !program.exists() {
            skipped(format_args!("{simulator} was not built: its simulator is not installed (scripts/deps)"));
            continue;
        }
        // Two seconds on the processor; more where many share it.
        let mut replay = Command::new(program);
        let said = run_for(replay.arg(&trace).args(arguments), Duration::from_secs(300)).success().stdout();
        assert_eq!(messages_and_bytes(&said), (messages, bytes), "{simulator} {arguments:?}");
        let time =
            said.split("run time ").nth(1).and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let time = time.unwrap_or_else(|| panic!("{simulator}: no run time in {said}"));
        // The computing times are the same in all; what differs is the network.
        assert!(
            time > 0.5 * yardstick && time < 3.0 * yardstick,
            "{simulator}: {time} ms, vef sim {yardstick} ms"
        );
    }
}

#[test]
fn the_guide_is_true() {
    if !["cmake", "pkg-config", "c++", "cc"].iter().all(|tool| have(tool)) {
        return skipped("the guide needs cmake, pkg-config and compilers (scripts/deps)");
    }
    let work = tempfile::tempdir().expect("a directory");
    let guide = fs::read_to_string(root().join("docs/c-api.md")).expect("the guide");
    let mut script = "set -eu\n".to_owned();
    let mut programs = 0;
    for block in guide.split("\n```").skip(1).step_by(2) {
        let (head, content) = block.split_once('\n').expect("a block");
        match head.split_once(' ') {
            Some((_, name)) => fs::write(work.path().join(name), content).expect("a file"),
            None => {
                assert_eq!(head, "sh", "a block without a name is a script");
                script += content;
                script += "\n";
                programs += 1;
            }
        }
    }
    assert!(programs >= 4, "the guide has lost its scripts");
    let prefix = work.path().join("prefix");
    let mut follow = Command::new("bash");
    follow.current_dir(work.path()).args(["-c", &script]).env("VEF_SOURCE", root()).env("PREFIX", &prefix);
    follow.env("VEF_INSTALL_PROFILE", profile());
    let said = run_for(&mut follow, Duration::from_secs(900)).success().stdout();
    let times = said.lines().filter(|line| line.contains(" ms")).count();
    assert_eq!(times, 3, "{said}");
}

/// Compiles a test in C against what is installed; answers the program.
fn compile(work: &Path, source: &str, options: &[&str], is_static: bool) -> PathBuf {
    let program = work.join(Path::new(source).with_extension("").file_name().expect("a name"));
    let mut command = Command::new("gcc");
    command.args(["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(options);
    command
        .arg("-I")
        .arg(prefix().join("include"))
        .arg(root().join("tests/c").join(source))
        .arg("-o")
        .arg(&program);
    let library = prefix().join("lib");
    match is_static {
        true => command.arg(library.join("libvef_replay.a")).args([
            "-lgcc_s",
            "-lutil",
            "-lrt",
            "-lpthread",
            "-lm",
            "-ldl",
        ]),
        false => command
            .arg("-L")
            .arg(&library)
            .arg("-lvef_replay")
            .arg(format!("-Wl,-rpath,{}", library.display())),
    };
    run(&mut command).success();
    program
}

#[test]
fn the_contract_holds_from_c() {
    let work = tempfile::tempdir().expect("a directory");
    let checked = compile(work.path(), "replay_contract.c", &["-fsanitize=address,undefined"], true);
    run(Command::new(checked).current_dir(work.path())).success();
    let program = compile(work.path(), "replay_contract.c", &[], false);
    if !installed("valgrind") {
        return;
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.current_dir(work.path()).args([
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--show-leak-kinds=all",
    ]);
    run(valgrind.arg("--errors-for-leak-kinds=definite,indirect,possible").arg(program)).success();
}

/// A container that is cut, overwritten, or replaced by another file after a part of its messages, in the middle and at the end.
#[test]
fn a_container_that_changes_under_its_replay_is_one_error() {
    let work = tempfile::tempdir().expect("a directory");
    let program = compile(work.path(), "changed_container.c", &["-fsanitize=address,undefined"], true);
    let generate = || {
        let _ = fs::remove_file(work.path().join("halo.vefx"));
        let mut generate = vef();
        generate.current_dir(work.path()).args(["gen", "halo2d", "-n", "16", "--iterations", "10000"]);
        run(generate.args(["-o", "halo.vefx"])).success();
    };
    let said = |how: &str, before: &str| {
        generate();
        let mut replay = Command::new(&program);
        run(replay.current_dir(work.path()).args(["halo.vefx", how, before])).success().stdout()
    };
    let whole = said("leave", "1");
    assert!(whole.starts_with("complete: "), "{whole}");
    for before in ["1", "100000"] {
        let cut = said("cut", before);
        assert!(cut.starts_with("error: ") && cut.contains("halo.vefx"), "{cut}");
        assert!(cut.contains("the file is truncated") && cut.lines().count() == 1, "{cut}");
        let overwritten = said("overwrite", before);
        assert!(overwritten.starts_with("error: ") && overwritten.contains("halo.vefx"), "{overwritten}");
        assert_eq!(said("replace", before), whole, "the file that was opened stays");
    }
    let last = whole.split_whitespace().nth(1).expect("a number");
    assert_eq!(said("cut", last), whole, "all of it was read");
}

#[test]
fn random_calls_do_no_harm() {
    let work = tempfile::tempdir().expect("a directory");
    let program = compile(work.path(), "replay_fuzz.c", &["-fsanitize=address,undefined"], true);
    // The contract's traces, wrong ones among them, and one with collectives.
    let contract = compile(work.path(), "replay_contract.c", &[], true);
    run(Command::new(contract).current_dir(work.path())).success();
    demo_trace(&work.path().join("demo.vef"));
    run(vef().current_dir(work.path()).args(["convert", "demo.vef", "demo.vefx"])).success();
    for seed in 1..=5 {
        let mut fuzz = Command::new(&program);
        fuzz.current_dir(work.path()).args([
            &seed.to_string(),
            "100000",
            "demo.vef",
            "demo.vefx",
            "ping-pong.vef",
        ]);
        fuzz.args([
            "burst.vef",
            "cyclic.vef",
            "garbled.vef",
            "twice.vef",
            "missing.vef",
            "cut.vef",
            "absent.vef",
        ]);
        run(&mut fuzz).success();
    }
}

#[test]
fn a_program_written_for_the_older_library_runs() {
    let work = tempfile::tempdir().expect("a directory");
    let program = compile(work.path(), "tracelib.c", &[], false);
    // Of some microseconds, since a cycle is a nanosecond: a barrier, a message around a ring, an Allreduce, and one task
    // computes on.
    let trace = work.path().join("ring.vef");
    let mut text = "VEF3 4 9 1 2 8 0 1000\nC0 0 1 2 3\n".to_owned();
    for rank in 0..4 {
        text += &format!("G0 C0 6 {rank} 0 0 0 {} -1\n", 100 * rank);
    }
    for rank in 0..4 {
        text += &format!("{rank} {rank} {} 8192 7 1500 G0\n", (rank + 1) % 4);
    }
    for rank in 0..4 {
        text += &format!("{} {rank} {rank} 0 2 20 {}\n", 4 + rank, (rank + 3) % 4);
    }
    for rank in 0..4 {
        text += &format!("G1 C0 2 {rank} 8 8 1 10 {}\n", 4 + rank);
    }
    text += "8 2 2 0 3 700 G1\n";
    fs::write(&trace, text).expect("a trace");
    let ended = run(Command::new(&program).arg(&trace)).success();
    assert_eq!(ended.stderr(), "");
    let messages = simulated(&trace).0;
    // The last task enters the barrier after 300 cycles, and the network takes no time; but this simulator takes what a reception
    // makes ready in the next cycle, once for the two rounds of the barrier and once for those of the Allreduce.
    let cycles = 300 + 1 + 1500 + 20 + 10 + 1 + 700;
    assert_eq!(ended.stdout(), format!("{messages} messages, {cycles} cycles\n"));

    // Its loop ends on a wrong trace, which is told.
    let circle = work.path().join("circle.vef");
    fs::write(&circle, "VEF3 2 2 0 0 0 0 1\n0 0 1 1 6 0 1\n1 1 0 1 6 0 0\n").expect("a trace");
    let ended = run(Command::new(&program).arg(&circle)).success();
    assert!(ended.stderr().contains("in a circle"), "{}", ended.stderr());
    let ended = run(Command::new(&program).arg(work.path().join("absent.vef"))).success();
    assert!(
        ended.stderr().contains("TraceManager: ") && ended.stderr().contains("absent.vef"),
        "{}",
        ended.stderr()
    );
}

#[test]
fn the_benchmark_in_c_runs() {
    let work = tempfile::tempdir().expect("a directory");
    let program = compile(work.path(), "../../benches/c/replay.c", &[], false);
    let trace = work.path().join("demo.vef");
    demo_trace(&trace);
    let said = run(Command::new(program).arg(&trace)).success().stdout();
    let messages = format!(" {} messages, ", simulated(&trace).0);
    assert_eq!(said.lines().filter(|line| line.contains(&messages)).count(), 4, "{said}");
}

/// The functions that a header declares.
fn declared(header: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("replay-ffi/include").join(header)).expect("a header");
    let functions = text
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with(' ') && !line.starts_with("typedef"));
    functions
        .filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_shared_library_exports_what_the_headers_declare() {
    let mut nm = Command::new("nm");
    let said =
        run(nm.args(["-D", "--defined-only", "--format=posix"]).arg(prefix().join("lib/libvef_replay.so")));
    let said = said.success().stdout();
    let exported: BTreeSet<String> =
        said.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    let declared: BTreeSet<String> =
        declared("vef_replay.h").union(&declared("TraceManager.h")).cloned().collect();
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(exported, declared);
}

#[test]
fn the_headers_compile_alone() {
    let work = tempfile::tempdir().expect("a directory");
    for (compiler, standard, header) in [
        ("gcc", "c89", "vef_replay.h"),
        ("gcc", "c89", "TraceManager.h"),
        ("gcc", "c99", "vef_replay.h"),
        ("gcc", "c99", "TraceManager.h"),
        ("gcc", "c2x", "vef_replay.h"),
        ("g++", "c++11", "vef_replay.h"),
        ("g++", "c++11", "TraceManager.h"),
        ("g++", "c++17", "vef_replay.hpp"),
        ("g++", "c++20", "vef_replay.hpp"),
    ] {
        let source = work.path().join(if compiler == "gcc" { "alone.c" } else { "alone.cpp" });
        fs::write(&source, format!("#include <{header}>\n#include <{header}>\n")).expect("a source");
        let mut command = Command::new(compiler);
        command.arg(format!("-std={standard}")).args([
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Wshadow",
            "-Werror",
            "-fsyntax-only",
        ]);
        run(command.arg("-I").arg(root().join("replay-ffi/include")).arg(&source)).success();
    }
}

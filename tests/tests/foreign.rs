//! Traces of other tools on the command line.

use std::fs;
use std::path::{Path, PathBuf};
use vef_tests::{Mpi, root, run, vef};

fn sample(path: &str) -> PathBuf {
    root().join("interchange/tests/data").join(path)
}

/// A copy of the files of a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry").path();
        let to = to.join(entry.file_name().expect("a name"));
        match entry.is_dir() {
            true => copy(&entry, &to),
            false => drop(fs::copy(&entry, &to).expect("a copy")),
        }
    }
}

/// `vef check` says of a format of calls what is wrong, where and how often, and refuses what cannot be converted.
#[test]
fn calls_are_checked_before_they_are_converted() {
    let sound = run(vef().arg("check").arg(sample("dumpi/testtrace"))).success().stdout();
    assert!(
        sound.contains("testtrace: DUMPI") && sound.contains("complete: every record replays"),
        "{sound}"
    );
    assert!(!sound.contains("warning") && !sound.contains("error"), "{sound}");

    let work = tempfile::tempdir().expect("a directory");
    for (of, file, length) in [
        ("dumpi/alltoall-p2p", "dumpi-2019.05.22.11.54.43-0002.bin", 1500),
        ("otf2/pingpong2", "traces/1.evt", 500),
    ] {
        let cut = work.path().join(of);
        copy(&sample(of), &cut);
        let file = cut.join(file);
        let bytes = fs::read(&file).expect("a file");
        fs::write(&file, &bytes[..length]).expect("written");
        let said = run(vef().arg("check").arg(&cut)).exited(2).stdout();
        for part in ["error: files that end early (1): rank ", "error: without a partner: ", "NOT complete"] {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
        // The file is said once to be cut.
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        assert_eq!(said.matches(name).count(), 1, "{said}");
        let json = run(vef().arg("check").arg(&cut).arg("--json")).exited(2).stdout();
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let findings = json["findings"].as_array().expect("findings");
        let ends = findings.iter().find(|finding| finding["what"] == "files that end early").expect("a kind");
        assert!(ends["is_error"] == true && ends["count"] == 1, "{json}");
    }

    // What is left out is told with its number, and --strict refuses it; options of vef import are those of vef check.
    let trace = work.path().join("trace.txt");
    fs::write(&trace, "0 init\n0 compute 5e9\n0 put 1 8\n0 finalize\n").expect("written");
    let check = |options: &[&str]| run(vef().arg("check").arg(&trace).args(options));
    assert!(
        check(&[])
            .exited(2)
            .stdout()
            .contains("trace.txt:2: an amount of computing becomes a time by vef import --flops-per-second")
    );
    let told = check(&["--flops-per-second", "1e9"]).success().stdout();
    assert!(
        told.contains("warning: left out: calls of put (1): rank 0") && told.contains("5.000 s"),
        "{told}"
    );
    let refused = check(&["--flops-per-second", "1e9", "--strict"]).exited(2).stdout();
    assert!(refused.contains("left out: calls of put (1): rank 0"), "{refused}");
}

/// A step of training a language model goes to Chakra and OTF2 and back, and is cut out of a workload of two jobs.
#[test]
fn a_workload_is_made_exported_joined_and_cut() {
    let work = tempfile::tempdir().expect("a directory");
    let vef = |words: &str| {
        let mut command = vef();
        run(command.current_dir(work.path()).args(words.split(' ')))
    };
    vef("gen llm --parallel 2,2,2 --layers 4 --hidden 256 --inner 512 --sequence 128 --micro-batches 3 --iterations 1 -o step.vefx")
        .success();
    let replayed = |trace: &str| {
        let checked = vef(&format!("check {trace} --json")).success().stdout();
        let checked: serde_json::Value = serde_json::from_str(&checked).expect("JSON");
        ["messages", "collectives", "bytes", "runtime_ps"].map(|key| checked[key].as_u64().expect("a number"))
    };
    let [messages, collectives, bytes, runtime] = replayed("step.vefx");
    assert_eq!((messages, collectives), (4 * 3 * 2, 2 * 4 * 2 * 3 * 2 + 2 * (2 * (2 + 1))));

    vef("export --to chakra step.vefx -o step.chakra").success();
    let [sends, kept, sent, micros] = replayed("step.chakra");
    assert_eq!((sends, kept, sent), (messages, collectives, bytes));
    // The times are whole µs.
    assert!(micros.abs_diff(runtime) <= 100_000_000, "{micros} {runtime}");
    vef("export --to otf2 step.vefx -o step.otf2.d").success();
    let [sends, kept, sent, _] = replayed("step.otf2.d");
    assert_eq!((sends, kept, sent), (messages, collectives, bytes));

    vef("gen ring -n 4 --iterations 10 -o ring.vef").success();
    let joined = vef("cat ring.vef step.vefx -o both.vefx").success().stdout();
    assert!(joined.contains("tasks from 4 on: step.vefx"), "{joined}");
    assert_eq!(replayed("both.vefx")[3], runtime.max(replayed("ring.vef")[3]));
    let cut = vef("cut both.vefx --ranks 4-11 -o again.vef").success().stdout();
    assert!(cut.contains("8 ranks"), "{cut}");
    assert_eq!(replayed("again.vef"), [messages, collectives, bytes, runtime]);
    // The part of a run takes as long as a replay of that part.
    let time = |words: &str| {
        let simulated: serde_json::Value =
            serde_json::from_str(&vef(words).success().stdout()).expect("JSON");
        simulated["runtime_ps"].as_u64().expect("a time")
    };
    vef("cut ring.vef --iterations=3-6 -o part.vef").success();
    assert_eq!(time("sim part.vef --json"), time("sim ring.vef --iterations=3-6 --json"));
    assert!(vef("cut ring.vef -o part.vef").exited(2).stderr().contains("name a part"));
    assert!(vef("cat ring.vef none.vef -o x.vef").exited(2).stderr().contains("none.vef"));
}

/// A non-blocking collective is a mark and a record of the trace, and one call of an archive.
#[test]
fn non_blocking_collectives_come_back_from_otf2() {
    let program = "#include <mpi.h>
int main(int argc, char **argv) {
    int one = 1, sum, step;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    for (step = 0; step < 4; step++) {
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
";
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let source = work.path().join("sums.c");
        fs::write(&source, program).expect("a program");
        let program = mpi.compile(work.path(), "sums", &[source.to_str().expect("a path")]);
        let mut command = vef();
        command.current_dir(work.path()).args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" ")]);
        run(command.args(["--mix", "sums.vefx", "-o", "sums", "--"]).arg(program)).success();
        let vef = |words: &str| run(vef().current_dir(work.path()).args(words.split(' '))).success().stdout();
        vef("export --to otf2 sums.vefx -o archive");
        let said = vef("import --strict archive -o back.vefx");
        assert!(said.contains(" 8 MPI_Iallreduce,") && !said.contains("lost"), "{mpi:?}: {said}");
    }
}

/// A sample of each format, with its options: those of the repository, and those beside it that are there.
fn samples() -> Vec<(PathBuf, &'static [&'static str])> {
    let own = [
        "dumpi/testtrace",
        "dumpi/alltoall-p2p",
        "otf2/pingpong2",
        "goal/binary_tree_32.bin",
        "goal/dissemination_16.goal",
        "chakra/all_reduce8",
        "chakra/all_to_all4",
    ];
    let mut samples: Vec<(PathBuf, &[&str])> = own.iter().map(|path| (sample(path), [].as_slice())).collect();
    let speed: &[&str] = &["--flops-per-second", "1e9"];
    for (path, options) in [
        ("dumpi/testbgp", [].as_slice()),
        ("otf2/mpi10", &[]),
        ("chakra/ring_allreduce8", &[]),
        ("chakra/pytorch/small_chakra.0.json", &[]),
        ("goal/sweep3d-4.goal.gz", &[]),
        ("liballprof", &[]),
        ("simgrid-ti/app32", speed),
        ("simgrid-ti/examples/actions_waitall.txt", speed),
    ] {
        if let Some(path) = skipping::shared(&format!("data/interchange/{path}")) {
            samples.push((path, options));
        }
    }
    samples
}

/// What foreign traces become is replayed to its end by every model of the simulator.
#[test]
fn imported_traces_are_simulated_by_every_model() {
    // Clap lists the models where one is wrong.
    let models = run(vef().args(["sim", "x.vef", "--model", "?"])).exited(2).stderr();
    let models = models.split("[possible values: ").nth(1).and_then(|rest| rest.split(']').next());
    let models: Vec<&str> = models.expect("the models").split(", ").collect();
    assert!(models.len() >= 6 && models.contains(&"loggp") && models.contains(&"flow"), "{models:?}");
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("t.vefx");
    for (path, options) in samples() {
        run(vef().arg("import").arg(&path).args(options).arg("-o").arg(&trace)).success();
        for model in &models {
            let simulated = run(vef().arg("sim").arg(&trace).args(["--json", "--model", model])).success();
            let simulated: serde_json::Value = serde_json::from_str(&simulated.stdout()).expect("JSON");
            assert_eq!(simulated["complete"], true, "{} by {model}", path.display());
        }
    }
}

/// LogGOPSim with its defaults ends the schedule of Sweep3D at this time.
#[test]
fn a_schedule_ends_when_loggopsim_ends_it() {
    let Some(path) = skipping::shared("data/interchange/goal/sweep3d-4.goal.gz") else { return };
    let simulated = run(vef().arg("sim").arg(path).args(["--model", "loggp", "--json"])).success().stdout();
    let simulated: serde_json::Value = serde_json::from_str(&simulated).expect("JSON");
    assert_eq!(simulated["runtime_ps"], 42_441_527_748_000u64);
}

/// What comes by a pipe is imported as the file is, and errors name the pipe.
#[test]
fn a_pipe_is_imported_as_its_file() {
    let work = tempfile::tempdir().expect("a directory");
    let piped = |file: &Path| {
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(work.path()).arg("-c").arg("cat \"$1\" | \"$0\" import - -o piped.vef");
        run(shell.arg(vef().get_program()).arg(file))
    };
    for path in ["goal/dissemination_16.goal", "goal/binary_tree_32.bin"].map(sample) {
        piped(&path).success();
        run(vef().current_dir(work.path()).arg("import").arg(&path).args(["-o", "file.vef"])).success();
        let [from_pipe, from_file] =
            ["piped.vef", "file.vef"].map(|name| fs::read(work.path().join(name)).expect("a trace"));
        assert!(from_pipe == from_file && !from_file.is_empty(), "{}", path.display());
    }
    let cut = work.path().join("cut.goal");
    fs::write(&cut, "num_ranks 2\nrank 0 {\nl1: send 8b to 9\n").expect("written");
    let said = piped(&cut).exited(2).stderr();
    assert!(said.contains("/dev/stdin:3"), "{said}");
    // One file of an archive cannot be imported alone.
    let said = piped(&sample("otf2/pingpong2/traces.otf2")).exited(2).stderr();
    assert!(
        said.contains("/dev/stdin: an anchor without its X.def: an OTF2 archive is several files"),
        "{said}"
    );
}

/// An option of some formats is refused for files of others, and for our own traces.
#[test]
fn options_of_other_formats_are_refused() {
    let work = tempfile::tempdir().expect("a directory");
    let samples = [
        ("otf2", "otf2/pingpong2"),
        ("goal", "goal/dissemination_16.goal"),
        ("goal-bin", "goal/binary_tree_32.bin"),
        ("chakra", "chakra/all_gather4"),
        ("dumpi", "dumpi/testtrace"),
    ];
    for (option, of) in [
        ("--old-ti", "ti"),
        ("--flops-per-second 1e9", "ti, chakra"),
        ("--keep-gaps", "dumpi"),
        ("--global-clock", "otf2"),
        ("--groups g.json", "chakra"),
        ("--stream-order", "chakra"),
        ("--streams nic", "goal, goal-bin"),
        ("--streams cpu", "goal, goal-bin, chakra"),
    ] {
        let name =
            if option == "--streams nic" { option } else { option.split(' ').next().unwrap_or(option) };
        for (format, path) in samples {
            let given = |command: &str| {
                let mut given = vef();
                given.current_dir(work.path()).arg(command).arg(sample(path)).args(option.split(' '));
                given
            };
            // What has no streams at all is told that.
            if of.split(", ").any(|of| of == format) || name == "--streams nic" && format != "chakra" {
                continue;
            }
            let only = format!("{name}: only for {of}; this is {format}");
            for said in [
                run(given("import").args(["-o", "x.vefx"])).exited(2).stderr(),
                run(&mut given("check")).exited(2).stderr(),
            ] {
                assert_eq!(said.trim_end(), format!("vef: error: {only}"));
            }
        }
        run(vef().current_dir(work.path()).args(["gen", "ring", "-n", "2", "-o", "ring.vef"])).success();
        let said = run(vef().current_dir(work.path()).args(["check", "ring.vef"]).args(option.split(' ')));
        let said = said.exited(2).stderr();
        assert!(said.contains("only for traces of other tools"), "{said}");
    }
    assert!(!work.path().join("x.vefx").exists());
}

/// What a command refuses about foreign traces, and how.
#[test]
fn refusals_say_what_would_do() {
    let work = tempfile::tempdir().expect("a directory");
    let refused = |words: &str| {
        let mut command = vef();
        run(command.current_dir(work.path()).args(words.split(' '))).exited(2).stderr()
    };
    assert!(refused("gen llm -o x.vef").contains("llm: how many ranks? (--ranks N or --parallel D,T,P)"));
    assert!(refused("gen ring -o x.vef").contains("ring: how many ranks? (--ranks N)"));
    let experts = "gen llm --parallel 3,1,1 -o x.vef --experts 4 --expert-ranks";
    assert!(refused(&format!("{experts} 3")).contains("3 ranks do not divide 4 experts (--experts)"));
    assert!(refused(&format!("{experts} 2")).contains("2 ranks do not divide 3 replicas (--parallel)"));
    run(vef().current_dir(work.path()).args(["gen", "ring", "-n", "4", "-o", "ring.vef"])).success();
    assert!(refused("cut ring.vef --ranks 99 -o x.vef").contains("no rank 99: the trace has 4 ranks"));
    for command in ["cat ring.vef", "cut ring.vef --ranks 0", "convert ring.vef", "gen ring -n 2"] {
        let to = if command.starts_with("convert") { "x.vef" } else { "-o x.vef" };
        assert!(refused(&format!("{command} {to} --compress")).contains("--compress is for containers"));
    }
    // Standard output is a pipe here.
    assert!(refused("export --to goal-bin ring.vef -o -").contains("name a file"));
    // The name of another kind of file, by a slip.
    for slip in ["export --to goal ring.vef -o x.vef", "export --to ti ring.vef -o x.bin"] {
        assert!(refused(slip).contains("another kind of file"));
    }
    assert!(refused("export --to otf2 ring.vef -o -").contains("name one"));
}

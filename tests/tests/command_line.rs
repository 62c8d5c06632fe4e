//! The command line as a new user and as a hostile one types it: exit codes, what is checked before a run, remedies that are
//! named, and commands that take the same arguments alike.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_tests::{Ended, Mpi, run, skipped, vef};

/// `tests/c/phases.c` for an MPI, compiled into a directory.
fn program(mpi: Mpi, work: &Path) -> String {
    mpi.compile(work, "phases", &["tests/c/phases.c"]).display().to_string()
}

/// A script for `sh`, which may be executed.
fn script(path: &Path, text: &str) -> String {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a script");
    path.display().to_string()
}

/// `vef run` with these words, in `work`.
fn vef_run(work: &Path, words: &[&str]) -> Ended {
    run(vef().current_dir(work).arg("run").args(words))
}

fn files(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A launcher with options, as `--mpirun` takes it.
fn launcher(mpi: Mpi) -> String {
    mpi.launcher().join(" ")
}

/// The programs of `mpi`'s run in `work` end with `code` after MPI_Finalize.
fn ends_with(work: &Path, code: i32, program: &str) -> String {
    script(&work.join(format!("ends-with-{code}")), &format!("{program} && exit {code}"))
}

#[test]
fn the_exit_code_is_the_program_s_and_what_was_asked_for_is_done() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let program = program(mpi, work);
    let seven = ends_with(work, 7, &program);
    // The mix fails: one rank's capture is not a capture any more when the program ends.
    // It is replaced, not written over: the other rank may still have it in memory.
    let spoil = "echo x > \"$VEF_DIR/x.$$\" && mv \"$VEF_DIR/x.$$\" \"$VEF_DIR/1.vefc\"";
    let spoils = script(&work.join("spoils"), &format!("{program} && {spoil} && exit $1"));
    for (line, expected) in [(&[seven.as_str()][..], 7), (&[&spoils, "7"], 7), (&[&spoils, "0"], 2)] {
        let capture = work.join("capture");
        let mpirun = launcher(mpi);
        let options =
            ["--mpirun", &mpirun, "-n", "2", "-o", "capture", "--mix", "out.vef", "--compress", "--"];
        let ended = vef_run(work, &[&options[..], line].concat()).exited(expected);
        match line.len() {
            1 => {
                assert!(work.join("out.vef").is_file(), "{}", ended.stderr());
                assert_eq!(files(&capture), ["0.vefc.zst", "1.vefc.zst"], "{}", ended.stderr());
                std::fs::remove_file(work.join("out.vef")).expect("a trace");
            }
            _ => {
                assert!(ended.stderr().contains("error: "), "{}", ended.stderr());
                assert!(!work.join("out.vef").exists());
            }
        }
        std::fs::remove_dir_all(&capture).expect("a capture");
    }
    // The place for the trace is gone when the program ends; the capture is compressed all the same.
    for (code, expected) in [("7", 7), ("0", 2)] {
        std::fs::create_dir(work.join("place")).expect("a directory");
        let removes = script(&work.join("removes"), &format!("{program} && rm -rf place && exit $1"));
        let options = ["-o", "capture", "--mix", "place/out.vef", "--compress", "-n", "2", "--mpirun"];
        let ended = vef_run(work, &[&options[..], &[&launcher(mpi), "--", &removes, code]].concat());
        let ended = ended.exited(expected);
        assert!(ended.stderr().contains("error: place/out.vef: "), "{}", ended.stderr());
        assert_eq!(files(&work.join("capture")), ["0.vefc.zst", "1.vefc.zst"], "{}", ended.stderr());
        std::fs::remove_dir_all(work.join("capture")).expect("a capture");
    }
}

#[test]
fn what_cannot_be_written_or_loaded_is_said_before_the_run() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    // Runs nothing: a launcher that leaves a mark.
    let mark = work.join("ran");
    let fake = script(
        &work.join("mpirun"),
        &format!("[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4' || touch {}", mark.display()),
    );
    std::fs::create_dir(work.join("folder")).expect("a directory");
    std::fs::write(work.join("text.so"), "no library").expect("a file");
    std::fs::copy("/bin/true", work.join("program")).expect("a program");
    let library = vef_tests::products().join("libvef_replay.so");
    let library = library.display().to_string();
    for (options, said) in [
        (&["--mix", "folder"][..], "error: --mix folder: "),
        (&["--mix", "missing/out.vef"], "error: --mix missing/out.vef: no such directory: missing"),
        (&["--mix", "-"], "error: --mix -: stdout belongs to the program; name a file"),
        (&["--tool", "capture", "--tool", "./text.so"], "error: --tool ./text.so: not a shared library"),
        (&["--tool", "./folder"], "error: --tool ./folder: a directory; a tool is a shared library"),
        (&["--tool", "./none.so"], "error: --tool ./none.so: neither a built-in tool"),
        (&["--tool", &library], "not a tool: it does not define vef_tool_descriptor"),
    ] {
        let ended =
            vef_run(work, &[&["--mpirun", &fake][..], options, &["--", "./program"]].concat()).exited(2);
        assert!(ended.stderr().contains(said), "{options:?}: {}", ended.stderr());
        assert_eq!(ended.stderr().lines().count(), 1, "{}", ended.stderr());
        assert!(!mark.exists(), "{options:?}: was found only after the run");
        let left: Vec<_> = files(work).into_iter().filter(|name| name.starts_with("vef-")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    // Nothing is captured.
    vef_run(work, &["--mpirun", &fake, "--", "./program"]).exited(2);
    assert!(mark.exists(), "the launcher that is not started otherwise");
}

#[test]
fn more_ranks_than_cores() {
    let installed = Mpi::installed();
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let cores = std::thread::available_parallelism().expect("known").get();
    let ranks = (cores + 2).to_string();
    for mpi in installed {
        let program = program(mpi, work);
        if mpi == Mpi::OpenMpi {
            // Open MPI refuses; the remedy is named, in its own words.
            let refused = vef_run(work, &["-n", &ranks, "--mpirun", mpi.launcher()[0], "--", &program]);
            assert_ne!(refused.output.status.code(), Some(0));
            let said = refused.stderr();
            assert!(
                said.contains("vef run --oversubscribe") && said.contains("nothing was captured"),
                "{said}"
            );
        }
        let options =
            ["--oversubscribe", "-n", &ranks, "--mpirun", mpi.launcher()[0], "-o", "capture", "--", &program];
        let ended = vef_run(work, &options).success();
        let warning = |name: &str| format!("vef: warning: {name}: {ranks} ranks on {cores} cores of ");
        let told = |said: &str, name: &str| {
            let warning = warning(name);
            assert!(
                said.contains(&warning) && said.contains(": times in MPI include waiting for cores"),
                "{said}"
            );
        };
        let capture = ended
            .stderr()
            .lines()
            .find_map(|line| Some(line.strip_prefix("vef: captured in ")?.split_once(": ")?.0.to_owned()));
        told(&ended.stderr(), &capture.expect("a capture"));
        // What a trace can carry of it is repeated.
        let mixed = run(vef().current_dir(work).args(["mix", "-i", "capture", "-o", "out.vefx"])).success();
        told(&mixed.stderr(), "capture");
        let ended = run(vef().current_dir(work).args(["check", "out.vefx"])).success();
        told(&ended.stderr(), "out.vefx");
        // In one line by all others.
        for command in [&["sim"][..], &["sim", "--sweep", "latency=1us,2us"], &["stats", "--by", "rank"]] {
            let (command, more) = command.split_first().expect("a command");
            let ended = run(vef().current_dir(work).args([command, "out.vefx"]).args(more)).success();
            let short = warning("out.vefx");
            let told: Vec<String> =
                ended.stderr().lines().filter(|line| line.contains("warning")).map(str::to_owned).collect();
            assert!(matches!(&told[..], [one] if one.starts_with(&short)), "{command}: {told:?}");
            // There is nothing more to tell.
            assert!(!told[0].contains("vef check"), "{told:?}");
        }
        let ended = run(vef().current_dir(work).args(["report", "out.vefx", "--format", "md"])).success();
        assert!(ended.stdout().contains(": times in MPI include waiting for cores"), "{}", ended.stdout());
        std::fs::remove_dir_all(work.join("capture")).expect("a capture");
        let ended =
            vef_run(work, &["-n", "1", "--mpirun", mpi.launcher()[0], "-o", "capture", "--", &program]);
        assert!(!ended.stderr().contains("warning"), "{}", ended.stderr());
        std::fs::remove_dir_all(work.join("capture")).expect("a capture");
    }
}

#[test]
fn the_launcher_is_that_of_the_program_wherever_it_stands() {
    let installed = Mpi::installed();
    if installed.len() < 2 {
        return skipped("needs both MPIs");
    }
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    for mpi in installed {
        let program = program(mpi, work);
        // Under the other MPI's launcher each rank would be a world of its own.
        for wrapped in [&["env", "A=1"][..], &["nice"], &["env", "A=mpirun", "nice", "-n", "1"]] {
            let line = [&["-n", "2", "-o", "capture", "--"][..], wrapped, &[&program]].concat();
            let ended = vef_run(work, &line).success();
            assert!(ended.stderr().contains(": 2 ranks, "), "{wrapped:?}: {}", ended.stderr());
            std::fs::remove_dir_all(work.join("capture")).expect("a capture");
        }
    }
}

#[test]
fn the_launcher_may_be_quoted_and_wrapped() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let program = program(mpi, work);
    let folder = work.join("my mpi");
    std::fs::create_dir(&folder).expect("a directory");
    let path =
        Command::new("sh").args(["-c", &format!("command -v {}", mpi.launcher()[0])]).output().expect("sh");
    let path = String::from_utf8_lossy(&path.stdout).trim().to_owned();
    script(&folder.join("mpirun"), &format!("exec {path} \"$@\""));
    let rest = mpi.launcher()[1..].join(" ");
    let quoted = folder.join("mpirun").display().to_string();
    for mpirun in [
        format!("'{quoted}' {rest}"),
        format!("\"{quoted}\" {rest}"),
        format!("{} {rest}", quoted.replace(' ', "\\ ")),
        format!("env A='b c' '{quoted}' {rest}"),
        format!("nice -n 1 env A=1 '{quoted}' {rest}"),
    ] {
        let options = ["--mpirun", &mpirun, "-n", "2", "-o", "capture", "--", &program];
        let ended = vef_run(work, &options).success();
        assert!(ended.stderr().contains(": 2 ranks, "), "{mpirun}: {}", ended.stderr());
        std::fs::remove_dir_all(work.join("capture")).expect("a capture");
    }
    let unclosed = vef_run(work, &["--mpirun", "'mpirun", "-n", "2", "--", &program]).exited(2);
    assert!(unclosed.stderr().contains("a quote is not closed"), "{}", unclosed.stderr());
}

/// A small trace in text: rank 0 sends to rank 1, which answers.
const TRACE: &str = "VEF3 2 3 0 0 0 0 1000\n0 0 1 1000 4 5 -1\n1 1 0 500 6 2 0\n2 0 0 0 2 1 1\n";

#[test]
fn a_dash_is_the_standard_input_everywhere() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    std::fs::write(work.join("t.vef"), TRACE).expect("a trace");
    run(vef().current_dir(work).args(["convert", "t.vef", "t.vefx"])).success();
    let sh = |line: String| {
        let line = line.replace("VEF", &vef().get_program().to_string_lossy());
        run(Command::new("sh").current_dir(work).args(["-c", &line])).success()
    };
    for file in ["t.vef", "t.vefx"] {
        for feed in [format!("VEF XX < {file}"), format!("cat {file} | VEF XX")] {
            let says = |command: &str, what: &str| {
                let ended = sh(feed.replace("XX", command));
                assert!(ended.stdout().contains(what), "{command}: {}", ended.stdout());
            };
            says("check -", "complete: every record replays");
            says("sim - --json", "\"runtime_ps\"");
            says("place --optimise - --topology torus:2", "2 ranks on 2 of 2 nodes");
            says("convert - back.vef", "→ back.vef");
            assert_eq!(std::fs::read_to_string(work.join("back.vef")).expect("a trace"), TRACE);
        }
    }
}

#[test]
fn a_directory_where_a_trace_is_wanted() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let capture = vef_tests::root().join("cli/demo/capture");
    let capture = capture.display().to_string();
    for command in [&["check"][..], &["sim"], &["place", "--topology", "torus:4", "--optimise"], &["convert"]]
    {
        let ask = |directory: &str, code| {
            let mut vef = vef();
            vef.current_dir(work).args(command).arg(directory);
            if command == ["convert"] {
                vef.arg("out.vef");
            }
            run(&mut vef).exited(code).stderr()
        };
        // A capture is mixed first.
        ask(&capture, 0);
        let _ = std::fs::remove_file(work.join("out.vef"));
        assert_eq!(ask(".", 2), "vef: error: .: a directory, not a trace\n", "{command:?}");
    }
    assert_eq!(files(work), [""; 0], "{:?}", PathBuf::from(work));
}

#[test]
fn an_error_in_a_simulation_names_the_trace() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    // An id that is used twice; a message that is awaited and never sent; the end of time; a header alone.
    for (trace, says) in [
        ("VEF3 2 2 0 0 0 0 1000\n0 0 1 1 0 1 -1\n0 0 1 1 0 1 -1\n", "was used before"),
        ("VEF3 2 2 0 0 0 0 1000\n0 0 1 1 4 0 -1\n1 1 0 1 6 0 2\n", ""),
        ("VEF3 2 1 0 0 0 0 1000\n0 0 1 1 0 18446744073709551615 -1\n", "end of time"),
        ("VEF3 2147483647 0 0 0 0 0 1\n", "the header promises"),
    ] {
        std::fs::write(work.join("t.vef"), trace).expect("a trace");
        let said = run(vef().current_dir(work).args(["sim", "t.vef"])).exited(2).stderr();
        assert!(said.starts_with("vef: error: t.vef") && said.contains(says), "{said}");
    }
}

/// With several threads the run without contention comes first. Its times are not those of the simulation, so its error shows none.
#[test]
fn a_stuck_trace_is_stuck_at_a_time_of_its_own_run() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    // Two messages share the receiver's link, which takes longer than without contention.
    let stuck = "VEF3 3 5 0 0 0 0 1000\n0 0 2 1000000 4 0 -1\n1 1 2 1000000 4 0 -1\n\
        2 2 2 0 2 0 0\n3 2 2 0 2 0 1\n4 2 0 8 2 0 7\n";
    std::fs::write(work.join("stuck.vef"), stuck).expect("a trace");
    let says = |words: &[&str]| {
        let mut sim = vef();
        sim.current_dir(work).args(["sim", "stuck.vef", "--model", "packet"]);
        run(sim.args(words)).exited(2).stderr().lines().next().expect("an error").to_owned()
    };
    let (one, two) = (says(&[]), says(&["-j", "2"]));
    assert_eq!(two, "vef: error: stuck.vef: the trace is stuck: nothing more can happen: 1 task waits");
    assert!(one.contains("nothing can happen after ") && one.ends_with(": 1 task waits"), "{one}");
    assert_eq!(one, says(&["-j", "2", "--no-ideal"]));
}

/// An output appears whole, or what was there stays.
#[test]
fn what_is_not_whole_replaces_nothing() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let write = |name: &str, text: &str| std::fs::write(work.join(name), text).expect("a file");
    write("stuck.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 8 2 0 7\n");
    write("code.vef", "VEF3 2 0 1 1 2 0 1000\nC0 0 1\nG0 C0 99 0 0 0 0 1 -1\nG0 C0 99 1 0 0 0 1 -1\n");
    let all = [
        ("convert code.vef out.vefx", "code.vef:3: operation code 99 is not in the table"),
        ("timeline stuck.vef -o out.json --format json", "out.json: was there before and stays"),
        ("report stuck.vef -o out.html", "stuck"),
        ("mix -i stuck.vef -o out.vef", "stuck.vef"),
    ];
    for (words, says) in all {
        let output = words.split(' ').find(|word| word.starts_with("out.")).expect("an output");
        write(output, "VEF3 older");
        let said = run(vef().current_dir(work).args(words.split(' '))).exited(2).stderr();
        assert!(said.contains(says), "{words}: {said}");
        assert_eq!(std::fs::read(work.join(output)).expect("a file"), b"VEF3 older", "{words}");
    }
    // A part of a timeline is better than nothing.
    std::fs::remove_file(work.join("out.json")).expect("a file");
    let timeline = ["timeline", "stuck.vef", "-o", "out.json", "--format", "json"];
    run(vef().current_dir(work).args(timeline)).exited(2);
    assert!(work.join("out.json").exists());
}

#[test]
fn an_option_without_effect_is_refused() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    std::fs::write(work.join("t.vef"), TRACE).expect("a trace");
    let sim = run(vef().current_dir(work).args(["sim", "t.vef", "--json"])).success().stdout();
    std::fs::write(work.join("sim.json"), sim).expect("a result");
    let capture = vef_tests::root().join("cli/demo/capture").display().to_string();
    let refused = |words: &[&str], options: &[&str], says: &str| {
        for option in options {
            let words = words.iter().copied().chain(option.split(' '));
            let ended = run(vef().current_dir(work).args(words)).exited(2);
            assert!(ended.stderr().contains(says), "{}", ended.stderr());
        }
    };
    let of_a_replay = ["--latency 2us", "--bandwidth 1Gbit/s", "--op-codes codes"];
    for input in [capture.as_str(), "sim.json"] {
        refused(&["timeline", input, "-o", "out"], &of_a_replay, &format!("{input} has its own times"));
        refused(&["timeline", input, "-o", "out"], &["--phase solve"], "error: --phase is for traces");
        refused(&["timeline", input, "-o", "out"], &["--iterations"], "error: --iterations is for traces");
    }
    refused(&["report", "t.vef", "--no-replay"], &of_a_replay[..2], "cannot be used with");
    refused(&["stats", "t.vef", "--top", "3"], &["--json", "--csv ranks"], "cannot be used with");
    refused(&["place", "--nodes", "2", "-n", "2"], &["--seed 7"], "--optimise <TRACE>");
    let check = ["bench", "check", "--calibration", "c.toml"];
    refused(
        &[&check[..], &["rows.json"]].concat(),
        &["--op bcast", "--sizes 8", "-n 2"],
        "cannot be used with",
    );
    refused(&[&check[..], &["--op", "bcast"]].concat(), &["--limit 5"], "cannot be used with");
    assert_eq!(files(work), ["sim.json", "t.vef"]);
}

/// A trace of four ranks, `t.vefx`, and the result of its simulation, `sim.json`.
fn halo(work: &Path) {
    let gen_halo = ["gen", "halo2d", "-n", "4", "--iterations", "12", "-o", "t.vefx"];
    run(vef().current_dir(work).args(gen_halo)).success();
    let result = run(vef().current_dir(work).args(["sim", "t.vefx", "--json"])).success().stdout();
    std::fs::write(work.join("sim.json"), result).expect("a result");
}

#[test]
fn a_name_that_promises_another_kind_of_file_is_refused() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    halo(work);
    for (words, says) in [
        ("report t.vefx -o out.pdf", "--pdf FILE prints it"),
        ("report t.vefx -o out.png", "--svg DIR writes its figures"),
        ("sim t.vefx --draw out.png", "--draw writes SVG"),
        ("sim t.vefx --report out.pdf", "--report writes an HTML page"),
        ("timeline t.vefx -o out.html", "a timeline is a .pftrace"),
        ("place -n 2 --nodes 2 --slots 1 -o out.svg", "a placement file is .toml"),
        ("convert t.vefx out.html", "a trace is .vefx"),
        ("sim t.vefx --timeline out.svg", "a timeline is a .pftrace"),
        ("report t.vefx --pdf out.html", "--pdf writes a PDF file"),
        // Misspelt, of any command.
        ("convert t.vefx out.vexf", "did you mean vefx? a trace is .vefx"),
        ("gen ring -n 2 -o out.VEFF", "did you mean vef"),
        ("timeline t.vefx -o out.pftrac", "did you mean pftrace? a timeline"),
        ("report t.vefx -o out.hmtl", "did you mean html? a report"),
        ("sim t.vefx --draw out.sgv", "did you mean svg? --draw"),
        ("export --to goal t.vefx -o out.gaol", "did you mean goal?"),
        ("place -n 2 --nodes 2 --slots 1 -o out.tmol", "did you mean toml?"),
        ("bench coll -o out.jsn", "did you mean json?"),
    ] {
        let refused = run(vef().current_dir(work).args(words.split(' '))).exited(2).stderr();
        assert!(refused.contains(says), "{words}: {refused}");
    }
    assert_eq!(files(work), ["sim.json", "t.vefx"]);
    // Or the name says what is written.
    for (words, begins) in
        [("report t.vefx -o r.json", "{"), ("timeline t.vefx -o t.json", "{"), ("report t.vefx -o r.md", "#")]
    {
        run(vef().current_dir(work).args(words.split(' '))).success();
        let output = words.rsplit(' ').next().expect("an output");
        let text = std::fs::read_to_string(work.join(output)).expect("text");
        assert!(text.starts_with(begins), "{words}");
    }
}

#[test]
fn a_slip_is_told_with_the_remedy() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    halo(work);
    let program = vef().get_program().to_string_lossy().into_owned();
    for (words, says) in [
        ("sim t.vefx --latency -1us", "invalid value '-1us' for '--latency': must not be negative"),
        ("sim t.vefx --latency=-1us", "must not be negative"),
        ("sim t.vefx --bandwidth 0", "must be greater than zero"),
        ("sim --iterations 2-4 t.vefx", "write --iterations=2-4"),
        ("sim t.vefx --iterations=2-99", "iterations 2-99: the main loop has only 1"),
        ("sim t.vefx --sweep toplogy=torus:4", "no option is called --toplogy; did you mean --topology?"),
        ("sim sim.json", "the result of a command (vef-sim/2), not a trace"),
        (&format!("check {program}"), "not a VEF trace, but a program: capture it with vef run"),
        ("traffic", "--topology: name the network"),
        ("sim t.vefx --timeline t.pftrace -o out", "-o: no effect without --sweep"),
        ("sim t.vefx --routing par:x", "'--routing <R>': write par[:BYTES]"),
        ("run -n 2 -- ./none --help", "./none: no such program"),
        (
            "run --rma hardware -n 2 ./app",
            "--rma: an option of vef mix, not of vef run: capture without --mix, then vef mix DIR --rma … -o OUT",
        ),
        (
            "run --mix t2.vefx --io-servers=2 -n 2 ./app",
            "--io-servers=2: an option of vef mix, not of vef run",
        ),
        ("run -j4 -n 2 ./app", "-j4: an option of vef mix, not of vef run"),
        ("run --onlyphase=a -n 2 ./app", "--onlyphase=a: no option of vef run; did you mean --only-phase?"),
        ("smi t.vefx", "unrecognized subcommand 'smi'; a similar subcommand exists: 'sim'"),
        ("export --to Goal t.vefx -o t.goal", "a similar value exists: 'goal'"),
        ("traffic --topology torus:4 --load 0.5:0.1:0.1", "FROM:TO:STEP goes up, but 0.5 is more than 0.1"),
    ] {
        let refused = run(vef().current_dir(work).args(words.split(' '))).exited(2).stderr();
        assert!(refused.contains(says), "{words}: {refused}");
    }
}

/// `q.foo` was a page, `h.foo` a timeline, and `h.json` with --format perfetto was one that no viewer opened.
#[test]
fn a_suffix_says_what_is_written() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    halo(work);
    std::fs::write(work.join("there"), "").expect("a file");
    for (words, says) in [
        ("timeline t.vefx -o h.png", "a timeline is a .pftrace"),
        ("timeline t.vefx --format perfetto -o h.json", "--format perfetto writes a .pftrace"),
        ("timeline t.vefx --format json -o h.pftrace", "--format json writes a .json"),
        ("report t.vefx -o q.png", "a report is an HTML page"),
        ("report t.vefx --format json -o q.md", "--format writes JSON"),
        ("export t.vefx --to goal -o q.png", "--to goal writes another kind of file"),
        ("sim t.vefx --draw q.png", "--draw writes SVG"),
        ("sim t.vefx --tune barrier --tuned there", "a file of this name exists, and it must be a directory"),
    ] {
        let refused = run(vef().current_dir(work).args(words.split(' '))).exited(2).stderr();
        assert!(refused.contains(says), "{words}: {refused}");
    }
    for words in [
        "timeline t.vefx -o run.2",
        "export t.vefx --to goal -o q.goal",
        // As mktemp makes it.
        "export t.vefx --to ti -o tmp.qWeRtYuIoP",
        "export t.vefx --to ti -o q.trace",
        "report t.vefx --format md -o q.md",
    ] {
        run(vef().current_dir(work).args(words.split(' '))).success();
    }
    let tuned =
        run(vef().current_dir(work).args("sim t.vefx --tune barrier --tuned rules".split(' '))).success();
    assert!(tuned.stderr().contains("rules/openmpi.rules, rules/nccl.csv written"), "{}", tuned.stderr());
}

#[test]
fn traffic_says_where_turns_are_unfair() {
    let said = |words: &str| run(vef().args(words.split(' '))).success().stderr();
    let ring = "traffic --topology torus:8 --pattern tornado --model packet --load 0.5,1";
    let unfair = said(ring);
    assert!(unfair.contains("at load 1 the worst node sends 33 % of the mean"), "{unfair}");
    assert!(unfair.contains("--arbiter age") && unfair.contains("--channel-classes hops"), "{unfair}");
    for words in [
        &*format!("{ring} --arbiter age"),
        &format!("{ring} --channel-classes hops"),
        "traffic --topology switch:8 --model packet --load 1",
    ] {
        assert_eq!(said(words), "", "{words}");
    }
}

#[test]
fn a_part_is_named_wherever_it_is_shown() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    halo(work);
    let says = |words: &str| {
        let ended = run(vef().current_dir(work).args(words.split(' '))).success();
        ended.stdout()
    };
    let part = "only iterations 3 to 5 of ";
    for words in [
        "stats t.vefx --iterations=3-5",
        "check t.vefx --iterations=3-5",
        "report t.vefx --iterations=3-5 --format md",
        "sim t.vefx --iterations=3-5",
        "sim t.vefx --iterations=3-5 --sweep bandwidth=1G,10G",
    ] {
        assert!(says(words).contains(part), "{words}: {}", says(words));
    }
    says("report t.vefx --iterations=3-5 -o page.html");
    let page = std::fs::read_to_string(work.join("page.html")).expect("a page");
    assert!(page.contains(part), "the page says which part it is of");
    assert!(says("sim t.vefx --iterations=3-5").contains(" for each of 3"));
}

#[test]
fn a_placement_of_another_trace_is_warned_of() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    halo(work);
    run(vef().current_dir(work).args("place -n 6 --nodes 6 --slots 1 -o six.toml".split(' '))).success();
    let sim = "sim t.vefx --topology torus:4x4 --placement six.toml";
    let told = run(vef().current_dir(work).args(sim.split(' '))).success().stderr();
    assert!(told.contains("the placement is of 6 ranks, but t.vefx has 4"), "{told}");
}

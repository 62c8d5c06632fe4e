//! `vef run` as people use it: wrappers, application files, scripts, several programs, and each of its options on a real run.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vef_format::capture::event::{Action, Event};
use vef_format::capture::{Capture, CaptureError, Digest, Ending};
use vef_format::ids::Rank;
use vef_tests::{Ended, Mpi, Wheel, products, run, vef};

/// `tests/c/phases.c`, compiled, and a directory for its captures.
fn prepare(mpi: Mpi) -> (tempfile::TempDir, PathBuf) {
    let work = tempfile::tempdir().expect("a directory");
    let program = mpi.compile(work.path(), "phases", &["tests/c/phases.c"]);
    (work, program)
}

/// `vef run OPTIONS -o DIR -- LINE`.
fn vef_run(work: &Path, options: &[&str], line: &[&str]) -> (Ended, PathBuf) {
    let (ended, capture) = vef_ran(work, options, line);
    (ended.success(), capture)
}

/// The same, however it ends.
fn vef_ran(work: &Path, options: &[&str], line: &[&str]) -> (Ended, PathBuf) {
    let capture = work.join(format!("capture{}", std::fs::read_dir(work).expect("there").count()));
    let mut command = vef();
    command.current_dir(work).arg("run").args(options).arg("-o").arg(&capture).arg("--").args(line);
    (run(&mut command), capture)
}

fn digest(capture: &Path) -> Digest {
    Digest::of(&Capture::open(capture).expect("a capture"), |_| {}).expect("readable")
}

/// What one run of the program on 2 ranks leaves when all of it is recorded.
const MESSAGES: u64 = 12;
const COLLECTIVES: u64 = 12;

fn is_whole(capture: &Path) {
    let digest = digest(capture);
    assert_eq!((digest.tasks, digest.messages, digest.collectives), (2, MESSAGES, COLLECTIVES));
    assert!(digest.stopped.is_empty() && digest.unfinished.is_empty());
}

#[test]
fn however_the_ranks_are_started() {
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let program = program.to_str().expect("a path");
        let script = work.path().join("wrapper.sh");
        std::fs::write(&script, "#!/bin/sh\ncd / && exec \"$@\"\n").expect("a script");
        let job = work.path().join("job.sh");
        std::fs::write(&job, format!("#!/bin/sh\n{} -n 2 {program}\n", mpi.launcher().join(" ")))
            .expect("a script");
        run(Command::new("chmod").arg("+x").arg(&script).arg(&job)).success();
        let file = work.path().join("programs");
        std::fs::write(&file, format!("-n 1 {program}\n-n 1 {program}\n")).expect("an application file");
        let file = file.to_str().expect("a path");
        let script = script.to_str().expect("a path");
        let launcher = mpi.launcher();
        let file_option = if mpi == Mpi::Mpich { "-configfile" } else { "--app" };

        // The launcher by option, ranks wrapped once and twice.
        for wrapped in [&[program][..], &["env", "A=1", program], &[script, "nice", program]] {
            let options = ["-n", "2", "--mpirun", &launcher.join(" ")];
            is_whole(&vef_run(work.path(), &options, wrapped).1);
        }
        // The launcher in the line, wrapped itself; two programs; a file of programs.
        let lines: [&[&str]; 3] = [
            &["-n", "2", program],
            &["-n", "1", program, ":", "-n", "1", "env", program],
            &[file_option, file],
        ];
        for rest in lines {
            let line: Vec<&str> = ["env", "A=1"].iter().chain(launcher).chain(rest).copied().collect();
            is_whole(&vef_run(work.path(), &[], &line).1);
            is_whole(&vef_run(work.path(), &[], &line[2..]).1);
        }
        // A script that calls the launcher.
        is_whole(&vef_run(work.path(), &["--script"], &[job.to_str().expect("a path")]).1);
    }
}

/// All actions of a rank, and how they end.
fn actions(capture: &Path, rank: u32) -> (Vec<String>, Ending) {
    let capture = Capture::open(capture).expect("a capture");
    let mut events = capture.events(Rank(rank)).expect("its events");
    let mut list = Vec::new();
    let tell = |event: &Event<'_>| {
        list.push(match &event.action {
            Action::Phase { begin, name } => format!("{name} {begin}"),
            other => format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
        });
        Ok::<_, CaptureError>(())
    };
    events.each(tell).expect("readable");
    (list, events.ending())
}

#[test]
fn one_phase_alone() {
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let options = ["-n", "2", "--mpirun", &mpi.launcher().join(" "), "--only-phase", "solve"];
        let (_, capture) = vef_run(work.path(), &options, &[program.to_str().expect("a path")]);
        let (list, ending) = actions(&capture, 0);
        assert_eq!(ending, Ending::Finished);
        let count = |what: &str| list.iter().filter(|action| *action == what).count();
        // Two messages a round are sent in it; the collectives and the phase around it are not.
        assert_eq!((count("solve true"), count("solve false"), count("Send")), (3, 3, 6), "{list:?}");
        assert_eq!((count("Collective"), count("setup true"), count("inner true")), (0, 0, 3), "{list:?}");
        // What was begun in it and completed after it is whole: the trace needs no leniency.
        let trace = work.path().join("out.vef");
        run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
        let (ended, none) = vef_ran(
            work.path(),
            &["-n", "2", "--mpirun", &mpi.launcher().join(" "), "--only-phase", "nothing"],
            &[program.to_str().expect("a path")],
        );
        let said = ended.exited(2).stderr();
        assert!(
            said.contains("warning: nothing was recorded: no recorded rank entered a phase \"nothing\""),
            "{said}"
        );
        assert_eq!(digest(&none).messages, 0);
    }
    // A capture has no room for the name.
    let refused =
        run(vef().args(["run", "-n", "2", "--only-phase", &"p".repeat(1001), "--", "true"])).exited(2);
    assert!(
        refused.stderr().contains("a name of 1001 bytes: a capture has room for 1000"),
        "{}",
        refused.stderr()
    );
}

#[test]
fn some_ranks_alone() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let (work, program) = prepare(mpi);
    let options = ["-n", "2", "--mpirun", &mpi.launcher().join(" "), "--only-ranks", "1-7"];
    let (ended, capture) = vef_run(work.path(), &options, &[program.to_str().expect("a path")]);
    assert!(ended.stderr().ends_with("; 1 of 2 ranks not recorded, as asked\n"), "{}", ended.stderr());
    assert_eq!(ended.stderr().lines().count(), 1, "{}", ended.stderr());
    assert!(!ended.stderr().contains("warning"), "{}", ended.stderr());
    let digest = digest(&capture);
    assert_eq!((digest.tasks, digest.messages, digest.unrecorded), (2, MESSAGES / 2, vec![Rank(0)]));
    assert!(digest.stopped.is_empty() && digest.unfinished.is_empty());
    // Means of containers and reports are those of the rank that was recorded.
    let container = work.path().join("one.vefx");
    let mixed = run(vef().arg("mix").arg(&capture).arg("-o").arg(&container)).success().stdout();
    assert!(mixed.contains("not in the trace: calls of 1 task not to be recorded"), "{mixed}");
    assert_eq!(mixed.matches("6 sends").count(), 1, "{mixed}");
    let report = run(vef().arg("stats").arg(&container).arg("--json")).success().stdout();
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let warning = "1 of 2 ranks not recorded: means and shares are those of the others";
    assert_eq!(report["head"]["warnings"][0], warning, "{report}");
    for spread in report["ranks"]["spread"].as_array().expect("measures") {
        assert_eq!(
            (&spread["min"]["rank"], &spread["max"]["rank"], &spread["variation"]),
            (&1.into(), &1.into(), &0.0.into())
        );
    }
    let page = work.path().join("one.json");
    run(vef().arg("report").arg(&container).arg("-o").arg(&page)).success();
    let page = std::fs::read_to_string(page).expect("a report");
    let page: serde_json::Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!(page["replayed"]["efficiency"]["load_balance"], 1.0, "{page}");
    // The texts are written, but their summary needs all ranks.
    let said = run(vef().arg("text").arg(&capture)).exited(2).stderr();
    assert!(said.contains("no summary: recording ended on 1 rank before the end of the run"), "{said}");
    assert!(capture.join("ti_traces/ti_trace1.txt").is_file());
    // One that does not exist.
    let options = ["-n", "2", "--mpirun", &mpi.launcher().join(" "), "--only-ranks", "7"];
    let (ended, _) = vef_ran(work.path(), &options, &[program.to_str().expect("a path")]);
    let ended = ended.exited(2);
    let warning = "warning: nothing was recorded: --only-ranks 7 has none of MPI_COMM_WORLD's 2";
    assert!(ended.stderr().contains(warning), "{}", ended.stderr());
    let trace = work.path().join("out.vef");
    run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace).arg("--lenient")).success();
}

#[test]
fn a_size_at_most() {
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let options = ["-n", "2", "--mpirun", &mpi.launcher().join(" "), "--max-size", "300K"];
        let (ended, capture) = vef_run(work.path(), &options, &[program.to_str().expect("a path"), "100000"]);
        let said = ended.stderr();
        assert!(said.contains("recording stopped on 2 ranks (the size limit is reached × 2)"), "{said}");
        assert_eq!(said.lines().filter(|line| line.starts_with("vef: tracing of rank")).count(), 2, "{said}");
        for rank in ["0.vefc", "1.vefc"] {
            let size = std::fs::metadata(capture.join(rank)).expect("a rank's file").len();
            assert!(size <= 300 << 10, "{size}");
        }
        run(vef().args(["mix", "--lenient", "-i"]).arg(&capture).arg("-o").arg(work.path().join("out.vef")))
            .success();
        let wrong = run(vef().args(["run", "--max-size", "lots", "--", program.to_str().expect("a path")]));
        assert!(wrong.exited(2).stderr().contains("expected a decimal number"));
        let tight = run(vef().args(["run", "--max-size", "70K", "--", program.to_str().expect("a path")]));
        assert!(tight.exited(2).stderr().contains("must be at least 128K"));
        // A variable may also leave no room for a single record.
        let mut command = Command::new(mpi.launcher()[0]);
        command.args(&mpi.launcher()[1..]).args(["-n", "1"]).arg(&program).arg("10");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("LD_PRELOAD", products().join("libvef_interpose.so"));
        command.env("VEF_DIR", work.path().join("tiny")).env("VEF_MAX_SIZE", "100K");
        let said = run(&mut command).success().stderr();
        assert_eq!(said.matches("stopped: the size limit is reached").count(), 1, "{said}");
    }
}

/// Whose first call finds no room in the file for a window of its own.
#[test]
fn a_size_at_most_that_another_thread_reaches() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "stopped", &["tests/c/stopped_by_thread.c", "-lpthread"]);
        let options = ["-n", "2", "--mpirun", &mpi.launcher().join(" "), "--max-size", "150K"];
        let (ended, capture) = vef_run(work.path(), &options, &[program.to_str().expect("a path")]);
        assert!(ended.stdout().contains("fine"), "{}", ended.stdout());
        let said = ended.stderr();
        assert!(said.contains("recording stopped on 2 ranks (the size limit is reached × 2)"), "{said}");
        run(vef().args(["mix", "--lenient", "-i"]).arg(&capture).arg("-o").arg(work.path().join("out.vef")))
            .success();
    }
}

/// AddressSanitizer ends a program in which another library was loaded before its own.
#[test]
fn a_program_with_a_sanitizer() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["-fsanitize=address", "-g", "tests/c/spine.c"]);
        let mut command = vef();
        // MPIs do not free all that they allocate.
        command.env("ASAN_OPTIONS", "detect_leaks=0").current_dir(work.path());
        command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o", "capture", "--"]);
        let ended = run(command.arg(program)).success();
        assert!(ended.stderr().contains("captured in"), "{}", ended.stderr());
        assert!(digest(&work.path().join("capture")).messages > 0);
    }
}

#[test]
fn a_number_of_calls_or_a_time() {
    let Some(mpi) = Mpi::installed().into_iter().next() else { return };
    let (work, program) = prepare(mpi);
    let launcher = mpi.launcher().join(" ");
    let recorded = |arguments: &[&str]| {
        let options = [&["-n", "2", "--mpirun", &launcher], arguments].concat();
        let (ended, capture) = vef_run(work.path(), &options, &[program.to_str().expect("a path"), "100000"]);
        let said = ended.stderr();
        run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(work.path().join("out.vef"))).success();
        let calls = digest(&capture).total_calls();
        std::fs::remove_dir_all(capture).expect("removed");
        (said, calls)
    };
    let (said, all) = recorded(&[]);
    assert!(!said.contains("stopped"), "{said}");
    // Each of the two ranks makes at most as many calls more as 64 KiB have words.
    let (said, calls) = recorded(&["--stop-after", "30000"]);
    assert!(
        said.contains("recording stopped on 2 ranks, as asked") && !said.contains("tracing of"),
        "{said}"
    );
    assert!((60_000..2 * (30_000 + 8192)).contains(&calls) && calls < all / 2, "{calls} of {all}");
    let (said, calls) = recorded(&["--stop-after", "1ns"]);
    assert!(said.contains("as asked") && calls < all / 2, "{said} {calls} of {all}");
    for wrong in ["0", "-1", "5 calls", "1ps"] {
        run(vef().args(["run", &format!("--stop-after={wrong}"), "-n", "2", "--", "true"])).exited(2);
    }
}

/// The loader divides `LD_PRELOAD` at blanks and colons.
#[test]
fn a_library_in_a_directory_with_a_blank_or_colon() {
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let program = program.to_str().expect("a path");
        let job = work.path().join("job.sh");
        std::fs::write(&job, format!("{} -n 2 {program}\n", mpi.launcher().join(" "))).expect("a script");
        let job = job.to_str().expect("a path");
        let launcher = mpi.launcher().join(" ");
        let started = |directory: &str, words: &[&str]| {
            let library = work.path().join(directory).join("libvef_interpose.so");
            std::fs::create_dir_all(library.parent().expect("a directory")).expect("created");
            std::fs::copy(products().join("libvef_interpose.so"), &library).expect("a copy");
            let capture = work.path().join(format!("capture in {directory}"));
            let mut command = vef();
            command
                .current_dir(work.path())
                .env("VEF_INTERPOSE", &library)
                .arg("run")
                .arg("-o")
                .arg(&capture);
            let ended = run(command.args(words));
            let _ = std::fs::remove_file(&library);
            (ended, capture)
        };
        for (directory, words) in [
            ("pre fix", &["-n", "2", "--mpirun", &launcher, "--", program][..]),
            ("a script's", &["--script", "--", "sh", job]),
        ] {
            let (ended, capture) = started(directory, words);
            is_whole(&capture);
            assert!(!ended.success().stderr().contains("ld.so"));
        }
        let (ended, capture) = started("pre:fix", &["-n", "2", "--mpirun", &launcher, "--", program]);
        let said = ended.exited(2).stderr();
        assert!(said.contains("pre:fix/libvef_interpose.so: the loader cannot preload it"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!capture.exists());
    }
}

#[test]
fn a_program_that_leaves_no_capture() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let launcher = mpi.launcher().join(" ");
    for (there, code, expected) in [(false, "0", 2), (true, "0", 2), (false, "5", 5)] {
        let capture = work.path().join("capture");
        if there {
            std::fs::create_dir(&capture).expect("created");
        }
        let mut command = vef();
        command
            .current_dir(work.path())
            .args(["run", "-n", "1", "--mpirun", &launcher, "-o", "capture", "--"]);
        let said = run(command.args(["sh", "-c", "exit $0", code])).exited(expected).stderr();
        assert!(said.contains("nothing was captured"), "{said}");
        assert_eq!(capture.exists(), there, "only a directory of its own is removed");
        let _ = std::fs::remove_dir(&capture);
    }
}

#[test]
fn two_runs_do_not_share_a_directory() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let mut first = running(work.path(), false, mpi, "until [ -e stop ]; do sleep 0.05; done");
    let mut second = vef();
    second.current_dir(work.path()).args(["run", "-o", "capture", "--"]).args(mpi.launcher());
    let said = run(second.args(["-n", "1", "touch", "second"])).exited(2).stderr();
    assert!(said.contains("capture: another vef run writes its capture here"), "{said}");
    assert!(!work.path().join("second").exists(), "the program was started");
    std::fs::write(work.path().join("stop"), "").expect("written");
    eventually("the first ends", || first.try_wait().expect("a child").is_some());
}

#[test]
fn spawned_worlds_are_tasks_of_the_capture() {
    let mpis = Mpi::with(&[Wheel::OpenMpi5, Wheel::Mpich5]);
    // Debian's MPICH cannot spawn.
    for mpi in mpis.into_iter().filter(|mpi| !matches!(mpi, Mpi::Mpich | Mpi::Wheel(Wheel::Intel))) {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "worlds", &["tests/c/worlds.c"]);
        let options = ["-n", "2", "--oversubscribe", "--compress", "--mpirun", &mpi.launcher().join(" ")];
        // MPICH's children do not know in which world they are. MPICH 5.0 does not end where worlds meet again.
        let is_mpich = matches!(mpi, Mpi::Wheel(Wheel::Mpich5 | Wheel::StandardAbi));
        let command = [program.to_str().expect("a path"), "only"];
        let (ended, capture) = vef_run(work.path(), &options, &command[..if is_mpich { 2 } else { 1 }]);
        let (said, printed) = (ended.stderr(), ended.stdout());
        let trace = work.path().join("worlds.vefx");
        let mix = || run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
        let counted = digest(&capture);
        if is_mpich {
            let unknown = said.matches("it was spawned, and the number of its world is unknown").count();
            assert_eq!((unknown, counted.tasks), (4, 2), "{said}");
            let mixed = mix();
            let said = mixed.stdout() + &mixed.stderr();
            assert!(said.contains("not in the trace: 2 × MPI_Comm_spawn"), "{mpi:?}: {said}");
            continue;
        }
        // Each process says what it sent: two that were launched, two of the second world, one of the third, and twice two.
        let sent: Vec<[u64; 2]> = printed
            .lines()
            .filter_map(|line| line.strip_prefix("sent "))
            .map(|line| {
                let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
                numbers.try_into().expect("two")
            })
            .collect();
        let sum = |at: usize| sent.iter().map(|sent| sent[at]).sum::<u64>();
        assert_eq!(sent.len(), 9, "{mpi:?}: {printed}");
        assert_eq!((counted.tasks, counted.messages, counted.bytes.0), (9, sum(0), sum(1)), "{mpi:?}");
        assert!(counted.not_representable.is_empty(), "{mpi:?}: {:?}", counted.not_representable);
        assert!(said.contains("tasks 2 to 8 were spawned by the program"), "{mpi:?}: {said}");
        mix();
        let checked = run(vef().arg("check").arg(&trace)).success().stdout();
        assert!(checked.ends_with("complete: every record replays\n"), "{mpi:?}: {checked}");
        // Reports name the four spawned worlds.
        let stats = run(vef().arg("stats").arg(&trace)).success().stdout();
        let named: Vec<&str> =
            stats.lines().filter_map(|line| line.strip_prefix("  spawned by the program: ")).collect();
        assert_eq!((named.len(), named.first()), (4, Some(&"tasks 2–3 (spawned-1)")), "{mpi:?}: {stats}");
        // Each of two that spawn at the same time has its own children.
        let text = work.path().join("worlds.vef");
        run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&text)).success();
        let text = std::fs::read_to_string(&text).expect("a trace");
        let echoed: BTreeSet<[&str; 3]> = text
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .filter(|fields| fields.get(3).is_some_and(|bytes| ["30", "31"].contains(bytes)))
            .map(|fields| [fields[1], fields[2], fields[3]])
            .collect();
        assert_eq!(echoed.len(), 4, "{mpi:?}: {echoed:?}");
        assert!(
            echoed.iter().all(|&[from, to, bytes]| echoed.contains(&[to, from, bytes])),
            "{mpi:?}: {echoed:?}"
        );
        let told = ["0 30", "1 31"]
            .map(|told| echoed.iter().filter(|[from, _, bytes]| format!("{from} {bytes}") == told).count());
        assert_eq!(told, [1, 1], "{mpi:?}: {echoed:?}");
        // A world that no call of the run has spawned is left out.
        std::fs::rename(capture.join("spawned-2"), capture.join("spawned-7")).expect("moved");
        assert_eq!(digest(&capture).tasks, 9, "{mpi:?}: the number does not matter");
        std::fs::remove_dir_all(capture.join("spawned-7")).expect("removed");
        let left = digest(&capture);
        assert_eq!((left.tasks, left.not_representable["MPI_Comm_spawn"].calls), (8, 4), "{mpi:?}");
    }
}

#[test]
fn a_compressed_capture_mixes_as_the_plain_one() {
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let launcher = mpi.launcher().join(" ");
        let plain = work.path().join("plain.vef");
        let mix = plain.to_str().expect("a path");
        let options = ["-n", "2", "--mpirun", &launcher, "--compress", "--mix", mix];
        let (ended, capture) = vef_run(work.path(), &options, &[program.to_str().expect("a path")]);
        assert!(ended.stderr().contains("compressed from "), "{}", ended.stderr());
        let mut names: Vec<_> = std::fs::read_dir(&capture)
            .expect("there")
            .map(|entry| entry.expect("there").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["0.vefc.zst", "1.vefc.zst"]);
        is_whole(&capture);
        let again = work.path().join("again.vef");
        run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&again)).success();
        assert_eq!(std::fs::read(&plain).expect("a trace"), std::fs::read(&again).expect("a trace"));
        std::fs::write(capture.join("1.vefc.zst"), b"\x28\xb5\x2f\xfd no frame").expect("written");
        let failed = run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&again)).exited(2);
        assert!(failed.stderr().contains("1.vefc.zst"), "{}", failed.stderr());
    }
}

#[test]
fn programs_with_sessions_alone() {
    // Open MPI 4 has no sessions.
    let Some(mpi) = Mpi::installed().into_iter().find(|&mpi| mpi == Mpi::Mpich) else { return };
    let work = tempfile::tempdir().expect("a directory");
    let program = mpi.compile(work.path(), "sessions", &["tests/c/sessions.c"]);
    let program = program.to_str().expect("a path");
    let launcher = mpi.launcher().join(" ");
    let mut capture = PathBuf::new();
    for mode in ["quickly", "late", "plain"] {
        let name = work.path().join(mode);
        std::fs::create_dir(&name).expect("a directory");
        let (ended, of_mode) = vef_run(&name, &["-n", "3", "--mpirun", &launcher], &[program, mode]);
        assert!(ended.stdout().contains("sum 12"), "{mode}: {}", ended.stdout());
        let digest = digest(&of_mode);
        // Twice: a message of each rank, a sum of all and one of each half.
        assert_eq!((digest.tasks, digest.messages, digest.collectives), (3, 6, 12), "{mode}");
        assert!(digest.unfinished.is_empty() && digest.stopped.is_empty(), "{mode}");
        capture = of_mode;
    }
    let trace = work.path().join("sessions.vef");
    run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
    let checked = run(vef().arg("check").arg(&trace)).success().stdout();
    assert!(checked.contains("complete: every record replays"), "{checked}");
    // Tools wait for MPI_Init, and the program does not mind.
    let ended = run(vef()
        .current_dir(work.path())
        .args(["run", "-n", "2", "--mpirun", &launcher, "--tool", "profile", "--", program]));
    assert!(ended.success().stdout().contains("sum 2"));
}

#[test]
fn ranks_on_several_hosts() {
    let shell = vef_tests::root().join("tests/sh/other_host.sh");
    let shell = shell.to_str().expect("a path");
    if !run(Command::new(shell).args(["elsewhere", "hostname"])).stdout().starts_with("elsewhere") {
        return vef_tests::skipped("a process must not have a host name of its own here");
    }
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let launcher = if mpi == Mpi::Mpich {
            format!("mpiexec.mpich -launcher ssh -launcher-exec {shell} -hosts one,two")
        } else {
            format!("mpirun.openmpi --mca plm_rsh_agent {shell} -host one,two")
        };
        let options = ["-n", "2", "--mpirun", &launcher, "--max-size", "1G"];
        let (_, capture) = vef_run(work.path(), &options, &[program.to_str().expect("a path")]);
        is_whole(&capture);
        let files = Capture::open(&capture).expect("a capture");
        let hosts = [0, 1].map(|rank| files.rank(Rank(rank)).expect("a rank").host.clone());
        assert_eq!(hosts, ["one", "two"]);
        // Hosts' clocks are made one by their wall clocks, which here are the same.
        let mixed =
            run(vef().args(["mix", "--json", "-i"]).arg(&capture).arg("-o").arg(work.path().join("a.vef")));
        assert!(mixed.success().stdout().contains("\"early_receptions\": 0"), "clocks of two hosts");
    }
}

/// `vef run` of two ranks that are shells, in the background, once they are up.
fn running(work: &Path, nohup: bool, mpi: Mpi, script: &str) -> Child {
    let mut command = as_vef(Path::new(if nohup { "nohup" } else { "env" }));
    if !nohup {
        // Whoever runs the tests may be ignoring hangups.
        command.arg("--default-signal=HUP");
    }
    command.current_dir(work).arg(vef().get_program()).args(["run", "-o", "capture", "--"]);
    command.args(mpi.launcher()).args(["-n", "2", "sh", "-c", &format!("touch up.$$; {script}")]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.expect("env and nohup are everywhere");
    eventually("two ranks are up", || ups(work).len() == 2);
    child
}

/// `program` in the environment of [`vef`].
fn as_vef(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, value) in vef().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// The processes that made `up.PID`.
fn ups(work: &Path) -> Vec<String> {
    let names = std::fs::read_dir(work).expect("there").map(|entry| entry.expect("an entry").file_name());
    names.filter_map(|name| Some(name.to_str()?.strip_prefix("up.")?.to_owned())).collect()
}

fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.expect("kill is everywhere").success());
}

#[test]
fn a_request_to_end_reaches_all_ranks() {
    for mpi in Mpi::installed() {
        for name in ["TERM", "HUP"] {
            let work = tempfile::tempdir().expect("a directory");
            let mut child = running(work.path(), false, mpi, "exec sleep 300");
            signal(&child, name);
            // With what code is the launcher's affair.
            eventually("it ends", || child.try_wait().expect("a child").is_some());
            let gone = |pid: &String| !Path::new("/proc").join(pid).join("exe").exists();
            eventually("its ranks end", || ups(work.path()).iter().all(gone));
        }
    }
}

/// The launcher is killed while a rank can neither be asked to end nor does by itself.
#[test]
fn a_run_ends_with_its_launcher_whatever_its_ranks_do() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "strict", &["tests/c/strict.c"]);
        let mut command = vef();
        command
            .args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o", "capture", "--"])
            .arg(&program);
        let output = std::fs::File::create(work.path().join("said")).expect("a file");
        command.current_dir(work.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let mut child = command.spawn().expect("vef");
        eventually("two ranks are up", || ups(work.path()).len() == 2);
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let launcher = std::fs::read_to_string(children).expect("its children");
        let kill = |pid: &str| Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
        for pid in launcher.split_whitespace() {
            assert!(kill(pid).expect("kill is everywhere").success());
        }
        let mut code = None;
        eventually("it ends", || {
            code = child.try_wait().expect("a child");
            code.is_some()
        });
        for pid in ups(work.path()) {
            _ = kill(&pid);
        }
        let said = std::fs::read_to_string(work.path().join("said")).expect("what it said");
        assert!(!code.expect("ended").success(), "{mpi:?}: {said}");
        // What was recorded until then is there.
        assert_eq!(digest(&work.path().join("capture")).tasks, 2, "{mpi:?}: {said}");
    }
}

#[test]
fn a_hangup_that_is_ignored_ends_nothing() {
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let mut child = running(work.path(), true, mpi, &format!("sleep 1; exec {}", program.display()));
        signal(&child, "HUP");
        eventually("it ends", || child.try_wait().expect("a child").is_some());
        assert!(child.wait().expect("a child").success());
        is_whole(&work.path().join("capture"));
    }
}

#[test]
fn vmpirun_takes_the_launcher_of_the_program() {
    for mpi in Mpi::installed() {
        let (work, program) = prepare(mpi);
        let link = work.path().join("vmpirun");
        symlink(vef().get_program(), &link).expect("a link");
        let mut vmpirun = as_vef(&link);
        vmpirun.current_dir(work.path()).args(&mpi.launcher()[1..]).args(["-np", "2"]).arg(&program);
        run(&mut vmpirun).success();
        // Under the other MPI's launcher each rank would be a world of its own.
        is_whole(&work.path().join("vef-capture"));
    }
}

/// A prefix with `bin/vef` and this library in one of the directories in which packages have it.
fn packaged(prefix: &Path, library: &Path) {
    for (from, to) in [(products().join("vef"), "bin/vef"), (products().join("libvef_interpose.so"), "")] {
        let to = if to.is_empty() { library.to_path_buf() } else { prefix.join(to) };
        std::fs::create_dir_all(to.parent().expect("a directory")).expect("created");
        std::fs::hard_link(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(drop)).expect("a copy");
    }
}

#[test]
fn the_library_is_found_where_packages_have_it() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let (work, program) = prepare(mpi);
    let launcher = mpi.launcher().join(" ");
    let vef_of = |prefix: &Path| {
        let mut command = Command::new(prefix.join("bin/vef"));
        for (name, value) in vef().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env_remove("VEF_INTERPOSE").args(["run", "-n", "2", "--mpirun", &launcher, "-o"]);
        command
    };
    for place in ["lib/vef", "lib64/vef", "lib/x86_64-linux-gnu/vef", "lib"] {
        let prefix = work.path().join(place.replace('/', "-"));
        packaged(&prefix, &prefix.join(place).join("libvef_interpose.so"));
        let capture = prefix.join("capture");
        run(vef_of(&prefix).arg(&capture).arg("--").arg(&program)).success();
        is_whole(&capture);
    }
    let prefix = work.path().join("without");
    packaged(&prefix, &prefix.join("elsewhere.so"));
    let said = run(vef_of(&prefix).arg(prefix.join("capture")).arg("--").arg(&program)).exited(2).stderr();
    for place in ["bin", "lib/vef", "lib64/vef", "lib"] {
        let place = prefix.join(place).join("libvef_interpose.so");
        assert!(said.contains(place.to_str().expect("a path")), "{said}");
    }
    assert!(said.contains("VEF_INTERPOSE") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_library_of_another_version_is_refused() {
    let work = tempfile::tempdir().expect("a directory");
    let library = work.path().join("libvef_interpose.so");
    let mut content = std::fs::read(products().join("libvef_interpose.so")).expect("the library");
    let marker = b"vef_interpose_version=0.";
    let at = content.windows(marker.len()).position(|bytes| bytes == marker).expect("its version");
    content[at + marker.len() - 2] = b'9';
    for (content, says) in [(&content[..], "of vef 9."), (b"\x7fELF", "not the preload library of vef")] {
        std::fs::write(&library, content).expect("written");
        let mut command = vef();
        command.current_dir(work.path()).env("VEF_INTERPOSE", &library).args(["run", "-o", "capture", "--"]);
        let said = run(command.args(["mpirun", "true"])).exited(2).stderr();
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
        assert!(!work.path().join("capture").exists());
    }
}

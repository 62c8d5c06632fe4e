//! Programs at the edge of the standard and machines at the edge of their means: a run with the recorder behaves as one
//! without, what can be captured mixes, and what is lost is said, in one line a rank.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};
use vef_format::capture::Capture;
use vef_format::capture::layout::HEADER_SIZE;
use vef_format::ids::Rank;
use vef_tests::{Ended, Mpi, have, products, root, run, run_for, skipped, turn, vef};

/// `tests/c/faults.c`, compiled.
fn faults(mpi: Mpi, work: &Path) -> PathBuf {
    mpi.compile(work, "faults", &["tests/c/faults.c"])
}

/// The line that starts `program` on 2 ranks.
fn line(mpi: Mpi, program: &Path, arguments: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = mpi.launcher().iter().map(ToString::to_string).collect();
    words.extend(["-n".into(), "2".into(), program.display().to_string()]);
    words.extend(arguments.iter().map(ToString::to_string));
    words
}

fn plain(mpi: Mpi, program: &Path, arguments: &[&str]) -> Ended {
    let words = line(mpi, program, arguments);
    let mut command = Command::new(&words[0]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run(command.args(&words[1..]))
}

fn traced(mpi: Mpi, program: &Path, arguments: &[&str], capture: &Path) -> Ended {
    with_tools(mpi, program, arguments, capture, &[])
}

fn with_tools(mpi: Mpi, program: &Path, arguments: &[&str], capture: &Path, tools: &[&str]) -> Ended {
    let mut command = vef();
    command.arg("run").args(tools.iter().flat_map(|tool| ["--tool", tool]));
    command.arg("-o").arg(capture).arg("--").args(line(mpi, program, arguments));
    run(&mut command)
}

/// The lines in which the recorder, not `vef run`, says that something is lost.
fn complaints(ended: &Ended) -> Vec<String> {
    let of_recorder = |line: &&str| line.starts_with("vef: ") && !line.starts_with("vef: captured in");
    ended.stderr().lines().filter(of_recorder).map(str::to_owned).collect()
}

/// Mixes a capture and replays the trace; gives the text of both.
fn mixes(capture: &Path, options: &[&str]) -> String {
    let trace = capture.with_extension("vef");
    let mixed = run(vef().arg("mix").args(options).arg("-i").arg(capture).arg("-o").arg(&trace)).success();
    let checked = run(vef().arg("check").arg(&trace)).success().stdout();
    assert!(checked.contains("complete: every record replays"), "{checked}");
    mixed.stdout() + &checked
}

/// The program prints and ends the same with and without the recorder. A launcher whose ranks leave without goodbye may lose
/// the end of what they printed, and may end with 0 or 1, either time.
fn says_the_same(mode: &str, with: &Ended, without: &Ended) {
    let codes = [with, without].map(|ended| ended.output.status.code());
    assert!(codes[0] == codes[1] || mode == "exit", "{mode}: {codes:?}");
    let (with, without) = (with.stdout(), without.stdout());
    let (with, without) = (with.trim_end(), without.trim_end());
    match mode {
        "exit" | "abort" => {
            assert!(with.starts_with(without) || without.starts_with(with), "{mode}: {with}\n{without}");
        }
        _ => assert_eq!(with, without, "{mode}"),
    }
}

#[test]
fn the_program_does_not_notice() {
    let many = std::env::var("VEF_REQUESTS").unwrap_or_else(|_| "20000".into());
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = faults(mpi, work.path());
        for arguments in [&["edges"][..], &["many", &many], &["fork"], &["exit"], &["threads"]] {
            let capture = work.path().join(arguments[0]);
            let (without, with) =
                (plain(mpi, &program, arguments), traced(mpi, &program, arguments, &capture));
            says_the_same(arguments[0], &with, &without);
            assert_eq!(complaints(&with), [""; 0], "{arguments:?}");
            let said = mixes(&capture, &[]);
            assert_eq!(said.contains("without MPI_Finalize"), arguments[0] == "exit", "{said}");
        }
    }
}

#[test]
fn nor_does_it_notice_a_chain_of_tools() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = faults(mpi, work.path());
        for mode in ["edges", "fork", "exit", "threads", "abort"] {
            let capture = work.path().join(mode);
            let without = plain(mpi, &program, &[mode]);
            let tools = ["profile", "text", "capture", "profile"];
            let with = with_tools(mpi, &program, &[mode], &capture, &tools);
            says_the_same(mode, &with, &without);
            // The last records of ranks that were aborted have no other half.
            let options: &[&str] = if mode == "abort" { &["--lenient"] } else { &[] };
            let said = mixes(&capture, options);
            assert!(
                said.contains(if mode == "threads" { "2 400 messages matched" } else { "matched" }),
                "{said}"
            );
        }
    }
}

/// A run under way, in its turn.
struct Started(Child, #[expect(dead_code, reason = "held until the run is over")] MutexGuard<'static, ()>);

/// Starts a run under the recorder that goes on until there is a file `until`; returns when both ranks record.
fn start_long(mpi: Mpi, program: &Path, until: &Path, capture: &Path) -> Started {
    let turn = turn();
    let until = until.display().to_string();
    let mut command = vef();
    command.args(["run", "-o"]).arg(capture).arg("--").args(line(mpi, program, &["long", &until]));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("vef run");
    let begun = Instant::now();
    // A rank that records has a window behind its header, from its first record on.
    let records =
        |rank: &str| std::fs::metadata(capture.join(rank)).is_ok_and(|file| file.len() > HEADER_SIZE as u64);
    while !(records("0.vefc") && records("1.vefc")) {
        assert!(begun.elapsed() < Duration::from_secs(100), "no capture came");
        std::thread::sleep(Duration::from_millis(3));
    }
    Started(child, turn)
}

/// Ends with the run, killed or not; its exit code and stderr.
fn ended(run: Started) -> (Option<i32>, String) {
    let output = run.0.wait_with_output().expect("the run ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn end(run: Started) -> String {
    ended(run).1
}

/// `VEF_KILLS` says how often; the figure that counts is 100.
#[test]
fn a_rank_killed_at_any_instant_leaves_a_capture_that_mixes() {
    let kills: u32 = std::env::var("VEF_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(4);
    let mpis = Mpi::installed();
    let work = tempfile::tempdir().expect("a directory");
    let programs: Vec<PathBuf> = mpis.iter().map(|&mpi| faults(mpi, work.path())).collect();
    let mut seed = std::process::id() | 1;
    for (kill, (&mpi, program)) in (0..kills).zip(mpis.iter().zip(&programs).cycle()) {
        let capture = work.path().join(format!("{kill}"));
        let long = start_long(mpi, program, Path::new("/never"), &capture);
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (victim, micros) = ((seed >> 31), u64::from(seed >> 12) % 300_000);
        let pid = Capture::open(&capture).expect("a capture").rank(Rank(victim)).expect("a rank").pid;
        std::thread::sleep(Duration::from_micros(micros));
        run(Command::new("kill").args(["-9", &pid.to_string()])).success();
        let said = end(long);
        assert!(said.contains("ended without MPI_Finalize"), "{said}");
        let mixed = mixes(&capture, &["--lenient"]);
        assert!(mixed.contains("without MPI_Finalize"), "{mixed}");
        std::fs::remove_dir_all(&capture).expect("its capture");
    }
}

#[test]
fn a_directory_that_disappears_is_told_at_the_end() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let program = faults(mpi, work.path());
    let capture = work.path().join("capture");
    let stop = work.path().join("stop");
    let long = start_long(mpi, &program, &stop, &capture);
    std::fs::remove_dir_all(&capture).expect("the capture");
    std::fs::write(&stop, "").expect("a file");
    let said = end(long);
    assert_eq!(said.matches("vef: the capture of rank ").count(), 2, "{said}");
    assert!(said.contains("nothing is left of the capture"), "{said}");
}

#[test]
fn a_run_that_is_asked_to_end_leaves_no_rank_behind_and_tells() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = faults(mpi, work.path());
        let capture = work.path().join("capture");
        let long = start_long(mpi, &program, Path::new("/never"), &capture);
        let ranks = Capture::open(&capture).expect("a capture");
        let ranks = [0, 1].map(|rank| ranks.rank(Rank(rank)).expect("a rank").pid);
        run(Command::new("kill").args(["-TERM", &long.0.id().to_string()])).success();
        let said = end(long);
        assert!(said.contains("vef: captured in ") && said.contains("ended without MPI_Finalize"), "{said}");
        for rank in ranks {
            let ended = !Path::new(&format!("/proc/{rank}/exe")).exists();
            assert!(ended, "rank {rank} runs on");
        }
    }
}

/// Runs the program with and without the recorder: it behaves the same, whatever it does to the recorder's file. With many calls the
/// recording stops for a reason, in one line a rank; with few nothing is lost.
fn stops_alone(mpi: Mpi, mode: &str, more: &[&str], reason: &str) {
    let work = tempfile::tempdir().expect("a directory");
    let program = faults(mpi, work.path());
    let run = |calls: &str| {
        let arguments = [&[mode, calls], more].concat();
        let capture = work.path().join(calls);
        let without = plain(mpi, &program, &arguments).success();
        let with = traced(mpi, &program, &arguments, &capture).success();
        assert_eq!(with.stdout(), without.stdout(), "{mpi:?} {arguments:?}: {}", with.stderr());
        (with, capture)
    };
    let (ended, capture) = run("120000");
    assert!(ended.stdout().contains("many 60000 60000"), "{}", ended.stdout());
    let said = complaints(&ended);
    assert_eq!(said.len(), 2, "one line a rank: {said:?}");
    assert!(said.iter().all(|line| line.contains(reason)), "{said:?}");
    assert!(ended.stderr().contains("INCOMPLETE: recording stopped on 2 ranks"), "{}", ended.stderr());
    mixes(&capture, &["--lenient"]);
    let (ended, capture) = run("200");
    assert_eq!(complaints(&ended), [""; 0], "{mpi:?} {mode}");
    assert!(mixes(&capture, &[]).contains("200 messages matched"));
}

#[test]
fn a_limit_on_files_stops_the_recording_alone() {
    for mpi in Mpi::installed() {
        // Growing a file beyond the limit would end the process by a signal. So does any write if the limit is 10 bytes.
        for limit in ["614400", "10"] {
            stops_alone(mpi, "limited", &[limit], "size limit");
        }
    }
}

#[test]
fn a_file_of_the_program_under_the_recorders_number_is_left_alone() {
    for mpi in Mpi::installed() {
        stops_alone(mpi, "closes", &[], "the program has closed the descriptor of the capture");
    }
}

#[test]
fn a_capture_truncated_by_another_process_is_told_at_the_end() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = faults(mpi, work.path());
        let capture = work.path().join("capture");
        let stop = work.path().join("stop");
        let long = start_long(mpi, &program, &stop, &capture);
        for rank in ["0.vefc", "1.vefc"] {
            std::fs::File::create(capture.join(rank)).expect("an empty file");
        }
        std::fs::write(&stop, "").expect("a file");
        let (status, said) = ended(long);
        assert_eq!(said.matches("truncated").count(), 2, "{said}");
        // 2: nothing is captured of a program that succeeds.
        assert_eq!(status, Some(2), "{said}");
    }
}

/// A file system of 900 KiB at `disk` in a directory; `None`, said aloud: it cannot be made here.
fn small_disk(work: &Path) -> Option<PathBuf> {
    let disk = work.join("disk");
    std::fs::create_dir(&disk).expect("a directory");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=900k", "tmpfs"]).arg(&disk);
    if !have("mount") || !run(&mut mount).output.status.success() {
        skipped("a small tmpfs cannot be mounted here (needs root)");
        return None;
    }
    Some(disk)
}

#[test]
fn text_traces_on_a_full_disk_are_not_left_incomplete() {
    let work = tempfile::tempdir().expect("a directory");
    let Some(disk) = small_disk(work.path()) else { return };
    let traces = disk.join("ti_traces");
    std::fs::create_dir(&traces).expect("a directory");
    run(Command::new("cp").arg("-r").arg(root().join("cli/demo/capture")).arg(traces.join("capture")))
        .success();
    let all = std::fs::read_dir(traces.join("capture")).expect("a capture").flatten();
    all.for_each(|file| std::fs::rename(file.path(), traces.join(file.file_name())).expect("moved"));
    let before = std::fs::read_dir(&traces).expect("a directory").count();
    let filled = run(Command::new("dd")
        .args(["if=/dev/zero", "bs=1k"])
        .arg(format!("of={}", disk.join("rest").display())));
    let ended = run(vef().arg("text").arg(&traces));
    let left = std::fs::read_dir(&traces).expect("a directory").count();
    run(Command::new("umount").arg(&disk)).success();
    assert!(filled.stderr().contains("No space left"), "{}", filled.stderr());
    let said = ended.exited(2).stderr();
    assert!(said.contains("No space left") && said.lines().count() == 1, "{said}");
    assert_eq!(left, before, "something was left behind");
}

#[test]
fn a_file_in_place_of_the_directory_is_told() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = faults(mpi, work.path());
        let file = work.path().join("file");
        std::fs::write(&file, "theirs").expect("a file");
        let words = line(mpi, &program, &["many", "2"]);
        let mut command = Command::new(&words[0]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("LD_PRELOAD", products().join("libvef_interpose.so")).env("VEF_DIR", &file);
        let ended = run(command.args(&words[1..])).success();
        let refused = format!("vef: this process is not traced: {}: is not a directory", file.display());
        assert_eq!(ended.stderr().matches(&refused).count(), 2, "{}", ended.stderr());
        assert_eq!(std::fs::read(&file).expect("as it was"), b"theirs");
    }
}

#[test]
fn a_full_disk_stops_the_recording_alone() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let Some(disk) = small_disk(work.path()) else { return };
    let program = faults(mpi, work.path());
    let ended = traced(mpi, &program, &["many", "120000"], &disk.join("capture"));
    let mixed = run(vef()
        .args(["mix", "--lenient", "-i"])
        .arg(disk.join("capture"))
        .arg("-o")
        .arg(work.path().join("out.vef")));
    run(Command::new("umount").arg(&disk)).success();
    let ended = ended.success();
    mixed.success();
    assert!(ended.stdout().contains("many 60000 60000"), "{}", ended.stdout());
    let said = complaints(&ended);
    assert_eq!(said.len(), 2, "one line a rank: {said:?}");
    assert!(said.iter().all(|line| line.contains("No space left")), "{said:?}");
}

#[test]
fn ranks_of_the_wrong_launcher_do_not_overwrite_each_other() {
    let [mpich, openmpi] = Mpi::DEBIAN;
    if Mpi::installed().len() < 2 {
        return skipped("needs both MPIs");
    }
    let work = tempfile::tempdir().expect("a directory");
    // Each starts alone, as rank 0 of 1, under the launcher of the other MPI.
    for (program, launcher) in [(mpich, openmpi), (openmpi, mpich)] {
        let program = faults(program, work.path());
        let capture = work.path().join(format!("{launcher:?}"));
        let ended = traced(launcher, &program, &["many", "2"], &capture);
        let refused = complaints(&ended);
        assert_eq!(
            refused.iter().filter(|line| line.contains("has recorded, as rank 0 in ")).count(),
            1,
            "{refused:?}"
        );
        let capture = Capture::open(&capture).expect("a capture");
        assert_eq!(capture.tasks(), 1);
    }
}

#[test]
fn a_program_without_mpi_is_left_alone() {
    let library = products().join("libvef_interpose.so");
    let work = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("sh");
    command.args(["-c", "echo $((6 * 7)); ls / | wc -l > /dev/null; exit 3"]).current_dir(work.path());
    let ended = run_for(command.env("LD_PRELOAD", &library), Duration::from_secs(10)).exited(3);
    assert_eq!((ended.stdout().as_str(), ended.stderr().as_str()), ("42\n", ""));
    assert_eq!(std::fs::read_dir(work.path()).expect("there").count(), 0);
}

/// What is recorded of an MPI whose handles and constants are not known would be wrong.
#[test]
fn an_mpi_or_a_version_of_the_abi_that_is_not_known_is_one_line_and_no_capture() {
    let library = products().join("libvef_interpose.so");
    for (options, said) in [
        (&[][..], "unknown kind of MPI library: \"Some MPI 7.1\""),
        (&["-DABI_MAJOR=2"], "unknown version of the standard ABI: 2.3 (known: 1) of \"Some MPI 7.1\""),
    ] {
        let work = tempfile::tempdir().expect("a directory");
        let mpi = work.path().join("libmpi.so");
        let program = work.path().join("program");
        let mut compiler = Command::new("cc");
        compiler.current_dir(root()).args(["-shared", "-fPIC", "-o"]).arg(&mpi).args(options);
        run(compiler.arg("tests/c/unknown_mpi.c")).success();
        let mut compiler = Command::new("cc");
        compiler.current_dir(root()).arg("-o").arg(&program).arg("tests/c/unknown_program.c").arg(&mpi);
        run(&mut compiler).success();
        let capture = work.path().join("capture");
        let mut traced = Command::new(&program);
        let ended = run(traced.env("LD_PRELOAD", &library).env("VEF_DIR", &capture)).success();
        assert_eq!(ended.stdout(), "fine\n");
        assert_eq!(ended.stderr(), format!("vef: this process is not traced: {said}\n"));
        assert!(!capture.exists());
    }
}

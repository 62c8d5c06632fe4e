//! Windows that a program uses as it should not, or from several threads: what is wrong is named and counted, and the rest replays.

use std::path::{Path, PathBuf};
use vef_tests::{Mpi, counts, run, vef};

/// A run of `tests/c/windows_hostile.c` under the recorder, however it ends; what `vef mix` says.
fn mixed(mpi: Mpi, work: &Path, mode: &str) -> (PathBuf, String) {
    let program = mpi.compile(work, "windows_hostile", &["tests/c/windows_hostile.c", "-lpthread"]);
    let place = |suffix: &str| work.join(format!("{mode}.{suffix}"));
    let mut command = vef();
    command.args(["run", "-n", "3", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(place("capture"));
    run(command.arg("--").arg(program).arg(mode));
    let mix = |to: &str, more: &[&str]| {
        let mut command = vef();
        command.args(["mix", "-i"]).arg(place("capture")).args(more).arg("-o").arg(place(to));
        run(&mut command).success().stdout()
    };
    let told = mix("vef", &[]);
    for (to, more) in [("vefx", &[][..]), ("hardware.vefx", &["--rma", "hardware"])] {
        mix(to, more);
        let checked = run(vef().arg("check").arg(place(to))).success().stdout();
        assert!(checked.contains("complete: every record replays"), "{mpi:?} {mode}: {checked}");
        run(vef().arg("sim").arg(place(to)).args(["--topology", "switch:3", "--model", "packet"])).success();
    }
    (place("vef"), told)
}

/// Bytes to the next rank and back, which are all that there are.
fn moved(trace: &Path) -> [u64; 2] {
    let traffic = counts::of_trace(trace).traffic;
    let of = |from: u32, to: u32| traffic.get(&(from, to)).map_or(0, |pair| pair.1);
    assert!((0..3).all(|rank| of(rank, rank) == 0), "{traffic:?}");
    [of(0, 1), of(1, 0)]
}

/// What goes through shared memory is no call: that is said.
#[test]
fn a_shared_window_is_named() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "shared_window", &["tests/c/shared_window.c"]);
        let [capture, trace] = ["capture", "t.vefx"].map(|name| work.path().join(name));
        let mut command = vef();
        command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture).arg("--");
        let told = run(command.arg(program)).success().stderr();
        let lack = "loads and stores behind 2 calls of MPI_Win_allocate_shared";
        assert!(told.contains(&format!("; not seen: {lack}")), "{mpi:?}: {told}");
        assert!(!told.contains("all can be represented"), "{mpi:?}: {told}");
        let told = run(vef().arg("mix").arg(&capture).arg("-o").arg(&trace)).success().stdout();
        assert!(told.contains(&format!("not in the trace: {lack}")), "{mpi:?}: {told}");
        let told = run(vef().arg("check").arg(&trace)).success();
        assert!((told.stdout() + &told.stderr()).contains(lack), "{mpi:?}");
    }
}

#[test]
fn an_origin_that_is_killed_in_an_epoch() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let (trace, told) = mixed(mpi, work.path(), "killed");
        assert!(told.contains("3 tasks without MPI_Finalize (0, 1, 2)"), "{mpi:?}: {told}");
        assert!(told.contains("2 one-sided transfers completed by no synchronisation"), "{mpi:?}: {told}");
        assert_eq!(moved(&trace), [4 * (10 + 20), 4 * 30], "{mpi:?}");
    }
}

#[test]
fn epochs_that_are_never_closed() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let (trace, told) = mixed(mpi, work.path(), "open");
        // Of each rank three puts; the get is complete.
        assert!(told.contains("9 one-sided transfers completed by no synchronisation"), "{mpi:?}: {told}");
        assert_eq!(moved(&trace), [4 * (10 + 20 + 40), 4 * 30], "{mpi:?}");
    }
}

/// What the MPIs refuse is not recorded.
#[test]
fn epochs_that_overlap() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let (trace, told) = mixed(mpi, work.path(), "overlapping");
        assert!(!told.contains("not in the trace: ") || mpi == Mpi::Mpich, "{mpi:?}: {told}");
        assert_eq!(moved(&trace), [4 * (10 + 20), 0], "{mpi:?}");
    }
}

#[test]
fn three_threads_with_a_window_each() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let (trace, told) = mixed(mpi, work.path(), "threads");
        assert!(
            !told.contains("not in the trace") && !told.contains("no synchronisation"),
            "{mpi:?}: {told}"
        );
        assert!(told.contains("3 tasks called MPI from several threads"), "{mpi:?}: {told}");
        // 20 times in each of three threads: 10 integers and an operand, and 20 integers and a result.
        assert_eq!(moved(&trace), [60 * 4 * (10 + 1), 60 * 4 * (20 + 1)], "{mpi:?}");
    }
}

//! The standard ABI of MPI-5, as the wheel `mpich` of PyPI has it: programs are captured, and `vef run` finds the launcher that came with
//! the library. The wheel has no Fortran; a small library stands for that of an MPI.

use std::process::Command;
use vef_tests::{Wheel, counts, root, run, skipped, vef};

#[test]
fn fortran_is_captured_by_the_conversions_of_mpi_5() {
    let Some((mpicc, launcher)) = Wheel::StandardAbi.programs() else {
        return skipped("the wheel mpich is not here");
    };
    let work = tempfile::tempdir().expect("a directory");
    let source = root().join("tests/c/standard_fortran.c");
    let compile = |name: &str, options: &[&str]| {
        let mut compiler = Command::new(mpicc);
        run(compiler.arg("-o").arg(work.path().join(name)).arg(&source).args(options)).success();
    };
    compile("libmpifort_abi.so", &["-DLIBRARY", "-shared", "-fPIC"]);
    let directory = work.path().display().to_string();
    compile("program", &["-L", &directory, "-lmpifort_abi", &format!("-Wl,-rpath,{directory}")]);
    let program = work.path().join("program");
    let plain = run(Command::new(launcher[0]).args(["-n", "2"]).arg(&program)).success();
    let trace = work.path().join("trace.vef");
    let capture = work.path().join("capture");
    // Its own launcher is not the first in PATH.
    let ended = run(vef()
        .args(["run", "-n", "2", "-o"])
        .arg(&capture)
        .arg("--mix")
        .arg(&trace)
        .arg("--")
        .arg(&program))
    .success();
    assert_eq!(ended.stdout().lines().next(), plain.stdout().lines().next(), "{}", ended.stderr());
    let said = ended.stderr();
    assert!(
        said.contains("2 ranks") && said.contains("all can be represented") && !said.contains("warning"),
        "{said}"
    );
    let traffic = counts::of_trace(&trace).traffic;
    assert_eq!(traffic.values().map(|pair| pair.0).sum::<u64>(), 8, "{traffic:?}");
}

/// Those that are not recorded are passed on, and do not disturb what is.
#[test]
fn functions_of_mpi_4_1_and_5_do_what_they_do_without() {
    let Some((mpicc, _)) = Wheel::StandardAbi.programs() else {
        return skipped("the wheel mpich is not here");
    };
    let work = tempfile::tempdir().expect("a directory");
    let program = work.path().join("program");
    let source = root().join("tests/c/standard_abi.c");
    run(Command::new(mpicc).arg("-o").arg(&program).arg(source)).success();
    let mut command = vef();
    command.current_dir(work.path()).args(["run", "-n", "2", "-o", "capture", "--mix", "trace.vef", "--"]);
    let ended = run(command.arg(&program)).success();
    assert!(ended.stdout().starts_with("ABI 1\n"), "{}", ended.stdout());
    let said = ended.stderr() + &ended.stdout();
    assert!(!said.contains("never completed") && said.contains("2 messages with 8 B"), "{said}");
    let traffic = counts::of_trace(&work.path().join("trace.vef")).traffic;
    assert_eq!(traffic.values().map(|pair| pair.0).sum::<u64>(), 2, "{traffic:?}");
}

//! The standard ABI of MPI-5, as the wheel `mpich` of PyPI has it: programs are captured, and `vef run` finds the launcher that came with
//! the library. The wheel has no Fortran; a small library stands for that of an MPI.

use std::process::Command;
use vef_tests::{counts, mpich_wheel, root, run, vef};

#[test]
fn fortran_is_captured_by_the_conversions_of_mpi_5() {
    let Some(binaries) = mpich_wheel() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let source = root().join("tests/c/standard_fortran.c");
    let compile = |name: &str, options: &[&str]| {
        let mut compiler = Command::new(binaries.join("mpicc_abi"));
        run(compiler.arg("-o").arg(work.path().join(name)).arg(&source).args(options)).success();
    };
    compile("libmpifort_abi.so", &["-DLIBRARY", "-shared", "-fPIC"]);
    let directory = work.path().display().to_string();
    compile("program", &["-L", &directory, "-lmpifort_abi", &format!("-Wl,-rpath,{directory}")]);
    let program = work.path().join("program");
    let plain = run(Command::new(binaries.join("mpiexec")).args(["-n", "2"]).arg(&program)).success();
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

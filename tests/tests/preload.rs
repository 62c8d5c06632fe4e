//! The preload library does no harm where it does not belong, and `vef run` reaches the ranks however they are
//! started.

use std::process::Command;
use vef_tests::{Mpi, products, root, run, vef};

#[test]
fn a_script_that_starts_other_things_is_not_harmed() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
        let mut script = Command::new("bash");
        products();
        script.arg(root().join("tests/c/hello.sh")).arg(mpi.launcher().join(" ")).arg(&program);
        script.current_dir(work.path()).env("VEF_DIR", work.path().join("capture"));
        script.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        script.env("LD_PRELOAD", products().join("libvef_interpose.so"));
        let ended = run(&mut script).success();
        assert_eq!(ended.stdout(), "done\npython is well\n1\n", "{}", ended.stderr());
        assert_eq!(ended.stderr(), "");
        let trace = work.path().join("out.vef");
        run(vef().args(["mix", "-i"]).arg(work.path().join("capture")).arg("-o").arg(&trace)).success();
    }
}

#[test]
fn exit_code_and_streams_are_the_programs() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let mut command = vef();
        command.current_dir(work.path()).args([
            "run",
            "-n",
            "1",
            "--mpirun",
            &mpi.launcher().join(" "),
            "--",
        ]);
        let ended = run(command.args(["sh", "-c", "echo out; echo err >&2; exit 7"])).exited(7);
        assert_eq!(ended.stdout(), "out\n");
        assert!(ended.stderr().contains("err\n"), "{}", ended.stderr());
    }
}

#[test]
fn several_programs_on_one_line() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
        let trace = work.path().join("out.vef");
        let mut command = vef();
        command.current_dir(work.path()).args(["run", "--mix"]).arg(&trace).arg("--").args(mpi.launcher());
        command.args(["-n", "2"]).arg(&program).args([":", "-n", "2", "env"]).arg(&program);
        run(&mut command).success();
        let header = std::fs::read_to_string(trace).expect("a trace");
        assert!(header.starts_with("VEF3 4 "), "{}", header.lines().next().unwrap_or_default());
    }
}

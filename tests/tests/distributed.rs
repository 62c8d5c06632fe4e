//! `mpirun -n P vef mix`: one summary or one error, the same bytes, on both MPIs. `mixer/tests/job.rs` has the cases.

use std::fs;
use std::path::Path;
use std::process::Command;
use vef_benches::workload::Workload;
use vef_tests::{Mpi, run, vef};

fn launched(mpi: Mpi, processes: u32, capture: &Path, trace: &Path) -> Command {
    let words = mpi.launcher();
    let mut command = Command::new(words[0]);
    // Open MPI refuses to start as root unless told twice.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(&words[1..]).args(["-n", &processes.to_string()]);
    command.arg(vef().get_program()).args(["mix", "-i"]).arg(capture).arg("-o").arg(trace);
    command
}

#[test]
fn one_process_speaks_for_all() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    Workload { tasks: 12, records: 30_000, ahead: 100 }.write(&path("capture")).expect("a capture");
    let alone =
        run(vef().args(["mix", "-i"]).arg(path("capture")).arg("-o").arg(path("alone.vef"))).success();
    // All but the times.
    let said = |text: String| text.split("; read in ").next().unwrap_or_default().to_owned();
    for mpi in Mpi::installed() {
        let out = path("out");
        fs::create_dir(&out).expect("a directory");
        for processes in [1, 2] {
            let ended = run(&mut launched(mpi, processes, &path("capture"), &out.join("t.vef"))).success();
            assert_eq!(ended.stdout().lines().count(), alone.stdout().lines().count(), "{}", ended.stdout());
            assert_eq!(said(ended.stdout()), said(alone.stdout()));
            let trace = fs::read(out.join("t.vef")).expect("a trace");
            assert!(
                trace == fs::read(path("alone.vef")).expect("a trace"),
                "{processes} processes, other bytes"
            );
            assert_eq!(fs::read_dir(&out).expect("a directory").count(), 1);
        }
        fs::remove_dir_all(&out).expect("removed");
        // A file that another than the first process reads.
        fs::create_dir(&out).expect("a directory");
        let damaged = path("capture").join("11.vefc");
        let whole = fs::read(&damaged).expect("a capture");
        fs::write(&damaged, &whole[..40]).expect("damaged");
        let ended = run(&mut launched(mpi, 2, &path("capture"), &out.join("t.vef"))).exited(2);
        let errors = ended.stderr().lines().filter(|line| line.starts_with("vef: error")).count();
        assert!(errors == 1 && ended.stderr().contains("11.vefc"), "{}", ended.stderr());
        assert_eq!(fs::read_dir(&out).expect("a directory").count(), 0);
        fs::write(&damaged, &whole).expect("mended");
        fs::remove_dir_all(&out).expect("removed");
    }
}

//! The spine of the project on one program: captured with an independent counter in front of the recorder, mixed, checked,
//! simulated.

use crate::{Ended, Mpi, counts, number, run, run_for, vef};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Captures `program` on `ranks` ranks in `work` with the counter in front of the recorder, and mixes; gives the trace and
/// what the program printed.
///
/// # Panics
/// When one of the steps fails.
pub fn capture_and_mix(mpi: Mpi, work: &Path, ranks: u32, program: &[&str]) -> (PathBuf, String) {
    let counter = mpi.compile(work, "counter.so", &["-shared", "-fPIC", "tests/c/counter.c", "-ldl"]);
    let (capture, trace, count) = (work.join("capture"), work.join("out.vef"), work.join("count"));
    std::fs::create_dir(&count).expect("a directory for the counter");
    let mut command = vef();
    command.current_dir(work).env("COUNT_DIR", &count).env("LD_PRELOAD", &counter);
    command
        .args(["run", "-n", &ranks.to_string(), "--mpirun", &mpi.launcher().join(" "), "-o"])
        .arg(&capture);
    command.arg("--").args(program);
    let ran = run_for(&mut command, Duration::from_secs(400)).success();
    assert!(ran.stderr().contains(capture.to_str().expect("a path")), "{}", ran.stderr());
    // The counter does not count the collectives by which MPI agrees on communicators.
    let mut mix = vef();
    mix.args(["mix", "--communicators", "compute", "-i"]).arg(&capture).arg("-o").arg(&trace);
    run(&mut mix).success();
    (trace, ran.stdout())
}

fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout()).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout()))
}

/// The trace says what the counter saw; it checks as complete; it simulates to its end, all messages delivered.
///
/// # Panics
/// When it does not.
pub fn holds_what_was_counted(work: &Path, trace: &Path, ranks: u32) {
    let counted = counts::of_counter(&work.join("count"), ranks);
    assert!(!counted.traffic.is_empty(), "the counter saw nothing");
    assert_eq!(counts::of_trace(trace), counted);

    let messages: u64 = counted.traffic.values().map(|pair| pair.0).sum();
    let bytes: u64 = counted.traffic.values().map(|pair| pair.1).sum();
    let check = json(&run(vef().args(["check", "--json"]).arg(trace)).success());
    assert_eq!(check["complete"], true, "{check:#}");
    assert_eq!(number(&check, "tasks"), u64::from(ranks));
    assert_eq!(number(&check, "messages"), messages);
    assert_eq!(number(&check, "bytes"), bytes);
    assert!(number(&check, "runtime_ps") > 0);

    for topology in ["switch:8", "fattree:2x4x2", "torus:4x2x2"] {
        let sim = json(&run(vef().args(["sim", "--json", "--topology", topology]).arg(trace)).success());
        assert!(number(&sim, "messages") >= messages, "{topology}: {sim:#}");
        assert!(number(&sim, "runtime_ps") > 0);
    }
}

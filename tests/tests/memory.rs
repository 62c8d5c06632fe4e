//! A capture that does not fit into the memory that a mix may use: it is mixed all the same, to the same bytes.

use std::fs;
use std::path::Path;
use std::process::Command;
use vef_benches::workload::Workload;
use vef_tests::{run, vef};

/// The address space that a mix gets, in KiB, as `ulimit -v` takes it: the program and its libraries need half of it.
const SPACE: u32 = 44_000;

/// `vef mix` with so much memory allowed, in a process that cannot have more than [`SPACE`].
fn squeezed(capture: &Path, trace: &Path, memory: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {SPACE}; exec \"$@\""), "sh"]);
    command.arg(vef().get_program()).args(["mix", "-j", "1", "--memory", memory, "-i"]).arg(capture);
    // An arena of the C library's allocator alone is 64 MiB of address space.
    command.arg("-o").arg(trace).env("MALLOC_ARENA_MAX", "1");
    command
}

#[test]
fn more_records_than_memory() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    // Some 40 MB in memory.
    let workload = Workload { tasks: 96, records: 1_700_000, ahead: 5_000 };
    workload.write(&path("capture")).expect("a capture");
    run(vef().args(["mix", "-j", "1", "-i"]).arg(path("capture")).arg("-o").arg(path("whole.vef"))).success();

    let out = path("out");
    fs::create_dir(&out).expect("a directory");
    let failed = run(&mut squeezed(&path("capture"), &out.join("t.vef"), "1TB"));
    assert!(!failed.output.status.success(), "the limit is none");
    fs::read_dir(&out).expect("a directory").for_each(|left| {
        // The allocator ends the program where it stands.
        fs::remove_file(left.expect("an entry").path()).expect("a temporary file");
    });

    run(&mut squeezed(&path("capture"), &out.join("t.vef"), "8MB")).success();
    let same = fs::read(path("whole.vef")).expect("a trace") == fs::read(out.join("t.vef")).expect("a trace");
    assert!(same, "in parts, the trace is another");
    assert_eq!(fs::read_dir(&out).expect("a directory").count(), 1, "something was left behind");
}

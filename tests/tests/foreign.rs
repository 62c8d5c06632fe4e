//! Traces of other tools on the command line.

use std::fs;
use std::path::{Path, PathBuf};
use vef_tests::{root, run, vef};

fn sample(path: &str) -> PathBuf {
    root().join("interchange/tests/data").join(path)
}

/// A copy of the files of a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry").path();
        fs::copy(&entry, to.join(entry.file_name().expect("a name"))).expect("a copy");
    }
}

/// `vef check` says of a format of calls what is wrong, where and how often, and refuses what cannot be converted.
#[test]
fn calls_are_checked_before_they_are_converted() {
    let sound = run(vef().arg("check").arg(sample("dumpi/testtrace"))).success().stdout();
    assert!(
        sound.contains("testtrace: DUMPI") && sound.contains("complete: every record replays"),
        "{sound}"
    );
    assert!(!sound.contains("warning") && !sound.contains("error"), "{sound}");

    let work = tempfile::tempdir().expect("a directory");
    let cut = work.path().join("cut");
    copy(&sample("dumpi/alltoall-p2p"), &cut);
    let file = cut.join("dumpi-2019.05.22.11.54.43-0002.bin");
    let bytes = fs::read(&file).expect("a file");
    fs::write(&file, &bytes[..1500]).expect("written");
    let said = run(vef().arg("check").arg(&cut)).exited(2).stdout();
    for part in [
        "0002.bin: has no index: it was cut",
        "warning: 1 files that end early: rank 2 ends at byte ",
        "sends and receives without a partner (",
        "NOT complete",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let json = run(vef().arg("check").arg(&cut).arg("--json")).exited(2).stdout();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let kinds: Vec<&serde_json::Value> = json["findings"].as_array().expect("findings").iter().collect();
    assert!(kinds.iter().any(|kind| kind["is_error"] == false && kind["count"] == 1), "{json}");

    // What is left out is told with its number, and --strict refuses it; options of vef import are those of vef check.
    let trace = work.path().join("trace.txt");
    fs::write(&trace, "0 init\n0 compute 5e9\n0 put 1 8\n0 finalize\n").expect("written");
    let check = |options: &[&str]| run(vef().arg("check").arg(&trace).args(options));
    assert!(
        check(&[])
            .exited(2)
            .stdout()
            .contains("trace.txt:2: an amount of computing needs --flops-per-second")
    );
    let told = check(&["--flops-per-second", "1e9"]).success().stdout();
    assert!(
        told.contains("warning: 1 calls of put, which are left out: rank 0") && told.contains("5.000 s"),
        "{told}"
    );
    let refused = check(&["--flops-per-second", "1e9", "--strict"]).exited(2).stdout();
    assert!(refused.contains("1 calls of put, which are left out: rank 0"), "{refused}");
}

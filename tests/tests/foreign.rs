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
        "warning: files that end early (1): rank 2 ends at byte ",
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
        told.contains("warning: left out: calls of put (1): rank 0") && told.contains("5.000 s"),
        "{told}"
    );
    let refused = check(&["--flops-per-second", "1e9", "--strict"]).exited(2).stdout();
    assert!(refused.contains("left out: calls of put (1): rank 0"), "{refused}");
}

/// A step of training a language model goes to Chakra and OTF2 and back, and is cut out of a workload of two jobs.
#[test]
fn a_workload_is_made_exported_joined_and_cut() {
    let work = tempfile::tempdir().expect("a directory");
    let vef = |words: &str| {
        let mut command = vef();
        run(command.current_dir(work.path()).args(words.split(' ')))
    };
    vef("gen llm --parallel 2,2,2 --layers 4 --hidden 256 --inner 512 --sequence 128 --micro-batches 3 --iterations 1 -o step.vefx")
        .success();
    let replayed = |trace: &str| {
        let checked = vef(&format!("check {trace} --json")).success().stdout();
        let checked: serde_json::Value = serde_json::from_str(&checked).expect("JSON");
        ["messages", "collectives", "bytes", "runtime_ps"].map(|key| checked[key].as_u64().expect("a number"))
    };
    let [messages, collectives, bytes, runtime] = replayed("step.vefx");
    assert_eq!((messages, collectives), (4 * 3 * 2, 2 * 4 * 2 * 3 * 2 + 2 * (2 * (2 + 1))));

    vef("export --to chakra step.vefx -o step.chakra").success();
    let [sends, kept, sent, micros] = replayed("step.chakra");
    assert_eq!((sends, kept, sent), (messages, collectives, bytes));
    // The times are whole µs.
    assert!(micros.abs_diff(runtime) <= 100_000_000, "{micros} {runtime}");
    vef("export --to otf2 step.vefx -o step.otf2.d").success();
    let [sends, kept, sent, _] = replayed("step.otf2.d");
    assert_eq!((sends, kept, sent), (messages, collectives, bytes));

    vef("gen ring -n 4 --iterations 10 -o ring.vef").success();
    let joined = vef("cat ring.vef step.vefx -o both.vefx").success().stdout();
    assert!(joined.contains("tasks from 4 on: step.vefx"), "{joined}");
    assert_eq!(replayed("both.vefx")[3], runtime.max(replayed("ring.vef")[3]));
    let cut = vef("cut both.vefx --ranks 4-11 -o again.vef").success().stdout();
    assert!(cut.contains("8 ranks"), "{cut}");
    assert_eq!(replayed("again.vef"), [messages, collectives, bytes, runtime]);
    // The part of a run takes as long as a replay of that part.
    let time = |words: &str| {
        let simulated: serde_json::Value =
            serde_json::from_str(&vef(words).success().stdout()).expect("JSON");
        simulated["runtime_ps"].as_u64().expect("a time")
    };
    vef("cut ring.vef --iterations=3-6 -o part.vef").success();
    assert_eq!(time("sim part.vef --json"), time("sim ring.vef --iterations=3-6 --json"));
    assert!(vef("cut ring.vef -o part.vef").exited(2).stderr().contains("name a part"));
    assert!(vef("cat ring.vef none.vef -o x.vef").exited(2).stderr().contains("none.vef"));
}

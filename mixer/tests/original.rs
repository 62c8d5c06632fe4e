//! The captures of the original tools give the traces of the original mixer.

use mixer::{Options, Quiet, mix};
use skipping::{installed, shared};
use std::process::Command;

fn equal_to_the_original(name: &str) {
    let (Some(captures), Some(compare)) = (shared("data/vef-prospector"), shared("tools/vef_canon.py"))
    else {
        return;
    };
    if !installed("python3") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("mixed.vef");
    let summary = mix(&captures.join(name).join("VEFT.main"), &trace, &Options::default(), &Quiet).unwrap();
    assert_eq!((summary.tasks, summary.messages, summary.marks), (4, 8, 12));
    let original = captures.join(format!("{name}.vef"));
    let compared = Command::new("python3").arg(&compare).arg(&original).arg(&trace).output().unwrap();
    let said = String::from_utf8_lossy(&compared.stdout);
    assert!(compared.status.success() && said.trim() == "equal", "{said}");
}

#[test]
fn p2p_a_is_equal() {
    equal_to_the_original("p2p-a");
}

#[test]
fn p2p_b_is_equal() {
    equal_to_the_original("p2p-b");
}

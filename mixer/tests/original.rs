//! The captures of the original tools give the traces that the original mixer wrote from them.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use mixer::{Options, Quiet, mix};
use std::path::Path;
use std::process::Command;

fn equal_to_the_original(name: &str) {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let captures = shared.join("data/vef-prospector");
    let compare = shared.join("tools/vef_canon.py");
    if !captures.is_dir() || !compare.is_file() {
        eprintln!("SKIPPED: {} is not here", captures.display());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("mixed.vef");
    let summary = mix(&captures.join(name).join("VEFT.main"), &trace, &Options::default(), &Quiet).unwrap();
    assert_eq!((summary.tasks, summary.messages, summary.marks), (4, 8, 12));
    let original = captures.join(format!("{name}.vef"));
    let compared = match Command::new("python3").arg(&compare).arg(&original).arg(&trace).output() {
        Ok(compared) => compared,
        Err(error) => {
            eprintln!("SKIPPED: no python3 to compare with: {error}");
            return;
        }
    };
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

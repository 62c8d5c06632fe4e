//! The captures of the original tools give the traces of the original mixer.

use mixer::{Options, Quiet, mix};
use skipping::{installed, shared};
use std::fs;
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

/// Without communicators, messages of one tag may overtake each other, if their lengths differ.
#[test]
fn messages_of_the_older_layout_differ_by_length() {
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vef"));
    fs::create_dir(&capture).unwrap();
    fs::write(capture.join("VEFT.main"), "1\n./\nTask:0:Node:n:RI:1:RF:9:TI:1:TF:9\n").unwrap();
    fs::write(capture.join("0.comm"), [0i32, 1, 0].map(i32::to_le_bytes).concat()).unwrap();
    let [send, post, wait, init, finalize] = [100u16, 111, 151, 200, 202];
    let calls = [
        (init, 0, 0),
        // Event, bytes, request.
        (post, 64, 1),
        (post, 64, 2),
        (send, 5, 0),
        (send, 9, 0),
        (wait, 9, 1),
        (wait, 5, 2),
        // No call waits for this one, which has no message but one of its length.
        (post, 7, 3),
        (send, 7, 0),
        (finalize, 0, 0),
    ];
    let mut bytes = Vec::new();
    for ((event, length, request), start) in calls.into_iter().zip((1000u64..).step_by(100)) {
        bytes.extend([start, start + 10].map(u64::to_le_bytes).concat());
        bytes.extend([0i32, length, 3, request].map(i32::to_le_bytes).concat());
        bytes.extend(event.to_le_bytes());
        bytes.extend([0; 6]);
    }
    fs::write(capture.join("0.veft"), bytes).unwrap();
    let summary = mix(&capture, &trace, &Options::default(), &Quiet).unwrap();
    assert_eq!((summary.messages, summary.matched), (3, 3));
    let text = fs::read_to_string(&trace).unwrap();
    let fields = text.lines().skip(2).map(|line| line.split(' ').collect::<Vec<_>>());
    let after: Vec<_> =
        fields.map(|of| (of[3].to_owned(), of[4].parse::<u32>().unwrap() % 4, of[6].to_owned())).collect();
    // Bytes, whether it depends on a message received, and on which record: 0 is the message of 5 bytes, 1 that of 9.
    let expected =
        [("5", 0, "-1"), ("9", 1, "0"), ("0", 1, "1"), ("0", 2, "1"), ("7", 2, "0"), ("0", 1, "4")];
    assert_eq!(after, expected.map(|(bytes, how, on)| (bytes.to_owned(), how, on.to_owned())));
}

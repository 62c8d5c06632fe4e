//! What is said of replays in which nothing happens any more, word by word.

use replay::{Engine, Job, Loaded, Next, OpCodes, Picos, Replay};
use std::path::Path;
use std::sync::Arc;
use vef_format::text::Reader;

fn loaded(text: &str) -> Job {
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    Job::loaded(&Arc::new(Loaded::read(reader, OpCodes::default()).unwrap()))
}

/// Task 1 waits for a message of task 0.
const ONE: &str = "VEF3 2 2 0 0 0 0 1\n0 0 1 9 4 10 -1\n1 1 1 0 2 0 0\n";

#[test]
fn messages_that_were_not_delivered_are_listed() {
    let mut replay = Replay::builder().job(loaded(ONE)).job(loaded(ONE)).build().unwrap();
    let [one, other] = [(); 2].map(|()| replay.pop_ready(Picos(10)).unwrap().unwrap().id);
    let text = replay.stuck().unwrap().to_string();
    let expected = format!(
        "nothing can happen after {}: 2 tasks wait
  taken and not delivered: 2 messages
    id {one}: from task 0 to task 1, message 0
    job 1, id {other}: from task 0 to task 1, message 0
  task 1, record 0 (mark 1) waits for message 0 from task 0 to task 1 (record 0), which is on its way
  job 1, task 1, record 0 (mark 1) waits for message 0 from task 0 to task 1 (record 0), which is on its way",
        Picos(10)
    );
    assert_eq!(text, expected);
}

/// The file is gone, so that only the replay itself knows of the message.
#[test]
fn a_message_under_way_is_known_without_the_trace() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), ONE).unwrap();
    let mut replay = Replay::builder().job(Job::open(file.path()).unwrap()).build().unwrap();
    file.close().unwrap();
    replay.pop_ready(Picos(10)).unwrap().unwrap();
    let text = replay.stuck().unwrap().to_string();
    assert!(text.ends_with("waits for message 0, which is on its way"), "{text}");
}

/// Each of ten tasks waits for a message of the next one, and the last for one that is not in the trace; or for that of task `first`.
fn chain(first: Option<u64>) -> String {
    let lines: String = (0..10u64)
        .map(|task| {
            let to = if task == 0 { 0 } else { task - 1 };
            let after = if task < 9 { task + 1 } else { first.unwrap_or(999) };
            format!("{task} {task} {to} 8 6 0 {after}\n")
        })
        .collect();
    let text = format!("VEF3 10 10 0 0 0 0 1\n{lines}");
    Replay::builder().job(loaded(&text)).build().unwrap().stuck().unwrap().to_string()
}

#[test]
fn the_cause_is_at_the_end_of_a_chain() {
    let text = chain(None);
    assert!(
        text.starts_with(&format!("nothing can happen after {}: 10 tasks wait\n  task 0, ", Picos(0))),
        "{text}"
    );
    let tasks: String = (0..10).map(|task| format!("task {task} waits for ")).collect();
    let end = format!("\n  … and 2 more\n  the cause: {tasks}message 999, which is not in the trace");
    assert!(text.ends_with(&end), "{text}");
    assert_eq!(text.lines().count(), 1 + 8 + 2);
}

/// Message 8 goes to task 7, so that task 9, which waits for it too, never goes on.
#[test]
fn a_message_to_another_task_does_not_come() {
    let text = chain(Some(8));
    assert!(
        text.ends_with(
            "task 9 waits for message 8 from task 8 to task 7 (record 0), which goes to another task"
        ),
        "{text}"
    );
}

/// Task 0 waits for task 1, which waits for task 2, and that for task 1.
#[test]
fn a_circle_is_told_without_the_way_to_it() {
    let text = "VEF3 3 3 0 0 0 0 1\n0 1 0 8 6 0 2\n1 1 2 8 5 0 0\n2 2 1 8 6 0 1\n".to_owned();
    let text = text.replace("VEF3 3 3", "VEF3 3 4") + "3 0 1 8 6 0 0\n";
    let text = Replay::builder().job(loaded(&text)).build().unwrap().stuck().unwrap().to_string();
    assert!(text.ends_with("\n  in a circle: task 1 waits for task 2 waits for task 1"), "{text}");
}

#[test]
fn members_in_other_partitions_are_told() {
    let text = "VEF3 2 0 1 1 2 0 1\nC0 0 1\nG0 C0 6 0 0 0 0 1 -1\nG0 C0 6 1 0 0 0 1 -1\n";
    let mut engines = Engine::builder().job(loaded(text)).partitions(2, |node| node).unwrap();
    let mut messages = Vec::new();
    engines[0].begin(&mut messages).unwrap();
    let [Next::Message(message)] = messages[..] else { panic!("{messages:?}") };
    let _ = engines[0].export(message.id).unwrap();
    let text = engines[0].stuck().unwrap().to_string();
    let end = "waits for G0 (Barrier): 1 message missing, from task 1 (in another partition)";
    assert!(text.ends_with(end), "{text}");
}

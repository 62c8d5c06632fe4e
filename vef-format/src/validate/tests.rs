//! One trace for each thing that can be wrong between lines, and traces with nothing wrong.

use super::{Kind, Options, Report, Validator, validate};
use crate::container::{About, Settings};
use crate::convert::convert;
use crate::operation::OpCodes;
use crate::text::Reader;
use std::path::Path;

fn check_with(text: &str, options: &Options) -> Report {
    let mut reader = Reader::from_bytes(text.as_bytes(), Path::new("t")).unwrap().ignore_counts();
    let mut validator = Validator::new(reader.header(), options);
    while let Some((number, line)) = reader.next_numbered().unwrap() {
        validator.add(number, &line);
    }
    validator.finish()
}

/// The problems of a trace of `tasks` tasks with these records; the header counts are made right.
fn problems(tasks: u32, records: &[&str]) -> Vec<String> {
    report(tasks, records).problems.iter().map(ToString::to_string).collect()
}

fn report(tasks: u32, records: &[&str]) -> Report {
    let starting = |letter: char| records.iter().filter(move |line| line.starts_with(letter));
    let mut names: Vec<_> = starting('G').map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    let (communicators, parts) = (starting('C').count(), starting('G').count());
    let messages = records.len() - communicators - parts;
    let header = format!("VEF3 {tasks} {messages} {communicators} {} {parts} 0 1000", names.len());
    check_with(&format!("{header}\n{}\n", records.join("\n")), &Options::default())
}

/// Two tasks, a message, a collective: nothing wrong.
const GOOD: [&str; 7] = [
    "C0 0 1",
    "0 0 1 80 4 10 -1",
    "1 1 1 0 0 20 -1",
    "G0 C0 2 1 8 8 2 5 0",
    "G0 C0 2 0 8 8 1 5 0",
    "2 0 0 0 3 7 G0",
    "3 1 1 0 3 7 G0",
];

/// [`GOOD`] with some lines replaced, or left out where the replacement is empty.
fn with(changes: &[(&'static str, &'static str)]) -> Vec<String> {
    let mut lines = GOOD.to_vec();
    for (from, to) in changes {
        let line = lines.iter_mut().find(|line| *line == from).expect("a line of GOOD");
        *line = to;
    }
    lines.retain(|line| !line.is_empty());
    problems(2, &lines)
}

#[test]
fn a_good_trace_and_its_tallies() {
    let report = report(2, &GOOD);
    assert_eq!(report.problems, []);
    assert!(report.is_complete());
    let tallies = &report.tallies;
    assert_eq!((tallies.tasks, tallies.messages, tallies.marks, tallies.awaited), (2, 1, 3, 1));
    assert_eq!((tallies.bytes.0, tallies.collectives, tallies.local_collectives), (80, 1, 2));
    assert_eq!((tallies.dependencies, tallies.computing.0), ([2, 1, 1, 2], 32_000));
    let allreduce = tallies.operations["Allreduce"];
    assert_eq!((allreduce.operations, allreduce.lines, allreduce.send.0, allreduce.recv.0), (1, 2, 16, 16));
}

#[test]
fn real_traces_are_good() {
    let Some(data) = skipping::shared("data/vef-prospector") else { return };
    for name in ["p2p-a.vef", "p2p-b.vef"] {
        let report = validate(&data.join(name), &Options::default()).unwrap();
        assert_eq!((report.problems.as_slice(), report.is_complete()), ([].as_slice(), true), "{name}");
        assert_eq!((report.tallies.messages, report.tallies.marks), (8, 12), "{name}");
    }
}

#[test]
fn a_container_has_the_problems_of_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let (text, packed) = (folder.path().join("t.vef"), folder.path().join("t.vefx"));
    let cyclic = "VEF3 2 6 0 0 0 0 1\n0 0 0 0 0 1 -1\n1 1 1 0 0 1 -1\n2 0 1 8 6 1 3\n3 1 0 8 6 1 2\n4 0 0 0 1 1 2\n5 1 1 0 1 1 3\n";
    std::fs::write(&text, cyclic).unwrap();
    let about = About { op_codes: OpCodes::verified(), origin: vec![] };
    convert(&text, &packed, &about, Settings::default()).unwrap();
    let report = validate(&packed, &Options::default()).unwrap();
    assert_eq!(report.kinds[&Kind::Cycle], 1);
    let of_text = validate(&text, &Options::default()).unwrap();
    let kinds = |report: &Report| report.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>();
    assert_eq!((kinds(&report), report.tallies), (kinds(&of_text), of_text.tallies));
    // It has no lines.
    assert_eq!(
        report.problems[0].to_string(),
        "record 1 of task 0: error: tasks wait for each other: record 1 of task 0 needs id 3 at record 1 of task 1, which needs id 2 at record 1 of task 0"
    );
    assert_eq!(
        of_text.problems[0].to_string(),
        "line 4: error: tasks wait for each other: line 4 (task 0) needs id 3 at line 5 (task 1), which needs id 2 at line 4"
    );
}

#[test]
fn a_header_that_lies() {
    let text = format!("VEF3 3 5 2 2 3 0 1\n{}\n", GOOD.join("\n"));
    let report = check_with(&text, &Options::default());
    let said: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "line 1: error: the header promises 5 point-to-point lines, the file has 4",
            "line 1: error: the header promises 2 communicators, the file has 1",
            "line 1: error: the header promises 2 collectives, the file has 1",
            "line 1: error: the header promises 3 lines of collectives, the file has 2",
            "line 1: warning: 1 task without any record; the first is task 2",
        ]
    );
    assert_eq!((report.errors, report.warnings, report.kinds[&Kind::HeaderCount]), (4, 1, 4));
    assert!(!report.is_complete());

    let v2 = "VEF2 2 2 0 0 0 2 1\n0 0 1 8 0 0 -1\n1 1 1 0 0 0 -1\n";
    let said = &check_with(v2, &Options::default()).problems[0].text;
    assert_eq!(said, "the header promises 2 messages that are waited for, the file has 0");
}

#[test]
fn ids_and_dependencies() {
    assert_eq!(
        with(&[("3 1 1 0 3 7 G0", "0 1 1 0 3 7 G0")]),
        ["line 8: error: id 0 is that of line 3 already"]
    );
    assert_eq!(with(&[("C0 0 1", "C0 0 1\nC0 1")])[1], "line 3: error: communicator C0 is there already");
    assert_eq!(with(&[("2 0 0 0 3 7 G0", "2 0 0 0 1 7 2")]), ["line 7: error: record 2 waits for itself"]);
    assert_eq!(
        with(&[("2 0 0 0 3 7 G0", "2 0 0 0 1 7 9")]),
        ["line 7: error: waits for record 9, which does not exist"]
    );
    assert_eq!(
        with(&[("2 0 0 0 3 7 G0", "2 0 0 0 3 7 G9")]),
        ["line 7: error: waits for G9, which does not exist"]
    );
    assert_eq!(
        with(&[("2 0 0 0 3 7 G0", "2 0 0 0 1 7 1")]),
        ["line 7: error: task 0 waits for its send 1, which is one of task 1"]
    );
    assert_eq!(
        with(&[("2 0 0 0 3 7 G0", "2 0 0 0 2 7 0")]),
        ["line 7: error: task 0 waits for the reception of message 0, which goes to task 1"]
    );
    assert_eq!(
        with(&[("3 1 1 0 3 7 G0", "3 1 1 0 2 7 1")]),
        ["line 8: error: task 1 waits for the reception of 1, a local mark"]
    );
    assert_eq!(
        with(&[("0 0 1 80 4 10 -1", "0 0 1 80 0 10 -1")]),
        ["line 5: error: task 1 waits for message 0, which is not marked as awaited (dep without +4)"]
    );
    assert_eq!(
        with(&[("G0 C0 2 1 8 8 2 5 0", "G0 C0 2 1 8 8 1 5 1")]),
        ["line 3: warning: the message is marked as awaited (dep with +4), but no record waits for it"]
    );
    assert_eq!(
        problems(3, &["C0 0 1", GOOD[3], GOOD[4], "0 0 1 80 4 10 -1", "9 2 2 0 0 0 -1", "8 2 2 0 3 0 G0"])
            .last()
            .unwrap(),
        "line 7: error: task 2 waits for G0, of which it is not a member"
    );
}

#[test]
fn collectives_without_data_are_no_circle() {
    // Both tasks wait for one collective before they enter the other, in opposite order.
    let crossed = |parts: [&str; 4]| {
        let [a, b, c, d] = parts;
        let communicators = ["C0 0 1", "C1 1 0"];
        let records = [
            format!("G0 C0 {a} 0 -1"),
            format!("G1 C1 {b} 3 0 G0"),
            format!("G1 C1 {c} 0 -1"),
            format!("G0 C0 {d} 3 0 G1"),
            "0 0 0 0 3 0 G1".to_owned(),
            "1 1 1 0 3 0 G0".to_owned(),
        ];
        let mut lines: Vec<&str> = communicators.to_vec();
        lines.extend(records.iter().map(String::as_str));
        let records = lines.iter().map(|line| line.replace(" 0 -1", " 0 0 -1")).collect::<Vec<_>>();
        problems(2, &records.iter().map(String::as_str).collect::<Vec<_>>()).len()
    };
    // Allreduce, Bcast and Alltoallv (2, 0, 11) of nothing; barriers (6), and collectives with data.
    assert_eq!(crossed(["2 0 0 0", "2 0 0 0", "2 1 0 0", "2 1 0 0"]), 0);
    assert_eq!(crossed(["0 0 0 0", "0 0 0 0", "0 1 0 0", "0 1 0 0"]), 0);
    assert_eq!(crossed(["6 0 0 0", "6 0 0 0", "6 1 0 0", "6 1 0 0"]), 1);
    assert_eq!(crossed(["2 0 8 8", "2 0 8 8", "2 1 8 8", "2 1 8 8"]), 1);
    // Each task sends in the first that it enters, and obtains nothing.
    assert_eq!(crossed(["11 0 8 0", "11 0 0 8", "11 1 8 0", "11 1 0 8"]), 0);
    assert_eq!(crossed(["11 0 0 8", "11 0 8 0", "11 1 0 8", "11 1 8 0"]), 1);
}

#[test]
fn starts_ends_and_times() {
    assert_eq!(
        with(&[("0 0 1 80 4 10 -1", "0 0 1 80 5 10 2"), ("2 0 0 0 3 7 G0", "2 0 0 0 0 7 -1")])[..2],
        [
            "line 3: error: a task waits for itself: line 3 (task 0) needs id 2 at line 7, which comes after line 3",
            "line 3: warning: the first record of task 0 waits for something",
        ]
    );
    assert_eq!(
        with(&[("3 1 1 0 3 7 G0", "3 1 1 0 0 7 -1")]),
        [""; 0] // the first record of another thread
    );
    assert_eq!(
        with(&[("3 1 1 0 3 7 G0", "")]),
        ["line 5: warning: task 1 ends here, without the local mark of MPI_Finalize"]
    );
    assert_eq!(
        with(&[("3 1 1 0 3 7 G0", "3 1 1 0 3 18446744073709552 G0")]),
        ["line 8: error: the computing time of task 1 exceeds 2^64 ps"]
    );
}

#[test]
fn collectives_whose_members_disagree() {
    assert_eq!(
        with(&[("G0 C0 2 0 8 8 1 5 0", "G0 C0 6 0 8 8 1 5 0")]),
        ["line 6: error: G0 is operation 2, not 6 of task 1 at line 5"]
    );
    assert_eq!(
        with(&[("G0 C0 2 0 8 8 1 5 0", "G0 C5 2 0 8 8 1 5 0")]),
        ["line 6: error: no line above describes communicator C5"]
    );
    assert_eq!(with(&[("C0 0 1", "C0 1")]), ["line 6: error: task 0 does not belong to communicator C0"]);
    assert_eq!(with(&[("C0 0 1", "C0 0 1\nC1 1 1")])[1], "line 3: error: task 1 is in communicator C1 twice");
    assert_eq!(
        with(&[("G0 C0 2 0 8 8 1 5 0", ""), ("2 0 0 0 3 7 G0", "")])[1],
        "line 5: error: G0 has lines of 1 of 2 members of C0: task 0 makes fewer calls"
    );
    assert_eq!(
        with(&[("C0 0 1", "C0 0 1\nC1 1 0"), ("G0 C0 2 0 8 8 1 5 0", "G0 C1 2 0 8 8 1 5 0")])[1],
        "line 7: error: G0 is on another communicator than C1 of task 1 at line 6"
    );
    // Two collectives, called in another order by task 1.
    let crossed = [
        "C0 0 1",
        "G0 C0 6 0 0 0 0 1 -1",
        "G1 C0 6 0 0 0 3 1 G0",
        "G1 C0 6 1 0 0 0 1 -1",
        "G0 C0 6 1 0 0 3 1 G1",
        "0 0 0 0 3 0 G1",
        "1 1 1 0 3 0 G0",
    ];
    assert_eq!(
        problems(2, &crossed),
        [
            "line 5: error: G1 is call 1 of task 1 on C0, but call 2 of task 0 at line 4",
            "line 6: error: G0 is call 2 of task 1 on C0, but call 1 of task 0 at line 3",
        ]
    );
    let roots =
        ["C0 0 1", "G0 C0 0 0 8 0 0 1 -1", "G0 C0 0 1 8 0 0 1 -1", "0 0 0 0 3 0 G0", "1 1 1 0 3 0 G0"];
    assert_eq!(problems(2, &roots), ["line 4: error: G0 has two roots by its sizes: tasks 0 and 1"]);
}

#[test]
fn operation_codes_of_another_table() {
    let text = format!("VEF3 2 4 1 1 2 0 1\n{}\n", GOOD.join("\n"));
    let op_codes = OpCodes::parse("7 Allreduce", Path::new("codes")).unwrap();
    let report = check_with(&text, &Options { op_codes, keep: 1 });
    assert_eq!(report.tallies.operations["code 2"].lines, 2);
    assert_eq!((report.errors, report.problems.len()), (2, 1), "all are counted, one is kept");
    assert_eq!(report.problems[0].text, "operation code 2 is not in the table");
}

#[test]
fn cycles() {
    // Both receive before they send.
    let head_to_head = [
        "0 0 0 0 0 1 -1",
        "1 1 1 0 0 1 -1",
        "2 0 1 8 6 1 3",
        "3 1 0 8 6 1 2",
        "4 0 0 0 1 1 2",
        "5 1 1 0 1 1 3",
    ];
    let report = report(2, &head_to_head);
    assert_eq!(
        report.problems[0].to_string(),
        "line 4: error: tasks wait for each other: line 4 (task 0) needs id 3 at line 5 (task 1), \
         which needs id 2 at line 4"
    );
    assert_eq!((report.problems.len(), report.stuck_tasks), (1, 2));
    assert_eq!(report.problems[0].related, [4, 5, 5, 4]);

    // Task 0 waits for a message that task 1 sends only after a barrier; task 2 waits for that barrier.
    let through_barrier = [
        "C0 0 1 2",
        "0 0 0 0 0 1 -1",
        "G0 C0 6 0 0 0 2 1 1",
        "1 1 0 8 7 1 G0",
        "G0 C0 6 1 0 0 0 1 -1",
        "G0 C0 6 2 0 0 0 1 -1",
        "2 2 2 0 3 1 G0",
    ];
    let mut ordered = through_barrier;
    ordered.swap(3, 4);
    let report = self::report(3, &ordered);
    assert_eq!(
        report.problems.iter().find(|problem| problem.kind == Kind::Cycle).unwrap().text,
        "tasks wait for each other: line 4 (task 0) needs id 1 at line 6 (task 1), which needs G0 at line 4"
    );
    assert_eq!(report.stuck_tasks, 3);

    // The same through a Bcast: whether task 1 waits for task 0 there depends on who is the root.
    let through_bcast = |root: u32| {
        let part = |task: u32| if task == root { "8 0" } else { "0 8" };
        let lines = [
            "C0 0 1".to_owned(),
            "0 0 0 0 0 1 -1".to_owned(),
            format!("G0 C0 0 0 {} 2 1 1", part(0)),
            format!("G0 C0 0 1 {} 0 1 -1", part(1)),
            "1 1 0 8 7 1 G0".to_owned(),
        ];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        self::report(2, &lines).kinds.get(&Kind::Cycle).copied()
    };
    assert_eq!((through_bcast(0), through_bcast(1)), (Some(1), None));

    // The same with a Reduce: the root, task 1, needs the data of task 0; a leaf needs no data.
    let through_reduce = |root: u32| {
        let part = |task: u32| if task == root { "0 8" } else { "8 0" };
        let lines = [
            "C0 0 1".to_owned(),
            "0 0 0 0 0 1 -1".to_owned(),
            format!("G0 C0 1 0 {} 2 1 1", part(0)),
            format!("G0 C0 1 1 {} 0 1 -1", part(1)),
            "1 1 0 8 7 1 G0".to_owned(),
        ];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        self::report(2, &lines).kinds.get(&Kind::Cycle).copied()
    };
    assert_eq!((through_reduce(1), through_reduce(0)), (Some(1), None));

    // A task that waits for a collective before it calls it.
    let early = ["C0 0", "0 0 0 0 0 1 -1", "1 0 0 0 3 1 G0", "G0 C0 6 0 0 0 1 1 1", "2 0 0 0 3 0 G0"];
    assert_eq!(
        problems(1, &early),
        [
            "line 4: error: a task waits for itself: line 4 (task 0) needs G0 at line 5, which comes after line 4"
        ]
    );
}

#[test]
fn a_long_cycle_and_those_that_wait_for_it_take_linear_time() {
    // Task i waits for task i + 1, the last for task 0; as many more tasks wait for task 0.
    let tasks = 60_000u32;
    let mut text = format!("VEF3 {} {} 0 0 0 0 1\n", 2 * tasks, 4 * tasks);
    for task in 0..2 * tasks {
        use std::fmt::Write;
        let after = if task < tasks { (task + 1) % tasks } else { 0 };
        writeln!(text, "{} {task} {task} 0 0 1 -1", 2 * tasks + task).unwrap();
        // Ring messages go to the one before; the others' go nowhere that matters.
        let dst = if task < tasks { (task + tasks - 1) % tasks } else { task };
        let after = if task < tasks { after } else { task };
        writeln!(text, "{task} {task} {dst} 8 6 1 {after}").unwrap();
    }
    let report = check_with(&text, &Options::default());
    let cycle = report.problems.iter().find(|problem| problem.kind == Kind::Cycle).unwrap();
    assert!(cycle.text.ends_with("and so on over 59 988 more tasks back to line 3"), "{}", cycle.text);
    assert_eq!(report.kinds[&Kind::Cycle], 1);
    assert_eq!(report.stuck_tasks, u64::from(tasks));
    assert_eq!(report.kinds[&Kind::SelfDependency], u64::from(tasks));
}

#[test]
fn a_header_of_very_many_tasks_costs_nothing() {
    let text = "VEF3 2147483647 2 1 0 0 0 1\nC0 0 2147483646\n0 2147483646 0 8 0 1 -1\n1 2147483646 2147483646 0 1 1 0\n";
    let report = check_with(text, &Options::default());
    assert_eq!(report.problems.len(), 1);
    assert_eq!(report.problems[0].text, "2 147 483 646 tasks without any record; the first is task 0");
}

#[test]
fn lines_are_right_among_empty_ones() {
    let text = "VEF3 1 3 1 0 0 0 1\n\n0 0 0 0 0 1 -1\n\n\n1 0 0 0 1 1 0\nC0 0\n2 0 0 0 1 1 77\n";
    assert_eq!(check_with(text, &Options::default()).problems[0].place.line, 8);
}

//! Programs with several threads: only MPI and their own waits order them, and their traces replay to the end.

use crate::capture::{self, Happened, WORLD, What, receiving, sending};
use crate::model::{self, Plan};
use crate::stepper;
use mixer::{Options, Quiet, Summary, mix};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::Path;
use vef_format::capture::RankInfo;
use vef_format::capture::event::*;
use vef_format::container::{About, Note, Reader, Section, Settings};
use vef_format::convert::convert;
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::record::Record;
use vef_format::units::{Bytes, Ticks};

/// A capture under construction with explicit times of calls.
struct Program(Vec<Vec<Happened>>);

impl Program {
    fn new(tasks: u32) -> Self {
        let mut program = Self((0..tasks).map(|_| Vec::new()).collect());
        for rank in 0..tasks {
            program.call(rank, 0, (0, 10), Action::Init);
            let members = (0..tasks).map(Rank).collect();
            let what = What::Communicator { id: WORLD, origin: Origin::World, members };
            program.add(rank, 0, (11, 11), what);
        }
        program
    }

    fn add(&mut self, rank: u32, thread: u16, (start, end): (u64, u64), what: What) {
        self.0[rank as usize].push(Happened { start, end, thread, what });
    }

    fn call(&mut self, rank: u32, thread: u16, times: (u64, u64), action: Action<'static>) {
        self.add(rank, thread, times, What::Plain(action));
    }

    fn send(&mut self, rank: u32, thread: u16, times: (u64, u64), to: u32, tag: i32, bytes: u64) {
        self.call(rank, thread, times, Action::Send(sending(to, tag, bytes, None)));
    }

    fn receive(&mut self, rank: u32, thread: u16, times: (u64, u64), from: u32, tag: i32) {
        self.call(rank, thread, times, Action::Receive(receiving(from, tag)));
    }

    /// A communicator of all tasks, the `ordinal`th made by `MPI_Comm_dup`.
    fn duplicate(&mut self, ordinal: u32) -> CommId {
        let id = CommId(ordinal + 1);
        let all = self.0.len() as u32;
        for rank in 0..all {
            let origin = Origin::Child { parent: WORLD, ordinal };
            let members = (0..all).map(Rank).collect();
            self.add(rank, 0, (12, 12), What::Communicator { id, origin, members });
        }
        id
    }

    fn collective(&mut self, rank: u32, thread: u16, times: (u64, u64), comm: CommId, root: Option<u32>) {
        let operation = if root.is_some() { Operation::Bcast } else { Operation::Allreduce };
        let (send, recv) = match root {
            None => (8, 8),
            Some(root) if root == rank => (8, 0),
            Some(_) => (0, 8),
        };
        let call = Collective {
            operation,
            comm,
            root: root.map(CommRank),
            amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
            count: 0,
            datatype: DatatypeId(0),
            recv_datatype: None,
            request: None,
            send_counts: &[],
            recv_counts: &[],
        };
        self.call(rank, thread, times, Action::Collective(call));
    }

    /// The lines of the trace, and the summary. The trace must replay to its end, also when mixed in parts.
    fn lines(mut self, end: u64) -> (Vec<String>, Summary) {
        for rank in 0..self.0.len() as u32 {
            self.call(rank, 0, (end, end + 10), Action::Finalize);
        }
        for events in &mut self.0 {
            events.sort_by_key(|event| (event.start, event.end));
        }
        mixed(&self.0)
    }
}

/// The lines of the trace of a run, and the summary; the trace must replay to its end.
fn mixed(events: &[Vec<Happened>]) -> (Vec<String>, Summary) {
    let (lines, summary, stuck) = mixed_to(events);
    assert_eq!(stuck, [], "tasks that do not come to their end:\n{}", lines.join("\n"));
    (lines, summary)
}

/// The lines of the trace of a run, the summary, and the tasks that do not reach their ends if no member leaves a collective early.
fn mixed_to(events: &[Vec<Happened>]) -> (Vec<String>, Summary, Vec<(usize, usize)>) {
    let dir = tempfile::tempdir().unwrap();
    let (place, trace) = (dir.path().join("capture"), dir.path().join("t.vef"));
    capture::write(&place, events);
    let in_parts = Options { memory: Some(Bytes(1)), jobs: 2, ..Options::default() };
    mix(&place, &trace, &in_parts, &Quiet).unwrap();
    let parts = std::fs::read_to_string(&trace).unwrap();
    let summary = mix(&place, &trace, &Options { jobs: 1, ..Options::default() }, &Quiet).unwrap();
    let text = std::fs::read_to_string(&trace).unwrap();
    assert!(parts == text, "parts write another trace than the whole");
    let (container, again) = (dir.path().join("t.vefx"), dir.path().join("again.vefx"));
    mix(&place, &container, &Options { jobs: 1, ..Options::default() }, &Quiet).unwrap();
    mix(&place, &again, &in_parts, &Quiet).unwrap();
    assert!(std::fs::read(&again).unwrap() == std::fs::read(&container).unwrap(), "parts write other notes");
    convert(&container, &again.with_extension("vef"), &About::default(), Settings::default()).unwrap();
    assert!(
        std::fs::read_to_string(again.with_extension("vef")).unwrap() == text,
        "another trace in the container"
    );
    every_record_has_its_function(&container);
    let report = vef_format::validate::validate(&trace, &Default::default()).unwrap();
    assert!(report.is_complete() && report.warnings == 0, "{:?}", report.problems);
    (text.lines().map(str::to_owned).collect(), summary, stepper::stuck(&trace))
}

/// The notes of a section of one task.
fn notes(reader: &Reader, section: Section, task: u32) -> Vec<String> {
    let mut notes = reader.notes(section, Rank(task)).unwrap();
    let next = || notes.next(reader).unwrap().map(|(place, note)| format!("{place} {note:?}"));
    std::iter::from_fn(next).collect()
}

/// Only a message was sent by a sending function, and only a part of a collective made by a collective one.
fn every_record_has_its_function(container: &Path) {
    let reader = Reader::open(container).unwrap();
    for task in reader.tasks() {
        let mut calls = reader.notes(Section::Calls, task).unwrap();
        let (mut function, mut next) = (String::new(), calls.next(&reader).unwrap().map(owned));
        let mut records = reader.task(task);
        let mut at = 0;
        while let Some(line) = records.next().unwrap() {
            while let Some((place, name)) = next.take_if(|(place, _)| *place <= at) {
                assert_eq!(place, at, "task {task}: a note is out of order");
                function = name;
                next = calls.next(&reader).unwrap().map(owned);
            }
            let line = line.to_record();
            let sends = ["MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend", "MPI_Sendrecv"];
            let is_send = sends.contains(&function.as_str()) || function.ends_with("send");
            let other = ["MPI_Recv", "MPI_Wait", "MPI_Probe", "MPI_Mprobe", "MPI_Finalize"]
                .contains(&function.as_str());
            let fits = match &line {
                // A mark, maybe of a collective that starts; or a message.
                Record::Message(message) if message.src == message.dst && message.bytes == Bytes::ZERO => {
                    is_send || other || function.starts_with("MPI_I")
                }
                Record::Message(_) => is_send,
                _ => !is_send && !other && !function.is_empty(),
            };
            assert!(fits, "task {task}, record {at}: {line:?} of {function:?}");
            at += 1;
        }
        assert_eq!(next, None, "task {task} has {at} records");
    }
}

fn owned((place, note): (u64, Note<'_>)) -> (u64, String) {
    let Note::Call(name) = note else { panic!("{note:?} among the calls") };
    (place, name.to_owned())
}

fn of_task(lines: &[String], task: &str) -> Vec<String> {
    let records = lines.iter().filter(|line| !line.starts_with('C'));
    records.filter(|line| line.split(' ').nth(1) == Some(task)).cloned().collect()
}

#[test]
fn a_listener_holds_nobody_up_and_releases_nobody() {
    let mut program = Program::new(2);
    // The second thread of task 0 receives while the first sends and is answered five times.
    program.receive(0, 1, (20, 5000), 1, 9);
    for round in 0..5 {
        let at = 100 + 100 * round;
        program.send(0, 0, (at, at + 5), 1, 0, 10 + round);
        program.receive(0, 0, (at + 10, at + 80), 1, 0);
        program.receive(1, 0, (at - 15, at + 30), 0, 0);
        program.send(1, 0, (at + 40, at + 45), 0, 0, 20 + round);
    }
    program.send(1, 0, (4900, 4905), 0, 9, 1);
    let (lines, summary) = program.lines(6000);
    assert_eq!((summary.threaded, summary.negative_times), (1, 0));
    // Each ping but the first depends on the pong before it.
    let ids: HashMap<&str, &str> = lines[2..]
        .iter()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|fields| fields[1] == "1" && fields[2] == "0")
        .map(|fields| (fields[3], fields[0]))
        .collect();
    let pings: Vec<Vec<&str>> = lines[2..]
        .iter()
        .map(|line| line.split(' ').collect())
        .filter(|fields: &Vec<&str>| fields[1] == "0" && fields[2] == "1")
        .collect();
    assert_eq!(pings.len(), 5);
    for (round, ping) in pings.iter().enumerate().skip(1) {
        let pong = ids[(19 + round).to_string().as_str()];
        assert_eq!((ping[4], ping[6]), ("6", pong), "ping {round}: {ping:?}");
        // From the end of the pong's reception.
        assert_eq!(ping[5], "20");
    }
    // The receiving thread's mark comes first; the first ping is timed from it, because it began before.
    assert_eq!(of_task(&lines, "0")[..2], ["0 0 0 0 0 10 -1", "2 0 1 10 4 80 -1"]);
}

#[test]
fn calls_of_threads_are_not_chained() {
    let mut program = Program::new(2);
    let (x, y) = (program.duplicate(0), program.duplicate(1));
    // Each thread has its own communicator; the tasks call them in opposite order, one after the other.
    program.collective(0, 0, (100, 210), x, None);
    program.collective(0, 1, (300, 410), y, None);
    program.collective(1, 1, (100, 400), y, None);
    program.collective(1, 0, (200, 205), x, None);
    let (lines, _) = program.lines(1000);
    for line in lines.iter().filter(|line| line.starts_with('G')) {
        assert!(line.ends_with(" -1"), "{line}: follows nothing of its thread");
    }
}

#[test]
fn a_thread_is_let_past_one_that_would_wait_for_ever() {
    let mut program = Program::new(2);
    // Task 0 leaves a broadcast at once and then sends to task 1's second thread; the first thread calls the broadcast only later.
    // If the broadcast synchronised its members, the program would still complete, but one sequence would not.
    program.collective(0, 0, (100, 110), WORLD, Some(0));
    program.send(0, 0, (120, 125), 1, 3, 5);
    program.receive(1, 1, (50, 200), 0, 3);
    program.send(1, 1, (210, 215), 0, 4, 6);
    program.collective(1, 0, (300, 310), WORLD, Some(0));
    program.receive(0, 0, (400, 410), 1, 4);
    let (lines, summary) = program.lines(1000);
    assert_eq!(summary.messages, 2);
    // Task 1: the waiting mark, the broadcast, and then the record that the message behind the broadcast releases. It began before
    // the broadcast, so its time is 0.
    let task = of_task(&lines, "1");
    let position = |part: &str| lines.iter().position(|line| line.contains(part)).unwrap();
    assert!(position("C0 0 1 0 8") < position(" 1 0 6 "), "{lines:?}");
    assert!(task.iter().any(|line| line.contains(" 1 0 6 6 0 ")), "{task:?}");
}

#[test]
fn a_program_that_relies_on_an_early_end_of_a_collective_is_mixed_all_the_same() {
    let mut program = Program::new(2);
    program.collective(0, 0, (100, 110), WORLD, Some(0));
    program.send(0, 0, (120, 125), 1, 3, 5);
    program.receive(1, 0, (130, 140), 0, 3);
    program.collective(1, 0, (150, 160), WORLD, Some(0));
    program.send(0, 1, (20, 25), 1, 7, 1);
    program.receive(1, 1, (20, 30), 0, 7);
    for rank in 0..2 {
        program.call(rank, 0, (1000, 1010), Action::Finalize);
    }
    let (_, summary, stuck) = mixed_to(&program.0);
    assert_eq!((summary.messages, summary.collectives), (2, 1));
    assert!(!stuck.is_empty(), "it is no program that MPI promises to run");
}

#[test]
fn receives_of_two_threads_meet_messages_that_were_sent_before() {
    let mut program = Program::new(2);
    // Both threads of task 0 post the same receive; the later one gets the first message and makes task 1 send the second.
    program.receive(0, 0, (100, 900), 1, 0);
    program.receive(0, 1, (110, 200), 1, 0);
    program.send(0, 1, (210, 215), 1, 1, 1);
    program.send(1, 0, (150, 155), 0, 0, 2);
    program.receive(1, 0, (160, 300), 0, 1);
    program.send(1, 0, (310, 315), 0, 0, 3);
    let (lines, _) = program.lines(1000);
    let line = |part: &str| lines.iter().find(|line| line.contains(part)).unwrap();
    let first = line(" 1 0 2 ").split(' ').next().unwrap();
    assert!(line(" 0 1 1 ").ends_with(&format!(" 10 {first}")), "{lines:?}");
}

/// The first message goes to a receive that began during the probe, so the probe found the second one.
#[test]
fn a_probe_found_the_message_that_was_received_behind_it() {
    let mut program = Program::new(2);
    let probe = Action::Probe { comm: WORLD, source: CommRank(0), tag: 0 };
    program.call(1, 0, (100, 400), probe);
    program.receive(1, 1, (110, 200), 0, 0);
    program.receive(1, 1, (500, 510), 0, 0);
    program.send(0, 0, (150, 155), 1, 0, 1);
    program.send(0, 0, (350, 355), 1, 0, 2);
    let (lines, summary) = program.lines(1000);
    assert_eq!(summary.found_only, 0);
    let expected = [
        // The starts of the probe and of the first receive.
        "0 1 1 0 0 90 -1",
        "1 1 1 0 0 10 -1",
        // The probe returns with the second message, "3".
        "4 1 1 0 2 0 3",
        // The second receive, after the first message; then the ends of both threads.
        "5 1 1 0 2 100 2",
        "7 1 1 0 1 490 5",
        "8 1 1 0 1 0 4",
    ];
    assert_eq!(of_task(&lines, "1"), expected, "{lines:?}");
}

/// Another thread finds the message, too, and returns first: its records must not be in front of the only wait.
#[test]
fn of_two_probes_of_a_message_the_first_to_return_waits_for_it() {
    let mut program = Program::new(2);
    let probe = || Action::Probe { comm: WORLD, source: CommRank(0), tag: 0 };
    program.call(1, 0, (100, 400), probe());
    program.call(1, 1, (200, 250), probe());
    program.receive(1, 1, (500, 510), 0, 0);
    program.send(0, 0, (150, 155), 1, 0, 8);
    let (lines, _) = program.lines(1000);
    let task = of_task(&lines, "1");
    let of_message: Vec<&String> = task.iter().filter(|line| line.split(' ').nth(4) == Some("2")).collect();
    // The mark at 250, whose thread began at 200; that of the other thread, at 400, follows its own.
    assert_eq!(of_message, [&task[2]], "{lines:?}");
    assert!(task[2].ends_with(" 2 0 1"), "{lines:?}");
}

#[test]
fn the_further_marks_of_a_wait_let_other_threads_pass() {
    let mut program = Program::new(2);
    let receive = |number, tag| {
        Action::PostReceive(PostReceive {
            comm: WORLD,
            source: Some(CommRank(1)),
            tag: Some(tag),
            bytes: Bytes(64),
            datatype: DatatypeId(0),
            request: RequestId { thread: 0, number },
        })
    };
    program.call(0, 0, (20, 21), receive(0, 0));
    program.call(0, 0, (22, 23), receive(1, 1));
    program.call(0, 0, (24, 25), receive(2, 2));
    let done = |number| Completion { request: RequestId { thread: 0, number }, outcome: Outcome::Done };
    program.add(0, 0, (30, 900), What::Complete(vec![done(0), done(1), done(2)]));
    // The third message is sent only after the other thread has requested it.
    program.send(0, 1, (500, 505), 1, 5, 7);
    program.send(1, 0, (40, 45), 0, 0, 1);
    program.send(1, 0, (50, 55), 0, 1, 2);
    program.receive(1, 0, (60, 520), 0, 5);
    program.send(1, 0, (530, 535), 0, 2, 3);
    let (lines, _) = program.lines(1000);
    // The first mark, the other thread's message, the other marks, Finalize.
    let kinds: Vec<String> =
        of_task(&lines, "0").iter().map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect();
    assert_eq!(kinds, ["0", "1", "0", "0", "0"]);
}

/// Each note is at its record, whatever other threads do between.
#[test]
fn a_container_has_the_notes_of_all_threads() {
    let mut program = Program::new(2);
    let own = |thread, number| RequestId { thread, number };
    let isend = |tag, request| Action::Send(sending(1, tag, 5000, Some(request)));
    let wait = |requests: &[RequestId]| {
        let done = |&request: &RequestId| Completion { request, outcome: Outcome::Done };
        What::Complete(requests.iter().map(done).collect())
    };
    let receive = |number, tag| {
        Action::PostReceive(PostReceive {
            comm: WORLD,
            source: Some(CommRank(1)),
            tag: Some(tag),
            bytes: Bytes(64),
            datatype: DatatypeId(0),
            request: own(1, number),
        })
    };
    let counts = Collective {
        operation: Operation::Alltoallv,
        comm: WORLD,
        root: None,
        amounts: Amounts { send: Bytes(12), recv: Bytes(12) },
        count: 0,
        datatype: DatatypeId(0),
        recv_datatype: None,
        request: None,
        send_counts: &[5, 7],
        recv_counts: &[5, 7],
    };
    program.call(0, 1, (20, 21), receive(0, 5));
    program.call(0, 1, (22, 23), receive(1, 6));
    program.call(0, 0, (100, 110), isend(7, own(0, 0)));
    program.send(0, 1, (150, 160), 1, 8, 1);
    program.call(0, 0, (170, 170), Action::Phase { begin: true, name: "solve" });
    // Of this wait of the first thread, 10 ns are before the second thread's send.
    program.add(0, 0, (200, 260), wait(&[own(0, 0)]));
    program.send(0, 1, (210, 220), 1, 8, 2);
    program.send(0, 0, (300, 310), 1, 7, 3);
    // The second thread waits for a send of the first.
    program.call(0, 0, (320, 330), isend(7, own(0, 1)));
    program.add(0, 1, (340, 360), wait(&[own(0, 1)]));
    program.send(0, 1, (400, 410), 1, 8, 4);
    // Its second mark begins at its end, behind a record of the first thread.
    program.add(0, 1, (500, 600), wait(&[own(1, 0), own(1, 1)]));
    program.call(0, 0, (550, 560), Action::Collective(counts.clone()));
    program.call(0, 0, (565, 565), Action::Phase { begin: false, name: "solve" });
    // The last records of the second thread: nothing of it is behind the wait.
    program.call(0, 1, (700, 710), isend(9, own(1, 2)));
    program.add(0, 1, (720, 790), wait(&[own(1, 2)]));
    for (at, tag) in [(30, 5), (40, 6)] {
        program.send(1, 0, (at, at + 5), 0, tag, 10);
    }
    for (at, tag) in [(120, 7), (165, 8), (230, 8), (312, 7), (335, 7), (415, 8)] {
        program.receive(1, 0, (at, at + 5), 0, tag);
    }
    program.call(1, 0, (550, 560), Action::Collective(counts));
    program.receive(1, 0, (720, 730), 0, 9);
    for rank in 0..2 {
        program.call(rank, 0, (900, 910), Action::Finalize);
    }
    program.0.iter_mut().for_each(|events| events.sort_by_key(|event| (event.start, event.end)));
    mixed(&program.0);
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vefx"));
    capture::write(&capture, &program.0);
    mix(&capture, &trace, &Options::default(), &Quiet).unwrap();
    let reader = Reader::open(&trace).unwrap();
    let said = |section, expected: &[(u64, Note<'_>)]| {
        let expected: Vec<String> =
            expected.iter().map(|(place, note)| format!("{place} {note:?}")).collect();
        assert_eq!(notes(&reader, section, 0), expected);
    };
    // The records of task 0: 0 Isend, 1 Send, 2 Send, 3 Send, 4 Isend, 5 Send, 6 mark, 7 collective, 8 mark, 9 Isend, 10 Finalize;
    // of the second thread are 1, 2, 5, 6, 8 and 9.
    let wait = |send, before, took| Note::SendWait { send, before: Ticks(before), took: Ticks(took) };
    said(
        Section::Sends,
        &[
            (0, Note::Detached),
            // The record counts from the start of record 2, within the wait. What overlaps it is taken from computing.
            (3, wait(0, 50, 0)),
            (4, Note::Detached),
            // The record counts from the start of record 4.
            (5, wait(4, 40, 0)),
            (9, Note::Detached),
            (10, wait(9, 0, 0)),
        ],
    );
    said(Section::Tags, &[(0, 7), (1, 8), (3, 7), (5, 8), (9, 9)].map(|(at, tag)| (at, Note::Tag(tag))));
    let calls = [
        (0, "MPI_Isend"),
        (1, "MPI_Send"),
        (4, "MPI_Isend"),
        (5, "MPI_Send"),
        (6, "MPI_Wait"),
        (7, "MPI_Alltoallv"),
        (8, "MPI_Wait"),
        (9, "MPI_Isend"),
        (10, "MPI_Finalize"),
    ];
    said(Section::Calls, &calls.map(|(at, name)| (at, Note::Call(name))));
    said(Section::Counts, &[(7, Note::Counts { sent: &[5, 7], received: &[5, 7] })]);
    // In front of the next record of any thread. Of that in front of record 2, the second thread computed 10 ns before; record 8 begins at the end of
    // a call that began before.
    let phase = |begin| Note::Phase { begin, name: "solve" };
    said(Section::Phases, &[(2, phase(true)), (8, phase(false))]);
    let before = |nanos| Note::BeforePhase(Ticks(nanos));
    said(Section::Moments, &[(0, Note::Moment(Ticks(90))), (2, before(10)), (8, before(0))]);
    said(Section::Spans, &[(0, Note::StartUp(Ticks(10))), (0, Note::Finalised(Ticks(900)))]);
}

/// When records began, and phases, counts from a task's own start, whatever the clock of its host.
#[test]
fn notes_of_threads_do_not_depend_on_the_clock_of_their_host() {
    let mut program = Program::new(2);
    let at = |micros: u64| (1000 * micros, 1000 * micros + 10);
    program.send(1, 0, at(20), 0, 7, 1);
    program.call(1, 0, at(45), Action::Phase { begin: true, name: "solve" });
    program.send(1, 1, at(60), 0, 8, 1);
    program.call(1, 0, at(65), Action::Phase { begin: false, name: "solve" });
    program.send(1, 0, at(90), 0, 7, 1);
    for (micros, tag) in [(30, 7), (70, 8), (95, 7)] {
        program.receive(0, 0, at(micros), 1, tag);
    }
    (0..2).for_each(|rank| program.call(rank, 0, at(120), Action::Finalize));
    let noted = |later: u64| {
        let dir = tempfile::tempdir().unwrap();
        capture::write_with(dir.path(), &program.0, |rank| RankInfo {
            host: ["one", "two"][rank].into(),
            realtime: 1_000_000_000 + later * rank as u64,
            ..RankInfo::default()
        });
        let trace = dir.path().join("t.vefx");
        mix(dir.path(), &trace, &Options::default(), &Quiet).unwrap();
        let reader = Reader::open(&trace).unwrap();
        [Section::Phases, Section::Moments].map(|section| notes(&reader, section, 1))
    };
    let [phases, moments] = noted(0);
    let phase = |begin| Note::Phase { begin, name: "solve" };
    assert_eq!(
        phases,
        [(1, phase(true)), (2, phase(false))].map(|(place, note)| format!("{place} {note:?}"))
    );
    let moment = |nanos| Note::Moment(Ticks(nanos));
    let before = |nanos| Note::BeforePhase(Ticks(nanos));
    // The second thread computes from the beginning on; 20 µs of that are in front of the first one's send. After the phase, the first one has computed since then.
    let expected = [
        (0, moment(19_990)),
        (1, moment(59_990)),
        (2, moment(89_990)),
        (3, moment(119_990)),
        (1, before(25_000)),
        (2, before(5000)),
    ];
    assert_eq!(moments, expected.map(|(place, note)| format!("{place} {note:?}")));
    assert_eq!(noted(5_000_000), [phases, moments]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn random_programs_replay_to_their_end(
        seed: u64,
        tasks in 2u32..7,
        threads in 1u16..4,
        steps in 0usize..250,
    ) {
        let run = model::run_plan(seed, Plan { tasks, threads, early: false, steps });
        let (_, summary) = mixed(&run.events);
        prop_assert_eq!(summary.matched, summary.messages);
        // A program may rely on members that leave collectives early.
        let run = model::run_plan(seed, Plan { tasks, threads, early: true, steps });
        let (_, summary, _) = mixed_to(&run.events);
        prop_assert_eq!(summary.matched, summary.messages);
    }
}

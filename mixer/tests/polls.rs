//! Failed polls: waiting in front of a reception, computing elsewhere.

use crate::capture::{self, Happened, Program, What, receiving, sending};
use mixer::{Options, Polls, Quiet, SendWaits, Summary, mix};
use std::path::Path;
use vef_format::capture::event::*;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::{CommRank, Rank};
use vef_format::units::Ticks;

fn request(number: u64) -> RequestId {
    RequestId { thread: 0, number }
}

/// Task 1 receives three messages and sends two, with polls in front of most of these.
fn program() -> Program {
    let mut program = Program::new(2);
    for tag in [0, 5, 6] {
        program.send(0, 1, tag, 64);
    }
    program.receive(0, 1, 1).receive(0, 1, 2);
    let mut call = |start, end, action| {
        program.tasks[1].push(Happened { start, end, thread: 0, what: What::Plain(action) });
    };
    let post = PostReceive {
        comm: capture::WORLD,
        source: Some(CommRank(0)),
        tag: Some(0),
        bytes: vef_format::units::Bytes(64),
        datatype: DatatypeId(0),
        request: request(0),
    };
    let done = |first| Action::Complete(Completions::Run { first: request(first), count: 1 });
    // Rank 1 leaves MPI_Init at 1310.
    call(2000, 2010, Action::PostReceive(post));
    call(3000, 8000, Action::Polls { count: 50 });
    call(9000, 9500, Action::Polls { count: 5 });
    call(9600, 9610, done(0));
    // In front of a send.
    call(10_000, 10_400, Action::Polls { count: 4 });
    call(10_500, 10_510, Action::Send(sending(0, 1, 64, None)));
    // For a message that a probe finds.
    call(11_000, 12_000, Action::Polls { count: 9 });
    call(12_010, 12_020, Action::Probe { comm: capture::WORLD, source: CommRank(0), tag: 5 });
    call(12_050, 12_060, Action::Receive(receiving(0, 5)));
    // For the completion of a send, which has no record.
    call(13_000, 13_010, Action::Send(sending(0, 2, 64, Some(request(1)))));
    call(14_000, 15_000, Action::Polls { count: 9 });
    call(15_010, 15_020, done(1));
    call(16_000, 16_010, Action::Receive(receiving(0, 6)));
    program.now = program.now.max(17_000);
    program.finish();
    program
}

fn mixed(trace: &Path, options: Options) -> Summary {
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program().tasks);
    mix(dir.path(), trace, &options, &Quiet).unwrap()
}

/// The times of task 1's records but the last, and the duration of awaited polls in the summary.
fn times(polls: Polls) -> (Vec<u64>, u64) {
    let (times, awaited, _) = times_of(Options { polls, ..Options::default() });
    (times, awaited)
}

/// The same, and the duration of polls that are kept.
fn times_of(options: Options) -> (Vec<u64>, u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vef"));
    capture::write(&capture, &program().tasks);
    let summary = mix(&capture, &trace, &options, &Quiet).unwrap();
    let text = std::fs::read_to_string(trace).unwrap();
    let of_task = text.lines().skip(2).filter(|line| line.split(' ').nth(1) == Some("1"));
    let mut times: Vec<u64> = of_task.map(|line| line.split(' ').nth(5).unwrap().parse().unwrap()).collect();
    times.pop();
    (times, summary.spent.awaited, summary.spent.polls_kept)
}

#[test]
fn failed_polls_are_a_wait_where_a_completion_follows() {
    // The last record is behind a wait for a send, of 10 ns.
    assert_eq!(times(Polls::Wait), (vec![8290 - 5500, 890, 1500 - 1000, 0, 30, 940, 2990 - 1010], 7500));
    assert_eq!(times(Polls::Compute), (vec![8290, 890, 1500, 0, 30, 940, 2990 - 10], 0));
    // A poll usually takes 100 ns: what the nine for the completion of the send took beyond that is in no record.
    let computed = Options { send_waits: SendWaits::Compute, ..Options::default() };
    assert_eq!(times_of(computed), (vec![8290 - 5500, 890, 1500 - 1000, 0, 30, 940, 2990 - 100], 6600, 1300));
}

#[test]
fn a_container_has_polls_for_a_send_as_part_of_its_wait() {
    for (polls, send_waits, expected) in [
        (Polls::Wait, SendWaits::Replay, (1000, 0)),
        (Polls::Compute, SendWaits::Replay, (2000, 0)),
        (Polls::Wait, SendWaits::Compute, (1000, 910)),
        (Polls::Compute, SendWaits::Compute, (2000, 10)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("t.vefx");
        mixed(&trace, Options { polls, send_waits, ..Options::default() });
        let reader = Reader::open(&trace).unwrap();
        let mut notes = reader.notes(Section::Sends, Rank(1)).unwrap();
        let mut waits = Vec::new();
        while let Some((_, note)) = notes.next(&reader).unwrap() {
            if let Note::SendWait { before: Ticks(before), took: Ticks(took), .. } = note {
                waits.push((before, took));
            }
        }
        assert_eq!(waits, [expected]);
    }
}

/// In front of a send and of a blocking collective only what polls take beyond their usual time is waiting.
#[test]
fn polls_that_take_longer_than_usual_wait_whatever_follows() {
    let mut program = Program::new(2);
    program.receive(1, 0, 0).receive(1, 0, 0).receive(1, 0, 0);
    let mut call = |start, end, action| {
        program.tasks[0].push(Happened { start, end, thread: 0, what: What::Plain(action) });
    };
    // As long as polls may take that do not wait.
    call(2000, 9000, Action::Polls { count: 1 });
    call(9100, 9900, Action::Polls { count: 7 });
    call(9910, 9920, Action::Send(sending(1, 0, 64, None)));
    // A poll takes 100 ns.
    call(10_000, 10_800, Action::Polls { count: 8 });
    call(11_000, 11_010, Action::Send(sending(1, 0, 64, None)));
    // These take 5 µs each, but for 100 ns for lack of a core.
    call(12_000, 32_000, Action::Polls { count: 4 });
    call(33_000, 33_010, Action::Send(sending(1, 0, 64, None)));
    call(34_000, 39_000, Action::Polls { count: 1 });
    // As many as the time would hold: they are the program's own.
    call(40_000, 50_000, Action::Polls { count: 100 });
    program.now = 60_000;
    for rank in 0..2 {
        program.collective(rank, vef_format::operation::Operation::Barrier, None);
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vef"));
    capture::write(&capture, &program.tasks);
    let summary = mix(&capture, &trace, &Options::default(), &Quiet).unwrap();
    let text = std::fs::read_to_string(trace).unwrap();
    let fields = text.lines().skip(2).map(|line| line.split(' ').collect::<Vec<_>>());
    // A part of a collective has two fields more in front.
    let own = fields.map(|fields| if fields[0].starts_with('G') { fields[2..].to_vec() } else { fields });
    let of_task = own.filter(|fields| fields[1] == "0");
    let times: Vec<u64> = of_task.map(|fields| fields[5].parse().unwrap()).collect();
    // Rank 0 leaves MPI_Init at 1110.
    assert_eq!(times[..4], [9910 - 1110, 11_000 - 9920, 33_000 - 11_010 - 19_600, 60_100 - 33_010 - 4_900]);
    assert_eq!(summary.spent.awaited, 19_600 + 4_900);
    assert_eq!(summary.spent.polls_kept, 7000 + 800 + 800 + 400 + 100 + 10_000);
}

/// Of each record, the call without a record and the polls in front of it count so many times.
#[test]
fn own_work_has_a_factor() {
    for (factor, expected) in [
        (0.0, [2780, 490, 500, 0, 30, 940, 1980]),
        (0.5, [2785, 690, 500, 0, 30, 940, 1980]),
        (1.0, [2790, 890, 500, 0, 30, 940, 1980]),
        (2.0, [2800, 1290, 500, 0, 30, 940, 1980]),
    ] {
        let (times, awaited, kept) = times_of(Options { own_work: Some(factor), ..Options::default() });
        assert_eq!((times, awaited), (expected.to_vec(), 7500), "{factor}");
        assert_eq!(kept, (400.0 * factor) as u64, "{factor}");
        // The receive that is posted takes 10 ns.
        let dir = tempfile::tempdir().unwrap();
        let options = Options { own_work: Some(factor), ..Options::default() };
        let summary = mixed(&dir.path().join("t.vef"), options);
        assert_eq!(summary.spent.calls_kept, (10.0 * factor) as u64, "{factor}");
    }
}

/// Rank 0 polls 1 ms before it waits for the first of two sends of its own, with a receive pending or not, by a function that tests requests or looks for messages.
/// Returns how much of the polls is no computing.
fn waited_for_a_send(by: &'static str, receive_pending: bool) -> u64 {
    let mut program = Program::new(2);
    let own = |number| RequestId { thread: 0, number };
    if receive_pending {
        program.post(0, Some(1), 0);
    }
    let send = u64::from(receive_pending);
    program.call(0, Action::Send(sending(1, 7, 64, Some(own(send)))));
    program.call(0, Action::Send(sending(1, 8, 64, Some(own(send + 1)))));
    let begin = program.now + 1000;
    let polls = What::By(by, Action::Polls { count: 10_000 });
    program.tasks[0].push(Happened { start: begin, end: begin + 1_000_000, thread: 0, what: polls });
    program.now = begin + 1_001_000;
    program.complete(0, send, Outcome::Done);
    program.complete(0, send + 1, Outcome::Done);
    program.receive(1, 0, 7).receive(1, 0, 8).send(1, 0, 0, 64);
    if receive_pending {
        program.complete(0, 0, Outcome::Done);
    } else {
        program.receive(0, 1, 0);
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.tasks);
    mix(dir.path(), &dir.path().join("t.vef"), &Options::default(), &Quiet).unwrap().spent.awaited
}

#[test]
fn polls_wait_for_a_send_only_if_they_can_be_for_nothing_else() {
    assert_eq!(waited_for_a_send("MPI_Test", false), 1_000_000);
    // A poll usually takes as long as these.
    assert_eq!(waited_for_a_send("MPI_Test", true), 0);
    assert_eq!(waited_for_a_send("MPI_Iprobe", false), 0);
}

/// What rank 0 computes before each of its marks of phases. It starts a send, then posts a receive, and from 0 on makes these calls; at 8000 it waits for
/// the message.
fn before_marks(options: Options, calls: &[(u64, u64, What)]) -> Vec<u64> {
    let mut program = Program::new(2);
    program.send(1, 0, 0, 64).call(0, Action::Send(sending(1, 1, 64, Some(request(0)))));
    program.post(0, Some(1), 1).receive(1, 0, 1);
    let begin = program.tasks[0].last().unwrap().end;
    let done = Action::Complete(Completions::Run { first: request(1), count: 1 });
    for (start, end, what) in calls.iter().cloned().chain([(8_000, 8_010, What::Plain(done))]) {
        program.tasks[0].push(Happened { start: begin + start, end: begin + end, thread: 0, what });
    }
    program.now = begin + 10_000;
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vefx"));
    capture::write(&capture, &program.tasks);
    mix(&capture, &trace, &options, &Quiet).unwrap();
    let reader = Reader::open(&trace).unwrap();
    let mut notes = reader.notes(Section::Moments, Rank(0)).unwrap();
    let mut found = Vec::new();
    while let Some((_, note)) = notes.next(&reader).unwrap() {
        if let Note::BeforePhase(Ticks(before)) = note {
            // The record in front is that of the send, and the posting of the receive takes part in the time.
            found.push(before - 100);
        }
    }
    found
}

fn mark(begin: bool, at: u64) -> (u64, u64, What) {
    (at, at, What::Plain(Action::Phase { begin, name: "solve" }))
}

fn polls(start: u64, end: u64) -> (u64, u64, What) {
    (start, end, What::By("MPI_Iprobe", Action::Polls { count: 1 }))
}

/// Of a window without a message.
fn synchronisation(start: u64, end: u64) -> (u64, u64, What) {
    let detail = Detail::Sync { window: WindowId(0), target: None, exclusive: false, assert: 0, group: None };
    let bytes = vef_format::units::Bytes(0);
    (start, end, What::By("MPI_Win_sync", Action::Other { bytes, detail }))
}

/// What is computed before a phase is so without the polls before it, if these wait: the phase has what is behind.
#[test]
fn polls_before_a_phase_are_not_computed_before_it() {
    for (kind, before) in [(Polls::Wait, 3_000 - 1_000), (Polls::Compute, 3_000)] {
        let options = Options { polls: kind, ..Options::default() };
        assert_eq!(before_marks(options, &[polls(1_000, 2_000), mark(true, 3_000)]), [before], "{kind:?}");
    }
}

/// A call without a record, behind polls, is not what these wait for.
#[test]
fn polls_before_a_phase_wait_for_the_next_record_whatever_call_is_between() {
    let other = Action::Other { bytes: vef_format::units::Bytes(0), detail: Detail::None };
    let other = (2_100, 2_110, What::By("MPI_Win_get_attr", other));
    let computed = Options { send_waits: SendWaits::Compute, ..Options::default() };
    for (options, between, lasted) in [
        (Options::default(), other, 0),
        (computed, synchronisation(2_100, 2_110), 0),
        (Options::default(), synchronisation(2_100, 2_110), 10),
    ] {
        let calls = [polls(1_000, 2_000), between, mark(true, 3_000)];
        assert_eq!(before_marks(options, &calls), [3_000 - 1_000 - lasted]);
    }
    // Those before the wait for a send have ended with it, and are computing, as a receive is pending.
    let wait = What::Plain(Action::Complete(Completions::Run { first: request(0), count: 1 }));
    let calls = [polls(1_000, 2_000), (2_100, 2_110, wait), mark(true, 3_000)];
    assert_eq!(before_marks(Options::default(), &calls), [3_000 - 10]);
}

/// A time without a core is left out of what is behind it only.
#[test]
fn each_mark_has_what_is_left_out_before_it() {
    let preempted = |start, end| (start, end, What::Plain(Action::Preempted));
    let calls = [
        preempted(500, 1_000),
        synchronisation(1_100, 1_110),
        mark(true, 2_000),
        preempted(2_500, 3_000),
        mark(false, 4_000),
        preempted(4_500, 5_000),
        mark(true, 6_000),
        mark(false, 6_000),
        preempted(6_500, 7_500),
    ];
    assert_eq!(before_marks(Options::default(), &calls), [1_490, 2_990, 4_490, 4_490]);
}

/// A receive is pending for which the polls may be, so only what they take beyond their usual time is waiting.
#[test]
fn a_wait_for_a_send_begins_behind_the_polls_that_are_computing() {
    let mut program = Program::new(2);
    program.post(0, Some(1), 0).call(0, Action::Send(sending(1, 1, 64, Some(request(1)))));
    let begin = program.now + 10;
    for (start, end) in [(1_000, 2_000), (3_000, 9_000)] {
        let what = What::Plain(Action::Polls { count: 10 });
        program.tasks[0].push(Happened { start: begin + start, end: begin + end, thread: 0, what });
    }
    program.now = begin + 10_000 - 100;
    program.complete(0, 1, Outcome::Done).receive(1, 0, 1).send(1, 0, 0, 64);
    program.complete(0, 0, Outcome::Done).finish();
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vefx"));
    capture::write(&capture, &program.tasks);
    mix(&capture, &trace, &Options::default(), &Quiet).unwrap();
    let reader = Reader::open(&trace).unwrap();
    let mut notes = reader.notes(Section::Sends, Rank(0)).unwrap();
    let mut waits = Vec::new();
    while let Some((_, note)) = notes.next(&reader).unwrap() {
        if let Note::SendWait { before, took, .. } = note {
            waits.push((before.0, took.0));
        }
    }
    // A poll usually takes 100 ns.
    assert_eq!(waits, [(10_000 - 5_000, 0)]);
}

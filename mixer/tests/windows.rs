//! One-sided communication: what the target sends, and when, follows from the calls of the origin.

use crate::capture::{self, Program, WORLD, What};
use mixer::{Creations, MixError, Options, Problem, Quiet, Rma, SendWaits, Summary, mix};
use std::collections::HashMap;
use vef_format::capture::RankInfo;
use vef_format::capture::event::*;
use vef_format::container::{About, Note, PhaseMarks, Reader, Section};
use vef_format::ids::{CommRank, Rank};
use vef_format::operation::Operation;
use vef_format::units::Bytes;

const WINDOW: WindowId = WindowId(0);

/// `task` calls a function on the window.
fn call(program: &mut Program, task: u32, function: &'static str, detail: Detail<'static>) {
    program.add(task, 0, What::By(function, Action::Other { bytes: Bytes(0), detail }));
}

/// Makes a window of all tasks.
fn window(program: &mut Program) {
    window_made_by(program, "MPI_Win_create");
}

fn window_made_by(program: &mut Program, function: &'static str) {
    for task in 0..program.tasks.len() as u32 {
        let detail = Detail::Window { id: WINDOW, comm: WORLD, size: Bytes(1000), unit: 1 };
        call(program, task, function, detail);
    }
}

/// The latest call of a task takes so long.
fn lasts(program: &mut Program, task: usize, time: u64) {
    let last = program.tasks[task].last_mut().unwrap();
    last.end = last.start + time;
}

fn transfer(target: u32, sent: u64, fetched: u64) -> Detail<'static> {
    Detail::Transfer(Transfer {
        window: WINDOW,
        target: CommRank(target),
        displacement: 0,
        sent: Bytes(sent),
        fetched: Bytes(fetched),
        at_target: Bytes(sent.max(fetched)),
        request: None,
    })
}

fn sync(target: Option<u32>) -> Detail<'static> {
    let target = target.map(CommRank);
    Detail::Sync { window: WINDOW, target, exclusive: false, assert: 0, group: None }
}

/// The text of the trace.
fn mixed(program: &Program, memory: Option<Bytes>) -> Result<String, MixError> {
    mixed_by(program, Options { memory, ..Options::default() })
}

fn mixed_by(program: &Program, options: Options) -> Result<String, MixError> {
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.tasks);
    let trace = dir.path().join("t.vef");
    mix(dir.path(), &trace, &options, &Quiet)?;
    Ok(std::fs::read_to_string(trace).unwrap())
}

/// The messages and marks of a task: destination and bytes, time, and what each depends on.
fn records(text: &str, task: &str) -> Vec<String> {
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(' ').collect()).collect();
    let by_id: HashMap<&str, &Vec<&str>> = lines.iter().map(|line| (line[0], line)).collect();
    let own = lines.iter().filter(|line| !line[0].starts_with(['C', 'G']) && line[1] == task);
    own.map(|line| {
        let after = match line[4].parse::<u32>().unwrap() % 4 {
            0 => "start".to_owned(),
            1 => format!("own to {} of {}", by_id[line[6]][2], by_id[line[6]][3]),
            2 => format!("message of {} from {}", by_id[line[6]][3], by_id[line[6]][1]),
            _ => "collective".to_owned(),
        };
        format!("{} {} at {}, {after}", line[2], line[3], line[5])
    })
    .collect()
}

#[test]
fn a_get_is_answered_in_the_targets_next_call_and_awaited_by_the_flush() {
    let mut program = Program::new(2);
    window(&mut program);
    call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
    call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
    lasts(&mut program, 0, 150);
    program.send(1, 0, 5, 7).receive(0, 1, 5).finish();
    let text = mixed(&program, None).unwrap();
    assert_eq!(
        records(&text, "0"),
        [
            "1 0 at 190, collective",
            "0 0 at 90, own to 1 of 0",
            "0 0 at 50, message of 500 from 1",
            "0 0 at 90, message of 7 from 1",
        ]
    );
    // What the target computes before its call, and behind it, is as long as it was.
    assert_eq!(
        records(&text, "1"),
        ["0 7 at 290, collective", "0 500 at 0, message of 0 from 0", "1 0 at 290, own to 0 of 7"]
    );
    assert_eq!(mixed(&program, Some(Bytes(1))).unwrap(), text, "in parts");
}

/// The target's own records are those without the get; the put that the flush waits for goes to the interface, too, and that of the fence does not.
#[test]
fn an_interface_answers_instead_of_its_task() {
    let mut program = Program::new(2);
    window(&mut program);
    for (function, detail) in [
        ("MPI_Get", transfer(1, 0, 500)),
        ("MPI_Put", transfer(1, 60, 0)),
        ("MPI_Put", transfer(1, 70, 0)),
        ("MPI_Win_flush", sync(Some(1))),
        ("MPI_Put", transfer(1, 80, 0)),
    ] {
        call(&mut program, 0, function, detail);
    }
    (0..2).for_each(|task| call(&mut program, task, "MPI_Win_fence", sync(None)));
    program.send(1, 0, 5, 7).receive(0, 1, 5).finish();
    let options = |memory| Options { rma: Rma::Hardware, memory, ..Options::default() };
    let text = mixed_by(&program, options(None)).unwrap();
    let bytes = |task| {
        let all = records(&text, task).into_iter();
        all.map(|record| record.split(" at").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // The get's request, the puts, the marks of both answers and of the message.
    assert_eq!(bytes("0"), ["3 0", "1 60", "3 70", "0 0", "0 0", "1 80", "0 0", "0 0"]);
    assert_eq!(bytes("1"), ["1 0", "0 7", "1 0"]);
    assert_eq!(bytes("2"), ["2 0", "2 0"]);
    assert_eq!(bytes("3"), ["3 0", "0 500", "0 0", "3 0"]);
    assert_eq!(mixed_by(&program, options(Some(Bytes(1)))).unwrap(), text, "in parts");
}

#[test]
fn what_the_target_computes_before_it_answers_is_kept() {
    let mut program = Program::new(2);
    window(&mut program);
    program.now += 10_000;
    let begin = program.now;
    for _ in 0..2 {
        call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
        call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
    }
    // A call without a message of its own, in which the target answers both.
    call(&mut program, 1, "MPI_Win_unlock_all", sync(None));
    program.tasks[1].last_mut().unwrap().start = begin + 50;
    program.send(1, 0, 5, 7).receive(0, 1, 5).finish();
    let text = mixed(&program, None).unwrap();
    let expected = [
        "1 0 at 10040, collective",
        "0 500 at 0, message of 0 from 0",
        "0 500 at 0, message of 0 from 0",
        // What the call takes behind the latest answer is waiting.
        "0 7 at 90, own to 1 of 0",
        "1 0 at 290, own to 0 of 7",
    ];
    assert_eq!(records(&text, "1"), expected);
    assert_eq!(mixed(&program, Some(Bytes(1))).unwrap(), text, "in parts");
}

/// A failed poll, in which a target answers that waits nowhere: what it computes before the poll is in front of the answer, and the polls before it
/// are no computing.
#[test]
fn a_target_that_polls_answers_behind_what_it_computed() {
    let mut program = Program::new(2);
    window(&mut program);
    let begin = program.now;
    call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
    call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
    lasts(&mut program, 0, 5000);
    for (start, end) in [(1000, 1100), (4000, 4100), (9000, 9100)] {
        program.call(1, Action::Polls { count: 1 });
        let last = program.tasks[1].last_mut().unwrap();
        (last.start, last.end) = (begin + start, begin + end);
    }
    program.now = begin + 10_000;
    program.send(0, 1, 5, 7).receive(1, 0, 5).finish();
    let text = mixed(&program, None).unwrap();
    // The request comes at 40 % of the flush, so in the second poll. The window was made at 10, and the receive begins at 10 200.
    let expected = [
        "1 0 at 3890, collective",
        "0 500 at 0, message of 0 from 0",
        "1 0 at 6000, own to 1 of 0",
        "1 0 at 190, message of 7 from 0",
    ];
    assert_eq!(records(&text, "1"), expected);
    assert_eq!(mixed(&program, Some(Bytes(1))).unwrap(), text, "in parts");
}

/// The time of each mark is what was computed since the one before, however long the polls took, and polls in which nothing is answered have none.
#[test]
fn polls_that_answer_have_their_own_computing_in_front() {
    let mut program = Program::new(2);
    window(&mut program);
    let begin = program.now;
    for (get, flushed) in [(0, 5000), (6000, 9500)] {
        program.now = begin + get;
        call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
        call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
        let flush = program.tasks[0].last_mut().unwrap();
        flush.end = begin + flushed;
    }
    // The requests come at 2 200 and at 7 600, and their answers are there at 5 000 and 9 500.
    for (start, end) in [(1000, 3000), (3500, 3600), (4000, 4100), (5500, 5600), (9000, 9100)] {
        program.call(1, Action::Polls { count: 1 });
        let last = program.tasks[1].last_mut().unwrap();
        (last.start, last.end) = (begin + start, begin + end);
    }
    program.now = begin + 10_000;
    program.send(0, 1, 5, 7).receive(1, 0, 5).finish();
    let answer = "0 500 at 0, message of 0 from 0";
    // Of 4 000, 2 100 are polls; of the next 5 000, 200; of the 1 200 up to the receive, 100.
    let expected = [
        "1 0 at 1890, collective",
        answer,
        "1 0 at 4800, own to 1 of 0",
        answer,
        "1 0 at 1100, own to 1 of 0",
        "1 0 at 190, message of 7 from 0",
    ];
    let records = records(&mixed(&program, None).unwrap(), "1");
    assert_eq!(records, expected);
}

/// A target that calls MPI without waiting there has not answered yet, if the origin waits until the target waits, too; else the origin had
/// its answer when its own call returned.
#[test]
fn requests_are_answered_where_the_target_waits_unless_the_answer_was_there_before() {
    let with = |flush: u64| {
        let mut program = Program::new(2);
        window(&mut program);
        call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
        call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
        lasts(&mut program, 0, flush);
        program.send(1, 0, 5, 7).send(1, 0, 5, 8).receive(1, 0, 6);
        lasts(&mut program, 1, 1000);
        program.now += 1000;
        program.send(0, 1, 6, 9).receive(0, 1, 5).receive(0, 1, 5).finish();
        let text = mixed(&program, None).unwrap();
        assert_eq!(mixed(&program, Some(Bytes(1))).unwrap(), text, "in parts");
        records(&text, "1")
            .iter()
            .map(|record| record.split(" at ").next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let [first, second, answer, mark] = ["0 7", "0 8", "0 500", "1 0"];
    // The receive of the target begins 300 behind the flush, and the last mark is that of MPI_Finalize.
    assert_eq!(with(700), [first, second, mark, answer, mark]);
    assert_eq!(with(250), [first, second, answer, mark, mark]);
    assert_eq!(with(150), [first, answer, second, mark, mark]);
    assert_eq!(with(50), [answer, first, second, mark, mark]);
}

/// What the records of task 1 are, of a program in which its peer asks for 100 kB, which takes very long: the request comes 50 ns after its call.
fn while_asked(calls: impl Fn(&mut Program)) -> Vec<String> {
    let mut program = Program::new(2);
    window(&mut program);
    call(&mut program, 0, "MPI_Get", transfer(1, 0, 100_000));
    call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
    lasts(&mut program, 0, 5000);
    calls(&mut program);
    let text = mixed(&program, None).unwrap();
    assert_eq!(mixed(&program, Some(Bytes(1))).unwrap(), text, "in parts");
    let records = records(&text, "1").into_iter();
    records.map(|record| record.split(" at ").next().unwrap().to_owned()).collect()
}

/// Also where its origin has the answer after what the target does next.
#[test]
fn a_request_is_answered_in_the_first_call_behind_it_that_waits() {
    let [answer, mark] = ["0 100000", "1 0"];
    let waits = while_asked(|program| {
        program.send(1, 1, 6, 9).receive(1, 1, 6).send(1, 0, 5, 8);
        program.now += 10_000;
        program.receive(0, 1, 5).finish();
    });
    assert_eq!(waits, ["1 9", mark, answer, "0 8", mark]);
    // The request of a put is no wait, and has a record of its own.
    let asks = while_asked(|program| {
        call(program, 1, "MPI_Put", transfer(0, 64, 0));
        program.send(1, 0, 5, 8);
        program.now += 10_000;
        program.receive(0, 1, 5);
        (0..2).for_each(|task| call(program, task, "MPI_Win_fence", sync(None)));
        program.finish();
    });
    assert_eq!(asks, ["0 64", "0 8", answer, mark]);
    // The end of MPI waits for all.
    let ends = while_asked(|program| {
        program.call(1, Action::Finalize);
        program.now += 10_000;
        program.call(0, Action::Finalize);
    });
    assert_eq!(ends, [answer, mark]);
    // A target that is killed gives its answers, too.
    let killed = while_asked(|program| {
        program.now += 10_000;
        program.call(0, Action::Finalize);
    });
    assert_eq!(killed, [answer]);
    // Of several threads, one may wait at any time.
    let threads = while_asked(|program| {
        for (thread, tag) in [(1, 5), (0, 6)] {
            let send = Action::Send(crate::capture::sending(0, tag, 8, None));
            program.add(1, thread, What::Plain(send));
        }
        program.now += 10_000;
        program.receive(0, 1, 5).receive(0, 1, 6).finish();
    });
    assert_eq!(threads, [answer, "0 8", "0 8", mark]);
}

#[test]
fn tasks_that_answer_are_counted_apart_from_those_with_threads() {
    let with = |thread| {
        let mut program = Program::new(2);
        window(&mut program);
        call(&mut program, 0, "MPI_Get", transfer(1, 0, 8));
        call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
        program.add(1, thread, What::Plain(Action::Send(crate::capture::sending(0, 5, 8, None))));
        program.receive(0, 1, 5).finish();
        let summary = summary(&program, None);
        (summary.answering, summary.threaded)
    };
    assert_eq!((with(0), with(1)), ((1, 0), (0, 1)));
}

/// It is an error of the program, which the libraries let pass.
#[test]
fn a_put_outside_of_the_group_is_left_to_the_fence() {
    let mut program = Program::new(3);
    window(&mut program);
    call(&mut program, 1, "MPI_Win_post", with_group(&[Rank(0)]));
    call(&mut program, 0, "MPI_Win_start", with_group(&[Rank(1)]));
    call(&mut program, 0, "MPI_Put", transfer(1, 10, 0));
    call(&mut program, 0, "MPI_Put", transfer(2, 20, 0));
    call(&mut program, 0, "MPI_Win_complete", sync(None));
    call(&mut program, 1, "MPI_Win_wait", sync(None));
    program.send(1, 0, 5, 7).receive(0, 1, 5);
    (0..3).for_each(|task| call(&mut program, task, "MPI_Win_fence", sync(None)));
    program.finish();
    let text = mixed(&program, None).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let put = lines.iter().find(|line| line[1..4] == ["0", "2", "20"]).expect("a message")[0];
    assert!(lines.iter().any(|line| line[0].starts_with('G') && line[3] == "2" && line[8] == put), "{text}");
    assert!(records(&text, "1").iter().any(|record| record.ends_with("message of 10 from 0")), "{text}");
}

/// A transfer between `MPI_Win_start` and `MPI_Win_complete` may be made long before the target's `MPI_Win_post`, for which its request waits.
#[test]
fn a_request_that_waits_for_its_post_keeps_no_other_from_its_answer() {
    let mut program = Program::new(3);
    window(&mut program);
    call(&mut program, 2, "MPI_Win_start", with_group(&[Rank(0)]));
    call(&mut program, 2, "MPI_Get", transfer(0, 0, 20_000));
    call(&mut program, 2, "MPI_Win_complete", sync(None));
    lasts(&mut program, 2, 2000);
    call(&mut program, 1, "MPI_Win_lock", sync(Some(0)));
    call(&mut program, 1, "MPI_Win_unlock", sync(Some(0)));
    program.send(1, 0, 5, 7).receive(0, 1, 5);
    call(&mut program, 0, "MPI_Win_post", with_group(&[Rank(2)]));
    call(&mut program, 0, "MPI_Win_wait", sync(None));
    program.now += 2000;
    program.finish();
    assert_eq!(mixed(&program, None).unwrap(), mixed(&program, Some(Bytes(1))).unwrap());
}

/// Neither the beginning of a phase nor a time without a core is a call, in which requests would be answered.
#[test]
fn what_is_no_call_answers_nothing() {
    let with = |action: Option<Action<'static>>| {
        let mut program = Program::new(2);
        window(&mut program);
        // Before the request there is nothing to answer, and no record. What it takes, 10 ns, is no computing.
        call(&mut program, 1, "MPI_Win_sync", sync(None));
        call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
        if let Some(action) = action {
            program.call(1, action);
            // From the end of the call in front of it on, as long as the thread computed.
            let [.., before, last] = &mut program.tasks[1][..] else { panic!("two events") };
            (last.start, last.end) = (before.end, before.end + 10);
            program.now -= 100;
        }
        call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
        lasts(&mut program, 0, 150);
        call(&mut program, 1, "MPI_Win_sync", sync(None));
        program.send(1, 0, 5, 7).receive(0, 1, 5).finish();
        records(&mixed(&program, None).unwrap(), "1")
    };
    let expected = |computing| {
        [
            format!("1 0 at {computing}, collective"),
            "0 500 at 0, message of 0 from 0".to_owned(),
            "0 7 at 90, own to 1 of 0".to_owned(),
            "1 0 at 290, own to 0 of 7".to_owned(),
        ]
    };
    assert_eq!(with(None), expected(380));
    assert_eq!(with(Some(Action::Phase { begin: true, name: "solve" })), expected(380));
    assert_eq!(with(Some(Action::Preempted)), expected(370));
}

/// What a target computes in a phase belongs to that, whether it or its interface answers what others ask meanwhile.
#[test]
fn phases_of_a_target_have_what_it_computes() {
    let mut program = Program::new(2);
    window(&mut program);
    let phase = |begin| Action::Phase { begin, name: "solve" };
    program.call(1, phase(true));
    call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
    call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
    lasts(&mut program, 0, 20_000);
    program.now += 12_000;
    program.call(1, phase(false));
    program.now += 3000;
    program.receive(1, 0, 5);
    lasts(&mut program, 1, 8200);
    program.now += 8000;
    program.send(0, 1, 5, 7).finish();
    let computing = |rma| {
        let dir = tempfile::tempdir().unwrap();
        capture::write(dir.path(), &program.tasks);
        let trace = dir.path().join("t.vefx");
        mix(dir.path(), &trace, &Options { rma, ..Options::default() }, &Quiet).unwrap();
        let reader = Reader::open(&trace).unwrap();
        let mut times = Vec::new();
        reader.task(Rank(1)).each_raw(|raw| times.push(raw.time)).unwrap();
        let notes = |section| reader.notes(section, Rank(1)).unwrap();
        let mut marks = PhaseMarks::new(notes(Section::Phases), Some(notes(Section::Moments)));
        let mut computed = || {
            let mark = marks.next(&reader).unwrap().unwrap();
            times.iter().take(mark.record as usize).sum::<u64>() + mark.computed.0
        };
        let begin = computed();
        computed() - begin
    };
    assert_eq!([computing(Rma::Software), computing(Rma::Hardware)], [12_300; 2]);
}

#[test]
fn puts_wait_for_nothing_but_the_synchronisation_asks_whether_they_are_done() {
    let mut program = Program::new(2);
    window(&mut program);
    call(&mut program, 0, "MPI_Put", transfer(1, 64, 0));
    call(&mut program, 0, "MPI_Put", transfer(0, 32, 0));
    // Of nothing there is no message.
    call(&mut program, 0, "MPI_Put", transfer(1, 0, 0));
    call(&mut program, 0, "MPI_Win_unlock_all", sync(None));
    call(&mut program, 0, "MPI_Win_unlock_all", sync(None));
    program.finish();
    let text = mixed(&program, None).unwrap();
    assert_eq!(
        records(&text, "0"),
        [
            "1 64 at 190, collective",
            "0 32 at 90, own to 1 of 64",
            "0 0 at 190, own to 0 of 32",
            // The second one asks for nothing and has no record: its 10 ns are no computing.
            "0 0 at 180, message of 0 from 1",
        ]
    );
    // It answers while it computes, because no call follows but the last: that counts from the request on.
    assert_eq!(records(&text, "1"), ["0 0 at 0, message of 64 from 0", "1 0 at 295, collective"]);
}

/// Messages and marks of both tasks, without times, of a program that synchronises so on a window; each step is of a task, a function,
/// and what it is called for.
fn synchronised(steps: &[(u32, &'static str, Detail<'static>)]) -> [Vec<String>; 2] {
    let mut program = Program::new(2);
    window(&mut program);
    for (task, function, detail) in steps {
        call(&mut program, *task, function, *detail);
    }
    program.finish();
    let text = mixed(&program, None).unwrap();
    let without_time = |record: String| {
        let (message, rest) = record.split_once(" at ").unwrap();
        format!("{message},{}", rest.split_once(',').unwrap().1)
    };
    ["0", "1"].map(|task| records(&text, task).into_iter().map(without_time).collect())
}

fn with_group(group: &'static [Rank]) -> Detail<'static> {
    let group = Some(Members::List(group));
    Detail::Sync { window: WINDOW, target: None, exclusive: false, assert: 0, group }
}

#[test]
fn an_access_epoch_waits_for_the_post_and_the_exposure_epoch_for_the_end_of_it() {
    for end in ["MPI_Win_wait", "MPI_Win_test"] {
        let steps = [
            // Its own rank in a group is nobody to wait for.
            (1, "MPI_Win_post", with_group(&[Rank(0), Rank(1)])),
            (0, "MPI_Win_start", with_group(&[Rank(1)])),
            (0, "MPI_Put", transfer(1, 64, 0)),
            (0, "MPI_Win_complete", sync(None)),
            (1, end, sync(None)),
            // The epoch is over: nothing is left to ask.
            (0, "MPI_Win_flush_all", sync(None)),
        ];
        let [epoch, put, last] = ["0 0, collective", "1 64, message of 0 from 1", "0 0, own to 1 of 64"];
        let [origin, target] = synchronised(&steps);
        assert_eq!(origin, [epoch, put, last], "{end}");
        assert_eq!(target, ["0 0, collective", "1 0, own to 0 of 0", "1 0, message of 64 from 0"], "{end}");
        // Without a transfer there is a message for it.
        let [origin, target] = synchronised(&[&steps[..2], &steps[3..]].concat());
        assert_eq!(origin, [epoch, "1 0, message of 0 from 1", "0 0, own to 1 of 0"], "{end}");
        assert_eq!(target, ["0 0, collective", "1 0, own to 0 of 0", "1 0, message of 0 from 0"], "{end}");
    }
}

#[test]
fn a_lock_is_asked_for_and_given_back() {
    let asserted = |target| Detail::Sync {
        window: WINDOW,
        target: Some(CommRank(target)),
        exclusive: true,
        assert: 1,
        group: None,
    };
    // Without a transfer, too; by itself a task has its own lock.
    let [first, wait] = ["1 0, collective", "0 0, own to 1 of 0"];
    let both = [(0, "MPI_Win_lock", sync(Some(1))), (0, "MPI_Win_unlock", sync(Some(1)))];
    let asked = [first, wait, "1 0, message of 0 from 1", wait, "0 0, message of 0 from 1"];
    assert_eq!(synchronised(&both)[0], asked);
    // The program says that there is nobody to wait for: only the end is asked for.
    let unchecked = [(0, "MPI_Win_lock", asserted(1)), (0, "MPI_Win_unlock", sync(Some(1)))];
    assert_eq!(synchronised(&unchecked)[0], [first, wait, "0 0, message of 0 from 1"]);
    let own = [(0, "MPI_Win_lock", sync(Some(0))), (0, "MPI_Win_unlock", sync(Some(0)))];
    assert_eq!(synchronised(&own)[0], ["0 0, collective"]);
}

#[test]
fn a_fence_waits_for_transfers_to_its_task_and_for_all_members() {
    let mut program = Program::new(2);
    window(&mut program);
    for (task, function, detail) in [
        (0, "MPI_Put", transfer(1, 64, 0)),
        (0, "MPI_Win_fence", sync(None)),
        (1, "MPI_Put", transfer(0, 32, 0)),
        (1, "MPI_Win_fence", sync(None)),
        (1, "MPI_Put", transfer(0, 16, 0)),
        (1, "MPI_Win_fence", sync(None)),
        (0, "MPI_Win_fence", sync(None)),
    ] {
        call(&mut program, task, function, detail);
    }
    program.finish();
    let text = mixed(&program, None).unwrap();
    let lines = || text.lines().skip(1).map(|line| line.split(' ').collect::<Vec<_>>());
    let messages: HashMap<String, String> = lines()
        .filter(|line| !line[0].starts_with(['C', 'G']) && line[1] != line[2])
        .map(|line| (line[0].to_owned(), format!("{} to {}", line[3], line[2])))
        .collect();
    let of = |task: &str| -> Vec<String> {
        let own = lines().filter(|line| match line[0].as_bytes()[0] {
            b'C' => false,
            b'G' => line[2..4] == ["6", task],
            _ => line[1] == task && line[2] != task,
        });
        let named = own.map(|line| match line[0].starts_with('G') {
            true => match (line[6], line[8]) {
                ("2", after) => format!("barrier behind {}", messages[after]),
                _ => "barrier".to_owned(),
            },
            false => match line[4].parse::<u32>().unwrap() % 4 {
                2 => format!("{} behind {}", messages[line[0]], messages[line[6]]),
                _ => messages[line[0]].clone(),
            },
        });
        named.collect()
    };
    // No transfer waits for one of the other task, also where that was in its fence before: only fences do, each for the transfers before it.
    let first = ["barrier", "64 to 1", "barrier behind 32 to 0", "barrier behind 16 to 0"];
    let second = ["barrier", "32 to 0", "barrier behind 64 to 1", "16 to 0", "barrier"];
    assert_eq!((of("0"), of("1")), (first.map(str::to_owned).to_vec(), second.map(str::to_owned).to_vec()));
    assert_eq!(mixed(&program, Some(Bytes(1))).unwrap(), text, "in parts");
}

/// The origin's side of a get is complete with its data; a put has no answer to wait for.
#[test]
fn a_local_flush_waits_for_what_is_fetched() {
    let steps = |flush| {
        let target = if flush == "MPI_Win_flush_local" { sync(Some(1)) } else { sync(None) };
        [(0, "MPI_Put", transfer(1, 64, 0)), (0, "MPI_Get", transfer(1, 0, 500)), (0, flush, target)]
    };
    let waits =
        ["1 64, collective", "1 0, own to 1 of 64", "0 0, own to 1 of 0", "0 0, message of 500 from 1"];
    for flush in ["MPI_Win_flush_local", "MPI_Win_flush_local_all"] {
        assert_eq!(synchronised(&steps(flush))[0], waits, "{flush}");
    }
    // Of another target there is nothing.
    let elsewhere = [(0, "MPI_Get", transfer(1, 0, 500)), (0, "MPI_Win_flush_local", sync(Some(0)))];
    assert_eq!(synchronised(&elsewhere)[0], ["1 0, collective", "0 0, own to 1 of 0"]);
}

#[test]
fn all_wait_for_each_other_when_a_window_is_made_and_freed_and_gets_hints() {
    let mut program = Program::new(2);
    window(&mut program);
    for task in 0..2 {
        call(&mut program, task, "MPI_Win_set_info", sync(None));
        call(&mut program, task, "MPI_Win_free", Detail::WindowFree(WINDOW));
    }
    call(&mut program, 0, "MPI_Put", transfer(1, 64, 0));
    program.finish();
    let text = mixed(&program, None).unwrap();
    let barriers = |task: &str| {
        let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        fields.filter(|fields| fields[0].starts_with('G') && fields[2..4] == ["6", task]).count()
    };
    assert_eq!((barriers("0"), barriers("1")), (3, 3));
    // Each window has a communicator of its own.
    let mut program = Program::new(2);
    for id in [0, 1] {
        for task in 0..2 {
            let detail = Detail::Window { id: WindowId(id), comm: WORLD, size: Bytes(0), unit: 1 };
            call(&mut program, task, "MPI_Win_create", detail);
        }
    }
    let several = mixed(program.finish(), None).unwrap();
    assert_eq!(several.lines().filter(|line| line.starts_with('C')).count(), 1 + 2, "{several}");
    // Its number is nobody's any more.
    assert_eq!(records(&text, "0").len(), 1, "{text}");
}

/// No rank waits in it, and it needs no message.
#[test]
fn a_lock_of_all_is_not_counted_as_missing() {
    let mut program = Program::new(2);
    window(&mut program);
    for function in ["MPI_Win_lock_all", "MPI_Win_sync"] {
        call(&mut program, 0, function, sync(None));
    }
    let summary = summary(program.finish(), None);
    assert!(summary.not_representable.is_empty(), "{:?}", summary.not_representable);
}

#[test]
fn impossible_targets_are_refused_and_unknown_windows_counted() {
    let mut program = Program::new(2);
    window(&mut program);
    call(&mut program, 0, "MPI_Put", transfer(2, 64, 0));
    let refused = mixed(&program, None).unwrap_err();
    let is_peer = matches!(refused, MixError::Event { problem: Problem::Peer { size: 2, rank: 2, .. }, .. });
    assert!(is_peer, "{refused}");
    let mut program = Program::new(2);
    call(&mut program, 0, "MPI_Put", transfer(1, 64, 0));
    program.finish();
    assert_eq!(records(&mixed(&program, None).unwrap(), "0").len(), 1);
}

fn summary(program: &Program, memory: Option<Bytes>) -> Summary {
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.tasks);
    mix(dir.path(), &dir.path().join("t.vef"), &Options { memory, ..Options::default() }, &Quiet).unwrap()
}

fn at(displacement: i64, transfer: Detail<'static>) -> Detail<'static> {
    let Detail::Transfer(transfer) = transfer else { panic!("a transfer") };
    Detail::Transfer(Transfer { displacement, ..transfer })
}

/// The window has 1000 bytes. What reaches beyond is counted once an origin, and is in the trace as if it were within.
#[test]
fn accesses_beyond_a_window_are_counted_and_replay() {
    let with = |displacements: &[i64], memory| {
        let mut program = Program::new(3);
        window(&mut program);
        for &displacement in displacements {
            call(&mut program, 0, "MPI_Put", at(displacement, transfer(1, 64, 0)));
            call(&mut program, 2, "MPI_Get", at(displacement, transfer(1, 0, 64)));
        }
        call(&mut program, 0, "MPI_Put", at(2000, transfer(0, 64, 0)));
        (0..3).for_each(|task| call(&mut program, task, "MPI_Win_fence", sync(None)));
        call(&mut program, 0, "MPI_Win_free", Detail::WindowFree(WINDOW));
        (1..3).for_each(|task| call(&mut program, task, "MPI_Win_free", Detail::WindowFree(WINDOW)));
        let summary = summary(program.finish(), memory);
        (summary.outside_windows, mixed(&program, memory).unwrap())
    };
    let (within, trace) = with(&[0, 936], None);
    assert_eq!(within, 0);
    // Where nothing is moved, nothing is reached.
    let mut program = Program::new(2);
    window(&mut program);
    call(&mut program, 0, "MPI_Put", at(2000, transfer(1, 0, 0)));
    assert_eq!(summary(program.finish(), None).outside_windows, 0);
    // A window that is made without memory gets it later, anywhere.
    let mut program = Program::new(2);
    for task in 0..2 {
        let dynamic = Detail::Window { id: WINDOW, comm: WORLD, size: Bytes(0), unit: 0 };
        call(&mut program, task, "MPI_Win_create_dynamic", dynamic);
    }
    call(&mut program, 0, "MPI_Put", at(2000, transfer(1, 64, 0)));
    assert_eq!(summary(program.finish(), None).outside_windows, 0);
    for beyond in [[0, 937], [-1, 0], [i64::MAX, 5], [i64::MIN, i64::MAX]] {
        for memory in [None, Some(Bytes(1))] {
            assert_eq!(with(&beyond, memory), (2, trace.clone()), "{beyond:?}");
        }
    }
}

#[test]
fn transfers_of_epochs_that_never_end_are_counted_and_replay() {
    let open = |steps: &[(&'static str, Detail<'static>)]| {
        let mut program = Program::new(2);
        window(&mut program);
        for (function, detail) in steps {
            call(&mut program, 0, function, *detail);
        }
        let summary = summary(program.finish(), None);
        (summary.never_synchronised, summary.messages)
    };
    let [put, get] = [("MPI_Put", transfer(1, 64, 0)), ("MPI_Get", transfer(1, 0, 64))];
    let [flush, local] = ["MPI_Win_flush", "MPI_Win_flush_local"].map(|name| (name, sync(Some(1))));
    // A get is two messages, a flush of puts an answer. A copy within the task is complete.
    assert_eq!(open(&[put, get, ("MPI_Put", transfer(0, 64, 0))]), (2, 4));
    assert_eq!(open(&[put, get, flush]), (0, 4));
    // The flush has completed what was in front of it.
    assert_eq!(open(&[put, put, flush, put, put, get]), (3, 7));
    // Local completion is that of gets alone.
    assert_eq!(open(&[put, put, get, local]), (2, 4));
}

/// A target that does not come to the fence: all puts are in the trace, and the one that it would wait for is counted.
#[test]
fn transfers_to_a_target_that_ended_are_counted_and_replay() {
    let mut program = Program::new(2);
    window(&mut program);
    for bytes in [10, 20, 30] {
        call(&mut program, 0, "MPI_Put", transfer(1, bytes, 0));
    }
    call(&mut program, 0, "MPI_Win_fence", sync(None));
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.finish().tasks);
    let options = Options { lenient: true, ..Options::default() };
    let summary = mix(dir.path(), &dir.path().join("t.vef"), &options, &Quiet).unwrap();
    let counts = (summary.never_synchronised, summary.messages, summary.bytes, summary.unmatched.sends);
    assert_eq!(counts, (1, 3, Bytes(60), 0));
}

/// The request is answered while the target is in no call: from the end of one to the start of the next.
#[test]
fn answers_without_the_target_are_counted() {
    let with = |get: u64, flushed: u64| {
        let mut program = Program::new(2);
        window(&mut program);
        let begin = program.now;
        let lasts = |program: &mut Program, task: usize, start, end| {
            let last = program.tasks[task].last_mut().unwrap();
            (last.start, last.end) = (begin + start, begin + end);
        };
        program.call(1, Action::Polls { count: 1 });
        lasts(&mut program, 1, 100, 1000);
        // These are no calls.
        program.call(1, Action::Phase { begin: true, name: "solve" });
        lasts(&mut program, 1, 2000, 2000);
        program.call(1, Action::Preempted);
        lasts(&mut program, 1, 2000, 3000);
        call(&mut program, 0, "MPI_Get", transfer(1, 0, 500));
        lasts(&mut program, 0, get, get + 1);
        call(&mut program, 0, "MPI_Win_flush", sync(Some(1)));
        lasts(&mut program, 0, get + 2, flushed);
        program.now = begin + 6000;
        program.send(1, 0, 5, 7);
        lasts(&mut program, 1, 5000, 6000);
        program.receive(0, 1, 5).finish();
        let dir = tempfile::tempdir().unwrap();
        let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vefx"));
        capture::write(&capture, &program.tasks);
        let counted = mix(&capture, &trace, &Options::default(), &Quiet).unwrap().answered_outside;
        let reader = Reader::open(&trace).unwrap();
        let noted: Vec<_> = reader.about().facts(About::ANSWERED_OUTSIDE).cloned().collect();
        assert_eq!(noted, (counted > 0).then(|| format!("{counted} one-sided request")).as_slice());
        counted
    };
    assert_eq!(with(1000, 5000), 1);
    assert_eq!([with(999, 5000), with(1000, 5001), with(200, 900)], [0; 3]);
}

/// A replay in which puts take time waits for them where the program waited for their local completion: the latest put to each target stands for all.
#[test]
fn local_completion_waits_for_the_latest_put() {
    let mut program = Program::new(2);
    window(&mut program);
    let request = RequestId { thread: 0, number: 0 };
    let Detail::Transfer(put) = transfer(1, 64, 0) else { panic!("a transfer") };
    call(&mut program, 0, "MPI_Put", transfer(1, 64, 0));
    call(&mut program, 0, "MPI_Put", transfer(1, 64, 0));
    call(&mut program, 0, "MPI_Win_flush_local", sync(Some(1)));
    // Nothing is outstanding.
    call(&mut program, 0, "MPI_Win_flush_local_all", sync(None));
    call(&mut program, 0, "MPI_Rput", Detail::Transfer(Transfer { request: Some(request), ..put }));
    program.complete(0, 0, Outcome::Done);
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vefx"));
    capture::write(&capture, &program.tasks);
    for (send_waits, lasts) in [(SendWaits::Replay, 0), (SendWaits::Compute, 10)] {
        mix(&capture, &trace, &Options { send_waits, ..Options::default() }, &Quiet).unwrap();
        let reader = Reader::open(&trace).unwrap();
        let mut notes = reader.notes(Section::Sends, Rank(0)).unwrap();
        let mut waits = Vec::new();
        while let Some((place, note)) = notes.next(&reader).unwrap() {
            if let Note::SendWait { send, took, .. } = note {
                waits.push((place, send, took.0));
            }
        }
        // Behind the records of the window.
        let first = waits[0].1 - 1;
        assert_eq!(waits, [(first + 2, first + 1, lasts), (first + 3, first + 2, lasts)]);
    }
}

/// Each waits for the latest put to its own target. The polls in front of the first one are in front of the second one, too, but count once.
#[test]
fn local_completion_is_that_of_one_target() {
    let mut program = Program::new(3);
    window(&mut program);
    for target in [2, 1] {
        call(&mut program, 0, "MPI_Put", transfer(target, 64, 0));
    }
    let begin = program.now;
    for (start, end) in [(1000, 2000), (3000, 9000)] {
        let what = What::By("MPI_Iprobe", Action::Polls { count: 10 });
        let (start, end) = (begin + start, begin + end);
        program.tasks[0].push(capture::Happened { start, end, thread: 0, what });
    }
    for (at, target) in [(10_000, 1), (30_000, 2)] {
        program.now = begin + at - 100;
        call(&mut program, 0, "MPI_Win_flush_local", sync(Some(target)));
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vefx"));
    capture::write(&capture, &program.tasks);
    // A poll usually takes 100 ns, so 5000 ns of them are waiting.
    for (send_waits, first, then) in [
        (SendWaits::Replay, (9_990 - 5_000, 0), (19_990, 0)),
        (SendWaits::Compute, (9_990 - 7_000, 2_010), (19_990, 10)),
    ] {
        mix(&capture, &trace, &Options { send_waits, ..Options::default() }, &Quiet).unwrap();
        let reader = Reader::open(&trace).unwrap();
        let mut notes = reader.notes(Section::Sends, Rank(0)).unwrap();
        let mut waits = Vec::new();
        while let Some((place, note)) = notes.next(&reader).unwrap() {
            if let Note::SendWait { send, before, took } = note {
                waits.push((place - send, (before.0, took.0)));
            }
        }
        assert_eq!(waits, [(1, first), (2, then)], "{send_waits:?}");
    }
}

/// What the library of the capture sends, by the component of Open MPI that answers so.
#[test]
fn a_window_is_synchronised_by_the_collectives_of_its_library() {
    let operations = |library: &str, rma, is_shared| -> Vec<u16> {
        let mut program = Program::new(2);
        match is_shared {
            false => window(&mut program),
            true => window_made_by(&mut program, "MPI_Win_allocate_shared"),
        }
        for task in 0..2 {
            // Tasks that disagree on MPI_MODE_NOPRECEDE, which libraries accept.
            let assert = if task == 0 { 2 } else { 0 };
            let fence = Detail::Sync { window: WINDOW, target: None, exclusive: false, assert, group: None };
            call(&mut program, task, "MPI_Win_fence", fence);
            call(&mut program, task, "MPI_Win_set_info", sync(None));
            call(&mut program, task, "MPI_Win_free", Detail::WindowFree(WINDOW));
        }
        program.finish();
        let dir = tempfile::tempdir().unwrap();
        let facts = |_| RankInfo { library: library.into(), ..RankInfo::default() };
        capture::write_with(dir.path(), &program.tasks, facts);
        let trace = dir.path().join("t.vef");
        // They stay where communicators are computing.
        let options = Options { rma, creations: Creations::Compute, ..Options::default() };
        mix(dir.path(), &trace, &options, &Quiet).unwrap();
        let text = std::fs::read_to_string(trace).unwrap();
        let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let of_task_0 = fields.filter(|fields| fields[0].starts_with('G') && fields[3] == "0");
        of_task_0.map(|fields| fields[2].parse().unwrap()).collect()
    };
    let code = |operation: Operation| operation.default_code().0;
    let [bcast, allreduce, allgather, allgatherv, counts, barrier] = [
        Operation::Bcast,
        Operation::Allreduce,
        Operation::Allgather,
        Operation::Allgatherv,
        Operation::ReduceScatterBlock,
        Operation::Barrier,
    ]
    .map(code);
    let ids = [allreduce; 3];
    for rma in [Rma::Software, Rma::Hardware] {
        let made = [allreduce, bcast, allreduce, allgather, allgatherv, allgather, barrier];
        assert_eq!(operations("MPICH", rma, false), [&made[..], &[barrier; 3]].concat());
    }
    let pt2pt = [&ids[..], &[barrier, counts, barrier, barrier]].concat();
    assert_eq!(operations("Open MPI v4.1.4", Rma::Software, false), pt2pt);
    let shared = [allgather, bcast, barrier, allgather, barrier, barrier, barrier];
    assert_eq!(operations("Open MPI v4.1.4", Rma::Software, true), [&ids[..], &shared].concat());
    let ucx = [allreduce, allreduce, allgather, allgatherv, allgather, barrier, barrier, barrier];
    assert_eq!(operations("Open MPI v4.1.4", Rma::Hardware, false), [&ids[..], &ucx].concat());
}

/// The target waits in a fence for a put that its origin makes behind an answer which the target gives meanwhile, of another window.
#[test]
fn a_fence_waits_for_a_put_behind_an_answer_of_the_waiting_task() {
    const OTHER: WindowId = WindowId(1);
    let mut program = Program::new(2);
    window(&mut program);
    for task in 0..2 {
        let detail = Detail::Window { id: OTHER, comm: WORLD, size: Bytes(1000), unit: 1 };
        call(&mut program, task, "MPI_Win_create", detail);
    }
    call(&mut program, 0, "MPI_Win_fence", sync(None));
    lasts(&mut program, 0, 10_000);
    let elsewhere = |detail| match detail {
        Detail::Transfer(of) => Detail::Transfer(Transfer { window: OTHER, ..of }),
        Detail::Sync { target, exclusive, assert, group, .. } => {
            Detail::Sync { window: OTHER, target, exclusive, assert, group }
        }
        other => other,
    };
    for (function, detail) in [
        ("MPI_Win_lock", elsewhere(sync(Some(0)))),
        ("MPI_Get", elsewhere(transfer(0, 0, 500))),
        ("MPI_Win_unlock", elsewhere(sync(Some(0)))),
        ("MPI_Put", transfer(0, 64, 0)),
        ("MPI_Win_fence", sync(None)),
    ] {
        call(&mut program, 1, function, detail);
    }
    program.now += 10_000;
    program.finish();
    let text = mixed(&program, None).unwrap();
    // The answers of the lock, the get and the lock's return stand in front of the Barrier that waits for the put.
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let answered =
        lines.iter().rposition(|line| line[0] != "0" && line[1] == "0" && line.get(2) == Some(&"1"));
    let waits =
        lines.iter().position(|line| line[0].starts_with('G') && line[2..4] == ["6", "0"] && line[6] == "2");
    assert!(answered.is_some() && answered < waits, "{text}");
    assert_eq!(mixed(&program, Some(Bytes(1))).unwrap(), text, "in parts");
}

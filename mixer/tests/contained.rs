//! Traces mixed into containers: the records of the text, and notes.

use crate::capture::{self, Happened, Program, What, receiving, sending};
use crate::model;
use mixer::{Options, Progress, Quiet, SendWaits, Stage, Summary, mix};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use vef_format::capture::event::*;
use vef_format::container::{About, Note, Reader, Section, Settings};
use vef_format::convert::convert;
use vef_format::ids::{CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::{Bytes, Ticks};

/// An Isend and its wait with computing in between, a phase, a collective with counts, a synchronous send.
fn program() -> Program {
    let mut program = Program::new(2);
    let request = Some(RequestId { thread: 0, number: 0 });
    program.call(0, Action::Send(sending(1, 7, 64, request)));
    program.receive(1, 0, 7);
    program.call(0, Action::Phase { begin: true, name: "solve" });
    program.complete(0, 0, Outcome::Done);
    for rank in 0..2 {
        program.call(
            rank,
            Action::Collective(Collective {
                operation: Operation::Alltoallv,
                comm: capture::WORLD,
                root: None,
                amounts: Amounts { send: Bytes(12), recv: Bytes(12) },
                count: 0,
                datatype: DatatypeId(0),
                recv_datatype: None,
                request: None,
                send_counts: &[5, 7],
                recv_counts: &[5, 7],
            }),
        );
    }
    program.call(0, Action::Send(Send { mode: SendMode::Synchronous, ..sending(1, 8, 3, None) }));
    program.receive(1, 0, 8);
    program.finish();
    program
}

#[test]
fn a_container_says_what_text_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program().tasks);
    let summary = mix(&place("capture"), &place("t.vef"), &Options::default(), &Quiet).unwrap();
    let contained = mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    assert_eq!(summary.records, contained.records);
    convert(&place("t.vefx"), &place("back.vef"), &Default::default(), Settings::default()).unwrap();
    assert_eq!(fs::read(place("back.vef")).unwrap(), fs::read(place("t.vef")).unwrap());
    let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["back.vef", "capture", "t.vef", "t.vefx"], "nothing unfinished is left");

    let reader = Reader::open(&place("t.vefx")).unwrap();
    assert_eq!(reader.hosts().unwrap().unwrap(), ["one", "one"]);
    let origin = &reader.about().origin;
    assert!(origin.iter().any(|(name, value)| name == "host" && value == "one"), "{origin:?}");
    assert!(origin.iter().any(|(name, _)| name == "version"), "{origin:?}");
    let said = |section, expected: &[(u64, Note<'_>)]| {
        let mut notes = reader.notes(section, Rank(0)).unwrap();
        for note in expected {
            assert_eq!(notes.next(&reader).unwrap(), Some(*note));
        }
        assert_eq!(notes.next(&reader).unwrap(), None);
    };
    // Calls last 10 ns and begin 100 ns apart: the end of the Isend, a receive, a phase, the wait.
    let wait = Note::SendWait { send: 0, before: Ticks(290), took: Ticks(0) };
    said(Section::Sends, &[(0, Note::Detached), (1, wait)]);
    said(Section::Synchronous, &[(2, Note::Synchronous)]);
    said(Section::Tags, &[(0, Note::Tag(7)), (2, Note::Tag(8))]);
    said(Section::Phases, &[(1, Note::Phase { begin: true, name: "solve" })]);
    said(Section::Spans, &[(0, Note::StartUp(Ticks(10))), (0, Note::Finalised(Ticks(1200)))]);
    said(Section::Counts, &[(1, Note::Counts { sent: &[5, 7], received: &[5, 7] })]);
    let calls = ["MPI_Isend", "MPI_Alltoallv", "MPI_Ssend", "MPI_Finalize"];
    said(Section::Calls, &[0, 1, 2, 3].map(|at| (at, Note::Call(calls[at as usize]))));
    // The wait is in no record.
    let mut records = reader.task(Rank(0));
    let times: Vec<String> = std::iter::from_fn(|| records.next().unwrap())
        .map(|line| format!("{:?}", line.to_record()))
        .collect();
    assert!(times[1].contains("time: Ticks(380)"), "{}", times[1]);
}

/// Two tasks that make a window.
fn with_window(id: WindowId) -> Program {
    let mut program = Program::new(2);
    for rank in 0..2 {
        let detail = Detail::Window { id, comm: capture::WORLD, size: Bytes(8), unit: 1 };
        program.add(rank, 0, What::By("MPI_Win_create", Action::Other { bytes: Bytes(0), detail }));
    }
    program
}

/// Transfers through a window are sends that no call waits for singly; the send of an exchange has a tag; a time without a core is left
/// out in front of a phase.
#[test]
fn notes_of_windows_exchanges_and_times_without_a_core() {
    let window = WindowId(0);
    let mut program = with_window(window);
    let (target, sent, fetched) = (CommRank(1), Bytes(8), Bytes(0));
    let put = Transfer { window, target, displacement: 0, sent, fetched, at_target: sent, request: None };
    for _ in 0..2 {
        let put = Action::Other { bytes: sent, detail: Detail::Transfer(put) };
        program.add(0, 0, What::By("MPI_Put", put));
    }
    for (rank, other) in [(0, 1), (1, 0)] {
        let (send, receive) = (sending(other, 9, 64, None), receiving(other, 9));
        program.call(rank, Action::Exchange { send, receive });
    }
    program.call(0, Action::Preempted);
    program.call(0, Action::Phase { begin: true, name: "solve" });
    for rank in 0..2 {
        program.collective(rank, Operation::Allreduce, None);
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program.tasks);
    let said = |options: &Options, section| {
        mix(&place("capture"), &place("t.vefx"), options, &Quiet).unwrap();
        let reader = Reader::open(&place("t.vefx")).unwrap();
        let mut notes = reader.notes(section, Rank(0)).unwrap();
        let mut all = Vec::new();
        while let Some((place, note)) = notes.next(&reader).unwrap() {
            all.push(format!("{place} {note:?}"));
        }
        all
    };
    // Seven collectives of the window, two puts, the exchange.
    let counted = Options::default();
    assert_eq!(said(&counted, Section::Sends), ["7 Detached", "8 Detached"]);
    assert_eq!(said(&counted, Section::Tags), ["9 Tag(9)"]);
    let calls = ["MPI_Win_create", "MPI_Put", "MPI_Sendrecv", "MPI_Allreduce", "MPI_Finalize"];
    let calls: Vec<_> =
        [0, 7, 9, 11, 12].iter().zip(calls).map(|(at, name)| format!("{at} Call({name:?})")).collect();
    assert_eq!(said(&counted, Section::Calls), calls);
    // Rank 0's exchange ends 290 ns before the phase begins; 10 of these are without a core.
    for (keep_preempted, computed) in [(false, 280), (true, 290)] {
        let phases = said(&Options { keep_preempted, ..Options::default() }, Section::Moments);
        let before: Vec<_> = phases.iter().filter(|note| note.contains("Before")).collect();
        assert_eq!(before, [&format!("11 BeforePhase(Ticks({computed}))")], "{phases:?}");
    }
}

/// What a task does next may wait in the call in which it gave an answer.
#[test]
fn answers_have_the_name_of_the_call_in_which_they_are_given() {
    let window = WindowId(0);
    let mut program = with_window(window);
    let (target, sent, fetched) = (CommRank(1), Bytes(0), Bytes(8));
    let get = Transfer { window, target, displacement: 0, sent, fetched, at_target: fetched, request: None };
    let flush = Detail::Sync { window, target: Some(target), exclusive: false, assert: 0, group: None };
    for polls in [true, false] {
        let get = Action::Other { bytes: fetched, detail: Detail::Transfer(get) };
        program.add(0, 0, What::By("MPI_Get", get));
        let flush = Action::Other { bytes: Bytes(0), detail: flush };
        program.add(0, 0, What::By("MPI_Win_flush", flush));
        let last = program.tasks[0].last_mut().unwrap();
        last.end = last.start + 150;
        if polls {
            program.add(1, 0, What::By("MPI_Iprobe", Action::Polls { count: 1 }));
        }
        for rank in [1, 0] {
            program.collective(rank, Operation::Allreduce, None);
        }
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program.tasks);
    mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    let reader = Reader::open(&place("t.vefx")).unwrap();
    let (mut notes, mut calls) = (reader.notes(Section::Calls, Rank(1)).unwrap(), Vec::new());
    while let Some((place, note)) = notes.next(&reader).unwrap() {
        calls.push(format!("{place} {note:?}"));
    }
    // A mark in front of the poll, and the answer; then a collective, and the other answer.
    let expected = [(0, "MPI_Win_create"), (7, "MPI_Iprobe"), (9, "MPI_Allreduce"), (12, "MPI_Finalize")];
    assert_eq!(calls, expected.map(|(at, name)| format!("{at} Call({name:?})")));
}

/// Of a capture whose clocks are not those of a run, there are no times but those of the records.
#[test]
fn notes_of_times_may_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program().tasks);
    let sections = |without_clocks| {
        let options = Options { without_clocks, ..Options::default() };
        mix(&place("capture"), &place("t.vefx"), &options, &Quiet).unwrap();
        let reader = Reader::open(&place("t.vefx")).unwrap();
        reader.section_names().map(str::to_owned).collect::<Vec<_>>()
    };
    let (all, mut left) = (sections(false), sections(false));
    left.retain(|name| !["spans", "times", "moments"].contains(&&**name));
    assert_eq!((all.len() - left.len(), sections(true)), (3, left));
}

/// A second `MPI_Init`, which no program may call, begins nothing again.
#[test]
fn start_up_is_noted_once() {
    let mut program = Program::new(2);
    program.call(0, Action::Init).send(0, 1, 0, 8).receive(1, 0, 0).finish();
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program.tasks);
    mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    let spans = notes_of(&place("t.vefx"), &[Section::Spans]);
    assert_eq!(spans.iter().filter(|(_, note)| note.starts_with("0: StartUp")).count(), 1, "{spans:?}");
}

/// Only the blocks that the capture has: a root gathers or scatters, and other collectives have none.
#[test]
fn counts_are_noted_in_one_direction() {
    let mut program = Program::new(2);
    for (operation, counts) in [
        (Operation::Gatherv, [&[][..], &[8, 8]]),
        (Operation::Scatterv, [&[8, 8][..], &[]]),
        (Operation::Allreduce, [&[][..], &[]]),
    ] {
        for rank in 0..2 {
            program.collective(rank, operation, operation.is_rooted().then_some(0));
            let Happened { what: What::Plain(Action::Collective(call)), .. } =
                program.tasks[rank as usize].last_mut().unwrap()
            else {
                panic!("a collective")
            };
            if rank == 0 {
                [call.send_counts, call.recv_counts] = counts;
            }
        }
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program.tasks);
    mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    let counts = notes_of(&place("t.vefx"), &[Section::Counts]);
    let expected = [
        (0, "0: Counts { sent: [], received: [8, 8] }".to_owned()),
        (1, "0: Counts { sent: [8, 8], received: [] }".to_owned()),
    ];
    assert_eq!(counts, expected);
}

/// When a record began is noted where calls took [`Note::LAG`] since the latest such note, and of the last record.
#[test]
fn moments_are_noted_as_often_as_calls_take_time() {
    let mut program = Program::new(2);
    for _ in 0..7 {
        program.send(0, 1, 0, 8);
        let send = program.tasks[0].last_mut().unwrap();
        send.end = send.start + Note::LAG / 2;
        program.now = send.end;
        program.receive(1, 0, 0);
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program.tasks);
    mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    let reader = Reader::open(&place("t.vefx")).unwrap();
    let mut notes = reader.notes(Section::Moments, Rank(0)).unwrap();
    // Behind MPI_Init and the communicator come the sends and the end.
    let began = |record: u64| Ticks(program.tasks[0][2 + record as usize].start - program.tasks[0][0].end);
    for record in [2, 4, 6, 7] {
        assert_eq!(notes.next(&reader).unwrap(), Some((record, Note::Moment(began(record)))));
    }
    assert_eq!(notes.next(&reader).unwrap(), None);
}

/// Times without a core count as those of calls do.
#[test]
fn moments_are_noted_as_often_as_ranks_have_no_core() {
    for keep_preempted in [false, true] {
        let mut program = Program::new(2);
        for _ in 0..7 {
            program.call(0, Action::Preempted);
            let preempted = program.tasks[0].last_mut().unwrap();
            preempted.end = preempted.start + Note::LAG / 2;
            program.now = preempted.end;
            program.send(0, 1, 0, 8).receive(1, 0, 0);
        }
        program.finish();
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        capture::write(&place("capture"), &program.tasks);
        let options = Options { keep_preempted, ..Options::default() };
        mix(&place("capture"), &place("t.vefx"), &options, &Quiet).unwrap();
        let reader = Reader::open(&place("t.vefx")).unwrap();
        let (mut notes, mut moments) = (reader.notes(Section::Moments, Rank(0)).unwrap(), Vec::new());
        while let Some((record, _)) = notes.next(&reader).unwrap() {
            moments.push(record);
        }
        assert_eq!(moments, [1, 3, 5, 7], "{keep_preempted}");
    }
}

/// Of several threads, by the times of the merged records: never further apart than [`Note::LAG`].
#[test]
fn records_of_several_threads_have_moments() {
    let mut program = Program::new(2);
    for number in 0..9 {
        program.send(0, 1, 0, 8);
        let send = program.tasks[0].last_mut().unwrap();
        (send.thread, send.end) = (number % 2, send.start + Note::LAG * 3 / 10);
        program.now = send.end;
        program.receive(1, 0, 0);
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program.tasks);
    mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    let reader = Reader::open(&place("t.vefx")).unwrap();
    let mut notes = reader.notes(Section::Moments, Rank(0)).unwrap();
    let began = |record: u64| program.tasks[0][2 + record as usize].start - program.tasks[0][0].end;
    let mut noted = Vec::new();
    while let Some((record, note)) = notes.next(&reader).unwrap() {
        assert_eq!(note, Note::Moment(Ticks(began(record))));
        noted.push(record);
    }
    assert_eq!(noted.first(), Some(&0));
    for record in 0..10 {
        let last = noted.iter().rev().find(|&&noted| noted <= record).unwrap();
        assert!(began(record) - began(*last) < Note::LAG, "{record}: {noted:?}");
    }
    assert!(noted.len() < 6, "{noted:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_container_holds_the_trace_that_text_holds(seed: u64, tasks in 1u32..6, steps in 0usize..250) {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        let (text, container, back) = (place("t.vef"), place("t.vefx"), place("back.vef"));
        capture::write(&place("capture"), &model::run(seed, tasks, steps).events);
        let as_text = mix(&place("capture"), &text, &Options::default(), &Quiet).unwrap();
        let contained = mix(&place("capture"), &container, &Options::default(), &Quiet).unwrap();
        let Summary { times, peak_memory, .. } = as_text;
        prop_assert_eq!(Summary { times, peak_memory, ..contained }, as_text);
        let text = fs::read(text).unwrap();
        convert(&container, &back, &About::default(), Settings::default()).unwrap();
        prop_assert!(fs::read(&back).unwrap() == text, "mixing into a container gives another trace");
        // And through a container made from the text.
        let again = place("again.vefx");
        convert(&back, &again, &About::default(), Settings::default()).unwrap();
        convert(&again, &back, &About::default(), Settings::default()).unwrap();
        prop_assert!(fs::read(&back).unwrap() == text, "converting the text gives another trace");
    }
}

#[test]
fn records_are_counted_as_they_are_written() {
    #[derive(Default)]
    struct Heard(Mutex<Vec<(Stage, u64, u64)>>);
    impl Progress for Heard {
        fn begin(&self, stage: Stage, total: u64) {
            self.0.lock().unwrap().push((stage, total, 0));
        }
        fn advance(&self, steps: u64) {
            self.0.lock().unwrap().last_mut().unwrap().2 += steps;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &model::run(5, 4, 50_000).events);
    for name in ["t.vef", "t.vefx"] {
        let heard = Heard::default();
        let summary = mix(&place("capture"), &place(name), &Options::default(), &heard).unwrap();
        let expected =
            [(Stage::Walk, 4, 4), (Stage::Matching, 0, 0), (Stage::Output, summary.records, summary.records)];
        assert_eq!(heard.0.into_inner().unwrap(), expected);
    }
}

/// The same bytes for any memory limit and number of threads.
#[test]
fn a_container_is_the_same_in_every_mode() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &model::run(7, 6, 30_000).events);
    let mixed = |name: &str, options: &Options| {
        let summary = mix(&place("capture"), &place(name), options, &Quiet).unwrap();
        (fs::read(place(name)).unwrap(), summary.spilled)
    };
    let (whole, _) = mixed("whole.vefx", &Options::default());
    for jobs in [1, 3] {
        let options = Options { jobs, memory: Some(Bytes(1 << 18)), ..Options::default() };
        let (in_parts, spilled) = mixed("parts.vefx", &options);
        assert!(spilled.0 > 0);
        assert!(in_parts == whole, "{jobs} threads, in parts");
        assert!(mixed("threads.vefx", &Options { jobs, ..Options::default() }).0 == whole, "{jobs} threads");
    }
    let reader = Reader::open(&place("whole.vefx")).unwrap();
    let sections: Vec<_> = reader.section_names().collect();
    assert!(["calls", "sends", "tags"].iter().all(|name| sections.contains(name)), "{sections:?}");
}

#[test]
fn the_origin_knows_all_programs_and_what_the_trace_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let mut program = Program::new(4);
    for _ in 0..6 {
        program.call(1, Action::Other { bytes: Bytes(100), detail: Detail::None });
    }
    program.send(0, 3, 5, 8).receive(3, 0, 5);
    program.finish();
    let command =
        |rank: usize| if rank == 0 { vec!["./ocean".into()] } else { vec!["./ice".into(), "-n".into()] };
    capture::write_of_programs(&place("capture"), &program.tasks, command);
    let summary = mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    let reader = Reader::open(&place("t.vefx")).unwrap();
    let said = |name: &str| -> Vec<&str> {
        let origin = reader.about().origin.iter();
        origin.filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(said("program"), ["./ocean"]);
    assert_eq!(said("command"), ["./ocean", "./ice -n (tasks 1–3)"]);
    let lacks = ["6 of 7 calls that move data (86 %): a trace cannot represent them", "6 × MPI_Put (600 B)"];
    assert_eq!(said("not in the trace"), lacks);
    assert_eq!(summary.lacks(), lacks);
}

#[test]
fn waits_for_own_sends_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let mut program = Program::new(2);
    for number in 0..6 {
        program.call(0, Action::Send(sending(1, 7, 64, Some(RequestId { thread: 0, number }))));
        program.complete(0, number, Outcome::Done);
        program.receive(1, 0, 7);
    }
    program.finish();
    capture::write(&place("capture"), &program.tasks);
    // Each wait lasts 10 ns.
    for (send_waits, kept) in [(SendWaits::Replay, 0), (SendWaits::Compute, 60)] {
        let options = Options { send_waits, ..Options::default() };
        let summary = mix(&place("capture"), &place("t.vefx"), &options, &Quiet).unwrap();
        assert_eq!(summary.spent.send_waits, kept);
    }
}

/// Of each task, in the order of `sections`.
fn notes_of(trace: &Path, sections: &[Section]) -> Vec<(u64, String)> {
    let reader = Reader::open(trace).unwrap();
    let mut all = Vec::new();
    for (rank, &section) in (0..2).flat_map(|rank| sections.iter().map(move |section| (rank, section))) {
        let mut notes = reader.notes(section, Rank(rank)).unwrap();
        while let Some((place, note)) = notes.next(&reader).unwrap() {
            all.push((place, format!("{rank}: {note:?}")));
        }
    }
    all
}

#[test]
fn notes_of_a_task_whose_records_were_dropped_are_those_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let mut program = program();
    capture::write(&place("whole"), &program.tasks);
    program.tasks[0].insert(2, {
        let mut lost = Program::new(2);
        lost.now = 1150;
        lost.send(0, 1, 99, 1);
        let mut lost = lost.tasks[0].pop().unwrap();
        lost.end = lost.start;
        lost
    });
    capture::write(&place("capture"), &program.tasks);
    mix(&place("whole"), &place("whole.vefx"), &Options::default(), &Quiet).unwrap();
    let lenient = Options { lenient: true, ..Options::default() };
    let summary = mix(&place("capture"), &place("t.vefx"), &lenient, &Quiet).unwrap();
    assert_eq!(summary.dropped.sends, 1);
    let sections = [Section::Sends, Section::Calls, Section::Counts, Section::Phases];
    assert_eq!(notes_of(&place("t.vefx"), &sections), notes_of(&place("whole.vefx"), &sections));
}

//! Invalid input gives one clear error and no file; a mix with losses reports them.

use crate::capture::{self, Program, What, sending};
use mixer::{MixError, Options, Problem, Quiet, Summary, mix};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vef_format::capture::event::*;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::Operation;
use vef_format::units::Bytes;

/// Mixes a program; returns the result.
trait Mixing {
    fn mix(&self, options: &Options) -> (Result<Summary, MixError>, Mixed);
    fn error(&self) -> MixError;
    fn lines(&self, lenient: bool) -> (Vec<String>, Summary);
}

impl Mixing for Program {
    fn mix(&self, options: &Options) -> (Result<Summary, MixError>, Mixed) {
        let mixed = Mixed::new();
        capture::write(&mixed.capture(), &self.tasks);
        let result = mix(&mixed.capture(), &mixed.trace(), options, &Quiet);
        if result.is_err() {
            assert_eq!(mixed.left_behind(), 0, "something was left behind");
        }
        (result, mixed)
    }

    /// The error of a strict mix.
    fn error(&self) -> MixError {
        self.mix(&Options::default()).0.expect_err("it must be refused")
    }

    /// The lines of the trace, without the header, and the summary.
    fn lines(&self, lenient: bool) -> (Vec<String>, Summary) {
        let (result, mixed) = self.mix(&Options { lenient, ..Options::default() });
        let summary = result.expect("it mixes");
        let text = fs::read_to_string(mixed.trace()).unwrap();
        let header: Vec<u64> =
            text.lines().next().unwrap().split(' ').skip(1).map(|n| n.parse().unwrap()).collect();
        let lines: Vec<_> = text.lines().skip(1).map(str::to_owned).collect();
        let collectives = lines.iter().filter(|line| line.starts_with('G')).count() as u64;
        let communicators = lines.iter().filter(|line| line.starts_with('C')).count() as u64;
        assert_eq!(header[1..3], [lines.len() as u64 - collectives - communicators, communicators]);
        assert_eq!(header[4], collectives);
        (lines, summary)
    }
}

/// A directory with a capture, and a path for its trace.
struct Mixed(TempDir);

impl Mixed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        Self(dir)
    }

    fn capture(&self) -> PathBuf {
        self.0.path().join("capture")
    }

    fn trace(&self) -> PathBuf {
        self.0.path().join("out/t.vef")
    }

    fn left_behind(&self) -> usize {
        fs::read_dir(self.0.path().join("out")).unwrap().count()
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_told_by_its_name() {
    let mut program = Program::new(2);
    program.send(0, 1, 5, 77).receive(1, 0, 5).finish();
    let mixed = Mixed::new();
    capture::write(&mixed.capture(), &program.tasks);
    // In memory, and in parts with their own temporary file.
    for memory in [None, Some(Bytes(1))] {
        let refused = |output: &Path, cause: &str| {
            let options = Options { memory, ..Options::default() };
            let error = mix(&mixed.capture(), output, &options, &Quiet).expect_err("it must be refused");
            let said = error.to_string();
            assert!(said.starts_with(&format!("{}: ", output.display())), "{said}");
            assert!(said.contains(cause), "{said}");
            assert!(!said.contains(".part") && !said.contains(".spill"), "{said}");
        };
        let missing = mixed.0.path().join("missing");
        refused(&missing.join("x.vef"), "No such file or directory");
        refused(&missing.join("x.vefx"), "No such file or directory");
        refused(&mixed.0.path().join("capture/0.vefc/x.vefx"), "Not a directory");
        refused(&mixed.0.path().join("out"), "directory");
        if Path::new("/dev/full").exists() {
            refused(Path::new("/dev/full"), "No space left on device");
        }
    }
    assert_eq!(mixed.left_behind(), 0);
}

#[test]
fn a_place_that_cannot_be_written_to_shows_before_the_work() {
    let mut program = Program::new(2);
    program.send(0, 1, 5, 77).finish();
    let mixed = Mixed::new();
    capture::write(&mixed.capture(), &program.tasks);
    let nowhere = mixed.0.path().join("missing/x.vef");
    let error = mix(&mixed.capture(), &nowhere, &Options::default(), &Quiet).unwrap_err();
    assert!(matches!(error, MixError::Output { .. }), "{error}");
}

#[test]
fn a_send_without_receive() {
    let mut program = Program::new(2);
    program.send(0, 1, 5, 77).send(0, 1, 6, 8).receive(1, 0, 6).finish();
    let said = program.error().to_string();
    assert_eq!(
        said,
        "1 send without receive, 0 receives without send: task 0 sends to 1 with tag 5, 77 bytes"
    );
    let (lines, summary) = program.lines(true);
    assert_eq!((summary.unmatched.sends, summary.dropped.sends, summary.messages), (1, 1, 1));
    assert_eq!(summary.bytes, Bytes(8));
    // The next record takes over the dropped one's dependency, and its computing: from the end of Init at 1110 to 1600, less the
    // dropped call of 10.
    assert!(lines.contains(&"0 0 1 8 4 480 -1".to_owned()), "{lines:?}");
}

type Noted = (Vec<(i32, String)>, Vec<(u64, String)>, Vec<(u64, u64)>);

/// What a container notes of the records of rank 0: for each its tag and function, and the phase marks with what is computed before.
fn noted(program: &Program) -> Noted {
    let mixed = Mixed::new();
    let container = mixed.0.path().join("t.vefx");
    capture::write(&mixed.capture(), &program.tasks);
    mix(&mixed.capture(), &container, &Options { lenient: true, ..Options::default() }, &Quiet).unwrap();
    let reader = Reader::open(&container).unwrap();
    let mut records = vec![(-1, String::new()); reader.records_of(Rank(0)) as usize];
    let (mut phases, mut before) = (Vec::new(), Vec::new());
    for section in [Section::Tags, Section::Calls, Section::Phases, Section::Moments] {
        let Ok(mut notes) = reader.notes(section, Rank(0)) else { continue };
        while let Some((place, note)) = notes.next(&reader).unwrap() {
            let from = &mut records[place as usize..];
            match note {
                Note::Tag(tag) => from.iter_mut().for_each(|record| record.0 = tag),
                Note::Call(name) => from.iter_mut().for_each(|record| record.1 = name.to_owned()),
                Note::Phase { begin, name } => phases.push((place, format!("{name} {begin}"))),
                Note::BeforePhase(computed) => before.push((place, computed.0)),
                Note::Moment(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    (records, phases, before)
}

/// The notes of a rank with dropped records are those of a run that never made these calls.
#[test]
fn notes_of_kept_records_stay_with_them() {
    let program = |with_dropped: bool| {
        let mut program = Program::new(2);
        let mark = |begin| Action::Phase { begin, name: "a" };
        // Without a duration, so that its absence changes no time.
        let dropped = |program: &mut Program, tag: i32| {
            program.send(0, 1, tag, 77);
            let call = program.tasks[0].last_mut().unwrap();
            call.end = call.start;
            if !with_dropped {
                program.tasks[0].pop();
            }
        };
        dropped(&mut program, 50);
        program.send(0, 1, 1, 8);
        dropped(&mut program, 51);
        dropped(&mut program, 52);
        program.call(0, mark(true)).send(0, 1, 2, 8);
        dropped(&mut program, 53);
        program.send(0, 1, 2, 8);
        program.call(0, mark(false));
        dropped(&mut program, 54);
        program.receive(1, 0, 1).receive(1, 0, 2).receive(1, 0, 2).finish();
        noted(&program)
    };
    let (records, phases, before) = program(true);
    let (expected, ..) = program(false);
    let functions =
        |records: &[(i32, String)]| records.iter().map(|record| record.1.clone()).collect::<Vec<_>>();
    assert_eq!(functions(&records), functions(&expected));
    // The last record is MPI_Finalize.
    assert_eq!(records.iter().map(|record| record.0).take(3).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!((&phases, &before), (&program(false).1, &program(false).2));
    assert_eq!(phases, [(1, "a true".to_owned()), (3, "a false".to_owned())]);
}

#[test]
fn a_receive_without_send() {
    let mut program = Program::new(2);
    program.receive(1, 0, 3).finish();
    let said = program.error().to_string();
    assert_eq!(
        said,
        "0 sends without receive, 1 receive without send: task 1 receives from 0 with tag 3, 64 bytes"
    );
    let (lines, summary) = program.lines(true);
    assert_eq!(summary.unmatched.receives, 1);
    // The mark stays; the next record depends on it.
    assert!(lines.contains(&"0 1 1 0 0 190 -1".to_owned()), "{lines:?}");
    assert!(lines.contains(&"2 1 1 0 1 190 0".to_owned()), "{lines:?}");
}

#[test]
fn only_the_first_five_that_differ_are_shown() {
    let mut program = Program::new(2);
    for tag in [0, 0, 1, 1, 2, 3, 4, 5, 6] {
        program.send(0, 1, tag, 1);
    }
    program.receive(1, 0, 77).finish();
    let MixError::Unmatched(unmatched) = program.error() else { panic!("another error") };
    assert_eq!((unmatched.sends, unmatched.receives), (9, 1));
    let tags: Vec<_> = unmatched.first.iter().filter_map(|message| message.tag).collect();
    assert_eq!(tags, [0, 1, 2, 3, 4, 77]);
}

#[test]
fn a_wildcard_that_is_never_resolved() {
    let mut program = Program::new(2);
    program.send(0, 1, 0, 1).post(1, None, 0).complete(1, 0, Outcome::Done).finish();
    let MixError::Event { task, event, problem } = program.error() else { panic!("another error") };
    assert_eq!((task, event, problem), (Rank(1), 3, Problem::Unresolved));
}

/// Typical of programs that cancel receives, or post more than they need.
#[test]
fn receives_that_never_complete_and_get_no_message_are_counted() {
    let mut program = Program::new(2);
    program.post(1, None, 0).post(1, Some(0), 1).post(1, Some(0), 2).send(0, 1, 0, 9);
    let summary = program.finish().lines(false).1;
    assert_eq!((summary.messages, summary.matched, summary.never_completed), (1, 1, 3));
}

#[test]
fn a_message_that_only_probes_found_is_named() {
    let mut program = Program::new(2);
    let probe = Action::Probe { comm: capture::WORLD, source: CommRank(0), tag: 0 };
    program.send(0, 1, 0, 9).call(1, probe.clone()).call(1, probe);
    let (lines, summary) = program.finish().lines(true);
    assert_eq!((summary.messages, summary.found_only, summary.unmatched.sends), (0, 1, 1));
    // Two marks for both probes and one for MPI_Finalize, each after the one before.
    let of_task = lines.iter().filter(|line| line.split(' ').nth(1) == Some("1"));
    let after: Vec<&str> = of_task.map(|line| line.split(' ').nth(4).unwrap()).collect();
    assert_eq!(after, ["0", "1", "1"]);
}

#[test]
fn a_receive_that_is_cancelled_or_not_waited_for() {
    let mut program = Program::new(2);
    program.post(1, Some(0), 0).complete(1, 0, Outcome::Cancelled);
    program.post(1, Some(0), 1).send(0, 1, 0, 9).finish();
    let (lines, summary) = program.lines(false);
    assert_eq!((summary.messages, summary.matched, summary.marks), (1, 1, 2));
    // No call waits for it: no trigger bit.
    assert!(lines.contains(&"0 0 1 9 0 690 -1".to_owned()), "{lines:?}");
}

#[test]
fn a_cancelled_send_never_was() {
    let mut program = Program::new(2);
    let request = RequestId { thread: 0, number: 0 };
    program.call(0, Action::Send(sending(1, 0, 5, Some(request)))).complete(0, 0, Outcome::Cancelled);
    program.send(0, 1, 0, 6).receive(1, 0, 0).finish();
    let (lines, summary) = program.lines(false);
    assert_eq!((summary.dropped.cancelled, summary.messages, summary.bytes), (1, 1, Bytes(6)));
    assert!(lines.contains(&"0 0 1 6 4 570 -1".to_owned()), "{lines:?}");
}

#[test]
fn an_empty_message_to_itself_that_nobody_waits_for_is_dropped() {
    let mut program = Program::new(1);
    let forgotten = RequestId { thread: 0, number: 0 };
    program.post(0, Some(0), 0).send(0, 0, 0, 0).call(0, Action::Forget(forgotten));
    program.send(0, 0, 1, 0).receive(0, 0, 1).finish();
    let (lines, summary) = program.lines(false);
    assert_eq!((summary.dropped.empty_self, summary.messages, summary.marks), (1, 1, 2));
    assert_eq!(lines, ["C0 0", "0 0 0 0 4 480 -1", "1 0 0 0 1 90 0", "2 0 0 0 2 90 0"]);
}

#[test]
fn members_that_call_other_operations() {
    let mut program = Program::new(3);
    for rank in 0..3 {
        program.collective(rank, Operation::Barrier, None);
    }
    program.collective(0, Operation::Allreduce, None);
    program.collective(1, Operation::Allreduce, None);
    program.collective(2, Operation::Barrier, None).finish();
    let said = program.error().to_string();
    let expected = "collective 1 on the communicator of tasks 0 1 2: task 0 calls Allreduce, task 2 Barrier";
    assert_eq!(said, expected);
    assert!(matches!(
        program.mix(&Options { lenient: true, ..Options::default() }).0,
        Err(MixError::Disagreement(_))
    ));
}

#[test]
fn members_that_name_other_roots() {
    let mut program = Program::new(2);
    program.collective(0, Operation::Bcast, Some(0)).collective(1, Operation::Bcast, Some(1)).finish();
    let said = program.error().to_string();
    assert!(said.ends_with("task 0 calls Bcast (root 0), task 1 Bcast (root 1)"), "{said}");
}

#[test]
fn a_member_that_does_not_come() {
    let mut program = Program::new(3);
    program.collective(0, Operation::Barrier, None).collective(2, Operation::Barrier, None).finish();
    let said = program.error().to_string();
    assert!(said.ends_with("task 0 calls Barrier, task 1 makes no further call"), "{said}");
    let (lines, summary) = program.lines(true);
    assert_eq!((summary.dropped.collectives, summary.collectives), (2, 0));
    assert_eq!(lines.len(), 1 + 3);
    // Finalize at 2000 has what was computed from the end of Init at 1110 on, without the dropped call, which waited.
    assert!(lines.iter().any(|line| line.ends_with(" 0 0 0 0 780 -1")), "{lines:?}");
}

#[test]
fn what_a_killed_rank_waited_for_was_waited_for() {
    let mut program = Program::new(2);
    // No call follows the wait, so its own duration is not in the trace.
    program.send(0, 1, 0, 9).post(1, Some(0), 0).complete(1, 0, Outcome::Done).call(0, Action::Finalize);
    let (lines, summary) = program.lines(false);
    assert_eq!((summary.killed.len(), summary.messages, summary.matched), (1, 1, 1));
    assert!(lines.iter().any(|line| line.starts_with("0 0 1 9 4 ")), "{lines:?}");
}

#[test]
fn the_further_marks_of_a_call_stand_where_it_ends() {
    let mut program = Program::new(2);
    program.post(1, Some(0), 0).post(1, Some(0), 1);
    let done = |number| Completion { request: RequestId { thread: 0, number }, outcome: Outcome::Done };
    program.add(1, 0, What::Complete(vec![done(0), done(1)]));
    if let Some(call) = program.tasks[1].last_mut() {
        call.end = 5000;
    }
    program.send(0, 1, 0, 1).send(0, 1, 0, 2);
    program.now = 6000;
    let (lines, summary) = program.finish().lines(false);
    assert_eq!(summary.early_receptions, 0);
    assert_eq!(lines[1][..8], *"0 1 1 0 ", "{lines:?}");
    assert_eq!(lines[2][..8], *"1 0 1 1 ", "{lines:?}");
    assert_eq!(lines[3][..8], *"2 0 1 2 ", "{lines:?}");
    assert_eq!(lines[4], "3 1 1 0 2 0 1");
}

#[test]
fn ranks_that_were_not_recorded_or_stopped_are_told_apart_from_killed_ones() {
    let mut program = Program::new(4);
    program.call(1, Action::Stopped { reason: UNRECORDED });
    program.call(2, Action::Stopped { reason: "the disk is full" }).call(0, Action::Finalize);
    let (_, summary) = program.lines(false);
    assert_eq!(summary.killed, [1, 2, 3].map(Rank));
    assert_eq!((&summary.unrecorded[..], &summary.stopped[..]), (&[Rank(1)][..], &[Rank(2)][..]));
    let lacks = summary.lacks();
    let of = ["calls of 1 task not to be", "calls of 1 task behind the end", "calls of 1 task that ended"];
    assert!(lacks.len() == 3 && lacks.iter().zip(of).all(|(lack, of)| lack.starts_with(of)), "{lacks:?}");
    // MPI_Init of three ranks of 10 ns each, without that of the one that was not recorded.
    assert_eq!(summary.spent.times.start_up, 30);
}

/// It was killed in `MPI_Init`, before its file had a header.
#[test]
fn a_rank_whose_recording_did_not_begin_is_told_apart_from_killed_ones() {
    let mut program = Program::new(3);
    for rank in 0..2 {
        program.call(rank, Action::Stopped { reason: "aborted" });
    }
    let mixed = Mixed::new();
    capture::write(&mixed.capture(), &program.tasks);
    fs::write(vef_format::capture::rank_path(&mixed.capture(), Rank(2)), []).unwrap();
    let summary = mix(&mixed.capture(), &mixed.trace(), &Options::default(), &Quiet).unwrap();
    assert_eq!((summary.killed.len(), &summary.unbegun[..]), (3, &[Rank(2)][..]));
    assert_eq!(summary.spent.times.start_up, 20);
}

/// Only of waits for sends alone the replay says how long they take.
#[test]
fn a_wait_for_a_send_and_for_what_is_not_in_the_trace_is_computing() {
    let request = |number| RequestId { thread: 0, number };
    let run = Action::Complete(Completions::Run { first: request(0), count: 3 });
    let list = [1, 0, 2].map(|number| Completion { request: request(number), outcome: Outcome::Done });
    for complete in [What::Plain(run), What::Complete(list.to_vec())] {
        let mut program = Program::new(2);
        program.call(0, Action::Send(sending(1, 0, 9, Some(request(0)))));
        for number in 1..3 {
            let request = Some(request(number));
            let io = Io { file: FileId(0), offset: None, write: false, collective: false, request };
            program.call(0, Action::Other { bytes: Bytes(8), detail: Detail::Io(io) });
        }
        let summary = program.add(0, 0, complete).receive(1, 0, 0).finish().lines(false).1;
        // The calls that read, and the wait.
        assert_eq!(summary.spent.calls_kept, 10 + 10 + 10);
    }
}

#[test]
fn a_killed_rank_makes_the_mix_lenient() {
    let mut program = Program::new(2);
    program.send(0, 1, 0, 4).receive(1, 0, 0).send(0, 1, 0, 5).call(0, Action::Finalize);
    let (_, summary) = program.lines(false);
    assert_eq!(summary.killed, [Rank(1)]);
    assert_eq!((summary.messages, summary.dropped.sends), (1, 1));
}

#[test]
fn records_that_wait_for_each_other() {
    let mut program = Program::new(2);
    program.receive(0, 1, 0).receive(1, 0, 0).send(0, 1, 0, 1).send(1, 0, 0, 1).finish();
    let said = program.error().to_string();
    let expected = "records wait for each other in a circle: record 1 of task 0 for message 0 of task 1, \
        record 1 of task 1 for message 0 of task 0";
    assert_eq!(said, expected);
}

#[test]
fn clocks_that_disagree_are_counted() {
    let mut program = Program::new(2);
    program.receive(1, 0, 0).send(1, 0, 1, 2).send(0, 1, 0, 1).receive(0, 1, 1).finish();
    let (lines, summary) = program.lines(false);
    assert_eq!(summary.early_receptions, 1);
    let at = |line: &str| lines.iter().position(|other| other == line).unwrap();
    // The reply is behind the message that it answers.
    assert!(at("1 0 1 1 4 590 -1") < at("2 1 0 2 6 90 1"), "{lines:?}");
}

#[test]
fn events_that_contradict_the_run() {
    let problem = |program: &Program| match program.error() {
        MixError::Event { task: Rank(0), problem, .. } => problem,
        other => panic!("{other}"),
    };
    let mut outside = Program::new(2);
    outside.send(0, 9, 0, 1).finish();
    assert_eq!(problem(&outside), Problem::Peer { comm: 0, size: 2, rank: 9 });
    let mut unknown = Program::new(2);
    let send = Send { comm: CommId(4), ..sending(1, 0, 1, None) };
    unknown.call(0, Action::Send(send)).finish();
    assert_eq!(problem(&unknown), Problem::UnknownCommunicator(4));
    let mut rootless = Program::new(2);
    rootless.collective(0, Operation::Bcast, Some(7)).finish();
    assert_eq!(problem(&rootless), Problem::Peer { comm: 0, size: 2, rank: 7 });
    let mut stranger = Program::new(2);
    let members = vec![Rank(1)];
    stranger.add(0, 0, What::Communicator { id: CommId(1), origin: Origin::Unseen { ordinal: 0 }, members });
    assert!(stranger.finish().lines(false).1.records > 0, "knowing others' communicators is no harm");
    let mut beyond = Program::new(2);
    let members = vec![Rank(0), Rank(2)];
    beyond.add(0, 0, What::Communicator { id: CommId(1), origin: Origin::Unseen { ordinal: 0 }, members });
    assert_eq!(problem(beyond.finish()), Problem::Members(1));
    // What a receive from rank 1, or from any rank, with tag 0 received.
    for (asked, source, tag) in [(Some(1), 0, 0), (Some(1), 1, 7), (None, 1, 7)] {
        let mut other = Program::new(2);
        let outcome = Outcome::Received { source: CommRank(source), tag, bytes: None };
        other.post(0, asked, 0).complete(0, 0, outcome).finish();
        assert_eq!(problem(&other), Problem::OtherMessage, "{asked:?} {source} {tag}");
    }
    let mut same = Program::new(2);
    let outcome = Outcome::Received { source: CommRank(1), tag: 0, bytes: None };
    same.post(0, Some(1), 0).send(1, 0, 0, 1).complete(0, 0, outcome).finish();
    assert_eq!(same.lines(false).1.matched, 1);
    // The same communicator may be told twice, another one not by its number.
    let told = |members: [u32; 2]| {
        let mut twice = Program::new(3);
        for members in [[0, 1], members] {
            let (id, origin) = (CommId(1), Origin::Unseen { ordinal: members[1] });
            let members = members.map(Rank).to_vec();
            twice.add(0, 0, What::Communicator { id, origin, members });
        }
        twice.finish();
        twice
    };
    assert!(told([0, 1]).lines(false).1.records > 0);
    assert_eq!(problem(&told([0, 2])), Problem::DescribedTwice(1));
}

#[test]
fn a_place_without_capture() {
    let mixed = Mixed::new();
    let mixing = |path: &Path| mix(path, &mixed.trace(), &Options::default(), &Quiet);
    assert!(matches!(mixing(&mixed.capture()), Err(MixError::Capture(_))));
    fs::create_dir(mixed.capture()).unwrap();
    assert!(matches!(mixing(&mixed.capture()), Err(MixError::Capture(_))));
    fs::write(mixed.capture().join("0.vefc"), b"").unwrap();
    assert!(matches!(mixing(&mixed.capture()), Err(MixError::Capture(_))));
    assert_eq!(mixed.left_behind(), 0);
}

#[test]
fn a_missing_rank() {
    let mixed = Mixed::new();
    capture::write(&mixed.capture(), &Program::new(3).finish().tasks);
    fs::remove_file(mixed.capture().join("1.vefc")).unwrap();
    let said = mix(&mixed.capture(), &mixed.trace(), &Options::default(), &Quiet).unwrap_err().to_string();
    assert!(said.contains("1.vefc") && said.contains("rank 1"), "{said}");
    assert_eq!(mixed.left_behind(), 0);
}

#[test]
fn files_of_another_run_or_rank() {
    let mixed = Mixed::new();
    capture::write(&mixed.capture(), &Program::new(3).finish().tasks);
    let other = mixed.0.path().join("other");
    capture::write(&other, &Program::new(2).finish().tasks);
    let refused = |name: &str| {
        let said =
            mix(&mixed.capture(), &mixed.trace(), &Options::default(), &Quiet).unwrap_err().to_string();
        assert!(said.contains(name), "{said}");
        assert_eq!(mixed.left_behind(), 0);
    };
    // Of a run of another size.
    let own = fs::read(mixed.capture().join("1.vefc")).unwrap();
    fs::copy(other.join("1.vefc"), mixed.capture().join("1.vefc")).unwrap();
    refused("1.vefc: holds rank 1 of 2 tasks, not 1 of 3");
    // A duplicate rank.
    fs::copy(mixed.capture().join("2.vefc"), mixed.capture().join("1.vefc")).unwrap();
    refused("1.vefc: holds rank 2 of 3 tasks, not 1 of 3");
    // One rank too many.
    fs::write(mixed.capture().join("1.vefc"), own).unwrap();
    fs::copy(mixed.capture().join("2.vefc"), mixed.capture().join("3.vefc")).unwrap();
    refused("3.vefc");
}

#[test]
fn the_largest_values() {
    // Lengths, tags and communicators at the limits of their types.
    let mut program = Program::new(2);
    let members = vec![Rank(0), Rank(1)];
    for rank in 0..2 {
        let origin = Origin::Unseen { ordinal: u32::MAX };
        program.add(rank, 0, What::Communicator { id: CommId(u32::MAX), origin, members: members.clone() });
    }
    for tag in [i32::MAX, i32::MIN] {
        let comm = CommId(u32::MAX);
        program.call(0, Action::Send(Send { comm, ..sending(1, tag, u64::MAX, None) }));
        program.call(1, Action::Receive(Receive { comm, ..capture::receiving(0, tag) }));
    }
    let (lines, summary) = program.finish().lines(false);
    assert_eq!((summary.messages, summary.matched, summary.bytes), (2, 2, Bytes(u64::MAX)));
    let long = format!(" 0 1 {} ", u64::MAX);
    assert_eq!(lines.iter().filter(|line| line.contains(&long)).count(), 2, "{lines:?}");
}

/// A capture of the older layout: one task, one communicator, events with START and END.
fn older(dir: &Path, events: &[(u64, u64, u16)]) {
    fs::create_dir(dir).unwrap();
    fs::write(dir.join("VEFT.main"), "1\n./\nTask:0:Node:n:RI:1:RF:9:TI:1:TF:9\n").unwrap();
    fs::write(dir.join("0.comm"), [0i32, 1, 0].map(i32::to_le_bytes).concat()).unwrap();
    let record = |&(start, end, event): &(u64, u64, u16)| {
        let mut record = [0; 40];
        record[..8].copy_from_slice(&start.to_le_bytes());
        record[8..16].copy_from_slice(&end.to_le_bytes());
        record[32..34].copy_from_slice(&event.to_le_bytes());
        record
    };
    fs::write(dir.join("0.veft"), events.iter().map(record).collect::<Vec<_>>().concat()).unwrap();
}

#[test]
fn a_clock_that_runs_backwards() {
    let mixed = Mixed::new();
    older(&mixed.capture(), &[(100, 110, 200), (50, 60, 202)]);
    match mix(&mixed.capture(), &mixed.trace(), &Options::default(), &Quiet) {
        // The time is 0, and is counted.
        Ok(summary) => assert_eq!(summary.negative_times, 1),
        Err(error) => panic!("{error}"),
    }
    assert_eq!(fs::read_to_string(mixed.trace()).unwrap().lines().last(), Some("0 0 0 0 0 0 -1"));
}

#[test]
fn an_unknown_event_of_the_older_layout() {
    let mixed = Mixed::new();
    let dir = mixed.capture();
    older(&dir, &[(1, 2, 200), (5, 6, 177), (9, 10, 202)]);
    let said = mix(&dir, &mixed.trace(), &Options::default(), &Quiet).unwrap_err().to_string();
    assert!(said.contains("0.veft") && said.contains("record 1") && said.contains("177"), "{said}");
    assert_eq!(mixed.left_behind(), 0);
    let skip = Options { skip_unknown: true, ..Options::default() };
    let summary = mix(&dir, &mixed.trace(), &skip, &Quiet).unwrap();
    assert_eq!((summary.skipped_unknown, summary.marks), (1, 1));
}

#[test]
fn a_trace_that_was_there_survives_an_error() {
    let mixed = Mixed::new();
    fs::write(mixed.trace(), "before").unwrap();
    let mut program = Program::new(2);
    capture::write(&mixed.capture(), &program.send(0, 1, 0, 1).finish().tasks);
    assert!(mix(&mixed.capture(), &mixed.trace(), &Options::default(), &Quiet).is_err());
    assert_eq!(fs::read(mixed.trace()).unwrap(), b"before");
    assert_eq!(mixed.left_behind(), 1);
}

/// Every significant byte changed, and every length: a trace, or an error without any file.
#[test]
fn garbled_files_are_errors_or_traces() {
    let mut program = Program::new(2);
    program.send(0, 1, 0, 4).post(1, Some(0), 0);
    program.complete(1, 0, Outcome::Done);
    for rank in 0..2 {
        program.collective(rank, Operation::Bcast, Some(1));
    }
    program.finish();
    let mixed = Mixed::new();
    capture::write(&mixed.capture(), &program.tasks);
    let path = mixed.capture().join("1.vefc");
    let whole = fs::read(&path).unwrap();
    let (mut traces, mut errors) = (0, 0);
    let mut tried = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        match mix(&mixed.capture(), &mixed.trace(), &Options { jobs: 1, ..Options::default() }, &Quiet) {
            Ok(_) => {
                fs::remove_file(mixed.trace()).unwrap();
                traces += 1;
            }
            Err(_) => errors += 1,
        }
        assert_eq!(mixed.left_behind(), 0);
    };
    let used: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0).collect();
    for &at in &used {
        for change in [0x01, 0x80, 0xff] {
            let mut garbled = whole.clone();
            garbled[at] ^= change;
            tried(&garbled);
        }
    }
    for &at in used.iter().step_by(3) {
        tried(&whole[..at]);
    }
    assert!(traces > 0 && errors > 0, "{traces} traces, {errors} errors");
}

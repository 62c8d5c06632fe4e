//! Traces mixed into containers: the records of the text, and what text cannot say.

mod capture;
#[allow(dead_code, reason = "the truth is looked at elsewhere")]
mod model;

use capture::{Program, sending};
use mixer::{Options, Progress, Quiet, Stage, Summary, mix};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use vef_format::capture::event::*;
use vef_format::container::{About, Note, Reader, Section, Settings, convert};
use vef_format::ids::Rank;
use vef_format::new_file::NewFile;
use vef_format::operation::{Amounts, Operation};
use vef_format::units::{Bytes, Ticks};

/// An Isend and its wait with computing between, a phase, a collective with counts, a blocking send.
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
    program.send(0, 1, 8, 3);
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
    // Calls are 10 ns long and 100 apart: the Isend's end, a receive, a phase, the wait.
    let wait = Note::SendWait { send: 0, before: Ticks(290), took: Ticks(10) };
    said(Section::Sends, &[(0, Note::Detached), (1, wait)]);
    said(Section::Tags, &[(0, Note::Tag(7)), (2, Note::Tag(8))]);
    said(Section::Phases, &[(1, Note::Phase { begin: true, name: "solve" })]);
    said(Section::Counts, &[(1, Note::Counts { sent: &[5, 7], received: &[5, 7] })]);
    let calls = ["MPI_Isend", "MPI_Alltoallv", "MPI_Send", "MPI_Finalize"];
    said(Section::Calls, &[0, 1, 2, 3].map(|at| (at, Note::Call(calls[at as usize]))));
    // The wait lies within the computing time of the record behind it.
    let mut records = reader.task(Rank(0));
    let times: Vec<String> = std::iter::from_fn(|| records.next().unwrap())
        .map(|line| format!("{:?}", line.to_record()))
        .collect();
    assert!(times[1].contains("time: Ticks(390)"), "{}", times[1]);
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
        // And through a container that is made of the text.
        let again = place("again.vefx");
        convert(&back, &again, &About::default(), Settings::default()).unwrap();
        convert(&again, &back, &About::default(), Settings::default()).unwrap();
        prop_assert!(fs::read(&back).unwrap() == text, "converting the text gives another trace");
    }
}

#[test]
fn a_stage_of_its_own_counts_each_record_twice() {
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
    let heard = Heard::default();
    let summary = mix(&place("capture"), &place("t.vefx"), &Options::default(), &heard).unwrap();
    let heard = heard.0.into_inner().unwrap();
    let stages: Vec<_> = heard.iter().map(|&(stage, ..)| stage).collect();
    assert_eq!(stages, [Stage::Walk, Stage::Matching, Stage::Output, Stage::Container]);
    assert_eq!((heard[0].1, heard[0].2), (4, 4));
    assert_eq!((heard[2].1, heard[2].2), (summary.records, summary.records));
    assert_eq!(heard[3].1, 2 * summary.records);
    // The rest of the second half is less than one step of it.
    assert!((2 * summary.records - (1 << 14)..=2 * summary.records).contains(&heard[3].2), "{heard:?}");
}

#[test]
fn a_kill_while_the_container_is_made_leaves_nothing() {
    /// How many names there are beside the trace when the text is whole, and the container begins.
    struct Names<'a>(&'a Path, Mutex<Option<usize>>);
    impl Progress for Names<'_> {
        fn begin(&self, stage: Stage, _: u64) {
            if stage == Stage::Container {
                *self.1.lock().unwrap() = Some(fs::read_dir(self.0).unwrap().count());
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (capture, out, elsewhere) =
        (dir.path().join("capture"), dir.path().join("out"), dir.path().join("else"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    capture::write(&capture, &model::run(5, 4, 500).events);
    // The container itself has a name where the file system can do no better; its text has none anywhere.
    let begun = NewFile::create(&out.join("t.vefx")).unwrap();
    let expected = fs::read_dir(&out).unwrap().count();
    drop(begun);
    for temporary in [None, Some(elsewhere.clone())] {
        let names = Names(&out, Mutex::default());
        let options = Options { temporary, ..Options::default() };
        mix(&capture, &out.join("t.vefx"), &options, &names).unwrap();
        assert_eq!(names.1.into_inner().unwrap(), Some(expected));
        fs::remove_file(out.join("t.vefx")).unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}

#[test]
fn a_mix_that_dropped_records_leaves_notes_out() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let mut program = program();
    program.tasks[0].insert(2, {
        let mut lost = Program::new(2);
        lost.now = 1150;
        lost.send(0, 1, 99, 1);
        lost.tasks[0].pop().unwrap()
    });
    capture::write(&place("capture"), &program.tasks);
    let lenient = Options { lenient: true, ..Options::default() };
    let summary = mix(&place("capture"), &place("t.vefx"), &lenient, &Quiet).unwrap();
    assert_eq!(summary.dropped.sends, 1);
    let reader = Reader::open(&place("t.vefx")).unwrap();
    assert_eq!(reader.section_names().collect::<Vec<_>>(), ["placement"]);
}

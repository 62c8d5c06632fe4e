//! The phases of a trace in its statistics: computing belongs to the phase in which it was, also between two records.

use replay::{Extent, Job, Part};
use reports::stats::Stats;
use std::path::Path;
use std::sync::Arc;
use vef_format::container::{About, Note, Settings, Writer};
use vef_format::ids::Rank;
use vef_format::text::{Line, Reader};
use vef_format::units::Ticks;

/// Two Barriers; task 0 computes 100, 1000 and 50 ns before them and the end, task 1 less.
const TEXT: &str = "VEF3 2 2 1 2 4 0 1000\nC0 0 1\n\
    G0 C0 6 0 0 0 0 100 -1\nG0 C0 6 1 0 0 0 10 -1\n\
    G1 C0 6 0 0 0 3 1000 G0\nG1 C0 6 1 0 0 3 10 G0\n\
    0 0 0 0 3 50 G1\n1 1 1 0 3 10 G1\n";

/// Task 0 marks: `halo` from 40 ns before the first Barrier to 100 ns behind it, `compute` from there for 700 ns, and `halo` again from
/// 950 ns, with the second Barrier, up to 20 ns behind; `late` until after the 50 ns of its last record, as where another thread made that;
/// and `tail` behind that record.
const MARKS: [(u64, bool, &str, u64); 10] = [
    (0, true, "halo", 60),
    (1, false, "halo", 100),
    (1, true, "compute", 100),
    (1, false, "compute", 800),
    (1, true, "halo", 950),
    (2, false, "halo", 20),
    (2, true, "late", 30),
    (2, false, "late", 90),
    (3, true, "tail", 5),
    (3, false, "tail", 25),
];

fn trace(file: &Path) {
    let mut reader = Reader::from_bytes(TEXT.as_bytes(), Path::new("test.vef")).unwrap();
    let settings = Settings { compress: false, keep_order: true };
    let mut writer = Writer::new(Vec::new(), reader.header(), &About::default(), settings).unwrap();
    for (record, begin, name, computed) in MARKS {
        writer.note(Some(Rank(0)), record, &Note::Phase { begin, name }).unwrap();
        writer.note(Some(Rank(0)), record, &Note::BeforePhase(Ticks(computed))).unwrap();
    }
    while let Some(line) = reader.next().unwrap() {
        match line {
            Line::Communicator { id, members } => writer.communicator(id, members).unwrap(),
            Line::Message(message) => writer.message(&message).unwrap(),
            Line::Collective(part) => writer.collective(&part).unwrap(),
        }
    }
    std::fs::write(file, writer.finish().unwrap()).unwrap();
}

/// Name, entries, parts of collectives and computing of each phase, in a part of the run or in all of it; and the computing of task 0.
fn phases(part: Option<&str>) -> (Vec<(String, u64, u64, u64)>, u64) {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("t.vefx");
    trace(&file);
    let part = part.map(|part| Part::phase(part).unwrap());
    let part = part.map(|part| Arc::new(Job::open(&file).unwrap().select(&part).unwrap()));
    let stats = Stats::of_trace(&file, &Extent { from_launch: false, part }, &|_| {}).unwrap();
    let sums = stats
        .phases
        .iter()
        .map(|(name, phase)| (name.clone(), phase.entries, phase.collectives, phase.ticks));
    (sums.collect(), stats.tasks[0].ticks)
}

#[test]
fn computing_between_two_calls_is_of_the_phase_in_which_it_was() {
    let (found, _) = phases(None);
    let halo = ("halo".into(), 2, 2, 40 + 100 + 50 + 20);
    // What is computed behind the time of a record is in no sum over the run.
    let (late, tail) = (("late".into(), 1, 0, 20), ("tail".into(), 1, 0, 0));
    assert_eq!(found, [("compute".into(), 1, 0, 700), halo, late, tail]);
}

#[test]
fn a_part_has_the_phases_that_are_in_it_and_their_computing_is_its_own() {
    // The Barriers are left out: task 1 does not enter them in the part.
    assert_eq!(phases(Some("halo")), (vec![("halo".into(), 2, 0, 210)], 210));
    assert_eq!(phases(Some("halo:1")), (vec![("halo".into(), 1, 0, 140)], 140));
    assert_eq!(phases(Some("halo:2")), (vec![("halo".into(), 1, 0, 70)], 70));
    assert_eq!(phases(Some("late")), (vec![("late".into(), 1, 0, 60)], 60));
    assert_eq!(phases(Some("tail")), (vec![("tail".into(), 1, 0, 20)], 20));
}

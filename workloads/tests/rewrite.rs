//! Joined traces run side by side, and what is cut out of a trace is a sound trace of its own.

use replay::{Engine, Job, yardstick};
use std::path::{Path, PathBuf};
use vef_format::container::{About, Note, Reader, Section, Settings};
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::units::Ticks;
use vef_format::validate::{Options, validate};
use workloads::{Cut, Joined, LeftOut, RewriteError, Stretch, Workload, cut, join, pattern};

/// Writes a workload of three iterations, as a container if the name says so.
fn write(directory: &Path, name: &str, pattern_name: &str, sizes: &[u32]) -> PathBuf {
    let path = directory.join(name);
    let file = std::fs::File::create(&path).unwrap();
    let workload =
        Workload { sizes: sizes.to_vec(), iterations: 3, ..Workload::new(pattern(pattern_name).unwrap(), 1) };
    match name.ends_with(".vefx") {
        true => drop(workload.write_container(file, Settings::default()).unwrap()),
        false => drop(workload.write_text(file).unwrap()),
    }
    path
}

/// Checks that a trace is sound and replays it: run time in ps, messages and bytes.
fn replayed(path: &Path) -> (u64, u64, u64) {
    let report = validate(path, &Options::default()).unwrap();
    assert!(report.is_complete() && report.warnings == 0, "{:?}", report.problems);
    let mut engine = Engine::builder().job(Job::open(path).unwrap()).engine().unwrap();
    let outcome = yardstick::run(&mut engine, &yardstick::default_link()).unwrap();
    assert!(outcome.stuck.is_none(), "{:?}", outcome.stuck);
    let total = engine.stats().total();
    (outcome.runtime.0, total.messages, total.bytes.0)
}

fn joined(paths: &[&Path], to: &Path) -> Result<Vec<u32>, RewriteError> {
    let traces: Vec<Joined> =
        paths.iter().map(|path| Joined { path: path.to_path_buf(), codes: OpCodes::default() }).collect();
    join(&traces, to, Settings::default())
}

#[test]
fn jobs_run_side_by_side() {
    let work = tempfile::tempdir().unwrap();
    let halo = write(work.path(), "halo.vefx", "halo2d", &[4, 3]);
    let fft = write(work.path(), "fft.vef", "fft", &[4, 2]);
    // The same training in a clock of 1 ps.
    let training = write(work.path(), "training.vef", "training", &[2, 2, 1]);
    let fine = work.path().join("fine.vef");
    let text = std::fs::read_to_string(&training).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let first = first.strip_suffix(" 1000").unwrap().to_owned() + " 1";
    let rest: Vec<String> = rest
        .lines()
        .map(|line| match line.rsplitn(3, ' ').collect::<Vec<_>>()[..] {
            [after, time, rest] if !line.starts_with('C') => format!("{rest} {time}000 {after}"),
            _ => line.to_owned(),
        })
        .collect();
    std::fs::write(&fine, format!("{first}\n{}\n", rest.join("\n"))).unwrap();
    assert_eq!(replayed(&fine), replayed(&training));

    let alone: Vec<_> = [&halo, &fft, &fine].map(|path| replayed(path)).into();
    for name in ["all.vefx", "all.vef"] {
        let all = work.path().join(name);
        assert_eq!(joined(&[&halo, &fft, &fine], &all).unwrap(), [0, 12, 20]);
        let (runtime, messages, bytes) = replayed(&all);
        assert_eq!(runtime, alone.iter().map(|job| job.0).max().unwrap());
        assert_eq!(messages, alone.iter().map(|job| job.1).sum::<u64>());
        assert_eq!(bytes, alone.iter().map(|job| job.2).sum::<u64>());
        // Each job comes out as it went in.
        for (job, (first, tasks)) in alone.iter().zip([(0, 12), (12, 8), (20, 4)]) {
            let part = work.path().join("part.vefx");
            let tasks = Some((first..first + tasks).map(Rank).collect());
            let what = Cut { tasks, records: None };
            let (_, left_out) = cut(&all, &OpCodes::default(), &what, &part, Settings::default()).unwrap();
            assert_eq!(replayed(&part), *job);
            assert_eq!(LeftOut { records: 0, ..left_out }, LeftOut::default());
        }
    }
    assert!(joined(&[&halo, &work.path().join("none.vef")], &work.path().join("x.vef")).is_err());
    assert!(!work.path().join("x.vef").exists());

    // What does not fit is named with its file: in a clock of 1 ps, one time of the training is too long.
    let long = work.path().join("long.vef");
    let text = std::fs::read_to_string(&training).unwrap();
    let line = text.lines().skip(1).find(|line| !line.starts_with('C')).unwrap();
    let [after, _, rest] = line.rsplitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    std::fs::write(&long, text.replacen(line, &format!("{rest} 18446744073709552 {after}"), 1)).unwrap();
    let error = joined(&[&fine, &long], &work.path().join("x.vef")).unwrap_err().to_string();
    let named = format!("{}: a time of 18446744073709552 ticks is too long", long.display());
    assert!(error.starts_with(&named), "{error}");
}

#[test]
fn tasks_are_cut_out() {
    let work = tempfile::tempdir().unwrap();
    let ring = write(work.path(), "ring.vefx", "ring", &[6]);
    let half = work.path().join("half.vef");
    let cut = |what: &Cut, to: &Path| cut(&ring, &OpCodes::default(), what, to, Settings::default());
    let what = Cut { tasks: Some([3, 2, 1].map(Rank).into()), records: None };
    let (header, left_out) = cut(&what, &half).unwrap();
    // Of 1 → 2 → 3 the messages of three iterations; 3 sends to outside, and 1 receives from there.
    assert_eq!((replayed(&half).1, replayed(&half).2), (6, 6 * 8192));
    assert_eq!((left_out.messages, left_out.receptions, left_out.collectives), (3, 3, 0));
    assert_eq!((header.tasks, left_out.records), (3, 3 * 7));
    // The numbers are those of the order that was asked for.
    let text = std::fs::read_to_string(&half).unwrap();
    assert!(text.lines().any(|line| line.split(' ').skip(1).take(3).eq(["2", "1", "8192"])), "{text}");

    let fft = write(work.path(), "fft.vef", "fft", &[4, 2]);
    let what = Cut { tasks: Some((0..4).map(Rank).collect()), records: None };
    let to = work.path().join("row.vefx");
    let (header, left_out) =
        workloads::cut(&fft, &OpCodes::default(), &what, &to, Settings::default()).unwrap();
    replayed(&to);
    // Of two groups in one direction and four in the other, those that are whole.
    assert_eq!((header.collectives, left_out.collectives), (3, 12));

    let error = |tasks: &[u32]| {
        let tasks = Some(tasks.iter().copied().map(Rank).collect());
        cut(&Cut { tasks, records: None }, &half).unwrap_err().to_string()
    };
    assert_eq!(
        [error(&[1, 1]), error(&[6])],
        ["rank 1 is named twice", "there is no rank 6: the trace has 6 ranks, from 0"]
    );
    assert_eq!(error(&[]), "no record is in this part");
}

#[test]
fn records_are_cut_out() {
    let work = tempfile::tempdir().unwrap();
    let ring = write(work.path(), "ring.vefx", "ring", &[4]);
    // A send and a mark in each of three iterations, then the last mark: the second iteration, and half of the computing behind it.
    let stretch = Stretch { records: 2..4, before: Ticks(4_000), behind: Ticks(5_000), awaits: None };
    let what = Cut { tasks: None, records: Some(vec![vec![stretch]; 4]) };
    let to = work.path().join("second.vefx");
    let (header, left_out) = cut(&ring, &OpCodes::default(), &what, &to, Settings::default()).unwrap();
    assert_eq!((header.messages, left_out.records, left_out.receptions), (4 * 3, 4 * 5, 4));
    // 6 µs of computing, the message, and 5 µs behind the mark, which does not wait for it.
    assert_eq!(replayed(&to), (6_000_000 + 1_000_000 + 8192 * 800, 4, 4 * 8192));
    let none = Cut { tasks: None, records: Some(vec![Vec::new(); 4]) };
    let error = cut(&ring, &OpCodes::default(), &none, &to, Settings::default()).unwrap_err();
    assert_eq!(error.to_string(), "no record is in this part");
}

/// What a container notes stays with its records.
#[test]
fn notes_are_kept() {
    let work = tempfile::tempdir().unwrap();
    let plain = write(work.path(), "plain.vef", "ring", &[2]);
    let noted = work.path().join("noted.vefx");
    // Two tasks with hosts, tags and functions.
    let trace = vef_format::trace::Trace::open(&plain).unwrap();
    let file = std::fs::File::create(&noted).unwrap();
    let mut writer =
        vef_format::container::Writer::new(file, trace.header(), &Default::default(), Settings::default())
            .unwrap();
    for (task, host) in [(0, "a"), (1, "b")] {
        writer.note(None, task, &Note::Host(host)).unwrap();
        for (place, tag, call) in [(0, 5, "MPI_Send"), (3, 6, "MPI_Bsend")] {
            writer.note(Some(Rank(task as u32)), place, &Note::Tag(tag)).unwrap();
            writer.note(Some(Rank(task as u32)), place, &Note::Call(call)).unwrap();
        }
    }
    trace
        .each(|_, line| -> Result<(), RewriteError> { writer.line(&line).map_err(|error| panic!("{error}")) })
        .unwrap();
    writer.finish().unwrap();
    let notes = |path: &Path, task: u32| {
        let reader = Reader::open(path).unwrap();
        let mut all = Vec::new();
        for section in [Section::Tags, Section::Calls] {
            let mut notes = reader.notes(section, Rank(task)).unwrap();
            while let Some((place, note)) = notes.next(&reader).unwrap() {
                all.push(format!("{place} {note:?}"));
            }
        }
        (all, reader.hosts().unwrap())
    };
    let of_all = notes(&noted, 1).0;
    assert_eq!(of_all, ["0 Tag(5)", "3 Tag(6)", "0 Call(\"MPI_Send\")", "3 Call(\"MPI_Bsend\")"]);
    let twice = work.path().join("twice.vefx");
    joined(&[&noted, &noted], &twice).unwrap();
    let hosts = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(notes(&twice, 3), (of_all.clone(), hosts(&["a", "b", "a", "b"])));
    let to = work.path().join("one.vefx");
    let cut = |what: &Cut| cut(&twice, &OpCodes::default(), what, &to, Settings::default()).unwrap();
    cut(&Cut { tasks: Some(vec![Rank(3), Rank(0)]), records: None });
    assert_eq!(notes(&to, 0), (of_all, hosts(&["b", "a"])));
    // From record 2 on: what held before the part holds at its begin.
    let stretch = Stretch { records: 2..5, before: Ticks(0), behind: Ticks(0), awaits: None };
    cut(&Cut { tasks: None, records: Some(vec![vec![stretch]; 4]) });
    let expected = ["0 Tag(5)", "1 Tag(6)", "0 Call(\"MPI_Send\")", "1 Call(\"MPI_Bsend\")"];
    assert_eq!(notes(&to, 1).0, expected);
}

/// What a run's trace says of itself names the tasks of that run in a joined trace.
#[test]
fn facts_of_runs_stay_apart() {
    let work = tempfile::tempdir().unwrap();
    let plain = write(work.path(), "plain.vef", "ring", &[2]);
    let facts = |path: &Path, name: &str| -> Vec<String> {
        Reader::open(path).unwrap().about().facts(name).cloned().collect()
    };
    let run = work.path().join("run.vefx");
    let crowded = "4 ranks on 2 cores of vm";
    let origin = [
        (About::OWN_WORK, "2 s"),
        (About::NOT_IN_TRACE, "3 MPI_File_open"),
        (About::OVERSUBSCRIBED, crowded),
        ("program", "lmp"),
    ];
    let origin = origin.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let about = About { origin, ..About::default() };
    vef_format::convert::convert(&plain, &run, &about, Settings::default()).unwrap();
    let alone = work.path().join("alone.vefx");
    joined(&[&run], &alone).unwrap();
    assert_eq!(facts(&alone, About::OWN_WORK), ["2 s"]);
    let (twice, more) = (work.path().join("twice.vefx"), work.path().join("more.vefx"));
    joined(&[&run, &run], &twice).unwrap();
    assert_eq!(facts(&twice, About::OWN_WORK), ["2 s (tasks 0–1)", "2 s (tasks 2–3)"]);
    // One host is one.
    assert_eq!(facts(&twice, About::OVERSUBSCRIBED), [crowded; 2]);
    joined(&[&run, &twice], &more).unwrap();
    let lacks = ["3 MPI_File_open (tasks 0–1)", "3 MPI_File_open (tasks 2–3)", "3 MPI_File_open (tasks 4–5)"];
    assert_eq!(facts(&more, About::NOT_IN_TRACE), lacks);
    assert_eq!(facts(&more, "program"), ["lmp", "lmp", "lmp"]);
}

//! Parts of a run: which records are replayed, and what becomes of those that depend on others.

use replay::{
    Computing, Container, Engine, Job, LeftOut, Link, Loaded, Part, PartError, Picos, Raw, Selection,
    SendCompletion, Stretch, yardstick,
};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use vef_format::container::{self, About, Note, Settings};
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::Dependency;
use vef_format::text::{Line, Reader};
use vef_format::units::Ticks;

/// Records, and computing in front of them that is left out and behind them that is not; they await nothing.
fn stretch(records: Range<u64>, before: u64, behind: u64) -> Stretch {
    Stretch { before: Ticks(before), behind: Ticks(behind), ..Stretch::of(records) }
}

/// A message takes 1 µs and 1 ns a byte.
fn link() -> Link {
    Link::new(Picos(1_000_000), 8_000_000_000).unwrap()
}

/// A text trace as a container with these notes: task, place, note.
fn container(text: &str, notes: &[(u32, u64, Note<'_>)]) -> Job {
    container_about(text, notes, &About::default())
}

fn container_about(text: &str, notes: &[(u32, u64, Note<'_>)], about: &About) -> Job {
    let mut reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    let settings = Settings { compress: false, keep_order: true };
    let mut writer = container::Writer::new(Vec::new(), reader.header(), about, settings).unwrap();
    for (task, place, note) in notes {
        writer.note(Some(Rank(*task)), *place, note).unwrap();
    }
    while let Some(line) = reader.next().unwrap() {
        match line {
            Line::Communicator { id, members } => writer.communicator(id, members).unwrap(),
            Line::Message(message) => writer.message(&message).unwrap(),
            Line::Collective(part) => writer.collective(&part).unwrap(),
        }
    }
    let bytes = writer.finish().unwrap();
    let reader = container::Reader::from_bytes(bytes, Path::new("test.vefx")).unwrap();
    Job::container(Container::new(reader).unwrap())
}

fn phase(begin: bool, name: &str) -> Note<'_> {
    Note::Phase { begin, name }
}

/// Run time in nanoseconds, messages, and what was left out.
fn run(job: Job, selection: &Arc<Selection>) -> (u64, u64, LeftOut) {
    let mut engine = Engine::builder().job(job.part(selection.clone())).engine().unwrap();
    let outcome = yardstick::run(&mut engine, &link()).unwrap();
    assert!(outcome.complete(), "{}", outcome.stuck.unwrap());
    assert_eq!(engine.part(0).map(Selection::description), Some(selection.description()));
    (outcome.runtime.0 / 1000, engine.stats().total().messages, engine.left_out(0))
}

/// Both tasks enter a Barrier; task 0 computes 5 µs and sends 1000 B to task 1, which computes 7 µs and waits for them, and then sends 2000 B
/// to task 0, which waits for these.
const TEXT: &str = "VEF3 2 4 1 1 2 0 1000\nC0 0 1\n\
    G0 C0 6 0 0 0 0 900 -1\nG0 C0 6 1 0 0 0 900 -1\n\
    0 0 1 1000 7 5000 G0\n1 1 1 0 3 7000 G0\n2 1 0 2000 6 100 0\n3 0 0 0 2 50 2\n";

#[test]
fn what_depends_on_other_records_does_not_wait() {
    // The phase of task 0 begins behind its send; that of task 1 is everything.
    let notes = [
        (0, 2, phase(true, "late")),
        (1, 0, phase(true, "late")),
        (1, 3, phase(false, "late")),
        (0, 3, phase(false, "late")),
    ];
    let job = || container(TEXT, &notes);
    let selection = Arc::new(job().select(&Part::phase("late").unwrap()).unwrap());
    assert_eq!(selection.stretches(Rank(0)), [Stretch::of(2..3)]);
    assert_eq!(selection.stretches(Rank(1)), [Stretch::of(0..3)]);
    assert_eq!((selection.records(), selection.of()), (4, 6));
    assert_eq!(selection.description(), "phase \"late\", 1 entry");
    assert_eq!(selection.to_string(), "phase \"late\", 1 entry: 4 of 6 records (66.7 %)");
    assert_eq!(format!("{selection:?}"), "phase \"late\", 1 entry: 4 of 6 records");
    assert_eq!((selection.count(Rank(0), 0..9), selection.count(Rank(1), 1..9)), (1, 2));
    assert_eq!(selection.iterations(), None);
    // Task 1: 900 ns in front of the Barrier, which is left out, 7 µs, 100 ns, the message with 3 µs; task 0 waits for it and computes 50 ns.
    let left_out = LeftOut { receptions: 1, collective_parts: 1 };
    assert_eq!(run(job(), &selection), (900 + 7000 + 100 + 3000 + 50, 1, left_out));
}

/// Tasks 2 and 3 are storage servers. Task 0 asks the first of them twice, the second time in the part; task 1 asks the other.
#[test]
fn servers_begin_and_end_in_every_part() {
    let text = "VEF3 4 13 0 0 0 0 1000\n\
        0 0 2 100 4 10 -1\n1 0 0 0 2 5 10\n2 0 2 100 5 10 1\n3 0 0 0 2 5 11\n4 1 3 100 4 10 -1\n5 1 1 0 2 5 12\n\
        20 2 2 0 0 0 -1\n10 2 0 200 6 0 0\n11 2 0 200 6 0 2\n21 2 2 0 1 0 11\n\
        22 3 3 0 0 0 -1\n12 3 1 200 6 0 4\n23 3 3 0 1 0 12\n";
    let about = About { origin: vec![(About::STORAGE.into(), "tasks 2–3".into())], ..About::default() };
    let notes = [(0, 2, phase(true, "x")), (0, 4, phase(false, "x"))];
    let job = || container_about(text, &notes, &about);
    let selection = Arc::new(job().select(&Part::phase("x").unwrap()).unwrap());
    let stretches = [0, 1, 2, 3].map(|task| selection.stretches(Rank(task)).to_vec());
    let expected = [
        vec![Stretch::of(2..4)],
        Vec::new(),
        vec![Stretch::of(0..1), Stretch::of(2..4)],
        vec![Stretch::of(0..1), Stretch::of(2..3)],
    ];
    assert_eq!(stretches, expected);
    // Of 100 B and 200 B.
    assert_eq!(run(job(), &selection), (10 + 1100 + 1200 + 5, 2, LeftOut::default()));
}

#[test]
fn sends_to_other_records_are_sent() {
    // Only task 0's send.
    let notes = [(0, 1, phase(true, "send")), (0, 2, phase(false, "send"))];
    let job = || container(TEXT, &notes);
    let selection = Arc::new(job().select(&Part::phase("send:1").unwrap()).unwrap());
    assert_eq!(run(job(), &selection), (5000 + 2000, 1, LeftOut::default()));
    let in_two = Engine::builder().job(job().part(selection)).partitions(2, |node| node).unwrap();
    assert_eq!(in_two.len(), 2);
}

#[test]
fn a_part_that_is_all_is_the_run() {
    let notes = [(0, 0, phase(true, "all")), (1, 0, phase(true, "all"))];
    let job = || container(TEXT, &notes);
    let selection = Arc::new(job().select(&Part::phase("all").unwrap()).unwrap());
    let mut engine = Engine::builder().job(job()).engine().unwrap();
    let whole = yardstick::run(&mut engine, &link()).unwrap();
    assert_eq!(
        run(job(), &selection),
        (whole.runtime.0 / 1000, engine.stats().total().messages, LeftOut::default())
    );
}

/// Task 0 waits for a message of 5 + 2 µs in the Barrier that task 1 enters outside of the part, and then sends one of 2 µs.
#[test]
fn a_collective_that_is_left_out_waits_as_it_did() {
    let text = "VEF3 2 2 1 1 2 0 1000\nC0 0 1\n7 1 0 1000 4 5000 -1\nG0 C0 6 0 0 0 2 10 7\n\
        G0 C0 6 1 0 0 0 900 -1\n8 0 1 1000 3 20 G0\n";
    let notes = [(0, 0, phase(true, "x")), (1, 0, phase(true, "x")), (1, 1, phase(false, "x"))];
    let selection = Arc::new(container(text, &notes).select(&Part::phase("x").unwrap()).unwrap());
    let left_out = LeftOut { receptions: 0, collective_parts: 1 };
    assert_eq!(run(container(text, &notes), &selection), (5000 + 2000 + 10 + 20 + 2000, 2, left_out));
}

/// A part that has the first record, and all that is computed in front of it, has the start-up; another has not.
#[test]
fn only_the_beginning_of_a_run_has_the_start_up() {
    let computed = |nanos| Note::BeforePhase(Ticks(nanos));
    let starts = |record, before| {
        let start_up = [(0, 0, Note::StartUp(Ticks(100_000))), (1, 0, Note::StartUp(Ticks(0)))];
        let phases = [
            (0, record, phase(true, "x")),
            (0, record, computed(before)),
            (0, 2, phase(false, "x")),
            (0, 2, computed(0)),
        ];
        let notes = [&start_up[..], &phases[..]].concat();
        let selection = Arc::new(container(TEXT, &notes).select(&Part::phase("x").unwrap()).unwrap());
        let mut job = container(TEXT, &notes);
        job.from_launch(true).unwrap();
        run(job, &selection).0
    };
    // The Barrier of task 0 with 900 ns, which is left out, and its message of 5 + 2 µs.
    assert_eq!(starts(0, 0), 100_000 + 900 + 7000);
    assert_eq!(starts(0, 300), 600 + 7000);
    assert_eq!(starts(1, 0), 7000);
}

#[test]
fn a_phase_within_itself_is_one_entry() {
    let notes = [
        (0, 0, phase(false, "x")),
        (0, 0, phase(true, "x")),
        (0, 1, phase(true, "x")),
        (0, 2, phase(false, "x")),
        (0, 3, phase(false, "x")),
    ];
    let selection = container(TEXT, &notes).select(&Part::phase("x").unwrap()).unwrap();
    assert_eq!(selection.stretches(Rank(0)), [Stretch::of(0..3)]);
    assert_eq!(selection.description(), "phase \"x\", 1 entry");
}

/// Number and computing time of a record.
type NumberAndTime = (u64, u64);

/// The records that it is asked for, by task.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<Mutex<[Vec<NumberAndTime>; 2]>>);

impl Computing for Asked {
    fn time(&mut self, task: Rank, number: u64, record: &Raw) -> Ticks {
        self.0.lock().unwrap()[task.index()].push((number, record.time));
        Ticks(record.time)
    }

    fn again(&self) -> Box<dyn Computing> {
        Box::new(self.clone())
    }
}

/// Task 0: the Barrier, which is left out; and behind 30 ns, of which 20 lie in front of a wait for a send, its last record, which has 20 ns behind
/// the wait. Task 1: its last record.
#[test]
fn a_survey_of_a_part_sees_what_its_replay_computes() {
    let computed = |nanos| Note::BeforePhase(Ticks(nanos));
    let notes = [
        (0, 0, phase(true, "x")),
        (0, 0, computed(0)),
        (0, 1, phase(false, "x")),
        (0, 1, computed(0)),
        (0, 1, Note::Detached),
        (0, 2, Note::SendWait { send: 1, before: Ticks(20), took: Ticks(10) }),
        (0, 2, phase(true, "x")),
        (0, 2, computed(30)),
        (1, 2, phase(true, "x")),
        (1, 2, computed(0)),
    ];
    let job = || container(TEXT, &notes);
    let part = Arc::new(job().select(&Part::phase("x").unwrap()).unwrap());
    let (asked, policy) = (Asked::default(), SendCompletion::WhenSent);
    let computing = job().part(part.clone()).computing(Box::new(asked.clone()));
    let mut engine = Engine::builder().job(computing).send_completion(policy).engine().unwrap();
    assert!(yardstick::run(&mut engine, &link()).unwrap().complete());
    let mut seen = [vec![], vec![]];
    job().part(part).survey(policy, &mut |task, record| seen[task.index()].push(record.time)).unwrap();
    assert_eq!(seen, [vec![900, 0, 10], vec![100]]);
    // Numbers are those of the whole trace; the wait has that of the record behind it.
    let asked = asked.0.lock().unwrap();
    assert_eq!(*asked, [vec![(0, 900), (2, 0), (2, 10)], vec![(2, 100)]]);
}

#[test]
fn entries_of_a_phase_are_told_apart() {
    let notes = [
        (0, 0, phase(true, "x")),
        (0, 1, phase(false, "x")),
        (0, 2, phase(true, "x")),
        (1, 2, phase(true, "x")),
    ];
    let job = container(TEXT, &notes);
    let select = |text: &str| job.select(&Part::phase(text).unwrap());
    assert_eq!(select("x").unwrap().stretches(Rank(0)), [Stretch::of(0..1), Stretch::of(2..3)]);
    assert_eq!(select("x:2").unwrap().stretches(Rank(0)), [Stretch::of(2..3)]);
    assert_eq!(select("x:2").unwrap().stretches(Rank(1)), []);
    assert_eq!(select("x:1").unwrap().stretches(Rank(1)), [Stretch::of(2..3)]);
    assert!(matches!(select("x:3"), Err(PartError::Entry { most: 2, .. })));
    let unknown = select("y").unwrap_err().to_string();
    assert_eq!(unknown, "no phase \"y\" in the trace, which has x");
    assert!(matches!(container(TEXT, &[]).select(&Part::phase("x").unwrap()), Err(PartError::NoPhases)));
    assert!(Part::phase(":3").is_err() && Part::phase("").is_err());
    // A name that ends as an entry does is a name where a phase has it.
    let notes = [
        (0, 0, phase(true, "x:1")),
        (0, 1, phase(false, "x:1")),
        (0, 2, phase(true, "x:1")),
        (1, 2, phase(true, "x")),
    ];
    let job = container(TEXT, &notes);
    let select =
        |text: &str| job.select(&Part::phase(text).unwrap()).map(|part| part.stretches(Rank(0)).to_vec());
    assert_eq!(select("x:1").unwrap(), [Stretch::of(0..1), Stretch::of(2..3)]);
    assert_eq!(select("x:1:2").unwrap(), [Stretch::of(2..3)]);
    assert!(matches!(select("x:2"), Err(PartError::Entry { most: 1, .. })));
    assert!(matches!(select("x:01"), Err(PartError::UnknownPhase { name, .. }) if name == "x:01"));
}

/// A program of `ranks` ranks in a ring: a set-up of its own at each, `times` iterations, in which each rank computes, sends to both
/// neighbours, and waits for both, with an Allreduce in every other one, and an end.
struct Ring {
    text: String,
    /// The first record of each iteration at each rank, and the first behind the last.
    iterations: Vec<Vec<u64>>,
}

fn ring(ranks: u32, times: u64, set_up: impl Fn(u32) -> u64, collective: bool) -> Ring {
    let mut lines: Vec<Vec<String>> = vec![Vec::new(); ranks as usize];
    let mut iterations = vec![Vec::new(); ranks as usize];
    // Set-up: sends to itself of no period.
    let mut id = 1_000_000u64;
    for rank in 0..ranks {
        for at in 0..set_up(rank) {
            let bytes = 8 + at * at % 37;
            let to = (rank + (at * at * 7 % 11) as u32 % ranks) % ranks;
            lines[rank as usize].push(format!("{id} {rank} {to} {bytes} 0 {} -1", 1 + at * 3));
            id += 1;
        }
    }
    let message = |iteration: u64, from: u32, up: bool| {
        2 * (iteration * u64::from(ranks) + u64::from(from)) + u64::from(up)
    };
    for iteration in 0..times {
        for rank in 0..ranks {
            let (up, down) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            let own = &mut lines[rank as usize];
            iterations[rank as usize].push(own.len() as u64);
            // The iteration before has ended with a mark.
            own.push(format!("{} {rank} {up} {} 4 1000 -1", message(iteration, rank, true), 100 + iteration));
            own.push(format!("{} {rank} {down} 100 4 5 -1", message(iteration, rank, false)));
            for from in [message(iteration, down, true), message(iteration, up, false)] {
                own.push(format!("{id} {rank} {rank} 0 2 3 {from}"));
                id += 1;
            }
            if collective && iteration % 2 == 1 {
                own.push(format!("G{iteration} C0 2 {rank} 8 8 0 2 -1"));
            }
        }
    }
    let mut count = [0u64; 2];
    for rank in 0..ranks {
        iterations[rank as usize].push(lines[rank as usize].len() as u64);
        lines[rank as usize].push(format!("{id} {rank} {rank} 0 0 77 -1"));
        id += 1;
        for line in &lines[rank as usize] {
            count[usize::from(line.starts_with('G'))] += 1;
        }
    }
    let members: String = (0..ranks).map(|rank| format!(" {rank}")).collect();
    let collectives = if collective { times / 2 } else { 0 };
    let head = format!("VEF3 {ranks} {} 1 {collectives} {} 0 1000\nC0{members}\n", count[0], count[1]);
    // Ranks in turn, so that the text can be read as it is replayed.
    Ring { text: head + &lines.concat().join("\n") + "\n", iterations }
}

fn loaded(text: &str) -> Job {
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    Job::loaded(&Arc::new(Loaded::read(reader, OpCodes::default()).unwrap()))
}

#[test]
fn iterations_are_found_and_aligned() {
    for (ranks, times, collective) in
        [(2, 9, false), (3, 12, false), (5, 8, true), (8, 24, true), (1, 9, false)]
    {
        for uneven in [0, 1, 3] {
            let ring = ring(ranks, times, |rank| 5 + u64::from(rank * uneven) % 7, collective);
            let selection = loaded(&ring.text).select(&Part::iterations("2-").unwrap());
            let what = format!("{ranks} ranks, {times} times, {uneven}");
            let selection = selection.unwrap_or_else(|error| panic!("{what}: {error}"));
            // Two rounds are one iteration where every other round has a collective.
            let rounds = if collective { 2 } else { 1 };
            let first = selection.stretches(Rank(0))[0].records.start;
            let begin = ring.iterations[0].iter().position(|&at| at == first);
            let begin = begin.unwrap_or_else(|| panic!("{what}: {selection:?}"));
            assert!((rounds..=2 * rounds).contains(&begin), "{what}: {begin}");
            for (rank, iterations) in (0..).zip(&ring.iterations) {
                let [Stretch { records, .. }] = selection.stretches(Rank(rank)) else { panic!("{what}") };
                assert_eq!(records.start, iterations[begin], "{what}, rank {rank}");
                assert_eq!((records.end - records.start) % (iterations[rounds] - iterations[0]), 0);
            }
            // Nothing crosses the ends.
            let (_, messages, left_out) = run(loaded(&ring.text), &Arc::new(selection.clone()));
            assert_eq!(left_out, LeftOut::default(), "{what}");
            let of_iteration =
                if collective { (iterations_of(&selection)) * 2 * u64::from(ranks) } else { 0 };
            assert!(messages >= of_iteration, "{what}");
        }
    }
}

/// A loop that makes a communicator in each iteration repeats itself, although no two iterations use the same one.
#[test]
fn iterations_that_make_communicators_are_found() {
    let times = 9;
    let mut text = format!("VEF3 2 2 {} {} {} 0 1000\n", times + 1, 3 * times, 6 * times);
    (0..=times).for_each(|comm| text += &format!("C{comm} 0 1\n"));
    for iteration in 0..times {
        for (id, comm) in (3 * iteration..).zip([0, iteration + 1, iteration + 1]) {
            (0..2).for_each(|rank| text += &format!("G{id} C{comm} 2 {rank} 8 8 0 5 -1\n"));
        }
    }
    (0..2).for_each(|rank| text += &format!("{rank} {rank} {rank} 0 0 77 -1\n"));
    let selection = loaded(&text).select(&Part::iterations("2-").unwrap()).unwrap();
    assert_eq!(iterations_of(&selection), times - 1, "{selection:?}");
    assert_eq!(selection.stretches(Rank(0)), [Stretch::of(3..3 * times)], "{selection:?}");
    assert_eq!(selection.stretches(Rank(1)), selection.stretches(Rank(0)));
}

/// A rank that repeats nothing is cut at the same share of its records.
#[test]
fn a_rank_without_a_loop_is_cut_in_proportion() {
    let ring = ring(3, 12, |_| 5, false);
    let other: String =
        (0..11u32).map(|at| format!("{} 3 {} 8 0 1 -1\n", 2_000_000 + at, (at * at * 7 % 11) % 4)).collect();
    let (head, lines) = ring.text.split_once('\n').unwrap();
    let messages: u64 = head.split(' ').nth(2).unwrap().parse().unwrap();
    let head = head.replacen(&format!("VEF3 3 {messages}"), &format!("VEF3 4 {}", messages + 11), 1);
    let job = loaded(&format!("{head}\n{lines}{other}"));
    let selection = job.select(&Part::iterations("3-7").unwrap()).unwrap();
    assert_eq!(selection.iterations(), Some(5));
    let [Stretch { records: of_reference, .. }] = selection.stretches(Rank(0)) else {
        panic!("{selection:?}")
    };
    let all = ring.iterations[0][12] + 1;
    let [start, end] = [of_reference.start, of_reference.end].map(|record| 11 * record / all);
    assert!(0 < start && start < end && end < 11);
    assert_eq!(selection.stretches(Rank(3)), [Stretch::of(start..end)]);
}

fn iterations_of(selection: &Selection) -> u64 {
    let words: Vec<&str> = selection.description().split(' ').collect();
    words[3].parse::<u64>().unwrap() - words[1].parse::<u64>().unwrap() + 1
}

#[test]
fn what_has_no_iterations_is_refused() {
    let few = ring(3, 2, |_| 30, false);
    let found = loaded(&few.text).select(&Part::iterations("1-").unwrap());
    assert!(matches!(found, Err(PartError::NoPattern)), "{found:?}");
    let ring = ring(3, 9, |_| 4, false);
    let selected = |iterations| loaded(&ring.text).select(&Part::iterations(iterations).unwrap());
    let found = selected("3-40").unwrap_err();
    let PartError::Iterations { found: most @ 8..=9, .. } = found else { panic!("{found:?}") };
    assert_eq!(found.to_string(), format!("iterations 3-40: the main loop has only {most}"));
    // The number of iterations does not depend on which are asked for.
    let last = most.to_string();
    for asked in ["1-", "2-", &last, "3-5"] {
        let description = selected(asked).unwrap().description().to_owned();
        assert!(description.contains(&format!(" of {most} of rank")), "{asked}: {description}");
    }
    assert!(selected(&(most + 1).to_string()).is_err());
    for wrong in ["", "0", "3-2", "a", "1-b", "-3"] {
        assert!(Part::iterations(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_part_begins_and_ends_within_computing() {
    let computed = |nanos| Note::BeforePhase(Ticks(nanos));
    let notes = [
        (0, 1, phase(true, "x")),
        (0, 1, computed(600)),
        (0, 2, phase(false, "x")),
        (0, 2, computed(20)),
        // Nothing but computing.
        (1, 1, phase(true, "x")),
        (1, 1, computed(100)),
        (1, 1, phase(false, "x")),
        (1, 1, computed(3100)),
    ];
    let job = || container(TEXT, &notes);
    let selection = Arc::new(job().select(&Part::phase("x").unwrap()).unwrap());
    assert_eq!(selection.stretches(Rank(0)), [stretch(1..2, 600, 20)]);
    assert_eq!(selection.stretches(Rank(1)), [stretch(1..1, 100, 3000)]);
    assert_eq!(run(job(), &selection), (4400 + 2000, 1, LeftOut::default()));
}

#[test]
fn what_is_computed_behind_a_collective_waits_for_it() {
    let time = |behind| {
        let of = |task| {
            let marks = [(0, phase(true, "x"), 0), (1, phase(false, "x"), behind)];
            marks.map(|(place, mark, computed)| {
                [mark, Note::BeforePhase(Ticks(computed))].map(|note| (task, place, note))
            })
        };
        let notes = [of(0), of(1)].concat().concat();
        let selection = Arc::new(container(TEXT, &notes).select(&Part::phase("x").unwrap()).unwrap());
        let awaits = Some(Dependency::Collective(CollectiveId(0)));
        assert_eq!(selection.stretches(Rank(0)), [Stretch { awaits, ..stretch(0..1, 0, behind) }]);
        run(container(TEXT, &notes), &selection).0
    };
    assert_eq!(time(300), time(0) + 300);
}

/// A phase lasts until what its last receive waits for is there, and what is computed behind that follows: whether the phase ends at once, and however
/// often it is entered.
#[test]
fn what_is_computed_behind_a_reception_waits_for_it() {
    // Task 0 computes 30 µs and sends, twice; task 1 waits for that, computes 40 µs, and waits again.
    const WAITS: &str = "VEF3 2 6 0 0 0 0 1000\n\
        0 0 1 1000 4 30000 -1\n1 1 1 0 0 100 -1\n2 0 1 1000 5 30000 0\n3 1 1 0 2 40000 0\n\
        4 0 0 0 1 10 2\n5 1 1 0 2 700 2\n";
    for (behind, entries) in [(0, 1), (300, 1), (300, 2)] {
        let of = |task: u32, entry: u64| {
            let begin = (entry, phase(true, "x"), if entry > 0 { behind } else { 0 });
            let notes = [begin, (entry + 1, phase(false, "x"), behind)].map(|(place, mark, computed)| {
                [mark, Note::BeforePhase(Ticks(computed))].map(|note| (task, place, note))
            });
            notes.concat()
        };
        let of = |task| (0..entries).flat_map(move |entry| of(task, entry));
        let notes: Vec<_> = of(0).chain(of(1)).collect();
        let job = || container(WAITS, &notes);
        let selection = Arc::new(job().select(&Part::phase("x").unwrap()).unwrap());
        let awaits = |id| Some(Dependency::Received(MessageId(id)));
        let first = Stretch { awaits: awaits(0), ..stretch(0..1, 0, behind) };
        let second = Stretch { awaits: awaits(2), ..stretch(1..2, behind, behind) };
        assert_eq!(selection.stretches(Rank(1)), &[first, second][..entries as usize]);
        // A message takes 2 µs.
        let time = 32_000 + 40_000 * (entries - 1) + behind;
        assert_eq!(run(job(), &selection), (time, entries, LeftOut::default()), "{behind} {entries}");
    }
}

#[test]
fn a_phase_without_calls_has_its_computing() {
    let notes = [
        (1, 1, phase(true, "x")),
        (1, 1, Note::BeforePhase(Ticks(100))),
        (1, 1, phase(false, "x")),
        (1, 1, Note::BeforePhase(Ticks(3100))),
    ];
    let job = || container(TEXT, &notes);
    let selection = Arc::new(job().select(&Part::phase("x").unwrap()).unwrap());
    assert_eq!((selection.records(), selection.stretches(Rank(0)).len()), (0, 0));
    assert_eq!(run(job(), &selection), (3000, 0, LeftOut::default()));
}

#[test]
fn captured_time_is_that_of_the_moments() {
    let span = Note::StartUp(Ticks(123));
    let at = |nanos| Note::Moment(Ticks(nanos));
    // The Barrier took both until 2 µs; task 0 waited until 20 µs.
    let notes = [
        (0, 0, span),
        (0, 1, at(7000)),
        (0, 2, at(20_000)),
        (1, 0, span),
        (1, 1, at(9000)),
        (1, 2, at(9200)),
    ];
    let job = || container(TEXT, &notes);
    let select = |from, to: Option<u64>| {
        job().select(&Part::Captured { from: Picos(from), to: to.map(Picos) }).map(Arc::new)
    };
    let selection = select(3_000_000, Some(8_000_000)).unwrap();
    assert_eq!(selection.stretches(Rank(0)), [stretch(1..2, 1000, 0)]);
    assert_eq!(selection.stretches(Rank(1)), [stretch(1..1, 1000, 5000)]);
    assert_eq!(run(job(), &selection), (4000 + 2000, 1, LeftOut::default()));
    let all = select(0, None).unwrap();
    assert_eq!((all.records(), all.stretches(Rank(1))), (6, &[Stretch::of(0..3)][..]));
    assert!(matches!(select(5, Some(5)), Err(PartError::Backwards { .. })));
    let late = select(30_000_000, None).unwrap_err();
    assert!(matches!(late, PartError::Late { last: Picos(20_000_000), .. }), "{late}");
    let without = container(TEXT, &[(0, 0, span), (1, 0, span)]);
    let refused = without.select(&Part::Captured { from: Picos(0), to: None });
    assert!(matches!(refused, Err(PartError::NoTimes)), "{refused:?}");
}

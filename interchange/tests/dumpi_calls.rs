//! What the calls in a DUMPI trace mean: communicators, requests, datatypes, times. The traces are written here.

use crate::common::capture;
use crate::common::dumpi::Arg::{self, H, I, L, N, S, T};
use crate::common::dumpi::RankFile;
use interchange::{Options, Result, Summary};
use mixer::mix;
use vef_format::record::{Dependency, Record};
use vef_format::text::Reader;

const INT: Arg = H(9);
const WORLD: u16 = 2;

/// Imports these ranks and mixes them.
fn import(ranks: &[RankFile], options: &Options) -> Result<(Summary, mixer::Summary, Vec<Record>)> {
    let directory = tempfile::tempdir().unwrap();
    ranks.iter().enumerate().for_each(|(rank, file)| file.write(&directory.path().join("in"), rank));
    let summary = capture(&[directory.path().join("in")], directory.path(), options)?;
    let trace = directory.path().join("trace.vef");
    let settings = mixer::Options { lenient: options.partial, ..mixer::Options::default() };
    let mixed = mix(&directory.path().join("capture"), &trace, &settings, &mixer::Quiet).unwrap();
    let mut reader = Reader::open(&trace).unwrap();
    let mut records = Vec::new();
    while let Some(line) = reader.next().unwrap() {
        records.push(line.to_record());
    }
    Ok((summary, mixed, records))
}

fn four() -> [RankFile; 4] {
    [(); 4].map(|()| RankFile::new())
}

fn send(count: i32, dest: i32, tag: i32, comm: u16) -> [Arg; 5] {
    [I(count), INT, I(dest), I(tag), H(comm)]
}

fn isend(count: i32, dest: i32, tag: i32, comm: u16, request: i32) -> [Arg; 6] {
    [I(count), INT, I(dest), I(tag), H(comm), I(request)]
}

fn recv(count: i32, source: i32, tag: i32, comm: u16, status: (i32, i32, bool, i32)) -> [Arg; 6] {
    [I(count), INT, I(source), I(tag), H(comm), S(vec![status])]
}

fn done(mut ranks: [RankFile; 4]) -> [RankFile; 4] {
    for rank in &mut ranks {
        rank.finalize();
    }
    ranks
}

/// Messages of a trace: source, destination, bytes.
fn messages(records: &[Record]) -> Vec<(u32, u32, u64)> {
    let mut all: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Message(message) if !message.is_mark() => {
                Some((message.src.0, message.dst.0, message.bytes.0))
            }
            _ => None,
        })
        .collect();
    all.sort_unstable();
    all
}

/// The parts of a split have the order of their keys, and a split of a part is one of its own.
#[test]
fn a_split_of_a_split() {
    let mut ranks = four();
    for (rank, file) in (0..).zip(&mut ranks) {
        // Even and odd ranks, in descending order.
        file.call(86, &[H(WORLD), I(rank % 2), I(-rank), H(4)]);
        // Of each part its rank 0 alone (world ranks 2 and 3); the others get no communicator.
        let new = if rank >= 2 { 5 } else { 1 };
        file.call(86, &[H(4), I(if rank >= 2 { 0 } else { -32_766 }), I(0), H(new)]);
        // Rank 0 of each part sends to rank 1 of it.
        match rank {
            2 | 3 => file.call(0, &send(3, 1, 7, 4)),
            _ => file.call(1, &recv(3, 0, 7, 4, (12, 0, false, 7))),
        };
    }
    let (_, mixed, records) = import(&done(ranks), &Options::default()).unwrap();
    assert_eq!(messages(&records), [(2, 0, 12), (3, 1, 12)]);
    assert_eq!(mixed.matched, 2);
}

/// A grid of 2 × 2, its rows, and a communicator of a group made in three ways.
#[test]
fn grids_and_groups() {
    let mut ranks = four();
    for (rank, file) in (0..).zip(&mut ranks) {
        file.call(99, &[H(WORLD), I(2), L(vec![2, 2]), L(vec![0, 0]), I(0), H(4)]);
        // Dimension 1 remains: ranks 0 and 1, 2 and 3.
        file.call(111, &[I(2), H(4), L(vec![0, 1]), H(5)]);
        match rank % 2 {
            0 => file.call(0, &send(1, 1, 0, 5)),
            _ => file.call(1, &recv(1, 0, 0, 5, (4, 0, false, 0))),
        };
        file.call(72, &[H(WORLD), H(3)]);
        match rank {
            0 => file.call(76, &[H(3), I(2), L(vec![3, 1]), H(4)]),
            1 => file.call(78, &[H(3), I(1), N(vec![vec![3, 1, -2]]), H(4)]),
            // Those that are left out, joined in the other order.
            _ => file
                .call(77, &[H(3), I(3), L(vec![0, 1, 2]), H(5)])
                .call(76, &[H(3), I(1), L(vec![1]), H(6)])
                .call(73, &[H(5), H(6), H(4)]),
        };
        let member = rank % 2 == 1;
        file.call(85, &[H(WORLD), H(4), H(if member { 6 } else { 1 })]);
        if member {
            // An Allreduce of 2 doubles.
            file.call(65, &[I(2), H(14), Arg::B(3), H(6)]);
        }
        match rank {
            3 => _ = file.call(0, &send(5, 1, 1, 6)),
            1 => _ = file.call(1, &recv(5, 0, 1, 6, (20, 0, false, 1))),
            _ => {}
        }
    }
    let (summary, mixed, records) = import(&done(ranks), &Options::default()).unwrap();
    assert_eq!(messages(&records), [(0, 1, 4), (2, 3, 4), (3, 1, 20)]);
    assert_eq!((summary.calls["MPI_Cart_sub"], mixed.unmatched.sends), (4, 0));
}

/// A communicator whose creation is not in the trace.
#[test]
fn unknown_communicators_are_refused_by_name() {
    let mut ranks = four();
    ranks[0].call(0, &send(3, 1, 7, 9));
    let ranks = done(ranks);
    let error = import(&ranks, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("run-0000.bin: record 1") && error.contains("communicator 9"), "{error}");
    let partial = Options { partial: true, ..Options::default() };
    let (summary, mixed, _) = import(&ranks, &partial).unwrap();
    assert_eq!((summary.skipped["MPI_Send"].count, mixed.messages), (1, 0));
}

/// Requests are used again; any, some and all; persistent and cancelled ones; `MPI_PROC_NULL`.
#[test]
fn requests() {
    let [mut one, mut two] = [RankFile::new(), RankFile::new()];
    // A request that is used again, with a wildcard whose message the status tells.
    for round in 0..3 {
        one.call(8, &isend(1 + round, 1, round, WORLD, 2))
            .call(13, &[I(2), S(vec![(1_606_419_960, -7, true, 5)])]);
        two.call(12, &isend(9, -1, -1, WORLD, 2));
        two.call(18, &[I(2), L(vec![1, 2]), S(vec![(0, -1, false, 0), (4 + 4 * round, 0, false, round)])]);
    }
    // Waitany and Waitsome, in another order than posted; a Testany that finds nothing has garbage in its outputs.
    one.call(8, &isend(10, 1, 10, WORLD, 2)).call(8, &isend(11, 1, 11, WORLD, 3));
    one.call(18, &[I(2), L(vec![2, 3])]);
    two.call(12, &isend(10, 0, 10, WORLD, 2)).call(12, &isend(11, 0, 11, WORLD, 3));
    two.call(17, &[I(2), L(vec![2, 3]), I(77), I(0), S(vec![(1, 99, false, 1)])]);
    two.call(16, &[I(2), L(vec![2, 3]), I(1), S(vec![(44, 0, false, 11)])]);
    two.call(20, &[I(2), L(vec![2, 1]), I(1), L(vec![0]), S(vec![(40, 0, false, 10)])]);
    // Persistent ones, started twice.
    one.call(26, &isend(2, 1, 20, WORLD, 4));
    two.call(30, &isend(2, 0, 20, WORLD, 4));
    for _ in 0..2 {
        one.call(31, &[I(4)]).call(13, &[I(4)]);
        two.call(32, &[I(1), L(vec![4])]).call(18, &[I(1), L(vec![4])]);
    }
    // Of a receive that is cancelled, and of one from nobody, nothing remains.
    two.call(12, &isend(1, 0, 99, WORLD, 5)).call(24, &[I(5)]).call(13, &[I(5), S(vec![(0, 0, true, 0)])]);
    two.call(12, &isend(1, -2, 0, WORLD, 6)).call(13, &[I(6)]);
    one.call(0, &send(1, -2, 0, WORLD));
    two.call(33, &[I(1), INT, I(0), I(30), I(1), INT, I(-2), I(0), H(WORLD)]);
    one.call(1, &recv(1, 1, 30, WORLD, (4, 1, false, 30)));
    one.finalize();
    two.finalize();
    let (summary, mixed, records) = import(&[one, two], &Options::default()).unwrap();
    assert_eq!(
        messages(&records).iter().map(|message| message.2).sum::<u64>(),
        4 + 8 + 12 + 40 + 44 + 8 + 8 + 4
    );
    assert_eq!((mixed.messages, mixed.matched, mixed.unmatched.sends), (8, 8, 0));
    assert_eq!((mixed.never_completed, mixed.unknown_requests), (0, 0));
    assert_eq!(summary.told().collect::<Vec<_>>(), [""; 0]);
}

/// Sizes of derived types follow from the calls that made them.
#[test]
fn derived_datatypes() {
    let [mut one, mut two] = [RankFile::new(), RankFile::new()];
    let types: [(u16, &[Arg], u64); 6] = [
        (35, &[I(3), INT, H(28)], 12),
        (36, &[I(2), I(3), I(9), H(28), H(29)], 72),
        (38, &[I(2), L(vec![1, 4]), L(vec![0, 7]), H(14), H(30)], 40),
        // A structure of 2 doubles, a character and a bound.
        (40, &[I(3), L(vec![2, 1, 1]), L(vec![0, 16, 24]), T(vec![14, 2, 21]), H(31)], 17),
        (223, &[I(2), L(vec![9, 9]), L(vec![2, 3]), L(vec![0, 0]), Arg::B(0), INT, H(32)], 24),
        (178, &[H(32), H(33)], 24),
    ];
    let mut expected = Vec::new();
    for (label, arguments, size) in types {
        one.call(label, arguments);
        let Some(H(new)) = arguments.last() else { panic!() };
        one.call(0, &[I(1), H(*new), I(1), I(0), H(WORLD)]);
        two.call(1, &[I(100), INT, I(0), I(0), H(WORLD), S(vec![(size as i32, 0, false, 0)])]);
        expected.push((0, 1, size));
    }
    one.finalize();
    two.finalize();
    let (_, _, records) = import(&[one.clone(), two], &Options::default()).unwrap();
    expected.sort_unstable();
    assert_eq!(messages(&records), expected);
    // A distributed array does not tell what a rank has of it.
    let mut third = RankFile::new();
    third.call(0, &[I(1), H(77), I(0), I(0), H(WORLD)]);
    let error = import(&[third], &Options::default()).unwrap_err().to_string();
    assert!(error.contains("datatype 77"), "{error}");
}

/// Seconds have 16 bits, and begin anew.
#[test]
fn seconds_wrap_around() {
    let [mut one, mut two] = [RankFile::new(), RankFile::new()];
    for file in [&mut one, &mut two] {
        file.now = 65_535_999_999_000;
        file.call(52, &[H(WORLD)]);
        // Around once, and in steps of 30 000 s around again.
        for seconds in [3, 30_000, 30_000, 30_000] {
            file.now += seconds * 1_000_000_000;
            file.call(52, &[H(WORLD)]);
        }
        file.finalize();
    }
    let (_, _, records) = import(&[one, two], &Options::default()).unwrap();
    let times: Vec<u64> = records
        .iter()
        .filter_map(|record| match record {
            Record::Collective(part) if part.task.0 == 0 => Some(part.time.0),
            _ => None,
        })
        .collect();
    let later = 30_000_000_000_900;
    assert_eq!(times, [65_535_999_999_000 - 1100, 3_000_000_900, later, later, later]);
}

/// A part of a run: what was not recorded in front of the part is no computing.
#[test]
fn a_part_of_a_run() {
    let file = || {
        let mut file = RankFile::new();
        file.now += 5_000_000_000;
        file.call(52, &[H(WORLD)]).call(52, &[H(WORLD)]).finalize();
        file.not_recorded = vec![(65, 12)];
        file
    };
    let first = |options: &Options| {
        let (summary, _, records) = import(&[file(), file()], options).unwrap();
        assert!(summary.findings[0].first[0].contains("24 × MPI_Allreduce"), "{:?}", summary.findings);
        let time = |record: &Record| match record {
            Record::Collective(part) if part.after == Dependency::Start => Some(part.time.0),
            _ => None,
        };
        records.iter().find_map(time).unwrap()
    };
    assert_eq!(first(&Options::default()), 0);
    assert_eq!(first(&Options { keep_gaps: true, ..Options::default() }), 5_000_000_900);
}

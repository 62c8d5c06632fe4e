//! Collectives between the groups of an inter-communicator are the messages of the library.

use crate::capture::{self, Program};
use mixer::{Creations, MixError, Options, Problem, Quiet, mix};
use vef_format::capture::RankInfo;
use vef_format::capture::event::*;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

const INTER: CommId = CommId(1);

/// Task 0, and tasks 1 and 2.
fn groups(program: &mut Program) {
    for rank in 0..3 {
        let low = Members::Strided { first: Rank(0), stride: 1, count: 1 };
        let high = Members::Strided { first: Rank(1), stride: 1, count: 2 };
        let (members, remote) = if rank == 0 { (low, high) } else { (high, low) };
        let remote = Remote::Inside(remote);
        let origin = Origin::Unseen { ordinal: 0 };
        let comm = Communicator { id: INTER, origin, split: None, members, remote, foreign: false };
        program.call(rank, Action::Communicator(comm));
    }
}

fn part(
    operation: Operation,
    root: Option<CommRank>,
    (send, recv): (u64, u64),
    request: Option<u64>,
) -> Action<'static> {
    Action::Collective(Collective {
        operation,
        comm: INTER,
        root,
        amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
        count: 0,
        datatype: DatatypeId(0),
        recv_datatype: None,
        request: request.map(|number| RequestId { thread: 0, number }),
        send_counts: &[],
        recv_counts: &[],
    })
}

/// The messages, `from to bytes`, and marks, task by task.
fn mixed(program: &Program) -> Result<Vec<String>, MixError> {
    mixed_of("", program)
}

/// [`mixed`] of a library.
fn mixed_of(library: &str, program: &Program) -> Result<Vec<String>, MixError> {
    let dir = tempfile::tempdir().unwrap();
    capture::write_with(dir.path(), &program.tasks, |_| RankInfo {
        library: library.into(),
        ..RankInfo::default()
    });
    let trace = dir.path().join("t.vef");
    let summary = mix(dir.path(), &trace, &Options::default(), &Quiet)?;
    assert!(summary.lacks().is_empty());
    let text = std::fs::read_to_string(trace).unwrap();
    assert!(!text.contains('G'));
    let fields = text.lines().skip(1).map(|line| line.split(' ').collect::<Vec<_>>());
    let records = fields.filter(|fields| !fields[0].starts_with('C'));
    let mut records: Vec<String> = records.map(|fields| fields[1..4].join(" ")).collect();
    records.sort_by_key(|record| record[..1].to_owned());
    Ok(records)
}

#[test]
fn a_broadcast_goes_to_the_first_of_the_other_group_and_is_spread_there() {
    let mut program = Program::new(3);
    groups(&mut program);
    program.call(0, part(Operation::Bcast, Some(CommRank::ROOT), (100, 0), None));
    for rank in 1..3 {
        program.call(rank, part(Operation::Bcast, Some(CommRank(0)), (0, 100), None));
    }
    // From the last task, whose neighbour has no part in it.
    program.call(0, part(Operation::Bcast, Some(CommRank(1)), (0, 7), Some(0)));
    program.complete(0, 0, Outcome::Done);
    program.call(1, part(Operation::Bcast, Some(CommRank::BESIDE_ROOT), (0, 0), None));
    program.call(2, part(Operation::Bcast, Some(CommRank::ROOT), (7, 0), None));
    program.finish();
    // The call that does not block has another tag than those that do.
    assert!(matches!(mixed(&program), Err(MixError::Unmatched(_))));
    let blocking = part(Operation::Bcast, Some(CommRank(1)), (0, 7), None);
    let at = program.tasks[0].len() - 3;
    program.tasks[0][at].what = capture::What::Plain(blocking);
    program.tasks[0].remove(at + 1);
    // What is passed on has been received.
    let of_tasks =
        [["0 1 100", "0 0 0", "0 0 0"], ["1 1 0", "1 2 100", "1 1 0"], ["2 2 0", "2 0 7", "2 2 0"]];
    assert_eq!(mixed(&program).unwrap(), of_tasks.concat());
}

/// A call that does not block passes on data when it is started, as no call of the task says when it has come.
#[test]
fn a_broadcast_that_does_not_block_is_awaited_where_it_completes() {
    let mut program = Program::new(3);
    groups(&mut program);
    for rank in 0..3 {
        let (root, amounts) = if rank == 0 { (CommRank::ROOT, (100, 0)) } else { (CommRank(0), (0, 100)) };
        program.call(rank, part(Operation::Bcast, Some(root), amounts, Some(0)));
    }
    for rank in 0..3 {
        program.complete(rank, 0, Outcome::Done);
    }
    program.finish();
    let of_tasks = [&["0 1 100", "0 0 0"][..], &["1 2 100", "1 1 0", "1 1 0"], &["2 2 0", "2 2 0"]];
    assert_eq!(mixed(&program).unwrap(), of_tasks.concat());
}

/// Open MPI sends parts of a vector: of one element, the whole or nothing.
#[test]
fn an_element_of_a_reduction_is_not_divided() {
    let mut program = Program::new(3);
    groups(&mut program);
    let id = DatatypeId(3);
    for rank in 0..3 {
        let datatype = Datatype { id, size: Bytes(4), contiguous: true, name: "MPI_INT" };
        program.call(rank, Action::Datatype(datatype));
        let Action::Collective(call) = part(Operation::Allreduce, None, (4, 4), None) else { panic!() };
        program.call(rank, Action::Collective(Collective { datatype: id, ..call }));
    }
    program.finish();
    let records = mixed_of("Open MPI v4.1.4", &program).unwrap();
    let sizes: Vec<&str> = records.iter().map(|record| record.rsplit(' ').next().unwrap()).collect();
    assert!(sizes.contains(&"4") && sizes.iter().all(|&size| size == "4" || size == "0"), "{records:?}");
}

/// Open MPI waits for all members of both groups.
#[test]
fn the_groups_wait_for_each_other_when_they_part() {
    let mut program = Program::new(3);
    groups(&mut program);
    for rank in 0..3 {
        program.add(rank, 0, capture::What::By("MPI_Comm_disconnect", Action::CommunicatorFree(INTER)));
    }
    program.finish();
    let records = mixed_of("Open MPI v4.1.4", &program).unwrap();
    let has = |from: &str, to: [&str; 2]| {
        to.iter().any(|to| records.iter().any(|record| record.starts_with(&format!("{from} {to} "))))
    };
    assert!(has("0", ["1", "2"]) && (has("1", ["0"; 2]) || has("2", ["0"; 2])), "{records:?}");
    assert_eq!(mixed_of("MPICH Version: 4.0.2", &program).unwrap(), ["0 0 0", "1 1 0", "2 2 0"]);
}

/// The first ranks exchange three messages and spread what they learn; a capture without a library is as MPICH's.
#[test]
fn the_groups_agree_on_their_communicator() {
    let mut program = Program::new(3);
    groups(&mut program);
    for rank in 0..3 {
        let creation = Action::Creation(Creation { comm: INTER, request: None });
        program.add(rank, 0, capture::What::By("MPI_Intercomm_create", creation));
    }
    program.finish();
    let mut messages: Vec<String> =
        mixed(&program).unwrap().into_iter().filter(|record| record[..1] != record[2..3]).collect();
    let leaders = ["0 1 2", "0 1 4", "0 1 8", "1 0 16", "1 0 2", "1 0 4"];
    let spread = ["1 2 12", "1 2 128", "1 2 132", "1 2 8", "1 2 8", "2 1 128", "2 1 132"];
    let mut expected = [&leaders[..], &spread].concat();
    expected.sort_unstable();
    messages.sort();
    assert_eq!(messages, expected);
}

/// The collectives by which they agree have no record of their own, as a `G` has one group.
#[test]
fn what_the_groups_make_may_be_computing() {
    let creation = |request| {
        let request = Some(RequestId { thread: 0, number: 0 }).filter(|_| request);
        capture::What::By("MPI_Comm_dup", Action::Creation(Creation { comm: INTER, request }))
    };
    let marks = ["0 0 0", "1 1 0", "2 2 0"];
    let mut program = Program::new(3);
    groups(&mut program);
    (0..3).for_each(|rank| _ = program.add(rank, 0, creation(true)));
    (0..3).for_each(|rank| _ = program.complete(rank, 0, Outcome::Done));
    program.finish();
    assert_eq!(mixed(&program).unwrap(), marks);
    let mut program = Program::new(3);
    groups(&mut program);
    (0..3).for_each(|rank| _ = program.add(rank, 0, creation(false)));
    program.finish();
    assert_ne!(mixed(&program).unwrap(), marks);
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.tasks);
    let options = Options { creations: Creations::Compute, ..Options::default() };
    let summary = mix(dir.path(), &dir.path().join("t.vef"), &options, &Quiet).unwrap();
    assert_eq!((summary.messages, summary.marks), (0, 3));
}

/// MPI has no window and no file of two groups.
#[test]
fn a_window_of_two_groups_is_counted() {
    let mut program = Program::new(3);
    groups(&mut program);
    for rank in 0..3 {
        let detail = Detail::Window { id: WindowId(0), comm: INTER, size: Bytes(8), unit: 1 };
        let window = Action::Other { bytes: Bytes(0), detail };
        program.add(rank, 0, capture::What::By("MPI_Win_create", window));
    }
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.finish().tasks);
    let summary = mix(dir.path(), &dir.path().join("t.vef"), &Options::default(), &Quiet).unwrap();
    assert_eq!(summary.not_representable["MPI_Win_create"].count, 3);
}

/// The sends of a collective are not waited for one by one, and its record has the name of its function.
#[test]
fn a_container_names_collectives_between_groups() {
    for parts in [false, true] {
        let mut program = Program::new(3);
        groups(&mut program);
        for rank in 0..3 {
            let (root, amounts) = if rank == 0 { (CommRank::ROOT, (9, 0)) } else { (CommRank(0), (0, 9)) };
            let (name, call) = match parts {
                false => ("MPI_Bcast", part(Operation::Bcast, Some(root), amounts, None)),
                true => ("MPI_Comm_disconnect", Action::CommunicatorFree(INTER)),
            };
            program.add(rank, 0, capture::What::By(name, call));
        }
        let dir = tempfile::tempdir().unwrap();
        let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vefx"));
        let facts = |_| RankInfo { library: "Open MPI v4.1.4".into(), ..RankInfo::default() };
        capture::write_with(&capture, &program.finish().tasks, facts);
        mix(&capture, &trace, &Options::default(), &Quiet).unwrap();
        let reader = Reader::open(&trace).unwrap();
        let (mut names, mut detached) = (Vec::new(), 0);
        for section in [Section::Calls, Section::Sends] {
            let mut notes = reader.notes(section, Rank(0)).unwrap();
            while let Some((_, note)) = notes.next(&reader).unwrap() {
                match note {
                    Note::Call(name) => names.push(name.to_owned()),
                    _ => detached += u32::from(note == Note::Detached),
                }
            }
        }
        let name = if parts { "MPI_Comm_disconnect" } else { "MPI_Bcast" };
        assert_eq!((&names[..], detached > 0), (&[name.to_owned(), "MPI_Finalize".to_owned()][..], true));
    }
}

/// Members of another `MPI_COMM_WORLD` are not known. To free a communicator with these moves nothing.
#[test]
fn a_foreign_communicator_is_freed_without_a_record() {
    let mut program = Program::new(2);
    for rank in 0..2 {
        let (members, remote) = (Members::All, Remote::None);
        let origin = Origin::Unseen { ordinal: 0 };
        let comm = Communicator { id: INTER, origin, split: None, members, remote, foreign: true };
        program.call(rank, Action::Communicator(comm));
        program.add(rank, 0, capture::What::By("MPI_Comm_free", Action::CommunicatorFree(INTER)));
    }
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.finish().tasks);
    let summary = mix(dir.path(), &dir.path().join("t.vef"), &Options::default(), &Quiet).unwrap();
    assert!(summary.not_representable.is_empty() && summary.marks == 2, "{:?}", summary.not_representable);
}

#[test]
fn impossible_roots_are_refused() {
    let problem = |action: Action<'static>| {
        let mut program = Program::new(3);
        groups(&mut program);
        program.call(0, action);
        match mixed(&program) {
            Err(MixError::Event { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    let outside = problem(part(Operation::Bcast, Some(CommRank(2)), (0, 7), None));
    assert_eq!(outside, Problem::Peer { comm: 1, size: 2, rank: 2 });
    // Also by a member that exchanges nothing with the root.
    let mut program = Program::new(3);
    groups(&mut program);
    program.call(2, part(Operation::Bcast, Some(CommRank(1)), (0, 7), None));
    let refused = mixed(&program).unwrap_err();
    let expected = Problem::Peer { comm: 1, size: 1, rank: 1 };
    assert!(matches!(&refused, MixError::Event { problem, .. } if *problem == expected), "{refused}");
    assert_eq!(problem(part(Operation::Gather, None, (0, 7), None)), Problem::Root(Operation::Gather));
    let rooted = part(Operation::Barrier, Some(CommRank::ROOT), (0, 0), None);
    assert_eq!(problem(rooted), Problem::Root(Operation::Barrier));
    // A list of blocks of another length than the group's.
    let short = problem(part(Operation::ReduceScatter, None, (8, 8), None));
    assert!(matches!(short, Problem::Schedule(Operation::ReduceScatter, _)), "{short:?}");
}

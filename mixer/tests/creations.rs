//! Calls that create communicators: as the collectives of their agreement, or as computing.

use crate::capture::{self, Program, WORLD, What};
use mixer::{Creations, Options, Quiet, mix};
use vef_format::capture::RankInfo;
use vef_format::capture::event::*;
use vef_format::ids::{CommId, Rank};

/// The collectives and marks of a run without their last ones, in which `call` makes the call of each of three ranks.
fn lines(creations: Creations, call: impl Fn(&mut Program, u32)) -> Vec<String> {
    lines_of("", creations, call)
}

/// [`lines`] of a library.
fn lines_of(library: &str, creations: Creations, call: impl Fn(&mut Program, u32)) -> Vec<String> {
    let mut program = Program::new(3);
    for rank in 0..3 {
        call(&mut program, rank);
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    capture::write_with(dir.path(), &program.tasks, |_| RankInfo {
        library: library.into(),
        ..RankInfo::default()
    });
    let trace = dir.path().join("t.vef");
    let options = Options { creations, ..Options::default() };
    mix(dir.path(), &trace, &options, &Quiet).unwrap();
    let text = std::fs::read_to_string(trace).unwrap();
    // Without times, which depend on the order of the ranks.
    let fields = text.lines().skip(1).map(|line| line.split(' ').collect::<Vec<_>>());
    let of_rank_1 = fields.filter(|fields| match &fields[0][..1] {
        "C" => true,
        "G" => fields[3] == "1",
        _ => fields[1] == "1",
    });
    of_rank_1
        .map(|mut fields| {
            let time = fields.len() - 2;
            if !fields[0].starts_with('C') {
                fields.remove(time);
            }
            fields.join(" ")
        })
        .collect()
}

fn creation(comm: CommId, request: Option<RequestId>) -> Action<'static> {
    Action::Creation(Creation { comm, request })
}

#[test]
fn a_duplicate_is_agreed_on() {
    let dup = |program: &mut Program, rank: u32| {
        program.add(rank, 0, What::By("MPI_Comm_dup", creation(WORLD, None)));
    };
    assert_eq!(
        lines(Creations::Collectives, dup),
        ["C0 0 1 2", "G0 C0 2 1 260 260 0 -1", "G1 C0 0 1 0 4 3 G0", "1 1 1 0 3 G1",]
    );
    assert_eq!(lines(Creations::Compute, dup), ["C0 0 1 2", "1 1 1 0 0 -1"]);
}

#[test]
fn a_duplicate_that_does_not_block_is_waited_for() {
    let idup = |program: &mut Program, rank: u32| {
        let request = RequestId { thread: 0, number: 0 };
        program.add(rank, 0, What::By("MPI_Comm_idup", creation(WORLD, Some(request))));
        program.complete(rank, 0, Outcome::Done);
    };
    assert_eq!(
        lines(Creations::Collectives, idup),
        ["C0 0 1 2", "2 1 1 0 0 -1", "G0 C0 2 1 260 260 1 2", "3 1 1 0 1 2", "7 1 1 0 3 G0",]
    );
    assert_eq!(lines(Creations::Compute, idup), ["C0 0 1 2", "1 1 1 0 0 -1"]);
}

#[test]
fn a_group_agrees_on_its_communicator_alone() {
    let group = |program: &mut Program, rank: u32| {
        if rank > 0 {
            let id = CommId(1);
            let origin = Origin::Group { parent: WORLD, tag: 0, ordinal: 0 };
            program.add(rank, 0, What::Communicator { id, origin, members: vec![Rank(1), Rank(2)] });
            program.add(rank, 0, What::By("MPI_Comm_create_group", creation(id, None)));
        }
    };
    assert_eq!(
        lines(Creations::Collectives, group),
        ["C0 0 1 2", "C1 1 2", "G0 C1 2 1 260 260 0 -1", "G1 C1 0 1 4 0 3 G0", "1 1 1 0 3 G1",]
    );
}

/// Open MPI waits for all members; MPICH does not.
#[test]
fn a_communicator_is_disconnected_by_all() {
    let disconnect = |program: &mut Program, rank: u32| {
        program.add(rank, 0, What::By("MPI_Comm_disconnect", Action::CommunicatorFree(WORLD)));
    };
    let of = |library, creations| lines_of(library, creations, disconnect);
    let barrier = ["C0 0 1 2", "G0 C0 6 1 0 0 0 -1", "1 1 1 0 3 G0"];
    assert_eq!(of("Open MPI v4.1.4", Creations::Collectives), barrier);
    assert_eq!(of("Open MPI v4.1.4", Creations::Compute), ["C0 0 1 2", "1 1 1 0 0 -1"]);
    assert_eq!(of("MPICH Version: 4.0.2", Creations::Collectives), ["C0 0 1 2", "1 1 1 0 0 -1"]);
}

//! The listings of the thesis, and what is wrong with files.

use super::*;

/// The listings of the thesis: a ring in four rounds, and a reduction in the halves of eight ranks.
fn ring(rank: u32) -> String {
    let mut text = format!("{rank} init 1\n");
    for round in 0..4 {
        text += &format!(
            "Phase round{round} start.\n\
             {rank} Irecv {} 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD\n\
             {rank} send {} 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD\n\
             {rank} wait\n\
             Phase round{round} end.\n",
            (rank + 3) % 4,
            (rank + 1) % 4
        );
    }
    text + &format!("{rank} finalize\n")
}

fn halves(rank: u32) -> String {
    let half = rank % 2;
    format!(
        "{rank} init 1\n\
         {rank} Comm split. color={half}, key={rank}.New comm mini_comm_0_{half} of size 4\n\
         {rank} allReduce 1 (of 4 bytes) of type 1 on comm mini_comm_0_{half} 1\n\
         Comm mini_comm_0_{half} free.\n\
         {rank} finalize\n"
    )
}

fn aggregated(
    ranks: u32,
    text: impl Fn(u32) -> String,
) -> (tempfile::TempDir, Result<Aggregated, TextError>) {
    let work = tempfile::tempdir().unwrap();
    for rank in 0..ranks {
        std::fs::write(work.path().join(format!("ti_trace{rank}.txt")), text(rank)).unwrap();
    }
    let result = aggregate(work.path());
    (work, result)
}

fn output(work: &tempfile::TempDir, name: &str) -> String {
    std::fs::read_to_string(work.path().join("parserOutput").join(name)).unwrap()
}

#[test]
fn the_reduction_of_the_thesis() {
    let (work, summary) = aggregated(8, halves);
    assert_eq!(summary.unwrap().collectives, 2);
    assert_eq!(
        output(&work, "global.txt"),
        "(allReduce 4 contig mini_comm_0_0)\n(allReduce 4 contig mini_comm_0_1)\n"
    );
    let communicators = output(&work, "communicators.txt");
    assert!(communicators.contains("mini_comm_0_1 {'members': ['1', '3', '5', '7'], 'size': 4}\n"));
}

#[test]
fn roots_sendrecv_and_nested_phases() {
    let (work, summary) = aggregated(2, |rank| {
        let other = 1 - rank;
        format!(
            "Phase a start.\nPhase b start.\n\
             {rank} Sendrecv {other} 2 (of 8 bytes) 101 on comm MPI_COMM_WORLD\n\
             {other} Sendrecv {rank} 2 (of 8 bytes) 101 on comm MPI_COMM_WORLD\n\
             Phase b end.\n\
             {rank} gatherv min=1 median=2 max=3 (of 4 bytes) 1 of type 1 on comm MPI_COMM_WORLD\n\
             Phase a end.\nPhase b start.\nPhase b end.\n"
        )
    });
    assert_eq!(summary.unwrap().messages, 2);
    assert_eq!(
        output(&work, "a.txt"),
        "Coming from global.txt\nGoing to b.txt\nReturned from b.txt\n\
         (gatherv 1 4/8/12 contig MPI_COMM_WORLD)\nReturning to global.txt\n"
    );
    assert_eq!(
        output(&work, "b.txt"),
        "Coming from a.txt\n(0 1 16 no_contig MPI_COMM_WORLD)\n(1 0 16 no_contig MPI_COMM_WORLD)\nReturning to a.txt\n\
         Coming from global.txt\nReturning to global.txt\n"
    );
}

#[test]
fn names_of_phases_stay_in_the_directory() {
    let (work, summary) = aggregated(1, |_| {
        let phase = |name: &str| format!("Phase {name} start.\nPhase {name} end.\n");
        phase("../x") + &phase("..x") + &phase("global") + &phase("_.._x")
    });
    assert_eq!(summary.unwrap().phases, 4);
    let mut names: Vec<_> = std::fs::read_dir(work.path().join("parserOutput"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 7, "{names:?}");
}

#[test]
fn what_is_wrong_is_placed() {
    let said = |ranks, text: fn(u32) -> String| aggregated(ranks, text).1.unwrap_err().to_string();
    let garbled = said(2, |rank| format!("{rank} init 1\n{rank} send x\n"));
    assert!(garbled.contains("ti_trace0.txt:2: "), "{garbled}");
    let phases = said(2, |rank| format!("Phase {rank} start.\n"));
    assert!(phases.contains("ti_trace1.txt:1: this rank begins phase 1, but "), "{phases}");
    let ended = said(2, |rank| if rank == 0 { String::new() } else { "Phase x start.\n".into() });
    assert!(ended.contains("ti_trace0.txt:0: this rank is at its end, but "), "{ended}");
    let long = said(1, |_| "x".repeat(1 << 20));
    assert!(long.contains("ti_trace0.txt:1: longer"), "{long}");
    // The last rank's file is missing: somebody sent to it, or the tool says how many there were.
    let ended = said(3, ring);
    assert!(ended.ends_with("ti_trace3.txt is missing"), "{ended}");
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(aggregate(empty.path()), Err(TextError::Nothing(_))));
    std::fs::write(empty.path().join("ti_trace1.txt"), "").unwrap();
    assert!(matches!(aggregate(empty.path()), Err(TextError::Missing(_))));
}

#[test]
fn the_number_of_ranks_is_held_against_the_files() {
    let (work, summary) = aggregated(2, |rank| format!("{rank} init 1\n{rank} finalize\n"));
    assert_eq!(summary.unwrap().ranks, 2);
    let with = |ranks: &str| {
        std::fs::write(work.path().join("ranks"), ranks).unwrap();
        aggregate(work.path()).map(|summary| summary.ranks).map_err(|error| error.to_string())
    };
    assert_eq!(with("2\n"), Ok(2));
    assert!(with("3\n").is_err_and(|said| said.ends_with("ti_trace2.txt is missing")));
    assert!(
        with("1\n").is_err_and(|said| said.ends_with("ti_trace1.txt is of another run: this one had 1 rank"))
    );
    assert!(with("x").is_err_and(|said| said.ends_with("ranks:1: not a number of ranks")));
}

#[test]
fn what_fails_leaves_the_old_output() {
    let (work, summary) = aggregated(4, ring);
    summary.unwrap();
    let before = output(&work, "round2.txt");
    std::fs::write(work.path().join("ti_trace2.txt"), "2 init 1\n2 send x\n").unwrap();
    assert!(aggregate(work.path()).is_err());
    assert_eq!(output(&work, "round2.txt"), before);
    let names = std::fs::read_dir(work.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    // What is replaced is replaced as a whole.
    std::fs::write(work.path().join("parserOutput/stale.txt"), "").unwrap();
    for rank in 0..4 {
        std::fs::write(work.path().join(format!("ti_trace{rank}.txt")), ring(rank)).unwrap();
    }
    aggregate(work.path()).unwrap();
    assert!(!work.path().join("parserOutput/stale.txt").exists());
}

//! Imports of OTF2, SimGrid and liballprof traces, against independent counts of the samples.

mod common;

use common::{calls, import, sample, shared};
use interchange::Options;

#[test]
fn an_archive_of_score_p() {
    let (summary, mixed) = import(&sample("otf2/pingpong2"), &Options::default());
    assert_eq!((calls(&summary, "MPI_Send"), calls(&summary, "MPI_Recv")), (16, 16));
    assert_eq!((summary.ranks, summary.messages, summary.bytes), (2, 16, 8_355_840));
    assert_eq!((mixed.messages, mixed.matched, mixed.bytes.0), (16, 16, 8_355_840));
}

/// Seven communicators, whose numbers differ from rank to rank.
#[test]
fn an_archive_with_communicators() {
    let Some(path) = shared("otf2/mpi10") else { return };
    let (summary, mixed) = import(&path, &Options::default());
    assert_eq!((summary.ranks, summary.messages, summary.bytes), (10, 1440, 23_592_600));
    assert_eq!((mixed.messages, mixed.matched, mixed.bytes.0), (1440, 1440, 23_592_600));
    for (name, count) in
        [("MPI_Gather", 30), ("MPI_Bcast", 30), ("MPI_Allgather", 360), ("MPI_Allreduce", 360)]
    {
        assert_eq!(calls(&summary, name), count, "{name}");
    }
    let left_out: u64 = ["MPI_Iallgather", "MPI_Ialltoall", "MPI_Iallreduce"]
        .map(|name| summary.skipped[name].count)
        .iter()
        .sum();
    assert_eq!(left_out, 1080);
    let (global, corrected) = import(&path, &Options { global_clock: true, ..Options::default() });
    assert_eq!((global.messages, corrected.matched), (1440, 1440));
}

#[test]
fn an_archive_of_two_chunks() {
    let Some(path) = shared("otf2/chunks2") else { return };
    let (summary, mixed) = import(&path, &Options::default());
    assert_eq!((summary.messages, summary.bytes), (6500, 802_490_250_250));
    assert_eq!((mixed.matched, mixed.bytes.0), (6500, 802_490_250_250));
    // A non-blocking collective that one of the two ranks called.
    assert_eq!((calls(&summary, "MPI_Iallreduce"), mixed.dropped.collectives), (1, 1));
}

fn at(flops_per_second: f64) -> Options {
    Options { flops_per_second: Some(flops_per_second), ..Options::default() }
}

#[test]
fn the_examples_of_simgrid() {
    let Some(path) = shared("simgrid-ti/examples") else { return };
    let of = |name: &str| {
        let (summary, mixed) = import(&path.join(name), &at(1e9));
        assert_eq!(mixed.matched, summary.messages, "{name}");
        (summary.messages, summary.bytes, mixed.collectives)
    };
    let expected = [
        ("actions_barrier.txt", (1, 10_000_000, 1)),
        ("actions_waitall.txt", (3, 8000, 0)),
        ("actions_with_isend.txt", (3, 3_000_000, 0)),
        ("actions_allgatherv.txt", (0, 0, 1)),
        ("actions_allreduce.txt", (0, 0, 1)),
        ("actions_alltoall.txt", (0, 0, 1)),
        ("actions_alltoallv.txt", (0, 0, 1)),
        ("actions_bcast.txt", (0, 0, 3)),
        ("actions_bcast_reduce_datatypes.txt", (0, 0, 3)),
        ("actions_gather.txt", (0, 0, 1)),
        ("actions_reducescatter.txt", (0, 0, 1)),
    ];
    for (name, counts) in expected {
        assert_eq!(of(name), counts, "{name}");
    }
}

#[test]
fn a_simgrid_trace_of_32_ranks() {
    let Some(path) = shared("simgrid-ti/app32") else { return };
    let (summary, mixed) = import(&path, &at(1e9));
    let expected = [
        ("MPI_Bcast", 288),
        ("MPI_Barrier", 512),
        ("MPI_Gather", 32),
        ("MPI_Alltoall", 160),
        ("MPI_Allreduce", 192),
        ("MPI_Alltoallv", 64),
    ];
    for (name, count) in expected {
        assert_eq!(calls(&summary, name), count, "{name}");
    }
    assert_eq!((mixed.local_collectives, mixed.messages), (1248, 0));
}

#[test]
fn a_trace_by_simgrids_tracer() {
    let Some(path) = shared("simgrid-ti/traced4") else { return };
    let (summary, mixed) = import(&path, &at(1e9));
    // 16 sends, and the messages of four sendRecv of 5 bytes each.
    assert_eq!((summary.messages, summary.bytes), (20, 3364 + 20));
    assert_eq!((mixed.messages, mixed.matched), (20, 20));
    assert_eq!(calls(&summary, "MPI_Ssend"), 1);
}

#[test]
fn broadcasts_of_liballprof() {
    let Some(path) = shared("liballprof") else { return };
    let (summary, mixed) = import(&path, &Options::default());
    assert_eq!(calls(&summary, "MPI_Bcast"), 20);
    assert_eq!((mixed.collectives, mixed.local_collectives, mixed.messages), (5, 20, 0));
}

//! Imports of DUMPI traces, against independent counts of the samples.

use crate::common::{calls, import, sample, shared};
use interchange::{Options, Summary};

/// Calls by name, messages and bytes of the sample `testtrace`: four ranks of ten calls.
#[test]
fn a_trace_of_version_1_0() {
    let (summary, mixed) = import(&sample("dumpi/testtrace"), &Options::default());
    let each_rank_once = [
        "MPI_Init",
        "MPI_Comm_rank",
        "MPI_Comm_size",
        "MPI_Barrier",
        "MPI_Isend",
        "MPI_Recv",
        "MPI_Wait",
        "MPI_Allreduce",
        "MPI_Finalize",
    ];
    assert_eq!(summary.calls.len(), each_rank_once.len());
    for name in each_rank_once {
        assert_eq!(calls(&summary, name), 4, "{name}");
    }
    assert_eq!((summary.ranks, summary.messages, summary.bytes), (4, 4, 16));
    assert_eq!((mixed.messages, mixed.matched, mixed.bytes.0, mixed.collectives), (4, 4, 16, 2));
    assert_eq!(summary.told().collect::<Vec<_>>(), [""; 0]);
}

fn of_alltoall(summary: &Summary) {
    let expected = [("MPI_Isend", 48), ("MPI_Irecv", 48), ("MPI_Waitall", 32), ("MPI_Barrier", 16)];
    for (name, count) in expected {
        assert_eq!(calls(summary, name), count, "{name}");
    }
    assert_eq!(summary.calls.values().sum::<u64>(), 164);
    assert_eq!((summary.messages, summary.bytes), (48, 192));
}

#[test]
fn a_trace_of_version_8_1() {
    let (summary, mixed) = import(&sample("dumpi/alltoall-p2p"), &Options::default());
    of_alltoall(&summary);
    assert_eq!((mixed.messages, mixed.matched, mixed.bytes.0, mixed.collectives), (48, 48, 192, 4));
    assert_eq!((mixed.negative_times, mixed.unknown_requests, mixed.never_completed), (0, 0, 0));
}

/// A communicator of a group, with small integers of four bytes.
#[test]
fn a_trace_of_blue_gene() {
    let Some(path) = shared("dumpi/testbgp") else { return };
    let (summary, mixed) = import(&path, &Options::default());
    let expected = [
        ("MPI_Isend", 588),
        ("MPI_Irecv", 588),
        ("MPI_Waitall", 98),
        ("MPI_Alltoall", 49),
        ("MPI_Barrier", 21),
        ("MPI_Comm_rank", 203),
    ];
    for (name, count) in expected {
        assert_eq!(calls(&summary, name), count, "{name}");
    }
    assert_eq!(summary.calls.values().sum::<u64>(), 1589);
    assert_eq!((summary.messages, summary.bytes), (588, 418_656));
    assert_eq!((mixed.messages, mixed.matched, mixed.bytes.0), (588, 588, 418_656));
}

//! Imports of OTF2, SimGrid and liballprof traces, against independent counts of the samples.

use crate::common::{calls, capture, import, import_records, sample, shared};
use interchange::Options;
use std::path::{Path, PathBuf};
use vef_format::ids::CollectiveId;
use vef_format::record::{Dependency, Message, Record};

/// Writes the files of a trace.
fn written(directory: &Path, files: &[(&str, &str)]) -> PathBuf {
    let to = directory.join("in");
    std::fs::create_dir(&to).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(to.join(name), text).unwrap());
    to
}

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
    let partial = Options { partial: true, ..Options::default() };
    let (summary, mixed) = import(&path, &partial);
    assert_eq!((summary.messages, summary.bytes), (6500, 802_490_250_250));
    assert_eq!((mixed.matched, mixed.bytes.0), (6500, 802_490_250_250));
    // A non-blocking collective that one of the two ranks called, of which all events are there.
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

/// Before 3.20: names in any case, no tags, and a wait for the last request of its rank.
#[test]
fn an_old_trace_of_simgrid() {
    let old = "0 init\n1 init\n0 Isend 1 100\n0 ISEND 1 3\n0 Wait\n0 compute 2e9\n0 wait\n\
        1 Irecv 0 100\n1 compute 5e9\n1 wait\n1 recv 0 3\n0 allReduce 8 1e9\n1 allReduce 8 1e9\n\
        0 bcast 16\n1 bcast 16\n0 finalize\n1 finalize\n";
    let work = tempfile::tempdir().unwrap();
    let path = written(work.path(), &[("trace.txt", old)]);
    let error = capture(std::slice::from_ref(&path), work.path(), &at(1e9)).unwrap_err().to_string();
    assert!(error.contains("trace.txt:7: ") && error.contains("--old-ti"), "{error}");
    let (summary, mixed) = import(&path, &Options { old_ti: true, ..at(1e9) });
    assert_eq!((summary.messages, summary.bytes), (2, 103));
    assert_eq!((mixed.messages, mixed.matched, mixed.collectives), (2, 2, 2));
    for (name, count) in [("MPI_Isend", 2), ("MPI_Irecv", 1), ("MPI_Wait", 3), ("MPI_Allreduce", 2)] {
        assert_eq!(calls(&summary, name), count, "{name}");
    }
    let told: Vec<String> = summary.told().collect();
    let world = "collectives are taken for those of all ranks: the texts name no communicators";
    assert_eq!(told, [world, "tags are 0, and a wait without a request is for the last one of its rank"]);
}

/// SimGrid replays texts without `init` and `finalize`: a rank begins and ends with its first and last line.
#[test]
fn texts_of_simgrid_without_init_and_finalize_have_all_their_computing() {
    let text = "0 compute 1000000\n0 send 1 0 100 6\n0 compute 5000000\n1 recv 0 0 100 6\n1 compute 7000000\n2 sleep 0.5\n";
    let work = tempfile::tempdir().unwrap();
    for init in ["", "0 init\n1 init\n2 init\n"] {
        let path = work.path().join("trace.txt");
        std::fs::write(&path, format!("{init}{text}")).unwrap();
        let (_, mixed, records) = import_records(&path, &at(1e9));
        let of_rank = |rank: u32| -> Vec<Message> {
            let messages = records.iter().filter_map(|record| match record {
                Record::Message(message) if message.src.0 == rank => Some(*message),
                _ => None,
            });
            messages.collect()
        };
        let time = |rank| of_rank(rank).iter().map(|message| message.time.0).sum::<u64>();
        assert_eq!([0, 1, 2].map(time), [6_000_000, 7_000_000, 500_000_000], "{init}");
        let sent = of_rank(0).into_iter().find(|message| !message.is_mark()).unwrap();
        assert!(sent.awaited && sent.time.0 == 1_000_000, "{init}: {sent:?}");
        assert_eq!(of_rank(1).last().unwrap().after, Dependency::Received(sent.id), "{init}");
        assert!(mixed.without_finalize().next().is_none());
    }
}

/// Every type that SimGrid's tracer names: pairs of reductions by place, packed bytes, and types of the program, which are counted in bytes.
#[test]
fn types_of_simgrid() {
    let sizes = [
        (30, 8),
        (31, 16),
        (32, 16),
        (33, 8),
        (34, 8),
        (35, 8),
        (36, 16),
        (37, 16),
        (50, 32),
        (57, 1),
        (59, 8),
        (-1, 1),
    ];
    let lines = sizes.map(|(kind, _)| format!("0 send 1 0 10 {kind}\n1 recv 0 0 10 {kind}\n")).concat();
    let work = tempfile::tempdir().unwrap();
    let path =
        written(work.path(), &[("trace.txt", &format!("0 init\n1 init\n{lines}0 finalize\n1 finalize\n"))]);
    let (summary, _) = import(&path, &Options::default());
    assert_eq!(summary.bytes, sizes.iter().map(|&(_, size)| 10 * size).sum::<u64>());
}

/// Where lists are among the files, the texts are those that they name.
#[test]
fn texts_that_no_list_names_are_left_out() {
    let text = |rank: u32| format!("{rank} init\n{rank} barrier\n{rank} finalize\n");
    let work = tempfile::tempdir().unwrap();
    let both = [text(0), text(1)];
    let files = [
        ("LIST", "a0.txt\na1.txt\n"),
        ("a0.txt", &*both[0]),
        ("a1.txt", &both[1]),
        ("other.txt", &both.concat()),
    ];
    let path = written(work.path(), &files);
    let (summary, mixed) = import(&path, &Options::default());
    assert_eq!((summary.calls["MPI_Barrier"], mixed.collectives), (2, 1));
    let told: Vec<String> = summary.told().collect();
    let expected = format!(
        "warning: texts left out: no list among the files names them (1): {}",
        path.join("other.txt").display()
    );
    assert_eq!(told[0], expected);
    let strict = Options { strict: true, ..Options::default() };
    assert!(capture(std::slice::from_ref(&path), work.path(), &strict).is_err());
    capture(&[path.join("LIST")], &work.path().join("list"), &strict).unwrap();
}

/// A wait names the request of a collective by the numbers of none of its messages, or of one, with a tag that no program has.
#[test]
fn collectives_of_simgrid_that_do_not_block() {
    let of = |rank: u32| {
        format!(
            "{rank} init\n{rank} iallreduce 64 0 1\n{rank} compute 1e6\n{rank} ibcast 5 1 6\n\
            {rank} wait {named} -4446\n{rank} waitall 1\n{rank} barrier\n{rank} finalize\n",
            named = ["-333 -333", "0 0"][rank as usize],
        )
    };
    let work = tempfile::tempdir().unwrap();
    let path = written(work.path(), &[("trace.txt", &(of(0) + &of(1)))]);
    let (summary, mixed, records) = import_records(&path, &Options { strict: true, ..at(1e9) });
    assert_eq!(["MPI_Iallreduce", "MPI_Ibcast"].map(|name| calls(&summary, name)), [2, 2]);
    assert_eq!((mixed.collectives, mixed.local_collectives), (3, 6));
    // It computes before it waits.
    let of_0: Vec<&Record> =
        records.iter().filter(|record| record.task().is_some_and(|task| task.0 == 0)).collect();
    let waits = of_0.iter().position(|record| matches!(record.after(), Dependency::Collective(_))).unwrap();
    let computes =
        of_0.iter().position(|record| matches!(record, Record::Message(mark) if mark.time.0 == 1_000_000));
    assert!(computes.is_some_and(|computes| computes < waits), "{of_0:?}");
    // SimGrid writes zeros for the counts of MPI_Reduce_scatter_block.
    let text =
        "0 init\n1 init\n0 reducescatter 0 0 0 0 0 1\n1 reducescatter 0 0 0 0 0 1\n0 finalize\n1 finalize\n";
    std::fs::write(path.join("trace.txt"), text).unwrap();
    let (summary, _) = import(&path, &Options::default());
    assert_eq!(summary.skipped["reducescatter"].count, 2);
}

fn of_task(records: &[Record], rank: u32) -> impl Iterator<Item = &Record> {
    records.iter().filter(move |record| record.task().is_some_and(|task| task.0 == rank))
}

/// The collectives that a rank calls, in their order.
fn entered(records: &[Record], rank: u32) -> Vec<CollectiveId> {
    let id = |record: &Record| if let Record::Collective(part) = record { Some(part.id) } else { None };
    of_task(records, rank).filter_map(id).collect()
}

/// The collectives that a rank waits for, in the order of its records.
fn waited(records: &[Record], rank: u32) -> Vec<CollectiveId> {
    let awaited = |record: &Record| match record.after() {
        Dependency::Collective(id) => Some(id),
        _ => None,
    };
    let mut waited: Vec<_> = of_task(records, rank).filter_map(awaited).collect();
    waited.dedup();
    waited
}

/// The tag of a wait tells the kind of the collective, whose oldest request it completes; before version 3.24 the tags were higher by one.
#[test]
fn waits_of_simgrid_for_the_younger_of_two_collectives() {
    for (first, second) in [("-3335", "-4446"), ("-3334", "-4445")] {
        let of = |rank: u32| {
            format!(
                "{rank} init\n{rank} iallreduce 64 0 1\n{rank} ibcast 5 1 6\n{rank} iallreduce 32 0 1\n{rank} wait 0 0 {first}\n\
                {rank} sleep 1e-3\n{rank} wait -333 -333 {second}\n{rank} sleep 1e-3\n{rank} wait -333 -333 {second}\n{rank} finalize\n"
            )
        };
        let work = tempfile::tempdir().unwrap();
        let path = written(work.path(), &[("trace.txt", &(of(0) + &of(1)))]);
        let (_, mixed, records) = import_records(&path, &Options { strict: true, ..at(1.0) });
        assert_eq!((mixed.collectives, mixed.local_collectives), (3, 6));
        let entered = entered(&records, 0);
        assert_eq!(waited(&records, 0), [1, 0, 2].map(|number| entered[number]), "{first}");
    }
}

/// Before version 3.24 the tag of `ireducescatter` was what that of `iscan` is since then; the other tags tell the version.
#[test]
fn waits_of_simgrid_for_a_scan_and_a_reduce_scatter() {
    let [first, second] = ["iscan 64 0 1", "ireducescatter 32 32 0 1"];
    for (tags, order) in [
        (["-888", "-889"], [0, 1]),
        (["-888", "-889"], [1, 0]),
        (["-889", "-890"], [0, 1]),
        (["-889", "-890"], [1, 0]),
    ] {
        let waits = order.map(|kind| tags[kind]);
        let of = |rank: u32| {
            let [one, other] = waits;
            format!(
                "{rank} init\n{rank} {first}\n{rank} {second}\n{rank} wait -333 -333 {one}\n\
                {rank} sleep 1e-3\n{rank} wait -333 -333 {other}\n{rank} finalize\n"
            )
        };
        let work = tempfile::tempdir().unwrap();
        let path = written(work.path(), &[("trace.txt", &(of(0) + &of(1)))]);
        let (summary, _, records) = import_records(&path, &at(1.0));
        let told: Vec<String> = summary.told().filter(|told| told.contains("requests")).collect();
        assert_eq!(told, [""; 0], "{waits:?}");
        assert_eq!(waited(&records, 0), order.map(|kind| entered(&records, 0)[kind]), "{waits:?}");
    }
}

/// A wait for a collective that no line started takes no other.
#[test]
fn a_wait_of_simgrid_for_a_collective_that_was_not_started() {
    let of =
        |rank: u32| format!("{rank} init\n{rank} iallreduce 64 0 1\n{rank} wait 0 0 -779\n{rank} finalize\n");
    let work = tempfile::tempdir().unwrap();
    let path = written(work.path(), &[("trace.txt", &(of(0) + &of(1)))]);
    let (summary, _) = import(&path, &at(1.0));
    let told: Vec<String> = summary.told().collect();
    let expected = "warning: waits for requests that were not made, or whose call was left out (2): rank 0, call 3, rank 1, call 3";
    assert!(told.iter().any(|told| told == expected), "{told:?}");
}

/// Requests are addresses, eight bytes apart; a wildcard's message is the one that remains; handles of communicators are each rank's own.
#[test]
fn messages_of_liballprof() {
    let begin =
        |rank: u32| format!("# host: h\nMPI_Init:-:1:2:1.0\nMPI_Comm_rank:1.5:500,{rank},2:{rank}:1.6\n");
    let first = begin(0)
        + "MPI_Isend:2.0:1000:3:11,8,8:1:5:500,0,2:9000:3.0\nMPI_Irecv:3.0:2000:7:11,8,8:-1:-1:500,0,2:9008:4.0\n\
           MPI_Waitall:5.0:2:9000:0:6.5\nMPI_Comm_split:7.0:500,0,2:3:1:600,0,2:8.0\n\
           MPI_Allreduce:8.5:1:2:4:11,8,8:3:600,1,2:9.0\nMPI_Finalize:13.0:-\n";
    let second = begin(1)
        + "MPI_Irecv:2.0:2000:3:11,8,8:0:5:500,1,2:7000:3.0\nMPI_Wait:3.5:7000:0:4.0\n\
           MPI_Send:4.25:1000:7:11,8,8:0:6:500,1,2:5.0\nMPI_Comm_split:6.0:500,1,2:3:0:700,0,2:8.0\n\
           MPI_Allreduce:8.5:1:2:4:11,8,8:3:700,0,2:9.0\nMPI_Finalize:13.0:-\n";
    let work = tempfile::tempdir().unwrap();
    let path = written(work.path(), &[("run-0.txt", &first), ("run-1.txt", &second)]);
    let (summary, mixed) = import(&path, &Options::default());
    assert_eq!((summary.ranks, summary.messages, summary.bytes), (2, 2, 24 + 56));
    assert_eq!((mixed.messages, mixed.matched, mixed.bytes.0), (2, 2, 80));
    // That of the split is one of its own.
    assert_eq!((calls(&summary, "MPI_Allreduce"), mixed.communicators), (2, 2));
    assert_eq!(summary.remarks, ["1 receive with a wildcard got the only message that remained"]);
}

/// The wrapper for C of liballprof lists the counts of vector collectives behind the addresses of their arrays.
#[test]
fn vector_collectives_of_liballprof() {
    let of = |rank: usize| {
        let (sent, received) = (["10,20", "30,40"][rank], ["10,30", "20,40"][rank]);
        format!(
            "MPI_Init:-:1:2:1000\nMPI_Comm_rank:1001:55,{rank},2:9:1002\n\
             MPI_Alltoallv:1010:7:90:{sent}:91:0,100:13,1,1:8:92:{received}:93:0,100:13,1,1:55,{rank},2:1020\n\
             MPI_Allgatherv:1030:7:{own}:6,4,4:8:90:5,6:91:0,9:6,4,4:55,{rank},2:1040\n\
             MPI_Gatherv:1050:7:{own}:13,1,1:8:90:{list}:91:0,9:13,1,1:1:55,{rank},2:1060\n\
             MPI_Scatterv:1070:7:90:5,6:91:0,9:13,1,1:8:{own}:13,1,1:0:55,{rank},2:1080\n\
             MPI_Reduce_scatter:1090:7:8:90:5,6:13,1,1:3:55,{rank},2:1100\nMPI_Finalize:1110:-\n",
            own = 5 + rank,
            // What it reads at other ranks than the root is anything.
            list = ["-17,3", "5,6"][rank],
        )
    };
    let work = tempfile::tempdir().unwrap();
    let path = written(work.path(), &[("t-0.txt", &of(0)), ("t-1.txt", &of(1))]);
    let (_, mixed, records) = import_records(&path, &Options { strict: true, ..Options::default() });
    assert_eq!((mixed.collectives, mixed.local_collectives), (5, 10));
    let amounts = |rank: u32| -> Vec<(u64, u64)> {
        let parts = records.iter().filter_map(|record| match record {
            Record::Collective(part) if part.task.0 == rank => {
                Some((part.amounts.send.0, part.amounts.recv.0))
            }
            _ => None,
        });
        parts.collect()
    };
    assert_eq!(amounts(0), [(30, 40), (20, 44), (5, 0), (6, 0), (11, 5)]);
    assert_eq!(amounts(1), [(70, 60), (24, 44), (0, 5), (0, 6), (11, 6)]);
}

/// The wrapper for C records the address of a new communicator, and its handle where it is used.
#[test]
fn communicators_of_liballprof_are_told_by_rank_and_size() {
    // Two splits of the world, one of what the first made, and a copy that is freed, whose handle comes again.
    let of = |rank: u32| {
        let (row, column) = (rank / 2, rank % 2);
        let world = format!("{},{rank},4", 500 + rank);
        format!(
            "MPI_Init:-:1:2:1000\nMPI_Comm_rank:1001:{world}:9:1002\n\
             MPI_Comm_split:1003:{world}:{row}:0:7000:1004\nMPI_Comm_rank:1005:{row_of},{column},2:9:1006\n\
             MPI_Comm_split:1007:{world}:{column}:0:7008:1008\nMPI_Bcast:1010:1:4:1,4,4:0:{column_of},{row},2:1011\n\
             MPI_Comm_dup:1012:{row_of},{column},2:7016:1013\nMPI_Bcast:1014:1:5:1,4,4:0:801,{column},2:1015\n\
             MPI_Comm_free:1016:7016:1017\nMPI_Comm_dup:1018:{world}:7016:1019\nMPI_Bcast:1020:1:6:1,4,4:0:801,{rank},4:1021\n\
             MPI_Bcast:1022:1:7:1,4,4:0:{row_of},{column},2:1023\nMPI_Finalize:1110:-\n",
            row_of = 600 + rank,
            column_of = 700 + rank,
        )
    };
    let work = tempfile::tempdir().unwrap();
    let files: Vec<(String, String)> = (0..4).map(|rank| (format!("t-{rank}.txt"), of(rank))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let path = written(work.path(), &files);
    let (_, _, records) = import_records(&path, &Options { strict: true, ..Options::default() });
    let members = |comm| {
        records.iter().find_map(|record| match record {
            Record::Communicator { id, members } if *id == comm => {
                Some(members.iter().map(|rank| rank.0).collect::<Vec<_>>())
            }
            _ => None,
        })
    };
    let bcasts = records.iter().filter_map(|record| match record {
        Record::Collective(part)
            if part.task.0 == 3 && part.amounts.send.0 == 0 && part.amounts.recv.0 >= 16 =>
        {
            Some((part.amounts.recv.0, members(part.comm).unwrap()))
        }
        _ => None,
    });
    let expected = [(16, vec![1, 3]), (20, vec![2, 3]), (24, vec![0, 1, 2, 3]), (28, vec![2, 3])];
    assert_eq!(bcasts.collect::<Vec<_>>(), expected);
}

/// A handle or an address that comes again is another communicator's; of duplicates that could be either, it is said.
#[test]
fn handles_of_liballprof_that_come_again() {
    let import = |of: &dyn Fn(u32) -> String, strict| {
        let work = tempfile::tempdir().unwrap();
        let files: Vec<(String, String)> = (0..4).map(|rank| (format!("t-{rank}.txt"), of(rank))).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        import_records(&written(work.path(), &files), &Options { strict, ..Options::default() })
    };
    let of_all = |records: &[Record]| {
        let wide = |id| {
            records.iter().any(|record| {
                matches!(record, Record::Communicator { id: own, members } if *own == id && members.len() == 4)
            })
        };
        let is_bcast = |record: &&Record| matches!(record, Record::Collective(part) if part.amounts.recv.0 == 200 && wide(part.comm));
        records.iter().filter(is_bcast).count()
    };
    let world = |rank: u32| format!("{},{rank},4", 500 + rank);
    // Freed by a copy of the handle, at another address.
    let (_, _, copied) = import(
        &|rank| {
            format!(
                "MPI_Init:-:1:2:1000\nMPI_Comm_rank:1001:{world}:9:1002\nMPI_Comm_split:1003:{world}:{}:0:7000:1004\n\
                 MPI_Bcast:1005:1:4:1,4,4:0:801,{},2:1006\nMPI_Comm_free:1007:7999:1008\nMPI_Comm_dup:1009:{world}:7016:1010\n\
                 MPI_Bcast:1014:1:50:1,4,4:0:801,{rank},4:1015\nMPI_Finalize:1110:-\n",
                rank / 2,
                rank % 2,
                world = world(rank)
            )
        },
        true,
    );
    // The root receives nothing.
    assert_eq!(of_all(&copied), 3);
    // The second duplicate, which nothing uses, is freed: the first one is still there.
    let (_, _, again) = import(
        &|rank| {
            format!(
                "MPI_Init:-:1:2:1000\nMPI_Comm_rank:1001:{world}:9:1002\nMPI_Comm_dup:1003:{world}:7000:1004\n\
                 MPI_Bcast:1005:1:4:1,4,4:0:801,{rank},4:1006\nMPI_Comm_dup:1007:{world}:7000:1008\nMPI_Comm_free:1009:7000:1010\n\
                 MPI_Bcast:1014:1:50:1,4,4:0:801,{rank},4:1015\nMPI_Finalize:1110:-\n",
                world = world(rank)
            )
        },
        true,
    );
    assert_eq!(of_all(&again), 3);
    // Two duplicates, of which the order of first uses alone tells which is which.
    let (summary, ..) = import(
        &|rank| {
            format!(
                "MPI_Init:-:1:2:1000\nMPI_Comm_rank:1001:{world}:9:1002\nMPI_Comm_dup:1003:{world}:7000:1004\n\
                 MPI_Comm_dup:1005:{world}:7008:1006\nMPI_Bcast:1007:1:4:1,4,4:0:802,{rank},4:1008\nMPI_Finalize:1110:-\n",
                world = world(rank)
            )
        },
        false,
    );
    assert!(summary.told().any(|told| told.contains("by the order of their first uses")));
}

/// A run is recorded by one tool, in as many directories as there are.
#[test]
fn a_run_in_two_directories() {
    let work = tempfile::tempdir().unwrap();
    let run = sample("dumpi/testtrace");
    let parts = ["first", "second"].map(|part| work.path().join(part));
    parts.iter().for_each(|part| std::fs::create_dir(part).unwrap());
    for rank in 0..4 {
        let name = format!("testtrace-000{rank}.bin");
        std::fs::copy(run.join(&name), parts[rank % 2].join(name)).unwrap();
    }
    let summary = capture(&parts, work.path(), &Options::default()).unwrap();
    assert_eq!((summary.ranks, summary.messages, summary.bytes), (4, 4, 16));
    std::fs::write(parts[1].join("zero.goal"), "num_ranks 1\nrank 0 {\na: calc 5\n}\n").unwrap();
    let error = capture(&parts, work.path(), &Options::default()).unwrap_err().to_string();
    assert!(error.contains("zero.goal: is of format goal, but ") && error.contains("of one tool"), "{error}");
}

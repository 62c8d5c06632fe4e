//! Events to a file and back.

mod damaged;
mod script;

use super::event::{
    Action, CallSlot, Collective, Communicator, Completion, Completions, Creation, Datatype, DatatypeId,
    Detail, Event, FileId, Io, Members, Neighbourhood, Origin, Outcome, Partitioned, PartitionedId,
    PartitionedInit, PostReceive, Receive, Remote, RequestId, Send, SendMode, Split, Tile, Topology,
    Transfer, WindowId,
};
use super::layout::{CHUNK_HEADER, CHUNK_MARK, CHUNK_SIZE, HEADER_SIZE, HOLE_MARK, chunk_field, field, seal};
use super::{Capture, CaptureError, Ending, RankInfo, RankWriter, rank_path};
use crate::ids::{CommId, CommRank, Rank};
use crate::operation::{Amounts, Operation};
use crate::units::{Bytes, Nanos};
use crate::varint::Sink;
use proptest::prelude::*;
use std::collections::HashSet;
use std::path::Path;

pub(super) use script::write;

fn info(rank: u32, tasks: u32) -> RankInfo {
    RankInfo { rank: Rank(rank), tasks, host: "node0".into(), cores: vec![rank], ..RankInfo::default() }
}

/// Reads the events of rank 0 as text, and how it ended.
fn read(dir: &Path) -> (Vec<String>, Result<Ending, CaptureError>) {
    let mut list = Vec::new();
    let read = Capture::open(dir).and_then(|capture| {
        let mut events = capture.events(Rank(0))?;
        events.each(|event| {
            list.push(format!("{event:?}"));
            Ok::<_, CaptureError>(())
        })?;
        Ok(events.ending())
    });
    (list, read)
}

fn first_difference<'a>(
    a: &'a [String],
    b: &'a [String],
) -> Option<(usize, Option<&'a String>, Option<&'a String>)> {
    let differs = |&i: &usize| a.get(i) != b.get(i);
    (0..a.len().max(b.len())).find(differs).map(|i| (i, a.get(i), b.get(i)))
}

/// Makes the file of a finished writer, one chunk a thread, that of one at work.
fn reopen(file: &mut [u8]) {
    file[field::STATE] = 1;
    for chunk in file[HEADER_SIZE..].chunks_mut(CHUNK_SIZE).filter(|chunk| chunk.len() >= CHUNK_HEADER) {
        chunk[chunk_field::USED..chunk_field::USED + 4].fill(0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn events_come_back(seed: u64, count in 0usize..400, threads in 1u16..5) {
        let dir = tempfile::tempdir()?;
        let expected = write(dir.path(), seed, count, threads);
        let (events, ending) = read(dir.path());
        prop_assert_eq!(first_difference(&events, &expected), None);
        ending.expect("readable");
    }
}

#[test]
fn long_records_and_many_chunks() {
    let dir = tempfile::tempdir().expect("a directory");
    let counts: Vec<u64> = (0..200_000).map(|i| i * 1_000_003).collect();
    let mut writer = RankWriter::create(dir.path(), &info(0, 1)).expect("created");
    let mut now = 0;
    let mut expected = Vec::new();
    for i in 0..40_000u64 {
        let request = Some(RequestId { thread: 0, number: i });
        let send = Send {
            comm: CommId(0),
            dest: CommRank(1),
            tag: 5,
            bytes: Bytes(i),
            datatype: DatatypeId(0),
            mode: SendMode::Standard,
            request,
        };
        let vector = Collective {
            operation: Operation::Alltoallv,
            comm: CommId(0),
            root: None,
            amounts: Amounts::default(),
            count: 0,
            datatype: DatatypeId(0),
            recv_datatype: None,
            request,
            send_counts: &counts,
            recv_counts: &counts,
        };
        let action = if i % 9_999 == 5 { Action::Collective(vector) } else { Action::Send(send) };
        let (start, end) = (Nanos(now + 700), Nanos(now + 900));
        let event = Event { start, end, thread: 0, call: CallSlot::NONE, action };
        now += 900;
        writer.event(&event).expect("accepted");
        expected.push(event);
    }
    writer.finish().expect("finished");
    // Of the sends only the times and the growing sizes; a size comes once, so it gets no shape.
    assert!(std::fs::metadata(rank_path(dir.path(), Rank(0))).expect("there").len() > 60 * CHUNK_SIZE as u64);

    let mut events = Capture::open(dir.path()).and_then(|c| c.events(Rank(0))).expect("opens");
    let mut left = expected.iter();
    events
        .each(|event| {
            assert_eq!(Some(event), left.next());
            Ok::<_, CaptureError>(())
        })
        .expect("readable");
    assert_eq!(left.len(), 0);
    assert_eq!(events.ending(), Ending::Cut { torn: 0 }, "no Finalize was written");
    assert_eq!(events.span().1, Nanos(now), "the end of the last record");
}

/// One record of eight bytes a call that is like another; any changed bit is noticed.
#[test]
fn calls_that_are_alike_take_a_word_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = RankWriter::create(dir.path(), &info(0, 1)).expect("created");
    let send = |tag, number| Send {
        comm: CommId(0),
        dest: CommRank(1),
        tag,
        bytes: Bytes(8),
        datatype: DatatypeId(0),
        mode: SendMode::Standard,
        request: Some(RequestId { thread: 0, number }),
    };
    let mut expected = Vec::new();
    let [isend, waitall] = ["MPI_Isend", "MPI_Waitall"].map(|name| writer.function(name).expect("room"));
    let mut put = |action: Action<'_>| {
        let start = Nanos(1000 * expected.len() as u64);
        let call = if matches!(action, Action::Send(_)) { isend } else { waitall };
        let event = Event { start, end: Nanos(start.0 + 300), thread: 0, call, action };
        expected.push(format!("{event:?}"));
        writer.event(&event).expect("accepted");
    };
    for i in 0..1000 {
        put(Action::Send(send(5, 2 * i)));
        put(Action::Send(send(6, 2 * i + 1)));
        let done = |number| Completion { request: RequestId { thread: 0, number }, outcome: Outcome::Done };
        put(Action::Complete(Completions::List(&[done(2 * i), done(2 * i + 1)])));
    }
    writer.finish().expect("finished");
    let path = rank_path(dir.path(), Rank(0));
    let bytes = std::fs::read(&path).expect("there");
    let records = bytes.len() - HEADER_SIZE - CHUNK_HEADER;
    assert!((3000 * 8..3000 * 8 + 40).contains(&records), "{records} bytes");
    let (events, ending) = read(dir.path());
    assert_eq!(first_difference(&events, &expected), None);
    ending.expect("readable");
    for at in [HEADER_SIZE + 40, HEADER_SIZE + CHUNK_HEADER, HEADER_SIZE + 5000, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, changed).expect("written");
        let (_, ending) = read(dir.path());
        assert!(ending.expect_err("noticed").to_string().contains("checksum"));
    }
}

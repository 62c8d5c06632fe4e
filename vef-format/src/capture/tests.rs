//! Events to a file and back; files cut short or changed.

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
use rand_like::Random;
use std::collections::HashSet;
use std::path::Path;

/// Numbers of every length from a seed: the events must be made twice, and borrow.
mod rand_like {
    pub(super) struct Random(pub(super) u64);

    impl Random {
        pub(super) fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }

        pub(super) fn below(&mut self, end: u64) -> u64 {
            self.next() % end
        }

        /// A number of up to `bits` bits, short ones as likely as long ones.
        pub(super) fn sized(&mut self, bits: u32) -> u64 {
            let shift = 64 - bits + self.below(u64::from(bits)) as u32;
            self.next() >> shift
        }
    }
}

fn info(rank: u32, tasks: u32) -> RankInfo {
    RankInfo { rank: Rank(rank), tasks, host: "node0".into(), cores: vec![rank], ..RankInfo::default() }
}

/// Gives `count` events of up to `threads` threads to `each`.
fn script(seed: u64, count: usize, threads: u16, mut each: impl FnMut(&Event<'_>)) {
    let mut random = Random(seed);
    let mut now = 5u64;
    let mut ends = vec![0u64; usize::from(threads)];
    let mut requests = vec![0u64; usize::from(threads)];
    // A request ends once.
    let mut ended = HashSet::new();
    let (mut comms, mut types, mut windows, mut files) = (1u32, 1u32, 1u32, 1u32);
    // What everything else refers to comes first.
    let world = Communicator {
        id: CommId(0),
        origin: Origin::World,
        split: None,
        members: Members::All,
        remote: Remote::None,
        foreign: false,
    };
    let byte = Datatype { id: DatatypeId(0), size: Bytes(1), contiguous: true, name: "MPI_BYTE" };
    let window = Detail::Window { id: WindowId(0), comm: CommId(0), size: Bytes(8), unit: 1 };
    let file = Detail::FileOpen { id: FileId(0), comm: CommId(0), mode: 9, name: "data" };
    let other = |detail| Action::Other { bytes: Bytes(0), detail };
    let call = CallSlot::NONE;
    for action in [Action::Communicator(world), Action::Datatype(byte), other(window), other(file)] {
        each(&Event { start: Nanos(now), end: Nanos(now), thread: 0, call, action });
    }
    for _ in 0..count {
        let thread = random.below(u64::from(threads)) as u16;
        let t = usize::from(thread);
        now = (now + 1 + random.sized(40)).max(ends[t]);
        let end = now + random.sized(30);
        ends[t] = end;
        let next = RequestId { thread, number: requests[t] };
        // Half of the calls are like others of their kind.
        let usual = random.below(2) == 0;
        let comm = CommId(if usual { 0 } else { random.below(u64::from(comms)) as u32 });
        let datatype = DatatypeId(if usual { 0 } else { random.below(u64::from(types)) as u32 });
        let peer = CommRank(if usual { 3 } else { random.sized(32) as u32 });
        let tag = if usual { 7 } else { random.sized(32) as u32 as i32 };
        let bytes = Bytes(if usual { 8 } else { random.sized(63) });
        let flag = random.below(2) == 0;
        let mode = if usual { 0 } else { random.below(4) };
        let mode =
            [SendMode::Standard, SendMode::Buffered, SendMode::Synchronous, SendMode::Ready][mode as usize];
        let send = Send { comm, dest: peer, tag, bytes, datatype, mode, request: flag.then_some(next) };
        let receive = Receive {
            comm,
            source: peer,
            tag,
            any_source: flag,
            any_tag: random.below(2) == 0,
            bytes,
            datatype,
        };
        let ranks: Vec<Rank> = (0..random.below(40)).map(|_| Rank(random.sized(32) as u32)).collect();
        let counts: [Vec<u64>; 2] = [0, 1].map(|_| (0..random.below(20)).map(|_| random.sized(60)).collect());
        let neighbours: Vec<Option<CommRank>> =
            ranks.iter().map(|rank| (rank.0 % 3 > 0).then_some(CommRank(rank.0))).collect();
        let mut completions = Vec::new();
        // Some are runs of the thread's own requests, the others arbitrary.
        if usual {
            let run = requests[t].saturating_sub(random.below(70))..requests[t];
            completions.extend(
                run.map(|number| RequestId { thread, number })
                    .skip_while(|request| ended.contains(request))
                    .take_while(|request| !ended.contains(request))
                    .map(|request| Completion { request, outcome: Outcome::Done }),
            );
        }
        for _ in 0..if usual { 0 } else { random.below(20) } {
            let maker = random.below(u64::from(threads)) as u16;
            let made = requests[usize::from(maker)];
            if made > 0 {
                let number = made - 1 - random.below(made.min(300));
                let received = |bytes| Outcome::Received { source: peer, tag, bytes };
                let outcome = [Outcome::Done, Outcome::Cancelled, received(None), received(Some(bytes))]
                    [random.below(4) as usize];
                completions.push(Completion { request: RequestId { thread: maker, number }, outcome });
            }
        }
        completions.retain(|completion| !ended.contains(&completion.request));
        completions.dedup_by_key(|completion| completion.request);
        let action = match random.below(20) {
            0 if flag => Action::Preempted,
            0 => Action::Init,
            1 if flag => Action::Polls { count: random.sized(40) },
            1 => Action::Abort { code: tag },
            2 => {
                comms += 1;
                let origin = match random.below(5) {
                    0 => Origin::World,
                    1 => Origin::SelfOnly,
                    2 => Origin::Child { parent: comm, ordinal: random.sized(32) as u32 },
                    3 => Origin::Group { parent: comm, tag, ordinal: random.sized(32) as u32 },
                    _ => Origin::Unseen { ordinal: random.sized(32) as u32 },
                };
                let members = match random.below(3) {
                    0 => Members::All,
                    1 => {
                        let stride = random.sized(40) as i64 + 1;
                        Members::Strided {
                            first: Rank(3),
                            stride: if flag { -stride } else { stride },
                            count: 70,
                        }
                    }
                    _ => Members::List(&ranks),
                };
                let split = (random.below(3) == 0).then_some(Split { color: tag, key: -tag / 3 });
                let remote = match random.below(4) {
                    0 => Remote::Outside(random.sized(32) as u32),
                    1 => Remote::Inside(Members::List(&ranks)),
                    2 => Remote::Inside(Members::All),
                    _ => Remote::None,
                };
                Action::Communicator(Communicator {
                    id: CommId(comms - 1),
                    origin,
                    split,
                    members,
                    remote,
                    foreign: flag,
                })
            }
            3 => {
                types += 1;
                let id = DatatypeId(types - 1);
                Action::Datatype(Datatype {
                    id,
                    size: bytes,
                    contiguous: flag,
                    name: ["", "MPI_DOUBLE"][random.below(2) as usize],
                })
            }
            4 => Action::CommunicatorFree(comm),
            5 | 6 | 18 | 19 => Action::Send(send),
            7 => Action::Receive(receive),
            8 | 9 => Action::PostReceive(PostReceive {
                comm,
                source: (random.below(3) > 0).then_some(peer),
                tag: (random.below(3) > 0).then_some(tag),
                bytes,
                datatype,
                request: next,
            }),
            10 => Action::Exchange { send: Send { request: None, ..send }, receive },
            11 => {
                ended.extend(completions.iter().map(|completion| completion.request));
                Action::Complete(Completions::List(&completions))
            }
            12 => match completions.first() {
                Some(completion) => Action::Forget(completion.request),
                None => Action::Complete(Completions::List(&[])),
            },
            13 if flag => Action::Creation(Creation { comm, request: (tag % 2 == 0).then_some(next) }),
            13 => Action::Probe { comm, source: peer, tag },
            14 | 15 => {
                let operation = Operation::ALL[random.below(Operation::ALL.len() as u64) as usize];
                let vector = random.below(2) == 0;
                Action::Collective(Collective {
                    operation,
                    comm,
                    root: (operation.is_rooted() != (random.below(8) == 0)).then_some(peer),
                    amounts: Amounts {
                        send: bytes,
                        recv: if usual { bytes } else { Bytes(random.sized(64)) },
                    },
                    count: random.sized(40),
                    datatype,
                    recv_datatype: (random.below(2) == 0).then_some(datatype),
                    request: (random.below(3) == 0).then_some(next),
                    send_counts: if vector { &counts[0] } else { &[] },
                    recv_counts: if vector { &counts[1] } else { &[] },
                })
            }
            16 => Action::Phase { begin: flag, name: ["", "round 0", "überall"][random.below(3) as usize] },
            _ => match random.below(3) {
                0 => Action::Stopped { reason: "the disk is full" },
                1 if flag => Action::Topology(Topology {
                    comm,
                    sources: &neighbours[..neighbours.len() / 2],
                    destinations: &neighbours,
                }),
                1 if tag % 3 == 0 => {
                    let id = PartitionedId(random.sized(20) as u32);
                    let (first, count) = (random.sized(32) as u32, random.sized(32) as u32);
                    Action::Partitioned(match random.below(4) {
                        0 => Partitioned::Init(PartitionedInit {
                            id,
                            sends: usual,
                            comm,
                            peer,
                            tag,
                            partitions: count,
                            bytes,
                            datatype,
                        }),
                        1 => Partitioned::Start { id, request: next },
                        2 => Partitioned::Ready { id, first, count, bytes },
                        _ => Partitioned::Arrived { id, partition: first },
                    })
                }
                1 => Action::Neighbourhood(Neighbourhood {
                    comm,
                    block: Amounts { send: bytes, recv: Bytes(random.sized(60)) },
                    datatype,
                    request: (random.below(3) == 0).then_some(next),
                    send_counts: if usual { &[] } else { &counts[0] },
                    recv_counts: if tag % 2 == 0 { &[] } else { &counts[1] },
                }),
                _ => {
                    let (window, file) = (WindowId(windows - 1), FileId(files - 1));
                    let request = flag.then_some(next);
                    let offset = random.sized(60) as i64;
                    let detail = match random.below(12) {
                        0 => {
                            windows += 1;
                            Detail::Window { id: WindowId(windows - 1), comm, size: bytes, unit: peer.0 }
                        }
                        1 => {
                            files += 1;
                            Detail::FileOpen { id: FileId(files - 1), comm, mode: tag, name: "überall" }
                        }
                        2 => Detail::WindowFree(window),
                        3 => Detail::FileClose(file),
                        4 => Detail::FileView { file, displacement: -offset, unit: bytes },
                        5 => Detail::Transfer(Transfer {
                            window,
                            target: peer,
                            displacement: offset,
                            sent: bytes,
                            fetched: Bytes(0),
                            at_target: bytes,
                            request,
                        }),
                        6 => Detail::Sync {
                            window,
                            target: flag.then_some(peer),
                            exclusive: !flag,
                            assert: tag,
                            group: (random.below(2) == 0).then_some(Members::List(&ranks)),
                        },
                        7 => Detail::Io(Io {
                            file,
                            offset: (random.below(2) == 0).then_some(offset),
                            write: flag,
                            collective: random.below(2) == 0,
                            request,
                        }),
                        8 => {
                            let tile =
                                Tile { size: bytes, extent: Bytes(7), first: Bytes(tag as u64), span: bytes };
                            Detail::FileViewTiled { file, displacement: -offset, unit: bytes, tile }
                        }
                        9 => Detail::FileSeek { file, position: offset },
                        10 => {
                            files += 1;
                            let (id, name) = (FileId(files - 1), "hinten");
                            Detail::FileOpenAt { id, comm, mode: tag, position: offset, name }
                        }
                        _ => Detail::None,
                    };
                    Action::Other { bytes, detail }
                }
            },
        };
        requests[t] += u64::from(super::encode::makes_request(&action).is_some());
        // Completions by the functions of words, too.
        let call = match (&action, random.below(4)) {
            (_, 0) => CallSlot::NONE,
            (Action::Complete(_), _) => CallSlot(random.below(4) as u16),
            _ => CallSlot(random.below(FUNCTIONS.len() as u64) as u16),
        };
        each(&Event { start: Nanos(now), end: Nanos(end), thread, call, action });
    }
}

/// The call table of every script.
const FUNCTIONS: [&str; 6] = [
    "MPI_Waitall",
    "MPI_Testsome",
    "MPI_Put",
    "MPI_Wait",
    "MPI_File_open",
    "MPI_Intercomm_create_from_groups",
];

/// Writes a script; the events as text.
pub(super) fn write(dir: &Path, seed: u64, count: usize, threads: u16) -> Vec<String> {
    let mut writer = RankWriter::create(dir, &info(0, 1)).expect("created");
    for name in FUNCTIONS {
        writer.function(name).expect("room");
    }
    let mut expected = Vec::new();
    script(seed, count, threads, |event| {
        writer.event(event).expect("accepted");
        expected.push(format!("{event:?}"));
    });
    writer.finish().expect("finished");
    expected
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

    /// Of a file that is cut anywhere, or whose rest reads as zeros (a killed process), a prefix is read.
    #[test]
    fn a_cut_file_gives_a_prefix(seed: u64, cut in 0.0f64..1.0) {
        let dir = tempfile::tempdir()?;
        let expected = write(dir.path(), seed, 60, 1);
        let path = rank_path(dir.path(), Rank(0));
        let whole = std::fs::read(&path)?;
        let keep = (whole.len() as f64 * cut) as usize;

        std::fs::write(&path, &whole[..keep])?;
        let (events, ending) = read(dir.path());
        prop_assert!(events.is_empty() && ending.is_err(), "a short file is an error at once");

        let mut killed = whole;
        reopen(&mut killed);
        let from = HEADER_SIZE + CHUNK_HEADER + ((killed.len() - HEADER_SIZE - CHUNK_HEADER) as f64 * cut) as usize;
        killed[from..].fill(0);
        killed.resize(HEADER_SIZE + CHUNK_SIZE, 0);
        std::fs::write(&path, &killed)?;
        let (events, ending) = read(dir.path());
        // The record that was cut in the middle still has its kind byte here, and reads as something else.
        let whole = events.len().saturating_sub(1);
        prop_assert_eq!(first_difference(&events[..whole], &expected[..whole]), None);
        if let Ok(ending) = ending {
            let is_cut = matches!(ending, Ending::Cut { .. });
            prop_assert!(is_cut);
        }
    }

    /// Changed bytes are an error or other events, never a panic or a hang.
    #[test]
    fn changed_bytes_do_no_harm(seed: u64, threads in 1u16..3, changes in proptest::collection::vec(
        (any::<u32>(), any::<u8>()), 1..4), header: bool, running: bool) {
        let dir = tempfile::tempdir()?;
        write(dir.path(), seed, 80, threads);
        let path = rank_path(dir.path(), Rank(0));
        let mut bytes = std::fs::read(&path)?;
        if running {
            // Without a checksum in the way.
            bytes.resize(HEADER_SIZE + usize::from(threads) * CHUNK_SIZE, 0);
            reopen(&mut bytes);
        }
        for (at, value) in changes {
            let at = if header { at as usize % 160 } else { HEADER_SIZE + at as usize % 4000 };
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        std::fs::write(&path, &bytes)?;
        let (events, ending) = read(dir.path());
        prop_assert!(events.len() < bytes.len());
        if let Err(error) = ending {
            prop_assert!(error.to_string().contains(".vefc"), "{}", error);
        }
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

/// A thread's chunk is copied to its place, then begun anew; the writer may end at any instruction of that.
#[test]
fn a_chunk_that_was_being_copied_is_read_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = write(dir.path(), 11, 100, 1);
    let path = rank_path(dir.path(), Rank(0));
    let finished = std::fs::read(&path).expect("there");
    let chunk = &finished[HEADER_SIZE..];
    let read_with = |mark: u32, copied: usize, window_is_begun: bool| {
        let mut file = finished.clone();
        file.resize(HEADER_SIZE + CHUNK_SIZE, 0);
        file.extend_from_slice(&chunk[..copied]);
        if copied >= 4 {
            file[HEADER_SIZE + CHUNK_SIZE..][..4].copy_from_slice(&mark.to_le_bytes());
        }
        reopen(&mut file[..HEADER_SIZE + CHUNK_SIZE]);
        if !window_is_begun {
            file[HEADER_SIZE..HEADER_SIZE + 4].fill(0);
        }
        std::fs::write(&path, file).expect("written");
        read(dir.path())
    };
    for (mark, copied, window) in [
        (HOLE_MARK, 0, true),
        (HOLE_MARK, 30, true),
        (HOLE_MARK, 500, true),
        (HOLE_MARK, chunk.len(), true),
        (CHUNK_MARK, chunk.len(), true),
        (CHUNK_MARK, chunk.len(), false),
    ] {
        let (events, ending) = read_with(mark, copied, window);
        assert_eq!(first_difference(&events, &expected), None);
        assert_eq!(ending.expect("readable"), Ending::Cut { torn: 0 });
    }
}

/// The recorder truncates its file when it closes it, and reuses its window when it is full; other programs may truncate a file.
#[test]
fn a_file_that_changes_while_it_is_read_is_one_located_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = write(dir.path(), 5, 20_000, 1);
    let path = rank_path(dir.path(), Rank(0));
    let whole = std::fs::read(&path).expect("there");
    assert!(whole.len() > HEADER_SIZE + 3 * CHUNK_SIZE);
    // Reads all; before the event `when`, `change` is done to the file.
    let read_with = |when: usize, change: &dyn Fn()| {
        let mut events =
            Capture::open(dir.path()).and_then(|capture| capture.events(Rank(0))).expect("opens");
        let mut read = 0;
        let ending = events.each(|event| {
            if read == when {
                change();
            }
            assert_eq!(format!("{event:?}"), expected[read]);
            read += 1;
            Ok::<_, CaptureError>(())
        });
        (read, ending.map_err(|error| error.to_string()))
    };
    for keep in [0, HEADER_SIZE, HEADER_SIZE + CHUNK_SIZE + 5, whole.len() - 1] {
        let cut = || {
            let file = std::fs::OpenOptions::new().write(true).open(&path).expect("there");
            file.set_len(keep as u64).expect("cut");
        };
        let (read, ending) = read_with(100, &cut);
        let error = ending.expect_err("it is not whole");
        assert!(error.contains("0.vefc: truncated: ") && read < expected.len(), "{keep}: {error}");
        std::fs::write(&path, &whole).expect("written");
    }
    // The recorder writes in its first chunk, copies it behind all others when it is full, and begins it anew.
    let (first, rest) = whole.split_at(HEADER_SIZE);
    let last = rest.len() / CHUNK_SIZE * CHUNK_SIZE;
    let mut window = rest[last..].to_vec();
    window.resize(CHUNK_SIZE, 0);
    let mut running = [first, &window, &rest[..last]].concat();
    reopen(&mut running[..HEADER_SIZE + CHUNK_SIZE]);
    std::fs::write(&path, &running).expect("written");
    let begin = || {
        let mut anew = running.clone();
        anew[HEADER_SIZE + 12] += 1;
        std::fs::write(&path, anew).expect("written");
    };
    let (read, ending) = read_with(100, &begin);
    let error = ending.expect_err("other records are there now");
    assert!(
        error.contains(&format!("0.vefc at byte {HEADER_SIZE}: its process still runs")) && read > 100,
        "{error}"
    );
}

/// A sound capture of rank 0 but for these bytes behind its four records, in `dir`, and where they begin.
fn write_with(dir: &Path, bytes: &[u8]) -> usize {
    write(dir, 3, 0, 1);
    let path = rank_path(dir, Rank(0));
    let mut file = std::fs::read(&path).expect("there");
    let at = file.len();
    file.extend(bytes);
    let length = (file.len() as u64).to_le_bytes();
    file[field::LENGTH..field::LENGTH + 8].copy_from_slice(&length);
    let used = file.len() - HEADER_SIZE;
    seal(&mut file[HEADER_SIZE..], used);
    std::fs::write(&path, file).expect("written");
    at
}

/// A few bytes of a hostile file must not stand for work without end.
#[test]
fn requests_do_not_end_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    // A send of a request, then its end again and again.
    let mut bytes = vec![16 + 4, 1, 1, 1, 1, 1, 1, 1, 1];
    for _ in 0..3 {
        bytes.extend([13, 1, 1, 1, 3, 1]);
    }
    write_with(dir.path(), &bytes);
    let (events, ending) = read(dir.path());
    assert_eq!(events.len(), 6);
    assert!(ending.expect_err("refused").to_string().contains("completed requests: 2"));
}

/// Tags and communicators have 32 bits; a capture with a larger value is an error at that record.
#[test]
fn numbers_beyond_their_types_are_one_located_error() {
    // A send's kind, gap, duration and function, communicator, rank, tag, bytes and datatype.
    const FIELDS: usize = 9;
    for (place, what) in [(4, "communicator"), (5, "rank"), (6, "tag"), (8, "datatype")] {
        for (number, fits) in [(u32::MAX.into(), true), (1 << 32, false), (u64::MAX, false)] {
            let mut room = [0; 2 * FIELDS + 9];
            room[0] = 16;
            let mut sink = Sink::new(&mut room, 1);
            (1..FIELDS).for_each(|at| sink.put(if at == place { number } else { 0 }));
            let length = sink.position().expect("fits");
            let dir = tempfile::tempdir().expect("a directory");
            let at = write_with(dir.path(), &room[..length]);
            let (events, ending) = read(dir.path());
            if fits {
                assert_eq!(events.len(), 5);
                ending.expect("readable");
                continue;
            }
            assert_eq!(events.len(), 4);
            let file = rank_path(dir.path(), Rank(0));
            let expected = format!("{}: record 4 at byte {at}: impossible {what}: {number}", file.display());
            assert_eq!(ending.expect_err("refused").to_string(), expected);
        }
    }
}

#[test]
fn a_definition_of_another_thread_comes_before_its_use() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = RankWriter::create(dir.path(), &info(0, 2)).expect("created");
    let datatype = Datatype { id: DatatypeId(0), size: Bytes(8), contiguous: true, name: "MPI_DOUBLE" };
    let world = Communicator {
        id: CommId(0),
        origin: Origin::World,
        split: None,
        members: Members::All,
        remote: Remote::None,
        foreign: false,
    };
    let probe = Action::Probe { comm: CommId(0), source: CommRank(1), tag: 3 };
    let call = CallSlot::NONE;
    let event =
        |thread, start, end, action| Event { start: Nanos(start), end: Nanos(end), thread, call, action };
    let written = [
        event(0, 10, 11, Action::Init),
        event(1, 20, 40, probe.clone()),
        event(0, 25, 25, Action::Communicator(world.clone())),
        event(0, 25, 30, probe.clone()),
        event(0, 31, 31, Action::Datatype(datatype)),
        event(0, 50, 51, Action::Finalize),
    ];
    for event in &written {
        writer.event(event).expect("accepted");
    }
    writer.finish().expect("finished");
    let mut events = Capture::open(dir.path()).expect_err("rank 1 is missing").to_string();
    assert!(events.contains("rank 1 is missing"), "{events}");
    RankWriter::create(dir.path(), &info(1, 2)).and_then(RankWriter::finish).expect("written");

    let mut reader = Capture::open(dir.path()).and_then(|c| c.events(Rank(0))).expect("opens");
    let mut order = Vec::new();
    reader
        .each(|event| {
            order.push((event.thread, format!("{:?}", event.action)));
            Ok::<_, CaptureError>(())
        })
        .expect("readable");
    events = format!("{world:?}");
    assert!(order[1].1.contains(&events), "{order:?}");
    let threads = order.iter().map(|(thread, _)| *thread).collect::<Vec<_>>();
    assert_eq!(threads, [0, 0, 1, 0, 0, 0]);
    assert_eq!(reader.ending(), Ending::Finished);
}

/// The window that thread 1 made while thread 0 made a later one is delivered early, and its communicator before it.
#[test]
fn a_definition_that_is_delivered_early_comes_after_what_it_needs() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = RankWriter::create(dir.path(), &info(0, 1)).expect("created");
    let comm = |id, origin| {
        let (split, members, remote) = (None, Members::All, Remote::None);
        Action::Communicator(Communicator { id: CommId(id), origin, split, members, remote, foreign: false })
    };
    let window = |id, comm| {
        let (size, unit) = (Bytes(8), 1);
        let detail = Detail::Window { id: WindowId(id), comm: CommId(comm), size, unit };
        Action::Other { bytes: Bytes::ZERO, detail }
    };
    let call = CallSlot::NONE;
    let event =
        |thread, start, end, action| Event { start: Nanos(start), end: Nanos(end), thread, call, action };
    let world = comm(0, Origin::World);
    let child = comm(1, Origin::Child { parent: CommId(0), ordinal: 0 });
    let written = [
        event(0, 10, 11, Action::Init),
        event(0, 12, 12, world.clone()),
        event(0, 20, 60, window(1, 0)),
        event(1, 25, 25, child.clone()),
        event(1, 30, 50, window(0, 1)),
        event(0, 70, 71, Action::Finalize),
    ];
    for event in &written {
        writer.event(event).expect("accepted");
    }
    writer.finish().expect("finished");
    let mut reader = Capture::open(dir.path()).and_then(|c| c.events(Rank(0))).expect("opens");
    let mut order = Vec::new();
    let each = reader.each(|event| {
        order.push(format!("{:?}", event.action));
        Ok::<_, CaptureError>(())
    });
    each.expect("readable");
    // The window with the higher number was made by a call that began first.
    let expected = [Action::Init, world, window(1, 0), child, window(0, 1), Action::Finalize];
    assert_eq!(order, expected.map(|action| format!("{action:?}")));
}

#[test]
fn impossible_events_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = RankWriter::create(dir.path(), &info(0, 1)).expect("created");
    let call = CallSlot::NONE;
    let event = |start, end, action| Event { start: Nanos(start), end: Nanos(end), thread: 0, call, action };
    writer.event(&event(5, 9, Action::Init)).expect("accepted");
    let forget = Action::Forget(RequestId { thread: 0, number: 0 });
    for bad in [event(8, 9, Action::Init), event(10, 9, Action::Init), event(10, 11, forget)] {
        let error = writer.event(&bad).expect_err("refused");
        assert!(matches!(error, CaptureError::Event { number: 1, .. }), "{error}");
    }
}

#[test]
fn what_is_no_capture_is_told_apart() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = rank_path(dir.path(), Rank(0));
    let open = || Capture::open(dir.path()).expect_err("refused");
    assert!(matches!(open(), CaptureError::NoCapture(_)));
    for nothing in [&b""[..], &[0; 4096]] {
        std::fs::write(&path, nothing).expect("written");
        assert!(matches!(open(), CaptureError::Empty(_)));
    }
    // The space for the header is there: the disk was not full.
    std::fs::write(&path, [0; 65536]).expect("written");
    assert!(matches!(open(), CaptureError::Killed(_)));
    std::fs::write(&path, b"x").expect("written");
    assert!(matches!(open(), CaptureError::Magic(_)));
    std::fs::write(&path, vec![7; 100_000]).expect("written");
    assert!(matches!(open(), CaptureError::Magic(_)));
    write(dir.path(), 1, 10, 1);
    let good = std::fs::read(&path).expect("there");
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(&path, file).expect("written");
    };
    changed(8, &[1, 2, 3, 4]);
    assert!(matches!(open(), CaptureError::Endianness(_)));
    changed(12, &[3]);
    assert!(Capture::open(dir.path()).is_ok(), "of the version before");
    changed(12, &[1]);
    assert!(open().to_string().ends_with("format version 1; this reader knows 3 to 8"), "{}", open());
    changed(24, &[5]);
    assert!(matches!(open(), CaptureError::Damaged { .. }));
    std::fs::write(&path, &good[..HEADER_SIZE - 1]).expect("written");
    assert!(matches!(open(), CaptureError::Truncated { .. }));
}

#[test]
fn rank_files_of_two_runs_are_no_capture() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |rank: u32, run: u64| {
        let info = RankInfo { run, ..info(rank, 3) };
        let writer = RankWriter::create(dir.path(), &info).expect("created");
        writer.finish().expect("written");
    };
    // A file that does not know its run may be of any.
    for (runs, fits) in [([7, 7, 7], true), ([0, 7, 7], true), ([0, 0, 0], true), ([7, 0, 8], false)] {
        (0..).zip(runs).for_each(|(rank, run)| write(rank, run));
        match Capture::open(dir.path()) {
            Ok(capture) => assert!(fits && capture.rank(Rank(2)).expect("a rank").run == runs[2]),
            Err(error) => {
                assert!(!fits && matches!(error, CaptureError::Mixed { .. }), "{error}");
                let said = error.to_string();
                assert!(said.contains("2.vefc: is of another run than "), "{said}");
                assert!(said.ends_with("0.vefc"), "{said}");
            }
        }
    }
    // Nor does it matter which of them are compressed.
    #[cfg(feature = "zstd")]
    {
        super::compress(dir.path(), Rank(2)).expect("compressed");
        let said = Capture::open(dir.path()).expect_err("refused").to_string();
        assert!(said.contains("2.vefc.zst: is of another run than "), "{said}");
    }
}

//! Random events of one rank, of every kind.

use super::*;
use rand_like::Random;

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
        requests[t] += u64::from(super::super::encode::makes_request(&action).is_some());
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
pub(in crate::capture) fn write(dir: &Path, seed: u64, count: usize, threads: u16) -> Vec<String> {
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

//! What the events of an OTF2 archive mean. The archive is written here, in both orders of bytes.

use crate::common::{calls, import_records};
use interchange::{Options, Summary};
use std::path::Path;
use vef_format::record::Record;

/// Writes numbers in one of the two orders of bytes.
#[derive(Clone, Copy)]
struct Order {
    little: bool,
}

impl Order {
    fn full(self, number: u64) -> Vec<u8> {
        if self.little { number.to_le_bytes().to_vec() } else { number.to_be_bytes().to_vec() }
    }

    fn packed(self, number: u64) -> Vec<u8> {
        let length = 8 - (number.leading_zeros() / 8) as usize;
        let bytes = self.full(number);
        let significant = if self.little { &bytes[..length] } else { &bytes[8 - length..] };
        [&[length as u8][..], significant].concat()
    }

    fn mark(self) -> u8 {
        if self.little { 0x42 } else { 0x23 }
    }

    fn chunk(self, records: &[Vec<u8>]) -> Vec<u8> {
        [&[3, self.mark()][..], &[0; 16], &records.concat(), &[2]].concat()
    }

    /// A record of a type with a length: its numbers, packed, behind the bytes `first`.
    fn record(self, kind: u8, first: &[u8], numbers: &[u64], last: &[u8]) -> Vec<u8> {
        let numbers: Vec<u8> = numbers.iter().flat_map(|&number| self.packed(number)).collect();
        let body = [first, &numbers, last].concat();
        [&[kind, body.len() as u8][..], &body].concat()
    }

    /// A record without a length.
    fn short(self, kind: u8, number: u64) -> Vec<u8> {
        [&[kind][..], &self.packed(number)].concat()
    }

    fn at(self, time: u64, records: &[Vec<u8>]) -> Vec<u8> {
        [&[5][..], &self.full(time), &records.concat()].concat()
    }
}

const NAMES: [&str; 8] =
    ["", "host", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Iallreduce", "solve", "MPI_Init"];

/// An archive of two ranks: each posts a receive, sends, starts an Allreduce of 8 bytes, and waits for all. With `threads`, a second thread
/// of each exchanges a message with that of the other, by requests of the same numbers.
fn archive(directory: &Path, order: Order, threads: bool) {
    let number = |number: u64| order.packed(number);
    let mut definitions = vec![order.record(5, &[], &[1_000_000_000], &[order.full(0), number(1)].concat())];
    for (id, name) in (0..).zip(NAMES) {
        let text = [name.as_bytes(), &[0]].concat();
        definitions.push(order.record(10, &[], &[id], &text));
        definitions.push(order.record(15, &[], &[id, id], &[]));
    }
    definitions.push(order.record(12, &[], &[0, 1, 0], &[0xff]));
    let events = 32;
    for rank in 0..2 {
        definitions.push(order.record(13, &[], &[rank, 0], &[&[1][..], &number(0)].concat()));
        let of_location = [&[1][..], &number(events), &number(rank)].concat();
        definitions.push(order.record(14, &[], &[rank, 0], &of_location));
        if threads {
            let of_location = [&[1][..], &number(10), &number(rank)].concat();
            definitions.push(order.record(14, &[], &[rank + 2, 0], &of_location));
        }
    }
    let members = [number(2), number(0), number(1)].concat();
    for (id, old, kind) in [(0, 6, 4), (1, 4, 5)] {
        let rest = [&[old][..], &members, &[kind, 4, 0]].concat();
        definitions.push(order.record(18, &[], &[id, 0], &rest));
    }
    definitions.push(order.record(22, &[], &[30, 0, 1], &[0xff]));
    let anchor = [
        &[3, order.mark()][..],
        b"OTF2\0\x03\x02\x03\0\0",
        &order.full(1 << 20),
        &order.full(1 << 20),
        &[1, 1],
        &order.full(2),
        &order.full(definitions.len() as u64),
        b"m\0Score-P\0d\0",
        &[0; 4],
    ];
    std::fs::create_dir_all(directory.join("X")).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes).unwrap();
    write("X.otf2", &anchor.concat());
    write("X.def", &order.chunk(&definitions));
    for rank in 0..2u64 {
        let (enter, leave) = (|region| order.short(12, region), |region| order.short(13, region));
        // The location calls the communicator 1, and the region of Isend 77.
        let mapping = |of, local, global| {
            order.record(5, &[of], &[1], &[&[1][..], &number(local), &number(global)].concat())
        };
        write(&format!("X/{rank}.def"), &order.chunk(&[mapping(6, 1, 30), mapping(3, 77, 3)]));
        let start = 1_000_000 * (7 - 6 * rank);
        let message = |tag: u64, request: u64| [1 - rank, 1, tag, 100, request];
        let allreduce =
            order.record(86, &[11], &[1], &[&[0xff][..], &number(16), &number(16), &number(9)].concat());
        // Of a communicator that MPI_Init creates.
        let created = order.record(23, &[20], &[1], &[&[0xff][..], &number(0), &number(0)].concat());
        let events = [
            order.at(start - 500, &[enter(6), leave(6)]),
            order.at(start, &[enter(7), created, leave(7), enter(2), order.short(17, 7)]),
            order.at(start + 100, &[leave(2)]),
            // Receives whose source nothing tells: of one nothing more is known, the other is cancelled.
            order.at(start + 200, &[enter(2), order.short(17, 8), order.short(17, 12), leave(2)]),
            // The measurement writes its buffer for 10 000 ns; then the program computes for 5000 ns, with a region of its own.
            order.at(start + 1_000, &[order.record(10, &order.full(start + 11_000), &[], &[])]),
            order.at(start + 12_000, &[enter(6), leave(6)]),
            // Attributes stand in front of an event.
            order.at(start + 16_200, &[order.record(6, &[1], &[3], &[4, 1, 1]), enter(77)]),
            // A region within the call is part of it.
            order.at(start + 16_200, &[enter(6), leave(6), order.record(15, &[], &message(5, 6), &[])]),
            order.at(start + 16_300, &[leave(77), enter(5), order.record(85, &[], &[9], &[])]),
            order.at(
                start + 16_400,
                &[leave(5), enter(4), allreduce, order.short(21, 12), order.short(16, 6)],
            ),
            order.at(start + 16_500, &[order.record(19, &[], &message(5, 7), &[]), leave(4)]),
            // Of a type that nobody knows, and no calls.
            order.at(start + 16_600, &[order.record(200, &[1, 2, 3], &[], &[]), enter(6), leave(6)]),
        ];
        write(&format!("X/{rank}.evt"), &order.chunk(&events));
        if threads {
            let [sent, received] =
                [(15, 6), (19, 7)].map(|(kind, request)| order.record(kind, &[], &message(9, request), &[]));
            let events = [
                order.at(start + 300, &[enter(77), sent, leave(77), enter(2), order.short(17, 7), leave(2)]),
                order.at(start + 400, &[enter(4), order.short(16, 6), received, leave(4)]),
            ];
            write(&format!("X/{}.evt", rank + 2), &order.chunk(&events));
            write(&format!("X/{}.def", rank + 2), &order.chunk(&[mapping(6, 1, 30), mapping(3, 77, 3)]));
        }
    }
}

fn import(order: Order, threads: bool) -> (Summary, mixer::Summary, Vec<Record>) {
    let directory = tempfile::tempdir().unwrap();
    archive(&directory.path().join("in"), order, threads);
    import_records(&directory.path().join("in"), &Options::default())
}

#[test]
fn calls_are_the_regions_of_mpi() {
    let (summary, mixed, records) = import(Order { little: true }, false);
    assert_eq!((summary.messages, summary.bytes), (2, 200));
    assert_eq!(
        (calls(&summary, "MPI_Irecv"), calls(&summary, "MPI_Isend"), calls(&summary, "solve")),
        (4, 2, 0)
    );
    // An Allreduce of 16 bytes, as Score-P counts on two ranks, is one of 8.
    let parts: Vec<_> = records
        .iter()
        .filter_map(|record| if let Record::Collective(part) = record { Some(part.amounts) } else { None })
        .collect();
    assert_eq!(parts.iter().map(|part| (part.send.0, part.recv.0)).collect::<Vec<_>>(), [(8, 8), (8, 8)]);
    assert_eq!((mixed.matched, mixed.collectives), (2, 1));
    let told: Vec<String> = summary.told().collect();
    assert!(
        told[0].starts_with(
            "warning: receives and collectives left out: they never complete (2): rank 0, call "
        ),
        "{told:?}"
    );
    assert_eq!((told.len(), &summary.skipped), (1, &Default::default()), "{told:?}");
    // From the end of MPI_Init to the send: 16 200 ns less the 10 000 in which the buffer was written.
    let times: Vec<u64> = records
        .iter()
        .filter_map(|record| match record {
            Record::Message(message) if !message.is_mark() => Some(message.time.0),
            _ => None,
        })
        .collect();
    assert_eq!(times, [6_200; 2]);
    // Whole events without MPI_Finalize end the rank where they end: 100 ns behind the call that waits for the message.
    let last = records.iter().rev().find_map(|record| match record {
        Record::Message(message) if message.src.0 == 0 => Some(message),
        _ => None,
    });
    assert_eq!(last.map(|last| (last.is_mark(), last.time.0)), Some((true, 100)));
    assert!(mixed.without_finalize().next().is_none());
}

#[test]
fn both_orders_of_bytes_are_read() {
    let (summary, _, records) = import(Order { little: false }, false);
    let (other, _, expected) = import(Order { little: true }, false);
    assert_eq!((summary, records), (other, expected));
}

/// Locations of one process are threads of its rank: their calls are the rank's, each with requests of its own.
#[test]
fn threads_of_a_rank() {
    let (alone, ..) = import(Order { little: true }, false);
    let (summary, mixed, records) = import(Order { little: true }, true);
    assert_eq!((summary.ranks, summary.messages, summary.bytes), (2, 4, 400));
    assert_eq!((mixed.messages, mixed.matched, mixed.collectives), (4, 4, 1));
    for name in ["MPI_Isend", "MPI_Irecv", "MPI_Waitall"] {
        assert_eq!(calls(&summary, name), calls(&alone, name) + 2, "{name}");
    }
    // Neither thread's message is taken for the other's, though their requests have the same numbers.
    assert_eq!(summary.findings, alone.findings);
    let sent =
        records.iter().filter(|record| matches!(record, Record::Message(message) if !message.is_mark()));
    assert!(sent.clone().all(|record| matches!(record, Record::Message(message) if message.awaited)));
    assert_eq!(sent.count(), 4);
}

/// A receive that states other bytes than its send is named; the trace has those of the send.
#[test]
fn a_receive_and_its_send_state_different_bytes() {
    let order = Order { little: true };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in");
    archive(&path, order, true);
    // Rank 1 receives 96 of the 100 bytes that rank 0 sends with tag 5.
    let file = path.join("X/1.evt");
    let [from, to] = [100, 96].map(|bytes| order.record(19, &[], &[0, 1, 5, bytes, 7], &[]));
    let bytes = std::fs::read(&file).unwrap();
    let at: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(&from)).collect();
    let [at] = at[..] else { panic!("{at:?}") };
    std::fs::write(&file, [&bytes[..at], &to, &bytes[at + from.len()..]].concat()).unwrap();
    let (summary, _, records) = import_records(&path, &Options::default());
    let different: Vec<String> = summary.told().filter(|told| told.contains("bytes")).collect();
    let expected = "warning: messages of which the receive states other bytes than the send (1): rank 1, call 2: 96 received, 100 sent";
    assert_eq!(different, [expected], "{:?}", summary.findings);
    assert_eq!(summary.bytes, 400);
    let sent = records.iter().filter_map(|record| match record {
        Record::Message(message) if !message.is_mark() => Some(message.bytes.0),
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), [100; 4]);
}

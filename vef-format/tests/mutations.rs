//! Small files of every format with each of their bytes changed, and cut at each length: what comes of it is an error, the
//! same content, or other content that a user could have meant. What a change of one byte may alter unnoticed is listed
//! beside each format, and nothing else may.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use vef_format::capture::event::{
    Action, CallSlot, Communicator, Completion, Completions, Datatype, DatatypeId, Detail, Event, Members,
    Origin, Outcome, PostReceive, Remote, RequestId, Send, SendMode,
};
use vef_format::capture::layout::{HEADER_SIZE, field};
use vef_format::capture::{Capture, CaptureError, Ending, RankInfo, RankWriter, rank_path};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::record::{Header, Record};
use vef_format::text::Reader;
use vef_format::units::{Bytes, Nanos};
use vef_format::validate::{Options, Validator};

/// What each byte is changed into: every bit by itself, and all of them.
const CHANGES: [u8; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 255];

/// Where the first clock pair of a capture's header ends.
const CLOCK_END: usize = field::CLOCK + 16;

/// Everything that text has: marks, messages with and without bit 4, collectives on two communicators, the last one rooted.
const TRACE: &str = "VEF3 3 9 2 3 7 0 1000\nC0 0 1 2\nC1 2 0\n0 0 2 86 4 419 -1\n1 2 2 0 0 20 -1\nG0 C1 2 2 8 8 2 1 0\n\
    G0 C1 2 0 8 8 1 30 0\n2 0 1 64 3 5 G0\n3 1 1 0 0 7 -1\n4 1 1 0 1 9 3\nG1 C0 6 1 0 0 1 2 4\nG1 C0 6 0 0 0 1 4 2\n\
    G1 C0 6 2 0 0 3 6 G0\n5 2 1 7 7 3 G1\n6 1 1 0 3 8 G1\n7 0 0 0 3 1 G1\nG2 C1 0 2 0 5 1 1 5\nG2 C1 0 0 5 0 1 1 7\n\
    8 1 1 0 2 2 5\n";

/// What stands in a trace, if nothing is wrong with it.
fn sound(text: &[u8]) -> Option<(Header, Vec<Record>)> {
    let mut reader = Reader::from_bytes(text, Path::new("t.vef")).ok()?;
    let mut validator = Validator::new(reader.header(), &Options::default());
    let mut records = Vec::new();
    while let Some((number, line)) = reader.next_numbered().ok()? {
        validator.add(number, &line);
        records.push(line.to_record());
    }
    let expected_warnings = 2;
    let report = validator.finish();
    (report.errors == 0 && report.stuck_tasks == 0 && report.warnings == expected_warnings)
        .then(|| (*reader.header(), records))
}

/// The names of the fields in which two traces differ.
fn differences(a: &(Header, Vec<Record>), b: &(Header, Vec<Record>)) -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    let mut note = |differs: bool, name| _ = differs && names.insert(name);
    note(a.0.clock != b.0.clock, "clock");
    note(a.0.received != b.0.received, "nRecvDep");
    note((a.0.tasks, a.1.len()) != (b.0.tasks, b.1.len()), "tasks or records");
    for pair in a.1.iter().zip(&b.1) {
        match pair {
            (a @ Record::Communicator { .. }, b @ Record::Communicator { .. }) => {
                note(a != b, "communicator")
            }
            (Record::Message(a), Record::Message(b)) => {
                note(a.id != b.id, if a.is_mark() { "id of a mark" } else { "id of a message" });
                note(a.src != b.src, "src");
                note(a.dst != b.dst, if a.awaited { "dst of an awaited message" } else { "dst" });
                note(a.bytes != b.bytes, "bytes");
                note(a.awaited != b.awaited, "awaited");
                note(a.time != b.time, "time");
                note(a.after.code() != b.after.code(), "dep");
                note(a.after != b.after, "idDep");
            }
            (Record::Collective(a), Record::Collective(b)) => {
                note((a.id, a.comm, a.task, a.op) != (b.id, b.comm, b.task, b.op), "collective");
                note(a.amounts != b.amounts, "amounts");
                note(a.time != b.time, "time");
                note(a.after.code() != b.after.code(), "dep");
                note(a.after != b.after, "idDep");
            }
            _ => note(true, "kind"),
        }
    }
    names
}

#[test]
fn text_with_a_byte_changed() {
    let original = sound(TRACE.as_bytes()).expect("a sound trace");
    let mut unnoticed = BTreeSet::new();
    for at in 0..TRACE.len() {
        for change in CHANGES {
            let mut text = TRACE.as_bytes().to_vec();
            text[at] ^= change;
            if let Some(other) = sound(&text) {
                unnoticed.append(&mut differences(&original, &other));
            }
        }
    }
    // Quantities: any number is as good as another. An obsolete field. What nobody refers to: id and task of a mark whose
    // follower names something else, the destination of a message nobody waits for. An earlier event of the same task in the
    // place of the last one: a non-blocking collective may lie between.
    let by_nature = ["amounts", "bytes", "clock", "dst", "id of a mark", "idDep", "nRecvDep", "src", "time"];
    assert_eq!(unnoticed, BTreeSet::from(by_nature));
}

#[test]
fn text_cut_at_every_length() {
    for length in 0..TRACE.len() {
        let cut = Reader::from_bytes(&TRACE.as_bytes()[..length], Path::new("t.vef"));
        let error = cut.and_then(|mut reader| {
            while reader.next()?.is_some() {}
            Ok(())
        });
        assert!(error.is_err(), "{length} bytes");
    }
}

/// Writes a capture of one task with calls of many kinds; returns the bytes in use of its first chunk.
fn write_capture(directory: &Path) -> usize {
    let info =
        RankInfo { rank: Rank(0), tasks: 1, host: "node0".into(), cores: vec![0], ..RankInfo::default() };
    let mut writer = RankWriter::create(directory, &info).expect("a temporary file");
    let world = Communicator {
        id: CommId(0),
        origin: Origin::World,
        split: None,
        members: Members::All,
        remote: Remote::None,
        foreign: false,
    };
    let byte = Datatype { id: DatatypeId(0), size: Bytes(1), contiguous: true, name: "MPI_BYTE" };
    let put = writer.function("MPI_Put").expect("room for it");
    let request = RequestId { thread: 0, number: 0 };
    let post = PostReceive {
        comm: CommId(0),
        source: None,
        tag: Some(7),
        bytes: Bytes(4096),
        datatype: DatatypeId(0),
        request,
    };
    let send = Send {
        comm: CommId(0),
        dest: CommRank(0),
        tag: 7,
        bytes: Bytes(1000),
        datatype: DatatypeId(0),
        mode: SendMode::Standard,
        request: None,
    };
    let received = Outcome::Received { source: CommRank(0), tag: 7, bytes: Some(Bytes(1000)) };
    let completions = [Completion { request, outcome: received }];
    let actions = [
        Action::Init,
        Action::Communicator(world),
        Action::Datatype(byte),
        Action::PostReceive(post),
        Action::Send(send),
        Action::Complete(Completions::List(&completions)),
        Action::Phase { begin: true, name: "solve" },
        Action::Other { bytes: Bytes(9), detail: Detail::None },
        Action::Finalize,
    ];
    for (turn, action) in (1..).zip(actions) {
        let call = if matches!(action, Action::Other { .. }) { put } else { CallSlot::NONE };
        let event =
            Event { start: Nanos(turn * 1000), end: Nanos(turn * 1000 + 300), thread: 0, call, action };
        writer.event(&event).expect("an event");
    }
    writer.finish().expect("a temporary file");
    let file = fs::read(rank_path(directory, Rank(0))).expect("the file");
    let last = file.iter().rposition(|&byte| byte != 0).expect("bytes");
    last + 1 - HEADER_SIZE
}

/// The content of a capture, if it is valid.
fn events(directory: &Path) -> Option<(Vec<String>, Ending)> {
    let mut events = Capture::open(directory).and_then(|capture| capture.events(Rank(0))).ok()?;
    let mut told = Vec::new();
    let tell = |event: &Event<'_>| {
        told.push(format!("{event:?}"));
        Ok::<_, CaptureError>(())
    };
    events.each(tell).ok()?;
    Some((told, events.ending()))
}

#[test]
fn a_capture_with_a_byte_changed() {
    let folder = tempfile::tempdir().expect("a directory");
    let used = write_capture(folder.path());
    let original = events(folder.path()).expect("a sound capture");
    assert_eq!((original.0.len(), original.1), (9, Ending::Finished));
    let path = rank_path(folder.path(), Rank(0));
    let whole = fs::read(&path).expect("the file");
    let file = File::options().write(true).open(&path).expect("the file");
    assert_eq!(whole.len(), HEADER_SIZE + used);
    let chunk = HEADER_SIZE..whole.len();
    for at in (0..field::FACTS + 64).chain(chunk) {
        for change in CHANGES {
            file.write_all_at(&[whole[at] ^ change], at as u64).expect("a write");
            if let Some(changed) = events(folder.path())
                && changed != original
            {
                // The first clock pair is a quantity, the state says that the writer was stopped, which is told. The
                // table of functions' names has no checksum of its own. Chunks have one.
                let (events, ending) = &changed;
                let whole = events.len() == original.0.len();
                let by_nature = match at {
                    field::STATE..field::FACTS_LEN => whole && *ending == Ending::Stopped,
                    field::CLOCK..CLOCK_END | field::CALLS_AT..field::CALLS => whole,
                    _ => false,
                };
                assert!(by_nature, "byte {at} ^ {change:#x}: {changed:?}");
            }
        }
        file.write_all_at(&[whole[at]], at as u64).expect("a write");
    }
    assert_eq!(events(folder.path()), Some(original));
}

#[test]
fn a_capture_cut_at_every_length() {
    let folder = tempfile::tempdir().expect("a directory");
    let used = write_capture(folder.path());
    let path = rank_path(folder.path(), Rank(0));
    let whole = fs::read(&path).expect("the file");
    assert_eq!(whole.len(), HEADER_SIZE + used);
    let lengths = (0..300).chain(HEADER_SIZE - 2..whole.len());
    for length in lengths {
        let file = File::options().write(true).truncate(true).open(&path);
        file.and_then(|file| file.write_all_at(&whole[..length], 0)).expect("a write");
        assert_eq!(events(folder.path()), None, "{length} of {} bytes", whole.len());
    }
}

/// A capture of the older layout: a send of a task to itself, received by an `Irecv` and its wait.
fn write_older(directory: &Path) -> Vec<u8> {
    let main = "1\n./\nTask:0:Node:a:RI:1:RF:2:TI:3:TF:4\n";
    fs::write(directory.join("VEFT.main"), main).expect("a temporary file");
    let comm: Vec<u8> = [0i32, 1, -1].iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(directory.join("0.comm"), comm).expect("a temporary file");
    let mut calls = Vec::new();
    let call = |start: u64, peer: i32, bytes: i32, tag: i32, request: u32, event: u16| {
        let mut record = Vec::new();
        record.extend_from_slice(&start.to_le_bytes());
        record.extend_from_slice(&(start + 5).to_le_bytes());
        for word in [peer, bytes, tag] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        record.extend_from_slice(&request.to_le_bytes());
        record.extend_from_slice(&event.to_le_bytes());
        record.extend_from_slice(b"unused");
        record
    };
    for record in [
        call(10, 0, 0, 0, 0, 200),
        call(20, -1, 64, 3, 1, 111),
        call(30, 0, 50, 3, 0, 100),
        call(40, 0, 50, 1, 1, 151),
        call(50, 0, 0, 0, 0, 6),
        call(60, 0, 0, 0, 0, 202),
    ] {
        calls.extend(record);
    }
    fs::write(directory.join("0.veft"), &calls).expect("a temporary file");
    calls
}

#[test]
fn an_older_capture_changed_and_cut() {
    let folder = tempfile::tempdir().expect("a directory");
    let calls = write_older(folder.path());
    let original = events(folder.path()).expect("a sound capture");
    assert_eq!((original.0.len(), original.1), (7, Ending::Finished));
    let path = folder.path().join("0.veft");
    for at in 0..calls.len() {
        for change in [1, 128, 255] {
            let mut bad = calls.clone();
            bad[at] ^= change;
            fs::write(&path, &bad).expect("a write");
            let changed = events(folder.path());
            // The padding means nothing. The layout has no checksum: times, peers, sizes, tags and requests are quantities and
            // names, and an event type turned into another known one is another call.
            if at % 40 >= 34 {
                assert_eq!(changed.as_ref(), Some(&original), "byte {at} ^ {change:#x}");
            }
        }
    }
    for length in 0..calls.len() {
        fs::write(&path, &calls[..length]).expect("a write");
        let (told, ending) = events(folder.path()).expect("what is there can be read");
        let torn = u32::from(length % 40 > 0);
        assert_eq!(ending, Ending::Cut { torn }, "{length} bytes");
        assert_eq!(told.as_slice(), &original.0[..told.len()], "{length} bytes");
    }
    fs::write(&path, &calls).expect("a write");
    for name in ["VEFT.main", "0.comm"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).expect("the file");
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("a write");
            let read = events(folder.path());
            // A missing line end, or missing last digits of the last number, cannot be detected.
            let in_last_number = name == "VEFT.main" && length + 2 >= whole.len();
            // A task without any communicator may be one that has no collective.
            let nothing_known = name == "0.comm" && length == 0;
            assert!(read.is_none() || in_last_number || nothing_known, "{name} cut to {length}: {read:?}");
        }
        let mut unnoticed = BTreeSet::new();
        for at in 0..whole.len() {
            for change in [1, 128, 255] {
                let mut bad = whole.clone();
                bad[at] ^= change;
                fs::write(&path, &bad).expect("a write");
                if let Some((told, ending)) = events(folder.path()) {
                    unnoticed.insert(at);
                    // The calls are in another file. The first event of a task is where MPI_Init starts.
                    assert_eq!((&told[1..], ending), (&original.0[1..], original.1), "byte {at} of {name}");
                    assert!(told[0] == original.0[0] || at == 32, "byte {at} of {name}: {}", told[0]);
                }
            }
        }
        // A folder and a host have any name, the times RI, RF, TI and TF are quantities, and the last line may lack its end.
        let by_nature: &[usize] = if name == "VEFT.main" { &[2, 3, 17, 22, 27, 32, 37, 38] } else { &[] };
        assert!(unnoticed.iter().eq(by_nature), "{name}: {unnoticed:?}");
        fs::write(&path, &whole).expect("a write");
    }
}

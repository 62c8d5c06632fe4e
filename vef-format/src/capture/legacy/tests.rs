//! Real captures, and every way in which a file of the older layout can be wrong.

use super::{Events, LegacyError, Main, Options, UnknownEvents};
use crate::capture::Group;
use crate::capture::event::{Action, Completions, Event, Members, Origin, Outcome, RequestId};
use crate::ids::{CommId, CommRank, Rank};
use crate::operation::{Amounts, OpCodes, Operation};
use crate::units::{Bytes, Nanos};
use std::fs;
use std::path::{Path, PathBuf};

/// A record with rubbish in its padding, as real ones have.
fn record(start: u64, end: u64, peer: i32, bytes: i32, tag: i32, request: u32, event: u16) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend_from_slice(&start.to_le_bytes());
    record.extend_from_slice(&end.to_le_bytes());
    for word in [peer, bytes, tag, request as i32] {
        record.extend_from_slice(&word.to_le_bytes());
    }
    record.extend_from_slice(&event.to_le_bytes());
    record.extend_from_slice(b"\xde\xadop-4");
    record
}

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A capture of two tasks, of which task 1 did `calls` and knows `communicators`.
struct Capture(tempfile::TempDir);

impl Capture {
    fn new(communicators: &[u8], calls: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let main = "2\n./\n\
            Task:0:Node:a:RI:1:RF:2:TI:3:TF:4\n\
            Task:1:Node:b:c:RI:18446744073709551615:RF:20:TI:30:TF:40\n";
        fs::write(folder.path().join("VEFT.main"), main).unwrap();
        fs::write(folder.path().join("1.comm"), communicators).unwrap();
        fs::write(folder.path().join("1.veft"), calls).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A task's events read with `options`, formatted.
    fn events(&self, options: &Options) -> Result<(Vec<String>, Events), LegacyError> {
        let mut events = Events::open(&Main::open(self.path())?, Rank(1), options)?;
        let mut shown = Vec::new();
        while let Some(event) = events.next()? {
            shown.push(format!("{:?}", event.action));
        }
        Ok((shown, events))
    }

    /// The error, without the folder's name.
    fn error(&self) -> String {
        let error = self.events(&Options::default()).map(|(shown, _)| shown).unwrap_err().to_string();
        error.replace(&format!("{}/", self.path().display()), "")
    }
}

const WORLD: [i32; 3] = [0, 2, -1];

#[test]
fn real_captures() {
    let Some(data) = skipping::shared("data/vef-prospector") else { return };
    let main = Main::open(&data.join("p2p-a")).unwrap();
    assert_eq!(main, Main::open(&data.join("p2p-a/VEFT.main")).unwrap());
    assert!(Main::is_at(&data.join("p2p-a")) && Main::is_at(&main.path) && !Main::is_at(&data));
    assert_eq!((main.tasks.len(), main.tasks[3].host.as_str()), (4, "node0"));
    assert_eq!(main.tasks[3].init, Nanos(29_905_534_628_879));

    let mut events = Events::open(&main, Rank(0), &Options::default()).unwrap();
    let known = events.next().unwrap().unwrap();
    assert_eq!(known.start, Nanos(29_905_534_628_879));
    let Action::Communicator(communicator) = known.action else { panic!("{known:?}") };
    assert_eq!((communicator.origin, communicator.members), (Origin::World, Members::All));
    let mut kinds = Vec::new();
    while let Some(Event { start, end, action, .. }) = events.next().unwrap() {
        assert!(start < end);
        kinds.push(match action {
            Action::Init => "init".to_owned(),
            Action::Finalize => "finalize".to_owned(),
            Action::Send(send) => format!("send {} to {} tag {}", send.bytes, send.dest, send.tag),
            Action::Receive(receive) => format!("receive {} from {}", receive.bytes, receive.source),
            Action::PostReceive(post) => format!("post {:?} {}", post.source, post.bytes),
            Action::Complete(Completions::List(done)) => format!("{:?}", done[0].outcome),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(
        kinds,
        [
            "init",
            "send 86 B to 2 tag 0",
            "post None 256 B",
            "send 4 B to 3 tag 1",
            "receive 4 B from 1",
            "Received { source: CommRank(2), tag: 0, bytes: Some(Bytes(86)) }",
            "finalize"
        ]
    );
    assert!(events.is_finished() && events.lost_bytes() == 0 && events.records() == 7);

    for name in ["p2p-a", "p2p-b"] {
        let main = Main::open(&data.join(name)).unwrap();
        for rank in 0..4 {
            let mut events = Events::open(&main, Rank(rank), &Options::default()).unwrap();
            while events.next().unwrap().is_some() {}
            assert!(events.is_finished());
        }
    }
}

#[test]
fn requests_are_told_apart_although_their_numbers_return() {
    let calls = [
        record(1, 2, -1, 8, 5, 7, 111),
        record(3, 4, 0, 4, 1, 7, 151),
        record(5, 6, 0, 8, -1, 0, 111),
        record(7, 8, 0, 8, 5, 7, 111),
        record(9, 9, 0, 2, 5, 7, 151),
    ]
    .concat();
    let capture = Capture::new(&words(&WORLD), &calls);
    let mut events =
        Events::open(&Main::open(capture.path()).unwrap(), Rank(1), &Options::default()).unwrap();
    let (mut posted, mut completed) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().unwrap() {
        match event.action {
            Action::PostReceive(post) => posted.push((post.request.number, post.source, post.tag)),
            Action::Complete(Completions::List([done])) => completed.push((done.request, done.outcome)),
            Action::Communicator(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(posted, [(0, None, Some(5)), (1, Some(CommRank(0)), None), (2, Some(CommRank(0)), Some(5))]);
    let received = |bytes| Outcome::Received { source: CommRank(0), tag: 5, bytes: Some(Bytes(bytes)) };
    let request = |number| RequestId { thread: 0, number };
    assert_eq!(completed, [(request(0), received(4)), (request(2), received(2))]);
    assert!(!events.is_finished());
}

#[test]
fn communicators_and_collectives() {
    let communicators = words(&[3, 2, 1, 0, 9, 2, -1, 4, 1, 1, 5, 2, 0, 1]);
    let calls = [
        record(1, 2, 1, 10, 3, 0, 0),
        record(3, 4, 0, 10, 9, 0, 0),
        record(5, 6, 0, 16, 5, 0, 2),
        record(7, 8, 0, 99, 3, 0, 6),
    ]
    .concat();
    let capture = Capture::new(&communicators, &calls);
    let mut events =
        Events::open(&Main::open(capture.path()).unwrap(), Rank(1), &Options::default()).unwrap();
    let (mut known, mut collectives) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().unwrap() {
        match event.action {
            Action::Communicator(comm) => {
                let members = Group::new(comm.members, 2).unwrap();
                let members: Vec<_> = members.iter().map(|rank| rank.0).collect();
                known.push((comm.id.0, comm.origin, members));
            }
            Action::Collective(part) => {
                collectives.push((part.operation, part.comm, part.root, part.amounts))
            }
            other => panic!("{other:?}"),
        }
    }
    let unseen = Origin::Unseen { ordinal: 0 };
    assert_eq!(
        known,
        [
            (3, unseen, vec![1, 0]),
            (9, Origin::World, vec![0, 1]),
            (4, unseen, vec![1]),
            (5, unseen, vec![0, 1])
        ]
    );
    let amounts = |send, recv| Amounts { send: Bytes(send), recv: Bytes(recv) };
    assert_eq!(
        collectives,
        [
            (Operation::Bcast, CommId(3), Some(CommRank(1)), amounts(0, 10)),
            (Operation::Bcast, CommId(9), Some(CommRank(0)), amounts(0, 10)),
            (Operation::Allreduce, CommId(5), None, amounts(16, 16)),
            (Operation::Barrier, CommId(3), None, amounts(0, 0)),
        ]
    );
    // Task 1 has rank 0 in communicator 3: there it is the root of a Bcast from 0.
    let capture = Capture::new(&communicators, &record(1, 2, 0, 10, 3, 0, 0));
    let (shown, _) = capture.events(&Options::default()).unwrap();
    assert!(shown[4].contains("send: Bytes(10), recv: Bytes(0)"), "{}", shown[4]);
}

#[test]
fn without_a_communicator_of_all_tasks_one_is_made() {
    let capture = Capture::new(&words(&[6, 1, 1]), &record(1, 2, 0, 10, 3, 0, 100));
    let (shown, _) = capture.events(&Options::default()).unwrap();
    assert!(shown[1].contains("id: CommId(7), origin: World"), "{}", shown[1]);
    assert!(shown[2].contains("comm: CommId(7), dest: CommRank(0), tag: 3"), "{}", shown[2]);
}

#[test]
fn unknown_events_are_refused_or_counted() {
    let calls =
        [record(1, 2, 0, 4, 0, 0, 101), record(3, 4, 0, 4, 0, 0, 1), record(5, 6, 0, 4, 0, 0, 101)].concat();
    let capture = Capture::new(&words(&WORLD), &calls);
    assert_eq!(capture.error(), "1.veft: record 0 at byte 0: event type 101 is not known");
    let skip = Options { unknown: UnknownEvents::Skip, ..Options::default() };
    let (shown, events) = capture.events(&skip).unwrap();
    assert_eq!((shown.len(), events.records()), (1, 3));
    assert_eq!(events.skipped().iter().collect::<Vec<_>>(), [(&1, &1), (&101, &2)]);

    // A user's table makes event 1 a collective.
    let table = OpCodes::parse("1 Reduce", Path::new("codes")).unwrap();
    let (shown, events) = capture.events(&Options { op_codes: Some(table), ..skip }).unwrap();
    assert!(shown[1].starts_with("Collective(Collective { operation: Reduce"), "{}", shown[1]);
    assert_eq!(events.skipped().iter().collect::<Vec<_>>(), [(&101, &2)]);
}

#[test]
fn a_cut_file_gives_its_whole_records() {
    let whole = [record(1, 2, 0, 0, 0, 0, 200), record(3, 4, 0, 4, 0, 0, 100), record(5, 6, 0, 0, 0, 0, 202)]
        .concat();
    for length in 0..=whole.len() {
        let capture = Capture::new(&words(&WORLD), &whole[..length]);
        let (shown, events) = capture.events(&Options::default()).unwrap();
        assert_eq!(shown.len(), 1 + length / 40);
        assert_eq!((events.lost_bytes(), events.is_finished()), (length as u64 % 40, length == whole.len()));
    }
    // More than a block of records.
    let many = record(3, 4, 0, 4, 0, 0, 100).repeat(10_000);
    let (shown, events) =
        Capture::new(&words(&WORLD), &many[..many.len() - 1]).events(&Options::default()).unwrap();
    assert_eq!((shown.len(), events.records(), events.lost_bytes()), (10_000, 9_999, 39));
}

#[test]
fn every_error_names_file_and_place() {
    let call = |record: Vec<u8>| {
        let calls = [self::record(1, 2, 0, 0, 0, 0, 200), record].concat();
        Capture::new(&words(&WORLD), &calls).error()
    };
    let here = "1.veft: record 1 at byte 40: ";
    for (record, want) in [
        (record(5, 4, 0, 4, 0, 0, 100), "the call ends at 4 ns, before it starts at 5 ns"),
        (record(1, 2, 2, 4, 0, 0, 100), "the destination is 2, not a rank from 0 to 1"),
        (record(1, 2, -1, 4, 0, 0, 100), "the destination is -1, not a rank from 0 to 1"),
        (record(1, 2, -2, 4, 0, 0, 111), "the source is -2, not a rank from 0 to 1"),
        (record(1, 2, 0, -4, 0, 0, 109), "the number of bytes is -4, not 0 or more"),
        (record(1, 2, 0, 4, 0, 9, 151), "a wait for request 9, which no call has started"),
        (record(1, 2, 0, 4, 0, 0, 151), "a wait for request 0, which no call has started"),
        (record(1, 2, 0, 4, 1, 0, 2), "communicator 1 is not in the task's .comm file"),
        (record(1, 2, 2, 4, 0, 0, 0), "the root is 2, not a rank from 0 to 1"),
        (record(1, 2, 0, 4, 0, 0, 65535), "event type 65535 is not known"),
    ] {
        assert_eq!(call(record), format!("{here}{want}"));
    }
    let post = record(1, 2, 0, 4, 0, 3, 111);
    let twice = Capture::new(&words(&WORLD), &[post.clone(), post].concat());
    assert_eq!(
        twice.error(),
        "1.veft: record 1 at byte 40: request 3 is started while it is still under way"
    );

    for (communicators, want) in [
        (words(&[0, 3, 0, 1]), "1.comm at byte 4: a communicator's size is 3, not from 1 to 2"),
        (words(&[0, 1, -1]), "1.comm at byte 4: the size of a communicator of all tasks is 1, not 2"),
        (words(&[-1, 2, -1]), "1.comm at byte 0: a communicator's id is -1, not from 0 to 2147483647"),
        (words(&[0, 0]), "1.comm at byte 4: a communicator's size is 0, not from 1 to 2"),
        (
            words(&[0, 2, -1, 0, 1, 1]),
            "1.comm at byte 12: a communicator's id is 0, not one that the file has not had",
        ),
        (words(&[0, 2, 0]), "1.comm at byte 4: the file ends within a communicator"),
        (words(&[0, 2]), "1.comm at byte 8: the file ends within a communicator"),
        (words(&[0, 2, 0, 2]), "1.comm at byte 12: a member is 2, not from 0 to 1"),
        (words(&[0, 2, 1, 1]), "1.comm at byte 4: a member is 1, not one that comes once"),
        (words(&[8, 1, 0]), "1.comm at byte 0: this task is not a member of communicator 8"),
    ] {
        assert_eq!(Capture::new(&communicators, &[]).error(), want);
    }
    let capture = Capture::new(&words(&WORLD), &[]);
    fs::remove_file(capture.path().join("1.veft")).unwrap();
    assert!(capture.error().starts_with("1.veft: No such file"), "{}", capture.error());
    fs::remove_file(capture.path().join("1.comm")).unwrap();
    assert!(capture.error().starts_with("1.comm: No such file"), "{}", capture.error());
}

#[test]
fn every_line_of_the_main_file() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("VEFT.main");
    let main = |text: &str| {
        fs::write(&path, text).unwrap();
        Main::open(folder.path())
            .map_err(|error| error.to_string().replace(path.to_str().unwrap(), "VEFT.main"))
    };
    let (first, second) = ("Task:0:Node:a:RI:1:RF:2:TI:3:TF:4\n", "Task:1:Node::x:RI:1:RF:2:TI:3:TF:4\r\n");
    let both = main(&format!("2\n/some/where\n{second}\n{first}")).unwrap();
    assert_eq!((both.tasks[0].host.as_str(), both.tasks[1].host.as_str()), ("a", ":x"));
    for (text, want) in [
        (String::new(), "VEFT.main: the file is empty"),
        ("two\n".into(), "VEFT.main:1: `two`, where the number of tasks is expected"),
        ("0\n./\n".into(), "VEFT.main:1: `0`, where the number of tasks is expected"),
        ("-2\n./\n".into(), "VEFT.main:1: `-2`, where the number of tasks is expected"),
        ("2\n".into(), "VEFT.main:2: ``, where the directory of the capture is expected"),
        (format!("4000000000\n./\n{first}"), "VEFT.main:4: task 1 of 4000000000 is missing"),
        (format!("2\n./\n{first}{first}"), "VEFT.main:4: task 0 of 2 comes twice"),
        (format!("1\n./\n{first}{second}"), "VEFT.main:4: task 1 of 1 is out of range"),
        (
            "1\n./\nTask:0:Node:a:RI:x:RF:2:TI:3:TF:4\n".into(),
            "VEFT.main:3: `Task:0:Node:a:RI:x:RF:2:TI:3:TF:4`, where Task:<x>:Node:<host>:RI:<ns>:RF:<ns>:TI:<ns>:TF:<ns> is expected",
        ),
        (
            "1\n./\nTask:0:Node:a:RI:1:RF:2:TI:3:TF:99999999999999999999\n".into(),
            "VEFT.main:3: `Task:0:Node:a:RI:1:RF:2:TI:3:TF:99999999999999999999`, where Task:<x>:Node:<host>:RI:<ns>:RF:<ns>:TI:<ns>:TF:<ns> is expected",
        ),
    ] {
        assert_eq!(main(&text).unwrap_err(), want);
    }
    let long = format!("1\n{}\n{first}", "x".repeat(100_000));
    assert!(main(&long).is_err(), "a line without end is cut into lines that are wrong");
}

#[test]
fn a_flipped_bit_never_panics() {
    let Some(data) = skipping::shared("data/vef-prospector/p2p-b") else { return };
    let (calls, comm) = (fs::read(data.join("1.veft")).unwrap(), fs::read(data.join("1.comm")).unwrap());
    let copy = tempfile::tempdir().unwrap();
    fs::copy(data.join("VEFT.main"), copy.path().join("VEFT.main")).unwrap();
    let main = Main::open(copy.path()).unwrap();
    let (mut good, mut bad) = (0, 0);
    for (name, bytes) in [("1.veft", &calls), ("1.comm", &comm)] {
        fs::write(copy.path().join("1.veft"), &calls).unwrap();
        fs::write(copy.path().join("1.comm"), &comm).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(copy.path().join(name), &flipped).unwrap();
            let read = || -> Result<(), LegacyError> {
                let mut events = Events::open(&main, Rank(1), &Options::default())?;
                while events.next()?.is_some() {}
                Ok(())
            };
            match read() {
                Ok(()) => good += 1,
                Err(error) => {
                    assert!(error.place.path.starts_with(copy.path()));
                    bad += 1;
                }
            }
        }
    }
    assert!(good > 0 && bad > 0);
}

//! Reader and writer against each other, against real traces, and against everything a line can have wrong.

use super::{Line, Problem, Reader, TextError, Writer};
use crate::error::Spot;
use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, Header, LocalCollective, Message, Record, Version, WrongCount};
use crate::testing::trace;
use crate::units::{Bytes, Picos, Ticks};
use proptest::prelude::*;
use std::io::Read;
use std::path::Path;

fn read_all<R: Read>(mut reader: Reader<R>) -> Result<(Header, Vec<Record>), TextError> {
    let header = *reader.header();
    let mut records = Vec::new();
    while let Some(line) = reader.next()? {
        records.push(line.to_record());
    }
    assert!(reader.next()?.is_none(), "the end comes again");
    Ok((header, records))
}

fn parse(text: &[u8]) -> Result<(Header, Vec<Record>), TextError> {
    read_all(Reader::from_bytes(text, Path::new("t.vef"))?)
}

fn print(header: &Header, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    for record in records {
        writer.line(&record.borrowed()).unwrap();
    }
    writer.finish().unwrap()
}

/// Gives one byte at a time, to cross every border of a block.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let take = self.0.len().min(into.len()).min(1);
        into[..take].copy_from_slice(&self.0[..take]);
        self.0 = &self.0[take..];
        Ok(take)
    }
}

#[test]
fn real_traces_come_back_byte_for_byte() {
    for name in ["p2p-a.vef", "p2p-b.vef"] {
        let Some(path) = skipping::shared(&format!("data/vef-prospector/{name}")) else {
            return;
        };
        let (header, records) = read_all(Reader::open(&path).unwrap()).unwrap();
        assert_eq!((header.tasks, header.messages, records.len()), (4, 20, 21));
        assert_eq!(print(&header, &records), std::fs::read(&path).unwrap());
    }
}

const SMALL: &str = "VEF3 3 3 2 1 2 0 1000\n\
    C0 0 1 2\n\
    C7 2 0\n\
    0 0 2 86 4 419185 -1\n\
    G5 C7 2 2 8 16 0 1 -1\n\
    G5 C7 2 0 8 16 1 18446744073709551615 0\n\
    18446744073709551615 2 2 0 3 0 G5\n\
    3 2 2 0 6 12 0\n";

#[test]
fn every_field_lands_where_it_belongs() {
    let (header, records) = parse(SMALL.as_bytes()).unwrap();
    assert_eq!(
        header,
        Header {
            version: Version::V3,
            tasks: 3,
            messages: 3,
            communicators: 2,
            collectives: 1,
            local_collectives: 2,
            received: 0,
            clock: Picos(1000)
        }
    );
    assert_eq!(records[1], Record::Communicator { id: CommId(7), members: vec![Rank(2), Rank(0)] });
    assert_eq!(
        records[2],
        Record::Message(Message {
            id: MessageId(0),
            src: Rank(0),
            dst: Rank(2),
            bytes: Bytes(86),
            awaited: true,
            after: Dependency::Start,
            time: Ticks(419_185)
        })
    );
    assert_eq!(
        records[4],
        Record::Collective(LocalCollective {
            id: CollectiveId(5),
            comm: CommId(7),
            op: OpCode(2),
            task: Rank(0),
            amounts: Amounts { send: Bytes(8), recv: Bytes(16) },
            after: Dependency::Sent(MessageId(0)),
            time: Ticks(u64::MAX)
        })
    );
    let Record::Message(mark) = &records[5] else { panic!("{:?}", records[5]) };
    assert!(mark.is_mark() && mark.id.0 == u64::MAX && mark.after == Dependency::Collective(CollectiveId(5)));
    let Record::Message(to_self) = &records[6] else { panic!("{:?}", records[6]) };
    assert!(!to_self.is_mark() && to_self.after == Dependency::Received(MessageId(0)));
    assert_eq!(print(&header, &records), SMALL.as_bytes());
}

#[test]
fn the_largest_numbers_are_exact() {
    let text = |bytes: &str| format!("VEF3 2 1 0 0 0 0 1\n0 0 1 {bytes} 4 9223372036854775808 -1\n");
    let (_, records) = parse(text("9223372036854775808").as_bytes()).unwrap();
    let Record::Message(message) = &records[0] else { panic!("{records:?}") };
    assert_eq!((message.bytes, message.time), (Bytes(1 << 63), Ticks(1 << 63)));
    let error = parse(text("18446744073709551616").as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "t.vef:2: field bytes is `18446744073709551616`, not a number from 0 to 2^64 - 1");
}

#[test]
fn blanks_and_line_ends_of_any_kind() {
    let odd = SMALL.replace(' ', "\t  ").replace('\n', " \r\n\n \t\n").replacen("\nC0", "\n  C0", 1);
    assert_eq!(parse(odd.as_bytes()).unwrap(), parse(SMALL.as_bytes()).unwrap());
    let dripping = Reader::from_stream(Drip(odd.as_bytes()), Path::new("pipe")).unwrap();
    assert_eq!(read_all(dripping).unwrap(), parse(SMALL.as_bytes()).unwrap());
}

#[test]
fn lines_longer_than_a_block() {
    let tasks = 100_000u32;
    let members: Vec<Rank> = (0..tasks).rev().map(Rank).collect();
    let header = Header { tasks, messages: 0, collectives: 0, local_collectives: 0, ..small_header() };
    let header = Header { communicators: 2, ..header };
    let comm = |id| Record::Communicator { id: CommId(id), members: members.clone() };
    let text = print(&header, &[comm(0), comm(1)]);
    assert!(text.len() > 1 << 20);
    let (again, records) = parse(&text).unwrap();
    assert_eq!((again, records), (header, vec![comm(0), comm(1)]));

    let mut endless = b"VEF3 2 0 1 0 0 0 1\nC0 0 1".to_vec();
    endless.resize(1 << 20, b' ');
    assert!(matches!(parse(&endless).unwrap_err().problem, Problem::LongLine { limit: 262_166 }));
}

fn small_header() -> Header {
    *Reader::from_bytes(SMALL.as_bytes(), Path::new("t")).unwrap().header()
}

/// The result of reading `SMALL` with `from` replaced by `to`.
fn said(from: &str, to: &str) -> String {
    assert_eq!(SMALL.matches(from).count(), 1, "{from:?} stands once");
    parse(SMALL.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
}

#[test]
fn every_error_names_line_field_and_find() {
    for (from, to, want) in [
        ("VEF3", "VEF4", "t.vef:1: not a VEF trace: it begins with `VEF4`, not with VEF3 or VEF2"),
        ("VEF3", "BZh9", "t.vef: not a VEF trace, but compressed by bzip2: bzcat FILE | vef … -"),
        ("VEF3", "\u{1}ELF", r"t.vef:1: not a VEF trace: it begins with `\x01ELF`, not with VEF3 or VEF2"),
        ("VEF3 3", "VEF3 0", "t.vef:1: field nTasks is `0`, not a number from 1 to 2147483647"),
        (
            "VEF3 3",
            "VEF3 2147483648",
            "t.vef:1: field nTasks is `2147483648`, not a number from 1 to 2147483647",
        ),
        ("0 1000", "0 0", "t.vef:1: field clock is `0`, not a number from 1 to 18446744073709551615"),
        ("0 1000", "0", "t.vef:1: the line ends before its field clock"),
        ("0 1000", "0 1000 7", "t.vef:1: the line continues with `7` behind its last field, clock"),
        ("0 1000", "0 1e3", "t.vef:1: field clock is `1e3`, not a number from 0 to 2^64 - 1"),
        ("C0 0 1 2", "C0 0 1 3", "t.vef:2: field task of a communicator is `3`, not a number from 0 to 2"),
        (
            "C0 0 1 2",
            "C0 0 1 2 1",
            "t.vef:2: field task of a communicator is `1`, not the end of a list of at most 3 tasks",
        ),
        ("C0 0 1 2", "C0", "t.vef:2: the line ends before its field task of a communicator"),
        ("C0 0 1 2", "C", "t.vef:2: the line ends before its field id"),
        (
            "C7 2 0\n",
            "C4294967296 2 0\n",
            "t.vef:3: field id is `C4294967296`, not a number from 0 to 4294967295",
        ),
        ("C7 2 0\n", "D7 2 0\n", "t.vef:3: a line begins with a number, G or C; this one with `D7`"),
        ("0 0 2 86", "0 3 2 86", "t.vef:4: field src is `3`, not a number from 0 to 2"),
        ("0 0 2 86", "0 0 -2 86", "t.vef:4: field dst is `-2`, not a number from 0 to 2^64 - 1"),
        ("0 0 2 86", "0x 0 2 86", "t.vef:4: field id is `0x`, not a number from 0 to 2^64 - 1"),
        (
            "86 4",
            "18446744073709551616 4",
            "t.vef:4: field bytes is `18446744073709551616`, not a number from 0 to 2^64 - 1",
        ),
        ("86 4", "86 8", "t.vef:4: field dep is `8`, not a number from 0 to 7"),
        ("4 419185 -1", "4 419185 0", "t.vef:4: field idDep is `0`, not -1, as dep demands"),
        ("4 419185 -1", "4 419185 -12", "t.vef:4: field idDep is `-12`, not a number from 0 to 2^64 - 1"),
        (
            "4 419185 -1",
            "5 419185 -1",
            "t.vef:4: field idDep is `-1`, not the number of a point-to-point line, as dep demands",
        ),
        ("4 419185 -1", "5 419185", "t.vef:4: the line ends before its field idDep"),
        ("4 419185 -1", "4 419185", "t.vef:4: the line ends before its field idDep"),
        ("4 419185 -1", "7 419185 1", "t.vef:4: field idDep is `1`, not a collective G<id>, as dep demands"),
        ("C7 2 2", "7 2 2", "t.vef:5: field comm is `7`, not a communicator C<id>"),
        ("C7 2 2", "C7 65536 2", "t.vef:5: field op is `65536`, not a number from 0 to 65535"),
        ("8 16 0 1", "8 16 4 1", "t.vef:5: field dep is `4`, not a number from 0 to 3"),
        ("3 0 G5", "3 0 G", "t.vef:7: the line ends before its field idDep"),
        ("3 2 2 0 6 12 0\n", "3 2 2 0 6 12 0", "t.vef:8: the last line has no end: the file is truncated"),
        ("3 2 2 0 6 12 0\n", "", "t.vef:1: the header promises 3 point-to-point lines, the file has 2"),
        ("C7 2 0\n", "", "t.vef:1: the header promises 2 communicators, the file has 1"),
    ] {
        assert_eq!(said(from, to), want, "{from:?} -> {to:?}");
    }
    assert_eq!(parse(b"").unwrap_err().to_string(), "t.vef: the file is empty");
    let cut = parse(b"VEF3 1 1 0 0 0 0 1000").unwrap_err().to_string();
    assert_eq!(cut, "t.vef:1: the last line has no end: the file is truncated");
    assert_eq!(
        parse(b"\n\n").unwrap_err().to_string(),
        "t.vef:1: not a VEF trace: it begins with ``, not with VEF3 or VEF2"
    );
    let absent = Reader::open(Path::new("/nowhere/t.vef")).unwrap_err();
    assert!(absent.to_string().starts_with("/nowhere/t.vef: No such file"), "{absent}");
}

#[test]
fn a_lying_header_can_be_tolerated() {
    let text = SMALL.replacen("VEF3 3 3", "VEF3 3 999999999999", 1);
    assert!(matches!(
        parse(text.as_bytes()).unwrap_err().problem,
        Problem::Count(WrongCount { found: 3, .. })
    ));
    let (_, records) =
        read_all(Reader::from_bytes(text.as_bytes(), Path::new("t")).unwrap().ignore_counts()).unwrap();
    assert_eq!(records.len(), 7);
}

#[test]
fn version_2_says_who_is_awaited() {
    let text = "VEF2 2 4 0 0 0 1 1000\n0 0 1 5 0 1 -1\n1 0 1 5 1 1 0\n2 1 1 0 0 3 -1\n3 1 1 0 2 4 1\n";
    let (header, records) = parse(text.as_bytes()).unwrap();
    assert_eq!((header.version, header.received), (Version::V2, 1));
    let awaited = |record: &Record| matches!(record, Record::Message(message) if message.awaited);
    assert_eq!(records.iter().map(awaited).collect::<Vec<_>>(), [false, true, false, false]);
    let as_v3 = "VEF3 2 4 0 0 0 0 1000\n0 0 1 5 0 1 -1\n1 0 1 5 5 1 0\n2 1 1 0 0 3 -1\n3 1 1 0 2 4 1\n";
    assert_eq!(print(&header, &records), as_v3.as_bytes());
    assert_eq!(
        parse(text.replacen(" 0 1 -1", " 4 1 -1", 1).as_bytes()).unwrap_err().to_string(),
        "t.vef:2: field dep is `4`, not a number from 0 to 3"
    );
    let stream = Reader::from_stream(text.as_bytes(), Path::new("-")).unwrap_err();
    assert!(matches!(stream.problem, Problem::Stream));
}

#[test]
fn every_truncation_is_noticed() {
    for length in 0..SMALL.len() {
        let error = parse(&SMALL.as_bytes()[..length]).unwrap_err();
        assert_eq!(error.place.path, Path::new("t.vef"), "at {length}");
    }
}

/// A text as the writer would write it: single blanks, no empty lines, no zeros in front, nothing in the obsolete field of the header.
fn canonical(text: &str) -> String {
    let mut lines = String::new();
    for words in text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let mut words: Vec<String> = words
            .iter()
            .map(|word| {
                let digits = word.trim_start_matches(['C', 'G']);
                let zeros = digits.len() - digits.trim_start_matches('0').len();
                let zeros = zeros.min(digits.len().saturating_sub(1));
                format!("{}{}", &word[..word.len() - digits.len()], &digits[zeros..])
            })
            .collect();
        if lines.is_empty() && words.len() > 6 {
            words[6] = "0".into();
        }
        if !words.is_empty() {
            lines += &(words.join(" ") + "\n");
        }
    }
    lines
}

#[test]
fn no_flipped_bit_passes_unless_it_makes_another_trace() {
    assert_eq!(canonical(SMALL), SMALL);
    let mut passed = 0;
    for at in 0..SMALL.len() {
        for bit in 0..8 {
            let mut text = SMALL.as_bytes().to_vec();
            text[at] ^= 1 << bit;
            match parse(&text) {
                Err(error) => assert!(matches!(error.place.spot, Spot::Line(1..=9)), "{error}"),
                // What is read is what stands there.
                Ok((header, records)) => {
                    let expected = canonical(std::str::from_utf8(&text).unwrap());
                    let printed = String::from_utf8(print(&header, &records)).unwrap();
                    assert_eq!(printed, expected, "bit {bit} of byte {at}");
                    assert!(
                        printed != SMALL || header.received > 0,
                        "bit {bit} of byte {at} passes unnoticed"
                    );
                    passed += 1;
                }
            }
        }
    }
    // Numbers have other numbers beside them.
    assert!(passed > 100, "{passed}");
}

#[test]
fn the_line_is_that_of_the_record() {
    let mut reader =
        Reader::from_bytes(b"VEF3 1 2 0 0 0 0 1\n\n0 0 0 0 0 0 -1\n\n \n1 0 0 0 1 0 0\n", Path::new("t"))
            .unwrap();
    let mut lines = Vec::new();
    while let Some(Line::Message(_)) = reader.next().unwrap() {
        lines.push((reader.line(), reader.offset()));
    }
    assert_eq!(lines, [(3, 35), (6, 52)]);
}

#[test]
fn the_writer_refuses_what_cannot_be_read() {
    let header = small_header();
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    assert_eq!(
        writer.communicator(CommId(0), &[]).unwrap_err().to_string(),
        "communicator C0 has no members"
    );
    let stranger = writer.communicator(CommId(0), &[Rank(3)]).unwrap_err();
    assert_eq!(stranger.to_string(), "task 3 in a trace of 3 tasks");
    let empty = Writer::new(Vec::new(), &header).unwrap().finish().unwrap_err();
    assert_eq!(empty.to_string(), "the header promises 3 point-to-point lines, 0 were written");
}

proptest! {
    #[test]
    fn what_is_written_is_read((header, records) in trace()) {
        let text = print(&header, &records);
        prop_assert_eq!(parse(&text).unwrap(), (header, records.clone()));
        let dripping = Reader::from_stream(Drip(&text), Path::new("t")).unwrap();
        prop_assert_eq!(read_all(dripping).unwrap(), (header, records));
    }

    #[test]
    fn garbage_never_panics(text in proptest::collection::vec(prop_oneof![
        4 => prop_oneof![Just(b' '), Just(b'\n'), Just(b'G'), Just(b'C'), Just(b'-'), b'0'..=b'9'],
        1 => any::<u8>(),
    ], 0..400)) {
        let mut trace = b"VEF3 10 5 1 1 1 0 1\n".to_vec();
        trace.extend_from_slice(&text);
        if let Ok((header, records)) = parse(&trace) {
            prop_assert_eq!(parse(&print(&header, &records)).unwrap(), (header, records));
        }
    }
}

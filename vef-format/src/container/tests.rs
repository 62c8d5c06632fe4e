//! Containers against text, whole and damaged.

use super::block::{self, Block, Footer, checksum};
use super::code::{Packed, Runs};
use super::index::{Places, about_to_bytes};
use super::record::Encoder;
use super::{About, ContainerError, Note, Problem, Reader, Section, Settings, Streams, Writer};
use crate::convert::convert;
use crate::files::FileUse;
use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode, OpCodes};
use crate::raw::Raw;
use crate::record::{Dependency, Header, LocalCollective, Record};
use crate::testing::trace;
use crate::text;
use crate::units::{Bytes, Ticks};
use crate::validate::{Kind, validate};
use crate::varint::Source;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a footer.
const FOOTER: usize = 32;

fn write(
    header: &Header,
    about: &About,
    settings: Settings,
    records: &[Record],
    sections: &[(&str, Option<Rank>, &[u8])],
) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header, about, settings).unwrap();
    for (name, task, piece) in sections {
        writer.section(name, *task, piece).unwrap();
    }
    for record in records {
        writer.line(&record.borrowed()).unwrap();
    }
    writer.finish().unwrap()
}

/// All records in order, after every other part of the file has been read too.
fn read(bytes: &[u8]) -> Result<(Header, About, Vec<Record>), ContainerError> {
    let reader = Reader::from_bytes(bytes.to_vec(), Path::new("t.vefx"))?;
    for name in reader.section_names() {
        for stream in reader.section(name)? {
            let mut pieces = reader.pieces(&stream);
            while pieces.next(&reader)?.is_some() {}
        }
    }
    let mut lines = reader.lines();
    let mut records = Vec::new();
    while let Some(line) = lines.next()? {
        records.push(line.to_record());
    }
    Ok((*reader.header(), reader.about().clone(), records))
}

fn reader_of(bytes: &[u8]) -> Reader {
    Reader::from_bytes(bytes.to_vec(), Path::new("t")).unwrap()
}

/// The numbers of each block of records in the index of a file, by task: offset (from the end of the block before), length,
/// records, computing time, messages, and for messages and for collectives the least id and the distance to the greatest.
fn summaries(file: &[u8]) -> BTreeMap<u32, Vec<[u64; 9]>> {
    let footer = &file[file.len() - FOOTER..];
    let long = |at: usize| u64::from_le_bytes(footer[at..at + 8].try_into().unwrap()) as usize;
    let mut from = Source::new(&file[long(0) + 24..long(0) + long(8)], 0);
    let numbers = [from.get().unwrap(), from.get().unwrap()];
    assert_eq!(numbers, [3, 9]);
    let pass = |from: &mut Source<'_>| {
        let blocks = from.get().unwrap();
        (0..3 * blocks).for_each(|_| _ = from.get().unwrap());
    };
    (0..3).for_each(|_| pass(&mut from));
    for _ in 0..from.get().unwrap() {
        from.text().unwrap();
        from.get().unwrap();
        for _ in 0..from.get().unwrap() {
            from.get().unwrap();
            pass(&mut from);
        }
    }
    let (mut all, mut task) = (BTreeMap::new(), 0);
    for _ in 0..from.get().unwrap() {
        task += from.get().unwrap() as u32;
        let blocks = from.get().unwrap();
        all.insert(task, (0..blocks).map(|_| [0; 9].map(|_| from.get().unwrap())).collect());
    }
    all
}

/// Checks the summaries of a task's blocks against its records.
fn hold_blocks(blocks: &[[u64; 9]], records: &[Record]) {
    let mut rest = records;
    for &[_, _, items, computing, messages, ids @ ..] in blocks {
        let (own, others) = rest.split_at(items as usize);
        rest = others;
        let (mut time, mut found) = (0u64, [Vec::new(), Vec::new()]);
        for record in own {
            let (id, which, more) = match record {
                Record::Message(message) => (message.id.0, 0, message.time.0),
                Record::Collective(part) => (part.id.0, 1, part.time.0),
                Record::Communicator { .. } => unreachable!(),
            };
            found[which].push(id);
            time = time.saturating_add(more);
        }
        assert_eq!((computing, messages), (time, found[0].len() as u64));
        let range = |ids: &Vec<u64>| match (ids.iter().min(), ids.iter().max()) {
            (Some(least), Some(most)) => [*least, most - least],
            _ => [0, 0],
        };
        assert_eq!(ids, [range(&found[0]), range(&found[1])].concat()[..]);
    }
    assert!(rest.is_empty());
}

/// A trace as a container can give it back: communicators first, the header's counts right.
fn sorted((mut header, mut records): (Header, Vec<Record>)) -> (Header, Vec<Record>) {
    records.sort_by_key(|record| record.task().is_some());
    let ids = records.iter().filter_map(|record| match record {
        Record::Collective(part) => Some(part.id),
        _ => None,
    });
    header.collectives = ids.collect::<HashSet<_>>().len() as u64;
    (header, records)
}

fn about() -> About {
    let op_codes = OpCodes::parse("3 Bcast\n70 Scan", Path::new("codes")).unwrap();
    About {
        op_codes,
        origin: vec![("program".into(), "LAMMPS".into()), ("mpi".into(), "MPICH 4.0 — π".into())],
    }
}

const PLAIN: Settings = Settings { compress: false, keep_order: true };

/// A small trace with everything in it.
fn small() -> (Header, Vec<Record>) {
    let text = "VEF3 3 4 2 1 2 0 1000\nC0 0 1 2\nC7 2 0\n0 0 2 86 4 419185 -1\nG5 C7 2 2 8 16 0 1 -1\n\
        G5 C7 2 0 8 16 1 18446744073709551615 0\n18446744073709551615 2 2 0 3 0 G5\n3 2 2 0 6 12 0\n4 1 1 0 0 3 -1\n";
    let mut reader = text::Reader::from_bytes(text.as_bytes(), Path::new("t")).unwrap();
    let header = *reader.header();
    let mut records = Vec::new();
    while let Some(line) = reader.next().unwrap() {
        records.push(line.to_record());
    }
    (header, records)
}

#[test]
fn a_container_has_what_went_in() {
    let (header, records) = small();
    let sections = [
        ("theirs", None, b"block".as_slice()),
        ("mine", Some(Rank(2)), &[1, 2]),
        ("mine", Some(Rank(2)), &[]),
    ];
    let bytes = write(&header, &about(), PLAIN, &records, &sections);
    assert_eq!(read(&bytes).unwrap(), (header, about(), records.clone()));
    let reader = Reader::from_bytes(bytes, Path::new("t")).unwrap();
    assert_eq!(reader.section_names().collect::<Vec<_>>(), ["mine", "theirs"]);
    let mine = reader.section("mine").unwrap();
    assert_eq!((mine.len(), mine[0].task, mine[0].pieces()), (1, Some(Rank(2)), 2));
    let mut pieces = reader.pieces(&mine[0]);
    assert_eq!(pieces.next(&reader).unwrap().unwrap(), [1, 2]);
    assert!(pieces.next(&reader).unwrap().unwrap().is_empty());
    assert_eq!(pieces.next(&reader).unwrap(), None);
    assert_eq!(reader.section("nobody's").unwrap(), []);
    assert_eq!((reader.records_of(Rank(2)), reader.records_of(Rank(9))), (3, 0));
    let mut of_task_2 = reader.task(Rank(2));
    for record in records.iter().filter(|record| record.task() == Some(Rank(2))) {
        assert_eq!(&of_task_2.next().unwrap().unwrap().to_record(), record);
    }
    assert_eq!((of_task_2.next().unwrap(), reader.task(Rank(9)).next().unwrap()), (None, None));
    assert_eq!(reader.version(), (4, 0));
}

/// As the writer of a later minor version might make it: with further numbers for each place, further flags, and more behind
/// all that this version knows.
fn later(required_section: bool, required: u32, change_block: impl Fn(usize, &mut [u8])) -> Vec<u8> {
    let (header, records) = small();
    let mut file = b"VEFX\x04\r\n\x1a".to_vec();
    let mut blocks = 0;
    let mut block = |kind, task, items, raw: &[u8]| {
        let offset = file.len() as u64;
        let mut bytes = Vec::new();
        Block { kind, task, items, raw }.encode(false, &mut bytes).unwrap();
        change_block(blocks, &mut bytes);
        let crc = checksum(&bytes[..20], &bytes[24..]);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        blocks += 1;
        file.extend(&bytes);
        (offset, bytes.len() as u64)
    };
    let mut content = about_to_bytes(&header, &about());
    content.put(&[77]);
    content.text("of a later version");
    let mut all = vec![(block(block::Kind::About, 0, 1, content.bytes()), 1)];
    let (mut comms, mut runs) = (Packed::default(), [Runs::default(); 2]);
    comms.put(&[0, 3]);
    (0..3).for_each(|rank| runs[0].put(&mut comms, rank));
    runs[0].end(&mut comms);
    comms.put(&[7, 2]);
    [2, 0].iter().for_each(|&rank| runs[1].put(&mut comms, rank));
    runs[1].end(&mut comms);
    all.push((block(block::Kind::Communicators, 0, 2, comms.bytes()), 2));
    let (mut order, mut runs) = (Packed::default(), Runs::default());
    let tasks = records.iter().filter_map(Record::task);
    tasks.clone().for_each(|task| runs.put(&mut order, task.0));
    runs.end(&mut order);
    all.push((block(block::Kind::Order, 0, 6, order.bytes()), 6));
    all.push((block(block::Kind::Section, 0, 1, b"whatever"), 1));
    for task in 0..3 {
        let (mut encoder, mut content) = (Encoder::default(), Packed::default());
        let own = records.iter().filter(|record| record.task() == Some(Rank(task)));
        for record in own.clone() {
            match record {
                Record::Message(message) => {
                    encoder.record(&mut content, Rank(task), &Raw::of_message(message))
                }
                Record::Collective(part) => {
                    encoder.record(&mut content, Rank(task), &Raw::of_collective(part))
                }
                Record::Communicator { .. } => {}
            }
        }
        encoder.end(&mut content, Rank(task));
        let items = own.count() as u32;
        all.push((block(block::Kind::Records, task, items, content.bytes()), items));
    }
    let mut index = Packed::default();
    index.put(&[5, 11]);
    let place = |index: &mut Packed, number: usize, more: &[u64]| {
        let ((offset, length), items) = all[number];
        index.put(&[1, offset, length, u64::from(items)]);
        more.iter().for_each(|&value| index.put(&[value]));
    };
    for number in 0..3 {
        place(&mut index, number, &[u64::MAX, 9]);
    }
    index.put(&[1]);
    index.text("futures");
    index.put(&[0xfe | u64::from(required_section), 1, 0]);
    place(&mut index, 3, &[0, 0]);
    index.put(&[3]);
    for task in 0..3 {
        index.put(&[u64::from(task > 0)]);
        place(&mut index, 4 + task, &[1, 0, 0, 0, 0, 0, 1 << 40, 7]);
    }
    index.text("more of a later version");
    let (offset, length) = block(block::Kind::Index, 0, 1, index.bytes());
    let mut footer = Footer { offset, length, minor: 9, required }.to_bytes();
    footer[18] = 3;
    let crc = crc32fast::hash(&footer[..24]);
    footer[24..28].copy_from_slice(&crc.to_le_bytes());
    file.extend(footer);
    file
}

#[test]
fn later_minor_versions_are_read() {
    let file = later(false, 0, |_, _| ());
    let (header, records) = small();
    let (read_header, read_about, read_records) = read(&file).unwrap();
    assert_eq!((read_header, read_about, read_records), (header, about(), records));
    let reader = reader_of(&file);
    assert_eq!(reader.version(), (4, 9));
    assert_eq!(reader.section_names().collect::<Vec<_>>(), ["futures"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.vefx");
    fs::write(&path, &file).unwrap();
    let report = validate(&path, &Default::default()).unwrap();
    let warning = report.problems.iter().find(|problem| problem.kind == Kind::LaterVersion).unwrap();
    assert_eq!(warning.to_string(), "line 1: warning: version 4.9: what it has beyond 4.0 was passed by");
}

#[test]
fn what_must_be_understood_is_refused_with_its_place() {
    let said = |file: &[u8]| read(file).unwrap_err().to_string();
    let behind = ", which a later version of this program wrote and this one cannot read";
    let file = later(false, 0x30, |_, _| ());
    let expected = format!("t.vefx at byte {}: features 0x30 (version 4.9){behind}", file.len() - FOOTER);
    assert_eq!(said(&file), expected);
    let error = said(&later(true, 0, |_, _| ()));
    assert!(error.ends_with(&format!(": section `futures` (version 4.9){behind}")), "{error}");
    // A compression, and a flag, of the first task's records: other tasks can be read.
    for (at, to, what) in [(1, 7, "a block in compression 7"), (2, 4, "a block with flags")] {
        let file = later(false, 0, |number, block| {
            if number == 4 {
                block[at] = to
            }
        });
        let error = said(&file);
        assert!(
            error.starts_with("t.vefx at byte ") && error.ends_with(&format!(": {what}{behind}")),
            "{error}"
        );
        let reader = reader_of(&file);
        assert!(reader.task(Rank(1)).next().unwrap().is_some() && reader.task(Rank(0)).next().is_err());
    }
}

#[test]
fn operations_of_later_versions_are_kept_by_name() {
    let mut about = about();
    about.op_codes.push(OpCode(2), "Alltoall_sparse".to_owned());
    let (header, records) = small();
    let folder = tempfile::tempdir().unwrap();
    let (there, again) = (folder.path().join("t.vefx"), folder.path().join("u.vefx"));
    fs::write(&there, write(&header, &about, PLAIN, &records, &[])).unwrap();
    convert(&there, &again, &About::default(), Settings::default()).unwrap();
    let kept = Reader::open(&again).unwrap();
    assert_eq!(kept.about(), &about);
    let names: Vec<_> = kept.about().op_codes.names().collect();
    assert_eq!(names, [(OpCode(3), "Bcast"), (OpCode(70), "Scan"), (OpCode(2), "Alltoall_sparse")]);
    assert_eq!(kept.about().op_codes.operation(OpCode(2)), None);
}

#[test]
fn without_an_order_tasks_come_one_by_one() {
    let (header, mut records) = small();
    let bytes = write(&header, &About::default(), Settings { keep_order: false, ..PLAIN }, &records, &[]);
    records.sort_by_key(Record::task);
    assert_eq!(read(&bytes).unwrap().2, records);
}

#[test]
fn a_task_is_read_without_the_others() {
    // Long streams, so that there are many blocks; those of all tasks but one are destroyed.
    let text = |task: u32| {
        (0..30_000u64).map(move |at| {
            format!(
                "{} {task} {task} 0 {} 123456 {}",
                at * 3 + u64::from(task),
                if at == 0 { 0 } else { 1 },
                if at == 0 { "-1".to_owned() } else { (at * 3 - 3 + u64::from(task)).to_string() }
            )
        })
    };
    let mut lines = vec!["VEF3 3 90000 0 0 0 0 1".to_owned()];
    for ((a, b), c) in text(0).zip(text(1)).zip(text(2)) {
        lines.extend([a, b, c]);
    }
    let text = lines.join("\n") + "\n";
    let mut reader = text::Reader::from_bytes(text.as_bytes(), Path::new("t")).unwrap();
    let header = *reader.header();
    let mut records = Vec::new();
    while let Some(line) = reader.next().unwrap() {
        records.push(line.to_record());
    }
    let mut bytes = write(&header, &About::default(), PLAIN, &records, &[]);
    assert!(bytes.len() < text.len() / 3, "{} bytes of {}", bytes.len(), text.len());
    let spots = |task: usize| {
        let reader = Reader::from_bytes(bytes.clone(), Path::new("t")).unwrap();
        let mut places = Places::new(reader.index.tasks[task].list);
        let mut spots = Vec::new();
        while let Some(spot) = reader.next_place(&mut places).unwrap() {
            spots.push(spot);
        }
        spots
    };
    let (destroyed, kept) = ([spots(0), spots(2)].concat(), spots(1));
    assert!(kept.len() > 1);
    for spot in destroyed {
        bytes[spot.offset as usize..(spot.offset + spot.length) as usize].fill(0xff);
    }
    let reader = Reader::from_bytes(bytes, Path::new("t")).unwrap();
    let mut task = reader.task(Rank(1));
    for record in records.iter().filter(|record| record.task() == Some(Rank(1))) {
        assert_eq!(&task.next().unwrap().unwrap().to_record(), record);
    }
    assert_eq!(task.next().unwrap(), None);
    let spoilt = reader.task(Rank(0)).next().unwrap_err();
    assert!(matches!(spoilt.problem, Problem::Checksum("block")), "{spoilt}");
}

/// Writes `records` with one call for each `batch`.
fn in_batches(writer: &mut Writer<Vec<u8>>, records: &[(Rank, Raw)], batch: usize) {
    let numbers: Vec<u32> = (0..records.len() as u32).collect();
    let record = |number: u32| (records[number as usize].0, &records[number as usize].1);
    numbers.chunks(batch).for_each(|numbers| writer.records(numbers, record).unwrap());
}

#[test]
fn the_bytes_do_not_depend_on_batches() {
    let (tasks, count) = (7, 200_000u32);
    let header = Header {
        tasks,
        messages: count.into(),
        communicators: 0,
        collectives: 0,
        local_collectives: 0,
        ..small().0
    };
    let record = |at: u32| {
        let (task, time) = ((at.wrapping_mul(0x9e37_79b9) >> 16) % tasks, u64::from(at) << 11);
        (Rank(task), Raw::message(0, task, (task + 1) % tasks, at.into(), time / 3, time, 0))
    };
    let records: Vec<_> = (0..count).map(record).collect();
    let written = |batch: usize| {
        let mut writer = Writer::new(Vec::new(), &header, &About::default(), Settings::default()).unwrap();
        in_batches(&mut writer, &records, batch);
        writer.finish().unwrap()
    };
    let alone = {
        let mut writer = Writer::new(Vec::new(), &header, &About::default(), Settings::default()).unwrap();
        for (task, raw) in &records {
            match raw.line(*task) {
                text::Line::Message(message) => writer.message(&message).unwrap(),
                _ => unreachable!("all are messages"),
            }
        }
        writer.finish().unwrap()
    };
    for batch in [777, 8192, 100_000, count as usize] {
        assert!(written(batch) == alone, "batches of {batch}");
    }
}

#[test]
fn communicators_of_very_many_tasks_are_small() {
    let members: Vec<Rank> = (0..1_000_000).map(Rank).collect();
    let (header, _) = small();
    let header = Header {
        tasks: 1_000_000,
        messages: 0,
        communicators: 1,
        collectives: 0,
        local_collectives: 0,
        ..header
    };
    let mut writer = Writer::new(Vec::new(), &header, &About::default(), PLAIN).unwrap();
    writer.communicator(CommId(4), &members).unwrap();
    let bytes = writer.finish().unwrap();
    assert!(bytes.len() < 500, "{}", bytes.len());
    let (_, _, records) = read(&bytes).unwrap();
    assert_eq!(records, [Record::Communicator { id: CommId(4), members }]);
}

#[test]
fn every_truncation_is_an_error() {
    let (header, records) = small();
    let bytes = write(&header, &about(), PLAIN, &records, &[("x", None, b"abc")]);
    for length in 0..bytes.len() {
        let error = read(&bytes[..length]).unwrap_err();
        let expected = matches!(error.problem, Problem::NotAContainer | Problem::Cut);
        assert!(expected, "{length} of {} bytes: {error}", bytes.len());
    }
}

#[test]
fn every_changed_byte_is_an_error() {
    let (header, records) = small();
    let bytes = write(&header, &about(), PLAIN, &records, &[("x", None, b"abc")]);
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut bad = bytes.clone();
            bad[at] ^= change;
            assert!(read(&bad).is_err(), "byte {at} changed by {change:#x}");
        }
    }
    // Reading records does not read sections.
    let place = bytes.windows(3).position(|bytes| bytes == b"abc").unwrap();
    let mut bad = bytes.clone();
    bad[place] ^= 1;
    assert!(Reader::from_bytes(bytes.clone(), Path::new("t.vefx")).unwrap().check_sections().is_ok());
    let error =
        Reader::from_bytes(bad, Path::new("t.vefx")).unwrap().check_sections().unwrap_err().to_string();
    assert!(error.ends_with("the checksum of the block is wrong"), "{error}");
    let mut other = bytes.clone();
    other[4] = 1;
    let error = read(&other).unwrap_err().to_string();
    assert_eq!(error, "t.vefx at byte 4: a container of version 1; this program reads version 4");
}

/// Makes every checksum right again after a change, as a writer with a mistake would.
fn reseal(bytes: &mut [u8]) {
    let mut at = 8;
    while at + 24 <= bytes.len() - FOOTER {
        let stored = u32::from_le_bytes(bytes[at + 16..at + 20].try_into().unwrap()) as usize;
        let Some(content) = bytes.get(at + 24..at + 24 + stored) else { return };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[at..at + 20]);
        crc.update(content);
        let crc = crc.finalize();
        bytes[at + 20..at + 24].copy_from_slice(&crc.to_le_bytes());
        at += 24 + stored;
    }
    let footer = bytes.len() - FOOTER;
    let crc = crc32fast::hash(&bytes[footer..footer + 24]);
    bytes[footer + 24..footer + 28].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn right_checksums_do_not_hide_contradictions() {
    let (header, records) = small();
    let bytes = write(&header, &about(), PLAIN, &records, &[("x", None, b"abc")]);
    let mut resealed = bytes.clone();
    reseal(&mut resealed);
    assert_eq!(resealed, bytes);
    let (mut refused, mut other) = (0, 0);
    for at in 0..bytes.len() {
        for change in [1, 2, 4, 0x10, 0x80, 0xff] {
            let mut bad = bytes.clone();
            bad[at] ^= change;
            reseal(&mut bad);
            match read(&bad) {
                Err(_) => refused += 1,
                // Another trace, and one that is whole: it can be written.
                Ok((header, about, records)) => {
                    let (header, records) = sorted((header, records));
                    assert_eq!(read(&write(&header, &about, PLAIN, &records, &[])).unwrap().2, records);
                    other += 1;
                }
            }
        }
    }
    assert!(refused > 500 && other > 100, "{refused} {other}");
}

#[test]
fn numbers_beyond_their_range_are_placed() {
    // Wide, so that every field has room for more than it may hold.
    let part = LocalCollective {
        id: CollectiveId(1 << 63),
        comm: CommId(0x5a5b_5c5d),
        op: OpCode(0x6a6b),
        task: Rank(1),
        amounts: Amounts { send: Bytes(1 << 63), recv: Bytes(u64::MAX) },
        after: Dependency::Start,
        time: Ticks(1 << 63),
    };
    let header =
        Header { tasks: 2, messages: 0, communicators: 0, collectives: 1, local_collectives: 1, ..small().0 };
    let bytes = write(&header, &about(), PLAIN, &[Record::Collective(part)], &[]);
    assert_eq!(read(&bytes).unwrap().2, [Record::Collective(part)]);
    let said = |word: u64| {
        let word = word.to_le_bytes();
        let at = bytes.windows(8).position(|bytes| bytes == word).unwrap();
        let mut bad = bytes.clone();
        bad[at + 4] = 1;
        reseal(&mut bad);
        read(&bad).unwrap_err().to_string()
    };
    let block = |field| format!(": a block with a value of {field} that is out of range");
    for (word, field) in [(0x5a5b_5c5d, "comm"), (0x6a6b, "op")] {
        let error = said(word);
        assert!(error.starts_with("t.vefx at byte ") && error.ends_with(&block(field)), "{error}");
    }
    let mut bad = bytes.clone();
    let footer = bytes.len() - FOOTER;
    bad[footer + 8..footer + 16].copy_from_slice(&(1u64 << 63).to_le_bytes());
    reseal(&mut bad);
    let error = read(&bad).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("t.vefx at byte {footer}: a footer that does not point at an index in front of it")
    );
}

#[test]
fn the_writer_holds_the_header_against_what_it_got() {
    let (header, _) = small();
    let writer = Writer::new(Vec::new(), &header, &About::default(), PLAIN).unwrap();
    assert_eq!(
        writer.finish().unwrap_err().to_string(),
        "the header promises 4 point-to-point lines, 0 were written"
    );
    let large = vec![0; (1 << 20) + 1];
    let mut writer = Writer::new(Vec::new(), &header, &About::default(), PLAIN).unwrap();
    assert_eq!(
        writer.section("x", None, &large).unwrap_err().to_string(),
        "a piece of a section of 1048577 bytes: a block holds at most 1048576"
    );
    #[cfg(not(feature = "zstd"))]
    {
        let compressed =
            Writer::new(Vec::new(), &header, &About::default(), Settings { compress: true, ..PLAIN });
        assert_eq!(
            compressed.unwrap_err().to_string(),
            "compression needs a program that was built with zstd"
        );
    }
}

#[test]
fn conversion_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(data) = skipping::shared("data/vef-prospector") else { return };
    for name in ["p2p-a.vef", "p2p-b.vef"] {
        let (there, again, back) =
            (folder.path().join("t.vefx"), folder.path().join("u.VEFX"), folder.path().join("t.vef"));
        convert(&data.join(name), &there, &about(), Settings::default()).unwrap();
        convert(&there, &again, &About::default(), Settings::default()).unwrap();
        assert_eq!(fs::read(&there).unwrap(), fs::read(&again).unwrap());
        convert(&again, &back, &About::default(), Settings::default()).unwrap();
        assert_eq!(fs::read(&back).unwrap(), fs::read(data.join(name)).unwrap());
    }
    let bad = folder.path().join("bad.vef");
    fs::write(&bad, "VEF3 1 1 0 0 0 0 1\n0 0 0 0 0 0 -1\n1 0 0 0 0 x -1\n").unwrap();
    let target = folder.path().join("bad.vefx");
    let error = convert(&bad, &target, &About::default(), PLAIN).unwrap_err().to_string();
    assert!(error.ends_with("bad.vef:3: field time is `x`, not a number from 0 to 2^64 - 1"), "{error}");
    assert!(!target.exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing unfinished is left");
    let nowhere =
        convert(&data.join("p2p-a.vef"), Path::new("/nowhere/t.vefx"), &About::default(), PLAIN).unwrap_err();
    assert!(nowhere.to_string().starts_with("/nowhere/t.vefx: No such file"), "{nowhere}");
}

/// All records of a task, read beside those of the others, a few of each in turn.
fn side_by_side(reader: Reader) -> Result<Vec<Vec<Record>>, ContainerError> {
    let mut streams = Streams::new(Arc::new(reader));
    let tasks = streams.reader().header().tasks.min(1000);
    let mut read = vec![Vec::new(); tasks as usize];
    let mut left: Vec<u32> = (0..tasks).collect();
    while !left.is_empty() {
        let mut over = Vec::new();
        for &task in &left {
            for _ in 0..=task % 3 {
                match streams.next(Rank(task))? {
                    Some(line) => read[task as usize].push(line.to_record()),
                    None => over.push(task),
                }
            }
        }
        left.retain(|task| !over.contains(task));
    }
    Ok(read)
}

#[test]
fn blocks_larger_than_their_window_are_read_in_parts() {
    // So many tasks that each has the smallest window, and blocks of several times that.
    let (tasks, each) = (60_000u32, 40u64);
    let header = Header {
        tasks,
        messages: u64::from(tasks) * each,
        communicators: 0,
        collectives: 0,
        local_collectives: 0,
        ..small().0
    };
    let message = |task: u32, at: u64| crate::record::Message {
        id: MessageId((u64::from(task) * each + at).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        src: Rank(task),
        dst: Rank((task + 77) % tasks),
        bytes: crate::units::Bytes(u64::MAX - at),
        awaited: at.is_multiple_of(2),
        after: crate::record::Dependency::Start,
        time: crate::units::Ticks(1 << (at + 20)),
    };
    for compress in [false, cfg!(feature = "zstd")] {
        let settings = Settings { compress, keep_order: false };
        let mut writer = Writer::new(Vec::new(), &header, &About::default(), settings).unwrap();
        for task in 0..tasks {
            for at in 0..each {
                writer.message(&message(task, at)).unwrap();
            }
        }
        let reader = Reader::from_bytes(writer.finish().unwrap(), Path::new("t")).unwrap();
        let mut streams = Streams::new(Arc::new(reader));
        for at in 0..each {
            for task in (0..tasks).step_by(999) {
                let line = streams.next(Rank(task)).unwrap().unwrap();
                assert_eq!(line.to_record(), Record::Message(message(task, at)), "task {task}, record {at}");
            }
        }
        assert_eq!(streams.next(Rank(999)).unwrap(), None);
        assert_eq!(streams.next(Rank(tasks)).unwrap(), None);
    }
}

/// Notes by section, stream and place.
fn notes() -> impl Strategy<Value = Vec<(Option<Rank>, u64, usize, u64, String)>> {
    let one = (0u32..4, any::<u64>(), 0usize..7, any::<u64>(), "[a-c]{0,3}");
    proptest::collection::vec(one, 0..60).prop_map(|notes| {
        let of = |(task, place, kind, value, name): (u32, u64, usize, u64, String)| {
            ((kind != 5).then_some(Rank(task)), place >> (value % 64), kind, value, name)
        };
        notes.into_iter().map(of).collect()
    })
}

/// Calls `take` with the note that the numbers stand for.
fn told<T>(kind: usize, place: u64, value: u64, name: &str, take: impl FnOnce(&Note<'_>) -> T) -> T {
    let list = [value, 0, value >> 7];
    match kind {
        0 => take(&Note::Detached),
        1 if place > 0 => take(&Note::SendWait {
            send: value % place,
            before: crate::units::Ticks(value),
            took: crate::units::Ticks(!value),
        }),
        1 | 2 => take(&Note::Tag(value as i32)),
        3 => take(&Note::Counts {
            sent: &list[..(value % 4) as usize],
            received: &list[..(value / 7 % 4) as usize],
        }),
        4 if value.is_multiple_of(2) => take(&Note::Call(name)),
        4 => take(&Note::Phase { begin: value % 4 == 1, name }),
        6 => take(&Note::File {
            used: FileUse {
                opens: value >> 60,
                calls: value >> 50,
                reads: !value,
                read_bytes: value,
                writes: value >> 3,
                written_bytes: 1,
                took: crate::units::Ticks(value >> 9),
            },
            name,
        }),
        _ => take(&Note::Host(name)),
    }
}

#[test]
fn roots_are_found_out_or_told() {
    let codes = About::default();
    let text = "VEF3 3 0 1 3 8 0 1\nC4 2 0 1\nG9 C4 0 0 0 7 0 0 -1\nG9 C4 0 1 7 0 0 0 -1\nG7 C4 1 2 0 0 0 0 -1\n\
        G9 C4 0 2 0 7 3 0 G9\nG7 C4 1 1 0 0 3 0 G9\nG7 C4 1 0 0 0 3 0 G9\nG8 C4 3 0 0 0 3 0 G7\nG8 C4 3 1 0 0 3 0 G7\n";
    let mut reader = text::Reader::from_bytes(text.as_bytes(), Path::new("t")).unwrap();
    let mut writer = Writer::new(Vec::new(), reader.header(), &codes, PLAIN).unwrap();
    writer.note(None, 7, &Note::Root(Rank(1))).unwrap();
    while let Some(line) = reader.next().unwrap() {
        match line {
            text::Line::Communicator { id, members } => writer.communicator(id, members).unwrap(),
            text::Line::Message(message) => writer.message(&message).unwrap(),
            text::Line::Collective(part) => writer.collective(&part).unwrap(),
        }
    }
    let bytes = writer.finish().unwrap();
    let reader = Reader::from_bytes(bytes, Path::new("t")).unwrap();
    let mut notes = reader.notes(Section::Roots, Rank(0)).unwrap();
    // From the amounts, from the caller, and for an incomplete collective the first member.
    for expected in [(9, Rank(1)), (7, Rank(1)), (8, Rank(2))] {
        assert_eq!(notes.next(&reader).unwrap(), Some((expected.0, Note::Root(expected.1))));
    }
    assert_eq!(notes.next(&reader).unwrap(), None);
}

#[test]
fn blocks_are_found_out() {
    // The communicator's order is not that of the world, and neither is that of the lines.
    let text = "VEF3 3 0 1 3 9 0 1\nC4 2 0 1\nG1 C4 8 1 11 0 0 0 -1\nG2 C4 13 2 60 32 0 0 -1\nG1 C4 8 2 12 0 0 0 -1\n\
        G1 C4 8 0 0 23 0 0 -1\nG2 C4 13 0 60 0 3 0 G1\nG3 C4 2 0 8 8 3 0 G2\nG2 C4 13 1 60 28 3 0 G1\n\
        G3 C4 2 1 8 8 3 0 G2\nG3 C4 2 2 8 8 3 0 G2\n";
    let container = |input: Vec<u8>| {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to.vefx"));
        std::fs::write(&from, input).unwrap();
        convert(&from, &to, &About::default(), PLAIN).unwrap();
        std::fs::read(to).unwrap()
    };
    // If the roots come first, as in a converted container, another conversion changes nothing.
    let twice = container(container(text.as_bytes().to_vec()));
    assert!(twice == container(twice.clone()));
    let reader = Reader::from_bytes(twice, Path::new("t")).unwrap();
    let mut notes = reader.notes(Section::Blocks, Rank(0)).unwrap();
    for (id, bytes) in [(1, [0, 11, 12]), (2, [0, 28, 32])] {
        assert_eq!(notes.next(&reader).unwrap(), Some((id, Note::Blocks { first: 0, bytes: &bytes })));
    }
    assert_eq!(notes.next(&reader).unwrap(), None);
}

#[test]
fn facts_tell_which_tasks_ran_the_program() {
    let about = |facts: &[(&str, &str)]| About {
        origin: facts.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..About::default()
    };
    let (storage, interfaces) = (About::STORAGE, About::INTERFACES);
    for (facts, program, of_ranks) in [
        (&[][..], 10, None),
        (&[(storage, "tasks 8–9")], 8, None),
        (&[(interfaces, "tasks 5–9")], 5, Some(5..10)),
        (&[(storage, "tasks 4–5"), (interfaces, "tasks 6–9")], 4, Some(6..10)),
        // Not one for each task, not the last ones, and no range at all.
        (&[(interfaces, "tasks 6–9")], 6, None),
        (&[(interfaces, "tasks 5–8")], 5, None),
        (&[(interfaces, "tasks 9–4294967295")], 9, None),
        (&[(interfaces, "tasks 5-9"), (storage, "8")], 10, None),
    ] {
        let about = about(facts);
        assert_eq!((about.program_tasks(10), about.interfaces(10)), (program, of_ranks), "{facts:?}");
    }
}

#[test]
fn hosts_are_those_of_the_tasks() {
    let header = Header { tasks: 5, ..small().0 };
    let hosts = |told: &[(u64, &str)]| {
        let none = Header { messages: 0, communicators: 0, collectives: 0, local_collectives: 0, ..header };
        let mut writer = Writer::new(Vec::new(), &none, &About::default(), PLAIN).unwrap();
        for &(task, name) in told {
            writer.note(None, task, &Note::Host(name)).unwrap();
        }
        Reader::from_bytes(writer.finish().unwrap(), Path::new("t")).unwrap().hosts().unwrap()
    };
    assert_eq!(hosts(&[(0, "a"), (2, "b")]).unwrap(), ["a", "a", "b", "b", "b"]);
    assert_eq!(hosts(&[(0, "a"), (1, "b"), (4, "a")]).unwrap(), ["a", "b", "b", "b", "a"]);
    assert_eq!((hosts(&[]), hosts(&[(1, "a")]), hosts(&[(0, "a"), (5, "b")])), (None, None, None));
    let mut writer = Writer::new(Vec::new(), &header, &About::default(), PLAIN).unwrap();
    assert_eq!(
        writer.note(Some(Rank(1)), 0, &Note::Host("a")).unwrap_err().to_string(),
        "a note of section placement for task 1"
    );
    assert_eq!(
        writer.note(None, 0, &Note::Tag(1)).unwrap_err().to_string(),
        "a note of section tags for no task"
    );
}

/// A task's messages and marks: for each its id's difference, whether it is a mark, whether it waits for the record before,
/// and a number for everything else.
fn steps() -> impl Strategy<Value = Vec<(u64, bool, bool, u64)>> {
    let number = || {
        let edges = [
            0,
            1,
            127,
            128,
            129,
            255,
            256,
            1 << 15,
            (1 << 16) - 1,
            1 << 31,
            (1 << 32) - 1,
            1 << 32,
            u64::MAX,
        ];
        prop_oneof![3 => 0..200u64, 1 => any::<u64>(), 2 => proptest::sample::select(edges.to_vec())]
    };
    proptest::collection::vec(
        (number(), any::<bool>(), prop_oneof![4 => Just(true), 1 => Just(false)], number()),
        0..300,
    )
}

proptest! {
    /// However marks and messages alternate, and whether they are asked for one by one or in pairs.
    #[test]
    fn marks_and_messages_come_back(steps in steps(), pairs in any::<u64>()) {
        use crate::record::Message;
        let mut id = 0u64;
        let step = |(difference, mark, behind, number): (u64, bool, bool, u64)| {
            let before = id;
            id = id.wrapping_add(difference);
            let other = if number % 2 == 0 { Dependency::Start } else { Dependency::Received(MessageId(number)) };
            Message {
                id: MessageId(id),
                src: Rank(1),
                dst: if mark { Rank(1) } else { Rank(number as u32 % 3) },
                bytes: if mark { Bytes(0) } else { Bytes(number.rotate_left(7).max(1)) },
                awaited: !mark && number % 3 == 0,
                after: if behind { Dependency::Sent(MessageId(before)) } else { other },
                time: Ticks(number.rotate_left(13)),
            }
        };
        let messages: Vec<Message> = steps.into_iter().map(step).collect();
        let header = Header { tasks: 3, messages: messages.len() as u64, communicators: 0, collectives: 0, local_collectives: 0, ..small().0 };
        let records: Vec<_> = messages.iter().map(|message| Record::Message(*message)).collect();
        let bytes = write(&header, &about(), PLAIN, &records, &[]);
        let reader = Arc::new(Reader::from_bytes(bytes, Path::new("t")).unwrap());
        let mut alone = reader.task(Rank(1));
        let mut streams = Streams::new(reader.clone());
        let mut at = 0;
        while at < messages.len() {
            prop_assert_eq!(alone.next().unwrap().unwrap().to_record(), records[at].clone());
            let mut message = Raw::NOTHING;
            let before = at.checked_sub(1).map_or(0, |before| messages[before].id.0);
            let asked = pairs >> (at % 64) & 1 == 1;
            match asked.then(|| streams.next_pair(Rank(1), before, &mut message)).flatten() {
                None => {
                    prop_assert_eq!(streams.next(Rank(1)).unwrap().unwrap().to_record(), records[at].clone());
                    at += 1;
                }
                Some(mark) => {
                    prop_assert_eq!(mark.raw(Rank(1)).line(Rank(1)).to_record(), records[at].clone());
                    prop_assert_eq!(alone.next().unwrap().unwrap().to_record(), records[at + 1].clone());
                    prop_assert_eq!(message.line(Rank(1)).to_record(), records[at + 1].clone());
                    at += 2;
                }
            }
        }
        prop_assert!(alone.next().unwrap().is_none() && streams.next_raw(Rank(1)).unwrap().is_none());
        prop_assert!(streams.next_pair(Rank(1), id, &mut Raw::NOTHING.clone()).is_none());
    }

    #[test]
    fn notes_come_back(notes in notes(), compress in any::<bool>()) {
        let settings = Settings { compress: compress && cfg!(feature = "zstd"), ..PLAIN };
        let header = Header { tasks: 4, messages: 0, communicators: 0, collectives: 0, local_collectives: 0, ..small().0 };
        let mut writer = Writer::new(Vec::new(), &header, &About::default(), settings).unwrap();
        for (task, place, kind, value, name) in &notes {
            told(*kind, *place, *value, name, |note| writer.note(*task, *place, note)).unwrap();
        }
        let reader = Reader::from_bytes(writer.finish().unwrap(), Path::new("t")).unwrap();
        for section in Section::ALL {
            for task in (0..4).map(Rank) {
                let mut stream = reader.notes(section, task).unwrap();
                let wanted = (!section.of_trace()).then_some(task);
                for (of, place, kind, value, name) in &notes {
                    told(*kind, *place, *value, name, |note| {
                        if note.section() == section && *of == wanted {
                            assert_eq!(stream.next(&reader).unwrap(), Some((*place, *note)));
                        }
                    });
                }
                prop_assert!(stream.next(&reader).unwrap().is_none());
            }
        }
    }

    #[test]
    fn any_trace_comes_back(trace in trace(), compress in any::<bool>(), batch in 1usize..50) {
        let (header, records) = sorted(trace);
        let settings = Settings { compress: compress && cfg!(feature = "zstd"), ..PLAIN };
        let bytes = write(&header, &about(), settings, &records, &[]);
        prop_assert_eq!(read(&bytes).unwrap(), (header, about(), records.clone()));
        let mut writer = Writer::new(Vec::new(), &header, &about(), settings).unwrap();
        let mut lines = Vec::new();
        for record in &records {
            match record {
                Record::Communicator { id, members } => writer.communicator(*id, members).unwrap(),
                Record::Message(message) => lines.push((message.src, Raw::of_message(message))),
                Record::Collective(part) => lines.push((part.task, Raw::of_collective(part))),
            }
        }
        in_batches(&mut writer, &lines, batch);
        prop_assert!(writer.finish().unwrap() == bytes, "batches of {batch}");
        let (reader, summaries) = (reader_of(&bytes), summaries(&bytes));
        for (task, read) in (0..).map(Rank).zip(side_by_side(reader).unwrap()) {
            let own: Vec<_> = records.iter().filter(|record| record.task() == Some(task)).cloned().collect();
            hold_blocks(summaries.get(&task.0).map_or(&[], Vec::as_slice), &own);
            prop_assert_eq!(read, own);
        }
    }

    #[test]
    fn rubbish_is_refused(trace in trace(), changes in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..6)) {
        let (header, records) = sorted(trace);
        let mut bytes = write(&header, &about(), PLAIN, &records, &[]);
        for (at, to) in changes {
            let at = at as usize % bytes.len();
            bytes[at] = to;
        }
        reseal(&mut bytes);
        // No panic, and no more memory than the file and its header can justify.
        let _ = read(&bytes);
        let Ok(reader) = Reader::from_bytes(bytes, Path::new("t")) else { return Ok(()) };
        for section in Section::ALL {
            let Ok(mut notes) = reader.notes(section, Rank(0)) else { continue };
            while let Ok(Some(_)) = notes.next(&reader) {}
        }
        let _ = (reader.hosts(), side_by_side(reader));
    }
}

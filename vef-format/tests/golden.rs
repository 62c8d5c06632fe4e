//! Containers that earlier versions of this program wrote are read as the same traces for ever.
//!
//! `tests/golden/MAJOR.MINOR/` has files as the writer of that version made them, and beside each `NAME.txt`: what is in it. Files are
//! added when the format grows (the test of the present version leaves its files in `target/tmp/golden`), and never changed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use vef_format::container::{About, ContainerError, Note, Reader, Section, Settings, Writer};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, OpCode};
use vef_format::record::{Dependency, Header, LocalCollective, Message, Version};
use vef_format::text::Writer as TextWriter;
use vef_format::units::{Bytes, Picos, Ticks};

/// A longer text is shown by its beginning and a checksum.
const LONG: usize = 2000;

/// The whole content of a container: the text of its records, then each section, piece by piece, with notes decoded.
fn told(path: &Path) -> Result<String, ContainerError> {
    let reader = Reader::open(path)?;
    let mut writer = TextWriter::new(Vec::new(), reader.header()).expect("in memory");
    let mut lines = reader.lines();
    while let Some(line) = lines.next()? {
        writer.line(&line).expect("in memory");
    }
    let mut text = String::from_utf8(writer.finish().expect("in memory")).expect("text");
    if text.len() > LONG {
        let end = text[..LONG].rfind('\n').map_or(0, |at| at + 1);
        let (rest, crc) = (text.lines().count(), crc32fast::hash(text.as_bytes()));
        text.truncate(end);
        let _ = writeln!(text, "… {rest} lines in all, CRC-32 {crc:#x}");
    }
    let _ = writeln!(text, "order kept: {}", reader.keeps_order());
    for (code, name) in reader.about().op_codes.names() {
        let _ = writeln!(text, "code {} {name}", code.0);
    }
    for (name, value) in &reader.about().origin {
        let _ = writeln!(text, "origin {name}: {value}");
    }
    for name in reader.section_names() {
        let known = Section::ALL.into_iter().find(|section| section.name() == name);
        for stream in reader.section(name)? {
            let _ = writeln!(text, "section {name} of {:?}", stream.task);
            let mut pieces = reader.pieces(&stream);
            while let Some(piece) = pieces.next(&reader)?.filter(|_| known.is_none()) {
                let _ = writeln!(text, "  {piece:?}");
            }
            let Some(section) = known else { continue };
            let mut notes = reader.notes(section, stream.task.unwrap_or(Rank(0)))?;
            while let Some((place, note)) = notes.next(&reader)? {
                let _ = writeln!(text, "  {place} {note:?}");
            }
        }
    }
    Ok(text)
}

#[test]
fn files_of_earlier_versions_say_what_they_always_said() {
    let mut read = 0;
    for version in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")).unwrap() {
        for file in fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|suffix| suffix == "txt") {
                continue;
            }
            if cfg!(not(feature = "zstd")) && path.ends_with("compressed.vefx") {
                assert!(told(&path).unwrap_err().to_string().ends_with("built without zstd"));
                read += 1;
                continue;
            }
            let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
            let found = told(&path).unwrap_or_else(|error| panic!("{error}"));
            assert!(found == expected, "{} is not read as it was written", path.display());
            read += 1;
        }
    }
    assert!(read >= 3);
}

/// Everything that version 4.0 can represent: all kinds of records, narrow and wide, in pairs and alone, in one block and in several.
fn write(path: &Path, settings: Settings, repeated: u64) {
    let header = Header {
        version: Version::V3,
        tasks: 4,
        messages: 9 + 3 * repeated,
        communicators: 3,
        collectives: 3,
        local_collectives: 8,
        received: 0,
        clock: Picos(1000),
    };
    let origin = vec![("program".into(), "π".into()), ("version".into(), "golden".into())];
    let about = About { origin, ..About::default() };
    let mut writer = Writer::new(Vec::new(), &header, &about, settings).unwrap();
    let all = [0, 1, 2, 3].map(Rank);
    writer.communicator(CommId(0), &all).unwrap();
    writer.communicator(CommId(3), &[Rank(2), Rank(0)]).unwrap();
    writer.communicator(CommId(u32::MAX), &[Rank(3), Rank(2), Rank(0)]).unwrap();
    writer.section("theirs", None, b"anything \0\xff").unwrap();
    writer.section("theirs", Some(Rank(3)), b"").unwrap();
    writer.section("theirs", Some(Rank(3)), b"twice").unwrap();
    let message = |id, src, dst, bytes, awaited, after, time| Message {
        id: MessageId(id),
        src: Rank(src),
        dst: Rank(dst),
        bytes: Bytes(bytes),
        awaited,
        after,
        time: Ticks(time),
    };
    let mark = |id, task, after, time| message(id, task, task, 0, false, after, time);
    let part = |id, comm, op, task, (send, recv), after, time| LocalCollective {
        id: CollectiveId(id),
        comm: CommId(comm),
        op: OpCode(op),
        task: Rank(task),
        amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
        after,
        time: Ticks(time),
    };
    let sent = |id| Dependency::Sent(MessageId(id));
    let received = |id| Dependency::Received(MessageId(id));
    writer.message(&message(0, 0, 1, 300, true, Dependency::Start, 70_000)).unwrap();
    writer.message(&mark(1, 1, Dependency::Start, 5)).unwrap();
    writer.message(&message(2, 1, 3, 0, false, received(0), 1 << 40)).unwrap();
    writer.message(&mark(u64::MAX, 0, sent(0), 255)).unwrap();
    writer.message(&message(3, 0, 0, 0, true, sent(u64::MAX), 256)).unwrap();
    writer.message(&mark(4, 0, sent(3), u64::MAX)).unwrap();
    for task in 0..4 {
        let after = if task == 0 { received(3) } else { Dependency::Start };
        let amounts = if task == 2 { (u64::MAX, 0) } else { (0, 1 << 33) };
        writer.collective(&part(7, 0, 0, task, amounts, after, 9)).unwrap();
    }
    for (at, task) in [2, 0].into_iter().enumerate() {
        let after = Dependency::Collective(CollectiveId(7));
        writer.collective(&part(2, 3, 10, task, (5 + at as u64, 6), after, 0)).unwrap();
        writer
            .collective(&part(3, u32::MAX, 3, task, (0, 0), Dependency::Collective(CollectiveId(2)), 1))
            .unwrap();
    }
    let mut last = 10;
    for round in 0..repeated {
        let after = if round == 0 { Dependency::Start } else { sent(last) };
        writer.message(&mark(last + 2, 3, after, round * round)).unwrap();
        writer
            .message(&message(
                last + 3,
                3,
                (round % 3) as u32,
                round << (round % 40),
                round % 2 == 0,
                sent(last + 2),
                77,
            ))
            .unwrap();
        writer.message(&mark(last + 4, 3, sent(last + 3), 0)).unwrap();
        last += 4;
    }
    for task in 0..3 {
        writer.message(&mark(1000 + u64::from(task), task, Dependency::Start, 0)).unwrap();
    }
    let mut note =
        |task: Option<u32>, place, note: &Note<'_>| writer.note(task.map(Rank), place, note).unwrap();
    note(Some(0), 0, &Note::Detached);
    note(Some(0), 3, &Note::SendWait { send: 0, before: Ticks(20), took: Ticks(1 << 50) });
    note(Some(1), 1, &Note::Tag(-7));
    note(Some(1), 2, &Note::Tag(i32::MAX));
    for (place, name) in [(0, "MPI_Isend"), (1, "MPI_Wait"), (4, "MPI_Isend")] {
        note(Some(0), place, &Note::Call(name));
    }
    note(Some(2), 1, &Note::Counts { sent: &[0, 300], received: &[u64::MAX] });
    note(Some(2), 1, &Note::Phase { begin: true, name: "löse" });
    note(Some(2), 3, &Note::Phase { begin: false, name: "löse" });
    note(None, 0, &Note::Host("one"));
    note(None, 2, &Note::Host("two"));
    fs::write(path, writer.finish().unwrap()).unwrap();
}

#[test]
fn the_present_version_writes_what_its_golden_files_say() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("golden");
    fs::create_dir_all(&folder).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let versions = fs::read_dir(&golden).unwrap().map(|version| version.unwrap().path());
    let latest = versions.max().unwrap();
    for (name, settings, repeated) in [
        ("plain.vefx", Settings::default(), 3),
        ("no-order.vefx", Settings { keep_order: false, ..Settings::default() }, 0),
        ("compressed.vefx", Settings { compress: true, keep_order: true }, 6000),
    ] {
        if cfg!(not(feature = "zstd")) && settings.compress {
            continue;
        }
        let path = folder.join(name);
        write(&path, settings, repeated);
        let found = told(&path).unwrap();
        fs::write(path.with_extension("txt"), &found).unwrap();
        let expected = latest.join(name);
        assert!(found == fs::read_to_string(expected.with_extension("txt")).unwrap(), "{name}: {found}");
        // What another version of zstd makes of it may be longer or shorter.
        assert!(settings.compress || fs::read(&path).unwrap() == fs::read(expected).unwrap(), "{name}");
    }
}

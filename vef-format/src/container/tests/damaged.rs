//! Damaged containers: each truncation and each changed byte is an error with its place.

use super::*;

#[test]
fn every_truncation_is_an_error() {
    let (header, records) = small();
    let bytes = write(&header, &about(), PLAIN, &records, &[("x", None, b"abc")]);
    for length in 0..bytes.len() {
        let error = read(&bytes[..length]).unwrap_err();
        let expected = match error.problem {
            Problem::Empty => length == 0,
            Problem::NotAContainer | Problem::Cut => length > 0,
            _ => false,
        };
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

proptest! {
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

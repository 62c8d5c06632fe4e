//! Headers, facts, chunks and clocks: byte by byte, and read back.

use super::*;
use proptest::prelude::*;

fn info() -> RankInfo {
    RankInfo {
        rank: Rank(3),
        tasks: 8,
        run: 0x5566_7788,
        host: "node\\7".into(),
        local_rank: Some(1),
        cores: vec![0, 1, 2, 3, 8, 12, 13],
        mpi: "mpich".into(),
        library: "MPICH Version: 4.0.2".into(),
        program: vec!["lmp".into(), "a b\n=c".into(), String::new()],
        pid: 77,
        realtime: 1_700_000_000_000_000_000,
        only_phase: None,
    }
}

#[test]
fn facts_come_back() {
    for only_phase in [None, Some("solve=1".to_owned())] {
        let info = RankInfo { run: 0, only_phase, ..info() };
        let facts = info.to_facts(4000);
        assert!(facts.contains("cores=0-3,8,12-13\n"), "{facts}");
        assert_eq!(RankInfo::from_facts(Rank(3), 8, &facts), Ok(info));
    }
    let short = info().to_facts(30);
    assert!(short.len() <= 30 && RankInfo::from_facts(Rank(3), 8, &short).is_ok());
}

#[test]
fn a_reason_to_stop_fits_behind_the_facts() {
    for reason in
        ["the size limit is reached", "", "a\nb\\=c", &"\n".repeat(999), &"é".repeat(999), &"x".repeat(999)]
    {
        let fact = stopped_fact(reason);
        assert!(fact.len() <= STOPPED_ROOM, "{reason}");
        let found = stop_reason(&(info().to_facts(4000) + &fact)).expect("the last fact");
        assert!(reason.starts_with(&found) && found.len() >= reason.len().min(63), "{reason}: {found}");
    }
    assert_eq!(stop_reason(&info().to_facts(4000)), None);
}

/// Texts of characters that lines, escapes and C strings treat in a special way, of at most `most` bytes.
fn text(most: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![
        Just('\r'),
        Just('\n'),
        Just('\\'),
        Just('\0'),
        Just('r'),
        Just('n'),
        Just('='),
        Just(char::REPLACEMENT_CHARACTER),
        any::<char>()
    ];
    let characters = prop::collection::vec(character, 0..=most / 4);
    (characters, 0..2usize).prop_map(move |(characters, long)| {
        let text: String = characters.into_iter().collect();
        text.repeat(if long == 0 || text.is_empty() { 1 } else { most / text.len() })
    })
}

proptest! {
    #[test]
    fn facts_of_any_texts_come_back(
        host in text(64),
        only_phase in prop::option::of(text(LONGEST_PHASE)),
        library in text(200),
        program in prop::collection::vec(text(3000), 0..6),
    ) {
        let info = RankInfo { run: 0, host, only_phase, library, program, ..info() };
        prop_assert_eq!(RankInfo::from_facts(Rank(3), 8, &info.to_facts(1 << 20)), Ok(info.clone()));
        let bytes = header(&info, ClockPair::default());
        prop_assert!(bytes.len() <= FACTS_END);
        let length = u32::from_le_bytes(bytes[field::FACTS_LEN..][..4].try_into().unwrap()) as usize;
        let facts = std::str::from_utf8(&bytes[field::FACTS..][..length]).unwrap();
        let read = RankInfo::from_facts(Rank(3), 8, facts).unwrap();
        prop_assert!(info.program.starts_with(&read.program));
        prop_assert_eq!(RankInfo { program: Vec::new(), ..read }, RankInfo { program: Vec::new(), ..info });
    }
}

/// A change here changes the format: increase [`VERSION`].
#[test]
fn golden_header() {
    let bytes = header(&info(), ClockPair { tick: 0x1122, nanos: 0x3344 });
    let fixed: [u8; 64] = *b"\x89VEFCAP\n\x04\x03\x02\x01\x08\0\0\0\0\0\x01\0\0\0\x01\0\x03\0\0\0\x08\0\0\0\
        \x01\0\0\0\x9c\0\0\0\0\0\0\0\0\0\0\0\x22\x11\0\0\0\0\0\0\x44\x33\0\0\0\0\0\0";
    assert_eq!(bytes[..64], fixed);
    assert_eq!(bytes[field::CALLS_AT..field::CALLS_AT + 8], *b"\xb0\x01\0\0\0\0\0\0");
    assert_eq!(bytes[field::RUN..field::RUN + 8], *b"\x88\x77\x66\x55\0\0\0\0");
    assert_eq!(bytes[field::FACTS..field::FACTS + 13], *b"host=node\\\\7\n");
    assert_eq!(bytes.len(), 0x1b0);
    let chunk = ChunkHeader {
        thread: 1,
        span: 2,
        sequence: 3,
        used: 4,
        checksum: 9,
        requests: 5,
        base: 6,
        clock: ClockPair { tick: 7, nanos: 8 },
    };
    let expected: [u8; CHUNK_HEADER] =
        *b"CHNK\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x09\0\0\0\x05\0\0\0\0\0\0\0\
        \x06\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0";
    assert_eq!(chunk.to_bytes(), expected);
    assert_eq!(ChunkHeader::from_bytes(&expected), chunk);
}

#[test]
fn a_sealed_chunk_knows_its_length_and_sum() {
    let mut bytes = vec![7; 100];
    bytes[..CHUNK_HEADER].copy_from_slice(&ChunkHeader { sequence: 3, ..ChunkHeader::default() }.to_bytes());
    seal(&mut bytes, 90);
    let header = bytes.first_chunk().map(ChunkHeader::from_bytes).expect("long enough");
    assert_eq!((header.used, header.checksum), (90, checksum(&bytes[..90])));
    assert_ne!(header.checksum, checksum(&bytes[..91]));
    bytes[89] ^= 1;
    assert_ne!(header.checksum, checksum(&bytes[..90]));
}

#[test]
fn clocks_convert_along_their_pairs() {
    let pair = |tick, nanos| ClockPair { tick, nanos };
    let identity = Clock::new([pair(100, 100)]);
    assert_eq!((identity.nanos(0), identity.nanos(u64::MAX)), (0, u64::MAX));
    // 2.5 ticks a nanosecond; the middle pair and the unset pair are ignored.
    let cycles = Clock::new([pair(1000, 5000), pair(2000, 5401), pair(0, 0), pair(1_001_000, 405_000)]);
    assert_eq!(cycles.nanos(1000), 5000);
    assert!(cycles.nanos(501_000).abs_diff(205_000) <= 1);
    assert!(cycles.nanos(500).abs_diff(4800) <= 1);
    for clock in [identity, cycles, Clock::new([pair(0, u64::MAX), pair(1, 9), pair(1 << 20, u64::MAX)])] {
        let safe = clock.zero.tick.saturating_add(clock.safe);
        for tick in [0, 999, clock.zero.tick, 501_000, safe - 1, safe, safe.saturating_add(1), u64::MAX] {
            assert_eq!(clock.nanos(tick), clock.nanos_at_bounds(tick), "{clock:?} at {tick}");
        }
    }
    // Invalid pairs must not divide by zero or overflow.
    let odd = Clock::new([pair(5, u64::MAX), pair(6, 0)]);
    assert_eq!(odd.nanos(u64::MAX), u64::MAX);
}

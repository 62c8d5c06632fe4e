//! Captures that are cut, changed while they are read, or contradict themselves.

use super::*;

proptest! {
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
        // A process that did not finish may have been killed before it had a chunk.
        let has_no_chunk = (HEADER_SIZE..HEADER_SIZE + CHUNK_HEADER).contains(&keep);
        let is_error = ending.is_err() || has_no_chunk && matches!(ending, Ok(Ending::Cut { .. }));
        prop_assert!(events.is_empty() && is_error, "a short file is an error at once");

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

/// Of a run that was aborted, a rank that wrote nothing, or has no file, is one without records; of another run it is an error.
#[test]
fn a_rank_that_was_killed_in_init_has_no_records() {
    let written = |dir: &Path, rank: u32, last: Action<'_>| {
        let mut writer = RankWriter::create(dir, &info(rank, 3)).expect("created");
        for (start, action) in [(5, Action::Init), (10, last)] {
            let (start, end, call) = (Nanos(start), Nanos(start + 4), CallSlot::NONE);
            writer.event(&Event { start, end, thread: 0, call, action }).expect("accepted");
        }
        writer.finish().expect("finished");
    };
    for killed in [0, 1] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = rank_path(dir.path(), Rank(killed));
        for rank in (0..3).filter(|&rank| rank != killed) {
            written(dir.path(), rank, Action::Stopped { reason: "aborted" });
        }
        for content in [Some(&[0; 65536][..]), Some(&[]), None] {
            match content {
                Some(bytes) => std::fs::write(&path, bytes).expect("written"),
                None => std::fs::remove_file(&path).expect("removed"),
            }
            let capture = Capture::open(dir.path()).expect("opened");
            let unbegun: Vec<u32> = (0..3).filter(|&rank| capture.is_unbegun(Rank(rank))).collect();
            assert_eq!((capture.tasks(), unbegun), (3, vec![killed]));
            assert_eq!(capture.functions(Rank(killed)).expect("read"), []);
            let count = |rank: u32| {
                let (mut events, mut read) = (capture.events(Rank(rank)).expect("opened"), 0);
                let counted = events.each(|_| {
                    read += 1;
                    Ok::<_, CaptureError>(())
                });
                counted.expect("read");
                (read > 0, events.ending(), events.has_many_threads())
            };
            assert_eq!(count(killed), (false, Ending::Unbegun, false));
            assert_eq!(count(2), (true, Ending::Stopped, false));
        }
        // A header that promises more ranks than there is memory for.
        let other = rank_path(dir.path(), Rank(1 - killed));
        let mut bytes = std::fs::read(rank_path(dir.path(), Rank(2))).expect("there");
        bytes[field::TASKS..field::TASKS + 4].fill(255);
        std::fs::write(rank_path(dir.path(), Rank(2)), bytes).expect("written");
        std::fs::rename(&other, dir.path().join("elsewhere")).expect("moved");
        let error = Capture::open(dir.path()).expect_err("refused");
        assert!(matches!(error, CaptureError::MissingRank { tasks: u32::MAX, .. }), "{error}");
        std::fs::rename(dir.path().join("elsewhere"), &other).expect("moved back");
        written(dir.path(), 2, Action::Finalize);
        let error = Capture::open(dir.path()).expect_err("refused");
        assert!(matches!(error, CaptureError::MissingRank { .. }), "{error}");
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
        super::super::compress(dir.path(), Rank(2)).expect("compressed");
        let said = Capture::open(dir.path()).expect_err("refused").to_string();
        assert!(said.contains("2.vefc.zst: is of another run than "), "{said}");
    }
}

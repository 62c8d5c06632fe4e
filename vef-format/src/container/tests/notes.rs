//! Notes of containers: what went in comes out, and what is derived if they are absent.

use super::*;

/// Notes by section, stream and place.
fn notes() -> impl Strategy<Value = Vec<(Option<Rank>, u64, usize, u64, String)>> {
    let one = (0u32..4, any::<u64>(), 0usize..8, any::<u64>(), "[a-c]{0,3}");
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
        7 => take(&Note::Synchronous),
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

proptest! {
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
}

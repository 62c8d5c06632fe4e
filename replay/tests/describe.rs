//! What a message is, asked by its id: tag, function and phase of a container's notes, record, collective and step.

use replay::{Algorithm, Container, Engine, Job, LiveId, Next, Origin, Replay, ReplayError, Table};
use std::path::Path;
use vef_format::container::{About, Note, Reader, Settings, Writer};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::Operation;
use vef_format::text;

/// A container of that text, with notes of its tasks: task, record, note.
fn container(text: &str, notes: &[(u32, u64, Note<'_>)]) -> Job {
    let mut reader = text::Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    let mut writer =
        Writer::new(Vec::new(), reader.header(), &About::default(), Settings::default()).unwrap();
    for (task, place, note) in notes {
        writer.note(Some(Rank(*task)), *place, note).unwrap();
    }
    while let Some(line) = reader.next().unwrap() {
        writer.line(&line).unwrap();
    }
    let reader = Reader::from_bytes(writer.finish().unwrap(), Path::new("test.vefx")).unwrap();
    Job::container(Container::new(reader).unwrap())
}

/// Of each message of task 0, in order: record, tag, function and phase.
type Labels = (u64, Option<i32>, Option<String>, Option<String>);

/// The labels of task 0's messages, asked for in the order that `order` makes of them.
fn labels(job: Job, order: impl Fn(&mut Vec<LiveId>)) -> Vec<Labels> {
    let mut replay = Replay::builder().job(job).build().unwrap();
    let mut ids = Vec::new();
    while let Some(now) = replay.next_ready() {
        ids.extend(std::iter::from_fn(|| replay.pop_ready(now).unwrap()).map(|message| message.id));
    }
    order(&mut ids);
    let described = ids.into_iter().map(|id| {
        let it = replay.describe(id).unwrap();
        let Origin::Line { tag, .. } = it.origin else { panic!("{it:?}") };
        let text = |name: Option<std::sync::Arc<str>>| name.map(|name| name.to_string());
        (it.record.unwrap(), tag, text(it.function), text(it.phase))
    });
    described.collect()
}

#[test]
fn tag_function_and_phase_are_those_of_the_record() {
    // Task 0: a message, a mark, and three messages.
    let text = "VEF3 2 5 0 0 0 0 1000\n0 0 1 9 0 1 -1\n1 0 0 0 1 1 0\n2 0 1 9 0 1 -1\n3 0 1 9 0 1 -1\n4 0 1 9 0 1 -1\n";
    let phase = |begin, name| Note::Phase { begin, name };
    let notes = [
        (0, 0, Note::Tag(7)),
        (0, 3, Note::Tag(-2)),
        (0, 0, Note::Call("MPI_Isend")),
        (0, 1, Note::Call("MPI_Wait")),
        (0, 2, Note::Call("MPI_Send")),
        (0, 0, phase(true, "setup")),
        (0, 2, phase(true, "inner")),
        (0, 3, phase(false, "setup")),
        (0, 4, phase(true, "solve")),
    ];
    let of = |record, tag, function: &str, phase: Option<&str>| {
        (record, Some(tag), Some(function.to_owned()), phase.map(str::to_owned))
    };
    let mut expected = [
        of(0, 7, "MPI_Isend", Some("setup")),
        of(2, 7, "MPI_Send", Some("inner")),
        of(3, -2, "MPI_Send", None),
        of(4, -2, "MPI_Send", Some("solve")),
    ];
    assert_eq!(labels(container(text, &notes), |_| {}), expected);
    expected.reverse();
    assert_eq!(labels(container(text, &notes), |ids| ids.reverse()), expected);
    let unknown = |record| (record, None, None, None);
    assert_eq!(labels(container(text, &[]), |_| {}), [0, 2, 3, 4].map(unknown));
}

#[test]
fn the_window_on_notes_moves_back() {
    let count = 2000;
    let mut text = format!("VEF3 2 {count} 0 0 0 0 1000\n");
    (0..count).for_each(|id| text += &format!("{id} 0 1 9 0 1 -1\n"));
    let notes: Vec<_> = (0..count).map(|at| (0, at, Note::Tag(at as i32 * 3))).collect();
    let tagged = |record: u64| (record, Some(record as i32 * 3), None, None);
    let forward: Vec<_> = (0..count).map(tagged).collect();
    assert_eq!(labels(container(&text, &notes), |_| {}), forward);
    let stride = |ids: &mut Vec<LiveId>| *ids = [1999, 3, 1000, 999, 0].map(|at| ids[at]).into();
    assert_eq!(labels(container(&text, &notes), stride), [1999, 3, 1000, 999, 0].map(tagged));
}

#[test]
fn a_step_names_its_collective() {
    // A Bcast of root 2 on communicator 5 of tasks 3, 1 and 2, their second record.
    let mut text = "VEF3 4 3 1 1 3 0 1000\nC5 3 1 2\n".to_owned();
    (1..4).for_each(|task| text += &format!("{task} {task} {task} 0 0 4 -1\n"));
    for (task, send, recv) in [(1, 0, 8), (2, 8, 0), (3, 0, 8)] {
        text += &format!("G9 C5 0 {task} {send} {recv} 0 1 -1\n");
    }
    let table = Table::from_toml("[[bcast]]\nalgorithm = \"linear\"\n").unwrap();
    let mut replay = Replay::builder().job(container(&text, &[])).algorithms(table).build().unwrap();
    let mut seen = Vec::new();
    while let Some(now) = replay.next_ready() {
        while let Some(message) = replay.pop_ready(now).unwrap() {
            let it = replay.describe(message.id).unwrap();
            assert_eq!((it.job, it.src, it.dst), (0, Some(message.src), message.dst));
            assert_eq!((it.src_node, it.dst_node), (Some(message.src_node), message.dst_node));
            assert_eq!(it.record, Some(1));
            let Origin::Step { collective: CollectiveId(9), step: Some(step) } = it.origin else {
                panic!("{it:?}")
            };
            assert_eq!((step.comm, step.operation, step.root), (CommId(5), Operation::Bcast, 2));
            assert_eq!((step.algorithm, step.src), (Algorithm::Linear, 2));
            seen.push((step.number, step.dst, message.dst));
            replay.delivered(message.id, now).unwrap();
            assert!(matches!(replay.describe(message.id), Err(ReplayError::NotLive { .. })));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [(Some(0), 0, Rank(3)), (Some(1), 1, Rank(1))]);
    assert!(replay.is_complete());
}

#[test]
fn a_partition_knows_the_record_of_an_imported_line() {
    let text = "VEF3 2 3 0 0 0 0 1000\n0 0 0 0 0 1 -1\n1 0 1 9 4 1 -1\n2 1 0 9 2 1 1\n";
    let mut engines = Engine::builder().job(container(text, &[])).partitions(2, |node| node).unwrap();
    let mut sent = None;
    engines[0]
        .begin(&mut |next: Next| {
            if let Next::Message(message) = next {
                sent = Some(message)
            }
        })
        .unwrap();
    let message = sent.unwrap();
    let before = engines[0].describe(message.id).unwrap();
    let parcel = engines[0].export(message.id).unwrap();
    let id = engines[1].import(parcel).unwrap();
    let after = engines[1].describe(id).unwrap();
    assert_eq!(after, before);
    assert_eq!((after.record, after.origin), (Some(1), Origin::Line { id: MessageId(1), tag: None }));
    engines[1].begin(&mut |_: Next| {}).unwrap();
    engines[1].delivered(id, message.start, &mut |_: Next| {}).unwrap();
}

//! Containers with a proof, and those whose proof is not theirs.

use replay::{Container, Engine, Job, Next, ReplayError, yardstick};
use std::path::Path;
use vef_format::container::{About, Reader, Settings, Writer};
use vef_format::ids::{MessageId, Rank};
use vef_format::record::{Dependency, Header, Message, Version};
use vef_format::units::{Bytes, Picos, Ticks};

/// (id, sender, receiver, after)
type Row = (u64, u32, u32, Dependency);

/// Rank 0 sends to 1, which answers; every message is awaited.
fn ping_pong() -> Vec<Row> {
    vec![
        (0, 0, 1, Dependency::Start),
        (1, 1, 0, Dependency::Received(MessageId(0))),
        (2, 0, 0, Dependency::Received(MessageId(1))),
    ]
}

/// A container of these rows; `section` is given a chance to add a section.
fn container(rows: &[Row], section: impl Fn(&mut Writer<Vec<u8>>)) -> Reader {
    let header = Header {
        version: Version::V3,
        tasks: 3,
        messages: rows.len() as u64,
        communicators: 0,
        collectives: 0,
        local_collectives: 0,
        received: 0,
        clock: Picos(1000),
    };
    let mut writer = Writer::new(Vec::new(), &header, &About::default(), Settings::default()).unwrap();
    for &(id, src, dst, after) in rows {
        let (src, dst, bytes) = (Rank(src), Rank(dst), Bytes(u64::from(src != dst)));
        let message =
            Message { id: MessageId(id), src, dst, bytes, awaited: src != dst, after, time: Ticks(5) };
        writer.message(&message).unwrap();
    }
    section(&mut writer);
    Reader::from_bytes(writer.finish().unwrap(), Path::new("test.vefx")).unwrap()
}

fn replayed(reader: Reader) -> Result<yardstick::Outcome, ReplayError> {
    let job = Job::container(Container::new(reader).unwrap());
    yardstick::run(&mut Engine::builder().job(job).engine().unwrap(), &yardstick::default_link())
}

#[test]
fn what_is_right_is_proven() {
    let reader = container(&ping_pong(), |_| {});
    assert!(reader.is_proven().unwrap());
    assert_eq!(reader.section_names().count(), 0);
    assert!(replayed(reader).unwrap().complete());
}

/// Messages for which no record waits are not kept: the state of a replay does not grow with them.
#[test]
fn messages_that_nobody_awaits_are_forgotten() {
    let size = |messages: u64| {
        let header = Header { tasks: 2, messages, clock: Picos(1000), ..Header::default() };
        let mut writer = Writer::new(Vec::new(), &header, &About::default(), Settings::default()).unwrap();
        for id in 0..messages {
            let (id, bytes, time) = (MessageId(id), Bytes(8), Ticks(5));
            let (src, dst, after) = (Rank(0), Rank(1), Dependency::Start);
            writer.message(&Message { id, src, dst, bytes, awaited: false, after, time }).unwrap();
        }
        let reader = Reader::from_bytes(writer.finish().unwrap(), Path::new("test.vefx")).unwrap();
        assert!(reader.is_proven().unwrap());
        let mut engines = Engine::builder()
            .job(Job::container(Container::new(reader).unwrap()))
            .partitions(2, |node| node)
            .unwrap();
        let mut sent: Vec<Next> = Vec::new();
        engines[0].begin(&mut sent).unwrap();
        engines[1].begin(&mut |next: Next| panic!("{next:?}")).unwrap();
        while let Some(next) = sent.pop() {
            match next {
                Next::Message(message) => {
                    let parcel = engines[0].export(message.id).unwrap();
                    let id = engines[1].import(parcel).unwrap();
                    engines[1].delivered(id, Picos(1 << 40), &mut |next: Next| panic!("{next:?}")).unwrap();
                }
                Next::Wake(wake) => engines[0].wake(wake, wake.at, &mut sent).unwrap(),
                Next::Inside { .. } => panic!("each task has a node"),
            }
        }
        engines[1].save().unwrap().len()
    };
    assert!(size(500) < size(10) + 100);
}

#[test]
fn what_is_wrong_has_no_proof_and_is_refused() {
    let mut twice = ping_pong();
    twice[1].0 = 0;
    let mut waits_in_vain = ping_pong();
    waits_in_vain[2].1 = 2;
    // A proof that somebody made up, or that of another file.
    let made_up = |writer: &mut Writer<Vec<u8>>| writer.section("proof", None, &[7; 8]).unwrap();
    for section in [&(|_: &mut Writer<Vec<u8>>| {}) as &dyn Fn(&mut Writer<Vec<u8>>), &made_up] {
        let reader = container(&twice, section);
        assert!(!reader.is_proven().unwrap());
        assert!(matches!(replayed(reader), Err(ReplayError::DuplicateId { .. })));
        let reader = container(&waits_in_vain, section);
        assert!(!reader.is_proven().unwrap());
        let stuck = replayed(reader).unwrap().stuck.unwrap().to_string();
        assert!(stuck.contains("which goes to another task"), "{stuck}");
    }
}

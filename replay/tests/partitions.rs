//! What partitions refuse.

use replay::{BuildError, Engine, Job, Loaded, Next, OpCodes, Parcel, ReplayError};
use std::path::Path;
use std::sync::Arc;
use vef_format::text::Reader;

/// Two jobs of two tasks, of which task 0 sends to task 1.
fn partitions(parts: u32, part_of: impl Fn(u32) -> u32) -> Result<Vec<Engine>, BuildError> {
    let text = "VEF3 2 2 0 0 0 0 1\n0 0 1 9 4 10 -1\n1 1 1 0 2 0 0\n";
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    let trace = Arc::new(Loaded::read(reader, OpCodes::default()).unwrap());
    Engine::builder().job(Job::loaded(&trace)).job(Job::loaded(&trace)).partitions(parts, part_of)
}

#[test]
fn nodes_are_in_partitions_that_exist() {
    let refused = partitions(2, |node| 2 * node).unwrap_err();
    assert!(matches!(refused, BuildError::Partition { node: 1, part: 2, parts: 2 }), "{refused}");
}

#[test]
fn messages_of_others_are_refused() {
    let mut engines = partitions(2, |node| node).unwrap();
    // The task behind the last of job 0 is one of job 1.
    let has = |engine: &Engine| {
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)].map(|(job, task)| engine.has_task(job, task))
    };
    assert_eq!(has(&engines[0]), [true, false, false, true, false, false, false]);
    assert_eq!(has(&engines[1]), [false, true, false, false, true, false, false]);
    let mut messages = Vec::new();
    engines[0].begin(&mut messages).unwrap();
    let [Next::Message(message), Next::Message(_)] = messages[..] else { panic!("{messages:?}") };
    let parcel = engines[0].export(message.id).unwrap();
    let raw = parcel.to_raw();
    // Receivers that do not exist or are elsewhere, and a sender that does not.
    for (at, number) in [(1, 4), (1, 0), (1, u64::from(u32::MAX)), (2, 4)] {
        let mut other = raw;
        other[at] = other[at] >> 32 << 32 | number;
        let refused = engines[1].import(Parcel::from_raw(other));
        assert!(matches!(refused, Err(ReplayError::NotHere)), "{at} {number}");
    }
    assert!(engines[1].import(parcel).is_ok());
}

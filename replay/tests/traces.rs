//! Whole traces under simple networks.

use replay::{Job, Kind, Link, Loaded, Picos, Replay, yardstick};
use std::path::Path;
use std::sync::Arc;
use vef_format::capture::Capture;
use vef_format::ids::Rank;
use vef_format::operation::{OpCodes, Operation};
use vef_format::text::Reader;

/// A trace in text, in memory.
fn loaded(text: &str) -> Arc<Loaded> {
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    Arc::new(Loaded::read(reader, OpCodes::default()).unwrap())
}

/// Replays with a fixed time for every message; gives the messages as (ready, src, dst, bytes).
fn run(replay: &mut Replay, flight: u64) -> Vec<(u64, u32, u32, u64)> {
    let mut under_way = std::collections::BTreeMap::new();
    let mut seen = Vec::new();
    let mut number = 0;
    loop {
        let arrival = under_way.first_key_value().map(|(&(at, _), _)| Picos(at));
        let Some(now) = replay.next_ready().into_iter().chain(arrival).min() else { break };
        if arrival == Some(now) {
            let ((at, _), id) = under_way.pop_first().unwrap();
            replay.delivered(id, Picos(at)).unwrap();
        } else if let Some(message) = replay.pop_ready(now).unwrap() {
            seen.push((message.ready.0, message.src.0, message.dst.0, message.bytes.0));
            under_way.insert((now.0 + flight, number), message.id);
            number += 1;
        }
    }
    seen
}

#[test]
fn ping_pong() {
    let trace = loaded(
        "VEF3 2 5 0 0 0 0 1000\n\
         0 0 1 100 4 10 -1\n1 0 0 0 1 5 0\n2 1 1 0 0 7 -1\n3 1 0 50 6 3 0\n4 0 0 0 2 1 3\n",
    );
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    assert_eq!(run(&mut replay, 2000), [(10_000, 0, 1, 100), (15_000, 1, 0, 50)]);
    assert!(replay.is_complete() && replay.stuck().is_none());
    assert_eq!(replay.finish(), Picos(18_000));
    assert_eq!(replay.stats().marks, 3);
}

#[test]
fn collectives_become_messages() {
    let trace = loaded(
        "VEF3 3 0 1 2 6 0 1000\nC0 0 1 2\n\
         G0 C0 6 0 0 0 0 1 -1\nG0 C0 6 1 0 0 0 2 -1\nG0 C0 6 2 0 0 0 3 -1\n\
         G1 C0 0 0 0 8 3 1 G0\nG1 C0 0 1 8 0 3 1 G0\nG1 C0 0 2 0 8 3 1 G0\n",
    );
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    let seen = run(&mut replay, 1000);
    assert!(replay.is_complete(), "{}", replay.stuck().unwrap());
    let broadcast = replay.stats().of(Kind::Collective(Operation::Bcast));
    assert_eq!((broadcast.messages, broadcast.bytes.0), (2, 16));
    assert_eq!(seen.len() as u64, replay.stats().total().messages);
    assert_eq!(replay.stats().collectives, 2);
}

#[test]
fn a_circle_is_explained() {
    let trace = loaded("VEF3 2 2 0 0 0 0 1\n0 0 1 1 6 0 1\n1 1 0 1 6 0 0\n");
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    assert_eq!(run(&mut replay, 1), []);
    let stuck = replay.stuck().unwrap();
    assert_eq!(stuck.circle, Some(0));
    let text = stuck.to_string();
    assert!(text.contains("in a circle: task 0 waits for task 1 waits for task 0"), "{text}");
}

/// The real traces that VEF-Prospector's own mixer wrote, and when their captured programs ended: for each task the
/// time from the start of its `MPI_Init` to the start of its `MPI_Finalize`, the longest of them, in nanoseconds.
#[test]
fn real_traces_replay_to_their_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/vef-prospector");
    for name in ["p2p-a", "p2p-b"] {
        let path = folder.join(format!("{name}.vef"));
        if !path.exists() {
            eprintln!("SKIPPED: {} is absent", path.display());
            continue;
        }
        let captured = captured_nanos(&folder.join(name)) as f64;
        // Four ranks on the two cores of one machine: a message through shared memory takes some microseconds, and what it
        // has to wait for is mostly the scheduler.
        let link = Link::new(Picos(2_000_000), 10_000_000_000).unwrap();
        let mut replay = Replay::builder().job(Job::open(&path).unwrap()).build().unwrap();
        let outcome = yardstick::run(&mut replay, &link).unwrap();
        assert!(outcome.complete(), "{name}: {}", outcome.stuck.unwrap());
        let replayed = outcome.runtime.0 as f64 / 1000.0;
        let off = (replayed - captured) / captured;
        eprintln!("{name}: captured {captured} ns, replayed {replayed} ns, {:+.1} %", 100.0 * off);
        assert!(off.abs() < 0.06, "{name}: captured {captured} ns, replayed {replayed} ns");
    }
}

fn captured_nanos(folder: &Path) -> u64 {
    let capture = Capture::open(folder).unwrap();
    let task = |rank| {
        let mut events = capture.events(Rank(rank)).unwrap();
        let (mut first, mut last) = (None, 0);
        while let Some(event) = events.next().unwrap() {
            first.get_or_insert(event.start.0);
            last = event.start.0;
        }
        last - first.unwrap()
    };
    (0..capture.tasks()).map(task).max().unwrap()
}

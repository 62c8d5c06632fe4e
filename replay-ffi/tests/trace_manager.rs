//! `TraceManager.h`: cycles that are skipped, nodes without end, messages within a node. One test, as there is one instance a process.

use std::io::Write;
use std::os::raw::c_char;
use vef_replay::trace_manager::*;

/// Four ranks: a barrier, then a message from each to the next, in picoseconds of computing that are far apart.
const TRACE: &str = "VEF3 4 4 1 1 4 0 1000\nC0 0 1 2 3\nG0 C0 6 0 0 0 0 100000 -1\nG0 C0 6 1 0 0 0 3000 -1\nG0 C0 6 2 0 0 0 0 -1\n\
G0 C0 6 3 0 0 0 50 -1\n0 0 1 8 3 70000 G0\n1 1 2 8 3 1 G0\n2 2 3 8 3 20 G0\n3 3 0 8 3 90000 G0\n";

fn begin(path: &str, nodes: i32, mapping_mode: i32) -> i32 {
    let mut configuration = Configuration {
        simNodes: nodes,
        number_of_traces: 1,
        mapping_mode,
        filename: [0; FILENAME_SIZE],
        use_simulator_clock_instead_of_factorTime: 0,
    };
    for (to, byte) in configuration.filename.iter_mut().zip(path.bytes()) {
        *to = byte as c_char;
    }
    // SAFETY: a configuration that is alive.
    unsafe { init_MultipleTraceManager(&raw const configuration) }
}

/// Cycle, sender and receiver of each message, each of which takes 7 cycles; and the last cycle, and iterations of the loop.
fn run(path: &str, nodes: i32, mode: i32, skip: bool) -> (Vec<(u64, i32, i32)>, u64, u64) {
    assert_eq!(begin(path, nodes, mode), 0);
    let (mut now, mut turns, mut got, mut flying) = (0, 0, Vec::new(), Vec::new());
    while isTraceComplete() == 0 {
        turns += 1;
        while areMsgstoGet() == 1 {
            let mut message = TraceMessage { src: 0, dst: 0, length: 0, id: 0 };
            // SAFETY: a message that is alive.
            assert_eq!(unsafe { getMsgTrace(&raw mut message) }, 1);
            got.push((now, message.src, message.dst));
            flying.push((now + 7, message));
        }
        assert_ne!(nextEvent(), 0);
        flying.retain(|(at, message)| {
            let arrives = *at == now;
            assert!(!arrives || ReceiveTraceMsg(message.dst, message.id) == 0);
            !arrives
        });
        let arrival = flying.iter().map(|(at, _)| at - now).min();
        let event = u64::try_from(nextEvent()).ok();
        let step = match skip {
            true => arrival.into_iter().chain(event).min().unwrap_or(1).max(1),
            false => 1,
        };
        assert_eq!(clock_advance(step), 0);
        now += step;
    }
    assert!(TraceManager_problem().is_null());
    assert_eq!((isTraceComplete(), nextEvent()), (1, 0));
    (got, now, turns)
}

#[test]
fn the_older_interface() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(TRACE.as_bytes()).expect("a trace");
    let path = file.path().to_str().expect("a path");

    let (messages, end, turns) = run(path, 4, 0, false);
    assert_eq!((messages.len(), turns), (4 * 2 + 4, end));
    let (skipped, its_end, its_turns) = run(path, 4, 0, true);
    assert_eq!((&skipped, its_end), (&messages, end));
    assert!(its_turns < 60, "{its_turns} of {turns} cycles");

    // Nodes cost nothing.
    assert_eq!(run(path, i32::MAX, 0, true), (messages.clone(), end, its_turns));
    assert_eq!(run(path, i32::MAX, 1, true), (messages.clone(), end, its_turns));

    // With two ranks a node, those between its two ranks are not seen.
    assert_eq!(TraceManager_same_node(1000, 8_000_000_000_000), 0);
    let (outside, _, _) = run(path, 2, 0, true);
    assert!(outside.iter().all(|(_, src, dst)| src != dst), "{outside:?}");
    assert_eq!(outside.len(), messages.iter().filter(|(_, src, dst)| src / 2 != dst / 2).count());
    assert_eq!(TraceManager_same_node(0, 0), 0);
    assert_eq!(run(path, 2, 0, true).0.len(), 12);

    assert_eq!(begin("/dev/null/absent", 4, 0), -1);
    assert_eq!(nextEvent(), -1);
    TraceManager_end();
}

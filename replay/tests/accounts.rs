//! The times of tasks by state, computed by hand.

use replay::{
    Accounts, Builder, Engine, Job, Link, Loaded, Next, OpCodes, Picos, Replay, SameNode, Sink, Started,
    yardstick,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vef_format::text::Reader;

/// In picoseconds, where a message takes 100 and 10 a byte. Task 0 sends 9 bytes at 10 and enters a Barrier at 13. Task 1 waits for the message
/// from 5 to 200 and enters at 211, so that task 0 leaves at 311; it enters another Barrier at 318, its last record. Task 1 does at 213, and leaves
/// at 418.
const TEXT: &str = "VEF3 2 4 1 2 4 0 1\nC0 0 1\n\
    0 0 1 9 4 10 -1\nG0 C0 6 0 0 0 1 3 0\n3 0 0 0 3 6 G0\nG1 C0 6 0 0 0 1 1 3\n\
    1 1 1 0 0 5 -1\n2 1 1 0 2 7 0\nG0 C0 6 1 0 0 1 4 2\nG1 C0 6 1 0 0 3 2 G0\n";
/// Computing, and waiting for sends, receptions and collectives.
const TIMES: [[u64; 4]; 2] = [[20, 0, 0, 298], [18, 0, 195, 205]];
/// When the last record of each task starts.
const LAST: [u64; 2] = [318, 213];

/// Accounts of the tasks of even numbers, of odd ones, and of all.
struct Watch([Accounts; 3]);

impl Sink for Watch {
    fn take(&mut self, _: Next) {}

    fn started(&mut self, started: &Started) {
        let task = self.0[2].number(started.job, started.task.0);
        self.0[task as usize % 2].started(task, started);
        self.0[2].started(task, started);
    }
}

/// Two jobs of that trace, the second one from 1000 on.
fn builder() -> Builder {
    let reader = Reader::from_bytes(TEXT.as_bytes(), Path::new("test.vef")).unwrap();
    let trace = Arc::new(Loaded::read(reader, OpCodes::default()).unwrap());
    let builder = Engine::builder().job(Job::loaded(&trace)).same_node(SameNode::ViaNetwork);
    builder.job(Job::loaded(&trace).start(Picos(1000)))
}

/// An engine up to a moment.
fn run(until: u64) -> (Engine, [Accounts; 3]) {
    let mut engine = builder().engine().unwrap();
    let mut watch = Watch([(); 3].map(|()| Accounts::new(&engine)));
    let link = Link::new(Picos(100), 800_000_000_000).unwrap();
    yardstick::watch(&mut engine, &link, Picos(until), &mut watch).unwrap();
    (engine, watch.0)
}

#[test]
fn times_are_those_of_the_states() {
    let (engine, [even, mut odd, mut all]) = run(u64::MAX);
    assert!(engine.is_complete());
    assert_eq!((all.first_tasks(), all.number(0, 1), all.number(1, 1)), (&[0, 2][..], 1, 3));
    let reached = [LAST, LAST.map(|at| at + 1000)].concat();
    assert_eq!(all.all_reached(), reached.iter().map(|&at| Picos(at)).collect::<Vec<_>>());
    assert_eq!(all.reached(3), Picos(1213));
    // A partition that has the tasks of odd numbers takes over the others.
    odd.adopt(&even, |job, task| (2 * job + task) % 2 == 0);
    for accounts in [&all, &odd] {
        assert_eq!([0, 1].map(|job| accounts.so_far(&engine, job)), [TIMES, TIMES]);
        assert_eq!(accounts.of_job(1, &[1318, 1418].map(Picos)), TIMES);
    }
    all.restart(1, Picos(5000));
    assert_eq!(all.of_job(1, &[5000, 5007].map(Picos)), [[0, 0, 0, 0], [0, 0, 0, 7]]);
    assert_eq!(all.so_far(&engine, 0), TIMES);
    all.restart(0, Picos(7000));
    assert_eq!(all.all_reached(), [7000, 7000, 5000, 5000].map(Picos));
}

#[test]
fn a_run_in_progress_is_accounted_up_to_the_last_records() {
    // Task 1 has gone through the first Barrier and into the second; nothing of that has come to task 0.
    let (engine, [.., all]) = run(210);
    assert_eq!(all.so_far(&engine, 0), [[13, 0, 0, 0], [18, 0, 195, 0]]);
}

#[test]
fn a_replay_keeps_the_same_times() {
    let mut replay: Replay = builder().keep_times(true).build().unwrap();
    let mut arrivals = BTreeMap::new();
    while let Some(now) =
        replay.next_ready().into_iter().chain(arrivals.keys().next().map(|&(at, _)| at)).min()
    {
        while let Some(message) = replay.pop_ready(now).unwrap() {
            arrivals.insert((Picos(now.0 + 100 + 10 * message.bytes.0), message.id), message.id);
        }
        if let Some(first) = arrivals.first_entry()
            && first.key().0 == now
        {
            replay.delivered(first.remove(), now).unwrap();
        }
    }
    assert!(replay.is_complete());
    let accounts = replay.accounts().unwrap();
    assert_eq!([0, 1].map(|job| accounts.so_far(replay.engine(), job)), [TIMES, TIMES]);
    assert!(builder().build().unwrap().accounts().is_none());
}

//! Whole traces under simple networks.

use replay::{
    Bytes, Computing, Container, Engine, Job, Kind, Link, LiveId, Loaded, Next, Picos, Raw, Replay,
    ReplayError, SendCompletion, yardstick,
};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use vef_format::capture::event::Event;
use vef_format::capture::{Capture, CaptureError};
use vef_format::container::{self, About, Note, Settings};
use vef_format::ids::Rank;
use vef_format::operation::{OpCodes, Operation};
use vef_format::text::{Line, Reader};
use vef_format::units::Ticks;

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
fn a_text_takes_other_codes_of_operations() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"VEF3 2 0 1 1 2 0 1000\nC0 0 1\nG0 C0 77 0 8 0 0 1 -1\nG0 C0 77 1 0 8 0 1 -1\n").unwrap();
    let codes = OpCodes::parse("77 Bcast", Path::new("codes.txt")).unwrap();
    let mut job = Job::open(file.path()).unwrap();
    job.set_op_codes(codes.clone()).unwrap();
    let mut replay = Replay::builder().job(job).build().unwrap();
    run(&mut replay, 1000);
    assert!(replay.is_complete());
    assert_eq!(replay.stats().of(Kind::Collective(Operation::Bcast)).messages, 1);
    // Without them nobody knows what 77 is.
    let error = Replay::builder().job(Job::open(file.path()).unwrap()).build().unwrap_err();
    assert!(error.to_string().contains("77"), "{error}");
    // What is in memory has its own.
    let refused = Job::loaded(&loaded("VEF3 1 0 0 0 0 0 1\n")).set_op_codes(codes).unwrap_err();
    assert!(refused.to_string().contains("only a text trace"), "{refused}");
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
    let Some(folder) = skipping::shared("data/vef-prospector") else { return };
    for name in ["p2p-a", "p2p-b"] {
        let path = folder.join(format!("{name}.vef"));
        let captured = captured_nanos(&folder.join(name)) as f64;
        // Four ranks on the two cores of one machine: a message through shared memory takes some microseconds, and what it
        // has to wait for is mostly the scheduler.
        let link = Link::new(Picos(2_000_000), 10_000_000_000).unwrap();
        let mut engine = Engine::builder().job(Job::open(&path).unwrap()).engine().unwrap();
        let outcome = yardstick::run(&mut engine, &link).unwrap();
        assert!(outcome.complete(), "{name}: {}", outcome.stuck.unwrap());
        let replayed = outcome.runtime.0 as f64 / 1000.0;
        let off = (replayed - captured) / captured;
        assert!(off.abs() < 0.06, "{name}: captured {captured} ns, replayed {replayed} ns");
    }
}

fn captured_nanos(folder: &Path) -> u64 {
    let capture = Capture::open(folder).unwrap();
    let task = |rank| {
        let mut events = capture.events(Rank(rank)).unwrap();
        let (mut first, mut last) = (None, 0);
        let note = |event: &Event<'_>| {
            first.get_or_insert(event.start.0);
            last = event.start.0;
            Ok::<_, CaptureError>(())
        };
        events.each(note).unwrap();
        last - first.unwrap()
    };
    (0..capture.tasks()).map(task).max().unwrap()
}

#[test]
fn what_the_caller_gets_wrong_changes_nothing() {
    let trace = loaded("VEF3 2 3 0 0 0 0 1\n0 0 1 9 4 10 -1\n1 1 1 0 0 5 -1\n2 1 1 0 2 5 0\n");
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    assert!(replay.pop_ready(Picos(9)).unwrap().is_none());
    let message = replay.pop_ready(Picos(12)).unwrap().unwrap();
    assert_eq!((message.ready, message.kind), (Picos(10), Kind::PointToPoint));
    let invented = LiveId::from_raw(message.id.to_raw() ^ 1);
    let wrong: [ReplayError; 5] = [
        replay.pop_ready(Picos(11)).unwrap_err(),
        replay.delivered(message.id, Picos(11)).unwrap_err(),
        replay.delivered(invented, Picos(20)).unwrap_err(),
        replay.sent(invented, Picos(20)).unwrap_err(),
        replay.sent(LiveId::from_raw(0), Picos(20)).unwrap_err(),
    ];
    assert!(wrong.iter().all(ReplayError::is_misuse), "{wrong:?}");
    assert_eq!(replay.clock(), Picos(12));
    replay.sent(message.id, Picos(13)).unwrap();
    assert!(matches!(replay.sent(message.id, Picos(13)), Err(ReplayError::AlreadySent { .. })));
    replay.delivered(message.id, Picos(20)).unwrap();
    assert!(matches!(replay.delivered(message.id, Picos(20)), Err(ReplayError::NotLive { .. })));
    assert!(replay.is_complete());
    assert_eq!(replay.finish(), Picos(25));
}

/// Every message arrives when it is taken.
fn poll(replay: &mut Replay) -> Result<(), ReplayError> {
    while let Some(now) = replay.next_ready() {
        while let Some(message) = replay.pop_ready(now)? {
            replay.delivered(message.id, now)?;
        }
    }
    Ok(())
}

#[test]
fn errors_in_a_trace_are_placed_and_end_the_replay() {
    let fails = |text: &str| {
        let trace = loaded(text);
        let mut engine = Engine::builder().job(Job::loaded(&trace)).engine().unwrap();
        let error = yardstick::run(&mut engine, &yardstick::default_link()).map(drop).unwrap_err();
        let after = engine.delivered(LiveId::from_raw(1), Picos::MAX, &mut |_: Next| {});
        assert!(matches!(after, Err(ReplayError::Ended)));
        // It is the same where messages are asked for.
        let mut polled = Replay::builder().job(Job::loaded(&trace)).build();
        let polled = polled.as_mut().map_err(|error| error.to_string()).and_then(|replay| {
            poll(replay).map_err(|error| {
                assert!(matches!(replay.pop_ready(Picos::MAX), Err(ReplayError::Ended)));
                error.to_string()
            })
        });
        assert_eq!(polled, Err(error.to_string()));
        error.to_string()
    };
    let of = fails;
    let overflow =
        of("VEF3 1 2 0 0 0 0 1000\n0 0 0 0 0 18446744073709551 -1\n1 0 0 0 1 18446744073709551 0\n");
    assert!(overflow.starts_with("task 0, record 1: it would start after the end of time"), "{overflow}");
    let twice = of("VEF3 2 2 0 0 0 0 1\n5 0 1 3 0 1 -1\n5 1 0 3 0 2 -1\n");
    assert_eq!(twice, "task 1, record 0: id 5 was used before");
    let no_group = of("VEF3 2 0 0 1 1 0 1\nG0 C3 6 0 0 0 0 1 -1\n");
    assert_eq!(no_group, "task 0, record 0: G0: communicator C3 is not in the trace");
    let outsider = of("VEF3 3 0 1 1 1 0 1\nC0 0 1\nG0 C0 6 2 0 0 0 1 -1\n");
    assert_eq!(outsider, "task 2, record 0: G0: the task is not in communicator C0");
    let code = of("VEF3 2 0 1 1 1 0 1\nC0 0 1\nG0 C0 99 1 0 0 0 1 -1\n");
    assert_eq!(code, "task 1, record 0: G0: operation code 99 is not in the table");
    let disagree = of("VEF3 2 0 1 1 2 0 1\nC0 0 1\nG0 C0 6 0 0 0 0 1 -1\nG0 C0 2 1 8 8 0 1 -1\n");
    assert!(disagree.contains("another member's record names another operation"), "{disagree}");
    let again = of("VEF3 2 0 1 1 2 0 1\nC0 0 1\nG0 C0 6 0 0 0 0 1 -1\nG0 C0 6 0 0 0 0 1 -1\n");
    assert!(again.contains("takes part a second time"), "{again}");
}

#[test]
fn what_cannot_be_built_is_refused() {
    let trace = loaded("VEF3 3 0 0 0 0 0 1\n");
    let build = |job: Job| Replay::builder().job(job).build().unwrap_err().to_string();
    assert_eq!(Replay::builder().build().unwrap_err().to_string(), "no trace to replay");
    assert_eq!(
        build(Job::loaded(&trace).nodes(vec![0, 1])),
        "job 0 has 3 tasks, its placement has nodes for 2"
    );
    assert!(build(Job::loaded(&trace).time_factor(-1.0)).contains("must be a number from 0"));
    let huge = loaded("VEF3 2000000000 0 0 0 0 0 1\n");
    assert!(build(Job::loaded(&huge)).contains("promises 2 000 000 000 tasks"));
    assert!(build(Job::loaded(&huge).nodes(Vec::new())).contains("promises 2 000 000 000 tasks"));
}

#[test]
fn several_records_may_wait_for_one_message() {
    let trace = loaded(
        "VEF3 2 5 0 0 0 0 1\n0 0 1 9 4 10 -1\n1 1 1 0 0 5 -1\n2 1 0 7 2 5 0\n3 1 0 8 2 6 0\n4 1 0 9 2 7 0\n",
    );
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    assert_eq!(run(&mut replay, 100), [(10, 0, 1, 9), (115, 1, 0, 7), (121, 1, 0, 8), (128, 1, 0, 9)]);
    assert!(replay.is_complete());
}

#[test]
fn a_sender_waits_as_the_policy_says() {
    let trace = loaded("VEF3 2 3 0 0 0 0 1\n0 0 1 9 0 10 -1\n1 0 1 90 1 5 0\n2 0 0 0 1 5 1\n");
    let finish = |policy, sent_after: Option<u64>| {
        let mut replay = Replay::builder().job(Job::loaded(&trace)).send_completion(policy).build().unwrap();
        while let Some(now) = replay.next_ready() {
            let Some(message) = replay.pop_ready(now).unwrap() else { continue };
            if let Some(after) = sent_after {
                replay.sent(message.id, Picos(now.0 + after)).unwrap();
            }
            replay.delivered(message.id, Picos(now.0 + 100)).unwrap();
        }
        assert!(replay.is_complete());
        replay.progress(0).next().unwrap().finished.unwrap().0
    };
    // Handed out late where the simulator comes back late: at 110.
    assert_eq!(finish(SendCompletion::Eager, None), 115);
    assert_eq!(finish(SendCompletion::WhenSent, Some(20)), 135);
    assert_eq!(finish(SendCompletion::WhenSent, None), 220);
    assert_eq!(finish(SendCompletion::Rendezvous { above: Bytes(9) }, None), 215);
}

#[test]
fn the_time_factor_and_the_start_move_records() {
    let trace = loaded("VEF3 2 1 0 0 0 0 1000\n0 0 1 9 0 3 -1\n");
    let job = Job::loaded(&trace).start(Picos(70)).time_factor(0.5).nodes(vec![4, 5]);
    let mut replay = Replay::builder().job(job).build().unwrap();
    assert_eq!(run(&mut replay, 1), [(1570, 0, 1, 9)]);
}

#[test]
fn each_task_has_its_time_factor() {
    let trace = loaded("VEF3 3 3 0 0 0 0 1000\n0 0 1 9 0 4 -1\n1 1 2 8 0 4 -1\n2 2 0 7 0 4 -1\n");
    let start = |factors: &[f64]| {
        let job = Job::loaded(&trace).time_factors(factors.to_vec());
        let mut starts = run(&mut Replay::builder().job(job).build().unwrap(), 1);
        starts.sort_unstable_by_key(|&(_, src, ..)| src);
        starts.into_iter().map(|(ready, ..)| ready).collect::<Vec<_>>()
    };
    assert_eq!(start(&[]), [4000, 4000, 4000]);
    assert_eq!(start(&[0.5, 3.0]), [2000, 12_000, 12_000]);
    assert_eq!(start(&[1.0, 0.0, 1.0]), [4000, 0, 4000]);
    let refused = Replay::builder().job(Job::loaded(&trace).time_factors(vec![1.0, f64::NAN])).build();
    assert!(refused.unwrap_err().to_string().contains("time factor NaN"));
}

/// Notes down what it is asked.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<Mutex<Vec<(u32, Raw)>>>);

impl Computing for Asked {
    fn time(&mut self, task: Rank, _number: u64, record: &Raw) -> Ticks {
        self.0.lock().unwrap().push((task.0, *record));
        Ticks(record.time + 1)
    }

    fn again(&self) -> Box<dyn Computing> {
        Box::new(self.clone())
    }
}

#[test]
fn computing_times_are_replaced_where_a_survey_sees_them() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(TWO_ISENDS.as_bytes()).unwrap();
    let sources: [&dyn Fn() -> Job; 3] =
        [&|| Job::open(file.path()).unwrap(), &|| Job::loaded(&loaded(TWO_ISENDS)), &|| {
            Job::container(container(TWO_ISENDS, &two_waits()))
        }];
    for (source, completion, records) in [
        (0, SendCompletion::Eager, 4),
        (1, SendCompletion::WhenSent, 4),
        (2, SendCompletion::Eager, 4),
        // Two waits stand before the third message.
        (2, SendCompletion::WhenSent, 6),
    ] {
        let asked = Asked::default();
        let job = sources[source]().computing(Box::new(asked.clone()));
        let mut replay = Replay::builder().job(job).send_completion(completion).build().unwrap();
        run(&mut replay, 1);
        let mut asked = asked.0.lock().unwrap().clone();
        asked.sort_by_key(|(task, _)| *task);
        let mut seen = Vec::new();
        sources[source]().survey(completion, &mut |task, record| seen.push((task.0, *record))).unwrap();
        seen.sort_by_key(|(task, _)| *task);
        assert_eq!(asked, seen, "source {source}");
        assert_eq!(seen.len(), records);
        // 10, 5 and 100 ticks, and one more for each record.
        if completion == SendCompletion::Eager {
            let finish = replay.progress(0).next().unwrap().finished;
            assert_eq!(finish, Some(Picos(118)), "source {source}");
        }
    }
}

#[test]
fn computing_in_front_of_first_records_is_left_out() {
    let trace = loaded("VEF3 2 3 0 0 0 0 1000\n0 0 1 100 4 10 -1\n1 1 1 0 0 30 -1\n2 1 1 0 2 5 0\n");
    let finish = |skipped: &[u64]| {
        let job = Job::loaded(&trace).skip(skipped.iter().copied().map(Ticks).collect());
        let mut replay = Replay::builder().job(job).build().unwrap();
        assert_eq!(run(&mut replay, 1000).len(), 1);
        replay.finish()
    };
    // The message arrives at 11 ns; the receiver computes for 30, then 5 behind the later of both.
    assert_eq!(finish(&[]), Picos(35_000));
    assert_eq!(finish(&[10, 12]), Picos(23_000));
    assert_eq!(finish(&[0, 40]), Picos(16_000));
    assert_eq!(finish(&[4]), Picos(35_000));
}

#[test]
fn a_stuck_replay_of_a_file_names_lines() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let text = "VEF3 4 3 1 2 4 0 1\nC0 0 1 2\n\
        G0 C0 6 0 0 0 0 1 -1\nG0 C0 6 1 0 0 0 1 -1\n\
        0 2 2 0 0 1 -1\n1 2 3 5 2 1 2\n2 3 2 5 6 1 1\n\
        G0 C0 6 2 0 0 1 1 0\nG1 C0 6 0 0 0 3 1 G0\n";
    file.write_all(text.as_bytes()).unwrap();
    let mut engine = Engine::builder().job(Job::open(file.path()).unwrap()).engine().unwrap();
    let outcome = yardstick::run(&mut engine, &yardstick::default_link()).unwrap();
    let stuck = outcome.stuck.unwrap();
    assert_eq!((stuck.live, stuck.waiting, stuck.circle), (0, 4, Some(1)));
    let told = stuck.to_string();
    for part in [
        "task 0, record 1, line 9 (G1) waits for G0 (Barrier): 1 message missing, from task 2 (not entered)",
        "task 2, record 1, line 6 (message 1 to task 3) waits for message 2 from task 3 to task 2 (record 0, line 7), \
         which has not started",
        "in a circle: task 2 waits for task 3 waits for task 2",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn what_goes_elsewhere_is_not_on_its_way() {
    // Task 2 waits for a message that goes to task 1, and task 0 for one that task 1 sends.
    let trace = loaded("VEF3 3 4 0 0 0 0 1\n0 0 1 9 4 1 -1\n1 2 2 0 2 1 0\n2 1 0 9 4 5 -1\n3 0 0 0 1 1 2\n");
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    run(&mut replay, 10);
    let told = replay.stuck().unwrap().to_string();
    for part in [
        "task 0, record 1 (mark 3) waits for its own message 2 from task 1 to task 0 (record 0), which another task sends",
        "task 2, record 0 (mark 1) waits for message 0 from task 0 to task 1 (record 0), which goes to another task",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("on its way"), "{told}");
}

#[test]
fn a_refused_delivery_is_in_the_report() {
    let trace = loaded("VEF3 2 3 0 0 0 0 1\n0 0 1 9 4 10 -1\n1 1 1 0 2 5 0\n2 1 0 8 1 5 1\n");
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    let message = replay.pop_ready(Picos(10)).unwrap().unwrap();
    replay.delivered(message.id, Picos(9)).unwrap_err();
    replay.delivered(LiveId::from_raw(7), Picos(12)).unwrap_err();
    let told = replay.stuck().unwrap().to_string();
    let refused =
        "refused: 2 reports of the simulator, first: time goes backwards: it is 10 ps, the call is for 9 ps";
    assert!(told.contains(refused) && told.contains("taken and not delivered: 1 message"), "{told}");
}

/// A trace in text as a container that says more.
fn container(text: &str, notes: &[(Option<u32>, u64, Note<'_>)]) -> Container {
    let mut reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    let settings = Settings { compress: false, keep_order: false };
    let mut writer =
        container::Writer::new(Vec::new(), reader.header(), &About::default(), settings).unwrap();
    for (task, place, note) in notes {
        writer.note(task.map(Rank), *place, note).unwrap();
    }
    while let Some(line) = reader.next().unwrap() {
        match line {
            Line::Communicator { id, members } => writer.communicator(id, members).unwrap(),
            Line::Message(message) => writer.message(&message).unwrap(),
            Line::Collective(part) => writer.collective(&part).unwrap(),
        }
    }
    let bytes = writer.finish().unwrap();
    Container::new(container::Reader::from_bytes(bytes, Path::new("test.vefx")).unwrap()).unwrap()
}

/// Two Isends, computing, and the waits in the other order; then a third message.
const TWO_ISENDS: &str = "VEF3 2 4 0 0 0 0 1\n\
    0 0 1 10 0 10 -1\n1 0 1 20 1 5 0\n2 0 1 30 1 100 1\n3 1 1 0 0 0 -1\n";

fn two_waits() -> Vec<(Option<u32>, u64, Note<'static>)> {
    let wait = |send, before, took| Note::SendWait { send, before: Ticks(before), took: Ticks(took) };
    vec![
        (Some(0), 0, Note::Detached),
        (Some(0), 1, Note::Detached),
        (Some(0), 2, wait(1, 20, 30)),
        (Some(0), 2, wait(0, 10, 25)),
    ]
}

#[test]
fn a_wait_of_an_isend_is_where_the_program_waits() {
    // When messages 0 and 1 are complete, and when message 2 then starts: 15 of its 100 ticks are behind the waits.
    for (first, second, third) in
        [(12, 16, 15 + 20 + 10 + 15), (12, 80, 80 + 10 + 15), (70, 40, 70 + 15), (200, 100, 200 + 15)]
    {
        let job = Job::container(container(TWO_ISENDS, &two_waits()));
        let mut replay =
            Replay::builder().job(job).send_completion(SendCompletion::WhenSent).build().unwrap();
        let mut sends = Vec::new();
        for (at, _) in [(10, 0), (15, 1)] {
            let message = replay.pop_ready(Picos(at)).unwrap().unwrap();
            assert_eq!(message.ready, Picos(at));
            sends.push(message.id);
        }
        assert_eq!(replay.next_ready(), None);
        let mut reports = [(first, sends[0]), (second, sends[1])];
        reports.sort_unstable();
        for (at, id) in reports {
            replay.sent(id, Picos(at.max(15))).unwrap();
        }
        assert_eq!(replay.next_ready(), Some(Picos(third)), "{first} {second}");
        let records: Vec<u64> = replay.progress(0).map(|task| task.records).collect();
        assert_eq!(records, [2, 1], "waits are no records");
    }
    // Without the waits the sender blocks where it sends, and an eager one nowhere.
    let mut text =
        Replay::builder().job(Job::loaded(&loaded(TWO_ISENDS))).send_completion(SendCompletion::WhenSent);
    let mut replay = text.build().unwrap();
    let id = replay.pop_ready(Picos(10)).unwrap().unwrap().id;
    assert_eq!(replay.next_ready(), None);
    replay.sent(id, Picos(70)).unwrap();
    assert_eq!(replay.next_ready(), Some(Picos(75)));
    text = Replay::builder().job(Job::container(container(TWO_ISENDS, &two_waits())));
    assert_eq!(run(&mut text.build().unwrap(), 1000), [(10, 0, 1, 10), (15, 0, 1, 20), (115, 0, 1, 30)]);
}

/// Of two threads, one sends while a detached send of the other is on its way.
#[test]
fn a_detached_send_holds_its_thread_up_as_little_behind_records_of_another() {
    const TWO_THREADS: &str = "VEF3 2 4 0 0 0 0 1\n\
        0 0 1 10 0 10 -1\n1 0 1 20 0 2 -1\n2 0 1 30 1 3 0\n3 1 1 0 0 0 -1\n";
    let job = Job::container(container(TWO_THREADS, &[(Some(0), 0, Note::Detached)]));
    let mut replay = Replay::builder().job(job).send_completion(SendCompletion::WhenSent).build().unwrap();
    for start in [10, 12, 15] {
        assert_eq!(replay.next_ready(), Some(Picos(start)));
        replay.pop_ready(Picos(start)).unwrap().unwrap();
    }
}

#[test]
fn a_synchronous_send_is_as_a_large_one() {
    const SMALL: &str = "VEF3 2 3 0 0 0 0 1\n0 0 1 10 0 10 -1\n1 0 1 20 1 5 0\n2 1 1 0 0 0 -1\n";
    let above = Bytes(1000);
    for (synchronous, completion) in [
        (true, SendCompletion::WhenSent),
        (true, SendCompletion::LargeWhenSent { above }),
        (true, SendCompletion::Rendezvous { above }),
        (false, SendCompletion::Rendezvous { above }),
        (true, SendCompletion::Eager),
    ] {
        let notes = [(Some(0), 0, Note::Synchronous)];
        let job = Job::container(container(SMALL, if synchronous { &notes } else { &[] }));
        let mut replay = Replay::builder().job(job).send_completion(completion).build().unwrap();
        let first = replay.pop_ready(Picos(10)).unwrap().unwrap().id;
        let waits = synchronous && completion != SendCompletion::Eager;
        assert_eq!(replay.next_ready(), (!waits).then_some(Picos(15)), "{completion:?}");
        if matches!(completion, SendCompletion::WhenSent | SendCompletion::LargeWhenSent { .. }) {
            replay.sent(first, Picos(30)).unwrap();
            assert_eq!(replay.next_ready(), Some(Picos(35)));
            continue;
        }
        replay.delivered(first, Picos(70)).unwrap();
        assert_eq!(replay.next_ready(), Some(Picos(if waits { 75 } else { 70 })), "{completion:?}");
    }
}

#[test]
fn a_wait_that_never_ends_is_explained() {
    let job = Job::container(container(TWO_ISENDS, &two_waits()));
    let rendezvous = SendCompletion::Rendezvous { above: Bytes(15) };
    let mut replay = Replay::builder().job(job).send_completion(rendezvous).build().unwrap();
    let first = replay.pop_ready(Picos(10)).unwrap().unwrap().id;
    replay.pop_ready(Picos(15)).unwrap().unwrap();
    replay.delivered(first, Picos(20)).unwrap();
    let stuck = replay.stuck().unwrap().to_string();
    let expected = "task 0, in front of record 2, waits for its own message 1 from task 0 to task 1 (record 1), \
        which is on its way";
    assert!(stuck.contains(expected), "{stuck}");
}

#[test]
fn a_container_tells_the_root_of_a_collective_without_bytes() {
    let text =
        "VEF3 3 0 1 1 3 0 1\nC0 0 1 2\nG0 C0 0 0 0 0 0 1 -1\nG0 C0 0 1 0 0 0 1 -1\nG0 C0 0 2 0 0 0 1 -1\n";
    let linear = "bcast = [{ algorithm = \"linear\" }]";
    let table = || replay::Table::from_toml(linear).unwrap();
    for (notes, root) in [(vec![], 0), (vec![(None, 0, Note::Root(Rank(2)))], 2)] {
        let job = Job::container(container(text, &notes));
        let mut replay = Replay::builder().job(job).algorithms(table()).build().unwrap();
        let seen = run(&mut replay, 10);
        assert!(seen.iter().all(|&(_, src, _, _)| src == root) && seen.len() == 2, "{seen:?}");
    }
}

#[test]
fn a_paused_replay_goes_on_as_if_nothing_had_been() {
    let trace = loaded(TWO_ISENDS);
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    let first = replay.pop_ready(Picos(10)).unwrap().unwrap();
    // To pause is not to call: what has been done can be asked for as often as one likes.
    let records = |replay: &Replay| replay.progress(0).map(|task| task.records).collect::<Vec<_>>();
    assert_eq!((records(&replay), records(&replay)), (vec![1, 1], vec![1, 1]));
    replay.delivered(first.id, Picos(12)).unwrap();
    assert_eq!(run(&mut replay, 1000), [(15, 0, 1, 20), (115, 0, 1, 30)]);
    assert_eq!((records(&replay), replay.is_complete()), (vec![3, 1], true));
}

#[test]
fn the_smallest_network_carries_a_trace() {
    // Examples are built before tests are run.
    let built = std::env::current_exe().unwrap();
    let example = built.parent().and_then(Path::parent).unwrap().join("examples/smallest");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(TWO_ISENDS.as_bytes()).unwrap();
    let ran = std::process::Command::new(&example).arg(file.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "3 messages, done after 2.000 µs\n");
}

/// Runs an engine whose only job runs `runs` times, each time when it is over, with a fixed time for every message; gives the messages
/// as (start, src, dst, bytes).
fn run_again(mut engine: Engine, runs: u32, flight: u64) -> Vec<(u64, u32, u32, u64)> {
    let mut events = replay::Queue::new();
    let mut seen = Vec::new();
    let mut out = Vec::new();
    let take = |out: &mut Vec<Next>, events: &mut replay::Queue<Next>, seen: &mut Vec<_>| {
        for next in out.drain(..) {
            if let Next::Message(message) = &next {
                seen.push((message.start.0, message.src.0, message.dst.0, message.bytes.0));
            }
            let delay = if matches!(next, Next::Message(_)) { flight } else { 0 };
            events.push(Picos(next.at().0 + delay), next);
        }
    };
    engine.begin(&mut out).unwrap();
    let mut run = 1;
    loop {
        take(&mut out, &mut events, &mut seen);
        let Some((now, event)) = events.pop(Picos::MAX) else { break };
        match event {
            Next::Message(message) | Next::Inside { message, .. } => {
                engine.delivered(message.id, now, &mut out).unwrap();
            }
            Next::Wake(wake) => engine.wake(wake, now, &mut out).unwrap(),
        }
        if run < runs && engine.is_over(0) {
            run += 1;
            let at = engine.finish();
            assert!(engine.repeat(0, at, &mut out).unwrap());
            let is_done = engine.repeat(0, at, &mut |_| panic!("a message")).unwrap();
            assert!(!is_done || engine.is_over(0), "a job that is not over does not begin again");
        }
    }
    assert!(engine.is_complete());
    seen
}

#[test]
fn a_job_runs_again_when_it_is_over() {
    // Messages and marks, the last message for nobody who waits; collectives of a communicator.
    let texts = [
        "VEF3 3 4 0 0 0 0 1000\n0 0 1 1000 4 5 -1\n1 1 0 500 6 2 0\n2 0 0 0 2 1 1\n3 2 1 9 0 50 -1\n",
        "VEF3 3 0 1 2 6 0 1000\nC0 0 1 2\n\
         G0 C0 6 0 0 0 0 1 -1\nG0 C0 6 1 0 0 0 2 -1\nG0 C0 6 2 0 0 0 3 -1\n\
         G1 C0 0 0 0 8 3 1 G0\nG1 C0 0 1 8 0 3 1 G0\nG1 C0 0 2 0 8 3 1 G0\n",
    ];
    for text in texts {
        for policy in [SendCompletion::Eager, SendCompletion::Rendezvous { above: Bytes(100) }] {
            let engine = |job: Job| Engine::builder().send_completion(policy).job(job).engine().unwrap();
            let once = run_again(engine(Job::loaded(&loaded(text))), 1, 100_000);
            assert!(once.len() > 2);
            for job in [Job::loaded(&loaded(text)), Job::container(container(text, &[]))] {
                let thrice = run_again(engine(job), 3, 100_000);
                assert_eq!(thrice.len(), 3 * once.len());
                // Each run has the messages of the first, later by the same time.
                for (run, of_run) in thrice.chunks(once.len()).enumerate() {
                    let later = of_run[0].0 - once[0].0;
                    assert!(run == 0 || later > 100_000);
                    let shifted: Vec<_> = once.iter().map(|m| (m.0 + later, m.1, m.2, m.3)).collect();
                    assert_eq!(of_run, shifted);
                }
            }
        }
    }
}

#[test]
fn a_trace_that_cannot_be_searched_is_not_said_to_lack_messages() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, b"VEF3 2 2 0 0 0 0 1\n0 0 1 1 6 0 1\n1 1 0 1 6 0 0\n").unwrap();
    let replay = Replay::builder().job(Job::open(file.path()).unwrap()).build().unwrap();
    assert!(replay.stuck().unwrap().to_string().contains("in a circle"));
    file.close().unwrap();
    let stuck = replay.stuck().unwrap();
    let text = stuck.to_string();
    assert!(stuck.unsearched.is_some() && text.contains("could not be searched"), "{text}");
    assert!(text.contains("waits for message 1, which has not come"), "{text}");
    assert!(!text.contains("not in the trace"), "{text}");
}

/// The first message starts, and with it the trace is wrong: its task's next record would start past the end of time.
#[test]
fn no_message_is_taken_in_the_step_in_which_the_trace_ends_in_an_error() {
    let text = "VEF3 2 2 0 0 0 0 1000\n0 0 1 100 4 10 -1\n1 0 1 50 4 18446744073709551615 -1\n";
    for most in [1, 5] {
        let mut replay = Replay::builder().job(Job::loaded(&loaded(text))).build().unwrap();
        let mut taken = 0;
        let error = replay.pop_ready_batch(Picos(10_000), most, |_| taken += 1).unwrap_err();
        assert!(matches!(error, ReplayError::Overflow { .. }), "{error}");
        assert_eq!(taken, 0);
        assert!(matches!(replay.pop_ready(Picos(10_000)), Err(ReplayError::Ended)));
    }
}

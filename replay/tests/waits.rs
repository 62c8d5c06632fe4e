//! Who waits for whom: the parts of waits, their causes and their places.

use replay::{
    Bytes, Cause, Container, Engine, Job, Left, Link, Loaded, Met, Next, Picos, ReplayError, SendCompletion,
    Sink, Started, Wait, WaitSums, WaitingFor, WaitingIn, Waits, yardstick,
};
use std::path::Path;
use std::sync::Arc;
use vef_format::container::{self, About, Note, Settings};
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::text::{Line, Reader};

/// Task 0 computes 5 µs, sends 1000 B to task 1, computes 20 µs and enters a Barrier. Task 1 computes 1 µs, waits for the message, computes
/// 1 µs and enters the Barrier.
const TEXT: &str = "VEF3 2 5 1 1 2 0 1000\nC0 0 1\n\
    0 0 1 1000 4 5000 -1\nG0 C0 6 0 0 0 1 20000 0\n4 0 0 0 3 0 G0\n\
    1 1 1 0 0 1000 -1\n2 1 1 0 2 0 0\nG0 C0 6 1 0 0 1 1000 2\n5 1 1 0 3 0 G0\n";

fn job() -> Job {
    let mut reader = Reader::from_bytes(TEXT.as_bytes(), Path::new("test.vef")).unwrap();
    let settings = Settings { compress: false, keep_order: true };
    let mut writer =
        container::Writer::new(Vec::new(), reader.header(), &About::default(), settings).unwrap();
    let notes = [
        (0, Note::Call("MPI_Send")),
        (1, Note::Call("MPI_Barrier")),
        (1, Note::Phase { begin: true, name: "end" }),
    ];
    notes.iter().for_each(|(place, note)| writer.note(Some(Rank(0)), *place, note).unwrap());
    let notes = [
        (0, Note::Call("MPI_Wait")),
        (2, Note::Call("MPI_Barrier")),
        (1, Note::Phase { begin: true, name: "end" }),
    ];
    notes.iter().for_each(|(place, note)| writer.note(Some(Rank(1)), *place, note).unwrap());
    while let Some(line) = reader.next().unwrap() {
        match line {
            Line::Communicator { id, members } => writer.communicator(id, members).unwrap(),
            Line::Message(message) => writer.message(&message).unwrap(),
            Line::Collective(part) => writer.collective(&part).unwrap(),
        }
    }
    let reader = container::Reader::from_bytes(writer.finish().unwrap(), Path::new("test.vefx")).unwrap();
    Job::container(Container::new(reader).unwrap())
}

struct Watch {
    waits: Waits,
    sums: WaitSums,
    seen: Vec<Wait>,
}

impl Sink for Watch {
    fn take(&mut self, _: Next) {}

    fn started(&mut self, started: &Started) {
        self.waits.started(started, |wait| self.seen.push(*wait));
        self.sums.started(started);
    }

    fn left(&mut self, left: &Left) {
        self.waits.left(left);
        self.sums.left(left);
    }

    fn met(&mut self, met: &Met) {
        self.waits.met(met);
        self.sums.met(met);
    }
}

fn text_job(text: &str) -> Job {
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    Job::loaded(&Arc::new(Loaded::read(reader, OpCodes::default()).unwrap()))
}

fn wait(task: u32, record: u64, cause: Cause, on: Option<u32>, from: u64, to: u64) -> Wait {
    let (from, to) = (Picos(from), Picos(to));
    Wait { job: 0, task: Rank(task), record, cause, on: on.map(Rank), from, to }
}

/// Task 0 sends 1000 bytes to task 1, which computes 10 µs, and as many to task 2, which computes 500 µs; it waits for the first, then for the second.
/// A message takes 2 µs.
#[test]
fn each_send_waits_for_its_own_receiver() {
    let text = "VEF3 3 8 0 0 0 0 1000\n0 0 1 1000 4 0 -1\n1 0 2 1000 4 0 -1\n2 0 0 0 1 0 0\n3 0 0 0 1 0 1\n\
        4 1 1 0 0 10000 -1\n5 1 1 0 2 0 0\n6 2 2 0 0 500000 -1\n7 2 2 0 2 0 1\n";
    let policy = SendCompletion::RendezvousInCalls { above: Bytes(999) };
    let mut engine = Engine::builder().job(text_job(text)).send_completion(policy).engine().unwrap();
    let (waits, sums) = (Waits::new(&engine), WaitSums::new(&engine, vec![None]));
    let mut watch = Watch { waits, sums, seen: Vec::new() };
    let link = Link::new(Picos(1_000_000), 8_000_000_000).unwrap();
    assert!(yardstick::watch(&mut engine, &link, Picos::MAX, &mut watch).unwrap().complete());
    watch.seen.retain(|wait| wait.task == Rank(0));
    assert_eq!(
        watch.seen,
        [
            wait(0, 2, Cause::LateReceiver, Some(1), 0, 10_000_000),
            wait(0, 2, Cause::Send, None, 10_000_000, 12_000_000),
            wait(0, 3, Cause::LateReceiver, Some(2), 12_000_000, 500_000_000),
            wait(0, 3, Cause::Send, None, 500_000_000, 502_000_000),
        ]
    );
    let pairs: Vec<_> = watch.sums.pairs().0.iter().map(|pair| (pair.on_task, pair.time_ps)).collect();
    assert_eq!(pairs, [(2, 488_000_000), (1, 10_000_000), (0, 2_000_000), (0, 2_000_000)]);
}

/// The trace ends with a barrier that no record waits for; task 0 enters it first.
#[test]
fn waits_behind_the_last_records_are_for_collectives() {
    let text = "VEF3 2 1 1 1 2 0 1000\nC0 0 1\n0 0 0 0 0 5000 -1\nG0 C0 6 0 0 0 1 1000 0\nG0 C0 6 1 0 0 0 20000 -1\n";
    let mut engine = Engine::builder().job(text_job(text)).engine().unwrap();
    let (waits, sums) = (Waits::new(&engine), WaitSums::new(&engine, vec![None]));
    let mut watch = Watch { waits, sums, seen: Vec::new() };
    let link = Link::new(Picos(1_000_000), 8_000_000_000).unwrap();
    assert!(yardstick::watch(&mut engine, &link, Picos::MAX, &mut watch).unwrap().complete());
    assert_eq!(watch.seen, []);
    watch.waits.end(|wait| watch.seen.push(*wait));
    watch.sums.end();
    // The message of task 0 is there when task 1 enters.
    let late = wait(0, 2, Cause::LateMember, Some(1), 6_000_000, 20_000_000);
    assert_eq!(watch.seen, [late, wait(0, 2, Cause::Collective, None, 20_000_000, 21_000_000)]);
    let times: Vec<_> = watch.sums.places().iter().map(|place| (place.cause, place.time_ps)).collect();
    assert_eq!(times, [(Cause::LateMember, 14_000_000), (Cause::Collective, 1_000_000)]);
}

/// What a receiver does is known up to the latest call: earlier ones are refused.
#[test]
fn calls_are_in_order_where_messages_wait_for_receivers() {
    let text = "VEF3 2 3 0 0 0 0 1000\n0 0 1 1000 4 10000 -1\n1 1 1 0 0 5000 -1\n2 1 1 0 2 0 0\n";
    let policy = SendCompletion::RendezvousInCalls { above: Bytes(999) };
    let mut engine = Engine::builder().job(text_job(text)).send_completion(policy).engine().unwrap();
    let mut next = Vec::new();
    engine.begin(&mut next).unwrap();
    let [Next::Wake(sender), Next::Wake(receiver)] = next[..] else { panic!("{next:?}") };
    engine.wake(sender, sender.at, &mut |_| {}).unwrap();
    let early = engine.wake(receiver, receiver.at, &mut |_| {});
    assert!(matches!(early, Err(ReplayError::Backwards { clock: Picos(10_000_000), .. })), "{early:?}");
    let mut messages = Vec::new();
    engine.wake(receiver, Picos(12_000_000), &mut messages).unwrap();
    let [Next::Wake(held)] = messages[..] else { panic!("{messages:?}") };
    engine.wake(held, held.at, &mut messages).unwrap();
    assert!(matches!(messages[1], Next::Message(message) if message.start == Picos(12_000_000)));
}

/// In a broadcast whose root comes last, the others wait for the root, which leaves before they have entered; and not for who comes
/// between.
#[test]
fn members_of_a_broadcast_wait_for_its_root() {
    let text = "VEF3 4 4 1 1 4 0 1000\nC0 0 1 2 3\nG0 C0 0 2 0 4 0 5000 -1\nG0 C0 0 1 0 4 0 10 -1\nG0 C0 0 3 0 4 0 20 -1\n\
        G0 C0 0 0 4 0 0 10000 -1\n0 0 0 0 3 10 G0\n1 1 1 0 3 10 G0\n2 2 2 0 3 10 G0\n3 3 3 0 3 10 G0\n";
    let mut engine = Engine::builder().job(text_job(text)).engine().unwrap();
    let mut watch =
        Watch { waits: Waits::new(&engine), sums: WaitSums::new(&engine, vec![None]), seen: Vec::new() };
    let link = Link::new(Picos(1_000_000), 8_000_000_000).unwrap();
    assert!(yardstick::watch(&mut engine, &link, Picos::MAX, &mut watch).unwrap().complete());
    for (task, entered) in [(1, 10_000), (2, 5_000_000), (3, 20_000)] {
        let of_task: Vec<&Wait> = watch.seen.iter().filter(|wait| wait.task == Rank(task)).collect();
        let &[late, under_way] = &of_task[..] else { panic!("{of_task:?}") };
        assert_eq!((late.cause, late.on), (Cause::LateMember, Some(Rank(0))), "{late:?}");
        assert_eq!((late.from, late.to), (Picos(entered), Picos(10_000_000)), "{late:?}");
        assert_eq!(under_way.cause, Cause::Collective);
    }
    assert_eq!(watch.seen.len(), 6);
}

#[test]
fn waits_are_divided_by_cause() {
    let labels = job().labels().unwrap();
    let mut engine = Engine::builder().job(job()).engine().unwrap();
    let (waits, sums) = (Waits::new(&engine), WaitSums::new(&engine, vec![labels]));
    let mut watch = Watch { waits, sums, seen: Vec::new() };
    // A message takes 1 µs and 1 ns a byte.
    let link = Link::new(Picos(1_000_000), 8_000_000_000).unwrap();
    let outcome = yardstick::watch(&mut engine, &link, Picos::MAX, &mut watch).unwrap();
    assert!(outcome.complete());
    assert_eq!(
        watch.seen,
        [
            wait(1, 1, Cause::LateSender, Some(0), 1_000_000, 5_000_000),
            wait(1, 1, Cause::Message, Some(0), 5_000_000, 7_000_000),
            wait(1, 3, Cause::LateMember, Some(0), 8_000_000, 25_000_000),
            wait(1, 3, Cause::Collective, None, 25_000_000, 26_000_000),
        ]
    );
    let place = |cause, function: &str, phase: Option<&str>, time_ps| {
        let (function, phase) = (Some(function.into()), phase.map(Into::into));
        WaitingIn { cause, function, phase, waits: 1, time_ps }
    };
    assert_eq!(
        watch.sums.places(),
        [
            place(Cause::LateMember, "MPI_Barrier", Some("end"), 17_000_000),
            place(Cause::LateSender, "MPI_Wait", None, 4_000_000),
            place(Cause::Message, "MPI_Wait", None, 2_000_000),
            place(Cause::Collective, "MPI_Barrier", Some("end"), 1_000_000),
        ]
    );
    let pair = |cause, time_ps| WaitingFor { job: 0, task: 1, on_task: 0, cause, waits: 1, time_ps };
    let pairs = [
        pair(Cause::LateMember, 17_000_000),
        pair(Cause::LateSender, 4_000_000),
        pair(Cause::Message, 2_000_000),
    ];
    assert_eq!(watch.sums.pairs(), (pairs.to_vec(), 0));
}

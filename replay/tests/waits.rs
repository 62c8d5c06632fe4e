//! Who waits for whom: the parts of waits, their causes and their places.

use replay::{
    Cause, Container, Engine, Job, Left, Link, Next, Picos, Sink, Started, Wait, WaitSums, WaitingFor,
    WaitingIn, Waits, yardstick,
};
use std::path::Path;
use vef_format::container::{self, About, Note, Settings};
use vef_format::ids::Rank;
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
    let wait = |record, cause, on: Option<u32>, from, to| Wait {
        job: 0,
        task: Rank(1),
        record,
        cause,
        on: on.map(Rank),
        from: Picos(from),
        to: Picos(to),
    };
    assert_eq!(
        watch.seen,
        [
            wait(1, Cause::LateSender, Some(0), 1_000_000, 5_000_000),
            wait(1, Cause::Message, Some(0), 5_000_000, 7_000_000),
            wait(3, Cause::LateMember, Some(0), 8_000_000, 25_000_000),
            wait(3, Cause::Collective, None, 25_000_000, 26_000_000),
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

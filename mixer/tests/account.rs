//! The account of a task's time: its parts sum to the captured run, each by what the call waited for.

use crate::capture::{self, Program, What, sending};
use mixer::{Options, Quiet, Summary, mix};
use std::path::Path;
use vef_format::account::TimePart;
use vef_format::capture::event::*;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::{CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// Function, part, calls, nanoseconds.
type Entry = (String, TimePart, u64, u64);

/// Mixes the capture of `program` into a container; returns its summary and the account of rank 0.
fn account(program: &Program) -> (Summary, Vec<Entry>) {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    capture::write(&place("capture"), &program.tasks);
    let summary = mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
    (summary, read(&place("t.vefx")))
}

fn read(container: &Path) -> Vec<Entry> {
    let reader = Reader::open(container).unwrap();
    let mut notes = reader.notes(Section::Times, Rank(0)).unwrap();
    let mut entries = Vec::new();
    while let Some((place, note)) = notes.next(&reader).unwrap() {
        let Note::Time { part, calls, took, function } = note else { panic!("{note:?}") };
        assert_eq!(place, entries.len() as u64);
        entries.push((function.to_owned(), part, calls, took.0));
    }
    entries
}

fn request(number: u64) -> RequestId {
    RequestId { thread: 0, number }
}

/// Completes `count` requests from number `first` on, by one call.
fn complete(program: &mut Program, function: &'static str, first: u64, count: u64) {
    let run = Completions::Run { first: request(first), count };
    program.add(0, 0, What::By(function, Action::Complete(run)));
}

fn send(program: &mut Program, function: &'static str, number: Option<u64>) {
    program.add(0, 0, What::By(function, Action::Send(sending(1, 0, 64, number.map(request)))));
    program.receive(1, 0, 0);
}

fn post(program: &mut Program, number: u64) {
    let (comm, source, tag) = (capture::WORLD, Some(CommRank(1)), Some(0));
    let (bytes, datatype) = (Bytes(64), DatatypeId(0));
    let posted = PostReceive { comm, source, tag, bytes, datatype, request: request(number) };
    program.add(0, 0, What::By("MPI_Irecv", Action::PostReceive(posted)));
    program.send(1, 0, 0, 64);
}

fn reduce(program: &mut Program, function: &'static str, number: Option<u64>) {
    for rank in 0..2 {
        let request =
            number.map(|number| RequestId { thread: 0, number: if rank == 0 { number } else { 0 } });
        let part = Collective {
            operation: Operation::Allreduce,
            comm: capture::WORLD,
            root: None,
            amounts: Amounts { send: Bytes(8), recv: Bytes(8) },
            count: 0,
            datatype: DatatypeId(0),
            recv_datatype: None,
            request,
            send_counts: &[],
            recv_counts: &[],
        };
        program.add(rank, 0, What::By(function, Action::Collective(part)));
    }
}

#[test]
fn each_call_counts_for_what_it_waits_for() {
    let mut program = Program::new(2);
    send(&mut program, "MPI_Send", None);
    send(&mut program, "MPI_Isend", Some(0));
    complete(&mut program, "MPI_Wait", 0, 1);
    post(&mut program, 1);
    complete(&mut program, "MPI_Wait", 1, 1);
    // One wait for a send and a receive is a wait for the message.
    send(&mut program, "MPI_Isend", Some(2));
    post(&mut program, 3);
    complete(&mut program, "MPI_Waitall", 2, 2);
    reduce(&mut program, "MPI_Allreduce", None);
    reduce(&mut program, "MPI_Iallreduce", Some(4));
    complete(&mut program, "MPI_Wait", 4, 1);
    send(&mut program, "MPI_Isend", Some(5));
    let polls = Action::Polls { count: 3 };
    program.add(0, 0, What::By("MPI_Test", polls));
    complete(&mut program, "MPI_Test", 5, 1);
    program.add(0, 0, What::By("MPI_Put", Action::Other { bytes: Bytes(8), detail: Detail::None }));
    program.finish();
    let (start, end) = (program.tasks[0][0].end, program.tasks[0].last().unwrap().start);
    let (summary, entries) = account(&program);
    let of = |function: &str, part| {
        let found: Vec<_> = entries.iter().filter(|entry| entry.0 == function && entry.1 == part).collect();
        assert_eq!(found.len(), 1, "{function} {part:?}: {entries:?}");
        (found[0].2, found[0].3)
    };
    // Each call takes 10 ns.
    assert_eq!(of("MPI_Init", TimePart::StartUp), (1, 10));
    assert_eq!(of("MPI_Send", TimePart::Send), (1, 10));
    assert_eq!(of("MPI_Isend", TimePart::Own), (3, 30));
    assert_eq!(of("MPI_Irecv", TimePart::Own), (2, 20));
    assert_eq!(of("MPI_Wait", TimePart::Message), (1, 10));
    assert_eq!(of("MPI_Wait", TimePart::Send), (1, 10));
    assert_eq!(of("MPI_Wait", TimePart::Collective), (1, 10));
    assert_eq!(of("MPI_Waitall", TimePart::Message), (1, 10));
    assert_eq!(of("MPI_Allreduce", TimePart::Collective), (1, 10));
    assert_eq!(of("MPI_Iallreduce", TimePart::Own), (1, 10));
    // The poll before succeeds.
    assert_eq!(of("MPI_Test", TimePart::Polling), (2, 20));
    assert_eq!(of("MPI_Put", TimePart::Window), (1, 10));
    // The parts are the run, to the nanosecond.
    let run: u64 = entries.iter().filter(|entry| entry.1 != TimePart::StartUp).map(|entry| entry.3).sum();
    assert_eq!(run, end - start);
    assert_eq!(of("", TimePart::Outside), (0, end - start - 150));
    let times = summary.spent.times;
    // Rank 1 calls the same collectives; its other calls have no function here.
    assert_eq!((times.polling, times.window, times.message), (20, 10, 20));
}

/// Of a capture without a call table the calls are known, but not what they leave of the run.
#[test]
fn what_a_capture_without_names_does_not_have_is_unknown() {
    let mut program = Program::new(2);
    program.send(0, 1, 0, 8);
    program.receive(1, 0, 0);
    program.call(0, Action::Send(sending(1, 0, 64, Some(request(0)))));
    program.receive(1, 0, 0);
    program.complete(0, 0, Outcome::Done);
    program.call(0, Action::Polls { count: 3 });
    for rank in 0..2 {
        program.call(rank, Action::Creation(Creation { comm: capture::WORLD, request: None }));
    }
    program.call(0, Action::Other { bytes: Bytes(8), detail: Detail::None });
    // Calls of the helper without a name: MPI_Put has one.
    if let Some(put) = program.tasks[0].last_mut() {
        put.what = What::Plain(Action::Polls { count: 1 });
    }
    program.finish();
    let run = |rank: usize| program.tasks[rank].last().unwrap().start - program.tasks[rank][0].end;
    let (summary, entries) = account(&program);
    let of =
        |part| entries.iter().find(|entry| entry.1 == part).map(|entry| (entry.0.as_str(), entry.2, entry.3));
    assert_eq!(of(TimePart::StartUp), Some(("MPI_Init", 1, 10)));
    // A blocking send, and the wait for the other one.
    assert_eq!(of(TimePart::Send), Some(("", 2, 20)));
    assert_eq!(of(TimePart::Own), Some(("", 1, 10)));
    assert_eq!(of(TimePart::Polling), Some(("", 2, 20)));
    assert_eq!(of(TimePart::Communicator), Some(("", 1, 10)));
    assert_eq!((of(TimePart::Outside), of(TimePart::Unknown)), (None, Some(("", 0, run(0) - 60))));
    assert_eq!(summary.spent.times.running(), run(0) + run(1));
}

/// Ranks that are killed, clocks that jump, captures of version 3: the parts are the captured time, or, where calls took longer than that,
/// the calls.
#[test]
fn accounts_of_ranks_that_were_killed_and_of_clocks_that_jump() {
    for (named, version) in [(false, 7), (true, 7), (true, 3)] {
        let call = |action| if named { What::By("MPI_Send", action) } else { What::Plain(action) };
        let mut program = Program::new(2);
        for _ in 0..3 {
            program.add(0, 0, call(Action::Send(sending(1, 0, 64, None))));
            program.receive(1, 0, 0);
        }
        // Rank 0 is killed: no MPI_Finalize. Its clock jumps by an hour in front of its last call.
        let (init, jump) = (program.tasks[0][0].end, 3_600_000_000_000);
        let event = program.tasks[0].last_mut().unwrap();
        (event.start, event.end) = (event.start + jump, event.end + jump);
        let last = event.end;
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        capture::write(&place("capture"), &program.tasks);
        for file in std::fs::read_dir(place("capture")).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes[12], 8, "the version");
            bytes[12] = version;
            std::fs::write(&path, bytes).unwrap();
        }
        let summary = mix(&place("capture"), &place("t.vefx"), &Options::default(), &Quiet).unwrap();
        let entries = read(&place("t.vefx"));
        let run: u64 = entries.iter().filter(|entry| entry.1 != TimePart::StartUp).map(|entry| entry.3).sum();
        assert_eq!(run, last - init, "{entries:?}");
        let rest = if named { TimePart::Outside } else { TimePart::Unknown };
        assert!(entries.iter().any(|entry| entry.1 == rest && entry.3 == run - 30), "{entries:?}");
        // Those of rank 1 have no names.
        assert_eq!((summary.spent.times.send, summary.spent.times.message), (30, 30));
    }
}

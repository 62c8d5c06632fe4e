//! Times in which a thread had no core: in no computing time, unless they are kept.

use crate::capture::{self, Happened, Program, What, receiving, sending};
use mixer::{Options, Quiet, mix};
use vef_format::account::TimePart;
use vef_format::capture::event::*;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::Rank;
use vef_format::units::Ticks;

/// Task 0 has no core for so long: in front of its first send, between polls and a reception, in front of a phase, and of a wait for a send.
const WITHOUT: [u64; 4] = [2000, 1000, 300, 1500];

fn program() -> Program {
    let mut program = Program::new(2);
    let request = RequestId { thread: 0, number: 0 };
    // Rank 0 leaves MPI_Init at 1110.
    let mut call = |start, end, action| {
        program.tasks[0].push(Happened { start, end, thread: 0, what: What::Plain(action) });
    };
    call(1210, 1210 + WITHOUT[0], Action::Preempted);
    call(5000, 5010, Action::Send(sending(1, 1, 64, None)));
    call(6000, 6400, Action::Polls { count: 4 });
    call(6400, 6400 + WITHOUT[1], Action::Preempted);
    call(8000, 8010, Action::Receive(receiving(1, 0)));
    call(8010, 8010 + WITHOUT[2], Action::Preempted);
    call(9000, 9000, Action::Phase { begin: true, name: "solve" });
    call(10_000, 10_010, Action::Send(sending(1, 2, 64, Some(request))));
    call(10_010, 10_010 + WITHOUT[3], Action::Preempted);
    let done = Completions::Run { first: request, count: 1 };
    call(13_000, 13_010, Action::Complete(done));
    program.now = 20_000;
    program.send(1, 0, 0, 64).receive(1, 0, 1).receive(1, 0, 2);
    program.finish();
    program
}

#[test]
fn times_without_a_core_are_in_no_computing_time() {
    for keep_preempted in [false, true] {
        let out = |at: usize| if keep_preempted { 0 } else { WITHOUT[at] };
        let dir = tempfile::tempdir().unwrap();
        let [capture, text, container] = ["capture", "t.vef", "t.vefx"].map(|name| dir.path().join(name));
        capture::write(&capture, &program().tasks);
        let options = Options { keep_preempted, ..Options::default() };
        let summary = mix(&capture, &text, &options, &Quiet).unwrap();
        mix(&capture, &container, &options, &Quiet).unwrap();

        let text = std::fs::read_to_string(text).unwrap();
        let of_task = text.lines().skip(2).filter(|line| line.split(' ').nth(1) == Some("0"));
        let times: Vec<u64> = of_task.map(|line| line.split(' ').nth(5).unwrap().parse().unwrap()).collect();
        let expected = [5000 - 1110 - out(0), 8000 - 5010 - 400 - out(1), 10_000 - 8010 - out(2)];
        assert_eq!(times[..3], expected, "keep: {keep_preempted}");

        let spent = summary.spent;
        let all = WITHOUT.iter().sum::<u64>();
        assert_eq!(spent.preempted_kept, if keep_preempted { all } else { 0 });
        let reader = Reader::open(&container).unwrap();
        let notes = |section| {
            let mut notes = reader.notes(section, Rank(0)).unwrap();
            let mut found = Vec::new();
            while let Some((_, note)) = notes.next(&reader).unwrap() {
                match note {
                    Note::SendWait { before: Ticks(before), took: Ticks(took), .. } => {
                        found.push((before, took))
                    }
                    Note::BeforePhase(Ticks(before)) => found.push((before, 0)),
                    Note::Time { part: TimePart::Preempted, took: Ticks(took), .. } => found.push((took, 0)),
                    _ => {}
                }
            }
            found
        };
        assert_eq!(notes(Section::Sends), [(13_000 - 10_010 - out(3), 0)]);
        assert_eq!(notes(Section::Moments), [(9000 - 8010 - out(2), 0)]);
        // Without names of functions, what calls leave of the run is unknown, but for this.
        assert_eq!(notes(Section::Times), [(all, 0)]);
    }
}

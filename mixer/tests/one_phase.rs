//! Captures of one phase: what ranks do outside of it is not known, and in no computing time.

use crate::capture::{self, Happened, Program, What, receiving, sending};
use mixer::{Options, Quiet, mix};
use vef_format::account::TimePart;
use vef_format::capture::RankInfo;
use vef_format::capture::event::*;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::Rank;

/// Task 0 leaves `MPI_Init` at 1110. It computes 500 in the first phase, and 700 in the second one, which it enters again meanwhile, and makes a communicator
/// between them. Perhaps another thread sends in both.
fn program(threads: bool) -> Program {
    let mut program = Program::new(2);
    let creation =
        What::By("MPI_Comm_dup", Action::Creation(Creation { comm: capture::WORLD, request: None }));
    program.tasks[0].push(Happened { start: 4000, end: 4900, thread: 0, what: creation.clone() });
    let mut call = |thread, start, end, action| {
        if thread == 0 || threads {
            let what = match action {
                Action::Send(_) => What::By("MPI_Send", action),
                Action::Receive(_) => What::By("MPI_Recv", action),
                _ => What::Plain(action),
            };
            program.tasks[0].push(Happened { start, end, thread, what });
        }
    };
    let mark = |begin| Action::Phase { begin, name: "solve" };
    call(0, 2000, 2000, mark(true));
    call(0, 2300, 2310, Action::Send(sending(1, 1, 64, None)));
    call(1, 2040, 2050, Action::Send(sending(1, 5, 64, None)));
    call(0, 2510, 2510, mark(false));
    // Calls that make no record and are recorded all the same.
    call(0, 5000, 5300, Action::CommunicatorFree(capture::WORLD));
    // Without a core, of which the time outside the phase has a part.
    call(0, 6000, 6900, Action::Preempted);
    call(0, 7000, 7000, mark(true));
    call(0, 7100, 7100, mark(true));
    call(0, 7200, 7200, mark(false));
    call(0, 7500, 7900, Action::Receive(receiving(1, 0)));
    call(1, 7000 + 60, 8000, Action::Send(sending(1, 6, 64, None)));
    call(0, 8100, 8100, mark(false));
    program.tasks[0].sort_by_key(|call| call.start);
    program.now = 20_000;
    program.send(1, 0, 0, 64).receive(1, 0, 1).add(1, 0, creation);
    if threads {
        program.receive(1, 0, 5).receive(1, 0, 6);
    }
    program.finish();
    program
}

#[test]
fn time_outside_the_phase_is_no_computing() {
    for threads in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let [capture, text, container] = ["capture", "t.vef", "t.vefx"].map(|name| dir.path().join(name));
        let program = program(threads);
        let finalised = program.tasks[0].last().unwrap().start;
        capture::write_with(&capture, &program.tasks, |rank| RankInfo {
            library: "Open MPI v4.1.4".into(),
            only_phase: (rank == 0).then(|| "solve".to_owned()),
            ..RankInfo::default()
        });
        mix(&capture, &text, &Options::default(), &Quiet).unwrap();
        mix(&capture, &container, &Options::default(), &Quiet).unwrap();
        if !threads {
            let text = std::fs::read_to_string(text).unwrap();
            // The first time has the 10 of the definition of the communicator, too.
            let expected =
                ["0 0 1 64 4 310 -1", "G0 C0 2 0 4 4 1 200 0", "1 0 0 0 3 500 G2", "4 0 0 0 2 200 2"];
            assert!(expected.iter().all(|line| text.lines().any(|other| other == *line)), "{text}");
        }

        let reader = Reader::open(&container).unwrap();
        let mut notes = reader.notes(Section::Times, Rank(0)).unwrap();
        let mut unknown = 0;
        while let Some((_, note)) = notes.next(&reader).unwrap() {
            if let Note::Time { part, took, .. } = note {
                assert_ne!(part, TimePart::Preempted);
                unknown += if part == TimePart::Unknown { took.0 } else { 0 };
            }
        }
        let between = 7000 - 2510;
        let other = if threads { 2000 - 1110 + between } else { 0 };
        assert_eq!(unknown, 2000 - 1110 - 10 + between - 900 + finalised - 8100 + other);
    }
}

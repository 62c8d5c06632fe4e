//! Collectives replaced by the messages of an algorithm.

use crate::capture::{self, Program, What};
use crate::model;
use mixer::{Options, Quiet, Summary, Table, mix};
use proptest::prelude::*;
use vef_format::capture::event::*;
use vef_format::ids::CommRank;
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// Lowers the collectives of `tasks`; returns the lines of the trace, and the summary.
fn lowered(tasks: &[Vec<capture::Happened>], jobs: usize) -> (Vec<String>, Summary) {
    let dir = tempfile::tempdir().unwrap();
    let (place, trace) = (dir.path().join("capture"), dir.path().join("t.vef"));
    capture::write(&place, tasks);
    let table = Table::builtin("default");
    assert!(table.is_some());
    let options = Options { lower_collectives: table, jobs, ..Options::default() };
    let summary = mix(&place, &trace, &options, &Quiet).unwrap();
    let text = std::fs::read_to_string(trace).unwrap();
    (text.lines().map(str::to_owned).collect(), summary)
}

#[test]
fn a_broadcast_goes_down_its_tree() {
    let mut program = Program::new(3);
    for rank in 0..3 {
        program.call(
            rank,
            Action::Collective(Collective {
                operation: Operation::Bcast,
                comm: capture::WORLD,
                root: Some(CommRank(0)),
                amounts: match rank {
                    0 => Amounts { send: Bytes(64), recv: Bytes(0) },
                    _ => Amounts { send: Bytes(0), recv: Bytes(64) },
                },
                count: 0,
                datatype: DatatypeId(0),
                recv_datatype: None,
                request: None,
                send_counts: &[],
                recv_counts: &[],
            }),
        );
    }
    let (lines, summary) = lowered(&program.finish().tasks, 1);
    assert_eq!((summary.messages, summary.marks, summary.collectives), (2, 2 + 3, 0));
    assert_eq!(summary.bytes, Bytes(128));
    assert_eq!(lines[1], "C0 0 1 2");
    let of = |task: &str| -> Vec<&String> {
        lines[2..].iter().filter(|line| line.split(' ').nth(1) == Some(task)).collect()
    };
    // The root's two messages, the second without time; then Finalize, timed from the END of the call.
    assert_eq!(of("0"), ["0 0 2 64 4 590 -1", "1 0 1 64 5 0 0", "4 0 0 0 1 290 1"]);
    assert_eq!(of("1"), ["2 1 1 0 0 490 -1", "5 1 1 0 2 290 1"]);
}

/// A member sends on what it has received.
#[test]
fn a_broadcast_is_passed_on_when_it_has_come() {
    let mut program = Program::new(4);
    for rank in 0..4 {
        program.collective(rank, Operation::Bcast, Some(0));
    }
    let (lines, _) = lowered(&program.finish().tasks, 1);
    let of_2 =
        lines[2..].iter().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|line| line[1] == "2");
    let shown: Vec<_> = of_2.map(|line| (line[2].to_owned(), line[4].parse::<u32>().unwrap() % 4)).collect();
    // The mark of the message, the message to the last rank behind it, and the end.
    assert_eq!(shown, [("2", 0), ("3", 2), ("2", 1)].map(|(to, after)| (to.to_owned(), after)));
}

#[test]
fn true_counts_are_used() {
    static COUNTS: [[u64; 2]; 2] = [[1, 20], [300, 4000]];
    static TRANSPOSED: [[u64; 2]; 2] = [[1, 300], [20, 4000]];
    let mut program = Program::new(2);
    let request = RequestId { thread: 0, number: 0 };
    for rank in 0..2 {
        program.call(
            rank,
            Action::Collective(Collective {
                operation: Operation::Alltoallv,
                comm: capture::WORLD,
                root: None,
                amounts: Amounts { send: Bytes(COUNTS[rank as usize].iter().sum()), recv: Bytes(9) },
                count: 0,
                datatype: DatatypeId(0),
                recv_datatype: None,
                request: Some(request),
                send_counts: &COUNTS[rank as usize],
                recv_counts: &TRANSPOSED[rank as usize],
            }),
        );
    }
    for rank in 0..2 {
        program.send(rank, 1 - rank, 0, 7).receive(rank, 1 - rank, 0);
        program.add(rank, 0, What::Complete(vec![Completion { request, outcome: Outcome::Done }]));
    }
    let (lines, summary) = lowered(&program.finish().tasks, 1);
    let mut messages: Vec<&str> = lines[2..]
        .iter()
        .filter(|line| line.split(' ').nth(3) != Some("0"))
        .map(|line| line.split_once(' ').unwrap().1)
        .collect();
    messages.sort_unstable();
    // The exchange of the collective begins at its call and completes at its wait.
    assert_eq!(messages, ["0 1 20 4 390 -1", "0 1 7 5 190 0", "1 0 300 4 290 -1", "1 0 7 5 390 1"]);
    assert_eq!((summary.messages, summary.matched, summary.collectives), (4, 4, 0));
}

/// Only the root knows that another member's count is 0; neither sends or waits for a message then.
#[test]
fn counts_of_zero_give_no_messages() {
    static COUNTS: [u64; 3] = [7, 0, 5];
    for (operation, root) in
        [(Operation::Gatherv, 0), (Operation::Gatherv, 1), (Operation::Scatterv, 0), (Operation::Scatterv, 2)]
    {
        let mut program = Program::new(3);
        for rank in 0..3u32 {
            let own = if rank == root { 12 - COUNTS[root as usize] } else { COUNTS[rank as usize] };
            let (counts, none): (&[u64], &[u64]) = if rank == root { (&COUNTS, &[]) } else { (&[], &[]) };
            let to_root = operation == Operation::Gatherv;
            let is_sender = to_root != (rank == root);
            let (send, recv) = if is_sender { (own, 0) } else { (0, own) };
            program.call(
                rank,
                Action::Collective(Collective {
                    operation,
                    comm: capture::WORLD,
                    root: Some(CommRank(root)),
                    amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
                    count: 0,
                    datatype: DatatypeId(0),
                    recv_datatype: None,
                    request: None,
                    send_counts: if to_root { none } else { counts },
                    recv_counts: if to_root { counts } else { none },
                }),
            );
        }
        let (_, summary) = lowered(&program.finish().tasks, 1);
        let expected = (0..3).filter(|&rank| rank != root && COUNTS[rank as usize] > 0).count() as u64;
        assert_eq!((summary.messages, summary.matched), (expected, expected), "{operation:?} from {root}");
        assert_eq!(summary.bytes.0, 12 - COUNTS[root as usize]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn everything_is_matched(seed: u64, tasks in 1u32..9, steps in 0usize..250) {
        let run = model::run(seed, tasks, steps);
        let (one, summary) = lowered(&run.events, 1);
        let (two, _) = lowered(&run.events, 2);
        prop_assert_eq!(&one, &two);
        prop_assert_eq!(summary.matched, summary.messages);
        prop_assert!(summary.unmatched.is_empty());
        prop_assert!(one.iter().all(|line| !line.starts_with('G')));
        // All messages stay; collectives that move data add some.
        let (mut plain, mut bytes_sent, mut moved) = (0, 0, 0);
        for (own, task) in run.expected.iter().enumerate() {
            for record in task {
                match *record {
                    model::Expected::Message { dst, bytes, .. } if dst as usize != own || bytes > 0 => {
                        plain += 1;
                        bytes_sent += bytes;
                    }
                    model::Expected::Message { .. } => {}
                    model::Expected::Collective { send, recv, .. } => moved += send + recv,
                }
            }
        }
        let added = summary.messages - plain;
        prop_assert!(summary.bytes.0 >= bytes_sent);
        prop_assert!(moved == 0 || added > 0, "{moved} bytes of collectives, {added} messages");
    }
}

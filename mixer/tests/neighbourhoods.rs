//! Neighbourhood collectives are messages between the neighbours of the topology, and nothing else of the program receives them.

use crate::capture::{self, Program, WORLD};
use mixer::{MixError, Options, Problem, Quiet, mix};
use std::collections::HashMap;
use vef_format::capture::event::*;
use vef_format::ids::CommRank;
use vef_format::operation::Amounts;
use vef_format::units::Bytes;

const fn rank(rank: u32) -> Option<CommRank> {
    Some(CommRank(rank))
}

/// Edges from 0 to 1, from 1 to 0 and twice to 2, from 2 to 1; nobody is behind an edge of 1's.
const SOURCES: [&[Option<CommRank>]; 3] = [&[rank(1)], &[rank(0), None, rank(2)], &[rank(1), rank(1)]];
const DESTINATIONS: [&[Option<CommRank>]; 3] = [&[rank(1)], &[rank(0), None, rank(2), rank(2)], &[rank(1)]];

fn part(send_counts: &'static [u64], request: Option<u64>) -> Action<'static> {
    let request = request.map(|number| RequestId { thread: 0, number });
    let block = Amounts { send: Bytes(40), recv: Bytes(40) };
    let recv_counts = &[];
    let datatype = DatatypeId(0);
    Action::Neighbourhood(Neighbourhood { comm: WORLD, block, datatype, request, send_counts, recv_counts })
}

fn topologies(program: &mut Program) {
    for (at, (sources, destinations)) in (0..).zip(SOURCES.iter().zip(DESTINATIONS)) {
        program.call(at, Action::Topology(Topology { comm: WORLD, sources, destinations }));
    }
}

/// The text of the trace.
fn mixed(program: &mut Program, memory: Option<Bytes>) -> Result<String, MixError> {
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.tasks);
    let trace = dir.path().join("t.vef");
    mix(dir.path(), &trace, &Options { memory, ..Options::default() }, &Quiet)?;
    Ok(std::fs::read_to_string(trace).unwrap())
}

/// The records of a task: destination and bytes, whether a record waits for it, and what it depends on.
fn records(text: &str, task: &str) -> Vec<String> {
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(' ').collect()).collect();
    let by_id: HashMap<&str, &Vec<&str>> = lines.iter().map(|line| (line[0], line)).collect();
    let own = lines.iter().filter(|line| !line[0].starts_with('C') && line[1] == task);
    own.map(|line| {
        let dep: u32 = line[4].parse().unwrap();
        let awaited = if dep >= 4 { "awaited" } else { "not awaited" };
        let after = match dep % 4 {
            0 => "start".to_owned(),
            1 => format!("own to {} of {}", by_id[line[6]][2], by_id[line[6]][3]),
            _ => format!("message of {} from {}", by_id[line[6]][3], by_id[line[6]][1]),
        };
        format!("{} {} {awaited}, {after}", line[2], line[3])
    })
    .collect()
}

#[test]
fn blocks_go_to_the_neighbours_and_are_awaited_in_the_call() {
    let mut program = Program::new(3);
    topologies(&mut program);
    program.call(0, part(&[], None)).call(1, part(&[5, 99, 7, 8], None)).call(2, part(&[6], None)).finish();
    let text = mixed(&mut program, None).unwrap();
    assert_eq!(
        records(&text, "1"),
        [
            "0 5 awaited, start",
            "2 7 awaited, own to 0 of 5",
            "2 8 awaited, own to 2 of 7",
            "1 0 not awaited, own to 2 of 8",
            "1 0 not awaited, message of 40 from 0",
            "1 0 not awaited, message of 6 from 2",
        ]
    );
    // Each task in a part of its own.
    assert_eq!(mixed(&mut program, Some(Bytes(1))).unwrap(), text);
}

#[test]
fn those_that_do_not_block_are_awaited_where_they_complete() {
    let mut program = Program::new(3);
    topologies(&mut program);
    program.call(0, part(&[], Some(0))).call(1, part(&[5, 99, 7, 8], Some(0))).call(2, part(&[6], Some(0)));
    // Between the same tasks, with the same tag: not a message of the collective.
    program.send(0, 1, 0, 1000).receive(1, 0, 0);
    for task in 0..3 {
        program.complete(task, 0, Outcome::Done);
    }
    program.finish();
    assert_eq!(
        records(&mixed(&mut program, None).unwrap(), "1"),
        [
            "0 5 awaited, start",
            "2 7 awaited, own to 0 of 5",
            "2 8 awaited, own to 2 of 7",
            "1 0 not awaited, own to 2 of 8",
            "1 0 not awaited, message of 1000 from 0",
            "1 0 not awaited, message of 40 from 0",
            "1 0 not awaited, message of 6 from 2",
        ]
    );
}

#[test]
fn impossible_ones_are_refused() {
    let problem = |program: &mut Program| match mixed(program, None) {
        Err(MixError::Event { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let mut program = Program::new(3);
    program.call(0, part(&[], None));
    assert_eq!(problem(&mut program), Problem::NoTopology(0));
    let mut program = Program::new(3);
    topologies(&mut program);
    program.call(1, part(&[1, 2], None));
    assert_eq!(problem(&mut program), Problem::Neighbours { given: 2, expected: 4 });
    let mut program = Program::new(3);
    const OUTSIDE: &[Option<CommRank>] = &[rank(3)];
    program.call(0, Action::Topology(Topology { comm: WORLD, sources: &[], destinations: OUTSIDE }));
    assert_eq!(problem(&mut program), Problem::Peer { comm: 0, size: 3, rank: 3 });
}

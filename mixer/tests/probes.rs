//! Probes that find a message wait for it, as its receive would.

use crate::capture::{self, Program, WORLD, What};
use mixer::{Options, Quiet, mix};
use vef_format::capture::event::*;
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// What task 1 waits for: the bytes of each message that a record of its depends on, and "sends" where it sends its own message.
fn waits(finds: impl Fn(&mut Program)) -> Vec<String> {
    let mut program = Program::new(2);
    program.send(0, 1, 0, 5).send(0, 1, 9, 8).send(0, 1, 0, 6).receive(1, 0, 0);
    finds(&mut program);
    program.receive(1, 0, 9).receive(0, 1, 3).finish();
    let dir = tempfile::tempdir().unwrap();
    capture::write(dir.path(), &program.tasks);
    let trace = dir.path().join("t.vef");
    mix(dir.path(), &trace, &Options::default(), &Quiet).unwrap();
    let text = std::fs::read_to_string(trace).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(' ').collect()).collect();
    let mut waits = Vec::new();
    for line in lines.iter().filter(|line| !line[0].starts_with('C') && line[1] == "1") {
        let message = lines.iter().find(|other| other[0] == line[6] && other[1] == "0");
        waits.extend(message.map(|message| message[3].to_owned()));
        if line[2] == "0" {
            waits.push("sends".into());
        }
    }
    waits
}

fn probe(program: &mut Program, tag: i32) {
    program.call(1, Action::Probe { comm: WORLD, source: CommRank(0), tag });
}

#[test]
fn a_probe_waits_for_the_next_message_that_is_received() {
    // The message of 5 bytes has been received.
    let probed = waits(|program| {
        probe(program, 0);
        program.send(1, 0, 3, 7).receive(1, 0, 0);
    });
    assert_eq!(probed, ["5", "6", "sends", "8"]);
    // Without a probe.
    assert_eq!(waits(|program| _ = program.send(1, 0, 3, 7).receive(1, 0, 0)), ["5", "sends", "6", "8"]);
}

#[test]
fn a_matched_probe_waits_for_its_message() {
    let matched = waits(|program| {
        let (comm, source, tag) = (WORLD, Some(CommRank(0)), Some(0));
        let request = RequestId { thread: 0, number: 0 };
        let posted = PostReceive { comm, source, tag, bytes: Bytes(6), datatype: DatatypeId(0), request };
        program.add(1, 0, What::Matched(posted));
        program.send(1, 0, 3, 7).complete(1, 0, Outcome::Done);
    });
    assert_eq!(matched, ["5", "6", "sends", "8"]);
}

/// A message that has been found is waited for once, by the first of its probes.
#[test]
fn probes_of_one_message_wait_once() {
    let probed = waits(|program| {
        for tag in [0, 9, 0] {
            probe(program, tag);
        }
        program.send(1, 0, 3, 7).receive(1, 0, 0);
    });
    assert_eq!(probed, ["5", "6", "8", "sends"]);
}

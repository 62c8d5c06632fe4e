//! Worlds that a program spawns are further tasks.

use crate::capture::{self, Program, WORLD};
use mixer::{Options, Quiet, Summary, mix};
use std::collections::HashMap;
use std::path::Path;
use vef_format::capture::event::*;
use vef_format::capture::{Capture, RankInfo, spawned_path};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::Bytes;

const INTER: CommId = CommId(1);

/// A rank of `tasks` meets `count` processes by a call of this function.
fn meet(program: &mut Program, rank: u32, (way, count, name): (MeetingWay, u32, &'static str)) {
    let first = Rank(program.tasks.len() as u32);
    program.call(rank, Action::Meeting(Meeting { first, count, way, comm: WORLD, name }));
    let remote = Remote::Inside(Members::Strided { first, stride: 1, count });
    let origin = Origin::Unseen { ordinal: 0 };
    program.call(
        rank,
        Action::Communicator(Communicator {
            id: INTER,
            origin,
            split: None,
            members: Members::All,
            remote,
            foreign: true,
        }),
    );
    program.call(rank, Action::Creation(Creation { comm: INTER, request: None }));
}

fn send(program: &mut Program, rank: u32, dest: u32, bytes: u64) {
    let send = Send { comm: INTER, ..capture::sending(dest, 5, bytes, None) };
    program.call(rank, Action::Send(send));
}

fn receive(program: &mut Program, rank: u32, source: u32) {
    let receive = Receive { comm: INTER, ..capture::receiving(source, 5) };
    program.call(rank, Action::Receive(receive));
}

/// Two ranks that spawn one, whose messages go through it; what each computes before is 100 µs.
fn parents() -> Program {
    let mut program = Program::new(2);
    program.now += 100_000;
    (0..2).for_each(|rank| meet(&mut program, rank, (MeetingWay::Spawned, 1, "")));
    send(&mut program, 0, 0, 5000);
    receive(&mut program, 1, 0);
    program.finish();
    program
}

fn child() -> Program {
    let mut program = Program::new(1);
    meet(&mut program, 0, (MeetingWay::Parents, 2, ""));
    receive(&mut program, 0, 0);
    send(&mut program, 0, 1, 77);
    program.finish();
    program
}

/// Writes a world whose ranks entered `MPI_Init` at this time.
fn write(dir: &Path, program: &Program, realtime: u64) {
    capture::write_with(dir, &program.tasks, |_| RankInfo { realtime, ..RankInfo::default() });
}

fn mixed(dir: &Path) -> (Summary, String) {
    let trace = dir.join("t.vef");
    let options = Options { lenient: true, ..Options::default() };
    let summary = mix(dir, &trace, &options, &Quiet).unwrap();
    (summary, std::fs::read_to_string(trace).unwrap())
}

const NOW: u64 = 1_700_000_000_000_000_000;

#[test]
fn what_is_spawned_waits_for_those_that_spawn_it() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &parents(), NOW);
    write(&spawned_path(dir.path(), 1), &child(), NOW + 90_000);
    let (summary, text) = mixed(dir.path());
    assert!(summary.lacks().is_empty(), "{:?}", summary.lacks());
    assert_eq!(summary.tasks, 3);
    // When each record begins on a network that takes no time: behind the one that it waits for and its computing, and its task's previous one.
    let mut begins: HashMap<i64, i64> = HashMap::new();
    let (mut of_bytes, mut of_task) = (HashMap::new(), [0; 3]);
    for line in text.lines().skip(1).filter(|line| !line.starts_with('C')) {
        let [id, task, _, bytes, _, computing, after] =
            line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<i64>>().try_into().unwrap();
        let waited = begins.get(&after).copied().unwrap_or(0) + computing;
        let begin = waited.max(of_task[task as usize]);
        of_task[task as usize] = begin;
        begins.insert(id, begin);
        of_bytes.insert(bytes, begin);
    }
    // The parents compute 100 µs before they spawn, the child nothing but the 90 ns between two calls.
    assert!((100_000..102_000).contains(&of_bytes[&5000]), "{text}");
    assert_eq!(of_bytes[&77] - of_bytes[&5000], 90, "{text}");
}

#[test]
fn a_world_of_another_run_is_left_out() {
    for (realtime, tasks) in [(NOW + 90_000, 3), (NOW - 3_600_000_000_000, 2), (NOW + 3_600_000_000_000, 2)] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &parents(), NOW);
        write(&spawned_path(dir.path(), 3), &child(), realtime);
        assert_eq!(Capture::open(dir.path()).unwrap().tasks(), tasks);
        let (summary, _) = mixed(dir.path());
        // Both creations, the send and the receive.
        assert_eq!(summary.lacks().is_empty(), tasks == 3);
        let calls: u64 = summary.not_representable.values().map(|tally| tally.count).sum();
        assert_eq!(calls, if tasks == 3 { 0 } else { 4 });
    }
}

/// Two worlds of the same size that two ranks spawn at the same time are those that began when the calls ended; one of them meets the
/// other one by a port.
#[test]
fn worlds_are_told_apart_by_their_times_and_ports() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::new(2);
    for rank in [1, 0] {
        program.now += 1_000_000;
        let first = Rank(2);
        let own = CommId(7);
        let members = Members::Strided { first: Rank(rank), stride: 1, count: 1 };
        let describe = |id, members, remote, foreign| {
            let origin = if foreign { Origin::Unseen { ordinal: 0 } } else { Origin::SelfOnly };
            Action::Communicator(Communicator { id, origin, split: None, members, remote, foreign })
        };
        program.call(rank, describe(own, members, Remote::None, false));
        let meeting = Meeting { first, count: 1, way: MeetingWay::Spawned, comm: own, name: "" };
        program.call(rank, Action::Meeting(meeting));
        let remote = Remote::Inside(Members::Strided { first, stride: 1, count: 1 });
        program.call(rank, describe(INTER, members, remote, true));
        program.call(rank, Action::Creation(Creation { comm: INTER, request: None }));
        send(&mut program, rank, 0, 1000 + u64::from(rank));
    }
    program.finish();
    write(dir.path(), &program, NOW);
    for (number, begin, way) in [(1, 2_000_000, MeetingWay::Accepted), (2, 1_000_000, MeetingWay::Connected)]
    {
        let mut child = Program::new(1);
        meet(&mut child, 0, (MeetingWay::Parents, 1, ""));
        receive(&mut child, 0, 0);
        let first = Rank(2);
        child.call(0, Action::Meeting(Meeting { first, count: 1, way, comm: WORLD, name: "a port" }));
        let remote = Remote::Inside(Members::Strided { first, stride: 1, count: 1 });
        let (id, origin) = (CommId(2), Origin::Unseen { ordinal: 0 });
        let both = Communicator { id, origin, split: None, members: Members::All, remote, foreign: true };
        child.call(0, Action::Communicator(both));
        child.call(0, Action::Creation(Creation { comm: id, request: None }));
        let (comm, peer) = (id, CommRank(0));
        match way {
            MeetingWay::Accepted => {
                child.call(0, Action::Send(Send { comm, ..capture::sending(peer.0, 6, 66, None) }))
            }
            _ => child.call(0, Action::Receive(Receive { comm, ..capture::receiving(peer.0, 6) })),
        };
        child.finish();
        write(&spawned_path(dir.path(), number), &child, NOW + begin);
    }
    let (summary, text) = mixed(dir.path());
    assert!(summary.lacks().is_empty(), "{:?}", summary.lacks());
    let messages: Vec<&str> = text.lines().skip(1).collect();
    for expected in [" 0 2 1000 ", " 1 3 1001 ", " 2 3 66 "] {
        assert_eq!(messages.iter().filter(|line| line.contains(expected)).count(), 1, "{expected}: {text}");
    }
}

/// No number in a file makes readers reserve memory, or panic.
#[test]
fn absurd_meetings_are_harmless() {
    for (first, count, comm) in
        [(2, u32::MAX, INTER), (0, 1, WORLD), (u32::MAX, u32::MAX, WORLD), (2, 1, CommId(99))]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut program = Program::new(2);
        let everything = Members::Strided { first: Rank(0), stride: 1, count: u32::MAX };
        for rank in 0..2 {
            let origin = Origin::Unseen { ordinal: u32::MAX };
            program.call(
                rank,
                Action::Communicator(Communicator {
                    id: INTER,
                    origin,
                    split: None,
                    members: everything,
                    remote: Remote::Inside(everything),
                    foreign: true,
                }),
            );
            let meeting = Meeting { first: Rank(first), count, way: MeetingWay::Spawned, comm, name: "" };
            program.call(rank, Action::Meeting(meeting));
        }
        program.finish();
        write(dir.path(), &program, u64::MAX);
        write(&spawned_path(dir.path(), 1), &child(), u64::MAX - 5);
        let (summary, _) = mixed(dir.path());
        assert_eq!(summary.bytes, Bytes(0));
    }
}

/// Two worlds know nothing of each other when the rank that spawned both makes a communicator with them: only that rank knows both groups.
#[test]
fn siblings_are_told_apart_by_the_rank_that_knows_both() {
    let dir = tempfile::tempdir().unwrap();
    let one = |rank: u32| Members::Strided { first: Rank(rank), stride: 1, count: 1 };
    let described = |id, members, remote| {
        let origin = Origin::Unseen { ordinal: 0 };
        Action::Communicator(Communicator { id, origin, split: None, members, remote, foreign: true })
    };
    let meeting = |first, count, way| {
        Action::Meeting(Meeting { first: Rank(first), count, way, comm: WORLD, name: "" })
    };
    let made = |comm| Action::Creation(Creation { comm, request: None });
    // Ranks 1 and 2 are the children; with the first of them, the rank forms a group that meets the second.
    let mut parent = Program::new(1);
    for child in [1, 2] {
        parent.now += 1_000_000;
        parent.call(0, meeting(child, 1, MeetingWay::Spawned));
        parent.call(0, described(CommId(child), one(0), Remote::Inside(one(child))));
        parent.call(0, made(CommId(child)));
    }
    const BOTH: Members<'static> = Members::List(&[Rank(0), Rank(1)]);
    const SWAPPED: Members<'static> = Members::List(&[Rank(1), Rank(0)]);
    let three = CommId(3);
    parent.call(0, described(three, BOTH, Remote::Inside(one(2))));
    parent.call(0, Action::Send(Send { comm: three, ..capture::sending(0, 5, 500, None) }));
    parent.finish();
    write(dir.path(), &parent, NOW);
    for (number, begin) in [(1, 1_000_000), (2, 2_000_000)] {
        let mut child = Program::new(1);
        meet(&mut child, 0, (MeetingWay::Parents, 1, ""));
        // To the first, rank 1 is the parent, and 2 the other child; the second knows neither the first nor, as one of two, the parent.
        let (members, unseen) =
            if number == 1 { (SWAPPED, one(2)) } else { (one(0), Members::List(&[Rank(1), Rank(2)])) };
        child.call(0, meeting(2, 1, MeetingWay::Unseen));
        child.call(0, described(three, members, Remote::Inside(unseen)));
        match number {
            1 => child.call(0, Action::Send(Send { comm: three, ..capture::sending(0, 5, 501, None) })),
            _ => child
                .call(0, Action::Receive(Receive { comm: three, ..capture::receiving(0, 5) }))
                .call(0, Action::Receive(Receive { comm: three, ..capture::receiving(1, 5) })),
        };
        child.finish();
        write(&spawned_path(dir.path(), number), &child, NOW + begin);
    }
    let (summary, text) = mixed(dir.path());
    assert!(summary.lacks().is_empty(), "{:?}", summary.lacks());
    for expected in [" 0 2 500 ", " 1 2 501 "] {
        assert_eq!(text.lines().filter(|line| line.contains(expected)).count(), 1, "{expected}: {text}");
    }
}

/// What the launcher says of the root counts more than times. A world whose root is not recorded is left out, though its times fit.
#[test]
fn the_root_that_the_launcher_names_has_spawned_the_world() {
    // Job 1 of the launcher is the one that was launched; 3 the second world.
    for (roots, tasks) in [(["65537.1:7", "65537.0:9"], 4), (["65537.1:7", "65539.0:9"], 3), (["", ""], 4)] {
        let dir = tempfile::tempdir().unwrap();
        let mut program = Program::new(2);
        for rank in 0..2 {
            let (own, members) = (CommId(7), Members::Strided { first: Rank(rank), stride: 1, count: 1 });
            let describe = |id, origin, remote, foreign| {
                Action::Communicator(Communicator { id, origin, split: None, members, remote, foreign })
            };
            program.call(rank, describe(own, Origin::SelfOnly, Remote::None, false));
            let (first, way, name) = (Rank(2), MeetingWay::Spawned, "MPI_Comm_spawn");
            program.call(rank, Action::Meeting(Meeting { first, count: 1, way, comm: own, name }));
            let remote = Remote::Inside(Members::Strided { first, stride: 1, count: 1 });
            program.call(rank, describe(INTER, Origin::Unseen { ordinal: 0 }, remote, true));
            program.call(rank, Action::Creation(Creation { comm: INTER, request: None }));
            send(&mut program, rank, 0, 1000 + u64::from(rank));
            program.now += 1_000_000;
        }
        program.finish();
        write(dir.path(), &program, NOW);
        for (number, name) in (1..).zip(roots) {
            let mut child = Program::new(1);
            meet(&mut child, 0, (MeetingWay::Parents, 1, name));
            receive(&mut child, 0, 0);
            child.finish();
            write(&spawned_path(dir.path(), number), &child, NOW + u64::from(number - 1) * 1_000_000);
        }
        let (summary, text) = mixed(dir.path());
        assert_eq!((summary.tasks, summary.lacks().is_empty()), (tasks, tasks == 4), "{roots:?}");
        // By the times the first rank's world is the first; by the names, the second rank's.
        let expected = if roots[0].is_empty() { " 0 2 1000 " } else { " 1 2 1001 " };
        assert_eq!(text.lines().filter(|line| line.contains(expected)).count(), 1, "{roots:?}: {text}");
    }
}

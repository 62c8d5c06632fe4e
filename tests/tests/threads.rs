//! Random programs of several threads under both MPIs: their traces hold what was planned, each thread's part in its order, and
//! replay to the end, whatever the network and the collectives' algorithms.
//!
//! `VEF_THREADED_PROGRAMS=500 cargo test -p vef-tests --test threads` runs more of them, from `VEF_THREADED_FROM` on.

use std::collections::BTreeMap;
use std::path::Path;
use vef_tests::threaded::{Deed, Plan, Planned};
use vef_tests::{Mpi, run, vef};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// What a trace says each task does, in the order of its lines: read here with a few lines of our own.
fn deeds_of(trace: &Path, tasks: u32) -> Vec<Vec<Deed>> {
    const OPERATIONS: [&str; 8] =
        ["Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Barrier", "Alltoall"];
    let text = std::fs::read_to_string(trace).expect("a trace");
    let mut deeds = vec![Vec::new(); tasks as usize];
    for line in text.lines().skip(1).filter(|line| !line.starts_with('C')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let field = |at: usize| fields[at].parse::<u64>().expect("a number");
        if line.starts_with('G') {
            deeds[field(3) as usize]
                .push(Deed::Collective(OPERATIONS[field(2) as usize], field(4).max(field(5))));
        } else if fields[1] != fields[2] {
            assert!(field(4) >= 4, "a message that nobody waits for: {line}");
            let ranks = (field(1) as u32, field(2) as u32);
            deeds[field(1) as usize].push(Deed::Send(Planned { ranks, bytes: field(3) }));
        }
    }
    deeds
}

/// What is comparable of collectives: some operations are told by what all members move together.
fn plain(deed: &Deed) -> Deed {
    match deed {
        Deed::Collective(name, _) => Deed::Collective(name, 0),
        send => send.clone(),
    }
}

/// Whether `all` is the lists of `threads` merged, each in its order. Collectives of one kind may be any thread's, so all ways
/// to take them are tried.
fn is_merged(all: &[Deed], threads: &[Vec<Deed>]) -> bool {
    let mut places = std::collections::HashSet::from([vec![0; threads.len()]]);
    for deed in all {
        let mut next = std::collections::HashSet::new();
        for place in &places {
            for (thread, deeds) in threads.iter().enumerate() {
                if deeds.get(place[thread]).is_some_and(|own| plain(own) == plain(deed)) {
                    let mut place = place.clone();
                    place[thread] += 1;
                    next.insert(place);
                }
            }
        }
        places = next;
    }
    places.iter().any(|place| place.iter().zip(threads).all(|(&at, deeds)| at == deeds.len()))
}

fn holds(mpi: Mpi, program: &Path, seed: u64) {
    let plan = Plan::of(seed);
    let work = tempfile::tempdir().expect("a directory");
    let (capture, trace) = (work.path().join("capture"), work.path().join("t.vef"));
    let place = work.path().join("plan");
    std::fs::write(&place, &plan.text).expect("a plan");
    let mut command = vef();
    command.args(["run", "-n", &plan.ranks.to_string(), "--mpirun", &mpi.launcher().join(" "), "-o"]);
    run(command.arg(&capture).arg("--mix").arg(&trace).arg("--").arg(program).arg(&place)).success();
    let what = format!("program {seed} under {mpi:?}");
    let found = deeds_of(&trace, plan.ranks);
    for (rank, (found, threads)) in found.iter().zip(&plan.deeds).enumerate() {
        let count = |deeds: &mut dyn Iterator<Item = &Deed>| {
            let mut counts = BTreeMap::new();
            deeds.for_each(|deed| *counts.entry(format!("{:?}", plain(deed))).or_insert(0) += 1);
            counts
        };
        let planned = count(&mut threads.iter().flatten());
        assert_eq!(count(&mut found.iter()), planned, "{what}: rank {rank}");
        assert!(is_merged(found, threads), "{what}: threads of rank {rank} in another order");
    }
    let lowered = work.path().join("lowered.vef");
    let mut command = vef();
    run(command.args(["mix", "--lower-collectives", "openmpi", "-i"]).arg(&capture).arg("-o").arg(&lowered))
        .success();
    for trace in [&trace, &lowered] {
        let checked = run(vef().args(["check", "--json"]).arg(trace)).success().stdout();
        let checked: serde_json::Value = serde_json::from_str(&checked).expect("JSON");
        assert_eq!(checked["complete"], true, "{what}: {checked:#}");
        assert_eq!(checked["warnings"], 0, "{what}: {checked:#}");
    }
    for network in [["--latency", "5ms"], ["--bandwidth", "1Mbit/s"]] {
        run(vef().arg("sim").args(network).arg(&trace)).success();
    }
}

#[test]
fn random_threaded_programs_replay_to_their_end() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "threaded", &["tests/c/threaded.c", "-pthread"]);
        let first = number("VEF_THREADED_FROM", 0);
        for seed in first..first + number("VEF_THREADED_PROGRAMS", 8) {
            holds(mpi, &program, seed);
        }
    }
}

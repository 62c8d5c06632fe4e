//! Random programs of several threads under both MPIs: their traces hold what was planned, each thread's part in its order, and
//! replay to the end, whatever the network and the collectives' algorithms.
//!
//! `VEF_THREADED_PROGRAMS=500 cargo test -p vef-tests threads::` runs more of them, from `VEF_THREADED_FROM` on.

use std::collections::BTreeMap;
use std::path::Path;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::Rank;
use vef_format::record::Record;
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

/// How a message of the plan is sent.
#[derive(Debug, PartialEq)]
struct Sent {
    function: &'static str,
    tag: i32,
    detached: bool,
    synchronous: bool,
}

/// Every message of the plan, by its sender and its size.
fn sent_by(plan: &Plan) -> BTreeMap<(u32, u64), Sent> {
    let mut all = BTreeMap::new();
    for line in plan.text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (function, from) = match fields.get(2) {
            Some(&"s") => ("MPI_Send", 4),
            Some(&"S") => ("MPI_Ssend", 4),
            Some(&"b") => ("MPI_Bsend", 4),
            Some(&"i") => ("MPI_Isend", 5),
            _ => continue,
        };
        let field = |at: usize| fields[at].parse::<u64>().expect("a number");
        let detached = ["MPI_Bsend", "MPI_Isend"].contains(&function);
        let sent = Sent { function, tag: field(from) as i32, detached, synchronous: function == "MPI_Ssend" };
        all.insert((field(0) as u32, field(from + 1)), sent);
    }
    all
}

/// Whether a container's notes say of every message how the plan sends it, and of every wait for a send where it is.
fn has_the_notes(container: &Path, plan: &Plan, what: &str) {
    let reader = Reader::open(container).expect("a container");
    let mut planned = sent_by(plan);
    for rank in 0..plan.ranks {
        let mut isends = Vec::new();
        let mut of = [Section::Calls, Section::Tags, Section::Sends, Section::Synchronous]
            .map(|section| reader.notes(section, Rank(rank)).expect("notes"));
        let mut next = of.each_mut().map(|notes| notes.next(&reader).expect("a note").map(told));
        let (mut function, mut tag) = (String::new(), String::new());
        let mut records = reader.task(Rank(rank));
        let mut at = 0;
        while let Some(line) = records.next().expect("a record") {
            let (mut detached, mut synchronous) = (false, false);
            for (notes, next) in of.iter_mut().zip(&mut next) {
                while let Some((place, told)) = next.take_if(|(place, _)| *place <= at) {
                    assert_eq!(place, at, "{what}: rank {rank}: {told:?} is behind its place");
                    match told {
                        Told::Call(name) => function = name,
                        Told::Tag(number) => tag = number.to_string(),
                        Told::Detached => detached = true,
                        Told::Synchronous => synchronous = true,
                        Told::Wait(send) => {
                            let open = isends.iter().position(|&open| open == send);
                            isends.swap_remove(open.unwrap_or_else(|| panic!("{what}: no Isend at {send}")));
                        }
                    }
                    *next = notes.next(&reader).expect("a note").map(self::told);
                }
            }
            if let Record::Message(message) = line.to_record()
                && message.src != message.dst
            {
                let sent = planned.remove(&(rank, message.bytes.0)).expect("planned");
                let found = (function.as_str(), tag.as_str(), detached, synchronous);
                assert_eq!(
                    found,
                    (sent.function, &*sent.tag.to_string(), sent.detached, sent.synchronous),
                    "{what}: {message:?}"
                );
                if sent.function == "MPI_Isend" {
                    isends.push(at);
                }
            } else {
                assert!(!detached && !synchronous, "{what}: rank {rank}: record {at} is no send");
            }
            at += 1;
        }
        assert_eq!(next, [const { None }; 4], "{what}: rank {rank}: notes behind the last record");
        assert!(isends.is_empty(), "{what}: rank {rank}: nobody waits for the sends at {isends:?}");
    }
    assert!(planned.is_empty(), "{what}: {planned:?} are not in the container");
}

/// What a note says.
#[derive(Debug, PartialEq)]
enum Told {
    Call(String),
    Tag(i32),
    Detached,
    Synchronous,
    /// For the send at this record.
    Wait(u64),
}

fn told((place, note): (u64, Note<'_>)) -> (u64, Told) {
    let told = match note {
        Note::Call(name) => Told::Call(name.to_owned()),
        Note::Tag(tag) => Told::Tag(tag),
        Note::Detached => Told::Detached,
        Note::Synchronous => Told::Synchronous,
        Note::SendWait { send, .. } => Told::Wait(send),
        other => panic!("{other:?}"),
    };
    (place, told)
}

fn holds(mpi: Mpi, program: &Path, seed: u64) {
    let plan = Plan::of(seed);
    let work = tempfile::tempdir().expect("a directory");
    let (capture, trace) = (work.path().join("capture"), work.path().join("t.vef"));
    let place = work.path().join("plan");
    std::fs::write(&place, &plan.text).expect("a plan");
    let mut command = vef();
    command.args(["run", "-n", &plan.ranks.to_string(), "--mpirun", &mpi.launcher().join(" "), "-o"]);
    let agreed = work.path().join("agreed.vefx");
    run(command.arg(&capture).arg("--mix").arg(&agreed).arg("--").arg(program).arg(&place)).success();
    // The plan does not have the collectives by which MPI agrees on communicators.
    let planned = |to: &Path| {
        let mut mix = vef();
        run(mix.args(["mix", "--communicators", "compute", "-i"]).arg(&capture).arg("-o").arg(to)).success();
    };
    planned(&trace);
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
    let container = work.path().join("t.vefx");
    planned(&container);
    has_the_notes(&container, &plan, &what);
    for trace in [&trace, &agreed, &lowered, &container] {
        let checked = run(vef().args(["check", "--json"]).arg(trace)).success().stdout();
        let checked: serde_json::Value = serde_json::from_str(&checked).expect("JSON");
        assert_eq!(checked["complete"], true, "{what}: {checked:#}");
        assert_eq!(checked["warnings"], 0, "{what}: {checked:#}");
    }
    for network in [["--latency", "5ms"], ["--bandwidth", "1Mbit/s"]] {
        run(vef().arg("sim").args(network).arg(&trace)).success();
        for sends in ["sent", "rendezvous:1000", "rendezvous-in-calls:1000"] {
            for trace in [&container, &agreed] {
                run(vef().args(["sim", "--send-completion", sends]).args(network).arg(trace)).success();
            }
        }
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

//! `vef timeline`: the files are read as viewers read them, and held against the captures and traces that they are of.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use vef_format::capture::event::{
    Action, CallSlot, Communicator, Completion, Completions, DatatypeId, Event, Members, Origin, Outcome,
    PostReceive, Remote, RequestId, Send, SendMode,
};
use vef_format::capture::{Capture, RankInfo, RankWriter};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::{Bytes, Nanos};
use vef_tests::{Ended, number, root, run, skipped, vef};

/// A Python with the official package of Perfetto, which is installed as users do that.
fn python() -> Option<&'static Path> {
    static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
    let home = HOME.get_or_init(|| {
        let home = root().join("target/tmp/perfetto");
        let python = home.join("bin/python");
        let has_it = || {
            Command::new(&python)
                .args(["-c", "import perfetto"])
                .output()
                .is_ok_and(|out| out.status.success())
        };
        if !has_it() {
            let made = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))
                .output
                .status
                .success();
            let mut install = Command::new(home.join("bin/pip"));
            install.args(["install", "--quiet", "perfetto"]);
            if !made || !run(&mut install).output.status.success() {
                return None;
            }
        }
        Some(python)
    });
    if home.is_none() {
        skipped("the Python package perfetto cannot be installed here (python3-venv, PyPI)");
    }
    home.as_deref()
}

/// What a viewer sees in a timeline.
struct Seen {
    processes: Vec<(u64, String)>,
    tracks: Vec<Value>,
    slices: Vec<Slice>,
    realtime: Option<u64>,
    counters: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    track: String,
    begin: u64,
    end: u64,
    name: String,
    depth: u64,
    args: BTreeMap<String, i64>,
    sends: Vec<u64>,
    receives: Vec<u64>,
}

fn seen(python: &Path, file: &Path, with_processor: bool) -> Seen {
    let mut command = Command::new(python);
    command.arg(root().join("tests/py/read_timeline.py")).arg(file);
    if with_processor {
        command.arg("--processor");
    }
    let ended = run(&mut command).success();
    let seen: Value = serde_json::from_str(&ended.stdout()).expect("JSON");
    if let Some(why) = seen["no_processor"].as_str() {
        skipped(why);
    }
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let numbers = |value: &Value| list(value).iter().map(|value| value.as_u64().expect("a number")).collect();
    let slice = |slice: &Value| Slice {
        track: text(&slice["track"]),
        begin: number(slice, "begin"),
        end: number(slice, "end"),
        name: text(&slice["name"]),
        depth: number(slice, "depth"),
        args: (slice["args"].as_object().expect("facts").iter())
            .map(|(name, value)| (name.clone(), value.as_i64().expect("a number")))
            .collect(),
        sends: numbers(&slice["sends"]),
        receives: numbers(&slice["receives"]),
    };
    Seen {
        processes: list(&seen["processes"])
            .iter()
            .map(|process| (process[0].as_u64().expect("a number"), text(&process[1])))
            .collect(),
        tracks: list(&seen["tracks"]),
        slices: list(&seen["slices"]).iter().map(slice).collect(),
        realtime: seen["realtime"].as_u64(),
        counters: list(&seen["counters"]),
    }
}

fn timeline(work: &Path, words: &[&str]) -> Ended {
    run(vef().current_dir(work).arg("timeline").args(words))
}

/// The capture that `vef demo` carries: 4 ranks of one host.
fn demo() -> String {
    root().join("cli/demo/capture").display().to_string()
}

/// A call as the capture has it: track, begin, end, function.
type Call = (String, u64, u64, String);

/// The calls of a capture of one host, read without the timeline; and the sender's and the receiver's call of each message, where
/// messages between two ranks with a tag are matched in order. It has no wildcards, and one thread a rank.
fn calls(directory: &Path) -> (Vec<Call>, Vec<(Call, Call)>) {
    let capture = Capture::open(directory).expect("a capture");
    let mut zero = u64::MAX;
    let mut all = Vec::new();
    for rank in 0..capture.tasks() {
        let mut events = capture.events(Rank(rank)).expect("events");
        let functions: Vec<_> = events.functions().iter().map(|function| function.name.clone()).collect();
        let read = events.each(|event| {
            // Definitions name the call that made them.
            let is_call = !matches!(event.action, Action::Communicator(_) | Action::Datatype(_));
            let name = event.call.index().filter(|_| is_call).map(|at| functions[at].clone());
            if matches!(event.action, Action::Init) {
                zero = zero.min(event.start.0);
            }
            let kept = match &event.action {
                Action::Send(send) => Kept::Send(send.comm.0, send.dest.0, send.tag),
                Action::PostReceive(posted) => Kept::Post(
                    posted.comm.0,
                    posted.source.expect("no wildcard").0,
                    posted.tag.expect("no wildcard"),
                    posted.request,
                ),
                Action::Complete(done) => Kept::Complete(done.iter().map(|done| done.request).collect()),
                Action::Receive(_) | Action::Exchange { .. } => panic!("not in this program"),
                _ => Kept::Other,
            };
            all.extend(name.map(|name| (rank, event.start.0, event.end.0, name, kept)));
            Ok::<_, vef_format::capture::CaptureError>(())
        });
        read.expect("events");
    }
    let call = |(rank, begin, end, name, _): &(u32, u64, u64, String, Kept)| {
        (format!("rank {rank}"), begin - zero, end - zero, name.clone())
    };
    let mut sends = BTreeMap::<_, Vec<Call>>::new();
    let mut posts = BTreeMap::<_, Vec<(u32, RequestId)>>::new();
    let mut ends = BTreeMap::new();
    for event in &all {
        match &event.4 {
            // The program's communicators have all ranks in their order.
            Kept::Send(comm, to, tag) => {
                sends.entry((*comm, event.0, *to, *tag)).or_default().push(call(event))
            }
            Kept::Post(comm, from, tag, request) => {
                posts.entry((*comm, *from, event.0, *tag)).or_default().push((event.0, *request));
            }
            Kept::Complete(requests) => {
                for request in requests {
                    ends.insert((event.0, (request.thread, request.number)), call(event));
                }
            }
            Kept::Other => {}
        }
    }
    let mut messages = Vec::new();
    for (channel, sent) in sends {
        let received = &posts[&channel];
        assert_eq!(sent.len(), received.len());
        for (sent, (rank, request)) in sent.into_iter().zip(received) {
            messages.push((sent, ends[&(*rank, (request.thread, request.number))].clone()));
        }
    }
    (all.iter().map(call).collect(), messages)
}

enum Kept {
    Send(u32, u32, i32),
    Post(u32, u32, i32, RequestId),
    Complete(Vec<RequestId>),
    Other,
}

fn call(slice: &Slice) -> Call {
    (slice.track.clone(), slice.begin, slice.end, slice.name.clone())
}

/// The slices at both ends of each arrow.
fn arrows(slices: &[Slice]) -> Vec<(Call, Call)> {
    let mut receivers = BTreeMap::new();
    for slice in slices {
        for flow in &slice.receives {
            assert!(receivers.insert(*flow, call(slice)).is_none(), "two arrows have the number {flow}");
        }
    }
    let sends = slices.iter().flat_map(|slice| slice.sends.iter().map(move |flow| (flow, slice)));
    sends.filter_map(|(flow, slice)| Some((call(slice), receivers.remove(flow)?))).collect()
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

#[test]
fn a_capture_s_calls_are_drawn_when_they_were_made() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let (expected, messages) = calls(Path::new(&demo()));
    let told = timeline(work, &[&demo(), "-o", "full.pftrace"]).success().stdout();
    let full = seen(python, &work.join("full.pftrace"), true);
    assert_eq!(sorted(full.slices.iter().map(call).collect()), sorted(expected.clone()));
    assert_eq!(sorted(arrows(&full.slices)), sorted(messages.clone()));
    assert!(
        messages.len() > 100 && told.contains(&format!("{} messages at the senders", messages.len())),
        "{told}"
    );
    let capture = Capture::open(Path::new(&demo())).expect("a capture");
    let host = capture.rank(Rank(0)).expect("a rank").host.clone();
    assert_eq!(full.processes, [(1, host)]);
    let names: Vec<_> = full.tracks.iter().map(|track| track["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["rank 0", "rank 1", "rank 2", "rank 3"]);
    // The zero is the first MPI_Init of all, by the wall clock, too.
    let first = (0..4).filter_map(|rank| Some(capture.rank(Rank(rank))?.realtime)).min().expect("ranks");
    assert!(
        full.realtime.expect("the wall clock").abs_diff(first) < 5_000_000,
        "{:?} {first}",
        full.realtime
    );
    for slice in &full.slices {
        if !slice.sends.is_empty() {
            let receiver = format!("rank {}", slice.args["to"]);
            assert!(arrows(&full.slices).iter().any(|(from, to)| *from == call(slice) && to.0 == receiver));
        }
    }

    // In JSON the same.
    timeline(work, &[&demo(), "-o", "full.json", "--format", "json"]).success();
    let json = seen(python, &work.join("full.json"), false);
    assert_eq!(sorted(json.slices), sorted(full.slices.clone()));
    assert_eq!((json.processes, json.realtime), (full.processes, full.realtime));

    // A part of it: what is in the window, of some ranks.
    let [from, to] =
        [3, 7].map(|tenth| full.slices.iter().map(|slice| slice.end).max().expect("slices") * tenth / 10);
    let window = [format!("{from}ns"), format!("{to}ns")];
    let words = [&demo(), "-o", "part", "--from", &window[0], "--to", &window[1], "--ranks", "1-2"];
    timeline(work, &words).success();
    let part = seen(python, &work.join("part"), false);
    let touches = |slice: &&Slice| {
        slice.end >= from && slice.begin < to && ["rank 1", "rank 2"].contains(&&*slice.track)
    };
    let clipped = |slice: &Slice| Slice {
        begin: slice.begin.max(from),
        end: slice.end.min(to),
        sends: if slice.begin < from { vec![] } else { slice.sends.clone() },
        receives: if slice.end > to { vec![] } else { slice.receives.clone() },
        ..slice.clone()
    };
    let expected: Vec<Slice> = full.slices.iter().filter(touches).map(clipped).collect();
    assert!(!expected.is_empty() && expected.len() < full.slices.len());
    assert_eq!(sorted(part.slices), sorted(expected));

    // Through a pipe the same bytes.
    let line = format!("{} timeline {} -o - | cat > piped", vef().get_program().display(), demo());
    run(Command::new("sh").current_dir(work).args(["-c", &line])).success();
    let read = |name: &str| std::fs::read(work.join(name)).expect("a timeline");
    assert_eq!(read("piped"), read("full.pftrace"));
}

#[test]
fn what_does_not_fit_is_put_together() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let (calls, _) = calls(Path::new(&demo()));
    for format in ["perfetto", "json"] {
        for most in [30_000, 10_000, 5_000] {
            let size = format!("{most}");
            let words = [&demo(), "-o", "small", "--max-size", &size, "--format", format];
            let told = timeline(work, &words).success().stdout();
            let bytes = std::fs::metadata(work.join("small")).expect("a timeline").len();
            assert!(bytes <= most && bytes > most / 20, "{bytes} of {most}");
            let seen = seen(python, &work.join("small"), false);
            // Each call is drawn, or in one that stands for it: where it was, and as long.
            let mut left: BTreeSet<Call> = calls.iter().cloned().collect();
            assert_eq!(left.len(), calls.len());
            let mut merged = 0;
            for slice in &seen.slices {
                match slice.args.get("calls") {
                    None => assert!(left.remove(&call(slice)), "{slice:?}"),
                    Some(&count) => {
                        let inside: Vec<_> = (left.iter())
                            .filter(|(track, begin, end, _)| {
                                *track == slice.track && *begin >= slice.begin && *end <= slice.end
                            })
                            .cloned()
                            .collect();
                        assert_eq!(inside.len() as i64, count, "{slice:?}");
                        let together: u64 = inside.iter().map(|(_, begin, end, _)| end - begin).sum();
                        assert_eq!(slice.args["together_ns"], together as i64);
                        let names: BTreeSet<_> = inside.iter().map(|(.., name)| name.as_str()).collect();
                        let name =
                            if names.len() == 1 { names.first().copied().expect("one") } else { "several" };
                        assert_eq!(slice.name, name);
                        left.retain(|call| !inside.contains(call));
                        merged += count;
                    }
                }
            }
            assert!(left.is_empty(), "{left:?}");
            assert!(told.contains(&format!("put together: {merged} slices, each shorter than ")), "{told}");
        }
        let told = timeline(work, &[&demo(), "-o", "none", "--max-size", "300", "--format", format])
            .exited(2)
            .stderr();
        assert!(told.contains("error: a timeline of 4 tracks needs more than 300 bytes"), "{told}");
        assert!(!work.join("none").exists());
    }
}

/// Two tasks, a tick a nanosecond; a message takes 1 µs and 0.8 ns a byte. Task 0 sends 1250 bytes at 1000, which arrive at 3000. Task 1
/// answers 500 later, at 3500, and enters a barrier; the answer arrives at 4500. Task 0 enters the barrier 100 later, at 4600: what
/// task 1 sent for that at 3500 has arrived, so it leaves at once, and task 1 leaves when its message arrives, at 5600.
const TRACE: &str = "\
VEF3 2 5 1 1 2 2 1000
C0 0 1
0 0 1 1250 4 1000 -1
1 1 0 0 6 500 0
2 0 0 0 2 100 1
G0 C0 6 0 0 0 1 0 2
G0 C0 6 1 0 0 1 0 1
3 0 0 0 3 0 G0
4 1 1 0 3 0 G0
";

#[test]
fn a_trace_is_drawn_as_it_replays() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    std::fs::write(work.join("t.vef"), TRACE).expect("a trace");
    run(vef().current_dir(work).args(["check", "t.vef"])).success();
    run(vef().current_dir(work).args(["convert", "t.vef", "t.vefx"])).success();
    let slice = |rank: u32, begin: u64, end: u64, name: &str, args: &[(&str, i64)]| Slice {
        track: format!("rank {rank}"),
        begin,
        end,
        name: name.into(),
        depth: 0,
        args: args.iter().map(|&(name, value)| (name.into(), value)).collect(),
        sends: vec![],
        receives: vec![],
    };
    let barrier = [("communicator", 0), ("bytes_sent", 0), ("bytes_received", 0), ("id", 0)];
    let mut expected = vec![
        Slice { sends: vec![1], ..slice(0, 1000, 1000, "send", &[("to", 1), ("bytes", 1250), ("id", 0)]) },
        Slice { receives: vec![2], ..slice(0, 1000, 4500, "wait for message", &[("for", 1)]) },
        slice(0, 4600, 4600, "Barrier", &barrier),
        Slice { receives: vec![1], ..slice(1, 0, 3000, "wait for message", &[("for", 0)]) },
        Slice { sends: vec![2], ..slice(1, 3500, 3500, "send", &[("to", 0), ("bytes", 0), ("id", 1)]) },
        slice(1, 3500, 5600, "Barrier", &barrier),
    ];
    expected.sort();
    for trace in ["t.vef", "t.vefx"] {
        for (file, format) in [("t.pftrace", "perfetto"), ("t.json", "json")] {
            timeline(work, &[trace, "-o", file, "--format", format]).success();
            let seen = seen(python, &work.join(file), format == "perfetto");
            assert_eq!(sorted(seen.slices), expected, "{trace} {file}");
            assert_eq!((seen.processes, seen.realtime), (vec![(1, "ranks".into())], None));
        }
    }
    // On another network, and only its beginning.
    let words = ["t.vef", "-o", "early", "--latency", "2us", "--bandwidth", "1Gbit/s", "--to", "14us"];
    timeline(work, &words).success();
    let early = seen(python, &work.join("early"), false);
    let waits = slice(1, 0, 13_000, "wait for message", &[("for", 0)]);
    let mut expected = vec![
        Slice { sends: vec![1], ..slice(0, 1000, 1000, "send", &[("to", 1), ("bytes", 1250), ("id", 0)]) },
        slice(0, 1000, 14_000, "wait for message", &[("for", 1)]),
        Slice { receives: vec![1], ..waits },
        Slice { sends: vec![2], ..slice(1, 13_500, 13_500, "send", &[("to", 0), ("bytes", 0), ("id", 1)]) },
        slice(1, 13_500, 14_000, "Barrier", &barrier),
    ];
    expected.sort();
    assert_eq!(sorted(early.slices), expected);
    // A window in which a rank waits all the time, and another one computes after it has waited.
    timeline(work, &["t.vef", "-o", "middle", "--from", "2us", "--to", "3100ns"]).success();
    let mut expected = vec![
        slice(0, 2000, 3100, "wait for message", &[("for", 1)]),
        Slice { receives: vec![1], ..slice(1, 2000, 3000, "wait for message", &[("for", 0)]) },
    ];
    expected.sort();
    assert_eq!(sorted(seen(python, &work.join("middle"), false).slices), expected);

    // One that does not come to its end is drawn as far as it goes.
    std::fs::write(work.join("stuck.vef"), TRACE.replace("1 1 0 0 6 500 0", "1 1 0 0 6 500 2"))
        .expect("a trace");
    let stuck = timeline(work, &["stuck.vef", "-o", "stuck.pftrace"]).exited(2);
    assert!(stuck.stderr().starts_with("vef: stuck.vef: "), "{}", stuck.stderr());
    let stuck = seen(python, &work.join("stuck.pftrace"), false);
    assert_eq!(stuck.slices.iter().map(|slice| slice.name.as_str()).collect::<Vec<_>>(), ["send"]);
}

/// As [`TRACE`], simulated on one switch without latency, on links of 1 Gbit/s: 8 ns a byte, and nothing for the barrier's messages.
#[test]
fn a_simulation_s_waits_are_drawn_by_cause() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    std::fs::write(work.join("t.vef"), TRACE).expect("a trace");
    let network =
        ["--model", "latency", "--topology", "switch:2", "--latency", "1us", "--bandwidth", "1Gbit/s"];
    for file in ["t.pftrace", "t.json"] {
        let mut command = vef();
        command
            .current_dir(work)
            .args(["sim", "t.vef", "--json", "--waits", "--timeline", file])
            .args(network);
        let result: Value = serde_json::from_str(&run(&mut command).success().stdout()).expect("JSON");
        let seen = seen(python, &work.join(file), file == "t.pftrace");
        // Each message crosses two links of 1 µs; the first byte of one is behind it, and its last byte 10 µs later.
        let wait = |rank: u32, begin: u64, end: u64, name: &str, args: &[(&str, i64)]| {
            let args = args.iter().map(|&(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>();
            (format!("rank {rank}"), begin, end, name.to_owned(), args)
        };
        let drawn: Vec<_> = sorted(seen.slices.iter().collect())
            .into_iter()
            .filter(|slice| slice.name != "send")
            .map(|slice| {
                (slice.track.clone(), slice.begin, slice.end, slice.name.clone(), slice.args.clone())
            })
            .collect();
        let (first, answer) = (1000 + 2000 + 10_000, 13_500 + 2000);
        let expected = [
            wait(0, 1000, 13_500, "late sender", &[("for", 1), ("rank", 1)]),
            wait(0, 13_500, answer, "message under way", &[("for", 1), ("rank", 1)]),
            wait(1, 0, 1000, "late sender", &[("for", 0), ("rank", 0)]),
            wait(1, 1000, first, "message under way", &[("for", 0), ("rank", 0)]),
            wait(1, 13_500, answer + 100, "late member", &[("for", 0), ("rank", 0)]),
            wait(1, answer + 100, answer + 2100, "collective under way", &[("for", 0)]),
        ];
        assert_eq!(drawn, expected, "{file}");
        assert_eq!(arrows(&seen.slices).len(), 2);
        // They are what `--waits` adds up.
        let picos = |name: &str| {
            let of = seen.slices.iter().filter(|slice| slice.name == name);
            of.map(|slice| 1000 * (slice.end - slice.begin)).sum::<u64>()
        };
        let causes = [
            ("late_sender", "late sender"),
            ("message", "message under way"),
            ("late_member", "late member"),
            ("collective", "collective under way"),
        ];
        for (cause, name) in causes {
            let places = result["waits"]["places"].as_array().expect("places");
            let sum: u64 = places
                .iter()
                .filter(|place| place["cause"] == cause)
                .map(|place| number(place, "time_ps"))
                .sum();
            assert_eq!(picos(name), sum, "{cause}");
        }
    }
    // Of a container, with functions; two traces have processes of their own.
    run(vef().current_dir(work).args(["mix", "-i", &demo(), "-o", "demo.vefx"])).success();
    let two = ["sim", "demo.vefx", "t.vef", "--timeline", "two.pftrace"];
    run(vef().current_dir(work).args(two)).success();
    let seen = seen(python, &work.join("two.pftrace"), true);
    assert!(seen.slices.iter().any(|slice| slice.args.keys().any(|name| name.starts_with("function MPI_"))));
    let processes: Vec<&str> = seen.processes.iter().map(|(_, name)| name.as_str()).collect();
    assert!(
        processes.iter().any(|name| name.starts_with("demo: ")) && processes.contains(&"t: ranks"),
        "{processes:?}"
    );
    for (options, said) in [
        (["--model", "loggp"], "--timeline: model loggp does not record what ranks do"),
        (["--repeat", "0=2"], "a timeline: not with jobs that repeat"),
    ] {
        let refused =
            run(vef().current_dir(work).args(["sim", "t.vef", "--timeline", "no"]).args(options)).exited(2);
        assert!(refused.stderr().contains(said), "{}", refused.stderr());
        assert!(!work.join("no").exists());
    }
}

#[test]
fn a_container_s_functions_and_hosts_are_shown() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    run(vef().current_dir(work).args(["mix", "-i", &demo(), "-o", "t.vefx"])).success();
    timeline(work, &["t.vefx", "-o", "t.pftrace"]).success();
    let drawn = seen(python, &work.join("t.pftrace"), true);
    let count = |name: &str, slices: &[Slice]| slices.iter().filter(|slice| slice.name == name).count();
    let (calls, messages) = calls(Path::new(&demo()));
    for name in ["MPI_Isend", "MPI_Allreduce"] {
        let called = calls.iter().filter(|(.., function)| function == name).count();
        assert!(called > 0 && count(name, &drawn.slices) == called, "{name}");
    }
    assert_eq!(arrows(&drawn.slices).len(), messages.len());
    let waits: Vec<_> = drawn.slices.iter().filter(|slice| !slice.receives.is_empty()).collect();
    assert!(waits.iter().all(|slice| slice.name == "wait for message"));
    let receives = |function: &str| {
        ["MPI_Wait", "MPI_Recv", "MPI_Sendrecv"].iter().any(|name| function.starts_with(name))
    };
    let function =
        |slice: &Slice| slice.args.keys().find_map(|fact| Some(fact.strip_prefix("function ")?.to_owned()));
    let others: BTreeSet<_> = waits
        .iter()
        .map(|slice| function(slice))
        .filter(|name| !name.as_deref().is_some_and(receives))
        .collect();
    assert!(others.is_empty(), "{others:?}");
    let between = |arrows: Vec<(Call, Call)>| {
        let mut pairs = BTreeMap::<_, u64>::new();
        arrows.into_iter().for_each(|(from, to)| *pairs.entry((from.0, to.0)).or_default() += 1);
        pairs
    };
    assert_eq!(between(arrows(&drawn.slices)), between(messages));
    for (from, to) in arrows(&drawn.slices) {
        assert!(from.1 + 1000 <= to.2, "a message takes a microsecond at least: {from:?} {to:?}");
    }
    let host =
        Capture::open(Path::new(&demo())).expect("a capture").rank(Rank(0)).expect("a rank").host.clone();
    assert_eq!(drawn.processes, [(1, host)]);
}

/// One rank's file, from calls of 10 ns on a host with a clock of its own.
struct RankFile {
    writer: RankWriter,
    base: u64,
}

impl RankFile {
    /// A rank that entered `MPI_Init` at `base` of its host's clock, which was `wall` of the wall clock.
    fn new(directory: &Path, rank: u32, host: &str, base: u64, wall: u64) -> Self {
        let info =
            RankInfo { rank: Rank(rank), tasks: 2, host: host.into(), realtime: wall, ..RankInfo::default() };
        let writer = RankWriter::create(directory, &info).expect("a rank's file");
        let mut file = Self { writer, base };
        file.call(0, 0, "MPI_Init", Action::Init);
        let communicator = Communicator {
            id: CommId(0),
            origin: Origin::World,
            split: None,
            members: Members::All,
            remote: Remote::None,
            foreign: false,
        };
        file.call(10, 0, "", Action::Communicator(communicator));
        file
    }

    fn call(&mut self, at: u64, thread: u16, function: &str, action: Action<'_>) {
        let call = match function {
            "" => CallSlot::NONE,
            name => self.writer.function(name).expect("a function"),
        };
        let start = self.base + at;
        let end = if function.is_empty() { start } else { start + 10 };
        let event = Event { start: Nanos(start), end: Nanos(end), thread, call, action };
        self.writer.event(&event).expect("an event");
    }

    fn post(&mut self, at: u64, source: Option<u32>, tag: Option<i32>, number: u64) {
        let posted = PostReceive {
            comm: CommId(0),
            source: source.map(CommRank),
            tag,
            bytes: Bytes(100),
            datatype: DatatypeId(0),
            request: RequestId { thread: 0, number },
        };
        self.call(at, 0, "MPI_Irecv", Action::PostReceive(posted));
    }

    fn wait(&mut self, at: u64, number: u64, outcome: Outcome) {
        let done = [Completion { request: RequestId { thread: 0, number }, outcome }];
        self.call(at, 0, "MPI_Wait", Action::Complete(Completions::List(&done)));
    }
}

#[test]
fn wildcards_threads_phases_and_clocks_of_hosts() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    std::fs::create_dir(work.join("capture")).expect("a directory");
    let wall = 1_700_000_000_000_000_000;
    let mut sender = RankFile::new(&work.join("capture"), 0, "one", 1000, wall);
    let phase = |begin, name| Action::Phase { begin, name };
    sender.call(90, 0, "", phase(true, "all"));
    sender.call(100, 0, "", phase(true, "part"));
    for number in 0..3 {
        let send = Send {
            comm: CommId(0),
            dest: CommRank(1),
            tag: 5,
            bytes: Bytes(number),
            datatype: DatatypeId(0),
            mode: SendMode::Standard,
            request: None,
        };
        sender.call(100 + 20 * number, 0, "MPI_Send", Action::Send(send));
    }
    sender.call(150, 0, "", phase(false, "part"));
    sender.call(170, 1, "MPI_Probe", Action::Probe { comm: CommId(0), source: CommRank(0), tag: 7 });
    sender.call(200, 0, "MPI_Finalize", Action::Finalize);
    sender.writer.finish().expect("a rank's file");
    // What is posted first gets what is sent first, whenever it is waited for. This host's clock is far ahead; its rank came 2 µs later.
    let mut receiver = RankFile::new(&work.join("capture"), 1, "two", 501_000, wall + 2000);
    receiver.post(100, None, None, 0);
    receiver.post(120, Some(0), Some(5), 1);
    receiver.post(140, None, Some(5), 2);
    let received = Outcome::Received { source: CommRank(0), tag: 5, bytes: None };
    receiver.wait(200, 1, Outcome::Done);
    receiver.wait(220, 2, received);
    receiver.wait(240, 0, received);
    receiver.call(300, 0, "MPI_Finalize", Action::Finalize);
    receiver.writer.finish().expect("a rank's file");

    for format in ["perfetto", "json"] {
        timeline(work, &["capture", "-o", "out", "--format", format]).success();
        let drawn = seen(python, &work.join("out"), format == "perfetto");
        let sent = |number: u64| ("rank 0".into(), 100 + 20 * number, 110 + 20 * number, "MPI_Send".into());
        let waited = |at: u64| ("rank 1".into(), 2000 + at, 2010 + at, "MPI_Wait".into());
        let expected: [(Call, Call); 3] =
            [(sent(0), waited(240)), (sent(1), waited(200)), (sent(2), waited(220))];
        assert_eq!(sorted(arrows(&drawn.slices)), sorted(expected.to_vec()));
        assert_eq!(drawn.processes, [(1, "one".into()), (2, "two".into())]);
        assert_eq!(drawn.realtime, Some(wall));
        let slice = |name: &str| {
            let slice = drawn.slices.iter().find(|slice| slice.name == name).expect(name);
            (slice.track.as_str(), slice.begin, slice.end, slice.depth)
        };
        // A phase that has no end lasts as long as its rank.
        assert_eq!(slice("all"), ("rank 0 phases", 90, 210, 0));
        assert_eq!(slice("part"), ("rank 0 phases", 100, 150, 1));
        assert_eq!(slice("MPI_Probe"), ("rank 0 thread 1", 170, 180, 0));
        let threads: BTreeSet<u64> = drawn.tracks.iter().filter_map(|track| track["tid"].as_u64()).collect();
        assert!(threads.len() >= 3, "no two threads have the same number: {:?}", drawn.tracks);
        // Phases that begin before the window, and end behind it.
        timeline(work, &["capture", "-o", "out", "--format", format, "--from", "120ns", "--to", "140ns"])
            .success();
        let part = seen(python, &work.join("out"), false);
        let names: Vec<&str> = part.slices.iter().map(|slice| slice.name.as_str()).collect();
        assert_eq!(sorted(names), ["MPI_Send", "all", "part"]);
        assert!(part.slices.iter().all(|slice| slice.begin >= 120 && slice.end <= 140), "{:?}", part.slices);
    }
}

/// A result of `vef sim --json --links` with two links in bins of 1 µs; the run ends in the third.
fn result(work: &Path) -> Value {
    let trace = work.join("two.vef");
    std::fs::write(&trace, "VEF3 2 1 0 0 0 0 1000\n0 0 1 10 0 0 -1\n").expect("a trace");
    let simulated = run(vef().arg("sim").arg(&trace).args(["--links", "--json"])).success().stdout();
    let mut result: Value = serde_json::from_str(&simulated).expect("JSON");
    result["runtime_ps"] = 2_500_500.into();
    result["links"]["bin_ps"] = 1_000_000.into();
    let links = result["links"]["all"].as_array_mut().expect("links");
    links.truncate(2);
    for (link, (name, busy_ps, busy)) in links
        .iter_mut()
        .zip([("node0->switch", 700_000, [0.5, 0.2, 0.0]), ("switch->node1", 1_250_500, [0.25, 0.25, 1.0])])
    {
        link["link"] = name.into();
        link["busy_ps"] = busy_ps.into();
        link["busy"] = serde_json::json!(busy);
    }
    result
}

/// What ranks compute behind their last call has no slice: it is said how long the run is.
#[test]
fn a_run_may_be_longer_than_its_slices() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    // Rank 1 computes 500 ms behind the message.
    let text = "VEF3 2 2 0 0 0 0 1000\n0 0 1 100 4 1000 -1\n1 1 1 0 2 500000000 0\n";
    std::fs::write(work.join("t.vef"), text).expect("a trace");
    let told = timeline(work, &["t.vef", "-o", "out.json"]).success().stdout();
    let (_, run) = told.split_once(" of ").expect("the run");
    assert!(told.contains("up to 2.") && run.starts_with("500.00"), "{told}");
}

#[test]
fn links_of_a_simulation_are_curves() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    std::fs::write(work.join("result.json"), result(work).to_string()).expect("a result");
    let curve = |name: &str, points: &[(u64, f64)]| serde_json::json!({ "name": name, "unit": "%", "points": points });
    let busiest = curve("switch->node1", &[(0, 25.0), (2000, 100.0), (2501, 0.0)]);
    let other = curve("node0->switch", &[(0, 50.0), (1000, 20.0), (2000, 0.0)]);
    for format in ["perfetto", "json"] {
        let told = timeline(work, &["result.json", "-o", "out", "--format", format]).success().stdout();
        assert!(told.contains("2 links, up to 2.501 µs"), "{told}");
        let all = seen(python, &work.join("out"), false);
        assert_eq!(all.counters, [busiest.clone(), other.clone()], "{format}");
        assert_eq!(all.processes, [(1, "links".into())]);
        let bytes = std::fs::metadata(work.join("out")).expect("a timeline").len();
        let less = (bytes - 1).to_string();
        let told = timeline(work, &["result.json", "-o", "out", "--format", format, "--max-size", &less]);
        assert!(told.success().stdout().contains("left out: 1 link, busy for less time"));
        assert_eq!(seen(python, &work.join("out"), false).counters, vec![busiest.clone()]);
        let window = ["--from", "1500ns", "--to", "2us"];
        timeline(work, &[&["result.json", "-o", "out", "--format", format], &window[..]].concat()).success();
        let part = [curve("switch->node1", &[(0, 25.0)]), curve("node0->switch", &[(1000, 20.0)])];
        assert_eq!(seen(python, &work.join("out"), false).counters, part);
    }
    let result = result(work).to_string();
    std::fs::write(work.join("short.json"), result.replace("\"all\"", "\"some\"")).expect("a result");
    let said = timeline(work, &["short.json", "-o", "out2"]).exited(2).stderr();
    assert!(said.contains("error: short.json: a result that says nothing of links"), "{said}");
    for other in ["{\"a\": 1}", &result.replace("vef-sim/2", "vef-sim/9")] {
        std::fs::write(work.join("other.json"), other).expect("a file");
        let said = timeline(work, &["other.json", "-o", "out2"]).exited(2).stderr();
        assert!(said.contains("error: other.json: not the JSON of `vef sim --json`"), "{said}");
    }
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    std::fs::write(work.join("bad.vef"), "no trace\n").expect("a file");
    std::fs::write(work.join("t.vef"), TRACE).expect("a trace");
    std::fs::write(work.join("result.json"), result(work).to_string()).expect("a result");
    std::fs::create_dir(work.join("empty")).expect("a directory");
    for (words, said) in [
        (
            &[&demo(), "-o", "out", "--from", "99s"][..],
            "capture: there is nothing from 99.000 s on: the run ends at ",
        ),
        (
            &["t.vef", "-o", "out", "--from", "6us"],
            "error: t.vef: there is nothing from 6.000 µs on: the run ends at 5.600 µs",
        ),
        (
            &["result.json", "-o", "out", "--from", "6us"],
            "error: result.json: there is nothing from 6.000 µs on: the run ends at 2.501 µs",
        ),
        (&[&demo(), "-o", "out", "--ranks", "2-9"], "capture: there is no rank 4: there are 4"),
        (&["t.vef", "-o", "out", "--ranks", "9"], "error: t.vef: there is no rank 9"),
        (&[&demo(), "-o", "out", "--ranks", "1,1"], "--ranks 1,1: rank 1 stands behind rank 1"),
        (&[&demo(), "-o", "out", "--ranks", "3-2"], "not a list of ranks such as 0-3,8"),
        (&[&demo(), "-o", "out", "--ranks", "0-4294967295"], "more than 16777216 ranks"),
        (&[&demo(), "-o", "out", "--from", "2s", "--to", "1s"], "error: --from must be before --to"),
        (&[&demo(), "-o", "out", "--format", "svg"], "[possible values: perfetto, json]"),
        (&[&demo(), "-o", "missing/out"], "error: missing/out: "),
        (&["bad.vef", "-o", "out"], "error: bad.vef:1"),
        (&["none.vef", "-o", "out"], "error: none.vef: "),
        (&["empty", "-o", "out"], "error: empty"),
    ] {
        let ended = timeline(work, words).exited(2);
        assert!(ended.stderr().contains(said), "{words:?}: {}", ended.stderr());
        // The capture has more ranks than it had cores, of which it warns.
        let errors = ended.stderr().lines().filter(|line| !line.starts_with("vef: warning: ")).count();
        assert_eq!(errors, 1, "{}", ended.stderr());
        assert!(!work.join("out").exists());
    }
}

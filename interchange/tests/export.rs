//! Traces in formats of other tools, and those tools on them.

use crate::common;
use interchange::{ExportOptions, Exported, Files, Format, Imported, Options, Quiet, import};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;
use vef_format::container::{About, Note, Settings, Writer};
use vef_format::convert::convert;
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::record::{Dependency, Record};
use vef_format::trace::Trace;

/// Four tasks: task 0 sends to all others, which answer; then an Allreduce of all, and one of tasks 1 and 3.
const TRACE: &str = "VEF3 4 13 2 2 6 0 1000
C0 0 1 2 3
C1 1 3
0 0 1 100 4 500 -1
1 0 2 200 5 0 0
2 0 3 3000000000 5 0 1
3 1 1 0 0 0 -1
4 1 0 8 6 1500 0
5 2 2 0 0 0 -1
6 2 0 8 6 2500 1
7 3 3 0 0 0 -1
8 3 0 8 2 3500 2
9 0 0 0 1 0 2
10 0 0 0 2 0 4
G0 C0 2 0 64 64 2 10 6
G0 C0 2 1 64 64 1 10 4
G0 C0 2 2 64 64 1 10 6
G0 C0 2 3 64 64 1 10 8
G1 C1 2 1 16 16 3 0 G0
G1 C1 2 3 16 16 3 0 G0
11 0 0 0 3 0 G0
12 2 2 0 3 0 G0
";

fn export(format: Format, to: &Path) -> Exported {
    export_of(TRACE, format, to)
}

fn export_of(trace: &str, format: Format, to: &Path) -> Exported {
    let from = to.with_extension("vef");
    fs::write(&from, trace).unwrap();
    interchange::export(format, &from, &OpCodes::default(), to, &ExportOptions::default(), &Quiet).unwrap()
}

#[test]
fn simgrid_replays_an_exported_trace() {
    let work = tempfile::tempdir().unwrap();
    let actions = work.path().join("actions");
    let exported = export(Format::Ti, &actions);
    // The Allreduce of two tasks became messages.
    assert_eq!(exported.expanded, 1);
    let text = fs::read_to_string(&actions).unwrap();
    let lines = |begin: &str| text.lines().filter(|line| line[2..].starts_with(begin)).count() as u64;
    assert_eq!(lines("isend"), exported.messages);
    assert_eq!((lines("allreduce 64 0"), lines("init"), lines("finalize")), (4, 4, 4));
    // 3·10⁹ bytes are counted in doubles of 16 bytes, because SimGrid counts in 32 bits.
    assert!(
        text.contains("\n0 isend 3 0 187500000 26\n") && text.contains("\n3 irecv 0 0 187500000 26\n"),
        "{text}"
    );
    assert!(text.contains("\n0 sleep 0.000000500000\n"), "{text}");
    let Some(output) = common::simgrid::replayed(work.path(), 4) else { return };
    // The large message takes 2.4 s or more: its size has not overflowed, which takes 10¹² s.
    let time = output.split("Simulation time ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let time: f64 = time.unwrap_or_else(|| panic!("{output}")).parse().unwrap();
    assert!((2.4..5.0).contains(&time), "{output}");
}

#[test]
fn messages_come_back() {
    let work = tempfile::tempdir().unwrap();
    for (format, name) in [(Format::Goal, "t.goal"), (Format::GoalBinary, "t.bin")] {
        let to = work.path().join(name);
        let exported = export(format, &to);
        assert_eq!(exported.expanded, 2);
        let files = Files::of(&[to]).unwrap();
        assert_eq!(Format::of(&files).unwrap(), format);
        let trace = work.path().join("back.vef");
        let imported = import(format, &files, &trace, || panic!(), &Options::default(), &Quiet).unwrap();
        let Imported::Trace(summary) = imported else { panic!("not a trace") };
        assert_eq!((summary.messages, summary.bytes), (exported.messages, exported.bytes));
        // Six messages of tasks, and those of the Allreduces.
        assert!(summary.messages > 6 && summary.bytes > 3_000_000_324);
        assert_eq!(summary.remarks, Vec::<String>::new());
    }
}

/// Chakra: the collectives of four members stay collectives, and of each member's nodes all come back.
#[test]
fn chakra_comes_back() {
    let work = tempfile::tempdir().unwrap();
    let to = work.path().join("chakra");
    let exported = export(Format::Chakra, &to);
    assert_eq!((exported.expanded, exported.messages, exported.bytes), (0, 6, 3_000_000_324));
    let groups = fs::read_to_string(to.join("groups.json")).unwrap();
    assert_eq!(groups, "{\"2\":[1,3]}");
    let files = Files::of(std::slice::from_ref(&to)).unwrap();
    assert_eq!(Format::of(&files).unwrap(), Format::Chakra);
    let found = Format::Chakra.info().checker.unwrap()(&files, &Options::default(), &Quiet).unwrap();
    assert_eq!(found, []);
    let trace = work.path().join("back.vef");
    let imported = import(Format::Chakra, &files, &trace, || panic!(), &Options::default(), &Quiet).unwrap();
    let Imported::Trace(summary) = imported else { panic!("not a trace") };
    assert_eq!((summary.messages, summary.bytes), (exported.messages, exported.bytes));
    assert_eq!(summary.calls["COMM_COLL"], 6);
    let report = vef_format::validate::validate(&trace, &Default::default()).unwrap();
    assert!(report.is_complete() && report.errors == 0, "{:?}", report.problems);
    assert_eq!((report.tallies.collectives, report.tallies.local_collectives), (2, 6));
    assert_eq!(exported.operations, summary.calls.values().sum::<u64>() - summary.calls["data_deps"]);
    // The files decode with Google's library and the schema that the format documents.
    if has_module("google.protobuf") {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/decode_chakra.py");
        let out = python(&[script.to_str().unwrap(), to.join("trace.0.et").to_str().unwrap()]);
        let out = String::from_utf8(out.stdout).unwrap() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.contains("version 0.0.4\n"), "{out}");
        assert!(out.contains("COMM_SEND_NODE comm_size=100 comm_dst=1 comm_tag=0"), "{out}");
        assert!(out.contains("COMM_COLL_NODE comm_type=0 comm_size=64"), "{out}");
    }
    // A directory with files is not replaced.
    let (codes, options) = (OpCodes::default(), ExportOptions::default());
    let again = interchange::export(Format::Chakra, &trace, &codes, &to, &options, &Quiet).unwrap_err();
    assert!(again.to_string().contains("not empty"), "{again}");
}

/// Debian's Python, for which `scripts/deps` installs modules.
const PYTHON: &str = "/usr/bin/python3";

fn python(arguments: &[&str]) -> std::process::Output {
    Command::new(PYTHON).args(arguments).output().unwrap()
}

/// Whether Python has a module; otherwise a part of the test is skipped.
fn has_module(name: &str) -> bool {
    if !skipping::installed(PYTHON) {
        return false;
    }
    let found = python(&["-c", &format!("import {name}")]).status.success();
    if !found {
        skipping::skipped(format_args!("{PYTHON} has no module {name} (scripts/deps)"));
    }
    found
}

/// The records of a trace, but for the numbers of messages and collectives.
fn numbered(text: &str) -> Vec<String> {
    let mut by_task: Vec<Vec<Vec<&str>>> = vec![Vec::new(); 4];
    for line in text.lines().skip(1).filter(|line| !line.starts_with('C')) {
        let words: Vec<&str> = line.split(' ').collect();
        let task: usize = words[if line.starts_with('G') { 3 } else { 1 }].parse().unwrap();
        by_task[task].push(words);
    }
    let all = by_task.iter().flatten();
    // A record is known by its task and its number in it.
    let mut places = std::collections::HashMap::new();
    for (task, records) in by_task.iter().enumerate() {
        for (number, words) in records.iter().enumerate() {
            if !words[0].starts_with('G') {
                places.insert(words[0], format!("{task}.{number}"));
            }
        }
    }
    all.map(|words| {
        let is_collective = words[0].starts_with('G');
        let after = *words.last().unwrap();
        let after = places.get(after).map_or(after, String::as_str);
        let kept = if is_collective { &words[2..words.len() - 1] } else { &words[1..words.len() - 1] };
        format!("{} {after}", kept.join(" "))
    })
    .collect()
}

/// The trace that an archive becomes, and what the import tells.
fn otf2_back(archive: &Path) -> (String, interchange::Summary) {
    let work = tempfile::tempdir().unwrap();
    let files = Files::of(&[archive.to_path_buf()]).unwrap();
    let capture = work.path().join("capture");
    let made = || Ok(capture.clone());
    let made = import(Format::Otf2, &files, Path::new(""), made, &Options::default(), &Quiet).unwrap();
    let Imported::Capture { summary, .. } = made else { panic!("no calls") };
    assert_eq!((summary.messages, summary.bytes), (6, 3_000_000_324));
    let back = work.path().join("back.vef");
    mixer::mix(&capture, &back, &mixer::Options::default(), &mixer::Quiet).unwrap();
    (fs::read_to_string(&back).unwrap(), summary)
}

/// OTF2: every record comes back, with its sizes, dependencies and times.
#[test]
fn otf2_comes_back() {
    let work = tempfile::tempdir().unwrap();
    let to = work.path().join("otf2");
    // All messages are waited for, and all tasks end by the mark of MPI_Finalize.
    let trace = TRACE.replace("8 3 0 8 2 3500 2", "8 3 0 8 6 3500 2").replace("4 13 2", "4 16 2")
        + "13 0 0 0 2 0 8\n14 1 1 0 3 0 G1\n15 3 3 0 3 0 G1\n";
    let exported = export_of(&trace, Format::Otf2, &to);
    assert_eq!((exported.messages, exported.bytes, exported.expanded), (6, 3_000_000_324, 0));
    let (back, summary) = otf2_back(&to);
    assert_eq!(summary.told().collect::<Vec<_>>(), [""; 0]);
    assert_eq!(
        ["MPI_Allreduce", "MPI_Recv", "MPI_Send", "MPI_Finalize"].map(|name| summary.calls[name]),
        [6, 6, 6, 4]
    );
    assert_eq!(numbered(&back)[..], numbered(&trace)[..], "{back}");
    if !skipping::installed("otf2-print") {
        return;
    }
    let print = Command::new("otf2-print").arg(to.join("traces.otf2")).output().unwrap();
    let text = String::from_utf8(print.stdout).unwrap();
    assert!(print.status.success() && print.stderr.is_empty(), "{}", String::from_utf8_lossy(&print.stderr));
    let count = |event: &str| text.lines().filter(|line| line.split(' ').next() == Some(event)).count();
    assert_eq!([count("MPI_SEND"), count("MPI_RECV"), count("MPI_COLLECTIVE_END")], [6, 6, 6]);
    assert_eq!(count("ENTER"), count("LEAVE"));
    let world = "Communicator: \"MPI_COMM_WORLD\" <0>";
    let message = format!("Receiver: 3 (\"Master thread\" <3>), {world}, Tag: 0, Length: 3000000000");
    assert!(text.contains(&message), "{text}");
    if has_module("otf2") {
        let script = [
            "import collections, otf2, sys",
            "with otf2.reader.open(sys.argv[1]) as trace:",
            "    counts = collections.Counter(type(event).__name__ for _, event in trace.events)",
            "print(counts['MpiSend'], counts['MpiRecv'], counts['MpiCollectiveEnd'])",
        ];
        let out = python(&["-c", &script.join("\n"), to.join("traces.otf2").to_str().unwrap()]);
        assert_eq!(
            String::from_utf8_lossy(&out.stdout),
            "6 6 6\n",
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
}

/// A probe that finds a message is two records of a trace, and one call of an archive.
#[test]
fn a_probe_is_one_call_of_otf2() {
    let work = tempfile::tempdir().unwrap();
    let (text, container) = (work.path().join("t.vef"), work.path().join("t.vefx"));
    let trace = "VEF3 2 6 0 0 0 1 1000\n0 0 1 8 4 100 -1\n1 0 0 0 1 0 0\n2 1 1 0 0 50 -1\n3 1 1 0 2 0 0\n4 1 1 0 1 10 3\n5 1 1 0 1 0 4\n";
    fs::write(&text, trace).unwrap();
    let from = Trace::open(&text).unwrap();
    let file = fs::File::create(&container).unwrap();
    let mut writer = Writer::new(file, from.header(), &About::default(), Settings::default()).unwrap();
    for (place, call) in [(0, "MPI_Probe"), (2, "MPI_Recv"), (3, "MPI_Finalize")] {
        writer.note(Some(Rank(1)), place, &Note::Call(call)).unwrap();
    }
    from.each(|_, line| -> Result<(), Box<dyn std::error::Error>> { Ok(writer.line(&line)?) }).unwrap();
    writer.finish().unwrap();
    let to = work.path().join("archive");
    let options = ExportOptions::default();
    interchange::export(Format::Otf2, &container, &OpCodes::default(), &to, &options, &Quiet).unwrap();
    let files = Files::of(&[to]).unwrap();
    let made = || Ok(work.path().join("capture"));
    let made = import(Format::Otf2, &files, Path::new(""), made, &Options::default(), &Quiet).unwrap();
    let Imported::Capture { summary, .. } = made else { panic!("no calls") };
    assert_eq!(["MPI_Probe", "MPI_Recv", "MPI_Send"].map(|name| summary.calls[name]), [1, 1, 1]);
}

/// A window is made by one call, of which a trace has the collectives by which the library agrees; calls of a collective are one each.
#[test]
fn a_window_is_made_by_one_call_of_otf2() {
    let work = tempfile::tempdir().unwrap();
    let [text, container, to, back] =
        ["t.vef", "t.vefx", "archive", "back.vef"].map(|name| work.path().join(name));
    let trace = "VEF3 2 2 1 6 12 0 1000\nC0 0 1\nG0 C0 2 0 260 260 0 100 -1\nG0 C0 2 1 260 260 0 50 -1\n\
        G1 C0 0 0 4 0 3 0 G0\nG1 C0 0 1 0 4 3 0 G0\nG2 C0 6 0 0 0 3 0 G1\nG2 C0 6 1 0 0 3 0 G1\n\
        G3 C0 6 0 0 0 3 7 G2\nG3 C0 6 1 0 0 3 0 G2\nG4 C0 2 0 8 8 3 9 G3\nG4 C0 2 1 8 8 3 0 G3\n\
        G5 C0 2 0 8 8 3 0 G4\nG5 C0 2 1 8 8 3 0 G4\n0 0 0 0 3 5 G5\n1 1 1 0 3 5 G5\n";
    fs::write(&text, trace).unwrap();
    let from = Trace::open(&text).unwrap();
    let file = fs::File::create(&container).unwrap();
    let mut writer = Writer::new(file, from.header(), &About::default(), Settings::default()).unwrap();
    let calls =
        [(0, "MPI_Win_allocate_shared"), (3, "MPI_Win_fence"), (4, "MPI_Allreduce"), (6, "MPI_Finalize")];
    for (place, call) in calls {
        for task in 0..2 {
            writer.note(Some(Rank(task)), place, &Note::Call(call)).unwrap();
        }
    }
    from.each(|_, line| -> Result<(), Box<dyn std::error::Error>> { Ok(writer.line(&line)?) }).unwrap();
    writer.finish().unwrap();
    let options = ExportOptions::default();
    interchange::export(Format::Otf2, &container, &OpCodes::default(), &to, &options, &Quiet).unwrap();
    let summary = common::capture(&[to], work.path(), &Options::default()).unwrap();
    let calls = calls.map(|(_, name)| summary.calls[name]);
    assert_eq!(calls, [2, 2, 4, 2]);
    let (capture, options) = (work.path().join("capture"), mixer::Options::default());
    let mixed = mixer::mix(&capture, &back, &options, &mixer::Quiet).unwrap();
    assert_eq!(mixed.shared_windows, 2);
    assert_eq!(numbered(&fs::read_to_string(&back).unwrap()), numbered(trace));
}

/// Of a message that no record waits for, and of collectives, the archive has the ends.
#[test]
fn otf2_has_what_no_record_waits_for() {
    let work = tempfile::tempdir().unwrap();
    let to = work.path().join("otf2");
    // Tasks 1 and 3 go on before their Allreduce ends.
    let trace = TRACE.replace("4 13 2", "4 17 2")
        + "13 1 1 0 0 50 -1\n14 3 3 0 0 0 -1\n15 1 1 0 3 0 G1\n16 3 3 0 3 0 G1\n";
    export_of(&trace, Format::Otf2, &to);
    let (back, summary) = otf2_back(&to);
    assert_eq!(summary.told().collect::<Vec<_>>(), [""; 0]);
    assert_eq!([summary.calls["MPI_Iallreduce"], summary.calls["MPI_Waitall"]], [2, 1]);
    let collectives = |text: &str| text.lines().filter(|line| line.starts_with('G')).count();
    assert_eq!(collectives(&back), collectives(&trace));
}

/// A receive directly behind a collective that no record waits for, and one that the first record of a task waits for, are in the archive; and
/// such a collective holds up nothing.
#[test]
fn otf2_has_receives_behind_anything() {
    let behind = "VEF3 2 4 1 1 2 0 1000\nC0 0 1\n0 0 1 1000 4 0 -1\nG0 C0 6 0 0 0 1 0 0\n1 1 1 0 0 0 -1\n\
        G0 C0 6 1 0 0 1 0 1\n2 0 0 0 3 0 G0\n3 1 1 0 2 50 0\n";
    let first = "VEF3 2 5 0 0 0 0 1000\n0 0 1 500 0 100 -1\n1 0 1 600 5 100 0\n2 1 1 0 2 50 1\n3 0 0 0 1 10 1\n\
        4 1 1 0 1 10 2\n";
    for (trace, bytes, time) in [(behind, 1000, 50), (first, 600, 60)] {
        let work = tempfile::tempdir().unwrap();
        let to = work.path().join("otf2");
        export_of(trace, Format::Otf2, &to);
        let (_, mixed, records) =
            common::import_records(&to, &Options { strict: true, ..Options::default() });
        assert_eq!(mixed.messages, mixed.matched, "{trace}");
        let text = records.iter().map(|record| format!("{record:?}\n")).collect::<String>();
        let awaited = records.iter().find_map(|record| match record {
            Record::Message(sent) if sent.bytes.0 == bytes => Some(sent),
            _ => None,
        });
        let awaited = awaited.filter(|sent| sent.awaited).unwrap_or_else(|| panic!("{text}"));
        let of_1: Vec<Dependency> =
            records.iter().filter(|record| record.task() == Some(Rank(1))).map(Record::after).collect();
        let waits = of_1.iter().position(|&after| after == Dependency::Received(awaited.id)).unwrap();
        let is_time = |record: &&Record| record.task() == Some(Rank(1)) && record.after() == of_1[waits];
        let waiting = records.iter().find(is_time).unwrap();
        assert!(matches!(waiting, Record::Message(mark) if mark.time.0 == time), "{text}");
        // Only the end of the rank waits for the barrier.
        let barrier = of_1.iter().position(|after| matches!(after, Dependency::Collective(_)));
        assert!(barrier.is_none_or(|barrier| barrier > waits), "{text}");
    }
}

/// A trace of messages whose records wait for any that came before, for sends, or for nothing.
fn random_trace(seed: u64) -> String {
    let mut random = SmallRng::seed_from_u64(seed);
    let tasks = random.random_range(2..7u32);
    // Source, destination, bytes, time, and the message that is waited for.
    let mut records: Vec<(u32, u32, u64, u64, Option<usize>)> = Vec::new();
    for _ in 0..150 {
        let src = random.random_range(0..tasks);
        let dst = (src + random.random_range(1..tasks)) % tasks;
        let to_src: Vec<usize> = (0..records.len()).filter(|&number| records[number].1 == src).collect();
        let waits = !to_src.is_empty() && random.random_bool(0.6);
        let awaited = waits.then(|| to_src[random.random_range(0..to_src.len())]);
        records.push((src, dst, random.random_range(1..50_000), random.random_range(0..9_000), awaited));
    }
    let mut lines = format!("VEF3 {tasks} {} 1 0 0 0 1000\nC0", records.len() + tasks as usize);
    (0..tasks).for_each(|task| lines += &format!(" {task}"));
    for (id, &(src, dst, bytes, time, waited)) in records.iter().enumerate() {
        let awaited = if records.iter().any(|record| record.4 == Some(id)) { 4 } else { 0 };
        let before = records[..id].iter().rposition(|record| record.0 == src);
        let (kind, on) = match (waited, before) {
            (Some(on), _) => (2, on as i64),
            (None, Some(on)) => (1, on as i64),
            (None, None) => (0, -1),
        };
        lines += &format!("\n{id} {src} {dst} {bytes} {} {time} {on}", awaited + kind);
    }
    for task in 0..tasks {
        let last = records.iter().rposition(|record| record.0 == task);
        let (kind, on) = last.map_or((0, -1), |on| (1, on as i64));
        lines += &format!("\n{} {task} {task} 0 {kind} 5 {on}", records.len() + task as usize);
    }
    lines + "\n"
}

/// When the messages of each channel start, with their bytes, by the rule of replays on a network of 1 µs and 10 Gbit/s without contention.
/// Records are tried until none can start.
fn starts(trace: &str) -> BTreeMap<(u32, u32), Vec<(u64, u64)>> {
    let mut tasks: BTreeMap<u32, Vec<Vec<i64>>> = BTreeMap::new();
    for line in trace.lines().skip(1).filter(|line| !line.starts_with('C')) {
        let fields: Vec<i64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
        tasks.entry(fields[1] as u32).or_default().push(fields);
    }
    let (mut sent, mut ends) = (HashMap::new(), BTreeMap::new());
    let mut next: BTreeMap<u32, (usize, i64)> = tasks.keys().map(|&task| (task, (0, 0))).collect();
    loop {
        let mut moved = false;
        for (task, records) in &tasks {
            let (number, now) = next[task];
            let Some(fields) = records.get(number) else { continue };
            let [id, src, dst, bytes, kind, time, on] = fields[..] else { panic!("{fields:?}") };
            let released = match kind % 4 {
                0 => Some(0),
                1 => sent.get(&on).map(|&(start, _)| start),
                _ => sent.get(&on).map(|&(start, bytes)| start + 1_000_000 + 800 * bytes),
            };
            let Some(released) = released else { continue };
            let start = now.max(released) + 1000 * time;
            sent.insert(id, (start, bytes));
            if bytes > 0 {
                let channel: &mut Vec<_> = ends.entry((src as u32, dst as u32)).or_default();
                channel.push((bytes as u64, start as u64));
            }
            next.insert(*task, (number + 1, start));
            moved = true;
        }
        if !moved {
            let all: usize = tasks.values().map(Vec::len).sum();
            assert_eq!(sent.len(), all, "stuck: {trace}");
            return ends;
        }
    }
}

/// Schedules of random traces, read back: the same messages, with the same bytes, at the same times.
#[test]
fn schedules_keep_the_times_of_all_messages() {
    let work = tempfile::tempdir().unwrap();
    for seed in 0..40 {
        let trace = random_trace(seed);
        let expected = starts(&trace);
        assert_eq!(expected.values().map(Vec::len).sum::<usize>(), 150);
        for (format, name) in [(Format::Goal, "t.goal"), (Format::GoalBinary, "t.bin")] {
            let to = work.path().join(name);
            export_of(&trace, format, &to);
            let (files, back) = (Files::of(&[to]).unwrap(), work.path().join("back.vef"));
            import(format, &files, &back, || panic!(), &Options::default(), &Quiet).unwrap();
            assert_eq!(starts(&fs::read_to_string(&back).unwrap()), expected, "{seed}: {name}\n{trace}");
        }
    }
}

/// What `vef check` refuses is not exported, with the same error at the same place.
#[test]
fn invalid_traces_are_refused_with_their_place() {
    let cases = [
        // A send that does not exist, a mark's id twice, a code without a name, tasks that wait for each other.
        (
            "2 0 3 3000000000 5 0 1\n",
            "2 0 3 3000000000 5 0 99\n",
            ":6: waits for record 99, which does not exist",
        ),
        ("10 0 0 0 2 0 4\n", "9 0 0 0 2 0 4\n", ":14: id 9 is that of line 13 already"),
        (
            "G1 C1 2 1",
            "G1 C1 77 1",
            ":19: operation code 77 is not in the table; and 1 other error, which vef check lists",
        ),
        (
            "0 0 1 100 4 500 -1\n",
            "0 0 1 100 6 500 4\n",
            ":4: tasks wait for each other: line 4 (task 0) needs id 4",
        ),
    ];
    let work = tempfile::tempdir().unwrap();
    let [from, container, to] = ["trace.vef", "trace.vefx", "out"].map(|name| work.path().join(name));
    let refused = |format, from: &Path| {
        let options = ExportOptions::default();
        let refused = interchange::export(format, from, &OpCodes::default(), &to, &options, &Quiet);
        assert!(!to.exists());
        refused.unwrap_err().to_string()
    };
    for &(valid, invalid, why) in &cases {
        assert!(TRACE.contains(valid));
        fs::write(&from, TRACE.replace(valid, invalid)).unwrap();
        for format in [Format::Goal, Format::GoalBinary, Format::Ti, Format::Chakra, Format::Otf2] {
            let refused = refused(format, &from);
            assert!(refused.contains(&format!("trace.vef{why}")), "{format:?}: {refused}");
        }
    }
    // As many tasks as no file of this length has.
    fs::write(&from, "VEF3 100000000 1 0 0 0 0 1000\n0 0 1 8 4 10 -1\n").unwrap();
    let many = refused(Format::Goal, &from);
    assert!(many.contains("the header promises 100 000 000 tasks"), "{many}");
    fs::write(&from, TRACE.replace(cases[3].0, cases[3].1)).unwrap();
    // The last one as a container, whose places are records.
    convert(&from, &container, &About::default(), Settings::default()).unwrap();
    let refused = refused(Format::Goal, &container);
    let why = "trace.vefx: record 0 of task 0: tasks wait for each other: record 0 of task 0 needs id 4";
    assert!(refused.contains(why), "{refused}");
}

/// As in `vef check`, time ends after 2⁶⁴ ps: what would arrive later, at 800 ps a byte, is refused, in all formats.
#[test]
fn messages_past_the_end_of_time_are_refused() {
    let work = tempfile::tempdir().unwrap();
    let [from, to] = ["trace.vef", "out"].map(|name| work.path().join(name));
    let export = |sent: u64, contributed: u64, format| {
        let text = format!(
            "VEF3 2 3 1 1 2 0 1000\nC0 0 1\n0 0 1 8 0 5 -1\n1 0 1 {sent} 1 5 0\n2 1 1 0 0 5 -1\nG0 C0 7 0 {contributed} {contributed} 1 5 1\n\
             G0 C0 7 1 {contributed} {contributed} 1 5 2\n"
        );
        fs::write(&from, text).unwrap();
        let options = ExportOptions::default();
        interchange::export(format, &from, &OpCodes::default(), &to, &options, &Quiet)
    };
    let most = |start: u64| (u64::MAX - 1_000_000 - start) / 800;
    let why = "trace.vef: task 0 goes on, or its messages arrive, after the end of time (2^64 ps, 213 days)";
    for format in [Format::Goal, Format::GoalBinary, Format::Chakra, Format::Otf2, Format::Ti] {
        for (sent, contributed) in
            [(most(10_000) + 1, 8), (u64::MAX, 8), (8, most(15_000) + 1), (8, u64::MAX)]
        {
            assert_eq!(
                export(sent, contributed, format).unwrap_err().to_string().rsplit('/').next(),
                Some(why)
            );
            assert!(!to.exists());
        }
        match export(most(10_000), 8, format) {
            Ok(exported) => assert!(exported.bytes > most(10_000), "{format:?}"),
            // A thousand lines of SimGrid's say no more than 32 TiB.
            Err(error) => {
                assert!(format == Format::Ti && error.to_string().contains("cannot be written"), "{error}")
            }
        }
        if to.is_dir() {
            fs::remove_dir_all(&to).unwrap();
        } else if to.exists() {
            fs::remove_file(&to).unwrap();
        }
    }
}

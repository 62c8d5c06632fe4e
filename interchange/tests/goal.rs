//! GOAL: the samples, with counts that were made independently; text and binary are the same; no input panics.

use interchange::goal::{BinaryWriter, Operation, RankGraph, Reader, Schedule, TextWriter, What};
use interchange::{ENDS_EARLY, Files, Format, Imported, Options, Quiet, Streams, Summary, import};
use proptest::prelude::*;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use vef_format::ids::MessageId;
use vef_format::record::{Dependency, Line, Message};
use vef_format::text;
use vef_format::units::{Bytes, Picos};
use vef_format::validate::{self, validate};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/goal").join(name)
}

const SAMPLES: [&str; 4] = ["binary_tree_16", "binary_tree_32", "binomial_8", "dissemination_16"];

/// Converts with a reader and a writer, a rank at a time.
fn to_binary(mut reader: Reader) -> Vec<u8> {
    let mut writer = BinaryWriter::new(Cursor::new(Vec::new()), reader.ranks()).unwrap();
    let mut graph = RankGraph::default();
    while reader.next(&mut graph).unwrap().is_some() {
        writer.rank(&graph).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn to_text(mut reader: Reader) -> String {
    let mut writer = TextWriter::new(Vec::new(), reader.ranks()).unwrap();
    let mut graph = RankGraph::default();
    while reader.next(&mut graph).unwrap().is_some() {
        writer.rank(&graph).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

fn of_bytes(bytes: Vec<u8>) -> Reader {
    Reader::from_bytes(Path::new("test"), bytes).unwrap()
}

#[test]
fn text_becomes_the_bytes_of_txt2bin_and_back() {
    for name in SAMPLES {
        let theirs = std::fs::read(sample(&format!("{name}.bin"))).unwrap();
        let ours = to_binary(Reader::open(&sample(&format!("{name}.goal")), false).unwrap());
        assert!(ours == theirs, "{name}: {} bytes, not {}", ours.len(), theirs.len());
        let text = to_text(of_bytes(theirs.clone()));
        assert!(to_binary(of_bytes(text.into_bytes())) == theirs, "{name}");
    }
}

#[test]
fn counts_of_the_samples_are_those_of_their_readme() {
    // Messages, bytes, requires.
    let counts = [(15, 15, 11), (31, 31, 26), (7, 56, 4), (64, 64, 48)];
    let work = tempfile::tempdir().unwrap();
    for (name, (messages, bytes, requires)) in SAMPLES.iter().zip(counts) {
        for form in ["goal", "bin"] {
            let (summary, lines) = imported(&sample(&format!("{name}.{form}")), &work.path().join("t.vef"));
            assert_eq!((summary.messages, summary.bytes), (messages, bytes), "{name}.{form}");
            assert_eq!(summary.calls["requires"], requires, "{name}.{form}");
            assert_eq!((summary.calls["send"], summary.calls["recv"]), (messages, messages), "{name}.{form}");
            let sent: Vec<&Message> = lines.iter().filter(|message| !message.is_mark()).collect();
            assert_eq!(sent.len() as u64, messages, "{name}.{form}");
            assert_eq!(sent.iter().map(|message| message.bytes.0).sum::<u64>(), bytes, "{name}.{form}");
        }
    }
}

#[test]
fn a_compressed_schedule_is_the_plain_one_in_both_forms() {
    let work = tempfile::tempdir().unwrap();
    for form in ["goal", "bin"] {
        let plain = sample(&format!("binomial_8.{form}"));
        let compressed = work.path().join(form).with_extension("gz");
        let out = std::fs::File::create(&compressed).unwrap();
        let gzip = std::process::Command::new("gzip").arg("-c").arg(&plain).stdout(out).status().unwrap();
        assert!(gzip.success());
        let [one, other] = [&plain, &compressed].map(|path| imported(path, &work.path().join("t.vef")));
        assert_eq!(one, other, "{form}");
        let bytes = std::fs::read(&compressed).unwrap();
        std::fs::write(&compressed, &bytes[..bytes.len() / 2]).unwrap();
        let cut = imported_with(&compressed, &work.path().join("t.vef"), &Options::default()).map(|_| ());
        let said = cut.expect_err("a truncated file").to_string();
        assert!(
            said.contains(&format!("{}: it is compressed by gzip, and cut off", compressed.display())),
            "{said}"
        );
    }
}

#[test]
fn sweep3d_has_the_counts_of_its_readme() {
    let Some(path) = skipping::shared("data/interchange/goal/sweep3d-4.goal.gz") else { return };
    let work = tempfile::tempdir().unwrap();
    let (summary, lines) = imported(&path, &work.path().join("t.vef"));
    assert_eq!((summary.messages, summary.bytes, summary.ranks), (6052, 207_362_036, 4));
    let calls = ["send", "recv", "calc", "requires"].map(|name| summary.calls[name]);
    assert_eq!(calls, [6052, 6052, 11836, 24220]);
    let computing: u64 = lines.iter().map(|message| message.time.0).sum();
    assert_eq!(computing, 159_247_036_000);
    assert_eq!(lines.iter().filter(|message| !message.is_mark()).count(), 6052);
}

fn imported(path: &Path, to: &Path) -> (Summary, Vec<Message>) {
    imported_with(path, to, &Options::default()).unwrap()
}

/// Imports a file, checks that the trace is valid, and returns its messages and marks.
fn imported_with(
    path: &Path,
    to: &Path,
    options: &Options,
) -> Result<(Summary, Vec<Message>), interchange::ImportError> {
    let files = Files::of(&[path.to_owned()])?;
    let format = Format::of(&files)?;
    let capture = || panic!("a graph becomes no capture");
    let imported = import(format, &files, to, capture, options, &Quiet)?;
    let Imported::Trace(summary) = imported else { panic!("not a trace: {imported:?}") };
    let report = validate(to, &validate::Options::default()).unwrap();
    assert!(report.is_complete() && report.warnings == 0, "{}: {report:?}", path.display());
    let mut lines = Vec::new();
    let mut reader = text::Reader::open(to).unwrap();
    while let Some(line) = reader.next().unwrap() {
        if let Line::Message(message) = line {
            lines.push(message);
        }
    }
    Ok((summary, lines))
}

fn goal(text: &str, options: &Options) -> Result<(Summary, Vec<Message>), String> {
    let work = tempfile::tempdir().unwrap();
    let path = work.path().join("t.goal");
    std::fs::write(&path, text).unwrap();
    let result = imported_with(&path, &work.path().join("t.vef"), options);
    result.map_err(|error| error.to_string().replace(path.to_str().unwrap(), "t.goal"))
}

/// The records of a rank: bytes to the receiver, dependency, time; marks have no receiver.
fn records(lines: &[Message], rank: u32) -> Vec<(Option<u32>, Dependency, u64)> {
    let of_rank = lines.iter().filter(|message| message.src.0 == rank);
    of_rank
        .map(|message| ((!message.is_mark()).then_some(message.dst.0), message.after, message.time.0))
        .collect()
}

/// 40 operations of a rank, each of which requires the one before; the first dependency is on what is defined below.
fn labelled(label: &dyn Fn(u64) -> String) -> String {
    let mut text = format!("num_ranks 1\nrank 0 {{\n{} requires {}\n", label(39), label(0));
    for number in 0..40 {
        text += &format!("{}: calc {number}\n", label(number));
        if number > 0 {
            text += &format!("{} requires {}\n", label(number), label(number - 1));
        }
    }
    text + "}\n"
}

#[test]
fn labels_of_any_kind_name_the_same_operations() {
    let read = |text: String| Schedule::from_bytes(Path::new("t.goal"), text.into_bytes());
    let numbered = read(labelled(&|number| format!("l{number}"))).unwrap();
    assert_eq!((numbered.requires.len(), numbered.requires[0]), (40, (0, 39)));
    let labels: [(&str, &dyn Fn(u64) -> String); 9] = [
        ("they count on from other ranks", &|number| format!("l{}", 1_000_000 + number)),
        ("backwards", &|number| format!("l{}", 99 - number)),
        ("far from each other", &|number| format!("l{}", number * 99_999_999_999)),
        ("numbers beyond 64 bits", &|number| format!("l{}{number}", "9".repeat(20))),
        ("zeros in front are another label", &|number| {
            format!("l{}{}", "0".repeat(1 + number as usize % 2), number / 2)
        }),
        ("two prefixes", &|number| format!("{}{}", ["send", "l_1_"][number as usize % 2], number / 2)),
        ("no numbers", &|number| "x".repeat(1 + number as usize)),
        ("a few numbers", &|number| {
            if number < 30 { "x".repeat(31 - number as usize) } else { format!("l{number}") }
        }),
        ("numbers only", &|number| number.to_string()),
    ];
    for (kind, label) in labels {
        assert_eq!(read(labelled(label)).unwrap(), numbered, "{kind}");
        // Labels of another number, or of none, are not there.
        for (number, wanted) in [(7, "was there before, on line 17"), (41, "no operation")] {
            let text = labelled(label)
                .replace(&format!("{}: calc 20\n", label(20)), &format!("{}: calc 20\n", label(number)));
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{kind}: {error}");
        }
    }
}

#[test]
fn records_of_a_ping_pong() {
    let text = "num_ranks 2
rank 0 { c: calc 500 s: send 8b to 1 tag 5 s requires c r: recv 8b from 1 r requires s d: calc 70 d requires r }
rank 1 { r: recv 8b from 0 tag 5 c: calc 30 c requires r s: send 8b to 0 s requires c s requires r }";
    let (_, lines) = goal(text, &Options::default()).unwrap();
    let sent = |from| lines.iter().find(|message| !message.is_mark() && message.src.0 == from).unwrap().id;
    let (ping, pong) = (sent(0), sent(1));
    let of_0 = records(&lines, 0);
    assert_eq!(of_0[0], (Some(1), Dependency::Start, 500));
    // The receive is posted when the send has ended; computing waits for the message.
    assert_eq!(of_0[1], (None, Dependency::Sent(ping), 0));
    assert_eq!(of_0[2], (None, Dependency::Received(pong), 70));
    let of_1 = records(&lines, 1);
    // The send requires two operations, so computing has a mark of its own.
    assert_eq!((of_1.len(), of_1[1]), (4, (None, Dependency::Received(ping), 30)));
    assert_eq!((of_1[2].0, of_1[2].2), (Some(0), 0));
    assert!(lines.iter().filter(|message| !message.is_mark()).all(|message| message.awaited));
}

#[test]
fn an_order_that_the_file_does_not_give_is_never_a_deadlock() {
    // In file order, each rank would compute behind its receive before it sends.
    let text = "num_ranks 2
rank 0 { r: recv 8b from 1 c: calc 5 c requires r s: send 8b to 1 }
rank 1 { r: recv 8b from 0 c: calc 5 c requires r s: send 8b to 0 }";
    let (_, lines) = goal(text, &Options::default()).unwrap();
    assert_eq!(records(&lines, 0).iter().map(|record| record.0).collect::<Vec<_>>(), [None, Some(1), None]);
}

#[test]
fn what_is_left_out_is_said() {
    let default = Options::default();
    let partial = Options { partial: true, ..Options::default() };
    let alone = "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 1\nb: send 3b to 1 tag 2\n}\nrank 1 {\na: recv 8b from 0 tag 1\nb: recv 8b from 0 tag 3\nc: calc 9\nc requires b\n}";
    let error = goal(alone, &default).unwrap_err();
    assert_eq!(
        error,
        "t.goal: without a partner: 1 send, 1 receive (vef import --partial leaves them out): rank 0, line 4: send of 3 bytes to 1, tag 2; \
         rank 1, line 8: receive of 8 bytes from 0, tag 3"
    );
    let (summary, lines) = goal(alone, &partial).unwrap();
    assert_eq!((summary.unmatched.sends, summary.unmatched.receives, summary.messages), (1, 1, 1));
    assert_eq!(lines.iter().filter(|message| !message.is_mark()).count(), 1);
    let circle = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}";
    let error = goal(circle, &partial).unwrap_err();
    assert!(error.contains("operations depend on each other in a circle (2): rank 0, line"), "{error}");
    let deadlock = "num_ranks 2\nrank 0 {\nr: recv 1b from 1\ns: send 1b to 1\ns requires r\n}\nrank 1 {\nr: recv 1b from 0\ns: send 1b to 0\ns requires r\n}";
    let error = goal(deadlock, &default).unwrap_err();
    assert!(error.contains("4 operations not done; rank 0, line 3: receive"), "{error}");
    // Once around.
    assert_eq!(
        error.matches("rank 0, line 3: receive of 1 byte from 1, tag 0 waits for").count(),
        1,
        "{error}"
    );
    assert!(
        error.ends_with("waits for rank 0, line 3: receive of 1 byte from 1, tag 0, in a circle"),
        "{error}"
    );
    let overlap = "num_ranks 2\nrank 0 { c: calc 9000 r: recv 1b from 1 s: send 1b to 1 s requires r }\nrank 1 { s: send 1b to 0 r: recv 1b from 0 }";
    let (summary, _) = goal(overlap, &default).unwrap();
    assert!(
        summary.remarks[0]
            .starts_with("started while the task computes: 1 operation, which follows in the trace"),
        "{summary:?}"
    );
    let larger = "num_ranks 2 rank 0 { s: send 10b to 1 } rank 1 { r: recv 5b from 0 }";
    let (summary, _) = goal(larger, &default).unwrap();
    assert!(summary.remarks[0].starts_with("1 message larger than the room"), "{summary:?}");
    assert!(goal(larger, &Options { strict: true, ..Options::default() }).is_err());
    // Times that a trace cannot hold are refused, also if each one fits.
    let long = "num_ranks 1 rank 0 { a: calc 10000000000000000 b: calc 10000000000000000 }";
    let error = goal(long, &default).unwrap_err();
    assert!(error.contains("the computing time of rank 0 is too large"), "{error}");
}

/// A receive that is left out holds up neither what requires it nor the stream that computes meanwhile.
#[test]
fn a_receive_that_is_left_out_ends_at_once() {
    let partial = Options { partial: true, ..Options::default() };
    for from in ["1", "-1"] {
        let text = format!(
            "num_ranks 2\nrank 0 {{\na: recv 8b from {from}\nb: calc 10\nb requires a\nc: calc 20\n}}\nrank 1 {{\n}}"
        );
        let (summary, lines) = goal(&text, &partial).unwrap();
        assert_eq!(summary.unmatched.receives, 1, "{from}");
        assert_eq!(lines.iter().map(|message| message.time.0).sum::<u64>(), 30, "{from}");
    }
}

#[test]
fn wildcards_take_what_arrives_first() {
    let text = "num_ranks 3
rank 0 { a: recv 8b from -1 tag -1 b: recv 8b from -1 b requires a c: recv 8b from 1 tag 7 }
rank 1 { d: calc 5000 s: send 1b to 0 s requires d t: send 3b to 0 tag 7 }
rank 2 { s: send 2b to 0 }";
    let (summary, lines) = goal(text, &Options::default()).unwrap();
    assert_eq!((summary.messages, summary.unmatched.sends), (3, 0));
    // The second receive waits for the first one's message, from rank 2, which computes nothing.
    let early = lines.iter().find(|message| message.src.0 == 2).unwrap();
    assert!(early.awaited);
    assert!(records(&lines, 0).contains(&(None, Dependency::Received(early.id), 0)));
}

/// Computing that depends on nothing waits for its stream in the order of the file: it is not tried again whenever the stream is free.
#[test]
fn independent_computing_of_a_stream_is_imported_in_time() {
    const OPERATIONS: u64 = 100_000;
    let operations: Vec<String> =
        (0..OPERATIONS).map(|number| format!("calc {} cpu {}", 1 + number, number % 2)).collect();
    let text = format!("num_ranks 1 rank 0 {{ {} }}", operations.join(" "));
    let begin = std::time::Instant::now();
    let options = Options { streams: Some(Streams::Cpu), ..Options::default() };
    let (summary, lines) = goal(&text, &options).unwrap();
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    assert_eq!(summary.calls["calc"], OPERATIONS);
    for task in 0..2 {
        let times: Vec<u64> = records(&lines, task).iter().map(|&(_, _, time)| time).collect();
        assert_eq!(
            times,
            (0..OPERATIONS / 2).map(|number| 2 * number + 1 + u64::from(task)).collect::<Vec<_>>()
        );
    }
}

/// Times that do not fit into 64 bits end at the last one: nothing starts twice or never.
#[test]
fn messages_that_take_ages_are_imported() {
    const BYTES: u64 = u64::MAX;
    let [mut first, mut second] = ["", ""].map(str::to_owned);
    for hop in 0..20 {
        first += &format!(
            "s{hop}: send {BYTES}b to 1 tag {hop} r{hop}: recv {BYTES}b from 1 tag {hop} r{hop} requires s{hop} "
        );
        second += &format!(
            "r{hop}: recv {BYTES}b from 0 tag {hop} s{hop}: send {BYTES}b to 0 tag {hop} s{hop} requires r{hop} "
        );
        if hop > 0 {
            first += &format!("s{hop} requires r{} ", hop - 1);
        }
    }
    let text = format!("num_ranks 2 rank 0 {{ {first} }} rank 1 {{ {second} }}");
    let (summary, lines) = goal(&text, &Options::default()).unwrap();
    assert_eq!(summary.messages, 40);
    assert_eq!(lines.iter().filter(|message| !message.is_mark()).count(), 40);
}

#[test]
fn streams_become_tasks() {
    let text = "num_ranks 2
rank 0 { c: calc 9000 cpu 1 r: recv 1b from 1 s: send 1b to 1 s requires r e: calc 1 cpu 1 e requires r }
rank 1 { s: send 1b to 0 r: recv 1b from 0 }";
    let options = Options { streams: Some(Streams::Cpu), ..Options::default() };
    let (summary, lines) = goal(text, &options).unwrap();
    assert!(summary.remarks.is_empty(), "{summary:?}");
    // Task 1 is stream 1 of rank 0, task 2 is rank 1; the receive tells stream 1 by a message of 0 bytes.
    let between: Vec<(u32, u32, u64)> = lines
        .iter()
        .filter(|message| !message.is_mark())
        .map(|message| (message.src.0, message.dst.0, message.bytes.0))
        .collect();
    let mut sorted = between;
    sorted.sort_unstable();
    assert_eq!(sorted, [(0, 1, 0), (0, 2, 1), (2, 0, 1)]);
    assert_eq!(lines.iter().map(|message| message.time.0).sum::<u64>(), 9001);
}

/// What a stream requires of another costs nothing within a rank, so it starts as early.
#[test]
fn streams_of_a_rank_tell_each_other_at_once() {
    let text = "num_ranks 1 rank 0 { a: calc 400 cpu 0 w: calc 500 cpu 1 x: calc 7 cpu 1 x requires a y: calc 5000 cpu 1 y requires w }";
    let options = Options { streams: Some(Streams::Cpu), ..Options::default() };
    let (_, lines) = goal(text, &options).unwrap();
    let times: Vec<u64> = records(&lines, 1).iter().map(|record| record.2).filter(|&time| time > 0).collect();
    assert_eq!(times, [500, 7, 5000]);
}

/// A graph of any form: dependencies may point forward or back.
fn any_graph(ranks: u32) -> impl Strategy<Value = RankGraph> {
    let operation = (0..3u8, 0..ranks, any::<u32>(), 0..1u64 << 40, 0..4u32, 0..3u32);
    let operations = prop::collection::vec(operation, 0..20);
    let edges = || prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20);
    (operations, edges(), edges()).prop_map(|(operations, requires, starts)| {
        let number = operations.len();
        let edges = |edges: Vec<(prop::sample::Index, prop::sample::Index)>| match number {
            0 => Vec::new(),
            _ => edges.iter().map(|(a, b)| (a.index(number) as u32, b.index(number) as u32)).collect(),
        };
        let operation = |(kind, peer, tag, amount, cpu, nic): (u8, u32, u32, u64, u32, u32)| {
            let what = match kind {
                0 => What::Send { bytes: Bytes(amount), to: peer, tag },
                1 => What::Receive {
                    bytes: Bytes(amount),
                    from: (tag % 5 > 0).then_some(peer),
                    tag: (tag % 3 > 0 && tag < u32::MAX).then_some(tag),
                },
                _ => What::Compute { time: Picos(amount / 1000 * 1000) },
            };
            Operation { what, rank: 0, cpu, nic, place: 0 }
        };
        RankGraph {
            operations: operations.into_iter().map(operation).collect(),
            requires: edges(requires),
            starts: edges(starts),
        }
    })
}

fn without_places(mut schedule: Schedule) -> Schedule {
    schedule.operations.iter_mut().for_each(|operation| operation.place = 0);
    schedule.requires.sort_unstable();
    schedule.starts.sort_unstable();
    schedule.is_binary = false;
    schedule
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_schedule_is_the_same_in_text_and_binary(graphs in prop::collection::vec(any_graph(4), 4)) {
        let mut text = TextWriter::new(Vec::new(), 4).unwrap();
        let mut binary = BinaryWriter::new(Cursor::new(Vec::new()), 4).unwrap();
        for graph in &graphs {
            text.rank(graph).unwrap();
            binary.rank(graph).unwrap();
        }
        let [text, binary] = [text.finish().unwrap(), binary.finish().unwrap().into_inner()];
        let read = |bytes: Vec<u8>| without_places(Schedule::from_bytes(Path::new("t"), bytes).unwrap());
        let (of_text, of_binary) = (read(text), read(binary));
        prop_assert_eq!(&of_text, &of_binary);
        let operations = graphs.iter().map(|graph| graph.operations.len()).sum::<usize>();
        let edges = graphs.iter().map(|graph| graph.requires.len()).sum::<usize>();
        prop_assert_eq!((of_text.operations.len(), of_text.requires.len()), (operations, edges));
    }
}

/// Reads and converts; what is refused is refused with an error.
fn survives(bytes: &[u8], work: &Path) -> bool {
    if Schedule::from_bytes(Path::new("t"), bytes.to_vec()).is_err() {
        return false;
    }
    let path = work.join("t.goal");
    std::fs::write(&path, bytes).unwrap();
    let files = Files::of(&[path]).unwrap();
    let options = Options { partial: true, ..Options::default() };
    import(Format::Goal, &files, &work.join("t.vef"), || panic!(), &options, &Quiet).is_ok()
}

#[test]
fn every_prefix_is_refused_or_whole() {
    let work = tempfile::tempdir().unwrap();
    for name in ["binomial_8.goal", "binomial_8.bin"] {
        let bytes = std::fs::read(sample(name)).unwrap();
        for end in 0..bytes.len() {
            // A text may end behind a rank.
            survives(&bytes[..end], work.path());
        }
        assert!(survives(&bytes, work.path()));
    }
}

/// A file that ends anywhere behind its first rank is imported in part; the summary names what is missing.
#[test]
fn every_prefix_has_its_whole_part() {
    let work = tempfile::tempdir().unwrap();
    let partial = Options { partial: true, ..Options::default() };
    for name in ["binomial_8.goal", "binomial_8.bin"] {
        let bytes = std::fs::read(sample(name)).unwrap();
        let first = match name.ends_with("bin") {
            // Entry 0 of the table has its end, counted from byte 8.
            true => 8 + u64::from_le_bytes(bytes[22..30].try_into().unwrap()) as usize,
            false => bytes.iter().position(|&byte| byte == b'}').unwrap() + 1,
        };
        let whole = bytes.trim_ascii_end().len();
        let mut least = 0;
        for end in first..whole {
            let path = work.path().join(name);
            std::fs::write(&path, &bytes[..end]).unwrap();
            let (summary, _) = imported_with(&path, &work.path().join("t.vef"), &partial).unwrap();
            let operations = summary.calls.values().sum::<u64>();
            assert!(operations >= least, "{name}, {end} bytes");
            least = operations;
            let is_told = !summary.missing_ranks.is_empty() || !summary.remarks.is_empty();
            assert!(is_told && summary.ranks == 8, "{name}, {end} bytes: {summary:?}");
            let refused = imported_with(&path, &work.path().join("t.vef"), &Options::default());
            assert!(refused.is_err(), "{name}, {end} bytes");
        }
        assert!(least > 0);
    }
}

#[test]
fn a_cut_rank_has_its_whole_lines() {
    let partial = Options { partial: true, ..Options::default() };
    let text = "num_ranks 2\nrank 0 {\na: calc 5\nb: send 8b to 1\nb requires a\nc requires b\n}\nrank 1 {\nr: recv 8b from 0\nc: calc 30\nc requires r\nd requires c\nd: calc 1";
    let text = text.replace("c requires b\n", "");
    let (summary, lines) = goal(&text, &partial).unwrap();
    // The last line may be `calc 17` cut; what requires it is left out.
    let [remark] = &summary.remarks[..] else { panic!("{:?}", summary.remarks) };
    assert!(remark.ends_with("t.goal: the file ends within a rank, behind line 11"), "{remark}");
    assert_eq!((summary.calls["calc"], summary.calls["requires"], summary.messages), (2, 2, 1));
    assert_eq!(lines.iter().filter(|message| message.time.0 == 30).count(), 1);
    let (summary, _) = goal(&text[..text.len() - 9], &partial).unwrap();
    assert!(summary.remarks[0].ends_with("behind line 11"), "{:?}", summary.remarks);
    // A check with the same option names what is left out, and refuses it no more than the import does.
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("t.goal");
    std::fs::write(&file, text.replace("r: recv", "r: recv 8b from 0\ns: recv")).unwrap();
    let files = Files::of(&[file]).unwrap();
    let found = Format::Goal.info().checker.unwrap()(&files, &partial, &Quiet).unwrap();
    let told: Vec<(&str, bool)> = found.iter().map(|fault| (&*fault.what, fault.is_error)).collect();
    assert_eq!(told, [(ENDS_EARLY, false), ("receives without a send", false)]);
    // What looks like an end in a comment is none; a comment behind the last rank is no cut.
    let (summary, _) = goal(&text.replace("c requires r\n", "c requires r // }\n"), &partial).unwrap();
    assert_eq!(summary.remarks.len(), 1, "{:?}", summary.remarks);
    let (summary, _) = goal(&format!("{}\n}}\n// the end", text), &partial).unwrap();
    assert_eq!(summary.remarks, [""; 0]);
    // A fault that is no cut stays one.
    let error = goal(&text.replace("calc 30", "calc x"), &partial).unwrap_err();
    assert!(error.starts_with("t.goal:9: "), "{error}");
    for nothing in ["num_ranks 2\n", "num_ranks 2\nrank 0 {\na: calc"] {
        let error = goal(nothing, &partial).unwrap_err();
        assert_eq!(error, "t.goal: the file ends within the first rank");
    }
}

#[test]
fn changed_files_are_refused_or_read() {
    let work = tempfile::tempdir().unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut read, mut all) = (0, 0);
    for name in ["binomial_8.goal", "binomial_8.bin"] {
        let bytes = std::fs::read(sample(name)).unwrap();
        for _ in 0..5000 {
            let mut changed = bytes.clone();
            for _ in 0..=random(3) {
                let at = random(changed.len());
                changed[at] = match random(3) {
                    0 => random(256) as u8,
                    1 => changed[random(bytes.len())],
                    _ => changed[at] ^ (1 << random(8)),
                };
            }
            all += 1;
            read += usize::from(survives(&changed, work.path()));
        }
    }
    // Both happen: the test would not see much otherwise.
    assert!(read > all / 100 && read < all, "{read} of {all}");
}

#[test]
fn errors_name_their_place() {
    let bytes = std::fs::read(sample("binomial_8.bin")).unwrap();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = bytes.clone();
        change(&mut changed);
        Schedule::from_bytes(Path::new("t.bin"), changed).unwrap_err().to_string()
    };
    assert_eq!(error(&|bytes| bytes.truncate(10)), "t.bin at byte 10: the file ends within the header");
    assert_eq!(
        error(&|bytes| bytes.truncate(100)),
        "t.bin at byte 100: the file ends within the table of ranks"
    );
    let last = bytes.len() as u64 - 1;
    assert_eq!(
        error(&|bytes| bytes.truncate(last as usize)),
        format!("t.bin at byte {last}: the file ends within the operations of a rank")
    );
    let used = error(&|bytes| bytes[..8].copy_from_slice(&2342u64.to_le_bytes()));
    assert!(used.contains("--save-mem") && used.contains("txt2bin"), "{used}");
    // The type of the first operation of rank 0: its operations begin behind the table, three roots.
    let first = 14 + 16 * 8 + 8 + 4 * 3;
    assert_eq!(
        error(&|bytes| bytes[first + 4] = 9),
        format!("t.bin at byte {first}: an operation of type 9, not 1 (send), 2 (recv) or 3 (calc)")
    );
    assert_eq!(
        error(&|bytes| bytes[first + 5] = 8),
        format!("t.bin at byte {first}: rank 8: there are 8 ranks, from 0")
    );
    let _ = MessageId(0);
    let mut text = String::new();
    let path = sample("binomial_8.goal");
    std::fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
    assert!(text.starts_with("num_ranks 8\n"));
}

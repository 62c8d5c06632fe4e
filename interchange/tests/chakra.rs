//! Chakra: the samples, with counts that were made independently; faults are counted and placed; no input panics.

use interchange::{Files, Format, ImportError, Imported, Options, Quiet, Summary, import};
use std::fs;
use std::path::{Path, PathBuf};
use vef_format::ids::Rank;
use vef_format::operation::{OpCodes, Operation};
use vef_format::record::{Dependency, LocalCollective, Message, Record};
use vef_format::text;
use vef_format::validate::{self, validate};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chakra").join(name)
}

/// What became of a trace.
struct Made {
    summary: Summary,
    communicators: Vec<Vec<Rank>>,
    messages: Vec<Message>,
    parts: Vec<LocalCollective>,
}

/// Imports files, and checks that the trace is valid.
fn imported(paths: &[PathBuf], options: &Options) -> Result<Made, ImportError> {
    let work = tempfile::tempdir().unwrap();
    let to = work.path().join("t.vef");
    let files = Files::of(paths)?;
    let format = Format::of(&files)?;
    assert_eq!(format, Format::Chakra);
    let imported = import(format, &files, &to, || panic!("a graph becomes no capture"), options, &Quiet)?;
    let Imported::Trace(summary) = imported else { panic!("not a trace") };
    let report = validate(&to, &validate::Options::default()).unwrap();
    assert!(report.is_complete() && report.warnings == 0, "{paths:?}: {report:?}");
    let mut made = Made { summary, communicators: Vec::new(), messages: Vec::new(), parts: Vec::new() };
    let mut reader = text::Reader::open(&to).unwrap();
    while let Some(line) = reader.next().unwrap() {
        match line.to_record() {
            Record::Communicator { members, .. } => made.communicators.push(members),
            Record::Message(message) => made.messages.push(message),
            Record::Collective(part) => made.parts.push(part),
        }
    }
    Ok(made)
}

#[test]
fn collectives_of_the_samples() {
    let codes = OpCodes::default();
    const MIB: u64 = 1 << 20;
    for (name, ranks, operation, send, recv) in [
        ("all_reduce8", 8, Operation::Allreduce, MIB, MIB),
        ("all_gather4", 4, Operation::Allgather, MIB, 4 * MIB),
        ("all_to_all4", 4, Operation::Alltoall, MIB, MIB),
        ("reduce_scatter4", 4, Operation::ReduceScatterBlock, MIB, MIB / 4),
    ] {
        let made = imported(&[sample(name)], &Options::default()).unwrap();
        assert_eq!((made.summary.ranks, made.parts.len()), (ranks, ranks as usize), "{name}");
        assert_eq!(made.summary.calls["COMM_COLL"], u64::from(ranks), "{name}");
        assert_eq!(made.communicators, [(0..ranks).map(Rank).collect::<Vec<_>>()], "{name}");
        for part in &made.parts {
            assert_eq!(codes.operation(part.op), Some(operation), "{name}");
            assert_eq!((part.amounts.send.0, part.amounts.recv.0), (send, recv), "{name}");
        }
        assert!(made.messages.iter().all(Message::is_mark), "{name}");
    }
}

#[test]
fn the_ring_has_the_counts_of_its_readme() {
    let Some(directory) = skipping::shared("data/interchange/chakra/ring_allreduce8") else { return };
    let made = imported(&[directory], &Options::default()).unwrap();
    let calls = ["COMM_SEND", "COMM_RECV", "COMP"].map(|name| made.summary.calls[name]);
    assert_eq!(calls, [14 * 8, 14 * 8, 7 * 8]);
    assert_eq!((made.summary.messages, made.summary.bytes), (112, 14_680_064));
    assert_eq!(made.messages.iter().map(|message| message.time.0).sum::<u64>(), 7 * 8 * 7000);
    let sent: Vec<&Message> = made.messages.iter().filter(|message| !message.is_mark()).collect();
    assert_eq!(sent.len(), 112);
    // A ring.
    assert!(sent.iter().all(|message| message.dst.0 == (message.src.0 + 1) % 8));
}

#[test]
fn pytorch_has_the_counts_of_its_readme() {
    let Some(file) = skipping::shared("data/interchange/chakra/pytorch/chakra.0.et.gz") else { return };
    let made = imported(&[file], &Options::default()).unwrap();
    assert_eq!([made.summary.calls["COMP"], made.summary.calls["COMM_COLL"]], [3643, 21]);
    assert_eq!(made.summary.calls["data_deps"], 181_878);
    assert_eq!(made.parts.len(), 7);
    // 5 all-reduces, and 2 broadcasts from the one rank.
    assert_eq!(made.parts.iter().map(|part| part.amounts.send.0).sum::<u64>(), 102_441_032);
    let root = "the format names no roots: each is rank 0 of its group";
    assert!(made.summary.remarks.contains(&root.to_owned()), "{:?}", made.summary.remarks);
}

#[test]
fn the_json_of_the_feeder_is_the_same_graph() {
    let made = imported(&[sample("small_chakra.0.json")], &Options::default()).unwrap();
    assert_eq!([made.summary.calls["COMP"], made.summary.calls["COMM_COLL"]], [4, 3]);
    let time = 318 + 28 + 4 + 85 + 79 + 28 + 153;
    assert_eq!(made.messages.iter().map(|message| message.time.0).sum::<u64>(), time * 1000);
}

/// Writes the wire format.
#[derive(Default)]
struct Wire(Vec<u8>);

impl Wire {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
}

const COMP: u64 = 4;
const SEND: u64 = 5;
const RECV: u64 = 6;
const COLL: u64 = 7;

/// A node with data dependencies, and attributes of type int64.
fn node(id: u64, kind: u64, duration: u64, after: &[u64], attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut wire = Wire::default().number(1, id).number(3, kind).number(7, duration);
    for &after in after {
        wire = wire.number(5, after);
    }
    for (name, value) in attributes {
        wire = wire.bytes(10, &Wire::default().bytes(1, name.as_bytes()).number(9, *value).0);
    }
    wire.0
}

fn file(nodes: &[Vec<u8>]) -> Vec<u8> {
    let mut wire = Wire::default();
    let metadata = Wire::default().bytes(1, b"0.0.4").0;
    for message in std::iter::once(&metadata).chain(nodes) {
        wire.varint(message.len() as u64);
        wire.0.extend_from_slice(message);
    }
    wire.0
}

fn of_files(files: &[Vec<u8>], options: &Options) -> Result<Made, String> {
    let work = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..files.len()).map(|rank| work.path().join(format!("t.{rank}.et"))).collect();
    for (path, bytes) in paths.iter().zip(files) {
        fs::write(path, bytes).unwrap();
    }
    let directory = format!("{}/", work.path().display());
    imported(&paths, options).map_err(|error| error.to_string().replace(&directory, ""))
}

#[test]
fn a_send_waits_for_computing_and_a_receive_for_its_message() {
    let rank_0 = [node(5, COMP, 3, &[], &[]), node(6, SEND, 0, &[5], &[("comm_size", 9), ("comm_dst", 1)])];
    let rank_1 = [node(1, RECV, 0, &[], &[("comm_size", 9)]), node(2, COMP, 4, &[1], &[])];
    let made = of_files(&[file(&rank_0), file(&rank_1)], &Options::default()).unwrap();
    let sent = made.messages.iter().find(|message| !message.is_mark()).unwrap();
    assert_eq!((sent.src.0, sent.dst.0, sent.bytes.0, sent.time.0, sent.awaited), (0, 1, 9, 3000, true));
    let last = made.messages.iter().rfind(|message| message.src.0 == 1).unwrap();
    assert_eq!((last.after, last.time.0), (Dependency::Received(sent.id), 4000));
}

#[test]
fn faults_are_counted_and_placed() {
    let default = Options::default();
    let coll = |id, size: u64, kind: u64| node(id, COLL, 1, &[], &[("comm_size", size), ("comm_type", kind)]);
    // Dependencies that are no use.
    let nodes = [node(1, COMP, 1, &[1, 7], &[]), node(2, COMP, 1, &[8, 1], &[])];
    let made = of_files(&[file(&nodes)], &default).unwrap();
    let remarks = made.summary.told().collect::<Vec<_>>().join("\n");
    assert!(remarks.contains("data dependencies of a node on itself (1): rank 0, node 1 on 1"), "{remarks}");
    assert!(
        remarks.contains(
            "data dependencies on nodes that are not there (2): rank 0, node 1 on 7, rank 0, node 2 on 8"
        ),
        "{remarks}"
    );
    assert!(of_files(&[file(&nodes)], &Options { strict: true, ..default.clone() }).is_err());
    for (files, expected) in [
        (
            vec![file(&[node(1, COMP, 1, &[], &[]), node(1, COMP, 1, &[], &[])])],
            "ids twice in a rank (1): rank 0, node 1",
        ),
        (
            vec![file(&[node(1, COMP, 1, &[2], &[]), node(2, COMP, 1, &[1], &[])])],
            "operations depend on each other in a circle (2): rank 0, node",
        ),
        (
            vec![file(&[coll(1, 8, 0)]), file(&[coll(3, 8, 6)])],
            "collectives that ranks of a group call as different operations (1): rank 0, node 1 (Allreduce, 8 bytes) and rank 1, node 3 (Alltoall, 8 bytes)",
        ),
        (
            vec![file(&[coll(1, 8, 0)]), file(&[coll(3, 9, 0)])],
            "collectives with different sizes at ranks of a group (1): rank 0, node 1",
        ),
        (vec![file(&[coll(1, 8, 0)]), file(&[])], "was called by 1 of 2 members"),
        (
            vec![file(&[node(4, SEND, 0, &[], &[("comm_size", 1), ("comm_dst", 5)])])],
            "rank 1 of 6 is missing, and 4 others; vef import --partial imports the others",
        ),
    ] {
        let error = of_files(&files, &default).err().unwrap_or_else(|| panic!("{expected}"));
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

/// A trace without kernels, as of gloo, has the collectives that its processors call; beside kernels they are computing.
#[test]
fn collectives_of_processors_are_those_of_the_trace_without_kernels() {
    let coll = |id, cpu| node(id, COLL, 3, &[], &[("comm_size", 8), ("comm_type", 0), ("is_cpu_op", cpu)]);
    let strict = Options { strict: true, ..Options::default() };
    let gloo = file(&[coll(1, 1), coll(2, 1)]);
    let made = of_files(&[gloo.clone(), gloo], &strict).unwrap();
    assert_eq!((made.parts.len(), made.summary.remarks.len()), (4, 0));
    let kernels = file(&[coll(1, 1), coll(2, 0)]);
    let made = of_files(&[kernels.clone(), kernels], &strict).unwrap();
    assert_eq!(
        (made.parts.len(), made.messages.iter().map(|message| message.time.0).sum::<u64>()),
        (2, 6000)
    );
    assert_eq!(
        made.summary.remarks,
        ["computing, as they are called beside kernels: 2 collectives of processors"]
    );
}

/// What a node of communication lacks is named, and refused by `--strict`.
#[test]
fn communication_without_its_attributes_is_named() {
    let strict = Options { strict: true, ..Options::default() };
    let pair = |attributes: &[(&str, u64)]| {
        [
            file(&[node(1, SEND, 0, &[], &[&[("comm_dst", 1)], attributes].concat())]),
            file(&[node(1, RECV, 0, &[], &[&[("comm_src", 0)], attributes].concat())]),
        ]
    };
    let call = |attributes: &[(&str, u64)]| [0; 2].map(|_| file(&[node(1, COLL, 1, &[], attributes)]));
    for (files, parts, expected) in [
        (
            call(&[("comm_type", 0)]),
            0,
            "collectives without comm_size, left out (2): rank 0, node 1, rank 1, node 1",
        ),
        (
            call(&[("comm_size", 8)]),
            2,
            "collectives without comm_type, taken for Allreduces (2): rank 0, node 1, ",
        ),
        (call(&[("comm_type", 9)]), 2, ""),
        (pair(&[]), 0, "messages without comm_size, taken for 0 bytes (2): rank 0, node 1, rank 1, node 1"),
    ] {
        let made = of_files(&files, &Options::default()).unwrap();
        let told = made.summary.told().collect::<Vec<_>>().join("\n");
        assert!(told.contains(expected) && made.parts.len() == parts, "{told}");
        assert_eq!(of_files(&files, &strict).is_err(), !expected.is_empty(), "{expected}");
    }
    let partial = Options { partial: true, ..Options::default() };
    for files in
        [pair(&[("comm_size", -5i64 as u64)]), call(&[("comm_size", -5i64 as u64), ("comm_type", 0)])]
    {
        let error = of_files(&files, &partial).err().unwrap();
        assert!(error.contains("comm_size that is no number from 0 on (2): rank 0, node 1"), "{error}");
    }
}

/// Work without a duration takes the time that it needs at a speed, or none, which is said.
#[test]
fn operations_without_a_duration_need_a_speed() {
    const LOAD: u64 = 2;
    let work = [("num_ops", 4_000_000_000_000), ("tensor_size", 1_000_000)];
    let trace = file(&[
        node(1, COMP, 0, &[], &work),
        node(2, COMP, 7, &[1], &work),
        node(3, LOAD, 0, &[2], &work[1..]),
    ]);
    let time = |options: &Options| {
        let made = of_files(std::slice::from_ref(&trace), options)?;
        Ok::<_, String>((
            made.messages.iter().map(|message| message.time.0).sum::<u64>(),
            made.summary.told().collect::<Vec<_>>(),
        ))
    };
    let memory = "warning: memory accesses without a duration, which take no time (1): rank 0, node 3";
    let (none, told) = time(&Options::default()).unwrap();
    let operations = "warning: operations without a duration, which take no time without vef import --flops-per-second (1): rank 0, node 1";
    assert_eq!((none, told), (7000, vec![operations.to_owned(), memory.to_owned()]));
    let at_speed = Options { flops_per_second: Some(1e12), ..Options::default() };
    assert_eq!(time(&at_speed).unwrap(), (4_000_007_000, vec![memory.to_owned()]));
    assert!(time(&Options { strict: true, ..at_speed }).unwrap_err().contains(&memory[9..]));
}

/// Writers of Python give numbers as they come.
#[test]
fn amounts_may_be_fractions() {
    let work = tempfile::tempdir().unwrap();
    let graph = |ops: &str| {
        format!(
            r#"{{"workload_graph":[{{"id":1,"name":"comp","type":4,"num_ops":{ops},"tensor_size":null}},
                {{"id":2,"name":"comp","type":4,"dataDeps":[1],"runtime":3,"num_ops":null}}]}}"#
        )
    };
    for ops in ["2000000", "2000000.0", "2e6"] {
        let path = work.path().join("t.0.json");
        std::fs::write(&path, graph(ops)).unwrap();
        let options = Options { flops_per_second: Some(1e9), strict: true, ..Options::default() };
        let made = imported(&[path], &options).unwrap();
        assert_eq!(made.messages.iter().map(|message| message.time.0).sum::<u64>(), 2_003_000, "{ops}");
    }
}

#[test]
fn groups_have_members_of_their_own() {
    let work = tempfile::tempdir().unwrap();
    let groups = work.path().join("groups.json");
    fs::write(&groups, r#"{"1": [0, 2], "2": [1, 3]}"#).unwrap();
    let of_group =
        |group| file(&[node(1, COLL, 1, &[], &[("comm_size", 8), ("comm_type", 5), ("comm_group", group)])]);
    let files = [of_group(1), of_group(2), of_group(1), of_group(2)];
    let options = Options { groups: Some(groups), ..Options::default() };
    let made = of_files(&files, &options).unwrap();
    assert_eq!(made.communicators, [[0, 2].map(Rank), [1, 3].map(Rank)]);
    let sent = |task| made.parts.iter().find(|part| part.task.0 == task).unwrap().amounts.send.0;
    assert_eq!([0, 1, 2, 3].map(sent), [8, 8, 0, 0]);
    // The groups name rank 3, which has no file.
    let error = of_files(&files[..3], &options).err().unwrap();
    assert!(error.contains("rank 3 of 4 is missing; vef import --partial"), "{error}");
    let partial = Options { partial: true, ..options };
    // A few bytes do not make memory of millions of ranks.
    let huge = work.path().join("huge.json");
    fs::write(&huge, r#"{"1": [0, 16777214]}"#).unwrap();
    let error = of_files(&files, &Options { groups: Some(huge), ..partial.clone() }).err().unwrap();
    assert!(error.contains("the number of ranks (16777215, of which 4 are there) is too large"), "{error}");
    let made = of_files(&files[..3], &partial).unwrap();
    assert_eq!((made.summary.missing_ranks.as_slice(), made.parts.len()), (&[3][..], 2));
    assert_eq!(made.summary.skipped["Bcast"].count, 1);
    // Metadata nodes list members, too; those of all ranks must agree.
    let listing = |ranks: &str| {
        let listed = format!("[{{\"pg_name\": \"1\", \"ranks\": {ranks}}}]");
        [node(9, 1, 0, &[], &[]), Wire::default().bytes(8, &Wire::default().bytes(1, listed.as_bytes()).0).0]
            .concat()
    };
    let listed = |ranks: &str| file(&[listing(ranks)]);
    assert!(of_files(&[listed("[1, 0]"), listed("[1, 0]")], &Options::default()).is_ok());
    let error = of_files(&[listed("[0, 1]"), listed("[1, 0]")], &Options::default()).err().unwrap();
    assert!(error.contains("groups of which ranks name other members (1): group 1 at rank 1"), "{error}");
}

/// Collectives that a rank lacks whose file is cut are left out at all members, and the others stay.
#[test]
fn a_cut_rank_lacks_its_last_collectives() {
    let call = |id, after: &[u64]| node(id, COLL, 1, after, &[("comm_size", 8), ("comm_type", 0)]);
    let whole = file(&[call(1, &[]), call(2, &[1]), call(3, &[2]), node(4, COMP, 7, &[3], &[])]);
    let partial = Options { partial: true, ..Options::default() };
    let parts = |cut: &[u8]| {
        let made = of_files(&[whole.clone(), cut.to_vec(), whole.clone()], &partial).unwrap();
        let cuts =
            made.summary.remarks.iter().filter(|remark| remark.contains("t.1.et: ends within")).count();
        assert_eq!(cuts, 1, "{:?}", made.summary.remarks);
        (made.parts.len(), made.summary.skipped.values().map(|skipped| skipped.count).sum::<u64>())
    };
    let metadata = file(&[]).len();
    let node = file(&[call(1, &[])]).len() - metadata;
    // Within node 3, node 2, the metadata, and of no bytes at all.
    assert_eq!(parts(&whole[..metadata + 2 * node + 8]), (6, 2));
    assert_eq!(parts(&whole[..metadata + node + 1]), (3, 4));
    for length in [0, 1, 3] {
        assert_eq!(parts(&whole[..length]), (0, 6), "{length}");
        let error = of_files(&[whole.clone(), whole[..length].to_vec()], &Options::default()).err().unwrap();
        assert!(
            error.starts_with("t.1.et") && error.contains("the file ends within the metadata"),
            "{error}"
        );
    }
}

/// What only the file with the groups can be blamed for names that file.
#[test]
fn wrong_groups_are_errors_of_their_file() {
    let work = tempfile::tempdir().unwrap();
    let groups = work.path().join("my-groups.json");
    let of_group = |group| file(&[node(1, COLL, 1, &[], &[("comm_size", 8), ("comm_group", group)])]);
    let files = [of_group(1), of_group(1)];
    for (text, why) in [
        (r#"{"2": [0, 1]}"#, "groups without members"),
        (r#"{"1": [0]}"#, "of which the rank is no member"),
        (r#"{"1": [0, 1, 2]}"#, "rank 2 of 3 is missing"),
        (r#"{"1": [0, 0]}"#, "has no members, or one twice"),
    ] {
        fs::write(&groups, text).unwrap();
        let options = Options { groups: Some(groups.clone()), ..Options::default() };
        let error = of_files(&files, &options).err().unwrap();
        assert!(error.starts_with(&*groups.to_string_lossy()) && error.contains(why), "{error}");
    }
    // A fault of a rank's file is that file's, whatever is beside it.
    let beside = [
        ("groups.json", r#"{"1": [0, 1]}"#.as_bytes().to_vec()),
        ("t.0.et", of_group(1)),
        ("t.1.et", file(&[])),
    ];
    for (name, bytes) in beside {
        fs::write(work.path().join(name), bytes).unwrap();
    }
    fs::remove_file(&groups).unwrap();
    let error = imported(&[work.path().to_path_buf()], &Options::default()).err().unwrap().to_string();
    assert!(error.starts_with(&*work.path().join("t.0.et").to_string_lossy()), "{error}");
}

#[test]
fn kernels_of_a_stream_follow_each_other_on_request() {
    let at = |id, start| {
        let mut bytes = node(id, COMP, 5, &[], &[("tid", 7)]);
        bytes.extend(Wire::default().number(6, start).0);
        bytes
    };
    let send = node(9, SEND, 0, &[1], &[("comm_size", 4)]);
    let nodes = [at(1, 30), at(2, 20), at(3, 10), send, node(10, RECV, 0, &[], &[("comm_size", 4)])];
    let time = |options: &Options| {
        let made = of_files(&[file(&nodes)], options).unwrap();
        // Computing in front of the send.
        let before: Vec<u64> = made
            .messages
            .iter()
            .take_while(|message| message.is_mark())
            .map(|message| message.time.0)
            .collect();
        let sent = made.messages.iter().find(|message| !message.is_mark()).unwrap();
        before.iter().sum::<u64>() + sent.time.0
    };
    assert_eq!(time(&Options { stream_order: true, ..Options::default() }), 15_000);
}

#[test]
fn old_schemas_and_other_traces_are_refused_with_advice() {
    // An attribute with its type as a number.
    let attribute = Wire::default().bytes(1, b"comm_size").number(2, 4).0;
    let old = Wire::default().number(1, 1).bytes(10, &attribute).0;
    let error = of_files(&[file(&[old])], &Options::default()).err().unwrap();
    assert!(error.contains("a schema before 0.0.4 cannot be imported"), "{error}");
    let work = tempfile::tempdir().unwrap();
    for (text, format) in [
        ("{\n  \"schema\": \"1.0.1\", \"pid\": 5, \"nodes\": [", Format::PytorchHost),
        ("{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [", Format::Kineto),
    ] {
        let path = work.path().join("t.json");
        fs::write(&path, text).unwrap();
        let files = Files::of(&[path]).unwrap();
        assert_eq!(Format::of(&files).unwrap(), format);
        let error =
            import(format, &files, &work.path().join("t.vef"), || panic!(), &Options::default(), &Quiet);
        assert!(error.unwrap_err().to_string().contains("chakra_converter"));
    }
}

#[test]
fn prefixes_and_changed_files_are_refused_or_read() {
    let bytes = fs::read(sample("all_reduce8/all_reduce.1.et")).unwrap();
    let json = fs::read(sample("small_chakra.0.json")).unwrap();
    let work = tempfile::tempdir().unwrap();
    let survives = |bytes: &[u8], name: &str, partial: bool| {
        let path = work.path().join(name);
        fs::write(&path, bytes).unwrap();
        let files = Files::of(&[path]).unwrap();
        let options = Options { partial, ..Options::default() };
        let to = work.path().join("t.vef");
        let checked = Format::Chakra.info().checker.unwrap()(&files, &options, &Quiet);
        checked.is_ok() && import(Format::Chakra, &files, &to, || panic!(), &options, &Quiet).is_ok()
    };
    for (bytes, name) in [(&bytes, "t.et"), (&json, "t.json")] {
        for end in (0..bytes.len()).step_by(bytes.len() / 80) {
            for partial in [false, true] {
                survives(&bytes[..end], name, partial);
            }
        }
        assert!(survives(bytes, name, false));
    }
    // Truncated within its only node.
    assert!(!survives(&bytes[..bytes.len() - 3], "t.et", false));
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut read = 0;
    for (bytes, name, rounds) in [(&bytes, "t.et", 4000), (&json, "t.json", 1000)] {
        for _ in 0..rounds {
            let mut changed = bytes.clone();
            for _ in 0..=random(2) {
                let at = random(changed.len());
                changed[at] = if random(2) == 0 { random(256) as u8 } else { changed[at] ^ (1 << random(8)) };
            }
            read += usize::from(survives(&changed, name, true));
        }
    }
    assert!(read > 100 && read < 5000, "{read}");
}

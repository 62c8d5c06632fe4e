//! What a report says of a run, held against what must add up to it, against slightly different runs, and against ways that are
//! computed here.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use replay::{Cause, Engine, Job, Link, Next, Sink, yardstick};
use results::simulation::CriticalStep;
use sim_example::model::Model;
use sim_example::{
    Observe, Picos, Places, SameNode, SendCompletion, Settings, Simulation, Workload, simulate,
};
use tempfile::NamedTempFile;
use vef_format::container::{About, Settings as ContainerSettings, Writer};
use vef_format::ids::{MessageId, Rank};
use vef_format::record::{Dependency, Header, Message};
use vef_format::state::State;
use vef_format::units::{Bytes, Ticks};
use workloads::PATTERNS;

const EVERYTHING: Observe = Observe { links: true, critical_path: true, waits: true };

fn run(settings: &Settings) -> Simulation {
    simulate(settings, &mut |_| {}).unwrap()
}

fn write(workload: &workloads::Workload) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    workload.write_container(file.as_file(), ContainerSettings::default()).unwrap();
    file
}

fn settings(trace: &Path) -> Settings {
    Settings { jobs: vec![Workload::new(trace)], observe: EVERYTHING, ..Settings::default() }
}

/// A message of 1000 B between two nodes with one cable between their switches, which does not work from 3 to 5 µs: the result names the nodes,
/// if the run reaches that time, and the run without contention does not know of it.
#[test]
fn nodes_that_are_cut_off_for_a_time_are_named() {
    let at = |wait: u64| {
        let mut file = NamedTempFile::new().unwrap();
        std::io::Write::write_all(
            &mut file,
            format!("VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 {wait} -1\n").as_bytes(),
        )
        .unwrap();
        let mut settings = settings(file.path());
        settings.network.topology = "mesh:2".parse().unwrap();
        settings.network.fail = vec!["(0)<->(1) down 3us up 5us".parse().unwrap()];
        // A network that changes has no run without contention to be compared with.
        assert!(settings.ideal().is_none() && settings.own_interfaces().is_none());
        run(&settings)
    };
    // 0.8 µs for its bytes, and 0.5 µs for each of three links.
    let early = at(0);
    assert_eq!((early.runtime_ps, early.network.cut_off.len()), (2_300_000, 0));
    // At its switch at 3.5 µs.
    let late = at(3000);
    assert_eq!(late.runtime_ps, 5_000_000 + 1_800_000);
    let named = "from 3.000 µs to 5.000 µs no route leads from node0 to node1; 1 of 2 nodes in use are cut off from node0, and messages wait";
    assert_eq!(late.network.cut_off, [named]);
    assert!(late.to_text().contains(&format!("cut off       {named}\n")), "{}", late.to_text());
    assert_eq!(late.network.failures, ["(0)<->(1) down 3us up 5us"]);
    assert!(late.to_text().contains("\nfailures      (0)<->(1) down 3us up 5us\n"), "{}", late.to_text());
}

/// The run without contention takes the routes of tables: here a message the long way around a ring.
#[test]
fn the_run_without_contention_takes_the_routes_of_tables() {
    let mut trace = NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut trace, b"VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n").unwrap();
    let mut table = NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut table, b"route node0 node1 (0) (5) (4) (3) (2) (1)\n").unwrap();
    let mut settings = settings(trace.path());
    settings.network.topology = "torus:6".parse().unwrap();
    settings.network.routing = format!("table:{}", table.path().display()).parse().unwrap();
    // 0.8 µs for its bytes, and 0.5 µs for each of seven links.
    for settings in [settings.clone(), settings.ideal().unwrap(), settings.own_interfaces().unwrap()] {
        assert_eq!(run(&settings).runtime_ps, 4_300_000);
    }
}

/// Workloads of all patterns, with messages of any size.
fn workload() -> impl Strategy<Value = workloads::Workload> {
    let bytes = prop_oneof![Just(0u64), 1u64..100, 1000u64..100_000];
    (0..PATTERNS.len(), 2u32..17, 1u32..5, bytes, 0u64..30_000, 0.0f64..1.0, any::<u64>()).prop_map(
        |(pattern, tasks, iterations, bytes, compute, noise, seed)| workloads::Workload {
            bytes: Bytes(bytes),
            iterations,
            compute: Ticks(compute),
            imbalance: noise / 2.0,
            noise,
            seed,
            model: workloads::Model::tiny(),
            ..workloads::Workload::new(&PATTERNS[pattern], tasks)
        },
    )
}

fn network() -> impl Strategy<Value = Settings> {
    let topologies = ["auto", "fattree:4x4x2", "torus:4x4", "mesh:3x6", "hyperx:3x3:2", "dragonfly:2x4x2"];
    let models = [
        Model::CutThrough,
        Model::StoreAndForward,
        Model::Packet,
        Model::Latency,
        Model::Injection,
        Model::Flow,
    ];
    let sends = prop_oneof![
        Just(SendCompletion::Eager),
        Just(SendCompletion::WhenSent),
        (0u64..50_000).prop_map(|above| SendCompletion::Rendezvous { above: Bytes(above) }),
        (0u64..50_000).prop_map(|above| SendCompletion::RendezvousInCalls { above: Bytes(above) })
    ];
    let memory = Link::new(Picos(300_000), 50_000_000_000).unwrap();
    let same_node = prop_oneof![Just(SameNode::ViaNetwork), Just(SameNode::Inside(memory.into()))];
    let times = prop_oneof![Just(0u64), 1u64..3_000_000];
    (0..topologies.len(), 0..models.len(), sends, same_node, 1u32..4, times.clone(), times, 1u64..1_000_000)
        .prop_map(move |(topology, model, send_completion, same_node, per_node, overhead, delay, latency)| {
            let mut settings =
                Settings { send_completion, same_node, observe: EVERYTHING, ..Settings::default() };
            settings.network.topology = topologies[topology].parse().unwrap();
            settings.network.model = models[model];
            let links = &mut settings.network.links;
            (links.overhead, links.switch_delay, links.latency) =
                (Picos(overhead), Picos(delay), Picos(latency));
            links.node_bandwidth = (per_node == 2).then(|| "3Gbit/s".parse().unwrap());
            let mut job = Workload::new("");
            job.places = Places::Block { per_node };
            job.start = Picos(delay / 2);
            settings.jobs = vec![job];
            settings
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Every rank's states fill its time, the pieces of the critical path the run time, and no contention is no slower; also while links fail for a time.
    #[test]
    fn times_add_up(
        workload in workload(), mut settings in network(), fails in prop::option::of((1u64..50, 0u64..100_000, 1u64..200_000)))
    {
        let file = write(&workload);
        settings.jobs[0].trace = file.path().to_owned();
        if let Some((seed, from, time)) = fails {
            let fault = format!("25%:{seed} down {from}ns up {}ns", from + time);
            settings.network.fail = vec![fault.parse().unwrap()];
        }
        let report = run(&settings);
        let start = settings.jobs[0].start;
        let job = &report.jobs[0];
        for (times, finish) in job.ranks.iter().zip(&job.finish.tasks_ps) {
            prop_assert_eq!(times.0.iter().sum::<u64>() + start.0, *finish);
        }
        if settings.send_completion == SendCompletion::Eager {
            prop_assert_eq!(job.times[State::Send], 0);
        }
        let path = report.critical_path.as_ref().unwrap();
        prop_assert_eq!(path.total_ps(), report.runtime_ps);
        prop_assert_eq!(path.before_start_ps, start.0);
        // The pieces that are listed do not overlap.
        let mut end = 0;
        for (from, to) in path.steps.iter().map(CriticalStep::span_ps) {
            prop_assert!(end <= from && from < to && to <= report.runtime_ps);
            end = to;
        }
        // Kinds and sizes hold all messages of the network.
        let network = report.messages - report.same_node.messages;
        prop_assert_eq!(report.latency.messages, network);
        prop_assert_eq!(report.kinds.iter().map(|kind| kind.latency.messages).sum::<u64>(), network);
        prop_assert_eq!(report.sizes.iter().map(|size| size.latency.messages).sum::<u64>(), network);
        // What the bins hold is what the link did.
        for link in report.links.all.iter().flatten() {
            let over_time = link.over_time.as_ref().unwrap();
            prop_assert_eq!(over_time.bytes_over_time.iter().sum::<u64>(), link.amount.bytes);
            prop_assert_eq!(over_time.kinds.iter().map(|share| share.bytes).sum::<u64>(), link.amount.bytes);
            let bin = report.links.bin_ps.unwrap();
            let width = |n: usize| (report.runtime_ps - n as u64 * bin).min(bin) as f64;
            let busy: f64 = over_time.busy.iter().enumerate().map(|(n, share)| share * width(n)).sum();
            // Shares are fractions.
            prop_assert!((busy - link.busy_ps as f64).abs() <= 1e-6 * report.runtime_ps as f64 + 1.0);
        }
        match settings.ideal() {
            None => prop_assert!(settings.network.model == Model::Latency || fails.is_some()),
            Some(ideal) => {
                let ideal = run(&ideal);
                prop_assert!(ideal.runtime_ps <= report.runtime_ps, "{} > {}", ideal.runtime_ps, report.runtime_ps);
                prop_assert_eq!(ideal.messages, report.messages);
                let own = run(&settings.own_interfaces().unwrap());
                prop_assert!(ideal.runtime_ps <= own.runtime_ps);
                // Packets of several messages take turns at an interface; fluid messages share it. Messages that are at an interface
                // together may leave in another order, which alone makes a run a little shorter or longer.
                let waits_for_links =
                    matches!(settings.network.model, Model::CutThrough | Model::StoreAndForward | Model::Injection);
                if waits_for_links {
                    let most = report.runtime_ps + report.runtime_ps / 1000;
                    prop_assert!(own.runtime_ps <= most, "{} > {}", own.runtime_ps, report.runtime_ps);
                }
                let mut report = report;
                report.set_ideal(&ideal);
                prop_assert!(report.ideal.unwrap().slowdown >= 1.0);
            }
        }
    }

    /// Without contention the run time is the longest of all paths. Made longer by a picosecond a link, the path that was found is longer by
    /// its number of links, and the longest one by no less; made shorter, the longest one is shorter by no more.
    #[test]
    fn the_path_is_the_longest(workload in workload(), mut settings in network()) {
        let file = write(&workload);
        settings.jobs[0].trace = file.path().to_owned();
        settings.network.model = Model::Latency;
        settings.network.links.switch_delay = Picos(0);
        let at = |latency: u64| {
            let mut settings = settings.clone();
            settings.network.links.latency = Picos(latency);
            run(&settings)
        };
        let latency = settings.network.links.latency.0;
        let (shorter, there, longer) = (at(latency - 1), at(latency), at(latency + 1));
        let path = there.critical_path.unwrap();
        prop_assert_eq!(path.latency_ps % latency, 0);
        let links = path.latency_ps / latency;
        prop_assert!(longer.runtime_ps >= there.runtime_ps + links);
        prop_assert!(shorter.runtime_ps >= there.runtime_ps - links);
    }
}

/// The messages of a trace: source, destination, bytes.
#[derive(Default)]
struct Seen(Vec<(u32, u32, u64)>);

impl Sink for Seen {
    fn take(&mut self, next: Next) {
        if let Next::Message(message) = next {
            self.0.push((message.src.0, message.dst.0, message.bytes.0));
        }
    }
}

/// In a torus with odd sides every link carries the bytes of the messages whose way, the shorter one round in each dimension, leads over it.
#[test]
fn links_carry_what_is_sent_over_them() {
    let sides = [5u32, 3];
    for pattern in ["random", "halo2d", "allreduce", "fft"] {
        let workload = workloads::Workload::new(workloads::pattern(pattern).unwrap(), 15);
        let file = write(&workloads::Workload { iterations: 7, ..workload });
        let mut seen = Seen::default();
        let mut engine = Engine::builder().job(Job::open(file.path()).unwrap()).engine().unwrap();
        yardstick::watch(&mut engine, &yardstick::default_link(), Picos::MAX, &mut seen).unwrap();
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for &(src, dst, bytes) in &seen.0 {
            let router = |at: [u32; 2]| format!("({},{})", at[0], at[1]);
            let coordinates = |node: u32| [node % sides[0], node / sides[0]];
            let (mut at, to) = (coordinates(src), coordinates(dst));
            let mut carry =
                |from: String, to: String| *expected.entry(format!("{from}->{to}")).or_default() += bytes;
            carry(format!("node{src}"), router(at));
            for dimension in 0..2 {
                let side = sides[dimension];
                let forward = (to[dimension] + side - at[dimension]) % side;
                let step = if forward <= side / 2 { 1 } else { side - 1 };
                while at[dimension] != to[dimension] {
                    let from = router(at);
                    at[dimension] = (at[dimension] + step) % side;
                    carry(from, router(at));
                }
            }
            carry(router(at), format!("node{dst}"));
        }
        for model in [Model::CutThrough, Model::StoreAndForward, Model::Latency, Model::Packet, Model::Flow] {
            let mut settings = settings(file.path());
            settings.network.topology = "torus:5x3".parse().unwrap();
            settings.network.model = model;
            settings.network.routing = "dor".parse().unwrap();
            let report = run(&settings);
            let carried: BTreeMap<String, u64> = report
                .links
                .all
                .iter()
                .flatten()
                .map(|link| (link.link.clone(), link.amount.bytes))
                .filter(|(_, bytes)| *bytes > 0)
                .collect();
            let sent = expected.iter().filter(|(_, bytes)| **bytes > 0);
            assert_eq!(
                carried,
                sent.map(|(link, bytes)| (link.clone(), *bytes)).collect(),
                "{pattern}, {model}"
            );
        }
    }
}

/// Two tasks send 1000 bytes each to a third at the same time: the second one waits for the first one's transmission, which is all of
/// its critical path but latency and its own transmission.
#[test]
fn a_critical_path_by_hand() {
    let file = NamedTempFile::new().unwrap();
    let trace = "VEF3 3 6 0 0 0 0 1000\n0 0 2 1000 4 7 -1\n1 1 2 1000 4 7 -1\n2 2 2 0 2 0 0\n3 2 2 0 2 0 1\n4 0 0 0 1 0 0\n5 1 1 0 1 0 1\n";
    std::fs::write(file.path(), trace).unwrap();
    let mut settings = settings(file.path());
    for model in [Model::CutThrough, Model::StoreAndForward, Model::Packet] {
        settings.network.model = model;
        let report = run(&settings);
        let path = report.critical_path.unwrap();
        let again = if model == Model::StoreAndForward { 2 } else { 1 };
        assert_eq!(
            (path.computing_ps, path.latency_ps, path.transmission_ps, path.queueing_ps, path.messages),
            (7_000, 1_000_000, again * 800_000, 800_000, 1),
            "{model}"
        );
        let queue = path.links.iter().find(|link| link.queueing_ps > 0).unwrap();
        assert_eq!(queue.link, "switch->node2", "{model}");
        // That link at twice the rate: its two messages take 400 ns each, and the second one comes as the first one has passed.
        let doubled = run(&settings.doubled(queue.number..queue.number + 1));
        let saved = if model == Model::StoreAndForward { 800_000 } else { 400_000 };
        assert_eq!(doubled.runtime_ps, report.runtime_ps - saved, "{model}");
        // The receiver waits, the senders do not.
        assert_eq!(report.jobs[0].ranks[2][State::Reception], report.runtime_ps);
    }
}

/// A message that waits until its receiver has computed for 5 µs: the path goes through the receiver.
#[test]
fn a_late_receiver_is_on_the_critical_path() {
    let file = NamedTempFile::new().unwrap();
    let trace = "VEF3 2 4 0 0 0 0 1000\n0 0 1 1000 4 7 -1\n1 0 0 0 1 3 0\n2 1 1 0 0 5000 -1\n3 1 1 0 2 0 0\n";
    std::fs::write(file.path(), trace).unwrap();
    let mut settings = settings(file.path());
    let late = |settings: &Settings| {
        let report = run(settings);
        let places = &report.waits.as_ref().unwrap().places;
        let late = places.iter().find(|place| place.cause == Cause::LateReceiver);
        (report.runtime_ps, report.critical_path.clone().unwrap(), late.map(|place| place.time_ps))
    };
    settings.send_completion = SendCompletion::RendezvousInCalls { above: Bytes(999) };
    let (runtime, path, waited) = late(&settings);
    assert_eq!(waited, Some(5_000_000 - 7_000));
    assert_eq!(runtime, 5_000_000 + 1_000_000 + 800_000 + 3_000);
    assert_eq!((path.computing_ps, path.latency_ps, path.transmission_ps), (5_003_000, 1_000_000, 800_000));
    let of_ranks: Vec<_> = path.ranks.iter().map(|of| (of.task, of.computing_ps)).collect();
    assert_eq!(of_ranks, [(1, 5_000_000), (0, 3_000)]);
    // A message of that size, and one that makes progress by itself, leave at once.
    for policy in [
        SendCompletion::RendezvousInCalls { above: Bytes(1000) },
        SendCompletion::Rendezvous { above: Bytes(999) },
    ] {
        settings.send_completion = policy;
        assert_eq!(late(&settings).2, None);
    }
}

/// While a message waits for its receiver, its sender starts further records; the path still names the record that sent it.
#[test]
fn a_message_that_leaves_late_is_that_of_its_record() {
    let file = NamedTempFile::new().unwrap();
    let trace = "VEF3 2 6 0 0 0 0 1000\n0 0 1 1000 4 7 -1\n1 0 0 0 0 5 -1\n2 0 0 0 1 5 1\n3 0 0 0 1 3 0\n\
        4 1 1 0 0 5000 -1\n5 1 1 0 2 0 0\n";
    std::fs::write(file.path(), trace).unwrap();
    let mut settings = settings(file.path());
    settings.send_completion = SendCompletion::RendezvousInCalls { above: Bytes(999) };
    let steps = run(&settings).critical_path.unwrap().steps;
    let sent = steps.iter().find_map(|step| match *step {
        CriticalStep::Message { task, record, from_ps, .. } => Some((task, record, from_ps)),
        CriticalStep::Computing { .. } => None,
    });
    assert_eq!(sent, Some((0, 0, 5_000_000)));
}

/// What the mixer could not put into the trace stands in the report.
#[test]
fn what_the_trace_lacks_is_told() {
    let file = NamedTempFile::new().unwrap();
    let header = Header { tasks: 1, messages: 1, clock: Picos(1000), ..Header::default() };
    let tell = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let origin = vec![tell("program", "app"), tell(About::NOT_IN_TRACE, "MPI_Put: 3 calls, 24 B")];
    let about = About { origin, ..About::default() };
    let mut writer = Writer::new(file.as_file(), &header, &about, ContainerSettings::default()).unwrap();
    let (task, id) = (Rank(0), MessageId(0));
    let mark = Message {
        id,
        src: task,
        dst: task,
        bytes: Bytes(0),
        awaited: false,
        after: Dependency::Start,
        time: Ticks(5),
    };
    writer.message(&mark).unwrap();
    writer.finish().unwrap();
    let report = run(&settings(file.path()));
    assert_eq!(report.jobs[0].not_in_trace, ["MPI_Put: 3 calls, 24 B"]);
    assert!(report.to_text().contains("not in the trace: MPI_Put: 3 calls, 24 B"));
}

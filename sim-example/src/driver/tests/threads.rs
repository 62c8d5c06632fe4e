//! Several threads against one: the same report, to the picosecond.

use super::super::*;
use crate::model::{Arbiter, Buffers, Delay, Members, Model, PacketSettings, TrafficClasses};
use crate::places::Places;
use crate::settings::Workload;
use proptest::prelude::*;
use replay::{Link, Picos, SameNode};
use results::simulation::Performance;
use tempfile::NamedTempFile;
use vef_format::units::{Bytes, Ticks};
use workloads::pattern;

/// The reports of one thread and of `threads`, without how long they took.
fn reports(settings: &Settings, threads: u16) -> [Simulation; 2] {
    let untimed = |report: Simulation| {
        let events = report.performance.events;
        let performance = Performance { wall_ps: 0, events, messages_per_s: None, events_per_s: None };
        Simulation { performance, ..report }
    };
    let prepared = || Prepared::new(settings).unwrap();
    let one =
        run_observed(prepared().builder.engine().unwrap(), &settings.network, settings.observe, &mut |_| {});
    let Prepared { builder, nodes, .. } = prepared();
    let Ok(many) = parallel::run(builder, &nodes, settings, threads, 0, &mut |_| {}) else {
        panic!("not divided")
    };
    [one.unwrap(), many.expect("a report of several threads")].map(untimed)
}

/// Networks of at least 16 nodes, each with routings that it has.
fn network() -> impl Strategy<Value = (&'static str, &'static str)> {
    let any =
        ["minimal", "ecmp:pair", "ecmp:message", "ecmp:packet", "adaptive", "valiant", "ugal", "ugal:20000"];
    let topologies = [
        "torus:4x4",
        "torus:4x2x2:2",
        "mesh:4x5",
        "fattree:4x4x2",
        "fattree:k=4",
        "karytree:2x4",
        "xgft:4,4;1,2;1,2",
        "hyperx:4x4:1",
        "dragonfly:4x2x1:palmtree",
        "dragonfly:2x4x1",
    ];
    prop_oneof![
        9 => (prop::sample::select(topologies.to_vec()), prop::sample::select(any.to_vec())),
        1 => Just(("dragonfly:2x4x1", "par")),
    ]
}

/// Patterns, with so many tasks.
const PATTERNS: [(&str, u32); 6] =
    [("ring", 16), ("halo2d", 16), ("random", 16), ("incast", 13), ("alltoall", 12), ("allreduce", 16)];

fn packets() -> impl Strategy<Value = PacketSettings> {
    let buffers = prop_oneof![
        Just((Buffers::Input, None)),
        Just((Buffers::Input, Some(1.5))),
        Just((Buffers::Output, None)),
    ];
    let arbiter = prop_oneof![Just(Arbiter::RoundRobin), Just(Arbiter::Age)];
    let mut with_class = TrafficClasses::default();
    with_class.add(Members::Collectives, 3).unwrap();
    let classes = prop::sample::select(vec![TrafficClasses::default(), with_class]);
    (buffers, arbiter, 0u64..40, prop::option::of(1u64..5), 200u64..3000, classes).prop_map(
        |((buffers, speedup), arbiter, header, room, size, classes)| PacketSettings {
            classes: if speedup.is_some() { TrafficClasses::default() } else { classes },
            size: Bytes(size),
            header: Bytes(header),
            buffer: room.map(|packets| Bytes(packets * (size + header))),
            buffers,
            speedup,
            arbiter,
            credit_delay: Picos(header * 1000),
            ..PacketSettings::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn several_threads_give_the_report_of_one(
        (topology, routing) in network(), (name, tasks) in prop::sample::select(PATTERNS.to_vec()), packet in packets(), threads in 2u16..5,
        (bytes, compute, noise) in (1u64..20_000, 0u64..3000, prop::sample::select(vec![0.0, 0.3])),
        (latency, delay, overhead) in (1u64..300, 0u64..100, 0u64..50),
        (per_node, sent, inside, delayed) in (1u32..3, any::<bool>(), any::<bool>(), any::<bool>()), seed in 0u64..1000,
    ) {
        let workload = workloads::Workload {
            bytes: Bytes(bytes), iterations: 3, compute: Ticks(compute), imbalance: noise, noise, seed,
            ..workloads::Workload::new(pattern(name).unwrap(), tasks)
        };
        let mut file = NamedTempFile::new().unwrap();
        workload.write_text(&mut file).unwrap();
        let mut job = Workload::new(file.path());
        job.places = Places::Block { per_node };
        job.compute_scale = ComputeScale::all(0.7);
        let mut settings = Settings { jobs: vec![job], ..Settings::default() };
        settings.send_completion = if sent { SendCompletion::WhenSent } else { SendCompletion::Eager };
        if inside {
            settings.same_node = SameNode::Inside(Link::new(Picos(100), 1_000_000_000_000).unwrap().into());
        }
        let network = &mut settings.network;
        (network.model, network.packet, network.seed) = (Model::Packet, packet, seed);
        (network.topology, network.routing) = (topology.parse().unwrap(), routing.parse().unwrap());
        network.links.bandwidth = "100Gbit/s".parse().unwrap();
        network.links.global_latency = Some(Picos(latency * 3000));
        (network.links.latency, network.links.switch_delay, network.links.overhead) =
            (Picos(latency * 1000), Picos(delay * 1000), Picos(overhead * 1000));
        if delayed {
            network.protocol.delays = vec![Delay { from: Bytes(1000), base: 5000.0, per_byte: 0.1 }];
        }
        let [one, many] = reports(&settings, threads);
        prop_assert!(one.links.used > 0);
        prop_assert_eq!(&one.jobs[0].finish, &many.jobs[0].finish);
        prop_assert!(one == many, "the same ends, but another report");
    }
}

/// A network that can do little within the latency of a link is not divided: the threads would wait for each other longer than they work.
#[test]
fn small_networks_are_not_divided() {
    let workload =
        workloads::Workload { iterations: 1, ..workloads::Workload::new(pattern("halo2d").unwrap(), 64) };
    let mut file = NamedTempFile::new().unwrap();
    workload.write_text(&mut file).unwrap();
    let mut settings = Settings { jobs: vec![Workload::new(file.path())], ..Settings::default() };
    settings.network.model = Model::Packet;
    settings.network.topology = "torus:8x8".parse().unwrap();
    // 64 nodes, each with 6 links of 500 ns, which a packet of 156 bytes uses for 124.8 ns at 10 Gbit/s.
    settings.network.packet.size = Bytes(150);
    settings.network.packet.header = Bytes(6);
    let divided = |settings: &Settings, threads, least_hops| {
        let Prepared { builder, nodes, .. } = Prepared::new(settings).unwrap();
        parallel::run(builder, &nodes, settings, threads, least_hops, &mut |_| {}).is_ok()
    };
    let hops = (64 * 6) * 500_000 / 124_800;
    assert!(divided(&settings, 2, hops / 2));
    assert!(!divided(&settings, 2, hops / 2 + 1));
    assert!(!divided(&settings, 4, hops / 2));
    settings.network.links.latency = Picos(1_000_000);
    assert!(divided(&settings, 4, hops / 2));
}

/// One thread runs what several cannot, and finds the errors.
#[test]
fn one_thread_runs_what_several_cannot() {
    let workload =
        workloads::Workload { iterations: 1, ..workloads::Workload::new(pattern("halo2d").unwrap(), 1024) };
    let mut file = NamedTempFile::new().unwrap();
    workload.write_text(&mut file).unwrap();
    let mut settings = Settings { jobs: vec![Workload::new(file.path())], threads: 2, ..Settings::default() };
    settings.network.model = Model::Packet;
    assert_eq!(parallel::threads(&settings, 1024), 2);
    assert_eq!(parallel::threads(&settings, 999), 1);
    let simulated = |settings: &Settings| simulate(settings, &mut |_| {}).map(|report| report.runtime_ps);
    let runtime = simulated(&settings).unwrap();
    assert_eq!(runtime, simulated(&Settings { threads: 1, ..settings.clone() }).unwrap());
    let changed = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings.clone();
        change(&mut settings);
        assert_eq!(parallel::threads(&settings, 1024), 1);
    };
    changed(&|s| s.observe.links = true);
    changed(&|s| s.send_completion = SendCompletion::Rendezvous { above: Bytes(0) });
    changed(&|s| s.network.protocol.returned = 0.1);
    changed(&|s| s.network.model = Model::CutThrough);
    // Nothing to look ahead to: one thread runs it.
    settings.network.links.latency = Picos::ZERO;
    assert!(simulated(&settings).unwrap() < runtime);
    settings.network.topology = "torus:4x4".parse().unwrap();
    assert!(matches!(simulated(&settings), Err(SimError::TooFewNodes { .. })));
}

//! The example simulator: messages (or packet-hops) a second in each model, replay included, traces in a container.
//!
//! *halo* is a halo exchange on a grid of 4096 ranks without edges: each computes about 1 µs, which differs between ranks, sends 8 KiB to each of four neighbours
//! and waits for theirs; 2 million messages. *ring* and *random* are 512 ranks on a full tree of three levels that send 100 kB each to the
//! next, or to a random other, and wait for what comes. The last group is `vef traffic` with each congestion control.
//!
//! Throughput counts messages; in the packet model packets times links. LogGOPSim and SimGrid did 0.27–0.5 M messages a second of *halo*, and 82 and
//! 7.3 thousand of *ring* and *random*, on the machine of `docs/simulator.md`.

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use replay::{Engine, Job, SendCompletion};
use sim_example::model::{Buffers, Model};
use sim_example::traffic::{Traffic, run_traffic};
use sim_example::{NetworkSettings, Simulation, run};
use std::hint::black_box;
use std::path::Path;
use vef_benches::traces::Trace;
use vef_format::container::Settings;
use vef_format::units::Bytes;
use workloads::{Workload, pattern};

fn network(topology: &str, model: Model) -> NetworkSettings {
    let topology = topology.parse().expect("a topology");
    NetworkSettings { topology, model, ..NetworkSettings::default() }
}

fn simulated(trace: &Path, network: &NetworkSettings) -> Simulation {
    let completion = network.send_completion(SendCompletion::Eager);
    let job = Job::open(trace).expect("a trace");
    let engine = Engine::builder().send_completion(completion).job(job).engine().expect("an engine");
    run(engine, network, &mut |_| {}).expect("a simulation")
}

fn bench(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, trace: &Path, network: &NetworkSettings) {
    let first = simulated(trace, network);
    let elements = if network.model == Model::Packet { first.performance.events } else { first.messages };
    group.throughput(Throughput::Elements(elements));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let report = simulated(trace, network);
            assert_eq!(report.messages, first.messages);
            black_box(report)
        });
    });
}

fn simulations(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let in_folder = |name: &str| folder.path().join(name);

    let halo = in_folder("halo.vefx");
    let trace = Trace::Halo { tasks: 4096, rounds: 122 };
    trace.write_container(&halo, Settings { compress: false, keep_order: true }).expect("a trace");
    let mut group = criterion.benchmark_group("halo");
    group.sample_size(10);
    for (topology, model) in [
        ("switch:4096", Model::LogGp),
        ("switch:4096", Model::Latency),
        ("torus:16x16x16", Model::CutThrough),
        ("torus:16x16x16", Model::StoreAndForward),
        ("fattree:k=26", Model::CutThrough),
        ("torus:16x16x16", Model::Packet),
        ("torus:16x16x16", Model::Flow),
    ] {
        bench(&mut group, &format!("{model} {topology}"), &halo, &network(topology, model));
    }
    group.finish();

    let mut group = criterion.benchmark_group("flow");
    group.sample_size(10);
    for name in ["ring", "random"] {
        let workload = Workload::new(pattern(name).expect("a pattern"), 512);
        let workload = Workload { bytes: Bytes(100_000), iterations: 200, noise: 0.5, ..workload };
        let path = in_folder(&format!("{name}.vefx"));
        let file = std::fs::File::create(&path).expect("a file");
        workload.write_container(file, Settings::default()).expect("a trace");
        bench(&mut group, name, &path, &network("karytree:8x3", Model::Flow));
    }
    group.finish();

    let shifts = in_folder("shifts.vefx");
    let workload = Workload { iterations: 1000, ..Workload::new(pattern("random").expect("a pattern"), 256) };
    let file = std::fs::File::create(&shifts).expect("a file");
    workload.write_container(file, Settings::default()).expect("a trace");
    let mut group = criterion.benchmark_group("random 8 KiB, 256 ranks");
    group.sample_size(10);
    for model in [Model::CutThrough, Model::Packet, Model::Flow] {
        bench(&mut group, &format!("{model} fattree:16x16x16"), &shifts, &network("fattree:16x16x16", model));
    }
    group.finish();

    let traffic = Traffic {
        sizes: Some("16KiB".parse().expect("a size")),
        window: 50,
        longest: 100,
        ..Traffic::default()
    };
    let mut group = criterion.benchmark_group("uniform traffic, load 0.9, packet fattree:k=8");
    group.sample_size(10);
    for (buffers, congestion) in [
        (Buffers::Input, "none"),
        (Buffers::Input, "credits"),
        (Buffers::Input, "window:bdp"),
        (Buffers::Output, "none"),
        (Buffers::Output, "dctcp:K=10kB"),
        (Buffers::Output, "dcqcn:Kmin=10kB,Kmax=40kB"),
    ] {
        let mut network = network("fattree:k=8", Model::Packet);
        network.packet.buffers = buffers;
        network.packet.congestion =
            (congestion != "none").then(|| congestion.parse().expect("a congestion control"));
        let first = run_traffic(&network, &traffic, 0.9).expect("a load");
        group.throughput(Throughput::Elements(first.events));
        group.bench_function(format!("{buffers:?} buffers, {congestion}"), |bencher| {
            bencher.iter(|| {
                let load = run_traffic(&network, &traffic, 0.9).expect("a load");
                assert_eq!(load.events, first.events);
                black_box(load)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, simulations);
criterion_main!(benches);
